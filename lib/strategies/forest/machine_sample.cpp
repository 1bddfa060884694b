// SPDX-License-Identifier: Apache-2.0
#include "strategies/forest/machine_sample.hpp"

#include "strategies/plan_network.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace reckon {
namespace {

constexpr double k_long = 1U << 20U; // bytes

std::vector<PlanRank> sampled(const std::vector<PlanRank>& ranks, const MachinesShape& shape) {
  std::vector<std::size_t> machines{0, 1}, servers;
  if (shape.machines > 2) {
    machines.push_back(shape.machines - 1);
  }
  if (shape.servers > 0) {
    servers.push_back(0);
  }
  if (shape.servers > 1) {
    servers.push_back(shape.servers - 1);
  }
  std::vector<PlanRank> out;
  for (const std::size_t machine : machines) {
    for (std::size_t place = 0; place < shape.width; ++place) {
      out.push_back(ranks[machine * shape.width + place]);
    }
  }
  for (const std::size_t server : servers) {
    out.push_back(ranks[shape.machines * shape.width + server]);
  }
  return out;
}

} // namespace

MachinesShape shape_of(const std::vector<PlanRank>& ranks) {
  MachinesShape shape;
  for (const PlanRank& rank : ranks) {
    const bool first = rank.machine == ranks.front().machine &&
                       rank.machine_number == ranks.front().machine_number;
    shape.width += rank.worker && first ? 1 : 0;
    shape.machines += rank.worker ? 1 : 0;
    shape.servers += rank.worker ? 0 : 1;
  }
  shape.machines /= std::max<std::size_t>(1, shape.width);
  return shape;
}

MachineSample::MachineSample(const Profile& profile, const std::vector<PlanRank>& ranks,
                             const std::string& transport, bool gpu_direct)
    : m_shape(shape_of(ranks)), m_ranks(sampled(ranks, m_shape)),
      m_ways(profile, places_of(m_ranks, profile, transport, gpu_direct)),
      m_between(m_ways.between(k_long)), m_cost(m_ways.op_cost(k_long)) {
  m_first_server = static_cast<std::size_t>(std::ranges::count_if(m_ranks, &PlanRank::worker));
}

std::string MachineSample::why_not_equal() const {
  const Places& places = *m_ways.places();
  std::string problem;
  const auto check = [&](std::size_t from, std::size_t to, std::size_t like_from,
                         std::size_t like_to) {
    if (!places.network->ways[places.of_rank[from]][places.of_rank[to]]) {
      problem = fmt::format("no way leads from {} to {}", m_ranks[from].place_name(),
                            m_ranks[to].place_name());
      return;
    }
    constexpr double k_same = 1e-6;
    const double seconds = write_s(from, to, k_long), like = write_s(like_from, like_to, k_long);
    if (std::abs(seconds - like) > k_same * like) {
      problem = fmt::format("a write from {} to {} does not take as long as one from {} to {}",
                            m_ranks[from].place_name(), m_ranks[to].place_name(),
                            m_ranks[like_from].place_name(), m_ranks[like_to].place_name());
    }
  };
  for (std::size_t place = 0; place < m_shape.width; ++place) {
    for (std::size_t other = 0; other < m_shape.width; ++other) {
      if (other != place) {
        check(worker(0, other), worker(0, place), worker(1, other), worker(1, place));
      }
    }
    const std::size_t first = worker(0, place);
    for (std::size_t to = worker(1, place); to < m_first_server; to += m_shape.width) {
      check(first, to, first, worker(1, place));
      check(to, first, worker(1, place), first);
    }
    for (std::size_t server = m_first_server; server < m_ranks.size(); ++server) {
      check(first, server, worker(1, place), m_first_server);
      check(server, first, m_first_server, worker(1, place));
    }
  }
  std::vector<double> bytes = no_bytes();
  for (std::size_t place = 0; problem.empty() && place < m_shape.width; ++place) {
    carry_between(bytes, place, 1, 1);
  }
  if (problem.empty() && busy_s(bytes) <= 0) {
    problem = "no rate is known of what lies between the machines";
  }
  if (std::vector<double> at_server = no_bytes(); problem.empty() && m_shape.servers > 0) {
    carry_at_server(at_server, 0, 1, 1);
    if (busy_s(at_server) <= 0) {
      problem = "no rate is known of the ports of machines that only serve";
    }
  }
  return problem;
}

std::vector<MachineSample::MachineTrees> MachineSample::machine_trees() const {
  std::vector<std::vector<std::size_t>> groups; // of workers below one switch
  for (const std::vector<std::size_t>& group : m_ways.places()->network->groups) {
    std::vector<std::size_t> here;
    for (const std::size_t of : group) {
      const auto at = std::ranges::find(m_ways.places()->of_rank, of);
      const auto rank = static_cast<std::size_t>(at - m_ways.places()->of_rank.begin());
      if (rank < m_shape.width) {
        here.push_back(rank);
      }
    }
    if (!here.empty()) {
      groups.push_back(std::move(here));
    }
  }
  MachineTrees stars;
  for (std::size_t head = 0; head < m_shape.width; ++head) {
    stars.emplace_back(m_shape.width, head);
  }
  std::vector<MachineTrees> out{stars};
  if (groups.size() < 2 || groups.size() == m_shape.width) {
    return out;
  }
  MachineTrees& by_switches = out.emplace_back(std::move(stars));
  for (std::size_t head = 0; head < m_shape.width; ++head) {
    const auto holds = [&](const auto& group) { return std::ranges::count(group, head) > 0; };
    const auto& home = *std::ranges::find_if(groups, holds);
    const auto place = static_cast<std::size_t>(std::ranges::find(home, head) - home.begin());
    for (const auto& group : groups) {
      const std::size_t own = holds(group) ? head : group[place % group.size()];
      for (const std::size_t worker : group) {
        by_switches[head][worker] = worker == own ? head : own;
      }
    }
  }
  return out;
}

/// Adds what a way carries to its stations; with `also`, to those that this one passes, too.
void MachineSample::carry(std::vector<double>& bytes, std::size_t from, std::size_t to,
                          double count, const std::vector<std::uint32_t>* also) const {
  for (const std::uint32_t station : m_between.network.paths[from][to]) {
    if (also == nullptr || std::ranges::find(*also, station) != also->end()) {
      bytes[station] += count;
    }
  }
}

void MachineSample::carry_between(std::vector<double>& bytes, std::size_t place, double sent,
                                  double received) const {
  carry(bytes, worker(0, place), worker(1, place), sent);
  carry(bytes, worker(1, place), worker(0, place), received);
}

/// What ways from two machines have in common is the server's own.
void MachineSample::carry_at_server(std::vector<double>& bytes, std::size_t place, double sent,
                                    double received) const {
  const auto& paths = m_between.network.paths;
  const std::size_t server = m_first_server;
  carry(bytes, worker(0, place), server, received, &paths[worker(1, place)][server]);
  carry(bytes, server, worker(0, place), sent, &paths[server][worker(1, place)]);
}

std::size_t MachineSample::busiest(const std::vector<double>& bytes) const {
  std::vector<double> seconds;
  for (std::size_t s = 0; s < bytes.size(); ++s) {
    seconds.push_back(bytes[s] / m_between.network.rate_of(s));
  }
  return static_cast<std::size_t>(std::ranges::max_element(seconds) - seconds.begin());
}

double MachineSample::busy_s(const std::vector<double>& bytes) const {
  const std::size_t station = busiest(bytes);
  return bytes[station] / m_between.network.rate_of(station);
}

double bytes_of_way(const Plan& plan, std::size_t way) {
  double bytes = 0;
  for (std::size_t p = 0; p < plan.parts.size(); ++p) {
    bytes += plan.parts.tree[p] == way ? static_cast<double>(plan.parts.bytes[p]) : 0;
  }
  return bytes;
}

std::vector<double> MachineSample::stations(const Plan& plan,
                                            const std::vector<Load>& loads) const {
  std::vector<double> inside = no_bytes(), out;
  for (std::size_t way = 0; way < m_shape.width; ++way) {
    const double whole = bytes_of_way(plan, way);
    const std::vector<std::uint64_t>& above = plan.machine_trees[way];
    for (std::size_t place = 0; place < m_shape.width; ++place) {
      if (above[place] != place) {
        carry(inside, worker(0, place), worker(0, above[place]), whole);
        carry(inside, worker(0, above[place]), worker(0, place), whole);
        add_uses(inside, m_between.add[worker(0, above[place])], whole);
      }
    }
  }
  for (std::size_t unit = 0; unit < m_shape.machines + m_shape.servers; ++unit) {
    const bool works = unit < m_shape.machines;
    std::vector<double> bytes = works ? inside : no_bytes();
    for (std::size_t head = 0; head < m_shape.width; ++head) {
      const Load& load = loads[head];
      if (works) {
        carry_between(bytes, head, load.egress_bytes[unit], load.ingress_bytes[unit]);
      } else {
        carry_at_server(bytes, head, load.egress_bytes[unit], load.ingress_bytes[unit]);
      }
      add_uses(bytes, m_between.add[works ? worker(0, head) : m_first_server],
               load.summed_bytes[unit]);
    }
    if (out.empty() || busy_s(bytes) > busy_s(out)) {
      out = std::move(bytes);
    }
  }
  return out;
}

/// Up and down between a rank and its children, beside its own gradient if it has one.
double MachineSample::level_s(const Plan& plan, std::size_t from, std::size_t to,
                              std::size_t children) const {
  if (children == 0) {
    return 0;
  }
  double seconds = 0;
  for (const auto& [a, b] : {std::pair(from, to), std::pair(to, from)}) {
    const double latency = m_between.network.latency_of(a, b);
    seconds += latency + static_cast<double>(children) *
                             (write_s(a, b, static_cast<double>(plan.part_bytes)) - latency);
  }
  const std::size_t sources = children + (m_ranks[to].worker ? 1 : 0);
  Op op{.dtype = plan.runs.front().dtype, .bytes = plan.part_bytes};
  op.kind = OpKind::reduce;
  op.source_count = static_cast<decltype(op.source_count)>(sources);
  return seconds + (sources < 2 ? 0 : m_cost(to, op));
}

/// From the last worker below one of the first machine up to it, and back.
double MachineSample::inside_s(const Plan& plan, std::size_t place) const {
  const std::vector<std::uint64_t>& above = plan.machine_trees.front();
  double longest = 0;
  std::size_t children = 0, child = place;
  for (std::size_t i = 0; i < m_shape.width; ++i) {
    if (i != place && above[i] == place) {
      longest = std::max(longest, inside_s(plan, i));
      ++children;
      child = i;
    }
  }
  return longest + level_s(plan, worker(0, child), worker(0, place), children);
}

double MachineSample::life_s(const Plan& plan) const {
  const std::size_t n = m_shape.machines, groups = plan.groups, head = worker(0, 0);
  const auto heads_s = [&](std::size_t children) {
    return level_s(plan, worker(1, 0), head, children);
  };
  double between =
      groups == 0 ? heads_s(n - 1) : heads_s((n + groups - 1) / groups - 1) + heads_s(groups - 1);
  const auto serves = [&](std::size_t root) { return root >= n * m_shape.width; };
  if (std::ranges::any_of(plan.parts.server, serves)) {
    between = std::max(between, level_s(plan, head, m_first_server, n));
  }
  return inside_s(plan, 0) + between;
}

} // namespace reckon
