// SPDX-License-Identifier: Apache-2.0
#include "imported.hpp"

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
  EXPECT_EQ(p.source, "imported from nvbandwidth JSON v0.5, output.txt");
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
  EXPECT_THAT(complaint("nvbandwidth Version: v0.8\nRunning host_to_device_memcpy_ce.\n"),
              HasSubstr("output.txt:1: is what nvbandwidth prints for people; run it again with "
                        "--json"));
}

} // namespace
} // namespace reckon
