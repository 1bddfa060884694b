// SPDX-License-Identifier: Apache-2.0
#include "equations/ring.hpp"

#include <algorithm>

namespace reckon {

double ring_seconds(const RingSteps& s) {
  const double hop_s = s.write_s + s.latency_s;
  return (s.ranks - 1) * std::max(s.reduce_step_s, hop_s + s.sum_s) +
         (s.ranks - 2) * std::max(s.port_step_s, hop_s) + std::max(s.port_step_s, s.write_s) +
         s.latency_s;
}

} // namespace reckon
