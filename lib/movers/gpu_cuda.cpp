// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "core/log.hpp"
#include "kernels/cuda_probe.hpp"
#include "kernels/cuda_reduce.hpp"
#include "movers/gpu.hpp"

#if __has_include(<cublas_v2.h>)
#include "movers/cublas.hpp"
#define RECKON_HAVE_CUBLAS
#endif
#include <cuda.h>
#include <cuda_runtime.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <cstring>
#include <memory>
#include <mutex>

namespace reckon {
namespace {

constexpr std::uint64_t k_gate_limit_ns = 2'000'000'000;
/// Smaller allocations of CUDA share one of this size, and a name given to another process would
/// name all of it.
constexpr std::uint64_t k_own_allocation = 2ULL << 20U;

std::string words_of(cudaError_t error) {
  return cudaGetErrorString(error);
}

/// Clears the error, so that it does not surface in a later, innocent call.
void check_cuda(cudaError_t error, const std::string& attempt) {
  if (error != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
    fail(error == cudaErrorMemoryAllocation ? ErrorKind::unavailable : ErrorKind::operation,
         fmt::format("{}: {}", attempt, words_of(error)));
  }
}

GpuStatus taken(cudaError_t error) noexcept {
  if (error != cudaSuccess) {
    static_cast<void>(cudaGetLastError());
  }
  return error;
}

void drop(cudaError_t error) noexcept {
  static_cast<void>(taken(error));
}

cudaStream_t stream_of(GpuStream stream) noexcept {
  return static_cast<cudaStream_t>(stream.handle);
}
cudaEvent_t event_of(GpuEvent event) noexcept {
  return static_cast<cudaEvent_t>(event.handle);
}

/// A stream writes the number into host memory, which costs a third of what recording and asking an
/// event does.
struct Counter {
  CUdeviceptr there = 0;                      ///< where the GPU writes it
  std::atomic<std::uint32_t>* here = nullptr; ///< where the processor reads it
  std::uint32_t asked = 0;                    ///< what the last write writes
  std::uint32_t seen = 0;
  unsigned idle = 0; ///< looks since it went up
  cudaStream_t stream = nullptr;
};
Counter* counter_of(GpuCounter counter) noexcept {
  return static_cast<Counter*>(counter.handle);
}
constexpr unsigned k_idle_looks = 1000; ///< before the stream is asked whether it is well

/// Makes a device the thread's current one. Not put back afterwards: every call here names its
/// device first, and going back to device 0 would make a context there in a process that has no use
/// for it.
cudaError_t use(int device) noexcept {
  int current = -1;
  const cudaError_t error = cudaGetDevice(&current);
  return error == cudaSuccess && current == device ? cudaSuccess : cudaSetDevice(device);
}

/// Runs `call` with `device` current.
template <class Call>
GpuStatus on(int device, Call call) noexcept {
  const cudaError_t error = use(device);
  return taken(error != cudaSuccess ? error : static_cast<cudaError_t>(call()));
}

template <class Call>
void checked_on(int device, const std::string& attempt, Call call) {
  check_cuda(use(device), fmt::format("cudaSetDevice({})", device));
  check_cuda(call(), attempt);
}

#ifdef RECKON_HAVE_CUBLAS
// ---------------------------------------------------------------- cuBLAS

class Gemm final : public GpuWork {
public:
  Gemm(GpuLibrary& library, int device, int size)
      : m_cublas(Cublas::instance()), m_device(device), m_size(size),
        m_a(library, device, bytes(size)), m_b(library, device, bytes(size)),
        m_c(library, device, bytes(size)) {
    // Zeros would be multiplied at less power, and so faster, than numbers.
    checked_on(device, "cudaMemset", [&] {
      cudaError_t error = cudaMemset(m_a.data(), 0x3c, m_a.size());
      error = error == cudaSuccess ? cudaMemset(m_b.data(), 0x3c, m_b.size()) : error;
      return error == cudaSuccess ? cudaDeviceSynchronize() : error;
    });
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    checked_on(device, "cublasCreate", [&] {
      status = m_cublas.create(&m_handle);
      return cudaSuccess;
    });
    if (status != CUBLAS_STATUS_SUCCESS) {
      fail(ErrorKind::operation, fmt::format("cublasCreate: status {}", static_cast<int>(status)));
    }
  }
  ~Gemm() override {
    drop(use(m_device));
    static_cast<void>(m_cublas.destroy(m_handle));
  }
  GpuStatus launch(GpuStream stream) noexcept override {
    return on(m_device, [&] {
      const float one = 1;
      const float zero = 0;
      cublasStatus_t status = m_cublas.set_stream(m_handle, stream_of(stream));
      if (status == CUBLAS_STATUS_SUCCESS) {
        status =
            m_cublas.sgemm(m_handle, CUBLAS_OP_N, CUBLAS_OP_N, m_size, m_size, m_size, &one,
                           floats(m_a), m_size, floats(m_b), m_size, &zero, floats(m_c), m_size);
      }
      return status == CUBLAS_STATUS_SUCCESS ? cudaSuccess : cudaErrorUnknown;
    });
  }

private:
  static std::uint64_t bytes(int size) {
    return sizeof(float) * static_cast<std::uint64_t>(size) * static_cast<std::uint64_t>(size);
  }
  static float* floats(const GpuMemory& memory) noexcept {
    return reinterpret_cast<float*>(memory.data());
  }
  const Cublas& m_cublas;
  int m_device, m_size;
  GpuMemory m_a, m_b, m_c;
  cublasHandle_t m_handle = nullptr;
};

#endif

class Embedding final : public GpuWork {
public:
  Embedding(GpuLibrary& library, int device, std::uint32_t rows, std::uint32_t batch,
            std::uint32_t bag)
      : m_device(device), m_rows(rows), m_batch(batch), m_bag(bag),
        m_table(library, device, bytes(rows)), m_out(library, device, bytes(batch)) {}
  GpuStatus launch(GpuStream stream) noexcept override {
    return on(m_device, [&] {
      return cuda_embedding(reinterpret_cast<const float*>(m_table.data()), m_rows,
                            reinterpret_cast<float*>(m_out.data()), m_batch, m_bag,
                            stream_of(stream));
    });
  }

private:
  static std::uint64_t bytes(std::uint32_t rows) {
    return sizeof(float) * k_embedding_columns * static_cast<std::uint64_t>(rows);
  }
  int m_device;
  std::uint32_t m_rows, m_batch, m_bag;
  GpuMemory m_table, m_out;
};

// ---------------------------------------------------------------- CUDA

class CudaLibrary final : public GpuLibrary {
public:
  /// Throws Error{unavailable} where there is no GPU.
  CudaLibrary() {
    int version = 0; // 0 without a driver, which cudaGetDeviceCount calls one that is too old
    if (cudaDriverGetVersion(&version) == cudaSuccess && version == 0) {
      fail(ErrorKind::unavailable, "cudaDriverGetVersion: no NVIDIA driver is installed");
    }
    int count = 0;
    if (const cudaError_t error = cudaGetDeviceCount(&count); error != cudaSuccess || count < 1) {
      static_cast<void>(cudaGetLastError());
      fail(ErrorKind::unavailable,
           fmt::format("cudaGetDeviceCount: {}",
                       error != cudaSuccess ? words_of(error) : std::string("no device")));
    }
    for (int device = 0; device < count; ++device) {
      cudaDeviceProp properties{};
      check_cuda(cudaGetDeviceProperties(&properties, device), "cudaGetDeviceProperties");
      std::array<char, 32> address{};
      check_cuda(cudaDeviceGetPCIBusId(address.data(), static_cast<int>(address.size()), device),
                 "cudaDeviceGetPCIBusId");
      std::string pci(address.data());
      std::transform(pci.begin(), pci.end(), pci.begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      m_devices.push_back({static_cast<const char*>(properties.name), pci,
                           properties.totalGlobalMem, properties.multiProcessorCount});
    }
  }

  const std::vector<GpuProperties>& devices() const noexcept override { return m_devices; }

  std::string words(GpuStatus status) const override {
    return words_of(static_cast<cudaError_t>(status));
  }

  void load(int device) override {
    checked_on(device, "cudaFuncGetAttributes",
               [] { return static_cast<cudaError_t>(cuda_load_kernels()); });
    // The gate's words lie in memory that CUDA itself allocates: the same address everywhere.
    const std::lock_guard lock(m_mutex);
    if (m_gate == nullptr) {
      checked_on(device, "cudaHostAlloc", [&] {
        void* memory = nullptr;
        const cudaError_t error =
            cudaHostAlloc(&memory, sizeof(GateWords), cudaHostAllocPortable | cudaHostAllocMapped);
        m_gate = error == cudaSuccess ? new (memory) GateWords : nullptr;
        return error;
      });
    }
  }

  std::byte* allocate(int device, std::uint64_t bytes) override {
    void* memory = nullptr;
    const std::uint64_t rounded =
        std::max<std::uint64_t>((bytes + k_own_allocation - 1) / k_own_allocation, 1) *
        k_own_allocation;
    checked_on(device, fmt::format("cudaMalloc({}) on GPU {}", to_text(Bytes(bytes)), device), [&] {
      cudaError_t error = cudaMalloc(&memory, rounded);
      if (error == cudaSuccess) {
        error = cudaMemset(memory, 0, rounded);
        // cudaMemset may return before it is done, and the streams here do not wait for it.
        error = error == cudaSuccess ? cudaDeviceSynchronize() : error;
        if (error != cudaSuccess) {
          drop(cudaFree(memory));
        }
      }
      return error;
    });
    return static_cast<std::byte*>(memory);
  }
  void release(int device, std::byte* memory) noexcept override {
    drop(use(device));
    drop(cudaFree(memory));
  }

  void register_host(std::byte* memory, std::uint64_t bytes) override {
    check_cuda(cudaHostRegister(memory, bytes, cudaHostRegisterPortable | cudaHostRegisterMapped),
               fmt::format("cudaHostRegister({})", to_text(Bytes(bytes))));
    void* seen = nullptr;
    const cudaError_t error = cudaHostGetDevicePointer(&seen, memory, 0);
    if (error == cudaSuccess && seen == memory) {
      return;
    }
    drop(cudaHostUnregister(memory));
    check_cuda(error, "cudaHostGetDevicePointer");
    fail(ErrorKind::unavailable, "cudaHostGetDevicePointer: the GPU sees registered host memory at "
                                 "another address than the host");
  }
  void unregister_host(std::byte* memory) noexcept override { drop(cudaHostUnregister(memory)); }

  std::string export_memory(int device, std::byte* memory) override {
    cudaIpcMemHandle_t handle{};
    checked_on(device, "cudaIpcGetMemHandle", [&] { return cudaIpcGetMemHandle(&handle, memory); });
    std::string text;
    for (const char c : handle.reserved) {
      text += fmt::format("{:02x}", static_cast<unsigned>(static_cast<unsigned char>(c)));
    }
    return text;
  }
  std::byte* import_memory(int device, const std::string& name) override {
    cudaIpcMemHandle_t handle{};
    if (name.size() != 2 * sizeof handle.reserved ||
        name.find_first_not_of("0123456789abcdef") != std::string::npos) {
      fail(ErrorKind::operation,
           "cudaIpcOpenMemHandle: the peer sent no valid handle of its memory");
    }
    for (std::size_t i = 0; i < sizeof handle.reserved; ++i) {
      handle.reserved[i] = static_cast<char>(std::stoi(name.substr(2 * i, 2), nullptr, 16));
    }
    void* memory = nullptr;
    checked_on(device, "cudaIpcOpenMemHandle", [&] {
      return cudaIpcOpenMemHandle(&memory, handle, cudaIpcMemLazyEnablePeerAccess);
    });
    return static_cast<std::byte*>(memory);
  }
  void close_memory(int device, std::byte* memory) noexcept override {
    drop(use(device));
    drop(cudaIpcCloseMemHandle(memory));
  }

  bool can_access_peer(int device, int peer) override {
    int can = 0;
    check_cuda(cudaDeviceCanAccessPeer(&can, device, peer), "cudaDeviceCanAccessPeer");
    return can != 0;
  }
  bool has_peer_atomics(int device, int peer) override {
    int has = 0;
    check_cuda(cudaDeviceGetP2PAttribute(&has, cudaDevP2PAttrNativeAtomicSupported, device, peer),
               "cudaDeviceGetP2PAttribute");
    return has != 0;
  }
  void set_peer_access(int device, int peer, bool access) override {
    checked_on(device, access ? "cudaDeviceEnablePeerAccess" : "cudaDeviceDisablePeerAccess", [&] {
      const cudaError_t error =
          access ? cudaDeviceEnablePeerAccess(peer, 0) : cudaDeviceDisablePeerAccess(peer);
      const bool so_already =
          error == (access ? cudaErrorPeerAccessAlreadyEnabled : cudaErrorPeerAccessNotEnabled);
      if (so_already) {
        static_cast<void>(cudaGetLastError());
      }
      return so_already ? cudaSuccess : error;
    });
  }

  GpuStream make_stream(int device) override {
    cudaStream_t stream = nullptr;
    checked_on(device, "cudaStreamCreate",
               [&] { return cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking); });
    return {device, stream};
  }
  void release(GpuStream stream) noexcept override {
    drop(use(stream.device));
    drop(cudaStreamDestroy(stream_of(stream)));
  }
  GpuEvent make_event(int device) override {
    cudaEvent_t event = nullptr;
    checked_on(device, "cudaEventCreate", [&] { return cudaEventCreate(&event); });
    return {device, event};
  }
  void release(GpuEvent event) noexcept override {
    drop(use(event.device));
    drop(cudaEventDestroy(event_of(event)));
  }
  GpuStatus record(GpuEvent event, GpuStream stream) noexcept override {
    return on(stream.device, [&] { return cudaEventRecord(event_of(event), stream_of(stream)); });
  }
  GpuStatus wait(GpuStream stream, GpuEvent event) noexcept override {
    return on(stream.device,
              [&] { return cudaStreamWaitEvent(stream_of(stream), event_of(event), 0); });
  }
  GpuStatus synchronize(GpuStream stream) noexcept override {
    return on(stream.device, [&] { return cudaStreamSynchronize(stream_of(stream)); });
  }
  Seconds elapsed(GpuEvent begin, GpuEvent end) override {
    float milliseconds = 0;
    check_cuda(cudaEventElapsedTime(&milliseconds, event_of(begin), event_of(end)),
               "cudaEventElapsedTime");
    return Seconds(static_cast<double>(milliseconds) * 1e-3);
  }

  GpuCounter make_counter(int device) override {
    auto counter = std::make_unique<Counter>();
    void* memory = nullptr;
    checked_on(device, "cudaHostAlloc", [&] {
      return cudaHostAlloc(&memory, sizeof(std::uint32_t),
                           cudaHostAllocPortable | cudaHostAllocMapped);
    });
    counter->here = new (memory) std::atomic<std::uint32_t>(0);
    counter->there = reinterpret_cast<CUdeviceptr>(memory);
    find_stream_words();
    return {device, counter.release()};
  }
  void release(GpuCounter counter) noexcept override {
    drop(use(counter.device));
    drop(cudaFreeHost(counter_of(counter)->here));
    delete counter_of(counter);
  }
  GpuStatus count(GpuCounter counter, GpuStream stream) noexcept override {
    Counter& c = *counter_of(counter);
    c.stream = stream_of(stream);
    c.idle = 0;
    return on(stream.device, [&] {
      return static_cast<cudaError_t>(m_stream_write(c.stream, c.there, ++c.asked, 0));
    });
  }
  GpuStatus counted(GpuCounter counter, std::uint32_t& times) noexcept override {
    Counter& c = *counter_of(counter);
    times = c.here->load(std::memory_order_acquire);
    if (times != c.seen || times == c.asked) {
      c.seen = times;
      c.idle = 0;
    } else if (++c.idle == k_idle_looks) {
      c.idle = 0;
      const GpuStatus status = taken(cudaStreamQuery(c.stream));
      return status == cudaErrorNotReady ? cudaSuccess : status;
    }
    return cudaSuccess;
  }

  GpuStatus hold(GpuStream stream, const std::uint32_t* word,
                 std::uint32_t value) noexcept override {
    return on(stream.device, [&] {
      return static_cast<cudaError_t>(m_stream_wait(
          stream_of(stream), reinterpret_cast<CUdeviceptr>(word), value, CU_STREAM_WAIT_VALUE_GEQ));
    });
  }

  GpuStatus close_gate(GpuStream stream) noexcept override {
    if (m_gate == nullptr) {
      return cudaErrorNotReady;
    }
    return on(stream.device,
              [&] { return cuda_hold(m_gate, ++m_ticket, k_gate_limit_ns, stream_of(stream)); });
  }
  void open_gate() noexcept override {
    if (m_gate != nullptr) {
      __atomic_store_n(&m_gate->opened, m_ticket, __ATOMIC_RELEASE);
    }
  }
  bool gate_expired() const noexcept override {
    return m_gate != nullptr && m_ticket != 0 &&
           __atomic_load_n(&m_gate->expired, __ATOMIC_ACQUIRE) == m_ticket;
  }

  GpuStatus copy(std::byte* to, const std::byte* from, std::uint64_t bytes,
                 GpuStream stream) noexcept override {
    return on(stream.device, [&] {
      return cudaMemcpyAsync(to, from, bytes, cudaMemcpyDefault, stream_of(stream));
    });
  }
  GpuStatus copy_peer(std::byte* to, int to_device, const std::byte* from, int from_device,
                      std::uint64_t bytes, GpuStream stream) noexcept override {
    return on(stream.device, [&] {
      return cudaMemcpyPeerAsync(to, to_device, from, from_device, bytes, stream_of(stream));
    });
  }
  GpuStatus copy_sm(std::byte* to, const std::byte* from, std::uint64_t bytes, int blocks,
                    GpuStream stream) noexcept override {
    return on(stream.device, [&] { return cuda_copy(to, from, bytes, blocks, stream_of(stream)); });
  }
  GpuStatus sum(DType type, std::byte* to, std::span<const void* const> sources,
                std::size_t elements, int blocks, GpuStream stream) noexcept override {
    return on(stream.device, [&] {
      return cuda_sum_into(type, to, sources, elements, blocks, stream_of(stream));
    });
  }
  GpuStatus scale(DType type, std::byte* memory, std::size_t elements, double factor,
                  GpuStream stream) noexcept override {
    return on(stream.device, [&] {
      return cuda_scale(type, memory, elements, static_cast<float>(factor), stream_of(stream));
    });
  }
  GpuStatus set(std::byte* memory, std::uint8_t value, std::uint64_t bytes,
                GpuStream stream) noexcept override {
    return on(stream.device,
              [&] { return cudaMemsetAsync(memory, value, bytes, stream_of(stream)); });
  }
  GpuStatus fill_pattern(std::byte* memory, std::uint64_t bytes, std::uint64_t salt,
                         GpuStream stream) noexcept override {
    return on(stream.device,
              [&] { return cuda_fill_pattern(memory, bytes, salt, stream_of(stream)); });
  }
  std::optional<std::uint64_t> find_difference(const std::byte* memory, std::uint64_t bytes,
                                               std::uint64_t salt, GpuStream stream) override {
    const GpuMemory there(*this, stream.device, sizeof(PatternFault));
    PatternFault fault;
    const auto check = [&](GpuStatus status, const char* attempt) {
      check_cuda(static_cast<cudaError_t>(status), attempt);
    };
    check(copy(there.data(), reinterpret_cast<const std::byte*>(&fault), sizeof fault, stream),
          "cudaMemcpyAsync");
    check(synchronize(stream), "cudaStreamSynchronize"); // `fault` is pageable memory
    check(on(stream.device,
             [&] {
               return cuda_check_pattern(memory, bytes, salt,
                                         reinterpret_cast<PatternFault*>(there.data()),
                                         stream_of(stream));
             }),
          "comparing with the pattern");
    check(copy(reinterpret_cast<std::byte*>(&fault), there.data(), sizeof fault, stream),
          "cudaMemcpyAsync");
    check(synchronize(stream), "comparing with the pattern");
    return fault.wrong_words == 0 ? std::nullopt : std::optional(8 * fault.first_word);
  }
  GpuStatus chase(const std::byte* memory, std::uint64_t steps,
                  GpuStream stream) noexcept override {
    // The chain's second word is free: a chain takes one word in each 128 bytes.
    auto* const chain = const_cast<std::uint32_t*>(reinterpret_cast<const std::uint32_t*>(memory));
    return on(stream.device,
              [&] { return cuda_chase(chain, steps, chain + 1, stream_of(stream)); });
  }

  std::unique_ptr<GpuWork> make_gemm(int device, int size) override {
#ifdef RECKON_HAVE_CUBLAS
    return std::make_unique<Gemm>(*this, device, size);
#else
    fail(ErrorKind::unavailable,
         fmt::format("product of {0} x {0} on GPU {1}: this build has no header of cuBLAS", size,
                     device));
#endif
  }
  std::unique_ptr<GpuWork> make_embedding(int device, std::uint32_t rows, std::uint32_t batch,
                                          std::uint32_t bag) override {
    return std::make_unique<Embedding>(*this, device, rows, batch, bag);
  }

private:
  /// A function of the driver, which this program is not linked with.
  template <class Function>
  static void find_driver(const char* name, Function& function) {
    void* found = nullptr;
    cudaDriverEntryPointQueryResult result{};
    const std::string attempt = fmt::format("cudaGetDriverEntryPoint({})", name);
#if CUDART_VERSION >= 12050
    check_cuda(cudaGetDriverEntryPointByVersion(name, &found, 12000, cudaEnableDefault, &result),
               attempt);
#else
    check_cuda(cudaGetDriverEntryPoint(name, &found, cudaEnableDefault, &result), attempt);
#endif
    if (found == nullptr) {
      fail(ErrorKind::unavailable,
           attempt + ": this driver has none; install one for CUDA 12 or later");
    }
    function = reinterpret_cast<Function>(found);
  }

  /// Before the first stream that writes a word or waits for one.
  void find_stream_words() {
    const std::lock_guard lock(m_mutex);
    if (m_stream_write == nullptr) {
      find_driver("cuStreamWaitValue32", m_stream_wait);
      find_driver("cuStreamWriteValue32", m_stream_write);
    }
  }

  using StreamWrite = CUresult (*)(CUstream, CUdeviceptr, cuuint32_t, unsigned);
  StreamWrite m_stream_write = nullptr, m_stream_wait = nullptr;
  std::vector<GpuProperties> m_devices;
  std::mutex m_mutex;
  GateWords* m_gate = nullptr; ///< CUDA's own memory, kept to the process's end
  std::uint32_t m_ticket = 0;
};

} // namespace

GpuLibrary* gpu_library_here(std::string* why_not) {
  struct Made {
    std::unique_ptr<CudaLibrary> library;
    std::string why_not;
    Made() {
      try {
        library = std::make_unique<CudaLibrary>();
      } catch (const Error& error) {
        why_not = error.what();
      }
    }
  };
  static const Made made;
  if (why_not != nullptr) {
    *why_not = made.why_not;
  }
  return made.library.get();
}

} // namespace reckon
