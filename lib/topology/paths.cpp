// SPDX-License-Identifier: Apache-2.0
#include "topology/paths.hpp"

#include "core/error.hpp"
#include "topology/gpu_models.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <memory>
#include <unordered_map>

namespace reckon {
namespace {

using Object = TopologyObject;
using Chain = std::vector<const Object*>;

bool is_device(const Object& o) {
  return o.kind == ObjectKind::gpu || o.kind == ObjectKind::nic ||
         o.kind == ObjectKind::memory_device;
}

bool is_endpoint(const Object& o) {
  return is_device(o) || o.kind == ObjectKind::numa_node;
}

/// "0000:17:00" of "0000:17:00.1"
std::string_view slot_of(std::string_view pci_address) {
  return pci_address.substr(0, pci_address.rfind('.'));
}

bool port_of_one_card(const Object& bridge, const Chain& children) {
  return bridge.pci_address.empty() && children.size() > 1 &&
         std::all_of(children.begin(), children.end(), [&](const Object* o) {
           return is_device(*o) && !o->pci_address.empty() &&
                  slot_of(o->pci_address) == slot_of(children.front()->pci_address);
         });
}

/// A topology made fast to walk.
class Walker {
public:
  explicit Walker(const Topology& topology) : m_topology(topology) {
    for (const Object& o : topology.objects) {
      m_by_id.emplace(o.id, &o);
    }
    for (const Object& o : topology.objects) {
      const auto parent = m_by_id.find(o.parent);
      m_parent[&o] = parent == m_by_id.end() ? nullptr : parent->second;
      if (parent != m_by_id.end()) {
        m_children[parent->second].push_back(&o);
      }
    }
    for (const PeerLink& link : topology.links) {
      if (link.kind != PeerLinkKind::socket) {
        const Object *const a = find(link.from), *const b = find(link.to);
        m_joined[ordered(a, b)] += link.count;
      }
    }
  }

  [[nodiscard]] const Object* find(std::string_view id) const {
    const auto it = m_by_id.find(id);
    return it == m_by_id.end() ? nullptr : it->second;
  }

  [[nodiscard]] const Object& at(std::string_view id) const {
    const Object* const found = find(id);
    if (found == nullptr) {
      fail(ErrorKind::input, fmt::format("the topology has no object \"{}\"", id));
    }
    return *found;
  }

  [[nodiscard]] const Object* parent(const Object& o) const { return m_parent.at(&o); }

  [[nodiscard]] const Chain& children(const Object& o) const {
    static const Chain none;
    const auto it = m_children.find(&o);
    return it == m_children.end() ? none : it->second;
  }

  /// From `o` itself up to its machine.
  [[nodiscard]] Chain up(const Object& o) const {
    Chain chain;
    for (const Object* at = &o; at != nullptr; at = parent(*at)) {
      chain.push_back(at);
    }
    return chain;
  }

  [[nodiscard]] const Object& machine(const Object& o) const { return *up(o).back(); }

  [[nodiscard]] bool contains(const Object& outer, const Object& inner) const {
    const Chain chain = up(inner);
    return std::find(chain.begin(), chain.end(), &outer) != chain.end();
  }

  /// Everything that `o` contains, itself among it.
  [[nodiscard]] Chain below(const Object& o, ObjectKind kind) const {
    Chain found;
    if (o.kind == kind) {
      found.push_back(&o);
    }
    for (const Object* child : children(o)) {
      const Chain deeper = below(*child, kind);
      found.insert(found.end(), deeper.begin(), deeper.end());
    }
    return found;
  }

  /// The NUMA node whose memory is next to `o`; nullptr when the tree leaves that open.
  [[nodiscard]] const Object* home(const Object& o) const {
    for (const Object* at : up(o)) {
      if (at->kind == ObjectKind::numa_node) {
        return at;
      }
      if (at->kind == ObjectKind::package || at->kind == ObjectKind::machine) {
        const Chain nodes = below(*at, ObjectKind::numa_node);
        if (nodes.size() == 1) {
          return nodes.front();
        }
        if (nodes.size() > 1) {
          return nullptr;
        }
      }
    }
    return nullptr;
  }

  [[nodiscard]] const Object* package(const Object& o) const {
    for (const Object* at : up(o)) {
      if (at->kind == ObjectKind::package) {
        return at;
      }
    }
    return nullptr;
  }

  [[nodiscard]] bool is_switch(const Object& o) const {
    return o.kind == ObjectKind::pci_bridge && !port_of_one_card(o, children(o));
  }

  /// The objects of the way through the tree, both ends among them, and the uppermost one.
  struct TreeWay {
    Chain objects;
    const Object* top = nullptr;
  };
  [[nodiscard]] TreeWay tree_way(const Object& from, const Object& to) const {
    Chain ascent = up(from);
    Chain descent = up(to);
    TreeWay way;
    while (!ascent.empty() && !descent.empty() && ascent.back() == descent.back()) {
      way.top = ascent.back();
      ascent.pop_back();
      descent.pop_back();
    }
    way.objects = std::move(ascent);
    way.objects.push_back(way.top);
    way.objects.insert(way.objects.end(), descent.rbegin(), descent.rend());
    return way;
  }

  /// Between two different NUMA nodes of one machine.
  [[nodiscard]] Chain socket_way(const Object& from, const Object& to) const {
    std::map<const Object*, Chain> next;
    for (const PeerLink& link : m_topology.links) {
      if (link.kind == PeerLinkKind::socket) {
        const Object& a = at(link.from);
        const Object& b = at(link.to);
        next[&a].push_back(&b);
        next[&b].push_back(&a);
      }
    }
    if (!next.empty()) { // the fewest hops; a node and its package are one hop apart as well
      for (const Object* node : below(machine(from), ObjectKind::numa_node)) {
        if (const Object* const around = package(*node)) {
          next[node].push_back(around);
          next[around].push_back(node);
        }
      }
      std::map<const Object*, const Object*> before{{&from, nullptr}};
      std::deque<const Object*> reached{&from};
      while (!reached.empty() && !before.contains(&to)) {
        for (const Object* neighbour : next[reached.front()]) {
          if (before.emplace(neighbour, reached.front()).second) {
            reached.push_back(neighbour);
          }
        }
        reached.pop_front();
      }
      if (before.contains(&to)) {
        Chain way;
        for (const Object* o = &to; o != nullptr; o = before.at(o)) {
          way.insert(way.begin(), o);
        }
        return way;
      }
    }
    const Object* const here = package(from);
    const Object* const there = package(to);
    const auto shared = [&](const Object* p) {
      return p != nullptr && below(*p, ObjectKind::numa_node).size() > 1;
    };
    Chain way{&from};
    if (shared(here)) {
      way.push_back(here);
    }
    if (shared(there) && there != here) {
      way.push_back(there);
    }
    way.push_back(&to);
    return way;
  }

  /// How many NVLinks or xGMI links join the two, and what they pass.
  struct PeerWay {
    int count = 0;
    const Object* over = nullptr; ///< the link switch; nullptr: none
  };
  [[nodiscard]] PeerWay peer_way(const Object& a, const Object& b) const {
    PeerWay way{.count = joined(a, b)};
    if (way.count > 0) {
      return way;
    }
    for (const Object& o : m_topology.objects) {
      if (o.kind == ObjectKind::link_switch) {
        const int count = std::min(joined(a, o), joined(o, b));
        if (count > way.count) {
          way = {count, &o};
        }
      }
    }
    return way;
  }

  [[nodiscard]] Path path(const Object& from, const Object& to, bool without_peer_links) const {
    if (&machine(from) != &machine(to)) {
      fail(ErrorKind::input, fmt::format("{} and {} are in different machines: no path inside one "
                                         "joins them",
                                         from.id, to.id));
    }
    Path path;
    if (&from == &to) {
      return path;
    }
    if (const PeerWay way = peer_way(from, to); way.count > 0 && !without_peer_links) {
      path.path_class = PathClass::nv;
      path.peer_links = way.count;
      append(path, way.over == nullptr ? Chain{&from, &to} : Chain{&from, way.over, &to});
      return path;
    }
    const Object* const here = home(from);
    const Object* const there = home(to);
    if (here != nullptr && there != nullptr && here != there) {
      path.path_class = PathClass::sys;
      append(path, tree_way(from, *here).objects);
      append(path, socket_way(*here, *there));
      append(path, tree_way(*there, to).objects);
      return path;
    }
    const TreeWay way = tree_way(from, to);
    append(path, way.objects);
    path.path_class = class_of(way, here != nullptr && here == there);
    return path;
  }

  [[nodiscard]] const Topology& topology() const { return m_topology; }

private:
  [[nodiscard]] int joined(const Object& a, const Object& b) const {
    const auto found = m_joined.find(ordered(&a, &b));
    return found == m_joined.end() ? 0 : found->second;
  }

  using Ends = std::pair<const Object*, const Object*>;
  static Ends ordered(const Object* a, const Object* b) {
    return std::less<>()(b, a) ? Ends(b, a) : Ends(a, b);
  }

  static void append(Path& path, const Chain& way) {
    for (std::size_t i = 1; i < way.size(); ++i) {
      path.links.push_back({way[i - 1]->id, way[i]->id});
    }
  }

  /// Of a way within the tree. `one_node`: both ends are next to the same NUMA node.
  [[nodiscard]] PathClass class_of(const TreeWay& way, bool one_node) const {
    const auto inner = [&](auto counts) {
      return std::count_if(way.objects.begin(), way.objects.end(), counts);
    };
    const auto host_bridges =
        inner([](const Object* o) { return o->kind == ObjectKind::host_bridge; });
    if (way.top->kind == ObjectKind::pci_bridge || is_device(*way.top)) {
      return inner([this](const Object* o) { return is_switch(*o); }) <= 1 ? PathClass::pix
                                                                           : PathClass::pxb;
    }
    if (way.top->kind == ObjectKind::host_bridge) {
      return PathClass::phb;
    }
    if (!one_node && below(machine(*way.top), ObjectKind::numa_node).size() > 1) {
      return PathClass::sys; // who knows
    }
    return host_bridges > 1 ? PathClass::node : PathClass::phb;
  }

  const Topology& m_topology;
  std::unordered_map<std::string_view, const Object*> m_by_id;
  std::unordered_map<const Object*, const Object*> m_parent;
  std::unordered_map<const Object*, Chain> m_children;
  std::map<Ends, int> m_joined; ///< peer links
};

Chain endpoints(const Walker& walker, std::string_view machine) {
  const Object& root = walker.at(machine);
  Chain found;
  for (const ObjectKind kind :
       {ObjectKind::gpu, ObjectKind::memory_device, ObjectKind::nic, ObjectKind::numa_node}) {
    for (const Object& o : walker.topology().objects) {
      if (o.kind == kind && is_endpoint(o) && walker.contains(root, o)) {
        found.push_back(&o);
      }
    }
  }
  return found;
}

bool joins(const PeerLink& peer, const LinkEnd& link) {
  return (peer.from == link.from && peer.to == link.to) ||
         (peer.from == link.to && peer.to == link.from);
}

} // namespace

std::string_view name_of(PathClass path_class) {
  constexpr std::array<std::string_view, 7> k_names{"X", "NV", "PIX", "PXB", "PHB", "NODE", "SYS"};
  return k_names.at(static_cast<std::size_t>(path_class));
}

std::string LinkEnd::text() const {
  return from + " > " + to;
}

std::string Path::text() const {
  std::string text(name_of(path_class));
  return path_class == PathClass::nv ? text + std::to_string(peer_links) : text;
}

Path path_between(const Topology& topology, std::string_view from, std::string_view to,
                  bool without_peer_links) {
  return paths_of(topology, without_peer_links)(from, to);
}

PathOf paths_of(const Topology& topology, bool without_peer_links) {
  return [&topology, without_peer_links, walker = std::shared_ptr<const Walker>()](
             std::string_view from, std::string_view to) mutable {
    walker = walker ? walker : std::make_shared<const Walker>(topology);
    return walker->path(walker->at(from), walker->at(to), without_peer_links);
  };
}

bool in_one_machine(const Topology& topology, std::string_view from, std::string_view to) {
  const auto machine = [&](std::string_view id) {
    const TopologyObject* object = topology.find(id);
    while (object != nullptr && !object->parent.empty()) {
      object = topology.find(object->parent);
    }
    return object;
  };
  return machine(from) != nullptr && machine(from) == machine(to);
}

std::optional<PeerLinkKind> peer_link_kind(const Topology& topology, const LinkEnd& link) {
  const auto peer =
      std::ranges::find_if(topology.links, [&](const PeerLink& p) { return joins(p, link); });
  if (peer != topology.links.end()) {
    return peer->kind;
  }
  const TopologyObject *a = topology.find(link.from), *b = topology.find(link.to);
  return a->parent == b->id || b->parent == a->id ? std::nullopt
                                                  : std::optional(PeerLinkKind::socket);
}

double described_bytes_per_second(const Topology& topology, const LinkEnd& link) {
  double sum = 0;
  bool known = false;
  for (const PeerLink& peer : topology.links) {
    if (joins(peer, link)) {
      sum += peer.bytes_per_second.value_or(0);
      known = true;
    }
  }
  if (known) {
    return sum;
  }
  const TopologyObject* a = topology.find(link.from);
  const TopologyObject* b = topology.find(link.to);
  if (a == nullptr || b == nullptr) {
    return 0;
  }
  const TopologyObject* const child = a->parent == b->id ? a : (b->parent == a->id ? b : nullptr);
  if (child == nullptr) {
    return 0;
  }
  if (child->pcie) {
    return child->pcie->bytes_per_second();
  }
  if (child->pcie_bytes_per_second) {
    return *child->pcie_bytes_per_second;
  }
  // Of a NIC this would be its network port.
  return child->kind == ObjectKind::nic ? 0 : child->link_bytes_per_second.value_or(0);
}

std::vector<std::string> endpoints_of(const Topology& topology, std::string_view machine) {
  std::vector<std::string> ids;
  for (const Object* o : endpoints(Walker(topology), machine)) {
    ids.push_back(o->id);
  }
  return ids;
}

bool is_card_port(const Topology& topology, const TopologyObject& bridge) {
  return bridge.kind == ObjectKind::pci_bridge &&
         port_of_one_card(bridge, topology.children(bridge.id));
}

bool lacks_gpu_links(const Topology& topology, std::string_view machine) {
  const Walker walker(topology);
  const Chain gpus = walker.below(walker.at(machine), ObjectKind::gpu);
  return gpus.size() > 1 &&
         std::any_of(gpus.begin(), gpus.end(),
                     [&](const Object* gpu) {
                       const GpuModel* model = gpu_model(gpu->name);
                       return gpu->parent != machine && (model == nullptr || model->nvlinks > 0);
                     }) &&
         std::none_of(topology.links.begin(), topology.links.end(), [&](const PeerLink& link) {
           return link.kind != PeerLinkKind::socket &&
                  std::any_of(gpus.begin(), gpus.end(), [&](const Object* gpu) {
                    return link.from == gpu->id || link.to == gpu->id;
                  });
         });
}

SwitchCensus switch_census(const Topology& topology, std::string_view machine) {
  const Walker walker(topology);
  const auto uppermost = [&](const Object& device) {
    const Object* found = &device;
    for (const Object* o : walker.up(device)) {
      found = o->kind == ObjectKind::pci_bridge ? o : found;
    }
    return found;
  };
  SwitchCensus census;
  std::vector<const Object*> counted;
  for (const Object* gpu : walker.below(walker.at(machine), ObjectKind::gpu)) {
    const Object* const top = uppermost(*gpu);
    if (std::find(counted.begin(), counted.end(), top) != counted.end()) {
      continue;
    }
    counted.push_back(top);
    (walker.below(*top, ObjectKind::nic).empty() ? census.gpus_only : census.with_nic)
        .push_back(top->id);
  }
  return census;
}

std::vector<SharedLink> shared_links(const Topology& topology, std::string_view machine,
                                     bool without_peer_links) {
  const Walker walker(topology);
  const Chain ends = endpoints(walker, machine);
  std::map<LinkEnd, std::vector<std::pair<std::string, std::string>>> users;
  for (const Object* from : ends) {
    for (const Object* to : ends) {
      if (from != to) {
        for (const LinkEnd& link : walker.path(*from, *to, without_peer_links).links) {
          users[link].emplace_back(from->id, to->id);
        }
      }
    }
  }
  std::vector<SharedLink> shared;
  for (auto& [link, pairs] : users) {
    if (pairs.size() > 1) {
      shared.push_back({link, std::move(pairs)});
    }
  }
  return shared;
}

} // namespace reckon
