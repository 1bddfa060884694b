// SPDX-License-Identifier: Apache-2.0
#include "settings/settings.hpp"

#include <dlfcn.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <memory>
#include <sstream>
#include <string_view>

namespace reckon {
namespace {

// NVIDIA's NVML API reference has these types and numbers; its header is not needed to build.
using Device = void*;
struct PciInfo {
  std::array<char, 16> legacy_id;
  unsigned domain, bus, device, device_id, subsystem_id;
  std::array<char, 32> id;
};
constexpr int k_success = 0;
constexpr unsigned k_most_links = 18;

/// What slows a GPU down that should not: bits of nvmlDeviceGetCurrentClocksThrottleReasons.
constexpr std::array<std::pair<unsigned long long, const char*>, 4> k_slow_reasons{
    {{0x08, "hardware_slowdown"},
     {0x20, "software_thermal"},
     {0x40, "hardware_thermal"},
     {0x80, "power_brake"}}};
/// nvmlNvLinkErrorCounter_t.
constexpr std::array<const char*, 4> k_link_counts{"nvlink_replay", "nvlink_recovery",
                                                   "nvlink_crc_flit", "nvlink_crc_data"};

struct CloseLibrary {
  void operator()(void* library) const noexcept { dlclose(library); }
};

class Nvml {
public:
  explicit Nvml(const char* name) : m_library(dlopen(name, RTLD_NOW | RTLD_LOCAL)) {}

  std::string ask() {
    unsigned count = 0;
    if (!call("nvmlInit_v2")) {
      return "";
    }
    if (call("nvmlDeviceGetCount_v2", &count)) {
      for (unsigned i = 0; i < count; ++i) {
        Device device = nullptr;
        PciInfo pci{};
        if (call("nvmlDeviceGetHandleByIndex_v2", i, &device) &&
            call("nvmlDeviceGetPciInfo_v3", device, &pci)) {
          m_address = fmt::format("{:04x}:{:02x}:{:02x}.0", pci.domain, pci.bus, pci.device);
          ask_device(device);
        }
      }
    }
    call("nvmlShutdown");
    return m_text;
  }

private:
  /// Whether the library has this function, and it did what it should.
  template <class... Given>
  bool call(const char* function, Given... given) {
    void* const found = m_library ? dlsym(m_library.get(), function) : nullptr;
    return found != nullptr && reinterpret_cast<int (*)(Given...)>(found)(given...) == k_success;
  }
  template <class Value>
  void row(const char* name, const Value& value) {
    m_text += fmt::format("{},{},{}\n", m_address, name, value);
  }

  void ask_device(Device device) {
    unsigned long long number = 0;
    if (call("nvmlDeviceGetCurrentClocksThrottleReasons", device, &number)) {
      std::vector<const char*> reasons;
      for (const auto& [bit, reason] : k_slow_reasons) {
        if ((number & bit) != 0) {
          reasons.push_back(reason);
        }
      }
      row("slowed_by", reasons.empty() ? "nothing" : fmt::format("{}", fmt::join(reasons, " ")));
    }
    constexpr int k_uncorrected = 1, k_since_loaded = 0;
    if (call("nvmlDeviceGetTotalEccErrors", device, k_uncorrected, k_since_loaded, &number)) {
      row("ecc_uncorrected", number);
    }
    unsigned corrected = 0, uncorrected = 0, pending = 0, failed = 0, replays = 0;
    if (call("nvmlDeviceGetRemappedRows", device, &corrected, &uncorrected, &pending, &failed)) {
      row("row_remapping", failed != 0 ? "failed" : pending != 0 ? "pending" : "done");
    }
    if (call("nvmlDeviceGetPcieReplayCounter", device, &replays)) {
      row("pcie_replay", replays);
    }
    for (unsigned link = 0; link < k_most_links; ++link) {
      int active = 0;
      if (!call("nvmlDeviceGetNvLinkState", device, link, &active) || active == 0) {
        continue;
      }
      for (unsigned kind = 0; kind < k_link_counts.size(); ++kind) {
        if (call("nvmlDeviceGetNvLinkErrorCounter", device, link, static_cast<int>(kind),
                 &number)) {
          row(k_link_counts[kind], fmt::format("link {}: {}", link, number));
        }
      }
    }
  }

  std::unique_ptr<void, CloseLibrary> m_library;
  std::string m_text, m_address;
};

} // namespace

std::string ask_nvml(const char* library) {
  return Nvml(library).ask();
}

namespace settings_detail {

std::vector<NvmlRow> nvml_rows(const Topology& topology, const SystemFiles& files) {
  std::istringstream lines(files.text(k_nvml_file).value_or(""));
  std::vector<NvmlRow> rows;
  std::string address, name, value;
  while (std::getline(lines, address, ',') && std::getline(lines, name, ',') &&
         std::getline(lines, value)) {
    const auto gpu = std::ranges::find(topology.objects, address, &TopologyObject::pci_address);
    if (gpu != topology.objects.end()) {
      rows.push_back({gpu->id, name, value});
    }
  }
  return rows;
}

} // namespace settings_detail

} // namespace reckon
