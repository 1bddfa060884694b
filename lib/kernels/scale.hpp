// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/dtype.hpp"

#include <cstddef>
#include <span>

namespace reckon {

/// Multiplies every element by `factor`, in place: in fp32, and a half is rounded from the product
/// (not int32).
/// `bytes` is aligned to an element and holds whole ones. A factor of 1 changes nothing.
void scale(std::span<std::byte> bytes, DType dtype, double factor);

} // namespace reckon
