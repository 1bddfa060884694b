// SPDX-License-Identifier: Apache-2.0
#include "strategies/forest/equal_machines.hpp"

#include "core/error.hpp"
#include "core/indices.hpp"
#include "core/units.hpp"
#include "equations/split.hpp"
#include "strategies/forest/machine_sample.hpp"
#include "strategies/forest/search.hpp"
#include "strategies/least.hpp"
#include "strategies/plan_network.hpp"
#include "strategies/predict.hpp"
#include "strategies/provenance.hpp"
#include "strategies/shares/stars.hpp"
#include "strategies/unknown_rates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

namespace reckon {
namespace {

/// More parts would be an unwieldy plan.
constexpr double k_most_pieces = 100'000;
/// Lives of a part that a window lasts.
constexpr double k_window_lives = 8;

class EqualMachines {
public:
  EqualMachines(const InsideInputs& inputs, const std::vector<PlanRank>& ranks,
                const InsidePlanOptions& options, bool gpu_direct)
      : m_inputs(inputs), m_options(options), m_ranks(ranks), m_gpu_direct(gpu_direct),
        m_sample(inputs.profile, ranks, options.plan.transport, gpu_direct),
        m_shape(m_sample.shape()), m_job(job_without_ranks(inputs.workload, options.plan)) {
    m_job.workers = indices(m_shape.machines * m_shape.width);
    solve_shares();
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

  /// Equation 8 between the machines, whose ports are those of all their workers together.
  void solve_shares() {
    const double each = 1 / static_cast<double>(m_shape.width);
    std::vector<double> machine = m_sample.no_bytes(), server = machine;
    for (std::size_t place = 0; place < m_shape.width; ++place) {
      m_sample.carry_between(machine, place, each, 0);
      if (m_shape.servers > 0) {
        m_sample.carry_at_server(server, place, each, each);
      }
    }
    const double per_byte = m_sample.busy_s(machine),
                 served = m_shape.servers > 0 ? m_sample.busy_s(server) : 1;
    const Star star{m_job.bytes(), std::vector<double>(m_shape.machines, 1 / per_byte),
                    std::vector<double>(m_shape.servers, 1 / served)};
    const StarSplit split = solve_equal_star(star);
    m_least = {split.time_s, split.limit == StarLimit::slowest_workers
                                 ? "the ports of the machines that work: each sends its whole "
                                   "gradient (equation 8)"
                                 : "the ports of all machines are busy all the time (equation 8)"};
    if (m_shape.servers > 0) {
      m_served.insert(m_served.begin(), split.shares.server_bytes.front() *
                                            static_cast<double>(m_shape.servers) / m_job.bytes());
    }
    m_port_bytes_per_s = 1 / per_byte;
  }

  struct Counts {
    std::uint64_t size_bytes = 1;
    double served = 0; ///< part of the parts that machines which only serve sum
  };
  /// Equal parts for all places of all machines that work, and of those that serve; for all
  /// machines where there are not as many.
  [[nodiscard]] Counts counts_for(std::uint64_t size, double served) const {
    if (m_options.plan.part_bytes) {
      return {size, served};
    }
    const double parts = m_job.bytes() / static_cast<double>(size);
    const auto whole = [&](double part, std::size_t machines) {
      const auto each = static_cast<double>(machines),
                 turn = each * static_cast<double>(m_shape.width);
      const double step = parts * part >= turn ? turn : each;
      return part > 0 ? step * std::max(1.0, std::ceil(parts * part / step)) : 0;
    };
    const double serving = whole(served, m_shape.servers),
                 all = serving + whole(1 - served, m_shape.machines);
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
                                    : m_sample.worker(number % of, head));
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
    const Stars stars({all.begin(), first_server}, {first_server, all.end()}, plan.groups, false);
    std::vector<Load> out;
    for (const std::vector<double>& of_head : bytes) {
      out.push_back(stars.load_of(of_head));
    }
    return out;
  }

  /// The one with the least time among all part sizes.
  [[nodiscard]] Plan fastest(const char* name, std::size_t groups) const {
    std::optional<Plan> best;
    double best_served = 0;
    const std::vector<MachineSample::MachineTrees> inside = m_sample.machine_trees();
    // From the longest on, so that shorter parts have to be worth it.
    for (const std::uint64_t size : part_sizes()) {
      for (const double served : m_served) {
        for (const MachineSample::MachineTrees& ways : inside) {
          Plan plan = predicted(name, groups, size, ways, served);
          if (!best || plan.prediction.mid_seconds < best->prediction.mid_seconds * (1 - k_worth)) {
            best = std::move(plan);
            best_served = served;
          }
        }
      }
    }
    fill_ranks(*best, loads_of(*best), best_served);
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
        each < static_cast<double>(k_part_bytes.front()) && each >= least_part_bytes()) {
      sizes.push_back(std::max<std::uint64_t>(64, static_cast<std::uint64_t>(each)));
    }
    for (const std::uint64_t size : k_part_bytes) {
      if (static_cast<double>(size) >= least_part_bytes() &&
          m_job.bytes() / static_cast<double>(size) <= k_most_pieces) {
        sizes.push_back(size);
      }
    }
    std::ranges::reverse(sizes);
    return sizes.empty() ? std::vector<std::uint64_t>{k_part_bytes.back()} : sizes;
  }
  [[nodiscard]] double least_part_bytes() const {
    LeastPart least(m_sample.between().network);
    least.add(m_sample.worker(0, 0), m_sample.worker(1, 0));
    if (m_shape.width > 1) {
      least.add(m_sample.worker(0, 1), m_sample.worker(0, 0));
    }
    if (m_shape.servers > 0) {
      least.add(m_sample.worker(0, 0), m_sample.server());
    }
    return least.bytes();
  }

  /// Without ranks, of this part size: the busiest station's time, and half a part's life to all of
  /// it for filling and draining.
  [[nodiscard]] Plan predicted(const char* name, std::size_t groups, std::uint64_t size,
                               const MachineSample::MachineTrees& ways, double served) const {
    Plan plan;
    plan.machine_trees = ways;
    plan.strategy = name;
    plan.groups = groups;
    plan.collective = Collective::all_reduce;
    plan.runs = m_job.layout.runs;
    plan.wire = m_job.wire;
    plan.gradient_bytes = m_job.layout.total_bytes;
    const Counts counts = counts_for(size, served);
    plan.parts =
        reckon::cut(m_job.layout, m_job.workload, counts.size_bytes, m_options.plan.cutting, 1);
    if (m_job.passes && m_options.plan.order == Order::priority) {
      order_by_priority(plan.parts, *m_job.passes, m_job.bytes() / m_least.seconds);
    }
    assign(plan.parts, counts.served);
    assign_lanes(plan.parts, m_ranks.size(), m_options.lanes);
    plan.part_bytes = *std::ranges::max_element(plan.parts.bytes);
    const std::vector<double> bytes = m_sample.stations(plan, loads_of(plan));
    const std::size_t station = m_sample.busiest(bytes);
    const double steady_s = m_sample.busy_s(bytes), life = m_sample.life_s(plan);
    Prediction& p = plan.prediction;
    p.bound_seconds = steady_s;
    p.bound_by = carried_text(m_sample.between(), station, bytes[station]);
    // Nobody hides the first part's way up and the last one's way down: half a life.
    p.lo_seconds = steady_s + life / 2;
    p.mid_seconds = steady_s + 3 * life / 4;
    p.hi_seconds = steady_s + life;
    p.terms = {{"transport", steady_s}, {"fill", 3 * life / 4}};
    p.relief =
        fmt::format("more bandwidth of {}, in every machine", m_sample.between().names[station]);
    lower_bound(p, m_least);
    const double of_lane =
        std::ceil(static_cast<double>(plan.parts.size()) / static_cast<double>(m_options.lanes));
    plan.window_parts = m_options.plan.window_parts.value_or(static_cast<std::uint64_t>(std::clamp(
        std::ceil(k_window_lives * life / steady_s * of_lane), 2.0, std::max(2.0, of_lane))));
    return plan;
  }

  /// The ranks with their places, and what each of them sums, sends and receives.
  void fill_ranks(Plan& plan, const std::vector<Load>& loads, double served) const {
    const std::size_t workers = m_shape.machines * m_shape.width;
    std::vector<double> inside(m_shape.width, 0.0); // by worker of a machine: what it sends there
    for (std::size_t way = 0; way < m_shape.width; ++way) {
      const double whole = bytes_of_way(plan, way);
      for (std::size_t place = 0; place < m_shape.width; ++place) {
        const std::size_t above = plan.machine_trees[way][place];
        inside[place] += above == place ? 0 : whole;
        inside[above] += above == place ? 0 : whole;
      }
    }
    std::vector<PlanRank> places;
    for (std::size_t r = 0; r < m_sample.server() + (m_shape.servers > 0 ? 1 : 0); ++r) {
      places.push_back(m_sample.ways().place_of(r));
    }
    for (std::size_t r = 0; r < m_ranks.size(); ++r) {
      const bool works = r < workers;
      const std::size_t place = r % m_shape.width;
      PlanRank& rank = plan.ranks.emplace_back(places[works ? place : m_sample.server()]);
      rank.machine_number = m_ranks[r].machine_number;
      rank.lanes = static_cast<int>(m_options.lanes);
      rank.server = !works;
      rank.share_bytes = works ? (1 - served) * m_job.bytes() / static_cast<double>(workers)
                               : served * m_job.bytes() / static_cast<double>(m_shape.servers);
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
                         : transport_between(m_inputs.profile, *m_sample.ways().places()->network);
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
                       {"part_life_seconds", m_sample.life_s(plan),
                        "equation 8d: up and down all levels, without other parts", inputs}};
    if (m_shape.servers > 0) {
      double served = 0;
      for (std::size_t r = m_job.workers.size(); r < plan.ranks.size(); ++r) {
        served += static_cast<double>(plan.ranks[r].assigned_bytes) / m_job.bytes();
      }
      plan.quantities.push_back(
          {"served_fraction",
           served,
           served > 0 ? "summed by machines that only serve, near equation 8's"
                      : "summed by machines that only serve: a sum there would wait longer for all "
                        "machines than it saves",
           {{"n", inputs.at("n")}, {"k", inputs.at("k")}}});
    }
    if (plan.passes) {
      plan.quantities.insert(
          plan.quantities.begin(),
          exposed_quantity(plan, m_options.plan.order, m_job.forward_s, m_job.backward_s));
    }
    plan.assumed = unknown_rates(m_inputs.profile, *m_sample.ways().places());
    if (std::string cost = assumed_write(m_options.plan.part_bytes ? 0 : least_part_bytes());
        !cost.empty()) {
      plan.assumed.push_back(std::move(cost));
    }
  }

  const InsideInputs& m_inputs;
  const InsidePlanOptions& m_options;
  const std::vector<PlanRank>& m_ranks;
  bool m_gpu_direct;
  MachineSample m_sample;
  MachinesShape m_shape;
  Job m_job;
  LeastTime m_least;
  /// Parts of the gradient that machines which only serve may sum: as equation 8 says, or nothing,
  /// where a sum would wait too long for all machines.
  std::vector<double> m_served{0};
  double m_port_bytes_per_s = 0;
};

} // namespace

std::string why_not_equal_machines(const Profile& profile, const std::vector<PlanRank>& ranks,
                                   const InsidePlanOptions& options, bool gpu_direct) {
  if (options.collective != Collective::all_reduce) {
    return "equal machines are planned for an all-reduce alone";
  }
  if (!gpu_direct) {
    return "GPUs meet those of other machines directly; leave --gpu-direct=no out";
  }
  const MachinesShape shape = shape_of(ranks);
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
  return MachineSample(profile, ranks, options.plan.transport, gpu_direct).why_not_equal();
}

Plan plan_equal_machines(const InsideInputs& inputs, const std::vector<PlanRank>& ranks,
                         const InsidePlanOptions& options, bool gpu_direct) {
  return EqualMachines(inputs, ranks, options, gpu_direct).make();
}

} // namespace reckon
