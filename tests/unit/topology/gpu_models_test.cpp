// SPDX-License-Identifier: Apache-2.0
#include "topology/gpu_models.hpp"

#include <gtest/gtest.h>

namespace reckon {
namespace {

std::string_view model_of(std::string_view name) {
  const GpuModel* model = gpu_model(name);
  return model == nullptr ? "none" : model->name;
}

TEST(GpuModels, AreKnownByTheNamesThatNvidiaSmiPrintsInAnyCase) {
  EXPECT_EQ(model_of("NVIDIA H100 80GB HBM3"), "H100");
  EXPECT_EQ(model_of("h100"), "H100");
  EXPECT_EQ(model_of("Tesla V100-SXM2-16GB"), "V100");
  EXPECT_EQ(model_of("NVIDIA GeForce RTX 4090"), "4090");
  EXPECT_EQ(model_of("RTX4090"), "4090");
  EXPECT_EQ(model_of("NVIDIA RTX 6000 Ada Generation"), "6000 Ada");
  EXPECT_EQ(model_of("NVIDIA RTX A6000"), "A6000");
  EXPECT_EQ(model_of("Quadro RTX 6000"), "Quadro RTX 6000");
  EXPECT_EQ(model_of("SM_90"), "sm_90");
}

TEST(GpuModels, ANameThatOnlyContainsAnotherIsNone) {
  EXPECT_EQ(model_of("NVIDIA A100-SXM4-40GB"), "A100");
  EXPECT_EQ(model_of("NVIDIA A10G"), "A10G");
  EXPECT_EQ(model_of("NVIDIA A10"), "A10");
  EXPECT_EQ(model_of("NVIDIA GB200"), "GB200");
  EXPECT_EQ(model_of("NVIDIA GH200 480GB"), "GH200");
  EXPECT_EQ(model_of("NVIDIA H20"), "H20");
  EXPECT_EQ(model_of("NVIDIA L4"), "L4");
  EXPECT_EQ(model_of("NVIDIA L40S"), "L40S");
  EXPECT_EQ(model_of("NVIDIA RTX A2000"), "none");
  EXPECT_EQ(model_of("NVIDIA RTX 6000"), "none"); // Turing's or Ada's?
  EXPECT_EQ(model_of("Voodoo2"), "none");
  EXPECT_EQ(model_of(""), "none");
}

TEST(GpuModels, GiveAPcieLinkToGpusWithoutOne) {
  const PcieLink slow{8e9, 4};
  Topology t;
  t.objects = {{.id = "m0"},
               {.id = "m0/gpu0", .kind = ObjectKind::gpu, .parent = "m0", .name = "Tesla T4"},
               {.id = "m0/gpu1", .kind = ObjectKind::gpu, .parent = "m0", .name = "Tesla T4"},
               {.id = "m0/gpu2", .kind = ObjectKind::gpu, .parent = "m0", .name = "NVIDIA GB200"},
               {.id = "m0/nic0", .kind = ObjectKind::nic, .parent = "m0", .name = "T4"}};
  t.objects[2].pcie = slow;
  complete_pcie(t);
  EXPECT_EQ(t.objects[1].pcie, (PcieLink{8e9, 16}));
  EXPECT_EQ(t.objects[2].pcie, slow); // as negotiated
  EXPECT_FALSE(t.objects[3].pcie);    // hangs from its processor by NVLink-C2C
  EXPECT_FALSE(t.objects[4].pcie);
}

} // namespace
} // namespace reckon
