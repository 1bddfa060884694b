// SPDX-License-Identifier: Apache-2.0
#include "strategies/strategy.hpp"

#include "core/error.hpp"
#include "core/units.hpp"
#include "strategies/shares/stars.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

namespace reckon {
namespace {

double least(const std::vector<double>& v) {
  return *std::min_element(v.begin(), v.end());
}

/// Says what binds a star's split and what a little more on a port would give: 1 Gb/s, or the
/// power of ten that is at most a tenth of the slowest port, since a gain is a slope and no more.
void describe_limit(Solution& s, const Star& star, const StarSplit& split, const CostModel& model,
                    const std::string& equation) {
  double slowest_bits = 8 * least(star.worker_bytes_per_s);
  if (!star.server_bytes_per_s.empty()) {
    slowest_bits = std::min(slowest_bits, 8 * least(star.server_bytes_per_s));
  }
  const double more_bits =
      std::min(1e9, std::pow(10.0, std::floor(std::log10(slowest_bits / 10) + 1e-9)));
  const std::string more = more_bits >= 1e9   ? "1 Gb/s more"
                           : more_bits >= 1e6 ? fmt::format("{:.0f} Mb/s more", more_bits / 1e6)
                                              : fmt::format("{:.3g} kb/s more", more_bits / 1e3);
  const auto gain = [&](double per_byte_per_s) {
    return to_text(Seconds(-per_byte_per_s * more_bits / 8));
  };
  switch (split.limit) {
  case StarLimit::nothing:
    s.bound_by = "nothing crosses a port";
    break;
  case StarLimit::slowest_workers: {
    std::vector<std::size_t> ranks;
    for (const std::size_t i : split.limiting_workers) {
      ranks.push_back(model.workers()[i]);
    }
    const bool one = ranks.size() == 1;
    s.bound_by =
        ranks.size() == model.workers().size()
            ? fmt::format("the workers' ports: each sends its whole gradient ({})", equation)
            : fmt::format("the port{} of rank{} {}: {} whole gradient ({})", one ? "" : "s",
                          one ? "" : "s", fmt::join(ranks, ", "),
                          one ? "it sends its" : "each sends its", equation);
    s.relief = fmt::format("{} on {} would save {}", more,
                           one ? "that port" : "each of those ports", gain(split.joint_gain));
    break;
  }
  case StarLimit::all_ports:
    s.bound_by = fmt::format("all ports are busy all the time ({})", equation);
    s.relief = fmt::format("{} on one worker's port would save {}", more, gain(split.worker_gain));
    if (!model.servers().empty()) {
      s.relief += fmt::format(", on one server's port {}", gain(split.server_gain));
    }
    break;
  case StarLimit::servers:
    s.bound_by = fmt::format("the servers' ports ({})", equation);
    s.relief = fmt::format("{} on every server's port would save {}", more, gain(split.joint_gain));
    break;
  }
}

void take_shares(Solution& s, const StarSplit& split, const CostModel& model) {
  for (std::size_t i = 0; i < model.workers().size(); ++i) {
    s.share_bytes[model.workers()[i]] = split.shares.worker_bytes[i];
  }
  for (std::size_t j = 0; j < model.servers().size(); ++j) {
    s.share_bytes[model.servers()[j]] =
        split.shares.server_bytes.empty() ? 0 : split.shares.server_bytes[j];
  }
  s.star_seconds = split.time_s;
}

bool all_equal(const std::vector<double>& v) {
  return std::all_of(v.begin(), v.end(), [&](double x) { return x == v.front(); });
}

void solve_ring(Solution& s, const Star& star, const CostModel& model) {
  s.ring = true;
  s.ring_order = model.workers();
  const auto n = static_cast<double>(model.workers().size());
  for (const std::size_t r : model.workers()) {
    s.share_bytes[r] = star.model_bytes / n;
  }
  s.star_seconds = ring_allreduce_s(star.model_bytes, star.worker_bytes_per_s);
  s.bound_by = model.workers().size() < 2 ? "nothing crosses a port"
               : all_equal(star.worker_bytes_per_s)
                   ? "the workers' ports (equation 1)"
                   : fmt::format("the slowest worker's port, {} (equation 1)",
                                 to_text(Bandwidth::bytes_per_s(least(star.worker_bytes_per_s))));
  s.quantities.push_back(
      {"ring_seconds",
       s.star_seconds,
       "equation 1: 2(n-1)M / (n B)",
       {{"n", n}, {"M", star.model_bytes}, {"B", least(star.worker_bytes_per_s)}}});
}

void solve_split(Solution& s, const Star& star, const CostModel& model) {
  const StarSplit split = solve_star_split(star);
  take_shares(s, split, model);
  describe_limit(s, star, split, model, "equation 8");
  const auto n = static_cast<double>(model.workers().size());
  const auto k = static_cast<double>(model.servers().size());
  const bool equal = all_equal(star.worker_bytes_per_s) &&
                     (star.server_bytes_per_s.empty() || all_equal(star.server_bytes_per_s));
  std::map<std::string, double> inputs{{"n", n}, {"k", k}, {"M", star.model_bytes}};
  if (equal) {
    inputs["B"] = star.worker_bytes_per_s.front();
    if (!star.server_bytes_per_s.empty()) {
      inputs["B_server"] = star.server_bytes_per_s.front();
    }
    s.quantities.push_back({"worker_share_bytes", split.shares.worker_bytes.front(),
                            "equation 6: (n-k)M / (n^2+kn-2k), k counted as k B_server/B", inputs});
    if (!model.servers().empty()) {
      s.quantities.push_back({"server_share_bytes", split.shares.server_bytes.front(),
                              "equation 6: 2(n-1)M / (n^2+kn-2k), k counted as k B_server/B",
                              inputs});
    }
    s.quantities.push_back(
        {"split_seconds", split.time_s, "equation 7: 2n(n-1)M / ((n^2+kn-2k) B)", inputs});
  } else {
    inputs["sum_of_worker_B"] =
        std::accumulate(star.worker_bytes_per_s.begin(), star.worker_bytes_per_s.end(), 0.0);
    inputs["sum_of_server_B"] =
        std::accumulate(star.server_bytes_per_s.begin(), star.server_bytes_per_s.end(), 0.0);
    inputs["least_worker_B"] = least(star.worker_bytes_per_s);
    s.quantities.push_back(
        {"split_seconds", split.time_s,
         "equation 8: max(M / min B, M(1 + n/(n-2)) / (sum B_worker/(n-2) + sum B_server/n))",
         inputs});
  }
}

/// Equation 8c. Racks are groups of their own kind.
void solve_two_levels(Solution& s, const Star& star, const CostModel& model) {
  const std::size_t workers = model.workers().size();
  s.reason = model.racks().size() > 1
                 ? "the machines are in racks, which rack_hierarchical sums in first"
             : !std::all_of(model.workers().begin(), model.workers().end(),
                            [&](std::size_t r) { return model.ranks()[r].server; })
                 ? "the roles let some worker's machine not serve"
                 : "";
  if (!s.reason.empty()) {
    return;
  }
  const auto n = static_cast<double>(workers);
  s.groups = static_cast<std::size_t>(std::ceil(std::sqrt(n)));
  const auto served =
      static_cast<double>(Stars(model.workers(), model.servers(), s.groups).served_groups());
  Star slower = star;
  for (double& rate : slower.server_bytes_per_s) {
    rate *= n / (n + 2 * served);
  }
  const StarSplit split = solve_star_split(slower);
  take_shares(s, split, model);
  s.fixed_shares = true;
  describe_limit(s, slower, split, model, "equation 8c");
  s.quantities.push_back({"groups",
                          static_cast<double>(s.groups),
                          "equation 8c: the root of n workers, in which a part is summed first",
                          {{"n", n}, {"M", star.model_bytes}}});
  s.quantities.push_back(
      {"split_seconds",
       split.time_s,
       "equation 8, a server's port counted as n / (n + 2 H) of it, H groups that servers head",
       {{"n", n}, {"H", served}, {"M", star.model_bytes}}});
}

/// What crosses the racks' uplinks, from bytes that each rank sends to each other.
void add_uplinks(Load& load, const CostModel& model) {
  for (const auto& [rack, bytes] : load.uplink_bytes) {
    const double seconds = bytes / model.uplink_bytes_per_s(rack);
    if (seconds > load.uplink_seconds) {
      load.uplink_seconds = seconds;
      load.slowest_uplink = rack;
    }
  }
}

void add_alike(Load& load, const CostModel& model) {
  const auto of = [&](std::size_t r) {
    const RankModel& rank = model.ranks()[r];
    const Rate& share = rank.port_share;
    return std::tuple(load.egress_bytes[r], load.ingress_bytes[r], load.summed_bytes[r],
                      rank.worker, rank.lanes, rank.port_bytes_per_s, share.lo, share.hi);
  };
  std::map<decltype(of(0)), std::size_t> known; // index among them
  std::size_t at = 0;
  for (std::size_t r = 0; r < load.egress_bytes.size(); ++r) {
    if (r == 0 || of(r) != of(r - 1)) {
      at = known.emplace(of(r), load.alike.size()).first->second;
    }
    if (at == load.alike.size()) {
      load.alike.push_back({r, 0});
    }
    ++load.alike[at].count;
  }
  load.port_seconds = port_seconds(load, model);
}

} // namespace

double port_seconds(const Load& load, const CostModel& model) {
  double longest = 0;
  for (std::size_t r = 0; r < load.egress_bytes.size(); ++r) {
    longest = std::max(longest, load.port_bytes(r) / model.ranks()[r].port());
  }
  return longest;
}

const std::vector<std::string>& strategy_names() {
  static const std::vector<std::string> names{"byteps_split", "ring", "ps_colocated",
                                              "ps_noncolocated", k_two_level_split};
  return names;
}

Solution solve(const std::string& strategy, const CostModel& model, double model_bytes) {
  if (model.workers().empty()) {
    fail(ErrorKind::input, "no rank is a worker: nobody has a gradient");
  }
  const Star star = model.star(model_bytes);
  Solution s;
  s.strategy = strategy;
  s.share_bytes.assign(model.ranks().size(), 0);
  if ((strategy == "ps_colocated" || strategy == "byteps_split") &&
      !std::all_of(model.workers().begin(), model.workers().end(),
                   [&](std::size_t r) { return model.ranks()[r].server; })) {
    s.reason = "the roles let some worker's machine not serve";
  } else if (strategy == "ring") {
    solve_ring(s, star, model);
  } else if (strategy == "ps_noncolocated") {
    const auto split = solve_parameter_server(star);
    if (!split) {
      s.reason = "there is no rank that only serves; add --servers";
      return s;
    }
    take_shares(s, *split, model);
    s.fixed_shares = !all_equal(star.server_bytes_per_s);
    describe_limit(s, star, *split, model, "equation 2");
    s.quantities.push_back({"parameter_server_seconds",
                            split->time_s,
                            "equation 2: max(M/B, nM/(kB))",
                            {{"n", static_cast<double>(model.workers().size())},
                             {"k", static_cast<double>(model.servers().size())},
                             {"M", model_bytes},
                             {"B", least(star.worker_bytes_per_s)},
                             {"B_server", least(star.server_bytes_per_s)}}});
  } else if (strategy == "ps_colocated") {
    const StarSplit split = solve_colocated_parameter_server(star);
    take_shares(s, split, model);
    s.fixed_shares = !all_equal(star.worker_bytes_per_s);
    describe_limit(s, star, split, model, "equation 3");
    s.quantities.push_back({"colocated_seconds",
                            split.time_s,
                            "equation 3: 2(n-1)M / (n B)",
                            {{"n", static_cast<double>(model.workers().size())},
                             {"M", model_bytes},
                             {"B", least(star.worker_bytes_per_s)}}});
  } else if (strategy == "byteps_split") {
    solve_split(s, star, model);
  } else if (strategy == k_two_level_split) {
    solve_two_levels(s, star, model);
  } else {
    fail(ErrorKind::usage, fmt::format("unknown strategy '{}'; use one of {}", strategy,
                                       fmt::join(strategy_names(), ", ")));
  }
  return s;
}

Load load_of(const Solution& solution, const CostModel& model, std::span<const double> loads) {
  const auto n = model.workers().size();
  const double total = std::accumulate(loads.begin(), loads.end(), 0.0);
  Load load;
  if (solution.ring) {
    load.egress_bytes.assign(loads.size(), 0);
    load.ingress_bytes.assign(loads.size(), 0);
    load.summed_bytes.assign(loads.size(), 0);
    for (std::size_t i = 0; i < n && n > 1; ++i) {
      const std::size_t r = solution.ring_order[i], next = solution.ring_order[(i + 1) % n],
                        previous = solution.ring_order[(i + n - 1) % n];
      // Reduce-scatter: all but what we own leaves, all but what starts here (owned by the rank
      // before) comes. All-gather: all but what the next owns leaves, all but what we own comes.
      load.egress_bytes[r] = 2 * total - loads[r] - loads[next];
      load.ingress_bytes[r] = 2 * total - loads[r] - loads[previous];
      load.summed_bytes[r] = total - loads[previous];
      if (model.ranks()[next].rack != model.ranks()[r].rack) {
        load.uplink_bytes[model.ranks()[r].rack] += load.egress_bytes[r];
      }
    }
    add_uplinks(load, model);
    add_alike(load, model);
    return load;
  }
  load = Stars(model.workers(), model.servers(), solution.groups).load_of(loads);
  const std::size_t racks = model.racks().size();
  std::vector<double> workers(racks, 0), served(racks, 0); // by rack
  for (std::size_t r = 0; r < loads.size(); ++r) {
    workers[model.rack_of()[r]] += model.ranks()[r].worker ? 1 : 0;
    served[model.rack_of()[r]] += loads[r];
  }
  for (std::size_t rack = 0; racks > 1 && rack < racks; ++rack) {
    // Its workers' parts for servers elsewhere, and its servers' sums for workers elsewhere.
    load.uplink_bytes[model.racks()[rack]] =
        workers[rack] * (total - served[rack]) +
        (static_cast<double>(n) - workers[rack]) * served[rack];
  }
  add_uplinks(load, model);
  add_alike(load, model);
  return load;
}

} // namespace reckon
