// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "probe/campaign.hpp"
#include "probe/shared_links.hpp"
#include "probe/workbench.hpp"

#include <memory>
#include <string>
#include <vector>

namespace reckon {

/// The cell of a finding, of that case: the capacity of a limiting link, noisy for a link that may
/// carry more than was measured, and without a value where it is unclear.
void fill_link_cell(Cell& cell, const LinkFinding& finding);

/// Copies between places of one kind, for a campaign that finds their shared links.
class LinkMeasurer {
public:
  LinkMeasurer() = default;
  LinkMeasurer(const LinkMeasurer&) = delete;
  LinkMeasurer& operator=(const LinkMeasurer&) = delete;
  virtual ~LinkMeasurer() = default;

  /// Whether there are copies from one to the other.
  [[nodiscard]] virtual bool takes(const EndpointPair& pair) const = 0;
  /// Once, before the first measure(): the coming questions.
  virtual void prepare(const std::vector<LinkQuestion>& questions) = 0;
  /// As MeasureTogether, in k_link_windows windows of about `window` each. Throws Error, also when
  /// the arrived data are wrong.
  [[nodiscard]] virtual std::vector<std::vector<double>>
  measure(const std::vector<EndpointPair>& pairs, Seconds window) = 0;
};
inline constexpr std::size_t k_link_windows = 12;

struct LinkCampaignOptions {
  std::string name;
  std::string state; ///< of the cells: the kind of the copies' memory
  /// Length of one window: shorter ones are too noisy, longer ones unnecessary.
  Seconds least_window{0.003}, window{0.010};
  Seconds most{3}; ///< for all measurements together
};

/// Solo against together (find_shared_links) for the ways of `shared` that `measurer` takes: a cell
/// for each link. No work where no two of them pass the same link. Everything is measured when the
/// campaign begins, within about `options.most`, or it fails with the time that it needs.
[[nodiscard]] Campaign links_campaign(const LinkCampaignOptions& options,
                                      const std::vector<SharedLink>& shared,
                                      std::shared_ptr<LinkMeasurer> measurer);

/// links_campaign() of copies between NUMA nodes. The cores of the source copy; as many for each
/// pair, alone or not. No work with fewer than three nodes.
[[nodiscard]] Campaign numa_links_campaign(Workbench& bench, const Topology& topology,
                                           Seconds most);

} // namespace reckon
