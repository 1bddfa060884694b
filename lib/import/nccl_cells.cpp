// SPDX-License-Identifier: Apache-2.0
#include "import/nccl_cells.hpp"

#include "core/error.hpp"
#include "core/units.hpp"
#include "documents/cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>
#include <utility>

namespace reckon::import_detail {
namespace {

constexpr const char* k_in_place = "_in_place"; ///< ends the test's name

/// Bytes of an element; 0: not known here.
std::uint64_t width_of(std::string_view type) {
  if (type == "half" || type == "float" || type == "double") {
    return type == "half" ? 2 : type == "float" ? 4 : 8;
  }
  for (const std::string_view begin : {"int", "uint", "bfloat"}) {
    if (type.starts_with(begin)) {
      return static_cast<std::uint64_t>(index_of(type.substr(begin.size())).value_or(0)) / 8;
    }
  }
  return 0;
}

[[noreturn]] void refuse(const std::string& place, const std::string& problem) {
  fail(ErrorKind::input, place + problem);
}

} // namespace

std::size_t ranks_of_group(const std::vector<NcclRank>& ranks) {
  return static_cast<std::size_t>(std::ranges::count(ranks, ranks.front().group, &NcclRank::group));
}

void NcclCells::ranks(const std::string& place, const std::vector<NcclRank>& ranks) {
  std::vector<std::string> hosts;
  std::map<int, std::size_t> groups; // how many ranks they have
  std::set<std::pair<int, std::string>> parts;
  for (const NcclRank& rank : ranks) {
    if (std::ranges::find(hosts, rank.host) == hosts.end()) {
      hosts.push_back(rank.host);
    }
    ++groups[rank.group];
    parts.emplace(rank.group, rank.host);
  }
  for (const auto& [group, count] : groups) {
    if (count != groups[ranks.front().group]) {
      refuse(place, fmt::format("in the column Group, group {} has {} and group {} has {}, and the "
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
    refuse(place,
           "this test ran on other machines than the one before; split the file, the tests of "
           "the same machines in each");
  }
  m_groups = groups.size();
  m_single = hosts.size() < 2;
  m_inside = !m_single && parts.size() == m_groups;
  m_gpus.clear();
  const std::vector<std::string> machines = m_out.ids();
  for (const NcclRank& rank : ranks) {
    const auto host = static_cast<std::size_t>(std::ranges::find(hosts, rank.host) - hosts.begin());
    const std::string gpu = m_out.gpu(machines[host], rank.device);
    m_out.describe_gpu(gpu, rank.name, rank.address);
    if (rank.group == ranks.front().group) {
      m_gpus.push_back(gpu);
    }
  }
}

void NcclCells::check_count(const std::string& place, const NcclRow& row) const {
  // Of what each rank has a part of, the count is that of a part.
  const auto ranks = static_cast<std::uint64_t>(m_gpus.size());
  const bool parts = m_collective->bus_factor(static_cast<double>(ranks)) < 1;
  const std::uint64_t counted = row.count * width_of(row.type);
  if (width_of(row.type) > 0 && counted != row.bytes && !(parts && counted * ranks == row.bytes)) {
    refuse(place,
           fmt::format("{} elements of type {} are {} B, but the size is {}; is this another "
                       "collective (--collective), or not what the tool printed?",
                       row.count, row.type, counted, row.bytes));
  }
}

void NcclCells::check_rates(const std::string& place, double expected, double rounding_of_time,
                            double algbw, double busbw) const {
  check_rate(place, "algbw", algbw, expected,
             0.011 + expected * rounding_of_time / (1 - rounding_of_time));
  check_bus_rate(place, *m_collective, static_cast<double>(m_gpus.size()), algbw, busbw);
}

CellKey NcclCells::key_of(const std::string& place, const NcclRow& row) const {
  CellKey key{.test = fmt::format("nccl_{}{}",
                                  m_groups < 2 ? ""
                                  : m_inside   ? "groups_inside_"
                                               : "groups_",
                                  m_collective->name),
              .bytes = row.bytes,
              .pairs = m_groups > 1 ? static_cast<int>(m_groups) : 0, // not what one does alone
              .sources = static_cast<int>(m_gpus.size()),
              .transport = "nccl"};
  name_type(key, row.type, place);
  if (row.redop != "sum" && row.redop != "none") {
    name_word(key, row.redop, place);
  }
  if (m_single) {
    key.from = m_out.machine();
  } else if (m_hosts.size() == 2 && row.root == "-1") {
    std::tie(key.from, key.to) = std::pair(m_out.ids().front(), m_out.ids().back());
  }
  if (row.root != "-1") {
    const auto rank = index_of(row.root);
    if (!rank || static_cast<std::size_t>(*rank) >= m_gpus.size()) {
      refuse(place,
             fmt::format("the root is {}, but there are ranks 0 to {}; give the tool's output "
                         "as it is",
                         quoted(row.root), m_gpus.size() - 1));
    }
    const bool from_root = m_collective->name == "broadcast" || m_collective->name == "scatter";
    (from_root ? key.from : key.to) = m_gpus[static_cast<std::size_t>(*rank)];
  }
  return key;
}

bool NcclCells::add(const std::string& place, const NcclRow& row, const NcclHalf& half) {
  CellKey key = key_of(place, row);
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
    std::vector<double> times_us(half.iterations_us.begin(), half.iterations_us.end());
    if (times_us.empty() && m_known) {
      times_us.push_back(half.time_us);
    }
    for (const double us : times_us) {
      m_out.add(key, k_time, us * 1e-6, m_remark);
    }
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
