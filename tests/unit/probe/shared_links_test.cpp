// SPDX-License-Identifier: Apache-2.0
#include "probe/shared_links.hpp"

#include "stats/random.hpp"
#include "stats/summary.hpp"
#include "support/cases.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <map>
#include <numeric>
#include <random>

namespace reckon {
namespace {

/// A tree of switches with endpoints below them, every direction of a link with its own capacity,
/// which the transfers share as max-min fairness has it.
struct Network {
  std::vector<std::string> names;
  std::vector<int> parent; ///< -1: the root
  std::vector<bool> endpoint;
  std::map<LinkEnd, double> capacity;
  double noise = 0;
  std::mt19937_64 random{1};
  int measured = 0;

  int add(int above, bool is_endpoint) {
    names.push_back((is_endpoint ? "e" : "s") + std::to_string(names.size()));
    parent.push_back(above);
    endpoint.push_back(is_endpoint);
    return static_cast<int>(names.size()) - 1;
  }
  [[nodiscard]] const std::string& name(int i) const { return names[static_cast<std::size_t>(i)]; }
  [[nodiscard]] int above(int i) const { return parent[static_cast<std::size_t>(i)]; }
  void set(int node, double up, double down) {
    capacity[{name(node), name(above(node))}] = up;
    capacity[{name(above(node)), name(node)}] = down;
  }
  [[nodiscard]] int find(const std::string& id) const {
    return static_cast<int>(std::find(names.begin(), names.end(), id) - names.begin());
  }

  [[nodiscard]] std::vector<LinkEnd> path(const EndpointPair& pair) const {
    std::vector<int> up;
    for (int i = find(pair.first); i >= 0; i = above(i)) {
      up.push_back(i);
    }
    std::vector<LinkEnd> down;
    int meet = find(pair.second);
    for (; std::find(up.begin(), up.end(), meet) == up.end(); meet = above(meet)) {
      down.push_back({name(above(meet)), name(meet)});
    }
    std::vector<LinkEnd> links;
    for (const int i : up) {
      if (i == meet) {
        break;
      }
      links.push_back({name(i), name(above(i))});
    }
    links.insert(links.end(), down.begin(), down.end());
    return links;
  }

  [[nodiscard]] std::vector<SharedLink> shared() const {
    std::map<LinkEnd, std::vector<EndpointPair>> by_link;
    for (std::size_t a = 0; a < names.size(); ++a) {
      for (std::size_t b = 0; b < names.size(); ++b) {
        if (a != b && endpoint[a] && endpoint[b]) {
          for (const LinkEnd& link : path({names[a], names[b]})) {
            by_link[link].emplace_back(names[a], names[b]);
          }
        }
      }
    }
    std::vector<SharedLink> out;
    for (auto& [link, pairs] : by_link) {
      if (pairs.size() > 1) {
        out.push_back({link, pairs});
      }
    }
    return out;
  }

  /// Max-min fair rates: the link with the least for each of its transfers decides for these.
  [[nodiscard]] std::vector<double> rates(const std::vector<EndpointPair>& pairs) const {
    std::vector<double> rate(pairs.size(), -1);
    std::map<LinkEnd, double> left = capacity;
    for (;;) {
      std::map<LinkEnd, int> users;
      for (std::size_t p = 0; p < pairs.size(); ++p) {
        for (const LinkEnd& link : path(pairs[p])) {
          users[link] += rate[p] < 0 ? 1 : 0;
        }
      }
      const LinkEnd* tightest = nullptr;
      double share = 0;
      for (const auto& [link, count] : users) {
        if (count > 0 && (tightest == nullptr || left.at(link) / count < share)) {
          tightest = &link;
          share = left.at(link) / count;
        }
      }
      if (tightest == nullptr) {
        return rate;
      }
      for (std::size_t p = 0; p < pairs.size(); ++p) {
        const std::vector<LinkEnd> links = path(pairs[p]);
        if (rate[p] < 0 && std::find(links.begin(), links.end(), *tightest) != links.end()) {
          rate[p] = share;
          for (const LinkEnd& link : links) {
            left[link] -= share;
          }
        }
      }
    }
  }

  double wobble() { // nearly normal, of deviation `noise`
    double sum = 0;
    for (int i = 0; i < 12; ++i) {
      sum += uniform_unit(random);
    }
    return std::max(1 + noise * (sum - 6), 0.1);
  }

  MeasureTogether measure() {
    return [this](const std::vector<EndpointPair>& pairs) {
      ++measured;
      std::vector<std::vector<double>> out;
      for (const double rate : rates(pairs)) {
        auto& samples = out.emplace_back();
        for (int i = 0; i < 10; ++i) {
          samples.push_back(rate * wobble());
        }
      }
      return out;
    };
  }
};

const LinkFinding& of(const std::vector<LinkFinding>& findings, const std::string& from,
                      const std::string& to) {
  const LinkEnd link{from, to};
  const auto it = std::find_if(findings.begin(), findings.end(),
                               [&](const LinkFinding& f) { return f.link == link; });
  EXPECT_NE(it, findings.end()) << from << " > " << to;
  return it == findings.end() ? findings.front() : *it;
}

/// Two switches with two endpoints of 10 each: s1 sends up 12 and gets 14, s2 is wide.
Network two_switches() {
  Network n;
  n.add(-1, false);
  const int s1 = n.add(0, false);
  const int s2 = n.add(0, false);
  n.set(s1, 12e9, 14e9);
  n.set(s2, 40e9, 40e9);
  for (const int above : {s1, s1, s2, s2}) {
    n.set(n.add(above, true), 10e9, 10e9);
  }
  return n;
}

TEST(SharedLinks, FindsTheThinUplinkAndItsCapacityEachWay) {
  Network n = two_switches();
  const std::vector<LinkFinding> findings = find_shared_links(n.shared(), n.measure());
  const LinkFinding& up = of(findings, "s1", "s0");
  EXPECT_EQ(up.verdict, LinkVerdict::limits);
  EXPECT_NEAR(median(up.together), 12e9, 1e6);
  EXPECT_NEAR(up.alone, 20e9, 1e6);
  EXPECT_EQ(up.pairs.size(), 2U);
  EXPECT_NEAR(median(of(findings, "s0", "s1").together), 14e9, 1e6);
  // Two pairs between the same two switches pass both uplinks: nothing tells them apart but that
  // nothing else is there. s1's pairs to s2 are the only ones that pass s2 > s0 or s0 > s2.
  EXPECT_EQ(up.in_series, (std::vector<LinkEnd>{{"s0", "s2"}}));
  EXPECT_EQ(up.text(), "2 pairs at once 12.00 GB/s, alone 20.00 GB/s; or the thinner one of it and "
                       "s0 > s2");
  // An endpoint's own link: two transfers of one endpoint.
  EXPECT_EQ(of(findings, "e3", "s1").verdict, LinkVerdict::limits);
  EXPECT_NEAR(median(of(findings, "e3", "s1").together), 10e9, 1e6);
}

TEST(SharedLinks, AThirdSwitchTellsWhichOfTwoUplinksIsThin) {
  Network n = two_switches();
  const int s3 = n.add(0, false);
  n.set(s3, 40e9, 40e9);
  n.set(n.add(s3, true), 10e9, 10e9);
  n.set(n.add(s3, true), 10e9, 10e9);
  const std::vector<LinkFinding> findings = find_shared_links(n.shared(), n.measure());
  EXPECT_EQ(of(findings, "s1", "s0").verdict, LinkVerdict::limits);
  EXPECT_TRUE(of(findings, "s1", "s0").in_series.empty());
  EXPECT_NEAR(median(of(findings, "s1", "s0").together), 12e9, 1e6);
  const LinkFinding& wide = of(findings, "s0", "s2");
  EXPECT_EQ(wide.verdict, LinkVerdict::carries);
  EXPECT_NEAR(median(wide.together), 20e9, 1e6); // what two endpoints can take
  EXPECT_NE(wide.text().find("it may carry more"), std::string::npos);
}

TEST(SharedLinks, QuestionsKeepEndsApartAndFallBackWhereThereIsOnlyOne) {
  // Both endpoints of the switch send to the only memory: they may meet there.
  const std::vector<SharedLink> links{{{"switch", "root"}, {{"g0", "numa0"}, {"g1", "numa0"}}},
                                      {{"g0", "switch"}, {{"g0", "numa0"}, {"g0", "g1"}}},
                                      {{"a", "b"}, {{"a", "x"}, {"b", "a"}, {"c", "y"}}}};
  const std::vector<LinkQuestion> questions = link_questions(links);
  ASSERT_EQ(questions.size(), 3U);
  EXPECT_EQ(questions[0].pairs, links[0].pairs);
  EXPECT_EQ(questions[1].pairs, (std::vector<EndpointPair>{{"g0", "g1"}, {"g0", "numa0"}}));
  EXPECT_EQ(questions[2].pairs, (std::vector<EndpointPair>{{"a", "x"}, {"c", "y"}}));
  EXPECT_TRUE(link_questions({{{"a", "b"}, {{"a", "c"}}}}).empty());
}

TEST(SharedLinks, AFewSamplesProveNothing) {
  Network n = two_switches();
  const MeasureTogether all = n.measure();
  const auto few = [&all](const std::vector<EndpointPair>& pairs) {
    auto rates = all(pairs);
    for (auto& samples : rates) {
      samples.resize(2);
    }
    return rates;
  };
  for (const LinkFinding& f : find_shared_links(n.shared(), few)) {
    EXPECT_NE(f.verdict, LinkVerdict::limits) << f.link.from << " > " << f.link.to;
  }
}

/// Up to three levels of switches, one to four endpoints a switch. Some uplinks are thin: 30 to 80
/// % of what is below them; the others carry everything. `thin`: whether there are any.
Network random_network(std::uint64_t seed, bool thin) {
  Network n;
  n.random.seed(seed);
  const auto below = [&n](std::size_t most) { return uniform_index(n.random, most); };
  n.noise = 0.005 + 0.02 * uniform_unit(n.random);
  n.add(-1, false);
  std::vector<int> switches{0};
  const std::size_t count = 2 + below(4);
  for (std::size_t i = 0; i < count; ++i) {
    switches.push_back(n.add(switches[i == 0 ? 0 : below(switches.size())], false));
  }
  std::vector<double> endpoints_below(64, 0); // what they can send, by node
  for (const int s : switches) {
    const std::size_t ends = s == 0 ? below(2) : 1 + below(4);
    for (std::size_t e = 0; e < ends; ++e) {
      const double rate = 8e9 + 8e9 * uniform_unit(n.random);
      n.set(n.add(s, true), rate, rate);
      for (int up = s; up >= 0; up = n.above(up)) {
        endpoints_below[static_cast<std::size_t>(up)] += rate;
      }
    }
  }
  for (const int s : switches) {
    const double sum = endpoints_below[static_cast<std::size_t>(s)];
    const auto share = [&] {
      return thin && below(2) == 0 ? sum * (0.3 + 0.5 * uniform_unit(n.random)) : 1.2 * sum;
    };
    if (s != 0) {
      const double up = share();
      n.set(s, up, share());
    }
  }
  return n;
}

double thinnest(const Network& n, const LinkFinding& f) {
  double least = n.capacity.at(f.link);
  for (const LinkEnd& link : f.in_series) {
    least = std::min(least, n.capacity.at(link));
  }
  return least;
}

TEST(SharedLinksProperty, WhatIsFoundIsThereAndWhatIsThereIsFound) {
  constexpr std::uint64_t k_seed = 20261121;
  std::cout << "seeds from " << k_seed << "\n";
  int thin_links = 0;
  int found = 0;
  int unclear = 0;
  int answers = 0;
  constexpr int k_cases = support::cases(300);
  for (std::uint64_t i = 0; i < k_cases; ++i) {
    SCOPED_TRACE("seed " + std::to_string(k_seed + i));
    Network n = random_network(k_seed + i, i % 3 != 0);
    for (const LinkFinding& f : find_shared_links(n.shared(), n.measure())) {
      ++answers;
      unclear += f.verdict == LinkVerdict::unclear ? 1 : 0;
      const double rate = median(f.together);
      if (f.verdict == LinkVerdict::limits) {
        // Medians of ten samples of up to 2.5 % noise, a pair's each.
        EXPECT_NEAR(rate / thinnest(n, f), 1, 0.05) << f.link.from << " > " << f.link.to;
      } else {
        EXPECT_LE(rate, 1.05 * n.capacity.at(f.link)) << f.link.from << " > " << f.link.to;
      }
      if (f.link.from[0] == 'e' || f.link.to[0] == 'e') {
        continue; // an endpoint's own link is always found: it would hide what is not
      }
      // A link that by itself costs its pairs a fifth, whatever the others do, has to be seen.
      Network wide = n;
      wide.capacity[f.link] = 1e15;
      const std::vector<double> as_is = n.rates(f.pairs);
      const std::vector<double> without = wide.rates(f.pairs);
      const auto sum = [](const std::vector<double>& r) {
        return std::accumulate(r.begin(), r.end(), 0.0);
      };
      if (sum(as_is) < 0.8 * sum(without)) {
        ++thin_links;
        found += f.verdict == LinkVerdict::limits ? 1 : 0;
      }
    }
  }
  std::cout << found << " of " << thin_links << " thin links found; " << unclear << " of "
            << answers << " answers unclear\n";
  EXPECT_GT(thin_links, k_cases);
  EXPECT_GE(found, thin_links * 9 / 10);
  EXPECT_LE(unclear, answers / 10);
}

TEST(SharedLinksProperty, NoiseInventsNothing) {
  // Uplinks that carry all that is below: only endpoints' own links are ever full.
  constexpr std::uint64_t k_seed = 777;
  std::cout << "seeds from " << k_seed << "\n";
  for (std::uint64_t i = 0; i < support::cases(200); ++i) {
    SCOPED_TRACE("seed " + std::to_string(k_seed + i));
    Network n = random_network(k_seed + i, false);
    n.noise = 0.05;
    for (const LinkFinding& f : find_shared_links(n.shared(), n.measure())) {
      const bool own = f.link.from[0] == 'e' || f.link.to[0] == 'e' ||
                       std::any_of(f.in_series.begin(), f.in_series.end(), [](const LinkEnd& l) {
                         return l.from[0] == 'e' || l.to[0] == 'e';
                       });
      EXPECT_TRUE(own || f.verdict != LinkVerdict::limits) << f.link.from << " > " << f.link.to;
    }
  }
}

} // namespace
} // namespace reckon
