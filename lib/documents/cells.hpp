// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>

namespace reckon {

// The names of the cases of a profile's cells (CellKey::test, "case" in the document).

// One machine.
inline constexpr const char* k_core_to_core = "core_to_core_latency_cas";
inline constexpr const char* k_processor_loop = "processor_loop";
inline constexpr const char* k_memory_latency = "memory_latency_chase";
inline constexpr const char* k_stream_copy = "stream_copy";
inline constexpr const char* k_stream_add = "stream_add";
inline constexpr const char* k_numa_copy = "numa_to_numa_copy_cpu";
inline constexpr const char* k_numa_read = "numa_to_numa_read_cpu";
inline constexpr const char* k_numa_write = "numa_to_numa_write_cpu";
/// One direction of a link inside a machine that several ways pass: from and to are neighbouring
/// objects.
inline constexpr const char* k_link_bandwidth = "link_bandwidth";
inline constexpr const char* k_host_memcpy = "host_memcpy";
inline constexpr const char* k_reduce_sum = "reduce_sum";
inline constexpr const char* k_sum_in_place = "sum_in_place";
inline constexpr const char* k_sum_and_send = "sum_and_send";
inline constexpr const char* k_optimizer_step = "optimizer_step";
inline constexpr const char* k_fabric_window = "fabric_write_window";
inline constexpr const char* k_fabric_latency = "fabric_write_latency";
inline constexpr const char* k_fabric_write = "fabric_write";
inline constexpr const char* k_fabric_aggregate = "fabric_aggregate";
/// A small plan of ranks that share the machine, played as a run plays it.
inline constexpr const char* k_rehearsal = "rehearsal";

// GPUs: names of nvbandwidth where it has one. Engines: ce, a copy engine; sm, a kernel on the
// multiprocessors.
inline constexpr const char* k_host_to_device_ce = "host_to_device_memcpy_ce";
inline constexpr const char* k_device_to_host_ce = "device_to_host_memcpy_ce";
inline constexpr const char* k_host_device_two_way_ce = "host_to_device_bidirectional_memcpy_ce";
inline constexpr const char* k_host_to_device_sm = "host_to_device_memcpy_sm";
inline constexpr const char* k_device_to_host_sm = "device_to_host_memcpy_sm";
inline constexpr const char* k_host_to_all_ce = "host_to_all_memcpy_ce";
inline constexpr const char* k_all_to_host_ce = "all_to_host_memcpy_ce";
inline constexpr const char* k_device_read_ce = "device_to_device_memcpy_read_ce";
inline constexpr const char* k_device_write_ce = "device_to_device_memcpy_write_ce";
inline constexpr const char* k_device_read_sm = "device_to_device_memcpy_read_sm";
inline constexpr const char* k_device_write_sm = "device_to_device_memcpy_write_sm";
inline constexpr const char* k_device_two_way_ce = "device_to_device_bidirectional_memcpy_write_ce";
inline constexpr const char* k_device_local_copy = "device_local_copy";
inline constexpr const char* k_host_device_latency = "host_device_latency_sm";
inline constexpr const char* k_device_device_latency = "device_to_device_latency_sm";
inline constexpr const char* k_gpu_copy = "gpu_copy";
inline constexpr const char* k_gpu_copy_blocks = "gpu_copy_by_sm_count";
inline constexpr const char* k_gpu_reduce = "gpu_reduce_sum";

// The machines of a cluster.
inline constexpr const char* k_pair_latency = "pair_latency";
inline constexpr const char* k_pair_bandwidth = "pair_bandwidth";
inline constexpr const char* k_pair_write = "pair_write";
inline constexpr const char* k_fan_in = "fan_in_bandwidth";
inline constexpr const char* k_fan_out = "fan_out_bandwidth";
/// Also the option of a plan whose value replaces these cells.
inline constexpr const char* k_port_bandwidth = "port_bandwidth";
inline constexpr const char* k_single_port = "single_port_bandwidth";
/// Port i of a machine with port i of another: CellKey::operation is "rail0", ... and from and to
/// are "w0/eth0", "w1/eth0"; between machines k_rails_at_once.
inline constexpr const char* k_rail_bandwidth = "rail_bandwidth";
inline constexpr const char* k_rails_at_once = "rails_at_once";
inline constexpr const char* k_bisection_by_order = "bisection_by_order";
inline constexpr const char* k_bisection_random = "bisection_random";
inline constexpr const char* k_bisection_by_racks = "bisection_by_racks";
inline constexpr const char* k_uplink = "uplink_bandwidth";

// Only in profiles that are imported, written by hand or of an earlier version.
inline constexpr const char* k_sum_cached = "sum_cached";
inline constexpr const char* k_memory_read = "memory_read_bandwidth";
inline constexpr const char* k_memory_write = "memory_write_bandwidth";
inline constexpr const char* k_numa_mixed = "numa_to_numa_mixed_cpu";
inline constexpr const char* k_loaded_latency = "memory_latency_loaded";
inline constexpr const char* k_loaded_bandwidth = "memory_bandwidth_loaded";
/// Cells by message size, of which pair_latency has the shortest and pair_bandwidth the longest: of
/// single messages, and of streams.
inline constexpr const char* k_pair_time_by_size = "pair_latency_by_size";
inline constexpr const char* k_pair_rate_by_size = "pair_bandwidth_by_size";
inline constexpr std::array k_not_probed{
    k_memory_read,      k_memory_write,      k_numa_mixed,        k_loaded_latency,
    k_loaded_bandwidth, k_pair_time_by_size, k_pair_rate_by_size, k_sum_cached};

/// Of what is imported, Profile::context: how long the tests of a file took, by the file's digest.
inline constexpr const char* k_seconds_of = "seconds of ";

// CellKey::direction.
inline constexpr const char* k_one_way = "one_way";
inline constexpr const char* k_two_way = "two_way";

// Cell::unit.
inline constexpr const char* k_seconds = "seconds";
inline constexpr const char* k_bytes_per_second = "bytes_per_second";

struct CellKey;
/// Of each worker in a rehearsal: those of all ranks together are far longer than a processor's own
/// caches, and each rank has at least two parts, or eight where some ranks only sum: a part passes
/// through all stages, so that a few would mostly fill and drain them. What ranks take to begin and
/// to end is little of an iteration, as it is of a model's; in place, where bytes take least time,
/// gradients are twice as long for that.
[[nodiscard]] std::uint64_t rehearsed_gradient_bytes(const CellKey& rehearsal);

/// The fields of a CellKey by their names in a document, in the order of a CSV file's columns.
inline constexpr std::array<std::string_view, 13> k_key_names{
    "case",    "from",  "to",        "bytes",     "threads",   "pairs", "in_flight",
    "sources", "dtype", "transport", "direction", "operation", "state"};

/// The kind of measurement that has a case.
enum class MeasuredOn { machine, gpus, cluster };

/// One case that `reckon probe` measures.
struct CellCase {
  const char* name;
  MeasuredOn on;
  const char* unit;             ///< of its cells
  const char* bytes_convention; ///< of its cells; empty for times
  const char* summary;          ///< one line for people
};

/// All of them, in the order of reports to people: the cases that plans are made from first. A case
/// that is measured on a machine and between machines has a line for each.
[[nodiscard]] std::span<const CellCase> cell_cases();
/// The first of them with that name. Throws Error{internal} for an unknown name.
[[nodiscard]] const CellCase& cell_case(std::string_view name);

} // namespace reckon
