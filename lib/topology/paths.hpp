// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "topology/topology.hpp"

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reckon {

/// The distance of two endpoints, in the words of `nvidia-smi topo -m`, nearest first. That tool's
/// "PCIe bridge" is a whole switch, not a port of one.
enum class PathClass {
  self, ///< X
  nv,   ///< NV#: over NVLinks (or xGMI), # of them
  pix,  ///< at most one PCIe switch
  pxb,  ///< several PCIe switches, but no host bridge
  phb,  ///< over one host bridge, or over those of one NUMA node when the tree has no host bridge
  node, ///< over several host bridges of one NUMA node
  sys,  ///< over the links between NUMA nodes, or between places of unknown NUMA node
};
[[nodiscard]] std::string_view name_of(PathClass path_class); ///< "PIX"

/// One direction of a link.
struct LinkEnd {
  std::string from, to; ///< neighbouring objects: child and parent, or the ends of a peer link
  auto operator<=>(const LinkEnd&) const = default;
  [[nodiscard]] std::string text() const; ///< "m0/gpu0 > m0/bridge2"
};

/// The path of a copy between two endpoints (GPU, NIC, memory device, NUMA node).
struct Path {
  PathClass path_class = PathClass::self;
  int peer_links = 0; ///< for class nv: number of parallel links
  std::vector<LinkEnd> links;
  [[nodiscard]] std::string text() const; ///< "NV12", "PHB"
};

/// The path that the hardware takes: over peer links where the ends have one with each other (or
/// with a common link_switch), else up the tree and down again, over the socket link between
/// different NUMA nodes: the socket links of the topology, else an assumed one between the two
/// nodes, or between their packages when these have several nodes each. `without_peer_links`: as
/// COARSE IV-B measures PCIe where NVLink is present. Throws Error{input} for an id that the
/// topology lacks and for endpoints of two machines.
[[nodiscard]] Path path_between(const Topology& topology, std::string_view from,
                                std::string_view to, bool without_peer_links = false);

/// path_between() for many pairs: the tree is prepared at the first and kept. `topology` must
/// outlive it and not change. Not for several threads at once.
using PathOf = std::function<Path(std::string_view from, std::string_view to)>;
[[nodiscard]] PathOf paths_of(const Topology& topology, bool without_peer_links = false);

/// Whether path_between() finds one: both are objects of one machine.
[[nodiscard]] bool in_one_machine(const Topology& topology, std::string_view from,
                                  std::string_view to);

/// What kind of peer link joins these ends, objects of the topology; absent between a child and its
/// parent. Between others without a link a socket link is assumed.
[[nodiscard]] std::optional<PeerLinkKind> peer_link_kind(const Topology& topology,
                                                         const LinkEnd& link);

/// Bytes per second of one direction as the machine describes itself; 0: unknown.
[[nodiscard]] double described_bytes_per_second(const Topology& topology, const LinkEnd& link);

/// Endpoints that a copy can start or end at, in order: GPUs, memory devices, NICs, NUMA nodes.
[[nodiscard]] std::vector<std::string> endpoints_of(const Topology& topology,
                                                    std::string_view machine);

/// Whether this pci_bridge is the port of one card with several functions, and no switch: it has no
/// address, and all objects below it have addresses of one slot.
[[nodiscard]] bool is_card_port(const Topology& topology, const TopologyObject& bridge);

/// Format of a file that names all NVLinks, as a profile's context has it ("topology_format").
inline constexpr std::string_view k_smi_matrix_format = "matrix of nvidia-smi topo -m";

/// Whether the tree has the places of the machine's several GPUs, but no NVLink or xGMI: the files
/// that clouds make for NCCL leave these out. False for GPUs in a plain list below the machine, and
/// for models that have no NVLinks.
[[nodiscard]] bool lacks_gpu_links(const Topology& topology, std::string_view machine);

/// BytePS 4.2.3: switches with GPUs and a NIC, switches with GPUs only. Of nested switches the
/// uppermost counts, because the rule is about its link to the processor. A GPU without a switch
/// above it has a link of its own, named by its own id.
struct SwitchCensus {
  std::vector<std::string> with_nic, gpus_only; ///< S_n and S_g are their sizes
};
[[nodiscard]] SwitchCensus switch_census(const Topology& topology, std::string_view machine);

/// A direction of a link with all ordered pairs of endpoints whose paths pass it.
struct SharedLink {
  LinkEnd link;
  std::vector<std::pair<std::string, std::string>> pairs;
};
/// Every link that two or more pairs of different endpoints share.
[[nodiscard]] std::vector<SharedLink>
shared_links(const Topology& topology, std::string_view machine, bool without_peer_links = false);

} // namespace reckon
