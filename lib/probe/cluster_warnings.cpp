// SPDX-License-Identifier: Apache-2.0
#include "probe/cluster_warnings.hpp"

#include "core/name_ranges.hpp"
#include "documents/contradictions.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace reckon {
namespace {

/// What measuring again has not settled.
void warn_of_contradictions(ProbeResult& result) {
  const std::vector<Contradiction> all = contradictions_of(result.profile);
  if (all.empty()) {
    return;
  }
  const Contradiction& worst = *std::ranges::max_element(
      all, {}, [](const Contradiction& c) { return c.cell->p50 / c.limit; });
  result.warnings.push_back(fmt::format(
      "this profile contradicts itself in {}, also where it was measured again: {} found {}, and "
      "{} "
      "carries {}; plans of it are off by as much. Probe again when nothing else uses the network, "
      "with a longer --time",
      counted(all.size(), "place"), worst.cell->key.text(),
      to_text(Bandwidth::bytes_per_s(worst.cell->p50)), worst.limited_by,
      to_text(Bandwidth::bytes_per_s(worst.limit))));
}

} // namespace

void warn_of_cluster(ProbeResult& result, const ClusterMember& member,
                     const std::string& racks_doubt, const std::string& narrow, int racks) {
  const std::string first = member.hosts().front().host;
  if (std::all_of(member.hosts().begin(), member.hosts().end(), [&](const ClusterHost& host) {
        return host.host == first && host.boot == member.hosts().front().boot;
      })) {
    result.warnings.push_back(fmt::format(
        "all ranks run on {}: between them no network was measured; start them on several "
        "machines, as `mpirun -N 1` and `srun --ntasks-per-node=1` do",
        first));
  }
  if (!member.left_out().empty()) {
    const std::string missing = first_names(member.left_out());
    result.profile.context["rails_left_out"] = missing;
    result.warnings.push_back(
        fmt::format("rails that some machines lack were left out: {}; see the cable and `ip link`, "
                    "or name the ports of the rails, the first one first, in RECKON_FABRIC_ADDRESS",
                    missing));
  }
  if (!narrow.empty()) {
    result.warnings.push_back(fmt::format(
        "this network has no full bisection bandwidth, which the equations of most strategies "
        "assume ({}){}",
        narrow,
        racks > 1 ? fmt::format("; {} racks with thin uplinks were found, and `reckon "
                                "plan` reckons with their uplinks",
                                racks)
                  : "; no racks explain it: plan for machines among which it holds"));
  }
  warn_of_contradictions(result);
  if (!racks_doubt.empty()) {
    result.warnings.push_back("racks are doubtful: " + racks_doubt);
  }
}

} // namespace reckon
