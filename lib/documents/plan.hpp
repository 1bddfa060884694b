// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/collective.hpp"
#include "core/dtype.hpp"
#include "core/optimizer.hpp"
#include "core/stores.hpp"
#include "documents/roles.hpp"
#include "documents/torus_plan.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// The source of a document.
struct DocumentLink {
  std::string name;
  std::string digest; ///< of the canonical text
  /// Where it was read from, as that was said; empty: shipped, or not known. A hint: what it is now
  /// counts only with the digest.
  std::string file{};
  bool operator==(const DocumentLink&) const = default;
};

/// A solved or derived number, with its origin.
struct Quantity {
  std::string name; ///< snake_case with its unit as suffix: "worker_share_bytes"
  double value = 0;
  std::string equation; ///< "BytePS eq. 1", as numbered in docs/equations.md
  std::map<std::string, double> inputs;
  bool operator==(const Quantity&) const = default;
};

/// Quantities of a plan of places: machines of the profile that it leaves out, and GPUs of machines
/// that only sum; absent if there are no such machines.
inline constexpr std::string_view k_unused_machines = "unused_machines",
                                  k_unused_gpus = "unused_gpus",
                                  k_unused_devices = "unused_devices";
/// Quantity of a plan of short messages: the latency's part of its predicted time; absent where it
/// is less than half.
inline constexpr std::string_view k_latency_quantity = "latency_seconds";

/// Quantity of a plan with a wire type: the most that a sum can be off, as a part of the sum of
/// magnitudes.
inline constexpr std::string_view k_wire_error_quantity = "wire_error";

struct Plan;
/// Its value; absent without a wire type.
[[nodiscard]] std::optional<double> wire_error(const Plan& plan);

/// One addend of a predicted time.
struct Term {
  std::string name; ///< transport, reduction, fill, synchronisation, ...
  double seconds = 0;
  bool operator==(const Term&) const = default;
};

struct Prediction {
  double bound_seconds = 0; ///< no strategy can beat it
  std::string bound_by;     ///< the binding resource, and the equation
  double lo_seconds = 0, mid_seconds = 0, hi_seconds = 0;
  std::vector<Term> terms; ///< sum to mid_seconds
  std::string relief;      ///< remedy for the binding resource, with the gain
  /// This strategy's busiest resource, and its busy time, where that is more than the bound.
  std::optional<double> busiest_seconds{};
  std::string busiest_by{};
  /// Busy time of the busiest resource in any case.
  [[nodiscard]] double busy_seconds() const { return busiest_seconds.value_or(bound_seconds); }
  [[nodiscard]] const std::string& busy_by() const {
    return busiest_seconds ? busiest_by : bound_by;
  }
  /// Whether the profile's own spread makes the range wider than a measurement can be judged by.
  [[nodiscard]] bool range_is_wide() const {
    constexpr double k_wide = 0.15;
    return hi_seconds > (1 + k_wide) * mid_seconds || lo_seconds < (1 - k_wide) * mid_seconds;
  }
  bool operator==(const Prediction&) const = default;
};

/// The term of what passes and traffic take longer together, beside each other on the same
/// processors (docs/equations.md, 55 and 56).
inline constexpr const char* k_contention = "contention";
/// Seconds of a term; absent: there is no such term.
[[nodiscard]] std::optional<double> seconds_of(const Prediction& prediction, std::string_view term);
/// Seconds of contention; 0 without it.
[[nodiscard]] double contention_seconds(const Prediction& prediction);
/// The term of copies between GPUs and the memory that gradients are sent from (18d), which only
/// training programs make.
inline constexpr const char* k_copies = "copies";
/// The prediction without a term: of contention, where passes only wait, or of copies.
[[nodiscard]] Prediction without(Prediction prediction, std::string_view term);

/// What sums in switches (NVLink SHARP) would allow, which no mover can make.
struct SwitchSums {
  double bound_seconds = 0; ///< no way with sums there beats it; of the traffic alone
  std::string by;           ///< the switches, and the equation
  bool operator==(const SwitchSums&) const = default;
};

struct Candidate {
  std::string strategy;
  std::optional<Prediction> prediction; ///< absent when the strategy does not apply
  std::string reason;                   ///< why it does not apply
  bool operator==(const Candidate&) const = default;
};

/// Port, NUMA node and processor of a lane of a rank with several network ports (PHub, figure 2a).
struct LanePlace {
  std::string port;             ///< name in the operating system or from the user: "eth0"
  std::optional<int> numa_node; ///< NUMA node of the port, numbered by the machine
  std::optional<int> cpu;       ///< processor of that node for the lane's thread
  bool operator==(const LanePlace&) const = default;
};

/// In Plan::options, the user's choice whether GPUs and network cards bypass processors' memory:
/// "yes" or "no".
inline constexpr const char* k_gpu_direct = "gpu_direct";

struct PlanRank {
  std::string machine; ///< MachineGroup id
  /// Index of the machine in the group, from 0; only where ranks are places in several machines.
  std::optional<std::uint64_t> machine_number{};
  std::string member{}; ///< the machine's own name; empty: the profile has no names
  std::string rack{};   ///< the machine's rack in the profile; empty: unknown
  /// The GPU or NUMA node of the machine whose memory it works in; empty: the machine's.
  std::string endpoint{};
  /// Index among the ranks that share the endpoint, from 0; absent: the only rank.
  std::optional<std::uint64_t> process{};
  std::string
      endpoint_kind{};       ///< kind of the topology's object: "gpu", "numa_node", "memory_device"
  std::string pci_address{}; ///< of a GPU; empty: unknown
  std::vector<int> cpus{};   ///< processors next to that memory, numbered by the machine
  bool worker = false;
  bool server = false;
  int lanes = 1;
  double share_bytes = 0;           ///< solved share of the summation
  std::uint64_t assigned_bytes = 0; ///< bytes of the assigned parts
  /// Bandwidth of this rank's network ports together in the solution; 0: no port.
  double port_bytes_per_second = 0;
  std::vector<LanePlace> lane_places{}; ///< one a lane; empty: it has one port, or shares it
  /// Bytes that this rank sends to others and receives in one iteration.
  std::uint64_t egress_bytes = 0, ingress_bytes = 0;
  /// Its machine for people: the member, else of several machines "m0.1", else "m0".
  [[nodiscard]] std::string machine_name() const;
  /// Its place for people: "m0/gpu3", in the second of several machines "m0.1/gpu3" or, by the
  /// member, "w1/gpu3", of several ranks at one endpoint "m0.1/numa0:2", else the machine.
  [[nodiscard]] std::string place_name() const;
  bool operator==(const PlanRank&) const = default;
};

/// The pieces of the gradient, columns of equal length, in the order of sending. In a document they
/// cover every byte of the plan's runs exactly once, in whole elements, none across two runs.
struct Parts {
  std::vector<std::uint64_t> offset_bytes; ///< place in the gradient buffer (GradientLayout)
  std::vector<std::uint64_t> bytes;
  std::vector<std::uint64_t> server; ///< rank that sums the part
  std::vector<std::uint64_t> lane;
  /// Number in plan.trees, in the ways of plan.torus or in plan.machine_trees; empty when the plan
  /// has none of them.
  std::vector<std::uint64_t> tree{};
  [[nodiscard]] std::size_t size() const { return bytes.size(); }
  /// Their numbers in the order in which they lie in the buffer.
  [[nodiscard]] std::vector<std::size_t> by_offset() const;
  bool operator==(const Parts&) const = default;
};

/// The way in which a share of the gradient is summed and given back inside a machine: two trees
/// over the ranks with one root. A rank sums its children's data (and its own gradient, if it is a
/// worker) and hands that on; the root has the whole sum, which goes back down the other tree.
/// Every scheme is a set of trees: a parameter server a star, a ring one chain for each rank,
/// BytePS's CPU-assisted aggregation one tree for each place under a switch. In a collective that
/// only sums, `down` is the root alone; in one without sums, `up` is.
struct SumTree {
  std::string scheme; ///< "cpu_assisted", "reduce_broadcast gpu2", ...
  std::vector<std::int64_t>
      up; ///< by rank: the rank that it hands its sum to; the root: itself; -1: not in the tree
  std::vector<std::int64_t>
      down;                ///< by rank: the rank that gives it the whole sum, in the same way
  double share = 0;        ///< fraction of the gradient; the shares of a plan add up to 1
  double life_seconds = 0; ///< of a single part: from its first write to its last; 0: unknown
  /// The root: the first rank that hands the sum to itself.
  [[nodiscard]] std::size_t root() const;
  bool operator==(const SumTree&) const = default;
};

/// A link, a memory or another resource inside a machine that the plan uses.
struct PlanResource {
  std::string name;            ///< "gpu0 > bridge1", "memory read numa0"
  std::string source;          ///< source of its capacity
  double bytes_per_second = 0; ///< capacity
  double load_bytes = 0;       ///< in one iteration, with the background
  double busy = 0;             ///< busy time over that of the busiest, 0 to 1
  /// Dual value: the fraction of the least time of all trees that this resource accounts for.
  double price = 0;
  double gain_per_gb_s =
      0; ///< fraction of the least time that 1e9 bytes per second more would save
  bool operator==(const PlanResource&) const = default;
};

/// The routing table of a client (COARSE, section III-E): the destination of its tensors, by size.
struct ProxyRoute {
  std::uint64_t client = 0;          ///< rank
  std::uint64_t latency_proxy = 0;   ///< rank: of tensors up to the threshold
  std::uint64_t bandwidth_proxy = 0; ///< rank: of longer ones
  /// The size of a tensor from which on the bandwidth proxy is faster; absent: never, or both are
  /// the same.
  std::optional<double> threshold_bytes;
  std::vector<double> crossings_bytes; ///< all sizes at which the faster proxy changes
  double partition_bytes = 0;          ///< S': the smallest size with the full bandwidth
  [[nodiscard]] std::uint64_t proxy_of(double tensor_bytes) const {
    return threshold_bytes && tensor_bytes > *threshold_bytes ? bandwidth_proxy : latency_proxy;
  }
  bool operator==(const ProxyRoute&) const = default;
};

/// The path of a tensor in a plan with routing tables.
struct TensorRoute {
  std::string name;
  bool by_workers = false; ///< round the ring of the workers; otherwise through the proxies
  std::uint64_t first_part = 0, parts = 0; ///< neighbours in plan.parts
  bool operator==(const TensorRoute&) const = default;
};

/// The place of the optimizer's step.
enum class UpdatePlace : std::uint8_t {
  server, ///< by the rank that sums a part; parameters come back instead of sums (PHub)
  worker, ///< by every worker, once the sum has come back (BytePS section 5)
};
[[nodiscard]] constexpr std::string_view name_of(UpdatePlace place) {
  return place == UpdatePlace::server ? "server" : "worker";
}

struct UpdatePlan {
  Optimizer optimizer = Optimizer::sgd;
  UpdatePlace place = UpdatePlace::worker;
  bool operator==(const UpdatePlan&) const = default;
};

/// The passes of a model that are played with its traffic, columns of equal length, one entry a
/// layer in gradient order: the backward pass goes from the first entry to the last, the next
/// forward pass from the last to the first. A layer's gradient is ready when its backward pass is
/// done, and its forward pass waits for the whole of its sum.
struct Passes {
  std::vector<std::uint64_t> end_bytes; ///< end of the layer's gradient in the buffer, ascending
  std::vector<double> backward_seconds, forward_seconds;
  /// Processors that a worker's passes keep busy; absent: none that its traffic needs.
  std::optional<std::uint64_t> threads{};
  /// In no document: every part has passes of its own, which take no time; columns are empty. In a
  /// training program the one ends when the part's gradient is there, the other begins when its sum
  /// is.
  bool of_parts = false;
  [[nodiscard]] std::size_t size() const { return end_bytes.size(); }
  [[nodiscard]] double total_seconds() const;
  bool operator==(const Passes&) const = default;
};

/// Training in which no worker waits for another (BytePS section 5).
struct AsyncPlan {
  std::uint64_t steps = 4; ///< of each worker in one iteration of a run
  bool operator==(const AsyncPlan&) const = default;
};

/// Gradients are summed as whole numbers, as switches can.
struct FixedPointPlan {
  int bits = 32;             ///< bits of the added integers: 2 to 32
  double gradient_bound = 1; ///< magnitude that no gradient exceeds
  int exponent = 0;          ///< a gradient g is sent as round(g 2^exponent)
  bool operator==(const FixedPointPlan&) const = default;
};

/// The rehearsal of the profile that is most like the plan: a small plan for ranks that share the
/// machine. A run plays it again, before and after.
struct RehearsalPlan {
  std::string strategy;
  bool in_place = false;
  int ranks = 2, workers = 2;
  std::uint64_t part_bytes = 1;
  double lo_seconds = 0, mid_seconds = 0, hi_seconds = 0; ///< of an iteration when it was probed
  bool operator==(const RehearsalPlan&) const = default;
};

/// The one machine that a profile was measured on.
struct MeasuredMachine {
  std::string host, cpu;
  std::uint64_t cores = 0; ///< physical cores that the probe could use
  bool operator==(const MeasuredMachine&) const = default;
};

/// The paths of one workload's gradients on one machine or cluster. Without a clock and without
/// randomness.
struct Plan {
  DocumentLink profile, workload;
  std::optional<DocumentLink> roles;
  /// The user's options: strategy, workers, servers, part_bytes, ...
  std::map<std::string, std::string> options;
  std::string strategy;  ///< "ring", "byteps_split", ..., or the name of a scheme of trees
  std::string transport; ///< mover that the prediction is for: "host", "tcp;ofi_rxm", ...
  std::vector<PlanRank> ranks;
  std::uint64_t gradient_bytes = 0; ///< of one worker (the buffer with its gaps)
  std::vector<DTypeRun> runs;
  std::uint64_t part_bytes = 0;
  /// The stores of sums on ranks without a gradient.
  Stores stores = Stores::cached;
  /// Ranks that share memory read the workers' gradients and write sums in place; otherwise
  /// gradients are sent to the summing rank.
  bool sums_in_place = false;
  /// Credit: parts of a lane that a worker may have sent without having their sums back.
  std::uint64_t window_parts = 1;
  /// For strategy "ring": the workers in the order of the ring; empty: by number.
  std::vector<std::uint64_t> ring_order;
  /// In this many groups of the workers each part is summed first, or of their machines where parts
  /// have heads; 0: there are none.
  std::uint64_t groups = 0;
  Parts parts;
  Collective collective = Collective::all_reduce; ///< all others need trees
  std::uint64_t root = 0;                         ///< root of a broadcast or a reduce; otherwise 0
  std::vector<SumTree> trees{};   ///< empty: each part's server sums what all workers send to it
  std::optional<TorusPlan> torus; ///< absent unless the ranks are the nodes of a torus
  /// Where each machine sums its own first: the ways to do that (parts.tree). [worker]: the worker
  /// that it hands its sum to, both by their numbers in the machine; the part's head: itself. All
  /// machines that work have equally many workers.
  std::vector<std::vector<std::uint64_t>> machine_trees{};
  std::vector<PlanResource> resources{}; ///< highest price first; only with trees
  std::vector<ProxyRoute> routing{};     ///< of every worker, in plans over memory devices
  std::vector<TensorRoute> tensors{};    ///< in gradient order; only with `routing`
  bool one_queue = false;           ///< proxies sum first come, first served: to show the deadlock
  std::optional<UpdatePlan> update; ///< absent: the plan ends with sums
  std::optional<Passes> passes;     ///< absent: only the traffic counts
  std::optional<AsyncPlan> asynchronous;
  std::optional<FixedPointPlan> fixed_point;
  /// Workers' gradients are fp32, are rounded to this half type before they are sent, and so are
  /// sums: everything else here counts elements of this type.
  std::optional<DType> wire{};
  std::optional<MeasuredMachine> measured_on{}; ///< absent: several machines, or written by hand
  std::optional<RehearsalPlan> rehearsal{};     ///< absent: the profile has none like it
  Prediction prediction;                        ///< of the chosen strategy
  std::optional<SwitchSums> switch_sums{}; ///< absent: no switch sums, or that would save nothing
  double assignment_gap = 0; ///< (time of the assignment / time of the exact shares) - 1
  std::string runner_up;     ///< empty when no other strategy applies
  double margin = 0;         ///< runner-up's predicted time / ours - 1
  std::string margin_text;   ///< change of the inputs at which the runner-up wins
  std::vector<Candidate> candidates;
  std::vector<Quantity> quantities;
  /// Facts that the profile lacks or the plan leaves out, one sentence each: they count as free.
  std::vector<std::string> assumed{};
  bool operator==(const Plan&) const = default;
};

} // namespace reckon
