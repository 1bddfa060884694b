// SPDX-License-Identifier: Apache-2.0
#include "documents/cells.hpp"
#include "imported.hpp"
#include "support/messages.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <string>

namespace reckon {
namespace {

using namespace testing;

const Cell& of_size(const Profile& profile, const std::string& test, std::uint64_t bytes) {
  CellKey key = key_of(test);
  key.bytes = bytes;
  return only(profile, key);
}

// ---------------------------------------------------------------- nccl-tests

TEST(NcclTests, times_by_size_out_of_place_and_in_place) {
  const Profile p = imported(golden_text("nccl-all-reduce-4x5090.txt"));
  CellKey key = key_of("nccl_all_reduce");
  key.bytes = 134217728;
  const Cell& cell = only(p, key);
  EXPECT_EQ(cell.unit, "seconds");
  EXPECT_DOUBLE_EQ(cell.p50, 7384.4e-6);
  EXPECT_EQ(cell.key.sources, 4);
  EXPECT_EQ(cell.key.dtype, "fp32");
  EXPECT_EQ(cell.key.from, "m0");
  key.test = "nccl_all_reduce_in_place";
  EXPECT_DOUBLE_EQ(only(p, key).p50, 7380.5e-6);
  EXPECT_EQ(p.cells.size(), 50U); // 25 sizes
  EXPECT_EQ(p.machines.front().name, "GENOA-01");
  EXPECT_EQ(p.topology.find("m0/gpu3")->name, "NVIDIA GeForce RTX 5090");
  // "[0x61]" is not all of an address.
  EXPECT_EQ(p.topology.find("m0/gpu3")->pci_address, "");
  const Profile exchange = imported(golden_text("nccl-alltoall-1x5090.txt"));
  ASSERT_EQ(exchange.cells.size(), 2U);
  for (const Cell& of : exchange.cells) { // in place there is none, whatever time is printed
    EXPECT_EQ(of.status,
              of.key.test == "nccl_alltoall" ? CellStatus::published : CellStatus::unsupported)
        << of.key.test;
  }
}

/// A row of four ranks, of a version from 2.13 on: 100 GB/s, and so much of bus bandwidth.
std::string unnamed(const std::string& redop, const std::string& root, const std::string& busbw,
                    const std::string& wrong, const std::string& wrong_in_place) {
  std::string ranks;
  for (int rank = 0; rank < 4; ++rank) {
    ranks += fmt::format("#  Rank {0:2} Group  0 Pid 1 on node device {0:2} [0x0{0}] H100\n", rank);
  }
  return fmt::format(
      "{}# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
      "1048576 65536 float {} {} 10.49 100.00 {} {} 10.49 100.00 {} {}\n"
      "# Out of bounds values : 0 OK\n",
      ranks, redop, root, busbw, wrong, busbw, wrong_in_place);
}

TEST(NcclTests, a_collective_without_a_name_is_the_only_one_that_can_print_such_rows) {
  // All move 65536 * 16 bytes, but 262144 elements count where each rank has all of them.
  const auto whole = [](std::string text) { return replaced(std::move(text), "65536", "262144"); };
  const std::map<std::string, std::string> texts{
      {"all_reduce", whole(unnamed("sum", "-1", "150.00", "0", "0"))}, // 2 * 3 / 4
      {"reduce_scatter", unnamed("sum", "-1", "75.00", "0", "0")},     // 3 / 4
      {"all_gather", unnamed("none", "-1", "75.00", "0", "0")},
      {"alltoall", unnamed("none", "-1", "75.00", "0", "N/A")}, // never checked in place
      {"sendrecv", whole(unnamed("sum", "-1", "100.00", "0", "N/A"))},
      {"broadcast", whole(unnamed("none", "0", "100.00", "0", "0"))},
      {"reduce", whole(unnamed("sum", "0", "100.00", "0", "0"))}};
  for (const auto& [name, text] : texts) {
    const Profile p = imported(text);
    EXPECT_FALSE(p.select(key_of("nccl_" + name)).empty()) << name;
    EXPECT_THAT(p.context.at("collective"), StartsWith(name + ","));
    EXPECT_EQ(p.cells, imported(text, name).cells);
  }
  // Until 2.13 only all_gather had neither sums nor a root among its columns.
  const std::string old = golden_text("nccl-all-gather-8xa100.log");
  // 39 - 5 rows of size 0 = 29 sizes from 32 B to 8 GiB, twice.
  EXPECT_EQ(imported(old).select(key_of("nccl_all_gather")).size(), 29U);
  const std::string with_redop = replaced(old, "count    type  ", "count    type redop ");
  EXPECT_EQ(imported(with_redop).select(key_of("nccl_alltoall")).size(), 29U);
}

TEST(NcclTests, a_file_that_does_not_say_the_collective_needs_it_said_right) {
  EXPECT_THAT(complaint(unnamed("none", "-1", "75.00", "N/A", "N/A")),
              EndsWith("add --collective all_gather or alltoall"));
  EXPECT_THAT(complaint(unnamed("none", "0", "75.00", "0", "0")),
              EndsWith("add --collective scatter or gather"));
  const std::string text = golden_text("nccl-all-gather-8xa100.log");
  // 7 / 8 of the rate against 2 * 7 / 8.
  EXPECT_THAT(complaint(text, "all_reduce"), test::Says("another"));
  const std::string sums = golden_text("nccl-all-reduce-4x5090.txt");
  const std::string without_name = replaced(sums, "all_reduce_perf", "");
  EXPECT_EQ(imported(without_name).cells, imported(sums).cells);
  // Newer versions name the test below the table, too.
  EXPECT_FALSE(imported(without_name + "# Collective test concluded: all_reduce_perf\n")
                   .context.contains("collective"));
}

/// The text with this before each of its lines.
std::string before_each_line(const std::string& prefix, const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = text.find('\n', at) + 1;
    out += prefix + text.substr(at, end - at);
    at = end;
  }
  return out;
}

TEST(NcclTests, what_launchers_put_before_each_line_is_taken_off) {
  const std::string plain = golden_text("nccl-all-reduce-4x5090.txt");
  // mpirun --tag-output, srun -l, pdsh, MPICH, kubectl logs --timestamps, a page's indentation and
  // quotation
  for (const char* prefix :
       {"[1,0]<stdout>:", "0: ", " 12: ", "node-a: ", "gpu07.site.org: ", "[0]", "[13] ",
        "2025-03-01T10:11:12.123456Z ", "2025-03-01T10:11:12+09:00 [1,0]<stdout>:", "    ", "> ",
        "> > ", "> 0: "}) {
    EXPECT_EQ(imported(plain).cells, imported(before_each_line(prefix, plain)).cells) << prefix;
  }
  // What is no time of a log stays.
  EXPECT_THAT(complaint(before_each_line("2025-03-01T10:11 ", plain)), test::Says("output"));
  const std::string document = golden_text("nvbandwidth-1gpu.json");
  EXPECT_EQ(imported(document).cells,
            imported(before_each_line("2025-03-01T10:11:12Z ", document)).cells);
  // Of the launcher itself.
  EXPECT_EQ(
      imported("$ srun -l all_reduce_perf\n" + before_each_line("0: ", plain) + "srun: done\n")
          .cells,
      imported(plain).cells);
}

TEST(NcclTests, a_tag_in_brackets_stands_before_each_piece_that_the_process_wrote) {
  const std::string text = golden_text("nccl-mpich-tags.txt");
  const Profile p = imported(text, "all_reduce");
  // "524288 ... 366.5    1.43    2.15      0[0]     340.8    1.54    2.31      0"
  CellKey key = key_of("nccl_all_reduce");
  key.bytes = 524288;
  EXPECT_DOUBLE_EQ(only(p, key).p50, 366.5e-6);
  key.test = "nccl_all_reduce_in_place";
  EXPECT_DOUBLE_EQ(only(p, key).p50, 340.8e-6);
  EXPECT_EQ(p.cells.size(), 8U); // two are of the pair of machines
  ASSERT_EQ(p.machines.size(), 2U);
  // Open MPI tags pieces as well, and "[0x18]" is no tag of process 0.
  std::string open_mpi = text;
  for (std::size_t at = 0; (at = open_mpi.find("[0]", at)) != open_mpi.npos;) {
    open_mpi.replace(at, 3, "[1,0]<stdout>:");
  }
  EXPECT_EQ(imported(open_mpi, "all_reduce").cells, p.cells);
  // The tag of another process is of no line of this one.
  EXPECT_THAT(complaint(replaced(text, "-1[0]     366.5", "-1[1]     366.5"), "all_reduce"),
              test::Says("output.txt:12"));
}

TEST(NcclTests, a_run_that_died_counts_as_far_as_it_came) {
  // A Spark pair's run, published without its end.
  const std::string text = golden_text("nccl-ended-early.txt");
  testing::internal::CaptureStderr();
  const Profile p = imported(text);
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("output.txt:16: "));
  EXPECT_EQ(p.cells.size(),
            10U); // 4 sizes, out of place and in place, and the pair of machines
  CellKey key = key_of("nccl_all_reduce");
  key.bytes = 65536;
  EXPECT_DOUBLE_EQ(only(p, key).p50, 67.93e-6);
  // The tool begins a row before it measures; an error follows it in the same line.
  const std::string begun = "  131072   32768     float     sum      -1";
  for (const std::string& end : {begun, begun + "spark-b: Test NCCL failure common.cu:958\n"}) {
    EXPECT_EQ(imported(text + end).cells, p.cells) << end;
  }
  // A row of which a part is missing is no end where another follows.
  EXPECT_THAT(complaint(replaced(text, "0.83    0.83       0", "0.83")),
              test::Says("output.txt:13"));
  // The next run in one log begins anew.
  const std::string whole = golden_text("nccl-all-reduce-4x5090.txt");
  const std::size_t footer = whole.find("# Out of bounds");
  EXPECT_EQ(imported(whole.substr(0, footer) + whole).cells.front().samples.size(), 2U);
}

/// A text of nccl-tests without its line of the smallest and the largest size.
std::string without_sizes(const std::string& text) {
  return replaced(text, "minBytes", "");
}

TEST(NcclTests, times_from_ten_seconds_on_have_two_digits_and_take_others_from_the_rate) {
  // 134217728 B in 12.34 s are 0.01 GB/s, which says less than "1.2e+07" us; 8 GiB in 12.34 s are
  // 0.696 GB/s, printed as 0.70: 12.27 s.
  const std::string good = without_sizes(golden_text("nccl-all-reduce-4x5090.txt"));
  const std::string row = "7384.4   18.18   27.26      0"; // its 134217728 B
  CellKey key = key_of("nccl_all_reduce");
  key.bytes = 134217728;
  EXPECT_DOUBLE_EQ(only(imported(replaced(good, row, "1.2e+07    0.01    0.02      0")), key).p50,
                   12);
  std::string longer = replaced(good, row, "1.2e+07    0.70    1.05      0");
  longer = replaced(longer, "   134217728      33554432", "  8589934592    2147483648");
  const std::string in_place = longer.substr(longer.find("1.05      0") + 11);
  longer =
      replaced(longer, in_place.substr(0, in_place.find('\n')), "  1.2e+07    0.70    1.05      0");
  key.bytes = 8589934592;
  EXPECT_NEAR(only(imported(longer), key).p50, 8589934592 / 0.70e9, 1e-6);
  EXPECT_THAT(complaint(replaced(longer, "1.2e+07    0.70", "1.2e+07    0.78")),
              test::Says("0.78 GB/s"));
}

TEST(NcclTests, tests_of_the_same_machines_may_follow_each_other_in_one_log) {
  const std::string first = golden_text("nccl-all-reduce-4x5090.txt");
  std::string second = without_sizes(replaced(first, "all_reduce_perf", "broadcast_perf"));
  const std::size_t table = second.find("           8 ");
  second = second.substr(0, table) +
           "    16777216       4194304     float     sum       1   1000.0   16.78   16.78      0   "
           "1000.0   16.78   16.78      0\n# Out of bounds values : 0 OK\n";
  const Profile both = imported(first + second);
  CellKey key = key_of("nccl_broadcast", "m0/gpu1");
  key.bytes = 16777216;
  EXPECT_DOUBLE_EQ(only(both, key).p50, 1e-3);
  EXPECT_EQ(both.cells.size(), imported(first).cells.size() + 2);
  key = key_of("nccl_all_reduce");
  key.bytes = 134217728;
  EXPECT_EQ(only(imported(first + first), key).samples.size(), 2U); // the same test twice
  EXPECT_EQ(imported(first.substr(0, first.find("# Out of bounds")) + second).cells, both.cells);
  for (std::size_t at = 0; (at = second.find("GENOA-01 device", at)) != second.npos; ++at) {
    second.replace(at, 8, "GENOA-02");
  }
  EXPECT_THAT(complaint(first + second), test::Says("other"));
}

TEST(NcclTests, how_many_ranks_there_were_can_be_said_where_the_list_is_missing) {
  const std::string whole = golden_text("nccl-all-reduce-4x5090.txt");
  std::string without;
  for (std::size_t at = 0; at < whole.size();) {
    const std::size_t end = whole.find('\n', at) + 1;
    const std::string line = whole.substr(at, end - at);
    without += line.starts_with("#  Rank") ? "" : line;
    at = end;
  }
  EXPECT_THAT(complaint(without), HasSubstr("with --ranks"));
  ImportOptions options{.ranks = 4};
  const Profile p = import_text(without, "output.txt", options);
  EXPECT_EQ(p.cells, imported(whole).cells);
  options.ranks = 8;
  EXPECT_THROW(static_cast<void>(import_text(without, "output.txt", options)), Error); // bus rates
  EXPECT_THROW(static_cast<void>(import_text(whole, "output.txt", options)), Error);
}

TEST(NcclTests, ranks_of_several_machines_make_several_machines) {
  std::string text = golden_text("nccl-all-reduce-4x5090.txt");
  for (const char* rank : {"Rank  2", "Rank  3"}) {
    const std::size_t at = text.find("GENOA-01 device", text.find(rank));
    text.replace(at, 8, "GENOA-02");
  }
  const Profile p = imported(text);
  ASSERT_EQ(p.machines.size(), 2U);
  EXPECT_EQ(p.machines[1].id, "m1");
  EXPECT_EQ(p.machines[1].name, "GENOA-02");
  EXPECT_NE(p.topology.find("m1/gpu3"), nullptr);
  EXPECT_EQ(p.cells.front().key.from, "m0");
  EXPECT_EQ(p.cells.front().key.to, "m1");
  // What the two reach, each way: the longest row's bus bandwidth, 1.5 * 134217728 B / 7384.4 us.
  for (const char* from : {"m0", "m1"}) {
    const auto pair = p.select({.test = k_pair_bandwidth, .from = from});
    ASSERT_EQ(pair.size(), 1U);
    EXPECT_NEAR(pair[0]->p50, 27.26e9, 0.01e9);
    EXPECT_EQ(pair[0]->key.transport, "nccl all_reduce");
    EXPECT_EQ(pair[0]->key.direction, k_two_way);
  }
}

TEST(NcclTests, bad_rows_are_named_by_line) {
  const std::string good = golden_text("nccl-all-reduce-4x5090.txt");
  const std::string last = "7384.4   18.18   27.26      0"; // line 37
  EXPECT_THAT(complaint(replaced(good, last, "nan   18.18   27.26      0")),
              test::Says("output.txt:37"));
  EXPECT_THAT(complaint(replaced(good, last, "7384.4   18.18   27.26")),
              test::Says("output.txt:37"));
  EXPECT_THAT(complaint(replaced(good, last, "7384.4   19.18   27.26      0")),
              test::Says("19.18 GB/s"));
  EXPECT_THAT(complaint(replaced(good, "#  Rank  2", "#  Rank  0")), test::Says("follow"));
  EXPECT_THAT(complaint(replaced(good,
                                 "#  Rank  3 Group  0 Pid 2168673 on   GENOA-01 device  3 "
                                 "[0x61] NVIDIA GeForce RTX 5090\n",
                                 "")),
              test::Says("missing"));
  const Profile wrong = imported(replaced(good, last, "7384.4   18.18   27.26      7"));
  CellKey key = key_of("nccl_all_reduce");
  EXPECT_EQ(wrong.select(key).size(), 24U); // the 25th is there, as a mismatch
}

TEST(NcclTests, a_missing_row_is_seen_by_the_sizes_above_the_table) {
  const std::string good = golden_text("nccl-all-reduce-4x5090.txt");
  const auto without_row = [&](const std::string& begin) {
    const std::size_t at = good.find(begin);
    return good.substr(0, at) + good.substr(good.find('\n', at) + 1);
  };
  EXPECT_EQ(warnings(good), "");
  EXPECT_THAT(warnings(without_row("          64            16     float")),
              HasSubstr("output.txt:16: the row of 64 B"));
  EXPECT_THAT(warnings(without_row("   134217728      33554432     float")),
              HasSubstr("output.txt:37: the row of 134217728 B"));
  // A step in bytes: 8, 16, 24 and so on.
  EXPECT_THAT(warnings(replaced(good, "step: 2(factor)", "step: 8(bytes)")),
              HasSubstr("output.txt:15: the row of 24 B"));
  // Of memory that does not suffice the tool takes a smaller maximum.
  EXPECT_EQ(
      imported(replaced(without_row("   134217728      33554432     float"), "# Using devices",
                        "# Reducing maxBytes to 100000000 due to memory limitation\n#"))
          .cells.size(),
      48U);
}

TEST(NcclTests, a_type_of_another_width_than_the_sizes_is_an_error) {
  const std::string good = golden_text("nccl-all-reduce-4x5090.txt");
  EXPECT_THAT(complaint(replaced(good, "           2     float", "           2      half")),
              test::Says("output.txt:13"));
}

TEST(NcclTests, a_run_with_wrong_values_has_them_in_its_rows_or_is_refused) {
  const std::string good = golden_text("nccl-all-reduce-4x5090.txt");
  const std::string failed = replaced(good, "values : 0 OK", "values : 7 FAILED");
  EXPECT_THAT(complaint(failed), test::Says("output.txt:38"));
  const Profile marked =
      imported(replaced(failed, "7384.4   18.18   27.26      0", "7384.4   18.18   27.26      7"));
  EXPECT_EQ(std::count_if(marked.cells.begin(), marked.cells.end(),
                          [](const Cell& c) { return c.status == CellStatus::mismatch; }),
            1);
}

TEST(NcclTests, without_a_list_of_ranks_the_bus_bandwidth_may_tell_how_many_there_were) {
  // 2 * 127 / 128 = 1.984375: 186.39 GB/s make 369.87; of 127 and 129 ranks 369.84 and 369.89.
  const std::string table =
      "# all_reduce_perf\n"
      "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
      "  17179869184    4294967296     float     sum      -1    92171  186.39  369.87      0\n"
      "# Out of bounds values : 0 OK\n";
  EXPECT_THAT(complaint(table), test::Says("all_reduce"));
  EXPECT_THAT(complaint(replaced(table, "186.39  369.87", "  0.03    0.06")),
              Not(HasSubstr("busbw / algbw")));
}

TEST(NcclTests, what_sums_nothing_may_have_an_empty_redop) {
  const std::string printed = golden_text("nccl-alltoall-1x5090.txt");
  std::string empty = printed;
  for (std::size_t at = 0; (at = empty.find("  none ", at)) != empty.npos;) {
    empty.replace(at, 7, "       ");
  }
  ASSERT_NE(empty, printed);
  EXPECT_EQ(imported(empty).cells, imported(printed).cells);
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
  EXPECT_EQ(p.cells.size(), 8U); // two are of the pair of machines
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
  EXPECT_EQ(p.cells.size(), 8U); // two are of the pair of machines
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
    const double printed = json.cells[i].unit == k_seconds ? 0.005e-6 : 1e6; // two digits
    EXPECT_NEAR(json.cells[i].p50, table.cells[i].p50, printed);
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
    EXPECT_EQ(part.cells.size(), end < text.rfind("\"experiment_name\":\"\"}") + 21 ? 6U : 8U)
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
