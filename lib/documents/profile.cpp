// SPDX-License-Identifier: Apache-2.0
#include "documents/profile.hpp"

#include "core/optimizer.hpp"
#include "core/stores.hpp"
#include "documents/fields.hpp"
#include "stats/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <unordered_set>

namespace reckon {

using namespace documents;

namespace {

constexpr std::array<std::pair<CellStatus, std::string_view>, 8> k_statuses{{
    {CellStatus::ok, "ok"},
    {CellStatus::noisy, "noisy"},
    {CellStatus::published, "published"},
    {CellStatus::skipped, "skipped"},
    {CellStatus::unsupported, "unsupported"},
    {CellStatus::mismatch, "mismatch"},
    {CellStatus::timeout, "timeout"},
    {CellStatus::failed, "failed"},
}};

CellStatus status_from_json(const JsonView& value) {
  const std::string text = value.one_of(
      {"ok", "noisy", "published", "skipped", "unsupported", "mismatch", "timeout", "failed"});
  return std::find_if(k_statuses.begin(), k_statuses.end(),
                      [&](const auto& s) { return s.second == text; })
      ->first;
}

/// Ids that cells may name.
class KnownIds {
public:
  void add(const std::string& id) { m_ids.insert(id); }
  [[nodiscard]] bool has(const std::string& id) const { return m_ids.contains(id); }
  [[nodiscard]] std::string read(const JsonView& value) const {
    std::string id = value.name();
    if (!has(id)) {
      const std::string near = did_you_mean(id, {m_ids.begin(), m_ids.end()});
      value.fail(fmt::format("no machine and no topology object has the id \"{}\"; {}", id,
                             near.empty() ? "add one, or name one that is there"
                                          : fmt::format("did you mean \"{}\"?", near)));
    }
    return id;
  }

private:
  std::set<std::string> m_ids;
};

/// A field of a key: at least 1 when it is there.
std::uint64_t key_count(const JsonView& object, std::string_view key) {
  const auto value = object.find(key);
  return value ? positive_count(*value) : 0;
}

int key_int(const JsonView& object, std::string_view key) {
  const auto value = object.find(key);
  return value ? value->integer(1, 1'000'000'000) : 0;
}

std::string key_word(const JsonView& object, std::string_view key,
                     std::initializer_list<std::string_view> allowed) {
  const auto value = object.find(key);
  return value ? value->one_of(allowed) : std::string();
}

bool is_operation(std::string_view text) {
  if (optimizer_named(text) || stores_named(text)) {
    return true;
  }
  const std::size_t end = std::min(text.find('_'), text.size());
  const std::string_view name = text.substr(0, end);
  const std::string_view size = text.substr(end); // "" or "_256"
  return (name == "gemm" || name == "embedding") &&
         (size.empty() || (size.size() >= 2 && size.size() <= 10 && size[1] != '0' &&
                           size.find_first_not_of("0123456789", 1) == size.npos));
}

std::string key_operation(const JsonView& object) {
  const auto value = object.find("operation");
  const std::string text = value ? value->string() : std::string();
  if (value && !is_operation(text)) {
    value->fail(
        fmt::format("is \"{}\"; must be one of sgd, momentum, rmsprop, adam, cached, "
                    "streaming, gemm, embedding, or one of the last two with its size, as gemm_256",
                    text));
  }
  return text;
}

CellKey key_from_json(const JsonView& object, const KnownIds& ids) {
  CellKey key;
  key.test = snake_name(object.at("case"));
  if (const auto from = object.find("from")) {
    key.from = ids.read(*from);
  }
  if (const auto to = object.find("to")) {
    key.to = ids.read(*to);
  }
  key.bytes = key_count(object, "bytes");
  key.threads = key_int(object, "threads");
  key.pairs = key_int(object, "pairs");
  key.in_flight = key_int(object, "in_flight");
  key.sources = key_int(object, "sources");
  key.dtype = key_word(object, "dtype", {"fp32", "fp16", "bf16"});
  if (const auto transport = object.find("transport")) {
    key.transport = transport->name();
  }
  key.direction = key_word(object, "direction", {"one_way", "two_way"});
  key.operation = key_operation(object);
  key.state = key_word(object, "state", {"cold", "warm", "pinned", "pageable", "peer", "staged"});
  return key;
}

void put_key(Json& json, const CellKey& key) {
  const auto put_number = [&json](const char* name, auto value) {
    if (value != 0) {
      json[name] = value;
    }
  };
  json["case"] = key.test;
  put_text(json, "from", key.from);
  put_text(json, "to", key.to);
  put_number("bytes", key.bytes);
  put_number("threads", key.threads);
  put_number("pairs", key.pairs);
  put_number("in_flight", key.in_flight);
  put_number("sources", key.sources);
  put_text(json, "dtype", key.dtype);
  put_text(json, "transport", key.transport);
  put_text(json, "direction", key.direction);
  put_text(json, "operation", key.operation);
  put_text(json, "state", key.state);
}

MachineGroup machine_from_json(const JsonView& object) {
  object.only({"id", "name", "count", "cores", "memory_bytes", "rack", "members"});
  MachineGroup machine;
  machine.id = object.at("id").name();
  machine.name = optional_text(object, "name");
  if (const auto count = object.find("count")) {
    machine.count = positive_count(*count);
  }
  if (const auto cores = object.find("cores")) {
    machine.cores = positive_count(*cores);
  }
  if (const auto memory = object.find("memory_bytes")) {
    machine.memory_bytes = memory->count();
  }
  if (const auto rack = object.find("rack")) {
    machine.rack = rack->name();
  }
  if (const auto members = object.find("members")) {
    for (const JsonView& member : members->elements()) {
      machine.members.push_back(member.name());
    }
    if (machine.members.size() != machine.count) {
      members->fail(fmt::format("names {} machines, but count is {}; name all of them or none",
                                machine.members.size(), machine.count));
    }
  }
  return machine;
}

Json json_of(const MachineGroup& machine) {
  Json json = {{"id", machine.id}, {"count", machine.count}};
  if (machine.cores != 0) {
    json["cores"] = machine.cores;
  }
  put_text(json, "name", machine.name);
  if (machine.memory_bytes != 0) {
    json["memory_bytes"] = machine.memory_bytes;
  }
  put_text(json, "rack", machine.rack);
  if (!machine.members.empty()) {
    json["members"] = machine.members;
  }
  return json;
}

/// "0000:17:00.0": domain, bus, device, function.
bool is_pci_address(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == text.npos || colon < 4 || colon > 8 || text.size() != colon + 8) {
    return false;
  }
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char expected = i == colon || i == colon + 3 ? ':' : (i == colon + 6 ? '.' : '0');
    const bool hexadecimal =
        (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');
    if (expected == '0' ? !hexadecimal : text[i] != expected) {
      return false;
    }
  }
  return true;
}

PcieLink pcie_from_json(const JsonView& object) {
  object.only({"transfers_per_second", "width"});
  return {.transfers_per_second = object.at("transfers_per_second").positive(),
          .width = object.at("width").integer(1, 32)};
}

Json json_of(const PcieLink& link) {
  return {{"transfers_per_second", link.transfers_per_second}, {"width", link.width}};
}

TopologyObject object_from_json(const JsonView& object) {
  object.only({"id", "kind", "parent", "name", "os_index", "cache_level", "bytes", "pci_address",
               "link_bytes_per_second", "pcie", "pcie_possible", "pcie_bytes_per_second", "cpus"});
  constexpr int k_max_index = 1'000'000'000;
  TopologyObject o;
  o.id = object.at("id").name();
  o.kind = *object_kind_named(
      object.at("kind").one_of({"machine", "package", "numa_node", "cache", "core", "host_bridge",
                                "pci_bridge", "gpu", "nic", "memory_device", "link_switch"}));
  if (const auto parent = object.find("parent")) {
    o.parent = parent->name();
  }
  o.name = optional_text(object, "name");
  if (const auto index = object.find("os_index")) {
    o.os_index = index->integer(0, k_max_index);
  }
  if (const auto level = object.find("cache_level")) {
    o.cache_level = level->integer(1, 8);
  }
  if (const auto bytes = object.find("bytes")) {
    o.bytes = bytes->count();
  }
  if (const auto address = object.find("pci_address")) {
    o.pci_address = address->string();
    if (!is_pci_address(o.pci_address)) {
      address->fail(
          fmt::format("is \"{}\"; must look like 0000:17:00.0, in lower case", o.pci_address));
    }
  }
  if (const auto rate = object.find("link_bytes_per_second")) {
    o.link_bytes_per_second = rate->positive();
  }
  if (const auto pcie = object.find("pcie")) {
    o.pcie = pcie_from_json(*pcie);
  }
  if (const auto possible = object.find("pcie_possible")) {
    o.pcie_possible = pcie_from_json(*possible);
  }
  if (const auto rate = object.find("pcie_bytes_per_second")) {
    o.pcie_bytes_per_second = rate->positive();
  }
  if (const auto cpus = object.find("cpus")) {
    for (const JsonView& cpu : cpus->elements()) {
      o.cpus.push_back(cpu.integer(0, k_max_index));
    }
  }
  return o;
}

Json json_of(const TopologyObject& o) {
  Json json = {{"id", o.id}, {"kind", name_of(o.kind)}};
  put_text(json, "parent", o.parent);
  put_text(json, "name", o.name);
  if (o.os_index) {
    json["os_index"] = *o.os_index;
  }
  if (o.cache_level) {
    json["cache_level"] = *o.cache_level;
  }
  if (o.bytes) {
    json["bytes"] = *o.bytes;
  }
  put_text(json, "pci_address", o.pci_address);
  if (o.link_bytes_per_second) {
    json["link_bytes_per_second"] = *o.link_bytes_per_second;
  }
  if (o.pcie) {
    json["pcie"] = json_of(*o.pcie);
  }
  if (o.pcie_possible) {
    json["pcie_possible"] = json_of(*o.pcie_possible);
  }
  if (o.pcie_bytes_per_second) {
    json["pcie_bytes_per_second"] = *o.pcie_bytes_per_second;
  }
  if (!o.cpus.empty()) {
    json["cpus"] = o.cpus;
  }
  return json;
}

/// The machine that each object belongs to, and its place among the objects.
class Places {
public:
  explicit Places(const Topology& topology) {
    for (std::size_t i = 0; i < topology.objects.size(); ++i) {
      const TopologyObject& o = topology.objects[i];
      m_places[o.id] = {i, o.parent.empty() ? o.id : m_places.at(o.parent).machine};
    }
  }
  struct Place {
    std::size_t index = 0;
    std::string machine;
  };
  [[nodiscard]] const Place& read(const JsonView& id) const {
    const auto it = m_places.find(id.name());
    if (it == m_places.end()) {
      id.fail(fmt::format("no object of this topology has the id \"{}\"; add one, or name one that "
                          "is there",
                          id.name()));
    }
    return it->second;
  }

private:
  std::map<std::string, Place> m_places;
};

void read_links(const JsonView& links, Topology& topology) {
  const Places places(topology);
  Unique ways("link");
  for (const JsonView& object : links.elements()) {
    object.only({"kind", "from", "to", "count", "bytes_per_second"});
    PeerLink link;
    link.kind = *peer_link_kind_named(object.at("kind").one_of({"nvlink", "xgmi", "socket"}));
    link.from = object.at("from").name();
    link.to = object.at("to").name();
    const Places::Place& from = places.read(object.at("from"));
    const Places::Place& to = places.read(object.at("to"));
    if (from.index >= to.index) {
      object.at("to").fail(
          fmt::format("\"{}\" must stand after \"{}\" among the objects, for a link "
                      "works both ways and is written once; change the two over",
                      link.to, link.from));
    }
    if (from.machine != to.machine) {
      object.at("to").fail(fmt::format(
          "\"{}\" is in another machine than \"{}\"; a link is inside of one", link.to, link.from));
    }
    ways.add(fmt::format("{} {} - {}", name_of(link.kind), link.from, link.to), object);
    if (const auto count = object.find("count")) {
      link.count = count->integer(1, 1'000'000);
    }
    if (const auto rate = object.find("bytes_per_second")) {
      link.bytes_per_second = rate->positive();
    }
    topology.links.push_back(std::move(link));
  }
}

Json json_of(const PeerLink& link) {
  Json json = {
      {"kind", name_of(link.kind)}, {"from", link.from}, {"to", link.to}, {"count", link.count}};
  if (link.bytes_per_second) {
    json["bytes_per_second"] = *link.bytes_per_second;
  }
  return json;
}

Topology topology_from_json(const JsonView& view, const std::vector<MachineGroup>& machines) {
  view.only({"objects", "links"});
  Topology topology;
  Unique ids("id");
  std::unordered_set<std::string> before;
  for (const JsonView& object : view.at("objects").elements()) {
    TopologyObject o = object_from_json(object);
    ids.add(o.id, object.at("id"));
    const bool is_group = std::any_of(machines.begin(), machines.end(),
                                      [&](const MachineGroup& m) { return m.id == o.id; });
    if (o.kind == ObjectKind::machine) {
      if (!o.parent.empty()) {
        object.at("parent").fail("a machine has no parent; remove this key");
      }
      if (!is_group) {
        object.at("id").fail(
            fmt::format("no entry of /machines has the id \"{}\"; add it there", o.id));
      }
    } else {
      if (is_group) {
        object.at("id").fail(
            fmt::format("\"{}\" is the id of a machine; rename this {}", o.id, name_of(o.kind)));
      }
      if (o.parent.empty()) {
        object.fail("the key \"parent\" is missing; only a machine has none");
      }
      if (!before.contains(o.parent)) {
        object.at("parent").fail(fmt::format(
            "no object before this one has the id \"{}\"; parents come before their children",
            o.parent));
      }
    }
    before.insert(o.id);
    topology.objects.push_back(std::move(o));
  }
  if (const auto links = view.find("links")) {
    read_links(*links, topology);
  }
  return topology;
}

void check_order(const JsonView& object, const Cell& cell) {
  const bool rate = cell.unit == "bytes_per_second";
  const bool ordered = rate ? cell.min <= cell.p99 && cell.p99 <= cell.p50 && cell.p50 <= cell.max
                            : cell.min <= cell.p50 && cell.p50 <= cell.p99 && cell.p99 <= cell.max;
  if (!ordered) {
    object.fail(
        rate ? fmt::format(
                   "min {} <= p99 {} <= p50 {} <= max {} must hold (p99 of a bandwidth is the "
                   "value that 99 % exceed)",
                   cell.min, cell.p99, cell.p50, cell.max)
             : fmt::format("min {} <= p50 {} <= p99 {} <= max {} must hold", cell.min, cell.p50,
                           cell.p99, cell.max));
  }
}

/// samples, n, min, p50, p99, max and spread of a cell with a value. Without samples only p50 must
/// be there.
void read_values(const JsonView& object, Cell& cell) {
  if (const auto samples = object.find("samples")) {
    cell.samples = samples->numbers();
    for (std::size_t i = 0; i < cell.samples.size(); ++i) {
      if (cell.samples[i] <= 0) {
        static_cast<void>(samples->elements()[i].positive()); // throws, with the element's pointer
      }
    }
  }
  if (cell.samples.empty()) {
    cell.p50 = object.at("p50").positive();
    cell.min = cell.p99 = cell.max = cell.p50;
  } else {
    summarize_cell(cell);
  }
  const auto replace = [&object](const char* key, double& value) {
    if (const auto given = object.find(key)) {
      value = given->positive();
    }
  };
  replace("min", cell.min);
  replace("p50", cell.p50);
  replace("p99", cell.p99);
  replace("max", cell.max);
  if (const auto spread = object.find("spread")) {
    cell.spread = spread->non_negative();
  }
  if (const auto n = object.find("n")) {
    cell.n = n->count();
    if (!cell.samples.empty() && cell.n != cell.samples.size()) {
      n->fail(fmt::format("is {}, but there are {} samples", cell.n, cell.samples.size()));
    }
  }
  if (cell.n == 0 && cell.status != CellStatus::published) {
    object.fail(fmt::format("a cell with status {} needs \"samples\", or \"n\" of at least 1",
                            name_of(cell.status)));
  }
  check_order(object, cell);
}

Cell cell_from_json(const JsonView& object, const KnownIds& ids) {
  object.only({"case",      "from",    "to",     "bytes",     "threads",   "pairs",
               "in_flight", "sources", "dtype",  "transport", "direction", "operation",
               "state",     "status",  "reason", "unit",      "samples",   "n",
               "min",       "p50",     "p99",    "max",       "spread",    "bytes_convention",
               "ceiling"});
  Cell cell;
  cell.key = key_from_json(object, ids);
  cell.status = status_from_json(object.at("status"));
  cell.reason = optional_text(object, "reason");
  cell.unit = object.at("unit").one_of({"seconds", "bytes_per_second"});
  if (cell.reason.empty() && cell.status != CellStatus::ok &&
      cell.status != CellStatus::published) {
    object.fail(
        fmt::format("a cell with status {} needs a \"reason\"; add it", name_of(cell.status)));
  }
  if (cell.has_value()) {
    read_values(object, cell);
  } else {
    for (const char* key : {"samples", "n", "min", "p50", "p99", "max", "spread"}) {
      if (const auto value = object.find(key)) {
        value->fail(fmt::format("a cell with status {} has no value; remove this key",
                                name_of(cell.status)));
      }
    }
  }
  const auto convention = object.find("bytes_convention");
  if (cell.unit == "seconds" && convention) {
    convention->fail("a cell in seconds counts no bytes; remove this key");
  }
  if (convention) {
    cell.bytes_convention = convention->one_of({"payload", "stream"});
  } else if (cell.has_value() && cell.unit == "bytes_per_second") {
    object.fail("the key \"bytes_convention\" is missing; add \"payload\" (each byte counted once) "
                "or \"stream\" "
                "(reads and writes)");
  }
  if (const auto ceiling = object.find("ceiling")) {
    ceiling->only({"name", "value"});
    cell.ceiling =
        Ceiling{.name = ceiling->at("name").name(), .value = ceiling->at("value").positive()};
  }
  return cell;
}

Fit fit_from_json(const JsonView& object, const KnownIds& ids) {
  object.only({"case", "from", "to", "threads", "pairs", "in_flight", "sources", "dtype",
               "transport", "direction", "operation", "state", "segments", "knee_bytes"});
  Fit fit;
  fit.key = key_from_json(object, ids);
  if (const auto knee = object.find("knee_bytes")) {
    fit.knee_bytes = knee->non_negative();
  }
  for (const JsonView& view : some_elements(object.at("segments"), "segment")) {
    view.only({"from_bytes", "to_bytes", "alpha_seconds", "bandwidth_bytes_per_second",
               "relative_residual"});
    FitSegment segment;
    segment.from_bytes = view.at("from_bytes").non_negative();
    segment.to_bytes = view.at("to_bytes").non_negative();
    segment.alpha_seconds = view.at("alpha_seconds").non_negative();
    segment.bandwidth_bytes_per_second = view.at("bandwidth_bytes_per_second").positive();
    segment.relative_residual = view.at("relative_residual").non_negative();
    if (segment.from_bytes > segment.to_bytes) {
      view.at("to_bytes")
          .fail(fmt::format("is {}, below from_bytes {}", segment.to_bytes, segment.from_bytes));
    }
    if (!fit.segments.empty() && segment.from_bytes < fit.segments.back().to_bytes) {
      view.at("from_bytes")
          .fail(fmt::format("is {}, but the segment before ends at {}; segments ascend and do not "
                            "overlap",
                            segment.from_bytes, fit.segments.back().to_bytes));
    }
    fit.segments.push_back(segment);
  }
  return fit;
}

Json json_of(const Fit& fit) {
  Json segments = Json::array();
  for (const FitSegment& s : fit.segments) {
    segments.push_back({{"from_bytes", s.from_bytes},
                        {"to_bytes", s.to_bytes},
                        {"alpha_seconds", s.alpha_seconds},
                        {"bandwidth_bytes_per_second", s.bandwidth_bytes_per_second},
                        {"relative_residual", s.relative_residual}});
  }
  Json json = Json::object();
  put_key(json, fit.key);
  json["segments"] = std::move(segments);
  json["knee_bytes"] = fit.knee_bytes;
  return json;
}

/// Cells or fits, sorted by their keys, no two equal.
template <class T>
std::vector<T> keyed_from_json(const JsonView& array, const KnownIds& ids,
                               T (*read)(const JsonView&, const KnownIds&), const char* what) {
  std::vector<T> items;
  std::map<CellKey, std::string> first; // key -> pointer
  for (const JsonView& object : array.elements()) {
    items.push_back(read(object, ids));
    const auto [before, added] = first.try_emplace(items.back().key, object.pointer());
    if (!added) {
      object.fail(fmt::format("the {} \"{}\" occurs twice, first at {}; remove one", what,
                              items.back().key.text(), before->second));
    }
  }
  std::sort(items.begin(), items.end(), [](const T& a, const T& b) { return a.key < b.key; });
  return items;
}

/// `items` sorted by their keys, without copying samples.
template <class T>
std::vector<const T*> by_key(const std::vector<T>& items) {
  std::vector<const T*> sorted;
  sorted.reserve(items.size());
  for (const T& item : items) {
    sorted.push_back(&item);
  }
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const T* a, const T* b) { return a->key < b->key; });
  return sorted;
}

} // namespace

std::string_view name_of(CellStatus status) {
  return std::find_if(k_statuses.begin(), k_statuses.end(),
                      [&](const auto& s) { return s.first == status; })
      ->second;
}

std::string CellKey::text() const {
  std::string text = test;
  const auto add = [&text](const std::string& word) {
    if (!word.empty()) {
      text += ' ';
      text += word;
    }
  };
  const auto add_number = [&add](auto number, const char* what) {
    if (number != 0) {
      add(fmt::format("{} {}", number, what));
    }
  };
  add(to.empty() ? from : fmt::format("{}->{}", from, to));
  add(transport);
  add(direction);
  add(operation);
  add(dtype);
  add(state);
  add_number(sources, "sources");
  add_number(threads, threads == 1 ? "thread" : "threads");
  add_number(pairs, pairs == 1 ? "pair" : "pairs");
  add_number(in_flight, "in flight");
  add_number(bytes, "B");
  return text;
}

const Cell* Profile::find(const CellKey& key) const {
  const auto it =
      std::find_if(cells.begin(), cells.end(), [&](const Cell& cell) { return cell.key == key; });
  return it == cells.end() ? nullptr : &*it;
}

std::vector<const Cell*> Profile::select(const CellKey& pattern) const {
  const auto matches = [](const auto& wanted, const auto& value) {
    return wanted == std::remove_cvref_t<decltype(wanted)>{} || wanted == value;
  };
  std::vector<const Cell*> selected;
  for (const Cell& cell : cells) {
    const CellKey& k = cell.key;
    if (cell.has_value() && matches(pattern.test, k.test) && matches(pattern.from, k.from) &&
        matches(pattern.to, k.to) && matches(pattern.bytes, k.bytes) &&
        matches(pattern.threads, k.threads) && matches(pattern.pairs, k.pairs) &&
        matches(pattern.in_flight, k.in_flight) && matches(pattern.sources, k.sources) &&
        matches(pattern.dtype, k.dtype) && matches(pattern.transport, k.transport) &&
        matches(pattern.direction, k.direction) && matches(pattern.operation, k.operation) &&
        matches(pattern.state, k.state)) {
      selected.push_back(&cell);
    }
  }
  std::stable_sort(selected.begin(), selected.end(),
                   [](const Cell* a, const Cell* b) { return a->key < b->key; });
  return selected;
}

void summarize_cell(Cell& cell) {
  cell.n = cell.samples.size();
  cell.min = cell.p50 = cell.p99 = cell.max = cell.spread = 0;
  if (cell.samples.empty()) {
    return;
  }
  const Summary s = summarize(cell.samples);
  cell.min = s.min;
  cell.p50 = s.p50;
  cell.p99 = s.p99;
  cell.max = s.max;
  cell.spread = s.spread;
  if (cell.unit == "bytes_per_second") { // the slow tail of a rate is its low end
    std::vector<double> sorted = cell.samples;
    std::sort(sorted.begin(), sorted.end());
    cell.p99 = percentile(sorted, 0.01);
  }
}

Profile profile_from_json(const Json& json, const std::string& file) {
  const JsonView view(json, file);
  check_header(view, "profile");
  view.only({"schema", "schema_version", "name", "source", "context", "fingerprint", "machines",
             "endpoint", "topology", "cells", "fits"});
  Profile profile;
  profile.name = view.at("name").name();
  profile.source = some_text(view.at("source"));
  if (const auto context = view.find("context")) {
    profile.context = texts_from_json(*context);
  }
  profile.fingerprint = optional_text(view, "fingerprint");
  KnownIds ids;
  Unique machine_ids("id");
  for (const JsonView& machine : some_elements(view.at("machines"), "machine")) {
    profile.machines.push_back(machine_from_json(machine));
    machine_ids.add(profile.machines.back().id, machine.at("id"));
    ids.add(profile.machines.back().id);
    if (const auto members = machine.find("members")) {
      for (const JsonView& member : members->elements()) {
        machine_ids.add(member.name(), member);
        ids.add(member.name());
      }
    }
  }
  std::set<std::string> racks;
  for (const JsonView& machine : view.at("machines").elements()) {
    if (const auto rack = machine.find("rack")) {
      if (ids.has(rack->name())) {
        rack->fail(fmt::format("\"{}\" is the id of a machine; call the rack something else",
                               rack->name()));
      }
      racks.insert(rack->name());
    }
  }
  for (const std::string& rack : racks) {
    ids.add(rack);
  }
  if (const auto endpoint = view.find("endpoint")) {
    profile.endpoint = endpoint_from_json(*endpoint);
  }
  if (const auto topology = view.find("topology")) {
    profile.topology = topology_from_json(*topology, profile.machines);
    for (const TopologyObject& object : profile.topology.objects) {
      ids.add(object.id);
    }
  }
  if (const auto cells = view.find("cells")) {
    profile.cells = keyed_from_json<Cell>(*cells, ids, cell_from_json, "cell");
  }
  if (const auto fits = view.find("fits")) {
    profile.fits = keyed_from_json<Fit>(*fits, ids, fit_from_json, "fit");
  }
  return profile;
}

Json to_json(const CellKey& key) {
  Json json = Json::object();
  put_key(json, key);
  return json;
}

Json to_json(const Cell& cell) {
  Json json = to_json(cell.key);
  json["status"] = name_of(cell.status);
  json["unit"] = cell.unit;
  put_text(json, "reason", cell.reason);
  put_text(json, "bytes_convention", cell.bytes_convention);
  if (cell.has_value()) {
    if (!cell.samples.empty()) {
      json["samples"] = cell.samples;
    }
    json["n"] = cell.n;
    json["min"] = cell.min;
    json["p50"] = cell.p50;
    json["p99"] = cell.p99;
    json["max"] = cell.max;
    json["spread"] = cell.spread;
  }
  if (cell.ceiling) {
    json["ceiling"] = {{"name", cell.ceiling->name}, {"value", cell.ceiling->value}};
  }
  return json;
}

Json to_json(const Profile& profile) {
  Json json = with_header("profile");
  json["name"] = profile.name;
  json["source"] = profile.source;
  json["context"] = documents::json_of(profile.context);
  put_text(json, "fingerprint", profile.fingerprint);
  json["machines"] = Json::array();
  for (const MachineGroup& machine : profile.machines) {
    json["machines"].push_back(json_of(machine));
  }
  if (profile.endpoint) {
    json["endpoint"] = documents::json_of(*profile.endpoint);
  }
  json["topology"]["objects"] = Json::array();
  for (const TopologyObject& object : profile.topology.objects) {
    json["topology"]["objects"].push_back(json_of(object));
  }
  for (const PeerLink& link : profile.topology.links) {
    json["topology"]["links"].push_back(json_of(link));
  }
  json["cells"] = Json::array();
  for (const Cell* cell : by_key(profile.cells)) {
    json["cells"].push_back(to_json(*cell));
  }
  json["fits"] = Json::array();
  for (const Fit* fit : by_key(profile.fits)) {
    json["fits"].push_back(json_of(*fit));
  }
  return json;
}

} // namespace reckon
