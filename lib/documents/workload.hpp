// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/dtype.hpp"
#include "documents/layers.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

struct Tensor {
  std::string name;
  std::uint64_t elements = 0;
  DType dtype = DType::fp32;
  [[nodiscard]] std::uint64_t bytes() const { return elements * size_of(dtype); }
  bool operator==(const Tensor&) const = default;
};

/// A model's gradients, in the order in which the backward pass produces them.
struct Workload {
  std::string name;
  std::string description;
  std::string provenance; ///< origin of the list
  std::vector<Tensor> tensors;
  std::vector<Tensor> all_to_all; ///< model-parallel embeddings: exchanged, not reduced
  std::optional<double> forward_seconds, backward_seconds;
  std::optional<std::uint64_t> batch; ///< samples of a worker in an iteration
  /// Processors that a worker's passes keep busy: they ran on a CPU. Absent: unknown, or on a GPU.
  std::optional<std::uint64_t> threads;
  std::vector<Layer> layers; ///< in forward order; may be empty

  [[nodiscard]] std::uint64_t bytes() const; ///< of `tensors`
  bool operator==(const Workload&) const = default;
};

/// CSV with a header line naming the columns name, elements, dtype (dtype may be absent: fp32), in
/// gradient order. Named after the file. Throws Error{input} with file and line.
[[nodiscard]] Workload workload_from_csv(std::string_view text, const std::string& file);
/// Whether its first line is such a header.
[[nodiscard]] bool is_workload_table(std::string_view text);

/// The workload with gradients of fp32 as elements of `wire`, as they are sent. Throws Error{input}
/// where some are of another type.
[[nodiscard]] Workload as_sent(Workload workload, DType wire);

/// The layout of the gradients in one rank's buffer: tensors one after another, a new 64-byte
/// boundary wherever the element type changes.
struct GradientLayout {
  std::vector<std::uint64_t> tensor_offset_bytes;
  std::vector<DTypeRun> runs;
  std::uint64_t total_bytes = 0; ///< buffer size with gaps
  bool operator==(const GradientLayout&) const = default;
};
[[nodiscard]] GradientLayout layout_of(const Workload& workload);

} // namespace reckon
