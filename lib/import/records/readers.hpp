// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "import/collector.hpp"

#include <string>
#include <string_view>
#include <vector>

/// Readers of what a job's ranks recorded of it. Each makes one profile of the files of all ranks,
/// and throws Error{input} with the file and the place of what the program would not write.
namespace reckon::import_detail {

using ReadRecords = Profile(const std::vector<ToolOutput>& files, const ImportOptions& options);
/// JSON lines of NCCL's profiler plugin Inspector, a file for each process. A last line that was
/// cut off is left out with a warning.
ReadRecords read_inspector;
/// `ncclras -f json`: the communicators of a job at one moment, without times. The profile has the
/// machines and the ranks that are behind or missing.
ReadRecords read_ras;
/// Dumps of PyTorch's Flight Recorder as JSON, a file for each rank, which ends in its number.
ReadRecords read_flight_recorder;
/// Traces of torch.profiler, a file for each rank.
ReadRecords read_kineto;

/// Whether it is a pickle of Python.
[[nodiscard]] bool is_pickle(std::string_view bytes);
/// The pickle as JSON: None, booleans, numbers, strings, lists, tuples and dictionaries, which is
/// all that a Flight Recorder writes. Nothing is executed: what would make an object is refused,
/// with the file and the byte.
[[nodiscard]] std::string json_of_pickle(std::string_view bytes, const std::string& file);

} // namespace reckon::import_detail
