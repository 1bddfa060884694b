// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/collective.hpp"
#include "core/stations.hpp"
#include "network/rate.hpp"

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reckon {

struct MachineGroup;
struct Profile;

/// The job that is planned inside a machine, and the other traffic there.
struct InsideOptions {
  /// Places with a gradient each; a NUMA node that is named k times has k ranks. Empty: all GPUs of
  /// the machine, or its NUMA nodes if it has no GPU.
  std::vector<std::string> workers;
  /// Places without a gradient that may sum and pass on; a NUMA node may be named several times,
  /// also beside workers. Absent: the NUMA nodes that are no workers. Idle GPUs and memory devices
  /// have to be named.
  std::optional<std::vector<std::string>> relays;
  /// Gradients that the job sends, and receives, through the machine's NICs: 0 for a job on this
  /// machine alone, 1 for one that gives its sum to others and gets theirs.
  double network = 0;
  /// NICs of the job. Empty: all NICs of the machine.
  std::vector<std::string> nics{};
  /// Gradients that a summation service on this machine receives, and sends, for others.
  double service = 0;
  /// Whether GPUs and NICs may bypass the processor's memory; for traffic with other machines only
  /// where they share a PCIe switch.
  bool gpu_direct = false;
  /// A single named scheme, or a mix of them, is taken when it is slower than the best of all trees
  /// by at most this fraction.
  double tolerance = 0.01;
  /// The transport whose cells of pairs of places count. Empty: "cuda" where a worker is a GPU,
  /// else "host".
  std::string transport{};
  /// Links without a known rate count as unlimited, even if copies over them were measured, and
  /// pairs have no rates of their own: for a bound that no execution may break.
  bool only_known_rates = false;
  /// Whether places leave the machine by every NIC, not only by the nearest.
  bool every_nic = false;
  /// Whether switches that sum are places, too: no mover of reckon can sum there.
  bool switches = false;
};

/// A resource with a limited rate.
struct Station {
  std::string name;            ///< "gpu0 > bridge0", "copy gpu0 > gpu4", "memory read numa0"
  double bytes_per_second = 0; ///< greater than 0
  std::string source;          ///< "link_bandwidth", "described", ...
  double background = 0;       ///< traffic that passes with any plan, in gradients
  /// The 10th and 90th percentile of its samples; bytes_per_second for a rate that is described,
  /// published, or measured less than three times.
  double low_bytes_per_second = 0, high_bytes_per_second = 0;
  /// For a measured pair: how long it is busy with a write, by its size; bytes_per_second is for
  /// long writes. Empty: the rate counts.
  BusyCurve busy{};
  std::string_view kind =
      "pair"; ///< also "memory", "pcie", "port", "sums", or a PeerLinkKind's name
  /// What people call it by: the object; of a link the end that hangs from the other, "gpu0".
  /// Empty: all ports of the machine.
  std::string of{};
  [[nodiscard]] bool ranged() const { return low_bytes_per_second < high_bytes_per_second; }
};

/// Bytes of a resource for every byte of the gradient.
struct Use {
  std::size_t station = 0;
  double amount = 0;
};
using Uses = std::vector<Use>;

/// A place of gradients: a GPU, a NUMA node, a memory device, or a whole machine.
struct Place {
  std::string id; ///< id of the topology's object, or of a whole machine's group
  bool worker = false;
  bool memory = false;     ///< a processor's memory, not a GPU's
  std::size_t machine = 0; ///< number in Network::machines
  /// Index among several ranks that share the object, from 0; absent: the only rank.
  std::optional<std::uint64_t> process{};
  /// Bytes per second that one of its lanes adds by itself, in a processor's memory; 0: limited by
  /// the stations of Network::add only.
  double lane_adds_per_s = 0;
  bool link_switch = false; ///< a switch that adds what passes and multicasts the sum
};

/// A machine of the network: one of a MachineGroup.
struct NetworkMachine {
  std::string group;        ///< MachineGroup id
  std::uint64_t number = 0; ///< index of the machine in the group
  std::string name;         ///< the member's id; without members "m0.3", of a group of one "m0"
};

/// The way of a root's sum out of the machine, and of the others' sums into it.
struct Exit {
  std::string nic; ///< empty without network traffic
  Uses uses;       ///< both directions
};

/// A direction of a link of the graph that the bounds are cut from.
struct GraphLink {
  std::size_t from = 0, to = 0;       ///< nodes
  std::optional<std::size_t> station; ///< absent: unknown capacity
};

/// [u][v]: a write from place u to place v; absent where it is impossible.
using WaysBetween = std::vector<std::vector<std::optional<Uses>>>;

/// The network between the places of a job, for the linear program and the plays. Everything is in
/// bytes for each byte of a worker's gradient.
struct Network {
  std::vector<NetworkMachine> machines;
  /// Between machines: what is counted of the profile is over this transport. Empty: no port names
  /// one.
  std::string transport;
  std::vector<Place> places; ///< workers first, in order
  std::size_t workers = 0;
  std::vector<Station> stations;
  WaysBetween ways;
  /// Where machines have several ports: lane i takes lane_ways[i modulo their number], and `ways`
  /// has their ports together. Otherwise empty.
  std::vector<WaysBetween> lane_ways;
  /// The cost of adding one more stream to the place's data.
  std::vector<Uses> add;
  /// By place: the ways out of the machine for trees that have their root there. Empty: no root.
  std::vector<std::vector<Exit>> exits;
  /// Workers that share a PCIe switch, by number of the place. A worker without one is alone.
  std::vector<std::vector<std::size_t>> groups;
  /// The measured graph: the bytes that can pass on any way.
  std::vector<GraphLink> links;
  std::vector<std::size_t> node_of;   ///< by place
  std::vector<std::size_t> nic_nodes; ///< of the NICs of a job with network traffic
  double network = 0;                 ///< InsideOptions::network
  /// For a collective other than all-reduce whose ranks are also in other machines: how many are
  /// there for each in this one.
  double elsewhere = 0;
  std::size_t nodes = 0;
  std::vector<std::string> unknown; ///< links of unknown capacity: counted as unlimited
  /// Links of GPUs of unknown capacity: counted at the rate of the fastest copy over them.
  std::vector<std::string> at_least;
  /// [from][to], places: seconds of an empty write; 0 where the profile lacks it. Empty: it lacks
  /// all.
  std::vector<std::vector<double>> latency_s;
  [[nodiscard]] double latency_of(std::size_t from, std::size_t to) const {
    return latency_s.empty() ? 0 : latency_s[from][to];
  }
  /// The measurements of pairs: "pair_write: 12 ways between machines", "pair_write: 2 ways inside
  /// m0".
  std::vector<std::string> pair_sources;
  Collective collective = Collective::all_reduce;
  std::size_t root = 0; ///< place of the worker that is the root of a broadcast or a reduce
  /// By worker: the fraction of the gradient with its root there; empty where any place may be the
  /// root of any fraction. They add up to 1.
  [[nodiscard]] std::vector<double> root_shares() const;
  /// Number of the place with this id in a machine of the group, `process` among several ranks
  /// there; the number of places if there is no match.
  [[nodiscard]] std::size_t place_named(const std::string& id, const std::string& group,
                                        std::uint64_t number = 0,
                                        std::optional<std::uint64_t> process = {}) const;
  /// A place's name for people: "gpu3", with several machines "m0.1/gpu3"; one of several ranks
  /// there "numa0:2".
  [[nodiscard]] std::string name_of(std::size_t place) const;
};

/// The network port of a machine, each direction.
struct MachinePort {
  Rate together; ///< of all its ports
  /// For a machine with several ports: their names, and the rate of each alone.
  std::vector<std::pair<std::string, double>> each;
  bool made_up = false; ///< for a what-if question: measurements between machines do not count
};

/// A machine of a job, and how deep it is opened.
struct OpenMachine {
  std::string group;        ///< MachineGroup id
  std::uint64_t number = 0; ///< index of the machine in the group
  /// Topology ids of the group's machine. Both empty: the machine is one place, seen from outside.
  std::vector<std::string> workers, relays;
  bool works = true; ///< for a machine that is one place: whether it has a gradient
  /// For a machine that is one place: its port; absent: the profile's.
  std::optional<MachinePort> port{};
  std::string name{}; ///< for people; empty: the member's id, or the group's with its number
  /// Whether NICs read and write the memory of GPUs. Otherwise only processors' memories have ways
  /// out of the machine and into it, and GPUs use these.
  bool gpu_direct = true;
  bool only_known_rates = false; ///< as in InsideOptions
  bool every_nic = false;        ///< as in InsideOptions
  bool switches = false;         ///< as in InsideOptions
};

/// The profile's machines of this id; null if it has no match.
[[nodiscard]] const MachineGroup* group_named(const Profile& profile, std::string_view id);

/// The ids that cells of a machine's port may have.
struct PortOwner {
  std::string member, group; ///< the group's NICs count together
  auto operator<=>(const PortOwner&) const = default;
};

/// The transport whose slowest port of these machines is the fastest: one that some machine lacks
/// is behind all others. Of equals the first in the order of keys; empty where no cell of a port
/// says one.
[[nodiscard]] std::string fastest_transport(const Profile& profile,
                                            const std::set<PortOwner>& machines);

/// Lanes, which take a machine's ports in turn, that serve machines of `a` and of `b` ports (below
/// 1 as 1): a common multiple up to 64, beyond that the larger of the two, with ports of the other
/// machine used unequally.
[[nodiscard]] int common_lanes(int a, int b);

/// The machines with their inside, joined by their NICs (where the topology has any that a place
/// can reach, else the machine's port as a whole), the uplinks of their racks and the measured
/// pairs (pair_curve()), each with its latency (pair_latency(), else cell `fabric_write_latency` of
/// the sender's group). A place leaves its machine by the NICs next to it; several serve in turn. A
/// machine that is one place has its ports together, and a way for each lane where it has several.
/// `transport` "" takes fastest_transport(). Throws Error{input} where a machine or an endpoint is
/// unknown, or both the pair and one of the ports of a way between two machines.
[[nodiscard]] Network network_between_machines(const Profile& profile,
                                               const std::vector<OpenMachine>& machines,
                                               const std::string& transport);

/// The ways between places of the machine, which are also those inside each machine of
/// network_between_machines(): the links that they pass, the memories at their ends, and the
/// measurements of the pair itself: pair_way() with its latency as between machines, else the
/// fastest copy. Throws Error{input} when the machine or an endpoint is not in the profile,
/// Error{usage} for options that contradict each other.
[[nodiscard]] Network network_inside_machine(const Profile& profile, const std::string& machine,
                                             const InsideOptions& options);

/// Whether a worker of these places is a GPU.
[[nodiscard]] bool has_gpu_worker(const Profile& profile, const Network& network);

/// The default transport between these places of one machine: "cuda" where a worker is a GPU, else
/// "host".
[[nodiscard]] std::string transport_inside(const Profile& profile, const Network& network);

/// The same machine with every capacity at the high end of its samples.
[[nodiscard]] Network at_high_capacities(Network model);

/// The bytes of every resource for each byte of the gradient: sum over `uses`.
void add_uses(std::vector<double>& loads, const Uses& uses, double factor = 1);

/// When a byte through station s costs prices[s].
[[nodiscard]] double cost_of(const Uses& uses, const std::vector<double>& prices);

} // namespace reckon
