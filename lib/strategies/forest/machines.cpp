// SPDX-License-Identifier: Apache-2.0
#include "strategies/forest/machines.hpp"

#include "strategies/forest/cutting.hpp"
#include "strategies/forest/forest.hpp"
#include "strategies/lower.hpp"
#include "strategies/provenance.hpp"
#include "strategies/proxies/prediction.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <utility>

namespace reckon {
namespace {

constexpr std::array<std::uint64_t, 6> k_part_bytes{16U << 10U, 64U << 10U, 256U << 10U,
                                                    1U << 20U,  4U << 20U,  16U << 20U};
constexpr double k_usual_part_bytes = 1U << 20U;
/// Trees need small parts: as many writes as the plan that is taken, in coarser pieces.
constexpr PlayEffort k_search{200'000, 80'000};
/// Wider windows and smaller parts must be worth it.
constexpr double k_worth = 0.002;

bool is_faster(const Plan& plan, const std::optional<Plan>& than) {
  return !than || plan.prediction.mid_seconds < than->prediction.mid_seconds * (1 - k_worth);
}

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
      Plan plan = fastest_cut(forests[f], solved.rank_of);
      if (is_faster(plan, best)) {
        best = std::move(plan);
        taken = f;
      }
    }
    predict_trees(*best, m_job, m_ways, best->window_parts, k_thorough);
    certificate_seconds = forests.front().certificate_seconds_per_byte * m_job.bytes();
    certificate_by = by_dual_values(forests.front());
    describe(*best, forests[taken]);
    return std::move(*best);
  }

  double certificate_seconds = 0; ///< no trees beat it
  std::string certificate_by;     ///< by_dual_values()

private:
  [[nodiscard]] Plan fastest_cut(const Forest& forest,
                                 const std::vector<std::size_t>& rank_of) const {
    std::optional<Plan> best;
    for (const std::uint64_t size : part_sizes()) {
      Plan plan = cut(forest, rank_of, size);
      const auto parts = static_cast<std::uint64_t>(plan.parts.size());
      std::optional<Plan> of_size;
      for (std::uint64_t window = first_window(parts);; window = std::min(2 * window, parts)) {
        predict_trees(plan, m_job, m_ways, window, k_search);
        if (!is_faster(plan, of_size)) {
          break;
        }
        of_size = plan;
        if (m_options.window_parts || window >= parts) {
          break;
        }
      }
      if (!is_faster(*of_size, best)) {
        break;
      }
      best = std::move(of_size);
    }
    return std::move(*best);
  }

  [[nodiscard]] std::uint64_t first_window(std::uint64_t parts) const {
    constexpr std::uint64_t k_times_the_ranks = 2;
    return m_options.window_parts.value_or(
        std::clamp<std::uint64_t>(k_times_the_ranks * m_plan.ranks.size(), 1, parts));
  }

  /// The smallest that can be played first.
  [[nodiscard]] std::vector<std::uint64_t> part_sizes() const {
    if (m_options.part_bytes) {
      return {*m_options.part_bytes};
    }
    std::vector<std::uint64_t> sizes;
    for (const std::uint64_t size : k_part_bytes) {
      if (m_job.bytes() / static_cast<double>(size) * m_job.writes_per_part() <=
          k_search.most_writes) {
        sizes.push_back(size);
      }
    }
    return sizes.empty() ? std::vector<std::uint64_t>{k_part_bytes.back()} : sizes;
  }

  [[nodiscard]] Plan cut(const Forest& forest, const std::vector<std::size_t>& rank_of,
                         std::uint64_t part_bytes) const {
    Plan plan = m_plan;
    plan.strategy = k_optimum;
    plan.stores = Stores::cached;
    plan.ring_order.clear();
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
    plan.parts =
        cut_for_trees(m_job.layout, m_job.workload, plan.trees, part_bytes, m_options.cutting);
    give_lanes(plan, m_lanes);
    plan.part_bytes = *std::max_element(plan.parts.bytes.begin(), plan.parts.bytes.end());
    for (PlanRank& rank : plan.ranks) {
      rank.server = false;
      rank.share_bytes = 0;
      rank.assigned_bytes = 0;
    }
    for (const SumTree& tree : plan.trees) {
      PlanRank& root = plan.ranks[tree.root()];
      root.server = true;
      root.share_bytes += tree.share * m_job.bytes();
    }
    for (std::size_t p = 0; p < plan.parts.size(); ++p) {
      plan.ranks[plan.parts.server[p]].assigned_bytes += plan.parts.bytes[p];
    }
    for (PlanRank& rank : plan.ranks) {
      rank.server = rank.server || !rank.worker;
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
  ProxyWays m_ways;
  ProxyJob m_job;
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
      p.bound_by = fmt::format("{} (equation 26)", std::exchange(p.busiest_by, ""));
      p.busiest_seconds.reset();
    }
  }
  return best;
}

} // namespace reckon
