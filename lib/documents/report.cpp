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
  v("profile", e.profile, k_any, "The profile whose links were emulated.");
  v("writes", e.writes, k_count, "Writes of all ranks and iterations, those to warm up included.");
  v("late_writes", e.late_writes, k_count,
    "Writes that took longer on this machine than on the emulated one: at most writes.");
  v("worst_late_seconds", e.worst_late_seconds, k_non_negative,
    "How much longer the worst of them took, seconds.");
  v.check([&](const JsonView& view) { check(e, view); });
}

static void describe(Visitor& v, SimulatedStation& s) {
  v.about("simulated_station",
          "A station of the simulated network: a port, a link, what lies between two machines.");
  v("name", s.name, k_name, "What it is.");
  v("bytes", s.bytes, k_count, "Bytes of the plan that pass it in one iteration.");
  v("bytes_per_second", s.bytes_per_second, k_positive, "Rate at which it carries them.");
  v("busy", s.busy, k_non_negative, "Part of the iteration that they take there.");
}

static void describe(Visitor& v, Simulation& s) {
  v.about("simulation", "A plan that was not executed but played on a model of its links.");
  v("profile", s.profile, k_any, "The profile whose links were simulated.");
  v("engine", s.engine, k_name, "The simulation engine and its version.");
  v("settings", s.settings, k_any, "What the result depends on, as the engine calls it.");
  v("ops", s.ops, k_count, "Operations that were played.");
  v("flows", s.flows, k_count, "Writes among them.");
  v("merged_parts", s.merged_parts, k_positive_count,
    "So many of the plan's parts were played as one; 1: all of them.");
  v("coarsening_error", s.coarsening_error, k_non_negative,
    "What the merging is expected to add, as a part of the time.");
  v("scenarios", s.scenarios, k_some_text,
    "What was different from what the plan was made for, in words.");
  v("undisturbed_seconds", s.undisturbed_seconds, k_positive,
    "What the simulation takes without the scenarios; there where there are some.");
  v("stations", s.stations, k_any, "The busiest links, busiest first.");
}

static void describe(Visitor& v, MachineNow& m) {
  v.about(
      "machine_now",
      "How fast the machine was, in the mean of before and after the run: copies and sums of 1 MiB "
      "from memory, as the plan's machine_rates.");
  v("sum_bytes_per_second", m.sum_bytes_per_second, k_positive, "Of sums, now.");
  v("copy_bytes_per_second", m.copy_bytes_per_second, k_positive, "Of a copy, now.");
  v("profile_sum_bytes_per_second", m.profile_sum_bytes_per_second, k_positive,
    "Of sums, in the profile.");
  v("profile_copy_bytes_per_second", m.profile_copy_bytes_per_second, k_positive,
    "Of a copy, in the profile.");
  v("predicted_seconds", m.predicted_seconds, k_positive,
    "The plan's prediction at the rates of now.");
  v("error", m.error, k_any, "Measured over that, minus 1; dimensionless.");
}

static void describe(Visitor& v, StageReport& s) {
  v.about("stage", "Predicted beside measured for one part of the work.");
  v("name", s.name, k_snake, "A term of the prediction, or total; unique in the list.");
  v("predicted_seconds", s.predicted_seconds, k_any, "Predicted, seconds.");
  v("measured_seconds", s.measured_seconds, k_non_negative,
    "Measured, seconds; absent when this run cannot tell it apart.");
  v("how", s.how, k_any.maybe(), "How it was measured.");
}

static void describe(Visitor& v, RankReport& r) {
  v.about("rank",
          "One rank in one run: bytes of one iteration, seconds as medians over the iterations.");
  v("host", r.host, k_any, "Where it ran.");
  v("egress_bytes", r.egress_bytes, k_count, "Bytes sent to other ranks.");
  v("ingress_bytes", r.ingress_bytes, k_count, "Bytes received from other ranks.");
  v("busy_seconds", r.busy_seconds, k_non_negative, "Summing and posting, seconds.");
  v("reduce_seconds", r.reduce_seconds, k_non_negative,
    "The part of busy_seconds that was summing, seconds.");
  v("wait_seconds", r.wait_seconds, k_non_negative, "Nothing was ready, seconds.");
  v("total_seconds", r.total_seconds, k_non_negative,
    "This rank's own start to its own end, seconds.");
  v("peer_wait_seconds", r.peer_wait_seconds, k_non_negative,
    "From its own readiness until the last rank was ready too, seconds: no communication.");
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
  v("ok", r.ok, k_any, "Everything was right.");
  v("checked_bytes", r.checked_bytes, k_count, "Bytes that were compared.");
  v("wrong_elements", r.wrong_elements, k_count, "Elements that were wrong; 0 when ok.");
  v("first_error", r.first_error, k_any.maybe(),
    "\"rank 3, part 17, offset 4096: expected 12, got 9\"; absent when ok.");
  v("max_error", r.max_error, k_non_negative,
    "Of sums in fixed point: the greatest distance from the exact sum.");
  v("error_bound", r.error_bound, k_non_negative,
    "Of sums in fixed point: what equation 22 allows.");
  v.check([&](const JsonView& view) { check(r, view); });
}

static void describe(Visitor& v, ParametersReport& p) {
  v.about("parameters",
          "The parameters when the run was over. Two runs that made the same steps have the same "
          "digest, bit for bit, whether one of them was resumed or not.");
  v("digest", p.digest, k_digest, "SHA-256 of all parameters in the gradient's order.");
  v("steps", p.steps, k_count,
    "Steps of the optimizer made in the end, those before a checkpoint that was resumed from too.");
  v("resumed_from_step", p.resumed_from_step, k_count,
    "Steps of the checkpoint that the run went on from; absent when it was from the start.");
  v.check([&](const JsonView& view) { check(p, view); });
}

static void describe(Visitor& v, CheckpointsReport& c) {
  v.about("checkpoints", "What became of the checkpoints, and what they cost.",
          R"({"if": {"properties": {"failed": {"const": 0}}},
          "then": {"properties": {"first_failure": false}},
          "else": {"required": ["first_failure"]}})");
  v("every_steps", c.every_steps, k_positive_count, "Steps from one checkpoint to the next.");
  v("complete", c.complete, k_count, "Checkpoints of which every rank's part is on disk.");
  v("skipped", c.skipped, k_count,
    "Checkpoints that were due while the one before was still being written.");
  v("failed", c.failed, k_count, "Checkpoints that could not be written.");
  v("bytes", c.bytes, k_count, "Size of one, all ranks together.");
  v("predicted_seconds", c.predicted_seconds, k_non_negative,
    "Seconds that an iteration was predicted to take longer when it saves; absent when the plan "
    "does not say.");
  v("saving_seconds", c.saving_seconds, k_non_negative,
    "Median iteration among those that saved, seconds; absent when none did.");
  v("writing_seconds", c.writing_seconds, k_non_negative,
    "Median iteration among those that ran while a checkpoint was being written, seconds; absent "
    "when none did.");
  v("usual_seconds", c.usual_seconds, k_non_negative,
    "Median iteration among the others, seconds; absent when there was none.");
  v("write_seconds", c.write_seconds, k_non_negative,
    "Median time from the end of an iteration that saved until every rank's part was on disk, "
    "seconds.");
  v("first_failure", c.first_failure, k_any.maybe().with(R"({"minLength": 1})"),
    "Why the first that failed did; absent when none did.");
  v.check([&](const JsonView& view) { check(c, view); });
}

static void describe(Visitor& v, PairRateReport& p) {
  v.about("pair_rate", "Writes from one machine to another, before and now.");
  v("from", p.from, k_name, "The machine that writes.");
  v("to", p.to, k_name, "The machine that is written to.");
  v("bytes", p.bytes, k_count, "Of one write.");
  v("before_bytes_per_second", p.before_bytes_per_second, k_positive,
    "Bytes of a write / its time as the profile had it.");
  v("after_bytes_per_second", p.after_bytes_per_second, k_positive,
    "The same as measured in this pause.");
}

static void describe(Visitor& v, ReplanReport& r) {
  v.about("replan", "A plan that took the place of another one in the middle of a run.");
  v("plan", r.plan, k_any, "The new plan.");
  v("profile", r.profile, k_any,
    "The profile with what was measured, which the new plan was made from.");
  v("changes", r.changes, k_some_text, "What differs between the plans, one line each.");
  v("running_predicted_seconds", r.running_predicted_seconds, k_non_negative,
    "Predicted time of an iteration with the plan before and the new profile.");
  v("predicted_seconds", r.predicted_seconds, k_non_negative,
    "Predicted time of an iteration with the new plan.");
  v("before_seconds", r.before_seconds, k_positive,
    "Measured median of an iteration with the plan before: the later half of those since the last "
    "pause.");
  v("after_seconds", r.after_seconds, k_positive,
    "Measured median of an iteration with the new plan; absent when the run ended first.");
  v("gain", r.gain, k_any, "1 - after_seconds / before_seconds.");
  v("iteration_seconds", r.iteration_seconds, k_positive,
    "Measured seconds of the iterations with the new plan, without its warm-up.");
}

static void describe(Visitor& v, PauseReport& p) {
  v.about("pause", "A pause between two iterations in which the links were measured.");
  v("after_iterations", p.after_iterations, k_count,
    "Counted iterations of the whole run before it.");
  v("measuring_seconds", p.measuring_seconds, k_non_negative,
    "Time that measuring took, in which no iteration ran.");
  v("planning_seconds", p.planning_seconds, k_non_negative,
    "Time that planning anew took, in which no iteration ran; 0 where nothing had changed.");
  v("pairs", p.pairs, k_any,
    "Pairs whose writes take longer or shorter than the profile had it, beyond the noise.");
  v("ports", p.ports, k_name, "Machines all of whose pairs changed, so that their port did.");
  v("verdict", p.verdict, k_some_text, "What came of it, in words.");
  v("replan", p.replan, k_any,
    "The plan that took the place of the one before; absent where that went on.");
}

static void describe(Visitor& v, ReprofilingReport& r) {
  v.about("reprofiling", "What came of measuring the links in the middle of a run.");
  v("every_iterations", r.every_iterations, k_positive_count,
    "Counted iterations from one pause to the next.");
  v("write_bytes", r.write_bytes, k_count,
    "Sizes of the writes that are measured, between every client and every proxy, both ways.");
  v("pauses", r.pauses, k_any, "One entry a pause, in order.");
}

static void describe(Visitor& v, SlowPlaceReport& p) {
  v.about("slow_place", "A place that was slower than the profile says.");
  v("kind", p.kind, one_of(k_slow_kinds),
    "port: of a rank, both ways; sending, receiving: one way; pair: between two ranks; station: a "
    "link or memory of several ranks; every_port: all ports alike; processors: of a rank's sums "
    "and copies; passes: of a rank; delay: of all that leaves a rank or comes to it.");
  v("name", p.name, k_some_text, "The place in words, with its host.");
  v("ranks", p.ranks, k_count, "Ranks that it belongs to; none: all of them.");
  v("factor", p.factor, k_positive, "The part of its rate that it kept: below 1; of a delay 1.");
  v("delay_seconds", p.delay_seconds, k_positive,
    "How much longer each write took, seconds; only of a delay.");
  v("bytes_per_second", p.bytes_per_second, k_positive,
    "Its rate by the profile; absent for processors, passes and delays.");
}

static void describe(Visitor& v, Diagnosis& d) {
  v.about("diagnosis",
          "The places whose slowness explains why iterations took longer than predicted: played "
          "again with them, the plan keeps its ranks as busy as they were seen to be.");
  v("verdict", d.verdict, k_some_text, "What was found, in words.");
  v("places", d.places, k_any,
    "The slow places, that which explains most first; empty: none does.");
  v("planned_seconds", d.planned_seconds, k_non_negative,
    "The play of an iteration with all rates as the profile has them, seconds.");
  v("explained_seconds", d.explained_seconds, k_non_negative,
    "The play with the slow places, seconds.");
  v("measured_seconds", d.measured_seconds, k_non_negative,
    "The measured iteration that was looked at, one about as long as the median, seconds.");
  v("new_plan_seconds", d.new_plan_seconds, k_non_negative,
    "Predicted time of an iteration with a new plan that knows the slow places, seconds; absent "
    "where none was made.");
  v("next", d.next, k_some_text, "Commands to go on with.");
}

void describe(Visitor& v, Report& r) {
  v.about("report", "What happened when a plan was executed or simulated.",
          R"({"if": {"properties": {"kind": {"const": "simulation"}}, "required": ["kind"]},
          "then": {"required": ["simulation"]}, "else": {"properties": {"simulation": false}}})");
  v("kind", r.kind, one_of(k_report_kinds),
    "run: bytes really moved. simulation: the plan was played on a model of its links; times that "
    "are called measured are simulated, nothing was verified, and busy and CPU time are that of "
    "the ops.");
  v("plan", r.plan, k_any, "The plan that was executed.");
  v("profile", r.profile, k_any, "The profile that the plan was made from.");
  v("workload", r.workload, k_any, "The workload that the plan was made from.");
  v("context", r.context, k_any,
    "How it ran: host, transport, ranks, lanes, version, measured at, ...");
  v("strategy", r.strategy, k_snake, "The plan's strategy.");
  v("transport", r.transport, k_name, "Mover that moved the bytes.");
  v("iteration_seconds", r.iteration_seconds, k_positive.some("iteration"),
    "Every iteration but the warm-up, seconds: from when all ranks can know that all are ready to "
    "the last completion.");
  v("warm_up_iterations", r.warm_up_iterations, k_count,
    "Iterations before the first that counts.");
  v("min_seconds", r.min_seconds, k_positive, "Fastest iteration, seconds.");
  v("p50_seconds", r.p50_seconds, k_positive, "Median iteration, seconds.");
  v("p99_seconds", r.p99_seconds, k_positive, "99th percentile of the iterations, seconds.");
  v("spread", r.spread, k_non_negative, "Median absolute deviation over median, dimensionless.");
  v("prediction", r.prediction, k_any, "What was predicted.");
  v("error", r.error, k_any,
    "p50_seconds over the prediction's mid_seconds, minus 1; dimensionless.");
  v("goodput_over_bound", r.goodput_over_bound, k_non_negative,
    "The prediction's bound_seconds over p50_seconds, dimensionless; above 1 only when the profile "
    "is stale.");
  v("tolerance", r.tolerance, k_non_negative,
    "Largest error, either way, that passes; dimensionless.");
  v("within_tolerance", r.within_tolerance, k_any, "Whether the error passes.");
  v("cause", r.cause, k_any.maybe(), "Which term of the prediction missed most, and why.");
  v("other_links", r.other_links, k_any.maybe(),
    "What of the run was not as the plan predicts: another machine than the profile's, another "
    "transport, or ranks that "
    "have machines of their own shared one. The error then says nothing of the plan; absent where "
    "the links were the plan's.");
  v("machine_now", r.machine_now, k_any,
    "How fast the machine was before and after the run; where its ranks share one, and the plan "
    "says how fast it was when it was probed.");
  v("diagnosis", r.diagnosis, k_any,
    "Which place was slow; absent where iterations took no longer than predicted, and where it was "
    "not looked for.");
  v("stages", r.stages, k_any, "Predicted beside measured.");
  v("ranks", r.ranks, k_any.some("rank"), "The ranks, in the plan's order.");
  v("emulation", r.emulation, k_any,
    "The links were not those of the machine that ran it but emulated (reckon run --inject); "
    "absent: they were its own.");
  v("simulation", r.simulation, k_any,
    "How the plan was simulated; there if and only if kind is simulation.");
  v("verification", r.verification, k_any, "Whether the sums were right.");
  v("parameters", r.parameters, k_any,
    "Plans with an optimizer's step: what the parameters are in the end.");
  v("checkpoints", r.checkpoints, k_any,
    "Checkpoints that were saved while iterations went on; absent without --checkpoint.");
  v("reprofiling", r.reprofiling, k_any,
    "Links that were measured again while the run went on, and plans that followed them; absent "
    "without --reprofile-every. With it, all other figures but the verification are of the plan "
    "that the run began with.");
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
