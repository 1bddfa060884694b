// SPDX-License-Identifier: Apache-2.0
#include "strategies/forest/schemes.hpp"

#include "core/indices.hpp"
#include "strategies/between.hpp"
#include "strategies/forest/optimum.hpp"
#include "strategies/ring_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

namespace reckon {
namespace {

/// Rates that differ by less, relatively, are the same.
constexpr double k_same_width = 1e-9;
/// With more workers, stars at each of them are left out unless they are asked for.
constexpr std::size_t k_most_stars = 64;

using Group = std::vector<std::size_t>;

std::string names(const Network& model, std::string_view scheme, const Group& endpoints) {
  std::string out(scheme);
  for (const std::size_t endpoint : endpoints) {
    out += " " + model.name_of(endpoint);
  }
  return out;
}

/// How fast one copy alone can be; 0 where none can be made.
double solo(const Network& model, std::size_t from, std::size_t to) {
  if (!model.ways[from][to]) {
    return 0;
  }
  double least = std::numeric_limits<double>::infinity();
  for (const Use& use : *model.ways[from][to]) {
    least = std::min(least, model.stations[use.station].bytes_per_second / use.amount);
  }
  return least;
}

/// The parent of place i of n in a binary tree in which every second place is a leaf: without the
/// lowest one bit, and with the next higher one where that is a place. 0 is the root, with one
/// child.
std::size_t binary_parent(std::size_t i, std::size_t n) {
  const std::size_t bit = i & (~i + 1), without = i ^ bit;
  const std::size_t with_next = without | (bit << 1U);
  return i == 0 ? 0 : with_next < n ? with_next : without;
}

class Namer {
public:
  Namer(const Network& model, std::string_view wanted)
      : m_model(model), m_wanted(wanted), m_endpoints(model.places.size()) {
    for (std::size_t v = 0; v < m_endpoints; ++v) {
      if (model.places[v].memory && !model.exits[v].empty()) {
        m_memories.push_back(v);
      }
    }
  }

  [[nodiscard]] std::vector<NamedScheme> all() {
    scatter();
    if (m_model.machines.size() > 1) {
      ring();
      between_machines();
      parameter_servers();
      return std::move(m_schemes);
    }
    reduce_broadcast();
    cpu_assisted();
    brute_force();
    hierarchical();
    ring();
    return std::move(m_schemes);
  }

private:
  /// Nobody has a parent yet but the root.
  [[nodiscard]] Tree tree(std::size_t root) const {
    Tree out;
    out.up.assign(m_endpoints, -1);
    out.down.assign(m_endpoints, -1);
    join(out, root, root);
    return out;
  }
  static void join(Tree& tree, std::size_t child, std::size_t parent) {
    tree.up[child] = static_cast<std::int64_t>(parent);
    tree.down[child] = static_cast<std::int64_t>(parent);
  }

  static void append(std::vector<Tree>& to, const std::vector<Tree>& more) {
    to.insert(to.end(), more.begin(), more.end());
  }

  /// What the collective takes of a scheme for all-reduce: the halves of those trees that have a
  /// root of its. None where it would need roots that the scheme has not, or not equally often.
  [[nodiscard]] std::vector<Tree> halved(std::vector<Tree> trees) const {
    const std::vector<double> wanted = m_model.root_shares();
    std::vector<std::size_t> count(wanted.size(), 0);
    std::vector<Tree> out;
    for (Tree& tree : trees) {
      const std::size_t root = root_of(tree);
      if (root < wanted.size() && wanted[root] > 0) {
        halve(m_model, tree);
        ++count[root];
        out.push_back(std::move(tree));
      }
    }
    std::size_t each = 0; // trees that every root has
    for (std::size_t root = 0; root < wanted.size(); ++root) {
      if (wanted[root] > 0) {
        each = each == 0 ? count[root] : each;
        if (count[root] != each || each == 0) {
          return {};
        }
      }
    }
    return out;
  }

  /// `name` with equal shares of the trees, if all are possible; of those that become the same by
  /// halving the first.
  void take(std::string name, std::vector<Tree> trees) {
    if (m_model.collective != Collective::all_reduce) {
      trees = halved(std::move(trees));
      for (const NamedScheme& known : m_schemes) {
        if (known.trees == trees) {
          return;
        }
      }
    }
    const auto possible = [&](const Tree& t) { return is_possible(m_model, t); };
    if (!trees.empty() && std::all_of(trees.begin(), trees.end(), possible)) {
      const std::size_t count = trees.size();
      m_schemes.push_back({std::move(name), std::move(trees),
                           std::vector<double>(count, 1 / static_cast<double>(count))});
    }
  }

  /// The trees with `top` as the place where the sum of all workers comes together: itself the root
  /// where it may be one, and below every memory that may be one in turn where it may not.
  [[nodiscard]] std::vector<Tree> rooted(const Tree& below, std::size_t top) const {
    std::vector<Tree> out;
    for (std::size_t i = 0; i < m_model.exits[top].size(); ++i) {
      out.push_back(below);
      out.back().exit = i;
    }
    if (out.empty()) {
      out = below_memory(below, top);
    }
    return out;
  }

  /// Every way out goes by the memory that has the shortest one to it.
  [[nodiscard]] std::vector<Tree> below_memory(const Tree& below, std::size_t top) const {
    std::vector<Tree> out;
    for (const auto& [memory, exit] : exits_by_nic()) {
      if (below.up[memory] >= 0) {
        continue; // it already is a part of the tree
      }
      Tree whole = below;
      join(whole, top, memory);
      join(whole, memory, memory);
      whole.exit = exit;
      out.push_back(std::move(whole));
    }
    return out;
  }

  /// For each NIC the memory, and its exit, that uses the fewest resources on the way.
  [[nodiscard]] std::vector<std::pair<std::size_t, std::size_t>> exits_by_nic() const {
    std::vector<std::string> nics;
    std::vector<std::pair<std::size_t, std::size_t>> out;
    for (const std::size_t memory : m_memories) {
      for (std::size_t i = 0; i < m_model.exits[memory].size(); ++i) {
        const Exit& exit = m_model.exits[memory][i];
        const auto known = std::find(nics.begin(), nics.end(), exit.nic);
        if (known == nics.end()) {
          nics.push_back(exit.nic);
          out.emplace_back(memory, i);
          continue;
        }
        auto& best = out[static_cast<std::size_t>(known - nics.begin())];
        if (exit.uses.size() < m_model.exits[best.first][best.second].uses.size()) {
          best = {memory, i};
        }
      }
    }
    return out;
  }

  [[nodiscard]] std::vector<Tree> star(std::size_t root) const {
    Tree below = tree(root);
    for (std::size_t v = 0; v < m_model.workers; ++v) {
      join(below, v, root);
    }
    return rooted(below, root);
  }

  /// Every worker by the way, over other workers, whose slowest copy is the fastest, then by the
  /// one with the fewest copies: where NVLinks do not join every pair, over those that they join.
  [[nodiscard]] std::vector<Tree> widest(std::size_t root) const {
    struct Way {
      double width = 0;
      std::size_t copies = 0, next = 0;
      bool settled = false;
    };
    std::vector<Way> ways(m_model.workers);
    ways[root] = {std::numeric_limits<double>::infinity(), 0, root, false};
    const auto better = [](double width, std::size_t copies, const Way& than) {
      return width > than.width * (1 + k_same_width) ||
             (width > than.width * (1 - k_same_width) && copies < than.copies);
    };
    for (std::size_t round = 0; round < ways.size(); ++round) {
      std::size_t at = ways.size();
      for (std::size_t v = 0; v < ways.size(); ++v) {
        if (!ways[v].settled && ways[v].width > 0 &&
            (at == ways.size() || better(ways[v].width, ways[v].copies, ways[at]))) {
          at = v;
        }
      }
      if (at == ways.size()) {
        return {}; // some worker cannot be reached
      }
      ways[at].settled = true;
      for (std::size_t v = 0; v < ways.size(); ++v) {
        const double width = std::min({ways[at].width, solo(m_model, v, at), solo(m_model, at, v)});
        if (!ways[v].settled && v != at && width > 0 &&
            better(width, ways[at].copies + 1, ways[v])) {
          ways[v] = {width, ways[at].copies + 1, at, false};
        }
      }
    }
    Tree below = tree(root);
    for (std::size_t v = 0; v < ways.size(); ++v) {
      join(below, v, ways[v].next);
    }
    return rooted(below, root);
  }

  /// Roots take turns: each alone, those of each switch, all.
  void reduce_broadcast() {
    const auto scheme = [&](std::string name, const Group& roots) {
      std::vector<Tree> trees;
      for (const std::size_t root : roots) {
        append(trees, widest(root));
      }
      take(std::move(name), std::move(trees));
    };
    const Group everyone = indices(m_model.workers);
    for (const std::size_t root : everyone) {
      scheme(names(m_model, "reduce_broadcast", {root}), {root});
    }
    if (m_model.groups.size() > 1) {
      for (const Group& group : m_model.groups) {
        if (group.size() > 1) {
          scheme(names(m_model, "reduce_broadcast", group), group);
        }
      }
    }
    if (m_model.workers > 1) {
      scheme("reduce_broadcast all", everyone);
    }
  }

  /// From one root by each other worker in turn to the rest, or back (van de Geijn): what a scatter
  /// and an all-gather do, without a wait between them.
  void scatter() {
    if (!has_root(m_model.collective) || m_model.workers < 3) {
      return;
    }
    std::vector<Tree> trees;
    for (std::size_t head = 0; head < m_model.workers; ++head) {
      if (head != m_model.root) {
        Tree whole = tree(m_model.root);
        for (std::size_t v = 0; v < m_model.workers; ++v) {
          if (v != m_model.root) {
            join(whole, v, v == head ? m_model.root : head);
          }
        }
        trees.push_back(std::move(whole));
      }
    }
    take("scatter", std::move(trees));
  }

  /// One scheme for each memory that may be the root, and one with all of them in turn.
  template <class Trees>
  void by_memory(std::string_view name, const Trees& trees_of) {
    std::vector<Tree> all;
    for (const std::size_t memory : m_memories) {
      if (memory < m_model.workers) {
        continue; // reduce_broadcast
      }
      const std::vector<Tree> trees = trees_of(memory);
      take(names(m_model, name, {memory}), trees);
      append(all, trees);
    }
    if (m_memories.size() > 1) {
      take(fmt::format("{} all", name), std::move(all));
    }
  }

  [[nodiscard]] std::size_t places() const {
    std::size_t most = 0;
    for (const Group& group : m_model.groups) {
      most = std::max(most, group.size());
    }
    return most;
  }

  /// BytePS 4.2.1: one tree for each place under a switch.
  void cpu_assisted() {
    if (places() < 2) {
      return; // brute force
    }
    by_memory("cpu_assisted", [&](std::size_t memory) {
      std::vector<Tree> trees;
      for (std::size_t place = 0; place < places(); ++place) {
        Tree below = tree(memory);
        for (const Group& group : m_model.groups) {
          const std::size_t head = group[place % group.size()];
          for (const std::size_t v : group) {
            join(below, v, v == head ? memory : head);
          }
        }
        append(trees, rooted(below, memory));
      }
      return trees;
    });
  }

  void brute_force() {
    by_memory("brute_force", [&](std::size_t memory) { return star(memory); });
  }

  /// Within each switch first, then between the switches, one tree for each root.
  void hierarchical() {
    if (m_model.groups.size() < 2 || places() < 2) {
      return;
    }
    const auto trees_by = [&](bool staged) {
      std::vector<Tree> trees;
      for (const Group& home : m_model.groups) {
        for (std::size_t place = 0; place < home.size(); ++place) {
          const std::size_t root = home[place];
          const std::size_t relay = staged ? staging_memory(root) : root;
          if (relay == m_endpoints) {
            return std::vector<Tree>{};
          }
          Tree below = tree(root);
          if (staged) {
            join(below, relay, root);
          }
          for (const Group& group : m_model.groups) {
            const std::size_t head = &group == &home ? root : group[place % group.size()];
            for (const std::size_t v : group) {
              if (v != root) {
                join(below, v, v == head ? relay : head);
              }
            }
          }
          append(trees, rooted(below, root));
        }
      }
      return trees;
    };
    take("hierarchical", trees_by(false));
    take("staging", trees_by(true));
  }

  /// The memory over which what other switches have comes to a root: the fastest for it.
  [[nodiscard]] std::size_t staging_memory(std::size_t root) const {
    std::size_t best = m_endpoints;
    for (std::size_t v = m_model.workers; v < m_endpoints; ++v) {
      if (m_model.places[v].memory &&
          (best == m_endpoints || solo(m_model, v, root) > solo(m_model, best, root))) {
        best = v;
      }
    }
    return best;
  }

  using Parents = std::vector<std::int64_t>; ///< by place
  /// The ways to sum in each machine: how many turns there are, and the tree of a machine in a
  /// turn, which goes `below` the place that is returned, where its sum comes together.
  struct InnerScheme {
    std::string name;
    std::size_t turns = 0;
    std::function<std::size_t(std::size_t machine, std::size_t turn, Parents& below)> tree;
  };

  /// What each machine has.
  struct Machines {
    std::vector<Group> workers, memories;   ///< by machine: places
    std::vector<std::vector<Group>> groups; ///< by machine: its workers by switch
    Group working{}, serving{};             ///< machines, and places that only sum
    std::size_t most = 0, per_switch = 0;   ///< workers
    bool with_memories = true;              ///< all that work
  };
  [[nodiscard]] Machines machines() const {
    const std::size_t count = m_model.machines.size();
    Machines out{std::vector<Group>(count), std::vector<Group>(count),
                 std::vector<std::vector<Group>>(count)};
    for (std::size_t v = 0; v < m_endpoints; ++v) {
      const Place& place = m_model.places[v];
      if (place.worker) {
        out.workers[place.machine].push_back(v);
      } else if (place.memory) {
        out.memories[place.machine].push_back(v);
      }
    }
    for (const Group& group : m_model.groups) {
      out.groups[m_model.places[group.front()].machine].push_back(group);
    }
    for (std::size_t m = 0; m < count; ++m) {
      if (out.workers[m].empty()) {
        out.serving.insert(out.serving.end(), out.memories[m].begin(), out.memories[m].end());
        continue;
      }
      out.working.push_back(m);
      out.most = std::max(out.most, out.workers[m].size());
      out.with_memories = out.with_memories && !out.memories[m].empty();
      for (const Group& group : out.groups[m]) {
        out.per_switch = std::max(out.per_switch, group.size());
      }
    }
    return out;
  }

  /// Everywhere the sum of a machine's workers first, then between the machines; by every worker or
  /// place below a switch in turn, so that every NIC has the same to do.
  void between_machines() {
    const Machines all = machines();
    std::vector<InnerScheme> inner;
    inner.push_back({"", all.most, [&](std::size_t m, std::size_t turn, Parents& below) {
                       const std::size_t head = all.workers[m][turn % all.workers[m].size()];
                       for (const std::size_t v : all.workers[m]) {
                         below[v] = static_cast<std::int64_t>(head);
                       }
                       return head;
                     }});
    // First below each switch, then between the switches; and the same into a memory.
    const auto switches = [&](std::size_t m, std::size_t turn, std::size_t head, Parents& below) {
      below[head] = static_cast<std::int64_t>(head);
      const std::size_t place = turn / all.groups[m].size();
      for (const Group& group : all.groups[m]) {
        const auto holds = std::find(group.begin(), group.end(), head) != group.end();
        const std::size_t own = holds ? head : group[place % group.size()];
        for (const std::size_t v : group) {
          below[v] = static_cast<std::int64_t>(v == own ? head : own);
        }
      }
      return head;
    };
    if (all.per_switch > 1) {
      inner.push_back({"switches ", all.most, [&](std::size_t m, std::size_t turn, Parents& below) {
                         const std::vector<Group>& groups = all.groups[m];
                         const Group& home = groups[turn % groups.size()];
                         const std::size_t head = home[turn / groups.size() % home.size()];
                         return switches(m, turn, head, below);
                       }});
    }
    if (all.with_memories && !all.working.empty()) {
      inner.push_back({"memories ", std::max(all.most, all.memories[all.working.front()].size()),
                       [&](std::size_t m, std::size_t turn, Parents& below) {
                         const Group& heads = all.memories[m];
                         return switches(m, turn, heads[turn % heads.size()], below);
                       }});
    }
    for (const InnerScheme& scheme : inner) {
      outer(scheme, all);
    }
  }

  /// One turn of an inner scheme: the head of each machine, and the trees below these.
  struct Turn {
    Group head;
    Parents below;
  };
  /// Adds the tree in which head i hands its sum to the first and gets the result from the second
  /// of parents(i).
  template <class ParentsOf>
  static void add(std::vector<Tree>& to, const Turn& turn, std::size_t root,
                  const ParentsOf& parents) {
    Tree tree{turn.below, turn.below, 0};
    for (std::size_t i = 0; i < turn.head.size(); ++i) {
      const auto [up, down] = parents(i);
      tree.up[turn.head[i]] = static_cast<std::int64_t>(up);
      tree.down[turn.head[i]] = static_cast<std::int64_t>(down);
    }
    tree.up[root] = tree.down[root] = static_cast<std::int64_t>(root);
    to.push_back(std::move(tree));
  }
  /// Two binary trees: the leaves of one are the inner places of the other.
  static void add_double_binary(std::vector<Tree>& to, const Turn& turn) {
    const std::size_t n = turn.head.size();
    for (const bool second : {false, true}) {
      const auto place = [&](std::size_t i) {
        return !second ? i : n % 2 == 0 ? n - 1 - i : (i + 1) % n;
      };
      add(to, turn, turn.head[place(0)], [&](std::size_t i) {
        const std::size_t at = n % 2 == 0 || !second ? place(i) : (i + n - 1) % n;
        const std::size_t parent = turn.head[place(binary_parent(at, n))];
        return std::pair(parent, parent);
      });
    }
  }

  /// Between the heads of the machines: round, each in turn the root, and over those that only sum.
  void outer(const InnerScheme& inner, const Machines& all) {
    const std::size_t n = all.working.size();
    std::vector<Tree> ring, star, binomial, binary, servers;
    Group round; // of the machines
    for (std::size_t number = 0; number < inner.turns; ++number) {
      Turn turn{{}, Parents(m_endpoints, -1)};
      for (const std::size_t m : all.working) {
        turn.head.push_back(inner.tree(m, number, turn.below));
      }
      const Group& head = turn.head;
      if (number == 0) {
        round = ring_order(head);
      }
      for (std::size_t r = 0; r < n; ++r) {
        add(ring, turn, head[r], [&](std::size_t i) {
          const auto at =
              static_cast<std::size_t>(std::find(round.begin(), round.end(), i) - round.begin());
          return std::pair(head[round[(at + 1) % n]], head[round[(at + n - 1) % n]]);
        });
        add(star, turn, head[r], [&](std::size_t) { return std::pair(head[r], head[r]); });
        // The place number i after the root hands on to i without its lowest one bit.
        add(binomial, turn, head[r], [&](std::size_t i) {
          const std::size_t after = (i + n - r) % n;
          const std::size_t to = head[(r + (after & (after - 1))) % n];
          return after == 0 ? std::pair(head[r], head[r]) : std::pair(to, to);
        });
      }
      add_double_binary(binary, turn);
      for (const std::size_t server : all.serving) {
        add(servers, turn, server, [&](std::size_t) { return std::pair(server, server); });
      }
    }
    const bool flat = inner.turns == 1; // each machine is one worker
    const std::string name = flat ? "" : "hierarchical " + inner.name;
    if (!flat || n == 2) { // else ring() has it
      take(name + "ring", std::move(ring));
    }
    if (n > 2) {
      take(name + "binomial", std::move(binomial));
      take(name + "double binary", std::move(binary));
    }
    if (!flat) { // else parameter_servers() has them
      if (n > 2) {
        take(name + "all to all", std::move(star));
      }
      take(name + "servers", std::move(servers));
    }
  }

  /// Each part goes from every worker to one place, and back: a worker (equation 3), a machine that
  /// only sums (equation 2), or both, as the shares are best (equation 6 on any network).
  void parameter_servers() {
    const bool asked =
        m_wanted == "ps_colocated" || m_wanted == "ps_noncolocated" || m_wanted == "byteps_split";
    if (m_model.workers > k_most_stars && !asked) {
      return;
    }
    std::vector<bool> works(m_model.machines.size(), false);
    std::vector<Tree> workers, servers;
    for (std::size_t v = 0; v < m_endpoints; ++v) {
      const Place& place = m_model.places[v];
      works[place.machine] = works[place.machine] || place.worker; // workers are before all others
      if (place.worker || (place.memory && !works[place.machine])) {
        append(place.worker ? workers : servers, star(v));
      }
    }
    take("ps colocated", workers);
    take("ps noncolocated", servers);
    if (m_model.collective == Collective::all_reduce) {
      append(workers, servers);
      take("byteps split", std::move(workers));
      solve_shares();
    }
  }

  /// The best shares of the latest scheme's trees, in the place of equal ones.
  void solve_shares() {
    if (m_schemes.empty() || m_schemes.back().name != "byteps split") {
      return;
    }
    NamedScheme& scheme = m_schemes.back();
    SharesProgram program = program_of(m_model);
    for (const Tree& tree : scheme.trees) {
      program.add(loads_of(m_model, tree));
    }
    const std::vector<double> shares = program.least_work(program.solve());
    std::vector<Tree> trees;
    scheme.shares.clear();
    for (std::size_t t = 0; t < shares.size(); ++t) {
      if (shares[t] > k_same_width) {
        trees.push_back(std::move(scheme.trees[t]));
        scheme.shares.push_back(shares[t]);
      }
    }
    scheme.trees = std::move(trees);
  }

  /// Of places that hand sums on round a ring: the best order that is known, by their numbers among
  /// `places`.
  [[nodiscard]] Group ring_order(const Group& places) const {
    PlayNetwork network = between_places(m_model, places).network;
    const auto impossible = static_cast<std::uint32_t>(network.station_bytes_per_s.size());
    network.station_bytes_per_s.push_back(1); // byte a second
    if (!network.station_busy.empty()) {
      network.station_busy.emplace_back();
    }
    for (std::size_t u = 0; u < places.size(); ++u) {
      for (std::size_t v = 0; v < places.size(); ++v) {
        if (!m_model.ways[places[u]][places[v]]) {
          network.paths[u][v].push_back(impossible);
        }
      }
    }
    return best_ring_order(network, indices(places.size())).ranks;
  }

  /// From every worker on, the workers one after another in one order.
  void ring() {
    const std::size_t n = m_model.workers;
    if (n < 3) {
      return; // reduce_broadcast
    }
    const Group order = ring_order(indices(n));
    std::vector<Tree> trees;
    for (std::size_t end = 0; end < n; ++end) {
      Tree below = tree(order[end]);
      // Up from the one after the end round to the end; down from the end round the same way.
      for (std::size_t i = 1; i < n; ++i) {
        const std::size_t at = order[(end + i) % n];
        below.up[at] = static_cast<std::int64_t>(order[(end + i + 1) % n]);
        below.down[at] = static_cast<std::int64_t>(order[(end + i - 1) % n]);
      }
      append(trees, rooted(below, order[end]));
    }
    take("ring", std::move(trees));
  }

  const Network& m_model;
  std::string_view m_wanted;
  std::size_t m_endpoints;
  std::vector<std::size_t> m_memories; ///< that may be roots
  std::vector<NamedScheme> m_schemes;
};

} // namespace

std::vector<NamedScheme> named_schemes(const Network& model, std::string_view wanted) {
  return Namer(model, wanted).all();
}

} // namespace reckon
