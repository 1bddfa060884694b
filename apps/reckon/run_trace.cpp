// SPDX-License-Identifier: Apache-2.0
#include "run_trace.hpp"

#include "output.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/json.hpp"
#include "export/export.hpp"

#include <span>
#include <string>
#include <utility>
#include <vector>

namespace reckon {

void check_trace(const RunArguments& arguments) {
  if (arguments.trace == "-") {
    fail(ErrorKind::usage, "--trace -: standard output is the report's; name a file");
  }
  if (!arguments.trace.empty()) {
    refuse_overwriting(arguments.trace, {arguments.plan}, "--trace");
  }
}

void write_trace(Rendezvous& rendezvous, const Schedule& schedule, const RankTimeline& mine,
                 const RunArguments& arguments, Seconds limit) {
  Json lanes = Json::array();
  for (const std::vector<OpSpan>& lane : mine) {
    Json times = Json::array();
    for (const OpSpan& span : lane) {
      times.push_back(span.begin_ns);
      times.push_back(span.end_ns);
    }
    lanes.push_back(std::move(times));
  }
  const std::vector<std::string> all = rendezvous.all_gather(lanes.dump(), limit);
  if (rendezvous.rank() != 0) {
    return;
  }
  NamedTimeline timeline{"measured", {}};
  for (const std::string& text : all) {
    RankTimeline& rank = timeline.ops.emplace_back();
    for (const auto& times : Json::parse(text).get<std::vector<std::vector<std::int64_t>>>()) {
      std::vector<OpSpan>& spans = rank.emplace_back();
      for (std::size_t i = 0; i + 1 < times.size(); i += 2) {
        spans.push_back({times[i], times[i + 1]});
      }
    }
  }
  write_file(arguments.trace, chrome_trace(schedule, std::span(&timeline, 1)));
}

} // namespace reckon
