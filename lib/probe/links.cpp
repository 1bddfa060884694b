// SPDX-License-Identifier: Apache-2.0
#include "probe/links.hpp"

#include "core/error.hpp"
#include "documents/cells.hpp"
#include "probe/pattern.hpp"
#include "probe/team.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <thread>
#include <utility>

namespace reckon {
namespace {

constexpr std::size_t k_chunk = 65536;

struct alignas(128) Counter {
  std::atomic<std::uint64_t> chunks{0};
};

/// The copies of one thread: chunk after chunk of its part of both memories.
struct Part {
  const std::byte* from = nullptr;
  std::byte* to = nullptr;
  std::size_t chunks = 1;
};

class NumaLinks final : public LinkMeasurer {
public:
  explicit NumaLinks(Workbench& bench) : m_bench(bench) {
    for (std::size_t n = 0; n < bench.nodes().size(); ++n) {
      m_node[bench.nodes()[n].id] = n;
    }
  }

  [[nodiscard]] bool takes(const EndpointPair& pair) const override {
    const auto from = m_node.find(pair.first);
    return from != m_node.end() && m_node.contains(pair.second) &&
           !m_bench.nodes()[from->second].cpus.empty();
  }

  void prepare(const std::vector<LinkQuestion>& questions) override {
    for (const LinkQuestion& question : questions) {
      std::map<std::string, std::size_t> sources;
      for (const EndpointPair& pair : question.pairs) {
        m_most_of[pair.first] = std::max(m_most_of[pair.first], ++sources[pair.first]);
      }
      m_most_pairs = std::max(m_most_pairs, question.pairs.size());
    }
    for (const auto& [id, n] : m_node) {
      const std::span<std::byte> memory = m_bench.memory(n, 0, m_bench.cold_bytes(n));
      m_bench.team(m_bench.cpus_near(n, 1)).run([&, node = n](std::size_t) {
        fill_with_pattern(memory, m_bench.seed() + node);
      });
    }
  }

  [[nodiscard]] std::vector<std::vector<double>> measure(const std::vector<EndpointPair>& pairs,
                                                         Seconds window) override {
    std::vector<int> cpus;
    std::vector<Part> parts;
    std::vector<std::size_t> pair_of; // by thread
    std::map<std::string, std::size_t> used;
    for (std::size_t p = 0; p < pairs.size(); ++p) {
      const auto& [from, to] = pairs[p];
      const std::vector<int>& near = m_bench.nodes()[m_node.at(from)].cpus;
      const std::size_t threads = std::max<std::size_t>(near.size() / m_most_of.at(from), 1);
      const std::span<std::byte> source = region(m_node.at(from), 0, p);
      const std::span<std::byte> target = region(m_node.at(to), 1, p);
      const std::size_t bytes =
          std::min(source.size(), target.size()) / threads / k_chunk * k_chunk;
      for (std::size_t t = 0; t < threads; ++t) {
        cpus.push_back(near[used[from]++ % near.size()]);
        parts.push_back({source.data() + t * bytes, target.data() + t * bytes,
                         std::max<std::size_t>(bytes / k_chunk, 1)});
        std::memset(parts.back().to, 0xa5, k_chunk); // a copy that was not made shows
        pair_of.push_back(p);
      }
    }
    std::vector<Counter> counters(parts.size());
    std::vector<std::vector<double>> rates(pairs.size());
    {
      const Background copies(cpus, [&](std::size_t rank, std::uint64_t index) noexcept {
        const Part& part = parts[rank];
        const std::size_t offset = index % part.chunks * k_chunk;
        std::memcpy(part.to + offset, part.from + offset, k_chunk);
        counters[rank].chunks.fetch_add(1, std::memory_order_relaxed);
      });
      std::vector<std::uint64_t> before(pairs.size());
      Seconds since(0);
      for (std::size_t w = 0; w <= k_link_windows; ++w) { // the first only sets the marks
        std::this_thread::sleep_for(window);
        std::vector<std::uint64_t> now(pairs.size());
        const Seconds at = m_bench.clock().now();
        for (std::size_t t = 0; t < parts.size(); ++t) {
          now[pair_of[t]] += counters[t].chunks.load(std::memory_order_relaxed);
        }
        for (std::size_t p = 0; w > 0 && p < pairs.size(); ++p) {
          rates[p].push_back(static_cast<double>((now[p] - before[p]) * k_chunk) /
                             (at - since).count());
        }
        before = std::move(now);
        since = at;
        if (m_bench.interrupted() && m_bench.interrupted()()) {
          fail(ErrorKind::operation, "interrupted");
        }
      }
    }
    for (std::size_t t = 0; t < parts.size(); ++t) {
      if (std::memcmp(parts[t].from, parts[t].to, k_chunk) != 0) {
        const auto& [from, to] = pairs[pair_of[t]];
        fail(ErrorKind::operation, fmt::format("a copy from {} to {} differs", from, to));
      }
    }
    return rates;
  }

private:
  /// Of a node's memory the part for the p-th pair.
  std::span<std::byte> region(std::size_t node, std::size_t which, std::size_t p) {
    const std::uint64_t all = m_bench.cold_bytes(node);
    const std::uint64_t one = all / m_most_pairs / k_chunk * k_chunk;
    return m_bench.memory(node, which, all).subspan(p * one, one);
  }

  Workbench& m_bench;
  std::map<std::string, std::size_t> m_node;
  std::map<std::string, std::size_t> m_most_of; ///< pairs that start there at once
  std::size_t m_most_pairs = 1;
};

/// The questions of a campaign and what became of them.
class Links {
public:
  Links(LinkCampaignOptions options, std::vector<SharedLink> shared,
        std::shared_ptr<LinkMeasurer> measurer)
      : m_options(std::move(options)), m_measurer(std::move(measurer)) {
    for (SharedLink& one : shared) {
      std::erase_if(one.pairs,
                    [this](const EndpointPair& pair) { return !m_measurer->takes(pair); });
      if (one.pairs.size() > 1) {
        m_shared.push_back(std::move(one));
      }
    }
    m_questions = link_questions(m_shared);
  }

  [[nodiscard]] const LinkCampaignOptions& options() const { return m_options; }
  [[nodiscard]] const std::vector<LinkQuestion>& questions() const { return m_questions; }

  void discover() {
    std::set<EndpointPair> alone;
    for (const LinkQuestion& question : m_questions) {
      alone.insert(question.pairs.begin(), question.pairs.end());
    }
    const std::size_t count = alone.size() + m_questions.size();
    const auto windows = static_cast<double>(count * k_link_windows);
    const Seconds window = std::min(m_options.window, m_options.most / windows);
    if (window < m_options.least_window) {
      fail(ErrorKind::unavailable,
           fmt::format("{} measurements need {}, and no more than {} is spent on them", count,
                       to_text(m_options.least_window * windows), to_text(m_options.most)));
    }
    m_measurer->prepare(m_questions);
    m_findings = find_shared_links(m_shared, [&](const std::vector<EndpointPair>& pairs) {
      return m_measurer->measure(pairs, window);
    });
  }

  [[nodiscard]] const LinkFinding& finding(const LinkEnd& link) const {
    return *std::find_if(m_findings.begin(), m_findings.end(),
                         [&](const LinkFinding& f) { return f.link == link; });
  }

private:
  LinkCampaignOptions m_options;
  std::shared_ptr<LinkMeasurer> m_measurer;
  std::vector<SharedLink> m_shared;
  std::vector<LinkQuestion> m_questions;
  std::vector<LinkFinding> m_findings;
};

} // namespace

void fill_link_cell(Cell& cell, const LinkFinding& finding) {
  if (finding.verdict == LinkVerdict::unclear || finding.together.empty()) {
    discard(cell, CellStatus::skipped, finding.text());
    return;
  }
  for (const double rate : finding.together) {
    if (rate > 0) {
      cell.samples.push_back(rate);
    }
  }
  if (cell.samples.empty()) {
    discard(cell, CellStatus::failed, "nothing arrived");
    return;
  }
  summarize_cell(cell);
  if (finding.verdict == LinkVerdict::carries) {
    remark(cell, CellStatus::noisy, finding.text());
  } else {
    remark(cell, finding.text());
  }
}

Campaign links_campaign(const LinkCampaignOptions& options, const std::vector<SharedLink>& shared,
                        std::shared_ptr<LinkMeasurer> measurer) {
  const auto links = std::make_shared<Links>(options, shared, std::move(measurer));
  Campaign campaign{.name = options.name, .begin = [links] { links->discover(); }, .once = true};
  for (const LinkQuestion& question : links->questions()) {
    campaign.plans.push_back({.key = {.test = k_link_bandwidth,
                                      .from = question.link.from,
                                      .to = question.link.to,
                                      .direction = k_one_way,
                                      .state = options.state},
                              .visit = Seconds(0),
                              .measure = [links, link = question.link](Cell& cell, Seconds) {
                                fill_link_cell(cell, links->finding(link));
                              }});
  }
  return campaign;
}

Campaign numa_links_campaign(Workbench& bench, const Topology& topology, Seconds most) {
  return links_campaign({.name = "shared links", .state = "cold", .most = most},
                        shared_links(topology, bench.machine()),
                        std::make_shared<NumaLinks>(bench));
}

} // namespace reckon
