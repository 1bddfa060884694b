// SPDX-License-Identifier: Apache-2.0
#include "network/pairs.hpp"

#include "fixtures.hpp"
#include "strategies/between.hpp"
#include "support/random_cases.hpp"
#include "support/refusals.hpp"
#include "support/schedules.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace reckon {
namespace {

using namespace testing;
using namespace test;

Cell cell(const char* test, const std::string& from, const std::string& to, std::uint64_t bytes,
          double value, const char* unit = "seconds") {
  return published({.test = test, .from = from, .to = to, .bytes = bytes, .direction = "one_way"},
                   unit, value);
}

Cell rate(const char* test, const std::string& from, const std::string& to, double bytes_per_s) {
  return cell(test, from, to, 65536, bytes_per_s, "bytes_per_second");
}

MachineGroup machine(const std::string& id, std::vector<std::string> members = {}) {
  MachineGroup group;
  group.id = id;
  group.count = std::max<std::size_t>(1, members.size());
  group.members = std::move(members);
  return group;
}

/// Between machines by their groups' ids; the k-th of a group is its k-th machine.
Between pairs_between(const Profile& profile, const std::vector<std::string>& groups) {
  std::vector<OpenMachine> machines;
  for (const std::string& group : groups) {
    const auto before = std::count_if(machines.begin(), machines.end(),
                                      [&](const OpenMachine& m) { return m.group == group; });
    machines.push_back({group, static_cast<std::uint64_t>(before), {}, {}});
  }
  const Network network = network_between_machines(profile, machines, "");
  return between_places(network, places_of_ranks(network));
}

/// gpu0 writes to the near dev0 at once and slowly, to the far dev1 late and quickly.
Profile near_and_far() {
  Profile p;
  p.name = "near and far";
  p.machines = {machine("gpu0"), machine("dev0"), machine("dev1")};
  p.cells = {cell("pair_latency", "gpu0", "dev0", 8, 10e-6),
             rate("pair_bandwidth", "gpu0", "dev0", 9e9),
             cell("pair_latency", "gpu0", "dev1", 8, 20e-6),
             rate("pair_bandwidth", "gpu0", "dev1", 16e9),
             cell("pair_write", "dev0", "gpu0", 4096, 1e-3),
             cell("pair_write", "dev0", "gpu0", 1052672, 3e-3)};
  for (const auto& [from, to] : {std::pair{"dev1", "gpu0"}, {"dev0", "dev1"}, {"dev1", "dev0"}}) {
    p.cells.push_back(cell("pair_latency", from, to, 8, 5e-6));
    p.cells.push_back(rate("pair_bandwidth", from, to, 10e9));
  }
  return p;
}

TEST(Pairs, AWriteTakesTheLatencyAndItsBytesOverThePairsRate) {
  const Between n = pairs_between(near_and_far(), {"gpu0", "dev0", "dev1"});
  // 10 us + 9 MB / 9 GB/s; 20 us + 16 MB / 16 GB/s
  EXPECT_NEAR(n.network.write_seconds(0, 1, 9e6), 1.010e-3, 1e-9);
  EXPECT_NEAR(n.network.write_seconds(0, 2, 16e6), 1.020e-3, 1e-9);
  EXPECT_NEAR(n.network.write_seconds(0, 2, 0), 20e-6, 1e-12);
  EXPECT_TRUE(n.network.paths[0][0].empty());
}

TEST(Pairs, FollowsTheSamplesOfWritesWhereThereAreAny) {
  // 1 ms at 4 KiB, 3 ms at 1028 KiB; pair_latency is known the other way: 10 us.
  const Between n = pairs_between(near_and_far(), {"dev0", "gpu0"});
  EXPECT_NEAR(n.network.write_seconds(0, 1, 4096), 1e-3, 1e-9);
  EXPECT_NEAR(n.network.write_seconds(0, 1, 4096 + 524288), 2e-3, 1e-9);  // in the middle
  EXPECT_NEAR(n.network.write_seconds(0, 1, 4096 + 2097152), 5e-3, 1e-9); // 2 ms for each MiB more
  EXPECT_NEAR(n.network.write_seconds(0, 1, 0), 10e-6, 1e-12);
  EXPECT_THAT(n.sources, ElementsAre("pair_latency: 1 ways between machines",
                                     "pair_write: 1 ways between machines"));
}

TEST(Pairs, MessagesBySizeSayWhatShortOnesTake) {
  Profile p;
  p.machines = {machine("a"), machine("b")};
  // Streams: 64 KiB at 20 GB/s, 8 MiB at 24 GB/s, the longest of them once more.
  const auto stream = [](const char* test, std::uint64_t bytes, double bytes_per_s) {
    return cell(test, "a", "b", bytes, bytes_per_s, "bytes_per_second");
  };
  p.cells = {stream("pair_bandwidth", 1U << 23U, 24e9),
             stream("pair_bandwidth_by_size", 1U << 16U, 20e9),
             stream("pair_bandwidth_by_size", 1U << 23U, 24e9)};
  const PairWay streams = pair_way(CellIndex(p), "a", "b", "");
  EXPECT_NEAR(streams.busy.seconds(65536), 65536 / 20e9, 1e-12);
  EXPECT_NEAR(streams.busy.seconds(8388608), 8388608 / 24e9, 1e-12);
  EXPECT_FALSE(streams.latency_s);
  // One message alone: 2 us with 8 bytes, 10 us with 64 KiB, of which a stream hides all but 64 KiB
  // at 20 GB/s.
  p.cells.push_back(cell("pair_latency_by_size", "a", "b", 8, 2e-6));
  p.cells.push_back(cell("pair_latency_by_size", "a", "b", 65536, 10e-6));
  const PairWay both = pair_way(CellIndex(p), "a", "b", "");
  EXPECT_EQ(both.source, "pair_latency_by_size");
  EXPECT_NEAR(*both.latency_s, 2e-6, 1e-8);
  EXPECT_NEAR(both.busy.seconds(65536), 65536 / 20e9, 1e-12);
  EXPECT_NEAR(pair_curve(CellIndex(p), "a", "b", "")->seconds_at(65536), 10e-6, 1e-12);
}

TEST(Pairs, AWriteAmongOthersTakesNoLongerThanTheirRateSays) {
  Profile p;
  p.machines = {machine("a"), machine("b")};
  // Alone 64 KiB take 8 us beyond the latency; several together have 20 GB/s.
  p.cells = {cell("pair_latency", "a", "b", 8, 2e-6), cell("pair_write", "a", "b", 65536, 10e-6),
             cell("pair_write", "a", "b", 1048576, 60e-6)};
  EXPECT_NEAR(pair_way(CellIndex(p), "a", "b", "").busy.seconds(65536), 8e-6, 1e-12);
  p.cells.push_back(rate("pair_bandwidth", "a", "b", 20e9));
  EXPECT_NEAR(pair_way(CellIndex(p), "a", "b", "").busy.seconds(65536), 65536 / 20e9, 1e-12);
  EXPECT_NEAR(pair_way(CellIndex(p), "a", "b", "").busy.seconds(1048576), 1048576 / 20e9, 1e-12);
}

TEST(Pairs, WithoutALatencyTheCurveIsFollowedBackToNothing) {
  Profile p;
  p.machines = {machine("a"), machine("b")};
  // 1 ms and 100 MB/s
  p.cells = {cell("pair_write", "a", "b", 100'000, 2e-3),
             cell("pair_write", "a", "b", 200'000, 3e-3)};
  EXPECT_NEAR(*pair_latency(CellIndex(p), "a", "b", ""), 1e-3, 1e-12);
  EXPECT_NEAR(pair_curve(CellIndex(p), "a", "b", "")->seconds_at(150'000), 2.5e-3, 1e-12);
  EXPECT_FALSE(pair_latency(CellIndex(p), "b", "a", ""));
  EXPECT_FALSE(pair_curve(CellIndex(p), "b", "a", ""));
}

TEST(Pairs, OfWritesOfOneSizeThatWithTheFewestInFlightCounts) {
  Profile p;
  p.machines = {machine("a"), machine("b")};
  p.cells = {cell("pair_write", "a", "b", 100'000, 2e-3),
             cell("pair_write", "a", "b", 100'000, 6e-3),
             cell("pair_write", "a", "b", 200'000, 3e-3)};
  p.cells[1].key.in_flight = 4;
  EXPECT_NEAR(*pair_latency(CellIndex(p), "a", "b", ""), 1e-3, 1e-12);
  EXPECT_NEAR(pair_curve(CellIndex(p), "a", "b", "")->seconds_at(100'000), 2e-3, 1e-12);
}

TEST(Pairs, AWayCarriesAloneWhatItCarriesWhileAsMuchComesBack) {
  Profile p;
  p.machines = {machine("a"), machine("b")};
  p.cells = {cell("pair_latency", "a", "b", 8, 0), rate("pair_bandwidth", "a", "b", 6e8),
             rate("pair_bandwidth", "a", "b", 9e8)};
  p.cells.back().key.direction = "two_way";
  EXPECT_NEAR(pair_way(CellIndex(p), "a", "b", "").rate.mid, 9e8, 1); // 6e8 alone: it was disturbed
  p.cells.back().p50 = 4e8; // the other direction's traffic is in its way
  EXPECT_NEAR(pair_way(CellIndex(p), "a", "b", "").rate.mid, 6e8, 1);
}

TEST(Pairs, WritesWithoutADirectionAreOneWay) {
  Profile p;
  p.machines = {machine("a"), machine("b")};
  for (const std::uint64_t bytes : {100'000U, 200'000U}) {
    p.cells.push_back(cell("pair_write", "a", "b", bytes, 1e-8 * static_cast<double>(bytes)));
    p.cells.back().key.direction = "";
    p.cells.push_back(cell("pair_write", "b", "a", bytes, 1e-8 * static_cast<double>(bytes)));
    p.cells.back().key.direction = "two_way";
  }
  EXPECT_NEAR(pair_curve(CellIndex(p), "a", "b", "")->seconds_at(150'000), 1.5e-3, 1e-12);
  EXPECT_FALSE(pair_curve(CellIndex(p), "b", "a", ""));
}

TEST(Pairs, PortsAreOfTheMachineOrOfItsGroup) {
  Profile p;
  p.machines = {machine("m0", {"w0", "w1"}), machine("m1", {"s0"})};
  p.cells = {rate("port_bandwidth", "m0", "", 100e6), rate("port_bandwidth", "m1", "", 50e6)};
  const Between n = pairs_between(p, {"m0", "m1", "m0"});
  EXPECT_EQ(pair_names(p, {"m0", "m1", "m0"}), (std::vector<std::string>{"w0", "s0", "w1"}));
  EXPECT_THAT(n.names, ElementsAre("w0 out", "w0 in", "s0 out", "s0 in", "w1 out", "w1 in"));
  EXPECT_THAT(n.network.paths[0][2], ElementsAre(0U, 5U));
  EXPECT_NEAR(n.network.write_seconds(0, 2, 1e6), 0.01, 1e-9);
  EXPECT_NEAR(n.network.write_seconds(0, 1, 1e6), 0.02, 1e-9); // the slower port
}

TEST(Pairs, SaysWhatIsMissing) {
  Profile p = near_and_far();
  EXPECT_REFUSED(input, "no machine 'dev7'", pair_names(p, {"gpu0", "dev7"}));
  EXPECT_REFUSED(input, "no machines \"dev7\"", pairs_between(p, {"gpu0", "dev7"}));
  std::erase_if(p.cells, [](const Cell& c) { return c.key.to == "dev1"; });
  EXPECT_REFUSED(input, "dev1 takes", pairs_between(p, {"gpu0", "dev1"}));
  p.machines.push_back(machine("m0", {"w0"}));
  EXPECT_REFUSED(input, "group 'm0'", pair_names(p, {"m0", "m0"}));
  EXPECT_REFUSED(input, "\"m0\", fewer", pairs_between(p, {"m0", "m0"}));
}

/// Section V-C: which of a local and a remote device is quicker for small and for large tensors.
TEST(ShippedCoarseMachines, PreferWhatThePaperSays) {
  struct Expected {
    const char* name;
    int small, large; ///< -1: the local one is quicker, 0: no difference, 1: the remote one
  };
  for (const Expected& expected :
       {Expected{"coarse-t4", 0, 0}, {"coarse-p100", -1, -1}, {"coarse-v100", -1, 1}}) {
    SCOPED_TRACE(expected.name);
    const Profile p = shipped_profile(expected.name);
    const Between n = pairs_between(p, {"gpu0", "dev0", "dev1", "gpu1"});
    const auto better = [&](double bytes) {
      const double local = n.network.write_seconds(0, 1, bytes);
      const double remote = n.network.write_seconds(0, 2, bytes);
      return local < remote ? -1 : local > remote ? 1 : 0;
    };
    EXPECT_EQ(better(16 << 10), expected.small);
    EXPECT_EQ(better(16 << 20), expected.large);
  }
  // 20 us of latency for what 1/4.5 - 1/8 ns a byte win back: 205.7 KB.
  const Profile p = shipped_profile("coarse-v100");
  const Between n = pairs_between(p, {"gpu0", "dev0", "dev1"});
  EXPECT_LT(n.network.write_seconds(0, 1, 205'000), n.network.write_seconds(0, 2, 205'000));
  EXPECT_GT(n.network.write_seconds(0, 1, 206'500), n.network.write_seconds(0, 2, 206'500));
}

double seconds_of(const Schedule& writes, const PlayNetwork& network) {
  return play(writes, network, no_cost).total_seconds;
}

TEST(Pairs, PlaySaysTheSameOfAWriteAlone) {
  for_cases(1, 200, [](Random& random) {
    Profile p;
    p.machines = {machine("a"), machine("b")};
    double seconds = 1e-6 * static_cast<double>(random.whole(1, 1000));
    p.cells.push_back(cell("pair_latency", "a", "b", 8, 0.5 * seconds));
    for (std::uint64_t bytes = 4096; bytes <= 16777216; bytes *= 4) {
      p.cells.push_back(cell("pair_write", "a", "b", bytes, seconds));
      seconds *= 1 + 0.01 * static_cast<double>(random.whole(1, 399));
    }
    p.cells.push_back(cell("pair_latency", "b", "a", 8, 1e-6));
    p.cells.push_back(rate("pair_bandwidth", "b", "a", 1e9));
    const bool ports = random.coin();
    if (ports) {
      for (const char* name : {"a", "b"}) {
        p.cells.push_back(
            rate("port_bandwidth", name, "", 1e8 * static_cast<double>(random.whole(1, 20))));
      }
    }
    const Between n = pairs_between(p, {"a", "b"});
    const std::uint64_t bytes = random.whole(1, 20'000'000);
    Schedule one = idle(2);
    send(one, 0, 1, bytes, 1);
    const double alone = n.network.write_seconds(0, 1, static_cast<double>(bytes));
    EXPECT_NEAR(seconds_of(one, n.network), alone, 1e-9 * (1 + alone));
    if (!ports) { // it is the curve itself
      EXPECT_NEAR(
          alone,
          std::max(pair_curve(CellIndex(p), "a", "b", "")->seconds_at(static_cast<double>(bytes)),
                   alone * (bytes < 4096 ? 1 : 0)),
          1e-9 + 1e-9 * alone);
    }
  });
}

TEST(Pairs, WritesThroughOnePortTakeTurns) {
  Profile p;
  p.machines = {machine("a"), machine("b"), machine("c")};
  for (const auto& [from, to] :
       {std::pair{"a", "b"}, {"c", "b"}, {"a", "c"}, {"b", "a"}, {"b", "c"}, {"c", "a"}}) {
    p.cells.push_back(cell("pair_latency", from, to, 8, 1e-3));
    p.cells.push_back(rate("pair_bandwidth", from, to, 100e6));
  }
  for (const char* name : {"a", "b", "c"}) {
    p.cells.push_back(rate("port_bandwidth", name, "", 125e6));
  }
  const Between n = pairs_between(p, {"a", "b", "c"});
  // Two writes of 10 MB into b: 20 MB at the port's 125 MB/s, and the latency; either alone 0.1 s.
  // Two writes from a, to b and to c: 20 MB through its egress. A piece of 65536 bytes may wait for
  // another.
  for (const auto& [from, to] : {std::pair(2U, 1U), {0U, 2U}}) {
    Schedule both = idle(3);
    send(both, 0, 1, 10'000'000, 1);
    send(both, from, to, 10'000'000, 2);
    EXPECT_NEAR(seconds_of(both, n.network), 0.161, 0.0011) << from << " to " << to;
  }
}

} // namespace
} // namespace reckon
