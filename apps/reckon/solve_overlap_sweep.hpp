// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/profile.hpp"

#include <cstdint>
#include <string>

namespace reckon::solve_command {

/// ACE's figures 5 and 6: what one all-reduce reaches over what communication has of an endpoint.
struct SweepQuestion {
  const Endpoint& endpoint;
  std::string shape, bytes; ///< as given: LxVxH, and a size
  std::uint64_t chunk_bytes = 1;
  bool memory = false; ///< over its memory's bandwidth; otherwise over SMs
};

/// The answer as text for people, or as JSON. Throws Error{usage} where shape or bytes are none.
[[nodiscard]] std::string sweep_text(const SweepQuestion& question, bool json);

} // namespace reckon::solve_command
