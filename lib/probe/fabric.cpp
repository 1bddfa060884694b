// SPDX-License-Identifier: Apache-2.0
#include "probe/fabric.hpp"

#include "core/error.hpp"
#include "core/memory.hpp"
#include "documents/cells.hpp"
#include "probe/curve.hpp"
#include "probe/growth.hpp"
#include "probe/pin.hpp"
#include "probe/sampling.hpp"
#include "stats/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <map>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>

namespace reckon {
namespace {

/// Why a cell has no value, where the crew can go on.
struct NoValue : std::runtime_error {
  NoValue(CellStatus why, const std::string& text) : std::runtime_error(text), status(why) {}
  CellStatus status;
};

constexpr std::uint64_t k_window_bytes = std::uint64_t{1} << 20U;
constexpr int k_in_flight = 4; // writes, of all cells that do not say otherwise
constexpr std::array<double, 4> k_trials{k_in_flight, 8, 16, 32};
constexpr std::uint64_t k_most_bytes_in_flight = 32 * k_window_bytes; ///< more are no faster
constexpr double k_search = 7; ///< times a visit, that the search for the writes in flight may take
constexpr std::uint64_t k_round_trips = 100;
/// Of the transports that are only compared with the first.
const std::vector<std::uint64_t> k_compared_sizes{4096, 65536, k_window_bytes};
constexpr int k_most_failures = 3;

/// The numbers of writes in flight to choose from.
std::span<const double> trials_of(std::uint64_t bytes) {
  const auto fits = [&](double in_flight) {
    return in_flight * static_cast<double>(bytes) <= static_cast<double>(k_most_bytes_in_flight);
  };
  const auto most = std::ranges::find_if_not(k_trials, fits) - k_trials.begin();
  return std::span(k_trials).first(static_cast<std::size_t>(std::max<std::ptrdiff_t>(1, most)));
}

/// What the campaigns of one probe share.
class Bench {
public:
  Bench(FabricProbeOptions options, const Clock& clock)
      : m_options(std::move(options)), m_clock(clock) {
    const int cores = static_cast<int>(m_options.cpus.size());
    constexpr int k_most_pairs = 64; // more ranks could not tell each other their addresses
    const int most = std::min(k_most_pairs, m_options.max_pairs > 0 ? m_options.max_pairs
                                                                    : std::max(4, cores / 2));
    for (int pairs = 1; pairs <= most; pairs *= 2) {
      const bool usual =
          2 * pairs > most || std::countr_zero(static_cast<unsigned>(pairs)) % 2 == 0;
      if (usual || m_options.thorough) {
        m_pairs.push_back(pairs);
      }
    }
  }

  [[nodiscard]] const FabricProbeOptions& options() const { return m_options; }
  [[nodiscard]] const std::vector<int>& pairs() const { return m_pairs; }

  void dismiss() { m_crew.reset(); }

  /// Of one pair, or of several together.
  void measure_write(Cell& cell, Seconds budget) {
    guarded(cell, [&] { series(cell, budget); });
  }

  /// Of several pairs, with as many writes in flight as make them no faster.
  void measure_steady(Cell& cell, Seconds budget) {
    guarded(cell, [&] {
      const auto [at, added] = m_in_flight.try_emplace(cell.key, k_in_flight);
      if (added) {
        constexpr int k_rounds = 3;
        const Seconds end = m_clock.now() + k_search * budget;
        at->second = static_cast<int>(least_of_the_fastest(
            trials_of(cell.key.bytes),
            [&](int rounds) { return rounds < k_rounds && m_clock.now() < end; },
            [&](double in_flight) {
              Cell trial = cell;
              trial.key.in_flight = static_cast<int>(in_flight);
              series(trial, budget / k_rounds);
              return trial.p50;
            }));
      }
      cell.key.in_flight = at->second;
      series(cell, budget);
    });
  }

  void measure_latency(Cell& cell, Seconds budget) {
    guarded(cell, [&] { round_trips(cell, budget); });
  }

private:
  /// What several processes do goes wrong in more ways than what one does.
  template <class Measure>
  void guarded(Cell& cell, Measure measure) {
    const std::string& transport = cell.key.transport;
    if (const auto broken = m_failures.find(transport);
        broken != m_failures.end() && broken->second.first >= k_most_failures) {
      discard(cell, CellStatus::failed, "given up after this: " + broken->second.second);
      return;
    }
    try {
      measure();
    } catch (const FabricInterrupt& interrupt) {
      m_crew.reset();
      discard(cell, CellStatus::skipped, interrupt.what());
    } catch (const NoValue& none) {
      discard(cell, none.status, none.what());
    } catch (const FabricTimeout& timeout) {
      m_crew.reset();
      note_failure(transport, timeout.what());
      discard(cell, CellStatus::timeout, timeout.what());
    } catch (const Error& error) {
      m_crew.reset();
      note_failure(transport, error.what());
      throw;
    }
  }

  void note_failure(const std::string& transport, const std::string& reason) {
    auto& [count, text] = m_failures[transport];
    ++count;
    text = reason;
  }

  FabricCrew& crew(const std::string& transport) {
    if (m_crew && m_crew_transport == transport) {
      return *m_crew;
    }
    m_crew.reset();
    const int ranks = 2 * m_pairs.back();
    std::uint64_t needed = 0;
    for (int rank = 0; rank < ranks; ++rank) {
      needed += 2 * fabric_footprint(rank, m_options.footprint);
    }
    if (needed > available_memory_bytes() / 2) {
      fail(ErrorKind::unavailable,
           fmt::format("{} processes need {} of memory, more than half of what is free", ranks,
                       to_text(Bytes(needed))));
    }
    m_crew = std::make_unique<FabricCrew>(transport, ranks, m_options);
    m_crew_transport = transport;
    return *m_crew;
  }

  /// The outcomes of a task for the cell's pairs, one at least, all alike.
  [[nodiscard]] std::vector<FlowOutcome> carry_out(const Cell& cell, FlowTask task,
                                                   Seconds budget) {
    const CellKey& key = cell.key;
    const int ranks = 2 * std::max(1, key.pairs);
    for (int rank = 0; rank < ranks; ++rank) {
      const std::uint64_t room = fabric_footprint(rank, m_options.footprint);
      if (place_of_write(key.bytes) > room) {
        throw NoValue(CellStatus::skipped,
                      fmt::format("longer than the {} of memory that each process has",
                                  to_text(Bytes(room))));
      }
      if (rank % 2 == 0 || key.direction == k_two_way) {
        task.flows.push_back({rank, rank ^ 1});
      }
    }
    task.bytes = key.bytes;
    task.in_flight = static_cast<std::uint32_t>(key.in_flight);
    task.cpu = key.threads == 1 ? m_options.cpus.front() : -1;
    std::vector<FlowOutcome> outcomes =
        crew(key.transport)
            .run(task, static_cast<std::size_t>(ranks), budget + m_options.hang_limit);
    for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
      if (outcomes[rank].wrong_at != UINT64_MAX) {
        throw NoValue(CellStatus::mismatch,
                      fmt::format("rank {} received wrong data at byte {} of its buffer", rank,
                                  outcomes[rank].wrong_at));
      }
    }
    return outcomes;
  }

  void round_trips(Cell& cell, Seconds budget) {
    static_cast<void>(crew(cell.key.transport)); // starting it is not this cell's time
    const Seconds end = m_clock.now() + budget;
    FlowTask task{.kind = FlowTask::Kind::ping, .warm_up = k_round_trips, .count = k_round_trips};
    Samples samples;
    do {
      const std::vector<FlowOutcome> outcomes = carry_out(cell, task, budget);
      task.warm_up = 10;
      for (const double seconds : outcomes.front().round_trip_s) {
        samples.seconds.push_back(0.5 * seconds);
      }
    } while (m_clock.now() < end);
    fill_cell(cell, samples, 0);
  }

  /// Times of one series of writes on all pairs.
  struct Series {
    double whole = 0; ///< seconds from the first begin to the last end
    double forth = 0; ///< from the first pair's sender's begin to its receiver's end
    double back = 0;  ///< likewise the other way; 0 if nothing goes there
  };

  /// Series after series, each a sample. Timed as a whole and not between arrivals: a receiver that
  /// had to be woken up, or to wait for a processor, finds several writes at once, and the
  /// intervals between those tell of no transport.
  void series(Cell& cell, Seconds budget) {
    static_cast<void>(crew(cell.key.transport)); // starting it is not this cell's time
    const bool aggregate = cell.unit == k_bytes_per_second;
    const Seconds begin = m_clock.now();
    const auto spent = [&] { return m_clock.now() - begin; };
    FlowTask task{.kind = FlowTask::Kind::series, .keep_load = !aggregate};
    const auto least = 2 * static_cast<std::uint64_t>(cell.key.in_flight);
    task.count = least;
    // How many make a series? The trials warm up as well; the first one alone never tells.
    const double wanted = std::clamp(budget.count() / 10, 0.002, 0.040);
    for (int trial = 0;; ++trial) {
      const Series times = one_series(cell, task, budget);
      const bool settled = times.whole > 0.7 * wanted && times.whole < 1.4 * wanted;
      const bool shortest = times.whole > wanted && task.count == least;
      if (trial > 0 && (settled || shortest || trial > 5 || spent() > 0.4 * budget)) {
        break;
      }
      task.count =
          std::max(least, static_cast<std::uint64_t>(static_cast<double>(task.count) *
                                                     std::clamp(wanted / times.whole, 0.1, 32.0)));
    }
    std::vector<double> forth, back;
    Samples samples;
    do {
      const Series times = one_series(cell, task, budget);
      forth.push_back(times.forth);
      back.push_back(times.back);
      const double both = times.back > 0 ? 0.5 * (times.forth + times.back) : times.forth;
      samples.seconds.push_back(aggregate ? times.whole : both / static_cast<double>(task.count));
    } while (spent() < budget);
    const bool two_way = cell.key.direction == k_two_way;
    const double senders = cell.key.pairs * (two_way ? 2 : 1);
    const double bytes = static_cast<double>(task.count) * static_cast<double>(cell.key.bytes);
    samples.batch = aggregate ? 1 : task.count;
    fill_cell(cell, samples, senders * bytes);
    if (cell.has_value() && aggregate) {
      remark(cell, fmt::format("{} writes for each sender in a sample", task.count));
    } else if (cell.has_value() && two_way) {
      const double a = bytes / median(forth), b = bytes / median(back);
      if (std::max(a, b) > 1.1 * std::min(a, b)) {
        remark(cell,
               fmt::format("one direction {:.3g}, the other {:.3g} GB/s", a * 1e-9, b * 1e-9));
      }
    }
  }

  Series one_series(const Cell& cell, FlowTask& task, Seconds budget) {
    const std::vector<FlowOutcome> outcomes = carry_out(cell, task, budget);
    task.first += task.count;
    const auto between = [](std::int64_t begin_ns, std::int64_t end_ns) {
      return static_cast<double>(std::max<std::int64_t>(1, end_ns - begin_ns)) * 1e-9;
    };
    std::int64_t begin = INT64_MAX, end = 0;
    for (std::size_t rank = 0; rank < outcomes.size(); ++rank) {
      const bool sends = rank % 2 == 0 || cell.key.direction == k_two_way;
      begin = sends ? std::min(begin, outcomes[rank].begin_ns) : begin;
      end = std::max(end, outcomes[rank].end_ns);
    }
    Series times;
    times.whole = between(begin, end);
    times.forth = between(outcomes[0].begin_ns, outcomes[1].end_ns);
    times.back = outcomes[0].end_ns > 0 ? between(outcomes[1].begin_ns, outcomes[0].end_ns) : 0;
    return times;
  }

  FabricProbeOptions m_options;
  const Clock& m_clock;
  std::vector<int> m_pairs;
  std::map<std::string, std::pair<int, std::string>> m_failures; ///< how many, and the last one
  std::map<CellKey, int> m_in_flight; ///< of measure_steady(), once found; by the key as planned
  std::unique_ptr<FabricCrew> m_crew;
  std::string m_crew_transport;
};

CellPlan write_plan(const std::shared_ptr<Bench>& bench, const std::string& transport,
                    std::uint64_t bytes, bool two_way) {
  const std::string& machine = bench->options().machine;
  return {.key = {.test = k_fabric_write,
                  .from = machine,
                  .to = machine,
                  .bytes = bytes,
                  .in_flight = k_in_flight,
                  .transport = transport,
                  .direction = two_way ? k_two_way : k_one_way,
                  .state = "cold"},
          .visit = Seconds(0.03) + 16 * Seconds(static_cast<double>(bytes) * 0.5e-9),
          .measure = [bench](Cell& cell, Seconds budget) { bench->measure_write(cell, budget); }};
}

CellPlan aggregate_plan(const std::shared_ptr<Bench>& bench, const std::string& transport,
                        std::uint64_t bytes, int pairs, bool two_way) {
  CellPlan plan = write_plan(bench, transport, bytes, two_way);
  plan.key.test = k_fabric_aggregate;
  plan.key.pairs = pairs;
  plan.key.in_flight = 0; // found while it is measured, which a plan cannot depend on
  plan.visit = Seconds(0.06);
  plan.first = k_search * plan.visit;
  plan.measure = [bench](Cell& cell, Seconds budget) { bench->measure_steady(cell, budget); };
  return plan;
}

/// A pair whose processes share one processor.
CellPlan one_processor_plan(const std::shared_ptr<Bench>& bench, const std::string& transport,
                            std::uint64_t bytes) {
  CellPlan plan = aggregate_plan(bench, transport, bytes, 1, true);
  plan.key.threads = 1;
  return plan;
}

CellPlan latency_plan(const std::shared_ptr<Bench>& bench, const std::string& transport) {
  CellPlan plan = write_plan(bench, transport, 8, false);
  plan.key.test = k_fabric_latency;
  plan.key.in_flight = 1;
  plan.key.state = "warm";
  plan.measure = [bench](Cell& cell, Seconds budget) { bench->measure_latency(cell, budget); };
  return plan;
}

/// Usually what gradient exchange does, which is two-way: of the first transport by size, of the
/// others what tells whether one of them is faster.
Campaign transport_campaign(const std::shared_ptr<Bench>& bench, const std::string& transport) {
  const FabricProbeOptions& options = bench->options();
  const bool all = options.thorough, most = all || transport == options.transports.front();
  Campaign campaign{.name = transport,
                    .plans = {latency_plan(bench, transport)},
                    .end = [bench] { bench->dismiss(); },
                    .passes = 1}; // to start the processes takes as long as some cells
  std::vector<CellPlan>& plans = campaign.plans;
  for (const bool two_way : all ? std::vector{true, false} : std::vector{true}) {
    for (const int pairs : bench->pairs()) {
      for (const std::uint64_t kib : {256U, 1024U, 4096U}) {
        if (all || kib == 1024) {
          plans.push_back(aggregate_plan(bench, transport, kib << 10U, pairs, two_way));
        }
      }
    }
    if (two_way && options.cpus.size() > 1) {
      for (const std::uint64_t kib : {256U, 1024U, 4096U}) {
        if (all || kib == 1024) {
          plans.push_back(one_processor_plan(bench, transport, kib << 10U));
        }
      }
    }
    for (const std::uint64_t size : most ? options.sizes : k_compared_sizes) {
      plans.push_back(write_plan(bench, transport, size, two_way));
    }
  }
  for (const int in_flight : options.thorough ? std::vector{1, 2, 4, 8} : std::vector<int>{}) {
    CellPlan& window = plans.emplace_back(write_plan(bench, transport, k_window_bytes, true));
    window.key.test = k_fabric_window;
    window.key.in_flight = in_flight;
  }
  return campaign;
}

} // namespace

std::vector<Campaign> fabric_campaigns(const FabricProbeOptions& options, const Clock& clock) {
  // Shared by the functions in the campaigns, which are copied about: the last copy ends it.
  FabricProbeOptions filled = options;
  if (filled.sizes.empty()) {
    filled.sizes =
        filled.thorough ? curve_sizes(8, 64ULL << 20U, true) : curve_sizes(256, 4ULL << 20U, false);
  }
  const auto bench = std::make_shared<Bench>(std::move(filled), clock);
  std::vector<Campaign> campaigns;
  for (const std::string& transport : options.transports) {
    campaigns.push_back(transport_campaign(bench, transport));
  }
  return campaigns;
}

} // namespace reckon
