// SPDX-License-Identifier: Apache-2.0
#include "network/pairs.hpp"

#include "core/error.hpp"
#include "documents/cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

namespace reckon {
namespace {

/// Cells of a case from one machine to another with a value, in order of size; of the first
/// transport that there is when `transport` is empty.
std::vector<const Cell*> pair_cells(const CellIndex& index, const char* test,
                                    const std::string& from, const std::string& to,
                                    std::string_view transport, const char* direction) {
  std::vector<const Cell*> cells = index.select({.test = test,
                                                 .from = from,
                                                 .to = to,
                                                 .transport = std::string(transport),
                                                 .direction = direction});
  std::sort(cells.begin(), cells.end(), [](const Cell* a, const Cell* b) {
    return a->key.transport != b->key.transport ? a->key.transport < b->key.transport
                                                : a->key.bytes < b->key.bytes;
  });
  std::erase_if(cells, [first = cells.empty() ? "" : cells.front()->key.transport](
                           const Cell* cell) { return cell->key.transport != first; });
  return cells;
}

const Cell* latency_cell(const CellIndex& index, const std::string& from, const std::string& to,
                         std::string_view transport) {
  for (const auto& [a, b] : {std::pair(&from, &to), std::pair(&to, &from)}) {
    const std::vector<const Cell*> cells = pair_cells(index, k_pair_latency, *a, *b, transport, "");
    if (!cells.empty()) {
      return cells.front();
    }
  }
  return nullptr;
}

/// Of one direction before both, in order of size; of streams of messages where those were measured
/// by size. What passes while as much comes back passes by itself: where one way was found to be
/// slower than that, it was disturbed.
std::vector<const Cell*> bandwidth_cells(const CellIndex& index, const std::string& from,
                                         const std::string& to, std::string_view transport) {
  const auto cells_of = [&](const char* direction) {
    std::vector<const Cell*> cells =
        pair_cells(index, k_pair_bandwidth, from, to, transport, direction);
    if (!cells.empty()) {
      const std::vector<const Cell*> by_size =
          pair_cells(index, k_pair_rate_by_size, from, to, cells.front()->key.transport, direction);
      cells.insert(cells.end(), by_size.begin(), by_size.end());
      std::ranges::stable_sort(cells, {}, [](const Cell* cell) { return cell->key.bytes; });
    }
    return cells;
  };
  std::vector<const Cell*> cells = cells_of("one_way");
  const std::vector<const Cell*> both = cells_of("two_way");
  for (const Cell*& cell : cells) {
    for (const Cell* other : both) {
      if (other->key.bytes == cell->key.bytes && other->key.transport == cell->key.transport &&
          other->p50 > cell->p50) {
        cell = other;
      }
    }
  }
  return !cells.empty() ? cells : !both.empty() ? both : cells_of("");
}

/// Of writes one way, else of messages, each of which is alone. Cells that say no direction are of
/// such.
std::vector<const Cell*> write_cells(const CellIndex& index, const std::string& from,
                                     const std::string& to, std::string_view transport) {
  std::vector<const Cell*> cells;
  for (const char* const test : {k_pair_write, k_pair_time_by_size}) {
    if (cells.empty()) {
      cells = pair_cells(index, test, from, to, transport, "one_way");
    }
    if (cells.empty()) {
      cells = pair_cells(index, test, from, to, transport, "");
      std::erase_if(cells, [](const Cell* cell) { return !cell->key.direction.empty(); });
    }
  }
  // Of one size those with the fewest in flight, which come first.
  const auto again = std::unique(cells.begin(), cells.end(), [](const Cell* a, const Cell* b) {
    return a->key.bytes == b->key.bytes;
  });
  cells.erase(again, cells.end());
  return cells;
}

const MachineGroup* group_of(const Profile& profile, const std::string& name) {
  for (const MachineGroup& group : profile.machines) {
    if (group.id == name ||
        std::find(group.members.begin(), group.members.end(), name) != group.members.end()) {
      return &group;
    }
  }
  return nullptr;
}

} // namespace

std::vector<std::string> pair_names(const Profile& profile,
                                    const std::vector<std::string>& machines) {
  std::map<std::string, std::size_t> used;
  std::vector<std::string> names;
  for (const std::string& machine : machines) {
    const MachineGroup* const group = group_of(profile, machine);
    if (group == nullptr) {
      fail(ErrorKind::input,
           fmt::format("profile '{}' has no machine '{}'; give the profile that the plan was made "
                       "from, or one with machines of these names",
                       profile.name, machine));
    }
    if (group->id != machine || group->members.empty()) {
      names.push_back(machine);
      continue;
    }
    const std::size_t number = used[machine]++;
    if (number >= group->members.size()) {
      fail(ErrorKind::input,
           fmt::format("profile '{}' has {} machines of group '{}' and the ranks need more",
                       profile.name, group->members.size(), machine));
    }
    names.push_back(group->members[number]);
  }
  return names;
}

std::optional<double> pair_latency(const CellIndex& index, const std::string& from,
                                   const std::string& to, std::string_view transport) {
  if (const Cell* const cell = latency_cell(index, from, to, transport)) {
    return cell->p50;
  }
  const std::vector<const Cell*> cells = write_cells(index, from, to, transport);
  if (cells.empty()) {
    return std::nullopt;
  }
  if (cells.size() == 1) {
    return 0;
  }
  const auto bytes = [&](std::size_t i) { return static_cast<double>(cells[i]->key.bytes); };
  const double slope = std::max(0.0, cells[1]->p50 - cells[0]->p50) / (bytes(1) - bytes(0));
  return std::max(0.0, cells[0]->p50 - slope * bytes(0));
}

std::optional<Curve> pair_curve(const CellIndex& index, const std::string& from,
                                const std::string& to, std::string_view transport,
                                std::string* source) {
  const auto say = [&](std::string text) {
    if (source != nullptr) {
      *source = std::move(text);
    }
  };
  std::vector<CurvePoint> points;
  const std::vector<const Cell*> writes = write_cells(index, from, to, transport);
  if (!writes.empty()) {
    for (const Cell* cell : writes) {
      points.push_back({static_cast<double>(cell->key.bytes), cell->p50});
    }
    say(fmt::format("{} {} -> {}, {} sizes", writes.front()->key.test, from, to, writes.size()));
    return Curve(std::move(points));
  }
  const Cell* const latency = latency_cell(index, from, to, transport);
  const std::vector<const Cell*> rates = bandwidth_cells(index, from, to, transport);
  if (rates.empty() || latency == nullptr) {
    return std::nullopt;
  }
  const Cell* const rate = rates.back(); // what comes beside the bytes of long writes is latency
  constexpr std::array<double, 7> k_sizes{4096, 16384, 65536, 262144, 1048576, 4194304, 16777216};
  for (const double bytes : k_sizes) {
    points.push_back({bytes, latency->p50 + bytes / rate->p50});
  }
  say(fmt::format("pair_latency and pair_bandwidth {} -> {}", from, to));
  return Curve(std::move(points));
}

bool PairWay::slower_than(double bytes_per_s) const {
  constexpr double k_rounding = 1e-9;
  return rate.mid < bytes_per_s || std::ranges::any_of(busy.points(), [&](const auto& point) {
           return point.second > point.first / bytes_per_s * (1 + k_rounding);
         });
}

PairWay pair_way(const CellIndex& index, const std::string& from, const std::string& to,
                 std::string_view transport) {
  PairWay way;
  way.latency_s = pair_latency(index, from, to, transport);
  std::string source;
  if (const auto curve = pair_curve(index, from, to, transport, &source)) {
    way.source = source.substr(0, source.find(' '));
    way.latency_s = std::min(way.latency_s.value_or(0), curve->points().front().seconds);
    // With several writes in flight a way takes no longer for each than their rate says: what else
    // one alone takes is latency, of which on long ways the noise is as long as short writes.
    // Measured so at several sizes, they say it themselves.
    const std::vector<const Cell*> rates = bandwidth_cells(index, from, to, transport);
    way.busy = busy_curve(rates);
    if (way.busy.points().size() < 2) {
      std::vector<std::pair<double, double>> busy;
      for (const CurvePoint& point : curve->points()) {
        const double alone = std::max(0.0, point.seconds - *way.latency_s);
        busy.emplace_back(
            point.bytes, way.busy.empty() ? alone : std::min(alone, way.busy.seconds(point.bytes)));
      }
      way.busy = BusyCurve(std::move(busy));
    }
    const double rate = way.busy.bytes_per_s();
    way.rate = {rate, rate, rate};
    return way;
  }
  for (const Cell* const cell : index.select({.test = k_pair_bandwidth, .from = from, .to = to})) {
    if (is_over(*cell, transport) && cell->key.direction != "two_way" && cell->p50 > 0 &&
        !way.measured()) {
      way.source = k_pair_bandwidth;
      way.rate = measured_rate(*cell);
    }
  }
  const std::vector<const Cell*> rates = bandwidth_cells(index, from, to, transport);
  if (BusyCurve busy = busy_curve(rates); way.measured() && busy.points().size() > 1) {
    const double rate = busy.bytes_per_s();
    way.rate = {rate, rate, rate};
    way.busy = std::move(busy);
  }
  return way;
}

} // namespace reckon
