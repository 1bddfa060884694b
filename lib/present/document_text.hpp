// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/document.hpp"
#include "present/style.hpp"

#include <string>

namespace reckon {

struct ShowOptions {
  std::string test;     ///< of a profile: only this case, in full; empty: all, curves thinned out
  bool samples = false; ///< the raw samples too, in base units
  /// Of a workload: its tensors stand in the reverse of the order of the file that stores the
  /// model.
  bool stored_order = false;
};

/// A profile: the machine, each case as a matrix, a table over sizes or a table over threads, the
/// fits, and doubtful or missing cells with the reasons. Throws Error{usage} that lists the cases
/// for an unknown options.test.
[[nodiscard]] std::string render(const Profile& profile, const Style& style,
                                 const ShowOptions& options = {});
/// The result of probing one machine, on a few screens: the usual settings of each case, then why
/// cells have no value. render() has everything.
[[nodiscard]] std::string render_summary(const Profile& profile, const Style& style);
/// The result of probing a cluster, on a few screens: its machines, latency and bandwidth of all
/// pairs as matrices, the ports, and whether halves can talk at full speed. Rates in MB/s or GB/s.
[[nodiscard]] std::string render_cluster(const Profile& profile, const Style& style);
/// A plan: bound and prediction, candidates, ranks (equal ones on one line), parts, and explain().
[[nodiscard]] std::string render(const Plan& plan, const Style& style,
                                 const ShowOptions& options = {});
/// A report: report_table() and the ranks.
[[nodiscard]] std::string render(const Report& report, const Style& style,
                                 const ShowOptions& options = {});
[[nodiscard]] std::string render(const Workload& workload, const Style& style,
                                 const ShowOptions& options = {});
[[nodiscard]] std::string render(const Roles& roles, const Style& style,
                                 const ShowOptions& options = {});
[[nodiscard]] std::string render(const Document& document, const Style& style,
                                 const ShowOptions& options = {});

/// Each solved quantity of a plan with its equation and inputs, the binding resource and its
/// remedy.
[[nodiscard]] std::string explain(const Plan& plan, const Style& style);
/// Predicted | measured | error | cause, for each stage and the whole, then bound, goodput and
/// verification.
[[nodiscard]] std::string report_table(const Report& report, const Style& style);

/// For programs: a header line and comma-separated values as RFC 4180 quotes them, lines end with
/// \n. A profile has one row a cell (with samples: one a sample), a plan one a part, a report one a
/// rank (with samples: one an iteration), a workload one a tensor, roles one a group.
[[nodiscard]] std::string csv(const Document& document, const ShowOptions& options = {});

} // namespace reckon
