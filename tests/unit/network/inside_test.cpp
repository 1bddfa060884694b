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

} // namespace
} // namespace reckon
