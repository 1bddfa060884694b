// SPDX-License-Identifier: Apache-2.0
#include "probe/pair_probe.hpp"

#include "core/error.hpp"
#include "probe/cluster_steps.hpp"
#include "probe/rounds.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace reckon {
namespace {

constexpr std::uint64_t k_short_writes = 8, k_long_writes = 3;

std::uint64_t count_of(std::uint64_t bytes) {
  return bytes > k_short_write_bytes ? k_long_writes : k_short_writes;
}
FlowTask task_for(std::vector<Flow> flows, std::uint64_t bytes, std::uint64_t first) {
  return write_task(std::move(flows), bytes, count_of(bytes), 8, first);
}

ClusterProbeOptions member_options(const PairProbe::Options& options) {
  ClusterProbeOptions all;
  all.limit = options.limit;
  all.most_memory =
      2 * place_of_write(*std::max_element(options.sizes.begin(), options.sizes.end()));
  all.make = options.make;
  return all;
}

} // namespace

ClientFlows client_flows(const std::vector<int>& clients, const std::vector<int>& proxies) {
  ClientFlows out;
  const std::size_t n = std::max(clients.size(), proxies.size());
  for (std::size_t step = 0; step < n; ++step) {
    for (const bool forth : {true, false}) {
      out.rounds.emplace_back();
      for (std::size_t c = 0; c < clients.size(); ++c) {
        if (const std::size_t p = (c + step) % n; p < proxies.size()) {
          out.rounds.back().push_back(out.flows.size());
          out.flows.push_back(forth ? Flow{clients[c], proxies[p]} : Flow{proxies[p], clients[c]});
        }
      }
    }
  }
  return out;
}

void add_flows(ClientFlows& to, const std::vector<Flow>& more) {
  const std::size_t first = to.rounds.size();
  for (const Flow& flow : more) {
    if (std::find(to.flows.begin(), to.flows.end(), flow) != to.flows.end()) {
      continue;
    }
    const auto disjoint = [&](const std::vector<std::size_t>& round) {
      return std::none_of(round.begin(), round.end(), [&](std::size_t i) {
        const Flow& other = to.flows[i];
        return other.from == flow.from || other.from == flow.to || other.to == flow.from ||
               other.to == flow.to;
      });
    };
    auto round = std::find_if(to.rounds.begin() + static_cast<std::ptrdiff_t>(first),
                              to.rounds.end(), disjoint);
    if (round == to.rounds.end()) {
      round = to.rounds.emplace(to.rounds.end());
    }
    round->push_back(to.flows.size());
    to.flows.push_back(flow);
  }
}

std::vector<std::uint64_t> reprofile_sizes(const std::vector<KnownPair>& pairs,
                                           const std::vector<std::vector<std::size_t>>& rounds,
                                           Seconds time) {
  std::map<std::uint64_t, std::size_t> having;
  for (const KnownPair& pair : pairs) {
    for (const auto& [bytes, cell] : pair.writes) {
      ++having[bytes];
    }
  }
  std::erase_if(having, [&](const auto& entry) { return entry.second < pairs.size(); });
  if (having.size() < 2) {
    fail(ErrorKind::input,
         "the profile has no two sizes of pair_write that all pairs of client and proxy share; "
         "`reckon probe --cluster --pair-writes` measures them");
  }
  const std::uint64_t shortest = having.begin()->first;
  const auto seconds_of_all = [&](std::uint64_t bytes) {
    const FlowTask task = task_for({}, bytes, 0);
    double all = 0;
    for (const auto& round : rounds) {
      double slowest = 0;
      for (const std::size_t i : round) {
        slowest = std::max(slowest, pairs[i].seconds(bytes) + pairs[i].latency_s);
      }
      all += slowest * static_cast<double>(task.warm_up + task.count);
    }
    return all;
  };
  std::uint64_t longest = std::next(having.begin())->first;
  for (const auto& [bytes, count] : having) {
    if (bytes != shortest && seconds_of_all(shortest) + seconds_of_all(bytes) <= time.count()) {
      longest = std::max(longest, bytes);
    }
  }
  return {shortest, longest};
}

PairProbe::PairProbe(Rendezvous& rendezvous, const Options& options)
    : m_options(member_options(options)), m_member(rendezvous, m_options), m_sizes(options.sizes) {
  // All open the lanes together, as rank 0 says.
  if (rendezvous.rank() == 0) {
    m_member.use_transport(options.transport, 1);
    m_member.end();
  } else {
    m_member.serve();
  }
}

std::vector<PairTimes> PairProbe::measure(const std::vector<KnownPair>& pairs,
                                          std::vector<Round> rounds) {
  std::vector<PairTimes> times(pairs.size());
  measure_rounds(pairs, rounds, times);
  const auto seems_changed = [&](std::size_t i, const PairTimes& now) {
    return std::any_of(now.begin(), now.end(), [&](const auto& entry) {
      return change_of(pairs[i].writes.at(entry.first), entry.second).has_value();
    });
  };
  for (Round& round : rounds) {
    std::erase_if(round, [&](std::size_t i) { return !seems_changed(i, times[i]); });
  }
  std::vector<PairTimes> again(pairs.size());
  measure_rounds(pairs, rounds, again);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    for (const auto& [bytes, samples] : again[i]) {
      std::vector<double>& first = times[i][bytes];
      if (change_of(pairs[i].writes.at(bytes), samples)) {
        first.insert(first.end(), samples.begin(), samples.end());
      } else {
        first = samples;
      }
    }
  }
  return times;
}

void PairProbe::measure_rounds(const std::vector<KnownPair>& pairs,
                               const std::vector<Round>& rounds, std::vector<PairTimes>& times) {
  for (const Round& round : rounds) {
    std::vector<Flow> flows;
    for (const std::size_t i : round) {
      flows.push_back(pairs[i].flow);
    }
    for (const std::uint64_t bytes : m_sizes) {
      for (const std::vector<Flow>& group : writes_at_once(flows, bytes, m_member)) {
        if (group.empty()) {
          continue;
        }
        const std::vector<FlowOutcome> outcomes =
            m_member.run(task_for(group, bytes, m_random() % 100'000));
        for (const std::size_t i : round) {
          if (std::find(group.begin(), group.end(), pairs[i].flow) != group.end()) {
            times[i][bytes] =
                write_seconds(outcomes[at(pairs[i].flow.from)].round_trip_s, pairs[i].latency_s);
          }
        }
      }
    }
  }
}

} // namespace reckon
