// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <new>
#include <system_error>

namespace reckon {

void fail(ErrorKind kind, const std::string& message) {
  throw Error(kind, one_line(message));
}

Error as_error(const std::exception& cause) {
  if (const auto* const known = dynamic_cast<const Error*>(&cause)) {
    return *known;
  }
  if (dynamic_cast<const std::bad_alloc*>(&cause) != nullptr) {
    return {ErrorKind::operation,
            "out of memory; use fewer ranks, a smaller workload or a smaller part size"};
  }
  const bool refused = dynamic_cast<const std::system_error*>(&cause) != nullptr;
  return {refused ? ErrorKind::operation : ErrorKind::internal, one_line(cause.what())};
}

std::string system_words(int error_number) {
  return std::generic_category().message(error_number) +
         (error_number == EMFILE ? "; raise the limit of open files (`ulimit -n`)" : "");
}

void fail_errno(const std::string& attempt, int error_number) {
  fail(ErrorKind::operation, attempt + ": " + system_words(error_number));
}

std::string one_line(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (const auto code = static_cast<unsigned char>(c); code < 0x20 || code == 0x7f) {
      out += fmt::format("\\u{:04x}", code);
    } else {
      out += c;
    }
  }
  return out;
}

int exit_status(ErrorKind kind) noexcept {
  switch (kind) {
  case ErrorKind::usage:
  case ErrorKind::input:
    return 2;
  case ErrorKind::unavailable:
    return 3;
  case ErrorKind::operation:
    return k_exit_operation;
  case ErrorKind::internal:
    return k_exit_bug;
  }
  return k_exit_bug;
}

} // namespace reckon
