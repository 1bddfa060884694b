// SPDX-License-Identifier: Apache-2.0
#include "run/gates.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <optional>
#include <sys/eventfd.h>
#include <unistd.h>

namespace reckon {

/// One lane's view of the gates.
class Gates::LaneDelays final : public Delays {
public:
  LaneDelays(const Gates& gates, const LaneProgram& program, int bell)
      : m_gates(gates), m_gate_of(program.ops().size()), m_bell(bell) {
    std::uint32_t gate = 0;
    for (std::size_t i = 0; i < program.ops().size(); ++i) {
      m_gate_of[i] = gate;
      gate += program.ops()[i].kind == OpKind::delay ? 1U : 0U;
    }
    m_under_way.reserve(gate);
  }

  void reset() noexcept override { m_under_way.clear(); }
  void start(std::uint32_t op, std::int64_t /*since_ns*/) noexcept override {
    m_under_way.push_back(op); // capacity was reserved
  }
  [[nodiscard]] std::optional<Over> next_over(std::int64_t now_ns) noexcept override {
    const auto it = std::find_if(m_under_way.begin(), m_under_way.end(),
                                 [this](std::uint32_t op) { return is_over(op); });
    if (it == m_under_way.end()) {
      return std::nullopt;
    }
    const Over over{*it, now_ns};
    m_under_way.erase(it);
    return over;
  }
  [[nodiscard]] std::optional<std::int64_t>
  ask_again_ns(std::int64_t now_ns) const noexcept override {
    if (m_under_way.empty()) {
      return std::nullopt;
    }
    constexpr std::int64_t k_longest_ns = 20'000'000; // the bell ends it earlier
    const bool over = std::any_of(m_under_way.begin(), m_under_way.end(),
                                  [this](std::uint32_t op) { return is_over(op); });
    return over ? now_ns : now_ns + k_longest_ns;
  }
  /// Stills the bell first: what opens a gate after that rings it again, what was open before is
  /// seen by the look that follows.
  [[nodiscard]] int bell() noexcept override {
    std::uint64_t rings = 0;
    static_cast<void>(::read(m_bell, &rings, sizeof rings)); // nothing to read: it is still
    return m_bell;
  }

private:
  [[nodiscard]] bool is_over(std::uint32_t op) const noexcept {
    const std::uint32_t gate = m_gate_of[op];
    // With the release in open(): the gradient is there.
    return gate >= m_gates.size() ||
           m_gates.m_gates[gate].load(std::memory_order_acquire) == k_open;
  }

  const Gates& m_gates;
  std::vector<std::uint32_t> m_gate_of; ///< by op
  int m_bell;
  std::vector<std::uint32_t> m_under_way; ///< ops
};

Gates::Gates(std::size_t count) : m_gates(count) {}

void Gates::close() noexcept {
  for (std::atomic<char>& gate : m_gates) {
    gate.store(k_closed, std::memory_order_relaxed); // lanes start after this, by a lock
  }
}

bool Gates::take(std::size_t first, std::size_t count) noexcept {
  for (std::size_t i = first; i < first + count; ++i) {
    char closed = k_closed;
    if (!m_gates[i].compare_exchange_strong(closed, k_taken)) {
      while (i-- > first) {
        m_gates[i].store(k_closed);
      }
      return false;
    }
  }
  return true;
}

void Gates::open(std::size_t first, std::size_t count) noexcept {
  for (std::size_t i = first; i < first + count; ++i) {
    m_gates[i].store(k_open, std::memory_order_release);
  }
  for (const Fd& bell : m_bells) {
    constexpr std::uint64_t k_ring = 1;
    // Cannot fail but by a count of 2^64 rings.
    static_cast<void>(::write(bell.get(), &k_ring, sizeof k_ring));
  }
}

std::unique_ptr<Delays> Gates::delays_of(const LaneProgram& program) {
  Fd bell(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  if (!bell) {
    fail_errno("eventfd", errno);
  }
  m_bells.push_back(std::move(bell));
  return std::make_unique<LaneDelays>(*this, program, m_bells.back().get());
}

} // namespace reckon
