// SPDX-License-Identifier: Apache-2.0
#include "planning/sweep_text.hpp"

#include "core/error.hpp"
#include "support/messages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace reckon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

TEST(SweepValues, AreARangeOrAList) {
  EXPECT_THAT(sweep_values("0..3"), ElementsAre("0", "1", "2", "3"));
  EXPECT_THAT(sweep_values("0..8..4"), ElementsAre("0", "4", "8"));
  EXPECT_THAT(sweep_values("1..6..4"), ElementsAre("1", "5"));
  EXPECT_THAT(sweep_values("64KiB,1MiB"), ElementsAre("64KiB", "1MiB"));
  for (const char* bad : {"4..1", "0..4..0", "0..20000", "a..4", "0..", "1..2..3..4"}) {
    EXPECT_THROW(static_cast<void>(sweep_values(bad)), Error) << bad;
  }
}

TEST(Sweep, GoesOnAfterAValueWithoutAPlanUnlessNoneHasOne) {
  const auto make = [](const std::vector<std::string>& values) {
    if (values.front() == "bad") {
      fail(ErrorKind::input, "no such machine");
    }
    if (values.front() == "wrong") {
      fail(ErrorKind::usage, "no such value");
    }
    Plan plan;
    plan.strategy = values.front();
    return plan;
  };
  const auto of = [&](std::vector<std::string> values) {
    return sweep({{"strategy", std::move(values)}}, make);
  };
  const std::vector<SweptPlan> plans = of({"bad", "ring"});
  ASSERT_EQ(plans.size(), 2U);
  EXPECT_FALSE(plans[0].plan);
  EXPECT_EQ(plans[0].why_not, "no such machine");
  ASSERT_TRUE(plans[1].plan);
  EXPECT_EQ(plans[1].plan->strategy, "ring");
  EXPECT_THROW(static_cast<void>(of({"bad", "bad"})), Error);
  EXPECT_THROW(static_cast<void>(of({"ring", "wrong"})), Error);
}

TEST(Sweep, TakesAllCombinationsOfSeveralSettings) {
  const auto make = [](const std::vector<std::string>&) { return Plan(); };
  std::vector<std::vector<std::string>> tried;
  for (const SweptPlan& swept : sweep({{"k", {"0", "2"}}, {"port", {"a", "b"}}}, make)) {
    tried.push_back(swept.values);
  }
  EXPECT_THAT(tried, ElementsAre(ElementsAre("0", "a"), ElementsAre("0", "b"),
                                 ElementsAre("2", "a"), ElementsAre("2", "b")));
  EXPECT_THROW(static_cast<void>(sweep({{"k", {"0"}}, {"k", {"1"}}}, make)), Error);
  const std::vector<std::string> many(101, "1");
  EXPECT_THROW(static_cast<void>(sweep({{"k", many}, {"n", many}}, make)), Error);
}

/// A plan of machines with ports of `bytes_per_s` that takes so long.
Plan plan_of(int workers, int servers, double bytes_per_s, double seconds) {
  Plan plan;
  for (int r = 0; r < workers + servers; ++r) {
    PlanRank& rank = plan.ranks.emplace_back();
    rank.machine = "m";
    rank.worker = r < workers;
    rank.server = true;
    rank.port_bytes_per_second = bytes_per_s;
  }
  plan.prediction.lo_seconds = plan.prediction.mid_seconds = plan.prediction.hi_seconds = seconds;
  return plan;
}

const Prices k_prices{.file = "prices.json",
                      .currency = "USD",
                      .per = "hour",
                      .worker = 3,
                      .server = 1,
                      .ports = {{1.25e9, 0.1}, {3.125e9, 0.3}}};

// 8 workers, 4 that only sum, 12 ports: 8 x 3 + 4 x 1 + 12 x 0.3 = 31.6 an hour; 0.36 s of 3600.
TEST(Prices, AreOfMachinesAndTheSlowestPortsThatCarryTheSpeed) {
  const Plan plan = plan_of(8, 4, 3e9, 0.36);
  EXPECT_DOUBLE_EQ(price_of(plan, k_prices), 31.6);
  EXPECT_DOUBLE_EQ(price_of_step(plan, k_prices), 31.6e-4);
  // 24 + 4 + 12 x 0.1; a speed that rounding made a little more is still that port's.
  EXPECT_DOUBLE_EQ(price_of(plan_of(8, 4, 1.25e9 * (1 + 1e-12), 1), k_prices), 29.2);
}

TEST(Prices, SayWhichListedPortsTheyAreOf) {
  Plan plan = plan_of(2, 1, 2e9, 1);
  EXPECT_THAT(priced_ports(plan, k_prices), ElementsAre(3.125e9));
  plan.ranks.front().port_bytes_per_second = 1e9;
  EXPECT_THAT(priced_ports(plan, k_prices), ElementsAre(1.25e9, 3.125e9));
  Prices prices = k_prices;
  prices.ports.clear();
  EXPECT_THAT(priced_ports(plan, prices), ElementsAre());
}

TEST(Prices, CountAMachineOfSeveralRanksOnce) {
  Plan plan;
  for (std::uint64_t r = 0; r < 4; ++r) {
    PlanRank& rank = plan.ranks.emplace_back();
    rank.machine = "box";
    rank.machine_number = r / 2;
    rank.endpoint = r % 2 == 0 ? "box/gpu0" : "box/gpu1";
    rank.worker = r < 2; // the second box only sums
  }
  Prices prices = k_prices;
  prices.ports.clear();
  EXPECT_DOUBLE_EQ(price_of(plan, prices), 4);
}

TEST(Prices, SayWhatTheyLack) {
  const auto why = [](const Plan& plan, const Prices& prices) -> std::string {
    try {
      return std::to_string(price_of_step(plan, prices));
    } catch (const Error& error) {
      return error.what();
    }
  };
  EXPECT_THAT(why(plan_of(1, 0, 12.5e9, 1), k_prices), test::Says("12.5 GB/s"));
  EXPECT_THAT(why(plan_of(1, 0, 0, 1), k_prices), test::Says("ports"));
  Prices prices = k_prices;
  prices.per = "fortnight";
  EXPECT_THAT(why(plan_of(1, 0, 1e9, 1), prices), test::Says("'fortnight'"));
  prices = k_prices;
  prices.server.reset();
  EXPECT_THAT(why(plan_of(1, 1, 1e9, 1), prices), HasSubstr("\"server\""));
}

// d: 0.36 s, 31.6 an hour, 31.6e-4 a step. c: 0.72 s, 8 x 3 + 8 x 0.3 = 26.4 an hour, 52.8e-4 a
// step: slower and dearer. a: 0.9 s, 2 x 3 + 1 + 3 x 0.3 = 7.9 an hour, 19.75e-4 a step: slower and
// cheaper.
TEST(Sweep, MarksPlansThatNoOtherBeatsInTimeAndPrice) {
  const auto weigh = [](std::optional<Prices> prices) {
    std::vector<SweptPlan> plans{{{"a"}, plan_of(2, 1, 3e9, 0.9)},
                                 {{"b"}, {}, "not possible"},
                                 {{"c"}, plan_of(8, 0, 3e9, 0.72)},
                                 {{"d"}, plan_of(8, 4, 3e9, 0.36)}};
    return weighed({"setting"}, std::move(plans), std::move(prices));
  };
  const Sweep priced = weigh(k_prices);
  std::vector<bool> best;
  for (const SweptCost& cost : priced.costs) {
    best.push_back(cost.best);
  }
  EXPECT_THAT(best, ElementsAre(true, false, false, true));
  EXPECT_DOUBLE_EQ(*priced.costs[0].price_of_step, 19.75e-4);
  EXPECT_DOUBLE_EQ(*priced.costs[2].price_of_step, 52.8e-4);
  EXPECT_FALSE(weigh({}).costs[0].best);
  EXPECT_TRUE(weigh({}).costs[3].best);
  // The least time first, what has no plan last.
  const std::string text = render(priced, Style());
  std::vector<std::size_t> at;
  for (const char* value : {" d ", " c ", " a ", " b "}) {
    at.push_back(text.find(value));
    EXPECT_NE(at.back(), text.npos) << value << text;
  }
  EXPECT_TRUE(std::is_sorted(at.begin(), at.end())) << text;
}

TEST(Sweep, NamesThePricedPortAndWhatBindsWithoutDetails) {
  const auto text_with = [](std::optional<Prices> prices) {
    std::vector<SweptPlan> plans{{{"a"}, plan_of(2, 0, 2e9, 0.5)}, {{"b"}, {}, "too many: 7"}};
    plans[0].plan->prediction.bound_by = "the workers' ports: each sends all, (equation 8)";
    return render(weighed({"port-bandwidth"}, std::move(plans), std::move(prices)), Style());
  };
  // 2 x 3 + 2 x 0.3 an hour; x 0.5 s / 3600 x 1000 a thousand steps.
  const std::string text = text_with(k_prices);
  EXPECT_THAT(text, test::Says("25Gb/s"));
  EXPECT_THAT(text, HasSubstr("too many: 7\n"));
  EXPECT_THAT(text, HasSubstr("    port-"));
  Prices no_ports = k_prices;
  no_ports.ports.clear();
  EXPECT_THAT(text_with(no_ports), Not(HasSubstr("priced")));
  EXPECT_THAT(text_with({}), Not(HasSubstr("priced")));
}

TEST(Sweep, ComparesWhatThePassesDoNotHide) {
  std::vector<SweptPlan> plans{{{"a"}, plan_of(2, 0, 1e9, 0.5)}};
  plans[0].plan->passes = Passes{{8}, {0.25}, {0.125}};
  const Sweep swept = weighed({"setting"}, std::move(plans), {});
  EXPECT_DOUBLE_EQ(swept.costs[0].exposed_seconds, 0.125);
  EXPECT_THAT(render(swept, Style()), HasSubstr("exposed"));
}

} // namespace
} // namespace reckon
