// SPDX-License-Identifier: Apache-2.0
// NVIDIA's management library with one GPU at 0000:13:00.0, with two NVLinks, the second inactive.
// Its numbers are those of tests; types and names are those of NVML's API reference.
#include <array>
#include <cstdio>

namespace {
int g_device = 0;
constexpr int k_not_supported = 3;
} // namespace

extern "C" {
using Device = void*;
struct PciInfo {
  char legacy_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char id[32];
};

int nvmlInit_v2() {
  return 0;
}
int nvmlShutdown() {
  return 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 1;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  *device = &g_device;
  return index == 0 ? 0 : k_not_supported;
}
int nvmlDeviceGetPciInfo_v3(Device, PciInfo* pci) {
  *pci = {};
  pci->bus = 0x13;
  std::snprintf(pci->id, sizeof pci->id, "00000000:13:00.0");
  return 0;
}
int nvmlDeviceGetCurrentClocksThrottleReasons(Device, unsigned long long* reasons) {
  *reasons = 0x1 | 0x4 | 0x40; // idle, power cap, hardware: thermal
  return 0;
}
int nvmlDeviceGetTotalEccErrors(Device, int kind, int since, unsigned long long* errors) {
  *errors = kind == 1 && since == 0 ? 7 : 1000;
  return 0;
}
int nvmlDeviceGetRemappedRows(Device, unsigned* corrected, unsigned* uncorrected, unsigned* pending,
                              unsigned* failed) {
  *corrected = 2;
  *uncorrected = 1;
  *pending = 1;
  *failed = 0;
  return 0;
}
int nvmlDeviceGetPcieReplayCounter(Device, unsigned* replays) {
  *replays = 5;
  return 0;
}
int nvmlDeviceGetNvLinkState(Device, unsigned link, int* active) {
  *active = link == 0 ? 1 : 0;
  return link < 2 ? 0 : k_not_supported;
}
int nvmlDeviceGetNvLinkErrorCounter(Device, unsigned link, int kind, unsigned long long* count) {
  constexpr std::array<unsigned long long, 4> k_counts{10, 11, 12, 13};
  *count = link == 0 ? k_counts[static_cast<unsigned>(kind)] : 99;
  return 0;
}
}
