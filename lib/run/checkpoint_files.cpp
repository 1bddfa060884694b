// SPDX-License-Identifier: Apache-2.0
#include "run/checkpoint_files.hpp"

#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/version.hpp"
#include "core/whole_number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <system_error>

namespace reckon {
namespace {

constexpr const char* k_part_schema = "reckon/checkpoint-part";
constexpr const char* k_manifest_schema = "reckon/checkpoint";

std::string_view chars(std::span<const std::byte> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

[[noreturn]] void refuse(const std::string& file, const std::string& why) {
  fail(ErrorKind::input, fmt::format("{}: {}", file, why));
}

Json header_of(const char* schema, const CheckpointJob& job, std::uint64_t step) {
  return {{"schema", schema}, {"schema_version", 1}, {"tool", k_version},
          {"plan", job.plan}, {"ranks", job.ranks},  {"step", step}};
}

/// The layout: [array, gradient_offset, bytes] of each stretch.
Json layout_of(const RankProgram& saving) {
  Json layout = Json::array();
  for (const SavedRun& run : saving.saved) {
    layout.push_back({run.kept.array, run.kept.gradient_offset, run.kept.bytes});
  }
  return layout;
}

std::string text_in(const Json& header, const char* key) {
  const auto it = header.find(key);
  return it != header.end() && it->is_string() ? it->get<std::string>() : std::string();
}

/// The schema, its version and the step are what the file's name says.
void check_header(const std::string& path, const Json& header, const char* schema,
                  std::uint64_t step) {
  if (header.value("schema", Json()) != schema || header.value("schema_version", Json()) != 1) {
    refuse(path, fmt::format("is no {} of version 1", schema));
  }
  if (header.value("step", Json()) != step) {
    refuse(path, "was made after another step than its name says");
  }
}

/// 12 of "step-00000012" + end; nothing of another name.
std::optional<std::uint64_t> step_in(std::string_view name, std::string_view end) {
  constexpr std::string_view k_begin = "step-";
  if (name.size() < k_begin.size() + end.size() || !name.starts_with(k_begin) ||
      !name.ends_with(end)) {
    return std::nullopt;
  }
  name.remove_prefix(k_begin.size());
  name.remove_suffix(end.size());
  return whole_number<std::uint64_t>(name);
}

std::string part_end(int rank) {
  return fmt::format(".rank-{:04}.bin", rank);
}
constexpr const char* k_manifest_end = ".complete";

} // namespace

std::uint64_t saved_bytes(const RankProgram& saving) {
  std::uint64_t bytes = 0;
  for (const SavedRun& run : saving.saved) {
    bytes += run.kept.bytes;
  }
  return bytes;
}

std::vector<KeptRun> copies_of(const RankProgram& saving) {
  std::vector<KeptRun> copies;
  for (const SavedRun& run : saving.saved) {
    copies.push_back(run.kept);
    copies.back().at = run.copy;
  }
  return copies;
}

std::string write_sealed(const std::string& path, Json header,
                         std::span<const std::span<const std::byte>> data) {
  std::uint64_t bytes = 0;
  for (const std::span<const std::byte> piece : data) {
    bytes += piece.size();
  }
  header["bytes"] = bytes;
  const std::string line = header.dump() + "\n";
  std::vector<std::string_view> pieces{line};
  for (const std::span<const std::byte> piece : data) {
    pieces.push_back(chars(piece));
  }
  Digester digester;
  for (const std::string_view piece : pieces) {
    digester.add(piece);
  }
  const std::string digest = digester.finish();
  const std::string seal = digest + "\n";
  pieces.emplace_back(seal);
  write_file(path, pieces, Readers::owner);
  return digest;
}

SealedFile read_sealed(const std::string& path) {
  SealedFile file;
  file.content = read_file(path);
  const std::string_view all = file.content;
  const std::size_t line = all.find('\n');
  if (line == std::string_view::npos) {
    refuse(path, fmt::format("is torn: it has {} bytes and no header", all.size()));
  }
  try {
    file.header = parse_json(all.substr(0, line), path); // with a limit of depth
  } catch (const Error&) {                               // stays null
  }
  if (!file.header.is_object() || !file.header.contains("bytes") ||
      !file.header["bytes"].is_number_unsigned()) {
    refuse(path, "is corrupted: its first line is no header");
  }
  const std::uint64_t announced = file.header["bytes"].get<std::uint64_t>();
  const std::uint64_t rest = all.size() - (line + 1);
  if (rest < k_seal_bytes || rest - k_seal_bytes != announced) {
    refuse(path, fmt::format("is torn: {} bytes follow its header instead of {}", rest,
                             announced + k_seal_bytes));
  }
  const std::string_view seal = all.substr(all.size() - k_seal_bytes);
  file.digest = digest_of(all.substr(0, all.size() - k_seal_bytes));
  if (seal != file.digest + "\n") {
    refuse(path, "is corrupted: its bytes do not have the digest that it ends with");
  }
  file.data = all.substr(line + 1, announced);
  return file;
}

bool CheckpointFolder::exists() const {
  std::error_code error;
  return std::filesystem::is_directory(m_path, error);
}

void CheckpointFolder::create() const {
  std::error_code error;
  std::filesystem::create_directories(m_path, error);
  if (error) {
    fail_errno(fmt::format("cannot make the folder {}", m_path), error.value());
  }
}

std::string CheckpointFolder::part(std::uint64_t step, int rank) const {
  return fmt::format("{}/step-{:08}{}", m_path, step, part_end(rank));
}

std::string CheckpointFolder::manifest(std::uint64_t step) const {
  return fmt::format("{}/step-{:08}{}", m_path, step, k_manifest_end);
}

std::vector<std::uint64_t> CheckpointFolder::steps_with(const std::string& end) const {
  std::vector<std::uint64_t> steps;
  for (const std::string& name : names_in(m_path)) {
    if (const auto step = step_in(name, end)) {
      steps.push_back(*step);
    }
  }
  std::sort(steps.begin(), steps.end());
  return steps;
}

std::vector<std::uint64_t> CheckpointFolder::complete_steps() const {
  return steps_with(k_manifest_end);
}

std::vector<std::uint64_t> CheckpointFolder::steps_of(int rank) const {
  return steps_with(part_end(rank));
}

void CheckpointFolder::remove_leftovers(int rank) const {
  for (const std::string& name : names_in(m_path)) {
    const bool ours =
        name.find(part_end(rank) + ".") != std::string::npos ||
        (rank == 0 && name.find(std::string(k_manifest_end) + ".") != std::string::npos);
    if (name.starts_with("step-") && name.ends_with(".tmp") && ours) {
      std::error_code ignored;
      std::filesystem::remove(m_path + "/" + name, ignored);
    }
  }
}

std::string write_part(const CheckpointFolder& folder, const CheckpointJob& job, std::uint64_t step,
                       Optimizer optimizer, const RankProgram& saving, Views views) {
  Json header = header_of(k_part_schema, job, step);
  header["rank"] = job.rank;
  header["optimizer"] = name_of(optimizer);
  header["layout"] = layout_of(saving);
  std::vector<std::span<const std::byte>> data;
  for (const SavedRun& run : saving.saved) {
    data.emplace_back(views[run.copy.buffer].subspan(run.copy.offset, run.kept.bytes));
  }
  std::string digest = write_sealed(folder.part(step, job.rank), std::move(header), data);
  sync_folder(folder.path());
  return digest;
}

SealedFile read_part(const CheckpointFolder& folder, const CheckpointJob& job, std::uint64_t step,
                     const std::string& digest, const RankProgram& saving) {
  const std::string path = folder.part(step, job.rank);
  SealedFile file = read_sealed(path);
  check_header(path, file.header, k_part_schema, step);
  if (file.digest != digest) {
    refuse(path, fmt::format("has the digest {}, and the checkpoint was made of {}", file.digest,
                             digest));
  }
  if (file.header.value("rank", Json()) != job.rank ||
      file.header.value("layout", Json()) != layout_of(saving) ||
      file.data.size() != saved_bytes(saving)) {
    refuse(path, fmt::format("has another layout than this plan's rank {}; reckon {} wrote it",
                             job.rank, one_line(text_in(file.header, "tool"))));
  }
  return file;
}

void write_manifest(const CheckpointFolder& folder, const CheckpointJob& job,
                    const CheckpointManifest& manifest) {
  Json header = header_of(k_manifest_schema, job, manifest.step);
  header["parts"] = manifest.digests;
  write_sealed(folder.manifest(manifest.step), std::move(header), {});
  sync_folder(folder.path());
}

CheckpointManifest read_manifest(const CheckpointFolder& folder, const CheckpointJob& job,
                                 std::uint64_t step, bool& foreign) {
  foreign = false;
  const std::string path = folder.manifest(step);
  const SealedFile file = read_sealed(path);
  check_header(path, file.header, k_manifest_schema, step);
  foreign = true;
  if (const Json ranks = file.header.value("ranks", Json()); ranks != job.ranks) {
    refuse(path, fmt::format("is a checkpoint of {} ranks, and this plan has {}; resume with the "
                             "plan that it was made with",
                             ranks.dump(), job.ranks));
  }
  if (const std::string plan = text_in(file.header, "plan"); plan != job.plan) {
    refuse(path,
           fmt::format("is a checkpoint of plan {}, and this is plan {}; resume with the plan "
                       "that it was made with",
                       one_line(plan), job.plan));
  }
  foreign = false;
  CheckpointManifest manifest{step, {}};
  for (const Json& digest : file.header.value("parts", Json())) {
    manifest.digests.push_back(digest.is_string() ? digest.get<std::string>() : "");
  }
  if (manifest.digests.size() != static_cast<std::size_t>(job.ranks)) {
    refuse(path, "is corrupted: it does not name a part for each rank");
  }
  return manifest;
}

} // namespace reckon
