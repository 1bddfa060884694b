// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"
#include "plan_options.hpp"
#include "plan_sweep.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/log.hpp"
#include "core/progress.hpp"
#include "core/shape.hpp"
#include "documents/document.hpp"
#include "present/document_text.hpp"
#include "strategies/torus/planner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <unistd.h>
#include <utility>

namespace reckon {
namespace {

class PlanCommand {
public:
  PlanCommand(Arguments& command, const PlanArguments& arguments)
      : m_command(command), m_arguments(arguments) {
    for (const std::string& text : m_arguments.set) {
      const auto [name, value] = split_assignment(text, "--set");
      set_argument(m_command, name, value);
    }
    refuse_overwriting(m_arguments.output,
                       {m_arguments.profile, m_arguments.workload, m_arguments.roles});
    m_profile = read_profile(m_arguments.profile);
    m_workload = read_workload(m_arguments.workload);
    m_profile_link = link_to(m_profile.name, canonical_text(m_profile));
    m_workload_link = link_to(m_workload.name, canonical_text(m_workload));
    if (!m_arguments.roles.empty()) {
      if (!m_arguments.workers.empty() || !m_arguments.servers.empty() ||
          !m_arguments.lanes.empty()) {
        fail(ErrorKind::usage,
             "--roles says who works and serves: leave out --workers, --servers and --lanes");
      }
      m_roles = read_roles(m_arguments.roles);
      m_roles_link = link_to(m_roles->name, canonical_text(*m_roles));
    }
  }

  int run() {
    if (m_arguments.sweep.empty()) {
      return plan_once();
    }
    return plan_sweep(m_arguments, [this](const std::string& name, const std::string& value) {
      set_argument(m_command, name, value);
      return make(m_arguments);
    });
  }

private:
  [[nodiscard]] Roles roles_for(const PlanArguments& a) const {
    if (m_roles) {
      return *m_roles;
    }
    if (m_profile.machines.empty()) {
      fail(ErrorKind::input, fmt::format("{}: the profile has no machines", m_arguments.profile));
    }
    const MachineGroup& first = m_profile.machines.front();
    // On one machine as many ranks as processors. A measured cluster: all of it works unless said
    // otherwise; of one that was written down, the second group serves.
    const bool measured = has_named_machines(m_profile);
    std::uint64_t all = 0;
    for (const MachineGroup& m : m_profile.machines) {
      all += m.count;
    }
    const std::uint64_t asked_servers = a.servers.empty() ? 0 : parse_count(a.servers, "--servers");
    const std::uint64_t workers = !a.workers.empty() ? parse_count(a.workers, "--workers")
                                  : measured         ? all - std::min(all, asked_servers)
                                  : first.count > 1  ? first.count
                                                     : std::max<std::uint64_t>(2, first.cores);
    const std::uint64_t servers = !a.servers.empty() || measured  ? asked_servers
                                  : m_profile.machines.size() > 1 ? m_profile.machines[1].count
                                                                  : 0;
    const std::uint64_t lanes =
        a.lanes.empty() || a.lanes == "auto" ? 0 : parse_count(a.lanes, "--lanes");
    if (lanes > 1024) {
      fail(ErrorKind::usage, "--lanes: at most 1024");
    }
    return default_roles(m_profile, workers, servers, static_cast<int>(lanes));
  }

  /// As many workers as the torus has nodes, unless the roles or --workers say otherwise.
  [[nodiscard]] Roles torus_roles(PlanArguments a) const {
    const auto [local, vertical, horizontal] = parse_shape(a.shape);
    if (a.workers.empty()) {
      a.workers = std::to_string(local * vertical * horizontal);
    }
    if (a.servers.empty()) {
      a.servers = "0";
    }
    return roles_for(a);
  }

  [[nodiscard]] Plan make_inside(const PlanArguments& a) const {
    Plan plan = plan_inside({m_profile, m_workload, m_profile_link, m_workload_link, m_roles_link},
                            inside_options_of(a, m_roles));
    plan.options = {{"inside", plan.ranks.front().machine},
                    {"lanes", a.lanes.empty() ? "1" : a.lanes}};
    for (const auto& [name, value] : {std::pair("network", a.network), {"service", a.service}}) {
      if (value != "0") {
        plan.options[name] = value;
      }
    }
    if (a.gpu_direct) {
      plan.options["gpu_direct"] = "yes";
    }
    return plan;
  }

  [[nodiscard]] Plan make(const PlanArguments& a) const {
    if (a.inside) {
      return make_inside(a);
    }
    if (a.network != "0" || a.service != "0" || a.gpu_direct || !a.machine.empty()) {
      fail(ErrorKind::usage, "--network, --service, --gpu-direct and --machine need --inside");
    }
    const bool torus = is_torus_strategy(a.strategy);
    if (torus == a.shape.empty()) {
      fail(ErrorKind::usage, torus ? "--strategy torus: give --shape LxVxH, for example 4x4x4"
                                   : "--shape needs --strategy torus or torus_scatter");
    }
    const Roles roles = torus ? torus_roles(a) : roles_for(a);
    PlanOptions options = plan_options_of(a);
    Progress progress;
    options.progress = [&](std::string_view step, double done) {
      progress.show(done, fmt::format("planning: {}", step));
    };
    const PlanInputs inputs{m_profile,      m_workload,      roles,
                            m_profile_link, m_workload_link, m_roles_link};
    if (is_proxy_strategy(a.strategy)) {
      if (options.contention) {
        fail(ErrorKind::usage, fmt::format("--contention with --strategy {}: such plans are "
                                           "predicted without it",
                                           a.strategy));
      }
      return plan_proxies(inputs, options, proxy_options_of(a));
    }
    const PlanArguments plain;
    if (a.proxy_bytes != plain.proxy_bytes || a.tolerance != plain.tolerance ||
        a.ring_directions != plain.ring_directions || a.queues != plain.queues ||
        a.shards != plain.shards) {
      fail(ErrorKind::usage, "--proxy-bytes, --tolerance, --shards, --ring-directions and "
                             "--queues need --strategy coarse or dense");
    }
    return torus ? plan_torus(inputs, options, parse_shape(a.shape)) : make_plan(inputs, options);
  }

  int plan_once() {
    const Plan plan = make(m_arguments);
    for (const Quantity& quantity : plan.quantities) {
      if (quantity.name == k_unlimited_resources) {
        log(LogLevel::warn,
            "{}; the machine may be slower than predicted: `reckon probe` on it finds out",
            quantity.equation);
      }
    }
    if (plan.one_queue) {
      log(LogLevel::warn,
          "--queues fcfs: the prediction has queues that nothing blocks; `reckon run "
          "PLAN --check` says whether these can deadlock");
    }
    const std::string text = canonical_text(plan);
    if (!m_arguments.output.empty()) {
      write_file(m_arguments.output, text);
    }
    if (m_arguments.output == "-") {
      return k_exit_ok;
    }
    if (m_arguments.json) {
      write_file("-", text);
      return k_exit_ok;
    }
    const Style style = style_for(m_arguments.color, STDOUT_FILENO);
    write_file("-", m_arguments.explain ? explain(plan, style) : render(plan, style));
    return k_exit_ok;
  }

  Arguments& m_command; ///< writes into the next
  const PlanArguments& m_arguments;
  Profile m_profile;
  Workload m_workload;
  std::optional<Roles> m_roles;
  DocumentLink m_profile_link, m_workload_link;
  std::optional<DocumentLink> m_roles_link;
};

} // namespace

void add_plan_command(Arguments& program) {
  auto a = std::make_shared<PlanArguments>();
  Arguments& command =
      program.command("plan", "Solve how a model's gradients should travel on a profiled machine");
  add_plan_options(command, *a);
  command.action([a, &command] {
    if (a->list) {
      std::string text;
      for (const std::string& name : shipped_workloads()) {
        text += name + "\n";
      }
      write_file("-", text);
      return k_exit_ok;
    }
    if (a->profile.empty() || a->workload.empty()) {
      fail(ErrorKind::usage, fmt::format("--{} is missing; plan needs a profile and a workload",
                                         a->profile.empty() ? "profile" : "workload"));
    }
    return PlanCommand(command, *a).run();
  });
}

} // namespace reckon
