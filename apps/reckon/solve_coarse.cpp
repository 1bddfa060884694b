// SPDX-License-Identifier: Apache-2.0
#include "solve.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/json.hpp"
#include "core/units.hpp"
#include "documents/document.hpp"
#include "documents/measured_csv.hpp"
#include "equations/coarse.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace reckon {

SizeCurve solve_command::read_curve(const std::string& path, const std::string& factor) {
  const std::string text = read_file(path);
  SizeCurve curve;
  for (const CurvePoint& point :
       factor.empty() ? curve_from_csv(text, path) : factors_from_csv(text, path, factor)) {
    curve.push_back({point.bytes, point.seconds});
  }
  return curve;
}

using namespace solve_command;

namespace {

/// "80.36 KiB (82285.7 B)": what a document takes beside what a person reads.
std::string exact_text(double bytes) {
  return fmt::format("{} ({:.10g} B)", bytes_text(bytes), bytes);
}

// ---------------------------------------------------------------- routing

struct RoutingOptions {
  std::string latency_curve, bandwidth_curve, workload;
  bool json = false;
};

const char* proxy_of(const RoutingInterval& interval) {
  return interval.bandwidth_proxy ? "bandwidth" : "latency";
}

Json routing_json(const Routing& routing, double from_bytes, double to_bytes) {
  Json out;
  out["threshold_bytes"] = routing.threshold_bytes ? Json(*routing.threshold_bytes) : Json(nullptr);
  out["crossings_bytes"] = routing.crossings_bytes;
  out["several_crossings"] = routing.several;
  out["reversed"] = routing.reversed;
  out["intervals"] = Json::array();
  for (const RoutingInterval& interval : routing.intervals) {
    out["intervals"].push_back({{"from_bytes", interval.from_bytes},
                                {"to_bytes", finite_or_null(interval.to_bytes)},
                                {"faster", proxy_of(interval)}});
  }
  out["tested_from_bytes"] = from_bytes;
  out["tested_to_bytes"] = to_bytes;
  out["threshold_seconds"] = routing.threshold_s;
  out["best_seconds"] = routing.best_s;
  out["latency_proxy_seconds"] = routing.latency_s;
  out["bandwidth_proxy_seconds"] = routing.bandwidth_s;
  return out;
}

std::string threshold_text(const Routing& routing) {
  if (!routing.threshold_bytes) {
    return "no threshold: the latency proxy for everything";
  }
  if (*routing.threshold_bytes == 0) {
    return "threshold 0: the bandwidth proxy for everything";
  }
  return fmt::format("threshold {}: larger tensors to the bandwidth proxy, others to the latency "
                     "proxy",
                     exact_text(*routing.threshold_bytes));
}

std::string routing_text(const Routing& routing, double to_bytes, const std::string& of) {
  std::string text = threshold_text(routing) + " (29)\n";
  if (routing.several) {
    text += fmt::format("{} crossings: no threshold is right for all sizes; this one has the least "
                        "total time\n",
                        routing.crossings_bytes.size());
  }
  if (routing.reversed) {
    text +=
        "the latency proxy is the faster one for the largest sizes: are the curves exchanged?\n";
  }
  text += fmt::format("\n{:<10} {:>12}  {}\n", "faster", "above", "up to");
  for (const RoutingInterval& interval : routing.intervals) {
    const bool last = std::isinf(interval.to_bytes);
    text +=
        fmt::format("{:<10} {:>12}  {}{}\n", proxy_of(interval), bytes_text(interval.from_bytes),
                    last ? "any size" : bytes_text(interval.to_bytes),
                    interval.from_bytes > to_bytes ? ", beyond the largest size tested" : "");
  }
  text += fmt::format("\n{:<30} {:>10} {:>9}\n", of, "time", "to best");
  const auto row = [&](const char* name, double time_s) {
    const std::string by =
        routing.best_s > 0 ? fmt::format("{:.4g} x", time_s / routing.best_s) : "-";
    text += fmt::format("{:<30} {:>10} {:>9}\n", name, time_text(time_s), by);
  };
  row("each by its faster proxy", routing.best_s);
  row("by the threshold", routing.threshold_s);
  row("all by the latency proxy", routing.latency_s);
  row("all by the bandwidth proxy", routing.bandwidth_s);
  return text;
}

int run_routing(const RoutingOptions& options) {
  const SizeCurve latency = read_curve(options.latency_curve);
  const SizeCurve bandwidth = read_curve(options.bandwidth_curve);
  std::vector<SizeCount> sizes;
  std::string of = "one of each size tested";
  if (!options.workload.empty()) {
    const Workload workload = read_workload(options.workload);
    for (const Tensor& tensor : workload.tensors) {
      sizes.push_back({static_cast<double>(tensor.bytes()), 1});
    }
    of = fmt::format("{} of {}", counted(sizes.size(), "tensor"), workload.name);
  }
  const Routing routing = solve_routing(latency, bandwidth, sizes);
  const double from_bytes = std::min(latency.front().bytes, bandwidth.front().bytes);
  const double to_bytes = std::max(latency.back().bytes, bandwidth.back().bytes);
  print(options.json ? canonical(routing_json(routing, from_bytes, to_bytes))
                     : routing_text(routing, to_bytes, of));
  return k_exit_ok;
}

// ---------------------------------------------------------------- partition

struct PartitionOptions {
  std::string curve, tolerance, tensor;
  bool json = false;
};

std::string shards_text(const std::vector<std::uint64_t>& shards) {
  if (shards.empty()) {
    return "no shards";
  }
  const auto larger = static_cast<std::uint64_t>(std::ranges::count(shards, shards.front()));
  if (larger == shards.size()) {
    return fmt::format("{} of {} ({} B)", counted(larger, "shard"), to_text(Bytes(shards.front())),
                       shards.front());
  }
  return fmt::format("{} of {} B, {} of {} B", counted(larger, "shard"), shards.front(),
                     shards.size() - larger, shards.back());
}

int run_partition(const PartitionOptions& options) {
  const SizeCurve curve = read_curve(options.curve);
  const double tolerance = options.tolerance.empty()
                               ? k_partition_tolerance
                               : parse_fraction(options.tolerance, "--tolerance");
  if (tolerance >= 1) {
    fail(ErrorKind::usage, fmt::format("--tolerance {}: must be below 100 %", options.tolerance));
  }
  if (curve.back().bytes == 0) {
    fail(ErrorKind::input,
         fmt::format("{}: has no size above 0 bytes; add lines for some", options.curve));
  }
  const double size = partition_bytes(curve, tolerance);
  const auto rate = [](const SizeTime& sample) { return sample.bytes / sample.seconds; };
  const SizeTime greatest = *std::ranges::max_element(curve, {}, rate);
  const double bytes_per_s = size / seconds_on(curve, size);
  std::optional<std::vector<std::uint64_t>> shards;
  std::optional<std::uint64_t> tensor;
  if (!options.tensor.empty()) {
    tensor = parse_bytes(options.tensor, "--tensor").count();
    shards = shards_of(*tensor, static_cast<std::uint64_t>(size));
  }
  const bool largest = size == curve.back().bytes;
  if (options.json) {
    Json out;
    out["partition_bytes"] = size;
    out["shards_bytes"] = shards ? Json(*shards) : Json(nullptr);
    out["tolerance"] = tolerance;
    out["bandwidth_bytes_per_second"] = bytes_per_s;
    out["greatest_bandwidth_bytes_per_second"] = rate(greatest);
    out["greatest_bandwidth_bytes"] = greatest.bytes;
    out["is_largest_tested"] = largest;
    print(canonical(out));
    return k_exit_ok;
  }
  std::string text = fmt::format("S' = {}: {}, within {:.4g} % of the greatest, {} at {} (30)\n",
                                 exact_text(size), rate_text(bytes_per_s), 100 * tolerance,
                                 rate_text(rate(greatest)), bytes_text(greatest.bytes));
  if (largest) {
    text += "that is the largest size tested: the bandwidth may still rise; measure larger ones\n";
  }
  if (shards) {
    text += fmt::format("tensor of {} ({} B): {} (31)\n", to_text(Bytes(*tensor)), *tensor,
                        shards_text(*shards));
  }
  print(text);
  return k_exit_ok;
}

// ---------------------------------------------------------------- dual-sync

struct DualSyncOptions {
  std::int64_t workers = 0;
  std::optional<std::int64_t> devices;
  std::string bytes, workload, proxy_bandwidth, gpu_bandwidth, client_bandwidth, forward, backward;
  bool ring_after_backward = false, shared_link = false, json = false;
};

/// A time of the workload or of an option, which goes first.
double pass_s(const std::string& option, const std::optional<double>& of_workload,
              const char* flag) {
  if (!option.empty()) {
    return parse_seconds(option, flag).count();
  }
  if (!of_workload) {
    fail(ErrorKind::usage,
         fmt::format("{} is required: no workload says that time; 0s plays none", flag));
  }
  return *of_workload;
}

/// One model's answers.
struct DualSyncAnswer {
  DualSplit split;
  std::optional<DualRounding> rounding; ///< with a workload
};

/// No part of a byte goes anywhere.
std::uint64_t whole(double bytes) {
  return static_cast<std::uint64_t>(std::llround(bytes));
}

Json rounding_json(const DualRounding& rounding) {
  return {{"tensors", rounding.tensors},
          {"proxy_bytes", whole(rounding.proxy_bytes)},
          {"time_seconds", rounding.time_s},
          {"cost_seconds", rounding.cost_s}};
}

int run_dual_sync(const DualSyncOptions& options) {
  DualSync sync;
  sync.workers = count_of(options.workers, "--workers");
  sync.devices = options.devices ? count_of(*options.devices, "--devices") : sync.workers;
  if (sync.devices > sync.workers) {
    fail(ErrorKind::usage,
         fmt::format("--devices {} for --workers {}: a device serves workers of its own; give as "
                     "many at most",
                     sync.devices, sync.workers));
  }
  std::optional<Workload> workload;
  std::vector<std::uint64_t> tensors;
  if (!options.workload.empty()) {
    workload = read_workload(options.workload);
    for (const Tensor& tensor : workload->tensors) {
      tensors.push_back(tensor.bytes());
    }
    sync.bytes = static_cast<double>(workload->bytes());
  } else if (!options.bytes.empty()) {
    sync.bytes = parse_bytes(options.bytes, "--bytes").as_double();
  } else {
    fail(ErrorKind::usage, "the size of the gradient is missing; give --bytes or --workload");
  }
  sync.proxy_bytes_per_s =
      parse_bandwidth(options.proxy_bandwidth, "--proxy-bandwidth").as_bytes_per_s();
  sync.gpu_bytes_per_s = parse_bandwidth(options.gpu_bandwidth, "--gpu-bandwidth").as_bytes_per_s();
  if (!options.client_bandwidth.empty()) {
    sync.client_bytes_per_s =
        parse_bandwidth(options.client_bandwidth, "--client-bandwidth").as_bytes_per_s();
  }
  const std::optional<double> none;
  sync.forward_s =
      pass_s(options.forward, workload ? workload->forward_seconds : none, "--forward");
  sync.backward_s =
      pass_s(options.backward, workload ? workload->backward_seconds : none, "--backward");
  sync.ring = options.ring_after_backward ? WorkerRing::after_backward : WorkerRing::when_ready;
  sync.shared_link = options.shared_link;

  const auto answer_of = [&](DualSyncModel model) {
    DualSyncAnswer answer;
    answer.split = solve_dual_sync(sync, model);
    if (workload) {
      answer.rounding = round_dual_sync(sync, model, tensors);
    }
    return answer;
  };
  const DualSyncAnswer paper = answer_of(DualSyncModel::paper);
  const DualSyncAnswer corrected = answer_of(DualSyncModel::corrected);
  const double paper_really_s =
      dual_sync_s(sync, DualSyncModel::corrected, paper.split.proxy_bytes);
  const double workers_only_s = dual_sync_s(sync, DualSyncModel::corrected, 0);
  const double proxies_only_s = dual_sync_s(sync, DualSyncModel::corrected, sync.bytes);
  if (options.json) {
    Json out;
    out["proxy_bytes"] = whole(paper.split.proxy_bytes);
    out["worker_bytes"] = whole(sync.bytes) - whole(paper.split.proxy_bytes);
    out["time_seconds"] = paper.split.time_s;
    out["clipped"] = paper.split.clipped;
    out["corrected_proxy_bytes"] = whole(corrected.split.proxy_bytes);
    out["corrected_most_proxy_bytes"] = whole(corrected.split.most_proxy_bytes);
    out["corrected_worker_bytes"] = whole(sync.bytes) - whole(corrected.split.proxy_bytes);
    out["corrected_time_seconds"] = corrected.split.time_s;
    out["corrected_clipped"] = corrected.split.clipped;
    out["corrected_time_of_paper_split_seconds"] = paper_really_s;
    out["corrected_workers_only_seconds"] = workers_only_s;
    out["corrected_proxies_only_seconds"] = proxies_only_s;
    out["rounded"] = paper.rounding ? rounding_json(*paper.rounding) : Json(nullptr);
    out["corrected_rounded"] =
        corrected.rounding ? rounding_json(*corrected.rounding) : Json(nullptr);
    print(canonical(out));
    return k_exit_ok;
  }
  std::string text =
      fmt::format("n = {}, p = {}, q = {}\n\n{:<26} {:>12} {:>12} {:>10}\n", exact_text(sync.bytes),
                  counted(sync.workers, "worker"), counted(sync.devices, "device"), "split",
                  "to proxies", "by workers", "iteration");
  const auto row = [&](const char* name, double proxy_bytes, double time_s,
                       const std::string& remark) {
    text += fmt::format("{:<26} {:>12} {:>12} {:>10}  {}\n", name, bytes_text(proxy_bytes),
                        bytes_text(sync.bytes - proxy_bytes), time_text(time_s), remark);
  };
  const auto rows_of = [&](const char* name, const DualSyncAnswer& answer, const char* equation) {
    row(name, answer.split.proxy_bytes, answer.split.time_s,
        fmt::format("{}{}", equation, answer.split.clipped ? ", clipped" : ""));
    if (answer.rounding) {
      row("  in whole tensors", answer.rounding->proxy_bytes, answer.rounding->time_s,
          fmt::format("the first {}, costs {}", answer.rounding->tensors,
                      time_text(answer.rounding->cost_s)));
    }
  };
  rows_of("the paper's formula", paper, "(32)");
  rows_of("corrected", corrected, "(33)");
  row("the paper's m, corrected", paper.split.proxy_bytes, paper_really_s, "(33)");
  row("workers only", 0, workers_only_s, "(33)");
  row("proxies only", sync.bytes, proxies_only_s, "(33)");
  if (corrected.split.most_proxy_bytes > corrected.split.proxy_bytes) {
    text += fmt::format("\nup to {} to the proxies take no longer\n",
                        bytes_text(corrected.split.most_proxy_bytes));
  }
  print(text);
  return k_exit_ok;
}

} // namespace

Command add_solve_routing(CLI::App& solve) {
  auto options = std::make_shared<RoutingOptions>();
  CLI::App* routing = solve.add_subcommand(
      "routing", "Which tensors go to the proxy with the least latency, which to the one with the "
                 "greatest bandwidth (COARSE)");
  routing
      ->add_option("--latency-curve", options->latency_curve,
                   "CSV with the columns bytes,seconds: times to the proxy with the least latency")
      ->required();
  routing
      ->add_option("--bandwidth-curve", options->bandwidth_curve,
                   "The same columns, of the proxy with the greatest bandwidth")
      ->required();
  routing->add_option(
      "-m,--workload", options->workload,
      "Tensors that a choice between several crossings is made for; default: one of "
      "each size tested");
  routing->add_flag("--json", options->json, "One JSON object on standard output");
  routing->footer(
      "Equations: docs/equations.md. With --json, threshold_bytes is null for the first "
      "curve for everything,\n0 for the second.");
  return [options] { return run_routing(*options); };
}

Command add_solve_partition(CLI::App& solve) {
  auto options = std::make_shared<PartitionOptions>();
  CLI::App* partition = solve.add_subcommand(
      "partition", "The smallest size with full bandwidth, and a tensor's equal shards (COARSE)");
  partition->add_option("--curve", options->curve, "CSV with the columns bytes,seconds")
      ->required();
  partition->add_option("--tolerance", options->tolerance,
                        "How far below the greatest bandwidth still is full: 2% (default)");
  partition->add_option("--tensor", options->tensor, "A tensor to cut: 9437184, 9MiB");
  partition->add_flag("--json", options->json, "One JSON object on standard output");
  partition->footer("Equations: docs/equations.md. With --json, shards_bytes is null without "
                    "--tensor.");
  return [options] { return run_partition(*options); };
}

Command add_solve_dual_sync(CLI::App& solve) {
  auto options = std::make_shared<DualSyncOptions>();
  CLI::App* dual = solve.add_subcommand(
      "dual-sync", "How much of a gradient memory devices sum, how much the workers' own ring "
                   "(COARSE)");
  dual->add_option("--workers", options->workers, "Worker GPUs, p")->required();
  dual->add_option("--devices", options->devices, "Memory devices, q; default: as many as workers");
  auto* bytes = dual->add_option("--bytes", options->bytes, "Size of the gradient: 553MB, 512MiB");
  dual->add_option("-m,--workload", options->workload,
                   "Its gradient instead, and the best split between whole tensors")
      ->excludes(bytes);
  dual->add_option("--proxy-bandwidth", options->proxy_bandwidth,
                   "A memory device's port, each direction: 12.5GB/s")
      ->required();
  dual->add_option("--gpu-bandwidth", options->gpu_bandwidth,
                   "The slowest hop of the workers' ring, each direction")
      ->required();
  dual->add_option("--client-bandwidth", options->client_bandwidth,
                   "A worker's link to its device, each direction; default: as --proxy-bandwidth");
  dual->add_option("--forward", options->forward,
                   "Time of the forward pass: 30ms; default: the workload's");
  dual->add_option("--backward", options->backward,
                   "Time of the backward pass; default: the workload's");
  dual->add_flag(
      "--ring-after-backward", options->ring_after_backward,
      "The workers' ring waits for the end of the backward pass; else it starts as soon as "
      "its first gradient is ready (corrected time only)");
  dual->add_flag(
      "--shared-link", options->shared_link,
      "The workers' ring uses the workers' links to their devices (corrected time only)");
  dual->add_flag("--json", options->json, "One JSON object on standard output");
  dual->footer(
      "Equations: docs/equations.md. With --json, the plain keys are the paper's formula, the "
      "corrected_ ones ours;\nthe rounded ones are null without --workload.");
  return [options] { return run_dual_sync(*options); };
}

} // namespace reckon
