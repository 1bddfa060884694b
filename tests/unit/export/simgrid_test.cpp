// SPDX-License-Identifier: Apache-2.0
#include "export/export.hpp"
#include "support/refusals.hpp"

#include <gtest/gtest.h>
#include <pugixml.hpp>

#include <limits>
#include <map>
#include <set>

namespace reckon::test {
namespace {

/// Three ranks with ports of their own, two below one uplink: stations 2 r and 2 r + 1 are rank r's
/// egress and ingress, 6 and 7 the uplink's, 8 has no known rate.
ExportNetwork three_ranks() {
  ExportNetwork n;
  n.stations = {"r0 out", "r0 in",     "r1 out",    "r1 in",  "r2 \"x\" <out>",
                "r2 in",  "up & away", "up & away", "unknown"};
  n.network.station_bytes_per_s = {
      1e9, 1e9, 2e9, 2e9, 3e9, 3e9, 1e9 / 3, 1e9 / 7, std::numeric_limits<double>::infinity()};
  n.network.latency_s = 3.7e-6;
  n.network.paths = {
      {{}, {0, 3}, {0, 6, 8, 5}}, {{2, 1}, {}, {2, 6, 5}}, {{4, 7, 1}, {4, 7, 3}, {}}};
  return n;
}

/// A platform as it was read: links by id, and the stations of each route.
struct Platform {
  struct Link {
    double bytes_per_s = 0, latency_s = 0;
    std::string policy;
  };
  std::map<std::string, Link> links;
  std::set<std::string> hosts;
  std::map<std::pair<std::string, std::string>, std::vector<std::string>> routes;
  std::map<std::string, std::string> config;

  explicit Platform(const std::string& xml) {
    pugi::xml_document document;
    const pugi::xml_parse_result parsed = document.load_string(xml.c_str());
    EXPECT_TRUE(parsed) << parsed.description();
    const pugi::xml_node platform = document.child("platform");
    EXPECT_STREQ(platform.attribute("version").value(), "4.1");
    for (const pugi::xml_node prop : platform.child("config").children("prop")) {
      config[prop.attribute("id").value()] = prop.attribute("value").value();
    }
    const pugi::xml_node zone = platform.child("zone");
    for (const pugi::xml_node host : zone.children("host")) {
      EXPECT_TRUE(hosts.insert(host.attribute("id").value()).second);
    }
    for (const pugi::xml_node link : zone.children("link")) {
      const auto number = [&](const char* name, const std::string& unit) {
        const std::string text = link.attribute(name).value();
        EXPECT_TRUE(text.ends_with(unit)) << text;
        return std::stod(text.substr(0, text.size() - unit.size()));
      };
      EXPECT_TRUE(links
                      .emplace(link.attribute("id").value(),
                               Link{number("bandwidth", "Bps"), number("latency", "s"),
                                    link.attribute("sharing_policy").value()})
                      .second);
    }
    for (const pugi::xml_node route : zone.children("route")) {
      EXPECT_STREQ(route.attribute("symmetrical").value(), "NO");
      auto& way = routes[{route.attribute("src").value(), route.attribute("dst").value()}];
      for (const pugi::xml_node link : route.children("link_ctn")) {
        way.push_back(link.attribute("id").value());
        EXPECT_TRUE(links.contains(way.back())) << way.back();
      }
    }
  }
  [[nodiscard]] double latency(const std::string& from, const std::string& to) const {
    double sum = 0;
    for (const std::string& link : routes.at({from, to})) {
      sum += links.at(link).latency_s;
    }
    return sum;
  }
};

TEST(Simgrid, EveryStationIsALinkOfExactlyItsRateAndEveryWayARouteOverThem) {
  const Platform p(simgrid_xml(three_ranks(), "a -- title"));
  EXPECT_EQ(p.hosts, (std::set<std::string>{"rank0", "rank1", "rank2"}));
  EXPECT_EQ(p.config.at("network/model"), "CM02");
  EXPECT_EQ(p.config.at("network/crosstraffic"), "0");
  ASSERT_EQ(p.links.size(), 8U); // what is not known delays nothing and is left out
  EXPECT_EQ(p.links.at("r0 out").bytes_per_s, 1e9);
  EXPECT_EQ(p.links.at("r2 \"x\" <out>").bytes_per_s, 3e9);
  EXPECT_EQ(p.links.at("up & away").bytes_per_s, 1e9 / 3); // all digits
  EXPECT_EQ(p.links.at("up & away (7)").bytes_per_s, 1e9 / 7);
  ASSERT_EQ(p.routes.size(), 6U);
  EXPECT_EQ(p.routes.at({"rank0", "rank2"}),
            (std::vector<std::string>{"r0 out", "up & away", "r2 in"}));
  EXPECT_EQ(p.routes.at({"rank2", "rank1"}),
            (std::vector<std::string>{"r2 \"x\" <out>", "up & away (7)", "r1 in"}));
}

TEST(Simgrid, EachRouteHasItsLatencyOnce) {
  ExportNetwork n = three_ranks();
  for (const bool own : {false, true}) {
    if (own) { // two ways from rank 1 differ: they get links that only delay
      n.network.path_latency_s = {{0, 1e-6, 1e-6}, {2e-6, 0, 5e-6}, {0, 0, 0}};
    }
    const Platform p(simgrid_xml(n, "t"));
    for (std::size_t a = 0; a < 3; ++a) {
      for (std::size_t b = 0; b < 3; ++b) {
        if (a != b) {
          EXPECT_EQ(p.latency("rank" + std::to_string(a), "rank" + std::to_string(b)),
                    n.network.latency_of(a, b));
        }
      }
    }
    EXPECT_EQ(p.links.contains("latency 1 to 2"), own);
    if (own) {
      EXPECT_EQ(p.links.at("latency 1 to 2").policy, "FATPIPE");
    }
  }
}

TEST(Simgrid, RanksThatShareMemoryHaveARouteThatOnlyDelays) {
  ExportNetwork n;
  n.network.paths.assign(2, std::vector<std::vector<std::uint32_t>>(2));
  n.network.latency_s = 0;
  const Platform p(simgrid_xml(n, "t"));
  EXPECT_EQ(p.routes.at({"rank0", "rank1"}), std::vector<std::string>{"latency 0 to 1"});
}

TEST(Simgrid, LinksThatOnlyLanesPassAreLeftOut) {
  ExportNetwork n = three_ranks();
  n.stations.emplace_back("r0 eth0 out");
  n.network.station_bytes_per_s.push_back(1e9);
  n.network.lane_paths = {n.network.paths};
  n.network.lane_paths[0][0][1].front() = 9;
  const Platform p(simgrid_xml(n, "t"));
  EXPECT_FALSE(p.links.contains("r0 eth0 out"));
  EXPECT_TRUE(p.links.contains("r0 out"));
}

TEST(Simgrid, TooManyRanksAreRefused) {
  ExportNetwork n;
  n.network.paths.resize(1025);
  EXPECT_ERROR(simgrid_xml(n, "t"));
}

} // namespace
} // namespace reckon::test
