// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda_reduce.hpp"

#include <algorithm>

namespace reckon {
namespace {
constexpr std::size_t k_vector = 16;
}

VectorSplit split_for_vectors(const void* destination, std::span<const void* const> sources,
                              std::size_t elements, std::size_t element_bytes) {
  const auto off = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p) % k_vector; };
  const std::size_t ahead = (k_vector - off(destination)) % k_vector;
  const bool together = std::all_of(sources.begin(), sources.end(), [&](const void* source) {
    return off(source) == off(destination);
  });
  const std::size_t head = ahead / element_bytes;
  if (!together || ahead % element_bytes != 0 || head >= elements) {
    return {elements, 0, 0};
  }
  const std::size_t per_vector = k_vector / element_bytes;
  const std::size_t vectors = (elements - head) / per_vector;
  return {head, vectors, elements - head - vectors * per_vector};
}

} // namespace reckon
