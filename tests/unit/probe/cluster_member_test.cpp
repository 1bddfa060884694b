// SPDX-License-Identifier: Apache-2.0
#include "probe/cluster_member.hpp"

#include "core/error.hpp"
#include "launch/sockets.hpp"
#include "movers/fake.hpp"
#include "probe/cluster_steps.hpp"
#include "support/local_job.hpp"
#include "support/refusals.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <latch>
#include <string>
#include <thread>
#include <vector>

namespace reckon {
namespace {

using support::job;
using support::k_limit;

TEST(CommonTransport, IsOfAllAndPrefersRdma) {
  std::vector<ClusterHost> hosts(3);
  for (ClusterHost& host : hosts) {
    host.transports = {"tcp;ofi_rxm", "verbs;ofi_rxm"};
  }
  EXPECT_EQ(common_transport(hosts, {}), "verbs;ofi_rxm");
  EXPECT_EQ(common_transport(hosts, {"tcp;ofi_rxm"}), "tcp;ofi_rxm");
  hosts[1].transports = {"tcp;ofi_rxm"};
  EXPECT_EQ(common_transport(hosts, {}), "tcp;ofi_rxm");
  EXPECT_REFUSED(unavailable, "verbs;ofi_rxm", common_transport(hosts, {"verbs;ofi_rxm"}));
  hosts[2].transports = {"efa"};
  EXPECT_REFUSED(unavailable, "in common", common_transport(hosts, {}));
  hosts[1] = {.host = "poor", .transports = {}}; // it has no descriptors left, for one
  EXPECT_REFUSED(unavailable, "machine 1 (poor)", common_transport(hosts, {}));
}

// A transport often notices a dead rank before the rank's end is known to rank 0.
TEST(ClusterMember, AWriteThatFailsBecauseOfADeathIsNoReasonOfItsOwn) {
  FakeNetwork network(3, [](int, int, std::uint64_t) { return Seconds(1e-6); });
  std::latch failed(1);
  network.set_faults([&](const FakeWrite& write) {
    if (write.from != 1) {
      return FakeFault::none;
    }
    if (!failed.try_wait()) {
      failed.count_down();
    }
    return FakeFault::failed;
  });
  Listener listener = listen_locally();
  std::vector<std::string> errors(3);
  const auto be = [&](int rank) {
    ClusterProbeOptions options;
    options.limit = k_limit;
    options.most_memory = std::uint64_t{1} << 20;
    options.make = [&](const std::string& name) {
      if (name != "fake") { // those of this machine, asked what they can do
        fail(ErrorKind::unavailable, "not here");
      }
      return network.make_mover(rank);
    };
    Rendezvous rendezvous(job(rank, 3, listener.port), "plan", k_limit,
                          rank == 0 ? std::move(listener.socket) : Fd(), k_limit);
    ClusterMember member(rendezvous, options);
    try {
      if (rank == 0) {
        member.use_transport("fake", 1);
        member.end();
        static_cast<void>(member.run(write_task({{1, 2}}, 4096, 1, 0, 0)));
        return;
      }
      member.serve();
      if (rank == 1) {
        member.serve();
        return;
      }
      failed.wait();
      std::this_thread::sleep_for(std::chrono::milliseconds(300)); // what rank 1 says comes first
    } catch (const Error& e) {
      rendezvous.give_up(e);
      throw;
    }
    throw Error(ErrorKind::operation, "dead");
  };
  {
    std::vector<std::jthread> threads;
    for (int rank = 0; rank < 3; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          be(rank);
        } catch (const Error& e) {
          errors[static_cast<std::size_t>(rank)] = e.what();
        }
      });
    }
  }
  EXPECT_EQ(errors[2], "dead");
  for (const std::size_t rank : {0U, 1U}) {
    EXPECT_THAT(errors[rank], testing::StartsWith("rank 2 ("));
    EXPECT_THAT(errors[rank], testing::HasSubstr("died")) << "rank " << rank;
  }
}

} // namespace
} // namespace reckon
