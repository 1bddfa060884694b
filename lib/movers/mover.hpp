// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/slice.hpp"
#include "movers/engine.hpp"
#include "movers/habits.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace reckon {

/// The abilities of a mover, asked before anything is registered.
struct MoverCapabilities {
  std::string name; ///< transport name in profiles and plans: "host", "tcp;ofi_rxm", "shm"
  bool crosses_machines = false;
  std::uint64_t max_write_bytes = 0; ///< longest single write
  std::size_t max_in_flight =
      0; ///< writes that one lane may have posted and not completed; more are refused
  /// The network ports of the lanes, lane i on port i modulo their number, by the user's names;
  /// empty without a choice.
  std::vector<std::string> ports{};
};

/// A result of a lane's poll().
struct Completion {
  enum class Kind : std::uint8_t {
    sent,     ///< a write of ours no longer needs its source; `id` is the number given to write()
    arrived,  ///< a peer's write is here, all of it, and visible to this thread and to the lane's
              ///< engine; `tag` is the peer's
    computed, ///< an op that the lane's engine was given is done; `id` is the number that came with
              ///< it
    failed,   ///< a write or the lane broke; error() has the text
  };
  Kind kind = Kind::sent;
  std::uint32_t tag = 0;
  std::uint64_t id = 0;
  /// arrived: of the bytes that the peer sent, by checksum_of(), where add_checksums() was called
  /// and they came over a network.
  std::optional<std::uint32_t> checksum{};
};

/// The events that a thread may sleep on until a lane's poll() may have something.
struct LaneSleep {
  int descriptor = -1; ///< readable when there is something; -1: only the time ends the sleep
  std::chrono::nanoseconds limit{0}; ///< longest sleep
};

/// The sleep of a thread that no event can wake: short beside a write between processes.
inline constexpr std::chrono::nanoseconds k_blind_nap{50'000};

/// Sleeps until one of the descriptors is readable or the shortest of the times is over.
void sleep_on(std::span<const LaneSleep> sleeps) noexcept;

/// One endpoint with its own completion queue, used by one thread. Lane i talks to lane i of the
/// other ranks. The data path is noexcept: a failure comes back as a completion.
class MoverLane {
public:
  MoverLane() = default;
  MoverLane(const MoverLane&) = delete;
  MoverLane& operator=(const MoverLane&) = delete;
  virtual ~MoverLane() = default;

  /// Starts a one-sided write of `bytes` (0 is a bare signal) from our memory into `peer`'s,
  /// announced there as `tag`. False: the queue is full, poll and try again. `peer` may be any rank
  /// but ourselves.
  [[nodiscard]] virtual bool write(int peer, Slice source, Slice destination, std::uint64_t bytes,
                                   std::uint32_t tag, std::uint64_t id) noexcept = 0;
  /// Makes progress and fills `out` from its start; returns how many.
  [[nodiscard]] virtual std::size_t poll(std::span<Completion> out) noexcept = 0;
  /// Sleeps (no spinning) until poll() may have something, or the time is over.
  virtual void wait(std::chrono::nanoseconds limit) noexcept = 0;
  /// For a thread that sleeps on several lanes: asked of each before every sleep. Absent: do not
  /// sleep, poll() may have something.
  [[nodiscard]] virtual std::optional<LaneSleep>
  before_sleep(std::chrono::nanoseconds limit) noexcept;
  /// Called after that sleep, for each lane that allowed it.
  virtual void after_sleep() noexcept {}
  /// The cause of a failed completion: the attempt and the library's own words.
  [[nodiscard]] virtual std::string error() const = 0;
  /// Does the local ops of this lane's thread.
  [[nodiscard]] virtual Engine& engine() noexcept { return cpu_engine(); }
};

/// Moves bytes between the ranks of a job. Order of use, the same on every rank:
/// allocate() each buffer; open(lanes); address() -> exchanged among all ranks -> connect(); then
/// lanes; disconnect(). Registered once, connected once, before the first transfer (BytePS,
/// section 6.2). Control path: throws Error. Thread-compatible, except that different lanes may be
/// used by different threads.
class Mover {
public:
  Mover() = default;
  Mover(const Mover&) = delete;
  Mover& operator=(const Mover&) = delete;
  virtual ~Mover() = default;

  [[nodiscard]] virtual const MoverCapabilities& capabilities() const noexcept = 0;
  /// The network ports that have a carrier and that use_ports() takes, by name. Throws Error.
  [[nodiscard]] virtual std::vector<std::string> ports_here() const { return {}; }
  /// Instead of those of capabilities(): lane i uses port i modulo their number. Before allocate().
  /// Throws Error{unavailable} where there is no such port.
  virtual void use_ports(const std::vector<std::string>& ports);
  /// Page-aligned (with that habit), zeroed memory that peers may write to, owned by the mover.
  /// `bytes` may be 0.
  [[nodiscard]] virtual std::span<std::byte> allocate(std::uint64_t bytes) = 0;
  /// The processor's view of a buffer from allocate(): the buffer itself, or a copy of it if it is
  /// no host memory. push() carries the copy to the buffer, pull() back; neither while lanes are at
  /// work. Throw Error.
  [[nodiscard]] virtual std::span<std::byte> view(std::span<std::byte> buffer) { return buffer; }
  virtual void push(std::span<std::byte> /*buffer*/) {}
  virtual void pull(std::span<std::byte> /*buffer*/) {}
  /// Makes foreign memory the next buffer, as allocate() makes its own. For another mover's memory,
  /// peers may write to it through either. It must outlive this. Throws Error{unavailable} where
  /// the mover cannot.
  virtual void adopt(std::span<std::byte> buffer);
  /// Writes carry a checksum of their bytes. Before open(), at all ranks or at none. Throws
  /// Error{unavailable} where the transport has no room for it.
  virtual void add_checksums();
  virtual void open(int lanes) = 0;
  /// Everything that the peers need to reach our lanes and buffers.
  [[nodiscard]] virtual std::string address() const = 0;
  /// Called again and again while connect() waits for peers; an exception ends the waiting.
  void set_meanwhile(std::function<void()> meanwhile) { m_meanwhile = std::move(meanwhile); }
  /// `addresses` of all ranks in rank order, ours among them at `self`; empty: a rank that this
  /// mover does not reach, on both sides. May be slow; afterwards every other pair can talk.
  virtual void connect(int self, const std::vector<std::string>& addresses) = 0;
  /// A connected peer's buffer number `buffer` as our own processor reads and writes it, where
  /// ranks share memory. A peer's op is visible there when a later write of it has arrived. Throws
  /// Error{unavailable} where this transport has no shared memory.
  [[nodiscard]] virtual std::span<std::byte> memory_of(std::size_t peer, std::size_t buffer);
  [[nodiscard]] virtual MoverLane& lane(int index) = 0;
  /// The last call, when no lane is at work at any rank. For memory that must not be freed while a
  /// peer has it open: closes that of the peers, calls `meet`, which returns when all ranks have
  /// come to this place, and only then may free its own. Passes on exceptions of `meet`. A mover
  /// that is destroyed without this call, because the job failed, leaves that memory to the end of
  /// the process. Other movers do nothing, and do not call `meet`.
  virtual void disconnect(const std::function<void()>& /*meet*/) {}
  /// The job has failed: memory that peers may still use, or that cannot be closed in the middle of
  /// an operation, stays until the end of the process.
  virtual void abandon() noexcept {}

protected:
  void meanwhile() const {
    if (m_meanwhile) {
      m_meanwhile();
    }
  }

private:
  std::function<void()> m_meanwhile;
};

/// The transports of this build and this machine, best first for ranks on one machine: "host", then
/// libfabric providers with one-sided writes and remote completion data as "shm", "tcp;ofi_rxm",
/// "verbs;ofi_rxm". All of them move host memory; "cuda" (gpu_transport()) moves that of GPUs.
/// `why_not` gets a line for each omitted one.
[[nodiscard]] std::vector<std::string>
available_transports(std::vector<std::string>* why_not = nullptr);

/// "cuda" where this machine has a GPU's driver and this build knows CUDA, else empty. Does not ask
/// CUDA: a process that has may not fork any more.
[[nodiscard]] std::string gpu_transport(std::vector<std::string>* why_not = nullptr);

/// The memory of a rank's buffers in its machine: for "cuda" only.
struct MoverPlace {
  int local_rank = 0;        ///< on GPU number local_rank modulo their number
  bool host_memory = false;  ///< instead, in host memory that all GPUs of the job write to directly
  std::string pci_address{}; ///< instead, on the GPU with this address: "0000:17:00.0"
};

/// Throws Error{unavailable} that lists the available transports. Habits are off only to measure
/// their worth.
[[nodiscard]] std::unique_ptr<Mover>
make_mover(const std::string& transport, const Habits& habits = {}, const MoverPlace& place = {});

} // namespace reckon
