// SPDX-License-Identifier: Apache-2.0
#include "probe/machine_campaigns.hpp"

#include "documents/cells.hpp"
#include "kernels/reduce.hpp"
#include "probe/pattern.hpp"
#include "stats/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace reckon {
namespace {

// ---------------------------------------------------------------- kernels

/// The sum of all 8-byte words: every byte has to be read. `bytes` is a multiple of 64.
std::uint64_t read_all(const std::byte* from, std::size_t bytes) noexcept {
  std::uint64_t sum0 = 0;
  std::uint64_t sum1 = 0;
  std::uint64_t sum2 = 0;
  std::uint64_t sum3 = 0;
  for (std::size_t i = 0; i < bytes; i += 32) { // four sums: one would wait for itself
    std::uint64_t word[4];
    std::memcpy(word, from + i, sizeof word);
    sum0 += word[0];
    sum1 += word[1];
    sum2 += word[2];
    sum3 += word[3];
  }
  return sum0 + sum1 + sum2 + sum3;
}

// ---------------------------------------------------------------- slices

/// How `threads` threads share out `bytes` of memory: slice after slice, each thread a chunk of
/// each. All slices in turn are more than the caches hold.
struct Slices {
  std::size_t chunk = 0; ///< of one thread in one slice
  std::size_t slice = 0;
  std::size_t count = 1;

  Slices(std::uint64_t bytes, std::size_t threads) {
    const std::uint64_t wanted =
        std::max<std::uint64_t>(std::uint64_t{16} << 20U, threads * (std::uint64_t{1} << 20U));
    chunk = std::max<std::size_t>(
        std::min<std::uint64_t>(wanted, bytes) / threads / k_page * k_page, k_page);
    slice = chunk * threads;
    count = std::max<std::size_t>(bytes / slice, 1);
  }
  [[nodiscard]] std::size_t offset(std::size_t thread, std::uint64_t index) const {
    return index % count * slice + thread * chunk;
  }
};

// ---------------------------------------------------------------- NUMA pairs

enum class Move { copy, read, write };

/// One direction of a cell.
struct Stream {
  std::span<std::byte> from, to;
  std::size_t first_thread = 0;
  std::size_t threads = 0;
  Slices slices{k_page, 1};
};

class PairCell {
public:
  PairCell(Workbench& bench, Move move, std::size_t from, std::size_t to, bool two_way,
           std::size_t threads)
      : m_bench(bench), m_move(move), m_two_way(two_way) {
    // Who moves the bytes of each direction: a reader sits where they go.
    const std::size_t here = move == Move::read ? to : from;
    const std::size_t there = move == Move::read ? from : to;
    const std::size_t forward = two_way ? threads / 2 : threads;
    m_cpus = bench.cpus_near(here, forward);
    if (two_way) {
      const std::vector<int> back = here == there ? last_cpus(here, threads - forward)
                                                  : bench.cpus_near(there, threads - forward);
      m_cpus.insert(m_cpus.end(), back.begin(), back.end());
    }
    m_from = from;
    m_to = to;
    m_forward = forward;
  }

  void measure(Cell& cell, Seconds budget) {
    const Seconds since = m_bench.clock().now();
    const std::uint64_t bytes = std::max(m_bench.cold_bytes(m_from), m_bench.cold_bytes(m_to));
    const std::span<std::byte> a = m_bench.memory(m_from, 0, bytes).first(bytes);
    const std::span<std::byte> b = m_bench.memory(m_to, 1, bytes).first(bytes);
    std::vector<Stream> streams;
    const std::size_t half = bytes / 2 / k_page * k_page;
    streams.push_back(
        stream(m_two_way ? a.first(half) : a, m_two_way ? b.first(half) : b, 0, m_forward));
    if (m_two_way) {
      streams.push_back(
          stream(b.subspan(half), a.subspan(half), m_forward, m_cpus.size() - m_forward));
    }
    Team& team = m_bench.team(m_cpus);
    prepare(team, streams);
    std::size_t bytes_at_once = 0;
    for (const Stream& s : streams) {
      bytes_at_once += s.slices.slice;
    }
    const Samples samples =
        m_bench.sample(team, since, budget, [&](std::size_t rank, std::uint64_t index) noexcept {
          const Stream& s = rank < m_forward ? streams[0] : streams[1];
          move(s, s.slices.offset(rank - s.first_thread, index));
        });
    fill_cell(cell, samples, static_cast<double>(bytes_at_once));
    if (cell.has_value() && m_two_way) {
      remark(cell, direction_rates(samples, streams));
    }
    m_bench.remark_placement(cell, m_from, 0);
    if (m_from != m_to) {
      m_bench.remark_placement(cell, m_to, 1);
    }
    verify(cell, streams);
  }

private:
  /// The last of the node's processors, so that the second direction does not get those of the
  /// first.
  [[nodiscard]] std::vector<int> last_cpus(std::size_t node, std::size_t threads) const {
    const std::vector<int> all = m_bench.cpus_near(node, SIZE_MAX);
    return {all.end() - static_cast<std::ptrdiff_t>(std::min(threads, all.size())), all.end()};
  }

  [[nodiscard]] Stream stream(std::span<std::byte> from, std::span<std::byte> to, std::size_t first,
                              std::size_t threads) const {
    return {from, to, first, threads, Slices(from.size(), threads)};
  }

  void move(const Stream& s, std::size_t offset) const noexcept {
    switch (m_move) {
    case Move::copy:
      std::memcpy(s.to.data() + offset, s.from.data() + offset, s.slices.chunk);
      break;
    case Move::read:
      keep(read_all(s.from.data() + offset, s.slices.chunk));
      break;
    case Move::write:
      std::memset(s.to.data() + offset, 0x5a, s.slices.chunk);
      break;
    }
  }

  /// Poison where the first slice goes, a pattern where it comes from: a copy that was not made
  /// shows afterwards.
  void prepare(Team& team, const std::vector<Stream>& streams) const {
    if (m_move != Move::copy) {
      return;
    }
    team.run([&](std::size_t rank) {
      const Stream& s = rank < m_forward ? streams[0] : streams[1];
      const std::size_t offset = s.slices.offset(rank - s.first_thread, 0);
      std::memset(s.to.data() + offset, k_poison, s.slices.chunk);
      fill_with_pattern(s.from.subspan(offset, s.slices.chunk), m_bench.seed() + offset);
    });
  }

  void verify(Cell& cell, const std::vector<Stream>& streams) const {
    if (!cell.has_value() || m_move != Move::copy) {
      return;
    }
    for (const Stream& s : streams) {
      const auto sent = s.from.first(s.slices.slice);
      const auto [expected, got] = std::mismatch(sent.begin(), sent.end(), s.to.begin());
      if (expected != sent.end()) {
        discard(cell, CellStatus::mismatch,
                fmt::format("the copy differs at byte {}: expected {:#04x}, got {:#04x}",
                            expected - sent.begin(), std::to_integer<int>(*expected),
                            std::to_integer<int>(*got)));
        return;
      }
    }
  }

  [[nodiscard]] static std::string direction_rates(const Samples& samples,
                                                   const std::vector<Stream>& streams) {
    std::vector<double> gb_per_s;
    for (const Stream& s : streams) {
      double slowest = 0;
      for (std::size_t t = s.first_thread; t < s.first_thread + s.threads; ++t) {
        slowest = std::max(slowest, samples.rank_seconds[t]);
      }
      gb_per_s.push_back(static_cast<double>(s.slices.slice) / slowest * 1e-9);
    }
    return fmt::format("one direction {:.2f}, the other {:.2f} GB/s", gb_per_s[0], gb_per_s[1]);
  }

  Workbench& m_bench;
  Move m_move;
  bool m_two_way;
  std::size_t m_from = 0, m_to = 0, m_forward = 0;
  std::vector<int> m_cpus;
};

CellPlan pair_plan(Workbench& bench, Move move, std::size_t from, std::size_t to, bool two_way,
                   std::size_t threads) {
  const bool copy = move == Move::copy;
  return {.key = {.test = copy                 ? k_numa_copy
                          : move == Move::read ? k_numa_read
                                               : k_numa_write,
                  .from = bench.nodes()[from].id,
                  .to = bench.nodes()[to].id,
                  .threads = static_cast<int>(threads),
                  .direction = two_way ? k_two_way : k_one_way,
                  .state = "cold"},
          .visit = Seconds(0.04),
          .measure = [&bench, move, from, to, two_way, threads](Cell& cell, Seconds budget) {
            PairCell(bench, move, from, to, two_way, threads).measure(cell, budget);
          }};
}

// ---------------------------------------------------------------- STREAM

struct StreamCell {
  Workbench& bench;
  bool add = false;
  std::vector<CorePlace> cores;

  void measure(Cell& cell, Seconds budget) const {
    const Seconds since = bench.clock().now();
    Samples best;
    double best_seconds = 0;
    Stores best_stores = Stores::cached;
    const std::size_t threads = cores.size();
    Slices slices(k_page, 1);
    for (const Stores stores : {Stores::cached, Stores::streaming}) {
      const Seconds left = budget - (bench.clock().now() - since);
      Samples samples = run(stores, stores == Stores::cached ? 0.5 * left : left, slices);
      if (samples.interrupted || samples.seconds.empty()) {
        best = std::move(samples);
        break;
      }
      const double typical = median(samples.seconds);
      if (best_seconds == 0 || typical < best_seconds) {
        best = std::move(samples);
        best_seconds = typical;
        best_stores = stores;
      }
    }
    const double arrays = add ? 3 : 2;
    fill_cell(cell, best, arrays * static_cast<double>(slices.chunk * threads));
    if (cell.has_value()) {
      remark(cell, best_stores == Stores::cached ? "ordinary stores" : "non-temporal stores");
      bench.remark_placement(cell, cores.front().node, 0);
    }
  }

private:
  Samples run(Stores stores, Seconds budget, Slices& slices) const {
    std::uint64_t bytes = 0;
    for (const CorePlace& core : cores) {
      bytes = std::max(bytes, bench.cold_bytes(core.node));
    }
    // Each thread works on memory of its node: its share of the two areas there.
    struct Arrays {
      std::byte *a, *b, *c;
    };
    std::vector<Arrays> arrays;
    std::size_t most_on_a_node = 0;
    for (const NodePlace& node : bench.nodes()) {
      most_on_a_node = std::max(most_on_a_node, node.cpus.size());
    }
    most_on_a_node = std::clamp<std::size_t>(cores.size(), 1, most_on_a_node);
    slices = Slices(bytes / 2, most_on_a_node);
    std::map<std::size_t, std::size_t> used; // threads so far, by node
    for (const CorePlace& core : cores) {
      const std::span<std::byte> low = bench.memory(core.node, 0, bytes);
      const std::span<std::byte> high = bench.memory(core.node, 1, bytes);
      const std::size_t offset = slices.offset(used[core.node]++, 0);
      arrays.push_back({&low[offset], &low[bytes / 2 / k_page * k_page + offset], &high[offset]});
    }
    std::vector<int> cpus;
    for (const CorePlace& core : cores) {
      cpus.push_back(core.cpu);
    }
    return bench.sample(bench.team(cpus), bench.clock().now(), budget,
                        [&](std::size_t rank, std::uint64_t index) noexcept {
                          const Arrays& mine = arrays[rank];
                          const std::size_t at = index % slices.count * slices.slice;
                          const std::array<const void*, 2> operands{mine.a + at, mine.b + at};
                          sum_into(DType::fp32, mine.c + at, {operands.data(), add ? 2U : 1U},
                                   slices.chunk / sizeof(float), stores);
                        });
  }
};

CellPlan stream_plan(Workbench& bench, bool add, const std::string& where,
                     std::vector<CorePlace> cores) {
  const StreamCell stream{bench, add, std::move(cores)};
  return {.key = {.test = add ? k_stream_add : k_stream_copy,
                  .from = where,
                  .threads = static_cast<int>(stream.cores.size()),
                  .state = "cold"},
          .visit = Seconds(0.04), // of which ordinary stores take half
          .measure = [stream](Cell& cell, Seconds budget) { stream.measure(cell, budget); }};
}

} // namespace

Campaign numa_bandwidth_campaign(Workbench& bench) {
  Campaign campaign{.name = "NUMA bandwidth"};
  const auto add = [&](Move move, std::size_t from, std::size_t to, bool two_way,
                       std::size_t threads) {
    campaign.plans.push_back(pair_plan(bench, move, from, to, two_way, threads));
  };
  for (std::size_t from = 0; from < bench.nodes().size(); ++from) {
    for (std::size_t to = 0; to < bench.nodes().size(); ++to) {
      for (const Move move : {Move::copy, Move::read, Move::write}) {
        const bool usual = move == Move::copy;
        const std::size_t all = bench.cpus_near(move == Move::read ? to : from, SIZE_MAX).size();
        if (all > 1 && (bench.thorough() || usual)) {
          add(move, from, to, false, 1);
        }
        add(move, from, to, false, all);
        if (from > to || !(bench.thorough() || usual)) {
          continue;
        }
        // Both ways needs a thread each: of one node half of its cores, of two nodes all.
        const std::size_t near = bench.cpus_near(from, SIZE_MAX).size();
        const std::size_t far = from == to ? near : bench.cpus_near(to, SIZE_MAX).size();
        const std::size_t most = from == to ? near / 2 * 2 : 2 * std::min(near, far);
        const bool shared =
            from != to && (bench.nodes()[from].cpus.empty() || bench.nodes()[to].cpus.empty());
        if (most >= 2 && !shared) {
          add(move, from, to, true, most);
          if (most > 2 && bench.thorough()) {
            add(move, from, to, true, 2);
          }
        }
      }
    }
  }
  return campaign;
}

Campaign stream_campaign(Workbench& bench) {
  Campaign campaign{.name = "STREAM-like ceilings", .begin = [&bench] {
                      bench.fill_numbers(0);
                      bench.fill_numbers(1);
                    }};
  for (const bool add : {false, true}) {
    for (const int threads : bench.thread_counts()) {
      campaign.plans.push_back(stream_plan(bench, add, bench.machine(), bench.spread(threads)));
    }
    for (std::size_t n = 0; bench.nodes().size() > 1 && n < bench.nodes().size(); ++n) {
      std::vector<CorePlace> cores;
      for (const CorePlace& core : bench.cores()) {
        if (core.node == n) {
          cores.push_back(core);
        }
      }
      if (!cores.empty()) {
        campaign.plans.push_back(stream_plan(bench, add, bench.nodes()[n].id, cores));
      }
    }
  }
  return campaign;
}

} // namespace reckon
