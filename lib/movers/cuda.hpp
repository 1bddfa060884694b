// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "movers/gpu.hpp"
#include "movers/mover.hpp"

#include <memory>

namespace reckon {

/// Moves bytes between the memories of a machine's GPUs, one process a rank, and sums them there.
///
/// A rank's buffers are in the memory of one GPU; ranks may share one. Or, with
/// `place.host_memory`, in host memory, which the ranks on GPUs register with CUDA: a memory device
/// of CPU-assisted aggregation, whose process uses no GPU. Peers' buffers are opened once, in
/// connect(), by CUDA's inter-process handles, with peer access where the GPUs have it; otherwise
/// the runtime copies through the host.
///
/// Only the ranks on a GPU give it work, since processes take turns on a GPU: two streams for each
/// peer, two more for each peer in host memory whose writes it makes, and two for local ops. A
/// write is a copy by the copy engine of the sender's GPU; from host memory the sender tells the
/// receiver what to copy. When it is over, the tag goes through the mailbox that transport host
/// uses, too. engine() of a GPU's lane launches kernels: copies and sums; an optimizer's step and
/// whole numbers fail with an error. While work is under way, wait() naps for microseconds; it does
/// not spin. The tag 0xffffffff is the mover's own.
///
/// Peers run under the same user, in the same process-id namespace, and those on GPUs see the same
/// GPUs: CUDA_VISIBLE_DEVICES must not hide one from another. `gpus` must outlive the mover; it is
/// null if and only if `place.host_memory` is set.
[[nodiscard]] std::unique_ptr<Mover> make_cuda_mover(GpuLibrary* gpus, const MoverPlace& place);

} // namespace reckon
