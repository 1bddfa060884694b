// SPDX-License-Identifier: Apache-2.0
#include "import/records/job.hpp"
#include "import/trace_workload.hpp"
#include "imported.hpp"
#include "stats/random.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace reckon {
namespace {

using import_detail::Job;

std::vector<ToolOutput> record_files(const std::vector<std::string>& names) {
  std::vector<ToolOutput> out;
  for (const std::string& name : names) {
    out.push_back({.file = name, .text = golden_text("records/" + name)});
  }
  return out;
}

Profile job_profile(const std::vector<ToolOutput>& files) {
  std::vector<Profile> all = import_texts(files, {});
  EXPECT_EQ(all.size(), 1U);
  return all.front();
}

std::string job_complaint(const std::vector<ToolOutput>& files) {
  try {
    static_cast<void>(import_texts(files, {}));
  } catch (const Error& e) {
    EXPECT_EQ(e.kind(), ErrorKind::input) << e.what();
    return e.what();
  }
  return "no error";
}

std::vector<ToolOutput> inspector_files(const std::string& kind) {
  return record_files({kind + "-node-a-0.log", kind + "-node-a-1.log", kind + "-node-b-2.log",
                       kind + "-node-b-3.log"});
}

const Cell& job_cell(const Profile& profile, const std::string& test,
                     const std::string& transport) {
  CellKey key;
  key.test = test;
  key.transport = transport;
  return only(profile, key);
}

TEST(JobRecords, InspectorWithoutArrivalsGivesTheLeastOverTheRanks) {
  const Profile p = job_profile(inspector_files("inspector"));
  // coll_exec_time_us of AllReduce on ranks 0 to 3, by coll_sn: 3922 3091 2429 886; 2384 2407 2356
  // 881; 2345 2359 2431 875; 2511 2574 2566 883; 2491 2469 2393 892; 2401 2488 2557 891; 2399 2373
  // 2361 856; 2444 2448 2369 897; 2450 2485 2388 874; 2456 2362 2446 885; 2395 2447 2351 880; 2296
  // 2364 2278 877. The least in order: 856 874 875 877 880 881 883 885 886 891 892 897.
  const Cell& sums = job_cell(p, "job_all_reduce", "nccl ranks 0-3");
  EXPECT_EQ(sums.status, CellStatus::ok);
  EXPECT_EQ(sums.n, 12U);
  EXPECT_EQ(sums.key.bytes, 4194304U);
  EXPECT_EQ(sums.key.sources, 4);
  EXPECT_DOUBLE_EQ(sums.p50, 882e-6);
  EXPECT_DOUBLE_EQ(sums.min, 856e-6);
  EXPECT_DOUBLE_EQ(sums.max, 897e-6);
  // AllGather: the least of ranks 0 and 1 are 398 411 384 373 458 374, of 2 and 3 374 382 356 384
  // 375 368. NCCL counts 131072 B of each rank.
  const Cell& first = job_cell(p, "job_all_gather", "nccl ranks 0-1");
  EXPECT_DOUBLE_EQ(first.p50, 391e-6);
  EXPECT_EQ(first.key.bytes, 262144U);
  EXPECT_DOUBLE_EQ(job_cell(p, "job_all_gather", "nccl ranks 2-3").p50, 374.5e-6);
  // A broadcast's root need not wait, so the least over the ranks may lack a part of it.
  EXPECT_EQ(job_cell(p, "job_broadcast", "nccl ranks 0-3").status, CellStatus::noisy);
  EXPECT_NE(p.context.at("wait for the last rank").find("minimum over ranks in 3"),
            std::string::npos);
  // Rank 3 is the shortest in all sums; by the median of the others less its own, in order: 1419
  // 1484 1503 1515 1517 1547 1561 1576 1577 1597 1683 2205. By chance a quarter.
  EXPECT_TRUE(p.context.at("late rank")
                  .starts_with("rank 3 (node-b): last in 12 of 12 collectives of ranks 0-3 (3 by "
                               "chance), by 1.554 ms"))
      << p.context.at("late rank");
  ASSERT_EQ(p.machines.size(), 2U);
  EXPECT_EQ(p.machines[0].name, "node-a");
  EXPECT_EQ(p.machines[1].name, "node-b");
}

TEST(JobRecords, InspectorWithArrivalsGivesTheTimeAfterTheLast) {
  const Profile p = job_profile(inspector_files("inspector-verbose"));
  // First kernel_start_ts (last 8 digits) + coll_exec_time_us of the sums: latest end less latest
  // start are 14633997 - 14633038, 14640767 - 14639812 and 14647217 - 14646265.
  const Cell& sums = job_cell(p, "job_all_reduce", "nccl ranks 0-3");
  ASSERT_EQ(sums.samples.size(), 3U);
  EXPECT_NEAR(sums.samples[0], 959e-6, 1e-6); // a clock since 1970 has a quarter of a microsecond
  EXPECT_NEAR(sums.samples[1], 955e-6, 1e-6);
  EXPECT_NEAR(sums.samples[2], 952e-6, 1e-6);
  EXPECT_NE(p.context.at("wait for the last rank").find("last arrival in 3"), std::string::npos);
}

TEST(JobRecords, ClocksThatDifferAreNotCompared) {
  std::vector<ToolOutput> files = inspector_files("inspector-verbose");
  // node-b's clock a second ahead: 1795987714... becomes 1795987715...
  for (ToolOutput& file : files) {
    for (std::size_t at = 0; file.file.find("node-b") != std::string::npos &&
                             (at = file.text.find("_ts\":1795987714", at)) != std::string::npos;
         ++at) {
      file.text[at + 14] = '5';
    }
  }
  const Profile p = job_profile(files);
  // The least of the four are rank 3's.
  EXPECT_DOUBLE_EQ(job_cell(p, "job_all_reduce", "nccl ranks 0-3").p50, 883e-6);
  EXPECT_NE(p.context.at("wait for the last rank").find("clocks differ"), std::string::npos);
  // The pairs are on one host each, whose clock is one.
  EXPECT_NE(p.context.at("wait for the last rank").find("last arrival in 2"), std::string::npos);
}

TEST(JobRecords, RanksThatAreMissingAreSaid) {
  std::vector<ToolOutput> files = inspector_files("inspector");
  files.pop_back(); // rank 3, which was late
  const Profile p = job_profile(files);
  const Cell& sums = job_cell(p, "job_all_reduce", "nccl ranks 0-2 of 4");
  EXPECT_EQ(sums.status, CellStatus::noisy);
  EXPECT_NE(sums.reason.find("3 of 4 ranks"), std::string::npos);
  EXPECT_EQ(job_cell(p, "job_all_gather", "nccl ranks 0-1").status, CellStatus::ok);
}

TEST(JobRecords, AProcessWithSeveralGpusHasARankForEach) {
  const std::vector<ToolOutput> files = inspector_files("inspector");
  const Profile alone = job_profile(files);
  const Profile together = job_profile({{.file = "a.log", .text = files[0].text + files[1].text},
                                        {.file = "b.log", .text = files[2].text + files[3].text}});
  EXPECT_EQ(together.cells, alone.cells);
  EXPECT_EQ(together.context.at("late rank"), alone.context.at("late rank"));
}

TEST(JobRecords, ACutLastLineIsLeftOutAndOthersAreRefused) {
  std::vector<ToolOutput> files = inspector_files("inspector");
  files[0].text.resize(files[0].text.size() - 40);
  // Rank 0's last is a sum, so the last of the twelve lacks a rank.
  EXPECT_EQ(job_cell(job_profile(files), "job_all_reduce", "nccl ranks 0-3").n, 11U);
  files[1].text.erase(1, 1);
  EXPECT_NE(job_complaint(files).find("inspector-node-a-1.log:1:"), std::string::npos);
  files = inspector_files("inspector");
  files[2].text = replaced(files[2].text, "\"rank\":2", "\"rank\":4");
  EXPECT_NE(job_complaint(files).find("inspector-node-b-2.log:1: /header/rank"), std::string::npos);
  files = inspector_files("inspector");
  files[2].text = replaced(files[2].text, "\"v4.0\"", "\"v5.0\"");
  EXPECT_NE(job_complaint(files).find("inspector-node-b-2.log:1"), std::string::npos);
}

TEST(JobRecords, AFlightRecorderNamesTheLateRankAndTheOneThatHangs) {
  const std::vector<ToolOutput> json =
      record_files({"flight-recorder-rank_0.json", "flight-recorder-rank_1.json",
                    "flight-recorder-rank_2.json"});
  const Profile p = job_profile(json);
  // duration_ms of ranks 0, 1, 2: 5 4 1; 6 5.5 1.5; 4.5 4 1.25. 1024 x 256 floats.
  const Cell& sums = job_cell(p, "job_all_reduce", "nccl ranks 0-2");
  EXPECT_EQ(sums.key.bytes, 1048576U);
  EXPECT_EQ(sums.key.dtype, "fp32");
  EXPECT_DOUBLE_EQ(sums.p50, 1.25e-3);
  EXPECT_EQ(sums.n, 3U);
  // Later than the median of the others by 3.5, 4.25 and 3 ms.
  EXPECT_NE(p.context.at("late rank").find("rank 2: last in 3 of 3"), std::string::npos);
  EXPECT_NE(p.context.at("late rank").find("by 3.5"), std::string::npos)
      << p.context.at("late rank");
  EXPECT_NE(p.context.at("behind").find("rank 2: 3 collectives begun"), std::string::npos);
  // The same as PyTorch writes it to files.
  const Profile pickled = job_profile(
      record_files({"flight-recorder_rank_0", "flight-recorder_rank_1", "flight-recorder_rank_2"}));
  EXPECT_EQ(pickled.cells, p.cells);
  EXPECT_EQ(pickled.context.at("behind"), p.context.at("behind"));
  // And as Python pickles it again, lists that are one object included.
  EXPECT_EQ(
      job_profile(record_files({"flight-recorder-protocol-4_rank_0",
                                "flight-recorder-protocol-5_rank_1", "flight-recorder_rank_2"}))
          .cells,
      p.cells);
}

TEST(JobRecords, APickleIsNeverExecuted) {
  const std::string good = golden_text("records/flight-recorder_rank_0");
  // os.system('x') as pickles do it: GLOBAL, its argument, REDUCE.
  const std::string evil("\x80\x02"
                         "cos\nsystem\n(X\x01\x00\x00\x00xtR.",
                         24);
  EXPECT_NE(job_complaint({{.file = "r_0", .text = evil}}).find("r_0: byte 2: opcode 0x63"),
            std::string::npos);
  // The same of protocol 4, in a frame: STACK_GLOBAL.
  const std::string framed(
      "\x80\x04\x95\x10\x00\x00\x00\x00\x00\x00\x00\x8c\x02os\x8c\x06system\x93.", 25);
  EXPECT_NE(job_complaint({{.file = "r_0", .text = framed}}).find("r_0: byte 23: opcode 0x93"),
            std::string::npos);
  // A list that is a part of itself.
  const std::string ring("\x80\x04]\x94h\x00"
                         "a.",
                         8);
  EXPECT_NE(job_complaint({{.file = "r_0", .text = ring}}).find("r_0: byte"), std::string::npos);
  // A list that doubles 23 times, to 8 million values: [1], then [last, last] each time.
  std::string bomb("\x80\x02]K\x01"
                   "aq\x00",
                   8);
  for (int i = 0; i < 23; ++i) {
    bomb += std::string("](h\x00h\x00"
                        "eq\x00",
                        9);
  }
  EXPECT_NE(job_complaint({{.file = "r_0", .text = bomb + "."}}).find("r_0: byte"),
            std::string::npos);
  // And a list in a list, a million times.
  const std::string deep =
      "\x80\x02" + std::string(1'000'000, ']') + std::string(999'999, 'a') + ".";
  EXPECT_NE(job_complaint({{.file = "r_0", .text = deep}}).find("r_0: byte"), std::string::npos);
  for (std::size_t length = 3; length < good.size(); length += 7) {
    EXPECT_NE(job_complaint({{.file = "r_0", .text = good.substr(0, length)}}).find("r_0: byte"),
              std::string::npos)
        << length;
  }
}

TEST(JobRecords, AnOutputOfNcclrasNamesWhoIsBehindOrMissing) {
  const Profile p = job_profile(record_files({"ncclras.json"}));
  EXPECT_TRUE(p.cells.empty());
  EXPECT_NE(p.context.at("behind").find("rank 2: 811 AllReduce"), std::string::npos);
  EXPECT_NE(p.context.at("missing ranks").find("rank 3"), std::string::npos);
  EXPECT_EQ(p.machines.size(), 2U);
}

TEST(JobRecords, ATraceGivesItsCollectives) {
  const Profile p = job_profile(record_files({"kineto-rank0.json", "kineto-rank1.json"}));
  // ts and dur (us, without the common first digits) of gloo:all_reduce on rank 0: 25262.336
  // 4282.88, 32367.104 7353.088, 42795.264 5058.816; on rank 1: 29074.176 3206.912, 39249.152
  // 300.8, 47482.112 250.88. Both on one host, so latest end less latest start. 51338 floats.
  const Cell& sums = job_cell(p, "job_all_reduce", "gloo ranks 0-1");
  ASSERT_EQ(sums.samples.size(), 3U);
  EXPECT_EQ(sums.key.bytes, 205352U);
  EXPECT_NEAR(sums.samples[0], 3206.912e-6, 1e-6);
  EXPECT_NEAR(sums.samples[1], 471.040e-6, 1e-6);
  EXPECT_NEAR(sums.samples[2], 371.968e-6, 1e-6);
  EXPECT_NE(p.context.at("late rank").find("rank 1"), std::string::npos);
  // With rank 1's times counted from a second later, all its calls come after rank 0's.
  std::vector<ToolOutput> later = record_files({"kineto-rank0.json", "kineto-rank1.json"});
  later[1].text = replaced(later[1].text, "Nanoseconds\": 1790857026000000000",
                           "Nanoseconds\": 1790857027000000000");
  EXPECT_NEAR(job_cell(job_profile(later), "job_all_reduce", "gloo ranks 0-1").samples[1], 300.8e-6,
              1e-6);
  std::string cut = golden_text("records/kineto-rank0.json");
  cut.resize(cut.size() / 2);
  EXPECT_NE(job_complaint({{.file = "rank0.json", .text = cut}}).find("rank0.json:"),
            std::string::npos);
}

TEST(JobRecords, WaitsOfRanksWithoutRecordsAreNotTakenOut) {
  const Profile alone = job_profile(record_files({"kineto-rank0.json"}));
  EXPECT_TRUE(alone.context.at("wait for the last rank").starts_with("not taken out in 1 of 1"));
  const Profile both = job_profile(record_files({"kineto-rank0.json", "kineto-rank1.json"}));
  EXPECT_TRUE(both.context.at("wait for the last rank").starts_with("taken out by"));
  EXPECT_EQ(both.name, "kineto-rank");
}

TEST(JobRecords, ATraceWithoutCollectivesOrKinetoIsToldWhatToDo) {
  EXPECT_NE(job_complaint({{.file = "rank0.json", .text = R"({"traceEvents": []})"}})
                .find("--as-workload"),
            std::string::npos);
  // As PyTorch 1.13 of Debian writes it.
  const std::string list =
      R"([{"name": "aten::zeros", "ph": "X", "ts": 1177, "dur": 45, "tid": 1, )"
      R"("pid": "CPU functions", "args": {}}])";
  EXPECT_NE(job_complaint({{.file = "rank0.json", .text = list}}).find("Kineto"),
            std::string::npos);
  EXPECT_THROW(static_cast<void>(workload_from_trace(list, "rank0.json")), Error);
}

TEST(JobRecords, ATraceGivesTheWorkload) {
  const Workload w =
      workload_from_trace(golden_text("records/kineto-rank0.json"), "kineto-rank0.json");
  // The model is Linear(64, 256), ReLU, LayerNorm(256), Linear(256, 128), ReLU, Linear(128, 10); a
  // linear layer's bias is ready before its weight.
  const std::vector<std::pair<std::string, std::uint64_t>> expected{
      {"linear_2.0", 10},        {"linear_2.1", 128 * 10}, {"linear_1.0", 128},
      {"linear_1.1", 256 * 128}, {"layer_norm_0.0", 256},  {"layer_norm_0.1", 256},
      {"linear_0.0", 256},       {"linear_0.1", 64 * 256}};
  ASSERT_EQ(w.tensors.size(), expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    EXPECT_EQ(w.tensors[i].name, expected[i].first);
    EXPECT_EQ(w.tensors[i].elements, expected[i].second);
    EXPECT_EQ(w.tensors[i].dtype, DType::fp32);
  }
  // From the first layer's call to the first node of the backward pass: 23656.4 - 22741.2,
  // 30755.3 - 29893.1, 41412.4 - 40073.2 us; from there to the end of the last node:
  // 25203.2 + 118.0 - 23656.4, 32211.2 + 477.2 - 30755.3, 42759.2 + 92.9 - 41412.4.
  EXPECT_NEAR(*w.forward_seconds, 915.2e-6, 0.3e-6);
  EXPECT_NEAR(*w.backward_seconds, 1664.8e-6, 0.3e-6);
  ASSERT_EQ(w.layers.size(), 4U);
  const Layer& middle = w.layers[2];
  EXPECT_EQ(middle.name, "linear_1");
  EXPECT_EQ(middle.tensors, (std::vector<std::string>{"linear_1.0", "linear_1.1"}));
  // From its call to linear_2's: 23512.3 - 23054.3, 30621.2 - 30167.3, 41254.4 - 40712.4; from
  // linear_2's last gradient to its own last: 873.0, 945.9, 854.0.
  EXPECT_NEAR(*middle.forward.seconds, 458.0e-6, 0.5e-6);
  EXPECT_NEAR(*middle.weight_gradient.seconds, 873.0e-6, 0.5e-6);
  // The layers' times add up to the passes' in each step; medians need not, to a few per cent.
  double forward = 0;
  for (const Layer& layer : w.layers) {
    forward += *layer.forward.seconds;
  }
  EXPECT_NEAR(forward, *w.forward_seconds, 0.05 * *w.forward_seconds);
}

/// An event of a trace, in the form that Kineto writes.
std::string trace_event(const std::string& category, const std::string& name, int thread, int begin,
                        int duration, const std::string& args) {
  return fmt::format(R"({{"ph": "X", "cat": "{}", "name": "{}", "pid": 1, "tid": {}, "ts": {}, )"
                     R"("dur": {}, "args": {{{}}}}})",
                     category, name, thread, begin, duration, args);
}

/// A step of two layers on a GPU: their calls at 100 and 200 us, backward at 400 and 300 in another
/// thread; each launches a kernel, of 5, 7, 11 and 13 us in the order of time, which run later.
/// The sum of the 610 gradients begins in the last node.
std::string gpu_trace(bool sized) {
  const std::string node = "autograd::engine::evaluate_function: ";
  const std::string accumulate = "torch::autograd::AccumulateGrad";
  const auto size = [&](const char* dims) {
    return sized ? fmt::format(R"("Input Dims": [{}], "Input type": ["float"])", dims) : "";
  };
  std::vector<std::string> events{
      trace_event("user_annotation", "ProfilerStep#7", 1, 0, 1000, ""),
      trace_event("cpu_op", "aten::linear", 1, 100, 50,
                  R"("Sequence number": 1, "Fwd thread id": 0)"),
      trace_event("cpu_op", "aten::linear", 1, 200, 50,
                  R"("Sequence number": 2, "Fwd thread id": 0)"),
      trace_event("cpu_op", node + "MmBackward0", 2, 300, 50,
                  R"("Sequence number": 2, "Fwd thread id": 1)"),
      trace_event("cpu_op", node + accumulate, 2, 360, 20, ""),
      trace_event("cpu_op", accumulate, 2, 365, 10, size("[10]")),
      trace_event("cpu_op", node + "MmBackward0", 2, 400, 50,
                  R"("Sequence number": 1, "Fwd thread id": 1)"),
      trace_event("cpu_op", node + accumulate, 2, 460, 100, ""),
      trace_event("cpu_op", accumulate, 2, 465, 10, size("[20, 30]")),
      trace_event("cpu_op", "record_param_comms", 2, 500, 20,
                  R"("Collective name": "allreduce", "In msg nelems": 610, "dtype": "Float")"),
      trace_event("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL", 9, 2000, 999,
                  R"("correlation": 5)"),
      trace_event("cuda_runtime", "cudaLaunchKernelExC", 2, 510, 2, R"("correlation": 5)")};
  const std::vector<std::pair<int, int>> kernels{{110, 5}, {210, 7}, {310, 11}, {410, 13}};
  for (std::size_t i = 0; i < kernels.size(); ++i) {
    const std::string id = fmt::format(R"("correlation": {})", i + 1);
    const auto& [launched, duration] = kernels[i];
    events.push_back(trace_event("cuda_runtime", "cudaLaunchKernel", 1, launched, 2, id));
    events.push_back(trace_event("kernel", "gemm", 7, launched + 500, duration, id));
  }
  return fmt::format(R"({{"traceEvents": [{}]}})", fmt::join(events, ",\n"));
}

TEST(JobRecords, ATraceOfAGpuHasTheTimesOfItsKernels) {
  const Workload w = workload_from_trace(gpu_trace(true), "gpu.json");
  EXPECT_NEAR(*w.forward_seconds, 12e-6, 1e-12);
  EXPECT_NEAR(*w.backward_seconds, 24e-6, 1e-12);
  ASSERT_EQ(w.layers.size(), 2U);
  EXPECT_NEAR(*w.layers[0].forward.seconds, 5e-6, 1e-12);
  EXPECT_NEAR(*w.layers[1].forward.seconds, 7e-6, 1e-12);
  EXPECT_NEAR(*w.layers[1].weight_gradient.seconds, 11e-6, 1e-12);
  EXPECT_NEAR(*w.layers[0].weight_gradient.seconds, 13e-6, 1e-12);
  ASSERT_EQ(w.tensors.size(), 2U);
  EXPECT_EQ(w.tensors[0].name, "linear_1.0");
  EXPECT_EQ(w.tensors[1].elements, 600U);
}

TEST(JobRecords, ATraceWithoutSizesHasTheBucketsThatAreSummed) {
  const Workload w = workload_from_trace(gpu_trace(false), "gpu.json");
  ASSERT_EQ(w.tensors.size(), 1U);
  EXPECT_EQ(w.tensors[0].elements, 610U);
  ASSERT_EQ(w.layers.size(), 1U);
  EXPECT_NEAR(*w.layers[0].forward.seconds, 12e-6, 1e-12);
  EXPECT_NEAR(*w.layers[0].weight_gradient.seconds, 24e-6, 1e-12);
  EXPECT_NE(w.provenance.find("buckets"), std::string::npos);
}

/// A job whose ranks arrive within 200 us of each other, one of them usually up to 400 us later, in
/// a sum that takes a millisecond from the last arrival.
struct SyntheticJob {
  Profile profile;
  std::size_t last = 0; ///< how often that rank was the last
};

SyntheticJob synthetic_job(std::uint64_t seed, std::size_t ranks, std::size_t calls,
                           std::optional<std::size_t> late, bool clocks) {
  std::mt19937_64 engine(seed);
  Job job("test");
  const std::size_t world = job.communicator("world", {.name = "world", .ranks = ranks});
  for (std::size_t i = 0; i < ranks; ++i) {
    EXPECT_EQ(job.process({.file = fmt::format("{}", i), .host = fmt::format("host{}", i / 8)}), i);
  }
  SyntheticJob out;
  for (std::size_t call = 0; call < calls; ++call) {
    std::vector<double> arrivals_s;
    for (std::size_t i = 0; i < ranks; ++i) {
      const bool is_late = late == i && uniform_unit(engine) < 0.7;
      arrivals_s.push_back(static_cast<double>(call) + 200e-6 * uniform_unit(engine) +
                           (is_late ? 400e-6 * uniform_unit(engine) : 0));
    }
    const auto last = std::ranges::max_element(arrivals_s);
    out.last += late == static_cast<std::size_t>(last - arrivals_s.begin()) ? 1U : 0U;
    for (std::size_t i = 0; i < ranks; ++i) {
      job.call({.communicator = world,
                .process = i,
                .rank = i,
                .sequence = call,
                .collective = collective_named("all_reduce"),
                .bytes = 1 << 20,
                .dtype = "Float",
                .start_s = clocks ? std::optional(arrivals_s[i]) : std::nullopt,
                .duration_s = *last + 1e-3 - arrivals_s[i]});
    }
  }
  out.profile = job.profile({{.file = "job", .text = ""}}, {});
  return out;
}

TEST(JobRecordsProperty, TheLateRankAmong256IsNamed) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const std::size_t late = (seed * 97) % 256;
    const SyntheticJob job = synthetic_job(seed, 256, 40, late, seed % 2 == 0);
    const std::string said =
        fmt::format("rank {} (host{}): last in {} of 40 collectives", late, late / 8, job.last);
    EXPECT_EQ(job.profile.context.at("late rank").substr(0, said.size()), said);
    EXPECT_NEAR(job.profile.cells.at(0).p50, 1e-3, 1e-9);
    EXPECT_EQ(job.profile.cells.at(0).n, 40U);
  }
}

TEST(JobRecords, ALongJobKeepsSamplesEvenlySpread) {
  // The sums of this job take 1 ms each; every second one of 10,000 is kept.
  const Profile p = synthetic_job(1, 2, 10'000, std::nullopt, true).profile;
  EXPECT_EQ(p.cells.at(0).n, 5000U);
  EXPECT_NE(p.context.at("samples").find("5000"), std::string::npos);
}

TEST(JobRecordsProperty, WithoutALateRankNoneStandsOutAndTheTimeIsTheSame) {
  std::size_t named = 0;
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(fmt::format("seed {}", seed));
    const SyntheticJob job = synthetic_job(seed, 2 + seed % 31, 40, std::nullopt, seed % 2 == 0);
    named += job.profile.context.at("late rank").starts_with("none stands out") ? 0U : 1U;
    EXPECT_NEAR(job.profile.cells.at(0).p50, 1e-3, 1e-9);
  }
  EXPECT_LE(named, 4U); // the bound allows 1 % of 200
}

TEST(JobRecordsProperty, AFileWithBytesChangedOrCutIsAJobOrAnError) {
  std::mt19937_64 engine(43);
  const std::vector<std::string> names{"inspector-verbose-node-a-0.log", "kineto-rank0.json",
                                       "flight-recorder-rank_0.json", "flight-recorder_rank_0",
                                       "ncclras.json"};
  std::size_t errors = 0;
  for (int trial = 0; trial < 600; ++trial) {
    const std::string& name = names[uniform_index(engine, names.size())];
    std::string text = golden_text("records/" + name);
    for (std::size_t changes = uniform_index(engine, 4); changes > 0; --changes) {
      text[uniform_index(engine, text.size())] = static_cast<char>(uniform_index(engine, 256));
    }
    if (uniform_index(engine, 3) == 0) {
      text.resize(uniform_index(engine, text.size()));
    }
    SCOPED_TRACE(fmt::format("seed 43, trial {}: {}", trial, name));
    try {
      static_cast<void>(import_texts({{.file = name, .text = text}}, {}));
      if (name == "kineto-rank0.json") {
        static_cast<void>(workload_from_trace(text, name));
      }
    } catch (const Error& e) {
      ++errors;
      EXPECT_EQ(e.kind(), ErrorKind::input) << e.what();
      EXPECT_EQ(std::string(e.what()).find(name), 0U) << e.what();
    }
  }
  EXPECT_GT(errors, 100U);
}

TEST(JobRecords, RankListsAreShort) {
  using import_detail::rank_list;
  EXPECT_EQ(rank_list({3}), "3");
  EXPECT_EQ(rank_list({4, 3}), "3-4");
  EXPECT_EQ(rank_list({0, 1, 2, 3, 4, 5, 6, 7}), "0-7");
  EXPECT_EQ(rank_list({0, 8, 16, 24}), "0-24:8");
  EXPECT_EQ(rank_list({0, 1, 2, 9, 11}), "0-2,9,11");
  std::vector<std::uint64_t> squares;
  for (std::uint64_t i = 0; i < 100; ++i) {
    squares.push_back(i * i);
  }
  EXPECT_LT(rank_list(squares).size(), 30U);
}

} // namespace
} // namespace reckon
