// SPDX-License-Identifier: Apache-2.0
#include "core/json.hpp"
#include "documents/document.hpp"
#include "documents/json.hpp"
#include "imported.hpp"
#include "support/messages.hpp"

#include <gmock/gmock.h>

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <random>

namespace reckon {
namespace {

using namespace testing;

constexpr const char* k_write = "device_to_device_memcpy_write_ce";
constexpr const char* k_read = "device_to_device_memcpy_read_ce";

// ---------------------------------------------------------------- p2pBandwidthLatencyTest

TEST(P2pLatency, a_machine_where_staging_beats_peer_access_keeps_both) {
  const Profile p = imported(golden_text("p2p-6gpu-staging-wins.txt"));
  CellKey key = key_of(k_write, "m0/gpu0", "m0/gpu1");
  key.state = "staged";
  EXPECT_DOUBLE_EQ(only(p, key).p50, 20.10e9);
  key.state = "peer";
  EXPECT_DOUBLE_EQ(only(p, key).p50, 9.90e9);
  // Row 0, column 2 of the reads: GPU 0 reads from GPU 2.
  EXPECT_DOUBLE_EQ(only(p, key_of(k_read, "m0/gpu2", "m0/gpu0")).p50, 10.01e9);
  // 6 * 5 pairs in three matrices, and 6 GPUs by themselves.
  EXPECT_EQ(p.cells.size(), 96U);
  // Printed 911.08, 912.68 and 911.08 count reads and writes.
  const Cell& local = only(p, key_of("device_local_copy", "m0/gpu0"));
  EXPECT_EQ(local.n, 3U);
  EXPECT_DOUBLE_EQ(local.p50, 911.08e9 / 2);
}

TEST(P2pLatency, without_peer_access_both_matrices_are_staged_copies) {
  const Profile p = imported(golden_text("p2p-2x5090-no-peer-access.txt"));
  const Cell& cell = only(p, key_of(k_write, "m0/gpu1", "m0/gpu0"));
  EXPECT_EQ(cell.key.state, "staged");
  EXPECT_EQ(cell.samples, (std::vector<double>{38.92e9, 38.66e9}));
  CellKey latency = key_of("device_to_device_write_latency_ce", "m0/gpu0", "m0/gpu1");
  EXPECT_DOUBLE_EQ(only(p, latency).samples.front(), 12.83e-6);
  latency.test = "device_to_device_write_post_latency_ce";
  EXPECT_DOUBLE_EQ(only(p, latency).samples.front(), 5.91e-6);
  EXPECT_EQ(p.topology.find("m0/gpu1")->pci_address, "0000:61:00.0");
  EXPECT_THAT(p.context.at("topology"), StartsWith("not known"));
}

TEST(P2pLatency, with_peer_access_the_second_matrix_is_direct) {
  const Profile p = imported(golden_text("p2p-2x4090.txt"));
  CellKey key = key_of(k_write, "m0/gpu0", "m0/gpu1");
  key.state = "peer";
  EXPECT_DOUBLE_EQ(only(p, key).p50, 6.60e9);
  EXPECT_EQ(p.topology.find("m0/gpu1")->name, "NVIDIA GeForce RTX 4090");
}

TEST(P2pLatency, before_cuda_10_the_row_read_from_the_column) {
  const Profile p = imported("Unidirectional P2P=Enabled Bandwidth Matrix (GB/s)\n"
                             "   D\\D     0      1\n     0 100.00   5.26\n     1   5.27 100.00\n");
  EXPECT_DOUBLE_EQ(only(p, key_of(k_read, "m0/gpu1", "m0/gpu0")).p50, 5.26e9);
}

TEST(P2pLatency, bad_matrices_are_named_by_line) {
  const std::string good = golden_text("p2p-2x4090.txt");
  const std::string row = "     1   6.34 926.75 \n"; // line 17 of the file
  EXPECT_THAT(complaint(replaced(good, row, "")), test::Says("output.txt:17"));
  EXPECT_THAT(complaint(replaced(good, row, "     1   nan 926.75\n")),
              HasSubstr("output.txt:17: "));
  EXPECT_THAT(complaint(replaced(good, row, "     1  -6.34 926.75\n")),
              HasSubstr("output.txt:17: "));
  EXPECT_THAT(complaint(replaced(good, row, "     1   6.34\n")), test::Says("output.txt:17"));
  EXPECT_THAT(complaint(replaced(good, row, row + row)), HasSubstr("output.txt:18: row 1"));
  EXPECT_THAT(complaint(replaced(good, row, "     1   6.34 926.75 // steady\n")),
              test::Says("output.txt:17: \"//"));
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

TEST(NcclTests, a_file_that_does_not_say_the_collective_needs_it_said_right) {
  const std::string text = golden_text("nccl-all-gather-8xa100.log");
  // No column of sums, no root, and 7 / 8 of the rate: what else has that.
  EXPECT_THAT(complaint(text), EndsWith("add --collective all_gather or alltoall"));
  const Profile p = imported(text, "all_gather");
  // 39 - 5 rows of size 0 = 29 sizes from 32 B to 8 GiB, twice.
  EXPECT_EQ(p.cells.size(), 58U);
  // 7 / 8 of the rate against 2 * 7 / 8.
  EXPECT_THAT(complaint(text, "all_reduce"), test::Says("another"));
  // 2 * 7 / 8 of the rate is of all_reduce alone.
  const std::string sums = golden_text("nccl-all-reduce-4x5090.txt");
  const std::string name = "all_reduce_perf";
  EXPECT_THAT(complaint(replaced(sums, name, "")), EndsWith("add --collective all_reduce"));
  // Newer versions name the test below the table, too.
  EXPECT_EQ(
      imported(replaced(sums, name, "") + "# Collective test concluded: all_reduce_perf\n").cells,
      imported(sums).cells);
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
  EXPECT_EQ(p.cells.size(), 6U);
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
  EXPECT_EQ(p.cells.size(), 8U); // 4 sizes, out of place and in place
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
  EXPECT_EQ(p.cells.front().key.from, "");
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

/// What import_text warns of.
std::string warnings(const std::string& text) {
  testing::internal::CaptureStderr();
  static_cast<void>(imported(text));
  return testing::internal::GetCapturedStderr();
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

// ---------------------------------------------------------------- Intel MLC

TEST(Mlc, everything_that_a_whole_run_prints) {
  const Profile p = imported(golden_text("mlc-icelake.txt"));
  EXPECT_EQ(p.source, "imported from Intel MLC v3.10, output.txt");
  const Cell& far = only(p, key_of("memory_latency_chase", "m0/numa0", "m0/numa1"));
  EXPECT_DOUBLE_EQ(far.p50, 142.7e-9);
  EXPECT_EQ(far.reason, "random access");
  // Row 0, column 1: processors of node 0 read memory of node 1.
  EXPECT_DOUBLE_EQ(only(p, key_of("numa_to_numa_read_cpu", "m0/numa1", "m0/numa0")).p50, 55676.8e6);
  const Cell& mixed = only(p, key_of("memory_peak_3_to_1_reads_writes"));
  EXPECT_DOUBLE_EQ(mixed.p50, 313084.7e6);
  EXPECT_EQ(mixed.bytes_convention, "stream");
  CellKey loaded = key_of("memory_latency_loaded");
  loaded.transport = "delay 00100";
  EXPECT_DOUBLE_EQ(only(p, loaded).p50, 153.80e-9);
  EXPECT_DOUBLE_EQ(only(p, key_of("cache_to_cache_latency_modified")).p50, 64.2e-9);
  EXPECT_DOUBLE_EQ(only(p, key_of("cache_to_cache_latency_homed_at_writer", "m0/numa1")).p50,
                   127.2e-9);
  // 4 + 5 + 4 + 2 * 19 + 2 + 2 * 2
  EXPECT_EQ(p.cells.size(), 57U);
}

TEST(Mlc, a_node_without_processors_has_no_row_and_of_a_cut_off_file_the_whole_rows_count) {
  const std::string text = golden_text("mlc-bandwidth-matrix.txt");
  const std::string cut = replaced(text, "       1        34387.1 90870.6\n", "");
  EXPECT_THAT(warnings(cut), HasSubstr("output.txt:12: "));
  EXPECT_EQ(warnings(cut + "\n"), "");
  EXPECT_EQ(imported(cut + "\n").cells, imported(cut).cells);
  EXPECT_EQ(imported(cut).cells.size(), 2U);
}

// ---------------------------------------------------------------- all

TEST(Import, what_is_no_known_output_is_said_to_be_none) {
  EXPECT_THAT(complaint("hello\n"), test::Says("output"));
  EXPECT_THAT(complaint(""), test::Says("empty"));
  EXPECT_THAT(complaint("<?xml version=\"1.0\"?>\n<topology/>\n"), test::Says("--topology"));
  EXPECT_THAT(complaint(std::string("a\0b", 3)), HasSubstr("is no text"));
  EXPECT_THAT(complaint("{\n  \"schema\": \"reckon/profile\"}\n"), test::Says("output.txt:2"));
}

TEST(Import, runs_of_different_devices_in_one_file_are_not_made_one_machine) {
  const std::string p2p = golden_text("p2p-2x4090.txt");
  EXPECT_THAT(complaint(p2p + golden_text("p2p-6gpu-staging-wins.txt")), test::Says("second"));
  const std::string matrices = p2p.substr(p2p.find("P2P Connectivity"));
  const std::string six = golden_text("p2p-6gpu-staging-wins.txt");
  EXPECT_THAT(complaint(matrices + six.substr(six.find("Unidirectional P2P=Disabled"))),
              EndsWith("than the one in line 1 (6 GPUs here, 2 GPUs there); put each in a file of "
                       "its own"));
  EXPECT_THAT(complaint(p2p + replaced(p2p, "1, NVIDIA GeForce RTX 4090", "1, NVIDIA L4")),
              test::Says("0000:17:00.0"));
  const std::string mlc = golden_text("mlc-icelake.txt");
  EXPECT_THAT(complaint(mlc + "Measuring idle latencies (in ns)...\nNuma node 0\n 0 145.8\n"),
              test::Says("(1 NUMA"));
  const std::string nccl = golden_text("nccl-all-reduce-4x5090.txt");
  std::string other = nccl;
  for (std::size_t at = 0; (at = other.find("RTX 5090", at)) != other.npos;) {
    other.replace(at, 8, "RTX 4090");
  }
  EXPECT_THAT(complaint(nccl + other), test::Says("GENOA-01"));
  // Ranks of one run that see a GPU each call it device 0.
  EXPECT_EQ(complaint(replaced(nccl, "device  1 [0x21] NVIDIA GeForce RTX 5090",
                               "device  0 [0000:21:00] NVIDIA L4")),
            "no error");
  const std::string one = "Running host_to_device_memcpy_ce.\n"
                          "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n 0\n0 55.6\n";
  EXPECT_THAT(complaint(one + replaced(one, " 0\n0 55.6", " 0 1\n0 55.6 55.6")),
              test::Says("output.txt:6"));
  // The same run twice is two samples.
  EXPECT_EQ(only(imported(mlc + mlc), key_of("memory_peak_all_reads")).n, 2U);
}

TEST(Import, what_has_no_value_says_why) {
  const std::string head = "nvbandwidth Version: v0.8\n";
  EXPECT_THAT(complaint(head + "Waiving device_to_device_memcpy_read_ce.\n"),
              test::Says("(device_to_device_memcpy_read_ce)"));
  EXPECT_THAT(complaint(head + "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)\n  0 1\n"),
              test::Says("\"Running"));
  EXPECT_THAT(complaint("# OSU MPI Multi Latency Test v5.7\n# Size          Latency (us)\n"
                        "0                       2.09\n"),
              test::Says("osu_latency"));
}

/// What import_texts says of options that it does not take.
std::string misuse(const std::vector<ToolOutput>& outputs, const ImportOptions& options) {
  try {
    static_cast<void>(import_texts(outputs, options));
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::usage);
    return e.what();
  }
  return "no error";
}

TEST(Import, of_several_files_an_option_is_for_those_that_take_it) {
  const ToolOutput p2p{.file = "p2p.txt", .text = golden_text("p2p-2x4090.txt")};
  const ToolOutput gather{.file = "nccl.log", .text = golden_text("nccl-all-gather-8xa100.log")};
  const ImportOptions options{.collective = "all_gather"};
  const std::vector<Profile> both = import_texts({p2p, gather}, options);
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(both[0].cells, imported(p2p.text).cells);
  EXPECT_EQ(both[1].cells, imported(gather.text, "all_gather").cells);
  EXPECT_EQ(misuse({p2p}, options),
            "--collective is for nccl-tests and nccom-test; p2p.txt is output of "
            "p2pBandwidthLatencyTest");
  const ToolOutput osu{.file = "osu.txt", .text = golden_text("osu-latency-c5n.txt")};
  EXPECT_THAT(misuse({osu, p2p}, {.machine = "a,b"}), test::Says("--merge"));
}

TEST(Import, ids_of_machines_have_no_blank_and_no_slash) {
  const ToolOutput osu{.file = "osu.txt", .text = golden_text("osu-latency-c5n.txt")};
  for (const char* id : {"", "a/b", "x y", "a,", ",b", "a,b/c"}) {
    EXPECT_THAT(misuse({osu}, {.machine = id}), test::Says("id must")) << id;
  }
  EXPECT_EQ(misuse({osu}, {.machine = "rack-1.n2,rack-1.n3"}), "no error");
}

TEST(Import, a_value_is_the_decimal_that_was_printed) {
  // In doubles 17.15 * 1e-6 is 1.7149999999999997e-05.
  const Profile p =
      imported(replaced(golden_text("p2p-2x5090-no-peer-access.txt"), "12.83", "17.15"));
  EXPECT_EQ(only(p, key_of("device_to_device_write_latency_ce", "m0/gpu0", "m0/gpu1")).samples[0],
            1.715e-05);
}

TEST(Import, two_tools_in_one_file_are_told_apart) {
  const std::string p2p = golden_text("p2p-2x4090.txt");
  EXPECT_THAT(complaint(p2p + golden_text("mlc-icelake.txt")), test::Says("output.txt:26"));
}

const std::vector<std::string>& goldens() {
  static const std::vector<std::string> names{"nvbandwidth-1gpu.json",
                                              "p2p-2x5090-no-peer-access.txt",
                                              "p2p-2x4090.txt",
                                              "p2p-6gpu-staging-wins.txt",
                                              "nccl-all-reduce-4x5090.txt",
                                              "nccl-alltoall-1x5090.txt",
                                              "nccl-ended-early.txt",
                                              "nccl-groups.txt",
                                              "nccl-iterations.json",
                                              "nccl-iterations.txt",
                                              "nccl-all-gather-8xa100.log",
                                              "mlc-icelake.txt",
                                              "mlc-bandwidth-matrix.txt",
                                              "osu-latency-c5n.txt",
                                              "osu-bibw-c5n.txt",
                                              "osu-allgather-c5n.txt",
                                              "perftest-write-bw-all.txt",
                                              "perftest-send-lat.txt",
                                              "perftest-write-bw.json",
                                              "perftest-cuda.txt",
                                              "nccom-allr.txt",
                                              "nccom-allg.json",
                                              "transferbench-p2p.txt",
                                              "transferbench-example.txt"};
  return names;
}

/// Imports what may be broken: a profile that reads back, or nothing after an error for people.
/// Anything else ends the test.
std::optional<Profile> survivor(const std::string& text, const std::string& name) {
  const bool two = name.starts_with("osu-") || name.starts_with("perftest-");
  ImportOptions options{
      .machine = two ? "m0,m1" : "m0",
      .collective =
          name.find("-allg") != name.npos || name.find("-all-g") != name.npos ? "all_gather" : ""};
  if (name.starts_with("osu-allgather")) {
    options.collective.clear();
    options.ranks = 8;
  } else if (name.starts_with("nccom-allg")) {
    options.ranks = 32;
  }
  try {
    if (!options.collective.empty() && !recognise_format(text, name).starts_with("ncc")) {
      return std::nullopt;
    }
    const Profile p = import_text(text, name, options);
    EXPECT_EQ(profile_from_json(to_json(p), name), p) << name;
    return p;
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::input) << e.what();
    EXPECT_THAT(e.what(), StartsWith(name + ":"));
    return std::nullopt;
  }
}

TEST(Import, every_golden_is_a_document_that_reads_back) {
  for (const std::string& name : goldens()) {
    EXPECT_TRUE(survivor(golden_text(name), name)) << name;
  }
}

/// Whether a file's part has only values that the whole file has. (Cells of the longest message and
/// of what ran at once are of another one in a part.)
void expect_part(const Profile& part, const Profile& whole, const std::string& what) {
  for (const Cell& cell : part.cells) {
    const Cell* const same = whole.find(cell.key);
    const bool of_longest = cell.key.test == "pair_bandwidth" || cell.key.test == "port_bandwidth";
    if (!cell.has_value() || (same == nullptr && of_longest)) {
      continue;
    }
    ASSERT_NE(same, nullptr) << what << ": " << cell.key.text();
    ASSERT_LE(cell.samples.size(), same->samples.size()) << what;
    EXPECT_TRUE(std::equal(cell.samples.begin(), cell.samples.end(), same->samples.begin()))
        << what << ": " << cell.key.text();
  }
}

TEST(Import, a_golden_cut_anywhere_has_the_values_before_it_or_is_an_error) {
  for (const std::string& name : goldens()) {
    const std::string text = golden_text(name);
    const std::optional<Profile> whole = survivor(text, name);
    ASSERT_TRUE(whole) << name;
    for (std::size_t end = 0; end < text.size(); ++end) {
      if (text[end] == '\n' || end % 7 == 0) {
        if (const auto part = survivor(text.substr(0, end), name)) {
          expect_part(*part, *whole, fmt::format("{} cut at {}", name, end));
        }
      }
    }
  }
  // A document that does not end is never valid.
  const std::string text = golden_text("nvbandwidth-1gpu.json");
  for (std::size_t end = 0; end < text.size() - 2; end += 11) {
    EXPECT_FALSE(survivor(text.substr(0, end), "nvbandwidth-1gpu.json")) << "cut at " << end;
  }
}

TEST(Import, a_golden_with_bytes_changed_is_valid_or_an_error) {
  constexpr unsigned k_seed = 20261121;
  RecordProperty("seed", static_cast<int>(k_seed));
  std::mt19937 engine(k_seed);
  const std::string bytes = "0159.-eNaninf \t\n[]{}\",:#%/\\x\x01\xff";
  for (int i = 0; i < 900; ++i) {
    const std::string& name = goldens()[static_cast<std::size_t>(i) % goldens().size()];
    std::string text = golden_text(name);
    for (unsigned changes = 1 + engine() % 4; changes > 0; --changes) {
      text[engine() % text.size()] = bytes[engine() % bytes.size()];
    }
    static_cast<void>(survivor(text, name));
  }
}

// ---------------------------------------------------------------- merging

TEST(Import, two_files_of_one_machine_make_one_profile) {
  Profile p = imported(golden_text("p2p-6gpu-staging-wins.txt"));
  merge_import(p, imported(golden_text("mlc-icelake.txt")));
  EXPECT_EQ(p.machines.size(), 1U);
  EXPECT_EQ(p.cells.size(), 96U + 57U);
  EXPECT_THAT(p.source, test::Says("p2pBandwidthLatencyTest"));
  EXPECT_EQ(profile_from_json(to_json(p), "merged"), p);
}

TEST(Import, machines_of_several_files_are_told_apart_by_their_names) {
  const auto pair = [](const std::string& source, const std::string& first,
                       const std::string& second) {
    const std::string text =
        "#  Rank  0 Group  0 Pid   1887 on " + first + " device  0 [0x8d] NVIDIA H100\n" +
        "#  Rank  1 Group  0 Pid   1885 on " + second + " device  0 [0x8d] NVIDIA H100\n" +
        "#       size         count      type   redop    root     time   algbw   busbw #wrong"
        "     time   algbw   busbw #wrong\n"
        "   268435456      67108864     float     sum      -1   11138.4  24.10  24.10      0"
        "   11138.4  24.10  24.10      0\n# Out of bounds values : 0 OK\n"
        "# Avg bus bandwidth    : 24.10\n";
    ImportOptions options;
    options.collective = "all_reduce";
    return import_text(text, source, options);
  };
  Profile p = pair("one", "a", "b");
  const std::size_t gpus = p.topology.of_kind(ObjectKind::gpu).size();
  merge_import(p, with_ids_by_name(pair("two", "c", "d"), p));   // others
  merge_import(p, with_ids_by_name(pair("three", "d", "a"), p)); // known, the other way round
  merge_import(p, with_ids_by_name(pair("four", "b", "e"), p));  // one of each
  std::string machines;
  for (const MachineGroup& machine : p.machines) {
    machines += machine.id + "=" + machine.name + " ";
  }
  EXPECT_EQ(machines, "m0=a m1=b m2=c m3=d m4=e ");
  EXPECT_EQ(p.topology.of_kind(ObjectKind::gpu).size(), gpus / 2 * 5);
  EXPECT_EQ(profile_from_json(to_json(p), "merged"), p);
}

TEST(Import, one_file_is_not_imported_twice) {
  Profile p = imported(golden_text("mlc-icelake.txt"));
  const Profile again = p;
  EXPECT_THROW(merge_import(p, again), Error);
}

TEST(Import, a_second_run_adds_samples_and_gpus_are_known_by_their_addresses) {
  const std::string first = golden_text("p2p-2x4090.txt");
  Profile p = imported(first);
  // The same two GPUs, counted the other way round.
  std::string second = replaced(first, "pciBusID: 2,", "pciBusID: 99,");
  second = replaced(second, "pciBusID: 17,", "pciBusID: 2,");
  second = replaced(second, "pciBusID: 99,", "pciBusID: 17,");
  second = replaced(second, "1015.27   6.60", "1015.27   7.00");
  merge_import(p, imported(second));
  EXPECT_EQ(p.topology.of_kind(ObjectKind::gpu).size(), 2U);
  // 0 -> 1 of the second run is 1 -> 0 of the first.
  CellKey key = key_of(k_write, "m0/gpu1", "m0/gpu0");
  key.state = "peer";
  EXPECT_EQ(only(p, key).samples, (std::vector<double>{6.60e9, 7.00e9}));
}

TEST(Import, a_generation_of_gpus_is_no_other_model) {
  const Profile p = imported(golden_text("p2p-2x4090.txt"));
  Profile topology = p; // as NCCL's, whose GPUs have no model
  topology.cells.clear();
  topology.context.clear();
  topology.source = "a topology";
  for (TopologyObject& object : topology.topology.objects) {
    object.name = object.kind == ObjectKind::gpu ? "sm_89" : object.name;
    object.pci_address.clear();
  }
  Profile merged = topology;
  merge_import(merged, p);
  EXPECT_EQ(merged.topology.of_kind(ObjectKind::gpu).front()->name,
            p.topology.of_kind(ObjectKind::gpu).front()->name);
  for (TopologyObject& object : topology.topology.objects) {
    object.name = object.kind == ObjectKind::gpu ? "another model" : object.name;
  }
  EXPECT_THROW(merge_import(topology, p), Error);
}

TEST(Import, what_was_measured_here_is_not_mixed_with_what_is_imported) {
  Profile p = imported(golden_text("mlc-icelake.txt"));
  Profile measured = p;
  measured.context.clear();
  for (Cell& cell : measured.cells) {
    cell.status = CellStatus::ok;
  }
  EXPECT_THROW(merge_import(measured, p), Error);
}

} // namespace
} // namespace reckon
