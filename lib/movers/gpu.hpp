// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/dtype.hpp"
#include "core/units.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace reckon {

struct GpuProperties {
  std::string name;
  std::string pci_address; ///< "0000:17:00.0"
  std::uint64_t bytes = 0; ///< its memory
  int multiprocessors = 0;
};

/// A queue of work on one GPU, a mark in a queue that knows when it was passed, and a counter of
/// progress in a queue. Plain values: GpuLibrary owns nothing.
struct GpuStream {
  int device = 0;
  void* handle = nullptr;
};
struct GpuEvent {
  int device = 0;
  void* handle = nullptr;
};
struct GpuCounter {
  int device = 0;
  void* handle = nullptr;
};

/// The library's own number of an error; 0 is success.
using GpuStatus = int;

/// A computation of a GPU beside a transfer, to measure their mutual effect.
class GpuWork {
public:
  GpuWork() = default;
  GpuWork(const GpuWork&) = delete;
  GpuWork& operator=(const GpuWork&) = delete;
  virtual ~GpuWork() = default;
  [[nodiscard]] virtual GpuStatus launch(GpuStream stream) noexcept = 0;
};

/// The GPU operations of a measurement or a mover, one method a call of CUDA or a kernel of ours:
/// the seam behind which a test puts made-up GPUs. Devices are numbered as CUDA does. Memory
/// addresses are valid on the host as numbers only, unless the memory is the host's.
///
/// Methods that are not noexcept throw Error{operation} with the attempt and the library's words.
/// The noexcept methods return a status and leave no error behind for the next call. Thread-safe,
/// but a stream or an event is used by one thread at a time.
class GpuLibrary {
public:
  GpuLibrary() = default;
  GpuLibrary(const GpuLibrary&) = delete;
  GpuLibrary& operator=(const GpuLibrary&) = delete;
  virtual ~GpuLibrary() = default;

  /// At least one.
  [[nodiscard]] virtual const std::vector<GpuProperties>& devices() const noexcept = 0;
  [[nodiscard]] virtual std::string words(GpuStatus status) const = 0;
  /// Loads everything that this library runs on `device`, so that no first use is slow or waits for
  /// other work there.
  virtual void load(int device) = 0;

  // Memory. GPU memory in an allocation of its own, zeroed; host memory registered with all GPUs,
  // so that they reach it without a copy in between.
  [[nodiscard]] virtual std::byte* allocate(int device, std::uint64_t bytes) = 0;
  virtual void release(int device, std::byte* memory) noexcept = 0;
  virtual void register_host(std::byte* memory, std::uint64_t bytes) = 0;
  virtual void unregister_host(std::byte* memory) noexcept = 0;
  /// A name by which another process of this machine opens GPU memory, and opening it: on `device`,
  /// which owns the memory or can access it.
  [[nodiscard]] virtual std::string export_memory(int device, std::byte* memory) = 0;
  [[nodiscard]] virtual std::byte* import_memory(int device, const std::string& name) = 0;
  /// Before the exporter releases it: otherwise CUDA's behaviour is undefined.
  virtual void close_memory(int device, std::byte* memory) noexcept = 0;

  // Peers.
  [[nodiscard]] virtual bool can_access_peer(int device, int peer) = 0;
  /// Possible by NVLink, impossible by PCIe.
  [[nodiscard]] virtual bool has_peer_atomics(int device, int peer) = 0;
  /// Whether copies and kernels of `device` reach `peer`'s memory directly.
  virtual void set_peer_access(int device, int peer, bool on) = 0;

  // Queues. Streams do not wait for each other.
  [[nodiscard]] virtual GpuStream make_stream(int device) = 0;
  virtual void release(GpuStream stream) noexcept = 0;
  [[nodiscard]] virtual GpuEvent make_event(int device) = 0;
  virtual void release(GpuEvent event) noexcept = 0;
  [[nodiscard]] virtual GpuStatus record(GpuEvent event, GpuStream stream) noexcept = 0;
  /// Later work in `stream` waits for `event` of any device.
  [[nodiscard]] virtual GpuStatus wait(GpuStream stream, GpuEvent event) noexcept = 0;
  [[nodiscard]] virtual GpuStatus synchronize(GpuStream stream) noexcept = 0;
  /// Between two events of one device that have happened.
  [[nodiscard]] virtual Seconds elapsed(GpuEvent begin, GpuEvent end) = 0;
  /// Starts at 0. For streams of `device`.
  [[nodiscard]] virtual GpuCounter make_counter(int device) = 0;
  virtual void release(GpuCounter counter) noexcept = 0;
  /// The counter goes up by one when all work in `stream` is over, and its writes are visible to
  /// every device and processor. Always the same stream.
  [[nodiscard]] virtual GpuStatus count(GpuCounter counter, GpuStream stream) noexcept = 0;
  /// `times` becomes the counter, modulo 2^32. Costs next to nothing; reports a broken stream
  /// sooner or later.
  [[nodiscard]] virtual GpuStatus counted(GpuCounter counter, std::uint32_t& times) noexcept = 0;

  /// Later work in `stream` waits until `*word`, in registered host memory, is `value` or more,
  /// modulo 2^32. CUDA does not know what it waits for: what raises the word may hang on no work
  /// that is queued after this on the same device.
  [[nodiscard]] virtual GpuStatus hold(GpuStream stream, const std::uint32_t* word,
                                       std::uint32_t value) noexcept = 0;

  // A gate: `stream` goes no further until open_gate(), so that all work queued behind it starts at
  // once and queueing is not measured. One stream at a time. A gate that stays closed too long
  // opens by itself; gate_expired() then says so of the last one, and times behind it are void.
  [[nodiscard]] virtual GpuStatus close_gate(GpuStream stream) noexcept = 0;
  virtual void open_gate() noexcept = 0;
  [[nodiscard]] virtual bool gate_expired() const noexcept = 0;

  // Work.
  /// By copy engines. Any memory that the stream's device reaches; pageable host memory too, but
  /// then the call may wait.
  [[nodiscard]] virtual GpuStatus copy(std::byte* to, const std::byte* from, std::uint64_t bytes,
                                       GpuStream stream) noexcept = 0;
  /// Between two GPUs; through the host where they have no peer access.
  [[nodiscard]] virtual GpuStatus copy_peer(std::byte* to, int to_device, const std::byte* from,
                                            int from_device, std::uint64_t bytes,
                                            GpuStream stream) noexcept = 0;
  /// By `blocks` multiprocessors (0: all) of the stream's device.
  [[nodiscard]] virtual GpuStatus copy_sm(std::byte* to, const std::byte* from, std::uint64_t bytes,
                                          int blocks, GpuStream stream) noexcept = 0;
  /// kernels/reduce.hpp's sum_into on the stream's device, with its bits.
  [[nodiscard]] virtual GpuStatus sum(DType type, std::byte* to,
                                      std::span<const void* const> sources, std::size_t elements,
                                      int blocks, GpuStream stream) noexcept = 0;
  /// kernels/scale.hpp's scale() on the stream's device, with its bits.
  [[nodiscard]] virtual GpuStatus scale(DType type, std::byte* memory, std::size_t elements,
                                        double factor, GpuStream stream) noexcept = 0;
  [[nodiscard]] virtual GpuStatus set(std::byte* memory, std::uint8_t value, std::uint64_t bytes,
                                      GpuStream stream) noexcept = 0;
  /// GPU memory of the stream's device; a multiple of 8 bytes.
  [[nodiscard]] virtual GpuStatus fill_pattern(std::byte* memory, std::uint64_t bytes,
                                               std::uint64_t salt, GpuStream stream) noexcept = 0;
  /// The first place that differs from fill_pattern()'s writes; nullopt: all equal. Waits for the
  /// stream.
  [[nodiscard]] virtual std::optional<std::uint64_t> find_difference(const std::byte* memory,
                                                                     std::uint64_t bytes,
                                                                     std::uint64_t salt,
                                                                     GpuStream stream) = 0;
  /// Follows `steps` links of a chain of 32-bit places in `memory`, one load after another.
  [[nodiscard]] virtual GpuStatus chase(const std::byte* memory, std::uint64_t steps,
                                        GpuStream stream) noexcept = 0;

  /// C = A B of `size` x `size` fp32 numbers by the vendor's library, which is loaded now. Throws
  /// Error{unavailable} if it is missing.
  [[nodiscard]] virtual std::unique_ptr<GpuWork> make_gemm(int device, int size) = 0;
  /// Embedding lookup of `batch` bags of `bag` rows of 128 fp32 out of a table of `rows`.
  [[nodiscard]] virtual std::unique_ptr<GpuWork>
  make_embedding(int device, std::uint32_t rows, std::uint32_t batch, std::uint32_t bag) = 0;
};

/// The GPUs of this machine; nullptr without one, and `why_not` then says why: "this build has no
/// CUDA", "cudaGetDeviceCount: no CUDA-capable device is detected". One for the whole process, made
/// at the first call.
[[nodiscard]] GpuLibrary* gpu_library(std::string* why_not = nullptr);
/// For tests: those that gpu_library() gives from now on; nullptr: this machine's.
void set_gpu_library(GpuLibrary* made_up) noexcept;
/// This machine's.
[[nodiscard]] GpuLibrary* gpu_library_here(std::string* why_not);

// Move-only owners. The library must outlive them. (Their deleters have no initializers: a nested
// class with some could not be made by its own class.)

class GpuMemory {
public:
  GpuMemory() = default;
  GpuMemory(GpuLibrary& library, int device, std::uint64_t bytes)
      : m_data(library.allocate(device, bytes), {&library, device}), m_bytes(bytes) {}
  [[nodiscard]] std::byte* data() const noexcept { return m_data.get(); }
  [[nodiscard]] std::uint64_t size() const noexcept { return m_bytes; }
  /// Gives the memory up without freeing it: it is there until the process ends.
  void abandon() noexcept { static_cast<void>(m_data.release()); }

private:
  struct Release {
    GpuLibrary* library;
    int device;
    void operator()(std::byte* memory) const noexcept { library->release(device, memory); }
  };
  std::unique_ptr<std::byte, Release> m_data;
  std::uint64_t m_bytes = 0;
};

/// Keeps host memory registered.
class GpuRegistration {
public:
  GpuRegistration() = default;
  GpuRegistration(GpuLibrary& library, std::span<std::byte> memory) {
    if (!memory.empty()) {
      library.register_host(memory.data(), memory.size());
      m_memory = {memory.data(), Unregister{&library}};
    }
  }

private:
  struct Unregister {
    GpuLibrary* library;
    void operator()(std::byte* memory) const noexcept { library->unregister_host(memory); }
  };
  std::unique_ptr<std::byte, Unregister> m_memory;
};

/// A GpuStream, a GpuEvent or a GpuCounter.
template <class Handle>
class GpuOwned {
public:
  GpuOwned() = default;
  GpuOwned(GpuLibrary& library, Handle handle)
      : m_handle(handle.handle, {&library, handle.device}) {}
  [[nodiscard]] Handle get() const noexcept {
    return {m_handle.get_deleter().device, m_handle.get()};
  }

private:
  struct Release {
    GpuLibrary* library;
    int device;
    void operator()(void* handle) const noexcept { library->release(Handle{device, handle}); }
  };
  std::unique_ptr<void, Release> m_handle;
};

} // namespace reckon
