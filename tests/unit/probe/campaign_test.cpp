// SPDX-License-Identifier: Apache-2.0
#include "probe/campaign.hpp"

#include "core/error.hpp"
#include "documents/cells.hpp"
#include "fakes.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

namespace reckon {
namespace {

using test::FakeClock;
using test::FakeGuard;

/// A campaign of cells that take exactly the time they are given, and record it.
struct Bench {
  FakeClock clock;
  FakeGuard guard;
  RunnerOptions options;
  std::vector<std::pair<std::uint64_t, double>> order; ///< bytes (as a name) and seconds given

  Bench() { options.wait_for_quiet = Seconds(0); }

  CellPlan cell(std::uint64_t number, double least, double wanted, int rank = 0) {
    return {.key = {.test = k_host_memcpy, .bytes = number},
            .least = Seconds(least),
            .wanted = Seconds(wanted),
            .rank = rank,
            .measure = [this, number](Cell& measured, Seconds budget) {
              order.emplace_back(number, budget.count());
              clock.advance(budget);
              measured.samples = {1.0, 1.0, 1.0};
              summarize_cell(measured);
            }};
  }
  /// Cells 1 to `count`.
  std::vector<CellPlan> cells(std::uint64_t count, double least, double wanted) {
    std::vector<CellPlan> plans;
    for (std::uint64_t i = 1; i <= count; ++i) {
      plans.push_back(cell(i, least, wanted));
    }
    return plans;
  }
  Campaign campaign(std::vector<CellPlan> plans, double share = 1) {
    return {.name = "fake campaign", .share = share, .plan = [plans = std::move(plans)] {
              return plans;
            }};
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

TEST(Campaign, EveryCellGetsWhatItWantsWhenThereIsTime) {
  Bench b;
  b.options.budget = Seconds(100);
  const RunResult result = b.run({b.campaign({b.cell(1, 1, 2), b.cell(2, 1, 3)})});
  EXPECT_EQ(result.count(CellStatus::ok), 2U);
  std::sort(b.order.begin(), b.order.end());
  ASSERT_GE(b.order.size(), 2U);
  std::map<std::uint64_t, double> first;
  for (const auto& [number, seconds] : b.order) {
    first[number] = std::max(first[number], seconds);
  }
  EXPECT_DOUBLE_EQ(first[1], 2);
  EXPECT_DOUBLE_EQ(first[2], 3);
}

TEST(Campaign, ScarceTimeIsSharedOutAboveTheLeast) {
  Bench b;
  b.options.budget = Seconds(10);
  // 9.7 s remain beside the reference's 3 %. Least 1 + 1, wanted 9 + 9: each gets
  // 1 + (9.7 - 2) / (18 - 2) * 8 = 4.85 s.
  const RunResult result = b.run({b.campaign({b.cell(1, 1, 9), b.cell(2, 1, 9)})});
  ASSERT_EQ(result.count(CellStatus::ok), 2U);
  EXPECT_NEAR(b.order[0].second, 4.85, 1e-9);
  EXPECT_NEAR(b.order[1].second, 4.85, 1e-9);
}

TEST(Campaign, WithoutTimeTheLowestRanksAreMeasuredAndTheRestIsMarked) {
  Bench b;
  b.options.budget = Seconds(10);
  std::vector<CellPlan> plans;
  for (std::uint64_t i = 1; i <= 8; ++i) {
    plans.push_back(b.cell(i, 2, 2, static_cast<int>(8 - i))); // cell 8 has the lowest rank
  }
  // 9.7 s hold four cells of 2 s.
  const RunResult result = b.run({b.campaign(plans)});
  const auto cells = by_number(result);
  ASSERT_EQ(cells.size(), 8U);
  for (std::uint64_t i = 1; i <= 8; ++i) {
    const Cell& cell = cells.at(i);
    EXPECT_EQ(cell.status, i >= 5 ? CellStatus::ok : CellStatus::skipped) << i;
    if (i < 5) {
      EXPECT_EQ(cell.reason, "no time left of the budget of 10 s");
      EXPECT_EQ(cell.n, 0U);
    }
  }
  EXPECT_LE(result.took, Seconds(10.5)); // the reference may exceed by its own least time
}

TEST(Campaign, ACellThatOverrunsCostsTheLaterOnesNotTheSweep) {
  Bench b;
  b.options.budget = Seconds(10);
  std::vector<CellPlan> plans = b.cells(3, 1, 1);
  for (CellPlan& plan : plans) {
    plan.measure = [&b](Cell& cell, Seconds) {
      b.clock.advance(Seconds(6)); // six times what it was given
      cell.samples = {1};
      summarize_cell(cell);
    };
  }
  const RunResult result = b.run({b.campaign(plans)});
  EXPECT_EQ(result.count(CellStatus::ok), 2U); // after 12 s nothing more begins
  EXPECT_EQ(result.count(CellStatus::skipped), 1U);
}

TEST(Campaign, TimeGoesByShareAndWhatIsLeftOverGoesOn) {
  Bench b;
  b.options.budget = Seconds(100);
  // Of 97 s, shares 1 : 1 : 2 give 24.25, 24.25 and 48.5 s. The first wants 4.25 s only; 92.75 s
  // remain, of which the second gets a third; it wants it all. The third gets the rest.
  static_cast<void>(b.run({b.campaign({b.cell(1, 1, 4.25)}, 1), b.campaign({b.cell(2, 1, 900)}, 1),
                           b.campaign({b.cell(3, 1, 900)}, 2)}));
  ASSERT_GE(b.order.size(), 3U);
  EXPECT_NEAR(b.order[0].second, 4.25, 1e-9);
  EXPECT_NEAR(b.order[1].second, 92.75 / 3, 1e-9);
  EXPECT_NEAR(b.order[2].second, 92.75 * 2 / 3, 1e-9);
}

TEST(Campaign, FailuresAreDataAndStopNothing) {
  Bench b;
  std::vector<CellPlan> plans = b.cells(4, 0.1, 0.1);
  plans[0].measure = [](Cell& cell, Seconds) {
    cell.samples = {1}; // half done when it breaks
    fail(ErrorKind::operation, "write: the wire broke");
  };
  plans[1].measure = [](Cell&, Seconds) { fail(ErrorKind::unavailable, "no such device"); };
  plans[2].measure = [](Cell&, Seconds) { throw std::bad_alloc(); };
  const RunResult result = b.run({b.campaign(plans)});
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
  Campaign bad = b.campaign(b.cells(2, 0.1, 0.1));
  bad.begin = [] { fail(ErrorKind::operation, "mmap: no memory"); };
  bool ended = false;
  bad.end = [&] { ended = true; };
  const RunResult result = b.run({bad, b.campaign({b.cell(3, 0.1, 0.1)})});
  const auto cells = by_number(result);
  EXPECT_EQ(cells.at(1).status, CellStatus::failed);
  EXPECT_EQ(cells.at(2).reason, "mmap: no memory");
  EXPECT_EQ(cells.at(3).status, CellStatus::ok);
  EXPECT_FALSE(ended);
}

TEST(Campaign, AnInterruptKeepsWhatWasMeasuredAndMarksTheRest) {
  Bench b;
  b.options.interrupted = [&] { return b.order.size() >= 2; };
  Campaign never = b.campaign({b.cell(7, 0.1, 0.1)});
  bool begun = false;
  never.begin = [&] { begun = true; };
  const RunResult result = b.run({b.campaign(b.cells(6, 0.1, 0.1)), never});
  EXPECT_TRUE(result.interrupted);
  EXPECT_EQ(result.count(CellStatus::ok), 2U);
  EXPECT_EQ(result.count(CellStatus::skipped), 5U);
  for (const Cell& cell : result.cells) {
    EXPECT_TRUE(cell.status == CellStatus::ok || cell.reason == "interrupted") << cell.reason;
  }
  EXPECT_FALSE(begun);
  EXPECT_FALSE(result.drift); // nothing is measured again after an interrupt
}

TEST(Campaign, OrderIsDrawnFromTheSeed) {
  const auto order_with = [](std::uint64_t seed) {
    Bench b;
    b.options.seed = seed;
    static_cast<void>(b.run({b.campaign(b.cells(20, 0.1, 0.1))}));
    std::vector<std::uint64_t> order;
    for (const auto& [number, seconds] : b.order) {
      order.push_back(number);
    }
    order.resize(20); // the reference comes after
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

TEST(Campaign, TheReferenceCellShowsDrift) {
  Bench b;
  double value = 10;
  std::vector<CellPlan> plans = b.cells(3, 0.1, 0.1);
  plans[1].reference = true;
  plans[1].measure = [&](Cell& cell, Seconds) {
    cell.samples = {value};
    summarize_cell(cell);
    value = 8;
  };
  const RunResult result = b.run({b.campaign(plans)});
  ASSERT_TRUE(result.drift);
  EXPECT_EQ(result.drift->key.bytes, 2U);
  EXPECT_DOUBLE_EQ(result.drift->first, 10);
  EXPECT_DOUBLE_EQ(result.drift->last, 8);
  EXPECT_DOUBLE_EQ(result.drift->relative(), -0.2);
  ASSERT_EQ(result.warnings.size(), 1U); // 20 % is above the limit of 10 %
  EXPECT_NE(result.warnings[0].find("-20 %"), std::string::npos) << result.warnings[0];
  EXPECT_EQ(by_number(result).at(2).p50, 10); // the first measurement stays in the profile
}

TEST(Campaign, DisturbedCellsAreNoisyWithTheReason) {
  Bench b;
  const Disturbance d{.noticeable = true, .text = "other processes used 1.00 of 2 processors"};
  b.guard.disturbances = {d};
  const RunResult result = b.run({b.campaign(b.cells(2, 0.1, 0.1))});
  EXPECT_EQ(result.count(CellStatus::noisy), 1U);
  EXPECT_EQ(result.cells[0].status, CellStatus::noisy);
  EXPECT_EQ(result.cells[0].reason, d.text);
  EXPECT_TRUE(result.cells[0].has_value());
}

TEST(Campaign, WaitingOfACrowdIsNoDisturbance) {
  Bench b;
  b.options.budget = Seconds(100);
  const Disturbance waiting{true, true, "threads waited 50 % of the time for a processor"};
  Disturbance others = waiting;
  others.only_waited = false;
  CellPlan crowd = b.cell(1, 1, 1);
  crowd.crowded = true;
  for (const Disturbance& d : {waiting, others}) {
    b.guard.disturbances = {d, d};
    const auto cells = by_number(b.run({b.campaign({crowd, b.cell(2, 1, 1)})}));
    EXPECT_EQ(cells.at(1).status, d.only_waited ? CellStatus::ok : CellStatus::noisy);
    EXPECT_EQ(cells.at(2).status, CellStatus::noisy);
  }
}

TEST(Campaign, WaitsForQuietBeforeEachCampaignWithinLimits) {
  Bench b;
  b.options.budget = Seconds(4);
  b.options.wait_for_quiet = Seconds(0.5);
  static_cast<void>(b.run({b.campaign({b.cell(1, 0.1, 0.1)}), b.campaign({b.cell(2, 0.1, 0.1)})}));
  EXPECT_EQ(b.guard.waits, 2);
  EXPECT_DOUBLE_EQ(b.guard.longest_wait.count(), 0.2); // a twentieth of the budget
}

TEST(Campaign, WaitingIsBoundedInAll) {
  class BusyGuard final : public Guard {
  public:
    explicit BusyGuard(FakeClock& clock) : m_clock(clock) {}
    void begin() override {}
    [[nodiscard]] Disturbance end() override { return {}; }
    bool wait_for_quiet(Seconds limit) override {
      m_clock.advance(limit);
      return false;
    }

  private:
    FakeClock& m_clock;
  };
  Bench b;
  BusyGuard guard(b.clock);
  b.options.budget = Seconds(10);
  b.options.wait_for_quiet = Seconds(0.3);
  std::vector<Campaign> campaigns;
  for (std::uint64_t i = 1; i <= 10; ++i) {
    campaigns.push_back(b.campaign({b.cell(i, 0.1, 0.1)}));
  }
  // 0.3 + 0.2 s of waiting, 10 x 0.1 s of measuring, 0.1 s for the reference.
  const RunResult result = run_campaigns(campaigns, b.options, b.clock, guard);
  EXPECT_NEAR(result.took.count(), 1.6, 1e-9);
}

TEST(Campaign, WhatIsNotAskedForTakesNoTime) {
  Bench b;
  b.options.budget = Seconds(10);
  // The first and the last have no cells, as under --only: their shares count for nothing.
  static_cast<void>(
      b.run({b.campaign({}, 5), b.campaign({b.cell(1, 1, 900)}, 1), b.campaign({}, 5)}));
  EXPECT_NEAR(b.order[0].second, 9.7, 1e-9);
}

TEST(Campaign, PreparationsAreAtTheCostOfAll) {
  Bench b;
  b.options.budget = Seconds(10);
  Campaign slow = b.campaign({b.cell(1, 0.5, 900)}, 1);
  slow.begin = [&] { b.clock.advance(Seconds(5.7)); };
  // Half of the 4 s that are left; its own half of 9.7 s would be gone already.
  static_cast<void>(b.run({slow, b.campaign({b.cell(2, 0.5, 900)}, 1)}));
  EXPECT_NEAR(b.order[0].second, 2, 1e-9);
  EXPECT_NEAR(b.order[1].second, 2, 1e-9);
}

TEST(Campaign, RefinementGoesOnUntilNothingIsNewOrTimeIsOver) {
  Bench b;
  b.options.budget = Seconds(10);
  Campaign c = b.campaign({b.cell(1, 1, 1)});
  std::size_t rounds = 0;
  c.more = [&](const std::vector<Cell>& measured) -> std::vector<CellPlan> {
    EXPECT_EQ(measured.size(), rounds + 1); // all that was measured so far, refinements too
    ++rounds;
    return rounds > 3 ? std::vector<CellPlan>{} : std::vector<CellPlan>{b.cell(1 + rounds, 1, 1)};
  };
  const RunResult done = b.run({c});
  EXPECT_EQ(done.count(CellStatus::ok), 4U);

  Bench endless;
  endless.options.budget = Seconds(10);
  c = endless.campaign({endless.cell(1, 1, 1)});
  std::uint64_t number = 1;
  c.more = [&](const std::vector<Cell>&) -> std::vector<CellPlan> {
    return {endless.cell(++number, 1, 1)};
  };
  const RunResult cut = endless.run({c});
  EXPECT_EQ(cut.count(CellStatus::skipped), 0U); // what was never begun is not mentioned
  EXPECT_EQ(cut.count(CellStatus::ok), 9U);      // 9.7 s hold nine cells of 1 s
}

TEST(Campaign, CellsThemselvesGoBeforeTheirRefinement) {
  Bench b;
  b.options.budget = Seconds(10);
  // 9.7 s, of which 30 % would be refinement's: but the cells fill all of it.
  Campaign c = b.campaign(b.cells(9, 1, 1));
  c.more = [&](const std::vector<Cell>&) -> std::vector<CellPlan> { return {b.cell(100, 1, 1)}; };
  const RunResult result = b.run({c});
  EXPECT_EQ(result.count(CellStatus::ok), 9U);
  EXPECT_FALSE(by_number(result).contains(100));
}

TEST(Campaign, RefinementDoesNotMeasureACellTwice) {
  Bench b;
  b.options.budget = Seconds(10);
  Campaign c = b.campaign({b.cell(1, 1, 1), b.cell(2, 50, 50)}); // 2 never fits
  int rounds = 0;
  c.more = [&](const std::vector<Cell>&) -> std::vector<CellPlan> {
    return ++rounds > 2 ? std::vector<CellPlan>{}
                        : std::vector<CellPlan>{b.cell(1, 1, 1), b.cell(2, 1, 1), b.cell(3, 1, 1)};
  };
  const auto cells = by_number(b.run({c})); // fails on doubles
  EXPECT_EQ(cells.at(2).status, CellStatus::skipped);
  EXPECT_EQ(cells.at(3).status, CellStatus::ok);
}

TEST(Campaign, ADisturbedReferenceProvesNoDrift) {
  Bench b;
  const Disturbance d{.noticeable = true, .text = "busy"};
  double value = 10;
  CellPlan plan = b.cell(1, 0.1, 0.1);
  plan.measure = [&](Cell& cell, Seconds) {
    cell.samples = {value};
    summarize_cell(cell);
    value = 1;
  };
  b.guard.disturbances = {{}, d};
  const RunResult result = b.run({b.campaign({plan})});
  EXPECT_TRUE(result.drift);
  EXPECT_TRUE(result.warnings.empty());
}

TEST(Campaign, EstimateIsWhatAllCellsWantWithinTheBudget) {
  Bench b;
  const std::vector<Campaign> campaigns{b.campaign({b.cell(1, 1, 2), b.cell(2, 1, 3)}),
                                        b.campaign({b.cell(3, 1, 4)})};
  EXPECT_DOUBLE_EQ(estimate(campaigns, Seconds(30)).count(), 9);
  EXPECT_DOUBLE_EQ(estimate(campaigns, Seconds(5)).count(), 5);
  EXPECT_TRUE(b.order.empty());
}

TEST(CampaignProperty, EveryCellEndsUpExactlyOnceAndTheBudgetHolds) {
  constexpr std::uint64_t k_seed = 20260401;
  std::mt19937_64 engine(k_seed);
  const auto below = [&](std::uint64_t n) { return engine() % n; };
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE(testing::Message() << "seed " << k_seed << " round " << round);
    Bench b;
    b.options.budget = Seconds(0.5 + 0.1 * static_cast<double>(below(200)));
    b.options.seed = engine();
    std::vector<Campaign> campaigns;
    std::uint64_t number = 0;
    double longest = 0;
    for (std::uint64_t c = 0; c <= below(4); ++c) {
      std::vector<CellPlan> plans;
      for (std::uint64_t i = 0; i < below(12); ++i) {
        const double least = 0.05 + 0.01 * static_cast<double>(below(100));
        longest = std::max(longest, least);
        plans.push_back(b.cell(++number, least, least * static_cast<double>(1 + below(5)),
                               static_cast<int>(below(3))));
      }
      campaigns.push_back(b.campaign(plans, 1.0 + static_cast<double>(below(3))));
    }
    const Seconds start = b.clock.now();
    const RunResult result = b.run(campaigns);
    EXPECT_EQ(by_number(result).size(), number);
    EXPECT_EQ(result.cells.size(), number);
    EXPECT_EQ(result.count(CellStatus::ok) + result.count(CellStatus::skipped), number);
    // Only the reference cell, measured again, may go beyond: by its least time.
    EXPECT_LE((b.clock.now() - start).count(), b.options.budget.count() + longest + 1e-9);
  }
}

} // namespace
} // namespace reckon
