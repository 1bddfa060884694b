// SPDX-License-Identifier: Apache-2.0
#include "described_machine.hpp"

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/name_ranges.hpp"
#include "core/units.hpp"
#include "core/whole_number.hpp"
#include "documents/document.hpp"
#include "probe/description.hpp"
#include "topology/gpu_models.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

namespace {

/// What the GPUs are called, and who says so: "--gpu", or the log.
struct GpuName {
  std::string name, source;
};

std::string first_gpu(const Profile& profile) {
  for (const TopologyObject& object : profile.topology.objects) {
    if (object.kind == ObjectKind::gpu && !object.name.empty()) {
      return object.name;
    }
  }
  return "";
}

bool other_architecture(const std::string& a, const std::string& b) {
  const GpuModel* first = gpu_model(a);
  const GpuModel* second = gpu_model(b);
  return first != nullptr && second != nullptr &&
         first->compute_capability != second->compute_capability;
}

/// Of --gpu, else of the log.
GpuName gpu_name(const DescribedMachine& machine, const Profile* measured) {
  const std::string logged = measured == nullptr ? "" : first_gpu(*measured);
  if (machine.gpu.empty()) {
    return {logged, "the log"};
  }
  if (gpu_model(machine.gpu) == nullptr) {
    fail(ErrorKind::usage,
         fmt::format("--gpu {}: is no model whose links are known; give the name that nvidia-smi "
                     "prints, such as \"NVIDIA H100 80GB HBM3\", or leave it away and give "
                     "--topology the XML of NCCL (NCCL_TOPO_DUMP_FILE) or of `lstopo`, which has "
                     "the rates",
                     machine.gpu));
  }
  if (other_architecture(machine.gpu, logged)) {
    fail(ErrorKind::usage,
         fmt::format("--gpu {}: the log's GPUs are \"{}\"; leave --gpu away", machine.gpu, logged));
  }
  return {machine.gpu, "--gpu"};
}

void check_architecture(const Profile& profile, const GpuName& gpu) {
  const std::string known = first_gpu(profile);
  if (gpu.source == "--gpu" && profile.topology.of_kind(ObjectKind::gpu).empty()) {
    fail(ErrorKind::usage, fmt::format("--gpu {}: {} has no GPU", gpu.name, profile.name));
  }
  if (other_architecture(known, gpu.name)) {
    fail(ErrorKind::usage,
         fmt::format("{} has GPUs \"{}\", but {} says \"{}\"; give the profile or topology of the "
                     "machine that is meant",
                     profile.name, known, gpu.source, gpu.name));
  }
}

/// Whether the GPUs can have the NVLinks that the machine's file gives them.
void check_nvlinks(const Profile& profile, const GpuName& gpu) {
  const GpuModel* model = gpu_model(gpu.name);
  for (const TopologyObject* object : profile.topology.of_kind(ObjectKind::gpu)) {
    int links = 0;
    for (const PeerLink& link : profile.topology.links) {
      const bool here = link.from == object->id || link.to == object->id;
      links += here && link.kind == PeerLinkKind::nvlink ? link.count : 0;
    }
    if (model != nullptr && links > model->nvlinks) {
      fail(
          ErrorKind::usage,
          fmt::format("{} has {} for {}, but {} says \"{}\", of which one has at most {}; name the "
                      "GPU of that machine with --gpu",
                      profile.name, counted(static_cast<std::uint64_t>(links), "NVLink"),
                      object->id, gpu.source, gpu.name, model->nvlinks));
    }
  }
}

/// Adds NICs, each beside the next GPU, or where there are fewer, beside evenly spaced ones.
void add_nics(Topology& topology, const std::string& machine, std::size_t nics) {
  const std::vector<std::string> gpus = topology.ids_in(machine, ObjectKind::gpu);
  for (std::size_t i = 0; i < nics; ++i) {
    topology.objects.push_back(
        {.id = fmt::format("{}/nic{}", machine, i),
         .kind = ObjectKind::nic,
         .parent = gpus.empty() ? machine : topology.find(gpus[i * gpus.size() / nics])->parent});
  }
}

/// "400Gb/s" for the listed NICs of unknown rate; "8x400Gb/s" where none is listed.
void set_nic_rate(Profile& profile, const std::string& text) {
  constexpr std::size_t k_most = 1024;
  Topology& topology = profile.topology;
  const std::size_t times = text.find('x'), listed = topology.of_kind(ObjectKind::nic).size();
  const auto refuse = [&](const std::string& problem) {
    fail(ErrorKind::usage, fmt::format("--nic-rate {}: {}", text, problem));
  };
  if (times != text.npos) {
    const auto number = whole_number<std::size_t>(std::string_view(text).substr(0, times));
    if (!number || *number < 1 || *number > k_most) {
      refuse("must be a rate, or a number of NICs and a rate such as 8x400Gb/s");
    }
    if (listed > 0) {
      refuse(fmt::format("{} lists {} already; give the rate alone", profile.name,
                         counted(listed, "NIC")));
    }
    for (const MachineGroup& group : profile.machines) {
      if (topology.find(group.id) != nullptr) {
        add_nics(topology, group.id, *number);
      }
    }
  } else if (listed == 0) {
    refuse(
        fmt::format("{} lists no NIC: say how many there are, such as 8x{}", profile.name, text));
  }
  const double rate =
      parse_bandwidth(text.substr(times + 1), "--nic-rate").as_bytes_per_s(); // npos + 1 is 0
  bool used = false;
  for (TopologyObject& object : topology.objects) {
    if (object.kind == ObjectKind::nic) {
      used = used || !object.link_bytes_per_second || *object.link_bytes_per_second == rate;
      object.link_bytes_per_second = object.link_bytes_per_second.value_or(rate);
    }
  }
  if (!used) {
    refuse(fmt::format("{} has the rates of its NICs; leave --nic-rate away, or change "
                       "link_bytes_per_second there",
                       profile.name));
  }
}

} // namespace

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
              "Model of the GPUs, where the topology names none: \"H100\"; it decides the rates of "
              "NVLinks and PCIe")
      .type("NAME");
  command
      .option("--nic-rate", &machine->nic_rate,
              "Rate of each NIC's port, where the topology has none: 400Gb/s; where it lists no "
              "NIC, how many there are, too: 8x400Gb/s")
      .type("RATE");
  command
      .option("--nvlink-machines", whole_number(&machine->nvlink_machines, 1, 1 << 10),
              "How many machines share their NVSwitches: 18 of an NVL72")
      .type("N");
  command.option("--sharp", &machine->sharp,
                 "The switches between machines sum what passes them (SHARP)");
}

std::size_t DescribedMachine::domain_of(std::size_t machines) const {
  const std::size_t hosts = std::min<std::size_t>(machines, nvlink_machines);
  if (machines % hosts != 0) {
    fail(ErrorKind::usage, fmt::format("--nvlink-machines {}: {} machines are no multiple of it",
                                       nvlink_machines, machines));
  }
  return hosts;
}

void DescribedMachine::refuse_without_machine() const {
  const char* option = !gpu.empty()          ? "--gpu"
                       : !nic_rate.empty()   ? "--nic-rate"
                       : sharp               ? "--sharp"
                       : nvlink_machines > 1 ? "--nvlink-machines"
                                             : nullptr;
  if (!given() && option != nullptr) {
    fail(ErrorKind::usage,
         fmt::format("{} is about a machine: give it with --topology or --profile", option));
  }
}

Profile read_described(const DescribedMachine& machine, const Profile* measured) {
  Profile profile = machine.topology.empty() ? read_profile(machine.profile)
                                             : profile_of_topology_file(machine.topology, "");
  if (const auto remarks = profile.context.find("topology_remarks");
      remarks != profile.context.end()) {
    log(LogLevel::warn, "{}: {}", machine.topology.empty() ? machine.profile : machine.topology,
        remarks->second);
  }
  const GpuName gpu = gpu_name(machine, measured);
  check_architecture(profile, gpu);
  for (const MachineGroup& group : profile.machines) {
    complete_nvlinks(profile.topology, group.id, gpu.name);
  }
  check_nvlinks(profile, gpu);
  complete_pcie(profile.topology);
  if (!machine.nic_rate.empty()) {
    set_nic_rate(profile, machine.nic_rate);
  }
  return profile;
}

} // namespace reckon
