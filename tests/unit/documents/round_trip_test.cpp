// SPDX-License-Identifier: Apache-2.0
#include "core/json.hpp"
#include "documents/json.hpp"
#include "support/example_documents.hpp"

#include "core/digest.hpp"
#include "core/file.hpp"

#include <gtest/gtest.h>

namespace reckon {
namespace {

template <class T>
class RoundTrip : public ::testing::Test {};
using Kinds = ::testing::Types<Profile, Workload, Roles, Plan, Report>;
TYPED_TEST_SUITE(RoundTrip, Kinds);

template <class T>
T example() {
  if constexpr (std::is_same_v<T, Profile>) {
    return test::example_profile();
  } else if constexpr (std::is_same_v<T, Workload>) {
    return test::example_workload();
  } else if constexpr (std::is_same_v<T, Roles>) {
    return test::example_roles();
  } else if constexpr (std::is_same_v<T, Plan>) {
    return test::example_plan();
  } else {
    return test::example_report();
  }
}

TYPED_TEST(RoundTrip, EveryFieldSurvivesAFile) {
  const std::string text = canonical_text(example<TypeParam>());
  const Document document = document_from_json(parse_json(text, "f.json"), "f.json");
  ASSERT_TRUE(std::holds_alternative<TypeParam>(document));
  EXPECT_EQ(canonical_text(document), text);
  if constexpr (!std::is_same_v<TypeParam, Profile>) { // its cells come back sorted
    EXPECT_TRUE(std::get<TypeParam>(document) == example<TypeParam>());
  }
}

} // namespace
} // namespace reckon
