// SPDX-License-Identifier: Apache-2.0
#include "compare/measured.hpp"

#include "compare/adjust.hpp"
#include "stats/rank_test.hpp"

#include <fmt/format.h>

namespace reckon {

void Measured::add(Difference difference, const Evidence& evidence) {
  const double a = difference.before.number.value_or(0);
  const double b = difference.after.number.value_or(0);
  const CompareOptions& options = m_out.options();
  const double spread = evidence.spread;
  Candidate candidate;
  candidate.beyond_tolerance = beyond(a, b, evidence.tolerance);
  candidate.beyond_spread = beyond(a, b, options.least_spreads * spread);
  candidate.believable = !evidence.doubtful || beyond(a, b, options.noisy_tolerance);
  candidate.p = rank_test(evidence.before, evidence.after, options.alpha);
  candidate.difference = std::move(difference);
  std::string& note = candidate.difference.note;
  note += fmt::format("{}spread {:.2g} %", note.empty() ? "" : "; ", spread * 100);
  m_candidates.push_back(std::move(candidate));
}

std::size_t Measured::settle() {
  std::vector<double> p;
  for (const Candidate& c : m_candidates) {
    if (c.p) {
      p.push_back(*c.p);
    }
  }
  const std::vector<double> adjusted = adjust_p_values(p);
  const double alpha = m_out.options().alpha;
  std::size_t next = 0;
  std::size_t differing = 0;
  for (Candidate& c : m_candidates) {
    Difference& d = c.difference;
    if (c.p) {
      d.p_value = adjusted[next++];
    }
    if (!c.beyond_tolerance || (c.p && *c.p > alpha)) {
      continue;
    }
    if (c.p && *d.p_value <= alpha && c.beyond_spread && c.believable) {
      ++differing;
      m_out.add(std::move(d));
      continue;
    }
    if (!c.p) {
      d.note += "; too few samples for a rank test, measure longer";
    } else if (*d.p_value > alpha) {
      d.note +=
          fmt::format("; p {:.2g} alone, but not among {} tests; measure longer", *c.p, p.size());
    } else if (!c.believable) {
      d.note += "; measured while disturbed";
    } else {
      d.note += fmt::format("; less than {:g} spreads", m_out.options().least_spreads);
    }
    m_out.add_undecided(std::move(d));
  }
  m_candidates.clear();
  return differing;
}

} // namespace reckon
