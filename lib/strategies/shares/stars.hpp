// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace reckon {

struct Load;
struct Plan;

/// Who hands a part's sum to whom where each part has a root, and who gets how many bytes by that.
/// Without groups all workers write to the root, and it to them. With groups of the workers trees
/// have two levels (equation 8c): each group has a head, which sums what the group has of the part,
/// and the root sums what the heads have. Parts whose root is a worker have heads that work, too:
/// the one of each group that has the root's place in it. Parts of a root that only serves have
/// heads that only serve, evenly spaced after the root. Groups are of neighbours, and as equal as
/// can be.
class Stars {
public:
  /// Ranks with at least one worker; at most as many groups as workers.
  /// `servers_head`: whether parts of a root that only serves have heads, or one level.
  Stars(std::vector<std::size_t> workers, std::vector<std::size_t> servers, std::size_t groups,
        bool servers_head = true);
  /// Of the ranks and groups of a plan.
  explicit Stars(const Plan& plan);

  /// Who is above a rank in the tree of a root: at the root itself; nobody: it takes no part.
  [[nodiscard]] std::optional<std::size_t> parent(std::size_t root, std::size_t rank) const;
  /// Whose parent a rank is, in order.
  [[nodiscard]] std::vector<std::size_t> children(std::size_t root, std::size_t rank) const;
  /// What the ranks send, receive and add up when rank r is the root of loads[r] bytes (equation
  /// 5), without racks.
  [[nodiscard]] Load load_of(std::span<const double> loads) const;
  /// Groups in the trees of roots that only serve: fewer where there are not as many heads.
  [[nodiscard]] std::size_t served_groups() const;

private:
  struct Place {
    bool worker = false, server = false;
    std::size_t number = 0; ///< among the workers, or among those that only serve
  };
  [[nodiscard]] Place place_of(std::size_t rank) const;
  [[nodiscard]] std::size_t first_of(std::size_t group, std::size_t groups) const;
  [[nodiscard]] std::size_t size_of(std::size_t group, std::size_t groups) const;
  [[nodiscard]] std::size_t group_of(std::size_t worker, std::size_t groups) const;
  [[nodiscard]] std::size_t groups_for(const Place& root) const;
  [[nodiscard]] std::size_t head(const Place& root, std::size_t group) const;
  [[nodiscard]] std::size_t steps_to_head(std::size_t group) const;
  [[nodiscard]] std::size_t place_of_head(std::size_t worker, std::size_t size) const;
  void add_workers(Load& load, std::span<const double> loads) const;
  void add_servers(Load& load, std::span<const double> loads) const;

  std::vector<std::size_t> m_workers, m_servers;
  std::size_t m_groups;
  bool m_servers_head;
  std::vector<Place> m_places; ///< by rank
};

} // namespace reckon
