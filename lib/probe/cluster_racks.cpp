// SPDX-License-Identifier: Apache-2.0
#include "probe/cluster_racks.hpp"

#include "core/log.hpp"
#include "core/units.hpp"
#include "documents/cells.hpp"
#include "probe/cluster.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <numeric>
#include <utility>

namespace reckon {

RackSteps::RackSteps(ClusterSteps& steps, PairSteps& pairs)
    : m_steps(steps), m_pairs(pairs), m_rack(at(steps.ranks()), 0) {}

std::uint64_t RackSteps::part() const {
  return part_for(m_pairs.rate() / 8 / static_cast<double>(m_steps.lanes.size()));
}

int RackSteps::count() const {
  return *std::max_element(m_rack.begin(), m_rack.end()) + 1;
}

double RackSteps::share_of(const BisectionResult& b) const {
  return median_above_zero(b.samples) / std::max(1.0, full_bisection(b.pairs, m_pairs.port_seen()));
}

void RackSteps::note_bisection(const char* test, const Pairing& pairs, const std::string& step) {
  auto [round, samples] = m_pairs.measure_round(pairs, step, part(), 0.3);
  BisectionResult found{test, pairs, std::move(samples)};
  if (share_of(found) < k_full_bisection && !m_steps.over()) { // or was it disturbed?
    auto [second, again] = m_pairs.measure_round(pairs, step, part(), 0.3);
    keep_best(round, second);
    if (median_above_zero(again) > median_above_zero(found.samples)) {
      found.samples = std::move(again);
    }
  }
  m_pairs.rounds().push_back(std::move(round));
  const auto same = std::find_if(m_bisections.begin(), m_bisections.end(),
                                 [&](const BisectionResult& b) { return b.test == test; });
  if (same == m_bisections.end()) {
    m_bisections.push_back(std::move(found));
  } else if (share_of(found) < share_of(*same)) { // the worst of several stands
    *same = std::move(found);
  }
}

/// BytePS assumes that any half can send to the other at full speed. Which machines cannot tells
/// where the racks are.
void RackSteps::measure() {
  if (m_steps.ranks() < 4 || m_steps.over()) {
    return; // of two or three machines, the pairs say everything
  }
  std::vector<int> order(m_rack.size());
  std::iota(order.begin(), order.end(), 0);
  note_bisection(k_bisection_by_order, halves_of(order), "halves against each other");
  for (int i = 0; i < 2; ++i) {
    note_bisection(k_bisection_random, halves_of(shuffled(m_steps.ranks(), m_steps.random())),
                   "halves against each other");
  }
  find();
  log(LogLevel::debug, "racks of the ranks: {}", fmt::join(m_rack, " "));
  if (count() > 1) {
    note_bisection(k_bisection_by_racks, rack_bisection(m_rack), "racks against each other");
    measure_uplinks();
  }
}

void RackSteps::find() {
  constexpr double k_window = 0.2;
  const RackSearch search = search_racks(
      m_pairs.rounds(), m_pairs.port_seen(), m_steps.random(),
      [&](const Pairing& pairs) {
        return m_pairs.measure_round(pairs, "racks", m_pairs.part(), k_window).first;
      },
      [&] { return m_steps.over(); });
  m_rack = search.rack_of;
  constexpr const char* k_disturbed =
      "probe again when nothing else uses the machines and their network";
  if (count() < search.looked_like) {
    m_doubt = fmt::format("what looked like {} racks counts as {}, as rates between them were low "
                          "and as low where no uplink is in the way; {}",
                          search.looked_like, count(), k_disturbed);
  } else if (!search.settled) {
    m_doubt =
        m_steps.over()
            ? fmt::format("the budget of {} ended before the {} racks were checked; give a "
                          "longer --budget",
                          to_text(m_steps.budget()), count())
            : fmt::format("rates between machines changed from check to check; {}", k_disturbed);
  }
}

void RackSteps::measure_uplinks() {
  for (int rack = 0; rack < count() && !m_steps.over(); ++rack) {
    // With two racks, both uplinks carry the same traffic: what limits it limits both.
    m_uplinks[rack] =
        rack == 1 && count() == 2
            ? m_uplinks[0]
            : m_pairs.measure_round(out_of_rack(m_rack, rack), "uplinks", part(), 0.5).second;
  }
}

} // namespace reckon
