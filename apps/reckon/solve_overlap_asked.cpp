// SPDX-License-Identifier: Apache-2.0
#include "solve_overlap_asked.hpp"

#include "core/error.hpp"
#include "core/shape.hpp"
#include "core/units.hpp"
#include "documents/contention.hpp"
#include "documents/document.hpp"
#include "solve.hpp"
#include "strategies/contention.hpp"
#include "strategies/endpoint/measured.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <vector>

namespace reckon::solve_command {
namespace {

EndpointAndFactors endpoint_of(const OverlapOptions& options) {
  if (options.contention.empty()) {
    if (!options.contention_profile.empty()) {
      fail(ErrorKind::usage, "--contention-profile: say with --contention which computation's "
                             "factors it is to give");
    }
    return {described_endpoint(options),
            ContentionFactors{options.computation_factor, options.communication_factor},
            {}};
  }
  if (options.computation_factor != 1 || options.communication_factor != 1) {
    fail(ErrorKind::usage, "--contention takes the factors from a profile: leave out "
                           "--computation-factor and --communication-factor");
  }
  if (options.cores != "dedicated" && options.cores != "shared") {
    fail(ErrorKind::usage, fmt::format("--cores {}: use dedicated or shared", options.cores));
  }
  const Profile profile = read_profile(options.profile);
  if (profile.endpoint) {
    if (options.contention_profile.empty() &&
        std::none_of(profile.cells.begin(), profile.cells.end(),
                     [](const Cell& cell) { return is_contention(cell.key); })) {
      fail(ErrorKind::usage,
           fmt::format("--contention {}: nothing was measured beside computation in {}; name a "
                       "profile that has it with --contention-profile, or give "
                       "--computation-factor and --communication-factor instead",
                       options.contention, options.profile));
    }
    return {*profile.endpoint,
            contention_factors(options.contention_profile.empty()
                                   ? profile
                                   : read_profile(options.contention_profile),
                               {options.contention, options.cores == "dedicated"}),
            {}};
  }
  if (!options.contention_profile.empty()) {
    fail(ErrorKind::usage, fmt::format("--contention-profile: {} has no endpoint, and its own "
                                       "factors count; leave one of the two out",
                                       options.profile));
  }
  const auto [ring, vertical, horizontal] = parse_shape(options.shape);
  if (vertical != 1 || horizontal != 1) {
    fail(ErrorKind::usage,
         fmt::format("--shape {}: machines that were measured are one ring, Nx1x1", options.shape));
  }
  MeasuredEndpoint measured = measured_endpoint(profile, options.contention, ring);
  return {std::move(measured.endpoint), std::nullopt, std::move(measured.factors)};
}

SchedulePolicy policy_of(const std::string& name) {
  constexpr std::array<const char*, 3> k_names{"lifo", "fifo", "priority"};
  const auto it = std::find(k_names.begin(), k_names.end(), name);
  if (it == k_names.end()) {
    fail(ErrorKind::usage, fmt::format("--policy '{}': must be lifo, fifo or priority", name));
  }
  return static_cast<SchedulePolicy>(it - k_names.begin());
}

std::optional<ComputationBound> bound_of(const OverlapOptions& options) {
  if (options.bound.empty()) {
    return std::nullopt;
  }
  if (options.bound != "memory" && options.bound != "compute") {
    fail(ErrorKind::usage, fmt::format("--bound '{}': must be memory or compute", options.bound));
  }
  return options.bound == "memory" ? ComputationBound::memory : ComputationBound::arithmetic;
}

bool says_any_seconds(const Workload& workload) {
  return std::any_of(workload.layers.begin(), workload.layers.end(), [](const Layer& l) {
    return l.forward.seconds || l.input_gradient.seconds || l.weight_gradient.seconds;
  });
}

} // namespace

Endpoint described_endpoint(const OverlapOptions& options) {
  const Profile profile = read_profile(options.profile);
  if (!profile.endpoint) {
    fail(
        ErrorKind::usage,
        fmt::format("--profile {}: does not say how its endpoint divides itself; give --contention "
                    "WORK where it was measured, add \"endpoint\" (docs/documents.md), or take "
                    "ace-torus",
                    options.profile));
  }
  return *profile.endpoint;
}

std::uint64_t chunk_bytes_of(const OverlapOptions& options, const Endpoint& endpoint) {
  const std::uint64_t bytes =
      options.chunk.empty() ? endpoint.chunk_bytes : parse_bytes(options.chunk, "--chunk").count();
  if (bytes < 1) {
    fail(ErrorKind::usage, "--chunk 0 B: must be at least 1 B");
  }
  return bytes;
}

OverlapAsked::OverlapAsked(const OverlapOptions& options)
    : workload(read_workload(options.workload)), measured(endpoint_of(options)),
      endpoint(measured.endpoint), overlap{.workload = workload,
                                           .endpoint = endpoint,
                                           .shape = parse_shape(options.shape),
                                           .batch = 1,
                                           .dtype = {},
                                           .policy = policy_of(options.policy),
                                           .chunk_bytes = chunk_bytes_of(options, endpoint),
                                           .bound = bound_of(options),
                                           .compute_speed = options.compute_speed,
                                           .exchange_aside = options.aside,
                                           .contention =
                                               measured.all.value_or(ContentionFactors{})} {
  if (!measured.all && !says_seconds(workload)) {
    fail(ErrorKind::usage,
         fmt::format("the workload {} counts operations, and {} does not say how many it makes a "
                     "second; take a workload whose layers say seconds (reckon import)",
                     workload.name, options.profile));
  }
  if (overlap.bound && !measured.all) {
    fail(ErrorKind::usage,
         fmt::format("--bound {}: {} has no endpoint that is divided; leave it out", options.bound,
                     options.profile));
  }
  if (overlap.bound && !says_any_seconds(workload)) {
    fail(ErrorKind::usage,
         fmt::format("--bound {}: {} counts operations and bytes, which say what holds its "
                     "layers up (49); leave it out",
                     options.bound, workload.name));
  }
  read_batch(options);
  if (!options.dtype.empty()) {
    overlap.dtype = dtype_named(options.dtype);
    if (!overlap.dtype) {
      fail(ErrorKind::usage,
           fmt::format("--dtype '{}': must be fp32, fp16 or bf16", options.dtype));
    }
  }
  if (options.configuration != "all" &&
      std::none_of(endpoint.configurations.begin(), endpoint.configurations.end(),
                   [&](const auto& c) { return c.name == options.configuration; })) {
    std::vector<std::string> names{"all"};
    for (const EndpointConfiguration& c : endpoint.configurations) {
      names.push_back(c.name);
    }
    fail(ErrorKind::usage, fmt::format("--configuration '{}': must be one of {}",
                                       options.configuration, fmt::join(names, ", ")));
  }
}

OverlapQuestion OverlapAsked::of(const EndpointConfiguration& configuration) const {
  OverlapQuestion question = overlap;
  if (!measured.all) {
    question.contention = measured.by_configuration.at(configuration.name);
  } else if (configuration.mover == EndpointMover::none) { // nobody moves, so nobody is in the way
    question.contention = {};
  }
  return question;
}

void OverlapAsked::read_batch(const OverlapOptions& options) {
  const bool in_seconds = says_any_seconds(workload);
  if (options.batch != 0) {
    overlap.batch = count_of(options.batch, "--batch");
    if (in_seconds && workload.batch != overlap.batch) {
      fail(ErrorKind::usage,
           fmt::format("--batch {}: {} was measured with {}", options.batch, workload.name,
                       workload.batch ? std::to_string(*workload.batch)
                                      : "a batch that it does not say"));
    }
  } else if (workload.batch) {
    overlap.batch = *workload.batch;
  } else if (!in_seconds && !workload.layers.empty()) {
    fail(ErrorKind::usage,
         fmt::format("the workload {} has no batch; give --batch", workload.name));
  }
}

} // namespace reckon::solve_command
