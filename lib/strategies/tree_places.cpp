// SPDX-License-Identifier: Apache-2.0
#include "strategies/tree_places.hpp"

#include "core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
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
    : m_plan(plan), m_lanes(1 + *std::ranges::max_element(plan.parts.lane)),
      m_slot_bytes(slot_bytes(plan)),
      m_by_tree(windows == Windows::of_trees &&
                std::ranges::all_of(plan.trees,
                                    [](const SumTree& tree) { return tree.life_seconds > 0; })) {
  for (std::size_t t = 0; t < plan.trees.size(); ++t) {
    m_trees.push_back(tree_places(plan, t));
  }
  number_slots();
  place_slots();
}

/// By tree, of a lane with so many parts of each; or one for all of them.
std::vector<std::uint64_t> PlanTrees::windows_of(const std::vector<double>& parts) const {
  if (!m_by_tree) {
    return {std::max<std::uint64_t>(1, m_plan.window_parts)};
  }
  std::vector<double> weights = parts;
  double all = 0;
  for (std::size_t t = 0; t < weights.size(); ++t) {
    weights[t] *= m_plan.trees[t].life_seconds;
    all += weights[t];
  }
  std::vector<std::uint64_t> out;
  for (std::size_t t = 0; t < weights.size(); ++t) {
    const double window =
        all > 0 ? std::round(static_cast<double>(m_plan.window_parts) * weights[t] / all) : 1;
    out.push_back(static_cast<std::uint64_t>(std::max(1.0, std::min(window, parts[t]))));
  }
  return out;
}

void PlanTrees::number_slots() {
  constexpr std::array<std::size_t, 2> k_neighbours{1, 4};
  const std::size_t windows = m_by_tree ? m_trees.size() : 1;
  std::vector<std::vector<double>> count(m_lanes, std::vector<double>(windows, 0));
  const auto window_of = [&](std::size_t p) { return m_by_tree ? m_plan.parts.tree[p] : 0; };
  for (std::size_t p = 0; p < m_plan.parts.size(); ++p) {
    ++count[m_plan.parts.lane[p]][window_of(p)];
  }
  m_slots.assign(windows, 0);
  std::vector<std::vector<std::uint64_t>> length, first; // [lane][window]
  for (const std::vector<double>& parts : count) {
    length.push_back(windows_of(parts));
    first.push_back(m_slots);
    for (std::size_t w = 0; w < windows; ++w) {
      m_slots[w] += length.back()[w];
    }
  }
  std::vector<std::vector<std::uint32_t>> of_lane(m_lanes);
  std::vector<std::vector<std::vector<std::uint32_t>>> of_window(
      m_lanes, std::vector<std::vector<std::uint32_t>>(windows));
  for (std::uint32_t p = 0; p < m_plan.parts.size(); ++p) {
    const std::uint64_t lane = m_plan.parts.lane[p], window = window_of(p);
    const std::uint64_t parts = length[lane][window];
    std::vector<std::uint32_t>&earlier = of_lane[lane], &own = of_window[lane][window];
    m_before.push_back(own.size() < parts ? k_no_op : own[own.size() - parts]);
    m_slot.push_back(first[lane][window] + own.size() % parts);
    std::array<std::uint32_t, 2>& others = m_before_neighbours.emplace_back();
    for (std::size_t i = 0; i < others.size(); ++i) {
      others[i] = !m_by_tree || earlier.size() < k_neighbours[i]
                      ? k_no_op
                      : m_before[earlier[earlier.size() - k_neighbours[i]]];
    }
    earlier.push_back(p);
    own.push_back(p);
  }
}

/// Trees that share a window share the slots of a child at its parent, and of a rank's sums.
void PlanTrees::place_slots() {
  const std::size_t trees = m_trees.size(), ranks = m_plan.ranks.size();
  m_inbox_bytes.assign(ranks, 0);
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

Slice PlanTrees::inbox(std::uint32_t child, std::uint32_t p) const {
  return {k_inbox_buffer, m_inbox[m_plan.parts.tree[p]][child] + m_slot[p] * m_slot_bytes};
}

Slice PlanTrees::own(std::uint32_t rank, std::uint32_t p) const {
  return m_plan.ranks[rank].worker
             ? Slice{k_gradient_buffer, m_plan.parts.offset_bytes[p]}
             : Slice{k_sum_buffer, m_sum[m_plan.parts.tree[p]][rank] + m_slot[p] * m_slot_bytes};
}

std::uint32_t PlanTrees::tag(std::uint32_t p, std::uint32_t from) const {
  return narrow(m_plan.parts.size() + std::uint64_t{p} * m_plan.ranks.size() + from);
}

std::vector<std::uint32_t> PlanTrees::receivers(std::uint32_t rank, std::uint32_t p) const {
  std::vector<std::uint32_t> children = tree(p).down_children[rank];
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
