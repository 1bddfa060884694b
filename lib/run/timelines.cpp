// SPDX-License-Identifier: Apache-2.0
#include "run/timelines.hpp"

#include "core/json.hpp"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace reckon {

RankTimelines gather_timelines(Rendezvous& rendezvous, const RankTimeline& mine, Seconds limit) {
  Json lanes = Json::array();
  for (const std::vector<OpSpan>& lane : mine) {
    Json times = Json::array();
    for (const OpSpan& span : lane) {
      times.push_back(span.begin_ns);
      times.push_back(span.end_ns);
    }
    lanes.push_back(std::move(times));
  }
  RankTimelines all;
  for (const std::string& text : rendezvous.all_gather(lanes.dump(), limit)) {
    RankTimeline& rank = all.emplace_back();
    for (const auto& times : Json::parse(text).get<std::vector<std::vector<std::int64_t>>>()) {
      std::vector<OpSpan>& spans = rank.emplace_back();
      for (std::size_t i = 0; i + 1 < times.size(); i += 2) {
        spans.push_back({times[i], times[i + 1]});
      }
    }
  }
  return all;
}

} // namespace reckon
