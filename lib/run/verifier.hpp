// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "run/replica.hpp"
#include "run/values.hpp"

#include <cstdint>
#include <memory>
#include <optional>

namespace reckon {

/// Known values for one rank's memory: its start and the expected result of an iteration. They
/// depend on the schedule's outcome alone.
class Verifier {
public:
  Verifier() = default;
  Verifier(const Verifier&) = delete;
  Verifier& operator=(const Verifier&) = delete;
  virtual ~Verifier() = default;

  /// Before the first iteration: fills what is kept from one iteration to the next.
  virtual void begin(Views /*views*/) const {}
  /// Before each iteration: fills this rank's gradient, if it is a worker. Iterations are 0, 1, 2,
  /// ...
  virtual void fill(Views views, std::uint32_t iteration) const = 0;
  /// After each iteration, once.
  [[nodiscard]] virtual RankVerification check(Views views, std::uint32_t iteration) = 0;
  /// The expected parameters; null where the schedule makes no optimizer steps.
  [[nodiscard]] virtual ParameterReplica* replica() { return nullptr; }
  /// The allowed error of sums; absent where they are exact.
  [[nodiscard]] virtual std::optional<double> error_bound() const { return std::nullopt; }
};

/// The number of a rank among the schedule's workers; absent: it is no worker.
[[nodiscard]] std::optional<std::uint32_t> worker_index(const Schedule& schedule, std::size_t rank);

/// The verifier of one rank of a schedule, which must outlive it. Throws Error{input} where no
/// known values exist for this many asynchronous steps.
[[nodiscard]] std::unique_ptr<Verifier> make_verifier(const Schedule& schedule, std::size_t rank);

} // namespace reckon
