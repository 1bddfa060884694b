// SPDX-License-Identifier: Apache-2.0
// Writes as a program makes them that keeps nothing for the next one: what the habits are worth is
// the difference to FabricLane.
#include "movers/fabric_lane.hpp"

#include <cstring>
#include <utility>

namespace reckon {
namespace {

constexpr std::size_t k_header = 64;        // bytes that a write gathers from elsewhere
constexpr std::size_t k_message_slots = 64; // of each kind: receives and sends

class NaiveFabricLane final : public FabricLane {
public:
  NaiveFabricLane(const fi_info& info, const std::vector<std::span<std::byte>>& buffers,
                  const Habits& habits)
      : FabricLane(info, buffers, habits.register_once || habits.address_once), m_habits(habits),
        m_headers(-1, k_header * m_slots.size(), "headers"),
        m_header_region(add_region(m_headers.bytes())) {
    if (!habits.one_segment && m_info->tx_attr->iov_limit < 2) {
      fail(ErrorKind::unavailable,
           fmt::format("{} takes one segment a write: --without one-segment cannot be had",
                       m_provider));
    }
    m_jobs.reserve(m_slots.size());
  }

  void insert(std::size_t self, std::vector<RemoteLane> peers) override {
    FabricLane::insert(self, std::move(peers));
    if (m_habits.address_once) {
      return;
    }
    m_message_memory = Mapping(-1, sizeof(Message) * 2 * k_message_slots, "messages");
    m_message_region = add_region(m_message_memory.bytes());
    m_message_slots.resize(2 * k_message_slots);
    for (std::size_t i = 0; i < k_message_slots; ++i) {
      m_unposted.push_back(i);
      m_free_sends.push_back(k_message_slots + i);
    }
    talk();
  }

  /// Peers that are ready before us ask already, and a hello can stand behind many questions.
  bool greet() override {
    const bool moved = FabricLane::greet();
    talk();
    return moved;
  }

  bool write(int peer_rank, Slice source, Slice destination, std::uint64_t bytes, std::uint32_t tag,
             std::uint64_t id) noexcept override {
    if (bytes == 0) { // a bare signal has no address to ask for and no memory to register
      return FabricLane::write(peer_rank, source, destination, bytes, tag, id);
    }
    if (m_jobs.size() == m_slots.size()) {
      return false;
    }
    if (!is_peer(peer_rank)) {
      return refuse("no such peer", id);
    }
    const auto peer = static_cast<std::size_t>(peer_rank);
    if (!is_inside(peer, source, destination, bytes)) {
      return refuse(k_outside, id);
    }
    Job job{.peer = peer,
            .from = &m_buffers[source.buffer][source.offset],
            .source_buffer = source.buffer,
            .bytes = bytes,
            .id = id,
            .tag = tag};
    if (m_habits.address_once) {
      const RemoteBuffer& theirs = m_peers[peer].buffers[destination.buffer];
      job.base = theirs.base + destination.offset;
      job.key = theirs.key;
      job.state = State::known;
    } else {
      say(peer, {.kind = Message::Kind::ask,
                 .tag = tag,
                 .id = id,
                 .bytes = bytes,
                 .buffer_or_key = destination.buffer,
                 .offset_or_base = destination.offset});
    }
    m_jobs.push_back(std::move(job));
    talk();
    return true;
  }

  std::size_t poll(std::span<Completion> out) noexcept override {
    std::size_t count = 0;
    talk();
    do { // messages are no completions of the caller's
      m_read_any = false;
      count = FabricLane::poll(out);
      talk(); // nothing that an answer made possible may wait for the next poll: the caller may
              // sleep
    } while (count == 0 && m_read_any);
    for (std::size_t i = 0; i < count; ++i) {
      if (out[i].kind == Completion::Kind::arrived) {
        forget(m_grants, [&](const Grant& grant) { return grant.tag == out[i].tag; });
      } else {
        forget(m_jobs, [&](const Job& job) { return job.id == out[i].id; });
      }
    }
    return count;
  }

  std::optional<LaneSleep> before_sleep(std::chrono::nanoseconds limit) noexcept override {
    const bool blocked = !m_outbox.empty() || m_known > 0;
    return FabricLane::before_sleep(
        blocked ? std::min<std::chrono::nanoseconds>(limit, std::chrono::milliseconds(1)) : limit);
  }

private:
  enum class State : std::uint8_t {
    asked, ///< the receiver has not answered
    known, ///< where to is known; not posted yet
    posted,
  };
  struct Job {
    std::size_t peer = 0;
    const std::byte* from = nullptr;
    std::size_t source_buffer = 0;
    std::uint64_t bytes = 0, id = 0, base = 0, key = 0;
    std::uint32_t tag = 0;
    State state = State::asked;
    FiMr region{}; ///< of this write alone; closes with the job
  };
  /// Memory of ours that a peer may write to once.
  struct Grant {
    std::uint32_t tag = 0;
    FiMr region;
  };

  template <class T, class Is>
  static void forget(std::vector<T>& list, Is is) noexcept {
    const auto it = std::find_if(list.begin(), list.end(), is);
    if (it != list.end()) {
      *it = std::move(list.back());
      list.pop_back();
    }
  }

  void say(std::size_t peer, Message message) {
    message.stamp = m_stamp;
    message.rank = static_cast<std::uint32_t>(m_self);
    m_outbox.emplace_back(peer, message);
  }

  Message* messages() { return reinterpret_cast<Message*>(m_message_memory.bytes().data()); }

  /// Everything that the provider may have had no room for.
  void talk() noexcept {
    while (!m_unposted.empty() && fi_recv(m_ep.get(), &messages()[m_unposted.back()],
                                          sizeof(Message), desc(m_message_region), FI_ADDR_UNSPEC,
                                          &m_message_slots[m_unposted.back()].context) == 0) {
      m_unposted.pop_back();
    }
    std::size_t said = 0;
    for (; said < m_outbox.size() && !m_free_sends.empty(); ++said) {
      const auto& [peer, message] = m_outbox[said];
      const std::size_t slot = m_free_sends.back();
      messages()[slot] = message;
      const ssize_t status =
          fi_send(m_ep.get(), &messages()[slot], sizeof(Message), desc(m_message_region),
                  m_addresses[peer], &m_message_slots[slot].context);
      if (status == -FI_EAGAIN) {
        break;
      }
      if (status != 0) {
        m_error = fmt::format("fi_send({}, rank {}): {}", m_provider, peer, fi_text(-status));
        m_refused.push_back(message.id);
        continue;
      }
      m_free_sends.pop_back();
    }
    m_outbox.erase(m_outbox.begin(), m_outbox.begin() + static_cast<std::ptrdiff_t>(said));
    m_known = 0;
    for (Job& job : m_jobs) {
      if (job.state == State::known && !post(job)) {
        ++m_known;
      }
    }
  }

  /// False: no room, try again. A job that fails counts as posted: its completion is on the way.
  bool post(Job& job) noexcept {
    if (m_free == m_slots.size()) {
      return false;
    }
    Slot& slot = m_slots[m_free];
    if (!m_habits.register_once && !job.region) {
      try {
        job.region = add_region({const_cast<std::byte*>(job.from), job.bytes});
      } catch (const std::exception& error) {
        job.state = State::posted;
        return refuse(error.what(), job.id);
      }
    }
    void* const payload_desc =
        desc(m_habits.register_once ? m_regions[job.source_buffer] : job.region);
    const std::uint64_t data = stamped(job.tag, m_peers[job.peer].stamp);
    ssize_t status = 0;
    if (const std::size_t header = std::min<std::uint64_t>(k_header, job.bytes / 2);
        m_habits.one_segment || header == 0) {
      status = fi_writedata(m_ep.get(), job.from, job.bytes, payload_desc, data,
                            m_addresses[job.peer], job.base, job.key, &slot.context);
    } else {
      std::byte* const meta = &m_headers.bytes()[k_header * m_free];
      std::memcpy(meta, job.from, header);
      const std::array<iovec, 2> segments{
          iovec{meta, header},
          iovec{const_cast<std::byte*>(job.from) + header, job.bytes - header}};
      std::array<void*, 2> descs{desc(m_header_region), payload_desc};
      const fi_rma_iov target{job.base, job.bytes, job.key};
      fi_msg_rma message{};
      message.msg_iov = segments.data();
      message.desc = descs.data();
      message.iov_count = segments.size();
      message.addr = m_addresses[job.peer];
      message.rma_iov = &target;
      message.rma_iov_count = 1;
      message.context = &slot.context;
      message.data = data;
      status = fi_writemsg(m_ep.get(), &message, FI_REMOTE_CQ_DATA | FI_COMPLETION);
    }
    if (status == -FI_EAGAIN) {
      return false;
    }
    job.state = State::posted;
    if (status != 0) {
      m_error = fmt::format("fi_write({}, rank {}): {}", m_provider, job.peer, fi_text(-status));
      m_refused.push_back(job.id);
      return true;
    }
    slot.id = job.id;
    slot.peer = static_cast<int>(job.peer);
    m_free = slot.next_free;
    return true;
  }

  void take_other(const fi_cq_data_entry& entry) noexcept override {
    const auto slot = static_cast<std::size_t>(static_cast<const Slot*>(entry.op_context) -
                                               m_message_slots.data());
    if (slot >= m_message_slots.size()) {
      return;
    }
    if ((entry.flags & FI_RECV) == 0) {
      m_free_sends.push_back(slot);
      return;
    }
    const Message message = messages()[slot];
    m_unposted.push_back(slot);
    static_cast<void>(take_content(message, entry.len));
  }

  void hear(const Message& message) noexcept override {
    if (message.kind == Message::Kind::ask) {
      say(message.rank, answer(message));
      return;
    }
    const auto job = std::find_if(m_jobs.begin(), m_jobs.end(), [&](const Job& candidate) {
      return candidate.state == State::asked && candidate.id == message.id;
    });
    if (job == m_jobs.end()) {
      return;
    }
    job->state = State::known;
    job->base = message.offset_or_base;
    job->key = message.buffer_or_key;
    if (message.bytes != job->bytes) {
      job->state = State::posted;
      static_cast<void>(refuse("the receiver could not register its memory", job->id));
    }
  }

  /// Where the peer may write to; 0 bytes: nowhere.
  Message answer(const Message& ask) noexcept {
    Message reply{.kind = Message::Kind::answer, .tag = ask.tag, .id = ask.id};
    if (ask.buffer_or_key >= m_buffers.size()) {
      return reply;
    }
    const std::span<std::byte> buffer = m_buffers[ask.buffer_or_key];
    if (!fits(ask.offset_or_base, ask.bytes, buffer.size())) {
      return reply;
    }
    if (m_habits.register_once) {
      reply.buffer_or_key = fi_mr_key(m_regions[ask.buffer_or_key].get());
      reply.offset_or_base = base_of(buffer.data()) + ask.offset_or_base;
    } else {
      try {
        const std::span<std::byte> range = buffer.subspan(ask.offset_or_base, ask.bytes);
        m_grants.push_back({ask.tag, add_region(range)});
        reply.buffer_or_key = fi_mr_key(m_grants.back().region.get());
        reply.offset_or_base = base_of(range.data());
      } catch (const std::exception&) {
        return reply;
      }
    }
    reply.bytes = ask.bytes;
    return reply;
  }

  Habits m_habits;
  Mapping m_headers;
  FiMr m_header_region, m_message_region;
  std::vector<Job> m_jobs;
  std::size_t m_known = 0; ///< jobs that only wait for room
  std::vector<Grant> m_grants;
  std::vector<std::pair<std::size_t, Message>> m_outbox; ///< to which rank
  std::vector<std::size_t> m_unposted, m_free_sends;     ///< numbers of message slots
};

} // namespace

std::unique_ptr<FabricLane> make_naive_fabric_lane(const fi_info& info,
                                                   const std::vector<std::span<std::byte>>& buffers,
                                                   const Habits& habits) {
  return std::make_unique<NaiveFabricLane>(info, buffers, habits);
}

} // namespace reckon
