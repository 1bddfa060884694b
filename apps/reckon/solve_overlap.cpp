// SPDX-License-Identifier: Apache-2.0
#include "solve.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/json.hpp"
#include "core/units.hpp"
#include "documents/document.hpp"
#include "strategies/endpoint/overlap.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace reckon {

using namespace solve;

namespace {

struct OverlapOptions {
  std::string workload, profile = "ace-torus", shape, configuration = "all", policy = "lifo", chunk,
                        dtype, timeline, sweep_bytes = "64MB";
  std::int64_t batch = 0;
  double compute_speed = 1, computation_factor = 1, communication_factor = 1;
  bool aside = false, explain = false, memory_sweep = false, sm_sweep = false, json = false;
};

constexpr std::array<const char*, 4> k_limit_names{"network", "memory", "SMs", "bus"};
constexpr std::array<const char*, 3> k_stream_names{"computation", "aside", "communication"};
constexpr std::array<const char*, 7> k_work_names{
    "forward",          "input_gradient",    "weight_gradient", "all_reduce",
    "exchange_forward", "exchange_backward", "all_at_the_end"};

template <class Names, class Value>
const char* named(const Names& names, Value value) {
  return names[static_cast<std::size_t>(value)];
}

Endpoint endpoint_of(const OverlapOptions& options) {
  const Profile profile = read_profile(options.profile);
  if (!profile.endpoint) {
    fail(ErrorKind::usage,
         fmt::format("--profile {}: does not say how its endpoint divides itself; add \"endpoint\" "
                     "(docs/documents.md), or take ace-torus",
                     options.profile));
  }
  return *profile.endpoint;
}

SchedulePolicy policy_of(const std::string& name) {
  constexpr std::array<const char*, 3> k_names{"lifo", "fifo", "priority"};
  const auto it = std::find(k_names.begin(), k_names.end(), name);
  if (it == k_names.end()) {
    fail(ErrorKind::usage, fmt::format("--policy '{}': must be lifo, fifo or priority", name));
  }
  return static_cast<SchedulePolicy>(it - k_names.begin());
}

/// What is asked, and what it is asked of.
struct Question {
  explicit Question(const OverlapOptions& options)
      : workload(read_workload(options.workload)), endpoint(endpoint_of(options)),
        overlap{.workload = workload,
                .endpoint = endpoint,
                .shape = shape_of(options.shape),
                .batch = 1,
                .dtype = {},
                .policy = policy_of(options.policy),
                .chunk_bytes = options.chunk.empty()
                                   ? endpoint.chunk_bytes
                                   : parse_bytes(options.chunk, "--chunk").count(),
                .compute_speed = options.compute_speed,
                .exchange_aside = options.aside,
                .contention = {options.computation_factor, options.communication_factor}} {
    read_batch(options);
    if (!options.dtype.empty()) {
      overlap.dtype = dtype_named(options.dtype);
      if (!overlap.dtype) {
        fail(ErrorKind::usage,
             fmt::format("--dtype '{}': must be fp32, fp16 or bf16", options.dtype));
      }
    }
    if (overlap.chunk_bytes < 1) {
      fail(ErrorKind::usage, "--chunk 0 B: must be at least 1 B");
    }
    if (!(options.compute_speed > 0)) {
      fail(ErrorKind::usage,
           fmt::format("--compute-speed {}: must be greater than 0", options.compute_speed));
    }
    if (options.configuration != "all" &&
        std::none_of(endpoint.configurations.begin(), endpoint.configurations.end(),
                     [&](const auto& c) { return c.name == options.configuration; })) {
      std::vector<std::string> names{"all"};
      for (const EndpointConfiguration& c : endpoint.configurations) {
        names.push_back(c.name);
      }
      fail(ErrorKind::usage, fmt::format("--configuration '{}': must be one of {}",
                                         options.configuration, fmt::join(names, ", ")));
    }
  }

  Workload workload;
  Endpoint endpoint;
  OverlapQuestion overlap;

private:
  void read_batch(const OverlapOptions& options) {
    const bool measured =
        std::any_of(workload.layers.begin(), workload.layers.end(), [](const Layer& l) {
          return l.forward.seconds || l.input_gradient.seconds || l.weight_gradient.seconds;
        });
    if (options.batch != 0) {
      overlap.batch = count_of(options.batch, "--batch");
      if (measured && workload.batch != overlap.batch) {
        fail(ErrorKind::usage,
             fmt::format("--batch {}: {} was measured with {}", options.batch, workload.name,
                         workload.batch ? std::to_string(*workload.batch)
                                        : "a batch that it does not say"));
      }
    } else if (workload.batch) {
      overlap.batch = *workload.batch;
    } else if (!measured && !workload.layers.empty()) {
      fail(ErrorKind::usage,
           fmt::format("the workload {} has no batch; give --batch", workload.name));
    }
  }
};

struct Answers {
  std::vector<OverlapAnswer> configurations;
  /// The shortest iteration of those whose communication takes nothing of the endpoint.
  std::optional<double> ideal_s;
};

Answers answers(const Question& question, const std::string& wanted) {
  Answers out;
  for (const EndpointConfiguration& c : question.endpoint.configurations) {
    const bool ideal = c.mover == EndpointMover::none;
    if (wanted != "all" && wanted != c.name && !ideal) {
      continue;
    }
    OverlapAnswer answer = predict_overlap(question.overlap, c);
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

Json json_of(const Answers& all, const Question& question) {
  Json out;
  out["batch"] = question.overlap.batch;
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
                {"flops_per_second", a.compute.flops_per_s},
                {"memory_bandwidth", a.compute.memory_bytes_per_s},
                {"gradient_bytes", a.payload_bytes},
                {"sent_bytes", a.sent_bytes}};
    row["of_ideal"] = all.ideal_s ? Json(*all.ideal_s / t.iteration_s) : Json();
    out["configurations"].push_back(std::move(row));
  }
  return out;
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
  return waited;
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

std::string text_of(const Answers& all, const Question& question, const OverlapOptions& options) {
  const OverlapAnswer& any = all.configurations.front();
  std::string text =
      fmt::format("{} on {}, batch {}: {} of gradients, each byte sent {:.4g} times (42); {}\n\n",
                  question.workload.name, options.shape, question.overlap.batch,
                  bytes_text(any.payload_bytes), any.all_reduce.traffic.sent_bytes, options.policy);
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
      text += layers_text(a, question.workload);
    }
    text += "all-reduce, all-to-all: alone; waits: before its computations, in one iteration\n";
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

/// One line a stretch, from the begin of the iteration that repeats.
std::string timeline_csv(const Answers& all, const Workload& workload) {
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

// ---------------------------------------------------------------- sweeps

/// What a node sends in one all-reduce, its latency included, when communication has so much.
struct SweepPoint {
  double given = 0; ///< bytes per second, or SMs
  double cores = 0, engine = 0;
};

struct Sweep {
  std::vector<SweepPoint> points;
  double ideal = 0; ///< the same, when nothing of the endpoint limits it
};

Sweep sweep(const OverlapOptions& options) {
  const Endpoint endpoint = endpoint_of(options);
  const Torus torus = torus_of(endpoint, shape_of(options.shape));
  const TorusTraffic traffic = torus_all_reduce(torus);
  std::array<double, k_torus_dimensions> latency_s{};
  for (std::size_t d = 0; d < k_torus_dimensions; ++d) {
    latency_s[d] = endpoint.rings[d].latency_seconds;
  }
  const double fill_s = all_reduce_fill_s(torus, latency_s);
  const double sent = parse_bytes(options.sweep_bytes, "--bytes").as_double() * traffic.sent_bytes;
  const double ideal = torus_limit(torus, traffic).bytes_per_s;
  const auto reached = [&](EndpointMover mover, const EndpointPart& part) {
    EndpointConfiguration c;
    c.mover = mover;
    c.communication = part;
    const double rate =
        collective_rate(ideal, communication_share(endpoint, c, traffic, true)).bytes_per_s;
    return rate > 0 ? sent / (fill_s + sent / rate) : 0;
  };
  Sweep out;
  out.ideal = reached(EndpointMover::none, {});
  const double sms = static_cast<double>(endpoint.sms);
  constexpr int k_steps = 18;
  for (int i = 1; i <= (options.memory_sweep ? k_steps : 10); ++i) {
    const double given = options.memory_sweep ? endpoint.memory_bytes_per_second * i / k_steps : i;
    const EndpointPart part = options.memory_sweep
                                  ? EndpointPart{sms, given}
                                  : EndpointPart{given, endpoint.memory_bytes_per_second};
    out.points.push_back({given, reached(EndpointMover::cores, part),
                          options.memory_sweep ? reached(EndpointMover::engine, part) : 0});
  }
  return out;
}

Json json_of(const Sweep& sweep, bool memory) {
  Json out = {{"ideal_bandwidth", sweep.ideal}, {"points", Json::array()}};
  for (const SweepPoint& p : sweep.points) {
    Json& point = out["points"].emplace_back(
        Json{{memory ? "memory_bandwidth" : "sms", p.given}, {"network_bandwidth", p.cores}});
    if (memory) {
      point["engine_network_bandwidth"] = p.engine;
    }
  }
  return out;
}

std::string text_of(const Sweep& sweep, bool memory, const OverlapOptions& options) {
  std::string text = fmt::format("all-reduce of {} on {}: at most {} a node\n\n{:>12} {:>12} {:>9}",
                                 options.sweep_bytes, options.shape, rate_text(sweep.ideal),
                                 memory ? "memory" : "SMs", "SMs move", "of ideal");
  text += memory ? fmt::format(" {:>12} {:>9}\n", "engine", "of ideal") : "\n";
  const auto cells = [&](double rate) {
    return fmt::format(" {:>12} {:>9}", rate_text(rate),
                       fmt::format("{:.1f} %", 100 * rate / sweep.ideal));
  };
  for (const SweepPoint& p : sweep.points) {
    text += fmt::format("{:>12}", memory ? rate_text(p.given) : fmt::format("{}", p.given)) +
            cells(p.cores) + (memory ? cells(p.engine) : "") + "\n";
  }
  return text;
}

int answer(const OverlapOptions& options) {
  if (options.memory_sweep || options.sm_sweep) {
    const Sweep solved = sweep(options);
    print(options.json ? canonical(json_of(solved, options.memory_sweep))
                       : text_of(solved, options.memory_sweep, options));
    return k_exit_ok;
  }
  if (options.workload.empty()) {
    fail(ErrorKind::usage, "give --workload, or one of --memory-sweep and --sm-sweep");
  }
  const Question question(options);
  const Answers all = answers(question, options.configuration);
  if (!options.timeline.empty()) {
    write_file(options.timeline, timeline_csv(all, question.workload));
  }
  print(options.json ? canonical(json_of(all, question)) : text_of(all, question, options));
  return k_exit_ok;
}

} // namespace

Command add_solve_overlap(CLI::App& solve) {
  auto options = std::make_shared<OverlapOptions>();
  CLI::App* overlap = solve.add_subcommand(
      "overlap", "How much of an iteration's communication an endpoint hides (ACE)");
  overlap->add_option("--workload", options->workload,
                      "With layers: resnet50, gnmt, dlrm, or a file");
  overlap->add_option("--profile", options->profile, "With an endpoint")->capture_default_str();
  overlap->add_option("--shape", options->shape, "Nodes LxVxH: local, vertical, horizontal; 4x8x4")
      ->required();
  overlap->add_option("--configuration", options->configuration, "One of the profile's, or all")
      ->capture_default_str();
  overlap->add_option("--policy", options->policy, "Which collective first: lifo, fifo, priority")
      ->capture_default_str();
  overlap->add_option("--chunk", options->chunk, "What nothing interrupts; default: the profile's");
  overlap->add_option("--batch", options->batch, "Samples of a worker; default: the workload's");
  overlap->add_option("--dtype", options->dtype,
                      "Of gradients and activations: fp32, fp16, bf16; default: the workload's");
  overlap->add_flag("--dlrm-overlap", options->aside,
                    "What is exchanged is computed beside the rest, an iteration ahead");
  overlap
      ->add_option("--compute-speed", options->compute_speed,
                   "As if it computed so many times as fast")
      ->capture_default_str();
  overlap
      ->add_option("--computation-factor", options->computation_factor,
                   "Computation takes so many times longer beside communication")
      ->capture_default_str();
  overlap
      ->add_option("--communication-factor", options->communication_factor,
                   "Communication takes so many times longer beside computation")
      ->capture_default_str();
  overlap->add_flag("--explain", options->explain, "Layer by layer");
  overlap->add_option("--timeline", options->timeline, "Writes every stretch to this CSV file");
  auto* memory = overlap->add_flag("--memory-sweep", options->memory_sweep,
                                   "What a node sends over the memory's bandwidth, instead");
  overlap->add_flag("--sm-sweep", options->sm_sweep, "The same over SMs")->excludes(memory);
  overlap->add_option("--bytes", options->sweep_bytes, "All-reduce of a sweep")
      ->capture_default_str();
  overlap->add_flag("--json", options->json, "One JSON object on standard output");
  overlap->footer("Equations 49 to 53 of docs/equations.md. With --json, times are in seconds and "
                  "bandwidths in bytes per second.");
  return [options] { return answer(*options); };
}

} // namespace reckon
