// SPDX-License-Identifier: Apache-2.0
#include "settings/config_space.hpp"

#include "machine.hpp"

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace reckon {
namespace {

std::map<std::string, std::string> facts(const test::Config& config) {
  std::map<std::string, std::string> found;
  const ConfigSpace space(config.bytes());
  for (const auto* const table : {&function_facts(), &port_facts()}) {
    for (const ConfigFact& fact : *table) {
      if (const auto value = fact.read(space)) {
        found[fact.name] = *value;
      }
    }
  }
  return found;
}

// Payload 1 is 128 << 1 bytes, read request 5 is 128 << 5.
TEST(ConfigSpaceTest, SaysWhatTheRegistersSay) {
  EXPECT_EQ(facts({}), (std::map<std::string, std::string>{
                           {"ats", "off"},
                           {"extended_tags", "on"},
                           {"max_payload_bytes", "256"},
                           {"max_read_request_bytes", "4096"},
                           {"port_acs", "SrcValid- TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- "
                                        "EgressCtrl- DirectTrans-"},
                           {"port_max_payload_bytes", "256"},
                           {"relaxed_ordering", "on"}}));
  const auto other =
      facts({.payload = 2, .read_request = 0, .relaxed = false, .ats = true, .acs = 0x1d});
  EXPECT_EQ(other.at("max_payload_bytes"), "512");
  EXPECT_EQ(other.at("max_read_request_bytes"), "128");
  EXPECT_EQ(other.at("relaxed_ordering"), "off");
  EXPECT_EQ(other.at("ats"), "on");
  EXPECT_EQ(other.at("port_acs"), "SrcValid+ TransBlk- ReqRedir+ CmpltRedir+ UpstreamFwd+ "
                                  "EgressCtrl- DirectTrans-");
}

TEST(ConfigSpaceTest, WhatIsCutOffIsNotKnown) {
  EXPECT_TRUE(facts({.size = 64}).empty());
  const auto conventional = facts({.size = 256});
  EXPECT_EQ(conventional.count("port_acs"), 0U);
  EXPECT_EQ(conventional.at("max_payload_bytes"), "256");
  // In the middle of a capability's registers, nothing is made up.
  EXPECT_EQ(facts({.size = 0x152}).count("port_acs"), 0U);
}

TEST(ConfigSpaceTest, RingsOfPointersEnd) {
  std::string bytes(4096, '\0');
  bytes[0x34] = 0x40;
  bytes[0x40] = 0x05;
  bytes[0x41] = 0x40;  // itself
  bytes[0x100] = 0x01; // AER
  bytes[0x103] = 0x10; // the next one is at 0x100
  const ConfigSpace space(bytes);
  EXPECT_EQ(space.capability(0x10), std::nullopt);
  EXPECT_EQ(space.extended_capability(0x0d), std::nullopt);
}

} // namespace
} // namespace reckon
