// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/json_fwd.hpp"

#include <nlohmann/json.hpp>
