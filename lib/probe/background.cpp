// SPDX-License-Identifier: Apache-2.0
#include "probe/background.hpp"

#include <utility>

namespace reckon {

Background::Background(const std::vector<int>& cpus,
                       std::function<void(std::size_t, std::uint64_t)> work)
    : m_team(cpus), m_work(std::move(work)), m_begun(static_cast<std::ptrdiff_t>(cpus.size())),
      m_runner([this] {
        m_team.run([this](std::size_t rank) {
          m_work(rank, 0);
          m_begun.count_down();
          for (std::uint64_t index = 1; !m_stop.load(std::memory_order_relaxed); ++index) {
            m_work(rank, index);
          }
        });
      }) {
  m_begun.wait();
}

Background::~Background() {
  m_stop.store(true, std::memory_order_relaxed); // m_runner's end orders everything else
}

} // namespace reckon
