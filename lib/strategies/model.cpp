// SPDX-License-Identifier: Apache-2.0
#include "strategies/model.hpp"

#include "core/error.hpp"
#include "core/units.hpp"
#include "documents/ceilings.hpp"
#include "documents/cells.hpp"
#include "network/network.hpp"
#include "stats/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <set>

namespace reckon {
namespace {

constexpr double k_piece = 1 << 20; ///< bytes of the parts that sums are measured with
constexpr double k_infinite = std::numeric_limits<double>::infinity();

/// Where the samples of all these cells lie, as parts of each one's median: that one of them was
/// measured while the machine was slow, and the next while it was fast, is chance.
Rate spread_of(const std::vector<const Cell*>& cells) {
  std::vector<double> parts;
  for (const Cell* const cell : cells) {
    for (const double sample : cell->samples) {
      parts.push_back(sample / cell->p50);
    }
  }
  if (parts.size() < 3) {
    return {1, 1, 1};
  }
  std::ranges::sort(parts);
  return {std::min(1.0, percentile(parts, 0.1)), 1, std::max(1.0, percentile(parts, 0.9))};
}

/// `machines` have no port_bandwidth over `transport`.
[[noreturn]] void fail_without_ports(const Profile& profile, const std::set<std::string>& machines,
                                     const std::string& transport) {
  std::set<std::string> measured;
  bool without_transport = false;
  for (const Cell* cell : profile.select({.test = k_port_bandwidth})) {
    if (cell->key.transport.empty()) {
      without_transport = true;
    } else if (cell->key.transport != transport) {
      measured.insert(cell->key.transport);
    }
  }
  std::string others;
  if (!measured.empty()) {
    others = fmt::format(" (it has it over {})", fmt::join(measured, ", "));
  } else if (without_transport) {
    others = " (its cells say no \"transport\")";
  }
  const char* const remedy =
      profile.endpoint    ? "its links are a torus: plan with --strategy torus --shape LxVxH"
      : without_transport ? "add the transport to the cells, e.g. \"transport\": \"tcp\""
                          : "measure it";
  fail(ErrorKind::input,
       fmt::format("profile '{}' has no port_bandwidth{} for machine{} {}{}; {}, or plan with "
                   "--port-bandwidth{}",
                   profile.name,
                   transport == "unspecified" ? "" : " over transport '" + transport + "'",
                   machines.size() > 1 ? "s" : "", fmt::join(machines, ", "), others, remedy,
                   profile.topology.of_kind(ObjectKind::gpu).empty()
                       ? ""
                       : ", or between its GPUs, without --strategy and --places machine"));
}

/// Earlier versions also measured writes that caches help.
bool is_cold(const Cell& cell) {
  return cell.key.state.empty() || cell.key.state == "cold";
}

/// The transport of the fastest cell of `pattern` that measured cold memory: how much caches help
/// is measured for some transports only. Empty if no such cell names its transport.
std::string fastest_aggregate(const Profile& profile, const CellKey& pattern) {
  std::string fastest;
  double most = 0;
  for (const Cell* cell : profile.select(pattern)) {
    if (is_cold(*cell) && !cell->key.transport.empty() && cell->p50 > most) {
      most = cell->p50;
      fastest = cell->key.transport;
    }
  }
  return fastest;
}

/// fastest_transport() between these ranks; where no port names one, that of their machine's
/// memory, or of the shortest latency. Empty where no cell says one.
std::string transport_between(const Profile& profile, const std::vector<RankModel>& ranks) {
  std::set<PortOwner> owners;
  for (const RankModel& rank : ranks) {
    owners.insert({rank.member, rank.machine});
  }
  std::string fastest = fastest_transport(profile, owners);
  if (fastest.empty()) {
    fastest = fastest_aggregate(profile, {.test = k_fabric_aggregate});
  }
  if (fastest.empty()) { // no rate is known: the latency is of a transport, too
    double least = k_infinite;
    for (const Cell* cell : profile.select({.test = k_fabric_latency})) {
      if (!cell->key.transport.empty() && cell->p50 < least) {
        least = cell->p50;
        fastest = cell->key.transport;
      }
    }
  }
  return fastest;
}

} // namespace

CostModel::CostModel(const Profile& profile, const Roles& roles, std::string transport,
                     const WhatIf& what_if)
    : m_transport(std::move(transport)) {
  // "What if each rank had a machine and a port of its own?"
  place(profile, roles, what_if.worker_port_bytes_per_s || what_if.server_port_bytes_per_s);
  if (m_one_machine) {
    read_shared(profile);
    read_rehearsals(profile);
  } else {
    read_ports(profile, what_if);
  }
  read_sums(profile, k_reduce_sum, m_reduce);
  if (m_reduce.empty()) {
    m_assumed.emplace_back("sums take no time: the profile has no reduce_sum");
  }
  read_sums(profile, k_sum_in_place, m_in_place);
  read_memory(profile);
  read_stores(profile);
  read_steps(profile);
  read_copies(profile);
}

void CostModel::place(const Profile& profile, const Roles& roles, bool own_machines) {
  std::map<std::string, std::uint64_t> used;
  std::size_t next_host = 0;
  std::map<std::string, std::size_t> first_host;
  for (const MachineGroup& m : profile.machines) {
    first_host[m.id] = next_host;
    next_host += m.count;
  }
  for (const RoleGroup& group : roles.groups) {
    const MachineGroup* const machine = group_named(profile, group.machine);
    if (machine == nullptr) {
      fail(ErrorKind::input,
           fmt::format(
               "the job is on machine '{}', which profile '{}' does not have; use the profile "
               "of those machines, or name others with --roles",
               group.machine, profile.name));
    }
    const std::uint64_t left = machine->count - std::min(machine->count, used[group.machine]);
    if (machine->count > 1 && group.count > left && !own_machines) {
      fail(ErrorKind::input,
           fmt::format("profile '{}' has {} machines of group '{}'{}, and {} are to {} on them; "
                       "give --{} {}{}, or raise the group's count",
                       profile.name, machine->count, machine->id,
                       left < machine->count ? fmt::format(", {} of them left", left) : "",
                       counted(group.count, "rank"), group.worker ? "work" : "only sum",
                       group.worker ? "workers" : "servers", left, left > 0 ? " or less" : ""));
    }
    for (std::uint64_t i = 0; i < group.count; ++i) {
      const std::uint64_t number = used[group.machine]++;
      RankModel rank;
      rank.machine = group.machine;
      rank.member = number < machine->members.size() ? machine->members[number] : "";
      rank.number = number;
      rank.rack = machine->rack;
      rank.host = own_machines ? m_ranks.size()
                               : first_host[group.machine] + (machine->count > 1 ? number : 0);
      rank.worker = group.worker;
      rank.server = group.server;
      rank.lanes = group.lanes;
      if (rank.worker) {
        m_workers.push_back(m_ranks.size());
      } else if (rank.server) {
        m_servers.push_back(m_ranks.size());
      }
      m_ranks.push_back(rank);
    }
    m_cores = std::max(m_cores, machine->cores);
  }
  std::set<std::size_t> hosts;
  std::map<std::string, std::size_t> number_of;
  for (const RankModel& r : m_ranks) {
    hosts.insert(r.host);
    const auto [at, added] = number_of.emplace(r.rack, m_racks.size());
    if (added) {
      m_racks.push_back(r.rack);
    }
    m_rack_of.push_back(at->second);
  }
  m_one_machine = hosts.size() == 1 && m_ranks.size() > 1;
  if (!m_one_machine && hosts.size() != m_ranks.size()) {
    fail(ErrorKind::input, "the roles put several ranks on one machine and others elsewhere; use "
                           "one rank a machine, or "
                           "all ranks on one machine");
  }
}

void CostModel::set_lanes(int lanes) {
  for (RankModel& r : m_ranks) {
    r.lanes = lanes;
  }
}

int CostModel::lanes_over_ports(int lanes) const {
  return (lanes + m_ports - 1) / m_ports * m_ports;
}

void CostModel::read_shared(const Profile& profile) {
  const std::string& machine = m_ranks.front().machine;
  CellKey pattern{.test = k_fabric_aggregate, .from = machine, .direction = "two_way"};
  if (m_transport.empty()) {
    m_transport = fastest_aggregate(profile, pattern);
  }
  pattern.transport = m_transport;
  std::vector<const Cell*> cells = profile.select(pattern);
  std::erase_if(cells, [](const Cell* cell) { return !is_cold(*cell); });
  const Rate spread = spread_of(cells);
  for (const Cell* const cell : cells) {
    RateLaw& law = cell->key.threads == 1 ? m_one_processor : m_shared;
    law.add(2.0 * cell->key.pairs, 2, static_cast<double>(cell->key.bytes),
            scaled(spread, cell->p50));
  }
  if (m_shared.empty()) {
    fail(
        ErrorKind::input,
        fmt::format(
            "{} ranks would be processes of machine '{}', and profile '{}' has no fabric_aggregate "
            "measurement between such{}; run `reckon probe` on it, or give --port-bandwidth to "
            "plan "
            "for machines with ports{}",
            m_ranks.size(), machine, profile.name,
            m_transport.empty() ? "" : " over transport '" + m_transport + "'",
            profile.topology.ids_in(machine, ObjectKind::gpu).size() < 2
                ? ""
                : ", or --places gpu for sums between its GPUs"));
  }
  read_write_curve(profile);
  read_latency(profile);
  m_sources.push_back(fmt::format("fabric_aggregate over {}: {} cells, {} of them noisy",
                                  m_transport, cells.size(),
                                  std::ranges::count(cells, CellStatus::noisy, &Cell::status)));
}

void CostModel::read_rehearsals(const Profile& profile) {
  const std::vector<const Cell*> cells = profile.select(
      {.test = k_rehearsal, .from = m_ranks.front().machine, .transport = m_transport});
  const Rate spread = spread_of(cells);
  for (const Cell* const cell : cells) {
    const CellKey& key = cell->key;
    if (key.sources > 1 && key.sources <= key.threads && key.bytes > 0) {
      m_rehearsed.push_back(
          {key.operation, key.state == "in_place", static_cast<double>(key.threads),
           static_cast<double>(key.sources), static_cast<double>(key.bytes),
           static_cast<double>(rehearsed_gradient_bytes(key)), scaled(spread, cell->p50)});
    }
  }
  if (!cells.empty()) {
    m_sources.push_back(
        fmt::format("rehearsal over {}: {}", m_transport, counted(cells.size(), "plan")));
  }
}

void CostModel::read_ports(const Profile& profile, const WhatIf& what_if) {
  if (m_transport.empty()) {
    m_transport = transport_between(profile, m_ranks);
  }
  if (m_transport.empty()) {
    m_transport = "unspecified"; // `run` must be told with --transport
  }
  std::set<std::string> missing;
  std::map<std::string, Rate> published; // by machine or member: ranks of a group have the same
  const auto port_of = [&, index = CellIndex(profile)](const std::string& id) {
    const auto [at, added] = published.emplace(id, Rate{});
    if (added && !id.empty()) {
      for (const Cell* cell :
           index.select({.test = k_port_bandwidth, .from = id, .transport = m_transport})) {
        at->second = cell->p50 > at->second.mid ? measured_rate(*cell) : at->second;
      }
    }
    return at->second;
  };
  for (RankModel& rank : m_ranks) {
    const std::optional<double>& forced = rank.worker || !what_if.server_port_bytes_per_s
                                              ? what_if.worker_port_bytes_per_s
                                              : what_if.server_port_bytes_per_s;
    if (forced) {
      rank.port_bytes_per_s = *forced;
      continue;
    }
    // What is its own, before the group's.
    Rate port = port_of(rank.member);
    if (port.mid == 0) {
      port = port_of(rank.machine);
    }
    rank.port_bytes_per_s = port.mid;
    if (port.mid > 0) {
      rank.port_share = scaled(port, 1 / port.mid);
    } else if (m_ranks.size() > 1) {
      missing.insert(rank.machine);
    }
  }
  if (!missing.empty()) {
    fail_without_ports(profile, missing, m_transport);
  }
  for (const Cell* cell : profile.select({.test = k_uplink})) {
    if (cell->p50 > 0 && is_over(*cell, m_transport)) {
      m_uplinks[cell->key.from] = measured_rate(*cell);
    }
  }
  if (!m_uplinks.empty()) {
    m_sources.push_back(fmt::format("uplink_bandwidth: {} racks", m_uplinks.size()));
  }
  if (!what_if.worker_port_bytes_per_s) {
    read_single_ports(profile);
  }
  if (!what_if.worker_port_bytes_per_s && !what_if.server_port_bytes_per_s) {
    read_write_curve(profile);
  }
  read_latency(profile);
}

void CostModel::read_write_curve(const Profile& profile) {
  std::map<double, CurvePoint> points;
  for (const Cell* cell : profile.select(
           {.test = k_fabric_write, .from = m_ranks.front().machine, .transport = m_transport})) {
    if (cell->unit == "seconds" && cell->key.bytes > 0 && cell->key.direction != "one_way") {
      const double b = static_cast<double>(cell->key.bytes);
      points[b] = {b, cell->p50};
    }
  }
  if (points.size() > 1) {
    std::vector<CurvePoint> list;
    for (const auto& [bytes, point] : points) {
      list.push_back(point);
    }
    m_write_curve.emplace(std::move(list), Curve::Shape::non_decreasing);
    m_sources.push_back(fmt::format("fabric_write over {}: {} sizes", m_transport, points.size()));
  }
}

void CostModel::read_latency(const Profile& profile) {
  std::set<std::string> names; // that cells of pairs have
  for (const RankModel& rank : m_ranks) {
    names.insert(rank.member.empty() ? rank.machine : rank.member);
  }
  std::vector<double> ways;
  for (const Cell* cell : profile.select({.test = k_pair_latency, .transport = m_transport})) {
    if (names.contains(cell->key.from) && names.contains(cell->key.to)) {
      ways.push_back(cell->p50);
    }
  }
  if (ways.empty()) {
    std::map<std::string, double> of_group;
    for (const Cell* cell : profile.select({.test = k_fabric_latency, .transport = m_transport})) {
      of_group[cell->key.from] = cell->p50;
    }
    for (const RankModel& rank : m_ranks) {
      if (const auto known = of_group.find(rank.machine); known != of_group.end()) {
        ways.push_back(known->second);
      }
    }
  }
  if (ways.empty()) {
    return;
  }
  m_latency_s = *std::ranges::max_element(ways);
  m_mean_latency_s =
      std::accumulate(ways.begin(), ways.end(), 0.0) / static_cast<double>(ways.size());
}

void CostModel::read_single_ports(const Profile& profile) {
  struct Ports {
    std::vector<std::pair<std::string, double>> alone; ///< id and rate
    double bytes_per_s = 0;                            ///< each alone, added
  };
  std::map<std::string, Ports> of_machine;
  for (const Cell& cell : profile.cells) { // those without a value count too
    if (cell.key.test != k_single_port || cell.key.transport != m_transport) {
      continue;
    }
    Ports& ports = of_machine[cell.key.from.substr(0, cell.key.from.find('/'))];
    ports.alone.emplace_back(cell.key.from, cell.p50);
    ports.bytes_per_s += cell.p50;
  }
  for (auto& [machine, ports] : of_machine) {
    std::sort(ports.alone.begin(), ports.alone.end(), [](const auto& a, const auto& b) {
      return std::pair(a.first.size(), std::string_view(a.first)) <
             std::pair(b.first.size(), std::string_view(b.first));
    }); // port2 before port10, as lanes have them
  }
  for (RankModel& rank : m_ranks) {
    const auto found = of_machine.find(rank.machine);
    if (found == of_machine.end() || found->second.alone.size() < 2) {
      continue;
    }
    for (const auto& [id, bytes_per_s] : found->second.alone) {
      rank.ports.push_back(id);
      rank.single_port_bytes_per_s.push_back(bytes_per_s);
    }
    m_ports = common_lanes(m_ports, static_cast<int>(rank.ports.size()));
    for (const Cell* cell : profile.select(
             {.test = k_port_bandwidth, .from = rank.machine, .transport = m_transport})) {
      constexpr double k_near = 0.9;
      if (cell->ceiling && cell->ceiling->name == k_peers_ceiling &&
          cell->p50 >= k_near * cell->ceiling->value) {
        rank.port_bytes_per_s = std::max(rank.port_bytes_per_s, found->second.bytes_per_s);
      }
    }
  }
}

void CostModel::read_sums(const Profile& profile, const char* test, Sums& sums) {
  std::vector<const Cell*> cells = profile.select({.test = test, .from = m_ranks.front().machine});
  if (cells.empty()) { // probe names the NUMA node that the threads run on
    cells = profile.select({.test = test});
  }
  const Rate spread = spread_of(cells);
  for (const Cell* const cell : cells) {
    if (const auto dtype = dtype_named(cell->key.dtype)) {
      sums[*dtype].add(std::max(1, cell->key.threads), std::max(2, cell->key.sources),
                       std::max(1.0, static_cast<double>(cell->key.bytes)),
                       scaled(spread, cell->p50));
    }
  }
  if (!cells.empty()) {
    m_sources.push_back(fmt::format("{}: {}", test, counted(cells.size(), "cell")));
  }
}

void CostModel::read_memory(const Profile& profile) {
  for (const char* const test : {k_stream_copy, k_stream_add, k_sum_in_place}) {
    for (const Cell* const cell : profile.select({.test = test})) {
      if (const double rate = measured_rate(*cell).hi; rate > m_best_memory) {
        m_best_memory = rate;
        m_best_memory_test = test;
      }
    }
  }
  for (const Cell* const cell : profile.select({.test = k_host_memcpy, .state = "warm"})) {
    const double seconds = cell->min > 0 ? cell->min : cell->p50;
    if (const auto bytes = static_cast<double>(cell->key.bytes); seconds > 0 && bytes > 0) {
      double& rate = m_cached[bytes]; // one core's; a byte is read and written
      rate = std::max(rate, 2 * static_cast<double>(m_cores) * bytes / seconds);
    }
  }
  int last_level = 0;
  for (const TopologyObject* const cache : profile.topology.of_kind(ObjectKind::cache)) {
    const int level = cache->cache_level.value_or(0);
    const auto bytes = static_cast<double>(cache->bytes.value_or(0));
    m_cache_bytes = level > last_level ? bytes : m_cache_bytes + (level == last_level ? bytes : 0);
    last_level = std::max(last_level, level);
  }
}

CostModel::BestRate CostModel::best_memory_rate(double bytes) const {
  // Spread evenly, which is best, each core has so much; a copy of half of that has as much in its
  // caches, and more is no faster. Between two sizes that were measured the shorter is the bound.
  const double half = bytes / static_cast<double>(m_cores) / 2;
  auto from = m_cached.upper_bound(half);
  from = from == m_cached.begin() ? from : std::prev(from);
  double cached = 0;
  for (; from != m_cached.end(); ++from) {
    cached = std::max(cached, from->second);
  }
  if (bytes <= m_cache_bytes && cached > m_best_memory) {
    return {cached, "caches", k_host_memcpy};
  }
  return m_best_memory > 0 ? BestRate{m_best_memory, "memory", m_best_memory_test}
                           : BestRate{2 * best_shared_rate(), "memory", k_fabric_aggregate};
}

const RateLaw* CostModel::law_of(const Sums& sums, DType dtype) {
  const auto found = sums.find(dtype);
  return sums.empty() ? nullptr : &(found == sums.end() ? *sums.begin() : *found).second;
}

std::optional<Rate> CostModel::in_place_rate(DType dtype, int threads, std::size_t operands) const {
  const RateLaw* const law = law_of(m_in_place, dtype);
  return law == nullptr ? std::nullopt
                        : std::optional(law->at(threads, static_cast<double>(operands), k_piece));
}

void CostModel::read_stores(const Profile& profile) {
  for (const Cell* cell : profile.select({.test = k_sum_and_send})) {
    const CellKey& key = cell->key;
    const auto stores = stores_named(key.operation);
    if (!stores || key.sources < 2 || key.bytes == 0) {
      continue;
    }
    (*stores == Stores::cached ? m_cached_stores : m_streaming_stores)
        .add(std::max(1, key.threads), key.sources, static_cast<double>(key.bytes),
             {cell->p50, cell->p50, cell->p50});
  }
}

StoresChoice CostModel::stores_of(const RankModel& rank, std::size_t sources,
                                  double part_bytes) const {
  StoresChoice choice;
  if (rank.worker || m_cached_stores.empty() || m_streaming_stores.empty()) {
    return choice;
  }
  const auto rate = [&](const RateLaw& law) {
    return law.at(rank.lanes, static_cast<double>(sources), part_bytes).mid;
  };
  choice.streaming = rate(m_streaming_stores) / rate(m_cached_stores);
  constexpr double k_clear_gain = 1.05; // less comes and goes with what else a machine does
  if (*choice.streaming >= k_clear_gain) {
    choice.stores = Stores::streaming;
    choice.gain = *choice.streaming;
  }
  return choice;
}

Rate CostModel::sum_rate(const RankModel& rank, DType dtype, std::size_t sources,
                         double part_bytes) const {
  return scaled(reduce_rate(dtype, rank.lanes, sources, part_bytes),
                stores_of(rank, sources, part_bytes).gain);
}

void CostModel::read_steps(const Profile& profile) {
  for (const Cell* cell : profile.select({.test = k_optimizer_step})) {
    if (const auto optimizer = optimizer_named(cell->key.operation)) {
      const Rate rate = measured_rate(*cell);
      m_steps[{*optimizer, cell->key.from}].add(std::max(1, cell->key.threads), 1, 1, rate);
    }
  }
}

Rate CostModel::step_rate(const std::string& machine, Optimizer optimizer, int threads) const {
  auto found = m_steps.find({optimizer, machine}); // its own figures before any other's
  if (found == m_steps.end()) {
    found = m_steps.lower_bound({optimizer, ""});
  }
  return found == m_steps.end() || found->first.first != optimizer
             ? Rate{k_infinite, k_infinite, k_infinite}
             : scaled(found->second.at(threads, 1, 1), 1.0 / threads);
}

void CostModel::read_copies(const Profile& profile) {
  for (const Cell* cell : profile.select({.test = k_host_memcpy, .state = "cold"})) {
    if (cell->key.bytes > 0 && cell->p50 > 0) {
      const double bytes = static_cast<double>(cell->key.bytes), rate = bytes / cell->p50;
      m_copies.add(1, 1, bytes, {rate, rate, rate});
    }
  }
  for (const Cell* cell : profile.select({.test = k_stream_copy})) {
    const double rate = cell->p50 / 2; // a byte is read and written
    m_streams.add(std::max(1, cell->key.threads), 2, 1, {rate, rate, rate});
  }
}

std::optional<double> CostModel::copy_rate(double bytes, int threads) const {
  std::optional<double> rate;
  if (!m_copies.empty()) {
    rate = threads * m_copies.at(1, 1, bytes).mid;
  }
  if (!m_streams.empty()) { // the memory is what all threads share
    const double memory = m_streams.at(threads, 2, 1).mid;
    rate = rate ? std::min(*rate, memory) : memory;
  }
  return rate;
}

Rate CostModel::shared_rate(double talkers, double part_bytes) const {
  return scaled(m_shared.at(talkers, 2, part_bytes), shorter_parts(m_shared, part_bytes));
}

double CostModel::shorter_parts(const RateLaw& law, double part_bytes) const {
  const double shortest = law.shortest();
  return part_bytes >= shortest ? 1
         : m_write_curve        ? m_write_curve->bandwidth_at(part_bytes).as_bytes_per_s() /
                               m_write_curve->bandwidth_at(shortest).as_bytes_per_s()
                         : part_bytes / shortest; // each as long as the shortest one measured
}

std::optional<Rate> CostModel::one_processor_rate(double part_bytes) const {
  return m_one_processor.empty()
             ? std::nullopt
             : std::optional(scaled(m_one_processor.at(2, 2, part_bytes),
                                    shorter_parts(m_one_processor, part_bytes)));
}

double CostModel::best_shared_rate() const {
  return m_shared.best();
}

double CostModel::port_efficiency(double part_bytes) const {
  if (!m_write_curve) {
    return 1;
  }
  // No write goes faster than the port: of few long ones the rate is uncertain by several percent,
  // and if the best of them were what all others are held against, short ones would seem slow.
  const double longest =
      m_write_curve->bandwidth_at(m_write_curve->points().back().bytes).as_bytes_per_s();
  const double best =
      std::min(m_ranks.front().port_bytes_per_s,
               std::max(m_write_curve->marginal_bandwidth().as_bytes_per_s(), longest));
  return std::min(1.0, m_write_curve->bandwidth_at(part_bytes).as_bytes_per_s() / best);
}

Rate CostModel::reduce_rate(DType dtype, int threads, std::size_t sources,
                            double part_bytes) const {
  const RateLaw* const law = law_of(m_reduce, dtype);
  return law == nullptr
             ? Rate{k_infinite, k_infinite, k_infinite}
             : scaled(law->at(threads, static_cast<double>(sources), part_bytes), 1.0 / threads);
}

double CostModel::uplink_bytes_per_s(const std::string& rack) const {
  const auto at = m_uplinks.find(rack);
  return at == m_uplinks.end() ? k_infinite : at->second.mid;
}

Rate CostModel::uplink_share(const std::string& rack) const {
  const auto at = m_uplinks.find(rack);
  return at == m_uplinks.end() ? Rate{1, 1, 1} : scaled(at->second, 1 / at->second.mid);
}

Star CostModel::star(double model_bytes) const {
  Star star;
  star.model_bytes = model_bytes;
  for (const std::size_t r : m_workers) {
    star.worker_bytes_per_s.push_back(m_ranks[r].port());
  }
  for (const std::size_t r : m_servers) {
    star.server_bytes_per_s.push_back(m_ranks[r].port());
  }
  return star;
}

} // namespace reckon
