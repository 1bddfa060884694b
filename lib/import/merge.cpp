// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "core/units.hpp"
#include "import/collector.hpp"
#include "import/import.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace reckon {

using namespace import_detail;

namespace {

/// Ids of `added` under which `base` knows the same things, and what `base` lacks added to it.
class MergedPlaces {
public:
  explicit MergedPlaces(Profile& base) : m_base(base) {
    for (std::size_t i = 0; i < base.topology.objects.size(); ++i) {
      m_objects[base.topology.objects[i].id] = i;
    }
    for (std::size_t i = 0; i < base.topology.objects.size(); ++i) {
      note_slot(i);
    }
  }

  void add(const Profile& added) {
    for (const MachineGroup& machine : added.machines) {
      add_machine(machine);
    }
    for (const TopologyObject& object : added.topology.objects) {
      add_object(object);
    }
  }

  /// An id that is not renamed is its own.
  [[nodiscard]] std::string id(const std::string& id) const {
    const auto at = m_renamed.find(id);
    return at == m_renamed.end() ? id : at->second;
  }

private:
  /// The group that has the id, or a machine of it; null when there is none.
  [[nodiscard]] MachineGroup* group_with(const std::string& id) const {
    const auto found = std::ranges::find_if(m_base.machines, [&](const MachineGroup& g) {
      return g.id == id || std::ranges::find(g.members, id) != g.members.end();
    });
    return found == m_base.machines.end() ? nullptr : &*found;
  }

  /// What has members are machines that --machine named, and nothing is known of them.
  void add_members(MachineGroup group) {
    if (const MachineGroup* const known = group_with(group.members.front())) {
      m_renamed[group.id] = known->id;
    }
    std::erase_if(group.members, [&](const std::string& id) { return group_with(id) != nullptr; });
    if (group.members.empty()) {
      return;
    }
    MachineGroup* known = group_with(group.id);
    if (known == nullptr) {
      known = &m_base.machines.emplace_back(MachineGroup{.id = group.id, .name = group.name});
    }
    known->members.insert(known->members.end(), group.members.begin(), group.members.end());
    known->count = known->members.size();
  }

  void add_machine(const MachineGroup& machine) {
    if (!machine.members.empty()) {
      add_members(machine);
      return;
    }
    const auto known = std::ranges::find(m_base.machines, machine.id, &MachineGroup::id);
    if (known == m_base.machines.end()) {
      m_base.machines.push_back(machine);
      return;
    }
    if (known->count != 1) {
      fail(ErrorKind::input, fmt::format("machine {} stands for {} machines in the profile to "
                                         "merge into; say with --machine which one was measured",
                                         known->id, known->count));
    }
    if (known->name.empty()) {
      known->name = machine.name;
    }
    if (!machine.name.empty() && machine.name != known->name) {
      fail(ErrorKind::input,
           fmt::format("machine {} is {} and {}; give the second another id with --machine, or, if "
                       "both are one machine, name the profile of its topology so: reckon probe "
                       "--topology FILE --name {}",
                       known->id, known->name, machine.name, machine.name));
    }
  }

  void add_object(const TopologyObject& object) {
    if (TopologyObject* const same = same_as(object)) {
      m_renamed[object.id] = same->id;
      if (same->name.empty() || is_generation(same->name)) {
        same->name = object.name;
      }
      if (same->pci_address.empty()) {
        same->pci_address = object.pci_address;
        note_slot(m_objects.at(same->id));
      }
      return;
    }
    TopologyObject copy = object;
    copy.parent = id(object.parent);
    // The id may be another GPU's here: CUDA and the profile count in another
    // order.
    for (int next = 0; m_objects.contains(copy.id); ++next) {
      copy.id = fmt::format("{}/gpu{}", copy.parent, next);
    }
    m_renamed[object.id] = copy.id;
    m_objects[copy.id] = m_base.topology.objects.size();
    m_base.topology.objects.push_back(std::move(copy));
    note_slot(m_base.topology.objects.size() - 1);
  }

  /// A NUMA node's number or a GPU's PCI address in a machine; nullopt of anything else.
  using Slot = std::tuple<ObjectKind, std::string, std::string>;
  static std::optional<Slot> slot_of(const TopologyObject& object, const std::string& machine) {
    if (object.kind == ObjectKind::numa_node) {
      return Slot{object.kind, machine,
                  object.os_index ? fmt::to_string(*object.os_index) : std::string()};
    }
    return object.kind == ObjectKind::gpu && !object.pci_address.empty()
               ? std::optional(Slot{object.kind, machine, object.pci_address})
               : std::nullopt;
  }

  void note_slot(std::size_t i) {
    const TopologyObject* root = &m_base.topology.objects[i];
    for (auto at = m_objects.find(root->parent); at != m_objects.end();
         at = m_objects.find(root->parent)) {
      root = &m_base.topology.objects[at->second];
    }
    if (const auto slot = slot_of(m_base.topology.objects[i], root->id);
        slot && root->parent.empty()) {
      m_slots.emplace(*slot, i);
    }
  }

  /// "sm_80", as topologies of NCCL say, is no model's name.
  static bool is_generation(const std::string& name) { return name.starts_with("sm_"); }

  /// What the base has of the same place; null: nothing.
  [[nodiscard]] TopologyObject* same_as(const TopologyObject& object) const {
    if (const auto slot = slot_of(object, object.parent)) {
      if (const auto known = m_slots.find(*slot); known != m_slots.end()) {
        return &m_base.topology.objects[known->second];
      }
    }
    const auto at = m_objects.find(object.id);
    if (at == m_objects.end()) {
      return nullptr;
    }
    TopologyObject& known = m_base.topology.objects[at->second];
    const auto differ = [&](std::string TopologyObject::*what) {
      return !(known.*what).empty() && !(object.*what).empty() && known.*what != object.*what;
    };
    if (known.kind == object.kind && differ(&TopologyObject::pci_address)) {
      return nullptr;
    }
    const bool named = !is_generation(known.name) && !is_generation(object.name);
    if (known.kind != object.kind || (named && differ(&TopologyObject::name))) {
      fail(ErrorKind::input,
           fmt::format("{} is {} {} and {} {}; give the second machine another id with --machine",
                       object.id, name_of(known.kind), known.name, name_of(object.kind),
                       object.name));
    }
    return &known;
  }

  Profile& m_base;
  std::map<std::string, std::size_t> m_objects; ///< by id
  std::map<Slot, std::size_t> m_slots;
  std::map<std::string, std::string> m_renamed;
};

constexpr std::string_view k_imported_from = "imported from ";

/// What the base was, and the files of each tool: by their number where they are several.
std::string source_of(const Profile& base) {
  std::vector<std::string> parts;
  for (std::string_view rest = base.source; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find("; "));
    if (!part.starts_with(k_imported_from)) {
      parts.emplace_back(part);
    }
    rest.remove_prefix(std::min(part.size() + 2, rest.size()));
  }
  std::map<std::string, std::vector<std::string>> files; // by tool
  for (const auto& [name, text] : base.context) {        // "TOOL, FILE, DIGEST"
    const std::size_t first = text.find(", "), last = text.rfind(", ");
    if (name.starts_with("imported ") && first < last) {
      files[text.substr(0, first)].push_back(text.substr(first + 2, last - first - 2));
    }
  }
  for (const auto& [tool, of] : files) {
    parts.push_back(fmt::format("{}{}, {}", k_imported_from, tool,
                                of.size() == 1 ? of.front() : counted(of.size(), "file")));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

void add_cell(Profile& base, std::map<CellKey, std::size_t>& cells, Cell cell) {
  const auto [at, added] = cells.try_emplace(cell.key, base.cells.size());
  if (added) {
    base.cells.push_back(std::move(cell));
    return;
  }
  Cell& known = base.cells[at->second];
  if (!cell.has_value()) {
    return;
  }
  if (!known.has_value()) {
    known = std::move(cell);
    return;
  }
  if (known.status != CellStatus::published || known.samples.empty() || known.unit != cell.unit) {
    fail(ErrorKind::input,
         fmt::format("\"{}\" has a value of another origin in the profile to merge into; import "
                     "into a profile of its own and compare the two with reckon diff",
                     known.key.text()));
  }
  known.samples.insert(known.samples.end(), cell.samples.begin(), cell.samples.end());
  summarize_cell(known);
}

} // namespace

void merge_import(Profile& base, const Profile& imported) {
  Profile added = imported;
  for (const auto& [name, text] : added.context) {
    if (name.starts_with("imported ") && base.context.contains(name)) {
      fail(ErrorKind::input, fmt::format("{}: is in the profile already; leave it out", text));
    }
  }
  if (!added.topology.objects.empty()) {
    split_group(base);
  }
  if (!base.topology.objects.empty() &&
      std::ranges::all_of(base.machines, &std::vector<std::string>::empty,
                          &MachineGroup::members)) {
    split_group(added);
  }
  const bool had_tree = base.topology.objects.size() > base.machines.size();
  const std::string topology = base.context.contains("topology") ? base.context["topology"] : "";
  MergedPlaces places(base);
  places.add(added);
  std::map<CellKey, std::size_t> cells;
  for (const Cell& cell : base.cells) {
    cells[cell.key] = cells.size();
  }
  for (Cell cell : added.cells) {
    cell.key.from = places.id(cell.key.from);
    cell.key.to = places.id(cell.key.to);
    add_cell(base, cells, std::move(cell));
  }
  std::ranges::sort(base.cells, {}, &Cell::key);
  base.context.insert(added.context.begin(), added.context.end());
  if (had_tree && topology.empty()) {
    base.context.erase("topology"); // the base's tree is what is known
  }
  if (base.source.starts_with(k_imported_from)) {
    base.name = common_name(base.name, added.name);
  }
  base.source = source_of(base);
}

Profile with_ids_by_name(Profile added, const Profile& base) {
  std::map<std::string, std::string> ids; // of `added` by what they become
  std::set<std::string> taken;
  for (const Profile* profile : {&base, static_cast<const Profile*>(&added)}) {
    for (const MachineGroup& machine : profile->machines) {
      taken.insert(machine.id);
    }
  }
  const auto in_base = [&](const MachineGroup& machine, auto MachineGroup::*what) {
    return std::ranges::find(base.machines, machine.*what, what);
  };
  for (const MachineGroup& machine : added.machines) {
    if (machine.name.empty()) {
      continue;
    }
    if (const auto same = in_base(machine, &MachineGroup::name); same != base.machines.end()) {
      ids[machine.id] = same->id;
      continue;
    }
    const auto other = in_base(machine, &MachineGroup::id);
    if (other == base.machines.end() || other->name.empty()) {
      continue;
    }
    std::string& id = ids[machine.id];
    for (std::size_t next = 0; id.empty() || taken.contains(id); ++next) {
      id = fmt::format("m{}", next);
    }
    taken.insert(id);
  }
  const auto rename = [&](std::string& id) { // also of a part of a machine
    const std::size_t end = std::min(id.find('/'), id.size());
    if (const auto at = ids.find(id.substr(0, end)); at != ids.end()) {
      id.replace(0, end, at->second);
    }
  };
  for (MachineGroup& machine : added.machines) {
    rename(machine.id);
  }
  for (TopologyObject& object : added.topology.objects) {
    rename(object.id);
    rename(object.parent);
  }
  for (PeerLink& link : added.topology.links) {
    rename(link.from);
    rename(link.to);
  }
  for (Cell& cell : added.cells) {
    rename(cell.key.from);
    rename(cell.key.to);
  }
  return added;
}

} // namespace reckon
