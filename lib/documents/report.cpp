// SPDX-License-Identifier: Apache-2.0
#include "documents/report.hpp"

#include "documents/fields.hpp"
#include "documents/json.hpp"

#include <fmt/format.h>

namespace reckon {
namespace documents {
namespace {

constexpr std::array<std::string_view, 2> k_report_kinds{"run", "simulation"};
constexpr std::array<std::string_view, 9> k_slow_kinds{"port",       "sending", "receiving",
                                                       "pair",       "station", "every_port",
                                                       "processors", "passes",  "delay"};

void check(const Emulation& emulation, const JsonView& view) {
  if (emulation.late_writes > emulation.writes) {
    view.at("late_writes")
        .fail(
            fmt::format("is {}, more than the {} writes", emulation.late_writes, emulation.writes));
  }
}

void check(const Verification& v, const JsonView& view) {
  if (v.ok && (v.wrong_elements != 0 || !v.first_error.empty())) {
    view.at("ok").fail("is true, but there are wrong elements or an error");
  }
  if (!v.ok && v.wrong_elements == 0 && v.first_error.empty()) {
    view.at("ok").fail("is false, but there is no wrong element and no first_error; say why");
  }
}

void check(const ParametersReport& parameters, const JsonView& view) {
  if (parameters.resumed_from_step.value_or(0) >= parameters.steps &&
      parameters.resumed_from_step) {
    view.at("resumed_from_step")
        .fail(fmt::format("{} < steps {} must hold: a run that goes on makes at least one",
                          *parameters.resumed_from_step, parameters.steps));
  }
}

void check(const CheckpointsReport& checkpoints, const JsonView& view) {
  if ((checkpoints.failed == 0) != checkpoints.first_failure.empty()) {
    view.at("failed").fail("and first_failure go together: none failed, or it says why one did");
  }
}

void check(const Report& report, const JsonView& view) {
  if (report.min_seconds > report.p50_seconds || report.p50_seconds > report.p99_seconds) {
    view.fail(fmt::format("min_seconds {} <= p50_seconds {} <= p99_seconds {} must hold",
                          report.min_seconds, report.p50_seconds, report.p99_seconds));
  }
  if (report.diagnosis) {
    for (std::size_t p = 0; p < report.diagnosis->places.size(); ++p) {
      for (const std::uint64_t rank : report.diagnosis->places[p].ranks) {
        if (rank >= report.ranks.size()) {
          view.at("diagnosis")
              .at("places")
              .elements()[p]
              .at("ranks")
              .fail(fmt::format("rank {} < {} ranks must hold", rank, report.ranks.size()));
        }
      }
    }
  }
  Unique stages(view, "stage");
  for (std::size_t i = 0; i < report.stages.size(); ++i) {
    stages.add(report.stages[i].name, fmt::format("stages/{}/name", i));
  }
  if (report.simulation.has_value() != (report.kind == "simulation")) {
    view.at("kind").fail("is 'simulation' if and only if there is a member of that name");
  }
}

} // namespace

static void describe(Visitor& v, Emulation& e) {
  v.about("emulation", "Delays and paces as a profile's links have them.");
  v("profile", e.profile, k_any, "The profile of the emulated links.");
  v("writes", e.writes, k_count, "Writes of all ranks and iterations, with the warm-up.");
  v("late_writes", e.late_writes, k_count,
    "Writes that took longer on this machine than on the emulated one.");
  v("worst_late_seconds", e.worst_late_seconds, k_non_negative,
    "Largest additional time of a late write, seconds.");
  v.check([&](const JsonView& view) { check(e, view); });
}

static void describe(Visitor& v, SimulatedStation& s) {
  v.about("simulated_station",
          "A station of the simulated network: a port, a link, what lies between two machines.");
  v("name", s.name, k_name, "What it is.");
  v("bytes", s.bytes, k_count, "Bytes that pass in one iteration.");
  v("bytes_per_second", s.bytes_per_second, k_positive, "Rate of the link, bytes per second.");
  v("busy", s.busy, k_non_negative, "Fraction of the iteration in which the link is busy.");
}

static void describe(Visitor& v, Simulation& s) {
  v.about("simulation", "A plan that was not executed but played on a model of its links.");
  v("profile", s.profile, k_any, "The profile of the simulated links.");
  v("engine", s.engine, k_name, "The simulation engine and its version.");
  v("settings", s.settings, k_any, "Settings of the engine that the result depends on.");
  v("ops", s.ops, k_count, "Played operations.");
  v("flows", s.flows, k_count, "Writes among the operations.");
  v("merged_parts", s.merged_parts, k_positive_count,
    "Number of the plan's parts that were played as one.");
  v("coarsening_error", s.coarsening_error, k_non_negative,
    "Expected error of the merging, as a fraction of the time.");
  v("scenarios", s.scenarios, k_some_text, "Changes against the plan's conditions, in words.");
  v("undisturbed_seconds", s.undisturbed_seconds, k_positive,
    "Simulated time without the scenarios, seconds; only with scenarios.");
  v("stations", s.stations, k_any, "The busiest links, busiest first.");
}

static void describe(Visitor& v, MachineNow& m) {
  v.about("machine_now", "How fast the machine was: an iteration of the plan's rehearsal.");
  v("probed_seconds", m.probed_seconds, k_positive, "When the machine was probed, seconds.");
  v("before_seconds", m.before_seconds, k_positive, "Before the run, seconds.");
  v("after_seconds", m.after_seconds, k_positive, "After the run, seconds.");
  v("changed", m.changed, k_any.maybe(),
    "Whether it was faster, or slower, both times than ever when the machine was probed.");
  v("predicted_seconds", m.predicted_seconds, k_positive,
    "The plan's prediction at the speed meanwhile, seconds.");
  v("error", m.error, k_any, "Measured time over predicted_seconds, minus 1.");
}

static void describe(Visitor& v, StageReport& s) {
  v.about("stage", "Predicted beside measured for one part of the work.");
  v("name", s.name, k_snake, "A term of the prediction, or total; unique in the list.");
  v("predicted_seconds", s.predicted_seconds, k_any, "Predicted time, seconds.");
  v("measured_seconds", s.measured_seconds, k_non_negative,
    "Measured time, seconds; absent: this run cannot separate the stage.");
  v("how", s.how, k_any.maybe(), "Method of the measurement.");
}

static void describe(Visitor& v, RankReport& r) {
  v.about("rank",
          "One rank in one run: bytes of one iteration, seconds as medians over the iterations.");
  v("host", r.host, k_any, "Host of the rank.");
  v("egress_bytes", r.egress_bytes, k_count, "Bytes sent to other ranks.");
  v("ingress_bytes", r.ingress_bytes, k_count, "Bytes received from other ranks.");
  v("busy_seconds", r.busy_seconds, k_non_negative, "Time spent summing and posting, seconds.");
  v("reduce_seconds", r.reduce_seconds, k_non_negative, "Summing within busy_seconds, seconds.");
  v("wait_seconds", r.wait_seconds, k_non_negative, "Time with nothing ready, seconds.");
  v("total_seconds", r.total_seconds, k_non_negative,
    "Time from this rank's start to its end, seconds.");
  v("peer_wait_seconds", r.peer_wait_seconds, k_non_negative,
    "Time from its own readiness until the last rank was ready, without communication, seconds.");
  v("cpu_seconds", r.cpu_seconds, k_non_negative,
    "CPU time of the process in one iteration, user and system, seconds.");
}

static void describe(Visitor& v, Verification& r) {
  v.about("verification",
          "Whether every rank got the right sums, checked byte by byte outside of the timed part.",
          R"({"if": {"properties": {"ok": {"const": true}}},
          "then": {"properties": {"wrong_elements": {"const": 0},
          "first_error": {"maxLength": 0}}},
          "else": {"anyOf": [{"properties": {"wrong_elements": {"minimum": 1}}},
          {"required": ["first_error"], "properties": {"first_error": {"minLength": 1}}}]}})");
  v("ok", r.ok, k_any, "All sums were right.");
  v("checked_bytes", r.checked_bytes, k_count, "Compared bytes.");
  v("wrong_elements", r.wrong_elements, k_count, "Wrong elements; 0 when ok.");
  v("first_error", r.first_error, k_any.maybe(),
    "\"rank 3, part 17, offset 4096: expected 12, got 9\"; absent when ok.");
  v("max_error", r.max_error, k_non_negative,
    "Largest distance from the exact sum; only for sums in fixed point.");
  v("error_bound", r.error_bound, k_non_negative,
    "Error that equation 22 allows; only for sums in fixed point.");
  v("wire_error", r.wire_error, k_non_negative,
    "Error that equation 22a allows, as a part of the sum of magnitudes; only where gradients "
    "travel as a half type. The checked gradients are exact in it.");
  v.check([&](const JsonView& view) { check(r, view); });
}

static void describe(Visitor& v, ParametersReport& p) {
  v.about("parameters",
          "The parameters when the run was over. Two runs that made the same steps have the same "
          "digest, bit for bit, whether one of them was resumed or not.");
  v("digest", p.digest, k_digest, "SHA-256 of all parameters in the gradient's order.");
  v("steps", p.steps, k_count, "Steps of the optimizer, with those before the resumed checkpoint.");
  v("resumed_from_step", p.resumed_from_step, k_count,
    "Steps of the checkpoint that the run resumed from; absent: no checkpoint.");
  v.check([&](const JsonView& view) { check(p, view); });
}

static void describe(Visitor& v, CheckpointsReport& c) {
  v.about("checkpoints", "What became of the checkpoints, and what they cost.",
          R"({"if": {"properties": {"failed": {"const": 0}}},
          "then": {"properties": {"first_failure": false}},
          "else": {"required": ["first_failure"]}})");
  v("every_steps", c.every_steps, k_positive_count, "Steps from one checkpoint to the next.");
  v("complete", c.complete, k_count, "Checkpoints with every rank's part on disk.");
  v("skipped", c.skipped, k_count,
    "Checkpoints skipped because the one before was still being written.");
  v("failed", c.failed, k_count, "Checkpoints that could not be written.");
  v("bytes", c.bytes, k_count, "Size of one checkpoint over all ranks.");
  v("predicted_seconds", c.predicted_seconds, k_non_negative,
    "Predicted additional time of an iteration that saves, seconds; absent: not predicted.");
  v("saving_seconds", c.saving_seconds, k_non_negative,
    "Median iteration with a checkpoint, seconds; absent: no iteration saved.");
  v("writing_seconds", c.writing_seconds, k_non_negative,
    "Median iteration while a checkpoint was being written, seconds; absent: no iteration ran "
    "then.");
  v("usual_seconds", c.usual_seconds, k_non_negative,
    "Median of the other iterations, seconds; absent: there were no others.");
  v("write_seconds", c.write_seconds, k_non_negative,
    "Median time from the end of a saving iteration until every rank's part was on disk, seconds.");
  v("first_failure", c.first_failure, k_any.maybe().with(R"({"minLength": 1})"),
    "Reason of the first failure; absent: no failure.");
  v.check([&](const JsonView& view) { check(c, view); });
}

static void describe(Visitor& v, PairRateReport& p) {
  v.about("pair_rate", "Writes from one machine to another, before and now.");
  v("from", p.from, k_name, "The machine that writes.");
  v("to", p.to, k_name, "The machine that is written to.");
  v("bytes", p.bytes, k_count, "Bytes of one write.");
  v("before_bytes_per_second", p.before_bytes_per_second, k_positive,
    "Bytes of a write over its time in the profile.");
  v("after_bytes_per_second", p.after_bytes_per_second, k_positive,
    "Bytes of a write over its time in this pause.");
}

static void describe(Visitor& v, ReplanReport& r) {
  v.about("replan", "A plan that took the place of another one in the middle of a run.");
  v("plan", r.plan, k_any, "The new plan.");
  v("profile", r.profile, k_any,
    "The profile with the new measurements, from which the new plan was made.");
  v("changes", r.changes, k_some_text, "Differences between the plans, one line each.");
  v("running_predicted_seconds", r.running_predicted_seconds, k_non_negative,
    "Predicted iteration of the plan before on the new profile, seconds.");
  v("predicted_seconds", r.predicted_seconds, k_non_negative,
    "Predicted iteration of the new plan, seconds.");
  v("before_seconds", r.before_seconds, k_positive,
    "Measured median iteration of the plan before, over the later half since the last pause, "
    "seconds.");
  v("after_seconds", r.after_seconds, k_positive,
    "Measured median iteration of the new plan, seconds; absent: the run ended first.");
  v("gain", r.gain, k_any, "1 - after_seconds / before_seconds.");
  v("iteration_seconds", r.iteration_seconds, k_positive,
    "Measured iterations of the new plan without its warm-up, seconds.");
}

static void describe(Visitor& v, PauseReport& p) {
  v.about("pause", "A pause between two iterations in which the links were measured.");
  v("after_iterations", p.after_iterations, k_count,
    "Counted iterations of the whole run before it.");
  v("measuring_seconds", p.measuring_seconds, k_non_negative,
    "Time spent measuring between iterations, seconds.");
  v("planning_seconds", p.planning_seconds, k_non_negative,
    "Time spent planning between iterations, seconds; 0: nothing had changed.");
  v("pairs", p.pairs, k_any, "Pairs whose writes changed against the profile, beyond the noise.");
  v("ports", p.ports, k_name, "Machines all of whose pairs changed, so their port did.");
  v("verdict", p.verdict, k_some_text, "The decision in words.");
  v("replan", p.replan, k_any, "The plan that replaced the one before; absent: it went on.");
}

static void describe(Visitor& v, ReprofilingReport& r) {
  v.about("reprofiling", "What came of measuring the links in the middle of a run.");
  v("every_iterations", r.every_iterations, k_positive_count, "Counted iterations between pauses.");
  v("write_bytes", r.write_bytes, k_count,
    "Sizes of the measured writes between every client and every proxy, both ways.");
  v("pauses", r.pauses, k_any, "The pauses, in order.");
}

static void describe(Visitor& v, SlowPlaceReport& p) {
  v.about("slow_place", "A place that was slower than the profile says.");
  v("kind", p.kind, one_of(k_slow_kinds),
    "port: a rank's port, both ways; sending, receiving: one way; pair: two ranks; station: a link "
    "or memory of several ranks; every_port: all ports alike; processors: a rank's sums and "
    "copies; passes: a rank's passes; delay: all writes from or to a rank.");
  v("name", p.name, k_some_text, "Description of the place, with its host.");
  v("ranks", p.ranks, k_count, "Ranks of the place; empty: all ranks.");
  v("factor", p.factor, k_positive, "Fraction of the rate that was left: below 1; for a delay 1.");
  v("delay_seconds", p.delay_seconds, k_positive,
    "Additional time of each write, seconds; only for a delay.");
  v("bytes_per_second", p.bytes_per_second, k_positive,
    "Rate of the place in the profile; absent for processors, passes and delays.");
}

static void describe(Visitor& v, Diagnosis& d) {
  v.about("diagnosis",
          "The places whose slowness explains why iterations took longer than predicted: played "
          "again with them, the plan keeps its ranks as busy as they were seen to be.");
  v("verdict", d.verdict, k_some_text, "The finding in words.");
  v("places", d.places, k_any,
    "The slow places, by how much they explain; empty: no place explains the delay.");
  v("planned_seconds", d.planned_seconds, k_non_negative,
    "Played iteration with the profile's rates, seconds.");
  v("explained_seconds", d.explained_seconds, k_non_negative,
    "Played iteration with the slow places, seconds.");
  v("measured_seconds", d.measured_seconds, k_non_negative,
    "The examined iteration, about as long as the median, seconds.");
  v("new_plan_seconds", d.new_plan_seconds, k_non_negative,
    "Predicted iteration of a new plan that knows the slow places, seconds; absent: no new plan.");
  v("next", d.next, k_some_text, "Next commands.");
}

void describe(Visitor& v, Report& r) {
  v.about("report", "What happened when a plan was executed or simulated.",
          R"({"if": {"properties": {"kind": {"const": "simulation"}}, "required": ["kind"]},
          "then": {"required": ["simulation"]}, "else": {"properties": {"simulation": false}}})");
  v("kind", r.kind, one_of(k_report_kinds),
    "run: bytes moved. simulation: the plan was played on a model of its links; measured times are "
    "simulated, sums are not verified, and busy and CPU time are those of the ops.");
  v("plan", r.plan, k_any, "The executed plan.");
  v("profile", r.profile, k_any, "The profile that the plan was made from.");
  v("workload", r.workload, k_any, "The workload that the plan was made from.");
  v("context", r.context, k_any,
    "Conditions of the run: host, transport, ranks, lanes, version, measured at, ...");
  v("strategy", r.strategy, k_snake, "The plan's strategy.");
  v("transport", r.transport, k_name, "Mover that moved the bytes.");
  v("iteration_seconds", r.iteration_seconds, k_positive.some("iteration"),
    "Every iteration after the warm-up, seconds: from the moment when all ranks can know that all "
    "are ready to the last completion.");
  v("warm_up_iterations", r.warm_up_iterations, k_count,
    "Iterations before the first counted one.");
  v("min_seconds", r.min_seconds, k_positive, "Fastest iteration, seconds.");
  v("p50_seconds", r.p50_seconds, k_positive, "Median iteration, seconds.");
  v("p99_seconds", r.p99_seconds, k_positive, "99th percentile of the iterations, seconds.");
  v("spread", r.spread, k_non_negative, "Median absolute deviation over median, dimensionless.");
  v("prediction", r.prediction, k_any, "The plan's prediction.");
  v("error", r.error, k_any, "p50_seconds over the prediction's mid_seconds, minus 1.");
  v("goodput_over_bound", r.goodput_over_bound, k_non_negative,
    "The prediction's bound_seconds over p50_seconds; above 1 only with a stale profile.");
  v("tolerance", r.tolerance, k_non_negative, "Largest error that passes, in either direction.");
  v("within_tolerance", r.within_tolerance, k_any, "Whether the error passes.");
  v("cause", r.cause, k_any.maybe(),
    "The term of the prediction with the largest error, and the reason.");
  v("disturbed", r.disturbed, k_any.maybe(),
    "Whether other programs had so much of the processors that the run was late.");
  v("other_links", r.other_links, k_any.maybe(),
    "How the run's links differ from the plan's: another machine, another transport, or ranks of "
    "several machines on one. error then says nothing about the plan. Absent: the links were the "
    "plan's.");
  v("machine_now", r.machine_now, k_any,
    "Speed of the machine before and after the run; only for a plan with a rehearsal.");
  v("diagnosis", r.diagnosis, k_any,
    "The slow places; absent where iterations were as fast as predicted, or without a search.");
  v("stages", r.stages, k_any, "Predicted and measured time of each stage.");
  v("ranks", r.ranks, k_any.some("rank"), "The ranks, in the plan's order.");
  v("emulation", r.emulation, k_any, "Emulated links (reckon run --inject); absent: real links.");
  v("simulation", r.simulation, k_any,
    "The simulation; present if and only if kind is simulation.");
  v("verification", r.verification, k_any, "Check of the sums.");
  v("parameters", r.parameters, k_any,
    "Parameters after the run, of a plan with an optimizer's step.");
  v("checkpoints", r.checkpoints, k_any,
    "Checkpoints saved during the iterations; absent without --checkpoint.");
  v("reprofiling", r.reprofiling, k_any,
    "Pauses that measured links again, and the plans that followed; absent without "
    "--reprofile-every. All other figures except the verification describe the first plan.");
  v.check([&](const JsonView& view) { check(r, view); });
}

} // namespace documents

std::string_view name_of(SlowKind kind) {
  return documents::k_slow_kinds[static_cast<std::size_t>(kind)];
}

Report report_from_json(const Json& json, const std::string& file) {
  return documents::read_as<Report>("report", json, file);
}
Json to_json(const Report& report) {
  return documents::written(report, "report");
}

} // namespace reckon
