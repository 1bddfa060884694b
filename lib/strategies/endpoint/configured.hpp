// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/endpoint.hpp"
#include "documents/workload.hpp"
#include "equations/torus.hpp"

#include <array>
#include <cstdint>
#include <string>

namespace reckon {

/// Null for "". Throws Error{usage} where the endpoint has none of this name.
[[nodiscard]] const EndpointConfiguration* configuration_named(const Endpoint& endpoint,
                                                               const std::string& name);

/// A workload as one configuration of an endpoint computes it.
struct ConfiguredWorkload {
  Workload workload; ///< every layer says its seconds (equation 49)
  double iteration_s =
      0; ///< of `solve overlap` (equations 50 to 53); 0: the workload has no layers
};
/// With the workload's batch (1 where it says none). A workload without layers is as it was.
[[nodiscard]] ConfiguredWorkload
configured(const Workload& workload, const Endpoint& endpoint,
           const std::array<std::uint64_t, k_torus_dimensions>& shape,
           const EndpointConfiguration& configuration);

} // namespace reckon
