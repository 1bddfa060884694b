// SPDX-License-Identifier: Apache-2.0
#include "import/astra_workload.hpp"

#include "core/error.hpp"

#include <gtest/gtest.h>

#include <random>

namespace reckon {
namespace {

/// Two layers below an embedding, with tabs and trailing blanks as the files of ASTRA-sim have
/// them.
const std::string k_model = "HYBRID_DLRM\t1\t\t\n"
                            "3\t\t\n"
                            "Emb\t-1\t300\tALLTOALL\t4096\t310\tALLTOALL\t4096\t320\tNONE\t0\t9\n"
                            "Low\t-1\t1000\tNONE\t0\t2000\tNONE\t0\t3000\tALLREDUCE\t8000\t13\n"
                            "Top\t-1\t10\tALLREDUCE\t64\t20\tNONE\t0\t30\tALLREDUCE\t400\t7\n";

std::string complaint(const std::string& text) {
  try {
    static_cast<void>(read_astra_workload(text, "model.txt"));
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::input);
    EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
    return e.what();
  }
  return "no error";
}

std::string replaced(const std::string& from, const std::string& to) {
  std::string text = k_model;
  return text.replace(text.find(from), from.size(), to);
}

TEST(AstraWorkload, GradientsAreInBackwardOrderAndCyclesAreNanoseconds) {
  const AstraWorkload read = read_astra_workload(k_model, "some/model.txt");
  const Workload& w = read.workload;
  EXPECT_EQ(w.name, "model");
  // 400 and 8000 bytes of fp32.
  EXPECT_EQ(w.tensors, (std::vector<Tensor>{{"Top", 100}, {"Low", 2000}}));
  EXPECT_EQ(w.all_to_all, (std::vector<Tensor>{{"Emb", 1024}}));
  EXPECT_EQ(*w.forward_seconds, 1310e-9);  // 300 + 1000 + 10
  EXPECT_EQ(*w.backward_seconds, 5680e-9); // 310 + 320 + 2000 + 3000 + 20 + 30
  EXPECT_EQ(read.left_out.layers, 1U);     // Top's activations
  EXPECT_EQ(read.left_out.collective_bytes, 64U);
  EXPECT_EQ(read.left_out.update_cycles, 29U);
  EXPECT_EQ(workload_from_json(to_json(w), "w"), w);
}

TEST(AstraWorkload, LayersOfOneNameStayApart) {
  const Workload w = read_astra_workload(replaced("Top", "Low"), "m.txt").workload;
  EXPECT_EQ(w.tensors[0].name, "Low#2");
  EXPECT_EQ(w.tensors[1].name, "Low");
}

TEST(AstraWorkload, TheFirstLineTellsWhatItIs) {
  EXPECT_TRUE(is_astra_workload(k_model));
  EXPECT_TRUE(is_astra_workload("DATA\r\n54\r\n"));
  EXPECT_FALSE(is_astra_workload("DATABASE\n"));
  EXPECT_FALSE(is_astra_workload("# nccl-tests\nDATA\n"));
  EXPECT_FALSE(is_astra_workload(""));
}

TEST(AstraWorkload, WhatIsWrongIsNamedWithItsLine) {
  EXPECT_TRUE(
      complaint("PIPELINE\n1\n").starts_with("model.txt:1: \"PIPELINE\" is no parallelism"));
  EXPECT_EQ(complaint("DATA\n"),
            "model.txt:2: the file ends before the number of layers; was it cut "
            "off?");
  EXPECT_EQ(complaint(k_model.substr(0, k_model.find("Top"))),
            "model.txt:5: the file ends before layer 3 of 3; was it cut off?");
  EXPECT_EQ(complaint(k_model + "Over -1 1 NONE 0 1 NONE 0 1 NONE 0 0\n"),
            "model.txt:6: comes after the 3 layers that line 2 promises; mend one of them");
  EXPECT_NE(complaint(replaced("\t13\n", "\n")).find("model.txt:4: has 11 fields; a layer has 12"),
            std::string::npos);
  EXPECT_NE(complaint(replaced("3000", "3e3")).find("model.txt:4: the weight gradient's cycles is"),
            std::string::npos);
  EXPECT_NE(
      complaint(replaced("ALLREDUCE\t8000", "REDUCESCATTER\t8000")).find("which is ALLREDUCE"),
      std::string::npos);
  EXPECT_NE(complaint(replaced("ALLREDUCE\t8000", "GOSSIP\t8000")).find("must be one of NONE"),
            std::string::npos);
  EXPECT_NE(complaint(replaced("8000", "8001")).find("no whole number of 4-byte elements"),
            std::string::npos);
  EXPECT_NE(complaint(replaced("ALLREDUCE\t8000", "NONE\t8000")).find("NONE goes with 0 bytes"),
            std::string::npos);
  EXPECT_NE(complaint(replaced("ALLREDUCE\t8000", "ALLREDUCE\t0")).find("NONE goes with 0 bytes"),
            std::string::npos);
  EXPECT_NE(complaint("DATA\n1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 0\n").find("nothing to plan for"),
            std::string::npos);
}

TEST(AstraWorkload, AFileWithBytesChangedIsValidOrAnError) {
  constexpr unsigned k_seed = 20261122;
  RecordProperty("seed", static_cast<int>(k_seed));
  std::mt19937 engine(k_seed);
  const std::string bytes = "0159-eNA \t\n\x01\xff#";
  for (int i = 0; i < 500; ++i) {
    std::string text = k_model;
    for (unsigned changes = 1 + engine() % 4; changes > 0; --changes) {
      text[engine() % text.size()] = bytes[engine() % bytes.size()];
    }
    try {
      const Workload w = read_astra_workload(text, "m.txt").workload;
      if (text.find_first_of("\x01\xff") == text.npos) { // else the document's reader may refuse
        EXPECT_EQ(workload_from_json(to_json(w), "w"), w);
      }
    } catch (const Error& e) {
      EXPECT_EQ(e.kind(), ErrorKind::input);
    }
  }
}

} // namespace
} // namespace reckon
