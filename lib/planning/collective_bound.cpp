// SPDX-License-Identifier: Apache-2.0
#include "planning/collective_bound.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "core/name_ranges.hpp"
#include "core/units.hpp"
#include "documents/cells.hpp"
#include "present/numbers.hpp"
#include "present/table.hpp"
#include "strategies/forest/bound.hpp"
#include "strategies/forest/forest.hpp"
#include "strategies/forest/planner.hpp"
#include "topology/paths.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

namespace reckon {
namespace {

constexpr std::string_view k_all_reduce = "nccl_all_reduce";
/// What NCCL usually reaches with large messages: 75 to 90 % of what NVLinks or PCIe carry.
constexpr double k_usual = 0.6;
/// Beyond that the machine's best trees take long to solve; the bound itself does not.
constexpr std::size_t k_most_workers = 16;

/// The GPUs of each host of the output, as ids of the profile's machine.
class Hosts {
public:
  Hosts(const Profile& machine, const Profile& measured)
      : m_machine(machine), m_id(machine_with_topology(machine)) {
    for (const MachineGroup& host : measured.machines) {
      std::vector<std::string> gpus;
      for (const TopologyObject* gpu : measured.topology.children(host.id)) {
        if (gpu->kind == ObjectKind::gpu) {
          gpus.push_back(known(*gpu));
        }
      }
      ranks += gpus.size();
      ++count;
      all.insert(std::move(gpus));
    }
  }
  [[nodiscard]] const std::string& machine() const { return m_id; }
  std::set<std::vector<std::string>> all; ///< each once
  std::size_t ranks = 0, count = 0;

private:
  [[nodiscard]] std::string known(const TopologyObject& gpu) const {
    for (const std::string& id : m_machine.topology.ids_in(m_id, ObjectKind::gpu)) {
      if (!gpu.pci_address.empty() && m_machine.topology.find(id)->pci_address == gpu.pci_address) {
        return id;
      }
    }
    std::string id = m_id + gpu.id.substr(gpu.id.find('/'));
    if (m_machine.topology.find(id) == nullptr) {
      fail(ErrorKind::input,
           fmt::format("profile '{}': machine {} has no {}, which took part; give a profile of the "
                       "machine that was measured, or of its type",
                       m_machine.name, m_id, gpu.id.substr(gpu.id.find('/') + 1)));
    }
    return id;
  }

  const Profile& m_machine;
  std::string m_id;
};

/// One direction of all ports of a machine, bytes per second; 0: one of them is not known.
double ports(const Profile& machine, const std::string& id, std::size_t& count) {
  double sum = 0;
  for (const std::string& nic : machine.topology.ids_in(id, ObjectKind::nic)) {
    double rate = machine.topology.find(nic)->link_bytes_per_second.value_or(0);
    for (const Cell* cell : machine.select({.test = k_port_bandwidth, .from = nic})) {
      rate = std::max(rate, cell->p50);
    }
    if (rate == 0) {
      return 0;
    }
    sum += rate;
    ++count;
  }
  return sum;
}

/// Resources that the best of all trees keep busy all the time, the dearest first.
std::vector<std::string> binding_links(const Network& model) {
  std::vector<std::string> names;
  if (model.workers > k_most_workers) {
    return names;
  }
  for (const StationPrice& price : solve_forest(model, 0.01, Gains::left_out).prices) {
    if (price.price > 0) {
      names.push_back(price.resource);
    }
  }
  return names;
}

/// Without the ways from host bridges to their processor, which nothing describes.
std::vector<std::string> unknown_links(const Profile& machine, const std::string& id,
                                       const Network& model) {
  std::vector<std::string> links = model.unknown;
  for (const TopologyObject* bridge : machine.topology.of_kind(ObjectKind::host_bridge)) {
    const std::string name = bridge->id.substr(id.size() + 1);
    std::erase_if(links, [&](const std::string& link) {
      return link.starts_with(name + " > ") || link.ends_with(" > " + name);
    });
  }
  return links;
}

/// The measured all-reduces beside a bound, by test, then bytes. `factor`: of the bus bandwidth's
/// bytes to the gradient's. Throws Error{usage} without any.
std::vector<CollectiveRow> rows_of(const Profile& measured, double factor,
                                   double seconds_per_byte) {
  std::vector<CollectiveRow> rows;
  for (const Cell& cell : measured.cells) {
    if (!cell.has_value() || !cell.key.test.starts_with(k_all_reduce)) {
      continue;
    }
    const auto bytes = static_cast<double>(cell.key.bytes);
    rows.push_back(
        {cell.key.bytes,
         fmt::format("{}{}{}", cell.key.test, cell.key.dtype.empty() ? "" : " ", cell.key.dtype),
         cell.p50, factor * bytes / cell.p50, seconds_per_byte * bytes / cell.p50});
  }
  if (rows.empty()) {
    fail(ErrorKind::usage, "the bound is that of an all-reduce, and no all_reduce_perf is among "
                           "what was measured; leave --profile away");
  }
  std::ranges::stable_sort(rows, {},
                           [](const CollectiveRow& row) { return std::tie(row.test, row.bytes); });
  return rows;
}

} // namespace

bool CollectiveBound::exceeded() const {
  return std::any_of(rows.begin(), rows.end(),
                     [](const CollectiveRow& row) { return row.share > 1; });
}

CollectiveBound bound_of_all_reduce(const Profile& machine, const Profile& measured) {
  const Hosts hosts(machine, measured);
  CollectiveBound out;
  out.machine = machine.name;
  out.ranks = hosts.ranks;
  out.hosts = hosts.count;
  if (hosts.ranks < 2) {
    fail(ErrorKind::usage, "one rank alone moves nothing; there is no bound to hold it against");
  }
  const auto among = [](std::size_t n) {
    return 2 * static_cast<double>(n - 1) / static_cast<double>(n);
  };
  const double network = hosts.count > 1 ? among(hosts.count) : 0;
  out.lacks_gpu_links = lacks_gpu_links(machine.topology, hosts.machine());
  double seconds_per_byte = 0;
  bool pairs = false; // whether rates of single pairs are known
  for (const std::vector<std::string>& gpus : hosts.all) {
    // NCCL sums on GPUs only.
    const Network model = network_inside_machine(machine, hosts.machine(),
                                                 {.workers = gpus,
                                                  .relays = std::vector<std::string>{},
                                                  .network = network,
                                                  .only_known_rates = true});
    const NetworkBound bound = network_bound(model);
    pairs = pairs || !model.stations.empty();
    if (bound.seconds_per_byte > seconds_per_byte) {
      seconds_per_byte = bound.seconds_per_byte;
      out.by = bound.by;
      out.links = network > 0 ? std::vector<std::string>{} : binding_links(model);
      out.unknown = unknown_links(machine, hosts.machine(), model);
    }
  }
  std::size_t nics = 0;
  if (const double rate = network > 0 ? ports(machine, hosts.machine(), nics) : 0;
      rate > 0 && network / rate > seconds_per_byte) {
    seconds_per_byte = network / rate;
    out.by = fmt::format("what each host must send through {}", counted(nics, "port"));
    out.links.clear();
    out.lacks_gpu_links = false;
  }
  if (seconds_per_byte <= 0) {
    fail(ErrorKind::input,
         fmt::format("profile '{}': {}; measure the machine with `reckon probe`, or give its "
                     "topology file to `reckon probe --topology`",
                     machine.name,
                     pairs
                         ? "what pairs of these ranks reach alone is known, but no rate of a link "
                           "that they share, so nothing bounds what all reach at once"
                         : "no rate is known of any link that these ranks need"));
  }
  const double factor = among(hosts.ranks);
  out.bus_bytes_per_second = factor / seconds_per_byte;
  out.rows = rows_of(measured, factor, seconds_per_byte);
  return out;
}

Json to_json(const CollectiveBound& bound) {
  Json rows = Json::array();
  for (const CollectiveRow& row : bound.rows) {
    rows.push_back({{"test", row.test},
                    {"bytes", row.bytes},
                    {"seconds", row.seconds},
                    {"bus_bytes_per_second", row.bus_bytes_per_second},
                    {"share", bound.exceeded() ? Json() : Json(row.share)}});
  }
  return {{"schema", "collective_bound"},
          {"machine", bound.machine},
          {"ranks", bound.ranks},
          {"hosts", bound.hosts},
          {"exceeded", bound.exceeded()},
          {"bus_bytes_per_second", bound.bus_bytes_per_second},
          {"by", bound.by},
          {"links", bound.links},
          {"unknown", bound.unknown},
          {"rows", rows}};
}

std::string render(const CollectiveBound& bound, const Style& style) {
  const bool exceeded = bound.exceeded();
  std::string out = fmt::format(
      "all-reduce of {} on {}{}: bus bandwidth of {} GB/s at most, {}\n",
      counted(bound.ranks, "rank"), bound.hosts > 1 ? fmt::format("{} x ", bound.hosts) : "",
      printable(bound.machine), gb_per_s_text(bound.bus_bytes_per_second),
      exceeded ? "says the profile, but more was measured" : "whatever the algorithm");
  out += folded(
      printable("  bound by  " + (bound.links.empty() ? bound.by : first_names(bound.links))),
      style);
  if (!bound.unknown.empty()) {
    out += folded(printable("  unknown   " + first_names(bound.unknown) + ": counted as unlimited"),
                  style);
  }
  const CollectiveRow* best = nullptr;
  Table table(2, ">size|>time|>GB/s|>of the bound|~");
  std::string test;
  for (const CollectiveRow& row : bound.rows) {
    best = best == nullptr || row.share > best->share ? &row : best;
    table.row({to_text(Bytes(row.bytes)),
               time_text(row.seconds),
               gb_per_s_text(row.bus_bytes_per_second),
               exceeded ? "-" : percent_text(row.share),
               {row.test == test ? "" : row.test, Tone::dim}});
    test = row.test;
  }
  out += "\n" + table.text(style) + "\n";
  std::string says;
  if (exceeded) {
    says = fmt::format(
        "Measured above the bound: {}. Percentages of it would mean nothing.",
        bound.lacks_gpu_links
            ? "the profile lacks links that these ranks use (no NVLink is known)"
            : "the profile lacks links that these ranks use or knows them too slow, or NVSwitches "
              "sum on the way (NVLS), which the bound does not count");
  } else {
    says = fmt::format("best: {} at {}. ", percent_text(best->share), to_text(Bytes(best->bytes)));
    says += best->share >= k_usual
                ? "That is normal: long messages usually reach 60 to 90 %, and short ones wait for "
                  "latency, not for links."
                : "Long messages usually reach 60 to 90 %: with NCCL_DEBUG=INFO see which way NCCL "
                  "takes (\"via SHM\" is through the host's memory), and `reckon check` the "
                  "machine.";
  }
  out += folded(says, style);
  return out;
}

} // namespace reckon
