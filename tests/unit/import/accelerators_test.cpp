// SPDX-License-Identifier: Apache-2.0
#include "imported.hpp"
#include "support/messages.hpp"

#include <gmock/gmock.h>

namespace reckon {
namespace {

using namespace testing;

const Cell& sized(const Profile& profile, const std::string& test, std::uint64_t bytes,
                  const std::string& from, const std::string& to = "") {
  CellKey key = key_of(test, from, to);
  key.bytes = bytes;
  return only(profile, key);
}

// ---------------------------------------------------------------- nccom-test

TEST(Nccom, a_log_with_its_command_says_all_that_is_needed) {
  const Profile p = imported(golden_text("nccom-allr.txt"));
  const Cell& cell = sized(p, "nccom_all_reduce", 536870912, "m0");
  EXPECT_DOUBLE_EQ(cell.p50, 9689.51e-6);
  EXPECT_EQ(cell.key.sources, 16);
  EXPECT_EQ(cell.key.dtype, "fp32");
  EXPECT_EQ(cell.reason, "algorithm kangaring");
  EXPECT_EQ(p.cells.size(), 8U);
}

TEST(Nccom, without_the_command_its_collective_and_ranks_are_asked_for) {
  const std::string text = golden_text("nccom-allg.json");
  EXPECT_THAT(complaint(text), test::Says("--collective"));
  EXPECT_THAT(complaint(text, "all_gather"), HasSubstr("add --ranks"));
  ImportOptions options{.collective = "all_gather", .ranks = 32};
  const Profile p = import_text(text, "output.txt", options);
  EXPECT_DOUBLE_EQ(sized(p, "nccom_all_gather", 524288, "m0").p50, 23.11e-6);
  // 31 / 32 of the rate, and not 63 / 64 nor twice that.
  options.ranks = 2;
  EXPECT_THROW(static_cast<void>(import_text(text, "output.txt", options)), Error);
}

TEST(Nccom, a_page_with_tables_is_read_by_its_tables_whatever_JSON_it_shows) {
  const std::string text = golden_text("nccom-allr.txt");
  const Profile p = imported("A page\n\n    " + text + "\n    \"busbw(GB/s)\": 0.91\n");
  EXPECT_EQ(p.cells, imported(text).cells);
}

TEST(Nccom, older_versions_print_GiB_and_call_them_GB) {
  // 33554432 B in 768 us are 43.69e9 B/s, 40.69 * 2^30.
  const std::string text = "nccom-test -r 2 allr\n"
                           "size(B)    count(elems)     type    time(us)    algbw(GB/s)    "
                           "busbw(GB/s)\n"
                           "33554432        33554432    uint8         768          40.69          "
                           "40.69\nAvg bus bandwidth:      40.6901GB/s\n";
  const Profile p = imported(text);
  EXPECT_DOUBLE_EQ(sized(p, "nccom_all_reduce_uint8", 33554432, "m0").p50, 768e-6);
  EXPECT_THAT(complaint(replaced(text, "         768", "         700")), test::Says("40.69 GB/s"));
  EXPECT_THAT(complaint(replaced(text, "40.69\nAvg", "40.6\nAvg")), HasSubstr("output.txt:3: "));
  EXPECT_THAT(complaint(replaced(text,
                                 "33554432    uint8         768          40.69          "
                                 "40.69",
                                 "Failure running neuron-bench - log file /tmp/a.log")),
              test::Says("output.txt:3"));
}

// ---------------------------------------------------------------- TransferBench

TEST(TransferBench, a_matrix_goes_from_the_row_to_the_column) {
  const Profile p = imported(golden_text("transferbench-p2p.txt"));
  EXPECT_EQ(p.source, "imported from TransferBench v1.50, output.txt");
  const Cell& cell = sized(p, "device_to_device_memcpy_write_sm", 4194304, "m0/gpu1", "m0/gpu0");
  EXPECT_DOUBLE_EQ(cell.p50, 66.52e9);
  EXPECT_DOUBLE_EQ(only(p, key_of("device_local_copy", "m0/gpu7", "m0/gpu7")).p50, 110.47e9);
  EXPECT_DOUBLE_EQ(only(p, key_of("host_to_device_memcpy_cpu", "m0/numa1", "m0/gpu0")).p50,
                   14.84e9);
  EXPECT_DOUBLE_EQ(only(p, key_of("device_to_host_memcpy_sm", "m0/gpu7", "m0/numa1")).p50, 23.94e9);
  EXPECT_DOUBLE_EQ(only(p, key_of("numa_to_numa_copy_cpu", "m0/numa0", "m0/numa1")).p50, 25.62e9);
  // "GPU 00 <->" has the sum of both ways.
  EXPECT_DOUBLE_EQ(
      only(p, key_of("device_to_device_bidirectional_memcpy_write_sm", "m0/gpu0", "m0/gpu1")).p50,
      127.61e9);
}

TEST(TransferBench, where_the_target_reads_and_a_copy_engine_works) {
  std::string text = replaced(golden_text("transferbench-p2p.txt"), "[Local read / Remote write]",
                              "[Remote read / Local write]");
  text = replaced(text, "(GPU-Executor: GFX)", "(GPU-Executor: DMA)");
  const Profile p = imported(text);
  EXPECT_DOUBLE_EQ(only(p, key_of("device_to_device_memcpy_read_ce", "m0/gpu1", "m0/gpu0")).p50,
                   66.52e9);
  EXPECT_DOUBLE_EQ(only(p, key_of("host_to_device_memcpy_ce", "m0/numa1", "m0/gpu0")).p50, 14.84e9);
}

TEST(TransferBench, transfers_one_at_a_time_and_together) {
  const Profile p = imported(golden_text("transferbench-example.txt"));
  EXPECT_DOUBLE_EQ(only(p, key_of("device_to_device_memcpy_write_sm")).p50, 56.309e9);
  EXPECT_EQ(only(p, key_of("device_to_device_memcpy_write_sm")).key.threads, 4);
  EXPECT_DOUBLE_EQ(only(p, key_of("device_to_device_memcpy_write_ce")).p50, 60.973e9);
  const Cell& both = sized(p, "device_to_device_memcpy_write_sm_at_once", 2097152, "m0/gpu1");
  EXPECT_DOUBLE_EQ(both.p50, 46.304e9);
  EXPECT_EQ(both.key.pairs, 2);
  EXPECT_EQ(p.cells.size(), 4U); // without the sum of nothing, the read only and the broadcast
}

TEST(TransferBench, other_versions_draw_borders_or_write_commas) {
  const std::string text = golden_text("transferbench-example.txt");
  for (const char* const border : {"\xe2\x94\x82", ",", " "}) {
    std::string other = text;
    for (std::size_t at = other.find('|'); at != other.npos; at = other.find('|')) {
      other.replace(at, 1, border);
    }
    EXPECT_EQ(imported(other).cells, imported(text).cells) << border;
  }
  // A row for each transfer, as rccl's copy of the tool wrote them; made by hand.
  const Profile old = imported("Test#,Transfer#,NumBytes,Src,Exe,Dst,CUs,BW(GB/s),Time(ms),"
                               "ExeToSrcLinkType,ExeToDstLinkType,SrcAddr,DstAddr\n"
                               "1,0,67108864,G0,G0,G1,4,47.774,1.405,A,B,0x1,0x2\n"
                               "2,0,67108864,G1,G1,G0,4,47.774,1.405,A,B,0x1,0x2\n"
                               "2,1,67108864,G0,G0,G1,4,47.774,1.405,A,B,0x1,0x2\n");
  EXPECT_EQ(old.select(key_of("device_to_device_memcpy_write_sm")).size(), 1U);
  EXPECT_EQ(old.select(key_of("device_to_device_memcpy_write_sm_at_once")).size(), 2U);
}

TEST(TransferBench, what_is_cut_off_is_named) {
  const std::string text = golden_text("transferbench-example.txt");
  EXPECT_THAT(complaint(text.substr(0, text.find(" Aggregate"))), test::Says("\"Aggregate"));
  EXPECT_THAT(complaint(replaced(text, " | G0 -> G000:004 -> G1", " | G0 -> G0")),
              HasSubstr("output.txt:5: "));
  EXPECT_THAT(complaint(replaced(text, "56.309 GB/s |    4.767", "56.309 GB/s |    9.767")),
              test::Says("56.309 GB/s"));
  EXPECT_THAT(complaint(replaced(golden_text("transferbench-p2p.txt"), "     16.91     16.96\n",
                                 "     16.91\n")),
              test::Says("output.txt:8"));
}

} // namespace
} // namespace reckon
