// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/file.hpp"

#include <memory>
#include <netdb.h>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <vector>

namespace reckon {

/// A socket that listens, and its port.
struct Listener {
  Fd socket;
  int port = 0;
};

/// Listens on a numeric address, all of this machine's when it is empty; port 0 lets the kernel
/// choose. `error` is errno when there is no socket in the result.
[[nodiscard]] Listener try_listen(const std::string& address, int port, int& error);

/// On 127.0.0.1, for ranks that are all on this machine; the kernel chooses the port.
[[nodiscard]] Listener listen_locally();

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

/// The addresses of a host name, to connect to at `port`; null when it is not known, and then
/// gai_strerror(error) says why. "localhost" is always the loopback interface (RFC 6761): neither
/// /etc/hosts nor a server is asked.
[[nodiscard]] AddressList resolve(const std::string& name, int port, int& error);

/// The numeric addresses of a host name or of a numeric address; none when it is not known.
[[nodiscard]] std::vector<std::string> addresses_of_name(const std::string& name);

/// The numeric address that a packet to the wide world would come from; nothing is sent.
[[nodiscard]] std::optional<std::string> address_of_default_route();

/// Of interfaces that are up, IPv4 first; no loopback and no link-local ones.
[[nodiscard]] std::vector<std::string> addresses_of_interfaces();

/// Numeric, without the port; empty when it is no internet address.
[[nodiscard]] std::string address_text(const sockaddr& address);
[[nodiscard]] bool is_loopback(const std::string& numeric_address);
[[nodiscard]] std::string host_name();

} // namespace reckon
