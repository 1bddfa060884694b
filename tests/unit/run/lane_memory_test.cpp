// SPDX-License-Identifier: Apache-2.0
#include "run/lane_memory.hpp"

#include "core/processors.hpp"
#include "movers/handle.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <unistd.h>

namespace reckon {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr std::size_t k_page = 4096;

Op copy(Slice from, Slice to, std::uint64_t bytes) {
  return {.kind = OpKind::copy, .source = from, .destination = to, .bytes = bytes};
}

TEST(PageHomes, AreOnTheNodeOfTheFirstLaneWhoseOpsNameThem) {
  // Two buffers of four pages each, where the machine has pages of 4 KiB.
  const Mapping a(-1, 4 * k_page, "a"), b(-1, 4 * k_page, "b");
  const std::vector<std::span<std::byte>> views{a.bytes(), b.bytes()};
  RankProgram program;
  program.lanes.resize(3);
  // Lane 0: the first page of a, and bytes of b's first two pages.
  program.lanes[0].append(copy({0, 10}, {1, k_page - 1}, 2), {});
  // Lane 1: a peer's destination is not here; a source that begins in a page of lane 0 is.
  program.lanes[1].append_write(0, 1, 0, {0, k_page - 1}, {1, 3 * k_page}, k_page, {});
  program.lanes[1].append_reduce({.destination = {1, 2 * k_page}, .bytes = 1},
                                 std::vector<Slice>{{1, 3 * k_page}, {0, 3 * k_page}}, {});
  // Lane 2 is nowhere, and nothing of a's page 2 is named by the others.
  program.lanes[2].append(copy({0, 2 * k_page}, {0, 2 * k_page + 8}, 8), {});
  const auto page = [&](const Mapping& of, std::size_t n) {
    return of.bytes().data() + n * k_page;
  };
  EXPECT_THAT(
      page_homes(program, views, std::vector<std::optional<int>>{1, 0, std::nullopt}, k_page),
      ElementsAre(PageHome{page(a, 0), 1}, PageHome{page(a, 1), 0}, PageHome{page(a, 3), 0},
                  PageHome{page(b, 0), 1}, PageHome{page(b, 1), 1}, PageHome{page(b, 2), 0},
                  PageHome{page(b, 3), 0}));
}

TEST(PageHomes, BeginWhereThePageOfAnUnalignedBufferDoes) {
  const Mapping memory(-1, 2 * k_page, "m");
  const std::vector<std::span<std::byte>> views{memory.bytes().subspan(100, k_page)};
  RankProgram program;
  program.lanes.resize(1);
  // Bytes 3995 and 3996 of the buffer are the last of the first page and the first of the second.
  program.lanes[0].append(copy({0, 0}, {0, 3995}, 1), {});
  const std::vector<std::optional<int>> nodes{0};
  EXPECT_THAT(page_homes(program, views, nodes, k_page),
              ElementsAre(PageHome{memory.bytes().data(), 0}));
  program.lanes[0].append(copy({0, 0}, {0, 3996}, 1), {});
  EXPECT_EQ(page_homes(program, views, nodes, k_page).size(), 2U);
  program.lanes[0] = {};
  program.lanes[0].append(copy({0, 0}, {0, 0}, 0), {}); // of no bytes: no page
  EXPECT_THAT(page_homes(program, views, nodes, k_page), IsEmpty());
}

TEST(MoveHome, SaysWhatTheKernelSaysOfTheMachinesOwnNode) {
  const std::vector<int> cpus = allowed_cpus();
  const std::optional<int> node = cpus.empty() ? std::nullopt : numa_node_of_cpu(cpus.front());
  if (!node) {
    GTEST_SKIP() << "the kernel does not say which NUMA node a processor is in";
  }
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const Mapping memory(-1, 3 * page, "m");
  std::vector<PageHome> homes;
  for (std::size_t p = 0; p < 3; ++p) {
    homes.push_back({memory.bytes().data() + p * page, *node});
  }
  const PageMove moved = move_home(homes);
  if (!moved.problem.empty() && moved.elsewhere == moved.pages) {
    GTEST_SKIP() << moved.problem << ": not allowed here";
  }
  EXPECT_EQ(moved.pages, 3U);
  EXPECT_EQ(moved.elsewhere, 0U);
  // Nobody has this node: pages stay where they are, and that is said.
  homes[1].node = 1000;
  const PageMove none = move_home(homes);
  EXPECT_EQ(none.elsewhere, 1U);
}

} // namespace
} // namespace reckon
