// SPDX-License-Identifier: Apache-2.0
#include "probe/rack_search.hpp"

#include "stats/summary.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <utility>

namespace reckon {
namespace {

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
