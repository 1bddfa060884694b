// SPDX-License-Identifier: Apache-2.0
#pragma once

// Internal to the fabric mover: needs libfabric's headers.

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

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

} // namespace reckon
