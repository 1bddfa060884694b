// SPDX-License-Identifier: Apache-2.0
#include "import/nccl_cells.hpp"

#include "core/units.hpp"
#include "documents/cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace reckon::import_detail {
namespace {

constexpr const char* k_in_place = "_in_place"; ///< ends the test's name

/// Bytes of an element; 0: not known here.
std::uint64_t width_of(std::string_view type) {
  constexpr std::array<std::pair<std::string_view, std::uint64_t>, 10> k_widths{{{"int8", 1},
                                                                                 {"uint8", 1},
                                                                                 {"half", 2},
                                                                                 {"bfloat16", 2},
                                                                                 {"int32", 4},
                                                                                 {"uint32", 4},
                                                                                 {"float", 4},
                                                                                 {"int64", 8},
                                                                                 {"uint64", 8},
                                                                                 {"double", 8}}};
  const auto found = std::find_if(k_widths.begin(), k_widths.end(),
                                  [&](const auto& width) { return width.first == type; });
  return found == k_widths.end() ? 0 : found->second;
}

std::string suffix(const Where& where, std::string_view word) {
  if (!is_plain_word(word) || word.size() > 32) {
    where.fail(fmt::format("\"{}\" is no type and no operation; give the tool's output as it is",
                           quoted(word)));
  }
  return "_" + std::string(word);
}

} // namespace

void Where::fail(const std::string& problem) const {
  if (m_view != nullptr) {
    m_view->fail(problem);
  }
  m_lines->fail(m_at, problem);
}

std::size_t ranks_of_group(const std::vector<NcclRank>& ranks) {
  return static_cast<std::size_t>(
      std::count_if(ranks.begin(), ranks.end(),
                    [&](const NcclRank& rank) { return rank.group == ranks.front().group; }));
}

void NcclCells::place(const Where& where, const std::vector<NcclRank>& ranks) {
  std::vector<std::string> hosts;
  std::map<int, std::size_t> groups; // how many ranks they have
  std::set<std::pair<int, std::string>> parts;
  for (const NcclRank& rank : ranks) {
    if (std::find(hosts.begin(), hosts.end(), rank.host) == hosts.end()) {
      hosts.push_back(rank.host);
    }
    ++groups[rank.group];
    parts.emplace(rank.group, rank.host);
  }
  for (const auto& [group, count] : groups) {
    if (count != groups[ranks.front().group]) {
      where.fail(fmt::format("in the column Group, group {} has {} and group {} has {}, and the "
                             "tool prints the mean of their times; run each by itself, without "
                             "NCCL_TESTS_SPLIT and NCCL_TESTS_SPLIT_MASK",
                             ranks.front().group, counted(groups[ranks.front().group], "rank"),
                             group, counted(count, "rank")));
    }
  }
  if (m_hosts.empty()) {
    m_out.machines(hosts);
    m_hosts = hosts;
  } else if (hosts != m_hosts) {
    where.fail("this test ran on other machines than the one before; split the file, the tests of "
               "the same machines in each");
  }
  m_groups = groups.size();
  m_single = hosts.size() < 2;
  m_inside = !m_single && parts.size() == m_groups;
  m_gpus.clear();
  const std::string stem = m_single ? "" : m_out.machine().substr(0, m_out.machine().size() - 1);
  for (const NcclRank& rank : ranks) {
    const auto host = std::find(hosts.begin(), hosts.end(), rank.host) - hosts.begin();
    const std::string machine = m_single ? m_out.machine() : fmt::format("{}{}", stem, host);
    const std::string gpu = m_out.gpu(machine, rank.device);
    m_out.describe_gpu(gpu, rank.name, rank.address);
    if (rank.group == ranks.front().group) {
      m_gpus.push_back(gpu);
    }
  }
}

void NcclCells::check_count(const Where& where, const NcclRow& row) const {
  // Of what each rank has a part of, the count is that of a part.
  const auto ranks = static_cast<std::uint64_t>(m_gpus.size());
  const bool parts = m_collective->bus_factor(static_cast<double>(ranks)) < 1;
  const std::uint64_t counted = row.count * width_of(row.type);
  if (width_of(row.type) > 0 && counted != row.bytes && !(parts && counted * ranks == row.bytes)) {
    where.fail(fmt::format("{} elements of type {} are {} B, but the size is {}; is this another "
                           "collective (--collective), or not what the tool printed?",
                           row.count, row.type, counted, row.bytes));
  }
}

void NcclCells::check_rates(const Where& where, double expected, double rounding_of_time,
                            double algbw, double busbw) const {
  const double rounding = 0.011 + expected * rounding_of_time / (1 - rounding_of_time);
  if (std::abs(algbw - expected) > rounding) {
    where.fail(fmt::format("algbw is {} GB/s, but size / time gives {:.2f}; give the tool's output "
                           "as it is",
                           algbw, expected));
  }
  const double factor = m_collective->bus_factor(static_cast<double>(m_gpus.size()));
  if (std::abs(busbw - factor * algbw) > 0.02 + 0.01 * factor * algbw) {
    where.fail(
        fmt::format("busbw / algbw is {:.3f}, but {} of {} ranks has {:.3f}; is this another "
                    "collective (--collective), or is a rank missing in the list?",
                    busbw / algbw, m_collective->name, m_gpus.size(), factor));
  }
}

CellKey NcclCells::key_of(const Where& where, const NcclRow& row) const {
  CellKey key;
  key.bytes = row.bytes;
  key.sources = static_cast<int>(m_gpus.size());
  key.transport = "nccl";
  if (m_groups > 1) { // not what one does alone
    key.pairs = static_cast<int>(m_groups);
  }
  key.test = fmt::format("nccl_{}{}",
                         m_groups < 2 ? ""
                         : m_inside   ? "groups_inside_"
                                      : "groups_",
                         m_collective->name);
  // Documents know three types; others are part of the name.
  if (row.type == "float" || row.type == "half" || row.type == "bfloat16") {
    key.dtype = row.type == "float" ? "fp32" : row.type == "half" ? "fp16" : "bf16";
  } else {
    key.test += suffix(where, row.type);
  }
  if (row.redop != "sum" && row.redop != "none") {
    key.test += suffix(where, row.redop);
  }
  if (m_single) {
    key.from = m_out.machine();
  } else if (m_hosts.size() == 2 && row.root == "-1") {
    std::tie(key.from, key.to) = std::pair(m_out.ids().front(), m_out.ids().back());
  }
  if (row.root != "-1") {
    const auto rank = index_of(row.root);
    if (!rank || static_cast<std::size_t>(*rank) >= m_gpus.size()) {
      where.fail(fmt::format("the root is {}, but there are ranks 0 to {}; give the tool's output "
                             "as it is",
                             quoted(row.root), m_gpus.size() - 1));
    }
    const bool from_root = m_collective->name == "broadcast" || m_collective->name == "scatter";
    (from_root ? key.from : key.to) = m_gpus[static_cast<std::size_t>(*rank)];
  }
  return key;
}

bool NcclCells::add(const Where& where, const NcclRow& row, const NcclHalf& half) {
  CellKey key = key_of(where, row);
  key.test += half.in_place ? k_in_place : "";
  if (half.time_us <= 0) {
    m_out.absent(key, k_time, CellStatus::failed, "the tool prints a time of 0");
  } else if (m_collective->name == "alltoall" && half.in_place) {
    m_out.absent(key, k_time, CellStatus::unsupported, "nccl-tests has no alltoall in place");
  } else if (half.wrong > 0) {
    m_out.absent(key, k_time, CellStatus::mismatch,
                 fmt::format("nccl-tests found {} wrong values", half.wrong));
    return false;
  } else {
    keep_longest(row, half.time_us);
    if (half.iterations_us.empty() && m_known) {
      m_out.add(key, k_time, half.time_us * 1e-6, m_remark);
    }
  }
  for (const double us : half.wrong > 0 ? std::span<const double>() : half.iterations_us) {
    m_out.add(key, k_time, us * 1e-6, m_remark);
  }
  return true;
}

void NcclCells::keep_longest(const NcclRow& row, double time_us) {
  m_out.took(time_us * 1e-6 * static_cast<double>(m_runs));
  if (m_hosts.size() == 2 && m_groups < 2 && !m_collective->has_root &&
      row.bytes > m_longest.bytes) {
    const double factor = m_collective->bus_factor(static_cast<double>(m_gpus.size()));
    m_longest = {row.bytes, factor * static_cast<double>(row.bytes) / time_us * 1e6};
  }
}

void NcclCells::end_table() {
  const auto [bytes, rate] = std::exchange(m_longest, {});
  CellKey key{.test = k_pair_bandwidth, .bytes = bytes, .direction = k_two_way};
  key.sources = static_cast<int>(m_gpus.size());
  key.transport = m_known && bytes > 0 ? fmt::format("nccl {}", m_collective->name) : "nccl";
  std::tie(key.from, key.to) = std::pair(m_out.ids().front(), m_out.ids().back());
  for (int way = 0; way < 2 && bytes > 0; ++way) {
    m_out.add(key, k_rate, rate, "bus bandwidth");
    std::swap(key.from, key.to);
  }
}

} // namespace reckon::import_detail
