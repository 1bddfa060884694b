// SPDX-License-Identifier: Apache-2.0
#include "probe/description.hpp"

#include "core/version.hpp"
#include "probe/evaluate.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <ctime>
#include <utility>

namespace reckon {

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", utc);
}

MachineGroup machine_group(const Topology& topology, const std::string& id,
                           const std::string& name) {
  MachineGroup machine;
  machine.id = id;
  machine.name = name;
  machine.cores = topology.of_kind(ObjectKind::core).size();
  for (const TopologyObject* node : topology.of_kind(ObjectKind::numa_node)) {
    machine.memory_bytes += node->bytes.value_or(0);
  }
  return machine;
}

void describe_machine(Profile& profile, Topology topology, const Environment& environment) {
  const auto fact = [&](const char* name) {
    const auto found = environment.facts.find(name);
    return found == environment.facts.end() ? std::string() : found->second;
  };
  profile.context.insert(environment.facts.begin(), environment.facts.end());
  profile.machines = {machine_group(topology, "m0", fact("host"))};
  profile.fingerprint = fingerprint(topology, fact("cpu"));
  profile.topology = std::move(topology);
}

void describe_probe(ProbeResult& result, const ProbeRequest& request, Seconds budget,
                    Seconds took) {
  Profile& profile = result.profile;
  profile.source = fmt::format("measured by reckon {}", k_version);
  profile.fits = fits_of(profile.cells);
  std::sort(profile.cells.begin(), profile.cells.end(),
            [](const Cell& a, const Cell& b) { return a.key < b.key; });
  auto& context = profile.context;
  context["budget"] = to_text(budget);
  context["took"] = to_text(took);
  context["seed"] = fmt::format("{}", request.seed);
  context["flags"] = request.flags;
  context["clock"] = "CLOCK_MONOTONIC_RAW";
  context["interrupted"] = result.interrupted ? "yes" : "";
  std::erase_if(context, [](const auto& entry) { return entry.second.empty(); });
  result.broken = static_cast<std::size_t>(
      std::count_if(profile.cells.begin(), profile.cells.end(), [](const Cell& cell) {
        return cell.status == CellStatus::failed || cell.status == CellStatus::timeout ||
               cell.status == CellStatus::mismatch;
      }));
}

} // namespace reckon
