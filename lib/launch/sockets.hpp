// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/file.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <netdb.h>
#include <optional>
#include <string>
#include <sys/socket.h>
#include <vector>

namespace reckon {

/// A listening socket and its port.
struct Listener {
  Fd socket;
  int port = 0;
};

/// Listens on a numeric address, all of this machine's if empty; with port 0 the kernel chooses.
/// `error` is errno when the result has no socket.
[[nodiscard]] Listener try_listen(const std::string& address, int port, int& error);

/// On 127.0.0.1, for ranks that are all on this machine; the kernel chooses the port.
[[nodiscard]] Listener listen_locally();

using AddressList = std::unique_ptr<addrinfo, decltype(&freeaddrinfo)>;

/// The addresses of a host name, to connect to at `port`; null for an unknown name, with the reason
/// in gai_strerror(error). "localhost" is always the loopback interface (RFC 6761): neither
/// /etc/hosts nor a server is asked.
[[nodiscard]] AddressList resolve(const std::string& name, int port, int& error);

/// A connection to that place, or none and errno's number in `error`. Asks ten times a second
/// whether to stop, by a call that throws then.
[[nodiscard]] Fd connect_to(const addrinfo& place, std::int64_t deadline_ns, int& error,
                            const std::function<void()>& may_stop);

/// For poll(): the time left until a moment of monotonic_ns(), and 100 at most, so that a loop sees
/// an interrupt.
[[nodiscard]] int poll_timeout_ms(std::int64_t deadline_ns);

/// The numeric addresses of a host name or of a numeric address; empty for an unknown name.
[[nodiscard]] std::vector<std::string> addresses_of_name(const std::string& name);

/// The numeric address that a packet to the wide world would come from; nothing is sent.
[[nodiscard]] std::optional<std::string> address_of_default_route();

/// Addresses of interfaces that are up, IPv4 first; without loopback and link-local ones.
[[nodiscard]] std::vector<std::string> addresses_of_interfaces();

/// Numeric, without the port; empty for a socket without an internet address.
[[nodiscard]] std::string address_text(const sockaddr& address);
[[nodiscard]] bool is_loopback(const std::string& numeric_address);
[[nodiscard]] std::string host_name();

} // namespace reckon
