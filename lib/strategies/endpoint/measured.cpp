// SPDX-License-Identifier: Apache-2.0
#include "strategies/endpoint/measured.hpp"

#include "core/error.hpp"
#include "strategies/contention.hpp"
#include "strategies/default_roles.hpp"
#include "strategies/model.hpp"

#include <algorithm>
#include <optional>

namespace reckon {
namespace {

constexpr std::uint64_t k_chunk_bytes = 1 << 20;

double sent_per_second(const CostModel& model) {
  const auto ranks = static_cast<double>(model.ranks().size());
  if (model.one_machine()) {
    return model.shared_rate(ranks, k_chunk_bytes).mid / ranks;
  }
  const auto slowest = std::min_element(model.ranks().begin(), model.ranks().end(),
                                        [](const RankModel& a, const RankModel& b) {
                                          return a.port_bytes_per_s < b.port_bytes_per_s;
                                        });
  return slowest->port_bytes_per_s * model.port_efficiency(k_chunk_bytes);
}

} // namespace

MeasuredEndpoint measured_endpoint(const Profile& profile, const std::string& operation,
                                   std::uint64_t workers) {
  const CostModel model(profile, default_roles(profile, workers, 0, 1), "", {});
  constexpr double k_unlimited = 1e30; // a number, as computations are checked to have one
  MeasuredEndpoint measured;
  Endpoint& endpoint = measured.endpoint;
  endpoint.sms = 1;
  endpoint.sm_bytes_per_second = endpoint.flops_per_second = k_unlimited;
  endpoint.memory_bytes_per_second = endpoint.bus_bytes_per_second = k_unlimited;
  endpoint.rings[0] = {sent_per_second(model), model.latency_s()};
  endpoint.chunk_bytes = k_chunk_bytes;
  const auto add = [&](const char* name, const std::optional<EndpointPart>& communication,
                       const ContentionFactors& factors) {
    endpoint.configurations.push_back({name, "", EndpointMover::none, communication});
    measured.factors[name] = factors;
  };
  const EndpointPart nothing;
  add("no-overlap", std::nullopt, {});
  std::optional<Error> why_not;
  for (const bool dedicated : {true, false}) {
    try {
      add(dedicated ? "dedicated" : "shared", nothing,
          contention_factors(profile, {operation, dedicated}));
    } catch (const Error& e) { // the other may be there
      why_not = e;
    }
  }
  add("ideal", nothing, {});
  if (endpoint.configurations.size() == 2) {
    throw *why_not;
  }
  return measured;
}

bool says_seconds(const Workload& workload) {
  const auto said = [](const Computation& c) { return c.seconds || c.nothing(); };
  return std::all_of(workload.layers.begin(), workload.layers.end(), [&](const Layer& l) {
    return said(l.forward) && said(l.input_gradient) && said(l.weight_gradient);
  });
}

} // namespace reckon
