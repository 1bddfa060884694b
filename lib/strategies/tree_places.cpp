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

} // namespace

std::uint64_t slot_bytes(const Plan& plan) {
  const auto longest = std::ranges::max_element(plan.parts.bytes);
  const std::uint64_t most =
      longest == plan.parts.bytes.end() ? plan.part_bytes : std::min(*longest, plan.part_bytes);
  return (most + k_page_bytes - 1) / k_page_bytes * k_page_bytes;
}

PlanTrees::PlanTrees(const Plan& plan, Windows windows)
    : m_plan(plan), m_trees(plan),
      m_window(std::clamp<std::uint64_t>(plan.window_parts, 1,
                                         std::max<std::size_t>(1, plan.parts.size()))),
      m_slot_bytes(slot_bytes(plan)),
      m_lives(m_trees.listed() && windows == Windows::of_trees &&
              std::ranges::all_of(plan.trees,
                                  [](const SumTree& tree) { return tree.life_seconds > 0; })),
      m_by_tree(windows == Windows::of_trees && (m_lives || !m_trees.listed())) {
  if ((plan.parts.size() + 1) * (plan.ranks.size() + 1) >=
      std::numeric_limits<std::uint32_t>::max()) {
    fail(ErrorKind::input,
         fmt::format(
             "the plan has {} parts for {} ranks, too many for 32-bit tags; use a larger part size",
             plan.parts.size(), plan.ranks.size()));
  }
  for (const std::uint64_t lane : plan.parts.lane) {
    m_lanes = std::max(m_lanes, lane + 1);
  }
  number_slots();
  place_slots();
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

/// [lane][tree]: slots that a lane's window needs, as many as the most parts of the tree among any
/// neighbours that are under way at once.
PlanTrees::ByLane PlanTrees::most_in_window() const {
  ByLane most(m_lanes, std::vector<std::uint64_t>(m_trees.count(), 0)), inside = most;
  std::vector<std::deque<std::size_t>> window(m_lanes);
  for (std::size_t p = 0; p < m_plan.parts.size(); ++p) {
    const std::uint64_t lane = m_plan.parts.lane[p];
    const std::size_t tree = m_trees.of(p);
    if (window[lane].size() == m_window) {
      --inside[lane][window[lane].front()];
      window[lane].pop_front();
    }
    window[lane].push_back(tree);
    most[lane][tree] = std::max(most[lane][tree], ++inside[lane][tree]);
  }
  return most;
}

/// [lane][tree]: slots; or [lane][0].
PlanTrees::ByLane PlanTrees::lengths() const {
  if (!m_by_tree) {
    return ByLane(m_lanes, {m_window});
  }
  if (!m_lives && !m_trees.chains()) {
    return most_in_window();
  }
  ByLane parts(m_lanes, std::vector<std::uint64_t>(m_trees.count(), 0));
  for (std::size_t p = 0; p < m_plan.parts.size(); ++p) {
    ++parts[m_plan.parts.lane[p]][m_trees.of(p)];
  }
  for (std::vector<std::uint64_t>& of_lane : parts) {
    if (m_lives) {
      of_lane = by_life({of_lane.begin(), of_lane.end()});
    } else {
      std::ranges::for_each(of_lane,
                            [&](std::uint64_t& slots) { slots = std::min(slots, m_window); });
    }
  }
  return parts;
}

void PlanTrees::number_slots() {
  constexpr std::array<std::size_t, 2> k_neighbours{1, 4};
  const ByLane length = lengths();
  const std::size_t windows = length.front().size();
  m_slots.assign(windows, 0);
  ByLane first; // [lane][window]
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
    const std::uint64_t lane = m_plan.parts.lane[p], window = m_by_tree ? m_trees.of(p) : 0;
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
    if (m_by_tree && !m_lives && !m_trees.chains() && earlier.size() >= m_window) {
      pace.front() = earlier[earlier.size() - m_window];
    }
    earlier.push_back(p);
    own.push_back(p);
  }
}

void PlanTrees::place_slots() {
  const std::size_t ranks = m_plan.ranks.size();
  m_inbox_bytes.assign(ranks, 0);
  m_sum_bytes.assign(ranks, m_by_tree ? 0 : m_slots.front() * m_slot_bytes);
  m_inbox.assign(m_trees.count(), {});
  m_sum.assign(m_trees.count(), {});
  // [rank][child]: trees that share a window share the slots of a child at its parent
  std::vector<std::map<std::uint32_t, std::uint64_t>> shared(ranks);
  for (std::size_t t = 0; t < m_trees.count(); ++t) {
    const std::uint64_t bytes = m_slots[m_by_tree ? t : 0] * m_slot_bytes;
    if (bytes == 0) {
      continue; // no part goes this way
    }
    m_inbox[t].assign(ranks, 0);
    m_sum[t].assign(ranks, 0);
    for (std::uint32_t r = 0; r < ranks; ++r) {
      const std::int64_t up = m_trees.up(r, t);
      if (up >= 0 && up != r) {
        const auto parent = static_cast<std::size_t>(up);
        const auto [at, is_new] = m_by_tree ? std::pair(shared[parent].end(), true)
                                            : shared[parent].emplace(r, m_inbox_bytes[parent]);
        m_inbox[t][r] = is_new ? m_inbox_bytes[parent] : at->second;
        m_inbox_bytes[parent] += is_new ? bytes : 0;
      }
      if (m_by_tree && !m_plan.ranks[r].worker && (up >= 0 || m_trees.down(r, t) >= 0)) {
        m_sum[t][r] = m_sum_bytes[r];
        m_sum_bytes[r] += bytes;
      }
    }
  }
}

Slice PlanTrees::inbox(std::uint32_t child, std::uint32_t p) const {
  return {k_inbox_buffer, m_inbox[m_trees.of(p)][child] + m_slot[p] * m_slot_bytes};
}

Slice PlanTrees::own(std::uint32_t rank, std::uint32_t p) const {
  if (m_plan.ranks[rank].worker) {
    return gradient_of(m_plan, p);
  }
  return {k_sum_buffer, m_sum[m_trees.of(p)][rank] + m_slot[p] * m_slot_bytes};
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
