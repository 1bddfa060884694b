// SPDX-License-Identifier: Apache-2.0
#pragma once

// Internal to the fabric mover: needs libfabric's headers.

#include "core/error.hpp"
#include "core/json.hpp"
#include "core/secrets.hpp"
#include "movers/checksum.hpp"
#include "movers/fabric_peers.hpp"
#include "movers/habits.hpp"
#include "movers/handle.hpp"
#include "movers/libfabric.hpp"
#include "movers/mover.hpp"
#include "movers/shared_names.hpp"

#include <fmt/format.h>
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace reckon {

inline constexpr std::size_t k_max_in_flight = 512;
inline constexpr std::size_t k_cq_entries =
    4096; // below the 32767 of Soft-RoCE with room for rxm's factor

inline std::string to_hex(const std::vector<unsigned char>& bytes) {
  std::string text;
  for (const unsigned char byte : bytes) {
    text += fmt::format("{:02x}", byte);
  }
  return text;
}

inline constexpr std::size_t k_page = 4096;

/// One lane over libfabric with all habits.
class FabricLane : public MoverLane {
public:
  /// `registered` false: peers get no keys, and the buffers cannot be written from either.
  FabricLane(const fi_info& info, const std::vector<std::span<std::byte>>& buffers,
             bool registered = true)
      : m_info(libfabric().dupinfo(&info)), m_provider(provider_of(info)), m_buffers(buffers),
        m_signal(-1, k_page, "signal page") {
    if (!m_info) {
      fail(ErrorKind::operation, "fi_dupinfo: out of memory");
    }
    fid_fabric* fabric = nullptr;
    check_fi(libfabric().fabric(m_info->fabric_attr, &fabric, nullptr), attempt("fi_fabric"));
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
    if (m_provider == "shm") { // else the process' number, which anybody can take first
      std::free(m_info->src_addr);
      const std::string name = "fi_shm://" + m_shared_name.emplace().text();
      m_info->src_addr = ::strdup(name.c_str());
      m_info->src_addrlen = name.size() + 1;
    }
    fid_ep* ep = nullptr;
    check_fi(fi_endpoint(domain, m_info.get(), &ep, nullptr), attempt("fi_endpoint"));
    m_ep.reset(ep);
    check_fi(fi_ep_bind(ep, &m_av->fid, 0), attempt("fi_ep_bind"));
    check_fi(fi_ep_bind(ep, &m_cq->fid, FI_TRANSMIT | FI_RECV), attempt("fi_ep_bind"));
    check_fi(fi_enable(ep), attempt("fi_enable"),
             over_verbs(m_provider)
                 ? "; Soft-RoCE has short completion queues: set FI_UNIVERSE_SIZE to 127 or less"
                 : "");
    for (const std::span<std::byte> buffer : m_buffers) {
      m_regions.push_back(registered ? add_region(buffer) : nullptr);
    }
    m_signal_region = add_region(m_signal.bytes());
    m_slots.resize(std::min(k_max_in_flight, m_info->tx_attr->size));
    for (std::size_t i = 0; i < m_slots.size(); ++i) {
      m_slots[i].next_free = static_cast<std::uint32_t>(i) + 1;
    }
  }

  FabricLane(const FabricLane&) = delete;
  FabricLane& operator=(const FabricLane&) = delete;

  /// ofi_rxm reads data that verbs has received after a connection is closed, and crashes on it
  /// (libfabric 1.17, still in 2.4: its issue 11828). Peers that are done write no more, but
  /// ofi_rxm itself tells them how much they may send; so read all of that first, which takes one
  /// call for each message and one for each credit message.
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
      regions.push_back({{"base", fmt::format("{:x}", base_of(bytes.data()))},
                         {"key", fmt::format("{:x}", region ? fi_mr_key(region.get()) : 0)},
                         {"bytes", bytes.size()}});
    };
    for (std::size_t i = 0; i < m_buffers.size(); ++i) {
      add(m_regions[i], m_buffers[i]);
    }
    add(m_signal_region, m_signal.bytes());
    return {
        {"name", to_hex(name())}, {"stamp", fmt::format("{:x}", m_stamp)}, {"buffers", regions}};
  }

  /// By rank; without a name: a rank out of reach.
  virtual void insert(std::size_t self, std::vector<RemoteLane> peers) {
    m_self = self;
    m_peers = std::move(peers);
    m_addresses.assign(m_peers.size(), FI_ADDR_UNSPEC);
    for (std::size_t peer = 0; peer < m_peers.size(); ++peer) {
      if (is_peer(static_cast<int>(peer)) && fi_av_insert(m_av.get(), m_peers[peer].name.data(), 1,
                                                          &m_addresses[peer], 0, nullptr) != 1) {
        fail(ErrorKind::operation,
             fmt::format("fi_av_insert({}, rank {}): the address was refused", m_provider, peer));
      }
    }
    // A receive for each peer's hello, and our own hello at the end.
    m_hello_memory = Mapping(-1, sizeof(Message) * (m_peers.size() + 1), "hello messages");
    m_hello_region = add_region(m_hello_memory.bytes());
    m_hello_slots.resize(2 * m_peers.size());
    m_greeted.assign(m_peers.size(), 0);
    m_answered.assign(m_peers.size(), 0);
    hellos()[m_peers.size()] = {.stamp = m_stamp, .rank = static_cast<std::uint32_t>(self)};
    for (std::size_t peer = 0; peer < m_peers.size(); ++peer) {
      if (!is_peer(static_cast<int>(peer))) {
        m_greeted[peer] = m_answered[peer] = 1;
        continue;
      }
      m_deaf.push_back(peer);
    }
    listen_for_hellos();
  }

  /// One non-blocking step of making the connections; true when something moved. The higher rank
  /// speaks first and the lower one answers over the connection that this made: the provider would
  /// drop one of two simultaneous calls.
  virtual bool greet() {
    bool moved = false;
    listen_for_hellos();
    for (std::size_t peer = 0; peer < m_peers.size(); ++peer) {
      if (m_greeted[peer] != 0 || (peer > m_self && m_answered[peer] == 0)) {
        continue;
      }
      const std::size_t own = m_peers.size();
      const ssize_t status =
          fi_send(m_ep.get(), &hellos()[own], sizeof(Message), desc(m_hello_region),
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

  /// The lowest rank that has not been heard of; -1: all have.
  int missing() const {
    const auto it = std::find(m_answered.begin(), m_answered.end(), 0);
    return it == m_answered.end() ? -1 : static_cast<int>(it - m_answered.begin());
  }

  /// The shm provider gives its segment a name in /dev/shm and removes it in fi_close, which a
  /// killed process never reaches. Once every peer has mapped the segment nobody needs the name.
  /// Its signal handlers unlink it as well.
  void forget_name() {
    if (m_shared_name) {
      m_shared_name->forget();
    }
  }

  bool write(int peer_rank, Slice source, Slice destination, std::uint64_t bytes, std::uint32_t tag,
             std::uint64_t id) noexcept override {
    if (m_free == m_slots.size()) {
      return false;
    }
    const auto peer = static_cast<std::size_t>(peer_rank);
    if (!is_peer(peer_rank)) {
      return refuse("no such peer", id);
    }
    const std::vector<RemoteBuffer>& theirs = m_peers[peer].buffers;
    const FiMr* region = &m_signal_region;
    const std::byte* from = m_signal.bytes().data();
    RemoteBuffer to = theirs.back();
    if (bytes != 0) { // a bare signal goes from signal page to signal page, whatever the slices are
      if (!is_inside(peer, source, destination, bytes)) {
        return refuse(k_outside, id);
      }
      region = &m_regions[source.buffer];
      from = &m_buffers[source.buffer][source.offset];
      to = theirs[destination.buffer];
      to.base += destination.offset;
    }
    Slot& slot = m_slots[m_free];
    const ssize_t status = fi_writedata(m_ep.get(), from, bytes, desc(*region),
                                        stamped(tag, m_peers[peer].stamp ^ marked({from, bytes})),
                                        m_addresses[peer], to.base, to.key, &slot.context);
    if (status == -FI_EAGAIN) {
      return false;
    }
    if (status != 0) {
      m_error = fmt::format("fi_writedata({}, rank {}): {}", m_provider, peer, fi_text(-status));
      m_refused.push_back(id);
      return true;
    }
    slot.id = id;
    slot.peer = peer_rank;
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

  void wait(std::chrono::nanoseconds limit) noexcept override {
    if (const std::optional<LaneSleep> sleep = before_sleep(limit)) {
      sleep_on(std::array{*sleep});
    }
  }

  std::optional<LaneSleep> before_sleep(std::chrono::nanoseconds limit) noexcept override {
    if (!m_refused.empty() || !m_early.empty()) {
      return std::nullopt;
    }
    if (m_wait_fd < 0) {
      // The only way is to look, sleep, look, always for a short time: the provider's receiver
      // carries the data itself, so a peer's writes wait until it looks.
      return LaneSleep{-1, std::min(limit, k_blind_nap)};
    }
    fid* fids[] = {&m_cq->fid};
    if (fi_trywait(m_fabric.get(), fids, 1) != FI_SUCCESS) { // the queue has something already
      return std::nullopt;
    }
    return LaneSleep{m_wait_fd, limit};
  }

  std::string error() const override { return m_error; }
  /// Mover::add_checksums(). Before the first write.
  void set_checksums(bool on) noexcept { m_checksums = on; }

protected:
  static constexpr const char* k_outside =
      "the write reaches outside its buffers or is longer than the provider can move";

  [[nodiscard]] bool is_peer(int rank) const noexcept {
    return rank >= 0 && static_cast<std::size_t>(rank) < m_peers.size() &&
           static_cast<std::size_t>(rank) != m_self &&
           !m_peers[static_cast<std::size_t>(rank)].name.empty();
  }

  [[nodiscard]] bool is_inside(std::size_t peer, Slice source, Slice destination,
                               std::uint64_t bytes) const noexcept {
    const std::vector<RemoteBuffer>& theirs = m_peers[peer].buffers;
    return source.buffer < m_buffers.size() && destination.buffer + 1 < theirs.size() &&
           bytes <= m_info->ep_attr->max_msg_size &&
           fits(source.offset, bytes, m_buffers[source.buffer].size()) &&
           fits(destination.offset, bytes, theirs[destination.buffer].bytes);
  }

  /// The start of a region of ours as peers address it.
  [[nodiscard]] std::uint64_t base_of(const std::byte* start) const noexcept {
    const bool by_address = (m_info->domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0;
    return by_address ? reinterpret_cast<std::uintptr_t>(start) : 0;
  }

  /// Completion data of a write: the tag below, half of the receiver's stamp above, where the
  /// provider carries that many bytes. A checksum of the write's bytes is xor-ed into it.
  [[nodiscard]] std::uint64_t stamped(std::uint32_t tag, std::uint64_t stamp) const noexcept {
    return (has_room_for_stamps(m_info.get()) ? stamp & ~std::uint64_t{UINT32_MAX} : 0) | tag;
  }
  /// The mark that a checksum leaves on the stamp.
  [[nodiscard]] std::uint64_t marked(std::span<const std::byte> bytes) const noexcept {
    return m_checksums ? std::uint64_t{checksum_of(bytes)} << 32U : 0;
  }

  /// A message other than a hello.
  virtual void hear(const Message& message) noexcept { static_cast<void>(message); }
  /// A completion that is neither a write nor a hello.
  virtual void take_other(const fi_cq_data_entry& entry) noexcept { static_cast<void>(entry); }

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

  /// With a file descriptor to sleep on if the provider can.
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
    fid_mr* region = nullptr;
    int status = -FI_ENOKEY; // the key stands for another region
    for (int tries = 0; tries < 16 && status == -FI_ENOKEY; ++tries) {
      status = fi_mr_reg(m_domain.get(), bytes.data(), bytes.size(),
                         FI_SEND | FI_RECV | FI_WRITE | FI_REMOTE_WRITE, 0, random_key(), 0,
                         &region, nullptr);
    }
    check_fi(status, fmt::format("fi_mr_reg({}, {} bytes)", m_provider, bytes.size()),
             over_verbs(m_provider) ? "; locked memory may be limited: see ulimit -l" : "");
    FiMr owner(region);
    if ((m_info->domain_attr->mr_mode & FI_MR_ENDPOINT) != 0) {
      check_fi(fi_mr_bind(region, &m_ep->fid, 0), attempt("fi_mr_bind"));
      check_fi(fi_mr_enable(region), attempt("fi_mr_enable"));
    }
    return owner;
  }

  /// For a region where the provider does not choose the key itself. Whoever reaches the port and
  /// knows a key may write there, so keys cannot be guessed.
  std::uint64_t random_key() const {
    const std::uint64_t key = secret_number();
    const std::size_t bytes = m_info->domain_attr->mr_key_size;
    return bytes >= sizeof(key) ? key : key & ((std::uint64_t{1} << 8 * bytes) - 1);
  }

  static void* desc(const FiMr& region) noexcept {
    return region ? fi_mr_desc(region.get()) : nullptr;
  }

  Message* hellos() { return reinterpret_cast<Message*>(m_hello_memory.bytes().data()); }

  bool refuse(const char* why, std::uint64_t id) noexcept {
    m_error = fmt::format("write({}): {}", m_provider, why);
    m_refused.push_back(id);
    return true;
  }

  /// Takes a slot of ours back; null when the context is not one of our writes.
  const Slot* release(const void* context) noexcept {
    const auto* slot = static_cast<const Slot*>(context);
    if (context == nullptr || std::less<>()(slot, m_slots.data()) ||
        !std::less<>()(slot, m_slots.data() + m_slots.size())) {
      return nullptr;
    }
    const auto index = static_cast<std::size_t>(slot - m_slots.data());
    m_slots[index].next_free = static_cast<std::uint32_t>(m_free);
    m_free = index;
    return slot;
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
    if (read < 0) {
      return read_error(read, out);
    }
    std::size_t count = 0;
    for (std::size_t i = 0; i < static_cast<std::size_t>(read); ++i) {
      const fi_cq_data_entry& entry = entries[i];
      if ((entry.flags & (FI_REMOTE_CQ_DATA | FI_RECV)) == FI_REMOTE_CQ_DATA) {
        const auto tag = static_cast<std::uint32_t>(entry.data);
        const std::uint64_t mark = entry.data ^ stamped(tag, m_stamp);
        if (m_checksums) {
          out[count++] = {Completion::Kind::arrived, tag, 0,
                          static_cast<std::uint32_t>(mark >> 32U)};
        } else if (mark == 0) { // a stranger needs no key to write no bytes
          out[count++] = {Completion::Kind::arrived, tag, 0};
        }
      } else if (const Slot* const write = release(entry.op_context)) {
        out[count++] = {Completion::Kind::sent, 0, write->id};
      } else {
        take_message(entry);
      }
    }
    return count;
  }

  void take_message(const fi_cq_data_entry& entry) noexcept {
    const auto* const slot = static_cast<const Slot*>(entry.op_context);
    if (std::less<>()(slot, m_hello_slots.data()) ||
        !std::less<>()(slot, m_hello_slots.data() + m_hello_slots.size())) {
      take_other(entry);
      return;
    }
    if ((entry.flags & FI_RECV) == 0) {
      --m_hellos_under_way;
      return;
    }
    const auto index = static_cast<std::size_t>(slot - m_hello_slots.data());
    if (!take_content(hellos()[index], entry.len)) {
      m_deaf.push_back(index);
    }
  }

  /// Receives are matched in the order posted, so the receive that got a message tells neither its
  /// sender nor its kind. False: it came from a stranger.
  bool take_content(const Message& message, std::size_t bytes) noexcept {
    if (bytes != sizeof message || message.rank >= m_peers.size() ||
        !is_peer(static_cast<int>(message.rank)) || message.stamp != m_peers[message.rank].stamp) {
      return false;
    }
    if (message.kind == Message::Kind::hello) {
      m_answered[message.rank] = 1;
    } else {
      hear(message);
    }
    return true;
  }

  /// Receives a message for each peer whose hello may still come.
  void listen_for_hellos() {
    while (!m_deaf.empty()) {
      const ssize_t status =
          fi_recv(m_ep.get(), &hellos()[m_deaf.back()], sizeof(Message), desc(m_hello_region),
                  FI_ADDR_UNSPEC, &m_hello_slots[m_deaf.back()].context);
      if (status == -FI_EAGAIN) {
        return;
      }
      check_fi(status, attempt("fi_recv"));
      m_deaf.pop_back();
    }
  }

  std::size_t read_error(ssize_t status, std::span<Completion> out) noexcept {
    if (status != -FI_EAVAIL) {
      m_error = fmt::format("fi_cq_read({}): {}", m_provider, fi_text(-status));
      out[0] = {Completion::Kind::failed, 0, 0};
      return 1;
    }
    fi_cq_err_entry entry{};
    std::array<char, 256> text{};
    if (fi_cq_readerr(m_cq.get(), &entry, 0) != 1) {
      return 0;
    }
    if ((entry.flags & FI_RECV) != 0 && entry.err == FI_ETRUNC) { // longer than any of ours
      take_message({.op_context = entry.op_context, .flags = FI_RECV});
      return 0;
    }
    const char* words =
        fi_cq_strerror(m_cq.get(), entry.prov_errno, entry.err_data, text.data(), text.size());
    const Slot* const write = release(entry.op_context);
    m_error = fmt::format("completion({}{}): {}{}{}", m_provider,
                          write != nullptr ? fmt::format(", rank {}", write->peer) : "",
                          fi_text(entry.err), words != nullptr && *words != '\0' ? ": " : "",
                          words != nullptr ? words : "");
    out[0] = {Completion::Kind::failed, 0, write != nullptr ? write->id : 0};
    return 1;
  }

  // In the order of creation: dependents close before what they were made from.
  FiInfo m_info;
  std::string m_provider;
  const std::uint64_t m_stamp = secret_number(); // which lanes of the job know, and nobody else
  const std::vector<std::span<std::byte>>& m_buffers;
  Mapping m_signal;
  Mapping m_hello_memory;
  // Of lanes that go on talking.
  Mapping m_message_memory;
  std::vector<Slot> m_message_slots;
  std::optional<SharedName> m_shared_name;
  FiFabric m_fabric;
  FiDomain m_domain;
  FiCq m_cq;
  FiAv m_av;
  FiEp m_ep;
  std::vector<FiMr> m_regions;
  FiMr m_signal_region, m_hello_region;

  int m_wait_fd = -1;
  std::size_t m_self = 0;
  std::vector<RemoteLane> m_peers;
  std::vector<fi_addr_t> m_addresses;
  std::vector<Slot> m_slots;
  std::size_t m_free = 0;          // first free slot; m_slots.size(): none
  std::vector<Slot> m_hello_slots; // receives, then sends
  std::vector<std::size_t> m_deaf; // receives of m_hello_slots that are not posted
  std::vector<char> m_greeted, m_answered;
  std::size_t m_hellos_under_way = 0;
  bool m_read_any = false, m_checksums = false;
  std::vector<Completion> m_early;
  std::vector<std::uint64_t> m_refused;
  std::string m_error = "no error";
};

/// A lane without the habits that are false in `habits` (fabric_naive.cpp).
[[nodiscard]] std::unique_ptr<FabricLane>
make_naive_fabric_lane(const fi_info& info, const std::vector<std::span<std::byte>>& buffers,
                       const Habits& habits);

} // namespace reckon
