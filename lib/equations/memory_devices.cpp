// SPDX-License-Identifier: Apache-2.0
#include "equations/memory_devices.hpp"

#include "core/error.hpp"
#include "equations/checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>
#include <vector>

namespace reckon {

using equations::check_amount;
using equations::check_positive;

namespace {

double factor_at(const Curve& factors, double bytes) {
  // Beyond the samples a curve of times grows; a factor does not.
  return factors.seconds_at(std::min(bytes, factors.points().back().bytes));
}

} // namespace

double resident_bytes(const TrainingMemory& memory, DeviceHolds holds) {
  check_amount(memory.gpu_bytes, "GPU memory");
  check_amount(memory.parameters_bytes, "parameters");
  check_amount(memory.gradients_bytes, "gradients");
  check_amount(memory.optimizer_bytes, "optimizer state");
  check_amount(memory.fixed_bytes, "fixed memory");
  return (holds.parameters ? 0 : memory.parameters_bytes) +
         (holds.gradients ? 0 : memory.gradients_bytes) +
         (holds.optimizer ? 0 : memory.optimizer_bytes) + memory.fixed_bytes;
}

std::uint64_t greatest_batch(const TrainingMemory& memory, DeviceHolds holds) {
  const double left = memory.gpu_bytes - resident_bytes(memory, holds);
  check_positive(memory.sample_bytes, "activations of a sample");
  return left > 0 ? static_cast<std::uint64_t>(left / memory.sample_bytes) : 0;
}

double dense_s(std::uint64_t workers, double bytes, double device_bytes_per_s) {
  check_amount(bytes, "gradient bytes");
  check_positive(device_bytes_per_s, "the device's bandwidth");
  return static_cast<double>(workers) * bytes / device_bytes_per_s;
}

double dense_s(std::uint64_t workers, const Curve& device, std::span<const SizeCount> tensors) {
  double one_worker_s = 0;
  for (const SizeCount& tensor : tensors) {
    check_amount(tensor.count, "count of tensors");
    one_worker_s += tensor.count * device.seconds_at(tensor.bytes);
  }
  return static_cast<double>(workers) * one_worker_s;
}

Curve cci_curve(const Curve& bus, const Curve& speedup) {
  // Both are linear between the sizes of either, their product is not: it is exact at those.
  std::set<double> sizes;
  for (const Curve* curve : {&bus, &speedup}) {
    for (const CurvePoint& sample : curve->points()) {
      sizes.insert(sample.bytes);
    }
  }
  std::vector<CurvePoint> cci;
  for (const double bytes : sizes) {
    cci.push_back({bytes, bus.seconds_at(bytes) * factor_at(speedup, bytes)});
  }
  return Curve(std::move(cci));
}

double coherence_left_bytes_per_s(double bytes_per_s, double taken_bytes_per_s,
                                  std::uint64_t devices) {
  check_positive(bytes_per_s, "the device's bandwidth");
  check_amount(taken_bytes_per_s, "coherence traffic");
  if (devices == 0) {
    fail(ErrorKind::usage, "coherence: 0 devices share a region; at least 1 is needed");
  }
  return std::max(0.0, bytes_per_s - taken_bytes_per_s * static_cast<double>(devices - 1));
}

} // namespace reckon
