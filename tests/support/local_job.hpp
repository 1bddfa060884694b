// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/units.hpp"
#include "launch/environment.hpp"

namespace reckon::support {

inline constexpr Seconds k_limit{60}; ///< for what is not meant to fail

/// A rank of a job on this machine, whose rank 0 listens at `port`.
inline JobEnvironment job(int rank, int size, int port) {
  JobEnvironment j;
  j.rank = rank;
  j.size = size;
  j.master_address = "127.0.0.1";
  j.master_port = port;
  j.token = "secret";
  return j;
}

} // namespace reckon::support
