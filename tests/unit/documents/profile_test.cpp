// SPDX-License-Identifier: Apache-2.0
#include "documents/profile.hpp"

#include "core/json.hpp"
#include "support/example_documents.hpp"
#include "support/random_cases.hpp"
#include "unit/documents/changed.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

namespace reckon {
namespace {

using test::changed;
using test::expect_messages;
using test::remove;
using test::set;
using test::verdict;
using ::testing::HasSubstr;

// The example's cells as written, sorted by key: 0 fabric_write 4 MiB (noisy), 1 fabric_write 8 MiB
// (skipped), 2 network_port (published), 3 optimizer (ok). Its topology objects: 0 m0, 1 m0/numa0,
// 2 m0/l3, 3 m0/nic0.

TEST(Profile, MistakesInTheHeadAndTheMachinesAreNamed) {
  expect_messages(
      to_json(test::example_profile()),
      {
          {{remove("/source")}, "the key \"source\" is missing; add it"},
          {{set("/source", "")}, "/source: must not be empty"},
          {{set("/context/host", 3)}, "/context/host: must be a string, is 3"},
          {{set("/context", Json{{"", "x"}})},
           "/context/: a name must not be empty; name it or remove it"},
          {{set("/machines", Json::array())},
           "/machines: is empty; at least one machine is needed"},
          {{set("/machines/1", Json{{"id", "m0"}})},
           "/machines/1/id: the id \"m0\" occurs twice, first at /machines/0/id; rename or remove "
           "one"},
          {{set("/machines/0/count", 0)},
           "/machines/0/count: must be a whole number from 1 to 1000000, is 0"},
          {{set("/machines/0/count", 1000001)},
           "/machines/0/count: must be a whole number from 1 to 1000000, is 1000001"},
          {{set("/machines/0/cores", 0)},
           "/machines/0/cores: must be a whole number from 1 to 65536, is 0"},
          {{set("/machines/0/memory_bytes", -1)},
           "/machines/0/memory_bytes: must be a whole number from 0 to 2^53, is -1"},
          {{set("/machines/0/members", Json::array({"a", "b"}))},
           "/machines/0/members: names 2 machines, but count is 3; name all of them or none"},
          {{set("/machines/0/members", Json::array({"a", "b", "m0"}))},
           "/machines/0/members/2: the id \"m0\" occurs twice, first at /machines/0/id; rename or "
           "remove one"},
          {{set("/machines/0/rack", "")},
           "/machines/0/rack: must be a name: 1 to 256 characters, no control characters"},
          {{set("/machines/0/rack", "m0")},
           "/machines/0/rack: \"m0\" is the id of a machine; call the rack something else"},
          {{set("/machines/0/memory", 1)},
           "/machines/0/memory: unknown key; did you mean \"memory_bytes\"?"},
      });
}

TEST(Profile, MistakesInTheTopologyAreNamed) {
  expect_messages(
      to_json(test::example_profile()),
      {
          {{set("/topology/objects/2/id", "m0/numa0")},
           "/topology/objects/2/id: the id \"m0/numa0\" occurs twice, first at "
           "/topology/objects/1/id; rename "
           "or remove one"},
          {{set("/topology/objects/2/parent", "m0/numa1")},
           "/topology/objects/2/parent: no object before this one has the id \"m0/numa1\"; parents "
           "come before "
           "their children"},
          {{set("/topology/objects/1/parent", "m0/l3")},
           "/topology/objects/1/parent: no object before this one has the id \"m0/l3\"; parents "
           "come before "
           "their children"},
          {{set("/topology/objects/1/parent", "m0/numa0")},
           "/topology/objects/1/parent: no object before this one has the id \"m0/numa0\"; parents "
           "come before "
           "their children"},
          {{remove("/topology/objects/3/parent")},
           "/topology/objects/3: the key \"parent\" is missing; only a machine has none"},
          {{set("/topology/objects/0/parent", "m0")},
           "/topology/objects/0/parent: a machine has no parent; remove this key"},
          {{set("/topology/objects/0/id", "m1")},
           "/topology/objects/0/id: no entry of /machines has the id \"m1\"; add it there"},
          {{remove("/topology/objects/0"), set("/topology/objects/0/id", "m0")},
           "/topology/objects/0/id: \"m0\" is the id of a machine; rename this numa_node"},
          {{set("/topology/objects/3/kind", "card")},
           "/topology/objects/3/kind: is \"card\"; must be one of machine, package, numa_node, "
           "cache, core, host_bridge, pci_bridge, gpu, nic, memory_device, link_switch"},
          {{set("/topology/objects/3/pci_address", "17:00.0")},
           "/topology/objects/3/pci_address: is \"17:00.0\"; must look like 0000:17:00.0, in lower "
           "case"},
          {{set("/topology/objects/3/link_bytes_per_second", 0)},
           "/topology/objects/3/link_bytes_per_second: must be greater than 0, is 0"},
          {{set("/topology/objects/1/cpus/1", -1)},
           "/topology/objects/1/cpus/1: must be a whole number from 0 to 1000000000, is -1"},
          {{set("/topology/objects/2/cache_level", 0)},
           "/topology/objects/2/cache_level: must be a whole number from 1 to 8, is 0"},
          {{set("/topology/objects/5/pcie/width", 0)},
           "/topology/objects/5/pcie/width: must be a whole number from 1 to 32, is 0"},
          {{set("/topology/links/0/kind", "rope")},
           "/topology/links/0/kind: is \"rope\"; must be one of nvlink, xgmi, socket"},
          {{set("/topology/links/0/to", "m0/gpu9")},
           "/topology/links/0/to: no object of this topology has the id \"m0/gpu9\"; add one, or "
           "name one that is there"},
          {{set("/topology/links/0/to", "m0/numa0")},
           "/topology/links/0/to: \"m0/numa0\" must stand after \"m0/gpu0\" among the objects, for "
           "a link works both ways and is written once; change the two over"},
          {{set("/topology/links/1",
                Json{{"kind", "nvlink"}, {"from", "m0/gpu0"}, {"to", "m0/gpu1"}})},
           "/topology/links/1: the link \"nvlink m0/gpu0 - m0/gpu1\" occurs twice, first at "
           "/topology/links/0; rename or remove one"},
      });
}

TEST(Profile, MistakesInTheKeysOfCellsAreNamed) {
  expect_messages(
      to_json(test::example_profile()),
      {
          {{remove("/cells/0/case")}, "/cells/0: the key \"case\" is missing; add it"},
          {{set("/cells/0/case", "Fabric write")},
           "/cells/0/case: is \"Fabric write\"; must be lower-case letters, digits and _, a letter "
           "first"},
          {{set("/cells/3/from", "m0/numa1")},
           "/cells/3/from: no machine and no topology object has the id \"m0/numa1\"; did you mean "
           "\"m0/numa0\"?"},
          {{set("/cells/3/from", "m0.0")}, // as plans call the first of a group without members
           "/cells/3/from: no machine and no topology object has the id \"m0.0\"; machines of "
           "\"m0\" "
           "go by its members: \"a0\" and so on"},
          {{set("/cells/0/to", "switch-on-the-left")},
           "/cells/0/to: no machine and no topology object has the id \"switch-on-the-left\"; add "
           "one, or name "
           "one that is there"},
          {{set("/cells/0/bytes", 0)}, "/cells/0/bytes: must be at least 1, is 0"},
          {{set("/cells/0/pairs", 0)},
           "/cells/0/pairs: must be a whole number from 1 to 1048576, is 0"},
          {{set("/cells/0/direction", "both")},
           "/cells/0/direction: is \"both\"; must be one of one_way, two_way"},
          {{set("/cells/3/operation", "lamb")},
           "/cells/3/operation: is \"lamb\"; must be one of sgd, momentum, rmsprop, adam, cached, "
           "streaming, ps_colocated, ps_noncolocated, ring, rail0, rails_at_once, gemm, embedding, "
           "or gemm_256: with its size"},
          {{set("/cells/3/state", "hot")},
           "/cells/3/state: is \"hot\"; must be one of cold, warm, cached_source, in_place, sent, "
           "pinned, "
           "pageable, peer, staged, "
           "L1, L2, "
           "L3, L4, memory"},
          {{set("/cells/3/dtype", "fp64")},
           "/cells/3/dtype: is \"fp64\"; must be one of fp32, fp16, bf16"},
          {{set("/cells/1/bytes", 4194304)},
           "/cells/1: the cell \"fabric_write m0->m0 tcp;ofi_rxm two_way 2 pairs 4 in flight "
           "4194304 B\" occurs "
           "twice, first at /cells/0; remove one"},
      });
}

TEST(Profile, MistakesInTheValuesOfCellsAreNamed) {
  expect_messages(
      to_json(test::example_profile()),
      {
          {{set("/cells/0/status", "fine")},
           "/cells/0/status: is \"fine\"; must be one of ok, noisy, published, skipped, "
           "unsupported, mismatch, "
           "timeout, failed"},
          {{set("/cells/0/unit", "GB/s")},
           "/cells/0/unit: is \"GB/s\"; must be one of seconds, bytes_per_second"},
          {{remove("/cells/0/unit")}, "/cells/0: the key \"unit\" is missing; add it"},
          {{remove("/cells/0/reason")},
           "/cells/0: a cell with status noisy needs a \"reason\"; add it"},
          {{remove("/cells/1/reason")},
           "/cells/1: a cell with status skipped needs a \"reason\"; add it"},
          {{set("/cells/1/p50", 1)},
           "/cells/1/p50: a cell with status skipped has no value; remove this key"},
          {{set("/cells/1/samples", Json::array({1}))},
           "/cells/1/samples: a cell with status skipped has no value; remove this key"},
          {{set("/cells/0/samples/1", 0)}, "/cells/0/samples/1: must be greater than 0, is 0"},
          {{set("/cells/0/samples/1", "fast")},
           "/cells/0/samples/1: must be a finite number, is \"fast\""},
          {{set("/cells/0/n", 4)}, "/cells/0/n: is 4, but there are 3 samples"},
          {{set("/cells/0/p50", 0)}, "/cells/0/p50: must be greater than 0, is 0"},
          {{set("/cells/0/spread", -0.5)}, "/cells/0/spread: must not be negative, is -0.5"},
          {{remove("/cells/2/p50")}, "/cells/2: the key \"p50\" is missing; add it"},
          {{remove("/cells/3/samples"), set("/cells/3/n", 0)},
           "/cells/3: a cell with status ok needs \"samples\", or \"n\" of at least 1"},
          {{remove("/cells/0/bytes_convention")},
           "/cells/0: the key \"bytes_convention\" is missing; add \"payload\" (each byte counted "
           "once) or "
           "\"stream\" (reads and writes)"},
          {{set("/cells/3/bytes_convention", "payload")},
           "/cells/3/bytes_convention: a cell in seconds counts no bytes; remove this key"},
          {{set("/cells/0/ceiling/value", 0)},
           "/cells/0/ceiling/value: must be greater than 0, is 0"},
          {{remove("/cells/0/ceiling/name")},
           "/cells/0/ceiling: the key \"name\" is missing; add it"},
          // samples 0.0009, 0.001, 0.0011: p99 lies at position 1.98 of 0..2, 0.001098
          {{remove("/cells/3/samples"), set("/cells/3/min", 0.00105)},
           "/cells/3: min 0.00105 <= p50 0.001 <= p99 0.001098 <= max 0.0011 must hold"},
          {{set("/cells/3/p99", 0.0005)},
           "/cells/3: min 0.0009 <= p50 0.001 <= p99 0.0005 <= max 0.0011 must hold"},
          // of a rate the slow tail is the low end
          {{set("/cells/0/p99", 2.75e9)},
           "/cells/0: min 2250000000 <= p99 2750000000 <= p50 2500000000 <= max 2750000000 must "
           "hold (p99 of a "
           "bandwidth is the value that 99 % exceed)"},
      });
}

TEST(Profile, FiguresThatAreNotThoseOfTheSamplesAreRefused) {
  const std::string remedy = "; remove n, min, p50, p99, max and spread, which follow from the "
                             "samples, or give the samples that belong to them";
  const Json written = to_json(test::example_profile());
  expect_messages(
      written,
      {// samples 0.0009, 0.001, 0.0011 s
       {{set("/cells/3/p50", 0.0005), set("/cells/3/min", 0.0004)},
        "/cells/3/p50: is 0.0005, but that of the samples is 0.001" + remedy},
       {{set("/cells/3/min", 0.00095)},
        "/cells/3/min: is 0.00095, but that of the samples is 0.0009" + remedy},
       {{set("/cells/3/max", 0.0022)},
        "/cells/3/max: is 0.0022, but that of the samples is 0.0011" + remedy},
       // 2.25e9, 2.5e9, 2.75e9 bytes a second: halved with the samples left as they were
       {{set("/cells/0/p50", 1.25e9)},
        "/cells/0/p50: is 1250000000, but that of the samples is 2500000000" + remedy}});
  // Three digits are enough, and without samples there is nothing to hold it against.
  const Json rounded = changed(written, {set("/cells/0/p50", 2.51e9)});
  EXPECT_EQ(profile_from_json(rounded, "f.json").cells[0].p50, 2.51e9);
  const Json alone = changed(written, {remove("/cells/3/samples"), set("/cells/3/p50", 0.00095)});
  EXPECT_EQ(profile_from_json(alone, "f.json").cells[3].p50, 0.00095);
}

TEST(Profile, MistakesInFitsAreNamed) {
  expect_messages(
      to_json(test::example_profile()),
      {
          {{set("/fits/0/bytes", 8)},
           "/fits/0/bytes: unknown key; known here: case, from, to, threads, pairs, in_flight, "
           "sources, dtype, "
           "transport, direction, operation, state, segments, knee_bytes"},
          {{set("/fits/0/segments", Json::array())},
           "/fits/0/segments: is empty; at least one segment is needed"},
          {{set("/fits/0/segments/1/from_bytes", 65535)},
           "/fits/0/segments/1/from_bytes: is 65535, but the segment before ends at 65536; "
           "segments ascend and "
           "do not overlap"},
          {{set("/fits/0/segments/0/to_bytes", 4)},
           "/fits/0/segments/0/to_bytes: is 4, below from_bytes 8"},
          {{set("/fits/0/segments/0/alpha_seconds", -1e-6)},
           "/fits/0/segments/0/alpha_seconds: must not be negative, is -1e-06"},
          {{set("/fits/0/segments/0/bandwidth_bytes_per_second", 0)},
           "/fits/0/segments/0/bandwidth_bytes_per_second: must be greater than 0, is 0"},
          {{set("/fits/2", to_json(test::example_profile())["fits"][1])},
           "/fits/2: the fit \"optimizer m0/numa0 adam fp32 warm 3 sources 2 threads\" occurs "
           "twice, first at "
           "/fits/1; remove one"},
      });
}

TEST(Profile, APublishedNumberNeedsNoSamples) {
  const Profile p = profile_from_json(
      Json::parse(
          R"({"schema": "reckon/profile", "schema_version": 1, "name": "p", "source": "published: a paper",
                      "machines": [{"id": "m0", "count": 16}],
                      "cells": [{"case": "network_port", "from": "m0", "status": "published", "unit": "bytes_per_second",
                                 "p50": 12.5e9, "bytes_convention": "payload"}]})"),
      "f.json");
  const Cell& cell = p.cells.at(0);
  EXPECT_EQ(cell.min, 12.5e9);
  EXPECT_EQ(cell.p50, 12.5e9);
  EXPECT_EQ(cell.p99, 12.5e9);
  EXPECT_EQ(cell.max, 12.5e9);
  EXPECT_EQ(cell.spread, 0);
  EXPECT_EQ(cell.n, 0U);
  EXPECT_EQ(p.machines[0].cores, 0U); // not known, and written as it was read
  EXPECT_FALSE(to_json(p)["machines"][0].contains("cores"));
}

TEST(Profile, CellsMayNameRacksAndTheSingleMachinesOfAGroup) {
  const Json json = Json::parse(
      R"({"schema": "reckon/profile", "schema_version": 1, "name": "p", "source": "x",
          "machines": [{"id": "m0", "count": 2, "rack": "rack0", "members": ["w0", "w1"]},
                       {"id": "m1", "rack": "rack0"}],
          "cells": [{"case": "pair", "from": "w0", "to": "w1", "status": "published", "unit": "seconds", "p50": 1},
                    {"case": "uplink_bandwidth", "from": "rack0", "status": "published",
                     "unit": "bytes_per_second", "p50": 1, "bytes_convention": "payload"}]})");
  const Profile p = profile_from_json(json, "f.json");
  EXPECT_EQ(p.machines[0].rack, "rack0");
  EXPECT_EQ(p.machines[0].members, (std::vector<std::string>{"w0", "w1"}));
  EXPECT_TRUE(p.machines[1].members.empty());
  EXPECT_EQ(profile_from_json(to_json(p), "g.json"), p);
  expect_messages(json, {{{set("/cells/0/from", "w3")},
                          "/cells/0/from: no machine and no topology object has the id \"w3\"; did "
                          "you mean \"w0\"?"}});
}

TEST(Profile, SamplesAloneAreSummarisedOnReading) {
  const Json written = to_json(test::example_profile());
  const Json bare =
      changed(written, {remove("/cells/0/n"), remove("/cells/0/min"), remove("/cells/0/p50"),
                        remove("/cells/0/p99"), remove("/cells/0/max"), remove("/cells/0/spread")});
  EXPECT_EQ(to_json(profile_from_json(bare, "f.json")), written);
}

TEST(Profile, CellsAndFitsAreWrittenSortedByKey) {
  Profile p = test::example_profile();
  const std::string text = canonical_text(p);
  std::reverse(p.cells.begin(), p.cells.end());
  std::reverse(p.fits.begin(), p.fits.end());
  EXPECT_EQ(canonical_text(p), text);
  const Profile read = profile_from_json(to_json(p), "f.json");
  EXPECT_TRUE(std::is_sorted(read.cells.begin(), read.cells.end(),
                             [](const Cell& a, const Cell& b) { return a.key < b.key; }));
}

TEST(Profile, FindsACellByItsWholeKey) {
  const Profile p = test::example_profile();
  CellKey key = p.cells[0].key;
  EXPECT_EQ(p.find(key), &p.cells[0]);
  key.bytes = 8388608;
  ASSERT_NE(p.find(key), nullptr);
  EXPECT_EQ(p.find(key)->status, CellStatus::skipped);
  key.bytes = 1;
  EXPECT_EQ(p.find(key), nullptr);
}

TEST(Profile, SelectsCellsWithAValueThatMatchTheFieldsGiven) {
  Profile p = test::example_profile();
  CellKey pattern;
  pattern.test = "fabric_write";
  ASSERT_EQ(p.select(pattern).size(), 1U); // the skipped one has no value
  EXPECT_EQ(p.select(pattern)[0]->key.bytes, 4194304U);
  p.cells.push_back(p.cells[0]);
  p.cells.back().key.bytes = 64;
  ASSERT_EQ(p.select(pattern).size(), 2U);
  EXPECT_EQ(p.select(pattern)[0]->key.bytes, 64U); // in the order of the keys
  pattern.bytes = 4194304;
  EXPECT_EQ(p.select(pattern).size(), 1U);
  pattern.direction = "one_way";
  EXPECT_TRUE(p.select(pattern).empty());
  EXPECT_EQ(p.select(CellKey{}).size(), 4U); // an empty pattern matches all that have a value
}

TEST(Profile, EveryFieldOfAPatternIsCompared) {
  Profile p;
  Cell full;
  full.key = {.test = "t",
              .from = "a",
              .to = "b",
              .bytes = 1,
              .threads = 2,
              .pairs = 3,
              .in_flight = 4,
              .sources = 5,
              .dtype = "fp32",
              .transport = "host",
              .direction = "one_way",
              .operation = "sgd",
              .state = "cold"};
  p.cells = {full};
  CellKey other{.test = "T",
                .from = "A",
                .to = "B",
                .bytes = 9,
                .threads = 9,
                .pairs = 9,
                .in_flight = 9,
                .sources = 9,
                .dtype = "bf16",
                .transport = "shm",
                .direction = "two_way",
                .operation = "adam",
                .state = "warm"};
  const auto expect_only = [&p, &full, &other](auto member) {
    CellKey pattern;
    pattern.*member = full.key.*member;
    EXPECT_EQ(p.select(pattern).size(), 1U);
    pattern.*member = other.*member;
    EXPECT_TRUE(p.select(pattern).empty());
  };
  expect_only(&CellKey::test);
  expect_only(&CellKey::from);
  expect_only(&CellKey::to);
  expect_only(&CellKey::bytes);
  expect_only(&CellKey::threads);
  expect_only(&CellKey::pairs);
  expect_only(&CellKey::in_flight);
  expect_only(&CellKey::sources);
  expect_only(&CellKey::dtype);
  expect_only(&CellKey::transport);
  expect_only(&CellKey::direction);
  expect_only(&CellKey::operation);
  expect_only(&CellKey::state);
  EXPECT_EQ(full.key.text(),
            "t a->b host one_way sgd fp32 cold 5 sources 2 threads 3 pairs 4 in flight 1 B");
}

TEST(CellKey, TextLeavesOutWhatDoesNotApply) {
  CellKey key;
  key.test = "fabric_write";
  key.from = key.to = "m0";
  key.transport = "tcp;ofi_rxm";
  key.direction = "one_way";
  key.bytes = 4194304;
  EXPECT_EQ(key.text(), "fabric_write m0->m0 tcp;ofi_rxm one_way 4194304 B");
  CellKey sum;
  sum.test = "sum";
  sum.from = "m0";
  sum.threads = 1;
  EXPECT_EQ(sum.text(), "sum m0 1 thread");
}

TEST(SummarizeCell, TakesTheSlowTailOfATimeAtItsHighEnd) {
  Cell cell;
  cell.unit = "seconds";
  for (int i = 1; i <= 101; ++i) { // 1..101: median 51, and quantile q lies at 1 + 100 q
    cell.samples.push_back(i);
  }
  std::reverse(cell.samples.begin(), cell.samples.end());
  summarize_cell(cell);
  EXPECT_EQ(cell.n, 101U);
  EXPECT_EQ(cell.min, 1);
  EXPECT_EQ(cell.p50, 51);
  EXPECT_DOUBLE_EQ(cell.p99, 100);
  EXPECT_EQ(cell.max, 101);
  // |x - 51| runs from 0 to 50, each but 0 twice: the middle one of 101 is the 51st, 25
  EXPECT_DOUBLE_EQ(cell.spread, 25.0 / 51.0);
}

TEST(SummarizeCell, TakesTheSlowTailOfARateAtItsLowEnd) {
  Cell cell;
  cell.unit = "bytes_per_second";
  for (int i = 1; i <= 101; ++i) {
    cell.samples.push_back(i);
  }
  summarize_cell(cell);
  EXPECT_DOUBLE_EQ(cell.p99, 2);
  EXPECT_EQ(cell.p50, 51);
}

TEST(SummarizeCell, WithoutSamplesThereIsNothing) {
  Cell cell;
  cell.p50 = 3;
  cell.n = 7;
  summarize_cell(cell);
  EXPECT_EQ(cell.n, 0U);
  EXPECT_EQ(cell.p50, 0);
}

TEST(CellIndex, SelectsWhatTheProfileDoes) {
  const std::vector<std::string> names{"", "a", "a/x", "ab", "b"};
  test::for_cases(4402, 300, [&](test::Random& random) {
    const auto key = [&] {
      return CellKey{.test = names[random.below(names.size())],
                     .from = names[random.below(names.size())],
                     .to = names[random.below(names.size())],
                     .bytes = random.below(2),
                     .transport = names[random.below(2)]};
    };
    Profile profile;
    for (std::uint64_t i = random.below(40); i > 0; --i) {
      Cell& cell = profile.cells.emplace_back();
      cell.key = key();
      cell.status = random.below(4) == 0 ? CellStatus::skipped : CellStatus::ok;
    }
    const CellIndex index(profile);
    for (int i = 0; i < 20; ++i) {
      const CellKey pattern = key();
      ASSERT_EQ(index.select(pattern), profile.select(pattern)) << pattern.text();
    }
  });
}

} // namespace
} // namespace reckon
