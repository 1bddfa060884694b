// SPDX-License-Identifier: Apache-2.0
#include "fixtures.hpp"
#include "strategies/lower.hpp"
#include "strategies/parts.hpp"
#include "strategies/predict.hpp"
#include "strategies/ways.hpp"
#include "support/random_cases.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace reckon {
namespace {

using namespace test;

/// As many parts of that size from each of n ranks, in turn on the lanes, all under way at once.
Plan ring_plan(const CostModel& model, std::uint64_t parts_each, std::uint64_t part_bytes) {
  Plan plan;
  plan.strategy = "ring";
  const std::uint64_t n = model.ranks().size();
  const auto lanes = static_cast<std::uint64_t>(model.ranks().front().lanes);
  for (std::uint64_t p = 0; p < n * parts_each; ++p) {
    plan.parts.offset_bytes.push_back(p * part_bytes);
    plan.parts.bytes.push_back(part_bytes);
    plan.parts.server.push_back(p % n);
    plan.parts.lane.push_back(p / n % lanes);
  }
  for (const RankModel& rank : model.ranks()) {
    PlanRank& r = plan.ranks.emplace_back();
    r.machine = rank.machine;
    r.worker = r.server = true;
    r.lanes = rank.lanes;
    r.port_bytes_per_second = rank.port_bytes_per_s;
  }
  plan.gradient_bytes = n * parts_each * part_bytes;
  plan.runs = {{0, plan.gradient_bytes, DType::fp32}};
  plan.part_bytes = part_bytes;
  plan.window_parts = parts_each;
  return plan;
}

Cell write_latency(double seconds) {
  CellKey latency{.test = "fabric_write_latency", .from = "gpu", .transport = "verbs"};
  return published(latency, "seconds", seconds);
}

TEST(RingFormula, OfOneWorkerIsNothing) {
  // Sizes of parts are compared by it: rounding must not make it less than nothing.
  for (const double latency_s : {5e-6, 1.5e-6, 1e-3}) {
    Profile profile = cluster(11.25e9, 11.25e9);
    profile.cells.push_back(write_latency(latency_s));
    const CostModel model(profile, default_roles(profile, 1, 1, 1), "", {});
    const Load load = load_of(solve("ring", model, 1e6), model, std::vector<double>{1e6, 0});
    PartShape shape;
    for (shape.part_bytes = 1 << 10; shape.part_bytes <= 1 << 26; shape.part_bytes *= 2) {
      EXPECT_EQ(ring_chain_seconds(model, load, shape), 0) << shape.part_bytes;
    }
    PlanOptions options{.strategy = "auto"};
    EXPECT_GT(
        plan_for(profile, workload({{"t", 16U << 20U, DType::fp32}}), 1, 1, options).parts.size(),
        0U);
  }
}

TEST(RingFormula, IsNearThePlay) {
  std::vector<double> errors;
  for_cases(14, 200, [&](Random& random) {
    const auto factor = [&](double most) { // from 1 on, equally often at any scale
      return std::pow(most, random.uniform(0, 1));
    };
    const auto n = static_cast<std::uint64_t>(2 * factor(32));
    const std::uint64_t parts = random.whole(1, n > 24 ? 3 : n > 8 ? 8 : 24);
    const std::uint64_t part = 4 * random.whole(256, 16384);
    const double port = 1e9 * factor(10), write_s = static_cast<double>(part) / port;
    Profile profile = cluster(port, port);
    profile.cells.push_back(write_latency(write_s * 0.01 * factor(2000)));
    profile.cells.push_back(sum_rate("gpu", 1, port * 0.3 * factor(300)));
    const Roles roles = default_roles(profile, n, 0, static_cast<int>(random.whole(1, 3)));
    const Ways ways(profile, roles, "", {});
    const CostModel& model = ways.model();
    const Plan plan = ring_plan(model, parts, part);
    PartShape shape;
    shape.part_bytes = static_cast<double>(part);
    shape.part_count = static_cast<double>(n * parts);
    shape.window_parts = static_cast<double>(parts);
    const auto whole = static_cast<double>(plan.gradient_bytes);
    const Solution ring = solve("ring", model, whole);
    const Prediction formula =
        predict(model, ring, load_of(ring, model, loads_of(plan.parts, n)), shape);
    const double played =
        play(lower(plan), ways.between(shape.part_bytes).network, ways.op_cost(shape.part_bytes))
            .total_seconds;
    // Where lanes add up no slower than ports bring it, what lanes do in turn is all that differs;
    // else how many parts go round together decides, of which there are whole ones only.
    const double sum_s = static_cast<double>(part) /
                         model.sum_rate(model.ranks()[0], DType::fp32, 2, shape.part_bytes).mid;
    const double tolerance = sum_s <= write_s * model.ranks()[0].lanes ? 0.05 : 0.12;
    EXPECT_NEAR(formula.mid_seconds / played, 1, tolerance)
        << n << " ranks with " << parts << " parts each, " << model.ranks()[0].lanes
        << " lanes; a write takes " << write_s << " s, a sum " << sum_s << " s, latency "
        << model.latency_s() << " s";
    errors.push_back(std::abs(formula.mid_seconds / played - 1));
  });
  std::nth_element(errors.begin(), errors.begin() + 150, errors.end());
  EXPECT_LE(errors[150], 0.01); // three of four
}

} // namespace
} // namespace reckon
