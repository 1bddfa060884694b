// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/json_fwd.hpp"
#include "expect/expectation.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace reckon {

/// A row of an output of nccl-tests.
struct MeasuredRow {
  std::uint64_t bytes = 0;
  std::string test; ///< "nccl_all_reduce_in_place fp32"
  double seconds = 0;
  double bus_bytes_per_second = 0; ///< as nccl-tests count
  double share = 0;                ///< fraction of Expected::most(); 0 where that is not known
};

/// Measurements of one collective by the same ranks beside what a machine should give.
struct JudgedCollective {
  Expected expected;
  std::vector<std::string> hosts; ///< that took part; empty: unknown which, or all of the output
  std::vector<MeasuredRow> rows;  ///< by test, then bytes
  std::size_t wrong = 0;          ///< rows with wrong values, which are not in `rows`
  double best_bus_bytes_per_second = 0;
  Judgement judgement = Judgement::unknown; ///< of the best row
};

struct JudgedLog {
  std::string machine; ///< name of the profile
  std::vector<JudgedCollective> collectives;
};

struct LogOptions {
  bool sharp = false; ///< as CollectiveJob::sharp
};

/// `measured`: imported outputs of nccl-tests, of one run or of several by other hosts. Each host
/// is taken for the first machine of `machine` that has a topology; a GPU is known by its PCI
/// address, or else by its number. Where hosts have unlike GPUs, those count that allow least.
/// Throws Error{input} where the profile lacks the GPUs, Error{usage} where nothing of `measured`
/// is a collective.
[[nodiscard]] JudgedLog judged_log(const Profile& machine, const Profile& measured,
                                   const LogOptions& options = {});

/// "schema": "judged_log".
[[nodiscard]] Json to_json(const JudgedLog& log);
/// For each collective what is expected, a table of the rows, and a verdict.
[[nodiscard]] std::string render(const JudgedLog& log, const Style& style);

} // namespace reckon
