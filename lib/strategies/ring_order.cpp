// SPDX-License-Identifier: Apache-2.0
#include "strategies/ring_order.hpp"

#include "core/indices.hpp"
#include "core/interrupt.hpp"
#include "stats/random.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <random>
#include <utility>

namespace reckon {
namespace {

constexpr std::size_t k_most_exact = 12;
constexpr double k_equal = 1e-9; ///< times that differ by less are the same

/// The hops of rings on a network, all with the same bytes.
class Hops {
public:
  Hops(const StationNetwork& network, std::span<const std::size_t> workers)
      : m_workers(workers), m_paths(workers.size() * workers.size()) {
    for (std::size_t s = 0; s < network.station_bytes_per_s.size(); ++s) {
      m_seconds.push_back(1 / network.rate_of(s));
    }
    m_hops.assign(m_seconds.size(), 0);
    for (std::size_t a = 0; a < workers.size(); ++a) {
      for (std::size_t b = 0; b < workers.size(); ++b) {
        m_paths[a * workers.size() + b] = &network.paths[workers[a]][workers[b]];
      }
    }
  }

  /// What decides between two orders, the first first.
  struct Cost {
    double busiest = 0, sum = 0;
    [[nodiscard]] bool below(const Cost& other) const {
      return busiest < other.busiest * (1 - k_equal) ||
             (busiest <= other.busiest * (1 + k_equal) && sum < other.sum * (1 - k_equal));
    }
  };

  /// `order`: of places among the workers.
  [[nodiscard]] Cost cost(const std::vector<std::size_t>& order) {
    stop_if_interrupted();
    Cost cost;
    for (std::size_t i = 0; i < order.size(); ++i) {
      add(order[i], order[(i + 1) % order.size()], 1);
    }
    for (std::size_t i = 0; i < order.size(); ++i) { // each station counts where it is met
      for (const std::uint32_t s : path(order[i], order[(i + 1) % order.size()])) {
        cost.busiest = std::max(cost.busiest, m_hops[s] * m_seconds[s]);
        cost.sum += m_seconds[s];
      }
    }
    for (std::size_t i = 0; i < order.size(); ++i) {
      add(order[i], order[(i + 1) % order.size()], -1);
    }
    return cost;
  }

  /// An order in which no station is busy for more than `seconds` a byte. `tries` counts down.
  [[nodiscard]] std::optional<std::vector<std::size_t>> within(double seconds,
                                                               std::int64_t& tries) {
    m_order.assign(1, 0);
    m_used.assign(m_workers.size(), false);
    m_used[0] = true;
    m_limit = seconds * (1 + k_equal);
    const bool found = go_on(tries);
    std::vector<std::size_t> order = m_order;
    for (; m_order.size() > 1; m_order.pop_back()) {
      add(m_order[m_order.size() - 2], m_order.back(), -1);
    }
    return found ? std::optional(std::move(order)) : std::nullopt;
  }

  /// From the first on always to the one that is reached soonest.
  [[nodiscard]] std::vector<std::size_t> greedy() const {
    std::vector<std::size_t> order{0}, left(m_workers.size() - 1);
    std::iota(left.begin(), left.end(), std::size_t{1});
    while (!left.empty()) {
      const auto sum = [&](std::size_t next) {
        const auto& stations = path(order.back(), next);
        return std::accumulate(stations.begin(), stations.end(), 0.0,
                               [&](double t, std::uint32_t s) { return t + m_seconds[s]; });
      };
      const auto next = std::ranges::min_element(left, {}, sum);
      order.push_back(*next);
      left.erase(next);
    }
    return order;
  }

  /// All times that a station can be busy with one or more hops, ascending, below `most`.
  [[nodiscard]] std::vector<double> times_below(double most) const {
    std::vector<double> times;
    for (std::size_t s = 0; s < m_seconds.size(); ++s) {
      for (std::size_t hops = 1; hops <= m_workers.size(); ++hops) {
        const double time = static_cast<double>(hops) * m_seconds[s];
        if (time < most * (1 - k_equal)) {
          times.push_back(time);
        }
      }
    }
    std::sort(times.begin(), times.end());
    times.erase(std::unique(times.begin(), times.end()), times.end());
    return times;
  }

  [[nodiscard]] std::size_t size() const { return m_workers.size(); }

private:
  [[nodiscard]] const std::vector<std::uint32_t>& path(std::size_t a, std::size_t b) const {
    return *m_paths[a * m_workers.size() + b];
  }
  void add(std::size_t a, std::size_t b, double hops) {
    for (const std::uint32_t s : path(a, b)) {
      m_hops[s] += hops;
    }
  }
  [[nodiscard]] bool fits(std::size_t a, std::size_t b) const {
    return std::ranges::all_of(
        path(a, b), [&](std::uint32_t s) { return (m_hops[s] + 1) * m_seconds[s] <= m_limit; });
  }
  [[nodiscard]] bool go_on(std::int64_t& tries) {
    const std::size_t last = m_order.back();
    if (m_order.size() == m_workers.size()) {
      return fits(last, m_order.front());
    }
    for (std::size_t next = 0; next < m_workers.size() && --tries >= 0; ++next) {
      if (!m_used[next] && fits(last, next)) {
        add(last, next, 1);
        m_order.push_back(next);
        m_used[next] = true;
        if (go_on(tries)) {
          return true;
        }
        m_used[next] = false;
        m_order.pop_back();
        add(last, next, -1);
      }
    }
    return false;
  }

  std::span<const std::size_t> m_workers;
  std::vector<const std::vector<std::uint32_t>*> m_paths; ///< [from * workers + to]
  std::vector<double> m_seconds;                          ///< [station]: of a byte
  std::vector<double> m_hops;                             ///< [station]: that pass it
  double m_limit = 0;
  std::vector<std::size_t> m_order;
  std::vector<bool> m_used;
};

/// Moves and turns stretches of the order as long as that helps, from several orders on.
std::vector<std::size_t> by_exchanges(Hops& hops, const std::vector<std::size_t>& given) {
  constexpr std::size_t k_most_tries = 200'000; // of orders, each as long as the ring
  constexpr std::size_t k_starts = 8;
  const std::size_t n = given.size();
  std::mt19937_64 random(n); // NOLINT: the same plan every time
  std::vector<std::size_t> best = given;
  Hops::Cost best_cost = hops.cost(best);
  std::size_t tries = 0;
  const std::size_t most = std::max<std::size_t>(k_most_tries / std::max<std::size_t>(n, 1), 1);
  for (std::size_t start = 0; start < k_starts; ++start) {
    std::vector<std::size_t> order = given;
    if (start == 1) {
      order = hops.greedy();
    } else if (start > 1) {
      for (std::size_t i = n; i > 1; --i) {
        std::swap(order[i - 1], order[uniform_index(random, i)]);
      }
    }
    Hops::Cost cost = hops.cost(order);
    for (bool better = true; better && tries < (start + 1) * most;) {
      better = false;
      for (std::size_t from = 0; from < n && tries < (start + 1) * most; ++from) {
        for (std::size_t to = from + 2; to <= n; ++to) {
          for (const bool turn : {false, true}) {
            std::vector<std::size_t> other = order;
            const auto begin = other.begin() + static_cast<std::ptrdiff_t>(from);
            const auto end = other.begin() + static_cast<std::ptrdiff_t>(to);
            turn ? std::reverse(begin, end) : static_cast<void>(std::rotate(begin, begin + 1, end));
            const Hops::Cost now = hops.cost(other);
            ++tries;
            if (now.below(cost)) {
              order = std::move(other);
              cost = now;
              better = true;
            }
          }
        }
      }
    }
    if (cost.below(best_cost)) {
      best = order;
      best_cost = cost;
    }
  }
  return best;
}

} // namespace

double ring_seconds_per_byte(const StationNetwork& network, std::span<const std::size_t> order) {
  Hops hops(network, order);
  return hops.cost(indices(order.size())).busiest;
}

RingOrder best_ring_order(const StationNetwork& network, std::span<const std::size_t> workers) {
  Hops hops(network, workers);
  std::vector<std::size_t> order = indices(workers.size());
  RingOrder out;
  constexpr std::size_t k_fewest_with_orders = 3;
  if (order.size() >= k_fewest_with_orders) {
    order = by_exchanges(hops, order);
  }
  if (order.size() <= k_most_exact) {
    std::int64_t tries = 20'000'000;
    const std::vector<double> times = hops.times_below(hops.cost(order).busiest);
    std::size_t least = 0, most = times.size(); // the least time is among these, or the order's own
    while (least < most && tries >= 0) {
      const std::size_t middle = (least + most) / 2;
      if (auto found = hops.within(times[middle], tries)) {
        order = std::move(*found);
        most = middle;
      } else {
        least = middle + 1;
      }
    }
    out.exact = tries >= 0;
  }
  out.seconds_per_byte = hops.cost(order).busiest;
  std::rotate(order.begin(), std::find(order.begin(), order.end(), std::size_t{0}), order.end());
  for (const std::size_t place : order) {
    out.ranks.push_back(workers[place]);
  }
  return out;
}

} // namespace reckon
