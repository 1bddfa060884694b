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
#include "strategies/rate_law.hpp"

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
  /// Bandwidth of its ports together. Where ranks share a machine without ports all are equal: only
  /// proportions count.
  [[nodiscard]] double port() const { return port_bytes_per_s > 0 ? port_bytes_per_s : 1e9; }
  /// Bandwidth of its ports together: the estimate's time of a byte is its inverse.
  [[nodiscard]] double port_rate(Estimate e) const {
    return port_bytes_per_s * port_share.slow_to_fast(e);
  }
  std::string machine;      ///< MachineGroup id
  std::string member;       ///< name of the machine in the group, where its machines have names
  std::uint64_t number = 0; ///< index of the machine in the group
  std::string rack;         ///< the machine's rack; empty: the profile knows no racks
  std::size_t host = 0; ///< which physical machine: ranks with equal numbers share cores and memory
  bool worker = false, server = false;
  int lanes = 1; ///< 0: the planner chooses
  double port_bytes_per_s =
      0; ///< bandwidth of its own network ports together, each direction; 0: it shares its machine
  Rate port_share{1, 1, 1};         ///< the range of port_bytes_per_s, as fractions of it
  std::vector<std::string> ports{}; ///< ids of several ports, which its lanes take in turn
  std::vector<double> single_port_bytes_per_s{}; ///< of `ports`, each alone; 0: not measured
};

/// How sums are written, and the gain of these stores.
struct StoresChoice {
  Stores stores = Stores::cached;
  double gain = 1;                 ///< rate of these stores over cached ones
  std::optional<double> streaming; ///< rate of streaming over cached ones; absent: not measured
};

/// The numbers of a profile that a prediction needs, for one set of ranks and one transport. The
/// model names what the profile lacks, so a prediction can name each cost that it leaves out.
class CostModel {
public:
  /// Overrides of the profile for what-if questions.
  struct WhatIf {
    std::optional<double> worker_port_bytes_per_s, server_port_bytes_per_s;
  };
  /// Throws Error{input} when the roles name machines that the profile lacks, or when the profile
  /// has no rate between these ranks over `transport` ("": its fastest).
  CostModel(const Profile& profile, const Roles& roles, std::string transport,
            const WhatIf& what_if);

  [[nodiscard]] const std::vector<RankModel>& ranks() const { return m_ranks; }
  /// Gives every rank this number of lanes: lane i of one rank talks only to lane i of another, so
  /// all ranks have the same number.
  void set_lanes(int lanes);
  [[nodiscard]] const std::string& transport() const { return m_transport; }
  /// All ranks are on one machine and share its memory and cores, not ports.
  [[nodiscard]] bool one_machine() const { return m_one_machine; }
  [[nodiscard]] std::uint64_t cores() const { return m_cores; }
  /// Ranks with a gradient, and ranks that only serve.
  [[nodiscard]] const std::vector<std::size_t>& workers() const { return m_workers; }
  [[nodiscard]] const std::vector<std::size_t>& servers() const { return m_servers; }

  /// Bytes per second that all ranks of one machine write to each other together, `talkers` of them
  /// at once, in parts of `part_bytes`.
  [[nodiscard]] Rate shared_rate(double talkers, double part_bytes) const;
  /// Bytes per second that ranks write to each other, all over their gradients, on one processor
  /// while the others are idle; absent where the profile lacks it.
  [[nodiscard]] std::optional<Rate> one_processor_rate(double part_bytes) const;
  /// The greatest measured rate between ranks of the shared machine.
  [[nodiscard]] double best_shared_rate() const;
  /// The greatest measured rate of reading and writing this machine's memory, for bounds, and the
  /// test that gave it. Where `bytes`, everything read and written, fit into the last-level caches,
  /// it is the rate of the cores on cached data, each with its part of `bytes`. For a profile that
  /// measured neither it is twice best_shared_rate(): a byte that a rank writes to another is read,
  /// too.
  struct BestRate {
    double bytes_per_s = 0;
    const char* of = "memory"; ///< or "caches"
    std::string test;
  };
  [[nodiscard]] BestRate best_memory_rate(double bytes) const;
  /// Memory traffic per second, reads and writes, of `threads` threads together that sum this
  /// number of operands in place; absent where the profile lacks it.
  [[nodiscard]] std::optional<Rate> in_place_rate(DType dtype, int threads,
                                                  std::size_t operands) const;
  /// Rate of a port relative to its best, for parts of this size: in (0, 1].
  [[nodiscard]] double port_efficiency(double part_bytes) const;
  /// What a small plan took on the machine that the ranks share, over their transport.
  struct Rehearsed {
    std::string strategy;
    bool in_place = false;
    double ranks = 0, workers = 0, part_bytes = 0, gradient_bytes = 0;
    Rate bytes_per_s; ///< of the gradient
  };
  [[nodiscard]] const std::vector<Rehearsed>& rehearsed() const { return m_rehearsed; }
  /// Operand bytes per second that one thread of `threads` adds up (an n-operand sum of b bytes
  /// counts (n-1) b).
  [[nodiscard]] Rate reduce_rate(DType dtype, int threads, std::size_t sources,
                                 double part_bytes) const;
  /// Operand bytes per second that one lane of a rank adds up: reduce_rate(), times what the stores
  /// gain that it writes its sums with.
  [[nodiscard]] Rate sum_rate(const RankModel& rank, DType dtype, std::size_t sources,
                              double part_bytes) const;
  /// The stores of a rank's sums: the faster ones for sums that are sent at once (`sum_and_send`),
  /// with as many threads as it has lanes. Cached where a rank sums into its own gradient, where
  /// the profile lacks the cells, and unless streaming gains clearly.
  [[nodiscard]] StoresChoice stores_of(const RankModel& rank, std::size_t sources,
                                       double part_bytes) const;
  /// Bytes per second that a rack sends to others while as much comes in; infinite where unknown.
  [[nodiscard]] double uplink_bytes_per_s(const std::string& rack) const;
  /// The range of that rate, as fractions of it.
  [[nodiscard]] Rate uplink_share(const std::string& rack) const;
  /// The racks of the ranks, in order of the first rank in each; one nameless rack when the profile
  /// knows no racks.
  [[nodiscard]] const std::vector<std::string>& racks() const { return m_racks; }
  /// By rank: the index of its rack in racks().
  [[nodiscard]] const std::vector<std::size_t>& rack_of() const { return m_rack_of; }
  /// Bytes of parameters that one thread of `threads` on that machine steps in a second; infinite
  /// where the profile lacks it.
  [[nodiscard]] Rate step_rate(const std::string& machine, Optimizer optimizer, int threads) const;
  /// Bytes per second that `threads` threads copy together inside one machine, in uncached pieces
  /// of `bytes`; absent where the profile lacks it.
  [[nodiscard]] std::optional<double> copy_rate(double bytes, int threads) const;
  /// One small write from start to arrival, on the longest way between two ranks, and in the mean
  /// of all ways: measured pairs of machines, else the machines' groups.
  [[nodiscard]] double latency_s() const { return m_latency_s; }
  [[nodiscard]] double mean_latency_s() const { return m_mean_latency_s; }
  /// The ports as BytePS's star. On one machine, which has no ports, all are equal.
  [[nodiscard]] Star star(double model_bytes) const;
  /// The least number of lanes with which each network port of every machine has equally many.
  [[nodiscard]] int ports() const { return m_ports; }
  /// The least number of lanes of at least this many with which each port has equally many.
  [[nodiscard]] int lanes_over_ports(int lanes) const;
  /// "cell of the profile: what it gave", for the plan.
  [[nodiscard]] const std::vector<std::string>& sources() const { return m_sources; }
  /// The costs that the profile lacks and the prediction counts as free.
  [[nodiscard]] const std::vector<std::string>& assumed() const { return m_assumed; }

private:
  using Sums = std::map<DType, RateLaw>;
  /// `own_machines`: each rank has a machine of its own, whatever the profile says.
  void place(const Profile& profile, const Roles& roles, bool own_machines);
  void read_ports(const Profile& profile, const WhatIf& what_if);
  void read_single_ports(const Profile& profile);
  void read_shared(const Profile& profile);
  void read_latency(const Profile& profile);
  /// How the time of a write between two ranks grows with its size, where the profile has that.
  void read_write_curve(const Profile& profile);
  void read_sums(const Profile& profile, const char* test, Sums& sums);
  /// Of this element type, or of the first that was measured; null without any.
  [[nodiscard]] static const RateLaw* law_of(const Sums& sums, DType dtype);
  void read_stores(const Profile& profile);
  void read_memory(const Profile& profile);
  void read_steps(const Profile& profile);
  void read_copies(const Profile& profile);
  void read_rehearsals(const Profile& profile);

  /// The rate of parts shorter than any of the law, as a factor of that of its shortest.
  [[nodiscard]] double shorter_parts(const RateLaw& law, double part_bytes) const;

  std::vector<RankModel> m_ranks;
  std::vector<std::size_t> m_workers, m_servers;
  std::vector<std::string> m_racks;
  std::vector<std::size_t> m_rack_of; ///< by rank: index in m_racks
  std::string m_transport;
  bool m_one_machine = false;
  std::uint64_t m_cores = 1;
  RateLaw m_shared{RateLaw::Beyond::shared}; ///< by writing threads
  RateLaw m_one_processor;
  std::optional<Curve> m_write_curve;
  Sums m_reduce;                     ///< operand bytes, by threads
  Sums m_in_place;                   ///< memory traffic, by threads
  double m_best_memory = 0;          ///< rate of memory traffic; 0: not measured
  std::map<double, double> m_cached; ///< the same of all cores' copies in caches, by their bytes
  std::string m_best_memory_test;
  double m_cache_bytes = 0; ///< the machine's last-level caches together
  std::map<std::string, Rate> m_uplinks;
  RateLaw m_cached_stores, m_streaming_stores; ///< operand bytes of sums that are sent, by threads
  std::map<std::pair<Optimizer, std::string>, RateLaw> m_steps; ///< by machine and threads
  RateLaw m_copies;                                             ///< of one thread, by bytes
  RateLaw m_streams{RateLaw::Beyond::shared};                   ///< copied bytes, by threads
  std::vector<Rehearsed> m_rehearsed;
  double m_latency_s = 0, m_mean_latency_s = 0;
  std::vector<std::string> m_sources, m_assumed;
  int m_ports = 1;
};

} // namespace reckon
