// SPDX-License-Identifier: Apache-2.0
#include "probe/rails.hpp"

#include "core/error.hpp"
#include "core/name_ranges.hpp"
#include "core/split.hpp"
#include "documents/cells.hpp"
#include "probe/cluster_merge.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <string>
#include <utility>

namespace reckon {
namespace {

// Beside the windows, ranks tell each other what to do and check what they received.
constexpr double k_rail_warm_up = 0.08, k_rail_window = 0.06, k_between_steps = 0.06;
constexpr int k_rail_windows = 3;

std::vector<std::string> without(const std::vector<std::string>& ports,
                                 const std::vector<std::string>& others) {
  std::vector<std::string> rest;
  std::ranges::copy_if(ports, std::back_inserter(rest), [&](const std::string& port) {
    return std::ranges::find(others, port) == others.end();
  });
  return rest;
}

} // namespace

std::vector<std::string> rails_of(const Topology& topology, std::vector<std::string> ports) {
  std::map<std::string, std::string> addresses; // of those that the tree knows
  for (const TopologyObject* nic : topology.of_kind(ObjectKind::nic)) {
    for (const std::string& name : split(nic->name, " ")) { // "eth0 mlx5_0"
      if (std::ranges::find(ports, name) != ports.end()) {
        addresses.emplace(name, nic->pci_address);
      }
    }
  }
  if (!addresses.empty()) {
    std::erase_if(ports, [&](const std::string& port) { return !addresses.contains(port); });
  }
  std::ranges::sort(ports, [&](const std::string& a, const std::string& b) {
    const std::string& x = addresses[a];
    const std::string& y = addresses[b];
    return x != y ? x < y : natural_less(a, b);
  });
  return ports;
}

Rails common_rails(const std::vector<std::vector<std::string>>& of_machines,
                   const std::vector<std::string>& machines) {
  std::vector<std::string> anywhere, lacking;
  for (std::size_t m = 0; m < machines.size(); ++m) {
    const std::set<std::string> names(of_machines[m].begin(), of_machines[m].end());
    if (names.size() < of_machines[m].size()) {
      fail(ErrorKind::usage,
           fmt::format("probe --rails: RECKON_FABRIC_ADDRESS of {} names one port "
                       "twice: {}",
                       machines[m], fmt::join(of_machines[m], ", ")));
    }
  }
  for (const std::vector<std::string>& ports : of_machines) {
    std::ranges::move(without(ports, anywhere), std::back_inserter(anywhere));
  }
  Rails rails{.ports = of_machines, .left_out = {}};
  for (std::size_t m = 0; m < machines.size(); ++m) {
    const std::vector<std::string> lacks = without(anywhere, of_machines[m]);
    std::ranges::copy(lacks, std::back_inserter(lacking));
    if (!lacks.empty()) {
      rails.left_out.push_back(
          fmt::format("{} has no {} with a carrier", machines[m], fmt::join(lacks, ", ")));
    }
  }
  const bool as_many = std::ranges::all_of(
      of_machines, [&](const auto& ports) { return ports.size() == of_machines.front().size(); });
  if (as_many && without(anywhere, lacking).empty()) {
    rails.left_out.clear(); // each machine has names of its own
  } else {
    for (std::vector<std::string>& ports : rails.ports) {
      ports = without(ports, lacking);
    }
  }
  if (rails.ports.front().size() < 2) {
    fail(ErrorKind::unavailable,
         fmt::format("probe --rails: the machines have {} in common{}{}; leave --rails away, or "
                     "name at least two of each machine in RECKON_FABRIC_ADDRESS",
                     rails.ports.front().empty()
                         ? "no network port"
                         : "only the network port " + rails.ports.front().front(),
                     rails.left_out.empty() ? "" : ": ", first_names(rails.left_out)));
  }
  return rails;
}

std::vector<RailStep> rail_steps(int machines, int rails) {
  std::vector<RailStep> steps;
  std::vector<int> all(at(rails));
  std::iota(all.begin(), all.end(), 0);
  for (const Pairing& pairs : round_robin(machines)) {
    for (const int rail : all) {
      steps.push_back({pairs, {rail}});
    }
    steps.push_back({pairs, all});
  }
  return steps;
}

Seconds rails_time(int machines, int rails) {
  constexpr Seconds k_step(k_rail_warm_up + k_rail_windows * k_rail_window + k_between_steps);
  return rails == 0 ? Seconds(0) : static_cast<double>(rail_steps(machines, rails).size()) * k_step;
}

void RailSteps::measure(std::uint64_t bytes) {
  struct Restore { // what others say of writes in flight depends on their lanes
    std::vector<int>& lanes;
    std::vector<int> before;
    ~Restore() { lanes = std::move(before); }
  };
  const Restore restore{m_steps.lanes, m_steps.lanes};
  m_steps.use_transport(m_steps.transport(), true);
  m_ports = m_steps.member().ports();
  m_bytes = bytes;
  const auto rails = static_cast<int>(m_ports.front().size());
  m_samples.resize(at(rails) + 1);
  for (const RailStep& step : rail_steps(m_steps.ranks(), rails)) {
    const bool alone = step.rails.size() == 1;
    m_steps.show(alone ? fmt::format("rail {} of {}", step.rails.front() + 1, rails)
                       : fmt::format("{} rails at once", rails));
    if (m_steps.over()) {
      return; // the cells of these pairs say so
    }
    m_steps.lanes = step.rails;
    const FlowTask task = m_steps.stream_task(both_ways(step.pairs), bytes, k_rail_warm_up,
                                              k_rail_window, k_rail_windows);
    m_in_flight[alone ? 0 : 1] = static_cast<int>(task.in_flight);
    const FlowRates rates = m_steps.stream(task);
    PairSamples& samples = alone ? m_samples[at(step.rails.front())] : m_samples.back();
    for (std::size_t f = 0; f < rates.size(); ++f) {
      samples[{task.flows[f].from, task.flows[f].to}] = rates[f];
    }
  }
}

std::vector<Cell> RailSteps::cells(const std::vector<std::string>& ids,
                                   const std::string& why_not) const {
  std::vector<Cell> cells;
  for (std::size_t rail = 0; rail < m_samples.size(); ++rail) {
    const bool alone = rail + 1 < m_samples.size();
    for (int a = 0; a < m_steps.ranks(); ++a) {
      for (int b = 0; b < m_steps.ranks(); ++b) {
        if (a == b) {
          continue;
        }
        const auto end = [&](int machine) {
          return ids[at(machine)] + (alone ? "/" + m_ports[at(machine)][rail] : "");
        };
        const auto samples = m_samples[rail].find({a, b});
        cells.push_back(cell_of(
            {.test = k_rail_bandwidth,
             .from = end(a),
             .to = end(b),
             .bytes = m_bytes,
             .in_flight = m_in_flight[alone ? 0 : 1],
             .transport = m_steps.transport(),
             .direction = k_two_way,
             .operation = alone ? fmt::format("rail{}", rail) : k_rails_at_once},
            samples == m_samples[rail].end() ? std::vector<double>() : samples->second, why_not));
      }
    }
  }
  return cells;
}

} // namespace reckon
