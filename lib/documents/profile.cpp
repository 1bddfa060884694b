// SPDX-License-Identifier: Apache-2.0
#include "documents/profile.hpp"

#include "documents/fields.hpp"
#include "documents/json.hpp"
#include "documents/machines.hpp"
#include "documents/topology_check.hpp"
#include "stats/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <compare>
#include <iterator>
#include <map>
#include <regex>
#include <set>

namespace reckon {
namespace documents {
namespace {

constexpr std::array<std::string_view, 8> k_statuses{
    "ok", "noisy", "published", "skipped", "unsupported", "mismatch", "timeout", "failed"};
constexpr std::array<std::string_view, 2> k_units{"seconds", "bytes_per_second"};
constexpr std::array<std::string_view, 2> k_conventions{"payload", "stream"};
constexpr std::array<std::string_view, 2> k_directions{"one_way", "two_way"};
constexpr std::array<std::string_view, 14> k_states{
    "cold",     "warm",  "cached_source", "in_place", "sent", "pinned",
    "pageable", "peer",  "staged",        "L1",       "L2",   "L3",
    "L4",       "memory"};
const std::array<std::string_view, 11> k_object_kinds = names_of<ObjectKind, 11>();
const std::array<std::string_view, 3> k_peer_links = names_of<PeerLinkKind, 3>();
constexpr Rule k_few = whole(1, 1 << 20);
constexpr Rule k_number_of_system = whole(0, 1'000'000'000);

constexpr const char* k_operations =
    "^(sgd|momentum|rmsprop|adam|cached|streaming|ps_colocated|ps_noncolocated|ring|"
    "rail[0-9]{1,3}|rails_at_once|(gemm|embedding)(_[1-9][0-9]{0,8})?)$";

bool is_operation(std::string_view text) {
  static const std::regex pattern(k_operations);
  return std::regex_match(text.begin(), text.end(), pattern);
}

constexpr Pattern k_operation{
    k_operations, is_operation,
    "must be one of sgd, momentum, rmsprop, adam, cached, streaming, ps_colocated, "
    "ps_noncolocated, ring, rail0, rails_at_once, gemm, embedding, or gemm_256: with its size",
    "gemm_256"};

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

constexpr Pattern k_pci_address{"^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}\\.[0-9a-f]$",
                                is_pci_address, "must look like 0000:17:00.0, in lower case",
                                "0000:17:00.0"};

constexpr auto k_by_key = [](const auto& a, const auto& b) { return a.key < b.key; };

/// Ids that cells may name: of machines, their members and racks, and of topology objects. The
/// first two are unique.
std::set<std::string> known_ids(const Profile& profile, const JsonView& view) {
  std::set<std::string> ids;
  Unique unique(view, "id");
  const auto add = [&](const std::string& id, const std::string& path) {
    unique.add(id, path);
    ids.insert(id);
  };
  for (std::size_t i = 0; i < profile.machines.size(); ++i) {
    const MachineGroup& machine = profile.machines[i];
    add(machine.id, fmt::format("machines/{}/id", i));
    for (std::size_t j = 0; j < machine.members.size(); ++j) {
      add(machine.members[j], fmt::format("machines/{}/members/{}", i, j));
    }
  }
  std::set<std::string> others{""}; // no id is named
  for (std::size_t i = 0; i < profile.machines.size(); ++i) {
    const std::string& rack = profile.machines[i].rack;
    if (ids.contains(rack)) {
      fail_below(view, fmt::format("machines/{}/rack", i),
                 fmt::format("\"{}\" is the id of a machine; call the rack something else", rack));
    }
    others.insert(rack);
  }
  for (const TopologyObject& object : profile.topology.objects) {
    others.insert(object.id);
  }
  ids.merge(others);
  return ids;
}

/// Whether plans would call a machine of the group so: "box.0".
bool is_numbered(const std::string& id, const MachineGroup& group) {
  return id.starts_with(group.id + ".") && id.size() > group.id.size() + 1 &&
         id.find_first_not_of("0123456789", group.id.size() + 1) == id.npos;
}

void check_id(const std::set<std::string>& ids, const std::string& id,
              const std::vector<MachineGroup>& groups, const JsonView& object, const char* key) {
  if (ids.contains(id)) {
    return;
  }
  const auto group =
      std::ranges::find_if(groups, [&](const MachineGroup& g) { return is_numbered(id, g); });
  const std::string near = did_you_mean(id, {ids.begin(), ids.end()});
  const std::string remedy =
      group == groups.end() ? (near.empty() ? "add one, or name one that is there"
                                            : fmt::format("did you mean \"{}\"?", near))
      : group->members.empty()
          ? fmt::format("machines of \"{}\" have ids of their own where its entry of machines has "
                        "\"members\", all {} of them: \"members\": [\"{}\"{}]",
                        group->id, group->count, id, group->count > 1 ? ", ..." : "")
          : fmt::format("machines of \"{}\" go by its members: \"{}\"{}", group->id,
                        group->members.front(), group->count > 1 ? " and so on" : "");
  object.at(key).fail(
      fmt::format("no machine and no topology object has the id \"{}\"; {}", id, remedy));
}

void check_order(const JsonView& object, const Cell& cell) {
  const bool rate = cell.unit == "bytes_per_second";
  check_range(cell.min, rate ? Range::rate : Range::time, object);
  check_range(cell.max, rate ? Range::rate : Range::time, object);
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

/// What is derived from samples and stands beside them agrees with them, but for rounding to three
/// digits. Only what every program derives alike is checked: not p99, between whose two samples
/// there are several rules, nor the spread.
void check_derived(const Cell& given, const Cell& derived, const JsonView& object) {
  constexpr double k_rounding = 0.005;
  for (const auto& [key, member] :
       {std::pair("p50", &Cell::p50), std::pair("min", &Cell::min), std::pair("max", &Cell::max)}) {
    const double of_samples = derived.*member;
    if (object.find(key) && std::abs(given.*member - of_samples) > k_rounding * of_samples) {
      object.at(key).fail(fmt::format(
          "is {}, but that of the samples is {}; remove n, min, p50, p99, max and spread, which "
          "follow from the samples, or give the samples that belong to them",
          given.*member, of_samples));
    }
  }
}

/// Fills in what is derived from the samples, and p50 alone stands for min, p99 and max.
void complete_values(Cell& cell, const JsonView& object) {
  const Cell given = cell;
  if (cell.samples.empty()) {
    static_cast<void>(object.at("p50")); // must be there
    cell.min = cell.p99 = cell.max = cell.p50;
  } else {
    summarize_cell(cell);
    check_derived(given, cell, object);
  }
  for (const auto& [key, member] :
       {std::pair("min", &Cell::min), std::pair("p50", &Cell::p50), std::pair("p99", &Cell::p99),
        std::pair("max", &Cell::max), std::pair("spread", &Cell::spread)}) {
    if (object.find(key)) {
      cell.*member = given.*member;
    }
  }
  if (object.find("n")) {
    cell.n = given.n;
    if (!cell.samples.empty() && cell.n != cell.samples.size()) {
      object.at("n").fail(
          fmt::format("is {}, but there are {} samples", cell.n, cell.samples.size()));
    }
  }
  if (cell.n == 0 && cell.status != CellStatus::published) {
    object.fail(fmt::format("a cell with status {} needs \"samples\", or \"n\" of at least 1",
                            name_of(cell.status)));
  }
  check_order(object, cell);
}

void check(Cell& cell, const JsonView& object) {
  if (cell.reason.empty() && cell.status != CellStatus::ok &&
      cell.status != CellStatus::published) {
    object.fail(
        fmt::format("a cell with status {} needs a \"reason\"; add it", name_of(cell.status)));
  }
  if (cell.has_value()) {
    complete_values(cell, object);
  } else {
    for (const char* key : {"samples", "n", "min", "p50", "p99", "max", "spread"}) {
      if (const auto value = object.find(key)) {
        value->fail(fmt::format("a cell with status {} has no value; remove this key",
                                name_of(cell.status)));
      }
    }
  }
  if (cell.unit == "seconds" && !cell.bytes_convention.empty()) {
    object.at("bytes_convention").fail("a cell in seconds counts no bytes; remove this key");
  }
  if (cell.unit == "bytes_per_second" && cell.has_value() && cell.bytes_convention.empty()) {
    object.fail("the key \"bytes_convention\" is missing; add \"payload\" (each byte counted once) "
                "or \"stream\" (reads and writes)");
  }
}

/// Of cells or fits: the ids in their keys are known, and no two keys are equal. Sorts them.
template <class T>
void check_keys(std::vector<T>& items, const std::set<std::string>& ids,
                const std::vector<MachineGroup>& groups, const JsonView& view, const char* what) {
  if (items.empty()) {
    return;
  }
  const std::vector<JsonView> objects = view.at(fmt::format("{}s", what)).elements();
  std::map<CellKey, std::size_t> first;
  for (std::size_t i = 0; i < items.size(); ++i) {
    check_id(ids, known_part(items[i].key, items[i].key.from), groups, objects[i], "from");
    check_id(ids, known_part(items[i].key, items[i].key.to), groups, objects[i], "to");
    const auto [before, added] = first.try_emplace(items[i].key, i);
    if (!added) {
      objects[i].fail(fmt::format("the {} \"{}\" occurs twice, first at {}; remove one", what,
                                  items[i].key.text(), objects[before->second].pointer()));
    }
  }
  std::sort(items.begin(), items.end(), k_by_key);
}

} // namespace

static void describe(Visitor& v, PcieLink& l) {
  v.about("pcie", "A PCIe link.");
  v("transfers_per_second", l.transfers_per_second, k_positive,
    "Rate of one lane: 8e9 is PCIe 3.0.");
  v("width", l.width, whole(1, 32), "Lanes.");
}

static void describe(Visitor& v, TopologyObject& o) {
  v.about("object", "One part of a machine. What does not apply is absent.",
          R"({"if": {"properties": {"kind": {"const": "machine"}}},
          "then": {"properties": {"parent": false}}, "else": {"required": ["parent"]}})");
  v("id", o.id, k_name,
    "Unique in the document: \"m0\", \"m0/numa0\", \"m0/nic0\". A machine's id is also that of an "
    "entry of machines.");
  v("kind", o.kind, one_of(k_object_kinds), "What it is.");
  v("parent", o.parent, k_name.maybe(),
    "Id of the containing object, which comes before this one; a machine has no parent.");
  v("name", o.name, k_any.maybe(), "Model or operating-system name.");
  v("os_index", o.os_index, k_number_of_system,
    "Number of the package, NUMA node or core in the operating system.");
  v("cache_level", o.cache_level, whole(1, 8), "Cache level: 1, 2, 3, ...");
  v("bytes", o.bytes, k_count, "Memory of a NUMA node or GPU, size of a cache, bytes.");
  v("pci_address", o.pci_address, like(k_pci_address).maybe(),
    "Domain, bus, device and function: 0000:17:00.0.");
  v("link_bytes_per_second", o.link_bytes_per_second, k_positive,
    "Negotiated rate of a NIC's network ports, or of another object's PCIe link; one direction, "
    "bytes per second.");
  v("pcie", o.pcie, k_any, "Negotiated PCIe link to the parent.");
  v("pcie_possible", o.pcie_possible, k_any, "The best link that both ends report to support.");
  v("pcie_bytes_per_second", o.pcie_bytes_per_second, k_positive,
    "Rate of the PCIe link to the parent after line coding, one direction, bytes per second; for a "
    "link whose generation and width are unknown.");
  v("cable", o.cable, k_any.maybe(),
    "Of a NIC: any name of the cable of its port. NICs of a machine that name the same cable, as "
    "two functions of one card do, share its rate. Absent: a cable of its own.");
  v("sums", o.sums, k_any,
    "Of a link_switch: whether it adds what GPUs send and multicasts the sum (NVLink SHARP, NVLS). "
    "Absent: not known.");
  v("cpus", o.cpus, k_number_of_system.maybe(), "Logical processors of a core or NUMA node.");
}

static void describe(Visitor& v, PeerLink& l) {
  v.about("peer_link",
          "Links between two objects of one machine beside the tree; they work both ways.");
  v("kind", l.kind, one_of(k_peer_links),
    "Kind of link; socket: between NUMA nodes or packages (QPI, UPI, Infinity Fabric).");
  v("from", l.from, k_name, "Id of the object that comes first in objects.");
  v("to", l.to, k_name, "Id of the other object.");
  v("count", l.count, whole(1, 1000000).defaulted(), "Number of parallel links.");
  v("bytes_per_second", l.bytes_per_second, k_positive,
    "Rate of all links together, one direction, bytes per second.");
}

static void describe(Visitor& v, Topology& t) {
  v.about("topology", "The parts of the machines.");
  v("objects", t.objects, k_any, "The objects, parents before children.");
  v("links", t.links, k_any.maybe(), "Links beside the tree.");
}

static void describe(Visitor& v, Ceiling& c) {
  v.about("ceiling", "The limit of this quantity by construction.");
  v("name", c.name, k_name, "\"PCIe 4.0 x16\", ...");
  v("value", c.value, k_positive, "The limit, in the cell's unit.");
}

void describe_key(Visitor& v, CellKey& key, bool with_bytes) {
  v("case", key.test, k_snake, "The measured quantity: fabric_write, numa_to_numa_copy_cpu, ...");
  v("from", key.from, k_name.maybe(),
    "Id of the machine or topology object at which the transfer starts, or which the cell "
    "describes.");
  v("to", key.to, k_name.maybe(),
    "Id of the machine or topology object at which the transfer ends.");
  if (with_bytes) {
    v("bytes", key.bytes, k_positive_count.maybe(),
      "Message size in bytes, or footprint of a memory test.");
  }
  v("threads", key.threads, k_few.maybe(),
    "Threads of one process at work at once; for pairs of processes the number of processors that "
    "they share, if fewer than one each; ranks of a rehearsal.");
  v("pairs", key.pairs, k_few.maybe(), "Pairs of processes at work at once.");
  v("in_flight", key.in_flight, k_few.maybe(), "Writes under way in each direction of each pair.");
  v("sources", key.sources, k_few.maybe(),
    "Operands of a summation; ranks of a collective; workers of a rehearsal.");
  v("dtype", key.dtype, one_of(k_dtypes).maybe(), "Element type.");
  v("transport", key.transport, k_name.maybe(),
    "Mover: \"host\", \"tcp;ofi_rxm\", \"shm\", ...; of a job's records: \"nccl ranks 0-7\".");
  v("direction", key.direction, one_of(k_directions).maybe(), "One way, or both ways at once.");
  v("operation", key.operation, like(k_operation).maybe(),
    "An optimizer; the stores of a sum (cached, streaming); the strategy of a rehearsal; a rail "
    "(rail0, rails_at_once); or a computation with its size (gemm_256: side of the matrices; "
    "embedding_1000: lookups).");
  v("state", key.state, one_of(k_states).maybe(),
    "State of the caches: cold, warm, cached_source (only what is read); what holds what is "
    "loaded: L1 to L4, memory; of the host memory of a copy to or from a GPU: pinned, pageable; "
    "way of a copy between GPUs: peer (directly), staged (through the host); sums of a rehearsal: "
    "in_place, sent.");
}

static void describe(Visitor& v, Cell& c) {
  v.about(
      "cell",
      "One measured quantity with its raw samples. Its key is what says what is measured (case to "
      "state, each absent where it does not apply); no two cells have equal keys.",
      R"({"allOf": [{"if": {"properties": {"status": {"enum": ["ok", "noisy", "published"]}}},
          "then": {"anyOf": [{"required": ["p50"]}, {"required": ["samples"],
          "properties": {"samples": {"minItems": 1}}}]}, "else": {"properties": {"samples": false,
          "n": false, "min": false, "p50": false, "p99": false, "max": false, "spread": false}}},
          {"if": {"properties": {"status": {"enum": ["ok", "noisy"]}}},
          "then": {"anyOf": [{"required": ["n"], "properties": {"n": {"minimum": 1}}},
          {"required": ["samples"], "properties": {"samples": {"minItems": 1}}}]}},
          {"if": {"properties": {"status": {"enum": ["noisy", "skipped", "unsupported",
          "mismatch", "timeout", "failed"]}}}, "then": {"required": ["reason"],
          "properties": {"reason": {"minLength": 1}}}},
          {"if": {"properties": {"unit": {"const": "seconds"}}},
          "then": {"properties": {"bytes_convention": false}},
          "else": {"if": {"properties": {"status": {"enum": ["ok", "noisy", "published"]}}},
          "then": {"required": ["bytes_convention"]}}}]})");
  describe_key(v, c.key, true);
  v("status", c.status, one_of(k_statuses),
    "Outcome of the measurement. ok, noisy and published cells have a value; published values were "
    "not measured here (see source). All others give a reason instead.");
  v("reason", c.reason, k_any.maybe(), "Reason for the status, or a remark on an ok cell.");
  v("unit", c.unit, one_of(k_units),
    "Unit of samples, min, p50, p99, max and of the ceiling's value.");
  v("samples", c.samples, k_positive.when(c.has_value() && !c.samples.empty()),
    "Raw samples in the order of measurement, in the cell's unit.");
  v("n", c.n, k_count.when(c.has_value()), "Number of samples; must agree with samples if given.");
  v("min", c.min, k_positive.when(c.has_value()), "Smallest sample, in the cell's unit.");
  v("p50", c.p50, k_positive.when(c.has_value()),
    "Median, in the cell's unit. min, p50 and max agree with samples to three digits.");
  v("p99", c.p99, k_positive.when(c.has_value()),
    "The slow tail, in the cell's unit: 99 % of the times do not exceed it (min <= p50 <= p99 <= "
    "max); 99 % of the rates exceed it (min <= p99 <= p50 <= max).");
  v("max", c.max, k_positive.when(c.has_value()), "Largest sample, in the cell's unit.");
  v("spread", c.spread, k_non_negative.when(c.has_value()),
    "Median absolute deviation over median, dimensionless.");
  v("bytes_convention", c.bytes_convention, one_of(k_conventions).maybe(),
    "What a rate counts. payload: each byte once; stream: bytes read plus bytes written.");
  v("ceiling", c.ceiling, k_any, "The limit of this quantity by construction.");
  v.check([&](const JsonView& view) { check(c, view); });
}

static void describe(Visitor& v, FitSegment& s) {
  v.about("segment", "alpha + bytes / bandwidth on one range of sizes.");
  v("from_bytes", s.from_bytes, k_non_negative, "Smallest size, bytes.");
  v("to_bytes", s.to_bytes, k_non_negative, "Largest size, bytes; not below from_bytes.");
  v("alpha_seconds", s.alpha_seconds, k_non_negative, "Time of an empty transfer, seconds.");
  v("bandwidth_bytes_per_second", s.bandwidth_bytes_per_second, k_positive,
    "Slope, bytes per second.");
  v("relative_residual", s.relative_residual, k_non_negative,
    "Root mean square of the relative errors, dimensionless.");
  if (const JsonView* const view = v.read(); view != nullptr && s.from_bytes > s.to_bytes) {
    view->at("to_bytes").fail(fmt::format("is {}, below from_bytes {}", s.to_bytes, s.from_bytes));
  }
}

static void describe(Visitor& v, Fit& f) {
  v.about("fit", "A fit over all cells that agree with this key in everything but bytes; no two "
                 "fits have equal keys.");
  describe_key(v, f.key, false); // a fit is about all sizes
  v("segments", f.segments, k_any.some("segment"), "Ascending ranges that do not overlap.");
  v("knee_bytes", f.knee_bytes, k_non_negative.defaulted(),
    "Smallest size with 90 % of the best bandwidth, bytes; 0: no size.");
  const JsonView* const view = v.read();
  for (std::size_t i = 1; view != nullptr && i < f.segments.size(); ++i) {
    const double end = f.segments[i - 1].to_bytes;
    if (f.segments[i].from_bytes < end) {
      fail_below(*view, fmt::format("segments/{}/from_bytes", i),
                 fmt::format("is {}, but the segment before ends at {}; segments ascend and do not "
                             "overlap",
                             f.segments[i].from_bytes, end));
    }
  }
}

void describe(Visitor& v, Profile& p) {
  v.about("profile", "What a machine or a cluster can do.");
  v("name", p.name, k_name, "Name of the profile.");
  v("source", p.source, k_some_text,
    "Source of the numbers: \"measured by reckon 0.1.0\", \"published: BytePS, OSDI 2020, section "
    "7.1\".");
  v("context", p.context, k_any.defaulted(),
    "Conditions of the measurement: host, kernel, cpu, libraries, binding, flags, seed, ...");
  v("fingerprint", p.fingerprint, k_any.maybe(),
    "Digest of the facts that make two profiles comparable.");
  v("machines", p.machines, k_any.some("machine"), "Groups of equal machines.");
  v("endpoint", p.endpoint, k_any,
    "How a node of a torus divides itself between computation and communication; absent: unknown.");
  v("topology", p.topology, k_any.defaulted(), "The parts of the machines.");
  v("cells", p.cells, k_any.defaulted(), "Measurements, sorted by key.");
  v("fits", p.fits, k_any.defaulted(), "Fits of time over size, sorted by key.");
  v("settings", p.settings, k_any.maybe(),
    "What the system says of the machines' paths, in order; absent: it was not asked.");
  if (const JsonView* const view = v.read()) {
    const std::set<std::string> ids = known_ids(p, *view);
    check_topology(p, *view);
    check_keys(p.cells, ids, p.machines, *view, "cell");
    check_keys(p.fits, ids, p.machines, *view, "fit");
    const std::vector<JsonView> settings = elements_below(*view, "settings");
    for (std::size_t i = 0; i < p.settings.size(); ++i) {
      const JsonView& setting = settings[i];
      check_id(ids, p.settings[i].place, p.machines, setting, "place");
      check_id(ids, p.settings[i].machine, p.machines, setting, "machine");
    }
    std::sort(p.settings.begin(), p.settings.end());
  }
}

} // namespace documents

std::string_view name_of(CellStatus status) {
  return documents::k_statuses[static_cast<std::size_t>(status)];
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

namespace {

bool matches(const CellKey& key, const CellKey& pattern) {
  static const CellKey any;
  const auto match = [&](auto... members) {
    return ((pattern.*members == any.*members || pattern.*members == key.*members) && ...);
  };
  using K = CellKey;
  return match(&K::test, &K::from, &K::to, &K::bytes, &K::threads, &K::pairs, &K::in_flight,
               &K::sources, &K::dtype, &K::transport, &K::direction, &K::operation, &K::state);
}

void sort_by_key(std::vector<const Cell*>& cells) {
  std::ranges::stable_sort(cells, {}, [](const Cell* cell) -> const CellKey& { return cell->key; });
}

} // namespace

std::vector<const Cell*> Profile::select(const CellKey& pattern) const {
  std::vector<const Cell*> selected;
  for (const Cell& cell : cells) {
    if (cell.has_value() && matches(cell.key, pattern)) {
      selected.push_back(&cell);
    }
  }
  sort_by_key(selected);
  return selected;
}

CellIndex::CellIndex(const Profile& profile) : m_profile(profile) {
  for (const Cell& cell : profile.cells) {
    if (cell.has_value()) {
      m_cells.push_back(&cell);
    }
  }
  sort_by_key(m_cells);
}

std::vector<const Cell*> CellIndex::select(const CellKey& pattern) const {
  // What the pattern says of the members that keys are ordered by first.
  const std::array<std::string_view, 3> first{pattern.test, pattern.from, pattern.to};
  const auto said = std::ranges::find(first, std::string_view()) - first.begin();
  const auto before = [&](const Cell* cell, bool or_equal) {
    const std::array<std::string_view, 3> of{cell->key.test, cell->key.from, cell->key.to};
    const auto order = std::lexicographical_compare_three_way(of.begin(), of.begin() + said,
                                                              first.begin(), first.begin() + said);
    return order < 0 || (or_equal && order == 0);
  };
  const auto begin =
      std::ranges::partition_point(m_cells, [&](const Cell* cell) { return before(cell, false); });
  const auto end = std::partition_point(begin, m_cells.end(),
                                        [&](const Cell* cell) { return before(cell, true); });
  std::vector<const Cell*> selected;
  std::copy_if(begin, end, std::back_inserter(selected),
               [&](const Cell* cell) { return matches(cell->key, pattern); });
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
  return documents::read_as<Profile>("profile", json, file);
}

Json to_json(const Profile& profile) {
  const auto by_key = documents::k_by_key;
  if (std::is_sorted(profile.cells.begin(), profile.cells.end(), by_key) &&
      std::is_sorted(profile.fits.begin(), profile.fits.end(), by_key) &&
      std::is_sorted(profile.settings.begin(), profile.settings.end())) {
    return documents::written(profile, "profile");
  }
  Profile sorted = profile;
  std::stable_sort(sorted.cells.begin(), sorted.cells.end(), by_key);
  std::stable_sort(sorted.fits.begin(), sorted.fits.end(), by_key);
  std::sort(sorted.settings.begin(), sorted.settings.end());
  return documents::written(sorted, "profile");
}

} // namespace reckon
