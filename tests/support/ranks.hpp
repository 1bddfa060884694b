// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <sys/types.h>
#include <vector>

namespace reckon::support {

/// One rank of run_ranks(), inside its own process.
class RankProcess {
public:
  RankProcess(int rank, int ranks, int socket) : m_rank(rank), m_ranks(ranks), m_socket(socket) {}
  [[nodiscard]] int rank() const { return m_rank; }
  [[nodiscard]] int ranks() const { return m_ranks; }
  /// Every rank's text in rank order, once every rank that is still alive has called. A dead rank's
  /// is empty.
  [[nodiscard]] std::vector<std::string> exchange(const std::string& mine) const;
  /// All are here.
  void barrier() const { static_cast<void>(exchange("")); }

private:
  int m_rank, m_ranks, m_socket;
};

/// Runs `body` in `ranks` forked processes and fails the current test unless each ends as expected:
/// a rank ends well when its body returns without an exception and without a failed gtest
/// assertion; one in `expect_killed` must die by SIGKILL. After `deadline` whatever still runs is
/// killed and the test fails, so that nothing can hang.
void run_ranks(int ranks, std::chrono::seconds deadline,
               const std::function<void(RankProcess&)>& body,
               const std::vector<int>& expect_killed = {});

/// The processes of all ranks that this one ever started.
[[nodiscard]] const std::vector<pid_t>& started_ranks();

} // namespace reckon::support
