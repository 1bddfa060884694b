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
/// What a rank saves, where the iteration that saves copied it to.
[[nodiscard]] std::vector<KeptRun> copies_of(const RankProgram& saving);

/// Of which job a checkpoint is. Another plan's cannot be gone on with.
struct CheckpointJob {
  std::string plan; ///< digest of its canonical text
  int rank = 0, ranks = 0;
};

/// A file that shows by itself whether it is whole: one line of JSON, the data that it announces,
/// then the digest of all that in a line of its own. What it replaces is there until all of it is
/// on disk (write_file()).
struct SealedFile {
  Json header;
  std::string content;   ///< of the whole file
  std::string_view data; ///< in it
  std::string digest;    ///< what the last line says, and is so
};
inline constexpr std::size_t k_seal_bytes = 72; ///< of the last line: "sha256:", 64 digits, '\n'

/// Returns the digest. Throws Error{operation} naming the file.
std::string write_sealed(const std::string& path, Json header,
                         std::span<const std::span<const std::byte>> data);
/// Throws Error{input} that names the file and says what is wrong with it: it is not there, its end
/// is missing, or bytes of it have changed.
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
  /// Steps that a manifest is there for, in ascending order; none when there is no folder.
  [[nodiscard]] std::vector<std::uint64_t> complete_steps() const;
  /// Steps that a part of that rank is there for, in ascending order.
  [[nodiscard]] std::vector<std::uint64_t> steps_of(int rank) const;
  /// Removes what processes that were killed may have left: temporary files of that rank's parts,
  /// and of manifests if it is rank 0.
  void remove_leftovers(int rank) const;

private:
  [[nodiscard]] std::vector<std::uint64_t> steps_with(const std::string& end) const;
  std::string m_path;
};

/// Writes one rank's part of the checkpoint after `step` steps: the bytes at SavedRun::copy in
/// `views`, in that order. Returns its digest.
std::string write_part(const CheckpointFolder& folder, const CheckpointJob& job, std::uint64_t step,
                       Optimizer optimizer, const RankProgram& saving, Views views);
/// Reads it, and checks that it is the one with that digest and has that layout. Throws
/// Error{input}.
[[nodiscard]] SealedFile read_part(const CheckpointFolder& folder, const CheckpointJob& job,
                                   std::uint64_t step, const std::string& digest,
                                   const RankProgram& saving);

/// What says that a checkpoint is complete.
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
