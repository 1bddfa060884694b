// SPDX-License-Identifier: Apache-2.0
#include "expect/routes.hpp"

#include "core/indices.hpp"
#include "strategies/forest/program.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>

namespace reckon::expect_detail {
namespace {

constexpr std::size_t k_most_exact = 12;
constexpr double k_saves = 1e-9; ///< of the least cost: a route that saves less is not worth it
constexpr double k_busy = 1e-6;  ///< a station that is idle for less of the time is always busy
constexpr int k_most_routes = 300;

class Program {
public:
  Program(const std::vector<Station>& stations, const Uses& base, std::size_t choices)
      : m_stations(stations), m_base(dense(base)),
        m_program(capacities(stations), m_base, std::vector<double>(choices, 1.0)) {}

  void add(const Uses& route, std::size_t choice) {
    m_loads.push_back(dense(route));
    m_program.add(m_loads.back(), choice);
  }

  [[nodiscard]] SharesProgram::Solution solve() { return m_program.solve(); }

  [[nodiscard]] Mix mix(const SharesProgram::Solution& solution) const {
    Mix out{solution.seconds_per_byte, {}};
    std::vector<double> loads = m_base;
    for (std::size_t c = 0; c < m_loads.size(); ++c) {
      for (std::size_t s = 0; s < loads.size(); ++s) {
        loads[s] += solution.shares[c] * m_loads[c][s];
      }
    }
    for (std::size_t s = 0; s < loads.size(); ++s) {
      if (loads[s] / m_stations[s].bytes_per_second >= out.seconds_per_byte * (1 - k_busy)) {
        out.by.push_back(s);
      }
    }
    return out;
  }

private:
  static std::vector<double> capacities(const std::vector<Station>& stations) {
    std::vector<double> out;
    for (const Station& station : stations) {
      out.push_back(station.bytes_per_second);
    }
    return out;
  }
  [[nodiscard]] std::vector<double> dense(const Uses& uses) const {
    std::vector<double> loads(m_stations.size(), 0);
    add_uses(loads, uses);
    return loads;
  }

  const std::vector<Station>& m_stations;
  std::vector<double> m_base;
  std::vector<std::vector<double>> m_loads; ///< by route
  SharesProgram m_program;
};

bool limits_nothing(const std::vector<Station>& stations, const Uses& route) {
  return stations.empty() || std::ranges::all_of(route, [](const Use& u) { return u.amount <= 0; });
}

/// Of orders from 0 on: sets of places by bits, 0 not among them, and the last of each (Held and
/// Karp, 1962).
std::vector<std::size_t> exact_order(const std::vector<std::vector<double>>& cost, bool closed) {
  const std::size_t n = cost.size() - 1; // place i + 1 is bit i
  const std::size_t all = std::size_t{1} << n;
  constexpr double k_infinite = std::numeric_limits<double>::infinity();
  std::vector<double> least(all * n, k_infinite);
  std::vector<std::uint8_t> before(all * n, 0);
  for (std::size_t last = 0; last < n; ++last) {
    least[(std::size_t{1} << last) * n + last] = cost[0][last + 1];
  }
  for (std::size_t set = 1; set < all; ++set) {
    for (std::size_t last = 0; last < n; ++last) {
      const double here = least[set * n + last];
      for (std::size_t next = 0; here < k_infinite && next < n; ++next) {
        const std::size_t with = set | std::size_t{1} << next;
        const double there = here + cost[last + 1][next + 1];
        if (with != set && there < least[with * n + next]) {
          least[with * n + next] = there;
          before[with * n + next] = static_cast<std::uint8_t>(last);
        }
      }
    }
  }
  const auto end = [&](std::size_t last) {
    return least[(all - 1) * n + last] + (closed ? cost[last + 1][0] : 0);
  };
  std::size_t last = 0;
  for (std::size_t v = 1; v < n; ++v) {
    last = end(v) < end(last) ? v : last;
  }
  if (!std::isfinite(end(last))) {
    fail(ErrorKind::input, "no order of the machines has a time: a link's rate is far too low");
  }
  std::vector<std::size_t> order;
  for (std::size_t set = all - 1; set != 0;) {
    order.push_back(last + 1);
    const std::size_t without = set & ~(std::size_t{1} << last);
    last = before[set * n + last];
    set = without;
  }
  order.push_back(0);
  std::ranges::reverse(order);
  return order;
}

} // namespace

Mix best_mix(const std::vector<Station>& stations, const Uses& base,
             const std::vector<Choice>& choices) {
  const bool free = std::ranges::all_of(choices, [&](const Choice& choice) {
    return std::ranges::any_of(choice.routes,
                               [&](const Uses& route) { return limits_nothing(stations, route); });
  });
  if (free && limits_nothing(stations, base)) {
    return {};
  }
  // The program needs a choice: one of a route that passes nothing changes nothing.
  Program program(stations, base, std::max<std::size_t>(1, choices.size()));
  if (choices.empty()) {
    program.add({}, 0);
  }
  for (std::size_t c = 0; c < choices.size(); ++c) {
    for (const Uses& route : choices[c].routes) {
      program.add(route, c);
    }
  }
  return program.mix(program.solve());
}

Mix best_mix(const std::vector<Station>& stations, const Cheapest& cheapest) {
  std::vector<double> prices(stations.size());
  for (std::size_t s = 0; s < stations.size(); ++s) {
    prices[s] = 1 / stations[s].bytes_per_second;
  }
  const Uses first = cheapest(prices);
  if (limits_nothing(stations, first)) {
    return {};
  }
  Program program(stations, {}, 1);
  program.add(first, 0);
  SharesProgram::Solution solution = program.solve();
  for (int i = 0; i < k_most_routes; ++i) {
    const Uses route = cheapest(solution.prices);
    if (cost_of(route, solution.prices) >= solution.share_prices.front() * (1 - k_saves)) {
      break;
    }
    program.add(route, 0);
    solution = program.solve();
  }
  return program.mix(solution);
}

std::vector<std::size_t> cheapest_order(const std::vector<std::vector<double>>& cost, bool closed) {
  const std::size_t n = cost.size();
  if (n < 3) {
    return indices(n);
  }
  if (n <= k_most_exact) {
    return exact_order(cost, closed);
  }
  std::vector<std::size_t> best;
  double least = std::numeric_limits<double>::infinity();
  for (std::size_t turn = 0; turn < 2 * (n - 1); ++turn) {
    std::vector<std::size_t> order{0};
    for (std::size_t i = 0; i + 1 < n; ++i) {
      const std::size_t at = (turn / 2 + i) % (n - 1);
      order.push_back(1 + (turn % 2 == 0 ? at : n - 2 - at));
    }
    double sum = closed ? cost[order.back()][0] : 0;
    for (std::size_t i = 1; i < n; ++i) {
      sum += cost[order[i - 1]][order[i]];
    }
    if (best.empty() || sum < least) {
      least = sum;
      best = std::move(order);
    }
  }
  return best;
}

} // namespace reckon::expect_detail
