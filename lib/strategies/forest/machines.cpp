// SPDX-License-Identifier: Apache-2.0
#include "strategies/forest/machines.hpp"

#include "network/canonical.hpp"
#include "strategies/between.hpp"
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
#include <string>
#include <utility>
#include <vector>

namespace reckon {
namespace {

constexpr double k_usual_part_bytes = 1U << 20U;

/// Without ranks that neither work nor sum, and with what ranks can add up. Of a station that only
/// one way passes, and that is no slower than another on that way, nothing is left there: it never
/// binds, and there is one for each pair of machines.
void prepare_for_program(Network& network, const std::vector<RankModel>& ranks,
                         const std::vector<double>& sums) {
  std::vector<std::size_t> passed(network.stations.size(), 0);
  for (std::size_t u = 0; u < network.places.size(); ++u) {
    for (std::size_t v = 0; v < network.places.size(); ++v) {
      const RankModel &from = ranks[network.places[u].machine],
                      &to = ranks[network.places[v].machine];
      std::optional<Uses>& way = network.ways[u][v];
      if (!(from.worker || from.server) || !(to.worker || to.server)) {
        way.reset();
      }
      for (const Use& use : way ? *way : Uses()) {
        ++passed[use.station];
      }
    }
  }
  const auto rate = [&](const Use& use) {
    return network.stations[use.station].bytes_per_second / use.amount;
  };
  for (auto& row : network.ways) {
    for (std::optional<Uses>& way : row) {
      if (way) {
        const Uses all = *way;
        std::erase_if(*way, [&](const Use& use) {
          return passed[use.station] == 1 &&
                 std::any_of(all.begin(), all.end(), [&](const Use& other) {
                   return other.station != use.station && rate(other) <= rate(use);
                 });
        });
      }
    }
  }
  for (std::size_t v = 0; v < network.places.size(); ++v) {
    const std::size_t rank = network.places[v].machine;
    if (std::isfinite(sums[rank])) {
      network.add[v].push_back({network.stations.size(), 1});
      network.stations.push_back({fmt::format("sums of rank {}", rank), sums[rank],
                                  "as the prediction has it", 0, sums[rank], sums[rank]});
    }
  }
}

class Machines {
public:
  Machines(const Plan& plan, const PlanInputs& inputs, const PlanOptions& options)
      : m_plan(plan), m_inputs(inputs), m_options(options), m_ways(inputs, options),
        m_job(job_between(inputs, options, m_ways)), m_lanes_given(given_lanes(inputs.roles) > 0) {
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
    Network given = network_between_ranks(m_inputs.profile, m_ways.model(), m_options.what_if);
    prepare_for_program(given, ranks, sums);
    const std::vector<Place> places = given.places;
    // Of mixes of trees that are as good the search takes one: the same in any order of the ranks.
    const CanonicalNetwork solved = canonical_order(std::move(given));
    std::vector<std::size_t> rank_of(places.size()); // by place
    for (std::size_t place = 0; place < places.size(); ++place) {
      rank_of[solved.place_now[place]] = places[place].machine;
    }
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
      Plan plan = search.fastest(with(k_optimum, over_ranks(forests[f], rank_of)));
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
    const Between between = m_ways.between(k_usual_part_bytes);
    const BusiestStation busiest = busiest_station(whole, between);
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
                    between.names[busiest.station]);
    const auto racks = static_cast<double>(found.racks);
    const std::map<std::string, double> of{{"R", racks}, {"M", m_job.bytes()}};
    describe(plan, {{"rack_uplink_bytes", found.uplink_part * m_job.bytes(),
                     "equation 17: M + (R-2) g each way, however many workers a rack has", of},
                    {"rack_port_seconds", port_seconds(load, m_ways.model()),
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
      const auto rank = [&](std::size_t place) { return rank_of[forest.places[place]]; };
      const auto parent = [&](std::int64_t place) {
        return place < 0 ? -1 : static_cast<std::int64_t>(rank(static_cast<std::size_t>(place)));
      };
      for (std::size_t v = 0; v < tree.up.size(); ++v) {
        all.up[rank(v)] = parent(tree.up[v]);
        all.down[rank(v)] = parent(tree.down[v]);
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
          lane_places(m_inputs.profile.topology, ranks[r].ports, static_cast<std::size_t>(lanes));
    }
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
      solved.insert(solved.begin(),
                    exposed_quantity(plan, m_options.order, m_job.forward_s, m_job.backward_s));
    }
    plan.quantities.insert(plan.quantities.begin(), solved.begin(), solved.end());
  }

  const Plan& m_plan;
  const PlanInputs& m_inputs;
  const PlanOptions& m_options;
  Ways m_ways;
  Job m_job;
  std::uint64_t m_lanes = 1;
  bool m_lanes_given = false;
};

} // namespace

std::string why_no_trees(const PlanInputs& inputs, const PlanOptions& options, const Plan& plan) {
  const auto workers = std::count_if(plan.ranks.begin(), plan.ranks.end(),
                                     [](const PlanRank& rank) { return rank.worker; });
  if (options.async_steps || options.fixed_point || options.contention) {
    return "trees have neither --async nor --reduction fixed nor --contention";
  }
  if (workers < 2) {
    return "one worker alone sums nothing";
  }
  if (plan.ranks.front().port_bytes_per_second <= 0) { // processes of one machine
    std::string remedy;
    for (const auto& [kind, places] :
         {std::pair(ObjectKind::numa_node, "numa"), std::pair(ObjectKind::gpu, "gpu")}) {
      if (inputs.profile.topology.of_kind(kind).size() > 1) {
        remedy += fmt::format("{} --places {}",
                              remedy.empty() ? "; for ranks at places inside it:" : " or", places);
      }
    }
    return "every tree costs the same in the one memory that the ranks share" + remedy;
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
      p.busiest_seconds.reset(); // the bound says it
      p.busiest_by.clear();
    }
  }
  return best;
}

} // namespace reckon
