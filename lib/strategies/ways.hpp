// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "network/network.hpp"
#include "stats/curve.hpp"
#include "strategies/between.hpp"
#include "strategies/least.hpp"
#include "strategies/planner.hpp"

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace reckon {

/// The time of one write between two ranks, by its size; the string gets the source, a case of the
/// profile first.
using CurveOf = std::function<Curve(std::size_t from, std::size_t to, std::string* source)>;

/// A network, and the place of each rank in it.
struct Places {
  std::shared_ptr<const Network> network;
  std::vector<std::size_t> of_rank;
};

/// The network between the ranks of a job, and the cost of their local ops: every plan is cut for
/// it, bounded by it and played on it.
class Ways {
public:
  /// Between machines, or ranks that share one, as in the roles: the measured pairs of machines,
  /// else their ports. Throws Error{input} as CostModel.
  Ways(const PlanInputs& inputs, const PlanOptions& options);
  /// Between machines, or ranks that share one, without a look inside. Throws Error{input} as
  /// CostModel.
  Ways(const Profile& profile, const Roles& roles, const std::string& transport,
       const CostModel::WhatIf& what_if);
  /// Between places, which may be in several machines.
  Ways(const Profile& profile, Places places);
  /// The same for a gradient of this many bytes, for least() (equation 27).
  Ways(const Profile& profile, Places places, double bytes);
  /// Along the links of a torus of endpoints; local ops cost nothing there.
  Ways(const Profile& profile, Between links, LeastTime least);

  /// The model of machines' ranks; not where the ranks are places or nodes of a torus of endpoints.
  [[nodiscard]] const CostModel& model() const { return m_model.value(); }
  [[nodiscard]] bool has_model() const { return m_model.has_value(); }
  /// Whether the ranks share one machine's memory and nothing else lies between them.
  [[nodiscard]] bool one_machine() const { return m_model && m_model->one_machine(); }
  /// The ways between machines whose pairs were measured, or the links of a torus; otherwise null.
  [[nodiscard]] const Between* measured() const {
    return m_links && !m_by_ports ? &*m_links : nullptr;
  }
  /// The network of ranks that are places; else null.
  [[nodiscard]] const Places* places() const { return m_places ? &*m_places : nullptr; }
  /// Machines' ranks or places: those with a gradient, and those that only sum.
  [[nodiscard]] std::vector<std::size_t> workers() const;
  [[nodiscard]] std::vector<std::size_t> servers() const;
  /// By rank of these.
  [[nodiscard]] int lanes() const { return m_model ? m_model->ranks().front().lanes : m_lanes; }
  void set_lanes(int lanes);

  /// A bound on all trees between the ranks, for the whole gradient.
  [[nodiscard]] const LeastTime& least() const { return m_least; }
  void set_least(LeastTime least) { m_least = std::move(least); }
  /// The order in which stations between places are named (Between::named_first).
  void set_named_first(std::vector<std::size_t> stations) { m_named_first = std::move(stations); }
  /// The curves of one write between two ranks. These ways must outlive them.
  [[nodiscard]] CurveOf curves() const;
  /// For writes of about `part_bytes`.
  [[nodiscard]] Between between(double part_bytes) const;
  [[nodiscard]] OpCost op_cost(double part_bytes) const;
  /// The network's rate relative to its best, for parts of that size; 1 where the network itself
  /// knows sizes.
  [[nodiscard]] double efficiency(double part_bytes) const;
  /// How much slower and faster the network may be than its medians: for ports the measured
  /// extremes, for places the effect of their capacities' samples on the busiest station when
  /// `station_bytes` pass each.
  [[nodiscard]] std::pair<double, double> spread(const std::vector<double>& station_bytes) const;
  /// Rank r of a plan with its place.
  [[nodiscard]] PlanRank place_of(std::size_t rank) const;
  /// Pairs of client and device whose curve consists of a measured latency and a measured rate
  /// because the writes themselves were not measured.
  [[nodiscard]] std::size_t guessed_curves(const std::vector<std::size_t>& clients,
                                           const std::vector<std::size_t>& devices) const;

private:
  [[nodiscard]] std::vector<std::size_t> ranks_that(bool work) const;
  void connect_machines(const CostModel::WhatIf& what_if);
  [[nodiscard]] Between between_machines() const;

  const Profile& m_profile;
  std::optional<Places> m_places;
  std::optional<CostModel> m_model;
  LeastTime m_least;
  std::vector<std::size_t> m_named_first;
  CostModel::WhatIf m_what_if;
  int m_lanes = 1;         ///< of places
  bool m_by_ports = false; ///< machines whose pairs are not known
  /// Between machines, or of a torus; between machines' ports made when first asked for.
  mutable std::optional<Between> m_links;
};

/// The transport between these places if no transport was given: between machines that of their
/// ports, else transport_inside().
[[nodiscard]] std::string transport_between(const Profile& profile, const Network& network);

/// The places inside a machine that roles name, which work, and which only sum.
[[nodiscard]] InsideOptions endpoints_of(const Roles& roles);

/// The rank of a plan that is this object of the topology: its endpoint, kind, PCI address and the
/// processors of the NUMA node that it is or hangs from. Throws Error{input} when there is none.
[[nodiscard]] PlanRank rank_at(const Topology& topology, const std::string& machine,
                               const std::string& endpoint);

/// The cost of a rank's local ops there: adding one more stream occupies the station that needs
/// longest for it, or the lane, and nothing else takes time. `model` must outlive it.
[[nodiscard]] OpCost op_cost(const Network& model, std::vector<std::size_t> places);

} // namespace reckon
