// SPDX-License-Identifier: Apache-2.0
#include "run/folder_lock.hpp"

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/secrets.hpp"
#include "launch/peer_error.hpp"
#include "launch/peer_fields.hpp"
#include "launch/sockets.hpp"
#include "run/checkpoint_files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>
#include <unistd.h>

namespace reckon {
namespace {

constexpr std::int64_t k_patience_ns = 2'000'000'000;
constexpr std::chrono::milliseconds k_between_tries(20);

enum class Taken : std::uint8_t { yes, by_another, no_locks_here };

/// `how`: LOCK_EX or LOCK_SH.
Taken try_lock(const Fd& file, int how) {
  while (::flock(file.get(), how | LOCK_NB) != 0) {
    if (errno != EINTR) {
      return errno == EWOULDBLOCK ? Taken::by_another : Taken::no_locks_here;
    }
  }
  return Taken::yes;
}

Json holder_in(const std::string& text) {
  const Json holder = Json::parse(text, nullptr, false);
  return holder.is_object() ? holder : Json::object();
}

Json holder_at(const std::string& path) {
  return holder_in(read_if_readable(path).value_or(""));
}

/// What is in the file at this moment, up to more than a lock has: another rank of this job may
/// just write its name into it, so it is read once.
std::string text_of(const Fd& file) {
  std::string text(4096, '\0');
  const ssize_t length = ::pread(file.get(), text.data(), text.size(), 0);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(length, 0)));
  return text;
}

/// The lock file, made where it is missing. Throws Error{input} for anything else of that name: it
/// is written to, so no one's file may be lost, none that a link leads to, and none of a user who
/// is neither this one nor the folder's owner, and could hold the lock for ever.
Fd open_lock(const std::string& path) {
  Fd file(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0600));
  const int why = errno;
  struct stat state {};
  struct stat folder {};
  if (!file && why != ELOOP && !(why == EACCES && ::lstat(path.c_str(), &state) == 0)) {
    fail_errno(fmt::format("cannot open {}", path), why);
  }
  if (file && ::fstat(file.get(), &state) == 0 && S_ISREG(state.st_mode) && state.st_nlink == 1 &&
      ::stat(path.substr(0, path.rfind('/')).c_str(), &folder) == 0) {
    const bool ours = state.st_uid == ::geteuid() || state.st_uid == folder.st_uid;
    const std::string text = text_of(file);
    if (ours && (text.empty() || holder_in(text).contains("job"))) {
      return file;
    }
  }
  fail(ErrorKind::input, fmt::format("{} is not a lock of reckon's checkpoints or is another "
                                     "user's, and would be overwritten; move it away, or name "
                                     "another folder",
                                     path));
}

/// Tries until `done` says so or the patience is over; whether it was done.
template <class F>
bool within_patience(F done) {
  const std::int64_t until = monotonic_ns() + k_patience_ns;
  while (!done()) {
    if (monotonic_ns() > until) {
      return false;
    }
    std::this_thread::sleep_for(k_between_tries);
  }
  return true;
}

/// Who holds the lock, for the others to read. They open the file anew: between the machines of a
/// network file system that is when they see what was written.
void write_holder(const Fd& file, const std::string& path, const Rendezvous& rendezvous,
                  const std::string& job) {
  const std::string text = compact({{"job", job},
                                    {"host", host_name()},
                                    {"process", ::getpid()},
                                    {"rank", rendezvous.rank()}}) +
                           "\n";
  if (::ftruncate(file.get(), 0) != 0 ||
      ::pwrite(file.get(), text.data(), text.size(), 0) != static_cast<ssize_t>(text.size()) ||
      ::fsync(file.get()) != 0) {
    fail_errno(fmt::format("cannot write {}", path), errno);
  }
}

std::string refusal(const std::string& folder, const Json& holder) {
  const Json host = holder.value("host", Json()), process = holder.value("process", Json());
  const std::string who =
      host.is_string() && process.is_number_unsigned()
          ? fmt::format("another run (process {} on {})", process.get<std::uint64_t>(),
                        one_line(host.get<std::string>()))
          : "another run";
  return fmt::format(
      "{}: {} writes its checkpoints there; wait for its end, or name another folder", folder, who);
}

/// What a rank met; empty texts: nothing.
struct Trouble {
  std::string refused, failed, no_locks;
  [[nodiscard]] PeerFields fields() {
    return {{"refused", &refused}, {"failed", &failed}, {"no_locks", &no_locks}};
  }
};

/// All ranks': throws the first, warns of what does not keep the job from going on. Where one rank
/// fails, others may be refused only because of that.
void agree(Rendezvous& rendezvous, const Trouble& mine, Seconds limit) {
  const std::vector<Trouble> all = gather(rendezvous, mine, limit);
  bool warned = rendezvous.rank() != 0;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (!all[rank].failed.empty()) {
      throw PeerError(fmt::format("rank {}: {}", rank, all[rank].failed)); // all know whose it is
    }
  }
  for (const Trouble& theirs : all) {
    if (!theirs.refused.empty()) {
      fail(ErrorKind::input, theirs.refused);
    }
    if (!theirs.no_locks.empty() && !warned) {
      log(LogLevel::warn, "{}; nothing keeps another run from writing there", theirs.no_locks);
      warned = true;
    }
  }
}

} // namespace

FolderLock::FolderLock(Rendezvous& rendezvous, const std::string& folder, Seconds limit) {
  // Random: no two jobs are the same one, also those of one plan.
  const std::string job =
      rendezvous.broadcast(rendezvous.rank() == 0 ? secret_text() : std::string(), limit);
  const std::string path = folder + "/lock";
  Trouble trouble;
  Taken taken = Taken::by_another;
  const auto ours = [&] { return holder_at(path).value("job", Json()) == job; };
  try {
    CheckpointFolder(folder).create();
    m_file = open_lock(path);
    const bool found = within_patience([&] {
      taken = try_lock(m_file, LOCK_EX);
      return taken != Taken::by_another || ours();
    });
    if (taken == Taken::yes) {
      write_holder(m_file, path, rendezvous, job);
    } else if (taken == Taken::no_locks_here) {
      trouble.no_locks = fmt::format("cannot lock {}: {}", path, std::strerror(errno));
    } else if (!found) {
      trouble.refused = refusal(folder, holder_at(path));
    }
  } catch (const Error& e) {
    (e.kind() == ErrorKind::input ? trouble.refused : trouble.failed) = e.what();
  }
  agree(rendezvous, trouble, limit);

  // From one rank's lock to all ranks': it lasts until the last of them that may write is gone.
  // In between another job may come first; then that one goes on and this does not.
  trouble = {};
  if (taken != Taken::no_locks_here &&
      !within_patience([&] { return try_lock(m_file, LOCK_SH) == Taken::yes; })) {
    trouble.refused = refusal(folder, holder_at(path));
  }
  agree(rendezvous, trouble, limit);
}

} // namespace reckon
