// SPDX-License-Identifier: Apache-2.0
#include "probe/gpu_places.hpp"

#include "core/error.hpp"
#include "probe/gpu_timer.hpp"
#include "probe/links.hpp"
#include "topology/paths.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace reckon {
namespace {

using End = GpuPlaces::End;

/// Of one way in one window, so that what a single copy costs weighs little.
constexpr std::uint64_t k_copies = 8;
/// Lengths and places of copies are multiples of it.
constexpr std::uint64_t k_step = 64;
/// Of the first try, which only tells how fast a way is.
constexpr std::uint64_t k_first_bytes = 1U << 20U;
constexpr int k_most_tries = 6;
/// Ways of one measurement are even when the fastest is over this little before the slowest: for
/// the rest of the time the others would have the link for themselves.
constexpr double k_even = 0.03;

class GpuLinks final : public LinkMeasurer {
public:
  GpuLinks(std::shared_ptr<GpuPlaces> places, const Topology& topology)
      : m_places(std::move(places)) {
    const std::vector<GpuPlace>& gpus = m_places->gpus();
    for (std::size_t n = 0; n < m_places->bench().nodes().size(); ++n) {
      m_end[m_places->bench().nodes()[n].id] = {false, n};
    }
    for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
      m_end[gpus[gpu].id] = {true, gpu};
      for (std::size_t other = 0; other < gpus.size(); ++other) {
        const bool known =
            gpu != other &&
            (!m_places->nvlinked(gpu, other) ||
             path_between(topology, gpus[gpu].id, gpus[other].id).path_class == PathClass::nv);
        if (known && m_places->peers(gpu, other)) {
          m_peers.emplace(gpu, other);
        }
      }
    }
  }

  [[nodiscard]] bool takes(const EndpointPair& pair) const override {
    const auto from = m_end.find(pair.first);
    const auto to = m_end.find(pair.second);
    if (from == m_end.end() || to == m_end.end() || (!from->second.is_gpu && !to->second.is_gpu)) {
      return false;
    }
    return !from->second.is_gpu || !to->second.is_gpu ||
           m_peers.contains({from->second.index, to->second.index});
  }

  void prepare(const std::vector<LinkQuestion>& questions) override {
    std::size_t most = 1;
    for (const LinkQuestion& question : questions) {
      most = std::max(most, question.pairs.size());
    }
    m_region = m_places->large_bytes() / most / k_step * k_step;
    if (m_region == 0) {
      fail(ErrorKind::unavailable,
           fmt::format("{} copies at once do not fit into the memory set aside", most));
    }
  }

  [[nodiscard]] std::vector<std::vector<double>> measure(const std::vector<EndpointPair>& pairs,
                                                         Seconds window) override {
    std::vector<GpuCopy> copies;
    for (const auto& [from, to] : pairs) {
      GpuCopy copy{m_end.at(from), m_end.at(to)};
      copy.offset = copies.size() * m_region;
      copy.bytes = std::min(k_first_bytes, m_region);
      settle_access(*m_places, copy);
      copies.push_back(copy);
    }
    settle_lengths(copies, window);
    for (const GpuCopy& copy : copies) {
      m_places->spoil(copy.to, copy.offset, copy.bytes);
    }
    std::vector<std::vector<double>> rates(pairs.size());
    GpuTimer timer = timer_of(copies);
    const auto& interrupted = m_places->bench().interrupted();
    for (std::size_t w = 0; w < k_link_windows; ++w) {
      const std::vector<double> now = rates_of(timer, copies);
      for (std::size_t i = 0; i < copies.size(); ++i) {
        rates[i].push_back(now[i]);
      }
      if (interrupted && interrupted()) {
        fail(ErrorKind::operation, "interrupted");
      }
    }
    for (const GpuCopy& copy : copies) {
      Cell verdict;
      verdict.status = CellStatus::ok;
      m_places->verify(verdict, copy.from, copy.to, copy.offset, copy.bytes);
      if (verdict.status != CellStatus::ok) {
        fail(ErrorKind::operation, verdict.reason);
      }
    }
    return rates;
  }

private:
  [[nodiscard]] GpuTimer timer_of(const std::vector<GpuCopy>& copies) {
    std::vector<GpuTimer::Flow> flows;
    for (const GpuCopy& copy : copies) {
      flows.push_back(flow_of(*m_places, copy));
    }
    return {m_places->library(), std::move(flows), true};
  }

  /// Bytes per second of each way, while all are under way.
  static std::vector<double> rates_of(GpuTimer& timer, const std::vector<GpuCopy>& copies) {
    static_cast<void>(timer.time(k_copies));
    std::vector<double> rates;
    for (std::size_t i = 0; i < copies.size(); ++i) {
      rates.push_back(static_cast<double>(copies[i].bytes * k_copies) /
                      std::max(timer.flow_seconds()[i], 1e-9));
    }
    return rates;
  }

  /// Makes copies so long that k_copies of each way take `window`, or as long as the memory allows,
  /// and all ways equally long.
  void settle_lengths(std::vector<GpuCopy>& copies, Seconds window) {
    for (int attempt = 0; attempt < k_most_tries; ++attempt) {
      GpuTimer timer = timer_of(copies);
      const std::vector<double> rates = rates_of(timer, copies);
      const auto [least, most] =
          std::minmax_element(timer.flow_seconds().begin(), timer.flow_seconds().end());
      if (attempt > 0 && *least >= (1 - k_even) * *most) {
        return;
      }
      const double fastest = *std::max_element(rates.begin(), rates.end());
      const double seconds = std::min(window.count() / static_cast<double>(k_copies),
                                      static_cast<double>(m_region) / fastest);
      for (std::size_t i = 0; i < copies.size(); ++i) {
        const auto steps =
            static_cast<std::uint64_t>(rates[i] * seconds / static_cast<double>(k_step));
        copies[i].bytes = std::max<std::uint64_t>(steps, 1) * k_step;
      }
    }
  }

  std::shared_ptr<GpuPlaces> m_places;
  std::map<std::string, End> m_end;
  std::set<std::pair<std::size_t, std::size_t>> m_peers; ///< pairs of GPUs that are copied
  std::uint64_t m_region = 0; ///< bytes of the part of a buffer that one way has
};

} // namespace

Campaign gpu_links_campaign(const std::shared_ptr<GpuPlaces>& places, const Topology& topology,
                            Seconds most) {
  const LinkCampaignOptions options{.name = "GPU shared links",
                                    .state = "pinned",
                                    .least_window = Seconds(0.001),
                                    .window = Seconds(0.005),
                                    .most = most};
  Campaign campaign = links_campaign(options, shared_links(topology, places->bench().machine()),
                                     std::make_shared<GpuLinks>(places, topology));
  campaign.begin = [places, begin = std::move(campaign.begin)] {
    try {
      begin();
    } catch (...) { // then nobody calls end
      places->close();
      throw;
    }
  };
  campaign.end = [places] { places->close(); };
  return campaign;
}

} // namespace reckon
