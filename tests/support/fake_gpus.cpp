// SPDX-License-Identifier: Apache-2.0
#include "support/fake_gpus.hpp"

#include "core/error.hpp"
#include "kernels/cuda_probe.hpp"
#include "kernels/reduce.hpp"
#include "kernels/scale.hpp"
#include "movers/mailbox.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>
#include <thread>
#include <unistd.h>

namespace reckon::support {

class FakeGpus::FakeWork final : public GpuWork {
public:
  explicit FakeWork(FakeGpus& gpus, std::uint64_t size) : m_gpus(gpus), m_size(size) {}
  GpuStatus launch(GpuStream stream) noexcept override {
    Work what{Kind::other, stream.device, nullptr, nullptr, m_size, 0};
    return m_gpus.work(what, stream, [] {});
  }

private:
  FakeGpus& m_gpus;
  std::uint64_t m_size;
};

namespace {
constexpr GpuStatus k_lost = 719; // as CUDA's for a device that failed
} // namespace

FakeGpus::FakeGpus(int count) {
  for (int i = 0; i < count; ++i) {
    m_devices.push_back({"Made-up GPU", fmt::format("0000:{:02x}:00.0", 16 + i), 1ULL << 34U, 8});
  }
  seconds = [](const Work& what) { return 2e-6 + static_cast<double>(what.bytes) * 1e-10; };
}

void FakeGpus::let_all_be_peers() {
  for (int a = 0; a < static_cast<int>(m_devices.size()); ++a) {
    for (int b = 0; b < static_cast<int>(m_devices.size()); ++b) {
      peers.insert({a, b});
    }
  }
}

FakeGpus::~FakeGpus() {
  for (void* const handle : m_handles) { // whoever left some was told so by living()
    ::operator delete(handle);
  }
}

int FakeGpus::device_of(const std::byte* memory) const {
  const auto after = m_memory.upper_bound(memory);
  if (after == m_memory.begin()) {
    return -1;
  }
  const auto& [begin, held] = *std::prev(after);
  return memory < begin + held.mapping.bytes().size() ? held.device : -1;
}

bool FakeGpus::is_registered(const std::byte* memory) const {
  const auto after = m_registered.upper_bound(memory);
  return after != m_registered.begin() &&
         memory < std::prev(after)->first + std::prev(after)->second;
}

std::size_t FakeGpus::living() const {
  return m_memory.size() + m_registered.size() + m_handles.size();
}

std::string FakeGpus::words(GpuStatus status) const {
  return fmt::format("made-up error {}", status);
}

void FakeGpus::load(int /*device*/) {}

std::byte* FakeGpus::allocate(int device, std::uint64_t bytes) {
  const std::uint64_t some = std::max<std::uint64_t>(bytes, 1);
  Fd fd = make_shared_memory("made-up GPU", some);
  Mapping mapping(fd.get(), some, "memory of a made-up GPU");
  std::byte* const data = mapping.bytes().data();
  m_memory[data] = {device, std::move(fd), std::move(mapping)};
  return data;
}
void FakeGpus::release(int /*device*/, std::byte* memory) noexcept {
  freed_while_open += m_imports.contains(memory) ? 1U : 0U;
  m_memory.erase(memory);
}
std::optional<std::size_t> FakeGpus::lose_after(std::optional<std::size_t> calls) {
  const std::lock_guard lock(m_mutex);
  return std::exchange(m_calls_left, calls);
}
bool FakeGpus::lost() {
  const std::lock_guard lock(m_mutex);
  if (!m_calls_left || *m_calls_left > 0) {
    m_calls_left = m_calls_left ? std::optional(*m_calls_left - 1) : m_calls_left;
    return false;
  }
  ++calls_refused;
  return true;
}
void FakeGpus::require_there(const char* call) {
  if (lost()) {
    fail(ErrorKind::operation, fmt::format("{}: {}", call, words(k_lost)));
  }
}

void FakeGpus::register_host(std::byte* memory, std::uint64_t bytes) {
  require_there("cudaHostRegister");
  if (is_registered(memory)) {
    fail(ErrorKind::operation, "cudaHostRegister: registered already");
  }
  m_registered[memory] = bytes;
}
void FakeGpus::unregister_host(std::byte* memory) noexcept {
  m_registered.erase(memory);
}

std::string FakeGpus::export_memory(int device, std::byte* memory) {
  const Memory& held = m_memory.at(memory);
  return fmt::format("{} {} {} {} {}", ::getpid(), held.fd.get(), held.mapping.bytes().size(),
                     device, reinterpret_cast<std::uintptr_t>(memory));
}
std::byte* FakeGpus::import_memory(int /*device*/, const std::string& name) {
  std::istringstream text(name);
  int pid = 0, fd = 0, device = 0;
  std::uint64_t bytes = 0;
  std::uintptr_t address = 0;
  text >> pid >> fd >> bytes >> device >> address;
  auto* memory = reinterpret_cast<std::byte*>(address);
  if (pid != ::getpid()) {
    Mapping mapping = map_of_peer("made-up GPU", 0, pid, fd, bytes, true);
    memory = mapping.bytes().data();
    m_memory[memory] = {device, Fd(), std::move(mapping)};
  }
  m_imports.insert(memory);
  return memory;
}
void FakeGpus::close_memory(int /*device*/, std::byte* memory) noexcept {
  if (const auto open = m_imports.find(memory); open != m_imports.end()) {
    m_imports.erase(open);
  }
  if (const auto at = m_memory.find(memory); at != m_memory.end() && !at->second.fd) {
    m_memory.erase(at);
  }
}

void FakeGpus::set_peer_access(int device, int peer, bool on) {
  if (on && !peers.contains({device, peer})) {
    fail(ErrorKind::operation, "cudaDeviceEnablePeerAccess: no");
  }
  if (on) {
    m_access.insert({device, peer});
  } else {
    m_access.erase({device, peer});
  }
}

GpuStream FakeGpus::make_stream(int device) {
  require_there("cudaStreamCreate");
  auto* const stream = new (::operator new(sizeof(Stream))) Stream;
  m_handles.insert(stream);
  return {device, stream};
}
void FakeGpus::release(GpuStream stream) noexcept {
  m_items.erase(stream.handle);
  m_handles.erase(stream.handle);
  ::operator delete(stream.handle);
}
GpuEvent FakeGpus::make_event(int device) {
  require_there("cudaEventCreate");
  auto* const event = new (::operator new(sizeof(Event))) Event;
  m_handles.insert(event);
  return {device, event};
}
void FakeGpus::release(GpuEvent event) noexcept {
  m_handles.erase(event.handle);
  ::operator delete(event.handle);
}

void FakeGpus::queue(std::function<void()> act) {
  const std::lock_guard lock(m_mutex);
  m_clock.time += k_call;
  settle(m_clock.time);
  if (m_gate_closed) {
    m_behind_gate.push_back(std::move(act));
  } else {
    act();
  }
}

GpuStatus FakeGpus::record(GpuEvent event, GpuStream stream) noexcept {
  if (event.device != stream.device) {
    return 400; // as CUDA: an event and a stream of two devices do not go together
  }
  if (lost()) {
    return k_lost;
  }
  const std::lock_guard lock(m_mutex);
  auto* const e = static_cast<Event*>(event.handle);
  e->recorded = false;
  queue([this, e, s = static_cast<Stream*>(stream.handle)] {
    if (capacity) {
      m_items[s].push_back({Item::Kind::record, 0, 0, 1, {}, {}, e, nullptr, 0, ++e->asked});
      return;
    }
    e->at = std::max(s->free_at, m_clock.time);
    e->recorded = true;
  });
  return 0;
}
GpuStatus FakeGpus::wait(GpuStream stream, GpuEvent event) noexcept {
  if (lost()) {
    return k_lost;
  }
  queue([this, e = static_cast<Event*>(event.handle), s = static_cast<Stream*>(stream.handle)] {
    if (capacity) {
      m_items[s].push_back({Item::Kind::wait, 0, 0, 1, {}, {}, e, nullptr, 0, e->asked});
      return;
    }
    s->free_at = std::max(s->free_at, e->at);
  });
  return 0;
}
GpuCounter FakeGpus::make_counter(int device) {
  require_there("cudaHostAlloc");
  auto* const counter = new Counter;
  m_handles.insert(counter);
  return {device, counter};
}
void FakeGpus::release(GpuCounter counter) noexcept {
  m_handles.erase(counter.handle);
  delete static_cast<Counter*>(counter.handle);
}
GpuStatus FakeGpus::count(GpuCounter counter, GpuStream stream) noexcept {
  const std::lock_guard lock(m_mutex);
  auto* const c = static_cast<Counter*>(counter.handle);
  return record({counter.device, &c->events.emplace_back()}, stream);
}
GpuStatus FakeGpus::counted(GpuCounter counter, std::uint32_t& times) noexcept {
  if (lost()) {
    return k_lost;
  }
  const std::lock_guard lock(m_mutex);
  m_clock.time += k_call;
  settle(m_clock.time);
  auto* const c = static_cast<Counter*>(counter.handle);
  while (!c->events.empty() && c->events.front().recorded && c->events.front().at <= m_clock.time) {
    c->events.pop_front();
    ++c->times;
  }
  times = c->times;
  return 0;
}
GpuStatus FakeGpus::hold(GpuStream stream, const std::uint32_t* word,
                         std::uint32_t value) noexcept {
  if (!capacity || !is_registered(reinterpret_cast<const std::byte*>(word))) {
    return 801; // not supported
  }
  if (lost()) {
    return k_lost;
  }
  queue([=, this] {
    m_items[stream.handle].push_back({Item::Kind::hold, 0, 0, 1, {}, {}, nullptr, word, value});
  });
  return 0;
}
GpuStatus FakeGpus::synchronize(GpuStream stream) noexcept {
  if (lost()) {
    return k_lost;
  }
  std::unique_lock lock(m_mutex);
  for (int looks = 0; capacity && !m_gate_closed; ++looks) {
    settle(std::numeric_limits<double>::infinity(), stream.handle);
    m_clock.time = std::max(m_clock.time, m_settled);
    if (m_items[stream.handle].empty()) {
      break;
    }
    if (looks == 10'000) {
      return 999; // nobody raises the word that holds it
    }
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    lock.lock();
  }
  m_clock.time = std::max(m_clock.time + k_call, static_cast<Stream*>(stream.handle)->free_at);
  return m_gate_closed ? 999 : 0; // would wait for ever
}
Seconds FakeGpus::elapsed(GpuEvent begin, GpuEvent end) {
  const auto* const b = static_cast<Event*>(begin.handle);
  const auto* const e = static_cast<Event*>(end.handle);
  if (begin.device != end.device || !b->recorded || !e->recorded) {
    fail(ErrorKind::operation, "cudaEventElapsedTime: invalid resource handle");
  }
  return Seconds(e->at - b->at);
}

GpuStatus FakeGpus::close_gate(GpuStream /*stream*/) noexcept {
  m_gate_closed = true;
  return 0;
}
void FakeGpus::open_gate() noexcept {
  m_gate_closed = false;
  for (const auto& act : m_behind_gate) {
    act();
  }
  m_behind_gate.clear();
}

namespace {
bool is_raised(const std::uint32_t* word, std::uint32_t value) {
  // A processor stores it atomically.
  const std::uint32_t now = std::atomic_ref(*const_cast<std::uint32_t*>(word)).load();
  return static_cast<std::int32_t>(now - value) >= 0;
}
} // namespace

void FakeGpus::finish_items() {
  for (bool again = true; again;) {
    again = false;
    for (auto& [stream, items] : m_items) {
      while (!items.empty()) {
        Item& item = items.front();
        const bool ended = item.kind == Item::Kind::work   ? item.left <= 0
                           : item.kind == Item::Kind::wait ? item.event->done >= item.number
                           : item.kind == Item::Kind::hold ? is_raised(item.word, item.value)
                                                           : true;
        if (!ended) {
          break;
        }
        if (item.kind == Item::Kind::record) {
          item.event->at = m_settled;
          item.event->done = item.number;
          item.event->recorded = item.number == item.event->asked;
        } else if (item.act) {
          item.act();
        }
        items.pop_front();
        again = true;
      }
    }
  }
}

/// The name with the least left for each of those that need it, by weight, decides for these, and
/// so on.
std::vector<double> FakeGpus::fair_rates(const std::vector<Item*>& active) const {
  std::vector<double> rates(active.size(), -1);
  std::map<std::string, double> left;
  for (const Item* const item : active) {
    for (const std::string& name : item->names) {
      left.emplace(name, capacity(name));
    }
  }
  for (std::size_t fixed = 0; fixed < active.size();) {
    std::map<std::string, double> users; // their weights
    for (std::size_t i = 0; i < active.size(); ++i) {
      for (const std::string& name : active[i]->names) {
        users[name] += rates[i] < 0 ? active[i]->weight : 0;
      }
    }
    double share = // of a weight of 1
        std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < active.size(); ++i) {
      if (rates[i] < 0) {
        share = std::min(share, active[i]->most / active[i]->weight);
        for (const std::string& name : active[i]->names) {
          share = std::min(share, left.at(name) / users.at(name));
        }
      }
    }
    std::vector<std::size_t> bound; // all at once: they are bound by what was left before
    for (std::size_t i = 0; i < active.size(); ++i) {
      const auto is_bound = [&](double most) { return most <= share * (1 + 1e-12); };
      if (rates[i] < 0 && (is_bound(active[i]->most / active[i]->weight) ||
                           std::any_of(active[i]->names.begin(), active[i]->names.end(),
                                       [&](const std::string& name) {
                                         return is_bound(left.at(name) / users.at(name));
                                       }))) {
        bound.push_back(i);
      }
    }
    for (const std::size_t i : bound) {
      rates[i] = share * active[i]->weight;
      ++fixed;
      for (const std::string& name : active[i]->names) {
        left[name] -= rates[i];
      }
    }
  }
  return rates;
}

void FakeGpus::settle(double until, const void* stop) {
  for (;;) {
    finish_items();
    std::vector<Item*> active;
    bool stopped = stop != nullptr;
    for (auto& [stream, items] : m_items) {
      stopped = stopped && (stream != stop || items.empty());
      if (!items.empty() && items.front().kind == Item::Kind::work) {
        active.push_back(&items.front());
      }
    }
    if (stopped || active.empty()) {
      break;
    }
    const std::vector<double> rates = fair_rates(active);
    double step = until - m_settled;
    for (std::size_t i = 0; i < active.size(); ++i) {
      step = std::min(step, active[i]->left / rates[i]);
    }
    for (std::size_t i = 0; i < active.size(); ++i) {
      active[i]->left -= rates[i] * step;
      active[i]->left = active[i]->left < 1e-3 ? 0 : active[i]->left; // of a byte: rounding
    }
    m_settled += step;
    if (m_settled >= until) {
      finish_items();
      break;
    }
  }
  if (std::isfinite(until)) {
    m_settled = std::max(m_settled, until);
  }
}

GpuStatus FakeGpus::work(const Work& what, GpuStream stream, std::function<void()> act) {
  if (lost()) {
    return k_lost;
  }
  const std::lock_guard lock(m_mutex);
  works.push_back(what);
  queue([this, what, s = static_cast<Stream*>(stream.handle), act = std::move(act)] {
    double start = std::max(s->free_at, m_clock.time);
    const std::vector<std::string> names = needs ? needs(what) : std::vector<std::string>{};
    if (capacity) {
      const auto bytes = static_cast<double>(what.bytes);
      m_items[s].push_back({Item::Kind::work, bytes, bytes / seconds(what),
                            weight ? weight(what) : 1, names, act, nullptr});
      return;
    }
    for (const std::string& name : names) {
      start = std::max(start, m_busy[name]);
    }
    s->free_at = start + seconds(what);
    for (const std::string& name : names) {
      m_busy[name] = s->free_at;
    }
    act();
  });
  return 0;
}

GpuStatus FakeGpus::copy(std::byte* to, const std::byte* from, std::uint64_t bytes,
                         GpuStream stream) noexcept {
  if (fail_next_copy != 0) {
    return std::exchange(fail_next_copy, 0);
  }
  return work({Kind::copy, stream.device, to, from, bytes, 0}, stream, [this, to, from, bytes] {
    if (!lose_copies && bytes > 0) {
      std::memmove(to, from, bytes);
    }
  });
}
GpuStatus FakeGpus::copy_peer(std::byte* to, int to_device, const std::byte* from, int from_device,
                              std::uint64_t bytes, GpuStream stream) noexcept {
  if (device_of(to) != to_device || device_of(from) != from_device) {
    return 1;
  }
  return work({Kind::copy_peer, stream.device, to, from, bytes, 0}, stream,
              [this, to, from, bytes] {
                if (!lose_copies) {
                  std::memmove(to, from, bytes);
                }
              });
}
GpuStatus FakeGpus::copy_sm(std::byte* to, const std::byte* from, std::uint64_t bytes, int blocks,
                            GpuStream stream) noexcept {
  for (const std::byte* const end : {static_cast<const std::byte*>(to), from}) {
    const int owner = device_of(end);
    const bool reached =
        owner < 0 ? is_registered(end) : owner == stream.device || has_access(stream.device, owner);
    if (!reached) {
      return 700; // an illegal address
    }
  }
  return work({Kind::copy_sm, stream.device, to, from, bytes, blocks}, stream,
              [this, to, from, bytes] {
                if (!lose_copies) {
                  std::memmove(to, from, bytes);
                }
              });
}
GpuStatus FakeGpus::sum(DType type, std::byte* to, std::span<const void* const> sources,
                        std::size_t elements, int blocks, GpuStream stream) noexcept {
  const std::vector<const void*> held(sources.begin(), sources.end());
  return work({Kind::sum, stream.device, to, nullptr,
               elements * size_of(type) * (sources.size() - 1), blocks},
              stream, [=] { sum_into(type, to, held, elements); });
}
GpuStatus FakeGpus::scale(DType type, std::byte* memory, std::size_t elements, double factor,
                          GpuStream stream) noexcept {
  const std::uint64_t bytes = elements * size_of(type);
  return work({Kind::other, stream.device, memory, memory, bytes, 0}, stream, [=] {
    reckon::scale({memory, bytes}, type, factor);
  });
}
GpuStatus FakeGpus::set(std::byte* memory, std::uint8_t value, std::uint64_t bytes,
                        GpuStream /*stream*/) noexcept {
  std::memset(memory, value, bytes);
  return 0;
}
GpuStatus FakeGpus::fill_pattern(std::byte* memory, std::uint64_t bytes, std::uint64_t salt,
                                 GpuStream /*stream*/) noexcept {
  for (std::uint64_t i = 0; i < bytes / 8; ++i) {
    const std::uint64_t word = gpu_pattern_word(i, salt);
    std::memcpy(memory + 8 * i, &word, 8);
  }
  return 0;
}
std::optional<std::uint64_t> FakeGpus::find_difference(const std::byte* memory, std::uint64_t bytes,
                                                       std::uint64_t salt, GpuStream /*stream*/) {
  for (std::uint64_t i = 0; i < bytes / 8; ++i) {
    const std::uint64_t word = gpu_pattern_word(i, salt);
    if (std::memcmp(memory + 8 * i, &word, 8) != 0) {
      return 8 * i;
    }
  }
  return std::nullopt;
}
GpuStatus FakeGpus::chase(const std::byte* memory, std::uint64_t steps, GpuStream stream) noexcept {
  const auto* const chain = reinterpret_cast<const std::uint32_t*>(memory);
  std::uint32_t at = 0;
  std::uint64_t seen = 0;
  do { // a chain that is one cycle comes back after all of its links
    at = chain[at];
    ++seen;
  } while (at != 0 && seen < steps);
  if (at != 0 || seen != steps) {
    return 1;
  }
  return work({Kind::other, stream.device, memory, memory, steps, 0}, stream, [] {});
}
std::unique_ptr<GpuWork> FakeGpus::make_gemm(int /*device*/, int size) {
  if (!no_gemm.empty()) {
    fail(ErrorKind::unavailable, no_gemm);
  }
  return std::make_unique<FakeWork>(*this, static_cast<std::uint64_t>(size) * 1000);
}
std::unique_ptr<GpuWork> FakeGpus::make_embedding(int /*device*/, std::uint32_t /*rows*/,
                                                  std::uint32_t batch, std::uint32_t /*bag*/) {
  return std::make_unique<FakeWork>(*this, std::uint64_t{batch} * 1000);
}

} // namespace reckon::support
