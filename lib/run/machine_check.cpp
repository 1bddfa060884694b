// SPDX-License-Identifier: Apache-2.0
#include "run/machine_check.hpp"

#include "core/clock.hpp"
#include "documents/cells.hpp"
#include "kernels/reduce.hpp"
#include "launch/peer_fields.hpp"
#include "movers/mover.hpp"

#include <array>
#include <cstddef>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

namespace reckon {
namespace {

constexpr std::size_t k_piece = std::size_t{1} << 20U;
constexpr std::size_t k_pieces = 32; ///< of each of two arrays: together more than caches keep
constexpr std::int64_t k_time_ns = 60'000'000;

/// What a rank found.
struct Found {
  double bytes_per_second = 0;
  [[nodiscard]] PeerFields fields() { return {{"bytes_per_second", &bytes_per_second}}; }
};

/// Calls op(i) for piece after piece until the time is over; returns calls a second.
template <class Op>
double rate_of(const Op& op) {
  for (std::size_t i = 0; i < k_pieces; ++i) { // the first touch of a page is slow
    op(i);
  }
  const std::int64_t begin = monotonic_ns();
  std::int64_t now = begin;
  std::size_t calls = 0;
  for (; now - begin < k_time_ns; now = monotonic_ns()) {
    op(calls++ % k_pieces);
  }
  return static_cast<double>(calls) / (static_cast<double>(now - begin) * 1e-9);
}

double sum_of(const std::vector<Found>& all) {
  double sum = 0;
  for (const Found& found : all) {
    sum += found.bytes_per_second;
  }
  return sum;
}

} // namespace

MachineNow measure_machine(Rendezvous& rendezvous, const MachineRates& rates, Seconds limit) {
  const bool first = rendezvous.rank() == 0;
  const std::unique_ptr<Mover> mover = make_mover("host"); // memory as ranks share it
  const auto piece = [](std::span<std::byte> array, std::size_t i) {
    return array.data() + i * k_piece;
  };
  const std::span<std::byte> a = mover->allocate(k_pieces * k_piece),
                             b = mover->allocate(k_pieces * k_piece);
  constexpr auto k_bytes = static_cast<double>(k_piece);
  Found copy, sum;
  if (first) {
    copy.bytes_per_second =
        k_bytes * rate_of([&](std::size_t i) { std::memcpy(piece(b, i), piece(a, i), k_piece); });
  }
  MachineNow now;
  now.copy_bytes_per_second = sum_of(gather(rendezvous, copy, limit));
  if (first || rates.threads > 1) {
    const bool in_place = rates.sums == k_sum_in_place;
    const double sums = rate_of([&](std::size_t i) {
      const std::array<void*, 2> operands{piece(a, i), piece(b, i)};
      if (in_place) {
        sum_in_place(DType::fp32, operands, k_piece / sizeof(float));
      } else {
        const std::array<const void*, 2> sources{operands[0], operands[1]};
        sum_into(DType::fp32, operands[0], sources, k_piece / sizeof(float));
      }
    });
    // As the cells count: what is read and written, and what arrives.
    sum.bytes_per_second = sums * (in_place ? 4 * k_bytes : k_bytes);
  }
  now.sum_bytes_per_second = sum_of(gather(rendezvous, sum, limit));
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
