// SPDX-License-Identifier: Apache-2.0
#include "equations/timeline.hpp"

#include "support/refusals.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace reckon {
namespace {

constexpr SchedulePolicy k_policies[] = {SchedulePolicy::lifo, SchedulePolicy::fifo,
                                         SchedulePolicy::priority};

TimedLayer layer(double forward_s, double weight_gradient_s, double input_gradient_s,
                 TimedCollective all_reduce) {
  return {forward_s, input_gradient_s, weight_gradient_s, all_reduce, {}};
}

TimelineOptions with(SchedulePolicy policy) {
  TimelineOptions options;
  options.policy = policy;
  return options;
}

/// When the last stretch of something ends, of iteration 0.
double end_of(const Timeline& timeline, TimelineWork work, std::size_t layer) {
  double end_s = -1;
  for (const TimelineEvent& e : timeline.events) {
    if (e.work == work && e.layer == layer && e.iteration == 0) {
      end_s = std::max(end_s, e.end_s);
    }
  }
  return end_s;
}

// Two layers, forward 1 and 1; backward: weights of layer 1 (1 s), its input (1 s), weights of
// layer 0 (1 s). Their all-reduces: layer 1 in 3 chunks of 2 s, layer 0 in one of 2 s.
//   computation  0-1 f0 | 1-2 f1 | 2-3 w1 | 3-4 i1 | 4-5 w0
//   posted       3: layer 1, 5: layer 0; the first chunk of layer 1 is from 3 to 5.
// lifo, priority: layer 0 from 5 to 7, then layer 1 from 7 to 11. Forward: f0 at 7-8, f1 waits
// until 11, 11-12; backward until 15. Iteration: 15 - 5 = 10, of it 5 computed. fifo: layer 1 until
// 9, layer 0 until 11. f0 at 11-12, f1 12-13, backward until 16: 11.
std::vector<TimedLayer> two_layers() {
  return {layer(1, 1, 0, {0, 2, 1}), layer(1, 1, 1, {0, 2, 3})};
}

TEST(Timeline, OfTwoLayersIsThatOnPaper) {
  for (const SchedulePolicy policy : {SchedulePolicy::lifo, SchedulePolicy::priority}) {
    const Timeline t = play_timeline(two_layers(), with(policy));
    EXPECT_EQ(t.begin_s, 5);
    EXPECT_EQ(t.iteration_s, 10);
    EXPECT_EQ(t.computation_s, 5);
    EXPECT_EQ(t.exposed_s, 5);
    EXPECT_EQ(t.communication_s, 8); // 6 of this iteration's forward, 2 of its backward pass
    EXPECT_EQ(end_of(t, TimelineWork::all_reduce, 0), 7);
    EXPECT_EQ(end_of(t, TimelineWork::all_reduce, 1), 11);
  }
  const Timeline t = play_timeline(two_layers(), with(SchedulePolicy::fifo));
  EXPECT_EQ(t.iteration_s, 11);
  EXPECT_EQ(end_of(t, TimelineWork::all_reduce, 1), 9);
  EXPECT_EQ(end_of(t, TimelineWork::all_reduce, 0), 11);
}

TEST(Timeline, AChunkIsNotInterrupted) {
  // As above, but layer 1 is one chunk of 6 s, from 3 to 9: layer 0 follows it, whatever the
  // policy.
  const std::vector<TimedLayer> layers{layer(1, 1, 0, {0, 2, 1}), layer(1, 1, 1, {0, 6, 1})};
  for (const SchedulePolicy policy : k_policies) {
    EXPECT_EQ(play_timeline(layers, with(policy)).iteration_s, 11);
  }
}

TEST(Timeline, TheFirstChunkComesAfterTheLatencies) {
  // One layer: forward 1, weights 1, an all-reduce of 0.5 + 2 x 1. Everything is exposed.
  const std::vector<TimedLayer> layers{layer(1, 1, 0, {0.5, 1, 2})};
  const Timeline t = play_timeline(layers, with(SchedulePolicy::lifo));
  EXPECT_EQ(t.iteration_s, 4.5);
  EXPECT_EQ(t.exposed_s, 2.5);
  EXPECT_EQ(layers[0].all_reduce->alone_s(), 2.5);
}

TEST(Timeline, AnEngineSendsTheNextWhileTheLastIsOnItsWay) {
  // Weights of layer 1 until 1 s, of layer 0 until 2; each sends 2 s and arrives 3 s later: sent
  // until 3 and 5, there at 6 and 8. One after another: 3 + 2 and again, from 1 until 11.
  const std::vector<TimedLayer> layers{layer(0, 1, 0, {3, 2, 1}), layer(0, 1, 0, {3, 2, 1})};
  TimelineOptions options;
  options.pipelined = true;
  const Timeline t = play_timeline(layers, options);
  EXPECT_EQ(t.begin_s, 2);
  // Backward begins when both are there, at 8, and takes 2 s.
  EXPECT_EQ(t.iteration_s, 8);
  EXPECT_EQ(t.communication_s, 1 + 2 + 1); // from 2 to 5; and from 9 on the next ones
  options.pipelined = false;
  EXPECT_EQ(play_timeline(layers, options).iteration_s, 11);
}

TEST(Timeline, PriorityTakesTheLayerThatIsNeededFirst) {
  // Three layers without forward times, posted at 1 (layer 2), 2 (layer 1) and 3 (layer 0), each 4
  // s in chunks of 2. Layer 2 sends from 1 to 3; then layer 0, which was posted last, from 3 to 7.
  // Then lifo and priority take layer 1, from 7 to 11, and layer 2's rest until 13; fifo 2, 1, 0.
  std::vector<TimedLayer> layers;
  for (int i = 0; i < 3; ++i) {
    layers.push_back(layer(0, 1, 0, {0, 2, 2}));
  }
  for (const SchedulePolicy policy : {SchedulePolicy::lifo, SchedulePolicy::priority}) {
    const Timeline t = play_timeline(layers, with(policy));
    EXPECT_EQ(end_of(t, TimelineWork::all_reduce, 0), 7);
    EXPECT_EQ(end_of(t, TimelineWork::all_reduce, 1), 11);
    EXPECT_EQ(end_of(t, TimelineWork::all_reduce, 2), 13);
  }
  const Timeline t = play_timeline(layers, with(SchedulePolicy::fifo));
  EXPECT_EQ(end_of(t, TimelineWork::all_reduce, 2), 5);
  EXPECT_EQ(end_of(t, TimelineWork::all_reduce, 1), 9);
  EXPECT_EQ(end_of(t, TimelineWork::all_reduce, 0), 13);
}

// Layer 0 looks up (1 s) and is exchanged (2 s) before layer 2; layer 1 computes 1 s meanwhile.
// Backward: layer 2's weights 1 s and input 1 s, then the exchange back (3 s); layer 1's weights
// 1 s; then layer 0's update, 1 s, waits for the exchange.
//   0-1 f0 | 1-2 f1 | 2-3 waits | 3-4 f2 | 4-5 w2 | 5-6 i2 | 6-7 w1 | 7-9 waits | 9-10 w0
std::vector<TimedLayer> embeddings() {
  TimedLayer look_up = layer(1, 1, 0, {});
  look_up.all_reduce.reset();
  look_up.exchange = {{0, 2, 1}, {0, 3, 1}, 2};
  TimedLayer bottom = layer(1, 1, 0, {});
  bottom.all_reduce.reset();
  TimedLayer top = layer(1, 1, 1, {});
  top.all_reduce.reset();
  return {look_up, bottom, top};
}

TEST(Timeline, ExchangesBlockWhatNeedsThem) {
  const Timeline t = play_timeline(embeddings(), {});
  EXPECT_EQ(t.begin_s, 10);
  EXPECT_EQ(t.iteration_s, 10);
  EXPECT_EQ(t.computation_s, 7);
  EXPECT_EQ(t.exposed_s, 3);
  EXPECT_EQ(t.communication_s, 5);
}

TEST(Timeline, AsideEmbeddingsAreNotWaitedFor) {
  TimelineOptions options;
  options.exchange_aside = true;
  // The layers that are left compute 5 s and wait for nothing: 2 s aside and 5 s sent fit beside.
  const Timeline t = play_timeline(embeddings(), options);
  EXPECT_EQ(t.iteration_s, 5);
  EXPECT_EQ(t.exposed_s, 0);
  // What is aside is never more than an iteration behind: when it takes 12 s, so does an iteration.
  std::vector<TimedLayer> slow = embeddings();
  slow[0].forward_s = slow[0].weight_gradient_s = 6;
  EXPECT_NEAR(play_timeline(slow, options).iteration_s, 12, 1e-9);
}

TEST(Timeline, WithoutOverlapAllIsSentAtTheEnd) {
  // As above, no overlap: blocks at once after the look-up, and sends 4 s at the end.
  //   0-1 f0 | 1-3 waits | 3-4 f1 | 4-5 f2 | 5-6 w2 | 6-7 i2 | 7-8 w1 | 8-12 waits | 12-13 w0
  TimelineOptions options;
  options.fused = TimedCollective{1, 1, 3};
  const Timeline t = play_timeline(embeddings(), options);
  EXPECT_EQ(t.iteration_s, 13);
  EXPECT_EQ(t.computation_s, 7);
  EXPECT_EQ(t.exposed_s, 6);
  // All-reduces of the layers themselves are in what is fused: they are not sent again.
  std::vector<TimedLayer> layers = two_layers();
  const Timeline fused = play_timeline(layers, options);
  EXPECT_EQ(fused.iteration_s, 5 + 4);
  EXPECT_EQ(fused.communication_s, 4);
}

TEST(Timeline, ContentionSlowsWhatGoesOnAtTheSameTime) {
  // One layer of backward only: weights 2 s, its all-reduce 2 s; then a layer whose weights take 4
  // s beside it, at half speed, while the all-reduce takes three times as long.
  //   0-2 w1 | 2-8 all-reduce 1, 6 s; w0 does 3 of its 4 s until 8, the last until 9 | 9-9.5 sent
  std::vector<TimedLayer> layers{layer(0, 4, 0, {0, 0.5, 1}), layer(0, 2, 0, {0, 2, 1})};
  TimelineOptions options;
  options.contention = {.compute = 2, .communication = 3};
  const Timeline t = play_timeline(layers, options);
  EXPECT_EQ(t.begin_s, 9);
  EXPECT_EQ(end_of(t, TimelineWork::all_reduce, 1), 8);
  EXPECT_EQ(end_of(t, TimelineWork::all_reduce, 0), 9.5);
}

TEST(Timeline, MistakesAreRefused) {
  const auto refuse = [](std::vector<TimedLayer> layers, TimelineOptions options = {}) {
    EXPECT_ERROR(play_timeline(layers, options));
  };
  refuse({});
  refuse({layer(-1, 0, 0, {})});
  refuse({layer(0, 0, 0, {0, -1, 1})});
  std::vector<TimedLayer> backwards = embeddings();
  backwards[0].exchange->before = 0;
  refuse(backwards);
  TimelineOptions faster;
  faster.contention.compute = 0.5;
  refuse(two_layers(), faster);
  TimelineOptions both;
  both.exchange_aside = true;
  both.fused = TimedCollective{};
  refuse(embeddings(), both);
}

} // namespace
} // namespace reckon
