// SPDX-License-Identifier: Apache-2.0
#include "solve.hpp"

#include "core/shape.hpp"
#include "equations/torus.hpp"

#include <algorithm>
#include <array>

/// ACE: what a collective on a torus asks of links and of an endpoint's memory.
namespace reckon::solve {
namespace {

constexpr std::array k_dimension_names{"local", "vertical", "horizontal"};
constexpr std::array k_bandwidth_flags{"--local-bandwidth", "--vertical-bandwidth",
                                       "--horizontal-bandwidth"};
constexpr std::array k_phase_names{"reduce-scatter", "all-reduce", "all-gather"};

Torus torus_of(const Given& given) {
  Torus torus;
  torus.nodes = parse_shape(given.text("--shape"));
  const double efficiency = given.number("--link-efficiency");
  refuse_if(efficiency <= 0 || efficiency > 1,
            "--link-efficiency {}: must be above 0 and at most 100%",
            given.text("--link-efficiency"));
  for (std::size_t d = 0; d < k_torus_dimensions; ++d) {
    torus.bytes_per_s[d] = efficiency * given.number(k_bandwidth_flags[d], 0);
    refuse_if(torus.nodes[d] > 1 && !(torus.bytes_per_s[d] > 0),
              "--shape {} has a {} ring; give {}, what a node sends over both its links there",
              given.text("--shape"), k_dimension_names[d], k_bandwidth_flags[d]);
  }
  return torus;
}

bool is_all_reduce(const Given& given) {
  const bool all_reduce = given.one_of("--collective", {"all-reduce", "all-to-all"}) == 0;
  refuse_if(!all_reduce &&
                (given.present("--chunk") || given.present("--message") || given.present("--sram")),
            "--chunk, --message and --sram are of an engine's all-reduce; leave them out with "
            "--collective all-to-all");
  return all_reduce;
}

/// What a node is to send, in bytes per second.
double network_rate(const Given& given, const TorusLimit& limit) {
  const double rate = given.number("--network-bandwidth", limit.bytes_per_s);
  refuse_if(rate > limit.bytes_per_s, "--network-bandwidth {}: this torus sends at most {} of {}",
            given.text("--network-bandwidth"), rate_text(limit.bytes_per_s),
            given.text("--collective"));
  return rate;
}

/// An engine's phases: what each sends, its messages and its part of the SRAM.
Answer phases_of(const Given& given, const Torus& torus, const TorusTraffic& traffic) {
  const double chunk = given.positive("--chunk");
  const double message = given.positive("--message");
  const double sram = given.positive("--sram");
  Answer answer;
  answer.json["phases"] = Json::array();
  answer.json["terminal_sram_bytes"] = 0.0;
  if (traffic.phases.empty()) {
    return answer;
  }
  const std::vector<double> partitions = sram_partitions(sram, torus, traffic.phases);
  bool crowded = false; // a phase's part of the SRAM does not hold one message
  Lines lines("{:<26} {:>9} {:>9} {:>9} {:>14} {:>10}");
  lines("phase", "sent", "read", "written", "messages (45)", "SRAM (46)");
  const auto digits = [](double bytes) { return fmt::format("{:.4g}", bytes); };
  for (std::size_t i = 0; i < traffic.phases.size(); ++i) {
    const TorusPhase& phase = traffic.phases[i];
    const std::uint64_t ring = torus.nodes[static_cast<std::size_t>(phase.dimension)];
    const double part = chunk * phase.data_bytes;
    refuse_if(part < static_cast<double>(ring),
              "--chunk {}: a ring of {} cuts its part of a chunk into messages of less than a "
              "byte; give more",
              given.text("--chunk"), ring);
    crowded |= partitions[i] < std::min(message, part / static_cast<double>(ring));
    const std::uint64_t messages = messages_of_chunk(part, message, ring);
    const char* const kind = named(k_phase_names, phase.kind);
    const char* const dimension = named(k_dimension_names, phase.dimension);
    answer.json["phases"].push_back({{"collective", kind},
                                     {"dimension", dimension},
                                     {"sent_bytes", phase.sent_bytes},
                                     {"read_bytes", phase.memory.read_bytes},
                                     {"last_sum_bytes", phase.memory.last_sum_bytes},
                                     {"written_bytes", phase.memory.written_bytes},
                                     {"messages", messages},
                                     {"sram_bytes", partitions[i]}});
    lines(fmt::format("{} {}", kind, dimension), digits(phase.sent_bytes),
          digits(phase.memory.read_bytes + phase.memory.last_sum_bytes),
          digits(phase.memory.written_bytes), messages, bytes_text(partitions[i]));
  }
  answer.json["terminal_sram_bytes"] = partitions.back();
  lines("back to memory", "", "", "", "", bytes_text(partitions.back()));
  answer.text = lines.text() +
                fmt::format("sent, read and written: bytes for each byte of the gradient; messages "
                            "of a chunk of {}, at most {}\n",
                            given.text("--chunk"), given.text("--message"));
  if (crowded) {
    answer.text +=
        fmt::format("--sram {}: the part of at least one phase does not hold a message\n",
                    given.text("--sram"));
  }
  return answer;
}

Answer answer_torus(const Given& given) {
  const Torus torus = torus_of(given);
  const bool all_reduce = is_all_reduce(given);
  const TorusTraffic traffic = all_reduce ? torus_all_reduce(torus) : torus_all_to_all(torus);
  const TorusLimit limit = torus_limit(torus, traffic);
  const double network = network_rate(given, limit);
  const TorusMemoryRates memory = memory_rates(traffic, network);
  const double baseline = all_reduce ? network * k_reads_per_byte_sent : memory.read;
  const double each = given.number("--sm-bandwidth");
  const double reuse = traffic.sent_bytes / traffic.loaded_bytes;
  Answer answer = phases_of(given, torus, traffic);
  answer.json.update({{"bytes_sent_per_byte_loaded", reuse},
                      {"ideal_bandwidth", limit.bytes_per_s},
                      {"busiest_dimension", named(k_dimension_names, limit.busiest)},
                      {"network_bandwidth", network},
                      {"offload_memory_bandwidth", memory.offload},
                      {"baseline_memory_bandwidth", baseline},
                      {"ratio", baseline / memory.offload},
                      {"sms", movers_needed(baseline, each)},
                      {"offload_sms", movers_needed(memory.offload, each)},
                      {"exact_reads_bandwidth", memory.read},
                      {"exact_reads_with_last_sums_bandwidth", memory.read_with_last_sums},
                      {"exact_writes_bandwidth", memory.written},
                      {"offload_writes_bandwidth", memory.offload}});

  std::vector<const char*> busiest;
  for (const TorusDimension dimension : busiest_dimensions(torus, traffic)) {
    busiest.push_back(named(k_dimension_names, dimension));
  }
  Lines lines("{:<44} {:>11} {:>11} {:>5}");
  lines.append(fmt::format("{} on {}: {:.4g} B sent for each byte loaded (4{}); at most {} a node, "
                           "{} rings always busy (44)\n\n",
                           given.text("--collective"), given.text("--shape"), reuse,
                           all_reduce ? 2 : 3, rate_text(limit.bytes_per_s),
                           fmt::join(busiest, " and ")));
  lines(fmt::format("memory, to send {}", rate_text(network)), "read", "written", "SMs");
  const auto row = [&](const char* name, double read, double written) {
    lines(name, rate_text(read), rate_text(written), movers_needed(read, each));
  };
  if (all_reduce) {
    lines("endpoint, 1.5 read for each byte sent", rate_text(baseline), "-",
          movers_needed(baseline, each));
    row("endpoint, these rings step by step", memory.read, memory.written);
    row("  with the last sums, which stay", memory.read_with_last_sums, memory.written);
  } else {
    row("endpoint, forwarding through memory", memory.read, memory.written);
  }
  row("engine that loads each byte once", memory.offload, memory.offload);
  lines.append(fmt::format("\nan engine reads {:.3g} times less", baseline / memory.offload));
  lines.append(all_reduce ? fmt::format(" than 1.5 for each byte sent, {:.3g} times less than "
                                        "these rings\n\n",
                                        memory.read / memory.offload)
                          : "\n");
  answer.text.insert(0, lines.text());
  return answer;
}

} // namespace

Calculator torus() {
  std::vector<Input> inputs{required("--shape", Unit::text,
                                     "Torus LxVxH: local, vertical, horizontal nodes, e.g. 4x4x4")};
  for (std::size_t d = 0; d < k_torus_dimensions; ++d) {
    inputs.push_back({k_bandwidth_flags[d], Unit::bandwidth,
                      fmt::format("What a node sends over its {} links, all together: {}; needed "
                                  "where the shape has such a ring",
                                  k_dimension_names[d], d == 0 ? "400GB/s" : "50GB/s")});
  }
  inputs.insert(
      inputs.end(),
      {{"--network-bandwidth", Unit::bandwidth,
        "What a node is to send; default: as much as the torus takes"},
       {"--collective", Unit::text, "Which collective: all-reduce or all-to-all", "all-reduce"},
       {"--link-efficiency", Unit::fraction, "Of each link's bandwidth", "100%"},
       {"--sm-bandwidth", Unit::bandwidth,
        "What one streaming multiprocessor moves; 64 B a cycle at 1245 MHz", "79.68GB/s"},
       {"--chunk", Unit::bytes,
        "What the engine works on without interruption: it goes through the phases at a time",
        "64KiB"},
       {"--message", Unit::bytes, "At most so much is sent at a time", "8KiB"},
       {"--sram", Unit::bytes, "The engine's own memory", "4MiB"}});
  return {"torus",
          "What a collective on a torus asks of links and of an endpoint's memory (ACE)",
          "--shape 4x4x4 --local-bandwidth 400GB/s --vertical-bandwidth 50GB/s "
          "--horizontal-bandwidth 50GB/s",
          inputs,
          answer_torus,
          "Equations 41 to 46 of docs/equations.md. With --json, bandwidths are in bytes per "
          "second; baseline_: without an engine,\noffload_: with one, exact_: counted by 41."};
}

} // namespace reckon::solve
