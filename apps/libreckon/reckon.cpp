// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "core/version.hpp"
#include "launch/peer_error.hpp"
#include "training/training.hpp"

#include <reckon/reckon.h>

#include <cmath>
#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <unistd.h>
#include <utility>

struct reckon_session {
  explicit reckon_session(const reckon::TrainingOptions& options) : training(options) {}

  reckon::Training training;
  pid_t owner = ::getpid();
  std::mutex mutex; ///< guards the text
  std::string report;
};

namespace {

using namespace reckon; // of this file alone: what is exported has C names

std::string& last_error() {
  thread_local std::string text;
  return text;
}

reckon_status say(reckon_status status, const char* text) noexcept {
  try {
    last_error() = text;
  } catch (const std::exception&) { // no memory for it
    last_error().clear();
  }
  return status;
}

reckon_status status_of(ErrorKind kind) {
  switch (kind) {
  case ErrorKind::usage:
  case ErrorKind::input:
    return RECKON_INPUT;
  case ErrorKind::unavailable:
    return RECKON_UNAVAILABLE;
  case ErrorKind::operation:
    return RECKON_FAILED;
  case ErrorKind::internal:
    break;
  }
  return RECKON_INTERNAL;
}

/// What `call` returns, or of what it throws the status, with the text for reckon_error().
template <class Call>
reckon_status guarded(Call call) noexcept {
  try {
    return call();
  } catch (const PeerError& error) {
    return say(RECKON_PEER, error.what());
  } catch (const std::exception& cause) {
    const Error error = as_error(cause);
    return say(status_of(error.kind()), error.what());
  }
}

bool is_own(const reckon_session* session) {
  return session->owner == ::getpid();
}

void require(bool holds, const char* otherwise) {
  if (!holds) {
    fail(ErrorKind::input, otherwise);
  }
}

void require_own(const reckon_session* session) {
  require(is_own(session), "the session is of the process that this one was forked from");
}

/// What the call returns, of one that uses the session, which must be this process' own and have
/// joined.
template <class Call>
reckon_status with(reckon_session* session, Call call) noexcept {
  return guarded([&] {
    require(session != nullptr, "the session is NULL");
    require_own(session);
    require(session->training.joined(), "the session has not joined yet");
    return call(session->training);
  });
}

/// Of a struct that the caller made.
template <class Struct>
void require_known(const Struct* given, const char* name) {
  require(given != nullptr, name);
  require(given->struct_bytes == sizeof *given, name);
}

constexpr double k_most_s = 1e9; ///< as of the times that commands take

std::optional<Seconds> limit_of(double seconds) {
  require(!std::isnan(seconds), "seconds is not a number");
  constexpr double k_forever_s = 1e8;
  return seconds >= 0 && seconds < k_forever_s ? std::optional(Seconds(seconds)) : std::nullopt;
}

std::string text_of(const char* text) {
  return text == nullptr ? "" : text;
}

TrainingOptions options_of(const reckon_options& given) {
  TrainingOptions options;
  options.plan = text_of(given.plan);
  require(!options.plan.empty(), "reckon_options.plan names no file");
  options.workload = text_of(given.workload);
  options.transport = text_of(given.transport);
  if (given.gradient != nullptr) {
    options.gradient = {static_cast<std::byte*>(given.gradient), given.gradient_bytes};
  }
  options.average = given.average != 0;
  options.pin_lanes = given.pin_lanes != 0;
  options.by_parts = given.by_parts != 0;
  options.checksums = given.checksums == 1; // in what was padding before
  // No number fails both comparisons.
  require(given.join_seconds >= 0 && given.join_seconds <= k_most_s,
          "reckon_options.join_seconds must be from 0 to 1e9");
  options.limit = given.join_seconds > 0 ? Seconds(given.join_seconds) : options.limit;
  require(
      given.peer_seconds == 0 ||
          (Seconds(given.peer_seconds) >= k_least_peer_limit && given.peer_seconds <= k_most_s),
      "reckon_options.peer_seconds must be 0, or from 2 (with less a busy machine would count as "
      "dead) to 1e9");
  options.peer_limit = given.peer_seconds > 0 ? Seconds(given.peer_seconds) : options.peer_limit;
  return options;
}

reckon_dtype dtype_of(DType dtype) {
  return dtype == DType::fp32 ? RECKON_FP32 : dtype == DType::fp16 ? RECKON_FP16 : RECKON_BF16;
}

} // namespace

const char* reckon_version(void) {
  return k_version;
}

const char* reckon_error(void) {
  return last_error().c_str();
}

reckon_status reckon_join(const reckon_options* options, reckon_session** session) {
  if (session != nullptr) {
    *session = nullptr;
  }
  return reckon_join_within(options, session, -1);
}

reckon_status reckon_join_within(const reckon_options* options, reckon_session** session,
                                 double seconds) {
  const reckon_status status = guarded([&] {
    require(session != nullptr, "reckon_join: session is NULL");
    if (*session == nullptr) {
      require_known(options, "reckon_join: options of another version than this library's");
      *session = std::make_unique<reckon_session>(options_of(*options)).release();
    }
    require_own(*session);
    return (*session)->training.joined_within(limit_of(seconds)) ? RECKON_OK : RECKON_PENDING;
  });
  if (status > RECKON_PENDING && session != nullptr) {
    reckon_abandon(*session, nullptr); // nothing more for the others to learn
    *session = nullptr;
  }
  return status;
}

reckon_status reckon_describe(reckon_session* session, reckon_description* description) {
  return with(session, [&](Training& training) {
    require_known(description, "reckon_describe: a struct of another version than this library's");
    description->rank = static_cast<int>(training.rank());
    description->size = static_cast<int>(training.size());
    description->workers = static_cast<int>(training.workers());
    description->worker = training.worker() ? 1 : 0;
    description->tensors = training.tensors().size();
    description->gradient_bytes = training.layout().total_bytes;
    description->gradient = training.gradient().data();
    return RECKON_OK;
  });
}

reckon_status reckon_tensor(reckon_session* session, size_t tensor, reckon_tensor_place* place) {
  return with(session, [&](Training& training) {
    require_known(place, "reckon_tensor: a struct of another version than this library's");
    require(tensor < training.tensors().size(), "reckon_tensor: there is no such tensor");
    const Tensor& named = training.tensors()[tensor];
    place->name = named.name.c_str();
    place->offset_bytes = training.layout().tensor_offset_bytes[tensor];
    place->elements = named.elements;
    place->dtype = dtype_of(named.dtype);
    return RECKON_OK;
  });
}

reckon_status reckon_begin(reckon_session* session) {
  return with(session, [](Training& training) {
    training.begin();
    return RECKON_OK;
  });
}

reckon_status reckon_ready(reckon_session* session, size_t first, size_t count) {
  return with(session, [&](Training& training) {
    training.ready(first, count);
    return RECKON_OK;
  });
}

reckon_status reckon_use_gpu(reckon_session* session, int device) {
  return with(session, [&](Training& training) {
    training.use_gpu(device);
    return RECKON_OK;
  });
}

reckon_status reckon_ready_on_stream(reckon_session* session, size_t tensor, void* gradient,
                                     void* stream) {
  return with(session, [&](Training& training) {
    require(gradient != nullptr, "reckon_ready_on_stream: gradient is NULL");
    training.ready_on_stream(tensor, static_cast<std::byte*>(gradient), stream);
    return RECKON_OK;
  });
}

reckon_status reckon_follow_on_stream(reckon_session* session, void* stream) {
  return with(session, [&](Training& training) {
    training.follow_on_stream(stream);
    return RECKON_OK;
  });
}

reckon_status reckon_wait_on_stream(reckon_session* session, void* stream) {
  return with(session, [&](Training& training) {
    training.wait_on_stream(stream);
    return RECKON_OK;
  });
}

reckon_status reckon_wait_for(reckon_session* session, size_t first, size_t count, double seconds) {
  return with(session, [&](Training& training) {
    return training.summed_within(first, count, limit_of(seconds)) ? RECKON_OK : RECKON_PENDING;
  });
}

reckon_status reckon_test(reckon_session* session) {
  return reckon_wait(session, 0);
}

reckon_status reckon_wait(reckon_session* session, double seconds) {
  return with(session, [&](Training& training) {
    return training.over_within(limit_of(seconds)) ? RECKON_OK : RECKON_PENDING;
  });
}

reckon_status reckon_serve(reckon_session* session, double seconds) {
  return with(session, [&](Training& training) {
    return training.served_within(limit_of(seconds)) ? RECKON_OK : RECKON_PENDING;
  });
}

reckon_status reckon_report(reckon_session* session, const char** json) {
  return with(session, [&](Training& training) {
    require(json != nullptr, "reckon_report: json is NULL");
    const std::lock_guard lock(session->mutex);
    session->report = training.report();
    *json = session->report.c_str();
    return RECKON_OK;
  });
}

reckon_status reckon_leave(reckon_session* session) {
  return reckon_leave_within(&session, -1);
}

reckon_status reckon_leave_within(reckon_session** session, double seconds) {
  if (session == nullptr || *session == nullptr) {
    return RECKON_OK;
  }
  const reckon_status status = with(*session, [&](Training& training) {
    return training.left_within(limit_of(seconds)) ? RECKON_OK : RECKON_PENDING;
  });
  if (status != RECKON_PENDING) {
    reckon_abandon(*session, status == RECKON_OK ? nullptr : reckon_error());
    *session = nullptr;
  }
  return status;
}

void reckon_abandon(reckon_session* session, const char* why) {
  if (session == nullptr || !is_own(session)) {
    return; // a child forgets it: its threads are the parent's
  }
  constexpr Seconds k_limit{2};
  if (session->training.abandoned_within(why == nullptr ? "abandoned" : why, k_limit)) {
    delete session;
  }
}
