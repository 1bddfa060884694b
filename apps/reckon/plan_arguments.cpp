// SPDX-License-Identifier: Apache-2.0
#include "plan_arguments.hpp"

#include "command_line.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "strategies/strategy.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <charconv>
#include <map>

namespace reckon {

void add_plan_options(CLI::App& command, PlanArguments& a) {
  command.add_option("-p,--profile", a.profile,
                     "What `reckon probe` wrote, or a shipped profile's name");
  command.add_option("-m,--workload", a.workload,
                     "A workload (JSON, or CSV with the columns name,elements,dtype), or a shipped "
                     "model's name (--list)");
  command.add_option("-r,--roles", a.roles, "Which machines work and which serve");
  command.add_option("-o,--output", a.output, "Write the plan to this file");
  command.add_option(
      "--workers", a.workers,
      "Ranks with gradients. Default: the processors of one machine, or all machines");
  command.add_option("--servers", a.servers,
                     "Ranks that only sum. Default: none in a measured cluster, else the "
                     "profile's second group of machines");
  command.add_option(
      "--lanes", a.lanes,
      "Threads a rank, each with its own endpoint. Default: as many as the summation and the "
      "machines' network ports need");
  command
      .add_option("--strategy", a.strategy,
                  fmt::format("auto, or one of {}, or over memory devices: coarse, dense, or "
                              "with --shape: torus, torus_scatter",
                              fmt::join(strategy_names(), ", ")))
      ->capture_default_str();
  command.add_option("--shape", a.shape,
                     "With --strategy torus: nodes LxVxH, local, vertical, horizontal; 4x4x4");
  command.add_option("--transport", a.transport,
                     "Plan for this transport. Default: the fastest in the profile");
  command.add_option("--part-bytes", a.part_bytes,
                     "Largest part, e.g. 4MiB. Default: by the predicted time");
  command.add_option("--window", a.window,
                     "Parts of a worker under way in each lane: its credit. Default: solved");
  command
      .add_option("--cutting", a.cutting,
                  "fused: neighbouring tensors share equal parts; tensors: each tensor by itself")
      ->capture_default_str();
  command.add_option("--forward", a.forward,
                     "Play a forward pass of this time, so that only exposed traffic counts. "
                     "Default: the workload's");
  command.add_option("--backward", a.backward,
                     "The same for the backward pass, which makes the gradients layer by layer");
  command.add_flag("--inside", a.inside,
                   "Sum inside one machine: the best mix of ways over its measured links, between "
                   "its GPUs, or its NUMA nodes where it has no GPU");
  command.add_option("--machine", a.machine, "With --inside: which. Default: the profile's first");
  command
      .add_option("--network", a.network,
                  "With --inside: gradients that the NICs send, and receive, in an iteration; 1 "
                  "where other machines sum as well")
      ->capture_default_str();
  command
      .add_option("--service", a.service,
                  "With --inside: gradients that a summation service on this machine receives")
      ->capture_default_str();
  command.add_flag_callback(
      "--gpu-direct", [&a] { a.gpu_direct = "yes"; },
      "With --inside: a NIC may read a GPU's memory under the same switch");
  command
      .add_option("--proxy-bytes", a.proxy_bytes,
                  "With --strategy coarse: gradient that goes through the proxies, the rest round "
                  "the workers' own ring: a size, all, or auto: by the predicted time")
      ->capture_default_str();
  command
      .add_option("--tolerance", a.tolerance,
                  "With --strategy coarse: how far below the full bandwidth a shard may stay")
      ->capture_default_str();
  command
      .add_option("--ring-directions", a.ring_directions,
                  "With --strategy coarse: 2 lets neighbouring rings of the proxies run opposite "
                  "ways; auto: by the predicted time")
      ->capture_default_str();
  command
      .add_option("--shards", a.shards,
                  "With --strategy coarse: paper: tensors are cut into shards of S'; auto: of S' "
                  "or less, by the predicted time")
      ->capture_default_str();
  command
      .add_option("--queues", a.queues,
                  "With --strategy coarse: client: proxies work off a queue for each client at "
                  "once; fcfs: one queue, first come, first served, to show that it deadlocks")
      ->capture_default_str();
  command.add_flag("--zero-compute", a.zero_compute,
                   "Nothing is computed, whatever the workload says: all traffic counts");
  command
      .add_option(
          "--order", a.order,
          "gradient: parts go as the backward pass makes them; priority: first what the next "
          "forward pass needs first; auto: what leaves less exposed")
      ->capture_default_str();
  command
      .add_option("--contention", a.contention,
                  "Predict that passes and traffic slow each other as the profile has it for this "
                  "computation, e.g. gemm_256")
      ->type_name("WORK");
  command
      .add_option("--cores", a.cores,
                  "With --contention: lanes and computation have processors of their own "
                  "(dedicated), or all processors together (shared)")
      ->capture_default_str();
  command
      .add_option("--optimizer", a.optimizer,
                  "Make this step part of the plan: none, sgd, momentum, rmsprop or adam")
      ->capture_default_str();
  command
      .add_option("--update", a.update,
                  "Where the step is made: server, worker, or auto: by the predicted time")
      ->capture_default_str();
  command.add_flag("--async", a.async,
                   "No worker waits for another: servers keep the latest parameters (SGD)");
  command
      .add_option("--async-steps", a.async_steps,
                  "With --async: steps of each worker in one iteration of a run")
      ->capture_default_str();
  command
      .add_option("--reduction", a.reduction,
                  "sum, or fixed:BITS: as whole numbers whose sums fit in BITS, as in switches")
      ->capture_default_str();
  command
      .add_option("--gradient-bound", a.gradient_bound,
                  "With --reduction fixed: magnitude that no gradient exceeds")
      ->capture_default_str();
  command.add_option("--port-bandwidth", a.port_bandwidth,
                     "What if every rank had a port of its own, e.g. 100Gb/s");
  command.add_option("--server-port-bandwidth", a.server_port_bandwidth,
                     "The same for ranks that only serve");
  command.add_option("--set", a.set,
                     "Any of these settings as name=value: k=4, gpu-direct=yes, ...");
  command.add_option("--sweep", a.sweep,
                     "Plan for many values of one setting: k=0..8, part-bytes=64KiB,1MiB");
  command.add_flag("--explain", a.explain,
                   "Each equation with its numbers, what binds and what would relieve it");
  command.add_flag("--json", a.json, "Print the plan (or the sweep) as JSON");
  command.add_flag("-l,--list", a.list, "List the shipped workloads and end");
  add_color_option(command, a.color);
}

void set_argument(PlanArguments& a, const std::string& name, const std::string& value) {
  const std::map<std::string, std::string*> known{
      {"n", &a.workers},
      {"workers", &a.workers},
      {"k", &a.servers},
      {"servers", &a.servers},
      {"lanes", &a.lanes},
      {"part-bytes", &a.part_bytes},
      {"window", &a.window},
      {"strategy", &a.strategy},
      {"shape", &a.shape},
      {"transport", &a.transport},
      {"cutting", &a.cutting},
      {"forward", &a.forward},
      {"backward", &a.backward},
      {"order", &a.order},
      {"optimizer", &a.optimizer},
      {"update", &a.update},
      {"async-steps", &a.async_steps},
      {"reduction", &a.reduction},
      {"gradient-bound", &a.gradient_bound},
      {"machine", &a.machine},
      {"network", &a.network},
      {"service", &a.service},
      {"gpu-direct", &a.gpu_direct},
      {"proxy-bytes", &a.proxy_bytes},
      {"tolerance", &a.tolerance},
      {"ring-directions", &a.ring_directions},
      {"queues", &a.queues},
      {"shards", &a.shards},
      {"port-bandwidth", &a.port_bandwidth},
      {"server-port-bandwidth", &a.server_port_bandwidth}};
  const auto it = known.find(name);
  if (it == known.end()) {
    std::vector<std::string> names;
    for (const auto& [key, text] : known) {
      names.push_back(key);
    }
    const std::string near = did_you_mean(name, names);
    fail(ErrorKind::usage,
         near.empty() ? fmt::format("'{}' cannot be set; one of {}", name, fmt::join(names, ", "))
                      : fmt::format("'{}' cannot be set; did you mean '{}'?", name, near));
  }
  *it->second = value;
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
