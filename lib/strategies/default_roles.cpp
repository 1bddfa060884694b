// SPDX-License-Identifier: Apache-2.0
#include "strategies/default_roles.hpp"

#include "core/error.hpp"
#include "core/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

namespace reckon {
namespace {

/// Whether a machine of the profile is memory devices and nothing that has a gradient.
bool is_memory_device(const Profile& profile, const MachineGroup& machine) {
  return !profile.topology.ids_in(machine.id, ObjectKind::memory_device).empty() &&
         profile.topology.ids_in(machine.id, ObjectKind::gpu).empty();
}

/// Says that of the named machines only `all` may work, or only serve.
[[noreturn]] void refuse_too_many(const Profile& profile, std::uint64_t workers,
                                  std::uint64_t servers, std::uint64_t all, bool worker) {
  if (memory_devices_of(profile) > 0) {
    fail(ErrorKind::input,
         fmt::format("{}: profile '{}' has {}; give as many at most, or name who works and who "
                     "serves in a file for --roles",
                     worker ? fmt::format("--workers {}", workers)
                            : fmt::format("--servers {}", servers),
                     profile.name,
                     worker ? counted(all, "machine") + " beside its memory devices"
                            : counted(all, "memory device")));
  }
  fail(ErrorKind::input,
       fmt::format("profile '{}' has {}, and --workers {} and --servers {} ask for {}: each "
                   "rank is one of them; give fewer, or raise `count` of machines in a copy "
                   "of the profile",
                   profile.name, counted(all, "machine"), workers, servers, workers + servers));
}

} // namespace

std::uint64_t machines_of(const Profile& profile) {
  std::uint64_t all = 0;
  for (const MachineGroup& m : profile.machines) {
    all += m.count;
  }
  return all;
}

std::uint64_t memory_devices_of(const Profile& profile) {
  std::uint64_t devices = 0;
  for (const MachineGroup& machine : profile.machines) {
    devices += is_memory_device(profile, machine) ? machine.count : 0;
  }
  return devices;
}

bool has_named_machines(const Profile& profile) {
  constexpr std::size_t k_several = 3; // of two groups one works and one serves
  return (!profile.machines.empty() && !profile.machines.front().members.empty()) ||
         (profile.machines.size() >= k_several &&
          std::all_of(profile.machines.begin(), profile.machines.end(),
                      [](const MachineGroup& m) { return m.count == 1; }));
}

Roles default_roles(const Profile& profile, std::uint64_t workers, std::uint64_t servers, int lanes,
                    bool own_ports) {
  if (workers == 0) {
    fail(ErrorKind::usage, "--workers 0: nobody would have a gradient; give at least 1");
  }
  if (profile.machines.empty()) {
    fail(ErrorKind::input, "the profile has no machines: there is nothing to plan for");
  }
  Roles roles;
  roles.name = fmt::format("{} workers, {} servers", workers, servers);
  if (has_named_machines(profile)) {
    // A measured cluster: rank i of the plan runs where rank i of the probe ran.
    const std::uint64_t devices = memory_devices_of(profile);
    const auto take = [&](std::uint64_t from, std::uint64_t count, bool worker) {
      std::uint64_t all = 0; // machines that may be taken
      for (const MachineGroup& machine : profile.machines) {
        if (devices > 0 && worker == is_memory_device(profile, machine)) {
          continue;
        }
        const std::uint64_t first = std::max(from, all); // of them
        all += machine.count;
        const std::uint64_t here = std::min(count, all - std::min(first, all));
        if (here > 0) {
          roles.groups.push_back({machine.id, here, worker, true, lanes});
        }
        count -= here;
        from += here;
      }
      if (count > 0 && own_ports) { // more machines like the first
        roles.groups.push_back({profile.machines.front().id, count, worker, true, lanes});
      } else if (count > 0) {
        refuse_too_many(profile, workers, servers, all, worker);
      }
    };
    take(0, workers, true);
    take(devices > 0 ? 0 : workers, servers, false);
    return roles;
  }
  const std::string& first = profile.machines.front().id;
  const std::string& second = profile.machines.size() > 1 ? profile.machines[1].id : first;
  roles.groups.push_back({first, workers, true, true, lanes});
  if (servers > 0) {
    roles.groups.push_back({second, servers, false, true, lanes});
  }
  return roles;
}

} // namespace reckon
