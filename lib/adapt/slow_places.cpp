// SPDX-License-Identifier: Apache-2.0
#include "adapt/slow_places.hpp"

#include "strategies/between.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

namespace reckon {
namespace {

using Kind = SlowKind;

/// Plays that only compare make no more pieces than these; ten plays then take a second or two.
constexpr double k_most_pieces = 20'000;
constexpr std::size_t k_most_places = 3, k_most_fits = 5;
/// A place that is this near its rate is none to look for.
constexpr double k_as_planned = 0.93;
/// What the places together must leave of the distance between seen and played, at most, and what
/// each must take away. Of two equal ones each alone explains little.
constexpr double k_left = 0.85, k_each = 0.12;
/// What one more place may leave of what those before it left: much of that is no place's.
constexpr double k_left_by_another = 0.7;
/// One way of a port is told from both where it comes so much nearer, and a pair from its port
/// where it is longer busy than others of the port by so much; so is one more port from the others.
constexpr double k_one_way = 0.75, k_one_pair = 2, k_one_port = 1.25;
/// A delay makes much the same longer as a slow port: it is one where it comes as near, and the
/// shortest writes say so.
constexpr double k_as_likely = 1.2;

double seconds(std::int64_t ns) {
  return static_cast<double>(ns) * 1e-9;
}

/// Length of the union of intervals.
double covered(std::vector<std::pair<std::int64_t, std::int64_t>> intervals) {
  std::sort(intervals.begin(), intervals.end());
  std::int64_t sum = 0, until = std::numeric_limits<std::int64_t>::min();
  for (const auto& [begin, end] : intervals) {
    sum += std::max<std::int64_t>(0, end - std::max(begin, until));
    until = std::max(until, end);
  }
  return seconds(sum);
}

using Stations = std::set<std::uint32_t>;

/// The first, or the last, stations of a rank's ways.
Stations own_stations(const StationNetwork& network, std::size_t rank, bool out) {
  Stations stations;
  const auto add = [&](const StationPaths& paths) {
    for (std::size_t peer = 0; peer < paths.size(); ++peer) {
      const std::vector<std::uint32_t>& path = out ? paths[rank][peer] : paths[peer][rank];
      if (peer != rank && !path.empty()) {
        stations.insert(out ? path.front() : path.back());
      }
    }
  };
  add(network.paths);
  for (const StationPaths& paths : network.lane_paths) {
    add(paths);
  }
  return stations;
}

double slowest(const StationNetwork& network, const auto& stations) {
  double rate = std::numeric_limits<double>::infinity();
  for (const std::uint32_t station : stations) {
    rate = std::min(rate, network.rate_of(station));
  }
  return rate;
}

/// All ranks share one station: the memory of their machine.
bool one_station(const StationNetwork& network) {
  return network.station_bytes_per_s.size() == 1;
}

/// A plan on a network with slow places.
class Scene {
public:
  Scene(const Schedule& schedule, const PlanNetwork& network)
      : m_schedule(schedule), m_network(network), m_ranks(schedule.ranks.size()),
        m_op_factor(m_ranks, 1) {
    double bytes = 0;
    for (const RankProgram& rank : schedule.ranks) {
      for (const LaneProgram& lane : rank.lanes) {
        for (const Op& op : lane.ops()) {
          bytes += op.kind == OpKind::write ? static_cast<double>(op.bytes) : 0;
        }
      }
    }
    m_network.network = in_pieces(std::move(m_network.network), bytes, k_most_pieces);
  }

  void slow_down(const SlowPlace& place) {
    const StationNetwork& network = m_network.network;
    switch (place.kind) {
    case Kind::port:
    case Kind::sending:
    case Kind::receiving: {
      Stations stations;
      if (place.kind != Kind::receiving) {
        stations.merge(own_stations(network, place.rank, true));
      }
      if (place.kind != Kind::sending) {
        stations.merge(own_stations(network, place.rank, false));
      }
      scale(stations, place.factor);
      break;
    }
    case Kind::pair:
      narrow(place.rank, place.peer, place.factor * planned_rate(m_network, place));
      break;
    case Kind::station:
      scale({static_cast<std::uint32_t>(place.station)}, place.factor);
      break;
    case Kind::every_port:
      for (std::uint32_t s = 0; s < network.station_bytes_per_s.size(); ++s) {
        scale({s}, place.factor);
      }
      break;
    case Kind::processors:
      m_op_factor[place.rank] /= place.factor;
      if (one_station(network)) { // there a processor copies what a rank writes
        const double turn = network.station_bytes_per_s.front() / static_cast<double>(m_ranks);
        const std::uint32_t station = add_station(place.factor * turn);
        for (std::size_t peer = 0; peer < m_ranks; ++peer) {
          if (peer != place.rank) {
            m_network.network.paths[place.rank][peer].push_back(station);
          }
        }
      }
      break;
    case Kind::passes:
      if (!m_slowed) {
        m_slowed = m_schedule;
      }
      reckon::slow_down(*m_slowed, place.rank, 1 / place.factor);
      break;
    case Kind::delay:
      delay(place.rank, place.delay_s);
      break;
    }
  }

  [[nodiscard]] Observation play() const {
    const Schedule& schedule = m_slowed ? *m_slowed : m_schedule;
    RankTimelines timelines;
    static_cast<void>(reckon::play(
        schedule, m_network.network,
        [&](std::size_t rank, const Op& op) {
          return m_op_factor[rank] * m_network.cost(rank, op);
        },
        &timelines));
    return observe(schedule, timelines);
  }

private:
  void scale(const Stations& stations, double factor) {
    PlayNetwork& network = m_network.network;
    for (const std::uint32_t s : stations) {
      network.station_bytes_per_s[s] *= factor;
      if (!network.station_busy.empty() && !network.station_busy[s].empty()) {
        std::vector<std::pair<double, double>> points(network.station_busy[s].points().begin(),
                                                      network.station_busy[s].points().end());
        for (auto& [bytes, busy] : points) {
          busy /= factor;
        }
        network.station_busy[s] = BusyCurve(std::move(points));
      }
    }
  }

  void delay(std::size_t rank, double seconds) {
    PlayNetwork& network = m_network.network;
    if (network.path_latency_s.empty()) {
      network.path_latency_s.assign(m_ranks, std::vector<double>(m_ranks, network.latency_s));
    }
    for (std::size_t peer = 0; peer < m_ranks; ++peer) {
      network.path_latency_s[rank][peer] += seconds;
      network.path_latency_s[peer][rank] += seconds;
    }
  }

  std::uint32_t add_station(double bytes_per_s) {
    PlayNetwork& network = m_network.network;
    network.station_bytes_per_s.push_back(bytes_per_s);
    if (!network.station_busy.empty()) {
      network.station_busy.emplace_back();
    }
    return static_cast<std::uint32_t>(network.station_bytes_per_s.size() - 1);
  }

  /// Puts a station of its own behind the first of the pair's ways.
  void narrow(std::size_t from, std::size_t to, double bytes_per_s) {
    const std::uint32_t station = add_station(bytes_per_s);
    const auto add = [&](StationPaths& paths) {
      std::vector<std::uint32_t>& path = paths[from][to];
      path.insert(path.begin() + (path.empty() ? 0 : 1), station);
    };
    add(m_network.network.paths);
    for (StationPaths& paths : m_network.network.lane_paths) {
      add(paths);
    }
  }

  const Schedule& m_schedule;
  PlanNetwork m_network;
  std::size_t m_ranks;
  std::vector<double> m_op_factor; ///< by rank: times as long for its local ops
  std::optional<Schedule> m_slowed;
};

/// A place that could be slow, and what of an observation it makes longer.
struct Suspect {
  SlowPlace place;
  std::vector<std::size_t> lengthens; ///< places in Observation::busy_s, ascending
};

/// The whole counts as much as one pair.
double distance(const Observation& a, const Observation& b) {
  return std::transform_reduce(a.busy_s.begin(), a.busy_s.end(), b.busy_s.begin(),
                               std::abs(a.seconds - b.seconds), std::plus<>(),
                               [](double x, double y) { return std::abs(x - y); });
}

class Search {
public:
  Search(const Schedule& schedule, const PlanNetwork& network, const Observation& seen)
      : m_schedule(schedule), m_network(network), m_seen(seen), m_planned(play_with({})) {
    for (std::size_t i = 0; i < seen.busy_s.size(); ++i) {
      m_talk = m_talk || (i < seen.ranks * seen.ranks && m_planned.busy_s[i] > 0);
    }
    add_suspects();
  }

  Explanation run() {
    Explanation explanation;
    explanation.planned_seconds = explanation.explained_seconds = m_planned.seconds;
    explanation.measured_seconds = m_seen.seconds;
    Fit best = one_by_one();
    const Fit alike = fit({}, {{Kind::every_port}, {}}, m_planned);
    // One place is told from all of them by those that keep their rate.
    const double margin = best.places.size() > 1 ? 1.05 : 0.7;
    if (m_talk && alike.places.front().factor < k_as_planned &&
        alike.distance < margin * best.distance) {
      best = alike;
    }
    if (best.distance > k_left * distance(m_seen, m_planned)) {
      return explanation;
    }
    // What does not account for the time, give or take half of what is missing, is not why.
    const double miss = m_seen.seconds - m_planned.seconds;
    if (!best.places.empty() && std::abs(best.played.seconds - m_seen.seconds) < miss / 2) {
      explanation.places = best.places;
      explanation.explained_seconds = best.played.seconds;
    }
    return explanation;
  }

private:
  struct Fit {
    std::vector<SlowPlace> places;
    Observation played;
    double distance = 0;
    double off = 0; ///< the same, and what is off of the time at every rank: by this one chooses
  };

  [[nodiscard]] Observation play_with(const std::vector<SlowPlace>& places) const {
    Scene scene(m_schedule, m_network);
    for (const SlowPlace& place : places) {
      scene.slow_down(place);
    }
    return scene.play();
  }

  /// Suspects that lengthen the same are one: the first of them.
  void add(const SlowPlace& place, std::vector<std::size_t> lengthens) {
    std::erase_if(lengthens, [&](std::size_t i) { return m_planned.busy_s[i] <= 0; });
    std::sort(lengthens.begin(), lengthens.end());
    if (!lengthens.empty() && m_lengthened.insert(lengthens).second) {
      m_suspects.push_back({place, std::move(lengthens)});
    }
  }

  void add_suspects() {
    const std::size_t ranks = m_seen.ranks;
    const StationNetwork& network = m_network.network;
    // The narrowest first: in a ring what one rank sends is what another receives.
    for (std::size_t a = 0; a < ranks && !one_station(network); ++a) {
      for (std::size_t b = 0; b < ranks; ++b) {
        add({Kind::pair, a, b}, {m_seen.writes(a, b)});
      }
    }
    for (std::size_t r = 0; r < ranks; ++r) {
      std::vector<std::size_t> out, in;
      for (std::size_t peer = 0; peer < ranks; ++peer) {
        out.push_back(m_seen.writes(r, peer));
        in.push_back(m_seen.writes(peer, r));
      }
      if (one_station(network)) {
        out.push_back(m_seen.local(r));
        add({Kind::processors, r}, out);
      } else {
        std::vector<std::size_t> both = out;
        both.insert(both.end(), in.begin(), in.end());
        add({Kind::port, r}, both);
        add({Kind::sending, r}, out);
        add({Kind::receiving, r}, in);
        add({Kind::processors, r}, {m_seen.local(r)});
      }
      add({Kind::passes, r}, {m_seen.passes(r)});
    }
    for (std::size_t s = 0; s < network.station_bytes_per_s.size(); ++s) {
      std::vector<std::size_t> all;
      for (std::size_t a = 0; a < ranks; ++a) {
        for (std::size_t b = 0; b < ranks; ++b) {
          const auto& path = network.paths[a][b];
          if (std::find(path.begin(), path.end(), s) != path.end()) {
            all.push_back(m_seen.writes(a, b));
          }
        }
      }
      add({Kind::station, 0, 0, s}, all);
    }
  }

  /// How much longer than played the suspect's were busy; 1 where that is nothing.
  [[nodiscard]] double lengthening(const Suspect& suspect, const Observation& played) const {
    double seen = 0, was = 0;
    for (const std::size_t i : suspect.lengthens) {
      seen += m_seen.busy_s[i];
      was += played.busy_s[i];
    }
    return was > 0 ? std::max(1.0, seen / was) : 1;
  }

  /// What of the distance would go if all that the suspect lengthens were longer by one factor.
  [[nodiscard]] double relief(const Suspect& suspect, const Observation& played) const {
    const double longer = lengthening(suspect, played);
    double gone = 0;
    for (const std::size_t i : suspect.lengthens) {
      gone += std::abs(m_seen.busy_s[i] - played.busy_s[i]) -
              std::abs(m_seen.busy_s[i] - longer * played.busy_s[i]);
    }
    return gone;
  }

  [[nodiscard]] Fit played_fit(std::vector<SlowPlace> places, const SlowPlace& place) const {
    places.push_back(place);
    Fit fit{std::move(places), Observation(m_seen.ranks)};
    fit.played = play_with(fit.places);
    fit.distance = distance(m_seen, fit.played);
    fit.off = fit.distance +
              static_cast<double>(m_seen.ranks) * std::abs(fit.played.seconds - m_seen.seconds);
    return fit;
  }

  /// The suspect's factor with which, beside `places`, a play is nearest to what was seen.
  [[nodiscard]] Fit fit(const std::vector<SlowPlace>& places, const Suspect& suspect,
                        const Observation& played) const {
    const auto with = [&](double log_factor) {
      SlowPlace place = suspect.place;
      place.factor = std::exp(log_factor);
      return played_fit(places, place);
    };
    // What waits anyway hides some of the slowness.
    constexpr double k_hidden = 4;
    constexpr int k_steps = 8;
    const double least = -std::log(
        k_hidden * std::max(lengthening(suspect, played), m_seen.seconds / m_planned.seconds));
    const double step = -least / k_steps;
    Fit best = with(-step / 2);
    double at = -step / 2;
    for (int i = 1; i <= k_steps; ++i) {
      if (Fit next = with(-i * step); next.off < best.off) {
        best = std::move(next);
        at = -i * step;
      }
    }
    constexpr int k_halvings = 5;
    for (double width = step / 2; width > step / (1 << k_halvings); width /= 2) {
      const double middle = at;
      for (const double other : {middle - width, middle + width}) {
        if (Fit next = with(std::min(other, 0.0)); next.off < best.off) {
          best = std::move(next);
          at = std::min(other, 0.0);
        }
      }
    }
    return best;
  }

  /// The fit of one more place.
  [[nodiscard]] std::optional<Fit> one_more(const Fit& all) const {
    std::vector<std::pair<double, std::size_t>> by_relief;
    for (std::size_t i = 0; i < m_suspects.size(); ++i) {
      const SlowPlace& place = m_suspects[i].place;
      const bool found = std::ranges::any_of(all.places, [&](const SlowPlace& other) {
        return other.rank == place.rank && (of_port(other.kind) || other.kind == place.kind) &&
               (of_port(place.kind) || other.kind == place.kind) && other.peer == place.peer;
      });
      if (!found && stands_out(m_suspects[i], all)) {
        by_relief.emplace_back(-relief(m_suspects[i], all.played), i);
      }
    }
    std::sort(by_relief.begin(), by_relief.end());
    by_relief.resize(std::min(by_relief.size(), k_most_fits));
    std::optional<Fit> best;
    for (const auto& [gain, i] : by_relief) {
      Fit next = fit(all.places, m_suspects[i], all.played);
      if (!best || next.off < best->off) {
        best = std::move(next);
      }
    }
    if (!best) { // all were found before, or none stands out
      return best;
    }
    const SlowPlace found = best->places.back();
    const Suspect* const both = suspect_of(Kind::port, found.rank);
    if ((found.kind == Kind::sending || found.kind == Kind::receiving) && both != nullptr) {
      Fit port = fit(all.places, *both, all.played);
      if (port.distance < k_left * all.distance && best->off > k_one_way * port.off) {
        best = std::move(port);
      }
    }
    if (of_port(found.kind)) {
      std::optional<Fit> delay = delayed(found.rank, all);
      if (delay && delay->off < k_as_likely * best->off &&
          quickest_off(*delay, found.rank) < quickest_off(*best, found.rank)) {
        best = std::move(delay);
      }
    }
    return best;
  }

  /// A delay is part of each of the rank's writes, the shortest too, which a slow port carries, as
  /// it does the first ones of a burst, as soon as ever: they take it alone, or beside what they
  /// were planned to take.
  [[nodiscard]] std::optional<Fit> delayed(std::size_t rank, const Fit& all) const {
    double seen = std::numeric_limits<double>::infinity(), planned = seen;
    for (std::size_t peer = 0; peer < m_seen.ranks; ++peer) {
      for (const std::size_t i : {m_seen.writes(rank, peer), m_seen.writes(peer, rank)}) {
        seen = std::min(seen, m_seen.quickest_s[i]);
        planned = std::min(planned, all.played.quickest_s[i]);
      }
    }
    std::optional<Fit> best;
    for (const double delay : {seen, seen - planned}) {
      if (std::isfinite(delay) && delay > 0) {
        Fit fit = played_fit(all.places, {.kind = Kind::delay, .rank = rank, .delay_s = delay});
        if (!best || fit.off < best->off) {
          best = std::move(fit);
        }
      }
    }
    return best;
  }

  /// How far the rank's shortest writes are from those seen.
  [[nodiscard]] double quickest_off(const Fit& fit, std::size_t rank) const {
    double off = 0;
    for (std::size_t peer = 0; peer < m_seen.ranks; ++peer) {
      for (const std::size_t i : {m_seen.writes(rank, peer), m_seen.writes(peer, rank)}) {
        if (std::isfinite(m_seen.quickest_s[i])) {
          off += std::abs(m_seen.quickest_s[i] - fit.played.quickest_s[i]);
        }
      }
    }
    return off;
  }

  [[nodiscard]] const Suspect* suspect_of(Kind kind, std::size_t rank) const {
    const auto at = std::ranges::find_if(
        m_suspects, [&](const Suspect& s) { return s.place.kind == kind && s.place.rank == rank; });
    return at == m_suspects.end() ? nullptr : &*at;
  }

  /// Whether a pair was longer busy than others of the sender and of the receiver; whether a port,
  /// beside places already found, was longer busy than those of the other ranks. Others do.
  [[nodiscard]] bool stands_out(const Suspect& suspect, const Fit& all) const {
    const SlowKind kind = suspect.place.kind;
    const std::size_t from = suspect.place.rank, to = suspect.place.peer;
    const double longer = lengthening(suspect, all.played);
    if (of_port(kind) && !all.places.empty()) {
      for (const Suspect& other : m_suspects) {
        const bool known = std::ranges::any_of(
            all.places, [&](const SlowPlace& p) { return p.rank == other.place.rank; });
        if (other.place.kind == kind && other.place.rank != from && !known &&
            longer < k_one_port * lengthening(other, all.played)) {
          return false;
        }
      }
      return true;
    }
    if (kind != Kind::pair) {
      return true;
    }
    for (const Suspect* port : {suspect_of(Kind::sending, from), suspect_of(Kind::receiving, to)}) {
      if (port != nullptr) {
        Suspect others = *port;
        std::erase(others.lengthens, m_seen.writes(from, to));
        if (longer < k_one_pair * lengthening(others, all.played)) {
          return false;
        }
      }
    }
    return true;
  }

  [[nodiscard]] Fit one_by_one() const {
    const double at_first = distance(m_seen, m_planned);
    Fit all{{}, m_planned, at_first};
    while (all.places.size() < k_most_places) {
      std::optional<Fit> next = one_more(all);
      if (!next ||
          (next->places.back().factor > k_as_planned && next->places.back().kind != Kind::delay)) {
        break;
      }
      // What the places before took over from this one, they give back.
      for (std::size_t i = 0; i + 1 < next->places.size(); ++i) {
        std::vector<SlowPlace> others = next->places;
        std::rotate(others.begin(), others.begin() + 1, others.end());
        const SlowPlace again = others.back();
        others.pop_back();
        next = again.kind == Kind::delay ? played_fit(std::move(others), again)
                                         : fit(others, {again, {}}, m_planned);
      }
      if (next->distance > all.distance - k_each * at_first ||
          (!all.places.empty() && next->distance > k_left_by_another * all.distance)) {
        break;
      }
      all = *std::move(next);
    }
    return all;
  }

  static bool of_port(Kind kind) {
    return kind == Kind::port || kind == Kind::sending || kind == Kind::receiving;
  }

  const Schedule& m_schedule;
  const PlanNetwork& m_network;
  const Observation& m_seen;
  Observation m_planned;
  bool m_talk = false; ///< whether any rank writes to another
  std::vector<Suspect> m_suspects;
  std::set<std::vector<std::size_t>> m_lengthened; ///< by each of them
};

} // namespace

Observation observe(const Schedule& schedule, const RankTimelines& timelines) {
  const std::size_t ranks = schedule.ranks.size();
  Observation seen(ranks);
  const auto for_each_op = [&](auto visit) {
    for (std::size_t r = 0; r < ranks; ++r) {
      for (std::size_t l = 0; l < schedule.ranks[r].lanes.size(); ++l) {
        const std::span<const Op> ops = schedule.ranks[r].lanes[l].ops();
        for (std::size_t i = 0; i < ops.size(); ++i) {
          visit(r, l, ops[i], timelines[r][l][i]);
        }
      }
    }
  };
  // [rank][lane]: when each write arrived, by its tag; its sender has when it was posted.
  std::vector<std::vector<std::unordered_map<std::uint32_t, std::int64_t>>> arrivals(ranks);
  for (std::size_t r = 0; r < ranks; ++r) {
    arrivals[r].resize(schedule.ranks[r].lanes.size());
  }
  for_each_op([&](std::size_t r, std::size_t lane, const Op& op, const OpSpan& span) {
    seen.seconds = std::max(seen.seconds, seconds(span.end_ns));
    const double lasted = seconds(span.end_ns - span.begin_ns);
    if (op.kind == OpKind::await) {
      arrivals[r][lane][op.tag] = span.end_ns;
    } else if (op.kind == OpKind::delay) {
      seen.busy_s[seen.passes(r)] += lane == 0 ? lasted : 0; // all lanes have the same
    } else if (op.kind != OpKind::write) {
      seen.busy_s[seen.local(r)] += lasted;
    }
  });
  std::vector<std::vector<std::pair<std::int64_t, std::int64_t>>> under_way(ranks * ranks);
  for_each_op([&](std::size_t r, std::size_t lane, const Op& op, const OpSpan& span) {
    if (op.kind == OpKind::write) {
      const std::size_t pair = seen.writes(r, op.peer);
      const std::int64_t arrival = arrivals[op.peer][lane].at(op.tag);
      under_way[pair].emplace_back(span.begin_ns, arrival);
      seen.quickest_s[pair] = std::min(seen.quickest_s[pair], seconds(arrival - span.begin_ns));
    }
  });
  for (std::size_t pair = 0; pair < under_way.size(); ++pair) {
    seen.busy_s[pair] = covered(std::move(under_way[pair]));
  }
  return seen;
}

Explanation explain(const Schedule& schedule, const PlanNetwork& network, const Observation& seen) {
  return Search(schedule, network, seen).run();
}

double planned_rate(const PlanNetwork& network, const SlowPlace& place) {
  const StationNetwork& stations = network.network;
  switch (place.kind) {
  case Kind::port:
  case Kind::sending:
    return slowest(stations, own_stations(stations, place.rank, true));
  case Kind::receiving:
    return slowest(stations, own_stations(stations, place.rank, false));
  case Kind::pair:
    return slowest(stations, stations.paths[place.rank][place.peer]);
  case Kind::station:
    return stations.rate_of(static_cast<std::uint32_t>(place.station));
  case Kind::every_port:
    return slowest(stations, own_stations(stations, 0, true));
  case Kind::processors:
  case Kind::passes:
  case Kind::delay:
    break;
  }
  return 0;
}

} // namespace reckon
