// SPDX-License-Identifier: Apache-2.0
// Gradients of a made-up GPU, whose time passes only when the test calls it: every order of what
// the program, the GPU and the lanes do.
#include "training/staging.hpp"

#include "core/error.hpp"
#include "support/fake_gpus.hpp"
#include "support/random_cases.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <utility>
#include <vector>

namespace reckon {
namespace {

using support::FakeGpus;
using test::Random;

constexpr double k_factor = 0.5;

std::vector<float> floats(const std::byte* from, std::size_t bytes) {
  std::vector<float> values(bytes / sizeof(float));
  std::memcpy(values.data(), from, bytes);
  return values;
}

/// A worker whose gradient of few tensors lies on a made-up GPU, and the rest of the world.
class World {
public:
  World(std::vector<Staging::Place> tensors, std::vector<Stretch> parts)
      : m_tensors(std::move(tensors)), m_parts(std::move(parts)) {
    gpus.capacity = [](const std::string&) { return 1e12; }; // in time, one after another
    const Stretch& last = m_tensors.back().at;
    m_memory = Mapping(-1, last.offset_bytes + last.bytes, "lanes");
    for (Half& half : m_halves) {
      for (const Staging::Place& tensor : m_tensors) {
        half.made.emplace_back(tensor.at.bytes / sizeof(float));
        half.seen.emplace_back(half.made.back().size());
        half.gradients.emplace_back(gpus, 0, tensor.at.bytes);
      }
      half.stream = {gpus, gpus.make_stream(0)};
    }
  }

  /// All that this makes, the GPU's own calls included, before it throws.
  void stage() {
    staging = std::make_unique<Staging>(gpus, 0, m_memory.bytes(), m_tensors, m_parts, k_factor);
  }

  void begin(int step) {
    m_step = step;
    m_ready.clear();
    m_arrived.clear();
    m_summed.clear();
    staging->begin();
    for (std::vector<float>& seen : now().seen) {
      std::fill(seen.begin(), seen.end(), -1.F);
    }
  }
  /// The program queues what makes the tensor, and says so.
  void make(std::size_t t) {
    std::vector<float>& made = now().made[t];
    for (std::size_t i = 0; i < made.size(); ++i) {
      made[i] =
          static_cast<float>(2 * ((i + 7 * t + 13 * static_cast<std::size_t>(m_step)) % 1000));
    }
    copy(now().gradients[t].data(), made.data(), m_tensors[t].at.bytes);
    staging->ready(t, now().gradients[t].data(), stream());
    m_ready.insert(t);
  }
  [[nodiscard]] bool all_ready() const { return m_ready.size() == m_tensors.size(); }
  [[nodiscard]] bool is_ready(std::size_t t) const { return m_ready.contains(t); }

  /// A lane looks for a part whose gate is open.
  void look(std::uint32_t p) {
    if (m_arrived.contains(p) || !gate_is_open(p) || !staging->arrived(p)) {
      return;
    }
    m_arrived.insert(p);
    for_elements(p, [&](std::size_t t, std::size_t i, float* here) {
      ASSERT_EQ(*here, now().made[t][i] * static_cast<float>(k_factor))
          << "part " << p << " is said to be here: tensor " << t << ", element " << i;
    });
  }
  /// The network brings the sum of a part that has arrived.
  void sum(std::uint32_t p) {
    if (!m_arrived.contains(p) || !m_summed.insert(p).second) {
      return;
    }
    for_elements(p,
                 [&](std::size_t t, std::size_t i, float* here) { *here = sum_of(now(), t, i); });
    staging->summed(p);
  }
  [[nodiscard]] bool all_summed() const { return m_summed.size() == m_parts.size(); }
  [[nodiscard]] bool is_summed(std::uint32_t p) const { return m_summed.contains(p); }

  /// The optimizer reads the sums and leaves something else in the gradients.
  void use() {
    now().used = true;
    for (std::size_t t = 0; t < m_tensors.size(); ++t) {
      copy(reinterpret_cast<std::byte*>(now().seen[t].data()), now().gradients[t].data(),
           m_tensors[t].at.bytes);
      copy(now().gradients[t].data(), m_rubbish.data(), m_tensors[t].at.bytes);
    }
  }
  /// After that, in this step and the one before.
  void expect_sums() {
    for (const Half& half : m_halves) {
      ASSERT_EQ(gpus.synchronize(half.stream.get()), 0);
      for_all(half, [&](std::size_t t, std::size_t i, float seen) {
        ASSERT_EQ(seen, sum_of(half, t, i)) << "tensor " << t << ", element " << i;
      });
    }
  }
  void expect_sums_or_nans() {
    ASSERT_EQ(gpus.synchronize(stream()), 0);
    for_all(now(), [&](std::size_t t, std::size_t i, float seen) {
      ASSERT_TRUE(seen == sum_of(now(), t, i) || std::isnan(seen))
          << seen << " in tensor " << t << ", element " << i;
    });
  }
  [[nodiscard]] bool on_gpu(std::size_t t) const {
    const std::vector<float> there = floats(now().gradients[t].data(), m_tensors[t].at.bytes);
    return there.front() == sum_of(now(), t, 0) &&
           there.back() == sum_of(now(), t, there.size() - 1);
  }
  [[nodiscard]] GpuStream stream() const { return now().stream.get(); }
  [[nodiscard]] std::size_t tensors() const { return m_tensors.size(); }
  [[nodiscard]] std::uint32_t parts() const { return static_cast<std::uint32_t>(m_parts.size()); }

  FakeGpus gpus{1};

private:
  /// Of every other step: its program's stream does not wait for the other one's.
  struct Half {
    std::vector<std::vector<float>> made, seen;
    std::vector<GpuMemory> gradients;
    GpuOwned<GpuStream> stream;
    bool used = false;
  };
  [[nodiscard]] Half& now() { return m_halves[static_cast<std::size_t>(m_step % 2)]; }
  [[nodiscard]] const Half& now() const { return m_halves[static_cast<std::size_t>(m_step % 2)]; }
  static float sum_of(const Half& half, std::size_t t, std::size_t i) {
    return half.made[t][i] * static_cast<float>(k_factor) + 5000;
  }
  [[nodiscard]] bool gate_is_open(std::uint32_t p) const {
    bool open = true;
    for (std::size_t t = 0; t < m_tensors.size(); ++t) {
      open = open && (m_ready.contains(t) || end(m_tensors[t].at) <= m_parts[p].offset_bytes ||
                      end(m_parts[p]) <= m_tensors[t].at.offset_bytes);
    }
    return open;
  }
  static std::uint64_t end(Stretch at) { return at.offset_bytes + at.bytes; }
  /// `act` of the elements of a part: tensor, element, its place in the lanes' memory.
  void for_elements(std::uint32_t p,
                    const std::function<void(std::size_t, std::size_t, float*)>& act) {
    for (std::size_t t = 0; t < m_tensors.size(); ++t) {
      const Stretch& tensor = m_tensors[t].at;
      const std::uint64_t from = std::max(tensor.offset_bytes, m_parts[p].offset_bytes);
      for (std::uint64_t at = from; at < std::min(end(tensor), end(m_parts[p])); at += 4) {
        act(t, (at - tensor.offset_bytes) / 4, reinterpret_cast<float*>(&m_memory.bytes()[at]));
      }
    }
  }
  static void for_all(const Half& half,
                      const std::function<void(std::size_t, std::size_t, float)>& act) {
    for (std::size_t t = 0; half.used && t < half.seen.size(); ++t) {
      for (std::size_t i = 0; i < half.seen[t].size(); ++i) {
        act(t, i, half.seen[t][i]);
      }
    }
  }
  /// By the program, whose calls are not those that fail.
  void copy(std::byte* to, const void* from, std::uint64_t bytes) {
    const std::optional<std::size_t> left = gpus.lose_after(std::nullopt);
    ASSERT_EQ(gpus.copy(to, static_cast<const std::byte*>(from), bytes, stream()), 0);
    gpus.lose_after(left);
  }

  std::vector<Staging::Place> m_tensors;
  std::vector<Stretch> m_parts;
  Mapping m_memory;
  std::array<Half, 2> m_halves;
  std::vector<std::byte> m_rubbish = std::vector<std::byte>(1U << 16U, std::byte{0x55});
  int m_step = 0;
  std::set<std::size_t> m_ready;
  std::set<std::uint32_t> m_arrived, m_summed;

public:
  std::unique_ptr<Staging> staging; ///< last: it uses the memory
};

/// Tensors of one to 30 elements one after another, in parts that mind no tensor.
std::unique_ptr<World> random_world(Random& random) {
  std::vector<Staging::Place> tensors;
  std::uint64_t at = 0;
  const std::uint64_t count = random.whole(1, 5);
  for (std::uint64_t t = 0; t < count; ++t) {
    const std::uint64_t bytes = 4 * random.whole(1, 30);
    tensors.push_back({{at, bytes}, DType::fp32});
    at += bytes;
  }
  std::vector<Stretch> parts;
  for (std::uint64_t begin = 0; begin < at;) {
    const std::uint64_t bytes = std::min(4 * random.whole(1, 40), at - begin);
    parts.push_back({begin, bytes});
    begin += bytes;
  }
  if (random.coin()) { // their numbers say nothing about their places
    std::shuffle(parts.begin(), parts.end(), random);
  }
  auto world = std::make_unique<World>(std::move(tensors), std::move(parts));
  const double speed = random.coin() ? 1e-9 : 1e-6; // seconds a byte
  world->gpus.seconds = [speed](const FakeGpus::Work& what) {
    return 1e-7 + speed * static_cast<double>(what.bytes);
  };
  return world;
}

/// One thing that happens next, of those that can.
void happen(World& world, Random& random, bool& waited) {
  const auto part = static_cast<std::uint32_t>(random.below(world.parts()));
  switch (random.below(6)) {
  case 0: {
    const std::size_t tensor = random.below(world.tensors());
    if (!world.is_ready(tensor)) {
      world.make(tensor);
    }
    break;
  }
  case 1:
  case 2:
    world.look(part);
    break;
  case 3:
    world.sum(part);
    break;
  case 4:
    if (world.all_ready() && !waited) {
      world.staging->wait(world.stream());
      waited = true;
      world.use();
    }
    break;
  default:
    world.gpus.advance(1e-6 * static_cast<double>(random.below(100)));
  }
}

void step(World& world, Random& random, int number) {
  world.begin(number);
  bool waited = false;
  while ((!world.all_summed() || !waited) && !testing::Test::HasFatalFailure()) {
    happen(world, random, waited);
  }
  if (random.coin()) {
    world.staging->finish(); // nothing more to do
  }
  if (random.coin()) { // else the next step begins while the GPU still copies
    world.expect_sums();
  }
}

TEST(Staging, EveryOrderOfWhatProgramGpuAndLanesDoGivesTheSums) {
  test::for_cases(42, 10'000, [](Random& random) {
    const std::unique_ptr<World> world = random_world(random);
    world->stage();
    for (int number = 0; number < 3; ++number) {
      step(*world, random, number);
    }
    world->expect_sums();
    EXPECT_EQ(world->staging->failure(), "");
    const std::size_t own = world->gpus.living();
    world->staging.reset();
    EXPECT_LT(world->gpus.living(), own);
  });
}

TEST(Staging, AJobThatFailsAtAnyTimeLetsTheGpuGoOnAndGivesNoWrongSum) {
  test::for_cases(43, 3'000, [](Random& random) {
    const std::unique_ptr<World> world = random_world(random);
    world->stage();
    step(*world, random, 0);
    world->expect_sums();
    world->begin(1);
    bool waited = false;
    for (std::uint64_t left = random.below(120); left > 0; --left) {
      happen(*world, random, waited);
    }
    world->staging->release();
    if (waited) {
      world->expect_sums_or_nans();
    } else if (world->all_ready()) {
      EXPECT_THROW(world->staging->wait(world->stream()), Error);
    }
    world->staging.reset();
  });
}

TEST(Staging, AGpuThatIsLostAtAnyCallIsSaidAndHoldsNobody) {
  for (std::size_t calls = 0;; ++calls) {
    SCOPED_TRACE(testing::Message() << "after " << calls << " calls");
    Random random(7);
    World world({{{0, 40}}, {{40, 24}}, {{64, 100}}}, {{0, 64}, {64, 52}, {116, 48}});
    const std::size_t before = world.gpus.living();
    world.gpus.lose_after(calls);
    bool thrown = false;
    try {
      world.stage();
      for (int number = 0; number < 2; ++number) {
        world.begin(number);
        bool waited = false;
        for (int looks = 0; looks < 500 && (!world.all_summed() || !waited); ++looks) {
          happen(world, random, waited);
        }
        if (waited && world.all_summed() && world.staging->failure().empty() && number == 1) {
          world.staging->finish();
        }
      }
    } catch (const Error& error) {
      thrown = true;
      EXPECT_THAT(error.what(), testing::HasSubstr("made-up error 719"));
      EXPECT_EQ(error.kind(), ErrorKind::operation);
    }
    const bool survived = world.gpus.calls_refused == 0;
    EXPECT_EQ(survived, !thrown && world.staging->failure().empty());
    world.staging.reset();
    EXPECT_EQ(world.gpus.living(), before) << "something is left";
    if (survived) {
      EXPECT_GT(calls, 50U);
      break;
    }
    ASSERT_LT(calls, 2000U);
  }
}

/// Two tensors of two parts each, which a copy takes 10 microseconds for.
std::unique_ptr<World> simple_world() {
  auto world = std::make_unique<World>(
      std::vector<Staging::Place>{{{0, 800}, DType::fp32}, {{800, 800}, DType::fp32}},
      std::vector<Stretch>{{0, 400}, {400, 400}, {800, 400}, {1200, 400}});
  world->gpus.seconds = [](const FakeGpus::Work&) { return 1e-5; };
  world->stage();
  world->begin(0);
  return world;
}

TEST(Staging, APartMayGoBeforeTheRestOfItsTensorHasArrived) {
  const std::unique_ptr<World> world = simple_world();
  world->make(0);
  EXPECT_FALSE(world->staging->arrived(0));
  while (!world->staging->arrived(0)) {
    ASSERT_FALSE(world->staging->arrived(1));
  }
  EXPECT_FALSE(world->staging->arrived(1));
  EXPECT_TRUE(world->staging->arrived(2)) << "nothing of it was queued: its gate says when";
}

TEST(Staging, ASumIsOnTheGpuBeforeTheOthersAreThere) {
  const std::unique_ptr<World> world = simple_world();
  world->make(0);
  world->make(1);
  world->gpus.advance(1e-3);
  for (const std::uint32_t p : {0U, 1U}) {
    world->look(p);
    world->sum(p);
  }
  world->gpus.advance(1e-3);
  EXPECT_TRUE(world->on_gpu(0));
  EXPECT_FALSE(world->on_gpu(1));
  world->staging->wait(world->stream());
  world->use();
  for (const std::uint32_t p : {3U, 2U}) {
    world->look(p);
    world->sum(p);
  }
  world->expect_sums();
}

TEST(Staging, TheProgramWaitsByItsProcessorOnlyIfItAsks) {
  const std::unique_ptr<World> world = simple_world();
  world->make(0);
  world->make(1);
  world->gpus.advance(1e-3);
  for (std::uint32_t p = 0; p < 4; ++p) {
    world->look(p);
    world->sum(p);
  }
  const double before = world->gpus.clock().now().count();
  world->staging->finish();
  EXPECT_GE(world->gpus.clock().now().count() - before, 3e-5) << "the copies up";
  EXPECT_TRUE(world->on_gpu(0));
  EXPECT_TRUE(world->on_gpu(1));
}

TEST(Staging, PartsOfTensorsAreFoundWhateverTheirOrder) {
  const std::vector<Staging::Place> tensors{{{0, 10}}, {{10, 2}}, {{12, 30}}, {{64, 6}}};
  const std::vector<Stretch> parts{{11, 9}, {0, 11}, {64, 6}, {20, 22}};
  EXPECT_THAT(parts_of_tensors(tensors, parts),
              testing::ElementsAre(testing::ElementsAre(1), testing::ElementsAre(1, 0),
                                   testing::ElementsAre(0, 3), testing::ElementsAre(2)));
}

TEST(Staging, AGpuThatIsNotThereIsRefused) {
  World world({{{0, 40}}}, {{0, 40}});
  for (const int device : {-1, 1}) {
    std::vector<std::byte> memory(40);
    EXPECT_THROW(Staging(world.gpus, device, memory, {{{0, 40}}}, {{0, 40}}, 1), Error);
  }
}

} // namespace
} // namespace reckon
