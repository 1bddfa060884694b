// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/profile.hpp"
#include "import/import.hpp"
#include "import/text_lines.hpp"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reckon::import_detail {

/// The ids of --machine, one or more, in their order.
[[nodiscard]] std::vector<std::string> machine_ids(const ImportOptions& options);

/// Where --machine names several machines, which are one group as long as nothing is known of them:
/// an entry for each, so that they can have parts, and the group's cells of each.
void split_group(Profile& profile);

/// What two names begin with, up to the end of a word or before a number: "ib-gpu" of
/// "ib-gpu-01" and "ib-gpu-12". The first where that is nothing.
[[nodiscard]] std::string common_name(const std::string& a, const std::string& b);

/// Builds the profile of one file.
class Collector {
public:
  /// Has the machines of the options: one, or a group of several.
  Collector(const std::string& file, const ImportOptions& options);

  /// Id of the machine; with several (see machine()), of the first.
  [[nodiscard]] const std::string& machine() const { return m_machine; }
  /// Id of the group of machines of --machine.
  [[nodiscard]] const std::string& group() const { return m_profile.machines.front().id; }
  /// Ids of the machines of machines().
  [[nodiscard]] std::vector<std::string> ids() const;
  /// Adds several machines, by their host names, in their order.
  void machines(const std::vector<std::string>& hosts);
  /// The name of a machine. The first name is kept.
  void host_name(const std::string& machine, std::string_view name);
  /// Ids of a machine's parts, which are added at first use.
  [[nodiscard]] std::string gpu(int index) { return gpu(m_machine, index); }
  [[nodiscard]] std::string gpu(const std::string& machine, int index);
  [[nodiscard]] std::string numa_node(int index);
  /// Of a NIC by what its system calls it, "mlx5_3".
  [[nodiscard]] std::string nic(const std::string& machine, const std::string& name);
  /// Facts about a GPU; empty texts are ignored.
  void describe_gpu(const std::string& id, std::string_view name, std::string_view pci_address);

  /// A measured value; another sample when the key is there already.
  void add(const CellKey& key, std::string_view unit, double value, const std::string& remark = "",
           std::string_view bytes_convention = "payload");
  /// The same of a value that the tool printed, which may be 0: a cell that failed.
  void add_printed(const CellKey& key, std::string_view unit, double value,
                   const std::string& remark = "");
  /// Times in seconds as they were in a job that ran; noisy where there is a doubt.
  void measured(const CellKey& key, std::vector<double> samples_s, const std::string& doubt);
  /// A cell without a value; ignored when the key is there already.
  void absent(const CellKey& key, std::string_view unit, CellStatus status,
              const std::string& reason);
  /// A line of the profile's context.
  void note(const std::string& name, std::string_view text);

  /// A measurement took so long, beside its start and end.
  void took(double seconds) { m_seconds += seconds; }

  /// A part of the file that a profile cannot express, or that is unknown here.
  void left_out(std::string_view what);

  /// A file without times is of use for its context.
  void needs_no_cell() { m_needs_cell = false; }

  /// The output ends early, or lacks rows, which `problem` says, with the place first: what was
  /// measured counts.
  void cut_off(std::string problem) { m_cut_off.push_back(std::move(problem)); }

  /// Warns of omitted and of missing parts. Throws Error{input} when no cell has a value. `tool`:
  /// "nvbandwidth v0.5"; `takes`: the parts that reckon reads.
  [[nodiscard]] Profile finish(const std::string& tool, std::string_view text,
                               std::string_view takes = "");

private:
  [[noreturn]] void refuse_nothing(const std::string& tool, std::string_view takes) const;
  Cell& cell(const CellKey& key, std::string_view unit);
  void add_sample(Cell& cell, double value) const;
  TopologyObject& object(const std::string& id, ObjectKind kind, const std::string& parent);

  std::string m_file;
  std::string m_machine;
  Profile m_profile;
  std::map<CellKey, std::size_t> m_cells;
  std::map<std::string, std::size_t> m_objects;
  std::vector<std::string> m_left_out;
  std::vector<std::string> m_cut_off;
  bool m_needs_cell = true;
  double m_seconds = 0; ///< that the tests of the file took; 0: unknown
};

/// "0000:17:00.0" from domain, bus and device as tools print them, or from a text that begins with
/// them as "00000000:17:00" or "PCI:0000:17:00"; empty for other text. The function of a GPU is 0.
[[nodiscard]] std::string pci_address(std::string_view text);
[[nodiscard]] std::string pci_address(std::string_view domain, std::string_view bus,
                                      std::string_view device);

inline constexpr std::string_view k_rate = "bytes_per_second";
inline constexpr std::string_view k_time = "seconds";

/// The reader of a format. Throws Error{input} for what the tool would not print.
using ReadText = Profile(const TextLines& lines, const ImportOptions& options);
ReadText read_nvbandwidth, read_p2p_latency, read_nccl_tests, read_mlc, read_osu, read_perftest,
    read_transferbench, read_nccom, read_rocm_bandwidth, read_ucx, read_ucc;

} // namespace reckon::import_detail
