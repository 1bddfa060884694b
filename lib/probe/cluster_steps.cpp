// SPDX-License-Identifier: Apache-2.0
#include "probe/cluster_steps.hpp"

#include "core/log.hpp"
#include "core/units.hpp"
#include "documents/cells.hpp"
#include "documents/contradictions.hpp"
#include "probe/cluster.hpp"
#include "probe/growth.hpp"
#include "probe/rounds.hpp"
#include "stats/summary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace reckon {
namespace {

/// TCP begins with some 14 KB a connection: ten times twice as much are 14 MB under way.
constexpr double k_warm_up_trips = 10;
constexpr double k_window_trips = 2;
/// A receiver that did not run for some ms then takes what waits in the socket's buffer: in a
/// shorter window that is much above the link's rate.
constexpr double k_least_window = 0.1;

std::int64_t ns(double seconds) {
  return static_cast<std::int64_t>(1e9 * seconds);
}

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
      m_scale(std::clamp(
          budget / cluster_budget(ranks, measures_pair_writes(options, ranks), member.rails()),
          0.15, 20.0)),
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

std::uint32_t ClusterSteps::in_flight(std::uint64_t bytes, std::size_t flows) const {
  constexpr std::uint32_t k_most = 4096; // beyond, transports have no room
  const double all = static_cast<double>(bytes) *
                     static_cast<double>(lanes.size() * std::max<std::size_t>(1, flows));
  std::uint32_t writes = k_window;
  while (writes < k_most && writes * all < flight_bytes) {
    writes *= 2;
  }
  return writes;
}

void ClusterSteps::doubled(int times, const std::function<void()>& measure) {
  const double flight = flight_bytes;
  m_warm_up = 1 << times;
  flight_bytes *= m_warm_up;
  measure();
  m_warm_up = 1;
  flight_bytes = flight;
}

void ClusterSteps::allow_for_long_ways() {
  if (m_options.budget > Seconds(0)) {
    return;
  }
  const double streams = 30 + 3.0 * m_ranks; // of which most have three windows
  m_budget += streams * (k_warm_up_trips + 3 * k_window_trips) * round_trip;
}

void ClusterSteps::use_transport(const std::string& transport, bool rails) {
  m_transport = transport;
  m_member.use_transport(transport, m_options.seed, rails);
  const auto number = [](const std::vector<std::string>& ports) { return ports.size(); };
  lanes.resize(std::max<std::size_t>(1, std::ranges::max(m_member.ports(), {}, number).size()));
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
  task.in_flight = in_flight(bytes, most);
  task.first = m_random() % 100'000;
  task.warm_up_ns = ns(m_warm_up * std::max(warm_up, k_warm_up_trips * round_trip.count()));
  task.window_ns = ns(std::max(
      {window * m_scale, std::min(window, k_least_window), k_window_trips * round_trip.count()}));
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
  return {.kind = FlowTask::Kind::echo,
          .flows = std::move(flows),
          .bytes = bytes,
          .first = first,
          .warm_up = std::min(most_warm_up, std::max(std::uint64_t{1}, k_passed_first / bytes)),
          .count = count};
}

std::vector<double> write_seconds(const std::vector<double>& round_trip_s, double answer_s) {
  std::vector<double> seconds;
  for (const double both : round_trip_s) {
    seconds.push_back(std::max(both - answer_s, 0.5 * both));
  }
  return seconds;
}

void PairSteps::calibrate() {
  constexpr std::uint64_t k_bytes = 64 * k_kib;
  const std::vector<Pairing> rounds = round_robin(m_steps.ranks());
  std::size_t longest = 0; // the round with the longest way
  for (std::size_t r = 0; r < rounds.size() && !(r > 0 && m_steps.over()); ++r) {
    m_steps.show(fmt::format("latencies, round {} of {}", r + 1, rounds.size()));
    measure_latency(rounds[r]);
    for (const auto& [a, b] : rounds[r]) {
      if (const Seconds trip(2 * latency_of({a, b})); trip > m_steps.round_trip) {
        m_steps.round_trip = trip;
        longest = r;
      }
    }
  }
  m_steps.allow_for_long_ways();
  m_steps.show("how much in flight");
  m_steps.flight_bytes = ClusterSteps::k_window * k_bytes;
  FlowTask task = m_steps.stream_task(both_ways(rounds[longest]), k_bytes, 0.05, 0.1, 1);
  std::vector<double> all;
  for (const auto& windows : grow(rounds[longest], task)) {
    all.insert(all.end(), windows.begin(), windows.end());
  }
  found.rate = std::max(1e5, median_above_zero(all));
  found.pair_part = found.part = part_for(found.rate / static_cast<double>(m_steps.lanes.size()));
  log(LogLevel::debug, "{}: about {} a pair and direction, so writes of {}", m_steps.transport(),
      to_text(Bandwidth::bytes_per_s(found.rate)), to_text(Bytes(found.part)));
}

FlowRates PairSteps::grow(const Pairing& pairs, FlowTask& task) {
  std::map<double, FlowRates> tried;
  const auto rates_of = [&](double flight_bytes) {
    m_steps.flight_bytes = flight_bytes;
    task.in_flight = m_steps.in_flight(task.bytes);
    FlowRates& rates = tried[flight_bytes] = m_steps.stream(task);
    std::vector<double> of_pairs; // whose directions share a loop of data and what tells of them
    for (std::size_t p = 0; p < pairs.size(); ++p) {
      of_pairs.push_back(median_above_zero(rates[2 * p]) + median_above_zero(rates[2 * p + 1]));
    }
    log(LogLevel::debug, "{} in flight: {} a pair both ways",
        to_text(Bytes(static_cast<std::uint64_t>(flight_bytes))),
        to_text(Bandwidth::bytes_per_s(median(of_pairs))));
    return of_pairs;
  };
  // First as much as there may ever be: what a connection comes to with time is not what it needs.
  const double begin = m_steps.flight_bytes;
  const double most = static_cast<double>(m_steps.member().memory()) / 4;
  static_cast<void>(rates_of(most));
  m_steps.flight_bytes = grow_until_steady(begin, most, rates_of);
  task.in_flight = m_steps.in_flight(task.bytes);
  return tried.at(m_steps.flight_bytes);
}

void PairSteps::measure() {
  const std::vector<Pairing> rounds = round_robin(m_steps.ranks());
  for (std::size_t r = 0; r < rounds.size(); ++r) {
    if (r > 0 && m_steps.over()) {
      break; // the cells of these pairs say so
    }
    const std::string step = fmt::format("pairs, round {} of {}", r + 1, rounds.size());
    m_steps.show(step);
    FlowTask task = m_steps.stream_task(both_ways(rounds[r]), found.pair_part, 0.08, 0.1, 3);
    const FlowRates rates = grow(rounds[r], task);
    note_pairs(task, rates, found.two_way);
    found.rounds.push_back(round_of(task, rates, step));
    for (const bool forth : {true, false}) {
      const FlowTask one =
          m_steps.stream_task(one_way_flows(rounds[r], forth), found.pair_part, 0.08, 0.08, 3);
      note_pairs(one, m_steps.stream(one), found.one_way);
    }
  }
  confirm_ports();
  found.rate = std::max(1e5, median_above_zero(found.port_seen));
  found.part = part_for(found.rate / static_cast<double>(m_steps.lanes.size()));
  confirm_rounds();
}

/// All that follows is held against the ports: what was fast only once does not count.
void PairSteps::confirm_ports() {
  constexpr int k_most = 3;
  for (int again = 0; again < k_most && !m_steps.over(); ++again) {
    const Pairing pairs = seen_once(found.rounds, m_steps.ranks());
    if (pairs.empty()) {
      break;
    }
    found.rounds.push_back(measure_round(pairs, "fast pairs again", found.pair_part, 0.2).first);
  }
  found.port_seen = ports_seen_twice(found.rounds, m_steps.ranks());
}

/// What was slow may have been disturbed: only what is slow twice counts.
void PairSteps::confirm_rounds() {
  constexpr int k_most = 8;
  int again = 0;
  for (RoundRates& round : found.rounds) {
    const bool slow = std::any_of(round.begin(), round.end(), [&](const PairRate& pair) {
      return hindered(pair, found.port_seen);
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
    keep_best(round, measure_round(pairs, "slow pairs again", found.part, 0.1).first);
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
    // Of long ways a few tell: what wakes a process up late is little of their time.
    constexpr double k_fewest = 5, k_whole_s = 0.4;
    FlowTask task{
        .kind = FlowTask::Kind::ping, .flows = group, .bytes = k_bytes, .warm_up = 1, .count = 3};
    double slowest = 0;
    for (const FlowOutcome& outcome : m_steps.member().run(task)) {
      slowest = std::max(slowest, median(outcome.round_trip_s));
    }
    const double in_time = k_whole_s * m_steps.scale() / std::max(slowest, 1e-9);
    task.count = static_cast<std::uint64_t>(
        std::clamp(in_time, k_fewest, std::clamp(100 * m_steps.scale(), 30.0, 300.0)));
    task.warm_up = std::min<std::uint64_t>(10, task.count);
    const std::vector<FlowOutcome> outcomes = m_steps.member().run(task);
    for (const Flow& flow : task.flows) {
      std::vector<double>& samples = found.latency[{flow.from, flow.to}];
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
  const auto latency = found.latency.find(std::minmax(flow.from, flow.to));
  return latency == found.latency.end() ? 0 : median_above_zero(latency->second);
}

/// From what is known of the pair: its latency and rate, and the size before.
double PairSteps::expected_seconds(const Flow& flow, std::uint64_t bytes) const {
  const auto size = static_cast<double>(bytes);
  const auto rate = found.one_way.find({flow.from, flow.to});
  const double known = rate == found.one_way.end() ? 0 : median_above_zero(rate->second);
  double expected = size / (known > 0 ? known : found.rate);
  expected += 2 * latency_of(flow);
  const auto curve = found.writes.find({flow.from, flow.to});
  if (curve != found.writes.end()) {
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
      PairWrite& write = found.writes[{flow.from, flow.to}][bytes];
      if (m_steps.over()) {
        write.why_not = fmt::format("no time left of {}", to_text(m_steps.budget()));
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
    PairWrite& write = found.writes[{flow.from, flow.to}][bytes];
    for (const double seconds :
         write_seconds(outcomes[at(flow.from)].round_trip_s, latency_of(flow))) {
      write.seconds.push_back(seconds);
    }
  }
}

RackSteps::RackSteps(ClusterSteps& steps, PairSteps& pairs) : m_steps(steps), m_pairs(pairs) {
  found.rack_of.resize(at(steps.ranks()));
}

std::uint64_t RackSteps::part() const {
  return part_for(m_pairs.found.rate / 8 / static_cast<double>(m_steps.lanes.size()));
}

int RackSteps::count() const {
  return *std::max_element(found.rack_of.begin(), found.rack_of.end()) + 1;
}

double RackSteps::share_of(const BisectionResult& b) const {
  return median_above_zero(b.samples) /
         std::max(1.0, full_bisection(b.pairs, m_pairs.found.port_seen));
}

void RackSteps::note_bisection(const char* test, const Pairing& pairs, const std::string& step) {
  auto [round, samples] = m_pairs.measure_round(pairs, step, part(), 0.3);
  BisectionResult now{test, pairs, std::move(samples)};
  if (share_of(now) < k_full_bisection && !m_steps.over()) { // or was it disturbed?
    auto [second, again] = m_pairs.measure_round(pairs, step, part(), 0.3);
    keep_best(round, second);
    if (median_above_zero(again) > median_above_zero(now.samples)) {
      now.samples = std::move(again);
    }
  }
  m_pairs.found.rounds.push_back(std::move(round));
  const auto same = std::find_if(found.bisections.begin(), found.bisections.end(),
                                 [&](const BisectionResult& b) { return b.test == test; });
  if (same == found.bisections.end()) {
    found.bisections.push_back(std::move(now));
  } else if (share_of(now) < share_of(*same)) { // the worst of several stands
    *same = std::move(now);
  }
}

/// BytePS assumes that any half can send to the other at full speed. Which machines cannot tells
/// where the racks are.
void RackSteps::measure() {
  if (m_steps.ranks() < 4 || m_steps.over()) {
    return; // of two or three machines, the pairs say everything
  }
  std::vector<int> order(found.rack_of.size());
  std::iota(order.begin(), order.end(), 0);
  note_bisection(k_bisection_by_order, halves_of(order), "halves against each other");
  for (int i = 0; i < 2; ++i) {
    note_bisection(k_bisection_random, halves_of(shuffled(m_steps.ranks(), m_steps.random())),
                   "halves against each other");
  }
  find();
  log(LogLevel::debug, "racks of the ranks: {}", fmt::join(found.rack_of, " "));
  if (count() > 1) {
    note_bisection(k_bisection_by_racks, rack_bisection(found.rack_of), "racks against each other");
    measure_uplinks();
  }
}

void RackSteps::find() {
  constexpr double k_window = 0.2;
  const RackSearch search = search_racks(
      m_pairs.found.rounds, m_pairs.found.port_seen, m_steps.random(),
      [&](const Pairing& pairs) {
        return m_pairs.measure_round(pairs, "racks", m_pairs.found.part, k_window).first;
      },
      [&] { return m_steps.over(); });
  found.rack_of = search.rack_of;
  constexpr const char* k_disturbed =
      "probe again when nothing else uses the machines and their network";
  if (count() < search.looked_like) {
    found.doubt =
        fmt::format("what looked like {} racks counts as {}, as rates between them were low "
                    "and as low where no uplink is in the way; {}",
                    search.looked_like, count(), k_disturbed);
  } else if (!search.settled) {
    found.doubt =
        m_steps.over()
            ? fmt::format("the {} ended before the {} racks were checked; give a "
                          "longer --time",
                          to_text(m_steps.budget()), count())
            : fmt::format("rates between machines changed from check to check; {}", k_disturbed);
  }
}

void RackSteps::measure_uplinks() {
  for (int rack = 0; rack < count() && !m_steps.over(); ++rack) {
    // With two racks, both uplinks carry the same traffic: what limits it limits both.
    found.uplinks[rack] = rack == 1 && count() == 2 ? found.uplinks[0] : uplink_samples(rack);
  }
}

std::vector<double> RackSteps::uplink_samples(int rack) {
  return m_pairs.measure_round(out_of_rack(found.rack_of, rack), "uplinks", part(), 0.5).second;
}

Pairing RackSteps::ports_of_rack(int rack) const {
  Pairing ports;
  for (int rank = 0; rank < m_steps.ranks(); ++rank) {
    if (found.rack_of[at(rank)] == rack) {
      ports.emplace_back(rank, rank);
    }
  }
  return ports;
}

std::vector<Passage> RackSteps::passages() const {
  std::vector<Passage> all;
  for (const BisectionResult& b : found.bisections) {
    all.push_back({b.pairs, median_above_zero(b.samples)});
  }
  for (const auto& [rack, samples] : found.uplinks) {
    all.push_back({ports_of_rack(rack), median_above_zero(samples)});
  }
  return all;
}

void RackSteps::confirm(const std::vector<double>& port) {
  const auto confirm = [&](std::vector<double>& samples, const Pairing& ports, const auto& again) {
    const double before = median_above_zero(samples);
    if (m_steps.over() || before <= (1 + k_above_noise) * full_bisection(ports, port)) {
      return;
    }
    std::vector<double> now = again();
    if (const double rate = median_above_zero(now); rate > 0 && rate < before) {
      samples = std::move(now);
    }
  };
  for (BisectionResult& b : found.bisections) {
    confirm(b.samples, b.pairs,
            [&] { return m_pairs.measure_round(b.pairs, "halves again", part(), 0.3).second; });
  }
  for (auto& [rack, samples] : found.uplinks) {
    confirm(samples, ports_of_rack(rack), [&, of = rack] { return uplink_samples(of); });
  }
}

} // namespace reckon
