// SPDX-License-Identifier: Apache-2.0
#include "discover/smbios.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <map>

namespace reckon {
namespace {

constexpr std::uint8_t k_memory_device = 17;

/// Little-endian field of one structure; 0 when the structure is too short (older than the field).
std::uint64_t field(std::string_view structure, std::size_t offset, std::size_t bytes) {
  if (offset + bytes > structure.size()) {
    return 0;
  }
  std::uint64_t value = 0;
  for (std::size_t i = bytes; i-- > 0;) {
    value = value << 8U | static_cast<std::uint8_t>(structure[offset + i]);
  }
  return value;
}

std::string_view type_name(std::uint64_t type) {
  static const std::map<std::uint64_t, std::string_view> names{
      {0x18, "DDR3"}, {0x1a, "DDR4"}, {0x1e, "LPDDR4"}, {0x20, "HBM"},
      {0x21, "HBM2"}, {0x22, "DDR5"}, {0x23, "LPDDR5"}, {0x24, "HBM3"}};
  const auto it = names.find(type);
  return it == names.end() ? "memory" : it->second;
}

std::string describe(std::string_view s) {
  std::uint64_t mebibytes = field(s, 0x0c, 2);
  if (mebibytes == 0 || mebibytes == 0xffff) {
    return ""; // an empty slot, or unknown
  }
  if (mebibytes == 0x7fff) {
    mebibytes = field(s, 0x1c, 4) & 0x7fffffffU; // 32 GiB and more
  } else if ((mebibytes & 0x8000U) != 0) {
    mebibytes = (mebibytes & 0x7fffU) / 1024; // given in KiB
  }
  std::string text = mebibytes % 1024 == 0 ? fmt::format("{} GiB", mebibytes / 1024)
                                           : fmt::format("{} MiB", mebibytes);
  text += fmt::format(" {}", type_name(field(s, 0x12, 1)));
  // The speed it runs at; the speed it could run at is no fact about this machine.
  if (const std::uint64_t speed = field(s, 0x20, 2); speed != 0 && speed != 0xffff) {
    text += fmt::format(" {} MT/s", speed);
  }
  return text;
}

} // namespace

std::string memory_modules(std::string_view table) {
  std::map<std::string, int> modules;
  while (table.size() >= 4) {
    const auto type = static_cast<std::uint8_t>(table[0]);
    const auto length = static_cast<std::uint8_t>(table[1]);
    if (length < 4 || length > table.size()) {
      break;
    }
    if (type == k_memory_device) {
      if (const std::string text = describe(table.substr(0, length)); !text.empty()) {
        ++modules[text];
      }
    }
    // The strings of a structure follow it and end with two zero bytes.
    const std::size_t end = table.find(std::string_view("\0\0", 2), length);
    if (end == std::string_view::npos) {
      break;
    }
    table.remove_prefix(end + 2);
  }
  std::string text;
  for (const auto& [module, count] : modules) {
    text += fmt::format("{}{} x {}", text.empty() ? "" : ", ", count, module);
  }
  return text;
}

} // namespace reckon
