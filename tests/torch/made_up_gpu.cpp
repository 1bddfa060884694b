// SPDX-License-Identifier: Apache-2.0
// The library with a made-up GPU, whose memory is the processor's: PyTorch's tensors there count as
// the GPU's.
#include "support/fake_gpus.hpp"

namespace {

struct MadeUp {
  MadeUp() {
    gpus.capacity = [](const std::string&) { return 1e12; }; // in time, one after another
    reckon::set_gpu_library(&gpus);
  }
  reckon::support::FakeGpus gpus{1};
  reckon::GpuStream stream = gpus.make_stream(0);
};
MadeUp made_up; // NOLINT(cert-err58-cpp): a test's

} // namespace

/// The program's stream, in which PyTorch has done its work at once.
extern "C" void* made_up_stream() {
  return made_up.stream.handle;
}

/// Waits for that stream. Returns 0, or CUDA's number of what is wrong.
extern "C" int made_up_synchronize() {
  return made_up.gpus.synchronize(made_up.stream);
}
