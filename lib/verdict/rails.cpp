// SPDX-License-Identifier: Apache-2.0
#include "core/split.hpp"
#include "documents/cells.hpp"
#include "verdict/checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace reckon::verdict_detail {
namespace {

std::string before_slash(const std::string& place) {
  return place.substr(0, place.find('/'));
}

/// Holds rails between the same two machines against each other, and all at once against their sum.
class RailsOfPairs {
public:
  RailsOfPairs(const Profile& profile, Verdict& verdict) : m_profile(profile), m_verdict(verdict) {
    for (const Cell& cell : profile.cells) {
      if (cell.key.test == k_rail_bandwidth && cell.has_value()) {
        Way& way = m_ways[{before_slash(cell.key.from), before_slash(cell.key.to)}];
        if (cell.key.operation == k_rails_at_once) {
          way.at_once = &cell;
        } else {
          way.alone.push_back(&cell);
        }
      }
    }
  }

  void check() {
    for (const auto& [ends, way] : m_ways) {
      slow_rails(way);
      at_once(way);
    }
    for (auto& [rail, judged] : m_rails) {
      judged.tell(m_verdict, rail);
    }
    m_at_once.tell(m_verdict, m_profile.name);
    if (const auto missing = m_profile.context.find("rails_left_out");
        missing != m_profile.context.end()) {
      m_verdict.unknown.push_back("rails that not all machines have: " + missing->second);
    }
  }

private:
  /// From one machine to another.
  struct Way {
    std::vector<const Cell*> alone; ///< of each rail
    const Cell* at_once = nullptr;
  };
  /// Of one question, asked of each way.
  struct Judged {
    std::size_t asked = 0;
    std::vector<Finding> slow;

    /// If all ways of several pairs are slow it is no pair's fault: told of once, at `place`.
    void tell(Verdict& verdict, const std::string& place) {
      if (asked > 2 && slow.size() == asked) {
        Finding worst = *std::ranges::min_element(slow, {}, &Finding::share);
        worst.against += fmt::format(", as of all {} pairs", asked / 2);
        worst.place = place;
        worst.others = asked - 1;
        slow = {worst};
      }
      std::ranges::move(slow, std::back_inserter(verdict.findings));
    }
  };

  /// Ports of described speeds are held against those of the same speed.
  void slow_rails(const Way& way) {
    std::map<double, std::vector<const Cell*>> alike;
    for (const Cell* cell : way.alone) {
      const TopologyObject* const nic = nic_of(m_profile, cell->key.from);
      alike[nic == nullptr ? 0 : nic->link_bytes_per_second.value_or(0)].push_back(cell);
    }
    for (const auto& [speed, cells] : alike) {
      const OddOnes odd = odd_cells(cells);
      m_verdict.checks[FindingKind::like] += cells.size() > 1 ? cells.size() : 0;
      for (const Cell* cell : cells) {
        ++m_rails[cell->key.operation].asked;
      }
      for (const std::size_t i : odd.places) {
        m_rails[cells[i]->key.operation].slow.push_back(
            finding(FindingKind::like, *cells[i], odd.expected,
                    fmt::format("the median of {} other rails of the two machines",
                                cells.size() - odd.places.size()),
                    remedy_for(m_profile, cells[i]->key.from, cells[i]->key)));
      }
    }
  }

  void at_once(const Way& way) {
    if (way.at_once == nullptr || way.alone.size() < 2) {
      return;
    }
    double sum = 0;
    for (const Cell* cell : way.alone) {
      sum += cell->p50;
    }
    ++m_verdict.checks[FindingKind::alternative];
    ++m_at_once.asked;
    if (is_far_below(*way.at_once, sum)) {
      m_at_once.slow.push_back(finding(
          FindingKind::alternative, *way.at_once, sum,
          fmt::format("what its {} rails do, each alone", way.alone.size()), k_shared_remedy));
    }
  }

  [[nodiscard]] Finding finding(FindingKind kind, const Cell& cell, double expected,
                                std::string against, std::string remedy) const {
    return {.kind = kind,
            .place = to_place(cell.key.from, cell.key.to),
            .what = setting_of(cell.key),
            .value = number_side(cell.p50, cell.unit),
            .expected = number_side(expected, cell.unit),
            .against = std::move(against),
            .remedy = std::move(remedy),
            .share = cell.p50 / expected};
  }

  const Profile& m_profile;
  Verdict& m_verdict;
  std::map<std::pair<std::string, std::string>, Way> m_ways;
  std::map<std::string, Judged> m_rails;
  Judged m_at_once;
};

} // namespace

const TopologyObject* nic_of(const Profile& profile, const std::string& port) {
  const std::string machine = before_slash(port);
  const std::string name = port.substr(std::min(machine.size() + 1, port.size()));
  const auto group = std::ranges::find_if(profile.machines, [&](const MachineGroup& g) {
    return std::ranges::find(g.members, machine) != g.members.end();
  });
  if (group == profile.machines.end()) {
    return nullptr;
  }
  for (const std::string& id : profile.topology.ids_in(group->id, ObjectKind::nic)) {
    const TopologyObject* const nic = profile.topology.find(id);
    const std::vector<std::string> names = split(nic->name, " "); // "eth0 mlx5_0"
    if (std::ranges::find(names, name) != names.end()) {
      return nic;
    }
  }
  return nullptr;
}

void check_rails(const Profile& profile, Verdict& verdict) {
  RailsOfPairs(profile, verdict).check();
}

} // namespace reckon::verdict_detail
