// SPDX-License-Identifier: Apache-2.0
#include "present/document_text.hpp"
#include "support/example_documents.hpp"
#include "support/machine_documents.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace reckon {
namespace {

using namespace testing;

std::size_t lines(const std::string& text) {
  return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
}

/// Commas outside of quotes on each line: the same everywhere.
void expect_rectangular(const std::string& text) {
  std::size_t expected = 0;
  std::size_t commas = 0;
  bool quoted = false;
  bool first = true;
  for (const char c : text) {
    quoted = quoted != (c == '"');
    commas += c == ',' && !quoted ? 1U : 0U;
    if (c == '\n' && !quoted) {
      expected = first ? commas : expected;
      EXPECT_EQ(commas, expected);
      commas = 0;
      first = false;
    }
  }
  EXPECT_FALSE(quoted);
}

TEST(Csv, HasOneRowACellAndEmptyFieldsWhereNothingApplies) {
  const Profile p = test::machine_profile();
  const std::string text = csv(p);
  EXPECT_EQ(lines(text), p.cells.size() + 1);
  expect_rectangular(text);
  EXPECT_THAT(text, StartsWith("case,from,to,bytes,"));
  EXPECT_THAT(
      text,
      HasSubstr("fabric_write,m0,m0,8,,,,,,verbs;ofi_rxm,,,,unsupported,bytes_per_second,,,,,,,,,,"
                "fi_getinfo(verbs;ofi_rxm): No data available\n"));
}

TEST(Csv, OfAPlanWithTreesSaysWhichTreeAPartTakes) {
  Plan plan = test::machine_plan();
  EXPECT_THAT(csv(plan), StartsWith("part,offset_bytes,bytes,server,lane\n"));
  const std::size_t ranks = plan.ranks.size();
  plan.trees = {
      {"one", std::vector<std::int64_t>(ranks, 0), std::vector<std::int64_t>(ranks, 0), 0.5},
      {"two", std::vector<std::int64_t>(ranks, 1), std::vector<std::int64_t>(ranks, 1), 0.5}};
  for (std::size_t p = 0; p < plan.parts.size(); ++p) {
    plan.parts.tree.push_back(p % 2);
  }
  const std::string text = csv(plan);
  expect_rectangular(text);
  EXPECT_THAT(text, StartsWith("part,offset_bytes,bytes,server,lane,tree\n"));
  const std::string last = text.substr(text.rfind('\n', text.size() - 2) + 1);
  EXPECT_THAT(last, EndsWith(",1\n")); // the last of 240 parts is number 239
}

TEST(Csv, KeepsEveryDigit) {
  Profile p = test::example_profile();
  p.cells.resize(1);
  p.cells[0].p50 = 0.1 + 0.2;
  EXPECT_THAT(csv(p), HasSubstr("0.30000000000000004"));
}

TEST(Csv, HasOneRowASampleWhenAsked) {
  Profile p = test::example_profile();
  std::size_t samples = 0;
  for (const Cell& c : p.cells) {
    samples += c.samples.size();
  }
  const std::string text = csv(p, {.test = "", .samples = true});
  EXPECT_EQ(lines(text), samples + 1);
  expect_rectangular(text);
}

TEST(Csv, QuotesWhatNeedsIt) {
  Workload w = test::example_workload();
  w.tensors = {{"a,\"b\"\nc", 1, DType::fp32}};
  w.all_to_all.clear();
  EXPECT_EQ(csv(w), "name,elements,dtype,bytes,exchange\n\"a,\"\"b\"\"\nc\",1,fp32,4,all_reduce\n");
}

TEST(Csv, HasAFormForEveryDocument) {
  for (const Document& d : {Document(test::machine_plan()), Document(test::machine_report()),
                            Document(test::example_workload()), Document(test::example_roles())}) {
    expect_rectangular(csv(d));
    expect_rectangular(csv(d, {.test = "", .samples = true}));
  }
  EXPECT_EQ(lines(csv(test::machine_plan())), 241U);
  EXPECT_EQ(lines(csv(test::machine_report())), 11U);
  EXPECT_EQ(lines(csv(test::machine_report(), {.test = "", .samples = true})), 13U);
}

} // namespace
} // namespace reckon
