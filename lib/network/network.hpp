// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/collective.hpp"
#include "core/stations.hpp"
#include "network/rate.hpp"

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reckon {

struct MachineGroup;
struct Profile;

/// Which job is planned inside a machine, and what else goes on there.
struct InsideOptions {
  /// Endpoints with a gradient each; a NUMA node that is named k times has k ranks. Empty: all
  /// GPUs of the machine, and where there is none its NUMA nodes.
  std::vector<std::string> workers;
  /// Endpoints without a gradient that may sum and pass on; a NUMA node may be named several times,
  /// also beside workers. Absent: the NUMA nodes that are no workers. Idle GPUs and memory devices
  /// have to be named.
  std::optional<std::vector<std::string>> relays;
  /// What the job sends and as much receives through the machine's NICs, in gradients: 0 for a job
  /// on this machine alone, 1 for one that gives its sum to others and gets theirs.
  double network = 0;
  /// NICs of the job. Empty: all of the machine.
  std::vector<std::string> nics{};
  /// What a summation service on this machine receives and as much sends for others, in gradients.
  double service = 0;
  /// Whether GPUs and NICs may do without the processor's memory; what the job sends for others,
  /// only where they share a PCIe switch.
  bool gpu_direct = false;
  /// A single named scheme, or a mix of them, is taken when it is at most so much slower than the
  /// best of all trees.
  double tolerance = 0.01;
  /// What bytes move by: cells of pairs of places are of it. Empty: "cuda" where a worker is a GPU,
  /// else "host".
  std::string transport{};
  /// Links without a known rate count as unlimited, even if copies over them were measured: for a
  /// bound that no execution may break.
  bool only_known_rates = false;
};

/// Something that carries only so many bytes in a second.
struct Station {
  std::string name;            ///< "gpu0 > bridge0", "copy gpu0 > gpu4", "memory read numa0"
  double bytes_per_second = 0; ///< greater than 0
  std::string source;          ///< "link_bandwidth", "described", ...
  double background = 0;       ///< what passes whatever is planned, in gradients
  /// Where the samples behind it lie, 10th and 90th percentile; bytes_per_second for what is
  /// described, published, or measured less than three times.
  double low_bytes_per_second = 0, high_bytes_per_second = 0;
  /// Of a measured pair: how long it is busy with a write, by its size; bytes_per_second is of long
  /// ones. Empty: the rate counts.
  BusyCurve busy{};
  [[nodiscard]] bool ranged() const { return low_bytes_per_second < high_bytes_per_second; }
};

/// So many bytes of a resource for every byte of the gradient.
struct Use {
  std::size_t station = 0;
  double amount = 0;
};
using Uses = std::vector<Use>;

/// Where gradients can be: a GPU, a NUMA node, a memory device, or a whole machine.
struct Place {
  std::string id; ///< of the topology's object; of a whole machine: its group's
  bool worker = false;
  bool memory = false;     ///< of a processor: not a GPU
  std::size_t machine = 0; ///< number in Network::machines
  /// Which of several ranks that share the object, from 0 on; absent: the only one.
  std::optional<std::uint64_t> process{};
  /// Bytes per second that one of its lanes adds by itself, of a processor's memory; 0: as many as
  /// the stations of Network::add let pass.
  double lane_adds_per_s = 0;
};

/// A machine of the network: one of a MachineGroup.
struct NetworkMachine {
  std::string group;        ///< MachineGroup id
  std::uint64_t number = 0; ///< which of the group's machines
  std::string name;         ///< the member's id; without members "m0.3", of a group of one "m0"
};

/// How what a root has summed leaves the machine and what the others summed comes to it.
struct Exit {
  std::string nic; ///< empty without network traffic
  Uses uses;       ///< both directions
};

/// A direction of a link of the graph that the bounds are cut from.
struct GraphLink {
  std::size_t from = 0, to = 0;       ///< nodes
  std::optional<std::size_t> station; ///< absent: its capacity is not known
};

/// [u][v]: of a write from place u to place v, absent where none can be made.
using WaysBetween = std::vector<std::vector<std::optional<Uses>>>;

/// What lies between the places of a job, as the linear program and the plays see it. Everything is
/// in bytes for each byte of a worker's gradient.
struct Network {
  std::vector<NetworkMachine> machines;
  std::vector<Place> places; ///< workers first, in order
  std::size_t workers = 0;
  std::vector<Station> stations;
  WaysBetween ways;
  /// Where machines have several ports: lane i goes by lane_ways[i modulo their number]. `ways` has
  /// their ports together. Else empty.
  std::vector<WaysBetween> lane_ways;
  /// Of adding one more stream to what the endpoint has.
  std::vector<Uses> add;
  /// By endpoint: the ways out of the machine of trees that have their root there. None: no root.
  std::vector<std::vector<Exit>> exits;
  /// Workers that share a PCIe switch, by endpoint number. A worker without one is alone.
  std::vector<std::vector<std::size_t>> groups;
  /// The measured graph: what bytes can pass, whatever way they take.
  std::vector<GraphLink> links;
  std::vector<std::size_t> node_of;   ///< by endpoint
  std::vector<std::size_t> nic_nodes; ///< of the NICs of a job with network traffic
  double network = 0;                 ///< InsideOptions::network
  std::size_t nodes = 0;
  std::vector<std::string> unknown; ///< links whose capacity is not known: counted as unlimited
  /// Links of GPUs whose capacity is not known: counted as what the fastest copy over them moved.
  std::vector<std::string> at_least;
  /// [from][to], places: seconds of an empty write; 0 where the profile does not say. Empty: it
  /// says nothing of any.
  std::vector<std::vector<double>> latency_s;
  [[nodiscard]] double latency_of(std::size_t from, std::size_t to) const {
    return latency_s.empty() ? 0 : latency_s[from][to];
  }
  /// What was measured of pairs: "pair_write: 12 ways between machines", "pair_write: 2 ways inside
  /// m0".
  std::vector<std::string> pair_sources;
  Collective collective = Collective::all_reduce;
  std::size_t root = 0; ///< place of the worker that a broadcast or a reduce is from or to
  /// By worker: how much of the gradient has its root there; empty where any place may be the root
  /// of any amount. They add up to 1.
  [[nodiscard]] std::vector<double> root_shares() const;
  /// Number of the place with this id in a machine of the group, `process` among several ranks
  /// there; the number of places where there is none.
  [[nodiscard]] std::size_t place_named(const std::string& id, const std::string& group,
                                        std::uint64_t number = 0,
                                        std::optional<std::uint64_t> process = {}) const;
  /// Of a place for people: "gpu3", with several machines "m0.1/gpu3"; of one of several ranks
  /// there "numa0:2".
  [[nodiscard]] std::string name_of(std::size_t place) const;
};

/// The network port of a machine, each direction.
struct MachinePort {
  Rate together; ///< of all its ports
  /// Of a machine with several: names, and what each carries alone.
  std::vector<std::pair<std::string, double>> each;
  bool made_up =
      false; ///< for a what-if question: nothing that was measured between machines counts
};

/// A machine of a job and how deep it is opened.
struct OpenMachine {
  std::string group;        ///< MachineGroup id
  std::uint64_t number = 0; ///< which of the group's machines
  /// Topology ids of the group's machine. Both empty: the machine is one place, seen from outside.
  std::vector<std::string> workers, relays;
  bool works = true; ///< of a machine that is one place: whether it has a gradient
  /// Of a machine that is one place: its port; absent: what the profile says of it.
  std::optional<MachinePort> port{};
  std::string name{}; ///< for people; empty: the member's id, or that of the group with its number
  /// Whether the network's cards read and write the memory of GPUs; else only processors' memories
  /// have ways out of the machine and into it, and GPUs go by way of these.
  bool gpu_direct = true;
};

/// The profile's machines of this id; null where it has none.
[[nodiscard]] const MachineGroup* group_named(const Profile& profile, std::string_view id);

/// The machines with what lies inside them, joined by their NICs (where the topology has any that a
/// place can reach, else the machine's port as a whole), the uplinks of their racks and the
/// measured pairs (pair_curve()), each with its latency (pair_latency(), else cell
/// `fabric_write_latency` of the sender's group). A place leaves its machine by the NICs next to
/// it; several serve in turn. A machine that is one place has its ports together, and a way for
/// each lane where it has several. `transport` "" takes any. Throws Error{input} where a machine or
/// an endpoint is not known, or neither the pair nor both ports of a way between two machines.
[[nodiscard]] Network network_between_machines(const Profile& profile,
                                               const std::vector<OpenMachine>& machines,
                                               const std::string& transport);

/// The ways between places of the machine, which are also those inside each machine of
/// network_between_machines(): the links that they pass, the memories at their ends, and what was
/// measured of the pair itself: as between machines (pair_way()) with its latency, else as the
/// fastest copy. Throws Error{input} when the machine or an endpoint is not in the profile,
/// Error{usage} for options that contradict each other.
[[nodiscard]] Network network_inside_machine(const Profile& profile, const std::string& machine,
                                             const InsideOptions& options);

/// Whether a worker of these places is a GPU.
[[nodiscard]] bool has_gpu_worker(const Profile& profile, const Network& network);

/// How bytes move between these places of one machine where nobody asked for a transport: "cuda"
/// where a worker is a GPU, else "host".
[[nodiscard]] std::string transport_inside(const Profile& profile, const Network& network);

/// The same machine with every capacity at the high end of its samples.
[[nodiscard]] Network at_high_capacities(Network model);

/// The bytes of every resource for each byte of the gradient: sum over `uses`.
void add_uses(std::vector<double>& loads, const Uses& uses, double factor = 1);

/// When a byte through station s costs prices[s].
[[nodiscard]] double cost_of(const Uses& uses, const std::vector<double>& prices);

} // namespace reckon
