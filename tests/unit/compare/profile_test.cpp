// SPDX-License-Identifier: Apache-2.0
#include "compare/comparison.hpp"
#include "find.hpp"
#include "support/example_documents.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <vector>

namespace reckon {
namespace {

using namespace testing;
using namespace test;

/// `n` distinct values around `centre`, evenly over +- 1 %.
std::vector<double> around(double centre, int n) {
  std::vector<double> out;
  for (int i = 0; i < n; ++i) {
    out.push_back(centre * (0.99 + 0.02 * i / (n - 1)));
  }
  return out;
}

Cell cell(const std::string& test, const std::string& unit, std::vector<double> samples) {
  Cell c;
  c.key.test = test;
  c.key.from = "m0";
  c.key.bytes = 64;
  c.unit = unit;
  c.samples = std::move(samples);
  if (unit == "bytes_per_second") {
    c.bytes_convention = "payload";
  }
  summarize_cell(c);
  return c;
}

Profile with_cells(std::vector<Cell> cells) {
  Profile p = example_profile();
  p.cells = std::move(cells);
  return p;
}

Comparison compare_cell(const Cell& a, const Cell& b, const CompareOptions& options = {}) {
  return compare(with_cells({a}), with_cells({b}), options);
}

TEST(CompareProfiles, HasSeparateTolerancesForLatencyAndBandwidth) {
  // 10 samples against 10 that do not overlap: p = 2 / C(20, 10) = 1.1e-5. Spread 0.5 %, of which
  // three are below both tolerances. 10 % is beyond 5 % and within 15 %.
  const auto slower_by_a_tenth = [](const std::string& unit) {
    return compare_cell(cell("x", unit, around(100, 10)), cell("x", unit, around(110, 10)));
  };
  EXPECT_TRUE(slower_by_a_tenth("seconds").same());
  const Comparison c = slower_by_a_tenth("bytes_per_second");
  ASSERT_THAT(c.differences, SizeIs(1));
  EXPECT_EQ(c.differences[0].kind, "bandwidth");
  EXPECT_EQ(c.differences[0].group, "x");
  EXPECT_EQ(c.differences[0].effect, Effect::better);
  EXPECT_NEAR(c.differences[0].change.value(), 0.1, 1e-9);
  EXPECT_NEAR(c.differences[0].p_value.value(), 2.0 / 184756, 1e-9);
}

TEST(CompareProfiles, MeasuresTheToleranceFromTheSmallerValue) {
  // 100 -> 116 is 16 % up but only 13.8 % down; both directions must say the same.
  const Cell a = cell("x", "seconds", around(100, 10));
  const Cell b = cell("x", "seconds", around(116, 10));
  EXPECT_FALSE(compare_cell(a, b).same());
  EXPECT_FALSE(compare_cell(b, a).same());
  EXPECT_EQ(compare_cell(a, b).differences[0].effect, Effect::worse);
  EXPECT_EQ(compare_cell(b, a).differences[0].effect, Effect::better);
}

TEST(CompareProfiles, TakesALargeShiftOfOverlappingSamplesForNoise) {
  // Medians 100 and 125, but the samples are mixed: 4 against 4 alternating has
  // p = 48/70 (all with |U - 8| >= 2), far above 0.05.
  const Cell a = cell("x", "seconds", {50, 90, 110, 180});
  const Cell b = cell("x", "seconds", {60, 100, 150, 190});
  const Comparison c = compare_cell(a, b);
  EXPECT_TRUE(c.same());
  EXPECT_THAT(c.undecided, IsEmpty());
}

TEST(CompareProfiles, LeavesTooFewSamplesUndecided) {
  const Comparison c =
      compare_cell(cell("x", "seconds", around(100, 3)), cell("x", "seconds", around(200, 3)));
  EXPECT_TRUE(c.same());
  ASSERT_THAT(c.undecided, SizeIs(1));
  EXPECT_THAT(c.undecided[0].note, HasSubstr("too few samples"));
  EXPECT_FALSE(c.undecided[0].counts);
}

TEST(CompareProfiles, LeavesAShiftOfLessThanThreeSpreadsUndecided) {
  // 20 samples over +- 20 %: spread 10 %, three of them 30 %. A shift of 28 % separates the ranks
  // well enough (p below 1e-3) but two runs may differ by that.
  std::vector<double> a;
  std::vector<double> b;
  for (int i = 0; i < 20; ++i) {
    a.push_back(80 + 40.0 * i / 19);
    b.push_back(1.28 * a.back());
  }
  const Comparison c = compare_cell(cell("x", "seconds", a), cell("x", "seconds", b));
  EXPECT_TRUE(c.same());
  ASSERT_THAT(c.undecided, SizeIs(1));
  EXPECT_THAT(c.undecided[0].note, HasSubstr("3 spreads"));
  EXPECT_FALSE(
      compare_cell(cell("x", "seconds", a), cell("x", "seconds", b), {.least_spreads = 1}).same());
}

TEST(CompareProfiles, DoesNotBelieveOneWeakTestAmongMany) {
  // 4 against 4: p = 2/70 = 0.0286 at best. Alone it is a difference; among 40 cells, of which the
  // others did not change (p = 1), the correction makes it min(1, 0.0286 * 40) = 1.
  const Cell changed_before = cell("x", "seconds", around(100, 4));
  const Cell changed_after = cell("x", "seconds", around(200, 4));
  EXPECT_FALSE(compare_cell(changed_before, changed_after).same());
  std::vector<Cell> before{changed_before};
  std::vector<Cell> after{changed_after};
  for (int i = 1; i < 40; ++i) {
    before.push_back(cell(fmt::format("same{}", i), "seconds", around(100, 4)));
    after.push_back(before.back());
  }
  const Comparison c = compare(with_cells(before), with_cells(after));
  EXPECT_TRUE(c.same());
  ASSERT_THAT(c.undecided, SizeIs(1));
  EXPECT_THAT(c.undecided[0].note, HasSubstr("among 40 tests"));
  EXPECT_NEAR(c.undecided[0].p_value.value(), 1, 1e-12);
}

TEST(CompareProfiles, BelievesManyWeakTestsThatAgree) {
  // All 40 doubled: each p = 2/70, and the rule leaves equal p-values as they are.
  std::vector<Cell> before;
  std::vector<Cell> after;
  for (int i = 0; i < 40; ++i) {
    before.push_back(cell(fmt::format("x{}", i), "seconds", around(100, 4)));
    after.push_back(cell(fmt::format("x{}", i), "seconds", around(200, 4)));
  }
  EXPECT_THAT(compare(with_cells(before), with_cells(after)).differences, SizeIs(40));
}

TEST(CompareProfiles, ReportsACellThatIsMissingOrExtra) {
  const Cell x = cell("x", "seconds", around(100, 10));
  const Cell y = cell("y", "seconds", around(100, 10));
  const Comparison missing = compare(with_cells({x, y}), with_cells({x}));
  ASSERT_THAT(missing.differences, SizeIs(1));
  EXPECT_EQ(missing.differences[0].where, y.key.text());
  EXPECT_TRUE(missing.differences[0].after.absent());
  EXPECT_EQ(missing.differences[0].effect, Effect::worse);
  EXPECT_EQ(compare(with_cells({x}), with_cells({x, y})).differences[0].effect, Effect::better);
}

TEST(CompareProfiles, ReportsACellThatNoLongerHasAValue) {
  const Cell a = cell("x", "seconds", around(100, 10));
  Cell b = a;
  b.status = CellStatus::failed;
  b.reason = "fi_write: Connection refused";
  b.samples.clear();
  const Comparison c = compare_cell(a, b);
  ASSERT_THAT(c.differences, SizeIs(1));
  EXPECT_EQ(c.differences[0].kind, "status");
  EXPECT_THAT(c.differences[0].after.text, HasSubstr("Connection refused"));
  EXPECT_EQ(c.differences[0].effect, Effect::worse);
  Cell other_reason = b;
  other_reason.reason = "fi_write: Timed out";
  EXPECT_TRUE(compare_cell(b, other_reason).same());
}

TEST(CompareProfiles, DoesNotCallNoisyADifference) {
  const Cell a = cell("x", "seconds", around(100, 10));
  Cell b = a;
  b.status = CellStatus::noisy;
  b.reason = "another process";
  EXPECT_TRUE(compare_cell(a, b).same());
}

TEST(CompareProfiles, BelievesANoisyCellOnlyBeyondAFactorOfTwo) {
  const Cell a = cell("x", "seconds", around(100, 10));
  for (const double factor : {1.9, 2.1}) {
    Cell b = cell("x", "seconds", around(100 * factor, 10));
    EXPECT_FALSE(compare_cell(a, b).same());
    b.status = CellStatus::noisy;
    b.reason = "another process";
    const Comparison c = compare_cell(a, b);
    EXPECT_EQ(c.same(), factor < 2);
    EXPECT_EQ(c.undecided.size(), factor < 2 ? 1U : 0U);
    EXPECT_EQ(compare_cell(b, a).same(), factor < 2);
  }
}

TEST(CompareProfiles, DoesNotMindThatACurveWasRefinedAtOtherSizes) {
  const auto at_size = [](std::uint64_t bytes) {
    Cell c = cell("x", "seconds", around(static_cast<double>(bytes), 10));
    c.key.bytes = bytes;
    return c;
  };
  const Profile plain = with_cells({at_size(8), at_size(64), at_size(512)});
  const Profile refined = with_cells({at_size(8), at_size(24), at_size(64), at_size(512)});
  EXPECT_THAT(compare(plain, refined).differences, IsEmpty());
  EXPECT_THAT(compare(refined, plain).differences, IsEmpty());
  // Beyond its ends the curve did become longer.
  const Profile longer = with_cells({at_size(8), at_size(64), at_size(512), at_size(4096)});
  EXPECT_THAT(compare(plain, longer).differences, SizeIs(1));
  EXPECT_THAT(compare(longer, plain).differences, SizeIs(1));
  // Two sizes are no curve.
  const Profile two = with_cells({at_size(8), at_size(512)});
  EXPECT_THAT(compare(two, plain).differences, SizeIs(1));
}

TEST(CompareProfiles, TakesAnyChangeOfAPublishedNumberForOne) {
  Cell a = cell("x", "bytes_per_second", {});
  a.status = CellStatus::published;
  a.p50 = 1e9;
  Cell b = a;
  b.p50 = 1.01e9;
  EXPECT_FALSE(compare_cell(a, b).same());
  EXPECT_TRUE(compare_cell(a, b, {.exact_tolerance = 0.05}).same());
}

TEST(CompareProfiles, DoesNotCompareApplesWithPears) {
  const Cell a = cell("x", "bytes_per_second", around(1e9, 10));
  Cell b = a;
  b.bytes_convention = "stream";
  ASSERT_THAT(compare_cell(a, b).differences, SizeIs(1));
  EXPECT_EQ(compare_cell(a, b).differences[0].kind, "meaning");
}

TEST(CompareProfiles, ComparesALinkThatWasTunedAnotherWay) {
  Cell a = cell("x", "bytes_per_second", around(1e9, 10));
  a.key.in_flight = 4;
  Cell b = cell("x", "bytes_per_second", around(1e9, 10));
  b.key.in_flight = 8;
  EXPECT_TRUE(compare_cell(a, b).same());
  b.samples = around(2e9, 10);
  summarize_cell(b);
  const Comparison c = compare_cell(a, b);
  ASSERT_THAT(c.differences, SizeIs(1));
  EXPECT_EQ(c.differences[0].kind, "bandwidth");
  EXPECT_THAT(c.differences[0].note, HasSubstr("4 and 8 writes in flight"));
  // With a second depth there is no telling which was meant for which.
  Cell other = a;
  other.key.in_flight = 2;
  EXPECT_THAT(compare(with_cells({a, other}), with_cells({b})).differences, SizeIs(3));
}

TEST(CompareProfiles, WarnsWhenTheMachinesAreNotComparable) {
  Profile other = example_profile();
  other.fingerprint = "another";
  const Comparison c = compare(example_profile(), other);
  EXPECT_TRUE(c.same());
  EXPECT_THAT(c.warnings, ElementsAre(HasSubstr("different fingerprints")));
}

TEST(CompareProfiles, SeesALinkThatTrainedSlower) {
  Profile after = example_profile();
  after.topology.objects[3].link_bytes_per_second = 6.25e9;
  const Comparison c = compare(example_profile(), after);
  ASSERT_THAT(places(c), ElementsAre("topology/m0/nic0/link_bytes_per_second"));
  EXPECT_EQ(c.differences[0].effect, Effect::worse);
}

TEST(CompareProfiles, SeesObjectsAndMachinesThatComeAndGo) {
  Profile after = example_profile();
  after.topology.objects.pop_back();
  after.machines[0].count = 2;
  const Comparison c = compare(example_profile(), after);
  EXPECT_THAT(places(c), ElementsAre("machines/m0/count", "topology/m0/gpu1"));
  EXPECT_EQ(c.differences[1].before.text, "gpu");
}

TEST(CompareProfiles, NamesWhatElseChangedInTheContext) {
  Profile after = example_profile();
  after.context["kernel"] = "Linux 6.5";
  after.context["measured_at"] = "2030-01-01T00:00:00Z"; // is another every time
  const Comparison c = compare(example_profile(), after);
  EXPECT_TRUE(c.same());
  EXPECT_THAT(causes(c), ElementsAre("context kernel"));
}

} // namespace
} // namespace reckon
