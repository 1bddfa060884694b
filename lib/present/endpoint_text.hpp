// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/endpoint.hpp"
#include "present/style.hpp"

#include <string>

namespace reckon {

[[nodiscard]] std::string endpoint_text(const Endpoint& endpoint, const Style& style);

} // namespace reckon
