// SPDX-License-Identifier: Apache-2.0
#include "core/clock.hpp"

#include <fmt/chrono.h>

namespace reckon {

std::string utc_now() {
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr)));
}

} // namespace reckon
