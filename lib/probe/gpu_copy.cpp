// SPDX-License-Identifier: Apache-2.0
#include "probe/gpu_copy.hpp"

#include "core/error.hpp"

#include <string>

namespace reckon {

std::size_t GpuCopy::driver() const {
  const bool source = from.is_gpu && (!to.is_gpu || by_source);
  return source ? from.index : to.index;
}

GpuTimer::Flow flow_of(GpuPlaces& places, const GpuCopy& copy) {
  GpuLibrary& library = places.library();
  const GpuPlace& driver = places.gpus()[copy.driver()];
  std::byte* const to = places.target(copy.to) + copy.offset;
  const std::byte* const from = places.source(copy.from) + copy.offset;
  const std::uint64_t bytes = copy.bytes;
  if (copy.engine == GpuCopy::Engine::sm) {
    return {driver.device, [&library, to, from, bytes, blocks = copy.blocks](GpuStream stream) {
              return library.copy_sm(to, from, bytes, blocks, stream);
            }};
  }
  const bool two_gpus = copy.from.is_gpu && copy.to.is_gpu && copy.from.index != copy.to.index;
  if (two_gpus) {
    const int to_device = places.gpus()[copy.to.index].device;
    const int from_device = places.gpus()[copy.from.index].device;
    return {driver.device, [=, &library](GpuStream stream) {
              return library.copy_peer(to, to_device, from, from_device, bytes, stream);
            }};
  }
  return {driver.device,
          [=, &library](GpuStream stream) { return library.copy(to, from, bytes, stream); }};
}

void settle_access(GpuPlaces& places, const GpuCopy& copy) {
  if (!copy.from.is_gpu || !copy.to.is_gpu || copy.from.index == copy.to.index) {
    return;
  }
  const bool on = copy.engine != GpuCopy::Engine::staged;
  std::string why_not;
  if (on && !places.peers(copy.from.index, copy.to.index, &why_not)) {
    fail(ErrorKind::unavailable, why_not);
  }
  const std::size_t driver = copy.driver();
  const std::size_t other = driver == copy.from.index ? copy.to.index : copy.from.index;
  places.set_peer_access(driver, other, on);
  if (!on) { // nor the other way: who drives is the library's choice then
    places.set_peer_access(other, driver, false);
  }
}

} // namespace reckon
