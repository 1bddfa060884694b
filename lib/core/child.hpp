// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/units.hpp"

#include <functional>
#include <string>

namespace reckon {

/// What `body` returns in a process of its own: for libraries that must not be called in this one,
/// or that may crash or hang. A child that is stopped is continued. Throws Error{operation} when
/// the system refuses a process or a pipe, when the child dies, when `body` throws, and, having
/// killed it, when it has not answered after `limit`.
[[nodiscard]] std::string answer_of_child(const std::function<std::string()>& body, Seconds limit);

} // namespace reckon
