// SPDX-License-Identifier: Apache-2.0
#pragma once

// Internal to the fabric mover: needs libfabric's headers.

#include "core/error.hpp"
#include "movers/handle.hpp"

#include <fmt/format.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>

#include <string>

namespace reckon {

/// The functions that libfabric exports and we use; all others go through the objects that these
/// return.
struct Libfabric {
  decltype(&::fi_getinfo) getinfo = nullptr;
  decltype(&::fi_freeinfo) freeinfo = nullptr;
  decltype(&::fi_dupinfo) dupinfo = nullptr;
  decltype(&::fi_fabric) fabric = nullptr;
  decltype(&::fi_strerror) strerror = nullptr;
};

/// libfabric, loaded at the first call and kept. The program is not linked to it because of one of
/// its dependencies: libinfinipath measures the processor's clock for 0.2 s while it is loaded
/// (Debian 12), and `reckon plan` or `show` should not wait for that. Throws Error{unavailable} if
/// it is missing. Thread-safe.
[[nodiscard]] const Libfabric& libfabric();

inline constexpr auto k_close_fid = [](auto* handle) noexcept { return fi_close(&handle->fid); };
inline constexpr auto k_free_info = [](fi_info* info) noexcept { libfabric().freeinfo(info); };
using FiInfo = UniqueHandle<fi_info, k_free_info>;
using FiFabric = UniqueHandle<fid_fabric, k_close_fid>;
using FiDomain = UniqueHandle<fid_domain, k_close_fid>;
using FiAv = UniqueHandle<fid_av, k_close_fid>;
using FiCq = UniqueHandle<fid_cq, k_close_fid>;
using FiEp = UniqueHandle<fid_ep, k_close_fid>;
using FiMr = UniqueHandle<fid_mr, k_close_fid>;

/// libfabric's words for an error number, which is positive.
inline std::string fi_text(ssize_t error) {
  return libfabric().strerror(static_cast<int>(error));
}

/// Negative status from libfabric -> Error{operation} with the attempt and libfabric's own words.
inline void check_fi(ssize_t status, const std::string& attempt, const std::string& remedy = {}) {
  if (status < 0) {
    const bool of_system = -status < FI_ERRNO_OFFSET; // else libfabric has words of its own
    fail(ErrorKind::operation,
         fmt::format("{}: {}{}", attempt,
                     of_system ? system_words(static_cast<int>(-status)) : fi_text(-status),
                     remedy));
  }
}

} // namespace reckon
