// SPDX-License-Identifier: Apache-2.0
#include "solve.hpp"

#include <algorithm>
#include <cmath>

/// COARSE: which tensors go to which proxy, in which pieces, and how many of them.
namespace reckon::solve {
namespace {

// ---------------------------------------------------------------- routing

const char* proxy_of(const RoutingInterval& interval) {
  return interval.bandwidth_proxy ? "bandwidth" : "latency";
}

std::string threshold_text(const Routing& routing) {
  if (!routing.threshold_bytes) {
    return "no threshold: the latency proxy for everything (29)\n";
  }
  if (*routing.threshold_bytes == 0) {
    return "threshold 0: the bandwidth proxy for everything (29)\n";
  }
  return fmt::format("threshold {}: larger tensors to the bandwidth proxy, others to the latency "
                     "proxy (29)\n",
                     exact_text(*routing.threshold_bytes));
}

Answer answer_routing(const Given& given) {
  const Curve latency = read_curve(given.text("--latency-curve"));
  const Curve bandwidth = read_curve(given.text("--bandwidth-curve"));
  std::vector<SizeCount> sizes;
  std::string of = "one of each size tested";
  if (const std::optional<Workload> workload = given.workload()) {
    sizes = tensor_sizes(*workload);
    of = fmt::format("{} of {}", counted(sizes.size(), "tensor"), workload->name);
  }
  const Routing routing = solve_routing(latency, bandwidth, sizes);
  const double to_bytes = std::max(latency.points().back().bytes, bandwidth.points().back().bytes);

  Lines intervals("{:<10} {:>12}  {}{}");
  intervals("faster", "above", "up to", "");
  Json intervals_json = Json::array();
  for (const RoutingInterval& interval : routing.intervals) {
    intervals_json.push_back({{"from_bytes", interval.from_bytes},
                              {"to_bytes", finite_or_null(interval.to_bytes)},
                              {"faster", proxy_of(interval)}});
    intervals(proxy_of(interval), bytes_text(interval.from_bytes),
              std::isinf(interval.to_bytes) ? "any size" : bytes_text(interval.to_bytes),
              interval.from_bytes > to_bytes ? ", beyond the largest size tested" : "");
  }
  Lines times("{:<30} {:>10} {:>9}");
  times(of, "time", "to best");
  const auto row = [&](const char* name, double seconds) {
    times(name, time_text(seconds), times_text(seconds, routing.best_s));
  };
  row("each by its faster proxy", routing.best_s);
  row("by the threshold", routing.threshold_s);
  row("all by the latency proxy", routing.latency_s);
  row("all by the bandwidth proxy", routing.bandwidth_s);
  return {{{"threshold_bytes", or_null(routing.threshold_bytes)},
           {"crossings_bytes", routing.crossings_bytes},
           {"several_crossings", routing.several},
           {"reversed", routing.reversed},
           {"intervals", intervals_json},
           {"tested_from_bytes",
            std::min(latency.points().front().bytes, bandwidth.points().front().bytes)},
           {"tested_to_bytes", to_bytes},
           {"threshold_seconds", routing.threshold_s},
           {"best_seconds", routing.best_s},
           {"latency_proxy_seconds", routing.latency_s},
           {"bandwidth_proxy_seconds", routing.bandwidth_s}},
          threshold_text(routing) +
              (routing.several ? fmt::format("{} crossings: no threshold is right for all sizes; "
                                             "this one has the least total time\n",
                                             routing.crossings_bytes.size())
                               : "") +
              (routing.reversed ? "the latency proxy is the faster one for the largest sizes: are "
                                  "the curves exchanged?\n"
                                : "") +
              "\n" + intervals.text() + "\n" + times.text()};
}

// ---------------------------------------------------------------- partition

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

Answer answer_partition(const Given& given) {
  const Curve curve = read_curve(given.text("--curve"));
  const double tolerance = given.number("--bandwidth-slack", k_partition_tolerance);
  refuse_if(tolerance >= 1, "--bandwidth-slack {}: must be below 100 %",
            given.text("--bandwidth-slack"));
  if (curve.points().back().bytes == 0) {
    fail(ErrorKind::input,
         fmt::format("{}: has no size above 0 bytes; add lines for some", given.text("--curve")));
  }
  const double size = partition_bytes(curve, tolerance);
  const auto rate = [](const CurvePoint& sample) { return sample.bytes / sample.seconds; };
  const CurvePoint greatest = *std::ranges::max_element(curve.points(), {}, rate);
  const double bytes_per_s = size / curve.seconds_at(size);
  const bool largest = size == curve.points().back().bytes;
  std::optional<std::vector<std::uint64_t>> shards;
  std::string text = fmt::format("S' = {}: {}, within {:.4g} % of the greatest, {} at {} (30)\n",
                                 exact_text(size), rate_text(bytes_per_s), 100 * tolerance,
                                 rate_text(rate(greatest)), bytes_text(greatest.bytes));
  if (largest) {
    text += "that is the largest size tested: the bandwidth may still rise; measure larger ones\n";
  }
  if (given.has("--tensor")) {
    const Bytes tensor = parse_bytes(given.text("--tensor"), "--tensor");
    shards = shards_of(tensor.count(), static_cast<std::uint64_t>(size));
    text += fmt::format("tensor of {} ({} B): {} (31)\n", to_text(tensor), tensor.count(),
                        shards_text(*shards));
  }
  return {{{"partition_bytes", size},
           {"shards_bytes", or_null(shards)},
           {"tolerance", tolerance},
           {"bandwidth_bytes_per_second", bytes_per_s},
           {"greatest_bandwidth_bytes_per_second", rate(greatest)},
           {"greatest_bandwidth_bytes", greatest.bytes},
           {"is_largest_tested", largest}},
          text};
}

// ---------------------------------------------------------------- dual-sync

/// A time of an option, or else of the workload.
double pass_s(const Given& given, const char* flag, const std::optional<double>& of_workload) {
  refuse_if(!given.has(flag) && !of_workload,
            "{} is required: no workload says that time; 0s plays none", flag);
  return given.has(flag) ? given.number(flag) : *of_workload;
}

/// What is asked, and the workload where it is of one.
DualSync sync_of(const Given& given, std::optional<Workload>& workload) {
  DualSync sync;
  sync.workers = given.count("--workers");
  sync.devices = given.count("--devices", sync.workers);
  refuse_if(
      sync.devices > sync.workers,
      "--devices {} for --workers {}: a device serves workers of its own; give as many at most",
      sync.devices, sync.workers);
  workload = given.workload();
  refuse_if(!workload && !given.has("--bytes"),
            "the size of the gradient is missing; give --bytes or --workload");
  sync.bytes = workload ? static_cast<double>(workload->bytes()) : given.number("--bytes");
  sync.proxy_bytes_per_s = given.number("--proxy-bandwidth");
  sync.gpu_bytes_per_s = given.number("--gpu-bandwidth");
  sync.client_bytes_per_s = given.optional_number("--client-bandwidth");
  const Workload none;
  sync.forward_s = pass_s(given, "--forward", workload.value_or(none).forward_seconds);
  sync.backward_s = pass_s(given, "--backward", workload.value_or(none).backward_seconds);
  sync.ring =
      given.on("--ring-after-backward") ? WorkerRing::after_backward : WorkerRing::when_ready;
  sync.shared_link = given.on("--shared-link");
  return sync;
}

/// No part of a byte goes anywhere.
std::uint64_t whole(double bytes) {
  return static_cast<std::uint64_t>(std::llround(bytes));
}

Answer answer_dual_sync(const Given& given) {
  std::optional<Workload> workload;
  const DualSync sync = sync_of(given, workload);
  Answer answer;
  Lines lines("{:<26} {:>12} {:>12} {:>10}{}");
  lines("split", "to proxies", "by workers", "iteration", "");
  const auto row = [&](const char* name, double proxy_bytes, double seconds,
                       const std::string& remark) {
    lines(name, bytes_text(proxy_bytes), bytes_text(sync.bytes - proxy_bytes), time_text(seconds),
          "  " + remark);
  };
  const auto answer_of = [&](DualSyncModel model, const std::string& prefix, const char* name,
                             const char* equation) {
    const DualSplit split = solve_dual_sync(sync, model);
    answer.json[prefix + "proxy_bytes"] = whole(split.proxy_bytes);
    answer.json[prefix + "worker_bytes"] = whole(sync.bytes) - whole(split.proxy_bytes);
    answer.json[prefix + "time_seconds"] = split.time_s;
    answer.json[prefix + "clipped"] = split.clipped;
    answer.json[prefix + "rounded"] = nullptr;
    row(name, split.proxy_bytes, split.time_s,
        fmt::format("{}{}", equation, split.clipped ? ", clipped" : ""));
    if (workload) {
      const DualRounding rounded = round_dual_sync(sync, model, tensor_bytes(*workload));
      answer.json[prefix + "rounded"] = {{"tensors", rounded.tensors},
                                         {"proxy_bytes", whole(rounded.proxy_bytes)},
                                         {"time_seconds", rounded.time_s},
                                         {"cost_seconds", rounded.cost_s}};
      row("  in whole tensors", rounded.proxy_bytes, rounded.time_s,
          fmt::format("the first {}, costs {}", rounded.tensors, time_text(rounded.cost_s)));
    }
    return split;
  };
  const DualSplit paper = answer_of(DualSyncModel::paper, "", "the paper's formula", "(32)");
  const DualSplit corrected =
      answer_of(DualSyncModel::corrected, "corrected_", "corrected", "(33)");
  answer.json["corrected_most_proxy_bytes"] = whole(corrected.most_proxy_bytes);
  const auto corrected_row = [&](const char* key, const char* name, double proxy_bytes) {
    const double seconds = dual_sync_s(sync, DualSyncModel::corrected, proxy_bytes);
    answer.json[key] = seconds;
    row(name, proxy_bytes, seconds, "(33)");
  };
  corrected_row("corrected_time_of_paper_split_seconds", "the paper's m, corrected",
                paper.proxy_bytes);
  corrected_row("corrected_workers_only_seconds", "workers only", 0);
  corrected_row("corrected_proxies_only_seconds", "proxies only", sync.bytes);
  answer.text = fmt::format("n = {}, p = {}, q = {}\n\n", exact_text(sync.bytes),
                            counted(sync.workers, "worker"), counted(sync.devices, "device")) +
                lines.text();
  if (corrected.most_proxy_bytes > corrected.proxy_bytes) {
    answer.text += fmt::format("\nup to {} to the proxies take no longer\n",
                               bytes_text(corrected.most_proxy_bytes));
  }
  return answer;
}

} // namespace

Calculator routing() {
  return {
      "routing",
      "Which tensors go to the proxy with the least latency, which to the one with the greatest "
      "bandwidth (COARSE)",
      "--latency-curve near.csv --bandwidth-curve far.csv --workload resnet50",
      {required("--latency-curve", Unit::text,
                "CSV with the columns bytes,seconds: times to the proxy with the least latency"),
       required("--bandwidth-curve", Unit::text,
                "The same columns, of the proxy with the greatest bandwidth"),
       {"-m,--workload", Unit::text,
        "A workload: the tensors that a choice between several crossings is made for; default: one "
        "of each size tested"}},
      answer_routing,
      "Equations 28 and 29 of docs/equations.md. With --json, threshold_bytes is null for the "
      "first "
      "curve\nfor everything, 0 for the second; reversed: the first is faster above the last "
      "crossing."};
}

Calculator partition() {
  return {"partition",
          "The smallest size with full bandwidth, and a tensor's equal shards (COARSE)",
          "--curve far.csv --tensor 9MiB",
          {required("--curve", Unit::text, "CSV with the columns bytes,seconds"),
           {"--bandwidth-slack", Unit::fraction,
            "How far below the greatest bandwidth still counts as full: 2% (default)"},
           {"--tensor", Unit::bytes, "A tensor to cut: 9437184, 9MiB"}},
          answer_partition,
          "Equations 30 and 31 of docs/equations.md. With --json, shards_bytes is null without "
          "--tensor.",
          {{"--tolerance", "--bandwidth-slack"}}};
}

Calculator dual_sync() {
  return {
      "dual-sync",
      "How much of a gradient memory devices sum, how much the workers' own ring (COARSE)",
      "--workers 8 --workload bert-large --proxy-bandwidth 16GB/s --gpu-bandwidth 9GB/s --forward "
      "30ms --backward 60ms",
      {required("--workers", Unit::count, "How many work: GPUs, p"),
       {"--devices", Unit::count, "How many memory devices: q; default: as many as workers"},
       {"--bytes", Unit::bytes, "Size of the gradient: 553MB, 512MiB"},
       {"-m,--workload",
        Unit::text,
        "A workload: its gradient instead, and the best split between whole tensors",
        "",
        {"--bytes"}},
       required("--proxy-bandwidth", Unit::bandwidth,
                "A memory device's port, each direction: 12.5GB/s"),
       required("--gpu-bandwidth", Unit::bandwidth,
                "The slowest hop of the workers' ring, each direction"),
       {"--client-bandwidth", Unit::bandwidth,
        "A worker's link to its device, each direction; default: as --proxy-bandwidth"},
       {"--forward", Unit::seconds, "Time of the forward pass: 30ms; default: the workload's"},
       {"--backward", Unit::seconds, "Time of the backward pass; default: the workload's"},
       {"--ring-after-backward", Unit::flag,
        "The workers' ring waits for the end of the backward pass; else it starts as soon as its "
        "first gradient is ready (corrected time only)"},
       {"--shared-link", Unit::flag,
        "The workers' ring uses the workers' links to their devices (corrected time only)"}},
      answer_dual_sync,
      "Equations 32 and 33 of docs/equations.md. With --json, the plain keys are the paper's "
      "formula, the\ncorrected_ ones ours; the rounded ones are null without --workload."};
}

} // namespace reckon::solve
