// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// The common part of the readers of other programs' outputs. Not for other modules.
namespace reckon::import_detail {

/// The lines of a file, without the blanks around them and the prefixes of launchers, logs and
/// pages: the tag of `mpirun --tag-output` ("[1,0]<stdout>:"), the time of `kubectl logs
/// --timestamps` (RFC 3339), a quotation's ">", and where most lines have them the tags of MPICH
/// ("[0]"), `srun -l` ("3: "), pdsh and clush ("node-a: "). A tag in brackets stands before each
/// piece that the process wrote, so it is taken out of the middle of its line, too.
class TextLines {
public:
  /// Throws Error{input} when the text has a zero byte: it is binary.
  TextLines(std::string_view text, std::string file);
  TextLines(const TextLines&) = delete; // lines point into m_changed
  TextLines& operator=(const TextLines&) = delete;
  [[nodiscard]] std::size_t size() const { return m_lines.size(); }
  [[nodiscard]] std::string_view operator[](std::size_t index) const { return m_lines[index]; }
  /// All of them, each with a newline.
  [[nodiscard]] std::string text() const;
  /// What the file has, with blanks and prefixes.
  [[nodiscard]] std::string_view raw() const { return m_raw; }
  [[nodiscard]] const std::string& file() const { return m_file; }
  /// Throws Error{input}: "FILE:LINE: problem", with the line counted from 1. An index behind the
  /// last line is the end of the file.
  [[noreturn]] void fail(std::size_t index, const std::string& problem) const;
  /// "FILE:LINE: "
  [[nodiscard]] std::string place(std::size_t index) const;

private:
  std::string_view without_prefixes(std::string_view line);
  /// The line without a tag in brackets.
  std::string_view without(std::string_view tag, std::string_view line);

  std::string_view m_raw;
  std::vector<std::string_view> m_lines;
  std::deque<std::string> m_changed; ///< lines that are not in the text as they are here
  std::string m_file;
};

/// A line and its words, which stand between blanks.
class Line {
public:
  Line(const TextLines& lines, std::size_t at);
  /// In the place of one, a text that must outlive it.
  Line(const TextLines& lines, std::size_t at, std::string_view text);
  const std::size_t at;
  const std::string_view text;
  const std::vector<std::string_view> words;

  [[nodiscard]] std::string_view operator[](std::size_t word) const {
    return word < words.size() ? words[word] : std::string_view();
  }
  [[nodiscard]] bool has(std::string_view word) const;
  /// The word behind another, as the value of an option; empty without it.
  [[nodiscard]] std::string_view after(std::string_view word) const;
  /// The rest of a line that begins so, without blanks; absent for another line.
  [[nodiscard]] std::optional<std::string_view> behind(std::string_view begin) const;
  /// The last part of the path that a word is, if it begins with `name`; empty without one.
  [[nodiscard]] std::string_view program(std::string_view name) const;

  /// Throws Error{input}: "FILE:LINE: problem".
  [[noreturn]] void fail(const std::string& problem) const { m_lines.fail(at, problem); }
  /// The same, of what a line that was cut off may be.
  [[noreturn]] void fail_as_cut(const std::string& problem) const;
  [[nodiscard]] std::string place() const { return m_lines.place(at); }
  /// The word as a finite number that is not negative; `what`: its name for the message.
  [[nodiscard]] double number(std::string_view word, std::string_view what) const;
  /// The same, above zero.
  [[nodiscard]] double positive(std::string_view word, std::string_view what) const;
  /// The word as a whole number of at most 2^53.
  [[nodiscard]] std::uint64_t count(std::string_view word, std::string_view what) const;

private:
  const TextLines& m_lines;
};

/// The facts about devices of the runs in a file. Runs of different devices must not become one
/// machine.
class Devices {
public:
  /// Line `at` says that the device or devices `which` ("GPU 0", "count") are `value` ("8 GPUs").
  /// Throws Error{input} where an earlier line says something else.
  void say(const Line& line, const std::string& which, const std::string& value);

private:
  struct Said {
    std::size_t line;
    std::string value;
  };
  std::map<std::string, Said> m_said;
};

/// The words between blanks.
[[nodiscard]] std::vector<std::string_view> words_of(std::string_view line);
/// Digits only, and small enough for an index of a device, node or rank.
[[nodiscard]] std::optional<int> index_of(std::string_view word);
/// A word of a file for a message, shortened if long.
[[nodiscard]] std::string quoted(std::string_view word);
/// Whether a number has at least this many digits behind its point: a truncated one has fewer.
[[nodiscard]] bool has_decimals(std::string_view word, std::size_t least);
/// The parts between separators, without blanks around them.
[[nodiscard]] std::vector<std::string_view> split(std::string_view text,
                                                  std::string_view separator);
[[nodiscard]] bool is_digits(std::string_view word);
/// Adds to a list with "; " between its parts.
void append(std::string& list, std::string_view part);
/// Whether it consists of lower-case letters, digits and _.
[[nodiscard]] bool is_plain_word(std::string_view word);
[[nodiscard]] bool contains(std::string_view text, std::string_view part);
/// Without blanks at either end.
[[nodiscard]] std::string_view trimmed(std::string_view text);

} // namespace reckon::import_detail
