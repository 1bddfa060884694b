// SPDX-License-Identifier: Apache-2.0
#include "discover/discover.hpp"

#include "core/processors.hpp"
#include "discover/cuda.hpp"
#include "support/environment_variable.hpp"
#include "support/refusals.hpp"

#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>

namespace reckon {
namespace {

std::vector<int> processors_of(const Topology& t) {
  std::vector<int> list;
  for (const TopologyObject* core : t.of_kind(ObjectKind::core)) {
    list.insert(list.end(), core->cpus.begin(), core->cpus.end());
  }
  std::sort(list.begin(), list.end());
  return list;
}

TEST(Discover, FindsExactlyTheProcessorsThisProcessMayUse) {
  const Topology t = discover_topology();
  ASSERT_FALSE(t.objects.empty());
  EXPECT_EQ(t.objects.front().id, "m0");
  EXPECT_FALSE(t.of_kind(ObjectKind::numa_node).empty());
  EXPECT_EQ(processors_of(t), allowed_cpus());
}

TEST(Discover, HonoursAnOuterBinding) {
  const std::vector<int> before = allowed_cpus();
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(before.back()), &one);
  cpu_set_t old;
  ASSERT_EQ(sched_getaffinity(0, sizeof old, &old), 0);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  const Topology t = discover_topology();
  ASSERT_EQ(sched_setaffinity(0, sizeof old, &old), 0);
  EXPECT_EQ(processors_of(t), std::vector<int>{before.back()});
}

TEST(Discover, RefusesToDescribeAnotherMachine) {
  const test::EnvironmentVariable machine("HWLOC_SYNTHETIC", "package:2 core:64 pu:1");
  EXPECT_REFUSED(unavailable, "HWLOC_SYNTHETIC", discover());
}

TEST(Discover, NoGpuIsARemarkWithAReasonAndNoError) {
  const CudaGpus cuda = list_cuda_gpus();
  if (!cuda.gpus.empty()) {
    GTEST_SKIP() << "this machine has a GPU";
  }
  EXPECT_FALSE(cuda.why_none.empty());
  const Discovery found = discover();
  ASSERT_EQ(found.remarks.size(), 1U);
  EXPECT_TRUE(found.remarks[0].starts_with("no CUDA GPU: ")) << found.remarks[0];
}

} // namespace
} // namespace reckon
