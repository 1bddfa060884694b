// SPDX-License-Identifier: Apache-2.0
#include "documents/cells.hpp"
#include "documents/contention.hpp"
#include "topology/numa.hpp"
#include "topology/paths.hpp"
#include "verdict/checks.hpp"
#include "verdict/odd_ones.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reckon::verdict_detail {
namespace {

/// Copies the other way, of places that are of two kinds or a machine's whole port.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> k_opposite{
    {{k_device_to_host_ce, k_host_to_device_ce}, {k_fan_in, k_fan_out}}};

/// What moves both ways at once, and what moves one way alone, there and back. Its rate is that of
/// both ways together.
struct BothWays {
  std::string_view together, there, back;
};
constexpr std::array<BothWays, 3> k_both_ways{
    {{k_host_device_two_way_ce, k_host_to_device_ce, k_device_to_host_ce},
     {k_device_two_way_ce, k_device_write_ce, k_device_write_ce},
     {"device_to_device_bidirectional_memcpy_write_sm", k_device_write_sm, k_device_write_sm}}};

/// Compares what a profile measured in two ways, or at a link's two ends.
class Alternatives {
public:
  Alternatives(const Profile& profile, Verdict& verdict) : m_profile(profile), m_verdict(verdict) {
    for (const Cell& cell : profile.cells) {
      if (cell.has_value() && !is_contention(cell.key) && cell.key.test != k_fabric_window) {
        CellKey key = cell.key;
        key.bytes = 0;
        key.in_flight = 0;
        const Cell*& longest = m_cells[key];
        longest = longest == nullptr || cell.key.bytes >= longest->key.bytes ? &cell : longest;
      }
    }
  }

  void check() {
    for (const auto& [key, cell] : m_cells) {
      direct_or_staged(key, *cell);
      directions(key, *cell);
      both_ways(key, *cell);
      several_peers(key, *cell);
      halves(*cell);
    }
    tell_of_ways();
    for (const auto& [all, each] : {std::pair(k_host_to_all_ce, k_host_to_device_ce),
                                    std::pair(k_all_to_host_ce, k_device_to_host_ce),
                                    std::pair(k_port_bandwidth, k_single_port)}) {
      all_at_once(all, each);
    }
    for (const TopologyObject* nic : m_profile.topology.of_kind(ObjectKind::nic)) {
      port(*nic);
    }
  }

private:
  [[nodiscard]] const Cell* at(const CellKey& key) const {
    const auto found = m_cells.find(key);
    return found == m_cells.end() ? nullptr : found->second;
  }

  [[nodiscard]] Finding finding(const Cell& cell, double expected, std::string against,
                                std::string remedy) const {
    const CellKey& key = cell.key;
    const bool whole = key.from == key.to || key.to.empty();
    const std::string from = shown_place(m_profile, key.from);
    const std::string place = whole ? (from.empty() ? m_profile.name : from)
                                    : to_place(from, shown_place(m_profile, key.to));
    return {.kind = FindingKind::alternative,
            .place = place,
            .what = setting_of(key),
            .value = number_side(cell.p50, cell.unit),
            .expected = number_side(expected, cell.unit),
            .against = std::move(against),
            .remedy = std::move(remedy),
            .share = cell.unit == k_seconds ? expected / cell.p50 : cell.p50 / expected};
  }

  [[nodiscard]] static std::string machine_of(const std::string& id) {
    return id.substr(0, id.find('/'));
  }

  /// Whether `cell` is worse than `other` by more than the noise.
  bool is_worse(const Cell& cell, const Cell& other) {
    ++m_verdict.checks[FindingKind::alternative];
    const OddOnes odd = odd_cells({&cell, &other});
    return odd.places == std::vector<std::size_t>{0};
  }

  bool falls_short(const Cell& cell, double expected) {
    ++m_verdict.checks[FindingKind::alternative];
    return is_far_below(cell, expected);
  }

  void direct_or_staged(CellKey key, const Cell& cell) {
    if (key.state != "peer") {
      return;
    }
    key.state = "staged";
    const Cell* const staged = at(key);
    if (staged == nullptr || staged->key.bytes != cell.key.bytes) {
      return;
    }
    Ways& ways = m_ways[machine_of(key.from)];
    ways.judged.emplace(key.from, key.to);
    if (is_worse(cell, *staged)) {
      ways.faulty.emplace(key.from, key.to);
      ways.slow.push_back(
          finding(cell, staged->p50, "by way of the host",
                  "direct copies take a detour: see ACS and IOMMU (`lspci -vvv | grep ACSCtl`, "
                  "`dmesg | grep -i iommu`) and `nvidia-smi topo -p2p r`; until that is mended, "
                  "NCCL_P2P_DISABLE=1 copies by way of the host"));
    }
  }

  /// A machine whose every pair has the fault is told of once, by its worst pair.
  void tell_of_ways() {
    for (auto& [machine, ways] : m_ways) {
      std::ranges::stable_sort(ways.slow, {}, &Finding::share);
      if (ways.judged.size() > 2 && ways.faulty == ways.judged) {
        ways.slow.front().others = ways.slow.size() - 1;
        ways.slow.front().against += fmt::format(", as of all {} pairs", ways.judged.size());
        ways.slow.resize(1);
      }
      std::ranges::move(ways.slow, std::back_inserter(m_verdict.findings));
    }
  }

  /// Whether two places could be each other's, so that no way between them is meant to be slower.
  [[nodiscard]] bool are_alike(const std::string& a, const std::string& b) const {
    const TopologyObject* const one = m_profile.topology.find(a);
    const TopologyObject* const other = m_profile.topology.find(b);
    return one == nullptr || other == nullptr
               ? one == other
               : one->kind == other->kind && one->name == other->name &&
                     one->cpus.size() == other->cpus.size();
  }

  void directions(CellKey key, const Cell& cell) {
    const auto* const opposite = std::ranges::find(k_opposite, std::string_view(key.test),
                                                   &decltype(k_opposite)::value_type::first);
    const bool port = key.to.empty();
    if (opposite != k_opposite.end()) {
      key.test = opposite->second;
    } else if (port || key.from >= key.to || !are_alike(key.from, key.to)) {
      return;
    }
    if (!port) {
      std::swap(key.from, key.to);
    }
    const Cell* const back = at(key);
    if (back == nullptr || back->key.bytes != cell.key.bytes || key.state == "pageable") {
      return;
    }
    for (const auto& [slow, fast] : {std::pair(&cell, back), std::pair(back, &cell)}) {
      if (is_worse(*slow, *fast)) {
        m_verdict.findings.push_back(
            finding(*slow, fast->p50, port ? "what it sends or takes" : "the other direction",
                    remedy_for(m_profile, slow->key.from, slow->key)));
      }
    }
  }

  void both_ways(CellKey key, const Cell& cell) {
    const Cell* there = nullptr;
    const Cell* back = nullptr;
    const auto* const both =
        std::ranges::find(k_both_ways, std::string_view(key.test), &BothWays::together);
    key.direction = k_one_way;
    if (cell.key.direction == k_one_way || key.state == "staged") {
      return; // a memory that both ways pass is a reason to be slower
    }
    if (both != k_both_ways.end()) {
      key.test = both->there;
      there = at(key);
      key.test = both->back;
      std::swap(key.from, key.to);
      back = at(key);
    } else if (key.test == k_pair_bandwidth) {
      there = at(key);
    }
    if (there == nullptr || (both != k_both_ways.end() && back == nullptr)) {
      return;
    }
    const double expected = there->p50 + (back == nullptr ? 0 : back->p50);
    if (falls_short(cell, expected)) {
      m_verdict.findings.push_back(finding(cell, expected, "what each way does alone",
                                           "both ways at once should not slow each other: see "
                                           "the link's mode (full duplex) and what else uses it"));
    }
  }

  /// A machine's port with several peers against the best of its pairs.
  void several_peers(const CellKey& key, const Cell& cell) {
    const bool out = key.test == k_fan_out;
    if ((!out && key.test != k_fan_in) || key.direction != k_one_way) {
      return; // both ways: contradictions_of()
    }
    const Cell* best = nullptr;
    for (const auto& [pair, of] : m_cells) {
      if (pair.test == k_pair_bandwidth && (out ? pair.from : pair.to) == key.from &&
          pair.direction == key.direction && pair.transport == key.transport &&
          (best == nullptr || of->p50 > best->p50)) {
        best = of;
      }
    }
    if (best != nullptr && is_worse(cell, *best)) {
      m_verdict.findings.push_back(
          finding(cell, best->p50,
                  "with one peer, " + shown_place(m_profile, out ? best->key.to : best->key.from),
                  remedy_for(m_profile, key.from, key)));
    }
  }

  /// Halves of a cluster against each other, where no racks explain a narrow middle.
  void halves(const Cell& cell) {
    const bool flat =
        std::ranges::all_of(m_profile.machines, [](const auto& m) { return m.rack.empty(); });
    if (flat && cell.ceiling && cell.key.test.starts_with("bisection_") &&
        falls_short(cell, cell.ceiling->value)) {
      m_verdict.findings.push_back(finding(
          cell, cell.ceiling->value, cell.ceiling->name + ", each pair alone", k_shared_remedy));
    }
  }

  /// What parts of one machine could do at once by what each does alone and the described links
  /// that they share on the way to their memory; 0: a way is not known.
  [[nodiscard]] double together(const std::map<std::string, double>& alone) const {
    std::map<std::string, std::vector<LinkEnd>> ways;
    std::map<LinkEnd, double> wanted;
    for (const auto& [part, rate] : alone) {
      const TopologyObject* const node = numa_node_of(m_profile.topology, part);
      if (node == nullptr) {
        return 0;
      }
      ways[part] = path_between(m_profile.topology, part, node->id).links;
      ways[part].push_back({node->id, ""});
      for (const LinkEnd& link : ways[part]) {
        wanted[link] += rate;
      }
    }
    double sum = 0;
    for (const auto& [part, rate] : alone) {
      double share = 1;
      for (const LinkEnd& link : ways[part]) {
        const auto memory = m_profile.select({.test = k_stream_copy, .from = link.from});
        const double carries = !link.to.empty()
                                   ? described_bytes_per_second(m_profile.topology, link)
                               : memory.empty() ? 0
                                                : memory.front()->p50;
        share = carries > 0 ? std::min(share, carries / wanted[link]) : share;
      }
      sum += share * rate;
    }
    return sum;
  }

  /// Cells of all parts of a machine at once against those of each alone. Where the ways of the
  /// parts are not known, all together have to reach what the best one does.
  void all_at_once(const std::string& all, const std::string& each) {
    std::map<std::string, std::map<std::string, double>> alone; // by machine and part
    for (const auto& [key, cell] : m_cells) {
      if (key.test == each && key.state != "pageable") {
        const TopologyObject* const from = m_profile.topology.find(key.from);
        const bool up = from != nullptr && (from->kind == ObjectKind::gpu || key.to.empty());
        double& best = alone[machine_of(key.from)][up ? key.from : key.to];
        best = std::max(best, cell->p50);
      }
    }
    for (const auto& [key, cell] : m_cells) {
      const bool whole = key.to == key.from || key.to.empty();
      const auto of = alone.find(key.from);
      if (key.test != all || !whole || of == alone.end() || of->second.size() < 2) {
        continue;
      }
      double expected = together(of->second);
      if (expected == 0) {
        const auto best =
            std::ranges::max_element(of->second, {}, [](const auto& part) { return part.second; });
        expected = best->second;
      }
      if (falls_short(*cell, expected)) {
        m_verdict.findings.push_back(
            finding(*cell, expected,
                    fmt::format("what {} do, each alone, less what they share", of->second.size()),
                    k_shared_remedy));
      }
    }
  }

  /// A NIC's port against the PCIe links of all functions that share its cable.
  void port(const TopologyObject& nic) {
    double carries = 0;
    for (const TopologyObject* other : m_profile.topology.of_kind(ObjectKind::nic)) {
      if (other == &nic || (!nic.cable.empty() && other->cable == nic.cable &&
                            machine_of(other->id) == machine_of(nic.id))) {
        carries += pcie_rate(*other).value_or(0);
      }
    }
    const double rate = nic.link_bytes_per_second.value_or(0);
    if (carries == 0 || rate == 0) {
      return;
    }
    ++m_verdict.checks[FindingKind::alternative];
    if (carries < (1 - k_rate_tolerance) * rate) {
      m_verdict.findings.push_back({.kind = FindingKind::alternative,
                                    .place = nic.id,
                                    .what = "PCIe link",
                                    .value = number_side(carries, k_bytes_per_second),
                                    .expected = number_side(rate, k_bytes_per_second),
                                    .against = "its port",
                                    .remedy = "the port is faster than the slot: another slot, of "
                                              "more lanes or a later generation, if there is one",
                                    .share = carries / rate});
    }
  }

  /// The pairs of a machine that have both ways, and those whose direct one is slower.
  struct Ways {
    std::set<std::pair<std::string, std::string>> judged, faulty;
    std::vector<Finding> slow;
  };

  const Profile& m_profile;
  Verdict& m_verdict;
  /// By key without bytes and writes in flight: of the longest messages.
  std::map<CellKey, const Cell*> m_cells;
  std::map<std::string, Ways> m_ways; ///< by machine
};

} // namespace

bool is_far_below(const Cell& cell, double expected) {
  const double least = cell.status == CellStatus::noisy ? k_least_of_link / 2 : k_least_of_link;
  return cell.unit == k_bytes_per_second && cell.p50 < least * expected;
}

void check_alternatives(const Profile& profile, Verdict& verdict) {
  Alternatives(profile, verdict).check();
}

} // namespace reckon::verdict_detail
