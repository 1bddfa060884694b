// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace reckon {

struct Tensor;

/// What one pass computes in one layer: how long it took, or what it asks of an endpoint.
struct Computation {
  std::optional<double> seconds; ///< as measured, with the workload's batch; the others are 0
  std::uint64_t flops_per_sample = 0;
  std::uint64_t elements_per_sample = 0; ///< read from memory and written to it: activations
  std::uint64_t elements = 0;            ///< the same, whatever the batch: weights
  [[nodiscard]] bool nothing() const { return *this == Computation{}; }
  bool operator==(const Computation&) const = default;
};

/// What a layer's output goes through before another layer can use it: each worker's part of it to
/// each other worker, and its gradient back.
struct Exchange {
  std::uint64_t elements_per_sample = 0; ///< of a worker's own samples
  std::string before;                    ///< the layer that needs it, a later one
  bool operator==(const Exchange&) const = default;
};

struct Layer {
  std::string name;
  std::vector<std::string> tensors; ///< whose gradients it computes; the workload's, by name
  Computation forward, input_gradient, weight_gradient;
  std::optional<Exchange> exchange;
  bool operator==(const Layer&) const = default;
};

} // namespace reckon
