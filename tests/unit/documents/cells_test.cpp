// SPDX-License-Identifier: Apache-2.0
#include "documents/cells.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "documents/json.hpp"
#include "documents/profile.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace reckon {
namespace {

TEST(Cells, EachCaseHasALineForWhoMeasuresItAndOneUnit) {
  std::set<std::pair<std::string, MeasuredOn>> lines;
  for (const CellCase& c : cell_cases()) {
    SCOPED_TRACE(c.name);
    EXPECT_TRUE(lines.emplace(c.name, c.on).second);
    EXPECT_STREQ(c.unit, cell_case(c.name).unit);
    const bool rate = std::string(c.unit) == k_bytes_per_second;
    EXPECT_TRUE(rate || std::string(c.unit) == k_seconds);
    EXPECT_EQ(rate, !std::string(c.bytes_convention).empty());
    EXPECT_FALSE(std::string(c.summary).empty());
  }
  EXPECT_TRUE(lines.contains({k_fabric_write, MeasuredOn::cluster}));
  EXPECT_EQ(cell_case(k_fabric_write).on, MeasuredOn::machine);
  EXPECT_STREQ(cell_case(k_stream_copy).bytes_convention, "stream");
  EXPECT_THROW(static_cast<void>(cell_case("carrier_pigeon")), Error);
}

TEST(Cells, KeysHaveTheNamesOfTheDocument) {
  const CellKey all{.test = k_fabric_write,
                    .from = "m0",
                    .to = "m1",
                    .bytes = 1,
                    .threads = 1,
                    .pairs = 1,
                    .in_flight = 1,
                    .sources = 1,
                    .dtype = "fp32",
                    .transport = "tcp",
                    .direction = k_one_way,
                    .operation = "sgd",
                    .state = "cold"};
  Profile profile;
  profile.cells.emplace_back().key = all;
  const Json json = to_json(profile).at("cells").at(0);
  for (const std::string_view name : k_key_names) {
    EXPECT_TRUE(json.contains(name)) << name;
  }
}

} // namespace
} // namespace reckon
