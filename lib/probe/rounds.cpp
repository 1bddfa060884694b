// SPDX-License-Identifier: Apache-2.0
#include "probe/rounds.hpp"

#include "stats/random.hpp"

#include <algorithm>
#include <map>
#include <numeric>

namespace reckon {

std::vector<Pairing> round_robin(int ranks) {
  const int seats = ranks + ranks % 2; // the last seat of an odd number is nobody's
  std::vector<Pairing> rounds;
  for (int round = 0; round < seats - 1; ++round) {
    Pairing pairs;
    const auto add = [&](int a, int b) {
      if (std::max(a, b) < ranks) {
        pairs.emplace_back(std::min(a, b), std::max(a, b));
      }
    };
    add(round, seats - 1);
    for (int i = 1; i < seats / 2; ++i) {
      add((round + i) % (seats - 1), (round + seats - 1 - i) % (seats - 1));
    }
    std::sort(pairs.begin(), pairs.end());
    rounds.push_back(std::move(pairs));
  }
  return rounds;
}

Pairing halves_of(const std::vector<int>& order) {
  Pairing pairs;
  const std::size_t half = order.size() / 2;
  for (std::size_t i = 0; i < half; ++i) {
    pairs.emplace_back(order[i], order[order.size() - half + i]);
  }
  return pairs;
}

std::vector<int> shuffled(int ranks, std::mt19937_64& random) {
  std::vector<int> order(at(ranks));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) {
    std::swap(order[i - 1], order[uniform_index(random, i)]);
  }
  return order;
}

std::vector<Pairing> waves_of(const Pairing& pairs, const std::vector<int>& host_of, int most) {
  std::vector<Pairing> waves;
  std::vector<std::map<int, int>> load; // of each wave, by host
  for (const auto& [a, b] : pairs) {
    const int x = host_of[at(a)], y = host_of[at(b)];
    std::size_t wave = 0;
    while (wave < waves.size() && (load[wave][x] >= most || load[wave][y] >= most)) {
      ++wave;
    }
    if (wave == waves.size()) {
      waves.emplace_back();
      load.emplace_back();
    }
    waves[wave].emplace_back(a, b);
    ++load[wave][x];
    load[wave][y] += x == y ? 0 : 1;
  }
  return waves;
}

std::vector<std::vector<int>> stars_of(const std::vector<int>& ranks, int size) {
  const std::size_t count = std::max<std::size_t>(1, ranks.size() / static_cast<std::size_t>(size));
  std::vector<std::vector<int>> stars;
  for (std::size_t s = 0; s < count; ++s) {
    const auto first = static_cast<std::ptrdiff_t>(s * ranks.size() / count);
    const auto last = static_cast<std::ptrdiff_t>((s + 1) * ranks.size() / count);
    stars.emplace_back(ranks.begin() + first, ranks.begin() + last);
  }
  return stars;
}

} // namespace reckon
