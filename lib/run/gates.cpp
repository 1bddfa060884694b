// SPDX-License-Identifier: Apache-2.0
#include "run/gates.hpp"

#include "core/error.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <sys/eventfd.h>
#include <unistd.h>
#include <utility>

namespace reckon {

/// One lane's view of the gates.
class Gates::LaneDelays final : public Delays {
public:
  LaneDelays(Gates& gates, const LaneProgram& program, int bell)
      : m_gates(gates), m_program(program), m_after(program.ops().size()), m_bell(bell) {
    std::vector<bool> seen(gates.m_missing.size());
    std::size_t delays = 0;
    for (std::size_t i = 0; i < program.ops().size(); ++i) {
      const Op& op = program.ops()[i];
      if (op.kind == OpKind::delay) {
        m_after[i] = seen.at(op.part);
        seen[op.part] = true;
        ++delays;
      }
    }
    m_under_way.reserve(delays);
  }

  void reset() noexcept override { m_under_way.clear(); }
  void start(std::uint32_t op, std::int64_t /*since_ns*/) noexcept override {
    if (m_after[op]) {
      m_gates.summed(m_program.ops()[op].part);
    }
    m_under_way.push_back(op); // capacity was reserved
  }
  [[nodiscard]] std::optional<Over> next_over(std::int64_t now_ns) noexcept override {
    const auto it = std::find_if(m_under_way.begin(), m_under_way.end(),
                                 [this](std::uint32_t op) { return is_over(op); });
    if (it == m_under_way.end()) {
      return std::nullopt;
    }
    const Over over{*it, now_ns};
    if (!m_after[over.op]) {
      m_gates.m_passed_ns.store(now_ns, std::memory_order_relaxed);
    }
    m_under_way.erase(it);
    return over;
  }
  /// What is open and has not arrived is looked at again soon: no bell says when it has.
  [[nodiscard]] std::optional<std::int64_t>
  ask_again_ns(std::int64_t now_ns) const noexcept override {
    if (m_under_way.empty()) {
      return std::nullopt;
    }
    constexpr std::int64_t k_longest_ns = 20'000'000; // the bell ends it earlier
    constexpr std::int64_t k_nap_ns = 20'000;
    std::int64_t wait_ns = k_longest_ns;
    for (const std::uint32_t op : m_under_way) {
      wait_ns = is_over(op) ? 0 : std::min(wait_ns, is_open(op) ? k_nap_ns : k_longest_ns);
    }
    return now_ns + wait_ns;
  }
  /// Stills the bell first: what opens a gate after that rings it again, what was open before is
  /// seen by the look that follows.
  [[nodiscard]] int bell() noexcept override {
    std::uint64_t rings = 0;
    static_cast<void>(::read(m_bell, &rings, sizeof rings)); // nothing to read: it is still
    return m_bell;
  }

private:
  [[nodiscard]] bool is_open(std::uint32_t op) const noexcept {
    // With the release in open(): the gradient is there, or on its way.
    return m_gates.m_missing[m_program.ops()[op].part].load(std::memory_order_acquire) == 0;
  }
  [[nodiscard]] bool is_over(std::uint32_t op) const noexcept {
    return m_after[op] || (is_open(op) && (m_gates.m_elsewhere == nullptr ||
                                           m_gates.m_elsewhere->arrived(m_program.ops()[op].part)));
  }

  Gates& m_gates;
  const LaneProgram& m_program;
  std::vector<bool> m_after; ///< by op: a part's second delay
  int m_bell;
  std::vector<std::uint32_t> m_under_way; ///< ops
};

Gates::Gates(std::vector<std::vector<std::uint32_t>> parts_of)
    : m_parts_of(std::move(parts_of)), m_taken(m_parts_of.size()) {
  for (const std::vector<std::uint32_t>& parts : m_parts_of) {
    for (const std::uint32_t p : parts) {
      m_tensors_in.resize(std::max<std::size_t>(m_tensors_in.size(), p + std::size_t{1}));
      ++m_tensors_in[p];
    }
  }
  m_missing = std::vector<std::atomic<std::uint32_t>>(m_tensors_in.size());
  m_summed = std::vector<std::atomic<bool>>(m_tensors_in.size());
  close();
}

void Gates::close() noexcept {
  for (std::size_t p = 0; p < m_missing.size(); ++p) {
    m_missing[p].store(m_tensors_in[p], std::memory_order_relaxed); // lanes start later, by a lock
    m_summed[p].store(false, std::memory_order_relaxed);
  }
  for (std::atomic<bool>& taken : m_taken) {
    taken.store(false, std::memory_order_relaxed);
  }
  m_closed = size();
}

bool Gates::take(std::size_t first, std::size_t count) noexcept {
  for (std::size_t i = first; i < first + count; ++i) {
    if (m_taken[i].exchange(true)) {
      while (i-- > first) {
        m_taken[i].store(false);
      }
      return false;
    }
  }
  return true;
}

void Gates::open(std::size_t first, std::size_t count) noexcept {
  bool opened = false;
  for (std::size_t i = first; i < first + count; ++i) {
    for (const std::uint32_t p : m_parts_of[i]) {
      opened = m_missing[p].fetch_sub(1, std::memory_order_acq_rel) == 1 || opened;
    }
  }
  m_closed -= count;
  for (std::size_t i = 0; opened && i < m_bells.size(); ++i) {
    constexpr std::uint64_t k_ring = 1;
    // Cannot fail but by a count of 2^64 rings.
    static_cast<void>(::write(m_bells[i].get(), &k_ring, sizeof k_ring));
  }
}

void Gates::summed(std::uint32_t part) noexcept {
  if (m_elsewhere != nullptr) {
    m_elsewhere->summed(part);
  }
  m_summed[part] = true;
  if (m_waiting > 0) { // whoever begins to wait later looks first
    { const std::lock_guard lock(m_mutex); }
    m_changed.notify_all();
  }
}

bool Gates::summed_within(std::size_t first, std::size_t count, std::chrono::nanoseconds limit) {
  const auto all = [&] {
    return std::all_of(m_parts_of.begin() + static_cast<std::ptrdiff_t>(first),
                       m_parts_of.begin() + static_cast<std::ptrdiff_t>(first + count),
                       [&](const std::vector<std::uint32_t>& parts) {
                         return std::ranges::all_of(
                             parts, [&](std::uint32_t p) { return m_summed[p].load(); });
                       });
  };
  if (all()) {
    return true;
  }
  ++m_waiting;
  std::unique_lock lock(m_mutex);
  const bool here = m_changed.wait_for(lock, limit, all);
  --m_waiting;
  return here;
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
