// SPDX-License-Identifier: Apache-2.0
#include "probe/campaign.hpp"

#include "core/error.hpp"
#include "documents/cells.hpp"
#include "fakes.hpp"
#include "support/messages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace reckon {
namespace {

using test::FakeClock;
using test::FakeGuard;

/// Cells that take exactly the time they are given, and record it.
struct Bench {
  FakeClock clock;
  FakeGuard guard;
  RunnerOptions options;
  std::vector<std::pair<std::uint64_t, double>> order; ///< bytes (as a name) and seconds given

  CellPlan cell(std::uint64_t number, double visit) {
    return {.key = {.test = k_host_memcpy, .bytes = number},
            .visit = Seconds(visit),
            .measure = [this, number](Cell& measured, Seconds budget) {
              order.emplace_back(number, budget.count());
              clock.advance(budget);
              measured.samples = {1.0, 1.0, 1.0};
              summarize_cell(measured);
            }};
  }
  /// Cells 1 to `count`.
  std::vector<CellPlan> cells(std::uint64_t count, double visit) {
    std::vector<CellPlan> plans;
    for (std::uint64_t i = 1; i <= count; ++i) {
      plans.push_back(cell(i, visit));
    }
    return plans;
  }
  static Campaign campaign(std::vector<CellPlan> plans) {
    return {.name = "fake campaign", .plans = std::move(plans)};
  }
  RunResult run(const std::vector<Campaign>& campaigns) {
    return run_campaigns(campaigns, options, clock, guard);
  }
};

std::map<std::uint64_t, Cell> by_number(const RunResult& result) {
  std::map<std::uint64_t, Cell> cells;
  for (const Cell& cell : result.cells) {
    EXPECT_TRUE(cells.emplace(cell.key.bytes, cell).second) << cell.key.text() << " twice";
  }
  return cells;
}

TEST(Campaign, ErrorsThatWereCountedDuringAVisitAreTheCells) {
  Bench b;
  std::string counted = "m0/nic0: 9 symbol_error"; // before it began
  CellPlan second = b.cell(2, 1);
  second.measure = [&, inner = second.measure](Cell& cell, Seconds budget) {
    inner(cell, budget);
    counted = "m0/nic0: 3 symbol_error";
  };
  b.options.errors = [&] { return std::exchange(counted, ""); };
  const auto cells = by_number(b.run({Bench::campaign({b.cell(1, 1), second})}));
  EXPECT_EQ(cells.at(1).reason, "");
  EXPECT_THAT(cells.at(2).reason, testing::HasSubstr("m0/nic0: 3 symbol_error"));
  EXPECT_THAT(cells.at(2).reason, testing::Not(testing::HasSubstr("9")));
  EXPECT_EQ(cells.at(2).status, CellStatus::ok);
}

TEST(Campaign, VisitsAreSpreadOverTheRun) {
  Bench b;
  const RunResult result =
      b.run({Bench::campaign({b.cell(1, 2), b.cell(2, 3)}), Bench::campaign({b.cell(3, 1)})});
  EXPECT_EQ(result.count(CellStatus::ok), 3U);
  // Two passes; in each the first campaign's cells twice in turn, then the second's.
  std::vector<std::uint64_t> order;
  for (const auto& [number, seconds] : b.order) {
    order.push_back(number);
    EXPECT_DOUBLE_EQ(seconds, number == 1 ? 2 : number == 2 ? 3 : 1);
  }
  ASSERT_EQ(order.size(), 12U);
  for (const std::size_t at : {0U, 2U, 6U, 8U}) {
    EXPECT_EQ(order[at] + order[at + 1], 3U); // both before either comes again
  }
  for (const std::size_t at : {4U, 5U, 10U, 11U}) {
    EXPECT_EQ(order[at], 3U);
  }
  EXPECT_DOUBLE_EQ(result.took.count(), 24);
  for (const auto& [number, cell] : by_number(result)) {
    EXPECT_EQ(cell.n, 6U); // 3 samples of 2 visits, the better half of 4
  }
}

struct Share {
  double budget; ///< of cells whose visits take 10 s in all
  std::size_t visits;
  double seconds; ///< of a visit of 1 s
};
class BudgetOfCells : public testing::TestWithParam<Share> {};
TEST_P(BudgetOfCells, MakesMoreVisitsOrFewerThenShorterOnes) {
  Bench b;
  b.options.budget = Seconds(GetParam().budget);
  const RunResult result = b.run({Bench::campaign(b.cells(10, 1))});
  EXPECT_EQ(b.order.size(), 10 * GetParam().visits);
  for (const auto& [number, seconds] : b.order) {
    EXPECT_NEAR(seconds, GetParam().seconds, 1e-9);
  }
  EXPECT_LE(result.took.count(), GetParam().budget + 1);
}
// Six tenths of a budget are for visits: 100 s for six of each cell.
INSTANTIATE_TEST_SUITE_P(Campaign, BudgetOfCells,
                         testing::Values(Share{101, 6, 1}, Share{200.1, 12, 1}, Share{50.1, 2, 1},
                                         Share{20, 1, 1}, Share{10, 1, 0.6}, Share{4, 1, 0.24}));

TEST(Campaign, WhatThereIsNoTimeForIsMarked) {
  Bench b;
  b.options.budget = Seconds(1); // visits get a fifth of their second at least
  const RunResult result = b.run({Bench::campaign(b.cells(10, 1))});
  EXPECT_EQ(result.count(CellStatus::ok) + result.count(CellStatus::noisy), 5U);
  EXPECT_EQ(result.count(CellStatus::skipped), 5U);
  for (const Cell& cell : result.cells) {
    if (cell.status == CellStatus::skipped) {
      EXPECT_EQ(cell.reason, "no time left of 1 s");
    }
  }
}

TEST(Campaign, MoreTimeNeverMeasuresLess) {
  std::mt19937_64 engine(20261123);
  for (int round = 0; round < 100; ++round) {
    SCOPED_TRACE(round);
    std::vector<double> visits;
    for (std::uint64_t i = 0; i < 1 + engine() % 12; ++i) {
      visits.push_back(0.01 * static_cast<double>(1 + engine() % 100));
    }
    std::size_t before = 0;
    for (const double budget : {0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0}) {
      Bench b;
      b.options.budget = Seconds(budget);
      std::vector<CellPlan> plans;
      for (const double visit : visits) {
        plans.push_back(b.cell(plans.size() + 1, visit));
      }
      const RunResult result = b.run({Bench::campaign(plans)});
      EXPECT_EQ(by_number(result).size(), plans.size());
      std::size_t samples = 0;
      for (const Cell& cell : result.cells) {
        samples += cell.n;
      }
      EXPECT_GE(samples, before) << budget << " s";
      before = samples;
      EXPECT_LE(result.took.count(), budget + 1); // the last visit may go beyond
    }
  }
}

TEST(Campaign, VisitsThatTakeLongerThanPlannedStarveNoCampaign) {
  // Some campaigns' visits take up to 5 times as long as they are told, or need time to begin:
  // what is first must not leave nothing to what is last.
  std::mt19937_64 engine(20261126);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    Bench b;
    std::vector<Campaign> campaigns;
    std::vector<std::size_t> visits(3 + engine() % 8);
    double planned = 0, longest = 0;
    for (std::size_t c = 0; c < visits.size(); ++c) {
      Campaign& campaign = campaigns.emplace_back();
      const double factor = engine() % 2 == 0 ? 1 : static_cast<double>(1 + engine() % 5);
      const double begin = engine() % 3 == 0 ? 0.2 : 0;
      campaign.begin = [&b, begin] { b.clock.advance(Seconds(begin)); };
      for (std::uint64_t i = 0; i < 20; ++i) {
        const double visit = i % 2 == 0 ? 0.05 : 0.2;
        campaign.plans.push_back(b.cell(100 * c + i, visit));
        campaign.plans.back().measure = [&b, &visits, c, factor](Cell& cell, Seconds budget) {
          b.clock.advance(factor * budget);
          ++visits[c];
          cell.samples = {1.0, 1.0, 1.0};
          summarize_cell(cell);
        };
        planned += visit;
        longest = std::max(longest, factor * visit);
      }
    }
    // A third of what is planned, which is 0.8 s for a campaign with the usual visits. One begins
    // for at most 0.2 s, and its first visit and its last take no more than 5 * 0.2 s / 4 each.
    b.options.budget = Seconds(planned / 3);
    const RunResult result = b.run(campaigns);
    EXPECT_LE(result.took, *b.options.budget + Seconds(longest));
    for (std::size_t c = 0; c < visits.size(); ++c) {
      EXPECT_GE(visits[c], 1U) << "campaign " << c << " of " << visits.size();
    }
  }
}

TEST(Campaign, TheCellsThatWereCutComeFirstInTheNextPass) {
  // Time for three passes of two visits of 1 s; but they take 4 s, so that of ten cells about five
  // fit into a part. All are measured once before any is measured twice.
  Bench b;
  b.options.budget = Seconds(81);
  std::vector<CellPlan> plans = b.cells(10, 1);
  std::map<std::uint64_t, int> visits;
  for (CellPlan& plan : plans) {
    plan.measure = [&b, &visits, number = plan.key.bytes](Cell& cell, Seconds budget) {
      b.clock.advance(4 * budget);
      ++visits[number];
      const auto [least, most] =
          std::minmax_element(visits.begin(), visits.end(),
                              [](const auto& x, const auto& y) { return x.second < y.second; });
      EXPECT_TRUE(most->second == 1 || (visits.size() == 10 && most->second <= least->second + 1));
      cell.samples = {1.0, 1.0, 1.0};
      summarize_cell(cell);
    };
  }
  const RunResult result = b.run({Bench::campaign(plans)});
  EXPECT_EQ(result.count(CellStatus::skipped), 0U);
  EXPECT_LE(result.took.count(), 85);
}

TEST(Campaign, FailuresAreDataAndStopNothing) {
  Bench b;
  std::vector<CellPlan> plans = b.cells(4, 0.1);
  plans[0].measure = [](Cell& cell, Seconds) {
    cell.samples = {1}; // half done when it breaks
    fail(ErrorKind::operation, "write: the wire broke");
  };
  plans[1].measure = [](Cell&, Seconds) { fail(ErrorKind::unavailable, "no such device"); };
  plans[2].measure = [](Cell&, Seconds) { throw std::bad_alloc(); };
  const RunResult result = b.run({Bench::campaign(plans)});
  const auto cells = by_number(result);
  EXPECT_EQ(cells.at(1).status, CellStatus::failed);
  EXPECT_EQ(cells.at(1).reason, "write: the wire broke");
  EXPECT_TRUE(cells.at(1).samples.empty());
  EXPECT_EQ(cells.at(2).status, CellStatus::unsupported);
  EXPECT_EQ(cells.at(2).reason, "no such device");
  EXPECT_EQ(cells.at(3).status, CellStatus::failed);
  EXPECT_EQ(cells.at(4).status, CellStatus::ok);
}

TEST(Campaign, ACampaignThatCannotBeginFailsAsAWhole) {
  Bench b;
  Campaign bad = Bench::campaign(b.cells(2, 0.1));
  bad.begin = [] { fail(ErrorKind::operation, "mmap: no memory"); };
  bool ended = false;
  bad.end = [&] { ended = true; };
  const RunResult result = b.run({bad, Bench::campaign({b.cell(3, 0.1)})});
  const auto cells = by_number(result);
  EXPECT_EQ(cells.at(1).status, CellStatus::failed);
  EXPECT_EQ(cells.at(2).reason, "mmap: no memory");
  EXPECT_EQ(cells.at(3).status, CellStatus::ok);
  EXPECT_FALSE(ended);
}

TEST(Campaign, AnInterruptKeepsWhatWasMeasuredAndMarksTheRest) {
  Bench b;
  b.options.interrupted = [&] { return b.order.size() >= 2; };
  Campaign never = Bench::campaign({b.cell(7, 0.1)});
  bool begun = false;
  never.begin = [&] { begun = true; };
  const RunResult result = b.run({Bench::campaign(b.cells(6, 0.1)), never});
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.count(CellStatus::skipped), 5U);
  for (const Cell& cell : result.cells) {
    EXPECT_TRUE(cell.has_value() || cell.reason == "interrupted") << cell.reason;
  }
  EXPECT_FALSE(begun);
}

TEST(Campaign, OrderIsDrawnFromTheSeed) {
  const auto order_with = [](std::uint64_t seed) {
    Bench b;
    b.options.seed = seed;
    static_cast<void>(b.run({Bench::campaign(b.cells(20, 0.1))}));
    std::vector<std::uint64_t> order;
    for (const auto& [number, seconds] : b.order) {
      order.push_back(number);
    }
    order.resize(20); // each once, before any comes again
    return order;
  };
  EXPECT_EQ(order_with(7), order_with(7));
  EXPECT_NE(order_with(7), order_with(8));
  std::vector<std::uint64_t> sorted = order_with(7);
  EXPECT_FALSE(std::is_sorted(sorted.begin(), sorted.end()));
  std::sort(sorted.begin(), sorted.end());
  for (std::uint64_t i = 1; i <= 20; ++i) {
    EXPECT_EQ(sorted[i - 1], i);
  }
}

/// A visit with these samples of a time.
Cell visit(std::vector<double> samples) {
  return test::cell_with({.test = k_host_memcpy}, std::move(samples));
}

TEST(Merged, TheFasterHalfCounts) {
  // Medians 3, 1, 2, 9, 8, 1: the best three are 1, 2 and 1, in the order made.
  const std::vector<Cell> visits{visit({3, 3}), visit({1, 1}),   visit({2, 2}),
                                 visit({9, 9}), visit({8, 8.5}), visit({1, 1.01})};
  const Cell cell = merged(visits, 100);
  EXPECT_THAT(cell.samples, testing::ElementsAre(1, 1, 2, 2, 1, 1.01));
  EXPECT_EQ(cell.n, 6U);
  EXPECT_DOUBLE_EQ(cell.p50, 1.005);
  EXPECT_EQ(cell.status, CellStatus::noisy);
  EXPECT_THAT(cell.reason, test::Says("measured 6"));
}

TEST(Merged, AllVisitsCountWhereTheTypicalIsAsked) {
  const Cell cell =
      merged(std::vector<Cell>{visit({1, 1}), visit({3, 3}), visit({2, 2})}, 100, true);
  EXPECT_THAT(cell.samples, testing::ElementsAre(1, 1, 3, 3, 2, 2));
  EXPECT_DOUBLE_EQ(cell.p50, 2);
}

TEST(Merged, OfARateTheGreaterOnesCount) {
  std::vector<Cell> visits;
  for (const double rate : {5e9, 9e9, 9.1e9}) {
    visits.push_back(
        test::cell_with({.test = k_reduce_sum}, {rate, rate * 1.01, rate * 0.99, rate}));
  }
  const Cell cell = merged(visits, 100);
  EXPECT_EQ(cell.status, CellStatus::ok) << cell.reason;
  EXPECT_EQ(cell.n, 8U);
  EXPECT_GT(cell.min, 8e9);
}

TEST(Merged, ABusyHalfOfTheTimeChangesNothing) {
  std::mt19937_64 engine(7);
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE(round);
    std::vector<Cell> visits;
    for (int v = 0; v < 6; ++v) {
      const double slowed = v % 2 == 0 ? 1 : 1.2 + static_cast<double>(engine() % 100) / 10;
      std::vector<double> samples;
      for (int i = 0; i < 20; ++i) {
        samples.push_back(slowed * (1 + 0.0001 * static_cast<double>(engine() % 100)));
      }
      visits.push_back(visit(samples));
    }
    std::shuffle(visits.begin(), visits.end(), engine);
    const Cell cell = merged(visits, 100);
    EXPECT_NEAR(cell.p50, 1.005, 0.005);
    EXPECT_EQ(cell.status, CellStatus::ok) << cell.reason;
  }
}

TEST(Merged, FewOrVariedSamplesAreNoisy) {
  EXPECT_THAT(merged(std::vector{visit({1, 1}), visit({1, 1}), visit({1, 1})}, 100).reason,
              testing::HasSubstr("only 4 samples"));
  const Cell varied = merged(std::vector{visit({1, 1.3, 1, 1.3, 1, 1.3, 1, 1.3})}, 100);
  EXPECT_EQ(varied.status, CellStatus::noisy);
  EXPECT_THAT(varied.reason, testing::HasSubstr("samples vary"));
  // What a visit itself found doubtful stays so.
  Cell doubtful = visit({1, 1, 1, 1, 1});
  doubtful.status = CellStatus::noisy;
  doubtful.reason = "on another node";
  const Cell cell = merged(std::vector{visit({1, 1, 1, 1, 1}), doubtful, visit({2})}, 100);
  EXPECT_EQ(cell.status, CellStatus::noisy);
  EXPECT_EQ(cell.reason, "on another node");
}

TEST(Merged, KeepsSamplesSpreadOverTheVisits) {
  const Cell cell = merged(std::vector{visit(std::vector<double>(500, 1.0))}, 100);
  EXPECT_EQ(cell.n, 100U);
  EXPECT_THAT(cell.reason, test::Says("500 samples"));
}

/// Cells whose visits take `first` seconds until half of them are over, then `then`.
RunResult changing(double first, double then) {
  Bench b;
  std::vector<CellPlan> plans = b.cells(4, 0.1);
  for (CellPlan& plan : plans) {
    plan.measure = [&](Cell& cell, Seconds) {
      cell.samples = std::vector<double>(5, b.order.size() < 8 ? first : then);
      b.order.emplace_back(0, 0);
      summarize_cell(cell);
    };
  }
  return b.run({Bench::campaign(plans)});
}

TEST(Campaign, AChangeBetweenThePassesIsDrift) {
  const RunResult slower = changing(10, 12);
  ASSERT_TRUE(slower.drift);
  EXPECT_NEAR(*slower.drift, 0.2, 1e-12);
  ASSERT_EQ(slower.warnings.size(), 1U);
  EXPECT_THAT(slower.warnings[0], test::Says("took 20 % longer"));
  EXPECT_EQ(by_number(slower).at(2).p50, 10); // of the quieter half
  const RunResult faster = changing(12, 9);
  EXPECT_NEAR(faster.drift.value_or(0), -0.25, 1e-12);
  ASSERT_EQ(faster.warnings.size(), 1U);
  EXPECT_THAT(faster.warnings[0], test::Says("took 25 % less time"));
}

TEST(Campaign, WhatOthersDidIsSaid) {
  Bench b;
  b.guard.disturbance = "other processes used 1.00 of 2 processors";
  const RunResult result = b.run({Bench::campaign(b.cells(2, 0.1))});
  EXPECT_EQ(result.count(CellStatus::ok), 2U);
  ASSERT_EQ(result.warnings.size(), 1U);
  EXPECT_THAT(result.warnings[0], testing::StartsWith(b.guard.disturbance));
}

TEST(Campaign, ACellThatFailsIsNotVisitedAgain) {
  Bench b;
  std::vector<CellPlan> plans = b.cells(2, 0.1);
  int visits = 0;
  plans[0].measure = [&](Cell&, Seconds) {
    ++visits;
    fail(ErrorKind::operation, "broken");
  };
  const auto cells = by_number(b.run({Bench::campaign(plans)}));
  EXPECT_EQ(visits, 1);
  EXPECT_EQ(cells.at(1).status, CellStatus::failed);
  EXPECT_EQ(cells.at(2).status, CellStatus::ok);
}

TEST(Campaign, OneThatMeasuresWhenItBeginsIsVisitedOnceAPass) {
  Bench b;
  Campaign campaign = Bench::campaign({b.cell(1, 0)});
  int begun = 0;
  campaign.begin = [&] { ++begun; };
  campaign.once = true;
  static_cast<void>(b.run({campaign}));
  EXPECT_EQ(begun, 2);
  EXPECT_EQ(b.order.size(), 2U);
}

TEST(Campaign, OneOfFewerPassesIsInTheFirst) {
  Bench b;
  std::vector<Campaign> campaigns{Bench::campaign({b.cell(1, 3)}), Bench::campaign({b.cell(2, 1)})};
  campaigns[0].once = true;
  campaigns[0].passes = 1;
  EXPECT_DOUBLE_EQ(estimate(campaigns, std::nullopt).count(), (1 * 3 + 4 * 1) / 0.6);
  static_cast<void>(b.run(campaigns));
  std::vector<std::uint64_t> order;
  for (const auto& [number, seconds] : b.order) {
    order.push_back(number);
  }
  EXPECT_EQ(order, (std::vector<std::uint64_t>{1, 2, 2, 2, 2}));
}

TEST(Campaign, EstimateIsWhatAllVisitsTakeOrTheBudget) {
  Bench b;
  std::vector<Campaign> campaigns{Bench::campaign({b.cell(1, 2), b.cell(2, 3)}),
                                  Bench::campaign({b.cell(3, 4)})};
  EXPECT_DOUBLE_EQ(estimate(campaigns, std::nullopt).count(), 4 * 9 / 0.6);
  campaigns[0].plans[1].first = Seconds(7); // once
  EXPECT_DOUBLE_EQ(estimate(campaigns, std::nullopt).count(), 4 * 9 / 0.6 + 7);
  EXPECT_DOUBLE_EQ(estimate(campaigns, Seconds(5)).count(), 5);
  EXPECT_TRUE(b.order.empty());
}

} // namespace
} // namespace reckon
