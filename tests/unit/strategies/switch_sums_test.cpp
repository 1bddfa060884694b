// SPDX-License-Identifier: Apache-2.0
#include "strategies/forest/switch_sums.hpp"

#include "strategies/forest/optimum.hpp"
#include "strategies/forest/trees.hpp"
#include "support/gpu_machines.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace reckon {
namespace {

using test::GpuMachine;

constexpr double k_link = 100e9; ///< bytes per second of a GPU to the switch, each way

Network network_of(const GpuMachine& machine, bool switches, std::size_t machines = 1) {
  Profile profile = test::profile_of(machine);
  profile.machines.front().count = machines;
  const std::vector<std::string> gpus = profile.topology.ids_in("m0", ObjectKind::gpu);
  if (machines == 1) {
    return network_inside_machine(
        profile, "m0",
        {.workers = gpus, .relays = std::vector<std::string>(), .switches = switches});
  }
  std::vector<OpenMachine> opened;
  for (std::size_t m = 0; m < machines; ++m) {
    opened.push_back({.group = "m0", .number = m, .workers = gpus, .relays = {}});
    opened.back().switches = switches;
  }
  return network_between_machines(profile, opened, "");
}

GpuMachine gpus_on_switch(int gpus, bool sums = true) {
  return {.gpus = gpus, .nvlink = k_link, .sums = sums};
}

/// For each byte on links of 1 byte per second, beside a bound of `slow` times what trees of GPUs
/// need; 0 where nothing is said.
double said(const Network& network, double bound_seconds = 1e9) {
  Prediction prediction;
  prediction.bound_seconds = bound_seconds;
  const auto sums = switch_sums(network, k_link, prediction);
  return sums ? sums->bound_seconds : 0;
}

TEST(SwitchSums, OfOneMachineMoveOnceAndAnNth) {
  // Of its own n-th each GPU asks the switch, which takes 1 from each, and gives the sum to be sent
  // to all: 1 + 1/n there and back. Trees of GPUs need 2 (n - 1)/n, less up to n = 3.
  for (const int n : {2, 3, 4, 5, 8}) {
    SCOPED_TRACE(n);
    const double trees = 2.0 * (n - 1) / n, in_switch = 1 + 1.0 / n;
    EXPECT_NEAR(k_link * least_of_trees(network_of(gpus_on_switch(n), false)), trees, 1e-6);
    EXPECT_NEAR(said(network_of(gpus_on_switch(n), true)), std::min(trees, in_switch), 1e-6);
    const bool helps = in_switch < trees - 1e-9;
    EXPECT_EQ(said(network_of(gpus_on_switch(n), true), trees) > 0, helps);
  }
}

TEST(SwitchSums, AreOfSwitchesThatSum) {
  EXPECT_EQ(said(network_of(gpus_on_switch(8, false), true)), 0);
  EXPECT_EQ(said(network_of(gpus_on_switch(8), false)), 0);
}

TEST(SwitchSums, HelpNoHalfOfAnAllReduce) {
  // One gradient leaves each GPU, or enters it: trees of GPUs need (n - 1)/n, and 1 from one root.
  for (const Collective collective : {Collective::reduce_scatter, Collective::all_gather,
                                      Collective::broadcast, Collective::reduce}) {
    Network network = network_of(gpus_on_switch(4), true);
    network.collective = collective;
    const double trees = has_root(collective) ? 1 : 0.75;
    EXPECT_NEAR(k_link * least_of_trees(network), trees, 1e-6) << name_of(collective);
    EXPECT_EQ(said(network, trees), 0);
  }
}

TEST(SwitchSums, BetweenMachinesTheSlowestLinkStillCounts) {
  // Two machines of 4: a port of 10 GB/s for each GPU, and one gradient leaves each machine: 2.5.
  GpuMachine machine = gpus_on_switch(4);
  machine.pcie = machine.nic_pcie = PcieLink{32e9, 16};
  machine.nics = 4;
  machine.nic = 10e9;
  EXPECT_NEAR(said(network_of(machine, true, 2)), 2.5, 1e-4);
  // Of ports that limit nothing: less than trees of GPUs need, and no less than each GPU must send.
  machine.nic = 1e12;
  const double trees = k_link * least_of_trees(network_of(machine, false, 2)),
               in_switch = said(network_of(machine, true, 2));
  EXPECT_LT(in_switch, 0.95 * trees);
  EXPECT_GE(in_switch, k_link / (k_link + 64e9));
}

/// By name of the station.
double load_of(const Network& network, const Tree& tree, const std::string& name) {
  const std::vector<double> loads = loads_of(network, tree);
  for (std::size_t s = 0; s < loads.size(); ++s) {
    if (network.stations[s].name == name) {
      return loads[s];
    }
  }
  ADD_FAILURE() << "no station " << name;
  return 0;
}

TEST(SwitchSums, ATreeOverTheSwitchLoadsBothWaysOfItsRoot) {
  Profile profile = test::profile_of(gpus_on_switch(4));
  for (const std::string& gpu : profile.topology.ids_in("m0", ObjectKind::gpu)) {
    Cell& cell = profile.cells.emplace_back();
    cell.key = {.test = "gpu_reduce_sum", .from = gpu, .sources = 2};
    cell.unit = "bytes_per_second";
    cell.status = CellStatus::published;
    cell.p50 = cell.min = cell.max = cell.p99 = 1e12;
  }
  Network network = network_inside_machine(
      profile, "m0", {.relays = std::vector<std::string>(), .switches = true});
  ASSERT_EQ(network.places.size(), 5U);
  ASSERT_TRUE(network.places[4].link_switch);
  Tree tree{{4, 1, 4, 4, 1}, {4, 1, 4, 4, 1}}; // all to the switch, which GPU 1 asks
  ASSERT_TRUE(is_possible(network, tree));
  for (const char* const gpu : {"gpu0", "gpu1", "gpu2", "gpu3"}) {
    const double both = std::string(gpu) == "gpu1" ? 2 : 1;
    EXPECT_EQ(load_of(network, tree, std::string(gpu) + " > nvswitch0"), both);
    EXPECT_EQ(load_of(network, tree, std::string("nvswitch0 > ") + gpu), both);
    EXPECT_EQ(load_of(network, tree, std::string("sums ") + gpu), 0); // the switch sums
  }
  // A switch keeps no sum.
  tree = {{4, 4, 4, 4, 4}, {4, 4, 4, 4, 4}};
  EXPECT_FALSE(is_possible(network, tree));
}

} // namespace
} // namespace reckon
