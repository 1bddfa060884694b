// SPDX-License-Identifier: Apache-2.0
#include "core/units.hpp"
#include "documents/cells.hpp"
#include "documents/contention.hpp"
#include "present/contention_text.hpp"
#include "present/document_text.hpp"
#include "present/profile_parts.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace reckon {
namespace {

constexpr std::size_t k_most_reasons = 8;

bool everything(const CellKey& /*key*/) {
  return true;
}
bool whole_machine(const CellKey& key) {
  return key.from.find('/') == std::string::npos;
}
/// 64 B to 256 MiB, a few of them.
bool few_sizes(const CellKey& key) {
  constexpr std::uint64_t k_sizes[] = {64, 4096, 65536, k_mib, 16 * k_mib, 64 * k_mib, 256 * k_mib};
  return std::find(std::begin(k_sizes), std::end(k_sizes), key.bytes) != std::end(k_sizes);
}
bool usual_sum(const CellKey& key) {
  return key.bytes == k_mib && key.sources != 4;
}
bool usual_aggregate(const CellKey& key) {
  return key.bytes == k_mib && key.state == "cold";
}
bool usual_pair(const CellKey& key) {
  return key.bytes == 4 * k_mib;
}
bool usual_gpu_sum(const CellKey& key) {
  return key.bytes == 4 * k_mib && key.sources != 4;
}
bool fast_copy(const CellKey& key) {
  return key.direction == k_one_way && key.state != "pageable";
}

/// What a summary shows, and of which settings.
struct Part {
  const char* test;
  bool (*shown)(const CellKey&);
};
constexpr Part k_parts[] = {
    {k_fabric_latency, &everything},
    {k_fabric_write, &few_sizes},
    {k_fabric_aggregate, &usual_aggregate},
    {k_pair_latency, &everything},
    {k_pair_write, &everything},
    {k_pair_bandwidth, &usual_pair},
    {k_host_to_device_ce, &fast_copy},
    {k_device_to_host_ce, &fast_copy},
    {k_device_write_ce, &fast_copy},
    {k_device_read_ce, &fast_copy},
    {k_gpu_reduce, &usual_gpu_sum},
    {k_reduce_sum, &usual_sum},
    {k_sum_in_place, &usual_sum},
    {k_sum_and_send, &usual_sum},
    {k_optimizer_step, &everything},
    {k_host_memcpy, &few_sizes},
    {k_stream_copy, &whole_machine},
    {k_stream_add, &whole_machine},
    {k_numa_copy, &everything},
    {k_numa_read, &everything},
    {k_numa_write, &everything},
    {k_processor_loop, &everything},
    {k_memory_latency, &everything},
    {k_contention_communication, &everything},
    {k_core_to_core, &everything},
};

/// The machine, then how many cells became what.
std::string head_text(const Profile& p) {
  std::vector<std::string> facts{fact(p, "cpu")};
  for (const MachineGroup& m : p.machines) {
    facts.push_back(m.cores > 0 ? counted(m.cores, "core") : "");
    facts.push_back(counted(p.topology.of_kind(ObjectKind::numa_node).size(), "NUMA node"));
    facts.push_back(m.memory_bytes > 0 ? to_text(Bytes(m.memory_bytes)) : "");
  }
  facts.push_back(fact(p, "kernel"));
  facts.emplace_back(fact(p, "virtual_machine") == "yes" ? "virtual machine" : "");
  std::erase(facts, "");
  std::map<CellStatus, std::size_t> count;
  for (const Cell& cell : p.cells) {
    ++count[cell.status];
  }
  std::vector<std::string> counts;
  for (const auto& [status, n] : count) {
    counts.push_back(fmt::format("{} {}", n, name_of(status)));
  }
  const auto list = [](const std::vector<std::string>& words) {
    return words.empty() ? "" : fmt::format(": {}", fmt::join(words, ", "));
  };
  std::string text = counted(p.cells.size(), "cell") + list(counts);
  if (const std::string took = fact(p, "took"); !took.empty()) {
    text += "; took " + took;
  }
  if (fact(p, "interrupted") == "yes") {
    text += "; interrupted";
  }
  if (const std::string drift = fact(p, "drift"); !drift.empty()) {
    text += "; drift " + drift.substr(0, drift.find(" ("));
  }
  return printable(p.name + list(facts)) + "\n" + printable(text) + "\n";
}

/// The part of a profile that is shown of one case; no cells when none of them has a value.
Profile shown_of(const Profile& p, const Part& part) {
  Profile shown;
  for (const Cell& cell : p.cells) {
    // Of contention there are many settings, and few of them in a short probe.
    const bool wanted = part.shown(cell.key) && (cell.has_value() || !is_contention(cell.key));
    if (cell.key.test == part.test && wanted) {
      shown.cells.push_back(cell);
    }
  }
  if (std::none_of(shown.cells.begin(), shown.cells.end(),
                   [](const Cell& cell) { return cell.has_value(); })) {
    shown.cells.clear();
  }
  return shown;
}

} // namespace

std::string render_summary(const Profile& p, const Style& style) {
  std::string text = head_text(p);
  for (const Part& part : k_parts) {
    const Profile shown = shown_of(p, part);
    if (!shown.cells.empty()) {
      text += "\n" + (is_contention(shown.cells.front().key)
                          ? contention_table(shown, part.test, style)
                          : case_text(cells_of(shown, part.test), false, style));
    }
  }
  if (const std::string why = fact(p, "gpus_left_out"); !why.empty()) {
    text += "\n" + folded(printable("no GPU measured: " + why), style);
  }
  text += reasons_text(cells_of(p, ""), k_most_reasons, false, style);
  if (std::any_of(p.cells.begin(), p.cells.end(),
                  [](const Cell& c) { return c.status == CellStatus::noisy; })) {
    text += "\n~ noisy: varied much or was disturbed; the cell's reason in the profile says how\n";
  }
  return text;
}

} // namespace reckon
