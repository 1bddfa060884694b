// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "probe/campaign.hpp"
#include "probe/shared_links.hpp"
#include "probe/workbench.hpp"

#include <memory>
#include <string>
#include <vector>

namespace reckon {

/// What a finding says, in a cell of that case: the capacity of a link that limits, noisy what one
/// carried that may carry more, and no value where it is unclear.
void fill_link_cell(Cell& cell, const LinkFinding& finding);

/// Copies between places of one kind, for a campaign that finds what their ways share.
class LinkMeasurer {
public:
  LinkMeasurer() = default;
  LinkMeasurer(const LinkMeasurer&) = delete;
  LinkMeasurer& operator=(const LinkMeasurer&) = delete;
  virtual ~LinkMeasurer() = default;

  /// Whether there are copies from the one to the other.
  [[nodiscard]] virtual bool takes(const EndpointPair& pair) const = 0;
  /// Once, before the first measure(): what will be asked.
  virtual void prepare(const std::vector<LinkQuestion>& questions) = 0;
  /// As MeasureTogether, in k_link_windows windows of about `window` each. Throws Error, also when
  /// what arrived is not what was sent.
  [[nodiscard]] virtual std::vector<std::vector<double>>
  measure(const std::vector<EndpointPair>& pairs, Seconds window) = 0;
};
inline constexpr std::size_t k_link_windows = 12;

struct LinkCampaignOptions {
  std::string name;
  std::string state; ///< of the cells: what the copies' memory is
  /// Of one window: shorter ones are not worth it, longer ones not needed.
  Seconds least_window{0.003}, window{0.010};
  Seconds most{3}; ///< for all measurements together
};

/// Solo against together (find_shared_links) for the ways of `shared` that `measurer` takes: a cell
/// for each link. Nothing to do where no two of them pass the same link. All of it is measured when
/// the campaign begins, within about `options.most`, or it fails with what it would take.
[[nodiscard]] Campaign links_campaign(const LinkCampaignOptions& options,
                                      const std::vector<SharedLink>& shared,
                                      std::shared_ptr<LinkMeasurer> measurer);

/// links_campaign() of copies between NUMA nodes. The cores of the source copy; as many for each
/// pair, alone or not. Nothing to do with fewer than three nodes.
[[nodiscard]] Campaign numa_links_campaign(Workbench& bench, const Topology& topology,
                                           Seconds most);

} // namespace reckon
