// SPDX-License-Identifier: Apache-2.0
#include "probe/fabric_rank.hpp"

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/json.hpp"
#include "probe/pattern.hpp"
#include "probe/pin.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <poll.h>
#include <sched.h>
#include <span>
#include <sys/socket.h>
#include <type_traits>

namespace reckon {
namespace {

constexpr std::uint32_t k_source = 0, k_target = 1;      // buffers, in the order of allocation
constexpr std::chrono::milliseconds k_longest_sleep{20}; // as the executor

// Tags. A transport may deliver in any order, so the last one says how many there are.
constexpr std::uint32_t k_data = 1;
constexpr std::uint32_t k_enough = 2;         // the receiver has all its samples
constexpr std::uint32_t k_last = 0x8000'0000; // plus the number of writes sent, modulo 2^31
constexpr std::uint64_t k_control_id = UINT64_MAX;

/// Writes at the beginning and at the end of a stream that are checked, and how much of each.
constexpr std::uint64_t k_checked_writes = 8;
constexpr std::uint64_t k_checked_end = 16 * 1024;
constexpr auto k_poison = std::byte{0xa5};

void run_on(int cpu, const cpu_set_t& all) {
  if (cpu >= 0) {
    bind_to_cpu(cpu);
  } else {
    static_cast<void>(sched_setaffinity(0, sizeof all, &all));
  }
}

class Rank {
public:
  Rank(const FabricMember& self, std::unique_ptr<Mover> mover)
      : m_mover(std::move(mover)), m_seed(self.seed),
        m_source(m_mover->allocate(fabric_footprint(self.rank, self.footprint))),
        m_target(m_mover->allocate(fabric_footprint(self.rank, self.footprint))) {
    m_mover->open(1);
    fill_with_pattern(m_source, m_seed + static_cast<std::uint64_t>(self.rank));
    CPU_ZERO(&m_all_cpus);
    static_cast<void>(sched_getaffinity(0, sizeof m_all_cpus, &m_all_cpus));
  }

  Mover& mover() { return *m_mover; }

  /// To be done by all ranks before any begins.
  void prepare(const FabricOrder& order) {
    run_on(order.cpu, m_all_cpus);
    m_outcome = {};
    if (order.kind == FabricOrder::Kind::ping) {
      m_outcome.stamps.reserve(order.count + 1);
    }
    if (order.kind == FabricOrder::Kind::stream && order.receives) {
      for_checked(order, [&](std::uint64_t /*from*/, std::uint64_t to, std::uint64_t bytes) {
        std::memset(m_target.data() + to, static_cast<int>(k_poison), bytes);
      });
    }
  }

  FabricOutcome carry_out(const FabricOrder& order) {
    if (order.kind == FabricOrder::Kind::ping) {
      ping(order);
    } else {
      stream(order);
      if (order.receives && m_outcome.error.empty()) {
        check(order);
      }
    }
    return std::move(m_outcome);
  }

private:
  struct Heard {
    std::uint64_t data = 0, sent = 0, control_sent = 0;
    bool enough = false;
    std::optional<std::uint32_t> last;
  };

  /// Where write `number` of a stream comes from. A peer is always in the same pair, hence has as
  /// much memory.
  [[nodiscard]] std::uint64_t source_of(const FabricOrder& order, std::uint64_t number) const {
    const std::uint64_t place = fabric_place(order.bytes);
    return (order.first + number) % (m_source.size() / place) * place;
  }
  /// And where it goes.
  [[nodiscard]] std::uint64_t target_of(const FabricOrder& order, std::uint64_t number) const {
    return order.slots == 0 ? source_of(order, number)
                            : number % slots_of(order) * fabric_place(order.bytes);
  }
  /// As many as asked for, or as there is room.
  [[nodiscard]] std::uint64_t slots_of(const FabricOrder& order) const {
    return std::min<std::uint64_t>(order.slots, m_target.size() / fabric_place(order.bytes));
  }

  /// Polls once. The loops below take the executor's steps: poll, then post at most one write, and
  /// sleep when there was nothing to do.
  std::size_t poll(MoverLane& lane, Heard& heard) noexcept {
    std::array<Completion, 16> completions;
    const std::size_t count = lane.poll(completions);
    for (std::size_t i = 0; i < count; ++i) {
      const Completion& c = completions[i];
      if (c.kind == Completion::Kind::failed) {
        m_outcome.error = lane.error();
      } else if (c.kind == Completion::Kind::sent) {
        ++(c.id == k_control_id ? heard.control_sent : heard.sent);
      } else if (c.tag == k_data) {
        ++heard.data;
      } else if (c.tag == k_enough) {
        heard.enough = true;
      } else {
        heard.last = c.tag - k_last;
      }
    }
    return count;
  }

  void stream(const FabricOrder& order) noexcept {
    MoverLane& lane = m_mover->lane(0);
    Heard heard;
    std::uint64_t posted = 0, control = 0;
    bool told_enough = !order.receives, told_last = !order.sends;
    m_outcome.begin_ns = monotonic_ns();
    while (m_outcome.error.empty()) {
      bool busy = poll(lane, heard) > 0;
      if (order.sends && !heard.enough && posted - heard.sent < order.in_flight &&
          (order.keep_load || posted < order.count)) {
        if (lane.write(order.peer, {k_source, source_of(order, posted)},
                       {k_target, target_of(order, posted)}, order.bytes, k_data, posted)) {
          ++posted;
          busy = true;
        }
      }
      if (!told_enough && heard.data >= order.count) {
        if (m_outcome.end_ns == 0) {
          m_outcome.end_ns = monotonic_ns();
        }
        if (lane.write(order.peer, {}, {}, 0, k_enough, k_control_id)) {
          told_enough = busy = true;
          ++control;
        }
      }
      if (!told_last && heard.enough && heard.sent == posted) {
        const auto count = static_cast<std::uint32_t>(posted % k_last);
        if (lane.write(order.peer, {}, {}, 0, k_last + count, k_control_id)) {
          told_last = busy = true;
          ++control;
        }
      }
      const bool have_all =
          !order.receives ||
          (heard.last && static_cast<std::uint32_t>(heard.data % k_last) == *heard.last);
      if (told_enough && told_last && have_all && heard.control_sent == control) {
        return;
      }
      if (!busy) {
        lane.wait(k_longest_sleep);
      }
    }
  }

  void ping(const FabricOrder& order) noexcept {
    MoverLane& lane = m_mover->lane(0);
    Heard heard;
    std::uint64_t posted = 0;
    const std::uint64_t rounds = order.warm_up + order.count;
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const auto say = [&] {
        while (m_outcome.error.empty() &&
               !lane.write(order.peer, {k_source, 0}, {k_target, 0}, 8, k_data, posted)) {
          if (poll(lane, heard) == 0) {
            lane.wait(k_longest_sleep);
          }
        }
        ++posted;
      };
      if (order.sends) {
        if (round >= order.warm_up) {
          m_outcome.stamps.push_back(monotonic_ns());
        }
        say();
      }
      while (m_outcome.error.empty() && heard.data <= round) {
        if (poll(lane, heard) == 0) {
          lane.wait(k_longest_sleep);
        }
      }
      if (!order.sends) {
        say();
      }
    }
    if (order.sends) {
      m_outcome.stamps.push_back(monotonic_ns());
    }
    while (m_outcome.error.empty() && heard.sent < posted) {
      if (poll(lane, heard) == 0) {
        lane.wait(k_longest_sleep);
      }
    }
  }

  /// Calls act(source, target, bytes) for both ends of the writes that are checked: the first and
  /// the last ones; with slots, those that stay in them.
  template <class Act>
  void for_checked(const FabricOrder& order, Act act) const {
    const auto both_ends = [&](std::uint64_t number) {
      const std::uint64_t from = source_of(order, number), to = target_of(order, number);
      const std::uint64_t end = std::min(order.bytes, k_checked_end);
      act(from, to, end);
      act(from + order.bytes - end, to + order.bytes - end, end);
    };
    const std::uint64_t last =
        std::min({order.count, k_checked_writes, order.slots == 0 ? order.count : slots_of(order)});
    for (std::uint64_t i = 0; i < last; ++i) {
      both_ends(order.count - 1 - i);
    }
    for (std::uint64_t i = 0; order.slots == 0 && i < last; ++i) {
      both_ends(i);
    }
  }

  void check(const FabricOrder& order) {
    const std::uint64_t seed = m_seed + static_cast<std::uint64_t>(order.peer);
    for_checked(order, [&](std::uint64_t from, std::uint64_t to, std::uint64_t bytes) {
      for (std::uint64_t i = 0; i < bytes && m_outcome.wrong_at == UINT64_MAX; ++i) {
        if (m_target[to + i] != pattern_byte(seed, from + i)) {
          m_outcome.wrong_at = to + i;
        }
      }
    });
  }

  std::unique_ptr<Mover> m_mover;
  std::uint64_t m_seed;
  std::span<std::byte> m_source, m_target;
  cpu_set_t m_all_cpus;
  FabricOutcome m_outcome;
};

void send_all(int socket, const char* data, std::size_t bytes) {
  while (bytes > 0) {
    const ssize_t n = ::send(socket, data, bytes, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n <= 0) {
      fail(ErrorKind::operation, "a process of the measurement is gone");
    }
    data += n;
    bytes -= static_cast<std::size_t>(n);
  }
}

bool receive_all(int socket, char* data, std::size_t bytes, std::int64_t end_ns) {
  while (bytes > 0) {
    const std::int64_t left_ms =
        end_ns < 0 ? -1 : std::max<std::int64_t>(0, (end_ns - monotonic_ns()) / 1'000'000);
    pollfd polled{socket, POLLIN, 0};
    const int ready = ::poll(&polled, 1, static_cast<int>(left_ms));
    if (ready < 0 && errno == EINTR) {
      continue;
    }
    const ssize_t n = ready > 0 ? ::recv(socket, data, bytes, 0) : 0;
    if (n <= 0) {
      return false;
    }
    data += n;
    bytes -= static_cast<std::size_t>(n);
  }
  return true;
}

template <class T>
void put(std::string& text, const T& value) {
  static_assert(std::is_trivially_copyable_v<T>);
  text.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
T take(const std::string& text, std::size_t& at) {
  T value{};
  if (text.size() - at < sizeof value) {
    fail(ErrorKind::internal, "a process of the measurement sent half a message");
  }
  std::memcpy(&value, text.data() + at, sizeof value);
  at += sizeof value;
  return value;
}

} // namespace

std::uint64_t fabric_footprint(int rank, std::uint64_t most) {
  // The first pair goes round 64 MiB by itself. The others need less, as all together count.
  const std::uint64_t mib = rank < 2 ? 64 : rank < 4 ? 32 : 16;
  return std::min(mib << 20U, most);
}

std::uint64_t fabric_place(std::uint64_t bytes) {
  const std::uint64_t unit = bytes >= 4096 ? 4096 : 64;
  return std::max<std::uint64_t>(1, (bytes + unit - 1) / unit) * unit;
}

std::string encode(const FabricOrder& order) {
  std::string text;
  put(text, order);
  return text;
}

FabricOrder decode_order(const std::string& text) {
  std::size_t at = 0;
  return take<FabricOrder>(text, at);
}

std::string encode(const FabricOutcome& outcome) {
  std::string text;
  put(text, outcome.begin_ns);
  put(text, outcome.end_ns);
  put(text, outcome.wrong_at);
  put(text, outcome.stamps.size());
  for (const std::int64_t stamp : outcome.stamps) {
    put(text, stamp);
  }
  return text;
}

FabricOutcome decode_outcome(const std::string& text) {
  FabricOutcome outcome;
  std::size_t at = 0;
  outcome.begin_ns = take<std::int64_t>(text, at);
  outcome.end_ns = take<std::int64_t>(text, at);
  outcome.wrong_at = take<std::uint64_t>(text, at);
  outcome.stamps.resize(take<std::size_t>(text, at));
  for (std::int64_t& stamp : outcome.stamps) {
    stamp = take<std::int64_t>(text, at);
  }
  return outcome;
}

void send_frame(int socket, FrameKind kind, const std::string& text) {
  std::string frame;
  put(frame, kind);
  put(frame, static_cast<std::uint64_t>(text.size()));
  frame += text;
  send_all(socket, frame.data(), frame.size());
}

bool receive_frame(int socket, FrameKind& kind, std::string& text, int limit_ms) {
  const std::int64_t end_ns =
      limit_ms < 0 ? -1 : monotonic_ns() + std::int64_t{limit_ms} * 1'000'000;
  std::array<char, sizeof(FrameKind) + sizeof(std::uint64_t)> head{};
  if (!receive_all(socket, head.data(), head.size(), end_ns)) {
    return false;
  }
  std::uint64_t size = 0;
  std::memcpy(&kind, head.data(), sizeof kind);
  std::memcpy(&size, head.data() + sizeof kind, sizeof size);
  text.resize(size);
  return receive_all(socket, text.data(), size, end_ns);
}

void serve_fabric_rank(const FabricMember& member, int socket, const MakeMover& make) {
  try {
    Rank self(member, make(member.transport));
    send_frame(socket, FrameKind::address, self.mover().address());
    FrameKind kind{};
    std::string text;
    if (!receive_frame(socket, kind, text, -1)) {
      return;
    }
    const Json addresses = parse_json(text, "addresses");
    self.mover().connect(member.rank, addresses.get<std::vector<std::string>>());
    send_frame(socket, FrameKind::ready, "");
    while (receive_frame(socket, kind, text, -1)) {
      const FabricOrder order = decode_order(text);
      self.prepare(order);
      send_frame(socket, FrameKind::ready, "");
      if (!receive_frame(socket, kind, text, -1)) {
        return;
      }
      const FabricOutcome outcome = self.carry_out(order);
      if (!outcome.error.empty()) { // at once: the peer may wait for us in vain
        send_frame(socket, FrameKind::error, outcome.error);
        return;
      }
      send_frame(socket, FrameKind::outcome, encode(outcome));
    }
  } catch (const Error& error) {
    send_frame(socket,
               error.kind() == ErrorKind::unavailable ? FrameKind::unavailable : FrameKind::error,
               error.what());
  } catch (const std::exception& error) { // out of memory, for one
    send_frame(socket, FrameKind::error, error.what());
  }
}

} // namespace reckon
