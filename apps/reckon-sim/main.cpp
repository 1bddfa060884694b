// SPDX-License-Identifier: Apache-2.0
#include "simgrid_engine.hpp"

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/json.hpp"
#include "simulate/equal_shares.hpp"
#include "simulate/player.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <sys/resource.h>
#include <unistd.h>

namespace {

using namespace reckon;

constexpr std::string_view k_help =
    "Plays one simulation for `reckon simulate`, which starts it: reads a graph of transfers on "
    "standard\ninput (docs/simulate-format.md), writes JSON, one line each: progress, then the "
    "result.\n\n  reckon-sim --version\n";

constexpr std::int64_t k_tell_ns = 200'000'000;

std::size_t read_some(char* to, std::size_t most) {
  for (;;) {
    const ssize_t n = ::read(STDIN_FILENO, to, most);
    if (n >= 0) {
      return static_cast<std::size_t>(n);
    }
    if (errno != EINTR) {
      fail_errno("cannot read the simulator's input", errno);
    }
  }
}

void put_line(const Json& json) {
  // dump() and not the canonical text: a message is one line.
  std::cout << json.dump() << std::endl;
  if (!std::cout) {
    fail(ErrorKind::operation, "cannot write the simulator's output: nobody reads it");
  }
}

/// Of this program alone: the peak that getrusage() gives counts the process that started it, too.
std::uint64_t peak_bytes() {
  std::ifstream status("/proc/self/status");
  std::uint64_t kibibytes = 0;
  for (std::string word; kibibytes == 0 && status >> word;) {
    if (word == "VmHWM:") {
      status >> kibibytes;
    }
  }
  return kibibytes * 1024;
}

void simulate() {
  const SimGraph graph = read_graph(read_some);
  put_line({{"done", 0}, {"ops", graph.ops.size()}});
  const bool on_simgrid = graph.simgrid || !stations_are_apart(graph);
  const std::unique_ptr<FlowEngine> engine =
      on_simgrid ? make_simgrid_engine(graph) : make_equal_shares_engine(graph);
  std::int64_t told = monotonic_ns();
  const PlayedGraph played = play_graph(graph, *engine, [&](std::uint64_t done) {
    if (monotonic_ns() - told >= k_tell_ns) {
      told = monotonic_ns();
      put_line({{"done", done}, {"ops", graph.ops.size()}, {"seconds", engine->now()}});
    }
  });
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  put_line(
      {{"engine", on_simgrid ? simgrid_version() : "equal shares"},
       {"settings", on_simgrid ? simgrid_settings(graph) : std::map<std::string, std::string>()},
       {"lane_seconds", played.lane_seconds},
       {"seconds", played.seconds},
       {"flows", played.flows},
       {"most_flows", played.most_flows},
       {"background_bytes", played.background_bytes},
       {"cpu_seconds", seconds(used.ru_utime) + seconds(used.ru_stime)},
       {"peak_bytes", peak_bytes()}});
  std::cout.flush();
  ::_exit(k_exit_ok); // tearing the engine down takes longer than the system does
}

int run(int argc, char** argv) {
  const std::string_view argument = argc > 1 ? argv[1] : "";
  if (argc > 2 || (argc == 2 && argument != "--help" && argument != "--version")) {
    fail(ErrorKind::usage, "takes its input on standard input and no arguments (try --help)");
  }
  if (argument == "--help") {
    std::cout << k_help;
  } else if (argument == "--version") {
    std::cout << simgrid_version() << '\n';
  } else {
    simulate();
  }
  return k_exit_ok;
}

} // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::bad_alloc&) {
    std::cerr << "reckon-sim: error: out of memory; merge more parts with --coarsen\n";
    return k_exit_operation;
  } catch (const std::exception& e) {
    const Error error = as_error(e);
    std::cerr << "reckon-sim: error: " << error.what() << '\n';
    return exit_status(error.kind());
  }
}
