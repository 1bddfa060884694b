// SPDX-License-Identifier: Apache-2.0
#include "strategies/forest/machines.hpp"

#include "network/canonical.hpp"
#include "strategies/forest/forest.hpp"
#include "strategies/forest/search.hpp"
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
      : m_plan(plan), m_options(options), m_ways(inputs, options),
        m_job(job_between(inputs, options, m_ways.model())) {
    m_lanes = static_cast<std::uint64_t>(plan.ranks.front().lanes);
    m_ways.set_lanes(plan.ranks.front().lanes);
  }

  [[nodiscard]] Plan make() {
    const std::vector<RankModel>& ranks = m_ways.model().ranks();
    std::vector<double> sums;
    for (const RankModel& rank : ranks) {
      const double one_lane =
          m_ways.model()
              .sum_rate(rank, m_job.workload.tensors.front().dtype, 2, k_usual_part_bytes)
              .mid;
      sums.push_back(one_lane * static_cast<double>(m_lanes));
    }
    // Of mixes of trees that are as good the search takes one: the same in any order of the ranks.
    RanksNetwork given = network_between_ranks(m_ways.between(k_usual_part_bytes), ranks, sums);
    const CanonicalNetwork solved = canonical_order(std::move(given.network));
    std::vector<std::size_t> rank_of(given.rank_of.size());
    for (std::size_t place = 0; place < rank_of.size(); ++place) {
      rank_of[solved.place_now[place]] = given.rank_of[place];
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
      Plan plan = search.fastest(base(forests[f], rank_of));
      if (!best || plan.prediction.mid_seconds < best->prediction.mid_seconds * (1 - k_worth)) {
        best = std::move(plan);
        taken = f;
      }
    }
    best->update = m_plan.update;
    predict(*best, m_job, m_ways, best->window_parts, k_thorough);
    add_passes_to_trees(*best, m_job, m_ways, m_options);
    certificate_seconds = forests.front().certificate_seconds_per_byte * m_job.bytes();
    certificate_by = by_dual_values(forests.front());
    describe(*best, forests[taken]);
    return std::move(*best);
  }

  double certificate_seconds = 0; ///< no trees beat it
  std::string certificate_by;     ///< by_dual_values()

private:
  /// The plan with the forest's trees in the place of its strategy.
  [[nodiscard]] Plan base(const Forest& forest, const std::vector<std::size_t>& rank_of) const {
    Plan plan = m_plan;
    plan.strategy = k_optimum;
    plan.stores = Stores::cached;
    plan.ring_order.clear();
    plan.passes.reset();
    plan.update.reset();
    plan.parts = {};
    plan.trees.clear();
    for (const SumTree& tree : forest.trees) {
      SumTree& all = plan.trees.emplace_back();
      all.scheme = tree.scheme;
      all.share = tree.share;
      all.up.assign(plan.ranks.size(), -1);
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
    return plan;
  }

  void describe(Plan& plan, const Forest& forest) const {
    const double bytes = m_job.bytes();
    plan.assignment_gap = 0;
    plan.margin_text.clear();
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
    std::erase_if(plan.quantities, [](const Quantity& q) { return q.name != "profile"; });
    std::vector<Quantity> found{
        {"optimum_seconds",
         forest.optimum_seconds_per_byte * bytes,
         "equation 26, the best of all trees",
         {{"M", bytes}}},
        {"certificate_seconds",
         forest.certificate_seconds_per_byte * bytes,
         "by the dual values no trees are faster",
         {{"M", bytes}}},
        {"part_bytes",
         static_cast<double>(plan.part_bytes),
         m_options.part_bytes ? "as given" : "each tree's share cut evenly, by the predicted time",
         {{"parts", static_cast<double>(plan.parts.size())}}}};
    if (plan.passes) {
      found.insert(found.begin(), exposed_quantity(plan, m_job.forward_s, m_job.backward_s));
    }
    plan.quantities.insert(plan.quantities.begin(), found.begin(), found.end());
  }

  const Plan& m_plan;
  const PlanOptions& m_options;
  Ways m_ways;
  Job m_job;
  std::uint64_t m_lanes = 1;
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

Plan with_best_trees(Plan& plan, const PlanInputs& inputs, const PlanOptions& options) {
  Machines machines(plan, inputs, options);
  Plan best = machines.make();
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
