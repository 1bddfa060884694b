// SPDX-License-Identifier: Apache-2.0
// What people measured and published, each with its source, beside what reckon expects of that
// machine: tests/golden/expect/published.json.
#include "core/file.hpp"
#include "core/json.hpp"
#include "support/gpu_machines.hpp"
#include "topology/gpu_models.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>

namespace reckon {
namespace {

const std::string k_folder = std::string(RECKON_SOURCE_DIR) + "/tests/golden/expect/";

std::optional<PcieLink> pcie_of(const Json& text) {
  if (!text.is_string()) {
    return std::nullopt;
  }
  const auto word = text.get<std::string>(); // "5.0 x16"
  const double generation = std::stod(word);
  return PcieLink{4e9 * (1 << static_cast<int>(generation - 1)) / (generation < 3 ? 1.6 : 2.0),
                  std::stoi(word.substr(word.find('x') + 1))};
}

test::GpuMachine machine_of(const Json& pair) {
  const auto number = [&](const char* key) {
    return pair.at(key).is_number() ? pair.at(key).get<double>() : 0.0;
  };
  test::GpuMachine machine;
  machine.gpus = pair.at("gpus_per_machine").get<int>();
  machine.gpu = pair.at("gpu").get<std::string>();
  machine.nvlink = 1e9 * number("nvlink_gb_per_s_each_direction");
  machine.switched = pair.at("nvswitch").get<bool>();
  const GpuModel* model = gpu_model(machine.gpu);
  machine.sums = model != nullptr && has_sums_in_switch(*model);
  machine.pcie = pcie_of(pair.at("pcie"));
  machine.nics = static_cast<int>(number("nics"));
  machine.nic = 1e9 / 8 * number("nic_gbit_per_s");
  machine.nic_pcie = pcie_of(pair.at("nic_pcie"));
  machine.nic_pcie = machine.nic_pcie ? machine.nic_pcie : machine.pcie;
  return machine;
}

TEST(Published, EachIsNormalHalfOfItIsLowAndMoreThanTheCeilingIsAWrongDescription) {
  const std::string file = k_folder + "published.json";
  const Json pairs = parse_json(read_file(file), file).at("pairs");
  ASSERT_GE(pairs.size(), 40U);
  std::string table = "id collective machines measured most least_usual judgement\n";
  for (const Json& pair : pairs) {
    const std::string id = pair.at("id").get<std::string>();
    SCOPED_TRACE(id);
    const Expected expected =
        test::expected(machine_of(pair), pair.at("machines").get<std::size_t>(),
                       pair.at("collective").get<std::string>());
    const double measured = 1e9 * pair.at("busbw_gb_per_s").get<double>();
    EXPECT_EQ(name_of(judged(expected, measured)), "normal");
    EXPECT_EQ(name_of(judged(expected, measured / 2)), "low");
    EXPECT_EQ(name_of(judged(expected, expected.most() * 1.05)), "description");
    table +=
        fmt::format("{} {} {} {} {:.1f} {:.1f} {}\n", id, expected.collective, expected.machines,
                    pair.at("busbw_gb_per_s").get<double>(), expected.most() / 1e9,
                    expected.least_usual() / 1e9, name_of(judged(expected, measured)));
  }
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    write_file(k_folder + "published.txt", table);
  }
  EXPECT_EQ(read_file(k_folder + "published.txt"), table);
}

} // namespace
} // namespace reckon
