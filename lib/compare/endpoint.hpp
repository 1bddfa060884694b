// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compare/build.hpp"

#include <optional>

namespace reckon {

void compare_endpoints(Builder& out, const std::optional<Endpoint>& before,
                       const std::optional<Endpoint>& after);

} // namespace reckon
