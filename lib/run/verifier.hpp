// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "run/replica.hpp"
#include "run/values.hpp"

#include <cstdint>
#include <memory>
#include <optional>

namespace reckon {

/// Known values for one rank's memory: what it starts from and what an iteration must make of it.
/// Which, is a matter of the schedule's outcome alone.
class Verifier {
public:
  Verifier() = default;
  Verifier(const Verifier&) = delete;
  Verifier& operator=(const Verifier&) = delete;
  virtual ~Verifier() = default;

  /// Before the first iteration: what is kept from one iteration to the next.
  virtual void begin(Views /*views*/) const {}
  /// Before each iteration: this rank's gradient, if it is a worker. Iterations are 0, 1, 2, ...
  virtual void fill(Views views, std::uint32_t iteration) const = 0;
  /// After each iteration, once.
  [[nodiscard]] virtual RankVerification check(Views views, std::uint32_t iteration) = 0;
  /// What the parameters must be; null where the schedule makes no optimizer steps.
  [[nodiscard]] virtual ParameterReplica* replica() { return nullptr; }
  /// How far off sums may be; nothing where they are exact.
  [[nodiscard]] virtual std::optional<double> error_bound() const { return std::nullopt; }
};

/// The number of a rank among the schedule's workers; nothing: it is none.
[[nodiscard]] std::optional<std::uint32_t> worker_index(const Schedule& schedule, std::size_t rank);

/// The verifier of one rank of a schedule, which must outlive it. Throws Error{input} where no
/// known values exist for so many asynchronous steps.
[[nodiscard]] std::unique_ptr<Verifier> make_verifier(const Schedule& schedule, std::size_t rank);

} // namespace reckon
