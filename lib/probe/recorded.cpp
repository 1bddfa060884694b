// SPDX-License-Identifier: Apache-2.0
#include "probe/recorded.hpp"

#include "discover/topology_file.hpp"
#include "probe/description.hpp"

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
  const TopologyObject& machine = recorded.topology.objects.front();
  profile.machines.push_back(machine_group(recorded.topology, machine.id,
                                           machine.name.empty() ? profile.name : machine.name));
  if (profile.machines.front().cores == 0) {
    profile.context["cores"] = "not in the file";
  }
  profile.topology = std::move(recorded.topology);
  return profile;
}

} // namespace reckon
