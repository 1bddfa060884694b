// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "import/collectives.hpp"
#include "import/collector.hpp"
#include "import/message_cells.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reckon::import_detail {

struct NcclRank {
  int number = 0, group = 0;
  std::string host;
  int device = 0;
  std::string address, name;
};

/// How many ranks the first one's group has, which is how many the bus bandwidth is of: each group
/// has a communicator of its own, and all work at once.
[[nodiscard]] std::size_t ranks_of_group(const std::vector<NcclRank>& ranks);

/// A row of nccl-tests.
struct NcclRow {
  std::uint64_t bytes = 0, count = 0;
  std::string_view type, redop, root;
};

/// Half of a row, out of place or in place.
struct NcclHalf {
  bool in_place = false;
  double time_us = 0;
  std::span<const double> iterations_us{}; ///< empty: only their mean is known
  double wrong = 0;                        ///< values
};

/// The rows of nccl-tests as cells of a profile.
class NcclCells {
public:
  explicit NcclCells(Collector& out) : m_out(out) {}

  // `place` begins an error's message: "FILE:LINE: ", or with the JSON pointer.

  /// The ranks of the rows that follow. Throws Error{input} where they are on other machines than
  /// those before, and where groups have different numbers of ranks.
  void ranks(const std::string& place, const std::vector<NcclRank>& ranks);
  /// `known`: whether it is this one, and not another of the same bus bandwidth.
  void set_collective(const Collective& collective, bool known = true) {
    m_collective = &collective;
    m_known = known;
  }
  /// How often the operation of each row that follows was made; 0: not said.
  void set_runs(std::uint64_t runs) { m_runs = runs; }
  /// A remark on the cells that follow.
  void set_remark(std::string remark) { m_remark = std::move(remark); }

  /// Count, rates and time must fit. `rounding_of_time` is a part of it.
  void check_count(const std::string& place, const NcclRow& row) const;
  void check_rates(const std::string& place, double expected, double rounding_of_time, double algbw,
                   double busbw) const;
  /// Throws Error{input} for a root, a type or an operation that cannot be. False: the values are
  /// wrong.
  bool add(const std::string& place, const NcclRow& row, const NcclHalf& half);
  /// The table is over: what two machines sent each other in its longest row, both ways at once.
  void end_table();

private:
  [[nodiscard]] CellKey key_of(const std::string& place, const NcclRow& row) const;
  void keep_longest(const NcclRow& row, double time_us);

  Collector& m_out;
  const Collective* m_collective = nullptr;
  std::string m_remark;
  std::vector<std::string> m_hosts; ///< of the first test
  std::vector<std::string> m_gpus;  ///< of each rank of the first one's group
  std::size_t m_groups = 1;
  bool m_single = true;  ///< whether all are on one machine
  bool m_inside = false; ///< whether each of several groups is
  bool m_known = true;
  std::uint64_t m_runs = 0;
  MessageRow m_longest; ///< of two machines: bus bandwidth, each way
};

/// What -J writes has this.
inline constexpr std::string_view k_nccl_json = "\"aggregated_iterations\":";
[[nodiscard]] Profile read_nccl_json(const TextLines& lines, const ImportOptions& options);

} // namespace reckon::import_detail
