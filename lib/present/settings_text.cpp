// SPDX-License-Identifier: Apache-2.0
#include "core/name_ranges.hpp"
#include "present/profile_parts.hpp"
#include "present/table.hpp"
#include "verdict/verdict.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <map>
#include <string_view>
#include <utility>

namespace reckon {
namespace {

/// Of the settings those that differ from machine to machine and cost most, in this order.
constexpr std::array<std::string_view, 12> k_shown{
    "governor",         "energy_preference", "iommu", "port_acs", "gpu_direct_rdma",
    "relaxed_ordering", "operstate",         "state", "mtu",      "roce_v2_gids",
    "slowed_by",        "config_space"};

} // namespace

std::string settings_text(const Profile& p, const Style& style) {
  // By name and device, and by value.
  std::map<std::pair<std::string_view, std::string>,
           std::map<std::string, std::vector<std::string>>>
      places;
  for (const Setting& s : p.settings) {
    std::vector<std::string>& of_value = places[{s.name, device_of(s)}][s.value];
    const std::string place =
        s.machine.empty() ? s.place : fmt::format("{} of {}", s.place, s.machine);
    if (of_value.empty() || of_value.back() != place) {
      of_value.push_back(place);
    }
  }
  Table table(2, "setting|value|~places");
  const auto put = [&](const auto& is_shown, Tone tone) {
    for (const auto& [what, by_value] : places) {
      for (const auto& [value, of_value] : by_value) {
        if (is_shown(what.first)) {
          table.row(
              {{fmt::format("{}{}{}", what.first, what.second.empty() ? "" : " of ", what.second),
                Tone::dim},
               {value, tone},
               fmt::format("{}", fmt::join(name_ranges(of_value), ", "))});
        }
      }
    }
  };
  for (const std::string_view shown : k_shown) {
    put([&](std::string_view name) { return name == shown; }, Tone::plain);
  }
  put([](std::string_view name) { return name.ends_with(k_while_measured); }, Tone::bad);
  return table.empty() ? "" : heading("settings", "", style) + table.text(style);
}

} // namespace reckon
