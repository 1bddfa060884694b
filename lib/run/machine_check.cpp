// SPDX-License-Identifier: Apache-2.0
#include "run/machine_check.hpp"

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/processors.hpp"
#include "documents/cells.hpp"
#include "kernels/reduce.hpp"
#include "launch/peer_fields.hpp"
#include "movers/mover.hpp"
#include "stats/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <sys/mman.h>
#include <system_error>
#include <thread>
#include <vector>

namespace reckon {
namespace {

constexpr std::size_t k_piece = std::size_t{1} << 20U;
constexpr std::size_t k_pieces = 128; ///< of each of two arrays: together more than caches keep
/// The median of three such times counts: a disturbance of one says nothing.
constexpr std::int64_t k_time_ns = 30'000'000;
/// Before and after these times, so that all ranks are at work in all of them.
constexpr std::int64_t k_margin_ns = 10'000'000;

/// Memory of this process in large pages where the system has them, as the profile's copies and
/// sums had it.
class OwnMemory {
public:
  explicit OwnMemory(std::size_t bytes) : m_bytes(bytes) {
    if (bytes == 0) {
      return;
    }
    m_at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m_at == MAP_FAILED) {
      fail(ErrorKind::unavailable, fmt::format("{} to measure the machine with: {}", bytes,
                                               std::generic_category().message(errno)));
    }
    static_cast<void>(::madvise(m_at, bytes, MADV_HUGEPAGE)); // without, pages are small
  }
  OwnMemory(const OwnMemory&) = delete;
  OwnMemory& operator=(const OwnMemory&) = delete;
  ~OwnMemory() {
    if (m_bytes > 0) {
      ::munmap(m_at, m_bytes);
    }
  }
  [[nodiscard]] std::span<std::byte> bytes() const {
    return {static_cast<std::byte*>(m_at), m_bytes};
  }

private:
  void* m_at = nullptr;
  std::size_t m_bytes;
};

/// What a rank found.
struct Found {
  double bytes_per_second = 0;
  [[nodiscard]] PeerFields fields() { return {{"bytes_per_second", &bytes_per_second}}; }
};

/// Calls op(i) for piece after piece until the times are over, margins included, on a processor as
/// a lane does; returns calls a second.
template <class Op>
double rate_of(int cpu, std::size_t pieces, const Op& op) {
  std::size_t piece = 0;
  const auto calls_within = [&](std::int64_t time_ns) {
    const std::int64_t begin = monotonic_ns();
    std::size_t calls = 0;
    std::int64_t now = begin;
    for (; now - begin < time_ns; now = monotonic_ns()) {
      op(piece++ % pieces);
      ++calls;
    }
    return static_cast<double>(calls) / (static_cast<double>(now - begin) * 1e-9);
  };
  std::vector<double> rates(3);
  std::jthread([&] {
    static_cast<void>(cpu >= 0 && bind_this_thread(cpu)); // else where the system puts it
    calls_within(k_margin_ns);
    std::ranges::generate(rates, [&] { return calls_within(k_time_ns); });
    calls_within(k_margin_ns);
  }).join();
  return median(rates);
}

double sum_of(const std::vector<Found>& all) {
  double sum = 0;
  for (const Found& found : all) {
    sum += found.bytes_per_second;
  }
  return sum;
}

} // namespace

MachineNow measure_machine(Rendezvous& rendezvous, const MachineRates& rates, int cpu,
                           Seconds limit) {
  const bool first = rendezvous.rank() == 0;
  const bool sums = rendezvous.rank() < rates.threads;
  // Rank 0 copies alone; those that sum share the caches.
  constexpr std::size_t k_fewest = 8;
  const std::size_t pieces =
      first  ? k_pieces
      : sums ? std::max(k_fewest, k_pieces / static_cast<std::size_t>(rates.threads))
             : 0;
  const bool in_place = rates.sums == k_sum_in_place;
  const OwnMemory own(first || !in_place ? 2 * pieces * k_piece : 0);
  const std::unique_ptr<Mover> mover = make_mover("host"); // memory as ranks share it
  const std::span<std::byte> shared = mover->allocate(in_place && sums ? 2 * pieces * k_piece : 0);
  for (const std::span<std::byte> memory : {own.bytes(), shared}) { // a page's first touch is slow
    std::memset(memory.data(), 0, memory.size());
  }
  const auto piece = [pieces](std::span<std::byte> memory, std::size_t array, std::size_t i) {
    return memory.data() + (array * pieces + i) * k_piece;
  };
  rendezvous.all_gather("", limit); // nobody is at that any more
  constexpr auto k_bytes = static_cast<double>(k_piece);
  Found copy, sum;
  if (first) {
    copy.bytes_per_second =
        k_bytes * rate_of(cpu, pieces, [&](std::size_t i) {
          std::memcpy(piece(own.bytes(), 1, i), piece(own.bytes(), 0, i), k_piece);
        });
  }
  MachineNow now;
  now.copy_bytes_per_second = sum_of(gather(rendezvous, copy, limit));
  if (sums) {
    const std::span<std::byte> memory = in_place ? shared : own.bytes();
    const double calls = rate_of(cpu, pieces, [&](std::size_t i) {
      const std::array<void*, 2> operands{piece(memory, 0, i), piece(memory, 1, i)};
      if (in_place) {
        sum_in_place(DType::fp32, operands, k_piece / sizeof(float));
      } else {
        const std::array<const void*, 2> sources{operands[0], operands[1]};
        sum_into(DType::fp32, operands[0], sources, k_piece / sizeof(float));
      }
    });
    // As the cells count: what is read and written, and what arrives.
    sum.bytes_per_second = calls * (in_place ? 4 * k_bytes : k_bytes);
  }
  now.sum_bytes_per_second = sum_of(gather(rendezvous, sum, limit));
  return now;
}

MachineNow mean_of(const MachineNow& before, const MachineNow& after) {
  const auto mean = [](double a, double b) { return 2 / (1 / a + 1 / b); };
  MachineNow now;
  now.copy_bytes_per_second = mean(before.copy_bytes_per_second, after.copy_bytes_per_second);
  now.sum_bytes_per_second = mean(before.sum_bytes_per_second, after.sum_bytes_per_second);
  return now;
}

void compare_with_machine(MachineNow& now, const MachineRates& rates, const Prediction& prediction,
                          double measured_seconds) {
  const double sums = rates.sum_bytes_per_second / now.sum_bytes_per_second;
  const double copies = rates.copy_bytes_per_second / now.copy_bytes_per_second;
  now.profile_sum_bytes_per_second = rates.sum_bytes_per_second;
  now.profile_copy_bytes_per_second = rates.copy_bytes_per_second;
  now.predicted_seconds = prediction.mid_seconds;
  for (const Term& term : prediction.terms) {
    const double factor = term.name == "reduction" || term.name == "update" ? sums
                          : term.name == "transport"                        ? copies
                                                                            : 1;
    now.predicted_seconds += term.seconds * (factor - 1);
  }
  now.error = now.predicted_seconds > 0 ? measured_seconds / now.predicted_seconds - 1 : 0;
}

} // namespace reckon
