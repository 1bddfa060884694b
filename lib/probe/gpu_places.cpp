// SPDX-License-Identifier: Apache-2.0
#include "probe/gpu_places.hpp"

#include "core/error.hpp"
#include "kernels/cuda_probe.hpp"
#include "probe/pattern.hpp"
#include "topology/numa.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <string>

namespace reckon {
namespace {

constexpr std::uint64_t k_checked_end = 1ULL << 20U; ///< of host memory, at either end

/// Whether something else than PCIe joins two GPUs.
bool linked(const Topology& topology, const std::string& a, const std::string& b) {
  const auto neighbours = [&](const std::string& id) {
    std::set<std::string> found;
    for (const PeerLink& link : topology.links) {
      if (link.kind != PeerLinkKind::socket && (link.from == id || link.to == id)) {
        found.insert(link.from == id ? link.to : link.from);
      }
    }
    return found;
  };
  const std::set<std::string> of_a = neighbours(a), of_b = neighbours(b);
  return of_a.contains(b) || std::any_of(of_a.begin(), of_a.end(), [&](const std::string& id) {
           const TopologyObject* const between = topology.find(id);
           return between != nullptr && between->kind == ObjectKind::link_switch &&
                  of_b.contains(id);
         });
}

/// The same ends for what is spoilt and what is checked: multiples of 8.
template <class Act>
void for_ends(std::uint64_t bytes, Act act) {
  const std::uint64_t end = std::min(bytes, k_checked_end);
  act(std::uint64_t{0}, end);
  if (bytes > end) {
    act(bytes - end, end);
  }
}

} // namespace

GpuPlaces::GpuPlaces(GpuLibrary& library, Workbench& bench, const Topology& topology,
                     const GpuProbeOptions& options)
    : m_library(library), m_bench(bench), m_options(options) {
  const std::vector<GpuProperties>& devices = library.devices();
  for (std::size_t device = 0; device < devices.size(); ++device) {
    for (const TopologyObject* object : topology.of_kind(ObjectKind::gpu)) {
      if (object->pci_address != devices[device].pci_address) {
        continue;
      }
      GpuPlace place{static_cast<int>(device), object->id, 0};
      if (const TopologyObject* const node = numa_node_of(topology, object->id)) {
        for (std::size_t n = 0; n < bench.nodes().size(); ++n) {
          place.near_node = bench.nodes()[n].id == node->id ? n : place.near_node;
        }
      }
      m_gpus.push_back(std::move(place));
    }
  }
  for (std::size_t a = 0; a < m_gpus.size(); ++a) {
    for (std::size_t b = 0; b < m_gpus.size(); ++b) {
      if (a != b) {
        m_nvlinked[{a, b}] = linked(topology, m_gpus[a].id, m_gpus[b].id) ||
                             library.has_peer_atomics(m_gpus[a].device, m_gpus[b].device);
      }
    }
  }
}

bool GpuPlaces::peers(std::size_t from, std::size_t to, std::string* why_not) const {
  const bool left_out = !m_options.nvlink && m_nvlinked.at({from, to});
  const bool can = m_library.can_access_peer(m_gpus[from].device, m_gpus[to].device);
  if (why_not != nullptr) {
    *why_not = left_out ? "the GPUs are joined by NVLink, which --no-nvlink leaves out"
               : can    ? ""
                        : "cudaDeviceCanAccessPeer: no";
  }
  return can && !left_out;
}

void GpuPlaces::set_peer_access(std::size_t driver, std::size_t peer, bool on) {
  bool& is_on = m_access[{driver, peer}];
  if (is_on != on) {
    m_library.set_peer_access(m_gpus[driver].device, m_gpus[peer].device, on);
    is_on = on;
  }
}

const std::string& GpuPlaces::id_of(End end) const {
  return end.is_gpu ? m_gpus[end.index].id : m_bench.nodes()[end.index].id;
}

std::uint64_t GpuPlaces::salt_of(End end) const {
  return m_bench.seed() * 1000 + (end.is_gpu ? 500 : 0) + end.index;
}

GpuStream GpuPlaces::stream(std::size_t gpu) {
  if (!m_streams.contains(gpu)) {
    const int device = m_gpus[gpu].device;
    m_library.load(device);
    m_streams.emplace(gpu, GpuOwned<GpuStream>(m_library, m_library.make_stream(device)));
  }
  return m_streams.at(gpu).get();
}

std::byte* GpuPlaces::gpu_memory(std::size_t gpu, std::size_t which) {
  const auto found = m_memory.find({gpu, which});
  if (found != m_memory.end()) {
    return found->second.data();
  }
  const GpuStream queue = stream(gpu);
  GpuMemory memory(m_library, m_gpus[gpu].device, m_options.large_bytes);
  if (which == 0) {
    check_gpu(
        m_library,
        m_library.fill_pattern(memory.data(), m_options.large_bytes, salt_of({true, gpu}), queue),
        "filling GPU memory");
    check_gpu(m_library, m_library.synchronize(queue), "filling GPU memory");
  }
  return m_memory.emplace(std::pair(gpu, which), std::move(memory)).first->second.data();
}

std::byte* GpuPlaces::host_memory(End end, bool written) {
  const std::size_t which = buffer_of(end, written);
  const auto found = m_hosts.find({end.index, which});
  if (found != m_hosts.end()) {
    return found->second.memory.data();
  }
  const std::uint64_t bytes =
      end.pinned ? m_options.large_bytes : std::min(m_options.large_bytes, k_pageable_bytes);
  Host host;
  host.memory = m_bench.memory(end.index, which, bytes).first(bytes);
  if (!written) {
    m_bench.team(m_bench.cpus_near(end.index, 1)).run([&](std::size_t) {
      fill_with_pattern(host.memory, salt_of(end));
    });
  }
  if (end.pinned) {
    host.registration = GpuRegistration(m_library, host.memory);
  }
  return m_hosts.emplace(std::pair(end.index, which), std::move(host)).first->second.memory.data();
}

std::byte* GpuPlaces::source(End end) {
  return end.is_gpu ? gpu_memory(end.index, 0) : host_memory(end, false);
}
std::byte* GpuPlaces::target(End end) {
  return end.is_gpu ? gpu_memory(end.index, 1) : host_memory(end, true);
}

void GpuPlaces::remark_placement(Cell& cell, End end, bool written) const {
  if (!end.is_gpu) {
    m_bench.remark_placement(cell, end.index, buffer_of(end, written));
  }
}

void GpuPlaces::spoil(End to, std::uint64_t offset, std::uint64_t bytes) {
  if (to.is_gpu) {
    std::byte* const memory = target(to) + offset;
    const GpuStream queue = stream(to.index);
    check_gpu(m_library, m_library.set(memory, k_poison, bytes, queue), "cudaMemsetAsync");
    check_gpu(m_library, m_library.synchronize(queue), "cudaMemsetAsync");
    return;
  }
  std::byte* const memory = target(to) + offset;
  for_ends(bytes, [&](std::uint64_t at, std::uint64_t count) {
    std::memset(memory + at, k_poison, count);
  });
}

void GpuPlaces::verify(Cell& cell, End from, End to, std::uint64_t offset, std::uint64_t bytes) {
  if (!cell.has_value()) {
    return;
  }
  const std::uint64_t salt = salt_of(from);
  std::optional<std::uint64_t> wrong;
  if (to.is_gpu && offset == 0) {
    wrong = m_library.find_difference(target(to), bytes, salt, stream(to.index));
  } else {
    // Also parts of GPU memory, whose pattern does not begin at 0.
    std::vector<std::byte> held;
    for_ends(bytes, [&](std::uint64_t at, std::uint64_t count) {
      const std::byte* memory = nullptr;
      if (to.is_gpu) {
        held.resize(count);
        const GpuStream queue = stream(to.index);
        check_gpu(m_library, m_library.copy(held.data(), target(to) + offset + at, count, queue),
                  "cudaMemcpyAsync");
        check_gpu(m_library, m_library.synchronize(queue), "cudaMemcpyAsync");
        memory = held.data();
      } else {
        memory = target(to) + offset + at;
      }
      for (std::uint64_t i = 0; i + 8 <= count && !wrong; i += 8) {
        const std::uint64_t word = gpu_pattern_word((offset + at + i) / 8, salt);
        if (std::memcmp(memory + i, &word, 8) != 0) {
          wrong = at + i;
        }
      }
    });
  }
  if (wrong) {
    discard(cell, CellStatus::mismatch,
            fmt::format("what {} got from {} is wrong from byte {} on", id_of(to), id_of(from),
                        offset + *wrong));
  }
}

Samples GpuPlaces::sample(std::vector<GpuTimer::Flow> flows, bool gated, Seconds since,
                          Seconds budget) const {
  GpuTimer timer(m_library, std::move(flows), gated);
  static_cast<void>(timer.time(1)); // whatever is made ready at the first use
  return sample_flows(timer, m_bench.clock(), m_bench.left(since, budget), m_bench.interrupted());
}

void GpuPlaces::close() {
  m_streams.clear();
  m_memory.clear();
  m_hosts.clear();
  for (auto& [pair, on] : m_access) {
    if (on) {
      m_library.set_peer_access(m_gpus[pair.first].device, m_gpus[pair.second].device, false);
      on = false;
    }
  }
}

std::size_t GpuCopy::driver() const {
  const bool source = from.is_gpu && (!to.is_gpu || by_source);
  return source ? from.index : to.index;
}

GpuTimer::Flow flow_of(GpuPlaces& places, const GpuCopy& copy) {
  GpuLibrary& library = places.library();
  const GpuPlace& driver = places.gpus()[copy.driver()];
  std::byte* const to = places.target(copy.to) + copy.offset;
  const std::byte* const from = places.source(copy.from) + copy.offset;
  const std::uint64_t bytes = copy.bytes;
  if (copy.engine == GpuCopy::Engine::sm) {
    return {driver.device, [&library, to, from, bytes, blocks = copy.blocks](GpuStream stream) {
              return library.copy_sm(to, from, bytes, blocks, stream);
            }};
  }
  const bool two_gpus = copy.from.is_gpu && copy.to.is_gpu && copy.from.index != copy.to.index;
  if (two_gpus) {
    const int to_device = places.gpus()[copy.to.index].device;
    const int from_device = places.gpus()[copy.from.index].device;
    return {driver.device, [=, &library](GpuStream stream) {
              return library.copy_peer(to, to_device, from, from_device, bytes, stream);
            }};
  }
  return {driver.device,
          [=, &library](GpuStream stream) { return library.copy(to, from, bytes, stream); }};
}

void settle_access(GpuPlaces& places, const GpuCopy& copy) {
  if (!copy.from.is_gpu || !copy.to.is_gpu || copy.from.index == copy.to.index) {
    return;
  }
  const bool on = copy.engine != GpuCopy::Engine::staged;
  std::string why_not;
  if (on && !places.peers(copy.from.index, copy.to.index, &why_not)) {
    fail(ErrorKind::unavailable, why_not);
  }
  const std::size_t driver = copy.driver();
  const std::size_t other = driver == copy.from.index ? copy.to.index : copy.from.index;
  places.set_peer_access(driver, other, on);
  if (!on) { // nor the other way: who drives is the library's choice then
    places.set_peer_access(other, driver, false);
  }
}

} // namespace reckon
