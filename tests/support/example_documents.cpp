// SPDX-License-Identifier: Apache-2.0
#include "support/example_documents.hpp"

namespace reckon::test {
namespace {

Cell cell(CellKey key, CellStatus status, std::string unit, std::vector<double> samples) {
  Cell c;
  c.key = std::move(key);
  c.status = status;
  c.unit = std::move(unit);
  c.samples = std::move(samples);
  summarize_cell(c);
  return c;
}

Setting example_setting() {
  return {.place = "m0/nic0",
          .machine = "a1",
          .name = "mtu",
          .value = "1500",
          .file = "/sys/class/net/eth0/mtu"};
}

Prediction prediction(double scale) {
  return {.bound_seconds = 0.5 * scale,
          .bound_by = "port of rank 1 (BytePS eq. 3)",
          .lo_seconds = 0.625 * scale,
          .mid_seconds = 0.75 * scale,
          .hi_seconds = scale,
          .terms = {{"transport", 0.5 * scale}, {"fill", 0.25 * scale}},
          .relief = "a second server: 0.1 s less",
          .busiest_seconds = 0.6 * scale,
          .busiest_by = "port of rank 2"};
}

Topology example_topology() {
  Topology topology;
  const TopologyObject gpu{.id = "m0/gpu0",
                           .kind = ObjectKind::gpu,
                           .parent = "m0/bridge0",
                           .pcie = PcieLink{8e9, 16},
                           .pcie_possible = PcieLink{16e9, 16}};
  TopologyObject other = gpu;
  other.id = "m0/gpu1";
  other.pcie = other.pcie_possible = std::nullopt;
  other.pcie_bytes_per_second = 15.75e9;
  topology.objects = {
      {.id = "m0", .name = "alpha"},
      {.id = "m0/numa0",
       .kind = ObjectKind::numa_node,
       .parent = "m0",
       .name = "node 0",
       .os_index = 0,
       .bytes = 4294967296,
       .cpus = {0, 1}},
      {.id = "m0/l3",
       .kind = ObjectKind::cache,
       .parent = "m0/numa0",
       .cache_level = 3,
       .bytes = 33554432},
      {.id = "m0/nic0",
       .kind = ObjectKind::nic,
       .parent = "m0",
       .name = "eth0",
       .pci_address = "0000:17:00.0",
       .link_bytes_per_second = 12.5e9,
       .cable = "cable0"},
      {.id = "m0/bridge0", .kind = ObjectKind::host_bridge, .parent = "m0/numa0"},
      gpu,
      {.id = "m0/nvswitch0", .kind = ObjectKind::link_switch, .parent = "m0", .sums = true},
      other};
  topology.links = {{PeerLinkKind::nvlink, "m0/gpu0", "m0/gpu1", 4, 100e9}};
  return topology;
}

} // namespace

Profile example_profile() {
  Profile p;
  p.name = "example";
  p.source = "measured by reckon 0.1.0";
  p.context = {{"host", "alpha"}, {"kernel", "Linux 6.1"}};
  p.fingerprint = "cpu Example 9000, 2 cores";
  p.machines = {{.id = "m0", .name = "alpha", .count = 3, .cores = 2, .memory_bytes = 8589934592}};
  p.machines[0].rack = "rack0";
  p.machines[0].members = {"a0", "a1", "a2"};
  p.endpoint =
      Endpoint{.sms = 80,
               .sm_bytes_per_second = 80e9,
               .flops_per_second = 120e12,
               .memory_bytes_per_second = 900e9,
               .bus_bytes_per_second = 500e9,
               .rings = {{{400e9, 1e-7}, {50e9, 4e-7}, {50e9, 0}}},
               .link_efficiency = 0.94,
               .chunk_bytes = 65536,
               .aside = EndpointPart{1, 80e9},
               .configurations = {{"no-overlap", "table VI", EndpointMover::cores, {}},
                                  {"offload", "", EndpointMover::engine, EndpointPart{0, 128e9}},
                                  {"ideal", "", EndpointMover::none, EndpointPart{}}},
               .sources = {{"sms", "table V"}}};
  p.topology = example_topology();

  const CellKey write{.test = "fabric_write",
                      .from = "m0",
                      .to = "m0",
                      .bytes = 4194304,
                      .pairs = 2,
                      .in_flight = 4,
                      .transport = "tcp;ofi_rxm",
                      .direction = "two_way"};
  const CellKey step{.test = "optimizer",
                     .from = "m0/numa0",
                     .bytes = 1048576,
                     .threads = 2,
                     .sources = 3,
                     .dtype = "fp32",
                     .operation = "adam",
                     .state = "warm"};
  CellKey skipped = write;
  skipped.bytes = 8388608;
  p.cells = {cell(write, CellStatus::noisy, "bytes_per_second", {2.5e9, 2.25e9, 2.75e9}),
             cell(step, CellStatus::ok, "seconds", {0.001, 0.0011, 0.0009}),
             cell({.test = "network_port", .from = "m0/nic0"}, CellStatus::published,
                  "bytes_per_second", {}),
             cell(skipped, CellStatus::skipped, "bytes_per_second", {})};
  p.cells[0].reason = "another process took 12 % of a core";
  p.cells[0].bytes_convention = p.cells[2].bytes_convention = "payload";
  p.cells[0].ceiling = Ceiling{"copy, 2 threads", 9e9};
  p.cells[2].min = p.cells[2].p50 = p.cells[2].p99 = p.cells[2].max = 12.5e9;
  p.cells[3].reason = "no time left";

  p.fits = {{.key = write,
             .segments = {{8, 65536, 1.5e-5, 2e9, 0.03}, {65536, 4194304, 3e-5, 2.5e9, 0.01}},
             .knee_bytes = 262144},
            {.key = step, .segments = {{4096, 1048576, 1e-6, 1e9, 0.02}}}};
  p.fits[0].key.bytes = p.fits[1].key.bytes = 0;
  p.settings = {example_setting()};
  return p;
}

Workload example_workload() {
  Workload w;
  w.name = "tiny";
  w.description = "three tensors";
  w.provenance = "made up for tests";
  w.tensors = {{"fc.bias", 10, DType::fp32},
               {"fc.weight", 1000, DType::fp32},
               {"conv.weight", 27, DType::bf16}};
  w.all_to_all = {{"embedding", 4096, DType::fp16}};
  w.forward_seconds = 0.01;
  w.backward_seconds = 0.02;
  w.batch = 32;
  w.threads = 2;
  const Computation pass{.flops_per_sample = 5400, .elements_per_sample = 300, .elements = 27};
  w.layers = {{.name = "lookup",
               .forward = {.elements_per_sample = 64},
               .exchange = Exchange{.elements_per_sample = 32, .before = "fc"}},
              {.name = "conv",
               .tensors = {"conv.weight"},
               .forward = pass,
               .input_gradient = pass,
               .weight_gradient = pass},
              {.name = "fc",
               .tensors = {"fc.weight", "fc.bias"},
               .forward = {.seconds = 0.001},
               .input_gradient = {.seconds = 0.0015},
               .weight_gradient = {.seconds = 0.0025}}};
  return w;
}

Roles example_roles() {
  Roles r;
  r.name = "two workers, one server";
  r.groups = {{.machine = "m0", .count = 2, .worker = true, .server = false, .lanes = 2},
              {.machine = "m0",
               .count = 1,
               .worker = false,
               .server = true,
               .lanes = 4,
               .endpoints = {"m0/numa0"}}};
  return r;
}

Requirements example_requirements() {
  Requirements r;
  r.name = "two fast nodes";
  r.cells = {{.key = {.test = "fabric_write",
                      .from = "m0/*",
                      .to = "m0/numa1",
                      .bytes = 4096,
                      .threads = 2,
                      .pairs = 1,
                      .in_flight = 4,
                      .sources = 2,
                      .dtype = "fp32",
                      .transport = "host",
                      .direction = "one_way",
                      .operation = "sgd",
                      .state = "cold"},
              .at_least = std::nullopt,
              .at_most = 2e-5,
              .remedy = "stop what else runs"},
             {.key = {.test = "stream_copy"}, .at_least = 2e10, .at_most = 4e11, .remedy = ""}};
  r.parts = {{ObjectKind::gpu, "H100", 8}, {ObjectKind::nic, "", 1}};
  return r;
}

Plan example_plan() {
  Plan p;
  p.profile = link_to("example", canonical_text(example_profile()));
  p.profile.file = "profile.json";
  p.workload = link_to("tiny", canonical_text(example_workload()));
  p.workload.file = "workload.json";
  p.roles = link_to("two workers, one server", canonical_text(example_roles()));
  p.roles->file = "roles.json";
  p.options = {{"part_bytes", "2048"}, {"strategy", "auto"}};
  p.strategy = "byteps_split";
  p.transport = "tcp;ofi_rxm";
  // layout_of(example_workload()): 4040 bytes of fp32, then 54 bytes of bf16 from the next multiple
  // of 64, 4096, on.
  p.gradient_bytes = 4150;
  p.runs = {{0, 4040, DType::fp32}, {4096, 54, DType::bf16}};
  p.wire = DType::bf16;
  p.part_bytes = 2048;
  p.window_parts = 2;
  p.stores = Stores::streaming;
  p.collective = Collective::broadcast;
  p.root = 1;
  p.parts.offset_bytes = {4096, 0, 2048};
  p.parts.bytes = {54, 2048, 1992};
  p.parts.server = {1, 2, 1};
  p.parts.lane = {1, 3, 0};
  p.parts.tree = {0, 1, 0};
  p.trees = {{"ring", {1, 1, -1}, {1, 1, 1}, 0.5, 2.5e-5},
             {"cpu_assisted numa0", {2, 2, 2}, {2, 2, 2}, 0.5}};
  p.torus = TorusPlan{{1, 3, 1}, {{{1, 0}, {2}, false}, {{1}, {2, 0}, true}}};
  p.resources = {{"gpu0 > numa0", "link_bandwidth", 13.1e9, 2046.5, 1, 0.75, 0.0625},
                 {"memory read numa0", "stream_copy", 20e9, 4096, 0.5, 0, 0}};
  p.routing = {{0, 2, 2, 1000, {1000, 3000.5}, 512}, {1, 2, 2, std::nullopt, {}, 1024}};
  p.tensors = {{"head", false, 0, 1}, {"tail", true, 1, 2}};
  p.one_queue = true;
  const PlanRank worker{.machine = "m0",
                        .worker = true,
                        .lanes = 2,
                        .port_bytes_per_second = 12.5e9,
                        .egress_bytes = 4094,
                        .ingress_bytes = 4094};
  PlanRank both = worker;
  both.server = true;
  both.share_bytes = 2046.5;
  both.assigned_bytes = 2046;
  p.ranks = {worker,
             both,
             {.machine = "m0",
              .machine_number = 1,
              .member = "w1",
              .rack = "rack0",
              .endpoint = "m0/numa0",
              .process = 2,
              .endpoint_kind = "numa_node",
              .pci_address = "0000:17:00.0",
              .cpus = {0, 1},
              .worker = false,
              .server = true,
              .lanes = 4,
              .share_bytes = 2047.5,
              .assigned_bytes = 2048,
              .port_bytes_per_second = 6.25e9,
              .lane_places = {{"eth0", 0, 0},
                              {"eth1", 1, std::nullopt},
                              {"eth0", 0, 1},
                              {"eth1", std::nullopt, std::nullopt}},
              .egress_bytes = 4096,
              .ingress_bytes = 4096}};
  p.update = UpdatePlan{Optimizer::momentum, UpdatePlace::server};
  p.passes = Passes{{2000, 4040, 4150}, {0.001, 0.002, 0.0005}, {0.0005, 0.001, 0.00025}, 2};
  p.asynchronous = AsyncPlan{3};
  p.ring_order = {1, 0};
  p.machine_trees = {{1, 1}, {0, 0}};
  p.groups = 1;
  p.fixed_point = FixedPointPlan{24, 0.5, 21};
  p.sums_in_place = true;
  p.measured_on = MeasuredMachine{"here", "Xeon", 4};
  p.rehearsal = RehearsalPlan{"ps_noncolocated", true, 5, 4, 1048576, 0.01, 0.0125, 0.015};
  p.prediction = prediction(1);
  p.switch_sums = SwitchSums{0.25, "with sums in nvswitch0 (equation 26)"};
  p.assignment_gap = 0.0009765625;
  p.runner_up = "ring";
  p.margin = 1;
  p.margin_text = "the port of rank 2 may lose 40 %";
  p.candidates = {{.strategy = "byteps_split", .prediction = prediction(1), .reason = ""},
                  {.strategy = "ring", .prediction = prediction(2), .reason = ""},
                  {.strategy = "ps_noncolocated",
                   .prediction = std::nullopt,
                   .reason = "there is no free machine"}};
  p.quantities = {{"worker_share_bytes", 2046.5, "BytePS eq. 1", {{"n", 2}, {"k", 1}}}};
  p.assumed = {"sums take no time: the profile has no reduce_sum"};
  return p;
}

Report example_report() {
  Report r;
  r.kind = "simulation";
  r.plan = link_to("plan", canonical_text(example_plan()));
  r.plan.file = "plan.json";
  r.profile = example_plan().profile;
  r.workload = example_plan().workload;
  r.context = {{"host", "alpha"}, {"measured at", "2025-01-01T00:00:00Z"}};
  r.strategy = "byteps_split";
  r.transport = "tcp;ofi_rxm";
  r.iteration_seconds = {0.75, 0.8, 0.85};
  r.warm_up_iterations = 2;
  r.min_seconds = 0.75;
  r.p50_seconds = 0.8;
  r.p99_seconds = 0.85;
  r.spread = 0.0625;
  r.prediction = prediction(1);
  r.error = 0.066;
  r.goodput_over_bound = 0.625;
  r.tolerance = 0.15;
  r.within_tolerance = r.disturbed = true;
  r.other_links = "it predicts tcp, this ran over shm";
  r.cause = "transport: the port gave 5 % less";
  r.machine_now = MachineNow{0.0125, 0.02, 0.025, 0.011, -0.01, true};
  r.emulation = Emulation{.profile = {"coarse-v100", example_plan().profile.digest, "profile.json"},
                          .writes = 1000,
                          .late_writes = 3,
                          .worst_late_seconds = 0.002};
  r.simulation =
      Simulation{.profile = {"coarse-v100", example_plan().profile.digest, "profile.json"},
                 .engine = "SimGrid 3.32.0",
                 .settings = {{"network/model", "CM02"}},
                 .ops = 40,
                 .flows = 12,
                 .merged_parts = 4,
                 .coarsening_error = 0.25,
                 .scenarios = {"rank 0 out at 0.5 of its rate"},
                 .undisturbed_seconds = 0.5,
                 .stations = {{"rank 0 out", 4094, 1.25e9, 0.75}}};
  r.diagnosis = Diagnosis{.verdict = "alpha's port carries 0.50 of the profile's 1.25 GB/s",
                          .places = {{SlowKind::port, "alpha\'s port", {0}, 0.5, {}, 1.25e9},
                                     {SlowKind::delay, "beta's port", {0}, 1, 0.02, {}}},
                          .planned_seconds = 0.5,
                          .explained_seconds = 0.75,
                          .measured_seconds = 0.8,
                          .new_plan_seconds = 0.625,
                          .next = {"reckon probe -o new-profile.json"}};
  r.stages = {{.name = "total",
               .predicted_seconds = 0.75,
               .measured_seconds = 0.8,
               .how = "last completion"},
              {.name = "fill",
               .predicted_seconds = 0.25,
               .measured_seconds = std::nullopt,
               .how = "not told apart"}};
  r.ranks = {{.host = "alpha",
              .egress_bytes = 4094,
              .ingress_bytes = 4095,
              .busy_seconds = 0.5,
              .reduce_seconds = 0.125,
              .wait_seconds = 0.25,
              .total_seconds = 0.75,
              .peer_wait_seconds = 0.0625,
              .cpu_seconds = 0.55}};
  r.verification = {
      .ok = false, .checked_bytes = 4094, .wrong_elements = 1, .first_error = "rank 0, part 1"};
  r.verification.max_error = 0.25;
  r.verification.error_bound = 0.125;
  r.verification.wire_error = 0.0078125;
  r.parameters = {.digest = example_plan().profile.digest, .steps = 5, .resumed_from_step = 2};
  r.checkpoints = {.every_steps = 2,
                   .complete = 1,
                   .skipped = 2,
                   .failed = 1,
                   .bytes = 12282,
                   .predicted_seconds = 0.05,
                   .saving_seconds = 0.85,
                   .writing_seconds = 0.8,
                   .usual_seconds = 0.75,
                   .write_seconds = 1.5,
                   .first_failure = "checkpoint after step 4: rank 1: cannot write x"};
  const ReplanReport replan{.plan = r.plan,
                            .profile = r.profile,
                            .changes = {"routing/0/latency_proxy: rank 1 -> rank 2"},
                            .running_predicted_seconds = 1.5,
                            .predicted_seconds = 1,
                            .before_seconds = 1.5,
                            .after_seconds = 1.125,
                            .gain = 0.25,
                            .iteration_seconds = {1, 1.125, 1.25}};
  r.reprofiling = {.every_iterations = 3,
                   .write_bytes = {4096, 262144},
                   .pauses = {{.after_iterations = 3,
                               .measuring_seconds = 0.5,
                               .planning_seconds = 0.25,
                               .pairs = {{"alpha", "beta", 262144, 2.5e7, 6e6}},
                               .ports = {"beta"},
                               .verdict = "changed the plan",
                               .replan = replan}}};
  return r;
}

} // namespace reckon::test
