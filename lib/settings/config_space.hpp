// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace reckon {

/// The config space of a PCI function, as /sys/bus/pci/devices/*/config has it: 64 bytes for a user
/// who is not root, else 256, of PCI Express 4096. PCI Express Base Specification, chapter 7.
/// Immutable.
class ConfigSpace {
public:
  explicit ConfigSpace(std::string bytes) : m_bytes(std::move(bytes)) {}

  /// Whether there is more than the 64 bytes that everybody may read.
  [[nodiscard]] bool has_capabilities() const { return m_bytes.size() > 64; }
  /// The registers of a capability, and of an extended one, by its number: where they begin.
  /// nullopt: the function has none, or it cannot be read.
  [[nodiscard]] std::optional<std::size_t> capability(unsigned number) const;
  [[nodiscard]] std::optional<std::size_t> extended_capability(unsigned number) const;
  /// 0 beyond the end.
  [[nodiscard]] unsigned byte(std::size_t at) const {
    return at < m_bytes.size() ? static_cast<unsigned char>(m_bytes[at]) : 0U;
  }
  [[nodiscard]] unsigned word(std::size_t at) const { return byte(at) | byte(at + 1) << 8U; }

private:
  std::string m_bytes;
};

/// A fact of a function, by its registers.
struct ConfigFact {
  const char* name;
  std::optional<std::string> (*read)(const ConfigSpace& space);
};
/// Of a GPU or a NIC; of the port above it.
[[nodiscard]] const std::vector<ConfigFact>& function_facts();
[[nodiscard]] const std::vector<ConfigFact>& port_facts();

} // namespace reckon
