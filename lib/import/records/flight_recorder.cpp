// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "core/json.hpp"
#include "import/records/job.hpp"
#include "import/records/readers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace reckon::import_detail {
namespace {

class FlightRecorderReader {
public:
  void read(const ToolOutput& output, const JsonView& dump) {
    const JsonView version = dump.at("version");
    if (!version.string().starts_with("2.")) {
      version.fail(fmt::format("is {}; reckon reads 2, of PyTorch 2.3 and later",
                               one_line(version.string())));
    }
    const auto rank = rank_in_name(output.file);
    if (!rank) {
      dump.fail("a dump does not say of which rank it is: name the file as PyTorch does, "
                "nccl_trace_rank_0");
    }
    const std::size_t process = m_job.process({.file = output.file, .host = "", .rank = rank});
    const auto entries = dump.find("entries");
    std::map<std::size_t, std::uint64_t> last; // by communicator
    for (const JsonView& entry : entries ? entries->elements() : std::vector<JsonView>()) {
      if (entry.at("is_p2p").boolean()) {
        m_job.left_out("sends and receives");
        continue;
      }
      const std::size_t communicator = group_of(dump, entry);
      const std::uint64_t sequence = entry.at("collective_seq_id").count();
      last[communicator] = std::max(last[communicator], sequence);
      m_hangs = m_hangs || entry.at("state").string() != "completed";
      add(entry, communicator, process, *rank, sequence);
    }
    for (const auto& [communicator, sequence] : last) {
      m_progress.push_back({communicator, *rank, "collectives begun", sequence});
    }
  }

  [[nodiscard]] Profile profile(const std::vector<ToolOutput>& files,
                                const ImportOptions& options) {
    // Dumps are not made at one moment: numbers that differ say something only in a job that hangs.
    for (const RecordedProgress& progress :
         m_hangs ? m_progress : std::vector<RecordedProgress>()) {
      m_job.progress(progress);
    }
    return m_job.profile(files, options);
  }

private:
  [[nodiscard]] std::size_t group_of(const JsonView& dump, const JsonView& entry) {
    const std::vector<JsonView> name = entry.at("process_group").elements();
    if (name.size() != 2) {
      entry.at("process_group").fail("must have a name and a description");
    }
    const JsonView ranks = dump.at("pg_config").at(name[0].string()).at("ranks");
    const std::vector<std::uint64_t> members = recorded_ranks(ranks);
    return m_job.communicator(
        name[0].string() + " " + ranks.string(),
        {.name = name[1].string(), .ranks = members.size(), .members = members});
  }

  void add(const JsonView& entry, std::size_t communicator, std::size_t process, std::uint64_t rank,
           std::uint64_t sequence) {
    const std::string name = entry.at("profiling_name").string();
    const Collective* const collective = recorded_collective(name);
    const auto duration_ms = entry.find("duration_ms");
    const JsonView types = entry.at("input_dtypes");
    const std::uint64_t bytes =
        std::max(recorded_bytes(entry.at("input_sizes"), types),
                 recorded_bytes(entry.at("output_sizes"), entry.at("output_dtypes")));
    if (collective == nullptr || !duration_ms || bytes == 0) {
      m_job.left_out(collective == nullptr ? one_line(name)
                     : !duration_ms        ? "collectives without duration_ms, which "
                                             "TORCH_NCCL_ENABLE_TIMING=1 records"
                                           : "collectives without bytes");
      return;
    }
    m_job.call({.communicator = communicator,
                .process = process,
                .rank = rank,
                .sequence = sequence,
                .collective = collective,
                .bytes = bytes,
                .dtype = types.elements().empty() ? "" : types.elements().front().string(),
                .start_s = std::nullopt, // time_created_ns is when the program called it
                .duration_s = duration_ms->positive() * 1e-3});
  }

  Job m_job{"PyTorch's Flight Recorder"};
  std::vector<RecordedProgress> m_progress;
  bool m_hangs = false;
};

} // namespace

Profile read_flight_recorder(const std::vector<ToolOutput>& files, const ImportOptions& options) {
  FlightRecorderReader reader;
  for (const ToolOutput& output : files) {
    const Json dump = parse_json(output.text, output.file);
    reader.read(output, JsonView(dump, output.file));
  }
  return reader.profile(files, options);
}

} // namespace reckon::import_detail
