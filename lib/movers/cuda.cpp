// SPDX-License-Identifier: Apache-2.0
#include "movers/cuda.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "movers/mailbox.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <climits>
#include <cstring>
#include <deque>
#include <optional>
#include <sys/prctl.h>

namespace reckon {
namespace {

/// Writes or local ops that one stream may hold: far fewer than a queue of CUDA does.
constexpr std::size_t k_in_flight = 64;
/// Between two looks at what a GPU does. A nap takes a few microseconds more.
constexpr std::chrono::microseconds k_nap{10};

/// A tag of nobody's: the receiver is to look at the wishes that it shares with the sender.
constexpr std::uint32_t k_look = UINT32_MAX;
constexpr std::size_t k_most_ranks = 256; // as of the mailbox

/// A write from host memory into a GPU's, which the rank on that GPU makes: were it made by the
/// rank that sends, two processes would take turns on the GPU, a fraction of a millisecond each.
struct Wish {
  Slice source;      ///< of the sender's buffers
  Slice destination; ///< of the receiver's
  std::uint64_t bytes = 0;
  std::uint32_t tag = 0;
};

/// The wishes of one lane of a rank to one other rank, in the sender's memory. A wish is there when
/// `asked` counts it, and its place free again when `done` does; the mail that says so comes after.
struct Wishes {
  alignas(128) std::atomic<std::uint32_t> asked;
  alignas(128) std::atomic<std::uint32_t> done;
  alignas(128) std::array<Wish, k_in_flight> wishes;

  [[nodiscard]] Wish& at(std::uint32_t number) noexcept { return wishes[number % k_in_flight]; }
};

/// The wishes of one lane: by number of the receiver among the ranks that are reached.
using LaneWishes = std::array<Wishes, k_most_ranks>;

void check_gpu(const GpuLibrary& gpus, GpuStatus status, const std::string& attempt) {
  if (status != 0) {
    fail(ErrorKind::operation, fmt::format("{}: {}", attempt, gpus.words(status)));
  }
}

/// A buffer of ours. `gpu` or `host` is what it lies in.
struct OwnBuffer {
  std::span<std::byte> bytes;
  GpuMemory gpu;
  std::vector<std::byte> staging; ///< of GPU memory
  Fd fd;
  Mapping host;
};

using Buffers = std::vector<std::unique_ptr<OwnBuffer>>;

/// A peer's, as we reach it.
struct PeerBuffer {
  std::span<std::byte> bytes;
  Mapping host;
  GpuRegistration registration;
};

struct CloseMemory {
  GpuLibrary* gpus = nullptr;
  int device = 0;
  void operator()(std::byte* memory) const noexcept { gpus->close_memory(device, memory); }
};
/// Memory of another process.
using Imported = std::unique_ptr<std::byte, CloseMemory>;

struct CudaPeer {
  PeerMail mail;
  bool on_gpu = false;       ///< its memory is a GPU's
  std::optional<int> device; ///< that GPU, as a rank on a GPU numbers it
  bool direct = true;        ///< else copies between GPUs go by way of the host
  std::vector<PeerBuffer> buffers;
  std::vector<Imported> imported;
  Mapping wishes; ///< of a rank in host memory: what it wants a rank on a GPU to do
};

/// Why a write cannot be; nullptr when it can.
const char* why_not(const std::deque<CudaPeer>* peers, int peer_rank, const Buffers& own,
                    Slice source, Slice destination, std::uint64_t bytes) noexcept {
  const auto peer = static_cast<std::size_t>(peer_rank);
  if (peers == nullptr || peer_rank < 0 || peer >= peers->size() ||
      (*peers)[peer].mail.shared == nullptr) {
    return "no such peer";
  }
  const CudaPeer& to = (*peers)[peer];
  const bool fit =
      bytes == 0 || (source.buffer < own.size() && destination.buffer < to.buffers.size() &&
                     fits(source.offset, bytes, own[source.buffer]->bytes.size()) &&
                     fits(destination.offset, bytes, to.buffers[destination.buffer].bytes.size()));
  return fit ? nullptr : "the write reaches outside its buffers";
}

/// Arrivals only: what tells of wishes is left out.
std::size_t take_arrivals(Mailbox& mail, std::span<Completion> out) noexcept {
  const auto end = out.begin() + static_cast<std::ptrdiff_t>(mail.take(out));
  const auto is_look = [](const Completion& completion) { return completion.tag == k_look; };
  return static_cast<std::size_t>(std::remove_if(out.begin(), end, is_look) - out.begin());
}

/// The lists of peers that a lane works with.
struct LanePeers {
  std::deque<CudaPeer>* all = nullptr;
  std::size_t self = 0;
  std::vector<std::size_t> number; ///< of each rank among those that are reached

  LanePeers() = default;
  LanePeers(std::deque<CudaPeer>& peers, std::size_t self_rank) : all(&peers), self(self_rank) {
    std::size_t reached = 0;
    for (std::size_t rank = 0; rank < peers.size(); ++rank) {
      number.push_back(reached);
      reached += rank == self || peers[rank].mail.shared != nullptr ? 1U : 0U;
    }
  }
  [[nodiscard]] std::vector<MailControl*> controls() const {
    std::vector<MailControl*> out;
    for (const CudaPeer& peer : *all) {
      out.push_back(peer.mail.shared);
    }
    return out;
  }
};

/// Of a rank on a GPU or in host memory.
class CudaLane : public MoverLane {
public:
  virtual void connect(std::size_t self, std::deque<CudaPeer>& peers) = 0;
  virtual void wait_for_all() noexcept = 0;
};

/// Of a rank in host memory. The processor copies into others' host memory; what goes into a GPU's
/// is wished for.
class ProcessorLane final : public CudaLane {
public:
  ProcessorLane(int index, MailControl& control, LaneWishes& wishes, const Buffers& buffers)
      : m_mail(index, control), m_wishes(wishes), m_buffers(buffers) {}

  void wait_for_all() noexcept override {}

  void connect(std::size_t self, std::deque<CudaPeer>& peers) override {
    m_peers = LanePeers(peers, self);
    m_mail.connect(self, m_peers.controls());
    m_wished.resize(peers.size());
    for (std::size_t rank = 0; rank < peers.size(); ++rank) {
      if (peers[rank].on_gpu) {
        to(rank).asked.store(0, std::memory_order_relaxed); // its pages come now
      }
    }
    m_told.reserve(k_in_flight);
  }

  bool write(int peer_rank, Slice source, Slice destination, std::uint64_t bytes, std::uint32_t tag,
             std::uint64_t id) noexcept override {
    if (m_told.size() == m_told.capacity()) {
      return false;
    }
    if (const char* const why =
            why_not(m_peers.all, peer_rank, m_buffers, source, destination, bytes)) {
      m_reason = why;
      m_told.push_back({Completion::Kind::failed, 0, id});
      return true;
    }
    const auto peer = static_cast<std::size_t>(peer_rank);
    const CudaPeer& receiver = (*m_peers.all)[peer];
    if (receiver.on_gpu) {
      return wish(peer, {source, destination, bytes, tag}, id);
    }
    if (!m_mail.has_room(peer)) {
      return false;
    }
    if (bytes != 0) {
      std::memcpy(receiver.buffers[destination.buffer].bytes.data() + destination.offset,
                  m_buffers[source.buffer]->bytes.data() + source.offset, bytes);
    }
    m_mail.put(peer, tag);
    m_told.push_back({Completion::Kind::sent, 0, id});
    return true;
  }

  std::size_t poll(std::span<Completion> out) noexcept override {
    std::size_t count = 0;
    while (count < out.size() && !m_told.empty()) {
      out[count++] = m_told.back();
      m_told.pop_back();
    }
    count += take_arrivals(m_mail, out.subspan(count));
    // After the mail was taken: what is done later comes with more mail.
    for (std::size_t rank = 0; rank < m_wished.size(); ++rank) {
      Wished& wished = m_wished[rank];
      while (count < out.size() && wished.told != wished.asked &&
             wished.told != to(rank).done.load(std::memory_order_acquire)) {
        out[count++] = {Completion::Kind::sent, 0, wished.ids[wished.told++ % k_in_flight]};
      }
    }
    return count;
  }

  void wait(std::chrono::nanoseconds limit) noexcept override {
    if (m_told.empty()) {
      m_mail.sleep(limit);
    }
  }
  std::optional<LaneSleep> before_sleep(std::chrono::nanoseconds limit) noexcept override {
    return m_told.empty() ? m_mail.before_sleep(limit) : std::nullopt;
  }
  void after_sleep() noexcept override { m_mail.after_sleep(); }

  std::string error() const override { return fmt::format("write(cuda): {}", m_reason); }

private:
  struct Wished {
    std::uint32_t asked = 0, told = 0;
    std::array<std::uint64_t, k_in_flight> ids{};
  };

  [[nodiscard]] Wishes& to(std::size_t rank) noexcept { return m_wishes[m_peers.number[rank]]; }

  bool wish(std::size_t peer, const Wish& wish, std::uint64_t id) noexcept {
    Wished& wished = m_wished[peer];
    if (wished.asked - wished.told == k_in_flight || !m_mail.has_room(peer)) {
      return false;
    }
    Wishes& shared = to(peer);
    shared.at(wished.asked) = wish;
    wished.ids[wished.asked % k_in_flight] = id;
    shared.asked.store(++wished.asked, std::memory_order_release);
    m_mail.put(peer, k_look);
    return true;
  }

  Mailbox m_mail;
  LaneWishes& m_wishes;
  const Buffers& m_buffers;
  LanePeers m_peers;
  std::vector<Wished> m_wished;   ///< by rank
  std::vector<Completion> m_told; ///< capacity is never exceeded
  const char* m_reason = "no error";
};

/// Work on the GPU that is told in order when it is over. It takes turns between streams: in a
/// single one the GPU would rest between a copy and the next while it tells of the first.
class Channel {
public:
  struct Item {
    enum class Kind : std::uint8_t {
      write,    ///< ours into a peer's memory
      wish,     ///< a peer's into ours
      local_op, ///< of the lane's engine
    };
    Kind kind = Kind::write;
    std::uint32_t tag = 0;
    std::uint64_t id = 0;
    bool on_gpu = true; ///< else it was over when it was queued
  };

  Channel(GpuLibrary& gpus, int device)
      : m_gpus(gpus), m_queues{Queue(gpus, device), Queue(gpus, device)} {}

  [[nodiscard]] bool full() const noexcept { return m_count == m_items.size(); }
  [[nodiscard]] bool empty() const noexcept { return m_count == 0; }
  /// Where the next item's work goes.
  [[nodiscard]] GpuStream stream() const noexcept { return m_queues[m_next].stream.get(); }
  /// After the item's work was given to stream(). Not full.
  GpuStatus push(const Item& item) noexcept {
    Queue& queue = m_queues[m_next];
    const GpuStatus status =
        item.on_gpu ? m_gpus.count(queue.counter.get(), queue.stream.get()) : 0;
    if (status == 0) {
      m_items[(m_first + m_count++) % m_items.size()] = item;
      m_next = (m_next + (item.on_gpu ? 1U : 0U)) % m_queues.size();
    }
    return status;
  }
  /// The oldest, if it is over.
  const Item* front(GpuStatus& status) noexcept {
    if (m_count == 0) {
      return nullptr;
    }
    const Item& item = m_items[m_first];
    Queue& queue = m_queues[m_oldest];
    if (item.on_gpu && queue.over == queue.told) {
      status = m_gpus.counted(queue.counter.get(), queue.over);
      if (status != 0 || queue.over == queue.told) {
        return nullptr;
      }
    }
    return &item;
  }
  void pop() noexcept {
    if (m_items[m_first].on_gpu) {
      ++m_queues[m_oldest].told;
      m_oldest = (m_oldest + 1) % m_queues.size();
    }
    m_first = (m_first + 1) % m_items.size();
    --m_count;
  }
  void wait_for_all() noexcept {
    for (const Queue& queue : m_queues) {
      static_cast<void>(m_gpus.synchronize(queue.stream.get()));
    }
  }

private:
  struct Queue {
    GpuOwned<GpuStream> stream;
    GpuOwned<GpuCounter> counter;
    std::uint32_t over = 0; ///< items that were over at the last look
    std::uint32_t told = 0; ///< of these, those that were taken
    Queue(GpuLibrary& gpus, int device)
        : stream(gpus, gpus.make_stream(device)), counter(gpus, gpus.make_counter(device)) {}
  };

  GpuLibrary& m_gpus;
  std::array<Queue, 2> m_queues;
  std::size_t m_next = 0, m_oldest = 0;    ///< queues: of the next item, and of the oldest
  std::array<Item, k_in_flight> m_items{}; ///< a ring
  std::size_t m_first = 0, m_count = 0;
};

/// Of a rank on a GPU, which alone gives work to it.
class GpuLane final : public CudaLane, private Engine {
public:
  GpuLane(GpuLibrary& gpus, int device, int index, MailControl& control, const Buffers& buffers)
      : m_gpus(gpus), m_device(device), m_index(static_cast<std::size_t>(index)),
        m_mail(index, control), m_buffers(buffers) {}

  ~GpuLane() override { all_done(); } // the memory goes next

  void wait_for_all() noexcept override { all_done(); }

  void connect(std::size_t self, std::deque<CudaPeer>& peers) override {
    m_peers = LanePeers(peers, self);
    m_mail.connect(self, m_peers.controls());
    m_accepted.resize(peers.size());
    m_wished.resize(peers.size());
    for (std::size_t rank = 0; rank < peers.size(); ++rank) {
      m_channels.push_back(std::make_unique<Channel>(m_gpus, m_device));
      if (!peers[rank].wishes.bytes().empty()) {
        m_wished[rank] = std::make_unique<Channel>(m_gpus, m_device);
      }
    }
    m_failed.reserve(k_in_flight);
  }

  bool write(int peer_rank, Slice source, Slice destination, std::uint64_t bytes, std::uint32_t tag,
             std::uint64_t id) noexcept override {
    if (m_failed.size() == m_failed.capacity()) {
      return false;
    }
    if (const char* const why =
            why_not(m_peers.all, peer_rank, m_buffers, source, destination, bytes)) {
      m_attempt = "write(cuda)";
      m_reason = why;
      m_status = 0;
      m_failed.push_back(id);
      return true;
    }
    const auto peer = static_cast<std::size_t>(peer_rank);
    const CudaPeer& to = (*m_peers.all)[peer];
    Channel& channel = *m_channels[peer];
    if (channel.full()) {
      return false;
    }
    GpuStatus status = 0;
    if (bytes != 0) {
      m_attempt = "cudaMemcpyAsync";
      std::byte* const there = to.buffers[destination.buffer].bytes.data() + destination.offset;
      const std::byte* const here = m_buffers[source.buffer]->bytes.data() + source.offset;
      status = to.direct
                   ? m_gpus.copy(there, here, bytes, channel.stream())
                   : m_gpus.copy_peer(there, *to.device, here, m_device, bytes, channel.stream());
    }
    if (status == 0) {
      status = queue(channel, {Channel::Item::Kind::write, tag, id, bytes != 0});
    }
    if (status != 0) {
      m_status = status;
      m_failed.push_back(id);
    }
    return true;
  }

  std::size_t poll(std::span<Completion> out) noexcept override {
    std::size_t count = 0;
    while (count < out.size() && !m_failed.empty()) {
      out[count++] = {Completion::Kind::failed, 0, m_failed.back()};
      m_failed.pop_back();
    }
    count += take_arrivals(m_mail, out.subspan(count));
    for (std::size_t rank = 0; rank < m_channels.size(); ++rank) {
      count = poll_channel(rank, *m_channels[rank], out, count);
      if (m_wished[rank]) {
        // After the mail was taken: a wish that comes later comes with more mail.
        count = accept_wishes(rank, out, count);
        count = poll_channel(rank, *m_wished[rank], out, count);
      }
    }
    return count;
  }

  void wait(std::chrono::nanoseconds limit) noexcept override {
    if (m_failed.empty()) {
      m_mail.sleep(shorter_at_work(limit));
    }
  }

  std::optional<LaneSleep> before_sleep(std::chrono::nanoseconds limit) noexcept override {
    return m_failed.empty() ? m_mail.before_sleep(shorter_at_work(limit)) : std::nullopt;
  }
  void after_sleep() noexcept override { m_mail.after_sleep(); }

  std::string error() const override {
    return m_status == 0 ? fmt::format("{}: {}", m_attempt, m_reason)
                         : fmt::format("{}: {}", m_attempt, m_gpus.words(m_status));
  }

  Engine& engine() noexcept override { return *this; }

private:
  void all_done() noexcept {
    for (const auto* const channels : {&m_channels, &m_wished}) {
      for (const auto& channel : *channels) {
        if (channel) {
          channel->wait_for_all();
        }
      }
    }
  }

  /// What a GPU does ends without waking anybody.
  std::chrono::nanoseconds shorter_at_work(std::chrono::nanoseconds limit) noexcept {
    const auto is_busy = [](const auto& channel) { return channel && !channel->empty(); };
    const bool at_work = std::any_of(m_channels.begin(), m_channels.end(), is_busy) ||
                         std::any_of(m_wished.begin(), m_wished.end(), is_busy);
    static thread_local bool naps_are_short = false;
    if (at_work && !naps_are_short) {
      // The kernel may end a sleep late by this much; its usual 50 us would be most of a nap.
      static_cast<void>(::prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0));
      naps_are_short = true;
    }
    return at_work ? std::min<std::chrono::nanoseconds>(limit, k_nap) : limit;
  }

  /// Engine.
  Started start(const LocalOp& op, std::uint64_t id) noexcept override {
    Channel& channel = *m_channels[m_peers.self];
    if (channel.full()) {
      return Started::full;
    }
    GpuStatus status = 0;
    switch (op.kind) {
    case LocalOp::Kind::copy:
      m_attempt = "cudaMemcpyAsync";
      status = m_gpus.copy(op.to, static_cast<const std::byte*>(op.sources[0]), op.bytes,
                           channel.stream());
      break;
    case LocalOp::Kind::sum:
      m_attempt = "the summation kernel";
      status = m_gpus.sum(op.dtype, op.to, op.sources, op.bytes / size_of(op.dtype), 0,
                          channel.stream());
      break;
    default:
      m_attempt = "a local op on a GPU";
      m_reason = "only sums and copies have a kernel; give this work to a rank in host memory";
      m_status = 0;
      return Started::failed;
    }
    if (status == 0) {
      status = queue(channel, {Channel::Item::Kind::local_op, 0, id, true});
    }
    m_status = status;
    return status == 0 ? Started::pending : Started::failed;
  }

  GpuStatus queue(Channel& channel, const Channel::Item& item) noexcept {
    const GpuStatus status = channel.push(item);
    if (status != 0) {
      m_attempt = "cuStreamWriteValue32";
    }
    return status;
  }

  [[nodiscard]] Wishes& from(std::size_t rank) noexcept {
    auto* const lanes = reinterpret_cast<LaneWishes*>((*m_peers.all)[rank].wishes.bytes().data());
    return lanes[m_index][m_peers.number[m_peers.self]];
  }

  std::size_t accept_wishes(std::size_t rank, std::span<Completion> out,
                            std::size_t count) noexcept {
    const CudaPeer& peer = (*m_peers.all)[rank];
    if (peer.wishes.bytes().empty()) {
      return count; // disconnected
    }
    Wishes& wishes = from(rank);
    Channel& channel = *m_wished[rank];
    std::uint32_t& accepted = m_accepted[rank];
    while (count < out.size() && !channel.full() &&
           accepted != wishes.asked.load(std::memory_order_acquire)) {
      const Wish wish = wishes.at(accepted++);
      GpuStatus status = 0;
      m_attempt = "cudaMemcpyAsync";
      if (wish.bytes != 0) { // both ends were checked by who wishes, by what we said of our memory
        status =
            m_gpus.copy(m_buffers[wish.destination.buffer]->bytes.data() + wish.destination.offset,
                        peer.buffers[wish.source.buffer].bytes.data() + wish.source.offset,
                        wish.bytes, channel.stream());
      }
      if (status == 0) {
        status = queue(channel, {Channel::Item::Kind::wish, wish.tag, 0, wish.bytes != 0});
      }
      if (status != 0) {
        m_status = status;
        out[count++] = {Completion::Kind::failed, 0, 0};
      }
    }
    return count;
  }

  std::size_t poll_channel(std::size_t rank, Channel& channel, std::span<Completion> out,
                           std::size_t count) noexcept {
    while (count < out.size()) {
      GpuStatus status = 0;
      const Channel::Item* const item = channel.front(status);
      if (status != 0) {
        m_attempt = "work on the GPU";
        m_status = status;
        out[count++] = {Completion::Kind::failed, 0, 0};
        break; // CUDA gives this answer to everything from now on
      }
      if (item == nullptr ||
          (item->kind != Channel::Item::Kind::local_op && !m_mail.has_room(rank))) {
        break;
      }
      // It is over: what it wrote is visible to every device and processor.
      switch (item->kind) {
      case Channel::Item::Kind::local_op:
        out[count++] = {Completion::Kind::computed, 0, item->id};
        break;
      case Channel::Item::Kind::write:
        m_mail.put(rank, item->tag);
        out[count++] = {Completion::Kind::sent, 0, item->id};
        break;
      case Channel::Item::Kind::wish:
        from(rank).done.fetch_add(1, std::memory_order_release);
        m_mail.put(rank, k_look);
        out[count++] = {Completion::Kind::arrived, item->tag, 0};
        break;
      }
      channel.pop();
    }
    return count;
  }

  GpuLibrary& m_gpus;
  int m_device;
  std::size_t m_index;
  Mailbox m_mail;
  const Buffers& m_buffers;
  LanePeers m_peers;
  std::vector<std::unique_ptr<Channel>> m_channels; ///< by peer; our own is for local ops
  std::vector<std::unique_ptr<Channel>> m_wished;   ///< by peer; of those in host memory
  std::vector<std::uint32_t> m_accepted;            ///< by peer: wishes
  std::vector<std::uint64_t> m_failed;              ///< ids; capacity is never exceeded
  const char* m_attempt = "nothing";
  const char* m_reason = "no error";
  GpuStatus m_status = 0;
};

class CudaMover final : public Mover {
public:
  CudaMover(GpuLibrary* gpus, const MoverPlace& place) : m_gpus(gpus) {
    if (place.local_rank < 0 || (gpus == nullptr) != place.host_memory) {
      fail(ErrorKind::internal, fmt::format("mover cuda: local rank {}, in host memory: {}",
                                            place.local_rank, place.host_memory));
    }
    if (m_gpus != nullptr) {
      m_device = device_at(place);
      m_gpus->load(m_device);
      m_staging = GpuOwned<GpuStream>(*m_gpus, m_gpus->make_stream(m_device));
    }
    m_capabilities.name = "cuda";
    m_capabilities.crosses_machines = false;
    m_capabilities.max_write_bytes = UINT64_MAX;
    m_capabilities.max_in_flight = k_in_flight;
  }

  ~CudaMover() override {
    if (m_exported) {
      for (const auto& buffer : m_buffers) {
        buffer->gpu.abandon();
      }
    }
  }

  const MoverCapabilities& capabilities() const noexcept override { return m_capabilities; }

  std::span<std::byte> allocate(std::uint64_t bytes) override {
    if (m_mail) {
      fail(ErrorKind::internal, "allocate(cuda): after open()");
    }
    auto buffer = std::make_unique<OwnBuffer>();
    if (m_gpus != nullptr) {
      if (bytes > 0) {
        buffer->gpu = GpuMemory(*m_gpus, m_device, bytes);
        buffer->staging.resize(bytes);
      }
      buffer->bytes = {buffer->gpu.data(), bytes};
    } else {
      buffer->fd = make_shared_memory("reckon-buffer", bytes);
      buffer->host =
          Mapping(buffer->fd.get(), bytes, fmt::format("{} bytes of shared memory", bytes));
      buffer->bytes = buffer->host.bytes();
    }
    m_buffers.push_back(std::move(buffer));
    return m_buffers.back()->bytes;
  }

  std::span<std::byte> view(std::span<std::byte> buffer) override {
    return m_gpus != nullptr ? std::span<std::byte>(own(buffer).staging) : buffer;
  }
  void push(std::span<std::byte> buffer) override {
    if (m_gpus != nullptr && !buffer.empty()) {
      stage(buffer.data(), own(buffer).staging.data(), buffer.size());
    }
  }
  void pull(std::span<std::byte> buffer) override {
    if (m_gpus != nullptr && !buffer.empty()) {
      stage(own(buffer).staging.data(), buffer.data(), buffer.size());
    }
  }

  void open(int lanes) override {
    m_mail.emplace("cuda", lanes);
    if (m_gpus == nullptr) {
      const std::uint64_t bytes = wishes_bytes(lanes);
      m_wishes_fd = make_shared_memory("reckon-wishes", bytes); // zeros: nothing was asked for
      m_wishes = Mapping(m_wishes_fd.get(), bytes, "wishes", false);
    }
    for (int lane = 0; lane < lanes; ++lane) {
      if (m_gpus != nullptr) {
        m_lanes.push_back(
            std::make_unique<GpuLane>(*m_gpus, m_device, lane, m_mail->control(), m_buffers));
      } else {
        auto* const wishes = reinterpret_cast<LaneWishes*>(m_wishes.bytes().data());
        m_lanes.push_back(
            std::make_unique<ProcessorLane>(lane, m_mail->control(), wishes[lane], m_buffers));
      }
    }
  }

  std::string address() const override {
    Json buffers = Json::array();
    for (const auto& buffer : m_buffers) {
      Json json{{"bytes", buffer->bytes.size()}};
      if (m_gpus == nullptr) {
        json["fd"] = buffer->fd.get();
      } else if (!buffer->bytes.empty()) {
        json["name"] = m_gpus->export_memory(m_device, buffer->gpu.data());
        m_exported = true;
      }
      buffers.push_back(std::move(json));
    }
    Json json = m_mail->address();
    json["mover"] = "cuda";
    if (m_gpus != nullptr) {
      json["gpu"] = m_gpus->devices()[static_cast<std::size_t>(m_device)].pci_address;
    } else {
      json["wishes"] = m_wishes_fd.get();
    }
    json["buffers"] = std::move(buffers);
    return json.dump();
  }

  void connect(int self, const std::vector<std::string>& addresses) override {
    if (m_lanes.empty()) {
      fail(ErrorKind::internal, "connect(cuda): before open()");
    }
    check_mail_ranks("cuda", self, addresses);
    for (std::size_t rank = 0; rank < addresses.size(); ++rank) {
      m_peers.emplace_back();
      if (rank != static_cast<std::size_t>(self) && !addresses[rank].empty()) {
        attach(m_peers.back(), rank, addresses[rank]);
      }
    }
    for (const auto& lane : m_lanes) {
      lane->connect(static_cast<std::size_t>(self), m_peers);
    }
  }

  MoverLane& lane(int index) override { return *m_lanes.at(static_cast<std::size_t>(index)); }

  void disconnect(const std::function<void()>& meet) override {
    for (const auto& lane : m_lanes) {
      lane->wait_for_all();
    }
    for (CudaPeer& peer : m_peers) {
      peer.buffers.clear();
      peer.imported.clear();
      peer.wishes = Mapping();
    }
    meet();
    m_exported = false;
  }

private:
  [[nodiscard]] std::optional<int> device_at(const std::string& pci_address) const {
    const auto found =
        std::ranges::find(m_gpus->devices(), pci_address, &GpuProperties::pci_address);
    return found == m_gpus->devices().end()
               ? std::nullopt
               : std::optional(static_cast<int>(found - m_gpus->devices().begin()));
  }
  [[nodiscard]] int device_at(const MoverPlace& place) const {
    if (place.pci_address.empty()) {
      return place.local_rank % static_cast<int>(m_gpus->devices().size());
    }
    if (const auto device = device_at(place.pci_address)) {
      return *device;
    }
    fail(ErrorKind::unavailable,
         fmt::format("mover cuda: no GPU at {} here; plan for this machine, or run over another "
                     "transport (--transport host)",
                     place.pci_address));
  }

  OwnBuffer& own(std::span<std::byte> buffer) const {
    for (const auto& mine : m_buffers) {
      if (mine->bytes.data() == buffer.data() && mine->bytes.size() == buffer.size()) {
        return *mine;
      }
    }
    fail(ErrorKind::internal, "mover cuda: a buffer that allocate() did not give");
  }

  void stage(std::byte* to, const std::byte* from, std::uint64_t bytes) {
    check_gpu(*m_gpus, m_gpus->copy(to, from, bytes, m_staging.get()), "cudaMemcpyAsync");
    check_gpu(*m_gpus, m_gpus->synchronize(m_staging.get()), "cudaMemcpyAsync");
  }

  void attach(CudaPeer& peer, std::size_t rank, const std::string& address) {
    const std::string who = fmt::format("address of rank {}", rank);
    const Json json = parse_json(address, who);
    const JsonView view(json, who);
    require_same_mover("cuda", view.at("mover").string(), rank);
    view.only({"mover", "boot", "pid", "token", "control", "lanes", "buffers", "gpu", "wishes"});
    peer.mail = m_mail->attach("cuda", rank, view);
    peer.on_gpu = view.find("gpu").has_value();
    if (m_gpus != nullptr) {
      if (peer.on_gpu) {
        find_gpu(peer, rank, view.at("gpu").string());
      } else {
        peer.wishes =
            map_of_peer("cuda", rank, peer.mail.pid, view.at("wishes").integer(0, INT_MAX),
                        wishes_bytes(static_cast<int>(m_lanes.size())), false);
      }
    }
    for (const JsonView& buffer : view.at("buffers").elements()) {
      buffer.only({"bytes", "fd", "name"});
      peer.buffers.push_back(reach(peer, rank, buffer));
    }
  }

  void find_gpu(CudaPeer& peer, std::size_t rank, const std::string& address) const {
    peer.device = device_at(address);
    if (!peer.device) {
      fail(ErrorKind::unavailable,
           fmt::format("connect(cuda): the GPU {} of rank {} is hidden from this process; start "
                       "all ranks with the same CUDA_VISIBLE_DEVICES, or with none",
                       address, rank));
    }
    peer.direct = m_device == *peer.device || m_gpus->can_access_peer(m_device, *peer.device);
  }

  PeerBuffer reach(CudaPeer& peer, std::size_t rank, const JsonView& buffer) const {
    PeerBuffer reached;
    const std::uint64_t bytes = buffer.at("bytes").count();
    if (bytes == 0) {
      return reached;
    }
    if (!peer.on_gpu) {
      reached.host = map_of_peer("cuda", rank, peer.mail.pid, buffer.at("fd").integer(0, INT_MAX),
                                 bytes, true);
      if (m_gpus != nullptr) {
        reached.registration = GpuRegistration(*m_gpus, reached.host.bytes());
      }
      reached.bytes = reached.host.bytes();
    } else if (m_gpus != nullptr) {
      // On our own GPU where it reaches the memory, else on the GPU that has it.
      const int on = peer.direct ? m_device : *peer.device;
      std::byte* const memory = m_gpus->import_memory(on, buffer.at("name").string());
      peer.imported.push_back(Imported(memory, {m_gpus, on}));
      reached.bytes = {memory, bytes};
    } else { // only how long it is: the rank on the GPU writes there
      reached.bytes = {static_cast<std::byte*>(nullptr), bytes};
    }
    return reached;
  }

  static std::uint64_t wishes_bytes(int lanes) {
    return sizeof(LaneWishes) * static_cast<std::uint64_t>(lanes);
  }

  GpuLibrary* m_gpus; ///< null: our memory is the host's
  int m_device = 0;
  GpuOwned<GpuStream> m_staging;
  MoverCapabilities m_capabilities;
  mutable bool m_exported = false; ///< others may have our GPU memory open: it must not be freed
  Buffers m_buffers;
  std::optional<MailboxSegment> m_mail;
  Fd m_wishes_fd;
  Mapping m_wishes; ///< a LaneWishes for each lane; of a rank in host memory
  std::deque<CudaPeer> m_peers;
  std::vector<std::unique_ptr<CudaLane>> m_lanes; ///< last: nothing is under way when the rest goes
};

} // namespace

std::unique_ptr<Mover> make_cuda_mover(GpuLibrary* gpus, const MoverPlace& place) {
  return std::make_unique<CudaMover>(gpus, place);
}

} // namespace reckon
