// SPDX-License-Identifier: Apache-2.0
#include "probe/probe.hpp"

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/json.hpp"
#include "core/memory.hpp"
#include "core/units.hpp"
#include "discover/discover.hpp"
#include "discover/environment.hpp"
#include "documents/cells.hpp"
#include "kernels/reduce.hpp"
#include "probe/campaign.hpp"
#include "probe/curve.hpp"
#include "probe/description.hpp"
#include "probe/fabric.hpp"
#include "probe/gpu.hpp"
#include "probe/gpu_pairs.hpp"
#include "probe/links.hpp"
#include "probe/machine_campaigns.hpp"
#include "probe/pin.hpp"
#include "probe/workbench.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <map>
#include <memory>
#include <utility>

namespace reckon {
namespace {

constexpr const char* k_machine = "m0";

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
  const auto is_fabric_case = [](const std::string& name) {
    return name.starts_with("fabric_") || name == k_rehearsal;
  };
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

/// Stands for the GPUs where there are none: of the cases that were asked for by name, besides
/// others, a cell that says why they cannot be measured.
Campaign absent_gpus(const std::vector<std::string>& only, const std::string& why) {
  Campaign campaign{.name = "GPUs"};
  for (const CellCase& c : cell_cases()) {
    if (c.on == MeasuredOn::gpus && std::find(only.begin(), only.end(), c.name) != only.end()) {
      campaign.plans.push_back({.key = {.test = c.name, .from = k_machine},
                                .measure = [why](Cell& /*cell*/, Seconds /*budget*/) {
                                  fail(ErrorKind::unavailable, "no GPU: " + why);
                                }});
    }
  }
  return campaign;
}

/// Leaves the cells of the cases in `only`, where that is not empty.
void keep_only(Campaign& campaign, const std::vector<std::string>& only) {
  std::erase_if(campaign.plans, [&](const CellPlan& plan) {
    return !only.empty() && std::find(only.begin(), only.end(), plan.key.test) == only.end();
  });
}

/// Of each of so many nodes: not what it has, but what it has to spare, a power of two in bytes.
std::uint64_t memory_to_spare(std::size_t nodes) {
  constexpr std::uint64_t k_least = std::uint64_t{1} << 20U;
  const std::uint64_t free = available_memory_bytes();
  const std::uint64_t share = free / (8 * nodes);
  if (share < k_least) {
    fail(ErrorKind::unavailable,
         fmt::format("{} of memory are free, and a probe needs {}; end what uses it, or raise the "
                     "limit of this container",
                     to_text(Bytes(free)), to_text(Bytes(8 * nodes * k_least))));
  }
  return std::bit_floor(share);
}

/// A machine, and what there is to measure on it.
class Subject {
public:
  /// What cannot wait until its campaign begins is started unless cells are only to be listed.
  enum class Purpose { measure, list };
  Subject(const ProbeOptions& options, const Environment& environment, const Clock& clock,
          Purpose purpose)
      : m_discovery(discover(m_files)), m_cpus(processors(m_discovery.topology)), m_guard(m_cpus),
        m_bench(m_discovery.topology, k_machine, clock, options.seed, options.interrupted) {
    if (options.thorough) {
      m_bench.measure_thoroughly();
    }
    const auto fact = environment.facts.find("virtual_machine");
    const bool is_virtual = fact != environment.facts.end() && fact->second == "yes";
    m_bench.limit_memory(memory_to_spare(m_bench.nodes().size()));
    const std::vector<std::string> transports = transports_to_measure(options, m_left_out);
    // What plans read first, should time end early.
    FabricProbeOptions fabric;
    fabric.machine = k_machine;
    fabric.transports = transports;
    fabric.thorough = options.thorough;
    fabric.seed = options.seed;
    fabric.cpus = m_cpus;
    std::sort(fabric.cpus.begin(), fabric.cpus.end()); // the order in which the executor takes them
    fabric.footprint = m_bench.cold_bytes(0) / 4;
    fabric.interrupted = options.interrupted;
    fabric.started = [this](pid_t pid) { m_guard.add_own_process(pid); };
    std::ranges::move(fabric_campaigns(fabric, clock), std::back_inserter(m_campaigns));
    if (options.rehearse && !transports.empty()) {
      std::ranges::move(options.rehearse({k_machine, m_cpus.size(), transports, options.thorough,
                                          options.interrupted}),
                        std::back_inserter(m_campaigns));
    }
    if (!m_discovery.cuda_gpus.empty()) { // they fork, which nobody may who has used CUDA
      const auto pairs = std::make_shared<GpuPairs>(
          gpu_pair_places(m_bench, m_discovery.topology, m_discovery.cuda_gpus),
          GpuPairOptions{.thorough = options.thorough,
                         .gpu_to_gpu = options.nvlink,
                         .seed = options.seed,
                         .interrupted = options.interrupted,
                         .started = fabric.started},
          clock);
      Campaign& campaign = m_campaigns.emplace_back(gpu_pairs_campaign(pairs));
      keep_only(campaign, options.only);
      if (purpose == Purpose::measure && !campaign.plans.empty()) {
        pairs->start();
      }
    }
    if (GpuLibrary* const gpus = gpu_library(&m_no_gpu)) {
      const GpuProbeOptions of_gpus{.nvlink = options.nvlink, .links_time = k_links_time};
      std::ranges::move(gpu_campaigns(*gpus, m_bench, m_discovery.topology, of_gpus),
                        std::back_inserter(m_campaigns));
    } else {
      m_campaigns.push_back(absent_gpus(options.only, m_no_gpu));
      m_absent = m_campaigns.back().plans.size();
    }
    for (Campaign (*make)(Workbench&) :
         {&reduce_campaign, &in_place_campaign, &stores_campaign, &optimizer_campaign,
          &stream_campaign, &memcpy_curve_campaign, &numa_bandwidth_campaign, &processor_campaign,
          &memory_latency_campaign, &contention_campaign}) {
      m_campaigns.push_back(make(m_bench));
    }
    m_campaigns.push_back(numa_links_campaign(m_bench, m_discovery.topology, k_links_time));
    // How far a virtual machine's cores are from each other changes as its hypervisor moves them.
    if (!is_virtual || options.thorough || !options.only.empty()) {
      m_campaigns.push_back(core_latency_campaign(m_bench));
    }
    std::stable_partition(m_campaigns.begin(), m_campaigns.end(),
                          [](const Campaign& campaign) { return !campaign.last; });
    for (Campaign& campaign : m_campaigns) {
      keep_only(campaign, options.only);
    }
    std::erase_if(m_campaigns, [](const Campaign& c) { return c.plans.empty(); });
  }

  /// Throws where every cell that was asked for is of something that is not here.
  void require_cells(const std::vector<std::string>& only) const {
    if (!only.empty() && cells() == m_absent) {
      fail(ErrorKind::unavailable,
           fmt::format("probe: this machine has nothing to measure for {}{}; `reckon probe --list` "
                       "names what it has",
                       fmt::join(only, ", "), m_absent > 0 ? ": no GPU: " + m_no_gpu : ""));
    }
  }
  [[nodiscard]] std::size_t cells() const {
    std::size_t cells = 0;
    for (const Campaign& campaign : m_campaigns) {
      cells += campaign.plans.size();
    }
    return cells;
  }
  [[nodiscard]] const std::vector<Campaign>& campaigns() const { return m_campaigns; }
  [[nodiscard]] Topology take_topology() { return std::move(m_discovery.topology); }
  SystemFiles& files() { return m_files; }
  [[nodiscard]] const Topology& topology() const { return m_discovery.topology; }
  Guard& guard() { return m_guard; }
  Workbench& bench() { return m_bench; }
  void describe(std::map<std::string, std::string>& context) const {
    if (!m_left_out.empty()) {
      context["transports_left_out"] = fmt::format("{}", fmt::join(m_left_out, "; "));
    }
    context["gpus_left_out"] = m_no_gpu;
    context["timer_step"] = to_text(m_bench.timer_step());
    context["simd"] = simd_target_name();
    context["cold_footprint"] = to_text(Bytes(m_bench.cold_bytes(0)));
    if (const auto huge = m_bench.huge_fraction()) {
      context["huge_pages_got"] = fmt::format("{:.0f} %", 100 * *huge);
    }
  }

private:
  static constexpr Seconds k_links_time{3}; // at most, in each pass

  SystemFiles m_files;
  Discovery m_discovery;
  std::vector<int> m_cpus;
  ProcGuard m_guard;
  Workbench m_bench;
  std::vector<std::string> m_left_out;
  std::string m_no_gpu;
  std::size_t m_absent = 0; ///< cells that only say that there is no GPU
  std::vector<Campaign> m_campaigns;
};

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

ProbeList list_probe(const ProbeOptions& options) {
  check_cases(options.only);
  const RunClock clock;
  const Subject subject(options, describe_environment(SystemFiles().reader()), clock,
                        Subject::Purpose::list);
  ProbeList list{{}, estimate(subject.campaigns(), options.budget)};
  for (const Campaign& campaign : subject.campaigns()) {
    for (const CellPlan& plan : campaign.plans) {
      list.cells.push_back(plan.key);
    }
  }
  return list;
}

/// Memory that the system got since hwloc looked: a virtual machine is given what it uses.
static void add_plugged_memory(Topology& topology) {
  for (TopologyObject& object : topology.objects) {
    if (object.kind == ObjectKind::numa_node && object.os_index) {
      object.bytes =
          std::max(object.bytes.value_or(0), node_memory_bytes(*object.os_index).value_or(0));
    }
  }
}

ProbeResult probe_machine(const ProbeOptions& options) {
  check_cases(options.only);
  const RunClock clock;
  Environment environment = describe_environment(SystemFiles().reader());
  const Precedence precedence; // before any thread or process is started
  Subject subject(options, environment, clock, Subject::Purpose::measure);
  subject.require_cells(options.only);
  if (options.starting) {
    options.starting(subject.cells(), estimate(subject.campaigns(), options.budget));
  }

  ProbeResult result;
  Profile& profile = result.profile;
  auto& context = profile.context;
  context["measured_at"] = utc_now();
  MachineErrors errors(subject.topology(), subject.files());
  RunResult run = run_campaigns(subject.campaigns(),
                                {options.budget, options.seed, options.interrupted,
                                 options.progress, [&errors] { return errors.since_last(); }},
                                clock, subject.guard());
  subject.bench().release_memory();

  add_ceilings(run.cells);
  profile.cells = std::move(run.cells);
  subject.describe(context);
  describe_settings(profile, subject.topology(), subject.files(), errors, options.keep_files);
  Topology topology = subject.take_topology();
  add_plugged_memory(topology);
  describe_machine(profile, std::move(topology), environment);
  profile.name = !options.name.empty()               ? options.name
                 : !profile.machines[0].name.empty() ? profile.machines[0].name
                                                     : "this-machine";
  context["precedence"] = precedence.granted() ? "over other programs" : "";
  context["disturbed"] = run.disturbance;
  if (run.drift) {
    context["drift"] = fmt::format("{:+.1f} %", 100 * *run.drift);
  }
  result.interrupted = run.interrupted;
  result.warnings = std::move(environment.warnings);
  result.warnings.insert(result.warnings.end(), run.warnings.begin(), run.warnings.end());
  describe_probe(result, options, options.budget.value_or(Seconds(0)), run.took);
  return result;
}

} // namespace reckon
