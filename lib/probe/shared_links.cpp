// SPDX-License-Identifier: Apache-2.0
#include "probe/shared_links.hpp"

#include "core/error.hpp"
#include "stats/rank_test.hpp"
#include "stats/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace reckon {
namespace {

constexpr double k_threshold = 0.9;  // of the rate alone: a pair that gets more is not held back
constexpr double k_alpha = 0.01;     // of the rank test that must agree
constexpr double k_tolerance = 0.05; // rates of a saturated link that differ by less are the same

/// Which endpoints may not occur twice in a question.
enum class Apart { entirely, by_role, sources, destinations };

bool may_join(const EndpointPair& pair, const std::vector<EndpointPair>& chosen, Apart apart) {
  return std::none_of(chosen.begin(), chosen.end(), [&](const EndpointPair& other) {
    const bool source = pair.first == other.first;
    const bool destination = pair.second == other.second;
    const bool crossed = pair.first == other.second || pair.second == other.first;
    switch (apart) {
    case Apart::entirely:
      return source || destination || crossed;
    case Apart::by_role:
      return source || destination;
    case Apart::sources:
      return source;
    case Apart::destinations:
      return destination;
    }
    return true;
  });
}

using Paths = std::map<EndpointPair, std::set<LinkEnd>>;

/// What several pairs pass, by pair.
Paths paths_of(const std::vector<SharedLink>& links) {
  Paths paths;
  for (const SharedLink& shared : links) {
    for (const EndpointPair& pair : shared.pairs) {
      paths[pair].insert(shared.link);
    }
  }
  return paths;
}

/// As many of the pairs as a greedy search finds; the next is always the one that shares the fewest
/// links with those before, so that there are few others to suspect.
std::vector<EndpointPair> choose(const std::vector<EndpointPair>& all, Apart apart,
                                 const Paths& paths) {
  std::set<EndpointPair> left(all.begin(), all.end());
  std::vector<EndpointPair> chosen;
  std::map<LinkEnd, std::size_t> used;
  for (;;) {
    const EndpointPair* best = nullptr;
    std::size_t least = 0;
    for (const EndpointPair& pair : left) {
      if (pair.first == pair.second || !may_join(pair, chosen, apart)) {
        continue;
      }
      std::size_t shared = 0;
      for (const LinkEnd& link : paths.at(pair)) {
        shared += used[link];
      }
      if (best == nullptr || shared < least) {
        best = &pair;
        least = shared;
      }
    }
    if (best == nullptr) {
      break;
    }
    for (const LinkEnd& link : paths.at(*best)) {
      ++used[link];
    }
    chosen.push_back(*best);
    left.erase(*best);
  }
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

/// One measurement: which pairs, and what each got.
struct Together {
  std::vector<EndpointPair> pairs;
  std::vector<std::vector<double>> rates;
};

std::vector<double> sum_of(const Together& m, const std::vector<std::size_t>& pairs) {
  std::vector<double> sum;
  for (const std::size_t p : pairs) {
    sum.resize(std::max(sum.size(), m.rates[p].size()));
    for (std::size_t i = 0; i < m.rates[p].size(); ++i) {
      sum[i] += m.rates[p][i];
    }
  }
  return sum;
}

class LinkDiscovery {
public:
  LinkDiscovery(const std::vector<SharedLink>& links, const MeasureTogether& measure)
      : m_questions(link_questions(links)), m_path(paths_of(links)) {
    const auto run = [&measure](const std::vector<EndpointPair>& pairs) {
      Together m{pairs, measure(pairs)};
      if (m.rates.size() != pairs.size()) {
        fail(ErrorKind::internal,
             fmt::format("shared links: {} rates of {} pairs", m.rates.size(), pairs.size()));
      }
      return m;
    };
    for (const LinkQuestion& question : m_questions) {
      for (const EndpointPair& pair : question.pairs) {
        if (!m_alone.contains(pair)) {
          m_alone[pair] = run({pair}).rates.front();
        }
      }
      if (!m_together.contains(question.pairs)) {
        m_together[question.pairs] = run(question.pairs);
      }
    }
  }

  std::vector<LinkFinding> findings() {
    note_loads();
    // Each link that is found may explain what others were suspected of.
    for (bool found = true; found;) {
      found = false;
      for (const auto& [pairs, m] : m_together) {
        for (const std::size_t p : unexplained(m)) {
          const std::vector<LinkEnd> suspects = suspects_of(m, p);
          if (!suspects.empty() && all_in_series(suspects)) {
            for (const LinkEnd& link : suspects) {
              found = m_full.insert(link).second || found;
            }
          }
        }
      }
    }
    std::vector<LinkFinding> out;
    for (const LinkQuestion& question : m_questions) {
      out.push_back(finding(question));
    }
    return out;
  }

private:
  [[nodiscard]] const std::set<LinkEnd>& path(const EndpointPair& pair) const {
    return m_path.at(pair);
  }

  /// Indices of the pairs of `m` that pass `link`.
  [[nodiscard]] std::vector<std::size_t> over(const Together& m, const LinkEnd& link) const {
    std::vector<std::size_t> out;
    for (std::size_t p = 0; p < m.pairs.size(); ++p) {
      if (path(m.pairs[p]).contains(link)) {
        out.push_back(p);
      }
    }
    return out;
  }

  void note_loads() {
    for (const auto& [pair, rates] : m_alone) {
      for (const LinkEnd& link : path(pair)) {
        m_most[link] = std::max(m_most[link], median(rates));
      }
    }
    for (const auto& [pairs, m] : m_together) {
      for (const EndpointPair& pair : pairs) {
        for (const LinkEnd& link : path(pair)) {
          m_most[link] = std::max(m_most[link], median(sum_of(m, over(m, link))));
        }
      }
    }
  }

  [[nodiscard]] bool is_at_its_most(const Together& m, const LinkEnd& link) const {
    return median(sum_of(m, over(m, link))) >= (1 - k_tolerance) * m_most.at(link);
  }

  [[nodiscard]] bool held_back(const Together& m, std::size_t p) const {
    const std::vector<double>& alone = m_alone.at(m.pairs[p]);
    if (median(m.rates[p]) >= k_threshold * median(alone)) {
      return false;
    }
    const auto probability = rank_test(m.rates[p], alone, k_alpha);
    return probability && *probability < k_alpha;
  }

  /// Pairs that get less than alone and pass no link known to be full here.
  [[nodiscard]] std::vector<std::size_t> unexplained(const Together& m) const {
    std::vector<std::size_t> out;
    for (std::size_t p = 0; p < m.pairs.size(); ++p) {
      const std::set<LinkEnd>& links = path(m.pairs[p]);
      const bool explained = std::any_of(links.begin(), links.end(), [&](const LinkEnd& link) {
        return m_full.contains(link) && over(m, link).size() > 1 && is_at_its_most(m, link);
      });
      if (!explained && held_back(m, p)) {
        out.push_back(p);
      }
    }
    return out;
  }

  /// Links that may be why pair `p` gets less.
  [[nodiscard]] std::vector<LinkEnd> suspects_of(const Together& m, std::size_t p) const {
    std::vector<LinkEnd> out;
    for (const LinkEnd& link : path(m.pairs[p])) {
      if (over(m, link).size() > 1 && is_at_its_most(m, link)) {
        out.push_back(link);
      }
    }
    return out;
  }

  /// Whether whatever was measured passed all of these links or none.
  [[nodiscard]] bool all_in_series(const std::vector<LinkEnd>& links) const {
    return std::all_of(m_alone.begin(), m_alone.end(), [&](const auto& measured) {
      const auto passes = [&](const LinkEnd& link) { return path(measured.first).contains(link); };
      return std::all_of(links.begin(), links.end(), passes) ||
             std::none_of(links.begin(), links.end(), passes);
    });
  }

  [[nodiscard]] LinkFinding finding(const LinkQuestion& question) const {
    const Together& m = m_together.at(question.pairs);
    LinkFinding f;
    f.link = question.link;
    f.pairs = question.pairs;
    f.together = sum_of(m, over(m, question.link));
    for (const EndpointPair& pair : question.pairs) {
      f.alone += median(m_alone.at(pair));
    }
    if (m_full.contains(f.link)) {
      f.verdict = LinkVerdict::limits;
      // Where it carried the most it was full, which need not have been here.
      for (const auto& [pairs, other] : m_together) {
        std::vector<double> load = sum_of(other, over(other, f.link));
        if (median(load) > median(f.together)) {
          f.together = std::move(load);
        }
      }
      for (const LinkEnd& link : m_full) {
        if (link != f.link && all_in_series({f.link, link})) {
          f.in_series.push_back(link);
        }
      }
      return f;
    }
    const std::vector<std::size_t> open = unexplained(m);
    const bool suspected = std::any_of(open.begin(), open.end(), [&](std::size_t p) {
      const std::vector<LinkEnd> suspects = suspects_of(m, p);
      return std::find(suspects.begin(), suspects.end(), f.link) != suspects.end();
    });
    f.verdict = suspected ? LinkVerdict::unclear : LinkVerdict::carries;
    return f;
  }

  std::vector<LinkQuestion> m_questions;
  Paths m_path;
  std::map<EndpointPair, std::vector<double>> m_alone;
  std::map<std::vector<EndpointPair>, Together> m_together;
  std::map<LinkEnd, double> m_most; ///< that it ever carried, bytes per second
  std::set<LinkEnd> m_full;         ///< found to have been full when it carried that
};

} // namespace

std::vector<LinkQuestion> link_questions(const std::vector<SharedLink>& links) {
  const Paths paths = paths_of(links);
  std::vector<LinkQuestion> questions;
  for (const SharedLink& shared : links) {
    const auto pairs = [&](Apart apart) { return choose(shared.pairs, apart, paths); };
    std::vector<EndpointPair> best = pairs(Apart::entirely);
    if (best.size() < 2) {
      best = pairs(Apart::by_role);
    }
    if (best.size() < 2) {
      best = pairs(Apart::sources);
      if (std::vector<EndpointPair> other = pairs(Apart::destinations);
          other.size() > best.size()) {
        best = std::move(other);
      }
    }
    if (best.size() >= 2) {
      questions.push_back({shared.link, std::move(best)});
    }
  }
  return questions;
}

std::string LinkFinding::text() const {
  std::string out = fmt::format("{} pairs at once {:.2f} GB/s, alone {:.2f} GB/s", pairs.size(),
                                median(together) * 1e-9, alone * 1e-9);
  if (verdict == LinkVerdict::carries) {
    out += "; it may carry more";
  } else if (verdict == LinkVerdict::unclear) {
    out += "; another link on their ways may be the reason";
  }
  for (std::size_t i = 0; i < in_series.size(); ++i) {
    out += fmt::format("{}{} > {}", i == 0 ? "; or the thinner one of it and " : ", ",
                       in_series[i].from, in_series[i].to);
  }
  return out;
}

std::vector<LinkFinding> find_shared_links(const std::vector<SharedLink>& links,
                                           const MeasureTogether& measure) {
  return LinkDiscovery(links, measure).findings();
}

} // namespace reckon
