// SPDX-License-Identifier: Apache-2.0
#include "probe/probe.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "core/version.hpp"
#include "discover/discover.hpp"
#include "discover/environment.hpp"
#include "kernels/reduce.hpp"
#include "probe/bandwidth.hpp"
#include "probe/campaign.hpp"
#include "probe/contention.hpp"
#include "probe/curve.hpp"
#include "probe/evaluate.hpp"
#include "probe/fabric.hpp"
#include "probe/gpu.hpp"
#include "probe/latency.hpp"
#include "probe/links.hpp"
#include "probe/reduce.hpp"
#include "probe/workbench.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>
#include <memory>
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
  for (const ProbeCase& c : probe_cases()) {
    names.push_back(c.name);
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

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm utc{};
  gmtime_r(&now, &utc);
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", utc);
}

MachineGroup machine_of(const Topology& topology, const Environment& environment) {
  MachineGroup machine;
  machine.id = k_machine;
  const auto host = environment.facts.find("host");
  machine.name = host == environment.facts.end() ? "" : host->second;
  machine.cores = topology.of_kind(ObjectKind::core).size();
  for (const TopologyObject* node : topology.of_kind(ObjectKind::numa_node)) {
    machine.memory_bytes += node->bytes.value_or(0);
  }
  return machine;
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
      fail(ErrorKind::unavailable,
           fmt::format("probe: there is no transport '{}' here; there are {}", wanted,
                       fmt::join(all, ", ")));
    }
  }
  return options.transports.empty() ? all : options.transports;
}

/// Stands for the GPUs where there are none: of the cases that were asked for by name, a cell that
/// says why they cannot be measured.
Campaign absent_gpus(const std::vector<std::string>& only, const std::string& why) {
  Campaign campaign;
  campaign.name = "GPUs";
  campaign.share = 0.01;
  campaign.plan = [only, why] {
    std::vector<CellPlan> plans;
    for (const GpuCase& c : gpu_cases()) {
      if (std::find(only.begin(), only.end(), c.name) != only.end()) {
        CellPlan plan;
        plan.key.test = c.name;
        plan.key.from = k_machine;
        plan.measure = [why](Cell& /*cell*/, Seconds /*budget*/) {
          fail(ErrorKind::unavailable, "no GPU: " + why);
        };
        plans.push_back(std::move(plan));
      }
    }
    return plans;
  };
  return campaign;
}

} // namespace

std::vector<ProbeCase> probe_cases() {
  std::vector<ProbeCase> cases{
      {k_core_to_core, "how long one core takes to see what another has written"},
      {k_memory_latency, "how long a dependent load takes, from L1 to each NUMA node's memory"},
      {k_stream_copy, "memory traffic of a = b, as STREAM counts; a ceiling"},
      {k_stream_add, "memory traffic of a = b + c, as STREAM counts; a ceiling"},
      {k_numa_copy, "copying between NUMA nodes, one thread and all, one way and both"},
      {k_numa_read, "reading another node's memory"},
      {k_numa_write, "writing another node's memory"},
      {k_link_bandwidth, "what links carry that copies between NUMA nodes and GPUs share"},
      {k_host_memcpy, "time of a copy from 8 B to 256 MiB, warm and cold"},
      {k_reduce_sum, "summation of gradients, by element type, threads, operands and part size"},
      {k_sum_and_send,
       "sums that are sent at once, with stores through the caches and around them"},
      {k_optimizer_step, "SGD, momentum, RMSProp and Adam steps, by threads"},
      {k_contention_communication,
       "copies and sums of gradients, alone and while something computes"},
      {k_contention_compute, "matrix products and lookups, alone and while gradients move"},
      {k_fabric_window, "writes between two processes, by how many are in flight"},
      {k_fabric_latency, "how long an 8-byte write takes to reach a process that sleeps"},
      {k_fabric_write, "time of a write between two processes from 8 B to 64 MiB, by transport"},
      {k_fabric_aggregate, "what 1, 2, 4, ... pairs of processes move together, by transport"},
  };
  for (const GpuCase& c : gpu_cases()) {
    cases.push_back({c.name, c.summary});
  }
  return cases;
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
  FabricProbeOptions fabric;
  fabric.machine = k_machine;
  std::vector<std::string> left_out;
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
    GpuProbeOptions of_gpus;
    of_gpus.nvlink = options.nvlink;
    of_gpus.links_time = 0.1 * options.budget;
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
  profile.context = environment.facts;
  auto& context = profile.context;
  context["measured_at"] = utc_now();
  RunnerOptions running;
  running.budget = options.budget;
  running.seed = options.seed;
  running.interrupted = options.interrupted;
  running.progress = options.progress;
  RunResult run = run_campaigns(campaigns, running, clock, guard);
  bench.release_memory();

  add_ceilings(run.cells);
  profile.fits = fits_of(run.cells);
  profile.cells = std::move(run.cells);
  std::sort(profile.cells.begin(), profile.cells.end(),
            [](const Cell& a, const Cell& b) { return a.key < b.key; });
  profile.machines = {machine_of(discovery.topology, environment)};
  profile.name = !options.name.empty()               ? options.name
                 : !profile.machines[0].name.empty() ? profile.machines[0].name
                                                     : "this-machine";
  profile.source = fmt::format("measured by reckon {}", k_version);
  profile.fingerprint = fingerprint(discovery.topology, context["cpu"]);
  profile.topology = std::move(discovery.topology);

  context["budget"] = to_text(options.budget);
  context["took"] = to_text(run.took);
  context["seed"] = fmt::format("{}", options.seed);
  context["flags"] = options.flags;
  if (!left_out.empty()) {
    context["transports_left_out"] = fmt::format("{}", fmt::join(left_out, "; "));
  }
  context["gpus_left_out"] = no_gpu;
  context["clock"] = "CLOCK_MONOTONIC_RAW";
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
  if (run.interrupted) {
    context["interrupted"] = "yes";
  }
  std::erase_if(context, [](const auto& entry) { return entry.second.empty(); });

  result.interrupted = run.interrupted;
  result.warnings = std::move(environment.warnings);
  result.warnings.insert(result.warnings.end(), run.warnings.begin(), run.warnings.end());
  result.broken = static_cast<std::size_t>(
      std::count_if(profile.cells.begin(), profile.cells.end(), [](const Cell& cell) {
        return cell.status == CellStatus::failed || cell.status == CellStatus::timeout ||
               cell.status == CellStatus::mismatch;
      }));
  return result;
}

} // namespace reckon
