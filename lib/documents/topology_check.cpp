// SPDX-License-Identifier: Apache-2.0
#include "documents/topology_check.hpp"

#include "documents/fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

namespace reckon::documents {
namespace {

/// The machine that each object belongs to, and its place among the objects.
class Places {
public:
  void add(const TopologyObject& object) {
    const std::string& machine =
        object.parent.empty() ? object.id : m_places.at(object.parent).machine;
    const int depth = object.parent.empty() ? 0 : this->depth(object.parent) + 1;
    m_places.emplace(object.id, Place{m_places.size(), machine, depth});
  }
  struct Place {
    std::size_t index = 0;
    std::string machine;
    int depth = 0; ///< objects above it
  };
  [[nodiscard]] int depth(const std::string& id) const { return m_places.at(id).depth; }
  [[nodiscard]] bool has(const std::string& id) const { return m_places.contains(id); }
  [[nodiscard]] const Place& of(const std::string& id, const JsonView& value) const {
    if (!has(id)) {
      value.fail(
          fmt::format("no object of this topology has the id \"{}\"; add one, or name one that "
                      "is there",
                      id));
    }
    return m_places.at(id);
  }

private:
  std::map<std::string, Place> m_places;
};

void check_object(const TopologyObject& o, const JsonView& object, bool is_group,
                  const Places& before) {
  for (const auto& rate : {o.link_bytes_per_second, o.pcie_bytes_per_second}) {
    check_range(rate.value_or(1), Range::rate, object);
  }
  if (o.kind == ObjectKind::machine) {
    if (!o.parent.empty()) {
      object.at("parent").fail("a machine has no parent; remove this key");
    }
    if (!is_group) {
      object.at("id").fail(
          fmt::format("no entry of /machines has the id \"{}\"; add it there", o.id));
    }
    return;
  }
  if (is_group) {
    object.at("id").fail(
        fmt::format("\"{}\" is the id of a machine; rename this {}", o.id, name_of(o.kind)));
  }
  if (o.parent.empty()) {
    object.fail("the key \"parent\" is missing; only a machine has none");
  }
  if (!before.has(o.parent)) {
    object.at("parent").fail(fmt::format(
        "no object before this one has the id \"{}\"; parents come before their children",
        o.parent));
  }
  constexpr int k_deepest = 256;
  if (before.depth(o.parent) >= k_deepest) {
    object.at("parent").fail(
        fmt::format("more than {} objects are above this one; no machine has so many", k_deepest));
  }
}

void check_link(const PeerLink& link, const JsonView& object, const Places& places) {
  check_range(link.bytes_per_second.value_or(1), Range::rate, object);
  const Places::Place& from = places.of(link.from, object.at("from"));
  const Places::Place& to = places.of(link.to, object.at("to"));
  if (from.index >= to.index) {
    object.at("to").fail(fmt::format("\"{}\" must stand after \"{}\" among the objects, for a link "
                                     "works both ways and is written once; change the two over",
                                     link.to, link.from));
  }
  if (from.machine != to.machine) {
    object.at("to").fail(fmt::format(
        "\"{}\" is in another machine than \"{}\"; a link is inside of one", link.to, link.from));
  }
}

} // namespace

void check_topology(const Profile& profile, const JsonView& view) {
  if (!view.find("topology")) {
    return;
  }
  const JsonView topology = view.at("topology");
  Unique ids(topology, "id");
  Places places;
  const std::vector<JsonView> objects = topology.at("objects").elements();
  for (std::size_t i = 0; i < objects.size(); ++i) {
    const TopologyObject& object = profile.topology.objects[i];
    ids.add(object.id, fmt::format("objects/{}/id", i));
    const bool is_group = std::any_of(profile.machines.begin(), profile.machines.end(),
                                      [&](const MachineGroup& m) { return m.id == object.id; });
    check_object(object, objects[i], is_group, places);
    places.add(object);
  }
  Unique ways(topology, "link");
  const std::vector<JsonView> links = elements_below(topology, "links");
  for (std::size_t i = 0; i < links.size(); ++i) {
    const PeerLink& link = profile.topology.links[i];
    check_link(link, links[i], places);
    ways.add(fmt::format("{} {} - {}", name_of(link.kind), link.from, link.to),
             fmt::format("links/{}", i));
  }
}

} // namespace reckon::documents
