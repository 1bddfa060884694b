// SPDX-License-Identifier: Apache-2.0
#include "solve.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "core/shape.hpp"
#include "core/units.hpp"
#include "documents/document.hpp"
#include "equations/torus.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace reckon {

using namespace solve_command;

namespace {

struct TorusOptions {
  std::string shape, collective = "all-reduce", network_bandwidth, efficiency = "100%",
                     mover_bandwidth = "79.68GB/s";
  std::optional<std::string> chunk, message, sram; ///< of an engine that all-reduces
  std::array<std::string, k_torus_dimensions> bandwidth;
  bool json = false;
};

constexpr const char *k_chunk = "64KiB", *k_message = "8KiB", *k_sram = "4MiB"; // of ACE's engine
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
  torus.nodes = parse_shape(options.shape);
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

/// Bytes of an option that must be more than none.
double size_of_option(const std::optional<std::string>& given, const char* usual,
                      const char* flag) {
  const std::string text = given.value_or(usual);
  const double bytes = parse_bytes(text, flag).as_double();
  if (bytes < 1) {
    fail(ErrorKind::usage, fmt::format("{} {}: must be greater than 0", flag, text));
  }
  return bytes;
}

struct PhaseRow {
  TorusPhase phase;
  std::uint64_t messages = 0;
  double sram_bytes = 0;
};

/// What is needed of memory to send `network` bytes a second.
struct TorusAnswer {
  Torus torus;
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
  bool crowded = false; ///< a phase's part of the SRAM does not hold one message
};

TorusAnswer answer(const TorusOptions& options) {
  const Torus torus = torus_of(options);
  const bool all_reduce = options.collective == "all-reduce";
  if (!all_reduce && options.collective != "all-to-all") {
    fail(ErrorKind::usage,
         fmt::format("--collective '{}': must be all-reduce or all-to-all", options.collective));
  }
  if (!all_reduce && (options.chunk || options.message || options.sram)) {
    fail(ErrorKind::usage,
         "--chunk, --message and --sram are of an engine's all-reduce; leave them "
         "out with --collective all-to-all");
  }
  TorusAnswer out;
  out.torus = torus;
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
  const double chunk = size_of_option(options.chunk, k_chunk, "--chunk");
  const double message = size_of_option(options.message, k_message, "--message");
  const double sram = size_of_option(options.sram, k_sram, "--sram");
  if (all_reduce) {
    const std::vector<double> partitions = sram_partitions(sram, torus, out.traffic.phases);
    for (std::size_t p = 0; p < out.traffic.phases.size(); ++p) {
      const TorusPhase& phase = out.traffic.phases[p];
      const std::uint64_t ring = torus.nodes[static_cast<std::size_t>(phase.dimension)];
      if (chunk * phase.data_bytes < static_cast<double>(ring)) {
        fail(ErrorKind::usage,
             fmt::format("--chunk {}: a ring of {} cuts its part of a chunk into messages of less "
                         "than a byte; give more",
                         options.chunk.value_or(k_chunk), ring));
      }
      if (partitions[p] < std::min(message, chunk * phase.data_bytes / static_cast<double>(ring))) {
        out.crowded = true;
      }
      out.rows.push_back(
          {phase, messages_of_chunk(chunk * phase.data_bytes, message, ring), partitions[p]});
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

/// The dimensions whose rings limit the whole: all that take as long as the busiest.
std::string busiest_text(const TorusAnswer& a) {
  const auto seconds = [&](std::size_t d) {
    return a.torus.nodes[d] > 1 ? a.traffic.dimension_bytes[d] / a.torus.bytes_per_s[d] : 0;
  };
  constexpr double k_rounding = 1e-9;
  const double longest = seconds(static_cast<std::size_t>(a.limit.busiest));
  std::vector<const char*> names;
  for (std::size_t d = 0; d < k_torus_dimensions; ++d) {
    if (seconds(d) >= longest * (1 - k_rounding)) {
      names.push_back(k_dimension_names[d]);
    }
  }
  return fmt::format("{}", fmt::join(names, " and "));
}

std::string text_of(const TorusAnswer& a, const TorusOptions& options) {
  const double sent = a.traffic.sent_bytes;
  std::string text = fmt::format(
      "{} on {}: {:.4g} B sent for each byte loaded (4{}); at most {} a node, {} rings always busy "
      "(44)\n\n",
      options.collective, options.shape, sent / a.traffic.loaded_bytes, a.rows.empty() ? 3 : 2,
      rate_text(a.limit.bytes_per_s), busiest_text(a));
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
  if (a.rows.empty()) {
    return text + fmt::format("\nan engine reads {:.3g} times less\n", a.baseline / a.offload);
  }
  text +=
      fmt::format("\nan engine reads {:.3g} times less than 1.5 for each byte sent, {:.3g} times "
                  "less than these rings\n",
                  a.baseline / a.offload, a.exact / a.offload);
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
                      options.chunk.value_or(k_chunk), options.message.value_or(k_message));
  if (a.crowded) {
    text += fmt::format("--sram {}: the part of at least one phase does not hold a message\n",
                        options.sram.value_or(k_sram));
  }
  return text;
}

} // namespace

Command add_solve_torus(CLI::App& solve) {
  auto options = std::make_shared<TorusOptions>();
  CLI::App* torus = solve.add_subcommand(
      "torus", "What a collective on a torus asks of links and of an endpoint's memory (ACE)");
  torus->add_option("--shape", options->shape, "Nodes LxVxH: local, vertical, horizontal; 4x4x4")
      ->required();
  for (std::size_t d = 0; d < k_torus_dimensions; ++d) {
    torus->add_option(k_bandwidth_flags[d], options->bandwidth[d],
                      fmt::format("What a node sends over its {} links, all together: {}; needed "
                                  "where the shape has such a ring",
                                  k_dimension_names[d], d == 0 ? "400GB/s" : "50GB/s"));
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
      ->default_str(k_chunk);
  torus->add_option("--message", options->message, "At most so much is sent at a time")
      ->default_str(k_message);
  torus->add_option("--sram", options->sram, "The engine's own memory")->default_str(k_sram);
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
