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

std::string refusal(const std::string& text) {
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

TEST(AstraWorkload, LayersComputeAndExchangeAsTheirCyclesAndBytesSay) {
  // Emb's all-to-all of 1024 elements is needed after layer 1, Low, the last bottom layer: by Top.
  const auto took = [](double seconds) {
    Computation c;
    c.seconds = seconds;
    return c;
  };
  const Workload w = read_astra_workload(k_model, "m.txt").workload;
  EXPECT_EQ(w.layers,
            (std::vector<Layer>{
                {"Emb", {}, took(300e-9), took(310e-9), took(320e-9), Exchange{1024, "Top"}},
                {"Low", {"Low"}, took(1e-6), took(2e-6), took(3e-6), {}},
                {"Top", {"Top"}, took(10e-9), took(20e-9), took(30e-9), {}}}));
  // By name; and without a number layer 0 is the last of them.
  EXPECT_EQ(read_astra_workload(replaced("HYBRID_DLRM\t1", "HYBRID_DLRM DLRM_LAST_BOTTOM_LAYER: 1"),
                                "m.txt")
                .workload.layers,
            w.layers);
  const auto before = [](const std::string& text) {
    return read_astra_workload(text, "m.txt").workload.layers[0].exchange->before;
  };
  EXPECT_EQ(before(replaced("HYBRID_DLRM\t1", "HYBRID_DLRM")), "Low");
  EXPECT_EQ(before(replaced("HYBRID_DLRM\t1", "DATA")), "Low");
}

TEST(AstraWorkload, WhatNothingWaitsForOrNothingComputesIsNoLayers) {
  const AstraWorkload last = read_astra_workload(replaced("HYBRID_DLRM\t1", "HYBRID_DLRM 2"), "m");
  EXPECT_FALSE(last.workload.layers[0].exchange);
  EXPECT_EQ(last.workload.all_to_all.size(), 1U);
  EXPECT_EQ(last.left_out.unawaited, 1U);
  const Workload idle =
      read_astra_workload("DATA\n1\na -1 0 NONE 0 0 NONE 0 0 ALLREDUCE 8 0\n", "m").workload;
  EXPECT_TRUE(idle.layers.empty());
  EXPECT_EQ(workload_from_json(to_json(idle), "w"), idle);
}

TEST(AstraWorkload, ALayerMayExchangeActivationsAndSumItsGradient) {
  // A mixture of experts, twice in a row: what waits for both is the first layer that has none.
  const std::string experts = "100\tALLTOALL\t4096\t100\tALLTOALL\t4096\t100\tALLREDUCE\t4096\t0\n";
  const AstraWorkload read =
      read_astra_workload("DATA\n3\na\t-1\t" + experts + "b\t-1\t" + experts +
                              "c\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\tALLREDUCE\t8\t0\n",
                          "m.txt");
  const Workload& w = read.workload;
  EXPECT_EQ(w.tensors, (std::vector<Tensor>{{"c", 2}, {"b", 1024}, {"a", 1024}}));
  EXPECT_EQ(w.all_to_all, (std::vector<Tensor>{{"a exchange", 1024}, {"b exchange", 1024}}));
  EXPECT_EQ(w.layers[0].exchange->before, "c");
  EXPECT_EQ(w.layers[1].exchange->before, "c");
  EXPECT_EQ(read.left_out.later, 1U);
  EXPECT_EQ(workload_from_json(to_json(w), "w"), w);
}

TEST(AstraWorkload, LayersMayHaveTheirOwnParallelism) {
  const std::string text = "HYBRID_CUSTOMIZED\n1\na -1 5 NONE 0 6 NONE 0 7 ALLREDUCE 8 0 DATA\n";
  EXPECT_EQ(read_astra_workload(text, "m").workload.tensors, (std::vector<Tensor>{{"a", 2}}));
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
  for (const auto& [text, words] : std::vector<std::pair<std::string, std::string>>{
           {"PIPELINE\n1\n", "model.txt:1: \"PIPELINE\" is no parallelism"},
           {"DATA\n", "model.txt:2: the file ends before the number of layers; was it cut off?"},
           {k_model.substr(0, k_model.find("Top")),
            "model.txt:5: the file ends before layer 3 of 3; was it cut off?"},
           {k_model + "Over -1 1 NONE 0 1 NONE 0 1 NONE 0 0\n",
            "model.txt:6: comes after the 3 layers that line 2 promises; mend one of them"},
           {replaced("\t13\n", "\n"), "model.txt:4: has 11 fields; a layer has 12"},
           {replaced("3000", "3e3"), "model.txt:4: the weight gradient's cycles is"},
           {replaced("ALLREDUCE\t8000", "REDUCESCATTER\t8000"), "which is ALLREDUCE"},
           {replaced("ALLREDUCE\t8000", "GOSSIP\t8000"), "must be one of NONE"},
           {replaced("8000", "8001"), "no whole number of 4-byte elements"},
           {replaced("ALLREDUCE\t8000", "NONE\t8000"), "NONE goes with 0 bytes"},
           {replaced("ALLREDUCE\t8000", "ALLREDUCE\t0"), "NONE goes with 0 bytes"},
           {"DATA\n1\na -1 1 NONE 0 1 NONE 0 1 NONE 0 0\n", "nothing to plan for"},
           {"HYBRID_CUSTOMIZED\n1\na -1 5 NONE 0 6 NONE 0 7 ALLREDUCE 8 0\n",
            "model.txt:3: has 12 fields; a layer has 13"},
           {"HYBRID_CUSTOMIZED\n1\na -1 5 NONE 0 6 NONE 0 7 ALLREDUCE 8 0 ALL\n",
            "the layer's parallelism is \"ALL\""},
           {"HYBRID_DLRM DLRM_LAST_BOTTOM_LAYER:\n", "model.txt:1: ends before"}}) {
    EXPECT_NE(refusal(text).find(words), std::string::npos) << refusal(text);
  }
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
