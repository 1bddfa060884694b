// SPDX-License-Identifier: Apache-2.0
#include "topology/gpu_models.hpp"

#include <algorithm>
#include <array>
#include <map>

namespace reckon {
namespace {

/// Longer names first where one contains the other.
constexpr std::array<GpuModel, 21> k_models{
    {{"GB300", 103, 50e9},     {"B300", 103, 50e9}, {"sm_103", 103, 50e9}, {"GB200", 100, 50e9},
     {"B200", 100, 50e9},      {"B100", 100, 50e9}, {"sm_100", 100, 50e9}, {"GH200", 90, 25e9},
     {"H200", 90, 25e9},       {"H100", 90, 25e9},  {"H800", 90, 25e9},    {"sm_90", 90, 25e9},
     {"A100", 80, 25e9},       {"A800", 80, 25e9},  {"sm_80", 80, 25e9},   {"3090", 86, 14.0625e9},
     {"sm_86", 86, 14.0625e9}, {"V100", 70, 25e9},  {"sm_70", 70, 25e9},   {"P100", 60, 20e9},
     {"sm_60", 60, 20e9}}};

} // namespace

const GpuModel* gpu_model(std::string_view name) {
  const auto at = std::ranges::find_if(
      k_models, [&](const GpuModel& model) { return name.find(model.name) != name.npos; });
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

} // namespace reckon
