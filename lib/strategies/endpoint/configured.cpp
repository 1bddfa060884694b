// SPDX-License-Identifier: Apache-2.0
#include "strategies/endpoint/configured.hpp"

#include "core/error.hpp"
#include "strategies/endpoint/overlap.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

namespace reckon {

const EndpointConfiguration* configuration_named(const Endpoint& endpoint,
                                                 const std::string& name) {
  std::vector<std::string> names;
  for (const EndpointConfiguration& c : endpoint.configurations) {
    if (c.name == name) {
      return &c;
    }
    names.push_back(c.name);
  }
  if (!name.empty()) {
    fail(ErrorKind::usage,
         fmt::format("--configuration {}: must be one of {}", name, fmt::join(names, ", ")));
  }
  return nullptr;
}

ConfiguredWorkload configured(const Workload& workload, const Endpoint& endpoint,
                              const std::array<std::uint64_t, k_torus_dimensions>& shape,
                              const EndpointConfiguration& configuration) {
  ConfiguredWorkload out{workload};
  if (workload.layers.empty()) {
    return out;
  }
  const OverlapQuestion question{.workload = workload,
                                 .endpoint = endpoint,
                                 .shape = shape,
                                 .batch = workload.batch.value_or(1),
                                 .chunk_bytes = endpoint.chunk_bytes};
  const OverlapAnswer answer = predict_overlap(question, configuration);
  for (std::size_t i = 0; i < workload.layers.size(); ++i) {
    const auto takes = [](Computation& computation, double seconds) {
      computation = {};
      computation.seconds = seconds;
    };
    takes(out.workload.layers[i].forward, answer.layers[i].forward_s);
    takes(out.workload.layers[i].input_gradient, answer.layers[i].input_gradient_s);
    takes(out.workload.layers[i].weight_gradient, answer.layers[i].weight_gradient_s);
  }
  out.workload.forward_seconds.reset();
  out.workload.backward_seconds.reset();
  out.iteration_s = answer.timeline.iteration_s;
  return out;
}

} // namespace reckon
