// SPDX-License-Identifier: Apache-2.0
#include "documents/cells.hpp"
#include "documents/named_ranks.hpp"
#include "verdict/verdict.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace reckon {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(Outcome, HasNotPassedWhereNothingWasJudged) {
  Profile empty;
  empty.machines = {{.id = "m0"}};
  const Verdict verdict = judge(empty);
  EXPECT_THAT(verdict.findings, IsEmpty());
  EXPECT_EQ(verdict.judged(), 0U);
  EXPECT_FALSE(verdict.passed());
}

TEST(Outcome, NamesTheRanksThatRecordsOfAJobName) {
  Profile job;
  job.machines = {{.id = "m0"}};
  job.context = {{k_late_rank, "rank 5 (b): last in 49 of 60 collectives"},
                 {k_behind, "rank 2: 3 AllReduce of world, others 4; rank 0,1: 7 Broadcast of tp, "
                            "others 8; and more"},
                 {k_missing_ranks, "rank 3 of 0x1 on c (pid 9): dead"}};
  std::vector<std::string> found;
  for (const Finding& finding : judge(job).findings) {
    found.push_back(
        fmt::format("{} {}: {}", name_of(finding.kind), finding.place, finding.value.text));
  }
  EXPECT_THAT(found, ElementsAre("data rank 3 of 0x1 on c (pid 9): dead",
                                 "like rank 5 (b): last in 49 of 60 collectives",
                                 "suspect rank 2: 3 AllReduce of world, others 4",
                                 "suspect rank 0,1: 7 Broadcast of tp, others 8"));
  job.context = {{k_late_rank, "none stands out; most often rank 1: last in 20 of 60"},
                 {k_behind, "none"}};
  EXPECT_TRUE(judge(job).passed());
}

TEST(Outcome, AdvisesByWhatWasMeasured) {
  // Four machines, the last at half the rate of the others: alone, or with each other.
  const auto remedy = [](const std::string& test, bool pairs) {
    Profile p;
    for (int i = 0; i < 4; ++i) {
      p.machines.push_back({.id = fmt::format("m{}", i), .name = fmt::format("gpu-0{}", i)});
    }
    for (int a = 0; a < 4; ++a) {
      for (int b = pairs ? a + 1 : 3; b < 4; ++b) {
        Cell& cell = p.cells.emplace_back();
        cell.key = {.test = test,
                    .from = p.machines.at(static_cast<std::size_t>(a)).id,
                    .to = pairs ? p.machines.at(static_cast<std::size_t>(b)).id : "",
                    .bytes = 1 << 20};
        cell.status = CellStatus::published;
        cell.unit = k_bytes_per_second;
        cell.samples = {a == 3 || (pairs && b == 3) ? 10e9 : 20e9};
        summarize_cell(cell);
      }
    }
    const Verdict verdict = judge(p);
    EXPECT_EQ(verdict.findings.size(), 1U) << test;
    return verdict.findings.empty() ? "" : verdict.findings.front().remedy;
  };
  EXPECT_THAT(remedy("nccl_all_reduce", false),
              AllOf(HasSubstr("nvidia-smi"), Not(HasSubstr("port"))));
  EXPECT_THAT(remedy(k_stream_copy, false), AllOf(HasSubstr("numastat"), Not(HasSubstr("port"))));
  EXPECT_THAT(remedy(k_port_bandwidth, false), HasSubstr("ibstat"));
  EXPECT_THAT(remedy(k_pair_bandwidth, true), HasSubstr("ibstat"));
}

} // namespace
} // namespace reckon
