// SPDX-License-Identifier: Apache-2.0
#include "probe/cluster.hpp"

#include "core/clock.hpp"
#include "core/error.hpp"
#include "documents/cells.hpp"
#include "documents/contradictions.hpp"
#include "probe/cluster_member.hpp"
#include "probe/cluster_merge.hpp"
#include "probe/cluster_steps.hpp"
#include "probe/cluster_warnings.hpp"
#include "probe/description.hpp"
#include "probe/racks.hpp"
#include "probe/rails.hpp"
#include "probe/rounds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

namespace reckon {
namespace {

constexpr int k_star = 4; ///< machines that test each other's ports

/// What a rank sends, in each window.
std::vector<double> sent_by(int rank, const FlowTask& task, const FlowRates& rates) {
  std::vector<double> total(at(task.windows));
  for (std::size_t f = 0; f < rates.size(); ++f) {
    for (std::size_t w = 0; task.flows[f].from == rank && w < total.size(); ++w) {
      total[w] += rates[f][w];
    }
  }
  return total;
}

/// Rank 0's view of one transport: measures step by step and keeps what came of it.
class Coordinator {
public:
  Coordinator(ClusterMember& member, const ClusterProbeOptions& options, int ranks, Seconds budget)
      : m_steps(member, options, ranks, budget), m_pairs(m_steps), m_racks(m_steps, m_pairs),
        m_rails(m_steps), m_ranks(ranks), m_with_rails(options.rails),
        m_pair_writes(measures_pair_writes(options, ranks)) {
    m_result.resize(at(ranks));
  }

  void measure_machines() {
    m_steps.show("the machines themselves");
    const Seconds each = std::max(Seconds(0.3), 0.6 * m_steps.scale() * Seconds(1));
    const std::vector<Profile> profiles = m_steps.member().measure_machines(each);
    for (std::size_t rank = 0; rank < profiles.size(); ++rank) {
      m_result[rank].own = profiles[rank];
    }
  }

  void measure_transport(const std::string& transport) {
    constexpr Seconds k_to_come(30); // after the pairs, at scale 1
    m_steps.show("connecting");
    m_steps.use_transport(transport);
    m_pairs.calibrate();
    m_pairs.measure();
    if (m_with_rails) { // a user's time may be over before the end
      m_rails.measure(m_pairs.found.part);
      m_steps.use_transport(transport);
    }
    m_steps.share_out(k_to_come + static_cast<double>(m_steps.lanes.size()) * Seconds(1) +
                      (m_pair_writes ? pair_write_time(m_ranks) : Seconds(0)));
    m_racks.measure();
    measure_ports();
    settle_ports();
    widen_hubs();
    m_racks.confirm(ports());
    measure_single_ports();
    measure_curve();
    if (m_pair_writes) {
      // All sizes of a direction together take about twice what the longest one may.
      const Seconds left = std::max(m_steps.budget() - m_steps.spent(), Seconds(0));
      const Seconds all = std::max(left, m_steps.scale() * pair_write_time(m_ranks));
      m_pairs.measure_writes(0.5 * all / static_cast<double>(m_pairs.write_steps()));
    }
    read_settings(m_steps.member(), m_result);
  }

  [[nodiscard]] std::vector<MemberResult>& result() { return m_result; }
  [[nodiscard]] std::vector<Cell>& cells() { return m_cells; }
  [[nodiscard]] Seconds spent() const { return m_steps.spent(); }

private:
  /// Machines that are about as fast test each other: the spokes must have more than the hub takes.
  [[nodiscard]] std::vector<std::vector<int>> stars() const {
    std::vector<int> order(at(m_ranks));
    std::iota(order.begin(), order.end(), 0);
    const auto about = [&](int rank) { // differences of some per cent are noise
      return std::lround(std::log(m_pairs.found.port_seen[at(rank)]) / std::log(1.15));
    };
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) { return about(a) > about(b); });
    std::vector<std::vector<int>> all;
    std::vector<int> lonely; // those alone in their racks have to take each other
    for (int rack = 0; rack < m_racks.count(); ++rack) {
      std::vector<int> inside;
      std::copy_if(order.begin(), order.end(), std::back_inserter(inside),
                   [&](int m) { return m_racks.found.rack_of[at(m)] == rack; });
      if (inside.size() == 1) {
        lonely.push_back(inside.front());
        continue;
      }
      for (std::vector<int>& star : stars_of(inside, k_star)) {
        all.push_back(std::move(star));
      }
    }
    if (lonely.size() == 1) {
      all.back().push_back(lonely.front());
    } else if (!lonely.empty()) {
      for (std::vector<int>& star : stars_of(lonely, k_star)) {
        all.push_back(std::move(star));
      }
    }
    return all;
  }

  void measure_ports() {
    const std::vector<std::vector<int>> all = stars();
    std::size_t positions = 0;
    for (const auto& star : all) {
      positions = std::max(positions, star.size());
    }
    for (std::size_t position = 0; position < positions; ++position) {
      m_steps.show(fmt::format("ports, round {} of {}", position + 1, positions));
      std::vector<std::vector<int>> hubs; // hub first
      for (const auto& star : all) {
        if (position < star.size()) {
          std::vector<int> turned = star;
          std::swap(turned.front(), turned[position]);
          hubs.push_back(std::move(turned));
        }
      }
      measure_hubs(hubs);
    }
  }

  /// Ports that did less with several peers than elsewhere: disturbed, measured with too little, or
  /// it is so. Where there is no time to find out, what they did elsewhere counts.
  void settle_ports() {
    const std::vector<double> seen = ports_seen_twice(m_pairs.found.rounds, m_ranks);
    const std::vector<Passage> passages = m_racks.passages();
    for (const int times : {1, 2}) {
      for (const int hub : doubtful_ports(measured_ports(), seen, passages)) {
        MemberResult& m = m_result[at(hub)];
        if (m.peers.empty() || m_steps.over()) {
          continue;
        }
        m_steps.show(fmt::format("port of rank {} again", hub));
        const MemberResult first = m;
        m_steps.doubled(times, [&] { measure_again(hub, m.peers); });
        if (median_above_zero(port_samples(first)) > median_above_zero(port_samples(m))) {
          m = first;
        }
      }
    }
    for (const int hub : doubtful_ports(measured_ports(), seen, {})) {
      if (m_steps.over() || m_result[at(hub)].peers.empty()) {
        m_result[at(hub)].seen_twice = seen[at(hub)];
      }
    }
  }

  /// A port that takes all that its peers can send may be faster than they are together: then it
  /// is tried with more of them.
  void widen_hubs() {
    constexpr double k_limited = 0.9;
    constexpr std::size_t k_most = 8, k_most_peers = 64; // one after another; usually there is none
    std::size_t widened = 0;
    for (int hub = 0; hub < m_ranks; ++hub) {
      const MemberResult& m = m_result[at(hub)];
      double peers = 0;
      for (const int peer : m.peers) {
        peers += m_pairs.found.port_seen[at(peer)];
      }
      if (median_above_zero(port_samples(m)) < k_limited * peers || m_steps.over()) {
        continue;
      }
      std::vector<int> more;
      for (int other = 0; other < m_ranks && more.size() < k_most_peers; ++other) {
        const bool same = m_racks.found.rack_of[at(other)] == m_racks.found.rack_of[at(hub)];
        if (other != hub && (same || m_racks.count() == m_ranks)) {
          more.push_back(other);
        }
      }
      if (more.size() > m.peers.size() && ++widened <= k_most) {
        m_steps.show(fmt::format("port of rank {} with more peers", hub));
        measure_again(hub, std::move(more));
      }
    }
  }

  /// A port with these peers, instead of what was measured before.
  void measure_again(int hub, std::vector<int> peers) {
    MemberResult& m = m_result[at(hub)];
    for (std::vector<double>* const samples :
         {&m.in_one_way, &m.out_one_way, &m.in_two_way, &m.out_two_way}) {
      samples->clear();
    }
    peers.insert(peers.begin(), hub);
    measure_hubs({peers});
  }

  void measure_hubs(const std::vector<std::vector<int>>& hubs) {
    std::vector<Flow> in, out, both;
    for (const auto& star : hubs) {
      for (std::size_t s = 1; s < star.size(); ++s) {
        in.push_back({star[s], star.front()});
        out.push_back({star.front(), star[s]});
      }
    }
    both = in;
    both.insert(both.end(), out.begin(), out.end());
    double slowest = m_pairs.found.rate;
    for (const auto& star : hubs) {
      slowest = std::min(slowest, m_pairs.found.port_seen[at(star.front())]);
    }
    // So many writes that the bursts that switches let through now and then do not count.
    const double window = std::clamp(
        150 * static_cast<double>(m_pairs.found.part) / std::max(slowest, 1.0), 0.3, 1.5);
    using Samples = std::vector<double> MemberResult::*;
    const auto note = [&](const std::vector<Flow>& flows, double seconds, int windows,
                          Samples arrived, Samples sent) {
      const FlowTask task = m_steps.stream_task(flows, m_pairs.found.part, 0.25, seconds, windows);
      FlowRates total;
      const FlowRates rates = m_steps.stream(task, total);
      for (const auto& star : hubs) {
        MemberResult& hub = m_result[at(star.front())];
        if (arrived != nullptr) {
          append(hub.*arrived, total[at(star.front())]);
        }
        if (sent != nullptr) {
          append(hub.*sent, sent_by(star.front(), task, rates));
        }
      }
    };
    note(in, 0.7 * window, 2, &MemberResult::in_one_way, nullptr);
    note(out, 0.7 * window, 2, nullptr, &MemberResult::out_one_way);
    note(both, window, 4, &MemberResult::in_two_way, &MemberResult::out_two_way);
    for (const auto& star : hubs) {
      m_result[at(star.front())].peers.assign(star.begin() + 1, star.end());
    }
  }

  /// Where machines have several network ports: each of them alone. Those that are less together
  /// than they did together are measured again, and the better counts.
  void measure_single_ports() {
    const std::vector<std::vector<std::string>>& ports = m_steps.member().ports();
    for (std::size_t rank = 0; rank < ports.size(); ++rank) {
      for (std::size_t p = 0; ports[rank].size() > 1 && p < ports[rank].size(); ++p) {
        m_result[rank].single_ports.push_back({ports[rank][p], {}}); // also without time to measure
      }
    }
    take_single_ports();
    for (const int times : {1, 2}) {
      if (m_steps.over() || std::ranges::none_of(m_result, &less_than_together)) {
        break;
      }
      const std::vector<MemberResult> before = m_result;
      m_steps.doubled(times, [&] { take_single_ports(); });
      for (std::size_t rank = 0; rank < m_result.size(); ++rank) {
        for (std::size_t p = 0; p < m_result[rank].single_ports.size(); ++p) {
          const std::vector<double>& first = before[rank].single_ports[p].samples;
          std::vector<double>& now = m_result[rank].single_ports[p].samples;
          now = median_above_zero(first) > median_above_zero(now) ? first : now;
        }
      }
    }
    for (MemberResult& m : m_result) {
      for (const int peer : m.peers) {
        m.peers_bytes_per_s += median_above_zero(port_samples(m_result[at(peer)]));
      }
    }
  }

  static bool less_than_together(const MemberResult& m) {
    double alone = 0;
    for (const MemberResult::SinglePort& port : m.single_ports) {
      alone += median_above_zero(port.samples);
    }
    return alone > 0 && median_above_zero(port_samples(m)) > (1 + k_above_noise) * alone;
  }

  /// Between machines with as many ports, all at once; else one machine after another, with several
  /// peers that together can fill the port.
  void take_single_ports() {
    const std::vector<std::vector<std::string>>& ports = m_steps.member().ports();
    const std::vector<int> all = m_steps.lanes;
    const bool alike = std::ranges::all_of(
        ports, [&](const auto& of_rank) { return of_rank.size() == ports.front().size(); });
    for (MemberResult& m : m_result) {
      for (MemberResult::SinglePort& port : m.single_ports) {
        port.samples.clear();
      }
    }
    for (std::size_t port = 0; all.size() > 1 && port < all.size(); ++port) {
      m_steps.lanes = {all[port]};
      if (alike && !m_steps.over()) {
        measure_alike(port);
      }
      for (int hub = 0; !alike && hub < m_ranks && !m_steps.over(); ++hub) {
        if (port < m_result[at(hub)].single_ports.size()) {
          measure_port_of(hub, port);
        }
      }
    }
    m_steps.lanes = all;
  }

  void measure_alike(std::size_t port) {
    m_steps.show(fmt::format("network port {}", m_result.front().single_ports[port].name));
    for (const std::vector<Flow>& flows : {ring_flows(1), ring_flows(-1)}) {
      const FlowTask task = m_steps.stream_task(flows, m_pairs.found.part, 0.25, 0.4, 3);
      const FlowRates rates = m_steps.stream(task);
      for (std::size_t f = 0; f < rates.size(); ++f) {
        append(m_result[at(task.flows[f].from)].single_ports[port].samples, rates[f]);
      }
    }
  }

  void measure_port_of(int hub, std::size_t port) {
    MemberResult& m = m_result[at(hub)];
    m_steps.show(fmt::format("network port {} of rank {}", m.single_ports[port].name, hub));
    std::vector<Flow> flows;
    for (const int peer : m.peers) {
      flows.push_back({peer, hub});
      flows.push_back({hub, peer});
    }
    const FlowTask task = m_steps.stream_task(flows, m_pairs.found.part, 0.25, 0.4, 2);
    FlowRates total;
    const FlowRates rates = m_steps.stream(task, total);
    append(m.single_ports[port].samples, total[at(hub)]);
    append(m.single_ports[port].samples, sent_by(hub, task, rates));
  }

  static void append(std::vector<double>& to, const std::vector<double>& from) {
    to.insert(to.end(), from.begin(), from.end());
  }

  /// Each machine to the next one in its star: every port is busy both ways.
  [[nodiscard]] std::vector<Flow> ring_flows(int step) const {
    std::vector<Flow> flows;
    for (const auto& star : stars()) {
      const auto size = static_cast<int>(star.size());
      for (int i = 0; size > 1 && i < size; ++i) {
        flows.push_back({star[at(i)], star[at((i + step + size) % size)]});
      }
    }
    return flows;
  }

  /// Pairs of neighbours in the stars: machines of one speed.
  [[nodiscard]] Pairing curve_pairs() const {
    Pairing pairs;
    for (const auto& star : stars()) {
      for (std::size_t i = 0; i + 1 < star.size(); i += 2) {
        pairs.emplace_back(star[i], star[i + 1]);
      }
    }
    return pairs;
  }

  void measure_curve() {
    const Pairing pairs = curve_pairs();
    for (std::uint64_t bytes = 4 * k_kib; bytes <= 4 * k_mib; bytes *= 2) {
      m_steps.show(fmt::format("writes of {}", to_text(Bytes(bytes))));
      if (m_steps.over()) {
        return;
      }
      // Twelve writes at least: of fewer, chance decides. The first ones still feel the start.
      const double each = static_cast<double>(bytes) / m_pairs.found.rate;
      if (bytes > k_mib && 15 * each > 3 * m_steps.scale()) {
        break; // what longer ones take can be told from these
      }
      const FlowTask task = m_steps.stream_task(both_ways(pairs), bytes, std::max(0.1, 3 * each),
                                                std::max(0.3, 12 * each / m_steps.scale()), 1);
      if (task.bytes != bytes) {
        break; // no room for so long ones
      }
      const FlowRates rates = m_steps.stream(task);
      for (std::size_t f = 0; f < rates.size(); ++f) {
        auto& curve = m_result[at(task.flows[f].from)].curve;
        curve.peer = task.flows[f].to;
        curve.in_flight[bytes] = static_cast<int>(task.in_flight);
        for (const double rate : rates[f]) {
          if (rate > 0) {
            curve.seconds[bytes].push_back(static_cast<double>(bytes) / rate);
          }
        }
      }
    }
  }

public:
  /// What was kept, as cells.
  void make_cells(const std::vector<std::string>& ids, bool interrupted) {
    const std::string late =
        interrupted ? "interrupted" : fmt::format("no time left of {}", to_text(m_steps.budget()));
    const auto add = [&](CellKey key, const std::vector<double>& samples,
                         const std::string& text = "") {
      key.transport = m_steps.transport();
      Cell& cell = m_cells.emplace_back(cell_of(key, samples, late));
      if (cell.has_value()) {
        remark(cell, text);
      }
    };
    for (int a = 0; a < m_ranks; ++a) {
      for (int b = 0; b < m_ranks; ++b) {
        if (a == b) {
          continue;
        }
        const CellKey pair{.from = ids[at(a)], .to = ids[at(b)], .in_flight = 1};
        CellKey key = pair;
        key.test = k_pair_latency;
        key.bytes = 8;
        key.direction = k_one_way;
        add(key, samples_of(m_pairs.found.latency, std::minmax(a, b)));
        key.test = k_pair_bandwidth;
        key.bytes = m_pairs.found.pair_part;
        key.in_flight = in_flight(key.bytes);
        add(key, samples_of(m_pairs.found.one_way, {a, b}));
        key.direction = k_two_way;
        add(key, samples_of(m_pairs.found.two_way, {a, b}));
        make_write_cells(pair, {a, b}, late);
      }
      const MemberResult& m = m_result[at(a)];
      for (const auto& [test, direction, samples] : {std::tuple{k_fan_in, k_one_way, &m.in_one_way},
                                                     {k_fan_in, k_two_way, &m.in_two_way},
                                                     {k_fan_out, k_one_way, &m.out_one_way},
                                                     {k_fan_out, k_two_way, &m.out_two_way}}) {
        add({.test = test,
             .from = ids[at(a)],
             .bytes = m_pairs.found.part,
             .in_flight = in_flight(m_pairs.found.part, m.peers.size()),
             .direction = direction},
            *samples, counted(m.peers.size(), "peer"));
      }
    }
    make_rack_cells(late);
    std::ranges::move(m_rails.cells(ids, late), std::back_inserter(m_cells));
    // A plan asks for one figure of a machine and another.
    for (int a = 0; a < m_ranks; ++a) {
      MemberResult& m = m_result[at(a)];
      m.transport = m_steps.transport();
      m.part = m_pairs.found.part;
      m.window = in_flight(m.part, m.peers.size());
      for (int b = 0; b < m_ranks; ++b) {
        append(m.latency, samples_of(m_pairs.found.latency, std::minmax(a, b)));
      }
    }
  }

  /// "full bisection bandwidth: ..." for people, and whether it holds.
  [[nodiscard]] std::pair<std::string, bool> verdict() const {
    const BisectionResult* worst = nullptr;
    for (const BisectionResult& b : m_racks.found.bisections) {
      worst = worst == nullptr || port_share(b) < port_share(*worst) ? &b : worst;
    }
    if (worst == nullptr) {
      return {m_ranks < 4 ? "not measured: fewer than four machines"
                          : "not measured: the probe ended before",
              true};
    }
    const bool full = port_share(*worst) >= RackSteps::k_full_bisection;
    return {fmt::format("{}: {} pairs move {} each way of the {} that their ports could ({:.0f} %)",
                        full ? "full" : "not full", worst->pairs.size(),
                        to_text(Bandwidth::bytes_per_s(median_above_zero(worst->samples))),
                        to_text(Bandwidth::bytes_per_s(full_bisection(worst->pairs, ports()))),
                        100 * port_share(*worst)),
            full};
  }
  [[nodiscard]] const RackSteps& racks() const { return m_racks; }

private:
  /// By rank, with several peers; 0: that was not done.
  [[nodiscard]] std::vector<double> measured_ports() const {
    std::vector<double> all;
    for (const MemberResult& m : m_result) {
      all.push_back(median_above_zero(port_samples(m)));
    }
    return all;
  }

  /// By rank: measured with several peers where that was done.
  [[nodiscard]] std::vector<double> ports() const {
    const std::vector<double> measured = measured_ports();
    std::vector<double> all = m_pairs.found.port_seen;
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i] = measured[i] > 0 ? measured[i] : all[i];
    }
    return all;
  }

  [[nodiscard]] double port_share(const BisectionResult& b) const {
    return median_above_zero(b.samples) / std::max(1.0, full_bisection(b.pairs, ports()));
  }

  static std::vector<double> samples_of(const PairSamples& all, std::pair<int, int> pair) {
    const auto found = all.find(pair);
    return found == all.end() ? std::vector<double>() : found->second;
  }

  void make_write_cells(CellKey key, std::pair<int, int> pair, const std::string& late) {
    key.test = k_pair_write;
    key.transport = m_steps.transport();
    key.direction = k_one_way;
    const auto curve = m_pairs.found.writes.find(pair);
    for (const std::uint64_t bytes : k_pair_write_sizes) {
      if (!m_pair_writes) {
        return;
      }
      key.bytes = bytes;
      PairWrite write;
      if (curve != m_pairs.found.writes.end() && curve->second.contains(bytes)) {
        write = curve->second.at(bytes);
      }
      m_cells.push_back(cell_of(key, write.seconds, write.why_not.empty() ? late : write.why_not));
    }
  }

  void make_rack_cells(const std::string& late) {
    CellKey key{.bytes = m_racks.part(),
                .in_flight = in_flight(m_racks.part()),
                .transport = m_steps.transport(),
                .direction = k_two_way};
    const auto add = [&](const std::vector<double>& samples, Ceiling ceiling) {
      m_cells.push_back(cell_of(key, samples, late));
      m_cells.back().ceiling = std::move(ceiling);
    };
    for (const BisectionResult& b : m_racks.found.bisections) {
      key.test = b.test;
      key.pairs = static_cast<int>(b.pairs.size());
      add(b.samples, {"the ports", full_bisection(b.pairs, ports())});
    }
    key.pairs = 0;
    key.test = k_uplink;
    for (int rack = 0; m_racks.count() > 1 && rack < m_racks.count(); ++rack) {
      double inside = 0;
      key.from = fmt::format("rack{}", rack);
      for (std::size_t m = 0; m < m_racks.found.rack_of.size(); ++m) {
        if (m_racks.found.rack_of[m] == rack) {
          inside += ports()[m];
          m_result[m].rack = key.from;
        }
      }
      const auto samples = m_racks.found.uplinks.find(rack);
      add(samples == m_racks.found.uplinks.end() ? std::vector<double>() : samples->second,
          {"the ports inside", inside});
    }
  }

  [[nodiscard]] int in_flight(std::uint64_t bytes, std::size_t flows = 1) const {
    return static_cast<int>(m_steps.in_flight(bytes, flows));
  }

  ClusterSteps m_steps;
  PairSteps m_pairs;
  RackSteps m_racks;
  RailSteps m_rails;
  int m_ranks;
  bool m_with_rails;
  bool m_pair_writes;
  std::vector<MemberResult> m_result;
  std::vector<Cell> m_cells;
};

} // namespace

Seconds pair_write_time(int ranks) {
  return Seconds(2.4 * (ranks - 1 + ranks % 2)); // a round of disjoint pairs, each way
}

bool measures_pair_writes(const ClusterProbeOptions& options, int ranks) {
  return options.pair_writes || ranks <= k_few_machines;
}

Seconds cluster_budget(int ranks, bool pair_writes, int rails) {
  return Seconds(32 + 2.5 * ranks) + (pair_writes ? pair_write_time(ranks) : Seconds(0)) +
         rails_time(ranks, rails);
}

namespace {

/// Opens the rails once, so that one that does not connect ends the probe before it has taken time.
ClusterList what_to_measure(ClusterMember& member, const ClusterProbeOptions& options) {
  const auto machines = static_cast<int>(member.hosts().size());
  ClusterList list;
  list.machines = member_ids(member.hosts());
  list.transport = common_transport(member.hosts(), options.transports);
  if (options.rails) {
    member.use_transport(list.transport, options.seed, true);
    for (std::size_t rail = 0; rail < at(member.rails()); ++rail) {
      std::vector<std::string>& ports = list.rails.emplace_back();
      for (const std::vector<std::string>& of_machine : member.ports()) {
        ports.push_back(of_machine[rail]);
      }
    }
  }
  list.estimate =
      options.budget > Seconds(0)
          ? options.budget
          : cluster_budget(machines, measures_pair_writes(options, machines), member.rails());
  return list;
}

} // namespace

ProbeResult probe_cluster(Rendezvous& rendezvous, const ClusterProbeOptions& options) {
  try {
    if (rendezvous.size() < 2) {
      fail(ErrorKind::usage, "probe --cluster: a cluster has two machines at least, and this job "
                             "has one rank; start more, or leave --cluster away");
    }
    ClusterMember member(rendezvous, options);
    ProbeResult result;
    if (rendezvous.rank() != 0) {
      member.serve();
      return result;
    }
    const ClusterList list = what_to_measure(member, options);
    const auto machines = static_cast<int>(list.machines.size());
    if (options.starting) {
      options.starting(list);
    }
    if (options.only_list) {
      member.end();
      return result;
    }
    Coordinator coordinator(member, options, machines, list.estimate);
    try {
      coordinator.measure_machines();
      coordinator.measure_transport(list.transport);
      member.end();
    } catch (const ClusterInterrupted&) {
      result.interrupted = true;
      member.end();
    } catch (const Error& error) {
      if (!options.interrupted || !options.interrupted()) {
        throw;
      }
      // In the middle of a step: the others cannot be told in its words any more.
      result.interrupted = true;
      rendezvous.give_up(Error(ErrorKind::operation, "interrupted"));
    }
    const auto [bisection, full] = coordinator.verdict();
    coordinator.make_cells(list.machines, result.interrupted);

    Profile& profile = result.profile;
    profile.cells = std::move(coordinator.cells());
    merge_machines(profile, coordinator.result(), list.machines);
    profile.name =
        !options.name.empty() ? options.name : fmt::format("cluster of {} machines", machines);
    auto& context = profile.context;
    context["measured_at"] = utc_now();
    context["ranks"] = fmt::format("{}", rendezvous.size());
    context["transport"] = list.transport;
    context["bisection"] = bisection;
    context["racks_doubtful"] = coordinator.racks().found.doubt;
    warn_of_cluster(result, member, coordinator.racks().found.doubt, full ? "" : bisection,
                    coordinator.racks().count());
    describe_probe(result, options, list.estimate, coordinator.spent());
    return result;
  } catch (const std::exception& error) {
    rendezvous.give_up(error);
    throw;
  }
}

} // namespace reckon
