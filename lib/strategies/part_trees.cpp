// SPDX-License-Identifier: Apache-2.0
#include "strategies/part_trees.hpp"

#include "core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

namespace reckon {
namespace {

using Children = std::vector<std::vector<std::uint32_t>>; // by rank

/// [rank]: those whose `parent` it is.
Children children_of(const std::vector<std::int64_t>& parent) {
  Children children(parent.size());
  for (std::uint32_t r = 0; r < parent.size(); ++r) {
    if (parent[r] >= 0 && parent[r] != r) {
      children[static_cast<std::size_t>(parent[r])].push_back(r);
    }
  }
  return children;
}

/// Throws as PartTrees.
void check_tree(const Plan& plan, std::size_t number, const Children& up_children,
                const Children& down_children) {
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
  for (std::uint32_t r = 0; r < plan.ranks.size(); ++r) {
    const bool hands = tree.up[r] < 0 || !up_children[r].empty();
    const bool takes = tree.down[r] < 0 || r == root[0] || !down_children[r].empty();
    if (!plan.ranks[r].worker && !(hands && takes)) {
      refuse(fmt::format("has rank {} at its end, which has no gradient", r));
    }
  }
}

std::int64_t number_or_none(const std::optional<std::size_t>& rank) {
  return rank ? static_cast<std::int64_t>(*rank) : -1;
}

} // namespace

PartTrees::PartTrees(const Plan& plan) : m_plan(plan) {
  for (std::size_t t = 0; t < plan.trees.size(); ++t) {
    m_up_children.push_back(children_of(plan.trees[t].up));
    m_down_children.push_back(children_of(plan.trees[t].down));
    check_tree(plan, t, m_up_children.back(), m_down_children.back());
  }
  if (!plan.machine_trees.empty()) {
    m_heads.emplace(plan);
  } else if (!listed() && plan.strategy != "ring") {
    m_stars.emplace(plan);
  }
  if (!chains()) {
    return;
  }
  for (std::uint32_t r = 0; r < plan.ranks.size(); ++r) {
    if (plan.ranks[r].worker) {
      m_ring.push_back(r);
    }
  }
  std::ranges::transform(plan.ring_order, m_ring.begin(),
                         [](std::uint64_t rank) { return static_cast<std::uint32_t>(rank); });
  m_places.resize(plan.ranks.size());
  for (std::uint32_t i = 0; i < m_ring.size(); ++i) {
    m_places[m_ring[i]] = i;
  }
}

/// So many places after a worker.
std::uint32_t PartTrees::in_ring(std::size_t rank, std::size_t places_on) const {
  return m_ring[(m_places[rank] + places_on) % m_ring.size()];
}

std::int64_t PartTrees::up(std::uint32_t rank, std::size_t tree) const {
  if (listed()) {
    return m_plan.trees[tree].up[rank];
  }
  if (m_heads) {
    return number_or_none(m_heads->parent(tree / ways(), tree % ways(), rank));
  }
  if (m_stars) {
    return number_or_none(m_stars->parent(tree, rank));
  }
  return rank == tree ? rank : m_plan.ranks[rank].worker ? in_ring(rank, 1) : std::int64_t{-1};
}

std::int64_t PartTrees::down(std::uint32_t rank, std::size_t tree) const {
  if (listed()) {
    return m_plan.trees[tree].down[rank];
  }
  return chains() && rank != tree && m_plan.ranks[rank].worker ? in_ring(rank, m_ring.size() - 1)
                                                               : up(rank, tree);
}

std::vector<std::uint32_t> PartTrees::up_children(std::uint32_t rank, std::size_t tree) const {
  if (listed()) {
    return m_up_children[tree][rank];
  }
  std::vector<std::uint32_t> out;
  if (chains()) {
    if (m_plan.ranks[rank].worker && rank != in_ring(tree, 1)) {
      out.push_back(in_ring(rank, m_ring.size() - 1));
    }
    return out;
  }
  for (const std::size_t child : m_heads ? m_heads->children(tree / ways(), tree % ways(), rank)
                                         : m_stars->children(tree, rank)) {
    out.push_back(static_cast<std::uint32_t>(child));
  }
  return out;
}

std::vector<std::uint32_t> PartTrees::down_children(std::uint32_t rank, std::size_t tree) const {
  if (listed()) {
    return m_down_children[tree][rank];
  }
  if (!chains()) {
    return up_children(rank, tree);
  }
  std::vector<std::uint32_t> out;
  if (m_plan.ranks[rank].worker && rank != in_ring(tree, m_ring.size() - 1)) {
    out.push_back(in_ring(rank, 1));
  }
  return out;
}

} // namespace reckon
