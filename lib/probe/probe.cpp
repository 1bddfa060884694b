// SPDX-License-Identifier: Apache-2.0
#include "probe/probe.hpp"

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/json.hpp"
#include "discover/discover.hpp"
#include "discover/environment.hpp"
#include "documents/cells.hpp"
#include "kernels/reduce.hpp"
#include "probe/campaign.hpp"
#include "probe/curve.hpp"
#include "probe/description.hpp"
#include "probe/fabric.hpp"
#include "probe/gpu.hpp"
#include "probe/links.hpp"
#include "probe/machine_campaigns.hpp"
#include "probe/workbench.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

namespace reckon {
namespace {

constexpr const char* k_machine = "m0";

/// `campaign`, but only the cells of the cases asked for.
Campaign filtered(Campaign campaign, const std::vector<std::string>& only) {
  if (only.empty()) {
    return campaign;
  }
  const auto keep_asked = [only](std::vector<CellPlan> plans) {
    std::erase_if(plans, [&](const CellPlan& plan) {
      return std::find(only.begin(), only.end(), plan.key.test) == only.end();
    });
    return plans;
  };
  campaign.plan = [plan = std::move(campaign.plan), keep_asked] { return keep_asked(plan()); };
  if (campaign.more) {
    campaign.more = [more = std::move(campaign.more), keep_asked](const std::vector<Cell>& cells) {
      return keep_asked(more(cells));
    };
  }
  return campaign;
}

void check_cases(const std::vector<std::string>& only) {
  std::vector<std::string> names;
  for (const CellCase& c : cell_cases()) {
    if (c.on != MeasuredOn::cluster) {
      names.emplace_back(c.name);
    }
  }
  for (const std::string& wanted : only) {
    if (std::find(names.begin(), names.end(), wanted) == names.end()) {
      const std::string near = did_you_mean(wanted, names);
      fail(ErrorKind::usage, fmt::format("probe: no case is called '{}'; {}", wanted,
                                         near.empty() ? "reckon probe --list names them all"
                                                      : fmt::format("did you mean {}?", near)));
    }
  }
}

std::vector<int> processors(const Topology& topology) {
  std::vector<int> cpus;
  for (const TopologyObject* core : topology.of_kind(ObjectKind::core)) {
    cpus.insert(cpus.end(), core->cpus.begin(), core->cpus.end());
  }
  return cpus;
}

/// The transports to measure: those asked for, or all there are.
std::vector<std::string> transports_to_measure(const ProbeOptions& options,
                                               std::vector<std::string>& why_not) {
  const auto is_fabric_case = [](const std::string& name) { return name.starts_with("fabric_"); };
  if (!options.only.empty() &&
      std::none_of(options.only.begin(), options.only.end(), is_fabric_case)) {
    return {}; // asking libfabric takes a third of a second
  }
  const std::vector<std::string> all = available_transports(&why_not);
  for (const std::string& wanted : options.transports) {
    if (std::find(all.begin(), all.end(), wanted) == all.end()) {
      const auto why = std::find_if(why_not.begin(), why_not.end(), [&](const std::string& line) {
        return line.starts_with(wanted + ": ");
      });
      fail(ErrorKind::unavailable,
           fmt::format("probe: there is no transport '{}' here{}; there are {}", wanted,
                       why == why_not.end() ? "" : why->substr(wanted.size()),
                       fmt::join(all, ", ")));
    }
  }
  return options.transports.empty() ? all : options.transports;
}

/// Stands for the GPUs where there are none: of the cases that were asked for by name, a cell that
/// says why they cannot be measured.
Campaign absent_gpus(const std::vector<std::string>& only, const std::string& why) {
  const auto plan = [only, why] {
    std::vector<CellPlan> plans;
    for (const CellCase& c : cell_cases()) {
      if (c.on == MeasuredOn::gpus && std::find(only.begin(), only.end(), c.name) != only.end()) {
        plans.push_back({.key = {.test = c.name, .from = k_machine},
                         .measure = [why](Cell& /*cell*/, Seconds /*budget*/) {
                           fail(ErrorKind::unavailable, "no GPU: " + why);
                         }});
      }
    }
    return plans;
  };
  return {.name = "GPUs", .share = 0.01, .plan = plan};
}

} // namespace

void require_own_machine(const std::optional<JobEnvironment>& job) {
  if (job && job->local_size > 1) {
    fail(ErrorKind::usage,
         fmt::format("probe: {} ranks of this job are on this machine, and would measure it at the "
                     "same time; start one process on each machine, as `mpirun -N 1` and `srun "
                     "--ntasks-per-node=1` do, each with a file of its own, or give --cluster to "
                     "measure the machines and the network between them",
                     job->local_size));
  }
}

ProbeResult probe_machine(const ProbeOptions& options) {
  check_cases(options.only);
  const RunClock clock;
  Discovery discovery = discover();
  Environment environment = describe_environment(real_system_files());
  const std::vector<int> cpus = processors(discovery.topology);
  ProcGuard guard(cpus);
  Workbench bench(discovery.topology, k_machine, clock, options.seed, options.interrupted);

  bench.limit_memory_time(0.1 * options.budget);

  std::vector<Campaign> campaigns;
  for (Campaign (*make)(Workbench&) :
       {&core_latency_campaign, &memory_latency_campaign, &stream_campaign,
        &numa_bandwidth_campaign, &memcpy_curve_campaign, &reduce_campaign, &stores_campaign,
        &optimizer_campaign, &contention_campaign}) {
    campaigns.push_back(filtered(make(bench), options.only));
  }
  campaigns.push_back(
      filtered(numa_links_campaign(bench, discovery.topology, 0.1 * options.budget), options.only));
  std::vector<std::string> left_out;
  FabricProbeOptions fabric;
  fabric.machine = k_machine;
  fabric.transports = transports_to_measure(options, left_out);
  fabric.seed = options.seed;
  fabric.cpus = cpus;
  std::sort(fabric.cpus.begin(), fabric.cpus.end()); // the order in which the executor takes them
  // 64 MiB of the usual 256; less where memory is slow to come, as everywhere.
  fabric.footprint = bench.cold_bytes(0) / 4;
  fabric.interrupted = options.interrupted;
  fabric.started = [&guard](pid_t pid) { guard.add_own_process(pid); };
  for (Campaign& campaign : fabric_campaigns(fabric, clock)) {
    campaigns.push_back(filtered(std::move(campaign), options.only));
  }
  std::string no_gpu;
  if (GpuLibrary* const gpus = gpu_library(&no_gpu)) {
    const GpuProbeOptions of_gpus{.nvlink = options.nvlink, .links_time = 0.1 * options.budget};
    for (Campaign& campaign : gpu_campaigns(*gpus, bench, discovery.topology, of_gpus)) {
      campaigns.push_back(filtered(std::move(campaign), options.only));
    }
  } else {
    campaigns.push_back(absent_gpus(options.only, no_gpu));
  }
  if (options.starting) {
    std::size_t cells = 0;
    for (const Campaign& campaign : campaigns) {
      cells += campaign.plan().size();
    }
    options.starting(cells, estimate(campaigns, options.budget));
  }

  ProbeResult result;
  Profile& profile = result.profile;
  auto& context = profile.context;
  context["measured_at"] = utc_now();
  RunResult run = run_campaigns(
      campaigns, {options.budget, options.seed, options.interrupted, options.progress}, clock,
      guard);
  bench.release_memory();

  add_ceilings(run.cells);
  profile.cells = std::move(run.cells);
  describe_machine(profile, std::move(discovery.topology), environment);
  profile.name = !options.name.empty()               ? options.name
                 : !profile.machines[0].name.empty() ? profile.machines[0].name
                                                     : "this-machine";
  if (!left_out.empty()) {
    context["transports_left_out"] = fmt::format("{}", fmt::join(left_out, "; "));
  }
  context["gpus_left_out"] = no_gpu;
  context["timer_step"] = to_text(bench.timer_step());
  context["simd"] = simd_target_name();
  if (const auto cache = bench.measured_cache()) {
    context["last_level_cache"] = to_text(Bytes(*cache));
  }
  context["cold_footprint"] = to_text(Bytes(bench.cold_bytes(0)));
  if (const auto huge = bench.huge_fraction()) {
    context["huge_pages_got"] = fmt::format("{:.0f} %", 100 * *huge);
  }
  if (run.drift) {
    context["drift"] =
        fmt::format("{:+.1f} % ({})", 100 * run.drift->relative(), run.drift->key.text());
  }
  result.interrupted = run.interrupted;
  result.warnings = std::move(environment.warnings);
  result.warnings.insert(result.warnings.end(), run.warnings.begin(), run.warnings.end());
  describe_probe(result, options, options.budget, run.took);
  return result;
}

} // namespace reckon
