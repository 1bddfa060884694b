// SPDX-License-Identifier: Apache-2.0
#include "strategies/planner.hpp"

#include "core/error.hpp"
#include "core/units.hpp"
#include "strategies/predict.hpp"
#include "strategies/strategy.hpp"
#include "strategies/update.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace reckon {
namespace {

constexpr double k_typical_part_bytes =
    1 << 20; ///< for questions asked before the part size is known

DType most_common(const GradientLayout& layout) {
  std::map<DType, std::uint64_t> bytes;
  for (const GradientLayout::Run& run : layout.runs) {
    bytes[run.dtype] += run.bytes;
  }
  const auto most = std::max_element(
      bytes.begin(), bytes.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == bytes.end() ? DType::fp32 : most->first;
}

/// Equal parts per slot make the shares of the equal-bandwidth split come out exactly: the number
/// of parts should be a multiple of the slots, in lowest terms (equation 9).
std::uint64_t streams(const std::string& strategy, const CostModel& model) {
  std::uint64_t n = 0, k = 0;
  for (const RankModel& r : model.ranks()) {
    (r.worker ? n : k) += 1;
  }
  if (strategy == "ps_noncolocated") {
    return std::max<std::uint64_t>(1, k);
  }
  if (strategy != "byteps_split") {
    return std::max<std::uint64_t>(1, n);
  }
  const auto slots = slot_counts(n, k);
  if (!slots) {
    return 1;
  }
  const std::uint64_t common = std::gcd(slots->per_worker, slots->per_server);
  return std::max<std::uint64_t>(1, slots->total / std::max<std::uint64_t>(1, common));
}

class Planner {
public:
  Planner(const PlanInputs& inputs, const PlanOptions& options)
      : m_inputs(inputs), m_options(options), m_layout(layout_of(inputs.workload)),
        m_model(inputs.profile, inputs.roles, options.transport, options.what_if),
        m_model_bytes(static_cast<double>(inputs.workload.bytes())) {
    int lanes = 0;
    for (const RankModel& r : m_model.ranks()) {
      m_workers += r.worker ? 1 : 0;
      lanes = std::max(lanes, r.lanes);
    }
    m_lanes_given = lanes > 0;
    m_model.set_lanes(std::max(1, lanes));
    if (lanes == 0) {
      m_model.set_lanes(needed_lanes());
    }
    if (m_layout.total_bytes == 0) {
      fail(ErrorKind::input,
           fmt::format("workload '{}' has no gradient bytes", inputs.workload.name));
    }
    for (const GradientLayout::Run& run : m_layout.runs) {
      if (options.optimizer && run.dtype != DType::fp32) {
        fail(ErrorKind::input,
             fmt::format("--optimizer {}: steps are fp32, and workload '{}' has "
                         "gradients of {}; leave the step out",
                         name_of(*options.optimizer), inputs.workload.name, name_of(run.dtype)));
      }
    }
  }

  Plan make() {
    Plan plan;
    choose(plan);
    cut_and_assign(plan);
    describe(plan);
    return plan;
  }

private:
  struct Choice {
    Solution solution;
    PartShape shape;
    Prediction prediction;
  };

  [[nodiscard]] PartShape shape_for(double part_bytes) const {
    PartShape shape;
    shape.dtype = most_common(m_layout);
    shape.part_count = std::max(1.0, std::ceil(m_model_bytes / part_bytes));
    shape.part_bytes = std::min(part_bytes, std::ceil(m_model_bytes / shape.part_count));
    shape.window_parts = m_options.window_parts ? static_cast<double>(*m_options.window_parts)
                                                : window_for(part_bytes);
    return shape;
  }

  /// The fewest lanes with which no rank sums slower than its port brings the operands, in any
  /// strategy. Ranks that share a machine have one: they already are several threads.
  [[nodiscard]] int needed_lanes() const {
    double needed = 1;
    for (const std::string& name : strategy_names()) {
      const Solution solution = solve(name, m_model, m_model_bytes);
      if (m_model.one_machine() || !solution.reason.empty()) {
        continue;
      }
      const Load load = load_of(solution, m_model, solution.share_bytes);
      for (std::size_t r = 0; r < load.egress_bytes.size(); ++r) {
        const double port_s = std::max(load.egress_bytes[r], load.ingress_bytes[r]) /
                              m_model.ranks()[r].port_bytes_per_s;
        const double rate =
            m_model.reduce_rate(most_common(m_layout), 1, load.operands, k_typical_part_bytes).mid;
        if (port_s > 0) {
          needed = std::max(needed, std::ceil(load.summed_bytes[r] / rate / port_s - 1e-9));
        }
      }
    }
    return static_cast<int>(std::min(needed, static_cast<double>(m_model.cores())));
  }

  /// A part under way, one being summed, one coming back, one to spare; more when a part is shorter
  /// on the wire than the round trip.
  [[nodiscard]] double window_for(double part_bytes) const {
    const double rate = m_model.one_machine()
                            ? m_model.shared_rate(2, part_bytes, CostModel::Target::slots).mid
                            : m_model.ranks().front().port_bytes_per_s;
    const double round_trip_parts = 2 * m_model.latency_s() * rate / part_bytes;
    return std::clamp(4 + std::ceil(round_trip_parts), 4.0, 64.0);
  }

  /// Solves one strategy and, unless a part size is given, takes the power of two with the least
  /// predicted time.
  [[nodiscard]] Choice evaluate(const std::string& strategy) const {
    Choice best;
    best.solution = solve(strategy, m_model, m_model_bytes);
    if (!best.solution.reason.empty()) {
      return best;
    }
    std::vector<double> sizes;
    if (m_options.part_bytes) {
      sizes.push_back(static_cast<double>(*m_options.part_bytes));
    } else {
      constexpr double k_least = 64 * 1024, k_most = 16 * 1024 * 1024;
      for (double s = k_least; s <= k_most && s < 2 * m_model_bytes; s *= 2) {
        sizes.push_back(s);
      }
      if (sizes.empty()) {
        sizes.push_back(k_least);
      }
    }
    double least = std::numeric_limits<double>::infinity();
    std::vector<Prediction> predictions;
    for (const double size : sizes) {
      predictions.push_back(
          predict(m_model, best.solution, best.solution.share_bytes, shape_for(size)));
      least = std::min(least, predictions.back().mid_seconds);
    }
    // The largest of those that are as good as the best: larger parts cost less of what the profile
    // may not know.
    constexpr double k_as_good = 1.01;
    for (std::size_t i = sizes.size(); i-- > 0;) {
      if (predictions[i].mid_seconds <= k_as_good * least) {
        best.shape = shape_for(sizes[i]);
        best.shape.part_bytes = sizes[i];
        best.prediction = std::move(predictions[i]);
        break;
      }
    }
    if (m_options.optimizer) {
      best.prediction =
          with_step(best.solution, best.solution.share_bytes, best.shape, best.prediction)
              .prediction;
    }
    return best;
  }

  /// The exchange with the optimizer's step, where this strategy has it done first.
  [[nodiscard]] UpdateChoice with_step(const Solution& solution, std::span<const double> loads,
                                       const PartShape& shape, const Prediction& sums) const {
    return choose_update(m_inputs.profile, m_model, solution, loads, shape, sums,
                         *m_options.optimizer, m_options.update_at);
  }

  void choose(Plan& plan) {
    std::vector<Choice> choices;
    for (const std::string& name : strategy_names()) {
      choices.push_back(evaluate(name));
      const Choice& c = choices.back();
      plan.candidates.push_back({name, std::nullopt, c.solution.reason});
      if (c.solution.reason.empty()) {
        plan.candidates.back().prediction = c.prediction;
      }
    }
    const auto better = [](const Choice* a, const Choice* b) {
      return a->prediction.mid_seconds < b->prediction.mid_seconds;
    };
    std::vector<const Choice*> usable;
    for (const Choice& c : choices) {
      if (c.solution.reason.empty()) {
        usable.push_back(&c);
      }
    }
    std::stable_sort(usable.begin(), usable.end(), better);
    if (m_options.strategy == "auto") {
      m_chosen = *usable.front();
    } else {
      const auto it = std::find_if(choices.begin(), choices.end(), [&](const Choice& c) {
        return c.solution.strategy == m_options.strategy;
      });
      if (it == choices.end()) {
        fail(ErrorKind::usage, fmt::format("--strategy {}: unknown; use auto or one of {}",
                                           m_options.strategy, fmt::join(strategy_names(), ", ")));
      }
      if (!it->solution.reason.empty()) {
        fail(ErrorKind::input, fmt::format("--strategy {} does not apply: {}", m_options.strategy,
                                           it->solution.reason));
      }
      m_chosen = *it;
    }
    for (const Choice* c : usable) {
      if (c->solution.strategy != m_chosen.solution.strategy) {
        plan.runner_up = c->solution.strategy;
        m_runner_up_seconds = c->prediction.mid_seconds;
        break;
      }
    }
  }

  /// Time of the chosen scheme if the ranks owned `loads`: the ports' on a network, the bytes' on
  /// one machine.
  [[nodiscard]] double time_of(std::span<const double> loads) const {
    const Load load = load_of(m_chosen.solution, m_model, loads);
    double longest = 0;
    for (std::size_t r = 0; r < load.egress_bytes.size(); ++r) {
      const double port = m_model.one_machine() ? 1e9 : m_model.ranks()[r].port_bytes_per_s;
      if (port > 0) {
        longest = std::max(longest, std::max(load.egress_bytes[r], load.ingress_bytes[r]) / port);
      }
    }
    return longest;
  }

  /// When one rank's port is done if it owns `bytes` (equation 5); in a ring what counts is the
  /// largest chunk.
  [[nodiscard]] double cost_of(std::size_t r, double bytes) const {
    const RankModel& rank = m_model.ranks()[r];
    const double port = m_model.one_machine() ? 1e9 : rank.port_bytes_per_s;
    if (m_chosen.solution.ring || port == 0) {
      return bytes;
    }
    const double others = static_cast<double>(m_workers) - (rank.worker ? 1 : 0);
    return ((rank.worker ? m_model_bytes - bytes : 0) + others * bytes) / port;
  }

  void cut_and_assign(Plan& plan) {
    const auto part_bytes = static_cast<std::uint64_t>(m_chosen.shape.part_bytes);
    plan.parts = cut(m_layout, m_inputs.workload, part_bytes, m_options.cutting,
                     m_options.part_bytes ? 1 : streams(m_chosen.solution.strategy, m_model));
    const double exact = time_of(m_chosen.solution.share_bytes);
    assign_servers(plan.parts, m_chosen.solution.share_bytes,
                   [&](std::size_t rank, double bytes) { return cost_of(rank, bytes); });
    const double time = time_of(loads_of(plan.parts, m_model.ranks().size()));
    plan.assignment_gap = exact > 0 ? time / exact - 1 : 0;
    std::uint64_t lanes = 1;
    for (const RankModel& r : m_model.ranks()) {
      lanes = std::max<std::uint64_t>(lanes, static_cast<std::uint64_t>(r.lanes));
    }
    assign_lanes(plan.parts, m_model.ranks().size(), lanes);
    plan.part_bytes = plan.parts.size() == 0
                          ? part_bytes
                          : *std::max_element(plan.parts.bytes.begin(), plan.parts.bytes.end());
    plan.window_parts = static_cast<std::uint64_t>(m_chosen.shape.window_parts);

    const std::vector<double> loads = loads_of(plan.parts, m_model.ranks().size());
    PartShape shape = m_chosen.shape;
    shape.part_bytes = static_cast<double>(plan.part_bytes);
    shape.part_count = static_cast<double>(plan.parts.size());
    plan.prediction = predict(m_model, m_chosen.solution, loads, shape);
    if (m_options.optimizer) {
      UpdateChoice step = with_step(m_chosen.solution, loads, shape, plan.prediction);
      plan.prediction = std::move(step.prediction);
      plan.update = step.update;
      m_step_quantities = std::move(step.quantities);
      m_step_quantities.push_back({"profile", 0, step.source, {}});
    }
    for (Candidate& c : plan.candidates) { // one strategy, one prediction
      if (c.strategy == m_chosen.solution.strategy) {
        c.prediction = plan.prediction;
      }
    }
    const Load load = load_of(m_chosen.solution, m_model, loads);
    for (std::size_t r = 0; r < m_model.ranks().size(); ++r) {
      const RankModel& rank = m_model.ranks()[r];
      PlanRank out;
      out.machine = rank.machine;
      out.worker = rank.worker;
      out.server = rank.server;
      out.lanes = static_cast<int>(lanes);
      out.share_bytes = m_chosen.solution.share_bytes[r];
      out.assigned_bytes = static_cast<std::uint64_t>(loads[r]);
      out.port_bytes_per_second = rank.port_bytes_per_s;
      out.egress_bytes = static_cast<std::uint64_t>(load.egress_bytes[r]);
      out.ingress_bytes = static_cast<std::uint64_t>(load.ingress_bytes[r]);
      plan.ranks.push_back(out);
    }
  }

  void describe(Plan& plan) const {
    plan.profile = m_inputs.profile_link;
    plan.workload = m_inputs.workload_link;
    plan.roles = m_inputs.roles_link;
    plan.strategy = m_chosen.solution.strategy;
    plan.transport = m_model.transport();
    plan.gradient_bytes = m_layout.total_bytes;
    for (const GradientLayout::Run& run : m_layout.runs) {
      plan.runs.push_back({run.offset_bytes, run.bytes, run.dtype});
    }
    std::size_t servers = 0;
    for (const RankModel& r : m_model.ranks()) {
      servers += !r.worker && r.server ? 1 : 0;
    }
    plan.options["workers"] = std::to_string(m_workers);
    plan.options["servers"] = std::to_string(servers);
    plan.options["lanes"] = m_lanes_given ? std::to_string(m_model.ranks().front().lanes) : "auto";
    plan.options["strategy"] = m_options.strategy;
    plan.options["transport"] = m_options.transport.empty() ? "auto" : m_options.transport;
    plan.options["part_bytes"] =
        m_options.part_bytes ? std::to_string(*m_options.part_bytes) : "auto";
    plan.options["window_parts"] =
        m_options.window_parts ? std::to_string(*m_options.window_parts) : "auto";
    plan.options["cutting"] = m_options.cutting == Cutting::fused ? "fused" : "tensors";
    if (m_options.what_if.worker_port_bytes_per_s) {
      plan.options["port_bandwidth"] =
          fmt::format("{} B/s", *m_options.what_if.worker_port_bytes_per_s);
    }
    if (m_options.what_if.server_port_bytes_per_s) {
      plan.options["server_port_bandwidth"] =
          fmt::format("{} B/s", *m_options.what_if.server_port_bytes_per_s);
    }
    plan.quantities = m_chosen.solution.quantities;
    if (m_model.one_machine()) {
      // There are no ports: the shares hold (all ports count as equal), the equations' times do
      // not.
      std::erase_if(plan.quantities,
                    [](const Quantity& q) { return q.name.ends_with("_seconds"); });
      double moved = 0;
      for (const PlanRank& r : plan.ranks) {
        moved += static_cast<double>(r.egress_bytes);
      }
      for (Quantity& q : plan.quantities) {
        q.inputs.erase("B");
        q.inputs.erase("B_server");
      }
      plan.quantities.push_back(
          {"moved_bytes",
           moved,
           "equation 5, summed over all ranks: what passes the machine's memory",
           {{"ranks", static_cast<double>(plan.ranks.size())}}});
    }
    plan.quantities.push_back({"part_bytes",
                               static_cast<double>(plan.part_bytes),
                               m_options.part_bytes
                                   ? "as given"
                                   : "cut evenly, at most the largest power of two whose predicted "
                                     "time is within 1 % of the least",
                               {{"parts", static_cast<double>(plan.parts.size())}}});
    for (const std::string& source : m_model.sources()) {
      plan.quantities.push_back({"profile", 0, source, {}});
    }
    if (m_options.optimizer) {
      plan.options["optimizer"] = name_of(*m_options.optimizer);
      plan.options["update"] = m_options.update_at ? name_of(*m_options.update_at) : "auto";
      plan.quantities.insert(plan.quantities.end(), m_step_quantities.begin(),
                             m_step_quantities.end());
    }
    if (plan.runner_up.empty() || plan.prediction.mid_seconds <= 0) {
      return;
    }
    plan.margin = m_runner_up_seconds / plan.prediction.mid_seconds - 1;
    constexpr double k_equal = 0.002;
    if (std::abs(plan.margin) < k_equal) {
      plan.margin_text =
          fmt::format("as good as {}: the predictions differ by less than 0.2 %", plan.runner_up);
    } else if (plan.margin < 0 && m_options.strategy == "auto") {
      plan.margin_text =
          fmt::format("{} is predicted {:.1f} % faster once the parts are assigned", plan.runner_up,
                      100 * (1 - m_runner_up_seconds / plan.prediction.mid_seconds));
    } else if (plan.margin < 0) {
      plan.margin_text = fmt::format("{} is predicted {:.1f} % faster; this strategy was asked for",
                                     plan.runner_up,
                                     100 * (1 - m_runner_up_seconds / plan.prediction.mid_seconds));
    } else {
      plan.margin_text = fmt::format(
          "the choice holds until the rates behind this strategy fall by {:.1f} % against those "
          "behind {}",
          100 * plan.margin / (1 + plan.margin), plan.runner_up);
    }
  }

  const PlanInputs& m_inputs;
  const PlanOptions& m_options;
  GradientLayout m_layout;
  CostModel m_model;
  double m_model_bytes;
  std::size_t m_workers = 0;
  bool m_lanes_given = false;
  Choice m_chosen;
  std::vector<Quantity> m_step_quantities;
  double m_runner_up_seconds = 0;
};

} // namespace

Plan make_plan(const PlanInputs& inputs, const PlanOptions& options) {
  return Planner(inputs, options).make();
}

} // namespace reckon
