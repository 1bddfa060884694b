// SPDX-License-Identifier: Apache-2.0
#include "compare/facts.hpp"
#include "compare/follow.hpp"
#include "compare/measured.hpp"
#include "compare/members.hpp"
#include "documents/cells.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <vector>

namespace reckon {
namespace {

using Machines = std::vector<SameMachines>;

std::string status_text(const Cell& cell) {
  const std::string name(name_of(cell.status));
  return cell.reason.empty() ? name : fmt::format("{}: {}", name, cell.reason);
}

/// Measured only of several machines: pairs, ports, racks. The ids of places inside one have a '/'.
bool is_between_machines(const CellKey& key) {
  bool between = false;
  for (const CellCase& c : cell_cases()) {
    if (key.test == c.name && c.on == MeasuredOn::machine) {
      return false;
    }
    between = between || (key.test == c.name && c.on == MeasuredOn::cluster);
  }
  return between && key.from.find('/') == std::string::npos;
}

bool is_noisy(const Cell& a, const Cell& b) {
  return a.status == CellStatus::noisy || b.status == CellStatus::noisy;
}

Difference cell_difference(const CellKey& key, const Cell* before, const Cell* after) {
  const auto side = [](const Cell* cell) {
    if (cell == nullptr) {
      return Side{};
    }
    return cell->has_value() ? number_side(cell->p50, cell->unit) : text_side(status_text(*cell));
  };
  const Cell& any = before != nullptr ? *before : *after;
  Difference d = difference("cell", key.test, key.text(), side(before), side(after),
                            any.unit == k_seconds ? Better::lower : Better::higher);
  for (const std::string& id : {key.from, key.to}) {
    if (!id.empty()) {
      d.places.push_back(id);
    }
  }
  return d;
}

double tolerance_of(const Cell& cell, const CompareOptions& options) {
  return !is_between_machines(cell.key) ? options.machine_tolerance
         : cell.unit == k_seconds       ? options.latency_tolerance
                                        : options.bandwidth_tolerance;
}

/// Two cells that both have a value.
void compare_values(Builder& out, Measured& measured, const CellKey& key, Difference d,
                    const Cell& a, const Cell& b, bool crowded) {
  const bool a_published = a.status == CellStatus::published;
  const bool b_published = b.status == CellStatus::published;
  if (a.unit != b.unit || a.bytes_convention != b.bytes_convention || a_published != b_published) {
    d.kind = "meaning";
    d.effect = Effect::neutral;
    d.note = "not the same quantity: one is published and the other measured, or the units or byte "
             "conventions differ";
    out.add(std::move(d));
    return;
  }
  const CompareOptions& options = out.options();
  const bool latency = a.unit == k_seconds, between = is_between_machines(key);
  d.kind = latency ? "latency" : "bandwidth";
  if (a_published) {
    if (beyond(a.p50, b.p50, options.exact_tolerance)) {
      out.add(std::move(d));
    }
    return;
  }
  // What processors lose to other programs is what that case is for; traffic between processes
  // needs several of them.
  const bool doubtful = key.test != k_processor_loop && ((crowded && !between) || is_noisy(a, b));
  const bool needs_all =
      key.test == k_fabric_latency || key.test == k_fabric_write || key.test == k_fabric_aggregate;
  measured.add(std::move(d), {.before = a.samples,
                              .after = b.samples,
                              .spread = std::max(a.spread, b.spread),
                              .tolerance = tolerance_of(a, options),
                              .rate = !latency,
                              .doubtful = doubtful,
                              .crowded = crowded && doubtful && (needs_all || is_noisy(a, b)),
                              // A sample between machines is a window of a tenth of a second.
                              .least = between ? 1 : options.least_samples,
                              .together = between && !key.to.empty() && key.test != k_pair_latency
                                              ? key.from + " -> " + key.to
                                              : ""});
}

/// Cells under keys that name machines as both profiles can: a cell of a group is one of each of
/// the sets of machines that the group falls into.
using CellsByKey = std::map<CellKey, const Cell*>;

CellsByKey cells_by_machines(const Profile& profile, const Machines& machines,
                             const MachineGroup* SameMachines::*side) {
  const MachineOf machine_of(profile);
  std::map<std::string, std::vector<const SameMachines*>> sets_of; // by group
  for (const SameMachines& set : machines) {
    if (set.*side != nullptr) {
      auto& sets = sets_of[(set.*side)->id];
      if (set.before != nullptr && set.after != nullptr) { // else it came or went as a whole
        sets.push_back(&set);
      }
    }
  }
  CellsByKey cells;
  for (const Cell& cell : profile.cells) {
    const MachineOf::Place from = machine_of.of(cell.key.from), to = machine_of.of(cell.key.to);
    CellKey key = cell.key;
    // A group's peer stands for any machine unless no other was ever in that group.
    if (!to.group.empty() && to.group != from.group) {
      const auto& sets = sets_of.at(to.group);
      key.to = sets.size() == 1 && sets[0]->whole ? sets[0]->name + to.rest : "";
    }
    if (from.group.empty()) {
      cells.emplace(key, &cell);
      continue;
    }
    for (const SameMachines* const set : sets_of.at(from.group)) {
      key.from = set->name + from.rest;
      if (to.group == from.group) {
        key.to = set->whole || !to.rest.empty() ? set->name + to.rest : "";
      }
      cells.emplace(key, &cell);
    }
  }
  return cells;
}

/// The key without what the probe tuned: how many writes are in flight, and, between machines, how
/// long those are that make a rate.
CellKey untuned(const CellKey& key, const Cell& cell) {
  CellKey loose = key;
  loose.in_flight = 0;
  if (cell.unit == k_bytes_per_second && is_between_machines(key)) {
    loose.bytes = 0;
  }
  return loose;
}

using Sides = std::pair<const Cell*, const Cell*>;

/// Cells of equal keys. Another choice of what is tuned must not hide what a link does: cells that
/// are alone in their document but for that are one pair too, under the key without it.
std::map<CellKey, Sides> matched(const CellsByKey& before, const CellsByKey& after) {
  std::map<CellKey, Sides> all;
  for (const auto& [key, cell] : before) {
    all[key].first = cell;
  }
  for (const auto& [key, cell] : after) {
    all[key].second = cell;
  }
  using Alone = std::vector<CellKey>;
  std::map<CellKey, std::pair<Alone, Alone>> alone;
  for (const auto& [key, sides] : all) {
    if (sides.second == nullptr) {
      alone[untuned(key, *sides.first)].first.push_back(key);
    } else if (sides.first == nullptr) {
      alone[untuned(key, *sides.second)].second.push_back(key);
    }
  }
  for (const auto& [loose, keys] : alone) {
    if (keys.first.size() == 1 && keys.second.size() == 1) {
      const Sides sides{all[keys.first[0]].first, all[keys.second[0]].second};
      all.erase(keys.first[0]);
      all.erase(keys.second[0]);
      all.emplace(loose, sides);
    }
  }
  return all;
}

/// Which sizes of each curve (a key without bytes and in_flight) have a value in one document.
using Sizes = std::map<CellKey, std::set<std::uint64_t>>;

CellKey curve_of(CellKey key) {
  key.bytes = 0;
  key.in_flight = 0;
  return key;
}

Sizes sizes_of(const CellsByKey& cells) {
  Sizes out;
  for (const auto& [key, cell] : cells) {
    if (cell->has_value() && key.bytes > 0) {
      out[curve_of(key)].insert(key.bytes);
    }
  }
  return out;
}

/// A probe measures a curve at more sizes where its slope changes, at others each time. A size that
/// the other document has in between its own is no loss and no gain; the curve's ends and a curve
/// that is not there are.
bool is_refinement(const CellKey& key, const Sizes& other) {
  constexpr std::size_t k_least_sizes = 3;
  const auto curve = other.find(curve_of(key));
  return curve != other.end() && curve->second.size() >= k_least_sizes &&
         *curve->second.begin() < key.bytes && key.bytes < *curve->second.rbegin();
}

/// Moves differences of cells to the undecided ones that are alone on their curve: the sizes next
/// to theirs, which the same way serves, are as they were. A disturbance lasts as long as a cell or
/// two, and where a process finds its memory makes one size faster than another. Between machines
/// the largest size stays, unless it is noisy: it alone may have the port's rate.
class Curves {
public:
  Curves(const std::map<CellKey, Sides>& cells, const CompareOptions& options) {
    for (const auto& [key, sides] : cells) {
      const auto& [a, b] = sides;
      if (key.bytes > 0 && a != nullptr && b != nullptr && a->has_value() && b->has_value()) {
        const double tolerance = tolerance_of(*a, options);
        auto& curve = m_curves[curve_of(key)];
        const bool between = is_between_machines(key);
        if (between && !curve.empty()) { // sizes ascend
          curve.back().doubtful = true;
        }
        curve.push_back({key.text(), beyond(a->p50, b->p50, tolerance) ? b->p50 - a->p50 : 0,
                         !between || is_noisy(*a, *b)});
        m_place[curve.back().where] = {&curve, curve.size() - 1};
      }
    }
  }
  void settle(Comparison& comparison) const {
    const auto alone = [&](const Difference& d) { return is_alone(d); };
    auto& all = comparison.differences;
    const auto first = std::stable_partition(all.begin(), all.end(), std::not_fn(alone));
    for (auto it = first; it != all.end(); ++it) {
      it->note += "; the neighbouring sizes did not change";
      comparison.undecided.push_back(std::move(*it));
    }
    all.erase(first, all.end());
  }

private:
  struct Point {
    std::string where;
    double change; ///< 0: within the tolerance
    bool doubtful; ///< where it is alone
  };
  [[nodiscard]] bool is_alone(const Difference& d) const {
    constexpr std::size_t k_least_sizes = 3;
    const auto place = m_place.find(d.where);
    if (place == m_place.end() || place->second.first->size() < k_least_sizes) {
      return false;
    }
    const std::vector<Point>& curve = *place->second.first;
    const std::size_t i = place->second.second;
    if (!curve[i].doubtful) {
      return false;
    }
    const auto moved = [&](std::size_t other) {
      return other < curve.size() && curve[other].change * curve[i].change > 0;
    };
    return !moved(i - 1) && !moved(i + 1); // 0 - 1 is no place
  }

  std::map<CellKey, std::vector<Point>> m_curves;
  std::map<std::string, std::pair<const std::vector<Point>*, std::size_t>> m_place;
};

/// What one profile has of cells and the other has not.
class Coverage {
public:
  explicit Coverage(Builder& out) : m_out(out) {}
  /// One of them at most.
  void add(const CellKey& key, const Cell* before, const Cell* after) {
    if (before == nullptr && after == nullptr) {
      return;
    }
    const Cell& cell = before != nullptr ? *before : *after;
    if (cell.status == CellStatus::published) { // nobody forgot to measure it
      Difference d = cell_difference(key, before, after);
      m_out.add(std::move(d));
    } else if (cell.has_value()) {
      (before != nullptr ? m_before : m_after).emplace(&cell, key.text());
    }
  }
  /// A cell of a group that was compared for some of its machines is not lost.
  void settle(const std::set<const Cell*>& compared) {
    for (auto& [cells, list] : {std::pair(&m_before, &Comparison::only_before),
                                std::pair(&m_after, &Comparison::only_after)}) {
      std::set<std::string> texts;
      for (auto& [cell, text] : *cells) {
        if (!compared.contains(cell)) {
          texts.insert(std::move(text));
        }
      }
      (m_out.result().*list).assign(texts.begin(), texts.end());
    }
  }

private:
  Builder& m_out;
  std::map<const Cell*, std::string> m_before, m_after;
};

void compare_cells(Builder& out, const Profile& before, const Profile& after,
                   const Machines& machines) {
  Measured measured(out);
  Coverage coverage(out);
  const CellsByKey a_cells = cells_by_machines(before, machines, &SameMachines::before);
  const CellsByKey b_cells = cells_by_machines(after, machines, &SameMachines::after);
  const Sizes sizes_before = sizes_of(a_cells), sizes_after = sizes_of(b_cells);
  // The probe says so in its context where it was much.
  const bool crowded = before.context.contains("disturbed") || after.context.contains("disturbed");
  std::set<const Cell*> compared;
  const std::map<CellKey, Sides> cells = matched(a_cells, b_cells);
  for (const auto& [key, sides] : cells) {
    const auto& [a, b] = sides;
    if (a == nullptr || b == nullptr) {
      if (!is_refinement(key, a == nullptr ? sizes_before : sizes_after)) {
        coverage.add(key, a, b);
      }
      continue;
    }
    out.compared();
    const auto skipped = [](const Cell& cell) { return cell.status == CellStatus::skipped; };
    if (a->has_value() && b->has_value()) {
      compared.insert({a, b});
      Difference d = cell_difference(key, a, b);
      if (a->key.in_flight != b->key.in_flight) {
        d.note =
            fmt::format("{} and {} writes in flight", std::min(a->key.in_flight, b->key.in_flight),
                        std::max(a->key.in_flight, b->key.in_flight));
      }
      compare_values(out, measured, key, std::move(d), *a, *b, crowded);
    } else if (skipped(*a) || skipped(*b)) {
      coverage.add(key, skipped(*a) ? nullptr : a, skipped(*b) ? nullptr : b);
    } else if (a->status != b->status) {
      Difference d = cell_difference(key, a, b);
      d.kind = "status";
      d.effect = a->has_value() == b->has_value() ? Effect::neutral
                 : b->has_value()                 ? Effect::better
                                                  : Effect::worse;
      out.add(std::move(d));
    }
  }
  measured.settle();
  Curves(cells, out.options()).settle(out.result());
  coverage.settle(compared);
}

/// An object of a machine, or a link between two of them, by their ids without the machine's.
struct Part {
  std::string name;
  std::vector<std::string> ends;
  Fact fact;
};
using PartsByGroup = std::map<std::string, std::vector<Part>>;

PartsByGroup parts_of(const Profile& profile, const Fact& all, bool other_hosts) {
  const MachineOf machine_of(profile);
  const auto inside = [&](const std::string& id) {
    const MachineOf::Place place = machine_of.of(id);
    return place.group.empty() ? id : place.rest.empty() ? "machine" : place.rest.substr(1);
  };
  const Fact& topology = *all.find("topology");
  PartsByGroup parts;
  for (std::size_t i = 0; i < profile.topology.objects.size(); ++i) {
    const TopologyObject& object = profile.topology.objects[i];
    const std::string group = machine_of.of(object.id).group;
    Fact fact = topology.find("objects")->members[i].fact;
    for (auto& [key, value] : fact.members) {
      if (key == "parent" && !object.parent.empty()) {
        value.value.text = inside(object.parent);
      } else if (key == "name" && object.id == group && other_hosts) {
        value.value = {}; // the host's
      }
    }
    Fact processors;
    processors.whole = true;
    processors.value = number_side(static_cast<double>(object.cpus.size()), "");
    fact.members.push_back({"processors", std::move(processors)});
    parts[group].push_back({inside(object.id), {inside(object.id)}, std::move(fact)});
  }
  for (std::size_t i = 0; i < profile.topology.links.size(); ++i) {
    const PeerLink& link = profile.topology.links[i];
    const std::vector<std::string> ends{inside(link.from), inside(link.to)};
    parts[machine_of.of(link.from).group].push_back(
        {fmt::format("{} - {} {}", ends[0], ends[1], name_of(link.kind)), ends,
         topology.find("links")->members[i].fact});
  }
  return parts;
}

void compare_machines(Builder& out, const Profile& before, const Profile& after,
                      const Machines& machines, bool other_hosts) {
  const Fact a = facts_of(before), b = facts_of(after);
  PartsByGroup a_parts = parts_of(before, a, other_hosts),
               b_parts = parts_of(after, b, other_hosts);
  const auto group = [](const Fact& all, const MachineGroup* machine) {
    return machine != nullptr ? all.find("machines")->find(machine->id) : nullptr;
  };
  auto& differences = out.result().differences;
  for (const SameMachines& set : machines) {
    std::size_t first = differences.size();
    /// What was found since is about these parts of the machines.
    const auto are_about = [&](const std::vector<std::string>& ends) {
      for (; first < differences.size(); ++first) {
        for (const std::string& end : ends) {
          differences[first].places.push_back(end.empty() ? set.name : set.name + "/" + end);
        }
      }
    };
    compare_facts(out, "machines/*", "machines/" + set.name, group(a, set.before),
                  group(b, set.after));
    if (set.before == nullptr || set.after == nullptr) {
      are_about({""});
      continue;
    }
    if (set.whole) {
      out.count("fact", "machines", fmt::format("machines/{}/count", set.name),
                static_cast<double>(set.before->count), static_cast<double>(set.after->count), "",
                Better::higher);
    }
    are_about({""});
    for (const auto& [name, sides] :
         paired(a_parts[set.before->id], b_parts[set.after->id], &Part::name)) {
      const auto fact = [](const Part* part) { return part != nullptr ? &part->fact : nullptr; };
      const Part& any = sides.first != nullptr ? *sides.first : *sides.second;
      compare_facts(out, any.ends.size() > 1 ? "topology/links/*" : "topology/objects/*",
                    fmt::format("topology/{}/{}", set.name, name), fact(sides.first),
                    fact(sides.second));
      are_about(any.ends);
    }
  }
  compare_facts(out, "endpoint", "endpoint", a.find("endpoint"), b.find("endpoint"));
}

/// "m0/nic0 mtu" -> its value; of several files all values.
std::map<std::string, std::string> settings_of(const Profile& profile) {
  std::map<std::string, std::string> texts;
  for (const Setting& s : profile.settings) {
    std::string& text =
        texts[fmt::format("{} {}{}{}", s.place, s.name, s.machine.empty() ? "" : " of ", s.machine)];
    text += (text.empty() ? "" : ", ") + s.value;
  }
  return texts;
}

} // namespace

Comparison compare(const Profile& before, const Profile& after, const CompareOptions& options) {
  Builder out("profile", options);
  const auto others = other_machines(before, after);
  if (others) {
    out.warn(*others);
  }
  out.causes_from("context", before.context, after.context);
  if (before.source != after.source) {
    out.cause("source", text_side(before.source), text_side(after.source));
  }
  out.causes_from("settings", settings_of(before), settings_of(after));
  const Machines machines = same_machines(before, after);
  compare_machines(out, before, after, machines, others.has_value());
  compare_cells(out, before, after, machines);
  std::map<std::string, std::string> set_of;
  for (const SameMachines& set : machines) {
    for (const std::string& member : set.members) {
      set_of[member] = set.name;
    }
  }
  tell_what_follows(out.result(), set_of);
  return std::move(out).finish();
}

} // namespace reckon
