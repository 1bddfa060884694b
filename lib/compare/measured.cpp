// SPDX-License-Identifier: Apache-2.0
#include "compare/measured.hpp"

#include "compare/adjust.hpp"
#include "stats/rank_test.hpp"
#include "stats/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace reckon {
namespace {

/// Of the samples, which 10 % of them reach: low of times, high of rates.
double fast_end(std::span<const double> samples, bool rate) {
  return quantile({samples.begin(), samples.end()}, rate ? 0.9 : 0.1);
}

} // namespace

void Measured::add(Difference difference, const Evidence& evidence) {
  std::string& note = difference.note;
  note += fmt::format("{}spread {:.2g} %", note.empty() ? "" : "; ", evidence.spread * 100);
  Candidate candidate{std::move(difference), evidence, {}, false};
  const CompareOptions& options = m_out.options();
  Evidence& e = candidate.evidence;
  e.tolerance = e.doubtful ? std::max(e.tolerance, options.noisy_tolerance) : e.tolerance;
  const Difference& d = candidate.difference;
  candidate.beyond_tolerance = beyond(*d.before.number, *d.after.number, e.tolerance);
  const std::size_t fewest = std::min(e.before.size(), e.after.size());
  constexpr std::size_t k_enough_for_a_test = 4;
  if (!candidate.beyond_tolerance && fewest >= std::max(e.least, k_enough_for_a_test)) {
    candidate.p = 1; // no change whatever a test says: one that found nothing
  } else if (fewest >= e.least) {
    candidate.p = rank_test(e.before, e.after, options.alpha);
  }
  m_candidates.push_back(std::move(candidate));
}

/// Gives those with too few samples the p-value of all that belong together.
void Measured::pool() {
  struct Pool {
    std::vector<double> before, after;
    std::vector<Candidate*> members;
  };
  std::map<std::string, Pool> pools;
  for (Candidate& c : m_candidates) {
    if (c.p || c.evidence.together.empty()) {
      continue;
    }
    Pool& pool = pools[c.evidence.together];
    const double scale = std::sqrt(*c.difference.before.number * *c.difference.after.number);
    const auto speed = [&](double sample) {
      return c.evidence.rate ? sample / scale : scale / sample;
    };
    std::transform(c.evidence.before.begin(), c.evidence.before.end(),
                   std::back_inserter(pool.before), speed);
    std::transform(c.evidence.after.begin(), c.evidence.after.end(), std::back_inserter(pool.after),
                   speed);
    pool.members.push_back(&c);
  }
  for (auto& [name, pool] : pools) {
    const auto p = rank_test(pool.before, pool.after, m_out.options().alpha);
    for (Candidate* const c : pool.members) {
      c->p = p;
      c->pooled = pool.members.size() > 1;
    }
  }
}

bool Measured::fast_end_moved(const Candidate& c) const {
  const Evidence& e = c.evidence;
  const double a = fast_end(e.before, e.rate), b = fast_end(e.after, e.rate);
  const bool up = *c.difference.after.number > *c.difference.before.number;
  return beyond(a, b, m_out.options().noisy_tolerance) && (b > a) == up;
}

void Measured::judge(Candidate& c, std::size_t tests, std::size_t& differing) {
  const CompareOptions& options = m_out.options();
  const Evidence& e = c.evidence;
  Difference& d = c.difference;
  const double a = *d.before.number, b = *d.after.number;
  const auto within = [&](const std::string& why) {
    d.note += "; " + why;
    m_out.within(std::move(d));
  };
  const auto undecided = [&](const std::string& why) {
    d.note += "; " + why;
    m_out.add_undecided(std::move(d));
  };
  if (!c.beyond_tolerance) {
    within(fmt::format("within the tolerance of {:g} %{}", 100 * e.tolerance,
                       e.doubtful ? " for cells that were measured while disturbed" : ""));
  } else if (!c.p) {
    undecided(fmt::format("too few samples for a test ({}); measure longer",
                          std::min(e.before.size(), e.after.size())));
  } else if (*c.p > options.alpha) {
    within("perhaps by chance");
  } else if (e.doubtful && !fast_end_moved(c)) {
    within("measured while disturbed, and the fast end of the samples did not move");
  } else if (e.crowded) {
    undecided("other programs used the processors meanwhile; measure when they are done");
  } else if (*d.p_value > options.alpha) {
    undecided(fmt::format("p {:.2g} alone, but not among {} tests; measure longer", *c.p, tests));
  } else if (!e.doubtful && !beyond(a, b, options.least_spreads * e.spread)) {
    undecided(fmt::format("less than {:g} spreads", options.least_spreads));
  } else {
    d.note += c.pooled ? "; tested with the other cells of the pair" : "";
    ++differing;
    m_out.add(std::move(d));
  }
}

std::size_t Measured::settle() {
  pool();
  std::vector<double> p;
  for (const Candidate& c : m_candidates) {
    if (c.p) {
      p.push_back(*c.p);
    }
  }
  const std::vector<double> adjusted = adjust_p_values(p);
  std::size_t next = 0, differing = 0;
  for (Candidate& c : m_candidates) {
    if (c.p) {
      const double corrected = adjusted[next++];
      c.difference.p_value = c.beyond_tolerance ? std::optional(corrected) : std::nullopt;
    }
    judge(c, p.size(), differing);
  }
  m_candidates.clear();
  return differing;
}

} // namespace reckon
