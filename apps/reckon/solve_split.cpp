// SPDX-License-Identifier: Apache-2.0
#include "solve.hpp"

#include "core/split.hpp"
#include "equations/aggregation.hpp"
#include "equations/split.hpp"

#include <algorithm>
#include <array>
#include <cmath>

/// BytePS: between machines and inside one.
namespace reckon::solve {
namespace {

// ---------------------------------------------------------------- split

constexpr std::array k_star_limit_names{"nothing", "slowest_workers", "all_ports", "servers"};

/// The bandwidths of the workers or of the servers, from a list or from a count and one bandwidth.
std::vector<double> bandwidths_of(const Given& given, const std::string& what,
                                  const std::string& one_flag) {
  const std::string list_flag = fmt::format("--{}-bandwidths", what);
  const std::string count_flag = fmt::format("--{}s", what);
  const std::optional<std::int64_t> count = given.integer(count_flag);
  const std::int64_t machines = count.value_or(0);
  refuse_if(machines < 0 || machines > k_most_machines, "{} {}: must be between 0 and {}",
            count_flag, machines, k_most_machines);
  if (given.has(list_flag)) {
    std::vector<double> out;
    for (const std::string& one : reckon::split(given.text(list_flag), ",")) {
      out.push_back(parse_bandwidth(one, list_flag).as_bytes_per_s());
    }
    refuse_if(count && static_cast<std::size_t>(machines) != out.size(),
              "{0} has {1} for {2} {3}; give one each, or leave {2} out", list_flag,
              counted(out.size(), "bandwidth"), count_flag, machines);
    return out;
  }
  if (machines == 0) {
    return {};
  }
  refuse_if(!given.has(one_flag), "the bandwidth of the {}s is missing; give {} or {}", what,
            one_flag, list_flag);
  return std::vector<double>(static_cast<std::size_t>(machines), given.number(one_flag));
}

Star star_of(const Given& given) {
  Star star;
  star.model_bytes = given.number("--bytes");
  refuse_if(!given.has("--worker-bandwidths") && given.integer("--workers").value_or(0) == 0, "{}",
            given.integer("--workers")
                ? "--workers 0: at least one worker is needed"
                : "the workers are missing; give --workers or --worker-bandwidths");
  star.worker_bytes_per_s = bandwidths_of(given, "worker", "--bandwidth");
  star.server_bytes_per_s = bandwidths_of(
      given, "server", given.has("--server-bandwidth") ? "--server-bandwidth" : "--bandwidth");
  return star;
}

/// `equal`: one line for all workers and one for all servers.
std::string shares_table(const Star& star, const StarSplit& best, bool equal,
                         const std::optional<SlotCounts>& slots) {
  Lines lines("{:<14} {:>12} {:>12} {:>12} {:>6}{}");
  lines(equal ? "each" : "machine", "port", "sums", "carries", "busy", slots ? "   slots" : "");
  const auto rows = [&](const char* what, const std::vector<double>& rate,
                        const std::vector<double>& share, const std::vector<double>& carried,
                        std::uint64_t slots_each) {
    const std::size_t shown = std::min(rate.size(), equal ? 1 : k_most_rows);
    for (std::size_t i = 0; i < shown; ++i) {
      const double busy = best.time_s > 0 ? 100 * carried[i] / rate[i] / best.time_s : 0;
      lines(equal ? counted(rate.size(), what) : fmt::format("{} {}", what, i), rate_text(rate[i]),
            bytes_text(share[i]), bytes_text(carried[i]), fmt::format("{:.0f} %", busy),
            slots ? fmt::format(" {:>7}", slots_each) : "");
    }
    if (!equal) {
      lines.append(rows_left_out(rate.size(), shown, what));
    }
  };
  rows("worker", star.worker_bytes_per_s, best.shares.worker_bytes, best.traffic.worker_port_bytes,
       slots ? slots->per_worker : 0);
  rows("server", star.server_bytes_per_s, best.shares.server_bytes, best.traffic.server_port_bytes,
       slots ? slots->per_server : 0);
  return lines.text();
}

/// What sets the time, and how much less it would be with the nearest remedies: solved again, not
/// extrapolated.
std::string limit_text(const Star& star, const StarSplit& best) {
  const auto remedy = [&](const char* name, const Star& more) {
    return remedy_text(name, solve_star_split(more).time_s, best.time_s);
  };
  const auto tenth_faster = [](std::vector<double>& rates) {
    for (double& rate : rates) {
      rate *= 1.1;
    }
  };
  if (best.limit == StarLimit::nothing) {
    return "limit: none, nothing crosses a port\n";
  }
  Star more = star;
  std::vector<double>& workers = more.worker_bytes_per_s;
  std::vector<double>& servers = more.server_bytes_per_s;
  if (best.limit == StarLimit::slowest_workers) {
    constexpr std::size_t k_most_named = 8;
    const std::vector<std::size_t>& slowest = best.limiting_workers;
    for (const std::size_t i : slowest) {
      workers[i] *= 1.1;
    }
    const auto end =
        slowest.begin() + static_cast<std::ptrdiff_t>(std::min(slowest.size(), k_most_named));
    return (slowest.size() == workers.size()
                ? "limit: the workers' ports; no server can help, each worker must send and "
                  "receive M\n"
                : fmt::format("limit: the port of worker {}{}; no server can help, it must send "
                              "and receive M\n",
                              fmt::join(slowest.begin(), end, ", "),
                              slowest.size() > k_most_named ? ", ..." : "")) +
           remedy("with that 10 % faster", more);
  }
  servers.push_back(servers.empty() ? workers.front() : servers.back());
  std::string text = "limit: every port is busy all the time\n" +
                     remedy(servers.size() == 1 ? "with one server" : "with one more server", more);
  servers.pop_back();
  if (!servers.empty()) {
    tenth_faster(servers);
    text += remedy("with servers' ports 10 % faster", more);
    servers = star.server_bytes_per_s;
  }
  tenth_faster(workers);
  return text + remedy("with workers' ports 10 % faster", more);
}

Answer answer_split(const Given& given) {
  const Star star = star_of(given);
  const std::size_t n = star.worker_bytes_per_s.size();
  const std::size_t k = star.server_bytes_per_s.size();
  const bool equal = !given.has("--worker-bandwidths") && !given.has("--server-bandwidths");
  const StarSplit best = equal ? solve_equal_star(star) : solve_star_split(star);
  std::optional<SlotCounts> slots;
  if (equal && (k == 0 || star.server_bytes_per_s.front() == star.worker_bytes_per_s.front())) {
    slots = slot_counts(n, k);
  }
  const double allreduce_s = ring_allreduce_s(star.model_bytes, star.worker_bytes_per_s);
  const std::optional<StarSplit> parameter_server = solve_parameter_server(star);

  Answer answer;
  answer.text = fmt::format("M = {} ({:.0f} B), n = {}, k = {}\n\n", bytes_text(star.model_bytes),
                            star.model_bytes, n, k);
  std::vector<Strategy> strategies{
      {"best split", "time_seconds", best.time_s,
       n == 1   ? "the worker keeps everything (8)"
       : n == 2 ? "M / min B (8)"
       : slots  ? fmt::format("2n(n-1)M / (D B), D = n^2 + kn - 2k = {} (7)", slots->total)
                : "max(M / min B, M (1 + n/(n-2)) / (sum B/(n-2) + sum S/n)) (8)"},
      {"ring all-reduce", "allreduce_seconds", allreduce_s,
       equal ? "2(n-1)M / (n B) (1)" : "2(n-1)M / (n min B) (1)"},
      {"colocated servers", "colocated_parameter_server_seconds",
       solve_colocated_parameter_server(star).time_s,
       equal ? "2(n-1)M / (n B) (3)" : "2(n-1)M / (n min B) (3)"}};
  if (parameter_server) {
    strategies.push_back({"parameter server", "parameter_server_seconds", parameter_server->time_s,
                          equal ? "max(M / B, nM / (k S)) (2)" : "max(M / min B, nM / sum S) (2)"});
  }
  const auto per_machine = [&](const std::vector<double>& values) {
    // Without a server each holds and carries nothing.
    return equal ? Json(values.empty() ? 0.0 : values.front()) : Json(values);
  };
  answer.json = {
      {"workers", n},
      {"servers", k},
      {"model_bytes", static_cast<std::uint64_t>(star.model_bytes)},
      {"worker_share_bytes", per_machine(best.shares.worker_bytes)},
      {"server_share_bytes", per_machine(best.shares.server_bytes)},
      {"worker_port_bytes", per_machine(best.traffic.worker_port_bytes)},
      {"server_port_bytes", per_machine(best.traffic.server_port_bytes)},
      {"speedup_over_allreduce", ratio_or_null(allreduce_s, best.time_s)},
      {"parameter_server_seconds", nullptr},
      {"speedup_over_parameter_server",
       parameter_server ? ratio_or_null(parameter_server->time_s, best.time_s) : Json(nullptr)},
      {"slots", slots ? Json(slots->total) : Json(nullptr)},
      {"slots_per_worker", slots ? Json(slots->per_worker) : Json(nullptr)},
      {"slots_per_server", slots ? Json(slots->per_server) : Json(nullptr)},
      {"limit", named(k_star_limit_names, best.limit)},
      {"limiting_workers", best.limiting_workers}};
  answer.add("best", strategies);
  answer.text += "\n" + shares_table(star, best, equal, slots) + "\n" + limit_text(star, best);
  return answer;
}

// ---------------------------------------------------------------- aggregation

constexpr std::array k_link_names{"the GPUs' links", "the switches' links", "both kinds of links"};

Answer answer_aggregation(const Given& given) {
  const SwitchTree tree{.gpus_per_switch = given.count("--gpus-per-switch"),
                        .switches = given.count("--switches"),
                        .model_bytes = given.number("--bytes"),
                        .gpu_bytes_per_s = given.number("--gpu-link"),
                        .switch_bytes_per_s = given.number("--switch-link")};
  const bool leaves = tree.switches > 1; // the ring leaves a switch
  const double slowest =
      leaves ? std::min(tree.gpu_bytes_per_s, tree.switch_bytes_per_s) : tree.gpu_bytes_per_s;
  const double bottleneck = given.number("--bottleneck", slowest);
  refuse_if(bottleneck > slowest,
            "--bottleneck {}: a ring's slowest hop is no faster than {}, the slowest link it "
            "passes; give less, or leave it out",
            given.text("--bottleneck"), rate_text(slowest));
  const AggregationMix mix = solve_aggregation(tree);
  const double assisted_s = cpu_assisted_s(tree);
  const double brute_force_s = aggregation_s(tree, 1);
  const double ring_s = ring_aggregation_s(tree, bottleneck);
  Answer answer;
  answer.text =
      fmt::format("M = {} ({:.0f} B), n = {} a switch, p = {}\n\n", bytes_text(tree.model_bytes),
                  tree.model_bytes, counted(tree.gpus_per_switch, "GPU", "GPUs"),
                  counted(tree.switches, "switch", "switches"));
  answer.json = {{"brute_force_fraction", mix.brute_force_fraction},
                 {"ring_saving", ring_s > 0 ? Json(1 - assisted_s / ring_s) : Json(nullptr)}};
  answer.add("mix",
             {{"best CPU mix", "time_seconds", mix.time_s,
               fmt::format("{:.4g} of the bytes by brute force, the rest CPU-assisted (23)",
                           mix.brute_force_fraction)},
              {"CPU-assisted", "cpu_assisted_seconds", assisted_s,
               "M / b_S max(1, (2n-1)/(k n)), k = b_N / b_S (24)"},
              {"brute force", "brute_force_seconds", brute_force_s, "max(M / b_N, n M / b_S) (23)"},
              {"ring all-reduce", "ring_seconds", ring_s,
               fmt::format("2(np-1)M / (np b), b = {}{} (24)", rate_text(bottleneck),
                           given.has("--bottleneck") ? ""
                           : leaves                  ? ", the slower link"
                                                     : ", the GPUs' links")}});
  if (ring_s > 0) {
    const double less = 1 - assisted_s / ring_s;
    constexpr double k_same = 5e-5; // prints as 0.00 %
    answer.text += std::abs(less) < k_same
                       ? "\nCPU-assisted takes as long as the ring\n"
                       : fmt::format("\nCPU-assisted takes {:.2f} % {} than the ring\n",
                                     100 * std::abs(less), less > 0 ? "less" : "more");
    if (const double gain = 1 - ring_s / mix.time_s; gain >= k_same) {
      answer.text +=
          fmt::format("the ring takes {:.2f} % less than the best CPU mix\n", 100 * gain);
    }
  } else if (mix.time_s > 0) {
    answer.text += "\none GPU is a whole ring and sends nothing; a CPU mix still brings its "
                   "gradient to the processor\n";
  }
  if (mix.time_s > 0) {
    SwitchTree gpu_links = tree, switch_links = tree;
    gpu_links.gpu_bytes_per_s *= 1.1;
    switch_links.switch_bytes_per_s *= 1.1;
    answer.text +=
        fmt::format("\nlimit: {}\n", named(k_link_names, mix.limit)) +
        remedy_text("with GPU links 10 % faster", solve_aggregation(gpu_links).time_s, mix.time_s) +
        remedy_text("with switch links 10 % faster", solve_aggregation(switch_links).time_s,
                    mix.time_s);
  }
  return answer;
}

} // namespace

Calculator split() {
  return {
      "split",
      "How n workers and k servers best share the summation of a gradient, and how long the "
      "exchange takes",
      "--workers 8 --servers 4 --bytes 553MB --bandwidth 100Gb/s",
      {{"--workers", Unit::count,
        "How many work: GPU machines; may be left out with --worker-bandwidths"},
       {"--servers", Unit::count,
        "How many machines only sum: default 0, or as --server-bandwidths has it"},
       required("--bytes", Unit::bytes, "Size of the gradient: 553MB, 512MiB"),
       {"--bandwidth", Unit::bandwidth,
        "Bandwidth of a port, each direction: of every machine's, 100Gb/s (bits), 12.5GB/s "
        "(bytes)"},
       {"--server-bandwidth", Unit::bandwidth, "Of every server's port, where it is another one"},
       {"--worker-bandwidths",
        Unit::text,
        "One bandwidth a worker, comma-separated",
        "",
        {"--bandwidth"}},
       {"--server-bandwidths",
        Unit::text,
        "One bandwidth a server, comma-separated",
        "",
        {"--server-bandwidth"}}},
      answer_split,
      "Equations 1 to 11 of docs/equations.md. With --json, shares are arrays when a list of "
      "bandwidths was given;\n"
      "the parameter server's time is null without servers, slots are null for n < 2, k > n or "
      "unequal\n"
      "bandwidths, and speed-ups are null when nothing has to be moved. limit is all_ports, "
      "slowest_workers,\nnumbered from 0 in limiting_workers, or nothing."};
}

Calculator aggregation() {
  return {"aggregation",
          "How GPUs below PCIe switches best sum through the processor's memory",
          "--gpus-per-switch 4 --switches 2 --gpu-link 105Gb/s --switch-link 105Gb/s --bytes 1GB",
          {required("--gpus-per-switch", Unit::count, "GPUs below each switch"),
           required("--switches", Unit::count, "PCIe switches"),
           required("--gpu-link", Unit::bandwidth,
                    "A GPU's link to its switch, each direction: 105Gb/s (bits), 13.1GB/s (bytes)"),
           required("--switch-link", Unit::bandwidth, "A switch's link to the processor"),
           required("--bytes", Unit::bytes, "Size of the gradient: 1GB, 512MiB"),
           {"--bottleneck", Unit::bandwidth,
            "The slowest hop of a ring over all GPUs; default: the slower of the two links"}},
          answer_aggregation,
          "Equations 23 and 24 of docs/equations.md. With --json, ring_saving is 1 - CPU-assisted "
          "/ ring, null "
          "where a ring\nwould move nothing."};
}

} // namespace reckon::solve
