// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "movers/cuda.hpp"
#include "movers/gpu.hpp"
#include "movers/host.hpp"
#include "movers/mover.hpp"
#ifdef RECKON_HAVE_FABRIC
#include "movers/fabric.hpp"
#endif

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <poll.h>
#include <utility>

namespace reckon {
namespace {
std::atomic<GpuLibrary*> made_up_gpus{nullptr};
} // namespace

void set_gpu_library(GpuLibrary* made_up) noexcept {
  made_up_gpus = made_up;
}

GpuLibrary* gpu_library(std::string* why_not) {
  GpuLibrary* const made_up = made_up_gpus;
  return made_up != nullptr ? made_up : gpu_library_here(why_not);
}

std::optional<LaneSleep> MoverLane::before_sleep(std::chrono::nanoseconds limit) noexcept {
  return LaneSleep{-1, std::min(limit, k_blind_nap)};
}

void sleep_on(std::span<const LaneSleep> sleeps) noexcept {
  constexpr std::size_t k_most = 4;
  std::array<pollfd, k_most> polled{};
  std::chrono::nanoseconds limit = std::chrono::nanoseconds::max();
  nfds_t count = 0;
  for (const LaneSleep& sleep : sleeps) {
    limit = std::min(limit, sleep.limit);
    if (sleep.descriptor >= 0 && count < k_most) {
      polled[count++] = {sleep.descriptor, POLLIN, 0};
    }
  }
  if (limit.count() > 0) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(limit);
    const timespec time{static_cast<time_t>(seconds.count()),
                        static_cast<long>((limit - seconds).count())};
    static_cast<void>(::ppoll(polled.data(), count, &time, nullptr));
  }
}

void Mover::adopt(std::span<std::byte> /*buffer*/) {
  fail(ErrorKind::unavailable,
       fmt::format("transport {} moves only what is in memory of its own, not the gradients that "
                   "ranks of a machine share; --transport between= takes a network's, such as "
                   "tcp;ofi_rxm",
                   capabilities().name));
}

void Mover::use_ports(const std::vector<std::string>& ports) {
  fail(ErrorKind::unavailable,
       fmt::format("transport {} has no choice of network ports, such as {}", capabilities().name,
                   fmt::join(ports, ", ")));
}

void Mover::add_checksums() {
  fail(ErrorKind::unavailable,
       fmt::format("transport {} has no room for checksums; leave them away, or use {}",
                   capabilities().name, "tcp;ofi_rxm or shm"));
}

std::span<std::byte> Mover::memory_of(std::size_t peer, std::size_t buffer) {
  fail(ErrorKind::unavailable,
       fmt::format(
           "transport {} cannot read buffer {} of rank {} where it lies; a plan that sums in "
           "place runs over transport host",
           capabilities().name, buffer, peer));
}

std::vector<std::string> available_transports(std::vector<std::string>* why_not) {
  std::vector<std::string> names{"host"};
#ifdef RECKON_HAVE_FABRIC
  for (std::string& name : fabric_transports(why_not)) {
    names.push_back(std::move(name));
  }
#else
  if (why_not != nullptr) {
    why_not->push_back("fabric: this build has no libfabric; build with -DRECKON_WITH_FABRIC=ON");
  }
#endif
  return names;
}

std::string gpu_transport(std::vector<std::string>* why_not) {
#ifdef RECKON_HAVE_CUDA
  constexpr const char* k_driver = "/dev/nvidiactl";
  if (std::filesystem::exists(k_driver)) {
    return "cuda";
  }
  const std::string why = fmt::format("there is no {}", k_driver);
#else
  const std::string why = "this build has no CUDA; build with -DRECKON_WITH_CUDA=ON";
#endif
  if (why_not != nullptr) {
    why_not->push_back("cuda: " + why);
  }
  return "";
}

std::unique_ptr<Mover> make_mover(const std::string& transport, const Habits& habits,
                                  const MoverPlace& place) {
  if (transport == "host") {
    return make_host_mover(habits);
  }
  std::string why = "no such transport";
  if (transport == "cuda") {
    GpuLibrary* const gpus = place.host_memory ? nullptr : gpu_library(&why);
    if (place.host_memory || gpus != nullptr) {
      return make_cuda_mover(gpus, place);
    }
  } else {
#ifdef RECKON_HAVE_FABRIC
    try {
      return make_fabric_mover(transport, FabricEnvironment::read(), habits);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::unavailable) {
        throw;
      }
      why = error.what();
    }
#endif
  }
  fail(ErrorKind::unavailable,
       fmt::format("transport {} is not available here: {}; there are: {}", transport, why,
                   fmt::join(available_transports(), ", ")));
}

} // namespace reckon
