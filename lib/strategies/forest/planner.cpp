// SPDX-License-Identifier: Apache-2.0
#include "strategies/forest/planner.hpp"

#include "core/error.hpp"
#include "core/name_ranges.hpp"
#include "core/units.hpp"
#include "documents/cells.hpp"
#include "strategies/forest/bound.hpp"
#include "strategies/forest/cutting.hpp"
#include "strategies/lower.hpp"
#include "strategies/parts.hpp"
#include "strategies/predict.hpp"
#include "strategies/provenance.hpp"
#include "topology/numa.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

namespace reckon {
namespace {

/// A play of more writes takes longer than a plan is worth.
constexpr double k_most_writes = 100'000;
/// Of all parts, of which a play has the beginning: in the play that compares forests, and of the
/// smallest parts that are tried.
constexpr double k_first_writes = 200'000, k_smallest_writes = 1'000'000;
/// Forests that part sizes and windows are searched for.
constexpr std::size_t k_most_searched = 3;
/// Windows to begin and to end with, in lives of a part.
constexpr double k_first_window = 4, k_widest_window = 64;
/// Every part of a window has a slot at each child's parent: more would be memory without use.
constexpr double k_most_under_way = 512;
constexpr std::array<std::uint64_t, 8> k_part_bytes{
    64U << 10U, 128U << 10U, 256U << 10U, 512U << 10U, 1U << 20U, 2U << 20U, 4U << 20U, 8U << 20U};
/// Smaller parts and wider windows must be worth it: with all that is equal to this, fewer parts.
constexpr double k_worth = 0.002;

/// "cpu_assisted numa0" as the name of a strategy.
std::string strategy_text(std::string name) {
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
    c = plain ? c : '_';
  }
  return name;
}

class Planner {
public:
  Planner(const InsideInputs& inputs, const InsidePlanOptions& options)
      : m_inputs(inputs), m_options(options),
        m_machine(!options.machines.empty() ? options.machines.front().group
                  : options.machine.empty() ? machine_with_topology(inputs.profile)
                                            : options.machine),
        m_layout(layout_of(inputs.workload)), m_model(network_for(options.inside)),
        m_forests(solve_forests(m_model, options.inside.tolerance)) {
    if (passes_besides()) {
      m_forests.resize(1); // a play has not what passes besides, which the solution counts
    }
    take(0);
  }

  [[nodiscard]] Plan make() {
    check_transport();
    if (m_solution->workers < 2) {
      fail(
          ErrorKind::input,
          fmt::format("machine {} has one worker only, {}: there is nothing to sum inside it; name "
                      "more with --roles, or plan between machines without --inside",
                      m_machine, m_solution->endpoints.front()));
    }
    if (m_solution->seconds_per_byte <= 0) {
      fail(ErrorKind::input,
           fmt::format("profile '{}': no rate is known of anything that the sums of machine {} "
                       "would take ({}); there is nothing to solve by: measure the machine with "
                       "`reckon probe`, or give its links their bytes_per_second and its objects "
                       "their pcie or pcie_bytes_per_second",
                       m_inputs.profile.name, m_machine, listed(unlimited())));
    }
    const auto bytes = static_cast<double>(m_layout.total_bytes);
    // One short play of each forest, and a search with those that play best.
    std::vector<std::pair<double, std::size_t>> played;
    for (std::size_t f = 0; m_forests.size() > 1 && f < m_forests.size(); ++f) {
      take(f);
      Plan plan = cut_and_assign(part_sizes(k_first_writes).front());
      plan.window_parts = window(plan, 4 * k_first_window);
      predict(plan);
      played.emplace_back(plan.prediction.mid_seconds * (1 + k_worth * static_cast<double>(f > 0)),
                          f);
    }
    std::stable_sort(played.begin(), played.end());
    played.resize(std::min(played.size(), k_most_searched));
    if (played.empty()) {
      played.emplace_back(0, 0);
    }
    std::optional<Plan> best;
    std::size_t chosen = 0;
    for (const auto& [seconds, f] : played) {
      take(f);
      if (best && m_solution->seconds_per_byte * bytes >= best->prediction.mid_seconds) {
        continue; // no play is faster than its busiest station
      }
      Plan plan = fastest_cut();
      if (!best || plan.prediction.mid_seconds < best->prediction.mid_seconds * (1 - k_worth)) {
        best = std::move(plan);
        chosen = f;
      }
    }
    take(chosen);
    describe(*best);
    play_passes(*best);
    return std::move(*best);
  }

private:
  void take(std::size_t forest) {
    m_solution = &m_forests[forest];
    m_index = m_solution->places;
  }

  /// The part size and window with the least played time. Smaller parts fill less, until what each
  /// write costs tells: from the smallest that can be played on up, as long as that helps. Of the
  /// windows, too, the narrowest that is as good as any.
  [[nodiscard]] Plan fastest_cut() const {
    std::optional<Plan> best;
    for (const std::uint64_t part_bytes : part_sizes(k_smallest_writes)) {
      Plan plan = cut_and_assign(part_bytes);
      double least = 0;
      const auto with = [&](double times) {
        plan.window_parts = window(plan, times);
        predict(plan);
        const bool better = least == 0 || plan.prediction.mid_seconds < least * (1 - k_worth);
        least = better ? plan.prediction.mid_seconds : least;
        if (!best || plan.prediction.mid_seconds < best->prediction.mid_seconds * (1 - k_worth)) {
          best = plan;
        }
        return better;
      };
      const double before = best ? best->prediction.mid_seconds : 0;
      with(k_first_window);
      for (double times = 4 * k_first_window;
           !m_options.window_parts && window(plan, times) > best->window_parts &&
           times <= k_widest_window && with(times);
           times *= 4) {
      }
      if (before > 0 && best->prediction.mid_seconds >= before) {
        break;
      }
    }
    return std::move(*best);
  }

  [[nodiscard]] bool several() const { return !m_options.machines.empty(); }

  [[nodiscard]] Network network_for(const InsideOptions& inside) const {
    Network network = several() ? network_between_machines(m_inputs.profile, m_options.machines,
                                                           m_options.transport)
                                : network_inside_machine(m_inputs.profile, m_machine, inside);
    network.collective = m_options.collective;
    network.root = m_options.root;
    check_collective(network);
    return network;
  }

  void check_collective(const Network& network) const {
    if (network.collective == Collective::all_reduce) {
      return;
    }
    const std::string_view name = name_of(network.collective);
    if (has_root(network.collective) && network.root >= network.workers) {
      fail(ErrorKind::usage, fmt::format("--root {}: the plan has {} workers, ranks 0 to {}",
                                         network.root, network.workers, network.workers - 1));
    }
    if (passes_besides()) {
      fail(ErrorKind::usage,
           fmt::format("--collective {} with --network or --service: what other machines add and "
                       "want is of an all-reduce; leave them out",
                       name));
    }
    if (has_nths(network.collective) && m_options.cutting == Cutting::tensors) {
      fail(ErrorKind::usage,
           fmt::format("--collective {} with --cutting tensors: every worker's n-th is cut by "
                       "itself, wherever tensors end; leave --cutting out",
                       name));
    }
  }

  [[nodiscard]] bool gpu_works() const {
    return std::any_of(m_solution->endpoints.begin(),
                       m_solution->endpoints.begin() +
                           static_cast<std::ptrdiff_t>(m_solution->workers),
                       [&](const std::string& id) {
                         const TopologyObject* const o = m_inputs.profile.topology.find(id);
                         return o != nullptr && o->kind == ObjectKind::gpu;
                       });
  }
  [[nodiscard]] std::string transport() const {
    if (several() && m_options.transport.empty()) {
      CellKey ports;
      ports.test = k_port_bandwidth;
      for (const Cell* const cell : m_inputs.profile.select(ports)) {
        if (!cell->key.transport.empty()) {
          return cell->key.transport;
        }
      }
    }
    return !m_options.transport.empty() ? m_options.transport : gpu_works() ? "cuda" : "host";
  }

  /// Over the links themselves with cuda and host, over others when the profile knows them here.
  void check_transport() const {
    if (transport() == "cuda" && !gpu_works()) {
      fail(ErrorKind::input,
           fmt::format("--transport cuda: no worker on machine {} is a GPU; leave "
                       "--transport out, or name GPUs with --roles",
                       m_machine));
    }
    const std::string wanted = transport();
    const bool known = several() || wanted == "cuda" || wanted == "host" ||
                       std::any_of(m_inputs.profile.cells.begin(), m_inputs.profile.cells.end(),
                                   [&](const Cell& cell) {
                                     return cell.key.from == m_machine &&
                                            cell.key.transport == wanted && cell.has_value() &&
                                            cell.key.test.starts_with("fabric_");
                                   });
    if (!known) {
      fail(
          ErrorKind::input,
          fmt::format("profile '{}' has no fabric_aggregate measurement between processes on "
                      "machine '{}' over transport '{}'; --inside plans for cuda, host or what the "
                      "profile has",
                      m_inputs.profile.name, m_machine, wanted));
    }
  }

  /// What the plan could use and has no known rate. The way from a host bridge to its processor is
  /// never described or measured by itself, and is left out.
  [[nodiscard]] std::vector<std::string> unlimited() const {
    const auto is_bridge = [&](std::string_view name) {
      const TopologyObject* const object =
          m_inputs.profile.topology.find(fmt::format("{}/{}", m_machine, name));
      return object != nullptr && object->kind == ObjectKind::host_bridge;
    };
    std::vector<std::string> out;
    for (const std::string& link : m_solution->unknown) {
      constexpr std::string_view k_to = " > ";
      const std::string_view text = link;
      const std::size_t at = text.find(k_to);
      if (at == std::string_view::npos ||
          (!is_bridge(text.substr(0, at)) && !is_bridge(text.substr(at + k_to.size())))) {
        out.push_back(link);
      }
    }
    for (const std::size_t endpoint : m_index) {
      const Place& e = m_model.places[endpoint];
      if (e.memory && m_model.add[endpoint].empty()) {
        out.push_back(fmt::format("memory and sums {}", m_model.name_of(endpoint)));
      }
    }
    return out;
  }
  static std::string listed(const std::vector<std::string>& all) { return first_names(all, 4); }

  /// Sizes that make at most so many writes, the smallest first; the largest where none does.
  [[nodiscard]] std::vector<std::uint64_t> part_sizes(double most_writes) const {
    if (m_options.part_bytes) {
      return {*m_options.part_bytes};
    }
    std::vector<std::uint64_t> sizes;
    for (const std::uint64_t size : k_part_bytes) {
      if (writes(size) <= most_writes) {
        sizes.push_back(size);
      }
    }
    return sizes.empty() ? std::vector<std::uint64_t>{k_part_bytes.back()} : sizes;
  }

  /// `times` as many parts as keep every station busy while one of them makes its way: parts wait
  /// for each other where trees share stations.
  [[nodiscard]] std::uint64_t window(const Plan& plan, double times) const {
    if (m_options.window_parts) {
      return *m_options.window_parts;
    }
    const double seconds = m_solution->seconds_per_byte * static_cast<double>(plan.gradient_bytes);
    const double parts =
        static_cast<double>(plan.parts.size()) / static_cast<double>(m_options.lanes);
    return static_cast<std::uint64_t>(
        std::clamp(std::ceil(times * life_seconds(plan) / seconds * parts), 2.0,
                   std::max(2.0, std::min(std::ceil(parts), k_most_under_way))));
  }

  /// From a part's first write to its last where it is alone: the longest way up a tree and the
  /// longest way down, the mean over the trees by their shares.
  [[nodiscard]] double life_seconds(const Plan& plan) const {
    const auto bytes = static_cast<double>(plan.part_bytes);
    const auto hop = [&](std::size_t from, std::size_t to) {
      double longest = 0;
      for (const Use& use : *m_model.ways[m_index[from]][m_index[to]]) {
        longest = std::max(longest, use.amount / m_model.stations[use.station].bytes_per_second);
      }
      const bool leaves =
          m_model.places[m_index[from]].machine != m_model.places[m_index[to]].machine;
      return longest * bytes + (leaves ? m_model.latency_s : 0);
    };
    double mean = 0;
    for (const SumTree& tree : plan.trees) {
      const auto longest = [&](const std::vector<std::int64_t>& parents, bool up) {
        double most = 0;
        for (std::size_t r = 0; r < m_index.size(); ++r) {
          double seconds = 0;
          for (std::size_t at = r;
               parents[at] >= 0 && parents[at] != static_cast<std::int64_t>(at);) {
            const auto next = static_cast<std::size_t>(parents[at]);
            seconds += up ? hop(at, next) : hop(next, at);
            at = next;
          }
          most = std::max(most, seconds);
        }
        return most;
      };
      mean += tree.share * (longest(tree.up, true) + longest(tree.down, false));
    }
    return mean;
  }

  [[nodiscard]] double writes(std::uint64_t part_bytes) const {
    const double halves = m_options.collective == Collective::all_reduce ? 2 : 1;
    return static_cast<double>(m_layout.total_bytes) / static_cast<double>(part_bytes) * halves *
           static_cast<double>(m_solution->endpoints.size() - 1);
  }

  [[nodiscard]] Plan cut_and_assign(std::uint64_t part_bytes) const {
    Plan plan;
    plan.trees = m_solution->trees;
    plan.collective = m_options.collective;
    plan.root = has_root(m_options.collective) ? m_options.root : 0;
    plan.runs = m_layout.runs;
    plan.gradient_bytes = m_layout.total_bytes;
    plan.parts =
        cut_for_trees(m_layout, m_inputs.workload, plan.trees, part_bytes, m_options.cutting,
                      has_nths(m_options.collective) ? m_model.workers : 1);
    give_lanes(plan, m_options.lanes);
    plan.part_bytes = *std::max_element(plan.parts.bytes.begin(), plan.parts.bytes.end());
    for (std::size_t r = 0; r < m_solution->endpoints.size(); ++r) {
      PlanRank rank = rank_of(m_index[r]);
      rank.worker = r < m_solution->workers;
      rank.server = !rank.worker;
      rank.lanes = static_cast<int>(m_options.lanes);
      for (std::size_t t = 0; t < plan.trees.size(); ++t) {
        if (plan.trees[t].root() == r) {
          rank.server = true;
          rank.share_bytes += plan.trees[t].share * static_cast<double>(plan.gradient_bytes);
        }
      }
      plan.ranks.push_back(rank);
    }
    for (std::size_t p = 0; p < plan.parts.size(); ++p) {
      plan.ranks[plan.parts.server[p]].assigned_bytes += plan.parts.bytes[p];
    }
    return plan;
  }

  [[nodiscard]] PlanRank rank_of(std::size_t place) const {
    if (!several()) {
      return rank_at(m_inputs.profile.topology, m_machine, m_model.places[place].id);
    }
    const NetworkMachine& machine = m_model.machines[m_model.places[place].machine];
    PlanRank rank;
    if (m_model.places[place].id == machine.group) {
      rank.machine = machine.group;
    } else {
      rank = rank_at(m_inputs.profile.topology, machine.group, m_model.places[place].id);
    }
    rank.machine_number = machine.number;
    const auto group =
        std::find_if(m_inputs.profile.machines.begin(), m_inputs.profile.machines.end(),
                     [&](const MachineGroup& g) { return g.id == machine.group; });
    rank.rack = group->rack;
    return rank;
  }

  /// Bytes for each byte of the gradient on every resource, of the trees as the parts use them,
  /// without what passes besides.
  [[nodiscard]] std::vector<double> loads(const Plan& plan) const {
    std::vector<double> bytes(plan.trees.size(), 0), out(m_model.stations.size(), 0);
    for (std::size_t p = 0; p < plan.parts.size(); ++p) {
      bytes[plan.parts.tree[p]] += static_cast<double>(plan.parts.bytes[p]);
    }
    for (std::size_t t = 0; t < plan.trees.size(); ++t) {
      std::vector<std::size_t> arrivals(m_index.size(), 0);
      const double share = bytes[t] / static_cast<double>(plan.gradient_bytes);
      const auto copy = [&](std::size_t from, std::size_t to) {
        add_uses(out, *m_model.ways[m_index[from]][m_index[to]], share);
      };
      for (std::size_t r = 0; r < m_index.size(); ++r) {
        const auto parent = plan.trees[t].up[r], giver = plan.trees[t].down[r];
        if (parent >= 0 && parent != static_cast<std::int64_t>(r)) {
          copy(r, static_cast<std::size_t>(parent));
          ++arrivals[static_cast<std::size_t>(parent)];
        }
        if (giver >= 0 && giver != static_cast<std::int64_t>(r)) {
          copy(static_cast<std::size_t>(giver), r);
        }
      }
      for (std::size_t r = 0; r < m_index.size(); ++r) {
        const double sums = static_cast<double>(arrivals[r]) - (plan.ranks[r].worker ? 0 : 1);
        if (sums > 0) {
          add_uses(out, m_model.add[m_index[r]], share * sums);
        }
      }
    }
    return out;
  }

  struct Time {
    double seconds = 0;
    double steady_seconds = 0; ///< of the busiest resource
  };
  /// Of one iteration with the capacities of `model`.
  [[nodiscard]] Time time_of(const Plan& plan, const Network& model) const {
    const auto model_bytes = static_cast<double>(plan.gradient_bytes);
    const std::vector<double> load = loads(plan);
    Time time;
    for (std::size_t r = 0; r < load.size(); ++r) {
      time.steady_seconds =
          std::max(time.steady_seconds, model_bytes * load[r] / model.stations[r].bytes_per_second);
    }
    time.seconds = time.steady_seconds;
    PlayNetwork network = network_of(model, m_index);
    network.cut_evenly(std::max(network.quantum_bytes, plan.part_bytes / 2)); // fewer events
    const OpCost cost = op_cost(model, m_index);
    const auto played = [&](const Plan& p) {
      return play(reckon::lower(p), network, cost).total_seconds;
    };
    const std::size_t parts = plan.parts.size();
    if (const double all = writes(plan.part_bytes); all <= k_most_writes) {
      time.seconds = std::max(time.seconds, played(plan));
    } else { // at any time every tree has had its proportion, so a beginning says how it goes on
      const auto most = static_cast<std::size_t>(static_cast<double>(parts) * k_most_writes / all);
      const std::size_t longer = 2 * most / 3, shorter = longer / 2;
      const double longer_s = played(beginning(plan, longer));
      const double pace =
          (longer_s - played(beginning(plan, shorter))) / static_cast<double>(longer - shorter);
      time.seconds = std::max(time.seconds, longer_s + static_cast<double>(parts - longer) * pace);
    }
    return time;
  }

  void predict(Plan& plan) const {
    const auto [seconds, steady] = time_of(plan, m_model);
    plan.prediction.mid_seconds = plan.prediction.lo_seconds = plan.prediction.hi_seconds = seconds;
    plan.prediction.terms = {{"transport", steady}, {"fill", seconds - steady}};
  }

  /// The iteration with the model's passes, once all about its traffic is known.
  void play_passes(Plan& plan) const {
    const auto [forward, backward] = m_options.passes;
    if (forward + backward <= 0) {
      return;
    }
    plan.passes = passes_of(m_layout, m_inputs.workload, forward, backward);
    std::optional<double> played;
    if (writes(plan.part_bytes) <= k_most_writes) {
      played = play(reckon::lower(plan), network_of(m_model, m_index), op_cost(m_model, m_index))
                   .total_seconds;
    }
    add_passes(plan.prediction, *plan.passes, played);
    plan.quantities.insert(plan.quantities.begin(), exposed_quantity(plan, forward, backward));
  }

  /// Links, memories and sums that the plan uses and whose samples have a spread.
  [[nodiscard]] std::size_t ranged(const Plan& plan) const {
    const std::vector<double> load = loads(plan);
    std::size_t count = 0;
    for (std::size_t r = 0; r < load.size(); ++r) {
      count += load[r] > 0 && m_model.stations[r].ranged() ? 1U : 0U;
    }
    return count;
  }

  /// The same plan with every capacity at an end of its samples.
  void set_range(Plan& plan) const {
    if (ranged(plan) == 0) {
      return;
    }
    Prediction& p = plan.prediction;
    p.lo_seconds = std::min(p.mid_seconds, time_of(plan, at_high_capacities(m_model)).seconds);
    p.hi_seconds = std::max(p.mid_seconds, time_of(plan, at_low_capacities(m_model)).seconds);
  }

  /// What no trees beat, with every capacity at the high end of its samples.
  [[nodiscard]] double certificate_seconds(const Plan& plan) const {
    double faster = 1;
    for (const Station& station : m_model.stations) {
      faster = std::max(faster, station.high_bytes_per_second / station.bytes_per_second);
    }
    return m_solution->certificate_seconds_per_byte * static_cast<double>(plan.gradient_bytes) /
           faster;
  }

  /// The bound of what runs: without the traffic of other machines.
  void set_bound(Plan& plan) const {
    InsideOptions alone = m_options.inside;
    alone.network = alone.service = 0;
    // At the high end of what was measured: else what is only uncertain would seem impossible.
    const NetworkBound bound =
        network_bound(at_high_capacities(passes_besides() ? network_for(alone) : m_model));
    Prediction& p = plan.prediction;
    p.bound_seconds =
        std::min(bound.seconds_per_byte * static_cast<double>(plan.gradient_bytes), p.lo_seconds);
    p.bound_by = fmt::format("{} (equation 27{})",
                             bound.by.empty() ? "nothing whose rate is known" : bound.by,
                             passes_besides() ? ", without what passes besides" : "");
    if (const double seconds = std::min(certificate_seconds(plan), p.lo_seconds);
        !passes_besides() && seconds > p.bound_seconds) {
      p.bound_seconds = seconds;
      p.bound_by = by_dual_values(*m_solution);
    }
    const auto dearest = std::max_element(m_solution->prices.begin(), m_solution->prices.end(),
                                          [](const StationPrice& a, const StationPrice& b) {
                                            return a.gain_per_gb_s < b.gain_per_gb_s;
                                          });
    constexpr double k_worth_saying = 0.001;
    if (dearest != m_solution->prices.end() && dearest->gain_per_gb_s > k_worth_saying) {
      p.relief = fmt::format("1 GB/s more on {} would save {:.1f} % of the least time",
                             dearest->resource, 100 * dearest->gain_per_gb_s);
    } else {
      std::vector<std::string> bind;
      for (const StationPrice& price : m_solution->prices) {
        if (price.busy > 1 - 1e-6) {
          bind.push_back(price.resource);
        }
      }
      p.relief = bind.empty() ? "unknown: no link that is used has a known rate"
                              : fmt::format("no single link: {} bind together", first_names(bind));
    }
  }

  void describe(Plan& plan) const {
    plan.profile = m_inputs.profile_link;
    plan.workload = m_inputs.workload_link;
    plan.roles = m_inputs.roles_link;
    const auto model_bytes = static_cast<double>(plan.gradient_bytes);
    set_range(plan);
    set_bound(plan);
    plan.strategy = strategy_name(m_solution->choice, m_solution->trees.front().scheme);
    plan.transport = transport();
    const Traffic traffic = traffic_of(reckon::lower(plan));
    for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
      plan.ranks[r].egress_bytes = traffic.egress_bytes[r];
      plan.ranks[r].ingress_bytes = traffic.ingress_bytes[r];
    }
    add_candidates(plan);
    for (const StationPrice& price : m_solution->prices) {
      plan.resources.push_back({price.resource, price.source, price.bytes_per_second,
                                price.load * model_bytes, price.busy, price.price,
                                price.gain_per_gb_s});
    }
    const auto quantity = [&](const char* name, double per_byte, const char* equation) {
      plan.quantities.push_back({name, per_byte * model_bytes, equation, {{"M", model_bytes}}});
    };
    quantity("chosen_seconds", m_solution->seconds_per_byte, "equation 25, of the trees chosen");
    quantity("single_seconds", m_solution->single_seconds_per_byte,
             "the best named scheme by itself");
    quantity("mix_seconds", m_solution->mix_seconds_per_byte, "the best mix of named schemes");
    quantity("optimum_seconds", m_solution->optimum_seconds_per_byte, "the best of all trees");
    quantity("certificate_seconds", m_solution->certificate_seconds_per_byte,
             "by the dual values no trees are faster");
    quantity("lower_bound_seconds", m_solution->bound_seconds_per_byte,
             passes_besides() ? "equation 27, with what passes besides" : "equation 27");
    if (const std::size_t count = ranged(plan); count > 0) {
      plan.quantities.push_back(
          {"ranged_resources",
           static_cast<double>(count),
           "links, memories and sums in use whose range is the 10th to 90th percentile of the "
           "samples; what is described or published is one value",
           {}});
    }
    if (const std::vector<std::string> all = unlimited(); !all.empty()) {
      plan.quantities.push_back(
          {std::string(k_unlimited_resources),
           static_cast<double>(all.size()),
           fmt::format("no rate is known of {}, taken as unlimited", listed(all)),
           {}});
    }
  }
  [[nodiscard]] bool passes_besides() const {
    return m_options.inside.network > 0 || m_options.inside.service > 0;
  }

  [[nodiscard]] std::string strategy_name(ForestChoice choice, const std::string& scheme) const {
    return choice == ForestChoice::single
               ? strategy_text(scheme)
               : fmt::format("{}{}", several() ? "" : "inside_", name_of(choice));
  }

  void add_candidates(Plan& plan) const {
    const auto model_bytes = static_cast<double>(plan.gradient_bytes);
    std::vector<ForestCandidate> candidates = m_solution->candidates;
    std::vector<std::string> ties;
    constexpr double k_tie = 1e-8; // the solver's precision
    const bool any_range = std::any_of(m_model.stations.begin(), m_model.stations.end(),
                                       [](const Station& r) { return r.ranged(); });
    const std::string optimum_name = strategy_name(ForestChoice::optimum, "");
    for (const Forest& forest : m_forests) { // the best of all trees, where it is the only best
      const bool taken = &forest == m_solution;
      if (forest.choice == ForestChoice::optimum &&
          (taken || forest.seconds_per_byte < m_solution->seconds_per_byte * (1 - k_tie))) {
        candidates.insert(candidates.begin(),
                          {optimum_name, forest.seconds_per_byte, forest.limit, forest.trees.size(),
                           forest.low_seconds_per_byte, forest.high_seconds_per_byte});
      }
    }
    std::pair<double, std::string> faster; // by its busiest link alone
    for (const ForestCandidate& c : candidates) {
      const std::string name = c.name == optimum_name       ? c.name
                               : c.name.starts_with("mix:") ? strategy_name(ForestChoice::mix, "")
                                                            : strategy_text(c.name);
      const bool known =
          std::any_of(plan.candidates.begin(), plan.candidates.end(),
                      [&](const Candidate& other) { return other.strategy == name; });
      if (known) {
        continue;
      }
      Prediction p;
      p.mid_seconds = c.seconds_per_byte * model_bytes;
      // A mix's own time is the solver's: what differs by its rounding is no range.
      const auto end = [&](double seconds_per_byte) {
        return !any_range ? p.mid_seconds : seconds_per_byte * model_bytes;
      };
      p.lo_seconds = p.bound_seconds = std::min(p.mid_seconds, end(c.low_seconds_per_byte));
      p.hi_seconds = std::max(p.mid_seconds, end(c.high_seconds_per_byte));
      p.bound_by = c.limit;
      plan.candidates.push_back({name, p, ""});
      const double slower = m_solution->seconds_per_byte > 0
                                ? c.seconds_per_byte / m_solution->seconds_per_byte - 1
                                : 0;
      faster = std::min(faster, std::pair(slower, name));
      if (name != plan.strategy && std::abs(slower) <= k_tie) {
        ties.push_back(name);
      } else if (plan.runner_up.empty() && name != plan.strategy && slower > 0) {
        plan.runner_up = name;
        plan.margin = slower;
      }
    }
    if (faster.first < -k_worth) {
      plan.margin_text =
          fmt::format("by its busiest link {} would be {:.1f} % faster, but it plays slower",
                      faster.second, -100 * faster.first);
      return;
    }
    if (!ties.empty()) {
      plan.margin_text = "same time as " + listed(ties);
      if (plan.runner_up.empty()) {
        plan.runner_up = ties.front();
      }
    }
  }

  const InsideInputs& m_inputs;
  const InsidePlanOptions& m_options;
  std::string m_machine;
  GradientLayout m_layout;
  Network m_model;
  std::vector<Forest> m_forests;
  const Forest* m_solution = nullptr; ///< the one in hand
  std::vector<std::size_t> m_index;   ///< by rank: endpoint of the model
};

} // namespace

PlayNetwork network_of(const Network& model, std::span<const std::size_t> endpoints) {
  PlayNetwork network;
  if (model.latency_s > 0) {
    network.path_latency_s.assign(endpoints.size(), std::vector<double>(endpoints.size(), 0));
    for (std::size_t u = 0; u < endpoints.size(); ++u) {
      for (std::size_t v = 0; v < endpoints.size(); ++v) {
        if (model.places[endpoints[u]].machine != model.places[endpoints[v]].machine) {
          network.path_latency_s[u][v] = model.latency_s;
        }
      }
    }
  }
  for (const Station& resource : model.stations) {
    network.station_bytes_per_s.push_back(resource.bytes_per_second);
  }
  network.paths.assign(endpoints.size(), std::vector<std::vector<std::uint32_t>>(endpoints.size()));
  for (std::size_t u = 0; u < endpoints.size(); ++u) {
    for (std::size_t v = 0; v < endpoints.size(); ++v) {
      const auto& uses = model.ways[endpoints[u]][endpoints[v]];
      if (u == v || !uses) {
        continue;
      }
      for (const Use& use : *uses) {
        for (long times = std::lround(use.amount); times > 0; --times) {
          network.paths[u][v].push_back(static_cast<std::uint32_t>(use.station));
        }
      }
    }
  }
  return network;
}

OpCost op_cost(const Network& model, std::vector<std::size_t> endpoints) {
  return [&model, endpoints = std::move(endpoints)](std::size_t rank, const Op& op) {
    if (op.kind != OpKind::reduce) {
      return 0.0;
    }
    double longest = 0;
    for (const Use& use : model.add[endpoints[rank]]) {
      longest = std::max(longest, use.amount / model.stations[use.station].bytes_per_second);
    }
    return longest * static_cast<double>(op.bytes) * static_cast<double>(op.source_count - 1);
  };
}

PlanRank rank_at(const Topology& topology, const std::string& machine,
                 const std::string& endpoint) {
  const TopologyObject* const object = topology.find(endpoint);
  if (object == nullptr) {
    fail(ErrorKind::input, fmt::format("the topology has no '{}'", endpoint));
  }
  PlanRank rank;
  rank.machine = machine;
  rank.endpoint = endpoint;
  rank.endpoint_kind = name_of(object->kind);
  rank.pci_address = object->pci_address;
  const TopologyObject* const node = numa_node_of(topology, endpoint);
  rank.cpus = node != nullptr ? node->cpus : std::vector<int>();
  return rank;
}

std::string machine_with_topology(const Profile& profile) {
  for (const MachineGroup& group : profile.machines) {
    const TopologyObject* const object = profile.topology.find(group.id);
    if (object != nullptr && object->kind == ObjectKind::machine) {
      return group.id;
    }
  }
  fail(ErrorKind::input,
       fmt::format("profile '{}' has no topology of a machine; probe the machine itself (without "
                   "--cluster), or take one with `reckon probe --topology FILE`",
                   profile.name));
}

Plan plan_inside(const InsideInputs& inputs, const InsidePlanOptions& options) {
  return Planner(inputs, options).make();
}

} // namespace reckon
