// SPDX-License-Identifier: Apache-2.0
#include "strategies/forest/optimum.hpp"

#include "core/interrupt.hpp"
#include "strategies/forest/bound.hpp"
#include "strategies/forest/spanning.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
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
/// In a network of no more places the search goes on until no tree helps by the LP's own prices.
constexpr std::size_t k_few_places = 12;
constexpr int k_most_rounds = 2000;
/// Trees that a round of spanning trees looks for: from other starts, and with prices changed at
/// random by up to k_disturbance. 16 a round need a seventh of the rounds that one does.
constexpr std::size_t k_starts = 8, k_disturbed = 8;
constexpr double k_disturbance = 0.2;
/// Of the trees that are found at once the cheapest are taken.
constexpr std::size_t k_most_taken = 16;
/// Steps of looking for the cheapest trees: more when the search would end with a gap.
constexpr double k_first_steps = 3e5, k_more_steps = 4, k_most_steps = 2e7;
/// How much longer than the optimum shares of shallow trees may take.
constexpr std::array<double, 2> k_slacks{1e-3, 2e-3};
/// Prices between the LP's and those of the best bound so far jump about less (Wentges 1997).
constexpr double k_smoothing = 0.7;

std::uint64_t mixed(std::uint64_t a, std::uint64_t b) { // Steele, Lea and Flood 2014
  std::uint64_t z = a * 0x9e3779b97f4a7c15U + b;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31U);
}
std::uint64_t mixed(std::uint64_t a, double b) {
  return mixed(a, std::bit_cast<std::uint64_t>(b));
}

/// By station: a number that those share which no ways tell apart (colour refinement). Whatever is
/// alike by a symmetry of the network shares its number.
std::vector<std::size_t> kinds_of_stations(const Network& network) {
  const std::size_t n = network.places.size();
  const std::vector<double> shares = network.root_shares();
  std::vector<std::uint64_t> station, place;
  for (const Station& s : network.stations) {
    station.push_back(mixed(mixed(0, s.bytes_per_second), s.background));
  }
  for (std::size_t v = 0; v < n; ++v) {
    place.push_back(mixed(network.places[v].worker ? 1 : 2, v < shares.size() ? shares[v] : 0.0));
  }
  for (std::size_t known = 0;;) {
    std::vector<std::uint64_t> next_station = station, next_place = place;
    const auto see = [&](const Uses& uses, std::uint64_t by) {
      for (const Use& use : uses) {
        by += mixed(station[use.station], use.amount);
      }
      for (const Use& use : uses) {
        next_station[use.station] += mixed(by, use.amount);
      }
      return mixed(by, 1.0);
    };
    for (std::size_t u = 0; u < n; ++u) {
      next_place[u] += see(network.add[u], mixed(place[u], std::uint64_t{1}));
      for (const Exit& exit : network.exits[u]) {
        next_place[u] += see(exit.uses, mixed(place[u], std::uint64_t{2}));
      }
      for (std::size_t v = 0; v < n; ++v) {
        if (u != v && network.ways[u][v]) {
          const std::uint64_t way = see(*network.ways[u][v], mixed(place[u], place[v]));
          next_place[u] += mixed(way, std::uint64_t{3});
          next_place[v] += mixed(way, std::uint64_t{4});
        }
      }
    }
    std::map<std::uint64_t, std::size_t> numbers;
    std::vector<std::size_t> out;
    for (std::size_t s = 0; s < station.size(); ++s) {
      station[s] = mixed(next_station[s], std::uint64_t{5});
      out.push_back(numbers.try_emplace(station[s], numbers.size()).first->second);
    }
    for (std::size_t v = 0; v < n; ++v) {
      place[v] = mixed(next_place[v], std::uint64_t{6});
    }
    if (numbers.size() == known) {
      return out;
    }
    known = numbers.size();
  }
}

double height_of(const std::vector<std::int64_t>& parents) {
  std::size_t most = 0;
  for (std::size_t v = 0; v < parents.size(); ++v) {
    std::size_t height = 0;
    for (std::size_t at = v; parents[at] >= 0 && parents[at] != static_cast<std::int64_t>(at);
         at = static_cast<std::size_t>(parents[at])) {
      ++height;
    }
    most = std::max(most, height);
  }
  return static_cast<double>(most);
}

std::size_t count_of(const std::vector<std::size_t>& numbers) {
  return numbers.empty() ? 0 : 1 + *std::ranges::max_element(numbers);
}

class Search {
public:
  /// `kind`: kinds_of_stations. `row`: by station, the row of the linear program that it is in: its
  /// own, or one of all that are alike, which bounds only what they do together. `proved`: what
  /// another search has found, or null.
  Search(const Network& network, const std::vector<std::size_t>& kind,
         const std::vector<std::size_t>& row, const Optimum* proved, std::vector<Tree> trees)
      : m_network(network), m_wanted(network.root_shares()), m_kind(kind), m_row(row),
        m_program(in_rows(by_station(&Station::bytes_per_second)),
                  in_rows(by_station(&Station::background)),
                  m_wanted.empty() ? std::vector<double>{1.0} : m_wanted),
        m_proved(proved != nullptr) {
    if (m_proved) {
      m_certificate = proved->certificate;
      m_low_certificate = proved->low_certificate;
      m_best_prices = proved->prices;
    }
    std::map<std::pair<double, double>, std::size_t> classes;
    for (const Station& s : network.stations) {
      m_class.push_back(
          classes.try_emplace({s.bytes_per_second, s.background}, classes.size()).first->second);
    }
    // With mirrored trees alone a station and the one of the way back are loaded alike, so that
    // they can share their prices, and what spanning trees find is of use.
    const auto others = std::stable_partition(
        trees.begin(), trees.end(), [&](const Tree& t) { return t.up == t.down || !mirrors(); });
    m_later.assign(others, trees.end());
    trees.erase(others, trees.end());
    for (Tree& tree : trees) {
      take(std::move(tree));
    }
    if (m_trees.empty()) {
      take_later();
    }
    solve();
  }

  [[nodiscard]] Optimum run() {
    if (mirrors()) {
      spanning_rounds();
    } else {
      m_certificate = std::max(m_certificate, network_bound(m_network).seconds_per_byte);
      m_low_certificate = std::max(m_low_certificate,
                                   network_bound(at_high_capacities(m_network)).seconds_per_byte);
    }
    if (!is_closed() || is_small()) {
      take_later();
      solve();
      arborescence_rounds();
    }
    Optimum out;
    out.seconds_per_byte = m_solution.seconds_per_byte;
    out.certificate = m_certificate;
    out.low_certificate = m_low_certificate;
    // Prices that are shared evenly where they prove the optimum, else the LP's own.
    out.prices =
        !is_small() && is_closed() && !m_best_prices.empty() ? m_best_prices : m_solution.prices;
    out.shares = m_program.least_work(m_solution);
    for (const double slack : k_slacks) {
      out.shallow.push_back(m_program.least(m_solution, depths(), slack));
    }
    out.trees = std::move(m_trees);
    return out;
  }

private:
  [[nodiscard]] std::vector<double> by_station(double Station::*what) const {
    std::vector<double> out;
    for (const Station& station : m_network.stations) {
      out.push_back(station.*what);
    }
    return out;
  }
  [[nodiscard]] std::vector<double> in_rows(const std::vector<double>& by_station) const {
    std::vector<double> out(count_of(m_row), 0.0);
    for (std::size_t s = 0; s < m_row.size(); ++s) {
      out[m_row[s]] += by_station[s];
    }
    return out;
  }
  /// Prices are by station.
  void solve() {
    m_solution = m_program.solve();
    std::vector<double> prices;
    for (const std::size_t row : m_row) {
      prices.push_back(m_solution.prices[row]);
    }
    m_solution.prices = std::move(prices);
  }
  /// Of trees, at prices that stations of one row share.
  [[nodiscard]] std::vector<double> costs(const std::vector<double>& prices) const {
    std::vector<double> by_row(count_of(m_row));
    for (std::size_t s = 0; s < m_row.size(); ++s) {
      by_row[m_row[s]] = prices[s];
    }
    return m_program.costs(by_row);
  }
  /// Whether the lower half of a tree may mirror the upper one.
  [[nodiscard]] bool mirrors() const { return m_network.collective == Collective::all_reduce; }
  [[nodiscard]] bool is_small() const { return m_network.places.size() <= k_few_places; }
  [[nodiscard]] bool is_closed() const {
    const double gap = m_network.places.size() >= k_many_places ? k_gap_of_many : k_gap;
    return m_solution.seconds_per_byte <= m_certificate * (1 + gap);
  }
  /// Of the shares that a tree's belongs to.
  [[nodiscard]] std::size_t group_of(std::size_t root) const { return m_wanted.empty() ? 0 : root; }

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
    m_program.add(in_rows(loads), group_of(root_of(tree)));
    m_trees.push_back(std::move(tree));
    return true;
  }

  void take_later() {
    for (Tree& tree : m_later) {
      take(std::move(tree));
    }
    m_later.clear();
  }

  /// Shared evenly between stations of one class.
  [[nodiscard]] static std::vector<double> evened(const std::vector<double>& prices,
                                                  const std::vector<std::size_t>& classes) {
    std::vector<double> sum(classes.size(), 0), count(classes.size(), 0);
    for (std::size_t s = 0; s < classes.size(); ++s) {
      sum[classes[s]] += prices[s];
      ++count[classes[s]];
    }
    std::vector<double> out;
    for (const std::size_t c : classes) {
      out.push_back(sum[c] / count[c]);
    }
    return out;
  }

  /// Stations that all trees load alike may share their prices in any way without a change of the
  /// LP's value: in equal parts the price of a way is that of the way back wherever the links allow
  /// it. Shared among stations that are alike they bound the trees no worse, and places that only
  /// sum become alike.
  [[nodiscard]] std::vector<double> even_prices() const {
    return evened(evened(m_solution.prices, m_class), m_kind);
  }

  /// The cheapest trees of those that are cheaper than all that are known, and what they prove.
  /// Weak duality: prices >= 0 with sum capacity price = 1 bound every mix of trees from below, and
  /// scaled to that sum of other capacities they do so there.
  std::vector<PricedTree> look(const std::vector<double>& prices) {
    std::vector<double> of_group(m_solution.share_prices.size(), k_never);
    const std::vector<double> known = costs(prices);
    for (std::size_t c = 0; c < known.size(); ++c) {
      double& least = of_group[group_of(root_of(m_trees[c]))];
      least = std::min(least, known[c]);
    }
    std::vector<double> below(m_network.places.size(), k_never);
    for (std::size_t v = 0; v < below.size(); ++v) {
      below[v] = m_wanted.empty() ? of_group.front() : v < m_wanted.size() ? of_group[v] : k_never;
    }
    CheapestTrees found = cheapest_trees(m_network, prices, below, m_steps);
    double scale = 0, high_scale = 0, bound = 0;
    for (std::size_t s = 0; s < prices.size(); ++s) {
      scale += m_network.stations[s].bytes_per_second * prices[s];
      high_scale += m_network.stations[s].high_bytes_per_second * prices[s];
      bound += m_network.stations[s].background * prices[s];
    }
    if (m_wanted.empty()) {
      double least = of_group.front();
      for (const double cost : found.least) {
        least = std::min(least, cost);
      }
      bound += least;
    }
    for (std::size_t v = 0; v < m_wanted.size(); ++v) {
      bound += m_wanted[v] > 0 ? m_wanted[v] * std::min(found.least[v], of_group[v]) : 0;
    }
    if (high_scale > 0) {
      m_low_certificate = std::max(m_low_certificate, bound / high_scale);
    }
    if (scale > 0 && bound / scale > m_certificate) {
      m_certificate = bound / scale;
      m_best_prices = prices;
      for (double& price : m_best_prices) {
        price /= scale;
      }
    }
    std::stable_sort(found.trees.begin(), found.trees.end(),
                     [](const auto& a, const auto& b) { return a.cost < b.cost; });
    if (m_wanted.empty() && found.trees.size() > k_most_taken) {
      found.trees.resize(k_most_taken);
    }
    return std::move(found.trees);
  }

  /// Of a tree, by the LP's own prices: whether it can make the mix faster.
  [[nodiscard]] bool helps(const Tree& tree) const {
    const double price = m_solution.share_prices[group_of(root_of(tree))];
    return cost_of(m_network, tree, m_solution.prices) < price - k_gap * std::abs(price);
  }

  /// Between given prices and those of the best bound.
  [[nodiscard]] std::vector<double> smoothed(std::vector<double> prices) const {
    for (std::size_t s = 0; s < m_best_prices.size(); ++s) {
      prices[s] = k_smoothing * m_best_prices[s] + (1 - k_smoothing) * prices[s];
    }
    return prices;
  }

  /// By tree: copies on the longest way to its root and on the longest way back.
  [[nodiscard]] std::vector<double> depths() const {
    std::vector<double> out;
    for (const Tree& tree : m_trees) {
      out.push_back(height_of(tree.up) + height_of(tree.down));
    }
    return out;
  }

  /// Whether any of them was new and helps.
  bool take_what_helps(std::vector<Tree> found) {
    bool added = false;
    for (Tree& tree : found) {
      if (helps(tree)) {
        added = take(std::move(tree)) || added;
      }
    }
    return added;
  }

  void spanning_rounds() {
    std::mt19937_64 random(1); // the same network gives the same trees
    std::size_t start = 0;
    for (int round = 0; round < k_most_rounds; ++round) {
      stop_if_interrupted();
      const std::vector<double> prices = even_prices();
      if (m_best_prices.empty()) {
        look(prices);
      }
      std::vector<Tree> found;
      const auto grow = [&](const std::vector<double>& at, std::size_t starts) {
        const Spanning spanning(m_network, at);
        for (std::size_t i = 0; i < starts; ++i) {
          if (std::optional<Tree> tree = spanning.tree(start++)) {
            found.push_back(std::move(*tree));
          }
        }
      };
      grow(prices, k_starts);
      if (!m_best_prices.empty()) {
        const std::vector<double> smooth = smoothed(prices);
        if (!m_proved) {
          look(smooth);
        }
        grow(smooth, 1);
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
        grow(disturbed, 1);
      }
      if (!take_what_helps(std::move(found))) {
        return;
      }
      solve();
    }
  }

  void arborescence_rounds() {
    for (int round = 0; round < k_most_rounds; ++round) {
      stop_if_interrupted();
      // Prices between the best that are known and the LP's lead there in fewer rounds; the LP's
      // own say at last that no tree helps.
      bool added = false;
      for (const std::vector<double>& prices :
           {smoothed(even_prices()), even_prices(), m_solution.prices}) {
        std::vector<Tree> found;
        for (PricedTree& tree : look(prices)) {
          found.push_back(std::move(tree.tree));
        }
        if (is_closed() && !is_small()) {
          return;
        }
        if (take_what_helps(std::move(found))) {
          added = true;
          break;
        }
      }
      if (added) {
        solve();
      } else if (is_closed() || m_steps > k_most_steps) {
        return;
      } else {
        m_steps *= k_more_steps;
      }
    }
  }

  const Network& m_network;
  std::vector<double> m_wanted;           ///< by worker, where the collective gives the roots
  std::vector<std::size_t> m_kind, m_row; ///< by station
  SharesProgram m_program;
  std::vector<Tree> m_trees, m_later; ///< m_later: those that are not mirrored
  std::set<std::tuple<std::vector<std::int64_t>, std::vector<std::int64_t>, std::size_t>> m_known;
  std::vector<std::size_t> m_class; ///< by station
  SharesProgram::Solution m_solution;
  double m_certificate = 0, m_low_certificate = 0;
  double m_steps = k_first_steps;    ///< of a look for the cheapest trees
  std::vector<double> m_best_prices; ///< of the certificate
  bool m_proved;                     ///< by another search: only trees are missing
};

} // namespace

SharesProgram program_of(const Network& network, const std::vector<double>& groups) {
  std::vector<double> capacities, background;
  for (const Station& station : network.stations) {
    capacities.push_back(station.bytes_per_second);
    background.push_back(station.background);
  }
  return {capacities, background, groups};
}

/// Where stations are alike, a small program of their kinds proves first what the optimum is: by
/// symmetry no mix is better than one that loads them evenly.
Optimum optimum_of(const Network& network, std::vector<Tree> trees) {
  const std::vector<std::size_t> kind = kinds_of_stations(network);
  std::vector<std::size_t> own(kind.size());
  std::iota(own.begin(), own.end(), std::size_t{0});
  std::optional<Optimum> proved;
  if (network.places.size() > k_few_places && count_of(kind) < network.stations.size()) {
    proved = Search(network, kind, kind, nullptr, trees).run();
  }
  return Search(network, kind, own, proved ? &*proved : nullptr, std::move(trees)).run();
}

double least_of_trees(const Network& network) {
  std::vector<double> slow;
  for (const Station& station : network.stations) {
    slow.push_back(1 / station.bytes_per_second);
  }
  std::vector<Tree> trees;
  for (PricedTree& tree : cheapest_trees(network, slow).trees) {
    trees.push_back(std::move(tree.tree));
  }
  const std::vector<std::size_t> kind = kinds_of_stations(network);
  return trees.empty()
             ? 0
             : Search(network, kind, kind, nullptr, std::move(trees)).run().low_certificate;
}

} // namespace reckon
