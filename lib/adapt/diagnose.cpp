// SPDX-License-Identifier: Apache-2.0
#include "adapt/diagnose.hpp"

#include "core/units.hpp"
#include "documents/cells.hpp"
#include "network/pairs.hpp"
#include "strategies/lower.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {
namespace {

using Kind = SlowKind;

/// Puts places into words.
class Words {
public:
  Words(const Plan& plan, const PlanNetwork& network, const Report& report, const Observation& seen)
      : m_plan(plan), m_network(network), m_report(report), m_seen(seen) {
    for (const RankReport& rank : report.ranks) {
      m_hosts.insert(rank.host);
    }
  }

  [[nodiscard]] SlowPlaceReport report_of(const SlowPlace& place) const {
    SlowPlaceReport out;
    out.kind = place.kind;
    out.factor = place.factor;
    if (const double rate = planned_rate(m_network, place); rate > 0) {
      out.bytes_per_second = rate;
    }
    out.ranks = {place.rank};
    switch (place.kind) {
    case Kind::port:
      out.name = name(place.rank) + "'s port";
      break;
    case Kind::sending:
      out.name = fmt::format("{}'s port, outward,", name(place.rank));
      break;
    case Kind::receiving:
      out.name = fmt::format("{}'s port, inward,", name(place.rank));
      break;
    case Kind::pair:
      out.name = fmt::format("the way {} -> {}", name(place.rank), name(place.peer));
      out.ranks.push_back(place.peer);
      break;
    case Kind::station:
      out.name = m_network.stations[place.station];
      if (m_network.stations.size() == 1) {
        out.name = fmt::format("the {} of {}", out.name, m_report.ranks.front().host);
      }
      out.ranks.clear();
      break;
    case Kind::every_port:
      out.name = "every port";
      out.ranks.clear();
      break;
    case Kind::processors:
      out.name = name(place.rank) + (on_gpu(place.rank) ? "'s GPU" : "'s processors");
      break;
    case Kind::passes:
      out.name = name(place.rank) + "'s passes";
      break;
    case Kind::delay:
      out.name = name(place.rank) + "'s port";
      out.factor = 1;
      out.delay_seconds = place.delay_s;
      break;
    }
    return out;
  }

  [[nodiscard]] std::string text(const SlowPlaceReport& place) const {
    if (place.kind == Kind::delay) {
      return fmt::format("each write through {} takes {} longer than the profile says", place.name,
                         to_text(Seconds(*place.delay_seconds)));
    }
    if (place.kind == Kind::passes) {
      return fmt::format("{} take {:.2f} times as long as planned", place.name, 1 / place.factor);
    }
    if (place.kind == Kind::processors && on_gpu(place.ranks.front())) {
      return fmt::format("{} sums at {:.2f} of the profile's rate", place.name, place.factor);
    }
    if (place.kind == Kind::processors) {
      return fmt::format("{} work at {:.2f} of the profile's rate{}", place.name, place.factor,
                         taken(place.ranks.front()));
    }
    return fmt::format("{} carries {:.2f} of the profile's {}", place.name, place.factor,
                       to_text(Bandwidth::bytes_per_s(*place.bytes_per_second)));
  }

private:
  [[nodiscard]] bool on_gpu(std::size_t rank) const {
    return m_plan.ranks[rank].endpoint_kind == name_of(ObjectKind::gpu);
  }

  /// The host, where no other rank is on it.
  [[nodiscard]] std::string name(std::size_t rank) const {
    return m_hosts.size() == m_report.ranks.size() ? m_report.ranks[rank].host
                                                   : fmt::format("rank {}", rank);
  }

  /// Whose turn it was on the rank's processors while its sums waited for them; empty: they are
  /// slow themselves.
  [[nodiscard]] std::string taken(std::uint64_t rank) const {
    const double lasted = m_seen.busy_s[m_seen.local(rank)];
    const double worked = m_report.ranks[rank].reduce_seconds;
    constexpr double k_much = 0.2;
    return lasted > 0 && 1 - worked / lasted > k_much
               ? fmt::format(" (for {:.0f} % of the time of its sums they worked for {})",
                             100 * (1 - worked / lasted), others_beside(rank))
               : "";
  }

  /// Who shares a rank's machine. What other programs had is known where all ranks are on one
  /// machine; it was little there, else no place is looked for (disturbed()).
  [[nodiscard]] std::string_view others_beside(std::uint64_t rank) const {
    const auto here =
        std::ranges::count(m_report.ranks, m_report.ranks[rank].host, &RankReport::host);
    return m_hosts.size() == 1 ? "other ranks of this plan"
           : here == 1         ? "other programs"
                               : "other ranks of this plan or other programs";
  }

  const Plan& m_plan;
  const PlanNetwork& m_network;
  const Report& m_report;
  const Observation& m_seen;
  std::set<std::string> m_hosts;
};

/// With `factor` of its rate, or its time over that.
Cell scaled(Cell cell, double factor) {
  const double by = cell.unit == "seconds" ? 1 / factor : factor;
  for (double* const value : {&cell.min, &cell.p50, &cell.p99, &cell.max}) {
    *value *= by;
  }
  for (double& sample : cell.samples) {
    sample *= by;
  }
  return cell;
}

} // namespace

std::optional<Profile> with_slow_places(Profile profile, const Plan& plan,
                                        const std::vector<SlowPlaceReport>& places) {
  std::vector<std::string> machines;
  for (const PlanRank& rank : plan.ranks) {
    machines.push_back(rank.machine);
  }
  const std::vector<std::string> names = pair_names(profile, machines);
  const auto scales = [&](const SlowPlaceReport& place, const CellKey& key) {
    if (key.test == k_port_bandwidth && key.transport == plan.transport) {
      const bool of_rank = place.kind == Kind::port || place.kind == Kind::sending ||
                           place.kind == Kind::receiving; // a port has one rate for both ways
      return place.kind == Kind::every_port || (of_rank && (key.from == names[place.ranks[0]] ||
                                                            key.from == machines[place.ranks[0]]));
    }
    return (key.test == k_pair_write || key.test == k_pair_bandwidth) && place.kind == Kind::pair &&
           key.from == names[place.ranks[0]] && key.to == names[place.ranks[1]];
  };
  for (const SlowPlaceReport& place : places) {
    std::vector<Cell> changed;
    for (const Cell& cell : profile.cells) {
      if (cell.has_value() && scales(place, cell.key)) {
        changed.push_back(scaled(cell, place.factor));
        if (place.kind != Kind::every_port) {
          changed.back().key.from = names[place.ranks[0]]; // its own goes before its group's
        }
      }
    }
    if (changed.empty()) {
      return std::nullopt;
    }
    for (Cell& cell : changed) {
      std::erase_if(profile.cells, [&](const Cell& old) { return old.key == cell.key; });
      profile.cells.push_back(std::move(cell));
    }
  }
  return profile;
}

Diagnosis diagnose(const Plan& plan, const Profile& profile, const Report& report,
                   const RankTimelines& timelines) {
  const Schedule schedule = lower(plan); // without the stragglers that were asked for
  const PlanNetwork network = network_of(plan, profile);
  const Observation seen = observe(schedule, timelines);
  const Explanation explanation = explain(schedule, network, seen);
  const Words words(plan, network, report, seen);
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
          ? fmt::format("no single port, pair, memory or processor explains {} instead of {}",
                        measured, to_text(Seconds(diagnosis.planned_seconds)))
          : fmt::format("{}: {} predicted so, {} measured", found,
                        to_text(Seconds(diagnosis.explained_seconds)), measured);
  return diagnosis;
}

} // namespace reckon
