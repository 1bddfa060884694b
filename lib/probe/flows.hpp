// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "movers/mover.hpp"

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

namespace reckon {

using MakeMover = std::function<std::unique_ptr<Mover>(const std::string& transport)>;

/// Distance between the places of two consecutive writes: whole pages for writes of at least a
/// page, else whole cache lines.
[[nodiscard]] std::uint64_t place_of_write(std::uint64_t bytes);

/// One direction between two ranks.
struct Flow {
  int from = 0, to = 0;
  bool operator==(const Flow&) const = default;
};

/// A task of the ranks together, the same text for all of them.
struct FlowTask {
  enum class Kind {
    stream, ///< all flows at once for a while; receivers tell the rate of each window of it
    ping,   ///< each flow's sender exchanges 8-byte writes with its receiver, one at a time
    echo,   ///< the same with writes of any length, which the receiver answers with 8 bytes
    series, ///< `count` writes of each flow, from the first one's begin until all have arrived
  };
  Kind kind = Kind::stream;
  /// ping, echo: a rank is in one of them at most; series: a rank sends one and receives one at
  /// most
  std::vector<Flow> flows{};
  std::vector<int> lanes{0}; ///< lanes that take part; each carries every flow
  std::uint64_t bytes = 0;   ///< of one write
  /// Writes posted and not completed, of each flow on each lane; stream: and not known to be at the
  /// receiver, which acknowledges every sixteenth of them.
  std::uint32_t in_flight = 4;
  std::uint64_t first = 0;     ///< place in the source of the first write, so that data differ
  std::int64_t warm_up_ns = 0; ///< stream: before the first window
  std::int64_t window_ns = 0;
  int windows = 0;
  std::uint64_t warm_up = 0, count = 0; ///< ping, echo: round trips not timed, and timed
  /// series: after `count` writes keeps sending until the receiver has them, so that the load lasts
  /// until the slower of two directions is done.
  bool keep_load = false;
  int cpu = -1; ///< the processor of all ranks' lanes; -1: each has that of its rank
  bool operator==(const FlowTask&) const = default;
};

/// The result of a task at one rank.
struct FlowOutcome {
  /// For each flow to this rank, in the task's order, the rate of each window in bytes per second:
  /// the slope of the arrived bytes over time, all lanes together. 0: too few arrivals.
  std::vector<std::vector<double>> rates;
  /// The same for all of them together: smoother than their sum, as flows that share a port take
  /// turns.
  std::vector<double> total;
  std::vector<double> round_trip_s;    ///< ping, echo, at the sender: each round trip
  std::int64_t begin_ns = 0;           ///< series: monotonic_ns() just before our first write
  std::int64_t end_ns = 0;             ///< series, at the receiver: all `count` writes were here
  std::uint64_t wrong_at = UINT64_MAX; ///< place of a byte that differs from the sent one, if any
  bool operator==(const FlowOutcome&) const = default;
};

[[nodiscard]] std::string encode(const FlowTask& task);
[[nodiscard]] std::string encode(const FlowOutcome& outcome);
/// Throw Error{input} for text that encode() did not write.
[[nodiscard]] FlowTask decode_task(const std::string& text);
[[nodiscard]] FlowOutcome decode_flow_outcome(const std::string& text);

/// The bytes arrived by a time.
struct Progressed {
  std::int64_t ns = 0;
  std::uint64_t bytes = 0;
};
/// Least-squares slope of bytes over time, in bytes per second, of the points in [from_ns, to_ns).
/// Uses all arrivals of the window and not only the first and the last one, which come in clumps. 0
/// with fewer than 3 points or when all are at one time. `points` ascend in time.
[[nodiscard]] double arrival_rate(std::span<const Progressed> points, std::int64_t from_ns,
                                  std::int64_t to_ns);

/// All parts as one: their joint arrivals, in order of time. Each part counts from its first
/// arrival on: one that begins later with many bytes would make the sum jump there.
[[nodiscard]] std::vector<Progressed> merged(const std::vector<std::span<const Progressed>>& parts);
/// The rate in each window of the task, in bytes per second, of several lanes or flows together.
/// Not the sum of their slopes: parts that share a port take turns, and in its turn each is faster
/// than its share. Where one window has too few arrivals, all of them get the slope of the whole.
[[nodiscard]] std::vector<double>
window_rates(const FlowTask& task, const std::vector<std::span<const Progressed>>& parts);

/// One rank's end of the flows: a mover, memory to send from and to receive into, and a thread for
/// each lane while a task runs. Used by one thread.
class FlowRank {
public:
  struct Options {
    int rank = 0;
    int lanes = 1;
    std::uint64_t seed = 1;
    std::uint64_t memory = 0; ///< bytes to send from, and to receive into; the same at all ranks
    std::vector<int> cpus;    ///< lane i runs on the i-th of them, in turn; empty: anywhere
  };
  /// Opens the lanes. Throws what the mover throws.
  FlowRank(std::unique_ptr<Mover> mover, const Options& options);
  ~FlowRank();
  FlowRank(const FlowRank&) = delete;
  FlowRank& operator=(const FlowRank&) = delete;

  [[nodiscard]] std::string address() const { return m_mover->address(); }
  void connect(const std::vector<std::string>& addresses);
  /// Writes that fit side by side into a receiver's memory for each of `flows` flows to it.
  [[nodiscard]] std::uint64_t slots(std::uint64_t bytes, std::size_t flows,
                                    std::size_t lanes) const;

  /// Prepares a task. Before a series, at all ranks before any begins.
  void prepare(const FlowTask& task);
  /// Begins the prepared task; call it at all ranks at about the same time.
  void begin();
  [[nodiscard]] bool finished_within(std::chrono::milliseconds limit);
  /// The result at its end. Throws Error{operation} when a lane broke.
  [[nodiscard]] FlowOutcome outcome();
  /// Makes the lanes give up, for destruction in the middle of a task.
  void stop();
  /// Stops, then says what each lane was waiting for.
  [[nodiscard]] std::string stop_and_describe();

private:
  struct In;
  struct LaneWork;
  void work(LaneWork& lane) noexcept;
  void stream(LaneWork& lane) noexcept;
  void ping(LaneWork& lane) noexcept; ///< and echo
  std::size_t poll(LaneWork& lane) noexcept;
  template <class Act>
  void for_checked(const In& in, Act act) const;
  void check(const LaneWork& lane, FlowOutcome& outcome) const;
  [[nodiscard]] std::uint64_t source_of(std::uint64_t number) const;
  [[nodiscard]] std::uint64_t target_of(std::uint64_t region, std::uint64_t slots,
                                        std::uint64_t number) const;
  [[nodiscard]] std::uint64_t region_of(std::size_t index, std::size_t flows,
                                        std::size_t lane) const;

  std::unique_ptr<Mover> m_mover;
  Options m_options;
  std::span<std::byte> m_source, m_target; ///< of the mover: possibly out of the processor's reach
  FlowTask m_task;
  std::int64_t m_begin_ns = 0;
  std::vector<std::unique_ptr<LaneWork>> m_work;
  std::mutex m_mutex;
  std::condition_variable m_finished;
  std::size_t m_running = 0;
  std::atomic<bool> m_stop{false};
  std::vector<std::jthread> m_threads; ///< last: joined before everything they use goes
};

} // namespace reckon
