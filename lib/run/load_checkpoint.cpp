// SPDX-License-Identifier: Apache-2.0
#include "run/load_checkpoint.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "launch/peer_fields.hpp"
#include "launch/sockets.hpp"

#include <fmt/format.h>

#include <optional>
#include <string>

namespace reckon {
namespace {

/// Rank 0's proposal: a checkpoint to try, or why there is none.
struct Proposal {
  std::vector<std::uint64_t> steps; ///< Resumed::steps
  std::vector<std::string> digests; ///< of the ranks' parts
  std::string trouble;
  [[nodiscard]] PeerFields fields() {
    return {{"steps", &steps}, {"digests", &digests}, {"trouble", &trouble}};
  }
};

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
        Proposal proposal{{step}, read_manifest(m_folder, m_job, step, foreign).digests, ""};
        if (!m_steps.empty()) {
          proposal.steps.insert(proposal.steps.begin(), m_steps.back());
        }
        return proposal;
      } catch (const Error& e) {
        if (foreign) {
          return {{}, {}, e.what()};
        }
        pass_over(step, e.what());
      }
    }
    return {{},
            {},
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
    Proposal proposal = root ? candidates->next() : Proposal();
    const std::string text = rendezvous.broadcast(fields_to_text(proposal.fields()), limit);
    fields_from_text(proposal.fields(), text, "rank 0");
    if (!proposal.trouble.empty()) {
      fail(ErrorKind::input, proposal.trouble);
    }
    if (proposal.steps.empty() || proposal.digests.size() != static_cast<std::size_t>(job.ranks)) {
      throw PeerError("rank 0 proposed a checkpoint without its step or without a part of a rank");
    }
    Resumed resumed{proposal.steps, {}};
    const std::uint64_t step = resumed.steps.back();
    std::string trouble;
    try {
      resumed.part = read_part(folder, job, step,
                               proposal.digests[static_cast<std::size_t>(job.rank)], saving);
    } catch (const Error& e) {
      trouble = fmt::format("rank {} on {}: {}", job.rank, host_name(), e.what());
    }
    std::string first;
    for (const std::string& theirs : rendezvous.all_gather(trouble, limit)) {
      first = first.empty() ? theirs : first;
    }
    if (first.empty()) {
      return resumed;
    }
    if (root) {
      candidates->pass_over(step, first);
    }
  }
}

} // namespace reckon
