// SPDX-License-Identifier: Apache-2.0
#include "probe/pair_update.hpp"

#include "core/error.hpp"
#include "documents/cells.hpp"
#include "probe/cluster_merge.hpp"
#include "probe/sampling.hpp"
#include "stats/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace reckon {
namespace {

constexpr const char* k_remark = "measured again in the middle of a run";
constexpr const char* k_derived = "moved by what other sizes showed in the middle of a run";

/// Added seconds at the sizes that were measured, and the ratios there.
struct Shift {
  std::map<std::uint64_t, double> added_s;
  double least_ratio = 1, most_ratio = 1; ///< there, and of very long writes

  /// Linear in the bytes; below the first size as there, beyond the last one on the same line.
  [[nodiscard]] double added(double bytes) const {
    auto above = added_s.lower_bound(static_cast<std::uint64_t>(bytes));
    if (above == added_s.begin() || added_s.size() == 1) {
      return added_s.begin()->second;
    }
    if (above == added_s.end()) {
      --above;
    }
    const auto below = std::prev(above);
    const double from = static_cast<double>(below->first), to = static_cast<double>(above->first);
    return below->second + (above->second - below->second) * (bytes - from) / (to - from);
  }
  [[nodiscard]] double ratio(double bytes, double known_s) const {
    if (added_s.size() == 1) {
      return most_ratio; // one size says nothing of how others changed, but by the same ratio
    }
    return std::clamp(1 + added(bytes) / known_s, least_ratio, most_ratio);
  }
};

/// Seconds per byte between the first and the last size that were measured, now over before;
/// nothing where the samples are too few or too odd to tell.
std::optional<double> pace_of(const KnownPair& pair, const Shift& shift) {
  const auto [first, added_first] = *shift.added_s.begin();
  const auto [last, added_last] = *shift.added_s.rbegin();
  const double before = pair.seconds(last) - pair.seconds(first);
  const double ratio = 1 + (added_last - added_first) / before;
  return before > 0 && ratio > 0 ? std::optional(ratio) : std::nullopt;
}

std::optional<Shift> shift_of(const KnownPair& pair, const PairTimes& times) {
  Shift shift;
  bool any = false;
  for (const auto& [bytes, samples] : times) {
    const Cell& known = pair.writes.at(bytes);
    const auto changed = samples.empty() ? std::nullopt : change_of(known, samples);
    const double ratio = changed.value_or(1);
    shift.least_ratio = shift.added_s.empty() ? ratio : std::min(shift.least_ratio, ratio);
    shift.most_ratio = shift.added_s.empty() ? ratio : std::max(shift.most_ratio, ratio);
    shift.added_s[bytes] = known.p50 * (ratio - 1);
    any = any || changed;
  }
  if (const auto pace = any ? pace_of(pair, shift) : std::nullopt) {
    shift.least_ratio = std::min(shift.least_ratio, *pace);
    shift.most_ratio = std::max(shift.most_ratio, *pace);
  }
  return any ? std::optional(shift) : std::nullopt;
}

/// Samples (of published figures the median) times `factor`.
void scale(Cell& cell, double factor, const char* why) {
  if (cell.samples.empty()) {
    for (double* value : {&cell.min, &cell.p50, &cell.p99, &cell.max}) {
      *value = six_digits(*value * factor);
    }
  } else {
    for (double& sample : cell.samples) {
      sample = six_digits(sample * factor);
    }
    summarize_cell(cell);
  }
  if (cell.reason.find(why) == std::string::npos) {
    remark(cell, why);
  }
}

/// The machine's own port cell, made from its group's where it has none yet; none: not known.
Cell* own_port(Profile& profile, const std::string& machine, const std::string& transport) {
  const auto place = [&](const std::string& id) -> Cell* {
    const auto found =
        profile.select({.test = k_port_bandwidth, .from = id, .transport = transport});
    return found.empty()
               ? nullptr
               : &profile.cells[static_cast<std::size_t>(found.front() - profile.cells.data())];
  };
  if (Cell* const own = place(machine)) {
    return own;
  }
  for (const MachineGroup& group : profile.machines) {
    if (std::find(group.members.begin(), group.members.end(), machine) != group.members.end()) {
      if (const Cell* const shared = place(group.id)) {
        Cell copy = *shared;
        copy.key.from = machine;
        const auto at =
            std::upper_bound(profile.cells.begin(), profile.cells.end(), copy,
                             [](const Cell& a, const Cell& b) { return a.key < b.key; });
        return &*profile.cells.insert(at, std::move(copy));
      }
    }
  }
  return nullptr;
}

} // namespace

std::vector<KnownPair> known_pairs(const Profile& profile, const std::vector<std::string>& names,
                                   const std::vector<Flow>& flows, const std::string& transport) {
  const CellIndex index(profile);
  std::vector<KnownPair> pairs;
  for (const Flow& flow : flows) {
    KnownPair pair{flow,
                   names.at(static_cast<std::size_t>(flow.from)),
                   names.at(static_cast<std::size_t>(flow.to)),
                   {},
                   0};
    CellKey key{.test = k_pair_write, .from = pair.from, .to = pair.to, .transport = transport};
    for (const Cell* cell : index.select(key)) {
      pair.writes.emplace(cell->key.bytes, *cell);
    }
    if (pair.writes.size() < 2) {
      fail(ErrorKind::input,
           fmt::format("profile '{}' does not say how long writes from {} to {} take over {} "
                       "(pair_write of two sizes or more): there is nothing to compare with; "
                       "`reckon probe --cluster --pair-writes` measures it",
                       profile.name, pair.from, pair.to, transport));
    }
    const auto& [short_bytes, short_write] = *pair.writes.begin();
    const auto& [long_bytes, long_write] = *std::next(pair.writes.begin());
    const double byte_s = std::max(0.0, long_write.p50 - short_write.p50) /
                          static_cast<double>(long_bytes - short_bytes);
    pair.latency_s = std::max(0.0, short_write.p50 - byte_s * static_cast<double>(short_bytes));
    key.test = k_pair_latency;
    for (const Cell* cell : index.select(key)) {
      pair.latency_s = cell->p50;
    }
    pairs.push_back(std::move(pair));
  }
  return pairs;
}

std::optional<double> change_of(const Cell& known, const std::vector<double>& now) {
  if (now.empty() || known.p50 <= 0) {
    return std::nullopt;
  }
  constexpr double k_spreads = 3; // as `reckon diff` tells two profiles apart
  const double least = std::max({k_least_change, k_spreads * known.spread,
                                 known.status == CellStatus::noisy ? k_least_of_noisy : 0});
  const double ratio = quantile(now, 0.5) / known.p50;
  const bool slower = ratio > 1;
  if (std::max(ratio, 1 / ratio) <= 1 + least) {
    return std::nullopt;
  }
  // Three of four on the same side of the known median, and that far away.
  const double quarter = quantile(now, slower ? 0.25 : 0.75) / known.p50;
  if (slower ? quarter <= 1 + least : quarter >= 1 / (1 + least)) {
    return std::nullopt;
  }
  if (!known.samples.empty()) {
    const double edge = quantile(known.samples, slower ? 0.95 : 0.05);
    if (slower ? ratio * known.p50 <= edge : ratio * known.p50 >= edge) {
      return std::nullopt;
    }
  }
  return ratio;
}

ProfileUpdate update_pairs(Profile& profile, const std::vector<KnownPair>& pairs,
                           const std::vector<PairTimes>& times) {
  ProfileUpdate update;
  std::map<std::string, std::vector<std::optional<double>>> paces; // by machine
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const KnownPair& pair = pairs[i];
    if (times.at(i).empty()) {
      continue; // says nothing of its machines either
    }
    const std::optional<Shift> shift = shift_of(pair, times[i]);
    auto pace = shift ? pace_of(pair, *shift) : std::nullopt;
    if (pace && std::max(*pace, 1 / *pace) <= 1 + k_least_change) {
      pace.reset(); // the latency changed, the rate did not
    }
    paces[pair.from].push_back(pace);
    paces[pair.to].push_back(pace);
    if (!shift) {
      continue;
    }
    for (const auto& [bytes, known] : pair.writes) {
      const auto cell = std::find_if(profile.cells.begin(), profile.cells.end(),
                                     [&key = known.key](const Cell& c) { return c.key == key; });
      if (cell == profile.cells.end()) {
        fail(ErrorKind::internal, fmt::format("the profile has no cell {}", known.key.text()));
      }
      const auto now = times[i].find(bytes);
      if (now != times[i].end() && !now->second.empty()) {
        *cell = cell_of(known.key, now->second, "");
        remark(*cell, k_remark);
      } else if (const double ratio = shift->ratio(static_cast<double>(bytes), known.p50);
                 ratio != 1) {
        scale(*cell, ratio, k_derived);
      }
    }
    for (Cell& cell : profile.cells) {
      if (pace && cell.key.test == k_pair_bandwidth && cell.key.from == pair.from &&
          cell.key.to == pair.to &&
          cell.key.transport == pair.writes.begin()->second.key.transport) {
        scale(cell, 1 / *pace, k_derived);
      }
    }
    const auto shown = std::find_if(shift->added_s.rbegin(), shift->added_s.rend(),
                                    [](const auto& entry) { return entry.second != 0; });
    const auto bytes = static_cast<double>(shown->first);
    const double known_s = pair.seconds(shown->first);
    update.pairs.push_back(
        {pair.from, pair.to, shown->first, bytes / known_s, bytes / (known_s + shown->second)});
  }
  for (const auto& [machine, all] : paces) {
    if (all.size() < 2 ||
        !std::all_of(all.begin(), all.end(), [](const auto& pace) { return pace.has_value(); })) {
      continue;
    }
    std::vector<double> ratios;
    for (const auto& pace : all) {
      ratios.push_back(*pace);
    }
    if (Cell* const port =
            own_port(profile, machine, pairs.front().writes.begin()->second.key.transport)) {
      scale(*port, 1 / quantile(ratios, 0.5), k_remark);
      update.ports.push_back(machine);
    }
  }
  return update;
}

} // namespace reckon
