// SPDX-License-Identifier: Apache-2.0
#include "settings/config_space.hpp"

#include <fmt/format.h>

#include <array>

namespace reckon {
namespace {

// Numbers of capabilities, and their registers.
constexpr unsigned k_express = 0x10, k_acs = 0x0d, k_ats = 0x0f;
constexpr std::size_t k_device_capabilities = 4, k_device_control = 8, k_acs_control = 6,
                      k_ats_control = 6;

std::string on_or_off(bool on) {
  return on ? "on" : "off";
}

/// The device control register. nullopt: nothing is set in it, as in a virtual function, which goes
/// by its physical one's.
std::optional<unsigned> control_of(const ConfigSpace& space) {
  constexpr unsigned k_read_by_us = 0x71f0;
  const auto express = space.capability(k_express);
  const unsigned control = express ? space.word(*express + k_device_control) & k_read_by_us : 0U;
  return control != 0 ? std::optional(control) : std::nullopt;
}

/// 128 << the three bits from `bit` on.
std::string size_in(unsigned control, unsigned bit) {
  return fmt::format("{}", 128U << (control >> bit & 7U));
}

std::optional<std::string> payload(const ConfigSpace& space) {
  const auto control = control_of(space);
  return control ? std::optional(size_in(*control, 5)) : std::nullopt;
}

std::optional<std::string> read_request(const ConfigSpace& space) {
  const auto control = control_of(space);
  return control ? std::optional(size_in(*control, 12)) : std::nullopt;
}

std::optional<std::string> relaxed_ordering(const ConfigSpace& space) {
  const auto control = control_of(space);
  return control ? std::optional(on_or_off(*control & 0x10U)) : std::nullopt;
}

/// Of functions that can have more than 32 requests under way.
std::optional<std::string> extended_tags(const ConfigSpace& space) {
  const auto control = control_of(space);
  return control && (space.word(*space.capability(k_express) + k_device_capabilities) & 0x20U) != 0
             ? std::optional(on_or_off(*control & 0x100U))
             : std::nullopt;
}

/// Also of a port in whose register nothing is set: 128 bytes.
std::optional<std::string> port_payload(const ConfigSpace& space) {
  return space.capability(k_express) ? std::optional(size_in(control_of(space).value_or(0), 5))
                                     : std::nullopt;
}

std::optional<std::string> ats(const ConfigSpace& space) {
  const auto ats = space.extended_capability(k_ats);
  return ats ? std::optional(on_or_off(space.word(*ats + k_ats_control) & 0x8000U)) : std::nullopt;
}

/// In the words of lspci.
std::optional<std::string> acs(const ConfigSpace& space) {
  constexpr std::array<const char*, 7> k_bits{
      "SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans"};
  const auto acs = space.extended_capability(k_acs);
  if (!acs) {
    return std::nullopt;
  }
  std::string text;
  for (std::size_t bit = 0; bit < k_bits.size(); ++bit) {
    text += fmt::format("{}{}{}", bit > 0 ? " " : "", k_bits[bit],
                        (space.word(*acs + k_acs_control) >> bit & 1U) != 0 ? "+" : "-");
  }
  return text;
}

} // namespace

std::optional<std::size_t> ConfigSpace::capability(unsigned number) const {
  constexpr std::size_t k_first = 0x34;
  constexpr int k_most = 48; // as many fit into the space: a ring of pointers ends, too
  std::size_t at = has_capabilities() ? byte(k_first) & 0xfcU : 0U;
  for (int i = 0; i < k_most && at >= 64; ++i) {
    if (byte(at) == number) {
      return at;
    }
    at = byte(at + 1) & 0xfcU;
  }
  return std::nullopt;
}

std::optional<std::size_t> ConfigSpace::extended_capability(unsigned number) const {
  constexpr std::size_t k_first = 0x100;
  constexpr int k_most = (4096 - 256) / 8;
  std::size_t at = k_first;
  for (int i = 0; i < k_most && at >= k_first && at + 4 <= m_bytes.size(); ++i) {
    if (word(at) == number) {
      return at;
    }
    at = word(at + 2) >> 4U & 0xffcU;
  }
  return std::nullopt;
}

const std::vector<ConfigFact>& function_facts() {
  static const std::vector<ConfigFact> facts{{"max_payload_bytes", payload},
                                             {"max_read_request_bytes", read_request},
                                             {"relaxed_ordering", relaxed_ordering},
                                             {"extended_tags", extended_tags},
                                             {"ats", ats}};
  return facts;
}

const std::vector<ConfigFact>& port_facts() {
  static const std::vector<ConfigFact> facts{{"port_max_payload_bytes", port_payload},
                                             {"port_acs", acs}};
  return facts;
}

} // namespace reckon
