// SPDX-License-Identifier: Apache-2.0
#include "probe/cluster_pairs.hpp"

#include "core/log.hpp"
#include "core/units.hpp"
#include "probe/pair_writes.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace reckon {
namespace {

/// `pairs` as they stand, or each turned around.
std::vector<Flow> one_way_flows(const Pairing& pairs, bool forth) {
  std::vector<Flow> flows;
  for (const auto& [a, b] : pairs) {
    flows.push_back(forth ? Flow{a, b} : Flow{b, a});
  }
  return flows;
}

void note_pairs(const FlowTask& task, const FlowRates& rates, PairSamples& into) {
  for (std::size_t f = 0; f < rates.size(); ++f) {
    auto& samples = into[{task.flows[f].from, task.flows[f].to}];
    samples.insert(samples.end(), rates[f].begin(), rates[f].end());
  }
}

/// Of a task with the flows of both_ways().
RoundRates round_of(const FlowTask& task, const FlowRates& rates, const std::string& step) {
  if (log_level() >= LogLevel::debug) {
    std::string text;
    for (std::size_t f = 0; f < rates.size(); ++f) {
      text += fmt::format("{} {}->{} {}", f == 0 ? "" : ",", task.flows[f].from, task.flows[f].to,
                          to_text(Bandwidth::bytes_per_s(median_above_zero(rates[f]))));
    }
    log(LogLevel::debug, "{}:{}", step, text);
  }
  RoundRates round;
  for (std::size_t f = 0; f + 1 < task.flows.size(); f += 2) {
    round.push_back({task.flows[f].from, task.flows[f].to,
                     0.5 * (median_above_zero(rates[f]) + median_above_zero(rates[f + 1]))});
  }
  return round;
}

} // namespace

void PairSteps::calibrate() {
  std::vector<double> all;
  for (const auto& windows : m_steps.stream(m_steps.stream_task(
           both_ways(round_robin(m_steps.ranks()).front()), 64 * 1024, 0.05, 0.1, 1))) {
    all.insert(all.end(), windows.begin(), windows.end());
  }
  m_rate = std::max(1e5, median_above_zero(all));
  m_pair_part = m_part = part_for(m_rate / static_cast<double>(m_steps.lanes.size()));
  log(LogLevel::debug, "{}: about {} a pair and direction, so writes of {}", m_steps.transport(),
      to_text(Bandwidth::bytes_per_s(m_rate)), to_text(Bytes(m_part)));
}

void PairSteps::measure() {
  const std::vector<Pairing> rounds = round_robin(m_steps.ranks());
  for (std::size_t r = 0; r < rounds.size(); ++r) {
    if (r > 0 && m_steps.over()) {
      break; // the cells of these pairs say so
    }
    const std::string step = fmt::format("pairs, round {} of {}", r + 1, rounds.size());
    m_steps.show(step);
    measure_latency(rounds[r]);
    m_steps.show(step);
    for (const bool forth : {true, false}) {
      const FlowTask task =
          m_steps.stream_task(one_way_flows(rounds[r], forth), m_pair_part, 0.08, 0.08, 3);
      note_pairs(task, m_steps.stream(task), m_one_way);
    }
    const FlowTask task = m_steps.stream_task(both_ways(rounds[r]), m_pair_part, 0.08, 0.1, 3);
    const FlowRates rates = m_steps.stream(task);
    note_pairs(task, rates, m_two_way);
    m_rounds.push_back(round_of(task, rates, step));
  }
  confirm_ports();
  m_rate = std::max(1e5, median_above_zero(m_port_seen));
  m_part = part_for(m_rate / static_cast<double>(m_steps.lanes.size()));
  confirm_rounds();
}

/// All that follows is held against the ports: what was fast only once does not count.
void PairSteps::confirm_ports() {
  constexpr int k_most = 3;
  for (int again = 0; again < k_most && !m_steps.over(); ++again) {
    const Pairing pairs = seen_once(m_rounds, m_steps.ranks());
    if (pairs.empty()) {
      break;
    }
    m_rounds.push_back(measure_round(pairs, "fast pairs again", m_pair_part, 0.2).first);
  }
  m_port_seen = ports_seen_twice(m_rounds, m_steps.ranks());
}

/// What was slow may have been disturbed: only what is slow twice counts.
void PairSteps::confirm_rounds() {
  constexpr int k_most = 8;
  int again = 0;
  for (RoundRates& round : m_rounds) {
    const bool slow = std::any_of(round.begin(), round.end(), [&](const PairRate& pair) {
      return hindered(pair, m_port_seen);
    });
    if (!slow) {
      continue;
    }
    if (++again > k_most || m_steps.over()) {
      round.clear(); // says nothing for certain
      continue;
    }
    Pairing pairs;
    for (const PairRate& pair : round) {
      pairs.emplace_back(pair.a, pair.b);
    }
    keep_best(round, measure_round(pairs, "slow pairs again", m_part, 0.1).first);
  }
}

std::pair<RoundRates, std::vector<double>> PairSteps::measure_round(const Pairing& pairs,
                                                                    const std::string& step,
                                                                    std::uint64_t bytes,
                                                                    double window) {
  m_steps.show(step);
  const FlowTask task = m_steps.stream_task(both_ways(pairs), bytes, 0.2, window, 3);
  const FlowRates rates = m_steps.stream(task);
  std::vector<double> forth(rates.front().size()), back(rates.front().size());
  for (std::size_t f = 0; f < rates.size(); ++f) {
    for (std::size_t w = 0; w < rates[f].size(); ++w) {
      (f % 2 == 0 ? forth : back)[w] += rates[f][w];
    }
  }
  return {round_of(task, rates, step),
          median_above_zero(forth) < median_above_zero(back) ? forth : back};
}

void PairSteps::measure_latency(const Pairing& pairs) {
  constexpr std::uint64_t k_bytes = 8;
  for (const std::vector<Flow>& group :
       writes_at_once(one_way_flows(pairs, true), k_bytes, m_steps.member())) {
    FlowTask task;
    task.kind = FlowTask::Kind::ping;
    task.flows = group;
    task.bytes = k_bytes;
    task.warm_up = 10;
    task.count = static_cast<std::uint64_t>(std::clamp(100 * m_steps.scale(), 30.0, 300.0));
    const std::vector<FlowOutcome> outcomes = m_steps.member().run(task);
    for (const Flow& flow : task.flows) {
      std::vector<double>& samples = m_latency[{flow.from, flow.to}];
      samples = outcomes[at(flow.from)].round_trip_s;
      for (double& sample : samples) {
        sample *= 0.5;
      }
    }
  }
}

std::size_t PairSteps::write_steps() const {
  return 2 * round_robin(m_steps.ranks()).size();
}

void PairSteps::measure_writes(Seconds each) {
  const std::vector<Pairing> rounds = round_robin(m_steps.ranks());
  for (std::size_t r = 0; r < rounds.size(); ++r) {
    for (const bool forth : {true, false}) {
      m_steps.show(fmt::format("writes between pairs, round {} of {}", r + 1, rounds.size()));
      measure_direction(one_way_flows(rounds[r], forth), each);
    }
  }
}

/// Half of a round trip; 0 where it is not known.
double PairSteps::latency_of(const Flow& flow) const {
  const auto latency = m_latency.find(std::minmax(flow.from, flow.to));
  return latency == m_latency.end() ? 0 : median_above_zero(latency->second);
}

/// From what is known of the pair: its latency and rate, and the size before.
double PairSteps::expected_seconds(const Flow& flow, std::uint64_t bytes) const {
  const auto size = static_cast<double>(bytes);
  const auto rate = m_one_way.find({flow.from, flow.to});
  const double known = rate == m_one_way.end() ? 0 : median_above_zero(rate->second);
  double expected = size / (known > 0 ? known : m_rate);
  expected += 2 * latency_of(flow);
  const auto curve = m_writes.find({flow.from, flow.to});
  if (curve != m_writes.end()) {
    for (const auto& [smaller, write] : curve->second) {
      if (smaller < bytes && !write.seconds.empty()) {
        expected = std::max(expected, median_above_zero(write.seconds));
      }
    }
  }
  return expected;
}

void PairSteps::measure_direction(const std::vector<Flow>& flows, Seconds each) {
  // One to warm up and three that count: of fewer, chance decides.
  constexpr double k_fewest = 3, k_most = 30;
  for (const std::uint64_t bytes : k_pair_write_sizes) {
    std::vector<Flow> now;
    double slowest = 0;
    for (const Flow& flow : flows) {
      const double expected = expected_seconds(flow, bytes);
      PairWrite& write = m_writes[{flow.from, flow.to}][bytes];
      if (m_steps.over()) {
        write.why_not = fmt::format("no time left of the budget of {}", to_text(m_steps.budget()));
      } else if (place_of_write(bytes) > m_steps.member().memory()) {
        write.why_not = fmt::format("longer than the {} of memory that are free for it",
                                    to_text(Bytes(m_steps.member().memory())));
      } else if ((1 + k_fewest) * expected > each.count()) {
        write.why_not = fmt::format("{} writes of about {} are more than the {} that there are for "
                                    "each size",
                                    1 + k_fewest, to_text(Seconds(expected)), to_text(each));
      } else {
        now.push_back(flow);
        slowest = std::max(slowest, expected);
      }
    }
    if (now.empty()) {
      continue;
    }
    const auto count =
        static_cast<std::uint64_t>(std::clamp(0.25 * each.count() / slowest - 1, k_fewest, k_most));
    for (const std::vector<Flow>& group : writes_at_once(now, bytes, m_steps.member())) {
      write_at_once(group, bytes, count);
    }
  }
}

void PairSteps::write_at_once(const std::vector<Flow>& flows, std::uint64_t bytes,
                              std::uint64_t count) {
  const FlowTask task = write_task(flows, bytes, count, count, m_steps.random()() % 100'000);
  const std::vector<FlowOutcome> outcomes = m_steps.member().run(task);
  for (const Flow& flow : flows) {
    PairWrite& write = m_writes[{flow.from, flow.to}][bytes];
    for (const double seconds :
         write_seconds(outcomes[at(flow.from)].round_trip_s, latency_of(flow))) {
      write.seconds.push_back(seconds);
    }
  }
}

} // namespace reckon
