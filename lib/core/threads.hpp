// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>
#include <system_error>
#include <thread>
#include <utility>

namespace reckon {

/// Throws Error{operation}: the system refused a thread for `purpose` ("a lane"), and what to raise.
[[noreturn]] void fail_thread(std::string_view purpose, const std::system_error& refusal);

/// A thread of Thread's kind (std::jthread, std::thread) that runs `body`. Throws Error{operation}
/// where the system refuses it; whoever has started others by then ends them before it passes the
/// error on.
template <class Thread = std::jthread, class Body>
[[nodiscard]] Thread start_thread(std::string_view purpose, Body&& body) {
  try {
    return Thread(std::forward<Body>(body));
  } catch (const std::system_error& refusal) {
    fail_thread(purpose, refusal);
  }
}

} // namespace reckon
