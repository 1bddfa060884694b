// SPDX-License-Identifier: Apache-2.0
#include "strategies/forest/optimum.hpp"

#include "core/interrupt.hpp"
#include "strategies/forest/bound.hpp"
#include "strategies/forest/spanning.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>
#include <tuple>
#include <utility>

namespace reckon {
namespace {

/// A search ends when the dual values leave no more than this to gain; on a large network, where a
/// play tells no smaller difference, than the second.
constexpr double k_gap = 1e-9, k_gap_of_many = 1e-4;
constexpr std::size_t k_many_places = 24;
constexpr int k_most_rounds = 2000;
/// Arborescences take n^3 for each root and choice of relays.
constexpr std::size_t k_most_places_exact = 12;
/// Trees that a round of spanning trees looks for: from other starts, and with prices changed at
/// random by up to k_disturbance. 16 a round need a seventh of the rounds that one does.
constexpr std::size_t k_starts = 8, k_disturbed = 8;
constexpr double k_disturbance = 0.2;
/// Prices between the LP's and those of the best bound so far jump about less (Wentges 1997).
constexpr double k_smoothing = 0.7;
/// Steps of all arborescences of a search in a network of more than k_most_places_exact places.
constexpr double k_most_pricing = 3e8;

class Search {
public:
  Search(const Network& network, std::vector<Tree> trees)
      : m_network(network), m_program(program_of(network)) {
    std::map<std::pair<double, double>, std::size_t> classes;
    for (const Station& s : network.stations) {
      m_class.push_back(
          classes.try_emplace({s.bytes_per_second, s.background}, classes.size()).first->second);
    }
    // With mirrored trees alone a station and the one of the way back are loaded alike, so that
    // they can share their prices: only then does a spanning tree bound all trees.
    const auto others = std::stable_partition(trees.begin(), trees.end(),
                                              [](const Tree& t) { return t.up == t.down; });
    m_later.assign(others, trees.end());
    trees.erase(others, trees.end());
    for (Tree& tree : trees) {
      take(std::move(tree));
    }
    if (m_trees.empty()) {
      take_later();
    }
    m_solution = m_program.solve();
  }

  [[nodiscard]] Optimum run() {
    spanning_rounds();
    if (is_small() || !is_closed()) {
      take_later();
      m_solution = m_program.solve();
    }
    if (is_small()) {
      arborescence_rounds(); // until no tree helps by the LP's own prices
    }
    Optimum out;
    out.seconds_per_byte = m_solution.seconds_per_byte;
    out.certificate = m_certificate;
    // Spanning trees bound all trees by prices that are shared evenly, not by the LP's own.
    const bool even = !is_small() && is_closed() && !m_best_prices.empty();
    out.prices = even ? m_best_prices : m_solution.prices;
    out.shares = m_program.least_work(m_solution);
    out.trees = std::move(m_trees);
    return out;
  }

private:
  [[nodiscard]] bool is_small() const { return m_network.places.size() <= k_most_places_exact; }
  [[nodiscard]] bool is_closed() const {
    const double gap = m_network.places.size() >= k_many_places ? k_gap_of_many : k_gap;
    return m_solution.seconds_per_byte <= m_certificate * (1 + gap);
  }

  /// Adds a tree that is not known yet. Stations that every tree loads alike stay in one class.
  bool take(Tree tree) {
    if (!m_known.insert({tree.up, tree.down, tree.exit}).second) {
      return false;
    }
    const std::vector<double> loads = loads_of(m_network, tree);
    std::map<std::pair<std::size_t, double>, std::size_t> classes;
    for (std::size_t s = 0; s < loads.size(); ++s) {
      m_class[s] = classes.try_emplace({m_class[s], loads[s]}, classes.size()).first->second;
    }
    m_program.add(loads);
    m_trees.push_back(std::move(tree));
    return true;
  }

  void take_later() {
    for (Tree& tree : m_later) {
      take(std::move(tree));
    }
    m_later.clear();
  }

  /// Stations of one class may share their prices in any way without a change of the LP's value. In
  /// equal parts the price of a way is that of the way back wherever the links allow it.
  [[nodiscard]] std::vector<double> even_prices() const {
    std::vector<double> sum(m_class.size(), 0), count(m_class.size(), 0);
    for (std::size_t s = 0; s < m_class.size(); ++s) {
      sum[m_class[s]] += m_solution.prices[s];
      ++count[m_class[s]];
    }
    std::vector<double> out(m_class.size());
    for (std::size_t s = 0; s < m_class.size(); ++s) {
      out[s] = sum[m_class[s]] / count[m_class[s]];
    }
    return out;
  }

  /// Weak duality: prices >= 0 with sum capacity price = 1 bound every mix of trees from below.
  void certify(const std::vector<double>& prices, double least_cost) {
    double scale = 0, bound = least_cost;
    for (std::size_t s = 0; s < prices.size(); ++s) {
      scale += m_network.stations[s].bytes_per_second * prices[s];
      bound += m_network.stations[s].background * prices[s];
    }
    if (scale > 0 && bound / scale > m_certificate) {
      m_certificate = bound / scale;
      m_best_prices = prices;
      for (double& price : m_best_prices) {
        price /= scale;
      }
    }
  }

  /// Of a tree, by the LP's own prices: whether it can make the mix faster.
  [[nodiscard]] bool helps(const Tree& tree) const {
    return cost_of(m_network, tree, m_solution.prices) <
           m_solution.share_prices.front() * (1 - k_gap);
  }

  void spanning_rounds() {
    std::mt19937_64 random(1); // the same network gives the same trees
    std::size_t start = 0;
    for (int round = 0; round < k_most_rounds; ++round) {
      stop_if_interrupted();
      const std::vector<double> prices = even_prices();
      std::vector<Tree> found;
      const auto look = [&](const std::vector<double>& at, std::size_t starts, bool bound) {
        const Spanning spanning(m_network, at);
        if (bound && spanning.bounds()) {
          certify(at, spanning.least_cost());
        }
        for (std::size_t i = 0; i < starts; ++i) {
          if (std::optional<Tree> tree = spanning.tree(start++)) {
            found.push_back(std::move(*tree));
          }
        }
      };
      look(prices, k_starts, true);
      if (!m_best_prices.empty()) {
        std::vector<double> smooth = prices;
        for (std::size_t s = 0; s < smooth.size(); ++s) {
          smooth[s] = k_smoothing * m_best_prices[s] + (1 - k_smoothing) * smooth[s];
        }
        look(smooth, 1, true);
      }
      if (is_closed()) {
        return;
      }
      for (std::size_t i = 0; i < k_disturbed; ++i) {
        std::vector<double> disturbed = prices;
        for (double& price : disturbed) {
          constexpr double k_whole = 18446744073709551616.0; // 2^64
          price *= 1 + k_disturbance * (2 * static_cast<double>(random()) / k_whole - 1);
        }
        look(disturbed, 1, false);
      }
      bool added = false;
      for (Tree& tree : found) {
        if (helps(tree)) {
          added = take(std::move(tree)) || added;
        }
      }
      if (!added) {
        return;
      }
      m_solution = m_program.solve();
    }
  }

  void arborescence_rounds() {
    for (int round = 0; round < k_most_rounds; ++round) {
      stop_if_interrupted();
      std::vector<PricedTree> cheapest = cheapest_trees(m_network, m_solution.prices);
      double least = m_solution.share_prices.front();
      for (const PricedTree& tree : cheapest) {
        least = std::min(least, tree.cost);
      }
      certify(m_solution.prices, least);
      bool added = false;
      for (PricedTree& tree : cheapest) {
        if (tree.cost < m_solution.share_prices.front() * (1 - k_gap)) {
          added = take(std::move(tree.tree)) || added;
        }
      }
      if (!added) {
        return;
      }
      m_solution = m_program.solve();
    }
  }

  const Network& m_network;
  SharesProgram m_program;
  std::vector<Tree> m_trees, m_later; ///< m_later: those that are not mirrored
  std::set<std::tuple<std::vector<std::int64_t>, std::vector<std::int64_t>, std::size_t>> m_known;
  std::vector<std::size_t> m_class; ///< by station
  SharesProgram::Solution m_solution;
  double m_certificate = 0;
  std::vector<double> m_best_prices; ///< of the certificate
};

} // namespace

namespace {

/// Equation 25 with a group of columns for each root that the collective has.
SharesProgram program_by_root(const Network& network) {
  std::vector<double> capacities, background;
  for (const Station& station : network.stations) {
    capacities.push_back(station.bytes_per_second);
    background.push_back(station.background);
  }
  return {capacities, background, network.root_shares()};
}

/// The best mix where the roots are given, which is the upper or the lower half of a forest: each
/// root prices its own trees. Exact in networks of at most k_most_places_exact places, and in
/// larger ones without relays as far as there is time; else `certificate` is equation 27's bound.
Optimum optimum_of_halves(const Network& network, std::vector<Tree> trees) {
  const std::size_t n = network.places.size();
  const std::vector<double> wanted = network.root_shares();
  const bool small = n <= k_most_places_exact, exact = small || network.workers == n;
  const double gap = n >= k_many_places ? k_gap_of_many : k_gap;
  const auto size = static_cast<double>(network.workers);
  const double roots = has_root(network.collective) ? 1.0 : size;
  const double rounds =
      small ? k_most_rounds : std::floor(k_most_pricing / (roots * size * size * size));
  SharesProgram program = program_by_root(network);
  std::set<std::tuple<std::vector<std::int64_t>, std::vector<std::int64_t>, std::size_t>> known;
  Optimum out;
  const auto take = [&](Tree tree) {
    if (!known.insert({tree.up, tree.down, tree.exit}).second) {
      return false;
    }
    program.add(loads_of(network, tree), root_of(tree));
    out.trees.push_back(std::move(tree));
    return true;
  };
  for (Tree& tree : trees) {
    take(std::move(tree));
  }
  out.certificate = network_bound(network).seconds_per_byte;
  SharesProgram::Solution solution = program.solve();
  for (double round = 0; round < rounds; ++round) {
    stop_if_interrupted();
    if (!small && solution.seconds_per_byte <= out.certificate * (1 + gap)) {
      break;
    }
    std::vector<PricedTree> cheapest =
        cheapest_trees(network, solution.prices, small ? Relays::every_choice : Relays::none);
    // Weak duality, with the share of each root times what its cheapest tree costs.
    double scale = 0, bound = 0;
    for (std::size_t s = 0; s < solution.prices.size(); ++s) {
      scale += network.stations[s].bytes_per_second * solution.prices[s];
      bound += network.stations[s].background * solution.prices[s];
    }
    bool added = false;
    for (PricedTree& tree : cheapest) {
      const std::size_t root = root_of(tree.tree);
      const double price = solution.share_prices[root];
      bound += wanted[root] * std::min(price, tree.cost);
      if (tree.cost < price - k_gap * std::abs(price)) {
        added = take(std::move(tree.tree)) || added;
      }
    }
    if (exact && scale > 0) {
      out.certificate = std::max(out.certificate, bound / scale);
    }
    if (!added) {
      break;
    }
    solution = program.solve();
  }
  out.seconds_per_byte = solution.seconds_per_byte;
  out.certificate = std::min(out.certificate, out.seconds_per_byte);
  out.prices = solution.prices;
  out.shares = program.least_work(solution);
  return out;
}

} // namespace

SharesProgram program_of(const Network& network) {
  std::vector<double> capacities, background;
  for (const Station& station : network.stations) {
    capacities.push_back(station.bytes_per_second);
    background.push_back(station.background);
  }
  return SharesProgram(capacities, background);
}

Optimum optimum_of(const Network& network, std::vector<Tree> trees) {
  if (network.collective != Collective::all_reduce) {
    return optimum_of_halves(network, std::move(trees));
  }
  return Search(network, std::move(trees)).run();
}

} // namespace reckon
