// SPDX-License-Identifier: Apache-2.0
#include "probe/cluster.hpp"

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/version.hpp"
#include "probe/cluster_member.hpp"
#include "probe/cluster_merge.hpp"
#include "probe/evaluate.hpp"
#include "probe/fabric.hpp"
#include "probe/reduce.hpp"
#include "probe/rounds.hpp"
#include "probe/sampling.hpp"
#include "stats/summary.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <map>
#include <numeric>
#include <optional>
#include <random>
#include <utility>

namespace reckon {
namespace {

constexpr std::uint64_t k_kib = 1024, k_mib = std::uint64_t{1} << 20U;
constexpr int k_star = 4; ///< machines that test each other's ports
constexpr std::uint32_t k_window = 4;

class Interrupted : public std::runtime_error {
public:
  Interrupted() : std::runtime_error("interrupted") {}
};

double median(std::vector<double> values) {
  std::erase_if(values, [](double v) { return !(v > 0); });
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : percentile(values, 0.5);
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", utc);
}

/// Rates of a task's flows: [flow][window], in the task's order.
using Rates = std::vector<std::vector<double>>;

/// Rank 0's view of one transport: measures step by step and keeps what came of it.
class Coordinator {
public:
  Coordinator(ClusterMember& member, const ClusterProbeOptions& options, int ranks, Seconds budget)
      : m_member(member), m_options(options), m_ranks(ranks), m_budget(budget),
        m_scale(std::clamp(budget / cluster_budget(ranks), 0.15, 20.0)), m_random(options.seed) {
    m_result.resize(static_cast<std::size_t>(ranks));
  }

  void measure_machines() {
    show("the machines themselves");
    const Seconds each = std::max(Seconds(0.3), 0.6 * m_scale * Seconds(1));
    const std::vector<Profile> profiles = m_member.measure_machines(each);
    for (std::size_t rank = 0; rank < profiles.size(); ++rank) {
      m_result[rank].own = profiles[rank];
    }
  }

  void measure_transport(const std::string& transport) {
    m_transport = transport;
    show("connecting");
    m_member.use_transport(transport, m_options.seed);
    m_lanes.resize(std::max<std::size_t>(1, m_member.ports().front().size()));
    std::iota(m_lanes.begin(), m_lanes.end(), 0);
    calibrate();
    measure_pairs();
    measure_ports();
    measure_curve();
  }

  [[nodiscard]] std::vector<MemberResult>& result() { return m_result; }
  [[nodiscard]] std::vector<Cell>& cells() { return m_cells; }
  [[nodiscard]] Seconds spent() const { return m_clock.now(); }

private:
  void show(const std::string& what) {
    if (m_options.interrupted && m_options.interrupted()) {
      throw Interrupted();
    }
    if (m_options.progress) {
      m_options.progress(std::clamp(spent() / m_budget, 0.0, 1.0), what,
                         std::max(m_budget - spent(), Seconds(0)));
    }
  }

  [[nodiscard]] bool over() const { return spent() > m_budget; }

  [[nodiscard]] static std::int64_t ns(double seconds) {
    return static_cast<std::int64_t>(1e9 * seconds);
  }

  [[nodiscard]] FlowTask stream_task(std::vector<Flow> flows, std::uint64_t bytes, double warm_up,
                                     double window, int windows) {
    FlowTask task;
    task.flows = std::move(flows);
    task.lanes = m_lanes;
    std::vector<std::size_t> to(static_cast<std::size_t>(m_ranks));
    std::size_t most = 1;
    for (const Flow& flow : task.flows) {
      most = std::max(most, ++to[static_cast<std::size_t>(flow.to)]);
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

  Rates stream(const FlowTask& task) {
    const std::vector<FlowOutcome> outcomes = m_member.run(task);
    std::vector<std::size_t> next(outcomes.size());
    Rates rates;
    for (const Flow& flow : task.flows) {
      const auto to = static_cast<std::size_t>(flow.to);
      rates.push_back(outcomes[to].rates.at(next[to]++));
      if (outcomes[to].wrong_at != UINT64_MAX) {
        fail(ErrorKind::operation,
             fmt::format("rank {} received wrong data over {}, at byte {} of its buffer", to,
                         m_transport, outcomes[to].wrong_at));
      }
    }
    return rates;
  }

  /// Sums the windows of all flows that `pick` picks.
  template <class Pick>
  [[nodiscard]] static std::vector<double> sum(const FlowTask& task, const Rates& rates,
                                               Pick pick) {
    std::vector<double> total(static_cast<std::size_t>(task.windows));
    for (std::size_t f = 0; f < rates.size(); ++f) {
      for (std::size_t w = 0; pick(task.flows[f]) && w < total.size(); ++w) {
        total[w] += rates[f][w];
      }
    }
    return total;
  }

  static std::vector<Flow> both_ways(const Pairing& pairs) {
    std::vector<Flow> flows;
    for (const auto& [a, b] : pairs) {
      flows.push_back({a, b});
      flows.push_back({b, a});
    }
    return flows;
  }

  /// How fast is it, roughly? A write should take some milliseconds: then a window holds many of
  /// them, and their number does not keep the processors busy.
  void calibrate() {
    std::vector<double> all;
    for (const Rates& rates :
         {stream(stream_task(both_ways(round_robin(m_ranks).front()), 64 * k_kib, 0.05, 0.1, 1))}) {
      for (const auto& windows : rates) {
        all.insert(all.end(), windows.begin(), windows.end());
      }
    }
    m_rate = std::max(1e5, median(all));
    m_part = part_for(m_rate / static_cast<double>(m_lanes.size()));
    log(LogLevel::debug, "{}: about {} a pair and direction, so writes of {}", m_transport,
        to_text(Bandwidth::bytes_per_s(m_rate)), to_text(Bytes(m_part)));
  }

  [[nodiscard]] static std::uint64_t part_for(double bytes_per_s) {
    // Parts as long as plans have them, as long as many of them fit into a window.
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

  void measure_pairs() {
    const std::vector<Pairing> rounds = round_robin(m_ranks);
    for (std::size_t r = 0; r < rounds.size(); ++r) {
      if (r > 0 && over()) {
        return; // the cells of these pairs say so
      }
      const std::string step = fmt::format("pairs, round {} of {}", r + 1, rounds.size());
      show(step);
      measure_latency(rounds[r]);
      show(step);
      std::vector<Flow> forth, back;
      for (const auto& [a, b] : rounds[r]) {
        forth.push_back({a, b});
        back.push_back({b, a});
      }
      for (const std::vector<Flow>& flows : {forth, back}) {
        note_pairs(stream_task(flows, m_part, 0.08, 0.08, 3), m_one_way);
      }
      note_pairs(stream_task(both_ways(rounds[r]), m_part, 0.08, 0.1, 3), m_two_way);
    }
  }

  using PairSamples = std::map<std::pair<int, int>, std::vector<double>>;

  void note_pairs(const FlowTask& task, PairSamples& into) {
    const Rates rates = stream(task);
    for (std::size_t f = 0; f < rates.size(); ++f) {
      auto& samples = into[{task.flows[f].from, task.flows[f].to}];
      samples.insert(samples.end(), rates[f].begin(), rates[f].end());
    }
  }

  void measure_latency(const Pairing& pairs) {
    const int processors = m_member.hosts().front().processors;
    for (const Pairing& wave : waves_of(pairs, m_member.host_of(), std::max(1, processors / 2))) {
      FlowTask task;
      task.kind = FlowTask::Kind::ping;
      for (const auto& [a, b] : wave) {
        task.flows.push_back({a, b});
      }
      task.bytes = 8;
      task.warm_up = 10;
      task.count = static_cast<std::uint64_t>(std::clamp(100 * m_scale, 30.0, 300.0));
      const std::vector<FlowOutcome> outcomes = m_member.run(task);
      for (const Flow& flow : task.flows) {
        m_latency[{flow.from, flow.to}] = outcomes[static_cast<std::size_t>(flow.from)].one_way_s;
      }
    }
  }

  /// The best that a machine was seen to do with any other, one direction under the other's load.
  [[nodiscard]] double best_seen(int rank) const {
    double best = 0;
    for (const auto& [pair, samples] : m_two_way) {
      if (pair.first == rank || pair.second == rank) {
        best = std::max(best, median(samples));
      }
    }
    return best;
  }

  /// Machines that are about as fast test each other: the spokes must have more than the hub takes.
  [[nodiscard]] std::vector<std::vector<int>> stars() const {
    std::vector<int> order(static_cast<std::size_t>(m_ranks));
    std::iota(order.begin(), order.end(), 0);
    std::vector<double> rate;
    for (const int rank : order) {
      rate.push_back(best_seen(rank));
    }
    std::stable_sort(order.begin(), order.end(), [&](int a, int b) {
      // Differences of some per cent are noise, and would tear neighbours apart.
      return rate[static_cast<std::size_t>(a)] > 1.1 * rate[static_cast<std::size_t>(b)];
    });
    return stars_of(order, std::min(k_star, m_ranks));
  }

  void measure_ports() {
    const std::vector<std::vector<int>> all = stars();
    std::size_t positions = 0;
    for (const auto& star : all) {
      positions = std::max(positions, star.size());
    }
    for (std::size_t position = 0; position < positions; ++position) {
      show(fmt::format("ports, round {} of {}", position + 1, positions));
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
    const auto note = [&](const std::vector<Flow>& flows, double window, int windows, auto&& keep) {
      const FlowTask task = stream_task(flows, m_part, 0.25, window, windows);
      const Rates rates = stream(task);
      for (const auto& star : hubs) {
        const int hub = star.front();
        keep(m_result[static_cast<std::size_t>(hub)],
             sum(task, rates, [hub](const Flow& f) { return f.to == hub; }),
             sum(task, rates, [hub](const Flow& f) { return f.from == hub; }));
      }
    };
    const auto append = [](std::vector<double>& to, const std::vector<double>& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    using Samples = std::vector<double>;
    note(in, 0.25, 2,
         [&](MemberResult& m, const Samples& i, const Samples&) { append(m.in_one_way, i); });
    note(out, 0.25, 2,
         [&](MemberResult& m, const Samples&, const Samples& o) { append(m.out_one_way, o); });
    note(both, 0.4, 3, [&](MemberResult& m, const Samples& i, const Samples& o) {
      append(m.in_two_way, i);
      append(m.out_two_way, o);
    });
    for (const auto& star : hubs) {
      m_result[static_cast<std::size_t>(star.front())].peers = static_cast<int>(star.size()) - 1;
    }
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
      show(fmt::format("writes of {}", to_text(Bytes(bytes))));
      if (over()) {
        return;
      }
      // Twelve writes at least: of fewer, chance decides. The first ones still feel the start.
      const double each = static_cast<double>(bytes) / m_rate;
      if (bytes > k_mib && 15 * each > 3 * m_scale) {
        break; // what longer ones take can be told from these
      }
      const FlowTask task = stream_task(both_ways(pairs), bytes, std::max(0.1, 3 * each),
                                        std::max(0.3, 12 * each / m_scale), 1);
      if (task.bytes != bytes) {
        break; // no room for so long ones
      }
      const Rates rates = stream(task);
      for (std::size_t f = 0; f < rates.size(); ++f) {
        auto& curve = m_result[static_cast<std::size_t>(task.flows[f].from)].curves[m_transport];
        curve.peer = task.flows[f].to;
        for (const double rate : rates[f]) {
          if (rate > 0) {
            curve.seconds[bytes].push_back(static_cast<double>(bytes) / rate);
          }
        }
      }
    }
  }

public:
  /// What was kept, as cells whose places are still ranks: see name_places().
  void make_cells(const std::vector<std::string>& ids) {
    const auto id = [&](int rank) { return ids[static_cast<std::size_t>(rank)]; };
    const auto key_of = [&](const char* test, int from, int to, std::uint64_t bytes,
                            const char* direction) {
      CellKey key;
      key.test = test;
      key.from = id(from);
      key.to = to >= 0 ? id(to) : "";
      key.bytes = bytes;
      key.in_flight = static_cast<int>(k_window);
      key.transport = m_transport;
      key.direction = direction;
      return key;
    };
    const std::string late = fmt::format("no time left of the budget of {}", to_text(m_budget));
    for (int a = 0; a < m_ranks; ++a) {
      for (int b = 0; b < m_ranks; ++b) {
        if (a == b) {
          continue;
        }
        CellKey key = key_of(k_pair_latency, a, b, 8, "one_way");
        key.in_flight = 1;
        const auto latency = m_latency.find({std::min(a, b), std::max(a, b)});
        m_cells.push_back(
            cell_of(key, "seconds",
                    latency == m_latency.end() ? std::vector<double>() : latency->second, late));
        for (const auto& [direction, all] :
             {std::pair{"one_way", &m_one_way}, std::pair{"two_way", &m_two_way}}) {
          const auto samples = all->find({a, b});
          m_cells.push_back(
              cell_of(key_of(k_pair_bandwidth, a, b, m_part, direction), "bytes_per_second",
                      samples == all->end() ? std::vector<double>() : samples->second, late));
        }
      }
      const MemberResult& m = m_result[static_cast<std::size_t>(a)];
      const std::string peers = fmt::format("{} peer{}", m.peers, m.peers == 1 ? "" : "s");
      const auto port = [&](const char* test, const char* direction,
                            const std::vector<double>& samples) {
        Cell cell =
            cell_of(key_of(test, a, -1, m_part, direction), "bytes_per_second", samples, late);
        if (cell.has_value()) {
          remark(cell, peers);
        }
        m_cells.push_back(std::move(cell));
      };
      port(k_fan_in, "one_way", m.in_one_way);
      port(k_fan_in, "two_way", m.in_two_way);
      port(k_fan_out, "one_way", m.out_one_way);
      port(k_fan_out, "two_way", m.out_two_way);
    }
    // A plan asks for one figure of a machine and another.
    for (int a = 0; a < m_ranks; ++a) {
      MemberResult& m = m_result[static_cast<std::size_t>(a)];
      m.transport = m_transport;
      m.part = m_part;
      m.window = static_cast<int>(k_window);
      for (int b = 0; b < m_ranks; ++b) {
        const auto latency = m_latency.find({std::min(a, b), std::max(a, b)});
        if (latency != m_latency.end()) {
          m.latency.insert(m.latency.end(), latency->second.begin(), latency->second.end());
        }
      }
    }
  }

private:
  ClusterMember& m_member;
  const ClusterProbeOptions& m_options;
  int m_ranks;
  Seconds m_budget;
  double m_scale;
  std::mt19937_64 m_random;
  RunClock m_clock;
  std::string m_transport;
  std::vector<int> m_lanes;
  double m_rate = 0;
  std::uint64_t m_part = 0;
  PairSamples m_one_way, m_two_way, m_latency;
  std::vector<MemberResult> m_result;
  std::vector<Cell> m_cells;
};

/// The transport that all ranks have: InfiniBand and its like before tcp.
std::string common_transport(const std::vector<ClusterHost>& hosts,
                             const std::vector<std::string>& asked) {
  std::vector<std::string> all = hosts.front().transports;
  for (const ClusterHost& host : hosts) {
    std::erase_if(all, [&](const std::string& name) {
      return std::find(host.transports.begin(), host.transports.end(), name) ==
             host.transports.end();
    });
  }
  for (const std::string& wanted : asked) {
    if (std::find(all.begin(), all.end(), wanted) == all.end()) {
      fail(ErrorKind::unavailable,
           fmt::format("probe: transport '{}' does not cross machines at every rank; there are: {}",
                       wanted, fmt::join(all, ", ")));
    }
  }
  if (!asked.empty()) {
    return asked.front();
  }
  if (all.empty()) {
    fail(ErrorKind::unavailable, "probe: the ranks have no transport in common that crosses "
                                 "machines; `reckon run --list` on each says what is missing");
  }
  const auto tcp = [](const std::string& name) { return name.starts_with("tcp"); };
  std::stable_partition(all.begin(), all.end(), [&](const std::string& n) { return !tcp(n); });
  return all.front();
}

} // namespace

Seconds cluster_budget(int ranks) {
  return Seconds(26 + 2.0 * ranks);
}

std::vector<ProbeCase> cluster_probe_cases() {
  return {
      {k_pair_latency, "how long an 8-byte write takes, between all pairs of machines"},
      {k_pair_bandwidth, "what flows between all pairs, each direction alone and both at once"},
      {k_fan_in, "what a machine's port takes from several at once"},
      {k_fan_out, "what a machine's port sends to several at once"},
      {k_port_bandwidth, "what a port does in each direction when both are busy"},
      {k_fabric_write, "time of a write between two machines, by size"},
  };
}

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
    const Seconds budget =
        options.budget > Seconds(0) ? options.budget : cluster_budget(rendezvous.size());
    const std::string transport = common_transport(member.hosts(), options.transports);
    if (options.starting) {
      options.starting(rendezvous.size(), budget);
    }
    Coordinator coordinator(member, options, rendezvous.size(), budget);
    try {
      coordinator.measure_machines();
      coordinator.measure_transport(transport);
    } catch (const Interrupted&) {
      result.interrupted = true;
    }
    member.end();
    const std::vector<std::string> ids = member_ids(member.hosts());
    coordinator.make_cells(ids);

    Profile& profile = result.profile;
    profile.source = fmt::format("measured by reckon {}", k_version);
    profile.cells = std::move(coordinator.cells());
    merge_machines(profile, coordinator.result(), ids);
    profile.fits = fits_of(profile.cells);
    std::sort(profile.cells.begin(), profile.cells.end(),
              [](const Cell& a, const Cell& b) { return a.key < b.key; });
    profile.name = !options.name.empty() ? options.name
                                         : fmt::format("cluster of {} machines", rendezvous.size());
    auto& context = profile.context;
    context["measured_at"] = utc_now();
    context["ranks"] = fmt::format("{}", rendezvous.size());
    context["budget"] = to_text(budget);
    context["took"] = to_text(coordinator.spent());
    context["seed"] = fmt::format("{}", options.seed);
    context["flags"] = options.flags;
    context["clock"] = "CLOCK_MONOTONIC_RAW";
    if (result.interrupted) {
      context["interrupted"] = "yes";
    }
    std::erase_if(context, [](const auto& entry) { return entry.second.empty(); });
    return result;
  } catch (const std::exception& error) {
    rendezvous.give_up(error.what());
    throw;
  }
}

} // namespace reckon
