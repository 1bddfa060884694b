// SPDX-License-Identifier: Apache-2.0
#include "probe/recorded.hpp"

#include "discover/topology_file.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <filesystem>

namespace reckon {

Profile profile_of_topology_file(const std::string& path, const std::string& name) {
  RecordedTopology recorded = read_topology_file(path);
  const std::filesystem::path file(path);
  Profile profile;
  profile.name = name.empty() ? file.stem().string() : name;
  profile.source = fmt::format("not measured: the tree of a machine, out of {} ({})",
                               file.filename().string(), recorded.format);
  profile.context = {{"measured", "nothing: run `reckon probe` on the machine itself"},
                     {"topology_file", file.filename().string()},
                     {"topology_format", recorded.format}};
  if (!recorded.remarks.empty()) {
    // The same file at another place gives the same profile.
    const std::string place = path + ": ";
    for (std::string& remark : recorded.remarks) {
      remark = remark.starts_with(place) ? remark.substr(place.size()) : remark;
    }
    profile.context["topology_remarks"] = fmt::format("{}", fmt::join(recorded.remarks, "; "));
  }
  MachineGroup& machine = profile.machines.emplace_back();
  machine.id = recorded.topology.objects.front().id;
  machine.name = recorded.topology.objects.front().name;
  if (machine.name.empty()) {
    machine.name = profile.name;
  }
  if (const auto cores = recorded.topology.of_kind(ObjectKind::core); !cores.empty()) {
    machine.cores = cores.size();
  } else {
    profile.context["cores"] = "not in the file";
  }
  for (const TopologyObject* node : recorded.topology.of_kind(ObjectKind::numa_node)) {
    machine.memory_bytes += node->bytes.value_or(0);
  }
  profile.topology = std::move(recorded.topology);
  return profile;
}

} // namespace reckon
