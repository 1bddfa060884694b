// SPDX-License-Identifier: Apache-2.0
#include "solve.hpp"
#include "commands.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "core/units.hpp"
#include "equations/aggregation.hpp"
#include "equations/split.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reckon {

using namespace solve_command;

namespace {

// ---------------------------------------------------------------- split

struct SplitOptions {
  std::optional<std::int64_t> workers, servers;
  std::string bytes, bandwidth, server_bandwidth, worker_bandwidths, server_bandwidths;
  bool json = false;
};

struct SplitQuestion {
  Star star;
  bool equal = false; ///< one bandwidth for all workers and one for all servers, not given as lists
};

std::vector<double> rates(const std::string& list, const std::string& flag) {
  std::vector<double> out;
  for (std::size_t start = 0; start <= list.size();) {
    const std::size_t comma = std::min(list.find(',', start), list.size());
    out.push_back(parse_bandwidth(std::string_view(list).substr(start, comma - start), flag)
                      .as_bytes_per_s());
    start = comma + 1;
  }
  return out;
}

/// The bandwidths of the workers or of the servers, from a list or from a count and one bandwidth.
std::vector<double> machines(const std::optional<std::int64_t>& count, const std::string& list,
                             const std::string& one, const std::string& what,
                             const std::string& one_flag) {
  const std::string list_flag = fmt::format("--{}-bandwidths", what);
  if (count && (*count < 0 || *count > k_most_machines)) {
    fail(ErrorKind::usage,
         fmt::format("--{}s {}: must be between 0 and {}", what, *count, k_most_machines));
  }
  if (!list.empty()) {
    std::vector<double> out = rates(list, list_flag);
    if (count && static_cast<std::size_t>(*count) != out.size()) {
      fail(ErrorKind::usage,
           fmt::format("{} has {} for --{}s {}; give one each, or leave --{}s out", list_flag,
                       counted(out.size(), "bandwidth"), what, *count, what));
    }
    return out;
  }
  if (count.value_or(0) == 0) {
    return {};
  }
  if (one.empty()) {
    fail(ErrorKind::usage, fmt::format("the bandwidth of the {}s is missing; give {} or {}", what,
                                       one_flag, list_flag));
  }
  return std::vector<double>(static_cast<std::size_t>(*count),
                             parse_bandwidth(one, one_flag).as_bytes_per_s());
}

SplitQuestion read_question(const SplitOptions& options) {
  SplitQuestion question;
  question.star.model_bytes = parse_bytes(options.bytes, "--bytes").as_double();
  if (options.worker_bandwidths.empty() && options.workers.value_or(0) == 0) {
    fail(ErrorKind::usage, options.workers
                               ? "--workers 0: at least one worker is needed"
                               : "the workers are missing; give --workers or --worker-bandwidths");
  }
  question.star.worker_bytes_per_s = machines(options.workers, options.worker_bandwidths,
                                              options.bandwidth, "worker", "--bandwidth");
  const bool own = !options.server_bandwidth.empty();
  question.star.server_bytes_per_s = machines(options.servers, options.server_bandwidths,
                                              own ? options.server_bandwidth : options.bandwidth,
                                              "server", own ? "--server-bandwidth" : "--bandwidth");
  question.equal = options.worker_bandwidths.empty() && options.server_bandwidths.empty();
  return question;
}

struct SplitAnswer {
  StarSplit best;
  double allreduce_s = 0;
  StarSplit colocated;
  std::optional<StarSplit> parameter_server;
  std::optional<SlotCounts> slots; ///< only where all bandwidths are the same
};

SplitAnswer answer_of(const SplitQuestion& question) {
  const Star& star = question.star;
  const std::size_t n = star.worker_bytes_per_s.size();
  const std::size_t k = star.server_bytes_per_s.size();
  SplitAnswer answer;
  answer.best = solve_star_split(star);
  if (question.equal) {
    // The same, but without the rounding of the general solution: 0 is 0 and equal shares are
    // equal.
    const double worker = star.worker_bytes_per_s.front();
    const double server = k == 0 ? 0 : star.server_bytes_per_s.front();
    const EqualSplit equal = solve_equal_split(n, k, star.model_bytes, worker, server);
    answer.best.time_s = equal.time_s;
    answer.best.shares = {std::vector<double>(n, equal.worker_share_bytes),
                          std::vector<double>(k, equal.server_share_bytes)};
    answer.best.traffic.worker_port_bytes.assign(n, equal.worker_port_bytes);
    answer.best.traffic.server_port_bytes.assign(k, equal.server_port_bytes);
    if (k == 0 || server == worker) {
      answer.slots = slot_counts(n, k);
    }
  }
  answer.allreduce_s = ring_allreduce_s(star.model_bytes, star.worker_bytes_per_s);
  answer.colocated = solve_colocated_parameter_server(star);
  answer.parameter_server = solve_parameter_server(star);
  return answer;
}

/// null when nothing has to be moved: a time of zero is not so many times faster.
Json speedup(double slower_s, double time_s) {
  return time_s > 0 ? Json(slower_s / time_s) : Json(nullptr);
}

const char* name_of(StarLimit limit) {
  switch (limit) {
  case StarLimit::nothing:
    return "nothing";
  case StarLimit::slowest_workers:
    return "slowest_workers";
  case StarLimit::all_ports:
    return "all_ports";
  case StarLimit::servers:
    return "servers";
  }
  return "?";
}

Json split_json(const SplitQuestion& question, const SplitAnswer& answer) {
  const auto per_machine = [&](const std::vector<double>& values) {
    if (!question.equal) {
      return Json(values);
    }
    return Json(values.empty() ? 0.0 : values.front()); // no server: it holds and carries nothing
  };
  const StarSplit& best = answer.best;
  Json out;
  out["workers"] = question.star.worker_bytes_per_s.size();
  out["servers"] = question.star.server_bytes_per_s.size();
  out["model_bytes"] = static_cast<std::uint64_t>(question.star.model_bytes);
  out["worker_share_bytes"] = per_machine(best.shares.worker_bytes);
  out["server_share_bytes"] = per_machine(best.shares.server_bytes);
  out["worker_port_bytes"] = per_machine(best.traffic.worker_port_bytes);
  out["server_port_bytes"] = per_machine(best.traffic.server_port_bytes);
  out["time_seconds"] = best.time_s;
  out["allreduce_seconds"] = answer.allreduce_s;
  out["colocated_parameter_server_seconds"] = answer.colocated.time_s;
  out["speedup_over_allreduce"] = speedup(answer.allreduce_s, best.time_s);
  out["parameter_server_seconds"] = nullptr;
  out["speedup_over_parameter_server"] = nullptr;
  if (answer.parameter_server) {
    out["parameter_server_seconds"] = answer.parameter_server->time_s;
    out["speedup_over_parameter_server"] = speedup(answer.parameter_server->time_s, best.time_s);
  }
  out["slots"] = nullptr;
  out["slots_per_worker"] = nullptr;
  out["slots_per_server"] = nullptr;
  if (answer.slots) {
    out["slots"] = answer.slots->total;
    out["slots_per_worker"] = answer.slots->per_worker;
    out["slots_per_server"] = answer.slots->per_server;
  }
  out["limit"] = name_of(best.limit);
  out["limiting_workers"] = best.limiting_workers;
  return out;
}

/// One line a strategy, with the equation and its number in docs/equations.md.
std::string times_table(const SplitQuestion& question, const SplitAnswer& answer) {
  const std::size_t n = question.star.worker_bytes_per_s.size();
  const double best_s = answer.best.time_s;
  std::string out =
      fmt::format("{:<18} {:>10} {:>9}  {}\n", "strategy", "time", "to best", "equation");
  const auto line = [&](const char* name, double time_s, const std::string& equation) {
    const std::string by = best_s > 0 ? fmt::format("{:.4g} x", time_s / best_s) : "-";
    out += fmt::format("{:<18} {:>10} {:>9}  {}\n", name, time_text(time_s), by, equation);
  };
  std::string best = "the worker keeps everything (8)";
  if (n == 2) {
    best = "M / min B (8)";
  } else if (n > 2 && answer.slots) {
    best = fmt::format("2n(n-1)M / (D B), D = n^2 + kn - 2k = {} (7)", answer.slots->total);
  } else if (n > 2) {
    best = "max(M / min B, M (1 + n/(n-2)) / (sum B/(n-2) + sum S/n)) (8)";
  }
  line("best split", best_s, best);
  line("ring all-reduce", answer.allreduce_s,
       question.equal ? "2(n-1)M / (n B) (1)" : "2(n-1)M / (n min B) (1)");
  line("colocated servers", answer.colocated.time_s,
       question.equal ? "2(n-1)M / (n B) (3)" : "2(n-1)M / (n min B) (3)");
  if (answer.parameter_server) {
    line("parameter server", answer.parameter_server->time_s,
         question.equal ? "max(M / B, nM / (k S)) (2)" : "max(M / min B, nM / sum S) (2)");
  }
  return out;
}

std::string shares_table(const SplitQuestion& question, const SplitAnswer& answer) {
  const Star& star = question.star;
  const StarSplit& best = answer.best;
  std::string out =
      fmt::format("{:<14} {:>12} {:>12} {:>12} {:>6}{}\n", question.equal ? "each" : "machine",
                  "port", "sums", "carries", "busy", answer.slots ? "   slots" : "");
  const auto row = [&](const std::string& name, double rate, double share, double carried,
                       std::uint64_t slots) {
    const double busy = best.time_s > 0 ? 100 * carried / rate / best.time_s : 0;
    out += fmt::format("{:<14} {:>12} {:>12} {:>12} {:>4.0f} %", name, rate_text(rate),
                       bytes_text(share), bytes_text(carried), busy);
    out += answer.slots ? fmt::format(" {:>7}\n", slots) : "\n";
  };
  const auto rows = [&](const char* what, const std::vector<double>& rate,
                        const std::vector<double>& share, const std::vector<double>& carried,
                        std::uint64_t slots) {
    const std::size_t shown =
        question.equal ? std::min<std::size_t>(1, rate.size()) : std::min(rate.size(), k_most_rows);
    for (std::size_t i = 0; i < shown; ++i) {
      row(question.equal ? counted(rate.size(), what) : fmt::format("{} {}", what, i), rate[i],
          share[i], carried[i], slots);
    }
    if (!question.equal && shown < rate.size()) {
      out += fmt::format("... and {} more; --json has all\n", counted(rate.size() - shown, what));
    }
  };
  rows("worker", star.worker_bytes_per_s, best.shares.worker_bytes, best.traffic.worker_port_bytes,
       answer.slots ? answer.slots->per_worker : 0);
  rows("server", star.server_bytes_per_s, best.shares.server_bytes, best.traffic.server_port_bytes,
       answer.slots ? answer.slots->per_server : 0);
  return out;
}

/// What sets the time, and how much less it would be with the nearest remedies: solved again, not
/// extrapolated.
std::string limit_text(const SplitQuestion& question, const SplitAnswer& answer) {
  const StarSplit& best = answer.best;
  std::string out;
  const auto remedy = [&](const char* name, const Star& star) {
    const double time_s = solve_star_split(star).time_s;
    out += fmt::format("  {:<34} {:>10}  {:+.1f} %\n", name, time_text(time_s),
                       100 * (time_s / best.time_s - 1));
  };
  Star more = question.star;
  switch (best.limit) {
  case StarLimit::nothing:
    return "limit: none, nothing crosses a port\n";
  case StarLimit::servers: // only of a parameter server, never of the best split
  case StarLimit::all_ports:
    out = "limit: every port is busy all the time\n";
    more.server_bytes_per_s.push_back(more.server_bytes_per_s.empty()
                                          ? more.worker_bytes_per_s.front()
                                          : more.server_bytes_per_s.back());
    remedy(question.star.server_bytes_per_s.empty() ? "with one server" : "with one more server",
           more);
    more = question.star;
    for (double& rate : more.server_bytes_per_s) {
      rate *= 1.1;
    }
    if (!more.server_bytes_per_s.empty()) {
      remedy("with servers' ports 10 % faster", more);
    }
    more = question.star;
    for (double& rate : more.worker_bytes_per_s) {
      rate *= 1.1;
    }
    remedy("with workers' ports 10 % faster", more);
    return out;
  case StarLimit::slowest_workers:
    if (best.limiting_workers.size() == more.worker_bytes_per_s.size()) {
      out = "limit: the workers' ports; no server can help, each worker must send and receive M\n";
    } else {
      out = "limit: the port of worker";
      for (std::size_t i = 0; i < std::min<std::size_t>(best.limiting_workers.size(), 8); ++i) {
        out += fmt::format("{} {}", i == 0 ? "" : ",", best.limiting_workers[i]);
      }
      out += best.limiting_workers.size() > 8 ? ", ..." : "";
      out += "; no server can help, it must send and receive M\n";
    }
    for (const std::size_t i : best.limiting_workers) {
      more.worker_bytes_per_s[i] *= 1.1;
    }
    remedy("with that 10 % faster", more);
    return out;
  }
  return out;
}

int run_split(const SplitOptions& options) {
  const SplitQuestion question = read_question(options);
  const SplitAnswer answer = answer_of(question);
  if (options.json) {
    print(canonical(split_json(question, answer)));
    return k_exit_ok;
  }
  const Star& star = question.star;
  std::string head =
      fmt::format("M = {} ({:.0f} B), n = {}, k = {}", bytes_text(star.model_bytes),
                  star.model_bytes, star.worker_bytes_per_s.size(), star.server_bytes_per_s.size());
  print(head + "\n\n" + times_table(question, answer) + "\n" + shares_table(question, answer) +
        "\n" + limit_text(question, answer));
  return k_exit_ok;
}

Command add_split(CLI::App& solve) {
  auto options = std::make_shared<SplitOptions>();
  CLI::App* split =
      solve.add_subcommand("split", "How n workers and k servers best share the summation of a "
                                    "gradient, and how long the exchange takes");
  split->add_option("--workers", options->workers,
                    "Workers (GPU machines); may be left out with --worker-bandwidths");
  split->add_option("--servers", options->servers,
                    "Servers (CPU machines); default 0, or as --server-bandwidths has it");
  split->add_option("--bytes", options->bytes, "Size of the gradient: 553MB, 512MiB")->required();
  auto* one = split->add_option(
      "--bandwidth", options->bandwidth,
      "Of every machine's port, each direction: 100Gb/s (bits), 12.5GB/s (bytes)");
  auto* one_server = split->add_option("--server-bandwidth", options->server_bandwidth,
                                       "Of every server's port, where it is another one");
  split
      ->add_option("--worker-bandwidths", options->worker_bandwidths,
                   "One bandwidth a worker, comma-separated")
      ->excludes(one);
  split
      ->add_option("--server-bandwidths", options->server_bandwidths,
                   "One bandwidth a server, comma-separated")
      ->excludes(one_server);
  split->add_flag("--json", options->json, "One JSON object on standard output");
  split->footer("Equations: docs/equations.md. With --json, shares are arrays when a list of "
                "bandwidths was given;\n"
                "the parameter server's time is null without servers, slots are null for n < 2, k "
                "> n or unequal\n"
                "bandwidths, and speed-ups are null when nothing has to be moved.");
  return [options] { return run_split(*options); };
}

// ---------------------------------------------------------------- aggregation

struct AggregationOptions {
  std::int64_t gpus = 0, switches = 0;
  std::string bytes, gpu_link, switch_link, bottleneck;
  bool json = false;
};

/// What the time is when one kind of link is a tenth faster.
std::string faster_links_text(const SwitchTree& tree, double time_s) {
  std::string out;
  const auto remedy = [&](const char* name, const SwitchTree& more) {
    const double more_s = solve_aggregation(more).time_s;
    out += fmt::format("  {:<34} {:>10}  {:+.1f} %\n", name, time_text(more_s),
                       100 * (more_s / time_s - 1));
  };
  SwitchTree more = tree;
  more.gpu_bytes_per_s *= 1.1;
  remedy("with GPU links 10 % faster", more);
  more = tree;
  more.switch_bytes_per_s *= 1.1;
  remedy("with switch links 10 % faster", more);
  return out;
}

int run_aggregation(const AggregationOptions& options) {
  SwitchTree tree;
  tree.gpus_per_switch = count_of(options.gpus, "--gpus-per-switch");
  tree.switches = count_of(options.switches, "--switches");
  tree.model_bytes = parse_bytes(options.bytes, "--bytes").as_double();
  tree.gpu_bytes_per_s = parse_bandwidth(options.gpu_link, "--gpu-link").as_bytes_per_s();
  tree.switch_bytes_per_s = parse_bandwidth(options.switch_link, "--switch-link").as_bytes_per_s();
  const double bottleneck =
      options.bottleneck.empty()
          ? std::min(tree.gpu_bytes_per_s, tree.switch_bytes_per_s)
          : parse_bandwidth(options.bottleneck, "--bottleneck").as_bytes_per_s();
  const AggregationMix mix = solve_aggregation(tree);
  const double assisted_s = cpu_assisted_s(tree);
  const double brute_force_s = aggregation_s(tree, 1);
  const double ring_s = ring_aggregation_s(tree, bottleneck);
  if (options.json) {
    Json out;
    out["brute_force_fraction"] = mix.brute_force_fraction;
    out["time_seconds"] = mix.time_s;
    out["cpu_assisted_seconds"] = assisted_s;
    out["brute_force_seconds"] = brute_force_s;
    out["ring_seconds"] = ring_s;
    out["ring_saving"] = ring_s > 0 ? Json(1 - assisted_s / ring_s) : Json(nullptr);
    print(canonical(out));
    return k_exit_ok;
  }
  std::string text = fmt::format(
      "M = {} ({:.0f} B), n = {} a switch, p = {}\n\n{:<18} {:>10} {:>9}  {}\n",
      bytes_text(tree.model_bytes), tree.model_bytes, counted(tree.gpus_per_switch, "GPU", "GPUs"),
      counted(tree.switches, "switch", "switches"), "strategy", "time", "to mix", "equation");
  const auto line = [&](const char* name, double time_s, const std::string& equation) {
    const std::string by = mix.time_s > 0 ? fmt::format("{:.4g} x", time_s / mix.time_s) : "-";
    text += fmt::format("{:<18} {:>10} {:>9}  {}\n", name, time_text(time_s), by, equation);
  };
  line("best CPU mix", mix.time_s,
       fmt::format("{:.4g} of the bytes by brute force, the rest CPU-assisted (23)",
                   mix.brute_force_fraction));
  line("CPU-assisted", assisted_s, "M / b_S max(1, (2n-1)/(k n)), k = b_N / b_S (24)");
  line("brute force", brute_force_s, "max(M / b_N, n M / b_S) (23)");
  line("ring all-reduce", ring_s,
       fmt::format("2(np-1)M / (np b), b = {}{} (24)", rate_text(bottleneck),
                   options.bottleneck.empty() ? ", the slower link" : ""));
  if (ring_s > 0) {
    const double less = 1 - assisted_s / ring_s;
    constexpr double k_same = 5e-5; // prints as 0.00 %
    text += std::abs(less) < k_same
                ? "\nCPU-assisted takes as long as the ring\n"
                : fmt::format("\nCPU-assisted takes {:.2f} % {} than the ring\n",
                              100 * std::abs(less), less > 0 ? "less" : "more");
    if (const double gain = 1 - ring_s / mix.time_s; gain >= k_same) {
      text += fmt::format("the ring takes {:.2f} % less than the best CPU mix\n", 100 * gain);
    }
  } else if (mix.time_s > 0) {
    text +=
        "\none GPU is a whole ring and sends nothing; a CPU mix still brings its gradient to the "
        "processor\n";
  }
  if (mix.time_s > 0) {
    text += fmt::format("\nlimit: {}\n{}",
                        mix.limit == SwitchTreeLimit::gpu_links      ? "the GPUs' links"
                        : mix.limit == SwitchTreeLimit::switch_links ? "the switches' links"
                                                                     : "both kinds of links",
                        faster_links_text(tree, mix.time_s));
  }
  print(text);
  return k_exit_ok;
}

Command add_aggregation(CLI::App& solve) {
  auto options = std::make_shared<AggregationOptions>();
  CLI::App* aggregation = solve.add_subcommand(
      "aggregation", "How GPUs below PCIe switches best sum through the processor's memory");
  aggregation->add_option("--gpus-per-switch", options->gpus, "GPUs below each switch")->required();
  aggregation->add_option("--switches", options->switches, "PCIe switches")->required();
  aggregation
      ->add_option("--gpu-link", options->gpu_link,
                   "A GPU's link to its switch, each direction: 105Gb/s (bits), 13.1GB/s (bytes)")
      ->required();
  aggregation->add_option("--switch-link", options->switch_link, "A switch's link to the processor")
      ->required();
  aggregation->add_option("--bytes", options->bytes, "Size of the gradient: 1GB, 512MiB")
      ->required();
  aggregation->add_option("--bottleneck", options->bottleneck,
                          "The slowest hop of a ring over all GPUs; default: the slower of the two "
                          "links");
  aggregation->add_flag("--json", options->json, "One JSON object on standard output");
  aggregation->footer(
      "Equations: docs/equations.md. With --json, ring_saving is 1 - CPU-assisted / "
      "ring, null where a ring\nwould move nothing.");
  return [options] { return run_aggregation(*options); };
}

} // namespace

void add_solve_command(Arguments& program) {
  Arguments& command =
      program.command("solve", "Answer one of the papers' equations by hand, without a profile");
  CLI::App* solve = &command.raw();
  solve->require_subcommand(1);
  const std::vector<std::pair<std::string, Command>> answers{
      {"split", add_split(*solve)},
      {"placement", add_solve_placement(*solve)},
      {"aggregation", add_aggregation(*solve)},
      {"routing", add_solve_routing(*solve)},
      {"partition", add_solve_partition(*solve)},
      {"dual-sync", add_solve_dual_sync(*solve)},
      {"memory", add_solve_memory(*solve)},
      {"dense", add_solve_dense(*solve)},
      {"locality", add_solve_locality(*solve)},
      {"ring", add_solve_ring(*solve)},
      {"oversubscription", add_solve_oversubscription(*solve)},
      {"capacity", add_solve_capacity(*solve)},
      {"torus", add_solve_torus(*solve)},
      {"overlap", add_solve_overlap(*solve)},
  };
  command.action([solve, answers] {
    const auto asked = std::find_if(answers.begin(), answers.end(), [&](const auto& answer) {
      return solve->got_subcommand(answer.first);
    });
    return asked->second();
  });
}

} // namespace reckon
