// SPDX-License-Identifier: Apache-2.0
#include "probe/gpu_pairs.hpp"

#include "core/error.hpp"
#include "documents/cells.hpp"
#include "probe/cluster_steps.hpp"
#include "probe/growth.hpp"
#include "probe/pin.hpp"
#include "probe/sampling.hpp"
#include "stats/summary.hpp"
#include "topology/numa.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>
#include <sys/prctl.h>
#include <utility>

namespace reckon {
namespace {

constexpr const char* k_cuda = "cuda";
/// Writes of a task: those of more than k_short_write_bytes take longer and vary less.
constexpr std::uint64_t k_pair_round_trips = 100, k_short_count = 30, k_long_count = 8;
constexpr double k_most_in_flight = 32;
/// A series lasts so long that what its begin and its end take is little of it.
constexpr double k_series_s = 0.008;
constexpr int k_few_gpus = 4; ///< all of whose pairs are usually measured

struct WrongData : std::runtime_error {
  using std::runtime_error::runtime_error;
};

std::vector<std::uint64_t> usual_sizes(bool thorough) {
  std::vector<std::uint64_t> sizes;
  for (std::size_t i = 0; i < std::size(k_pair_write_sizes); i += thorough ? 1 : 2) {
    sizes.push_back(k_pair_write_sizes[i]);
  }
  return sizes;
}

} // namespace

std::vector<PairPlace> gpu_pair_places(const Workbench& bench, const Topology& topology,
                                       const std::vector<std::string>& gpus) {
  const std::vector<NodePlace>& nodes = bench.nodes();
  std::vector<PairPlace> places;
  std::vector<std::size_t> used(nodes.size()); // processors of each node
  const auto add = [&](std::string id, MoverPlace mover, std::size_t node) {
    const std::vector<int> cpus = bench.cpus_near(node, SIZE_MAX);
    const int cpu = cpus.at(used[node]++ % cpus.size());
    places.push_back({std::move(id), std::move(mover), node, cpu});
  };
  std::vector<bool> near(nodes.size());
  for (const std::string& id : gpus) {
    std::size_t node = 0;
    if (const TopologyObject* const home = numa_node_of(topology, id)) {
      for (std::size_t n = 0; n < nodes.size(); ++n) {
        node = nodes[n].id == home->id ? n : node;
      }
    }
    near[node] = true;
    add(id, {.pci_address = topology.find(id)->pci_address}, node);
  }
  for (std::size_t n = 0; n < nodes.size() && !gpus.empty(); ++n) {
    if (near[n] || bench.thorough()) {
      add(nodes[n].id, {.host_memory = true}, n);
    }
  }
  return places;
}

GpuPairs::GpuPairs(std::vector<PairPlace> places, GpuPairOptions options, const Clock& clock)
    : m_places(std::move(places)), m_options(std::move(options)), m_clock(clock) {
  if (m_options.sizes.empty()) {
    m_options.sizes = usual_sizes(m_options.thorough);
  }
}

void GpuPairs::start() {
  FabricCrewOptions crew;
  crew.seed = m_options.seed;
  crew.footprint = m_options.sizes.back(); // fabric_footprint() gives all ranks as much as that
  crew.interrupted = m_options.interrupted;
  crew.started = m_options.started;
  for (const PairPlace& place : m_places) {
    crew.cpus.push_back(place.cpu);
  }
  crew.make = [this](const std::string& /*transport*/, int rank) {
    const PairPlace& place = m_places[static_cast<std::size_t>(rank)];
    bind_to_cpu(place.cpu); // host memory goes where it is first touched
    // As the mover's lanes do for the thread that waits: here it is another one for each task.
    static_cast<void>(::prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0));
    return m_options.make(place.mover);
  };
  try {
    m_crew = std::make_unique<FabricCrew>(k_cuda, static_cast<int>(m_places.size()), crew);
  } catch (const FabricInterrupt& interrupt) {
    lose(CellStatus::skipped, interrupt.what());
  } catch (const Error& error) {
    lose(status_of(error), error.what());
  } catch (const FabricTimeout& timeout) {
    lose(CellStatus::timeout, timeout.what());
  }
}

std::vector<Flow> GpuPairs::flows() const {
  const auto count = static_cast<int>(m_places.size());
  const auto host = std::ranges::find_if(
      m_places, [](const PairPlace& place) { return place.mover.host_memory; });
  const auto gpus = static_cast<int>(host - m_places.begin());
  std::vector<Flow> flows;
  for (int a = 0; a < count; ++a) {
    for (int b = 0; b < count; ++b) {
      bool usual =
          m_places[static_cast<std::size_t>(a)].node == m_places[static_cast<std::size_t>(b)].node;
      if (a < gpus && b < gpus) {
        const int ahead = (b - a + gpus) % gpus;
        usual = gpus <= k_few_gpus || ahead == 1 || ahead == gpus - 1 || ahead == gpus / 2;
      }
      const bool possible =
          a != b && (a < gpus || b < gpus) && (m_options.gpu_to_gpu || a >= gpus || b >= gpus);
      if (possible && (usual || m_options.thorough)) {
        flows.push_back({a, b});
      }
    }
  }
  return flows;
}

void GpuPairs::lose(CellStatus status, const std::string& why) {
  m_crew.reset();
  m_lost_status = status;
  m_lost = why;
}

/// Nothing starts the processes again: the cells that follow say why there are none.
template <class Measure>
void GpuPairs::guarded(Cell& cell, Measure measure) {
  if (!m_crew) {
    discard(cell, m_lost_status, m_lost);
    return;
  }
  try {
    measure();
  } catch (const WrongData& wrong) {
    discard(cell, CellStatus::mismatch, wrong.what());
  } catch (const FabricInterrupt& interrupt) {
    lose(CellStatus::skipped, interrupt.what());
    discard(cell, CellStatus::skipped, interrupt.what());
  } catch (const FabricTimeout& timeout) {
    discard(cell, CellStatus::timeout, timeout.what());
    lose(CellStatus::failed, fmt::format("given up after this: {}", timeout.what()));
  } catch (const Error& error) {
    discard(cell, CellStatus::failed, error.what());
    lose(CellStatus::failed, fmt::format("given up after this: {}", error.what()));
  }
}

std::vector<FlowOutcome> GpuPairs::run(FlowTask task, Seconds budget) {
  task.first = m_first;
  m_first += 1 + task.warm_up + task.count;
  std::vector<FlowOutcome> outcomes =
      m_crew->run(task, m_places.size(), budget + m_options.hang_limit);
  for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
    if (outcomes[rank].wrong_at != UINT64_MAX) {
      throw WrongData(fmt::format("{} received wrong data at byte {} of its buffer",
                                  m_places[rank].id, outcomes[rank].wrong_at));
    }
  }
  return outcomes;
}

std::vector<double> GpuPairs::round_trips(const Flow& flow, std::uint64_t count, Seconds budget) {
  return run({.kind = FlowTask::Kind::ping,
              .flows = {flow},
              .bytes = 8,
              .warm_up = std::min<std::uint64_t>(10, count),
              .count = count},
             budget)[static_cast<std::size_t>(flow.from)]
      .round_trip_s;
}

void GpuPairs::measure_latency(Cell& cell, const Flow& flow, Seconds budget) {
  guarded(cell, [&] {
    const Seconds end = m_clock.now() + budget;
    Samples samples;
    do {
      for (const double both : round_trips(flow, k_pair_round_trips, budget)) {
        samples.seconds.push_back(0.5 * both);
      }
    } while (m_clock.now() < end);
    fill_cell(cell, samples, 0);
  });
}

void GpuPairs::measure_write(Cell& cell, const Flow& flow, Seconds budget) {
  guarded(cell, [&] {
    const Seconds end = m_clock.now() + budget;
    const double answer_s = 0.5 * median(round_trips(flow, k_short_count, budget));
    const std::uint64_t bytes = cell.key.bytes;
    const std::uint64_t count = bytes > k_short_write_bytes ? k_long_count : k_short_count;
    Samples samples;
    do {
      const std::vector<FlowOutcome> outcomes =
          run(write_task({flow}, bytes, count, count, 0), budget);
      const std::vector<double> seconds =
          write_seconds(outcomes[static_cast<std::size_t>(flow.from)].round_trip_s, answer_s);
      samples.seconds.insert(samples.seconds.end(), seconds.begin(), seconds.end());
    } while (m_clock.now() < end);
    fill_cell(cell, samples, 0);
  });
}

std::vector<double> GpuPairs::series(FlowTask& task, Seconds budget) {
  const std::vector<FlowOutcome> outcomes = run(task, budget);
  std::vector<double> seconds;
  for (const Flow& flow : task.flows) {
    const std::int64_t ns = outcomes[static_cast<std::size_t>(flow.to)].end_ns -
                            outcomes[static_cast<std::size_t>(flow.from)].begin_ns;
    seconds.push_back(static_cast<double>(std::max<std::int64_t>(1, ns)) * 1e-9);
  }
  return seconds;
}

void GpuPairs::measure_bandwidth(Cell& cell, const Flow& flow, Seconds budget) {
  guarded(cell, [&] {
    const Seconds end = m_clock.now() + budget;
    FlowTask task{.kind = FlowTask::Kind::series,
                  .flows = {flow},
                  .bytes = cell.key.bytes,
                  .keep_load = true};
    if (cell.key.direction == k_two_way) {
      task.flows.push_back({flow.to, flow.from});
    }
    // How many writes make a series? The first ones are too few to tell, and warm up.
    const auto settle = [&](std::uint32_t in_flight) {
      task.in_flight = in_flight;
      task.count = 2 * std::uint64_t{in_flight};
      for (int trial = 0; trial < 4; ++trial) {
        const double taken = series(task, budget).front();
        if (taken > 0.7 * k_series_s) {
          break;
        }
        task.count = static_cast<std::uint64_t>(static_cast<double>(task.count) *
                                                std::min(k_series_s / taken, 32.0));
      }
    };
    const auto bytes = [&] {
      return static_cast<double>(task.count) * static_cast<double>(task.bytes);
    };
    if (!m_in_flight.contains(cell.key)) {
      m_in_flight[cell.key] =
          static_cast<std::uint32_t>(grow_until_steady(1, k_most_in_flight, [&](double in_flight) {
            settle(static_cast<std::uint32_t>(in_flight));
            std::vector<double> rates = series(task, budget);
            for (double& rate : rates) {
              rate = bytes() / rate;
            }
            return rates;
          }));
    }
    settle(m_in_flight.at(cell.key));
    Samples samples;
    do {
      samples.seconds.push_back(series(task, budget).front());
    } while (m_clock.now() < end);
    fill_cell(cell, samples, bytes());
    if (cell.has_value()) {
      remark(cell, fmt::format("{} in flight", task.in_flight));
    }
  });
}

Campaign gpu_pairs_campaign(const std::shared_ptr<GpuPairs>& pairs) {
  Campaign campaign{.name = "GPU pairs"};
  const auto add = [&](CellKey key, double visit, auto measure) {
    campaign.plans.push_back(
        {.key = std::move(key), .visit = Seconds(visit), .measure = std::move(measure)});
  };
  for (const Flow& flow : pairs->flows()) {
    CellKey key{.test = k_pair_latency,
                .from = pairs->places()[static_cast<std::size_t>(flow.from)].id,
                .to = pairs->places()[static_cast<std::size_t>(flow.to)].id,
                .bytes = 8,
                .in_flight = 1,
                .transport = k_cuda,
                .direction = k_one_way};
    add(key, 0.01,
        [pairs, flow](Cell& cell, Seconds budget) { pairs->measure_latency(cell, flow, budget); });
    key.test = k_pair_write;
    for (const std::uint64_t bytes : pairs->options().sizes) {
      key.bytes = bytes;
      add(key, 0.015,
          [pairs, flow](Cell& cell, Seconds budget) { pairs->measure_write(cell, flow, budget); });
    }
    key.test = k_pair_bandwidth;
    key.in_flight = 0; // found while it is measured, which a key cannot depend on
    for (const std::uint64_t bytes : pairs->options().parts) {
      for (const char* const direction : {k_one_way, k_two_way}) {
        key.bytes = bytes;
        key.direction = direction;
        add(key, 0.05, [pairs, flow](Cell& cell, Seconds budget) {
          pairs->measure_bandwidth(cell, flow, budget);
        });
      }
    }
  }
  return campaign;
}

} // namespace reckon
