// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "import/records/job.hpp"
#include "import/records/readers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace reckon::import_detail {
namespace {

constexpr double k_inspector_unit_s = 1e-6;

/// When a rank's kernel began, by the clock of its host: only with NCCL_INSPECTOR_DUMP_VERBOSE=1.
std::optional<double> inspector_start_s(const JsonView& perf) {
  const auto trace = perf.find("event_trace_ts");
  if (!trace) {
    return std::nullopt;
  }
  std::optional<std::uint64_t> first;
  for (const JsonView& channel : trace->at("kernel_events").elements()) {
    const std::uint64_t start = channel.at("kernel_start_ts").count();
    first = std::min(first.value_or(start), start);
  }
  return first ? std::optional(static_cast<double>(*first) * k_inspector_unit_s) : std::nullopt;
}

/// The calls of one process.
class InspectorFile {
public:
  explicit InspectorFile(Job& job) : m_job(job) {}

  void add(const JsonView& line) {
    const JsonView header = line.at("header"), metadata = line.at("metadata");
    const JsonView version = metadata.at("inspector_output_format_version");
    if (!version.string().starts_with("v4.")) {
      version.fail(fmt::format("is {}; reckon reads v4.0, of NCCL 2.28 and later",
                               one_line(version.string())));
    }
    m_host = metadata.at("hostname").string();
    const auto perf = line.find("coll_perf");
    if (!perf) {
      static_cast<void>(line.at("p2p_perf"));
      m_job.left_out("sends and receives");
      return;
    }
    const std::string name = perf->at("coll").string();
    const Collective* const collective = recorded_collective(name);
    const std::uint64_t time_us = perf->at("coll_exec_time_us").count();
    if (collective == nullptr || time_us == 0) {
      m_job.left_out(collective == nullptr ? name : "collectives of less than 1 us");
      return;
    }
    const auto ranks = static_cast<std::uint64_t>(header.at("n_ranks").integer(1, 1 << 24));
    const auto comm_name = header.find("comm_name"); // since NCCL 2.29
    const std::string label = comm_name ? comm_name->string() : "unknown";
    const std::uint64_t rank = header.at("rank").count();
    if (rank >= ranks) {
      header.at("rank").fail(fmt::format("is {} of {} ranks; the first is 0", rank, ranks));
    }
    // The plugin cuts the last digits of an id off, so its name and size belong to it.
    const std::string id = fmt::format("{} {} {}", header.at("id").string(), label, ranks);
    // NCCL counts what one rank has of it.
    const bool parts = collective->bus_factor(2) < 1;
    m_calls.push_back({.communicator = m_job.communicator(id, {.name = label, .ranks = ranks}),
                       .rank = rank,
                       .sequence = perf->at("coll_sn").count(),
                       .collective = collective,
                       .bytes = perf->at("coll_msg_size_bytes").count() * (parts ? ranks : 1),
                       .start_s = inspector_start_s(*perf),
                       .duration_s = static_cast<double>(time_us) * k_inspector_unit_s});
  }

  /// A process with several GPUs has several ranks of each communicator, in the order of its GPUs;
  /// each GPU counts as a process.
  void finish(const std::string& file) {
    std::map<std::size_t, std::set<std::uint64_t>> ranks;
    for (const RecordedCall& call : m_calls) {
      ranks[call.communicator].insert(call.rank);
    }
    std::map<std::ptrdiff_t, std::size_t> processes;
    for (RecordedCall& call : m_calls) {
      const std::set<std::uint64_t>& mine = ranks[call.communicator];
      const auto [at, added] =
          processes.try_emplace(std::distance(mine.begin(), mine.find(call.rank)));
      if (added) {
        at->second = m_job.process({.file = file, .host = m_host, .rank = std::nullopt});
      }
      call.process = at->second;
      m_job.call(std::move(call));
    }
  }

private:
  Job& m_job;
  std::string m_host;
  std::vector<RecordedCall> m_calls;
};

} // namespace

Profile read_inspector(const std::vector<ToolOutput>& files, const ImportOptions& options) {
  Job job("NCCL Inspector");
  for (const ToolOutput& output : files) {
    const TextLines lines(output.text, output.file);
    InspectorFile process(job);
    for (std::size_t i = 0; i < lines.size(); ++i) {
      if (i + 1 == lines.size() && !output.text.ends_with('\n') && !lines[i].ends_with("}}")) {
        log(LogLevel::warn, "{}:{}: the line is cut off; what is before it was read", output.file,
            i + 1);
      } else if (!lines[i].empty()) {
        const std::string place = fmt::format("{}:{}", output.file, i + 1);
        const Json line = parse_json(lines[i], place);
        process.add(JsonView(line, place));
      }
    }
    process.finish(output.file);
  }
  return job.profile(files, options);
}

} // namespace reckon::import_detail
