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
  /// Measured times of single operations: small messages vary more than bulk transfers do, so they
  /// have a tolerance of their own.
  double latency_tolerance = 0.15;
  /// Measured bandwidths, and measured times of whole iterations, which are bulk transfers.
  double bandwidth_tolerance = 0.05;
  /// Numbers without noise (solved, predicted, published). Only rounding may differ.
  double exact_tolerance = 1e-9;
  /// Chance of one false alarm in a whole comparison of two documents between which nothing
  /// changed.
  double alpha = 0.05;
  /// A measured change smaller than this many spreads (median absolute deviation / median, the
  /// larger of the two documents') is not told from drift between two runs, however many samples
  /// agree within each.
  double least_spreads = 3;
  /// A cell that the probe marked noisy is doubtful whatever its samples say: others' work on the
  /// same processors alone can halve a rate. Only more than this counts.
  double noisy_tolerance = 1;
  /// Only what got worse counts; everything is still listed.
  bool only_worse = false;
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
  std::string kind; ///< time, bound, term, parts, moved, lane, order, share, rank, value, cell, ...
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
  std::uint64_t compared = 0;        ///< quantities that stood in both documents
  /// The verdict: no difference counts.
  [[nodiscard]] bool same() const;
};

[[nodiscard]] Comparison compare(const Profile& before, const Profile& after,
                                 const CompareOptions& options = {});
[[nodiscard]] Comparison compare(const Plan& before, const Plan& after,
                                 const CompareOptions& options = {});
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
