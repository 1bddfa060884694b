// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "../strategies/fixtures.hpp"
#include "core/file.hpp"
#include "kernels/convert.hpp"
#include "launch/sockets.hpp"
#include "support/ranks.hpp"

#include <gtest/gtest.h>
#include <reckon/reckon.h>

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

// Whole jobs through the C interface: real processes on this machine, real transports.
namespace reckon::test {

using support::RankProcess;

inline constexpr std::uint64_t k_part = 65536;

/// Tensors of all types, each of whole parts, so that no part waits for two.
inline Workload mixed() {
  return workload({{"head", 2 * k_part / 4, DType::fp32},
                   {"body", k_part / 4, DType::fp32},
                   {"neck", k_part / 2, DType::bf16},
                   {"tail", k_part / 2, DType::fp16}});
}

struct Job {
  std::string transport = "host", strategy = "byteps_split";
  std::uint64_t workers = 2, servers = 1;
  int lanes = 2;
  bool in_place = false;        ///< sums, on a machine that was measured to be good at it
  std::optional<Order> order{}; ///< of parts beside passes; none: no passes
  std::optional<DType> wire{};
  Workload workload = mixed();
  std::string folder{}; ///< of plan.json and workload.json
  int port = 0;

  [[nodiscard]] int ranks() const { return static_cast<int>(workers + servers); }
};

/// Writes the documents and chooses a port.
inline Job prepared(Job job) {
  std::string name = testing::TempDir() + "training-XXXXXX";
  job.folder = ::mkdtemp(name.data());
  PlanOptions options;
  options.strategy = job.strategy;
  options.part_bytes = k_part;
  if (job.order) {
    options.forward_seconds = options.backward_seconds = 1e-4;
    options.order = *job.order;
  }
  options.wire = job.wire;
  Plan plan = plan_for(job.in_place ? machine_that_shares() : one_machine(),
                       job.wire ? as_sent(job.workload, *job.wire) : job.workload, job.workers,
                       job.servers, options, job.lanes);
  EXPECT_EQ(plan.sums_in_place, job.in_place);
  plan.workload = link_to(job.workload.name, canonical_text(job.workload));
  write_file(job.folder + "/plan.json", canonical_text(plan));
  write_file(job.folder + "/workload.json", canonical_text(job.workload));
  job.port = listen_locally().port; // nobody listens there any more
  return job;
}

inline reckon_options options_for(const Job& job, const std::string& plan) {
  reckon_options options{};
  options.struct_bytes = sizeof options;
  options.plan = plan.c_str();
  options.transport = job.transport.c_str();
  options.peer_seconds = 1000; // nobody is found dead by silence
  return options;
}

inline void set_rank(const Job& job, int rank) {
  ::setenv("RECKON_RANK", std::to_string(rank).c_str(), 1);
  ::setenv("RECKON_WORLD_SIZE", std::to_string(job.ranks()).c_str(), 1);
  ::setenv("RECKON_MASTER_ADDR", "127.0.0.1", 1);
  ::setenv("RECKON_MASTER_PORT", std::to_string(job.port).c_str(), 1);
}

#define ASSERT_OK(call) ASSERT_EQ((call), RECKON_OK) << reckon_error()

/// A member of the job.
struct Member {
  reckon_session* session = nullptr;
  reckon_description is{};

  [[nodiscard]] reckon_tensor_place place(std::size_t tensor) const {
    reckon_tensor_place place{};
    place.struct_bytes = sizeof place;
    EXPECT_EQ(reckon_tensor(session, tensor, &place), RECKON_OK) << reckon_error();
    return place;
  }
  [[nodiscard]] std::byte* at(const reckon_tensor_place& place) const {
    return static_cast<std::byte*>(is.gradient) + place.offset_bytes;
  }
  [[nodiscard]] float get(const reckon_tensor_place& place, std::size_t element) const {
    const auto* const halves = reinterpret_cast<const std::uint16_t*>(at(place));
    return place.dtype == RECKON_FP32   ? reinterpret_cast<const float*>(at(place))[element]
           : place.dtype == RECKON_BF16 ? bf16_to_float(halves[element])
                                        : fp16_to_float(halves[element]);
  }
  void put(const reckon_tensor_place& place, std::size_t element, float value) const {
    auto* const halves = reinterpret_cast<std::uint16_t*>(at(place));
    if (place.dtype == RECKON_FP32) {
      reinterpret_cast<float*>(at(place))[element] = value;
    } else {
      halves[element] = place.dtype == RECKON_BF16 ? float_to_bf16(value) : float_to_fp16(value);
    }
  }
};

/// Runs `body` at all ranks that have joined; those that only sum serve instead.
inline void run_job(const Job& job, const std::function<void(Member&, RankProcess&)>& body,
                    const std::function<void(reckon_options&)>& change = {},
                    const std::vector<int>& killed = {}) {
  support::run_ranks(
      job.ranks(), std::chrono::seconds(240),
      [&](RankProcess& self) {
        set_rank(job, self.rank());
        const std::string plan = job.folder + "/plan.json";
        reckon_options options = options_for(job, plan);
        if (change) {
          change(options);
        }
        Member member;
        ASSERT_OK(reckon_join(&options, &member.session));
        member.is.struct_bytes = sizeof member.is;
        ASSERT_OK(reckon_describe(member.session, &member.is));
        self.barrier(); // all have joined
        body(member, self);
      },
      killed);
}

/// What worker `w` has as its gradient; sums of few of these are exact in every type.
inline float gradient_of(int w, std::size_t tensor, std::size_t element, int step) {
  return static_cast<float>((element + 3 * tensor + 5 * static_cast<std::size_t>(w) +
                             7 * static_cast<std::size_t>(step)) %
                            16);
}

inline void fill(const Member& m, std::size_t tensor, int step) {
  const reckon_tensor_place place = m.place(tensor);
  for (std::size_t i = 0; i < place.elements; ++i) {
    m.put(place, i, gradient_of(m.is.rank, tensor, i, step));
  }
}

/// One step; tensors are made last to first, from a thread of their own.
inline void step(const Member& m, int number) {
  ASSERT_OK(reckon_begin(m.session));
  std::thread maker([&] {
    for (std::size_t t = m.is.tensors; t-- > 0;) {
      fill(m, t, number);
      EXPECT_EQ(reckon_ready(m.session, t, 1), RECKON_OK) << reckon_error();
    }
  });
  maker.join();
  ASSERT_OK(reckon_wait(m.session, -1));
}

/// All workers are the ranks from 0 on.
inline void expect_sums(const Member& m, int number, float factor) {
  for (std::size_t t = 0; t < m.is.tensors; ++t) {
    const reckon_tensor_place place = m.place(t);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < place.elements; ++i) {
      float sum = 0;
      for (int w = 0; w < m.is.workers; ++w) {
        sum += gradient_of(w, t, i, number) * factor;
      }
      wrong += m.get(place, i) == sum ? 0U : 1U;
    }
    EXPECT_EQ(wrong, 0U) << "rank " << m.is.rank << ", " << place.name << " in step " << number;
  }
}

inline void serve_and_leave(const Member& m) {
  ASSERT_OK(reckon_serve(m.session, -1));
  ASSERT_OK(reckon_leave(m.session));
}

} // namespace reckon::test
