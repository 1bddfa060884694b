// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/json_fwd.hpp"
#include "documents/document.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace reckon {

/// When two numbers differ by meaning. All tolerances are relative to the smaller number, so the
/// verdict does not depend on the order of the documents.
struct CompareOptions {
  /// Measured times of single operations between machines: small messages vary more than bulk
  /// transfers, so they have a tolerance of their own.
  double latency_tolerance = 0.15;
  /// Measured bandwidths between machines, and measured times of whole iterations, which are bulk
  /// transfers.
  double bandwidth_tolerance = 0.05;
  /// Rates and times of one machine by itself: the placement of pages and other users of its caches
  /// and memory move them from one probe to the next.
  double machine_tolerance = 0.20;
  /// Numbers without noise (solved, predicted, published). Only rounding may differ.
  double exact_tolerance = 1e-9;
  /// Chance of one false alarm in a whole comparison of two documents between which nothing
  /// changed.
  double alpha = 0.05;
  /// A measured change smaller than this many spreads (median absolute deviation / median, the
  /// larger of the two documents') counts as drift between two runs, however many samples agree
  /// within each.
  double least_spreads = 3;
  /// Cells that the probe marked noisy: both their medians and the fast ends of their samples,
  /// which other programs affect last, have to move by more than this.
  double noisy_tolerance = 0.25;
  /// Cells of one machine with fewer samples are undecided: the probe ended them early.
  std::size_t least_samples = 10;
  /// Only worse differences count; everything is still listed.
  bool only_worse = false;
  /// Undecided quantities count, and quantities that only the first document has.
  bool strict = false;
};

enum class Effect { neutral, better, worse };

/// One document's side of a difference; without text and number: absent.
struct Side {
  std::string text;
  std::optional<double> number;
  std::string unit; ///< seconds, bytes, bytes_per_second, ratio; empty: a count or text
  [[nodiscard]] bool absent() const { return text.empty() && !number; }
  bool operator==(const Side&) const = default;
};

struct Difference {
  std::string kind;  ///< fact, term, parts, moved, lane, tree, order, latency, bandwidth, cell, ...
  std::string group; ///< group in a listing: a case of a profile, "ranks", ...
  std::string where; ///< path or key within the document
  Side before, after;
  std::optional<double> change;  ///< after / before - 1; absent when before is 0 or no number
  std::optional<double> p_value; ///< p-value of the rank test, corrected for the number of tests
  std::uint64_t parts =
      0; ///< for kind order: parts; for moved and lane: stretches that are whole in both ...
  std::uint64_t bytes = 0; ///< ... and their bytes
  Effect effect = Effect::neutral;
  std::string note;   ///< the same for both directions
  bool counts = true; ///< counts towards the verdict (CompareOptions::only_worse)
  /// For a profile: the machines or objects of the difference, one or a pair: "w2", "m0/gpu0".
  /// Empty: all of them.
  std::vector<std::string> places;
  /// `where` of the difference that explains this one: a pair is slow because a port is.
  std::string follows_from;
};

/// An input or condition of the documents that differs.
struct Cause {
  std::string
      what; ///< "profile", "option servers", "input bandwidth_bytes_per_second (BytePS eq. 1)"
  Side before, after;
};

/// The differences between two documents of one kind, by meaning: formatting, meaningless order,
/// provenance texts and anything within noise do not appear.
struct Comparison {
  std::string kind; ///< of the documents: "plan", ...
  std::vector<Difference> differences;
  /// Beyond the tolerance, but the samples are too few or too scattered to exclude chance.
  std::vector<Difference> undecided;
  std::vector<Cause> causes;         ///< never part of the verdict
  std::vector<std::string> warnings; ///< reasons to doubt the comparison itself
  /// Cells that have a value on one side only, because the other probe skipped them or measured
  /// other cases. They say nothing about the machine.
  std::vector<std::string> only_before, only_after;
  /// The largest change that does not count; its note says why.
  std::optional<Difference> largest_within;
  std::uint64_t compared = 0;              ///< quantities in both documents
  bool only_worse = false, strict = false; ///< the given options
  /// The verdict: no difference counts, and nothing counted is undecided or lost.
  [[nodiscard]] bool same() const;
};

[[nodiscard]] Comparison compare(const Profile& before, const Profile& after,
                                 const CompareOptions& options = {});
/// Only a longer predicted time makes a plan worse: all other figures are means to that end.
[[nodiscard]] Comparison compare(const Plan& before, const Plan& after,
                                 const CompareOptions& options = {});
/// A longer measured time, or wrong sums, make a report worse.
[[nodiscard]] Comparison compare(const Report& before, const Report& after,
                                 const CompareOptions& options = {});
[[nodiscard]] Comparison compare(const Workload& before, const Workload& after,
                                 const CompareOptions& options = {});
[[nodiscard]] Comparison compare(const Roles& before, const Roles& after,
                                 const CompareOptions& options = {});
/// Documents of different kinds are Error{input}.
[[nodiscard]] Comparison compare(const Document& before, const Document& after,
                                 const CompareOptions& options = {});

/// "schema": "comparison". Numbers that do not exist (a change from 0) are null.
[[nodiscard]] Json to_json(const Comparison& comparison);

} // namespace reckon
