// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/error.hpp"
#include "discover/cuda.hpp"
#include "movers/gpu.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

namespace reckon::test {

/// A test of this fixture is skipped where there is no GPU.
class OnGpu : public testing::Test {
protected:
  void SetUp() override {
    static_cast<void>(list_cuda_gpus()); // the first call must come before CUDA is used here
    std::string why_not;
    m_library = gpu_library(&why_not);
    if (m_library == nullptr) {
      GTEST_SKIP() << why_not;
    }
    m_library->load(0);
    m_stream = GpuOwned<GpuStream>(*m_library, m_library->make_stream(0));
  }

  [[nodiscard]] GpuLibrary& gpus() { return *m_library; }
  [[nodiscard]] GpuStream stream() const { return m_stream.get(); }
  void ok(GpuStatus status) { ASSERT_EQ(status, 0) << m_library->words(status); }
  /// Waits for everything.
  void copy(std::byte* to, const std::byte* from, std::size_t bytes) {
    ok(m_library->copy(to, from, bytes, stream()));
    ok(m_library->synchronize(stream()));
  }

private:
  GpuLibrary* m_library = nullptr;
  GpuOwned<GpuStream> m_stream;
};

} // namespace reckon::test
