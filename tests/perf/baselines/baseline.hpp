// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <vector>

/// What the all-reduce baselines share: `ELEMENTS ITERATIONS` on the command line, values whose sum
/// is known, and one line "seconds" for each iteration, taken from the start that all have agreed
/// on to the end at the slowest rank.
namespace baseline {

struct Arguments {
  std::size_t elements = 0;
  int iterations = 0;
};

inline Arguments parse(int argc, char** argv) {
  Arguments a;
  if (argc == 3) {
    a.elements = std::strtoull(argv[1], nullptr, 10);
    a.iterations = std::atoi(argv[2]);
  }
  if (a.elements == 0 || a.iterations < 1) {
    std::fprintf(stderr, "usage: %s ELEMENTS ITERATIONS\n", argv[0]);
    std::exit(2);
  }
  return a;
}

inline void fill(std::vector<float>& values, int rank) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<float>(i % 251 + static_cast<std::size_t>(rank));
  }
}

/// Ends the program when a sum is wrong.
inline void check(const std::vector<float>& values, int size) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto expected = static_cast<float>(static_cast<std::size_t>(size) * (i % 251) +
                                             static_cast<std::size_t>(size * (size - 1) / 2));
    if (values[i] != expected) {
      std::fprintf(stderr, "element %zu is %g, should be %g\n", i, static_cast<double>(values[i]),
                   static_cast<double>(expected));
      std::exit(4);
    }
  }
}

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

} // namespace baseline
