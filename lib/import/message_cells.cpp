// SPDX-License-Identifier: Apache-2.0
#include "import/message_cells.hpp"

#include "documents/cells.hpp"
#include "import/host_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace reckon::import_detail {

namespace {

bool is_shorter(const MessageRow& a, const MessageRow& b) {
  return a.bytes < b.bytes;
}

} // namespace

MessageCells::MessageCells(const TextLines& lines, const ImportOptions& options, Collector& out)
    : m_lines(lines), m_out(out), m_ends(machine_ids(options)) {
  if (const std::vector<std::string> hosts = hosts_of_pair(lines, options);
      m_ends.size() == 1 && hosts.size() == 2 && hosts[0] != hosts[1]) {
    m_out.machines(hosts);
    m_named = m_out.ids();
    m_ends = m_named;
  }
}

void MessageCells::use_device(const std::string& name) {
  for (std::size_t i = 0; i < m_named.size(); ++i) {
    m_ends[i] = m_out.nic(m_named[i], name);
  }
}

bool MessageCells::check(const MessageTable& table) const {
  if (m_ends.size() != 2) {
    m_lines.fail(table.line,
                 fmt::format("{} does not say on which machines its two processes ran; "
                             "name both with --machine, the one that starts first: "
                             "--machine m0,m1 (m0,m0 where it was one), or name the file "
                             "after them, as gpu-01_gpu-02.log",
                             table.what));
  }
  if (table.rows.empty()) {
    m_out.cut_off(
        fmt::format("{}{} has no rows below this", m_lines.place(table.line), table.what));
  }
  return !table.rows.empty();
}

bool MessageCells::of_pair(const MessageTable& table) const {
  return m_ends[0] != m_ends[1] || table.gpus[0] || table.gpus[1];
}

std::string MessageCells::end(const MessageTable& table, std::size_t process) {
  const std::optional<GpuEnd>& gpu = table.gpus[process];
  if (!gpu) {
    return m_ends[process];
  }
  // The machine's, also where the process's NIC is known.
  const std::string id = m_out.gpu((m_named.empty() ? m_ends : m_named)[process], gpu->number);
  m_out.describe_gpu(id, gpu->name, gpu->address);
  return id;
}

void MessageCells::add(const MessageTable& table, CellKey key, std::string_view unit,
                       double value) {
  key.transport = table.transport;
  key.from = end(table, 0);
  key.to = end(table, 1);
  if (table.backwards) {
    key.from.swap(key.to);
  }
  m_out.add_printed(key, unit, value, table.remark);
  if (table.both && key.from != key.to) {
    key.from.swap(key.to);
    m_out.add_printed(key, unit, value, table.remark);
  }
}

void MessageCells::add_of_any(const MessageTable& table, CellKey key, std::string_view unit,
                              double value) {
  if (!m_named.empty()) {
    return;
  }
  key.from = m_out.group();
  key.transport = table.transport;
  if (value > 0 && table.memory_known && !table.gpus[0] && !table.gpus[1]) {
    m_out.add(key, unit, value, table.remark);
  }
}

void MessageCells::times(const MessageTable& table) {
  if (!check(table)) {
    return;
  }
  constexpr std::uint64_t k_short = 64;
  const bool apart = of_pair(table);
  CellKey key{.in_flight = 1, .direction = k_one_way};
  MessageTable by_size = table;
  by_size.both = false;
  for (const MessageRow& row : table.rows) {
    if (row.bytes > 0) {
      key.test = apart ? k_pair_time_by_size : k_fabric_write;
      key.bytes = row.bytes;
      add(by_size, key, k_time, row.value);
    }
  }
  const MessageRow& shortest = *std::min_element(table.rows.begin(), table.rows.end(), &is_shorter);
  if (shortest.bytes <= k_short) {
    key.bytes = shortest.bytes;
    key.test = apart ? k_pair_latency : k_fabric_latency;
    add(table, key, k_time, shortest.value);
    if (apart) {
      key.test = k_fabric_latency;
      add_of_any(table, key, k_time, shortest.value);
    }
  }
}

void MessageCells::rates(const MessageTable& printed, bool two_way) {
  if (!check(printed)) {
    return;
  }
  const bool apart = of_pair(printed);
  MessageTable table = printed;
  if (two_way && apart) { // cells of pairs are of each way
    table.both = true;
    append(table.remark, "half of what the tool prints, the sum of both ways");
    for (MessageRow& row : table.rows) {
      row.value /= 2;
    }
  }
  CellKey key{.in_flight = table.in_flight, .direction = two_way ? k_two_way : k_one_way};
  MessageTable by_size = table;
  by_size.both = false;
  for (const MessageRow& row : table.rows) {
    key.test = apart ? k_pair_rate_by_size : k_fabric_aggregate;
    key.bytes = row.bytes;
    key.pairs = apart ? 0 : 1;
    add(by_size, key, k_rate, row.value);
  }
  if (apart) {
    const MessageRow& longest =
        *std::max_element(table.rows.begin(), table.rows.end(), &is_shorter);
    key.bytes = longest.bytes;
    key.test = k_pair_bandwidth;
    add(table, key, k_rate, longest.value);
    key.test = k_port_bandwidth;
    append(table.remark, "of one pair: with several peers a port may do more");
    add_of_any(table, key, k_rate, longest.value);
  }
}

} // namespace reckon::import_detail
