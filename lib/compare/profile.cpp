// SPDX-License-Identifier: Apache-2.0
#include "compare/build.hpp"
#include "compare/endpoint.hpp"
#include "compare/measured.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

namespace reckon {
namespace {

std::string status_text(const Cell& cell) {
  const std::string name(name_of(cell.status));
  return cell.reason.empty() ? name : fmt::format("{}: {}", name, cell.reason);
}

Difference cell_difference(std::string_view kind, const CellKey& key, const Cell* before,
                           const Cell* after) {
  const auto side = [](const Cell* cell) {
    if (cell == nullptr) {
      return Side{};
    }
    return cell->has_value() ? number_side(cell->p50, cell->unit) : text_side(status_text(*cell));
  };
  Difference d =
      difference(kind, key.test, key.text(), side(before), side(after),
                 before != nullptr && before->unit == "seconds" ? Better::lower : Better::higher);
  if (!d.before.number || !d.after.number) {
    const auto has = [](const Cell* cell) { return cell != nullptr && cell->has_value(); };
    d.effect =
        has(before) == has(after) ? Effect::neutral : (has(after) ? Effect::better : Effect::worse);
  }
  return d;
}

/// Two cells that both have a value.
void compare_values(Builder& out, Measured& measured, Difference d, const Cell& a, const Cell& b) {
  const bool a_published = a.status == CellStatus::published;
  const bool b_published = b.status == CellStatus::published;
  if (a.unit != b.unit || a.bytes_convention != b.bytes_convention || a_published != b_published) {
    d.kind = "meaning";
    d.effect = Effect::neutral;
    d.note = "not the same quantity: one is published and the other measured, or the units or what "
             "counts as a byte differ";
    out.add(std::move(d));
    return;
  }
  d.kind = a.unit == "seconds" ? "latency" : "bandwidth";
  if (a_published) {
    if (beyond(a.p50, b.p50, out.options().exact_tolerance)) {
      out.add(std::move(d));
    }
    return;
  }
  const double tolerance =
      a.unit == "seconds" ? out.options().latency_tolerance : out.options().bandwidth_tolerance;
  const bool doubtful = a.status == CellStatus::noisy || b.status == CellStatus::noisy;
  measured.add(std::move(d), {.before = a.samples,
                              .after = b.samples,
                              .spread = std::max(a.spread, b.spread),
                              .tolerance = tolerance,
                              .doubtful = doubtful});
}

/// Cells of equal keys. How many writes are in flight is often tuned by the probe, and another
/// choice must not hide what the link does: cells that are alone in their document but for
/// in_flight are one pair too, under the key without it.
auto matched(const Profile& before, const Profile& after) {
  auto all = paired(before.cells, after.cells, &Cell::key);
  std::map<CellKey, std::pair<std::vector<const Cell*>, std::vector<const Cell*>>> alone;
  for (const auto& [key, sides] : all) {
    CellKey loose = key;
    loose.in_flight = 0;
    if (sides.second == nullptr) {
      alone[loose].first.push_back(sides.first);
    } else if (sides.first == nullptr) {
      alone[loose].second.push_back(sides.second);
    }
  }
  for (const auto& [loose, sides] : alone) {
    if (sides.first.size() == 1 && sides.second.size() == 1 && !all.contains(loose)) {
      all.erase(sides.first[0]->key);
      all.erase(sides.second[0]->key);
      all[loose] = {sides.first[0], sides.second[0]};
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

Sizes sizes_of(const Profile& profile) {
  Sizes out;
  for (const Cell& cell : profile.cells) {
    if (cell.has_value() && cell.key.bytes > 0) {
      out[curve_of(cell.key)].insert(cell.key.bytes);
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

void compare_cells(Builder& out, const Profile& before, const Profile& after) {
  Measured measured(out);
  const Sizes sizes_before = sizes_of(before);
  const Sizes sizes_after = sizes_of(after);
  for (const auto& [key, sides] : matched(before, after)) {
    const auto& [a, b] = sides;
    Difference d = cell_difference("cell", key, a, b);
    if (a == nullptr || b == nullptr) {
      if (!is_refinement(key, a == nullptr ? sizes_before : sizes_after)) {
        out.add(std::move(d));
      }
      continue;
    }
    out.compared();
    if (a->key.in_flight != b->key.in_flight) {
      d.note =
          fmt::format("{} and {} writes in flight", std::min(a->key.in_flight, b->key.in_flight),
                      std::max(a->key.in_flight, b->key.in_flight));
    }
    if (a->has_value() && b->has_value()) {
      compare_values(out, measured, std::move(d), *a, *b);
    } else if (a->status != b->status) {
      d.kind = "status";
      out.add(std::move(d));
    }
  }
  measured.settle();
}

void compare_topology(Builder& out, const Topology& before, const Topology& after) {
  using Object = TopologyObject;
  for (const auto& [id, sides] : paired(before.objects, after.objects, &Object::id)) {
    const auto& [a, b] = sides;
    const Both<Object> both(out, "topology", "topology/" + id, a, b);
    if (a == nullptr || b == nullptr) {
      both.text("topology", "", [](const Object& o) {
        return fmt::format("{}{}{}", name_of(o.kind), o.name.empty() ? "" : " ", o.name);
      });
      continue;
    }
    both.text("topology", "/kind", [](const Object& o) { return name_of(o.kind); });
    both.text("topology", "/parent", &Object::parent);
    both.text("topology", "/name", &Object::name);
    both.text("topology", "/pci_address", &Object::pci_address);
    both.number("topology", "/os_index", &Object::os_index, "");
    both.number("topology", "/cache_level", &Object::cache_level, "");
    both.number("topology", "/bytes", &Object::bytes, "bytes");
    both.number("topology", "/link_bytes_per_second", &Object::link_bytes_per_second,
                "bytes_per_second", Better::higher);
    both.text("topology", "/cpus",
              [](const Object& o) { return fmt::format("{}", fmt::join(o.cpus, " ")); });
  }
}

void compare_machines(Builder& out, const Profile& before, const Profile& after) {
  for (const auto& [id, sides] : paired(before.machines, after.machines, &MachineGroup::id)) {
    const auto& [a, b] = sides;
    const Both<MachineGroup> both(out, "machines", "machines/" + id, a, b);
    both.number("machine", "/count", &MachineGroup::count, "");
    both.number("machine", "/cores", &MachineGroup::cores, "");
    both.number("machine", "/memory_bytes", &MachineGroup::memory_bytes, "bytes");
    if (a != nullptr && b != nullptr) {
      both.text("machine", "/rack", &MachineGroup::rack);
      both.text("machine", "/members",
                [](const MachineGroup& m) { return fmt::format("{}", fmt::join(m.members, " ")); });
    }
  }
}

} // namespace

Comparison compare(const Profile& before, const Profile& after, const CompareOptions& options) {
  Builder out("profile", options);
  if (before.fingerprint != after.fingerprint) {
    out.warn("the profiles have different fingerprints: they come from different machines or from "
             "different settings, "
             "so differences do not mean that something got slower");
  }
  out.causes_from("context", before.context, after.context, k_volatile_context);
  compare_machines(out, before, after);
  compare_endpoints(out, before.endpoint, after.endpoint);
  compare_topology(out, before.topology, after.topology);
  compare_cells(out, before, after);
  return std::move(out).finish();
}

} // namespace reckon
