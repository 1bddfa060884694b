// SPDX-License-Identifier: Apache-2.0
#include "documents/cells.hpp"
#include "network/network.hpp"
#include "support/inside_profiles.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <string>

namespace reckon {
namespace {

using namespace testing;

constexpr double k_link = 64e9;

/// A GPU and a NUMA node behind a host bridge.
Profile gpu_and_memory() {
  Profile profile;
  profile.name = "one";
  profile.source = "made for a test";
  profile.machines.push_back({.id = "m0", .name = "one"});
  test::add_object(profile, ObjectKind::machine, "m0", "");
  test::add_object(profile, ObjectKind::numa_node, "m0/numa0", "m0");
  test::add_object(profile, ObjectKind::host_bridge, "m0/bridge0", "m0/numa0");
  test::add_object(profile, ObjectKind::gpu, "m0/gpu0", "m0/bridge0");
  test::add_link_both_ways(profile, "m0/gpu0", "m0/bridge0", k_link);
  return profile;
}

const InsideOptions k_both{.workers = {"m0/gpu0", "m0/numa0"}};

void add_sums(Profile& profile, const char* test, const std::string& dtype, int sources,
              double bytes_per_s) {
  test::add_link_rate(profile, test, "m0/gpu0", "", bytes_per_s);
  profile.cells.back().key.dtype = dtype;
  profile.cells.back().key.sources = sources;
}

TEST(InsideNetwork, AGpuSumsAtItsMeasuredRateOfTwoOperandsInFp32) {
  Profile profile = gpu_and_memory();
  const auto add_of_gpu = [&] {
    const Network network = network_inside_machine(profile, "m0", k_both);
    return network.add[0].empty()
               ? std::string("nothing")
               : fmt::format("{} {:g} {}", network.stations[network.add[0][0].station].name,
                             network.stations[network.add[0][0].station].bytes_per_second,
                             network.stations[network.add[0][0].station].source);
  };
  add_sums(profile, k_reduce_sum, "fp32", 2, 5e11); // of processors
  add_sums(profile, k_gpu_reduce, "fp32", 8, 3e12);
  EXPECT_EQ(add_of_gpu(), "nothing");
  add_sums(profile, k_gpu_reduce, "fp16", 2, 2e12);
  EXPECT_EQ(add_of_gpu(), "sums gpu0 2e+12 gpu_reduce_sum");
  add_sums(profile, k_gpu_reduce, "fp32", 2, 1e12);
  EXPECT_EQ(add_of_gpu(), "sums gpu0 1e+12 gpu_reduce_sum");
}

/// A write of so many bytes that takes so long, each way.
void add_write(Profile& profile, const char* test, const std::string& transport,
               std::uint64_t bytes, double seconds) {
  for (const auto& [from, to] : {std::pair("m0/gpu0", "m0/numa0"), {"m0/numa0", "m0/gpu0"}}) {
    test::add_link_rate(profile, test, from, to, seconds);
    Cell& cell = profile.cells.back();
    cell.key.bytes = bytes;
    cell.key.transport = transport;
    cell.key.direction = "one_way";
    cell.unit = "seconds";
    cell.bytes_convention = "";
  }
}

void add_bandwidth(Profile& profile, std::uint64_t bytes, int in_flight, double bytes_per_s) {
  test::add_link_rate(profile, k_pair_bandwidth, "m0/gpu0", "m0/numa0", bytes_per_s);
  profile.cells.back().key.bytes = bytes;
  profile.cells.back().key.in_flight = in_flight;
  profile.cells.back().key.transport = "cuda";
  profile.cells.back().key.direction = "one_way";
}

const Station* station_named(const Network& network, const std::string& name) {
  const auto at = std::ranges::find(network.stations, name, &Station::name);
  return at == network.stations.end() ? nullptr : &*at;
}

TEST(InsideNetwork, AWriteTakesWhatWasMeasuredOfItsPairAndTransport) {
  Profile profile = gpu_and_memory();
  test::add_link_rate(profile, k_device_to_host_ce, "m0/gpu0", "m0/numa0", 30e9);
  add_write(profile, k_pair_latency, "cuda", 8, 20e-6);
  Network network = network_inside_machine(profile, "m0", k_both);
  EXPECT_EQ(network.latency_s[0][1], 20e-6);
  EXPECT_EQ(station_named(network, "copy gpu0 > numa0")->source, "measured pair"); // only its rate
  EXPECT_TRUE(network.pair_sources.empty());

  add_write(profile, k_pair_write, "cuda", 65536, 25e-6);
  add_write(profile, k_pair_write, "cuda", 1048576, 40e-6);
  add_write(profile, k_pair_write, "host", 65536, 1e-3);
  network = network_inside_machine(profile, "m0", k_both);
  for (const char* const name : {"copy gpu0 > numa0", "copy numa0 > gpu0"}) {
    const Station* const copy = station_named(network, name);
    ASSERT_NE(copy, nullptr);
    EXPECT_EQ(copy->source, k_pair_write);
    EXPECT_NEAR(copy->busy.seconds(65536), 5e-6, 1e-12);
    EXPECT_NEAR(copy->busy.seconds(1048576), 20e-6, 1e-12);
    EXPECT_NEAR(copy->bytes_per_second, 983040 / 15e-6, 1);
  }
  EXPECT_EQ(network.latency_s[1][0], 20e-6);
  EXPECT_THAT(network.pair_sources, ElementsAre("pair_write: 2 ways inside m0"));

  // Over host nothing is known but one size: it has no latency.
  InsideOptions host = k_both;
  host.transport = "host";
  network = network_inside_machine(profile, "m0", host);
  EXPECT_EQ(network.latency_s[0][1], 0);
  EXPECT_NEAR(station_named(network, "copy gpu0 > numa0")->busy.seconds(65536), 1e-3, 1e-12);
}

TEST(InsideNetwork, OfSeveralWritesInFlightEachTakesWhatTheirRateOfThatSizeSays) {
  Profile profile = gpu_and_memory();
  add_write(profile, k_pair_latency, "cuda", 8, 10e-6);
  add_write(profile, k_pair_write, "cuda", 65536, 25e-6);    // 15 us beside the latency
  add_write(profile, k_pair_write, "cuda", 1048576, 40e-6);  // 30 us
  add_write(profile, k_pair_write, "cuda", 2097152, 100e-6); // 90 us
  add_bandwidth(profile, 65536, 4, 65536 / 12e-6);
  add_bandwidth(profile, 65536, 16, 65536 / 8e-6); // the better window
  add_bandwidth(profile, 2097152, 4, 2097152 / 70e-6);
  const Network network = network_inside_machine(profile, "m0", k_both);
  const Station* const out = station_named(network, "copy gpu0 > numa0");
  ASSERT_NE(out, nullptr);
  EXPECT_NEAR(out->busy.seconds(65536), 8e-6, 1e-12);
  // 8 + 62 * 983040 / 2031616 = 38 us: what a write alone takes less hides in its latency.
  EXPECT_NEAR(out->busy.seconds(1048576), 38e-6, 1e-12);
  EXPECT_NEAR(out->busy.seconds(2097152), 70e-6, 1e-12);
  // An empty write takes 8 us less 2 us for 64 KiB, at 62 us for 1984 KiB more.
  EXPECT_NEAR(out->busy.seconds(1), 6e-6, 1e-9);
  EXPECT_NEAR(out->busy.seconds(32768), 7e-6, 1e-9);
  // The other way has no rate of several.
  EXPECT_NEAR(station_named(network, "copy numa0 > gpu0")->busy.seconds(65536), 15e-6, 1e-12);
}

TEST(InsideNetwork, TwoPlacesThatBothSendShareWhatTheyMoveTogether) {
  Profile profile = gpu_and_memory();
  test::add_link_rate(profile, k_host_to_device_ce, "m0/numa0", "m0/gpu0", 50e9);
  test::add_link_rate(profile, k_device_to_host_ce, "m0/gpu0", "m0/numa0", 50e9);
  EXPECT_EQ(station_named(network_inside_machine(profile, "m0", k_both), "both ways gpu0 numa0"),
            nullptr);
  test::add_link_rate(profile, k_host_device_two_way_ce, "m0/numa0", "m0/gpu0", 80e9);
  profile.cells.back().key.direction = "two_way";
  Network network = network_inside_machine(profile, "m0", k_both);
  const Station* both = station_named(network, "both ways gpu0 numa0");
  ASSERT_NE(both, nullptr);
  EXPECT_EQ(both->bytes_per_second, 80e9);
  const auto number = static_cast<std::size_t>(both - network.stations.data());
  for (const auto& [from, to] : {std::pair(0U, 1U), std::pair(1U, 0U)}) {
    const Uses& uses = network.ways[from][to].value();
    const auto is_it = [&](const Use& use) { return use.station == number && use.amount == 1; };
    EXPECT_EQ(std::ranges::count_if(uses, is_it), 1);
  }
  // Writes know more than copies do, by size: each direction has the rate of its cell.
  for (const auto& [bytes, rate] : {std::pair(1U << 20U, 32e9), {4U << 20U, 40e9}}) {
    add_bandwidth(profile, bytes, 0, rate);
    profile.cells.back().key.direction = "two_way";
  }
  network = network_inside_machine(profile, "m0", k_both);
  both = station_named(network, "both ways gpu0 numa0");
  ASSERT_NE(both, nullptr);
  EXPECT_EQ(both->source, k_pair_bandwidth);
  EXPECT_NEAR(both->busy.seconds(1U << 20U), (1U << 20U) / 64e9, 1e-12);
  EXPECT_NEAR(both->busy.seconds(4U << 20U), (4U << 20U) / 80e9, 1e-12);

  // Together they move as much as each alone: no station.
  profile.cells.resize(profile.cells.size() - 3);
  test::add_link_rate(profile, k_host_device_two_way_ce, "m0/numa0", "m0/gpu0", 100e9);
  profile.cells.back().key.direction = "two_way";
  network = network_inside_machine(profile, "m0", k_both);
  EXPECT_EQ(station_named(network, "both ways gpu0 numa0"), nullptr);
}

TEST(InsideNetwork, ASumOnAGpuTakesSomeTimeToStart) {
  Profile profile = gpu_and_memory();
  for (const auto& [bytes, seconds] : {std::pair(1U << 20U, 4e-6), {3U << 20U, 6e-6}}) {
    test::add_link_rate(profile, k_gpu_reduce, "m0/gpu0", "", bytes / seconds);
    Cell& cell = profile.cells.back();
    cell.key.bytes = bytes;
    cell.key.sources = 2;
    cell.key.dtype = "fp32";
  }
  const Network network = network_inside_machine(profile, "m0", k_both);
  const Station* const sums = station_named(network, "sums gpu0");
  ASSERT_NE(sums, nullptr);
  EXPECT_NEAR(sums->busy.seconds(1), 3e-6, 1e-9); // 1 us for each MiB, and 3 us
  EXPECT_NEAR(sums->busy.seconds(2U << 20U), 5e-6, 1e-12);
}

TEST(InsideNetwork, OneLaneOfAProcessorAddsWhatOneThreadDoes) {
  Profile profile = gpu_and_memory();
  const auto lane_of = [&](std::size_t place) {
    return network_inside_machine(profile, "m0", k_both).places[place].lane_adds_per_s;
  };
  for (const auto& [threads, rate] : {std::pair(16, 40e9), {4, 20e9}}) {
    test::add_link_rate(profile, k_reduce_sum, "m0", "", rate);
    profile.cells.back().key.threads = threads;
    profile.cells.back().key.sources = 2;
    profile.cells.back().key.dtype = "fp32";
  }
  EXPECT_EQ(lane_of(1), 0); // not known
  profile.cells.back().key.threads = 1;
  EXPECT_EQ(lane_of(1), 20e9);
  EXPECT_EQ(lane_of(0), 0); // a GPU
}

TEST(InsideNetwork, InAMachineOfAClusterPairsOfPlacesCountAsTheyDoAlone) {
  Profile profile = gpu_and_memory();
  profile.machines.front().count = 2;
  test::add_link_rate(profile, k_port_bandwidth, "m0", "", 10e9);
  test::add_link_rate(profile, k_fabric_latency, "m0", "", 3e-6);
  profile.cells.back().unit = "seconds";
  add_write(profile, k_pair_latency, "cuda", 8, 20e-6);
  std::vector<OpenMachine> machines{{"m0", 0, {"m0/gpu0", "m0/numa0"}, {}},
                                    {"m0", 1, {"m0/gpu0", "m0/numa0"}, {}}};
  test::add_link_rate(profile, k_device_to_host_ce, "m0/gpu0", "m0/numa0", 30e9);
  const Network network = network_between_machines(profile, machines, "");
  EXPECT_EQ(network.latency_s[0][1], 20e-6);
  EXPECT_EQ(network.latency_s[2][3], 20e-6);
  EXPECT_EQ(network.latency_s[0][3], 3e-6);
}

TEST(Lanes, ServePortsOfUnequalMachinesInTurnUpToSixtyFour) {
  EXPECT_EQ(common_lanes(1, 0), 1);
  EXPECT_EQ(common_lanes(4, 6), 12);
  EXPECT_EQ(common_lanes(7, 9), 63);
  EXPECT_EQ(common_lanes(7, 10), 10); // 70 would be too many
}

} // namespace
} // namespace reckon
