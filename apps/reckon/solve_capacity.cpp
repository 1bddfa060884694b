// SPDX-License-Identifier: Apache-2.0
#include "solve.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/json.hpp"
#include "core/units.hpp"
#include "documents/document.hpp"
#include "equations/capacity.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace reckon {

using namespace solve_command;

namespace {

struct CapacityOptions {
  std::string bytes, workload, iteration, interface_bandwidth, memory_bandwidth, sum_bandwidth,
      step_bandwidth, worker_bandwidth, prices;
  std::int64_t interfaces = 0;
  std::optional<std::int64_t> workers, batch;
  bool json = false;
};

/// What things cost for the same time, in one currency.
struct Prices {
  std::string currency, per;
  double worker = 0, box = 0;
  std::optional<double> server; ///< a machine with one interface of a worker's bandwidth
};

Prices read_prices(const std::string& path) {
  const Json document = parse_json(read_file(path), path);
  const JsonView view(document, path);
  view.only({"currency", "per", "worker", "box", "server"});
  Prices prices;
  prices.currency = view.at("currency").name();
  prices.per = view.at("per").name();
  prices.worker = view.at("worker").positive(); // else shards on the workers would be free
  prices.box = view.at("box").non_negative();
  if (const auto server = view.find("server")) {
    prices.server = server->non_negative();
  }
  return prices;
}

/// One way to place the servers for so many workers.
struct Placement {
  std::string name;
  std::uint64_t servers = 0;
  double iteration_s = 0;
  double cost = 0;             ///< 0 without prices
  double workers_per_cost = 0; ///< worker iterations a second, for each unit of cost
};

struct CapacityAnswer {
  BoxCapacity capacity;
  std::uint64_t workers = 0, boxes = 1;
  std::vector<Placement> placements;
  std::optional<Prices> prices;
};

double optional_rate(const std::string& text, const char* flag) {
  const double rate = parse_bandwidth(text, flag).as_bytes_per_s();
  if (!(rate > 0)) {
    fail(ErrorKind::usage, fmt::format("{} {}: must be greater than 0", flag, text));
  }
  return rate;
}

CapacityAnswer answer(const CapacityOptions& options) {
  if (options.bytes.empty() == options.workload.empty()) {
    fail(ErrorKind::usage, fmt::format("give the gradient's size by {}--bytes or by --workload{}",
                                       options.bytes.empty() ? "" : "either ",
                                       options.bytes.empty() ? "" : ", not by both"));
  }
  WorkerDemand demand;
  demand.gradient_bytes = options.bytes.empty()
                              ? static_cast<double>(read_workload(options.workload).bytes())
                              : parse_bytes(options.bytes, "--bytes").as_double();
  if (!(demand.gradient_bytes > 0)) {
    fail(ErrorKind::usage, fmt::format("--bytes {}: must be greater than 0", options.bytes));
  }
  if (options.batch) {
    static_cast<void>(count_of(*options.batch, "--batch"));
  }
  demand.iteration_s = parse_seconds(options.iteration, "--iteration").count();
  if (!(demand.iteration_s > 0)) {
    fail(ErrorKind::usage,
         fmt::format("--iteration {}: must be greater than 0", options.iteration));
  }
  ServerBox box;
  box.interfaces = count_of(options.interfaces, "--interfaces");
  box.interface_bytes_per_s = optional_rate(options.interface_bandwidth, "--interface-bandwidth");
  const auto set = [](std::optional<double>& rate, const std::string& text, const char* flag) {
    if (!text.empty()) {
      rate = optional_rate(text, flag);
    }
  };
  set(box.memory_bytes_per_s, options.memory_bandwidth, "--memory-bandwidth");
  set(box.sum_bytes_per_s, options.sum_bandwidth, "--sum-bandwidth");
  set(box.step_bytes_per_s, options.step_bandwidth, "--step-bandwidth");

  CapacityAnswer out;
  out.capacity = box_capacity(box, demand);
  out.workers = options.workers ? count_of(*options.workers, "--workers")
                                : std::max<std::uint64_t>(1, out.capacity.workers);
  if (!options.prices.empty()) {
    out.prices = read_prices(options.prices);
  }
  const double link = options.worker_bandwidth.empty()
                          ? box.interface_bytes_per_s
                          : optional_rate(options.worker_bandwidth, "--worker-bandwidth");
  out.boxes = boxes_needed(box, demand, out.workers, link);
  const double n = static_cast<double>(out.workers);
  const auto place = [&](std::string name, std::uint64_t servers, double seconds,
                         double servers_cost) {
    Placement p{std::move(name), servers, seconds, 0, 0};
    if (out.prices) {
      p.cost = n * out.prices->worker + servers_cost;
      if (!std::isfinite(p.cost)) {
        fail(ErrorKind::usage, fmt::format("--prices {}: {} would cost more than any number says",
                                           options.prices, p.name));
      }
      p.workers_per_cost = n / seconds / p.cost;
    }
    out.placements.push_back(p);
  };
  place("boxes", out.boxes, iteration_with_boxes_s(box, demand, out.boxes, out.workers, link),
        out.prices ? static_cast<double>(out.boxes) * out.prices->box : 0);
  if (out.boxes > 1) {
    place("one box", 1, iteration_with_boxes_s(box, demand, 1, out.workers, link),
          out.prices ? out.prices->box : 0);
  }
  // Each worker has a shard: (n-1)/n of the gradient goes out to the others' shards, and as much
  // to each of the others from its own; the same comes in.
  place("a shard on each worker", 0,
        std::max(demand.iteration_s, 2 * (n - 1) / n * demand.gradient_bytes / link), 0);
  if (!out.prices || out.prices->server) {
    place("a server for each worker", out.workers,
          std::max(demand.iteration_s, demand.gradient_bytes / link),
          out.prices ? n * *out.prices->server : 0);
  }
  return out;
}

const char* name_of(BoxLimit limit) {
  switch (limit) {
  case BoxLimit::interfaces:
    return "interfaces";
  case BoxLimit::memory:
    return "memory";
  case BoxLimit::sums:
    return "sums";
  }
  return "?";
}

Json json_of(const CapacityAnswer& a, const CapacityOptions& options) {
  Json out;
  const auto number = [](const std::optional<std::uint64_t>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  out["workers"] = a.capacity.workers;
  out["limited_by"] = name_of(a.capacity.limited_by);
  out["interface_limit"] = a.capacity.interface_limit;
  out["memory_limit"] = number(a.capacity.memory_limit);
  out["sum_limit"] = number(a.capacity.sum_limit);
  out["boxes"] = a.boxes;
  out["boxes_workers"] = a.workers;
  out["placements"] = Json::array();
  for (const Placement& p : a.placements) {
    Json row{{"servers", p.servers}, {"name", p.name}, {"iteration_seconds", p.iteration_s}};
    if (a.prices) {
      row["cost"] = p.cost;
      row["worker_iterations_per_second_and_cost"] = p.workers_per_cost;
    }
    if (options.batch) {
      row["samples_per_second"] =
          static_cast<double>(a.workers) * static_cast<double>(*options.batch) / p.iteration_s;
    }
    out["placements"].push_back(row);
  }
  return out;
}

std::string text_of(const CapacityAnswer& a, const CapacityOptions& options) {
  const BoxCapacity& c = a.capacity;
  const std::string_view by = c.limited_by != BoxLimit::sums || options.step_bandwidth.empty()
                                  ? name_of(c.limited_by)
                              : options.sum_bandwidth.empty() ? "steps"
                                                              : "sums and steps";
  std::string text =
      c.workers == 0
          ? fmt::format("one box supports no worker in {}: {} cannot keep up with one (47)\n\n",
                        options.iteration, by)
          : fmt::format("one box supports {}: limited by {} (47)\n\n", counted(c.workers, "worker"),
                        by);
  const auto limit = [&](const char* name, const std::optional<std::uint64_t>& workers,
                         const char* flag) {
    text += fmt::format("{:<28} {:>12}\n", name,
                        workers ? fmt::format("{}", *workers) : fmt::format("give {}", flag));
  };
  text += fmt::format("{:<28} {:>12}\n", "limit of", "workers");
  limit("the interfaces", c.interface_limit, "");
  limit("PCIe to memory", c.memory_limit, "--memory-bandwidth");
  limit("summation and steps", c.sum_limit, "--sum-bandwidth");
  text +=
      fmt::format("\n{:<26} {:>8} {:>11}", fmt::format("for {} (48)", counted(a.workers, "worker")),
                  "servers", "iteration");
  text += options.batch ? fmt::format(" {:>10}", "samples/s") : "";
  text += a.prices ? fmt::format(" {:>12} {:>12}",
                                 fmt::format("{}/{}", a.prices->currency, a.prices->per),
                                 fmt::format("per {}", a.prices->currency))
                   : "";
  text += '\n';
  double most = 0;
  for (const Placement& p : a.placements) {
    most = std::max(most, p.workers_per_cost);
  }
  for (const Placement& p : a.placements) {
    text += fmt::format("{:<26} {:>8} {:>11}", p.name, p.servers, time_text(p.iteration_s));
    if (options.batch) {
      text += fmt::format(" {:>10.1f}", static_cast<double>(a.workers) *
                                            static_cast<double>(*options.batch) / p.iteration_s);
    }
    if (a.prices) {
      text += fmt::format(" {:>12.4g} {:>11.1f}%", p.cost, 100 * p.workers_per_cost / most);
    }
    text += '\n';
  }
  if (a.prices) {
    text += fmt::format("per {}: iterations for the same money, of the best here\n",
                        a.prices->currency);
  }
  return text;
}

} // namespace

Command add_solve_capacity(CLI::App& solve) {
  auto options = std::make_shared<CapacityOptions>();
  CLI::App* capacity = solve.add_subcommand(
      "capacity", "How many workers one parameter server supports, and what limits it (PHub)");
  capacity->add_option("--bytes", options->bytes, "Size of the gradient: 100MB, 97.5MiB");
  capacity->add_option("-m,--workload", options->workload, "or that of a model, by name or file");
  capacity->add_option("--iteration", options->iteration, "Time of an iteration's compute: 168ms")
      ->required();
  capacity->add_option("--interfaces", options->interfaces, "Network interfaces of the server")
      ->required();
  capacity
      ->add_option("--interface-bandwidth", options->interface_bandwidth,
                   "Of each, in each direction: 56Gb/s (bits), 7GB/s (bytes)")
      ->required();
  capacity->add_option("--memory-bandwidth", options->memory_bandwidth,
                       "Between PCIe and memory, reads and writes together");
  capacity->add_option("--sum-bandwidth", options->sum_bandwidth,
                       "Gradient bytes that all its cores take in and sum in a second");
  capacity->add_option("--step-bandwidth", options->step_bandwidth,
                       "Parameter bytes that they step; not at the same time as sums");
  capacity->add_option("--workers", options->workers,
                       "So many, with as many boxes as they need; default: as one box supports");
  capacity->add_option("--worker-bandwidth", options->worker_bandwidth,
                       "A worker's link, each direction; default: as one interface");
  capacity->add_option("--batch", options->batch, "Samples of a worker in an iteration");
  capacity->add_option("--prices", options->prices,
                       "JSON file: currency, per, worker, box and optionally server (one with a "
                       "worker's link)");
  capacity->add_flag("--json", options->json, "One JSON object on standard output");
  capacity->footer("Equations 47 and 48 of docs/equations.md. A price file: "
                   "{\"currency\": \"USD\", \"per\": \"hour\", \"worker\": 3, \"box\": 10}");
  return [options] {
    const CapacityAnswer solved = answer(*options);
    print(options->json ? canonical(json_of(solved, *options)) : text_of(solved, *options));
    return k_exit_ok;
  };
}

} // namespace reckon
