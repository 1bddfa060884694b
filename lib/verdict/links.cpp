// SPDX-License-Identifier: Apache-2.0
#include "core/name_ranges.hpp"
#include "documents/cells.hpp"
#include "verdict/checks.hpp"
#include "verdict/odd_ones.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace reckon::verdict_detail {
namespace {

constexpr double k_same = 0.01; ///< rates that are described differ by rounding only
/// The firmware and the kernel keep some of a node's memory, so much of a small one.
constexpr double k_memory_share = 0.05;
constexpr std::uint64_t k_memory_kept = 2ULL << 30U;

/// NVLinks of one GPU whose links all lead to NVSwitches, by a part of its name; NVIDIA's white
/// papers on A100, H100 and Blackwell.
constexpr std::array<std::pair<std::string_view, int>, 5> k_switched_links{
    {{"A100-SXM4", 12}, {"H100 80GB HBM3", 18}, {"H200", 18}, {"B200", 18}, {"B300", 18}}};

constexpr const char* k_reseat =
    "reseat the card or cable; then the slot's setting in the firmware (generation, bifurcation), "
    "then another slot";

class Links {
public:
  Links(const Profile& profile, Verdict& verdict)
      : m_profile(profile), m_topology(profile.topology), m_verdict(verdict) {}

  void check() {
    for (const TopologyObject& o : m_topology.objects) {
      pcie(o);
    }
    like_parts();
    peer_links();
    memory();
    note(m_no_pcie, "the system tells no PCIe generation and width of {} (a virtual machine "
                    "usually hides them)");
    note(m_maybe_idle, "{}: the PCIe link is slower than it could be, as of any idle GPU, and no "
                       "copy to or from host memory was measured");
    note(m_no_port, "the system does not report the port speed of {}");
  }

private:
  void add(const std::string& place, std::string what, Side value, Side expected,
           std::string against, std::string remedy, double share) {
    m_verdict.findings.push_back({.kind = FindingKind::link,
                                  .place = place,
                                  .what = std::move(what),
                                  .value = std::move(value),
                                  .expected = std::move(expected),
                                  .against = std::move(against),
                                  .remedy = std::move(remedy),
                                  .share = share});
  }
  void note(const std::vector<std::string>& ids, const char* text) {
    if (!ids.empty()) {
      m_verdict.unknown.push_back(fmt::format(fmt::runtime(text), first_names(ids)));
    }
  }

  [[nodiscard]] bool is_below(const TopologyObject& part, const std::string& id) const {
    const TopologyObject* at = &part;
    while (at != nullptr && at->id != id) {
      at = at->parent.empty() ? nullptr : m_topology.find(at->parent);
    }
    return at != nullptr;
  }

  /// The fastest copy of one GPU, of those that pass this part's link; absent: no GPU is behind it.
  [[nodiscard]] std::optional<double> fastest_copy(const TopologyObject& part) const {
    std::optional<double> fastest;
    for (const TopologyObject* gpu : m_topology.of_kind(ObjectKind::gpu)) {
      if (!is_below(*gpu, part.id)) {
        continue;
      }
      fastest = fastest.value_or(0);
      for (const Cell& cell : m_profile.cells) {
        const bool copy = (cell.key.test == k_host_to_device_ce && cell.key.to == gpu->id) ||
                          (cell.key.test == k_device_to_host_ce && cell.key.from == gpu->id);
        if (copy && cell.has_value()) {
          fastest = std::max(*fastest, cell.p50);
        }
      }
    }
    return fastest;
  }

  void pcie(const TopologyObject& o) {
    const bool device = o.kind == ObjectKind::gpu || o.kind == ObjectKind::nic;
    if (device && !o.pci_address.empty() && !pcie_rate(o)) {
      m_no_pcie.push_back(o.id);
    }
    if (!o.pcie || !o.pcie_possible) {
      return;
    }
    ++m_verdict.checks[FindingKind::link];
    const PcieLink& now = *o.pcie;
    const PcieLink& possible = *o.pcie_possible;
    const double rate = now.bytes_per_second();
    if (rate >= possible.bytes_per_second() * (1 - k_same)) {
      return;
    }
    if (now.width >= possible.width) {
      // An idle GPU lowers the rate, not the width; a copy raises it again.
      const std::optional<double> copied = fastest_copy(o);
      if (copied == 0.0) {
        m_maybe_idle.push_back(o.id);
        return;
      }
      if (copied && *copied > rate) {
        return;
      }
    }
    add(o.id, "PCIe link", text_side(now.text()), text_side(possible.text()), "both ends could do",
        k_reseat, rate / possible.bytes_per_second());
  }

  using Number = std::function<std::optional<double>(const TopologyObject&)>;

  /// Those of `parts` whose number is below that of most.
  void odd_parts(const std::vector<const TopologyObject*>& parts, const std::string& what,
                 const std::string& unit, const Number& number, const char* remedy,
                 double tolerance = k_same) {
    std::vector<const TopologyObject*> known;
    std::vector<double> values;
    for (const TopologyObject* part : parts) {
      if (const auto value = number(*part)) {
        known.push_back(part);
        values.push_back(*value);
      }
    }
    m_verdict.checks[FindingKind::link] += values.size();
    if (values.size() < 3) {
      return; // two may well differ on purpose
    }
    const OddOnes odd = odd_ones(values, tolerance);
    for (const std::size_t i : odd.places) {
      add(known[i]->id, what, number_side(values[i], unit), number_side(odd.expected, unit),
          fmt::format("{} like it have", known.size() - odd.places.size()), remedy,
          values[i] / odd.expected);
    }
  }

  void like_parts() {
    std::map<std::string, std::vector<const TopologyObject*>> gpus;
    for (const TopologyObject& o : m_topology.objects) {
      if (o.kind == ObjectKind::gpu) {
        gpus[o.name].push_back(&o);
      } else if (o.kind == ObjectKind::nic && !o.pci_address.empty() && !o.link_bytes_per_second) {
        m_no_port.push_back(o.id);
      }
    }
    // Where both ends tell what they could do, that is judged instead.
    const auto rate = [](const TopologyObject& o) {
      return o.pcie_possible ? std::nullopt : pcie_rate(o);
    };
    for (const auto& [name, alike] : gpus) {
      odd_parts(alike, "PCIe link", k_bytes_per_second, rate, k_reseat);
    }
    for (const auto& [name, alike] : like_nics(m_topology)) {
      odd_parts(alike, "PCIe link", k_bytes_per_second, rate, k_reseat);
      odd_parts(
          alike, "port", k_bytes_per_second,
          [](const TopologyObject& o) { return o.link_bytes_per_second; },
          "`ethtool` or `ibstat`: cable, transceiver, the switch's port and its setting");
    }
  }

  struct Peers {
    int count = 0;
    double bytes_per_second = 0;
    bool known = true; ///< the rate of each
    bool switched = true;
  };

  void peer_links() {
    std::map<PeerLinkKind, std::map<std::string, Peers>> all;
    for (const PeerLink& link : m_topology.links) {
      if (link.kind == PeerLinkKind::socket) {
        continue;
      }
      for (const auto& [id, other] :
           {std::pair(link.from, link.to), std::pair(link.to, link.from)}) {
        Peers& peers = all[link.kind][id];
        peers.count += link.count;
        peers.bytes_per_second += link.bytes_per_second.value_or(0);
        peers.known = peers.known && link.bytes_per_second;
        peers.switched = peers.switched && m_topology.find(other)->kind == ObjectKind::link_switch;
      }
    }
    const auto gpus = m_topology.of_kind(ObjectKind::gpu);
    if (all.empty() && gpus.size() > 1) {
      m_verdict.unknown.emplace_back(
          "no NVLink or xGMI link between GPUs is known (hwloc tells them only when it was built "
          "with NVML or RSMI)");
    }
    for (const auto& [kind, of] : all) {
      const bool nvlink = kind == PeerLinkKind::nvlink;
      const char* const what = nvlink ? "NVLinks" : "xGMI links";
      const char* const remedy =
          nvlink ? "`nvidia-smi nvlink --status`, the driver's log (Xid 74), the fabric manager's; "
                   "reset the GPU, then its board"
                 : "`rocm-smi --showtopo --showxgmierr` and the driver's log; reset the GPU, then "
                   "its board";
      std::map<std::string, std::vector<const TopologyObject*>> alike;
      for (const TopologyObject* gpu : gpus) {
        alike[gpu->name].push_back(gpu);
        possible_links(*gpu, of, remedy);
      }
      const auto at = [&of = of](const TopologyObject& gpu) {
        const auto found = of.find(gpu.id);
        return found == of.end() ? Peers{} : found->second;
      };
      for (const auto& [name, parts] : alike) {
        const std::size_t before = m_verdict.findings.size();
        odd_parts(
            parts, what, "", [&](const TopologyObject& gpu) { return double(at(gpu).count); },
            remedy);
        if (m_verdict.findings.size() == before) {
          odd_parts(
              parts, what, k_bytes_per_second,
              [&](const TopologyObject& gpu) {
                return at(gpu).known ? std::optional(at(gpu).bytes_per_second) : std::nullopt;
              },
              remedy);
        }
      }
    }
  }

  void possible_links(const TopologyObject& gpu, const std::map<std::string, Peers>& of,
                      const char* remedy) {
    const auto peers = of.find(gpu.id);
    const auto* const model = std::ranges::find_if(k_switched_links, [&](const auto& known) {
      return gpu.name.find(known.first) != std::string::npos &&
             gpu.name.find("NVL") == std::string::npos;
    });
    if (peers == of.end() || !peers->second.switched || model == k_switched_links.end()) {
      return;
    }
    ++m_verdict.checks[FindingKind::link];
    const int count = peers->second.count;
    if (count < model->second) {
      add(gpu.id, "NVLinks", number_side(count, ""), number_side(model->second, ""),
          "its model has", remedy, static_cast<double>(count) / model->second);
    }
  }

  void memory() {
    std::map<std::size_t, std::vector<const TopologyObject*>> nodes; // by processors
    for (const TopologyObject* node : m_topology.of_kind(ObjectKind::numa_node)) {
      if (node->bytes && !node->cpus.empty()) {
        nodes[node->cpus.size()].push_back(node);
      }
    }
    for (const auto& [cpus, alike] : nodes) {
      std::vector<double> sizes;
      for (const TopologyObject* node : alike) {
        sizes.push_back(static_cast<double>(*node->bytes));
      }
      m_verdict.checks[FindingKind::link] += sizes.size() > 1 ? sizes.size() : 0;
      // Of two nodes, too: what is missing is a module.
      const double most = *std::ranges::max_element(sizes);
      const double tolerance = std::max(k_memory_share, static_cast<double>(k_memory_kept) / most) /
                               (sizes.size() == 2 ? 2 : 1);
      const OddOnes odd = odd_ones(sizes, tolerance);
      for (const std::size_t i : odd.places) {
        add(alike[i]->id, "memory", number_side(sizes[i], "bytes"),
            number_side(odd.expected, "bytes"),
            fmt::format("{} like it have", sizes.size() - odd.places.size()), k_modules_remedy,
            sizes[i] / odd.expected);
      }
    }
    modules();
  }

  /// "15 x 32 GiB DDR5 4800 MT/s, 1 x 16 GiB ...": as many for each processor, and all alike where
  /// most are.
  void modules() {
    const auto found = m_profile.context.find("memory_modules");
    if (found == m_profile.context.end()) {
      if (m_profile.context.contains("kernel")) {
        m_verdict.unknown.emplace_back("memory modules and channels: no table of the firmware "
                                       "was read (/sys/firmware/dmi, as root; some virtual "
                                       "machines have none)");
      }
      return;
    }
    const std::string& text = found->second;
    constexpr int k_most = 100'000; // of a kind: sums of them are numbers
    int count = 0;
    int most = 0;
    for (std::size_t at = 0; at < text.size();) {
      int number = 0;
      std::from_chars(text.data() + at, text.data() + text.size(), number);
      number = std::clamp(number, 0, k_most);
      count += number;
      most = std::max(most, number);
      const std::size_t comma = text.find(", ", at);
      at = comma == text.npos ? text.size() : comma + 2;
    }
    const int packages = static_cast<int>(m_topology.of_kind(ObjectKind::package).size());
    ++m_verdict.checks[FindingKind::link];
    const bool uneven = packages > 1 && count % packages != 0;
    if (uneven || (most < count && 3 * most >= 2 * count)) {
      add(m_profile.machines.front().id, "memory modules", text_side(text),
          text_side(uneven ? fmt::format("a multiple of {}", packages) : "all alike"),
          uneven ? fmt::format("as many at each of {} processors", packages) : "as most are",
          k_modules_remedy,
          static_cast<double>(uneven ? count / packages * packages : most) / count);
    }
  }

  static constexpr const char* k_modules_remedy =
      "`dmidecode -t memory` and the firmware's log: a module is missing, disabled or in another "
      "channel";

  const Profile& m_profile;
  const Topology& m_topology;
  Verdict& m_verdict;
  std::vector<std::string> m_no_pcie, m_maybe_idle, m_no_port;
};

} // namespace

std::optional<double> pcie_rate(const TopologyObject& o) {
  return o.pcie ? std::optional(o.pcie->bytes_per_second()) : o.pcie_bytes_per_second;
}

std::map<std::string, std::vector<const TopologyObject*>> like_nics(const Topology& topology) {
  std::map<std::string, std::vector<const TopologyObject*>> nics;
  for (const TopologyObject* o : topology.of_kind(ObjectKind::nic)) {
    // A NIC for the GPUs' traffic and one for storage may be of one make.
    const TopologyObject* const above = topology.find(o->parent);
    const bool beside_gpu =
        above != nullptr && above->kind == ObjectKind::pci_bridge &&
        std::ranges::any_of(topology.children(above->id), [](const TopologyObject* child) {
          return child->kind == ObjectKind::gpu;
        });
    nics[fmt::format("{} {} {}", make_of(*o), beside_gpu,
                     o->pcie_possible ? o->pcie_possible->text() : "")]
        .push_back(o);
  }
  return nics;
}

void check_links(const Profile& profile, Verdict& verdict) {
  Links(profile, verdict).check();
}

} // namespace reckon::verdict_detail
