// SPDX-License-Identifier: Apache-2.0
#include "documents/cells.hpp"

#include "core/error.hpp"
#include "documents/contention.hpp"
#include "documents/profile.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace reckon {
namespace {

using enum MeasuredOn;

constexpr const char* k_rate = k_bytes_per_second;
constexpr const char* k_payload = "payload";
constexpr const char* k_stream = "stream";

constexpr CellCase k_cases[] = {
    {k_rehearsal, machine, k_rate, k_payload,
     "small plans as `reckon run` plays them, by transport, strategy, ranks and size of a part"},
    {k_fabric_latency, machine, k_seconds, "",
     "how long an 8-byte write takes to reach a process that sleeps"},
    {k_fabric_write, machine, k_seconds, "",
     "time of a write between two processes from 8 B to 64 MiB, by transport"},
    {k_fabric_aggregate, machine, k_rate, k_payload,
     "what 1, 2, 4, ... pairs of processes move together, by transport"},
    {k_fabric_window, machine, k_seconds, "",
     "writes between two processes, by how many are in flight"},

    {k_pair_latency, gpus, k_seconds, "",
     "how long an 8-byte write over transport cuda takes, between GPUs and NUMA nodes"},
    {k_pair_write, gpus, k_seconds, "", "time of one such write, by size"},
    {k_pair_bandwidth, gpus, k_rate, k_payload,
     "what such writes move, each direction alone and both at once"},
    {k_host_to_device_ce, gpus, k_rate, k_payload,
     "copies from a NUMA node to a GPU, pinned and pageable"},
    {k_device_to_host_ce, gpus, k_rate, k_payload,
     "copies from a GPU to a NUMA node, pinned and pageable"},
    {k_host_device_two_way_ce, gpus, k_rate, k_payload, "both at once"},
    {k_host_to_device_sm, gpus, k_rate, k_payload, "a GPU's kernel reads a NUMA node"},
    {k_device_to_host_sm, gpus, k_rate, k_payload, "a GPU's kernel writes to a NUMA node"},
    {k_host_to_all_ce, gpus, k_rate, k_payload, "copies to all GPUs at once"},
    {k_all_to_host_ce, gpus, k_rate, k_payload, "copies from all GPUs at once"},
    {k_device_write_ce, gpus, k_rate, k_payload,
     "copies between GPUs, made by the source; directly and by the host"},
    {k_device_read_ce, gpus, k_rate, k_payload, "copies between GPUs, made by the destination"},
    {k_device_write_sm, gpus, k_rate, k_payload, "a GPU's kernel writes to another"},
    {k_device_read_sm, gpus, k_rate, k_payload, "a GPU's kernel reads another"},
    {k_device_two_way_ce, gpus, k_rate, k_payload, "copies between GPUs, both ways at once"},
    {k_device_local_copy, gpus, k_rate, k_payload, "copies inside a GPU"},
    {k_gpu_copy, gpus, k_seconds, "",
     "time of a copy to, from and between GPUs from 4 KiB to 256 MiB"},
    {k_gpu_reduce, gpus, k_rate, k_payload,
     "summation of gradients on a GPU, by element type, operands and part size"},
    {k_gpu_copy_blocks, gpus, k_rate, k_payload,
     "copies by a kernel on 1, 2, 4, ... multiprocessors"},
    {k_host_device_latency, gpus, k_seconds, "",
     "how long a GPU's dependent load from a NUMA node takes"},
    {k_device_device_latency, gpus, k_seconds, "",
     "how long a GPU's dependent load from a GPU takes"},

    {k_reduce_sum, machine, k_rate, k_payload,
     "summation of gradients, by element type, threads, operands and part size"},
    {k_sum_in_place, machine, k_rate, k_stream,
     "memory traffic of sums that are written into each of their operands, in memory that "
     "processes share"},
    {k_sum_and_send, machine, k_rate, k_payload,
     "sums that are sent at once, with stores through the caches and around them"},
    {k_optimizer_step, machine, k_rate, k_payload,
     "SGD, momentum, RMSProp and Adam steps, by threads"},
    {k_host_memcpy, machine, k_seconds, "", "time of a copy from 8 B to 256 MiB, warm and cold"},
    {k_stream_copy, machine, k_rate, k_stream,
     "memory traffic of a = b, as STREAM counts; a ceiling"},
    {k_stream_add, machine, k_rate, k_stream,
     "memory traffic of a = b + c, as STREAM counts; a ceiling"},
    {k_numa_copy, machine, k_rate, k_payload,
     "copying between NUMA nodes, one thread and all, one way and both"},
    {k_numa_read, machine, k_rate, k_payload, "reading another node's memory"},
    {k_numa_write, machine, k_rate, k_payload, "writing another node's memory"},
    {k_link_bandwidth, machine, k_rate, k_payload,
     "what links carry that copies between NUMA nodes and GPUs share"},
    {k_processor_loop, machine, k_seconds, "",
     "how long 20 million dependent multiplications take on all cores at once"},
    {k_memory_latency, machine, k_seconds, "",
     "how long a dependent load takes, from L1 to each NUMA node's memory"},
    {k_contention_communication, machine, k_seconds, "",
     "copies and sums of gradients, alone and while something computes"},
    {k_contention_compute, machine, k_seconds, "",
     "matrix products and lookups, alone and while gradients move"},
    {k_core_to_core, machine, k_seconds, "",
     "how long one core takes to see what another has written"},

    {k_pair_latency, cluster, k_seconds, "",
     "how long an 8-byte write takes, between all pairs of machines"},
    {k_pair_bandwidth, cluster, k_rate, k_payload,
     "what flows between all pairs, each direction alone and both at once"},
    {k_pair_write, cluster, k_seconds, "",
     "time of one write between all pairs, by size: of up to 8 machines, or with --pair-writes"},
    {k_fan_in, cluster, k_rate, k_payload, "what a machine's port takes from several at once"},
    {k_fan_out, cluster, k_rate, k_payload, "what a machine's port sends to several at once"},
    {k_port_bandwidth, cluster, k_rate, k_payload,
     "what a port does in each direction when both are busy"},
    {k_single_port, cluster, k_rate, k_payload, "the same of each of several network ports"},
    {k_rail_bandwidth, cluster, k_rate, k_payload,
     "what flows between port i of two machines, each rail alone and all at once: with --rails"},
    {k_fabric_write, cluster, k_seconds, "", "time of a write between two machines, by size"},
    {k_bisection_by_order, cluster, k_rate, k_payload,
     "what the first half of the ranks and the second move together"},
    {k_bisection_random, cluster, k_rate, k_payload,
     "the same for halves drawn at random, the worst of them"},
    {k_bisection_by_racks, cluster, k_rate, k_payload,
     "the same for racks against racks, where there are racks"},
    {k_uplink, cluster, k_rate, k_payload,
     "what a rack sends out while as much comes in, where there are racks"},
};

} // namespace

std::uint64_t rehearsed_gradient_bytes(const CellKey& rehearsal) {
  const std::uint64_t all = std::uint64_t{rehearsal.state == "in_place" ? 256U : 128U} << 20U;
  const auto ranks = static_cast<std::uint64_t>(std::max(1, rehearsal.threads));
  const std::uint64_t parts = (rehearsal.sources < rehearsal.threads ? 4 : 2) * ranks;
  return std::max(all / ranks / rehearsal.bytes, parts) * rehearsal.bytes;
}

std::span<const CellCase> cell_cases() {
  return k_cases;
}

const CellCase& cell_case(std::string_view name) {
  const auto* const found = std::find_if(std::begin(k_cases), std::end(k_cases),
                                         [&](const CellCase& c) { return name == c.name; });
  if (found == std::end(k_cases)) {
    fail(ErrorKind::internal, fmt::format("no cell case is called '{}'", name));
  }
  return *found;
}

} // namespace reckon
