// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/file.hpp"
#include "core/units.hpp"
#include "probe/flows.hpp"

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <sys/types.h>
#include <vector>

namespace reckon {

/// A process was silent for too long, or the user wants to stop.
class FabricTimeout : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};
class FabricInterrupt : public std::runtime_error {
public:
  FabricInterrupt() : std::runtime_error("interrupted") {}
};

/// Bytes of each rank's source, and of its target, at most `most`. Writes go round them.
[[nodiscard]] std::uint64_t fabric_footprint(int rank, std::uint64_t most = UINT64_MAX);

struct FabricCrewOptions {
  std::uint64_t seed = 1;               ///< of the transmitted data
  std::uint64_t footprint = UINT64_MAX; ///< most memory that a rank sends from, or receives into
  /// Processors of the ranks, in turn, as the executor gives them to its lanes; empty: any.
  std::vector<int> cpus;
  std::function<bool()> interrupted;
  std::function<void(pid_t)> started; ///< is told of each process
  /// Called in the process of that rank.
  std::function<std::unique_ptr<Mover>(const std::string& transport, int rank)> make =
      [](const std::string& transport, int /*rank*/) { return make_mover(transport); };
};

/// Processes of this machine that can reach each other over one transport and wait for tasks. They
/// sleep between tasks, die with this process, and are killed when the crew is destroyed.
class FabricCrew {
public:
  /// Forks the ranks and connects them. Throws the first rank's error (Error{unavailable} when the
  /// transport cannot be used here), FabricTimeout or FabricInterrupt.
  FabricCrew(std::string transport, int ranks, FabricCrewOptions options);
  FabricCrew(const FabricCrew&) = delete;
  FabricCrew& operator=(const FabricCrew&) = delete;
  ~FabricCrew();

  /// Gives a task to the first `ranks` ranks, the only ones that it names, and waits for their
  /// outcomes. Throws Error{operation} when a rank failed or died, FabricTimeout after `limit`,
  /// FabricInterrupt; the crew is unusable after that.
  [[nodiscard]] std::vector<FlowOutcome> run(const FlowTask& task, std::size_t ranks,
                                             Seconds limit);

private:
  enum class FrameKind : char { address, addresses, ready, task, go, outcome, error, unavailable };
  struct Member {
    pid_t pid = -1;
    Fd socket;
  };
  void start(int rank);
  void serve(int rank, int socket) const;
  static void send(int socket, FrameKind kind, const std::string& text);
  static bool receive(int socket, FrameKind& kind, std::string& text);
  /// One frame of each of the first `ranks` ranks.
  std::vector<std::string> gather(std::size_t ranks, FrameKind wanted, Seconds limit,
                                  const char* doing);
  std::string take(std::size_t rank, FrameKind wanted, const char* doing);
  void end() noexcept;

  std::string m_transport;
  FabricCrewOptions m_options;
  std::vector<Member> m_members;
};

} // namespace reckon
