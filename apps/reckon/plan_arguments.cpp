// SPDX-License-Identifier: Apache-2.0
#include "plan_arguments.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "strategies/strategy.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace reckon {

void add_plan_options(Arguments& command, PlanArguments& a) {
  command.option("-p,--profile", &a.profile,
                 "What `reckon probe` wrote, or a shipped profile's name");
  command.option("-m,--workload", &a.workload,
                 "A workload (JSON, or CSV with the columns name,elements,dtype), or a shipped "
                 "model's name (--list)");
  command.option("-r,--roles", &a.roles, "Which machines work and which serve");
  command.option("-o,--output", &a.output, "Write the plan to this file");
  command.option("--workers", &a.workers,
                 "Ranks with gradients. Default: the processors of one machine, or all machines");
  command.option("--servers", &a.servers,
                 "Ranks that only sum. Default: none in a measured cluster, else the "
                 "profile's second group of machines");
  command.option(
      "--lanes", &a.lanes,
      "Threads a rank, each with its own endpoint. Default: as many as the summation and the "
      "machines' network ports need");
  command
      .option("--strategy", &a.strategy,
              fmt::format("auto, or one of {}, or over memory devices: coarse, dense, or "
                          "with --shape: torus, torus_scatter",
                          fmt::join(strategy_names(), ", ")))
      .shows_default();
  command.option("--shape", &a.shape,
                 "With --strategy torus: nodes LxVxH, local, vertical, horizontal; 4x4x4");
  command.option("--transport", &a.transport,
                 "Plan for this transport. Default: the fastest in the profile");
  command.option("--part-bytes", &a.part_bytes,
                 "Largest part, e.g. 4MiB. Default: by the predicted time");
  command.option("--window", &a.window,
                 "Parts of a worker under way in each lane: its credit. Default: solved");
  command
      .option("--cutting", &a.cutting,
              "fused: neighbouring tensors share equal parts; tensors: each tensor by itself")
      .shows_default();
  command.option("--forward", &a.forward,
                 "Play a forward pass of this time, so that only exposed traffic counts. "
                 "Default: the workload's");
  command.option("--backward", &a.backward,
                 "The same for the backward pass, which makes the gradients layer by layer");
  command.option("--inside", &a.inside,
                 "Sum inside one machine: the best mix of ways over its measured links, between "
                 "its GPUs, or its NUMA nodes where it has no GPU");
  command.option("--machine", &a.machine, "With --inside: which. Default: the profile's first");
  command
      .option("--network", &a.network,
              "With --inside: gradients that the NICs send, and receive, in an iteration; 1 "
              "where other machines sum as well")
      .shows_default();
  command
      .option("--service", &a.service,
              "With --inside: gradients that a summation service on this machine receives")
      .shows_default();
  command.option("--gpu-direct", &a.gpu_direct,
                 "With --inside: a NIC may read a GPU's memory under the same switch");
  command
      .option("--proxy-bytes", &a.proxy_bytes,
              "With --strategy coarse: gradient that goes through the proxies, the rest round "
              "the workers' own ring: a size, all, or auto: by the predicted time")
      .shows_default();
  command
      .option("--tolerance", &a.tolerance,
              "With --strategy coarse: how far below the full bandwidth a shard may stay")
      .shows_default();
  command
      .option("--ring-directions", &a.ring_directions,
              "With --strategy coarse: 2 lets neighbouring rings of the proxies run opposite "
              "ways; auto: by the predicted time")
      .shows_default();
  command
      .option("--shards", &a.shards,
              "With --strategy coarse: paper: tensors are cut into shards of S'; auto: of S' "
              "or less, by the predicted time")
      .shows_default();
  command
      .option("--queues", &a.queues,
              "With --strategy coarse: client: proxies work off a queue for each client at "
              "once; fcfs: one queue, first come, first served, to show that it deadlocks")
      .shows_default();
  command.option("--zero-compute", &a.zero_compute,
                 "Nothing is computed, whatever the workload says: all traffic counts");
  command
      .option("--order", &a.order,
              "gradient: parts go as the backward pass makes them; priority: first what the next "
              "forward pass needs first; auto: what leaves less exposed")
      .shows_default();
  command
      .option("--contention", &a.contention,
              "Predict that passes and traffic slow each other as the profile has it for this "
              "computation, e.g. gemm_256")
      .type("WORK");
  command
      .option("--cores", &a.cores,
              "With --contention: lanes and computation have processors of their own "
              "(dedicated), or all processors together (shared)")
      .shows_default();
  command
      .option("--optimizer", &a.optimizer,
              "Make this step part of the plan: none, sgd, momentum, rmsprop or adam")
      .shows_default();
  command
      .option("--update", &a.update,
              "Where the step is made: server, worker, or auto: by the predicted time")
      .shows_default();
  command.option("--async", &a.async,
                 "No worker waits for another: servers keep the latest parameters (SGD)");
  command
      .option("--async-steps", &a.async_steps,
              "With --async: steps of each worker in one iteration of a run")
      .shows_default();
  command
      .option("--reduction", &a.reduction,
              "sum, or fixed:BITS: as whole numbers whose sums fit in BITS, as in switches")
      .shows_default();
  command
      .option("--gradient-bound", &a.gradient_bound,
              "With --reduction fixed: magnitude that no gradient exceeds")
      .shows_default();
  command.option("--port-bandwidth", &a.port_bandwidth,
                 "What if every rank had a port of its own, e.g. 100Gb/s");
  command.option("--server-port-bandwidth", &a.server_port_bandwidth,
                 "The same for ranks that only serve");
  command.option("--set", &a.set, "Any of these settings as name=value: k=4, gpu-direct=yes, ...");
  command.option("--sweep", &a.sweep,
                 "Plan for many values of one setting: k=0..8, part-bytes=64KiB,1MiB");
  command.option("--explain", &a.explain,
                 "Each equation with its numbers, what binds and what would relieve it");
  command.option("--json", &a.json, "Print the plan (or the sweep) as JSON");
  command.option("-l,--list", &a.list, "List the shipped workloads and end");
  command.color(&a.color);
}

void set_argument(Arguments& command, const std::string& name, const std::string& value) {
  const std::vector<std::string> known{
      "async-steps",    "backward",  "cutting",   "forward",         "gpu-direct",
      "gradient-bound", "k",         "lanes",     "machine",         "n",
      "network",        "optimizer", "order",     "part-bytes",      "port-bandwidth",
      "proxy-bytes",    "queues",    "reduction", "ring-directions", "server-port-bandwidth",
      "servers",        "service",   "shape",     "shards",          "strategy",
      "tolerance",      "transport", "update",    "window",          "workers"};
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

std::uint64_t parse_count(const std::string& text, std::string_view what) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || value > 1'000'000) {
    fail(ErrorKind::usage, fmt::format("{}: '{}' is not a whole number up to 1000000", what, text));
  }
  return value;
}

} // namespace reckon
