// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/profile.hpp"
#include "documents/roles.hpp"

#include <cstdint>

namespace reckon {

/// How many machines a profile has.
[[nodiscard]] std::uint64_t machines_of(const Profile& profile);

/// Whether the machines of a profile have names of their own: a measured cluster's members, or
/// several groups of one machine each.
[[nodiscard]] bool has_named_machines(const Profile& profile);

/// How many of the machines are memory devices: their topology has some, and no GPU. They have no
/// gradient of their own.
[[nodiscard]] std::uint64_t memory_devices_of(const Profile& profile);

/// Default roles: `workers` ranks that also serve (BytePS: a summation service on every machine),
/// then `servers` ranks that only serve. They go on the first group of machines, the servers on the
/// second if there is one. On a cluster whose machines have names rank i goes on machine i of all
/// groups one after another; where some are memory devices, these serve and the others work. With
/// `own_ports` (CostModel::WhatIf) additional ranks are on machines
/// like the first. Throws Error{usage} without a worker, Error{input} when the named machines are
/// too few.
[[nodiscard]] Roles default_roles(const Profile& profile, std::uint64_t workers,
                                  std::uint64_t servers, int lanes, bool own_ports = false);

} // namespace reckon
