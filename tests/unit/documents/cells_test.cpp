// SPDX-License-Identifier: Apache-2.0
#include "documents/cells.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "documents/cell_doubts.hpp"
#include "documents/json.hpp"
#include "documents/profile.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

namespace reckon {
namespace {

TEST(Cells, EachCaseHasALineForWhoMeasuresItAndOneUnit) {
  std::set<std::pair<std::string, MeasuredOn>> lines;
  for (const CellCase& c : cell_cases()) {
    SCOPED_TRACE(c.name);
    EXPECT_TRUE(lines.emplace(c.name, c.on).second);
    EXPECT_STREQ(c.unit, cell_case(c.name).unit);
    const bool rate = std::string(c.unit) == k_bytes_per_second;
    EXPECT_TRUE(rate || std::string(c.unit) == k_seconds);
    EXPECT_EQ(rate, !std::string(c.bytes_convention).empty());
    EXPECT_FALSE(std::string(c.summary).empty());
  }
  EXPECT_TRUE(lines.contains({k_fabric_write, MeasuredOn::cluster}));
  EXPECT_TRUE(lines.contains({k_pair_write, MeasuredOn::cluster}));
  EXPECT_TRUE(lines.contains({k_pair_write, MeasuredOn::gpus}));
  EXPECT_EQ(cell_case(k_fabric_write).on, MeasuredOn::machine);
  EXPECT_STREQ(cell_case(k_stream_copy).bytes_convention, "stream");
  EXPECT_THROW(static_cast<void>(cell_case("carrier_pigeon")), Error);
}

TEST(Cells, KeysHaveTheNamesOfTheDocument) {
  const CellKey all{.test = k_fabric_write,
                    .from = "m0",
                    .to = "m1",
                    .bytes = 1,
                    .threads = 1,
                    .pairs = 1,
                    .in_flight = 1,
                    .sources = 1,
                    .dtype = "fp32",
                    .transport = "tcp",
                    .direction = k_one_way,
                    .operation = "sgd",
                    .state = "cold"};
  Profile profile;
  profile.cells.emplace_back().key = all;
  const Json json = to_json(profile).at("cells").at(0);
  for (const std::string_view name : k_key_names) {
    EXPECT_TRUE(json.contains(name)) << name;
  }
}

constexpr const char* k_two_groups = R"({"schema": "reckon/profile", "schema_version": 1,
  "name": "p", "source": "by hand", "context": {CONTEXT}, "machines": [
  {"id": "a", "count": 2, "rack": "r"}, {"id": "b", "count": 2, "members": ["b0", "b1"]}],
  "topology": {"objects": [{"id": "a", "kind": "machine"},
  {"id": "a/sw", "kind": "pci_bridge", "parent": "a"},
  {"id": "a/gpu0", "kind": "gpu", "parent": "a/sw"},
  {"id": "a/gpu1", "kind": "gpu", "parent": "a/sw"}]},
  "cells": [{CELL, "status": "published", "p50": 1}]})";

std::vector<std::string> doubts(const std::string& cell, const std::string& context = "") {
  std::string text = k_two_groups;
  text.replace(text.find("CONTEXT"), 7, context);
  const bool rate = cell.find("latency") == std::string::npos;
  text.replace(text.find("CELL"), 4,
               cell + (cell.find("unit") != std::string::npos ? ""
                       : rate ? R"(, "unit": "bytes_per_second", "bytes_convention": "payload")"
                              : R"(, "unit": "seconds")"));
  const Json json = parse_json(text, "p.json");
  return cell_doubts(profile_from_json(json, "p.json"), json, "p.json");
}

TEST(CellDoubts, OfWhatPlansReadThereAreNone) {
  for (const char* const cell :
       {R"("case": "port_bandwidth", "from": "a")",
        R"("case": "pair_bandwidth", "from": "a", "to": "b0")", // each of a's machines to b0
        R"("case": "pair_latency", "from": "b0", "to": "b1")",
        R"("case": "pair_bandwidth", "from": "a/gpu0", "to": "a/gpu1")",
        R"("case": "uplink_bandwidth", "from": "r")",
        R"("case": "rail_bandwidth", "from": "b0/eth0", "to": "b1/eth0", "operation": "rail0")",
        R"("case": "memory_read_bandwidth", "from": "a")", // only by hand
        R"("case": "link_bandwidth", "from": "a/gpu0", "to": "a/sw")"}) {
    EXPECT_THAT(doubts(cell), testing::IsEmpty()) << cell;
  }
}

TEST(CellPlaces, ArePortsOfMachinesForRailsOnly) {
  for (const char* const cell : {R"("case": "rail_bandwidth", "from": "b7/eth0", "to": "b1/eth0")",
                                 R"("case": "pair_bandwidth", "from": "b0/eth0", "to": "b1")"}) {
    EXPECT_THROW(static_cast<void>(doubts(cell)), Error) << cell;
  }
}

TEST(CellDoubts, EachNamesFileAndPointerAndWhatToWrite) {
  const auto is = [](const char* pointer, const char* what) {
    return testing::ElementsAre(testing::AllOf(
        testing::StartsWith(std::string("p.json: /cells/0") + pointer), testing::HasSubstr(what)));
  };
  EXPECT_THAT(doubts(R"("case": "fabric_write_latncy", "from": "a")"),
              is("/case: ", "did you mean \"fabric_write_latency\"?"));
  EXPECT_THAT(doubts(R"("case": "carrier_pigeon", "from": "a")"),
              is("/case: ", "`reckon probe --list`"));
  EXPECT_THAT(doubts(R"("case": "pair_bandwidth", "from": "a", "to": "a")"),
              is(": ", "from \"a\" to itself: to tell its 2 machines apart"));
  EXPECT_THAT(doubts(R"("case": "pair_bandwidth", "from": "a", "to": "b")"),
              is(": ", "its members \"b0\""));
  EXPECT_THAT(doubts(R"("case": "pair_bandwidth", "from": "a")"), is(": ", "are machines"));
  EXPECT_THAT(doubts(R"("case": "pair_bandwidth", "from": "a/gpu0", "to": "b0")"),
              is(": ", "or places of one machine"));
  EXPECT_THAT(doubts(R"("case": "pair_bandwidth", "from": "a/gpu0", "to": "a/sw")"),
              is(": ", "or places of one machine"));
  EXPECT_THAT(doubts(R"("case": "link_bandwidth", "from": "a/gpu0", "to": "a/gpu1")"),
              is(": ", "device_to_device_memcpy_write_ce"));
  EXPECT_THAT(doubts(R"("case": "uplink_bandwidth", "from": "a")"), is(": ", "\"rack\""));
  EXPECT_THAT(doubts(R"("case": "reduce_sum", "from": "a/gpu0")"),
              is(": ", "the case is gpu_reduce_sum"));
  EXPECT_THAT(doubts(R"("case": "port_bandwidth", "from": "a", "unit": "seconds")"),
              is(": ", "is in bytes_per_second"));
}

TEST(Profile, SaysHowMachinesOfAGroupGetIdsOfTheirOwn) {
  try {
    static_cast<void>(doubts(R"("case": "pair_bandwidth", "from": "a.0", "to": "b0")"));
    FAIL() << "it was read";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(R"(all 2 of them: "members": ["a.0", ...])"));
  }
}

TEST(CellDoubts, OtherProgramsMayCallTheirCasesWhatTheyLike) {
  EXPECT_THAT(doubts(R"("case": "all_reduce_perf", "from": "a")",
                     R"("imported 0123456789ab": "by nccl-tests")"),
              testing::IsEmpty());
  EXPECT_THAT(doubts(R"("case": "pair_bandwidth", "from": "a/gpu0", "to": "b0")",
                     R"("imported 0123456789ab": "by perftest")"),
              testing::IsEmpty());
}

} // namespace
} // namespace reckon
