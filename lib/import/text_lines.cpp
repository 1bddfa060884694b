// SPDX-License-Identifier: Apache-2.0
#include "import/text_lines.hpp"

#include "core/csv.hpp"
#include "core/error.hpp"
#include "core/json_fwd.hpp"
#include "core/whole_number.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace reckon::import_detail {
namespace {

constexpr std::string_view k_blanks = " \t\r\v\f";

/// How long the tag of `mpirun --tag-output` is that the line begins with, "[1,0]<stdout>:"; 0:
/// none.
std::size_t tag(std::string_view line) {
  const std::size_t end = std::min(line.find(">:"), line.size());
  return line.starts_with('[') && contains(line.substr(0, end), "]<std") ? end + 2 : 0;
}

/// How long the time of RFC 3339 is that the line begins with, "2025-03-01T10:11:12.123456Z" or
/// with
/// "+09:00" for Z; 0: none.
std::size_t time_stamp(std::string_view line) {
  constexpr std::string_view k_pattern = "0000-00-00T00:00:00";
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  std::size_t end = k_pattern.size();
  if (line.size() < end ||
      !std::equal(k_pattern.begin(), k_pattern.end(), line.begin(),
                  [&](char wanted, char c) { return wanted == '0' ? is_digit(c) : wanted == c; })) {
    return 0;
  }
  end = std::min(line.find_first_not_of(".0123456789", end), line.size());
  const std::string_view zone = line.substr(end, line.find_first_of(k_blanks, end) - end);
  return zone == "Z" || (zone.size() == 6 && (zone[0] == '+' || zone[0] == '-')) ? end + zone.size()
                                                                                 : 0;
}

/// How long the tag of the process is that some launchers put before a line: MPICH's "[0]", "0: "
/// of `srun -l`, "node-a: " of pdsh and clush; 0: none.
std::size_t process_tag(std::string_view line) {
  constexpr std::string_view k_digits = "0123456789";
  constexpr std::string_view k_names =
      "-._0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  const bool bracket = line.starts_with('[');
  const std::size_t begin = bracket ? 1 : 0;
  const std::size_t end = line.find_first_not_of(bracket ? k_digits : k_names, begin);
  if (end == line.npos || end == begin || line[end] != (bracket ? ']' : ':')) {
    return 0;
  }
  return bracket || end + 1 == line.size() || line[end + 1] == ' ' ? end + 1 : 0;
}

/// Whether most lines begin with the tags of a few processes. Other lines are the launcher's own.
bool have_process_tags(const std::vector<std::string_view>& lines) {
  std::size_t tagged = 0, blank = 0;
  std::set<std::string_view> tags;
  for (const std::string_view line : lines) {
    const std::size_t length = process_tag(line);
    blank += line.empty() ? 1U : 0U;
    tagged += length > 0 ? 1U : 0U;
    tags.insert(line.substr(0, length));
  }
  tags.erase("");
  return 2 * tagged > lines.size() - blank && 2 * tags.size() <= tagged;
}

} // namespace

TextLines::TextLines(std::string_view text, std::string file)
    : m_raw(text), m_file(std::move(file)) {
  if (text.starts_with("\x1f\x8b")) {
    reckon::fail(ErrorKind::input, m_file + ": is compressed; gunzip it first");
  }
  if (text.find('\0') != text.npos) {
    reckon::fail(ErrorKind::input, m_file + ": is no text; give what the tool printed");
  }
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    m_lines.push_back(without_prefixes(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  if (have_process_tags(m_lines)) {
    for (std::string_view& line : m_lines) {
      const std::string_view tag = line.substr(0, process_tag(line));
      line = without_prefixes(without(tag, line.substr(tag.size())));
    }
  }
}

std::string_view TextLines::without_prefixes(std::string_view line) {
  constexpr int k_most = 16; // of launchers within launchers; each may change the whole line
  std::size_t prefix = 1;
  for (int i = 0; i < k_most && prefix > 0; ++i) {
    line = trimmed(line);
    prefix = line.starts_with('>') ? 1 : std::max(tag(line), time_stamp(line));
    line = without(line.substr(0, prefix), line.substr(prefix));
  }
  return line;
}

std::string_view TextLines::without(std::string_view tag, std::string_view line) {
  if (!tag.starts_with('[') || !contains(line, tag)) {
    return line;
  }
  std::string& changed = m_changed.emplace_back();
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t next = std::min(line.find(tag, at), line.size());
    changed += line.substr(at, next - at);
    at = next + tag.size();
  }
  return changed;
}

std::string TextLines::text() const {
  return fmt::format("{}\n", fmt::join(m_lines, "\n"));
}

void TextLines::fail(std::size_t index, const std::string& problem) const {
  reckon::fail(ErrorKind::input, place(index) + problem);
}

std::string TextLines::place(std::size_t index) const {
  return fmt::format("{}:{}: ", m_file, std::min(index, m_lines.size()) + 1);
}

Line::Line(const TextLines& lines, std::size_t line)
    : Line(lines, line, line < lines.size() ? lines[line] : std::string_view()) {}

Line::Line(const TextLines& lines, std::size_t line, std::string_view shown)
    : at(line), text(shown), words(words_of(shown)), m_lines(lines) {}

bool Line::has(std::string_view word) const {
  return std::ranges::find(words, word) != words.end();
}

std::string_view Line::after(std::string_view word) const {
  const auto found = std::ranges::find(words, word);
  return words.end() - found < 2 ? std::string_view() : *(found + 1);
}

std::optional<std::string_view> Line::behind(std::string_view begin) const {
  return text.starts_with(begin) ? std::optional(trimmed(text.substr(begin.size()))) : std::nullopt;
}

std::string_view Line::program(std::string_view name) const {
  for (const std::string_view word : words) {
    if (const auto last = word.substr(word.find_last_of('/') + 1); last.starts_with(name)) {
      return last;
    }
  }
  return {};
}

void Line::fail_as_cut(const std::string& problem) const {
  fail(problem + "; was the output cut off? Give the whole of it");
}

double Line::number(std::string_view word, std::string_view what) const {
  const auto value = finite_number(word);
  if (!value || *value < 0) {
    fail(fmt::format("{} is \"{}\"; must be a number that is not negative, as the tool "
                     "prints it: measure again, or take the line out",
                     what, quoted(word)));
  }
  return *value;
}

double Line::positive(std::string_view word, std::string_view what) const {
  const double value = number(word, what);
  if (!(value > 0)) {
    fail(fmt::format("{} is {}; must be above zero: measure again", what, quoted(word)));
  }
  return value;
}

std::uint64_t Line::count(std::string_view word, std::string_view what) const {
  const auto value = whole_number<std::uint64_t>(word);
  if (!value || *value > k_max_count) {
    fail(fmt::format("{} is \"{}\"; must be a whole number of at most 2^53", what, quoted(word)));
  }
  return *value;
}

void Devices::say(const Line& line, const std::string& which, const std::string& value) {
  const auto& [first_at, first] = m_said.try_emplace(which, Said{line.at, value}).first->second;
  if (first != value) {
    line.fail(fmt::format("a second run begins here, of other devices than the one in line {} "
                          "({} here, {} there); put each in a file of its own",
                          first_at + 1, value, first));
  }
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  std::size_t begin = line.find_first_not_of(k_blanks);
  while (begin != line.npos) {
    const std::size_t end = std::min(line.find_first_of(k_blanks, begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = line.find_first_not_of(k_blanks, end);
  }
  return words;
}

std::optional<int> index_of(std::string_view word) {
  const auto value = whole_number<std::uint16_t>(word);
  return value ? std::optional<int>(*value) : std::nullopt;
}

std::string quoted(std::string_view word) {
  return one_line(word.substr(0, 60));
}

bool has_decimals(std::string_view word, std::size_t least) {
  const std::size_t point = word.find('.');
  return point != word.npos && word.size() - point > least;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(trimmed(text.substr(0, end)));
    if (end == text.npos) {
      return parts;
    }
    text.remove_prefix(end + separator.size());
  }
}

bool is_digits(std::string_view word) {
  return word.find_first_not_of("0123456789") == word.npos;
}

void append(std::string& list, std::string_view part) {
  list += list.empty() || part.empty() ? "" : "; ";
  list += part;
}

bool is_plain_word(std::string_view word) {
  return word.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == word.npos;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != text.npos;
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = std::min(text.find_first_not_of(k_blanks), text.size());
  return text.substr(begin, text.find_last_not_of(k_blanks) + 1 - begin);
}

} // namespace reckon::import_detail
