// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/json_fwd.hpp"
#include "core/stations.hpp"
#include "documents/plan.hpp"
#include "schedule/schedule.hpp"
#include "schedule/timeline.hpp"

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace reckon {

/// Seconds that a lane of `rank` is busy with an op on its own memory.
using LocalSeconds = std::function<double(std::size_t rank, const Op& op)>;

/// The network between a plan's ranks.
struct ExportNetwork {
  StationNetwork network;
  std::vector<std::string> stations; ///< names, by station
  /// Time of the first station for every write, beside its bytes; where a format cannot express it,
  /// a comment does.
  double write_overhead_s = 0;
};

/// The times of a GOAL text beside the model's passes.
struct GoalTimes {
  LocalSeconds local;
  ExportNetwork network; ///< a comment has its LogGOPS parameters
};

/// The schedule as a GOAL text: a rank for each of ours. Each lane has two processors, for its sums
/// where they may be what it waits for, and for the model's passes; the others are the parts', for
/// their messages and their other sums. A write is a send at the sender and a receive at the peer,
/// both with one tag that no other write between the two has. A local op is a `calc` in
/// nanoseconds; without `times` it takes none. Throws Error{input} when a rank has more lanes than
/// the format's processors are enough for.
[[nodiscard]] std::string goal_text(const Schedule& schedule, const std::string& title,
                                    const std::optional<GoalTimes>& times);

/// The schedule as an MSCCL program for an in-place all-reduce: a thread block and a channel for
/// each lane, a chunk for each part, or for fewer of the parts in the same proportion: as many as
/// divide the elements of the gradient and the runtimes take. A comment says for which of
/// microsoft/msccl and RCCL the program is and for how many elements they use it; a warning says
/// so, too, where that is not for both or the gradient must be padded. Fits where all ranks are
/// workers, the plan ends with plain sums, all parts but a shorter last one are of about one size,
/// and each lane sends to one rank and receives from one, as in a ring. Otherwise throws
/// Error{input} that says what does not fit and what would.
[[nodiscard]] std::string msccl_xml(const Plan& plan, const Schedule& schedule);

/// The network as a SimGrid platform: a host for each rank ("rank0", ...), a link for each station,
/// a route for each pair. Rates in bytes per second and times in seconds, as exact as ours. Throws
/// Error{input} with more than 1024 ranks: routes are written pair by pair.
[[nodiscard]] std::string simgrid_xml(const ExportNetwork& network, const std::string& title);

/// The network for ASTRA-sim's analytical backend: a switch with a port for each rank, or racks of
/// equal size below a second one. Its GB are of 2^30 bytes and its latency is that of one of a
/// switch's two links. Throws Error{input} where ranks differ in a property that the format has
/// once for all of them.
[[nodiscard]] std::string astra_network_yml(const Plan& plan, const ExportNetwork& network);

/// A line for the CSV file of NCCL's example tuner plugin that makes NCCL follow the plan: ring
/// all-reduce of gradients from one part to all of them. Throws Error{input} when the plan chose an
/// algorithm that NCCL lacks.
[[nodiscard]] std::string nccl_tuner_csv(const Plan& plan);

/// A timeline and its name: "predicted", "measured".
struct NamedTimeline {
  std::string name;
  RankTimelines ops;
};

/// Timelines of one schedule as a trace in Chrome's JSON: a process for each timeline, with rows
/// for each lane of each rank: the lane's ops, the model's passes, and writes, as many rows as are
/// under way at once. Times count from the first op of each timeline.
[[nodiscard]] std::string chrome_trace(const Schedule& schedule,
                                       std::span<const NamedTimeline> timelines);

/// The timeline called `name` of a trace that chrome_trace() wrote of this schedule. Throws
/// Error{input} when the file lacks it or has one of another schedule.
[[nodiscard]] NamedTimeline read_trace(const Json& json, const std::string& file,
                                       const Schedule& schedule, const std::string& name);

} // namespace reckon
