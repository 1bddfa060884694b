// SPDX-License-Identifier: Apache-2.0
// The whole text of each document, as a pipe and as a terminal of 80 columns get it.
// UPDATE_GOLDEN=1 writes the files anew; read their diff before committing it.
#include "core/file.hpp"
#include "present/document_text.hpp"
#include "support/example_documents.hpp"
#include "support/machine_documents.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>

namespace reckon {
namespace {

/// Digests change with every field that documents gain.
std::string normalise(const std::string& text) {
  return std::regex_replace(text, std::regex("sha256:[0-9a-f]{12}"), "sha256:............");
}

void expect_golden(const std::string& name, const std::string& text) {
  const std::string path = RECKON_SOURCE_DIR "/tests/unit/present/golden/" + name + ".txt";
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    write_file(path, normalise(text));
    return;
  }
  EXPECT_EQ(normalise(text), read_file(path));
}

std::size_t longest_line(const std::string& text) {
  std::size_t longest = 0;
  std::size_t length = 0;
  for (const char c : text) {
    length = c == '\n' ? 0 : length + 1;
    longest = std::max(longest, length);
  }
  return longest;
}

void expect_both(const std::string& name, const Document& document) {
  const Style terminal{Colors::none, 80};
  expect_golden(name, render(document, Style{}));
  const std::string narrow = render(document, terminal);
  EXPECT_LE(longest_line(narrow), 80U);
  expect_golden(name + "_80", narrow);
}

TEST(Golden, Profile) {
  expect_both("profile", test::machine_profile());
}
TEST(Golden, Plan) {
  expect_both("plan", test::machine_plan());
}
TEST(Golden, Report) {
  expect_both("report", test::machine_report());
}
TEST(Golden, Workload) {
  expect_both("workload", test::example_workload());
}
TEST(Golden, Roles) {
  expect_both("roles", test::example_roles());
}

} // namespace
} // namespace reckon
