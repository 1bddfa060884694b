// SPDX-License-Identifier: Apache-2.0
#include "discover/environment.hpp"

#include "loaded.hpp"

#include <gtest/gtest.h>

#include <map>

namespace reckon {
namespace {

TEST(Environment, ReadsWhatThereIsAndLeavesOutTheRest) {
  const Environment e = describe_environment(test::files(
      {{"/proc/cpuinfo", "processor\t: 0\nmodel\t\t: 17\nmodel name\t: Some CPU @ 2 GHz\n"
                         "flags\t\t: fpu hypervisor sse2\n"},
       {"/sys/devices/system/clocksource/clocksource0/current_clocksource", "tsc"},
       {"/sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never"}}));
  EXPECT_EQ(e.facts.at("cpu"), "Some CPU @ 2 GHz"); // not "model : 17"
  EXPECT_EQ(e.facts.at("virtual_machine"), "yes");
  EXPECT_EQ(e.facts.at("transparent_huge_pages"), "madvise");
  EXPECT_EQ(e.facts.at("clock_source"), "tsc");
  EXPECT_FALSE(e.facts.contains("governor"));
  EXPECT_FALSE(e.facts.contains("memory_modules"));
  EXPECT_TRUE(e.warnings.empty());
  for (const char* const always : {"host", "kernel", "hwloc", "reckon", "compiler"}) {
    EXPECT_TRUE(e.facts.contains(always)) << always;
  }
}

TEST(Environment, WarnsOfASlowClockAndALazyGovernor) {
  const Environment e = describe_environment(
      test::files({{"/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "powersave"},
                   {"/sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet"}}));
  ASSERT_EQ(e.warnings.size(), 2U);
  EXPECT_NE(e.warnings[0].find("powersave"), std::string::npos);
  EXPECT_NE(e.warnings[1].find("hpet"), std::string::npos);
}

TopologyObject part(std::string id, ObjectKind kind, std::string name) {
  TopologyObject o{.id = std::move(id),
                   .kind = kind,
                   .parent = kind == ObjectKind::machine ? "" : "m0",
                   .name = std::move(name)};
  return o;
}

Topology tree() {
  Topology t;
  t.objects = {part("m0", ObjectKind::machine, "box"), part("m0/numa0", ObjectKind::numa_node, ""),
               part("m0/core0", ObjectKind::core, ""), part("m0/core1", ObjectKind::core, ""),
               part("m0/nic0", ObjectKind::nic, "eth0")};
  t.objects[1].bytes = 1000;
  t.objects[1].cpus = {0, 1};
  t.objects[2].cpus = {0};
  t.objects[3].cpus = {1};
  t.objects[4].link_bytes_per_second = 1.25e9;
  return t;
}

TEST(Fingerprint, ChangesWithTheMachineOnly) {
  const std::string base = fingerprint(tree(), "cpu");
  Topology t = tree();
  t.objects[1].bytes = 2000; // memory may be hot-plugged
  t.objects[0].name = "renamed";
  t.objects.push_back(part("m0/bridge0", ObjectKind::pci_bridge, "")); // firmware hides some
  EXPECT_EQ(fingerprint(t, "cpu"), base);
  t = tree();
  t.objects.erase(t.objects.begin() + 3); // one core fewer
  EXPECT_NE(fingerprint(t, "cpu"), base);
  t = tree();
  t.objects[4].link_bytes_per_second = 12.5e9;
  EXPECT_NE(fingerprint(t, "cpu"), base);
  EXPECT_NE(fingerprint(tree(), "another cpu"), base);
  EXPECT_TRUE(base.starts_with("sha256:"));
}

} // namespace
} // namespace reckon
