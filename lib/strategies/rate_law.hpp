// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "network/rate.hpp"

#include <map>

namespace reckon {

/// What several of one kind move or sum together, from what was measured: bytes per second by how
/// many are at work at once, by the operands of a sum and by the size of a part.
///
/// Between measured points each coordinate is linear in logarithms, so that the law is monotone
/// wherever the points are. Beyond the most that were measured at once the machine is saturated and
/// the rate stays, fewer have each what one of those has. Where one number alone was measured, more
/// of them share its rate (`Beyond::shared`), or each has what one of those has. Beyond the
/// measured operands and parts the rate stays. `Beyond::same` is for what is no rate of several
/// together: beyond what was measured it stays.
class RateLaw {
public:
  enum class Beyond { each, shared, same };
  explicit RateLaw(Beyond beyond = Beyond::each) : m_beyond(beyond) {}
  /// `at_once`, `operands` and `bytes` at least 1; of equal points the last.
  void add(double at_once, double operands, double bytes, const Rate& rate);
  [[nodiscard]] bool empty() const { return m_rates.empty(); }
  /// Of all of them together. Precondition: not empty.
  [[nodiscard]] Rate at(double at_once, double operands, double bytes) const;
  /// The greatest upper end of a measured rate; 0 without any.
  [[nodiscard]] double best() const;
  /// The shortest part that was measured. Precondition: not empty.
  [[nodiscard]] double shortest() const;

private:
  using Parts = std::map<double, Rate>;
  using Operands = std::map<double, Parts>;
  Beyond m_beyond;
  std::map<double, Operands> m_rates; ///< by how many at once
};

/// `rate`, each end of it times `factor`.
[[nodiscard]] Rate scaled(const Rate& rate, double factor);

} // namespace reckon
