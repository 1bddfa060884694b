// SPDX-License-Identifier: Apache-2.0
#include "solve_overlap_answers.hpp"

#include "core/json.hpp"
#include "solve.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace reckon::solve_command {
namespace {

constexpr std::array<const char*, 4> k_limit_names{"network", "memory", "SMs", "bus"};
constexpr std::array<const char*, 3> k_stream_names{"computation", "aside", "communication"};
constexpr std::array<const char*, 7> k_work_names{
    "forward",          "input_gradient",    "weight_gradient", "all_reduce",
    "exchange_forward", "exchange_backward", "all_at_the_end"};

template <class Names, class Value>
const char* named(const Names& names, Value value) {
  return names[static_cast<std::size_t>(value)];
}

/// What each layer's computations waited for, in one iteration of those that repeat.
std::vector<double> waits_of(const OverlapAnswer& answer) {
  std::vector<double> waited(answer.layers.size(), 0);
  const Timeline& t = answer.timeline;
  const double iterations = (t.end_s - t.begin_s) / t.iteration_s;
  double ready_s = t.begin_s;
  for (const TimelineEvent& event : t.events) {
    if (event.stream == TimelineStream::computation && event.end_s > t.begin_s &&
        event.begin_s < t.end_s) {
      waited[event.layer] += std::max(0.0, event.begin_s - ready_s) / iterations;
      ready_s = event.end_s;
    }
  }
  if (!waited.empty()) { // what the next iteration's first layer waits for
    waited.front() += std::max(0.0, t.end_s - ready_s) / iterations;
  }
  return waited;
}

Json layers_json(const OverlapAnswer& a, const Workload& workload) {
  Json rows = Json::array();
  const std::vector<double> waited = waits_of(a);
  for (std::size_t i = 0; i < a.layers.size(); ++i) {
    const TimedLayer& l = a.layers[i];
    rows.push_back(
        {{"name", workload.layers[i].name},
         {"forward_seconds", l.forward_s},
         {"weight_gradient_seconds", l.weight_gradient_s},
         {"input_gradient_seconds", l.input_gradient_s},
         {"all_reduce_seconds", l.all_reduce ? Json(l.all_reduce->alone_s()) : Json()},
         {"all_to_all_seconds", l.exchange ? Json(l.exchange->forward.alone_s()) : Json()},
         {"waits_seconds", waited[i]}});
  }
  return rows;
}

std::string layers_text(const OverlapAnswer& a, const Workload& workload) {
  std::string text =
      fmt::format("\n{}\n{:<28} {:>10} {:>10} {:>10} {:>11} {:>10} {:>10}\n", a.configuration->name,
                  "layer", "forward", "weights", "input", "all-reduce", "all-to-all", "waits");
  const std::vector<double> waited = waits_of(a);
  for (std::size_t i = 0; i < a.layers.size(); ++i) {
    const TimedLayer& l = a.layers[i];
    text += fmt::format("{:<28} {:>10} {:>10} {:>10} {:>11} {:>10} {:>10}\n",
                        workload.layers[i].name, time_text(l.forward_s),
                        time_text(l.weight_gradient_s), time_text(l.input_gradient_s),
                        l.all_reduce ? time_text(l.all_reduce->alone_s()) : "-",
                        l.exchange ? time_text(l.exchange->forward.alone_s()) : "-",
                        waited[i] > 0 ? time_text(waited[i]) : "-");
  }
  return text;
}

std::string quoted(const std::string& text) {
  if (text.find_first_of(",\"") == text.npos) {
    return text;
  }
  std::string out = "\"";
  for (const char c : text) {
    out += c == '"' ? "\"\"" : std::string(1, c);
  }
  return out + "\"";
}

} // namespace

OverlapAnswers overlap_answers(const OverlapAsked& asked, const std::string& wanted) {
  OverlapAnswers out;
  for (const EndpointConfiguration& c : asked.endpoint.configurations) {
    const bool ideal = c.mover == EndpointMover::none;
    if (wanted != "all" && wanted != c.name && !ideal) {
      continue;
    }
    OverlapAnswer answer = predict_overlap(asked.of(c), c);
    if (ideal) {
      out.ideal_s =
          std::min(out.ideal_s.value_or(answer.timeline.iteration_s), answer.timeline.iteration_s);
    }
    if (wanted == "all" || wanted == c.name) {
      out.configurations.push_back(std::move(answer));
    }
  }
  return out;
}

Json answers_json(const OverlapAnswers& all, const OverlapAsked& asked, bool explain) {
  Json out;
  out["batch"] = asked.overlap.batch;
  out["configurations"] = Json::array();
  for (const OverlapAnswer& a : all.configurations) {
    const Timeline& t = a.timeline;
    Json row = {{"name", a.configuration->name},
                {"iteration_seconds", t.iteration_s},
                {"computation_seconds", t.computation_s},
                {"exposed_seconds", t.exposed_s},
                {"communication_seconds", t.communication_s},
                {"network_bandwidth", a.all_reduce.rate.bytes_per_s},
                {"limited_by", named(k_limit_names, a.all_reduce.rate.limit)},
                {"fill_seconds", a.all_reduce.fill_s},
                {"all_to_all_bandwidth", a.exchange.rate.bytes_per_s},
                {"gradient_bytes", a.payload_bytes},
                {"sent_bytes", a.sent_bytes}};
    if (asked.measured.all) { // else nothing is known of them
      row["flops_per_second"] = a.compute.flops_per_s;
      row["memory_bandwidth"] = a.compute.memory_bytes_per_s;
    }
    const ContentionFactors factors = asked.of(*a.configuration).contention;
    row["computation_factor"] = factors.compute;
    row["communication_factor"] = factors.communication;
    row["of_ideal"] = all.ideal_s ? Json(*all.ideal_s / t.iteration_s) : Json();
    if (explain) {
      row["layers"] = layers_json(a, asked.workload);
    }
    out["configurations"].push_back(std::move(row));
  }
  return out;
}

std::string answers_text(const OverlapAnswers& all, const OverlapAsked& asked,
                         const OverlapOptions& options) {
  const OverlapAnswer& any = all.configurations.front();
  const std::string bound =
      options.bound.empty() ? "" : fmt::format("; layers bound by {} (49)", options.bound);
  std::string text = fmt::format(
      "{} on {}, batch {}: {} of gradients, each byte sent {:.4g} times (42); {}{}\n\n",
      asked.workload.name, options.shape, asked.overlap.batch, bytes_text(any.payload_bytes),
      any.all_reduce.traffic.sent_bytes, options.policy, bound);
  text += fmt::format("{:<14} {:>12} {:>10} {:>10} {:>9}  {:>12} {}\n", "", "computation",
                      "exposed", "iteration", "of ideal", "all-reduce", "limited by");
  for (const OverlapAnswer& a : all.configurations) {
    const Timeline& t = a.timeline;
    text += fmt::format(
        "{:<14} {:>12} {:>10} {:>10} {:>9}  {:>12} {}\n", a.configuration->name,
        time_text(t.computation_s), time_text(t.exposed_s), time_text(t.iteration_s),
        all.ideal_s ? fmt::format("{:.1f} %", 100 * *all.ideal_s / t.iteration_s) : "-",
        rate_text(a.all_reduce.rate.bytes_per_s), named(k_limit_names, a.all_reduce.rate.limit));
  }
  text +=
      "\nexposed: computation waits (52); all-reduce: what a node sends while it goes on (50)\n";
  if (options.explain) {
    for (const OverlapAnswer& a : all.configurations) {
      text += layers_text(a, asked.workload);
    }
    text += "all-reduce, all-to-all: alone; waits: before its computations, in one iteration\n";
  }
  return text;
}

std::string timeline_csv(const OverlapAnswers& all, const Workload& workload) {
  std::string text = "configuration,iteration,stream,work,layer,begin_seconds,end_seconds\n";
  for (const OverlapAnswer& a : all.configurations) {
    const double zero = a.timeline.begin_s;
    for (const TimelineEvent& e : a.timeline.events) {
      text +=
          fmt::format("{},{},{},{},{},{},{}\n", quoted(a.configuration->name), e.iteration,
                      named(k_stream_names, e.stream), named(k_work_names, e.work),
                      e.work == TimelineWork::fused ? "" : quoted(workload.layers[e.layer].name),
                      e.begin_s - zero, e.end_s - zero);
    }
  }
  return text;
}

} // namespace reckon::solve_command
