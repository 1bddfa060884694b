// SPDX-License-Identifier: Apache-2.0
#include "solve.hpp"

#include "equations/capacity.hpp"
#include "planning/prices.hpp"

#include <algorithm>
#include <array>
#include <cmath>

/// PHub: how many workers one parameter server supports, and what that costs.
namespace reckon::solve {
namespace {

constexpr std::array k_box_limit_names{"interfaces", "memory", "sums"};

WorkerDemand demand_of(const Given& given) {
  const bool by_bytes = given.has("--bytes");
  refuse_if(by_bytes == given.has("--workload"),
            "give the gradient's size by {}--bytes or by --workload{}", by_bytes ? "either " : "",
            by_bytes ? ", not by both" : "");
  WorkerDemand demand;
  demand.gradient_bytes =
      by_bytes ? given.positive("--bytes") : static_cast<double>(given.workload()->bytes());

  if (given.has("--batch")) {
    static_cast<void>(given.count("--batch"));
  }
  demand.iteration_s = given.positive("--iteration");

  return demand;
}

std::string limits_text(const BoxCapacity& capacity, const Given& given) {
  const std::string by = capacity.limited_by != BoxLimit::sums || !given.has("--step-bandwidth")
                             ? named(k_box_limit_names, capacity.limited_by)
                         : given.has("--sum-bandwidth") ? "sums and steps"
                                                        : "steps";
  Lines lines("{:<28} {:>12}");
  lines.append(capacity.workers == 0
                   ? fmt::format("one box supports no worker in {}: {} cannot keep up with one "
                                 "(47)\n\n",
                                 given.text("--iteration"), by)
                   : fmt::format("one box supports {}: limited by {} (47)\n\n",
                                 counted(capacity.workers, "worker"), by));
  const auto or_flag = [](const std::optional<std::uint64_t>& workers, const char* flag) {
    return workers ? fmt::format("{}", *workers) : fmt::format("give {}", flag);
  };
  lines("limit of", "workers");
  lines("the interfaces", capacity.interface_limit);
  lines("PCIe to memory", or_flag(capacity.memory_limit, "--memory-bandwidth"));
  lines("summation and steps", or_flag(capacity.sum_limit, "--sum-bandwidth"));
  return lines.text();
}

Answer answer_capacity(const Given& given) {
  const WorkerDemand demand = demand_of(given);
  const ServerBox box{.interfaces = given.count("--interfaces"),
                      .interface_bytes_per_s = given.number("--interface-bandwidth"),
                      .memory_bytes_per_s = given.optional_number("--memory-bandwidth"),
                      .sum_bytes_per_s = given.optional_number("--sum-bandwidth"),
                      .step_bytes_per_s = given.optional_number("--step-bandwidth")};
  const BoxCapacity capacity = box_capacity(box, demand);
  const std::uint64_t workers =
      given.count("--workers", std::max<std::uint64_t>(1, capacity.workers));
  std::optional<Prices> prices;
  if (given.has("--prices")) {
    prices = read_prices(given.text("--prices"));
    if (!prices->box) {
      fail(ErrorKind::input,
           fmt::format("{}: /: has no \"box\", the price of a server's box; add it", prices->file));
    }
  }
  const double link = given.number("--worker-bandwidth", box.interface_bytes_per_s);
  const std::vector<ServerPlacement> placements = server_placements(
      box, demand, workers, link,
      prices ? std::optional(BoxPrices{prices->worker, *prices->box, prices->server})
             : std::nullopt);
  double most = 0;
  for (const ServerPlacement& p : placements) {
    refuse_if(!std::isfinite(p.cost), "--prices {}: {} would cost more than any number says",
              given.text("--prices"), p.name);
    most = std::max(most, p.workers_per_cost);
  }

  Json rows = Json::array();
  Lines lines("{:<26} {:>8} {:>11}{}{}");
  lines(fmt::format("for {} (48)", counted(workers, "worker")), "servers", "iteration",
        given.has("--batch") ? fmt::format(" {:>10}", "samples/s") : "",
        prices ? fmt::format(" {:>12} {:>12}", fmt::format("{}/{}", prices->currency, prices->per),
                             fmt::format("per {}", prices->currency))
               : "");
  for (const ServerPlacement& p : placements) {
    Json& row = rows.emplace_back(
        Json{{"servers", p.servers}, {"name", p.name}, {"iteration_seconds", p.iteration_s}});
    std::string samples, cost;
    if (given.has("--batch")) {
      const double per_s = static_cast<double>(workers) *
                           static_cast<double>(given.count("--batch")) / p.iteration_s;
      row["samples_per_second"] = per_s;
      samples = fmt::format(" {:>10.1f}", per_s);
    }
    if (prices) {
      row["cost"] = p.cost;
      row["worker_iterations_per_second_and_cost"] = p.workers_per_cost;
      cost = fmt::format(" {:>12.4g} {:>11.1f}%", p.cost, 100 * p.workers_per_cost / most);
    }
    lines(p.name, p.servers, time_text(p.iteration_s), samples, cost);
  }
  if (prices) {
    lines.append(
        fmt::format("per {}: iterations for the same money, of the best here\n", prices->currency));
  }
  return {{{"workers", capacity.workers},
           {"limited_by", named(k_box_limit_names, capacity.limited_by)},
           {"interface_limit", capacity.interface_limit},
           {"memory_limit", or_null(capacity.memory_limit)},
           {"sum_limit", or_null(capacity.sum_limit)},
           {"boxes", placements.front().servers},
           {"boxes_workers", workers},
           {"placements", rows}},
          limits_text(capacity, given) + "\n" + lines.text()};
}

} // namespace

Calculator capacity() {
  return {"capacity",
          "How many workers one parameter server supports, and what limits it (PHub)",
          "--workload resnet50 --iteration 16.8ms --interfaces 10 --interface-bandwidth 56Gb/s "
          "--sum-bandwidth 60GB/s",
          {{"--bytes", Unit::bytes, "Size of the gradient: 100MB, 97.5MiB"},
           {"-m,--workload", Unit::text, "A workload: its gradient instead, by name or file"},
           required("--iteration", Unit::seconds, "Time of an iteration's compute: 168ms"),
           required("--interfaces", Unit::count, "Network interfaces of the server"),
           required("--interface-bandwidth", Unit::bandwidth,
                    "Bandwidth of each interface, each direction: 56Gb/s (bits), 7GB/s (bytes)"),
           {"--memory-bandwidth", Unit::bandwidth,
            "Between PCIe and memory, reads and writes together"},
           {"--sum-bandwidth", Unit::bandwidth,
            "Gradient bytes that all its cores take in and sum in a second"},
           {"--step-bandwidth", Unit::bandwidth,
            "Parameter bytes that they step; not at the same time as sums"},
           {"--workers", Unit::count,
            "How many work: with as many boxes as they need; default: as one box supports"},
           {"--worker-bandwidth", Unit::bandwidth,
            "A worker's link, each direction; default: as one interface"},
           {"--batch", Unit::count, "Samples of a worker in an iteration: a number"},
           {"--prices", Unit::text,
            "JSON file of prices: currency, per, worker, box and optionally server (one with a "
            "worker's "
            "link)"}},
          answer_capacity,
          "Equations 47 and 48 of docs/equations.md. A price file: "
          "{\"currency\": \"USD\", \"per\": \"hour\", \"worker\": 3, \"box\": 10}\n"
          "With --json, a limit is null where the box does not say."};
}

} // namespace reckon::solve
