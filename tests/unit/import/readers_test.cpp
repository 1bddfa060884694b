// SPDX-License-Identifier: Apache-2.0
#include "imported.hpp"
#include "support/messages.hpp"

#include <gmock/gmock.h>

namespace reckon {
namespace {

using namespace testing;

Profile of_ranks(const std::string& text, std::uint64_t ranks) {
  ImportOptions options;
  options.ranks = ranks;
  return import_text(text, "output.txt", options);
}

// ---------------------------------------------------------------- rocm_bandwidth_test

/// What it prints without options, for one processor and two GPUs, in the form of its source code.
constexpr const char* k_rocm = R"(
          RocmBandwidthTest Version: 2.6.0

          Launch Command is: ./rocm-bandwidth-test (rocm_bandwidth -a + rocm_bandwidth -A)


          Device: 0,  AMD EPYC 7742 64-Core Processor
          Device: 1,  AMD Instinct MI210,  GPU-00,  c1:0.0
          Device: 2,  AMD Instinct MI210,  GPU-01,  e:0.0

          Inter-Device Access

          D/D       0         1         2

          0         1         1         1

          1         1         1         1

          2         1         1         1


          Unidirectional copy peak bandwidth GB/s

          D/D       0           1           2

          0         N/A         28.123      28.234

          1         27.345      1200.000    50.456

          2         27.567      50.789      1190.000


          Bidirectional copy peak bandwidth GB/s

          D/D       0           1           2

          0         N/A         41.000      41.500

          1         41.000      N/A         95.250

          2         41.500      95.250      N/A

)";

TEST(RocmBandwidth, rows_are_sources_and_each_kind_of_device_has_its_own_numbers) {
  const Profile p = imported(k_rocm);
  EXPECT_EQ(p.source, "imported from rocm_bandwidth_test 2.6.0, output.txt");
  EXPECT_DOUBLE_EQ(only(p, key_of("host_to_device_memcpy_ce", "m0/numa0", "m0/gpu1")).p50,
                   28.234e9);
  EXPECT_DOUBLE_EQ(only(p, key_of("device_to_host_memcpy_ce", "m0/gpu1", "m0/numa0")).p50,
                   27.567e9);
  EXPECT_DOUBLE_EQ(only(p, key_of("device_to_device_memcpy_write_ce", "m0/gpu0", "m0/gpu1")).p50,
                   50.456e9);
  // Inside a GPU the tool counts each byte twice.
  EXPECT_DOUBLE_EQ(only(p, key_of("device_local_copy", "m0/gpu0", "m0/gpu0")).p50, 600e9);
  const Cell& both =
      only(p, key_of("device_to_device_bidirectional_memcpy_write_ce", "m0/gpu1", "m0/gpu0"));
  EXPECT_DOUBLE_EQ(both.p50, 95.25e9);
  EXPECT_EQ(both.key.direction, "two_way");
  // 4 with the processor, 2 and 2 between the GPUs, 2 inside; both ways with a processor are none.
  EXPECT_EQ(p.cells.size(), 10U);
  EXPECT_EQ(p.topology.find("m0/gpu1")->pci_address, "0000:0e:00.0");
}

TEST(RocmBandwidth, the_published_matrix_without_blank_lines) {
  const Profile p = imported(golden_text("rocm-bandwidth.txt"));
  EXPECT_DOUBLE_EQ(only(p, key_of("host_to_device_memcpy_ce")).p50, 26.2e9);
  EXPECT_DOUBLE_EQ(only(p, key_of("device_to_host_memcpy_ce")).p50, 27.1e9);
  EXPECT_DOUBLE_EQ(only(p, key_of("device_local_copy")).p50, 700.1e9 / 2);
}

/// -s 0 -d 2 -m 64, after the list of -e. 64 MiB in 2345.678 us are 28.610 GB/s.
constexpr const char* k_rocm_list = R"(Device Index:                             0
  Device Type:                            CPU

Device Index:                             1
  Device Type:                            GPU
  Device  BDF:                            c1:0.0
  Device UUID:                            GPU-00

Device Index:                             2
  Device Type:                            GPU
  Device  BDF:                            e1:0.0
  Device UUID:                            GPU-01

          RocmBandwidthTest Version: 2.6.0

          Launch Command is: rocm_bandwidth_test -s 0 -d 2 -m 64

================    Unidirectional Benchmark Result    ================
================ Src Device Id: 0 Src Device Type: Cpu ================
================ Dst Device Id: 2 Dst Device Type: Gpu ================

Data Size      Avg Time(us)   Avg BW(GB/s)   Min Time(us)   Peak BW(GB/s)
32 MB          1180.000       28.436         1170.000       28.679
64 MB          2345.678       28.610         2300.123       29.176
)";

TEST(RocmBandwidth, a_list_of_copies_needs_the_list_of_devices) {
  const std::string text = k_rocm_list;
  const Profile p = imported(text);
  CellKey key = key_of("host_to_device_memcpy_ce", "m0/numa0", "m0/gpu1");
  key.bytes = 64U << 20U;
  EXPECT_DOUBLE_EQ(only(p, key).p50, 28.610e9);
  const std::string alone = text.substr(text.find("RocmBandwidthTest"));
  EXPECT_THAT(complaint(alone), test::Says("rocm_bandwidth_test -e"));
  // Both ways are twice the bytes; between GPUs their sum is a case.
  std::string both = replaced(text, "Unidirectional", "Bidirectional");
  EXPECT_THAT(complaint(both), test::Says("28.436"));
  both = replaced(both, "Src Device Id: 0 Src Device Type: Cpu",
                  "Src Device Id: 1 Src Device Type: Gpu");
  both = replaced(replaced(both, "28.436", "56.872"), "28.610", "57.219");
  EXPECT_DOUBLE_EQ(imported(both).cells.back().p50, 57.219e9);
  EXPECT_EQ(imported(both).cells.back().key.direction, "two_way");
  // What several pairs do at once is no pair's rate.
  EXPECT_THAT(complaint(replaced(text, "-s 0 -d 2", "-k 0,2")), test::Says("-k"));
  // A run that died.
  EXPECT_EQ(imported(text.substr(0, text.find("       29.176"))).cells.size(), 1U);
  EXPECT_THAT(complaint(replaced(text, "       28.679", "")), test::Says("output.txt:23"));
}

// ---------------------------------------------------------------- ucx_perftest

TEST(Ucx, the_server_says_the_test_and_the_client_what_it_gave) {
  // As ucx_perftest 1.13.1 printed it: "Final: 3000 0.092 326.212 376.573 3065.49 2655.53".
  const Profile p = of_pair(golden_text("ucx-tag-bw.txt"));
  const Cell& cell = only(p, key_of("pair_bandwidth", "m0", "m1"));
  EXPECT_DOUBLE_EQ(cell.p50, 2655.53 * 1048576);
  EXPECT_EQ(cell.key.bytes, 1048576U);
  EXPECT_EQ(cell.key.transport, "ucx tag");
  EXPECT_DOUBLE_EQ(only(p, key_of("port_bandwidth", "machines")).p50, cell.p50);
  // A rate of a stream says nothing of a latency, nor that of a ping-pong of a rate.
  EXPECT_TRUE(p.select(key_of("pair_latency_by_size")).empty());
  const Profile latency = of_pair(golden_text("ucx-tag-lat.txt"));
  EXPECT_DOUBLE_EQ(only(latency, key_of("pair_latency", "m1", "m0")).p50, 0.342e-6);
  EXPECT_TRUE(latency.select(key_of("pair_bandwidth_by_size")).empty());
  // A get moves bytes to who asks, and takes the whole way.
  const Profile get = of_pair(golden_text("ucx-get.txt"));
  EXPECT_DOUBLE_EQ(only(get, key_of("pair_latency_by_size", "m1", "m0")).p50, 1.345e-6);
  EXPECT_TRUE(get.select(key_of("pair_latency_by_size", "m0", "m1")).empty());
}

TEST(Ucx, of_the_client_alone_the_size_follows_from_time_and_rate) {
  testing::internal::CaptureStderr();
  const Profile p = of_pair(golden_text("ucx-client.txt"));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("output.txt:4: "));
  // 1671.351 us at 46743.62 MiB/s are 81920000 B within 25: 625 times 2^17.
  const Cell& cell = only(p, key_of("pair_bandwidth", "m0", "m1"));
  EXPECT_EQ(cell.key.bytes, 81920000U);
  EXPECT_DOUBLE_EQ(cell.p50, 46743.62 * 1048576);
  // Whose memory it was is not known, so nothing is said of a port.
  EXPECT_TRUE(p.select(key_of("port_bandwidth")).empty());
  // The command says all.
  const Profile said = of_pair("$ ucx_perftest node-b -t put_bw -s 81920000 -m cuda,host -O 16\n" +
                               golden_text("ucx-client.txt"));
  const Cell& gpu = only(said, key_of("pair_bandwidth", "m0/gpu1", "m1"));
  EXPECT_EQ(gpu.key.in_flight, 16);
  EXPECT_EQ(gpu.key.transport, "ucx uct put");
}

TEST(Ucx, memory_of_GPUs_is_theirs) {
  std::string text = golden_text("ucx-tag-bw.txt");
  text = replaced(text, "Send memory:  host", "Send memory:  cuda");
  text = replaced(text, "Recv memory:  host", "Recv memory:  cuda");
  // The tool takes GPU 1 for the client and 0 for the server.
  const Profile p = of_pair(text);
  EXPECT_EQ(p.select(key_of("pair_bandwidth", "m0/gpu1", "m1/gpu0")).size(), 1U);
  EXPECT_TRUE(p.select(key_of("port_bandwidth")).empty());
  text = replaced(text, "| Message size:", "| Send device:  cuda:5        |\n| Message size:");
  EXPECT_EQ(of_pair(text).select(key_of("pair_bandwidth", "m0/gpu5", "m1/gpu0")).size(), 1U);
}

TEST(Ucx, older_versions_have_no_stages_and_call_all_times_latencies) {
  const std::string text =
      "+--------------+-----------------------------+---------------------+-----------------------+"
      "\n"
      "|              |       latency (usec)        |   bandwidth (MB/s)  |  message rate (msg/s) "
      "|\n"
      "+--------------+---------+---------+---------+----------+----------+-----------+-----------+"
      "\n"
      "| # iterations | typical | average | overall |  average |  overall |   average |   overall "
      "|\n"
      "+--------------+---------+---------+---------+----------+----------+-----------+-----------+"
      "\n"
      "          1000     0.090    83.000    83.000   12048.19   12048.19       12048       12048\n"
      "          2000     0.091    81.000    82.000   12345.68   12195.12       12346       "
      "12195\n";
  EXPECT_THAT(pair_complaint(text), test::Says("output.txt:4"));
  const std::string table = "| Test:         UCP tag match bandwidth          |\n"
                            "| Message size: 1048576                          |\n";
  // 1 MiB in 82 us are 12195.12 MiB/s.
  const Profile p = of_pair(table + text);
  const Cell& cell = only(p, key_of("pair_bandwidth", "m0", "m1"));
  EXPECT_DOUBLE_EQ(cell.p50, 12195.12 * 1048576);
  EXPECT_EQ(cell.key.transport, "ucx tag");
}

TEST(Ucx, modes_that_cannot_be_read_are_refused_by_name) {
  const std::string text = golden_text("ucx-tag-bw.txt");
  EXPECT_THAT(pair_complaint("iterations,50.0_percentile_lat,avg_lat,overall_lat,avg_bw,"
                             "overall_bw,avg_mr,overall_mr\n1000,0.074,505.984,505.984,1976.35,"
                             "1976.35,1976,1976\n"),
              test::Says("-v"));
  EXPECT_THAT(pair_complaint(replaced(text, "[thread 0]", "[thread 1]")), test::Says("-T"));
  EXPECT_THAT(pair_complaint(text + text.substr(text.find("Final:"))), test::Says("-b"));
  EXPECT_THAT(pair_complaint(replaced(text, "tag match bandwidth", "atomic add message rate")),
              test::Says("atomic add message rate"));
  EXPECT_THAT(pair_complaint(text + text.substr(text.find("+-------"), 400)),
              test::Says("1 table"));
}

TEST(Ucx, of_a_run_that_died_what_it_last_said_counts) {
  const std::string text = golden_text("ucx-tag-bw.txt");
  testing::internal::CaptureStderr();
  const Profile p = of_pair(text.substr(0, text.find("Final:")));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("\"Final:\""));
  EXPECT_DOUBLE_EQ(only(p, key_of("pair_bandwidth")).p50, 2606.04 * 1048576);
  EXPECT_EQ(of_pair(text.substr(0, text.find("   2655.53"))).cells, p.cells);
}

// ---------------------------------------------------------------- ucc_perftest

TEST(Ucc, a_part_of_each_rank_and_bandwidths_that_tell_the_ranks) {
  // 262144 B in 76.46 us are 3.4285 GB/s; 24.00 is 7 times that, as 7/8 of eight ranks' parts are.
  const Profile p = imported(golden_text("ucc-alltoall.txt"));
  CellKey key = key_of("ucc_alltoall", "m0");
  key.bytes = 8 * 262144;
  const Cell& cell = only(p, key);
  EXPECT_DOUBLE_EQ(cell.p50, 76.46e-6);
  EXPECT_EQ(cell.key.sources, 8);
  EXPECT_EQ(cell.key.transport, "ucc cuda");
  EXPECT_EQ(cell.key.dtype, "fp32");
  EXPECT_EQ(of_ranks(golden_text("ucc-alltoall.txt"), 8).cells, p.cells);
  try {
    static_cast<void>(of_ranks(golden_text("ucc-alltoall.txt"), 16));
    ADD_FAILURE() << "16 ranks would have 15 times size / time";
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr("output.txt:15: "));
  }
}

/// In the form of its source code since 2025.
std::string ucc(const std::string& collective, const std::string& rows, bool rates = true,
                const std::string& mode = "isolated") {
  return "Collective:             " + collective +
         "\nMemory type:            host\nDatatype:               bfloat16\nReduction:           "
         "   max\nInplace:                1\nWarmup:\n  small                 100\n  large         "
         "        20\nIterations:\n  small                 1000\n  large                 200\n"
         "Iteration mode:         " +
         mode + "\n\n       Count        Size                Time, us" +
         (rates ? "                       Bus Bandwidth, GB/s" : "") +
         "\n                                 avg         min         max" +
         (rates ? "         avg         max         min" : "") + "\n" + rows +
         "Total time: 1.23 ms\n";
}

TEST(Ucc, newer_versions_print_the_whole) {
  // 1 MiB in 100 us are 10.486 GB/s, of which 3/4 are 7.86: four ranks. 2 MiB in 200 us are as
  // much.
  const Profile p =
      imported(ucc("Reduce_scatter", "      524288     1048576      100.00       99.00 "
                                     "     101.00        7.86        7.94        7.79\n"
                                     "     1048576     2097152      200.00      199.00 "
                                     "     201.00        7.86        7.90        7.83\n"));
  CellKey key = key_of("ucc_reduce_scatter_max_in_place", "m0");
  key.bytes = 1048576;
  EXPECT_DOUBLE_EQ(only(p, key).p50, 1e-4);
  EXPECT_EQ(only(p, key).key.sources, 4);
  EXPECT_EQ(only(p, key).key.dtype, "bf16");
  EXPECT_EQ(only(p, key).key.transport, "ucc");
}

TEST(Ucc, without_bandwidths_ranks_are_asked_for_and_sizes_go_by_the_version) {
  const std::string row = "      524288     1048576      100.00       99.00      101.00\n";
  EXPECT_THAT(complaint(ucc("Alltoall", row, false)), test::Says("--ranks"));
  EXPECT_EQ(of_ranks(ucc("Alltoall", row, false), 4).cells.front().key.bytes, 1048576U);
  EXPECT_EQ(of_ranks(ucc("Allgather", row, false), 4).cells.front().key.bytes, 4194304U);
  std::string old = replaced(ucc("Alltoall", row, false), "Iteration mode:         isolated\n", "");
  old = replaced(old, "Total time: 1.23 ms\n", "");
  EXPECT_EQ(of_ranks(old, 4).cells.front().key.bytes, 4194304U);
  const Profile barrier = of_ranks(
      ucc("Barrier", "         N/A         N/A        7.50        7.00        8.00\n", false), 4);
  EXPECT_DOUBLE_EQ(only(barrier, key_of("ucc_barrier_max_in_place")).p50, 7.5e-6);
}

TEST(Ucc, what_changes_the_times_is_in_the_name) {
  const std::string row = "      524288     1048576      100.00       99.00      101.00\n";
  EXPECT_EQ(of_ranks(ucc("Allreduce", row, false, "streaming"), 4).cells.front().key.transport,
            "ucc streaming");
  EXPECT_EQ(
      of_ranks("mpirun -n 4 ucc_perftest -c allreduce -p -T\n" + ucc("Allreduce", row, false), 4)
          .cells.front()
          .key.transport,
      "ucc persistent triggered");
  EXPECT_THAT(complaint(ucc("Alltoallv", row, false)), test::Says("Alltoallv"));
  // A row that is not whole.
  EXPECT_THAT(complaint(ucc("Allreduce", "  524288     1048576      100.00\n" + row, false)),
              test::Says("output.txt:16"));
  const std::string text = ucc("Allgather", row + "     1048576     2097152      200.00", false);
  EXPECT_EQ(of_ranks(text.substr(0, text.find("Total")), 4).cells.size(), 1U);
}

} // namespace
} // namespace reckon
