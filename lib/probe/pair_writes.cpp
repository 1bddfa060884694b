// SPDX-License-Identifier: Apache-2.0
#include "probe/pair_writes.hpp"

#include "probe/rounds.hpp"

#include <algorithm>
#include <utility>

namespace reckon {

std::vector<std::vector<Flow>> writes_at_once(const std::vector<Flow>& flows, std::uint64_t bytes,
                                              const ClusterMember& member) {
  if (bytes > k_short_write_bytes) {
    return {flows};
  }
  Pairing pairs;
  for (const Flow& flow : flows) {
    pairs.emplace_back(flow.from, flow.to);
  }
  std::vector<std::vector<Flow>> groups;
  const int most = std::max(1, member.hosts().front().processors / 2);
  for (const Pairing& wave : waves_of(pairs, member.host_of(), most)) {
    std::vector<Flow>& group = groups.emplace_back();
    for (const auto& [from, to] : wave) {
      group.push_back({from, to});
    }
  }
  return groups;
}

FlowTask write_task(std::vector<Flow> flows, std::uint64_t bytes, std::uint64_t count,
                    std::uint64_t most_warm_up, std::uint64_t first) {
  constexpr std::uint64_t k_passed_first = 512 * 1024;
  FlowTask task;
  task.kind = FlowTask::Kind::echo;
  task.flows = std::move(flows);
  task.bytes = bytes;
  task.first = first;
  task.warm_up = std::clamp<std::uint64_t>(k_passed_first / bytes, 1, most_warm_up);
  task.count = count;
  return task;
}

std::vector<double> write_seconds(const std::vector<double>& round_trip_s, double answer_s) {
  std::vector<double> seconds;
  for (const double both : round_trip_s) {
    seconds.push_back(std::max(both - answer_s, 0.5 * both));
  }
  return seconds;
}

} // namespace reckon
