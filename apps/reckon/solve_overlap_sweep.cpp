// SPDX-License-Identifier: Apache-2.0
#include "solve_overlap_sweep.hpp"

#include "core/json.hpp"
#include "core/shape.hpp"
#include "core/units.hpp"
#include "solve.hpp"
#include "strategies/endpoint/overlap.hpp"

#include <fmt/format.h>

#include <vector>

namespace reckon::solve_command {
namespace {

/// What a node sends in one all-reduce, its latency included, when communication has so much.
struct SweepPoint {
  double given = 0; ///< bytes per second, or SMs
  double cores = 0, engine = 0;
};

struct Sweep {
  std::vector<SweepPoint> points;
  double ideal = 0; ///< the same, when nothing of the endpoint limits it
};

Sweep sweep(const SweepQuestion& question) {
  const Endpoint& endpoint = question.endpoint;
  const auto shape = parse_shape(question.shape);
  const double payload = parse_bytes(question.bytes, "--bytes").as_double();
  if (payload < 1) {
    fail(ErrorKind::usage, "--bytes 0 B: must be at least 1 B");
  }
  const auto reached = [&](EndpointMover mover, const EndpointPart& part) {
    EndpointConfiguration c;
    c.mover = mover;
    c.communication = part;
    const OverlapCollective collective = overlap_collective(endpoint, shape, c, true);
    return payload * collective.traffic.sent_bytes /
           timed_collective(collective, payload, question.chunk_bytes).alone_s();
  };
  Sweep out;
  out.ideal = reached(EndpointMover::none, {});
  const double sms = static_cast<double>(endpoint.sms);
  constexpr int k_steps = 18;
  const int most_sms = static_cast<int>(std::min(10.0, sms));
  for (int i = 1; i <= (question.memory ? k_steps : most_sms); ++i) {
    const double given = question.memory ? endpoint.memory_bytes_per_second * i / k_steps : i;
    const EndpointPart part = question.memory
                                  ? EndpointPart{sms, given}
                                  : EndpointPart{given, endpoint.memory_bytes_per_second};
    out.points.push_back({given, reached(EndpointMover::cores, part),
                          question.memory ? reached(EndpointMover::engine, part) : 0});
  }
  return out;
}

Json json_of(const Sweep& sweep, bool memory) {
  Json out = {{"ideal_bandwidth", sweep.ideal}, {"points", Json::array()}};
  for (const SweepPoint& p : sweep.points) {
    Json& point = out["points"].emplace_back(
        Json{{memory ? "memory_bandwidth" : "sms", p.given}, {"network_bandwidth", p.cores}});
    if (memory) {
      point["engine_network_bandwidth"] = p.engine;
    }
  }
  return out;
}

std::string text_of(const Sweep& sweep, const SweepQuestion& question) {
  const bool memory = question.memory;
  std::string text = fmt::format("all-reduce of {} on {}: at most {} a node\n\n{:>12} {:>12} {:>9}",
                                 question.bytes, question.shape, rate_text(sweep.ideal),
                                 memory ? "memory" : "SMs", "SMs move", "of ideal");
  text += memory ? fmt::format(" {:>12} {:>9}\n", "engine", "of ideal") : "\n";
  const auto cells = [&](double rate) {
    return fmt::format(" {:>12} {:>9}", rate_text(rate),
                       fmt::format("{:.1f} %", 100 * rate / sweep.ideal));
  };
  for (const SweepPoint& p : sweep.points) {
    text += fmt::format("{:>12}", memory ? rate_text(p.given) : fmt::format("{}", p.given)) +
            cells(p.cores) + (memory ? cells(p.engine) : "") + "\n";
  }
  return text;
}

} // namespace

std::string sweep_text(const SweepQuestion& question, bool json) {
  const Sweep solved = sweep(question);
  return json ? canonical(json_of(solved, question.memory)) : text_of(solved, question);
}

} // namespace reckon::solve_command
