// SPDX-License-Identifier: Apache-2.0
#include "strategies/torus/steps.hpp"

namespace reckon {

std::vector<TorusStep> torus_steps(const TorusPlaces& places, const TorusWay& way,
                                   std::uint64_t server, std::uint64_t rank) {
  using Kind = TorusStep::Kind;
  std::vector<TorusStep> steps;
  const auto append = [&](Kind kind, std::size_t d) {
    steps.push_back({kind, static_cast<std::uint8_t>(d)});
  };
  // Of a ring's nodes in the order in which the sum comes to them: the last has all of it.
  const auto turn = [&](std::size_t d) {
    const std::uint64_t after =
        places.steps(places.at(server, d), places.at(rank, d), d, way.backward);
    return (after + places.nodes(d) - 1) % places.nodes(d);
  };
  const auto sum_up = [&](std::size_t d) { // returns whether this rank ends with the sum
    const std::uint64_t at = turn(d), last = places.nodes(d) - 1;
    if (at > 0) {
      append(Kind::add, d);
    }
    if (at < last) {
      append(Kind::pass_on, d);
    }
    return at == last;
  };
  const auto hand_out = [&](std::size_t d) {
    const std::uint64_t at = turn(d), last = places.nodes(d) - 1;
    if (at < last) {
      append(Kind::take, d);
    }
    if (at + 1 != last) { // nobody after that one lacks it
      append(Kind::hand_on, d);
    }
  };
  bool holds = true;
  std::vector<std::size_t> scattered;
  for (const std::size_t d : way.scatter) {
    if (holds && places.nodes(d) > 1) {
      scattered.push_back(d);
      holds = sum_up(d);
    }
  }
  for (const std::size_t d : way.sum) {
    if (holds && places.nodes(d) > 1) {
      sum_up(d);
      hand_out(d);
    }
  }
  for (; !scattered.empty(); scattered.pop_back()) {
    hand_out(scattered.back());
  }
  return steps;
}

} // namespace reckon
