// SPDX-License-Identifier: Apache-2.0
#include "probe/tcp_losses.hpp"

#include <gmock/gmock.h>

#include <functional>
#include <string>
#include <vector>

namespace reckon {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const std::vector<std::string> k_hosts{"a", "b", "c", "d"};

/// Each sends 10000 segments to each other machine, of which `lost(from, to)` are sent again.
TcpLosses losses(const std::function<std::uint64_t(int from, int to)>& lost) {
  TcpLosses all;
  const int machines = static_cast<int>(k_hosts.size());
  for (int distance = 1; distance < machines; ++distance) {
    FlowTask task;
    std::vector<TcpSegments> segments;
    for (int from = 0; from < machines; ++from) {
      const int to = (from + distance) % machines;
      task.flows.push_back({from, to});
      segments.push_back({10000, lost(from, to)});
    }
    all.add(task, segments);
  }
  return all;
}

/// What is said of each machine, as "c: 3.0 % of what it sends".
std::vector<std::string> told(const TcpLosses& all) {
  std::vector<std::string> found;
  const auto settings = all.settings(k_hosts);
  for (std::size_t m = 0; m < settings.size(); ++m) {
    for (const Setting& s : settings[m]) {
      EXPECT_EQ(s.name, k_tcp_again);
      EXPECT_EQ(s.place, "m0");
      found.push_back(k_hosts[m] + ": " + s.value);
    }
  }
  return found;
}

TEST(TcpLosses, AMachineThatLosesWithMostOfItsPeersIsTheOne) {
  EXPECT_THAT(told(losses([](int, int) { return 0; })), IsEmpty());
  // 300 and 250 of 10000.
  EXPECT_THAT(told(losses([](int from, int to) { return from == 2 ? 300
                                                        : to == 2 ? 250
                                                                  : 0; })),
              ElementsAre("c: 3.0 % of what it sends"));
  // The others send again, but each to this one only.
  EXPECT_THAT(told(losses([](int, int to) { return to == 1 ? 200 : 0; })),
              ElementsAre("b: 2.0 % of what it is sent"));
}

TEST(TcpLosses, APairThatLosesAloneIsSaidOfItsSender) {
  EXPECT_THAT(told(losses([](int from, int to) { return from == 3 && to == 0 ? 120 : 0; })),
              ElementsAre("d: 1.2 % of what it sends to a"));
}

TEST(TcpLosses, FewSegmentsAndSendersWithSeveralReceiversSayNothing) {
  EXPECT_THAT(told(losses([](int, int) { return 9; })), IsEmpty()); // less than 0.1 %
  TcpLosses few;
  few.add({.flows = {{0, 1}}}, {{999, 500}, {}, {}, {}});
  few.add({.flows = {{0, 1}, {0, 2}}}, {{50000, 5000}, {}, {}, {}});
  EXPECT_THAT(told(few), IsEmpty());
  few.add({.flows = {{0, 1}}}, {{1, 0}, {}, {}, {}}); // 500 of 1000
  // One pair alone does not tell which end it is.
  EXPECT_THAT(told(few), ElementsAre("a: 50.0 % of what it sends", "b: 50.0 % of what it is sent"));
}

TEST(TcpLosses, CountsAreReadByTheirNames) {
  SystemFiles files("/no such folder");
  EXPECT_EQ(TcpSegments::counted(files).sent, 0U);
  files.put("/proc/net/snmp", "Icmp: InMsgs OutMsgs\nIcmp: 5 6\n"
                              "Tcp: ActiveOpens OutSegs InSegs RetransSegs\nTcp: 1 20 30 4\n"
                              "Udp: InDatagrams OutSegs\nUdp: 7 8\n");
  const TcpSegments now = TcpSegments::counted(files);
  EXPECT_EQ(now.sent, 20U);
  EXPECT_EQ(now.again, 4U);
  EXPECT_EQ(now.since({15, 1}).sent, 5U);
  EXPECT_EQ(now.since({15, 1}).again, 3U);
}

} // namespace
} // namespace reckon
