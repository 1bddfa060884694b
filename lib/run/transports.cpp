// SPDX-License-Identifier: Apache-2.0
#include "run/transports.hpp"

#include "core/error.hpp"
#include "core/split.hpp"
#include "movers/levels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

namespace reckon {
namespace {

constexpr const char* k_form =
    "write one transport for all bytes, or inside=NAME, or between=NAME, or both with a comma "
    "between them: inside=shm,between=tcp;ofi_rxm";

} // namespace

std::vector<std::size_t> machines_of_ranks(const Plan& plan) {
  std::map<std::pair<std::string, std::uint64_t>, std::size_t> numbers;
  std::vector<std::size_t> machines;
  for (const PlanRank& rank : plan.ranks) {
    if (!rank.machine_number) {
      return {};
    }
    machines.push_back(
        numbers.try_emplace({rank.machine, *rank.machine_number}, numbers.size()).first->second);
  }
  const bool levels = numbers.size() > 1 && numbers.size() < machines.size();
  return levels ? machines : std::vector<std::size_t>();
}

void choose_transports(RunOptions& options, const Plan& plan, const std::string& asked) {
  options.machines = machines_of_ranks(plan);
  options.transport = plan.transport;
  options.inside_transport.clear();
  if (!asked.empty() && asked.find('=') == std::string::npos) {
    options.transport = asked;
    return;
  }
  if (!options.machines.empty()) {
    const bool gpus = std::any_of(plan.ranks.begin(), plan.ranks.end(),
                                  [](const PlanRank& rank) { return rank.endpoint_kind == "gpu"; });
    options.inside_transport = gpus && !gpu_transport().empty() ? gpu_transport() : "host";
  }
  if (asked.empty()) {
    return;
  }
  for (const std::string& item : split(asked, ",")) {
    const std::vector<std::string> sides = split(item, "="); // names have none, but may have ';'
    const std::string& level = sides.front();
    if (sides.size() != 2 || sides.back().empty() || (level != "inside" && level != "between")) {
      fail(ErrorKind::usage, fmt::format("--transport {}: '{}' is no level and its transport; {}",
                                         asked, item, k_form));
    }
    if (level == "inside" && options.machines.empty()) {
      fail(ErrorKind::usage,
           fmt::format("--transport {}: no two ranks of this plan share one of several machines, "
                       "so one transport moves all bytes; write only its name",
                       asked));
    }
    (level == "inside" ? options.inside_transport : options.transport) = sides.back();
  }
}

std::unique_ptr<Mover> mover_for(const RunOptions& options, std::size_t rank) {
  const MoverPlace place{options.local_rank, options.host_memory, options.pci_address};
  if (options.inside_transport.empty()) {
    return make_mover(options.transport, options.habits, place);
  }
  const bool alone =
      std::count(options.machines.begin(), options.machines.end(), options.machines.at(rank)) == 1;
  return make_levels_mover(alone ? nullptr
                                 : make_mover(options.inside_transport, options.habits, place),
                           make_mover(options.transport, options.habits), options.machines);
}

} // namespace reckon
