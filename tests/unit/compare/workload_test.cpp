// SPDX-License-Identifier: Apache-2.0
#include "compare/comparison.hpp"
#include "find.hpp"
#include "support/example_documents.hpp"

#include <gmock/gmock.h>

namespace reckon {
namespace {

using namespace testing;
using namespace test;

TEST(CompareWorkloads, FindsNothingBetweenAWorkloadAndItself) {
  EXPECT_THAT(compare(example_workload(), example_workload()).differences, IsEmpty());
}

TEST(CompareWorkloads, ListsTensorsThatChangedCameOrWent) {
  Workload after = example_workload();
  after.tensors[0].dtype = DType::bf16;
  after.tensors[1].name = "fc.kernel";
  const Comparison c = compare(example_workload(), after);
  // Bytes: fc.bias loses 10 * 2 bytes.
  EXPECT_THAT(places(c),
              ElementsAre("tensors/fc.bias", "tensors/fc.kernel", "tensors/fc.weight", "bytes"));
  EXPECT_EQ(c.differences[0].before.text, "10 fp32");
  EXPECT_EQ(c.differences[0].after.text, "10 bf16");
  EXPECT_TRUE(c.differences[1].before.absent());
  EXPECT_TRUE(c.differences[2].after.absent());
  EXPECT_EQ(c.differences[3].before.number.value() - c.differences[3].after.number.value(), 20);
}

TEST(CompareWorkloads, SeesAnotherOrderOfTheSameTensors) {
  Workload after = example_workload();
  std::swap(after.tensors[0], after.tensors[1]);
  const Comparison c = compare(example_workload(), after);
  ASSERT_THAT(places(c), ElementsAre("tensors"));
  EXPECT_EQ(c.differences[0].parts, 2U);
}

TEST(CompareWorkloads, DoesNotTakeAMissingTensorForAnotherOrder) {
  Workload after = example_workload();
  after.tensors.erase(after.tensors.begin());
  EXPECT_THAT(places(compare(example_workload(), after)), ElementsAre("tensors/fc.bias", "bytes"));
}

TEST(CompareWorkloads, SeesTimesThatChangeOrAppear) {
  Workload after = example_workload();
  after.forward_seconds = 0.011;
  after.backward_seconds = std::nullopt;
  EXPECT_THAT(places(compare(example_workload(), after)),
              ElementsAre("forward_seconds", "backward_seconds"));
}

TEST(CompareRoles, ComparesGroupByGroup) {
  Roles after = example_roles();
  after.groups[1].count = 2;
  after.groups.push_back(after.groups[0]);
  const Comparison c = compare(example_roles(), after);
  ASSERT_THAT(places(c), ElementsAre("groups/1/count", "groups/2"));
  EXPECT_EQ(c.differences[0].before.number, 1);
  EXPECT_EQ(c.differences[0].after.number, 2);
  EXPECT_TRUE(c.differences[1].before.absent());
}

} // namespace
} // namespace reckon
