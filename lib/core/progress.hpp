// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/units.hpp"

#include <string_view>

namespace reckon {

/// One line on standard error that is overwritten as work goes on; silent unless that is a
/// terminal. The line is erased by the destructor. Thread-compatible.
class Progress {
public:
  Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  ~Progress();
  /// `done` in [0, 1]; `left` is the estimated time left (negative: unknown).
  void show(double done, std::string_view what, Seconds left = Seconds(-1));

private:
  bool m_enabled;
  std::int64_t m_last_ns = 0;
};

} // namespace reckon
