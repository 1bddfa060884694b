// SPDX-License-Identifier: Apache-2.0
#include "probe/pin.hpp"

#include "core/error.hpp"
#include "core/processors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <linux/mempolicy.h>
#include <sched.h>
#include <sstream>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace reckon {
namespace {

constexpr std::size_t k_huge_page = std::size_t{2} << 20U;

std::size_t page_size() {
  return static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

constexpr std::size_t round_up(std::size_t n, std::size_t unit) {
  return (n + unit - 1) / unit * unit;
}

/// The system call itself: its library wrapper would be libnuma's.
long bind_memory(void* address, std::size_t bytes, int node) {
  constexpr std::size_t k_bits = 8 * sizeof(unsigned long);
  std::array<unsigned long, 16> mask{}; // 1024 nodes, the kernel's most
  const auto n = static_cast<std::size_t>(node);
  if (n >= k_bits * mask.size()) {
    errno = EINVAL;
    return -1;
  }
  mask[n / k_bits] = 1UL << (n % k_bits);
  return syscall(SYS_mbind, address, bytes, MPOL_BIND, mask.data(), k_bits * mask.size() + 1, 0);
}

/// Fraction of [data, data + bytes) that smaps says is in transparent huge pages.
double huge_fraction(const std::byte* data, std::size_t bytes) {
  std::ifstream smaps("/proc/self/smaps");
  const auto begin = reinterpret_cast<std::uintptr_t>(data);
  bool inside = false;
  double huge = 0;
  for (std::string line; std::getline(smaps, line);) {
    std::uintptr_t from = 0;
    std::uintptr_t to = 0;
    const char* const end = line.data() + line.size();
    const auto [dash, error] = std::from_chars(line.data(), end, from, 16);
    if (error == std::errc{} && dash != end && *dash == '-') { // a mapping begins
      std::from_chars(dash + 1, end, to, 16);
      inside = from < begin + bytes && begin < to;
    } else if (inside && line.starts_with("AnonHugePages:")) {
      double kib = 0; // "AnonHugePages:      2048 kB"
      std::from_chars(line.data() + std::min(line.find_first_of("0123456789"), line.size()), end,
                      kib);
      huge += kib * 1024;
    }
  }
  return std::min(1.0, huge / static_cast<double>(bytes));
}

} // namespace

void bind_to_cpu(int cpu) {
  if (!bind_this_thread(cpu)) {
    fail_errno(fmt::format("sched_setaffinity(processor {})", cpu), errno);
  }
  if (const int now = sched_getcpu(); now != cpu) {
    fail(ErrorKind::operation,
         fmt::format("bind a thread to processor {}: it still runs on {}", cpu, now));
  }
}

NodeMemory::NodeMemory(std::uint64_t bytes, std::optional<int> os_node, Pages pages)
    : m_bytes(bytes), m_node(os_node) {
  const std::size_t align = pages == Pages::huge ? k_huge_page : page_size();
  m_mapped = round_up(bytes, align) + (pages == Pages::huge ? k_huge_page : 0);
  m_mapping = mmap(nullptr, m_mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (m_mapping == MAP_FAILED) {
    m_mapping = nullptr;
    fail_errno(fmt::format("mmap of {} bytes", m_mapped), errno);
  }
  const auto address = reinterpret_cast<std::uintptr_t>(m_mapping);
  m_data = static_cast<std::byte*>(m_mapping) + (round_up(address, align) - address);
  madvise(m_mapping, m_mapped, pages == Pages::huge ? MADV_HUGEPAGE : MADV_NOHUGEPAGE);
  // Processes forked later need none of it, and would make our next writes to it copy pages.
  madvise(m_mapping, m_mapped, MADV_DONTFORK);
  if (m_node && bind_memory(m_mapping, m_mapped, *m_node) != 0 && errno != EPERM &&
      errno != ENOSYS) {
    const int error = errno;
    munmap(m_mapping, m_mapped);
    m_mapping = nullptr;
    fail_errno(fmt::format("mbind to NUMA node {}", *m_node), error);
  }
  // Reading would map the one zero page everywhere: write.
  std::memset(m_data, 0, m_bytes);
}

NodeMemory::NodeMemory(NodeMemory&& other) noexcept {
  *this = std::move(other);
}

NodeMemory& NodeMemory::operator=(NodeMemory&& other) noexcept {
  std::swap(m_mapping, other.m_mapping);
  std::swap(m_mapped, other.m_mapped);
  std::swap(m_data, other.m_data);
  std::swap(m_bytes, other.m_bytes);
  std::swap(m_node, other.m_node);
  return *this;
}

NodeMemory::~NodeMemory() {
  if (m_mapping != nullptr) {
    munmap(m_mapping, m_mapped);
  }
}

Placement NodeMemory::placement() const {
  Placement found;
  if (m_bytes == 0) {
    return found;
  }
  found.huge = huge_fraction(m_data, m_bytes);
  if (!m_node) {
    return found;
  }
  constexpr std::size_t k_most = 4096;
  const std::size_t pages = (m_bytes + page_size() - 1) / page_size();
  const std::size_t step = (pages + k_most - 1) / k_most;
  std::vector<void*> asked;
  for (std::size_t page = 0; page < pages; page += step) {
    asked.push_back(m_data + page * page_size());
  }
  std::vector<int> nodes(asked.size(), -1);
  if (syscall(SYS_move_pages, 0, asked.size(), asked.data(), nullptr, nodes.data(), 0) != 0) {
    found.doubt = fmt::format("move_pages: {}; where the memory is could not be checked",
                              std::strerror(errno));
    return found;
  }
  found.pages_checked = asked.size();
  found.pages_elsewhere =
      static_cast<std::size_t>(std::count_if(nodes.begin(), nodes.end(), [&](int node) {
        return node != *m_node; // a negative number is an error: not known to be right
      }));
  if (found.pages_elsewhere > 0) {
    found.doubt = fmt::format("{} of {} pages checked are not on NUMA node {}",
                              found.pages_elsewhere, found.pages_checked, *m_node);
  }
  return found;
}

Precedence::Precedence()
    : m_before(getpriority(PRIO_PROCESS, 0)), m_granted(setpriority(PRIO_PROCESS, 0, -20) == 0) {}

Precedence::~Precedence() {
  if (m_granted) {
    static_cast<void>(setpriority(PRIO_PROCESS, 0, m_before));
  }
}

} // namespace reckon
