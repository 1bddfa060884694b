// SPDX-License-Identifier: Apache-2.0
#include "expect/judged_log.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "core/name_ranges.hpp"
#include "core/units.hpp"
#include "present/numbers.hpp"
#include "present/table.hpp"
#include "strategies/forest/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace reckon {
namespace {

constexpr std::string_view k_prefix = "nccl_";

/// Ranks that measured together.
struct Run {
  std::vector<std::size_t> hosts; ///< by number; empty: unknown which of all
  std::size_t machines = 0, ranks = 0;
  auto operator<=>(const Run&) const = default;
};

/// The hosts of an output and their GPUs, as ids of the profile's machine.
class Hosts {
public:
  Hosts(const Profile& machine, const Profile& measured)
      : m_machine(machine), m_id(machine_with_topology(machine)) {
    for (const MachineGroup& host : measured.machines) {
      Host& added = m_hosts.emplace_back();
      added.group = &host;
      for (const TopologyObject* gpu : measured.topology.children(host.id)) {
        if (gpu->kind == ObjectKind::gpu) {
          added.gpus.push_back(known(*gpu));
        }
      }
    }
  }
  [[nodiscard]] const std::string& machine() const { return m_id; }

  /// A cell of ranks on one or two machines names these.
  [[nodiscard]] Run run_of(const CellKey& key) const {
    const auto ranks = static_cast<std::size_t>(std::max(key.sources, 0));
    Run named, all;
    for (std::size_t h = 0; h < m_hosts.size(); ++h) {
      all.ranks += m_hosts[h].gpus.size();
      ++all.machines;
      all.hosts.push_back(h);
      if (m_hosts[h].has(key.from) || m_hosts[h].has(key.to)) {
        named.ranks += m_hosts[h].gpus.size();
        ++named.machines;
        named.hosts.push_back(h);
      }
    }
    if (ranks == 0 || all.ranks <= ranks) {
      return all;
    }
    if (named.ranks >= ranks) {
      named.ranks = ranks;
      return named;
    }
    const std::size_t each = std::max<std::size_t>(m_hosts.front().gpus.size(), 1);
    return {{}, (ranks + each - 1) / each, ranks};
  }

  /// The GPUs that take part, of each host: equal ones once.
  [[nodiscard]] std::set<std::vector<std::string>> gpus_of(const Run& run) const {
    std::set<std::vector<std::string>> sets;
    for (std::size_t h = 0; h < m_hosts.size(); ++h) {
      if (run.hosts.empty() || std::ranges::find(run.hosts, h) != run.hosts.end()) {
        std::vector<std::string> gpus = m_hosts[h].gpus;
        gpus.resize(std::min(gpus.size(), std::max<std::size_t>(run.ranks / run.machines, 1)));
        sets.insert(std::move(gpus));
      }
    }
    return sets;
  }

  [[nodiscard]] std::vector<std::string> names_of(const Run& run) const {
    std::vector<std::string> names;
    for (const std::size_t h : run.hosts) {
      const MachineGroup& host = *m_hosts[h].group;
      names.push_back(host.name.empty() ? host.id : host.name);
    }
    return names;
  }

private:
  struct Host {
    const MachineGroup* group = nullptr;
    std::vector<std::string> gpus;
    [[nodiscard]] bool has(const std::string& id) const {
      return id.substr(0, id.find('/')) == group->id;
    }
  };
  [[nodiscard]] std::string known(const TopologyObject& gpu) const {
    const std::vector<std::string> gpus = m_machine.topology.ids_in(m_id, ObjectKind::gpu);
    for (const std::string& id : gpus) {
      if (!gpu.pci_address.empty() && m_machine.topology.find(id)->pci_address == gpu.pci_address) {
        return id;
      }
    }
    const std::string number = gpu.id.substr(gpu.id.find('/') + 1);
    const std::string id = fmt::format("{}/{}", m_id, number);
    if (std::ranges::find(gpus, id) == gpus.end()) {
      fail(ErrorKind::input,
           fmt::format("profile '{}': machine {} has no {}, which took part; give a profile of the "
                       "machine that was measured, or of its type",
                       m_machine.name, m_id, number));
    }
    return id;
  }

  const Profile& m_machine;
  std::string m_id;
  std::vector<Host> m_hosts;
};

/// The collective of an imported cell; null for other cells.
const TestedCollective* collective_of(const Cell& cell) {
  const bool counts = cell.has_value() || cell.status == CellStatus::mismatch;
  if (!counts || !cell.key.test.starts_with(k_prefix)) {
    return nullptr;
  }
  const std::string_view name = std::string_view(cell.key.test).substr(k_prefix.size());
  const TestedCollective* longest = nullptr; // "reduce_scatter" begins with "reduce"
  for (const TestedCollective& collective : tested_collectives()) {
    if (name.starts_with(collective.name) &&
        (longest == nullptr || collective.name.size() > longest->name.size())) {
      longest = &collective;
    }
  }
  return longest;
}

using Cells = std::vector<const Cell*>;

JudgedCollective judged_cells(const Cells& cells, Expected expected) {
  JudgedCollective out;
  out.expected = std::move(expected);
  const double most = out.expected.most();
  for (const Cell* cell : cells) {
    if (!cell->has_value()) {
      ++out.wrong;
      continue;
    }
    const CellKey& key = cell->key;
    const double bus = out.expected.bus_factor * static_cast<double>(key.bytes) / cell->p50;
    out.rows.push_back({key.bytes,
                        fmt::format("{}{}{}", key.test, key.dtype.empty() ? "" : " ", key.dtype),
                        cell->p50, bus, most > 0 ? bus / most : 0});
    out.best_bus_bytes_per_second = std::max(out.best_bus_bytes_per_second, bus);
  }
  std::ranges::stable_sort(out.rows, {},
                           [](const MeasuredRow& row) { return std::tie(row.test, row.bytes); });
  out.judgement =
      out.wrong > 0 ? Judgement::wrong_values : judged(out.expected, out.best_bus_bytes_per_second);
  return out;
}

std::string gb(double bytes_per_second) {
  return gb_per_s_text(bytes_per_second) + " GB/s";
}

constexpr std::string_view k_which_way =
    "Look with NCCL_DEBUG=INFO which way NCCL takes (\"via SHM\" is through the host's memory, "
    "\"NET/Socket\" without RDMA), and at the machine with `reckon check`.";

std::string usual_of(const WayCeiling& way) {
  return fmt::format("long messages usually reach {} to {} here, by way \"{}\" ({})",
                     gb_per_s_text(way.usual->low), gb(way.usual->high), way.way,
                     way.usual->share.source);
}

/// Whether the way that gives most usually gives more.
bool below_best(const JudgedCollective& judged) {
  return judged.best_bus_bytes_per_second < judged.expected.least_usual() * (1 - k_rate_tolerance);
}

/// Of a rate that some way usually gives.
std::string normal_text(const JudgedCollective& judged) {
  constexpr double k_more = 1.1;
  const WayCeiling& best = *judged.expected.best();
  const double rate = judged.best_bus_bytes_per_second;
  if (below_best(judged)) {
    return fmt::format("That is normal where NCCL does not take the way that gives most: {}. {}",
                       usual_of(best), k_which_way);
  }
  if (rate > k_more * best.usual->high) {
    return fmt::format("That is more than others publish: {}.", usual_of(best));
  }
  return fmt::format("That is normal: {}; short ones wait for latency, not for links.",
                     usual_of(best));
}

std::string verdict(const JudgedCollective& judged) {
  const Expected& expected = judged.expected;
  const std::string reached = fmt::format("best: {}", gb(judged.best_bus_bytes_per_second));
  if (judged.judgement == Judgement::wrong_values) {
    return fmt::format("{} of {} have wrong values: the sums are wrong, and until they are right a "
                       "rate says nothing. Look for errors of memory and links (`nvidia-smi -q`, "
                       "ECC and NVLink; dmesg), and run the test on fewer GPUs until the one is "
                       "found.",
                       judged.wrong, counted(judged.wrong + judged.rows.size(), "row"));
  }
  if (expected.most() <= 0) {
    return fmt::format("{}. No percentage: {}", reached,
                       expected.unknown.empty()
                           ? "no rate of a link between these ranks is known."
                           : fmt::format("the rates of {} are not known; name the GPU with --gpu, "
                                         "or add them to the profile.",
                                         first_names(expected.unknown)));
  }
  const std::string share =
      fmt::format("{}, {} of the upper bound", reached,
                  percent_text(judged.best_bus_bytes_per_second / expected.most()));
  switch (judged.judgement) {
  case Judgement::normal:
    return fmt::format("{}. {}", share, normal_text(judged));
  case Judgement::low:
    return fmt::format("{}. That is low: {}. {}", share, usual_of(*expected.best()), k_which_way);
  case Judgement::description:
    return fmt::format(
        "{}: the description of the machine is wrong. {}", share,
        expected.lacks_gpu_links
            ? "It lacks the NVLinks between these GPUs: give the text of `nvidia-smi topo -m` to "
              "--topology."
            : "It lacks links that these ranks use or has them too slow; or switches sum on the "
              "way that it does not have (\"sums\" of a link_switch for NVLink SHARP; --sharp for "
              "those between machines); or machines share their NVSwitches (--nvlink-machines).");
  default:
    return share + "; what is usual there is not published.";
  }
}

/// Of several runs each in a line.
std::string summary(const JudgedLog& log, const Style& style) {
  Table table(2, "collective|hosts|>ranks|>best, GB/s|>of the bound|~");
  for (const JudgedCollective& judged : log.collectives) {
    const double most = judged.expected.most(), best = judged.best_bus_bytes_per_second;
    table.row({judged.expected.collective,
               judged.hosts.empty() ? counted(judged.expected.machines, "host")
                                    : printable(first_names(name_ranges(judged.hosts))),
               std::to_string(judged.expected.ranks), gb_per_s_text(best),
               most > 0 ? percent_text(best / most) : "",
               judged.judgement == Judgement::normal && below_best(judged)
                   ? "normal, but not by the best way"
                   : std::string(name_of(judged.judgement))});
  }
  return "\nEach run:\n" + table.text(style);
}

} // namespace

JudgedLog judged_log(const Profile& machine, const Profile& measured, const LogOptions& options) {
  const Hosts hosts(machine, measured);
  std::map<Run, std::map<const TestedCollective*, Cells>> runs;
  for (const Cell& cell : measured.cells) {
    if (const TestedCollective* collective = collective_of(cell)) {
      runs[hosts.run_of(cell.key)][collective].push_back(&cell);
    }
  }
  if (runs.empty()) {
    fail(ErrorKind::usage, "nothing of what was measured is a collective of nccl-tests, so there "
                           "is nothing to compare with the machine; leave --profile away");
  }
  JudgedLog out;
  out.machine = machine.name;
  for (const auto& [run, tested] : runs) {
    std::vector<const TestedCollective*> collectives;
    for (const auto& [collective, cells] : tested) {
      collectives.push_back(collective);
    }
    std::vector<Expected> least; // by collective, of all hosts
    for (const std::vector<std::string>& gpus : hosts.gpus_of(run)) {
      std::vector<Expected> expected = expected_of(machine,
                                                   {.machine = hosts.machine(),
                                                    .gpus = gpus,
                                                    .machines = run.machines,
                                                    .sharp = options.sharp},
                                                   collectives);
      least.resize(expected.size());
      for (std::size_t c = 0; c < expected.size(); ++c) {
        if (least[c].ranks == 0 || expected[c].most() < least[c].most()) {
          least[c] = std::move(expected[c]);
        }
      }
    }
    for (std::size_t c = 0; c < collectives.size(); ++c) {
      out.collectives.push_back(judged_cells(tested.at(collectives[c]), std::move(least[c])));
      if (runs.size() > 1) {
        out.collectives.back().hosts = hosts.names_of(run);
      }
    }
  }
  std::ranges::stable_sort(out.collectives, {},
                           [](const JudgedCollective& j) { return j.expected.collective; });
  return out;
}

Json to_json(const JudgedLog& log) {
  Json collectives = Json::array();
  for (const JudgedCollective& judged : log.collectives) {
    Json rows = Json::array();
    for (const MeasuredRow& row : judged.rows) {
      rows.push_back({{"test", row.test},
                      {"bytes", row.bytes},
                      {"seconds", row.seconds},
                      {"bus_bytes_per_second", row.bus_bytes_per_second},
                      {"share", row.share > 0 ? Json(row.share) : Json()}});
    }
    Json json = to_json(judged.expected);
    json["hosts"] = judged.hosts;
    json["measured"] = std::move(rows);
    json["wrong_rows"] = judged.wrong;
    json["best_bus_bytes_per_second"] = judged.best_bus_bytes_per_second;
    json["judgement"] = name_of(judged.judgement);
    collectives.push_back(std::move(json));
  }
  return {{"schema", "judged_log"}, {"machine", log.machine}, {"collectives", collectives}};
}

std::string render(const JudgedLog& log, const Style& style) {
  std::string out;
  for (const JudgedCollective& judged : log.collectives) {
    const Expected& expected = judged.expected;
    out += out.empty() ? "" : "\n";
    out +=
        fmt::format("{} of {} on {}{}{}\n", expected.collective, counted(expected.ranks, "rank"),
                    expected.machines > 1 ? fmt::format("{} x ", expected.machines) : "",
                    printable(log.machine),
                    judged.hosts.empty()
                        ? ""
                        : fmt::format(": {}", printable(first_names(name_ranges(judged.hosts)))));
    for (const WayCeiling& way : expected.ways) {
      out += folded(printable(fmt::format("  {:<15} {} at most{}, limited by {}", way_text(way),
                                          gb(way.bus_bytes_per_second),
                                          way.usual ? fmt::format(", usually {} to {}",
                                                                  gb_per_s_text(way.usual->low),
                                                                  gb(way.usual->high))
                                                    : "",
                                          first_names(way.by))),
                    style);
    }
    if (!expected.unknown.empty()) {
      out += folded(printable("  unknown         " + first_names(expected.unknown) +
                              ": counted as unlimited"),
                    style);
    }
    Table table(2, ">size|>time|>GB/s|>of the bound|~");
    std::string test;
    for (const MeasuredRow& row : judged.rows) {
      table.row({to_text(Bytes(row.bytes)),
                 time_text(row.seconds),
                 gb_per_s_text(row.bus_bytes_per_second),
                 row.share > 0 ? percent_text(row.share) : "",
                 {row.test == test ? "" : row.test, Tone::dim}});
      test = row.test;
    }
    out += "\n" + table.text(style) + "\n" + folded(verdict(judged), style);
  }
  const bool several = std::ranges::any_of(log.collectives, [&](const JudgedCollective& judged) {
    return judged.hosts != log.collectives.front().hosts;
  });
  return several ? out + summary(log, style) : out;
}

} // namespace reckon
