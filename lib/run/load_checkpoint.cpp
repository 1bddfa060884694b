// SPDX-License-Identifier: Apache-2.0
#include "run/load_checkpoint.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "launch/sockets.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>

namespace reckon {
namespace {

/// Rank 0's proposal: a checkpoint to try, or why there is none.
struct Proposal {
  CheckpointManifest manifest;
  std::string trouble;
};

Json to_json(const Proposal& proposal) {
  return {{"step", proposal.manifest.step},
          {"digests", proposal.manifest.digests},
          {"trouble", proposal.trouble}};
}

Proposal proposal_from(const Json& json) {
  return {
      {json.at("step").get<std::uint64_t>(), json.at("digests").get<std::vector<std::string>>()},
      json.at("trouble").get<std::string>()};
}

/// The checkpoints of a folder from the newest on; rank 0's.
class Candidates {
public:
  Candidates(const CheckpointFolder& folder, const CheckpointJob& job)
      : m_folder(folder), m_job(job), m_steps(folder.complete_steps()) {}

  [[nodiscard]] Proposal next() {
    while (!m_steps.empty()) {
      const std::uint64_t step = m_steps.back();
      m_steps.pop_back();
      bool foreign = false;
      try {
        return {read_manifest(m_folder, m_job, step, foreign), ""};
      } catch (const Error& e) {
        if (foreign) {
          return {{}, e.what()};
        }
        pass_over(step, e.what());
      }
    }
    return {{},
            m_passed == 0
                ? fmt::format("{}: there is no {}", m_folder.path(),
                              m_folder.exists() ? "complete checkpoint in it" : "such folder")
                : fmt::format("{}: none of its {} checkpoints is intact; the newest: {}",
                              m_folder.path(), m_passed, m_first_trouble)};
  }
  void pass_over(std::uint64_t step, const std::string& why) {
    log(LogLevel::warn, "the checkpoint after step {} is not used: {}", step, why);
    m_first_trouble = m_passed++ == 0 ? why : m_first_trouble;
  }
  /// Of the one before the last that next() gave.
  [[nodiscard]] std::optional<std::uint64_t> before() const {
    return m_steps.empty() ? std::nullopt : std::optional(m_steps.back());
  }

private:
  const CheckpointFolder& m_folder;
  const CheckpointJob& m_job;
  std::vector<std::uint64_t> m_steps; ///< not proposed yet, in ascending order
  std::size_t m_passed = 0;
  std::string m_first_trouble;
};

} // namespace

Resumed load_checkpoint(Rendezvous& rendezvous, const CheckpointFolder& folder,
                        const CheckpointJob& job, const RankProgram& saving, Seconds limit) {
  const bool root = rendezvous.rank() == 0;
  std::optional<Candidates> candidates;
  if (root) {
    candidates.emplace(folder, job);
  }
  for (;;) {
    const Proposal proposal = proposal_from(Json::parse(
        rendezvous.broadcast(root ? to_json(candidates->next()).dump() : std::string(), limit)));
    if (!proposal.trouble.empty()) {
      fail(ErrorKind::input, proposal.trouble);
    }
    Resumed resumed;
    std::string trouble;
    try {
      resumed.part =
          read_part(folder, job, proposal.manifest.step,
                    proposal.manifest.digests[static_cast<std::size_t>(job.rank)], saving);
    } catch (const Error& e) {
      trouble = fmt::format("rank {} on {}: {}", job.rank, host_name(), e.what());
    }
    std::string first;
    for (const std::string& theirs : rendezvous.all_gather(trouble, limit)) {
      first = first.empty() ? theirs : first;
    }
    if (!first.empty()) {
      if (root) {
        candidates->pass_over(proposal.manifest.step, first);
      }
      continue;
    }
    const std::string before = rendezvous.broadcast(
        root && candidates->before() ? std::to_string(*candidates->before()) : std::string(),
        limit);
    if (!before.empty()) {
      resumed.steps.push_back(std::stoull(before));
    }
    resumed.steps.push_back(proposal.manifest.step);
    return resumed;
  }
}

} // namespace reckon
