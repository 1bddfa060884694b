// SPDX-License-Identifier: Apache-2.0
#include "launch/sockets.hpp"

#include "core/clock.hpp"
#include "core/error.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <poll.h>
#include <unistd.h>

namespace reckon {
namespace {

/// getaddrinfo with an owner; null when it fails.
AddressList look_up(const char* name, int port, int flags, int& error) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = flags;
  addrinfo* found = nullptr;
  error = getaddrinfo(name, std::to_string(port).c_str(), &hints, &found);
  return {error == 0 ? found : nullptr, &freeaddrinfo};
}

socklen_t length_of(const sockaddr& address) {
  return address.sa_family == AF_INET ? sizeof(sockaddr_in) : sizeof(sockaddr_in6);
}

} // namespace

AddressList resolve(const std::string& name, int port, int& error) {
  return look_up(name == "localhost" ? nullptr : name.c_str(), port, 0, error);
}

std::string address_text(const sockaddr& address) {
  std::array<char, NI_MAXHOST> text{};
  if ((address.sa_family != AF_INET && address.sa_family != AF_INET6) ||
      getnameinfo(&address, length_of(address), text.data(), text.size(), nullptr, 0,
                  NI_NUMERICHOST) != 0) {
    return "";
  }
  return text.data();
}

std::vector<std::string> addresses_of_name(const std::string& name) {
  std::vector<std::string> texts;
  int error = 0;
  const AddressList found = resolve(name, 0, error);
  for (const addrinfo* a = found.get(); a != nullptr; a = a->ai_next) {
    texts.push_back(address_text(*a->ai_addr));
  }
  return texts;
}

std::optional<std::string> address_of_default_route() {
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  int error = 0;
  const AddressList far = resolve("192.0.2.1", 9, error); // TEST-NET-1: nobody has it
  sockaddr_storage own{};
  socklen_t length = sizeof own;
  auto* const address = reinterpret_cast<sockaddr*>(&own);
  if (!socket || !far || ::connect(socket.get(), far->ai_addr, far->ai_addrlen) != 0 ||
      ::getsockname(socket.get(), address, &length) != 0) {
    return std::nullopt;
  }
  return address_text(*address);
}

std::vector<std::string> addresses_of_interfaces() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    fail_errno("getifaddrs", errno);
  }
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owner(list, &freeifaddrs);
  std::vector<std::string> texts;
  for (const int family : {AF_INET, AF_INET6}) {
    for (const ifaddrs* i = list; i != nullptr; i = i->ifa_next) {
      if (i->ifa_addr == nullptr || i->ifa_addr->sa_family != family ||
          (i->ifa_flags & IFF_UP) == 0 || (i->ifa_flags & IFF_LOOPBACK) != 0) {
        continue;
      }
      const std::string text = address_text(*i->ifa_addr);
      if (!text.empty() && text.find('%') == std::string::npos) { // fe80::...%eth0
        texts.push_back(text);
      }
    }
  }
  return texts;
}

Listener try_listen(const std::string& address, int port, int& error) {
  const AddressList found = look_up(address.empty() ? nullptr : address.c_str(), port,
                                    AI_PASSIVE | AI_NUMERICHOST, error);
  error = EADDRNOTAVAIL;
  for (const addrinfo* a = found.get(); a != nullptr; a = a->ai_next) {
    Fd socket(::socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, a->ai_protocol));
    const int on = 1;
    sockaddr_storage own{};
    socklen_t length = sizeof own;
    if (socket && ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) == 0 &&
        ::bind(socket.get(), a->ai_addr, a->ai_addrlen) == 0 && ::listen(socket.get(), 1024) == 0 &&
        ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&own), &length) == 0) {
      const in_port_t chosen = own.ss_family == AF_INET
                                   ? reinterpret_cast<const sockaddr_in&>(own).sin_port
                                   : reinterpret_cast<const sockaddr_in6&>(own).sin6_port;
      return {std::move(socket), ntohs(chosen)};
    }
    error = errno;
  }
  return {};
}

Listener listen_locally() {
  int error = 0;
  Listener listener = try_listen("127.0.0.1", 0, error);
  if (!listener.socket) {
    fail_errno("cannot listen on 127.0.0.1", error);
  }
  return listener;
}

bool is_loopback(const std::string& numeric_address) {
  return numeric_address.rfind("127.", 0) == 0 || numeric_address == "::1";
}

int poll_timeout_ms(std::int64_t deadline_ns) {
  const std::int64_t left = (deadline_ns - monotonic_ns()) / 1'000'000;
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 100));
}

Fd connect_to(const addrinfo& place, std::int64_t deadline_ns, int& error,
              const std::function<void()>& may_stop) {
  Fd socket(::socket(place.ai_family, place.ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                     place.ai_protocol));
  if (!socket) {
    error = errno;
    return {};
  }
  if (::connect(socket.get(), place.ai_addr, place.ai_addrlen) == 0) {
    return socket;
  }
  error = errno;
  while (error == EINPROGRESS || error == EINTR) {
    pollfd polled{socket.get(), POLLOUT, 0};
    const int ready = ::poll(&polled, 1, poll_timeout_ms(deadline_ns));
    may_stop();
    if (ready > 0) {
      socklen_t length = sizeof error;
      ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
      if (error == 0) {
        return socket;
      }
    } else if (monotonic_ns() > deadline_ns) {
      error = ETIMEDOUT;
    }
  }
  return {};
}

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

} // namespace reckon
