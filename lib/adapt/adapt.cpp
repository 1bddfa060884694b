// SPDX-License-Identifier: Apache-2.0
#include "adapt/adapt.hpp"

#include "compare/comparison.hpp"
#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/interrupt.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/units.hpp"
#include "documents/json.hpp"
#include "network/pairs.hpp"
#include "present/comparison_text.hpp"
#include "probe/cluster.hpp"
#include "probe/pair_probe.hpp"
#include "run/report.hpp"
#include "schedule/checker.hpp"
#include "schedule/snapshot.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <set>
#include <span>
#include <utility>
#include <vector>

namespace reckon {
namespace {

/// For all pairs together, were nothing changed.
constexpr Seconds k_pause(1);
/// Planning has no limit of its own; a rank 0 that died is noticed at once.
constexpr double k_planning_limits = 10;
constexpr std::size_t k_most_changes = 12;

/// The document of a link, which must be the one that the plan was made from.
void check_link(const DocumentLink& wanted, const std::string& text, const std::string& file,
                const char* option, const std::string& plan) {
  const DocumentLink given = link_to(wanted.name, text);
  if (given.digest != wanted.digest) {
    fail(ErrorKind::input,
         fmt::format("{} {}: {} was made from '{}' with {}, but this is {}; give that one, or plan "
                     "again with this one",
                     option, file, plan, wanted.name, wanted.digest, given.digest));
  }
}

PlanInputs inputs_of(const AdaptInputs& inputs, const Roles& roles, const Plan& plan) {
  return {inputs.profile, inputs.workload,
          roles,          link_to(inputs.profile.name, canonical_text(inputs.profile)),
          plan.workload,  plan.roles};
}

std::vector<std::string> machines_of(const Plan& plan) {
  std::vector<std::string> machines;
  for (const PlanRank& rank : plan.ranks) {
    machines.push_back(rank.machine);
  }
  return machines;
}

/// Gives each pair of the plan's ranks without cells `pair_write` those that its latency and
/// bandwidth say, so that what is measured has something to be compared with and to replace.
void add_known_writes(Profile& profile, const Plan& plan, const std::string& transport) {
  const std::vector<std::string> names = pair_names(profile, machines_of(plan));
  const CellIndex index(profile);
  std::vector<Cell> known;
  for (const std::string& from : names) {
    for (const std::string& to : names) {
      CellKey key{.test = k_pair_write, .from = from, .to = to, .transport = transport};
      std::string source;
      const auto curve =
          from == to ? std::nullopt : pair_curve(index, from, to, transport, &source);
      if (!curve || !index.select(key).empty()) {
        continue;
      }
      key.direction = "one_way";
      for (const CurvePoint& point : curve->points()) {
        key.bytes = static_cast<std::uint64_t>(point.bytes);
        Cell& cell = known.emplace_back();
        cell.key = key;
        cell.unit = "seconds";
        cell.status = CellStatus::published;
        cell.reason = "from " + source;
        cell.min = cell.p50 = cell.p99 = cell.max = point.seconds;
      }
    }
  }
  profile.cells.insert(profile.cells.end(), known.begin(), known.end());
  std::ranges::sort(profile.cells, {}, &Cell::key);
}

/// Between two proxies, or two workers: the ways of the plan's rings.
std::vector<Flow> ring_flows(const Plan& plan) {
  std::vector<Flow> flows;
  const auto add = [&](std::int64_t from, std::int64_t to) {
    if (from >= 0 && to >= 0 && from != to &&
        plan.ranks[static_cast<std::size_t>(from)].worker ==
            plan.ranks[static_cast<std::size_t>(to)].worker) {
      flows.push_back({static_cast<int>(from), static_cast<int>(to)});
    }
  };
  for (const SumTree& tree : plan.trees) {
    for (std::size_t r = 0; r < tree.up.size(); ++r) {
      add(static_cast<std::int64_t>(r), tree.up[r]);
      add(tree.down[r], static_cast<std::int64_t>(r));
    }
  }
  return flows;
}

/// All clients' ways to all proxies; of the rings' those that the profile knows at the same sizes.
ClientFlows flows_of(const Plan& plan, const Profile& profile, const std::string& transport) {
  std::vector<int> clients, proxies;
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    // A device that no tensor goes to may be the better one after a change.
    (plan.ranks[r].worker ? clients : proxies).push_back(static_cast<int>(r));
  }
  ClientFlows flows = client_flows(clients, proxies);
  const std::vector<std::string> names = pair_names(profile, machines_of(plan));
  const std::vector<KnownPair> known = known_pairs(profile, names, flows.flows, transport);
  std::vector<Flow> rings = ring_flows(plan);
  std::erase_if(rings, [&](const Flow& flow) {
    CellKey key;
    key.test = k_pair_write;
    key.from = names[static_cast<std::size_t>(flow.from)];
    key.to = names[static_cast<std::size_t>(flow.to)];
    key.transport = transport;
    std::set<std::uint64_t> sizes;
    for (const Cell* cell : profile.select(key)) {
      sizes.insert(cell->key.bytes);
    }
    return std::any_of(known.begin(), known.end(), [&](const KnownPair& pair) {
      return std::any_of(pair.writes.begin(), pair.writes.end(),
                         [&](const auto& entry) { return !sizes.contains(entry.first); });
    });
  });
  add_flows(flows, rings);
  return flows;
}

/// What a person asks of a change of plan: who takes which tensors, in which pieces, and then how
/// they are summed.
std::vector<std::string> changes_between(const Plan& before, const Plan& after) {
  std::vector<std::string> lines, of_trees;
  for (const Difference& d : compare(before, after).differences) {
    if (d.group == "trees") {
      of_trees.push_back(difference_line(d));
    } else if (d.group == "routing" || d.group == "tensors" || d.where == "part_bytes" ||
               d.where == "window_parts") {
      lines.push_back(difference_line(d));
    }
  }
  lines.insert(lines.end(), of_trees.begin(), of_trees.end());
  if (lines.size() > k_most_changes) {
    const std::size_t more = lines.size() - k_most_changes;
    lines.resize(k_most_changes);
    lines.push_back(fmt::format("and {} more", more));
  }
  return lines;
}

std::string pair_text(const PairRateReport& pair) {
  return fmt::format("{} -> {}: {} instead of {}", pair.from, pair.to,
                     to_text(Bandwidth::bytes_per_s(pair.after_bytes_per_second)),
                     to_text(Bandwidth::bytes_per_s(pair.before_bytes_per_second)));
}

/// A run at one rank.
class Adapting {
public:
  Adapting(Rendezvous& rendezvous, const Plan& plan, AdaptInputs inputs, const RunOptions& options,
           const std::function<JobSchedules(const Plan&)>& schedules_of)
      : m_rendezvous(rendezvous), m_inputs(std::move(inputs)), m_options(options),
        m_schedules_of(schedules_of), m_plan(plan),
        m_request(proxy_request_of(plan, m_inputs.profile, m_inputs.roles)),
        m_names(pair_names(m_inputs.profile, machines_of(plan))),
        m_flows(flows_of(plan, m_inputs.profile, options.transport)) {
    PairProbe::Options probe;
    probe.transport = options.transport;
    probe.limit = options.limit;
    if (options.mover) {
      probe.make = [&make = options.mover](const std::string&) { return make(); };
    }
    probe.sizes = reprofile_sizes(known(), m_flows.rounds, k_pause);
    m_report.every_iterations = m_inputs.every;
    m_report.write_bytes = probe.sizes;
    m_probe.emplace(rendezvous, probe);
  }

  AdaptedResult run(const std::function<void(std::size_t, double)>& progress) {
    AdaptedResult out;
    std::vector<std::vector<double>> segments;
    const std::int64_t began_ns = monotonic_ns();
    std::size_t shown = 0; // iterations, with those to warm up
    do {
      if (m_next) {
        m_plan = std::move(*m_next);
        m_next.reset();
        m_flows = flows_of(m_plan, m_inputs.profile, m_options.transport);
      }
      JobSchedules schedules = m_schedules_of(m_plan);
      RunOptions options = m_options;
      std::optional<Carried> carried;
      if (m_plan.update) {
        carried = std::exchange(m_carried, std::nullopt);
        take_over(schedules, options, carried);
      }
      options.pause = {m_inputs.every, [this](bool go) { return pause(go); }};
      if (!segments.empty()) {
        constexpr std::uint32_t k_warm_up = 1; // the first ones over new connections are slower
        options.warm_up = k_warm_up;
        if (options.iterations && carried) { // what warms up makes steps of the same training
          *options.iterations += m_options.warm_up - k_warm_up;
        } else if (options.iterations) {
          *options.iterations -= static_cast<std::uint32_t>(m_done);
        }
        const double spent = static_cast<double>(monotonic_ns() - began_ns) * 1e-9;
        options.budget = std::max(m_options.budget - Seconds(spent), Seconds(0.1));
      }
      const std::size_t before = shown;
      JobResult result =
          run_rank(m_rendezvous, schedules, options, [&](std::size_t done, double seconds) {
            shown = before + done;
            progress(shown, seconds);
          });
      segments.push_back(iteration_seconds(result));
      if (segments.size() == 1) {
        out.first = std::move(result);
      } else {
        for (std::size_t r = 0; r < out.first.verification.size(); ++r) {
          out.first.verification[r].add(result.verification[r]);
        }
        out.first.steps = result.steps;
        out.first.parameters_digest = result.parameters_digest;
      }
    } while (m_next);
    add_measured_gains(m_report, segments);
    out.reprofiling = std::move(m_report);
    return out;
  }

private:
  /// Parameters and optimizer states go from one plan's ranks to the next one's.
  void take_over(JobSchedules& schedules, RunOptions& options,
                 const std::optional<Carried>& carried) {
    if (carried) {
      schedules.restoring = carrying(*m_saving, schedules.usual);
      options.carried = &*carried;
    }
    m_saving = with_snapshot(schedules.usual);
    options.at_end = [this](std::span<const std::span<std::byte>> views, std::uint64_t steps) {
      if (!m_next) {
        return;
      }
      m_carried = Carried{steps, {}};
      const auto self = static_cast<std::size_t>(m_rendezvous.rank());
      for (const SavedRun& run : m_saving->ranks[self].saved) {
        const std::span<std::byte> kept =
            views[run.kept.at.buffer].subspan(run.kept.at.offset, run.kept.bytes);
        m_carried->bytes.append(reinterpret_cast<const char*>(kept.data()), kept.size());
      }
    };
  }

  [[nodiscard]] std::vector<KnownPair> known() const {
    return known_pairs(m_inputs.profile, m_names, m_flows.flows, m_options.transport);
  }

  /// At every rank. Whether the running plan goes on; with another one m_next has it.
  bool pause(bool go) {
    m_done += m_inputs.every;
    // Nobody measures while others still check their sums.
    static_cast<void>(m_rendezvous.all_gather("", m_options.limit));
    std::string next;
    if (m_rendezvous.rank() == 0) {
      if (go) {
        next = measure();
      } else {
        m_probe->end();
      }
    } else {
      m_probe->serve();
    }
    next = m_rendezvous.broadcast(next, k_planning_limits * m_options.limit);
    if (!next.empty()) {
      m_next = plan_from_json(parse_json(next, "plan of rank 0"), "plan of rank 0");
    }
    return go && !m_next;
  }

  /// At rank 0: the text of a better plan, or nothing.
  std::string measure() {
    PauseReport pause;
    pause.after_iterations = m_done;
    const std::int64_t begin = monotonic_ns();
    const auto since = [](std::int64_t ns) {
      return static_cast<double>(monotonic_ns() - ns) * 1e-9;
    };
    const std::vector<KnownPair> pairs = known();
    const std::vector<PairTimes> times = m_probe->measure(pairs, m_flows.rounds);
    m_probe->end();
    pause.measuring_seconds = since(begin);
    const ProfileUpdate update = update_pairs(m_inputs.profile, pairs, times);
    for (const PairChange& c : update.pairs) {
      pause.pairs.push_back({c.from, c.to, c.bytes, c.before_bytes_per_s, c.after_bytes_per_s});
    }
    // First what costs most: a short write's time is also that of the processors.
    std::stable_sort(pause.pairs.begin(), pause.pairs.end(), [](const auto& a, const auto& b) {
      const auto moved = [](const PairRateReport& p) {
        return static_cast<double>(p.bytes) *
               std::abs(1 / p.after_bytes_per_second - 1 / p.before_bytes_per_second);
      };
      return moved(a) > moved(b);
    });
    pause.ports = update.ports;
    std::string text;
    if (update.pairs.empty()) {
      pause.verdict = "no link changed";
    } else {
      const std::int64_t planning = monotonic_ns();
      text = plan_anew(pause);
      pause.planning_seconds = since(planning);
    }
    tell(pause);
    m_report.pauses.push_back(std::move(pause));
    return text;
  }

  std::string plan_anew(PauseReport& pause) {
    const PlanInputs inputs = inputs_of(m_inputs, m_request.roles, m_plan);
    Replanned replanned;
    try {
      replanned = replan(m_plan, inputs, m_request, m_inputs.gain);
    } catch (const Error&) {
      if (!interrupted()) {
        throw;
      }
      pause.verdict = "interrupted"; // the run ends by itself, with what it measured
      return "";
    }
    pause.verdict = replanned.why;
    if (!replanned.change) {
      return "";
    }
    const Schedule next = m_schedules_of(replanned.plan).usual;
    prove(next, "the plan made anew");
    if (m_plan.update) {
      prove(carrying(*m_saving, next), "the schedule that moves the parameters to the new plan");
    }
    std::string text = canonical_text(replanned.plan);
    ReplanReport replan;
    replan.plan = link_to(fmt::format("plan after {} iterations", m_done), text);
    replan.profile = inputs.profile_link;
    replan.changes = changes_between(m_plan, replanned.plan);
    replan.running_predicted_seconds = replanned.running.mid_seconds;
    replan.predicted_seconds = replanned.plan.prediction.mid_seconds;
    pause.replan = std::move(replan);
    return text;
  }

  static void prove(const Schedule& schedule, const char* what) {
    if (const CheckResult proof = check(schedule); !proof.ok()) {
      fail(ErrorKind::internal, fmt::format("{} is wrong: {}", what, proof.faults.front()));
    }
  }

  static void tell(const PauseReport& pause) {
    const LogLevel level = pause.pairs.empty() ? LogLevel::info : LogLevel::warn;
    std::string text = fmt::format("after {} iterations: ", pause.after_iterations);
    if (!pause.pairs.empty()) {
      text += pair_text(pause.pairs.front());
      if (pause.pairs.size() > 1) {
        text += fmt::format(" (and {})", counted(pause.pairs.size() - 1, "more pair"));
      }
      text += "; ";
    }
    log(level, "{}{}", text, pause.verdict);
    for (const std::string& line :
         pause.replan ? pause.replan->changes : std::vector<std::string>()) {
      log(level, "  {}", line);
    }
  }

  Rendezvous& m_rendezvous;
  AdaptInputs m_inputs; ///< the profile follows at rank 0
  const RunOptions& m_options;
  const std::function<JobSchedules(const Plan&)>& m_schedules_of;
  Plan m_plan; ///< that runs
  ProxyRequest m_request;
  std::vector<std::string> m_names; ///< by rank, as cells of pairs have them
  ClientFlows m_flows;
  std::optional<PairProbe> m_probe;
  std::optional<Plan> m_next;
  std::optional<Schedule> m_saving; ///< of the plan that runs, where it makes optimizer steps
  std::optional<Carried> m_carried; ///< from its end to the next one's begin
  std::uint64_t m_done = 0;         ///< counted iterations at the last pause
  ReprofilingReport m_report;
};

} // namespace

AdaptInputs read_adapt_inputs(const AdaptArguments& arguments, const Plan& plan,
                              const std::string& plan_name, const std::string& transport,
                              bool plans_anew) {
  if (arguments.profile.empty() || arguments.workload.empty() ||
      plan.roles.has_value() == arguments.roles.empty()) {
    fail(ErrorKind::usage, fmt::format("--reprofile-every plans again during the run: give the "
                                       "--profile and --workload{} that the plan was made from{}",
                                       plan.roles ? ", and --roles," : "",
                                       plan.roles ? "" : "; it was made without --roles"));
  }
  if (transport != plan.transport) {
    fail(ErrorKind::usage,
         fmt::format("--reprofile-every measures the transport that the plan is for, {}; leave out "
                     "--transport {}",
                     plan.transport, transport));
  }
  AdaptInputs inputs;
  inputs.every = *arguments.every;
  if (!arguments.gain.empty()) {
    inputs.gain = parse_fraction(arguments.gain, "--reprofile-gain");
    if (!(inputs.gain < 1)) {
      fail(ErrorKind::usage, fmt::format("--reprofile-gain {}: a part of the running plan's time, "
                                         "0% to less than 100%",
                                         arguments.gain));
    }
  }
  inputs.profile = read_profile(arguments.profile);
  inputs.workload = read_workload(arguments.workload);
  check_link(plan.profile, canonical_text(inputs.profile), arguments.profile, "--profile",
             plan_name);
  check_link(plan.workload, canonical_text(inputs.workload), arguments.workload, "--workload",
             plan_name);
  if (plan.roles) {
    inputs.roles = read_roles(arguments.roles);
    check_link(*plan.roles, canonical_text(*inputs.roles), arguments.roles, "--roles", plan_name);
  }
  const ProxyRequest request = proxy_request_of(plan, inputs.profile, inputs.roles);
  add_known_writes(inputs.profile, plan, transport);
  const ClientFlows flows = flows_of(plan, inputs.profile, transport);
  static_cast<void>(
      reprofile_sizes(known_pairs(inputs.profile, pair_names(inputs.profile, machines_of(plan)),
                                  flows.flows, transport),
                      flows.rounds, k_pause));
  if (plans_anew && !same_traffic(plan, plan_proxies(inputs_of(inputs, request.roles, plan),
                                                     request.options, request.proxies))) {
    fail(ErrorKind::input,
         fmt::format("{}: this version of reckon makes another plan from its profile, workload and "
                     "options; plan again, so that only the links can change it",
                     plan_name));
  }
  return inputs;
}

AdaptedResult run_adapting(Rendezvous& rendezvous, const Plan& plan, AdaptInputs inputs,
                           const RunOptions& options,
                           const std::function<JobSchedules(const Plan&)>& schedules_of,
                           const std::function<void(std::size_t, double)>& progress) {
  return Adapting(rendezvous, plan, std::move(inputs), options, schedules_of).run(progress);
}

} // namespace reckon
