// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/clock.hpp"
#include "movers/mover.hpp"
#include "probe/campaign.hpp"
#include "probe/fabric_crew.hpp"
#include "probe/workbench.hpp"
#include "topology/topology.hpp"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace reckon {

/// A memory of a machine that ranks of transport cuda write from and into.
struct PairPlace {
  std::string id; ///< in the topology
  MoverPlace mover{};
  std::size_t node = 0; ///< nearest node, as an index of Workbench::nodes()
  int cpu = 0;          ///< processor of its rank
};

/// `gpus`, ids in the topology, and after them their nearest NUMA nodes; thoroughly all nodes.
/// Empty without GPUs.
[[nodiscard]] std::vector<PairPlace> gpu_pair_places(const Workbench& bench,
                                                     const Topology& topology,
                                                     const std::vector<std::string>& gpus);

struct GpuPairOptions {
  std::vector<std::uint64_t> sizes{}; ///< for pair_write, ascending; empty: 4 KiB to 16 MiB
  std::vector<std::uint64_t> parts{16U << 10U, 256U << 10U, 1U << 20U,
                                   4U << 20U}; ///< for pair_bandwidth, as plans cut
  bool thorough = false;                       ///< all sizes and pairs
  bool gpu_to_gpu = true;                      ///< false: only with NUMA nodes
  std::uint64_t seed = 1;
  Seconds hang_limit{5}; ///< limit beyond a cell's budget; then its processes are killed
  std::function<bool()> interrupted{};
  std::function<void(pid_t)> started{}; ///< is told of each process
  std::function<std::unique_ptr<Mover>(const MoverPlace&)> make = [](const MoverPlace& place) {
    return make_mover("cuda", {}, place);
  };
};

/// The rates of a plan's ranks on transport cuda: writes between two places, at least one of them a
/// GPU, by the movers, waits and steps of the executor's lanes. GpuPlaces measures the copy alone.
/// The cases are those of a cluster's machines with the same meaning.
///
/// A process for each place, for all passes: CUDA does not survive a fork, so they are started
/// before this process uses it. When one of them fails or hangs, they cannot be started again.
class GpuPairs {
public:
  /// `clock` must outlive this.
  GpuPairs(std::vector<PairPlace> places, GpuPairOptions options, const Clock& clock);

  /// Starts the processes; before this process uses CUDA. The cells report errors.
  void start();

  /// Flows between places, by their numbers: of each GPU with its nearest NUMA node, and of GPUs
  /// with each other; of more than four GPUs with the next one and the one half of them ahead.
  /// Thoroughly all.
  [[nodiscard]] std::vector<Flow> flows() const;
  /// pair_latency: seconds, half of a round trip of 8 bytes to a peer that sleeps.
  void measure_latency(Cell& cell, const Flow& flow, Seconds budget);
  /// pair_write: seconds from the post to the last byte, one write of cell.key.bytes at a time.
  void measure_write(Cell& cell, const Flow& flow, Seconds budget);
  /// pair_bandwidth: bytes per second from flow.from to flow.to, alone or, two_way, while as much
  /// flows back; with the number of writes in flight that makes it no faster any more.
  void measure_bandwidth(Cell& cell, const Flow& flow, Seconds budget);

  [[nodiscard]] const std::vector<PairPlace>& places() const { return m_places; }
  [[nodiscard]] const GpuPairOptions& options() const { return m_options; }

private:
  template <class Measure>
  void guarded(Cell& cell, Measure measure);
  void lose(CellStatus status, const std::string& why);
  std::vector<FlowOutcome> run(FlowTask task, Seconds budget);
  std::vector<double> round_trips(const Flow& flow, std::uint64_t count, Seconds budget);
  /// Seconds of a series, of flow itself and, two_way, of the way back.
  std::vector<double> series(FlowTask& task, Seconds budget);

  std::vector<PairPlace> m_places;
  GpuPairOptions m_options;
  const Clock& m_clock;
  std::unique_ptr<FabricCrew> m_crew;
  CellStatus m_lost_status = CellStatus::failed;
  std::string m_lost = "its processes were not started";
  std::map<CellKey, std::uint32_t> m_in_flight; ///< for bandwidths, once found
  std::uint64_t m_first = 0;
};

/// The cells of all flows. Shared with the campaign's functions, which are copied.
[[nodiscard]] Campaign gpu_pairs_campaign(const std::shared_ptr<GpuPairs>& pairs);

} // namespace reckon
