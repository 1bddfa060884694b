// SPDX-License-Identifier: Apache-2.0
#include "movers/fake.hpp"

#include "core/error.hpp"
#include "movers/checksum.hpp"
#include "movers/handle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <mutex>
#include <queue>
#include <thread>
#include <utility>

namespace reckon {
namespace {

class VirtualClock final : public Clock {
public:
  Seconds now() const noexcept override { return Seconds(m_now.load(std::memory_order_relaxed)); }
  void set(Seconds now) noexcept { m_now.store(now.count(), std::memory_order_relaxed); }

private:
  // Read without the network's lock; nothing else is published by it, hence relaxed.
  std::atomic<double> m_now{0};
};

struct RankState {
  std::vector<Mapping> buffers;
  std::vector<std::deque<Completion>> lanes;
  std::vector<std::size_t> in_flight; // of each lane
  Seconds out_free{0}, in_free{0};
  bool taken = false;
};

} // namespace

struct FakeNetwork::State {
  mutable std::mutex lock; // guards all below but the clock
  VirtualClock clock;
  Cost cost;
  Faults faults;
  MoverCapabilities capabilities;
  bool checksums = false;
  bool threads = true; // ranks may be threads; set before any of them waits
  std::vector<RankState> ranks;
  std::vector<FakeWrite> calls;
  // Finish time, then posting order.
  std::priority_queue<std::pair<double, std::size_t>, std::vector<std::pair<double, std::size_t>>,
                      std::greater<>>
      events;

  std::span<std::byte> place(int rank, Slice slice, std::uint64_t bytes) {
    const std::vector<Mapping>& buffers = ranks[static_cast<std::size_t>(rank)].buffers;
    if (slice.buffer >= buffers.size() ||
        !fits(slice.offset, bytes, buffers[slice.buffer].bytes().size())) {
      return {};
    }
    return buffers[slice.buffer].bytes().subspan(slice.offset, bytes);
  }

  void finish_next() {
    const std::size_t index = events.top().second;
    events.pop();
    const FakeWrite& write = calls[index];
    clock.set(std::max(clock.now(), write.finished));
    const auto lane = static_cast<std::size_t>(write.lane);
    RankState& from = ranks[static_cast<std::size_t>(write.from)];
    RankState& to = ranks[static_cast<std::size_t>(write.to)];
    --from.in_flight[lane];
    if (write.fault == FakeFault::failed) {
      from.lanes[lane].push_back({Completion::Kind::failed, 0, write.id});
      return;
    }
    from.lanes[lane].push_back({Completion::Kind::sent, 0, write.id});
    if (write.fault == FakeFault::lost) {
      return;
    }
    std::span<std::byte> source;
    if (write.bytes != 0) {
      const std::span<std::byte> target = place(write.to, write.destination, write.bytes);
      source = place(write.from, write.source, write.bytes);
      std::memcpy(target.data(), source.data(), write.bytes);
      if (write.fault == FakeFault::corrupted) {
        target[write.bytes / 2] ^= std::byte{1};
      }
    }
    to.lanes[lane].push_back({Completion::Kind::arrived, write.tag, 0,
                              checksums ? std::optional(checksum_of(source)) : std::nullopt});
  }
};

class FakeLane final : public MoverLane {
public:
  FakeLane(FakeNetwork::State& state, int rank, int index)
      : m_state(state), m_rank(rank), m_index(index),
        m_ours(state.ranks[static_cast<std::size_t>(rank)]) {}

  bool write(int peer, Slice source, Slice destination, std::uint64_t bytes, std::uint32_t tag,
             std::uint64_t id) noexcept override {
    const std::lock_guard guard(m_state.lock);
    const auto lane = static_cast<std::size_t>(m_index);
    std::size_t& in_flight = m_ours.in_flight[lane];
    if (in_flight == m_state.capabilities.max_in_flight) {
      return false;
    }
    const bool known = peer >= 0 && static_cast<std::size_t>(peer) < m_state.ranks.size() &&
                       peer != m_rank &&
                       m_state.ranks[static_cast<std::size_t>(peer)].lanes.size() > lane;
    if (!known || bytes > m_state.capabilities.max_write_bytes ||
        (bytes != 0 && (m_state.place(m_rank, source, bytes).empty() ||
                        m_state.place(peer, destination, bytes).empty()))) {
      m_ours.lanes[lane].push_back({Completion::Kind::failed, 0, id});
      return true;
    }
    RankState& theirs = m_state.ranks[static_cast<std::size_t>(peer)];
    FakeWrite call{
        m_rank, peer,           m_index, source, destination, bytes, tag, id, m_state.clock.now(),
        {},     FakeFault::none};
    const Seconds start = std::max({call.posted, m_ours.out_free, theirs.in_free});
    call.finished = start + m_state.cost(m_rank, peer, bytes);
    m_ours.out_free = theirs.in_free = call.finished;
    if (m_state.faults) {
      call.fault = m_state.faults(call);
    }
    m_state.events.emplace(call.finished.count(), m_state.calls.size());
    m_state.calls.push_back(call);
    ++in_flight;
    return true;
  }

  std::size_t poll(std::span<Completion> out) noexcept override {
    const std::lock_guard guard(m_state.lock);
    std::deque<Completion>& queue = m_ours.lanes[static_cast<std::size_t>(m_index)];
    const std::size_t count = std::min(out.size(), queue.size());
    std::copy_n(queue.begin(), count, out.begin());
    queue.erase(queue.begin(), queue.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
  }

  void wait(std::chrono::nanoseconds limit) noexcept override {
    {
      const std::lock_guard guard(m_state.lock);
      if (limit.count() <= 0 || !m_ours.lanes[static_cast<std::size_t>(m_index)].empty()) {
        return;
      }
      const Seconds until = m_state.clock.now() + limit;
      if (!m_state.events.empty() && m_state.events.top().first <= until.count()) {
        m_state.finish_next();
        return;
      }
      m_state.clock.set(until);
    }
    if (m_state.threads) { // another must get its turn before anything can happen
      std::this_thread::yield();
    }
  }

  std::string error() const override {
    return "write(fake): a fault was injected, or the write reaches outside its buffers";
  }

private:
  FakeNetwork::State& m_state;
  int m_rank, m_index;
  RankState& m_ours;
};

class FakeMover final : public Mover {
public:
  FakeMover(FakeNetwork::State& state, int rank)
      : m_state(state), m_rank(rank), m_ours(state.ranks[static_cast<std::size_t>(rank)]) {}

  const MoverCapabilities& capabilities() const noexcept override { return m_state.capabilities; }

  std::span<std::byte> allocate(std::uint64_t bytes) override {
    const std::lock_guard guard(m_state.lock);
    m_ours.buffers.emplace_back(-1, bytes, fmt::format("{} bytes", bytes));
    return m_ours.buffers.back().bytes();
  }

  void open(int lanes) override {
    const std::lock_guard guard(m_state.lock);
    m_ours.lanes.resize(static_cast<std::size_t>(lanes));
    m_ours.in_flight.resize(static_cast<std::size_t>(lanes));
    for (int i = 0; i < lanes; ++i) {
      m_lanes.push_back(std::make_unique<FakeLane>(m_state, m_rank, i));
    }
  }

  std::string address() const override { return fmt::format("fake {}", m_rank); }

  void connect(int self, const std::vector<std::string>& addresses) override {
    if (self != m_rank || addresses.size() != m_state.ranks.size()) {
      fail(ErrorKind::internal,
           fmt::format("connect(fake): rank {} of {} where rank {} of {} was made", self,
                       addresses.size(), m_rank, m_state.ranks.size()));
    }
  }

  MoverLane& lane(int index) override { return *m_lanes.at(static_cast<std::size_t>(index)); }

private:
  FakeNetwork::State& m_state;
  int m_rank;
  RankState& m_ours;
  std::vector<std::unique_ptr<FakeLane>> m_lanes;
};

FakeNetwork::FakeNetwork(int ranks, Cost cost, std::size_t max_in_flight,
                         std::uint64_t max_write_bytes)
    : m_state(std::make_unique<State>()) {
  m_state->cost = std::move(cost);
  m_state->capabilities = {"fake", true, max_write_bytes, max_in_flight};
  m_state->ranks.resize(static_cast<std::size_t>(ranks));
}

FakeNetwork::~FakeNetwork() = default;

std::unique_ptr<Mover> FakeNetwork::make_mover(int rank) {
  const std::lock_guard guard(m_state->lock);
  RankState& state = m_state->ranks.at(static_cast<std::size_t>(rank));
  if (std::exchange(state.taken, true)) {
    fail(ErrorKind::internal, fmt::format("the fake network's rank {} was made twice", rank));
  }
  return std::make_unique<FakeMover>(*m_state, rank);
}

void FakeNetwork::used_from_one_thread() noexcept {
  m_state->threads = false;
}

void FakeNetwork::add_checksums() noexcept {
  m_state->checksums = true;
}

void FakeNetwork::set_faults(Faults faults) {
  const std::lock_guard guard(m_state->lock);
  m_state->faults = std::move(faults);
}

const Clock& FakeNetwork::clock() const noexcept {
  return m_state->clock;
}

std::vector<FakeWrite> FakeNetwork::calls() const {
  const std::lock_guard guard(m_state->lock);
  return m_state->calls;
}

bool FakeNetwork::step() {
  const std::lock_guard guard(m_state->lock);
  if (m_state->events.empty()) {
    return false;
  }
  m_state->finish_next();
  return true;
}

} // namespace reckon
