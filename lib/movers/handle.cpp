// SPDX-License-Identifier: Apache-2.0
#include "movers/handle.hpp"

#include "core/error.hpp"

#include <cerrno>
#include <cstdint>
#include <unistd.h>

namespace reckon {
namespace {

constexpr std::size_t k_large_page = std::size_t{2} << 20U;
/// MADV_COLLAPSE of Linux 6.1, which the C library's headers may lack.
constexpr int k_collapse = 25;

/// Address space for `bytes` that begins where a large page may; nullptr: there is none.
void* aligned_room(std::size_t bytes) {
  void* const room = ::mmap(nullptr, bytes + k_large_page, PROT_NONE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (room == MAP_FAILED) {
    return nullptr;
  }
  auto* const begin = static_cast<std::byte*>(room);
  const std::size_t before =
      (k_large_page - reinterpret_cast<std::uintptr_t>(room) % k_large_page) % k_large_page;
  if (before > 0) {
    ::munmap(begin, before);
  }
  const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const std::size_t end = before + (bytes + page - 1) / page * page;
  ::munmap(begin + end, bytes + k_large_page - end);
  return begin + before;
}

/// Memory that others share may be theirs already: it is read. A page of our own comes with the
/// first write.
void touch(std::span<std::byte> memory, std::size_t step, bool shared) {
  for (std::size_t at = 0; at < memory.size(); at += step) {
    volatile std::byte& byte = memory[at];
    if (shared) {
      const std::byte read = byte;
      static_cast<void>(read);
    } else {
      byte = std::byte{0};
    }
  }
}

/// Large pages are the system's to give: what it refuses comes in small ones. Memory that processes
/// share gets them only after the fact, on most systems, and wants a page to begin with.
void fault_in(std::span<std::byte> memory, bool shared, bool large) {
  if (shared && large) {
    touch(memory, k_large_page, shared);
  }
  if (large) {
    static_cast<void>(::madvise(memory.data(), memory.size(), shared ? k_collapse : MADV_HUGEPAGE));
  }
  touch(memory, static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)), shared);
}

} // namespace

Mapping::Mapping(int fd, std::size_t bytes, const std::string& what, bool populate,
                 std::size_t skew)
    : m_bytes(bytes), m_skew(skew) {
  if (bytes == 0) {
    return;
  }
  const std::size_t all = skew + bytes;
  const bool shared = fd >= 0;
  void* const room = populate && all >= k_large_page ? aligned_room(all) : nullptr;
  void* const address = ::mmap(room, all, PROT_READ | PROT_WRITE,
                               (shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS) |
                                   (room != nullptr ? MAP_FIXED : 0),
                               fd, 0);
  if (address == MAP_FAILED) {
    const int error = errno;
    if (room != nullptr) {
      ::munmap(room, all);
    }
    fail_errno("mmap(" + what + ")", error);
  }
  m_data = static_cast<std::byte*>(address) + skew;
  if (populate) {
    fault_in({static_cast<std::byte*>(address), all}, shared, room != nullptr);
  }
}

} // namespace reckon
