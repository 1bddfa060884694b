// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/file.hpp"
#include "core/units.hpp"
#include "probe/fabric_rank.hpp"

#include <functional>
#include <stdexcept>
#include <string>
#include <sys/types.h>
#include <vector>

namespace reckon {

/// Nothing came from a process in time, or the user wants to stop.
class FabricTimeout : public std::runtime_error {
public:
  using std::runtime_error::runtime_error;
};
class FabricInterrupt : public std::runtime_error {
public:
  FabricInterrupt() : std::runtime_error("interrupted") {}
};

/// Processes of this machine that can reach each other over one transport and wait for orders.
/// They sleep between orders, die with this process, and are killed when the crew goes.
class FabricCrew {
public:
  struct Options {
    std::string transport;
    int ranks = 2;
    std::uint64_t seed = 1;
    std::uint64_t footprint = UINT64_MAX; ///< as FabricMember's
    Seconds start_limit{20};              ///< for opening, and again for connecting
    MakeMover make;
    std::function<bool()> interrupted;
    std::function<void(pid_t)> started; ///< told of each process
  };
  /// Forks the ranks and connects them. Throws what the first of them threw (Error{unavailable}
  /// when the transport cannot be used here), FabricTimeout or FabricInterrupt.
  explicit FabricCrew(Options options);
  FabricCrew(const FabricCrew&) = delete;
  FabricCrew& operator=(const FabricCrew&) = delete;
  ~FabricCrew();

  [[nodiscard]] int ranks() const { return static_cast<int>(m_members.size()); }
  /// Gives order i to rank i, all at once, and waits for all their outcomes. Throws
  /// Error{operation} when a rank failed or died, FabricTimeout after `limit`, FabricInterrupt; the
  /// crew is of no use after that.
  [[nodiscard]] std::vector<FabricOutcome> run(const std::vector<FabricOrder>& orders,
                                               Seconds limit);

private:
  struct Member {
    pid_t pid = -1;
    Fd socket;
  };
  void start(int rank);
  /// One frame of each of the first `ranks` ranks.
  std::vector<std::string> gather(std::size_t ranks, FrameKind wanted, Seconds limit,
                                  const char* doing);
  std::string take(std::size_t rank, FrameKind wanted, const char* doing);
  void end() noexcept;

  Options m_options;
  std::vector<Member> m_members;
};

} // namespace reckon
