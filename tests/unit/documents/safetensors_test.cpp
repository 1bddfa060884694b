// SPDX-License-Identifier: Apache-2.0
#include "documents/safetensors.hpp"

#include "core/error.hpp"
#include "documents/document.hpp"
#include "support/messages.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace reckon {
namespace {

namespace fs = std::filesystem;

std::string with_length(const std::string& header, std::uint64_t length) {
  std::string out;
  for (int i = 0; i < 8; ++i) {
    out += static_cast<char>(length >> (8 * i) & 0xffU);
  }
  return out + header;
}
std::string file_of(const std::string& header) {
  return with_length(header, header.size());
}

struct Read {
  Workload workload;
  std::vector<std::string> doubts;
};
Read read(const std::string& header) {
  Read out;
  out.workload =
      workload_from_safetensors_header(file_of(header), "dir/net.safetensors", out.doubts);
  return out;
}

std::string error_of(const std::string& beginning) {
  std::vector<std::string> doubts;
  try {
    static_cast<void>(workload_from_safetensors_header(beginning, "f.safetensors", doubts));
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::input);
    return e.what();
  }
  return "ok";
}

TEST(Safetensors, TensorsComeInTheReverseOrderOfTheirData) {
  // Members of JSON have no order: the data's counts. 2 x 3 fp32 are 24 bytes, a scalar of bf16 2.
  const Read r = read(R"({"__metadata__": {"format": "pt"},
    "z.weight": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]},
    "a.bias": {"dtype": "BF16", "shape": [], "data_offsets": [24, 26]},
    "b": {"dtype": "F16", "shape": [4], "data_offsets": [26, 34]}}   )");
  const std::vector<Tensor> expected{
      {"b", 4, DType::fp16}, {"a.bias", 1, DType::bf16}, {"z.weight", 6, DType::fp32}};
  EXPECT_EQ(r.workload.tensors, expected);
  EXPECT_EQ(r.workload.name, "net");
  EXPECT_EQ(r.workload.provenance,
            "header of net.safetensors: its tensors, the last first, which is not the order of "
            "gradients");
  ASSERT_EQ(r.doubts.size(), 1U);
  EXPECT_THAT(r.doubts[0], test::Says("gradients"));
}

TEST(Safetensors, WhatHasNoGradientIsLeftOutAndCounted) {
  const Read r = read(R"({
    "bn.weight": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
    "bn.running_mean": {"dtype": "F32", "shape": [2], "data_offsets": [8, 16]},
    "bn.running_var": {"dtype": "F32", "shape": [2], "data_offsets": [16, 24]},
    "running_mean_head": {"dtype": "F32", "shape": [1], "data_offsets": [24, 28]},
    "bn.num_batches_tracked": {"dtype": "I64", "shape": [], "data_offsets": [28, 36]},
    "mask": {"dtype": "BOOL", "shape": [3], "data_offsets": [36, 39]},
    "empty": {"dtype": "F32", "shape": [0, 7], "data_offsets": [39, 39]},
    "bn2.num_batches_tracked": {"dtype": "F32", "shape": [1], "data_offsets": [39, 43]}})");
  const std::vector<Tensor> expected{{"running_mean_head", 1, DType::fp32},
                                     {"bn.weight", 2, DType::fp32}};
  EXPECT_EQ(r.workload.tensors, expected);
  ASSERT_EQ(r.doubts.size(), 2U);
  EXPECT_EQ(r.doubts[1], "dir/net.safetensors: 6 tensors left out: whole numbers, running "
                         "statistics or empty, which have no gradients");
}

TEST(Safetensors, ABadFileIsOneErrorWithPlaceAndRemedy) {
  EXPECT_EQ(error_of(""), "f.safetensors: has 0 bytes; a safetensors file begins with the 8 of its "
                          "header's length. Load it again");
  EXPECT_EQ(error_of(with_length("{}", 3)),
            "f.safetensors: ends after 2 of the 3 bytes of its header; load it again");
  EXPECT_EQ(error_of(with_length("", 100'000'001)),
            "f.safetensors: its first 8 bytes say that the header has 100000001 bytes, and "
            "safetensors files have at most 100000000; this is another kind of file, as git-lfs "
            "leaves one in its place, or it is damaged");
  EXPECT_THAT(error_of(file_of(R"({"a": )")), test::Says("f.safetensors:1:7"));
  EXPECT_EQ(error_of(file_of("[]")), "f.safetensors: must be an object, is []");
  EXPECT_EQ(error_of(file_of("{}")), "f.safetensors: has no tensor that can have a gradient; give "
                                     "the workload as CSV");
  const auto one = [](const std::string& tensor) {
    return error_of(file_of(R"({"a": {)" + tensor + "}}"));
  };
  EXPECT_EQ(one(R"("dtype": "F31", "shape": [1], "data_offsets": [0, 4])"),
            "f.safetensors: /a/dtype: \"F31\" is no element type of this format that is known "
            "here; write the tensors with fp32, fp16 or bf16, or give the workload as CSV");
  EXPECT_EQ(one(R"("dtype": "F64", "shape": [1], "data_offsets": [0, 8])"),
            "f.safetensors: /a/dtype: is F64, which no gradient has here; give the workload as "
            "CSV, with the types of the gradients (fp32, fp16, bf16)");
  EXPECT_EQ(one(R"("dtype": "F32", "shape": [9007199254740992, 2], "data_offsets": [0, 4])"),
            "f.safetensors: /a/shape: has more than 2^53 elements");
  EXPECT_EQ(one(R"("dtype": "F32", "shape": [3], "data_offsets": [0, 8])"),
            "f.safetensors: /a/data_offsets: hold 8 bytes, but 3 elements of F32 have 12; the file "
            "is damaged, load it again");
  EXPECT_EQ(one(R"("dtype": "F32", "shape": [1], "data_offsets": [4, 0])"),
            "f.safetensors: /a/data_offsets: must be two offsets in bytes, the end not before the "
            "begin");
  EXPECT_EQ(error_of(file_of(R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
                                 "b": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}})")),
            "f.safetensors: /b/data_offsets: overlap those of \"a\"; the file is damaged, load it "
            "again");
}

class SafetensorsFiles : public testing::Test {
protected:
  void SetUp() override {
    m_folder = fs::path(testing::TempDir()) /
               testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::create_directories(m_folder);
  }
  void TearDown() override { fs::remove_all(m_folder); }
  std::string put(const std::string& name, const std::string& content) {
    std::ofstream(m_folder / name, std::ios::binary) << content;
    return (m_folder / name).string();
  }
  static std::string message(const std::string& path) {
    try {
      static_cast<void>(read_workload(path));
    } catch (const Error& e) {
      return e.what();
    }
    return "ok";
  }
  fs::path m_folder;
};

TEST_F(SafetensorsFiles, OfAFileOnlyTheHeaderIsRead) {
  const std::string path =
      put("net.safetensors",
          file_of(R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}})") + "any data");
  EXPECT_EQ(read_workload(path).tensors, (std::vector<Tensor>{{"a", 2, DType::fp32}}));
}

TEST_F(SafetensorsFiles, AnIndexIsReadWithTheFilesThatItNames) {
  put("m-1.safetensors", file_of(R"({"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]},
                  "b": {"dtype": "I64", "shape": [1], "data_offsets": [8, 16]}})"));
  put("m-2.safetensors",
      file_of(R"({"c": {"dtype": "F32", "shape": [3], "data_offsets": [0, 12]}})"));
  const auto index = [&](const std::string& map) {
    return put("m.safetensors.index.json",
               R"({"metadata": {"total_size": 28}, "weight_map": )" + map + "}");
  };
  const std::string path =
      index(R"({"c": "m-2.safetensors", "a": "m-1.safetensors", "b": "m-1.safetensors"})");
  const Workload w = read_workload(path);
  EXPECT_EQ(w.name, "m");
  EXPECT_EQ(w.tensors, (std::vector<Tensor>{{"c", 3, DType::fp32}, {"a", 2, DType::fp32}}));
  // What the index does not name belongs to no model.
  EXPECT_EQ(read_workload(index(R"({"a": "m-1.safetensors"})")).tensors.size(), 1U);
  EXPECT_EQ(message(index(R"({"x": "m-1.safetensors"})")),
            path + ": /weight_map/x: " + (m_folder / "m-1.safetensors").string() +
                " has no such tensor; the files are not of one model, load them again");
  EXPECT_EQ(message(index(R"({"x": "m-3.safetensors"})")),
            "cannot open " + (m_folder / "m-3.safetensors").string() +
                ": No such file or directory");
  EXPECT_EQ(message(index(R"({"x": "../m-1.safetensors"})")),
            path + ": /weight_map/x: is \"../m-1.safetensors\"; must name a .safetensors file "
                   "beside the index");
  EXPECT_EQ(message(index("{}")), path + ": /weight_map: names no tensor");
}

} // namespace
} // namespace reckon
