// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/profile.hpp"

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

struct ImportOptions {
  /// The tool of a file: "nvbandwidth" (its text, or --json), "p2p" (p2pBandwidthLatencyTest of the
  /// CUDA samples), "nccl-tests" (or rccl-tests), "mlc" (Intel Memory Latency Checker), "osu" (OSU
  /// micro-benchmarks), "perftest" (ib_write_bw and the like), "nccom-test" (AWS Neuron),
  /// "transferbench" and "rocm_bandwidth_test" (AMD), "ucx_perftest" or "ucc_perftest". Empty:
  /// recognised by the content.
  std::string format;
  /// Id of the machine. A job of nccl-tests over several machines has this and a number appended
  /// for each; with "m0" they are m0, m1, ... For two processes of OSU's benchmarks, perftest or
  /// ucx_perftest:
  /// the machine of each, with a comma between ("m0,m1"), the one that starts first.
  std::string machine = "m0";
  /// The collective of an output of nccl-tests or nccom-test ("all_reduce"), if the file does not
  /// name it.
  std::string collective;
  /// Ranks of nccl-tests or nccom-test, all on one machine, where the file does not say; ranks of a
  /// collective of OSU's or of ucc_perftest.
  std::optional<std::uint64_t> ranks{};
  /// Names of machines of two processes by their addresses and other names (read_hosts()).
  std::map<std::string, std::string> hosts{};
};

/// By each address and each further name the first name of its line in a text as /etc/hosts.
/// Throws Error{input} for a line without a name.
[[nodiscard]] std::map<std::string, std::string> read_hosts(std::string_view text,
                                                            const std::string& file);

/// The output of a tool, and the name of its file.
struct ToolOutput {
  std::string file, text;
};

/// The format whose marks are in the text. Throws Error{input} without marks, or with those of two
/// formats.
[[nodiscard]] std::string recognise_format(std::string_view text, const std::string& file);

/// The program that printed the text ("nccl-tests"); empty where recognise_format() would throw.
[[nodiscard]] std::string program_of(std::string_view text);

/// By file a profile of another program's measurements: cells of status `published`, each with the
/// value as its one sample (or several, where the file repeats the measurement), in bytes per
/// second with each byte counted once, and in seconds. `from` is the source of the bytes, whatever
/// row and column mean to the tool. The topology has machines with GPUs or NUMA nodes only, because
/// no tool prints the tree between them. Options add what some outputs lack: of several files
/// --collective and --ranks are for those that take them. Throws Error{input} as "FILE:LINE:
/// problem; remedy", or with the JSON pointer, for anything that the tool would not print;
/// Error{usage} for an invalid id, or an option that applies to none of the files.
[[nodiscard]] std::vector<Profile> import_texts(std::vector<ToolOutput> outputs,
                                                const ImportOptions& options);
/// The same for one file.
[[nodiscard]] Profile import_text(std::string_view text, const std::string& file,
                                  const ImportOptions& options);

/// Warns of repeated cells whose values differ by more than a fifth.
void warn_of_spread(const Profile& imported);

/// Adds `imported` to `base`: its machines and objects under the ids that `base` has for them (GPUs
/// are the same by PCI address, else by id), and its cells. Cells of both become more samples when
/// both are imported. Throws Error{input} when one file is imported twice, when two objects of one
/// id are different things, and when a cell of `base` was measured otherwise.
void merge_import(Profile& base, const Profile& imported);

/// `imported` with the tree of the described machine, the first that has one, for each of its own.
/// GPUs are the same by PCI address where one of the tree has it, else by number.
[[nodiscard]] Profile with_tree_of(const Profile& described, Profile imported);

/// `added` with the ids that its machines have in `base`, which its files name alike: a machine of
/// a name that `base` knows has its id, and one whose id is another's gets the next free one. For
/// files whose machines nobody gave ids.
[[nodiscard]] Profile with_ids_by_name(Profile added, const Profile& base);

} // namespace reckon
