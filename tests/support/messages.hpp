// SPDX-License-Identifier: Apache-2.0
// What the program says, in one file for each source of tests: golden/NAME.messages.txt beside it.
// A test names the word that matters; the file has the whole line, so that a change of wording
// changes that file and no test. UPDATE_GOLDEN=1 writes the lines of the tests that run anew; read
// their diff before committing it.
#pragma once

#include "core/file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <mutex>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <unistd.h>
#include <utility>

namespace reckon::test {

class Messages {
public:
  /// The file of a source of tests.
  static std::string path(const std::string& source) {
    // Not as the compiler had it: a compiler cache may have it from another checkout.
    const std::filesystem::path at(RECKON_SOURCE_DIR + source.substr(source.rfind("/tests/")));
    return at.parent_path() / "golden" / (at.stem().string() + ".messages.txt");
  }

  /// The test that runs has `line` in the file of `source`; with UPDATE_GOLDEN it is written there.
  static bool hold(const std::string& source, const std::string& line) {
    const testing::TestInfo* const info = testing::UnitTest::GetInstance()->current_test_info();
    const std::string test = std::string(info->test_suite_name()) + "." + info->name();
    static Messages all;
    const std::lock_guard lock(all.mutex_);
    auto [file, is_new] = all.files_.try_emplace(source);
    if (is_new) {
      file->second = read(path(source));
    }
    if (std::getenv("UPDATE_GOLDEN") == nullptr) {
      return file->second[test].contains(line);
    }
    if (all.written_.insert(source + test).second) {
      file->second[test].clear();
    }
    file->second[test].insert(line);
    write(path(source), file->second);
    return true;
  }

private:
  using Lines = std::map<std::string, std::set<std::string>>; // by test

  static Lines read(const std::string& path) {
    Lines lines;
    std::istringstream text(std::filesystem::exists(path) ? read_file(path) : "");
    std::string test;
    for (std::string line; std::getline(text, line);) {
      if (line.starts_with("[")) {
        test = line.substr(1, line.size() - 2);
      } else if (line.starts_with("  ")) {
        lines[test].insert(line.substr(2));
      }
    }
    return lines;
  }

  static void write(const std::string& path, const Lines& lines) {
    std::string text;
    for (const auto& [test, said] : lines) {
      text += said.empty() ? "" : "[" + test + "]\n";
      for (const std::string& line : said) {
        text += "  " + line + "\n";
      }
    }
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    write_file(path, text);
  }

  std::mutex mutex_;
  std::map<std::string, Lines> files_;
  std::set<std::string> written_;
};

/// The line as any machine and any run has it: without the names of folders, hosts, ports and
/// processes.
inline std::string everywhere(std::string line) {
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  const std::string folder =
      std::filesystem::temp_directory_path().string(); // TMPDIR has no signs of a regex
  const std::array<std::pair<std::regex, const char*>, 4> names{{
      {std::regex(folder + "/[^/ '\":,]+"), "TMP"},
      {std::regex("/tmp/[^/ '\":,]+"), "TMP"},
      {std::regex("(\\(|from )" + std::string(host.data()) + "\\b"), "$1HOST"},
      {std::regex("(port|process) [0-9]{3,}"), "$1 N"},
  }};
  for (const auto& [pattern, name] : names) {
    line = std::regex_replace(line, pattern, name);
  }
  return line;
}

/// Some lines of `text` have `token`, and the file of `source` has each of them. Why not: to `why`.
inline bool says(const std::string& source, const std::string& text, const std::string& token,
                 std::ostream& why) {
  std::istringstream lines(text);
  bool found = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.find(token) == line.npos) {
      continue;
    }
    found = true;
    line = everywhere(line);
    if (!Messages::hold(source, line)) {
      why << "which is not in " << Messages::path(source)
          << " (UPDATE_GOLDEN=1 writes it): " << line;
      return false;
    }
  }
  if (!found) {
    why << "which has no line with " << token;
  }
  return found;
}

MATCHER_P2(SaysAt, token, source, "has lines with \"" + token + "\" and they are as they were") {
  std::ostringstream why;
  const bool right = says(source, arg, token, why);
  *result_listener << why.str();
  return right;
}

/// Matches a text of which some lines have `token`, each of them as in the file of messages.
inline auto Says(std::string token, const char* source = __builtin_FILE()) {
  return SaysAt(std::move(token), std::string(source));
}

} // namespace reckon::test
