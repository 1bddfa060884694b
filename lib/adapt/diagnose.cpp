// SPDX-License-Identifier: Apache-2.0
#include "adapt/diagnose.hpp"

#include "core/units.hpp"
#include "strategies/lower.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace reckon {
namespace {

using Kind = SlowPlace::Kind;

/// Puts places into words.
class Words {
public:
  Words(const PlanNetwork& network, const Report& report, const Observation& seen)
      : m_network(network), m_report(report), m_seen(seen) {
    for (const RankReport& rank : report.ranks) {
      m_hosts.insert(rank.host);
    }
  }

  [[nodiscard]] SlowPlaceReport report_of(const SlowPlace& place) const {
    SlowPlaceReport out;
    out.factor = place.factor;
    if (const double rate = planned_rate(m_network, place); rate > 0) {
      out.bytes_per_second = rate;
    }
    out.ranks = {place.rank};
    switch (place.kind) {
    case Kind::port:
      out.kind = "port";
      out.name = name(place.rank) + "'s port";
      break;
    case Kind::sending:
      out.kind = "sending";
      out.name = fmt::format("{}'s port, outward,", name(place.rank));
      break;
    case Kind::receiving:
      out.kind = "receiving";
      out.name = fmt::format("{}'s port, inward,", name(place.rank));
      break;
    case Kind::pair:
      out.kind = "pair";
      out.name = fmt::format("the way {} -> {}", name(place.rank), name(place.peer));
      out.ranks.push_back(place.peer);
      break;
    case Kind::station:
      out.kind = "station";
      out.name = m_network.stations[place.station];
      if (m_network.stations.size() == 1) {
        out.name = fmt::format("the {} of {}", out.name, m_report.ranks.front().host);
      }
      out.ranks.clear();
      break;
    case Kind::every_port:
      out.kind = "every_port";
      out.name = "every port";
      out.ranks.clear();
      break;
    case Kind::processors:
      out.kind = "processors";
      out.name = name(place.rank) + "'s processors";
      break;
    case Kind::passes:
      out.kind = "passes";
      out.name = name(place.rank) + "'s passes";
      break;
    }
    return out;
  }

  [[nodiscard]] std::string text(const SlowPlaceReport& place) const {
    if (place.kind == "passes") {
      return fmt::format("{} take {:.2f} times as long as planned", place.name, 1 / place.factor);
    }
    if (place.kind == "processors") {
      return fmt::format("{} work at {:.2f} of the profile's rate{}", place.name, place.factor,
                         taken(place.ranks.front()));
    }
    return fmt::format("{} {} {:.2f} of the profile's {}", place.name,
                       place.kind == "sending" || place.kind == "receiving" ? "carries" : "carries",
                       place.factor, to_text(Bandwidth::bytes_per_s(*place.bytes_per_second)));
  }

private:
  /// The host, where no other rank is on it.
  [[nodiscard]] std::string name(std::size_t rank) const {
    return m_hosts.size() == m_report.ranks.size() ? m_report.ranks[rank].host
                                                   : fmt::format("rank {}", rank);
  }

  /// Whether others took the processors away, or they are slow themselves.
  [[nodiscard]] std::string taken(std::uint64_t rank) const {
    const double lasted = m_seen.busy_s[m_seen.local(rank)];
    const double worked = m_report.ranks[rank].reduce_seconds;
    constexpr double k_much = 0.2;
    return lasted > 0 && 1 - worked / lasted > k_much
               ? fmt::format(" (others had them for {:.0f} % of its sums)",
                             100 * (1 - worked / lasted))
               : "";
  }

  const PlanNetwork& m_network;
  const Report& m_report;
  const Observation& m_seen;
  std::set<std::string> m_hosts;
};

} // namespace

Diagnosis diagnose(const Plan& plan, const Profile& profile, const Report& report,
                   const RankTimelines& timelines) {
  const Schedule schedule = lower(plan); // without the stragglers that were asked for
  const PlanNetwork network = network_of(plan, profile);
  const Observation seen = observe(schedule, timelines);
  const Explanation explanation = explain(schedule, network, seen);
  const Words words(network, report, seen);
  Diagnosis diagnosis;
  diagnosis.planned_seconds = explanation.planned_seconds;
  diagnosis.explained_seconds = explanation.explained_seconds;
  diagnosis.measured_seconds = explanation.measured_seconds;
  std::string found;
  for (const SlowPlace& place : explanation.places) {
    diagnosis.places.push_back(words.report_of(place));
    found += (found.empty() ? "" : "; ") + words.text(diagnosis.places.back());
  }
  const std::string measured = to_text(Seconds(diagnosis.measured_seconds));
  diagnosis.verdict =
      found.empty()
          ? fmt::format("no port, pair, memory or processor by itself explains {} instead of {}",
                        measured, to_text(Seconds(diagnosis.planned_seconds)))
          : fmt::format("{}: {} predicted so, {} measured", found,
                        to_text(Seconds(diagnosis.explained_seconds)), measured);
  return diagnosis;
}

} // namespace reckon
