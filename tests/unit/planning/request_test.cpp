// SPDX-License-Identifier: Apache-2.0
#include "planning/request.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "documents/cells.hpp"
#include "documents/json.hpp"
#include "support/refusals.hpp"
#include "unit/strategies/fixtures.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <iterator>

namespace reckon {
namespace {

constexpr double k_bytes = 4.0 * 1024 * 1024, k_rate = 1e9;

PlanDocuments documents(const Profile& profile) {
  return {profile,
          test::workload({{"t", 1U << 20U, DType::fp32}}),
          {},
          {"p", digest_of("p")},
          {"w", digest_of("w")},
          {}};
}

/// The candidates that say what servers would give.
std::vector<Candidate> with_servers(const Plan& plan) {
  std::vector<Candidate> found;
  std::copy_if(plan.candidates.begin(), plan.candidates.end(), std::back_inserter(found),
               [](const Candidate& c) { return c.strategy.find("with_") != c.strategy.npos; });
  return found;
}

TEST(PlanAsAsked, HasNoServersUnlessAskedAndSaysWhatTheyWouldGive) {
  const PlanDocuments given = documents(test::cluster(k_rate, k_rate, 1024));
  PlanRequest request;
  request.workers = 8;
  const Plan plan = plan_as_asked(given, request);
  EXPECT_EQ(plan.ranks.size(), 8U);
  // Equation 1: 2 (n - 1) M / (n B). Equation 7 with n = k = 8: 2 * 8 * 7 / (64 + 64 - 16) = 1 M/B.
  EXPECT_NEAR(plan.prediction.bound_seconds, 1.75 * k_bytes / k_rate, 1e-9);
  const std::vector<Candidate> hints = with_servers(plan);
  ASSERT_EQ(hints.size(), 1U);
  EXPECT_THAT(hints.front().strategy, testing::EndsWith("_with_8_servers"));
  ASSERT_TRUE(hints.front().prediction);
  EXPECT_NEAR(hints.front().prediction->bound_seconds, k_bytes / k_rate, 1e-9);
  // What is shown reads back.
  EXPECT_EQ(plan_from_json(to_json(plan), "plan").candidates, plan.candidates);

  for (const std::uint64_t servers : {0U, 3U}) {
    request.servers = servers;
    const Plan asked = plan_as_asked(given, request);
    EXPECT_EQ(asked.ranks.size(), 8U + servers);
    EXPECT_TRUE(with_servers(asked).empty()) << "somebody has decided";
  }
}

TEST(PlanAsAsked, ServersThatCannotBePlannedForLeaveThePlanAsItIs) {
  Profile profile = test::cluster(k_rate, k_rate, 4);
  std::erase_if(profile.cells, [](const Cell& c) { return c.key.from == "cpu"; });
  const Plan plan = plan_as_asked(documents(profile), {});
  EXPECT_EQ(plan.ranks.size(), 4U) << "all machines of the first group";
  const std::vector<Candidate> hints = with_servers(plan);
  ASSERT_EQ(hints.size(), 1U);
  EXPECT_FALSE(hints.front().prediction);
  EXPECT_THAT(hints.front().reason, testing::HasSubstr("no port_bandwidth"));
}

TEST(PlanAsAsked, AllMachinesOfAMeasuredClusterWorkButThoseThatServe) {
  Profile profile = test::cluster(k_rate, k_rate, 4);
  profile.machines.pop_back();
  profile.machines.front().members = {"a", "b", "c", "d"};
  PlanRequest request;
  EXPECT_EQ(plan_as_asked(documents(profile), request).options.at("workers"), "4");
  request.servers = 1;
  EXPECT_EQ(plan_as_asked(documents(profile), request).options.at("workers"), "3");
}

// Two workers exchange M over ports of B: equation 1 gives M / B, 4.194 ms at 1 GB/s, 3.495 ms at a
// fifth more and 5.243 ms at a fifth less; the first and the last part take a little longer.
TEST(PlanAsAsked, PortsThatMayBeFasterOrSlowerGiveARange) {
  const PlanDocuments given = documents(test::cluster(k_rate, k_rate));
  PlanRequest request;
  request.workers = 2;
  request.options.what_if.worker_port_bytes_per_s = k_rate;
  const Prediction sure = plan_as_asked(given, request).prediction;
  request.port_spread = 0.2;
  const Plan plan = plan_as_asked(given, request);
  const Prediction& p = plan.prediction;
  EXPECT_EQ(p.mid_seconds, sure.mid_seconds);
  EXPECT_EQ(p.bound_seconds, sure.bound_seconds);
  constexpr double k_fill = 0.05;
  EXPECT_GE(p.lo_seconds, k_bytes / (1.2 * k_rate));
  EXPECT_LE(p.lo_seconds, k_bytes / (1.2 * k_rate) * (1 + k_fill));
  EXPECT_GE(p.hi_seconds, k_bytes / (0.8 * k_rate));
  EXPECT_LE(p.hi_seconds, k_bytes / (0.8 * k_rate) * (1 + k_fill));
  for (const Candidate& c : plan.candidates) {
    if (c.strategy == plan.strategy) {
      EXPECT_EQ(*c.prediction, p);
    }
  }
  EXPECT_EQ(plan.options.at(k_port_bandwidth), "1000000000 B/s +-20%");
  EXPECT_THAT(plan.assumed, testing::Contains(testing::HasSubstr("goodput of 100 %")));
  // What is said of a plan reads back.
  EXPECT_EQ(plan_from_json(to_json(plan), "plan").prediction, p);
}

TEST(PlanAsAsked, RefusesWhatIsAskedOfOneStrategyAndGivenToAnother) {
  const PlanDocuments given = documents(test::cluster(k_rate, k_rate));
  const auto message = [&](auto change) -> std::string {
    PlanRequest request;
    request.workers = 2;
    change(request);
    try {
      static_cast<void>(plan_as_asked(given, request));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      return error.what();
    }
    return "";
  };
  const std::pair<std::function<void(PlanRequest&)>, const char*> cases[] = {
      {[](PlanRequest& r) {
         r.options.strategy = "ring";
         r.shape = "2x2x2";
       },
       "--shape needs --strategy torus"},
      {[](PlanRequest& r) { r.options.strategy = "torus"; }, "give --shape"},
      {[](PlanRequest& r) { r.options.strategy = "rng"; }, "unknown; did you mean ring?"},
      {[](PlanRequest& r) { r.shape = "200x200x1"; }, "has 40000 nodes; profile"},
      {[](PlanRequest& r) { r.options.configuration = "ace"; }, "--configuration needs --shape"},
      {[](PlanRequest& r) {
         r.options.configuration = "ace";
         r.places = PlacesAsked::gpu;
       },
       "--configuration with --places"},
      {[](PlanRequest& r) {
         r.options.configuration = "ace";
         r.workers.reset();
         r.inside = InsidePlanOptions();
       },
       "--configuration with --inside"},
      {[](PlanRequest& r) { r.proxies.one_queue = true; }, "need --strategy coarse"},
      {[](PlanRequest& r) { r.proxies.tolerance = 0.1; }, "need --strategy coarse"},
      {[](PlanRequest& r) { r.options.update_at = UpdatePlace::server; }, "give --optimizer"},
      {[](PlanRequest& r) { r.options.what_if.server_port_bytes_per_s = 1e9; },
       "needs --port-bandwidth"},
      {[](PlanRequest& r) {
         r.options.strategy = "coarse";
         r.options.contention = ContentionRequest{"gemm_256"};
       },
       "--contention with --strategy coarse"}};
  for (const auto& [change, words] : cases) {
    EXPECT_THAT(message(change), testing::HasSubstr(words));
  }
}

TEST(PlanAsAsked, GradientsThatTravelAsHalvesAreHalfAsLong) {
  const PlanDocuments given = documents(test::cluster(k_rate, k_rate));
  PlanRequest request;
  request.workers = 4;
  request.options.strategy = "byteps_split";
  const Plan plain = plan_as_asked(given, request);
  request.options.wire = DType::bf16;
  const Plan halves = plan_as_asked(given, request);
  EXPECT_EQ(2 * halves.gradient_bytes, plain.gradient_bytes);
  EXPECT_NEAR(2 * halves.prediction.bound_seconds, plain.prediction.bound_seconds, 1e-9);
  EXPECT_EQ(halves.workload, plain.workload); // the program's
  EXPECT_EQ(halves.options.at("wire"), "bf16");
  EXPECT_GT(wire_error(halves).value(), 0.0078); // two roundings of 2^-8
  EXPECT_LT(wire_error(halves).value(), 0.0079);
  EXPECT_FALSE(wire_error(plain).has_value());
}

/// What two workers ask for with `change` is refused as that, in words about the flag.
void expect_refused(const PlanDocuments& given, ErrorKind kind, const char* flag,
                    const std::function<void(PlanRequest&)>& change) {
  PlanRequest request;
  request.workers = 2;
  change(request);
  try {
    static_cast<void>(plan_as_asked(given, request));
    ADD_FAILURE() << "was planned";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_THAT(error.what(), testing::HasSubstr(flag));
  }
}

TEST(PlanAsAsked, RefusesWhatCannotTravelAsHalves) {
  PlanDocuments given = documents(test::cluster(k_rate, k_rate));
  const auto refused = [&](ErrorKind kind, const std::function<void(PlanRequest&)>& change) {
    expect_refused(given, kind, "--wire", [&](PlanRequest& request) {
      request.options.wire = DType::bf16;
      change(request);
    });
  };
  refused(ErrorKind::usage, [](PlanRequest& r) { r.options.optimizer = Optimizer::sgd; });
  refused(ErrorKind::usage, [](PlanRequest& r) { r.options.fixed_point = FixedPointRequest{}; });
  refused(ErrorKind::usage, [](PlanRequest& r) { r.options.sums_in_place = true; });
  refused(ErrorKind::usage, [](PlanRequest& r) { r.collective = Collective::all_gather; });
  refused(ErrorKind::usage, [](PlanRequest& r) { r.shape = "2x1x1"; });
  given.workload.tensors.back().dtype = DType::fp16;
  refused(ErrorKind::input, [](PlanRequest&) {});
}

/// Machines with two GPUs that are copied from at 20 and to at 25 GB/s, and 30 both ways together.
PlanDocuments with_gpus(const Profile& machines = test::cluster(k_rate, k_rate)) {
  PlanDocuments given = documents(machines);
  Profile& profile = given.profile;
  const std::string m = profile.machines.front().id;
  profile.topology.objects = {
      {.id = m, .kind = ObjectKind::machine},
      {.id = m + "/gpu0", .kind = ObjectKind::gpu, .parent = m},
      {.id = m + "/gpu1", .kind = ObjectKind::gpu, .parent = m},
  };
  for (const auto& [test, from, to, rate] :
       {std::tuple(k_device_to_host_ce, "gpu0", "numa0", 20e9),
        std::tuple(k_host_to_device_ce, "numa0", "gpu0", 25e9),
        std::tuple(k_host_device_two_way_ce, "numa0", "gpu0", 30e9)}) {
    Cell cell;
    cell.key.test = test;
    cell.key.from = m + "/" + from;
    cell.key.to = m + "/" + to;
    cell.key.state = "pinned";
    cell.unit = "bytes_per_second";
    cell.status = CellStatus::ok;
    cell.n = 1;
    cell.p50 = cell.min = cell.max = cell.p99 = rate;
    profile.cells.push_back(cell);
  }
  return given;
}

TEST(PlanAsAsked, GradientsOnGpusTakeTheirCopiesAsWell) {
  const PlanDocuments given = with_gpus();
  PlanRequest request;
  request.workers = 4;
  request.options.strategy = "byteps_split";
  request.options.part_bytes = 1 << 16;
  const Plan host = plan_as_asked(given, request);
  request.gpu_gradients = true;
  const Plan gpu = plan_as_asked(given, request);
  // A port is slower than the copies, 15 GB/s each way: a part's at each end are left.
  const double ends = 2 * static_cast<double>(gpu.part_bytes) / 15e9;
  EXPECT_NEAR(gpu.prediction.mid_seconds, host.prediction.mid_seconds + ends, 1e-12);
  EXPECT_NEAR(gpu.prediction.terms.back().seconds, ends, 1e-12);
  EXPECT_EQ(gpu.prediction.bound_seconds, host.prediction.bound_seconds);
  EXPECT_EQ(gpu.options.at("gradients"), "gpu");
  // Half of the gradient travels, and all of it is copied.
  request.options.wire = DType::bf16;
  const Plan halves = plan_as_asked(given, request);
  EXPECT_NEAR(halves.prediction.terms.back().seconds,
              2 * 2 * static_cast<double>(halves.part_bytes) / 15e9, 1e-12);
}

TEST(PlanAsAsked, CopiesThatAreSlowerThanTheNetworkBind) {
  PlanDocuments given = with_gpus();
  for (Cell& cell : given.profile.cells) {
    if (cell.key.test == k_device_to_host_ce) {
      cell.p50 = 1e8;
    }
  }
  PlanRequest request;
  request.workers = 4;
  request.options.part_bytes = 1 << 16;
  request.gpu_gradients = true;
  const Plan plan = plan_as_asked(given, request);
  const double down = static_cast<double>(plan.gradient_bytes) / 1e8;
  const auto part_of = [](const Plan& of) {
    const auto bytes = static_cast<double>(of.part_bytes);
    return bytes / 1e8 + bytes / 15e9;
  };
  EXPECT_NEAR(plan.prediction.mid_seconds, down + part_of(plan), 1e-9);
  EXPECT_LT(plan.prediction.bound_seconds, down); // the network's
  EXPECT_THAT(plan.prediction.relief, testing::HasSubstr("copies"));
  for (const Candidate& candidate : plan.candidates) {
    if (candidate.prediction) {
      EXPECT_NEAR(candidate.prediction->mid_seconds, down + part_of(plan), 1e-9);
    }
  }
  EXPECT_NEAR(plan.margin, 0, 1e-9);
  // Whoever makes no copies takes as long as without them.
  request.gpu_gradients = false;
  EXPECT_NEAR(without(plan.prediction, k_copies).mid_seconds,
              plan_as_asked(given, request).prediction.mid_seconds, 1e-9);
  request.gpu_gradients = true;
  // The only tensor is ready when the backward pass is over.
  request.options.forward_seconds = 1;
  request.options.backward_seconds = 10;
  const Plan beside = plan_as_asked(given, request);
  EXPECT_NEAR(beside.prediction.mid_seconds, 11 + down + part_of(beside), 1e-9);
}

TEST(PlanAsAsked, GpusOfWhichOnlyTheLinkIsKnownAreCopiedAtItsRate) {
  PlanDocuments given = with_gpus();
  std::erase_if(given.profile.cells, [](const Cell& cell) { return cell.key.state == "pinned"; });
  for (TopologyObject& object : given.profile.topology.objects) {
    if (object.kind == ObjectKind::gpu) {
      object.pcie_bytes_per_second = object.id.ends_with('1') ? 10e9 : 12e9;
    }
  }
  PlanRequest request;
  request.workers = 4;
  request.gpu_gradients = true;
  const Plan plan = plan_as_asked(given, request);
  EXPECT_NEAR(plan.prediction.terms.back().seconds, 2 * static_cast<double>(plan.part_bytes) / 10e9,
              1e-12);
  EXPECT_THAT(plan.assumed, testing::Contains(testing::HasSubstr("PCIe")));
}

TEST(PlanAsAsked, WorkersOfOneMachineShareItsGpus) {
  const PlanDocuments given = with_gpus(test::one_machine());
  PlanRequest request;
  request.gpu_gradients = true;
  const auto copies = [&](std::uint64_t workers) {
    request.workers = workers;
    const Plan plan = plan_as_asked(given, request);
    return plan.prediction.terms.back().seconds / static_cast<double>(plan.part_bytes);
  };
  EXPECT_NEAR(copies(2), 2 / 15e9, 1e-15); // one each
  EXPECT_NEAR(copies(3), 2 * 2 / 15e9, 1e-15);
  EXPECT_NEAR(copies(4), 2 * 2 / 15e9, 1e-15);
}

TEST(PlanAsAsked, RefusesGradientsOnGpusOfWhichNothingIsKnown) {
  const auto refused = [&](const PlanDocuments& given, ErrorKind kind,
                           const std::function<void(PlanRequest&)>& change) {
    expect_refused(given, kind, "--gradients gpu", [&](PlanRequest& request) {
      request.gpu_gradients = true;
      change(request);
    });
  };
  refused(documents(test::cluster(k_rate, k_rate)), ErrorKind::input, [](PlanRequest&) {});
  const PlanDocuments given = with_gpus();
  refused(given, ErrorKind::usage, [](PlanRequest& r) { r.options.optimizer = Optimizer::sgd; });
  refused(given, ErrorKind::usage, [](PlanRequest& r) { r.options.order = Order::priority; });
  refused(given, ErrorKind::usage, [](PlanRequest& r) { r.collective = Collective::broadcast; });
  refused(given, ErrorKind::usage, [](PlanRequest& r) { r.inside = InsidePlanOptions(); });
}

TEST(PlanAsAsked, PortsThatAreMadeUpAreOfMachinesAndNotOfCores) {
  Profile profile = test::cluster(k_rate, k_rate, 4);
  PlanRequest request;
  request.options.what_if.worker_port_bytes_per_s = k_rate;
  EXPECT_EQ(plan_as_asked(documents(profile), request).ranks.size(), 4U);
  profile.machines.resize(1);
  profile.machines.front().count = 1;
  profile.machines.front().cores = 32;
  std::erase_if(profile.cells, [](const Cell& c) { return c.key.from == "cpu"; });
  EXPECT_REFUSED(usage, "say with --workers", plan_as_asked(documents(profile), request));
  request.workers = 3;
  EXPECT_EQ(plan_as_asked(documents(profile), request).ranks.size(), 3U);
}

// Those of a measured cluster have names: more ranks are machines like the first.
TEST(PlanAsAsked, PortsThatAreMadeUpMayBeOfMoreMachinesThanAProfileHas) {
  Profile profile = test::cluster(k_rate, k_rate, 2);
  profile.machines.resize(1);
  profile.machines.front().members = {"a", "b"};
  PlanRequest request;
  request.workers = 8;
  EXPECT_REFUSED(input, "fewer", plan_as_asked(documents(profile), request));
  request.options.what_if.worker_port_bytes_per_s = k_rate;
  const Plan plan = plan_as_asked(documents(profile), request);
  EXPECT_EQ(plan.ranks.size(), 8U);
  // Equation 1: 2 (n - 1) M / (n B).
  EXPECT_NEAR(plan.prediction.bound_seconds, 1.75 * k_bytes / k_rate, 1e-9);
}

bool assumes(const Plan& plan, const std::string& words) {
  return std::ranges::any_of(plan.assumed, [&](const std::string& sentence) {
    return sentence.find(words) != std::string::npos;
  });
}

double value_of(const Plan& plan, std::string_view name) {
  const auto at = std::ranges::find(plan.quantities, name, &Quantity::name);
  return at == plan.quantities.end() ? 0 : at->value;
}

TEST(PlanAsAsked, SaysWhatTakesNoTimeInThePrediction) {
  PlanDocuments known = documents(test::cluster(k_rate, k_rate, 4));
  PlanRequest request;
  request.workers = 2;
  EXPECT_FALSE(assumes(plan_as_asked(known, request), "the step of"));
  request.options.optimizer = Optimizer::adam;
  EXPECT_TRUE(assumes(plan_as_asked(known, request), "the profile has no optimizer_step of it"));
  test::add_rate(known.profile, {.test = k_optimizer_step, .operation = "adam"}, 1e9);
  EXPECT_FALSE(assumes(plan_as_asked(known, request), "the step of adam"));
  known.workload.all_to_all = {{"table", 1000, DType::fp32}};
  EXPECT_TRUE(assumes(plan_as_asked(known, request),
                      "the exchange of 1 tensor by all-to-all takes no time"));
  // Of GPUs no profile knows the rate of a step, whatever it knows of processors.
  PlanDocuments gpus = documents(test::shipped_profile("a100-cluster"));
  test::add_rate(gpus.profile, {.test = k_optimizer_step, .operation = "adam"}, 1e9);
  EXPECT_TRUE(assumes(plan_as_asked(gpus, request), "the step of adam takes no time: no profile"));
}

TEST(PlanAsAsked, SaysWhichMachinesAreUnused) {
  const PlanDocuments gpus = documents(test::shipped_profile("a100-cluster"));
  const auto all = static_cast<double>(gpus.profile.machines.front().count);
  PlanRequest request;
  request.workers = 2;
  request.servers = 1;
  request.options.strategy = "hierarchical_servers";
  const Plan plan = plan_as_asked(gpus, request);
  EXPECT_EQ(value_of(plan, k_unused_gpus), 8);
  EXPECT_EQ(value_of(plan, k_unused_machines), all - 3);
  request.servers = 0;
  request.options.strategy = "ring";
  const Plan without = plan_as_asked(gpus, request);
  EXPECT_EQ(value_of(without, k_unused_gpus), 0);
  EXPECT_EQ(value_of(without, k_unused_machines), all - 2);
}

TEST(PlanAsAsked, SaysWhereNoLatencyBetweenMachinesIsKnown) {
  const auto says = [](const Profile& profile) {
    PlanRequest request;
    request.workers = 2;
    return assumes(plan_as_asked(documents(profile), request),
                   "the profile has no fabric_write_latency");
  };
  Profile profile = test::cluster(k_rate, k_rate, 4);
  std::erase_if(profile.cells, [](const Cell& c) { return c.unit == "seconds"; });
  EXPECT_TRUE(says(profile));
  Cell latency;
  latency.key.test = k_fabric_latency;
  latency.key.from = profile.machines.front().id;
  latency.unit = "seconds";
  latency.status = CellStatus::published;
  latency.p50 = latency.min = latency.max = latency.p99 = 1e-6;
  profile.cells.push_back(latency);
  EXPECT_FALSE(says(profile));
}

/// Two machines of two GPUs with a NIC; the NVLinks have no rate.
Profile machines_of_gpus(bool ports) {
  Profile p = test::empty_profile("boxes");
  p.machines = {{"box", "", 2, 8}};
  const auto object = [&](const char* id, ObjectKind kind, const char* parent) -> TopologyObject& {
    TopologyObject& o = p.topology.objects.emplace_back();
    o.id = id;
    o.kind = kind;
    o.parent = parent;
    return o;
  };
  object("box", ObjectKind::machine, "");
  object("box/sw", ObjectKind::pci_bridge, "box");
  for (const char* const gpu : {"box/gpu0", "box/gpu1"}) {
    object(gpu, ObjectKind::gpu, "box/sw").pcie_bytes_per_second = 30e9;
  }
  object("box/nic0", ObjectKind::nic, "box/sw").link_bytes_per_second = 12.5e9;
  p.topology.links = {{PeerLinkKind::nvlink, "box/gpu0", "box/gpu1", 1, std::nullopt}};
  if (ports) {
    test::add_rate(p, {.test = k_port_bandwidth, .from = "box", .transport = "tcp"}, 12.5e9);
  }
  return p;
}

TEST(PlanAsAsked, SaysWhyRanksAreMachinesWhereTheLinksBetweenTheirGpusHaveNoRate) {
  Profile profile = machines_of_gpus(true);
  const Plan plan = plan_as_asked(documents(profile), {});
  EXPECT_EQ(plan.ranks.size(), 2U);
  EXPECT_TRUE(assumes(plan, "so ranks are machines"));
  EXPECT_TRUE(assumes(plan, "device_to_device_memcpy_write_ce cell, from box/gpu0 to box/gpu1"));
  PlanRequest machines;
  machines.places = PlacesAsked::machine; // somebody has decided
  EXPECT_FALSE(assumes(plan_as_asked(documents(profile), machines), "so ranks are machines"));
  profile.topology.links.front().bytes_per_second = 50e9;
  const Plan gpus = plan_as_asked(documents(profile), {});
  EXPECT_EQ(gpus.ranks.size(), 4U);
  EXPECT_FALSE(assumes(gpus, "so ranks are machines"));
}

TEST(PlanAsAsked, SaysThatSumsOnGpusAreFreeWhereNoRateOfThemIsKnown) {
  Profile profile = machines_of_gpus(false);
  EXPECT_TRUE(assumes(plan_as_asked(documents(profile), {}), "sums on box.0/gpu0-1, box.1/gpu0-1"));
  for (const char* const gpu : {"box/gpu0", "box/gpu1"}) {
    test::add_rate(profile, {.test = k_gpu_reduce, .from = gpu, .sources = 2}, 1e12);
  }
  EXPECT_FALSE(assumes(plan_as_asked(documents(profile), {}), "sums on "));
}

TEST(PlanAsAsked, NamesTheFlagAndTheRemedyWhereMachinesAreTooFew) {
  const auto refusal = [](std::optional<std::uint64_t> workers,
                          std::optional<std::uint64_t> servers) {
    PlanRequest request;
    request.workers = workers;
    request.servers = servers;
    try {
      static_cast<void>(plan_as_asked(documents(machines_of_gpus(false)), request));
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  using testing::AllOf;
  using testing::HasSubstr;
  EXPECT_THAT(refusal(3, {}), AllOf(HasSubstr("--workers 3: "), test::Says("give 2")));
  EXPECT_THAT(refusal(0, {}), AllOf(HasSubstr("--workers 0: "), test::Says("give 1")));
  EXPECT_THAT(refusal(2, 1), AllOf(HasSubstr("--servers 1: "), HasSubstr("fewer --workers")));
  EXPECT_THAT(refusal(2, 1), test::Says("--workers 2"));
  EXPECT_THAT(refusal({}, 2), AllOf(HasSubstr("--servers 2: "), test::Says("give 1")));
  EXPECT_THAT(refusal({}, 2), test::Says("leaves 1"));
}

TEST(PlanAsAsked, ServersThatLeaveNoMachineToWorkAreRefusedByTheirOwnFlag) {
  Profile profile = machines_of_gpus(false);
  profile.machines.front().members = {"w0", "w1"};
  PlanRequest request;
  request.places = PlacesAsked::machine;
  request.servers = 2;
  EXPECT_REFUSED(usage, "--servers 2: profile ", plan_as_asked(documents(profile), request));
  EXPECT_REFUSED(usage, "leaves 1", plan_as_asked(documents(profile), request));
}

TEST(PlanAsAsked, MoreNumbersOfRanksThanMachinesAreRefused) {
  Profile profile = machines_of_gpus(true);
  TopologyObject& numa = profile.topology.objects.emplace_back();
  numa.id = "box/numa0";
  numa.kind = ObjectKind::numa_node;
  numa.parent = "box";
  PlanRequest request;
  request.places = PlacesAsked::ranks;
  request.ranks_a_machine = {2, 4, 4};
  EXPECT_REFUSED(usage, "--places 2,4,4", plan_as_asked(documents(profile), request));
  request.workers = 1;
  request.ranks_a_machine = {2, 4};
  EXPECT_REFUSED(usage, "--places 2,4", plan_as_asked(documents(profile), request));
}

TEST(PlanAsAsked, ATransportThatLooksLikeOneOfTheProfileIsTakenForASlip) {
  Profile profile = machines_of_gpus(true);
  profile.cells.front().key.transport = "verbs;ofi_rxm";
  PlanRequest request;
  for (const char* const slip : {"verb", "vrebs", "verbs;ofi_rdm"}) {
    request.options.transport = slip;
    try {
      static_cast<void>(plan_as_asked(documents(profile), request));
      ADD_FAILURE() << slip;
    } catch (const Error& error) {
      EXPECT_THAT(error.what(), test::Says("'verbs;ofi_rxm'?"));
    }
  }
  request.options.transport = "verbs;ofi_rxm";
  EXPECT_EQ(plan_as_asked(documents(profile), request).transport, "verbs;ofi_rxm");
}

TEST(PlanAsAsked, NamesTheLatencyOfShortMessages) {
  Profile profile = test::cluster(k_rate, k_rate, 4);
  std::erase_if(profile.cells, [](const Cell& c) { return c.unit == "seconds"; });
  test::add_time(profile, {.test = k_fabric_latency, .from = profile.machines.front().id}, 1e-3);
  PlanRequest request;
  request.workers = 2;
  PlanDocuments given = documents(profile);
  given.workload = test::workload({{"t", 1000, DType::fp32}}); // 4 kB: 4 us of 2 ms
  const Plan plan = plan_as_asked(given, request);
  // The sum goes to one rank and comes back: two writes, one after the other.
  EXPECT_NEAR(value_of(plan, k_latency_quantity), 2e-3, 0.01e-3);
  EXPECT_THAT(plan.prediction.relief, test::Says("2 writes"));
  given.workload = test::workload({{"t", 1U << 26U, DType::fp32}}); // 268 ms at 1 GB/s
  EXPECT_EQ(value_of(plan_as_asked(given, request), k_latency_quantity), 0);
}

} // namespace
} // namespace reckon
