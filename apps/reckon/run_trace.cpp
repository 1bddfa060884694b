// SPDX-License-Identifier: Apache-2.0
#include "run_trace.hpp"

#include "output.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "export/export.hpp"

#include <span>
#include <string>
#include <utility>

namespace reckon {

void check_trace(const RunArguments& arguments) {
  if (arguments.trace == "-") {
    fail(ErrorKind::usage, "--trace -: standard output is the report's; name a file");
  }
  if (!arguments.trace.empty()) {
    refuse_overwriting_text(arguments.trace, {arguments.plan}, "trace", chrome_trace({}, {}),
                            "--trace");
  }
}

void write_trace(const Schedule& schedule, RankTimelines timelines, const std::string& file) {
  const NamedTimeline timeline{"measured", std::move(timelines)};
  write_file(file, chrome_trace(schedule, std::span(&timeline, 1)));
}

} // namespace reckon
