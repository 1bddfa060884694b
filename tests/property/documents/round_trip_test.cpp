// SPDX-License-Identifier: Apache-2.0
#include "core/json.hpp"
#include "documents/json.hpp"
#include "support/random_cases.hpp"
#include "support/random_documents.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace reckon {
namespace {

using test::for_cases;
using test::Random;

constexpr std::uint64_t k_seed = 20240611;
constexpr int k_cases = 300;

/// Draws documents, and expects each to come back from its own text: equal member by member, and
/// equal text.
template <class T>
void expect_round_trips(T (*random_document)(std::mt19937_64&)) {
  for_cases(k_seed, k_cases, [&](Random& random) {
    const T document = random_document(random);
    const std::string text = canonical_text(document);
    SCOPED_TRACE(text);
    Document read;
    ASSERT_NO_THROW(read = document_from_json(parse_json(text, "f"), "f"));
    ASSERT_TRUE(std::holds_alternative<T>(read));
    ASSERT_TRUE(std::get<T>(read) == document);
    ASSERT_EQ(canonical_text(read), text);
  });
}

TEST(RoundTrip, OfRandomDocuments) {
  expect_round_trips(test::random_profile);
  expect_round_trips(test::random_workload);
  expect_round_trips(test::random_roles);
  expect_round_trips(test::random_plan);
  expect_round_trips(test::random_report);
}

/// A plan of `random` with trees and parts like those of clusters: trees that are others moved by
/// some machines or places, parts that go to the ranks in turn, mistakes in the pattern.
Plan plan_of_turns(Random& random) {
  Plan plan = test::random_plan(random);
  const std::size_t places = random.whole(1, 8), machines = random.whole(1, 12);
  const std::size_t ranks = places * machines;
  plan.ranks.assign(ranks, PlanRank{.machine = "m0", .worker = true, .lanes = 4});
  plan.ring_order.clear();
  plan.routing.clear();
  plan.tensors.clear();
  plan.one_queue = false;
  plan.torus.reset();
  plan.passes.reset();
  plan.parts = {};
  plan.trees.clear();
  std::vector<std::int64_t> first(ranks); // no circles: each below one before it
  for (std::size_t rank = 1; rank < ranks; ++rank) {
    first[rank] = random.coin() ? 0 : static_cast<std::int64_t>(random.below(rank));
  }
  for (std::size_t root = 0; root < ranks; ++root) {
    const auto moved = [&](std::size_t rank) {
      return (rank / places + root / places) % machines * places +
             (rank % places + root % places) % places;
    };
    SumTree tree{"tree", std::vector<std::int64_t>(ranks), {}, 1 / static_cast<double>(ranks)};
    for (std::size_t rank = 0; rank < ranks; ++rank) {
      tree.up[moved(rank)] =
          static_cast<std::int64_t>(moved(static_cast<std::size_t>(first[rank])));
    }
    tree.down = tree.up;
    if (random.below(4) == 0) {
      tree.down[random.below(ranks)] = -1;
    }
    plan.trees.push_back(std::move(tree));
  }
  std::uint64_t at = 0;
  const std::uint64_t step = random.whole(1, 5);
  for (std::uint64_t part = 0, parts = random.whole(1, 200); part < parts; ++part) {
    const std::uint64_t server = random.below(20) == 0 ? random.below(ranks) : part * step % ranks;
    plan.parts.offset_bytes.push_back(at);
    plan.parts.bytes.push_back(4 * (100 + part * step % 3 % 2));
    plan.parts.server.push_back(server);
    plan.parts.lane.push_back(part / ranks % 4);
    plan.parts.tree.push_back(server);
    plan.ranks[server].assigned_bytes += plan.parts.bytes.back();
    at += plan.parts.bytes.back();
  }
  plan.gradient_bytes = at;
  plan.runs = {{0, at, DType::fp32}};
  return plan;
}

TEST(RoundTrip, OfPlansWhoseTreesAndPartsRepeat) {
  expect_round_trips<Plan>([](std::mt19937_64& random) {
    return plan_of_turns(static_cast<Random&>(random)); // which it is
  });
}

TEST(RoundTrip, TheOrderOfCellsInMemoryDoesNotMatter) {
  for_cases(k_seed, k_cases, [](Random& random) {
    Profile profile = test::random_profile(random);
    const std::string text = canonical_text(profile);
    std::shuffle(profile.cells.begin(), profile.cells.end(), random);
    std::shuffle(profile.fits.begin(), profile.fits.end(), random);
    ASSERT_EQ(canonical_text(profile), text);
  });
}

TEST(Layout, TensorsLieOneAfterAnotherInsideTheRunOfTheirType) {
  for_cases(k_seed, k_cases, [](Random& random) {
    const Workload workload = test::random_workload(random);
    const GradientLayout layout = layout_of(workload);
    ASSERT_EQ(layout.tensor_offset_bytes.size(), workload.tensors.size());
    std::uint64_t end = 0;
    std::uint64_t sum = 0;
    std::size_t run = 0;
    for (std::size_t t = 0; t < workload.tensors.size(); ++t) {
      const Tensor& tensor = workload.tensors[t];
      const std::uint64_t offset = layout.tensor_offset_bytes[t];
      if (t > 0 && tensor.dtype != workload.tensors[t - 1].dtype) {
        ++run;
        ASSERT_EQ(offset % 64, 0U);
        ASSERT_LT(offset - end, 64U);
        ASSERT_EQ(offset, layout.runs.at(run).offset_bytes);
      } else {
        ASSERT_EQ(offset, end);
      }
      ASSERT_EQ(layout.runs.at(run).dtype, tensor.dtype);
      end = offset + tensor.bytes();
      ASSERT_LE(end, layout.runs[run].offset_bytes + layout.runs[run].bytes);
    }
    for (const DTypeRun& r : layout.runs) {
      sum += r.bytes;
    }
    ASSERT_EQ(run + 1, layout.runs.size());
    ASSERT_EQ(end, layout.total_bytes);
    ASSERT_EQ(sum, workload.bytes());
  });
}

} // namespace
} // namespace reckon
