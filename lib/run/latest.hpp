// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "run/values.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace reckon {

/// Gradients of an asynchronous run that make the parameters a record of the changes in them:
/// worker i's gradient is a power of (steps + 1) of its own, so that the digits of (first parameter
/// - parameter) / k_learning_rate count how many changes of each worker are in it. Too many workers
/// for one number share the elements: each class of elements has the digits of some of them.
///
/// Exact with SGD, in any order of the changes. steps >= 1.
class LatestValues {
public:
  LatestValues(std::uint32_t workers, std::uint32_t steps);

  /// Worker `index`'s gradient, the same in every step, and the poison between the runs.
  void fill(std::span<std::byte> buffer, std::span<const DTypeRun> runs, std::uint32_t index) const;
  /// Checks the latest parameters: every change of every worker, once. A worker's: all of its own
  /// changes, of each other worker no more than it made, and the same ones in all elements of a
  /// part. `index` is the worker's number, absent for a rank without a gradient.
  [[nodiscard]] RankVerification check(const Schedule& schedule, const RankProgram& rank,
                                       Views views, std::optional<std::uint32_t> index) const;

private:
  struct Stretch;
  void check_class(const Stretch& s, std::uint32_t residue, RankVerification& result) const;
  /// The wrong digits of `count`, in words; empty when all fit.
  [[nodiscard]] std::string wrong_digits(std::int64_t count, std::uint32_t residue, bool latest,
                                         std::optional<std::uint32_t> index) const;

  std::uint32_t m_workers, m_steps;
  std::uint32_t m_digits;  ///< workers of one class of elements
  std::uint32_t m_classes; ///< element e is of class e mod m_classes
};

} // namespace reckon
