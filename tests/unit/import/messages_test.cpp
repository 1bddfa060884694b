// SPDX-License-Identifier: Apache-2.0
#include "core/json.hpp"
#include "documents/cells.hpp"
#include "documents/json.hpp"
#include "imported.hpp"
#include "support/messages.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace reckon {
namespace {

using namespace testing;

/// The one cell of the case with this size.
const Cell& sized(const Profile& profile, const std::string& test, std::uint64_t bytes,
                  const std::string& from = "m0", const std::string& to = "m1") {
  CellKey key = key_of(test, from, to);
  key.bytes = bytes;
  return only(profile, key);
}

// ---------------------------------------------------------------- OSU micro-benchmarks

TEST(Osu, a_latency_is_half_of_a_round_trip_and_true_of_both_ways) {
  const Profile p = of_pair(golden_text("osu-latency-c5n.txt"));
  EXPECT_EQ(p.source, "imported from OSU micro-benchmarks v5.7.1, output.txt");
  // "65536 ... 45.05" us
  EXPECT_DOUBLE_EQ(sized(p, "pair_latency_by_size", 65536).p50, 45.05e-6);
  EXPECT_DOUBLE_EQ(only(p, key_of("pair_latency", "m1", "m0")).p50, 21.06e-6);
  EXPECT_DOUBLE_EQ(only(p, key_of("pair_latency", "m0", "m1")).p50, 21.06e-6);
  EXPECT_DOUBLE_EQ(only(p, key_of("fabric_write_latency", "machines")).p50, 21.06e-6);
  EXPECT_EQ(sized(p, "pair_latency_by_size", 65536).key.transport, "mpi");
  ASSERT_EQ(p.machines.size(), 1U);
  EXPECT_THAT(p.machines.front().members, ElementsAre("m0", "m1"));
}

TEST(Osu, rates_are_in_1e6_bytes_and_of_both_ways_the_tool_prints_the_sum) {
  const Profile p = of_pair(golden_text("osu-bibw-c5n.txt"));
  EXPECT_DOUBLE_EQ(only(p, key_of("pair_bandwidth", "m1", "m0")).p50, 8053.29e6 / 2);
  EXPECT_DOUBLE_EQ(only(p, key_of("port_bandwidth", "machines")).p50, 8053.29e6 / 2);
  EXPECT_DOUBLE_EQ(sized(p, "pair_bandwidth_by_size", 1).p50, 2.95e6 / 2);
  // On one machine the case is of both together.
  const Profile one = of_pair(golden_text("osu-bibw-c5n.txt"), "m0,m0");
  EXPECT_DOUBLE_EQ(sized(one, "fabric_aggregate", 1, "m0", "m0").p50, 2.95e6);
  EXPECT_EQ(one.topology.of_kind(ObjectKind::machine).size(), 1U);
}

TEST(Osu, a_collective_needs_its_ranks_and_has_the_bytes_of_all_of_them) {
  const std::string text = golden_text("osu-allgather-c5n.txt");
  EXPECT_THAT(complaint(text), HasSubstr("add --ranks"));
  ImportOptions options;
  options.ranks = 8;
  const Profile p = import_text(text, "output.txt", options);
  // Each rank's part is 1 B.
  EXPECT_DOUBLE_EQ(sized(p, "mpi_all_gather", 8, "m0", "").p50, 322.65e-6);
  EXPECT_EQ(sized(p, "mpi_all_gather", 8, "m0", "").key.sources, 8);
}

// Version 7.5 as its users have published it: the type stands above the columns, in 7.1 to 7.3
// below them.
constexpr const char* k_validated = "# OSU MPI Latency Test v7.5\n"
                                    "# Datatype: MPI_CHAR.\n"
                                    "# Size       Avg Latency(us)        Validation\n"
                                    "1                       3.00              Pass\n"
                                    "65536                  19.28              Pass\n";

TEST(Osu, other_versions_have_other_columns) {
  const Profile p = of_pair(k_validated);
  EXPECT_DOUBLE_EQ(sized(p, "pair_latency_by_size", 65536).p50, 19.28e-6);
  EXPECT_THAT(pair_complaint(replaced(k_validated, "19.28              Pass", "19.28 Fail")),
              test::Says("output.txt:5"));
  EXPECT_THAT(pair_complaint(replaced(k_validated, "3.00              Pass", "3.00 Pa")),
              test::Says("output.txt:4"));
  EXPECT_EQ(
      of_pair(replaced(k_validated, "19.28              Pass", "19.28 Pa")).cells,
      of_pair(replaced(k_validated, "65536                  19.28              Pass\n", "")).cells);
  const Profile cuda = of_pair("# OSU MPI-CUDA Bandwidth Test v7.2\n"
                               "# Send Buffer on DEVICE (D) and Receive Buffer on DEVICE (D)\n"
                               "# Size      Bandwidth (MB/s)\n# Datatype: MPI_CHAR.\n"
                               "33554432            93130.52\n");
  const Cell& cell = only(cuda, key_of("pair_bandwidth", "m0/gpu0", "m1/gpu0"));
  EXPECT_EQ(cell.key.transport, "mpi-cuda");
  EXPECT_DOUBLE_EQ(cell.p50, 93130.52e6);
  EXPECT_THAT(cell.reason, HasSubstr("DEVICE (D)"));
  ImportOptions options;
  options.ranks = 144;
  const Profile ints = import_text("# OSU MPI Allreduce Latency Test v7.5\n# Datatype: MPI_INT.\n"
                                   "# Size       Avg Latency(us)   Min Latency(us)   Max "
                                   "Latency(us)  Iterations\n4 11.69 11.00 12.00 1000\n",
                                   "output.txt", options);
  EXPECT_EQ(only(ints, key_of("mpi_all_reduce_int", "m0")).key.bytes, 4U);
}

TEST(Osu, several_tests_in_a_log_and_launchers_marks) {
  const std::string text = golden_text("osu-latency-c5n.txt") + golden_text("osu-bibw-c5n.txt") +
                           "# OSU MPI Multiple Bandwidth / Message Rate Test v5.7.1\n"
                           "# [ pairs: 48 ] [ window size: 64 ]\n"
                           "# Size                  MB/s        Messages/s\n"
                           "1                      58.09       58086503.51\n";
  const Profile p = of_pair(text);
  EXPECT_EQ(p.select(key_of("pair_bandwidth", "m0", "m1")).size(), 1U);
  EXPECT_EQ(p.select(key_of("pair_latency", "m0", "m1")).size(), 1U);
  for (const char* const prefix : {"[1,0]<stdout>:", "0: "}) { // mpirun --tag-output, srun -l
    std::string marked;
    for (const char c : "\n" + text.substr(0, text.size() - 1)) {
      marked += c == '\n' ? std::string(marked.empty() ? "" : "\n") + prefix : std::string(1, c);
    }
    EXPECT_EQ(of_pair(marked).cells, p.cells) << prefix;
  }
}

// ---------------------------------------------------------------- perftest

/// A run as one end prints it.
std::string write_run(const std::string& local, const std::string& remote,
                      const std::string& device, const std::string& rate = "9000.00") {
  return "                    RDMA_Write BW Test\n Dual-port : OFF   Device : " + device +
         "\n local address: LID 0x01 QPN " + local + "\n remote address: LID 0x01 QPN " + remote +
         "\n #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n"
         " 65536      5000             0.00               " +
         rate + "            0.144000\n---\n";
}

TEST(Perftest, a_run_that_both_ends_print_counts_once) {
  const std::string client = write_run("1 PSN 2", "3 PSN 4", "mlx5_0");
  const Profile both = of_pair(client + write_run("3 PSN 4", "1 PSN 2", "mlx5_7"));
  EXPECT_EQ(both.cells, of_pair(client).cells);
  // Another run is another sample.
  const Profile twice = of_pair(client + write_run("5 PSN 6", "7 PSN 8", "mlx5_0"));
  EXPECT_EQ(sized(twice, "pair_bandwidth", 65536).n, 2U);
}

TEST(Perftest, runs_of_two_devices_are_not_made_one) {
  EXPECT_THAT(pair_complaint(write_run("1 PSN 2", "3 PSN 4", "mlx5_0") +
                             write_run("5 PSN 6", "7 PSN 8", "mlx5_1")),
              EndsWith("output.txt:12: a second run begins here, of other devices than the one in "
                       "line 5 (device mlx5_1 here, device mlx5_0 there); put each in a file of "
                       "its own"));
}

TEST(Perftest, MB_are_2_to_the_20_bytes) {
  const Profile p = of_pair(golden_text("perftest-write-bw-all.txt"));
  const Cell& cell = only(p, key_of("pair_bandwidth", "m0", "m1"));
  EXPECT_DOUBLE_EQ(cell.p50, 23240.68 * 1048576);
  EXPECT_EQ(cell.key.transport, "verbs write");
  EXPECT_EQ(cell.key.direction, "one_way");
  EXPECT_EQ(p.select(key_of("pair_bandwidth", "m1", "m0")).size(), 0U);
  EXPECT_DOUBLE_EQ(sized(p, "pair_bandwidth_by_size", 2).p50, 5.30 * 1048576);
  // MiB/sec is what newer versions call the same.
  EXPECT_EQ(of_pair(replaced(replaced(golden_text("perftest-write-bw-all.txt"), "average[MB/sec]",
                                      "average[MiB/sec]"),
                             "average[MB/sec]", "average[MiB/sec]"))
                .cells,
            p.cells);
}

constexpr const char* k_two_way_gbits =
    "                    RDMA_Write Bidirectional BW Test\n"
    " Dual-port       : OFF\t\tDevice         : mlx5_3\n"
    " Number of qps   : 2\t\tTransport type : IB\n"
    " Connection type : RC\t\tUsing SRQ      : OFF\n"
    " TX depth        : 128\n"
    "------------------------------------------------------\n"
    " #bytes     #iterations    BW peak[Gb/sec]    BW average[Gb/sec]   MsgRate[Mpps]\n"
    " 65536      4159603          0.00               363.47             0.693268\n"
    "------------------------------------------------------\n";

TEST(Perftest, gigabits_and_both_ways_which_the_tool_adds) {
  const Profile p = of_pair(k_two_way_gbits);
  for (const auto& [from, to] : {std::pair("m0", "m1"), std::pair("m1", "m0")}) {
    const Cell& cell = only(p, key_of("pair_bandwidth", from, to));
    EXPECT_DOUBLE_EQ(cell.p50, 363.47e9 / 8 / 2);
    EXPECT_EQ(cell.key.in_flight, 256); // 2 queue pairs of 128
  }
  // Were it MiB/s, the messages would be 119 times as many.
  EXPECT_THAT(pair_complaint(replaced(k_two_way_gbits, "average[Gb/sec]", "average[MB/sec]")),
              test::Says("0.3811 GB/s"));
}

TEST(Perftest, a_latency_among_warnings) {
  const Profile p = of_pair(golden_text("perftest-send-lat.txt"));
  EXPECT_DOUBLE_EQ(only(p, key_of("pair_latency", "m1", "m0")).p50, 1.27e-6);
  EXPECT_EQ(only(p, key_of("pair_latency", "m1", "m0")).key.transport, "verbs send");
}

TEST(Perftest, a_read_moves_bytes_to_who_asks_and_takes_the_whole_way) {
  const Profile p =
      of_pair(replaced(golden_text("perftest-send-lat.txt"), "Send Latency", "RDMA_Read Latency"));
  EXPECT_EQ(p.select(key_of("pair_latency", "m0", "m1")).size(), 0U);
  EXPECT_EQ(only(p, key_of("pair_latency", "m1", "m0")).reason, "from the request on");
}

TEST(Perftest, the_unit_of_its_json_follows_from_the_messages) {
  const std::string text = golden_text("perftest-write-bw.json");
  const Profile p = of_pair(text);
  EXPECT_DOUBLE_EQ(only(p, key_of("pair_bandwidth", "m0", "m1")).p50, 2229.27 * 1048576);
  // 2229.27 * 2^20 * 8 = 18.70e9 bits.
  const Profile gbits = of_pair(replaced(text, "2229.27", "18.70"));
  EXPECT_DOUBLE_EQ(only(gbits, key_of("pair_bandwidth", "m0", "m1")).p50, 18.70e9 / 8);
  EXPECT_THAT(pair_complaint(replaced(text, "2229.27", "2.229")), HasSubstr("neither in MiB/s"));
}

// ---------------------------------------------------------------- memory of GPUs

TEST(GpuMemory, of_perftest_is_the_GPUs_and_says_nothing_of_the_machines_port) {
  const std::string text = golden_text("perftest-cuda.txt");
  const Profile p = of_pair(text);
  // "33554432 5000 11040.93 11040.42": MB of 2^20 bytes; "Picking device No. 0", at 17:00.
  const Cell& cell = sized(p, "pair_bandwidth", 33554432, "m0/gpu0", "m1");
  EXPECT_DOUBLE_EQ(cell.p50, 11040.42 * 1048576);
  EXPECT_THAT(cell.reason, HasSubstr("not said"));
  EXPECT_EQ(p.topology.find("m0/gpu0")->pci_address, "0000:17:00.0");
  EXPECT_EQ(p.topology.find("m0/gpu0")->name, "NVIDIA A30");
  EXPECT_TRUE(p.select(key_of("port_bandwidth")).empty());
  EXPECT_TRUE(p.select(key_of("pair_bandwidth", "m0", "m1")).empty());
  ASSERT_EQ(p.machines.size(), 2U);
  // On a machine whose GPUs differ by the domain alone the list does not tell the address.
  const Profile alike = of_pair(replaced(text, "is 65:00", "is 17:00"));
  EXPECT_EQ(alike.topology.find("m0/gpu0")->pci_address, "");
  const Profile full =
      of_pair("Got PCIe address of: 0009:01:00.0\n" + replaced(text, "is 65:00", "is 17:00"));
  EXPECT_EQ(full.topology.find("m0/gpu0")->pci_address, "0009:01:00.0");
  // CUDA_MEM_MALLOC is the host's memory.
  const Profile host = of_pair(
      replaced(text, "allocated GPU buffer address at 00007f3fa4000000 pointer=0x7f3fa4000000",
               "allocated GPU buffer of a 67108864 address at 0x7f3f for type CUDA_MEM_MALLOC"));
  EXPECT_EQ(only(host, key_of("pair_bandwidth", "m0", "m1")).p50, cell.p50);
  EXPECT_FALSE(host.select(key_of("port_bandwidth")).empty());
  const Profile rocm = of_pair("Using ROCm Device with ID: 3, Name: AMD Instinct MI250X, PCI Bus "
                               "ID: 0xc1, GCN Arch: gfx90a\n" +
                               write_run("1 PSN 2", "3 PSN 4", "mlx5_0"));
  EXPECT_EQ(sized(rocm, "pair_bandwidth", 65536, "m0/gpu3", "m1").n, 1U);
  EXPECT_EQ(rocm.topology.find("m0/gpu3")->pci_address, "0000:c1:00.0");
  const Profile json = of_pair(replaced(golden_text("perftest-write-bw.json"), "\"rdma_cm_QPs\"",
                                        "\"cuda_device\": 5, \"rdma_cm_QPs\""));
  EXPECT_EQ(json.select(key_of("pair_bandwidth", "m0/gpu5", "m1")).size(), 1U);
}

TEST(GpuMemory, of_both_ends_follows_from_the_outputs_of_both) {
  const std::string gpu = "initializing CUDA\nPicking device No. ";
  const std::string client = gpu + "2\n" + write_run("1 PSN 2", "3 PSN 4", "mlx5_0");
  const std::string waits = "* Waiting for client to connect... *\n";
  const std::string server = waits + gpu + "1\n" + write_run("3 PSN 4", "1 PSN 2", "mlx5_7");
  const std::string send = replaced(server, "RDMA_Write", "Send");
  const std::string sends = replaced(client, "RDMA_Write", "Send");
  for (const std::string& log : {sends + send, send + sends}) {
    EXPECT_EQ(sized(of_pair(log), "pair_bandwidth", 65536, "m0/gpu2", "m1/gpu1").n, 1U);
  }
  // The server's alone: its GPU is the second machine's. Of one way of writes it has no results.
  EXPECT_EQ(sized(of_pair(send), "pair_bandwidth", 65536, "m0", "m1/gpu1").n, 1U);
  EXPECT_EQ(sized(of_pair(waits + client), "pair_bandwidth", 65536, "m0/gpu2", "m1").n, 1U);
  const std::string plain = waits + write_run("3 PSN 4", "1 PSN 2", "mlx5_7");
  const Profile known = of_pair(client + plain); // the other end said that it had none
  EXPECT_EQ(sized(known, "pair_bandwidth", 65536, "m0/gpu2", "m1").reason, "");
}

TEST(GpuMemory, of_osu_is_where_the_buffers_are) {
  const auto of = [](const std::string& first, const std::string& second,
                     const std::string& machines = "m0,m1") {
    return of_pair("# OSU MPI-CUDA Latency Test v7.2\n# Send Buffer on " + first +
                       " and Receive Buffer on " + second +
                       "\n# Size          Latency (us)\n1                       4.06\n",
                   machines);
  };
  for (const auto& [first, second, from, to] :
       {std::tuple("DEVICE (D)", "DEVICE (D)", "m0/gpu0", "m1/gpu0"),
        std::tuple("HOST (H)", "DEVICE (D)", "m0", "m1/gpu0"),
        std::tuple("MANAGED (MD)", "MANAGED (MH)", "m0/gpu0", "m1"),
        std::tuple("HOST (H)", "HOST (H)", "m0", "m1")}) {
    const Profile p = of(first, second);
    EXPECT_EQ(p.select(key_of("pair_latency", from, to)).size(), 1U) << first << second;
    EXPECT_EQ(p.select(key_of("pair_latency", to, from)).size(), 1U) << first << second;
    EXPECT_EQ(p.select(key_of("fabric_write_latency")).empty(),
              std::string(from) != "m0" || std::string(to) != "m1");
  }
  EXPECT_EQ(of("DEVICE (D)", "DEVICE (D)", "m0,m0")
                .select(key_of("pair_latency", "m0/gpu0", "m0/gpu1"))
                .size(),
            1U);
}

TEST(GpuMemory, measurements_of_hosts_and_of_GPUs_go_together_in_either_order) {
  const std::string host = golden_text("osu-bibw-c5n.txt"), gpu = golden_text("perftest-cuda.txt");
  Profile first = of_pair(host), second = of_pair(gpu);
  merge_import(first, of_pair(gpu));
  merge_import(second, of_pair(host));
  EXPECT_EQ(first.cells, second.cells);
  EXPECT_EQ(first.machines.size(), 2U);
  EXPECT_EQ(first.select(key_of("port_bandwidth", "m1")).size(), 1U);
  EXPECT_EQ(profile_from_json(to_json(first), "merged"), first);
}

// ---------------------------------------------------------------- both

TEST(Messages, who_did_it_must_be_said) {
  EXPECT_THAT(complaint(golden_text("osu-latency-c5n.txt")),
              test::Says("output.txt:1: osu_latency"));
  EXPECT_THAT(complaint(k_two_way_gbits), HasSubstr("--machine m0,m1"));
  EXPECT_THAT(pair_complaint(golden_text("mlc-icelake.txt"), ErrorKind::usage),
              test::Says("--machine"));
}

TEST(Messages, columns_that_change_the_values_are_refused_by_name) {
  EXPECT_THAT(pair_complaint(replaced(k_two_way_gbits, "#iterations", "#sl #iterations")),
              test::Says("#sl"));
  EXPECT_THAT(pair_complaint(replaced(k_two_way_gbits, "MsgRate[Mpps]",
                                      "MsgRate[Mpps]   BW Port1[Gb/sec]   MsgRate Port1[Mpps]")),
              test::Says("Port1[Gb/sec]"));
  EXPECT_THAT(pair_complaint(replaced(k_validated, "Avg Latency(us)", "Overall(us)")),
              test::Says("Overall(us)"));
}

TEST(Messages, cut_off_rows_are_named) {
  EXPECT_THAT(pair_complaint(replaced(k_two_way_gbits, "0.693268", "0.6932")),
              HasSubstr("output.txt:8: "));
  EXPECT_THAT(pair_complaint("# OSU MPI Latency Test v5.8\n# Size          Latency (us)\n0   7.4"),
              HasSubstr("output.txt:3: "));
  EXPECT_THAT(pair_complaint("# OSU MPI Latency Test v5.8\n# Size          Latency (us)\n"),
              test::Says("output.txt:1: osu_latency"));
}

TEST(Messages, pairs_of_the_same_machines_go_together_and_others_make_more_machines) {
  Profile p = of_pair(golden_text("osu-latency-c5n.txt"));
  merge_import(p, of_pair(golden_text("osu-bibw-c5n.txt")));
  ASSERT_EQ(p.machines.size(), 1U);
  EXPECT_EQ(p.machines.front().count, 2U);
  merge_import(p, of_pair(k_two_way_gbits, "m1,m2"));
  EXPECT_THAT(p.machines.front().members, ElementsAre("m0", "m1", "m2"));
  EXPECT_EQ(p.machines.front().count, 3U);
}

/// Of one rank on each of two machines, whose command line is not in the file.
std::string pair_log(const std::string& a, const std::string& b, double microseconds) {
  const double rate = 268435456 / microseconds * 1e-3;
  return fmt::format(
      "# nThread 1 nGpus 1 minBytes 268435456 maxBytes 268435456 step: 2(factor) warmup iters: 5 "
      "iters: 20 agg iters: 1 validation: 1 graph: 0\n"
      "#  Rank  0 Group  0 Pid 1 on {} device  0 [0x8d] NVIDIA H100\n"
      "#  Rank  1 Group  0 Pid 2 on {} device  0 [0x8d] NVIDIA H100\n"
      "#       size         count      type   redop    root     time   algbw   busbw #wrong\n"
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)\n"
      "   268435456      67108864     float     sum      -1  {:.1f}  {:.2f}  {:.2f}      0\n"
      "# Out of bounds values : 0 OK\n",
      a, b, microseconds, rate, rate);
}

TEST(NcclTests, pairs_of_machines_have_a_rate_whichever_collective_it_was) {
  Profile all = imported(pair_log("a", "b", 10000));
  EXPECT_THAT(all.select({.test = k_pair_bandwidth}), SizeIs(2));
  EXPECT_EQ(all.cells.size(), 2U) << "all_reduce or sendrecv: no cell of either";
  EXPECT_NEAR(all.cells[0].p50, 26.8435456e9, 1e6);
  // 25 times 10 ms.
  const auto seconds = std::ranges::find_if(
      all.context, [](const auto& entry) { return entry.first.starts_with(k_seconds_of); });
  ASSERT_NE(seconds, all.context.end());
  EXPECT_EQ(seconds->second, "0.25");
  // Other hosts become other machines, and no sample of the same pair.
  merge_import(all, with_ids_by_name(imported(pair_log("c", "b", 20000)), all));
  ASSERT_EQ(all.machines.size(), 3U);
  EXPECT_EQ(all.machines[2].name, "c");
  EXPECT_NEAR(all.select({.test = k_pair_bandwidth, .from = "m2", .to = "m1"}).at(0)->p50, 13.4e9,
              0.1e9);
  EXPECT_EQ(all.cells.size(), 4U);
  // Of one machine the two collectives differ: it must be said.
  EXPECT_THAT(complaint(pair_log("a", "a", 10000)), test::Says("--collective"));
}

std::vector<std::string> names_of(const Profile& profile) {
  std::vector<std::string> names;
  for (const MachineGroup& machine : profile.machines) {
    names.push_back(machine.name);
  }
  return names;
}

TEST(Messages, command_lines_name_the_machines_and_the_rail) {
  // The client is where the prompt is, or where ssh goes, the server the last argument.
  for (const char* const command :
       {"root@node-a:~# ib_write_bw -d mlx5_3 -b --report_gbits node-b\n",
        "[me@node-a work]$ /opt/bin/ib_write_bw --ib-dev=mlx5_3 -D 10 node-b\n",
        "+ ssh node-a ib_write_bw -d mlx5_3 -F node-b\n"}) {
    const Profile p = imported(std::string(command) + k_two_way_gbits);
    EXPECT_THAT(names_of(p), ElementsAre("node-a", "node-b")) << command;
    // 363.47 Gb/s in both ways: 22.7 GB/s each, of NIC 3 with NIC 3.
    EXPECT_NEAR(only(p, key_of("pair_bandwidth", "m0/mlx5_3", "m1/mlx5_3")).p50, 22.717e9, 1e6);
    EXPECT_EQ(p.topology.find("m1/mlx5_3")->name, "mlx5_3");
    EXPECT_TRUE(p.select(key_of("port_bandwidth")).empty()) << "of which of many pairs?";
  }
  const std::string osu = golden_text("osu-bibw-c5n.txt");
  for (const char* const command :
       {"$ mpirun -np 2 --host node-a:1,node-b:1 ./osu_bibw\n",
        "srun -N2 --nodelist=node-a,node-b osu_bibw D D\n", "srun -w node-a,node-b osu_bibw\n"}) {
    const Profile p = imported(command + osu);
    EXPECT_THAT(names_of(p), ElementsAre("node-a", "node-b")) << command;
    EXPECT_EQ(p.select(key_of("pair_bandwidth", "m0", "m1")).size(), 1U);
  }
  // What --machine says counts; a server's command line, or an option's value, is no host.
  EXPECT_EQ(of_pair("root@a:~# ib_write_bw b\n" + std::string(k_two_way_gbits)).machines.size(),
            1U);
  for (const char* const command : {"root@node-a:~# ib_write_bw -d mlx5_3\n",
                                    "ib_write_bw node-b\n", "root@node-a:~# ib_write_bw -b\n"}) {
    EXPECT_THAT(complaint(std::string(command) + k_two_way_gbits), HasSubstr("--machine m0,m1"));
  }
}

TEST(Messages, lists_of_hosts_have_ranges) {
  const std::string osu = golden_text("osu-bibw-c5n.txt");
  for (const auto& [list, names] :
       std::map<std::string, std::vector<std::string>>{{"gpu-[09-10]", {"gpu-09", "gpu-10"}},
                                                       {"r[1]n1,r[2]n1", {"r1n1", "r2n1"}},
                                                       {"gpu-[7,12]", {"gpu-7", "gpu-12"}},
                                                       {"gpu-[1-3]", {}}}) {
    const std::string text = "srun -w " + list + " osu_bibw\n" + osu;
    if (names.empty()) {
      EXPECT_THAT(complaint(text), HasSubstr("--machine m0,m1")) << list;
    } else {
      EXPECT_EQ(names_of(imported(text)), names) << list;
    }
  }
}

Profile of_file(const std::string& file, const std::string& text) {
  return import_text(text, file, {});
}

TEST(Messages, a_file_is_named_after_the_machines_whose_names_it_lacks) {
  for (const auto& [file, names] : std::map<std::string, std::vector<std::string>>{
           {"logs/gpu-01_gpu-02.log", {"gpu-01", "gpu-02"}},
           {"ib-gpu-09-gpu-10.txt", {"gpu-09", "gpu-10"}},
           {"n1-n2", {"n1", "n2"}},
           {"rail0-r1-n1_r1-n2.log", {"r1-n1", "r1-n2"}}}) {
    const Profile p = of_file(file, std::string(k_two_way_gbits));
    EXPECT_EQ(names_of(p), names) << file;
    EXPECT_EQ(p.select({.test = k_pair_bandwidth, .from = "m0/mlx5_3", .to = "m1/mlx5_3"}).size(),
              1U);
  }
  for (const char* const file :
       {"2026-01-02.log", "osu-bw.log", "gpu-01.log", "gpu-01-gpu-01", "1-2", "a100-h100.txt"}) {
    EXPECT_THROW(static_cast<void>(of_file(file, std::string(k_two_way_gbits))), Error) << file;
  }
  // The command line counts, but for a server that it calls by address.
  const auto called = [](const char* server) {
    return fmt::format("root@gpu-01:~# ib_write_bw -d mlx5_3 {}\n{}", server, k_two_way_gbits);
  };
  EXPECT_THAT(names_of(of_file("gpu-01_gpu-02.log", called("gpu-07"))),
              ElementsAre("gpu-01", "gpu-07"));
  EXPECT_THAT(names_of(of_file("gpu-01_gpu-02.log", called("10.0.0.2"))),
              ElementsAre("gpu-01", "gpu-02"));
  EXPECT_THAT(names_of(of_file("gpu-03_gpu-02.log", called("10.0.0.2"))),
              ElementsAre("gpu-01", "10.0.0.2"));
}

/// What a client prints that calls its server by address; each port has one LID.
std::string by_address(const std::string& client, const std::string& server, int own, int other,
                       const std::string& gid = "") {
  return fmt::format("root@{}:~# ib_write_bw -d mlx5_3 {}\n", client, server) +
         replaced(std::string(k_two_way_gbits), " #bytes",
                  fmt::format(" local address: LID 0x{:02x} QPN 0x0032 PSN 0x5f2841\n{}"
                              " remote address: LID 0x{:02x} QPN 0x003a PSN 0xc0fd7e\n #bytes",
                              own, gid, other));
}

TEST(Messages, servers_called_by_address_are_known_by_their_ports) {
  const auto names = [](const std::string& one, const std::string& two,
                        const ImportOptions& options = {}) {
    std::vector<std::string> all;
    for (const Profile& p :
         import_texts({{.file = "x", .text = one}, {.file = "y", .text = two}}, options)) {
      const std::vector<std::string> of = names_of(p);
      all.insert(all.end(), of.begin(), of.end());
    }
    return all;
  };
  // The LID of the first one's server is the second one's client's.
  EXPECT_THAT(names(by_address("a", "10.0.0.2", 1, 2), by_address("b", "10.0.0.3", 2, 3)),
              ElementsAre("a", "b", "b", "10.0.0.3"));
  // With RoCE there is no LID, and a GID can be the address itself.
  const std::string gid = " GID: 00:00:00:00:00:00:00:00:00:00:255:255:10:00:00:02\n";
  EXPECT_THAT(names(by_address("a", "10.0.0.2", 0, 0), by_address("b", "10.0.0.3", 0, 0, gid)),
              ElementsAre("a", "b", "b", "10.0.0.3"));
  // A LID of two machines, in two subnets, tells nothing.
  EXPECT_THAT(names(by_address("z", "10.0.0.2", 2, 2), by_address("b", "10.0.0.3", 2, 3)),
              ElementsAre("z", "10.0.0.2", "b", "10.0.0.3"));
  // Two that say they have one LID are in other subnets: nothing is known, which is said.
  testing::internal::CaptureStderr();
  EXPECT_THAT(names(by_address("a", "10.0.0.2", 1, 2), by_address("b", "10.0.0.3", 1, 2)),
              ElementsAre("a", "10.0.0.2", "b", "10.0.0.3"));
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("--hosts"));
  const ImportOptions told{.hosts =
                               read_hosts("# local\n10.0.0.2 b b.site\n10.0.0.3\tc\n\n", "hosts")};
  testing::internal::CaptureStderr();
  EXPECT_THAT(
      names(by_address("a", "10.0.0.2", 1, 2), by_address("b.site", "10.0.0.3", 1, 2), told),
      ElementsAre("a", "b", "b", "c"));
  // The client of both runs is neither of their servers.
  names(by_address("a", "10.0.0.2", 1, 2), by_address("a", "10.0.0.3", 1, 3));
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
  EXPECT_THROW(static_cast<void>(read_hosts("10.0.0.2 b\n10.0.0.3\n", "hosts")), Error);
}

TEST(Messages, machine_ids_are_for_files_of_one_pair) {
  const ToolOutput one{.file = "x", .text = std::string(k_two_way_gbits)},
      two{.file = "y", .text = std::string(k_two_way_gbits)};
  EXPECT_THROW(static_cast<void>(import_texts({one, two}, {.machine = "a,b"})), Error);
  EXPECT_NO_THROW(static_cast<void>(import_texts(
      {one, {.file = "z", .text = golden_text("osu-latency-c5n.txt")}}, {.machine = "a,b"})));
}

} // namespace
} // namespace reckon
