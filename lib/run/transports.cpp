// SPDX-License-Identifier: Apache-2.0
#include "run/transports.hpp"

#include "core/error.hpp"
#include "movers/levels.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>

namespace reckon {
namespace {

constexpr const char* k_form =
    "write a transport for all bytes, or inside=NAME, between=NAME, or both with a comma";

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
  if (asked.empty() || asked.find('=') != std::string::npos) {
    if (!options.machines.empty()) {
      const bool gpus = std::any_of(plan.ranks.begin(), plan.ranks.end(), [](const PlanRank& rank) {
        return rank.endpoint_kind == "gpu";
      });
      options.inside_transport = gpus && !gpu_transport().empty() ? gpu_transport() : "host";
    }
  } else {
    options.transport = asked;
    return;
  }
  for (std::size_t at = 0; at < asked.size();) {
    const std::size_t end = std::min(asked.find(',', at), asked.size());
    const std::string item = asked.substr(at, end - at);
    const std::size_t equals = item.find('=');
    const std::string level = item.substr(0, equals);
    if (equals == std::string::npos || equals + 1 == item.size() ||
        (level != "inside" && level != "between")) {
      fail(ErrorKind::usage, fmt::format("--transport {}: {}", asked, k_form));
    }
    if (level == "inside" && options.machines.empty()) {
      fail(ErrorKind::usage,
           fmt::format("--transport {}: no two ranks of this plan share one of several machines, "
                       "so one transport moves all bytes; write only its name",
                       asked));
    }
    (level == "inside" ? options.inside_transport : options.transport) = item.substr(equals + 1);
    at = end + 1;
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
