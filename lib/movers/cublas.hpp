// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/error.hpp"

#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <dlfcn.h>
#include <string>

namespace reckon {

/// Loaded when it is first wanted: it is large, and few machines need it for anything of ours.
class Cublas {
public:
  static const Cublas& instance() {
    static const Cublas loaded;
    if (!loaded.m_why_not.empty()) {
      fail(ErrorKind::unavailable, loaded.m_why_not);
    }
    return loaded;
  }
  decltype(&cublasCreate_v2) create = nullptr;
  decltype(&cublasDestroy_v2) destroy = nullptr;
  decltype(&cublasSetStream_v2) set_stream = nullptr;
  decltype(&cublasSgemm_v2) sgemm = nullptr;

private:
  Cublas() {
    void* library = nullptr;
    const std::string versioned = fmt::format("libcublas.so.{}", CUDART_VERSION / 1000);
    for (const char* const name : {versioned.c_str(), "libcublas.so"}) {
      library = library != nullptr ? library : ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
    }
    if (library == nullptr) {
      const char* const error = ::dlerror();
      m_why_not = fmt::format("dlopen({}): {}", versioned, error == nullptr ? "?" : error);
      return;
    }
    find(library, "cublasCreate_v2", create);
    find(library, "cublasDestroy_v2", destroy);
    find(library, "cublasSetStream_v2", set_stream);
    find(library, "cublasSgemm_v2", sgemm);
  }

  template <class Function>
  void find(void* library, const char* name, Function& function) {
    function = reinterpret_cast<Function>(::dlsym(library, name));
    if (function == nullptr && m_why_not.empty()) {
      m_why_not = fmt::format("dlsym({}): not in libcublas", name);
    }
  }

  std::string m_why_not;
};

} // namespace reckon
