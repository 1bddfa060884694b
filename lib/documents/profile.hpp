// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/endpoint.hpp"
#include "topology/topology.hpp"

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// Outcome of a measurement. Only ok, noisy and published have a value.
enum class CellStatus {
  ok,
  noisy,       ///< measured, but its spread or a disturbance (see reason) makes it doubtful
  published,   ///< not measured here: from a paper or a data sheet (profile.source says which)
  skipped,     ///< not tried: no time left, interrupted, not asked for
  unsupported, ///< this machine or build cannot do it
  mismatch,    ///< moved, but the data were wrong
  timeout,
  failed,
};
[[nodiscard]] std::string_view name_of(CellStatus status);

/// The identity of a cell's measurement. Cells with equal keys measure the same thing; fields that
/// do not apply keep their default and are absent in the document.
struct CellKey {
  std::string test{};       ///< "case" in the document, snake_case: "numa_to_numa_copy_cpu"
  std::string from{}, to{}; ///< topology or machine ids; `to` may be empty
  std::uint64_t bytes = 0;  ///< message size, or footprint for memory tests
  int threads = 0;     ///< of a process; processors of all pairs; of a GPU: blocks of 1024; of a
                       ///< rehearsal: its ranks
  int pairs = 0;       ///< pairs of processes at work at once
  int in_flight = 0;   ///< writes posted and not completed, each direction of each pair
  int sources = 0;     ///< operands of a summation; of a rehearsal: its workers
  std::string dtype{}; ///< fp32, fp16, bf16
  std::string transport{}; ///< "host", "tcp;ofi_rxm", "shm", "verbs;ofi_rxm", ...
  std::string direction{}; ///< "one_way" or "two_way"
  /// Optimizer: sgd, momentum, rmsprop, adam; computation: gemm or embedding, with its size as in
  /// gemm_256 (side of the matrices) and embedding_1000 (lookups); rehearsal: its strategy; rails:
  /// rail0, rail1, ... or rails_at_once
  std::string operation{};
  /// Caches: cold or warm; host memory of a copy to or from a GPU: pinned or pageable; a copy
  /// between GPUs: peer (directly) or staged (by way of the host); rehearsal: its sums are made
  /// in_place or sent
  std::string state{};
  auto operator<=>(const CellKey&) const = default;
  /// One line for people and for sorting: "fabric_write m0->m0 tcp;ofi_rxm one_way 4194304 B".
  [[nodiscard]] std::string text() const;
};

struct Ceiling {
  std::string name; ///< the limit: "PCIe 4.0 x16", "STREAM-like copy, 2 threads"
  double value = 0; ///< in the cell's unit
  bool operator==(const Ceiling&) const = default;
};

/// One measured quantity with its raw samples. A document's cell has a reason unless it is ok or
/// published, a bytes_convention when it has a value in bytes_per_second, and samples or n when it
/// was measured here.
struct Cell {
  CellKey key;
  CellStatus status = CellStatus::ok;
  std::string reason;          ///< reason for a status other than ok, or remarks
  std::string unit;            ///< "seconds" or "bytes_per_second"
  std::vector<double> samples; ///< in the order of measurement; empty for published cells
  std::uint64_t n = 0;
  double min = 0, p50 = 0, p99 = 0,
         max = 0;    ///< p99 is the slow tail: of a bandwidth, the value that 99 % exceed
  double spread = 0; ///< median absolute deviation / median
  std::string
      bytes_convention; ///< bandwidths: "payload" (each byte once) or "stream" (reads + writes)
  std::optional<Ceiling> ceiling;
  [[nodiscard]] bool has_value() const {
    return status == CellStatus::ok || status == CellStatus::noisy ||
           status == CellStatus::published;
  }
  bool operator==(const Cell&) const = default;
};

/// alpha + bytes/beta on one range of sizes.
struct FitSegment {
  double from_bytes = 0, to_bytes = 0;
  double alpha_seconds = 0, bandwidth_bytes_per_second = 0;
  double relative_residual = 0; ///< root mean square of the relative errors
  bool operator==(const FitSegment&) const = default;
};

/// The fit over all cells that agree with `key` in everything but bytes (key.bytes is 0).
struct Fit {
  CellKey key;
  std::vector<FitSegment> segments;
  double knee_bytes = 0; ///< smallest size with 90 % of the best bandwidth; 0: none
  bool operator==(const Fit&) const = default;
};

/// Machines of one group, and ranks of a group of roles: at most as many as a job may have. Memory
/// follows from it.
inline constexpr std::int64_t k_most_machines = 1'000'000;

/// Equal machines. Ranks of a plan are placed on machines.
struct MachineGroup {
  std::string id; ///< "m0", "gpu-node"; also the id of a topology object of kind machine when there
                  ///< is a tree
  std::string name; ///< host name or model
  std::uint64_t count = 1;
  std::uint64_t cores = 0;        ///< physical cores that this process may use; 0: unknown
  std::uint64_t memory_bytes = 0; ///< 0: unknown
  /// The machines' rack: traffic that leaves a rack shares its uplink (cells `uplink_bandwidth`);
  /// inside it machines have their whole ports. Empty: unknown, or only one rack.
  std::string rack{};
  /// Ids of the single machines, `count` of them or empty; cells may name them. In a measured
  /// cluster machine i, counted over all groups, was rank i of the measuring job.
  std::vector<std::string> members{};
  bool operator==(const MachineGroup&) const = default;
};

/// A setting or a state of a place, as the system tells it.
struct Setting {
  std::string place;   ///< id of a machine or a topology object
  std::string machine; ///< the member of the group of which this is said; empty: of each
  std::string name;    ///< "max_payload_bytes"
  std::string value;
  std::string file; ///< where it was read
  auto operator<=>(const Setting&) const = default;
};
/// Ends the name of a count of errors while the profile was measured.
inline constexpr std::string_view k_while_measured = "_while_measured";
/// The share of TCP's segments that machines of a cluster sent again: "1.5 % of what it sends".
inline constexpr std::string_view k_tcp_again = "tcp_sent_again_while_measured";

/// The measured or published abilities of a machine or a cluster.
struct Profile {
  std::string name;
  std::string source; ///< "measured by reckon 0.1.0", "published: BytePS, OSDI 2020, section 7.1"
  std::map<std::string, std::string>
      context;             ///< host, kernel, cpu, libraries, binding, flags, seed, ...
  std::string fingerprint; ///< digest of the facts that make two profiles comparable; may be empty
  std::vector<MachineGroup> machines;
  std::optional<Endpoint> endpoint; ///< for a machine that computes and communicates at once
  Topology topology;
  std::vector<Cell> cells; ///< sorted by key when written
  std::vector<Fit> fits;
  std::vector<Setting> settings; ///< in order when written

  [[nodiscard]] const Cell* find(const CellKey& key) const;
  /// Cells of one case that have a value and match every non-default field of `pattern`.
  [[nodiscard]] std::vector<const Cell*> select(const CellKey& pattern) const;
  /// Whether there are cells of one of these tests.
  [[nodiscard]] bool has_any(std::initializer_list<const char*> tests) const {
    return std::ranges::any_of(
        tests, [this](const char* test) { return !select({.test = test}).empty(); });
  }
  bool operator==(const Profile&) const = default;
};

/// The cells of a profile that have a value, in order, for many questions: Profile::select() looks
/// at every cell, which is too much for each pair of many machines.
class CellIndex {
public:
  /// `profile` must outlive it and keep its cells.
  explicit CellIndex(const Profile& profile);
  [[nodiscard]] const Profile& profile() const { return m_profile; }
  /// As Profile::select(); fast where `pattern` names its test, its first end, and the second.
  [[nodiscard]] std::vector<const Cell*> select(const CellKey& pattern) const;

private:
  const Profile& m_profile;
  std::vector<const Cell*> m_cells; ///< by key
};

/// Fills n, min, p50, p99, max and spread from the samples and the unit.
void summarize_cell(Cell& cell);

} // namespace reckon
