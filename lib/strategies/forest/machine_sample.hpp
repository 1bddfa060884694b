// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "documents/profile.hpp"
#include "strategies/strategy.hpp"
#include "strategies/ways.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace reckon {

/// How many machines work, the workers of each, and how many machines only serve.
struct MachinesShape {
  std::size_t machines = 0, width = 0, servers = 0;
};
/// Of ranks in that order.
[[nodiscard]] MachinesShape shape_of(const std::vector<PlanRank>& ranks);

/// Of equal machines the first two and the last, and the first and the last that only serves: what
/// lies between them tells what any of all the machines carries. Ranks are numbered by the sample.
class MachineSample {
public:
  /// `ranks`: of all machines. Throws as places_of().
  MachineSample(const Profile& profile, const std::vector<PlanRank>& ranks,
                const std::string& transport, bool gpu_direct);

  /// Why these machines are no equal ones that can be planned: a write that their trees need is
  /// impossible, takes longer between some of them than between others, or has no known rate.
  /// Empty: they are.
  [[nodiscard]] std::string why_not_equal() const;

  [[nodiscard]] const MachinesShape& shape() const { return m_shape; }
  [[nodiscard]] const Ways& ways() const { return m_ways; }
  [[nodiscard]] const Between& between() const { return m_between; }
  [[nodiscard]] std::size_t worker(std::size_t machine, std::size_t place) const {
    return machine * m_shape.width + place;
  }
  [[nodiscard]] std::size_t server() const { return m_first_server; }

  using MachineTrees = std::vector<std::vector<std::uint64_t>>; ///< Plan::machine_trees
  /// Of each worker as the head, in order: all others hand their sums to it; and where several are
  /// below some PCIe switch, those of other switches to one of each, which hands it what they have.
  [[nodiscard]] std::vector<MachineTrees> machine_trees() const;

  [[nodiscard]] std::vector<double> no_bytes() const {
    return std::vector<double>(m_between.network.station_bytes_per_s.size(), 0.0);
  }
  /// Adds bytes to the stations between the first machine's and the second's worker of a number, to
  /// the other and back; or to those at the first server, from all machines and to them.
  void carry_between(std::vector<double>& bytes, std::size_t place, double sent,
                     double received) const;
  void carry_at_server(std::vector<double>& bytes, std::size_t place, double sent,
                       double received) const;
  /// The station that is busy longest, and how long.
  [[nodiscard]] std::size_t busiest(const std::vector<double>& bytes) const;
  [[nodiscard]] double busy_s(const std::vector<double>& bytes) const;

  /// What the stations of the first machine and the first server carry of a plan, as they do in
  /// whichever of all machines is busiest. `loads`: the machines' traffic with one another, of the
  /// parts of each machine tree.
  [[nodiscard]] std::vector<double> stations(const Plan& plan,
                                             const std::vector<Load>& loads) const;
  /// Seconds from a part's first write to its last, without others: up and down the levels, each
  /// the write of all children one after the other, and their sums.
  [[nodiscard]] double life_s(const Plan& plan) const;

private:
  void carry(std::vector<double>& bytes, std::size_t from, std::size_t to, double count,
             const std::vector<std::uint32_t>* also = nullptr) const;
  [[nodiscard]] double write_s(std::size_t from, std::size_t to, double bytes) const {
    return m_between.network.write_seconds(from, to, bytes);
  }
  [[nodiscard]] double level_s(const Plan& plan, std::size_t from, std::size_t to,
                               std::size_t children) const;
  [[nodiscard]] double inside_s(const Plan& plan, std::size_t place) const;

  MachinesShape m_shape;
  std::vector<PlanRank> m_ranks;
  std::size_t m_first_server = 0;
  Ways m_ways;
  Between m_between;
  OpCost m_cost;
};

/// Bytes of the parts that take a machine tree.
[[nodiscard]] double bytes_of_way(const Plan& plan, std::size_t way);

} // namespace reckon
