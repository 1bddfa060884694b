// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace reckon {

struct Tensor;

/// The computation of one pass in one layer: its measured time, or its demands on an endpoint.
struct Computation {
  std::optional<double> seconds; ///< as measured, with the workload's batch; the others are 0
  std::uint64_t flops_per_sample = 0;
  std::uint64_t elements_per_sample = 0; ///< read from memory and written to it: activations
  std::uint64_t elements = 0;            ///< the same in each batch of any size: weights
  [[nodiscard]] bool nothing() const { return *this == Computation{}; }
  bool operator==(const Computation&) const = default;
};

/// The all-to-all between a layer and a later one: each worker's part of the output to each other
/// worker, and its gradient back.
struct Exchange {
  std::uint64_t elements_per_sample = 0; ///< of a worker's own samples
  std::string before;                    ///< the later layer that needs it
  bool operator==(const Exchange&) const = default;
};

struct Layer {
  std::string name;
  std::vector<std::string> tensors; ///< tensors of its gradients; the workload's, by name
  Computation forward, input_gradient, weight_gradient;
  std::optional<Exchange> exchange;
  bool operator==(const Layer&) const = default;
};

} // namespace reckon
