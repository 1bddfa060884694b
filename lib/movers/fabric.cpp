// SPDX-License-Identifier: Apache-2.0
#include "movers/fabric.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/json.hpp"
#include "movers/handle.hpp"

#include <fmt/format.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <map>
#include <optional>
#include <thread>

#include <arpa/inet.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace reckon {
namespace {

using namespace std::chrono_literals;

inline constexpr auto k_close_fid = [](auto* handle) noexcept { return fi_close(&handle->fid); };
using FiInfo = UniqueHandle<fi_info, &fi_freeinfo>;
using FiFabric = UniqueHandle<fid_fabric, k_close_fid>;
using FiDomain = UniqueHandle<fid_domain, k_close_fid>;
using FiAv = UniqueHandle<fid_av, k_close_fid>;
using FiCq = UniqueHandle<fid_cq, k_close_fid>;
using FiEp = UniqueHandle<fid_ep, k_close_fid>;
using FiMr = UniqueHandle<fid_mr, k_close_fid>;

constexpr std::uint32_t k_api = FI_VERSION(1, 17);
constexpr std::size_t k_max_in_flight = 512;
constexpr std::size_t k_cq_entries =
    4096;                             // below the 32767 of Soft-RoCE with room for rxm's factor
constexpr auto k_connect_limit = 60s; // without any sign of life from any peer

/// Negative status from libfabric -> Error{operation} with the attempt and libfabric's own words.
void check_fi(ssize_t status, const std::string& attempt, const std::string& remedy = {}) {
  if (status < 0) {
    fail(ErrorKind::operation,
         fmt::format("{}: {}{}", attempt, fi_strerror(static_cast<int>(-status)), remedy));
  }
}

/// Providers that can do it on paper and are left out all the same.
std::optional<std::string> left_out(const std::string& provider) {
  if (provider == "sockets") {
    return "deprecated by libfabric, and stops moving after some hundred writes with data";
  }
  if (provider.find("ofi_rxd") != std::string::npos) {
    return "reliability in software over datagrams: meant for trials";
  }
  if (provider == "net" || provider.rfind("net;", 0) == 0) {
    return "libfabric's experimental copy of tcp";
  }
  if (provider == "tcp") { // libfabric 1.18 and later have it beside tcp;ofi_rxm
    return "the same connections as tcp;ofi_rxm, whose name is kept so that profiles stay "
           "comparable";
  }
  return std::nullopt;
}

bool over_verbs(const std::string& provider) {
  return provider.rfind("verbs", 0) == 0;
}

/// A device that no hardware stands behind has no `device` beside its name in sysfs.
bool has_soft_rdma_device() {
  std::error_code ignored; // without RDMA there is no such folder
  const std::filesystem::directory_iterator devices("/sys/class/infiniband", ignored), end;
  return std::any_of(devices, end, [&](const auto& entry) {
    return !std::filesystem::exists(entry.path() / "device", ignored);
  });
}

/// ofi_rxm asks verbs for completion queues of 256 entries for each of FI_UNIVERSE_SIZE peers, by
/// default 256, and Soft-RoCE has 32767 at most: fi_enable fails with 128 peers or more (libfabric
/// 1.17). libfabric reads the variable at the first fi_getinfo of the process. What the user has
/// set stays.
void suit_soft_rdma(const std::string& transport) {
  if (over_verbs(transport) && has_soft_rdma_device()) {
    ::setenv("FI_UNIVERSE_SIZE", "127", 0);
  }
}

/// All that libfabric offers with what we need and `more` capabilities; null: nothing.
FiInfo query(std::uint64_t more = 0) {
  // ofi_rxm fills 16 KiB buffers for messages at each endpoint, which takes about 0.1 s and 30 MiB
  // a lane (measured, libfabric 1.17 on tcp). Our messages are 8 bytes, one for each peer; writes
  // use none of these buffers. libfabric reads the variable at the first fi_getinfo of the process.
  // What the user has set stays.
  static const int once = ::setenv("FI_OFI_RXM_BUFFER_SIZE", "1024", 0);
  static_cast<void>(once);
  FiInfo hints(fi_allocinfo());
  if (!hints) {
    fail(ErrorKind::operation, "fi_allocinfo: out of memory");
  }
  hints->caps = FI_MSG | FI_RMA | more;
  hints->mode = FI_CONTEXT | FI_CONTEXT2; // slots hold a fi_context2
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode =
      FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  hints->domain_attr->threading = FI_THREAD_DOMAIN; // a lane is used by one thread
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  // We poll or wait all the time a transfer runs; a progress thread of the provider would only
  // compete for the core.
  hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
  fi_info* found = nullptr;
  const int status = fi_getinfo(k_api, nullptr, nullptr, 0, hints.get(), &found);
  if (status == -FI_ENODATA) {
    return nullptr;
  }
  check_fi(status, "fi_getinfo");
  return FiInfo(found);
}

std::string provider_of(const fi_info& info) {
  return info.fabric_attr->prov_name;
}

std::vector<const fi_info*> named(const fi_info* list, const std::string& provider) {
  std::vector<const fi_info*> found;
  for (const fi_info* info = list; info != nullptr; info = info->next) {
    if (provider_of(*info) == provider) {
      found.push_back(info);
    }
  }
  return found;
}

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

bool has_ip_address(const fi_info& info) {
  return info.src_addr != nullptr &&
         (info.addr_format == FI_SOCKADDR_IN || info.addr_format == FI_SOCKADDR_IN6 ||
          info.addr_format == FI_SOCKADDR);
}

std::string ip_of(const fi_info& info) {
  return has_ip_address(info) ? address_text(static_cast<const sockaddr*>(info.src_addr))
                              : std::string();
}

bool is_loopback(const std::string& ip) {
  return ip.rfind("127.", 0) == 0 || ip == "::1";
}

/// "a,b" -> a, b. Throws Error{usage} when one is empty.
std::vector<std::string> words_of(const std::string& list) {
  std::vector<std::string> words;
  for (std::size_t at = 0; at <= list.size();) {
    const std::size_t end = std::min(list.find(',', at), list.size());
    words.push_back(list.substr(at, end - at));
    if (words.back().empty()) {
      fail(ErrorKind::usage,
           fmt::format("RECKON_FABRIC_ADDRESS is '{}'; separate names by single commas", list));
    }
    at = end + 1;
  }
  return words;
}

/// The addresses of the interface of that name.
std::vector<std::string> addresses_of(const std::string& interface) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    fail_errno("getifaddrs", errno);
  }
  const UniqueHandle<ifaddrs, &::freeifaddrs> owner(list);
  std::vector<std::string> found;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_name == interface) {
      found.push_back(address_text(entry->ifa_addr));
    }
  }
  return found;
}

/// Who shares our loopback interface: the boot and the network namespace.
std::string network_id() {
  std::string boot = read_file("/proc/sys/kernel/random/boot_id");
  boot.erase(boot.find_last_not_of('\n') + 1);
  struct stat status {};
  if (::stat("/proc/self/ns/net", &status) != 0) {
    return boot;
  }
  return fmt::format("{} {}", boot, status.st_ino);
}

std::string to_hex(const std::vector<unsigned char>& bytes) {
  std::string text;
  for (const unsigned char byte : bytes) {
    text += fmt::format("{:02x}", byte);
  }
  return text;
}

std::uint64_t hex_number(const JsonView& view) {
  const std::string text = view.string();
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (error != std::errc() || end != text.data() + text.size()) {
    view.fail("not a hexadecimal number");
  }
  return value;
}

std::vector<unsigned char> from_hex(const JsonView& view) {
  const std::string text = view.string();
  std::vector<unsigned char> bytes(text.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    const auto [end, error] = std::from_chars(&text[2 * i], &text[2 * i] + 2, bytes[i], 16);
    if (error != std::errc() || end != &text[2 * i] + 2) {
      view.fail("not hexadecimal");
    }
  }
  if (bytes.empty() || text.size() % 2 != 0) {
    view.fail("not hexadecimal");
  }
  return bytes;
}

/// A peer's registered memory as one of its lanes registered it.
struct RemoteBuffer {
  std::uint64_t base = 0, key = 0, bytes = 0;
};

struct RemoteLane {
  std::vector<unsigned char> name;
  std::vector<RemoteBuffer> buffers; // the last one is the signal page
};

/// What peers say to each other over a new connection.
struct Hello {
  std::uint32_t magic = 0x52434b4e;
  std::uint32_t rank = 0;
};

/// A posted operation. The context is first: libfabric hands its address back.
struct Slot {
  fi_context2 context{};
  std::uint64_t id = 0;
  std::uint32_t next_free = 0;
};

constexpr std::size_t k_page = 4096;

class FabricLane final : public MoverLane {
public:
  FabricLane(const fi_info& info, const std::vector<Mapping>& buffers)
      : m_info(fi_dupinfo(&info)), m_provider(provider_of(info)), m_buffers(buffers),
        m_signal(-1, k_page, "signal page") {
    if (!m_info) {
      fail(ErrorKind::operation, "fi_dupinfo: out of memory");
    }
    fid_fabric* fabric = nullptr;
    check_fi(fi_fabric(m_info->fabric_attr, &fabric, nullptr), attempt("fi_fabric"));
    m_fabric.reset(fabric);
    m_info->domain_attr->threading = FI_THREAD_DOMAIN;
    m_info->tx_attr->size = std::min(m_info->tx_attr->size, k_max_in_flight);
    m_info->rx_attr->size = std::min<std::size_t>(m_info->rx_attr->size, 256);
    fid_domain* domain = nullptr;
    check_fi(fi_domain(fabric, m_info.get(), &domain, nullptr), attempt("fi_domain"));
    m_domain.reset(domain);
    open_queue();
    fi_av_attr av_attributes{};
    av_attributes.type =
        m_info->domain_attr->av_type == FI_AV_UNSPEC ? FI_AV_TABLE : m_info->domain_attr->av_type;
    fid_av* av = nullptr;
    check_fi(fi_av_open(domain, &av_attributes, &av, nullptr), attempt("fi_av_open"));
    m_av.reset(av);
    fid_ep* ep = nullptr;
    check_fi(fi_endpoint(domain, m_info.get(), &ep, nullptr), attempt("fi_endpoint"));
    m_ep.reset(ep);
    check_fi(fi_ep_bind(ep, &m_av->fid, 0), attempt("fi_ep_bind"));
    check_fi(fi_ep_bind(ep, &m_cq->fid, FI_TRANSMIT | FI_RECV), attempt("fi_ep_bind"));
    check_fi(fi_enable(ep), attempt("fi_enable"),
             over_verbs(m_provider)
                 ? "; Soft-RoCE has short completion queues: set FI_UNIVERSE_SIZE to 127 or less"
                 : "");
    for (const Mapping& buffer : m_buffers) {
      m_regions.push_back(add_region(buffer.bytes()));
    }
    m_signal_region = add_region(m_signal.bytes());
    m_slots.resize(std::min(k_max_in_flight, m_info->tx_attr->size));
    for (std::size_t i = 0; i < m_slots.size(); ++i) {
      m_slots[i].next_free = static_cast<std::uint32_t>(i) + 1;
    }
  }

  FabricLane(const FabricLane&) = delete;
  FabricLane& operator=(const FabricLane&) = delete;

  /// ofi_rxm reads what verbs has received when a connection is already closed, and crashes on it
  /// (libfabric 1.17, still in 2.4: its issue 11828). Peers that are done write no more, but
  /// ofi_rxm itself tells them how much they may send; so read all of that first, which takes one
  /// call for each message and one for each of them that brings us nothing.
  ~FabricLane() override {
    std::array<Completion, 16> out;
    constexpr int k_most = 10'000; // a peer may never stop
    const int quiet_enough = over_verbs(m_provider) ? 64 : 0;
    for (int quiet = 0, calls = 0; quiet < quiet_enough && calls < k_most; ++calls) {
      quiet = read_queue(out) == 0 ? quiet + 1 : 0;
    }
  }

  /// Our endpoint's name and the keys of our memory.
  Json address() const {
    Json regions = Json::array();
    const auto add = [&](const FiMr& region, std::span<std::byte> bytes) {
      const bool by_address = (m_info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
      regions.push_back(
          {{"base",
            fmt::format("{:x}", by_address ? reinterpret_cast<std::uintptr_t>(bytes.data()) : 0)},
           {"key", fmt::format("{:x}", region ? fi_mr_key(region.get()) : 0)},
           {"bytes", bytes.size()}});
    };
    for (std::size_t i = 0; i < m_buffers.size(); ++i) {
      add(m_regions[i], m_buffers[i].bytes());
    }
    add(m_signal_region, m_signal.bytes());
    return {{"name", to_hex(name())}, {"buffers", regions}};
  }

  void insert(std::size_t self, std::vector<RemoteLane> peers) {
    m_self = self;
    m_peers = std::move(peers);
    m_addresses.assign(m_peers.size(), FI_ADDR_UNSPEC);
    for (std::size_t peer = 0; peer < m_peers.size(); ++peer) {
      if (peer != self && fi_av_insert(m_av.get(), m_peers[peer].name.data(), 1, &m_addresses[peer],
                                       0, nullptr) != 1) {
        fail(ErrorKind::operation,
             fmt::format("fi_av_insert({}, rank {}): the address was refused", m_provider, peer));
      }
    }
    // A receive for each peer's hello, and our own hello at the end.
    m_hello_memory = Mapping(-1, sizeof(Hello) * (m_peers.size() + 1), "hello messages");
    m_hello_region = add_region(m_hello_memory.bytes());
    m_hello_slots.resize(2 * m_peers.size());
    m_greeted.assign(m_peers.size(), 0);
    m_answered.assign(m_peers.size(), 0);
    hellos()[m_peers.size()].magic = Hello{}.magic;
    hellos()[m_peers.size()].rank = static_cast<std::uint32_t>(self);
    for (std::size_t peer = 0; peer < m_peers.size(); ++peer) {
      if (peer == self) {
        m_greeted[peer] = m_answered[peer] = 1;
        continue;
      }
      check_fi(fi_recv(m_ep.get(), &hellos()[peer], sizeof(Hello), desc(m_hello_region),
                       FI_ADDR_UNSPEC, &m_hello_slots[peer].context),
               attempt("fi_recv"));
    }
  }

  /// One non-blocking step of making the connections; true when something moved. The higher rank
  /// speaks first and the lower one answers over the connection that this made: both calling at
  /// once would make the provider drop one.
  bool greet() {
    bool moved = false;
    for (std::size_t peer = 0; peer < m_peers.size(); ++peer) {
      if (m_greeted[peer] != 0 || (peer > m_self && m_answered[peer] == 0)) {
        continue;
      }
      const std::size_t own = m_peers.size();
      const ssize_t status =
          fi_send(m_ep.get(), &hellos()[own], sizeof(Hello), desc(m_hello_region),
                  m_addresses[peer], &m_hello_slots[own + peer].context);
      if (status == -FI_EAGAIN) {
        continue;
      }
      check_fi(status, fmt::format("fi_send({}, rank {})", m_provider, peer));
      m_greeted[peer] = 1;
      ++m_hellos_under_way;
      moved = true;
    }
    std::array<Completion, 16> out;
    const std::size_t count = read_queue(out);
    for (std::size_t i = 0; i < count; ++i) {
      if (out[i].kind == Completion::Kind::failed) {
        fail(ErrorKind::operation, fmt::format("connect: {}", m_error));
      }
      m_early.push_back(out[i]); // a peer that is ready before us may write already
    }
    return moved || m_read_any;
  }

  bool connected() const {
    return m_hellos_under_way == 0 && missing() < 0 &&
           std::find(m_greeted.begin(), m_greeted.end(), 0) == m_greeted.end();
  }

  /// The lowest rank that we have not heard of; -1: none.
  int missing() const {
    const auto it = std::find(m_answered.begin(), m_answered.end(), 0);
    return it == m_answered.end() ? -1 : static_cast<int>(it - m_answered.begin());
  }

  /// The shm provider gives its segment a name in /dev/shm and takes it away in fi_close, which a
  /// killed process never reaches. Once every peer has mapped the segment nobody needs the name.
  /// Its signal handlers unlink it as well.
  void forget_name() {
    constexpr std::string_view k_scheme = "fi_shm://";
    const std::vector<unsigned char> bytes = name();
    const std::string text(bytes.begin(), std::find(bytes.begin(), bytes.end(), 0));
    if (m_provider == "shm" && text.rfind(k_scheme, 0) == 0) {
      ::shm_unlink(("/" + text.substr(k_scheme.size())).c_str());
    }
  }

  bool write(int peer_rank, Slice source, Slice destination, std::uint64_t bytes, std::uint32_t tag,
             std::uint64_t id) noexcept override {
    if (m_free == m_slots.size()) {
      return false;
    }
    const auto peer = static_cast<std::size_t>(peer_rank);
    if (peer_rank < 0 || peer >= m_peers.size() || peer == m_self) {
      return refuse("no such peer", id);
    }
    const std::vector<RemoteBuffer>& theirs = m_peers[peer].buffers;
    const FiMr* region = &m_signal_region;
    const std::byte* from = m_signal.bytes().data();
    RemoteBuffer to = theirs.back();
    if (bytes != 0) { // a bare signal goes from signal page to signal page, whatever the slices are
      if (source.buffer >= m_buffers.size() || destination.buffer + 1 >= theirs.size() ||
          bytes > m_info->ep_attr->max_msg_size ||
          !fits(source.offset, bytes, m_buffers[source.buffer].bytes().size()) ||
          !fits(destination.offset, bytes, theirs[destination.buffer].bytes)) {
        return refuse(
            "the write reaches outside its buffers or is longer than the provider can move", id);
      }
      region = &m_regions[source.buffer];
      from = &m_buffers[source.buffer].bytes()[source.offset];
      to = theirs[destination.buffer];
      to.base += destination.offset;
    }
    Slot& slot = m_slots[m_free];
    const ssize_t status = fi_writedata(m_ep.get(), from, bytes, desc(*region), tag,
                                        m_addresses[peer], to.base, to.key, &slot.context);
    if (status == -FI_EAGAIN) {
      return false;
    }
    if (status != 0) {
      m_error = fmt::format("fi_writedata({}, rank {}): {}", m_provider, peer,
                            fi_strerror(static_cast<int>(-status)));
      m_refused.push_back(id);
      return true;
    }
    slot.id = id;
    m_free = slot.next_free;
    return true;
  }

  std::size_t poll(std::span<Completion> out) noexcept override {
    std::size_t count = 0;
    while (count < out.size() && !m_refused.empty()) {
      out[count++] = {Completion::Kind::failed, 0, m_refused.front()};
      m_refused.erase(m_refused.begin());
    }
    while (count < out.size() && !m_early.empty()) {
      out[count++] = m_early.front();
      m_early.erase(m_early.begin());
    }
    return count + (count < out.size() ? read_queue(out.subspan(count)) : 0);
  }

  void wait(std::chrono::milliseconds limit) noexcept override {
    if (limit.count() <= 0 || !m_refused.empty() || !m_early.empty()) {
      return;
    }
    if (m_wait_fd < 0) {
      nap(limit);
      return;
    }
    m_nap = k_first_nap;
    fid* fids[] = {&m_cq->fid};
    if (fi_trywait(m_fabric.get(), fids, 1) == FI_SUCCESS) { // else the queue has something already
      pollfd polled{m_wait_fd, POLLIN, 0};
      constexpr std::int64_t k_longest = 1'000'000'000;
      static_cast<void>(
          ::poll(&polled, 1, static_cast<int>(std::min<std::int64_t>(limit.count(), k_longest))));
    }
  }

  std::string error() const override { return m_error; }

private:
  /// The endpoint's address as peers put it into their address vectors.
  std::vector<unsigned char> name() const {
    std::vector<unsigned char> bytes(256);
    std::size_t length = bytes.size();
    int status = fi_getname(&m_ep->fid, bytes.data(), &length);
    if (status == -FI_ETOOSMALL) {
      bytes.resize(length);
      status = fi_getname(&m_ep->fid, bytes.data(), &length);
    }
    check_fi(status, attempt("fi_getname"));
    bytes.resize(length);
    return bytes;
  }

  std::string attempt(const char* call) const { return fmt::format("{}({})", call, m_provider); }

  /// With a file descriptor to sleep on where the provider can.
  void open_queue() {
    fi_cq_attr attributes{};
    attributes.size = k_cq_entries;
    attributes.format = FI_CQ_FORMAT_DATA;
    attributes.wait_obj = FI_WAIT_FD;
    fid_cq* cq = nullptr;
    int status = fi_cq_open(m_domain.get(), &attributes, &cq, nullptr);
    if (status == -FI_ENOSYS || status == -FI_EINVAL || status == -FI_EOPNOTSUPP) {
      attributes.wait_obj = FI_WAIT_NONE;
      status = fi_cq_open(m_domain.get(), &attributes, &cq, nullptr);
    }
    check_fi(status, attempt("fi_cq_open"));
    m_cq.reset(cq);
    if (attributes.wait_obj == FI_WAIT_FD) {
      check_fi(fi_control(&cq->fid, FI_GETWAIT, &m_wait_fd), attempt("fi_control(FI_GETWAIT)"));
    }
  }

  FiMr add_region(std::span<std::byte> bytes) {
    if (bytes.empty()) {
      return nullptr;
    }
    // The provider chooses the key where it must; elsewhere keys have to differ within the domain.
    const std::uint64_t key = ++m_last_key;
    fid_mr* region = nullptr;
    check_fi(fi_mr_reg(m_domain.get(), bytes.data(), bytes.size(),
                       FI_SEND | FI_RECV | FI_WRITE | FI_REMOTE_WRITE, 0, key, 0, &region, nullptr),
             fmt::format("fi_mr_reg({}, {} bytes)", m_provider, bytes.size()),
             over_verbs(m_provider) ? "; locked memory may be limited: see ulimit -l" : "");
    FiMr owner(region);
    if ((m_info->domain_attr->mr_mode & FI_MR_ENDPOINT) != 0) {
      check_fi(fi_mr_bind(region, &m_ep->fid, 0), attempt("fi_mr_bind"));
      check_fi(fi_mr_enable(region), attempt("fi_mr_enable"));
    }
    return owner;
  }

  static void* desc(const FiMr& region) noexcept {
    return region ? fi_mr_desc(region.get()) : nullptr;
  }

  Hello* hellos() { return reinterpret_cast<Hello*>(m_hello_memory.bytes().data()); }

  bool refuse(const char* why, std::uint64_t id) noexcept {
    m_error = fmt::format("write({}): {}", m_provider, why);
    m_refused.push_back(id);
    return true;
  }

  /// Takes a slot of ours back; empty when the context is none of our writes.
  std::optional<std::uint64_t> release(const void* context) noexcept {
    const auto* slot = static_cast<const Slot*>(context);
    if (context == nullptr || std::less<>()(slot, m_slots.data()) ||
        !std::less<>()(slot, m_slots.data() + m_slots.size())) {
      return std::nullopt;
    }
    const auto index = static_cast<std::size_t>(slot - m_slots.data());
    m_slots[index].next_free = static_cast<std::uint32_t>(m_free);
    m_free = index;
    return m_slots[index].id;
  }

  std::size_t read_queue(std::span<Completion> out) noexcept {
    std::array<fi_cq_data_entry, 16> entries;
    m_read_any = false;
    const ssize_t read =
        fi_cq_read(m_cq.get(), entries.data(), std::min(out.size(), entries.size()));
    if (read == -FI_EAGAIN || read == 0) {
      return 0;
    }
    m_read_any = true;
    m_nap = k_first_nap;
    if (read < 0) {
      return read_error(read, out);
    }
    std::size_t count = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(read); ++i) {
      const fi_cq_data_entry& entry = entries[i];
      if ((entry.flags & FI_REMOTE_CQ_DATA) != 0) {
        out[count++] = {Completion::Kind::arrived, static_cast<std::uint32_t>(entry.data), 0};
      } else if (const auto id = release(entry.op_context)) {
        out[count++] = {Completion::Kind::sent, 0, *id};
      } else {
        take_hello(entry);
      }
    }
    return count;
  }

  void take_hello(const fi_cq_data_entry& entry) noexcept {
    if ((entry.flags & FI_RECV) == 0) {
      --m_hellos_under_way;
      return;
    }
    // Receives are matched in the order posted, so the one that got it tells nothing about who sent
    // it.
    const auto index =
        static_cast<std::size_t>(static_cast<Slot*>(entry.op_context) - m_hello_slots.data());
    const Hello& hello = hellos()[index];
    if (hello.magic == Hello{}.magic && hello.rank < m_answered.size()) {
      m_answered[hello.rank] = 1;
    }
  }

  std::size_t read_error(ssize_t status, std::span<Completion> out) noexcept {
    if (status != -FI_EAVAIL) {
      m_error =
          fmt::format("fi_cq_read({}): {}", m_provider, fi_strerror(static_cast<int>(-status)));
      out[0] = {Completion::Kind::failed, 0, 0};
      return 1;
    }
    fi_cq_err_entry entry{};
    std::array<char, 256> text{};
    if (fi_cq_readerr(m_cq.get(), &entry, 0) != 1) {
      return 0;
    }
    const char* words =
        fi_cq_strerror(m_cq.get(), entry.prov_errno, entry.err_data, text.data(), text.size());
    m_error =
        fmt::format("completion({}): {}{}{}", m_provider, fi_strerror(entry.err),
                    words != nullptr && *words != '\0' ? ": " : "", words != nullptr ? words : "");
    const auto id = release(entry.op_context);
    out[0] = {Completion::Kind::failed, 0, id.value_or(0)};
    return 1;
  }

  /// Without a descriptor all that is left is to look, sleep, look: the first naps are short
  /// because a peer on another core answers soon, later ones longer because ranks may share the
  /// core.
  void nap(std::chrono::nanoseconds limit) noexcept {
    std::this_thread::sleep_for(std::min<std::chrono::nanoseconds>(limit, m_nap));
    m_nap = std::min<std::chrono::nanoseconds>(2 * m_nap, k_last_nap);
  }

  static constexpr std::chrono::nanoseconds k_first_nap = 50us, k_last_nap = 1ms;

  // In the order of creation: what was made from another closes before it.
  FiInfo m_info;
  std::string m_provider;
  const std::vector<Mapping>& m_buffers;
  Mapping m_signal;
  Mapping m_hello_memory;
  FiFabric m_fabric;
  FiDomain m_domain;
  FiCq m_cq;
  FiAv m_av;
  FiEp m_ep;
  std::uint64_t m_last_key = 0;
  std::vector<FiMr> m_regions;
  FiMr m_signal_region, m_hello_region;

  int m_wait_fd = -1;
  std::chrono::nanoseconds m_nap = k_first_nap;
  std::size_t m_self = 0;
  std::vector<RemoteLane> m_peers;
  std::vector<fi_addr_t> m_addresses;
  std::vector<Slot> m_slots;
  std::size_t m_free = 0;          // first free slot; m_slots.size(): none
  std::vector<Slot> m_hello_slots; // receives, then sends
  std::vector<char> m_greeted, m_answered;
  std::size_t m_hellos_under_way = 0;
  bool m_read_any = false;
  std::vector<Completion> m_early;
  std::vector<std::uint64_t> m_refused;
  std::string m_error = "no error";
};

class FabricMover final : public Mover {
public:
  FabricMover(const std::string& transport, const FabricEnvironment& environment)
      : m_transport(transport) {
    if (const auto reason = left_out(transport)) {
      fail(ErrorKind::unavailable, fmt::format("{}: {}", transport, *reason));
    }
    suit_soft_rdma(transport);
    m_all = query();
    choose(environment.address);
    const fi_info& info = *m_choices.front().infos.front();
    m_capabilities.name = transport;
    // Providers name this capability only to those who ask for it.
    const FiInfo far = query(FI_REMOTE_COMM);
    m_capabilities.crosses_machines = !named(far.get(), transport).empty();
    m_capabilities.max_write_bytes = info.ep_attr->max_msg_size;
    m_capabilities.max_in_flight = std::min(k_max_in_flight, info.tx_attr->size);
  }

  FabricMover(const FabricMover&) = delete;
  FabricMover& operator=(const FabricMover&) = delete;

  /// After an error peers may still be writing, and ~FabricLane cannot read ahead of them; over tcp
  /// fi_close crashes as well when writes were under way and the peer is dead or cut off. The
  /// process is about to end: what it has open is left to the kernel, which closes it in one go.
  /// Only shm leaves something that the kernel does not know of, a name in /dev/shm.
  ~FabricMover() override {
    if (std::uncaught_exceptions() > 0 && m_transport != "shm") {
      for (Choice& choice : m_choices) {
        for (auto& lane : choice.lanes) {
          static_cast<void>(lane.release());
        }
      }
    }
  }

  const MoverCapabilities& capabilities() const noexcept override { return m_capabilities; }

  std::span<std::byte> allocate(std::uint64_t bytes) override {
    if (!m_choices.front().lanes.empty()) {
      fail(ErrorKind::internal, fmt::format("allocate({}): after open()", m_transport));
    }
    m_buffers.emplace_back(-1, bytes, fmt::format("{} bytes", bytes));
    return m_buffers.back().bytes();
  }

  void open(int lanes) override {
    if (lanes < 1) {
      fail(ErrorKind::usage, fmt::format("open({}): {} lanes", m_transport, lanes));
    }
    for (Choice& choice : m_choices) {
      for (int lane = 0; lane < lanes; ++lane) {
        const fi_info* const info =
            choice.infos[static_cast<std::size_t>(lane) % choice.infos.size()];
        choice.lanes.push_back(std::make_unique<FabricLane>(*info, m_buffers));
      }
    }
  }

  std::string address() const override {
    Json choices = Json::array();
    for (const Choice& choice : m_choices) {
      Json lanes = Json::array();
      for (const auto& lane : choice.lanes) {
        lanes.push_back(lane->address());
      }
      choices.push_back({{"at", choice.at}, {"lanes", lanes}});
    }
    return Json{{"mover", m_transport}, {"network", network_id()}, {"choices", choices}}.dump();
  }

  void connect(int self, const std::vector<std::string>& addresses) override {
    const auto own = static_cast<std::size_t>(self);
    const std::string network = network_id();
    std::vector<Json> documents;
    bool one_network = true;
    for (std::size_t rank = 0; rank < addresses.size(); ++rank) {
      documents.push_back(parse_json(addresses[rank], name_of_address(rank)));
      const JsonView view(documents.back(), name_of_address(rank));
      view.only({"mover", "network", "choices"});
      if (view.at("mover").string() != m_transport) {
        fail(ErrorKind::operation, fmt::format("connect({}): rank {} uses {}", m_transport, rank,
                                               view.at("mover").string()));
      }
      one_network = one_network && view.at("network").string() == network;
    }
    // With two choices the loopback one stands first.
    Choice chosen =
        std::move(one_network || m_choices.size() == 1 ? m_choices.front() : m_choices.back());
    m_choices.clear();
    m_choices.push_back(std::move(chosen));
    Choice& choice = m_choices.front();
    if (!one_network && is_loopback(choice.at)) {
      fail(ErrorKind::unavailable,
           fmt::format("connect({}): the ranks are on more than one machine or network namespace, "
                       "and this one has only "
                       "{} to offer; set RECKON_FABRIC_ADDRESS to an address or interface that the "
                       "others reach",
                       m_transport, choice.at));
    }
    std::vector<std::vector<RemoteLane>> peers(choice.lanes.size(),
                                               std::vector<RemoteLane>(addresses.size()));
    for (std::size_t rank = 0; rank < addresses.size(); ++rank) {
      if (rank != own) {
        read_address(JsonView(documents[rank], name_of_address(rank)), rank, one_network, peers);
      }
    }
    for (std::size_t lane = 0; lane < choice.lanes.size(); ++lane) {
      choice.lanes[lane]->insert(own, std::move(peers[lane]));
    }
    greet_all(choice);
    for (auto& lane : choice.lanes) {
      lane->forget_name();
    }
  }

  MoverLane& lane(int index) override {
    return *m_choices.front().lanes.at(static_cast<std::size_t>(index));
  }

private:
  /// One way to bind: endpoints are opened for each, and connect() keeps one.
  struct Choice {
    std::vector<const fi_info*> infos; ///< lane i uses the i-th, in turn
    std::string at;                    ///< IP address; else the domain's name; of all infos
    std::vector<std::unique_ptr<FabricLane>> lanes;
  };

  static std::string name_of_address(std::size_t rank) {
    return fmt::format("address of rank {}", rank);
  }

  void choose(const std::string& wanted) {
    std::vector<const fi_info*> infos = named(m_all.get(), m_transport);
    if (infos.empty()) {
      fail(ErrorKind::unavailable,
           fmt::format("libfabric offers no provider {} here", m_transport));
    }
    const auto is_ip4 = [](const fi_info* info) {
      return ip_of(*info).find('.') != std::string::npos;
    };
    std::stable_partition(infos.begin(), infos.end(), is_ip4);
    const auto name_of = [](const fi_info* info) {
      const std::string ip = ip_of(*info);
      return ip.empty() ? std::string(info->domain_attr->name) : ip;
    };
    const auto take = [&](auto&& fits_choice) {
      const auto it = std::find_if(infos.begin(), infos.end(), fits_choice);
      if (it != infos.end()) {
        m_choices.push_back({{*it}, name_of(*it), {}});
      }
    };
    if (!wanted.empty() && std::any_of(infos.begin(), infos.end(),
                                       [](const fi_info* i) { return has_ip_address(*i); })) {
      Choice choice;
      for (const std::string& port : words_of(wanted)) {
        const std::vector<std::string> of_interface = addresses_of(port);
        const auto it = std::find_if(infos.begin(), infos.end(), [&](const fi_info* info) {
          return ip_of(*info) == port || info->domain_attr->name == port ||
                 std::find(of_interface.begin(), of_interface.end(), ip_of(*info)) !=
                     of_interface.end();
        });
        if (it == infos.end()) {
          fail(ErrorKind::unavailable,
               fmt::format("RECKON_FABRIC_ADDRESS {}: {} has no such address, interface or domain",
                           port, m_transport));
        }
        choice.infos.push_back(*it);
        choice.at += (choice.at.empty() ? "" : ",") + name_of(*it);
        m_capabilities.ports.push_back(port);
      }
      m_choices.push_back(std::move(choice));
      return;
    }
    take([&](const fi_info* info) { return is_loopback(ip_of(*info)); });
    const bool link_local_only = std::none_of(infos.begin(), infos.end(), [](const fi_info* info) {
      return !is_loopback(ip_of(*info)) && ip_of(*info).rfind("fe80", 0) != 0;
    });
    take([&](const fi_info* info) {
      const std::string ip = ip_of(*info);
      return !is_loopback(ip) && (link_local_only || ip.rfind("fe80", 0) != 0);
    });
  }

  void read_address(const JsonView& view, std::size_t rank, bool one_network,
                    std::vector<std::vector<RemoteLane>>& peers) const {
    const std::vector<JsonView> choices = view.at("choices").elements();
    if (choices.empty()) {
      view.fail("no endpoint");
    }
    const JsonView& choice = one_network ? choices.front() : choices.back();
    const std::vector<JsonView> lanes = choice.at("lanes").elements();
    if (lanes.size() != peers.size()) {
      fail(ErrorKind::operation, fmt::format("connect({}): rank {} has {} lanes, this rank {}",
                                             m_transport, rank, lanes.size(), peers.size()));
    }
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      RemoteLane& remote = peers[lane][rank];
      remote.name = from_hex(lanes[lane].at("name"));
      for (const JsonView& buffer : lanes[lane].at("buffers").elements()) {
        remote.buffers.push_back({hex_number(buffer.at("base")), hex_number(buffer.at("key")),
                                  buffer.at("bytes").count()});
      }
      if (remote.buffers.empty()) {
        view.fail("no signal page");
      }
    }
  }

  /// All lanes take turns: none may wait while a peer is busy with another lane.
  void greet_all(Choice& choice) const {
    auto last_sign = std::chrono::steady_clock::now();
    std::chrono::nanoseconds pause = 20us;
    for (;;) {
      bool moved = false, done = true;
      for (auto& lane : choice.lanes) {
        if (!lane->connected()) {
          moved = lane->greet() || moved;
          done = done && lane->connected();
        }
      }
      if (done) {
        return;
      }
      const auto now = std::chrono::steady_clock::now();
      if (moved) {
        last_sign = now;
        pause = 20us;
        continue;
      }
      if (now - last_sign > k_connect_limit) {
        for (std::size_t lane = 0; lane < choice.lanes.size(); ++lane) {
          if (!choice.lanes[lane]->connected()) {
            fail(ErrorKind::operation, fmt::format("connect({}): no answer from rank {} on lane {} "
                                                   "within {} s; from {}, is it reachable?",
                                                   m_transport, choice.lanes[lane]->missing(), lane,
                                                   k_connect_limit.count(), choice.at));
          }
        }
      }
      meanwhile();
      std::this_thread::sleep_for(pause);
      pause = std::min<std::chrono::nanoseconds>(2 * pause, 1ms);
    }
  }

  std::string m_transport;
  MoverCapabilities m_capabilities;
  FiInfo m_all;
  std::vector<Mapping> m_buffers; // before the lanes, which register them
  std::vector<Choice> m_choices;
};

/// A line for each provider: its name, or "name: why it is left out".
std::string describe_providers() {
  std::map<std::string, std::string> found; // name -> why not; empty: take it
  const FiInfo all = query();
  for (const fi_info* info = all.get(); info != nullptr; info = info->next) {
    const std::string name = provider_of(*info);
    if (const auto reason = left_out(name)) {
      found.emplace(name, *reason);
    } else if (info->domain_attr->cq_data_size < sizeof(std::uint32_t)) {
      found.emplace(name, "carries fewer than 4 bytes of completion data");
    } else {
      found[name].clear();
    }
  }
  std::string text;
  for (const auto& [name, reason] : found) {
    text += name + (reason.empty() ? "" : ": " + reason) + "\n";
  }
  return text;
}

/// What `describe` says in a child process; a line "fabric: ..." when that does not work.
///
/// libfabric keeps what its providers open at the first call, and a verbs endpoint made in a forked
/// child of a process that has called it never connects (seen with libfabric 1.17 and Soft-RoCE).
/// So the process that starts ranks must not call it itself. It also stays free of the signal
/// handlers that the shm provider installs.
std::string told_by_child(std::string (*describe)()) {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) {
    return fmt::format("fabric: pipe: {}\n", std::generic_category().message(errno));
  }
  const Fd from(ends[0]);
  Fd to(ends[1]);
  const pid_t child = ::fork();
  if (child < 0) {
    return fmt::format("fabric: fork: {}\n", std::generic_category().message(errno));
  }
  if (child == 0) {
    std::string text;
    try {
      text = describe();
    } catch (const std::exception& error) {
      text = fmt::format("fabric: {}\n", error.what());
    }
    const ssize_t written =
        ::write(to.get(), text.data(), text.size()); // shorter than a pipe holds
    ::_exit(written == static_cast<ssize_t>(text.size()) ? 0 : 1);
  }
  to = Fd();
  std::string text;
  constexpr int k_limit_ms = 30'000;
  pollfd polled{from.get(), POLLIN, 0};
  for (;;) {
    const int ready = ::poll(&polled, 1, k_limit_ms);
    if (ready < 0 && errno == EINTR) {
      continue;
    }
    std::array<char, 4096> piece;
    const ssize_t n = ready > 0 ? ::read(from.get(), piece.data(), piece.size()) : 0;
    if (n <= 0) {
      break;
    }
    text.append(piece.data(), static_cast<std::size_t>(n));
  }
  int status = 0;
  if (::waitpid(child, &status, WNOHANG) == 0) {
    // Either about to end, its end of the pipe being closed, or stuck in a provider.
    if ((polled.revents & POLLHUP) == 0) {
      ::kill(child, SIGKILL);
    }
    while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
  }
  if (WIFSIGNALED(status)) {
    return fmt::format(
        "fabric: looking for providers ended with signal {}; try FI_PROVIDER=tcp,shm\n",
        WTERMSIG(status));
  }
  return text;
}

} // namespace

FabricEnvironment FabricEnvironment::read() {
  FabricEnvironment environment;
  if (const char* text = std::getenv("RECKON_FABRIC_ADDRESS")) {
    environment.address = text;
  }
  return environment;
}

std::vector<std::string> fabric_transports(std::vector<std::string>* why_not) {
  std::vector<std::string> names;
  std::vector<std::string> reasons;
  std::string text = told_by_child(&describe_providers);
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string line = text.substr(0, end);
    text.erase(0, end == std::string::npos ? end : end + 1);
    (line.find(": ") == std::string::npos ? names : reasons).push_back(line);
  }
  if (why_not != nullptr) {
    why_not->insert(why_not->end(), reasons.begin(), reasons.end());
  }
  std::stable_partition(names.begin(), names.end(),
                        [](const std::string& name) { return name == "shm"; });
  return names;
}

std::unique_ptr<Mover> make_fabric_mover(const std::string& transport,
                                         const FabricEnvironment& environment) {
  return std::make_unique<FabricMover>(transport, environment);
}

} // namespace reckon
