// SPDX-License-Identifier: Apache-2.0
#include "plan_arguments.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "core/split.hpp"
#include "documents/profile.hpp"
#include "planning/sweep.hpp"
#include "strategies/strategy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace reckon {
namespace {

constexpr std::uint64_t k_most_ranks = k_most_machines; ///< keeps a slip from filling the memory

constexpr std::uint64_t k_most_ranks_a_machine = 1024;

/// A value that can also be "auto", which is none.
template <class T, class Parse>
Take automatic_or(std::optional<T>* to, Parse parse) {
  return [to, parse](const std::string& text, std::string_view flag) {
    *to = text == "auto" ? std::nullopt : std::optional<T>(parse(text, flag));
  };
}
Take automatic_or_count(std::optional<std::uint64_t>* to, std::uint64_t most,
                        std::uint64_t least = 1) {
  return automatic_or(to, [most, least](const std::string& text, std::string_view flag) {
    std::uint64_t value = 0;
    whole_number(&value, least, most)(text, flag);
    return value;
  });
}

Take places_of(PlanRequest* to) {
  return [to](const std::string& text, std::string_view flag) {
    const std::vector<std::pair<std::string, PlacesAsked>> words{
        {"machine", PlacesAsked::machine}, {"numa", PlacesAsked::numa}, {"gpu", PlacesAsked::gpu}};
    std::vector<std::string> known;
    for (const auto& [word, value] : words) {
      if (word == text) {
        to->places = value;
        return;
      }
      known.push_back(word);
    }
    if (text.empty() || text.find_first_not_of("0123456789,") != std::string::npos) {
      const std::string near = did_you_mean(text, known);
      fail(
          ErrorKind::usage,
          fmt::format("{} {}: write machine, numa, gpu or how many ranks each machine has, as in 4 "
                      "or 2,4,4{}",
                      flag, text, near.empty() ? "" : fmt::format("; did you mean '{}'?", near)));
    }
    to->ranks_a_machine.clear();
    for (const std::string& number : split(text, ",")) {
      if (number.empty()) {
        fail(ErrorKind::usage,
             fmt::format("{} {}: a number is missing beside a comma", flag, text));
      }
      whole_number(&to->ranks_a_machine.emplace_back(), 1, k_most_ranks_a_machine)(number, flag);
    }
    to->places = PlacesAsked::ranks;
  };
}

/// A number of what a quantity has.
Take seconds(std::optional<double>* to) {
  return [to](const std::string& text, std::string_view flag) {
    *to = parse_seconds(text, flag).count();
  };
}
/// "25Gb/s", or "25Gb/s+-10%": also 10 % less or more.
Take bytes_per_s(std::optional<double>* to, double* spread) {
  return [to, spread](const std::string& text, std::string_view flag) {
    std::size_t sign = std::string::npos, after = 0;
    for (const std::string_view word : {"±", "+-", "+/-"}) {
      if (const std::size_t at = text.find(word); at < sign) {
        sign = at;
        after = at + word.size();
      }
    }
    const std::string speed = text.substr(0, sign);
    *to = parse_bandwidth(speed.substr(0, speed.find_last_not_of(' ') + 1), flag).as_bytes_per_s();
    *spread = sign == std::string::npos ? 0 : parse_fraction(text.substr(after), flag);
    if (*spread >= 1) {
      fail(ErrorKind::usage, fmt::format("{} {}: what may be less must be below 100%", flag, text));
    }
  };
}

double proxy_bytes_of(const std::string& text, std::string_view flag) {
  return text == "0"     ? 0
         : text == "all" ? k_all_proxy_bytes
                         : static_cast<double>(parse_bytes(text, flag).count());
}

Take fraction_below_1(double* to) {
  return [to](const std::string& text, std::string_view flag) {
    fraction(to)(text, flag);
    if (*to >= 1) {
      fail(ErrorKind::usage, fmt::format("{} {}: below 100%", flag, text));
    }
  };
}

/// "sum", or "fixed:BITS".
Take reduction_bits(std::optional<int>* to) {
  return [to](const std::string& text, std::string_view flag) {
    constexpr std::string_view k_prefix = "fixed:";
    const std::uint64_t bits =
        text.starts_with(k_prefix) ? parse_count(text.substr(k_prefix.size()), flag) : 0;
    if (text != "sum" && (bits < 2 || bits > 32)) {
      fail(ErrorKind::usage,
           fmt::format("{} {}: use sum, or fixed:BITS with 2 to 32 bits", flag, text));
    }
    *to = text == "sum" ? std::nullopt : std::optional(static_cast<int>(bits));
  };
}

void add_precision(Arguments& command, PlanArguments& a) {
  command.group("Optimizer and precision");
  command
      .choice<std::optional<Optimizer>>(
          "--optimizer", &a.asked.options.optimizer,
          {{"none", {}},
           {"sgd", Optimizer::sgd},
           {"momentum", Optimizer::momentum},
           {"rmsprop", Optimizer::rmsprop},
           {"adam", Optimizer::adam}},
          "Which optimizer: its step is part of the plan; none, sgd, momentum, rmsprop or adam")
      .defaults_to("none");
  command
      .choice<std::optional<UpdatePlace>>(
          "--update", &a.asked.options.update_at,
          {{"auto", {}}, {"server", UpdatePlace::server}, {"worker", UpdatePlace::worker}},
          "Where the step is made: server, worker, or auto: by the predicted time")
      .defaults_to("auto");
  const Argument async = command.option(
      "--async", &a.async, "No worker waits for another; servers keep the latest parameters (SGD)");
  command
      .option("--async-steps", whole_number(&a.async_steps, 1, 1000),
              "With --async: steps of each worker in one iteration of a run")
      .defaults_to("4")
      .needs(async);
  command
      .choice<std::optional<DType>>("--wire", &a.asked.options.wire,
                                    {{"off", {}}, {"bf16", DType::bf16}, {"fp16", DType::fp16}},
                                    "Gradients of fp32 travel as bf16 or fp16, and each sum is "
                                    "rounded to it; off: as they are")
      .defaults_to("off");
  command
      .option("--reduction", reduction_bits(&a.bits),
              "sum, or fixed:BITS: whole numbers whose sums fit in BITS, as in switches")
      .defaults_to("sum");
  command
      .option("--gradient-bound", number(&a.gradient_bound, 1e-30, 1e30), // what scales fp32
              "With --reduction fixed: the largest magnitude of a gradient")
      .defaults_to("1");
}

} // namespace

void add_plan_options(Arguments& command, PlanArguments& a) {
  PlanOptions& options = a.asked.options;
  ProxyOptions& proxies = a.asked.proxies;
  command.option("-p,--profile", &a.profile,
                 "A profile: of `reckon probe`, or a shipped one's name");
  command.option(
      "-m,--workload", &a.workload,
      "A workload: JSON, CSV with the columns name,elements,dtype, .safetensors, or a shipped "
      "model's name (--list)");
  const Argument output = command.option("-o,--output", &a.output, "File of the result: the plan");
  const Argument workers = command.option(
      "--workers", whole_number(&a.asked.workers, 1, k_most_ranks),
      "How many work: ranks with a gradient; with GPUs or NUMA nodes as ranks, machines whose "
      "places all work. "
      "Default: all machines of the profile, or of a single one as many ranks as it has "
      "processors");
  const Argument servers = command.option(
      "--servers", whole_number(&a.asked.servers, 0, k_most_ranks),
      "How many machines only sum: beside --workers. Default: none; the last candidate "
      "shows what some would give");
  const Argument places =
      command
          .option("--places", places_of(&a.asked),
                  "What a rank is: a machine, each NUMA node or GPU, or N ranks on each machine "
                  "(2,4,4: for each machine) that share its memory. Default: gpu if the profile "
                  "knows links between GPUs, else machine")
          .type("machine|numa|gpu|N");
  command
      .option("--strategy", &options.strategy,
              fmt::format("auto compares all that apply; or {}, rack_hierarchical, optimum (the "
                          "best of all trees), coarse, dense, torus, torus_scatter, or any that "
                          "the plan's table shows",
                          fmt::join(strategy_names(), ", ")))
      .shows_default();
  command.option(
      "--port-bandwidth",
      bytes_per_s(&options.what_if.worker_port_bytes_per_s, &a.asked.port_spread),
      "Assume that every rank has a port of its own of this speed, e.g. 100Gb/s; 25Gb/s+-10% "
      "gives the predictions a range");
  const Argument sweep =
      command
          .option(
              "--sweep", &a.sweep,
              "Compare plans for many values of a setting: servers=0..8, part-bytes=64KiB,1MiB. "
              "Several: all combinations")
          .excludes(output);
  command
      .option("--explain", &a.explain,
              "Each equation with its numbers: what binds and what would relieve it")
      .excludes(sweep);

  command.group("Output");
  command.option("--json", &a.json,
                 "JSON on standard output: the plan (or the sweep, or the list)");
  command.option("-l,--list", &a.list, "Print a list and end: the shipped workloads");
  command.color(&a.color);

  command.group("What if");
  command.option("--server-port-bandwidth",
                 bytes_per_s(&options.what_if.server_port_bytes_per_s, &a.asked.server_port_spread),
                 "As --port-bandwidth, for ranks that only serve");
  command
      .option(
          "--prices", &a.prices,
          "JSON file of prices: with --sweep, what machines and ports cost, to compare the price "
          "of a step too")
      .type("FILE");
  command.option("--set", &a.set,
                 "Any of these settings as name=value: servers=4, gpu-direct=yes, ...");

  command.group("Ranks, parts and lanes");
  command
      .choice<bool>("--gradients", &a.asked.gpu_gradients, {{"host", false}, {"gpu", true}},
                    "Where workers' gradients lie: in their machines' memory (host), or on GPUs "
                    "from which each part is copied there, and its sum back")
      .defaults_to("host");
  const Argument roles = command
                             .option("-r,--roles", &a.roles,
                                     "Roles: a document that says which places work and which "
                                     "serve")
                             .excludes(workers)
                             .excludes(servers)
                             .excludes(places);
  command
      .option("--lanes", automatic_or_count(&a.asked.lanes, 1024),
              "Threads for each rank, each with its own endpoint. Default: as many as the sums and "
              "the network ports need")
      .excludes(roles);
  command.option(
      "--transport", &options.transport,
      "What moves the bytes: plan for this transport. Default: the fastest in the profile");
  command.option("--part-bytes",
                 automatic_or(&options.part_bytes,
                              [](const std::string& text, std::string_view flag) {
                                return parse_bytes(text, flag).count();
                              }),
                 "Largest part: e.g. 4MiB. Default: by the predicted time");
  command.option(
      "--window", automatic_or_count(&options.window_parts, k_most_ranks),
      "Most parts that a worker may have sent on a lane without their sums back. Default: solved");
  command
      .choice<Cutting>(
          "--cutting", &options.cutting, {{"fused", Cutting::fused}, {"tensors", Cutting::tensors}},
          "fused: neighbouring tensors share equal parts; tensors: cut each tensor by itself")
      .defaults_to("fused");
  command
      .choice<std::optional<bool>>(
          "--sums", &options.sums_in_place,
          {{"auto", {}}, {"sent", false}, {"in-place", true}, {"in_place", true}},
          "Between ranks of one machine: in-place: the summing rank reads all gradients where "
          "they lie and writes the sum back; sent: gradients are sent to it; auto: by the "
          "predicted time")
      .defaults_to("auto");
  command
      .choice<RingOrdering>(
          "--ring-order", &options.ring_order,
          {{"best", RingOrdering::best}, {"given", RingOrdering::given}},
          "best: the order in which the ring's slowest link is fastest; given: the order of the "
          "ranks")
      .defaults_to("best");
  command
      .choice<Collective>(
          "--collective", &a.asked.collective,
          {{"all-reduce", Collective::all_reduce},
           {"reduce-scatter", Collective::reduce_scatter},
           {"all-gather", Collective::all_gather},
           {"broadcast", Collective::broadcast},
           {"reduce", Collective::reduce}},
          "Which collective: what the workers exchange, all-reduce, reduce-scatter, all-gather, "
          "broadcast or reduce")
      .defaults_to("all-reduce");
  command.option("--root", automatic_or_count(&a.asked.root, k_most_ranks, 0),
                 "The root of a broadcast or reduce. Default: 0");

  command.group("Forward and backward pass");
  command.option("--forward", seconds(&options.forward_seconds),
                 "Time of the forward pass: it is played, so that only exposed traffic counts. "
                 "Default: the workload's");
  command.option(
      "--backward", seconds(&options.backward_seconds),
      "Time of the backward pass: it produces the gradients layer by layer. Default: the "
      "workload's");
  command.option("--zero-compute", &options.zero_compute,
                 "Ignore the workload's passes: all traffic counts");
  command
      .choice<Order>(
          "--order", &options.order, {{"gradient", Order::gradient}, {"priority", Order::priority}},
          "gradient: send parts as the backward pass produces them, and begin the next forward "
          "pass when all sums are back, as training programs do; priority: first what that pass "
          "needs first, each layer of which waits for its own sums only")
      .defaults_to("gradient");
  const Argument contention =
      command
          .option("--contention", &a.contention.operation,
                  "Passes and traffic slow each other as measured beside this computation: of the "
                  "profile, e.g. gemm_256")
          .type("WORK");
  command
      .choice<bool>(
          "--processors", &a.contention.dedicated, {{"dedicated", true}, {"shared", false}},
          "Processors of computation and communication: separate ones (dedicated) or all for "
          "both (shared). With --contention")
      .defaults_to("dedicated")
      .needs(contention);

  add_precision(command, a);
  command.group("Inside one machine");
  const Argument inside =
      command
          .option("--inside", &a.inside,
                  "Sum inside one machine: the best mix of trees over its measured links, between "
                  "its GPUs, or its NUMA nodes if it has no GPU")
          .excludes(places);
  command
      .option("--machine", &a.place.machine,
              "Id of the machine: with --inside, which one. Default: the profile's first")
      .needs(inside);
  command
      .option("--network", number(&a.place.inside.network, 0, 1e6),
              "With --inside: gradients that the NICs send and receive in an iteration; 1 if other "
              "machines sum as well")
      .defaults_to("0")
      .needs(inside);
  command
      .option("--service", number(&a.place.inside.service, 0, 1e6),
              "With --inside: gradients that a summation service on this machine receives")
      .defaults_to("0")
      .needs(inside);
  command.option("--gpu-direct", &a.asked.gpu_direct,
                 "Whether NICs access GPU memory (=no: traffic between machines passes a "
                 "processor's memory). Default: yes between machines; with --inside no, and =yes "
                 "for GPUs under the same switch");

  command.group("Memory devices (coarse, dense)");
  command
      .option("--devices", whole_number(&a.asked.devices, 1, k_most_ranks_a_machine),
              "How many memory devices: with --places, of each machine's places, which then only "
              "sum; of 4 places with 2 devices every second one. Default: none")
      .excludes(roles)
      .excludes(inside);
  command
      .option("--proxy-bytes", automatic_or(&proxies.proxy_bytes, proxy_bytes_of),
              "The share of the gradient that goes through the proxies; the rest uses the workers' "
              "own ring: a size, all, or auto: by the predicted time")
      .defaults_to("auto");
  command
      .option("--bandwidth-slack", fraction_below_1(&proxies.tolerance),
              "How far below the greatest bandwidth still counts as full: of a shard")
      .defaults_to("2%");
  command
      .choice<std::optional<int>>(
          "--ring-directions", &proxies.ring_directions, {{"auto", {}}, {"1", 1}, {"2", 2}},
          "2: neighbouring rings of the proxies run in opposite directions; auto: by the predicted "
          "time")
      .defaults_to("auto");
  command
      .choice<bool>("--shards", &proxies.paper_shards, {{"auto", false}, {"paper", true}},
                    "paper: cut tensors into shards of S'; auto: of S' or less, by the predicted "
                    "time")
      .defaults_to("auto");
  command
      .choice<bool>("--queues", &proxies.one_queue, {{"client", false}, {"fcfs", true}},
                    "client: proxies serve one queue for each client; fcfs: one queue, first come, "
                    "first served, to show that it deadlocks")
      .defaults_to("client");

  command.group("Torus");
  command.option("--shape", &a.asked.shape,
                 "Torus LxVxH: local, vertical, horizontal nodes, the ranks, e.g. 4x4x4");
  command.option(
      "--configuration", &options.configuration,
      "Configuration of the endpoint: what moves the bytes, of a profile with an endpoint "
      "(docs/documents.md). Default: only the links count");
  command.renamed("--cores", "--processors");
  command.renamed("--tolerance", "--bandwidth-slack");
}

void set_argument(Arguments& command, const std::string& name, const std::string& value) {
  const std::vector<std::string> known{"async-steps",
                                       "backward",
                                       "bandwidth-slack",
                                       "collective",
                                       "cutting",
                                       "devices",
                                       "forward",
                                       "gpu-direct",
                                       "gradient-bound",
                                       "gradients",
                                       "k",
                                       "lanes",
                                       "machine",
                                       "n",
                                       "network",
                                       "optimizer",
                                       "order",
                                       "part-bytes",
                                       "places",
                                       "port-bandwidth",
                                       "proxy-bytes",
                                       "queues",
                                       "reduction",
                                       "ring-directions",
                                       "ring-order",
                                       "root",
                                       "server-port-bandwidth",
                                       "servers",
                                       "service",
                                       "shape",
                                       "shards",
                                       "strategy",
                                       "sums",
                                       "transport",
                                       "update",
                                       "window",
                                       "wire",
                                       "workers"};
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    if (const std::string now = command.now_called(name); !now.empty()) {
      fail(ErrorKind::usage, fmt::format("'{}' cannot be set: it is now '{}'", name, now));
    }
    const std::string near = did_you_mean(name, known);
    fail(ErrorKind::usage,
         near.empty() ? fmt::format("'{}' cannot be set; one of {}", name, fmt::join(known, ", "))
                      : fmt::format("'{}' cannot be set; did you mean '{}'?", name, near));
  }
  command.set(name == "n" ? "workers" : name == "k" ? "servers" : name, value);
}

Assignment split_assignment(const std::string& text, std::string_view flag) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size()) {
    fail(ErrorKind::usage, fmt::format("{} '{}': write name=value, e.g. servers=4", flag, text));
  }
  return {text.substr(0, equals), text.substr(equals + 1)};
}

PlanRequest request_of(const PlanArguments& a) {
  PlanRequest request = a.asked;
  PlanOptions& options = request.options;
  if (a.inside) {
    request.inside = a.place;
  }
  if (!a.contention.operation.empty()) {
    options.contention = a.contention;
  }
  if (a.async) {
    options.optimizer = options.optimizer.value_or(Optimizer::sgd);
    options.async_steps = a.async_steps;
  }
  if (a.bits) {
    options.fixed_point = FixedPointRequest{*a.bits, a.gradient_bound};
  } else if (a.gradient_bound != PlanArguments().gradient_bound) {
    fail(ErrorKind::usage, "--gradient-bound is for whole numbers: give --reduction fixed:BITS");
  }
  return request;
}

} // namespace reckon
