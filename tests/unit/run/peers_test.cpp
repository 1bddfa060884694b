// SPDX-License-Identifier: Apache-2.0
// What ranks tell each other in a job, and what comes of nonsense.
#include "launch/peer_fields.hpp"
#include "launch/sockets.hpp"
#include "movers/fake.hpp"
#include "run/folder_lock.hpp"
#include "run/job.hpp"
#include "run/load_checkpoint.hpp"
#include "run/timelines.hpp"
#include "support/local_job.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

namespace reckon {
namespace {

using support::k_limit;
using Play = std::function<void(Rendezvous& rendezvous)>;

/// What rank `victim` of two throws in `play` while the other rank does `other`.
std::string error_of(int victim, const Play& play, const Play& other) {
  Listener listener = listen_locally();
  std::string error;
  const auto be = [&](int rank, Fd socket) {
    Rendezvous r(support::job(rank, 2, listener.port), "plan", k_limit, std::move(socket));
    if (rank != victim) {
      other(r);
      return;
    }
    try {
      play(r);
    } catch (const PeerError& e) {
      EXPECT_EQ(e.kind(), ErrorKind::operation);
      error = e.what();
    }
  };
  Fd socket = std::move(listener.socket);
  std::jthread rank_1([&] { be(1, Fd()); });
  be(0, std::move(socket));
  rank_1.join();
  return error;
}

TEST(TextOfPeers, ThatIsNonsenseAtTheFolderLockNamesTheRank) {
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("reckon-lock-" + std::to_string(::getpid()));
  EXPECT_EQ(error_of(
                0, [&](Rendezvous& r) { const FolderLock lock(r, folder.string(), k_limit); },
                [](Rendezvous& r) {
                  static_cast<void>(r.broadcast("", k_limit));
                  static_cast<void>(r.all_gather("[\"\"]", k_limit));
                }),
            "rank 1 sent a message that cannot be read: it is no JSON object");
  std::filesystem::remove_all(folder);
}

TEST(TextOfPeers, ThatProposesNonsenseToResumeFromNamesRank0) {
  const auto proposed = [](const std::string& text) {
    return error_of(
        1,
        [](Rendezvous& r) {
          static_cast<void>(
              load_checkpoint(r, CheckpointFolder("/nonexistent"), {"plan", 1, 2}, {}, k_limit));
        },
        [&](Rendezvous& r) { static_cast<void>(r.broadcast(text, k_limit)); });
  };
  EXPECT_EQ(proposed("17"), "rank 0 sent a message that cannot be read: it is no JSON object");
  EXPECT_EQ(proposed(R"({"steps": ["x"], "digests": [], "trouble": ""})"),
            "rank 0 sent a message that cannot be read: 'steps' is [\"x\"]");
  EXPECT_EQ(proposed(R"({"steps": [4], "digests": ["a"], "trouble": ""})"),
            "rank 0 proposed a checkpoint without its step or without a part of a rank");
}

TEST(TextOfPeers, OfTheTimesOfTheirOpsNamesTheRank) {
  Schedule schedule;
  schedule.ranks.resize(2);
  schedule.ranks[0].lanes.resize(1);
  schedule.ranks[1].lanes.resize(2);
  schedule.ranks[1].lanes[1].append_await(0, 0, 7);
  const auto sent = [&](const std::string& text) {
    return error_of(
        0,
        [&](Rendezvous& r) {
          const RankTimelines all = gather_timelines(r, schedule, {{}}, k_limit);
          ASSERT_EQ(all.size(), 2U);
          ASSERT_EQ(all[1].size(), 2U);
          ASSERT_EQ(all[1][1].size(), 1U);
          EXPECT_EQ(all[1][1][0].begin_ns, -5);
          EXPECT_EQ(all[1][1][0].end_ns, 3);
        },
        [&](Rendezvous& r) { static_cast<void>(r.all_gather(text, k_limit)); });
  };
  EXPECT_EQ(sent(R"({"first_ns": -5, "since_ns": [0, 8]})"), "");
  EXPECT_EQ(sent("[[1, 2]]"), "rank 1 sent a message that cannot be read: it is no JSON object");
  EXPECT_EQ(sent(R"({"first_ns": 0, "since_ns": [1]})"),
            "rank 1 sent 1 times of its ops, and the plan has 2");
}

TEST(TextOfPeers, ThatIsNonsenseInAnIterationNamesTheRankAndTheField) {
  // A job in which nothing is to do: one lane without ops at each rank.
  JobSchedules schedules;
  schedules.usual.worker = {false, false};
  schedules.usual.ranks.resize(2);
  for (RankProgram& rank : schedules.usual.ranks) {
    rank.buffer_bytes = {0};
    rank.lanes.resize(1);
  }
  struct Case {
    std::size_t message; ///< of those that rank 1 sends, the one that is empty
    std::string missing;
  };
  for (const auto& [message, missing] :
       std::vector<Case>{{0, "host"}, {2, "busy"}, {3, "ready_ns"}}) {
    FakeNetwork network(2, [](int, int, std::uint64_t) { return Seconds(0); });
    const std::unique_ptr<Mover> mover = network.make_mover(1);
    mover->open(1);
    std::vector<std::string> words{
        R"({"host": "here", "places": "", "clock_uncertainty_ns": 0})", mover->address(),
        R"({"busy": false, "bytes": 0, "digest": "", "error": "", "seconds": 0,
            "manifest": 0, "manifest_error": "", "go": true, "checked_bytes": 0,
            "wrong_elements": 0, "first_error": "", "max_error": 0, "ready_ns": 0,
            "round_trip_ns": 0})",
        ""};
    words[message] = "{}";
    words.resize(message + 1);
    RunOptions options;
    options.mover = [&] { return network.make_mover(0); };
    EXPECT_EQ(error_of(
                  0,
                  [&](Rendezvous& r) {
                    static_cast<void>(run_rank(r, schedules, options, [](std::size_t, double) {}));
                  },
                  [&](Rendezvous& r) {
                    for (const std::string& text : words) {
                      static_cast<void>(r.all_gather(text, k_limit));
                    }
                  }),
              "rank 1 sent a message that cannot be read: '" + missing + "' is missing");
  }
}

} // namespace
} // namespace reckon
