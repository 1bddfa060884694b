// SPDX-License-Identifier: Apache-2.0
#include "commands.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/log.hpp"
#include "core/progress.hpp"
#include "core/units.hpp"
#include "documents/document.hpp"
#include "present/document_text.hpp"
#include "present/numbers.hpp"
#include "present/table.hpp"
#include "strategies/inside/planner.hpp"
#include "strategies/planner.hpp"
#include "strategies/proxies/planner.hpp"
#include "strategies/strategy.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <unistd.h>

namespace reckon {
namespace {

struct PlanArguments {
  std::string profile, workload, roles, output;
  std::string workers, servers, lanes; // as texts, so that --set and --sweep go the same way
  std::string strategy = "auto", transport, part_bytes, window, cutting = "fused";
  std::string optimizer = "none", update = "auto", async_steps = "4";
  std::string reduction = "sum", gradient_bound = "1";
  bool async = false;
  std::string port_bandwidth, server_port_bandwidth;
  std::string forward, backward, order = "auto", contention, cores = "dedicated";
  bool zero_compute = false;
  bool inside = false;
  std::string machine, network = "0", service = "0", gpu_direct = "no";
  std::string proxy_bytes = "auto", tolerance = "2%", ring_directions = "auto", queues = "client",
              shards = "auto";
  std::vector<std::string> set;
  std::string sweep;
  bool json = false, explain = false, list = false;
  ColorMode color = ColorMode::automatic;
};

std::uint64_t parse_count(const std::string& text, std::string_view what) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value > 1'000'000) {
    fail(ErrorKind::usage, fmt::format("{}: '{}' is not a whole number up to 1000000", what, text));
  }
  return value;
}

/// The name that --set and --sweep use for an option -> where its text is kept.
std::string* setting(PlanArguments& a, const std::string& name) {
  const std::map<std::string, std::string*> known{
      {"n", &a.workers},
      {"workers", &a.workers},
      {"k", &a.servers},
      {"servers", &a.servers},
      {"lanes", &a.lanes},
      {"part-bytes", &a.part_bytes},
      {"window", &a.window},
      {"strategy", &a.strategy},
      {"transport", &a.transport},
      {"cutting", &a.cutting},
      {"forward", &a.forward},
      {"backward", &a.backward},
      {"order", &a.order},
      {"optimizer", &a.optimizer},
      {"update", &a.update},
      {"async-steps", &a.async_steps},
      {"reduction", &a.reduction},
      {"gradient-bound", &a.gradient_bound},
      {"machine", &a.machine},
      {"network", &a.network},
      {"service", &a.service},
      {"gpu-direct", &a.gpu_direct},
      {"proxy-bytes", &a.proxy_bytes},
      {"tolerance", &a.tolerance},
      {"ring-directions", &a.ring_directions},
      {"queues", &a.queues},
      {"shards", &a.shards},
      {"port-bandwidth", &a.port_bandwidth},
      {"server-port-bandwidth", &a.server_port_bandwidth}};
  const auto it = known.find(name);
  if (it == known.end()) {
    std::vector<std::string> names;
    for (const auto& [key, value] : known) {
      names.push_back(key);
    }
    const std::string near = did_you_mean(name, names);
    fail(ErrorKind::usage,
         near.empty() ? fmt::format("'{}' cannot be set; one of {}", name, fmt::join(names, ", "))
                      : fmt::format("'{}' cannot be set; did you mean '{}'?", name, near));
  }
  return it->second;
}

std::pair<std::string, std::string> split_assignment(const std::string& text,
                                                     std::string_view flag) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    fail(ErrorKind::usage, fmt::format("{} '{}': write name=value, e.g. k=4", flag, text));
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

/// "0..8", "0..8..2" or "1,2,4".
std::vector<std::string> sweep_values(const std::string& text) {
  std::vector<std::string> values;
  if (const std::size_t dots = text.find(".."); dots != std::string::npos) {
    const std::size_t second = text.find("..", dots + 2);
    const std::uint64_t first = parse_count(text.substr(0, dots), "--sweep");
    const std::uint64_t last = parse_count(
        text.substr(dots + 2, second == std::string::npos ? second : second - dots - 2), "--sweep");
    const std::uint64_t step =
        second == std::string::npos ? 1 : parse_count(text.substr(second + 2), "--sweep");
    if (step == 0 || last < first || (last - first) / step > 10'000) {
      fail(
          ErrorKind::usage,
          fmt::format("--sweep {}: must rise, by a step above 0, over at most 10000 values", text));
    }
    for (std::uint64_t v = first; v <= last; v += step) {
      values.push_back(std::to_string(v));
    }
    return values;
  }
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    values.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return values;
}

FixedPointRequest fixed_point_of(const PlanArguments& a) {
  FixedPointRequest request;
  constexpr std::string_view k_prefix = "fixed:";
  const std::uint64_t bits = a.reduction.starts_with(k_prefix)
                                 ? parse_count(a.reduction.substr(k_prefix.size()), "--reduction")
                                 : 0;
  if (bits < 2 || bits > 32) {
    fail(ErrorKind::usage,
         fmt::format("--reduction {}: use sum, or fixed:BITS with 2 to 32 bits", a.reduction));
  }
  request.bits = static_cast<int>(bits);
  const char* const end = a.gradient_bound.data() + a.gradient_bound.size();
  const auto [stop, error] = std::from_chars(a.gradient_bound.data(), end, request.gradient_bound);
  constexpr double k_least = 1e-30, k_most = 1e30; // what fp32 can be scaled by
  if (error != std::errc{} || stop != end || !(request.gradient_bound >= k_least) ||
      request.gradient_bound > k_most) {
    fail(ErrorKind::usage,
         fmt::format("--gradient-bound {}: use a number from 1e-30 to 1e30", a.gradient_bound));
  }
  return request;
}

PlanOptions options_of(const PlanArguments& a) {
  PlanOptions options;
  options.strategy = a.strategy;
  options.transport = a.transport;
  if (!a.part_bytes.empty() && a.part_bytes != "auto") {
    options.part_bytes = parse_bytes(a.part_bytes, "--part-bytes").count();
  }
  if (!a.window.empty() && a.window != "auto") {
    options.window_parts = parse_count(a.window, "--window");
    if (*options.window_parts == 0) {
      fail(ErrorKind::usage, "--window: at least one part must be under way");
    }
  }
  if (a.cutting != "fused" && a.cutting != "tensors") {
    fail(ErrorKind::usage, fmt::format("--cutting {}: use fused or tensors", a.cutting));
  }
  options.cutting = a.cutting == "fused" ? Cutting::fused : Cutting::tensors;
  if (!a.forward.empty()) {
    options.forward_seconds = parse_seconds(a.forward, "--forward").count();
  }
  if (!a.backward.empty()) {
    options.backward_seconds = parse_seconds(a.backward, "--backward").count();
  }
  options.zero_compute = a.zero_compute;
  if (a.order != "auto" && a.order != "gradient" && a.order != "priority") {
    fail(ErrorKind::usage, fmt::format("--order {}: use auto, gradient or priority", a.order));
  }
  options.order = a.order == "gradient"   ? Order::gradient
                  : a.order == "priority" ? Order::priority
                                          : Order::automatic;
  if (a.cores != "dedicated" && a.cores != "shared") {
    fail(ErrorKind::usage, fmt::format("--cores {}: use dedicated or shared", a.cores));
  }
  if (!a.contention.empty()) {
    options.contention = ContentionRequest{a.contention, a.cores == "dedicated"};
  } else if (a.cores == "shared") {
    fail(ErrorKind::usage, "--cores: says where the computation of --contention works; give both");
  }
  if (a.optimizer != "none") {
    options.optimizer = optimizer_named(a.optimizer);
    if (!options.optimizer) {
      fail(ErrorKind::usage,
           fmt::format("--optimizer {}: use none, sgd, momentum, rmsprop or adam", a.optimizer));
    }
  }
  if (a.async) {
    if (a.optimizer == "none") {
      options.optimizer = Optimizer::sgd;
    }
    options.async_steps = parse_count(a.async_steps, "--async-steps");
    if (*options.async_steps < 1 || *options.async_steps > 1000) {
      fail(ErrorKind::usage, "--async-steps: 1 to 1000");
    }
  }
  const PlanArguments defaults;
  if (!a.async && a.async_steps != defaults.async_steps) {
    fail(ErrorKind::usage, "--async-steps counts the steps of --async: give --async");
  }
  if (a.reduction == "sum" && a.gradient_bound != defaults.gradient_bound) {
    fail(ErrorKind::usage, "--gradient-bound is for whole numbers: give --reduction fixed:BITS");
  }
  if (a.reduction != "sum") {
    options.fixed_point = fixed_point_of(a);
  }
  if (a.update != "auto") {
    if (a.update != "server" && a.update != "worker") {
      fail(ErrorKind::usage, fmt::format("--update {}: use auto, server or worker", a.update));
    }
    if (!options.optimizer) {
      fail(ErrorKind::usage, "--update says where the optimizer's step is made: give --optimizer");
    }
    options.update_at = a.update == "server" ? UpdatePlace::server : UpdatePlace::worker;
  }
  if (!a.port_bandwidth.empty()) {
    options.what_if.worker_port_bytes_per_s =
        parse_bandwidth(a.port_bandwidth, "--port-bandwidth").as_bytes_per_s();
  }
  if (!a.server_port_bandwidth.empty()) {
    if (a.port_bandwidth.empty()) {
      fail(ErrorKind::usage, "--server-port-bandwidth needs --port-bandwidth");
    }
    options.what_if.server_port_bytes_per_s =
        parse_bandwidth(a.server_port_bandwidth, "--server-port-bandwidth").as_bytes_per_s();
  }
  return options;
}

double parse_gradients(const std::string& text, std::string_view flag) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !(value >= 0) || value > 1e6) {
    fail(ErrorKind::usage,
         fmt::format("{} '{}': say how many gradients pass in an iteration, e.g. 1", flag, text));
  }
  return value;
}

InsidePlanOptions inside_options_of(const PlanArguments& a, const std::optional<Roles>& roles) {
  const PlanArguments plain;
  const auto refuse = [](bool given, const char* option, const char* instead) {
    if (given) {
      fail(ErrorKind::usage, fmt::format("{} with --inside: {}", option, instead));
    }
  };
  const char* const roles_instead =
      "leave out --workers and --servers; a file for --roles names GPUs and NUMA nodes";
  refuse(!a.workers.empty(), "--workers", roles_instead);
  refuse(!a.servers.empty(), "--servers", roles_instead);
  refuse(a.strategy != plain.strategy, "--strategy",
         "all schemes are solved at once; --roles limits who may sum");
  const char* const sums_instead = "such a plan ends with the sums; plan without --inside, with "
                                   "--workers and --servers, to have more in it";
  refuse(!a.forward.empty() || !a.backward.empty() || a.order != plain.order,
         "--forward, --backward or --order", sums_instead);
  refuse(!a.contention.empty(), "--contention", sums_instead);
  refuse(a.optimizer != plain.optimizer || a.update != plain.update, "--optimizer", sums_instead);
  refuse(a.async, "--async",
         "no rank of a tree keeps the latest parameters; plan without --inside, "
         "with --workers and --servers");
  refuse(a.reduction != plain.reduction, "--reduction", sums_instead);
  refuse(
      !a.port_bandwidth.empty(), "--port-bandwidth",
      "the NICs' rates are the profile's (port_bandwidth cells); --network says what passes them");
  const PlanOptions common = options_of(a);
  InsidePlanOptions options;
  options.machine = a.machine;
  options.transport = a.transport;
  options.part_bytes = common.part_bytes;
  options.window_parts = common.window_parts;
  options.cutting = common.cutting;
  options.inside.network = parse_gradients(a.network, "--network");
  options.inside.service = parse_gradients(a.service, "--service");
  if (a.gpu_direct != "yes" && a.gpu_direct != "no") {
    fail(ErrorKind::usage, fmt::format("gpu-direct '{}': use yes or no", a.gpu_direct));
  }
  options.inside.gpu_direct = a.gpu_direct == "yes";
  if (!a.lanes.empty() && a.lanes != "auto") {
    options.lanes = parse_count(a.lanes, "--lanes");
    if (options.lanes < 1 || options.lanes > 1024) {
      fail(ErrorKind::usage, "--lanes: 1 to 1024");
    }
  }
  for (const RoleGroup& group : roles ? roles->groups : std::vector<RoleGroup>()) {
    if (group.endpoints.empty()) {
      fail(ErrorKind::input, fmt::format("roles '{}': a group names no endpoints; inside a machine "
                                         "each says which GPUs, NUMA nodes or memory devices it is",
                                         roles->name));
    }
    options.machine = options.machine.empty() ? group.machine : options.machine;
    if (group.machine != options.machine) {
      fail(ErrorKind::input,
           fmt::format("roles '{}': groups on {} and {}; inside a machine all are on one",
                       roles->name, options.machine, group.machine));
    }
    options.lanes = static_cast<std::uint64_t>(group.lanes);
    for (const std::string& id : group.endpoints) {
      if (group.worker) {
        options.inside.workers.push_back(id);
      } else {
        options.inside.relays = options.inside.relays.value_or(std::vector<std::string>());
        options.inside.relays->push_back(id);
      }
    }
  }
  return options;
}

ProxyOptions proxy_options_of(const PlanArguments& a) {
  ProxyOptions options;
  if (a.proxy_bytes != "auto") {
    options.proxy_bytes =
        a.proxy_bytes == "0" || a.proxy_bytes == "all"
            ? (a.proxy_bytes == "0" ? 0 : k_all_proxy_bytes)
            : static_cast<double>(parse_bytes(a.proxy_bytes, "--proxy-bytes").count());
  }
  options.tolerance = parse_fraction(a.tolerance, "--tolerance");
  if (!(options.tolerance < 1)) {
    fail(ErrorKind::usage, fmt::format("--tolerance {}: below 100%", a.tolerance));
  }
  if (a.ring_directions != "auto") {
    if (a.ring_directions != "1" && a.ring_directions != "2") {
      fail(ErrorKind::usage,
           fmt::format("--ring-directions {}: use auto, 1 or 2", a.ring_directions));
    }
    options.ring_directions = a.ring_directions == "1" ? 1 : 2;
  }
  if (a.queues != "client" && a.queues != "fcfs") {
    fail(ErrorKind::usage, fmt::format("--queues {}: use client or fcfs", a.queues));
  }
  options.one_queue = a.queues == "fcfs";
  if (a.shards != "auto" && a.shards != "paper") {
    fail(ErrorKind::usage, fmt::format("--shards {}: use auto or paper", a.shards));
  }
  options.paper_shards = a.shards == "paper";
  return options;
}

class PlanCommand {
public:
  explicit PlanCommand(const PlanArguments& arguments) : m_arguments(arguments) {
    for (const std::string& text : m_arguments.set) {
      const auto [name, value] = split_assignment(text, "--set");
      *setting(m_arguments, name) = value;
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

  int run() { return m_arguments.sweep.empty() ? plan_once() : sweep(); }

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

  [[nodiscard]] Plan make(const PlanArguments& a) const {
    if (a.inside) {
      Plan plan =
          plan_inside({m_profile, m_workload, m_profile_link, m_workload_link, m_roles_link},
                      inside_options_of(a, m_roles));
      plan.options = {{"inside", plan.ranks.front().machine},
                      {"lanes", a.lanes.empty() ? "1" : a.lanes}};
      for (const auto& [name, value] : {std::pair("network", a.network), {"service", a.service}}) {
        if (value != "0") {
          plan.options[name] = value;
        }
      }
      if (a.gpu_direct == "yes") {
        plan.options["gpu_direct"] = "yes";
      }
      return plan;
    }
    if (a.network != "0" || a.service != "0" || a.gpu_direct != "no" || !a.machine.empty()) {
      fail(ErrorKind::usage, "--network, --service, --gpu-direct and --machine need --inside");
    }
    const Roles roles = roles_for(a);
    PlanOptions options = options_of(a);
    Progress progress;
    options.progress = [&](std::string_view step, double done) {
      progress.show(done, fmt::format("planning: {}", step));
    };
    if (is_proxy_strategy(a.strategy)) {
      if (options.contention) {
        fail(ErrorKind::usage, fmt::format("--contention with --strategy {}: such plans are "
                                           "predicted without it",
                                           a.strategy));
      }
      return plan_proxies(
          {m_profile, m_workload, roles, m_profile_link, m_workload_link, m_roles_link}, options,
          proxy_options_of(a));
    }
    const PlanArguments plain;
    if (a.proxy_bytes != plain.proxy_bytes || a.tolerance != plain.tolerance ||
        a.ring_directions != plain.ring_directions || a.queues != plain.queues ||
        a.shards != plain.shards) {
      fail(ErrorKind::usage, "--proxy-bytes, --tolerance, --shards, --ring-directions and "
                             "--queues need --strategy coarse or dense");
    }
    return make_plan({m_profile, m_workload, roles, m_profile_link, m_workload_link, m_roles_link},
                     options);
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

  int sweep() {
    const auto [name, text] = split_assignment(m_arguments.sweep, "--sweep");
    if (!m_arguments.output.empty()) {
      fail(ErrorKind::usage,
           "--sweep compares many plans and writes none: leave out -o, or use --json");
    }
    if (m_arguments.explain) {
      fail(ErrorKind::usage, "--sweep has a line for each plan: leave out --explain, or --set one");
    }
    Json rows = Json::array();
    Table table;
    table.column(name, Align::right)
        .column("strategy")
        .column("part", Align::right)
        .column("bound", Align::right);
    table.column("predicted", Align::right).column("binds", Align::left, true);
    std::size_t planned = 0;
    std::optional<Error> why_not;
    for (const std::string& value : sweep_values(text)) {
      PlanArguments a = m_arguments;
      *setting(a, name) = value;
      std::optional<Plan> made;
      try {
        made = make(a);
      } catch (const Error& e) { // what the other values give is still worth knowing
        if (e.kind() != ErrorKind::input) {
          throw;
        }
        why_not = e;
        rows.push_back(Json{{name, value}, {"error", e.what()}});
        table.row({value, "-", "-", "-", "-", e.what()});
        continue;
      }
      ++planned;
      const Plan& plan = *made;
      Json row{{name, value},
               {"strategy", plan.strategy},
               {"part_bytes", plan.part_bytes},
               {"bound_seconds", plan.prediction.bound_seconds},
               {"lo_seconds", plan.prediction.lo_seconds},
               {"mid_seconds", plan.prediction.mid_seconds},
               {"hi_seconds", plan.prediction.hi_seconds},
               {"assignment_gap", plan.assignment_gap},
               {"bound_by", plan.prediction.bound_by}};
      Json candidates = Json::object();
      for (const Candidate& c : plan.candidates) {
        candidates[c.strategy] = c.prediction ? Json(c.prediction->mid_seconds) : Json(nullptr);
      }
      row["candidates_mid_seconds"] = candidates;
      rows.push_back(row);
      table.row({value, plan.strategy, to_text(Bytes(plan.part_bytes)),
                 to_text(Seconds(plan.prediction.bound_seconds)),
                 to_text(Seconds(plan.prediction.mid_seconds)), plan.prediction.bound_by});
    }
    if (planned == 0 && why_not) {
      throw *why_not;
    }
    if (m_arguments.json) {
      write_file("-", canonical(rows));
      return k_exit_ok;
    }
    write_file("-", table.text(style_for(m_arguments.color, STDOUT_FILENO)));
    return k_exit_ok;
  }

  PlanArguments m_arguments;
  Profile m_profile;
  Workload m_workload;
  std::optional<Roles> m_roles;
  DocumentLink m_profile_link, m_workload_link;
  std::optional<DocumentLink> m_roles_link;
};

} // namespace

Command add_plan_command(CLI::App& app) {
  auto a = std::make_shared<PlanArguments>();
  CLI::App* command = app.add_subcommand(
      "plan", "Solve how a model's gradients should travel on a profiled machine");
  command->add_option("-p,--profile", a->profile,
                      "What `reckon probe` wrote, or a shipped profile's name");
  command->add_option(
      "-m,--workload", a->workload,
      "A workload (JSON, or CSV with the columns name,elements,dtype), or a shipped "
      "model's name (--list)");
  command->add_option("-r,--roles", a->roles, "Which machines work and which serve");
  command->add_option("-o,--output", a->output, "Write the plan to this file");
  command->add_option(
      "--workers", a->workers,
      "Ranks with gradients. Default: the processors of one machine, or all machines");
  command->add_option("--servers", a->servers,
                      "Ranks that only sum. Default: none in a measured cluster, else the "
                      "profile's second group of machines");
  command->add_option(
      "--lanes", a->lanes,
      "Threads a rank, each with its own endpoint. Default: as many as the summation and the "
      "machines' network ports need");
  command
      ->add_option("--strategy", a->strategy,
                   fmt::format("auto, or one of {}, or over memory devices: coarse, dense",
                               fmt::join(strategy_names(), ", ")))
      ->capture_default_str();
  command->add_option("--transport", a->transport,
                      "Plan for this transport. Default: the fastest in the profile");
  command->add_option("--part-bytes", a->part_bytes,
                      "Largest part, e.g. 4MiB. Default: by the predicted time");
  command->add_option("--window", a->window,
                      "Parts of a worker under way in each lane: its credit. Default: solved");
  command
      ->add_option("--cutting", a->cutting,
                   "fused: neighbouring tensors share equal parts; tensors: each tensor by itself")
      ->capture_default_str();
  command->add_option("--forward", a->forward,
                      "Play a forward pass of this time, so that only exposed traffic counts. "
                      "Default: the workload's");
  command->add_option("--backward", a->backward,
                      "The same for the backward pass, which makes the gradients layer by layer");
  command->add_flag("--inside", a->inside,
                    "Sum inside one machine: the best mix of ways over its measured links, between "
                    "its GPUs, or its NUMA nodes where it has no GPU");
  command->add_option("--machine", a->machine,
                      "With --inside: which. Default: the profile's first");
  command
      ->add_option("--network", a->network,
                   "With --inside: gradients that the NICs send, and receive, in an iteration; 1 "
                   "where other machines sum as well")
      ->capture_default_str();
  command
      ->add_option("--service", a->service,
                   "With --inside: gradients that a summation service on this machine receives")
      ->capture_default_str();
  command->add_flag_callback(
      "--gpu-direct", [a] { a->gpu_direct = "yes"; },
      "With --inside: a NIC may read a GPU's memory under the same switch");
  command
      ->add_option("--proxy-bytes", a->proxy_bytes,
                   "With --strategy coarse: gradient that goes through the proxies, the rest round "
                   "the workers' own ring: a size, all, or auto: by the predicted time")
      ->capture_default_str();
  command
      ->add_option("--tolerance", a->tolerance,
                   "With --strategy coarse: how far below the full bandwidth a shard may stay")
      ->capture_default_str();
  command
      ->add_option("--ring-directions", a->ring_directions,
                   "With --strategy coarse: 2 lets neighbouring rings of the proxies run opposite "
                   "ways; auto: by the predicted time")
      ->capture_default_str();
  command
      ->add_option("--shards", a->shards,
                   "With --strategy coarse: paper: tensors are cut into shards of S'; auto: of S' "
                   "or less, by the predicted time")
      ->capture_default_str();
  command
      ->add_option("--queues", a->queues,
                   "With --strategy coarse: client: proxies work off a queue for each client at "
                   "once; fcfs: one queue, first come, first served, to show that it deadlocks")
      ->capture_default_str();
  command->add_flag("--zero-compute", a->zero_compute,
                    "Nothing is computed, whatever the workload says: all traffic counts");
  command
      ->add_option(
          "--order", a->order,
          "gradient: parts go as the backward pass makes them; priority: first what the next "
          "forward pass needs first; auto: what leaves less exposed")
      ->capture_default_str();
  command
      ->add_option("--contention", a->contention,
                   "Predict that passes and traffic slow each other as the profile has it for this "
                   "computation, e.g. gemm_256")
      ->type_name("WORK");
  command
      ->add_option("--cores", a->cores,
                   "With --contention: lanes and computation have processors of their own "
                   "(dedicated), or all processors together (shared)")
      ->capture_default_str();
  command
      ->add_option("--optimizer", a->optimizer,
                   "Make this step part of the plan: none, sgd, momentum, rmsprop or adam")
      ->capture_default_str();
  command
      ->add_option("--update", a->update,
                   "Where the step is made: server, worker, or auto: by the predicted time")
      ->capture_default_str();
  command->add_flag("--async", a->async,
                    "No worker waits for another: servers keep the latest parameters (SGD)");
  command
      ->add_option("--async-steps", a->async_steps,
                   "With --async: steps of each worker in one iteration of a run")
      ->capture_default_str();
  command
      ->add_option("--reduction", a->reduction,
                   "sum, or fixed:BITS: as whole numbers whose sums fit in BITS, as in switches")
      ->capture_default_str();
  command
      ->add_option("--gradient-bound", a->gradient_bound,
                   "With --reduction fixed: magnitude that no gradient exceeds")
      ->capture_default_str();
  command->add_option("--port-bandwidth", a->port_bandwidth,
                      "What if every rank had a port of its own, e.g. 100Gb/s");
  command->add_option("--server-port-bandwidth", a->server_port_bandwidth,
                      "The same for ranks that only serve");
  command->add_option("--set", a->set,
                      "Any of these settings as name=value: k=4, gpu-direct=yes, ...");
  command->add_option("--sweep", a->sweep,
                      "Plan for many values of one setting: k=0..8, part-bytes=64KiB,1MiB");
  command->add_flag("--explain", a->explain,
                    "Each equation with its numbers, what binds and what would relieve it");
  command->add_flag("--json", a->json, "Print the plan (or the sweep) as JSON");
  command->add_flag("-l,--list", a->list, "List the shipped workloads and end");
  command->add_option("--color", a->color, "auto, always or never")
      ->transform(
          CLI::CheckedTransformer(std::map<std::string, ColorMode>{{"auto", ColorMode::automatic},
                                                                   {"always", ColorMode::always},
                                                                   {"never", ColorMode::never}})
              .description(""))
      ->type_name("WHEN");
  return [a] {
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
    return PlanCommand(*a).run();
  };
}

} // namespace reckon
