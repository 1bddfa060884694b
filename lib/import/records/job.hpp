// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/json_fwd.hpp"
#include "import/collectives.hpp"
#include "import/collector.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reckon::import_detail {

/// A process of a job whose records were read.
struct JobProcess {
  std::string file, host;            ///< an empty host is not known
  std::optional<std::uint64_t> rank; ///< in the whole job
};

/// What one rank recorded of one collective.
struct RecordedCall {
  std::size_t communicator = 0, process = 0; ///< as Job counts them
  std::uint64_t rank = 0;                    ///< in the communicator
  std::uint64_t sequence = 0;                ///< the same number at all its ranks
  const Collective* collective = nullptr;
  std::uint64_t bytes = 0; ///< as nccl-tests counts a size: of all ranks where each has a part
  std::string dtype;       ///< as recorded; empty where the record has none
  std::optional<double> start_s; ///< when the rank arrived, by the process's clock
  double duration_s = 0;         ///< from then to the end, with the wait for others
};

/// A rank's count of the calls that it made, for records that have no times.
struct RecordedProgress {
  std::size_t communicator = 0;
  std::uint64_t rank = 0;
  std::string what; ///< "AllReduce"
  std::uint64_t calls = 0;
};

struct RecordedCommunicator {
  std::string name;        ///< for people; may be empty
  std::uint64_t ranks = 0; ///< all of them, recorded or not
  std::string transport = "nccl";
  /// The ranks of the job that it consists of, where the record says so; else its processes' are
  /// taken.
  std::vector<std::uint64_t> members{};
};

/// The records of one job's ranks: each reader fills one, and profile_of() makes the profile of it.
class Job {
public:
  /// `title`: "NCCL Inspector". `takes`: the parts of its records that reckon reads.
  explicit Job(std::string title, std::string takes = "collectives with times")
      : m_title(std::move(title)), m_takes(std::move(takes)) {}

  [[nodiscard]] std::size_t process(JobProcess process);
  /// The communicator of an id that all its ranks record alike; made at first use.
  [[nodiscard]] std::size_t communicator(const std::string& id, const RecordedCommunicator& made);
  void call(RecordedCall call) { m_calls.push_back(std::move(call)); }
  void progress(RecordedProgress progress) { m_progress.push_back(std::move(progress)); }
  /// Something that people should know, as a line of the profile's context.
  void note(const std::string& name, const std::string& text) { m_notes[name] = text; }
  /// Counts calls that are no use, by the reason.
  void left_out(std::string_view why) { ++m_left_out[std::string(why)]; }

  /// Cells per collective, size, type and communicator: the time without the wait for the last
  /// rank. It is taken out by the last arrival where the ranks' clocks agree, and else is the least
  /// of what the ranks recorded: the last to arrive waits for nobody. The context says which, and
  /// names the rank that was last most often, and ranks that are behind others. Throws
  /// Error{input} when there is nothing to say.
  [[nodiscard]] Profile profile(const std::vector<ToolOutput>& outputs,
                                const ImportOptions& options);

private:
  /// Calls of one collective by several ranks.
  using Together = std::vector<const RecordedCall*>;
  struct Clocks;

  void number_processes();
  void name_members();
  [[nodiscard]] std::vector<Together> together();
  [[nodiscard]] std::vector<Clocks> clocks_of(const std::vector<Together>& all) const;
  void add_cells(Collector& out, const std::vector<Together>& all,
                 const std::vector<Clocks>& clocks) const;
  [[nodiscard]] std::string how_waits_are_taken_out(const std::vector<Together>& all,
                                                    const std::vector<Clocks>& clocks) const;
  void name_late_rank(Collector& out, const std::vector<Together>& all,
                      const std::vector<Clocks>& clocks) const;
  void name_who_is_behind(Collector& out) const;
  [[nodiscard]] std::string rank_text(std::size_t process) const;

  std::string m_title, m_takes;
  std::vector<JobProcess> m_processes;
  std::vector<RecordedCommunicator> m_communicators;
  std::map<std::string, std::size_t> m_communicator_ids;
  std::vector<RecordedCall> m_calls;
  std::vector<RecordedProgress> m_progress;
  std::map<std::string, std::string> m_notes;
  std::map<std::string, std::size_t> m_left_out;
};

/// The collective that NCCL or PyTorch names ("AllReduce", "nccl:_all_gather_base", "allreduce");
/// null for others: sends and receives, barriers.
[[nodiscard]] const Collective* recorded_collective(std::string_view name);

/// An element type as NCCL, PyTorch or C++ name it. `name`: reckon's, or the suffix of a cell's
/// test. Null for an unknown one.
struct RecordedType {
  std::string_view recorded, name;
  std::uint64_t bytes;
};
[[nodiscard]] const RecordedType* recorded_type(std::string_view recorded);

/// "0-7", "0-56:8" (every eighth), "0,3,4"; a digest of them in place of a long list.
[[nodiscard]] std::string rank_list(std::vector<std::uint64_t> ranks);

/// Bytes of tensors by lists of their sizes and of their types; 0 if a type is not known.
[[nodiscard]] std::uint64_t recorded_bytes(const JsonView& sizes, const JsonView& types);

/// The ranks of a text as PyTorch writes them, "[0, 1, 2]". Throws Error{input} for another.
[[nodiscard]] std::vector<std::uint64_t> recorded_ranks(const JsonView& text);

/// The last whole number in a file's name: "nccl_trace_rank_12" is 12.
[[nodiscard]] std::optional<std::uint64_t> rank_in_name(const std::string& file);

} // namespace reckon::import_detail
