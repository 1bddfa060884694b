// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <rdma/fabric.h>

#include <string>
#include <vector>

namespace reckon {

/// Where an endpoint binds: "127.0.0.1", "fe80::1"; empty for a provider without IP addresses.
[[nodiscard]] std::string ip_of(const fi_info& info);
[[nodiscard]] bool is_loopback_ip(const std::string& ip);
[[nodiscard]] bool is_link_local(const std::string& ip);
/// Its IP address, else its domain.
[[nodiscard]] std::string name_of(const fi_info& info);

/// The names in RECKON_FABRIC_ADDRESS: "a,b" -> a, b. Throws Error{usage} when one is empty.
[[nodiscard]] std::vector<std::string> words_of(const std::string& list);

/// The first of `infos` at that IP address, interface or domain; nullptr: none.
[[nodiscard]] const fi_info* info_of_port(const std::vector<const fi_info*>& infos,
                                          const std::string& port);

/// The domains of `infos`, each once: RDMA devices, or for TCP interfaces. Without those whose link
/// is down, the loopback interface and link-local addresses.
[[nodiscard]] std::vector<std::string> ports_with_carrier(const std::vector<const fi_info*>& infos);

} // namespace reckon
