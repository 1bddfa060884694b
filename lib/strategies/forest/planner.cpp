// SPDX-License-Identifier: Apache-2.0
#include "strategies/forest/planner.hpp"

#include "core/error.hpp"
#include "core/indices.hpp"
#include "core/json_fwd.hpp"
#include "core/name_ranges.hpp"
#include "core/units.hpp"
#include "documents/cells.hpp"
#include "network/canonical.hpp"
#include "strategies/forest/bound.hpp"
#include "strategies/forest/equal_machines.hpp"
#include "strategies/forest/search.hpp"
#include "strategies/forest/switch_sums.hpp"
#include "strategies/lower.hpp"
#include "strategies/plan_network.hpp"
#include "strategies/provenance.hpp"
#include "strategies/strategy.hpp"
#include "strategies/unknown_rates.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace reckon {
namespace {

/// What a plan's time may be over its bound before shallow trees are tried.
constexpr double k_close = 0.025;
/// Schemes that part sizes and windows are searched for, beside mixes.
constexpr std::size_t k_most_single_trees = 2;
/// No search makes up for a short play that takes so much longer than another's.
constexpr double k_hopeless = 0.25;

class Planner {
public:
  Planner(const InsideInputs& inputs, const InsidePlanOptions& options)
      : m_inputs(inputs), m_options(options),
        m_machine(!options.machines.empty() ? options.machines.front().group
                  : options.machine.empty() ? machine_with_topology(inputs.profile)
                                            : options.machine),
        m_job(job_without_ranks(inputs.workload, options.plan)),
        m_network(std::make_shared<const Network>(in_canonical_order(network_for(options.inside)))),
        m_model(*m_network), m_forests(solve_forests(m_model, options.inside.tolerance,
                                                     Gains::solved, options.plan.strategy)) {
    m_job.workers = indices(m_model.workers);
    if (m_options.collective != Collective::all_reduce) {
      m_job.passes.reset();
    }
    keep_what_is_asked_for();
    if (passes_besides()) {
      m_forests.resize(1); // a play has not what passes besides, which the solution counts
    }
    take(0);
  }

  [[nodiscard]] Plan make() {
    check_transport();
    if (m_solution->workers < 2) {
      fail(ErrorKind::input,
           fmt::format("machine {} has one place for a worker, {}: there is nothing to sum inside "
                       "it; name more places with --roles, or leave --places and --inside away",
                       m_machine, m_solution->endpoints.front()));
    }
    if (m_solution->seconds_per_byte <= 0) {
      fail(ErrorKind::input,
           fmt::format("profile '{}': no rate is known of anything that the sums of machine {} "
                       "would take; there is nothing to solve by: {}",
                       m_inputs.profile.name, m_machine,
                       fmt::join(unknown_rates(m_inputs.profile, *m_ways->places()), "; ")));
    }
    for (const std::vector<std::size_t>& alike : by_bound()) {
      look_at(alike);
    }
    look_at_shallow();
    take(m_chosen);
    Plan plan = std::move(*m_best);
    describe(plan);
    m_ways->set_least({plan.prediction.bound_seconds, plan.prediction.bound_by});
    finish(plan);
    in_order_given(plan);
    return plan;
  }

private:
  /// Of several machines, so that neither their names nor their order changes a plan's times. A
  /// worker's n-th is the one of its number: there the order stays.
  [[nodiscard]] Network in_canonical_order(Network network) {
    if (!several() || has_nths(network.collective)) {
      return network;
    }
    std::vector<std::size_t> order = indices(network.places.size());
    std::ranges::stable_sort(order, {}, [&](std::size_t v) { return network.places[v].machine; });
    CanonicalNetwork canonical = canonical_order(std::move(network));
    m_given.resize(order.size());
    for (std::size_t number = 0; number < order.size(); ++number) {
      m_given[canonical.place_now[order[number]]] = number;
    }
    return std::move(canonical.network);
  }

  /// The ranks as their machines were given, those of a machine one after the other.
  void in_order_given(Plan& plan) const {
    if (m_given.empty()) {
      return;
    }
    const std::vector<std::size_t>& places = m_solution->places;
    std::vector<std::size_t> order = indices(places.size()); // by rank as given: the rank now
    std::ranges::sort(order, {}, [&](std::size_t r) { return m_given[places[r]]; });
    std::vector<std::uint64_t> number(order.size()); // by rank now: as given
    std::vector<PlanRank> ranks;
    for (std::size_t r = 0; r < order.size(); ++r) {
      number[order[r]] = r;
      ranks.push_back(std::move(plan.ranks[order[r]]));
    }
    plan.ranks = std::move(ranks);
    plan.root = has_root(plan.collective) ? number[plan.root] : 0;
    for (SumTree& tree : plan.trees) {
      for (std::vector<std::int64_t>* const parents : {&tree.up, &tree.down}) {
        std::vector<std::int64_t> given(parents->size());
        for (std::size_t r = 0; r < given.size(); ++r) {
          const std::int64_t parent = (*parents)[order[r]];
          given[r] = parent < 0
                         ? parent
                         : static_cast<std::int64_t>(number[static_cast<std::size_t>(parent)]);
        }
        *parents = std::move(given);
      }
    }
    for (std::uint64_t& server : plan.parts.server) {
      server = number[server];
    }
  }

  void keep_what_is_asked_for() {
    const std::string& asked = m_options.plan.strategy;
    if (asked == "auto") {
      return;
    }
    const auto name = [&](const Forest& forest) {
      return forest.choice == ForestChoice::single ? strategy_text(forest.trees.front().scheme)
                                                   : std::string(name_of(forest.choice));
    };
    std::vector<std::string> names{"auto", "mix", "optimum"};
    for (const ForestCandidate& candidate : m_forests.front().candidates) {
      if (!candidate.name.starts_with("mix:")) {
        names.push_back(strategy_text(candidate.name));
      }
    }
    if (several()) {
      names.insert(names.end(), {k_hierarchical_split, k_hierarchical_two_level});
    }
    std::erase_if(m_forests, [&](const Forest& forest) {
      return name(forest) != asked && "inside_" + name(forest) != asked;
    });
    if (m_forests.empty() && std::ranges::count(strategy_names(), asked) > 0) {
      fail(ErrorKind::input,
           fmt::format("--strategy {} does not apply between these places{}; they have {}", asked,
                       asked == "ps_noncolocated" ? ": no machine only sums, add --servers" : "",
                       fmt::join(names, ", ")));
    }
    if (m_forests.empty()) {
      const std::string near = did_you_mean(asked, names);
      fail(ErrorKind::usage,
           fmt::format("--strategy {}: unknown; {}between these places it is one of {}", asked,
                       near.empty() ? "" : fmt::format("did you mean {}? ", near),
                       fmt::join(names, ", ")));
    }
  }

  void take(std::size_t forest) {
    m_taken = forest;
    m_solution = &m_forests[forest];
    m_ways.emplace(m_inputs.profile, Places{m_network, m_solution->places});
    m_ways->set_named_first(dearest_first());
  }
  /// Stations as the solution's prices have them, so that all texts name the same; then the others.
  [[nodiscard]] std::vector<std::size_t> dearest_first() const {
    std::map<std::string_view, std::size_t> priced;
    for (const StationPrice& price : m_solution->prices) {
      priced.emplace(price.resource, priced.size());
    }
    std::vector<std::size_t> order = indices(m_model.stations.size());
    std::ranges::stable_sort(order, {}, [&](std::size_t s) {
      const auto at = priced.find(m_model.stations[s].name);
      return at == priced.end() ? priced.size() : at->second;
    });
    return order;
  }
  /// All forests, those first whose busiest station is done first; together as far as that tells no
  /// difference, in their order.
  [[nodiscard]] std::vector<std::vector<std::size_t>> by_bound() const {
    std::vector<std::size_t> order = indices(m_forests.size());
    std::erase_if(order, [&](std::size_t f) { return m_forests[f].shallow; });
    const auto seconds = [&](std::size_t f) { return m_forests[f].seconds_per_byte; };
    std::ranges::stable_sort(order, {}, seconds);
    std::vector<std::vector<std::size_t>> out;
    for (const std::size_t f : order) {
      if (out.empty() || seconds(f) > seconds(out.back().front()) * (1 + k_worth)) {
        out.emplace_back();
      }
      out.back().push_back(f);
    }
    for (std::vector<std::size_t>& alike : out) {
      std::ranges::sort(alike);
    }
    return out;
  }
  /// No play is faster than its busiest station.
  [[nodiscard]] bool can_be_best() const {
    return !m_best || steady_s() < m_best->prediction.mid_seconds * (1 - k_worth);
  }
  /// Of forests that are alike, those first that play best. Mixes in any case: of many trees a
  /// short play shows little but how they fill.
  void look_at(const std::vector<std::size_t>& alike) {
    std::vector<std::pair<double, std::size_t>> played;
    for (const std::size_t f : alike) {
      take(f);
      if (can_be_best()) {
        tell();
        played.emplace_back(alike.size() == 1 ? 0.0
                                              : search().first(base()).prediction.mid_seconds *
                                                    (1 + k_worth * static_cast<double>(f > 0)),
                            f);
      }
    }
    std::ranges::sort(played);
    for (const auto& [seconds, f] : played) {
      take(f);
      const bool single = m_solution->choice == ForestChoice::single;
      const bool hopeless = seconds > played.front().first * (1 + k_hopeless);
      if (!can_be_best() || (single && m_best && (m_singles == k_most_single_trees || hopeless))) {
        continue;
      }
      m_singles += single ? 1 : 0;
      tell();
      search_better();
    }
  }
  /// Trees that are shallow instead of the best: where the best plan is far from its bound they
  /// may play better.
  void look_at_shallow() {
    for (std::size_t f = 0; f < m_forests.size(); ++f) {
      take(f);
      if (m_solution->shallow && steady_s() * (1 + k_close) < m_best->prediction.mid_seconds) {
        tell();
        search_better();
      }
    }
  }
  /// What is found for the forest in hand, where that is better.
  void search_better() {
    const double than_s =
        m_best ? m_best->prediction.mid_seconds : std::numeric_limits<double>::infinity();
    Plan plan = search().fastest(base(), than_s);
    if (plan.prediction.mid_seconds < than_s * (1 - k_worth)) {
      m_best = std::move(plan);
      m_chosen = m_taken;
    }
  }
  /// What is being looked at, of so many.
  void tell() {
    if (m_options.plan.progress) {
      m_options.plan.progress(strategy_name(m_solution->choice, m_solution->trees.front().scheme),
                              m_looks++ / (2.0 * static_cast<double>(m_forests.size())));
    }
  }
  [[nodiscard]] double steady_s() const { return m_solution->seconds_per_byte * m_job.bytes(); }
  [[nodiscard]] TreeSearch search() const { return {m_job, *m_ways, m_options.plan, steady_s()}; }

  /// Ranks and trees of the forest in hand.
  [[nodiscard]] Plan base() const {
    Plan plan;
    plan.trees = m_solution->trees;
    plan.collective = m_options.collective;
    plan.root = has_root(m_options.collective) ? m_model.root : 0; // workers are the first ranks
    plan.runs = m_job.layout.runs;
    plan.wire = m_job.wire;
    plan.gradient_bytes = m_job.layout.total_bytes;
    for (std::size_t r = 0; r < m_solution->places.size(); ++r) {
      plan.ranks.push_back(m_ways->place_of(r));
      plan.ranks.back().lanes = static_cast<int>(m_options.lanes);
    }
    return plan;
  }

  /// With the model's passes and the optimizer's step, once all about its traffic is known.
  void finish(Plan& plan) const {
    const PlanOptions& options = m_options.plan;
    const Prediction traffic = plan.prediction;
    add_passes_to_trees(plan, m_job, *m_ways, options);
    if (options.optimizer) {
      plan.update = UpdatePlan{*options.optimizer, options.update_at.value_or(UpdatePlace::worker)};
      predict(plan, m_job, *m_ways, plan.window_parts, k_taken); // as without the step
    }
    forget_busiest_at_bound(plan.prediction);
    if (!plan.passes || plan.prediction.bound_seconds > plan.passes->total_seconds()) {
      plan.prediction.relief = traffic.relief;
      constexpr double k_rounding = 1e-6;
      if (plan.prediction.bound_seconds <= traffic.bound_seconds * (1 + k_rounding)) {
        plan.prediction.bound_by = traffic.bound_by; // not what this plan's trees keep as busy
      }
    }
    if (const std::vector<std::string> bind = binding(*m_solution);
        bind.size() > 1 && plan.prediction.bound_by.starts_with(first_names(bind)) &&
        plan.prediction.relief.find(first_names(bind)) != std::string::npos) {
      plan.prediction.relief = "no single link: those that the bound names bind together";
    }
    if (plan.passes) {
      auto exposed = exposed_quantity(plan, options.order, m_job.forward_s, m_job.backward_s);
      plan.quantities.insert(plan.quantities.begin(), std::move(exposed));
    }
  }

  [[nodiscard]] bool several() const { return !m_options.machines.empty(); }

  [[nodiscard]] Network network_for(InsideOptions inside, bool switches = false) const {
    inside.transport = m_options.plan.transport;
    inside.switches = switches;
    std::vector<OpenMachine> machines = m_options.machines;
    for (OpenMachine& machine : machines) {
      machine.switches = switches;
    }
    Network network =
        several() ? network_between_machines(m_inputs.profile, machines, m_options.plan.transport)
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
    if (has_nths(network.collective) && m_options.plan.cutting == Cutting::tensors) {
      fail(ErrorKind::usage,
           fmt::format("--collective {} with --cutting tensors: every worker's n-th is cut by "
                       "itself, wherever tensors end; leave --cutting out",
                       name));
    }
  }

  /// Between machines that of their ports; nobody may have said which that is.
  [[nodiscard]] std::string transport() const {
    return !m_options.plan.transport.empty() ? m_options.plan.transport
                                             : transport_between(m_inputs.profile, m_model);
  }

  /// Over the links themselves with cuda and host, over others when the profile knows them here.
  void check_transport() const {
    if (transport() == "cuda" && !has_gpu_worker(m_inputs.profile, m_model)) {
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

  /// Links, memories and sums that the plan uses and whose samples have a spread.
  [[nodiscard]] std::size_t ranged(const Plan& plan) const {
    const std::vector<double> load =
        station_bytes(lower(together(plan)), m_ways->between(static_cast<double>(plan.part_bytes)));
    std::size_t count = 0;
    for (std::size_t s = 0; s < load.size(); ++s) {
      count += load[s] > 0 && m_model.stations[s].ranged() ? 1U : 0U;
    }
    return count;
  }

  /// Where the bound says it already.
  static void forget_busiest_at_bound(Prediction& p) {
    constexpr double k_rounding = 1e-3; // of the search
    if (p.busiest_seconds && *p.busiest_seconds <= p.bound_seconds * (1 + k_rounding)) {
      p.busiest_seconds.reset();
      p.busiest_by.clear();
    }
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
    const double certificate = m_solution->low_certificate_seconds_per_byte * m_job.bytes();
    if (const double seconds = std::min(certificate, p.lo_seconds);
        !passes_besides() && seconds > p.bound_seconds) {
      p.bound_seconds = seconds;
      p.bound_by = by_dual_values(*m_solution);
    }
    forget_busiest_at_bound(p);
    p.relief = relief_of(*m_solution);
    plan.switch_sums =
        switch_sums(network_for(alone, true), static_cast<double>(plan.gradient_bytes), p);
  }

  void describe(Plan& plan) const {
    plan.profile = m_inputs.profile_link;
    plan.workload = m_inputs.workload_link;
    plan.roles = m_inputs.roles_link;
    const auto model_bytes = static_cast<double>(plan.gradient_bytes);
    set_bound(plan);
    plan.strategy = strategy_name(m_solution->choice, m_solution->trees.front().scheme);
    plan.transport = transport();
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
    plan.assumed = unknown_rates(m_inputs.profile, *m_ways->places());
    if (std::string cost = search().assumed(plan); !cost.empty()) {
      plan.assumed.push_back(std::move(cost));
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
    const bool any_range = std::any_of(m_model.stations.begin(), m_model.stations.end(),
                                       [](const Station& r) { return r.ranged(); });
    candidates.insert(candidates.begin(), m_solution->optimum);
    std::pair<double, std::string> faster; // by its busiest link alone
    for (const ForestCandidate& c : candidates) {
      const std::string name = c.name == m_solution->optimum.name
                                   ? strategy_name(ForestChoice::optimum, "")
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
      if (name != plan.strategy && std::abs(slower) <= k_worth) {
        ties.push_back(name);
      } else if (plan.runner_up.empty() && name != plan.strategy && slower > 0) {
        plan.runner_up = name;
        plan.margin = slower;
      }
    }
    if (faster.first < -k_worth) {
      if (plan.runner_up.empty()) { // none is slower
        plan.runner_up = faster.second;
        plan.margin = faster.first;
      }
      plan.margin_text = fmt::format(
          "by its busiest link {} would be {}, but {}", faster.second,
          faster_text(1 + faster.first),
          m_options.plan.strategy == "auto"
              ? fmt::format("a short play had it slower; --strategy {} searches it", faster.second)
              : "this strategy was asked for");
      return;
    }
    if (!ties.empty()) {
      plan.margin_text =
          fmt::format("as good as {}, within {:g} %", first_names(ties, 4), 100 * k_worth);
      if (plan.runner_up.empty()) {
        plan.runner_up = ties.front();
      }
    }
  }

  const InsideInputs& m_inputs;
  const InsidePlanOptions& m_options;
  std::string m_machine;
  Job m_job;
  /// By place: its number with the machines as given; empty: the same.
  std::vector<std::size_t> m_given;
  std::shared_ptr<const Network> m_network;
  const Network& m_model; ///< the same
  std::vector<Forest> m_forests;
  std::size_t m_taken = 0;            ///< the forest in hand
  const Forest* m_solution = nullptr; ///< the same
  std::optional<Ways> m_ways;         ///< between its places
  std::optional<Plan> m_best;         ///< of those that were searched
  std::size_t m_chosen = 0;           ///< its forest
  std::size_t m_singles = 0;          ///< searched
  double m_looks = 0;                 ///< plays and searches begun
};

} // namespace

void open_machines(InsidePlanOptions& options, std::vector<OpenMachine> machines) {
  OpenMachine& alone = machines.front();
  if (machines.size() > 1 || (alone.workers.empty() && alone.relays.empty())) {
    options.machines = std::move(machines);
    return;
  }
  options.machine = std::move(alone.group);
  options.inside.workers = std::move(alone.workers);
  if (!alone.relays.empty()) {
    options.inside.relays = std::move(alone.relays);
  }
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
