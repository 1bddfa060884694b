// SPDX-License-Identifier: Apache-2.0
// Whole jobs through the C interface: real processes on this machine, real transports.
#include "core/file.hpp"
#include "core/json.hpp"
#include "support/messages.hpp"
#include "support/transports.hpp"
#include "training_job.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <reckon/reckon.h>

#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace reckon {
namespace {

using namespace test;
using testing::HasSubstr;

void train(const Member& m, int steps, float factor = 1) {
  if (m.is.worker == 0) {
    serve_and_leave(m);
    return;
  }
  for (int s = 0; s < steps; ++s) {
    step(m, s);
    expect_sums(m, s, factor);
  }
  ASSERT_OK(reckon_leave(m.session));
}

class TrainingOver : public testing::TestWithParam<std::string> {};

TEST_P(TrainingOver, EveryStrategySumsRight) {
  for (const std::string strategy : {"byteps_split", "ps_noncolocated", "ps_colocated", "ring"}) {
    SCOPED_TRACE(strategy);
    const Job job = prepared({.transport = GetParam(), .strategy = strategy, .workers = 3});
    run_job(job, [](Member& m, RankProcess&) { train(m, 3); });
  }
}

TEST_P(TrainingOver, MemoryOfTheCallerIsUsedWhereTheTransportReachesItAndElseCopied) {
  const Job job = prepared({.transport = GetParam()});
  // Too long for it, and aligned.
  alignas(64) static std::array<std::byte, 1U << 20U> memory;
  run_job(
      job,
      [&](Member& m, RankProcess&) {
        const char* text = nullptr;
        ASSERT_OK(reckon_report(m.session, &text));
        const Json report = parse_json(text, "report");
        // Of the transports here only host has memory of a kind that others must open.
        const bool copied = job.transport == "host" && m.is.worker != 0;
        EXPECT_EQ(report.at("copied_bytes_per_step").get<std::uint64_t>(),
                  copied ? 2 * m.is.gradient_bytes : 0);
        EXPECT_EQ(m.is.gradient, m.is.worker != 0 ? memory.data() : nullptr);
        train(m, 2);
      },
      [&](reckon_options& options) {
        options.gradient = memory.data();
        options.gradient_bytes = memory.size();
      });
}

INSTANTIATE_TEST_SUITE_P(Transports, TrainingOver, testing::ValuesIn(support::transports_here()),
                         [](const auto& over) { return support::as_test_name(over.param); });

TEST(Training, MeansAreOfAllWorkersInEveryType) {
  const Job job = prepared({.workers = 4}); // a quarter of a small whole number is exact
  run_job(
      job, [](Member& m, RankProcess&) { train(m, 1, 0.25F); },
      [](reckon_options& options) { options.average = 1; });
}

TEST(Training, WorkersThatSumAndAverageAreToldSo) {
  const Job job = prepared({.servers = 0});
  run_job(
      job,
      [](Member& m, RankProcess& self) {
        ASSERT_OK(reckon_begin(m.session));
        EXPECT_NE(reckon_wait(m.session, -1), RECKON_OK);
        EXPECT_THAT(reckon_error(), testing::ContainsRegex("rank 1 \\(.*\\) averages .* rank 0 "));
        self.barrier();
        reckon_abandon(m.session, nullptr);
      },
      [](reckon_options& options) {
        options.average = std::string(std::getenv("RECKON_RANK")) == "1" ? 1 : 0;
      });
}

TEST(Training, APlanWithPassesIsJoinedIfItHidesNothingBehindTheForwardPass) {
  const Job gradient = prepared({.order = Order::gradient});
  run_job(gradient, [](Member& m, RankProcess&) { train(m, 2); });
  const Job priority = prepared({.order = Order::priority});
  set_rank(priority, 0);
  const std::string plan = priority.folder + "/plan.json";
  const reckon_options options = options_for(priority, plan);
  reckon_session* session = nullptr;
  EXPECT_EQ(reckon_join(&options, &session), RECKON_INPUT);
  EXPECT_THAT(reckon_error(), test::Says("--order"));
}

TEST(Training, SumsInPlaceWaitForTheirTensorsAsWell) {
  const Job job =
      prepared({.strategy = "ps_colocated", .workers = 3, .servers = 0, .in_place = true});
  run_job(job, [](Member& m, RankProcess&) { train(m, 3); });
}

/// Written by a lane while this thread looks at it.
float seen(float* element) {
  return std::atomic_ref<float>(*element).load();
}

/// Tensors of fp32 whose ends are in the middle of parts.
Workload uneven() {
  return workload({{"a", 40000, DType::fp32}, {"b", 7, DType::fp32}, {"c", 33333, DType::fp32}});
}

TEST_P(TrainingOver, GradientsTravelAsHalvesAndComeBackAsTheyWere) {
  for (const std::string strategy : {"byteps_split", "ps_noncolocated", "ring"}) {
    for (const DType wire : {DType::bf16, DType::fp16}) {
      SCOPED_TRACE(strategy);
      const Job job = prepared({.transport = GetParam(),
                                .strategy = strategy,
                                .workers = 3,
                                .wire = wire,
                                .workload = uneven()});
      run_job(job, [](Member& m, RankProcess&) {
        for (std::size_t t = 0; m.is.worker != 0 && t < m.is.tensors; ++t) {
          EXPECT_EQ(m.place(t).dtype, RECKON_FP32);
        }
        train(m, 3);
      });
    }
  }
}

TEST_P(TrainingOver, PartsMayCarryChecksums) {
  const Job job = prepared({.transport = GetParam(), .workers = 3});
  const auto with_checksums = [](reckon_options& options) { options.checksums = 1; };
  if (GetParam() != "host") {
    run_job(
        job, [](Member& m, RankProcess&) { train(m, 3); }, with_checksums);
    return;
  }
  support::run_ranks(job.ranks(), std::chrono::seconds(240), [&](RankProcess& self) {
    set_rank(job, self.rank());
    const std::string plan = job.folder + "/plan.json";
    reckon_options options = options_for(job, plan);
    with_checksums(options);
    reckon_session* session = nullptr;
    EXPECT_NE(reckon_join(&options, &session), RECKON_OK);
    EXPECT_THAT(reckon_error(), HasSubstr("transport host has no room for checksums"));
  });
}

TEST(Training, APartOfHalvesWaitsForAllTensorsInIt) {
  const Job job = prepared({.workers = 2, .wire = DType::bf16, .workload = uneven()});
  run_job(job, [](Member& m, RankProcess&) {
    if (m.is.worker == 0) {
      serve_and_leave(m);
      return;
    }
    for (int number = 0; number < 3; ++number) {
      ASSERT_OK(reckon_begin(m.session));
      for (std::size_t t = 0; t < m.is.tensors; ++t) {
        fill(m, t, number);
        ASSERT_OK(reckon_ready(m.session, t, 1));
        std::this_thread::sleep_for(std::chrono::milliseconds(20)); // what may travel does
      }
      ASSERT_OK(reckon_wait(m.session, -1));
      expect_sums(m, number, 1);
    }
    ASSERT_OK(reckon_leave(m.session));
  });
}

TEST(Training, PartsOfHalvesAreTensorsOfFp32) {
  const Job job = prepared({.workers = 2, .wire = DType::bf16, .workload = uneven()});
  run_job(
      job, [](Member& m, RankProcess&) { train(m, 2); },
      [](reckon_options& options) { options.by_parts = 1; });
}

TEST(Training, TensorsTravelWhenTheyAreReadyAndNotBefore) {
  const Job job = prepared({.servers = 0});
  run_job(job, [](Member& m, RankProcess&) {
    const reckon_tensor_place head = m.place(0), body = m.place(1);
    auto* const first = reinterpret_cast<float*>(m.at(head));
    auto* const second = reinterpret_cast<float*>(m.at(body));
    std::fill_n(first, head.elements, 1.F);
    std::fill_n(second, body.elements, 1e9F); // if that travelled, the sum would show it
    ASSERT_OK(reckon_begin(m.session));
    ASSERT_OK(reckon_ready(m.session, 0, 1));
    // The sum of the first is there while the second is not even made.
    for (std::size_t i = 0; i < head.elements; ++i) {
      while (seen(first + i) != 2.F) {
        std::this_thread::yield(); // the deadline of the ranks ends this
      }
    }
    EXPECT_EQ(reckon_test(m.session), RECKON_PENDING);
    EXPECT_EQ(reckon_wait(m.session, 0), RECKON_PENDING);
    std::fill_n(second, body.elements, 3.F);
    ASSERT_OK(reckon_ready(m.session, 1, m.is.tensors - 1));
    ASSERT_OK(reckon_wait(m.session, -1));
    EXPECT_EQ(std::count(second, second + body.elements, 6.F),
              static_cast<std::ptrdiff_t>(body.elements));
    ASSERT_OK(reckon_leave(m.session));
  });
}

TEST(Training, PartsAreTensorsOfTheirOwnWhoseSumsAreWaitedForOneByOne) {
  const Job job = prepared({});
  std::filesystem::remove(job.folder + "/workload.json"); // nobody asks for it
  run_job(
      job,
      [](Member& m, RankProcess&) {
        if (m.is.worker == 0) {
          serve_and_leave(m);
          return;
        }
        ASSERT_EQ(m.is.tensors, 5U); // of 64 KiB each: mixed()
        EXPECT_EQ(m.place(3).dtype, RECKON_BF16);
        EXPECT_EQ(m.place(4).offset_bytes, 4 * k_part);
        EXPECT_EQ(reckon_wait_for(m.session, 0, 1, 0), RECKON_INPUT);
        EXPECT_THAT(reckon_error(), HasSubstr("no step has begun"));
        for (int number = 0; number < 2; ++number) {
          ASSERT_OK(reckon_begin(m.session));
          EXPECT_EQ(reckon_wait_for(m.session, 0, 6, 0), RECKON_INPUT);
          for (std::size_t t = 0; t < m.is.tensors; ++t) {
            EXPECT_EQ(reckon_wait_for(m.session, t, 1, 0), RECKON_PENDING);
            fill(m, t, number);
            ASSERT_OK(reckon_ready(m.session, t, 1));
            ASSERT_OK(reckon_wait_for(m.session, 0, t + 1, -1)); // no later part is ready anywhere
          }
          ASSERT_OK(reckon_wait(m.session, -1));
          ASSERT_OK(reckon_wait_for(m.session, 0, m.is.tensors, 0));
          expect_sums(m, number, 1);
        }
        ASSERT_OK(reckon_leave(m.session));
      },
      [](reckon_options& options) { options.by_parts = 1; });
}

/// Who counts its parts from 0 on would write beyond the memory of one that begins later.
TEST(Training, PartsOfAGradientThatLiesOtherwiseAreRefused) {
  const Job job = prepared({});
  const std::string file = job.folder + "/plan.json";
  constexpr std::uint64_t k_later = 4096;
  Plan plan = read_plan(file);
  plan.gradient_bytes += k_later;
  for (DTypeRun& run : plan.runs) {
    run.offset_bytes += k_later;
  }
  for (std::uint64_t& offset : plan.parts.offset_bytes) {
    offset += k_later;
  }
  write_file(file, canonical_text(plan));
  reckon_options options = options_for(job, file);
  options.by_parts = 1;
  reckon_session* session = nullptr;
  EXPECT_EQ(reckon_join(&options, &session), RECKON_INPUT);
  EXPECT_THAT(reckon_error(), HasSubstr("plan again"));
}

TEST(Training, CallsOutOfTurnAreRefusedAndHarmNothing) {
  const Job job = prepared({});
  run_job(job, [](Member& m, RankProcess& process) {
    if (m.is.worker == 0) {
      EXPECT_EQ(reckon_begin(m.session), RECKON_INPUT);
      EXPECT_THAT(reckon_error(), HasSubstr("only sums"));
      EXPECT_EQ(reckon_wait(m.session, -1), RECKON_INPUT);
      EXPECT_EQ(reckon_serve(m.session, 0), RECKON_PENDING); // no step can have begun
      process.barrier();
      serve_and_leave(m);
      return;
    }
    const auto refused = [&](reckon_status status, const char* words) {
      EXPECT_EQ(status, RECKON_INPUT);
      EXPECT_THAT(reckon_error(), HasSubstr(words));
    };
    refused(reckon_serve(m.session, 0), "does not serve");
    EXPECT_EQ(reckon_wait(m.session, -1), RECKON_OK); // no step is under way
    refused(reckon_ready(m.session, 0, 1), "no step has begun");
    reckon_tensor_place place{};
    refused(reckon_tensor(m.session, 0, &place), "another version");
    process.barrier();
    ASSERT_OK(reckon_begin(m.session));
    refused(reckon_begin(m.session), "wait for it first");
    refused(reckon_ready(m.session, 1, m.is.tensors), "there are 4");
    refused(reckon_ready(m.session, SIZE_MAX, 2), "there are 4");
    fill(m, 2, 0);
    ASSERT_OK(reckon_ready(m.session, 2, 1));
    refused(reckon_ready(m.session, 0, 4), "ready in this step already");
    for (const std::size_t t : {0U, 1U, 3U}) {
      fill(m, t, 0);
      ASSERT_OK(reckon_ready(m.session, t, 1)); // what was refused has marked none of them
    }
    ASSERT_OK(reckon_wait(m.session, -1));
    expect_sums(m, 0, 1);
    refused(reckon_ready(m.session, 0, 1), "no step has begun");
    ASSERT_OK(reckon_leave(m.session));
  });
}

TEST(Training, AReportSaysWhatTheStepsTookAndWhatThePlanPredicts) {
  const Job job = prepared({});
  run_job(job, [](Member& m, RankProcess&) {
    if (m.is.worker != 0) {
      step(m, 0);
      step(m, 1);
      const char* text = nullptr;
      ASSERT_OK(reckon_report(m.session, &text));
      const Json report = parse_json(text, "report");
      EXPECT_EQ(report.at("steps"), 2);
      EXPECT_EQ(report.at("step_seconds").at("all").size(), 2U);
      EXPECT_EQ(report.at("exposed_seconds").at("all").size(), 2U);
      EXPECT_EQ(report.at("exchange_seconds").at("all").size(), 1U); // of the last, not yet
      EXPECT_GT(report.at("exchange_seconds").at("p50").get<double>(), 0);
      EXPECT_EQ(report.at("hosts").size(), 3U);
      EXPECT_GT(report.at("prediction").at("seconds").get<double>(), 0);
      EXPECT_GT(report.at("sent_bytes_per_step").get<std::uint64_t>(), 0U);
      ASSERT_OK(reckon_leave(m.session));
    } else {
      serve_and_leave(m);
    }
  });
}

/// In the middle of a step, over a transport.
void expect_named(const std::string& transport, int victim) {
  SCOPED_TRACE(transport + ", rank " + std::to_string(victim));
  const Job job = prepared({.transport = transport, .workers = 3});
  run_job(job,
          [&](Member& m, RankProcess& self) {
            reckon_status status = RECKON_OK;
            if (m.is.worker != 0) {
              step(m, 0);
              self.barrier(); // all have made that step
              ASSERT_OK(reckon_begin(m.session));
              if (m.is.rank == victim) {
                ::raise(SIGKILL);
              }
              fill(m, 0, 1);
              ASSERT_OK(reckon_ready(m.session, 0, m.is.tensors));
              status = reckon_wait(m.session, -1);
            } else {
              self.barrier();
              status = reckon_serve(m.session, -1);
            }
            EXPECT_EQ(status, RECKON_PEER);
            EXPECT_THAT(reckon_error(),
                        testing::ContainsRegex(fmt::format("rank {} \\(.+\\) died", victim)));
            EXPECT_EQ(reckon_leave(m.session), RECKON_PEER);
            self.barrier();
          },
          {}, {victim});
}

TEST(Training, AKilledWorkerIsNamedByAllOthers) {
  for (const std::string& transport : support::transports_here()) {
    expect_named(transport, 0); // whom all are connected to
    expect_named(transport, 1);
  }
}

TEST(Training, AChildThatLivesDoesNotHideThatItsParentDied) {
  const Job job = prepared({.servers = 0});
  const std::string noticed = job.folder + "/noticed";
  run_job(job,
          [&](Member& m, RankProcess&) {
            if (m.is.rank == 1) {
              if (::fork() == 0) {
                while (!std::filesystem::exists(noticed)) {
                  ::usleep(10'000); // the others would never come to it
                }
                ::_exit(0);
              }
              ::raise(SIGKILL);
            }
            ASSERT_OK(reckon_begin(m.session));
            EXPECT_EQ(reckon_wait(m.session, -1), RECKON_PEER);
            EXPECT_THAT(reckon_error(), testing::ContainsRegex("rank 1 \\(.+\\) died"));
            write_file(noticed, "");
            reckon_abandon(m.session, nullptr);
          },
          {}, {1});
}

TEST(Training, AChildMayNotUseTheSessionAndHarmsNoneByTrying) {
  const Job job = prepared({.servers = 0});
  run_job(job, [](Member& m, RankProcess&) {
    const pid_t child = ::fork();
    if (child == 0) {
      const bool refused = reckon_begin(m.session) == RECKON_INPUT &&
                           std::string(reckon_error()).find("forked") != std::string::npos &&
                           reckon_leave(m.session) == RECKON_INPUT;
      reckon_abandon(m.session, "child");
      ::_exit(refused ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
    train(m, 2);
  });
}

TEST(Training, WhoAbandonsTellsTheOthersWhy) {
  for (const int who : {0, 2}) {
    const Job job = prepared({.workers = 3});
    run_job(job, [who](Member& m, RankProcess&) {
      if (m.is.rank == who) {
        ASSERT_OK(reckon_begin(m.session)); // not ready: the others wait for it
        reckon_abandon(m.session, "no more data");
        return;
      }
      if (m.is.worker != 0) {
        ASSERT_OK(reckon_begin(m.session));
        EXPECT_EQ(reckon_wait(m.session, -1), RECKON_PEER);
      } else {
        EXPECT_EQ(reckon_serve(m.session, -1), RECKON_PEER);
      }
      EXPECT_THAT(reckon_error(), testing::ContainsRegex("rank " + std::to_string(who) +
                                                         " \\(.+\\) gave up: no more data"));
      reckon_abandon(m.session, nullptr);
    });
  }
}

TEST(Training, WhoLeavesBeforeTheOthersIsNamed) {
  const Job job = prepared({.servers = 0});
  run_job(job, [](Member& m, RankProcess& self) {
    step(m, 0);
    if (m.is.rank == 1) {
      EXPECT_NE(reckon_leave(m.session), RECKON_OK);
    } else {
      ASSERT_OK(reckon_begin(m.session));
      EXPECT_NE(reckon_wait(m.session, -1), RECKON_OK);
    }
    EXPECT_THAT(reckon_error(), testing::ContainsRegex("rank 1 \\(.+\\) leaves after 1 steps"));
    self.barrier();
    if (m.is.rank == 0) {
      reckon_abandon(m.session, nullptr);
    }
  });
}

TEST(Training, JoiningCanBeGivenUpAndBegunAgain) {
  const Job job = prepared({});
  set_rank(job, 0); // the others never come
  const std::string plan = job.folder + "/plan.json";
  const reckon_options options = options_for(job, plan);
  for (int again = 0; again < 2; ++again) { // the port is free again
    reckon_session* session = nullptr;
    ASSERT_EQ(reckon_join_within(&options, &session, 0), RECKON_PENDING) << reckon_error();
    ASSERT_EQ(reckon_join_within(&options, &session, 0.2), RECKON_PENDING) << reckon_error();
    EXPECT_EQ(reckon_begin(session), RECKON_INPUT);
    EXPECT_THAT(reckon_error(), test::Says("joined"));
    reckon_abandon(session, "Ctrl-C");
  }
}

TEST(Training, JoiningAndLeavingGoOnBetweenCalls) {
  const Job job = prepared({});
  support::run_ranks(job.ranks(), std::chrono::seconds(240), [&](RankProcess& self) {
    set_rank(job, self.rank());
    const std::string plan = job.folder + "/plan.json";
    const reckon_options options = options_for(job, plan);
    Member member;
    reckon_status status = RECKON_PENDING;
    while (status == RECKON_PENDING) {
      status = reckon_join_within(&options, &member.session, 0.001);
    }
    ASSERT_OK(status);
    member.is.struct_bytes = sizeof member.is;
    ASSERT_OK(reckon_describe(member.session, &member.is));
    if (member.is.worker != 0) {
      step(member, 0);
      expect_sums(member, 0, 1);
    }
    self.barrier();
    if (member.is.rank == 0) { // the other worker comes only after that
      ASSERT_EQ(reckon_leave_within(&member.session, 0), RECKON_PENDING);
      EXPECT_EQ(reckon_begin(member.session), RECKON_INPUT);
      EXPECT_THAT(reckon_error(), HasSubstr("is leaving"));
    }
    self.barrier();
    if (member.is.worker == 0) {
      ASSERT_OK(reckon_serve(member.session, -1));
    }
    do {
      status = reckon_leave_within(&member.session, 0.001);
    } while (status == RECKON_PENDING);
    EXPECT_EQ(status, RECKON_OK) << reckon_error();
    EXPECT_EQ(member.session, nullptr);
  });
}

TEST(Training, AnUnknownTransportIsSaidBeforeAnybodyWaits) {
  const Job job = prepared({});
  set_rank(job, 0); // nobody else ever comes
  const std::string plan = job.folder + "/plan.json";
  reckon_options options = options_for(job, plan);
  options.transport = "carrier-pigeon";
  options.join_seconds = 1e9;
  reckon_session* session = nullptr;
  EXPECT_EQ(reckon_join(&options, &session), RECKON_UNAVAILABLE);
  EXPECT_THAT(reckon_error(), HasSubstr("carrier-pigeon"));
}

TEST(Training, WhatCannotJoinIsSaidBeforeAnybodyWaits) {
  const Job job = prepared({});
  set_rank(job, 0);
  reckon_session* session = nullptr;
  const auto refused = [&](const std::function<void(reckon_options&)>& change, const char* words) {
    const std::string plan = job.folder + "/plan.json";
    reckon_options options = options_for(job, plan);
    change(options);
    EXPECT_EQ(reckon_join(&options, &session), RECKON_INPUT);
    EXPECT_THAT(reckon_error(), HasSubstr(words));
    EXPECT_EQ(session, nullptr);
  };
  const std::string none = job.folder + "/none.json";
  refused([&](auto& options) { options.plan = none.c_str(); }, "none.json");
  refused([&](auto& options) { options.workload = "resnet50"; }, "lie otherwise");
  refused([](auto& options) { options.struct_bytes = 8; }, "another version");
  refused([](auto& options) { options.peer_seconds = 1; }, "peer_seconds");
  constexpr double k_infinite = std::numeric_limits<double>::infinity();
  for (const double seconds : {std::nan(""), k_infinite, 1e300, 1.1e9, -1.0}) {
    refused([&](auto& options) { options.peer_seconds = seconds; }, "peer_seconds");
    refused([&](auto& options) { options.join_seconds = seconds; }, "join_seconds");
  }
  std::array<std::byte, 128> small{};
  refused(
      [&](auto& options) {
        options.gradient = small.data();
        options.gradient_bytes = small.size();
      },
      "are needed");
  ::setenv("RECKON_WORLD_SIZE", "2", 1);
  refused(
      [](auto&) {},
      "the plan is for 3 ranks and the launcher started 2; plan for that many or start 3 ranks");
  ::unsetenv("RECKON_WORLD_SIZE");
  refused([](auto&) {}, "RECKON_RANK is set but WORLD_SIZE is not");
  ::unsetenv("RECKON_RANK");
  refused([](auto&) {}, "no launcher says which this is");
}

} // namespace
} // namespace reckon
