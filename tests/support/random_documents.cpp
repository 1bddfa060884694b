// SPDX-License-Identifier: Apache-2.0
#include "support/random_documents.hpp"

#include "documents/describe.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

namespace reckon::test {
namespace {

using documents::Field;
using documents::ListRef;
using documents::OptionalRef;
using documents::RecordRef;
using documents::Ref;
using documents::Rule;
using documents::Visitor;
using documents::WholeRef;

/// Draws. Its own arithmetic instead of std distributions, which differ between standard libraries.
class Draw {
public:
  explicit Draw(std::mt19937_64& random) : m_random(random) {}

  [[nodiscard]] std::uint64_t from(std::uint64_t low, std::uint64_t high) { // both included
    return low + m_random() % (high - low + 1);
  }
  [[nodiscard]] bool coin() { return from(0, 1) == 1; }
  /// In [0, 1).
  [[nodiscard]] double unit() { return static_cast<double>(m_random() >> 11U) * 0x1p-53; }
  /// Positive, of any magnitude from 1e-12 to 1e15.
  [[nodiscard]] double positive() {
    return (0.1 + unit()) * std::pow(10.0, static_cast<double>(from(0, 26)) - 11);
  }
  /// In [0, most], mostly small.
  [[nodiscard]] std::uint64_t count(std::uint64_t most) {
    return std::min(m_random() >> (11 + from(0, 52)), most);
  }
  template <class T, std::size_t N>
  [[nodiscard]] T one_of(const std::array<T, N>& values) {
    return values[from(0, N - 1)];
  }
  /// Any text: quotes, control characters, other alphabets. May be empty.
  [[nodiscard]] std::string text() {
    std::string out;
    for (std::uint64_t n = from(0, 5); n > 0; --n) {
      out += one_of(std::array<const char*, 12>{"a", "Z", " ", "\"", "\\", "\n", "\x1b", "/", "~",
                                                "ü", "日", "$(x)"});
    }
    return out;
  }
  /// A name: no control characters, not empty.
  [[nodiscard]] std::string name() {
    std::string out;
    for (std::uint64_t n = from(1, 5); n > 0; --n) {
      out +=
          one_of(std::array<const char*, 10>{"a", "7", " ", "\"", "\\", "->", "/", "~1", "ö", "'"});
    }
    return out;
  }

private:
  std::mt19937_64& m_random;
};

/// Gives every member a value that its description allows. What concerns several members is put
/// right afterwards.
class Maker : public Visitor {
public:
  explicit Maker(Draw& draw) : m_draw(draw) {}

protected:
  void field(const Field& field, const Ref& ref) override {
    if (field.rule.presence != Rule::Presence::maybe || m_draw.coin()) {
      make(field.rule, ref);
    }
  }

private:
  void make(const Rule& rule, const Ref& ref) {
    std::visit([&](const auto& to) { make_to(rule, to); }, ref.to);
  }
  std::uint64_t number_of(const Rule& rule) {
    return m_draw.from(rule.element != nullptr ? 1 : 0, 4);
  }
  void make_to(const Rule& rule, const WholeRef& to) {
    const bool limited = !to.truth && rule.names.empty();
    const auto low = limited ? static_cast<std::int64_t>(rule.low) : 0;
    const std::int64_t high = !rule.names.empty() ? static_cast<std::int64_t>(rule.names.size()) - 1
                              : to.truth          ? 1
                                                  : static_cast<std::int64_t>(rule.high);
    const auto range = static_cast<std::uint64_t>(high - low);
    const std::uint64_t drawn = range < 400 ? m_draw.from(0, range) : m_draw.count(range);
    to.set(to.value, low + static_cast<std::int64_t>(drawn));
  }
  void make_to(const Rule& rule, double* to) {
    *to = rule.high == 1                              ? m_draw.unit() / 2 + 0.5
          : !rule.above_low && m_draw.from(0, 4) == 0 ? 0
                                                      : m_draw.positive();
    if (rule.low < 0 && m_draw.coin()) {
      *to = -*to;
    }
  }
  void make_to(const Rule& rule, std::string* to) {
    if (!rule.names.empty()) {
      *to = rule.names[m_draw.from(0, rule.names.size() - 1)];
    } else if (rule.pattern != nullptr) {
      *to = rule.pattern->example;
    } else {
      *to = rule.text == Rule::Text::name   ? m_draw.name()
            : rule.text == Rule::Text::some ? m_draw.text() + "."
                                            : m_draw.text();
    }
  }
  void make_to(const Rule&, documents::Texts* to) {
    for (std::uint64_t n = m_draw.from(0, 4); n > 0; --n) {
      (*to)[m_draw.text() + "."] = m_draw.text();
    }
  }
  void make_to(const Rule& rule, documents::Numbers* to) {
    for (std::uint64_t n = m_draw.from(0, 4); n > 0; --n) {
      make_to(rule, &(*to)[m_draw.text()]);
    }
  }
  template <class T>
  void make_to(const Rule& rule, std::vector<T>* to) {
    to->resize(number_of(rule));
    for (T& number : *to) {
      make(rule, ref(number));
    }
  }
  void make_to(const Rule& rule, const OptionalRef& to) {
    if (m_draw.coin()) {
      make(rule, to.get(to.value));
    }
  }
  void make_to(const Rule& rule, const ListRef& to) {
    to.resize(to.list, number_of(rule));
    for (std::size_t i = 0; i < to.size(to.list); ++i) {
      make(rule, to.at(to.list, i));
    }
  }
  void make_to(const Rule&, const RecordRef& to) { to.describe(*this, to.record); }

  Draw& m_draw;
};

template <class T>
T made(Draw& draw) {
  T value;
  Maker maker(draw);
  describe(maker, value);
  return value;
}

/// No two of `items` have the same text in `member`.
template <class T>
void make_different(std::vector<T>& items, std::string T::*member, std::set<std::string>& used) {
  for (T& item : items) {
    while (!used.insert(item.*member).second) {
      item.*member += "7";
    }
  }
}
template <class T>
void make_different(std::vector<T>& items, std::string T::*member) {
  std::set<std::string> used;
  make_different(items, member, used);
}

void put_right(Draw& draw, Prediction& p) {
  make_different(p.terms, &Term::name);
  double sum = 0;
  for (Term& term : p.terms) {
    term.seconds = std::abs(term.seconds);
    sum += term.seconds;
  }
  p.mid_seconds = p.terms.empty() ? draw.positive() : sum;
  p.bound_seconds = p.mid_seconds * draw.unit();
  p.lo_seconds = p.mid_seconds * draw.unit();
  p.hi_seconds = p.mid_seconds * (1 + draw.unit());
}

void put_right(Draw& draw, EndpointPart& part, const Endpoint& endpoint) {
  part.sms = static_cast<double>(draw.from(0, endpoint.sms - 1));
  part.memory_bytes_per_second = endpoint.memory_bytes_per_second * draw.unit() / 2;
}

void put_right(Draw& draw, Cell& cell) {
  const bool rate = cell.unit == "bytes_per_second";
  if (cell.reason.empty()) {
    cell.reason = ".";
  }
  cell.bytes_convention = rate ? "payload" : "";
  if (!cell.has_value()) {
    cell.samples.clear();
  }
  summarize_cell(cell);
  if (cell.has_value() && cell.samples.empty()) {
    cell.n = draw.from(1, 1000);
    cell.p50 = draw.positive();
    cell.min = cell.p50 * (1 - draw.unit() / 2);
    cell.max = cell.p50 * (1 + draw.unit());
    cell.p99 = rate ? cell.min : cell.max;
    cell.spread = draw.unit();
  }
}

/// Ids that are known, no two equal keys, sorted as a reader returns them.
template <class T>
void put_keys_right(Draw& draw, std::vector<T>& items, const std::vector<std::string>& ids) {
  std::map<CellKey, T> sorted;
  for (T& item : items) {
    for (std::string* const id : {&item.key.from, &item.key.to}) {
      *id = draw.coin() ? ids[draw.from(0, ids.size() - 1)] : "";
    }
    sorted.emplace(item.key, item);
  }
  items.clear();
  for (const auto& [key, item] : sorted) {
    items.push_back(item);
  }
}

/// The machines that are objects, and below each object others; links between neighbours in the
/// tree, which are in one machine.
void put_topology_right(Draw& draw, Profile& p, std::set<std::string>& used) {
  std::vector<TopologyObject> below;
  below.swap(p.topology.objects);
  std::vector<PeerLink> links;
  links.swap(p.topology.links);
  for (const MachineGroup& machine : p.machines) {
    if (draw.coin()) {
      p.topology.objects.emplace_back().id = machine.id;
    }
  }
  if (p.topology.objects.empty()) {
    return;
  }
  make_different(below, &TopologyObject::id, used);
  for (TopologyObject& o : below) {
    o.kind = o.kind == ObjectKind::machine ? ObjectKind::core : o.kind;
    o.parent = p.topology.objects[draw.from(0, p.topology.objects.size() - 1)].id;
    o.pci_address = draw.coin() ? fmt::format("{:04x}:{:02x}:{:02x}.{:x}", draw.from(0, 65535),
                                              draw.from(0, 255), draw.from(0, 31), draw.from(0, 7))
                                : "";
    p.topology.objects.push_back(o);
    if (!links.empty() && draw.coin()) {
      PeerLink& link = p.topology.links.emplace_back(links.back());
      link.from = o.parent;
      link.to = o.id;
    }
  }
}

/// Each tensor belongs to one layer; what a layer exchanges goes to the last one.
void put_layers_right(Draw& draw, Workload& w) {
  std::vector<Layer> layers;
  layers.swap(w.layers);
  for (const Tensor& tensor : w.tensors) { // one layer may compute several tensors' gradients
    if (!layers.empty() && (w.layers.empty() || draw.coin())) {
      w.layers.push_back(layers.back());
      layers.pop_back();
      w.layers.back().tensors.clear();
    }
    if (!w.layers.empty()) {
      w.layers.back().tensors.push_back(tensor.name);
    }
  }
  for (Layer& layer : w.layers) {
    for (Computation* const c : {&layer.forward, &layer.input_gradient, &layer.weight_gradient}) {
      if (c->seconds) {
        *c = {.seconds = c->seconds};
      }
    }
    if (layer.exchange && &layer != &w.layers.back()) {
      layer.exchange->before = w.layers.back().name;
    } else {
      layer.exchange.reset();
    }
  }
}

/// Parts that cover the runs, in any order of sending.
void put_parts_right(Draw& draw, Plan& p) {
  p.parts = {};
  p.runs.clear();
  if (p.wire) {
    p.wire = draw.one_of(std::array{DType::fp16, DType::bf16});
  }
  std::uint64_t at = 0;
  for (std::uint64_t n = draw.from(1, 3); n > 0; --n) {
    DTypeRun run{.offset_bytes = at + 64 * draw.from(0, 2),
                 .bytes = 0,
                 .dtype = draw.one_of(std::array{DType::fp32, DType::fp16, DType::bf16})};
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
  for (std::size_t i = p.parts.size(); i > 1; --i) {
    const std::size_t j = draw.from(0, i - 1);
    for (auto* const column :
         {&p.parts.offset_bytes, &p.parts.bytes, &p.parts.server, &p.parts.lane}) {
      std::swap((*column)[i - 1], (*column)[j]);
    }
  }
}

} // namespace

Profile random_profile(std::mt19937_64& random) {
  Draw draw(random);
  auto p = made<Profile>(draw);
  std::set<std::string> used;
  make_different(p.machines, &MachineGroup::id, used);
  for (MachineGroup& machine : p.machines) {
    machine.count = draw.from(1, 64);
    machine.rack = draw.one_of(std::array<const char*, 3>{"", "rack 0", "rack 1"});
    machine.members.clear();
    for (std::uint64_t m = draw.coin() ? machine.count : 0; m > 0; --m) {
      machine.members.push_back(fmt::format("{} member {}", machine.id, m));
      used.insert(machine.members.back());
    }
  }
  if (p.endpoint) {
    p.endpoint->sms = draw.from(2, 200);
    if (p.endpoint->aside) {
      put_right(draw, *p.endpoint->aside, *p.endpoint);
    }
    for (EndpointConfiguration& configuration : p.endpoint->configurations) {
      if (configuration.communication) {
        put_right(draw, *configuration.communication, *p.endpoint);
      }
    }
    make_different(p.endpoint->configurations, &EndpointConfiguration::name);
  }
  put_topology_right(draw, p, used);
  const auto ids = [&p] {
    std::vector<std::string> known;
    for (const MachineGroup& machine : p.machines) {
      known.push_back(machine.id);
      known.insert(known.end(), machine.members.begin(), machine.members.end());
    }
    for (const TopologyObject& object : p.topology.objects) {
      known.push_back(object.id);
    }
    return known;
  }();
  for (Cell& cell : p.cells) {
    put_right(draw, cell);
  }
  for (Fit& fit : p.fits) {
    double at = 0;
    for (FitSegment& segment : fit.segments) {
      segment.from_bytes = at;
      at = segment.to_bytes = at + draw.positive();
    }
  }
  for (Setting& setting : p.settings) {
    setting.place = ids[draw.from(0, ids.size() - 1)];
    setting.machine = draw.coin() ? ids[draw.from(0, ids.size() - 1)] : "";
  }
  std::sort(p.settings.begin(), p.settings.end());
  put_keys_right(draw, p.cells, ids);
  put_keys_right(draw, p.fits, ids);
  return p;
}

Workload random_workload(std::mt19937_64& random) {
  Draw draw(random);
  auto w = made<Workload>(draw);
  std::set<std::string> used;
  for (std::vector<Tensor>* const tensors : {&w.tensors, &w.all_to_all}) {
    make_different(*tensors, &Tensor::name, used);
    for (Tensor& tensor : *tensors) {
      tensor.elements = 1 + (tensor.elements >> 8U); // all of them at most 2^53 bytes
    }
  }
  make_different(w.layers, &Layer::name);
  put_layers_right(draw, w);
  return w;
}

Roles random_roles(std::mt19937_64& random) {
  Draw draw(random);
  auto r = made<Roles>(draw);
  for (RoleGroup& group : r.groups) {
    group.worker = group.worker || !group.server || &group == r.groups.data();
    group.count = group.endpoints.empty() ? group.count : group.endpoints.size();
  }
  return r;
}

Plan random_plan(std::mt19937_64& random) {
  Draw draw(random);
  auto p = made<Plan>(draw);
  if (p.rehearsal) {
    p.rehearsal->workers = std::min(p.rehearsal->workers, p.rehearsal->ranks);
  }
  p.ranks[0].worker = true;
  for (PlanRank& rank : p.ranks) {
    rank.lanes = 1 + rank.lanes % 8;
    rank.assigned_bytes = 0;
    rank.endpoint_kind = rank.endpoint.empty() ? "" : rank.endpoint_kind;
    if (!rank.lane_places.empty()) {
      rank.lane_places.resize(static_cast<std::size_t>(rank.lanes), rank.lane_places[0]);
    }
  }
  put_parts_right(draw, p);
  p.ring_order.clear();
  for (std::size_t r = 0; r < p.ranks.size(); ++r) {
    if (p.ranks[r].worker) {
      p.ring_order.insert(p.ring_order.begin(), r);
    }
  }
  p.groups %= p.ring_order.size() + 1; // at most as many as workers
  p.trees.clear();                     // parts would have to go by them
  p.machine_trees.clear();
  p.torus.reset();
  p.routing.clear();
  p.tensors.clear();
  p.one_queue = false;
  if (p.passes) {
    std::sort(p.passes->end_bytes.begin(), p.passes->end_bytes.end());
    for (std::uint64_t& end : p.passes->end_bytes) {
      end = std::min(end, p.gradient_bytes);
    }
    p.passes->backward_seconds.resize(p.passes->size());
    p.passes->forward_seconds.resize(p.passes->size());
  }
  put_right(draw, p.prediction);
  make_different(p.candidates, &Candidate::strategy);
  for (Candidate& candidate : p.candidates) {
    if (candidate.prediction) {
      put_right(draw, *candidate.prediction);
    }
    candidate.reason = candidate.prediction ? "" : candidate.reason + ".";
  }
  return p;
}

Report random_report(std::mt19937_64& random) {
  Draw draw(random);
  auto r = made<Report>(draw);
  r.kind = r.simulation ? "simulation" : "run";
  r.p50_seconds = r.min_seconds * (1 + draw.unit());
  r.p99_seconds = r.p50_seconds * (1 + draw.unit());
  put_right(draw, r.prediction);
  make_different(r.stages, &StageReport::name);
  if (r.diagnosis) {
    for (SlowPlaceReport& place : r.diagnosis->places) {
      place.ranks.clear();
    }
  }
  if (r.emulation) {
    r.emulation->late_writes = draw.from(0, r.emulation->writes);
  }
  r.verification.wrong_elements = r.verification.ok ? 0 : r.verification.wrong_elements;
  r.verification.first_error = r.verification.ok ? "" : r.verification.first_error + ".";
  if (r.parameters && r.parameters->resumed_from_step) {
    r.parameters->steps = *r.parameters->resumed_from_step + 1;
  }
  if (r.checkpoints) {
    r.checkpoints->first_failure =
        r.checkpoints->failed == 0 ? "" : r.checkpoints->first_failure + ".";
  }
  return r;
}

} // namespace reckon::test
