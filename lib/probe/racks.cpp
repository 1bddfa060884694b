// SPDX-License-Identifier: Apache-2.0
#include "probe/racks.hpp"

#include "documents/contradictions.hpp"
#include "stats/random.hpp"
#include "stats/summary.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <numeric>
#include <utility>

namespace reckon {
namespace {

constexpr double k_apart = 3, k_together = 1; // weight of a hindered pair, and of one that is not
constexpr double k_prior = 1e-3;              // two machines without evidence: rather one rack

using Weights = std::vector<std::vector<double>>; ///< > 0: one rack, < 0: two

/// What machine `m` gains from being with the others of each rack.
std::map<int, double> gains(const Weights& weight, const std::vector<int>& rack, std::size_t m) {
  std::map<int, double> gain;
  for (std::size_t other = 0; other < rack.size(); ++other) {
    if (other != m) {
      gain[rack[other]] += weight[m][other];
    }
  }
  return gain;
}

bool move_one(const Weights& weight, std::vector<int>& rack) {
  bool moved = false;
  for (std::size_t m = 0; m < rack.size(); ++m) {
    const std::map<int, double> gain = gains(weight, rack, m);
    const auto own = gain.find(rack[m]);
    double best = own == gain.end() ? 0 : own->second;
    int to = rack[m];
    for (const auto& [candidate, value] : gain) {
      if (value > best + 1e-9) {
        best = value;
        to = candidate;
      }
    }
    if (best < -1e-9) { // alone is better
      to = *std::max_element(rack.begin(), rack.end()) + 1;
    }
    moved = moved || to != rack[m];
    rack[m] = to;
  }
  return moved;
}

bool merge_two(const Weights& weight, std::vector<int>& rack) {
  std::map<std::pair<int, int>, double> between;
  for (std::size_t a = 0; a < rack.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      if (rack[a] != rack[b]) {
        between[{std::min(rack[a], rack[b]), std::max(rack[a], rack[b])}] += weight[a][b];
      }
    }
  }
  const auto best =
      std::max_element(between.begin(), between.end(),
                       [](const auto& x, const auto& y) { return x.second < y.second; });
  if (best == between.end() || best->second <= 0) {
    return false;
  }
  std::replace(rack.begin(), rack.end(), best->first.second, best->first.first);
  return true;
}

double value_of(const Weights& weight, const std::vector<int>& rack) {
  double value = 0;
  for (std::size_t a = 0; a < rack.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      value += rack[a] == rack[b] ? weight[a][b] : 0;
    }
  }
  return value;
}

std::vector<int> improved(const Weights& weight, std::vector<int> rack) {
  constexpr int k_most_passes = 200;
  for (int pass = 0; pass < k_most_passes; ++pass) {
    const bool moved = move_one(weight, rack);
    if (!merge_two(weight, rack) && !moved) {
      break;
    }
  }
  return rack;
}

/// The machines of each rack, in an order drawn from `random`.
std::vector<std::vector<int>> machines_by_rack(const std::vector<int>& rack_of,
                                               std::mt19937_64& random) {
  std::vector<std::vector<int>> racks;
  for (const int m : shuffled(static_cast<int>(rack_of.size()), random)) {
    racks.resize(std::max(racks.size(), at(rack_of[at(m)]) + 1));
    racks[at(rack_of[at(m)])].push_back(m);
  }
  return racks;
}

/// The first of the one with the first of the other, and so on as long as there are both.
Pairing facing(const std::vector<int>& left, const std::vector<int>& right) {
  Pairing pairs;
  for (std::size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    pairs.emplace_back(left[i], right[i]);
  }
  return pairs;
}

/// The two highest rates of each machine, the higher one first; 0 where there are fewer.
struct BestTwo {
  PairRate first, second;
};

std::vector<BestTwo> best_two(const std::vector<RoundRates>& rounds, int ranks) {
  std::vector<BestTwo> best(at(ranks));
  for (const RoundRates& round : rounds) {
    for (const PairRate& pair : round) {
      for (const int machine : {pair.a, pair.b}) {
        BestTwo& of = best[at(machine)];
        if (pair.bytes_per_s > of.first.bytes_per_s) {
          of.second = std::exchange(of.first, pair);
        } else if (pair.bytes_per_s > of.second.bytes_per_s) {
          of.second = pair;
        }
      }
    }
  }
  return best;
}

constexpr std::size_t k_checks = 3, k_most_changes = 4, k_most_alone = 2;

int racks_in(const std::vector<int>& rack_of) {
  return *std::max_element(rack_of.begin(), rack_of.end()) + 1;
}

/// As across_racks(), but machines alone in their racks meet another rack in each check: in which
/// of them they belong, if in any, shows where the others load its uplink.
struct Across {
  Pairing pairs;
  std::size_t lonely = 0; ///< the first so many have a machine that is alone in its rack
};

Across across_for_check(const std::vector<int>& rack_of, std::size_t number,
                        std::mt19937_64& random) {
  const int racks = racks_in(rack_of);
  std::vector<int> rest = shuffled(static_cast<int>(rack_of.size()), random);
  Across across;
  for (int machine = 0; machine < static_cast<int>(rack_of.size()); ++machine) {
    const int own = rack_of[at(machine)];
    const int other = (own + 1 + static_cast<int>(number) % std::max(1, racks - 1)) % racks;
    const auto self = std::find(rest.begin(), rest.end(), machine);
    const auto peer =
        std::find_if(rest.begin(), rest.end(), [&](int m) { return rack_of[at(m)] == other; });
    if (across.lonely == k_most_alone || std::count(rack_of.begin(), rack_of.end(), own) > 1 ||
        self == rest.end() || peer == rest.end()) {
      continue;
    }
    across.pairs.emplace_back(machine, *peer);
    ++across.lonely;
    std::erase_if(rest, [&](int m) { return m == machine || m == across.pairs.back().second; });
  }
  std::vector<int> rack_of_rest;
  for (const int machine : rest) {
    rack_of_rest.push_back(rack_of[at(machine)]);
  }
  for (const auto& [a, b] : across_racks(rack_of_rest, random)) {
    across.pairs.emplace_back(rest[at(a)], rest[at(b)]);
  }
  return across;
}

RackCheck check_racks(const std::vector<int>& rack_of, std::size_t number,
                      std::vector<RoundRates>& rounds, std::mt19937_64& random,
                      const MeasureRound& measure) {
  RackCheck check;
  const Across across = across_for_check(rack_of, number, random);
  check.across = measure(across.pairs);
  rounds.push_back(check.across);
  const Pairing within = within_racks(rack_of, random);
  if (!within.empty()) {
    check.beside = measure(within);
    rounds.push_back(check.beside);
  }
  for (std::size_t i = 0; i < across.lonely; ++i) {
    check.beside.push_back(measure({across.pairs[i]}).front());
  }
  return check;
}

} // namespace

void keep_best(RoundRates& round, const RoundRates& again) {
  for (std::size_t i = 0; i < round.size(); ++i) {
    round[i].bytes_per_s = std::max(round[i].bytes_per_s, again[i].bytes_per_s);
  }
}

std::vector<double> ports_seen_twice(const std::vector<RoundRates>& rounds, int ranks) {
  std::vector<double> ports;
  for (const BestTwo& best : best_two(rounds, ranks)) {
    ports.push_back(best.second.bytes_per_s > 0 ? best.second.bytes_per_s : best.first.bytes_per_s);
  }
  return ports;
}

Pairing seen_once(const std::vector<RoundRates>& rounds, int ranks) {
  Pairing pairs;
  std::vector<bool> taken(at(ranks), false);
  for (const BestTwo& best : best_two(rounds, ranks)) {
    const auto [a, b, rate] = best.first;
    if (best.second.bytes_per_s < k_hindered * rate && !taken[at(a)] && !taken[at(b)]) {
      taken[at(a)] = taken[at(b)] = true;
      pairs.emplace_back(a, b);
    }
  }
  return pairs;
}

std::vector<int> numbered(const std::vector<int>& rack) {
  std::map<int, int> number;
  std::vector<int> out;
  for (const int r : rack) {
    out.push_back(number.try_emplace(r, static_cast<int>(number.size())).first->second);
  }
  return out;
}

double share_of_ports(const PairRate& pair, const std::vector<double>& port) {
  return pair.bytes_per_s / std::max(1.0, std::min(port[at(pair.a)], port[at(pair.b)]));
}

bool hindered(const PairRate& pair, const std::vector<double>& port) {
  return share_of_ports(pair, port) < k_hindered;
}

std::vector<int> find_racks(const std::vector<RoundRates>& rounds,
                            const std::vector<double>& port) {
  const std::size_t n = port.size();
  Weights weight(n, std::vector<double>(n, k_prior));
  const auto add = [&](const PairRate& pair, double w) {
    weight[at(pair.a)][at(pair.b)] += w;
    weight[at(pair.b)][at(pair.a)] += w;
  };
  bool any = false;
  for (const RoundRates& round : rounds) {
    const bool busy = std::any_of(round.begin(), round.end(),
                                  [&](const PairRate& p) { return hindered(p, port); });
    for (const PairRate& pair : round) {
      if (busy) {
        add(pair, hindered(pair, port) ? -k_apart : k_together);
      }
    }
    any = any || busy;
  }
  std::vector<int> together(n, 0);
  if (!any) {
    return together;
  }
  // Moving machines ends in a local best: from several beginnings, the best of them.
  std::vector<int> alone(n);
  std::iota(alone.begin(), alone.end(), 0);
  std::vector<std::vector<int>> beginnings{together, alone};
  std::mt19937_64 random(1); // the same answer for the same evidence
  for (const std::size_t racks : {2U, 2U, 2U, 3U, 3U, 4U, 4U, 8U}) {
    std::vector<int> drawn;
    for (std::size_t m = 0; m < n; ++m) {
      drawn.push_back(static_cast<int>(uniform_index(random, racks)));
    }
    beginnings.push_back(std::move(drawn));
  }
  std::vector<int> best;
  for (const std::vector<int>& beginning : beginnings) {
    std::vector<int> found = improved(weight, beginning);
    if (best.empty() || value_of(weight, found) > value_of(weight, best) + 1e-9) {
      best = std::move(found);
    }
  }
  return numbered(best);
}

Pairing across_racks(const std::vector<int>& rack_of, std::mt19937_64& random) {
  std::vector<std::vector<int>> racks = machines_by_rack(rack_of, random);
  Pairing pairs;
  for (;;) { // always from the two racks with most left: no more than needed stay alone
    std::sort(racks.begin(), racks.end(),
              [](const auto& a, const auto& b) { return a.size() > b.size(); });
    if (racks.size() < 2 || racks[1].empty()) {
      return pairs;
    }
    pairs.emplace_back(racks[0].back(), racks[1].back());
    racks[0].pop_back();
    racks[1].pop_back();
  }
}

Pairing within_racks(const std::vector<int>& rack_of, std::mt19937_64& random) {
  Pairing pairs;
  for (const std::vector<int>& rack : machines_by_rack(rack_of, random)) {
    for (std::size_t i = 0; i + 1 < rack.size(); i += 2) {
      pairs.emplace_back(rack[i], rack[i + 1]);
    }
  }
  return pairs;
}

Pairing out_of_rack(const std::vector<int>& rack_of, int rack) {
  std::vector<int> inside;
  std::map<int, std::vector<int>> others;
  for (std::size_t m = 0; m < rack_of.size(); ++m) {
    (rack_of[m] == rack ? inside : others[rack_of[m]]).push_back(static_cast<int>(m));
  }
  std::vector<int> outside; // in turn
  for (std::size_t i = 0; outside.size() + inside.size() < rack_of.size(); ++i) {
    for (const auto& [number, machines] : others) {
      if (i < machines.size()) {
        outside.push_back(machines[i]);
      }
    }
  }
  return facing(inside, outside);
}

Pairing rack_bisection(const std::vector<int>& rack_of) {
  std::map<int, std::vector<int>> racks;
  for (std::size_t m = 0; m < rack_of.size(); ++m) {
    racks[rack_of[m]].push_back(static_cast<int>(m));
  }
  std::vector<const std::vector<int>*> by_size;
  for (const auto& [number, machines] : racks) {
    by_size.push_back(&machines);
  }
  std::stable_sort(by_size.begin(), by_size.end(),
                   [](const auto* a, const auto* b) { return a->size() > b->size(); });
  std::vector<int> left, right;
  for (const auto* machines : by_size) {
    std::vector<int>& side = left.size() <= right.size() ? left : right;
    side.insert(side.end(), machines->begin(), machines->end());
  }
  return facing(left, right);
}

std::vector<int> doubtful_ports(const std::vector<double>& port, const std::vector<double>& seen,
                                const std::vector<Passage>& passages) {
  constexpr double k_doubtful = 0.97;
  std::vector<bool> doubtful(port.size());
  for (std::size_t rank = 0; rank < port.size(); ++rank) {
    doubtful[rank] = port[rank] < k_doubtful * seen[rank];
  }
  for (const Passage& passage : passages) {
    if (passage.bytes_per_s > (1 + k_above_noise) * full_bisection(passage.pairs, port)) {
      for (const auto& [a, b] : passage.pairs) {
        doubtful[at(a)] = doubtful[at(b)] = true;
      }
    }
  }
  std::vector<int> ranks;
  for (std::size_t rank = 0; rank < doubtful.size(); ++rank) {
    if (doubtful[rank]) {
      ranks.push_back(static_cast<int>(rank));
    }
  }
  return ranks;
}

double full_bisection(const Pairing& pairs, const std::vector<double>& port) {
  double total = 0;
  for (const auto& [a, b] : pairs) {
    total += std::min(port[at(a)], port[at(b)]);
  }
  return total;
}

std::vector<int> confirmed_racks(const std::vector<int>& rack_of,
                                 const std::vector<RackCheck>& checks,
                                 const std::vector<double>& port) {
  std::vector<std::vector<double>> beside(port.size()); // by machine, shares of ports
  for (const RackCheck& check : checks) {
    for (const PairRate& pair : check.beside) {
      beside[at(pair.a)].push_back(share_of_ports(pair, port));
      beside[at(pair.b)].push_back(share_of_ports(pair, port));
    }
  }
  const auto usual = [&](int machine) {
    return beside[at(machine)].empty() ? 1.0 : median(beside[at(machine)]);
  };
  std::map<std::pair<int, int>, std::vector<double>> across; // by racks
  for (const RackCheck& check : checks) {
    for (const PairRate& pair : check.across) {
      const std::pair<int, int> racks = std::minmax(rack_of[at(pair.a)], rack_of[at(pair.b)]);
      across[racks].push_back(share_of_ports(pair, port) /
                              std::max(1e-9, std::min(usual(pair.a), usual(pair.b))));
    }
  }
  std::vector<int> rack = rack_of;
  for (const auto& [racks, shares] : across) {
    if (median(shares) < k_hindered) {
      continue;
    }
    const auto now = [&](int old) { // what its machines are in by now
      return rack[at(
          static_cast<int>(std::find(rack_of.begin(), rack_of.end(), old) - rack_of.begin()))];
    };
    const int from = now(racks.second), to = now(racks.first);
    std::replace(rack.begin(), rack.end(), from, to);
  }
  return numbered(rack);
}

RackSearch search_racks(std::vector<RoundRates>& rounds, const std::vector<double>& port,
                        std::mt19937_64& random, const MeasureRound& measure,
                        const std::function<bool()>& over) {
  RackSearch search;
  search.rack_of = find_racks(rounds, port);
  std::vector<RackCheck> checks;
  const auto done = [&] {
    return racks_in(search.rack_of) == 1 || checks.size() == k_checks || over();
  };
  for (std::size_t number = 0; !done(); ++number) {
    checks.push_back(check_racks(search.rack_of, number, rounds, random, measure));
    std::vector<int> now = find_racks(rounds, port);
    if (now == search.rack_of || number >= k_most_changes) {
      search.settled = search.settled && now == search.rack_of;
      continue; // what goes on changing is judged as it is
    }
    search.rack_of = std::move(now);
    checks.clear();
    search.settled = number + 1 < k_most_changes;
  }
  search.looked_like = racks_in(search.rack_of);
  search.settled = search.looked_like == 1 || (search.settled && checks.size() == k_checks);
  search.rack_of = confirmed_racks(search.rack_of, checks, port);
  return search;
}

} // namespace reckon
