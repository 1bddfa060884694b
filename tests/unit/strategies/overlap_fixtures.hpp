// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/endpoint/overlap.hpp"

#include <functional>
#include <stdexcept>
#include <string>

namespace reckon::test {

/// What one of the endpoint's configurations makes of a ring of two that sends chunks of 1 MB,
/// after `change` of the question.
inline OverlapAnswer overlap_answer(const Workload& workload, const Endpoint& endpoint,
                                    const std::string& configuration,
                                    const std::function<void(OverlapQuestion&)>& change = {}) {
  OverlapQuestion question{.workload = workload,
                           .endpoint = endpoint,
                           .shape = {2, 1, 1},
                           .batch = 1,
                           .dtype = {},
                           .policy = SchedulePolicy::lifo,
                           .chunk_bytes = 1'000'000,
                           .bound = {},
                           .compute_speed = 1,
                           .exchange_aside = false,
                           .contention = {}};
  if (change) {
    change(question);
  }
  for (const EndpointConfiguration& c : endpoint.configurations) {
    if (c.name == configuration) {
      return predict_overlap(question, c);
    }
  }
  throw std::logic_error("no configuration " + configuration);
}

} // namespace reckon::test
