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
      ++count;
      all.insert(std::move(gpus));
    }
  }
  [[nodiscard]] const std::string& machine() const { return m_id; }
  std::set<std::vector<std::string>> all; ///< each once
  std::size_t count = 0;

private:
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
};

/// The collective of an imported cell; null for other cells.
const TestedCollective* collective_of(const Cell& cell) {
  if (!cell.has_value() || !cell.key.test.starts_with(k_prefix)) {
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

std::vector<MeasuredRow> rows_of(const Profile& measured, const TestedCollective& collective,
                                 const Expected& expected) {
  std::vector<MeasuredRow> rows;
  for (const Cell& cell : measured.cells) {
    if (collective_of(cell) == &collective) {
      const double bus = expected.bus_factor * static_cast<double>(cell.key.bytes) / cell.p50;
      rows.push_back(
          {cell.key.bytes,
           fmt::format("{}{}{}", cell.key.test, cell.key.dtype.empty() ? "" : " ", cell.key.dtype),
           cell.p50, bus, expected.most() > 0 ? bus / expected.most() : 0});
    }
  }
  std::ranges::stable_sort(rows, {},
                           [](const MeasuredRow& row) { return std::tie(row.test, row.bytes); });
  return rows;
}

std::string gb(double bytes_per_second) {
  return gb_per_s_text(bytes_per_second) + " GB/s";
}

/// What to look at where less came out than is usual.
std::string advice(const JudgedCollective& judged) {
  const ExpectedWay* best = judged.expected.best();
  std::string out = "Look with NCCL_DEBUG=INFO which way NCCL takes (\"via SHM\" is through the "
                    "host's memory, \"NET/Socket\" without RDMA), and at the machine with `reckon "
                    "check`.";
  for (const ExpectedWay& way : judged.expected.ways) {
    if (way.usual && &way != best && judged.best_bus_bytes_per_second >= way.usual->low &&
        judged.best_bus_bytes_per_second <= way.ceiling.bus_bytes_per_second) {
      return fmt::format("It is as much as way \"{}\" gives, and \"{}\" gives more. ",
                         way.ceiling.way, best->ceiling.way) +
             out;
    }
  }
  return out;
}

std::string verdict(const JudgedCollective& judged) {
  const Expected& expected = judged.expected;
  const ExpectedWay* best = expected.best();
  const std::string reached = fmt::format("best: {}", gb(judged.best_bus_bytes_per_second));
  switch (judged.judgement) {
  case Judgement::normal:
    return fmt::format(
        "{}, {} of the upper bound. That is normal: long messages usually reach {} or more "
        "here; short ones wait for latency, not for links.",
        reached, percent_text(judged.best_bus_bytes_per_second / expected.most()),
        gb(expected.least_usual()));
  case Judgement::low:
    return fmt::format("{}, {} of the upper bound. That is low: long messages usually reach {} "
                       "to {} here, by way \"{}\" ({}). {}",
                       reached, percent_text(judged.best_bus_bytes_per_second / expected.most()),
                       gb(expected.least_usual()), gb(best->usual->high), best->ceiling.way,
                       best->usual->share.source, advice(judged));
  case Judgement::description:
    return fmt::format(
        "{}, {} of what the profile allows: the description of the machine is wrong. {}", reached,
        percent_text(judged.best_bus_bytes_per_second / expected.most()),
        expected.lacks_gpu_links
            ? "It lacks the NVLinks between these GPUs: give the text of `nvidia-smi topo -m` to "
              "--topology."
            : "It lacks links that these ranks use or has them too slow; or switches sum on the "
              "way that it does not have (\"sums\" of a link_switch for NVLink SHARP; --sharp for "
              "those between machines).");
  case Judgement::unknown:
    break;
  }
  if (expected.most() <= 0) {
    return fmt::format("{}. No percentage: {}", reached,
                       expected.unknown.empty()
                           ? "no rate of a link between these ranks is known."
                           : fmt::format("the rates of {} are not known; name the GPU with --gpu, "
                                         "or add them to the profile.",
                                         first_names(expected.unknown)));
  }
  return fmt::format("{}, {} of the upper bound; what is usual there is not published.", reached,
                     percent_text(judged.best_bus_bytes_per_second / expected.most()));
}

} // namespace

JudgedLog judged_log(const Profile& machine, const Profile& measured, const LogOptions& options) {
  std::set<const TestedCollective*> tested;
  for (const Cell& cell : measured.cells) {
    tested.insert(collective_of(cell));
  }
  tested.erase(nullptr);
  if (tested.empty()) {
    fail(ErrorKind::usage, "nothing of what was measured is a collective of nccl-tests, so there "
                           "is nothing to compare with the machine; leave --profile away");
  }
  const Hosts hosts(machine, measured);
  JudgedLog out;
  out.machine = machine.name;
  const std::vector<const TestedCollective*> collectives(tested.begin(), tested.end());
  std::vector<Expected> least; // by collective, of all hosts
  for (const std::vector<std::string>& gpus : hosts.all) {
    std::vector<Expected> expected = expected_of(
        machine,
        {.machine = hosts.machine(), .gpus = gpus, .machines = hosts.count, .sharp = options.sharp},
        collectives);
    least.resize(expected.size());
    for (std::size_t c = 0; c < expected.size(); ++c) {
      if (least[c].ranks == 0 || expected[c].most() < least[c].most()) {
        least[c] = std::move(expected[c]);
      }
    }
  }
  for (std::size_t c = 0; c < collectives.size(); ++c) {
    const TestedCollective* const collective = collectives[c];
    JudgedCollective judged_one;
    judged_one.expected = std::move(least[c]);
    judged_one.rows = rows_of(measured, *collective, judged_one.expected);
    for (const MeasuredRow& row : judged_one.rows) {
      judged_one.best_bus_bytes_per_second =
          std::max(judged_one.best_bus_bytes_per_second, row.bus_bytes_per_second);
    }
    judged_one.judgement = judged(judged_one.expected, judged_one.best_bus_bytes_per_second);
    out.collectives.push_back(std::move(judged_one));
  }
  std::ranges::sort(out.collectives, {},
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
    json["measured"] = std::move(rows);
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
    out += fmt::format("{} of {} on {}{}\n", expected.collective, counted(expected.ranks, "rank"),
                       expected.machines > 1 ? fmt::format("{} x ", expected.machines) : "",
                       printable(log.machine));
    for (const ExpectedWay& way : expected.ways) {
      out += folded(printable(fmt::format(
                        "  {:<15} {} at most{}, limited by {}", way_text(way.ceiling),
                        gb(way.ceiling.bus_bytes_per_second),
                        way.usual ? fmt::format(", usually {} to {}", gb_per_s_text(way.usual->low),
                                                gb(way.usual->high))
                                  : "",
                        first_names(way.ceiling.by))),
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
  return out;
}

} // namespace reckon
