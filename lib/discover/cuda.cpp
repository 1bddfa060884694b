// SPDX-License-Identifier: Apache-2.0
#include "discover/cuda.hpp"

#ifdef RECKON_HAVE_CUDA
#include "core/child.hpp"
#include "core/error.hpp"
#include "core/json.hpp"

#include <cuda_runtime_api.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#endif

namespace reckon {

#ifdef RECKON_HAVE_CUDA
namespace {

std::string version_text(int version) {
  return fmt::format("{}.{}", version / 1000, version % 1000 / 10);
}

/// The error's own words. Clears it, so that it does not surface in a later, innocent call.
std::string take_error(const char* attempt, cudaError_t error) {
  static_cast<void>(cudaGetLastError());
  return fmt::format("{}: {}", attempt, cudaGetErrorString(error));
}

CudaGpus ask_cuda() {
  CudaGpus found;
  int version = 0;
  if (cudaRuntimeGetVersion(&version) == cudaSuccess) {
    found.runtime_version = version_text(version);
  }
  const bool asked = cudaDriverGetVersion(&version) == cudaSuccess;
  if (asked && version > 0) {
    found.driver_version = version_text(version);
  } else if (asked) { // cudaGetDeviceCount calls that a driver too old
    found.why_none = "cudaDriverGetVersion: no NVIDIA driver is installed";
    return found;
  }
  int count = 0;
  if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess) {
    found.why_none = take_error("cudaGetDeviceCount", error);
    return found;
  }
  for (int device = 0; device < count; ++device) {
    cudaDeviceProp properties{};
    std::array<char, 32> address{};
    cudaError_t error = cudaGetDeviceProperties(&properties, device);
    if (error == cudaSuccess) {
      error = cudaDeviceGetPCIBusId(address.data(), static_cast<int>(address.size()), device);
    }
    if (error != cudaSuccess) {
      found.why_none = take_error("cudaGetDeviceProperties", error);
      continue;
    }
    std::string pci(address.data());
    std::transform(pci.begin(), pci.end(), pci.begin(),
                   [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    found.gpus.push_back(
        {static_cast<const char*>(properties.name), pci, properties.totalGlobalMem});
  }
  if (!found.gpus.empty()) {
    found.why_none.clear();
  } else if (found.why_none.empty()) {
    found.why_none = "cudaGetDeviceCount: no device";
  }
  return found;
}

std::string encode(const CudaGpus& found) {
  Json gpus = Json::array();
  for (const CudaGpu& gpu : found.gpus) {
    gpus.push_back({{"name", gpu.name}, {"pci_address", gpu.pci_address}, {"bytes", gpu.bytes}});
  }
  return compact({{"gpus", gpus},
                  {"why_none", found.why_none},
                  {"runtime_version", found.runtime_version},
                  {"driver_version", found.driver_version}});
}

CudaGpus decode(const std::string& text) {
  const Json json = parse_json(text, "what CUDA has");
  const JsonView view(json, "what CUDA has");
  CudaGpus found{{},
                 view.at("why_none").string(),
                 view.at("runtime_version").string(),
                 view.at("driver_version").string()};
  for (const JsonView& gpu : view.at("gpus").elements()) {
    found.gpus.push_back(
        {gpu.at("name").string(), gpu.at("pci_address").string(), gpu.at("bytes").count()});
  }
  return found;
}

/// ask_cuda() in a process of its own.
CudaGpus ask_in_child() {
  constexpr Seconds k_limit{
      120}; // a driver that no process keeps loaded takes seconds for each GPU
  try {
    return decode(answer_of_child([] { return encode(ask_cuda()); }, k_limit));
  } catch (const Error& error) {
    CudaGpus none;
    none.why_none = fmt::format("a process that asks CUDA: {}", error.what());
    return none;
  }
}

} // namespace

CudaGpus list_cuda_gpus() {
  static const CudaGpus found = ask_in_child();
  return found;
}

#else

CudaGpus list_cuda_gpus() {
  return {{}, "this build has no CUDA", "", ""};
}

#endif

} // namespace reckon
