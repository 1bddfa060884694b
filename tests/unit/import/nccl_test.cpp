// SPDX-License-Identifier: Apache-2.0
#include "imported.hpp"
#include "support/messages.hpp"

#include <gmock/gmock.h>

namespace reckon {
namespace {

using namespace testing;

const Cell& of_size(const Profile& profile, const std::string& test, std::uint64_t bytes) {
  CellKey key = key_of(test);
  key.bytes = bytes;
  return only(profile, key);
}

// ---------------------------------------------------------------- several groups

TEST(NcclGroups, that_work_at_once_are_no_test_of_one_alone) {
  // Ranks 0 and 2 are group 0, 1 and 3 group 1: rings over two machines, of two ranks each.
  const Profile p = imported(golden_text("nccl-groups.txt"));
  const Cell& cell = of_size(p, "nccl_groups_all_reduce", 268435456);
  EXPECT_DOUBLE_EQ(cell.p50, 5522.1e-6);
  EXPECT_EQ(cell.key.sources, 2);
  EXPECT_EQ(cell.key.pairs, 2);
  EXPECT_TRUE(std::none_of(p.cells.begin(), p.cells.end(), [](const Cell& c) {
    return c.key.test.starts_with("nccl_all_reduce");
  }));
  EXPECT_EQ(p.topology.of_kind(ObjectKind::gpu).size(), 4U);
}

TEST(NcclGroups, within_machines_are_no_groups_between_them) {
  std::string text = golden_text("nccl-groups.txt");
  text = replaced(text, "Rank  1 Group  1", "Rank  1 Group  0");
  text = replaced(text, "Rank  2 Group  0", "Rank  2 Group  1");
  EXPECT_EQ(of_size(imported(text), "nccl_groups_inside_all_reduce", 1048576).key.pairs, 2);
}

TEST(NcclGroups, of_different_sizes_are_refused_by_the_column) {
  const std::string text = golden_text("nccl-groups.txt");
  EXPECT_THAT(complaint(replaced(text, "Rank  2 Group  0", "Rank  2 Group  1")),
              test::Says("Group"));
  // Of four ranks in one group busbw is 1.5 times algbw.
  std::string one = replaced(text, "Rank  1 Group  1", "Rank  1 Group  0");
  one = replaced(one, "Rank  3 Group  1", "Rank  3 Group  0");
  EXPECT_THAT(complaint(one), test::Says("1.500"));
}

TEST(NcclGroups, a_root_is_a_rank_of_the_first_group) {
  std::string text = golden_text("nccl-groups.txt");
  for (std::size_t at = 0; (at = text.find("all_reduce_perf", at)) != text.npos;) {
    text.replace(at, 15, "broadcast_perf");
  }
  const Profile p = imported(replaced(text, "-1    60.11", " 1    60.11"));
  // Rank 1 of ranks 0 and 2 is on the second machine.
  EXPECT_EQ(p.select(key_of("nccl_groups_broadcast", "m1/gpu0")).size(), 1U);
}

// ---------------------------------------------------------------- columns

TEST(NcclColumns, that_are_not_known_are_refused_by_name) {
  const std::string text = golden_text("nccl-groups.txt");
  EXPECT_THAT(complaint(replaced(text, "    time   algbw", " cputime   algbw")),
              test::Says("cputime"));
  EXPECT_THAT(complaint(replaced(text, "#wrong     time", "speed time")), test::Says("speed"));
}

TEST(NcclColumns, a_time_of_day_and_statistics_of_iterations_do_not_disturb) {
  // As nccl-tests' own util.cu printed it.
  const std::string text = golden_text("nccl-iterations.txt");
  const Profile p = imported(text);
  EXPECT_DOUBLE_EQ(of_size(p, "nccl_all_reduce_in_place", 16777216).p50, 475.93e-6);
  EXPECT_EQ(p.cells.size(), 6U);
  std::string stamped;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    stamped += line;
    stamped += line.find("algbw") != line.npos ? " timestamp"
               : line.starts_with(" ")         ? "  2026-11-29 21:37:00"
                                               : "";
    stamped += "\n";
    at = end + 1;
  }
  EXPECT_EQ(imported(stamped).cells, p.cells);
}

// ---------------------------------------------------------------- -J

TEST(NcclJson, has_all_iterations_as_samples) {
  const Profile p = imported(golden_text("nccl-iterations.json"));
  // 20 iterations, of which -K left out 2. They take 63.301689 us and 0 to 6 thousandths more, two
  // of them half as long again: 2 of each of 0, 1, 2, 5 and 6 thousandths and 3 of 3 and 4, so that
  // the middle is between 3 and 4.
  const Cell& cell = of_size(p, "nccl_all_reduce", 1048576);
  EXPECT_EQ(cell.n, 18U);
  EXPECT_NEAR(cell.p50, 63.301689e-6 * 1.0035, 0.0006 * 63.3e-6);
  EXPECT_DOUBLE_EQ(cell.min, 63.301689e-6);
  EXPECT_DOUBLE_EQ(cell.max, 95.269042e-6);
  EXPECT_GT(cell.p99, 95e-6);
  EXPECT_EQ(cell.key.sources, 4);
  EXPECT_EQ(cell.key.dtype, "fp32");
  ASSERT_EQ(p.machines.size(), 2U);
  EXPECT_EQ(p.machines[1].name, "node-b");
  EXPECT_EQ(p.topology.find("m1/gpu1")->pci_address, "0000:2a:00.0");
  EXPECT_EQ(p.context.at("nccl-tests NCCL_ALGO"), "Ring");
  EXPECT_FALSE(p.context.contains("nccl-tests HOME"));
  EXPECT_EQ(p.cells.size(), 6U);
}

TEST(NcclJson, agrees_with_the_table_of_the_same_run) {
  std::string text = golden_text("nccl-iterations.json");
  for (const char* const name : {"\"out_of_place_per_iter\"", "\"in_place_per_iter\""}) {
    for (std::size_t at = 0; (at = text.find(name, at)) != text.npos;) {
      text.replace(at + std::string(name).size() - 2, 1, "x"); // another key
    }
  }
  const Profile json = imported(text), table = imported(golden_text("nccl-iterations.txt"));
  ASSERT_EQ(json.cells.size(), table.cells.size());
  for (std::size_t i = 0; i < json.cells.size(); ++i) {
    EXPECT_EQ(json.cells[i].key, table.cells[i].key);
    EXPECT_NEAR(json.cells[i].p50, table.cells[i].p50, 0.005e-6); // two digits are printed
  }
  EXPECT_EQ(json.topology, table.topology);
}

TEST(NcclJson, lists_the_first_GPU_of_a_process_alone) {
  std::string text = golden_text("nccl-iterations.json");
  text = replaced(text, "\"ngpus\":1", "\"ngpus\":2");
  const std::size_t second = text.find(",{\"rank\":1"), third = text.find(",{\"rank\":2");
  const std::size_t fourth = text.find(",{\"rank\":3"), end = text.find("]}", fourth);
  const std::string two =
      text.substr(0, second) + text.substr(third, fourth - third) + text.substr(end);
  const Profile p = imported(two);
  EXPECT_EQ(of_size(p, "nccl_all_reduce", 1048576).key.sources, 4);
  EXPECT_EQ(p.topology.of_kind(ObjectKind::gpu).size(), 4U);
  EXPECT_THAT(complaint(replaced(two, "\"rank\":2", "\"rank\":1")),
              test::Says("/config/devices/1/rank"));
}

TEST(NcclJson, of_a_run_that_died_has_the_whole_rows) {
  const std::string text = golden_text("nccl-iterations.json");
  const Profile whole = imported(text);
  const std::size_t last = text.find("{\"size\":16777216");
  for (std::size_t end = last; end < text.size() - 3; end += 97) {
    const Profile part = imported(text.substr(0, end));
    EXPECT_EQ(part.cells.size(), end < text.rfind("\"experiment_name\":\"\"}") + 21 ? 4U : 6U)
        << end;
    EXPECT_EQ(part.cells.front(), whole.cells.front());
  }
  EXPECT_NE(complaint(text.substr(0, text.find("{\"size\":1048576") + 50)), "no error");
}

TEST(NcclJson, what_cannot_be_is_named_by_its_place) {
  const std::string text = golden_text("nccl-iterations.json");
  EXPECT_THAT(complaint(replaced(text, "\"time\":72.977352", "\"cpu_time\":72.977352")),
              test::Says("/results/0/out_of_place/cpu_time"));
  EXPECT_THAT(complaint(replaced(text, "\"alg_bw\":14.368513", "\"alg_bw\":15.368513")),
              test::Says("/results/0/out_of_place"));
  EXPECT_THAT(complaint(replaced(text, "all_reduce_perf", "my_perf")), test::Says("/args"));
  EXPECT_THAT(complaint(replaced(text, "\"okay\":\"true\"", "\"okay\":\"false\"")),
              test::Says("/out_of_bounds"));
  const Profile wrong = imported(replaced(text, "\"nwrong\":0.000000", "\"nwrong\":3.000000"));
  CellKey key = key_of("nccl_all_reduce");
  key.bytes = 1048576;
  EXPECT_TRUE(wrong.select(key).empty()); // a mismatch
  EXPECT_EQ(of_size(wrong, "nccl_all_reduce_in_place", 1048576).n, 18U);
}

} // namespace
} // namespace reckon
