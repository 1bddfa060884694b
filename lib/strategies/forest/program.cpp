// SPDX-License-Identifier: Apache-2.0
#include "strategies/forest/program.hpp"

#include "core/error.hpp"

#include <ClpSimplex.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace reckon {
namespace {

/// How much of a bound the solver may miss, in the scaled program; its default is 1e-7.
constexpr double k_precision = 1e-9;
/// How much longer than the least time the shares with the least work may take.
constexpr double k_slack = 1e-9;

void check_optimal(const ClpSimplex& simplex) {
  if (!simplex.isProvenOptimal()) {
    fail(ErrorKind::operation,
         fmt::format("linear program with {} rows and {} columns: the solver ends with status {}",
                     simplex.numberRows(), simplex.numberColumns(), simplex.status()));
  }
}

} // namespace

SharesProgram::SharesProgram(const std::vector<double>& capacities,
                             const std::vector<double>& background,
                             const std::vector<double>& groups)
    : m_simplex(std::make_unique<ClpSimplex>()), m_capacities(capacities) {
  if (!capacities.empty()) {
    m_scale = *std::max_element(capacities.begin(), capacities.end());
  }
  ClpSimplex& simplex = *m_simplex;
  simplex.setLogLevel(0);
  simplex.setPrimalTolerance(k_precision);
  simplex.setDualTolerance(k_precision);
  const int rows = static_cast<int>(capacities.size());
  simplex.resize(rows + static_cast<int>(groups.size()), 0);
  for (int r = 0; r < rows; ++r) {
    simplex.setRowBounds(r, background[static_cast<std::size_t>(r)], COIN_DBL_MAX);
  }
  for (std::size_t g = 0; g < groups.size(); ++g) {
    simplex.setRowBounds(rows + static_cast<int>(g), groups[g], groups[g]);
  }
  std::vector<int> row(capacities.size());
  std::iota(row.begin(), row.end(), 0);
  std::vector<double> scaled = capacities;
  for (double& value : scaled) {
    value /= m_scale;
  }
  simplex.addColumn(rows, row.data(), scaled.data(), 0.0, COIN_DBL_MAX, 1.0);
}

SharesProgram::~SharesProgram() = default;
SharesProgram::SharesProgram(SharesProgram&&) noexcept = default;
SharesProgram& SharesProgram::operator=(SharesProgram&&) noexcept = default;

std::size_t SharesProgram::add(const std::vector<double>& loads, std::size_t group) {
  std::vector<int> row;
  std::vector<double> element;
  double work = 0;
  for (std::size_t r = 0; r < loads.size(); ++r) {
    if (loads[r] != 0) {
      row.push_back(static_cast<int>(r));
      element.push_back(-loads[r]);
      work += loads[r] / m_capacities[r];
    }
  }
  row.push_back(static_cast<int>(loads.size() + group));
  element.push_back(1.0);
  m_simplex->addColumn(static_cast<int>(row.size()), row.data(), element.data(), 0.0, COIN_DBL_MAX,
                       0.0);
  m_work.push_back(work);
  return m_work.size() - 1;
}

SharesProgram::Solution SharesProgram::solve() {
  ClpSimplex& simplex = *m_simplex;
  simplex.primal();
  check_optimal(simplex);
  const double* const columns = simplex.primalColumnSolution();
  const double* const duals = simplex.dualRowSolution();
  Solution out;
  out.seconds_per_byte = columns[0] / m_scale;
  for (std::size_t c = 0; c < m_work.size(); ++c) {
    out.shares.push_back(std::max(0.0, columns[c + 1]));
  }
  for (std::size_t r = 0; r < m_capacities.size(); ++r) {
    out.prices.push_back(std::max(0.0, duals[r]) / m_scale);
  }
  for (int g = static_cast<int>(m_capacities.size()); g < simplex.numberRows(); ++g) {
    out.share_prices.push_back(duals[g] / m_scale);
  }
  return out;
}

std::vector<double> SharesProgram::costs(const std::vector<double>& prices) const {
  std::vector<double> rows(static_cast<std::size_t>(m_simplex->numberRows()), 0.0);
  std::transform(prices.begin(), prices.end(), rows.begin(), std::negate<>());
  std::vector<double> out(m_work.size() + 1);
  m_simplex->matrix()->transposeTimes(rows.data(), out.data());
  return {out.begin() + 1, out.end()}; // without T's
}

std::vector<double> SharesProgram::least_work(const Solution& solution) {
  return least(solution, m_work, k_slack);
}

std::vector<double> SharesProgram::least(const Solution& solution, const std::vector<double>& costs,
                                         double slack) {
  ClpSimplex second(*m_simplex);
  const double most = *std::max_element(costs.begin(), costs.end());
  second.setColumnUpper(0, solution.seconds_per_byte * m_scale * (1 + slack));
  second.setObjectiveCoefficient(0, 0.0);
  for (std::size_t c = 0; c < costs.size(); ++c) {
    second.setObjectiveCoefficient(static_cast<int>(c + 1), most > 0 ? costs[c] / most : 0.0);
  }
  second.primal();
  check_optimal(second);
  std::vector<double> shares;
  for (std::size_t c = 0; c < costs.size(); ++c) {
    shares.push_back(std::max(0.0, second.primalColumnSolution()[c + 1]));
  }
  return shares;
}

} // namespace reckon
