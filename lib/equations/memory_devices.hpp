// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "equations/coarse.hpp"

#include <cstdint>
#include <span>

/// One memory device and its link: COARSE (HPCA'22), sections II-C, III-B, III-D, V-B, V-D. Plain
/// doubles: bytes, bytes per second, seconds. Invalid arguments throw Error{usage}.
namespace reckon {

/// Training's data in a GPU's memory. All finite and not negative.
struct TrainingMemory {
  double gpu_bytes = 0;
  double parameters_bytes = 0;
  double gradients_bytes = 0;
  double optimizer_bytes = 0;
  double fixed_bytes = 0;  ///< independent of the batch: the framework, workspaces
  double sample_bytes = 0; ///< activations of one sample; greater than 0
};

/// The data that a memory device holds in place of the GPU.
struct DeviceHolds {
  bool parameters = false, gradients = false, optimizer = false;
};

/// Equation 37: bytes in the GPU's memory without any sample.
[[nodiscard]] double resident_bytes(const TrainingMemory& memory, DeviceHolds holds = {});
/// Equation 37: the greatest batch that fits beside them; 0 if not even one sample fits.
[[nodiscard]] std::uint64_t greatest_batch(const TrainingMemory& memory, DeviceHolds holds = {});

/// Equation 38: one device for all (DENSE): p n / BW in each direction, push and pull at once.
[[nodiscard]] double dense_s(std::uint64_t workers, double bytes, double device_bytes_per_s);
/// The same from a curve: every worker's tensors one after another through the device's port.
[[nodiscard]] double dense_s(std::uint64_t workers, const Curve& device,
                             std::span<const SizeCount> tensors);

/// Equation 39: the times over CCI from those over the bus, BW_cci(s) = BW_bus(s) / speedup(s). The
/// speed-up of the bus over CCI is linear between its samples and constant beyond them; seconds of
/// `speedup` are factors.
[[nodiscard]] Curve cci_curve(const Curve& bus, const Curve& speedup);

/// The fraction of the serial bus' peak that CCI reaches (COARSE II-C).
inline constexpr double k_cci_efficiency = 0.9;

/// Equation 40: a device's bandwidth after coherence traffic when `devices` share a region and each
/// beyond the first takes `taken_bytes_per_s`; at least 0. The paper names the effect without a
/// formula.
[[nodiscard]] double coherence_left_bytes_per_s(double bytes_per_s, double taken_bytes_per_s,
                                                std::uint64_t devices);

} // namespace reckon
