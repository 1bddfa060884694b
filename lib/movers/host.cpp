// SPDX-License-Identifier: Apache-2.0
#include "movers/host.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/json.hpp"
#include "movers/handle.hpp"
#include "movers/mailbox.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstring>
#include <fcntl.h>
#include <optional>
#include <sys/mman.h>
#include <unistd.h>

namespace reckon {
namespace {

/// A peer's buffer: where it can be opened, and open; for lanes that map it again and again.
struct Segment {
  std::string path;
  Fd fd;
};

struct Peer {
  PeerMail mail;
  std::vector<Mapping> buffers;
  std::vector<Segment> segments; ///< of each buffer, for NaiveHostLane
};

/// A lane that keeps all habits.
class HostLane : public MoverLane {
public:
  HostLane(int index, MailControl& control, const std::vector<Mapping>& buffers)
      : m_mail(index, control), m_buffers(buffers), m_done(k_mail_entries) {}

  void connect(std::size_t self, std::vector<Peer>& peers) {
    m_peers = &peers;
    std::vector<MailControl*> controls;
    for (const Peer& peer : peers) {
      controls.push_back(peer.mail.shared);
    }
    m_mail.connect(self, controls);
  }

  bool write(int peer_rank, Slice source, Slice destination, std::uint64_t bytes, std::uint32_t tag,
             std::uint64_t id) noexcept override {
    return write_with(peer_rank, source, destination, bytes, tag, id,
                      [&](const Peer& peer) noexcept -> const char* {
                        std::memcpy(&peer.buffers[destination.buffer].bytes()[destination.offset],
                                    from(source), bytes);
                        return nullptr;
                      });
  }

  std::size_t poll(std::span<Completion> out) noexcept override {
    std::size_t count = 0;
    for (; count < out.size() && m_done_count > 0; --m_done_count) {
      out[count++] = m_done[m_done_first];
      m_done_first = (m_done_first + 1) % m_done.size();
    }
    return count + m_mail.take(out.subspan(count));
  }

  void wait(std::chrono::nanoseconds limit) noexcept override {
    if (m_done_count == 0) {
      m_mail.sleep(limit);
    }
  }

  std::optional<LaneSleep> before_sleep(std::chrono::nanoseconds limit) noexcept override {
    return m_done_count > 0 ? std::nullopt : m_mail.before_sleep(limit);
  }
  void after_sleep() noexcept override { m_mail.after_sleep(); }

  std::string error() const override { return fmt::format("write(host): {}", m_error); }

protected:
  /// A write whose payload `copy`(peer) moves, which returns what went wrong or null.
  template <class Copy>
  bool write_with(int peer_rank, Slice source, Slice destination, std::uint64_t bytes,
                  std::uint32_t tag, std::uint64_t id, Copy copy) noexcept {
    if (m_done_count == m_done.size()) {
      return false;
    }
    const auto peer = static_cast<std::size_t>(peer_rank);
    if (m_peers == nullptr || peer_rank < 0 || peer >= m_peers->size() ||
        (*m_peers)[peer].mail.shared == nullptr) {
      return refuse("no such peer", id);
    }
    const std::vector<Mapping>& theirs = (*m_peers)[peer].buffers;
    if (bytes != 0 &&
        (source.buffer >= m_buffers.size() || destination.buffer >= theirs.size() ||
         !fits(source.offset, bytes, m_buffers[source.buffer].bytes().size()) ||
         !fits(destination.offset, bytes, theirs[destination.buffer].bytes().size()))) {
      return refuse("the write reaches outside its buffers", id);
    }
    if (!m_mail.has_room(peer)) {
      return false;
    }
    if (bytes != 0) {
      if (const char* const why = copy((*m_peers)[peer])) {
        return refuse(why, id);
      }
    }
    m_mail.put(peer, tag);
    finish({Completion::Kind::sent, 0, id});
    return true;
  }

  [[nodiscard]] const std::byte* from(Slice source) const noexcept {
    return &m_buffers[source.buffer].bytes()[source.offset];
  }

private:
  void finish(const Completion& completion) noexcept {
    m_done[(m_done_first + m_done_count++) % m_done.size()] = completion;
  }

  bool refuse(const char* why, std::uint64_t id) noexcept {
    m_error = why;
    finish({Completion::Kind::failed, 0, id});
    return true;
  }

  Mailbox m_mail;
  const std::vector<Mapping>& m_buffers;
  std::vector<Peer>* m_peers = nullptr;
  std::vector<Completion> m_done; // our own completions, a ring: allocated once
  std::size_t m_done_first = 0, m_done_count = 0;
  const char* m_error = "no error";
};

/// A lane without some of the habits: what they are worth is the difference to HostLane.
class NaiveHostLane final : public HostLane {
public:
  NaiveHostLane(int index, MailControl& control, const std::vector<Mapping>& buffers,
                const Habits& habits)
      : HostLane(index, control, buffers), m_habits(habits) {}

  bool write(int peer_rank, Slice source, Slice destination, std::uint64_t bytes, std::uint32_t tag,
             std::uint64_t id) noexcept override {
    return write_with(peer_rank, source, destination, bytes, tag, id,
                      [&](const Peer& peer) noexcept -> const char* {
                        return move(peer, from(source), destination, bytes);
                      });
  }

private:
  static constexpr std::size_t k_header = 64;

  const char* move(const Peer& peer, const std::byte* source, Slice destination,
                   std::uint64_t bytes) noexcept {
    if (m_habits.register_once && m_habits.address_once) {
      copy(&peer.buffers[destination.buffer].bytes()[destination.offset], source, bytes);
      return nullptr;
    }
    const Segment& segment = peer.segments[destination.buffer];
    Fd opened;
    if (!m_habits.address_once) {
      opened = Fd(::open(segment.path.c_str(), O_RDWR | O_CLOEXEC));
      if (!opened) {
        return "the peer's memory cannot be opened again";
      }
    }
    const std::uint64_t start = destination.offset + skew(m_habits);
    const std::uint64_t into_page = start % m_page;
    void* const mapped =
        ::mmap(nullptr, into_page + bytes, PROT_READ | PROT_WRITE, MAP_SHARED,
               opened ? opened.get() : segment.fd.get(), static_cast<off_t>(start - into_page));
    if (mapped == MAP_FAILED) {
      return "the peer's memory cannot be mapped again";
    }
    copy(static_cast<std::byte*>(mapped) + into_page, source, bytes);
    ::munmap(mapped, into_page + bytes);
    return nullptr;
  }

  void copy(std::byte* destination, const std::byte* source, std::uint64_t bytes) noexcept {
    const std::size_t header =
        m_habits.one_segment ? 0 : std::min<std::uint64_t>(k_header, bytes / 2);
    if (header > 0) {
      std::memcpy(m_header.data(), source, header);
      std::memcpy(destination, m_header.data(), header);
    }
    std::memcpy(destination + header, source + header, bytes - header);
  }

  const std::uint64_t m_page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  Habits m_habits;
  std::array<std::byte, k_header> m_header{};
};

class HostMover final : public Mover {
public:
  explicit HostMover(const Habits& habits) : m_habits(habits) {
    m_capabilities.name = "host";
    m_capabilities.crosses_machines = false;
    m_capabilities.max_write_bytes = UINT64_MAX;
    m_capabilities.max_in_flight = k_mail_entries;
  }

  const MoverCapabilities& capabilities() const noexcept override { return m_capabilities; }

  std::span<std::byte> allocate(std::uint64_t bytes) override {
    if (m_mail) {
      fail(ErrorKind::internal, "allocate(host): after open()");
    }
    Fd fd = make_shared_memory("reckon-buffer", skew(m_habits) + bytes);
    m_buffers.emplace_back(fd.get(), bytes, fmt::format("{} bytes of shared memory", bytes), true,
                           skew(m_habits));
    m_buffer_fds.push_back(std::move(fd));
    return m_buffers.back().bytes();
  }

  void open(int lanes) override {
    m_mail.emplace("host", lanes);
    MailControl& control = m_mail->control();
    for (int lane = 0; lane < lanes; ++lane) {
      m_lanes.push_back(m_habits.lane_is_plain()
                            ? std::make_unique<HostLane>(lane, control, m_buffers)
                            : std::make_unique<NaiveHostLane>(lane, control, m_buffers, m_habits));
    }
  }

  std::string address() const override {
    Json buffers = Json::array();
    for (std::size_t i = 0; i < m_buffers.size(); ++i) {
      buffers.push_back({{"fd", m_buffer_fds[i].get()}, {"bytes", m_buffers[i].bytes().size()}});
    }
    Json json = m_mail->address();
    json["mover"] = "host";
    json["without"] = without_text(m_habits);
    json["buffers"] = buffers;
    return json.dump();
  }

  void connect(int self, const std::vector<std::string>& addresses) override {
    if (m_lanes.empty()) {
      fail(ErrorKind::internal, "connect(host): before open()");
    }
    check_mail_ranks("host", self, addresses);
    m_peers.clear();
    m_peers.resize(addresses.size());
    for (std::size_t rank = 0; rank < addresses.size(); ++rank) {
      if (rank != static_cast<std::size_t>(self) && !addresses[rank].empty()) {
        m_peers[rank] = attach(rank, addresses[rank]);
      }
    }
    for (auto& lane : m_lanes) {
      lane->connect(static_cast<std::size_t>(self), m_peers);
    }
  }

  std::span<std::byte> memory_of(std::size_t peer, std::size_t buffer) override {
    return m_peers.at(peer).buffers.at(buffer).bytes();
  }

  MoverLane& lane(int index) override { return *m_lanes.at(static_cast<std::size_t>(index)); }

private:
  Peer attach(std::size_t rank, const std::string& address) const {
    const std::string who = fmt::format("address of rank {}", rank);
    const Json json = parse_json(address, who);
    const JsonView view(json, who);
    require_same_mover("host", view.at("mover").string(), rank);
    view.only({"mover", "without", "boot", "pid", "token", "control", "lanes", "buffers"});
    Peer peer;
    peer.mail = m_mail->attach("host", rank, view);
    require_same_habits(m_habits, view.at("without").string(), rank);
    const int pid = peer.mail.pid;
    for (const JsonView& buffer : view.at("buffers").elements()) {
      buffer.only({"fd", "bytes"});
      const int number = buffer.at("fd").integer(0, INT_MAX);
      peer.buffers.push_back(
          map_of_peer("host", rank, pid, number, buffer.at("bytes").count(), true, skew(m_habits)));
      if (!m_habits.lane_is_plain()) {
        const std::string path = path_of_peer(pid, number);
        peer.segments.push_back({path, Fd(::open(path.c_str(), O_RDWR | O_CLOEXEC))});
        if (!peer.segments.back().fd) {
          fail(ErrorKind::unavailable,
               peer_not_reached("host", rank, pid, std::generic_category().message(errno)));
        }
      }
    }
    return peer;
  }

  Habits m_habits;
  MoverCapabilities m_capabilities;
  std::vector<Fd> m_buffer_fds;
  std::vector<Mapping> m_buffers;
  std::optional<MailboxSegment> m_mail;
  std::vector<Peer> m_peers;
  std::vector<std::unique_ptr<HostLane>> m_lanes;
};

} // namespace

std::unique_ptr<Mover> make_host_mover(const Habits& habits) {
  return std::make_unique<HostMover>(habits);
}

} // namespace reckon
