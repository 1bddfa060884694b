// SPDX-License-Identifier: Apache-2.0
#include "documents/cell_doubts.hpp"

#include "documents/cells.hpp"
#include "topology/paths.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace reckon {
namespace {

bool is_imported(const Profile& profile) {
  return std::any_of(profile.context.begin(), profile.context.end(),
                     [](const auto& fact) { return fact.first.starts_with("imported "); });
}

class Doubts {
public:
  explicit Doubts(const Profile& profile)
      : m_topology(profile.topology), m_imported(is_imported(profile)) {
    for (const CellCase& c : cell_cases()) {
      m_units.emplace(c.name, c.unit);
    }
    for (const MachineGroup& group : profile.machines) {
      m_groups.emplace(group.id, &group);
      m_machines.insert(group.members.begin(), group.members.end());
      if (group.members.empty()) {
        m_machines.insert(group.id);
      }
      m_racks.insert(group.rack);
    }
    m_racks.erase("");
  }

  /// Of one cell; empty: none.
  [[nodiscard]] std::string of(const CellKey& key, std::string_view unit) const {
    const std::string& test = key.test;
    if (const auto known = m_units.find(test); known != m_units.end() && unit != known->second) {
      return fmt::format("{} is in {}, and no plan reads it in {}", test, known->second, unit);
    }
    if (test == k_pair_bandwidth || test == k_pair_latency || test == k_pair_write) {
      return of_pair(key);
    }
    if (test == k_link_bandwidth && !is_link(key.from, key.to)) {
      return fmt::format("no plan reads {} between {} and {}: it is of neighbours in the tree, or "
                         "of an entry in topology.links; of a copy between GPUs the case is {}",
                         test, named(key.from), named(key.to), k_device_write_ce);
    }
    if (const TopologyObject* const object = m_topology.find(key.from);
        test == k_reduce_sum && object != nullptr && object->kind == ObjectKind::gpu) {
      return fmt::format("no plan reads {} of {}: of sums on a GPU the case is {}", test,
                         named(key.from), k_gpu_reduce);
    }
    if (test == k_uplink && !m_racks.contains(key.from)) {
      return fmt::format("no plan reads {} of {}: \"from\" is a \"rack\" of machines", test,
                         named(key.from));
    }
    return "";
  }

  /// The case that was probably meant; nothing where the case is known.
  [[nodiscard]] std::string of_case(const std::string& test) const {
    if (m_units.contains(test) || std::ranges::count(k_not_probed, std::string_view(test)) > 0) {
      return "";
    }
    std::vector<std::string> names(k_not_probed.begin(), k_not_probed.end());
    for (const auto& [name, unit] : m_units) {
      names.push_back(name);
    }
    const std::string near = did_you_mean(test, names);
    return fmt::format("no plan reads the case \"{}\"{}", test,
                       near.empty() ? "; `reckon probe --list` and docs/documents.md have those "
                                      "that there are"
                                    : fmt::format("; did you mean \"{}\"?", near));
  }

private:
  static std::string named(const std::string& id) {
    return id.empty() ? "nothing" : fmt::format("\"{}\"", id);
  }

  /// A GPU, a NUMA node or a memory device of a machine, as plans inside it have ranks.
  [[nodiscard]] const TopologyObject* place(const std::string& id) const {
    const TopologyObject* const object = m_topology.find(id);
    return object != nullptr &&
                   (object->kind == ObjectKind::gpu || object->kind == ObjectKind::numa_node ||
                    object->kind == ObjectKind::memory_device)
               ? object
               : nullptr;
  }

  /// Whether both are places, and of one machine.
  [[nodiscard]] bool is_inside(const std::string& from, const std::string& to) const {
    return place(from) != nullptr && place(to) != nullptr &&
           std::ranges::any_of(m_groups, [&](const auto& group) {
             return m_topology.is_in(*place(from), group.first) &&
                    m_topology.is_in(*place(to), group.first);
           });
  }

  [[nodiscard]] std::string of_pair(const CellKey& key) const {
    // Other programs measure between a GPU and another machine, too.
    if (is_inside(key.from, key.to) ||
        (m_imported && (place(key.from) != nullptr || place(key.to) != nullptr))) {
      return "";
    }
    for (const std::string& id : {key.from, key.to}) {
      const auto group = m_groups.find(id);
      if (!m_machines.contains(id)) {
        return fmt::format(
            "no plan reads {} of {}: \"from\" and \"to\" are machines, or places of one machine{}",
            key.test, named(id),
            group == m_groups.end()
                ? ""
                : fmt::format(", and those of \"{}\" have names: its members \"{}\" "
                              "and so on",
                              id, group->second->members.front()));
      }
    }
    if (key.from != key.to) {
      return "";
    }
    const auto group = m_groups.find(key.from);
    return fmt::format("no plan reads {} from \"{}\" to itself{}", key.test, key.from,
                       group != m_groups.end() && group->second->count > 1
                           ? fmt::format(": to tell its {} machines apart, give its entry of "
                                         "machines \"members\", their names, and name two of these",
                                         group->second->count)
                           : "");
  }

  /// Whether the way between two objects is one link.
  [[nodiscard]] bool is_link(const std::string& from, const std::string& to) const {
    const TopologyObject *const a = m_topology.find(from), *const b = m_topology.find(to);
    return a != nullptr && b != nullptr && from != to &&
           (a->parent == to || b->parent == from ||
            path_between(m_topology, from, to).links.size() == 1);
  }

  const Topology& m_topology;
  const bool m_imported;
  std::map<std::string, std::string> m_units;          ///< by case
  std::map<std::string, const MachineGroup*> m_groups; ///< by id
  std::set<std::string> m_machines;                    ///< that pairs are of
  std::set<std::string> m_racks;
};

} // namespace

std::vector<std::string> cell_doubts(const Profile& profile, const Json& json,
                                     const std::string& file) {
  const JsonView view(json, file);
  const auto cells = view.find("cells");
  if (!cells) {
    return {};
  }
  const Doubts doubts(profile);
  const bool imported = is_imported(profile);
  std::vector<std::string> out;
  std::map<std::string, std::size_t> first; ///< by what is said of a case: its line
  std::map<std::string, std::size_t> count;
  const auto text = [](const JsonView& cell, const char* key) {
    const auto value = cell.find(key);
    return value ? value->string() : std::string();
  };
  for (const JsonView& cell : cells->elements()) {
    CellKey key;
    key.test = text(cell, "case");
    key.from = text(cell, "from");
    key.to = text(cell, "to");
    if (const std::string said = imported ? "" : doubts.of_case(key.test); !said.empty()) {
      if (first.try_emplace(said, out.size()).second) {
        out.push_back(fmt::format("{}: {}/case: {}", file, cell.pointer(), said));
      }
      ++count[said];
    } else if (const std::string doubt = doubts.of(key, text(cell, "unit")); !doubt.empty()) {
      out.push_back(fmt::format("{}: {}: {}", file, cell.pointer(), doubt));
    }
  }
  for (const auto& [said, line] : first) {
    if (count[said] > 1) {
      out[line] += fmt::format(" ({} such cells)", count[said]);
    }
  }
  return out;
}

} // namespace reckon
