// SPDX-License-Identifier: Apache-2.0
#include "adapt/slow_places.hpp"

#include "adapt/diagnose.hpp"
#include "strategies/lower.hpp"
#include "support/messages.hpp"
#include "unit/strategies/fixtures.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <tuple>

namespace reckon {
namespace {

using namespace test;
using Kind = SlowKind;
using testing::IsEmpty;
using testing::SizeIs;

/// Four workers and two servers behind ports of 100 MB/s, which add up 400 MB/s a thread.
Profile ports() {
  Profile p = cluster(100e6, 100e6);
  p.cells.push_back(sum_rate("gpu", 1, 400e6));
  return p;
}

struct Job {
  Plan plan;
  Schedule schedule;
  PlanNetwork network;
};

Job job_of(const Profile& profile, const std::string& strategy, std::uint64_t workers,
           std::uint64_t servers, bool with_passes = false) {
  PlanOptions options;
  options.strategy = strategy;
  options.part_bytes = 256 << 10;
  if (with_passes) {
    options.forward_seconds = 0.1;
    options.backward_seconds = 0.3;
  }
  Job job{plan_for(profile, equal_tensors(8, 1 << 20), workers, servers, options, 2), {}, {}};
  job.schedule = lower(job.plan);
  job.network = network_of(job.plan, profile);
  return job;
}

/// What is seen where the network, the costs and the schedule are these: the play's times, each
/// pair's and rank's up to 8 % longer or shorter, as measurements are.
Observation seen_on(const Schedule& schedule, const PlanNetwork& network) {
  RankTimelines timelines;
  static_cast<void>(play(schedule, network.network, network.cost, &timelines));
  Observation seen = observe(schedule, timelines);
  std::mt19937 random(7); // NOLINT: the same noise every time
  for (double& busy : seen.busy_s) {
    busy *= 0.92 + 0.16 * static_cast<double>(random()) / static_cast<double>(random.max());
  }
  return seen;
}

struct Fault {
  const char* name;
  const char* strategy;
  std::uint64_t workers, servers;
  std::function<void(Job&)> make; ///< stations of rank r: 2 r out, 2 r + 1 in
  std::vector<SlowPlace> wanted;  ///< in any order
};

void PrintTo(const Fault& fault, std::ostream* os) {
  *os << fault.name;
}

std::function<void(Job&)> stations(std::vector<std::size_t> numbers, double factor) {
  return [numbers = std::move(numbers), factor](Job& job) {
    for (const std::size_t s : numbers) {
      job.network.network.station_bytes_per_s[s] *= factor;
    }
  };
}

std::function<void(Job&)> pair(std::uint32_t from, std::uint32_t to, double bytes_per_s) {
  return [=](Job& job) {
    PlayNetwork& network = job.network.network;
    network.paths[from][to].insert(network.paths[from][to].begin() + 1,
                                   static_cast<std::uint32_t>(network.station_bytes_per_s.size()));
    network.station_bytes_per_s.push_back(bytes_per_s);
  };
}

std::function<void(Job&)> sums(std::size_t slow, double times) {
  return [=](Job& job) {
    job.network.cost = [cost = job.network.cost, slow, times](std::size_t rank, const Op& op) {
      return cost(rank, op) * (rank == slow ? times : 1);
    };
  };
}

class SlowPlaces : public testing::TestWithParam<Fault> {};

TEST_P(SlowPlaces, AreFoundWithTheirFactor) {
  const Fault& fault = GetParam();
  const Job planned = job_of(ports(), fault.strategy, fault.workers, fault.servers);
  Job real = planned;
  fault.make(real);
  const Observation seen = seen_on(real.schedule, real.network);
  const Explanation found = explain(planned.schedule, planned.network, seen);
  ASSERT_THAT(found.places, SizeIs(fault.wanted.size()));
  for (const SlowPlace& wanted : fault.wanted) {
    const auto at =
        std::find_if(found.places.begin(), found.places.end(), [&](const SlowPlace& place) {
          return place.kind == wanted.kind && place.rank == wanted.rank &&
                 place.peer == wanted.peer;
        });
    ASSERT_NE(at, found.places.end())
        << "not " << int(wanted.kind) << " but " << int(found.places[0].kind) << " of rank "
        << found.places[0].rank << ", " << found.places[0].peer;
    EXPECT_NEAR(at->factor / wanted.factor, 1, 0.12);
  }
  EXPECT_EQ(found.measured_seconds, seen.seconds);
  EXPECT_GT(seen.seconds, 1.2 * found.planned_seconds); // else there was nothing to find
  EXPECT_NEAR(found.explained_seconds / seen.seconds, 1, 0.12);
}

INSTANTIATE_TEST_SUITE_P(
    OfPorts, SlowPlaces,
    testing::Values(
        Fault{"a worker's port",
              "byteps_split",
              4,
              2,
              stations({4, 5}, 0.4),
              {{Kind::port, 2, 0, 0, 0.4}}},
        Fault{"a server's port",
              "byteps_split",
              4,
              2,
              stations({8, 9}, 0.3),
              {{Kind::port, 4, 0, 0, 0.3}}},
        Fault{"the only server's port",
              "ps_noncolocated",
              4,
              1,
              stations({8, 9}, 0.5),
              {{Kind::port, 4, 0, 0, 0.5}}},
        Fault{"one way out",
              "byteps_split",
              4,
              2,
              stations({2}, 0.3),
              {{Kind::sending, 1, 0, 0, 0.3}}},
        Fault{"one way in",
              "byteps_split",
              4,
              2,
              stations({7}, 0.3),
              {{Kind::receiving, 3, 0, 0, 0.3}}},
        Fault{
            "a port in a ring", "ring", 4, 0, stations({4, 5}, 0.4), {{Kind::port, 2, 0, 0, 0.4}}},
        Fault{"a way in a ring", "ring", 4, 0, stations({4}, 0.4), {{Kind::pair, 2, 3, 0, 0.4}}},
        Fault{"a pair", "byteps_split", 4, 2, pair(0, 5, 8e6), {{Kind::pair, 0, 5, 0, 0.08}}},
        Fault{"two ports",
              "byteps_split",
              6,
              2,
              stations({0, 1, 6, 7}, 0.4),
              {{Kind::port, 0, 0, 0, 0.4}, {Kind::port, 3, 0, 0, 0.4}}},
        Fault{"every port",
              "byteps_split",
              4,
              2,
              stations({0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}, 0.6),
              {{Kind::every_port, 0, 0, 0, 0.6}}},
        Fault{"a server's processors",
              "ps_noncolocated",
              4,
              2,
              sums(4, 24),
              {{Kind::processors, 4, 0, 0, 1.0 / 24}}}));

TEST(SlowPlacesFound, AStragglersPasses) {
  const Job planned = job_of(ports(), "byteps_split", 4, 2, true);
  Job real = planned;
  slow_down(real.schedule, 1, 2.5);
  const Explanation found =
      explain(planned.schedule, planned.network, seen_on(real.schedule, real.network));
  ASSERT_THAT(found.places, SizeIs(1));
  EXPECT_EQ(found.places[0].kind, Kind::passes);
  EXPECT_EQ(found.places[0].rank, 1U);
  EXPECT_NEAR(found.places[0].factor, 0.4, 0.04);
}

/// A long way to one machine keeps ports as busy as a slow one does; the shortest writes tell.
TEST(SlowPlacesFound, ADelayOnTheWayToARank) {
  for (const std::size_t rank : {1U, 4U}) {
    const Job planned = job_of(ports(), "byteps_split", 4, 2);
    Job real = planned;
    PlayNetwork& network = real.network.network;
    network.path_latency_s.assign(6, std::vector<double>(6, network.latency_s));
    for (std::size_t peer = 0; peer < 6; ++peer) {
      network.path_latency_s[rank][peer] += 0.02;
      network.path_latency_s[peer][rank] += 0.02;
    }
    const Explanation found =
        explain(planned.schedule, planned.network, seen_on(real.schedule, real.network));
    ASSERT_THAT(found.places, SizeIs(1));
    EXPECT_EQ(found.places[0].kind, Kind::delay);
    EXPECT_EQ(found.places[0].rank, rank);
    EXPECT_NEAR(found.places[0].delay_s, 0.02, 0.006);
  }
}

TEST(SlowPlacesFound, TheMemoryOfAMachine) {
  const Job planned = job_of(one_machine(), "ring", 4, 0);
  Job real = planned;
  real.network.network.station_bytes_per_s[0] *= 0.5;
  const Explanation found =
      explain(planned.schedule, planned.network, seen_on(real.schedule, real.network));
  ASSERT_THAT(found.places, SizeIs(1));
  EXPECT_TRUE(found.places[0].kind == Kind::station || found.places[0].kind == Kind::every_port);
  EXPECT_NEAR(found.places[0].factor, 0.5, 0.06);
  EXPECT_EQ(planned_rate(planned.network, found.places[0]),
            planned.network.network.station_bytes_per_s[0]);
}

TEST(SlowPlacesFound, NoneWhereAllIsAsPlanned) {
  const Job job = job_of(ports(), "byteps_split", 4, 2);
  EXPECT_THAT(explain(job.schedule, job.network, seen_on(job.schedule, job.network)).places,
              IsEmpty());
}

/// Everybody paused for a second: no place was slow.
TEST(SlowPlacesFound, NoneWhereNoneExplainsIt) {
  const Job job = job_of(ports(), "byteps_split", 4, 2);
  Observation seen = seen_on(job.schedule, job.network);
  seen.seconds += 1;
  const Explanation found = explain(job.schedule, job.network, seen);
  EXPECT_THAT(found.places, IsEmpty());
  EXPECT_EQ(found.explained_seconds, found.planned_seconds);
}

/// A port is slow, but that is not what the iteration took three times as long for.
TEST(SlowPlacesFound, NoneWhereTheSlowOneDoesNotAccountForTheTime) {
  const Job planned = job_of(ports(), "byteps_split", 4, 2);
  Job real = planned;
  stations({4, 5}, 0.7)(real);
  Observation seen = seen_on(real.schedule, real.network);
  seen.seconds *= 3;
  EXPECT_THAT(explain(planned.schedule, planned.network, seen).places, IsEmpty());
}

/// Soon no place stands out beside those that were found. Whatever is seen, places are slower than
/// planned, and what they explain is nearer to it than the plan.
TEST(SlowPlacesFound, WhateverIsSeen) {
  PlanOptions options;
  options.part_bytes = 256 << 10;
  for (const auto& [strategy, workers, servers] :
       {std::tuple("ps_colocated", 3U, 0U), std::tuple("byteps_split", 2U, 1U)}) {
    options.strategy = strategy;
    const Profile profile = cluster(100e6, 100e6);
    Job job{plan_for(profile, equal_tensors(1, 1 << 20), workers, servers, options), {}, {}};
    job.schedule = lower(job.plan);
    job.network = network_of(job.plan, profile);
    const Observation planned = seen_on(job.schedule, job.network);
    for (unsigned seed = 1; seed <= 40; ++seed) {
      SCOPED_TRACE(testing::Message() << "seed " << seed);
      std::mt19937 random(seed); // NOLINT: printed
      std::lognormal_distribution<double> times(0.3, 1);
      Observation seen = planned;
      for (auto* const some : {&seen.busy_s, &seen.quickest_s}) {
        std::ranges::for_each(*some, [&](double& seconds) { seconds *= times(random); });
      }
      seen.seconds *= 1 + times(random);
      const Explanation found = explain(job.schedule, job.network, seen);
      for (const SlowPlace& place : found.places) {
        EXPECT_TRUE(place.kind == Kind::delay ? place.delay_s > 0 : place.factor < 1);
      }
      EXPECT_LE(std::abs(found.explained_seconds - seen.seconds),
                seen.seconds - found.planned_seconds);
    }
  }
}

TEST(Diagnosis, SaysForWhomTheProcessorsWorked) {
  const Job planned = job_of(ports(), "ps_noncolocated", 4, 2);
  Job real = planned;
  sums(4, 24)(real);
  RankTimelines timelines;
  static_cast<void>(play(real.schedule, real.network.network, real.network.cost, &timelines));
  const Observation seen = observe(real.schedule, timelines);
  const auto verdict = [&](const std::vector<std::string>& hosts) {
    Report report;
    for (std::size_t r = 0; r < hosts.size(); ++r) {
      RankReport rank;
      rank.host = hosts[r];
      rank.reduce_seconds = seen.busy_s[seen.local(r)] / 2; // the other half it waited
      report.ranks.push_back(rank);
    }
    return diagnose(planned.plan, ports(), report, timelines).verdict;
  };
  EXPECT_THAT(verdict({"a", "a", "a", "a", "a", "a"}), test::Says("4's processors"));
  EXPECT_THAT(verdict({"a", "b", "c", "d", "e", "f"}), test::Says("worked"));
  EXPECT_THAT(verdict({"a", "b", "c", "d", "e", "e"}), test::Says("worked"));
}

} // namespace
} // namespace reckon
