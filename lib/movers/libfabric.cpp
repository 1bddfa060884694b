// SPDX-License-Identifier: Apache-2.0
#include "movers/libfabric.hpp"

#include "core/error.hpp"

#include <fmt/format.h>

#include <array>
#include <csignal>

#include <dlfcn.h>

namespace reckon {
namespace {

constexpr const char* k_library = "libfabric.so.1";

/// Leaves the handling of signals as it was. libpsm_infinipath and libpsm2, which come along, take
/// SIGINT and SIGTERM among others when they are loaded; what arrives meanwhile waits for us.
class SignalsKept {
public:
  SignalsKept() {
    sigset_t all;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_BLOCK, &all, &m_mask);
    for (std::size_t i = 0; i < m_actions.size(); ++i) {
      m_known[i] = ::sigaction(static_cast<int>(i) + 1, nullptr, &m_actions[i]) == 0;
    }
  }
  SignalsKept(const SignalsKept&) = delete;
  SignalsKept& operator=(const SignalsKept&) = delete;
  ~SignalsKept() {
    for (std::size_t i = 0; i < m_actions.size(); ++i) {
      if (m_known[i]) { // fails for SIGKILL and SIGSTOP, which nobody takes
        static_cast<void>(::sigaction(static_cast<int>(i) + 1, &m_actions[i], nullptr));
      }
    }
    ::pthread_sigmask(SIG_SETMASK, &m_mask, nullptr);
  }

private:
  sigset_t m_mask{};
  std::array<struct sigaction, NSIG - 1> m_actions{}; // of signal i + 1
  std::array<bool, NSIG - 1> m_known{};
};

/// `first`, else `second`: where the build has found it, which need not be where the loader looks.
void* load(const char* first, const char* second) {
  const SignalsKept kept;
  void* const library = ::dlopen(first, RTLD_NOW | RTLD_LOCAL);
  return library != nullptr ? library : ::dlopen(second, RTLD_NOW | RTLD_LOCAL);
}

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(library, name));
  if (function == nullptr) {
    fail(ErrorKind::unavailable, fmt::format("dlsym({}): not in {}", name, k_library));
  }
}

Libfabric loaded() {
  void* const library = load(k_library, RECKON_LIBFABRIC_FOLDER "/libfabric.so.1");
  if (library == nullptr) {
    const char* const error = ::dlerror();
    fail(ErrorKind::unavailable,
         fmt::format("dlopen({}): {}", k_library, error == nullptr ? "?" : error));
  }
  Libfabric functions;
  find(library, "fi_getinfo", functions.getinfo);
  find(library, "fi_freeinfo", functions.freeinfo);
  find(library, "fi_dupinfo", functions.dupinfo);
  find(library, "fi_fabric", functions.fabric);
  find(library, "fi_strerror", functions.strerror);
  return functions;
}

} // namespace

const Libfabric& libfabric() {
  static const Libfabric functions = loaded();
  return functions;
}

} // namespace reckon
