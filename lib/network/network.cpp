// SPDX-License-Identifier: Apache-2.0
#include "network/network.hpp"

#include "documents/profile.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

namespace reckon {

const MachineGroup* group_named(const Profile& profile, std::string_view id) {
  const auto it = std::ranges::find(profile.machines, id, &MachineGroup::id);
  return it == profile.machines.end() ? nullptr : &*it;
}

int common_lanes(int a, int b) {
  constexpr int k_most = 64;
  const int larger = std::max({a, b, 1});
  const int all = std::lcm(std::max(a, 1), std::max(b, 1));
  return all <= k_most ? all : larger;
}

std::vector<double> Network::root_shares() const {
  if (collective == Collective::all_reduce) {
    return {};
  }
  std::vector<double> shares(workers, has_root(collective) ? 0 : 1 / static_cast<double>(workers));
  if (has_root(collective)) {
    shares.at(root) = 1;
  }
  return shares;
}

std::size_t Network::place_named(const std::string& id, const std::string& group,
                                 std::uint64_t number, std::optional<std::uint64_t> process) const {
  const auto it = std::find_if(places.begin(), places.end(), [&](const Place& place) {
    const NetworkMachine& machine = machines[place.machine];
    return place.id == id && place.process == process && machine.group == group &&
           machine.number == number;
  });
  return static_cast<std::size_t>(it - places.begin());
}

std::string Network::name_of(std::size_t place) const {
  const Place& p = places[place];
  const NetworkMachine& machine = machines[p.machine];
  const std::string prefix = machine.group + "/";
  if (!p.id.starts_with(prefix)) {
    return machine.name;
  }
  const std::string id =
      p.id.substr(prefix.size()) + (p.process ? fmt::format(":{}", *p.process) : std::string());
  return machines.size() == 1 ? id : machine.name + "/" + id;
}

bool has_gpu_worker(const Profile& profile, const Network& network) {
  return std::any_of(network.places.begin(), network.places.end(), [&](const Place& p) {
    const TopologyObject* const object = profile.topology.find(p.id);
    return p.worker && object != nullptr && object->kind == ObjectKind::gpu;
  });
}

std::string transport_inside(const Profile& profile, const Network& network) {
  return has_gpu_worker(profile, network) ? "cuda" : "host";
}

Network at_high_capacities(Network model) {
  for (Station& resource : model.stations) {
    resource.bytes_per_second = resource.high_bytes_per_second;
  }
  return model;
}

double cost_of(const Uses& uses, const std::vector<double>& prices) {
  double cost = 0;
  for (const Use& use : uses) {
    cost += use.amount * prices[use.station];
  }
  return cost;
}

void add_uses(std::vector<double>& loads, const Uses& uses, double factor) {
  for (const Use& use : uses) {
    loads[use.station] += factor * use.amount;
  }
}

} // namespace reckon
