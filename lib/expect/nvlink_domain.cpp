// SPDX-License-Identifier: Apache-2.0
#include "expect/nvlink_domain.hpp"

#include "core/error.hpp"
#include "core/whole_number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

namespace reckon {
namespace {

/// "m0/gpu12" is "m0/gpu" and 12.
std::pair<std::string, std::size_t> stem_and_number(const std::string& id) {
  const std::size_t end = id.find_last_not_of("0123456789") + 1; // npos + 1 is 0
  return {id.substr(0, end), whole_number<std::size_t>(id.substr(end)).value_or(0)};
}

/// Parts of different hosts have the same addresses and cables.
void tell_apart(TopologyObject& object, std::size_t host) {
  for (std::string* same : {&object.pci_address, &object.cable}) {
    *same = same->empty() ? "" : fmt::format("{} of host {}", *same, host);
  }
}

} // namespace

Profile joined_by_nvlink(Profile profile, const std::string& machine, std::size_t hosts) {
  Topology& topology = profile.topology;
  if (topology.ids_in(machine, ObjectKind::link_switch).empty() || !profile.cells.empty()) {
    fail(ErrorKind::usage,
         fmt::format("--nvlink-machines: {} {}; give a --topology of a machine with NVSwitches",
                     profile.name,
                     profile.cells.empty() ? "has no NVSwitch that machines could share"
                                           : "has cells of one machine alone"));
  }
  std::map<std::string, std::size_t> each; // by stem: how many a host has
  std::vector<TopologyObject> own;
  for (const TopologyObject& object : topology.objects) {
    if (object.id != machine && object.kind != ObjectKind::link_switch &&
        topology.is_in(object, machine)) {
      own.push_back(object);
      const auto [stem, number] = stem_and_number(object.id);
      each[stem] = std::max(each[stem], number + 1);
    }
  }
  std::vector<PeerLink> links = topology.links;
  std::erase_if(links, [&](const PeerLink& link) {
    return !topology.is_in(*topology.find(link.from), machine);
  });
  for (std::size_t host = 1; host < hosts; ++host) {
    const auto id_there = [&](const std::string& id) {
      const auto [stem, number] = stem_and_number(id);
      const auto at = each.find(stem);
      return at == each.end() ? id : fmt::format("{}{}", stem, number + host * at->second);
    };
    for (TopologyObject object : own) {
      object.id = id_there(object.id);
      object.parent = id_there(object.parent);
      tell_apart(object, host);
      topology.objects.push_back(std::move(object));
    }
    for (const PeerLink& link : links) {
      PeerLink& there = topology.links.emplace_back(link);
      there.from = id_there(link.from);
      there.to = id_there(link.to);
    }
  }
  return profile;
}

Profile joined_log(Profile measured, std::size_t hosts, std::size_t gpus_each) {
  const std::vector<MachineGroup> machines = std::exchange(measured.machines, {});
  if (machines.size() % hosts != 0) {
    fail(ErrorKind::usage, fmt::format("--nvlink-machines {}: the log's {} hosts are no multiple",
                                       hosts, machines.size()));
  }
  for (std::size_t i = 0; i < machines.size(); ++i) {
    const std::string& domain = machines[i - i % hosts].id;
    if (i % hosts == 0) {
      measured.machines.push_back(machines[i]);
      continue;
    }
    for (TopologyObject& object : measured.topology.objects) {
      if (object.parent == machines[i].id) {
        const auto [stem, number] = stem_and_number(object.id);
        object.id = fmt::format("{}{}{}", domain, stem.substr(machines[i].id.size()),
                                number + i % hosts * gpus_each);
        object.parent = domain;
        tell_apart(object, i % hosts);
      }
    }
  }
  return measured;
}

} // namespace reckon
