// SPDX-License-Identifier: Apache-2.0
#include "present/groups.hpp"
#include "present/key_text.hpp"
#include "present/ranges.hpp"

#include "core/error.hpp"
#include "core/name_ranges.hpp"
#include "support/machine_documents.hpp"
#include "support/messages.hpp"

#include <gmock/gmock.h>

namespace reckon {
namespace {

using namespace testing;

TEST(KeyText, ReadsAsAPersonWouldSayIt) {
  CellKey key{.test = "x",
              .from = "m0/numa0",
              .to = "m0/numa1",
              .bytes = 4194304,
              .threads = 1,
              .pairs = 2,
              .in_flight = 4,
              .direction = "one_way"};
  EXPECT_EQ(label_of(key, all_fields()),
            "m0/numa0 -> m0/numa1, one way, 1 thread, 2 pairs, 4 in flight, 4 MiB");
  EXPECT_EQ(label_of(key, {KeyField::to, KeyField::pairs}, "\n"), "-> m0/numa1\n2 pairs");
  EXPECT_EQ(label_of({}, all_fields()), "");
}

TEST(NaturalLess, OrdersNumbersByValue) {
  EXPECT_TRUE(natural_less("m0/core2", "m0/core10"));
  EXPECT_FALSE(natural_less("m0/core10", "m0/core2"));
  EXPECT_TRUE(natural_less("a9b1", "a10b0"));
  EXPECT_TRUE(natural_less("a", "a0"));
  EXPECT_FALSE(natural_less("a0", "a0"));
  EXPECT_TRUE(natural_less("a00", "a0") != natural_less("a0", "a00")); // some order
}

TEST(NumberRanges, MergesTextsThatDifferInNumbers) {
  NumberRanges a("used 1.37 of 2 processors (fp32, 0000:17:00.0)");
  EXPECT_EQ(a.skeleton(), NumberRanges("used 4 of 8 processors (fp32, 0000:17:00.0)").skeleton());
  EXPECT_NE(NumberRanges("used # of").skeleton(), NumberRanges("used 5 of").skeleton());
  a.merge(NumberRanges("used 10 of 2 processors (fp32, 0000:17:00.0)"));
  a.merge(NumberRanges("used 9.5 of 2 processors (fp32, 0000:17:00.0)"));
  EXPECT_EQ(a.text(), "used 1.37 to 10 of 2 processors (fp32, 0000:17:00.0)");
  NumberRanges none;
  none.merge(NumberRanges("3 %"));
  EXPECT_EQ(none.text(), "3 %");
  EXPECT_EQ(NumberRanges("").text(), "");
}

TEST(NumberRanges, NamesRunsOfNumbers) {
  EXPECT_EQ(number_ranges({0, 1, 2, 5}), "0-2, 5");
  EXPECT_EQ(number_ranges({7}), "7");
  EXPECT_EQ(number_ranges({}), "");
}

TEST(ShortDigest, KeepsTwelveDigits) {
  EXPECT_EQ(short_digest("a sha256:0123456789abcdef0123 b sha256:0123"),
            "a sha256:0123456789ab b sha256:0123");
}

TEST(Groups, FindsMatricesCurvesAndTheRest) {
  const Profile p = test::machine_profile();
  const auto groups = [&](const char* test) { return groups_of(cells_of(p, test)); };
  EXPECT_THAT(groups("core_to_core_latency_cas").matrices, ElementsAre(SizeIs(56))); // 8 * 7
  EXPECT_THAT(groups("numa_to_numa_copy_cpu").matrices,
              ElementsAre(SizeIs(4), SizeIs(4))); // 1 and 4 threads
  // 8 B to 256 MiB is 2^3 to 2^28: 26 sizes, four curves; the three cells of verbs have no value.
  const CaseGroups write = groups("fabric_write");
  EXPECT_THAT(write.curves, ElementsAre(SizeIs(26), SizeIs(26), SizeIs(26), SizeIs(26)));
  EXPECT_THAT(write.others, SizeIs(3));
  EXPECT_THAT(groups("reduce_sum").others, SizeIs(12));
}

TEST(Groups, GivesCurvesInTheOrderOfTheirSizes) {
  const Profile p = test::machine_profile();
  const CaseGroups groups = groups_of(cells_of(p, "fabric_write"));
  for (const Cells& curve : groups.curves) {
    for (std::size_t i = 1; i < curve.size(); ++i) {
      EXPECT_LT(curve[i - 1]->key.bytes, curve[i]->key.bytes);
    }
  }
}

TEST(Groups, SaysWhichCasesThereAre) {
  const Profile p = test::machine_profile();
  try {
    static_cast<void>(cells_of(p, "reduce_sun"));
    FAIL();
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::usage);
    EXPECT_THAT(e.what(), test::Says("'reduce_sum'?"));
    EXPECT_THAT(e.what(), HasSubstr("numa_to_numa_copy_cpu"));
  }
}

} // namespace
} // namespace reckon
