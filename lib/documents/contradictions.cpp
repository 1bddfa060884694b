// SPDX-License-Identifier: Apache-2.0
#include "documents/contradictions.hpp"

#include "documents/cells.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <string_view>
#include <tuple>
#include <utility>

namespace reckon {
std::vector<Contradiction> contradictions_of(const Profile& profile) {
  std::vector<Contradiction> found;
  const auto hold = [&](const Cell& cell, double limit, std::string limited_by) {
    if (limit > 0 && cell.p50 > (1 + k_above_noise) * limit) {
      found.push_back({&cell, limit, std::move(limited_by)});
    }
  };
  constexpr std::array<std::string_view, 4> k_against_ceiling{
      k_bisection_by_order, k_bisection_random, k_bisection_by_racks, k_uplink};
  std::map<std::pair<std::string, std::string>, double> single; // by transport and machine
  for (const Cell& cell : profile.cells) {
    if (cell.has_value() && cell.key.test == k_single_port) {
      const std::string machine = cell.key.from.substr(0, cell.key.from.find('/'));
      single[{cell.key.transport, machine}] += cell.p50;
    }
  }
  std::map<std::tuple<std::string_view, std::string_view, std::string_view>, const Cell*> fans;
  for (const Cell& cell : profile.cells) {
    const CellKey& key = cell.key;
    if (cell.has_value() && (key.test == k_fan_out || key.test == k_fan_in) &&
        key.direction == k_two_way) {
      fans.try_emplace({key.test, key.from, key.transport}, &cell);
    }
  }
  for (const Cell& cell : profile.cells) {
    const CellKey& key = cell.key;
    if (!cell.has_value()) {
      continue;
    }
    if (key.test == k_pair_bandwidth && key.direction == k_two_way) {
      const auto port = [&](const char* test, const std::string& of) {
        const auto found = fans.find({test, of, key.transport});
        return found == fans.end() ? nullptr : found->second;
      };
      const Cell* const out = port(k_fan_out, key.from);
      const Cell* const in = port(k_fan_in, key.to);
      const Cell* const least = out == nullptr || (in != nullptr && in->p50 < out->p50) ? in : out;
      if (least != nullptr) {
        hold(cell, least->p50, "the port of " + least->key.from);
      }
    } else if (const auto parts = single.find({key.transport, key.from});
               key.test == k_port_bandwidth && parts != single.end()) {
      hold(cell, parts->second, "its network ports together");
    } else if (cell.ceiling &&
               std::ranges::find(k_against_ceiling, key.test) != k_against_ceiling.end()) {
      hold(cell, cell.ceiling->value, cell.ceiling->name);
    }
  }
  return found;
}

} // namespace reckon
