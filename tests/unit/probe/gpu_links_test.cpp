// SPDX-License-Identifier: Apache-2.0
#include "probe/gpu.hpp"

#include "core/processors.hpp"
#include "documents/cells.hpp"
#include "fakes.hpp"
#include "probe/links.hpp"
#include "stats/random.hpp"
#include "support/cases.hpp"
#include "support/fake_gpus.hpp"
#include "support/refusals.hpp"
#include "topology/paths.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <iostream>
#include <map>
#include <numeric>
#include <optional>
#include <random>

namespace reckon {
namespace {

using support::FakeGpus;
using testing::HasSubstr;

constexpr double k_gb = 1e9;

/// NUMA nodes, each in a package of its own and with a switch, which has GPUs. Each direction of
/// each link has a capacity, which the copies that pass it share.
struct Tree {
  std::vector<int> gpus_of_node;
  FakeGpus gpus;
  Topology topology;
  std::map<LinkEnd, double> capacity; ///< k_fast unless set
  static constexpr double k_fast = 100 * k_gb;
  std::uint64_t large;
  std::optional<Workbench> bench;
  std::optional<Campaign> campaign;

  explicit Tree(std::vector<int> gpus_by_node, std::uint64_t large_bytes = 64 * 1024)
      : gpus_of_node(std::move(gpus_by_node)),
        gpus(std::accumulate(gpus_of_node.begin(), gpus_of_node.end(), 0)), large(large_bytes) {
    const std::vector<int> cpus = allowed_cpus();
    add("m0", ObjectKind::machine, "");
    int number = 0;
    for (std::size_t n = 0; n < gpus_of_node.size(); ++n) {
      const std::string text = std::to_string(n);
      add("m0/package" + text, ObjectKind::package, "m0");
      TopologyObject& node = add("m0/numa" + text, ObjectKind::numa_node, "m0/package" + text);
      node.bytes = std::uint64_t{1} << 33U;
      node.cpus = {cpus[n % cpus.size()]};
      add("m0/core" + text, ObjectKind::core, "m0/numa" + text).cpus = node.cpus;
      add("m0/switch" + text, ObjectKind::pci_bridge, "m0/numa" + text);
      for (int g = 0; g < gpus_of_node[n]; ++g, ++number) {
        add("m0/gpu" + std::to_string(number), ObjectKind::gpu, "m0/switch" + text).pci_address =
            gpus.devices()[static_cast<std::size_t>(number)].pci_address;
      }
    }
  }

  TopologyObject& add(std::string id, ObjectKind kind, std::string parent) {
    topology.objects.reserve(64); // references stay
    return test::add(topology, std::move(id), kind, std::move(parent));
  }
  void set(const std::string& a, const std::string& b, double both_ways) {
    capacity[{"m0/" + a, "m0/" + b}] = both_ways;
    capacity[{"m0/" + b, "m0/" + a}] = both_ways;
  }
  void all_are_peers() {
    for (std::size_t a = 0; a < gpus.devices().size(); ++a) {
      for (std::size_t b = 0; b < gpus.devices().size(); ++b) {
        gpus.peers.emplace(a, b);
      }
    }
  }

  [[nodiscard]] double capacity_of(const LinkEnd& link) const {
    const auto found = capacity.find(link);
    return found == capacity.end() ? k_fast : found->second;
  }
  [[nodiscard]] std::string id_of(const std::byte* memory) {
    if (const int device = gpus.device_of(memory); device >= 0) {
      return "m0/gpu" + std::to_string(device);
    }
    for (std::size_t n = 0; n < bench->nodes().size(); ++n) {
      for (const std::size_t which : {0U, 1U}) {
        const std::span<std::byte> held = bench->memory(n, which, large);
        if (memory >= held.data() && memory < held.data() + held.size()) {
          return bench->nodes()[n].id;
        }
      }
    }
    return "";
  }

  std::vector<Cell> run(GpuProbeOptions options = {}) {
    options.large_bytes = large;
    gpus.needs = [this](const FakeGpus::Work& work) {
      std::vector<std::string> names;
      const std::string from = id_of(work.from);
      const std::string to = id_of(work.to);
      if (!from.empty() && !to.empty()) {
        for (const LinkEnd& link : path_between(topology, from, to).links) {
          names.push_back(link.text());
        }
      }
      return names;
    };
    gpus.capacity = [this](const std::string& name) {
      const auto arrow = name.find(" > ");
      return capacity_of({name.substr(0, arrow), name.substr(arrow + 3)});
    };
    gpus.seconds = [](const FakeGpus::Work& work) {
      return static_cast<double>(work.bytes) / (2 * k_fast);
    };
    bench.emplace(topology, "m0", gpus.clock(), 1, std::function<bool()>());
    campaign = gpu_campaigns(gpus, *bench, topology, options).back();
    const std::vector<CellPlan> plans = campaign->plans;
    std::vector<Cell> cells;
    if (!plans.empty()) {
      campaign->begin();
    }
    for (const CellPlan& plan : plans) {
      cells.push_back(test::measured(plan, Seconds(0)));
    }
    campaign->end();
    return cells;
  }
};

const Cell& find(const std::vector<Cell>& cells, const std::string& from, const std::string& to) {
  for (const Cell& cell : cells) {
    if (cell.key.from == "m0/" + from && cell.key.to == "m0/" + to) {
      return cell;
    }
  }
  ADD_FAILURE() << "no cell " << from << " > " << to;
  static const Cell none;
  return none;
}

TEST(GpuLinks, ALinkThatGpusShareHasTheCapacityThatItHas) {
  // Three GPUs at 10 GB/s behind a switch with 15: together they get 15, not 30 and not 10.
  Tree tree({3});
  for (const char* const gpu : {"gpu0", "gpu1", "gpu2"}) {
    tree.set(gpu, "switch0", 10 * k_gb);
  }
  tree.set("switch0", "numa0", 15 * k_gb);
  tree.capacity[{"m0/numa0", "m0/switch0"}] = 18 * k_gb;
  const std::vector<Cell> cells = tree.run();
  ASSERT_EQ(cells.size(), 2U); // without peers only one way passes a GPU's own link
  const Cell& up = find(cells, "switch0", "numa0");
  EXPECT_EQ(up.status, CellStatus::ok) << up.reason;
  EXPECT_NEAR(up.p50 / k_gb, 15, 0.3);
  EXPECT_THAT(up.reason, test::Says("3 pairs"));
  EXPECT_EQ(up.key.test, k_link_bandwidth);
  EXPECT_EQ(up.key.state, "pinned");
  EXPECT_EQ(up.key.direction, "one_way");
  const Cell& down = find(cells, "numa0", "switch0");
  EXPECT_EQ(down.status, CellStatus::ok) << down.reason;
  EXPECT_NEAR(down.p50 / k_gb, 18, 0.36);
  EXPECT_EQ(tree.gpus.living(), 0U);
}

TEST(GpuLinks, ALinkThatDoesNotLimitCarriesWhatItCarried) {
  Tree tree({2});
  tree.set("gpu0", "switch0", 10 * k_gb);
  tree.set("gpu1", "switch0", 20 * k_gb); // of unequal ways each keeps its own rate
  const std::vector<Cell> cells = tree.run();
  ASSERT_EQ(cells.size(), 2U);
  for (const Cell& cell : cells) {
    EXPECT_EQ(cell.status, CellStatus::noisy) << cell.key.text();
    EXPECT_NEAR(cell.p50 / k_gb, 30, 0.6);
    EXPECT_THAT(cell.reason, test::Says("carry"));
  }
}

TEST(GpuLinks, AnUnfairLinkIsNotTakenForAWiderOne) {
  // Both could do 10, and of 12 the first gets 9 while both copy: copies of one length would end
  // after 1/9 and 1/9 + (1 - 3/9) / 10 = 0.178 seconds per GB, which makes 9 + 5.6 GB/s.
  Tree tree({2});
  tree.set("gpu0", "switch0", 10 * k_gb);
  tree.set("gpu1", "switch0", 10 * k_gb);
  tree.set("switch0", "numa0", 12 * k_gb);
  tree.gpus.weight = [](const FakeGpus::Work& work) { return work.device == 0 ? 3 : 1; };
  for (const Cell& cell : tree.run()) {
    EXPECT_EQ(cell.status, CellStatus::ok) << cell.reason;
    EXPECT_NEAR(cell.p50 / k_gb, 12, 0.24) << cell.key.text();
  }
}

TEST(GpuLinks, PeersShowWhatAGpusOwnLinkCarries) {
  Tree tree({2});
  tree.all_are_peers();
  tree.set("gpu0", "switch0", 10 * k_gb);
  tree.set("gpu1", "switch0", 12 * k_gb);
  const std::vector<Cell> cells = tree.run();
  // gpu0's to the other GPU and to the host share its link, at 10; gpu1's at 12, but what it sends
  // to gpu0 comes no faster than 10: alone 10 + 12, together 12.
  EXPECT_EQ(cells.size(), 6U);
  EXPECT_EQ(find(cells, "gpu0", "switch0").status, CellStatus::ok);
  EXPECT_NEAR(find(cells, "gpu0", "switch0").p50 / k_gb, 10, 0.2);
  EXPECT_EQ(find(cells, "gpu1", "switch0").status, CellStatus::ok);
  EXPECT_NEAR(find(cells, "gpu1", "switch0").p50 / k_gb, 12, 0.4);
}

TEST(GpuLinks, TheLinkBetweenSocketsIsSharedByCopiesToTheOtherNode) {
  Tree tree({2, 1});
  for (const auto& [gpu, above] :
       {std::pair("gpu0", "switch0"), {"gpu1", "switch0"}, {"gpu2", "switch1"}}) {
    tree.set(gpu, above, 10 * k_gb);
  }
  tree.set("numa0", "numa1", 14 * k_gb);
  const std::vector<Cell> cells = tree.run();
  const Cell& across = find(cells, "numa0", "numa1");
  EXPECT_EQ(across.status, CellStatus::ok) << across.reason;
  EXPECT_NEAR(across.p50 / k_gb, 14, 0.3);
  EXPECT_EQ(find(cells, "switch0", "numa0").status, CellStatus::noisy); // 20 fit through
  EXPECT_NEAR(find(cells, "switch0", "numa0").p50 / k_gb, 20, 0.4);
}

TEST(GpuLinks, GpusThatSomethingUnknownJoinsAreNotCopied) {
  const auto ways = [](Tree& tree, bool nvlink) {
    tree.all_are_peers();
    return tree.run({.nvlink = nvlink}).size();
  };
  Tree pcie({2});
  EXPECT_EQ(ways(pcie, true), 6U);
  Tree unknown({2}); // CUDA knows of an NVLink, the tree does not
  unknown.gpus.atomics = {{0, 1}, {1, 0}};
  EXPECT_EQ(ways(unknown, true), 2U);
  // Links that the tree knows: GPUs no longer meet in the switch, but two of a GPU's ways do where
  // its NVLinks end in a switch of these.
  const auto joined = [](Tree& tree) -> Tree& {
    tree.add("m0/nvswitch", ObjectKind::link_switch, "m0");
    for (const char* const gpu : {"m0/gpu0", "m0/gpu1", "m0/gpu2"}) {
      PeerLink& link = tree.topology.links.emplace_back();
      link.from = gpu;
      link.to = "m0/nvswitch";
      link.kind = PeerLinkKind::nvlink;
      link.count = 4;
    }
    return tree;
  };
  Tree nvswitch({3});
  EXPECT_EQ(ways(joined(nvswitch), true), 2U + 6U);
  Tree left_out({3});
  EXPECT_EQ(ways(joined(left_out), false), 2U);
}

TEST(GpuLinks, CopiesThatWereNotMadeFailTheCampaignAndLeaveNothing) {
  Tree tree({2});
  tree.gpus.lose_copies = true;
  EXPECT_REFUSED(operation, "wrong", tree.run());
  EXPECT_EQ(tree.gpus.living(), 0U);
}

TEST(GpuLinks, SaysWhatItWouldTake) {
  Tree tree({2});
  // Four ways alone and two links: 6 measurements of 12 windows of 1 ms.
  EXPECT_REFUSED(unavailable, "6 measurements", tree.run({.links_time = Seconds(0.01)}));
}

/// Whatever the tree: no link is said to carry more than it can, and a link that limits and stands
/// alone has its capacity. Within 5 %: ways of a measurement end up to 3 % of it before each other,
/// and a link counts as full at 95 % of the most that it carried.
TEST(GpuLinks, NeverSaysMoreThanALinkCarries) {
  constexpr std::uint64_t k_seed = 20;
  std::cout << "seed " << k_seed << "\n";
  std::mt19937_64 random(k_seed);
  const auto one_of = [&](std::uint64_t least, std::uint64_t most) {
    return static_cast<int>(least + uniform_index(random, most - least + 1));
  };
  int limits = 0;
  int carries = 0;
  constexpr int k_cases = support::cases(200);
  for (int i = 0; i < k_cases; ++i) {
    std::vector<int> counts;
    for (int n = one_of(1, 2); n > 0; --n) {
      counts.push_back(one_of(1, 3));
    }
    Tree tree(counts, 16 * 1024);
    if (one_of(0, 1) == 1) {
      tree.all_are_peers();
    }
    int gpu = 0;
    for (std::size_t n = 0; n < counts.size(); ++n) {
      const std::string above = "switch" + std::to_string(n);
      tree.set(above, "numa" + std::to_string(n), one_of(8, 40) * k_gb);
      for (int g = 0; g < counts[n]; ++g) {
        tree.set("gpu" + std::to_string(gpu++), above, one_of(5, 15) * k_gb);
      }
    }
    tree.set("numa0", "numa1", one_of(5, 40) * k_gb);
    for (const Cell& cell : tree.run()) {
      if (!cell.has_value()) {
        continue;
      }
      const double true_rate = tree.capacity_of({cell.key.from, cell.key.to});
      EXPECT_LE(cell.p50, 1.05 * true_rate) << i << ": " << cell.key.text() << " " << cell.reason;
      const bool alone = cell.reason.find("thinner") == std::string::npos;
      if (cell.status == CellStatus::ok && alone) {
        EXPECT_GE(cell.p50, 0.95 * true_rate) << i << ": " << cell.key.text() << " " << cell.reason;
        ++limits;
      }
      carries += cell.status == CellStatus::noisy ? 1 : 0;
    }
  }
  std::cout << limits << " links limit, " << carries << " may carry more\n";
  EXPECT_GT(limits, k_cases / 4);
  EXPECT_GT(carries, k_cases / 4);
}

} // namespace
} // namespace reckon
