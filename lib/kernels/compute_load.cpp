// SPDX-License-Identifier: Apache-2.0
#include "kernels/compute_load.hpp"

#include <Eigen/Core>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace reckon {
namespace {

using Matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

/// Rows of one step: it ends soon after it was asked to, and packing B anew costs little.
constexpr std::size_t k_panel = 128;
/// So that what was never computed does not look computed.
constexpr int k_poison = 0xa5;

} // namespace

GemmLoad::GemmLoad(std::span<std::byte> memory, std::size_t n, std::size_t threads)
    : m_n(n), m_threads(threads), m_done(threads) {
  const std::size_t count = n * n;
  m_a = reinterpret_cast<float*>(memory.data());
  m_b = m_a + count;
  m_c = m_b + count;
  for (std::size_t i = 0; i < count; ++i) {
    m_a[i] = static_cast<float>(i % 7) - 3;
    m_b[i] = static_cast<float>(i % 5) - 2;
  }
  std::memset(m_c, k_poison, count * sizeof(float));
}

std::uint64_t GemmLoad::steps() const {
  return std::max<std::size_t>(1, (m_n / m_threads + k_panel - 1) / k_panel);
}

void GemmLoad::step(std::size_t rank, std::uint64_t index) noexcept {
  const auto [begin, end] = part_of(m_n, rank, m_threads);
  const auto [from, to] = part_of(end - begin, index % steps(), steps());
  const auto rows = static_cast<Eigen::Index>(to - from);
  const auto n = static_cast<Eigen::Index>(m_n);
  const std::size_t offset = (begin + from) * m_n;
  const Eigen::Map<const Matrix> a(m_a + offset, rows, n);
  const Eigen::Map<const Matrix> b(m_b, n, n);
  Eigen::Map<Matrix>(m_c + offset, rows, n).noalias() = a * b;
  ++m_done[rank].value;
}

/// Every row's sum against A (B 1), which takes n^2 steps where the product takes n^3.
std::string GemmLoad::mistake() const {
  std::vector<double> b_sums(m_n);
  for (std::size_t i = 0; i < m_n * m_n; ++i) {
    b_sums[i / m_n] += static_cast<double>(m_b[i]);
  }
  for (std::size_t rank = 0; rank < m_threads; ++rank) {
    const auto [begin, end] = part_of(m_n, rank, m_threads);
    for (std::size_t row = begin; m_done[rank].value >= steps() && row < end; ++row) {
      double expected = 0;
      double is = 0;
      for (std::size_t k = 0; k < m_n; ++k) {
        expected += static_cast<double>(m_a[row * m_n + k]) * b_sums[k];
        is += static_cast<double>(m_c[row * m_n + k]);
      }
      if (is != expected) {
        return fmt::format("row {} of the product comes to {}, not to {}", row, is, expected);
      }
    }
  }
  return "";
}

std::optional<std::size_t> gemm_side(std::string_view operation) {
  for (const std::size_t side : k_gemm_sides) {
    if (operation == fmt::format("gemm_{}", side)) {
      return side;
    }
  }
  return std::nullopt;
}

} // namespace reckon
