// SPDX-License-Identifier: Apache-2.0
// Jobs whose gradients are on made-up GPUs.
#include "core/json.hpp"
#include "support/fake_gpus.hpp"
#include "training_job.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <csignal>

namespace reckon {
namespace {

using namespace test;
using support::FakeGpus;
using testing::HasSubstr;

/// The made-up GPU of a worker, where its gradients are and an optimizer reads their sums.
class OnGpu {
public:
  explicit OnGpu(const Member& m) : m_member(m) {
    m_gpus.capacity = [](const std::string&) { return 1e12; }; // in time, one after another
    set_gpu_library(&m_gpus);
    EXPECT_EQ(reckon_use_gpu(m.session, 0), RECKON_OK) << reckon_error();
    m_stream = {m_gpus, m_gpus.make_stream(0)};
    for (std::size_t t = 0; t < m.is.tensors; ++t) {
      m_bytes.push_back(m.place(t).elements * (m.place(t).dtype == RECKON_FP32 ? 4 : 2));
      m_gradients.emplace_back(m_gpus, 0, m_bytes[t]);
      m_made.emplace_back(m_bytes[t]);
      m_seen.emplace_back(m_bytes[t]);
    }
  }
  ~OnGpu() { set_gpu_library(nullptr); }

  /// Has the GPU make it.
  void make(std::size_t t, int step) {
    fill(m_member, t, step); // its bytes
    std::copy_n(m_member.at(m_member.place(t)), m_bytes[t], m_made[t].data());
    std::fill_n(m_member.at(m_member.place(t)), m_bytes[t], std::byte{0x55});
    copy(m_gradients[t].data(), m_made[t].data(), t);
    EXPECT_EQ(
        reckon_ready_on_stream(m_member.session, t, m_gradients[t].data(), m_stream.get().handle),
        RECKON_OK)
        << reckon_error();
  }
  /// What the GPU computes after that sees the sums.
  void use() {
    for (std::size_t t = 0; t < m_bytes.size(); ++t) {
      copy(m_seen[t].data(), m_gradients[t].data(), t);
    }
  }
  /// Has the GPU's sums where expect_sums() looks for them.
  void show() {
    ASSERT_EQ(m_gpus.synchronize(m_stream.get()), 0);
    for (std::size_t t = 0; t < m_bytes.size(); ++t) {
      std::copy_n(m_seen[t].data(), m_bytes[t], m_member.at(m_member.place(t)));
    }
  }
  [[nodiscard]] void* stream() const { return m_stream.get().handle; }
  [[nodiscard]] FakeGpus& gpus() { return m_gpus; }

private:
  void copy(std::byte* to, const std::byte* from, std::size_t t) {
    EXPECT_EQ(m_gpus.copy(to, from, m_bytes[t], m_stream.get()), 0);
  }

  const Member& m_member;
  FakeGpus m_gpus{1};
  GpuOwned<GpuStream> m_stream;
  std::vector<std::size_t> m_bytes;
  std::vector<GpuMemory> m_gradients;
  std::vector<std::vector<std::byte>> m_made, m_seen;
};

void train_on_gpu(const Member& m, float factor) {
  if (m.is.worker == 0) {
    serve_and_leave(m);
    return;
  }
  OnGpu gpu(m);
  for (int number = 0; number < 3; ++number) {
    ASSERT_OK(reckon_begin(m.session));
    const bool by_processor = number == 2; // which waits, and has made the first tensor
    for (std::size_t t = m.is.tensors; t-- > 0;) {
      if (by_processor && t == 0) {
        fill(m, t, number);
        ASSERT_OK(reckon_ready(m.session, t, 1));
      } else {
        gpu.make(t, number);
      }
    }
    if (!by_processor) {
      ASSERT_OK(reckon_wait_on_stream(m.session, gpu.stream()));
      gpu.use();
    }
    ASSERT_OK(reckon_wait(m.session, -1));
    if (by_processor) {
      const reckon_tensor_place first = m.place(0); // its sum stays where it was made
      const std::vector<std::byte> sum(m.at(first), m.at(first) + 4 * first.elements);
      gpu.use();
      gpu.show();
      std::copy(sum.begin(), sum.end(), m.at(first));
    } else {
      gpu.show();
    }
    expect_sums(m, number, factor);
  }
  const char* text = nullptr;
  ASSERT_OK(reckon_report(m.session, &text));
  EXPECT_EQ(parse_json(text, "report").at("copied_bytes_per_step"), 2 * m.is.gradient_bytes);
  ASSERT_OK(reckon_leave(m.session));
}

TEST(TrainingOnGpu, EveryStrategySumsRight) {
  for (const std::string strategy : {"byteps_split", "ps_colocated", "ring"}) {
    SCOPED_TRACE(strategy);
    const Job job = prepared({.strategy = strategy, .workers = 2});
    run_job(job, [](Member& m, RankProcess&) { train_on_gpu(m, 1); });
  }
  const Job in_place =
      prepared({.strategy = "ps_colocated", .servers = 0, .in_place = true}); // and means
  run_job(
      in_place, [](Member& m, RankProcess&) { train_on_gpu(m, 0.5F); },
      [](reckon_options& options) { options.average = 1; });
}

TEST(TrainingOnGpu, ALostRankEndsTheStepAndItsSumsAreNaN) {
  const Job job = prepared({.servers = 0});
  run_job(job,
          [](Member& m, RankProcess& self) {
            OnGpu gpu(m);
            ASSERT_OK(reckon_begin(m.session));
            self.barrier();
            if (m.is.rank == 1) {
              ::raise(SIGKILL);
            }
            for (std::size_t t = 0; t < m.is.tensors; ++t) {
              gpu.make(t, 0);
            }
            // Whether the news are here before this or after it.
            const reckon_status waits = reckon_wait_on_stream(m.session, gpu.stream());
            gpu.use();
            EXPECT_THAT(waits, testing::AnyOf(RECKON_OK, RECKON_PEER));
            EXPECT_EQ(reckon_wait(m.session, -1), RECKON_PEER);
            EXPECT_THAT(reckon_error(), testing::ContainsRegex("rank 1 \\(.+\\) died"));
            gpu.show(); // nobody waits for ever
            for (std::size_t t = 0; waits == RECKON_OK && t < m.is.tensors; ++t) {
              EXPECT_TRUE(std::isnan(m.get(m.place(t), 0))) << m.get(m.place(t), 0);
            }
            EXPECT_EQ(reckon_leave(m.session), RECKON_PEER);
          },
          {}, {1});
}

TEST(TrainingOnGpu, ALostGpuEndsTheJobForAll) {
  const Job job = prepared({.servers = 0});
  run_job(job, [](Member& m, RankProcess& self) {
    OnGpu gpu(m);
    ASSERT_OK(reckon_begin(m.session));
    self.barrier();
    for (std::size_t t = 0; t < m.is.tensors; ++t) {
      gpu.make(t, 0);
    }
    if (m.is.rank == 1) {
      gpu.gpus().lose_after(0); // while its gradients are copied
      EXPECT_EQ(reckon_wait(m.session, -1), RECKON_FAILED);
      EXPECT_THAT(reckon_error(), HasSubstr("GPU 0: "));
    } else {
      EXPECT_EQ(reckon_wait(m.session, -1), RECKON_PEER);
      EXPECT_THAT(reckon_error(), testing::ContainsRegex("rank 1 .+GPU 0: .+made-up error 719"));
    }
    reckon_abandon(m.session, nullptr);
  });
}

TEST(TrainingOnGpu, CallsOutOfTurnAreRefusedAndHarmNothing) {
  const Job job = prepared({});
  run_job(job, [](Member& m, RankProcess&) {
    const auto refused = [&](reckon_status status, const char* words) {
      EXPECT_EQ(status, RECKON_INPUT);
      EXPECT_THAT(reckon_error(), HasSubstr(words));
    };
    if (m.is.worker == 0) {
      support::FakeGpus gpus(1);
      set_gpu_library(&gpus);
      refused(reckon_use_gpu(m.session, 0), "only sums");
      serve_and_leave(m);
      return;
    }
    std::byte anywhere{};
    refused(reckon_ready_on_stream(m.session, 0, &anywhere, nullptr), "uses no GPU");
    refused(reckon_wait_on_stream(m.session, nullptr), "uses no GPU");
    OnGpu gpu(m);
    refused(reckon_use_gpu(m.session, 0), "uses a GPU already");
    refused(reckon_wait_on_stream(m.session, gpu.stream()), "no step has begun");
    ASSERT_OK(reckon_begin(m.session));
    refused(reckon_ready_on_stream(m.session, 4, &anywhere, nullptr), "there are 4");
    refused(reckon_ready_on_stream(m.session, 0, nullptr, nullptr), "is NULL");
    for (std::size_t t = 0; t < m.is.tensors; ++t) {
      refused(reckon_wait_on_stream(m.session, gpu.stream()), "are not ready in this step");
      gpu.make(t, 0);
    }
    refused(reckon_ready_on_stream(m.session, 0, &anywhere, nullptr), "ready in this step already");
    ASSERT_OK(reckon_wait_on_stream(m.session, gpu.stream()));
    gpu.use();
    ASSERT_OK(reckon_wait(m.session, -1));
    gpu.show();
    expect_sums(m, 0, 1);
    ASSERT_OK(reckon_leave(m.session));
  });
}

} // namespace
} // namespace reckon
