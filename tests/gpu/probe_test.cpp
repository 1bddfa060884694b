// SPDX-License-Identifier: Apache-2.0
#include "gpu.hpp"

#include "discover/discover.hpp"
#include "documents/cells.hpp"
#include "probe/gpu.hpp"
#include "probe/gpu_places.hpp"
#include "probe/sampling.hpp"

#include <map>
#include <memory>

namespace reckon {
namespace {

class GpuProbe : public test::OnGpu {};

TEST_F(GpuProbe, MeasuresEveryCellOrSaysWhyNot) {
  const RunClock clock;
  const Topology topology = discover_topology();
  ASSERT_FALSE(topology.of_kind(ObjectKind::gpu).empty());
  Workbench bench(topology, "m0", clock, 1, {});
  GpuProbeOptions options;
  options.large_bytes = 64U << 20U;
  std::map<std::string, double> best; // by case
  for (const Campaign& campaign : gpu_campaigns(gpus(), bench, topology, options)) {
    if (campaign.begin) {
      continue; // measured as a whole: the next test
    }
    for (const CellPlan& plan : campaign.plans) {
      Cell cell = empty_cell(plan);
      try {
        plan.measure(cell, Seconds(0.05));
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), ErrorKind::unavailable) << plan.key.text() << ": " << error.what();
        continue;
      }
      EXPECT_NE(cell.status, CellStatus::mismatch) << plan.key.text() << ": " << cell.reason;
      if (cell.has_value()) {
        EXPECT_GT(cell.p50, 0) << plan.key.text();
        best[plan.key.test] = std::max(best[plan.key.test], cell.p50);
      }
    }
    campaign.end();
  }
  // What no machine of today does not do: a bound for units gone wrong, not a judgement.
  for (const char* const test : {k_host_to_device_ce, k_device_to_host_ce, k_device_local_copy}) {
    EXPECT_GT(best[test], 0.5e9) << test;
    EXPECT_LT(best[test], 2e13) << test;
  }
  EXPECT_GT(best[k_device_local_copy], best[k_host_to_device_ce]);
  EXPECT_GT(best[k_host_device_latency], 50e-9);
  EXPECT_LT(best[k_host_device_latency], 100e-6);
}

TEST_F(GpuProbe, FindsWhatSharedLinksCarry) {
  const RunClock clock;
  const Topology topology = discover_topology();
  Workbench bench(topology, "m0", clock, 1, {});
  GpuProbeOptions options;
  options.large_bytes = 64U << 20U;
  const auto places = std::make_shared<GpuPlaces>(gpus(), bench, topology, options);
  const Campaign campaign = gpu_links_campaign(places, topology, Seconds(30));
  const std::vector<CellPlan> plans = campaign.plans;
  if (plans.empty()) {
    GTEST_SKIP() << "no link here that the ways of several GPUs pass";
  }
  campaign.begin(); // throws where a copy differs
  for (const CellPlan& plan : plans) {
    Cell cell = empty_cell(plan);
    plan.measure(cell, Seconds(0));
    EXPECT_NE(cell.status, CellStatus::failed) << plan.key.text() << ": " << cell.reason;
    EXPECT_FALSE(cell.reason.empty()) << plan.key.text();
    if (cell.has_value()) { // bounds for units gone wrong, as above
      EXPECT_GT(cell.p50, 0.1e9) << plan.key.text();
      EXPECT_LT(cell.p50, 2e13) << plan.key.text();
    }
  }
  campaign.end();
}

} // namespace
} // namespace reckon
