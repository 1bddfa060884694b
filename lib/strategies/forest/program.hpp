// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

class ClpSimplex;

namespace reckon {

/// The linear program
///   least T with  background_r + sum_c share_c load_rc <= capacity_r T  for all r,
///   sum share = 1; or, of columns in several groups, sum share of the group = its part of 1
/// solved by COIN-OR CLP, to which columns can be added. Capacities in bytes per second, loads in
/// bytes for each byte of the gradient, T in seconds for each byte. Thread-compatible.
class SharesProgram {
public:
  SharesProgram(const std::vector<double>& capacities, const std::vector<double>& background,
                const std::vector<double>& groups = {1.0});
  ~SharesProgram();
  SharesProgram(SharesProgram&&) noexcept;
  SharesProgram& operator=(SharesProgram&&) noexcept;

  /// One entry a resource. Returns the column's number.
  std::size_t add(const std::vector<double>& loads, std::size_t group = 0);

  struct Solution {
    double seconds_per_byte = 0;
    std::vector<double> shares; ///< by column
    /// By resource, >= 0: seconds that a further byte on it costs, for each byte of the gradient.
    /// The sum of capacity times price is 1 unless T is 0.
    std::vector<double> prices;
    /// By group: the dual value of the sum of its shares. No column of the group costs less.
    std::vector<double> share_prices;
  };
  /// Throws Error{operation} when the solver finds no optimum (also without columns).
  [[nodiscard]] Solution solve();

  /// By column: its loads times `prices`, which are by resource.
  [[nodiscard]] std::vector<double> costs(const std::vector<double>& prices) const;

  /// Of all shares that reach `solution`'s time, those that keep all resources together busy for
  /// the shortest time.
  [[nodiscard]] std::vector<double> least_work(const Solution& solution);

  /// Of all shares that take at most 1 + `slack` times as long as `solution`, those with the least
  /// sum of share times cost. `costs`: by column, >= 0.
  [[nodiscard]] std::vector<double> least(const Solution& solution,
                                          const std::vector<double>& costs, double slack);

private:
  std::unique_ptr<ClpSimplex> m_simplex;
  std::vector<double> m_capacities;
  std::vector<double> m_work; ///< by column: sum of load / capacity
  double m_scale = 1;         ///< the greatest capacity: keeps the program's numbers near 1
};

} // namespace reckon
