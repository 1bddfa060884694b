// SPDX-License-Identifier: Apache-2.0
#include "movers/cuda.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "movers/mailbox.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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
  GpuRegistration registration;
};

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
  std::optional<int> device; ///< none: host memory
  bool direct = true;        ///< else copies between GPUs go by way of the host
  std::vector<PeerBuffer> buffers;
  std::vector<Imported> imported;
};

/// Work in one stream, in order: what is to be told when it is over.
class Channel {
public:
  struct Item {
    std::uint32_t tag = 0;
    std::uint64_t id = 0;
    bool local = false;
    bool on_gpu = false; ///< waits for its event; else it was over when it was queued
  };

  Channel(GpuLibrary& gpus, int device)
      : m_gpus(gpus), m_stream(gpus, gpus.make_stream(device)), m_items(k_in_flight) {
    for (std::size_t i = 0; i < k_in_flight; ++i) {
      m_events.emplace_back(gpus, gpus.make_event(device, false));
    }
  }
  /// Without a GPU: only what is over when it is queued.
  explicit Channel(GpuLibrary& gpus) : m_gpus(gpus), m_items(k_in_flight) {}

  [[nodiscard]] bool full() const noexcept { return m_count == m_items.size(); }
  [[nodiscard]] bool empty() const noexcept { return m_count == 0; }
  [[nodiscard]] GpuStream stream() const noexcept { return m_stream.get(); }
  /// After the item's work was given to stream(). Not full.
  GpuStatus push(const Item& item) noexcept {
    const std::size_t at = (m_first + m_count) % m_items.size();
    const GpuStatus status = item.on_gpu ? m_gpus.record(m_events[at].get(), m_stream.get()) : 0;
    if (status == 0) {
      m_items[at] = item;
      ++m_count;
    }
    return status;
  }
  /// The oldest, if it is over.
  const Item* front(GpuStatus& status) noexcept {
    if (m_count == 0) {
      return nullptr;
    }
    const Item& item = m_items[m_first];
    if (item.on_gpu) {
      bool done = false;
      status = m_gpus.query(m_events[m_first].get(), done);
      if (status != 0 || !done) {
        return nullptr;
      }
    }
    return &item;
  }
  void pop() noexcept {
    m_first = (m_first + 1) % m_items.size();
    --m_count;
  }
  void wait_for_all() noexcept {
    if (m_stream.get().handle != nullptr) {
      static_cast<void>(m_gpus.synchronize(m_stream.get()));
    }
  }

private:
  GpuLibrary& m_gpus;
  GpuOwned<GpuStream> m_stream;
  std::vector<GpuOwned<GpuEvent>> m_events;
  std::vector<Item> m_items; ///< a ring: allocated once
  std::size_t m_first = 0, m_count = 0;
};

class CudaLane final : public MoverLane, private Engine {
public:
  CudaLane(GpuLibrary& gpus, int index, MailControl& control, std::optional<int> device,
           const std::vector<std::unique_ptr<OwnBuffer>>& buffers)
      : m_gpus(gpus), m_mail(index, control), m_device(device), m_buffers(buffers) {}

  ~CudaLane() override { wait_for_all(); } // the memory goes next

  void wait_for_all() noexcept {
    for (const auto& channel : m_channels) {
      if (channel) {
        channel->wait_for_all();
      }
    }
  }

  void connect(std::size_t self, std::deque<CudaPeer>& peers) {
    m_self = self;
    m_peers = &peers;
    std::vector<MailControl*> controls;
    for (std::size_t rank = 0; rank < peers.size(); ++rank) {
      controls.push_back(peers[rank].mail.shared);
      const std::optional<int> driver =
          rank == self || m_device ? m_device : peers[rank].device; // self: the local ops
      m_channels.push_back(driver ? std::make_unique<Channel>(m_gpus, *driver)
                                  : std::make_unique<Channel>(m_gpus));
    }
    m_mail.connect(self, std::move(controls));
    m_failed.reserve(k_in_flight);
  }

  bool write(int peer_rank, Slice source, Slice destination, std::uint64_t bytes, std::uint32_t tag,
             std::uint64_t id) noexcept override {
    const auto peer = static_cast<std::size_t>(peer_rank);
    if (m_failed.size() == m_failed.capacity()) {
      return false;
    }
    if (m_peers == nullptr || peer_rank < 0 || peer >= m_peers->size() ||
        (*m_peers)[peer].mail.shared == nullptr) {
      return refuse("no such peer", id);
    }
    const CudaPeer& to = (*m_peers)[peer];
    if (bytes != 0 &&
        (source.buffer >= m_buffers.size() || destination.buffer >= to.buffers.size() ||
         !fits(source.offset, bytes, m_buffers[source.buffer]->bytes.size()) ||
         !fits(destination.offset, bytes, to.buffers[destination.buffer].bytes.size()))) {
      return refuse("the write reaches outside its buffers", id);
    }
    Channel& channel = *m_channels[peer];
    if (channel.full()) {
      return false;
    }
    const bool on_gpu = bytes != 0 && (m_device || to.device);
    if (bytes != 0) {
      std::byte* const there = to.buffers[destination.buffer].bytes.data() + destination.offset;
      const std::byte* const here = m_buffers[source.buffer]->bytes.data() + source.offset;
      GpuStatus status = 0;
      if (!on_gpu) {
        std::memcpy(there, here, bytes);
      } else if (m_device && to.device && !to.direct) {
        status = m_gpus.copy_peer(there, *to.device, here, *m_device, bytes, channel.stream());
      } else {
        status = m_gpus.copy(there, here, bytes, channel.stream());
      }
      if (status != 0) {
        return refuse("cudaMemcpyAsync", status, id);
      }
    }
    if (const GpuStatus status = channel.push({tag, id, false, on_gpu}); status != 0) {
      return refuse("cudaEventRecord", status, id);
    }
    return true;
  }

  std::size_t poll(std::span<Completion> out) noexcept override {
    std::size_t count = 0;
    while (count < out.size() && !m_failed.empty()) {
      out[count++] = {Completion::Kind::failed, 0, m_failed.back()};
      m_failed.pop_back();
    }
    for (std::size_t rank = 0; rank < m_channels.size(); ++rank) {
      count = poll_channel(rank, out, count);
    }
    return count + m_mail.take(out.subspan(count));
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

  Engine& engine() noexcept override {
    return m_device ? static_cast<Engine&>(*this) : cpu_engine();
  }

private:
  /// What a GPU does ends without waking anybody.
  std::chrono::nanoseconds shorter_at_work(std::chrono::nanoseconds limit) noexcept {
    const bool at_work = std::any_of(m_channels.begin(), m_channels.end(),
                                     [](const auto& channel) { return !channel->empty(); });
    if (at_work && !m_naps_are_short) {
      // The kernel may end a sleep late by this much; its usual 50 us would be most of a nap.
      static_cast<void>(::prctl(PR_SET_TIMERSLACK, 1000UL, 0, 0, 0));
      m_naps_are_short = true;
    }
    return at_work ? std::min<std::chrono::nanoseconds>(limit, k_nap) : limit;
  }

  /// Engine.
  Started start(const LocalOp& op, std::uint64_t id) noexcept override {
    Channel& channel = *m_channels[m_self];
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
    case LocalOp::Kind::update:
    case LocalOp::Kind::subtract:
    case LocalOp::Kind::to_fixed:
    case LocalOp::Kind::from_fixed:
    case LocalOp::Kind::sum_in_place:
      m_attempt = "a local op on a GPU";
      m_reason = "only sums and copies have a kernel; give this work to a rank in host memory";
      m_status = 0;
      return Started::failed;
    }
    if (status == 0) {
      status = channel.push({0, id, true, true});
    }
    m_status = status;
    return status == 0 ? Started::pending : Started::failed;
  }

  std::size_t poll_channel(std::size_t rank, std::span<Completion> out,
                           std::size_t count) noexcept {
    Channel& channel = *m_channels[rank];
    while (count < out.size()) {
      GpuStatus status = 0;
      const Channel::Item* const item = channel.front(status);
      if (status != 0) {
        m_attempt = "work on the GPU";
        m_status = status;
        out[count++] = {Completion::Kind::failed, 0, 0};
        break; // CUDA gives this answer to everything from now on
      }
      if (item == nullptr || (!item->local && !m_mail.has_room(rank))) {
        break;
      }
      if (item->local) {
        out[count++] = {Completion::Kind::computed, 0, item->id};
      } else {
        // The copy's event has happened: what it wrote is visible to every device and processor.
        m_mail.put(rank, item->tag);
        out[count++] = {Completion::Kind::sent, 0, item->id};
      }
      channel.pop();
    }
    return count;
  }

  bool refuse(const char* why, std::uint64_t id) noexcept {
    m_attempt = "write(cuda)";
    m_reason = why;
    m_status = 0;
    m_failed.push_back(id);
    return true;
  }
  bool refuse(const char* attempt, GpuStatus status, std::uint64_t id) noexcept {
    m_attempt = attempt;
    m_status = status;
    m_failed.push_back(id);
    return true;
  }

  GpuLibrary& m_gpus;
  Mailbox m_mail;
  std::optional<int> m_device; ///< none: our memory is the host's
  const std::vector<std::unique_ptr<OwnBuffer>>& m_buffers;
  std::size_t m_self = 0;
  std::deque<CudaPeer>* m_peers = nullptr;
  std::vector<std::unique_ptr<Channel>> m_channels; ///< by peer; our own is for local ops
  std::vector<std::uint64_t> m_failed;              ///< ids; capacity is never exceeded
  bool m_naps_are_short = false;
  const char* m_attempt = "nothing";
  const char* m_reason = "no error";
  GpuStatus m_status = 0;
};

class CudaMover final : public Mover {
public:
  CudaMover(GpuLibrary& gpus, const MoverPlace& place) : m_gpus(gpus) {
    if (place.local_rank < 0) {
      fail(ErrorKind::internal, fmt::format("mover cuda: local rank {}", place.local_rank));
    }
    if (!place.host_memory) {
      m_device = device_at(place);
      gpus.load(*m_device);
      m_staging = GpuOwned<GpuStream>(gpus, gpus.make_stream(*m_device));
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
    if (m_device) {
      if (bytes > 0) {
        buffer->gpu = GpuMemory(m_gpus, *m_device, bytes);
        buffer->staging.resize(bytes);
      }
      buffer->bytes = {buffer->gpu.data(), bytes};
    } else {
      buffer->fd = make_shared_memory("reckon-buffer", bytes);
      buffer->host =
          Mapping(buffer->fd.get(), bytes, fmt::format("{} bytes of shared memory", bytes));
      buffer->registration = GpuRegistration(m_gpus, buffer->host.bytes());
      buffer->bytes = buffer->host.bytes();
    }
    m_buffers.push_back(std::move(buffer));
    return m_buffers.back()->bytes;
  }

  std::span<std::byte> view(std::span<std::byte> buffer) override {
    return m_device ? std::span<std::byte>(own(buffer).staging) : buffer;
  }
  void push(std::span<std::byte> buffer) override {
    if (m_device && !buffer.empty()) {
      stage(buffer.data(), own(buffer).staging.data(), buffer.size());
    }
  }
  void pull(std::span<std::byte> buffer) override {
    if (m_device && !buffer.empty()) {
      stage(own(buffer).staging.data(), buffer.data(), buffer.size());
    }
  }

  void open(int lanes) override {
    m_mail.emplace("cuda", lanes);
    for (int lane = 0; lane < lanes; ++lane) {
      m_lanes.push_back(
          std::make_unique<CudaLane>(m_gpus, lane, m_mail->control(), m_device, m_buffers));
    }
  }

  std::string address() const override {
    Json buffers = Json::array();
    for (const auto& buffer : m_buffers) {
      Json json{{"bytes", buffer->bytes.size()}};
      if (!m_device) {
        json["fd"] = buffer->fd.get();
      } else if (!buffer->bytes.empty()) {
        json["name"] = m_gpus.export_memory(*m_device, buffer->gpu.data());
        m_exported = true;
      }
      buffers.push_back(std::move(json));
    }
    Json json = m_mail->address();
    json["mover"] = "cuda";
    json["gpu"] = m_device ? m_gpus.devices()[static_cast<std::size_t>(*m_device)].pci_address : "";
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
    }
    meet();
    m_exported = false;
  }

private:
  [[nodiscard]] std::optional<int> device_at(const std::string& pci_address) const {
    const auto found =
        std::ranges::find(m_gpus.devices(), pci_address, &GpuProperties::pci_address);
    return found == m_gpus.devices().end()
               ? std::nullopt
               : std::optional(static_cast<int>(found - m_gpus.devices().begin()));
  }
  [[nodiscard]] int device_at(const MoverPlace& place) const {
    if (place.pci_address.empty()) {
      return place.local_rank % static_cast<int>(m_gpus.devices().size());
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
    check_gpu(m_gpus, m_gpus.copy(to, from, bytes, m_staging.get()), "cudaMemcpyAsync");
    check_gpu(m_gpus, m_gpus.synchronize(m_staging.get()), "cudaMemcpyAsync");
  }

  void attach(CudaPeer& peer, std::size_t rank, const std::string& address) {
    const std::string who = fmt::format("address of rank {}", rank);
    const Json json = parse_json(address, who);
    const JsonView view(json, who);
    view.only({"mover", "boot", "pid", "token", "control", "lanes", "buffers", "gpu"});
    static_cast<void>(view.at("mover").one_of({"cuda"}));
    peer.mail = m_mail->attach("cuda", rank, view);
    const std::string gpu = view.at("gpu").string();
    if (!gpu.empty()) {
      peer.device = device_at(gpu);
      if (!peer.device) {
        fail(ErrorKind::unavailable,
             fmt::format("connect(cuda): the GPU {} of rank {} is hidden from this process; start "
                         "all ranks with the same CUDA_VISIBLE_DEVICES, or with none",
                         gpu, rank));
      }
      peer.direct =
          !m_device || *m_device == *peer.device || m_gpus.can_access_peer(*m_device, *peer.device);
    }
    for (const JsonView& buffer : view.at("buffers").elements()) {
      buffer.only({"bytes", "fd", "name"});
      const std::uint64_t bytes = buffer.at("bytes").count();
      PeerBuffer& reached = peer.buffers.emplace_back();
      if (bytes == 0) {
        continue;
      }
      if (peer.device) {
        // On our own GPU where it reaches the memory, else on the GPU that has it.
        const int on = m_device && peer.direct ? *m_device : *peer.device;
        std::byte* const memory = m_gpus.import_memory(on, buffer.at("name").string());
        peer.imported.push_back(Imported(memory, {&m_gpus, on}));
        reached.bytes = {memory, bytes};
      } else {
        reached.host = map_of_peer("cuda", rank, peer.mail.pid, buffer.at("fd").integer(0, INT_MAX),
                                   bytes, true);
        if (m_device) {
          reached.registration = GpuRegistration(m_gpus, reached.host.bytes());
        }
        reached.bytes = reached.host.bytes();
      }
    }
  }

  GpuLibrary& m_gpus;
  std::optional<int> m_device; ///< none: host memory
  GpuOwned<GpuStream> m_staging;
  MoverCapabilities m_capabilities;
  mutable bool m_exported = false; ///< others may have our GPU memory open: it must not be freed
  std::vector<std::unique_ptr<OwnBuffer>> m_buffers;
  std::optional<MailboxSegment> m_mail;
  std::deque<CudaPeer> m_peers;
  std::vector<std::unique_ptr<CudaLane>> m_lanes; ///< last: nothing is under way when the rest goes
};

} // namespace

std::unique_ptr<Mover> make_cuda_mover(GpuLibrary& gpus, const MoverPlace& place) {
  return std::make_unique<CudaMover>(gpus, place);
}

} // namespace reckon
