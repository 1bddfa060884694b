// SPDX-License-Identifier: Apache-2.0
#include "network/canonical.hpp"

#include "core/indices.hpp"
#include "stats/random.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

namespace reckon {
namespace {

using Hash = std::uint64_t;

constexpr Hash mixed(Hash a, Hash b) {
  return reckon::mixed(reckon::mixed(a) ^ b);
}
Hash bits_of(double number) {
  return std::bit_cast<Hash>(number == 0 ? 0.0 : number); // one zero
}

/// What has a colour. The order is that in which classes are told apart.
enum class Kind : std::uint8_t { place, machine, node, station };

/// Something that several of them take part in: a way with the places at its ends and the stations
/// that it uses, a link of the graph, a sum, ...
enum class Relation : std::uint8_t { way, add, exit, group, link, machine, node, nic };
/// As what they do. Each use has a role of its own, by its amount and its place in the order.
enum Role : std::uint8_t { from, to, use };

/// Who takes part in what. Does not change while colours do.
class Relations {
public:
  struct Part {
    std::uint32_t of; ///< relation, or vertex
    Hash role;
  };

  explicit Relations(const Network& network) {
    const std::size_t places = network.places.size();
    m_first[1] = places;
    m_first[2] = m_first[1] + network.machines.size();
    m_first[3] = m_first[2] + network.nodes;
    m_first[4] = m_first[3] + network.stations.size();
    for (std::size_t u = 0; u < places; ++u) {
      for (std::size_t v = 0; v < places; ++v) {
        if (network.ways[u][v]) {
          begin(Relation::way);
          const double latency_s = network.latency_of(u, v);
          join(Kind::place, u, latency_s > 0 ? mixed(from, bits_of(latency_s)) : Hash{from});
          join(Kind::place, v, to);
          join(*network.ways[u][v]);
        }
      }
      begin(Relation::add);
      join(Kind::place, u, from);
      join(network.add[u]);
      for (std::size_t i = 0; i < network.exits[u].size(); ++i) {
        begin(Relation::exit);
        join(Kind::place, u, i);
        join(network.exits[u][i].uses);
      }
      begin(Relation::machine);
      join(Kind::place, u, from);
      join(Kind::machine, network.places[u].machine, to);
      begin(Relation::node);
      join(Kind::place, u, from);
      join(Kind::node, network.node_of[u], to);
    }
    for (const std::vector<std::size_t>& group : network.groups) {
      begin(Relation::group);
      for (const std::size_t place : group) {
        join(Kind::place, place, from);
      }
    }
    for (const GraphLink& link : network.links) {
      begin(Relation::link);
      join(Kind::node, link.from, from);
      join(Kind::node, link.to, to);
      if (link.station) {
        join(Kind::station, *link.station, use);
      }
    }
    for (const std::size_t nic : network.nic_nodes) {
      begin(Relation::nic);
      join(Kind::node, nic, from);
    }
    m_begin.push_back(m_parts.size());
    turn_round();
  }

  [[nodiscard]] std::size_t first(Kind kind) const {
    return m_first[static_cast<std::size_t>(kind)];
  }
  [[nodiscard]] std::size_t end(Kind kind) const {
    return m_first[static_cast<std::size_t>(kind) + 1];
  }
  [[nodiscard]] std::size_t vertices() const { return m_first[4]; }
  [[nodiscard]] std::size_t size() const { return m_kinds.size(); }
  [[nodiscard]] Relation kind(std::size_t relation) const { return m_kinds[relation]; }
  /// Who takes part in a relation.
  [[nodiscard]] std::span<const Part> parts(std::size_t relation) const {
    return {&m_parts[m_begin[relation]], m_begin[relation + 1] - m_begin[relation]};
  }
  /// What a vertex takes part in.
  [[nodiscard]] std::span<const Part> relations(std::size_t vertex) const {
    return {m_of.data() + m_of_begin[vertex], m_of_begin[vertex + 1] - m_of_begin[vertex]};
  }

private:
  void begin(Relation kind) {
    m_kinds.push_back(kind);
    m_begin.push_back(m_parts.size());
  }
  void join(Kind kind, std::size_t number, Hash role) {
    m_parts.push_back({static_cast<std::uint32_t>(first(kind) + number), role});
  }
  void join(const Uses& uses) {
    for (std::size_t i = 0; i < uses.size(); ++i) {
      join(Kind::station, uses[i].station, mixed(use + i, bits_of(uses[i].amount)));
    }
  }
  void turn_round() {
    m_of_begin.assign(vertices() + 1, 0);
    for (const Part& part : m_parts) {
      ++m_of_begin[part.of + 1];
    }
    std::partial_sum(m_of_begin.begin(), m_of_begin.end(), m_of_begin.begin());
    m_of.resize(m_parts.size());
    std::vector<std::size_t> next(m_of_begin.begin(), m_of_begin.end() - 1);
    for (std::size_t relation = 0; relation < size(); ++relation) {
      for (const Part& part : parts(relation)) {
        m_of[next[part.of]++] = {static_cast<std::uint32_t>(relation), part.role};
      }
    }
  }

  std::array<std::size_t, 5> m_first{};
  std::vector<Relation> m_kinds;
  std::vector<std::size_t> m_begin, m_of_begin;
  std::vector<Part> m_parts, m_of;
};

/// Colours, and for every vertex a hash of the colours of all that it takes part in something with.
/// Numbers of colours, too, depend on nothing but what the vertices are.
class Colours {
public:
  /// `looks`: what tells a vertex apart by itself.
  Colours(const Relations& relations, const std::vector<Hash>& looks)
      : m_relations(&relations), m_colour(relations.vertices()), m_sum(relations.vertices()),
        m_seen(relations.size()) {
    std::map<std::pair<std::size_t, Hash>, std::vector<std::uint32_t>> classes;
    for (const Kind kind : {Kind::place, Kind::machine, Kind::node, Kind::station}) {
      for (std::size_t v = relations.first(kind); v < relations.end(kind); ++v) {
        classes[{static_cast<std::size_t>(kind), looks[v]}].push_back(
            static_cast<std::uint32_t>(v));
      }
    }
    for (auto& [look, members] : classes) {
      for (const std::uint32_t v : members) {
        m_colour[v] = static_cast<std::uint32_t>(m_classes.size());
      }
      m_classes.push_back(std::move(members));
    }
    for (std::size_t r = 0; r < relations.size(); ++r) {
      m_seen[r] = reckon::mixed(static_cast<Hash>(relations.kind(r)));
      for (const Relations::Part& part : relations.parts(r)) {
        m_seen[r] += mixed(part.role, m_colour[part.of]);
      }
      for (const Relations::Part& part : relations.parts(r)) {
        m_sum[part.of] += mixed(part.role, m_seen[r]);
      }
    }
    m_touched.resize(m_classes.size());
    std::iota(m_touched.begin(), m_touched.end(), 0U);
    refine();
  }

  [[nodiscard]] std::uint32_t of(std::size_t vertex) const { return m_colour[vertex]; }
  [[nodiscard]] const std::vector<std::uint32_t>& members(std::size_t colour) const {
    return m_classes[colour];
  }
  /// The smallest class of more than one vertex from `first` to before `end`; the lower colour
  /// among equals.
  [[nodiscard]] std::optional<std::size_t> ambiguous(std::size_t first, std::size_t end) const {
    std::optional<std::size_t> best;
    for (std::size_t c = 0; c < m_classes.size(); ++c) {
      const std::size_t size = m_classes[c].size();
      if (size > 1 && m_classes[c].front() >= first && m_classes[c].front() < end &&
          (!best || size < m_classes[*best].size())) {
        best = c;
      }
    }
    return best;
  }
  /// Gives one vertex of a class a colour of its own.
  void single_out(std::uint32_t vertex) {
    std::vector<std::uint32_t>& members = m_classes[m_colour[vertex]];
    members.erase(std::find(members.begin(), members.end(), vertex));
    m_classes.push_back({vertex});
    recolour({{vertex, static_cast<std::uint32_t>(m_classes.size() - 1)}});
    refine();
  }
  /// The same of colourings of networks that differ in numbers only.
  [[nodiscard]] Hash signature() const {
    Hash all = m_classes.size();
    for (std::size_t v = 0; v < m_colour.size(); ++v) {
      all += mixed(m_colour[v], m_sum[v]);
    }
    return all;
  }

private:
  using Change = std::pair<std::uint32_t, std::uint32_t>; // vertex, new colour

  /// Splits classes until all members of each see the same.
  void refine() {
    while (!m_touched.empty()) {
      std::vector<std::uint32_t> classes = std::move(m_touched);
      m_touched.clear();
      std::sort(classes.begin(), classes.end());
      classes.erase(std::unique(classes.begin(), classes.end()), classes.end());
      std::vector<Change> changes;
      for (const std::uint32_t c : classes) {
        split(c, changes);
      }
      recolour(changes);
    }
  }

  /// The most members keep the colour: what does not change costs nothing.
  void split(std::uint32_t colour, std::vector<Change>& changes) {
    const std::vector<std::uint32_t>& all = m_classes[colour];
    if (std::all_of(all.begin(), all.end(),
                    [&](std::uint32_t v) { return m_sum[v] == m_sum[all.front()]; })) {
      return;
    }
    std::map<Hash, std::vector<std::uint32_t>> parts;
    for (const std::uint32_t v : all) {
      parts[m_sum[v]].push_back(v);
    }
    const auto most =
        std::max_element(parts.begin(), parts.end(), [](const auto& a, const auto& b) {
          return a.second.size() < b.second.size();
        });
    m_classes[colour] = std::move(most->second);
    parts.erase(most);
    for (auto& [sum, members] : parts) {
      for (const std::uint32_t v : members) {
        changes.emplace_back(v, static_cast<std::uint32_t>(m_classes.size()));
      }
      m_classes.push_back(std::move(members));
    }
  }

  void recolour(const std::vector<Change>& changes) {
    std::vector<std::pair<std::uint32_t, Hash>> before; // relations that see the changes
    for (const auto& [vertex, colour] : changes) {
      for (const Relations::Part& part : m_relations->relations(vertex)) {
        before.emplace_back(part.of, m_seen[part.of]);
        m_seen[part.of] += mixed(part.role, colour) - mixed(part.role, m_colour[vertex]);
      }
      m_colour[vertex] = colour;
    }
    std::stable_sort(before.begin(), before.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    for (std::size_t i = 0; i < before.size(); ++i) {
      if (i > 0 && before[i].first == before[i - 1].first) {
        continue; // the first one has what was seen before all changes
      }
      for (const Relations::Part& part : m_relations->parts(before[i].first)) {
        m_sum[part.of] +=
            mixed(part.role, m_seen[before[i].first]) - mixed(part.role, before[i].second);
        if (m_classes[m_colour[part.of]].size() > 1) {
          m_touched.push_back(m_colour[part.of]);
        }
      }
    }
  }

  const Relations* m_relations;
  std::vector<std::uint32_t> m_colour;
  std::vector<Hash> m_sum, m_seen; ///< by vertex, by relation
  std::vector<std::vector<std::uint32_t>> m_classes;
  std::vector<std::uint32_t> m_touched; ///< classes whose members may see different things now
};

/// What tells places, machines, nodes and stations apart without looking at others.
std::vector<Hash> looks_of(const Network& network, const Relations& relations) {
  std::vector<Hash> looks(relations.vertices(), 0);
  for (std::size_t p = 0; p < network.places.size(); ++p) {
    const Place& place = network.places[p];
    const bool root = has_root(network.collective) && network.root == p;
    looks[p] = (place.worker ? 0U : 4U) + (place.memory ? 2U : 0U) + (root ? 0U : 1U);
  }
  for (std::size_t s = 0; s < network.stations.size(); ++s) {
    const Station& station = network.stations[s];
    Hash& look = looks[relations.first(Kind::station) + s];
    for (const double number : {station.bytes_per_second, station.background,
                                station.low_bytes_per_second, station.high_bytes_per_second}) {
      look = mixed(look, bits_of(number));
    }
    for (const auto& [bytes, seconds] : station.busy.points()) {
      look = mixed(look, mixed(bits_of(bytes), bits_of(seconds)));
    }
  }
  return looks;
}

/// Until no two vertices have the same colour.
void tell_apart(Colours& colours, const Relations& relations, std::size_t places) {
  // A trial costs about as much as the ways of a place, and a copy of all that is seen.
  std::size_t trials = (std::size_t{1} << 22U) / (places * places + 1);
  for (const Kind kind : {Kind::place, Kind::machine, Kind::node, Kind::station}) {
    while (const auto smallest = colours.ambiguous(relations.first(kind), relations.end(kind))) {
      const std::vector<std::uint32_t> members = colours.members(*smallest);
      if (kind != Kind::place || members.size() > trials) {
        colours.single_out(members.front());
        continue;
      }
      trials -= members.size();
      std::optional<Colours> best;
      for (const std::uint32_t vertex : members) {
        Colours trial = colours;
        trial.single_out(vertex);
        if (!best || trial.signature() < best->signature()) {
          best = std::move(trial);
        }
      }
      colours = std::move(*best);
    }
  }
}

/// By old number: the new one, in the order of keys.
template <class Key>
std::vector<std::size_t> order_by(std::size_t size, Key key) {
  std::vector<std::size_t> order = indices(size), now(size);
  std::ranges::sort(order, {}, key);
  for (std::size_t i = 0; i < size; ++i) {
    now[order[i]] = i;
  }
  return now;
}

template <class T>
void move_to(std::vector<T>& values, const std::vector<std::size_t>& now) {
  std::vector<T> out(values.size());
  for (std::size_t i = 0; i < values.size(); ++i) {
    out[now[i]] = std::move(values[i]);
  }
  values = std::move(out);
}

void renumber(std::vector<std::size_t>& numbers, const std::vector<std::size_t>& now) {
  for (std::size_t& number : numbers) {
    number = now[number];
  }
  std::sort(numbers.begin(), numbers.end());
}

void renumber_stations(Network& network, const std::vector<std::size_t>& now) {
  const auto in_uses = [&](Uses& uses) {
    for (Use& use : uses) {
      use.station = now[use.station];
    }
  };
  const auto in_ways = [&](WaysBetween& all) {
    for (std::vector<std::optional<Uses>>& ways : all) {
      for (std::optional<Uses>& way : ways) {
        if (way) {
          in_uses(*way);
        }
      }
    }
  };
  in_ways(network.ways);
  std::ranges::for_each(network.lane_ways, in_ways);
  std::ranges::for_each(network.add, in_uses);
  for (std::vector<Exit>& exits : network.exits) {
    for (Exit& exit : exits) {
      in_uses(exit.uses);
    }
  }
  for (GraphLink& link : network.links) {
    link.station = link.station ? std::optional(now[*link.station]) : std::nullopt;
  }
  move_to(network.stations, now);
}

void renumber_places(Network& network, const std::vector<std::size_t>& now) {
  const auto move_both = [&](auto& between) {
    for (auto& row : between) {
      move_to(row, now);
    }
    move_to(between, now);
  };
  move_both(network.ways);
  std::ranges::for_each(network.lane_ways, move_both);
  move_both(network.latency_s);
  for (std::vector<std::size_t>& group : network.groups) {
    renumber(group, now);
  }
  std::sort(network.groups.begin(), network.groups.end());
  move_to(network.places, now);
  move_to(network.add, now);
  move_to(network.exits, now);
  move_to(network.node_of, now);
  if (has_root(network.collective)) {
    network.root = now[network.root];
  }
}

/// After the stations.
void renumber_nodes(Network& network, const std::vector<std::size_t>& now) {
  for (GraphLink& link : network.links) {
    link = {now[link.from], now[link.to], link.station};
  }
  std::ranges::sort(network.links, {}, [](const GraphLink& link) {
    return std::tuple(link.from, link.to, link.station);
  });
  for (std::size_t& node : network.node_of) {
    node = now[node];
  }
  renumber(network.nic_nodes, now);
}

} // namespace

CanonicalNetwork canonical_order(Network network) {
  const Relations relations(network);
  Colours colours(relations, looks_of(network, relations));
  tell_apart(colours, relations, network.places.size());
  const auto by_colour = [&](Kind kind) {
    return [&, first = relations.first(kind)](std::size_t i) { return colours.of(first + i); };
  };
  CanonicalNetwork out;
  out.machine_now = order_by(network.machines.size(), by_colour(Kind::machine));
  out.place_now = order_by(network.places.size(), [&](std::size_t i) {
    const Place& place = network.places[i];
    return std::tuple(!place.worker, out.machine_now[place.machine], colours.of(i));
  });
  renumber_stations(network, order_by(network.stations.size(), by_colour(Kind::station)));
  renumber_places(network, out.place_now);
  renumber_nodes(network, order_by(network.nodes, by_colour(Kind::node)));
  for (Place& place : network.places) {
    place.machine = out.machine_now[place.machine];
  }
  move_to(network.machines, out.machine_now);
  out.network = std::move(network);
  return out;
}

} // namespace reckon
