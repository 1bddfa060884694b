// SPDX-License-Identifier: Apache-2.0
#include "present/plan_sections.hpp"

#include "core/name_ranges.hpp"
#include "core/units.hpp"
#include "present/numbers.hpp"
#include "present/option_text.hpp"
#include "present/ranges.hpp"
#include "present/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

namespace reckon {

std::string place_text(const Plan& plan, std::size_t rank) {
  const PlanRank& r = plan.ranks[rank];
  const std::string prefix = r.machine + "/";
  return r.machine_number                 ? r.place_name()
         : r.endpoint.empty()             ? fmt::format("{}", rank)
         : r.endpoint.starts_with(prefix) ? r.endpoint.substr(prefix.size())
                                          : r.endpoint;
}

namespace {

/// A tree from its root on, "numa0 < gpu4 (gpu0 < gpu1-3)": who sums what whom sends; with '>' who
/// gives to whom.
std::string tree_text(const Plan& plan, const std::vector<std::int64_t>& parents, std::size_t root,
                      char arrow = '<') {
  std::vector<std::vector<std::size_t>> children(parents.size());
  for (std::size_t r = 0; r < parents.size(); ++r) {
    if (r != root && parents[r] >= 0) {
      children[static_cast<std::size_t>(parents[r])].push_back(r);
    }
  }
  std::vector<std::size_t> order{root}; // each behind its parent
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::vector<std::size_t>& next = children[order[i]];
    order.insert(order.end(), next.begin(), next.end());
  }
  std::vector<std::string> texts(parents.size());
  for (; !order.empty(); order.pop_back()) {
    const std::size_t r = order.back();
    std::vector<std::string> leaves, branches;
    for (const std::size_t child : children[r]) {
      std::string text = std::exchange(texts[child], {});
      if (text.find(' ') == std::string::npos) {
        leaves.push_back(std::move(text));
      } else {
        branches.push_back("(" + text + ")");
      }
    }
    std::vector<std::string> below = name_ranges(leaves);
    below.insert(below.end(), std::make_move_iterator(branches.begin()),
                 std::make_move_iterator(branches.end()));
    texts[r] = place_text(plan, r);
    if (!below.empty()) {
      texts[r] += fmt::format(" {} {}", arrow, fmt::join(below, " "));
    }
  }
  return texts[root];
}

/// "12.5 %".
std::string share_text(double share) {
  return fmt::format("{:.3g} %", 100 * share);
}

/// In the first machine; the others do the same.
std::string machine_trees_text(const Plan& plan, const Style& style) {
  std::vector<std::size_t> workers;
  for (std::size_t r = 0;
       r < plan.ranks.size() && workers.size() < plan.machine_trees.front().size(); ++r) {
    if (plan.ranks[r].worker) {
      workers.push_back(r);
    }
  }
  Table table(2, ">parts");
  table.column("who sums for whom", Align::left, true);
  for (std::size_t way = 0; way < plan.machine_trees.size(); ++way) {
    std::vector<std::int64_t> above(plan.ranks.size(), -1);
    std::size_t head = 0;
    for (std::size_t w = 0; w < workers.size(); ++w) {
      const std::size_t up = plan.machine_trees[way][w];
      above[workers[w]] = static_cast<std::int64_t>(workers[up]);
      head = up == w ? workers[w] : head;
    }
    table.row({fmt::format("{}", std::ranges::count(plan.parts.tree, way)),
               tree_text(plan, above, head)});
  }
  const std::size_t machines =
      static_cast<std::size_t>(std::ranges::count_if(plan.ranks, &PlanRank::worker)) /
      workers.size();
  const std::string between =
      plan.groups == 0
          ? "  the head, named first, has its machine's sum; each part's server sums what the "
            "heads "
            "of all machines send it"
          : fmt::format(
                "  the head, named first, has its machine's sum; in each of {} groups of about {} "
                "machines one of the heads sums those of the group, and each part's server what "
                "these have",
                plan.groups, machines / plan.groups);
  return heading("in each machine, as in the first", style) + table.text(style) +
         folded(between, style);
}

} // namespace

std::string trees_text(const Plan& plan, const Style& style) {
  if (plan.trees.empty()) {
    return plan.machine_trees.empty() ? "" : machine_trees_text(plan, style);
  }
  Table table(2, ">share|scheme");
  table.column(sums(plan.collective) ? "who sums for whom" : "who gives to whom", Align::left,
               true);
  constexpr std::size_t k_most_rows = 12;
  std::vector<const SumTree*> largest;
  for (const SumTree& tree : plan.trees) {
    largest.push_back(&tree);
  }
  if (largest.size() > k_most_rows) {
    std::stable_sort(largest.begin(), largest.end(),
                     [](const SumTree* a, const SumTree* b) { return a->share > b->share; });
  }
  double rest = 0;
  for (std::size_t i = 0; i < largest.size(); ++i) {
    const SumTree& tree = *largest[i];
    if (i >= k_most_rows) {
      rest += tree.share;
      continue;
    }
    const std::size_t root = tree.root();
    if (!sums(plan.collective)) {
      table.row({share_text(tree.share), tree.scheme, tree_text(plan, tree.down, root, '>')});
      continue;
    }
    const std::string up = tree_text(plan, tree.up, root);
    table.row({share_text(tree.share), tree.scheme,
               !gives(plan.collective) ? up
               : tree.up == tree.down
                   ? up + ", and back the same way"
                   : fmt::format("{}; back {}", up, tree_text(plan, tree.down, root))});
  }
  std::string out = heading("trees", style) + table.text(style);
  if (largest.size() > k_most_rows) {
    out +=
        fmt::format("  {} more with {} together\n", largest.size() - k_most_rows, share_text(rest));
  }
  return out +
         folded(sums(plan.collective)
                    ? "  a < b (c < d): a sums what b and c send it, c before that what d does"
                    : "  a > b (c > d): a gives to b and c, c then to d",
                style);
}

namespace {

constexpr double k_unlimited = 1e15; ///< a threshold beyond it is none

/// One routing table, and the clients that have it.
struct AlikeRoutes {
  std::vector<std::size_t> clients;
  const ProxyRoute* route = nullptr;
  [[nodiscard]] bool split() const {
    return route->threshold_bytes && *route->threshold_bytes < k_unlimited;
  }
};

std::vector<AlikeRoutes> alike_routes(const Plan& plan) {
  std::vector<AlikeRoutes> rows;
  for (const ProxyRoute& route : plan.routing) {
    const auto same = std::find_if(rows.begin(), rows.end(), [&](const AlikeRoutes& row) {
      ProxyRoute other = *row.route;
      other.client = route.client;
      return other == route;
    });
    AlikeRoutes& row = same != rows.end() ? *same : rows.emplace_back(AlikeRoutes{{}, &route});
    row.clients.push_back(route.client);
  }
  return rows;
}

/// One row for the clients that are alike; `last` says what stands in the column that wraps.
std::string routes_table(const Plan& plan, const std::string& last_head,
                         const std::function<std::string(const AlikeRoutes&)>& last,
                         const Style& style) {
  Table table(2, "clients|>up to S\ngo to|>S|>longer ones\nto|>S', shards\nfrom");
  table.column(last_head, Align::left, true);
  for (const AlikeRoutes& row : alike_routes(plan)) {
    const ProxyRoute& r = *row.route;
    table.row({number_ranges(row.clients), fmt::format("rank {}", r.latency_proxy),
               row.split() ? bytes_text(*r.threshold_bytes) : "none",
               fmt::format("rank {}", row.split() ? r.bandwidth_proxy : r.latency_proxy),
               bytes_text(r.partition_bytes), last(row)});
  }
  return table.text(style);
}

std::string crossings_text(const AlikeRoutes& row) {
  std::vector<std::string> crossings;
  for (const double bytes : row.route->crossings_bytes) {
    crossings.push_back(bytes_text(bytes));
  }
  return fmt::format("{}", fmt::join(crossings, ", "));
}

/// How the gradient is divided between the proxies and the workers' own ring.
struct DualShares {
  std::size_t by_proxies = 0, by_workers = 0; ///< tensors
  double proxy_bytes = 0, worker_bytes = 0;
  std::string first; ///< tensor that the workers sum
};

DualShares dual_shares(const Plan& plan) {
  DualShares out;
  for (const TensorRoute& t : plan.tensors) {
    double bytes = 0;
    for (std::uint64_t p = t.first_part; p < t.first_part + t.parts; ++p) {
      bytes += static_cast<double>(plan.parts.bytes[p]);
    }
    out.first = t.by_workers && out.by_workers == 0 ? t.name : out.first;
    (t.by_workers ? out.by_workers : out.by_proxies) += 1;
    (t.by_workers ? out.worker_bytes : out.proxy_bytes) += bytes;
  }
  return out;
}

std::string shares_text(const DualShares& shares) {
  const auto amount = [](std::size_t tensors, double bytes) {
    return fmt::format("{} with {}", counted(tensors, "tensor"), bytes_text(bytes));
  };
  if (shares.by_proxies == 0) {
    return fmt::format("no tensor goes through the proxies: all {} go round the workers' own ring",
                       amount(shares.by_workers, shares.worker_bytes));
  }
  return amount(shares.by_proxies, shares.proxy_bytes) + " through the proxies" +
         (shares.by_workers == 0
              ? ""
              : fmt::format("; {}, from {} on, round the workers' own ring",
                            amount(shares.by_workers, shares.worker_bytes), shares.first));
}

std::string why_this_crossing(const AlikeRoutes& row) {
  if (row.route->latency_proxy == row.route->bandwidth_proxy) {
    return "one proxy for all: none is so much faster for short tensors that it pays";
  }
  const std::size_t crossings = row.route->crossings_bytes.size();
  if (!row.split()) {
    return "no size at which the other proxy becomes the faster one";
  }
  return crossings < 2 ? "T_lat(S) = T_bw(S) at this size only"
                       : fmt::format("of the crossings at {} the one with the least time over all "
                                     "tensors",
                                     crossings_text(row));
}

std::string why_this_m(const Plan& plan, const DualShares& shares) {
  const auto asked = plan.options.find("proxy_bytes");
  if (plan.strategy == "dense") {
    return "all: DENSE has no ring of the workers";
  }
  if (plan.one_queue) {
    return "all: one queue is there to show what happens at the proxies";
  }
  if (asked != plan.options.end() && asked->second != "auto") {
    return fmt::format("asked for: {}, at the next boundary of tensors",
                       option_text(asked->first, asked->second));
  }
  std::string formulas;
  for (const Quantity& q : plan.quantities) {
    if (q.name == "paper_proxy_bytes" || q.name == "corrected_proxy_bytes") {
      formulas += fmt::format("{} of ({}), ", bytes_text(q.value),
                              q.name == "paper_proxy_bytes" ? "32" : "33");
    }
  }
  return fmt::format("{}: the least predicted time among {}none, all, and steps between, each at "
                     "the next boundary of tensors",
                     bytes_text(shares.proxy_bytes), formulas);
}

} // namespace

std::string routing_text(const Plan& plan, const Style& style) {
  const DualShares shares = dual_shares(plan);
  return heading("routing", style) +
         (shares.by_proxies == 0 ? ""
                                 : routes_table(plan, "curves\ncross at", crossings_text, style)) +
         folded(printable("  " + shares_text(shares)), style);
}

std::string routing_reasons(const Plan& plan, const Style& style) {
  const DualShares shares = dual_shares(plan);
  std::string out = heading("routing: proxies (28), S (29), S' (30)", style) +
                    routes_table(plan, "why this S", why_this_crossing, style);
  if (shares.by_proxies == 0) {
    out += folded("  none of it is used: no tensor goes through the proxies", style);
  }
  out += heading("m, what goes through the proxies", style);
  out += folded(printable("  " + why_this_m(plan, shares)), style);
  return out + folded(printable("  so " + shares_text(shares)), style);
}

} // namespace reckon
