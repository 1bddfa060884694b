// SPDX-License-Identifier: Apache-2.0
#include "movers/gpu.hpp"

namespace reckon {

GpuLibrary* gpu_library_here(std::string* why_not) {
  if (why_not != nullptr) {
    *why_not = "this build has no CUDA; build with -DRECKON_WITH_CUDA=ON";
  }
  return nullptr;
}

} // namespace reckon
