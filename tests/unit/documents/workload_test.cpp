// SPDX-License-Identifier: Apache-2.0
#include "documents/workload.hpp"

#include "core/json.hpp"
#include "support/example_documents.hpp"
#include "unit/documents/changed.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace reckon {
namespace {

using test::expect_messages;
using test::remove;
using test::set;
using ::testing::ElementsAre;

TEST(Workload, MistakesAreNamed) {
  expect_messages(
      to_json(test::example_workload()),
      {
          {{remove("/tensors")}, "the key \"tensors\" is missing; add it"},
          {{set("/tensors", Json::array())}, "/tensors: is empty; at least one tensor is needed"},
          {{set("/tensors", Json::object())}, "/tensors: must be an array, is {}"},
          {{set("/tensors/1/name", "fc.bias")},
           "/tensors/1/name: the tensor name \"fc.bias\" occurs twice, first at /tensors/0/name; "
           "rename or "
           "remove one"},
          {{set("/all_to_all/0/name", "fc.bias")},
           "/all_to_all/0/name: the tensor name \"fc.bias\" occurs twice, first at "
           "/tensors/0/name; rename or "
           "remove one"},
          {{set("/tensors/2/elements", 0)}, "/tensors/2/elements: must be at least 1, is 0"},
          {{set("/tensors/2/elements", 1.5)},
           "/tensors/2/elements: must be a whole number from 0 to 2^53, is 1.5"},
          {{set("/tensors/2/dtype", "fp64")},
           "/tensors/2/dtype: is \"fp64\"; must be one of fp32, fp16, bf16"},
          {{set("/dtype", "float")}, "/dtype: is \"float\"; must be one of fp32, fp16, bf16"},
          // 2^51 elements of 4 bytes are 2^53 bytes, and the other tensors come on top.
          {{set("/tensors/1/elements", 1ULL << 51U)},
           "/tensors/1/elements: brings the workload above 2^53 bytes"},
          {{set("/forward_seconds", 0)}, "/forward_seconds: must be greater than 0, is 0"},
          {{set("/backward_seconds", -1)}, "/backward_seconds: must be greater than 0, is -1"},
          {{set("/batch", 0)}, "/batch: must be at least 1, is 0"},
          {{set("/layers/1/forward", Json::object())},
           "/layers/1/forward: says nothing; give seconds or some of flops_per_sample, "
           "elements_per_sample and elements, or remove this key"},
          {{set("/layers/2/forward/elements", 5)},
           "/layers/2/forward/elements: stands beside seconds, which were measured; remove one of "
           "the two"},
          {{set("/layers/2/tensors/1", "fc.weight")},
           "/layers/2/tensors/1: the tensor name \"fc.weight\" occurs twice, first at "
           "/layers/2/tensors/0; rename or remove one"},
          {{set("/layers/1/tensors/0", "cnv")},
           "/layers/1/tensors/0: no entry of /tensors has the name \"cnv\"; add one, or name one "
           "that is there"},
          {{remove("/layers/1")},
           "/layers: no layer has the tensor \"conv.weight\"; add it to the one that computes its "
           "gradient"},
          // The exchange's own layer is not after it.
          {{set("/layers/0/exchange/before", "lookup")},
           "/layers/0/exchange/before: no layer after this one has the name \"lookup\""},
      });
}

TEST(Workload, TensorsThatNameNoTypeHaveTheCommonOne) {
  const Workload w = workload_from_json(
      Json::parse(
          R"({"schema": "reckon/workload", "schema_version": 1, "name": "w", "dtype": "bf16",
                      "tensors": [{"name": "a", "elements": 5}, {"name": "b", "elements": 5, "dtype": "fp32"}]})"),
      "f.json");
  EXPECT_EQ(w.tensors[0].dtype, DType::bf16);
  EXPECT_EQ(w.tensors[1].dtype, DType::fp32);
  EXPECT_EQ(w.bytes(), 5U * 2 + 5U * 4);
}

TEST(Workload, SpellingsOfTheSameTensorsGiveTheSameText) {
  const Json each = Json::parse(
      R"({"schema": "reckon/workload", "schema_version": 1, "name": "w",
          "tensors": [{"name": "a", "elements": 5, "dtype": "fp16"}, {"name": "b", "elements": 5.0, "dtype": "fp32"}]})");
  const Json common = Json::parse(
      R"({"tensors": [{"elements": 5, "name": "a"}, {"name": "b", "dtype": "fp32", "elements": 5}],
          "dtype": "fp16", "name": "w", "description": "", "all_to_all": [], "schema_version": 1, "schema": "reckon/workload"})");
  const std::string text = canonical_text(workload_from_json(each, "f.json"));
  EXPECT_EQ(text, canonical_text(workload_from_json(common, "f.json")));
  EXPECT_EQ(text, R"({
  "dtype": "fp16",
  "name": "w",
  "schema": "reckon/workload",
  "schema_version": 1,
  "tensors": [
    {
      "elements": 5,
      "name": "a"
    },
    {
      "dtype": "fp32",
      "elements": 5,
      "name": "b"
    }
  ]
}
)");
}

TEST(Layout, NeighboursOfOneTypeShareARunAndAnotherTypeBeginsOnABoundary) {
  Workload w;
  w.tensors = {{"a", 3, DType::fp32},  // 12 bytes at 0
               {"b", 14, DType::fp32}, // 56 at 12, ends at 68
               {"c", 7, DType::bf16},  // 14 at 128, the next multiple of 64; ends at 142
               {"d", 1, DType::bf16},  // 2 at 142, ends at 144
               {"e", 1, DType::fp32}}; // 4 at 192, ends at 196
  const GradientLayout layout = layout_of(w);
  EXPECT_THAT(layout.tensor_offset_bytes, ElementsAre(0, 12, 128, 142, 192));
  ASSERT_EQ(layout.runs.size(), 3U);
  EXPECT_EQ(layout.runs[0].offset_bytes, 0U);
  EXPECT_EQ(layout.runs[0].bytes, 68U);
  EXPECT_EQ(layout.runs[0].dtype, DType::fp32);
  EXPECT_EQ(layout.runs[1].offset_bytes, 128U);
  EXPECT_EQ(layout.runs[1].bytes, 16U);
  EXPECT_EQ(layout.runs[1].dtype, DType::bf16);
  EXPECT_EQ(layout.runs[2].offset_bytes, 192U);
  EXPECT_EQ(layout.runs[2].bytes, 4U);
  EXPECT_EQ(layout.total_bytes, 196U);
}

TEST(Layout, ATypeThatEndsOnABoundaryLeavesNoGap) {
  Workload w;
  w.tensors = {{"a", 16, DType::fp32}, {"b", 1, DType::fp16}};
  EXPECT_EQ(layout_of(w).runs[1].offset_bytes, 64U);
  EXPECT_EQ(layout_of(w).total_bytes, 66U);
}

TEST(Layout, NoTensorsNoBytes) {
  EXPECT_EQ(layout_of(Workload{}).total_bytes, 0U);
  EXPECT_TRUE(layout_of(Workload{}).runs.empty());
}

std::string csv_error(const std::string& text) {
  try {
    static_cast<void>(workload_from_csv(text, "dir/net.csv"));
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::input);
    return e.what();
  }
  return "ok";
}

TEST(Csv, IsReadInGradientOrder) {
  const Workload w = workload_from_csv(
      "name,elements,dtype\nfc.weight,1000,bf16\nfc.bias,10,fp32\n", "dir/net.csv");
  EXPECT_EQ(w.name, "net");
  EXPECT_EQ(w.provenance, "imported from net.csv");
  ASSERT_EQ(w.tensors.size(), 2U);
  EXPECT_EQ(w.tensors[0].name, "fc.weight");
  EXPECT_EQ(w.tensors[0].elements, 1000U);
  EXPECT_EQ(w.tensors[0].dtype, DType::bf16);
  EXPECT_EQ(w.tensors[1].name, "fc.bias");
  EXPECT_EQ(test::verdict(to_json(w)), "ok");
}

TEST(Csv, ColumnsMayStandInAnyOrderAndDtypeMayBeLeftOut) {
  const Workload w = workload_from_csv("elements,name\n7,a\n", "net.csv");
  EXPECT_EQ(w.tensors[0].name, "a");
  EXPECT_EQ(w.tensors[0].elements, 7U);
  EXPECT_EQ(w.tensors[0].dtype, DType::fp32);
}

TEST(Csv, ToleratesWhatSpreadsheetsWrite) {
  // Byte order mark, CRLF, blanks, empty lines, quotes, no newline at the end.
  const Workload w = workload_from_csv(
      "\xEF\xBB\xBFname , \"elements\"\r\n\r\n\"a, \"\"b\"\"\" , 7 \r\n  \r\nc,8", "net.csv");
  ASSERT_EQ(w.tensors.size(), 2U);
  EXPECT_EQ(w.tensors[0].name, "a, \"b\"");
  EXPECT_EQ(w.tensors[0].elements, 7U);
  EXPECT_EQ(w.tensors[1].name, "c");
  EXPECT_EQ(w.tensors[1].elements, 8U);
}

TEST(Csv, MistakesNameTheLine) {
  EXPECT_EQ(
      csv_error(""),
      "dir/net.csv: has no tensors; write a header line \"name,elements,dtype\" and one line a "
      "tensor, in gradient order");
  EXPECT_EQ(csv_error("name,elements\n"), csv_error(""));
  EXPECT_EQ(csv_error("fc.weight,1000,fp32\n"),
            "dir/net.csv:1: the header line names \"fc.weight\"; the first line must name the "
            "columns name, elements "
            "and, if wanted, dtype");
  EXPECT_EQ(csv_error("name,dtype\n"),
            "dir/net.csv:1: the header line has no column \"elements\"; add it");
  EXPECT_EQ(csv_error("elements\n"),
            "dir/net.csv:1: the header line has no column \"name\"; add it");
  EXPECT_EQ(csv_error("name,elements,name\n"),
            "dir/net.csv:1: the header line names \"name\" twice; remove one column");
  const std::string head = "name,elements,dtype\na,1,fp32\n";
  EXPECT_EQ(csv_error(head + "b,2\n"), "dir/net.csv:3: has 2 fields, the header line names 3");
  EXPECT_EQ(csv_error(head + "b,2,fp32,\n"),
            "dir/net.csv:3: has 4 fields, the header line names 3");
  for (const char* bad :
       {"0", "-1", "1e3", "1.5", "x", "", "9007199254740993", "99999999999999999999", "1 0"}) {
    EXPECT_EQ(csv_error(head + "b," + bad + ",fp32\n"),
              std::string("dir/net.csv:3: elements is \"") + bad +
                  "\"; must be a whole number from 1 to 2^53, digits only");
  }
  EXPECT_EQ(csv_error(head + "b,2,FP32\n"),
            "dir/net.csv:3: dtype is \"FP32\"; must be one of fp32, fp16, bf16");
  EXPECT_EQ(
      csv_error(head + "\na,2,fp32\n"),
      "dir/net.csv:4: the tensor name \"a\" occurs twice, first on line 2; rename or remove one");
  EXPECT_EQ(csv_error(head + ",2,fp32\n"),
            "dir/net.csv:3: the name must have 1 to 256 characters, no control characters");
  EXPECT_EQ(csv_error(head + "caf\xe9,2,fp32\n"),
            "dir/net.csv:3: the name is not UTF-8; save the file as UTF-8");
  EXPECT_EQ(csv_error(head + "\"b,2,fp32\n"),
            "dir/net.csv:3: a quoted field has no closing quote on its line; add it");
  EXPECT_EQ(csv_error(head + "\"b\"c,2,fp32\n"),
            "dir/net.csv:3: there is text after a closing quote; put the whole field in quotes");
  // 2^51 - 1 elements of 4 bytes fit, and the 4 bytes of tensor a, but not 4 bytes more.
  EXPECT_EQ(csv_error(head + "b,2251799813685247,fp32\nc,1,fp32\n"),
            "dir/net.csv:4: brings the workload above 2^53 bytes");
  EXPECT_EQ(csv_error(head + "b,2,\x1b[31m\n"),
            "dir/net.csv:3: dtype is \"\\u001b[31m\"; must be one of fp32, fp16, bf16");
}

} // namespace
} // namespace reckon
