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

Take places(PlanRequest* to) {
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
Take bytes_per_s(std::optional<double>* to) {
  return [to](const std::string& text, std::string_view flag) {
    *to = parse_bandwidth(text, flag).as_bytes_per_s();
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

} // namespace

void add_plan_options(Arguments& command, PlanArguments& a) {
  PlanOptions& options = a.asked.options;
  ProxyOptions& proxies = a.asked.proxies;
  command.option("-p,--profile", &a.profile,
                 "What `reckon probe` wrote, or a shipped profile's name");
  command.option("-m,--workload", &a.workload,
                 "A workload (JSON, or CSV with the columns name,elements,dtype), or a shipped "
                 "model's name (--list)");
  const Argument roles =
      command.option("-r,--roles", &a.roles, "Which machines work and which serve");
  const Argument output = command.option("-o,--output", &a.output, "Write the plan to this file");
  command
      .option("--workers", whole_number(&a.asked.workers, 1, k_most_ranks),
              "How many ranks have a gradient. Where the ranks are GPUs or NUMA nodes: how many "
              "machines work, with all that they have. Default: all machines of the profile, and "
              "of a single one as many ranks as it has processors")
      .excludes(roles);
  command
      .option("--servers", whole_number(&a.asked.servers, 0, k_most_ranks),
              "How many ranks only sum, without a gradient of their own: machines, beside those of "
              "--workers. Default: none; the last candidate says what some would give")
      .excludes(roles);
  command
      .option("--lanes", automatic_or_count(&a.asked.lanes, 1024),
              "Threads a rank, each with its own endpoint. Default: as many as the summation and "
              "the machines' network ports need")
      .excludes(roles);
  command
      .option(
          "--strategy", &options.strategy,
          fmt::format("auto compares all that apply; or one of {}, rack_hierarchical, optimum "
                      "(the best of all trees), over memory devices coarse, dense, with --shape "
                      "torus, torus_scatter, or between GPUs any that the plan's table shows",
                      fmt::join(strategy_names(), ", ")))
      .shows_default();
  command.option("--shape", &a.asked.shape,
                 "The ranks are a torus of LxVxH nodes, local, vertical, horizontal: 4x4x4");
  command.option(
      "--configuration", &options.configuration,
      "With --shape and a profile with an endpoint: which of its configurations moves the "
      "bytes (docs/documents.md); default: only the links count");
  command.option("--transport", &options.transport,
                 "Plan for this transport. Default: the fastest in the profile");
  command.option("--part-bytes",
                 automatic_or(&options.part_bytes,
                              [](const std::string& text, std::string_view flag) {
                                return parse_bytes(text, flag).count();
                              }),
                 "Largest part, e.g. 4MiB. Default: by the predicted time");
  command.option("--window", automatic_or_count(&options.window_parts, k_most_ranks),
                 "Parts of a worker under way in each lane: its credit. Default: solved");
  command
      .choice<Cutting>(
          "--cutting", &options.cutting, {{"fused", Cutting::fused}, {"tensors", Cutting::tensors}},
          "fused: neighbouring tensors share equal parts; tensors: each tensor by itself")
      .defaults_to("fused");
  command.option("--forward", seconds(&options.forward_seconds),
                 "Play a forward pass of this time, so that only exposed traffic counts. "
                 "Default: the workload's");
  command.option("--backward", seconds(&options.backward_seconds),
                 "The same for the backward pass, which makes the gradients layer by layer");
  const Argument inside = command.option(
      "--inside", &a.inside,
      "Sum inside one machine: the best mix of ways over its measured links, between "
      "its GPUs, or its NUMA nodes where it has no GPU");
  command
      .option("--places", places(&a.asked),
              "What a rank is: a machine, or every NUMA node or GPU of each, or N ranks a machine "
              "(2,4,4: of each machine), which share its memory; --workers and --servers count "
              "machines. Default: "
              "gpu where the profile knows the links between GPUs, else machine")
      .type("machine|numa|gpu|N")
      .excludes(roles)
      .excludes(inside);
  command
      .option("--devices", whole_number(&a.asked.devices, 1, k_most_ranks_a_machine),
              "With --places: how many of each machine's places are memory devices, which only sum "
              "(COARSE); of 4 places with 2 devices every second one. Default: none")
      .excludes(roles)
      .excludes(inside);
  command
      .choice<Collective>("--collective", &a.asked.collective,
                          {{"all-reduce", Collective::all_reduce},
                           {"reduce-scatter", Collective::reduce_scatter},
                           {"all-gather", Collective::all_gather},
                           {"broadcast", Collective::broadcast},
                           {"reduce", Collective::reduce}},
                          "With --inside or --places numa or gpu: what the workers exchange: "
                          "all-reduce, reduce-scatter, all-gather, broadcast or reduce")
      .defaults_to("all-reduce");
  command.option("--root", automatic_or_count(&a.asked.root, k_most_ranks, 0),
                 "With --collective broadcast or reduce: the rank it is from or to. Default: 0");
  command
      .option("--machine", &a.place.machine, "With --inside: which. Default: the profile's first")
      .needs(inside);
  command
      .option("--network", number(&a.place.inside.network, 0, 1e6),
              "With --inside: gradients that the NICs send, and receive, in an iteration; 1 "
              "where other machines sum as well")
      .defaults_to("0")
      .needs(inside);
  command
      .option("--service", number(&a.place.inside.service, 0, 1e6),
              "With --inside: gradients that a summation service on this machine receives")
      .defaults_to("0")
      .needs(inside);
  command.option("--gpu-direct", &a.asked.gpu_direct,
                 "Whether network cards read and write GPUs' memory (=no: what leaves a machine or "
                 "enters it goes by way of a processor's memory). Default: yes between machines; "
                 "with --inside no, and =yes for those under the same switch");
  command
      .option("--proxy-bytes", automatic_or(&proxies.proxy_bytes, proxy_bytes_of),
              "With --strategy coarse: gradient that goes through the proxies, the rest round "
              "the workers' own ring: a size, all, or auto: by the predicted time")
      .defaults_to("auto");
  command
      .option("--tolerance", fraction_below_1(&proxies.tolerance),
              "With --strategy coarse: how far below the full bandwidth a shard may stay")
      .defaults_to("2%");
  command
      .choice<std::optional<int>>(
          "--ring-directions", &proxies.ring_directions, {{"auto", {}}, {"1", 1}, {"2", 2}},
          "With --strategy coarse: 2 lets neighbouring rings of the proxies run opposite "
          "ways; auto: by the predicted time")
      .defaults_to("auto");
  command
      .choice<bool>("--shards", &proxies.paper_shards, {{"auto", false}, {"paper", true}},
                    "With --strategy coarse: paper: tensors are cut into shards of S'; auto: of S' "
                    "or less, by the predicted time")
      .defaults_to("auto");
  command
      .choice<bool>("--queues", &proxies.one_queue, {{"client", false}, {"fcfs", true}},
                    "With --strategy coarse: client: proxies work off a queue for each client at "
                    "once; fcfs: one queue, first come, first served, to show that it deadlocks")
      .defaults_to("client");
  command.option("--zero-compute", &options.zero_compute,
                 "Nothing is computed, whatever the workload says: all traffic counts");
  command
      .choice<Order>(
          "--order", &options.order,
          {{"auto", Order::automatic},
           {"gradient", Order::gradient},
           {"priority", Order::priority}},
          "gradient: parts go as the backward pass makes them; priority: first what the next "
          "forward pass needs first; auto: what leaves less exposed")
      .defaults_to("auto");
  command
      .choice<std::optional<bool>>(
          "--sums", &options.sums_in_place,
          {{"auto", {}}, {"sent", false}, {"in-place", true}, {"in_place", true}},
          "Between ranks of one machine: in-place: the rank that sums a part reads all gradients "
          "where they lie and writes the sum there; sent: they are sent to it; auto: by the "
          "predicted time")
      .defaults_to("auto");
  command
      .choice<RingOrdering>(
          "--ring-order", &options.ring_order,
          {{"best", RingOrdering::best}, {"given", RingOrdering::given}},
          "best: a ring goes round the workers as their links are fastest; given: "
          "as ranks are numbered")
      .defaults_to("best");
  const Argument contention =
      command
          .option("--contention", &a.contention.operation,
                  "Predict that passes and traffic slow each other as the profile has it for this "
                  "computation, e.g. gemm_256")
          .type("WORK");
  command
      .choice<bool>("--cores", &a.contention.dedicated, {{"dedicated", true}, {"shared", false}},
                    "With --contention: lanes and computation have processors of their own "
                    "(dedicated), or all processors together (shared)")
      .defaults_to("dedicated")
      .needs(contention);
  command
      .choice<std::optional<Optimizer>>(
          "--optimizer", &options.optimizer,
          {{"none", {}},
           {"sgd", Optimizer::sgd},
           {"momentum", Optimizer::momentum},
           {"rmsprop", Optimizer::rmsprop},
           {"adam", Optimizer::adam}},
          "Make this step part of the plan: none, sgd, momentum, rmsprop or adam")
      .defaults_to("none");
  command
      .choice<std::optional<UpdatePlace>>(
          "--update", &options.update_at,
          {{"auto", {}}, {"server", UpdatePlace::server}, {"worker", UpdatePlace::worker}},
          "Where the step is made: server, worker, or auto: by the predicted time")
      .defaults_to("auto");
  const Argument async = command.option(
      "--async", &a.async, "No worker waits for another: servers keep the latest parameters (SGD)");
  command
      .option("--async-steps", whole_number(&a.async_steps, 1, 1000),
              "With --async: steps of each worker in one iteration of a run")
      .defaults_to("4")
      .needs(async);
  command
      .option("--reduction", reduction_bits(&a.bits),
              "sum, or fixed:BITS: as whole numbers whose sums fit in BITS, as in switches")
      .defaults_to("sum");
  command
      .option("--gradient-bound", number(&a.gradient_bound, 1e-30, 1e30), // what scales fp32
              "With --reduction fixed: magnitude that no gradient exceeds")
      .defaults_to("1");
  command.option("--port-bandwidth", bytes_per_s(&options.what_if.worker_port_bytes_per_s),
                 "What if every rank had a port of its own, e.g. 100Gb/s");
  command.option("--server-port-bandwidth", bytes_per_s(&options.what_if.server_port_bytes_per_s),
                 "The same for ranks that only serve");
  command.option("--set", &a.set, "Any of these settings as name=value: k=4, gpu-direct=yes, ...");
  const Argument sweep =
      command
          .option("--sweep", &a.sweep,
                  "Plan for many values of one setting: k=0..8, part-bytes=64KiB,1MiB")
          .excludes(output);
  command
      .option("--explain", &a.explain,
              "Each equation with its numbers, what binds and what would relieve it")
      .excludes(sweep);
  command.option("--json", &a.json, "Print the plan (or the sweep) as JSON");
  command.option("-l,--list", &a.list, "List the shipped workloads and end");
  command.color(&a.color);
}

void set_argument(Arguments& command, const std::string& name, const std::string& value) {
  const std::vector<std::string> known{
      "async-steps", "backward",        "collective",  "cutting",
      "devices",     "forward",         "gpu-direct",  "gradient-bound",
      "k",           "lanes",           "machine",     "n",
      "network",     "optimizer",       "order",       "part-bytes",
      "places",      "port-bandwidth",  "proxy-bytes", "queues",
      "reduction",   "ring-directions", "ring-order",  "server-port-bandwidth",
      "servers",     "service",         "root",        "shape",
      "shards",      "strategy",        "sums",        "tolerance",
      "transport",   "update",          "window",      "workers"};
  if (std::find(known.begin(), known.end(), name) == known.end()) {
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
    fail(ErrorKind::usage, fmt::format("{} '{}': write name=value, e.g. k=4", flag, text));
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
