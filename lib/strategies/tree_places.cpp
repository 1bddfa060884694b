// SPDX-License-Identifier: Apache-2.0
#include "strategies/tree_places.hpp"

#include "core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

PlanTrees::PlanTrees(const Plan& plan)
    : m_plan(plan), m_lanes(1 + *std::ranges::max_element(plan.parts.lane)),
      m_window(std::max<std::uint64_t>(1, plan.window_parts)), m_slot_bytes(slot_bytes(plan)),
      m_inbox(plan.ranks.size()) {
  for (std::size_t t = 0; t < plan.trees.size(); ++t) {
    m_trees.push_back(tree_places(plan, t));
    for (std::uint32_t r = 0; r < plan.ranks.size(); ++r) {
      for (const std::uint32_t child : m_trees.back().up_children[r]) {
        m_inbox[r].emplace(child, m_inbox[r].size());
      }
    }
  }
  std::vector<std::uint64_t> count(m_lanes, 0);
  for (const std::uint64_t lane : plan.parts.lane) {
    m_position.push_back(count[lane]++);
  }
}

Slice PlanTrees::inbox(std::uint32_t rank, std::uint32_t child, std::uint32_t p) const {
  return {k_inbox_buffer, (m_inbox[rank].at(child) * m_lanes * m_window + slot(p)) * m_slot_bytes};
}

Slice PlanTrees::own(std::uint32_t rank, std::uint32_t p) const {
  return m_plan.ranks[rank].worker ? Slice{k_gradient_buffer, m_plan.parts.offset_bytes[p]}
                                   : Slice{k_sum_buffer, slot(p) * m_slot_bytes};
}

std::uint32_t PlanTrees::tag(std::uint32_t p, std::uint32_t from) const {
  return narrow(m_plan.parts.size() + std::uint64_t{p} * m_plan.ranks.size() + from);
}

std::vector<std::uint32_t> PlanTrees::receivers(std::uint32_t rank, std::uint32_t p) const {
  std::vector<std::uint32_t> children = tree(p).down_children[rank];
  std::ranges::rotate(children, std::ranges::upper_bound(children, rank));
  return children;
}

std::vector<std::uint64_t> PlanTrees::buffer_bytes(std::uint32_t rank, bool keeps) const {
  const bool worker = m_plan.ranks[rank].worker;
  const std::uint64_t slots = m_lanes * m_window * m_slot_bytes;
  return {worker ? m_plan.gradient_bytes : 0, m_inbox[rank].size() * slots,
          keeps && !worker ? slots : 0};
}

} // namespace reckon
