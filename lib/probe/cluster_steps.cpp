// SPDX-License-Identifier: Apache-2.0
#include "probe/cluster_steps.hpp"

#include "core/error.hpp"
#include "stats/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace reckon {
namespace {

constexpr std::uint64_t k_kib = 1024, k_mib = std::uint64_t{1} << 20U;

std::int64_t ns(double seconds) {
  return static_cast<std::int64_t>(1e9 * seconds);
}

} // namespace

double median_above_zero(std::vector<double> values) {
  std::erase_if(values, [](double v) { return !(v > 0); });
  return median(std::move(values));
}

std::vector<Flow> both_ways(const Pairing& pairs) {
  std::vector<Flow> flows;
  for (const auto& [a, b] : pairs) {
    flows.push_back({a, b});
    flows.push_back({b, a});
  }
  return flows;
}

std::uint64_t part_for(double bytes_per_s) {
  constexpr double k_longest = 0.012, k_usual = 0.002;
  std::uint64_t part = 64 * k_kib;
  while (part > 4 * k_kib && static_cast<double>(part) > bytes_per_s * k_longest) {
    part /= 2;
  }
  while (part < k_mib && static_cast<double>(2 * part) <= bytes_per_s * k_usual) {
    part *= 2;
  }
  return part;
}

ClusterSteps::ClusterSteps(ClusterMember& member, const ClusterProbeOptions& options, int ranks,
                           Seconds budget)
    : m_member(member), m_options(options), m_ranks(ranks), m_budget(budget),
      m_scale(std::clamp(budget / cluster_budget(ranks, measures_pair_writes(options, ranks)), 0.15,
                         20.0)),
      m_random(options.seed) {}

void ClusterSteps::show(const std::string& what) {
  if (m_options.interrupted && m_options.interrupted()) {
    throw ClusterInterrupted();
  }
  if (m_options.progress) {
    m_options.progress(std::clamp(spent() / m_budget, 0.0, 1.0), what,
                       std::max(m_budget - spent(), Seconds(0)));
  }
}

bool ClusterSteps::over() const {
  return spent() > (m_options.budget > Seconds(0) ? m_budget : 1.5 * m_budget);
}

void ClusterSteps::share_out(Seconds to_come) {
  m_scale = std::clamp((m_budget - spent()) / to_come, 0.15, m_scale);
}

void ClusterSteps::use_transport(const std::string& transport) {
  m_transport = transport;
  m_member.use_transport(transport, m_options.seed);
  std::size_t most = 1;
  for (const std::vector<std::string>& ports : m_member.ports()) {
    most = std::max(most, ports.size());
  }
  lanes.resize(most);
  std::iota(lanes.begin(), lanes.end(), 0);
}

FlowTask ClusterSteps::stream_task(std::vector<Flow> flows, std::uint64_t bytes, double warm_up,
                                   double window, int windows) {
  FlowTask task;
  task.flows = std::move(flows);
  task.lanes = lanes;
  std::vector<std::size_t> to(at(m_ranks));
  std::size_t most = 1;
  for (const Flow& flow : task.flows) {
    most = std::max(most, ++to[at(flow.to)]);
  }
  // Two writes of each flow have to fit into what its receiver has.
  const std::uint64_t room = m_member.memory() / (2 * most * task.lanes.size());
  while (bytes > room && bytes > 4 * k_kib) {
    bytes /= 2;
  }
  task.bytes = bytes;
  task.in_flight = k_window;
  task.first = m_random() % 100'000;
  task.warm_up_ns = ns(warm_up);
  task.window_ns = ns(window * m_scale);
  task.windows = windows;
  return task;
}

FlowRates ClusterSteps::stream(const FlowTask& task) {
  FlowRates total;
  return stream(task, total);
}

FlowRates ClusterSteps::stream(const FlowTask& task, FlowRates& total) {
  const std::vector<FlowOutcome> outcomes = m_member.run(task);
  total.clear();
  for (const FlowOutcome& outcome : outcomes) {
    total.push_back(outcome.total);
  }
  std::vector<std::size_t> next(outcomes.size());
  FlowRates rates;
  for (const Flow& flow : task.flows) {
    const auto to = at(flow.to);
    rates.push_back(outcomes[to].rates.at(next[to]++));
  }
  return rates;
}

} // namespace reckon
