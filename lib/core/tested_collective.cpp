// SPDX-License-Identifier: Apache-2.0
#include "core/tested_collective.hpp"

#include "core/error.hpp"
#include "core/json_fwd.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <vector>

namespace reckon {
namespace {

double twice(double n) {
  return 2 * (n - 1) / n;
}
double once(double n) {
  return (n - 1) / n;
}
double whole(double) {
  return 1;
}

constexpr std::array<TestedCollective, 9> k_collectives{
    {{.name = "all_reduce", .bus_factor = &twice, .sums = true},
     {.name = "all_gather", .bus_factor = &once},
     {.name = "reduce_scatter", .bus_factor = &once, .sums = true},
     {.name = "broadcast", .bus_factor = &whole, .has_root = true},
     {.name = "reduce", .bus_factor = &whole, .sums = true, .has_root = true},
     {.name = "alltoall", .bus_factor = &once},
     {.name = "sendrecv", .bus_factor = &whole},
     {.name = "scatter", .bus_factor = &once, .has_root = true},
     {.name = "gather", .bus_factor = &once, .has_root = true}}};

std::vector<std::string> all_names() {
  std::vector<std::string> names;
  for (const TestedCollective& c : k_collectives) {
    names.emplace_back(c.name);
  }
  return names;
}

} // namespace

std::span<const TestedCollective> tested_collectives() {
  return k_collectives;
}

const TestedCollective* collective_named(std::string_view name) {
  const auto at = std::find_if(k_collectives.begin(), k_collectives.end(),
                               [&](const TestedCollective& c) { return c.name == name; });
  return at == k_collectives.end() ? nullptr : &*at;
}

const TestedCollective& asked_collective(std::string_view name, std::string_view option) {
  const TestedCollective* const asked = collective_named(name);
  if (asked == nullptr) {
    const std::string near = did_you_mean(std::string(name), all_names());
    fail(ErrorKind::usage,
         fmt::format("{} {}: must be one of {}{}", option, name, collective_names(),
                     near.empty() ? "" : fmt::format("; did you mean {}?", near)));
  }
  return *asked;
}

std::string collective_names() {
  return fmt::format("{}", fmt::join(all_names(), ", "));
}

} // namespace reckon
