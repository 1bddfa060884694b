// SPDX-License-Identifier: Apache-2.0
#include "run/checkpoints.hpp"

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/threads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <sys/resource.h>
#include <system_error>
#include <unistd.h>
#include <utility>

namespace reckon {
namespace {

/// Where the lanes need all processors, they come first; but a tenth of a full one is left for what
/// would otherwise never be on disk. Linux counts this for the thread alone.
void be_nice() {
  constexpr int k_nice = 10;
  static_cast<void>(::setpriority(PRIO_PROCESS, static_cast<id_t>(::gettid()), k_nice));
}

void remove_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::remove(path, error) && error) {
    log(LogLevel::warn, "cannot remove {}: {}", path, error.message());
  }
}

/// Removes a rank's part of each checkpoint whose step is `unwanted`, rank 0 also what says that it
/// is complete.
template <class F>
void remove_steps(const CheckpointFolder& folder, int rank, F unwanted) {
  for (const std::uint64_t step : folder.complete_steps()) {
    if (rank == 0 && unwanted(step)) {
      remove_file(folder.manifest(step));
    }
  }
  for (const std::uint64_t step : folder.steps_of(rank)) {
    if (unwanted(step)) {
      remove_file(folder.part(step, rank));
    }
  }
}

/// What `work` throws; empty when it does not.
template <class F>
std::string error_of(F work) {
  try {
    work();
    return "";
  } catch (const std::exception& e) {
    return e.what();
  }
}

} // namespace

PeerFields CheckpointState::fields() {
  return {{"busy", &busy},
          {"bytes", &bytes},
          {"digest", &digest},
          {"error", &error},
          {"seconds", &seconds},
          {"manifest", &manifest},
          {"manifest_error", &manifest_error}};
}

Checkpoints::Checkpoints(CheckpointFolder folder, CheckpointJob job, std::uint64_t every,
                         Optimizer optimizer, const RankProgram& saving, Views views,
                         std::vector<std::uint64_t> keep)
    : m_folder(std::move(folder)), m_job(std::move(job)), m_every(every),
      m_first(keep.empty() ? 0 : keep.back()), m_optimizer(optimizer), m_saving(saving),
      m_views(views), m_complete(std::move(keep)) {
  m_folder.create();
  m_folder.remove_leftovers(m_job.rank);
  m_told.bytes = saved_bytes(saving);
  remove_steps(m_folder, m_job.rank, [&](std::uint64_t step) {
    return std::find(m_complete.begin(), m_complete.end(), step) == m_complete.end();
  });
  m_thread = start_thread("checkpoints", [this](const std::stop_token& stop) { work(stop); });
}

Checkpoints::~Checkpoints() = default;

void Checkpoints::work(const std::stop_token& stop) {
  be_nice();
  for (;;) {
    std::function<void()> task;
    {
      std::unique_lock lock(m_mutex);
      m_busy = false;
      m_change.notify_all();
      if (!m_change.wait(lock, stop, [&] { return !m_tasks.empty(); }) || stop.stop_requested()) {
        return;
      }
      task = std::move(m_tasks.front());
      m_tasks.pop_front();
      m_busy = true;
    }
    task();
  }
}

void Checkpoints::give(std::function<void()> task) {
  {
    const std::lock_guard lock(m_mutex);
    m_tasks.push_back(std::move(task));
  }
  m_change.notify_all();
}

bool Checkpoints::idle() const {
  const std::lock_guard lock(m_mutex);
  return !m_busy && m_tasks.empty();
}

bool Checkpoints::idle_within(std::chrono::milliseconds limit) const {
  std::unique_lock lock(m_mutex);
  return m_change.wait_for(lock, limit, [&] { return !m_busy && m_tasks.empty(); });
}

CheckpointState Checkpoints::state() const {
  const std::lock_guard lock(m_mutex);
  CheckpointState state = m_told;
  state.busy = m_busy || !m_tasks.empty();
  return state;
}

bool Checkpoints::hear(std::span<const CheckpointState> states,
                       std::optional<std::uint64_t> steps) {
  m_counts.bytes = 0;
  m_somebody_writes = false;
  for (const CheckpointState& state : states) {
    m_counts.bytes += state.bytes;
    m_somebody_writes = m_somebody_writes || state.busy;
  }
  hear_of_manifest(states.front());
  if (m_pending && !m_somebody_writes) {
    hear_of_parts(states);
  }
  if (!steps || !due(*steps)) {
    return false;
  }
  if (m_somebody_writes) {
    ++m_counts.skipped;
    return false;
  }
  m_pending = steps;
  return true;
}

void Checkpoints::hear_of_manifest(const CheckpointState& root) {
  if (!m_declared || root.manifest != *m_declared) {
    return;
  }
  if (!root.manifest_error.empty()) {
    fail_one(*m_declared, root.manifest_error);
  } else {
    ++m_counts.complete;
    m_complete.push_back(*m_declared);
    if (m_complete.size() > 2) {
      m_complete.erase(m_complete.begin());
      give([this, oldest = m_complete.front()] {
        const std::string error = error_of([&] {
          remove_steps(m_folder, m_job.rank, [&](std::uint64_t step) { return step < oldest; });
        });
        if (!error.empty()) {
          log(LogLevel::warn, "old checkpoints stay: {}", error);
        }
      });
    }
  }
  m_declared.reset();
}

void Checkpoints::hear_of_parts(std::span<const CheckpointState> states) {
  CheckpointManifest manifest{*m_pending, {}};
  double seconds = 0;
  std::string trouble;
  for (std::size_t r = 0; r < states.size(); ++r) {
    manifest.digests.push_back(states[r].digest);
    seconds = std::max(seconds, states[r].seconds);
    if (trouble.empty() && !states[r].error.empty()) {
      trouble = fmt::format("rank {}: {}", r, states[r].error);
    }
  }
  if (!trouble.empty()) {
    fail_one(*m_pending, trouble);
  } else {
    m_declared = m_pending;
    m_counts.write_seconds.push_back(seconds);
    if (m_job.rank == 0) {
      give([this, manifest = std::move(manifest)] {
        const std::string error = error_of([&] { write_manifest(m_folder, m_job, manifest); });
        const std::lock_guard lock(m_mutex);
        m_told.manifest = manifest.step;
        m_told.manifest_error = error;
      });
    }
  }
  m_pending.reset();
}

void Checkpoints::fail_one(std::uint64_t step, const std::string& why) {
  ++m_counts.failed;
  const std::string what = fmt::format("checkpoint after step {}: {}", step, why);
  if (m_counts.first_failure.empty()) {
    m_counts.first_failure = what;
  }
  if (m_job.rank == 0) {
    log(LogLevel::warn, "{}; the run goes on", what);
  }
}

void Checkpoints::save(std::uint64_t steps, const std::string& wrong) {
  const auto tell = [this](const std::string& error, std::string digest, double seconds) {
    const std::lock_guard lock(m_mutex);
    m_told.error = error;
    m_told.digest = std::move(digest);
    m_told.seconds = seconds;
  };
  if (!wrong.empty()) {
    tell(wrong, "", 0);
    return;
  }
  give([this, steps, tell] {
    const std::int64_t begin = monotonic_ns();
    std::string digest;
    const std::string error = error_of(
        [&] { digest = write_part(m_folder, m_job, steps, m_optimizer, m_saving, m_views); });
    tell(error, std::move(digest), static_cast<double>(monotonic_ns() - begin) * 1e-9);
  });
}

} // namespace reckon
