// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/json.hpp"
#include "run/values.hpp"
#include "schedule/schedule.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// Bytes that a rank saves of each checkpoint.
[[nodiscard]] std::uint64_t saved_bytes(const RankProgram& saving);
/// The data that a rank saves, at the place that the saving iteration copied them to.
[[nodiscard]] std::vector<KeptRun> copies_of(const RankProgram& saving);

/// The job of a checkpoint. A run cannot resume from another plan's checkpoint.
struct CheckpointJob {
  std::string plan; ///< digest of its canonical text
  int rank = 0, ranks = 0;
};

/// A file that shows by itself whether it is whole: one line of JSON, the data that it announces,
/// then a line with the digest of both. The old file stays until all of the new one is on disk
/// (write_file()).
struct SealedFile {
  Json header;
  std::string content;   ///< of the whole file
  std::string_view data; ///< the part of it after the first line
  std::string digest;    ///< the digest in the last line, which was checked
};
inline constexpr std::size_t k_seal_bytes = 72; ///< of the last line: "sha256:", 64 digits, '\n'

/// Returns the digest. Throws Error{operation} naming the file.
std::string write_sealed(const std::string& path, Json header,
                         std::span<const std::span<const std::byte>> data);
/// Throws Error{input} that names the file and its fault: it is missing, its end is missing, or
/// bytes of it have changed.
[[nodiscard]] SealedFile read_sealed(const std::string& path);

/// The files of a folder: step-00000012.rank-0003.bin is rank 3's part of the checkpoint of step
/// 12, step-00000012.complete says that every rank's part is there, and each one's digest.
class CheckpointFolder {
public:
  explicit CheckpointFolder(std::string path) : m_path(std::move(path)) {}
  [[nodiscard]] const std::string& path() const { return m_path; }
  [[nodiscard]] bool exists() const;
  /// Makes the folder if it is not there. Throws Error{operation}.
  void create() const;
  [[nodiscard]] std::string part(std::uint64_t step, int rank) const;
  [[nodiscard]] std::string manifest(std::uint64_t step) const;
  /// Steps with a manifest, in ascending order; empty when there is no folder.
  [[nodiscard]] std::vector<std::uint64_t> complete_steps() const;
  /// Steps with a part of that rank, in ascending order.
  [[nodiscard]] std::vector<std::uint64_t> steps_of(int rank) const;
  /// Removes leftovers of killed processes: temporary files of that rank's parts, and of manifests
  /// if it is rank 0.
  void remove_leftovers(int rank) const;

private:
  [[nodiscard]] std::vector<std::uint64_t> steps_with(const std::string& end) const;
  std::string m_path;
};

/// Writes one rank's part of the checkpoint after `step` steps: the bytes at SavedRun::copy in
/// `views`, in that order. Returns its digest.
std::string write_part(const CheckpointFolder& folder, const CheckpointJob& job, std::uint64_t step,
                       Optimizer optimizer, const RankProgram& saving, Views views);
/// Reads a part, and checks its digest and layout. Throws Error{input}.
[[nodiscard]] SealedFile read_part(const CheckpointFolder& folder, const CheckpointJob& job,
                                   std::uint64_t step, const std::string& digest,
                                   const RankProgram& saving);

/// The manifest that makes a checkpoint complete.
struct CheckpointManifest {
  std::uint64_t step = 0;
  std::vector<std::string> digests; ///< of the ranks' parts
};
void write_manifest(const CheckpointFolder& folder, const CheckpointJob& job,
                    const CheckpointManifest& manifest);
/// Throws Error{input}: as read_sealed(); or, `foreign` then set, that it is of another plan or for
/// another number of ranks.
[[nodiscard]] CheckpointManifest read_manifest(const CheckpointFolder& folder,
                                               const CheckpointJob& job, std::uint64_t step,
                                               bool& foreign);

} // namespace reckon
