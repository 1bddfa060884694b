// SPDX-License-Identifier: Apache-2.0
#include "topology/gpu_models.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>

namespace reckon {
namespace {

constexpr PcieLink k_none{}, k_gen3{8e9, 16}, k_gen4{16e9, 16}, k_gen5{32e9, 16}, k_gen6{64e9, 16};

constexpr std::array<GpuModel, 52> k_models{{
    {"GB300", 103, 18, 50e9, k_none},
    {"B300", 103, 18, 50e9, k_gen6},
    {"sm_103", 103, 18, 50e9, k_none},
    {"GB200", 100, 18, 50e9, k_none},
    {"B200", 100, 18, 50e9, k_gen5},
    {"B100", 100, 18, 50e9, k_gen5},
    {"sm_100", 100, 18, 50e9, k_none},
    {"GB10", 121, 0, 0, k_none},
    {"PRO 6000", 120, 0, 0, k_gen5},
    {"5090", 120, 0, 0, k_gen5},
    {"5080", 120, 0, 0, k_gen5},
    {"GH200", 90, 18, 25e9, k_none},
    {"H200", 90, 18, 25e9, k_gen5},
    {"H100", 90, 18, 25e9, k_gen5},
    {"H800", 90, 8, 25e9, k_gen5},
    {"H20", 90, 18, 25e9, k_gen5},
    {"sm_90", 90, 18, 25e9, k_none},
    {"L40S", 89, 0, 0, k_gen4},
    {"L40", 89, 0, 0, k_gen4},
    {"L20", 89, 0, 0, k_gen4},
    {"L4", 89, 0, 0, k_gen4},
    {"6000 Ada", 89, 0, 0, k_gen4},
    {"5000 Ada", 89, 0, 0, k_gen4},
    {"4090", 89, 0, 0, k_gen4},
    {"4080", 89, 0, 0, k_gen4},
    {"sm_89", 89, 0, 0, k_none},
    {"A10G", 86, 0, 0, k_gen4},
    {"A10", 86, 0, 0, k_gen4},
    {"A40", 86, 4, 14.0625e9, k_gen4},
    {"A6000", 86, 4, 14.0625e9, k_gen4},
    {"A5000", 86, 4, 14.0625e9, k_gen4},
    {"A4000", 86, 0, 0, k_gen4},
    {"A2", 86, 0, 0, {16e9, 8}},
    {"3090", 86, 4, 14.0625e9, k_gen4},
    {"3080", 86, 0, 0, k_gen4},
    {"sm_86", 86, 4, 14.0625e9, k_none},
    {"A100", 80, 12, 25e9, k_gen4},
    {"A800", 80, 8, 25e9, k_gen4},
    {"A30", 80, 4, 25e9, k_gen4},
    {"sm_80", 80, 12, 25e9, k_none},
    {"T4", 75, 0, 0, k_gen3},
    {"Quadro RTX 8000", 75, 2, 25e9, k_gen3},
    {"Quadro RTX 6000", 75, 2, 25e9, k_gen3},
    {"TITAN RTX", 75, 2, 25e9, k_gen3},
    {"2080 Ti", 75, 2, 25e9, k_gen3},
    {"V100", 70, 6, 25e9, k_gen3},
    {"sm_70", 70, 6, 25e9, k_none},
    {"P40", 61, 0, 0, k_gen3},
    {"P4", 61, 0, 0, k_gen3},
    {"1080 Ti", 61, 0, 0, k_gen3},
    {"P100", 60, 4, 20e9, k_gen3},
    {"sm_60", 60, 4, 20e9, k_none},
}};

enum class Sign { other, letter, digit };
Sign sign(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return std::isdigit(byte) != 0   ? Sign::digit
         : std::isalpha(byte) != 0 ? Sign::letter
                                   : Sign::other;
}

/// "H100SXM" has H100 and "RTX4090" 4090, but "A1000" has no A100 and "GH200" no H200.
bool has_model(std::string_view name, std::string_view model) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) ==
           std::tolower(static_cast<unsigned char>(b));
  };
  const auto* at = std::search(name.begin(), name.end(), model.begin(), model.end(), same);
  if (at == name.end()) {
    return false;
  }
  const auto* end = at + model.size();
  return (at == name.begin() || sign(at[-1]) != sign(model.front())) &&
         (end == name.end() || sign(*end) != Sign::digit);
}

} // namespace

const GpuModel* gpu_model(std::string_view name) {
  const auto at = std::ranges::find_if(
      k_models, [&](const GpuModel& model) { return has_model(name, model.name); });
  return at == k_models.end() ? nullptr : &*at;
}

bool has_sums_in_switch(const GpuModel& model) {
  return model.compute_capability >= 90;
}

void complete_nvlinks(Topology& topology, std::string_view machine, const std::string& name) {
  std::map<std::string, const GpuModel*> models; // by GPU
  for (TopologyObject& object : topology.objects) {
    if (object.kind == ObjectKind::gpu && topology.is_in(object, machine)) {
      object.name = object.name.empty() ? name : object.name;
      models.emplace(object.id, gpu_model(object.name));
    }
  }
  for (PeerLink& link : topology.links) {
    for (const std::string& end : {link.from, link.to}) {
      const auto model = models.find(end);
      if (model == models.end() || model->second == nullptr || link.kind != PeerLinkKind::nvlink) {
        continue;
      }
      if (!link.bytes_per_second) {
        link.bytes_per_second = link.count * model->second->nvlink_bytes_per_second;
      }
      for (TopologyObject& object : topology.objects) {
        if (object.kind == ObjectKind::link_switch && !object.sums &&
            (object.id == link.from || object.id == link.to)) {
          object.sums = has_sums_in_switch(*model->second);
        }
      }
    }
  }
}

void complete_pcie(Topology& topology) {
  for (TopologyObject& gpu : topology.objects) {
    const bool open = gpu.kind == ObjectKind::gpu && !gpu.pcie && !gpu.pcie_bytes_per_second &&
                      !gpu.link_bytes_per_second;
    const GpuModel* model = open ? gpu_model(gpu.name) : nullptr;
    if (model != nullptr && model->pcie.width > 0) {
      gpu.pcie = model->pcie;
    }
  }
}

} // namespace reckon
