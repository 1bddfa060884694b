// SPDX-License-Identifier: Apache-2.0
#include "core/units.hpp"
#include "present/document_text.hpp"
#include "present/numbers.hpp"
#include "present/ranges.hpp"
#include "present/report_sections.hpp"
#include "present/table.hpp"
#include "stats/speeds.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>
#include <vector>

namespace reckon {
namespace {

constexpr std::size_t k_most_ranks = 32;
/// Of the total: a stage that is predicted and measured below it is no row of its own.
constexpr double k_small_stage = 0.02;

constexpr const char* k_probe_again =
    "; too wide to judge by: probe again when the machine is quiet, or for longer (--time 180s)";

/// Red outside the tolerance, green within.
Tone tone_of(double error, double tolerance) {
  return std::abs(error) > tolerance ? Tone::bad : Tone::good;
}

std::string verification_text(const Verification& v) {
  if (v.ok) {
    const std::string rounded =
        v.max_error && v.error_bound
            ? fmt::format("; the greatest error is {:.3g}, {:.3g} and fp32's rounding are allowed",
                          *v.max_error, *v.error_bound)
        : v.wire_error ? fmt::format("; gradients in general come out within {:.2g} % of the sum "
                                     "of their magnitudes",
                                     100 * *v.wire_error)
                       : "";
    return fmt::format("{} of results checked, every element correct{}",
                       to_text(Bytes(v.checked_bytes)), rounded);
  }
  return fmt::format("wrong: {} of {} of results{}", counted(v.wrong_elements, "element"),
                     to_text(Bytes(v.checked_bytes)),
                     v.first_error.empty() ? "" : "; first: " + printable(v.first_error));
}

/// What of a rank was slow; empty: nothing.
std::string slow_text(const Report& report, std::size_t rank) {
  std::string text;
  for (const SlowPlaceReport& place :
       report.diagnosis ? report.diagnosis->places : std::vector<SlowPlaceReport>()) {
    if (std::ranges::find(place.ranks, rank) != place.ranks.end()) {
      text += text.empty() ? "" : ", ";
      text += place.delay_seconds ? fmt::format("{} later", time_text(*place.delay_seconds))
                                  : fmt::format("{} {:.2f} x", name_of(place.kind), place.factor);
    }
  }
  return text;
}

/// Whether the median is outside of the range that the profile's spread gives.
std::string miss_text(const Report& report) {
  const Prediction& p = report.prediction;
  const double at = report.p50_seconds;
  const bool below = at < p.lo_seconds;
  const bool above = at > p.hi_seconds;
  if (!report.other_links.empty() || !is_range(p.lo_seconds, p.hi_seconds) || (!below && !above)) {
    return "";
  }
  return fmt::format("; the {} is {} {} that range", report.simulation ? "simulation" : "median",
                     percent_text(std::abs(at / (below ? p.lo_seconds : p.hi_seconds) - 1)),
                     below ? "below" : "above");
}

/// The slow place, and how to go on.
std::string diagnosis_text(const Diagnosis& diagnosis, const Style& style) {
  Table table(0, "|~");
  table.row({{"slow place", diagnosis.places.empty() ? Tone::dim : Tone::bad},
             {printable(diagnosis.verdict), Tone::strong}});
  if (diagnosis.new_plan_seconds) {
    table.row({{"new plan", Tone::dim},
               fmt::format("{} predicted of a plan that knows it",
                           time_text(*diagnosis.new_plan_seconds))});
  }
  for (std::size_t i = 0; i < diagnosis.next.size(); ++i) {
    table.row({{i == 0 ? "next" : "", Tone::dim}, printable(diagnosis.next[i])});
  }
  return table.text(style) + "\n";
}

} // namespace

std::string ranks_text(const Report& report, const Style& style) {
  std::vector<std::size_t> order(report.ranks.size());
  for (std::size_t i = 0; i < order.size(); ++i) {
    order[i] = i;
  }
  const bool cut = order.size() > k_most_ranks;
  if (cut) {
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(slow_text(report, a).empty(), -report.ranks[a].total_seconds) <
             std::pair(slow_text(report, b).empty(), -report.ranks[b].total_seconds);
    });
    order.resize(k_most_ranks / 2);
  }
  const bool marked = report.diagnosis && !report.diagnosis->places.empty();
  Table table(2, marked ? ">rank|host|slow" : ">rank|host");
  table.columns(report.context.contains("sums") ? ">leaves it|>reaches it" : ">sends|>receives");
  table.columns(">total|>busy|>summing|>waiting|>for peers|>CPU");
  for (const std::size_t i : order) {
    const RankReport& r = report.ranks[i];
    std::vector<TableCell> row{fmt::format("{}", i), r.host};
    if (marked) {
      row.emplace_back(slow_text(report, i), Tone::bad);
    }
    for (const std::uint64_t bytes : {r.egress_bytes, r.ingress_bytes}) {
      row.emplace_back(to_text(Bytes(bytes)));
    }
    for (const double seconds : {r.total_seconds, r.busy_seconds, r.reduce_seconds, r.wait_seconds,
                                 r.peer_wait_seconds, r.cpu_seconds}) {
      row.emplace_back(time_text(seconds));
    }
    table.row(std::move(row));
  }
  const std::string which = cut ? fmt::format("ranks: the slowest {} of {}; --csv has all",
                                              order.size(), report.ranks.size())
                                : "ranks";
  return heading(which, style) + table.text(style);
}

namespace {

/// What a checkpoint costs, predicted beside measured.
std::string checkpoint_cost(const CheckpointsReport& c) {
  std::vector<std::string> parts;
  if (c.predicted_seconds) {
    parts.push_back(fmt::format("predicted {} more", time_text(*c.predicted_seconds)));
  }
  if (c.saving_seconds && c.usual_seconds) {
    parts.push_back(fmt::format("measured {} with one, {} without", time_text(*c.saving_seconds),
                                time_text(*c.usual_seconds)));
  } else {
    parts.emplace_back("not measured: it takes iterations with one and without");
  }
  if (c.writing_seconds) {
    parts.push_back(fmt::format("{} while one is written", time_text(*c.writing_seconds)));
  }
  return fmt::format("an iteration: {}", fmt::join(parts, ", "));
}

void add_parameters(Table& facts, const Report& report) {
  if (report.parameters) {
    const ParametersReport& p = *report.parameters;
    facts.row(
        {{"parameters", Tone::dim},
         fmt::format("{} after {} steps{}", p.digest, p.steps,
                     p.resumed_from_step ? fmt::format(", resumed after {}", *p.resumed_from_step)
                                         : "")});
  }
  if (report.checkpoints) {
    const CheckpointsReport& c = *report.checkpoints;
    const auto some = [](std::uint64_t n, const char* what) {
      return n > 0 ? fmt::format(", {} {}", n, what) : std::string();
    };
    facts.row(
        {{"checkpoints", Tone::dim},
         fmt::format("{} of {}, one every {} steps{}{}{}", c.complete, to_text(Bytes(c.bytes)),
                     c.every_steps, some(c.skipped, "skipped, the one before was not written yet"),
                     some(c.failed, "failed"),
                     c.write_seconds ? fmt::format(", on disk in {}", time_text(*c.write_seconds))
                                     : "")});
    facts.row({"", checkpoint_cost(c)});
  }
}

/// Whether a text that begins with a number of percent has at least a tenth.
bool others_matter(const std::string& percent) {
  double share = 0;
  std::from_chars(percent.data(), percent.data() + percent.size(), share);
  return share >= 10;
}

/// On which links, by what, and what was different from the plan.
void add_simulation(Table& facts, const Simulation& s) {
  const auto played = s.settings.find("ranks played");
  facts.row({{"simulated", Tone::warning},
             {fmt::format("by {} on the links of {}: {} ops, {} of them writes{}", s.engine,
                          s.profile.name, s.ops, s.flows,
                          played == s.settings.end() ? "" : "; ranks played: " + played->second),
              Tone::warning}});
  for (const std::string& scenario : s.scenarios) {
    facts.row({{"scenario", Tone::warning}, {scenario, Tone::warning}});
  }
  if (s.merged_parts > 1) {
    facts.row({{"coarsened", Tone::warning},
               {fmt::format("{} parts of the plan played as one, which may add up to {}",
                            s.merged_parts, percent_text(s.coarsening_error)),
                Tone::warning}});
  }
  constexpr std::size_t k_most_stations = 4;
  for (std::size_t i = 0; i < std::min(s.stations.size(), k_most_stations); ++i) {
    const SimulatedStation& station = s.stations[i];
    facts.row({{i == 0 ? "busiest" : "", Tone::dim},
               fmt::format("{}: {} of the time, {} at {}", station.name, percent_text(station.busy),
                           to_text(Bytes(station.bytes)),
                           to_text(Bandwidth::bytes_per_s(station.bytes_per_second)))});
  }
}

constexpr std::size_t k_most_pairs = 4;

/// The pauses in which links were measured again, and what came of them.
std::string reprofiling_text(const ReprofilingReport& reprofiling, const Style& style) {
  Table table(2, ">after|>measured in|>planned in|~what came of it");
  const auto more = [&](std::string text) { table.row({"", "", "", std::move(text)}); };
  for (const PauseReport& pause : reprofiling.pauses) {
    table.row({fmt::format("{}", pause.after_iterations), time_text(pause.measuring_seconds),
               pause.planning_seconds > 0 ? time_text(pause.planning_seconds) : "-",
               printable(pause.verdict)});
    for (const std::string& machine : pause.ports) {
      more(fmt::format("port of {} changed: all of its pairs did", machine));
    }
    for (std::size_t i = 0; i < std::min(pause.pairs.size(), k_most_pairs); ++i) {
      const PairRateReport& pair = pause.pairs[i];
      more(fmt::format("{} -> {}: {} instead of {}, writes of {}", pair.from, pair.to,
                       to_text(Bandwidth::bytes_per_s(pair.after_bytes_per_second)),
                       to_text(Bandwidth::bytes_per_s(pair.before_bytes_per_second)),
                       to_text(Bytes(pair.bytes))));
    }
    if (pause.pairs.size() > k_most_pairs) {
      more(fmt::format("and {}", counted(pause.pairs.size() - k_most_pairs, "more pair")));
    }
    if (!pause.replan) {
      continue;
    }
    const ReplanReport& replan = *pause.replan;
    for (const std::string& line : replan.changes) {
      more(printable(line));
    }
    if (replan.before_seconds && replan.after_seconds && replan.gain) {
      more(fmt::format("measured {} before, {} after: {} {}", time_text(*replan.before_seconds),
                       time_text(*replan.after_seconds), percent_text(std::abs(*replan.gain)),
                       *replan.gain < 0 ? "more" : "less"));
    }
  }
  return heading(
             fmt::format("links measured again every {} iterations", reprofiling.every_iterations),
             style) +
         table.text(style);
}

/// The bound, and how much of it was reached. Passes that computed may have taken clearly less than
/// the plan counts on.
std::string bound_text(const Report& report) {
  const Prediction& p = report.prediction;
  if (p.bound_seconds <= 0) {
    return "none: " + (p.bound_by.empty() ? "nothing has to move" : p.bound_by);
  }
  constexpr double k_clearly = 0.99;
  const bool shorter = std::ranges::any_of(report.stages, [](const StageReport& s) {
    return s.name == "passes" &&
           s.measured_seconds.value_or(s.predicted_seconds) < k_clearly * s.predicted_seconds;
  });
  const std::string bound = fmt::format("{}, {}; goodput is {} of {}", time_text(p.bound_seconds),
                                        p.bound_by, percent_text(report.goodput_over_bound),
                                        shorter ? "that with passes as short as they were" : "it");
  if (report.goodput_over_bound <= 1.01) {
    return bound;
  }
  // A bound is of the plan's machines and transport: on others, beating it says nothing.
  return bound + (report.emulation || report.simulation || !report.other_links.empty()
                      ? ": faster than the bound, which holds for what was planned"
                      : ": faster than the bound, so the profile is stale");
}

} // namespace

TableCell verdict_of(const Report& report) {
  if (report.prediction.mid_seconds <= 0 && report.within_tolerance && report.as_planned()) {
    return "none: nothing had to move";
  }
  if (report.emulation && !report.other_links.empty()) {
    return fmt::format("none: {}; emulate slower ones, or play the plan on them: `reckon simulate`",
                       report.other_links);
  }
  if (report.as_planned()) {
    return {fmt::format("{} the tolerance of {}{}", report.within_tolerance ? "within" : "outside",
                        percent_text(report.tolerance),
                        report.within_tolerance && report.error > report.tolerance
                            ? ", but for what merging parts may have added"
                            : ""),
            report.within_tolerance ? Tone::good : Tone::bad};
  }
  return report.other_links.empty()
             ? "none: the links or ranks are others than the plan's"
             : fmt::format("none: the plan was made for other links ({}); plan from a profile "
                           "of this machine (`reckon probe`), or emulate the plan's links "
                           "(--inject PROFILE)",
                           report.other_links);
}

std::string report_table(const Report& report, const Style& style) {
  Table table(0, report.simulation ? "|>predicted|>simulated|>error|~cause"
                                   : "|>predicted|>measured|>error|~cause");
  const bool same = report.other_links.empty();
  const double predicted = report.prediction.mid_seconds, measured = report.p50_seconds;
  table.row({{"total", Tone::strong},
             {time_text(predicted), Tone::strong},
             {time_text(measured), Tone::strong},
             {same && predicted > 0 ? change_text(report.error) : "",
              tone_of(report.error, report.tolerance)},
             report.cause});
  const auto counts = [](double part, double whole) { return part >= k_small_stage * whole; };
  std::vector<std::string> small;
  double small_predicted = 0, small_measured = 0;
  for (const StageReport& s : report.stages) {
    const bool planned = predicted > 0 && counts(s.predicted_seconds, predicted);
    if (s.name == "total") {
      continue;
    }
    if (!planned && !counts(s.measured_seconds.value_or(0), measured)) {
      small.push_back(s.name);
      small_predicted += s.predicted_seconds;
      small_measured += s.measured_seconds.value_or(0);
      continue;
    }
    table.row({s.name,
               time_text(s.predicted_seconds),
               s.measured_seconds ? time_text(*s.measured_seconds) : "-",
               s.measured_seconds && planned && same
                   ? change_text(*s.measured_seconds / s.predicted_seconds - 1)
                   : "",
               {s.how, Tone::dim}});
  }
  if (!small.empty()) {
    table.row({"other",
               time_text(small_predicted),
               time_text(small_measured),
               "",
               {fmt::format("{}: below {} of the total", fmt::join(small, ", "),
                            percent_text(k_small_stage)),
                Tone::dim}});
  }
  std::string out = report.diagnosis ? diagnosis_text(*report.diagnosis, style) : "";
  out += table.text(style) + "\n";
  Table facts(0, "|~");
  const Prediction& p = report.prediction;
  facts.row({{"verdict", Tone::dim}, verdict_of(report)});
  facts.row({{"predicted", Tone::dim},
             range_text(p.lo_seconds, p.hi_seconds) + miss_text(report) +
                 (p.range_is_wide() && same && !report.simulation ? k_probe_again : "")});
  if (report.simulation) {
    add_simulation(facts, *report.simulation);
  } else {
    facts.row({{"measured", Tone::dim},
               fmt::format("min {}, p50 {}, p99 {}, spread {}, {} after {} to warm up",
                           time_text(report.min_seconds), time_text(report.p50_seconds),
                           time_text(report.p99_seconds), percent_text(report.spread),
                           counted(report.iteration_seconds.size(), "iteration"),
                           report.warm_up_iterations)});
    if (const auto speeds = two_speeds(report.iteration_seconds)) {
      facts.row({{"speeds", Tone::warning},
                 {fmt::format("two: {} of the iterations took {}, the others {}",
                              percent_text(speeds->fast_share), time_text(speeds->fast_seconds),
                              time_text(speeds->slow_seconds)),
                  Tone::warning}});
    }
    const auto inside = report.context.find("inside_machines");
    facts.row({{"moved by", Tone::dim},
               inside == report.context.end() ? report.transport
                                              : fmt::format("{} inside machines, {} between them",
                                                            inside->second, report.transport)});
  }
  if (report.emulation) {
    const Emulation& e = *report.emulation;
    facts.row(
        {{"emulated", Tone::warning},
         {fmt::format("the links of {}, not this machine's{}", e.profile.name,
                      e.late_writes == 0
                          ? ""
                          : fmt::format("; {} of {} writes took longer here than there, by "
                                        "up to {}",
                                        e.late_writes, e.writes, time_text(e.worst_late_seconds))),
          Tone::warning}});
  }
  facts.row({{"bound", Tone::dim}, bound_text(report)});
  if (const auto others = report.context.find("other_programs");
      others != report.context.end() && others_matter(others->second) && !report.disturbed) {
    facts.row({{"others", Tone::warning},
               {fmt::format("other programs had {}; run again when they are done", others->second),
                Tone::warning}});
  }
  add_parameters(facts, report);
  if (!report.simulation) {
    facts.row({{"verified", Tone::dim},
               {verification_text(report.verification),
                report.verification.ok ? Tone::good : Tone::bad}});
  }
  out += facts.text(style);
  return report.reprofiling ? out + reprofiling_text(*report.reprofiling, style) : out;
}

std::string made_text(const Report& report, const Style& style) {
  Table made(2, "|~");
  const auto link = [&](const char* what, const DocumentLink& l) {
    made.row({{what, Tone::dim}, fmt::format("{} {}", l.name, short_digest(l.digest))});
  };
  link("plan", report.plan);
  link("profile", report.profile);
  link("workload", report.workload);
  if (report.emulation) {
    link("emulated links", report.emulation->profile);
  }
  if (report.simulation) {
    link("simulated links", report.simulation->profile);
    for (const auto& [name, text] : report.simulation->settings) {
      made.row({{name, Tone::dim}, text});
    }
  }
  for (const auto& [name, text] : report.context) {
    made.row({{name, Tone::dim}, text});
  }
  return made.text(style);
}

std::string render(const Report& report, const Style& style, const ShowOptions& options) {
  std::string out = toned(printable(fmt::format("{}: {} over {}", report.kind, report.strategy,
                                                report.transport)),
                          Tone::strong, style) +
                    "\n" + made_text(report, style) + "\n" + report_table(report, style);
  if (!report.ranks.empty()) {
    out += ranks_text(report, style);
  }
  if (options.samples) {
    Table table(2, "~");
    table.row({fmt::format("{}", fmt::join(report.iteration_seconds, " "))});
    out += heading("iterations, in seconds", style) + table.text(style);
  }
  return out;
}

} // namespace reckon
