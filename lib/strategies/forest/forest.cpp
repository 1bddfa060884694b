// SPDX-License-Identifier: Apache-2.0
#include "strategies/forest/forest.hpp"

#include "core/error.hpp"
#include "core/indices.hpp"
#include "core/name_ranges.hpp"
#include "strategies/forest/bound.hpp"
#include "strategies/forest/optimum.hpp"
#include "strategies/forest/spanning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace reckon {
namespace {

/// Times that differ by less, relatively, are the same: the solver's precision.
constexpr double k_same = 1e-8;
/// Prices and times that texts do not tell apart.
constexpr double k_alike_prices = 1e-6;
/// Shares are whole multiples of this, and none is smaller than k_least_share: what the solver's
/// rounding leaves would be trees of a few bytes.
constexpr double k_share_step = 1e-9;
constexpr double k_least_share = 1e-6;
/// How many of the dearest stations are solved again with more bandwidth; of a network with more
/// places none, which would take too long.
constexpr std::size_t k_gains = 16, k_most_places_for_gains = 16;
constexpr double k_gb_per_s = 1e9;
/// Named schemes that are played: those that need at most so much more than the best of all trees.
constexpr double k_worth_a_play = 0.25;
constexpr std::size_t k_most_singles = 8;

/// With every capacity at an end of its samples.
double busiest_at(const Network& model, const std::vector<double>& loads,
                  double Station::*capacity) {
  double longest = 0;
  for (std::size_t r = 0; r < loads.size(); ++r) {
    const Station& resource = model.stations[r];
    longest = std::max(longest, (resource.background + loads[r]) / resource.*capacity);
  }
  return longest;
}
double least_busy(const Network& model, const std::vector<double>& loads) {
  return busiest_at(model, loads, &Station::high_bytes_per_second);
}
double most_busy(const Network& model, const std::vector<double>& loads) {
  return busiest_at(model, loads, &Station::low_bytes_per_second);
}

double busiest(const Network& model, const std::vector<double>& loads) {
  return busiest_at(model, loads, &Station::bytes_per_second);
}

/// Stations in the order in which texts name them: dearest first, then the busiest of these loads,
/// then by their names, so that of several that are alike every text names the same one.
std::vector<std::size_t> in_order(const Network& model, const std::vector<double>& loads,
                                  const Optimum& optimum) {
  const double seconds = busiest(model, loads);
  std::vector<std::pair<long, long>> rank;
  for (std::size_t r = 0; r < loads.size(); ++r) {
    const Station& station = model.stations[r];
    const double busy =
        seconds > 0 ? (station.background + loads[r]) / station.bytes_per_second / seconds : 0;
    rank.emplace_back(std::lround(-station.bytes_per_second * optimum.prices[r] / k_alike_prices),
                      std::lround(-busy / k_alike_prices));
  }
  std::vector<std::size_t> order = indices(loads.size());
  std::ranges::sort(order, [&](std::size_t a, std::size_t b) {
    return rank[a] != rank[b] ? rank[a] < rank[b]
                              : natural_less(model.stations[a].name, model.stations[b].name);
  });
  return order;
}

/// The busiest station, and how many others are as busy.
std::string limit_of(const Network& model, const std::vector<double>& loads,
                     const Optimum& optimum) {
  const double seconds = busiest(model, loads);
  std::vector<std::string> names;
  for (const std::size_t r : in_order(model, loads, optimum)) {
    const Station& station = model.stations[r];
    if ((station.background + loads[r]) / station.bytes_per_second >=
        seconds * (1 - k_alike_prices)) {
      names.push_back(station.name);
    }
  }
  return seconds > 0 ? first_names(names, 1) : "nothing";
}

/// Trees with shares, and what they put on every resource.
struct Shared {
  std::vector<std::pair<Tree, std::pair<std::string, double>>> trees;
  std::vector<double> loads;
};

void take(Shared& shared, const Tree& tree, const std::string& name, double share) {
  for (auto& [known, named] : shared.trees) {
    if (known == tree) {
      named.second += share;
      return;
    }
  }
  shared.trees.push_back({tree, {name, share}});
}

/// Adds a scheme's trees, as a part of the gradient.
void take(Shared& shared, const NamedScheme& scheme, double part) {
  for (std::size_t t = 0; t < scheme.trees.size(); ++t) {
    take(shared, scheme.trees[t], scheme.name, part * scheme.shares[t]);
  }
}

/// The best trees with these shares, by tree.
Shared shared_of(const Optimum& optimum, const std::vector<double>& shares) {
  Shared out;
  for (std::size_t i = 0; i < optimum.trees.size(); ++i) {
    if (shares[i] > 0) {
      take(out, optimum.trees[i], "tree", shares[i]);
    }
  }
  return out;
}

/// Shares of trees as whole multiples of the step that add up to `whole`; the greatest takes what
/// rounding leaves.
void round_shares(const std::vector<double*>& shares, double whole) {
  double sum = 0;
  for (const double* const share : shares) {
    sum += *share;
  }
  double rest = whole;
  double* greatest = nullptr;
  for (double* const share : shares) {
    *share = std::round(*share * whole / sum / k_share_step) * k_share_step;
    rest -= *share;
    greatest = greatest == nullptr || *share > *greatest ? share : greatest;
  }
  *greatest += rest;
}

/// Without shares of a few bytes; they add up to 1, and those of each root to what the collective
/// gives it.
void settle(const Network& model, Shared& shared) {
  std::erase_if(shared.trees, [](const auto& tree) { return tree.second.second < k_least_share; });
  const std::vector<double> wanted = model.root_shares();
  std::vector<std::vector<double*>> by_root(std::max<std::size_t>(1, wanted.size()));
  for (auto& [tree, named] : shared.trees) {
    by_root[wanted.empty() ? 0 : root_of(tree)].push_back(&named.second);
  }
  for (std::size_t root = 0; root < by_root.size(); ++root) {
    if (!by_root[root].empty()) {
      round_shares(by_root[root], wanted.empty() ? 1.0 : wanted[root]);
    }
  }
  shared.loads.assign(model.stations.size(), 0.0);
  for (const auto& [tree, named] : shared.trees) {
    const std::vector<double> loads = loads_of(model, tree);
    for (std::size_t r = 0; r < loads.size(); ++r) {
      shared.loads[r] += named.second * loads[r];
    }
  }
}

std::vector<double> loads_of(const Network& model, const NamedScheme& scheme) {
  std::vector<double> out(model.stations.size(), 0.0);
  for (std::size_t t = 0; t < scheme.trees.size(); ++t) {
    const std::vector<double> loads = loads_of(model, scheme.trees[t]);
    for (std::size_t r = 0; r < loads.size(); ++r) {
      out[r] += loads[r] * scheme.shares[t];
    }
  }
  return out;
}

/// For each root that the collective has the cheapest tree. Empties `out` where a root has none.
void add_for_each_root(const Network& model, const std::vector<double>& prices,
                       std::vector<Tree>& out) {
  const std::vector<double> shares = model.root_shares();
  const auto wanted = static_cast<std::size_t>(
      std::count_if(shares.begin(), shares.end(), [](double share) { return share > 0; }));
  const std::vector<PricedTree> trees = cheapest_trees(model, prices).trees;
  for (const PricedTree& tree : trees) {
    if (std::find(out.begin(), out.end(), tree.tree) == out.end()) {
      out.push_back(tree.tree);
    }
  }
  if (trees.size() < wanted) {
    out.clear();
  }
}

/// The trees to begin with: those with names, and the cheapest when every resource costs what it is
/// slow, in case none with a name is possible.
std::vector<Tree> first_trees(const Network& model, const std::vector<NamedScheme>& schemes) {
  std::vector<Tree> out;
  const auto add = [&](const Tree& tree) {
    if (std::find(out.begin(), out.end(), tree) == out.end()) {
      out.push_back(tree);
    }
  };
  for (const NamedScheme& scheme : schemes) {
    for (const Tree& tree : scheme.trees) {
      add(tree);
    }
  }
  std::vector<double> slow;
  for (const Station& resource : model.stations) {
    slow.push_back(1 / resource.bytes_per_second);
  }
  if (model.collective != Collective::all_reduce) {
    add_for_each_root(model, slow, out);
    return out;
  }
  if (const std::optional<Tree> tree = Spanning(model, slow).tree(0)) {
    add(*tree);
  }
  if (out.empty()) { // none that is the same there and back
    for (const PricedTree& tree : cheapest_trees(model, slow).trees) {
      add(tree.tree);
    }
  }
  return out;
}

/// What decides between schemes that take equally long: less work in all, then more even work, then
/// fewer trees.
struct Rank {
  double seconds_per_byte = 0, work = 0, squares = 0;
  std::size_t trees = 0;
  [[nodiscard]] bool before(const Rank& other) const {
    for (const auto& [a, b] : {std::pair(seconds_per_byte, other.seconds_per_byte),
                               std::pair(work, other.work), std::pair(squares, other.squares)}) {
      if (std::abs(a - b) > k_same * std::max(a, b)) {
        return a < b;
      }
    }
    return trees < other.trees;
  }
};

Rank rank_of(const Network& model, const std::vector<double>& loads, std::size_t trees) {
  Rank rank;
  rank.seconds_per_byte = busiest(model, loads);
  rank.trees = trees;
  for (std::size_t r = 0; r < loads.size(); ++r) {
    const double busy = loads[r] / model.stations[r].bytes_per_second;
    rank.work += busy;
    rank.squares += busy * busy;
  }
  return rank;
}

void fill_trees(const Network& model, const Shared& shared, Forest& plan) {
  std::vector<std::int64_t> rank(model.places.size(), -1);
  for (std::size_t v = 0; v < model.places.size(); ++v) {
    const bool used = std::any_of(shared.trees.begin(), shared.trees.end(), [&](const auto& tree) {
      return tree.first.up[v] >= 0 || tree.first.down[v] >= 0;
    });
    if (v < model.workers || used) {
      rank[v] = static_cast<std::int64_t>(plan.endpoints.size());
      plan.endpoints.push_back(model.places[v].id);
      plan.places.push_back(v);
    }
  }
  plan.workers = model.workers;
  for (const auto& [tree, named] : shared.trees) {
    SumTree out;
    out.scheme = named.first;
    out.share = named.second;
    for (std::size_t v = 0; v < model.places.size(); ++v) {
      if (rank[v] >= 0) {
        const auto parent = [&](std::int64_t p) {
          return p < 0 ? p : rank[static_cast<std::size_t>(p)];
        };
        out.up.push_back(parent(tree.up[v]));
        out.down.push_back(parent(tree.down[v]));
      }
    }
    plan.trees.push_back(std::move(out));
    plan.exits.push_back(model.exits[root_of(tree)][tree.exit].nic);
  }
}

/// A mix of one scheme is that scheme, which comes by its own name unless the mix was asked for.
bool is_worth_a_name(const std::vector<double>& shares, std::string_view wanted) {
  return wanted.ends_with(name_of(ForestChoice::mix)) ||
         std::ranges::count_if(shares, [](double s) { return s >= k_least_share; }) > 1;
}

/// By station: what 1 GB/s more of it saves of the least time, as a part of it; of the dearest.
std::vector<double> gains_of(const Network& model, const Optimum& optimum) {
  std::vector<double> out(model.stations.size(), 0.0);
  std::vector<std::size_t> order = indices(model.stations.size());
  const auto price = [&](std::size_t r) {
    return model.stations[r].bytes_per_second * optimum.prices[r];
  };
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return price(a) > price(b) + k_same; });
  order.resize(std::min(order.size(), k_gains));
  for (const std::size_t r : order) {
    if (price(r) > k_same) {
      Network more = model;
      more.stations[r].bytes_per_second += k_gb_per_s;
      const double seconds = optimum_of(more, optimum.trees).seconds_per_byte;
      out[r] = std::max(0.0, 1 - seconds / optimum.seconds_per_byte);
    }
  }
  return out;
}

void fill_prices(const Network& model, const Shared& shared, const Optimum& optimum,
                 const std::vector<double>& gains, Forest& plan) {
  const auto price = [&](std::size_t r) {
    const double part = model.stations[r].bytes_per_second * optimum.prices[r];
    return part > k_same ? part : 0.0;
  };
  const auto busy = [&](std::size_t r) {
    const Station& resource = model.stations[r];
    const double seconds = (resource.background + shared.loads[r]) / resource.bytes_per_second;
    return plan.seconds_per_byte > 0 ? seconds / plan.seconds_per_byte : 0.0;
  };
  for (const std::size_t r : in_order(model, shared.loads, optimum)) {
    const Station& resource = model.stations[r];
    StationPrice out{resource.name,
                     resource.source,
                     resource.bytes_per_second,
                     resource.background + shared.loads[r],
                     busy(r),
                     price(r),
                     gains[r]};
    if (out.price > 0 || out.load > 0) {
      plan.prices.push_back(std::move(out));
    }
  }
}

ForestCandidate candidate_of(const Network& model, const Optimum& optimum, std::string name,
                             const std::vector<double>& loads, std::size_t trees) {
  return {std::move(name), busiest(model, loads),    limit_of(model, loads, optimum),
          trees,           least_busy(model, loads), most_busy(model, loads)};
}

/// What may be taken, best first.
using Choices = std::vector<std::pair<ForestChoice, Shared>>;

/// The best mix, by the shares of the schemes, where it is worth a name; its cost goes into the
/// plan.
Choices choose_mix(const Network& model, const std::vector<NamedScheme>& schemes,
                   const Optimum& optimum, SharesProgram program, std::string_view wanted,
                   Forest& plan) {
  const SharesProgram::Solution solution = program.solve();
  const std::vector<double> shares = program.least_work(solution);
  Shared mix;
  std::string names;
  for (std::size_t i = 0; i < schemes.size(); ++i) {
    take(mix, schemes[i], shares[i]);
    if (shares[i] >= k_least_share) {
      names += fmt::format("{}{:.4g} {}", names.empty() ? "" : ", ", shares[i], schemes[i].name);
    }
  }
  settle(model, mix);
  plan.candidates.push_back(
      candidate_of(model, optimum, "mix: " + names, mix.loads, mix.trees.size()));
  plan.candidates.back().seconds_per_byte = plan.mix_seconds_per_byte = solution.seconds_per_byte;
  Choices out;
  if (is_worth_a_name(shares, wanted)) {
    out.emplace_back(ForestChoice::mix, std::move(mix));
  }
  return out;
}

/// The named schemes that are worth a play and their best mix; a scheme is the first only where it
/// needs at most `good_enough` seconds per byte. Their costs go into the plan.
Choices choose_named(const Network& model, const std::vector<NamedScheme>& schemes,
                     const Optimum& optimum, double good_enough, std::string_view wanted,
                     Forest& plan) {
  std::vector<Rank> ranks;
  SharesProgram program = program_of(model);
  for (const NamedScheme& scheme : schemes) {
    const std::vector<double> loads = loads_of(model, scheme);
    const std::size_t trees = scheme.trees.size();
    program.add(loads);
    ranks.push_back(rank_of(model, loads, trees));
    plan.candidates.push_back(candidate_of(model, optimum, scheme.name, loads, trees));
  }
  Choices out = choose_mix(model, schemes, optimum, std::move(program), wanted, plan);
  plan.single_seconds_per_byte = std::ranges::min_element(ranks, &Rank::before)->seconds_per_byte;
  std::vector<std::size_t> by_time = indices(schemes.size());
  std::ranges::stable_sort(by_time, &Rank::before,
                           [&](std::size_t i) -> const Rank& { return ranks[i]; });
  for (std::size_t i = 0; i < by_time.size(); ++i) {
    const NamedScheme& scheme = schemes[by_time[i]];
    const bool worth_a_play =
        ranks[by_time[i]].seconds_per_byte <= optimum.seconds_per_byte * (1 + k_worth_a_play);
    if (i == 0 || (i < k_most_singles && worth_a_play) || strategy_text(scheme.name) == wanted) {
      Shared single;
      take(single, scheme, 1);
      const bool first = i == 0 && plan.single_seconds_per_byte <= good_enough;
      out.insert(first ? out.begin() : out.end(), {ForestChoice::single, std::move(single)});
    }
  }
  return out;
}

} // namespace

std::string_view name_of(ForestChoice choice) {
  switch (choice) {
  case ForestChoice::single:
    return "single";
  case ForestChoice::mix:
    return "mix";
  case ForestChoice::optimum:
    return "optimum";
  }
  return "?";
}

std::string strategy_text(std::string scheme) {
  for (char& c : scheme) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    c = plain ? c : '_';
  }
  return scheme;
}

std::string by_dual_values(const Forest& forest) {
  std::vector<std::string> names;
  for (const StationPrice& station : forest.prices) {
    if (station.price > 0) {
      names.push_back(station.resource);
    }
  }
  return fmt::format("{}{}: no trees are faster (equation 26)", first_names(names),
                     names.size() > 1 ? " together" : "");
}

std::vector<std::string> binding(const Forest& forest) {
  std::vector<std::string> bind;
  for (const StationPrice& price : forest.prices) {
    if (price.busy > 1 - 1e-6) {
      bind.push_back(price.resource);
    }
  }
  return bind;
}

std::string relief_of(const Forest& forest) {
  constexpr double k_worth_saying = 0.001, k_alike_gain = 1e-6;
  const auto dearest = std::max_element(forest.prices.begin(), forest.prices.end(),
                                        [](const StationPrice& a, const StationPrice& b) {
                                          return a.gain_per_gb_s + k_alike_gain < b.gain_per_gb_s;
                                        });
  if (dearest != forest.prices.end() && dearest->gain_per_gb_s > k_worth_saying) {
    return fmt::format("1 GB/s more on {} would save {:.1f} % of the least time", dearest->resource,
                       100 * dearest->gain_per_gb_s);
  }
  const std::vector<std::string> bind = binding(forest);
  return bind.empty()       ? "unknown: no link that is used has a known rate"
         : bind.size() == 1 ? fmt::format("1 GB/s more on {} would save less than 0.1 % of "
                                          "the least time",
                                          bind.front())
                            : fmt::format("no single link: {} bind together", first_names(bind));
}

std::vector<Forest> solve_forests(const Network& model, double tolerance, Gains gains,
                                  std::string_view wanted) {
  const std::vector<NamedScheme> schemes = named_schemes(model, wanted);
  const std::vector<Tree> first = first_trees(model, schemes);
  if (first.empty()) {
    fail(ErrorKind::input, "no tree of copies that can be made joins all workers; see which pairs "
                           "of endpoints the profile says are unsupported");
  }
  const Optimum optimum = optimum_of(model, first);
  Forest plan;
  plan.optimum_seconds_per_byte = optimum.seconds_per_byte;
  plan.certificate_seconds_per_byte = optimum.certificate;
  plan.low_certificate_seconds_per_byte = optimum.low_certificate;
  Shared best_of_all = shared_of(optimum, optimum.shares);
  settle(model, best_of_all);
  plan.optimum =
      candidate_of(model, optimum, "optimum", best_of_all.loads, best_of_all.trees.size());
  const double good_enough = optimum.seconds_per_byte * (1 + tolerance) * (1 + k_same);
  Choices taken; // the first is the one to take
  if (!schemes.empty()) {
    taken = choose_named(model, schemes, optimum, good_enough, wanted, plan);
  }
  const bool named =
      std::min(plan.single_seconds_per_byte, plan.mix_seconds_per_byte) <= good_enough;
  taken.insert(named ? taken.end() : taken.begin(),
               {ForestChoice::optimum, std::move(best_of_all)});
  const std::size_t fastest = taken.size();
  for (const std::vector<double>& shares : optimum.shallow) {
    taken.emplace_back(ForestChoice::optimum, shared_of(optimum, shares));
  }
  std::ranges::stable_sort(plan.candidates, [](const auto& a, const auto& b) {
    return a.seconds_per_byte < b.seconds_per_byte * (1 - k_same);
  });
  const NetworkBound bound = network_bound(model);
  plan.bound_seconds_per_byte = bound.seconds_per_byte;
  plan.bound_by = bound.by;
  const std::vector<double> saved =
      gains == Gains::solved && model.places.size() <= k_most_places_for_gains
          ? gains_of(model, optimum)
          : std::vector<double>(model.stations.size(), 0.0);
  std::vector<Forest> out;
  for (auto& [choice, chosen] : taken) {
    settle(model, chosen);
    Forest& forest = out.emplace_back(plan);
    forest.choice = choice;
    forest.shallow = out.size() > fastest;
    forest.seconds_per_byte = busiest(model, chosen.loads);
    forest.limit = limit_of(model, chosen.loads, optimum);
    forest.low_seconds_per_byte = least_busy(model, chosen.loads);
    forest.high_seconds_per_byte = most_busy(model, chosen.loads);
    fill_trees(model, chosen, forest);
    fill_prices(model, chosen, optimum, saved, forest);
  }
  return out;
}

Forest solve_forest(const Network& model, double tolerance, Gains gains) {
  return solve_forests(model, tolerance, gains).front();
}

} // namespace reckon
