// SPDX-License-Identifier: Apache-2.0
#include "core/csv.hpp"
#include "core/name_ranges.hpp"
#include "documents/cells.hpp"
#include "documents/contention.hpp"
#include "stats/rank_test.hpp"
#include "topology/numa.hpp"
#include "topology/paths.hpp"
#include "verdict/checks.hpp"
#include "verdict/odd_ones.hpp"
#include "verdict/suspects.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace reckon::verdict_detail {
namespace {

// Latencies of equal parts differ by more than their rates.
constexpr double k_latency_tolerance = 0.25;
/// Others' work alone may take so much of a cell that the probe calls noisy.
constexpr double k_noisy_tolerance = 0.5;
constexpr double k_least_spreads = 3;
/// Of one false alarm in a group of cells.
constexpr double k_alpha = 0.01;

struct Place {
  std::string kind; ///< equal for places that are alike; empty: of no known kind
  const TopologyObject* object = nullptr;
  std::string rack;
};

using Group = std::vector<const Cell*>;

double tolerance_of(const Group& group) {
  double tolerance = group.front()->unit == k_seconds ? k_latency_tolerance : k_rate_tolerance;
  for (const Cell* cell : group) {
    tolerance = std::max(tolerance, k_least_spreads * cell->spread);
    if (cell->status == CellStatus::noisy) {
      tolerance = std::max(tolerance, k_noisy_tolerance);
    }
  }
  return std::min(tolerance, 0.9);
}

/// Whether the samples of a cell do not tell it from those of others, one of `group` cells.
bool is_noise(const Cell& cell, const RankedSamples& others, std::size_t group) {
  const double alpha = k_alpha / static_cast<double>(group);
  const auto p = rank_test(cell.samples, others, alpha);
  return p ? *p >= alpha : cell.status == CellStatus::noisy;
}

class Measured {
public:
  Measured(const Profile& profile, Verdict& verdict) : m_profile(profile), m_verdict(verdict) {
    for (const MachineGroup& machine : profile.machines) {
      const Place place{fmt::format("machine of {} cores", machine.cores), nullptr, machine.rack};
      m_places.emplace(machine.id, place);
      for (const std::string& member : machine.members) {
        m_places.emplace(member, place);
      }
    }
    for (const TopologyObject& o : profile.topology.objects) {
      if (o.kind != ObjectKind::machine && o.kind != ObjectKind::core) {
        m_places.emplace(o.id, Place{kind_of(o), &o, ""});
      }
    }
    for (const Cell& cell : profile.cells) {
      if (cell.key.test == k_rail_bandwidth && cell.key.operation != k_rails_at_once) {
        add_port(cell.key.from);
        add_port(cell.key.to);
      }
    }
  }

  void check() {
    for (const auto& [key, group] : groups()) {
      if (are_pairs(*group.front())) {
        pairs(group);
        continue;
      }
      const std::set<std::string> odd_from = odd_places(group, &CellKey::from, {});
      std::set<std::string> odd = odd_places(group, &CellKey::to, odd_from);
      odd.insert(odd_from.begin(), odd_from.end());
      odd_pairs(group, odd);
    }
    copies();
    tell_next_pairs();
  }

private:
  static std::string kind_of(const TopologyObject& o) {
    std::string kind(name_of(o.kind));
    switch (o.kind) {
    case ObjectKind::gpu:
      return kind + " " + o.name;
    case ObjectKind::nic:
      return kind + " " + make_of(o);
    case ObjectKind::numa_node:
      return fmt::format("{} of {} processors", kind, o.cpus.size());
    default:
      return kind;
    }
  }

  /// One end of a rail. Members of a group have one tree, so that it is no object of it.
  void add_port(const std::string& id) {
    const TopologyObject* const nic = nic_of(m_profile, id);
    const auto machine = m_places.find(id.substr(0, id.find('/')));
    m_places.emplace(id,
                     Place{fmt::format("port of {:g} bytes/s",
                                       nic == nullptr ? 0 : nic->link_bytes_per_second.value_or(0)),
                           nullptr, machine == m_places.end() ? "" : machine->second.rack});
  }

  [[nodiscard]] const Place* place(const std::string& id) const {
    const auto found = m_places.find(id);
    return found == m_places.end() || found->second.kind.empty() ? nullptr : &found->second;
  }

  /// What makes pairs of such places alike; nullopt: they cannot be compared.
  [[nodiscard]] std::optional<std::string> relation(const std::string& from,
                                                    const std::string& to) const {
    const Place* const a = place(from);
    if (a == nullptr || to.empty()) {
      return a == nullptr ? std::nullopt : std::optional(a->kind);
    }
    const Place* const b = place(to);
    if (b == nullptr || (a->object == nullptr) != (b->object == nullptr)) {
      return std::nullopt;
    }
    std::string way = from == to ? "itself" : a->rack == b->rack ? "" : "another rack";
    if (from != to && a->object != nullptr) {
      const auto is_end = [](const TopologyObject& o) {
        return o.kind == ObjectKind::gpu || o.kind == ObjectKind::nic ||
               o.kind == ObjectKind::numa_node || o.kind == ObjectKind::memory_device;
      };
      if (is_end(*a->object) && is_end(*b->object) &&
          in_one_machine(m_profile.topology, from, to)) {
        const Path path = m_path(from, to);
        way = fmt::format("{} over {} links", path.text(), path.links.size());
      }
    }
    return fmt::format("{}, {}, {}", a->kind, b->kind, way);
  }

  /// Cells that measure the same thing of places that are alike; of sizes the one that most places
  /// have, the largest of those.
  [[nodiscard]] std::vector<std::pair<CellKey, Group>> groups() const {
    std::map<std::pair<CellKey, std::string>, std::map<std::uint64_t, Group>> by_size;
    for (const Cell& cell : m_profile.cells) {
      // Of collectives between two machines there is pair_bandwidth, too; of rails at once, each.
      if (!cell.has_value() || is_contention(cell.key) || cell.key.test == k_fabric_window ||
          cell.key.operation == k_rails_at_once ||
          (cell.key.test.starts_with("nccl_") && !cell.key.to.empty())) {
        continue;
      }
      if (const auto like = relation(cell.key.from, cell.key.to)) {
        CellKey key = cell.key;
        key.from.clear();
        key.to.clear();
        key.bytes = 0;
        key.in_flight = 0;
        by_size[{key, *like}][cell.key.bytes].push_back(&cell);
      }
    }
    std::vector<std::pair<CellKey, Group>> out;
    for (const auto& [key, sizes] : by_size) {
      const auto most =
          std::max_element(sizes.begin(), sizes.end(), [](const auto& a, const auto& b) {
            return std::pair(a.second.size(), a.first) < std::pair(b.second.size(), b.first);
          });
      if (most->second.size() > 1) {
        out.emplace_back(key.first, most->second);
      }
    }
    return out;
  }

  OddOnes judged(const Group& group) {
    m_verdict.checks[FindingKind::like] += group.size();
    return odd_cells(group);
  }

  /// `id`: of the place that is odd; empty: the cell's pair.
  void tell(const Cell& cell, const std::string& id, const OddOnes& odd, std::size_t others) {
    const double expected = cell.unit == k_seconds ? 1 / odd.expected : odd.expected;
    const std::string from = shown_place(m_profile, cell.key.from),
                      to = shown_place(m_profile, cell.key.to);
    m_verdict.findings.push_back(
        {.kind = FindingKind::like,
         .place = id.empty() ? to_place(from, to) : shown_place(m_profile, id),
         .what = setting_of(cell.key),
         .value = number_side(cell.p50, cell.unit),
         .expected = number_side(expected, cell.unit),
         .against = fmt::format("the median of {} like it", others),
         .remedy = remedy_for(m_profile, id, cell.key),
         .share = goodness(cell) / odd.expected});
  }

  /// Each place by the best of its cells: one that is slow with everybody. `known`: those that are
  /// told of already.
  std::set<std::string> odd_places(const Group& group, std::string CellKey::*end,
                                   const std::set<std::string>& known) {
    std::map<std::string, const Cell*> best;
    for (const Cell* cell : group) {
      const std::string& id = cell->key.*end;
      if (id.empty() || known.contains(cell->key.from)) {
        continue;
      }
      const Cell*& of = best[id];
      of = of == nullptr || goodness(*cell) > goodness(*of) ? cell : of;
    }
    if (best.size() < 2) {
      return {};
    }
    Group cells;
    for (const auto& [id, cell] : best) {
      cells.push_back(cell);
    }
    const OddOnes odd = judged(cells);
    std::set<std::string> found;
    for (const std::size_t i : odd.places) {
      const std::string& id = cells[i]->key.*end;
      tell(*cells[i], id, odd, cells.size() - odd.places.size());
      found.insert(id);
    }
    return found;
  }

  /// Pairs that are slow although both ends are as fast as others. Where every place has such a
  /// partner, the machine is built so.
  void odd_pairs(const Group& group, const std::set<std::string>& odd_places) {
    constexpr std::size_t k_least_pairs = 4;
    Group rest;
    std::set<std::string> places;
    for (const Cell* cell : group) {
      if (!cell->key.to.empty() && !odd_places.contains(cell->key.from) &&
          !odd_places.contains(cell->key.to)) {
        rest.push_back(cell);
        places.insert(cell->key.from);
      }
    }
    if (rest.size() < k_least_pairs) {
      return;
    }
    const OddOnes odd = judged(rest);
    std::set<std::string> slow;
    for (const std::size_t i : odd.places) {
      slow.insert(rest[i]->key.from);
    }
    if (slow.size() == places.size()) {
      return;
    }
    for (const std::size_t i : odd.places) {
      tell(*rest[i], "", odd, rest.size() - odd.places.size());
    }
  }

  /// Rates between machines, or between NICs of two machines.
  [[nodiscard]] bool are_pairs(const Cell& cell) const {
    const Place* const from = place(cell.key.from);
    return cell.unit == k_bytes_per_second && !cell.key.to.empty() &&
           cell.key.from != cell.key.to && place(cell.key.to) != nullptr &&
           (from->object == nullptr || from->object->kind == ObjectKind::nic);
  }

  void pairs(const Group& group) {
    const double tolerance = tolerance_of(group);
    std::vector<PairRate> rates;
    for (const Cell* cell : group) {
      rates.push_back({cell->key.from, cell->key.to, cell->p50});
    }
    const double expected = healthy_rate(rates, tolerance);
    const auto is_slow = [&](const Cell* cell) { return cell->p50 < (1 - tolerance) * expected; };
    std::vector<double> healthy;
    for (const Cell* cell : group) {
      if (!is_slow(cell)) {
        healthy.insert(healthy.end(), cell->samples.begin(), cell->samples.end());
      }
    }
    const RankedSamples ranked(std::move(healthy));
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (is_slow(group[i]) && is_noise(*group[i], ranked, group.size())) {
        rates[i].rate = expected;
      }
    }
    m_verdict.checks[FindingKind::like] += group.size();
    const PairVerdict found = judge_pairs(rates, tolerance);
    if (found.differ) {
      m_verdict.unknown.push_back(
          fmt::format("whether the ends of {} are meant to differ: half of them are slow, or a "
                      "path of each",
                      setting_of(group.front()->key)));
    }
    for (const Suspect& suspect : found.suspects) {
      tell(suspect, *group.front(), found.expected);
    }
    m_next.insert(found.next.begin(), found.next.end());
    note_common_end(rates);
  }

  /// A place that has a part in every pair makes all alike.
  void note_common_end(const std::vector<PairRate>& rates) {
    std::set<std::string> others;
    for (const std::string& place : {rates.front().a, rates.front().b}) {
      others.clear();
      for (const PairRate& pair : rates) {
        others.insert(pair.a == place ? pair.b : pair.b == place ? pair.a : "");
      }
      if (others.size() > 1 && !others.contains("")) {
        m_verdict.unknown.push_back(
            fmt::format("whether {} is slow, which is in every pair: {} with {} would tell",
                        shown_place(m_profile, place), shown_place(m_profile, *others.begin()),
                        shown_place(m_profile, *others.rbegin())));
      }
    }
  }

  void tell(const Suspect& suspect, const Cell& cell, double expected) {
    const bool path = !suspect.b.empty();
    std::vector<std::string> with;
    for (const std::string& other : suspect.with) {
      with.push_back(shown_place(m_profile, other));
    }
    const std::string against =
        path ? (suspect.certain ? "both ends are faster with others"
                                : "suspect: or one of its ends is slow")
        : suspect.certain
            ? fmt::format("slow with {}, which are faster with others", first_names(with))
        : with.empty() ? "suspect: measured only with what is slow"
                       : fmt::format("suspect: or its path to {}", with.front());
    const std::string from = shown_place(m_profile, suspect.a);
    m_verdict.findings.push_back(
        {.kind = suspect.certain ? FindingKind::like : FindingKind::suspect,
         .place = path ? to_place(from, shown_place(m_profile, suspect.b)) : from,
         .what = setting_of(cell.key),
         .value = number_side(suspect.rate, cell.unit),
         .expected = number_side(expected, cell.unit),
         .against = against,
         .remedy = suspect.certain ? remedy_for(m_profile, path ? "" : suspect.a, cell.key)
                                   : "one of these is slow: run the pairs below, then check again",
         .share = suspect.rate / expected});
  }

  void tell_next_pairs() {
    constexpr double k_usual_seconds = 10;
    NextPairs& next = m_verdict.next;
    for (const auto& round : rounds_of({m_next.begin(), m_next.end()})) {
      auto& pairs = next.rounds.emplace_back();
      for (const auto& [a, b] : round) {
        pairs.emplace_back(shown_place(m_profile, a), shown_place(m_profile, b));
      }
    }
    double seconds = 0;
    for (const auto& [name, value] : m_profile.context) {
      if (name.starts_with(k_seconds_of)) {
        seconds = std::max(seconds, finite_number(value).value_or(0));
      }
    }
    next.seconds_known = seconds > 0;
    next.seconds =
        static_cast<double>(next.rounds.size()) * (seconds > 0 ? seconds : k_usual_seconds);
  }

  /// Copies between a GPU and its own processor, and between GPUs whose links or switch they share,
  /// against the slowest link on their way.
  void copies() {
    for (const Cell& cell : m_profile.cells) {
      const std::string& test = cell.key.test;
      const bool host = test == k_host_to_device_ce || test == k_device_to_host_ce;
      const bool pair = test == k_device_write_ce || test == k_device_read_ce;
      const Place* const from = place(cell.key.from);
      const Place* const to = place(cell.key.to);
      if (!cell.has_value() || (!host && !pair) || from == nullptr || to == nullptr ||
          from->object == nullptr || to->object == nullptr || cell.key.state == "pageable" ||
          cell.key.state == "staged" || cell.key.from == cell.key.to) {
        continue;
      }
      const Topology& topology = m_profile.topology;
      if (!in_one_machine(topology, cell.key.from, cell.key.to)) {
        continue;
      }
      const Path path = m_path(cell.key.from, cell.key.to);
      const std::string& gpu = from->object->kind == ObjectKind::gpu ? cell.key.from : cell.key.to;
      const std::string& memory = gpu == cell.key.from ? cell.key.to : cell.key.from;
      const TopologyObject* const own = numa_node_of(topology, gpu);
      if (host ? own == nullptr || own->id != memory
               : path.path_class != PathClass::nv && path.path_class != PathClass::pix) {
        continue;
      }
      double least = 0;
      LinkEnd slowest;
      for (const LinkEnd& link : path.links) {
        const double rate = described_bytes_per_second(topology, link);
        if (rate > 0 && (least == 0 || rate < least)) {
          least = rate;
          slowest = link;
        }
      }
      if (least == 0) {
        continue;
      }
      ++m_verdict.checks[FindingKind::ceiling];
      const double allowed =
          cell.status == CellStatus::noisy ? k_least_of_link / 2 : k_least_of_link;
      if (cell.p50 < allowed * least) {
        m_verdict.findings.push_back({.kind = FindingKind::ceiling,
                                      .place = host ? gpu : to_place(cell.key.from, cell.key.to),
                                      .what = setting_of(cell.key),
                                      .value = number_side(cell.p50, cell.unit),
                                      .expected = number_side(k_least_of_link * least, cell.unit),
                                      .against = fmt::format("{:.0f} % of the link {}",
                                                             100 * k_least_of_link, slowest.text()),
                                      .remedy = remedy_for(m_profile, gpu, cell.key),
                                      .share = cell.p50 / (k_least_of_link * least)});
      }
    }
  }

  const Profile& m_profile;
  PathOf m_path = paths_of(m_profile.topology);
  Verdict& m_verdict;
  std::map<std::string, Place> m_places;
  std::set<PairOfPlaces> m_next;
};

} // namespace

double goodness(const Cell& cell) {
  return cell.unit == k_seconds ? 1 / cell.p50 : cell.p50;
}

OddOnes odd_cells(const std::vector<const Cell*>& group) {
  std::vector<double> values;
  for (const Cell* cell : group) {
    values.push_back(goodness(*cell));
  }
  OddOnes odd = odd_ones(values, tolerance_of(group));
  const std::set<std::size_t> is_odd(odd.places.begin(), odd.places.end());
  std::vector<double> others;
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (!is_odd.contains(i)) {
      others.insert(others.end(), group[i]->samples.begin(), group[i]->samples.end());
    }
  }
  const RankedSamples ranked(std::move(others));
  std::erase_if(odd.places,
                [&](std::size_t i) { return is_noise(*group[i], ranked, group.size()); });
  return odd;
}

void check_measured(const Profile& profile, Verdict& verdict) {
  Measured(profile, verdict).check();
}

} // namespace reckon::verdict_detail
