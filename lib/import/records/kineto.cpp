// SPDX-License-Identifier: Apache-2.0
#include "import/records/job.hpp"
#include "import/records/readers.hpp"
#include "import/records/trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace reckon::import_detail {
namespace {

constexpr std::string_view k_gloo = "gloo:";

class KinetoReader {
public:
  void read(const ToolOutput& output) {
    const Trace trace(output.text, output.file);
    m_file = output.file;
    const JsonView view = trace.view();
    const auto info = view.find("distributedInfo");
    const auto rank = info && info->find("rank") ? std::optional(info->at("rank").count())
                                                 : rank_in_name(output.file);
    if (!rank) {
      view.fail(
          "does not say of which rank it is; name the file with its number, trace_rank0.json");
    }
    const auto host = view.find("host_name");
    const std::size_t process =
        m_job.process({.file = output.file, .host = host ? host->string() : "", .rank = rank});
    const auto world = info ? info->find("world_size") : std::nullopt;
    std::map<std::pair<std::size_t, std::string_view>, std::uint64_t> next;
    for (const TraceEvent& event : trace.events()) {
      RecordedCall call{.process = process,
                        .rank = *rank,
                        .start_s = trace.base_s() + event.begin_s,
                        .duration_s = event.end_s - event.begin_s};
      const bool found = event.category == "kernel" ? of_kernel(event, call)
                         : event.name.starts_with(k_gloo)
                             ? of_gloo(event, world ? world->count() : 0, call)
                             : false;
      if (!found) {
        continue;
      }
      const auto sequence = event.count("Seq"); // of some versions; else they are counted
      call.sequence = next[{call.communicator, call.collective->name}]++;
      m_counted = m_counted || !sequence;
      call.sequence = sequence.value_or(call.sequence);
      m_calls.push_back(std::move(call));
    }
  }

  [[nodiscard]] Profile profile(const std::vector<ToolOutput>& files,
                                const ImportOptions& options) {
    std::map<std::tuple<std::size_t, std::string_view>, std::map<std::size_t, std::size_t>> counts;
    for (const RecordedCall& call : m_calls) {
      ++counts[{call.communicator, call.collective->name}][call.process];
    }
    for (RecordedCall& call : m_calls) {
      const auto& by_process = counts.at({call.communicator, call.collective->name});
      const bool alike = std::ranges::all_of(
          by_process, [&](const auto& one) { return one.second == by_process.begin()->second; });
      if (m_counted && !alike) {
        m_job.left_out(fmt::format("calls of {}, of which the traces of the ranks have different "
                                   "numbers: trace the same steps on all",
                                   call.collective->name));
      } else {
        m_job.call(std::move(call));
      }
    }
    return m_job.profile(files, options);
  }

private:
  /// A kernel of NCCL, to which the profiler adds what it moves.
  bool of_kernel(const TraceEvent& event, RecordedCall& call) {
    if (!event.name.starts_with("nccl")) {
      return false;
    }
    const RecordedType* const type = recorded_type(event.text("dtype"));
    const auto in = event.count("In msg nelems"), out = event.count("Out msg nelems");
    const auto ranks = event.count("Group size");
    call.collective = recorded_collective(event.text("Collective name"));
    if (call.collective == nullptr || type == nullptr || !in || !out || !ranks ||
        *ranks > k_most_machines) {
      m_job.left_out("kernels of NCCL of which the trace does not say what they move (PyTorch 2.3 "
                     "and later do)");
      return false;
    }
    const std::string group = event.text("Process Group Name"),
                      listed = event.text("Process Group Ranks");
    RecordedCommunicator made{.name = event.text("Process Group Description"), .ranks = *ranks};
    if (!listed.empty() && !contains(listed, "...")) {
      const Json text = listed;
      made.members = recorded_ranks(JsonView(text, m_file));
    }
    call.communicator = m_job.communicator(group + " " + listed, made);
    call.bytes = std::max(*in, *out) * type->bytes;
    call.dtype = event.text("dtype");
    return call.bytes > 0;
  }

  /// Gloo's, of all ranks of the job: the profiler does not say which group it is.
  bool of_gloo(const TraceEvent& event, std::uint64_t world, RecordedCall& call) {
    call.collective = recorded_collective(event.name);
    const Json* const shapes = event.arg("Input Dims");
    const Json* const types = event.arg("Input type");
    if (call.collective == nullptr || shapes == nullptr || types == nullptr || world == 0) {
      m_job.left_out(call.collective == nullptr ? quoted(event.name)
                                                : "collectives of gloo without sizes: trace with "
                                                  "record_shapes=True");
      return false;
    }
    call.bytes = recorded_bytes(JsonView(*shapes, m_file), JsonView(*types, m_file));
    call.dtype =
        types->empty() || !types->front().is_string() ? "" : types->front().get<std::string>();
    call.communicator = m_job.communicator(
        "world", {.name = "world", .ranks = world, .transport = "gloo", .members = {}});
    return call.bytes > 0;
  }

  Job m_job{
      "torch.profiler",
      "collectives with times; --as-workload makes a workload of a rank's gradients and layers"};
  std::string m_file; ///< in hand
  std::vector<RecordedCall> m_calls;
  bool m_counted = false; ///< whether the order says which calls belong together
};

} // namespace

Profile read_kineto(const std::vector<ToolOutput>& files, const ImportOptions& options) {
  KinetoReader reader;
  for (const ToolOutput& output : files) {
    reader.read(output);
  }
  return reader.profile(files, options);
}

} // namespace reckon::import_detail
