// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launch/environment.hpp"

namespace reckon {

/// Connects to the PMIx server of PMIX_NAMESPACE and related variables, and asks it for rank, size,
/// and both on this machine. The board in the result is the server's key-value service; the
/// connection ends with it.
[[nodiscard]] JobEnvironment job_from_pmix();

} // namespace reckon
