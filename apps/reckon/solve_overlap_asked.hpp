// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/profile.hpp"
#include "documents/workload.hpp"
#include "equations/contended.hpp"
#include "strategies/endpoint/overlap.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace reckon::solve_command {

/// The command line of `reckon solve overlap`, as given.
struct OverlapOptions {
  std::string workload, profile = "ace-torus", shape, configuration = "all", policy = "lifo", chunk,
                        dtype, bound, timeline, sweep_bytes = "64MB", contention,
                        cores = "dedicated", contention_profile;
  std::int64_t batch = 0;
  double compute_speed = 1, computation_factor = 1, communication_factor = 1;
  bool aside = false, explain = false, memory_sweep = false, sm_sweep = false, json = false;
};

/// Factors as given for all configurations; of a measured profile each has its own.
struct EndpointAndFactors {
  Endpoint endpoint;
  std::optional<ContentionFactors> all;
  std::map<std::string, ContentionFactors> by_configuration;
};

/// The endpoint that --profile describes. Throws Error{usage} where it describes none.
[[nodiscard]] Endpoint described_endpoint(const OverlapOptions& options);

/// What nothing interrupts: as given, else the endpoint's. Throws Error{usage} for 0.
[[nodiscard]] std::uint64_t chunk_bytes_of(const OverlapOptions& options, const Endpoint& endpoint);

/// What is asked, and what it is asked of.
class OverlapAsked {
public:
  /// Reads the documents. Throws Error{usage} for options that do not fit each other or them.
  explicit OverlapAsked(const OverlapOptions& options);
  OverlapAsked(const OverlapAsked&) = delete; // parts refer to each other
  OverlapAsked& operator=(const OverlapAsked&) = delete;

  /// With the factors of a configuration.
  [[nodiscard]] OverlapQuestion of(const EndpointConfiguration& configuration) const;

  Workload workload;
  EndpointAndFactors measured;
  const Endpoint& endpoint;
  OverlapQuestion overlap;

private:
  void read_batch(const OverlapOptions& options);
};

} // namespace reckon::solve_command
