// SPDX-License-Identifier: Apache-2.0
#include "described_machine.hpp"

#include "core/error.hpp"
#include "core/units.hpp"
#include "documents/cells.hpp"
#include "documents/document.hpp"
#include "probe/description.hpp"
#include "topology/gpu_models.hpp"

namespace reckon {

void add_described_machine(Arguments& command, DescribedMachine* machine,
                           const std::string& profile_help) {
  const Argument profile =
      command.option("-p,--profile", &machine->profile, profile_help).type("PROFILE");
  command
      .option("--topology", &machine->topology,
              "Measure nothing: the machine is that of a file, XML of hwloc, NCCL or RCCL, or "
              "the text of `nvidia-smi topo -m`")
      .type("FILE")
      .excludes(profile);
  command
      .option("--gpu", &machine->gpu,
              "Model of the GPUs, where the topology names none: \"H100\"; it decides the rate of "
              "NVLinks")
      .type("NAME");
  command
      .option(
          "--nic-rate", &machine->nic_rate,
          "Rate of each NIC's port, where the topology has none: 400Gb/s. A machine without NICs "
          "has one port of that rate")
      .type("RATE");
  command.option("--sharp", &machine->sharp,
                 "The switches between machines sum what passes them (SHARP)");
}

Profile read_described(const DescribedMachine& machine, const Profile* measured) {
  Profile profile = machine.topology.empty() ? read_profile(machine.profile)
                                             : profile_of_topology_file(machine.topology, "");
  std::string gpu = machine.gpu;
  for (const TopologyObject& object :
       measured == nullptr ? std::vector<TopologyObject>() : measured->topology.objects) {
    gpu = gpu.empty() && object.kind == ObjectKind::gpu ? object.name : gpu;
  }
  if (!machine.gpu.empty() && gpu_model(machine.gpu) == nullptr) {
    fail(ErrorKind::usage, "--gpu " + machine.gpu +
                               ": is no model whose NVLinks are known; give the name that "
                               "nvidia-smi prints, such as \"NVIDIA H100 80GB HBM3\"");
  }
  for (const MachineGroup& group : profile.machines) {
    complete_nvlinks(profile.topology, group.id, gpu);
  }
  if (!machine.nic_rate.empty()) {
    const double rate = parse_bandwidth(machine.nic_rate, "--nic-rate").as_bytes_per_s();
    for (TopologyObject& object : profile.topology.objects) {
      if (object.kind == ObjectKind::nic && !object.link_bytes_per_second) {
        object.link_bytes_per_second = rate;
      }
    }
    for (const MachineGroup& group : profile.machines) {
      if (profile.topology.ids_in(group.id, ObjectKind::nic).empty() &&
          profile.select({.test = k_port_bandwidth, .from = group.id}).empty()) {
        Cell& port = profile.cells.emplace_back();
        port.key = {.test = k_port_bandwidth, .from = group.id};
        port.unit = k_bytes_per_second;
        port.status = CellStatus::published;
        port.p50 = port.p99 = port.min = port.max = rate;
      }
    }
  }
  return profile;
}

} // namespace reckon
