// SPDX-License-Identifier: Apache-2.0
#include "network/inside.hpp"

#include "core/error.hpp"
#include "documents/cells.hpp"
#include "documents/profile.hpp"
#include "network/nic_rates.hpp"
#include "network/pairs.hpp"
#include "network/rate.hpp"
#include "topology/paths.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>
#include <string_view>
#include <utility>

namespace reckon {
namespace {

/// Every choice of relays is looked at for every root: 2^10 of them are a second, more are not.
constexpr std::size_t k_most_relays = 10;

/// Cases whose cells say how fast one pair of endpoints copies.
constexpr std::array k_pair_cases{k_device_read_ce,    k_device_write_ce,   k_device_read_sm,
                                  k_device_write_sm,   k_host_to_device_ce, k_host_to_device_sm,
                                  k_device_to_host_ce, k_device_to_host_sm, k_numa_copy};

/// From one GPU to another, of p2pBandwidthLatencyTest: a short write of a copy engine.
constexpr const char* k_short_write = "device_to_device_write_latency_ce";

Rate fastest(const std::vector<const Cell*>& cells) {
  Rate best;
  for (const Cell* const cell : cells) {
    if (cell->unit == "bytes_per_second" && cell->key.direction != "two_way" &&
        cell->p50 > best.mid) {
      best = measured_rate(*cell);
    }
  }
  return best;
}

Rate fastest(const CellIndex& index, const CellKey& pattern) {
  return fastest(index.select(pattern));
}

/// Sums of two operands, in fp32 where that was measured: what the other types' cells say else.
std::vector<const Cell*> cells_of_sums(const CellIndex& index, const char* test,
                                       const std::string& of, int threads = 0) {
  CellKey pattern{.test = test, .from = of, .threads = threads, .sources = 2, .dtype = "fp32"};
  std::vector<const Cell*> cells = index.select(pattern);
  if (fastest(cells).mid <= 0) {
    pattern.dtype.clear();
    cells = index.select(pattern);
  }
  return cells;
}

class Builder {
public:
  Builder(const CellIndex& index, const std::string& machine, const InsideOptions& options,
          std::string member = "")
      : m_index(index), m_profile(index.profile()), m_topology(m_profile.topology),
        m_machine(machine), m_member(std::move(member)), m_options(options) {}

  [[nodiscard]] Network build() {
    check_options();
    choose_endpoints();
    choose_nics();
    processors();
    copies();
    exits();
    service();
    groups();
    return finished();
  }

  /// As one of several machines.
  [[nodiscard]] OpenedMachine open(const std::string& transport) {
    check_options();
    choose_endpoints();
    processors();
    copies();
    exits();
    groups();
    ports(transport);
    m_opened.network = finished();
    return std::move(m_opened);
  }

  /// Seen from outside: one place, the machine itself.
  [[nodiscard]] OpenedMachine closed(bool works, const std::optional<MachinePort>& port,
                                     const std::string& transport) {
    m_model.places.push_back({m_machine, works, true});
    m_model.workers = works ? 1 : 0;
    m_model.ways.assign(1, std::vector<std::optional<Uses>>(1));
    m_model.latency_s.assign(1, {0});
    Memory memory = memory_of(m_machine);
    m_model.add.push_back(memory.add);
    m_memories.emplace(m_machine, std::move(memory));
    exits();
    if (works) {
      m_model.groups.push_back({0});
    }
    m_rates.emplace(m_index, m_machine, m_member, transport);
    m_nics = m_rates->nics();
    through_one_port("", port ? port->together : m_rates->whole());
    if (port && port->each.size() > 1 && !m_opened.ports.empty()) {
      through_each(*port);
    }
    m_opened.network = finished();
    return std::move(m_opened);
  }

private:
  [[nodiscard]] Network finished() {
    for (Place& endpoint : m_model.places) {
      m_model.node_of.push_back(node(endpoint.id));
      for (const std::string& of : {endpoint.id, m_machine}) {
        if (endpoint.memory && endpoint.lane_adds_per_s <= 0) {
          endpoint.lane_adds_per_s = fastest(cells_of_sums(m_index, k_reduce_sum, of, 1)).mid;
        }
      }
    }
    if (m_options.network > 0) {
      for (const std::string& nic : m_nics) {
        m_model.nic_nodes.push_back(node(nic));
      }
    }
    m_model.network = m_options.network;
    m_model.nodes = m_nodes.size();
    m_model.machines.push_back({m_machine, 0, m_machine});
    return std::move(m_model);
  }

  void check_options() const {
    const auto check = [](double value, const char* what) {
      if (!std::isfinite(value) || value < 0) {
        fail(ErrorKind::usage,
             fmt::format("inside: {} {}: must be finite and not negative", what, value));
      }
    };
    check(m_options.network, "network traffic of");
    check(m_options.service, "service traffic of");
    check(m_options.tolerance, "tolerance of");
    const TopologyObject* const found = m_topology.find(m_machine);
    if (found == nullptr || found->kind != ObjectKind::machine) {
      std::vector<std::string> machines;
      for (const TopologyObject* const machine : m_topology.of_kind(ObjectKind::machine)) {
        machines.push_back(machine->id);
      }
      fail(ErrorKind::input,
           fmt::format(
               "profile '{}': its topology has no machine \"{}\"; {}", m_profile.name, m_machine,
               machines.empty() ? "probe the machine, or add its objects"
                                : fmt::format("those that --machine and --roles can name: {}",
                                              fmt::join(machines, ", "))));
    }
  }

  [[nodiscard]] std::vector<std::string> here(ObjectKind kind) const {
    return m_topology.ids_in(m_machine, kind);
  }

  const TopologyObject& endpoint_named(const std::string& id,
                                       std::initializer_list<ObjectKind> kinds) const {
    const TopologyObject* const object = m_topology.find(id);
    if (object == nullptr || !m_topology.is_in(*object, m_machine) ||
        std::find(kinds.begin(), kinds.end(), object->kind) == kinds.end()) {
      fail(ErrorKind::input, fmt::format("profile '{}': machine {} has no endpoint \"{}\" of the "
                                         "kind that is needed",
                                         m_profile.name, m_machine, id));
    }
    return *object;
  }

  void choose_endpoints() {
    std::vector<std::string> workers = m_options.workers;
    if (workers.empty()) {
      workers = here(ObjectKind::gpu);
    }
    const std::vector<std::string> memories = here(ObjectKind::numa_node);
    if (workers.empty()) {
      workers = memories;
    }
    if (workers.empty()) {
      fail(ErrorKind::input,
           fmt::format("profile '{}': machine {} has neither a GPU nor a NUMA node in its topology",
                       m_profile.name, m_machine));
    }
    std::vector<std::string> relays;
    if (m_options.relays) {
      relays = *m_options.relays;
    } else {
      std::copy_if(memories.begin(), memories.end(), std::back_inserter(relays),
                   [&](const std::string& id) {
                     return std::count(workers.begin(), workers.end(), id) == 0;
                   });
    }
    const auto add = [&](const std::string& id, bool worker) {
      const auto there = std::count_if(m_model.places.begin(), m_model.places.end(),
                                       [&](const Place& e) { return e.id == id; });
      const TopologyObject& object =
          endpoint_named(id, {ObjectKind::gpu, ObjectKind::numa_node, ObjectKind::memory_device});
      if (there > 0 && object.kind != ObjectKind::numa_node) {
        fail(ErrorKind::usage, fmt::format("inside: {} is named twice", id));
      }
      Place& place =
          m_model.places.emplace_back(Place{id, worker, object.kind == ObjectKind::numa_node, 0});
      if (std::count(workers.begin(), workers.end(), id) +
              std::count(relays.begin(), relays.end(), id) >
          1) {
        place.process = static_cast<std::uint64_t>(there);
      }
    };
    for (const std::string& id : workers) {
      add(id, true);
    }
    m_model.workers = workers.size();
    for (const std::string& id : relays) {
      add(id, false);
    }
    if (m_model.places.size() - m_model.workers > k_most_relays) {
      fail(ErrorKind::usage,
           fmt::format("inside: {} endpoints without a gradient; name at most {} that may sum",
                       m_model.places.size() - m_model.workers, k_most_relays));
    }
    for (const std::string& id : here(ObjectKind::link_switch)) {
      if (m_options.switches && m_topology.find(id)->sums.value_or(false)) {
        m_model.places.push_back({.id = id, .link_switch = true});
      }
    }
  }

  void choose_nics() {
    m_rates.emplace(m_index, m_machine, m_member, "");
    if (m_options.network <= 0 && m_options.service <= 0) {
      return;
    }
    m_nics = m_options.nics.empty() ? here(ObjectKind::nic) : m_options.nics;
    for (const std::string& nic : m_nics) {
      static_cast<void>(endpoint_named(nic, {ObjectKind::nic}));
    }
    if (m_nics.empty()) {
      fail(ErrorKind::input,
           fmt::format("profile '{}': machine {} has no NIC in its topology for the job's traffic",
                       m_profile.name, m_machine));
    }
  }

  std::size_t station(std::string name, const Rate& rate, std::string source,
                      std::string_view kind = "pair", std::string of = "") {
    Station& made = m_model.stations.emplace_back(
        Station{std::move(name), rate.mid, std::move(source), 0, std::min(rate.lo, rate.mid),
                std::max(rate.hi, rate.mid)});
    made.kind = kind;
    made.of = std::move(of);
    return m_model.stations.size() - 1;
  }

  std::size_t node(const std::string& id) {
    return m_nodes.try_emplace(id, m_nodes.size()).first->second;
  }

  /// Of one direction of a link; absent when its capacity is not known.
  std::optional<std::size_t> link(const LinkEnd& end) {
    const auto known = m_links.find(end);
    if (known != m_links.end()) {
      return known->second;
    }
    Rate rate = fastest(m_index, {.test = k_link_bandwidth, .from = end.from, .to = end.to});
    const char* source = k_link_bandwidth;
    if (const double described = described_bytes_per_second(m_topology, end);
        rate.mid <= 0 && described > 0) {
      rate = {described, described, described};
      source = "described";
    } else if (rate.mid <= 0) {
      rate = fastest_copy_over(end);
      source = "fastest copy";
      (rate.mid > 0 ? m_model.at_least : m_model.unknown).push_back(short_text(end));
    }
    std::optional<std::size_t> out;
    if (rate.mid > 0) {
      const auto kind = peer_link_kind(m_topology, end);
      const TopologyObject& from = *m_topology.find(end.from);
      const bool hangs = kind ? from.kind != ObjectKind::link_switch : from.parent == end.to;
      out = station(short_text(end), rate, source, kind ? name_of(*kind) : "pcie",
                    short_name(hangs ? end.from : end.to));
    }
    m_links.emplace(end, out);
    m_model.links.push_back({node(end.from), node(end.to), out});
    return out;
  }

  /// Of a GPU's own link: the fastest copy that was measured over it, which is what it is known to
  /// carry; 0 for other links, and where there was none. Pairs are measured one at a time.
  [[nodiscard]] Rate fastest_copy_over(const LinkEnd& end) {
    const auto is = [&](const std::string& id, ObjectKind kind) {
      const TopologyObject* const object = m_topology.find(id);
      return object != nullptr && object->kind == kind;
    };
    Rate best;
    if (m_options.only_known_rates ||
        (!is(end.from, ObjectKind::gpu) && !is(end.to, ObjectKind::gpu))) {
      return best;
    }
    for (const auto& [pair, rate] : measured_copies()) {
      const std::vector<LinkEnd> passed =
          rate.mid > best.mid ? m_path(pair.first, pair.second).links : std::vector<LinkEnd>();
      if (std::find(passed.begin(), passed.end(), end) != passed.end()) {
        best = rate;
      }
    }
    return best;
  }

  /// From one object of the machine to another: the fastest of all that was measured, whatever
  /// copied, by itself or beside others.
  const std::map<std::pair<std::string, std::string>, Rate>& measured_copies() {
    if (!m_copies) {
      m_copies.emplace();
      const auto is_here = [&](const std::string& id) {
        const TopologyObject* const object = m_topology.find(id);
        return object != nullptr && (id == m_machine || m_topology.is_in(*object, m_machine));
      };
      for (const Cell& cell : m_profile.cells) {
        const CellKey& key = cell.key;
        if (cell.has_value() && cell.unit == k_bytes_per_second && key.direction != k_two_way &&
            key.from != key.to && is_here(key.from) && is_here(key.to)) {
          Rate& known = (*m_copies)[{key.from, key.to}];
          known = cell.p50 > known.mid ? measured_rate(cell) : known;
        }
      }
    }
    return *m_copies;
  }

  [[nodiscard]] std::string short_name(const std::string& id) const {
    const std::string prefix = m_machine + "/";
    return id.starts_with(prefix) ? id.substr(prefix.size()) : id;
  }
  [[nodiscard]] std::string short_text(const LinkEnd& end) const {
    return short_name(end.from) + " > " + short_name(end.to);
  }

  struct Memory {
    Uses read, write, add;
  };

  /// What reading, writing and adding in a memory uses: rates of the NUMA node itself where the
  /// profile has them, else those of the whole machine.
  [[nodiscard]] Memory memory_of(const std::string& id) {
    const auto limit = [&](const char* test, const char* what) {
      std::optional<std::size_t> out;
      for (const std::string& of : {id, m_machine}) {
        const auto key = std::pair<std::string, std::string>(test, of);
        const auto known = m_memory.find(key);
        if (known != m_memory.end()) {
          return std::optional<std::size_t>(known->second);
        }
        CellKey pattern{.test = test, .from = of};
        const Rate rate = pattern.test == k_reduce_sum ? fastest(cells_of_sums(m_index, test, of))
                                                       : fastest(m_index, pattern);
        if (rate.mid > 0) {
          out = station(fmt::format("{} {}", what, short_name(of)), rate, test,
                        pattern.test == k_reduce_sum ? "sums" : "memory", short_name(of));
          m_memory.emplace(key, *out);
          return out;
        }
      }
      return out;
    };
    Memory memory;
    const auto read = limit(k_memory_read, "memory read");
    const auto write = limit(k_memory_write, "memory write");
    const auto both = limit(k_stream_copy, "memory traffic");
    const auto sums = limit(k_reduce_sum, "sums");
    const auto use = [](Uses& uses, std::optional<std::size_t> of, double amount) {
      if (of) {
        uses.push_back({*of, amount});
      }
    };
    use(memory.read, read, 1);
    use(memory.read, both, 1);
    use(memory.write, write, 1);
    use(memory.write, both, 1);
    // What comes is added to what is there: both are read, the sum is written.
    use(memory.add, read, 2);
    use(memory.add, write, 1);
    use(memory.add, both, 3);
    use(memory.add, sums, 1);
    return memory;
  }

  void processors() {
    for (const std::string& id : here(ObjectKind::numa_node)) {
      m_memories.emplace(id, memory_of(id));
    }
  }

  static void append(Uses& uses, const Uses& more, double factor = 1) {
    for (const Use& use : more) {
      const auto known = std::find_if(uses.begin(), uses.end(),
                                      [&](const Use& u) { return u.station == use.station; });
      if (known != uses.end()) {
        known->amount += factor * use.amount;
      } else {
        uses.push_back({use.station, factor * use.amount});
      }
    }
  }

  /// The links of a copy and the memories at its ends.
  Uses way(const std::string& from, const std::string& to) {
    Uses uses;
    for (const LinkEnd& end : m_path(from, to).links) {
      if (const auto of = link(end)) {
        append(uses, {{*of, 1.0}});
      }
    }
    if (const auto memory = m_memories.find(from); memory != m_memories.end()) {
      append(uses, memory->second.read);
    }
    if (const auto memory = m_memories.find(to); memory != m_memories.end()) {
      append(uses, memory->second.write);
    }
    return uses;
  }

  /// The pairs of which a copy was tried and cannot be done.
  [[nodiscard]] std::set<std::pair<std::string, std::string>> unsupported_pairs() const {
    std::set<std::pair<std::string, std::string>> pairs;
    for (const Cell& cell : m_profile.cells) {
      if (cell.status == CellStatus::unsupported &&
          std::ranges::find(k_pair_cases, cell.key.test) != k_pair_cases.end()) {
        pairs.emplace(cell.key.from, cell.key.to);
      }
    }
    return pairs;
  }

  /// The rate that the profile has of a pair itself; 0 without one.
  [[nodiscard]] Rate pair_rate(const std::string& from, const std::string& to) const {
    Rate best;
    for (const char* const test : k_pair_cases) {
      const Rate rate = fastest(m_index, {.test = test, .from = from, .to = to});
      best = rate.mid > best.mid ? rate : best;
    }
    return best;
  }

  /// Seconds of the shortest write that was measured of a pair's copies; absent without one.
  [[nodiscard]] std::optional<double> short_write(const std::string& from,
                                                  const std::string& to) const {
    std::optional<double> least;
    for (const Cell* const cell : m_index.select({.test = k_short_write, .from = from, .to = to})) {
      least = std::min(least.value_or(cell->p50), cell->p50);
    }
    return least;
  }

  void copies() {
    const std::size_t n = m_model.places.size();
    m_model.ways.assign(n, std::vector<std::optional<Uses>>(n));
    m_model.latency_s.assign(n, std::vector<double>(n, 0));
    const std::string transport =
        m_options.transport.empty() ? transport_inside(m_profile, m_model) : m_options.transport;
    const auto unsupported = unsupported_pairs();
    std::map<std::string, std::size_t> sources; // case: ways that it is known of
    for (std::size_t u = 0; u < n; ++u) {
      for (std::size_t v = 0; v < n; ++v) {
        const std::string &from = m_model.places[u].id, &to = m_model.places[v].id;
        const bool in_switch = m_model.places[u].link_switch || m_model.places[v].link_switch;
        if (u == v || (in_switch && m_path(from, to).path_class != PathClass::nv)) {
          continue;
        }
        PairWay pair =
            m_options.only_known_rates ? PairWay() : pair_way(m_index, from, to, transport);
        if (pair.measured()) {
          ++sources[pair.source];
        } else if (const Rate copied = pair_rate(from, to);
                   copied.mid > 0 || !unsupported.contains({from, to})) {
          pair.rate = copied;
          pair.source = "measured pair";
          pair.latency_s = pair.latency_s ? pair.latency_s : short_write(from, to);
        } else {
          continue;
        }
        Uses uses = way(from, to);
        // A pair that is as fast as what it passes is no limit of its own.
        if (!m_options.only_known_rates && pair.rate.mid > 0 && std::isfinite(pair.rate.mid) &&
            pair.slower_than(alone(uses))) {
          uses.push_back(
              {station(fmt::format("copy {}", short_text({from, to})), pair.rate, pair.source),
               1.0});
          m_model.stations.back().busy = std::move(pair.busy);
        }
        m_model.ways[u][v] = std::move(uses);
        m_model.latency_s[u][v] = pair.latency_s.value_or(0);
      }
      const auto memory = m_memories.find(m_model.places[u].id);
      m_model.add.push_back(memory == m_memories.end() ? Uses{} : memory->second.add);
      if (memory == m_memories.end()) {
        gpu_sums(u);
      }
    }
    if (!m_options.only_known_rates) {
      both_ways(transport);
    }
    for (const auto& [test, ways] : sources) {
      m_model.pair_sources.push_back(fmt::format("{}: {} ways inside {}", test, ways, m_machine));
    }
  }

  /// What two places move while both send, each direction counted: by what writes do, else by what
  /// copies do. Nothing where neither was measured.
  [[nodiscard]] PairWay together(const std::string& a, const std::string& b,
                                 const std::string& transport) const {
    const auto cells_of = [&](const char* test) {
      std::vector<const Cell*> cells;
      for (const auto& [from, to] : {std::pair(&a, &b), std::pair(&b, &a)}) {
        for (const Cell* const cell :
             m_index.select({.test = test, .from = *from, .to = *to, .direction = "two_way"})) {
          if (is_over(*cell, transport) && cell->p50 > 0) {
            cells.push_back(cell);
          }
        }
      }
      return cells;
    };
    if (BusyCurve busy = busy_curve(cells_of(k_pair_bandwidth), 2); !busy.empty()) {
      const double rate = busy.bytes_per_s();
      return {k_pair_bandwidth, {rate, rate, rate}, std::move(busy), std::nullopt};
    }
    for (const char* const test : {k_host_device_two_way_ce, k_device_two_way_ce}) {
      for (const Cell* const cell : cells_of(test)) {
        return {test, measured_rate(*cell), {}, std::nullopt};
      }
    }
    return {};
  }

  /// What the slowest station of a way carries of it alone; infinite where none is known.
  [[nodiscard]] double alone(const Uses& uses) const {
    double rate = std::numeric_limits<double>::infinity();
    for (const Use& use : uses) {
      rate = std::min(rate, m_model.stations[use.station].bytes_per_second / use.amount);
    }
    return rate;
  }

  /// Two places that both send may move less than each direction alone: a station of both.
  void both_ways(const std::string& transport) {
    std::map<std::pair<std::string, std::string>, std::size_t> known;
    for (std::size_t u = 0; u < m_model.places.size(); ++u) {
      for (std::size_t v = u + 1; v < m_model.places.size(); ++v) {
        std::optional<Uses>&there = m_model.ways[u][v], &back = m_model.ways[v][u];
        const std::string &a = m_model.places[u].id, &b = m_model.places[v].id;
        PairWay both = there && back ? together(a, b, transport) : PairWay();
        if (!both.measured() || !both.slower_than(alone(*there) + alone(*back))) {
          continue;
        }
        const auto [at, added] = known.try_emplace(std::minmax(a, b), m_model.stations.size());
        if (added) {
          station(fmt::format("both ways {} {}", short_name(a), short_name(b)), both.rate,
                  both.source);
          m_model.stations.back().busy = std::move(both.busy);
        }
        there->push_back({at->second, 1.0});
        back->push_back({at->second, 1.0});
      }
    }
  }

  /// A GPU sums at a rate that the profile may have, and a sum takes some time to start.
  void gpu_sums(std::size_t endpoint) {
    const std::string& id = m_model.places[endpoint].id;
    const std::vector<const Cell*> cells = cells_of_sums(m_index, k_gpu_reduce, id);
    if (const Rate rate = fastest(cells); rate.mid > 0) {
      m_model.add[endpoint].push_back(
          {station("sums " + short_name(id), rate, k_gpu_reduce, "sums", short_name(id)), 1.0});
      if (BusyCurve busy = busy_curve(cells); busy.points().size() > 1) {
        m_model.stations.back().busy = std::move(busy);
      }
    }
  }

  /// A port, or all of them (`of` empty), each direction; `before` begins their names.
  std::pair<std::size_t, std::size_t> port_stations(const char* before, const std::string& of,
                                                    const Rate& rate,
                                                    const char* source = k_port_bandwidth) {
    const std::string name = before + of + (of.empty() ? "" : " ");
    const auto add = [&](const char* direction) {
      return station(name + direction, rate, source, "port", of);
    };
    const auto [at, added] = m_port_stations.try_emplace(name);
    if (added) {
      at->second = {add("out"), add("in")};
    }
    return at->second;
  }

  /// The port of a NIC, and what limits all ports of the machine; both directions.
  Uses port(const std::string& nic) {
    Uses uses;
    const auto add = [&](const std::string& of, const Rate& rate, const char* source) {
      const auto [out, in] = port_stations("port ", of, rate, source);
      append(uses, {{out, 1.0}, {in, 1.0}});
    };
    if (m_rates->known(nic)) {
      const std::string port = m_rates->port_of(nic);
      add(short_name(port), m_rates->of(port),
          m_rates->measured(port) ? k_port_bandwidth : "described");
    }
    if (const std::optional<Rate> behind = m_rates->behind()) {
      add("", *behind, k_port_bandwidth);
    }
    return uses;
  }

  void exits() {
    for (const Place& endpoint : m_model.places) {
      std::vector<Exit> ways;
      if (m_options.network <= 0) {
        ways.resize(endpoint.link_switch ? 0 : 1); // a switch keeps no sum
      } else {
        for (const std::string& nic : m_nics) {
          const bool direct = !endpoint.memory && reaches_network(endpoint) &&
                              m_path(endpoint.id, nic).path_class <= PathClass::pxb;
          if (endpoint.memory || direct) {
            Uses uses;
            append(uses, way(endpoint.id, nic), m_options.network);
            append(uses, way(nic, endpoint.id), m_options.network);
            append(uses, port(nic), m_options.network);
            ways.push_back({nic, std::move(uses)});
          }
        }
      }
      m_model.exits.push_back(std::move(ways));
    }
  }

  /// A summation service adds what comes to what is there, in the memory nearest to the NIC, and
  /// sends as much.
  void service() {
    if (m_options.service <= 0) {
      return;
    }
    for (const std::string& nic : m_nics) {
      const std::string nearest = nearest_memory(nic);
      if (nearest.empty()) {
        fail(ErrorKind::input, fmt::format("profile '{}': machine {} has no NUMA node in its "
                                           "topology for a summation service",
                                           m_profile.name, m_machine));
      }
      Uses uses = way(nic, nearest);
      append(uses, way(nearest, nic));
      append(uses, m_memories.at(nearest).add);
      append(uses, port(nic));
      for (const Use& use : uses) {
        m_model.stations[use.station].background +=
            m_options.service / static_cast<double>(m_nics.size()) * use.amount;
      }
    }
  }

  OpenedMachine::Port add_port(const char* before, const std::string& of, const Rate& rate,
                               std::size_t at) {
    const auto [out, in] = port_stations(before, of, rate);
    m_opened.ports.push_back({at, out, in});
    return m_opened.ports.back();
  }

  /// The NICs that are nearest to an endpoint.
  [[nodiscard]] std::vector<std::string> nearest_nics(const std::string& id) const {
    std::vector<std::string> nearest;
    std::pair<PathClass, std::size_t> least;
    for (const std::string& nic : m_nics) {
      const Path path = m_path(id, nic);
      const std::pair distance(path.path_class, path.links.size());
      if (nearest.empty() || distance < least) {
        nearest.clear();
        least = distance;
      }
      if (distance == least) {
        nearest.push_back(nic);
      }
    }
    return nearest;
  }

  [[nodiscard]] std::vector<std::string> nics_of(const Place& place) const {
    if (!reaches_network(place)) {
      return {};
    }
    return m_options.every_nic ? m_nics : nearest_nics(place.id);
  }

  /// A way between a place and a NIC: what a NIC may not reach directly goes through the memory
  /// next to it.
  Uses nic_way(const std::string& from, const std::string& to, const std::string& nic) {
    Uses uses = way(from, to);
    const std::string& place = from == nic ? to : from;
    const bool direct =
        m_memories.contains(place) || m_path(place, nic).path_class <= PathClass::pxb;
    if (const std::string memory = direct ? "" : nearest_memory(nic); !memory.empty()) {
      append(uses, m_memories.at(memory).write);
      append(uses, m_memories.at(memory).read);
    }
    return uses;
  }

  [[nodiscard]] std::string nearest_memory(const std::string& id) const {
    std::string nearest;
    std::size_t fewest = 0;
    for (const auto& [memory, rates] : m_memories) {
      const std::size_t links = m_path(id, memory).links.size();
      if (nearest.empty() || links < fewest) {
        nearest = memory;
        fewest = links;
      }
    }
    return nearest;
  }

  /// What a write uses inside the machine before it leaves it from a place, or after it has entered
  /// it for that place.
  [[nodiscard]] std::pair<Uses, Uses> memory_ways(const Place& place) const {
    const auto memory = m_memories.find(place.id);
    return memory == m_memories.end() ? std::pair<Uses, Uses>()
                                      : std::pair(memory->second.read, memory->second.write);
  }

  [[nodiscard]] bool reaches_network(const Place& place) const {
    return !place.link_switch && (place.memory || m_options.gpu_direct);
  }

  /// All places of the machine by its port as a whole; by nothing where its rate is not known.
  void through_one_port(const char* before, const Rate& rate) {
    std::optional<OpenedMachine::Port> port;
    if (rate.mid > 0) {
      port = add_port(before, "", rate, node(m_machine + "/port"));
    }
    for (const Place& place : m_model.places) {
      std::vector<Uses>&leave = m_opened.leave.emplace_back(),
      &enter = m_opened.enter.emplace_back();
      if (!reaches_network(place)) {
        continue;
      }
      auto [out, in] = memory_ways(place);
      if (port) {
        append(out, {{port->out, 1.0}});
        append(in, {{port->in, 1.0}});
        m_model.links.push_back({node(place.id), port->node, std::nullopt});
        m_model.links.push_back({port->node, node(place.id), std::nullopt});
      }
      leave.push_back(out);
      enter.push_back(in);
    }
  }

  /// The machine's place by each of its ports; by all of them together as well where that is less
  /// than each alone: the machine behind them is the limit.
  void through_each(const MachinePort& port) {
    const OpenedMachine::Port together = m_opened.ports.front();
    const double share = port.together.mid / static_cast<double>(port.each.size());
    double alone = 0;
    for (const auto& [name, measured] : port.each) {
      alone += std::max(measured, share);
    }
    const bool together_binds = bind_together(port.together.mid, alone);
    for (const auto& [name, measured] : port.each) {
      const double rate = std::max(measured, share);
      const Rate each{rate, rate, rate};
      auto [out, in] = memory_ways(m_model.places.front());
      append(out, {{station(name + " out", each, k_single_port, "port", name), 1.0}});
      if (together_binds) {
        append(out, {{together.out, 1.0}});
        append(in, {{together.in, 1.0}});
      }
      append(in, {{station(name + " in", each, k_single_port, "port", name), 1.0}});
      m_opened.leave_by_port.push_back(std::move(out));
      m_opened.enter_by_port.push_back(std::move(in));
    }
  }

  /// How every place leaves the machine and is reached from outside.
  void ports(const std::string& transport) {
    if (std::none_of(m_model.places.begin(), m_model.places.end(),
                     [&](const Place& place) { return reaches_network(place); })) {
      fail(ErrorKind::input,
           fmt::format("profile '{}': no NUMA node of machine {} is part of the job, and without "
                       "one its GPUs do not reach the network; leave --gpu-direct=no out, add a "
                       "NUMA node to its topology, or name it in the roles",
                       m_profile.name, m_machine));
    }
    m_rates.emplace(m_index, m_machine, m_member, transport);
    m_nics = m_rates->nics();
    if (m_nics.empty()) {
      through_one_port("port ", m_rates->whole());
      return;
    }
    std::optional<std::pair<std::size_t, std::size_t>> together;
    if (const std::optional<Rate> behind = m_rates->behind()) {
      together = port_stations("port ", "", *behind);
    }
    std::map<std::string, OpenedMachine::Port> made;
    const auto port_of = [&](const std::string& nic) {
      const std::string port = m_rates->port_of(nic);
      if (!made.contains(port)) {
        made.emplace(port, add_port("port ", short_name(port), m_rates->of(port), node(port)));
      }
      if (port != nic) { // functions of one card, one cable
        m_model.links.push_back({node(nic), node(port), std::nullopt});
        m_model.links.push_back({node(port), node(nic), std::nullopt});
      }
      return made.at(port);
    };
    for (const Place& place : m_model.places) {
      std::vector<Uses>&leave = m_opened.leave.emplace_back(),
      &enter = m_opened.enter.emplace_back();
      m_opened.distance.push_back(PathClass::self);
      for (const std::string& nic : nics_of(place)) {
        m_opened.distance.back() = m_path(place.id, nic).path_class;
        const OpenedMachine::Port port = port_of(nic);
        leave.push_back(nic_way(place.id, nic, nic));
        append(leave.back(), {{port.out, 1.0}});
        enter.push_back({{port.in, 1.0}});
        append(enter.back(), nic_way(nic, place.id, nic));
        if (together) {
          append(leave.back(), {{together->first, 1.0}});
          append(enter.back(), {{together->second, 1.0}});
        }
      }
    }
  }

  /// Workers whose PCIe way to each other passes no host bridge share a switch.
  void groups() {
    std::vector<bool> placed(m_model.workers, false);
    for (std::size_t v = 0; v < m_model.workers; ++v) {
      if (placed[v]) {
        continue;
      }
      std::vector<std::size_t> group;
      for (std::size_t w = v; w < m_model.workers; ++w) {
        if (!placed[w] && (w == v || share_switch(v, w))) {
          placed[w] = true;
          group.push_back(w);
        }
      }
      m_model.groups.push_back(std::move(group));
    }
  }

  [[nodiscard]] bool share_switch(std::size_t v, std::size_t w) const {
    const Place& a = m_model.places[v];
    const Place& b = m_model.places[w];
    return !a.memory && !b.memory && m_tree_path(a.id, b.id).path_class <= PathClass::pxb;
  }

  const CellIndex& m_index;
  const Profile& m_profile;
  const Topology& m_topology;
  PathOf m_path = paths_of(m_topology), m_tree_path = paths_of(m_topology, true);
  const std::string& m_machine;
  std::string m_member; ///< which of the group's machines it is, where those have names
  const InsideOptions& m_options;
  Network m_model;
  OpenedMachine m_opened;
  std::vector<std::string> m_nics;
  std::optional<NicRates> m_rates;
  std::map<std::string, std::pair<std::size_t, std::size_t>> m_port_stations; ///< by name
  std::map<std::string, std::size_t> m_nodes;
  std::map<LinkEnd, std::optional<std::size_t>> m_links;
  std::optional<std::map<std::pair<std::string, std::string>, Rate>> m_copies; ///< once asked for
  std::map<std::pair<std::string, std::string>, std::size_t> m_memory; ///< resources by case and id
  std::map<std::string, Memory> m_memories;                            ///< by NUMA node
};

} // namespace

Network network_inside_machine(const Profile& profile, const std::string& machine,
                               const InsideOptions& options) {
  return Builder(CellIndex(profile), machine, options).build();
}

OpenedMachine open_machine(const CellIndex& index, const OpenMachine& machine,
                           const std::string& transport) {
  InsideOptions options;
  options.workers = machine.workers;
  options.relays = machine.relays;
  options.gpu_direct = machine.gpu_direct;
  options.only_known_rates = machine.only_known_rates;
  options.every_nic = machine.every_nic;
  options.switches = machine.switches;
  const MachineGroup* const group = group_named(index.profile(), machine.group);
  const bool named = group != nullptr && machine.number < group->members.size();
  Builder builder(index, machine.group, options, named ? group->members[machine.number] : "");
  if (machine.workers.empty() && machine.relays.empty()) {
    return builder.closed(machine.works, machine.port, transport);
  }
  return builder.open(transport);
}

} // namespace reckon
