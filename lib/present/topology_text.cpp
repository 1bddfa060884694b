// SPDX-License-Identifier: Apache-2.0
#include "present/topology_text.hpp"

#include "core/name_ranges.hpp"
#include "core/units.hpp"
#include "present/key_text.hpp"
#include "present/ranges.hpp"
#include "present/table.hpp"
#include "topology/paths.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <vector>

namespace reckon {
namespace {

bool is_device(const TopologyObject& o) {
  return o.kind == ObjectKind::gpu || o.kind == ObjectKind::nic ||
         o.kind == ObjectKind::memory_device;
}

/// Of a machine and all that it contains; parents stand before their children.
std::set<std::string> ids_of(const Topology& t, const std::string& machine) {
  std::set<std::string> ids{machine};
  for (const TopologyObject& o : t.objects) {
    if (ids.contains(o.parent)) {
      ids.insert(o.id);
    }
  }
  return ids;
}

/// "gpu0" of "m0/gpu0"
std::string short_id(const std::string& id, const std::string& machine) {
  return id.starts_with(machine + "/") ? id.substr(machine.size() + 1) : id;
}

/// "gpu0-3, gpu6, nic0" of ids in any order.
std::string id_list(const std::set<std::string>& ids, const std::string& machine) {
  std::map<std::string, std::set<std::size_t>> numbers;
  std::vector<std::string> others;
  for (const std::string& id : ids) {
    const std::string name = short_id(id, machine);
    const std::size_t digits = name.find_last_not_of("0123456789") + 1;
    if (digits == name.size() || name.size() - digits > 6) {
      others.push_back(name);
    } else {
      numbers[name.substr(0, digits)].insert(std::stoul(name.substr(digits)));
    }
  }
  std::vector<std::string> parts;
  for (const auto& [word, set] : numbers) {
    parts.push_back(number_ranges({set.begin(), set.end()}, word));
  }
  parts.insert(parts.end(), others.begin(), others.end());
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string rate_text(double bytes_per_second) {
  return to_text(Bandwidth::bytes_per_s(bytes_per_second));
}

bool below_possible(const TopologyObject& o) {
  return o.pcie && o.pcie_possible &&
         o.pcie->bytes_per_second() < 0.99 * o.pcie_possible->bytes_per_second();
}

/// "PCIe 3.0 x16 (could do 4.0 x16)"; empty when nothing is known.
std::string pcie_text(const TopologyObject& o) {
  if (o.pcie) {
    return "PCIe " + o.pcie->text() +
           (below_possible(o) ? fmt::format(" (could do {})", o.pcie_possible->text()) : "");
  }
  if (o.pcie_bytes_per_second) {
    return "PCIe " + rate_text(*o.pcie_bytes_per_second);
  }
  if (o.link_bytes_per_second && o.kind != ObjectKind::nic) {
    return "PCIe " + rate_text(*o.link_bytes_per_second);
  }
  return "";
}

std::string what_it_is(const Topology& t, const TopologyObject& o) {
  switch (o.kind) {
  case ObjectKind::host_bridge:
    return "host bridge";
  case ObjectKind::pci_bridge:
    return is_card_port(t, o) ? "port of one card" : "PCIe switch";
  default:
    return "";
  }
}

/// Cores and caches in one phrase: "24 cores, L3 2 x 32 MiB".
void count_inner(const Topology& t, const std::string& id, std::uint64_t& cores,
                 std::map<std::pair<int, std::uint64_t>, int>& caches) {
  for (const TopologyObject* child : t.children(id)) {
    if (child->kind == ObjectKind::core) {
      ++cores;
    } else if (child->kind == ObjectKind::cache && child->cache_level.value_or(0) >= 3) {
      ++caches[{*child->cache_level, child->bytes.value_or(0)}];
    }
    if (child->kind == ObjectKind::cache || child->kind == ObjectKind::core) {
      count_inner(t, child->id, cores, caches);
    }
  }
}

std::string details(const Topology& t, const TopologyObject& o) {
  std::vector<std::string> parts;
  const auto put = [&parts](const std::string& text) {
    if (!text.empty()) {
      parts.push_back(text);
    }
  };
  put(what_it_is(t, o));
  put(o.name);
  if (o.bytes && *o.bytes > 0) {
    put(to_text(Bytes(*o.bytes)));
  }
  std::uint64_t cores = 0;
  std::map<std::pair<int, std::uint64_t>, int> caches;
  count_inner(t, o.id, cores, caches);
  if (cores > 0) {
    put(counted(cores, "core"));
  } else if (!o.cpus.empty() && o.kind == ObjectKind::numa_node) {
    put(counted(o.cpus.size(), "processor"));
  }
  for (const auto& [cache, count] : caches) {
    put(fmt::format("L{} {}{}", cache.first, count > 1 ? fmt::format("{} x ", count) : "",
                    to_text(Bytes(cache.second))));
  }
  put(o.pci_address);
  put(pcie_text(o));
  if (o.kind == ObjectKind::nic && o.link_bytes_per_second) {
    put("port " + rate_text(*o.link_bytes_per_second) + (o.cable.empty() ? "" : " of " + o.cable));
  }
  put(o.sums.value_or(false) ? "sums" : "");
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// The lines of the tree below `id`. Cores and caches are in the line of what contains them.
void tree_lines(const Topology& t, const std::string& id, const std::string& machine,
                const std::string& before, const Style& style, const LinkRemark& remark,
                std::string& out) {
  std::vector<const TopologyObject*> shown;
  for (const TopologyObject* child : t.children(id)) {
    if (child->kind != ObjectKind::core && child->kind != ObjectKind::cache) {
      shown.push_back(child);
    }
  }
  for (std::size_t i = 0; i < shown.size(); ++i) {
    const TopologyObject& o = *shown[i];
    const bool last = i + 1 == shown.size();
    const std::string name = printable(short_id(o.id, machine));
    const Tone tone = o.kind == ObjectKind::gpu ? Tone::good
                      : is_device(o)            ? Tone::strong
                      : below_possible(o)       ? Tone::warning
                                                : Tone::plain;
    const std::string text = printable(details(t, o));
    const bool cut =
        style.width > 0 && columns_of(before) + columns_of(name) + columns_of(text) + 5U >
                               static_cast<std::size_t>(style.width);
    const std::size_t room =
        cut ? static_cast<std::size_t>(std::max<int>(
                  style.width - static_cast<int>(columns_of(before) + columns_of(name)) - 5, 8))
            : columns_of(text);
    out +=
        toned(before + (last ? "└─ " : "├─ "), Tone::dim, style) + toned(name, tone, style) +
        (text.empty() ? "" : "  ") +
        toned(first_columns(text, room), below_possible(o) ? Tone::warning : Tone::plain, style) +
        (remark ? remark(o) : "") + "\n";
    tree_lines(t, o.id, machine, before + (last ? "   " : "│  "), style, remark, out);
  }
}

constexpr std::array<std::pair<PathClass, std::string_view>, 7> k_legend{{
    {PathClass::self, "itself"},
    {PathClass::nv, "over that many NVLinks (or xGMI links)"},
    {PathClass::pix, "over at most one PCIe switch"},
    {PathClass::pxb, "over several PCIe switches, no host bridge"},
    {PathClass::phb, "over a PCIe host bridge (the processor)"},
    {PathClass::node, "over host bridges of one NUMA node"},
    {PathClass::sys, "over the link between NUMA nodes"},
}};

Tone tone_of(PathClass path_class) {
  switch (path_class) {
  case PathClass::self:
    return Tone::dim;
  case PathClass::nv:
  case PathClass::pix:
    return Tone::good;
  case PathClass::sys:
    return Tone::warning;
  default:
    return Tone::plain;
  }
}

/// Endpoints that stand for a row and a column each. In a large machine the NICs of one parent are
/// one: their classes to all others are the same.
std::vector<std::vector<std::string>> matrix_rows(const Topology& t, const std::string& machine) {
  constexpr std::size_t k_large = 20;
  const std::vector<std::string> ends = endpoints_of(t, machine);
  std::vector<std::vector<std::string>> rows;
  const TopologyObject* before = nullptr;
  for (const std::string& id : ends) {
    const TopologyObject* const o = t.find(id);
    if (ends.size() > k_large && before != nullptr && o->kind == ObjectKind::nic &&
        before->kind == ObjectKind::nic && o->parent == before->parent) {
      rows.back().push_back(id);
    } else {
      rows.push_back({id});
    }
    before = o;
  }
  return rows;
}

std::string matrix_text(const Topology& t, const std::string& machine, const Style& style) {
  const auto rows = matrix_rows(t, machine);
  const auto head = [&](const std::vector<std::string>& ids) {
    return id_list({ids.begin(), ids.end()}, machine);
  };
  Table table(2, "");
  for (const auto& ids : rows) {
    table.column(head(ids));
  }
  std::set<PathClass> present;
  for (const auto& from : rows) {
    std::vector<TableCell> row{head(from)};
    for (const auto& to : rows) {
      // Between those that stand together it is the class of two of them.
      const Path path = path_between(t, from.front(), &from == &to ? to.back() : to.front());
      present.insert(path.path_class);
      row.emplace_back(path.text(), tone_of(path.path_class));
    }
    table.row(std::move(row));
  }
  std::string out =
      titled("paths", ", in the words of nvidia-smi topo -m", style) + table.text(style);
  for (const auto& [path_class, meaning] : k_legend) {
    if (path_class != PathClass::self && present.contains(path_class)) {
      out += toned(fmt::format("  {:<4} {}",
                               std::string(name_of(path_class)) +
                                   (path_class == PathClass::nv ? "#" : ""),
                               meaning),
                   Tone::dim, style) +
             "\n";
    }
  }
  return out;
}

/// What BytePS 4.2.3 advises.
std::string census_text(const Topology& t, const std::string& machine, const Style& style) {
  const SwitchCensus census = switch_census(t, machine);
  const std::size_t gpus = census.with_nic.size() + census.gpus_only.size();
  if (gpus == 0) {
    return "";
  }
  const auto list = [&](const std::vector<std::string>& ids) {
    return ids.empty() ? std::string()
                       : fmt::format(" ({})", id_list({ids.begin(), ids.end()}, machine));
  };
  std::string advice;
  if (!census.with_nic.empty() && !census.gpus_only.empty()) {
    advice = "asymmetric: reduce to and broadcast from GPUs that share no switch with a NIC";
  } else {
    advice = "symmetric: reduce-scatter and all-gather";
    if (lacks_gpu_links(t, machine)) {
      advice += "; no NVLink is known here: sum on the processors (CPU-assisted aggregation)";
    }
  }
  return titled("BytePS 4.2.3",
                fmt::format(": S_n = {}{}, S_g = {}{}", census.with_nic.size(),
                            list(census.with_nic), census.gpus_only.size(), list(census.gpus_only)),
                style) +
         folded("  " + advice, style);
}

std::string below_text(const Topology& t, const std::string& machine, const Style& style) {
  std::string out;
  const std::set<std::string> ids = ids_of(t, machine);
  for (const TopologyObject& o : t.objects) {
    if (below_possible(o) && ids.contains(o.id)) {
      out += toned(fmt::format("  {} runs at PCIe {}, both ends could do {}",
                               printable(short_id(o.id, machine)), o.pcie->text(),
                               o.pcie_possible->text()),
                   Tone::warning, style) +
             "\n";
    }
  }
  if (out.empty()) {
    return "";
  }
  return titled("PCIe links below what they could do", "", style) + out +
         folded("  An idle GPU lowers its link to save power: look again under load. Else reseat "
                "the card, or look at the slot's setting in the firmware.",
                style);
}

/// Links that more than one endpoint needs; of links in series that the same endpoints share, the
/// one that was measured, else the one whose rate is known, else the first.
std::string shared_text(const Topology& t, const std::string& machine, const Style& style,
                        const MeasuredLink& measured) {
  struct Shared {
    LinkEnd link;
    std::set<std::string> near, far;
    double rate = 0;
    bool measured = false;
    /// How well it stands for the links in series with it.
    [[nodiscard]] int standing() const { return measured ? 2 : rate > 0 ? 1 : 0; }
  };
  // A row is of both directions: of two measured ones the slower holds each way.
  const auto measured_rate = [&](const LinkEnd& link) {
    const double there = measured ? measured(link) : 0;
    const double back = measured ? measured({link.to, link.from}) : 0;
    return there > 0 && back > 0 ? std::min(there, back) : std::max(there, back);
  };
  std::vector<Shared> rows;
  for (const SharedLink& shared : shared_links(t, machine)) {
    Shared row;
    row.link = shared.link;
    for (const auto& [from, to] : shared.pairs) {
      row.near.insert(from);
      row.far.insert(to);
    }
    // Each link once: upward, or for a link beside the tree from its first end.
    const TopologyObject* from = t.find(row.link.from);
    const TopologyObject* to = t.find(row.link.to);
    const bool downward = to->parent == from->id;
    const bool beside = !downward && from->parent != to->id;
    if (row.near.size() < 2 || row.far.size() < 2 || downward ||
        (beside && row.link.from > row.link.to)) {
      continue;
    }
    row.rate = measured_rate(row.link);
    row.measured = row.rate > 0;
    row.rate = row.measured ? row.rate : described_bytes_per_second(t, row.link);
    const auto series = std::find_if(rows.begin(), rows.end(), [&](const Shared& other) {
      return other.near == row.near && other.far == row.far;
    });
    if (series == rows.end()) {
      rows.push_back(std::move(row));
    } else if (series->standing() < row.standing()) {
      *series = std::move(row);
    }
  }
  if (rows.empty()) {
    return "";
  }
  std::stable_sort(rows.begin(), rows.end(), [](const Shared& a, const Shared& b) {
    return natural_less(a.link.from, b.link.from);
  });
  // Any two NUMA nodes share a link: with many nodes one line says so.
  constexpr std::ptrdiff_t k_most_sockets = 6;
  const auto is_socket = [&](const Shared& row) {
    return t.find(row.link.from)->kind == ObjectKind::numa_node &&
           t.find(row.link.to)->kind == ObjectKind::numa_node;
  };
  const auto sockets = std::count_if(rows.begin(), rows.end(), is_socket);
  std::set<double> socket_rates;
  for (const Shared& row : rows) {
    if (is_socket(row) && row.rate > 0) {
      socket_rates.insert(row.rate);
    }
  }
  if (sockets > k_most_sockets) {
    rows.erase(std::remove_if(rows.begin(), rows.end(), is_socket), rows.end());
  }
  Table table(2, "link|>each way|shared by|~on the way to");
  for (const Shared& row : rows) {
    table.row({short_id(row.link.from, machine) + " - " + short_id(row.link.to, machine),
               row.rate > 0 ? TableCell(rate_text(row.rate)) : TableCell("?", Tone::dim),
               id_list(row.near, machine), id_list(row.far, machine)});
  }
  if (sockets > k_most_sockets) {
    const TableCell rate = socket_rates.empty() ? TableCell("?", Tone::dim)
                           : socket_rates.size() == 1
                               ? TableCell(rate_text(*socket_rates.begin()))
                               : TableCell(fmt::format("{} to {}", rate_text(*socket_rates.begin()),
                                                       rate_text(*socket_rates.rbegin())));
    table.row({fmt::format("{} between NUMA nodes", sockets), rate, "all of one node",
               "all of the other"});
  }
  return titled("shared links", "", style) + table.text(style);
}

/// Whether a machine's GPUs and NUMA nodes are a mere list, as importers know them: neither buses
/// nor links.
bool lacks_tree(const Topology& topology, const std::string& machine) {
  const std::set<std::string> ids = ids_of(topology, machine);
  const auto here = [&](const TopologyObject& o, ObjectKind kind) {
    return o.kind == kind && ids.contains(o.id);
  };
  bool gpus = false;
  for (const TopologyObject& o : topology.objects) {
    if (here(o, ObjectKind::host_bridge) || here(o, ObjectKind::pci_bridge) ||
        ((here(o, ObjectKind::numa_node) || here(o, ObjectKind::gpu)) && o.parent != machine)) {
      return false;
    }
    gpus = gpus || here(o, ObjectKind::gpu);
  }
  return gpus && std::none_of(topology.links.begin(), topology.links.end(),
                              [&](const PeerLink& link) { return ids.contains(link.from); });
}

} // namespace

std::string topology_text(const Topology& topology, const Style& style,
                          const MeasuredLink& measured, const LinkRemark& remark) {
  std::string out;
  for (const TopologyObject* machine : topology.of_kind(ObjectKind::machine)) {
    std::string tree;
    tree_lines(topology, machine->id, machine->id, "  ", style, remark, tree);
    if (tree.empty()) {
      continue;
    }
    out += (out.empty() ? "" : "\n") +
           titled("topology",
                  printable(" of " + machine->id +
                            (machine->name.empty() ? "" : ", " + machine->name)),
                  style) +
           whole_lines(tree, style);
    const std::set<std::string> ids = ids_of(topology, machine->id);
    const bool devices =
        std::any_of(topology.objects.begin(), topology.objects.end(),
                    [&](const auto& o) { return is_device(o) && ids.contains(o.id); });
    if (!devices) {
      continue;
    }
    if (lacks_tree(topology, machine->id)) {
      out += "  how they are connected is not known\n";
      continue;
    }
    for (const std::string& block :
         {matrix_text(topology, machine->id, style), below_text(topology, machine->id, style),
          census_text(topology, machine->id, style),
          shared_text(topology, machine->id, style, measured)}) {
      out += block.empty() ? "" : "\n" + block;
    }
  }
  return out;
}

} // namespace reckon
