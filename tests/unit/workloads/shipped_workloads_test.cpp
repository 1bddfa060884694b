// SPDX-License-Identifier: Apache-2.0
// The shipped workloads against totals that others published or that were computed apart from the
// generator.
#include "core/file.hpp"
#include "documents/document.hpp"
#include "equations/placement.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <numeric>
#include <set>

namespace reckon {
namespace {

std::string path_of(const std::string& workload) {
  return RECKON_SOURCE_DIR "/profiles/workloads/" + workload + ".json";
}

struct Listed {
  std::vector<std::string> names;
  std::vector<std::uint64_t> elements;
};

Listed listed(const std::vector<Tensor>& tensors) {
  Listed out;
  for (const Tensor& tensor : tensors) {
    EXPECT_EQ(tensor.dtype, DType::fp32);
    out.names.push_back(tensor.name);
    out.elements.push_back(tensor.elements);
  }
  return out;
}

Listed list_of(const std::string& workload) {
  return listed(read_workload(path_of(workload)).tensors);
}
Listed tables_of(const std::string& workload) {
  return listed(read_workload(path_of(workload)).all_to_all);
}

std::uint64_t sum(const std::vector<std::uint64_t>& values) {
  return std::accumulate(values.begin(), values.end(), std::uint64_t{0});
}

std::uint64_t pieces(const Listed& list, std::uint64_t bytes) {
  std::uint64_t out = 0;
  for (const std::uint64_t elements : list.elements) {
    out += cut_into_chunks(4 * elements, bytes).count;
  }
  return out;
}

struct Expected {
  const char* workload;
  std::size_t tensors;
  std::uint64_t elements;
  std::uint64_t largest;
  std::uint64_t chunks_32_kib; // PHub's
  std::uint64_t parts_bytes;   // BytePS's default of 4,096,000 bytes
  std::uint64_t parts_4_mib;
  const char* first; // ready first in the backward pass
  const char* last;
};

const Expected k_expected[] = {
    {"resnet50", 161, 25'557'032, 2'359'296, 3'223, 175, 169, "fc.bias", "conv1.weight"},
    {"vgg16", 32, 138'357'544, 102'760'448, 16'905, 162, 158, "classifier.6.bias",
     "features.0.bias"},
    {"bert-large", 391, 335'141'888, 31'254'528, 41'116, 710, 564, "pooler.dense.bias",
     "embeddings.word_embeddings.weight"},
    {"gpt2", 148, 124'439'808, 38'597'376, 15'274, 245, 244, "transformer.ln_f.weight",
     "transformer.wte.weight"},
    {"gpt2-xl", 580, 1'557'611'200, 80'411'200, 190'450, 1'955, 1'953, "transformer.ln_f.weight",
     "transformer.wte.weight"},
    {"transformer-big", 185, 210'804'736, 34'516'992, 25'806, 386, 289,
     "model/Transformer/decoder_stack/layer_normalization/layer_norm_bias",
     "model/Transformer/embedding_shared_weights/embedding_and_softmax/weights"},
    {"ugatit", 148, 670'761'088, 268'435'456, 81'948, 776, 752, "disLB.conv.weight_orig",
     "genA2B.DownBlock.1.weight"},
    {"gnmt", 44, 160'671'297, 33'095'680, 19'625, 198, 176, "decoder.classifier.classifier.bias",
     "encoder.embedder.weight"},
    {"dlrm", 16, 2'368'897, 1'048'576, 298, 17, 16, "top_l.8.bias", "bot_l.0.weight"},
    {"dlrm-kaggle", 14, 475'985, 187'904, 67, 14, 14, "top_l.4.bias", "bot_l.0.weight"},
    {"resnet50-astra-sim", 54, 25'502'912, 2'359'296, 3'116, 68, 62, "fc1000", "conv1"},
    {"dlrm-astra-sim", 7, 797'952, 266'240, 99, 7, 7, "MLP_Top_2", "MLP_Bottom_0"},
};

class ShippedWorkload : public testing::TestWithParam<Expected> {};

TEST_P(ShippedWorkload, HasThePublishedTotalsInTheOrderOfTheBackwardPass) {
  const Expected& expected = GetParam();
  const Listed list = list_of(expected.workload);
  EXPECT_EQ(list.elements.size(), expected.tensors);
  EXPECT_EQ(sum(list.elements), expected.elements);
  EXPECT_EQ(*std::max_element(list.elements.begin(), list.elements.end()), expected.largest);
  EXPECT_EQ(pieces(list, 32U << 10U), expected.chunks_32_kib);
  EXPECT_EQ(pieces(list, 4'096'000), expected.parts_bytes);
  EXPECT_EQ(pieces(list, 4U << 20U), expected.parts_4_mib);
  EXPECT_EQ(list.names.front(), expected.first);
  EXPECT_EQ(list.names.back(), expected.last);
  // Every tensor is named once, and none is empty.
  EXPECT_EQ(std::set<std::string>(list.names.begin(), list.names.end()).size(), list.names.size());
  EXPECT_EQ(std::count(list.elements.begin(), list.elements.end(), 0U), 0);
}

TEST_P(ShippedWorkload, IsWhatTheProgramWouldWriteAndNamedAsItsFile) {
  const std::string path = path_of(GetParam().workload);
  const Workload workload = read_workload(path);
  EXPECT_EQ(canonical_text(workload), read_file(path));
  EXPECT_EQ(workload.name, GetParam().workload);
  EXPECT_FALSE(workload.description.empty());
  EXPECT_FALSE(workload.provenance.empty());
}

/// Of a recording under docs/results/h200. There the passes computed in bf16, and the copies of a
/// linear layer's weight and bias in that type are made in another order: the bias goes first here.
std::vector<std::string> recorded(const std::string& workload,
                                  const std::vector<std::string>& linear_layers) {
  std::vector<std::string> names =
      listed(read_workload(RECKON_SOURCE_DIR "/docs/results/h200/" + workload + ".json").tensors)
          .names;
  for (std::size_t i = 0; i + 1 < names.size(); ++i) {
    if (std::any_of(linear_layers.begin(), linear_layers.end(), [&](const std::string& layer) {
          return names[i].ends_with(layer + ".weight") && names[i + 1].ends_with(layer + ".bias");
        })) {
      std::swap(names[i], names[i + 1]);
    }
  }
  return names;
}

TEST(ShippedOrder, IsThatOfRecordings) {
  EXPECT_EQ(list_of("resnet50").names, recorded("resnet50", {"fc"}));
  EXPECT_EQ(list_of("gpt2").names, recorded("gpt2", {}));
  // The recording has another head, in front, and no pooler.
  std::vector<std::string> bert =
      recorded("bert-large", {"dense", "self.query", "self.key", "self.value"});
  std::erase_if(bert, [](const std::string& name) { return name.starts_with("cls."); });
  for (std::string& name : bert) {
    name.erase(0, std::string_view("bert.").size());
  }
  std::vector<std::string> shipped = list_of("bert-large").names;
  std::erase_if(shipped, [](const std::string& name) { return name.starts_with("pooler."); });
  EXPECT_EQ(shipped, bert);
}

TEST(ShippedLayers, ComputeWhatTheirArchitecturesDo) {
  const auto forward = [](const std::string& name) {
    std::uint64_t flops = 0;
    for (const Layer& layer : read_workload(path_of(name)).layers) {
      flops += layer.forward.flops_per_sample;
    }
    return flops;
  };
  EXPECT_EQ(forward("resnet50"), 2 * 4'089'184'256ULL); // torchvision lists 4.089 G products
  // Of dlrm each weight is used once: 170,496 below and 2,194,688 above, and 351 dot products of
  // 128.
  EXPECT_EQ(forward("dlrm"), 2 * (170'496U + 2'194'688U + 351 * 128));
  EXPECT_TRUE(read_workload(path_of("vgg16")).layers.empty());
}

TEST(ShippedLayers, OfAstraSimTakeThePublishedCycles) {
  // Sums of three columns of its texts: forward, input gradient, weight gradient; 1 cycle is 1 ns.
  const auto cycles = [](const std::string& name, Computation Layer::*pass) {
    double seconds = 0;
    for (const Layer& layer : read_workload(path_of(name)).layers) {
      seconds += (layer.*pass).seconds.value_or(0);
    }
    return std::llround(1e9 * seconds);
  };
  EXPECT_EQ(cycles("resnet50-astra-sim", &Layer::forward), 380'038);
  EXPECT_EQ(cycles("resnet50-astra-sim", &Layer::input_gradient), 377'463);
  EXPECT_EQ(cycles("resnet50-astra-sim", &Layer::weight_gradient), 337'813);
  EXPECT_EQ(cycles("dlrm-astra-sim", &Layer::forward), 19'020);
  EXPECT_EQ(cycles("dlrm-astra-sim", &Layer::input_gradient), 19'014);
  EXPECT_EQ(cycles("dlrm-astra-sim", &Layer::weight_gradient), 13'644);
  // 98,304 bytes each way, before the first layer of the upper network.
  EXPECT_EQ(tables_of("dlrm-astra-sim").elements, std::vector<std::uint64_t>{98'304 / 4});
  EXPECT_EQ(read_workload(path_of("dlrm-astra-sim")).layers.front().exchange->before, "MLP_Top_0");
}

INSTANTIATE_TEST_SUITE_P(All, ShippedWorkload, testing::ValuesIn(k_expected),
                         [](const auto& shipped) {
                           std::string name = shipped.param.workload;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(ShippedWorkloads, AreAllListedHere) {
  std::set<std::string> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(RECKON_SOURCE_DIR "/profiles/workloads")) {
    files.insert(entry.path().stem().string());
  }
  std::set<std::string> expected;
  for (const Expected& e : k_expected) {
    expected.insert(e.workload);
  }
  EXPECT_EQ(files, expected);
}

TEST(ShippedWorkloads, EmbeddingTablesHaveThePublishedSizes) {
  // 204,184,588 rows of 128 and 33,762,577 rows of 16.
  EXPECT_EQ(tables_of("dlrm").elements.size(), 26U);
  EXPECT_EQ(sum(tables_of("dlrm").elements), 26'135'627'264U);
  EXPECT_EQ(tables_of("dlrm-kaggle").elements.size(), 26U);
  EXPECT_EQ(sum(tables_of("dlrm-kaggle").elements), 540'201'232U);
}

TEST(ShippedWorkloads, ResNetsGradientsComeBlockByBlockFromTheEnd) {
  // layer4.0 is the only block of its layer with a downsampling branch, whose parameters come last
  // in the block.
  const Listed list = list_of("resnet50");
  const std::vector<std::string> start(list.names.begin(), list.names.begin() + 11);
  EXPECT_EQ(start, (std::vector<std::string>{"fc.bias", "fc.weight", "layer4.2.bn3.weight",
                                             "layer4.2.bn3.bias", "layer4.2.conv3.weight",
                                             "layer4.2.bn2.weight", "layer4.2.bn2.bias",
                                             "layer4.2.conv2.weight", "layer4.2.bn1.weight",
                                             "layer4.2.bn1.bias", "layer4.2.conv1.weight"}));
  EXPECT_EQ(list.elements[0], 1000U);
  EXPECT_EQ(list.elements[1], 2'048'000U);
  EXPECT_EQ(list.elements[4], 1'048'576U);
}

using Rule = Balance (*)(const std::vector<std::uint64_t>&, std::size_t);

double imbalance(Rule rule, const std::string& workload, std::uint64_t chunk_bytes,
                 std::size_t cores) {
  std::vector<std::uint64_t> loads;
  // Ours are in the order of gradients; keys are numbered in that of the model.
  std::vector<std::uint64_t> keys = list_of(workload).elements;
  std::reverse(keys.begin(), keys.end());
  for (const std::uint64_t elements : keys) {
    const Chunks chunks = cut_into_chunks(4 * elements, chunk_bytes);
    loads.insert(loads.end(), chunks.count - 1, chunks.full_bytes);
    loads.push_back(chunks.last_bytes);
  }
  return max_over_mean(rule(loads, cores).loads);
}

constexpr std::uint64_t k_chunk = 32U << 10U, k_whole = std::uint64_t{1} << 40U;

// The values of both were recomputed independently and are known to the digits given.
TEST(ShippedWorkloads, LongestFirstBalancesThem) {
  EXPECT_NEAR(imbalance(balance_longest_first, "resnet50", k_chunk, 28), 1.005, 0.0005);
  EXPECT_NEAR(imbalance(balance_longest_first, "vgg16", k_chunk, 28), 1.001, 0.0005);
  EXPECT_NEAR(imbalance(balance_longest_first, "resnet50", k_whole, 10), 1.0001, 0.00005);
  EXPECT_NEAR(imbalance(balance_longest_first, "bert-large", k_whole, 10), 1.001, 0.0005);
}

TEST(ShippedWorkloads, PhubsReleasedRuleDoesNotUnlessTheyAreCut) {
  EXPECT_NEAR(imbalance(balance_as_phub_released, "resnet50", k_chunk, 28), 1.034, 0.0005);
  EXPECT_NEAR(imbalance(balance_as_phub_released, "vgg16", k_chunk, 28), 1.003, 0.0005);
  EXPECT_NEAR(imbalance(balance_as_phub_released, "resnet50", k_whole, 10), 1.874, 0.0005);
  EXPECT_NEAR(imbalance(balance_as_phub_released, "bert-large", k_whole, 10), 1.425, 0.0005);
}

} // namespace
} // namespace reckon
