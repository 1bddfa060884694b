// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/json_fwd.hpp"
#include "documents/requirements.hpp"
#include "expect/ceilings.hpp"
#include "present/style.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace reckon {

/// One collective on some machines.
struct Expected {
  std::string collective;
  std::size_t machines = 0, ranks = 0;
  double bus_factor = 0; ///< bus bandwidth over bytes / time
  std::vector<WayCeiling> ways;
  std::vector<std::string> unknown; ///< links of unknown rate: counted as unlimited
  bool lacks_gpu_links = false;     ///< the machine has GPUs and no known NVLinks

  /// The upper bound of all ways, bus bytes per second; 0 where no rate is known.
  [[nodiscard]] double most() const;
  /// The least that long messages usually reach: of all ways the one with the greatest. 0 where
  /// nothing is published.
  [[nodiscard]] double least_usual() const;
  /// The way that usually gives most; null where nothing is published.
  [[nodiscard]] const WayCeiling* best() const;
};

/// By collective. Throws as ceilings_of().
[[nodiscard]] std::vector<Expected>
expected_of(const Profile& profile, const CollectiveJob& job,
            const std::vector<const TestedCollective*>& collectives);

/// A way's name for people.
[[nodiscard]] std::string way_text(const WayCeiling& ceiling);
/// A row of "schema": "expectation".
[[nodiscard]] Json to_json(const Expected& expected);

struct Expectation {
  std::string machine; ///< name of the profile
  std::vector<Expected> rows;
};

/// "schema": "expectation".
[[nodiscard]] Json to_json(const Expectation& expectation);
/// A table for each number of machines.
[[nodiscard]] std::string render(const Expectation& expectation, const Style& style);

/// Limits for the cells of an imported log: each collective with `bytes` takes at most as long as
/// at the least that is usual, or at half of the ceiling where nothing is published. Throws
/// Error{usage} for fewer than 128 MiB, where latency counts, too.
[[nodiscard]] Requirements requirements_of(const Expectation& expectation, std::uint64_t bytes);

/// A clock's error, and the rounding of published rates.
inline constexpr double k_rate_tolerance = 0.01;

/// How a measured rate compares.
enum class Judgement {
  unknown,      ///< no rate of the links is known, or nothing is published
  normal,       ///< at least what the best way usually gives, or what a ring does
  low,          ///< less
  description,  ///< more than the links allow: the profile is not of this machine
  wrong_values, ///< what was computed is wrong
};
[[nodiscard]] std::string_view name_of(Judgement judgement);
/// `bus_bytes_per_second`: of long messages.
[[nodiscard]] Judgement judged(const Expected& expected, double bus_bytes_per_second);

} // namespace reckon
