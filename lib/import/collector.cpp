// SPDX-License-Identifier: Apache-2.0
#include "import/collector.hpp"

#include "core/csv.hpp"
#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/whole_number.hpp"
#include "documents/cells.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <set>
#include <utility>

namespace reckon::import_detail {
namespace {

constexpr const char* k_several = "machines"; ///< id of those that --machine names

/// The number nearest to the decimal that was meant: 17.15 us times 1e-6 is 1.7149999999999997e-05.
double as_decimal(double value) {
  return finite_number(fmt::format("{:.15g}", value)).value_or(value);
}

/// An identifier of at most 256 characters without control characters, as documents want it.
std::string as_name(std::string_view text) {
  return one_line(trimmed(text)).substr(0, 256);
}

} // namespace

std::vector<std::string> machine_ids(const ImportOptions& options) {
  const std::vector<std::string_view> ids = split(options.machine, ",");
  return {ids.begin(), ids.end()};
}

void split_group(Profile& profile) {
  const auto found = std::ranges::find(profile.machines, k_several, &MachineGroup::id);
  if (found == profile.machines.end()) {
    return;
  }
  const std::vector<std::string> ids = found->members;
  profile.machines.erase(found);
  std::vector<Cell> cells;
  for (const std::string& id : ids) {
    profile.machines.push_back({.id = id});
    if (profile.topology.find(id) == nullptr) {
      profile.topology.objects.push_back({.id = id});
    }
    for (Cell cell : profile.cells) {
      if (cell.key.from == k_several) {
        cell.key.from = id;
        cells.push_back(std::move(cell));
      }
    }
  }
  std::erase_if(profile.cells, [](const Cell& cell) { return cell.key.from == k_several; });
  profile.cells.insert(profile.cells.end(), cells.begin(), cells.end());
}

std::string common_name(const std::string& a, const std::string& b) {
  const auto kind = [](const std::string& text, std::size_t at) { // of a word, number or separator
    const auto c = static_cast<unsigned char>(at < text.size() ? text[at] : '-');
    return std::isalpha(c) != 0 ? 2 : std::isdigit(c) != 0 ? 1 : 0;
  };
  std::size_t end = 0;
  while (end < std::min(a.size(), b.size()) && a[end] == b[end]) {
    ++end;
  }
  const auto splits = [&](const std::string& text) {
    return kind(a, end - 1) > 0 && kind(a, end - 1) == kind(text, end);
  };
  while (end > 0 && (kind(a, end - 1) == 0 || splits(a) || splits(b))) {
    --end;
  }
  return end == 0 ? a : a.substr(0, end);
}

Collector::Collector(const std::string& file, const ImportOptions& options)
    : m_file(file), m_machine(machine_ids(options).front()) {
  const std::vector<std::string> given = machine_ids(options);
  const std::set<std::string> ids(given.begin(), given.end());
  MachineGroup& group = m_profile.machines.emplace_back();
  if (ids.size() == 1) {
    group.id = m_machine;
    object(m_machine, ObjectKind::machine, "");
    return;
  }
  // Each is a rank's; that they are alike is all that can be thought of them.
  group.id = k_several;
  group.count = ids.size();
  group.members.assign(ids.begin(), ids.end());
}

void Collector::machines(const std::vector<std::string>& hosts) {
  if (hosts.size() < 2) {
    if (!hosts.empty()) {
      host_name(m_machine, hosts.front());
    }
    return;
  }
  const std::string stem = m_machine == "m0" ? "m" : m_machine;
  m_profile.machines.clear();
  m_profile.topology.objects.clear();
  m_objects.clear();
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    m_profile.machines.push_back({.id = fmt::format("{}{}", stem, i), .name = as_name(hosts[i])});
    object(m_profile.machines.back().id, ObjectKind::machine, "");
  }
  m_machine = m_profile.machines.front().id;
}

std::vector<std::string> Collector::ids() const {
  std::vector<std::string> ids;
  for (const MachineGroup& machine : m_profile.machines) {
    ids.push_back(machine.id);
  }
  return ids;
}

void Collector::host_name(const std::string& machine, std::string_view name) {
  for (MachineGroup& group : m_profile.machines) {
    if (group.id == machine && group.name.empty()) {
      group.name = as_name(name);
    }
  }
}

TopologyObject& Collector::object(const std::string& id, ObjectKind kind,
                                  const std::string& parent) {
  const auto [at, added] = m_objects.try_emplace(id, m_profile.topology.objects.size());
  if (added) {
    m_profile.topology.objects.push_back({.id = id, .kind = kind, .parent = parent});
  }
  return m_profile.topology.objects[at->second];
}

std::string Collector::gpu(const std::string& machine, int index) {
  object(machine, ObjectKind::machine, "");
  return object(fmt::format("{}/gpu{}", machine, index), ObjectKind::gpu, machine).id;
}

std::string Collector::nic(const std::string& machine, const std::string& name) {
  TopologyObject& nic = object(fmt::format("{}/{}", machine, name), ObjectKind::nic, machine);
  nic.name = as_name(name);
  return nic.id;
}

std::string Collector::numa_node(int index) {
  TopologyObject& node =
      object(fmt::format("{}/numa{}", m_machine, index), ObjectKind::numa_node, m_machine);
  node.os_index = index;
  return node.id;
}

void Collector::describe_gpu(const std::string& id, std::string_view name,
                             std::string_view address) {
  TopologyObject& gpu = m_profile.topology.objects[m_objects.at(id)];
  if (gpu.name.empty()) {
    gpu.name = as_name(name);
  }
  if (gpu.pci_address.empty()) {
    gpu.pci_address = address;
  }
}

Cell& Collector::cell(const CellKey& key, std::string_view unit) {
  const auto [at, added] = m_cells.try_emplace(key, m_profile.cells.size());
  if (added) {
    Cell& cell = m_profile.cells.emplace_back();
    cell.key = key;
    cell.unit = unit;
  }
  return m_profile.cells[at->second];
}

void Collector::add(const CellKey& key, std::string_view unit, double value,
                    const std::string& remark, std::string_view bytes_convention) {
  Cell& added = cell(key, unit);
  if (!added.has_value()) { // seen without a value before
    added.reason.clear();
  }
  added.status = CellStatus::published;
  add_sample(added, value);
  if (unit == k_rate) {
    added.bytes_convention = bytes_convention;
  }
  if (!remark.empty() && !contains(added.reason, remark)) {
    added.reason += (added.reason.empty() ? "" : "; ") + remark;
  }
}

void Collector::add_printed(const CellKey& key, std::string_view unit, double value,
                            const std::string& remark) {
  if (value > 0) {
    add(key, unit, value, remark);
  } else {
    absent(key, unit, CellStatus::failed, "the tool prints 0.00");
  }
}

void Collector::measured(const CellKey& key, std::vector<double> samples_s,
                         const std::string& doubt) {
  Cell& added = cell(key, k_time);
  added.status = doubt.empty() ? CellStatus::ok : CellStatus::noisy;
  added.reason = doubt;
  for (const double seconds : samples_s) {
    add_sample(added, seconds);
  }
}

void Collector::add_sample(Cell& cell, double value) const {
  if (!std::isfinite(value)) {
    fail(ErrorKind::input, fmt::format("{}: a value of {} is too large", m_file, cell.key.test));
  }
  cell.samples.push_back(as_decimal(value));
}

void Collector::absent(const CellKey& key, std::string_view unit, CellStatus status,
                       const std::string& reason) {
  if (!m_cells.contains(key)) {
    Cell& added = cell(key, unit);
    added.status = status;
    added.reason = reason;
  }
}

void Collector::note(const std::string& name, std::string_view text) {
  if (!trimmed(text).empty()) {
    m_profile.context[name] = one_line(trimmed(text));
  }
}

void Collector::left_out(std::string_view what) {
  constexpr std::size_t k_most = 8;
  if (m_left_out.size() <= k_most &&
      std::find(m_left_out.begin(), m_left_out.end(), what) == m_left_out.end()) {
    m_left_out.push_back(m_left_out.size() < k_most ? one_line(what) : "and more");
  }
}

void Collector::refuse_nothing(const std::string& tool, std::string_view takes) const {
  if (!m_cut_off.empty()) {
    fail(ErrorKind::input, m_cut_off.front() + ", and nothing whole is before it; give the tool's "
                                               "whole output");
  }
  std::string why =
      fmt::format("{} measured nothing here{}; give the output of a run that did", tool,
                  takes.empty() ? "" : fmt::format(" that reckon takes ({})", takes));
  if (!m_profile.cells.empty()) {
    const Cell& first = m_profile.cells.front();
    why =
        fmt::format("no test has a value, the first ({}) because {}; give the output of a run that "
                    "measured something",
                    first.key.test, first.reason);
  } else if (!m_left_out.empty()) {
    why = fmt::format("reckon takes none of this file's tests ({}); of {} it takes {}",
                      fmt::join(m_left_out, ", "), tool, takes);
  }
  fail(ErrorKind::input, fmt::format("{}: {}", m_file, why));
}

Profile Collector::finish(const std::string& tool, std::string_view text, std::string_view takes) {
  for (Cell& cell : m_profile.cells) {
    if (cell.has_value()) {
      summarize_cell(cell);
    }
  }
  if (m_needs_cell && std::ranges::none_of(m_profile.cells, &Cell::has_value)) {
    refuse_nothing(tool, takes);
  }
  for (const std::string& cut : m_cut_off) {
    log(LogLevel::warn, "{}; what was measured counts", cut);
  }
  if (!m_left_out.empty()) {
    log(LogLevel::warn, "{}: left out, for a profile has no place for them: {}", m_file,
        fmt::join(m_left_out, ", "));
  }
  if (!m_profile.topology.objects.empty()) {
    split_group(m_profile);
  }
  const std::string name =
      m_file == "-" ? "standard input" : std::filesystem::path(m_file).filename().string();
  m_profile.name = as_name(std::filesystem::path(name).stem().string());
  if (m_profile.name.empty()) {
    m_profile.name = "imported";
  }
  m_profile.source = fmt::format("imported from {}, {}", tool, one_line(name));
  // Its digest tells a file that is imported again.
  const std::string digest = digest_of(text), id = digest.substr(7, 12);
  m_profile.context["imported " + id] = fmt::format("{}, {}, {}", tool, one_line(name), digest);
  if (m_seconds > 0) {
    m_profile.context[k_seconds_of + id] = fmt::format("{:.3g}", m_seconds);
  }
  m_profile.context["topology"] =
      "not known: machines with the parts that were measured, without the tree between them";
  std::ranges::sort(m_profile.cells, {}, &Cell::key);
  return std::move(m_profile);
}

std::string pci_address(std::string_view text) {
  text.remove_prefix(text.starts_with("PCI:") ? 4 : 0);
  const std::vector<std::string_view> parts = split(text, ":");
  return parts.size() < 3 ? "" : pci_address(parts[0], parts[1], parts[2].substr(0, 2));
}

std::string pci_address(std::string_view domain, std::string_view bus, std::string_view device) {
  const auto d = whole_number<std::uint32_t>(domain, 16), b = whole_number<std::uint32_t>(bus, 16),
             n = whole_number<std::uint32_t>(device, 16);
  return d && b && n && *b <= 0xff && *n <= 0x1f ? fmt::format("{:04x}:{:02x}:{:02x}.0", *d, *b, *n)
                                                 : std::string();
}

} // namespace reckon::import_detail
