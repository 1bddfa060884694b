// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"

#include <system_error>

namespace reckon {

void fail(ErrorKind kind, const std::string& message) {
  throw Error(kind, message);
}

void fail_errno(const std::string& attempt, int error_number) {
  throw Error(ErrorKind::operation, attempt + ": " + std::generic_category().message(error_number));
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
