// SPDX-License-Identifier: Apache-2.0
#include "strategies/forest/machines.hpp"

#include "strategies/forest/cutting.hpp"
#include "strategies/forest/forest.hpp"
#include "strategies/forest/racks.hpp"
#include "strategies/forest/search.hpp"
#include "strategies/lane_places.hpp"
#include "strategies/lower.hpp"
#include "strategies/predict.hpp"
#include "strategies/provenance.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace reckon {
namespace {

constexpr double k_usual_part_bytes = 1U << 20U;

/// By station: whether the linear program needs it.
std::vector<bool> that_can_bind(const StationNetwork& network) {
  std::vector<std::size_t> passed(network.station_bytes_per_s.size(), 0);
  for (const auto& row : network.paths) {
    for (const std::vector<std::uint32_t>& path : row) {
      for (const std::uint32_t s : path) {
        ++passed[s];
      }
    }
  }
  std::vector<bool> out;
  for (std::size_t s = 0; s < passed.size(); ++s) {
    out.push_back(passed[s] > 0 && std::isfinite(network.rate_of(s)));
  }
  for (const auto& row : network.paths) {
    for (const std::vector<std::uint32_t>& path : row) {
      for (const std::uint32_t s : path) {
        const bool covered = std::any_of(path.begin(), path.end(), [&](std::uint32_t other) {
          return other != s && out[other] && network.rate_of(other) <= network.rate_of(s);
        });
        out[s] = out[s] && !(passed[s] == 1 && covered);
      }
    }
  }
  return out;
}

class Machines {
public:
  Machines(const Plan& plan, const PlanInputs& inputs, const PlanOptions& options)
      : m_plan(plan), m_options(options), m_topology(inputs.profile.topology),
        m_ways(inputs, options), m_job(job_between(inputs, options, m_ways.model())),
        m_lanes_given(std::ranges::any_of(inputs.roles.groups,
                                          [](const RoleGroup& group) { return group.lanes > 0; })) {
    m_lanes = static_cast<std::uint64_t>(plan.ranks.front().lanes);
    m_ways.set_lanes(plan.ranks.front().lanes);
  }

  [[nodiscard]] Plan best_trees() {
    const std::vector<RankModel>& ranks = m_ways.model().ranks();
    std::vector<double> sums;
    for (const RankModel& rank : ranks) {
      const double one_lane =
          m_ways.model()
              .sum_rate(rank, m_job.workload.tensors.front().dtype, 2, k_usual_part_bytes)
              .mid;
      sums.push_back(one_lane * static_cast<double>(m_lanes));
    }
    const RanksNetwork solved =
        network_between_ranks(m_ways.between(k_usual_part_bytes), ranks, sums);
    const std::vector<Forest> forests =
        solve_forests(solved.network, InsideOptions().tolerance, Gains::left_out);
    std::optional<Plan> best;
    std::size_t taken = 0;
    for (std::size_t f = 0; f < forests.size(); ++f) {
      if (f > 0 && forests[f].choice != ForestChoice::optimum) {
        continue;
      }
      const TreeSearch search(m_job, m_ways, m_options,
                              forests[f].seconds_per_byte * m_job.bytes());
      Plan plan = search.fastest(with(k_optimum, over_ranks(forests[f], solved.rank_of)));
      if (!best || plan.prediction.mid_seconds < best->prediction.mid_seconds * (1 - k_worth)) {
        best = std::move(plan);
        taken = f;
      }
    }
    add_step_and_passes(*best);
    certificate_seconds = forests.front().certificate_seconds_per_byte * m_job.bytes();
    certificate_by = by_dual_values(forests.front());
    describe(*best, forests[taken]);
    return std::move(*best);
  }

  /// nullopt where they cannot be faster than `than_s`.
  [[nodiscard]] std::optional<Plan> trees_over_racks(const RackTrees& found, double than_s) {
    Plan base = with(k_rack_hierarchical, found.trees);
    base.parts = cut_for_trees(m_job.layout, m_job.workload, base.trees,
                               m_job.layout.total_bytes + k_least_part_bytes, Cutting::fused);
    give_lanes(base, 1);
    const Schedule whole = lower(together(base));
    const BusiestStation busiest = busiest_station(whole, m_ways.between(k_usual_part_bytes));
    if (busiest.seconds >= than_s) {
      return std::nullopt;
    }
    const Load load = load_of(base, whole);
    take_lanes(base, load);
    const TreeSearch search(m_job, m_ways, m_options, busiest.seconds);
    Plan plan = search.fastest(base);
    add_step_and_passes(plan);
    plan.prediction.relief =
        fmt::format("more bandwidth of {}, or more machines in each rack that only serve",
                    m_ways.between(k_usual_part_bytes).names[busiest.station]);
    const auto racks = static_cast<double>(found.racks);
    const std::map<std::string, double> of{{"R", racks}, {"M", m_job.bytes()}};
    describe(plan, {{"rack_uplink_bytes", 2 * (racks - 1) / racks * m_job.bytes(),
                     "equation 17: 2(R-1)M / R each way, however many workers a rack has", of},
                    {"rack_port_seconds", port_seconds(load),
                     "equation 17: the busiest port, without the uplinks", of}});
    return plan;
  }

  double certificate_seconds = 0; ///< no trees beat it
  std::string certificate_by;     ///< by_dual_values()

private:
  static constexpr std::uint64_t k_least_part_bytes = 64; ///< of cut_for_trees()

  /// The plan with these trees in the place of its strategy, parts, step and passes.
  [[nodiscard]] Plan with(const char* strategy, std::vector<SumTree> trees) const {
    Plan plan = m_plan;
    plan.strategy = strategy;
    plan.stores = Stores::cached;
    plan.ring_order.clear();
    plan.passes.reset();
    plan.update.reset();
    plan.parts = {};
    plan.trees = std::move(trees);
    return plan;
  }

  /// The forest's trees over the ranks of the plan.
  [[nodiscard]] std::vector<SumTree> over_ranks(const Forest& forest,
                                                const std::vector<std::size_t>& rank_of) const {
    std::vector<SumTree> trees;
    for (const SumTree& tree : forest.trees) {
      SumTree& all = trees.emplace_back();
      all.scheme = tree.scheme;
      all.share = tree.share;
      all.up.assign(m_plan.ranks.size(), -1);
      all.down = all.up;
      const auto rank = [&](std::int64_t place) {
        return static_cast<std::int64_t>(rank_of[forest.places[static_cast<std::size_t>(place)]]);
      };
      for (std::size_t v = 0; v < tree.up.size(); ++v) {
        const std::size_t r = rank_of[forest.places[v]];
        all.up[r] = tree.up[v] < 0 ? -1 : rank(tree.up[v]);
        all.down[r] = tree.down[v] < 0 ? -1 : rank(tree.down[v]);
      }
    }
    return trees;
  }

  /// As many as the sums of this load need, where the roles leave that open and the plan has fewer.
  void take_lanes(Plan& plan, const Load& load) {
    const std::vector<RankModel>& ranks = m_ways.model().ranks();
    if (m_lanes_given) {
      return;
    }
    const int lanes =
        std::max(plan.ranks.front().lanes,
                 lanes_needed(m_ways.model(), load, m_job.workload.tensors.front().dtype,
                              k_usual_part_bytes));
    m_ways.set_lanes(lanes);
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      plan.ranks[r].lanes = lanes;
      plan.ranks[r].lane_places =
          lane_places(m_topology, ranks[r].ports, static_cast<std::size_t>(lanes));
    }
  }

  [[nodiscard]] double port_seconds(const Load& load) const {
    double longest = 0;
    for (std::size_t r = 0; r < load.egress_bytes.size(); ++r) {
      longest = std::max(longest, std::max(load.egress_bytes[r], load.ingress_bytes[r]) /
                                      m_ways.model().ranks()[r].port_bytes_per_s);
    }
    return longest;
  }

  void add_step_and_passes(Plan& plan) const {
    plan.update = m_plan.update;
    if (plan.update) {
      predict(plan, m_job, m_ways, plan.window_parts, k_taken);
      choose_update_place(plan, m_job, m_ways, m_options.update_at, k_taken);
    }
    add_passes_to_trees(plan, m_job, m_ways, m_options);
  }

  void describe(Plan& plan, const Forest& forest) const {
    const double bytes = m_job.bytes();
    const auto dearest = std::find_if(forest.prices.begin(), forest.prices.end(),
                                      [](const StationPrice& p) { return p.price > 0; });
    plan.prediction.relief =
        dearest == forest.prices.end()
            ? "nothing: no station binds"
            : fmt::format("first of all more bandwidth of {}", dearest->resource);
    for (const StationPrice& price : forest.prices) {
      plan.resources.push_back({price.resource, price.source, price.bytes_per_second,
                                price.load * bytes, price.busy, price.price, price.gain_per_gb_s});
    }
    describe(plan, {{"optimum_seconds",
                     forest.optimum_seconds_per_byte * bytes,
                     "equation 26, the best of all trees",
                     {{"M", bytes}}},
                    {"certificate_seconds",
                     forest.certificate_seconds_per_byte * bytes,
                     "by the dual values no trees are faster",
                     {{"M", bytes}}}});
  }

  void describe(Plan& plan, std::vector<Quantity> solved) const {
    plan.assignment_gap = 0;
    plan.margin_text.clear();
    std::erase_if(plan.quantities, [](const Quantity& q) { return q.name != "profile"; });
    solved.push_back(
        {"part_bytes",
         static_cast<double>(plan.part_bytes),
         m_options.part_bytes ? "as given" : "each tree's share cut evenly, by the predicted time",
         {{"parts", static_cast<double>(plan.parts.size())}}});
    if (plan.passes) {
      solved.insert(solved.begin(), exposed_quantity(plan, m_job.forward_s, m_job.backward_s));
    }
    plan.quantities.insert(plan.quantities.begin(), solved.begin(), solved.end());
  }

  const Plan& m_plan;
  const PlanOptions& m_options;
  const Topology& m_topology;
  Ways m_ways;
  Job m_job;
  std::uint64_t m_lanes = 1;
  bool m_lanes_given = false;
};

} // namespace

RanksNetwork network_between_ranks(const Between& between, const std::vector<RankModel>& ranks,
                                   const std::vector<double>& sums) {
  RanksNetwork out;
  Network& network = out.network;
  for (const bool worker : {true, false}) {
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      if (ranks[r].worker == worker && (worker || ranks[r].server)) {
        network.places.push_back({ranks[r].machine, worker, true, out.rank_of.size()});
        network.machines.push_back({ranks[r].machine, 0, fmt::format("rank {}", r)});
        network.groups.push_back({out.rank_of.size()});
        out.rank_of.push_back(r);
        network.workers += worker ? 1 : 0;
      }
    }
  }
  network.groups.resize(network.workers);
  std::map<std::uint32_t, std::size_t> number_of;
  const std::vector<bool> binds = that_can_bind(between.network);
  for (std::uint32_t s = 0; s < binds.size(); ++s) {
    if (binds[s]) {
      const double rate = between.network.rate_of(s);
      number_of[s] = network.stations.size();
      network.stations.push_back(
          {between.names[s], rate, "as the prediction has it", 0, rate, rate});
    }
  }
  const std::size_t n = out.rank_of.size();
  network.ways.assign(n, std::vector<std::optional<Uses>>(n));
  for (std::size_t u = 0; u < n; ++u) {
    for (std::size_t v = 0; v < n; ++v) {
      Uses uses;
      for (const std::uint32_t s : between.network.paths[out.rank_of[u]][out.rank_of[v]]) {
        if (binds[s]) {
          uses.push_back({number_of[s], 1});
        }
      }
      if (u != v) {
        network.ways[u][v] = std::move(uses);
      }
    }
    const double rate = sums[out.rank_of[u]];
    network.add.emplace_back();
    if (std::isfinite(rate)) {
      network.add.back().push_back({network.stations.size(), 1});
      network.stations.push_back({fmt::format("sums of rank {}", out.rank_of[u]), rate,
                                  "as the prediction has it", 0, rate, rate});
    }
    network.exits.push_back({Exit{}});
    network.node_of.push_back(u);
  }
  network.nodes = n;
  return out;
}

std::string why_no_trees(const PlanInputs& inputs, const PlanOptions& options, const Plan& plan) {
  const auto workers = std::count_if(plan.ranks.begin(), plan.ranks.end(),
                                     [](const PlanRank& rank) { return rank.worker; });
  if (options.async_steps || options.fixed_point || options.contention) {
    return "trees have neither --async nor --reduction fixed nor --contention";
  }
  if (workers < 2) {
    return "one worker alone sums nothing";
  }
  if (CostModel(inputs.profile, inputs.roles, options.transport, options.what_if).one_machine()) {
    return "the ranks share a machine's memory, which all trees use alike; --places numa or gpu "
           "opens the machine";
  }
  return "";
}

std::optional<Plan> with_trees_over_racks(const Plan& plan, const PlanInputs& inputs,
                                          const PlanOptions& options, const RackTrees& racks,
                                          double than_s) {
  return Machines(plan, inputs, options).trees_over_racks(racks, than_s);
}

Plan with_best_trees(Plan& plan, const PlanInputs& inputs, const PlanOptions& options) {
  Machines machines(plan, inputs, options);
  Plan best = machines.best_trees();
  for (Plan* const each : {&plan, &best}) {
    Prediction& p = each->prediction;
    const double raised = std::min(machines.certificate_seconds, p.lo_seconds);
    if (!each->passes && raised > p.bound_seconds) {
      p.bound_seconds = raised;
      p.bound_by = machines.certificate_by;
    }
    constexpr double k_rounding = 1e-3; // of the search
    if (p.busiest_seconds && *p.busiest_seconds <= p.bound_seconds * (1 + k_rounding)) {
      p.bound_by = fmt::format("{} (equation 26)", std::exchange(p.busiest_by, ""));
      p.busiest_seconds.reset();
    }
  }
  return best;
}

} // namespace reckon
