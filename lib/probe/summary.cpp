// SPDX-License-Identifier: Apache-2.0
#include "documents/contention.hpp"
#include "probe/bandwidth.hpp"
#include "probe/curve.hpp"
#include "probe/fabric.hpp"
#include "probe/gpu.hpp"
#include "probe/latency.hpp"
#include "probe/probe.hpp"
#include "probe/reduce.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

namespace reckon {
namespace {

/// "m0/numa1" -> "numa1"
std::string short_id(const std::string& id) {
  const std::size_t slash = id.find('/');
  return slash == std::string::npos ? id : id.substr(slash + 1);
}

/// Ids in the order of the topology (of `seen` otherwise: imported profiles may have no tree).
std::vector<std::string> in_order(const Profile& profile, const std::set<std::string>& seen) {
  std::vector<std::string> ids;
  for (const TopologyObject& o : profile.topology.objects) {
    if (seen.contains(o.id)) {
      ids.push_back(o.id);
    }
  }
  return ids.size() == seen.size() ? ids : std::vector<std::string>(seen.begin(), seen.end());
}

/// Aligned columns: the first to the left, the others to the right.
class Grid {
public:
  void row(std::vector<std::string> cells) { m_rows.push_back(std::move(cells)); }
  [[nodiscard]] bool empty() const { return m_rows.size() < 2; }
  [[nodiscard]] std::string text(const std::string& title) const {
    std::vector<std::size_t> width;
    for (const auto& row : m_rows) {
      width.resize(std::max(width.size(), row.size()));
      for (std::size_t i = 0; i < row.size(); ++i) {
        width[i] = std::max(width[i], row[i].size());
      }
    }
    std::string out = "\n" + title + "\n";
    for (const auto& row : m_rows) {
      std::string line = "  ";
      for (std::size_t i = 0; i < row.size(); ++i) {
        line += i == 0 ? fmt::format("{:<{}}", row[i], width[i])
                       : fmt::format("  {:>{}}", row[i], width[i]);
      }
      out += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
    }
    return out;
  }

private:
  std::vector<std::vector<std::string>> m_rows;
};

std::string mark(const Cell& cell) {
  return cell.status == CellStatus::noisy ? "~" : "";
}

std::string rate(const Cell* cell) {
  return cell == nullptr ? "N/A" : fmt::format("{:.2f}{}", cell->p50 * 1e-9, mark(*cell));
}

std::string nanoseconds(const Cell* cell) {
  return cell == nullptr ? "N/A" : fmt::format("{:.1f}{}", cell->p50 * 1e9, mark(*cell));
}

const Cell* only_one(const std::vector<const Cell*>& cells) {
  return cells.empty() ? nullptr : cells.front();
}

/// Row: source, column: destination.
std::string matrix(const Profile& profile, const CellKey& pattern, const std::string& title,
                   std::string (*show)(const Cell*)) {
  std::set<std::string> rows;
  std::set<std::string> columns;
  std::map<std::pair<std::string, std::string>, const Cell*> values;
  for (const Cell& cell : profile.cells) { // also what has no value: no row may be missing
    if (cell.key.test == pattern.test) {
      rows.insert(cell.key.from);
      columns.insert(cell.key.to);
    }
  }
  for (const Cell* cell : profile.select(pattern)) {
    // Of cells that differ in something else, the one with most threads, then most bytes, is last.
    values[{cell->key.from, cell->key.to}] = cell;
  }
  Grid grid;
  std::vector<std::string> head{"from\\to"};
  for (const std::string& to : in_order(profile, columns)) {
    head.push_back(short_id(to));
  }
  grid.row(std::move(head));
  for (const std::string& from : in_order(profile, rows)) {
    std::vector<std::string> row{short_id(from)};
    for (const std::string& to : in_order(profile, columns)) {
      const auto found = values.find({from, to});
      row.push_back(show(found == values.end() ? nullptr : found->second));
    }
    grid.row(std::move(row));
  }
  if (values.empty()) {
    return "";
  }
  std::string text = grid.text(title);
  if (rows.size() * columns.size() > 4) {
    const auto [low, high] =
        std::minmax_element(values.begin(), values.end(), [](const auto& a, const auto& b) {
          return a.second->p50 < b.second->p50;
        });
    const auto name = [](const auto& entry) {
      return fmt::format("{} -> {}", short_id(entry.first.first), short_id(entry.first.second));
    };
    text += fmt::format("  least {} ({}), most {} ({})\n", show(low->second), name(*low),
                        show(high->second), name(*high));
  }
  return text;
}

std::string header(const Profile& profile) {
  const auto fact = [&](const char* key) {
    const auto it = profile.context.find(key);
    return it == profile.context.end() ? std::string() : it->second;
  };
  std::string text = profile.name;
  const char* separator = ": ";
  const auto add = [&](const std::string& part) {
    if (!part.empty()) {
      text += separator + part;
      separator = ", ";
    }
  };
  add(fact("cpu"));
  for (const MachineGroup& m : profile.machines) {
    add(m.cores > 0 ? fmt::format("{} core{}", m.cores, m.cores == 1 ? "" : "s") : "");
    const auto nodes = profile.topology.of_kind(ObjectKind::numa_node).size();
    add(fmt::format("{} NUMA node{}", nodes, nodes == 1 ? "" : "s"));
    add(m.memory_bytes > 0 ? to_text(Bytes(m.memory_bytes)) : "");
  }
  add(fact("kernel"));
  add(fact("virtual_machine") == "yes" ? "virtual machine" : "");
  text += "\n";
  std::map<CellStatus, std::size_t> count;
  for (const Cell& cell : profile.cells) {
    ++count[cell.status];
  }
  text += fmt::format("{} cells", profile.cells.size());
  separator = ": ";
  for (const auto& [status, n] : count) {
    add(fmt::format("{} {}", n, name_of(status)));
  }
  if (!fact("took").empty()) {
    text += fmt::format("; took {}", fact("took"));
  }
  if (fact("interrupted") == "yes") {
    text += "; interrupted";
  }
  if (!fact("drift").empty()) {
    text += fmt::format("; drift {}", fact("drift").substr(0, fact("drift").find(" (")));
  }
  return text + "\n";
}

std::string memory_latency(const Profile& profile) {
  CellKey pattern;
  pattern.test = k_memory_latency;
  const std::vector<const Cell*> cells = profile.select(pattern);
  if (cells.empty()) {
    return "";
  }
  std::uint64_t largest = 0;
  for (const Cell* cell : cells) {
    largest = std::max(largest, cell->key.bytes);
  }
  pattern.bytes = largest;
  std::string text = matrix(profile, pattern,
                            fmt::format("{} (ns): thread on (row), {} of memory on (column)",
                                        k_memory_latency, to_text(Bytes(largest))),
                            &nanoseconds);
  Grid grid;
  std::vector<std::string> sizes{"footprint"};
  std::vector<std::string> times{"ns"};
  for (const Cell* cell : cells) {
    const std::uint64_t bytes = cell->key.bytes;
    if (cell->key.from == cells.front()->key.from && cell->key.from == cell->key.to &&
        (bytes & (bytes - 1)) == 0) {
      sizes.push_back(to_text(Bytes(bytes)));
      times.push_back(fmt::format("{:.1f}", cell->p50 * 1e9));
      if (sizes.size() == 9) {
        grid.row(std::exchange(sizes, {"footprint"}));
        grid.row(std::exchange(times, {"ns"}));
      }
    }
  }
  if (sizes.size() > 1) {
    grid.row(std::move(sizes));
    grid.row(std::move(times));
  }
  const auto knee = profile.context.find("last_level_cache");
  return text + grid.text(fmt::format(
                    "by footprint, on {}{}", short_id(cells.front()->key.from),
                    knee == profile.context.end()
                        ? ""
                        : fmt::format("; one core's last-level cache ends at {}", knee->second)));
}

/// One line an operation and direction, one column a number of threads; of one pair of nodes.
std::string pair_table(const Profile& profile, const std::string& from, const std::string& to) {
  const std::vector<std::pair<const char*, const char*>> operations{
      {k_numa_copy, "copy"}, {k_numa_read, "read"}, {k_numa_write, "write"}};
  std::set<int> threads;
  CellKey pattern;
  pattern.from = from;
  pattern.to = to;
  for (const auto& [test, name] : operations) {
    pattern.test = test;
    for (const Cell* cell : profile.select(pattern)) {
      threads.insert(cell->key.threads);
    }
  }
  Grid grid;
  std::vector<std::string> head{""};
  for (const int n : threads) {
    head.push_back(fmt::format("{} thread{}", n, n == 1 ? "" : "s"));
  }
  head.emplace_back("ceiling");
  grid.row(std::move(head));
  for (const auto& [test, name] : operations) {
    for (const char* const direction : {"one_way", "two_way"}) {
      std::vector<std::string> row{
          fmt::format("{}{}", name, std::string_view(direction) == "two_way" ? ", both ways" : "")};
      bool any = false;
      std::string ceiling;
      for (const int n : threads) {
        pattern.test = test;
        pattern.direction = direction;
        pattern.threads = n;
        const Cell* const cell = only_one(profile.select(pattern));
        any = any || cell != nullptr;
        row.push_back(cell == nullptr ? "" : rate(cell));
        if (cell != nullptr && cell->ceiling) {
          ceiling = fmt::format("{:.0f} % of {:.2f}", 100 * cell->p50 / cell->ceiling->value,
                                cell->ceiling->value * 1e-9);
        }
      }
      row.push_back(ceiling);
      if (any) {
        grid.row(std::move(row));
      }
    }
  }
  return grid.empty() ? ""
                      : grid.text(fmt::format("numa_to_numa, {} to {} (GB/s, each byte counted "
                                              "once)",
                                              short_id(from), short_id(to)));
}

std::string numa(const Profile& profile) {
  CellKey pattern;
  pattern.test = k_numa_copy;
  std::set<std::string> from;
  for (const Cell* cell : profile.select(pattern)) {
    from.insert(cell->key.from);
  }
  std::string text;
  if (from.size() > 1) {
    pattern.direction = "one_way";
    for (const char* const test : {k_numa_copy, k_numa_read, k_numa_write}) {
      pattern.test = test;
      text += matrix(profile, pattern, fmt::format("{} (GB/s), all threads", test), &rate);
    }
  }
  for (const std::string& node : in_order(profile, from)) {
    text += pair_table(profile, node, node);
    break; // the others are alike, and the matrices have them
  }
  return text;
}

std::string stream(const Profile& profile) {
  Grid grid;
  std::set<int> threads;
  CellKey pattern;
  for (const char* const test : {k_stream_copy, k_stream_add}) {
    pattern.test = test;
    for (const Cell* cell : profile.select(pattern)) {
      if (cell->key.from.find('/') == std::string::npos) {
        threads.insert(cell->key.threads);
      }
    }
  }
  std::vector<std::string> head{"threads"};
  for (const int n : threads) {
    head.push_back(fmt::format("{}", n));
  }
  grid.row(std::move(head));
  for (const char* const test : {k_stream_copy, k_stream_add}) {
    std::vector<std::string> row{test};
    for (const int n : threads) {
      pattern.test = test;
      pattern.threads = n;
      row.push_back(rate(only_one(profile.select(pattern))));
    }
    grid.row(std::move(row));
  }
  return threads.empty() ? "" : grid.text("memory traffic (GB/s, reads and writes counted)");
}

std::string curve(const Profile& profile) {
  CellKey pattern;
  pattern.test = k_host_memcpy;
  Grid grid;
  grid.row({"bytes", "warm", "", "cold", ""});
  for (const std::uint64_t bytes :
       {std::uint64_t{64}, std::uint64_t{4} << 10U, std::uint64_t{64} << 10U,
        std::uint64_t{1} << 20U, std::uint64_t{16} << 20U, std::uint64_t{256} << 20U}) {
    pattern.bytes = bytes;
    std::vector<std::string> row{to_text(Bytes(bytes))};
    bool any = false;
    for (const char* const state : {"warm", "cold"}) {
      pattern.state = state;
      const Cell* const cell = only_one(profile.select(pattern));
      any = any || cell != nullptr;
      row.push_back(cell == nullptr ? "N/A" : to_text(Seconds(cell->p50)) + mark(*cell));
      row.push_back(cell == nullptr ? ""
                                    : fmt::format("{:.2f} GB/s",
                                                  static_cast<double>(bytes) / cell->p50 * 1e-9));
    }
    if (any) {
      grid.row(std::move(row));
    }
  }
  if (grid.empty()) {
    return "";
  }
  std::string text = grid.text(fmt::format("{}, one thread", k_host_memcpy));
  for (const Fit& fit : profile.fits) {
    if (fit.key.test == k_host_memcpy) {
      text += fmt::format("  {}: {} segment{}, 90 % of the best rate from {}\n", fit.key.state,
                          fit.segments.size(), fit.segments.size() == 1 ? "" : "s",
                          to_text(Bytes(static_cast<std::uint64_t>(fit.knee_bytes))));
    }
  }
  return text;
}

/// Rows by `name`, columns by threads.
std::string
by_threads(const Profile& profile, const CellKey& base, const std::string& title,
           const std::vector<std::pair<std::string, std::function<void(CellKey&)>>>& rows) {
  std::set<int> threads;
  for (const Cell* cell : profile.select(base)) {
    threads.insert(cell->key.threads);
  }
  Grid grid;
  std::vector<std::string> head{"threads"};
  for (const int n : threads) {
    head.push_back(fmt::format("{}", n));
  }
  grid.row(std::move(head));
  for (const auto& [name, choose] : rows) {
    CellKey pattern = base;
    choose(pattern);
    std::vector<std::string> row{name};
    for (const int n : threads) {
      pattern.threads = n;
      row.push_back(rate(only_one(profile.select(pattern))));
    }
    grid.row(std::move(row));
  }
  return threads.empty() ? "" : grid.text(title);
}

std::string reduction(const Profile& profile) {
  CellKey base;
  base.test = k_reduce_sum;
  base.bytes = std::uint64_t{1} << 20U;
  std::vector<std::pair<std::string, std::function<void(CellKey&)>>> rows;
  for (const char* const dtype : {"fp32", "fp16", "bf16"}) {
    for (const int sources : {2, 8}) {
      rows.emplace_back(fmt::format("{}, {} operands", dtype, sources), [=](CellKey& key) {
        key.dtype = dtype;
        key.sources = sources;
      });
    }
  }
  std::string text = by_threads(
      profile, base, "reduce_sum (GB/s of incoming gradients), parts of 1 MiB, cold", rows);
  base.test = k_sum_and_send;
  rows.clear();
  for (const Stores stores : {Stores::cached, Stores::streaming}) {
    for (const int sources : {2, 8}) {
      rows.emplace_back(fmt::format("{} stores, {} operands", name_of(stores), sources),
                        [=](CellKey& key) {
                          key.operation = name_of(stores);
                          key.sources = sources;
                        });
    }
  }
  text += by_threads(
      profile, base,
      "sum_and_send (GB/s of incoming gradients), parts of 1 MiB that are sent at once", rows);
  base = {};
  base.test = k_optimizer_step;
  rows.clear();
  for (const char* const operation : {"sgd", "momentum", "rmsprop", "adam"}) {
    rows.emplace_back(operation, [=](CellKey& key) { key.operation = operation; });
  }
  return text + by_threads(profile, base, "optimizer_step (GB/s of fp32 parameters), cold", rows);
}

/// The best rate of a curve of times, as "12.34 at 1 MiB".
std::string best_rate(const std::vector<const Cell*>& cells) {
  const Cell* best = nullptr;
  const auto rate_of = [](const Cell& c) { return static_cast<double>(c.key.bytes) / c.p50; };
  for (const Cell* cell : cells) {
    best = best == nullptr || rate_of(*cell) > rate_of(*best) ? cell : best;
  }
  return best == nullptr ? "N/A"
                         : fmt::format("{:.2f}{} at {}", rate_of(*best) * 1e-9, mark(*best),
                                       to_text(Bytes(best->key.bytes)));
}

std::string transports(const Profile& profile) {
  std::set<std::string> names;
  std::set<int> pairs;
  CellKey pattern;
  for (const char* const test : {k_fabric_latency, k_fabric_write, k_fabric_aggregate}) {
    pattern.test = test;
    for (const Cell* cell : profile.select(pattern)) {
      names.insert(cell->key.transport);
      if (cell->key.pairs > 0) {
        pairs.insert(cell->key.pairs);
      }
    }
  }
  if (names.empty()) {
    return "";
  }
  Grid grid;
  grid.row({"transport", "latency", "in flight", "one way", "both ways, each"});
  for (const std::string& name : names) {
    pattern = {};
    pattern.transport = name;
    pattern.test = k_fabric_latency;
    const Cell* const latency = only_one(profile.select(pattern));
    pattern.test = k_fabric_write;
    pattern.direction = "one_way";
    const std::vector<const Cell*> one_way = profile.select(pattern);
    pattern.direction = "two_way";
    const std::vector<const Cell*> two_way = profile.select(pattern);
    const Cell* const any = !two_way.empty() ? two_way[0] : only_one(one_way);
    grid.row({name, latency == nullptr ? "N/A" : to_text(Seconds(latency->p50)) + mark(*latency),
              any == nullptr ? "N/A" : fmt::format("{}", any->key.in_flight), best_rate(one_way),
              best_rate(two_way)});
  }
  std::string text = grid.text("writes between two processes (best GB/s and its size, one pair)");
  for (const char* const direction : {"two_way", "one_way"}) {
    Grid together;
    std::vector<std::string> head{"pairs"};
    for (const int n : pairs) {
      head.push_back(fmt::format("{}", n));
    }
    together.row(std::move(head));
    for (const std::string& name : names) {
      std::vector<std::string> row{name};
      for (const int n : pairs) {
        pattern = {};
        pattern.test = k_fabric_aggregate;
        pattern.transport = name;
        pattern.direction = direction;
        pattern.pairs = n;
        pattern.bytes = std::uint64_t{1} << 20U;
        pattern.state = "cold";
        row.push_back(rate(only_one(profile.select(pattern))));
      }
      together.row(std::move(row));
    }
    if (!pairs.empty()) {
      text += together.text(fmt::format(
          "{} of all pairs together (GB/s, {}), writes of 1 MiB", k_fabric_aggregate,
          std::string_view(direction) == "two_way" ? "both directions summed" : "one direction"));
    }
  }
  return text;
}

/// Rates of the largest copies, and what is not there.
std::string gpus(const Profile& profile) {
  std::string text;
  CellKey pattern;
  pattern.direction = "one_way";
  for (const auto& [test, state] :
       {std::pair{k_host_to_device_ce, "pinned"}, std::pair{k_device_to_host_ce, "pinned"},
        std::pair{k_device_write_ce, "peer"}, std::pair{k_device_write_ce, "staged"},
        std::pair{k_device_read_ce, "peer"}}) {
    pattern.test = test;
    pattern.state = state;
    text += matrix(profile, pattern, fmt::format("{} (GB/s, {})", test, state), &rate);
  }
  const auto left_out = profile.context.find("gpus_left_out");
  if (left_out != profile.context.end()) {
    text += fmt::format("\nno GPU measured: {}\n", left_out->second);
  }
  return text;
}

/// One line a communication and size, one column a computation.
std::string contention(const Profile& profile) {
  std::set<std::string> operations;
  std::map<CellKey, std::map<std::string, std::string>> rows;
  for (const Contention& c : contention_of(profile, k_contention_communication)) {
    operations.insert(c.together->key.operation);
    rows[c.alone->key][c.together->key.operation] =
        fmt::format("{:.2f}{}", c.factor,
                    mark(c.together->status == CellStatus::noisy ? *c.together : *c.alone));
  }
  Grid grid;
  std::vector<std::string> head{"communication", "threads", "size"};
  head.insert(head.end(), operations.begin(), operations.end());
  grid.row(std::move(head));
  for (const auto& [key, factors] : rows) {
    std::vector<std::string> row{
        key.sources > 0 ? "sum on " + short_id(key.from)
                        : fmt::format("copy {} -> {}", short_id(key.from), short_id(key.to)),
        fmt::format("{}", key.threads), to_text(Bytes(key.bytes))};
    for (const std::string& operation : operations) {
      const auto found = factors.find(operation);
      row.push_back(found == factors.end() ? "N/A" : found->second);
    }
    grid.row(std::move(row));
  }
  return rows.empty()
             ? ""
             : grid.text("contention: how many times longer a communication takes beside a "
                         "computation");
}

} // namespace

std::string summary_of(const Profile& profile) {
  CellKey cores;
  cores.test = k_core_to_core;
  std::string text = header(profile);
  text += matrix(profile, cores, fmt::format("{} (ns, one way)", k_core_to_core), &nanoseconds);
  text += memory_latency(profile) + stream(profile) + numa(profile) + curve(profile) +
          reduction(profile) + contention(profile) + transports(profile) + gpus(profile);
  if (std::any_of(profile.cells.begin(), profile.cells.end(),
                  [](const Cell& c) { return c.status == CellStatus::noisy; })) {
    text += "\n~ noisy: varied much or was disturbed; the cell's reason in the profile says how\n";
  }
  return text;
}

} // namespace reckon
