// SPDX-License-Identifier: Apache-2.0
#include "export/export.hpp"
#include "support/refusals.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <random>
#include <sstream>

namespace reckon::test {
namespace {

constexpr double k_gib = 1073741824; // 2^30

/// "key: [ a, b ]" lines; comments are none.
std::map<std::string, std::vector<std::string>> read(const std::string& yml) {
  std::map<std::string, std::vector<std::string>> out;
  std::istringstream lines(yml);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("#")) {
      continue;
    }
    const std::size_t colon = line.find(": [ "), end = line.find(" ]");
    EXPECT_TRUE(colon != line.npos && end + 2 == line.size()) << line;
    std::istringstream values(line.substr(colon + 4, end - colon - 4));
    for (std::string value; std::getline(values, value, ',');) {
      out[line.substr(0, colon)].push_back(value.substr(value.find_first_not_of(' ')));
    }
  }
  return out;
}

/// Machines with a port of this rate each, `rack` of them below each uplink; 0: no racks.
struct Net {
  Plan plan;
  ExportNetwork net;
};
Net machines(std::size_t ranks, double port, double latency_s, std::size_t rack = 0,
             double uplink = 0) {
  Net n;
  n.plan.workload.name = "w";
  n.plan.profile.name = "p";
  n.plan.ranks.resize(ranks);
  StationNetwork& net = n.net.network;
  net.latency_s = latency_s;
  net.station_bytes_per_s.assign(2 * ranks, port);
  const std::size_t racks = rack == 0 ? 1 : ranks / rack;
  net.station_bytes_per_s.resize(2 * ranks + 2 * racks,
                                 rack == 0 ? std::numeric_limits<double>::infinity() : uplink);
  net.paths.assign(ranks, std::vector<std::vector<std::uint32_t>>(ranks));
  for (std::size_t a = 0; a < ranks; ++a) {
    const std::size_t ra = rack == 0 ? 0 : a / rack;
    n.plan.ranks[a].rack = "rack" + std::to_string(ra);
    for (std::size_t b = 0; b < ranks; ++b) {
      const std::size_t rb = rack == 0 ? 0 : b / rack;
      std::vector<std::size_t> path{2 * a};
      if (ra != rb) {
        path.push_back(2 * ranks + 2 * ra);
        path.push_back(2 * ranks + 2 * rb + 1);
      }
      path.push_back(2 * b + 1);
      if (a != b) {
        net.paths[a][b].assign(path.begin(), path.end());
      }
    }
  }
  return n;
}

void expect_refused(const Net& n, const std::string& why) {
  EXPECT_REFUSED(input, why, astra_network_yml(n.plan, n.net));
}

TEST(AstraNetwork, ItsGigabytesAreBinaryAndReadBackToTheSameRate) {
  // 12.5e9 / 2^30 = 11.6415321826934814453125, exactly: the divisor is a power of two.
  const Net n = machines(8, 12.5e9, 2e-6);
  EXPECT_EQ(read(astra_network_yml(n.plan, n.net)),
            (std::map<std::string, std::vector<std::string>>{{"topology", {"Switch"}},
                                                             {"npus_count", {"8"}},
                                                             {"bandwidth", {"11.641532182693481"}},
                                                             {"latency", {"1000"}}}));
  std::mt19937_64 random(7);
  for (int i = 0; i < 200; ++i) {
    const double rate = std::uniform_real_distribution<double>(1e6, 1e12)(random);
    const Net m = machines(2, rate, 0);
    EXPECT_EQ(std::stod(read(astra_network_yml(m.plan, m.net)).at("bandwidth").at(0)) * k_gib,
              rate);
  }
}

TEST(AstraNetwork, AWayThroughASwitchIsTwoLinksThatTogetherHaveTheLatency) {
  const Net n = machines(4, 1e9, 7.5e-6);
  EXPECT_EQ(2 * std::stod(read(astra_network_yml(n.plan, n.net)).at("latency").at(0)), 7500);
}

TEST(AstraNetwork, RacksAreASecondDimensionInWhichEachRankHasItsPartOfTheUplink) {
  const Net n = machines(12, 8 * k_gib, 1e-6, 4, 16 * k_gib);
  EXPECT_EQ(read(astra_network_yml(n.plan, n.net)),
            (std::map<std::string, std::vector<std::string>>{{"topology", {"Switch", "Switch"}},
                                                             {"npus_count", {"4", "3"}},
                                                             {"bandwidth", {"8", "4"}},
                                                             {"latency", {"500", "500"}}}));
}

TEST(AstraNetwork, WhatDiffersBetweenRanksIsRefused) {
  Net n = machines(4, 1e9, 1e-6);
  n.net.network.station_bytes_per_s[5] = 2e9;
  expect_refused(n, "ports in bytes per second differ: 1000000000 and 2000000000");
  n = machines(4, 1e9, 1e-6);
  n.net.network.path_latency_s.assign(4, std::vector<double>(4, 1e-6));
  n.net.network.path_latency_s[2][1] = 2e-6;
  expect_refused(n, "latencies in seconds differ");
  n = machines(4, 1e9, 1e-6);
  n.net.network.station_busy.resize(n.net.network.station_bytes_per_s.size());
  n.net.network.station_busy[0] = BusyCurve({{1000, 1e-6}});
  expect_refused(n, "a curve of its own");
  n = machines(4, 1e9, 1e-6, 2, 1e9);
  n.plan.ranks[1].rack = "rack1";
  expect_refused(n, "unequal numbers of ranks");
  n = machines(4, 1e9, 1e-6, 2, 1e9);
  std::swap(n.plan.ranks[1].rack, n.plan.ranks[2].rack);
  expect_refused(n, "not neighbours");
  n = machines(4, 1e9, 1e-6);
  for (auto& from : n.net.network.paths) {
    from.assign(4, {0}); // one memory for all
  }
  expect_refused(n, "not machines with a port each");
  n = machines(4, 1e9, 1e-6);
  n.plan.ranks[0].endpoint = "m0/gpu0";
  expect_refused(n, "places inside a machine");
}

} // namespace
} // namespace reckon::test
