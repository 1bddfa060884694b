// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "network/network.hpp"
#include "stats/curve.hpp"
#include "strategies/between.hpp"
#include "strategies/least.hpp"
#include "strategies/planner.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace reckon {

/// What lies between clients and memory devices: the links inside a machine where the ranks are
/// places in one, else the measured pairs of machines, else their ports; and what the ranks' local
/// ops cost.
class ProxyWays {
public:
  /// Throws Error{input} for roles of which only some name endpoints, and as CostModel.
  ProxyWays(const PlanInputs& inputs, const PlanOptions& options);

  [[nodiscard]] const CostModel& model() const { return m_model; }
  [[nodiscard]] bool inside_a_machine() const { return m_inside.has_value(); }
  /// The workers and relays to plan for when the ranks are places; else absent.
  [[nodiscard]] const InsideOptions* inside_options() const {
    return m_inside ? &m_inside->options : nullptr;
  }
  void set_lanes(int lanes) { m_model.set_lanes(lanes); }

  /// What no trees between the ranks beat, of the whole gradient.
  [[nodiscard]] const LeastTime& least() const { return m_least; }
  /// Of one write between two ranks; `source` gets the cells that it was read from.
  [[nodiscard]] Curve curve(std::size_t from, std::size_t to, std::string* source) const;
  /// For writes of about `part_bytes`.
  [[nodiscard]] Between between(double part_bytes) const;
  [[nodiscard]] OpCost op_cost(double part_bytes) const;
  /// Rate of what lies between relative to its best, for parts of that size; 1 where the network
  /// itself knows sizes.
  [[nodiscard]] double efficiency(double part_bytes) const;
  /// How much slower and faster than their medians the ports were seen to be, at most.
  [[nodiscard]] std::pair<double, double> port_spread() const;
  /// Rank r of a plan as far as its place goes.
  [[nodiscard]] PlanRank place_of(std::size_t rank) const;
  /// Pairs of client and device whose curve is made of a measured latency and a measured rate
  /// because the writes themselves were not measured.
  [[nodiscard]] std::size_t guessed_curves(const std::vector<std::size_t>& clients,
                                           const std::vector<std::size_t>& devices) const;

private:
  /// Ranks that are places inside a machine.
  struct Inside {
    InsideOptions options; ///< workers and memory devices
    Network model;
    std::vector<std::string> endpoints; ///< by rank
    std::vector<std::size_t> index;     ///< by rank: endpoint of the model
    PlayNetwork network;
  };
  [[nodiscard]] static std::optional<Inside> inside_of(const PlanInputs& inputs);
  [[nodiscard]] static CostModel::WhatIf what_if_of(const std::optional<Inside>& inside,
                                                    const PlanOptions& options);

  const Profile& m_profile;
  std::optional<Inside> m_inside;
  CostModel m_model;
  LeastTime m_least;
  std::optional<Between> m_pairs;
};

} // namespace reckon
