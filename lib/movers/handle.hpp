// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/error.hpp"

#include <cerrno>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <sys/mman.h>
#include <utility>

namespace reckon {

/// Calls the C function that frees a handle. Its status is dropped: a destructor cannot act on it.
template <auto Fn>
struct Deleter {
  template <class T>
  void operator()(T* handle) const noexcept {
    static_cast<void>(Fn(handle));
  }
};

/// Move-only owner of a C handle. Declare members in the order of their creation: they close in
/// reverse.
template <class T, auto Fn>
using UniqueHandle = std::unique_ptr<T, Deleter<Fn>>;

/// Move-only owner of a memory mapping: page-aligned and faulted in, in large pages where the
/// system has them. Zero bytes map nothing.
class Mapping {
public:
  Mapping() = default;
  /// Maps all of `fd` from its start, shared; fd -1 is private memory of our own, zeroed.
  /// `populate` false leaves the pages, which are small then, to the first touch. bytes() begins
  /// `skew` bytes into the first page, for which `fd` has to have room. Throws Error{operation}
  /// with `what`.
  Mapping(int fd, std::size_t bytes, const std::string& what, bool populate = true,
          std::size_t skew = 0);
  Mapping(Mapping&& other) noexcept
      : m_data(std::exchange(other.m_data, nullptr)), m_bytes(std::exchange(other.m_bytes, 0)),
        m_skew(other.m_skew) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(m_data, other.m_data);
    std::swap(m_bytes, other.m_bytes);
    std::swap(m_skew, other.m_skew);
    return *this;
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (m_data != nullptr) {
      ::munmap(m_data - m_skew, m_skew + m_bytes);
    }
  }
  [[nodiscard]] std::span<std::byte> bytes() const noexcept { return {m_data, m_bytes}; }

private:
  std::byte* m_data = nullptr;
  std::size_t m_bytes = 0, m_skew = 0;
};

/// True when [offset, offset + bytes) lies inside a buffer of `size` bytes; overflow counts as
/// outside.
[[nodiscard]] constexpr bool fits(std::uint64_t offset, std::uint64_t bytes,
                                  std::uint64_t size) noexcept {
  return offset <= size && bytes <= size - offset;
}

} // namespace reckon
