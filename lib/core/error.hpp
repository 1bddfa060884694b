// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <stdexcept>
#include <string>
#include <string_view>

namespace reckon {

/// The kind of an error, in terms a caller can act on. Each kind is one exit status
/// (exit_status()).
enum class ErrorKind {
  usage,       ///< the command line is wrong
  input,       ///< a document or an imported file is wrong
  unavailable, ///< this machine or this build lacks a capability
  operation,   ///< something that should have worked failed: a dead peer, a full disk
  internal,    ///< a bug in reckon
};

/// The one exception of the control path. what() is one line: attempt (object): cause; remedy.
class Error : public std::runtime_error {
public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), m_kind(kind) {}
  [[nodiscard]] ErrorKind kind() const noexcept { return m_kind; }

private:
  ErrorKind m_kind;
};

/// Throws Error. Kept out of line: throwing emits much code.
[[noreturn]] void fail(ErrorKind kind, const std::string& message);

/// What to say and do of any exception: an Error as it is; too little memory and a refusal of the
/// system are operations that failed; the rest are bugs.
[[nodiscard]] Error as_error(const std::exception& cause);

/// The system's words for an error number, with the remedy where there is one.
[[nodiscard]] std::string system_words(int error_number);

/// Throws Error{operation} whose text ends with the system's words for `error_number`.
[[noreturn]] void fail_errno(const std::string& attempt, int error_number);

/// `text` with its control characters written as \u001b and so on: file content goes into a
/// message, and so to a terminal, only in this form.
[[nodiscard]] std::string one_line(std::string_view text);

/// Exit statuses: 0 ok, 1 negative verdict, 2 usage or bad input, 3 capability unavailable,
/// 4 operation failed, 70 bug, 130 interrupted.
inline constexpr int k_exit_ok = 0;
inline constexpr int k_exit_verdict = 1;
inline constexpr int k_exit_operation = 4;
inline constexpr int k_exit_bug = 70;
inline constexpr int k_exit_interrupted = 130;
[[nodiscard]] int exit_status(ErrorKind kind) noexcept;

} // namespace reckon
