// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/json_fwd.hpp"
#include "documents/requirements.hpp"
#include "expect/ceilings.hpp"
#include "expect/usual.hpp"
#include "present/style.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace reckon {

/// What long messages usually reach, bus bytes per second: of each kind of links a share of what
/// these would allow alone; the least of them counts.
struct UsualRange {
  double low = 0, high = 0;
  UsualShare share; ///< of the kind that decides `low`
};

/// A way, what the links allow it, and what it usually reaches of that.
struct ExpectedWay {
  WayCeiling ceiling;
  std::optional<UsualRange> usual; ///< absent: nothing is published, or for "any"
};

/// One collective on some machines.
struct Expected {
  std::string collective;
  std::size_t machines = 0, ranks = 0;
  double bus_factor = 0; ///< bus bandwidth over bytes / time
  std::vector<ExpectedWay> ways;
  std::vector<std::string> unknown; ///< links of unknown rate: counted as unlimited
  bool lacks_gpu_links = false;     ///< the machine has GPUs and no known NVLinks
  bool lacks_gpu_rates = false;     ///< as in WayCeilings

  /// The upper bound of all ways, bus bytes per second; 0 where no rate is known.
  [[nodiscard]] double most() const;
  /// The least that long messages usually reach: of all ways the one with the greatest. 0 where
  /// nothing is published.
  [[nodiscard]] double least_usual() const;
  /// The way that usually gives most; null where nothing is published.
  [[nodiscard]] const ExpectedWay* best() const;
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
/// at the least that is usual, or at half of the ceiling where nothing is published.
[[nodiscard]] Requirements requirements_of(const Expectation& expectation, std::uint64_t bytes);

/// How a measured rate compares.
enum class Judgement {
  unknown,     ///< no rate of the links is known, or nothing is published
  normal,      ///< at least what is usual
  low,         ///< less
  description, ///< more than the links allow: the profile is not of this machine
};
[[nodiscard]] std::string_view name_of(Judgement judgement);
/// `bus_bytes_per_second`: of long messages.
[[nodiscard]] Judgement judged(const Expected& expected, double bus_bytes_per_second);

} // namespace reckon
