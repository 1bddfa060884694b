// SPDX-License-Identifier: Apache-2.0
#include "movers/fabric_ports.hpp"

#include "core/error.hpp"
#include "core/split.hpp"
#include "movers/handle.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>

namespace reckon {
namespace {

/// "127.0.0.1", "fe80::1"; empty for other kinds of address.
std::string address_text(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address != nullptr && address->sa_family == AF_INET) {
    inet_ntop(AF_INET, &reinterpret_cast<const sockaddr_in*>(address)->sin_addr, text.data(),
              text.size());
  } else if (address != nullptr && address->sa_family == AF_INET6) {
    inet_ntop(AF_INET6, &reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr, text.data(),
              text.size());
  }
  return text.data();
}

/// One address of an interface.
struct InterfaceAddress {
  std::string interface, ip;
  bool carrier = false;
};

std::vector<InterfaceAddress> interface_addresses() {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    fail_errno("getifaddrs", errno);
  }
  const UniqueHandle<ifaddrs, &::freeifaddrs> owner(list);
  std::vector<InterfaceAddress> found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    found.push_back({entry->ifa_name, address_text(entry->ifa_addr),
                     (entry->ifa_flags & static_cast<unsigned>(IFF_RUNNING)) != 0});
  }
  return found;
}

} // namespace

std::string ip_of(const fi_info& info) {
  const bool ip = info.src_addr != nullptr &&
                  (info.addr_format == FI_SOCKADDR_IN || info.addr_format == FI_SOCKADDR_IN6 ||
                   info.addr_format == FI_SOCKADDR);
  return ip ? address_text(static_cast<const sockaddr*>(info.src_addr)) : std::string();
}

bool is_loopback_ip(const std::string& ip) {
  return ip.rfind("127.", 0) == 0 || ip == "::1";
}

bool is_link_local(const std::string& ip) {
  return ip.rfind("fe80", 0) == 0;
}

std::string name_of(const fi_info& info) {
  const std::string ip = ip_of(info);
  return ip.empty() ? std::string(info.domain_attr->name) : ip;
}

std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> words = split(list, ",");
  if (std::ranges::count(words, "") > 0) {
    fail(ErrorKind::usage,
         fmt::format("RECKON_FABRIC_ADDRESS is '{}'; separate names by single commas", list));
  }
  return words;
}

const fi_info* info_of_port(const std::vector<const fi_info*>& infos, const std::string& port) {
  const std::vector<InterfaceAddress> addresses = interface_addresses();
  const auto found = std::ranges::find_if(infos, [&](const fi_info* info) {
    const std::string ip = ip_of(*info);
    return ip == port || info->domain_attr->name == port ||
           std::ranges::any_of(addresses, [&](const InterfaceAddress& address) {
             return !ip.empty() && address.ip == ip && address.interface == port;
           });
  });
  return found == infos.end() ? nullptr : *found;
}

std::vector<std::string> ports_with_carrier(const std::vector<const fi_info*>& infos) {
  const std::vector<InterfaceAddress> addresses = interface_addresses();
  std::vector<std::string> names;
  for (const fi_info* info : infos) {
    const std::string ip = ip_of(*info);
    const bool device_down = info->nic != nullptr && info->nic->link_attr != nullptr &&
                             info->nic->link_attr->state == FI_LINK_DOWN;
    const bool no_carrier = std::ranges::any_of(addresses, [&](const InterfaceAddress& address) {
      return !ip.empty() && address.ip == ip && !address.carrier;
    });
    const std::string name = info->domain_attr->name;
    if (!device_down && !no_carrier && !is_loopback_ip(ip) && !is_link_local(ip) &&
        std::ranges::find(names, name) == names.end()) {
      names.push_back(name);
    }
  }
  return names;
}

} // namespace reckon
