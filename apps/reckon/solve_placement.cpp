// SPDX-License-Identifier: Apache-2.0
#include "solve.hpp"

#include "documents/document.hpp"
#include "equations/placement.hpp"
#include "equations/port_placement.hpp"

#include <algorithm>
#include <limits>
#include <utility>

/// PHub: a model's chunks on a server's interfaces, NUMA nodes and cores.
namespace reckon::solve {
namespace {

/// What was asked, and the placement of it.
struct Placed {
  Workload workload;
  std::optional<std::uint64_t> chunk_bytes;
  std::vector<TriedChunk> tried; ///< with --part-bytes auto
  std::vector<std::uint64_t> pieces;
  std::vector<std::uint64_t> core_bytes; ///< (13), or (13c)
  std::optional<ServerLayout> layout;    ///< only with --interfaces
  PortPlacement ports;
  PlacementEvenness even;
};

/// The sizes of all pieces of all tensors: equation 12.
std::vector<std::uint64_t> cut(const Workload& workload,
                               const std::optional<std::uint64_t>& chunk_bytes) {
  if (!chunk_bytes) {
    return tensor_bytes(workload);
  }
  for (const Tensor& tensor : workload.tensors) {
    refuse_if(*chunk_bytes % size_of(tensor.dtype) != 0,
              "--part-bytes of {} B would cut an element of {} ({}); use a multiple of {} B",
              *chunk_bytes, tensor.name, name_of(tensor.dtype), size_of(tensor.dtype));
  }
  auto pieces = cut_into_pieces(tensor_bytes(workload), *chunk_bytes);
  refuse_if(!pieces, "--part-bytes of {} B cuts {} into more than {} pieces; use larger chunks",
            *chunk_bytes, workload.name, k_most_pieces);
  return std::move(*pieces);
}

ChunkCosts costs_of(const Given& given) {
  std::vector<std::string> missing;
  for (const char* const flag : {"--interfaces", "--interface-bandwidth", "--write-cost"}) {
    if (!given.has(flag)) {
      missing.emplace_back(flag);
    }
  }
  refuse_if(
      !missing.empty(),
      "--part-bytes auto: give {} as well; `reckon plan` solves the size from a measured profile",
      fmt::join(missing, " and "));
  return {.write_s = given.number("--write-cost"),
          .interface_bytes_per_s = given.number("--interface-bandwidth"),
          .sum_bytes_per_s =
              given.number("--core-sum-bandwidth", std::numeric_limits<double>::infinity()),
          .workers = given.count("--workers", 1)};
}

std::optional<std::uint64_t> chunk_of(const Given& given) {
  for (const char* const flag :
       {"--workers", "--write-cost", "--core-sum-bandwidth", "--interface-bandwidth"}) {
    refuse_if(given.has(flag),
              "{} is for --part-bytes auto; leave it out, or solve the size of the chunks", flag);
  }
  if (given.text("--part-bytes") == "none") {
    return std::nullopt;
  }
  const std::uint64_t bytes = parse_bytes(given.text("--part-bytes"), "--part-bytes").count();
  refuse_if(bytes == 0,
            "--part-bytes 0: must be greater than 0; use none for whole tensors, or auto");
  return bytes;
}

Json json_of(const Placed& placed) {
  const auto level = [](const Evenness& even, const std::vector<std::uint64_t>& loads) {
    return Json{
        {"load_bytes", loads}, {"max_over_mean", even.over_mean}, {"at_most", even.at_most}};
  };
  Json out = {{"workload", placed.workload.name},
              {"bytes", placed.workload.bytes()},
              {"chunk_bytes", or_null(placed.chunk_bytes)},
              {"chunks", placed.pieces.size()},
              {"cores", placed.core_bytes.size()},
              {"load_bytes", placed.core_bytes},
              {"max_over_mean", max_over_mean(placed.core_bytes)}};
  if (!placed.layout) {
    return out;
  }
  out["interfaces"] = level(placed.even.interfaces, placed.ports.interface_bytes);
  out["nodes"] = level(placed.even.nodes, placed.ports.node_bytes);
  out["cores_at_most"] = placed.even.cores.at_most;
  out["lanes"] = Json::array();
  for (const PortLane& lane : placed.ports.lanes) {
    out["lanes"].push_back({{"interface", lane.interface},
                            {"node", lane.node},
                            {"core", lane.core},
                            {"chunks", lane.chunks},
                            {"bytes", lane.bytes}});
  }
  out["tried"] = nullptr;
  for (const TriedChunk& tried : placed.tried) {
    out["tried"].push_back({{"chunk_bytes", tried.bytes}, {"seconds", tried.seconds}});
  }
  return out;
}

/// A row for each of one kind: its load, and that over the mean of its kind.
std::string loads_table(const char* kind, const std::vector<std::uint64_t>& loads, double mean) {
  Lines lines("{:<10} {:>12} {:>10}");
  lines(kind, "load", "of mean");
  const std::size_t shown = std::min(loads.size(), k_most_rows);
  for (std::size_t i = 0; i < shown; ++i) {
    lines(i, to_text(Bytes(loads[i])),
          fmt::format("{:.2f} %", 100 * static_cast<double>(loads[i]) / mean));
  }
  lines.append(rows_left_out(loads.size(), shown, kind));
  return lines.text();
}

/// A node's part of the bytes is that of its interfaces; where nodes have not as many, equal loads
/// of the nodes are not what the rows above compare with.
std::string uneven_text(const Placed& placed) {
  std::vector<std::size_t> of_node(placed.ports.node_bytes.size(), 0);
  for (const ServerLayout::Interface& interface : placed.layout->interfaces) {
    ++of_node[interface.node];
  }
  const auto [least, most] = std::minmax_element(of_node.begin(), of_node.end());
  if (*least == *most) {
    return {};
  }
  const auto [lightest, fullest] =
      std::minmax_element(placed.ports.node_bytes.begin(), placed.ports.node_bytes.end());
  return fmt::format(
      "\n{} over {}: {} to {} each, which carry {} to {}; \"max over mean\" of nodes is of their "
      "interfaces' part, of cores of equal parts\n",
      counted(placed.layout->interfaces.size(), "interface"), counted(of_node.size(), "node"),
      *least, *most, to_text(Bytes(*lightest)), to_text(Bytes(*fullest)));
}

std::string ports_text(const Placed& placed, double bytes) {
  const auto& [lane_of, lanes, interfaces, nodes, cores] = placed.ports;
  Lines lines("{:<10} {:>6} {:>12} {:>15} {:>10}");
  lines("", "", "fullest", "max over mean", "at most");
  const auto level = [&](const char* kind, const Evenness& even,
                         const std::vector<std::uint64_t>& loads) {
    lines(kind, loads.size(), to_text(Bytes(*std::max_element(loads.begin(), loads.end()))),
          fmt::format("{:.6g}", even.over_mean), fmt::format("{:.6g}", even.at_most));
  };
  level("interfaces", placed.even.interfaces, interfaces);
  level("nodes", placed.even.nodes, nodes);
  level("cores", placed.even.cores, cores);
  return lines.text() + uneven_text(placed) +
         fmt::format("\n{}: a queue of one interface that one core serves; none is shared\n\n",
                     counted(lanes.size(), "lane")) +
         loads_table("interface", interfaces, bytes / static_cast<double>(interfaces.size()));
}

std::string cores_text(const std::vector<std::uint64_t>& loads, double bytes) {
  const double mean = bytes / static_cast<double>(loads.size());
  const auto [least, most] = std::minmax_element(loads.begin(), loads.end());
  return fmt::format("fullest core {}, mean {}, least {}: max over mean {:.6g}\n\n",
                     to_text(Bytes(*most)), bytes_text(mean), to_text(Bytes(*least)),
                     max_over_mean(loads)) +
         loads_table("core", loads, mean);
}

std::string text_of(const Placed& placed) {
  const auto bytes = static_cast<double>(placed.workload.bytes());
  std::string text =
      fmt::format("{}: {} in {}, {} (12)", placed.workload.name, bytes_text(bytes),
                  counted(placed.workload.tensors.size(), "tensor"),
                  counted(placed.pieces.size(), placed.chunk_bytes ? "chunk" : "piece"));
  if (placed.tried.empty()) {
    text += ", ";
  } else {
    Lines lines("{:<10} {:>12}{}");
    lines("chunk", "exchange", "   (13d)");
    for (const TriedChunk& tried : placed.tried) {
      lines(to_text(Bytes(tried.bytes)), time_text(tried.seconds),
            tried.bytes == placed.chunk_bytes ? "   the largest within 0.2 % of the least" : "");
    }
    text += "\n\n" + lines.text() + "\n";
  }
  if (placed.layout) {
    return text +
           fmt::format("longest first to {} (13b), then to the cores of its node (13c)\n\n",
                       counted(placed.layout->interfaces.size(), "interface")) +
           ports_text(placed, bytes);
  }
  return text +
         fmt::format("longest first to {} (13)\n\n", counted(placed.core_bytes.size(), "core")) +
         cores_text(placed.core_bytes, bytes);
}

Answer answer_placement(const Given& given) {
  const std::uint64_t cores = given.count("--cores");
  Placed placed;
  if (given.has("--interfaces")) {
    placed.layout = equal_layout(given.count("--interfaces"), cores, given.count("--nodes"));
  } else if (given.integer("--nodes") != 1) {
    fail(ErrorKind::usage, "--nodes: of which interfaces? give --interfaces");
  }
  if (given.text("--part-bytes") == "auto") {
    const ChunkCosts costs = costs_of(given);
    placed.workload = read_workload(given.text("--workload"));
    ChunkChoice choice = choose_chunk(tensor_bytes(placed.workload), *placed.layout, costs);
    placed.chunk_bytes = choice.bytes;
    placed.tried = std::move(choice.tried);
  } else {
    placed.chunk_bytes = chunk_of(given);
    placed.workload = read_workload(given.text("--workload"));
  }
  placed.pieces = cut(placed.workload, placed.chunk_bytes);
  if (placed.layout) {
    placed.ports = place_on_ports(placed.pieces, *placed.layout);
    placed.even = evenness_of(placed.ports, *placed.layout, placed.pieces);
    placed.core_bytes = placed.ports.core_bytes;
  } else {
    placed.core_bytes = balance_longest_first(placed.pieces, cores).loads;
  }
  return {json_of(placed), text_of(placed)};
}

} // namespace

Calculator placement() {
  return {
      "placement",
      "How evenly a model's gradient spreads over a server's interfaces, NUMA nodes and cores when "
      "it is cut into chunks (PHub)",
      "--workload vgg16 --cores 8",
      {required(
           "-m,--workload", Unit::text,
           "A workload: a shipped one's name (resnet50), a JSON file, or a CSV with the columns "
           "name,elements,dtype"),
       {"--part-bytes", Unit::text,
        "Largest part: the chunk that larger tensors are cut into; none; or auto, solved from what "
        "a "
        "write and a sum cost",
        "32KiB"},
       required("--cores", Unit::count, "Cores that share the work"),
       {"--interfaces", Unit::count,
        "Network interfaces of the server: of equal speed; chunks go to an interface, then to a "
        "core of its NUMA "
        "node"},
       {"--nodes", Unit::count, "NUMA nodes, each with as many interfaces and cores", "1"},
       {"--interface-bandwidth", Unit::bandwidth,
        "Bandwidth of each interface, each direction: with --part-bytes auto"},
       {"--write-cost", Unit::seconds,
        "With --part-bytes auto: what each chunk takes an interface beside its bytes"},
       {"--core-sum-bandwidth", Unit::bandwidth,
        "With --part-bytes auto: bytes taken in that a core sums; default: sums are free"},
       {"--workers", Unit::count, "How many work: who sends each chunk, with --part-bytes auto",
        "1"}},
      answer_placement,
      "Equations 12 to 13d of docs/equations.md. A lane is a queue of one interface served by one "
      "core: no two\nlanes share either. With --json, at_most and cores_at_most are what 13b and "
      "13c "
      "guarantee;\nchunk_bytes is null for --part-bytes none, tried without auto.",
      {{"--chunk", "--part-bytes"}, {"--sum-bandwidth", "--core-sum-bandwidth"}}};
}

} // namespace reckon::solve
