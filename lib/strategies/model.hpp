// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/dtype.hpp"
#include "core/optimizer.hpp"
#include "core/stores.hpp"
#include "documents/plan.hpp"
#include "documents/profile.hpp"
#include "documents/roles.hpp"
#include "equations/split.hpp"
#include "network/rate.hpp"
#include "stats/curve.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace reckon {

/// One rank of the job to be planned.
struct RankModel {
  /// Of its ports together. Where ranks share a machine and have none all are equal: only
  /// proportions count.
  [[nodiscard]] double port() const { return port_bytes_per_s > 0 ? port_bytes_per_s : 1e9; }
  /// Of its ports together: the estimate's time of a byte is one over it.
  [[nodiscard]] double port_rate(Estimate e) const {
    return port_bytes_per_s * port_share.slow_to_fast(e);
  }
  std::string machine;      ///< MachineGroup id
  std::string member;       ///< which of the group's, where those have names
  std::uint64_t number = 0; ///< which of the group's
  std::string rack;         ///< of the machine; empty: the profile knows no racks
  std::size_t host = 0; ///< which physical machine: ranks with equal numbers share cores and memory
  bool worker = false, server = false;
  int lanes = 1; ///< 0: to be solved
  double port_bytes_per_s =
      0; ///< of its own network ports together, each direction; 0: it shares its machine
  Rate port_share{1, 1, 1};         ///< of port_bytes_per_s: where its samples lie, as parts of it
  std::vector<std::string> ports{}; ///< ids, where it has several: its lanes take them in turn
  std::vector<double> single_port_bytes_per_s{}; ///< of `ports`, each alone; 0: not measured
};

/// How sums are written, and what that is worth.
struct StoresChoice {
  Stores stores = Stores::cached;
  double gain = 1;                 ///< of these stores, over cached ones
  std::optional<double> streaming; ///< rate of streaming over cached ones; absent: not measured
  int threads = 0;                 ///< what that was measured with: threads, operands, part
  std::size_t sources = 0;
  std::uint64_t bytes = 0;
};

/// The numbers of a profile that a prediction needs, for one set of ranks and one transport. Where
/// the profile lacks something the model says so: a prediction that leaves out a cost names it.
class CostModel {
public:
  /// Overrides of the profile for what-if questions.
  struct WhatIf {
    std::optional<double> worker_port_bytes_per_s, server_port_bytes_per_s;
  };
  /// Throws Error{input} when the roles name machines that the profile lacks, or nothing in the
  /// profile says how fast these ranks can talk over `transport` ("": the fastest that it has).
  CostModel(const Profile& profile, const Roles& roles, std::string transport,
            const WhatIf& what_if);

  [[nodiscard]] const std::vector<RankModel>& ranks() const { return m_ranks; }
  /// Gives every rank that many lanes: lane i of one rank talks only to lane i of another, so all
  /// have the same.
  void set_lanes(int lanes);
  [[nodiscard]] const std::string& transport() const { return m_transport; }
  /// All ranks on one machine: its memory and cores, not ports, are what they share.
  [[nodiscard]] bool one_machine() const { return m_one_machine; }
  [[nodiscard]] std::uint64_t cores() const { return m_cores; }
  /// Ranks with a gradient, and those that only serve.
  [[nodiscard]] const std::vector<std::size_t>& workers() const { return m_workers; }
  [[nodiscard]] const std::vector<std::size_t>& servers() const { return m_servers; }

  /// Where the writes of ranks that share a machine go: it decides whether the caches help.
  enum class Target {
    gradients, ///< all over the peer's gradient: as good as never cached
    slots,     ///< the few slots of a window, again and again
    results,   ///< as gradients, of sums just made: their sources are cached
  };
  /// Bytes per second that all ranks of one machine write to each other in total, `talkers` of them
  /// at once, in parts of `part_bytes`.
  [[nodiscard]] Rate shared_rate(double talkers, double part_bytes, Target target) const;
  /// Bytes per second that ranks write to each other, all over their gradients, on one processor
  /// while the others do nothing; absent where the profile does not say.
  [[nodiscard]] std::optional<Rate> one_processor_rate(double part_bytes) const;
  /// The machine's last-level caches together; 0: not known.
  [[nodiscard]] double cache_bytes() const { return m_cache_bytes; }
  /// The greatest rate ever seen between ranks of the shared machine.
  [[nodiscard]] double best_shared_rate() const;
  /// The greatest rate ever seen at which this machine reads and writes memory, for bounds, and the
  /// test that gave it; where `bytes`, all that is read and written, fit into its last-level
  /// caches, that of its cores on cached data of which each has its part of `bytes`. Of a profile
  /// that measured neither, twice best_shared_rate(): a byte that a rank writes to another is read,
  /// too.
  [[nodiscard]] std::pair<double, std::string> best_memory_rate(double bytes) const;
  /// Memory traffic per second, reads and writes, of `threads` threads together that sum so many
  /// operands in place; absent where the profile does not say.
  [[nodiscard]] std::optional<Rate> in_place_rate(DType dtype, int threads,
                                                  std::size_t operands) const;
  /// Rate of a port relative to its best, when traffic is cut into parts of that size: in (0, 1].
  [[nodiscard]] double port_efficiency(double part_bytes) const;
  /// What a run measures again before and after, sums in place or not; absent between machines and
  /// where the profile does not say.
  [[nodiscard]] std::optional<MachineRates> machine_rates(bool in_place) const;
  /// Operand bytes per second that one thread of `threads` adds up (an n-operand sum of b bytes
  /// counts (n-1) b).
  [[nodiscard]] Rate reduce_rate(DType dtype, int threads, std::size_t sources,
                                 double part_bytes) const;
  /// How much faster sums are whose operands but one are still in the caches, as they were just
  /// written; 1 where the profile does not say.
  [[nodiscard]] double cached_sum_gain(DType dtype, int threads, std::size_t sources) const;
  /// Operand bytes per second that one lane of a rank adds up: reduce_rate(), times what the stores
  /// gain that it writes its sums with.
  [[nodiscard]] Rate sum_rate(const RankModel& rank, DType dtype, std::size_t sources,
                              double part_bytes) const;
  /// The stores of a rank's sums: what the profile measured to be faster of sums that are sent at
  /// once (`sum_and_send`), with as many threads as it has lanes. Cached where a rank sums into its
  /// own gradient, where that is not known, and unless streaming gains clearly.
  [[nodiscard]] StoresChoice stores_of(const RankModel& rank, std::size_t sources,
                                       double part_bytes) const;
  /// Bytes per second that a rack sends to others while as much comes in; infinite when the profile
  /// does not know.
  [[nodiscard]] double uplink_bytes_per_s(const std::string& rack) const;
  /// Where the samples of that rate lie, as parts of it.
  [[nodiscard]] Rate uplink_share(const std::string& rack) const;
  /// The racks of the ranks, in order of the first rank in each; one without a name when the
  /// profile knows none.
  [[nodiscard]] const std::vector<std::string>& racks() const { return m_racks; }
  /// By rank: the place of its rack in racks().
  [[nodiscard]] const std::vector<std::size_t>& rack_of() const { return m_rack_of; }
  /// Bytes of parameters that one thread of `threads` on that machine steps in a second; infinite
  /// where the profile does not say.
  [[nodiscard]] Rate step_rate(const std::string& machine, Optimizer optimizer, int threads) const;
  /// Bytes per second that `threads` threads copy together inside one machine, in pieces of
  /// `bytes` that are in no cache; nothing where the profile does not say.
  [[nodiscard]] std::optional<double> copy_rate(double bytes, int threads) const;
  /// One small write from start to arrival, on the longest way between two ranks, and in the mean
  /// of all ways: those between pairs of machines where they were measured, else what the machines'
  /// groups say.
  [[nodiscard]] double latency_s() const { return m_latency_s; }
  [[nodiscard]] double mean_latency_s() const { return m_mean_latency_s; }
  /// The ports as BytePS's star. On one machine, where there are none, all ports are equal.
  [[nodiscard]] Star star(double model_bytes) const;
  /// The least number of lanes of which each machine's network ports carry as many.
  [[nodiscard]] int ports() const { return m_ports; }
  /// At least so many lanes, of which each port carries as many.
  [[nodiscard]] int lanes_over_ports(int lanes) const;
  /// "cell of the profile: what it gave", for the plan.
  [[nodiscard]] const std::vector<std::string>& sources() const { return m_sources; }
  /// What the profile does not know and counts as free.
  [[nodiscard]] const std::vector<std::string>& assumed() const { return m_assumed; }

private:
  struct ReducePoint {
    DType dtype;
    int threads;
    std::size_t sources;
    double bytes;
    Rate rate; ///< all threads together
  };
  struct InPlacePoint {
    DType dtype;
    int threads;
    std::size_t operands;
    Rate rate; ///< all threads together
  };
  struct StoresPoint {
    int threads;
    std::size_t sources;
    std::uint64_t bytes;
    double cached = 0, streaming = 0; ///< rates; 0: not measured
  };
  struct StepPoint {
    std::string machine;
    Optimizer optimizer;
    int threads;
    Rate rate; ///< all threads together
  };
  struct CopyPoint {
    double bytes, rate; ///< one thread
  };
  struct StreamPoint {
    int threads;
    double rate; ///< copied by all of them: half of what STREAM counts
  };
  struct SharedPoint {
    double talkers, bytes;
    Rate rate;
  };
  /// `own_machines`: each rank has one, whatever the profile says.
  void place(const Profile& profile, const Roles& roles, bool own_machines);
  void read_ports(const Profile& profile, const WhatIf& what_if);
  void read_single_ports(const Profile& profile);
  void read_shared(const Profile& profile);
  void read_latency(const Profile& profile);
  void read_reduction(const Profile& profile);
  [[nodiscard]] static const ReducePoint& nearest_of(const std::vector<ReducePoint>& points,
                                                     DType dtype, int threads, std::size_t sources,
                                                     double part_bytes);
  void read_stores(const Profile& profile);
  void read_memory(const Profile& profile);
  void read_steps(const Profile& profile);
  void read_copies(const Profile& profile);

  /// How much faster ranks write to the target than to gradients, by the setting nearest to this
  /// one that was measured; 1 where none was.
  [[nodiscard]] double cache_gain(double talkers, double part_bytes, Target target) const;
  /// The rate at a part size, of points that ascend in it; at least one.
  [[nodiscard]] static Rate rate_at(const std::vector<SharedPoint>& points, double part_bytes);

  std::vector<RankModel> m_ranks;
  std::vector<std::size_t> m_workers, m_servers;
  std::vector<std::string> m_racks;
  std::vector<std::size_t> m_rack_of; ///< by rank: its rack's place in m_racks
  std::string m_transport;
  bool m_one_machine = false;
  std::uint64_t m_cores = 1;
  std::vector<SharedPoint> m_shared;           ///< cold: Target::gradients
  std::vector<SharedPoint> m_slots, m_results; ///< by what they are written from and to
  std::vector<SharedPoint> m_one_processor;
  std::optional<Curve> m_port_curve;
  std::vector<ReducePoint> m_reduce, m_reduce_cached;
  std::vector<InPlacePoint> m_in_place;
  double m_best_memory = 0;          ///< rate of memory traffic; 0: not measured
  std::map<double, double> m_cached; ///< the same of all cores' copies in caches, by their bytes
  std::string m_best_memory_test;
  double m_cache_bytes = 0; ///< of the machine's last-level caches together
  std::map<std::string, Rate> m_uplinks;
  std::vector<StoresPoint> m_stores;
  std::vector<StepPoint> m_steps;
  std::vector<CopyPoint> m_copies;
  std::vector<StreamPoint> m_streams;
  double m_latency_s = 0, m_mean_latency_s = 0;
  std::vector<std::string> m_sources, m_assumed;
  int m_ports = 1;
};

/// Whether the machines of a profile have names of their own: a measured cluster's members, or
/// several groups of one machine each.
[[nodiscard]] bool has_named_machines(const Profile& profile);

/// Default roles: `workers` ranks that also serve (BytePS: a summation service on every machine),
/// then `servers` ranks that only serve. They go on the first group of machines; the servers on the
/// second where there is one. On a cluster whose machines have names of their own rank i goes on
/// machine i of all groups one after another; with `own_ports` (CostModel::WhatIf) more ranks are
/// on machines like the first. Throws Error{usage} without a worker, Error{input} when the named
/// machines are too few.
[[nodiscard]] Roles default_roles(const Profile& profile, std::uint64_t workers,
                                  std::uint64_t servers, int lanes, bool own_ports = false);

} // namespace reckon
