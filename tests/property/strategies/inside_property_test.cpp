// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "strategies/forest/bound.hpp"
#include "strategies/forest/forest.hpp"
#include "strategies/forest/program.hpp"
#include "support/cases.hpp"
#include "support/inside_profiles.hpp"
#include "support/random_cases.hpp"
#include "support/refusals.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iostream>
#include <limits>
#include <random>

namespace reckon {
namespace {

constexpr std::uint64_t k_seed = 4230;
constexpr int k_cases = support::cases(250);
// The solver keeps its bounds to 1e-9, the search ends within 1e-9 of the certificate.
constexpr double k_precision = 1e-7;

using Parents = std::vector<std::int64_t>;

struct Case {
  Profile profile;
  InsideOptions options;
  Network model;
};

Case random_case(std::mt19937_64& random, std::size_t gpus) {
  Case out;
  out.profile = test::random_inside_profile(random, gpus);
  if (!out.profile.topology.of_kind(ObjectKind::nic).empty() && random() % 3 != 0) {
    out.options.network = random() % 2 == 0 ? 1.0 : 0.5;
    out.options.gpu_direct = random() % 2 == 0;
    out.options.service = random() % 3 == 0 ? 1.0 : 0.0;
  }
  out.model = network_inside_machine(out.profile, "m0", out.options);
  return out;
}

/// The same with at most four endpoints, whose trees can be counted.
Network with_few_relays(const Case& c) {
  InsideOptions options = c.options;
  options.relays = std::vector<std::string>{"m0/numa0"};
  return c.model.places.size() <= 4 ? c.model : network_inside_machine(c.profile, "m0", options);
}

template <class Check>
void for_cases(std::size_t gpus, Check check) {
  test::for_cases(k_seed, k_cases,
                  [&](test::Random& random) { check(random_case(random, gpus), random); });
}

/// All ways to give every endpoint a parent, or none, that form one tree with this root.
std::vector<Parents> all_trees(const Network& model, std::size_t root, bool up) {
  const std::size_t n = model.places.size();
  std::vector<Parents> out;
  std::vector<std::size_t> digits(n, 0); // 0: none, p + 1: parent p
  for (;;) {
    Parents parents(n, -1);
    bool valid = true;
    for (std::size_t v = 0; v < n; ++v) {
      parents[v] = static_cast<std::int64_t>(digits[v]) - 1;
      valid = valid && (v == root) == (digits[v] == v + 1) && (digits[v] > 0 || v >= model.workers);
      if (valid && digits[v] > 0 && v != root) {
        const std::size_t p = digits[v] - 1;
        valid = up ? model.ways[v][p].has_value() : model.ways[p][v].has_value();
      }
    }
    for (std::size_t v = 0; v < n && valid; ++v) {
      std::size_t at = v;
      for (std::size_t steps = 0; valid && parents[v] >= 0 && at != root; ++steps) {
        valid = parents[at] >= 0 && steps < n;
        at = valid ? static_cast<std::size_t>(parents[at]) : at;
      }
    }
    if (valid) {
      out.push_back(parents);
    }
    std::size_t digit = 0;
    while (digit < n && ++digits[digit] > n) {
      digits[digit++] = 0;
    }
    if (digit == n) {
      return out;
    }
  }
}

/// What a tree costs, counted here: nothing of loads_of.
double cost_of(const Network& model, const Parents& parents, bool up,
               const std::vector<double>& prices) {
  const auto price = [&](const Uses& uses) {
    double sum = 0;
    for (const Use& use : uses) {
      sum += prices[use.station] * use.amount;
    }
    return sum;
  };
  double cost = 0;
  for (std::size_t v = 0; v < parents.size(); ++v) {
    const auto p = static_cast<std::size_t>(parents[v]);
    if (parents[v] >= 0 && p != v) {
      cost += price(up ? *model.ways[v][p] : *model.ways[p][v]);
    }
    if (up) {
      int streams = v < model.workers ? 1 : 0;
      for (std::size_t u = 0; u < parents.size(); ++u) {
        streams += u != v && parents[u] == static_cast<std::int64_t>(v) ? 1 : 0;
      }
      cost += price(model.add[v]) * std::max(0, streams - 1);
    }
  }
  return cost;
}

TEST(InsideTreesProperty, TheCheapestTreesAreThoseOfAllTrees) {
  for_cases(3, [](const Case& c, std::mt19937_64& random) {
    std::vector<double> prices;
    for (std::size_t r = 0; r < c.model.stations.size(); ++r) {
      prices.push_back(random() % 3 == 0 ? 0.0 : static_cast<double>(random() % 1000) / 100);
    }
    std::vector<bool> found(c.model.places.size(), false);
    for (const PricedTree& priced : cheapest_trees(c.model, prices).trees) {
      const std::size_t root = root_of(priced.tree);
      found[root] = true;
      EXPECT_TRUE(is_possible(c.model, priced.tree));
      double exit = std::numeric_limits<double>::infinity();
      for (const Exit& way : c.model.exits[root]) {
        double cost = 0;
        for (const Use& use : way.uses) {
          cost += prices[use.station] * use.amount;
        }
        exit = std::min(exit, cost);
      }
      double expected = exit;
      for (const bool up : {true, false}) {
        double least = std::numeric_limits<double>::infinity();
        for (const Parents& parents : all_trees(c.model, root, up)) {
          least = std::min(least, cost_of(c.model, parents, up, prices));
        }
        expected += least;
      }
      EXPECT_NEAR(priced.cost, expected, 1e-9 * (1 + expected)) << "root " << root;
      double loaded = 0;
      const std::vector<double> loads = loads_of(c.model, priced.tree);
      for (std::size_t r = 0; r < loads.size(); ++r) {
        loaded += loads[r] * prices[r];
      }
      EXPECT_NEAR(loaded, expected, 1e-9 * (1 + expected)) << "root " << root;
    }
    for (std::size_t root = 0; root < found.size(); ++root) {
      const bool any = !c.model.exits[root].empty() && !all_trees(c.model, root, true).empty() &&
                       !all_trees(c.model, root, false).empty();
      EXPECT_EQ(found[root], any) << "root " << root;
    }
  });
}

TEST(InsideProperty, TheSearchFindsTheBestMixOfAllTrees) {
  std::size_t most = 0;
  std::size_t total = 0;
  int compared = 0;
  for_cases(3, [&](const Case& c, std::mt19937_64&) {
    const Network model = with_few_relays(c);
    std::vector<double> capacities;
    std::vector<double> background;
    for (const Station& resource : model.stations) {
      capacities.push_back(resource.bytes_per_second);
      background.push_back(resource.background);
    }
    SharesProgram program(capacities, background);
    std::size_t columns = 0;
    for (std::size_t root = 0; root < model.places.size(); ++root) {
      const std::vector<Parents> downs = all_trees(model, root, false);
      for (const Parents& up : all_trees(model, root, true)) {
        for (const Parents& down : downs) {
          for (std::size_t exit = 0; exit < model.exits[root].size(); ++exit) {
            program.add(loads_of(model, {up, down, exit}));
            ++columns;
          }
        }
      }
    }
    if (columns == 0) {
      EXPECT_ERROR(solve_forest(model, 0.01, Gains::left_out));
      return;
    }
    const double expected = program.solve().seconds_per_byte;
    const Forest plan = solve_forest(model, 0.01, Gains::left_out);
    EXPECT_NEAR(plan.optimum_seconds_per_byte, expected, k_precision * expected);
    EXPECT_NEAR(plan.certificate_seconds_per_byte, expected, k_precision * expected);
    most = std::max(most, columns);
    total += columns;
    ++compared;
  });
  std::cout << compared << " machines compared, " << total << " trees, at most " << most
            << " on one\n";
  EXPECT_GE(compared, k_cases * 4 / 5);
}

TEST(InsideProperty, APlanKeepsWhatItSays) {
  for_cases(6, [](const Case& c, std::mt19937_64&) {
    Forest plan;
    try {
      plan = solve_forest(c.model, 0.01, Gains::left_out);
    } catch (const Error&) {
      return; // pairs that cannot copy leave a worker alone
    }
    const double best = plan.optimum_seconds_per_byte;
    // The certificate: prices that bound every mix of trees, as good as the mix found.
    EXPECT_NEAR(plan.certificate_seconds_per_byte, best, k_precision * best);
    EXPECT_LE(plan.certificate_seconds_per_byte, best * (1 + k_precision));
    double prices = 0;
    for (const StationPrice& price : plan.prices) {
      prices += price.price;
      EXPECT_GE(price.price, 0) << price.resource;
      EXPECT_LE(price.busy, 1 + k_precision) << price.resource;
    }
    EXPECT_NEAR(prices, 1, 1e-5);
    // No algorithm beats the bound, the trees do not beat the optimum, names cost at most the
    // tolerance.
    EXPECT_LE(plan.bound_seconds_per_byte, best * (1 + k_precision)) << plan.bound_by;
    EXPECT_GE(plan.seconds_per_byte, best * (1 - k_precision));
    EXPECT_LE(plan.seconds_per_byte, best * (1.01 + 1e-4));
    if (plan.mix_seconds_per_byte > 0) {
      EXPECT_LE(plan.mix_seconds_per_byte, plan.single_seconds_per_byte * (1 + k_precision));
      EXPECT_GE(plan.mix_seconds_per_byte, best * (1 - k_precision));
    }
    // The trees, counted again from what the plan hands over.
    double shares = 0;
    ASSERT_EQ(plan.exits.size(), plan.trees.size());
    std::vector<double> loads(c.model.stations.size(), 0.0);
    for (std::size_t t = 0; t < plan.trees.size(); ++t) {
      const SumTree& tree = plan.trees[t];
      shares += tree.share;
      EXPECT_GT(tree.share, 0);
      Tree whole;
      whole.up.assign(c.model.places.size(), -1);
      whole.down = whole.up;
      std::vector<std::size_t> endpoint;
      for (const std::string& id : plan.endpoints) {
        endpoint.push_back(
            static_cast<std::size_t>(std::find_if(c.model.places.begin(), c.model.places.end(),
                                                  [&](const Place& e) { return e.id == id; }) -
                                     c.model.places.begin()));
      }
      for (std::size_t v = 0; v < endpoint.size(); ++v) {
        const auto parent = [&](std::int64_t p) {
          return p < 0 ? p : static_cast<std::int64_t>(endpoint[static_cast<std::size_t>(p)]);
        };
        whole.up[endpoint[v]] = parent(tree.up[v]);
        whole.down[endpoint[v]] = parent(tree.down[v]);
      }
      const std::size_t root = root_of(whole);
      while (whole.exit < c.model.exits[root].size() &&
             c.model.exits[root][whole.exit].nic != plan.exits[t]) {
        ++whole.exit;
      }
      ASSERT_TRUE(is_possible(c.model, whole)) << tree.scheme;
      const std::vector<double> one = loads_of(c.model, whole);
      for (std::size_t r = 0; r < one.size(); ++r) {
        loads[r] += tree.share * one[r];
      }
    }
    EXPECT_NEAR(shares, 1, 1e-9);
    double longest = 0;
    for (std::size_t r = 0; r < loads.size(); ++r) {
      const Station& resource = c.model.stations[r];
      longest = std::max(longest, (resource.background + loads[r]) / resource.bytes_per_second);
    }
    EXPECT_NEAR(plan.seconds_per_byte, longest, k_precision * longest);
  });
}

TEST(InsideProperty, DualValuesPredictWhatMoreBandwidthGives) {
  int priced = 0;
  int exact = 0;
  for_cases(4, [&](const Case& c, std::mt19937_64&) {
    Forest plan;
    try {
      plan = solve_forest(c.model, 0.01, Gains::left_out);
    } catch (const Error&) {
      return;
    }
    const double best = plan.optimum_seconds_per_byte;
    for (const StationPrice& price : plan.prices) {
      if (price.price <= 0) {
        continue;
      }
      const auto at = static_cast<std::size_t>(
          std::find_if(c.model.stations.begin(), c.model.stations.end(),
                       [&](const Station& r) { return r.name == price.resource; }) -
          c.model.stations.begin());
      // T is the greatest of (cost + background) / (capacities times prices) over all prices. Those
      // of the plan are still allowed with other capacities, so that T is at least theirs; and it
      // is theirs where they are the only ones.
      constexpr double k_step = 1e-3;
      for (const double step : {k_step, -k_step}) {
        Network changed = c.model;
        changed.stations[at].bytes_per_second *= 1 + step;
        const double time = solve_forest(changed, 0.01, Gains::left_out).optimum_seconds_per_byte;
        const double predicted = best / (1 + step * price.price);
        EXPECT_GE(time, predicted * (1 - k_precision)) << price.resource << " by " << step;
        EXPECT_LE(step > 0 ? time : best, (step > 0 ? best : time) * (1 + k_precision))
            << price.resource << " by " << step;
        ++priced;
        exact += time <= predicted * (1 + k_precision) ? 1 : 0;
      }
    }
  });
  std::cout << exact << " of " << priced << " predicted exactly\n";
  EXPECT_GT(exact, priced / 2);
}

TEST(InsideProperty, TheHighCertificateIsBelowTheOptimumAtHighCapacities) {
  int compared = 0, closer = 0;
  for_cases(4, [&](const Case& c, std::mt19937_64& random) {
    Network model = c.model;
    model.collective = static_cast<Collective>(random() % 5);
    model.root = 0;
    double widest = 1;
    for (Station& station : model.stations) {
      const double factor = 1 + static_cast<double>(random() % 100) / 100;
      station.high_bytes_per_second = station.bytes_per_second * factor;
      widest = std::max(widest, factor);
    }
    Network even = model;
    for (Station& station : even.stations) {
      station.high_bytes_per_second = 1.25 * station.bytes_per_second;
    }
    Forest forest, at_high;
    try {
      forest = solve_forest(model, 0.01, Gains::left_out);
      at_high = solve_forest(at_high_capacities(model), 0.01, Gains::left_out);
    } catch (const Error&) {
      return; // pairs that cannot copy leave a worker alone
    }
    const double low = forest.low_certificate_seconds_per_byte;
    EXPECT_LE(low, at_high.optimum_seconds_per_byte * (1 + k_precision));
    EXPECT_GE(low, forest.certificate_seconds_per_byte / widest * (1 - k_precision));
    const double least = forest.certificate_seconds_per_byte / 1.25;
    EXPECT_NEAR(solve_forest(even, 0.01, Gains::left_out).low_certificate_seconds_per_byte, least,
                k_precision * least);
    ++compared;
    closer += low > forest.certificate_seconds_per_byte / widest * 1.01 ? 1 : 0;
  });
  std::cout << compared << " networks compared, " << closer
            << " where prices say more than the widest range\n";
  EXPECT_GE(compared, k_cases / 2);
  EXPECT_GT(closer, compared / 2);
}

TEST(InsideProperty, FasterLinksNeverCostTime) {
  for_cases(4, [](const Case& c, std::mt19937_64& random) {
    Network faster = c.model;
    for (Station& resource : faster.stations) {
      resource.bytes_per_second *= random() % 2 == 0 ? 1.5 : 1.0;
    }
    EXPECT_LE(network_bound(faster).seconds_per_byte,
              network_bound(c.model).seconds_per_byte * (1 + 1e-9));
    try {
      EXPECT_LE(solve_forest(faster, 0.01, Gains::left_out).optimum_seconds_per_byte,
                solve_forest(c.model, 0.01, Gains::left_out).optimum_seconds_per_byte *
                    (1 + k_precision));
    } catch (const Error&) {
    }
  });
}

} // namespace
} // namespace reckon
