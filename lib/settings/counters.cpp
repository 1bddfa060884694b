// SPDX-License-Identifier: Apache-2.0
#include "settings/settings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <string_view>

namespace reckon {

using namespace settings_detail;

namespace {

/// Of a PCIe function; the line TOTAL_... has the number.
constexpr std::array<std::pair<const char*, const char*>, 3> k_aer_counts{
    {{"pcie_correctable", "aer_dev_correctable"},
     {"pcie_nonfatal", "aer_dev_nonfatal"},
     {"pcie_fatal", "aer_dev_fatal"}}};
/// Of a network device. What it dropped is no error: it drops what nobody here wants.
constexpr std::array<const char*, 3> k_net_counts{"statistics/rx_errors", "statistics/tx_errors",
                                                  "carrier_changes"};
/// Of an RDMA port: InfiniBand's own, then those of RoCE's transport.
constexpr std::array<const char*, 12> k_rdma_counts{
    "counters/symbol_error",
    "counters/link_error_recovery",
    "counters/link_downed",
    "counters/port_rcv_errors",
    "counters/port_xmit_discards",
    "counters/local_link_integrity_errors",
    "counters/excessive_buffer_overrun_errors",
    "hw_counters/out_of_sequence",
    "hw_counters/packet_seq_err",
    "hw_counters/local_ack_timeout_err",
    "hw_counters/rnr_nak_retry_err",
    "hw_counters/roce_adp_retrans_to",
};
/// Of those in k_nvml_file, the ones that count.
constexpr std::array<const char*, 6> k_nvml_counts{"nvlink_replay",   "nvlink_recovery",
                                                   "nvlink_crc_flit", "nvlink_crc_data",
                                                   "pcie_replay",     "ecc_uncorrected"};

std::optional<std::uint64_t> last_number(const std::string& text) {
  const std::size_t space = text.find_last_of(" \n");
  const char* const first = text.data() + (space == text.npos ? 0 : space + 1);
  std::uint64_t number = 0;
  return std::from_chars(first, text.data() + text.size(), number).ec == std::errc{}
             ? std::optional(number)
             : std::nullopt;
}

class Counter {
public:
  Counter(const Topology& topology, const SystemFiles& files)
      : m_topology(topology), m_files(files) {}

  ErrorCounts count() {
    for (const TopologyObject& object : m_topology.objects) {
      for (const auto& [name, file] : k_aer_counts) {
        if (!object.pci_address.empty()) {
          add(object.id, name, "/sys/bus/pci/devices/" + object.pci_address + "/" + file);
        }
      }
      if (object.kind == ObjectKind::nic) {
        count_ports(object);
      }
    }
    for (const std::string& device : other_devices(m_topology, m_files)) {
      count_device(k_machine, device);
    }
    for (const NvmlRow& row : nvml_rows(m_topology, m_files)) {
      if (std::find(k_nvml_counts.begin(), k_nvml_counts.end(), row.name) != k_nvml_counts.end()) {
        m_counts[{row.place, row.name, k_nvml_file}] += last_number(row.value).value_or(0);
      }
    }
    return std::move(m_counts);
  }

private:
  void add(const std::string& place, const std::string& name, const std::string& file) {
    if (const auto text = m_files.text(file)) {
      m_counts[{place, name, file}] = last_number(*text).value_or(0);
    }
  }
  template <class Names>
  void add_all(const std::string& place, const Names& names, const std::string& folder) {
    for (const std::string name : names) {
      add(place, name.substr(name.find('/') + 1), folder + name);
    }
  }
  void count_device(const std::string& place, const std::string& device) {
    add_all(place, k_net_counts, "/sys/class/net/" + device + "/");
  }
  void count_ports(const TopologyObject& nic) {
    for (const std::string& device : device_names(nic)) {
      count_device(nic.id, device);
      const std::string ports = "/sys/class/infiniband/" + device + "/ports";
      for (const std::string& port : m_files.names(ports)) {
        add_all(nic.id, k_rdma_counts, ports + "/" + port + "/");
      }
    }
  }

  const Topology& m_topology;
  const SystemFiles& m_files;
  ErrorCounts m_counts;
};

/// What was added. A count that became less began again.
ErrorCounts added(const ErrorCounts& before, const ErrorCounts& after) {
  ErrorCounts more;
  for (const auto& [key, count] : after) {
    const auto old = before.find(key);
    if (old != before.end() && count > old->second) {
      more[key] = count - old->second;
    }
  }
  return more;
}

} // namespace

ErrorCounts count_errors(const Topology& topology, const SystemFiles& files) {
  return Counter(topology, files).count();
}

std::string added_errors(const ErrorCounts& before, const ErrorCounts& after) {
  std::string text;
  for (const auto& [key, count] : added(before, after)) {
    text += fmt::format("{}{}: {} {}", text.empty() ? "" : ", ", key.place, count, key.name);
  }
  return text;
}

std::vector<Setting> errors_while_measured(const ErrorCounts& before, const ErrorCounts& after) {
  std::vector<Setting> settings;
  for (const auto& [key, count] : added(before, after)) {
    settings.push_back({key.place, "", key.name + std::string(k_while_measured),
                        fmt::format("{}", count), key.file});
  }
  return settings;
}

} // namespace reckon
