// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "strategies/forest/schemes.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// A named scheme or a mix, and its cost.
struct ForestCandidate {
  std::string name;
  double seconds_per_byte = 0; ///< of the gradient, until the busiest resource is done
  std::string limit;           ///< the busiest resource, and how many others are as busy
  std::size_t trees = 0;
  /// The same with every capacity at the high, and at the low end of its samples.
  double low_seconds_per_byte = 0, high_seconds_per_byte = 0;
};

/// A resource in the chosen trees, and its dual value in the best of all trees.
struct StationPrice {
  std::string resource;
  std::string source;          ///< of its capacity
  double bytes_per_second = 0; ///< capacity
  double load = 0;             ///< bytes for each byte of the gradient, with the background
  double busy = 0;             ///< part of the time, 0 to 1
  double price =
      0; ///< dual value: fraction of the least time that it accounts for; they add up to 1
  /// The fraction of the least time that 1 GB/s more would save; solved again, not extrapolated. 0
  /// where the price is 0.
  double gain_per_gb_s = 0;
};

enum class ForestChoice {
  single,  ///< one named scheme
  mix,     ///< several named schemes
  optimum, ///< trees that have no name
};
[[nodiscard]] std::string_view name_of(ForestChoice choice);

/// How one machine's workers sum their gradients and get the sum back, solved on the profile's
/// rates. Times are for each byte of a worker's gradient: a gradient of M bytes takes M times as
/// long. Immutable data that depend on the inputs only.
struct Forest {
  std::vector<std::string> endpoints; ///< topology ids by rank: the workers, then relays in use
  std::vector<std::size_t> places;    ///< the same as places of the network
  std::size_t workers = 0;
  std::vector<SumTree> trees;     ///< over `endpoints`; shares add up to 1
  std::vector<std::string> exits; ///< by tree: NIC of its root's traffic; empty without network
  ForestChoice choice = ForestChoice::single;
  bool shallow = false;        ///< for an optimum: other shares, of shallow trees
  double seconds_per_byte = 0; ///< time of these trees
  std::string limit;           ///< as a candidate's
  /// The same trees with every capacity at the high, and at the low end of its samples.
  double low_seconds_per_byte = 0, high_seconds_per_byte = 0;
  double single_seconds_per_byte = 0;  ///< best single named scheme
  double mix_seconds_per_byte = 0;     ///< best mix of named schemes
  double optimum_seconds_per_byte = 0; ///< best of all trees
  /// A bound on the optimum by the dual values; equal to it except for rounding unless the search
  /// ended early.
  double certificate_seconds_per_byte = 0;
  /// A bound on all trees with every capacity at the high end of its samples.
  double low_certificate_seconds_per_byte = 0;
  double bound_seconds_per_byte = 0; ///< no algorithm can beat this (equation 27)
  std::string bound_by;
  std::vector<ForestCandidate> candidates; ///< all named schemes and the best mix, fastest first
  ForestCandidate optimum;                 ///< the best of all trees
  std::vector<StationPrice> prices;        ///< highest price first, then busiest, then by name
};

/// Prediction::bound_by of a bound that the dual values prove, with the stations of the highest
/// prices.
[[nodiscard]] std::string by_dual_values(const Forest& forest);

/// The stations that are busy all the time; none where no rate is known.
[[nodiscard]] std::vector<std::string> binding(const Forest& forest);

/// Prediction::relief: the station whose rate would help most, or those that bind together.
[[nodiscard]] std::string relief_of(const Forest& forest);

enum class Gains {
  solved,
  left_out ///< gain_per_gb_s stays 0: a tenth of the work
};

/// "cpu_assisted numa0" as the name of a strategy: cpu_assisted_numa0.
[[nodiscard]] std::string strategy_text(std::string scheme);

/// The forests whose played times decide: the result of solve_forest(); the other named schemes
/// that need at most a quarter more than the best of all trees (at most eight, and always the one
/// whose strategy_text() is `wanted`); the best mix of them; the best of all trees; and last the
/// shallow trees that are hardly slower.
[[nodiscard]] std::vector<Forest> solve_forests(const Network& model, double tolerance = 0.01,
                                                Gains gains = Gains::solved,
                                                std::string_view wanted = {});

/// The first of these forests. Throws Error{input} where no trees join all workers.
[[nodiscard]] Forest solve_forest(const Network& model, double tolerance = 0.01,
                                  Gains gains = Gains::solved);

} // namespace reckon
