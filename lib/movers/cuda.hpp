// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "movers/gpu.hpp"
#include "movers/mover.hpp"

#include <memory>

namespace reckon {

/// Moves bytes between the memories of a machine's GPUs, one process a rank, and sums them there.
///
/// A rank's buffers are in the memory of one GPU; ranks may share one. Or, with
/// `place.host_memory`, in host memory that is registered with CUDA, so that the GPUs of other
/// ranks write to it directly: a memory device of CPU-assisted aggregation. Peers' buffers are
/// opened once, in connect(): by CUDA's inter-process handles, with peer access where the GPUs have
/// it; where they have none the runtime copies by way of the host.
///
/// A lane has a stream for each peer and one for its local ops. A write is a copy by the copy
/// engine on the sender's GPU (the receiver's, from host memory); when its event has happened, the
/// tag goes through the mailbox that transport host uses, too. engine() of a GPU's lane launches
/// kernels: copies and sums; an optimizer's step and whole numbers fail, and say so. While work is
/// under way, wait() naps for microseconds; it does not spin.
///
/// Peers run under the same user, in the same process-id namespace, and see the same GPUs: none may
/// hide from another by CUDA_VISIBLE_DEVICES. `gpus` must outlive the mover.
[[nodiscard]] std::unique_ptr<Mover> make_cuda_mover(GpuLibrary& gpus, const MoverPlace& place);

} // namespace reckon
