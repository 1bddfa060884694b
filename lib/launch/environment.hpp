// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/file.hpp"
#include "core/units.hpp"

#include <memory>
#include <optional>
#include <string>

namespace reckon {

/// The place where rank 0 leaves its address for ranks that do not know it: a launcher's key-value
/// service.
class NoticeBoard {
public:
  NoticeBoard() = default;
  NoticeBoard(const NoticeBoard&) = delete;
  NoticeBoard& operator=(const NoticeBoard&) = delete;
  virtual ~NoticeBoard() = default;

  /// Rank 0, once.
  virtual void publish(const std::string& text) = 0;
  /// Rank 0's text, after at most `limit`; absent: not published by then.
  [[nodiscard]] virtual std::optional<std::string> look_up(Seconds limit) = 0;
};

/// This process's place in a job.
struct JobEnvironment {
  int rank = 0, size = 1;
  /// Among the ranks of this machine; 0 of 1 when the launcher does not set it.
  int local_rank = 0, local_size = 1;
  std::string master_address; ///< name or address of rank 0's machine; may be empty with a board
  int master_port = 0;
  std::string token; ///< a rank without it is refused; may be empty
  /// Copies of an environment are one membership, which ends with the last of them. Null: every
  /// rank knows master_address and master_port.
  std::shared_ptr<NoticeBoard> board;
};

/// The job that a launcher has put this process into; absent when it was started alone.
///
/// RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT (torchrun, Kubernetes PyTorchJob, a shell loop over
/// ssh), LOCAL_RANK and LOCAL_WORLD_SIZE if set, each preceded by the same name with RECKON_ in
/// front, for use beside a framework that has taken the common names; RECKON_JOB_TOKEN; else PMIx
/// (mpirun, prterun, srun --mpi=pmix) where PMIX_NAMESPACE and PMIX_RANK are set: this connects to
/// its server, so ask once. Throws Error{usage} for contradictory variables, Error{unavailable}
/// when the launcher speaks a protocol that this build lacks.
[[nodiscard]] std::optional<JobEnvironment> job_from_environment();

/// Rank 0's socket on MASTER_ADDR and MASTER_PORT, and on no other address, with two exceptions,
/// both with a warning: MASTER_ADDR belongs to another machine (a service address in front of this
/// one), or it is this machine's loopback address though some ranks are elsewhere (a host name that
/// /etc/hosts maps to 127.0.1.1). Then it listens on all addresses.
[[nodiscard]] Fd listen_on_master_address(const JobEnvironment& job);

/// Rank 0 listens on an address that the others can reach and leaves address, port and a new token
/// on the board; the others read them there. Fills in `job`. The address is 127.0.0.1 when all
/// ranks are on this machine; else MASTER_ADDR if set; else the address of this host's name; else
/// that of the default route; else the first interface's. Rank 0 gets the socket. Throws PeerError
/// when rank 0 has left nothing within `limit`.
[[nodiscard]] Fd meet_at_board(JobEnvironment& job, Seconds limit);

} // namespace reckon
