// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/json_fwd.hpp"
#include "documents/document.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace reckon {

/// When two numbers differ by meaning. All tolerances are relative to the smaller of the two, so
/// that exchanging the documents gives the same verdict.
struct CompareOptions {
  /// Measured times of single operations between machines: small messages vary more than bulk
  /// transfers do, so they have a tolerance of their own.
  double latency_tolerance = 0.15;
  /// Measured bandwidths between machines, and measured times of whole iterations, which are bulk
  /// transfers.
  double bandwidth_tolerance = 0.05;
  /// What one machine does by itself: where pages lie, and what else uses its caches and memory,
  /// moves its rates and times from one probe to the next.
  double machine_tolerance = 0.20;
  /// Numbers without noise (solved, predicted, published). Only rounding may differ.
  double exact_tolerance = 1e-9;
  /// Chance of one false alarm in a whole comparison of two documents between which nothing
  /// changed.
  double alpha = 0.05;
  /// A measured change smaller than this many spreads (median absolute deviation / median, the
  /// larger of the two documents') is not told from drift between two runs, however many samples
  /// agree within each.
  double least_spreads = 3;
  /// Cells that the probe marked noisy: both their medians and the fast ends of their samples,
  /// which others' work reaches last, have to move by more than this.
  double noisy_tolerance = 0.25;
  /// Cells of one machine with fewer samples are undecided: the probe ended them early.
  std::size_t least_samples = 10;
  /// Only what got worse counts; everything is still listed.
  bool only_worse = false;
  /// What is undecided counts, and what was measured only before.
  bool strict = false;
};

enum class Effect { neutral, better, worse };

/// One document's side of a difference; neither text nor number: it is not there.
struct Side {
  std::string text;
  std::optional<double> number;
  std::string unit; ///< seconds, bytes, bytes_per_second, ratio; empty: a count or text
  [[nodiscard]] bool absent() const { return text.empty() && !number; }
  bool operator==(const Side&) const = default;
};

struct Difference {
  std::string kind;  ///< fact, term, parts, moved, lane, tree, order, latency, bandwidth, cell, ...
  std::string group; ///< what stands together in a listing: a case of a profile, "ranks", ...
  std::string where; ///< path or key within the document
  Side before, after;
  std::optional<double> change;  ///< after / before - 1; absent when before is 0 or no number
  std::optional<double> p_value; ///< of the rank test, corrected for the number of tests
  std::uint64_t parts =
      0; ///< of kind order: parts; of moved and lane: stretches that are whole in both ...
  std::uint64_t bytes = 0; ///< ... and how many bytes it concerns
  Effect effect = Effect::neutral;
  std::string note;   ///< the same for both directions
  bool counts = true; ///< towards the verdict (CompareOptions::only_worse)
  /// Of a profile: the machines or objects that it is about, one or a pair: "w2", "m0/gpu0". Empty:
  /// all of them.
  std::vector<std::string> places;
  /// `where` of the difference that explains this one: a pair is slow because a port is.
  std::string follows_from;
};

/// Something that the documents were made from or under, and that is not the same.
struct Cause {
  std::string
      what; ///< "profile", "option servers", "input bandwidth_bytes_per_second (BytePS eq. 1)"
  Side before, after;
};

/// What differs between two documents of one kind, by meaning: formatting, order where order means
/// nothing, provenance texts and anything within noise do not appear.
struct Comparison {
  std::string kind; ///< of the documents: "plan", ...
  std::vector<Difference> differences;
  /// Beyond the tolerance, but the samples are too few or too scattered to say whether by chance.
  std::vector<Difference> undecided;
  std::vector<Cause> causes;         ///< never part of the verdict
  std::vector<std::string> warnings; ///< why the comparison itself may be doubtful
  /// Cells that have a value on one side only, for the other probe skipped them or had none: what
  /// was measured is another set, which says nothing of the machine.
  std::vector<std::string> only_before, only_after;
  /// The largest change that counts as none; its note says why.
  std::optional<Difference> largest_within;
  std::uint64_t compared = 0;              ///< quantities that stood in both documents
  bool only_worse = false, strict = false; ///< as asked for
  /// The verdict: no difference counts, and nothing is undecided or lost where that counts.
  [[nodiscard]] bool same() const;
};

[[nodiscard]] Comparison compare(const Profile& before, const Profile& after,
                                 const CompareOptions& options = {});
/// Worse is a plan with a longer predicted time, and nothing else of it: all other figures are
/// means to that end.
[[nodiscard]] Comparison compare(const Plan& before, const Plan& after,
                                 const CompareOptions& options = {});
/// Worse is a report with a longer measured time, or with wrong sums.
[[nodiscard]] Comparison compare(const Report& before, const Report& after,
                                 const CompareOptions& options = {});
[[nodiscard]] Comparison compare(const Workload& before, const Workload& after,
                                 const CompareOptions& options = {});
[[nodiscard]] Comparison compare(const Roles& before, const Roles& after,
                                 const CompareOptions& options = {});
/// Documents of unlike kinds are Error{input}.
[[nodiscard]] Comparison compare(const Document& before, const Document& after,
                                 const CompareOptions& options = {});

/// "schema": "comparison". Numbers that do not exist (a change from 0) are null.
[[nodiscard]] Json to_json(const Comparison& comparison);

} // namespace reckon
