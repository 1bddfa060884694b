// SPDX-License-Identifier: Apache-2.0
// What probe's figures are compared with, by CUDA alone and nothing of ours: copies of 1 GiB
// between pinned host memory and GPU 0 with cudaMemcpyAsync, each between two events. Prints the
// median of ten in bytes per second, one line for each direction. Exit status 3 without a GPU.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <vector>

namespace {

constexpr std::size_t k_bytes = std::size_t{1} << 30U;
constexpr int k_copies = 10;

/// True when all is well; else says what is not.
bool good(cudaError_t error, const char* attempt) {
  if (error != cudaSuccess) {
    std::fprintf(stderr, "%s: %s\n", attempt, cudaGetErrorString(error));
  }
  return error == cudaSuccess;
}

bool measure(const char* name, void* to, const void* from, cudaStream_t stream, cudaEvent_t begin,
             cudaEvent_t end) {
  std::vector<double> rates;
  for (int i = 0; i <= k_copies; ++i) {
    float milliseconds = 0;
    if (!good(cudaEventRecord(begin, stream), "cudaEventRecord") ||
        !good(cudaMemcpyAsync(to, from, k_bytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync") ||
        !good(cudaEventRecord(end, stream), "cudaEventRecord") ||
        !good(cudaEventSynchronize(end), "cudaEventSynchronize") ||
        !good(cudaEventElapsedTime(&milliseconds, begin, end), "cudaEventElapsedTime")) {
      return false;
    }
    if (i > 0) { // the first one makes things ready
      rates.push_back(static_cast<double>(k_bytes) / (static_cast<double>(milliseconds) * 1e-3));
    }
  }
  std::sort(rates.begin(), rates.end());
  std::printf("%s %.6g\n", name, (rates[k_copies / 2 - 1] + rates[k_copies / 2]) / 2);
  return true;
}

} // namespace

int main() {
  int count = 0;
  if (!good(cudaGetDeviceCount(&count), "cudaGetDeviceCount") || count == 0) {
    return 3;
  }
  void* host = nullptr;
  void* device = nullptr;
  cudaStream_t stream = nullptr;
  cudaEvent_t begin = nullptr;
  cudaEvent_t end = nullptr;
  const bool ready = good(cudaSetDevice(0), "cudaSetDevice") &&
                     good(cudaMallocHost(&host, k_bytes), "cudaMallocHost") &&
                     good(cudaMalloc(&device, k_bytes), "cudaMalloc") &&
                     good(cudaStreamCreate(&stream), "cudaStreamCreate") &&
                     good(cudaEventCreate(&begin), "cudaEventCreate") &&
                     good(cudaEventCreate(&end), "cudaEventCreate");
  return ready && measure("host_to_device_memcpy_ce", device, host, stream, begin, end) &&
                 measure("device_to_host_memcpy_ce", host, device, stream, begin, end)
             ? 0
             : 4;
}
