// SPDX-License-Identifier: Apache-2.0
#include "launch/unshared_fd.hpp"

#include <algorithm>
#include <fcntl.h>
#include <mutex>
#include <pthread.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace reckon {
namespace {

/// All that are open. A fork waits until nobody changes it.
struct Unshared {
  std::mutex mutex;
  std::vector<int> fds;
};

void replace_in_child() noexcept;

/// Never destroyed: a process may fork while it ends.
Unshared& unshared() {
  static Unshared* const all = [] {
    ::pthread_atfork([] { unshared().mutex.lock(); }, [] { unshared().mutex.unlock(); },
                     [] { replace_in_child(); });
    return new Unshared;
  }();
  return *all;
}

/// Only what is allowed between fork and exec in a process of several threads.
void replace_in_child() noexcept {
  Unshared& all = unshared();
  const int nothing = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  for (const int fd : all.fds) {
    // Closed, the number could become another file's, which the owner here would then close.
    static_cast<void>(nothing >= 0 ? ::dup3(nothing, fd, O_CLOEXEC) : ::close(fd));
  }
  static_cast<void>(::close(nothing));
  all.mutex.unlock();
}

} // namespace

UnsharedFd::UnsharedFd(Fd fd) : m_fd(std::move(fd)) {
  if (m_fd) {
    Unshared& all = unshared();
    const std::lock_guard lock(all.mutex);
    all.fds.push_back(m_fd.get());
  }
}

UnsharedFd& UnsharedFd::operator=(UnsharedFd&& other) noexcept {
  reset();
  m_fd = std::move(other.m_fd);
  return *this;
}

void UnsharedFd::reset() noexcept {
  if (!m_fd) {
    return;
  }
  Unshared& all = unshared();
  const std::lock_guard lock(all.mutex); // closed within it: no fork sees the number as another's
  all.fds.erase(std::remove(all.fds.begin(), all.fds.end(), m_fd.get()), all.fds.end());
  m_fd = Fd();
}

} // namespace reckon
