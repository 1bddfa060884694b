// SPDX-License-Identifier: Apache-2.0
#include "import/message_cells.hpp"

#include "documents/cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace reckon::import_detail {

namespace {

bool is_shorter(const MessageRow& a, const MessageRow& b) {
  return a.bytes < b.bytes;
}

/// The name behind user@ of a prompt, "root@node-a:~#" or "[me@node-a work]$"; empty: none.
std::string_view host_of_prompt(std::string_view word) {
  const std::size_t at = word.find('@');
  word.remove_prefix(at == word.npos ? word.size() : at + 1);
  return word.substr(0, word.find_first_of(":]$#>"));
}

/// "node-a:8,node-b:8" of a launcher.
std::vector<std::string> host_list(std::string_view list) {
  std::vector<std::string> hosts;
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    const std::string_view host = list.substr(0, end);
    hosts.emplace_back(host.substr(0, host.find(':')));
    list.remove_prefix(std::min(end + 1, list.size()));
  }
  return hosts;
}

bool is_benchmark(std::string_view word) {
  word = word.substr(word.find_last_of('/') + 1);
  return word.starts_with("osu_") || ((word.starts_with("ib_") || word.starts_with("raw_eth")) &&
                                      (word.ends_with("_bw") || word.ends_with("_lat")));
}

/// The two machines of the command line above the output: a launcher's list, or where perftest's
/// client ran (the prompt, or ssh) and its last argument, the server. Empty: not said.
std::vector<std::string> named_hosts(const TextLines& lines) {
  constexpr std::array<std::string_view, 8> k_lists{"-H",      "-host", "--host",     "-hosts",
                                                    "--hosts", "-w",    "--nodelist", "-hostlist"};
  // Of perftest's other options the next word is the server.
  constexpr std::array<std::string_view, 10> k_flags{
      "-a", "-b", "-F", "-R", "-N", "-z", "-e", "--all", "--bidirectional", "--CPU-freq"};
  for (std::size_t at = 0; at < lines.size(); ++at) {
    const std::vector<std::string_view> words = words_of(lines[at]);
    const auto called = std::ranges::find_if(words, &is_benchmark);
    if (called == words.end()) {
      continue;
    }
    std::string client;
    for (auto word = words.begin(); word != called; ++word) {
      const std::size_t equals = std::min(word->find('='), word->size());
      const bool list = std::ranges::find(k_lists, word->substr(0, equals)) != k_lists.end();
      const std::string_view value = equals < word->size() ? word->substr(equals + 1) : *(word + 1);
      if (auto hosts = host_list(list ? value : ""); hosts.size() == 2) {
        return hosts;
      }
      const std::string_view host = *word == "ssh" ? *(word + 1) : host_of_prompt(*word);
      client = host.empty() ? client : std::string(host);
    }
    const std::string_view server = words.back();
    const std::string_view before = words[words.size() - std::min<std::size_t>(2, words.size())];
    const bool value = before.starts_with('-') && !before.starts_with("--report") &&
                       std::ranges::find(k_flags, before) == k_flags.end();
    if (!client.empty() && called != words.end() - 1 && !server.starts_with('-') && !value) {
      return {client, std::string(server)};
    }
  }
  return {};
}

} // namespace

MessageCells::MessageCells(const TextLines& lines, const ImportOptions& options, Collector& out)
    : m_lines(lines), m_out(out), m_ends(machine_ids(options)) {
  if (const std::vector<std::string> hosts = named_hosts(lines);
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
    m_lines.fail(table.line, fmt::format("{} does not say on which machines its two processes ran; "
                                         "name both with --machine, the one that starts first: "
                                         "--machine m0,m1 (m0,m0 where it was one)",
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
