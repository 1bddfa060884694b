// SPDX-License-Identifier: Apache-2.0
#include "strategies/torus/planner.hpp"

#include "core/error.hpp"
#include "core/indices.hpp"
#include "core/units.hpp"
#include "documents/own_machines.hpp"
#include "equations/torus.hpp"
#include "strategies/endpoint/overlap.hpp"
#include "strategies/forest/program.hpp"
#include "strategies/lower.hpp"
#include "strategies/predict.hpp"
#include "strategies/prediction.hpp"
#include "strategies/provenance.hpp"
#include "strategies/torus/network.hpp"
#include "strategies/torus/places.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

namespace reckon {
namespace {

constexpr std::array<const char*, 2> k_strategies{"torus", "torus_scatter"};
/// Writes that are played on an endpoint's links: of three turns of all servers and ways, within
/// these. Passes are played from their first part to their last or not at all.
constexpr double k_fewest_writes = 100'000, k_most_writes = 400'000, k_writes_with_passes = 400'000;
/// Windows of a beginning, to compare plans.
constexpr double k_compared_bursts = 7;
/// Of the plan that is taken. What goes on from a beginning may be a tenth too long: parts of 4 KiB
/// of 64 MiB on 64 nodes are played wholly.
constexpr double k_thorough_writes = 2'100'000;
constexpr std::uint64_t k_least_part_bytes = 4U << 10U, k_most_part_bytes = 16U << 20U;
/// Of machines' ports: shorter writes cost processors more than profiles say.
constexpr std::uint64_t k_least_port_part_bytes = 16U << 10U;
/// Smaller parts and other windows must be worth it.
constexpr double k_faster = 0.002;

bool worth_it(const Plan& plan, const Plan& instead_of) {
  return plan.prediction.mid_seconds < instead_of.prediction.mid_seconds * (1 - k_faster);
}

Job job_of(const Workload& workload, const PlanOptions& options, std::uint64_t ranks) {
  Job job = job_without_ranks(workload, options);
  job.workers = indices(ranks);
  return job;
}

void check_options(const PlanOptions& options, std::uint64_t ranks, std::uint64_t workers) {
  const auto refuse = [&](bool given, const char* what, const char* instead) {
    if (given) {
      fail(ErrorKind::usage, fmt::format("--strategy {}: {}; {}", options.strategy, what, instead));
    }
  };
  refuse(options.optimizer.has_value() || options.fixed_point.has_value() ||
             options.async_steps.has_value(),
         "such a plan ends with the sums", "leave out --optimizer, --async and --reduction fixed");
  refuse(options.wire.has_value(), "no node of it rounds", "leave out --wire");
  refuse(options.order == Order::priority, "parts go in gradient order",
         "leave out --order priority");
  refuse(options.contention.has_value(), "such plans are predicted without --contention",
         "leave it out");
  refuse(ranks != workers, "its --shape says how many ranks there are, and all of them work",
         "leave out --workers and --servers, or give --roles with as many workers as --shape has "
         "nodes");
}

class Planner {
public:
  Planner(const PlanInputs& inputs, const PlanOptions& options,
          const std::array<std::uint64_t, 3>& shape)
      : m_inputs(inputs), m_options(options), m_places(shape), m_shape(shape),
        m_configuration(inputs.profile.endpoint
                            ? configuration_named(*inputs.profile.endpoint, options.configuration)
                            : nullptr),
        m_configured(
            m_configuration != nullptr
                ? configured(inputs.workload, *inputs.profile.endpoint, shape, *m_configuration)
                : ConfiguredWorkload{inputs.workload}),
        m_job(job_of(m_configured.workload, options, m_places.size())) {
    if (m_configuration != nullptr && !m_configuration->communication &&
        m_configuration->mover == EndpointMover::cores && m_job.passes) {
      m_job.passes = one_after_the_other(*m_job.passes);
    }
    std::uint64_t workers = 0, ranks = 0;
    for (const RoleGroup& group : inputs.roles.groups) {
      ranks += group.count;
      workers += group.worker ? group.count : 0;
    }
    check_options(options, m_places.size(), ranks == workers ? workers : 0);
    m_lanes_given = given_lanes(inputs.roles) > 0;
    m_lanes = std::max(1, given_lanes(inputs.roles));
    if (inputs.profile.endpoint) {
      if (options.what_if.worker_port_bytes_per_s) {
        fail(ErrorKind::usage,
             fmt::format("--strategy {} --port-bandwidth: the links are those of the endpoint in "
                         "profile '{}', which has no ports; leave --port-bandwidth out",
                         options.strategy, inputs.profile.name));
      }
      for (std::size_t d = 0; d < m_rates.size(); ++d) {
        const Endpoint& endpoint = *inputs.profile.endpoint;
        m_rates[d] = endpoint.link_efficiency * endpoint.rings[d].bytes_per_second;
      }
      m_scatter = best_scatter(m_shape, m_rates);
      Between links = torus_between(*inputs.profile.endpoint, shape, m_configuration);
      LeastTime least = least_over(links);
      m_ways.emplace(inputs.profile, std::move(links), std::move(least));
    } else {
      m_ways.emplace(inputs, options);
      if (m_ways->places() != nullptr) {
        fail(ErrorKind::usage, fmt::format("--strategy {}: the ranks are machines, not places in "
                                           "one; use roles without endpoints",
                                           options.strategy));
      }
      m_lanes = m_lanes_given ? m_lanes : needed_lanes();
      m_ways->set_lanes(m_lanes);
    }
  }

  [[nodiscard]] Plan make() const {
    std::vector<Plan> plans;
    for (const char* const strategy : k_strategies) {
      if (m_options.progress) {
        m_options.progress(strategy, static_cast<double>(plans.size()) /
                                         static_cast<double>(k_strategies.size()));
      }
      plans.push_back(best(strategy));
    }
    const bool any = m_options.strategy == "auto";
    const auto taken =
        any ? std::min_element(plans.begin(), plans.end(),
                               [](const Plan& a, const Plan& b) {
                                 return a.prediction.mid_seconds < b.prediction.mid_seconds;
                               })
            : std::find_if(plans.begin(), plans.end(),
                           [&](const Plan& plan) { return plan.strategy == m_options.strategy; });
    Plan plan = *taken;
    for (const Plan& each : plans) {
      plan.candidates.push_back({each.strategy, each.prediction, ""});
    }
    if (on_ports()) { // on machines' ports all else that they can do stands beside it
      PlanOptions others = m_options;
      others.strategy = "auto";
      if (!any) {
        others.part_bytes.reset();
        others.window_parts.reset();
      }
      Plan best = make_plan(m_inputs, others);
      plan.candidates.insert(plan.candidates.end(), best.candidates.begin(), best.candidates.end());
      if (any && worth_it(best, plan)) {
        best.candidates = std::move(plan.candidates);
        compare_with_candidates(best);
        best.options["shape"] = shape_text();
        return best;
      }
    }
    compare_with_candidates(plan);
    describe(plan);
    return plan;
  }

private:
  [[nodiscard]] std::string shape_text() const {
    return fmt::format("{}x{}x{}", m_shape[0], m_shape[1], m_shape[2]);
  }

  /// Of one strategy: the part size and the window with the least predicted time. Sizes get
  /// smaller until that has twice not been worth it. Shorter parts need more of them under way to
  /// cover latencies, so the window only gets wider; not on ports, where more of them than are
  /// needed cost more than a play says.
  [[nodiscard]] Plan best(const char* strategy) const {
    std::optional<Plan> best;
    std::uint64_t window = m_places.size();
    std::size_t parts_before = 0;
    const std::uint64_t least =
        m_options.part_bytes.value_or(on_ports() ? k_least_port_part_bytes : k_least_part_bytes);
    int in_vain = 0;
    for (std::uint64_t size = m_options.part_bytes.value_or(k_most_part_bytes);
         size >= least && in_vain < 2; size /= 2) {
      const Plan parts = cut_and_assign(strategy, size);
      const std::uint64_t all = parts.parts.size();
      const bool played = can_be_played(parts);
      if (best && !played) {
        break; // a bound is no time to compare with
      }
      if (std::exchange(parts_before, all) == all) {
        continue;
      }
      // What no play finds: four of each node hide latencies and hardly run ahead.
      window = !played ? 4 * m_places.size() : on_ports() ? m_places.size() : window;
      Plan of_size = predicted(parts, m_options.window_parts.value_or(std::min(window, all)));
      while (played && !m_options.window_parts && of_size.window_parts < all) {
        Plan wider = predicted(parts, std::min(2 * of_size.window_parts, all));
        if (!worth_it(wider, of_size)) {
          break;
        }
        window = wider.window_parts;
        of_size = std::move(wider);
      }
      if (!best || worth_it(of_size, *best)) {
        best = std::move(of_size);
        in_vain = 0;
      } else {
        ++in_vain;
      }
    }
    return on_ports() ? *best : predicted(*best, best->window_parts, true);
  }

  [[nodiscard]] bool on_ports() const { return m_ways->has_model(); }

  [[nodiscard]] Plan predicted(Plan plan, std::uint64_t window, bool taken = false) const {
    plan.window_parts = window;
    predict(plan, m_job, *m_ways, window, effort(plan, taken));
    plan.prediction.relief = on_ports() ? "a faster port there, or another shape (--shape)"
                                        : "faster links there, or another shape (--shape)";
    return plan;
  }

  /// Lanes that either strategy needs on machines' ports. Ranks that share a machine have one: they
  /// already are several threads.
  [[nodiscard]] int needed_lanes() const {
    if (m_ways->one_machine()) {
      return 1;
    }
    constexpr std::uint64_t k_usual_part_bytes = 1U << 20U; // the part size is not known yet
    int needed = 1;
    for (const char* const strategy : k_strategies) {
      const Plan plan = together(cut_and_assign(strategy, k_usual_part_bytes));
      needed =
          std::max(needed, lanes_needed(m_ways->model(), load_of(plan, lower(plan)),
                                        m_job.workload.tensors.front().dtype, k_usual_part_bytes));
    }
    return needed;
  }

  [[nodiscard]] Plan cut_and_assign(const char* strategy, std::uint64_t part_bytes) const {
    Plan plan;
    plan.strategy = strategy;
    plan.torus = TorusPlan{m_shape, {}};
    const bool scatters = strategy != k_strategies[0];
    const std::vector<SharedWay> ways =
        scatters && !m_scatter.empty() ? m_scatter : torus_ways(strategy);
    plan.parts = cut(m_job.layout, m_inputs.workload, part_bytes, m_options.cutting,
                     m_places.size() * ways.size());
    plan.gradient_bytes = m_job.layout.total_bytes;
    plan.runs = m_job.layout.runs;
    plan.part_bytes = *std::max_element(plan.parts.bytes.begin(), plan.parts.bytes.end());
    for (const RoleGroup& group : m_inputs.roles.groups) {
      for (std::uint64_t i = 0; i < group.count; ++i) {
        plan.ranks.push_back(m_ways->place_of(plan.ranks.size()));
        plan.ranks.back().machine = group.machine;
        plan.ranks.back().worker = true;
        plan.ranks.back().lanes = m_lanes;
      }
    }
    plan.passes = m_job.passes;
    assign_torus(plan, ways);
    return plan;
  }

  /// In which every server and way has a part.
  [[nodiscard]] double writes_of_a_turn(const Plan& plan) const {
    return static_cast<double>(m_places.size() * plan.torus->ways.size()) * m_job.writes_per_part();
  }
  /// Parts come in bursts of a window: a beginning has several.
  [[nodiscard]] PlayEffort effort(const Plan& plan, bool taken = false) const {
    if (on_ports()) {
      return k_thorough;
    }
    const double windows =
        k_compared_bursts * static_cast<double>(plan.window_parts) * m_job.writes_per_part();
    const double writes = plan.passes ? k_writes_with_passes
                          : taken     ? k_thorough_writes
                                      : std::clamp(std::max(3 * writes_of_a_turn(plan), windows),
                                                   k_fewest_writes, k_most_writes);
    return {writes, writes, true};
  }
  /// Wholly, or a beginning of at least two turns.
  [[nodiscard]] bool can_be_played(const Plan& plan) const {
    const double writes = static_cast<double>(plan.parts.size()) * m_job.writes_per_part();
    const bool may_begin = !on_ports() && !plan.passes;
    return m_ways->one_machine() || (may_begin ? std::min(writes, 2 * writes_of_a_turn(plan))
                                               : writes) <= effort(plan).most_writes;
  }

  /// Equation 44a: of the nodes of some dimensions, each standing for all that differ in the others
  /// alone, 2 (nodes - 1) gradients pass the links of these dimensions; and of all nodes what an
  /// endpoint gives to communication.
  [[nodiscard]] LeastTime least_over(const Between& between) const {
    const double nodes = static_cast<double>(m_places.size());
    LeastTime least;
    const auto raise = [&](double of_nodes, double bytes_per_s, const std::string& stations) {
      const double seconds = 2 * (of_nodes - 1) * m_job.bytes() / bytes_per_s;
      if (seconds > least.seconds) {
        least = {seconds, fmt::format("all {} together: 2 ({:g} - 1) gradients pass them (equation "
                                      "44a)",
                                      stations, of_nodes)};
      }
    };
    for (unsigned set = 1; set < 1U << TorusPlaces::k_dimensions; ++set) {
      double of_nodes = 1, rate = 0;
      std::vector<std::string_view> names;
      for (std::size_t d = 0; d < TorusPlaces::k_dimensions; ++d) {
        if ((set >> d & 1U) != 0 && m_places.nodes(d) > 1) {
          of_nodes *= static_cast<double>(m_places.nodes(d));
          rate += nodes * m_rates[d];
          names.emplace_back(TorusPlaces::k_names[d]);
        }
      }
      if (rate > 0) {
        raise(of_nodes, rate, fmt::format("{} links", fmt::join(names, " and ")));
      }
    }
    double endpoints = 0;
    for (std::size_t s = 0; s < between.names.size(); ++s) {
      const bool link = between.names[s].find(" -> ") != std::string::npos;
      endpoints += link ? 0 : between.network.station_bytes_per_s[s];
    }
    if (endpoints > 0) {
      raise(nodes, endpoints, "endpoints");
    }
    return least;
  }

  /// Passes that traffic waits for the end of, as on an endpoint that does one or the other.
  [[nodiscard]] static Passes one_after_the_other(const Passes& passes) {
    const auto sum = [](const std::vector<double>& seconds) {
      return std::vector<double>{std::accumulate(seconds.begin(), seconds.end(), 0.0)};
    };
    return {{passes.end_bytes.back()}, sum(passes.backward_seconds), sum(passes.forward_seconds)};
  }

  void describe(Plan& plan) const {
    add_provenance(plan, m_inputs, m_options);
    plan.transport = on_ports()                    ? m_ways->model().transport()
                     : m_options.transport.empty() ? "host"
                                                   : m_options.transport;
    plan.options["shape"] = shape_text();
    if (m_configuration != nullptr) {
      plan.options["configuration"] = m_configuration->name;
      // `solve overlap` has the four phases of ACE, and no other all-reduce.
      if (m_configured.iteration_s > 0 && plan.strategy == k_strategies[0]) {
        plan.quantities.push_back({"overlap_seconds",
                                   m_configured.iteration_s,
                                   "equations 49 to 53: an iteration by `solve overlap`",
                                   {}});
      }
    }
    plan.options["lanes"] = m_lanes_given ? std::to_string(m_lanes) : "auto";
    if (plan.passes) {
      add_pass_times(plan, m_job.forward_s, m_job.backward_s);
    }
    const auto [local, vertical, horizontal] = m_shape;
    const std::map<std::string, double> nodes{{"L", static_cast<double>(local)},
                                              {"V", static_cast<double>(vertical)},
                                              {"H", static_cast<double>(horizontal)}};
    double sent = 0;
    for (const PlanRank& rank : plan.ranks) {
      sent = std::max(sent, static_cast<double>(rank.egress_bytes));
    }
    plan.quantities.push_back(
        {"node_sent_bytes", sent, "equation 42, of the node that sends most", nodes});
    if (!on_ports() && plan.strategy == k_strategies[0]) {
      const Torus torus = torus_of(*m_inputs.profile.endpoint, m_shape);
      plan.quantities.push_back(
          {"ideal_bytes_per_second", torus_limit(torus, torus_all_reduce(torus)).bytes_per_s,
           "equation 44: sent by a node while its busiest links always are", nodes});
    }
    if (!plan.passes) {
      plan.quantities.push_back({"predicted_bytes_per_second",
                                 sent / plan.prediction.mid_seconds,
                                 "sent by that node in the predicted time",
                                 {}});
    }
    if (on_ports()) {
      add_sources(plan.quantities, m_ways->model().sources());
      plan.assumed = m_ways->model().assumed();
    } else {
      add_sources(plan.quantities, {std::string(k_endpoint_links)});
    }
  }

  const PlanInputs& m_inputs;
  const PlanOptions& m_options;
  TorusPlaces m_places;
  std::array<std::uint64_t, 3> m_shape;
  std::array<double, 3> m_rates{}; ///< of an endpoint's links in each dimension, both ways together
  /// Of an endpoint's links. Empty on ports, of which a machine has one for all dimensions: there
  /// no order is better than another.
  std::vector<SharedWay> m_scatter;
  const EndpointConfiguration* m_configuration; ///< of the endpoint; null: only its links count
  ConfiguredWorkload m_configured;
  Job m_job;
  int m_lanes = 1;
  bool m_lanes_given = false;
  std::optional<Ways> m_ways; ///< the endpoint's links, or what lies between the profile's machines
};

} // namespace

bool is_torus_strategy(std::string_view name) {
  return std::find(k_strategies.begin(), k_strategies.end(), name) != k_strategies.end();
}

std::vector<SharedWay> torus_ways(std::string_view strategy) {
  std::vector<SharedWay> ways;
  for (const bool backward : {false, true}) {
    if (strategy == k_strategies[0]) {
      ways.push_back({{{0}, {1, 2}, backward}, 0.5});
    } else {
      ways.push_back({{{0, 1}, {2}, backward}, 0.25});
      ways.push_back({{{0, 2}, {1}, backward}, 0.25});
    }
  }
  return ways;
}

std::vector<SharedWay> best_scatter(const std::array<std::uint64_t, 3>& shape,
                                    const std::array<double, 3>& ring_bytes_per_s) {
  std::vector<std::size_t> order, none; // of the dimensions; those of one node
  std::vector<double> rates;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    (shape[d] > 1 ? order : none).push_back(d);
    rates.push_back(ring_bytes_per_s[d]);
  }
  SharesProgram program(rates, std::vector<double>(shape.size(), 0));
  std::vector<TorusWay> orders;
  do {
    std::vector<double> sent(shape.size(), 0);
    double left = 1;
    for (const std::size_t d : order) {
      const auto nodes = static_cast<double>(shape[d]);
      sent[d] = 2 * (nodes - 1) / nodes * left;
      left /= nodes;
    }
    program.add(sent);
    TorusWay& way = orders.emplace_back(TorusWay{order, none});
    if (!way.scatter.empty()) { // nobody needs the sum of the last ring before all have it
      way.sum.insert(way.sum.begin(), way.scatter.back());
      way.scatter.pop_back();
    }
  } while (std::ranges::next_permutation(order).found);
  const std::vector<double> shares = program.least_work(program.solve());
  constexpr double k_least_share = 1e-3;
  std::vector<SharedWay> ways;
  for (const bool backward : {false, true}) {
    for (std::size_t i = 0; i < orders.size(); ++i) {
      if (shares[i] > k_least_share) {
        ways.push_back({orders[i], shares[i] / 2});
        ways.back().way.backward = backward;
      }
    }
  }
  return ways;
}

void assign_torus(Plan& plan, const std::vector<SharedWay>& ways) {
  const auto [local, vertical, horizontal] = plan.torus->shape;
  const std::uint64_t block = local * vertical; // parts that go one way, each to another server
  const std::uint64_t turns = block * horizontal * ways.size();
  const auto lanes = static_cast<std::uint64_t>(plan.ranks.front().lanes);
  std::vector<std::uint64_t> given(ways.size(), 0); // blocks
  std::size_t way = 0;
  for (std::size_t p = 0; p < plan.parts.size(); ++p) {
    if (p % block == 0) { // the way that is furthest below its share
      const auto missing = [&](std::size_t w) {
        return ways[w].share * static_cast<double>(p / block + 1) - static_cast<double>(given[w]);
      };
      way = 0;
      for (std::size_t w = 1; w < ways.size(); ++w) {
        constexpr double k_rounding = 1e-9;
        way = missing(w) > missing(way) + k_rounding ? w : way;
      }
      ++given[way];
    }
    const std::uint64_t l = p % local, v = p % block / local;
    const std::uint64_t h = (given[way] - 1 + v + l) % horizontal;
    const std::uint64_t server = l + local * (v + vertical * h);
    plan.parts.server.push_back(server);
    plan.parts.tree.push_back(way);
    plan.parts.lane.push_back((p + p / turns) % lanes);
    plan.ranks[server].assigned_bytes += plan.parts.bytes[p];
  }
  for (const SharedWay& each : ways) {
    plan.torus->ways.push_back(each.way);
  }
  for (PlanRank& rank : plan.ranks) {
    rank.server = rank.assigned_bytes > 0;
    rank.share_bytes =
        static_cast<double>(plan.gradient_bytes) / static_cast<double>(plan.ranks.size());
  }
}

Plan plan_torus(const PlanInputs& inputs, const PlanOptions& options,
                const std::array<std::uint64_t, 3>& shape) {
  constexpr std::uint64_t k_most_nodes = 4096; // a minute, and 4 GB
  if (const std::uint64_t nodes = TorusPlaces(shape).size(); nodes > k_most_nodes) {
    fail(ErrorKind::usage, fmt::format("--shape {}x{}x{} has {} nodes; give one of {} or less",
                                       shape[0], shape[1], shape[2], nodes, k_most_nodes));
  }
  return Planner(inputs, options, shape).make();
}

} // namespace reckon
