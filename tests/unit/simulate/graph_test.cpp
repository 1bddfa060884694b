// SPDX-License-Identifier: Apache-2.0
#include "simulate/graph.hpp"

#include "support/refusals.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>

namespace reckon {
namespace {

std::string text_of(const SimGraph& graph) {
  std::string text;
  write_graph(graph, [&](std::string_view piece) { text += piece; });
  return text;
}

/// `step` bytes at a time.
SimGraph read_text(const std::string& text, std::size_t step = 1 << 16) {
  std::size_t at = 0;
  return read_graph([&](char* to, std::size_t most) {
    const std::size_t n = std::min({most, step, text.size() - at});
    std::memcpy(to, text.data() + at, n);
    at += n;
    return n;
  });
}

constexpr const char* k_text = "reckon-sim 1\n"
                               "hosts 2\n"
                               "precision 1e-09\n"
                               "station 1000000000\n"
                               "station 5e+20\n"
                               "path 0 1 1e-06 0 | 1 1\n"
                               "path 1 0 0\n"
                               "background 0 200000000 0.5\n"
                               "lane\n"
                               "d 0.25\n"
                               "w 0 1000.5 4 1\n"
                               "c 0.125 1 2\n"
                               "lane\n"
                               "lane\n"
                               "w 1 7 5\n" // not the await of the write above
                               "a\n"
                               "a 2\n"
                               "end\n";

TEST(Graph, ItsTextReadsBackTheSameInPiecesOfAnySize) {
  std::string text = k_text;
  text.replace(text.find("w 1 7 5\n"), 8, "c 1\n"); // ops 0 to 5: 4 awaits op 1, 5 nothing
  for (const std::size_t step : {std::size_t{1}, std::size_t{7}, std::size_t{1} << 16U}) {
    EXPECT_EQ(text_of(read_text(text, step)), text);
  }
  const std::string on_simgrid =
      text.substr(0, text.find("precision")) + "simgrid\n" + text.substr(text.find("precision"));
  EXPECT_EQ(text_of(read_text(on_simgrid)), on_simgrid);
  const SimGraph graph = read_text(text);
  EXPECT_FALSE(graph.simgrid);
  EXPECT_EQ(graph.lanes(), 3U);
  EXPECT_EQ(graph.lane_begin, (std::vector<std::uint32_t>{0, 3, 3, 6}));
  EXPECT_EQ(graph.paths[0].hops, (std::vector<std::vector<std::uint32_t>>{{0}, {1, 1}}));
  EXPECT_TRUE(graph.paths[1].hops.empty());
  EXPECT_EQ(graph.ops[1].awaited, 4U);
  EXPECT_EQ(graph.dependencies_of(2)[1], 0U); // two before op 2
  EXPECT_EQ(graph.backgrounds[0].start_s, 0.5);
}

TEST(Graph, WhatIsWrongIsNamedWithItsLine) {
  const auto with = [](const std::string& from, const std::string& to) {
    std::string text = k_text;
    text.replace(text.find(from), from.size(), to);
    return text;
  };
  for (const auto& [text, words] : std::vector<std::pair<std::string, std::string>>{
           {"", "line 0 is not 'reckon-sim 1'"},
           {"reckon-sim 2\n", "line 1 is not 'reckon-sim 1'"},
           {with("end\n", ""), "line 17 is the last, and it is not 'end'"},
           {with("end\n", "end"), "line 18 has no end of line"},
           {with("station 1000000000", "station 0"), "line 4 has a station that never carries"},
           {with("station 1000000000", "station -1"), "line 4 has rate -1"},
           {with("path 1 0 0", "path 1 2 0"), "line 7 names host 2, but there are 2"},
           {with("| 1 1\n", "| 2\n"), "line 6 names station 2, but there are 2"},
           {with("| 1 1\n", "|\n"), "line 6 has a hop without stations"},
           {with("| 1 1\n", "| | 1\n"), "line 6 has a hop without stations"},
           {with("0 | 1 1\n", "| 1\n"), "line 6 has a hop without stations"},
           {with("precision 1e-09", "precision 0"), "line 3 has a precision of nothing"},
           {with("w 1 7 5", "w 1 1e16 5"), "has a write of 1e+16 bytes"},
           {with("d 0.25", "d x"), "line 10 has 'x' for seconds, which is no number"},
           {with("d 0.25", "d"), "line 10 has no seconds"},
           {with("d 0.25", "d 0.25 1"), "line 10 names op before 1, but there are 1"},
           {with("c 0.125 1 2", "c 0.125 0"), "line 12 is an op that waits for itself"},
           {with("c 0.125 1 2", "q 0.125"), "line 12 begins with 'q', which is no op"},
           {with("precision", "lane\nprecision"), "line 4 begins with 'precision', which is no op"},
           {with("station 5e", "stations 5e"), "line 5 begins with 'stations'"},
           {with("hosts 2", "hosts 2 3"), "line 2 has more than a hosts line has"},
           {with("precision", "hosts 1\nprecision"), "line 3 gives the number of hosts again"},
           {with("w 1 7 5", "w 1 7 1"), "op 3 is announced to op 1"},
           {with("w 1 7 5", "w 1 7 4"), "op 3 is announced to op 4"},
           {with("w 1 7 5", "w 1 7 99"), "op 3 is announced to op 99"}}) {
    const std::string& graph = text;
    EXPECT_REFUSED(input, words, read_text(graph));
  }
}

} // namespace
} // namespace reckon
