// SPDX-License-Identifier: Apache-2.0
#include "documents/report.hpp"

#include "documents/fields.hpp"

#include <fmt/format.h>

namespace reckon {

using namespace documents;

namespace {

StageReport stage_from_json(const JsonView& object) {
  object.only({"name", "predicted_seconds", "measured_seconds", "how"});
  StageReport stage;
  stage.name = snake_name(object.at("name"));
  stage.predicted_seconds = object.at("predicted_seconds").number();
  if (const auto measured = object.find("measured_seconds")) {
    stage.measured_seconds = measured->non_negative();
  }
  stage.how = optional_text(object, "how");
  return stage;
}

Json json_of(const StageReport& stage) {
  Json json = {{"name", stage.name}, {"predicted_seconds", stage.predicted_seconds}};
  if (stage.measured_seconds) {
    json["measured_seconds"] = *stage.measured_seconds;
  }
  put_text(json, "how", stage.how);
  return json;
}

RankReport rank_from_json(const JsonView& object) {
  object.only({"host", "egress_bytes", "ingress_bytes", "busy_seconds", "reduce_seconds",
               "wait_seconds", "total_seconds", "peer_wait_seconds", "cpu_seconds"});
  RankReport rank;
  rank.host = object.at("host").string();
  rank.egress_bytes = object.at("egress_bytes").count();
  rank.ingress_bytes = object.at("ingress_bytes").count();
  rank.busy_seconds = object.at("busy_seconds").non_negative();
  rank.reduce_seconds = object.at("reduce_seconds").non_negative();
  rank.wait_seconds = object.at("wait_seconds").non_negative();
  rank.total_seconds = object.at("total_seconds").non_negative();
  rank.peer_wait_seconds = object.at("peer_wait_seconds").non_negative();
  rank.cpu_seconds = object.at("cpu_seconds").non_negative();
  return rank;
}

Json json_of(const RankReport& r) {
  return {{"host", r.host},
          {"egress_bytes", r.egress_bytes},
          {"ingress_bytes", r.ingress_bytes},
          {"busy_seconds", r.busy_seconds},
          {"reduce_seconds", r.reduce_seconds},
          {"wait_seconds", r.wait_seconds},
          {"total_seconds", r.total_seconds},
          {"peer_wait_seconds", r.peer_wait_seconds},
          {"cpu_seconds", r.cpu_seconds}};
}

Emulation emulation_from_json(const JsonView& object) {
  object.only({"profile", "writes", "late_writes", "worst_late_seconds"});
  Emulation emulation;
  emulation.profile = link_from_json(object.at("profile"));
  emulation.writes = object.at("writes").count();
  emulation.late_writes = object.at("late_writes").count();
  emulation.worst_late_seconds = object.at("worst_late_seconds").non_negative();
  if (emulation.late_writes > emulation.writes) {
    object.at("late_writes")
        .fail(
            fmt::format("is {}, more than the {} writes", emulation.late_writes, emulation.writes));
  }
  return emulation;
}

Simulation simulation_from_json(const JsonView& object) {
  object.only({"profile", "engine", "settings", "ops", "flows", "merged_parts", "coarsening_error",
               "scenarios", "undisturbed_seconds", "stations"});
  Simulation simulation;
  simulation.profile = link_from_json(object.at("profile"));
  simulation.engine = object.at("engine").name();
  simulation.settings = texts_from_json(object.at("settings"));
  simulation.ops = object.at("ops").count();
  simulation.flows = object.at("flows").count();
  simulation.merged_parts = object.at("merged_parts").count();
  if (simulation.merged_parts == 0) {
    object.at("merged_parts").fail("must be at least 1");
  }
  simulation.coarsening_error = object.at("coarsening_error").non_negative();
  for (const JsonView& scenario : object.at("scenarios").elements()) {
    simulation.scenarios.push_back(some_text(scenario));
  }
  if (const auto undisturbed = object.find("undisturbed_seconds")) {
    simulation.undisturbed_seconds = undisturbed->positive();
  }
  for (const JsonView& station : object.at("stations").elements()) {
    station.only({"name", "bytes", "bytes_per_second", "busy"});
    simulation.stations.push_back({station.at("name").name(), station.at("bytes").count(),
                                   station.at("bytes_per_second").positive(),
                                   station.at("busy").non_negative()});
  }
  return simulation;
}

Json json_of(const Simulation& simulation) {
  Json json = {{"profile", documents::json_of(simulation.profile)},
               {"engine", simulation.engine},
               {"settings", documents::json_of(simulation.settings)},
               {"ops", simulation.ops},
               {"flows", simulation.flows},
               {"merged_parts", simulation.merged_parts},
               {"coarsening_error", simulation.coarsening_error},
               {"scenarios", simulation.scenarios},
               {"stations", Json::array()}};
  if (simulation.undisturbed_seconds) {
    json["undisturbed_seconds"] = *simulation.undisturbed_seconds;
  }
  for (const SimulatedStation& station : simulation.stations) {
    json["stations"].push_back({{"name", station.name},
                                {"bytes", station.bytes},
                                {"bytes_per_second", station.bytes_per_second},
                                {"busy", station.busy}});
  }
  return json;
}

Verification verification_from_json(const JsonView& object) {
  object.only({"ok", "checked_bytes", "wrong_elements", "first_error", "max_error", "error_bound"});
  Verification v;
  v.ok = object.at("ok").boolean();
  v.checked_bytes = object.at("checked_bytes").count();
  v.wrong_elements = object.at("wrong_elements").count();
  v.first_error = optional_text(object, "first_error");
  if (const auto error = object.find("max_error")) {
    v.max_error = error->non_negative();
  }
  if (const auto bound = object.find("error_bound")) {
    v.error_bound = bound->non_negative();
  }
  if (v.ok && (v.wrong_elements != 0 || !v.first_error.empty())) {
    object.at("ok").fail("is true, but there are wrong elements or an error");
  }
  if (!v.ok && v.wrong_elements == 0 && v.first_error.empty()) {
    object.at("ok").fail("is false, but there is no wrong element and no first_error; say why");
  }
  return v;
}

Json json_of(const Verification& v) {
  Json json = {
      {"ok", v.ok}, {"checked_bytes", v.checked_bytes}, {"wrong_elements", v.wrong_elements}};
  if (v.max_error) {
    json["max_error"] = *v.max_error;
  }
  if (v.error_bound) {
    json["error_bound"] = *v.error_bound;
  }
  put_text(json, "first_error", v.first_error);
  return json;
}

ParametersReport parameters_from_json(const JsonView& object) {
  object.only({"digest", "steps", "resumed_from_step"});
  ParametersReport parameters;
  parameters.digest = digest_from_json(object.at("digest"));
  parameters.steps = object.at("steps").count();
  if (const auto step = object.find("resumed_from_step")) {
    parameters.resumed_from_step = step->count();
    if (*parameters.resumed_from_step >= parameters.steps) {
      step->fail(fmt::format("{} < steps {} must hold: a run that goes on makes at least one",
                             *parameters.resumed_from_step, parameters.steps));
    }
  }
  return parameters;
}

Json json_of(const ParametersReport& parameters) {
  Json json = {{"digest", parameters.digest}, {"steps", parameters.steps}};
  if (parameters.resumed_from_step) {
    json["resumed_from_step"] = *parameters.resumed_from_step;
  }
  return json;
}

/// Its members that may be absent.
constexpr std::pair<const char*, std::optional<double> CheckpointsReport::*> k_checkpoint_times[] =
    {{"predicted_seconds", &CheckpointsReport::predicted_seconds},
     {"saving_seconds", &CheckpointsReport::saving_seconds},
     {"writing_seconds", &CheckpointsReport::writing_seconds},
     {"usual_seconds", &CheckpointsReport::usual_seconds},
     {"write_seconds", &CheckpointsReport::write_seconds}};

CheckpointsReport checkpoints_from_json(const JsonView& object) {
  object.only({"every_steps", "complete", "skipped", "failed", "bytes", "predicted_seconds",
               "saving_seconds", "writing_seconds", "usual_seconds", "write_seconds",
               "first_failure"});
  CheckpointsReport checkpoints;
  checkpoints.every_steps = object.at("every_steps").count();
  if (checkpoints.every_steps == 0) {
    object.at("every_steps").fail("must be at least 1");
  }
  checkpoints.complete = object.at("complete").count();
  checkpoints.skipped = object.at("skipped").count();
  checkpoints.failed = object.at("failed").count();
  checkpoints.bytes = object.at("bytes").count();
  for (const auto& [key, member] : k_checkpoint_times) {
    if (const auto seconds = object.find(key)) {
      checkpoints.*member = seconds->non_negative();
    }
  }
  checkpoints.first_failure = optional_text(object, "first_failure");
  if ((checkpoints.failed == 0) != checkpoints.first_failure.empty()) {
    object.at("failed").fail("and first_failure go together: none failed, or it says why one did");
  }
  return checkpoints;
}

Json json_of(const CheckpointsReport& checkpoints) {
  Json json = {{"every_steps", checkpoints.every_steps},
               {"complete", checkpoints.complete},
               {"skipped", checkpoints.skipped},
               {"failed", checkpoints.failed},
               {"bytes", checkpoints.bytes}};
  for (const auto& [key, member] : k_checkpoint_times) {
    if (checkpoints.*member) {
      json[key] = *(checkpoints.*member);
    }
  }
  put_text(json, "first_failure", checkpoints.first_failure);
  return json;
}

ReplanReport replan_from_json(const JsonView& object) {
  object.only({"plan", "profile", "changes", "running_predicted_seconds", "predicted_seconds",
               "before_seconds", "after_seconds", "gain", "iteration_seconds"});
  ReplanReport replan;
  replan.plan = link_from_json(object.at("plan"));
  replan.profile = link_from_json(object.at("profile"));
  for (const JsonView& line : object.at("changes").elements()) {
    replan.changes.push_back(some_text(line));
  }
  replan.running_predicted_seconds = object.at("running_predicted_seconds").non_negative();
  replan.predicted_seconds = object.at("predicted_seconds").non_negative();
  if (const auto seconds = object.find("before_seconds")) {
    replan.before_seconds = seconds->positive();
  }
  if (const auto seconds = object.find("after_seconds")) {
    replan.after_seconds = seconds->positive();
  }
  if (const auto gain = object.find("gain")) {
    replan.gain = gain->number();
  }
  for (const JsonView& seconds : object.at("iteration_seconds").elements()) {
    replan.iteration_seconds.push_back(seconds.positive());
  }
  return replan;
}

Json json_of(const ReplanReport& replan) {
  Json json = {{"plan", documents::json_of(replan.plan)},
               {"profile", documents::json_of(replan.profile)},
               {"changes", replan.changes},
               {"running_predicted_seconds", replan.running_predicted_seconds},
               {"predicted_seconds", replan.predicted_seconds},
               {"iteration_seconds", replan.iteration_seconds}};
  for (const auto& [key, value] :
       {std::pair("before_seconds", replan.before_seconds),
        std::pair("after_seconds", replan.after_seconds), std::pair("gain", replan.gain)}) {
    if (value) {
      json[key] = *value;
    }
  }
  return json;
}

PauseReport pause_from_json(const JsonView& object) {
  object.only({"after_iterations", "measuring_seconds", "planning_seconds", "pairs", "ports",
               "verdict", "replan"});
  PauseReport pause;
  pause.after_iterations = object.at("after_iterations").count();
  pause.measuring_seconds = object.at("measuring_seconds").non_negative();
  pause.planning_seconds = object.at("planning_seconds").non_negative();
  for (const JsonView& pair : object.at("pairs").elements()) {
    pair.only({"from", "to", "bytes", "before_bytes_per_second", "after_bytes_per_second"});
    pause.pairs.push_back({pair.at("from").name(), pair.at("to").name(), pair.at("bytes").count(),
                           pair.at("before_bytes_per_second").positive(),
                           pair.at("after_bytes_per_second").positive()});
  }
  for (const JsonView& machine : object.at("ports").elements()) {
    pause.ports.push_back(machine.name());
  }
  pause.verdict = some_text(object.at("verdict"));
  if (const auto replan = object.find("replan")) {
    pause.replan = replan_from_json(*replan);
  }
  return pause;
}

Json json_of(const PauseReport& pause) {
  Json json = {{"after_iterations", pause.after_iterations},
               {"measuring_seconds", pause.measuring_seconds},
               {"planning_seconds", pause.planning_seconds},
               {"pairs", Json::array()},
               {"ports", pause.ports},
               {"verdict", pause.verdict}};
  for (const PairRateReport& pair : pause.pairs) {
    json["pairs"].push_back({{"from", pair.from},
                             {"to", pair.to},
                             {"bytes", pair.bytes},
                             {"before_bytes_per_second", pair.before_bytes_per_second},
                             {"after_bytes_per_second", pair.after_bytes_per_second}});
  }
  if (pause.replan) {
    json["replan"] = json_of(*pause.replan);
  }
  return json;
}

ReprofilingReport reprofiling_from_json(const JsonView& object) {
  object.only({"every_iterations", "write_bytes", "pauses"});
  ReprofilingReport reprofiling;
  reprofiling.every_iterations = object.at("every_iterations").count();
  if (reprofiling.every_iterations == 0) {
    object.at("every_iterations").fail("must be at least 1");
  }
  for (const JsonView& bytes : object.at("write_bytes").elements()) {
    reprofiling.write_bytes.push_back(bytes.count());
  }
  for (const JsonView& pause : object.at("pauses").elements()) {
    reprofiling.pauses.push_back(pause_from_json(pause));
  }
  return reprofiling;
}

Json json_of(const ReprofilingReport& reprofiling) {
  Json json = {{"every_iterations", reprofiling.every_iterations},
               {"write_bytes", reprofiling.write_bytes},
               {"pauses", Json::array()}};
  for (const PauseReport& pause : reprofiling.pauses) {
    json["pauses"].push_back(json_of(pause));
  }
  return json;
}

} // namespace

Report report_from_json(const Json& json, const std::string& file) {
  const JsonView view(json, file);
  check_header(view, "report");
  view.only({"schema",
             "schema_version",
             "kind",
             "plan",
             "profile",
             "workload",
             "context",
             "strategy",
             "transport",
             "iteration_seconds",
             "warm_up_iterations",
             "min_seconds",
             "p50_seconds",
             "p99_seconds",
             "spread",
             "prediction",
             "error",
             "goodput_over_bound",
             "tolerance",
             "within_tolerance",
             "cause",
             "emulation",
             "simulation",
             "stages",
             "ranks",
             "verification",
             "parameters",
             "checkpoints",
             "reprofiling"});
  Report report;
  report.kind = view.at("kind").one_of({"run", "simulation"});
  report.plan = link_from_json(view.at("plan"));
  report.profile = link_from_json(view.at("profile"));
  report.workload = link_from_json(view.at("workload"));
  report.context = texts_from_json(view.at("context"));
  report.strategy = snake_name(view.at("strategy"));
  report.transport = view.at("transport").name();
  for (const JsonView& seconds : some_elements(view.at("iteration_seconds"), "iteration")) {
    report.iteration_seconds.push_back(seconds.positive());
  }
  report.warm_up_iterations = view.at("warm_up_iterations").count();
  report.min_seconds = view.at("min_seconds").positive();
  report.p50_seconds = view.at("p50_seconds").positive();
  report.p99_seconds = view.at("p99_seconds").positive();
  if (report.min_seconds > report.p50_seconds || report.p50_seconds > report.p99_seconds) {
    view.fail(fmt::format("min_seconds {} <= p50_seconds {} <= p99_seconds {} must hold",
                          report.min_seconds, report.p50_seconds, report.p99_seconds));
  }
  report.spread = view.at("spread").non_negative();
  report.prediction = prediction_from_json(view.at("prediction"));
  report.error = view.at("error").number();
  report.goodput_over_bound = view.at("goodput_over_bound").non_negative();
  report.tolerance = view.at("tolerance").non_negative();
  report.within_tolerance = view.at("within_tolerance").boolean();
  report.cause = optional_text(view, "cause");
  if (const auto emulation = view.find("emulation")) {
    report.emulation = emulation_from_json(*emulation);
  }
  Unique stages("stage");
  for (const JsonView& stage : view.at("stages").elements()) {
    report.stages.push_back(stage_from_json(stage));
    stages.add(report.stages.back().name, stage.at("name"));
  }
  for (const JsonView& rank : some_elements(view.at("ranks"), "rank")) {
    report.ranks.push_back(rank_from_json(rank));
  }
  if (const auto simulation = view.find("simulation")) {
    report.simulation = simulation_from_json(*simulation);
  }
  if (report.simulation.has_value() != (report.kind == "simulation")) {
    view.at("kind").fail("is 'simulation' if and only if there is a member of that name");
  }
  report.verification = verification_from_json(view.at("verification"));
  if (const auto parameters = view.find("parameters")) {
    report.parameters = parameters_from_json(*parameters);
  }
  if (const auto checkpoints = view.find("checkpoints")) {
    report.checkpoints = checkpoints_from_json(*checkpoints);
  }
  if (const auto reprofiling = view.find("reprofiling")) {
    report.reprofiling = reprofiling_from_json(*reprofiling);
  }
  return report;
}

Json to_json(const Report& report) {
  Json json = with_header("report");
  json["kind"] = report.kind;
  json["plan"] = documents::json_of(report.plan);
  json["profile"] = documents::json_of(report.profile);
  json["workload"] = documents::json_of(report.workload);
  json["context"] = documents::json_of(report.context);
  json["strategy"] = report.strategy;
  json["transport"] = report.transport;
  json["iteration_seconds"] = report.iteration_seconds;
  json["warm_up_iterations"] = report.warm_up_iterations;
  json["min_seconds"] = report.min_seconds;
  json["p50_seconds"] = report.p50_seconds;
  json["p99_seconds"] = report.p99_seconds;
  json["spread"] = report.spread;
  json["prediction"] = documents::json_of(report.prediction);
  json["error"] = report.error;
  json["goodput_over_bound"] = report.goodput_over_bound;
  json["tolerance"] = report.tolerance;
  json["within_tolerance"] = report.within_tolerance;
  put_text(json, "cause", report.cause);
  if (report.emulation) {
    json["emulation"] = {{"profile", documents::json_of(report.emulation->profile)},
                         {"writes", report.emulation->writes},
                         {"late_writes", report.emulation->late_writes},
                         {"worst_late_seconds", report.emulation->worst_late_seconds}};
  }
  json["stages"] = Json::array();
  for (const StageReport& stage : report.stages) {
    json["stages"].push_back(json_of(stage));
  }
  json["ranks"] = Json::array();
  for (const RankReport& rank : report.ranks) {
    json["ranks"].push_back(json_of(rank));
  }
  if (report.simulation) {
    json["simulation"] = json_of(*report.simulation);
  }
  json["verification"] = json_of(report.verification);
  if (report.parameters) {
    json["parameters"] = json_of(*report.parameters);
  }
  if (report.checkpoints) {
    json["checkpoints"] = json_of(*report.checkpoints);
  }
  if (report.reprofiling) {
    json["reprofiling"] = json_of(*report.reprofiling);
  }
  return json;
}

} // namespace reckon
