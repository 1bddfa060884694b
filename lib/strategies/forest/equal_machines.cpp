// SPDX-License-Identifier: Apache-2.0
#include "strategies/forest/equal_machines.hpp"

#include "core/error.hpp"
#include "core/indices.hpp"
#include "core/name_ranges.hpp"
#include "core/units.hpp"
#include "equations/split.hpp"
#include "strategies/forest/search.hpp"
#include "strategies/least.hpp"
#include "strategies/plan_network.hpp"
#include "strategies/predict.hpp"
#include "strategies/provenance.hpp"
#include "strategies/shares/stars.hpp"
#include "strategies/unknown_rates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <utility>

namespace reckon {
namespace {

constexpr std::array<std::uint64_t, 10> k_sizes{16U << 10U,  32U << 10U,  64U << 10U, 128U << 10U,
                                                256U << 10U, 512U << 10U, 1U << 20U,  2U << 20U,
                                                4U << 20U,   8U << 20U};
/// More parts would be an unwieldy plan.
constexpr double k_most_pieces = 25'000;
/// Lives of a part that a window lasts.
constexpr double k_window_lives = 8;

/// Ways to sum in a machine, one for each head: by worker, the one that it hands its sum to.
using MachineTrees = std::vector<std::vector<std::uint64_t>>;

/// How many there are, and the workers of each.
struct Shape {
  std::size_t machines = 0, width = 0, servers = 0;
};

Shape shape_of(const std::vector<PlanRank>& ranks) {
  Shape shape;
  for (const PlanRank& rank : ranks) {
    const bool first = rank.machine == ranks.front().machine &&
                       rank.machine_number == ranks.front().machine_number;
    shape.width += rank.worker && first ? 1 : 0;
    shape.machines += rank.worker ? 1 : 0;
    shape.servers += rank.worker ? 0 : 1;
  }
  shape.machines /= std::max<std::size_t>(1, shape.width);
  return shape;
}

class EqualMachines {
public:
  EqualMachines(const InsideInputs& inputs, const std::vector<PlanRank>& ranks,
                const InsidePlanOptions& options, bool gpu_direct)
      : m_inputs(inputs), m_options(options), m_ranks(ranks), m_shape(shape_of(ranks)),
        m_gpu_direct(gpu_direct), m_sample(sample()),
        m_ways(inputs.profile,
               places_of(m_sample, inputs.profile, options.plan.transport, gpu_direct)),
        m_between(m_ways.between(k_long)), m_cost(m_ways.op_cost(k_long)),
        m_job(job_without_ranks(inputs.workload, options.plan)) {
    m_job.workers = indices(m_shape.machines * m_shape.width);
    check_ways();
    solve_shares();
    sum_inside();
  }

  [[nodiscard]] Plan make() {
    std::optional<Plan> best;
    std::vector<Candidate> candidates;
    for (const char* const name : {k_hierarchical_split, k_hierarchical_two_level}) {
      const bool asked = m_options.plan.strategy == name;
      const std::size_t groups = name == k_hierarchical_split ? 0 : groups_of_machines();
      if (name == k_hierarchical_two_level && m_shape.machines < 4) {
        candidates.push_back({name, {}, "fewer than 4 machines make no groups"});
        continue;
      }
      if (m_options.plan.progress) {
        m_options.plan.progress(name, static_cast<double>(candidates.size()) / 2);
      }
      Plan plan = fastest(name, groups);
      candidates.push_back({name, plan.prediction, ""});
      if (m_options.plan.strategy == "auto"
              ? !best || plan.prediction.mid_seconds < best->prediction.mid_seconds
              : asked) {
        best = std::move(plan);
      }
    }
    if (!best) {
      fail(ErrorKind::input, fmt::format("--strategy {} does not apply: {}",
                                         m_options.plan.strategy, candidates.back().reason));
    }
    best->candidates = std::move(candidates);
    describe(*best);
    return std::move(*best);
  }

private:
  static constexpr double k_long = 1U << 20U; // bytes

  /// Near the square root of the machines, so that the fewest take part in a sum; where a divisor
  /// is near that, groups are equal, and so are their heads' loads.
  [[nodiscard]] std::size_t groups_of_machines() const {
    const auto root =
        static_cast<std::size_t>(std::ceil(std::sqrt(static_cast<double>(m_shape.machines))));
    for (std::size_t more = root; more <= 2 * root; ++more) {
      if (m_shape.machines % more == 0) {
        return more;
      }
    }
    return root;
  }
  /// A beginning says less of a longer plan than the formula does.
  [[nodiscard]] bool can_be_played(const Plan& plan) const {
    const auto parts = static_cast<double>(plan.parts.size()),
               ranks = static_cast<double>(m_ranks.size());
    return m_ranks.size() <= k_most_ranks_with_trees &&
           2 * parts * (ranks - 1) <= k_taken.most_writes;
  }

  /// The ranks of the first two machines and the last one, and the first and the last that serve.
  [[nodiscard]] std::vector<PlanRank> sample() {
    std::vector<std::size_t> machines{0, 1}, servers;
    if (m_shape.machines > 2) {
      machines.push_back(m_shape.machines - 1);
    }
    if (m_shape.servers > 0) {
      servers.push_back(0);
    }
    if (m_shape.servers > 1) {
      servers.push_back(m_shape.servers - 1);
    }
    std::vector<PlanRank> out;
    for (const std::size_t machine : machines) {
      for (std::size_t place = 0; place < m_shape.width; ++place) {
        out.push_back(m_ranks[machine * m_shape.width + place]);
      }
    }
    m_first_server = out.size();
    for (const std::size_t server : servers) {
      out.push_back(m_ranks[m_shape.machines * m_shape.width + server]);
    }
    return out;
  }

  /// By its number in the sample.
  [[nodiscard]] std::size_t worker(std::size_t machine, std::size_t place) const {
    return machine * m_shape.width + place;
  }
  [[nodiscard]] double write_s(std::size_t from, std::size_t to, double bytes) const {
    return m_between.network.write_seconds(from, to, bytes);
  }

  /// Throws where a write that the plan needs is impossible, or takes longer between some machines
  /// than between others.
  void check_ways() const {
    const Places& places = *m_ways.places();
    const auto check = [&](std::size_t from, std::size_t to, std::size_t like_from,
                           std::size_t like_to) {
      if (!places.network->ways[places.of_rank[from]][places.of_rank[to]]) {
        fail(ErrorKind::input,
             fmt::format("no way leads from {} to {}, so these machines cannot be planned as equal "
                         "ones; leave --strategy out, or plan at most {} ranks",
                         m_sample[from].place_name(), m_sample[to].place_name(),
                         k_most_ranks_with_trees));
      }
      constexpr double k_same = 1e-6;
      const double seconds = write_s(from, to, k_long), like = write_s(like_from, like_to, k_long);
      if (std::abs(seconds - like) > k_same * like) {
        fail(ErrorKind::input,
             fmt::format("a write from {} to {} takes longer or shorter than one from {} to {}, so "
                         "these machines are not equal; plan at most {} ranks",
                         m_sample[from].place_name(), m_sample[to].place_name(),
                         m_sample[like_from].place_name(), m_sample[like_to].place_name(),
                         k_most_ranks_with_trees));
      }
    };
    for (std::size_t place = 0; place < m_shape.width; ++place) {
      for (std::size_t other = 0; other < m_shape.width; ++other) {
        if (other != place) {
          check(worker(0, other), worker(0, place), worker(1, other), worker(1, place));
        }
      }
      const std::size_t first = worker(0, place);
      for (std::size_t to = worker(1, place); to < m_first_server; to += m_shape.width) {
        check(first, to, first, worker(1, place));
        check(to, first, worker(1, place), first);
      }
      for (std::size_t server = m_first_server; server < m_sample.size(); ++server) {
        check(first, server, worker(1, place), m_first_server);
        check(server, first, m_first_server, worker(1, place));
      }
    }
  }

  /// The workers of a machine all hand their sums to the head; or those of other PCIe switches to
  /// one of each, which hands it what they have.
  void sum_inside() {
    std::vector<std::vector<std::size_t>> groups; // of workers below one switch
    for (const std::vector<std::size_t>& group : m_ways.places()->network->groups) {
      std::vector<std::size_t> here;
      for (const std::size_t of : group) {
        const auto at = std::ranges::find(m_ways.places()->of_rank, of);
        const auto rank = static_cast<std::size_t>(at - m_ways.places()->of_rank.begin());
        if (rank < m_shape.width) {
          here.push_back(rank);
        }
      }
      if (!here.empty()) {
        groups.push_back(std::move(here));
      }
    }
    for (std::size_t head = 0; head < m_shape.width; ++head) {
      m_stars.emplace_back(m_shape.width, head);
    }
    if (groups.size() < 2 || groups.size() == m_shape.width) {
      return;
    }
    m_by_switches = m_stars;
    for (std::size_t head = 0; head < m_shape.width; ++head) {
      const auto holds = [&](const auto& group) { return std::ranges::count(group, head) > 0; };
      const auto& home = *std::ranges::find_if(groups, holds);
      const auto place = static_cast<std::size_t>(std::ranges::find(home, head) - home.begin());
      for (const auto& group : groups) {
        const std::size_t own = holds(group) ? head : group[place % group.size()];
        for (const std::size_t worker : group) {
          m_by_switches[head][worker] = worker == own ? head : own;
        }
      }
    }
  }

  /// Adds what a way carries to its stations; with `also`, to those that this one passes, too.
  void carry(std::vector<double>& bytes, std::size_t from, std::size_t to, double count,
             const std::vector<std::uint32_t>* also = nullptr) const {
    for (const std::uint32_t station : m_between.network.paths[from][to]) {
      if (also == nullptr || std::ranges::find(*also, station) != also->end()) {
        bytes[station] += count;
      }
    }
  }
  void carry_at_server(std::vector<double>& bytes, std::size_t place, double received,
                       double sent) const {
    const auto& paths = m_between.network.paths;
    const std::size_t server = m_first_server;
    carry(bytes, worker(0, place), server, received, &paths[worker(1, place)][server]);
    carry(bytes, server, worker(0, place), sent, &paths[server][worker(1, place)]);
  }
  [[nodiscard]] std::vector<double> no_bytes() const {
    return std::vector<double>(m_between.network.station_bytes_per_s.size(), 0.0);
  }
  [[nodiscard]] std::size_t busiest(const std::vector<double>& bytes) const {
    std::vector<double> seconds;
    for (std::size_t s = 0; s < bytes.size(); ++s) {
      seconds.push_back(bytes[s] / m_between.network.rate_of(s));
    }
    return static_cast<std::size_t>(std::ranges::max_element(seconds) - seconds.begin());
  }
  [[nodiscard]] double busy_s(const std::vector<double>& bytes) const {
    const std::size_t station = busiest(bytes);
    return bytes[station] / m_between.network.rate_of(station);
  }

  /// Equation 8 between the machines, whose ports are those of all their workers together.
  void solve_shares() {
    const double each = 1 / static_cast<double>(m_shape.width);
    std::vector<double> machine = no_bytes(), server = no_bytes();
    for (std::size_t place = 0; place < m_shape.width; ++place) {
      carry(machine, worker(0, place), worker(1, place), each);
      if (m_shape.servers > 0) {
        carry_at_server(server, place, each, each);
      }
    }
    const double per_byte = busy_s(machine), served = m_shape.servers > 0 ? busy_s(server) : 1;
    if (per_byte <= 0 || served <= 0) {
      fail(ErrorKind::input,
           fmt::format("profile '{}': no rate is known of what lies between the machines {}; there "
                       "is nothing to solve by: {}",
                       m_inputs.profile.name, m_ranks.front().machine,
                       fmt::join(unknown_rates(m_inputs.profile, *m_ways.places()), "; ")));
    }
    const Star star{m_job.bytes(), std::vector<double>(m_shape.machines, 1 / per_byte),
                    std::vector<double>(m_shape.servers, 1 / served)};
    const StarSplit split = solve_equal_star(star);
    m_least = {split.time_s, split.limit == StarLimit::slowest_workers
                                 ? "the ports of the machines that work: each sends its whole "
                                   "gradient (equation 8)"
                                 : "the ports of all machines are busy all the time (equation 8)"};
    m_served = m_shape.servers > 0 ? split.shares.server_bytes.front() *
                                         static_cast<double>(m_shape.servers) / m_job.bytes()
                                   : 0;
    m_port_bytes_per_s = 1 / per_byte;
  }

  struct Counts {
    std::uint64_t size_bytes = 1;
    double served = 0; ///< part of the parts that machines which only serve sum
  };
  /// Equal parts for all places of all machines that work, and of those that serve; for all
  /// machines where there are not as many.
  [[nodiscard]] Counts counts_for(std::uint64_t size) const {
    if (m_options.plan.part_bytes) {
      return {size, m_served};
    }
    const double parts = m_job.bytes() / static_cast<double>(size);
    const auto whole = [&](double part, std::size_t machines) {
      const auto each = static_cast<double>(machines),
                 turn = each * static_cast<double>(m_shape.width);
      const double step = parts * part >= turn ? turn : each;
      return part > 0 ? step * std::max(1.0, std::ceil(parts * part / step)) : 0;
    };
    const double serving = whole(m_served, m_shape.servers),
                 all = serving + whole(1 - m_served, m_shape.machines);
    constexpr double k_alignment = 64; // of parts
    return {static_cast<std::uint64_t>(std::ceil(m_job.bytes() / all / k_alignment) * k_alignment),
            serving / all};
  }

  /// Gives parts their roots and heads, machine after machine and place after place.
  void assign(Parts& parts, double served) const {
    const auto until = [&](std::size_t part) { // of those before it, by servers
      constexpr double k_rounding = 1e-9;
      return static_cast<std::size_t>(static_cast<double>(part) * served + k_rounding);
    };
    for (std::size_t p = 0; p < parts.size(); ++p) {
      const bool serves = until(p + 1) > until(p);
      const std::size_t of = serves ? m_shape.servers : m_shape.machines;
      const std::size_t number = serves ? until(p) : p - until(p);
      std::size_t head = number / of; // and the digits of the machine's number: turns in any group
      for (std::size_t rest = number % of; rest > 0; rest /= m_shape.width) {
        head += rest;
      }
      head %= m_shape.width;
      parts.tree.push_back(head);
      parts.server.push_back(serves ? m_shape.machines * m_shape.width + number % of
                                    : worker(number % of, head));
    }
  }

  /// The machines' traffic with one another, of the parts with each head.
  [[nodiscard]] std::vector<Load> loads_of(const Plan& plan) const {
    const std::size_t units = m_shape.machines + m_shape.servers;
    std::vector<std::vector<double>> bytes(m_shape.width, std::vector<double>(units, 0));
    for (std::size_t p = 0; p < plan.parts.size(); ++p) {
      const std::size_t rank = plan.parts.server[p], workers = m_shape.machines * m_shape.width;
      const std::size_t unit =
          rank < workers ? rank / m_shape.width : m_shape.machines + rank - workers;
      bytes[plan.parts.tree[p]][unit] += static_cast<double>(plan.parts.bytes[p]);
    }
    std::vector<std::size_t> all = indices(units);
    const auto first_server = all.begin() + static_cast<std::ptrdiff_t>(m_shape.machines);
    const Stars stars({all.begin(), first_server}, {first_server, all.end()}, plan.groups);
    std::vector<Load> out;
    for (const std::vector<double>& of_head : bytes) {
      out.push_back(stars.load_of(of_head));
    }
    return out;
  }

  [[nodiscard]] static double of_way(const Plan& plan, std::size_t way) {
    double bytes = 0;
    for (std::size_t p = 0; p < plan.parts.size(); ++p) {
      bytes += plan.parts.tree[p] == way ? static_cast<double>(plan.parts.bytes[p]) : 0;
    }
    return bytes;
  }

  /// What the stations of the sample carry: the first machine's and the first server's as the
  /// busiest ones do with all machines.
  [[nodiscard]] std::vector<double> stations(const Plan& plan,
                                             const std::vector<Load>& loads) const {
    std::vector<double> inside = no_bytes(), out;
    for (std::size_t way = 0; way < m_shape.width; ++way) {
      const double whole = of_way(plan, way);
      const std::vector<std::uint64_t>& above = plan.machine_trees[way];
      for (std::size_t place = 0; place < m_shape.width; ++place) {
        if (above[place] != place) {
          carry(inside, worker(0, place), worker(0, above[place]), whole);
          carry(inside, worker(0, above[place]), worker(0, place), whole);
          add_uses(inside, m_between.add[worker(0, above[place])], whole);
        }
      }
    }
    for (std::size_t unit = 0; unit < m_shape.machines + m_shape.servers; ++unit) {
      const bool works = unit < m_shape.machines;
      std::vector<double> bytes = works ? inside : no_bytes();
      for (std::size_t head = 0; head < m_shape.width; ++head) {
        const Load& load = loads[head];
        if (works) {
          carry(bytes, worker(0, head), worker(1, head), load.egress_bytes[unit]);
          carry(bytes, worker(1, head), worker(0, head), load.ingress_bytes[unit]);
        } else {
          carry_at_server(bytes, head, load.ingress_bytes[unit], load.egress_bytes[unit]);
        }
        add_uses(bytes, m_between.add[works ? worker(0, head) : m_first_server],
                 load.summed_bytes[unit]);
      }
      if (out.empty() || busy_s(bytes) > busy_s(out)) {
        out = std::move(bytes);
      }
    }
    return out;
  }

  /// Seconds from a part's first write to its last, without others: up and down the levels, each
  /// the write of all children one after the other, and their sums.
  [[nodiscard]] double life_s(double bytes, const Plan& plan) const {
    const std::size_t groups = plan.groups;
    const std::vector<std::uint64_t>& above = plan.machine_trees.front(); // its head is worker 0
    const auto writes = [&](std::size_t from, std::size_t to, std::size_t children) {
      const double latency = m_between.network.latency_of(from, to);
      return children == 0
                 ? 0
                 : latency + static_cast<double>(children) * (write_s(from, to, bytes) - latency);
    };
    const auto sum = [&](std::size_t rank, std::size_t sources) {
      Op op{.dtype = m_job.workload.tensors.front().dtype,
            .bytes = static_cast<std::uint64_t>(bytes)};
      op.kind = OpKind::reduce;
      op.source_count = narrow_count(sources);
      return sources < 2 ? 0 : m_cost(rank, op);
    };
    const std::size_t n = m_shape.machines, head = worker(0, 0), other = worker(1, 0);
    const auto level = [&](std::size_t from, std::size_t to, std::size_t children, bool own) {
      return writes(from, to, children) + writes(to, from, children) +
             sum(to, children + (own ? 1 : 0));
    };
    const std::function<double(std::size_t)> inside = [&](std::size_t place) {
      double longest = 0, last = 0;
      std::size_t children = 0, child = place;
      for (std::size_t i = 0; i < m_shape.width; ++i) {
        if (i != place && above[i] == place) {
          longest = std::max(longest, inside(i));
          ++children;
          child = i;
        }
      }
      last = level(worker(0, child), worker(0, place), children, true);
      return longest + last;
    };
    const std::size_t in_group = groups == 0 ? 0 : (n + groups - 1) / groups;
    double between =
        groups == 0 ? level(other, head, n - 1, true)
                    : level(other, head, in_group - 1, true) + level(other, head, groups - 1, true);
    if (m_served > 0) {
      const std::size_t server = m_first_server;
      const std::size_t served = std::min(groups, m_shape.servers - 1);
      between =
          std::max(between, served == 0 ? level(head, server, n, false)
                                        : level(head, server, (n + served - 1) / served, false) +
                                              level(head, server, served, false));
    }
    return inside(0) + between;
  }
  [[nodiscard]] static decltype(Op::source_count) narrow_count(std::size_t count) {
    return static_cast<decltype(Op::source_count)>(count);
  }

  /// The one with the least time among all part sizes.
  [[nodiscard]] Plan fastest(const char* name, std::size_t groups) const {
    std::optional<Plan> best;
    // From the longest on, so that shorter parts have to be worth it.
    for (const std::uint64_t size : part_sizes()) {
      for (const MachineTrees& ways : {m_stars, m_by_switches}) {
        Plan plan = ways.empty() ? Plan() : predicted(name, groups, size, ways);
        if (!ways.empty() &&
            (!best || plan.prediction.mid_seconds < best->prediction.mid_seconds * (1 - k_worth))) {
          best = std::move(plan);
        }
      }
    }
    if (can_be_played(*best)) {
      play(*best);
    } else if (m_job.passes) {
      best->passes = m_job.passes;
      add_passes(best->prediction, *m_job.passes, best->parts, std::nullopt);
    }
    return std::move(*best);
  }

  [[nodiscard]] std::vector<std::uint64_t> part_sizes() const {
    if (m_options.plan.part_bytes) {
      return {*m_options.plan.part_bytes};
    }
    std::vector<std::uint64_t> sizes; // from one for each worker on, where that is less
    if (const double each = m_job.bytes() / static_cast<double>(m_job.workers.size());
        each < static_cast<double>(k_sizes.front()) && each >= least_part_bytes()) {
      sizes.push_back(std::max<std::uint64_t>(64, static_cast<std::uint64_t>(each)));
    }
    for (const std::uint64_t size : k_sizes) {
      if (static_cast<double>(size) >= least_part_bytes() &&
          m_job.bytes() / static_cast<double>(size) <= k_most_pieces) {
        sizes.push_back(size);
      }
    }
    std::ranges::reverse(sizes);
    return sizes.empty() ? std::vector<std::uint64_t>{k_sizes.back()} : sizes;
  }
  [[nodiscard]] double least_part_bytes() const {
    LeastPart least(m_between.network);
    least.add(worker(0, 0), worker(1, 0));
    if (m_shape.width > 1) {
      least.add(worker(0, 1), worker(0, 0));
    }
    if (m_shape.servers > 0) {
      least.add(worker(0, 0), m_first_server);
    }
    return least.bytes();
  }

  /// Of this part size: the busiest station's time, and a part's life for filling and draining.
  [[nodiscard]] Plan predicted(const char* name, std::size_t groups, std::uint64_t size,
                               const MachineTrees& ways) const {
    Plan plan;
    plan.machine_trees = ways;
    plan.strategy = name;
    plan.groups = groups;
    plan.collective = Collective::all_reduce;
    plan.runs = m_job.layout.runs;
    plan.gradient_bytes = m_job.layout.total_bytes;
    const Counts counts = counts_for(size);
    plan.parts =
        reckon::cut(m_job.layout, m_job.workload, counts.size_bytes, m_options.plan.cutting, 1);
    if (m_job.passes && m_options.plan.order == Order::priority) {
      order_by_priority(plan.parts, *m_job.passes, m_job.bytes() / m_least.seconds);
    }
    assign(plan.parts, counts.served);
    assign_lanes(plan.parts, m_ranks.size(), m_options.lanes);
    plan.part_bytes = *std::ranges::max_element(plan.parts.bytes);
    const std::vector<Load> loads = loads_of(plan);
    fill_ranks(plan, loads);
    const std::vector<double> bytes = stations(plan, loads);
    const std::size_t station = busiest(bytes);
    const double steady_s = busy_s(bytes),
                 fill_s = life_s(static_cast<double>(plan.part_bytes), plan);
    Prediction& p = plan.prediction;
    p.bound_seconds = steady_s;
    p.bound_by = fmt::format("{}: {} at {}", m_between.names[station],
                             to_text(Bytes(static_cast<std::uint64_t>(bytes[station]))),
                             to_text(Bandwidth::bytes_per_s(m_between.network.rate_of(station))));
    p.lo_seconds = p.mid_seconds = p.hi_seconds = steady_s + fill_s;
    p.terms = {{"transport", steady_s}, {"fill", fill_s}};
    p.relief = fmt::format("more bandwidth of {}, in every machine", m_between.names[station]);
    lower_bound(p, m_least);
    const double of_lane =
        std::ceil(static_cast<double>(plan.parts.size()) / static_cast<double>(m_options.lanes));
    plan.window_parts = m_options.plan.window_parts.value_or(static_cast<std::uint64_t>(std::clamp(
        std::ceil(k_window_lives * fill_s / steady_s * of_lane), 2.0, std::max(2.0, of_lane))));
    return plan;
  }

  /// The ranks with their places, and what each of them sums, sends and receives.
  void fill_ranks(Plan& plan, const std::vector<Load>& loads) const {
    const std::size_t workers = m_shape.machines * m_shape.width;
    std::vector<double> inside(m_shape.width, 0.0); // by worker of a machine: what it sends there
    for (std::size_t way = 0; way < m_shape.width; ++way) {
      const double whole = of_way(plan, way);
      for (std::size_t place = 0; place < m_shape.width; ++place) {
        const std::size_t above = plan.machine_trees[way][place];
        inside[place] += above == place ? 0 : whole;
        inside[above] += above == place ? 0 : whole;
      }
    }
    std::vector<PlanRank> places;
    for (std::size_t r = 0; r < m_sample.size(); ++r) {
      places.push_back(m_ways.place_of(r));
    }
    for (std::size_t r = 0; r < m_ranks.size(); ++r) {
      const bool works = r < workers;
      const std::size_t place = r % m_shape.width;
      PlanRank& rank = plan.ranks.emplace_back(places[works ? place : m_first_server]);
      rank.machine_number = m_ranks[r].machine_number;
      rank.lanes = static_cast<int>(m_options.lanes);
      rank.server = !works;
      rank.share_bytes = works ? (1 - m_served) * m_job.bytes() / static_cast<double>(workers)
                               : m_served * m_job.bytes() / static_cast<double>(m_shape.servers);
      const std::size_t unit = works ? r / m_shape.width : m_shape.machines + r - workers;
      double sent = works ? inside[place] : 0;
      for (std::size_t way = 0; way < m_shape.width;
           ++way) { // its head is the worker of its number
        sent += !works || way == place ? loads[way].egress_bytes[unit] : 0;
      }
      rank.egress_bytes = rank.ingress_bytes = static_cast<std::uint64_t>(sent);
    }
    for (std::size_t p = 0; p < plan.parts.size(); ++p) {
      PlanRank& rank = plan.ranks[plan.parts.server[p]];
      rank.server = true;
      rank.assigned_bytes += plan.parts.bytes[p];
    }
  }

  /// The whole iteration on the network between all ranks.
  void play(Plan& plan) const {
    Ways ways(m_inputs.profile,
              places_of(m_ranks, m_inputs.profile, m_options.plan.transport, m_gpu_direct));
    ways.set_least(m_least);
    predict(plan, m_job, ways, plan.window_parts, k_taken);
    add_passes_to_trees(plan, m_job, ways, m_options.plan);
  }

  void describe(Plan& plan) const {
    plan.profile = m_inputs.profile_link;
    plan.workload = m_inputs.workload_link;
    plan.roles = m_inputs.roles_link;
    plan.transport = !m_options.plan.transport.empty()
                         ? m_options.plan.transport
                         : transport_between(m_inputs.profile, *m_ways.places()->network);
    if (m_options.plan.optimizer) {
      plan.update = UpdatePlan{*m_options.plan.optimizer,
                               m_options.plan.update_at.value_or(UpdatePlace::worker)};
    }
    compare_with_candidates(plan);
    const std::map<std::string, double> inputs{{"n", static_cast<double>(m_shape.machines)},
                                               {"k", static_cast<double>(m_shape.servers)},
                                               {"w", static_cast<double>(m_shape.width)},
                                               {"M", m_job.bytes()},
                                               {"B", m_port_bytes_per_s}};
    plan.quantities = {{"split_seconds", m_least.seconds, "equation 8, between machines", inputs},
                       {"part_life_seconds", life_s(static_cast<double>(plan.part_bytes), plan),
                        "equation 8d: up and down all levels, without other parts", inputs}};
    if (plan.passes) {
      plan.quantities.insert(plan.quantities.begin(),
                             exposed_quantity(plan, m_job.forward_s, m_job.backward_s));
    }
    plan.assumed = unknown_rates(m_inputs.profile, *m_ways.places());
    if (std::string cost = assumed_write(m_options.plan.part_bytes ? 0 : least_part_bytes());
        !cost.empty()) {
      plan.assumed.push_back(std::move(cost));
    }
  }

  const InsideInputs& m_inputs;
  const InsidePlanOptions& m_options;
  const std::vector<PlanRank>& m_ranks;
  Shape m_shape;
  bool m_gpu_direct;
  std::size_t m_first_server = 0; ///< in the sample
  std::vector<PlanRank> m_sample;
  Ways m_ways;       ///< of the sample
  Between m_between; ///< the same
  OpCost m_cost;     ///< the same
  Job m_job;
  LeastTime m_least;
  double m_served = 0; ///< part of the gradient that is summed by machines that only serve
  double m_port_bytes_per_s = 0;
  MachineTrees m_stars, m_by_switches; ///< the latter empty where no switch has several workers
};

} // namespace

std::string why_not_equal_machines(const Profile& profile, const std::vector<PlanRank>& ranks,
                                   const InsidePlanOptions& options) {
  if (options.collective != Collective::all_reduce) {
    return "equal machines are planned for an all-reduce alone";
  }
  const Shape shape = shape_of(ranks);
  if (shape.machines < 2 || shape.width < 2) {
    return "it needs two machines or more, and two places or more in each";
  }
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const std::size_t workers = shape.machines * shape.width;
    const bool works = r < workers;
    const PlanRank &rank = ranks[r], &first = ranks[works ? r % shape.width : workers];
    if (rank.worker != works || rank.machine != first.machine ||
        (works && (rank.endpoint != first.endpoint || rank.process != first.process ||
                   rank.machine_number != ranks[r - r % shape.width].machine_number)) ||
        (!works && !rank.endpoint.empty())) {
      return fmt::format("{} differs from the other machines, or only sums inside one",
                         rank.place_name());
    }
  }
  for (const MachineGroup& group : profile.machines) {
    if (!group.members.empty() || !group.rack.empty()) {
      return fmt::format("the machines {} have {} of their own, and may differ", group.id,
                         group.members.empty() ? "racks" : "names");
    }
  }
  return "";
}

Plan plan_equal_machines(const InsideInputs& inputs, const std::vector<PlanRank>& ranks,
                         const InsidePlanOptions& options, bool gpu_direct) {
  return EqualMachines(inputs, ranks, options, gpu_direct).make();
}

} // namespace reckon
