// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/json_fwd.hpp"
#include "documents/profile.hpp"
#include "present/style.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace reckon {

/// A row of an output of nccl-tests.
struct CollectiveRow {
  std::uint64_t bytes = 0;
  std::string test; ///< "nccl_all_reduce_in_place fp32"
  double seconds = 0;
  double bus_bytes_per_second =
      0;            ///< as nccl-tests count: 2 (n - 1) / n of the bytes, over the time
  double share = 0; ///< fraction of the bound; meaningless where one is above 1
};

/// Measured all-reduces beside the bound on all ways to sum on a machine's links.
struct CollectiveBound {
  std::string machine; ///< name of the profile
  std::size_t ranks = 0, hosts = 0;
  double bus_bytes_per_second = 0; ///< of the bound
  std::string by; ///< the binding resources: "what gpu0 must send", "the ports of 4 NICs"
  std::vector<std::string>
      links; ///< resources that the best trees of copies keep busy; may be empty
  std::vector<std::string> unknown; ///< links of unknown rate, which bind nothing
  bool lacks_gpu_links = false;     ///< the binding machine has GPUs without known NVLinks
  std::vector<CollectiveRow> rows;  ///< by test, then bytes
  /// Whether more was measured than the profile allows, so that it is no bound.
  [[nodiscard]] bool exceeded() const;
};

/// `measured`: an imported output of nccl-tests' all_reduce_perf. Each of its hosts is taken for
/// the first machine of `machine` that has a topology; a GPU is known by its PCI address, or else
/// by its number. Inside of a host it is equation 27 of docs/equations.md; between m hosts 2 (m -
/// 1) / m of the bytes leave each (equation 1), over all of its NICs. Throws Error{input} where the
/// profile lacks the GPUs or any rate, Error{usage} where nothing of `measured` is an all-reduce.
[[nodiscard]] CollectiveBound bound_of_all_reduce(const Profile& machine, const Profile& measured);

/// "schema": "collective_bound".
[[nodiscard]] Json to_json(const CollectiveBound& bound);
/// A table of the rows, the binding resources above it and the conclusion below.
[[nodiscard]] std::string render(const CollectiveBound& bound, const Style& style);

} // namespace reckon
