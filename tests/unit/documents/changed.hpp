// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/error.hpp"
#include "core/json.hpp"
#include "documents/document.hpp"
#include "documents/json.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace reckon::test {

/// One change to a valid document: a new value at a pointer, or its removal.
struct Change {
  std::string pointer;
  Json value;
  bool remove = false;
};
inline Change set(std::string pointer, Json value) {
  return {std::move(pointer), std::move(value)};
}
inline Change remove(std::string pointer) {
  return {std::move(pointer), nullptr, true};
}

inline Json changed(Json document, const std::vector<Change>& changes) {
  for (const Change& change : changes) {
    const Json::json_pointer at(change.pointer);
    if (!change.remove) {
      document[at] = change.value;
    } else if (Json& parent = document.at(at.parent_pointer()); parent.is_array()) {
      parent.erase(std::stoul(at.back()));
    } else {
      parent.erase(at.back());
    }
  }
  return document;
}

/// What the reader says of `document`, read as "f.json"; "ok" when it is valid.
inline std::string verdict(const Json& document) {
  try {
    static_cast<void>(document_from_json(document, "f.json"));
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::input) << e.what();
    return e.what();
  }
  return "ok";
}

/// A row of a table of mistakes: what is done to the valid document, and what must be said.
struct Mistake {
  std::vector<Change> changes;
  std::string message; ///< without "f.json: "
};

inline void expect_messages(const Json& valid, const std::vector<Mistake>& mistakes) {
  ASSERT_EQ(verdict(valid), "ok");
  for (const Mistake& mistake : mistakes) {
    EXPECT_EQ(verdict(changed(valid, mistake.changes)), "f.json: " + mistake.message);
  }
}

} // namespace reckon::test
