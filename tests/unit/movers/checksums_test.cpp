// SPDX-License-Identifier: Apache-2.0
#include "movers/checksum.hpp"

#include "core/error.hpp"
#include "movers/mover.hpp"
#include "support/ranks.hpp"
#include "support/refusals.hpp"
#include "support/transports.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace reckon {
namespace {

using namespace std::chrono_literals;
using support::RankProcess;
using support::run_ranks;

constexpr std::chrono::seconds k_limit_of_ranks{120};

/// Whether the transport crosses a network whose completion data have room for a checksum.
bool has_room(const std::string& transport) {
  return transport != "host" && !transport.starts_with("verbs");
}

std::string refusal_of(const std::function<void()>& call, ErrorKind kind) {
  return test::refusal(
      [&] {
        call();
        return 0;
      },
      kind);
}

/// The first completion of that kind.
Completion next(MoverLane& lane, Completion::Kind kind) {
  for (;;) {
    std::array<Completion, 1> out;
    if (lane.poll(out) == 1) {
      EXPECT_EQ(out[0].kind, kind) << lane.error();
      return out[0];
    }
    lane.wait(10ms);
  }
}

class ChecksumsOver : public testing::TestWithParam<std::string> {};

TEST_P(ChecksumsOver, WritesOfAnyLength) {
  run_ranks(2, k_limit_of_ranks, [&](RankProcess& self) {
    const auto mover = make_mover(GetParam());
    if (!has_room(GetParam())) {
      EXPECT_THAT(refusal_of([&] { mover->add_checksums(); }, ErrorKind::unavailable),
                  testing::HasSubstr("no room for checksums"));
      return;
    }
    mover->add_checksums();
    const std::span<std::byte> memory = mover->allocate(1U << 20U);
    mover->open(1);
    mover->connect(self.rank(), self.exchange(mover->address()));
    for (std::size_t i = 0; self.rank() == 0 && i < memory.size(); ++i) {
      memory[i] = static_cast<std::byte>(i * 7 / 5);
    }
    MoverLane& lane = mover->lane(0);
    for (const std::uint64_t bytes : {1U, 0U, 4096U, 100'003U, 1U << 20U}) {
      if (self.rank() == 0) {
        while (!lane.write(1, {0, 0}, {0, 0}, bytes, 5, 7)) {
          lane.wait(1ms);
        }
        static_cast<void>(next(lane, Completion::Kind::sent));
      } else {
        const Completion arrived = next(lane, Completion::Kind::arrived);
        EXPECT_EQ(arrived.checksum, checksum_of(memory.first(bytes))) << bytes;
        if (bytes > 0) {
          memory[bytes / 2] ^= std::byte{1};
          EXPECT_NE(arrived.checksum, checksum_of(memory.first(bytes))) << bytes;
        }
      }
      self.barrier();
    }
  });
}

TEST_P(ChecksumsOver, RanksWithAndWithoutThemRefuseEachOther) {
  if (!has_room(GetParam())) {
    return;
  }
  run_ranks(2, k_limit_of_ranks, [&](RankProcess& self) {
    const auto mover = make_mover(GetParam());
    if (self.rank() == 0) {
      mover->add_checksums();
    }
    mover->open(1);
    const std::vector<std::string> addresses = self.exchange(mover->address());
    EXPECT_THAT(refusal_of([&] { mover->connect(self.rank(), addresses); }, ErrorKind::operation),
                testing::HasSubstr(self.rank() == 0 ? "was started without checksums"
                                                    : "was started with checksums"));
    self.barrier(); // the memory of a peer must not go before it was looked at
  });
}

INSTANTIATE_TEST_SUITE_P(Transports, ChecksumsOver, testing::ValuesIn(support::transports_here()),
                         [](const testing::TestParamInfo<std::string>& info) {
                           return support::as_test_name(info.param);
                         });

} // namespace
} // namespace reckon
