// SPDX-License-Identifier: Apache-2.0
#include "../strategies/fixtures.hpp"

#include "core/error.hpp"
#include "export/export.hpp"
#include "strategies/lower.hpp"
#include "support/refusals.hpp"

#include <gtest/gtest.h>
#include <pugixml.hpp>

#include <map>
#include <queue>
#include <random>
#include <tuple>

namespace reckon::test {
namespace {

/// MSCCL's interpreter on whole numbers: thread blocks make their steps in order, a connection
/// (sender, receiver, channel) holds one chunk. Ends with every rank's buffer, empty when a thread
/// block could not go on.
class Interpreter {
public:
  explicit Interpreter(const std::string& xml) {
    EXPECT_TRUE(m_document.load_string(xml.c_str()));
    m_algo = m_document.child("algo");
    EXPECT_STREQ(m_algo.attribute("coll").value(), "allreduce");
    EXPECT_EQ(m_algo.attribute("inplace").as_int(), 1);
    EXPECT_EQ(m_algo.attribute("outofplace").as_string("none"), std::string("0"));
    EXPECT_EQ(m_algo.attribute("minBytes").as_string("none"), std::string("0"));
    most_bytes = m_algo.attribute("maxBytes").as_ullong();
    chunks = m_algo.attribute("nchunksperloop").as_uint();
    gpus = m_algo.attribute("ngpus").as_uint();
    for (const pugi::xml_node gpu : m_algo.children("gpu")) {
      EXPECT_EQ(gpu.attribute("i_chunks").as_uint(), chunks);
      for (const pugi::xml_node tb : gpu.children("tb")) {
        Block block;
        block.gpu = gpu.attribute("id").as_uint();
        block.send = tb.attribute("send").as_int();
        block.receive = tb.attribute("recv").as_int();
        block.channel = tb.attribute("chan").as_int();
        EXPECT_LT(block.channel, m_algo.attribute("nchannels").as_int());
        // A connection belongs to one thread block at either end.
        EXPECT_TRUE(m_ends.insert({0, block.gpu, block.send, block.channel}).second);
        EXPECT_TRUE(m_ends.insert({1, block.gpu, block.receive, block.channel}).second);
        int number = 0;
        for (const pugi::xml_node step : tb.children("step")) {
          EXPECT_EQ(step.attribute("s").as_int(), number++);
          block.steps.push_back(step);
        }
        longest = std::max(longest, block.steps.size());
        m_blocks.push_back(block);
      }
    }
  }

  std::vector<std::vector<std::int64_t>> run(std::vector<std::vector<std::int64_t>> data) {
    std::map<std::tuple<unsigned, unsigned, int>, std::queue<std::int64_t>> connections;
    std::size_t left = 0;
    for (bool any = true; any;) {
      any = false;
      left = 0;
      for (Block& block : m_blocks) {
        if (block.next == block.steps.size()) {
          continue;
        }
        const pugi::xml_node step = block.steps[block.next];
        const std::string type = step.attribute("type").value();
        std::vector<std::int64_t>& own = data[block.gpu];
        const unsigned source = step.attribute("srcoff").as_uint();
        const unsigned destination = step.attribute("dstoff").as_uint();
        auto& out = connections[{block.gpu, static_cast<unsigned>(block.send), block.channel}];
        auto& in = connections[{static_cast<unsigned>(block.receive), block.gpu, block.channel}];
        if (type == "s" && out.empty()) {
          out.push(own.at(source));
        } else if ((type == "r" || type == "rrc") && !in.empty()) {
          own.at(destination) = in.front() + (type == "rrc" ? own.at(source) : 0);
          in.pop();
        } else {
          ++left;
          continue;
        }
        ++block.next;
        any = true;
      }
    }
    return left == 0 ? data : std::vector<std::vector<std::int64_t>>();
  }

  std::size_t chunks = 0, gpus = 0, longest = 0;
  std::uint64_t most_bytes = 0;
  [[nodiscard]] int channels() const { return m_algo.attribute("nchannels").as_int(); }

private:
  struct Block {
    unsigned gpu = 0;
    int send = -1, receive = -1, channel = 0;
    std::vector<pugi::xml_node> steps;
    std::size_t next = 0;
  };
  pugi::xml_document m_document;
  pugi::xml_node m_algo;
  std::vector<Block> m_blocks;
  std::set<std::tuple<int, unsigned, int, int>> m_ends;
};

Plan ring(std::uint64_t workers, std::uint64_t elements, std::uint64_t part_bytes, int lanes = 1) {
  PlanOptions options{.strategy = "ring", .part_bytes = part_bytes};
  return plan_for(cluster(1e9, 1e9), workload({{"a", elements}}), workers, 0, options, lanes);
}

std::string xml_of(const Plan& plan) {
  return msccl_xml(plan, lower(plan));
}

/// A part for each tensor, round a ring of four.
Plan by_tensors(std::vector<Tensor> tensors) {
  PlanOptions options{.strategy = "ring", .part_bytes = 1U << 30U, .cutting = Cutting::tensors};
  return plan_for(cluster(1e9, 1e9), workload(std::move(tensors)), 4, 0, options);
}

void expect_refused(const Plan& plan, const std::string& why) {
  EXPECT_REFUSED(input, why, msccl_xml(plan, lower(plan)));
}

TEST(Msccl, TheProgramReadBackMakesEveryRanksBufferTheSum) {
  std::mt19937_64 random(20261122);
  for (const auto& [workers, parts, lanes] :
       std::vector<std::tuple<std::uint64_t, std::uint64_t, int>>{{2, 2, 1},
                                                                  {2, 8, 1},
                                                                  {3, 3, 1},
                                                                  {4, 4, 1},
                                                                  {4, 32, 1},
                                                                  {4, 16, 2},
                                                                  {5, 20, 2},
                                                                  {8, 8, 1}}) {
    SCOPED_TRACE(testing::Message()
                 << workers << " workers, " << parts << " parts, " << lanes << " lanes");
    const Plan plan = ring(workers, parts * 1024, 4096, lanes);
    ASSERT_EQ(plan.parts.size(), parts);
    Interpreter program(msccl_xml(plan, lower(plan)));
    EXPECT_EQ(program.gpus, workers);
    std::vector<std::vector<std::int64_t>> data(workers, std::vector<std::int64_t>(program.chunks));
    std::vector<std::int64_t> sum(program.chunks, 0);
    for (auto& rank : data) {
      for (std::size_t c = 0; c < program.chunks; ++c) {
        rank[c] = static_cast<std::int64_t>(random() % 1'000'000);
        sum[c] += rank[c];
      }
    }
    EXPECT_EQ(program.run(data), std::vector(workers, sum));
  }
}

TEST(Msccl, PartsThatDifferByTheirAlignmentOnlyAreEqual) {
  // 100,000 bytes in four parts that begin at multiples of 64: 3 x 25,024 and 24,928.
  const Plan plan = ring(4, 25'000, 25'024);
  ASSERT_EQ(plan.parts.bytes, (std::vector<std::uint64_t>{25'024, 25'024, 25'024, 24'928}));
  Interpreter program(msccl_xml(plan, lower(plan)));
  EXPECT_EQ(program.run({{1, 2, 3, 4}, {10, 20, 30, 40}, {100, 200, 300, 400}, {0, 0, 0, 5}}),
            std::vector(4, std::vector<std::int64_t>{111, 222, 333, 449}));
}

TEST(Msccl, TheLastPartMayBeShorter) {
  // 4,000,000 bytes: 61 parts of 64,576 and one of 60,864, 6 % less.
  const Plan plan = ring(2, 1'000'000, 65'536);
  ASSERT_EQ(plan.parts.bytes.front(), 64'576U);
  ASSERT_EQ(plan.parts.bytes.back(), 60'864U);
  EXPECT_NO_THROW(static_cast<void>(xml_of(plan)));
}

TEST(Msccl, WhatDoesNotFitIsRefusedWithWhatWould) {
  expect_refused(by_tensors({{"b", 9000}, {"a", 10240}}), // 12 % less
                 "parts are of 36000 to 40960 bytes; plan with --cutting fused --part-bytes ");
  PlanOptions options{.strategy = "ps_noncolocated", .part_bytes = 4096};
  const Workload w = workload({{"a", 4096}});
  expect_refused(plan_for(cluster(1e9, 1e9), w, 2, 2, options), "rank 2 only serves");
  options.strategy = "ps_colocated";
  expect_refused(plan_for(cluster(1e9, 1e9), w, 4, 0, options), "a thread block has one of each");
  options.strategy = "ring";
  options.optimizer = Optimizer::sgd;
  expect_refused(plan_for(cluster(1e9, 1e9), w, 2, 0, options), "plan without --optimizer");
  options.optimizer.reset();
  expect_refused(
      plan_for(cluster(1e9, 1e9), workload({{"a", 4096}, {"b", 4096, DType::fp16}}), 2, 0, options),
      "2 runs of different element types");
  // A rank of n sends and receives each of n parts twice but for the first and the last time: 4 (n
  // - 1) steps, and microsoft/msccl takes 256.
  EXPECT_EQ(Interpreter(xml_of(ring(65, 66'560, 4096))).longest, 256U);
  expect_refused(ring(66, 67'584, 4096),
                 "a thread block would make 260 steps, and in microsoft/msccl at most 256");
}

/// The schedule with other operands or another place of rank 0's first sum.
template <class Change>
Schedule with_another_sum(Schedule schedule, const Change& change) {
  LaneProgram& lane = schedule.ranks[0].lanes[0];
  const LaneProgram old = std::exchange(lane, {});
  bool first = true;
  for (std::uint32_t i = 0; i < old.ops().size(); ++i) {
    Op op = old.ops()[i];
    std::vector<Slice> sources(old.sources(op).begin(), old.sources(op).end());
    if (op.kind == OpKind::reduce && std::exchange(first, false)) {
      change(op, sources);
    }
    lane.append_over(op, sources, old.dependencies(i));
  }
  return schedule;
}

TEST(Msccl, WhatIsAddedElsewhereThanToTheGradientIsRefused) {
  const Plan plan = ring(3, 3072, 4096);
  const Schedule schedule = lower(plan);
  const auto refused = [&](const auto& change) {
    EXPECT_REFUSED(input, "adds part", msccl_xml(plan, with_another_sum(schedule, change)));
  };
  EXPECT_NO_THROW(static_cast<void>(
      msccl_xml(plan, with_another_sum(schedule, [](Op&, std::vector<Slice>&) {}))));
  refused([](Op& op, std::vector<Slice>&) { op.destination.buffer = 1; });
  refused([](Op& op, std::vector<Slice>&) { op.destination.offset += 64; });
  refused([](Op&, std::vector<Slice>& sources) { sources.push_back(sources.front()); });
  refused([](Op&, std::vector<Slice>& sources) { sources[0] = sources[1]; });
}

/// What the file says of its use.
std::string said_by(const std::string& xml) {
  const std::string begin = "<!-- ", end = " -->\n<algo ";
  EXPECT_TRUE(xml.starts_with(begin));
  return xml.substr(begin.size(), xml.find(end) - begin.size());
}

TEST(Msccl, TheChunksDivideTheElementsAndBothRuntimesTakeThem) {
  struct Case {
    std::uint64_t workers, elements, part_bytes;
    int lanes;
    std::size_t chunks;
    int channels;
    std::uint64_t bytes; ///< of a buffer that it is used for
    std::string said;
  };
  const std::string both = "for microsoft/msccl and RCCL";
  for (const Case& c : {
           // 32 parts make 96 steps; 21 chunks would make 63, and of multiples of 4 up to there 16
           // divides 2^15.
           Case{4, 32'768, 4096, 1, 16, 1, 131'072,
                both + "; used for 32768 elements, and fewer that are a multiple of 16"},
           // 25,557,032 is 8 times an odd number, and twelve ranks' lanes do not divide it.
           Case{4, 25'557'032, 1'597'376, 1, 8, 1, 102'228'128,
                both + "; used for 25557032 elements, and fewer that are a multiple of 8"},
           Case{4, 25'557'032, 1'597'376, 3, 8, 2, 102'228'128,
                both + "; with 2 of the plan's 3 lanes; used for 25557032 elements, and fewer that "
                       "are a multiple of 8"},
           Case{4, 1'000'003, 131'072, 1, 4, 1, 4'000'016,
                both + "; used only for multiples of 4 elements: pad the 1000003 to 1000004"},
           // 17 ranks make 64 steps, 18 make 68.
           Case{17, 69'632, 16'384, 1, 17, 1, 278'528,
                both + "; used for 69632 elements, and fewer that are a multiple of 17"},
           // Of 33 parts each rank sums two but the last, which sums one: a chunk each all the
           // same.
           Case{17, 69'632, 8448, 1, 17, 1, 278'528,
                both + "; used for 69632 elements, and fewer that are a multiple of 17"},
           Case{
               18, 73'728, 16'384, 1, 18, 1, 294'912,
               "for microsoft/msccl; not for RCCL, whose thread blocks make at most 64 steps; used "
               "for 73728 elements, and fewer that are a multiple of 18"},
       }) {
    SCOPED_TRACE(testing::Message() << c.workers << " workers, " << c.elements << " elements");
    const std::string xml = xml_of(ring(c.workers, c.elements, c.part_bytes, c.lanes));
    const Interpreter program(xml);
    EXPECT_EQ(program.chunks, c.chunks);
    EXPECT_EQ(program.channels(), c.channels);
    EXPECT_GT(program.most_bytes, c.bytes); // microsoft/msccl uses it below
    EXPECT_LT(program.most_bytes, c.bytes + 4);
    EXPECT_EQ(said_by(xml), c.said);
  }
}

TEST(Msccl, TheSizeThatARefusalNamesFits) {
  for (const std::uint64_t elements : {25'557'032U, 5000U, 99'999U}) {
    try {
      const Plan plan = by_tensors({{"a", elements / 3}, {"b", elements - elements / 3}});
      static_cast<void>(msccl_xml(plan, lower(plan)));
      FAIL() << "must throw";
    } catch (const Error& e) {
      const std::string text = e.what(), flag = "--part-bytes ";
      const std::uint64_t bytes = std::stoull(text.substr(text.find(flag) + flag.size()));
      const Plan plan = ring(4, elements, bytes);
      EXPECT_NO_THROW(static_cast<void>(msccl_xml(plan, lower(plan)))) << elements << ": " << text;
    }
  }
}

} // namespace
} // namespace reckon::test
