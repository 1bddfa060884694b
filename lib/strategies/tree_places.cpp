// SPDX-License-Identifier: Apache-2.0
#include "strategies/tree_places.hpp"

#include "core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <string>

namespace reckon {
namespace {

constexpr std::uint64_t k_page_bytes = 4096;

/// [rank]: those whose `parent` it is.
std::vector<std::vector<std::uint32_t>> children_of(const std::vector<std::int64_t>& parent) {
  std::vector<std::vector<std::uint32_t>> children(parent.size());
  for (std::uint32_t r = 0; r < parent.size(); ++r) {
    if (parent[r] >= 0 && parent[r] != r) {
      children[static_cast<std::size_t>(parent[r])].push_back(r);
    }
  }
  return children;
}

} // namespace

std::uint64_t slot_bytes(const Plan& plan) {
  return (plan.part_bytes + k_page_bytes - 1) / k_page_bytes * k_page_bytes;
}

TreePlaces tree_places(const Plan& plan, std::size_t number) {
  const SumTree& tree = plan.trees[number];
  const auto refuse = [&](const std::string& problem) {
    fail(ErrorKind::input,
         fmt::format("tree {} of the plan ('{}') {}", number, tree.scheme, problem));
  };
  const auto ranks = static_cast<std::int64_t>(plan.ranks.size());
  std::array<std::int64_t, 2> root{-1, -1};
  for (const bool down : {false, true}) {
    const std::vector<std::int64_t>& parent = down ? tree.down : tree.up;
    if (static_cast<std::int64_t>(parent.size()) != ranks) {
      refuse(fmt::format("names {} ranks of {}", parent.size(), ranks));
    }
    for (std::int64_t r = 0; r < ranks; ++r) {
      std::int64_t at = r, steps = 0;
      while (parent[static_cast<std::size_t>(at)] >= 0 &&
             parent[static_cast<std::size_t>(at)] != at && steps <= ranks) {
        at = parent[static_cast<std::size_t>(at)];
        if (at >= ranks) {
          refuse(fmt::format("hands a sum to rank {}, but there are {}", at, ranks));
        }
        ++steps;
      }
      const bool member = parent[static_cast<std::size_t>(r)] >= 0;
      const bool used = down ? gives(plan.collective) : sums(plan.collective);
      if (used && !member && plan.ranks[static_cast<std::size_t>(r)].worker) {
        refuse(fmt::format("leaves out worker {}", r));
      }
      if (member && (steps > ranks || parent[static_cast<std::size_t>(at)] != at)) {
        refuse(fmt::format("has no way from rank {} to the root", r));
      }
      if (member && root[down] >= 0 && root[down] != at) {
        refuse(fmt::format("has two roots, {} and {}", root[down], at));
      }
      root[down] = member ? at : root[down];
    }
  }
  if (root[0] != root[1]) {
    refuse(fmt::format("sums at rank {} but gives back from rank {}", root[0], root[1]));
  }
  TreePlaces places{static_cast<std::uint32_t>(root[0]), children_of(tree.up),
                    children_of(tree.down)};
  for (std::uint32_t r = 0; r < plan.ranks.size(); ++r) {
    const bool hands = tree.up[r] < 0 || !places.up_children[r].empty();
    const bool takes = tree.down[r] < 0 || r == places.root || !places.down_children[r].empty();
    if (!plan.ranks[r].worker && !(hands && takes)) {
      refuse(fmt::format("has rank {} at its end, which has no gradient", r));
    }
  }
  return places;
}

PlanTrees::PlanTrees(const Plan& plan, Windows windows)
    : m_plan(plan), m_shape(!plan.trees.empty()       ? Shape::listed
                            : plan.strategy == "ring" ? Shape::chains
                                                      : Shape::stars),
      m_place(plan.ranks.size()), m_window(std::max<std::uint64_t>(1, plan.window_parts)),
      m_slot_bytes(slot_bytes(plan)), m_by_tree(windows == Windows::of_trees),
      m_lives(m_shape == Shape::listed && m_by_tree &&
              std::ranges::all_of(plan.trees,
                                  [](const SumTree& tree) { return tree.life_seconds > 0; })) {
  if ((plan.parts.size() + 1) * (plan.ranks.size() + 1) >=
      std::numeric_limits<std::uint32_t>::max()) {
    fail(ErrorKind::input,
         fmt::format(
             "the plan has {} parts for {} ranks, too many for 32-bit tags; use a larger part size",
             plan.parts.size(), plan.ranks.size()));
  }
  for (std::size_t t = 0; t < plan.trees.size(); ++t) {
    m_trees.push_back(tree_places(plan, t));
  }
  for (std::uint32_t r = 0; r < plan.ranks.size(); ++r) {
    if (plan.ranks[r].worker) {
      m_workers.push_back(r);
    }
  }
  std::ranges::transform(plan.ring_order, m_workers.begin(), narrow);
  for (std::uint32_t i = 0; i < m_workers.size(); ++i) {
    m_place[m_workers[i]] = i;
  }
  for (const std::uint64_t lane : plan.parts.lane) {
    m_lanes = std::max(m_lanes, lane + 1);
  }
  number_slots();
  place_slots();
}

std::size_t PlanTrees::tree(std::size_t p) const {
  return m_shape == Shape::listed ? m_plan.parts.tree[p] : m_plan.parts.server[p];
}

std::size_t PlanTrees::trees() const {
  return m_shape == Shape::listed ? m_trees.size() : m_plan.ranks.size();
}

/// Of a worker in the ring.
std::uint32_t PlanTrees::neighbour(std::uint32_t rank, bool next) const {
  const std::size_t ring = m_workers.size();
  return m_workers[(m_place[rank] + (next ? 1 : ring - 1)) % ring];
}

std::int64_t PlanTrees::up(std::uint32_t rank, std::uint32_t p) const {
  if (m_shape == Shape::listed) {
    return m_plan.trees[tree(p)].up[rank];
  }
  if (rank != root(p) && !m_plan.ranks[rank].worker) {
    return -1;
  }
  return rank == root(p) || m_shape == Shape::stars ? root(p) : neighbour(rank, true);
}

std::int64_t PlanTrees::down(std::uint32_t rank, std::uint32_t p) const {
  if (m_shape == Shape::listed) {
    return m_plan.trees[tree(p)].down[rank];
  }
  return m_shape == Shape::chains && rank != root(p) && m_plan.ranks[rank].worker
             ? neighbour(rank, false)
             : up(rank, p);
}

std::vector<std::uint32_t> PlanTrees::up_children(std::uint32_t rank, std::uint32_t p) const {
  if (m_shape == Shape::listed) {
    return m_trees[tree(p)].up_children[rank];
  }
  std::vector<std::uint32_t> children;
  if (m_shape == Shape::chains && rank != neighbour(root(p), true)) {
    children.push_back(neighbour(rank, false));
  } else if (m_shape == Shape::stars && rank == root(p)) {
    children = m_workers;
    std::erase(children, rank);
  }
  return children;
}

std::vector<std::uint32_t> PlanTrees::down_children(std::uint32_t rank, std::uint32_t p) const {
  if (m_shape == Shape::listed) {
    return m_trees[tree(p)].down_children[rank];
  }
  if (m_shape == Shape::stars) {
    return up_children(rank, p);
  }
  return rank == neighbour(root(p), false) ? std::vector<std::uint32_t>()
                                           : std::vector{neighbour(rank, true)};
}

/// The window of a lane with so many parts of each tree, divided by what these keep it busy.
std::vector<std::uint64_t> PlanTrees::by_life(const std::vector<double>& parts) const {
  std::vector<double> weights = parts;
  double all = 0;
  for (std::size_t t = 0; t < weights.size(); ++t) {
    weights[t] *= m_plan.trees[t].life_seconds;
    all += weights[t];
  }
  std::vector<std::uint64_t> out;
  for (std::size_t t = 0; t < weights.size(); ++t) {
    const double window =
        all > 0 ? std::round(static_cast<double>(m_window) * weights[t] / all) : 1;
    out.push_back(static_cast<std::uint64_t>(std::max(1.0, std::min(window, parts[t]))));
  }
  return out;
}

/// [lane][tree]: slots. Those of a lane's window: as many as the most parts of the tree among any
/// neighbours that are under way at once.
std::vector<std::vector<std::uint64_t>> PlanTrees::lengths() const {
  if (!m_by_tree) {
    return std::vector<std::vector<std::uint64_t>>(m_lanes, {m_window});
  }
  std::vector<std::vector<std::uint64_t>> most(m_lanes, std::vector<std::uint64_t>(trees(), 0));
  std::vector<std::vector<std::uint64_t>> inside = most, all = most;
  std::vector<std::deque<std::size_t>> window(m_lanes);
  for (std::size_t p = 0; p < m_plan.parts.size(); ++p) {
    const std::uint64_t lane = m_plan.parts.lane[p];
    if (window[lane].size() == m_window) {
      --inside[lane][tree(window[lane].front())];
      window[lane].pop_front();
    }
    window[lane].push_back(p);
    most[lane][tree(p)] = std::max(most[lane][tree(p)], ++inside[lane][tree(p)]);
    ++all[lane][tree(p)];
  }
  for (std::size_t lane = 0; lane < m_lanes; ++lane) {
    if (m_lives) {
      most[lane] = by_life({all[lane].begin(), all[lane].end()});
    } else if (m_shape == Shape::chains) {
      std::ranges::transform(all[lane], most[lane].begin(),
                             [&](std::uint64_t parts) { return std::min(parts, m_window); });
    }
  }
  return most;
}

void PlanTrees::number_slots() {
  constexpr std::array<std::size_t, 2> k_neighbours{1, 4};
  const std::vector<std::vector<std::uint64_t>> length = lengths();
  const std::size_t windows = length.front().size();
  m_slots.assign(windows, 0);
  std::vector<std::vector<std::uint64_t>> first; // [lane][window]
  for (const std::vector<std::uint64_t>& of_lane : length) {
    first.push_back(m_slots);
    for (std::size_t w = 0; w < windows; ++w) {
      m_slots[w] += of_lane[w];
    }
  }
  std::vector<std::vector<std::uint32_t>> of_lane(m_lanes);
  std::vector<std::vector<std::vector<std::uint32_t>>> of_window(
      m_lanes, std::vector<std::vector<std::uint32_t>>(windows));
  for (std::uint32_t p = 0; p < m_plan.parts.size(); ++p) {
    const std::uint64_t lane = m_plan.parts.lane[p], window = m_by_tree ? tree(p) : 0;
    const std::uint64_t parts = length[lane][window];
    std::vector<std::uint32_t>&earlier = of_lane[lane], &own = of_window[lane][window];
    m_before.push_back(own.size() < parts ? k_no_op : own[own.size() - parts]);
    m_slot.push_back(first[lane][window] + own.size() % parts);
    std::array<std::uint32_t, 2>& pace = m_pace.emplace_back();
    pace.fill(k_no_op);
    for (std::size_t i = 0; m_lives && i < pace.size(); ++i) {
      if (earlier.size() >= k_neighbours[i]) {
        pace[i] = m_before[earlier[earlier.size() - k_neighbours[i]]];
      }
    }
    if (m_by_tree && !m_lives && m_shape != Shape::chains && earlier.size() >= m_window) {
      pace.front() = earlier[earlier.size() - m_window];
    }
    earlier.push_back(p);
    own.push_back(p);
  }
}

void PlanTrees::place_slots() {
  const std::size_t ranks = m_plan.ranks.size();
  m_inbox_bytes.assign(ranks, 0);
  m_sum_bytes.assign(ranks, 0);
  if (m_shape == Shape::listed) {
    place_listed();
    return;
  }
  std::uint64_t all = 0; // slots of chains
  std::vector<std::uint64_t>& before = m_inbox.emplace_back();
  for (const std::uint64_t slots : m_slots) {
    before.push_back(all * m_slot_bytes);
    all += slots;
  }
  for (std::uint32_t r = 0; r < ranks; ++r) {
    const bool worker = m_plan.ranks[r].worker;
    const std::uint64_t others = m_workers.size() - (worker ? 1 : 0);
    if (m_shape == Shape::stars) {
      m_inbox_bytes[r] = m_slots[r] * others * m_slot_bytes;
      m_sum_bytes[r] = m_slots[r] * m_slot_bytes;
    } else if (worker && others > 0) {
      m_inbox_bytes[r] = all * m_slot_bytes;
    }
  }
}

/// Trees that share a window share the slots of a child at its parent, and of a rank's sums.
void PlanTrees::place_listed() {
  const std::size_t trees = m_trees.size(), ranks = m_plan.ranks.size();
  m_sum_bytes.assign(ranks, m_by_tree ? 0 : m_slots.front() * m_slot_bytes);
  m_inbox.assign(trees, std::vector<std::uint64_t>(ranks, 0));
  m_sum = m_inbox;
  std::vector<std::map<std::uint32_t, std::uint64_t>> shared(ranks); // [rank][child]
  for (std::size_t t = 0; t < trees; ++t) {
    const SumTree& tree = m_plan.trees[t];
    const std::uint64_t bytes = m_slots[m_by_tree ? t : 0] * m_slot_bytes;
    for (std::size_t r = 0; r < ranks; ++r) {
      for (const std::uint32_t child : m_trees[t].up_children[r]) {
        m_inbox[t][child] = m_inbox_bytes[r];
        bool added = true;
        if (!m_by_tree) {
          const auto [at, is_new] = shared[r].emplace(child, m_inbox_bytes[r]);
          m_inbox[t][child] = at->second;
          added = is_new;
        }
        m_inbox_bytes[r] += added ? bytes : 0;
      }
      if (m_by_tree && !m_plan.ranks[r].worker && (tree.up[r] >= 0 || tree.down[r] >= 0)) {
        m_sum[t][r] = m_sum_bytes[r];
        m_sum_bytes[r] += bytes;
      }
    }
  }
}

/// Of a worker among the children of a star's root.
std::uint64_t PlanTrees::number_at(std::uint32_t root, std::uint32_t child) const {
  return m_place[child] - (m_plan.ranks[root].worker && root < child ? 1 : 0);
}

Slice PlanTrees::inbox(std::uint32_t child, std::uint32_t p) const {
  const std::uint64_t before = m_shape == Shape::listed ? m_inbox[tree(p)][child]
                               : m_shape == Shape::chains
                                   ? m_inbox.front()[tree(p)]
                                   : number_at(root(p), child) * m_slots[tree(p)] * m_slot_bytes;
  return {k_inbox_buffer, before + m_slot[p] * m_slot_bytes};
}

Slice PlanTrees::own(std::uint32_t rank, std::uint32_t p) const {
  if (m_plan.ranks[rank].worker) {
    return gradient_of(m_plan, p);
  }
  const std::uint64_t before = m_shape == Shape::listed ? m_sum[tree(p)][rank] : 0;
  return {k_sum_buffer, before + m_slot[p] * m_slot_bytes};
}

std::uint32_t PlanTrees::tag(std::uint32_t p, std::uint32_t from) const {
  return narrow(m_plan.parts.size() + std::uint64_t{p} * m_plan.ranks.size() + from);
}

std::vector<std::uint32_t> PlanTrees::receivers(std::uint32_t rank, std::uint32_t p) const {
  std::vector<std::uint32_t> children = down_children(rank, p);
  std::rotate(children.begin(), std::upper_bound(children.begin(), children.end(), rank),
              children.end());
  return children;
}

std::vector<std::uint64_t> PlanTrees::buffer_bytes(std::uint32_t rank, bool keeps) const {
  const bool worker = m_plan.ranks[rank].worker;
  return {worker ? m_plan.gradient_bytes : 0, m_inbox_bytes[rank],
          keeps && !worker ? m_sum_bytes[rank] : 0};
}

} // namespace reckon
