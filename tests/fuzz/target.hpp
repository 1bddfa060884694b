// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/error.hpp"

#include <functional>
#include <initializer_list>
#include <optional>
#include <random>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reckon::fuzz {

/// A reader of bytes from outside, and what it promises of any bytes at all.
struct Target {
  std::string name;
  /// Whether it admits them. Ends the program by broken() where a promise is not kept.
  std::function<bool(std::string_view bytes)> run;
  /// Inputs to begin with, beside the files of corpus/NAME.
  std::function<std::vector<std::string>()> seeds{};
  bool json = false; ///< its inputs are also changed as JSON: with_changes()
};
[[nodiscard]] std::vector<Target> reader_targets();
[[nodiscard]] std::vector<Target> peer_targets();
[[nodiscard]] std::vector<Target> plan_targets();
[[nodiscard]] std::vector<Target> library_targets();

/// Says what and aborts, which is what libFuzzer and a test see of a fault.
[[noreturn]] void broken(const std::string& what);

/// Breaks unless a message is one line without control characters that begins with `file`.
void check_message(const Error& error, std::string_view file = "");

/// What `read` returns, or nothing where it refuses its input with an error of one of these kinds,
/// as check_message() wants it. Another error is a fault.
template <class Read>
auto value_or_refusal(Read read, std::initializer_list<ErrorKind> kinds = {ErrorKind::input},
                      std::string_view file = "") -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const Error& error) {
    check_message(error, file);
    for (const ErrorKind kind : kinds) {
      if (error.kind() == kind) {
        return std::nullopt;
      }
    }
    broken(std::string("an error of another kind: ") + error.what());
  }
}

/// `text`, which is JSON, with one to three small changes after which it still is: digits, numbers
/// near others or far from all, words that stand elsewhere in it, entries that change places, are
/// there twice or are missing. Other text comes back as it is.
[[nodiscard]] std::string with_changes(std::string_view text, std::mt19937_64& random);

/// The files of a folder of the source tree and of those below it.
[[nodiscard]] std::vector<std::string> files_below(const std::string& folder);

/// The path of a file with this content in a folder of this process: what readers of paths get.
[[nodiscard]] std::string file_with(const std::string& name, std::string_view content);

} // namespace reckon::fuzz
