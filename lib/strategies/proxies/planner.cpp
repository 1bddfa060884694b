// SPDX-License-Identifier: Apache-2.0
#include "strategies/proxies/planner.hpp"

#include "core/error.hpp"
#include "core/units.hpp"
#include "equations/coarse.hpp"
#include "strategies/checkpoint_cost.hpp"
#include "strategies/inside/model.hpp"
#include "strategies/inside/planner.hpp"
#include "strategies/lower.hpp"
#include "strategies/pair_network.hpp"
#include "strategies/parts.hpp"
#include "strategies/predict.hpp"
#include "strategies/proxies/routes.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <set>
#include <tuple>

namespace reckon {
namespace {

/// A play of more writes takes longer than a plan is worth; while boundaries are compared, far
/// fewer do.
constexpr double k_most_writes = 200'000, k_search_writes = 20'000;
constexpr double k_least_shard = 16 << 10;
constexpr std::array<std::uint64_t, 5> k_windows{4, 8, 16, 32, 64};
/// A wider window, a further ring or another boundary must be worth it.
constexpr double k_worth = 0.002;
/// The step at the workers, too: the storage is on the devices.
constexpr double k_worth_moving = 0.01;
/// Less than that is what two ways to predict the same differ by.
constexpr double k_pairs_bind = 0.05;
/// Shorter shards than S': more of them cost what no profile knows.
constexpr double k_worth_cutting = 0.02;

constexpr std::int64_t k_none = -1;

class Planner {
public:
  Planner(const PlanInputs& inputs, const PlanOptions& options, const ProxyOptions& proxies)
      : m_inputs(inputs), m_options(options), m_proxies(proxies),
        m_layout(layout_of(inputs.workload)), m_inside(inside_of(inputs)),
        m_model(inputs.profile, inputs.roles, options.transport, what_if_of(m_inside, options)) {
    check_options();
    int lanes = 1;
    for (std::size_t r = 0; r < m_model.ranks().size(); ++r) {
      const RankModel& rank = m_model.ranks()[r];
      lanes = std::max(lanes, rank.lanes);
      if (rank.worker) {
        m_workers.push_back(r);
      } else if (rank.server) {
        m_devices.push_back(r);
      }
    }
    m_lanes_given = m_model.ranks().front().lanes > 0;
    set_lanes(lanes);
    std::vector<double> sizes;
    for (const Tensor& t : inputs.workload.tensors) {
      sizes.push_back(static_cast<double>(t.bytes()));
      m_ends.push_back((m_ends.empty() ? 0 : m_ends.back()) + sizes.back());
    }
    m_network = measured_network();
    m_routing = solve_routing_tables(
        m_model.ranks(),
        [this](std::size_t from, std::size_t to, std::string* source) {
          return curve(from, to, source);
        },
        sizes, proxies.tolerance);
    for (const ProxyRoute& r : m_routing.routes) {
      m_partition = std::max(m_partition, r.partition_bytes);
    }
    if (options.part_bytes) {
      m_partition = static_cast<double>(*options.part_bytes);
      for (ProxyRoute& r : m_routing.routes) {
        r.partition_bytes = m_partition;
      }
    }
    m_shard = m_partition;
    const double forward =
        options.forward_seconds.value_or(inputs.workload.forward_seconds.value_or(0));
    const double backward =
        options.backward_seconds.value_or(inputs.workload.backward_seconds.value_or(0));
    if (forward + backward > 0 && !options.zero_compute) {
      m_passes = passes_of(m_layout, inputs.workload, forward, backward);
      m_forward = forward;
      m_backward = backward;
    } else if (options.order == Order::priority) {
      fail(ErrorKind::input,
           fmt::format("--order priority: workload '{}' has no forward and backward "
                       "times; give --forward and --backward",
                       inputs.workload.name));
    }
    if (!m_lanes_given && !m_model.one_machine() && !m_inside) {
      set_lanes(needed_lanes());
    }
  }

  Plan make() {
    m_update = first_update();
    choose_shards();
    Solved solved = solve();
    if (m_passes && m_options.order != Order::gradient) {
      // In gradient order the forward pass comes after all traffic.
      const Plan& first = m_options.strategy == "dense" ? solved.dense : solved.dual;
      m_traffic_seconds = std::max(first.prediction.mid_seconds - m_forward, m_backward);
      Solved other = solve();
      const bool always = m_options.order == Order::priority;
      take_if_faster(solved.dense, other.dense, always);
      take_if_faster(solved.whole, other.whole, always);
      take_if_faster(solved.dual, other.dual, always);
    }
    const auto& [dense, whole, dual] = solved;
    Plan plan = m_options.strategy == "dense" ? dense : dual;
    try_update_at_workers(plan);
    plan.strategy = m_options.strategy;
    if (m_proxies.one_queue) {
      plan.one_queue = true;
      plan.window_parts = plan.parts.size(); // a queue has room for all
    }
    add_candidates(plan, {{"coarse", &dual}, {"coarse_without_ring", &whole}, {"dense", &dense}});
    describe(plan);
    return plan;
  }

  Prediction predict_again(Plan plan) {
    const bool dual =
        std::any_of(plan.tensors.begin(), plan.tensors.end(), [&](const TensorRoute& t) {
          return t.by_workers != plan.tensors[0].by_workers;
        });
    set_lanes(plan.ranks.front().lanes / (dual ? 2 : 1)); // build() gives each ring its own
    predict(plan, plan.window_parts, k_most_writes);
    return plan.prediction;
  }

private:
  /// Ranks that are places inside a machine: its links are what lies between them.
  struct Inside {
    InsideOptions options; ///< workers and memory devices
    InsideModel model;
    std::vector<std::string> endpoints; ///< by rank
    std::vector<std::size_t> index;     ///< by rank: endpoint of the model
    PlayNetwork network;
  };
  [[nodiscard]] static std::unique_ptr<Inside> inside_of(const PlanInputs& inputs) {
    auto inside = std::make_unique<Inside>();
    InsideOptions& options = inside->options;
    options.relays.emplace();
    std::string machine;
    for (const RoleGroup& group : inputs.roles.groups) {
      if (group.endpoints.empty() != inputs.roles.groups.front().endpoints.empty() ||
          (!machine.empty() && group.machine != machine && !group.endpoints.empty())) {
        fail(ErrorKind::input,
             fmt::format("roles '{}': either all groups name endpoints of one machine or none does",
                         inputs.roles.name));
      }
      machine = group.machine;
      for (const std::string& id : group.endpoints) {
        inside->endpoints.push_back(id);
        (group.worker ? options.workers : *options.relays).push_back(id);
      }
    }
    if (inside->endpoints.empty()) {
      return nullptr;
    }
    inside->model = inside_model(inputs.profile, machine, options);
    for (const std::string& id : inside->endpoints) {
      const auto it = std::find_if(inside->model.endpoints.begin(), inside->model.endpoints.end(),
                                   [&](const InsideEndpoint& e) { return e.id == id; });
      inside->index.push_back(static_cast<std::size_t>(it - inside->model.endpoints.begin()));
    }
    inside->network = network_of(inside->model, inside->index);
    return inside;
  }
  /// Inside a machine nothing is asked of ports.
  [[nodiscard]] static CostModel::WhatIf what_if_of(const std::unique_ptr<Inside>& inside,
                                                    const PlanOptions& options) {
    CostModel::WhatIf what_if = options.what_if;
    for (std::size_t r = 0; inside && r < inside->model.resources.size(); ++r) {
      what_if.worker_port_bytes_per_s = std::max(what_if.worker_port_bytes_per_s.value_or(0),
                                                 inside->model.resources[r].bytes_per_second);
    }
    return what_if;
  }

  [[nodiscard]] Curve curve(std::size_t from, std::size_t to, std::string* source) const {
    return m_inside ? copy_curve(m_inputs.profile, m_inside->network, m_inside->endpoints, from, to,
                                 source)
                    : write_curve(m_inputs.profile, m_model, from, to, source);
  }

  /// One device for all; all through the proxies; and with the workers' ring.
  struct Solved {
    Plan dense, whole, dual;
  };
  [[nodiscard]] Solved solve() {
    const std::size_t all = m_ends.size();
    Solved solved;
    solved.dense = best_window(all, 1, true);
    solved.whole = best_of_directions(all);
    solved.dual = m_options.strategy == "dense" ? solved.whole : best_boundary(solved.whole);
    return solved;
  }
  static void take_if_faster(Plan& plan, Plan& other, bool always) {
    if (always || other.prediction.mid_seconds < plan.prediction.mid_seconds * (1 - k_worth)) {
      plan = std::move(other);
    }
  }

  void check_options() const {
    if (m_inputs.workload.tensors.empty() || m_layout.total_bytes == 0) {
      fail(ErrorKind::input,
           fmt::format("workload '{}' has no gradient bytes", m_inputs.workload.name));
    }
    if (m_options.async_steps || m_options.fixed_point) {
      fail(ErrorKind::usage, fmt::format("--strategy {}: leave out --async and --reduction fixed; "
                                         "ps_noncolocated has them",
                                         m_options.strategy));
    }
  }

  void set_lanes(int lanes) {
    m_model.set_lanes(lanes);
    m_lanes = static_cast<std::uint64_t>(lanes);
  }

  /// The fewest lanes with which no rank adds up slower than its port brings the operands.
  [[nodiscard]] int needed_lanes() const {
    double needed = 1;
    for (const bool dense : {false, true}) {
      const Plan plan = build(m_ends.size(), 1, dense, coarser_for(k_search_writes));
      const Load load = load_of_trees(plan, reckon::lower(plan));
      for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
        const double port = std::max(load.egress_bytes[r], load.ingress_bytes[r]) /
                            m_model.ranks()[r].port_bytes_per_s;
        const double rate = m_model
                                .reduce_rate(m_inputs.workload.tensors.front().dtype, 1,
                                             load.operands, static_cast<double>(plan.part_bytes))
                                .mid;
        if (port > 0) {
          needed = std::max(needed, std::ceil(load.summed_bytes[r] / rate / port - 1e-9));
        }
      }
    }
    return static_cast<int>(std::min(needed, static_cast<double>(m_model.cores())));
  }

  // ---------------------------------------------------------------- trees

  /// Which proxy each client uses, in the order of m_workers; empty: the ring of the workers.
  using Pattern = std::vector<std::size_t>;

  [[nodiscard]] Pattern pattern_of(std::size_t tensor, bool dense) const {
    Pattern pattern;
    const auto bytes = static_cast<double>(m_inputs.workload.tensors[tensor].bytes());
    for (const ProxyRoute& route : m_routing.routes) {
      pattern.push_back(dense ? m_devices.front() : route.proxy_of(bytes));
    }
    return pattern;
  }
  [[nodiscard]] std::vector<std::size_t> members_of(const Pattern& pattern) const {
    if (pattern.empty()) {
      return m_workers;
    }
    const std::set<std::size_t> proxies(pattern.begin(), pattern.end());
    return {proxies.begin(), proxies.end()};
  }

  /// The way round the ring of a pattern's members to `owner` (its number among them) and back
  /// round to all, in one of the two directions; clients hang from their proxies.
  [[nodiscard]] SumTree tree_of(const Pattern& pattern, std::size_t owner, bool backwards) const {
    const std::vector<std::size_t> members = members_of(pattern);
    const std::size_t n = members.size(), ranks = m_model.ranks().size();
    SumTree tree;
    tree.scheme = pattern.empty() ? fmt::format("workers' ring to rank {}", members[owner])
                  : n == 1        ? fmt::format("proxy rank {}", members[owner])
                                  : fmt::format("proxies' ring{} to rank {}",
                                         backwards ? " backwards" : "", members[owner]);
    tree.up.assign(ranks, k_none);
    tree.down.assign(ranks, k_none);
    const auto place = [&](std::size_t steps) { // from the owner on, in the ring's direction
      return members[(owner + (backwards ? n - steps % n : steps)) % n];
    };
    for (std::size_t s = 0; s < n; ++s) {
      tree.up[place(s)] = static_cast<std::int64_t>(s == 0 ? place(0) : place(s + 1));
      tree.down[place(s)] = static_cast<std::int64_t>(s == 0 ? place(0) : place(s - 1));
    }
    for (std::size_t c = 0; c < pattern.size(); ++c) {
      tree.up[m_workers[c]] = tree.down[m_workers[c]] = static_cast<std::int64_t>(pattern[c]);
    }
    return tree;
  }

  // ---------------------------------------------------------------- plans

  [[nodiscard]] double bytes_before(std::size_t tensor) const {
    return tensor == 0 ? 0 : m_ends[tensor - 1];
  }

  /// In gradient order, or by priority: what goes through the proxies and what goes round the
  /// workers' ring each as a link would best take it that moves all of it in m_traffic_seconds.
  [[nodiscard]] std::vector<std::size_t> order_of_tensors(std::size_t boundary) const {
    const std::size_t all = m_ends.size();
    std::vector<std::size_t> order(all);
    std::iota(order.begin(), order.end(), std::size_t{0});
    if (!m_traffic_seconds) {
      return order;
    }
    std::vector<double> ready(all);
    std::partial_sum(m_passes->backward_seconds.begin(), m_passes->backward_seconds.end(),
                     ready.begin());
    order.clear();
    for (const auto& [first, end] :
         {std::pair(std::size_t{0}, boundary), std::pair(boundary, all)}) {
      const double bytes = bytes_before(end) - bytes_before(first);
      std::vector<double> takes;
      for (std::size_t t = first; t < end; ++t) {
        takes.push_back((m_ends[t] - bytes_before(t)) / bytes * *m_traffic_seconds);
      }
      for (const std::size_t t :
           latest_first(std::span(ready).subspan(first, end - first), takes)) {
        order.push_back(first + t);
      }
    }
    return order;
  }

  /// Tensors before `boundary` go through the proxies, the others round the workers' ring.
  /// `coarser`: shards are so many times longer, for a quick look.
  [[nodiscard]] Plan build(std::size_t boundary, int directions, bool dense, double coarser) const {
    Plan plan;
    plan.strategy = dense ? "dense" : "coarse";
    plan.gradient_bytes = m_layout.total_bytes;
    for (const GradientLayout::Run& run : m_layout.runs) {
      plan.runs.push_back({run.offset_bytes, run.bytes, run.dtype});
    }
    plan.routing = m_routing.routes;
    if (dense) {
      for (ProxyRoute& r : plan.routing) {
        r.latency_proxy = r.bandwidth_proxy = m_devices.front();
        r.threshold_bytes.reset();
        r.crossings_bytes.clear();
      }
    }
    plan.passes = m_passes;
    plan.update = m_update;
    const bool dual = boundary > 0 && boundary < m_inputs.workload.tensors.size();
    using TreeKey = std::tuple<Pattern, std::size_t, bool>;
    std::map<TreeKey, std::size_t> trees;
    std::map<std::size_t, double> owned;                         // by rank
    std::map<bool, std::uint64_t> turn;                          // by who sums
    std::map<std::size_t, std::pair<double, double>> round_ring; // by owner: bytes each way
    plan.tensors.resize(m_inputs.workload.tensors.size());
    for (const std::size_t t : order_of_tensors(boundary)) {
      const Tensor& tensor = m_inputs.workload.tensors[t];
      const bool by_workers = t >= boundary;
      const Pattern pattern = by_workers ? Pattern() : pattern_of(t, dense);
      const std::vector<std::size_t> members = members_of(pattern);
      plan.tensors[t] = {tensor.name, by_workers, plan.parts.size(), 0};
      std::uint64_t offset = m_layout.tensor_offset_bytes[t];
      for (const std::uint64_t bytes :
           shards_of(tensor.bytes(), static_cast<std::uint64_t>(m_shard * coarser),
                     size_of(tensor.dtype))) {
        std::size_t owner = 0; // who has the least so far
        for (std::size_t m = 1; m < members.size(); ++m) {
          owner = owned[members[m]] < owned[members[owner]] ? m : owner;
        }
        owned[members[owner]] += static_cast<double>(bytes);
        const std::uint64_t number = turn[by_workers]++;
        // Of equal shards each owner's go one way and the other in turn.
        auto& [forth, back] = round_ring[members[owner]];
        const bool backwards = directions == 2 && members.size() > 2 && !by_workers && forth > back;
        (backwards ? back : forth) += static_cast<double>(bytes);
        const auto [tree, added] =
            trees.try_emplace({pattern, owner, backwards}, plan.trees.size());
        if (added) {
          plan.trees.push_back(tree_of(pattern, owner, backwards));
        }
        plan.trees[tree->second].share += static_cast<double>(bytes) / m_ends.back();
        plan.parts.offset_bytes.push_back(offset);
        plan.parts.bytes.push_back(bytes);
        plan.parts.server.push_back(members[owner]);
        plan.parts.tree.push_back(tree->second);
        // The workers' ring has lanes of its own: it does not wait behind what the proxies sum.
        plan.parts.lane.push_back(number % m_lanes + (dual && by_workers ? m_lanes : 0));
        offset += bytes;
        ++plan.tensors[t].parts;
      }
    }
    plan.part_bytes = *std::max_element(plan.parts.bytes.begin(), plan.parts.bytes.end());
    for (std::size_t r = 0; r < m_model.ranks().size(); ++r) {
      const RankModel& model = m_model.ranks()[r];
      PlanRank rank =
          m_inside ? rank_at(m_inputs.profile.topology, model.machine, m_inside->endpoints[r])
                   : PlanRank();
      rank.machine = model.machine;
      rank.rack = model.rack;
      rank.worker = model.worker;
      rank.server = owned[r] > 0;
      rank.lanes = static_cast<int>(m_lanes * (dual ? 2 : 1));
      rank.share_bytes = owned[r];
      rank.assigned_bytes = static_cast<std::uint64_t>(owned[r]);
      rank.port_bytes_per_second = m_inside ? 0 : model.port_bytes_per_s;
      plan.ranks.push_back(rank);
    }
    return plan;
  }

  [[nodiscard]] double writes_per_part() const {
    return 2.0 * static_cast<double>(m_workers.size() + m_devices.size() - 1);
  }

  /// With that window; its prediction, played where that is not too much.
  void predict(Plan& plan, std::uint64_t window, double most_writes) const {
    plan.window_parts = window;
    const Schedule schedule = reckon::lower(plan);
    const Traffic traffic = traffic_of(schedule);
    for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
      plan.ranks[r].egress_bytes = traffic.egress_bytes[r];
      plan.ranks[r].ingress_bytes = traffic.ingress_bytes[r];
    }
    PartShape shape;
    shape.part_bytes = static_cast<double>(plan.part_bytes);
    shape.part_count = static_cast<double>(plan.parts.size());
    shape.window_parts = static_cast<double>(window);
    shape.dtype = m_inputs.workload.tensors.front().dtype;
    Prediction& p = plan.prediction;
    if (m_model.one_machine()) {
      p = predict_shared(m_model, load_of_trees(plan, schedule), shape);
      add_shared_update(plan, p);
      if (m_passes) {
        add_passes(p, *m_passes, std::nullopt);
      }
      return;
    }
    p = {};
    const PlayNetwork network = network_for(shape.part_bytes);
    set_bound(p, schedule, network);
    const bool ports = !m_inside && !m_network;
    p.lo_seconds = p.mid_seconds = p.hi_seconds =
        p.bound_seconds / (ports ? m_model.port_efficiency(shape.part_bytes) : 1);
    p.terms = {{"transport", p.mid_seconds}, {"fill", 0}};
    std::optional<double> played;
    if (static_cast<double>(plan.parts.size()) * writes_per_part() <= most_writes) {
      played = play(schedule, network, cost_of_ops(shape.part_bytes)).total_seconds;
    }
    if (m_passes) {
      add_passes(p, *m_passes, played);
    } else if (played) {
      replace_by_played(p, *played);
    }
    const auto [slow, fast] = port_spread();
    p.lo_seconds = std::max(p.bound_seconds, std::min(p.lo_seconds, p.mid_seconds / fast));
    p.hi_seconds = std::max(p.hi_seconds, p.mid_seconds / slow);
  }

  [[nodiscard]] OpCost cost_of_ops(double part_bytes) const {
    return m_inside ? reckon::op_cost(m_inside->model, m_inside->index)
                    : reckon::op_cost(m_model, part_bytes);
  }

  /// What a checkpoint costs; nothing where that is not known, or too much to play. How fast GPUs
  /// copy is in no profile.
  [[nodiscard]] std::optional<Quantity> checkpoint_cost(const Plan& plan) const {
    const Schedule schedule = reckon::lower(plan);
    const auto part_bytes = static_cast<double>(plan.part_bytes);
    const std::vector<double> saved = saved_bytes(schedule);
    for (std::size_t r = 0; r < saved.size(); ++r) {
      if (saved[r] > 0 && plan.ranks[r].endpoint_kind == "gpu") {
        return std::nullopt;
      }
    }
    if (m_model.one_machine()) {
      return shared_checkpoint_cost(m_model, saved, part_bytes);
    }
    if (static_cast<double>(plan.parts.size()) * writes_per_part() > k_most_writes) {
      return std::nullopt;
    }
    return played_checkpoint_cost(m_model, schedule, network_for(part_bytes),
                                  cost_of_ops(part_bytes), part_bytes);
  }

  /// What lies between the ranks, for writes of about `part_bytes`.
  [[nodiscard]] PlayNetwork network_for(double part_bytes) const {
    PlayNetwork network = m_inside    ? m_inside->network
                          : m_network ? m_network->network
                                      : port_network(m_model, part_bytes);
    network.cut_evenly(network.quantum_bytes);
    return network;
  }
  [[nodiscard]] std::string station_name(std::size_t station) const {
    if (m_inside) {
      return m_inside->model.resources[station].name;
    }
    if (m_network) {
      return m_network->stations[station];
    }
    return station < 2 * m_model.ranks().size() ? fmt::format("the port of rank {}", station / 2)
                                                : "an uplink";
  }

  /// What the plan makes pass the busiest station takes at least so long.
  void set_bound(Prediction& p, const Schedule& schedule, const PlayNetwork& network) const {
    std::vector<double> bytes(network.station_bytes_per_s.size(), 0);
    for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
      for (const LaneProgram& lane : schedule.ranks[r].lanes) {
        for (const Op& op : lane.ops()) {
          if (op.kind == OpKind::write) {
            for (const std::uint32_t station : network.paths[r][op.peer]) {
              bytes[station] += static_cast<double>(op.bytes);
            }
          }
        }
      }
    }
    std::size_t busiest = 0;
    double rate = 1;
    for (std::size_t s = 0; s < bytes.size(); ++s) {
      const bool own = !network.station_busy.empty() && !network.station_busy[s].empty();
      const double carries =
          own ? network.station_busy[s].bytes_per_s() : network.station_bytes_per_s[s];
      if (bytes[s] / carries > p.bound_seconds) {
        p.bound_seconds = bytes[s] / carries;
        busiest = s;
        rate = carries;
      }
    }
    p.bound_by = fmt::format("{}: {} at {}", station_name(busiest),
                             to_text(Bytes(static_cast<std::uint64_t>(bytes[busiest]))),
                             to_text(Bandwidth::bytes_per_s(rate)));
    p.relief = fmt::format("a faster way there, or fewer bytes on it: another dual split "
                           "(--proxy-bytes), more memory devices");
  }

  /// On one machine the processors take turns at the steps, too.
  void add_shared_update(const Plan& plan, Prediction& p) const {
    if (!plan.update) {
      return;
    }
    const auto cores = static_cast<int>(m_model.cores());
    const double stepped =
        m_ends.back() *
        (plan.update->place == UpdatePlace::worker ? static_cast<double>(m_workers.size()) : 1);
    const Rate rate =
        m_model.step_rate(m_model.ranks().front().machine, plan.update->optimizer, cores);
    const double threads = static_cast<double>(cores);
    p.lo_seconds += stepped / (rate.hi * threads);
    p.mid_seconds += stepped / (rate.mid * threads);
    p.hi_seconds += stepped / (rate.lo * threads);
    p.terms.push_back({"update", stepped / (rate.mid * threads)});
  }

  /// COARSE's storage holds the parameters on the memory devices: the step is made there, unless
  /// it was asked for at the workers.
  [[nodiscard]] std::optional<UpdatePlan> first_update() const {
    if (!m_options.optimizer) {
      return std::nullopt;
    }
    for (const Tensor& t : m_inputs.workload.tensors) {
      if (t.dtype != DType::fp32) {
        fail(ErrorKind::input,
             fmt::format("--optimizer {}: steps are fp32, and workload '{}' has gradients of {}; "
                         "leave the step out",
                         name_of(*m_options.optimizer), m_inputs.workload.name, name_of(t.dtype)));
      }
    }
    const bool alone = m_workers.size() == 1; // nothing is summed anywhere
    return UpdatePlan{*m_options.optimizer, m_options.update_at.value_or(
                                                alone ? UpdatePlace::worker : UpdatePlace::server)};
  }
  void try_update_at_workers(Plan& plan) const {
    if (!plan.update || m_options.update_at || m_workers.size() == 1) {
      return;
    }
    Plan other = plan;
    other.update->place = UpdatePlace::worker;
    predict(other, other.window_parts, k_most_writes);
    if (other.prediction.mid_seconds < plan.prediction.mid_seconds * (1 - k_worth_moving)) {
      plan = std::move(other);
    }
  }

  /// What the ranks of a tree plan move and add up on one machine.
  [[nodiscard]] static Load load_of_trees(const Plan& plan, const Schedule& schedule) {
    Load load;
    const std::size_t ranks = plan.ranks.size();
    load.egress_bytes.assign(ranks, 0);
    load.ingress_bytes.assign(ranks, 0);
    load.summed_bytes.assign(ranks, 0);
    for (std::size_t r = 0; r < ranks; ++r) {
      for (const LaneProgram& lane : schedule.ranks[r].lanes) {
        for (const Op& op : lane.ops()) {
          const auto bytes = static_cast<double>(op.bytes);
          if (op.kind == OpKind::write) {
            load.egress_bytes[r] += bytes;
            load.ingress_bytes[op.peer] += bytes;
            const bool gradient =
                plan.ranks[op.peer].worker && op.destination.buffer == k_gradient_buffer;
            load.slot_bytes += gradient ? 0 : bytes;
          } else if (op.kind == OpKind::reduce) {
            load.summed_bytes[r] += bytes * (op.source_count - 1);
            load.operands = std::max<std::size_t>(load.operands, op.source_count);
          }
        }
      }
    }
    return load;
  }

  /// How much slower and faster than their medians the ports were seen to be, at most.
  [[nodiscard]] std::pair<double, double> port_spread() const {
    double slow = 1, fast = 1;
    CellKey pattern;
    pattern.test = "port_bandwidth";
    for (const Cell* cell : m_inputs.profile.select(pattern)) {
      if (cell->samples.size() < 3 || cell->p50 <= 0 ||
          cell->key.transport != m_model.transport()) {
        continue;
      }
      const auto [low, high] = std::minmax_element(cell->samples.begin(), cell->samples.end());
      slow = std::min(slow, *low / cell->p50);
      fast = std::max(fast, *high / cell->p50);
    }
    constexpr double k_least = 0.5, k_most = 2; // one disturbed sample says no more
    return {std::max(slow, k_least), std::min(fast, k_most)};
  }

  [[nodiscard]] double coarser_for(double most_writes) const {
    double coarser = 1;
    const double bytes = m_ends.back();
    while (bytes / (m_shard * coarser) * writes_per_part() > most_writes) {
      coarser *= 2;
    }
    return coarser;
  }

  [[nodiscard]] Plan best_window(std::size_t boundary, int directions, bool dense) const {
    if (m_options.window_parts) {
      Plan plan = build(boundary, directions, dense, 1);
      predict(plan, *m_options.window_parts, k_most_writes);
      return plan;
    }
    std::uint64_t best = k_windows.back();
    double least = std::numeric_limits<double>::infinity();
    Plan quick = build(boundary, directions, dense, coarser_for(k_search_writes));
    for (const std::uint64_t window : k_windows) {
      predict(quick, window, 2 * k_search_writes);
      if (quick.prediction.mid_seconds < least * (1 - k_worth)) {
        least = quick.prediction.mid_seconds;
        best = window;
      }
    }
    Plan plan = build(boundary, directions, dense, 1);
    predict(plan, best, k_most_writes);
    return plan;
  }

  /// Equation 30's S', or less of it.
  void choose_shards() {
    m_shard = m_partition;
    if (m_options.part_bytes || m_proxies.paper_shards || m_model.one_machine()) {
      return;
    }
    const bool dense = m_options.strategy == "dense";
    double least = std::numeric_limits<double>::infinity(), best = m_partition;
    for (double size = m_partition; size >= k_least_shard; size /= 4) {
      m_shard = size;
      if (m_ends.back() / size * writes_per_part() > 2 * k_search_writes &&
          least < std::numeric_limits<double>::infinity()) {
        break;
      }
      const Plan plan = best_window(m_ends.size(), 1, dense);
      if (plan.prediction.mid_seconds < least * (1 - k_worth_cutting)) {
        least = plan.prediction.mid_seconds;
        best = size;
      }
    }
    m_shard = best;
  }

  [[nodiscard]] Plan best_of_directions(std::size_t boundary) {
    if (m_proxies.ring_directions) {
      m_directions = *m_proxies.ring_directions;
      return best_window(boundary, m_directions, false);
    }
    Plan one = best_window(boundary, 1, false);
    Plan two = best_window(boundary, 2, false);
    m_directions = two.prediction.mid_seconds < one.prediction.mid_seconds * (1 - k_worth) ? 2 : 1;
    return m_directions == 2 ? two : one;
  }

  /// Where the profile knows pairs: they may differ from what their ports say.
  [[nodiscard]] std::optional<PairNetwork> measured_network() const {
    const bool pairs = std::any_of(
        m_inputs.profile.cells.begin(), m_inputs.profile.cells.end(), [](const Cell& cell) {
          return cell.key.test == "pair_write" || cell.key.test == "pair_bandwidth";
        });
    if (m_inside || m_model.one_machine() || !pairs || m_options.what_if.worker_port_bytes_per_s) {
      return std::nullopt;
    }
    std::vector<std::string> machines;
    for (const RankModel& r : m_model.ranks()) {
      machines.push_back(r.machine);
    }
    return pair_network(m_inputs.profile, machines, m_model.transport());
  }

  // ---------------------------------------------------------------- dual synchronization

  /// The whole number of tensors whose bytes come nearest to m.
  [[nodiscard]] std::size_t boundary_at(double bytes) const {
    bytes = std::min(bytes, m_ends.back());
    std::size_t best = 0;
    double distance = bytes;
    for (std::size_t t = 0; t < m_ends.size(); ++t) {
      if (std::abs(m_ends[t] - bytes) < distance) {
        distance = std::abs(m_ends[t] - bytes);
        best = t + 1;
      }
    }
    return best;
  }
  /// The least rate of a write between two ranks of a group, in a ring in the order of ranks.
  [[nodiscard]] double ring_bandwidth(const std::vector<std::size_t>& members) const {
    double least = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; members.size() > 1 && i < members.size(); ++i) {
      const Curve between = curve(members[i], members[(i + 1) % members.size()], nullptr);
      least = std::min(least, between.marginal_bandwidth().as_bytes_per_s());
    }
    return least;
  }
  [[nodiscard]] double client_bandwidth() const {
    double least = std::numeric_limits<double>::infinity();
    for (const ProxyRoute& r : m_routing.routes) {
      const Curve between = curve(r.client, r.bandwidth_proxy, nullptr);
      least = std::min(least, between.marginal_bandwidth().as_bytes_per_s());
    }
    return least;
  }

  /// The best of: what the equations give, all through the proxies, and some boundaries between.
  [[nodiscard]] Plan best_boundary(const Plan& whole) {
    const std::size_t all = m_ends.size();
    if (m_workers.size() > 1 && m_devices.size() > 1) {
      m_dual.workers = m_workers.size();
      m_dual.devices = std::min(m_devices.size(), m_workers.size());
      m_dual.bytes = m_ends.back();
      m_dual.proxy_bytes_per_s = ring_bandwidth(m_devices);
      m_dual.gpu_bytes_per_s = ring_bandwidth(m_workers);
      m_dual.client_bytes_per_s = client_bandwidth();
      m_dual.forward_s = m_forward;
      m_dual.backward_s = m_backward;
      m_dual.shared_link = true; // a rank has one port
      m_paper = solve_dual_sync(m_dual, DualSyncModel::paper);
      m_corrected = solve_dual_sync(m_dual, DualSyncModel::corrected);
    }
    if (m_proxies.proxy_bytes) {
      return best_window(boundary_at(*m_proxies.proxy_bytes), m_directions, false);
    }
    if (m_workers.size() < 2 || m_proxies.one_queue) {
      return whole;
    }
    std::set<std::size_t> boundaries;
    for (const auto& solved : {m_paper, m_corrected}) {
      if (solved) {
        boundaries.insert(boundary_at(solved->proxy_bytes));
      }
    }
    constexpr int k_between = 8;
    for (int i = 0; i < k_between; ++i) {
      boundaries.insert(boundary_at(m_ends.back() * i / k_between));
    }
    boundaries.erase(all);
    const double coarser = coarser_for(k_search_writes);
    const std::uint64_t window = whole.window_parts;
    const auto quick = [&](std::size_t boundary) {
      Plan plan = build(boundary, m_directions, false, coarser);
      predict(plan, window, 2 * k_search_writes);
      return plan.prediction.mid_seconds;
    };
    std::size_t best = all;
    double least = quick(all);
    for (const std::size_t boundary : boundaries) {
      if (const double seconds = quick(boundary); seconds < least * (1 - k_worth)) {
        least = seconds;
        best = boundary;
      }
    }
    return best == all ? whole : best_window(best, m_directions, false);
  }

  // ---------------------------------------------------------------- description

  /// The other strategies' formulas know ports. Where the ways between pairs are slower than those,
  /// they are predicted as the plans here are, with parts as long as those want them.
  void hold_against_pairs(Candidate& candidate, PlanOptions options) const {
    if (!m_network || !candidate.prediction) {
      return;
    }
    options.strategy = candidate.strategy;
    std::optional<Prediction> best;
    Plan plan = make_plan(m_inputs, options);
    const double shortest = std::max(static_cast<double>(plan.part_bytes),
                                     m_ends.back() * writes_per_part() / (2 * k_search_writes));
    constexpr double k_longer = 4; // and that of it again
    for (const double longer : {1.0, k_longer, k_longer * k_longer}) {
      constexpr double k_least = 4096;
      options.part_bytes =
          std::bit_ceil(static_cast<std::uint64_t>(std::max(k_least, shortest * longer)));
      plan = make_plan(m_inputs, options);
      const std::string relief = plan.prediction.relief;
      predict(plan, plan.window_parts, k_most_writes);
      plan.prediction.relief = relief;
      if (!best || plan.prediction.mid_seconds < best->mid_seconds) {
        best = plan.prediction;
      }
    }
    if (best->mid_seconds > candidate.prediction->mid_seconds * (1 + k_pairs_bind)) {
      candidate.prediction = best;
    }
  }

  void add_candidates(Plan& plan,
                      const std::vector<std::pair<std::string, const Plan*>>& ours) const {
    PlanOptions others = m_options;
    others.strategy = "auto";
    others.part_bytes.reset();
    others.window_parts.reset();
    std::vector<Candidate> candidates;
    for (const auto& [name, made] : ours) {
      const bool same = name == "coarse_without_ring" && m_options.strategy == "dense";
      if (!same) {
        candidates.push_back({name, made->prediction, ""});
      }
    }
    if (m_proxies.all_candidates && m_inside) { // the best of all trees over the same places
      InsidePlanOptions inside;
      inside.machine = m_model.ranks().front().machine;
      inside.inside = m_inside->options;
      Plan best = plan_inside({m_inputs.profile, m_inputs.workload, m_inputs.profile_link,
                               m_inputs.workload_link, m_inputs.roles_link},
                              inside);
      candidates.push_back({best.strategy, best.prediction, ""});
    } else if (m_proxies.all_candidates) {
      for (Candidate& c : make_plan(m_inputs, others).candidates) {
        hold_against_pairs(c, others);
        candidates.push_back(std::move(c));
      }
    }
    plan.candidates = std::move(candidates);
    double second = std::numeric_limits<double>::infinity();
    for (const Candidate& c : plan.candidates) {
      if (c.strategy != plan.strategy && c.prediction && c.prediction->mid_seconds < second) {
        second = c.prediction->mid_seconds;
        plan.runner_up = c.strategy;
      }
    }
    if (!plan.runner_up.empty() && plan.prediction.mid_seconds > 0) {
      plan.margin = second / plan.prediction.mid_seconds - 1;
      if (plan.margin < -k_worth) {
        plan.margin_text =
            fmt::format("{} is predicted {:.1f} % faster; this strategy was asked for",
                        plan.runner_up, -100 * plan.margin);
      }
    }
  }

  [[nodiscard]] std::string transport_of(const Plan& plan) const {
    if (!m_inside || !m_options.transport.empty()) {
      return m_model.transport();
    }
    const bool gpu = std::any_of(plan.ranks.begin(), plan.ranks.end(),
                                 [](const PlanRank& r) { return r.endpoint_kind == "gpu"; });
    return gpu ? "cuda" : "host";
  }

  void describe(Plan& plan) const {
    plan.profile = m_inputs.profile_link;
    plan.workload = m_inputs.workload_link;
    plan.roles = m_inputs.roles_link;
    plan.transport = transport_of(plan);
    plan.options = {
        {"strategy", m_options.strategy},
        {"workers", std::to_string(m_workers.size())},
        {"servers", std::to_string(m_devices.size())},
        {"tolerance", fmt::format("{}", m_proxies.tolerance)},
        {"part_bytes", m_options.part_bytes ? std::to_string(*m_options.part_bytes) : "auto"},
        {"window_parts", m_options.window_parts ? std::to_string(*m_options.window_parts) : "auto"},
        {"proxy_bytes", !m_proxies.proxy_bytes ? "auto"
                        : *m_proxies.proxy_bytes >= m_ends.back()
                            ? "all"
                            : fmt::format("{}", *m_proxies.proxy_bytes)},
        {"transport", m_options.transport.empty() ? "auto" : m_options.transport}};
    if (plan.one_queue) {
      plan.options["queues"] = "fcfs";
    }
    if (m_lanes_given && !m_inputs.roles_link) {
      plan.options["lanes"] = std::to_string(m_inputs.roles.groups.front().lanes);
    }
    if (m_proxies.paper_shards) {
      plan.options["shards"] = "paper";
    }
    if (m_proxies.ring_directions) {
      plan.options["ring_directions"] = std::to_string(*m_proxies.ring_directions);
    }
    if (m_options.zero_compute) {
      plan.options["zero_compute"] = "yes";
    }
    for (const auto& [name, port] :
         {std::pair("port_bandwidth", m_options.what_if.worker_port_bytes_per_s),
          std::pair("server_port_bandwidth", m_options.what_if.server_port_bytes_per_s)}) {
      if (port) {
        plan.options[name] = fmt::format("{} B/s", *port);
      }
    }
    if (plan.update) {
      plan.options["optimizer"] = name_of(plan.update->optimizer);
      plan.options["update"] = m_options.update_at ? name_of(*m_options.update_at) : "auto";
      if (const auto cost = checkpoint_cost(plan)) {
        plan.quantities.push_back(*cost);
      }
    }
    if (m_passes) {
      plan.options["forward"] = fmt::format("{} s", m_forward);
      plan.options["backward"] = fmt::format("{} s", m_backward);
      plan.options["order"] = m_options.order == Order::gradient   ? "gradient"
                              : m_options.order == Order::priority ? "priority"
                                                                   : "auto";
      plan.quantities.push_back(
          {"exposed_seconds",
           plan.prediction.mid_seconds - m_passes->total_seconds(),
           std::is_sorted(plan.parts.offset_bytes.begin(), plan.parts.offset_bytes.end())
               ? "equation 18, parts in gradient order"
               : "equation 18, parts by priority",
           {{"forward", m_forward}, {"backward", m_backward}}});
    }
    double by_proxies = 0;
    for (std::size_t t = 0; t < plan.tensors.size(); ++t) {
      by_proxies += plan.tensors[t].by_workers
                        ? 0
                        : static_cast<double>(m_inputs.workload.tensors[t].bytes());
    }
    plan.quantities.push_back(
        {"proxy_bytes", by_proxies, "of the tensors that go through the proxies", {}});
    plan.quantities.push_back(
        {"worker_ring_bytes", m_ends.back() - by_proxies, "of those that the workers sum", {}});
    const auto add_dual = [&](const char* name, const std::optional<DualSplit>& solved,
                              const char* equation) {
      if (solved) {
        plan.quantities.push_back({name,
                                   solved->proxy_bytes,
                                   equation,
                                   {{"n", m_dual.bytes},
                                    {"p", static_cast<double>(m_dual.workers)},
                                    {"q", static_cast<double>(m_dual.devices)},
                                    {"B_proxy", m_dual.proxy_bytes_per_s},
                                    {"B_worker", m_dual.gpu_bytes_per_s},
                                    {"B_client", *m_dual.client_bytes_per_s}}});
      }
    };
    if (m_options.strategy != "dense") {
      add_dual("paper_proxy_bytes", m_paper, "equation 32: COARSE III-F as printed");
      add_dual("corrected_proxy_bytes", m_corrected,
               "equation 33: with the clients' push and pull");
    }
    plan.quantities.push_back(
        {"partition_bytes",
         m_partition,
         m_options.part_bytes ? "as given"
                              : fmt::format("equation 30: the least size within {:g} % of the full "
                                            "bandwidth, of all clients the greatest",
                                            100 * m_proxies.tolerance),
         {}});
    plan.quantities.push_back({"shard_bytes",
                               m_shard,
                               m_shard == m_partition
                                   ? "least length of a shard"
                                   : "least length of a shard, by the predicted time: several are "
                                     "under way at once",
                               {{"parts", static_cast<double>(plan.parts.size())}}});
    for (const std::string& source : m_routing.sources) {
      plan.quantities.push_back({"profile", 0, source, {}});
    }
    for (const std::string& source : m_model.sources()) {
      plan.quantities.push_back({"profile", 0, source, {}});
    }
    for (const std::string& text : m_routing.ambiguous) {
      plan.quantities.push_back({"several_crossings", 1, text, {}});
    }
  }

  const PlanInputs& m_inputs;
  const PlanOptions& m_options;
  const ProxyOptions& m_proxies;
  GradientLayout m_layout;
  std::unique_ptr<Inside> m_inside;
  CostModel m_model;
  std::vector<std::size_t> m_workers, m_devices; ///< ranks
  std::uint64_t m_lanes = 1;
  bool m_lanes_given = false;
  std::vector<double> m_ends; ///< by tensor: bytes of the gradient up to its end, without gaps
  std::optional<PairNetwork> m_network;
  RoutingTables m_routing;
  double m_partition = 0; ///< S' of all clients, or as asked for
  double m_shard = 0;     ///< least bytes of a shard
  std::optional<Passes> m_passes;
  double m_forward = 0, m_backward = 0;
  int m_directions = 1;
  std::optional<double> m_traffic_seconds; ///< tensors go by priority, guessed to take so long
  std::optional<UpdatePlan> m_update;
  DualSync m_dual;
  std::optional<DualSplit> m_paper, m_corrected;
};

} // namespace

bool is_proxy_strategy(std::string_view name) {
  return name == "coarse" || name == "dense";
}

Plan plan_proxies(const PlanInputs& inputs, const PlanOptions& options,
                  const ProxyOptions& proxies) {
  return Planner(inputs, options, proxies).make();
}

Prediction predict_proxies(const PlanInputs& inputs, const PlanOptions& options,
                           const ProxyOptions& proxies, const Plan& plan) {
  return Planner(inputs, options, proxies).predict_again(plan);
}

} // namespace reckon
