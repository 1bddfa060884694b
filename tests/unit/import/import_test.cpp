// SPDX-License-Identifier: Apache-2.0
#include "core/json.hpp"
#include "documents/cells.hpp"
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

TEST(P2pLatency, a_rate_of_zero_is_a_copy_that_failed) {
  const Profile p =
      imported(replaced(golden_text("p2p-2x4090.txt"), "1015.27   6.60", "1015.27   0.00"));
  const auto failed = std::ranges::find(p.cells, CellStatus::failed, &Cell::status);
  ASSERT_NE(failed, p.cells.end());
  EXPECT_EQ(failed->key.from, "m0/gpu0");
  EXPECT_EQ(failed->key.to, "m0/gpu1");
  EXPECT_TRUE(failed->samples.empty());
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
                                              "rocm-bandwidth.txt",
                                              "ucc-alltoall.txt",
                                              "ucx-client.txt",
                                              "ucx-get.txt",
                                              "ucx-tag-bw.txt",
                                              "ucx-tag-lat.txt",
                                              "nccom-allr.txt",
                                              "nccom-allg.json",
                                              "transferbench-p2p.txt",
                                              "transferbench-example.txt"};
  return names;
}

/// Imports what may be broken: a profile that reads back, or nothing after an error for people.
/// Anything else ends the test.
std::optional<Profile> survivor(const std::string& text, const std::string& name) {
  const bool two =
      name.starts_with("osu-") || name.starts_with("perftest-") || name.starts_with("ucx-");
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
        const auto part = survivor(text.substr(0, end), name);
        if (part && !name.starts_with("ucx-")) { // whose rows are means of more and more
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

TEST(Import, many_files_are_named_by_what_is_common_and_counted) {
  const auto run = [](const std::string& file, const char* rate) {
    return import_text(replaced(golden_text("p2p-2x5090-no-peer-access.txt"), "12.83", rate), file,
                       {});
  };
  Profile all = run("logs/ib-gpu-01.txt", "12.81");
  merge_import(all, run("logs/ib-gpu-02.txt", "12.82"));
  EXPECT_EQ(all.name, "ib-gpu");
  EXPECT_EQ(all.source, "imported from p2pBandwidthLatencyTest, 2 files");
  merge_import(all, run("logs/ib-gpu-12.txt", "12.84"));
  EXPECT_EQ(all.source, "imported from p2pBandwidthLatencyTest, 3 files");
  merge_import(all, run("logs/inside.txt", "12.85"));
  EXPECT_EQ(all.name, "ib-gpu") << "nothing is common: it keeps its name";
  // What was measured here keeps its name and its source.
  Profile measured = run("node7.txt", "12.81");
  measured.name = "site";
  measured.source = "measured by reckon";
  merge_import(measured, run("node8.txt", "12.82"));
  EXPECT_EQ(measured.name, "site");
  EXPECT_TRUE(measured.source.starts_with("measured by reckon; imported from")) << measured.source;
}

TEST(Import, the_tree_of_a_described_machine_is_kept_for_each_machine) {
  const Profile measured = imported(golden_text("nccl-all-reduce-4x5090.txt"));
  Profile described;
  described.machines = {{.id = "box", .cores = 32}};
  described.context = {{"measured", "nothing"}, {"topology_file", "box.xml"}};
  for (int gpu = -1; gpu < 4; ++gpu) {
    TopologyObject& object = described.topology.objects.emplace_back();
    object.id = gpu < 0 ? "box" : fmt::format("box/gpu{}", gpu);
    object.kind = gpu < 0 ? ObjectKind::machine : ObjectKind::gpu;
    object.parent = gpu < 0 ? "" : "box";
    object.name = gpu < 0 ? "" : "5090"; // the tool says more
  }
  described.topology.links = {{.from = "box/gpu0", .to = "box/gpu3", .count = 2}};
  const Profile both = with_tree_of(described, measured);
  EXPECT_EQ(both.cells, measured.cells);
  EXPECT_EQ(both.name, measured.name);
  ASSERT_EQ(both.machines.size(), 1U);
  EXPECT_EQ(both.machines[0].id, "m0");
  EXPECT_EQ(both.machines[0].name, "GENOA-01");
  EXPECT_EQ(both.machines[0].cores, 32U);
  EXPECT_EQ(both.topology.objects.size(), 5U);
  EXPECT_EQ(both.topology.find("m0/gpu3")->name, "NVIDIA GeForce RTX 5090");
  ASSERT_EQ(both.topology.links.size(), 1U);
  EXPECT_EQ(both.topology.links[0].to, "m0/gpu3");
  EXPECT_FALSE(both.context.contains("measured"));
  EXPECT_EQ(both.context.at("topology_file"), "box.xml");
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
