// SPDX-License-Identifier: Apache-2.0
// The schemas in docs/documents are made from the descriptions. UPDATE_GOLDEN=1 rewrites them.
#include "core/file.hpp"
#include "core/json.hpp"
#include "documents/reference.hpp"

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
  for (const std::string_view kind : documents::k_schema_kinds) {
    expect_file(fmt::format("documents/{}.schema.json", kind),
                canonical(documents::schema_of(kind)));
  }
}

TEST(GeneratedFiles, TheReferenceExplainsTheFieldsOfEachDocument) {
  const std::string text = documents::field_reference();
  for (const std::string_view kind : documents::k_schema_kinds) {
    const Json schema = documents::schema_of(kind);
    const std::size_t from = text.find(fmt::format("\n## {}\n", kind));
    ASSERT_NE(from, std::string::npos) << kind;
    const std::string section = text.substr(from, text.find("\n## ", from + 1) - from);
    for (const auto& [key, field] : schema.at("properties").items()) {
      if (!field.contains("const")) { // the header
        const std::size_t row = section.find(fmt::format("\n| `{}` | ", key));
        ASSERT_NE(row, std::string::npos) << kind << ": " << key;
        const std::string line = section.substr(row + 1, section.find('\n', row + 1) - row - 1);
        EXPECT_NE(line.find(field.at("description").get<std::string>()), std::string::npos) << line;
      }
    }
  }
  // Of an object that several fields have, in another document than its own.
  EXPECT_NE(text.find("| `cells[]` | as `cells[]` of the profile | The fields `bytes`, "),
            std::string::npos);
}

} // namespace
} // namespace reckon
