// SPDX-License-Identifier: Apache-2.0
#include "launch/pmix.hpp"

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/interrupt.hpp"

#include <fmt/format.h>
#include <pmix.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <mutex>
#include <thread>

namespace reckon {
namespace {

constexpr const char* k_key = "reckon.rendezvous";

void check_pmix(pmix_status_t status, const std::string& attempt, const char* remedy = "") {
  if (status != PMIX_SUCCESS) {
    fail(ErrorKind::operation, fmt::format("{}: {}{}", attempt, PMIx_Error_string(status), remedy));
  }
}

/// An answer that may come after nobody waits for it any more: the library's callback and the
/// waiting thread both own it.
struct Answer {
  std::mutex mutex;
  std::condition_variable arrived;
  bool here = false;
  pmix_status_t status = PMIX_SUCCESS;
  std::string text;
};

extern "C" void on_answer(pmix_status_t status, pmix_value_t* value, void* data) {
  const std::unique_ptr<std::shared_ptr<Answer>> owner(static_cast<std::shared_ptr<Answer>*>(data));
  Answer& answer = **owner;
  {
    const std::lock_guard lock(answer.mutex);
    answer.here = true;
    answer.status = status;
    if (status == PMIX_SUCCESS && value != nullptr && value->type == PMIX_STRING) {
      answer.text = value->data.string;
    }
  }
  answer.arrived.notify_one();
}

class PmixSession final : public NoticeBoard {
public:
  PmixSession() {
    check_pmix(PMIx_Init(&m_self, nullptr, 0), "PMIx_Init",
               "; without its launcher, unset PMIX_NAMESPACE and PMIX_RANK");
  }
  ~PmixSession() override { PMIx_Finalize(nullptr, 0); }

  [[nodiscard]] int rank() const { return static_cast<int>(m_self.rank); }

  /// A number that the server knows of the whole job or of this rank; nothing when it does not.
  [[nodiscard]] std::optional<int> number(const char* key, pmix_rank_t rank) const {
    pmix_proc_t whom = m_self;
    whom.rank = rank;
    pmix_value_t* value = nullptr;
    if (PMIx_Get(&whom, key, nullptr, 0, &value) != PMIX_SUCCESS || value == nullptr) {
      return std::nullopt;
    }
    std::optional<int> result;
    if (value->type == PMIX_UINT32) {
      result = static_cast<int>(value->data.uint32);
    } else if (value->type == PMIX_UINT16) {
      result = static_cast<int>(value->data.uint16);
    }
    std::free(value);
    return result;
  }

  void publish(const std::string& text) override {
    std::string copy = text;
    pmix_value_t value{};
    value.type = PMIX_STRING;
    value.data.string = copy.data();
    check_pmix(PMIx_Put(PMIX_GLOBAL, k_key, &value), "PMIx_Put");
    check_pmix(PMIx_Commit(), "PMIx_Commit");
  }

  /// Asks until it is there instead of meeting in a PMIx_Fence: that waits for every rank and names
  /// none, here only rank 0 is waited for and the rendezvous then names who is missing.
  std::optional<std::string> look_up(Seconds limit) override {
    pmix_proc_t root = m_self;
    root.rank = 0;
    const std::int64_t deadline = deadline_after(limit);
    for (;;) {
      const auto answer = std::make_shared<Answer>();
      auto for_library = std::make_unique<std::shared_ptr<Answer>>(answer);
      check_pmix(PMIx_Get_nb(&root, k_key, nullptr, 0, &on_answer, for_library.get()),
                 "PMIx_Get_nb");
      static_cast<void>(for_library.release()); // on_answer's now
      std::unique_lock lock(answer->mutex);
      while (!answer->arrived.wait_for(lock, std::chrono::milliseconds(100),
                                       [&] { return answer->here; })) {
        if (interrupted()) {
          fail(ErrorKind::operation, "interrupted");
        }
        if (monotonic_ns() > deadline) {
          return std::nullopt;
        }
      }
      if (answer->status == PMIX_SUCCESS) {
        return answer->text;
      }
      // Servers answer after a time of their own that the key is not there.
      if (answer->status != PMIX_ERR_NOT_FOUND && answer->status != PMIX_ERR_TIMEOUT) {
        check_pmix(answer->status, "PMIx_Get_nb (rank 0's address)");
      }
      if (monotonic_ns() > deadline) {
        return std::nullopt;
      }
      lock.unlock();
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

private:
  pmix_proc_t m_self{};
};

} // namespace

JobEnvironment job_from_pmix() {
  const auto session = std::make_shared<PmixSession>();
  JobEnvironment job;
  job.rank = session->rank();
  const std::optional<int> size = session->number(PMIX_JOB_SIZE, PMIX_RANK_WILDCARD);
  if (!size || *size < 1 || job.rank < 0 || job.rank >= *size) {
    fail(ErrorKind::operation,
         fmt::format("PMIx_Get(PMIX_JOB_SIZE): rank {} gets no job size", job.rank));
  }
  job.size = *size;
  job.local_size =
      std::clamp(session->number(PMIX_LOCAL_SIZE, PMIX_RANK_WILDCARD).value_or(1), 1, job.size);
  job.local_rank =
      std::clamp(session->number(PMIX_LOCAL_RANK, static_cast<pmix_rank_t>(job.rank)).value_or(0),
                 0, job.local_size - 1);
  job.board = session;
  return job;
}

} // namespace reckon
