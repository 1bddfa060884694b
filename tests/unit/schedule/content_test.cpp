// SPDX-License-Identifier: Apache-2.0
#include "schedule/content.hpp"

#include "support/random_cases.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

namespace reckon {
namespace {

using Counts = std::map<std::uint32_t, std::uint32_t>;

/// Numbers that `content` has, each by itself.
Counts counts_of(const Content& content) {
  Counts counts;
  for (const Content::Run& run : content.runs()) {
    for (std::uint64_t what = run.first; what <= run.last; ++what) {
      counts[static_cast<std::uint32_t>(what)] = run.times;
    }
  }
  return counts;
}

Content random_content(test::Random& random, Counts& counts) {
  Content content;
  for (std::uint64_t i = random.below(12); i > 0; --i) {
    const bool at_the_end = random.below(8) == 0;
    const auto what =
        static_cast<std::uint32_t>(at_the_end ? UINT32_MAX - random.below(3) : random.below(10));
    const auto times = static_cast<std::uint32_t>(random.whole(1, 2));
    content.add(what, times);
    counts[what] += times;
  }
  return content;
}

TEST(Content, CountsAsAMapDoes) {
  test::for_cases(4401, 3000, [](test::Random& random) {
    Counts counts, more;
    Content content = random_content(random, counts);
    const Content other = random_content(random, more);
    ASSERT_EQ(counts_of(content), counts);
    ASSERT_EQ(content == other, counts == more);
    const bool there = std::ranges::all_of(more, [&](const auto& of) {
      const auto at = counts.find(of.first);
      return at != counts.end() && at->second >= of.second;
    });
    Content less = content;
    ASSERT_EQ(less.subtract(other), there);
    Counts left = counts;
    for (const auto& [what, times] : more) {
      if (there && (left[what] -= times) == 0) {
        left.erase(what);
      }
      counts[what] += times;
    }
    ASSERT_EQ(counts_of(less), left);
    content.add(other);
    ASSERT_EQ(counts_of(content), counts);
    for (std::uint32_t what = 0; what < 12; ++what) {
      ASSERT_EQ(content.times(what), counts.contains(what) ? counts[what] : 0);
    }
    Counts moved; // 3 to 6 to 100 and on
    for (const auto& [what, times] : counts) {
      moved[what >= 3 && what <= 6 ? what + 97 : what] += times;
    }
    ASSERT_EQ(counts_of(content.moved(3, 6, 100)), moved);
  });
}

TEST(Content, NeighboursTakeOneRun) {
  Content sum;
  for (std::uint32_t worker = 0; worker < 1000; ++worker) {
    sum.add((worker * 7) % 1000); // 7 and 1000 have no factor in common: each once
  }
  EXPECT_EQ(sum.runs().size(), 1U);
  EXPECT_EQ(sum.runs()[0], (Content::Run{0, 999, 1}));
  const Content copy = sum;
  EXPECT_EQ(copy.runs().data(), sum.runs().data()); // shared
  sum.add(5);
  EXPECT_EQ(sum.runs().size(), 3U);
  EXPECT_EQ(copy.runs().size(), 1U);
  EXPECT_EQ(Content({{4, 1}}).only(), 4U);
  EXPECT_FALSE(Content({{4, 2}}).only());
  EXPECT_FALSE(Content({{4, 1}, {5, 1}}).only());
  EXPECT_FALSE(Content().only());
}

} // namespace
} // namespace reckon
