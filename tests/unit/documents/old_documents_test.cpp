// SPDX-License-Identifier: Apache-2.0
//
// What earlier versions wrote, in tests/golden/documents/VERSION: never rewritten. A version that
// changes what it writes adds a folder of its own.
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/json.hpp"
#include "documents/json.hpp"
#include "documents/requirements.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace reckon {
namespace {

constexpr const char* k_folder = RECKON_SOURCE_DIR "/tests/golden/documents";

std::vector<std::string> old_documents() {
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(k_folder)) {
    if (entry.is_regular_file()) {
      paths.push_back(entry.path().string());
    }
  }
  return paths;
}

std::string read_and_written(const Json& json, const std::string& path) {
  return json.at("schema") == "reckon/requirements"
             ? canonical(to_json(requirements_from_json(json, path)))
             : canonical_text(document_from_json(json, path));
}

/// The place of the first value of `before` that `after` has not; empty: it has all. Objects may
/// have members besides.
std::string lost_in(const Json& before, const Json& after, const std::string& at) {
  if (before.is_object() && after.is_object()) {
    for (const auto& [key, value] : before.items()) {
      const std::string place = at + "." + key;
      if (!after.contains(key)) {
        return place;
      }
      if (std::string lost = lost_in(value, after.at(key), place); !lost.empty()) {
        return lost;
      }
    }
    return "";
  }
  if (before.is_array() && after.is_array() && before.size() == after.size()) {
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (std::string lost = lost_in(before[i], after[i], fmt::format("{}[{}]", at, i));
          !lost.empty()) {
        return lost;
      }
    }
    return "";
  }
  return before == after ? "" : at;
}

TEST(OldDocuments, AreReadAndLoseNothing) {
  const std::vector<std::string> paths = old_documents();
  ASSERT_GE(paths.size(), 6U); // one of each kind
  for (const std::string& path : paths) {
    const Json before = parse_json(read_file(path), path);
    EXPECT_EQ(lost_in(before, Json::parse(read_and_written(before, path)), ""), "") << path;
  }
}

TEST(OldDocuments, OfANewerVersionAreRefusedWithItsNumber) {
  for (const std::string& path : old_documents()) {
    Json newer = parse_json(read_file(path), path);
    newer["schema_version"] = 2;
    newer["a_field_of_version_2"] = true; // its version is said, not this
    try {
      read_and_written(newer, path);
      ADD_FAILURE() << path << " is accepted";
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::input);
      EXPECT_NE(std::string(e.what()).find("schema_version: is 2"), std::string::npos) << e.what();
    }
  }
}

} // namespace
} // namespace reckon
