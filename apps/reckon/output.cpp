// SPDX-License-Identifier: Apache-2.0
#include "output.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "documents/document.hpp"

#include <fmt/format.h>

#include <exception>
#include <filesystem>
#include <optional>
#include <system_error>

namespace reckon {

namespace {

void refuse_inputs(const std::string& output, const std::vector<std::string>& inputs,
                   std::string_view flag) {
  for (const std::string& input : inputs) {
    std::error_code error;
    if (output != "-" && std::filesystem::equivalent(output, input, error) && !error) {
      fail(ErrorKind::usage,
           fmt::format("{} {}: is also an input; give another name", flag, output));
    }
  }
}

/// `same`: whether a text that is there is of the kind.
void refuse_others(const std::string& output, std::string_view kind, std::string_view flag,
                   const std::function<bool(const std::string&)>& same) {
  std::error_code error;
  if (output.empty() || output == "-" || !std::filesystem::is_regular_file(output, error) ||
      std::filesystem::file_size(output, error) == 0) {
    return;
  }
  const std::optional<std::string> there = read_if_readable(output);
  if (!there || !same(*there)) {
    fail(ErrorKind::usage,
         fmt::format("{} exists and is no {}; give another {}, or remove it first", output, kind,
                     flag));
  }
}

std::string_view first_word(std::string_view text) {
  return text.substr(0, text.find_first_of(" \n"));
}

} // namespace

void refuse_overwriting(const std::string& output, const std::vector<std::string>& inputs,
                        std::string_view kind, std::string_view flag) {
  refuse_inputs(output, inputs, flag);
  refuse_others(output, kind, flag,
                [&](const std::string& there) { return document_kind(there) == kind; });
}

void refuse_overwriting_text(const std::string& output, const std::vector<std::string>& inputs,
                             std::string_view kind, std::string_view like, std::string_view flag) {
  refuse_inputs(output, inputs, flag);
  refuse_others(output, kind, flag,
                [&](const std::string& there) { return first_word(there) == first_word(like); });
}

void hand_out(const std::string& document, const std::string& output, bool json,
              const std::function<std::string()>& table) {
  std::exception_ptr failed;
  if (!output.empty()) {
    try {
      write_file(output, document);
    } catch (const Error&) { // what was measured is still to be read
      failed = std::current_exception();
    }
  }
  if (output != "-") {
    write_file("-", json ? document : table());
  }
  if (failed) {
    std::rethrow_exception(failed);
  }
}

} // namespace reckon
