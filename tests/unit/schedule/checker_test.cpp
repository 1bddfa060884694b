// SPDX-License-Identifier: Apache-2.0
#include "schedule/checker.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>

namespace reckon {
namespace {

using testing::HasSubstr;

constexpr std::uint32_t k_inbox = 1;

/// Two workers, one 64-byte part that rank 1 sums in place: the smallest correct exchange.
///   rank 0: write gradient -> rank 1's inbox (tag 0); await the sum (tag 7)
///   rank 1: await tag 0; gradient = gradient + inbox; write gradient -> rank 0's gradient (tag 7)
struct Exchange {
  Op push, arrival, reduce, back, result;
  std::vector<Slice> operands{{k_gradient_buffer, 0}, {k_inbox, 0}};
  bool back_waits_for_sum = true;
  bool sum_waits_for_arrival = true;
  std::uint64_t inbox_bytes = 64;

  Exchange() {
    push.kind = OpKind::write;
    push.peer = 1;
    push.tag = 0;
    push.destination = {k_inbox, 0};
    arrival.kind = OpKind::await;
    arrival.peer = 0;
    arrival.tag = 0;
    back.kind = OpKind::write;
    back.peer = 0;
    back.tag = 7;
    result.kind = OpKind::await;
    result.peer = 1;
    result.tag = 7;
    push.bytes = reduce.bytes = back.bytes = 64;
  }
  [[nodiscard]] Schedule build() const {
    Schedule s;
    s.runs = {{0, 64, DType::fp32}};
    s.worker = {true, true};
    s.ranks.resize(2);
    for (RankProgram& r : s.ranks) {
      r.buffer_bytes = {64, inbox_bytes};
      r.lanes.resize(1);
    }
    s.ranks[0].lanes[0].append(push, {});
    s.ranks[0].lanes[0].append(result, {});
    LaneProgram& server = s.ranks[1].lanes[0];
    const std::array<std::uint32_t, 1> arrived{server.append(arrival, {})};
    const std::array<std::uint32_t, 1> summed{
        server.append_reduce(reduce, operands,
                             sum_waits_for_arrival ? std::span<const std::uint32_t>(arrived)
                                                   : std::span<const std::uint32_t>())};
    server.append(back, back_waits_for_sum ? std::span<const std::uint32_t>(summed)
                                           : std::span<const std::uint32_t>());
    return s;
  }
};

std::string first_fault(const Schedule& s) {
  const CheckResult result = check(s);
  return result.ok() ? "" : result.faults.front();
}

TEST(Checker, AcceptsTheSmallestExchange) {
  const CheckResult result = check(Exchange().build());
  EXPECT_THAT(result.faults, testing::IsEmpty());
  EXPECT_TRUE(result.races_checked);
  EXPECT_EQ(result.ops, 5U);
}

TEST(Checker, CountsTrafficOncePerWrite) {
  const Traffic t = traffic_of(Exchange().build());
  EXPECT_THAT(t.egress_bytes, testing::ElementsAre(64, 64));
  EXPECT_THAT(t.ingress_bytes, testing::ElementsAre(64, 64));
}

TEST(Checker, FindsATagThatNobodyAwaits) {
  Exchange e;
  e.push.tag = 1;
  EXPECT_THAT(first_fault(e.build()), HasSubstr("rank 1 never awaits its tag 1"));
}

TEST(Checker, FindsATagThatNobodyWrites) {
  Schedule s = Exchange().build();
  Op lonely;
  lonely.kind = OpKind::await;
  lonely.peer = 1;
  lonely.tag = 99;
  s.ranks[0].lanes[0].append(lonely, {});
  EXPECT_THAT(first_fault(s), HasSubstr("nobody writes its tag 99"));
}

TEST(Checker, FindsATagUsedTwice) {
  Exchange e;
  Schedule s = e.build();
  s.ranks[0].lanes[0].append(e.push, {});
  EXPECT_THAT(first_fault(s), HasSubstr("tag 0 at rank 1 is used twice"));
}

TEST(Checker, FindsAnAwaitFromTheWrongRank) {
  Exchange e;
  Schedule s = e.build();
  s.ranks.push_back(s.ranks[0]); // rank 2 writes with rank 0's tags
  s.worker.push_back(false);
  EXPECT_FALSE(check(s).ok());
}

TEST(Checker, FindsASliceOutsideItsBuffer) {
  Exchange e;
  e.inbox_bytes = 63;
  EXPECT_THAT(first_fault(e.build()), HasSubstr("lies outside buffer 1 of rank 1"));
  Exchange far;
  far.push.source = {k_gradient_buffer,
                     UINT64_MAX - 8}; // the sum of offset and bytes must not wrap
  EXPECT_THAT(first_fault(far.build()), HasSubstr("lies outside buffer 0"));
}

TEST(Checker, FindsAWriteToOneself) {
  Exchange e;
  e.push.peer = 0;
  EXPECT_THAT(first_fault(e.build()), HasSubstr("is not another rank"));
}

TEST(Checker, FindsAMissingOperand) {
  Exchange e;
  e.operands = {{k_inbox, 0}};
  EXPECT_THAT(first_fault(e.build()), HasSubstr("worker 1 0 times"));
}

TEST(Checker, FindsAnOperandCountedTwice) {
  Exchange e;
  e.operands.push_back({k_inbox, 0});
  EXPECT_THAT(first_fault(e.build()), HasSubstr("worker 0 2 times"));
}

TEST(Checker, FindsHalfAPartLeftOut) {
  Exchange e;
  e.push.bytes = e.reduce.bytes = e.back.bytes = 32;
  EXPECT_THAT(first_fault(e.build()), HasSubstr("gradient bytes [32, 64) end with"));
}

TEST(Checker, FindsASumThatDoesNotWait) {
  Exchange e;
  e.sum_waits_for_arrival = false;
  EXPECT_FALSE(check(e.build()).ok());
}

TEST(Checker, FindsAResultSentBeforeItIsSummed) {
  Exchange e;
  e.back_waits_for_sum = false;
  EXPECT_FALSE(check(e.build()).ok());
}

TEST(Checker, FindsADeadlockAcrossRanks) {
  // Each rank awaits the other before it writes.
  Schedule s;
  s.worker = {false, false};
  s.ranks.resize(2);
  for (std::uint32_t r = 0; r < 2; ++r) {
    s.ranks[r].buffer_bytes = {8};
    s.ranks[r].lanes.resize(1);
    Op wait;
    wait.kind = OpKind::await;
    wait.peer = 1 - r;
    const std::array<std::uint32_t, 1> waited{s.ranks[r].lanes[0].append(wait, {})};
    Op write;
    write.peer = 1 - r;
    write.bytes = 8;
    s.ranks[r].lanes[0].append(write, waited);
  }
  EXPECT_THAT(first_fault(s), HasSubstr("deadlock"));
}

TEST(Checker, FindsASlotWrittenAgainTooEarly) {
  // Rank 0 writes twice into the same slot; rank 1 sums after each arrival, but nothing makes the
  // second write wait.
  Schedule s;
  s.worker = {false, false};
  s.ranks.resize(2);
  s.ranks[0].buffer_bytes = {16};
  s.ranks[1].buffer_bytes = {16, 8};
  s.ranks[0].lanes.resize(1);
  s.ranks[1].lanes.resize(1);
  for (std::uint32_t i = 0; i < 2; ++i) {
    Op write;
    write.peer = 1;
    write.tag = i;
    write.source = {0, 8 * i};
    write.destination = {k_inbox, 0};
    write.bytes = 8;
    s.ranks[0].lanes[0].append(write, {});
    Op wait;
    wait.kind = OpKind::await;
    wait.tag = i;
    const std::array<std::uint32_t, 1> waited{s.ranks[1].lanes[0].append(wait, {})};
    Op copy;
    copy.kind = OpKind::copy;
    copy.source = {k_inbox, 0};
    copy.destination = {0, 8 * i};
    copy.bytes = 8;
    s.ranks[1].lanes[0].append(copy, waited);
  }
  EXPECT_THAT(first_fault(s), HasSubstr("races with"));
}

} // namespace
} // namespace reckon
