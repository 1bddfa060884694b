// SPDX-License-Identifier: Apache-2.0
#include "support/random_documents.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

namespace reckon::test {
namespace {

/// Draws. Its own arithmetic instead of std distributions, which differ between standard libraries.
class Draw {
public:
  explicit Draw(std::mt19937_64& random) : m_random(random) {}

  [[nodiscard]] std::uint64_t from(std::uint64_t low, std::uint64_t high) { // both included
    return low + m_random() % (high - low + 1);
  }
  [[nodiscard]] int whole(int low, int high) {
    return low + static_cast<int>(m_random() % static_cast<std::uint64_t>(high - low + 1));
  }
  [[nodiscard]] bool coin() { return from(0, 1) == 1; }
  /// In [0, 1).
  [[nodiscard]] double unit() { return static_cast<double>(m_random() >> 11U) * 0x1p-53; }
  /// Positive, of any magnitude from 1e-12 to 1e15.
  [[nodiscard]] double positive() { return (0.1 + unit()) * std::pow(10.0, whole(-11, 15)); }
  [[nodiscard]] double non_negative() { return from(0, 4) == 0 ? 0 : positive(); }
  [[nodiscard]] double number() { return coin() ? positive() : -positive(); }
  /// Mostly small, sometimes up to 2^53.
  [[nodiscard]] std::uint64_t count() { return m_random() >> (11 + from(0, 52)); }
  template <class T, std::size_t N>
  [[nodiscard]] T one_of(const std::array<T, N>& values) {
    return values[from(0, N - 1)];
  }
  [[nodiscard]] DType dtype() { return one_of(std::array{DType::fp32, DType::fp16, DType::bf16}); }
  /// Any text: quotes, control characters, other alphabets. May be empty.
  [[nodiscard]] std::string text() {
    std::string out;
    for (std::uint64_t n = from(0, 5); n > 0; --n) {
      out += one_of(std::array<const char*, 12>{"a", "Z", " ", "\"", "\\", "\n", "\x1b", "/", "~",
                                                "ü", "日", "$(x)"});
    }
    return out;
  }
  /// Text that is no empty one.
  [[nodiscard]] std::string some_text() { return text() + "."; }
  /// A name: no control characters, not empty.
  [[nodiscard]] std::string name() {
    std::string out;
    for (std::uint64_t n = from(1, 5); n > 0; --n) {
      out +=
          one_of(std::array<const char*, 10>{"a", "7", " ", "\"", "\\", "->", "/", "~1", "ö", "'"});
    }
    return out;
  }
  [[nodiscard]] std::string fresh_name(std::set<std::string>& used) {
    std::string out = name();
    while (!used.insert(out).second) {
      out += fmt::format("{}", from(0, 9));
    }
    return out;
  }
  [[nodiscard]] std::string snake() {
    return fmt::format("{}_{}", one_of(std::array<const char*, 3>{"copy", "ring", "a"}),
                       from(0, 99));
  }
  [[nodiscard]] std::map<std::string, std::string> texts() {
    std::map<std::string, std::string> out;
    for (std::uint64_t n = from(0, 4); n > 0; --n) {
      out[some_text()] = text();
    }
    return out;
  }
  [[nodiscard]] DocumentLink link() { return link_to(name(), text()); }
  [[nodiscard]] Prediction prediction() {
    Prediction p;
    p.bound_by = text();
    p.relief = text();
    double sum = positive();
    if (coin()) {
      p.terms = {{"transport", sum}, {"fill", sum * unit()}, {"overlap", -sum * unit() / 2}};
      sum = 0;
      for (const Term& term : p.terms) {
        sum += term.seconds;
      }
    }
    p.mid_seconds = sum;
    p.bound_seconds = sum * unit();
    p.lo_seconds = sum * unit();
    p.hi_seconds = sum * (1 + unit());
    return p;
  }

private:
  std::mt19937_64& m_random;
};

CellKey random_key(Draw& draw, const std::vector<std::string>& ids) {
  CellKey key;
  key.test = draw.snake();
  const auto id = [&] { return draw.coin() ? ids[draw.from(0, ids.size() - 1)] : std::string(); };
  key.from = id();
  key.to = id();
  key.bytes = draw.count();
  const auto few = [&] { return draw.coin() ? draw.whole(1, 64) : 0; };
  key.threads = few();
  key.pairs = few();
  key.in_flight = few();
  key.sources = few();
  key.dtype = draw.one_of(std::array<const char*, 4>{"", "fp32", "fp16", "bf16"});
  key.transport = draw.coin() ? draw.name() : "";
  key.direction = draw.one_of(std::array<const char*, 3>{"", "one_way", "two_way"});
  key.operation = draw.one_of(std::array<const char*, 7>{"", "sgd", "momentum", "rmsprop", "adam",
                                                         "gemm_256", "embedding"});
  key.state = draw.one_of(
      std::array<const char*, 7>{"", "cold", "warm", "pinned", "pageable", "peer", "staged"});
  return key;
}

Cell random_cell(Draw& draw, CellKey key) {
  Cell cell;
  cell.key = std::move(key);
  cell.status = draw.one_of(std::array{
      CellStatus::ok, CellStatus::noisy, CellStatus::published, CellStatus::skipped,
      CellStatus::unsupported, CellStatus::mismatch, CellStatus::timeout, CellStatus::failed});
  cell.reason = draw.some_text();
  cell.unit = draw.coin() ? "seconds" : "bytes_per_second";
  if (cell.unit == "bytes_per_second") {
    cell.bytes_convention = draw.coin() ? "payload" : "stream";
  }
  if (draw.coin()) {
    cell.ceiling = Ceiling{.name = draw.name(), .value = draw.positive()};
  }
  if (!cell.has_value()) {
    return cell;
  }
  if (draw.from(0, 3) != 0) {
    for (std::uint64_t n = draw.from(1, 12); n > 0; --n) {
      cell.samples.push_back(draw.positive());
    }
    summarize_cell(cell);
  } else {
    cell.n = draw.from(1, 1000);
    cell.p50 = draw.positive();
    cell.min = cell.p50 * (1 - draw.unit() / 2);
    cell.max = cell.p50 * (1 + draw.unit());
    cell.p99 = cell.unit == "seconds" ? cell.max : cell.min;
    cell.spread = draw.unit();
  }
  return cell;
}

} // namespace

namespace {

Endpoint random_endpoint(std::mt19937_64& random) {
  Draw draw(random);
  Endpoint e;
  e.sms = draw.from(2, 200);
  for (double* rate : {&e.sm_bytes_per_second, &e.flops_per_second, &e.memory_bytes_per_second,
                       &e.bus_bytes_per_second}) {
    *rate = draw.positive();
  }
  for (EndpointRing& ring : e.rings) {
    ring = {draw.positive(), draw.coin() ? draw.positive() : 0};
  }
  e.link_efficiency = static_cast<double>(draw.from(1, 100)) / 100;
  e.chunk_bytes = draw.from(1, 1U << 20U);
  const auto part = [&] {
    return EndpointPart{static_cast<double>(draw.from(0, e.sms - 1)),
                        e.memory_bytes_per_second * 0.25};
  };
  if (draw.coin()) {
    e.aside = part();
  }
  std::set<std::string> names;
  for (std::uint64_t n = draw.from(1, 4); n > 0; --n) {
    EndpointConfiguration& c = e.configurations.emplace_back();
    c.name = draw.fresh_name(names);
    c.source = draw.text();
    c.mover = static_cast<EndpointMover>(draw.from(0, 2));
    if (draw.coin()) {
      c.communication = part();
    }
  }
  if (draw.coin()) {
    e.sources = {{"sms", draw.text()}};
  }
  return e;
}

} // namespace

Profile random_profile(std::mt19937_64& random) {
  Draw draw(random);
  Profile p;
  p.name = draw.name();
  p.source = draw.some_text();
  p.context = draw.texts();
  p.fingerprint = draw.text();
  if (draw.coin()) {
    p.endpoint = random_endpoint(random);
  }
  std::set<std::string> used;
  for (std::uint64_t n = draw.from(1, 3); n > 0; --n) {
    p.machines.push_back({.id = draw.fresh_name(used),
                          .name = draw.text(),
                          .count = draw.from(1, 64),
                          .cores = draw.from(1, 64),
                          .memory_bytes = draw.count()});
    MachineGroup& machine = p.machines.back();
    if (draw.coin()) {
      machine.rack = draw.coin() ? "rack 0" : "rack 1";
    }
    for (std::uint64_t m = draw.coin() ? machine.count : 0; m > 0; --m) {
      machine.members.push_back(draw.fresh_name(used));
    }
  }
  std::vector<std::string> ids(used.begin(), used.end());
  for (const MachineGroup& machine : p.machines) {
    if (draw.coin()) {
      TopologyObject o;
      o.id = machine.id;
      p.topology.objects.push_back(o);
    }
  }
  if (!p.topology.objects.empty()) {
    for (std::uint64_t n = draw.from(0, 6); n > 0; --n) {
      TopologyObject o;
      o.id = draw.fresh_name(used);
      ids.push_back(o.id);
      o.kind = draw.one_of(std::array{ObjectKind::package, ObjectKind::numa_node, ObjectKind::cache,
                                      ObjectKind::core, ObjectKind::host_bridge,
                                      ObjectKind::pci_bridge, ObjectKind::gpu, ObjectKind::nic,
                                      ObjectKind::memory_device, ObjectKind::link_switch});
      o.parent = p.topology.objects[draw.from(0, p.topology.objects.size() - 1)].id;
      o.name = draw.text();
      if (draw.coin()) {
        o.os_index = draw.whole(0, 300);
        o.cache_level = draw.whole(1, 4);
        o.pci_address = fmt::format("{:04x}:{:02x}:{:02x}.{:x}", draw.from(0, 65535),
                                    draw.from(0, 255), draw.from(0, 31), draw.from(0, 7));
      }
      if (draw.coin()) {
        o.bytes = draw.count();
        o.link_bytes_per_second = draw.positive();
        o.cpus = {draw.whole(0, 7), draw.whole(8, 15)};
      }
      if (draw.coin()) {
        o.pcie = PcieLink{draw.positive(), draw.whole(1, 16)};
        o.pcie_possible = PcieLink{16e9, 16};
      } else if (draw.coin()) {
        o.pcie_bytes_per_second = draw.positive();
      }
      p.topology.objects.push_back(o);
    }
    // Neighbours in the tree are in one machine, and parents stand before their children.
    for (const TopologyObject& o : p.topology.objects) {
      if (!o.parent.empty() && draw.coin()) {
        PeerLink& link = p.topology.links.emplace_back();
        link.kind =
            draw.one_of(std::array{PeerLinkKind::nvlink, PeerLinkKind::xgmi, PeerLinkKind::socket});
        link.from = o.parent;
        link.to = o.id;
        link.count = draw.whole(1, 18);
        if (draw.coin()) {
          link.bytes_per_second = draw.positive();
        }
      }
    }
  }
  std::set<CellKey> keys;
  for (std::uint64_t n = draw.from(0, 8); n > 0; --n) {
    const CellKey key = random_key(draw, ids);
    if (keys.insert(key).second) {
      p.cells.push_back(random_cell(draw, key));
    }
  }
  keys.clear();
  for (std::uint64_t n = draw.from(0, 3); n > 0; --n) {
    Fit fit;
    fit.key = random_key(draw, ids);
    fit.key.bytes = 0;
    fit.knee_bytes = draw.non_negative();
    double at = 0;
    for (std::uint64_t s = draw.from(1, 3); s > 0; --s) {
      FitSegment segment{.from_bytes = at,
                         .to_bytes = at + draw.positive(),
                         .alpha_seconds = draw.non_negative(),
                         .bandwidth_bytes_per_second = draw.positive(),
                         .relative_residual = draw.unit()};
      at = segment.to_bytes;
      fit.segments.push_back(segment);
    }
    if (keys.insert(fit.key).second) {
      p.fits.push_back(fit);
    }
  }
  const auto less = [](const auto& a, const auto& b) { return a.key < b.key; };
  std::sort(p.cells.begin(), p.cells.end(), less); // as a reader returns them
  std::sort(p.fits.begin(), p.fits.end(), less);
  return p;
}

Workload random_workload(std::mt19937_64& random) {
  Draw draw(random);
  Workload w;
  w.name = draw.name();
  w.description = draw.text();
  w.provenance = draw.text();
  std::set<std::string> used;
  const auto tensors = [&](std::uint64_t n) {
    std::vector<Tensor> out;
    for (; n > 0; --n) {
      out.push_back({draw.fresh_name(used), 1 + (draw.count() >> 8U), draw.dtype()});
    }
    return out;
  };
  w.tensors = tensors(draw.from(1, 9));
  w.all_to_all = tensors(draw.from(0, 2));
  if (draw.coin()) {
    w.forward_seconds = draw.positive();
  }
  if (draw.coin()) {
    w.backward_seconds = draw.positive();
  }
  if (draw.coin()) {
    w.batch = draw.from(1, 4096);
  }
  if (draw.coin()) {
    const auto computation = [&] {
      Computation c;
      if (draw.coin()) {
        c.seconds = draw.positive();
      } else if (draw.coin()) {
        c.flops_per_sample = draw.count();
        c.elements_per_sample = draw.count();
        c.elements = draw.count();
      }
      return c;
    };
    std::set<std::string> layers;
    for (const Tensor& tensor : w.tensors) { // one may compute several tensors' gradients
      if (w.layers.empty() || draw.coin()) {
        Layer& layer = w.layers.emplace_back();
        layer.name = draw.fresh_name(layers);
        layer.forward = computation();
        layer.input_gradient = computation();
        layer.weight_gradient = computation();
      }
      w.layers.back().tensors.push_back(tensor.name);
    }
    for (std::size_t i = 1; i < w.layers.size(); ++i) {
      if (draw.coin()) {
        w.layers[i - 1].exchange = {.elements_per_sample = draw.from(1, 4096),
                                    .before = w.layers.back().name};
      }
    }
  }
  return w;
}

Roles random_roles(std::mt19937_64& random) {
  Draw draw(random);
  Roles r;
  r.name = draw.name();
  for (std::uint64_t n = draw.from(1, 4); n > 0; --n) {
    RoleGroup group{.machine = draw.name(),
                    .count = 1 + draw.count() / 2,
                    .worker = draw.coin(),
                    .server = draw.coin(),
                    .lanes = draw.whole(1, 64)};
    group.worker = group.worker || !group.server || r.groups.empty();
    r.groups.push_back(group);
  }
  return r;
}

Plan random_plan(std::mt19937_64& random) {
  Draw draw(random);
  Plan p;
  p.profile = draw.link();
  p.workload = draw.link();
  if (draw.coin()) {
    p.roles = draw.link();
  }
  p.options = draw.texts();
  p.strategy = draw.snake();
  p.transport = draw.name();
  for (std::uint64_t n = draw.from(1, 5); n > 0; --n) {
    p.ranks.push_back({.machine = draw.name(),
                       .rack = draw.coin() ? draw.name() : "",
                       .worker = p.ranks.empty() || draw.coin(),
                       .server = draw.coin(),
                       .lanes = draw.whole(1, 8),
                       .share_bytes = draw.non_negative(),
                       .assigned_bytes = 0,
                       .port_bytes_per_second = draw.non_negative(),
                       .egress_bytes = draw.count(),
                       .ingress_bytes = draw.count()});
    for (int lane = draw.coin() ? 0 : p.ranks.back().lanes; lane > 0; --lane) {
      LanePlace& place = p.ranks.back().lane_places.emplace_back();
      place.port = draw.name();
      if (draw.coin()) {
        place.numa_node = draw.whole(0, 7);
        place.cpu = draw.whole(0, 255);
      }
    }
  }
  std::uint64_t at = 0;
  for (std::uint64_t n = draw.from(1, 3); n > 0; --n) {
    DTypeRun run{.offset_bytes = at + 64 * draw.from(0, 2), .bytes = 0, .dtype = draw.dtype()};
    for (std::uint64_t parts = draw.from(1, 6); parts > 0; --parts) {
      const std::uint64_t server = draw.from(0, p.ranks.size() - 1);
      const std::uint64_t bytes = draw.from(1, 5000) * size_of(run.dtype);
      p.parts.offset_bytes.push_back(run.offset_bytes + run.bytes);
      p.parts.bytes.push_back(bytes);
      p.parts.server.push_back(server);
      p.parts.lane.push_back(draw.from(0, static_cast<std::uint64_t>(p.ranks[server].lanes) - 1));
      p.ranks[server].assigned_bytes += bytes;
      run.bytes += bytes;
    }
    at = (run.offset_bytes + run.bytes + 63) / 64 * 64;
    p.runs.push_back(run);
  }
  p.gradient_bytes = p.runs.back().offset_bytes + p.runs.back().bytes + draw.from(0, 64);
  // The parts stand in the order of sending, which may be any.
  for (std::size_t i = p.parts.size(); i > 1; --i) {
    const std::size_t j = draw.from(0, i - 1);
    std::swap(p.parts.offset_bytes[i - 1], p.parts.offset_bytes[j]);
    std::swap(p.parts.bytes[i - 1], p.parts.bytes[j]);
    std::swap(p.parts.server[i - 1], p.parts.server[j]);
    std::swap(p.parts.lane[i - 1], p.parts.lane[j]);
  }
  p.part_bytes = 1 + draw.count() / 2;
  p.window_parts = 1 + draw.count() / 2;
  p.stores = draw.coin() ? Stores::streaming : Stores::cached;
  if (draw.coin()) {
    p.update = UpdatePlan{static_cast<Optimizer>(draw.from(0, 3)),
                          draw.coin() ? UpdatePlace::server : UpdatePlace::worker};
  }
  if (draw.coin()) {
    p.asynchronous = AsyncPlan{draw.from(1, 1000)};
  }
  if (draw.coin()) {
    p.fixed_point = FixedPointPlan{draw.whole(2, 32), draw.positive(), draw.whole(-126, 126)};
  }
  p.prediction = draw.prediction();
  p.assignment_gap = draw.number();
  p.runner_up = draw.text();
  p.margin = draw.number();
  p.margin_text = draw.text();
  std::set<std::string> strategies;
  for (std::uint64_t n = draw.from(0, 4); n > 0; --n) {
    Candidate candidate;
    candidate.strategy = draw.snake();
    if (!strategies.insert(candidate.strategy).second) {
      continue;
    }
    if (draw.coin()) {
      candidate.prediction = draw.prediction();
    } else {
      candidate.reason = draw.some_text();
    }
    p.candidates.push_back(candidate);
  }
  for (std::uint64_t n = draw.from(0, 4); n > 0; --n) {
    p.quantities.push_back(
        {.name = draw.name(),
         .value = draw.number(),
         .equation = draw.text(),
         .inputs = {{draw.text(), draw.number()}, {draw.text(), draw.number()}}});
  }
  return p;
}

Report random_report(std::mt19937_64& random) {
  Draw draw(random);
  Report r;
  r.plan = draw.link();
  r.profile = draw.link();
  r.workload = draw.link();
  r.context = draw.texts();
  r.strategy = draw.snake();
  r.transport = draw.name();
  for (std::uint64_t n = draw.from(1, 6); n > 0; --n) {
    r.iteration_seconds.push_back(draw.positive());
  }
  r.warm_up_iterations = draw.count();
  r.min_seconds = draw.positive();
  r.p50_seconds = r.min_seconds * (1 + draw.unit());
  r.p99_seconds = r.p50_seconds * (1 + draw.unit());
  r.spread = draw.non_negative();
  r.prediction = draw.prediction();
  r.error = draw.number();
  r.goodput_over_bound = draw.unit();
  r.tolerance = draw.unit();
  r.within_tolerance = draw.coin();
  r.cause = draw.text();
  if (draw.coin()) {
    r.emulation = Emulation{.profile = draw.link(),
                            .writes = draw.count(),
                            .late_writes = 0,
                            .worst_late_seconds = draw.non_negative()};
    r.emulation->late_writes = draw.from(0, r.emulation->writes);
  }
  if (draw.coin()) {
    r.kind = "simulation";
    r.simulation = Simulation{.profile = draw.link(),
                              .engine = draw.name(),
                              .settings = draw.texts(),
                              .ops = draw.count(),
                              .flows = draw.count(),
                              .merged_parts = draw.from(1, 64),
                              .coarsening_error = draw.unit(),
                              .scenarios = {},
                              .undisturbed_seconds =
                                  draw.coin() ? std::optional(draw.positive()) : std::nullopt,
                              .stations = {}};
    for (std::uint64_t n = draw.from(0, 2); n > 0; --n) {
      r.simulation->scenarios.push_back("scenario " + std::to_string(n));
      r.simulation->stations.push_back({draw.name(), draw.count(), draw.positive(), draw.unit()});
    }
  }
  for (std::uint64_t n = draw.from(0, 3); n > 0; --n) {
    StageReport stage{.name = fmt::format("stage_{}", n),
                      .predicted_seconds = draw.number(),
                      .measured_seconds = std::nullopt,
                      .how = draw.text()};
    if (draw.coin()) {
      stage.measured_seconds = draw.non_negative();
    }
    r.stages.push_back(stage);
  }
  for (std::uint64_t n = draw.from(1, 3); n > 0; --n) {
    r.ranks.push_back({.host = draw.text(),
                       .egress_bytes = draw.count(),
                       .ingress_bytes = draw.count(),
                       .busy_seconds = draw.non_negative(),
                       .reduce_seconds = draw.non_negative(),
                       .wait_seconds = draw.non_negative(),
                       .total_seconds = draw.non_negative(),
                       .peer_wait_seconds = draw.non_negative(),
                       .cpu_seconds = draw.non_negative()});
  }
  r.verification.checked_bytes = draw.count();
  r.verification.ok = draw.coin();
  if (draw.coin()) {
    r.verification.max_error = draw.non_negative();
    r.verification.error_bound = draw.non_negative();
  }
  if (!r.verification.ok) {
    r.verification.wrong_elements = draw.count();
    r.verification.first_error = draw.some_text();
  }
  if (draw.coin()) {
    r.parameters = {.digest = draw.link().digest, .steps = draw.from(2, 9)};
    if (draw.coin()) {
      r.parameters->resumed_from_step = draw.from(0, 1);
    }
  }
  if (draw.coin()) {
    CheckpointsReport c{.every_steps = draw.from(1, 9),
                        .complete = draw.count(),
                        .skipped = draw.count(),
                        .failed = draw.from(0, 1),
                        .bytes = draw.count(),
                        .first_failure = ""};
    for (std::optional<double>* const seconds :
         {&c.predicted_seconds, &c.saving_seconds, &c.writing_seconds, &c.usual_seconds,
          &c.write_seconds}) {
      if (draw.coin()) {
        *seconds = draw.non_negative();
      }
    }
    c.first_failure = c.failed > 0 ? draw.some_text() : "";
    r.checkpoints = c;
  }
  if (draw.coin()) {
    ReprofilingReport reprofiling{
        .every_iterations = draw.from(1, 9), .write_bytes = {draw.count()}, .pauses = {}};
    for (std::uint64_t n = draw.from(0, 2); n > 0; --n) {
      PauseReport pause;
      pause.after_iterations = draw.count();
      pause.measuring_seconds = draw.non_negative();
      pause.planning_seconds = draw.non_negative();
      pause.verdict = draw.some_text();
      if (draw.coin()) {
        pause.pairs.push_back(
            {draw.name(), draw.name(), draw.count(), draw.positive(), draw.positive()});
        pause.ports.push_back(draw.name());
      }
      if (draw.coin()) {
        ReplanReport replan;
        replan.plan = draw.link();
        replan.profile = draw.link();
        replan.running_predicted_seconds = draw.non_negative();
        replan.predicted_seconds = draw.non_negative();
        if (draw.coin()) {
          replan.changes.push_back(draw.some_text());
          replan.iteration_seconds.push_back(draw.positive());
          replan.before_seconds = draw.positive();
          replan.after_seconds = draw.positive();
          replan.gain = draw.number();
        }
        pause.replan = std::move(replan);
      }
      reprofiling.pauses.push_back(std::move(pause));
    }
    r.reprofiling = std::move(reprofiling);
  }
  return r;
}

} // namespace reckon::test
