// SPDX-License-Identifier: Apache-2.0
#include "core/threads.hpp"

#include "core/error.hpp"

#include <fmt/format.h>

namespace reckon {

void fail_thread(std::string_view purpose, const std::system_error& refusal) {
  fail(
      ErrorKind::operation,
      fmt::format("cannot start a thread for {}: {}; raise the limit of processes (`ulimit -u`, or "
                  "pids.max of the container), or that of memory (`ulimit -v`)",
                  purpose, refusal.code().message()));
}

} // namespace reckon
