// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/workload.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace reckon {

/// Parts of a workload text of ASTRA-sim that our workloads cannot express.
struct LeftOut {
  std::size_t layers = 0;             ///< with collectives of activations
  std::uint64_t collective_bytes = 0; ///< of activations and their gradients, except all-to-all
  std::size_t later = 0;              ///< all-to-all awaited by a later layer than in ASTRA-sim
  std::size_t unawaited = 0;          ///< all-to-all of layers without a later layer
  std::uint64_t update_cycles = 0;    ///< delays after weight gradients' collectives
};

struct AstraWorkload {
  Workload workload;
  LeftOut left_out;
};

/// Whether the first line begins with a parallelism of ASTRA-sim 1.0.
[[nodiscard]] bool is_astra_workload(std::string_view text);

/// A workload text of ASTRA-sim 1.0: a line with the parallelism, one with the number of layers,
/// then a line for each layer: name, reserved, and for the forward pass, the input gradient and the
/// weight gradient the compute time in cycles of 1 ns, the collective and its bytes; then the
/// update's delay; in HYBRID_CUSTOMIZED the layer's own parallelism, too. Layers are in forward
/// order, and their computations and exchanges become the workload's `layers` if given. Bytes of
/// all-reduced weight gradients become tensors of fp32, the last layer's first; all-to-all of the
/// forward pass is `all_to_all`; the backward pass's time is that of input and weight gradients.
/// Throws Error{input} as "FILE:LINE: problem; remedy".
[[nodiscard]] AstraWorkload read_astra_workload(std::string_view text, const std::string& file);

} // namespace reckon
