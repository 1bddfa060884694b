// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/file.hpp"

namespace reckon {

/// Move-only owner of a descriptor that children of fork() do not share: there its number is that
/// of /dev/null. Close-on-exec alone leaves it open in a child that continues without exec, and
/// then the other end of a connection does not learn that this process has ended while the child
/// lives.
class UnsharedFd {
public:
  UnsharedFd() = default;
  explicit UnsharedFd(Fd fd);
  UnsharedFd(UnsharedFd&& other) noexcept = default;
  UnsharedFd& operator=(UnsharedFd&& other) noexcept;
  UnsharedFd(const UnsharedFd&) = delete;
  UnsharedFd& operator=(const UnsharedFd&) = delete;
  ~UnsharedFd() { reset(); }

  [[nodiscard]] int get() const noexcept { return m_fd.get(); }
  [[nodiscard]] explicit operator bool() const noexcept { return static_cast<bool>(m_fd); }
  void reset() noexcept; ///< closes it

private:
  Fd m_fd;
};

} // namespace reckon
