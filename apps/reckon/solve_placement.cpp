// SPDX-License-Identifier: Apache-2.0
#include "solve.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "core/units.hpp"
#include "documents/document.hpp"
#include "equations/placement.hpp"
#include "equations/port_placement.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace reckon {

using namespace solve_command;

namespace {

/// GPT-2 XL in chunks of 1 KiB is 6 million; a chunk of a few bytes would only fill the memory.
constexpr std::uint64_t k_most_chunks = 10'000'000;
/// Sizes whose times differ by no more than this part of the least are as good, as in `plan`.
constexpr double k_as_good = 0.002;

struct PlacementOptions {
  std::string workload, chunk = "32KiB", interface_bandwidth, sum_bandwidth, write_cost;
  std::int64_t cores = 0, nodes = 1;
  std::optional<std::int64_t> interfaces, workers;
  bool json = false;
};

/// The sizes of all pieces of all tensors: equation 12.
std::vector<std::uint64_t> cut(const Workload& workload,
                               const std::optional<std::uint64_t>& chunk_bytes) {
  std::vector<std::uint64_t> pieces;
  for (const Tensor& tensor : workload.tensors) {
    if (!chunk_bytes) {
      pieces.push_back(tensor.bytes());
      continue;
    }
    if (*chunk_bytes % size_of(tensor.dtype) != 0) {
      fail(ErrorKind::usage,
           fmt::format("--chunk of {} B would cut an element of {} ({}); use a multiple of {} B",
                       *chunk_bytes, tensor.name, reckon::name_of(tensor.dtype),
                       size_of(tensor.dtype)));
    }
    const Chunks chunks = cut_into_chunks(tensor.bytes(), *chunk_bytes);
    if (chunks.count > k_most_chunks - pieces.size()) {
      fail(ErrorKind::usage,
           fmt::format("--chunk of {} B cuts {} into more than {} pieces; use larger chunks",
                       *chunk_bytes, workload.name, k_most_chunks));
    }
    pieces.insert(pieces.end(), chunks.count - 1, chunks.full_bytes);
    pieces.push_back(chunks.last_bytes);
  }
  return pieces;
}

struct TriedChunk {
  std::uint64_t bytes = 0;
  double seconds = 0;
};

/// What was asked, and the placement of it.
struct PlacementAnswer {
  Workload workload;
  std::optional<std::uint64_t> chunk_bytes;
  std::vector<TriedChunk> tried; ///< with --chunk auto
  std::vector<std::uint64_t> pieces;
  std::vector<std::uint64_t> core_bytes; ///< (13), or (13c)
  std::optional<ServerLayout> layout;    ///< only with --interfaces
  PortPlacement ports;
  PlacementEvenness even;
};

ChunkCosts costs_of(const PlacementOptions& options) {
  std::vector<std::string> missing;
  for (const auto& [given, flag] :
       {std::pair(options.interfaces.has_value(), "--interfaces"),
        std::pair(!options.interface_bandwidth.empty(), "--interface-bandwidth"),
        std::pair(!options.write_cost.empty(), "--write-cost")}) {
    if (!given) {
      missing.emplace_back(flag);
    }
  }
  if (!missing.empty()) {
    fail(ErrorKind::usage,
         fmt::format("--chunk auto: give {} as well; `reckon plan` solves the size from a measured "
                     "profile",
                     fmt::join(missing, " and ")));
  }
  ChunkCosts costs;
  costs.write_s = parse_seconds(options.write_cost, "--write-cost").count();
  costs.interface_bytes_per_s =
      parse_bandwidth(options.interface_bandwidth, "--interface-bandwidth").as_bytes_per_s();
  costs.sum_bytes_per_s =
      options.sum_bandwidth.empty()
          ? std::numeric_limits<double>::infinity()
          : parse_bandwidth(options.sum_bandwidth, "--sum-bandwidth").as_bytes_per_s();
  if (!(costs.interface_bytes_per_s > 0) || !(costs.sum_bytes_per_s > 0)) {
    fail(ErrorKind::usage, "--interface-bandwidth, --sum-bandwidth: must be greater than 0");
  }
  costs.workers = count_of(options.workers.value_or(1), "--workers");
  return costs;
}

/// What only `--chunk auto` asks for.
void refuse_costs(const PlacementOptions& options) {
  for (const auto& [given, flag] :
       {std::pair(options.workers.has_value(), "--workers"),
        std::pair(!options.write_cost.empty(), "--write-cost"),
        std::pair(!options.sum_bandwidth.empty(), "--sum-bandwidth"),
        std::pair(!options.interface_bandwidth.empty(), "--interface-bandwidth")}) {
    if (given) {
      fail(ErrorKind::usage, fmt::format("{} is for --chunk auto; leave it out, or solve the size "
                                         "of the chunks",
                                         flag));
    }
  }
}

/// Equation 13d over powers of two; the largest of those that are as good as the best, as `plan`
/// takes it.
void choose_chunk(const ChunkCosts& costs, PlacementAnswer& answer) {
  constexpr std::uint64_t k_least = 1024, k_most = 16U << 20U;
  double shortest = std::numeric_limits<double>::infinity();
  std::uint64_t least = k_least; // of which there are not too many
  while (least<k_most&& static_cast<double>(answer.workload.bytes()) / static_cast<double>(least) +
               static_cast<double>(
                   answer.workload.tensors.size())> static_cast<double>(k_most_chunks)) {
    least *= 2;
  }
  for (std::uint64_t bytes = least; bytes <= k_most; bytes *= 2) {
    const std::vector<std::uint64_t> pieces = cut(answer.workload, bytes);
    const PortPlacement placed = place_on_ports(pieces, *answer.layout);
    // No tensor may be as long; then longer chunks are the same.
    const std::uint64_t longest =
        pieces.empty() ? 0 : *std::max_element(pieces.begin(), pieces.end());
    answer.tried.push_back({bytes, exchange_s(placed, costs, static_cast<double>(longest))});
    shortest = std::min(shortest, answer.tried.back().seconds);
    if (longest < bytes) {
      break;
    }
  }
  for (const TriedChunk& tried : answer.tried) {
    if (tried.seconds <= (1 + k_as_good) * shortest) {
      answer.chunk_bytes = tried.bytes;
    }
  }
}

PlacementAnswer answer_of(const PlacementOptions& options) {
  const std::uint64_t cores = count_of(options.cores, "--cores");
  PlacementAnswer answer;
  if (options.interfaces) {
    answer.layout = equal_layout(count_of(*options.interfaces, "--interfaces"), cores,
                                 count_of(options.nodes, "--nodes"));
  } else if (options.nodes != 1) {
    fail(ErrorKind::usage, "--nodes: of which interfaces? give --interfaces");
  }
  if (options.chunk == "auto") {
    const ChunkCosts costs = costs_of(options);
    answer.workload = read_workload(options.workload);
    choose_chunk(costs, answer);
  } else {
    refuse_costs(options);
    if (options.chunk != "none") {
      answer.chunk_bytes = parse_bytes(options.chunk, "--chunk").count();
      if (*answer.chunk_bytes == 0) {
        fail(ErrorKind::usage,
             "--chunk 0: must be greater than 0; use none for whole tensors, or auto");
      }
    }
    answer.workload = read_workload(options.workload);
  }
  answer.pieces = cut(answer.workload, answer.chunk_bytes);
  if (answer.layout) {
    answer.ports = place_on_ports(answer.pieces, *answer.layout);
    answer.even = evenness_of(answer.ports, *answer.layout, answer.pieces);
    answer.core_bytes = answer.ports.core_bytes;
  } else {
    answer.core_bytes = balance_longest_first(answer.pieces, cores).loads;
  }
  return answer;
}

Json level_json(const Evenness& level, const std::vector<std::uint64_t>& loads) {
  return {{"load_bytes", loads}, {"max_over_mean", level.over_mean}, {"at_most", level.at_most}};
}

Json placement_json(const PlacementAnswer& answer) {
  Json out;
  out["workload"] = answer.workload.name;
  out["bytes"] = answer.workload.bytes();
  out["chunk_bytes"] = answer.chunk_bytes ? Json(*answer.chunk_bytes) : Json(nullptr);
  out["chunks"] = answer.pieces.size();
  out["cores"] = answer.core_bytes.size();
  out["load_bytes"] = answer.core_bytes;
  out["max_over_mean"] = max_over_mean(answer.core_bytes);
  if (!answer.layout) {
    return out;
  }
  out["interfaces"] = level_json(answer.even.interfaces, answer.ports.interface_bytes);
  out["nodes"] = level_json(answer.even.nodes, answer.ports.node_bytes);
  out["cores_at_most"] = answer.even.cores.at_most;
  Json lanes = Json::array();
  for (const PortLane& lane : answer.ports.lanes) {
    lanes.push_back({{"interface", lane.interface},
                     {"node", lane.node},
                     {"core", lane.core},
                     {"chunks", lane.chunks},
                     {"bytes", lane.bytes}});
  }
  out["lanes"] = std::move(lanes);
  out["tried"] = nullptr;
  if (!answer.tried.empty()) {
    out["tried"] = Json::array();
    for (const TriedChunk& tried : answer.tried) {
      out["tried"].push_back({{"chunk_bytes", tried.bytes}, {"seconds", tried.seconds}});
    }
  }
  return out;
}

/// A row for each of one kind: its load, and that over the mean of its kind.
std::string loads_table(const char* kind, const std::vector<std::uint64_t>& loads,
                        const PlacementAnswer& answer) {
  const double mean =
      static_cast<double>(answer.workload.bytes()) / static_cast<double>(loads.size());
  std::string text = fmt::format("{:<10} {:>12} {:>10}\n", kind, "load", "of mean");
  for (std::size_t i = 0; i < std::min(loads.size(), k_most_rows); ++i) {
    text += fmt::format("{:<10} {:>12} {:>8.2f} %\n", i, to_text(Bytes(loads[i])),
                        100 * static_cast<double>(loads[i]) / mean);
  }
  if (loads.size() > k_most_rows) {
    text +=
        fmt::format("... and {} more; --json has all\n", counted(loads.size() - k_most_rows, kind));
  }
  return text;
}

/// A node's part of the bytes is that of its interfaces; where nodes have not as many, equal loads
/// of the nodes are not what the rows above compare with.
std::string uneven_text(const PlacementAnswer& answer) {
  std::vector<std::size_t> of_node(answer.ports.node_bytes.size(), 0);
  for (const ServerLayout::Interface& interface : answer.layout->interfaces) {
    ++of_node[interface.node];
  }
  const auto [least, most] = std::minmax_element(of_node.begin(), of_node.end());
  if (*least == *most) {
    return {};
  }
  const auto [lightest, fullest] =
      std::minmax_element(answer.ports.node_bytes.begin(), answer.ports.node_bytes.end());
  return fmt::format(
      "\n{} over {}: {} to {} each, which carry {} to {}; \"max over mean\" of nodes is of their "
      "interfaces' part, of cores of equal parts\n",
      counted(answer.layout->interfaces.size(), "interface"), counted(of_node.size(), "node"),
      *least, *most, to_text(Bytes(*lightest)), to_text(Bytes(*fullest)));
}

std::string ports_text(const PlacementAnswer& answer) {
  std::string text = fmt::format("{:<10} {:>6} {:>12} {:>15} {:>10}\n", "", "", "fullest",
                                 "max over mean", "at most");
  const auto level = [&](const char* kind, const Evenness& even,
                         const std::vector<std::uint64_t>& loads) {
    text += fmt::format("{:<10} {:>6} {:>12} {:>15.6g} {:>10.6g}\n", kind, loads.size(),
                        to_text(Bytes(*std::max_element(loads.begin(), loads.end()))),
                        even.over_mean, even.at_most);
  };
  level("interfaces", answer.even.interfaces, answer.ports.interface_bytes);
  level("nodes", answer.even.nodes, answer.ports.node_bytes);
  level("cores", answer.even.cores, answer.ports.core_bytes);
  text += uneven_text(answer);
  text += fmt::format("\n{}: a queue of one interface that one core serves; none is shared\n\n",
                      counted(answer.ports.lanes.size(), "lane"));
  return text + loads_table("interface", answer.ports.interface_bytes, answer);
}

std::string tried_text(const PlacementAnswer& answer) {
  std::string text = fmt::format("{:<10} {:>12}   (13d)\n", "chunk", "exchange");
  for (const TriedChunk& tried : answer.tried) {
    text += fmt::format(
        "{:<10} {:>12}{}\n", to_text(Bytes(tried.bytes)), time_text(tried.seconds),
        tried.bytes == answer.chunk_bytes ? "   the largest within 0.2 % of the least" : "");
  }
  return text + "\n";
}

int run_placement(const PlacementOptions& options) {
  const PlacementAnswer answer = answer_of(options);
  if (options.json) {
    print(canonical(placement_json(answer)));
    return k_exit_ok;
  }
  const std::vector<std::uint64_t>& loads = answer.core_bytes;
  std::string text =
      fmt::format("{}: {} in {}, {} (12)", answer.workload.name,
                  bytes_text(static_cast<double>(answer.workload.bytes())),
                  counted(answer.workload.tensors.size(), "tensor"),
                  counted(answer.pieces.size(), answer.chunk_bytes ? "chunk" : "piece"));
  text += answer.tried.empty() ? ", " : "\n\n" + tried_text(answer);
  if (answer.layout) {
    print(text +
          fmt::format("longest first to {} (13b), then to the cores of its node (13c)\n\n",
                      counted(answer.layout->interfaces.size(), "interface")) +
          ports_text(answer));
    return k_exit_ok;
  }
  text += fmt::format("longest first to {} (13)\n\n", counted(loads.size(), "core"));
  const double mean =
      static_cast<double>(answer.workload.bytes()) / static_cast<double>(loads.size());
  const auto [least, most] = std::minmax_element(loads.begin(), loads.end());
  text += fmt::format("fullest core {}, mean {}, least {}: max over mean {:.6g}\n\n",
                      to_text(Bytes(*most)), bytes_text(mean), to_text(Bytes(*least)),
                      max_over_mean(loads));
  print(text + loads_table("core", loads, answer));
  return k_exit_ok;
}

} // namespace

Command add_solve_placement(CLI::App& solve) {
  auto options = std::make_shared<PlacementOptions>();
  CLI::App* placement = solve.add_subcommand(
      "placement",
      "How evenly a model's gradient spreads over a server's interfaces, NUMA nodes and "
      "cores when it is cut into chunks (PHub)");
  placement
      ->add_option("-m,--workload", options->workload,
                   "A shipped workload's name (resnet50), a JSON file, or a CSV with the columns "
                   "name,elements,dtype")
      ->required();
  placement
      ->add_option("--chunk", options->chunk,
                   "Size that larger tensors are cut into; none; or auto: solved from what a write "
                   "and a sum cost")
      ->capture_default_str();
  placement->add_option("--cores", options->cores, "Cores that share the work")->required();
  placement->add_option("--interfaces", options->interfaces,
                        "Network interfaces of equal speed: chunks go to an interface, then to a "
                        "core of its NUMA node");
  placement
      ->add_option("--nodes", options->nodes, "NUMA nodes, each with as many interfaces and cores")
      ->capture_default_str();
  placement->add_option("--interface-bandwidth", options->interface_bandwidth,
                        "With --chunk auto: of each interface, each direction");
  placement->add_option("--write-cost", options->write_cost,
                        "With --chunk auto: what each chunk takes an interface beside its bytes");
  placement->add_option(
      "--sum-bandwidth", options->sum_bandwidth,
      "With --chunk auto: bytes taken in that a core sums; default: sums are free");
  placement->add_option("--workers", options->workers, "With --chunk auto: who sends each chunk")
      ->default_str("1");
  placement->add_flag("--json", options->json, "One JSON object on standard output");
  placement->footer(
      "Equations: docs/equations.md. A lane is a queue of one interface served by one "
      "core: no two lanes share either.");
  return [options] { return run_placement(*options); };
}

} // namespace reckon
