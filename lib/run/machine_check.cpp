// SPDX-License-Identifier: Apache-2.0
#include "run/machine_check.hpp"

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/processors.hpp"
#include "core/threads.hpp"
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
constexpr std::int64_t k_time_ns = 25'000'000;
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
  start_thread("a measurement", [&] {
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
  constexpr std::size_t k_fewest = 8;
  const bool takes_part = rendezvous.rank() < rates.threads;
  const std::size_t pieces =
      takes_part ? std::max(k_fewest, k_pieces / static_cast<std::size_t>(rates.threads)) : 0;
  const bool in_place = rates.sums == k_sum_in_place;
  const std::size_t bytes = 2 * pieces * k_piece;
  const OwnMemory own(in_place ? 0 : bytes);
  const std::unique_ptr<Mover> mover = make_mover("host"); // memory as ranks share it
  const std::span<std::byte> memory = in_place ? mover->allocate(bytes) : own.bytes();
  std::memset(memory.data(), 0, bytes); // a page's first touch is slow
  const auto operands = [&](std::size_t i) {
    return std::array<void*, 2>{memory.data() + i * k_piece,
                                memory.data() + (pieces + i) * k_piece};
  };
  constexpr std::size_t k_elements = k_piece / sizeof(float);
  const auto copies = [&](Stores stores) {
    return rate_of(cpu, pieces, [&](std::size_t i) {
      const std::array<const void*, 1> source{operands(i)[0]};
      sum_into(DType::fp32, operands(i)[1], source, k_elements, stores);
    });
  };
  const auto sums = [&](std::size_t i) {
    const std::array<void*, 2> both = operands(i);
    const std::array<const void*, 2> sources{both[0], both[1]};
    in_place ? sum_in_place(DType::fp32, both, k_elements)
             : sum_into(DType::fp32, both[0], sources, k_elements);
  };
  // Of all ranks together; nobody begins before all are there.
  const auto together = [&](const auto& calls_per_second, double bytes_of_call) {
    rendezvous.all_gather("", limit);
    Found found{takes_part ? bytes_of_call * calls_per_second() : 0};
    return sum_of(gather(rendezvous, found, limit));
  };
  constexpr auto k_bytes = static_cast<double>(k_piece);
  MachineNow now; // as the cells count
  for (const Stores stores : {Stores::cached, Stores::streaming}) {
    now.copy_bytes_per_second =
        std::max(now.copy_bytes_per_second, together([&] { return copies(stores); }, k_bytes));
  }
  now.sum_bytes_per_second =
      together([&] { return rate_of(cpu, pieces, sums); }, in_place ? 4 * k_bytes : k_bytes);
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
