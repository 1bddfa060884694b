// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/workload.hpp"

#include <string>
#include <string_view>

namespace reckon {

/// The model that a trace of torch.profiler shows: its gradients in the order in which the backward
/// pass made them, and the layers that they belong to, with medians over the steps of their times.
/// A layer is a call of the forward pass whose backward pass made gradients; its forward time goes
/// to the next layer's call, its backward time begins where the gradient before was there. On a
/// GPU they are the times of the kernels that were launched meanwhile, without NCCL's. In a trace
/// without sizes (record_shapes=True) each bucket of gradients that is summed over the ranks is a
/// tensor and a layer. Throws Error{input} where there are no buckets either, or no steps
/// (profiler.step()).
[[nodiscard]] Workload workload_from_trace(std::string_view text, const std::string& file);

} // namespace reckon
