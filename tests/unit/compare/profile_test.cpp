// SPDX-License-Identifier: Apache-2.0
#include "compare/comparison.hpp"
#include "find.hpp"
#include "support/example_documents.hpp"
#include "support/messages.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
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

/// Of one machine, m0.
Profile with_cells(std::vector<Cell> cells) {
  Profile p = example_profile();
  p.machines[0].members.clear();
  p.cells = std::move(cells);
  return p;
}

/// Four machines with a port each: groups as a probe makes them. A port of 100 that w2 has less of.
Profile cluster(const std::vector<std::vector<std::string>>& groups, double port_of_w2) {
  Profile p = example_profile();
  p.machines.clear();
  p.cells.clear();
  p.fits.clear();
  p.topology = {};
  const auto add = [&](const char* test, const std::string& from, const std::string& to,
                       double value, int n) {
    Cell c = cell(test, "bytes_per_second", around(value, n));
    c.key.from = from;
    c.key.to = to;
    p.cells.push_back(c);
  };
  std::vector<std::string> all;
  for (const std::vector<std::string>& members : groups) {
    const std::string id = fmt::format("m{}", p.machines.size());
    p.machines.push_back({.id = id,
                          .name = members.front() + ".." + members.back(),
                          .count = members.size(),
                          .cores = 2,
                          .members = members});
    p.topology.objects.push_back({.id = id});
    p.topology.objects.push_back(
        {.id = id + "/nic0", .kind = ObjectKind::nic, .parent = id, .pcie = PcieLink{16e9, 16}});
    const bool slow = std::find(members.begin(), members.end(), "w2") != members.end();
    add("port_bandwidth", id, "", slow ? port_of_w2 : 100, 20);
    add("reduce_sum", id, "", 50, 20);
    add("fabric_write", id, "m0", 90, 20);
    all.insert(all.end(), members.begin(), members.end());
  }
  for (const std::string& a : all) {
    for (const std::string& b : all) {
      if (a != b) {
        add("pair_bandwidth", a, b, a == "w2" || b == "w2" ? port_of_w2 : 100, 3);
      }
    }
  }
  return p;
}

Comparison compare_cell(const Cell& a, const Cell& b, const CompareOptions& options = {}) {
  return compare(with_cells({a}), with_cells({b}), options);
}

TEST(CompareProfiles, HasSeparateTolerancesForLatencyAndBandwidth) {
  // 10 samples against 10 that do not overlap: p = 2 / C(20, 10) = 1.1e-5. Spread 0.5 %, of which
  // three are below all tolerances.
  const auto slower = [](const std::string& test, const std::string& unit, double to) {
    return compare_cell(cell(test, unit, around(100, 10)), cell(test, unit, around(to, 10)));
  };
  EXPECT_TRUE(slower("pair_latency", "seconds", 110).same()); // 15 %
  EXPECT_FALSE(slower("pair_latency", "seconds", 117).same());
  EXPECT_TRUE(slower("x", "bytes_per_second", 117).same()); // of one machine: 20 %
  EXPECT_FALSE(slower("x", "seconds", 122).same());
  const Comparison c = slower("pair_bandwidth", "bytes_per_second", 110); // 5 %
  ASSERT_THAT(c.differences, SizeIs(1));
  EXPECT_EQ(c.differences[0].kind, "bandwidth");
  EXPECT_EQ(c.differences[0].group, "pair_bandwidth");
  EXPECT_EQ(c.differences[0].effect, Effect::better);
  EXPECT_NEAR(c.differences[0].change.value(), 0.1, 1e-9);
  EXPECT_NEAR(c.differences[0].p_value.value(), 2.0 / 184756, 1e-9);
}

TEST(CompareProfiles, MeasuresTheToleranceFromTheSmallerValue) {
  // 100 -> 116 is 16 % up but only 13.8 % down; both directions must say the same.
  const Cell a = cell("pair_latency", "seconds", around(100, 10));
  const Cell b = cell("pair_latency", "seconds", around(116, 10));
  EXPECT_FALSE(compare_cell(a, b).same());
  EXPECT_FALSE(compare_cell(b, a).same());
  EXPECT_EQ(compare_cell(a, b).differences[0].effect, Effect::worse);
  EXPECT_EQ(compare_cell(b, a).differences[0].effect, Effect::better);
}

TEST(CompareProfiles, TakesALargeShiftOfOverlappingSamplesForNoise) {
  // Medians 100 and 125, but the samples are mixed: 4 against 4 alternating has
  // p = 48/70 (all with |U - 8| >= 2), far above 0.05.
  const Cell a = cell("pair_latency", "seconds", {50, 90, 110, 180});
  const Cell b = cell("pair_latency", "seconds", {60, 100, 150, 190});
  const Comparison c = compare_cell(a, b);
  EXPECT_TRUE(c.same());
  EXPECT_THAT(c.undecided, IsEmpty());
  // It is said, though, for it is the largest that counts as none.
  ASSERT_TRUE(c.largest_within.has_value());
  EXPECT_THAT(c.largest_within->note, HasSubstr("perhaps by chance"));
}

TEST(CompareProfiles, LeavesTooFewSamplesUndecided) {
  // 101 ns in 300 samples, then 1.245 ms in 6: p is far below 0.001, but the probe ended early.
  const Cell before = cell("core_to_core_latency_cas", "seconds", around(101e-9, 300));
  const Cell after = cell("core_to_core_latency_cas", "seconds", around(1.245e-3, 6));
  const Comparison c = compare_cell(before, after);
  EXPECT_TRUE(c.same());
  EXPECT_FALSE(compare_cell(before, after, {.strict = true}).same());
  ASSERT_THAT(c.undecided, SizeIs(1));
  EXPECT_THAT(c.undecided[0].note, test::Says("test (6)"));
  EXPECT_FALSE(c.undecided[0].counts);
  const Cell ten = cell("core_to_core_latency_cas", "seconds", around(1.245e-3, 10));
  EXPECT_FALSE(compare_cell(before, ten).same());
}

TEST(CompareProfiles, TestsTheCellsOfAPairTogether) {
  // Three windows of each direction: 3 against 3 is at best p = 2 / C(6, 3) = 0.1, 6 against 6 is
  // 2 / C(12, 6) = 0.0022.
  const auto pair = [](double rate, const std::string& to, const std::string& direction) {
    Cell c = cell("pair_bandwidth", "bytes_per_second", around(rate, 3));
    c.key.to = to;
    c.key.direction = direction;
    return c;
  };
  const auto both = [&](double rate, const std::string& to) {
    return std::vector{pair(rate, to, "one_way"), pair(rate, to, "two_way")};
  };
  const Comparison c = compare(with_cells(both(100, "m0/nic0")), with_cells(both(60, "m0/nic0")));
  ASSERT_THAT(c.differences, SizeIs(2));
  EXPECT_NEAR(c.differences[0].p_value.value(), 2.0 / 924, 1e-9);
  EXPECT_THAT(c.differences[0].note, test::Says("cells"));
  // One alone, and two of different pairs, stay undecided.
  const auto one = [&](double rate) {
    return std::vector{pair(rate, "m0/nic0", "one_way"), pair(rate, "m0/gpu0", "one_way")};
  };
  EXPECT_THAT(compare(with_cells(one(100)), with_cells(one(60))).undecided, SizeIs(2));
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
  // Nor when only the later one varies so.
  EXPECT_TRUE(compare_cell(cell("x", "seconds", around(128, 20)), cell("x", "seconds", a)).same());
}

TEST(CompareProfiles, DoesNotBelieveOneWeakTestAmongMany) {
  // 4 against 4: p = 2/70 = 0.0286 at best. Alone it is a difference; among 40 cells, of which the
  // others did not change (p = 1), the correction makes it min(1, 0.0286 * 40) = 1.
  const Cell changed_before = cell("pair_latency", "seconds", around(100, 4));
  const Cell changed_after = cell("pair_latency", "seconds", around(200, 4));
  EXPECT_FALSE(compare_cell(changed_before, changed_after).same());
  std::vector<Cell> before{changed_before};
  std::vector<Cell> after{changed_after};
  for (int i = 1; i < 40; ++i) {
    before.push_back(changed_before);
    before.back().key.bytes += static_cast<std::uint64_t>(i);
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
    for (auto& [cells, time] : {std::pair(&before, 100), std::pair(&after, 200)}) {
      cells->push_back(cell("pair_latency", "seconds", around(time, 4)));
      cells->back().key.bytes += static_cast<std::uint64_t>(i);
    }
  }
  EXPECT_THAT(compare(with_cells(before), with_cells(after)).differences, SizeIs(40));
}

TEST(CompareProfiles, CountsWhatOnlyOneProbeMeasuredAndCallsItNoDifference) {
  const Cell x = cell("x", "seconds", around(100, 10));
  const Cell y = cell("y", "seconds", around(100, 10));
  Cell skipped = y;
  skipped.status = CellStatus::skipped;
  skipped.samples.clear();
  for (const Profile& after : {with_cells({x}), with_cells({x, skipped})}) {
    const Comparison lost = compare(with_cells({x, y}), after);
    EXPECT_TRUE(lost.same());
    EXPECT_THAT(lost.differences, IsEmpty());
    EXPECT_THAT(lost.only_before, ElementsAre(y.key.text()));
    EXPECT_THAT(lost.only_after, IsEmpty());
    EXPECT_FALSE(compare(with_cells({x, y}), after, {.strict = true}).same());
    EXPECT_THAT(compare(after, with_cells({x, y})).only_after, ElementsAre(y.key.text()));
    EXPECT_TRUE(compare(after, with_cells({x, y}), {.strict = true}).same());
  }
  // What was published nobody forgot to measure.
  Cell published = y;
  published.status = CellStatus::published;
  published.samples.clear();
  EXPECT_THAT(compare(with_cells({x, published}), with_cells({x})).differences, SizeIs(1));
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

TEST(CompareProfiles, BelievesANoisyCellBeyondAQuarter) {
  const auto noisy = [](double value) {
    Cell c = cell("x", "bytes_per_second", around(value, 20));
    c.status = CellStatus::noisy;
    c.reason = "another process";
    return c;
  };
  // 25 % of the smaller one: from 100 down to 80, or up to 125.
  EXPECT_TRUE(compare_cell(noisy(100), noisy(81)).same());
  EXPECT_FALSE(compare_cell(noisy(100), noisy(79)).same());
  EXPECT_FALSE(compare_cell(noisy(79), noisy(100)).same());
  // Half as fast with p < 0.001.
  const Comparison c = compare_cell(noisy(100), noisy(50));
  ASSERT_THAT(c.differences, SizeIs(1));
  EXPECT_EQ(c.differences[0].effect, Effect::worse);
  EXPECT_LT(c.differences[0].p_value.value(), 0.001);
}

TEST(CompareProfiles, TakesANoisyCellWhoseFastEndStayedForDisturbed) {
  // 20 samples: all at 100, then 14 of them at 50 while another program ran. Others only slow down,
  // so what the machine can do is where the fastest are.
  Cell quiet = cell("x", "bytes_per_second", around(100, 20));
  std::vector<double> samples = around(50, 14);
  const std::vector<double> fast = around(100, 6);
  samples.insert(samples.end(), fast.begin(), fast.end());
  Cell disturbed = cell("x", "bytes_per_second", samples);
  EXPECT_LT(disturbed.p50, 51);
  disturbed.status = CellStatus::noisy;
  disturbed.reason = "another process";
  for (const Comparison& c : {compare_cell(quiet, disturbed), compare_cell(disturbed, quiet)}) {
    EXPECT_TRUE(c.same());
    EXPECT_THAT(c.undecided, IsEmpty());
    ASSERT_TRUE(c.largest_within.has_value());
    EXPECT_THAT(c.largest_within->note, HasSubstr("fast end"));
  }
  // The same of times, where the fast end is the low one.
  std::vector<double> times = around(200, 14);
  times.insert(times.end(), fast.begin(), fast.end());
  Cell slow = cell("x", "seconds", times);
  slow.status = CellStatus::noisy;
  slow.reason = "another process";
  EXPECT_TRUE(compare_cell(cell("x", "seconds", around(100, 20)), slow).same());
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
  EXPECT_THAT(compare(plain, longer).only_after, SizeIs(1));
  EXPECT_THAT(compare(longer, plain).only_before, SizeIs(1));
  // Two sizes are no curve.
  const Profile two = with_cells({at_size(8), at_size(512)});
  EXPECT_THAT(compare(two, plain).only_after, SizeIs(1));
}

TEST(CompareProfiles, LeavesASizeThatIsAloneOnItsCurveUndecided) {
  // Sizes 8, 64, 512 and 4096; those of `slower` take twice as long.
  const char *test = "x", *from = "m0", *to = "m1";
  CellStatus status = CellStatus::noisy;
  const auto curve = [&](const std::vector<std::size_t>& slower) {
    std::vector<Cell> cells;
    for (std::size_t i = 0; i < 4; ++i) {
      const bool slow = std::find(slower.begin(), slower.end(), i) != slower.end();
      cells.push_back(cell(test, "seconds", around(slow ? 200 : 100, 20)));
      cells.back().key.from = from;
      cells.back().key.to = to;
      cells.back().key.bytes = 8U << (3 * i);
      cells.back().status = status;
      cells.back().reason = status == CellStatus::noisy ? "another process" : "";
    }
    return with_cells(cells);
  };
  for (const CellStatus s : {CellStatus::noisy, CellStatus::ok}) {
    status = s;
    for (const std::size_t i : {0U, 1U, 3U}) {
      const Comparison c = compare(curve({}), curve({i}));
      EXPECT_TRUE(c.same()) << i;
      ASSERT_THAT(c.undecided, SizeIs(1)) << i;
      EXPECT_THAT(c.undecided[0].note, HasSubstr("neighbouring sizes"));
    }
    EXPECT_THAT(compare(curve({}), curve({1, 2})).differences, SizeIs(2));
    EXPECT_THAT(compare(curve({0, 3}), curve({})).undecided, SizeIs(2));
    // One of them up and its neighbour down is no common change.
    EXPECT_THAT(compare(curve({1}), curve({2})).undecided, SizeIs(2));
  }
  // Between machines the largest may be the only one with the port's rate.
  test = "pair_write";
  EXPECT_THAT(compare(curve({}), curve({1})).undecided, SizeIs(1));
  EXPECT_THAT(compare(curve({}), curve({3})).differences, SizeIs(1));
  from = "m0/gpu0"; // but not inside one
  to = "m0/numa0";
  EXPECT_THAT(compare(curve({}), curve({3})).undecided, SizeIs(1));
  from = "m0";
  to = "m1";
  status = CellStatus::noisy;
  EXPECT_THAT(compare(curve({}), curve({3})).undecided, SizeIs(1));
}

TEST(CompareProfiles, LeavesTrafficBetweenProcessesUndecidedWhileOthersUseTheProcessors) {
  const auto machine = [](double slower, bool disturbed) {
    std::vector<Cell> cells{cell("fabric_aggregate", "bytes_per_second", around(100 / slower, 20)),
                            cell("stream_copy", "bytes_per_second", around(100, 20))};
    Profile p = with_cells(cells);
    if (disturbed) {
      p.context["disturbed"] = "other processes used 0.5 of 2 processors";
    }
    return p;
  };
  EXPECT_THAT(compare(machine(1, false), machine(2, false)).differences, SizeIs(1));
  for (const bool before : {true, false}) {
    const Comparison c = compare(machine(1, before), machine(2, !before));
    EXPECT_TRUE(c.same());
    ASSERT_THAT(c.undecided, SizeIs(1));
    EXPECT_THAT(c.undecided[0].note, HasSubstr("other programs"));
  }
}

TEST(CompareProfiles, SeesProcessorsThatOthersTakeAndWhatFollowsFromIt) {
  const auto machine = [](double slower) {
    std::vector<Cell> cells{cell("processor_loop", "seconds", around(100 * slower, 20)),
                            cell("reduce_sum", "bytes_per_second", around(100 / slower, 20))};
    Profile p = with_cells(cells);
    if (slower > 1) {
      p.context["disturbed"] = "other processes used 0.6 of 2 processors";
      p.cells[0].status = CellStatus::noisy;
      p.cells[0].reason = "varies";
    }
    return p;
  };
  const Comparison c = compare(machine(1), machine(1 / 0.75));
  ASSERT_THAT(c.differences, SizeIs(2));
  EXPECT_EQ(c.differences[0].group, "processor_loop");
  EXPECT_EQ(c.differences[0].effect, Effect::worse);
  EXPECT_EQ(c.differences[1].follows_from, c.differences[0].where);
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
  EXPECT_THAT(c.differences[0].note, test::Says("8 writes"));
  // With a second depth there is no telling which was meant for which.
  Cell other = a;
  other.key.in_flight = 2;
  const Comparison several = compare(with_cells({a, other}), with_cells({b}));
  EXPECT_THAT(several.only_before, SizeIs(2));
  EXPECT_THAT(several.only_after, SizeIs(1));
  // Between machines the probe also chooses how long the writes are that make a rate.
  a.key = b.key = {.test = "port_bandwidth", .from = "m0", .bytes = 65536, .in_flight = 4};
  b.key.bytes = 1048576;
  EXPECT_THAT(compare_cell(a, b).differences, SizeIs(1));
}

TEST(CompareProfiles, WarnsOnlyOfOtherHosts) {
  Profile other = example_profile();
  other.fingerprint = "another"; // what it is made of changed, on the same hosts
  EXPECT_THAT(compare(example_profile(), other).warnings, IsEmpty());
  other.machines[0].members = {"a0", "b1", "b2"};
  EXPECT_THAT(compare(example_profile(), other).warnings, IsEmpty());
  other.machines[0].members = {"b0", "b1", "b2"};
  const Comparison c = compare(example_profile(), other);
  EXPECT_THAT(c.warnings, ElementsAre(test::Says("different")));
  other.fingerprint =
      example_profile().fingerprint; // machines of one type are there to be compared
  EXPECT_THAT(compare(example_profile(), other).warnings, IsEmpty());
  // One machine is known by its host.
  Profile one = with_cells({}), two = with_cells({});
  two.fingerprint = "another";
  EXPECT_THAT(compare(one, two).warnings, IsEmpty());
  two.context["host"] = "beta";
  EXPECT_THAT(compare(one, two).warnings, ElementsAre(HasSubstr("(alpha and beta")));
}

TEST(CompareProfiles, SeesALinkThatTrainedSlower) {
  struct Case {
    const char* where;
    std::function<void(Topology&)> change;
  };
  for (const auto& [where, change] : {
           Case{"topology/m0/nic0/link_bytes_per_second",
                [](Topology& t) { t.objects[3].link_bytes_per_second = 6.25e9; }},
           Case{"topology/m0/numa0/processors", [](Topology& t) { t.objects[1].cpus = {7}; }},
           Case{"topology/m0/gpu0/pcie/width", [](Topology& t) { t.objects[5].pcie->width = 4; }},
           Case{"topology/m0/gpu0/pcie/transfers_per_second",
                [](Topology& t) { t.objects[5].pcie->transfers_per_second = 5e9; }},
           Case{"topology/m0/gpu1/pcie_bytes_per_second",
                [](Topology& t) { t.objects.back().pcie_bytes_per_second = 7e9; }},
           Case{"topology/m0/gpu0 - gpu1 nvlink/count", [](Topology& t) { t.links[0].count = 2; }},
           Case{"topology/m0/gpu0 - gpu1 nvlink/bytes_per_second",
                [](Topology& t) { t.links[0].bytes_per_second = 50e9; }},
           Case{"topology/m0/gpu0 - gpu1 nvlink", [](Topology& t) { t.links.clear(); }},
       }) {
    const Profile before = with_cells({});
    Profile after = before;
    change(after.topology);
    const Comparison c = compare(before, after);
    ASSERT_THAT(places(c), ElementsAre(where));
    EXPECT_EQ(c.differences[0].effect, Effect::worse) << where;
    EXPECT_EQ(compare(after, before).differences.at(0).effect, Effect::better) << where;
  }
}

TEST(CompareProfiles, SeesObjectsAndMachinesThatComeAndGo) {
  Profile after = with_cells({});
  after.topology.objects.pop_back();
  after.topology.links.clear();
  after.machines[0].count = 2;
  const Comparison c = compare(with_cells({}), after);
  EXPECT_THAT(places(c), ElementsAre("machines/m0/count", "topology/m0/gpu0 - gpu1 nvlink",
                                     "topology/m0/gpu1"));
  EXPECT_EQ(c.differences[2].before.text, "gpu");
  after = example_profile();
  after.machines[0].members.pop_back();
  after.machines[0].count = 2;
  const Comparison fewer = compare(example_profile(), after);
  EXPECT_THAT(places(fewer), ElementsAre("machines/a2"));
  EXPECT_EQ(fewer.differences[0].effect, Effect::worse);
}

TEST(CompareProfiles, FollowsMembersThroughOtherGroups) {
  const Profile before = cluster({{"w0", "w1", "w2", "w3"}}, 100);
  // The probe sees that w2 differs, and so makes three groups.
  EXPECT_THAT(compare(before, cluster({{"w0", "w1"}, {"w2"}, {"w3"}}, 100)).differences, IsEmpty());
  const Profile after = cluster({{"w0", "w1"}, {"w2"}, {"w3"}}, 40);
  const Comparison c = compare(before, after);
  EXPECT_THAT(c.warnings, IsEmpty());
  EXPECT_THAT(c.only_before, IsEmpty());
  EXPECT_THAT(c.only_after, IsEmpty());
  EXPECT_THAT(c.undecided, IsEmpty());
  // w2's port, and what follows from it: 3 machines, forth and back.
  ASSERT_THAT(c.differences, SizeIs(7));
  const Difference& port = c.differences[0];
  EXPECT_EQ(port.group, "port_bandwidth");
  EXPECT_THAT(port.places, ElementsAre("w2"));
  EXPECT_NEAR(port.change.value(), -0.6, 1e-9);
  EXPECT_EQ(port.follows_from, "");
  for (std::size_t i = 1; i < 7; ++i) {
    EXPECT_EQ(c.differences[i].group, "pair_bandwidth");
    EXPECT_EQ(c.differences[i].follows_from, port.where);
    EXPECT_THAT(c.differences[i].places, Contains("w2"));
  }
  EXPECT_THAT(compare(after, before).differences, SizeIs(7));
  // A part of the machine of w2 alone.
  Profile card = cluster({{"w0", "w1"}, {"w2"}, {"w3"}}, 100);
  card.topology.objects[3].pcie->width = 4;
  EXPECT_THAT(places(compare(before, card)), ElementsAre("topology/w2/nic0/pcie/width"));
}

TEST(CompareProfiles, DoesNotCallWhatIsMuchWorseAConsequence) {
  const Profile before = cluster({{"w0", "w1", "w2", "w3"}}, 100);
  Profile after = cluster({{"w0", "w1"}, {"w2"}, {"w3"}}, 80);
  for (Cell& c : after.cells) {
    if (c.key.test == "pair_bandwidth" && c.key.from == "w2" && c.key.to == "w0") {
      c.samples = around(20, 10); // 0.2 x beside a port of 0.8 x
      summarize_cell(c);
    }
  }
  const Comparison c = compare(before, after);
  std::vector<std::string> own;
  for (const Difference& d : c.differences) {
    if (d.follows_from.empty()) {
      own.push_back(d.where);
    }
  }
  EXPECT_THAT(own, ElementsAre(HasSubstr("port_bandwidth w2"), HasSubstr("pair_bandwidth w2->w0")));
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
