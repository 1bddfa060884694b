// SPDX-License-Identifier: Apache-2.0
#include "documents/cells.hpp"
#include "verdict/verdict.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <functional>

namespace reckon {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

/// Of rail `rail` between two machines, in GB/s.
using RateOfRail = std::function<double(int rail, int a, int b)>;

void add_rail(Profile& p, const std::string& from, const std::string& to, const std::string& rail,
              double gb_per_s) {
  Cell cell;
  cell.key = {.test = k_rail_bandwidth,
              .from = from,
              .to = to,
              .bytes = 1 << 20,
              .transport = "verbs;ofi_rxm",
              .direction = k_two_way,
              .operation = rail};
  cell.unit = k_bytes_per_second;
  cell.samples = {gb_per_s * 0.999e9, gb_per_s * 1e9, gb_per_s * 1.001e9};
  summarize_cell(cell);
  p.cells.push_back(cell);
}

/// Machines w0, w1, ... with ports mlx5_0, mlx5_1, ...; all rails at once move `share` of the sum.
Profile cluster(int machines, int rails, const RateOfRail& rate, double share = 1) {
  Profile p;
  p.name = "cluster";
  p.machines = {{.id = "m0", .count = static_cast<std::uint64_t>(machines), .cores = 2}};
  for (int m = 0; m < machines; ++m) {
    p.machines.front().members.push_back(fmt::format("w{}", m));
  }
  for (int a = 0; a < machines; ++a) {
    for (int b = 0; b < machines; ++b) {
      double sum = 0;
      for (int rail = 0; a != b && rail < rails; ++rail) {
        const auto end = [&](int m) { return fmt::format("w{}/mlx5_{}", m, rail); };
        add_rail(p, end(a), end(b), fmt::format("rail{}", rail), rate(rail, a, b));
        sum += rate(rail, a, b);
      }
      if (a != b) {
        add_rail(p, fmt::format("w{}", a), fmt::format("w{}", b), k_rails_at_once, share * sum);
      }
    }
  }
  return p;
}

/// "like w2/mlx5_1: 50 %"
std::vector<std::string> told_of(const Profile& p) {
  std::vector<std::string> out;
  for (const Finding& f : judge(p).findings) {
    out.push_back(fmt::format("{} {}: {:.0f} %", name_of(f.kind), f.place, 100 * f.share));
  }
  return out;
}

TEST(Rails, ThatAreAlikeHaveNoFault) {
  EXPECT_THAT(told_of(cluster(4, 4, [](int, int, int) { return 48; })), IsEmpty());
}

TEST(Rails, ThatAMachineLacksAreNotKnown) {
  Profile p = cluster(4, 4, [](int, int, int) { return 48; });
  EXPECT_THAT(judge(p).unknown, Not(testing::Contains(testing::HasSubstr("w2 has no"))));
  p.context["rails_left_out"] = "w2 has no mlx5_4 with a carrier";
  EXPECT_THAT(judge(p).unknown, testing::Contains(testing::HasSubstr("w2 has no")));
}

TEST(Rails, ABadNicIsNamedWithItsMachine) {
  // (61): w2's port of rail 1 is slow with w0, w1 and w3, which reach 48 with each other.
  const auto bad = [](int rail, int a, int b) { return rail == 1 && (a == 2 || b == 2) ? 24 : 48; };
  EXPECT_THAT(told_of(cluster(4, 4, bad)), ElementsAre("like w2/mlx5_1: 50 %"));
  EXPECT_THAT(told_of(cluster(3, 2, bad)), ElementsAre("like w2/mlx5_1: 50 %"));
}

TEST(Rails, ABadNicIsFoundAlsoWhereEachRailHasASpeedOfItsOwn) {
  // Against rail 1 of other pairs only: against the other rails no rail is odd.
  const auto bad = [](int rail, int a, int b) {
    return (10.0 + 10 * rail) * (rail == 1 && (a == 2 || b == 2) ? 0.5 : 1);
  };
  EXPECT_THAT(told_of(cluster(4, 4, bad)), testing::Contains("like w2/mlx5_1: 50 %"));
}

TEST(Rails, OfTwoMachinesTheOtherRailsTell) {
  const auto bad = [](int rail, int, int) { return rail == 1 ? 24 : 48; };
  const std::vector<std::string> both{"like w0/mlx5_1 -> w1/mlx5_1: 50 %",
                                      "like w1/mlx5_1 -> w0/mlx5_1: 50 %"};
  EXPECT_THAT(told_of(cluster(2, 2, bad)), testing::ElementsAreArray(both));
  EXPECT_THAT(told_of(cluster(2, 4, bad)), testing::ElementsAreArray(both));
}

TEST(Rails, OneThatIsSlowForAllPairsIsToldOfOnce) {
  const auto bad = [](int rail, int, int) { return rail == 2 ? 24 : 48; };
  EXPECT_THAT(told_of(cluster(4, 4, bad)), ElementsAre("like rail2: 50 %"));
}

TEST(Rails, OfOtherDescribedSpeedsAreNotComparedWithEachOther) {
  Profile p = cluster(3, 3, [](int rail, int, int) { return rail == 0 ? 1 : 48; });
  EXPECT_THAT(told_of(p), ElementsAre("like rail0: 2 %"));
  p.topology.objects = {{.id = "m0"}};
  for (int rail = 0; rail < 3; ++rail) {
    p.topology.objects.push_back({.id = fmt::format("m0/nic{}", rail),
                                  .kind = ObjectKind::nic,
                                  .parent = "m0",
                                  .name = fmt::format("eth{} mlx5_{}", rail, rail),
                                  .link_bytes_per_second = rail == 0 ? 1.25e9 : 50e9,
                                  .pcie_possible = PcieLink{8e9, rail == 0 ? 1 : 16}});
  }
  EXPECT_THAT(told_of(p), IsEmpty());
}

TEST(Rails, AtOnceAreHeldAgainstTheirSum) {
  const auto good = [](int, int, int) { return 48; };
  EXPECT_THAT(told_of(cluster(2, 4, good, 0.7)), IsEmpty());
  EXPECT_THAT(told_of(cluster(2, 4, good, 0.5)),
              ElementsAre("alternative w0 -> w1: 50 %", "alternative w1 -> w0: 50 %"));
  EXPECT_THAT(told_of(cluster(4, 4, good, 0.5)), ElementsAre("alternative cluster: 50 %"));
  Profile one = cluster(4, 4, good);
  for (Cell& cell : one.cells) {
    if (cell.key.from == "w1" && cell.key.to == "w3") {
      cell.p50 *= 0.5;
    }
  }
  EXPECT_THAT(told_of(one), ElementsAre("alternative w1 -> w3: 50 %"));
}

} // namespace
} // namespace reckon
