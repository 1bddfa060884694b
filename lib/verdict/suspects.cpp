// SPDX-License-Identifier: Apache-2.0
#include "verdict/suspects.hpp"

#include "core/name_ranges.hpp"
#include "stats/summary.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace reckon {
namespace {

constexpr std::size_t k_witnesses = 2; ///< of a place that is certain

PairOfPlaces ordered(const std::string& a, const std::string& b) {
  return natural_less(b, a) ? PairOfPlaces(b, a) : PairOfPlaces(a, b);
}

std::string machine_of(const std::string& place) {
  return place.substr(0, place.find('/'));
}

std::string part_of(const std::string& place) {
  return place.substr(std::min(place.find('/'), place.size()));
}

class PairsSolver {
public:
  PairsSolver(const std::vector<PairRate>& pairs, double tolerance) : m_tolerance(tolerance) {
    for (const PairRate& pair : pairs) {
      const auto [at, added] = m_rates.try_emplace(ordered(pair.a, pair.b), pair.rate);
      at->second = std::min(at->second, pair.rate);
    }
    for (const auto& [pair, rate] : m_rates) {
      for (const std::string& place : {pair.first, pair.second}) {
        m_best[place] = std::max(m_best[place], rate);
      }
    }
    m_out.expected = healthy_rate(pairs, tolerance);
  }

  PairVerdict solve() {
    for (const auto& [pair, rate] : m_rates) {
      const auto& [a, b] = pair;
      if (!is_below(rate, m_out.expected)) {
        continue;
      }
      const bool a_can = can_more(a, rate);
      const bool b_can = can_more(b, rate);
      if (a_can != b_can) {
        m_witnesses[a_can ? b : a].push_back(a_can ? a : b);
      }
    }
    std::size_t certain = 0;
    for (const auto& [place, best] : m_best) {
      if (is_below(best, m_out.expected)) {
        certain += is_certain(place) ? 1U : 0U;
        m_out.suspects.push_back({.a = place,
                                  .b = "",
                                  .rate = best,
                                  .certain = is_certain(place),
                                  .with = m_witnesses[place]});
      }
    }
    paths();
    whole_machines();
    std::set<std::string> ends; // of paths that are slow for certain
    for (const Suspect& suspect : m_out.suspects) {
      if (!suspect.b.empty() && suspect.certain) {
        ends.insert({suspect.a, suspect.b});
      }
    }
    m_out.differ = 2 * certain >= m_best.size() || ends.size() == m_best.size();
    if (m_out.differ) {
      m_out.suspects.clear();
      return m_out;
    }
    std::ranges::stable_sort(m_out.suspects, [](const Suspect& x, const Suspect& y) {
      return std::tuple(!x.certain, !x.b.empty(), x.rate) <
             std::tuple(!y.certain, !y.b.empty(), y.rate);
    });
    next_pairs();
    return m_out;
  }

private:
  [[nodiscard]] bool is_below(double rate, double other) const {
    return rate < (1 - m_tolerance) * other;
  }
  /// Whether a place is no reason for so low a rate: it is nearer to a good one with others. A bad
  /// one's rates vary more than noise.
  [[nodiscard]] bool can_more(const std::string& place, double rate) const {
    const double best = m_best.at(place);
    return is_below(rate, best) && best > (rate + m_out.expected) / 2;
  }
  [[nodiscard]] bool is_good(const std::string& place) const {
    return !is_below(m_best.at(place), m_out.expected);
  }
  [[nodiscard]] bool is_certain(const std::string& place) const {
    const auto found = m_witnesses.find(place);
    return found != m_witnesses.end() && found->second.size() >= k_witnesses;
  }

  /// Of slow pairs that no place explains for certain.
  void paths() {
    for (const auto& [pair, rate] : m_rates) {
      const auto& [a, b] = pair;
      const auto explains = [&, rate = rate](const std::string& end) {
        return is_certain(end) && !can_more(end, rate);
      };
      if (is_below(rate, m_out.expected) && !explains(a) && !explains(b)) {
        const bool both_can = can_more(a, rate) && can_more(b, rate);
        m_out.suspects.push_back({.a = a, .b = b, .rate = rate, .certain = both_can, .with = {}});
      }
    }
  }

  /// A machine whose NICs, several, are all bad for certain, instead of them.
  void whole_machines() {
    std::map<std::string, std::size_t> nics;
    std::map<std::string, std::vector<Suspect>> bad;
    for (const auto& [place, best] : m_best) {
      ++nics[machine_of(place)];
    }
    for (const Suspect& suspect : m_out.suspects) {
      if (suspect.certain && suspect.b.empty()) {
        bad[machine_of(suspect.a)].push_back(suspect);
      }
    }
    for (auto& [machine, suspects] : bad) {
      if (suspects.size() > 1 && suspects.size() == nics[machine]) {
        std::erase_if(m_out.suspects, [&, &of = machine](const Suspect& suspect) {
          return suspect.b.empty() && machine_of(suspect.a) == of;
        });
        Suspect& best = *std::ranges::max_element(suspects, {}, &Suspect::rate);
        best.a = machine;
        m_out.suspects.push_back(std::move(best));
      }
    }
  }

  /// Each place that is not certain with as many others as make it so, whatever they measure: those
  /// that are good, in the same rail, and asked least.
  void next_pairs() {
    std::map<std::string, std::size_t> asked;
    std::set<PairOfPlaces> pairs;
    for (const Suspect& suspect : m_out.suspects) {
      if (suspect.certain || !suspect.b.empty()) {
        continue;
      }
      std::vector<std::string> others;
      for (const auto& [place, best] : m_best) {
        if (machine_of(place) != machine_of(suspect.a) && !is_certain(place) &&
            !m_rates.contains(ordered(place, suspect.a)) &&
            !pairs.contains(ordered(place, suspect.a))) {
          others.push_back(place);
        }
      }
      std::ranges::sort(others, [&](const std::string& x, const std::string& y) {
        const auto rank = [&](const std::string& place) {
          return std::tuple(part_of(place) != part_of(suspect.a), !is_good(place), asked[place]);
        };
        return rank(x) != rank(y) ? rank(x) < rank(y) : natural_less(x, y);
      });
      const std::size_t wanted = k_witnesses - std::min(suspect.with.size(), k_witnesses);
      for (std::size_t i = 0; i < std::min(wanted, others.size()); ++i) {
        pairs.insert(ordered(suspect.a, others[i]));
        ++asked[others[i]];
      }
    }
    m_out.next.assign(pairs.begin(), pairs.end());
  }

  double m_tolerance;
  std::map<PairOfPlaces, double> m_rates;
  std::map<std::string, double> m_best; ///< of each place
  std::map<std::string, std::vector<std::string>> m_witnesses;
  PairVerdict m_out;
};

} // namespace

double healthy_rate(const std::vector<PairRate>& pairs, double tolerance) {
  double most = 0;
  for (const PairRate& pair : pairs) {
    most = std::max(most, pair.rate);
  }
  std::vector<double> near;
  for (const PairRate& pair : pairs) {
    if (pair.rate >= (1 - tolerance) * most) {
      near.push_back(pair.rate);
    }
  }
  return near.empty() ? 0 : median(std::move(near));
}

PairVerdict judge_pairs(const std::vector<PairRate>& pairs, double tolerance) {
  return PairsSolver(pairs, tolerance).solve();
}

std::vector<std::vector<PairOfPlaces>> rounds_of(const std::vector<PairOfPlaces>& pairs) {
  std::vector<std::vector<PairOfPlaces>> rounds;
  std::vector<std::set<std::string>> busy; // machines, by round
  for (const PairOfPlaces& pair : pairs) {
    std::size_t round = 0;
    while (round < rounds.size() && (busy[round].contains(machine_of(pair.first)) ||
                                     busy[round].contains(machine_of(pair.second)))) {
      ++round;
    }
    rounds.resize(std::max(rounds.size(), round + 1));
    busy.resize(rounds.size());
    rounds[round].push_back(pair);
    busy[round].insert({machine_of(pair.first), machine_of(pair.second)});
  }
  return rounds;
}

} // namespace reckon
