// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/error.hpp"
#include "core/file.hpp"
#include "import/import.hpp"

#include <gtest/gtest.h>

#include <string>

namespace reckon {

inline std::string golden_text(const std::string& name) {
  return read_file(std::string(RECKON_SOURCE_DIR "/tests/golden/import/") + name);
}

inline Profile imported(const std::string& text, const std::string& collective = "") {
  ImportOptions options{.collective = collective};
  return import_text(text, "output.txt", options);
}

inline CellKey key_of(const std::string& test, const std::string& from = "",
                      const std::string& to = "") {
  CellKey key{.test = test, .from = from, .to = to};
  return key;
}

/// The cell that has all of the pattern's fields; a test failure when there is not exactly one.
inline const Cell& only(const Profile& profile, const CellKey& pattern) {
  static const Cell none;
  const auto cells = profile.select(pattern);
  EXPECT_EQ(cells.size(), 1U) << pattern.text();
  return cells.empty() ? none : *cells.front();
}

/// Of two processes on these machines.
inline Profile of_pair(const std::string& text, const std::string& machines = "m0,m1") {
  return import_text(text, "output.txt", {.machine = machines});
}

/// What import_text says of a bad text.
inline std::string complaint(const std::string& text, const ImportOptions& options,
                             ErrorKind kind = ErrorKind::input) {
  try {
    static_cast<void>(import_text(text, "output.txt", options));
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), kind);
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
    return e.what();
  }
  return "no error";
}
inline std::string complaint(const std::string& text, const std::string& collective = "") {
  return complaint(text, ImportOptions{.collective = collective});
}
inline std::string pair_complaint(const std::string& text, ErrorKind kind = ErrorKind::input) {
  return complaint(text, ImportOptions{.machine = "m0,m1"}, kind);
}

/// What import_text warns of.
inline std::string warnings(const std::string& text) {
  testing::internal::CaptureStderr();
  static_cast<void>(imported(text));
  return testing::internal::GetCapturedStderr();
}

inline std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const std::size_t at = text.find(from);
  EXPECT_NE(at, text.npos) << from;
  return at == text.npos ? text : text.replace(at, from.size(), to);
}

} // namespace reckon
