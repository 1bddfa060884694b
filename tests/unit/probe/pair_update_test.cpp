// SPDX-License-Identifier: Apache-2.0
#include "core/json.hpp"
#include "probe/pair_update.hpp"

#include "documents/cells.hpp"
#include "documents/document.hpp"
#include "documents/json.hpp"
#include "fakes.hpp"
#include "probe/pair_probe.hpp"
#include "support/refusals.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <set>

namespace reckon {
namespace {

using test::cell_with;

constexpr const char* k_tcp = "tcp;ofi_rxm";
constexpr std::uint64_t k_sizes[] = {4096, 65536, 262144, 1048576};

/// A link whose writes take latency + bytes / rate.
struct Link {
  double latency_s = 1e-3, bytes_per_s = 25e6;
  [[nodiscard]] double seconds(std::uint64_t bytes) const {
    return latency_s + static_cast<double>(bytes) / bytes_per_s;
  }
};

/// Machines w0 w1 s0 s1 in one group, every two with such a link; ports of 25 MB/s.
Profile cluster(const Link& link) {
  Profile p;
  p.name = "cluster";
  p.source = "made for a test";
  p.machines.push_back({"m0", "w0..s1", 4, 1, 1 << 30, "", {"w0", "w1", "s0", "s1"}});
  p.cells.push_back(cell_with(
      {.test = k_port_bandwidth, .from = "m0", .transport = k_tcp, .direction = k_two_way},
      {25e6, 25e6}));
  for (const std::string& from : p.machines[0].members) {
    for (const std::string& to : p.machines[0].members) {
      for (const std::uint64_t bytes : k_sizes) {
        if (from != to) {
          p.cells.push_back(cell_with({.test = k_pair_write,
                                       .from = from,
                                       .to = to,
                                       .bytes = bytes,
                                       .transport = k_tcp,
                                       .direction = k_one_way},
                                      std::vector<double>(3, link.seconds(bytes))));
        }
      }
    }
  }
  std::sort(p.cells.begin(), p.cells.end(),
            [](const Cell& a, const Cell& b) { return a.key < b.key; });
  return p;
}

const std::vector<std::string> k_names{"w0", "w1", "s0", "s1"};

double p50(const Profile& p, const std::string& from, const std::string& to, std::uint64_t bytes) {
  return p.select({.test = k_pair_write, .from = from, .to = to, .bytes = bytes}).at(0)->p50;
}

PairTimes times_of(const Link& link, const std::vector<std::uint64_t>& sizes) {
  PairTimes times;
  for (const std::uint64_t bytes : sizes) {
    times[bytes] = std::vector<double>(3, link.seconds(bytes));
  }
  return times;
}

TEST(ChangeOf, NeedsMoreThanTheNoise) {
  const CellKey key{.test = k_pair_write};
  const Cell quiet = cell_with(key, {1, 1, 1, 1, 1});
  EXPECT_FALSE(change_of(quiet, {1.1, 1.1, 1.1})); // 10 % is what the same link gives
  EXPECT_FALSE(change_of(quiet, {}));
  EXPECT_DOUBLE_EQ(*change_of(quiet, {2, 2, 2}), 2);
  EXPECT_DOUBLE_EQ(*change_of(quiet, {0.5, 0.5, 0.5}), 0.5);
  // One of three slow is a disturbance; so are two of four, though their median is 1.5 times.
  EXPECT_FALSE(change_of(quiet, {1, 1, 4}));
  EXPECT_FALSE(change_of(quiet, {1, 1, 2, 2}));
  // Spread: median 1, deviations 0 0.2 0.2 0.3 0.3, median 0.2: three of these are 60 %.
  const Cell varied = cell_with(key, {0.7, 0.8, 1, 1.2, 1.3});
  EXPECT_FALSE(change_of(varied, {1.5, 1.5, 1.5}));
  EXPECT_TRUE(change_of(varied, {1.7, 1.7, 1.7}));
  // Seen before in more than 5 % of the samples: 19 of 1 s and 2 of 3 s.
  std::vector<double> tail(19, 1.0);
  tail.insert(tail.end(), {3.0, 3.0});
  EXPECT_FALSE(change_of(cell_with(key, tail), {2.5, 2.5, 2.5}));
  EXPECT_TRUE(change_of(cell_with(key, tail), {3.5, 3.5, 3.5}));
  Cell noisy = quiet;
  noisy.status = CellStatus::noisy;
  EXPECT_FALSE(change_of(noisy, {1.9, 1.9, 1.9}));
  EXPECT_TRUE(change_of(noisy, {2.1, 2.1, 2.1}));
}

TEST(UpdatePairs, AQuarterOfTheRateShowsAtEverySize) {
  // 1 ms and 25 MB/s become 1 ms and 6.25 MB/s; measured at 4 KiB (1.16384 ms to 1.65536 ms) and
  // 256 KiB (11.48576 ms to 42.94304 ms). The time added grows by 0.12 us a byte, so that 64 KiB
  // take 1 + 10.48576 = 11.48576 ms and 1 MiB takes 1 + 167.77216 ms.
  // Streams between the two follow: a byte takes four times as long.
  Profile p = cluster({});
  const auto stream = [&](const char* from, const char* to) -> Cell& {
    const CellKey key{.test = k_pair_bandwidth, .from = from, .to = to, .transport = k_tcp};
    const auto cell = std::ranges::find(p.cells, key, &Cell::key);
    return cell == p.cells.end() ? p.cells.emplace_back(cell_with(key, {24e6})) : *cell;
  };
  stream("w1", "s1");
  stream("s1", "w1");
  const auto pairs = known_pairs(p, k_names, {{1, 3}}, k_tcp);
  const ProfileUpdate update = update_pairs(p, pairs, {times_of({1e-3, 6.25e6}, {4096, 262144})});
  ASSERT_EQ(update.pairs.size(), 1U);
  EXPECT_EQ(update.pairs[0].from, "w1");
  EXPECT_EQ(update.pairs[0].to, "s1");
  EXPECT_EQ(update.pairs[0].bytes, 262144U);
  EXPECT_NEAR(update.pairs[0].before_bytes_per_s, 262144 / 11.48576e-3, 100);
  EXPECT_NEAR(update.pairs[0].after_bytes_per_s, 262144 / 42.94304e-3, 100);
  EXPECT_NEAR(p50(p, "w1", "s1", 65536), 11.48576e-3, 1e-7); // cells have 6 digits
  EXPECT_NEAR(p50(p, "w1", "s1", 1048576), 168.77216e-3, 1e-6);
  EXPECT_TRUE(update.ports.empty()); // one pair does not make a port
  EXPECT_DOUBLE_EQ(p50(p, "s1", "w1", 1048576), Link{}.seconds(1048576));
  EXPECT_NEAR(stream("w1", "s1").p50, 6e6, 100);
  EXPECT_DOUBLE_EQ(stream("s1", "w1").p50, 24e6);
}

TEST(UpdatePairs, ALongerLatencyLeavesTheRate) {
  // 5 ms more at 4 KiB; at 256 KiB 16.5 ms instead of 11.5: the same 5 ms at 64 KiB and 1 MiB.
  Profile p = cluster({});
  const auto pairs = known_pairs(p, k_names, {{0, 2}, {0, 3}, {2, 0}, {3, 0}}, k_tcp);
  const PairTimes now = times_of({6e-3, 25e6}, {4096, 262144});
  const ProfileUpdate update = update_pairs(p, pairs, {now, now, now, now});
  EXPECT_EQ(update.pairs.size(), 4U);
  const Link later{6e-3, 25e6};
  EXPECT_NEAR(p50(p, "w0", "s0", 65536), later.seconds(65536), 1e-7);
  EXPECT_NEAR(p50(p, "w0", "s0", 1048576), later.seconds(1048576), 1e-6);
  EXPECT_TRUE(update.ports.empty()); // all pairs of w0 take longer, but none of them a byte
}

TEST(UpdatePairs, AChangeOfShortWritesAloneIsToldWithTheirRate) {
  // 1 ms more: 4 KiB in 2.164 ms and not 1.164; 1 MiB in 43.9 ms and not 42.9, which is noise.
  Profile p = cluster({});
  const auto pairs = known_pairs(p, k_names, {{0, 2}}, k_tcp);
  const ProfileUpdate update = update_pairs(p, pairs, {times_of({2e-3, 25e6}, {4096, 1048576})});
  ASSERT_EQ(update.pairs.size(), 1U);
  EXPECT_EQ(update.pairs[0].bytes, 4096U);
  EXPECT_NEAR(update.pairs[0].after_bytes_per_s, 4096 / 2.16384e-3, 1);
}

TEST(UpdatePairs, APortFollowsWhenAllOfItsPairsDo) {
  Profile p = cluster({});
  const ClientFlows flows = client_flows({0, 1}, {2, 3});
  const auto pairs = known_pairs(p, k_names, flows.flows, k_tcp);
  std::vector<PairTimes> times;
  for (const KnownPair& pair : pairs) {
    const bool slow = pair.from == "s1" || pair.to == "s1";
    times.push_back(times_of({1e-3, slow ? 6.25e6 : 25e6}, {4096, 262144}));
  }
  EXPECT_EQ(update_pairs(p, pairs, times).ports, (std::vector<std::string>{"s1"}));
  CellKey port{.test = k_port_bandwidth, .from = "s1"};
  ASSERT_EQ(p.select(port).size(), 1U);
  EXPECT_NEAR(p.select(port)[0]->p50, 6.25e6, 10);
  port.from = "m0";
  EXPECT_DOUBLE_EQ(p.select(port).at(0)->p50, 25e6);
  // The document is a good one, and back at the old rate the machine's own port follows again.
  static_cast<void>(profile_from_json(parse_json(canonical_text(p), "p"), "p"));
  const auto slow_pairs = known_pairs(p, k_names, flows.flows, k_tcp);
  const std::vector<PairTimes> fast(pairs.size(), times_of({}, {4096, 262144}));
  EXPECT_EQ(update_pairs(p, slow_pairs, fast).ports, (std::vector<std::string>{"s1"}));
  port.from = "s1";
  EXPECT_NEAR(p.select(port).at(0)->p50, 25e6, 1e3);
}

TEST(UpdatePairs, SaysWhichPairTheProfileDoesNotKnow) {
  Profile p = cluster({});
  std::erase_if(p.cells, [](const Cell& c) { return c.key.from == "w1" && c.key.to == "s0"; });
  EXPECT_REFUSED(input, "from w1", known_pairs(p, k_names, {{0, 2}, {1, 2}}, k_tcp));
}

TEST(UpdatePairs, KeepsWhatDidNotChangeAndFollowsWhatDid) {
  constexpr unsigned k_seed = 20;
  std::mt19937_64 random(k_seed);
  std::uniform_real_distribution<double> unit(0, 1);
  for (int trial = 0; trial < 200; ++trial) {
    SCOPED_TRACE(fmt::format("seed {}, case {}", k_seed, trial));
    const Link before{1e-5 + 1e-3 * unit(random), 1e7 + 1e9 * unit(random)};
    Profile p = cluster(before);
    const Profile old = p;
    const ClientFlows flows = client_flows({0, 1}, {2, 3});
    const auto pairs = known_pairs(p, k_names, flows.flows, k_tcp);
    std::vector<PairTimes> times;
    std::set<std::pair<std::string, std::string>> changed;
    std::vector<Link> links;
    for (const KnownPair& pair : pairs) {
      const double kind = unit(random);
      // Within 5 %, or at least half as much again.
      const double factor = kind < 0.5 ? 0.95 + 0.1 * unit(random) : 1.5 + 8 * unit(random);
      const bool faster = kind > 0.75;
      const double by = faster ? 1 / factor : factor;
      links.push_back({before.latency_s * by, before.bytes_per_s / by});
      times.push_back(times_of(links.back(), {4096, 1048576}));
      if (kind >= 0.5) {
        changed.insert({pair.from, pair.to});
      }
    }
    const ProfileUpdate update = update_pairs(p, pairs, times);
    EXPECT_EQ(update.pairs.size(), changed.size());
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      for (const std::uint64_t bytes : k_sizes) {
        const bool moved = changed.contains({pairs[i].from, pairs[i].to});
        const double expected = moved ? links[i].seconds(bytes) : before.seconds(bytes);
        EXPECT_NEAR(p50(p, pairs[i].from, pairs[i].to, bytes) / expected, 1, moved ? 2e-5 : 0);
      }
    }
    if (changed.empty()) {
      EXPECT_EQ(p, old);
    }
    EXPECT_EQ(canonical_text(profile_from_json(parse_json(canonical_text(p), "p"), "p")),
              canonical_text(p));
  }
}

TEST(ClientFlows, RingsAreAddedOnceInDisjointRoundsOfTheirOwn) {
  // Two clients and two proxies; then the proxies' ring (both ways), the clients', and one that is
  // there already. 2 -> 3 and 0 -> 1 are disjoint, and so are the ways back.
  ClientFlows flows = client_flows({0, 1}, {2, 3});
  const std::size_t known = flows.flows.size(), rounds = flows.rounds.size();
  add_flows(flows, {{2, 3}, {3, 2}, {2, 3}, {0, 1}, {0, 2}, {1, 0}});
  EXPECT_EQ(flows.flows.size(), known + 4);
  ASSERT_EQ(flows.rounds.size(), rounds + 2);
  for (const std::size_t last : {rounds, rounds + 1}) {
    std::set<int> ranks;
    for (const std::size_t i : flows.rounds[last]) {
      ranks.insert({flows.flows[i].from, flows.flows[i].to});
    }
    EXPECT_EQ(ranks, (std::set<int>{0, 1, 2, 3}));
  }
}

TEST(ClientFlows, AreAllPairsBothWaysInDisjointRounds) {
  for (int clients = 1; clients <= 15; ++clients) {
    for (int proxies = 1; proxies <= 15; ++proxies) {
      std::vector<int> c, p;
      for (int i = 0; i < clients; ++i) {
        c.push_back(i);
      }
      for (int i = 0; i < proxies; ++i) {
        p.push_back(clients + i);
      }
      const ClientFlows all = client_flows(c, p);
      std::set<std::pair<int, int>> seen;
      std::size_t in_rounds = 0;
      for (const auto& round : all.rounds) {
        std::set<int> busy;
        for (const std::size_t i : round) {
          EXPECT_TRUE(busy.insert(all.flows.at(i).from).second);
          EXPECT_TRUE(busy.insert(all.flows.at(i).to).second);
          EXPECT_TRUE(seen.insert({all.flows[i].from, all.flows[i].to}).second);
          ++in_rounds;
        }
      }
      EXPECT_EQ(seen.size(), static_cast<std::size_t>(2 * clients * proxies));
      EXPECT_EQ(in_rounds, all.flows.size());
      EXPECT_EQ(all.rounds.size(), static_cast<std::size_t>(2 * std::max(clients, proxies)));
    }
  }
}

TEST(ReprofileSizes, TakeTheLongestThatFitsIntoThePause) {
  const Profile p = cluster({});
  const ClientFlows flows = client_flows({0, 1}, {2, 3});
  const auto pairs = known_pairs(p, k_names, flows.flows, k_tcp);
  using Sizes = std::vector<std::uint64_t>;
  // 4 rounds, an answer of 1 ms to each write. 4 KiB: 8 + 8 writes of 1.164 ms, all rounds 138.5
  // ms. 256 KiB: 2 + 3 of 11.49 ms, all rounds 249.7 ms. 1 MiB: 1 + 3 of 42.94 ms, 703.1 ms.
  EXPECT_EQ(reprofile_sizes(pairs, flows.rounds, Seconds(1)), (Sizes{4096, 1048576}));
  EXPECT_EQ(reprofile_sizes(pairs, flows.rounds, Seconds(0.83)), (Sizes{4096, 262144}));
  EXPECT_EQ(reprofile_sizes(pairs, flows.rounds, Seconds(0.85)), (Sizes{4096, 1048576}));
  EXPECT_EQ(reprofile_sizes(pairs, flows.rounds, Seconds(0.001)), (Sizes{4096, 65536}));
}

} // namespace
} // namespace reckon
