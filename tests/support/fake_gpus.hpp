// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/clock.hpp"
#include "core/file.hpp"
#include "movers/gpu.hpp"
#include "movers/handle.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace reckon::support {

/// GPUs that are made up: memory is the host's, which processes share as CUDA's, and time is
/// virtual and each process's own. Work is done and its end is
/// known when it is queued, or, behind a closed gate, when the gate opens. Each call costs the host
/// k_call; a query or a synchronisation moves the clock.
class FakeGpus final : public GpuLibrary {
public:
  enum class Kind { copy, copy_peer, copy_sm, sum, other };
  struct Work {
    Kind kind = Kind::other;
    int device = 0; ///< that drives
    const std::byte* to = nullptr;
    const std::byte* from = nullptr;
    std::uint64_t bytes = 0;
    int blocks = 0;
  };
  static constexpr double k_call = 1e-6;

  explicit FakeGpus(int count);
  /// Every GPU can have access to every GPU.
  void let_all_be_peers();
  ~FakeGpus() override;
  /// So many more calls that use a stream or make something succeed, and then none: a GPU that fell
  /// off its bus; nothing: all. Returns what was left before. For any thread.
  std::optional<std::size_t> lose_after(std::optional<std::size_t> calls);

  // What a test decides.
  std::function<double(const Work&)> seconds; ///< of one piece of work
  /// Names of what a piece of work keeps for itself while it runs, such as a link.
  std::function<std::vector<std::string>(const Work&)> needs;
  /// Bytes per second that what `needs` names carries. When this is set, work that runs at once
  /// shares it, max-min fair, and no piece of work is faster than `seconds` says.
  std::function<double(const std::string& name)> capacity;
  std::function<double(const Work&)> weight; ///< of its share in all of these; empty: 1
  std::set<std::pair<int, int>> peers;       ///< that can have access
  std::set<std::pair<int, int>> atomics;
  GpuStatus fail_next_copy = 0; ///< the status of the next copy, which is not made
  bool lose_copies = false;     ///< copies take their time and move nothing
  bool gate_expires = false;
  std::size_t calls_refused = 0; ///< since lose_after()
  std::string no_gemm;           ///< why there are no matrix products; empty: there are

  [[nodiscard]] const Clock& clock() const { return m_clock; }
  void advance(double seconds_) {
    m_clock.time += seconds_;
    settle(m_clock.time);
  }
  [[nodiscard]] int device_of(const std::byte* memory) const; ///< -1: the host's
  [[nodiscard]] bool is_registered(const std::byte* memory) const;
  [[nodiscard]] bool has_access(int device, int peer) const {
    return m_access.contains({device, peer});
  }
  [[nodiscard]] std::size_t open_imports() const { return m_imports.size(); }
  std::size_t freed_while_open = 0;         ///< exported memory, before its importers closed it
  [[nodiscard]] std::size_t living() const; ///< allocations, registrations, streams, events
  std::vector<Work> works;

  const std::vector<GpuProperties>& devices() const noexcept override { return m_devices; }
  std::string words(GpuStatus status) const override;
  void load(int device) override;
  std::byte* allocate(int device, std::uint64_t bytes) override;
  void release(int device, std::byte* memory) noexcept override;
  void register_host(std::byte* memory, std::uint64_t bytes) override;
  void unregister_host(std::byte* memory) noexcept override;
  std::string export_memory(int device, std::byte* memory) override;
  std::byte* import_memory(int device, const std::string& name) override;
  void close_memory(int device, std::byte* memory) noexcept override;
  bool can_access_peer(int device, int peer) override { return peers.contains({device, peer}); }
  bool has_peer_atomics(int device, int peer) override { return atomics.contains({device, peer}); }
  void set_peer_access(int device, int peer, bool on) override;
  GpuStream make_stream(int device) override;
  void release(GpuStream stream) noexcept override;
  GpuEvent make_event(int device) override;
  void release(GpuEvent event) noexcept override;
  GpuStatus record(GpuEvent event, GpuStream stream) noexcept override;
  GpuStatus wait(GpuStream stream, GpuEvent event) noexcept override;
  GpuCounter make_counter(int device) override;
  void release(GpuCounter counter) noexcept override;
  GpuStatus count(GpuCounter counter, GpuStream stream) noexcept override;
  GpuStatus counted(GpuCounter counter, std::uint32_t& times) noexcept override;
  /// Where capacities are shared only.
  GpuStatus hold(GpuStream stream, const std::uint32_t* word,
                 std::uint32_t value) noexcept override;
  GpuStatus synchronize(GpuStream stream) noexcept override;
  Seconds elapsed(GpuEvent begin, GpuEvent end) override;
  GpuStatus close_gate(GpuStream stream) noexcept override;
  void open_gate() noexcept override;
  bool gate_expired() const noexcept override { return gate_expires; }
  GpuStatus copy(std::byte* to, const std::byte* from, std::uint64_t bytes,
                 GpuStream stream) noexcept override;
  GpuStatus copy_peer(std::byte* to, int to_device, const std::byte* from, int from_device,
                      std::uint64_t bytes, GpuStream stream) noexcept override;
  GpuStatus copy_sm(std::byte* to, const std::byte* from, std::uint64_t bytes, int blocks,
                    GpuStream stream) noexcept override;
  GpuStatus sum(DType type, std::byte* to, std::span<const void* const> sources,
                std::size_t elements, int blocks, GpuStream stream) noexcept override;
  GpuStatus scale(DType type, std::byte* memory, std::size_t elements, double factor,
                  GpuStream stream) noexcept override;
  GpuStatus set(std::byte* memory, std::uint8_t value, std::uint64_t bytes,
                GpuStream stream) noexcept override;
  GpuStatus fill_pattern(std::byte* memory, std::uint64_t bytes, std::uint64_t salt,
                         GpuStream stream) noexcept override;
  std::optional<std::uint64_t> find_difference(const std::byte* memory, std::uint64_t bytes,
                                               std::uint64_t salt, GpuStream stream) override;
  GpuStatus chase(const std::byte* memory, std::uint64_t steps, GpuStream stream) noexcept override;
  std::unique_ptr<GpuWork> make_gemm(int device, int size) override;
  std::unique_ptr<GpuWork> make_embedding(int device, std::uint32_t rows, std::uint32_t batch,
                                          std::uint32_t bag) override;

private:
  struct VirtualClock final : Clock {
    [[nodiscard]] Seconds now() const noexcept override { return Seconds(time); }
    double time = 1;
  };
  struct Stream {
    double free_at = 0;
  };
  struct Event {
    double at = 0;
    bool recorded = false;
    unsigned asked = 0, done = 0; ///< records: a wait is for the last one asked for before it
  };
  struct Counter {
    std::deque<Event> events; ///< that were not seen yet, in order
    std::uint32_t times = 0;
  };
  class FakeWork;
  /// Of a stream: work, or an event that is waited for, or one that happens.
  struct Item {
    enum class Kind { work, wait, record, hold } kind = Kind::work;
    double left = 0; ///< bytes
    double most = 0; ///< bytes per second
    double weight = 1;
    std::vector<std::string> names;
    std::function<void()> act;
    Event* event = nullptr;
    const std::uint32_t* word = nullptr; ///< hold
    std::uint32_t value = 0;
    unsigned number = 0; ///< of the event's records
  };
  [[nodiscard]] bool lost();
  void require_there(const char* call);
  void queue(std::function<void()> act);
  /// Lets time pass for what shares capacities, until `until` or until `stop` has nothing left.
  void settle(double until, const void* stop = nullptr);
  void finish_items();
  [[nodiscard]] std::vector<double> fair_rates(const std::vector<Item*>& active) const;
  GpuStatus work(const Work& what, GpuStream stream, std::function<void()> act);

  std::optional<std::size_t> m_calls_left;
  mutable std::recursive_mutex m_mutex; ///< of the calls of a mover's or a session's threads
  VirtualClock m_clock;
  std::vector<GpuProperties> m_devices;
  struct Memory {
    int device = 0;
    Fd fd; ///< none: another process's
    Mapping mapping;
  };
  std::map<const std::byte*, Memory> m_memory;
  std::map<const std::byte*, std::uint64_t> m_registered;
  std::set<std::pair<int, int>> m_access;
  std::multiset<const std::byte*> m_imports;
  std::set<void*> m_handles;
  std::map<std::string, double> m_busy;
  std::map<void*, std::deque<Item>> m_items; ///< by stream, where capacities are shared
  double m_settled = 0;                      ///< up to when
  bool m_gate_closed = false;
  std::vector<std::function<void()>> m_behind_gate;
};

} // namespace reckon::support
