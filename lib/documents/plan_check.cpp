// SPDX-License-Identifier: Apache-2.0
#include "documents/plan_check.hpp"

#include "documents/fields.hpp"
#include "documents/repeats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace reckon::documents {
namespace {

/// Ascending, not overlapping, whole elements, inside the buffer.
void check_runs(const Plan& plan, const JsonView& view) {
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < plan.runs.size(); ++i) {
    const DTypeRun& run = plan.runs[i];
    const std::string at = fmt::format("runs/{}", i);
    if (run.offset_bytes < end) {
      fail_below(view, at + "/offset_bytes",
                 fmt::format("is {}, but the run before ends at {}; runs ascend and do not overlap",
                             run.offset_bytes, end));
    }
    if (run.offset_bytes % size_of(run.dtype) != 0 || run.bytes % size_of(run.dtype) != 0) {
      fail_below(view, at,
                 fmt::format("offset_bytes and bytes must be multiples of {}, the size of {}",
                             size_of(run.dtype), name_of(run.dtype)));
    }
    end = run.offset_bytes + run.bytes;
    if (end > plan.gradient_bytes) {
      fail_below(
          view, at,
          fmt::format("ends at byte {}, beyond gradient_bytes {}", end, plan.gradient_bytes));
    }
  }
}

void check_wire(const Plan& plan, const JsonView& view) {
  if (plan.wire && size_of(*plan.wire) == size_of(DType::fp32)) {
    view.at("wire").fail(fmt::format("is {}, as gradients are without it: must be fp16 or bf16",
                                     name_of(*plan.wire)));
  }
}

/// Names the part at fault in one column.
[[noreturn]] void fail_part(const JsonView& parts, const char* column, std::size_t i,
                            const std::string& problem) {
  source_of(parts.at(column), i).fail(problem);
}

/// Every byte of every run belongs to exactly one part.
void check_cover(const JsonView& view, const Parts& parts, const std::vector<DTypeRun>& runs) {
  std::size_t r = 0;
  std::uint64_t next = runs[0].offset_bytes; // first byte that no part before has
  for (const std::size_t i : parts.by_offset()) {
    const std::uint64_t offset = parts.offset_bytes[i];
    const std::uint64_t bytes = parts.bytes[i];
    if (offset < next) {
      fail_part(view, "offset_bytes", i,
                fmt::format("part {} begins at byte {}, but {} is the first byte that no "
                            "other part covers",
                            i, offset, next));
    }
    const std::uint64_t run_end = r < runs.size() ? runs[r].offset_bytes + runs[r].bytes : 0;
    if (offset > next || r == runs.size()) {
      if (r == runs.size()) {
        fail_part(view, "offset_bytes", i, fmt::format("part {} lies outside of /runs", i));
      }
      fail_part(view, "offset_bytes", i,
                fmt::format("no part covers the bytes from {} to {}", next, offset));
    }
    if (bytes > run_end - offset) {
      fail_part(view, "bytes", i,
                fmt::format("part {} ends at byte {}, beyond the end {} of its run", i,
                            offset + bytes, run_end));
    }
    if (bytes % size_of(runs[r].dtype) != 0) {
      fail_part(view, "bytes", i,
                fmt::format("part {} has {} bytes, no multiple of {}, the size of {}", i, bytes,
                            size_of(runs[r].dtype), name_of(runs[r].dtype)));
    }
    next = offset + bytes;
    if (next == run_end && ++r < runs.size()) {
      next = runs[r].offset_bytes;
    }
  }
  if (r < runs.size()) {
    view.fail(fmt::format("no part covers the bytes from {} to {}", next,
                          runs[r].offset_bytes + runs[r].bytes));
  }
}

/// Machines have equally many workers, every way leads to one head, and a server that works is the
/// head of its parts.
void check_machine_trees(const Plan& plan, const JsonView& view) {
  const auto fail_tree = [&](std::size_t tree, const std::string& problem) {
    below(view, fmt::format("machine_trees/{}", tree)).fail(problem);
  };
  std::map<std::pair<std::string, std::uint64_t>, std::uint64_t> workers; // by machine
  std::vector<std::uint64_t> number;                                      // by rank
  for (const PlanRank& rank : plan.ranks) {
    number.push_back(rank.worker ? workers[{rank.machine, rank.machine_number.value_or(0)}]++ : 0);
  }
  const std::uint64_t width = workers.begin()->second;
  if (std::ranges::any_of(workers, [&](const auto& of) { return of.second != width; })) {
    fail_tree(0, "is for machines with equally many workers, and these have not");
  }
  std::vector<std::uint64_t> heads;
  for (std::size_t t = 0; t < plan.machine_trees.size(); ++t) {
    const std::vector<std::uint64_t>& above = plan.machine_trees[t];
    if (above.size() != width || *std::ranges::max_element(above) >= width) {
      fail_tree(
          t, fmt::format("must name, for each of the {} workers of a machine, one of them", width));
    }
    for (std::uint64_t worker = 0; worker < width; ++worker) {
      std::uint64_t at = worker;
      for (std::uint64_t steps = 0; steps < width && above[at] != at; ++steps) {
        at = above[at];
      }
      if (above[at] != at || (worker > 0 && at != heads.back())) {
        fail_tree(t, fmt::format("leads from worker {} to {}", worker,
                                 above[at] != at ? "no head" : "another head than from worker 0"));
      }
      if (worker == 0) {
        heads.push_back(at);
      }
    }
  }
  const JsonView parts = view.at("parts");
  for (std::size_t i = 0; i < plan.parts.size(); ++i) {
    const std::uint64_t tree = plan.parts.tree[i], server = plan.parts.server[i];
    if (tree >= heads.size()) {
      fail_part(parts, "tree", i,
                fmt::format("is machine tree {}, but there are {}", tree, heads.size()));
    }
    if (plan.ranks[server].worker && number[server] != heads[tree]) {
      fail_part(parts, "server", i,
                fmt::format("is rank {}, which is not the head of machine tree {}", server, tree));
    }
  }
}

void check_parts(const Plan& plan, const JsonView& view) {
  const Parts& parts = plan.parts;
  const std::size_t n = parts.size();
  if (!plan.trees.empty() || plan.torus || !plan.machine_trees.empty()) {
    const JsonView tree = view.at("tree");
    if (parts.tree.size() != n) {
      tree.fail(fmt::format("has {} entries, bytes has {}", parts.tree.size(), n));
    }
  } else if (view.find("tree")) {
    view.at("tree").fail("names trees, but the plan has none; remove it or add \"trees\"");
  }
  if (parts.offset_bytes.size() != n || parts.server.size() != n || parts.lane.size() != n) {
    view.fail(
        fmt::format("the columns differ in length: offset_bytes {}, bytes {}, server {}, lane {}",
                    parts.offset_bytes.size(), n, parts.server.size(), parts.lane.size()));
  }
  std::vector<std::uint64_t> assigned(plan.ranks.size(), 0);
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t server = parts.server[i];
    if (parts.bytes[i] > plan.gradient_bytes ||
        parts.offset_bytes[i] > plan.gradient_bytes - parts.bytes[i]) {
      fail_part(view, "bytes", i,
                fmt::format("part {}, {} bytes at byte {}, ends beyond gradient_bytes {}", i,
                            parts.bytes[i], parts.offset_bytes[i], plan.gradient_bytes));
    }
    if (server >= plan.ranks.size()) {
      fail_part(view, "server", i,
                fmt::format("is rank {}, but there are {} ranks", server, plan.ranks.size()));
    }
    if (parts.lane[i] >= static_cast<std::uint64_t>(plan.ranks[server].lanes)) {
      fail_part(view, "lane", i,
                fmt::format("is lane {}, but rank {} has {}", parts.lane[i], server,
                            plan.ranks[server].lanes));
    }
    if (!plan.trees.empty()) {
      if (parts.tree[i] >= plan.trees.size()) {
        fail_part(view, "tree", i,
                  fmt::format("is tree {}, but there are {}", parts.tree[i], plan.trees.size()));
      }
      if (plan.trees[parts.tree[i]].up[server] != static_cast<std::int64_t>(server)) {
        fail_part(
            view, "server", i,
            fmt::format("is rank {}, which is not the root of tree {}", server, parts.tree[i]));
      }
    }
    if (plan.torus && parts.tree[i] >= plan.torus->ways.size()) {
      fail_part(view, "tree", i,
                fmt::format("is way {}, but there are {}", parts.tree[i], plan.torus->ways.size()));
    }
    assigned[server] += parts.bytes[i];
  }
  for (std::size_t r = 0; r < assigned.size(); ++r) {
    if (assigned[r] != plan.ranks[r].assigned_bytes) {
      view.fail(fmt::format("the parts of rank {} come to {} bytes, its assigned_bytes are {}", r,
                            assigned[r], plan.ranks[r].assigned_bytes));
    }
  }
  check_cover(view, parts, plan.runs);
}

/// The parents of all ranks: -1, or the number of a rank, and no way up comes back to where it was.
void check_parents(const std::vector<std::int64_t>& parents, const JsonView& view,
                   std::size_t ranks) {
  for (std::size_t i = 0; i < parents.size(); ++i) {
    if (parents[i] >= static_cast<std::int64_t>(ranks)) {
      source_of(view, i).fail(fmt::format("is rank {}, but there are {} ranks", parents[i], ranks));
    }
  }
  if (parents.size() != ranks) {
    view.fail(fmt::format("has {} entries for {} ranks", parents.size(), ranks));
  }
  std::vector<std::size_t> came_from(ranks, ranks); // by rank: whose way up was here first
  for (std::size_t i = 0; i < ranks; ++i) {
    std::size_t at = i;
    while (parents[at] >= 0 && static_cast<std::size_t>(parents[at]) != at &&
           came_from[at] == ranks) {
      came_from[at] = i;
      at = static_cast<std::size_t>(parents[at]);
    }
    if (came_from[at] == i) {
      source_of(view, at).fail("leads round in a circle; every way must end at the tree's root");
    }
  }
}

void check_shape(const TorusPlan& torus, const JsonView& shape, std::size_t ranks) {
  std::uint64_t nodes = 1;
  for (const std::uint64_t length : torus.shape) {
    nodes = length > ranks ? ranks + 1 : nodes * length;
    nodes = std::min<std::uint64_t>(nodes, ranks + 1); // enough to know; does not overflow
  }
  if (nodes != ranks) {
    shape.fail(fmt::format("must hold as many nodes as the plan has ranks, which are {}", ranks));
  }
}

void check_route(const ProxyRoute& route, const JsonView& view, const Plan& plan) {
  const auto rank = [&](const char* name, std::uint64_t number, bool worker) {
    if (number >= plan.ranks.size() || plan.ranks[number].worker != worker) {
      view.at(name).fail(fmt::format("is {}, which is no rank {} a gradient", number,
                                     worker ? "with" : "without"));
    }
  };
  rank("client", route.client, true);
  rank("latency_proxy", route.latency_proxy, false);
  rank("bandwidth_proxy", route.bandwidth_proxy, false);
}

/// The routing tables, and what stands beside them only.
void check_routing(const Plan& plan, const JsonView& view) {
  if (plan.routing.empty()) {
    if (view.find("tensors")) {
      view.at("tensors").fail("names tensors, but the plan has no routing tables; remove it or add "
                              "\"routing\"");
    }
    return;
  }
  const std::vector<JsonView> routes = elements_below(view, "routing");
  for (std::size_t i = 0; i < plan.routing.size(); ++i) {
    check_route(plan.routing[i], routes[i], plan);
  }
  static_cast<void>(view.at("tensors")); // both must be there
  static_cast<void>(view.at("queues"));
  for (std::size_t i = 0; i < plan.tensors.size(); ++i) {
    const TensorRoute& tensor = plan.tensors[i];
    if (tensor.first_part >= plan.parts.size() ||
        tensor.parts > plan.parts.size() - tensor.first_part) {
      fail_below(view, fmt::format("tensors/{}", i),
                 fmt::format("has parts {} to {}, but there are {}", tensor.first_part,
                             tensor.first_part + tensor.parts - 1, plan.parts.size()));
    }
  }
}

void check_passes(const Passes& passes, const JsonView& view, std::uint64_t gradient_bytes) {
  std::uint64_t before = 0;
  for (std::size_t i = 0; i < passes.size(); ++i) {
    const std::uint64_t end = passes.end_bytes[i];
    if (end < before || end > gradient_bytes) {
      fail_below(view, fmt::format("end_bytes/{}", i),
                 fmt::format("is {}; ends ascend and are at most gradient_bytes, {}", end,
                             gradient_bytes));
    }
    before = end;
  }
  const auto column = [&](const char* name, const std::vector<double>& seconds) {
    if (seconds.size() != passes.size()) {
      view.at(name).fail(fmt::format("the columns differ in length: {} entries, end_bytes has {}",
                                     seconds.size(), passes.size()));
    }
  };
  column("backward_seconds", passes.backward_seconds);
  column("forward_seconds", passes.forward_seconds);
}

void check_ring_order(const Plan& plan, const JsonView& view) {
  if (plan.ring_order.empty()) {
    return;
  }
  std::vector<std::uint64_t> workers, sorted = plan.ring_order;
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    if (plan.ranks[r].worker) {
      workers.push_back(r);
    }
  }
  std::sort(sorted.begin(), sorted.end());
  if (sorted != workers) {
    view.at("ring_order").fail("must have every worker's rank once, and no other");
  }
}

void check_groups(const Plan& plan, const JsonView& view) {
  const bool of_machines = !plan.machine_trees.empty();
  const auto workers =
      static_cast<std::uint64_t>(std::ranges::count_if(plan.ranks, &PlanRank::worker));
  const std::uint64_t most =
      of_machines ? workers / std::max<std::size_t>(1, plan.machine_trees.front().size()) : workers;
  if (plan.groups > most) {
    view.at("groups").fail(fmt::format("must be at most {}, the number of {}", most,
                                       of_machines ? "machines that work" : "workers"));
  }
}

} // namespace

void check(const Plan& plan, const JsonView& view) {
  if (std::none_of(plan.ranks.begin(), plan.ranks.end(),
                   [](const PlanRank& r) { return r.worker; })) {
    view.at("ranks").fail("there is no worker; at least one rank must have \"worker\": true");
  }
  if (plan.rehearsal && plan.rehearsal->workers > plan.rehearsal->ranks) {
    below(view, "rehearsal/workers").fail("more than its ranks");
  }
  check_runs(plan, view);
  check_wire(plan, view);
  const std::vector<JsonView> trees = elements_below(view, "trees");
  for (std::size_t i = 0; i < plan.trees.size(); ++i) {
    const JsonView& tree = trees[i];
    check_parents(plan.trees[i].up, tree.at("up"), plan.ranks.size());
    check_parents(plan.trees[i].down, tree.at("down"), plan.ranks.size());
  }
  if (plan.torus) {
    check_shape(*plan.torus, below(view, "torus/shape"), plan.ranks.size());
  }
  check_ring_order(plan, view);
  check_groups(plan, view);
  check_parts(plan, view.at("parts"));
  if (!plan.machine_trees.empty()) {
    check_machine_trees(plan, view);
  }
  check_routing(plan, view);
  if (plan.passes) {
    check_passes(*plan.passes, view.at("passes"), plan.gradient_bytes);
  }
  Unique strategies(view, "strategy");
  for (std::size_t i = 0; i < plan.candidates.size(); ++i) {
    strategies.add(plan.candidates[i].strategy, fmt::format("candidates/{}/strategy", i));
  }
}

} // namespace reckon::documents
