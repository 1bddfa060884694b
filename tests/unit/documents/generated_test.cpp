// SPDX-License-Identifier: Apache-2.0
// What docs/ says of the documents is made from their descriptions. UPDATE_GOLDEN=1 writes it anew.
#include "core/file.hpp"
#include "core/json.hpp"
#include "support/document_reference.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace reckon {
namespace {

void expect_file(const std::string& name, const std::string& text) {
  const std::string path = RECKON_SOURCE_DIR "/docs/" + name;
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    write_file(path, text);
  }
  EXPECT_EQ(read_file(path), text);
}

TEST(GeneratedFiles, SchemasAreThoseOfTheDescriptions) {
  for (const std::string_view kind : test::k_kinds) {
    expect_file(fmt::format("documents/{}.schema.json", kind), canonical(test::schema_of(kind)));
  }
}

TEST(GeneratedFiles, TheReferenceListsTheFieldsOfTheDescriptions) {
  std::string text = read_file(RECKON_SOURCE_DIR "/docs/documents.md");
  for (const std::string_view kind : test::k_kinds) {
    const std::string begin = fmt::format("<!-- fields of {} -->\n", kind);
    const std::size_t from = text.find(begin);
    ASSERT_NE(from, std::string::npos) << begin;
    const std::size_t end = text.find("<!-- end -->", from);
    ASSERT_NE(end, std::string::npos) << begin;
    text.replace(from, end - from, begin + test::reference_of(kind));
  }
  expect_file("documents.md", text);
}

} // namespace
} // namespace reckon
