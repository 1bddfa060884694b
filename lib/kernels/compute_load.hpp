// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace reckon {

/// The share of one of `parts` in `whole`: first unit and one beyond the last.
[[nodiscard]] constexpr std::pair<std::size_t, std::size_t>
part_of(std::size_t whole, std::size_t part, std::size_t parts) {
  return {whole * part / parts, whole * (part + 1) / parts};
}

/// A number that one thread counts up, on cache lines of its own.
struct alignas(128) ThreadCount {
  std::uint64_t value = 0;
};

/// One computation, shared by threads, each of which goes through its steps again and again.
class ComputeLoad {
public:
  ComputeLoad() = default;
  ComputeLoad(const ComputeLoad&) = delete;
  ComputeLoad& operator=(const ComputeLoad&) = delete;
  virtual ~ComputeLoad() = default;
  [[nodiscard]] virtual std::uint64_t
  steps() const = 0; ///< of each thread, for one whole computation
  /// Step `index` of thread `rank`; indices go on counting when the computation is done again.
  virtual void step(std::size_t rank, std::uint64_t index) noexcept = 0;
  /// The fault in the result; empty: no fault, or no thread has finished once. Not while any thread
  /// is in step().
  [[nodiscard]] virtual std::string mistake() const = 0;
};

/// C = A B of n x n matrices (fp32, Eigen) in rows of panels. Small whole numbers, so that every
/// sum is exact.
class GemmLoad final : public ComputeLoad {
public:
  [[nodiscard]] static std::size_t bytes_of(std::size_t n) { return 3 * n * n * sizeof(float); }

  /// `memory`: bytes_of(n), aligned for numbers; must outlive this.
  GemmLoad(std::span<std::byte> memory, std::size_t n, std::size_t threads);
  [[nodiscard]] std::uint64_t steps() const override;
  void step(std::size_t rank, std::uint64_t index) noexcept override;
  [[nodiscard]] std::string mistake() const override;

private:
  std::size_t m_n, m_threads;
  float *m_a = nullptr, *m_b = nullptr, *m_c = nullptr;
  std::vector<ThreadCount> m_done;
};

/// The supported sides of the matrices: "gemm_256", "gemm_1000".
inline constexpr std::array<std::size_t, 2> k_gemm_sides{256, 1000};
/// N of a known "gemm_N".
[[nodiscard]] std::optional<std::size_t> gemm_side(std::string_view operation);

} // namespace reckon
