// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/dtype.hpp"
#include "documents/profile.hpp"
#include "documents/workload.hpp"
#include "equations/overlap.hpp"
#include "equations/timeline.hpp"
#include "equations/torus.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace reckon {

/// A workload with layers on equal endpoints that are the nodes of a torus. Computations that were
/// measured take as long in every configuration; their endpoint's share is not known.
struct OverlapQuestion {
  const Workload& workload;
  const Endpoint& endpoint;
  std::array<std::uint64_t, k_torus_dimensions> shape{1, 1, 1};
  std::uint64_t batch = 1;    ///< of a worker
  std::optional<DType> dtype; ///< of all tensors and activations; absent: as in the workload
  SchedulePolicy policy = SchedulePolicy::lifo;
  std::uint64_t chunk_bytes = 1;
  /// Arithmetic and memory of computation are so many times as fast, whatever the endpoint says.
  double compute_speed = 1;
  bool exchange_aside = false; ///< with the endpoint's part for that; not where nothing overlaps
  ContentionFactors contention;
};

/// A kind of collective in one configuration.
struct OverlapCollective {
  TorusTraffic traffic; ///< for each byte of payload
  CollectiveRate rate;
  double fill_s = 0;
};

struct OverlapAnswer {
  const EndpointConfiguration* configuration = nullptr; ///< the endpoint's
  ComputeShare compute;
  OverlapCollective all_reduce, exchange;
  std::vector<TimedLayer> layers; ///< in the workload's order
  Timeline timeline;
  double payload_bytes = 0; ///< of an iteration's all-reduces
  double sent_bytes = 0;    ///< by a worker in an iteration, over all links
};

/// The torus of an endpoint, its links at their efficiency.
[[nodiscard]] Torus torus_of(const Endpoint& endpoint,
                             const std::array<std::uint64_t, k_torus_dimensions>& shape);
/// What communication may use of an endpoint, for traffic of this kind.
[[nodiscard]] CommunicationShare communication_share(const Endpoint& endpoint,
                                                     const EndpointConfiguration& configuration,
                                                     const TorusTraffic& traffic, bool all_reduce);
/// Equations 49 to 53 for one configuration of the question's endpoint. Throws Error{usage} where
/// the workload has no layers or the shape one node.
[[nodiscard]] OverlapAnswer predict_overlap(const OverlapQuestion& question,
                                            const EndpointConfiguration& configuration);

} // namespace reckon
