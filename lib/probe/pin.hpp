// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace reckon {

/// Binds the calling thread to one processor and checks that it runs there. Throws Error{operation}
/// (for example for a processor outside our cpuset).
void bind_to_cpu(int cpu);

/// The actual places of a buffer's pages.
struct Placement {
  std::size_t pages_checked = 0;   ///< 0: the kernel did not answer
  std::size_t pages_elsewhere = 0; ///< on another NUMA node than requested
  double huge = 0;                 ///< fraction of the buffer in transparent huge pages
  /// The difference from the request: "12 of 512 pages are on another node". Empty: no difference.
  std::string doubt;
};

/// Anonymous memory on one NUMA node, all of it faulted in, in huge pages where the kernel gives
/// them. Move-only owner; the address is aligned to 2 MiB when `huge`.
class NodeMemory {
public:
  enum class Pages { huge, small };

  NodeMemory() = default;
  /// `os_node` is the operating system's number; nullopt: wherever the touching thread is. The
  /// calling thread touches every page (with zeros). Where binding memory is forbidden (a
  /// container's seccomp filter), first touch decides: call from a thread bound to the node. Throws
  /// Error{operation} when memory is short.
  NodeMemory(std::uint64_t bytes, std::optional<int> os_node, Pages pages = Pages::huge);
  NodeMemory(NodeMemory&& other) noexcept;
  NodeMemory& operator=(NodeMemory&& other) noexcept;
  NodeMemory(const NodeMemory&) = delete;
  NodeMemory& operator=(const NodeMemory&) = delete;
  ~NodeMemory();

  [[nodiscard]] std::span<std::byte> bytes() const { return {m_data, m_bytes}; }
  /// Asks the kernel; up to 4096 pages spread over the buffer.
  [[nodiscard]] Placement placement() const;

private:
  void* m_mapping = nullptr;
  std::size_t m_mapped = 0;
  std::byte* m_data = nullptr;
  std::size_t m_bytes = 0;
  std::optional<int> m_node;
};

/// As long as it lives, this thread, and the threads and processes that it starts, have precedence
/// over others, where the system allows it, so that other work disturbs measurements less.
class Precedence {
public:
  Precedence();
  ~Precedence();
  Precedence(const Precedence&) = delete;
  Precedence& operator=(const Precedence&) = delete;
  [[nodiscard]] bool granted() const { return m_granted; }

private:
  int m_before;
  bool m_granted;
};

} // namespace reckon
