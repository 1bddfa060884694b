// SPDX-License-Identifier: Apache-2.0
#include "strategies/planner.hpp"

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/units.hpp"
#include "equations/fixed_point.hpp"
#include "strategies/between.hpp"
#include "strategies/lower.hpp"
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

/// Of a play over measured pairs.
constexpr double k_most_pieces = 40'000;
/// Less than that is what two ways to predict the same differ by.
constexpr double k_pairs_bind = 0.05;

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
  if (strategy == "ps_noncolocated" || (strategy == "rack_hierarchical" && k > 0)) {
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
    const double forward =
        options.forward_seconds.value_or(inputs.workload.forward_seconds.value_or(0));
    const double backward =
        options.backward_seconds.value_or(inputs.workload.backward_seconds.value_or(0));
    if (forward + backward > 0 && !options.zero_compute && !inputs.workload.tensors.empty()) {
      m_passes = passes_of(m_layout, inputs.workload, forward, backward);
    } else if (options.order == Order::priority) {
      fail(ErrorKind::input,
           fmt::format("--order priority: workload '{}' has no forward and backward "
                       "times; give --forward and --backward",
                       inputs.workload.name));
    }
    if (options.contention) {
      if (!m_passes || options.async_steps) {
        fail(ErrorKind::input,
             fmt::format("--contention {}: {}", options.contention->operation,
                         m_passes ? "asynchronous plans are predicted without it"
                                  : "without forward and backward passes nothing is computed; "
                                    "give --forward and --backward"));
      }
      m_contention = contention_factors(inputs.profile, *options.contention);
    }
    m_lanes_given = lanes > 0;
    if (m_lanes_given && lanes % m_model.ports() != 0) {
      log(LogLevel::warn,
          "--lanes {}: machines with {} network ports were measured, and a lane uses one of them; "
          "{} or a multiple use all alike, which the prediction assumes",
          lanes, m_model.ports(), m_model.ports());
    }
    m_model.set_lanes(std::max(1, lanes));
    if (lanes == 0) {
      m_model.set_lanes(needed_lanes());
    }
    if (m_layout.total_bytes == 0) {
      fail(ErrorKind::input,
           fmt::format("workload '{}' has no gradient bytes", inputs.workload.name));
    }
    check_options();
    m_pairs = measured_pairs(inputs.profile, m_model, options.what_if);
    if (m_pairs) { // all strategies are played: pieces as long as a comparison bears
      const double writes = 2 * static_cast<double>(m_workers);
      m_pairs->network =
          in_pieces(std::move(m_pairs->network), writes * m_model_bytes, k_most_pieces);
    }
    for (const GradientLayout::Run& run : m_layout.runs) {
      if (options.fixed_point && run.dtype != DType::fp32) {
        fail(ErrorKind::input, fmt::format("--reduction fixed: is for gradients of fp32, and "
                                           "workload '{}' has some of {}",
                                           inputs.workload.name, name_of(run.dtype)));
      }
      if (options.optimizer && run.dtype != DType::fp32) {
        fail(ErrorKind::input,
             fmt::format("--optimizer {}: steps are fp32, and workload '{}' has "
                         "gradients of {}; leave the step out",
                         name_of(*options.optimizer), inputs.workload.name, name_of(run.dtype)));
      }
    }
  }

  Plan make() {
    Plan plan = choose();
    describe(plan);
    return plan;
  }

private:
  struct Choice {
    Solution solution;
    PartShape shape;
    Prediction prediction;
    std::optional<Plan> draft; ///< cut and assigned, if it may win
  };

  [[nodiscard]] PartShape shape_for(double part_bytes, bool ring) const {
    PartShape shape;
    shape.dtype = most_common(m_layout);
    shape.part_count = std::max(1.0, std::ceil(m_model_bytes / part_bytes));
    shape.part_bytes = std::min(part_bytes, std::ceil(m_model_bytes / shape.part_count));
    shape.window_parts = m_options.window_parts ? static_cast<double>(*m_options.window_parts)
                                                : window_for(part_bytes, ring);
    return shape;
  }

  /// The fewest lanes with which no rank sums slower than its port brings the operands, in any
  /// strategy, and as many on each network port. Ranks that share a machine have one: they already
  /// are several threads.
  [[nodiscard]] int needed_lanes() const {
    double needed = 1;
    for (const std::string& name : strategy_names()) {
      const Solution solution = solve(name, m_model, m_model_bytes);
      if (m_model.one_machine() || !solution.reason.empty()) {
        continue;
      }
      const Load load = load_of(solution, m_model, solution.share_bytes);
      for (std::size_t r = 0; r < load.egress_bytes.size(); ++r) {
        // A ring sums all it will sum in its first half, the reduce-scatter.
        const double port_s = std::max(load.egress_bytes[r], load.ingress_bytes[r]) /
                              m_model.ranks()[r].port_bytes_per_s / (solution.ring ? 2 : 1);
        const double rate =
            m_model.reduce_rate(most_common(m_layout), 1, load.operands, k_typical_part_bytes).mid;
        if (port_s > 0) {
          needed = std::max(needed, std::ceil(load.summed_bytes[r] / rate / port_s - 1e-9));
        }
      }
    }
    const int lanes = static_cast<int>(std::min(needed, static_cast<double>(m_model.cores())));
    return (lanes + m_model.ports() - 1) / m_model.ports() * m_model.ports();
  }

  /// Bytes that a ring with unequal ports has under way at least, over all its ranks, for hosts
  /// that are late. Not much more: all of it waits before the slowest port, on one connection, and
  /// once that has as much in it as TCP allows, its acknowledgements, which wait behind the port's
  /// own data, hold the next bytes back. On netlab (200 and 150 Mbit/s, TCP windows of 1 MiB) 1 MiB
  /// in 4 ranks takes 1.002 times the bound, 2 MiB 1.02, all at once 1.08; equal ports do not care.
  static constexpr double k_ring_bytes = 1 << 20;

  /// Whether the workers' ports differ by more than measurements do.
  [[nodiscard]] bool unequal_ports() const {
    double least = std::numeric_limits<double>::infinity(), greatest = 0;
    for (const RankModel& r : m_model.ranks()) {
      if (r.worker) {
        least = std::min(least, r.port_bytes_per_s);
        greatest = std::max(greatest, r.port_bytes_per_s);
      }
    }
    constexpr double k_as_equal = 0.97;
    return least < k_as_equal * greatest;
  }

  /// Parts that a worker has under way in a lane. On ports: what is in the pipeline when every
  /// port is busy, twice. A part waits for those of the other workers at its server's ingress (n
  /// parts) and for the sums to the others at its egress (n parts); the other half keeps the ports
  /// busy when workers drift apart. More when a part is shorter on the wire than the way there and
  /// back. On one machine: of each service a part under way, one being summed, one coming back, one
  /// to spare, and in a ring all. In a ring with unequal ports what keeps them busy, and no less
  /// than k_ring_bytes.
  [[nodiscard]] double window_for(double part_bytes, bool ring) const {
    if (m_model.one_machine() && ring) {
      return std::ceil(m_model_bytes / part_bytes); // nothing gathers anywhere: all at once
    }
    if (m_model.one_machine()) {
      const double rate = m_model.shared_rate(2, part_bytes, CostModel::Target::slots).mid;
      const double round_trip_parts = 2 * m_model.latency_s() * rate / part_bytes;
      return static_cast<double>(m_model.ranks().size()) *
             std::clamp(4 + std::ceil(round_trip_parts), 4.0, 64.0);
    }
    const double rate = m_model.ranks().front().port_bytes_per_s;
    const double round_trip_parts = 2 * m_model.latency_s() * rate / part_bytes;
    if (ring && unequal_ports()) {
      // A part is sent on n times before its sum is back, and each port sends 2 (n - 1) / n of the
      // gradient: by Little's law n / (2 (n - 1)) equal parts keep it busy.
      const double hops = static_cast<double>(m_workers), others = std::max(1.0, hops - 1);
      const double busy = std::ceil(hops / (2 * others) * (1 + round_trip_parts / 2));
      return std::max(busy, std::floor(k_ring_bytes / (hops * part_bytes)));
    }
    return std::clamp(4 * static_cast<double>(m_workers) + std::ceil(round_trip_parts), 8.0,
                      1024.0);
  }

  /// Part sizes whose predictions differ by no more than this part of the least are as good.
  [[nodiscard]] double tolerance() const { return m_model.one_machine() ? 0.01 : 0.002; }

  /// Solves one strategy and, unless a part size is given, takes the power of two with the least
  /// predicted time.
  [[nodiscard]] Choice evaluate(const std::string& strategy) const {
    Choice best;
    best.solution = solve(strategy, m_model, m_model_bytes);
    if (m_options.async_steps && (best.solution.ring || best.solution.racks)) {
      best.solution.reason =
          "asynchronous training needs a server that keeps the latest parameters";
    }
    if (!best.solution.reason.empty()) {
      return best;
    }
    std::vector<double> sizes;
    if (m_options.part_bytes) {
      sizes.push_back(static_cast<double>(*m_options.part_bytes));
    } else {
      constexpr double k_most = 16 * 1024 * 1024;
      const double least = m_model.one_machine() ? 64 * 1024 : 16 * 1024;
      for (double s = least; s <= k_most && s < 2 * m_model_bytes; s *= 2) {
        sizes.push_back(s);
      }
      if (sizes.empty()) {
        sizes.push_back(least);
      }
    }
    double shortest = std::numeric_limits<double>::infinity();
    std::vector<Prediction> predictions;
    for (const double size : sizes) {
      predictions.push_back(predict(m_model, best.solution, best.solution.share_bytes,
                                    shape_for(size, best.solution.ring)));
      shortest = std::min(shortest, predictions.back().mid_seconds);
    }
    // The largest of those that are as good as the best: larger parts cost less of what the profile
    // may not know.
    for (std::size_t i = sizes.size(); i-- > 0;) {
      if (predictions[i].mid_seconds <= (1 + tolerance()) * shortest) {
        best.shape = shape_for(sizes[i], best.solution.ring);
        best.shape.part_bytes = sizes[i];
        best.prediction = std::move(predictions[i]);
        break;
      }
    }
    if (m_options.optimizer) {
      best.prediction = choose_update(m_model, best.solution, best.solution.share_bytes, best.shape,
                                      best.prediction, *m_options.optimizer, m_options.update_at)
                            .prediction;
    }
    scale(best.prediction, steps());
    return best;
  }

  /// The plan of the best strategy, or of the one asked for.
  Plan choose() {
    std::vector<Choice> choices;
    for (const std::string& name : strategy_names()) {
      choices.push_back(evaluate(name));
    }
    Choice* asked = nullptr;
    if (m_options.strategy != "auto") {
      const auto it = std::find_if(choices.begin(), choices.end(), [&](const Choice& c) {
        return c.solution.strategy == m_options.strategy;
      });
      if (it == choices.end()) {
        fail(ErrorKind::usage,
             fmt::format("--strategy {}: unknown; use auto or one of {}, coarse, dense",
                         m_options.strategy, fmt::join(strategy_names(), ", ")));
      }
      if (!it->solution.reason.empty()) {
        fail(ErrorKind::input, fmt::format("--strategy {} does not apply: {}", m_options.strategy,
                                           it->solution.reason));
      }
      asked = &*it;
      draft(*asked);
    }
    for (Choice& c : choices) { // the formulas know ports, and not the ways between pairs
      if (m_options.progress) {
        m_options.progress(c.solution.strategy, static_cast<double>(&c - choices.data()) /
                                                    static_cast<double>(choices.size()));
      }
      if (m_pairs && c.solution.reason.empty() && !c.draft) {
        draft(c);
      }
    }
    // Whichever is fastest is cut, assigned and predicted as it would run, until the fastest is one
    // that has been.
    const auto fastest = [&](const Choice* other_than) -> Choice* {
      for (;;) {
        Choice* best = nullptr;
        for (Choice& c : choices) {
          if (c.solution.reason.empty() && &c != other_than &&
              (best == nullptr || c.prediction.mid_seconds < best->prediction.mid_seconds)) {
            best = &c;
          }
        }
        if (best == nullptr || best->draft) {
          return best;
        }
        draft(*best);
      }
    };
    Choice* const chosen = asked != nullptr ? asked : fastest(nullptr);
    const Choice* const second = fastest(chosen);
    Plan plan = std::move(*chosen->draft);
    if (second != nullptr) {
      plan.runner_up = second->solution.strategy;
      m_runner_up_seconds = second->prediction.mid_seconds;
    }
    for (const Choice& c : choices) {
      plan.candidates.push_back({c.solution.strategy, std::nullopt, c.solution.reason});
      if (c.solution.reason.empty()) {
        plan.candidates.back().prediction = c.prediction;
      }
    }
    m_chosen = std::move(*chosen);
    return plan;
  }

  /// Cuts, assigns and predicts the plan; where the ways between pairs of machines are slower than
  /// ports, which the part size was solved for, with longer parts, too.
  void draft(Choice& choice) const {
    const Choice by_formula = choice;
    draft_cut(choice);
    if (!m_pairs || m_options.part_bytes ||
        choice.prediction.mid_seconds <= by_formula.prediction.mid_seconds * (1 + k_pairs_bind)) {
      return;
    }
    for (const double longer : {4.0, 16.0}) {
      const double size = by_formula.shape.part_bytes * longer;
      if (size >= 2 * m_model_bytes) {
        break;
      }
      Choice other = by_formula;
      other.shape = shape_for(size, other.solution.ring);
      other.shape.part_bytes = size;
      draft_cut(other);
      if (other.prediction.mid_seconds < (1 - tolerance()) * choice.prediction.mid_seconds) {
        choice = std::move(other);
      }
    }
  }

  /// Cuts, assigns and predicts the plan in every order and window that is open, and keeps the
  /// fastest. Windows beside the solved one count only where a play can tell them apart: one that
  /// falls in with the period of the shares can cost a percent or two. In a ring the least window
  /// that is as good as the others.
  void draft_cut(Choice& choice) const {
    std::vector<double> windows{choice.shape.window_parts};
    double gain = 1e-9;                // part of the time that a further window must save
    constexpr double k_small_job = 16; // workers: beyond it a play takes long, and shares are finer
    const bool open = !m_options.window_parts && !m_model.one_machine();
    if (open && choice.solution.ring) {
      gain = tolerance();
      for (int doubled = 1; doubled <= 6; ++doubled) {
        windows.push_back(2 * windows.back());
      }
    } else if (open && static_cast<double>(m_workers) <= k_small_job) {
      windows.push_back(std::round(0.75 * windows[0]));
      windows.push_back(std::round(1.5 * windows[0]));
    }
    std::vector<bool> orders{m_options.order == Order::priority};
    if (m_passes && m_options.order == Order::automatic) {
      orders.push_back(true);
    }
    std::vector<Plan> assigned; // by order
    for (const bool by_priority : orders) {
      assigned.push_back(cut_and_assign(choice, by_priority));
    }
    for (const double window : windows) {
      for (const Plan& parts : assigned) {
        Plan plan = predicted(choice, parts, window);
        if (!choice.draft ||
            plan.prediction.mid_seconds < (1 - gain) * choice.draft->prediction.mid_seconds) {
          choice.draft = std::move(plan);
        }
      }
      if (choice.draft->prediction.mid_seconds * (1 - gain) <=
          choice.draft->prediction.bound_seconds) {
        break;
      }
    }
    choice.prediction = choice.draft->prediction;
  }

  /// Time of a scheme if the ranks owned `loads`: the ports' on a network, the bytes' on one
  /// machine.
  [[nodiscard]] double time_of(const Choice& choice, std::span<const double> loads) const {
    const Load load = load_of(choice.solution, m_model, loads);
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
  /// largest chunk, in a scheme of fixed shares how much of its own a rank has.
  [[nodiscard]] double cost_of(const Choice& choice, std::size_t r, double bytes) const {
    const RankModel& rank = m_model.ranks()[r];
    const double port = m_model.one_machine() ? 1e9 : rank.port_bytes_per_s;
    if (choice.solution.ring || choice.solution.racks || port == 0) {
      return bytes;
    }
    if (choice.solution.fixed_shares) {
      return bytes / choice.solution.share_bytes[r];
    }
    const double others = static_cast<double>(m_workers) - (rank.worker ? 1 : 0);
    return ((rank.worker ? m_model_bytes - bytes : 0) + others * bytes) / port;
  }

  /// The choice's plan but for its prediction, and with its window.
  [[nodiscard]] Plan cut_and_assign(const Choice& choice, bool by_priority) const {
    Plan plan;
    const auto part_bytes = static_cast<std::uint64_t>(choice.shape.part_bytes);
    plan.parts = cut(m_layout, m_inputs.workload, part_bytes, m_options.cutting,
                     m_options.part_bytes ? 1 : streams(choice.solution.strategy, m_model));
    plan.passes = m_passes;
    if (m_passes && by_priority) {
      order_by_priority(plan.parts, *m_passes, m_model_bytes / choice.prediction.mid_seconds);
    }
    const double exact = time_of(choice, choice.solution.share_bytes);
    assign_servers(plan.parts, choice.solution.share_bytes,
                   [&](std::size_t rank, double bytes) { return cost_of(choice, rank, bytes); });
    const std::vector<double> loads = loads_of(plan.parts, m_model.ranks().size());
    const double time = time_of(choice, loads);
    plan.assignment_gap = exact > 0 ? time / exact - 1 : 0;
    std::uint64_t lanes = 1;
    for (const RankModel& r : m_model.ranks()) {
      lanes = std::max<std::uint64_t>(lanes, static_cast<std::uint64_t>(r.lanes));
    }
    assign_lanes(plan.parts, m_model.ranks().size(), lanes);
    plan.part_bytes = plan.parts.size() == 0
                          ? part_bytes
                          : *std::max_element(plan.parts.bytes.begin(), plan.parts.bytes.end());
    plan.window_parts = static_cast<std::uint64_t>(choice.shape.window_parts);
    const Load load = load_of(choice.solution, m_model, loads);
    for (std::size_t r = 0; r < m_model.ranks().size(); ++r) {
      const RankModel& rank = m_model.ranks()[r];
      PlanRank out;
      out.machine = rank.machine;
      out.rack = rank.rack;
      out.worker = rank.worker;
      out.server = rank.server;
      out.lanes = static_cast<int>(lanes);
      out.share_bytes = choice.solution.share_bytes[r];
      out.assigned_bytes = static_cast<std::uint64_t>(loads[r]);
      out.port_bytes_per_second = rank.port_bytes_per_s;
      out.egress_bytes = static_cast<std::uint64_t>(load.egress_bytes[r]);
      out.ingress_bytes = static_cast<std::uint64_t>(load.ingress_bytes[r]);
      plan.ranks.push_back(out);
    }
    add_fixed_point(plan);
    plan.strategy = choice.solution.strategy;
    plan.gradient_bytes = m_layout.total_bytes;
    for (const GradientLayout::Run& run : m_layout.runs) {
      plan.runs.push_back({run.offset_bytes, run.bytes, run.dtype});
    }
    if (choice.solution.racks) { // in whole parts, which the shares are not
      const Traffic traffic = traffic_of(reckon::lower(plan));
      for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
        plan.ranks[r].egress_bytes = traffic.egress_bytes[r];
        plan.ranks[r].ingress_bytes = traffic.ingress_bytes[r];
      }
    }
    return plan;
  }

  /// A plan that was cut and assigned, with a window, and how that is predicted to run.
  [[nodiscard]] Plan predicted(const Choice& choice, const Plan& assigned, double window) const {
    Plan plan = assigned;
    plan.window_parts = static_cast<std::uint64_t>(window);
    const std::vector<double> loads = loads_of(plan.parts, m_model.ranks().size());
    PartShape shape = choice.shape;
    shape.window_parts = window;
    shape.part_bytes = static_cast<double>(plan.part_bytes);
    shape.part_count = static_cast<double>(plan.parts.size());
    plan.prediction = predict(m_model, choice.solution, loads, shape);
    const double exact = time_of(choice, choice.solution.share_bytes);
    const double time = time_of(choice, loads);
    if (!m_model.one_machine() && time < exact) { // whole parts can spare the slowest port a little
      plan.prediction.bound_seconds = std::min(plan.prediction.bound_seconds, time);
    }
    if (m_pairs && raise_bound(plan.prediction, reckon::lower(plan), *m_pairs)) {
      plan.prediction.relief =
          "a faster way between these two, or a strategy with fewer bytes on it";
      Term& transport = plan.prediction.terms.front();
      transport.seconds = std::max(transport.seconds, plan.prediction.bound_seconds);
    }
    const Load load = load_of(choice.solution, m_model, loads);
    if (m_options.async_steps) {
      add_async_steps(choice, loads, shape, plan, load.uplink_seconds);
      return plan;
    }
    const auto seconds = played(plan, load.uplink_seconds);
    if (m_passes) {
      const double traffic = plan.prediction.mid_seconds;
      add_passes(plan.prediction, *m_passes, seconds);
      if (m_contention) {
        add_contention(plan.prediction, *m_passes, traffic, *m_contention);
      }
    } else if (seconds) {
      replace_by_played(plan.prediction, *seconds);
    }
    if (m_options.optimizer) {
      add_step(choice, loads, shape, plan, load.uplink_seconds);
    }
    return plan;
  }

  [[nodiscard]] std::optional<double> played(const Plan& plan, double uplink_seconds) const {
    return played_seconds(m_model, plan, uplink_seconds, m_pairs ? &*m_pairs : nullptr);
  }

  void add_step(const Choice& choice, std::span<const double> loads, const PartShape& shape,
                Plan& plan, double uplink_seconds) const {
    const UpdateChoice step =
        choose_update(m_model, choice.solution, loads, shape, plan.prediction, *m_options.optimizer,
                      m_options.update_at, [&](UpdatePlace place) {
                        Plan stepping = plan;
                        stepping.update = UpdatePlan{*m_options.optimizer, place};
                        return played(stepping, uplink_seconds);
                      });
    plan.prediction = step.prediction;
    plan.update = step.update;
    plan.quantities = step.quantities; // describe() puts the others before them
  }

  /// Steps of a worker in one iteration.
  [[nodiscard]] double steps() const {
    return m_options.async_steps ? static_cast<double>(*m_options.async_steps) : 1;
  }
  static void scale(Prediction& p, double factor) {
    for (double* const seconds : {&p.bound_seconds, &p.lo_seconds, &p.mid_seconds, &p.hi_seconds}) {
      *seconds *= factor;
    }
    for (Term& t : p.terms) {
      t.seconds *= factor;
    }
  }

  void check_options() const {
    if (m_options.async_steps && (!m_options.optimizer || state_arrays(*m_options.optimizer) > 0)) {
      fail(ErrorKind::input,
           "--async is for --optimizer sgd: an optimizer's state would be another "
           "one at every worker (BytePS proves nothing for that)");
    }
    if (m_options.fixed_point && m_options.optimizer) {
      fail(ErrorKind::input,
           "--reduction fixed: sums gradients; leave out --optimizer and --async");
    }
    if (m_options.fixed_point && fixed_point_limit(m_options.fixed_point->bits, m_workers) < 1) {
      fail(ErrorKind::input,
           fmt::format("--reduction fixed:{}: the sum of {} workers does not fit in {} bits",
                       m_options.fixed_point->bits, m_workers, m_options.fixed_point->bits));
    }
  }

  /// Equation 22.
  void add_fixed_point(Plan& plan) const {
    if (!m_options.fixed_point) {
      return;
    }
    const auto& [bits, bound] = *m_options.fixed_point;
    const std::int32_t limit = fixed_point_limit(bits, m_workers);
    const int exponent = fixed_point_exponent(limit, bound);
    plan.fixed_point = FixedPointPlan{bits, bound, exponent};
    plan.quantities.push_back({"fixed_point_exponent",
                               static_cast<double>(exponent),
                               "equation 22: the greatest with which no sum leaves its bits",
                               {{"n", static_cast<double>(m_workers)},
                                {"bits", static_cast<double>(bits)},
                                {"gradient_bound", bound}}});
    plan.quantities.push_back({"fixed_point_error",
                               fixed_point_error(exponent, m_workers),
                               "equation 22: n / (2 2^e), how far a sum may be off",
                               {{"n", static_cast<double>(m_workers)}}});
  }

  /// Equation 21: as many exchanges as steps, and no barrier but each worker's own.
  void add_async_steps(const Choice& choice, std::span<const double> loads, const PartShape& shape,
                       Plan& plan, double uplink_seconds) const {
    UpdateChoice step = choose_update(m_model, choice.solution, loads, shape, plan.prediction,
                                      *m_options.optimizer, m_options.update_at);
    plan.prediction = step.prediction;
    plan.update = step.update;
    plan.asynchronous = AsyncPlan{*m_options.async_steps};
    scale(plan.prediction, steps());
    for (Quantity& q : step.quantities) {
      q.value *= q.name.ends_with("_seconds") ? steps() : 1;
    }
    for (PlanRank& r : plan.ranks) {
      r.egress_bytes *= *m_options.async_steps;
      r.ingress_bytes *= *m_options.async_steps;
    }
    if (m_passes) { // a worker's step begins with its passes, and they are nobody else's time
      const double computed = steps() * m_passes->total_seconds();
      for (double* const seconds : {&plan.prediction.lo_seconds, &plan.prediction.mid_seconds,
                                    &plan.prediction.hi_seconds}) {
        *seconds += computed;
      }
      plan.prediction.bound_seconds = std::max(plan.prediction.bound_seconds, computed);
      plan.prediction.terms.push_back({"passes", computed});
    }
    plan.quantities = step.quantities;
    plan.quantities.push_back({"asynchronous_steps",
                               steps(),
                               "equation 21: bound and prediction are of that many exchanges",
                               {}});
    if (const auto seconds = played(plan, uplink_seconds)) {
      double steady = 0;
      for (const Term& t : plan.prediction.terms) {
        steady += t.name == "fill" ? 0 : t.seconds;
      }
      replace_by_played(plan.prediction, std::max(*seconds, steady));
    }
  }

  void describe(Plan& plan) const {
    plan.profile = m_inputs.profile_link;
    plan.workload = m_inputs.workload_link;
    plan.roles = m_inputs.roles_link;
    plan.transport = m_model.transport();
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
    if (m_options.forward_seconds || m_options.backward_seconds) {
      plan.options["forward"] = fmt::format("{} s", m_options.forward_seconds.value_or(0));
      plan.options["backward"] = fmt::format("{} s", m_options.backward_seconds.value_or(0));
    }
    if (m_options.zero_compute) {
      plan.options["zero_compute"] = "yes";
    }
    if (m_contention) {
      plan.options["contention"] =
          fmt::format("{}, {} cores", m_options.contention->operation,
                      m_options.contention->dedicated ? "dedicated" : "shared");
      plan.quantities.push_back({"contention_seconds",
                                 contention_seconds(plan.prediction),
                                 "equation 55",
                                 {{"f_compute", m_contention->compute},
                                  {"f_communication", m_contention->communication}}});
    }
    if (m_passes && !m_options.async_steps) {
      plan.options["order"] = m_options.order == Order::gradient   ? "gradient"
                              : m_options.order == Order::priority ? "priority"
                                                                   : "auto";
      const bool in_order =
          std::is_sorted(plan.parts.offset_bytes.begin(), plan.parts.offset_bytes.end());
      plan.quantities.insert(
          plan.quantities.begin(),
          {"exposed_seconds",
           plan.prediction.mid_seconds - m_passes->total_seconds(),
           in_order ? "equation 18, parts in gradient order" : "equation 18, parts by priority",
           {{"forward", std::accumulate(m_passes->forward_seconds.begin(),
                                        m_passes->forward_seconds.end(), 0.0)},
            {"backward", std::accumulate(m_passes->backward_seconds.begin(),
                                         m_passes->backward_seconds.end(), 0.0)},
            {"credit_bytes", static_cast<double>(plan.part_bytes * plan.window_parts)}}});
    }
    plan.options["cutting"] = m_options.cutting == Cutting::fused ? "fused" : "tensors";
    if (m_options.what_if.worker_port_bytes_per_s) {
      plan.options["port_bandwidth"] =
          fmt::format("{} B/s", *m_options.what_if.worker_port_bytes_per_s);
    }
    if (m_options.what_if.server_port_bytes_per_s) {
      plan.options["server_port_bandwidth"] =
          fmt::format("{} B/s", *m_options.what_if.server_port_bytes_per_s);
    }
    const std::vector<Quantity> of_step = std::move(plan.quantities);
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
    plan.quantities.push_back(
        {"part_bytes",
         static_cast<double>(plan.part_bytes),
         m_options.part_bytes ? "as given"
                              : fmt::format("cut evenly, at most the largest power of two whose "
                                            "predicted time is within {:g} % of the least",
                                            100 * tolerance()),
         {{"parts", static_cast<double>(plan.parts.size())}}});
    for (const std::string& source : m_model.sources()) {
      plan.quantities.push_back({"profile", 0, source, {}});
    }
    for (const std::string& source : m_pairs ? m_pairs->sources : std::vector<std::string>()) {
      plan.quantities.push_back({"profile", 0, source, {}});
    }
    plan.quantities.insert(plan.quantities.end(), of_step.begin(), of_step.end());
    if (m_options.async_steps) {
      plan.options["async_steps"] = std::to_string(*m_options.async_steps);
    }
    if (m_options.fixed_point) {
      plan.options["reduction"] = fmt::format("fixed:{}", m_options.fixed_point->bits);
      plan.options["gradient_bound"] = fmt::format("{}", m_options.fixed_point->gradient_bound);
    }
    if (m_options.optimizer) {
      plan.options["optimizer"] = name_of(*m_options.optimizer);
      plan.options["update"] = m_options.update_at ? name_of(*m_options.update_at) : "auto";
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
  std::optional<Passes> m_passes;
  std::optional<ContentionFactors> m_contention;
  std::optional<Between> m_pairs; ///< measured ways between the ranks' machines
  bool m_lanes_given = false;
  Choice m_chosen;
  double m_runner_up_seconds = 0;
};

} // namespace

Plan make_plan(const PlanInputs& inputs, const PlanOptions& options) {
  return Planner(inputs, options).make();
}

} // namespace reckon
