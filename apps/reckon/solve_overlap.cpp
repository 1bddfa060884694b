// SPDX-License-Identifier: Apache-2.0
#include "solve.hpp"

#include "commands.hpp"
#include "core/file.hpp"
#include "core/shape.hpp"
#include "documents/contention.hpp"
#include "documents/document.hpp"
#include "strategies/contention.hpp"
#include "strategies/endpoint/measured.hpp"
#include "strategies/endpoint/overlap.hpp"

#include <algorithm>
#include <array>
#include <utility>

/// ACE: how much of an iteration's communication an endpoint hides.
namespace reckon::solve {
namespace {

constexpr std::array k_rate_limit_names{"network", "memory", "SMs", "bus"};
constexpr std::array k_stream_names{"computation", "aside", "communication"};
constexpr std::array k_work_names{"forward",       "input_gradient",   "weight_gradient",
                                  "all_reduce",    "exchange_forward", "exchange_backward",
                                  "all_at_the_end"};

// ---------------------------------------------------------------- what is asked

/// Factors as given for all configurations; of a measured profile each has its own.
struct EndpointAndFactors {
  Endpoint endpoint;
  std::optional<ContentionFactors> all;
  std::map<std::string, ContentionFactors> by_configuration;
};

/// The endpoint that --profile describes. Throws Error{usage} where it describes none.
Endpoint described_endpoint(const Given& given) {
  const Profile profile = read_profile(given.text("--profile"));
  refuse_if(!profile.endpoint,
            "--profile {}: does not say how its endpoint divides itself; give --contention WORK "
            "where it was measured, add \"endpoint\" (docs/documents.md), or take ace-torus",
            given.text("--profile"));
  return *profile.endpoint;
}

/// The endpoint and factors that --contention takes from a profile.
EndpointAndFactors measured_factors(const Given& given) {
  const std::string& work = given.text("--contention");
  const std::string& cores = given.text("--processors");
  const std::string& path = given.text("--profile");
  const bool elsewhere = given.has("--contention-profile");
  refuse_if(given.number("--computation-factor") != 1 ||
                given.number("--communication-factor") != 1,
            "--contention takes the factors from a profile: leave out --computation-factor and "
            "--communication-factor");
  refuse_if(cores != "dedicated" && cores != "shared", "--processors {}: use dedicated or shared",
            cores);
  const Profile profile = read_profile(path);
  if (profile.endpoint) {
    if (!elsewhere && std::none_of(profile.cells.begin(), profile.cells.end(),
                                   [](const Cell& c) { return is_contention(c.key); })) {
      fail(ErrorKind::usage,
           fmt::format("--contention {}: nothing was measured beside computation in {}; name a "
                       "profile that has it with --contention-profile, or give "
                       "--computation-factor and --communication-factor instead",
                       work, path));
    }
    return {
        *profile.endpoint,
        contention_factors(elsewhere ? read_profile(given.text("--contention-profile")) : profile,
                           {work, cores == "dedicated"}),
        {}};
  }
  refuse_if(elsewhere,
            "--contention-profile: {} has no endpoint, and its own factors count; leave one of the "
            "two out",
            path);
  const auto [ring, vertical, horizontal] = parse_shape(given.text("--shape"));
  refuse_if(vertical != 1 || horizontal != 1,
            "--shape {}: machines that were measured are one ring, Nx1x1", given.text("--shape"));
  MeasuredEndpoint measured = measured_endpoint(profile, work, ring);
  return {std::move(measured.endpoint), std::nullopt, std::move(measured.factors)};
}

EndpointAndFactors endpoint_of(const Given& given) {
  if (given.has("--contention")) {
    return measured_factors(given);
  }
  refuse_if(
      given.has("--contention-profile"),
      "--contention-profile: say with --contention which computation's factors it is to give");
  return {described_endpoint(given),
          ContentionFactors{given.number("--computation-factor"),
                            given.number("--communication-factor")},
          {}};
}

/// What nothing interrupts: as given, else the endpoint's.
std::uint64_t chunk_bytes_of(const Given& given, const Endpoint& endpoint) {
  const std::uint64_t bytes = given.has("--chunk")
                                  ? parse_bytes(given.text("--chunk"), "--chunk").count()
                                  : endpoint.chunk_bytes;
  refuse_if(bytes < 1, "--chunk 0 B: must be at least 1 B");
  return bytes;
}

std::optional<ComputationBound> bound_of(const Given& given) {
  if (!given.has("--bound")) {
    return std::nullopt;
  }
  return given.one_of("--bound", {"memory", "compute"}) == 0 ? ComputationBound::memory
                                                             : ComputationBound::arithmetic;
}

bool says_any_seconds(const Workload& workload) {
  return std::any_of(workload.layers.begin(), workload.layers.end(), [](const Layer& l) {
    return l.forward.seconds || l.input_gradient.seconds || l.weight_gradient.seconds;
  });
}

std::uint64_t batch_of(const Given& given, const Workload& workload) {
  const bool in_seconds = says_any_seconds(workload);
  if (given.present("--batch")) {
    const std::uint64_t batch = given.count("--batch");
    refuse_if(in_seconds && workload.batch != batch, "--batch {}: {} was measured with {}", batch,
              workload.name,
              workload.batch ? std::to_string(*workload.batch) : "a batch that it does not say");
    return batch;
  }
  refuse_if(!workload.batch && !in_seconds && !workload.layers.empty(),
            "the workload {} has no batch; give --batch", workload.name);
  return workload.batch.value_or(1);
}

/// Throws Error{usage} for options that do not fit each other or the documents.
OverlapQuestion question_of(const Given& given, const Workload& workload,
                            const EndpointAndFactors& measured) {
  const Endpoint& endpoint = measured.endpoint;
  OverlapQuestion question{
      .workload = workload,
      .endpoint = endpoint,
      .shape = parse_shape(given.text("--shape")),
      .batch = 1,
      .dtype = {},
      .policy = static_cast<SchedulePolicy>(given.one_of("--policy", {"lifo", "fifo", "priority"})),
      .chunk_bytes = chunk_bytes_of(given, endpoint),
      .bound = bound_of(given),
      .compute_speed = given.number("--compute-speed"),
      .exchange_aside = given.on("--dlrm-overlap"),
      .contention = measured.all.value_or(ContentionFactors{})};
  refuse_if(!measured.all && !says_seconds(workload),
            "the workload {} counts operations, and {} does not say how many it makes a second; "
            "take a workload whose layers say seconds (reckon import)",
            workload.name, given.text("--profile"));
  refuse_if(question.bound && !measured.all,
            "--bound {}: {} has no endpoint that is divided; leave it out", given.text("--bound"),
            given.text("--profile"));
  refuse_if(question.bound && !says_any_seconds(workload),
            "--bound {}: {} counts operations and bytes, which say what holds its layers up (49); "
            "leave it out",
            given.text("--bound"), workload.name);
  question.batch = batch_of(given, workload);
  if (given.has("--dtype")) {
    question.dtype = static_cast<DType>(given.one_of("--dtype", {"fp32", "fp16", "bf16"}));
  }
  std::vector<std::string> names{"all"};
  for (const EndpointConfiguration& c : endpoint.configurations) {
    names.push_back(c.name);
  }
  const std::string& wanted = given.text("--configuration");
  refuse_if(std::find(names.begin(), names.end(), wanted) == names.end(),
            "--configuration '{}': must be one of {}", wanted, fmt::join(names, ", "));
  return question;
}

// ---------------------------------------------------------------- what is answered

/// A row for each layer in the JSON, and the same with heads for people.
Answer layers_of(const OverlapAnswer& a, const Workload& workload) {
  Lines lines("{:<28} {:>10} {:>10} {:>10} {:>11} {:>10} {:>10}");
  lines.append(fmt::format("\n{}\n", a.configuration->name));
  lines("layer", "forward", "weights", "input", "all-reduce", "all-to-all", "waits");
  Json rows = Json::array();
  const std::vector<double> waits_s = layer_waits_s(a.timeline, a.layers.size());
  for (std::size_t i = 0; i < a.layers.size(); ++i) {
    const TimedLayer& l = a.layers[i];
    const std::string& name = workload.layers[i].name;
    std::optional<double> all_reduce_s, all_to_all_s;
    if (l.all_reduce) {
      all_reduce_s = l.all_reduce->alone_s();
    }
    if (l.exchange) {
      all_to_all_s = l.exchange->forward.alone_s();
    }
    rows.push_back({{"name", name},
                    {"forward_seconds", l.forward_s},
                    {"weight_gradient_seconds", l.weight_gradient_s},
                    {"input_gradient_seconds", l.input_gradient_s},
                    {"all_reduce_seconds", or_null(all_reduce_s)},
                    {"all_to_all_seconds", or_null(all_to_all_s)},
                    {"waits_seconds", waits_s[i]}});
    lines(name, time_text(l.forward_s), time_text(l.weight_gradient_s),
          time_text(l.input_gradient_s), all_reduce_s ? time_text(*all_reduce_s) : "-",
          all_to_all_s ? time_text(*all_to_all_s) : "-",
          waits_s[i] > 0 ? time_text(waits_s[i]) : "-");
  }
  return {rows, lines.text()};
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
std::string timeline_csv(const std::vector<OverlapAnswer>& answers, const Workload& workload) {
  Lines lines("{},{},{},{},{},{},{}");
  lines("configuration", "iteration", "stream", "work", "layer", "begin_seconds", "end_seconds");
  for (const OverlapAnswer& a : answers) {
    const double zero = a.timeline.begin_s;
    for (const TimelineEvent& e : a.timeline.events) {
      lines(quoted(a.configuration->name), e.iteration, named(k_stream_names, e.stream),
            named(k_work_names, e.work),
            e.work == TimelineWork::fused ? "" : quoted(workload.layers[e.layer].name),
            e.begin_s - zero, e.end_s - zero);
    }
  }
  return lines.text();
}

Answer answer_iteration(const Given& given) {
  const Workload workload = read_workload(given.text("--workload"));
  const EndpointAndFactors measured = endpoint_of(given);
  const OverlapQuestion question = question_of(given, workload, measured);
  const auto factors_of = [&](const EndpointConfiguration& c) {
    return !measured.all                    ? measured.by_configuration.at(c.name)
           : c.mover == EndpointMover::none ? ContentionFactors{} // nobody is in the way
                                            : *measured.all;
  };
  const std::string& wanted = given.text("--configuration");
  std::vector<OverlapAnswer> answers;
  std::optional<double> ideal_s; // the shortest of those that take nothing of the endpoint
  for (const EndpointConfiguration& c : measured.endpoint.configurations) {
    const bool shown = wanted == "all" || wanted == c.name;
    const bool ideal = c.mover == EndpointMover::none;
    if (shown || ideal) {
      OverlapQuestion of_this = question;
      of_this.contention = factors_of(c);
      OverlapAnswer answer = predict_overlap(of_this, c);
      const double iteration_s = answer.timeline.iteration_s;
      if (ideal) {
        ideal_s = std::min(ideal_s.value_or(iteration_s), iteration_s);
      }
      if (shown) {
        answers.push_back(std::move(answer));
      }
    }
  }
  if (given.has("--timeline")) {
    write_file(given.text("--timeline"), timeline_csv(answers, workload));
  }

  const OverlapAnswer& any = answers.front();
  Json rows = Json::array();
  std::string layers;
  Lines lines("{:<14} {:>12} {:>10} {:>10} {:>9}  {:>12} {}");
  lines.append(fmt::format(
      "{} on {}, batch {}: {} of gradients, each byte sent {:.4g} times (42); {}{}\n\n",
      workload.name, given.text("--shape"), question.batch, bytes_text(any.payload_bytes),
      any.all_reduce.traffic.sent_bytes, given.text("--policy"),
      question.bound ? fmt::format("; layers bound by {} (49)", given.text("--bound")) : ""));
  lines("", "computation", "exposed", "iteration", "of ideal", "all-reduce", "limited by");
  for (const OverlapAnswer& a : answers) {
    const Timeline& t = a.timeline;
    const CollectiveRate& rate = a.all_reduce.rate;
    const ContentionFactors factors = factors_of(*a.configuration);
    Json& row = rows.emplace_back(
        Json{{"name", a.configuration->name},
             {"iteration_seconds", t.iteration_s},
             {"computation_seconds", t.computation_s},
             {"exposed_seconds", t.exposed_s},
             {"communication_seconds", t.communication_s},
             {"network_bandwidth", rate.bytes_per_s},
             {"limited_by", named(k_rate_limit_names, rate.limit)},
             {"fill_seconds", a.all_reduce.fill_s},
             {"all_to_all_bandwidth", a.exchange.rate.bytes_per_s},
             {"gradient_bytes", a.payload_bytes},
             {"sent_bytes", a.sent_bytes},
             {"computation_factor", factors.compute},
             {"communication_factor", factors.communication},
             {"of_ideal", ideal_s ? Json(*ideal_s / t.iteration_s) : Json(nullptr)}});
    if (measured.all) { // else nothing is known of them
      row["flops_per_second"] = a.compute.flops_per_s;
      row["memory_bandwidth"] = a.compute.memory_bytes_per_s;
    }
    lines(a.configuration->name, time_text(t.computation_s), time_text(t.exposed_s),
          time_text(t.iteration_s),
          ideal_s ? fmt::format("{:.1f} %", 100 * *ideal_s / t.iteration_s) : "-",
          rate_text(rate.bytes_per_s), named(k_rate_limit_names, rate.limit));
    if (given.on("--layers")) {
      Answer of_layers = layers_of(a, workload);
      row["layers"] = std::move(of_layers.json);
      layers += of_layers.text;
    }
  }
  lines.append(
      "\nexposed: computation waits (52); all-reduce: what a node sends while it goes on (50)\n");
  if (given.on("--layers")) {
    layers += "all-reduce, all-to-all: alone; waits: before its computations, in one iteration\n";
  }
  return {{{"batch", question.batch}, {"configurations", rows}}, lines.text() + layers};
}

// ---------------------------------------------------------------- sweeps

Answer answer_sweep(const Given& given) {
  const Endpoint endpoint = described_endpoint(given);
  const bool memory = given.on("--memory-sweep");
  const std::uint64_t chunk_bytes = chunk_bytes_of(given, endpoint);
  const auto shape = parse_shape(given.text("--shape"));
  const double payload = given.number("--bytes");
  refuse_if(payload < 1, "--bytes 0 B: must be at least 1 B");
  const EndpointSweep sweep = sweep_endpoint(endpoint, shape, payload, chunk_bytes,
                                             memory ? SweptPart::memory : SweptPart::sms);
  Json points = Json::array();
  Lines lines("{:>12} {:>12} {:>9}{}");
  lines.append(fmt::format("all-reduce of {} on {}: at most {} a node\n\n", given.text("--bytes"),
                           given.text("--shape"), rate_text(sweep.ideal)));
  lines(memory ? "memory" : "SMs", "SMs move", "of ideal",
        memory ? fmt::format(" {:>12} {:>9}", "engine", "of ideal") : "");
  const auto of_ideal = [&](double rate) {
    return fmt::format("{:.1f} %", 100 * rate / sweep.ideal);
  };
  for (const SweepPoint& p : sweep.points) {
    Json& point = points.emplace_back(
        Json{{memory ? "memory_bandwidth" : "sms", p.given}, {"network_bandwidth", p.cores}});
    if (memory) {
      point["engine_network_bandwidth"] = p.engine;
    }
    lines(memory ? rate_text(p.given) : fmt::format("{}", p.given), rate_text(p.cores),
          of_ideal(p.cores),
          memory ? fmt::format(" {:>12} {:>9}", rate_text(p.engine), of_ideal(p.engine)) : "");
  }
  return {{{"ideal_bandwidth", sweep.ideal}, {"points", points}}, lines.text()};
}

/// A sweep is of one all-reduce: what is said of iterations, and given all the same, is an error.
void check_sweep(const Given& given) {
  for (const char* const flag :
       {"--workload", "--configuration", "--policy", "--batch", "--dtype", "--bound",
        "--dlrm-overlap", "--compute-speed", "--computation-factor", "--communication-factor",
        "--contention", "--processors", "--contention-profile", "--layers", "--timeline"}) {
    refuse_if(given.present(flag),
              "{}: a sweep is of one all-reduce, of --bytes; leave one of the two out", flag);
  }
}

Answer answer_overlap(const Given& given) {
  const bool sweeps = given.on("--memory-sweep") || given.on("--sm-sweep");
  refuse_if(given.present("--bytes") && !sweeps,
            "--bytes {}: is of a sweep; add --memory-sweep or --sm-sweep, or leave it out: an "
            "iteration sends what its --workload says",
            given.text("--bytes"));
  if (sweeps) {
    check_sweep(given);
  }
  refuse_if(given.present("--processors") && !given.has("--contention"),
            "--processors: says whose factors --contention takes; give both");
  if (given.present("--batch")) {
    static_cast<void>(given.count("--batch"));
  }
  if (sweeps) {
    return answer_sweep(given);
  }
  refuse_if(!given.has("--workload"), "give --workload, or one of --memory-sweep and --sm-sweep");
  const std::string& timeline = given.text("--timeline");
  refuse_if(timeline == "-", "--timeline -: standard output is the answer's; name a file");
  if (!timeline.empty()) {
    refuse_overwriting_text(
        timeline,
        {given.text("--workload"), given.text("--profile"), given.text("--contention-profile")},
        "timeline", timeline_csv({}, {}), "--timeline");
  }
  return answer_iteration(given);
}

} // namespace

Calculator overlap() {
  return {
      "overlap",
      "How much of an iteration's communication an endpoint hides (ACE)",
      "--workload gnmt --shape 4x8x4 --dtype fp16",
      {{"-m,--workload", Unit::text,
        "A workload: one with layers, resnet50, gnmt, dlrm, those of ASTRA-sim, or a file"},
       {"-p,--profile", Unit::text, "A profile: one with an endpoint", "ace-torus"},
       required("--shape", Unit::text,
                "Torus LxVxH: local, vertical, horizontal nodes, e.g. 4x8x4"),
       {"--configuration", Unit::text,
        "Configuration of the endpoint: one of the profile's, or all", "all"},
       {"--policy", Unit::text, "Which collective first: lifo, fifo, priority", "lifo"},
       {"--chunk", Unit::bytes,
        "What the engine works on without interruption: default the profile's"},
       {"--batch", Unit::count, "Samples of a worker in an iteration: default the workload's"},
       {"--dtype", Unit::text,
        "Of gradients and activations: fp32, fp16, bf16; default: the workload's"},
       {.names = "--bound",
        .help = "What holds up layers that say seconds: memory or compute, whose share stretches "
                "them (49); default: neither",
        .type = "PART"},
       {"--dlrm-overlap", Unit::flag,
        "What is exchanged is computed beside the rest, an iteration ahead"},
       {.names = "--compute-speed",
        .unit = Unit::factor,
        .help = "As if it computed so many times as fast",
        .usual = "1",
        .least = 1e-6},
       {"--computation-factor", Unit::factor,
        "Computation takes so many times longer beside communication", "1"},
       {"--communication-factor", Unit::factor,
        "Communication takes so many times longer beside computation", "1"},
       {.names = "--contention",
        .help = "Passes and traffic slow each other as measured beside this computation: of the "
                "profile, e.g. gemm_256",
        .type = "WORK"},
       {"--processors", Unit::text,
        "Processors of computation and communication: separate ones (dedicated) or all for both "
        "(shared); without an endpoint both ways. With --contention",
        "dedicated"},
       {.names = "--contention-profile",
        .help = "With --contention: whose factors. Default: --profile's own",
        .type = "PROFILE"},
       {"--layers", Unit::flag, "Layer by layer"},
       {"--timeline", Unit::text,
        "Writes every stretch to this CSV file; 0 s is where the iteration that repeats begins"},
       {"--memory-sweep", Unit::flag, "What a node sends over the memory's bandwidth, instead"},
       {"--sm-sweep", Unit::flag, "The same over SMs", "", {"--memory-sweep"}},
       {"--bytes", Unit::bytes, "Size of the gradient: what a sweep sums", "64MB"}},
      answer_overlap,
      "Equations 49 to 53 of docs/equations.md. With --json, times are in seconds and bandwidths "
      "in bytes\nper second; of_ideal is null where the profile has no ideal configuration.",
      {{"--cores", "--processors"}, {"--explain", "--layers"}}};
}

} // namespace reckon::solve
