// SPDX-License-Identifier: Apache-2.0
#include "imported.hpp"
#include "support/messages.hpp"

#include <gmock/gmock.h>

namespace reckon {
namespace {

using testing::HasSubstr;

/// Made by hand, in the form that nvbandwidth's json_output.cpp writes.
std::string nvbandwidth_json(const std::string& testcase) {
  return R"json({"nvbandwidth": {"version": "v0.8", "Driver Version": "550.54.15",
    "GPU Device list": ["0: A (00000000:07:00): (host)", "1: B (00000000:0a:00): (host)"],
    "testcases": [)json" +
         testcase + "]}}";
}

TEST(Nvbandwidth, the_recorded_run_has_rates_between_host_and_gpu_and_a_latency) {
  const Profile p = imported(golden_text("nvbandwidth-1gpu.json"));
  EXPECT_EQ(p.source, "imported from nvbandwidth v0.5, output.txt");
  const Cell& down = only(p, key_of("host_to_device_memcpy_ce"));
  EXPECT_EQ(down.key.from, "m0");
  EXPECT_EQ(down.key.to, "m0/gpu0");
  EXPECT_EQ(down.key.state, "pinned");
  EXPECT_EQ(down.status, CellStatus::published);
  EXPECT_EQ(down.bytes_convention, "payload");
  EXPECT_DOUBLE_EQ(down.p50, 12.3964e9);
  const Cell& up = only(p, key_of("device_to_host_memcpy_ce"));
  EXPECT_EQ(up.key.from, "m0/gpu0");
  EXPECT_DOUBLE_EQ(up.p50, 13.2001e9);
  EXPECT_DOUBLE_EQ(only(p, key_of("host_device_latency_sm")).p50, 649.879e-9);
  // What one GPU cannot do stands there as such.
  const Cell* waived = p.find(key_of("device_to_device_memcpy_read_ce", "m0"));
  ASSERT_NE(waived, nullptr);
  EXPECT_EQ(waived->status, CellStatus::unsupported);
}

TEST(Nvbandwidth, warnings_around_the_document_are_left_out) {
  const std::string text = golden_text("nvbandwidth-1gpu.json");
  const Profile plain = imported(text);
  const Profile noisy = imported("WARNING: no log file {{\n" + text + "WARNING: }}} bye\n");
  EXPECT_EQ(plain.cells, noisy.cells);
}

TEST(Nvbandwidth, the_row_is_the_gpu_that_copies) {
  // The arrows of the tool's descriptions point against the bytes.
  const Profile read = imported(nvbandwidth_json(
      R"json({"name": "device_to_device_memcpy_read_ce", "status": "Passed",
          "bandwidth_description": "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)",
          "bandwidth_matrix": [["N/A", "10"], ["20", "N/A"]]})json"));
  EXPECT_DOUBLE_EQ(only(read, key_of("device_to_device_memcpy_read_ce", "m0/gpu1")).p50, 10e9);
  const Profile write = imported(nvbandwidth_json(
      R"json({"name": "device_to_device_memcpy_write_sm", "status": "Passed",
          "bandwidth_description": "memcpy SM GPU(row) <- GPU(column) bandwidth (GB/s)",
          "bandwidth_matrix": [["N/A", "10"], ["N/A", "N/A"]]
  })json"));
  const CellKey to_1 = key_of("device_to_device_memcpy_write_sm", "m0/gpu0");
  EXPECT_DOUBLE_EQ(only(write, to_1).p50, 10e9);
  EXPECT_EQ(only(write, to_1).key.state, "peer");
  // 1 -> 0 was not possible: a cell without a value, and none for a GPU and itself.
  EXPECT_EQ(write.cells.size(), 2U);
  EXPECT_EQ(write.topology.find("m0/gpu1")->pci_address, "0000:0a:00.0");
  EXPECT_EQ(write.topology.find("m0/gpu1")->name, "B");
}

/// Made by hand, in the form that the tool prints for people.
std::string nvbandwidth_text(const std::string& tests) {
  return "nvbandwidth Version: v0.8\nBuilt from Git version: v0.8\n\nCUDA Runtime Version: 12040\n"
         "Driver Version: 550.54.15\n\nDevice 0: A (00000000:07:00)\nDevice 1: B "
         "(00000000:0a:00)\n\n" +
         tests;
}

TEST(Nvbandwidth, what_it_prints_for_people_is_what_it_prints_as_json) {
  const Profile json = imported(nvbandwidth_json(
      R"json({"name": "device_to_device_memcpy_read_ce", "status": "Passed",
          "bandwidth_description": "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)",
          "bandwidth_matrix": [["N/A", "10.25"], ["20", "N/A"]]},
        {"name": "device_to_device_memcpy_write_ce", "status": "Waived"},
        {"name": "host_device_latency_sm", "status": "Passed",
          "bandwidth_description": "memory latency SM CPU(row) <-> GPU(column) (ns)",
          "bandwidth_matrix": [["649.9", "700"]]},
        {"name": "device_to_device_bidirectional_memcpy_read_ce", "status": "Passed",
          "bandwidth_description": "memcpy CE GPU(row) <-> GPU(column) Total bandwidth (GB/s)",
          "bandwidth_matrix": [["N/A", "1"], ["2", "N/A"], ["N/A", "3"], ["4", "N/A"],
                               ["N/A", "4"], ["6", "N/A"]]})json"));
  const Profile text = imported(nvbandwidth_text(R"(Running device_to_device_memcpy_read_ce.
memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)
           0         1
 0       N/A     10.25
 1        20       N/A

SUM device_to_device_memcpy_read_ce 30.25

Waiving device_to_device_memcpy_write_ce.
Running host_device_latency_sm.
memory latency SM CPU(row) <-> GPU(column) (ns)
           0         1
 0     649.9       700

SUM host_device_latency_sm 1349.9

Running device_to_device_bidirectional_memcpy_read_ce.
memcpy CE GPU(row) <-> GPU(column) Read1 bandwidth (GB/s)
           0         1
 0       N/A         1
 1         2       N/A

memcpy CE GPU(row) <-> GPU(column) Read2 bandwidth (GB/s)
           0         1
 0       N/A         3
 1         4       N/A

memcpy CE GPU(row) <-> GPU(column) Total bandwidth (GB/s)
           0         1
 0       N/A         4
 1         6       N/A

NOTE: The reported results may not reflect the full capabilities of the platform.
)"));
  EXPECT_EQ(text.cells, json.cells);
  EXPECT_EQ(text.topology, json.topology);
  EXPECT_EQ(text.source, "imported from nvbandwidth v0.8, output.txt");
}

TEST(Nvbandwidth, a_text_that_is_cut_off_is_refused_and_a_test_that_died_failed) {
  const std::string begun = "Running host_to_device_memcpy_ce.\n";
  const std::string numbers =
      "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)\n           0    1\n"
      " 0     55.6  55.7\n";
  EXPECT_THAT(complaint(nvbandwidth_text(begun)), test::Says("host_to_device"));
  EXPECT_THAT(complaint(nvbandwidth_text(begun + replaced(numbers, "  55.7", ""))),
              test::Says("host_to_device_memcpy_ce"));
  EXPECT_THAT(complaint(nvbandwidth_text(begun + replaced(numbers, "55.7", "fast"))),
              test::Says("host_to_device_memcpy_ce"));
  const Profile p = imported(
      nvbandwidth_text("Running device_to_device_memcpy_read_ce.\n Invalid value at 0x70a6\nASSERT "
                       "in expression h_errorFlag == 0\n" +
                       begun + numbers));
  EXPECT_EQ(p.select(key_of("host_to_device_memcpy_ce")).size(), 2U);
  const Cell* died = p.find(key_of("device_to_device_memcpy_read_ce", "m0"));
  ASSERT_NE(died, nullptr);
  EXPECT_EQ(died->status, CellStatus::failed);
}

TEST(Nvbandwidth, of_both_ways_the_sum_is_taken) {
  const Profile p = imported(nvbandwidth_json(
      R"json({"name": "device_to_device_bidirectional_memcpy_write_ce", "status": "Passed",
          "bandwidth_description": "memcpy CE GPU(row) <-> GPU(column) Total bandwidth (GB/s)",
          "bandwidth_matrix": [["N/A", "1"], ["2", "N/A"], ["N/A", "3"], ["4", "N/A"],
                               ["N/A", "4"], ["6", "N/A"]]})json"));
  const Cell& cell = only(p, key_of("device_to_device_bidirectional_memcpy_write_ce", "m0/gpu1"));
  EXPECT_DOUBLE_EQ(cell.p50, 6e9);
  EXPECT_EQ(cell.key.direction, "two_way");
  EXPECT_EQ(cell.reason, "2 and 4 GB/s");
}

TEST(Nvbandwidth, bad_documents_are_named_with_their_place) {
  const auto matrix = [](const std::string& rows) {
    return nvbandwidth_json(R"json({"name": "device_to_device_memcpy_read_ce", "status": "Passed",
      "bandwidth_description": "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)",
      "bandwidth_matrix": )json" +
                            rows + "}");
  };
  const std::string at = "/nvbandwidth/testcases/0/bandwidth_matrix";
  EXPECT_THAT(complaint(matrix(R"json([["N/A", "nan"], ["1", "N/A"]])json")),
              HasSubstr(at + "/0/1"));
  EXPECT_THAT(complaint(matrix(R"json([["N/A", "-3"], ["1", "N/A"]])json")),
              HasSubstr(at + "/0/1"));
  EXPECT_THAT(complaint(matrix(R"json([["N/A", "3"], ["1"]])json")), HasSubstr(at + "/1"));
  EXPECT_THAT(complaint(matrix(R"json([["N/A", "3"]])json")), HasSubstr(at));
}

} // namespace
} // namespace reckon
