// SPDX-License-Identifier: Apache-2.0
#include "solve.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "core/units.hpp"
#include "documents/document.hpp"
#include "equations/torus.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

using namespace solve;

namespace {

struct TorusOptions {
  std::string shape, collective = "all-reduce", network_bandwidth, efficiency = "100%",
                     mover_bandwidth = "79.68GB/s", chunk = "64KiB", message = "8KiB",
                     sram = "4MiB";
  std::array<std::string, k_torus_dimensions> bandwidth;
  bool json = false;
};

constexpr std::array<const char*, k_torus_dimensions> k_dimension_names{"local", "vertical",
                                                                        "horizontal"};
constexpr std::array<const char*, k_torus_dimensions> k_bandwidth_flags{
    "--local-bandwidth", "--vertical-bandwidth", "--horizontal-bandwidth"};

const char* name_of(TorusDimension dimension) {
  return k_dimension_names[static_cast<std::size_t>(dimension)];
}

const char* name_of(CollectivePhase kind) {
  switch (kind) {
  case CollectivePhase::reduce_scatter:
    return "reduce-scatter";
  case CollectivePhase::all_reduce:
    return "all-reduce";
  case CollectivePhase::all_gather:
    return "all-gather";
  }
  return "?";
}

Torus torus_of(const TorusOptions& options) {
  Torus torus;
  torus.nodes = shape_of(options.shape);
  const double efficiency = parse_fraction(options.efficiency, "--link-efficiency");
  if (efficiency <= 0 || efficiency > 1) {
    fail(ErrorKind::usage,
         fmt::format("--link-efficiency {}: must be above 0 and at most 100%", options.efficiency));
  }
  for (std::size_t d = 0; d < k_torus_dimensions; ++d) {
    if (!options.bandwidth[d].empty()) {
      torus.bytes_per_s[d] =
          efficiency * parse_bandwidth(options.bandwidth[d], k_bandwidth_flags[d]).as_bytes_per_s();
    }
    if (torus.nodes[d] > 1 && !(torus.bytes_per_s[d] > 0)) {
      fail(ErrorKind::usage,
           fmt::format("--shape {} has a {} ring; give {}, what a node sends "
                       "over both its links there",
                       options.shape, k_dimension_names[d], k_bandwidth_flags[d]));
    }
  }
  return torus;
}

struct PhaseRow {
  TorusPhase phase;
  std::uint64_t messages = 0;
  double sram_bytes = 0;
};

/// What is needed of memory to send `network` bytes a second.
struct TorusAnswer {
  TorusTraffic traffic;
  TorusLimit limit;
  double network = 0;
  double offload = 0;  ///< read by an engine that loads each byte once
  double baseline = 0; ///< read, by ACE's law of 1.5 (all-to-all: exactly)
  double exact = 0, exact_with_last_sums = 0, written = 0; ///< of these rings
  double offload_written = 0;
  std::uint64_t movers = 0, offload_movers = 0;
  std::vector<PhaseRow> rows;
  double terminal_bytes = 0;
};

TorusAnswer answer(const TorusOptions& options) {
  const Torus torus = torus_of(options);
  const bool all_reduce = options.collective == "all-reduce";
  if (!all_reduce && options.collective != "all-to-all") {
    fail(ErrorKind::usage,
         fmt::format("--collective '{}': must be all-reduce or all-to-all", options.collective));
  }
  TorusAnswer out;
  out.traffic = all_reduce ? torus_all_reduce(torus) : torus_all_to_all(torus);
  out.limit = torus_limit(torus, out.traffic);
  out.network = out.limit.bytes_per_s;
  if (!options.network_bandwidth.empty()) {
    out.network =
        parse_bandwidth(options.network_bandwidth, "--network-bandwidth").as_bytes_per_s();
    if (out.network > out.limit.bytes_per_s) {
      fail(ErrorKind::usage,
           fmt::format("--network-bandwidth {}: this torus sends at most {} of {}",
                       options.network_bandwidth, rate_text(out.limit.bytes_per_s),
                       options.collective));
    }
  }
  const double sent = out.traffic.sent_bytes;
  const auto of_network = [&](double bytes) { return out.network * bytes / sent; };
  out.offload = of_network(out.traffic.loaded_bytes);
  out.offload_written = out.offload; // each byte that was loaded is written back as its sum
  out.exact = of_network(out.traffic.memory.read_bytes);
  out.exact_with_last_sums = out.exact + of_network(out.traffic.memory.last_sum_bytes);
  out.written = of_network(out.traffic.memory.written_bytes);
  out.baseline = all_reduce ? out.network * k_reads_per_byte_sent : out.exact;
  const double each = parse_bandwidth(options.mover_bandwidth, "--sm-bandwidth").as_bytes_per_s();
  out.movers = movers_needed(out.baseline, each);
  out.offload_movers = movers_needed(out.offload, each);
  const double chunk = parse_bytes(options.chunk, "--chunk").as_double();
  const double message = parse_bytes(options.message, "--message").as_double();
  const double sram = parse_bytes(options.sram, "--sram").as_double();
  if (all_reduce) {
    const std::vector<double> partitions = sram_partitions(sram, torus, out.traffic.phases);
    for (std::size_t p = 0; p < out.traffic.phases.size(); ++p) {
      const TorusPhase& phase = out.traffic.phases[p];
      out.rows.push_back({phase,
                          messages_of_chunk(chunk * phase.data_bytes, message,
                                            torus.nodes[static_cast<std::size_t>(phase.dimension)]),
                          partitions[p]});
    }
    out.terminal_bytes = partitions.back();
  }
  return out;
}

Json json_of(const TorusAnswer& a) {
  Json out;
  out["bytes_sent_per_byte_loaded"] = a.traffic.sent_bytes / a.traffic.loaded_bytes;
  out["ideal_bandwidth"] = a.limit.bytes_per_s;
  out["busiest_dimension"] = name_of(a.limit.busiest);
  out["network_bandwidth"] = a.network;
  out["offload_memory_bandwidth"] = a.offload;
  out["baseline_memory_bandwidth"] = a.baseline;
  out["ratio"] = a.baseline / a.offload;
  out["sms"] = a.movers;
  out["offload_sms"] = a.offload_movers;
  out["exact_reads_bandwidth"] = a.exact;
  out["exact_reads_with_last_sums_bandwidth"] = a.exact_with_last_sums;
  out["exact_writes_bandwidth"] = a.written;
  out["offload_writes_bandwidth"] = a.offload_written;
  out["phases"] = Json::array();
  for (const PhaseRow& row : a.rows) {
    const TorusPhase& p = row.phase;
    out["phases"].push_back({{"collective", name_of(p.kind)},
                             {"dimension", name_of(p.dimension)},
                             {"sent_bytes", p.sent_bytes},
                             {"read_bytes", p.memory.read_bytes},
                             {"last_sum_bytes", p.memory.last_sum_bytes},
                             {"written_bytes", p.memory.written_bytes},
                             {"messages", row.messages},
                             {"sram_bytes", row.sram_bytes}});
  }
  out["terminal_sram_bytes"] = a.terminal_bytes;
  return out;
}

std::string text_of(const TorusAnswer& a, const TorusOptions& options) {
  const double sent = a.traffic.sent_bytes;
  std::string text = fmt::format(
      "{} on {}: {:.4g} B sent for each byte loaded (4{}); at most {} a node, {} rings always busy "
      "(44)\n\n",
      options.collective, options.shape, sent / a.traffic.loaded_bytes, a.rows.empty() ? 3 : 2,
      rate_text(a.limit.bytes_per_s), name_of(a.limit.busiest));
  text += fmt::format("{:<44} {:>11} {:>11} {:>5}\n",
                      fmt::format("memory, to send {}", rate_text(a.network)), "read", "written",
                      "SMs");
  const auto row = [&](const char* name, double read, const std::string& written,
                       std::uint64_t movers) {
    text += fmt::format("{:<44} {:>11} {:>11} {:>5}\n", name, rate_text(read), written, movers);
  };
  const double each = parse_bandwidth(options.mover_bandwidth, "--sm-bandwidth").as_bytes_per_s();
  if (!a.rows.empty()) {
    row("endpoint, 1.5 read for each byte sent", a.baseline, "-", a.movers);
  }
  row(a.rows.empty() ? "endpoint, forwarding through memory" : "endpoint, these rings step by step",
      a.exact, rate_text(a.written), movers_needed(a.exact, each));
  if (!a.rows.empty()) {
    row("  with the last sums, which stay", a.exact_with_last_sums, rate_text(a.written),
        movers_needed(a.exact_with_last_sums, each));
  }
  row("engine that loads each byte once", a.offload, rate_text(a.offload_written),
      a.offload_movers);
  text += fmt::format("\nan engine reads {:.3g} times less\n", a.baseline / a.offload);
  if (a.rows.empty()) {
    return text;
  }
  text += fmt::format("\n{:<26} {:>9} {:>9} {:>9} {:>14} {:>10}\n", "phase", "sent", "read",
                      "written", "messages (45)", "SRAM (46)");
  for (const PhaseRow& r : a.rows) {
    const TorusPhase& p = r.phase;
    text += fmt::format("{:<26} {:>9.4g} {:>9.4g} {:>9.4g} {:>14} {:>10}\n",
                        fmt::format("{} {}", name_of(p.kind), name_of(p.dimension)), p.sent_bytes,
                        p.memory.read_bytes + p.memory.last_sum_bytes, p.memory.written_bytes,
                        r.messages, bytes_text(r.sram_bytes));
  }
  text += fmt::format("{:<26} {:>9} {:>9} {:>9} {:>14} {:>10}\n", "back to memory", "", "", "", "",
                      bytes_text(a.terminal_bytes));
  text += fmt::format("sent, read and written: bytes for each byte of the gradient; messages of a "
                      "chunk of {}, at most {}\n",
                      options.chunk, options.message);
  return text;
}

} // namespace

std::array<std::uint64_t, k_torus_dimensions> solve::shape_of(const std::string& shape) {
  std::array<std::uint64_t, k_torus_dimensions> counts{};
  std::string_view rest = shape;
  std::uint64_t nodes = 1;
  for (std::size_t d = 0; d < k_torus_dimensions; ++d) {
    const std::size_t end = std::min(rest.find('x'), rest.size());
    const auto [at, error] = std::from_chars(rest.data(), rest.data() + end, counts[d]);
    const bool last = d + 1 == k_torus_dimensions;
    if (error != std::errc() || at != rest.data() + end || (end == rest.size()) != last ||
        counts[d] < 1 || counts[d] > static_cast<std::uint64_t>(k_most_machines)) {
      fail(ErrorKind::usage,
           fmt::format("--shape '{}': must be three counts from 1 to {}, LxVxH, for example 4x4x4",
                       shape, k_most_machines));
    }
    rest.remove_prefix(last ? end : end + 1);
    nodes *= counts[d];
    if (nodes > static_cast<std::uint64_t>(k_most_machines)) {
      fail(ErrorKind::usage, fmt::format("--shape {}: more than {} nodes", shape, k_most_machines));
    }
  }
  if (nodes == 1) {
    fail(ErrorKind::usage, "--shape 1x1x1: one node has nobody to talk to");
  }
  return counts;
}

Command add_solve_torus(CLI::App& solve) {
  auto options = std::make_shared<TorusOptions>();
  CLI::App* torus = solve.add_subcommand(
      "torus", "What a collective on a torus asks of links and of an endpoint's memory (ACE)");
  torus->add_option("--shape", options->shape, "Nodes LxVxH: local, vertical, horizontal; 4x4x4")
      ->required();
  for (std::size_t d = 0; d < k_torus_dimensions; ++d) {
    torus->add_option(k_bandwidth_flags[d], options->bandwidth[d],
                      fmt::format("What a node sends over its {} links, all together: 400GB/s",
                                  k_dimension_names[d]));
  }
  torus->add_option("--network-bandwidth", options->network_bandwidth,
                    "What a node is to send; default: as much as the torus takes");
  torus->add_option("--collective", options->collective, "all-reduce or all-to-all")
      ->capture_default_str();
  torus->add_option("--link-efficiency", options->efficiency, "Of each link's bandwidth")
      ->capture_default_str();
  torus
      ->add_option("--sm-bandwidth", options->mover_bandwidth,
                   "What one streaming multiprocessor moves; 64 B a cycle at 1245 MHz")
      ->capture_default_str();
  torus->add_option("--chunk", options->chunk, "What goes through the phases at a time")
      ->capture_default_str();
  torus->add_option("--message", options->message, "At most so much is sent at a time")
      ->capture_default_str();
  torus->add_option("--sram", options->sram, "The engine's own memory")->capture_default_str();
  torus->add_flag("--json", options->json, "One JSON object on standard output");
  torus->footer("Equations 41 to 46 of docs/equations.md. With --json, bandwidths are in bytes per "
                "second.");
  return [options] {
    const TorusAnswer solved = answer(*options);
    print(options->json ? canonical(json_of(solved)) : text_of(solved, *options));
    return k_exit_ok;
  };
}

} // namespace reckon
