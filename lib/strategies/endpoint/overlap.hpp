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

/// A workload with layers on equal endpoints that are the nodes of a torus.
struct OverlapQuestion {
  const Workload& workload;
  const Endpoint& endpoint;
  std::array<std::uint64_t, k_torus_dimensions> shape{1, 1, 1};
  std::uint64_t batch = 1;    ///< of a worker
  std::optional<DType> dtype; ///< of all tensors and activations; absent: as in the workload
  SchedulePolicy policy = SchedulePolicy::lifo;
  std::uint64_t chunk_bytes = 1;
  /// The limit of computations with given seconds, measured on the whole endpoint; absent: unknown,
  /// and they take as long in every configuration.
  std::optional<ComputationBound> bound;
  /// Factor on the endpoint's arithmetic and memory rates for computation.
  double compute_speed = 1;
  bool exchange_aside = false; ///< with the endpoint's resources for computations aside; unused
                               ///< where nothing overlaps
  ContentionFactors contention;
};

/// One kind of collective in one configuration.
struct OverlapCollective {
  TorusTraffic traffic; ///< for each byte of payload
  CollectiveRate rate;
  double fill_s = 0;                 ///< latencies
  double first_chunk_s_per_byte = 0; ///< of the first chunk's payload, once
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
/// The resources of an endpoint for communication of this kind.
[[nodiscard]] CommunicationShare communication_share(const Endpoint& endpoint,
                                                     const EndpointConfiguration& configuration,
                                                     const TorusTraffic& traffic, bool all_reduce);
/// Equations 50 and 51 of an all-reduce, or of an all-to-all.
[[nodiscard]] OverlapCollective
overlap_collective(const Endpoint& endpoint,
                   const std::array<std::uint64_t, k_torus_dimensions>& shape,
                   const EndpointConfiguration& configuration, bool all_reduce);
/// Equation 51 of `payload_bytes` > 0 in chunks of at most `chunk_bytes`. Throws Error{usage} where
/// there would be too many.
[[nodiscard]] TimedCollective timed_collective(const OverlapCollective& collective,
                                               double payload_bytes, std::uint64_t chunk_bytes);
/// Equations 49 to 53 for one configuration of the question's endpoint. Throws Error{usage} where
/// the workload has no layers or the shape one node.
[[nodiscard]] OverlapAnswer predict_overlap(const OverlapQuestion& question,
                                            const EndpointConfiguration& configuration);

/// The bytes per second that a node sends in one all-reduce, its latency included, with this much
/// of the endpoint for communication.
struct SweepPoint {
  double given = 0;  ///< memory bandwidth in bytes per second, or SMs
  double cores = 0;  ///< when SMs move the bytes
  double engine = 0; ///< when an engine moves them; 0 in a sweep over SMs
};
struct EndpointSweep {
  std::vector<SweepPoint> points;
  double ideal = 0; ///< without a limit by the endpoint
};

enum class SweptPart { memory, sms };

/// ACE's figures 5 and 6: an all-reduce of `payload_bytes` >= 1 over parts of the memory's
/// bandwidth with all SMs, or over up to 10 SMs with all of the memory. Throws as
/// timed_collective().
[[nodiscard]] EndpointSweep
sweep_endpoint(const Endpoint& endpoint, const std::array<std::uint64_t, k_torus_dimensions>& shape,
               double payload_bytes, std::uint64_t chunk_bytes, SweptPart swept);

/// Null for "". Throws Error{usage} where the endpoint has none of this name.
[[nodiscard]] const EndpointConfiguration* configuration_named(const Endpoint& endpoint,
                                                               const std::string& name);

/// A workload as one configuration of an endpoint computes it.
struct ConfiguredWorkload {
  Workload workload; ///< every layer has seconds (equation 49)
  double iteration_s =
      0; ///< of `solve overlap` (equations 50 to 53); 0: the workload has no layers
};
/// With the workload's batch (1 where it has no batch). A workload without layers stays as it is.
[[nodiscard]] ConfiguredWorkload
configured(const Workload& workload, const Endpoint& endpoint,
           const std::array<std::uint64_t, k_torus_dimensions>& shape,
           const EndpointConfiguration& configuration);

} // namespace reckon
