// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "strategies/lower_sums.hpp"
#include "strategies/lowerings.hpp"

#include <optional>
#include <vector>

namespace reckon {
namespace {

/// The parts of a proxy's lane as they come: the first client's, then the second's, ...
std::vector<std::uint32_t> arrivals(const Plan& plan, std::uint32_t proxy, std::uint64_t lane) {
  std::vector<std::uint32_t> order;
  std::vector<bool> there(plan.parts.size(), false);
  for (std::uint32_t client = 0; client < plan.ranks.size(); ++client) {
    for (std::uint32_t p = 0; plan.ranks[client].worker && p < plan.parts.size(); ++p) {
      const SumTree& tree = plan.trees[plan.parts.tree[p]];
      if (plan.parts.lane[p] == lane && tree.up[client] == std::int64_t{proxy} && !there[p]) {
        there[p] = true;
        order.push_back(p);
      }
    }
  }
  return order;
}

LaneProgram in_order(const LaneProgram& in, const std::vector<std::uint32_t>& parts) {
  LaneProgram out;
  std::vector<std::uint32_t> now(in.ops().size(), k_no_op);
  std::optional<std::uint32_t> done_before; // the synchronization of the part before
  std::vector<std::uint32_t> depends_on;
  for (const std::uint32_t part : parts) {
    bool begun = false;
    std::optional<std::uint32_t> done;
    for (std::uint32_t i = 0; i < in.ops().size(); ++i) {
      const Op& op = in.ops()[i];
      if (op.part != part) {
        continue;
      }
      depends_on.clear();
      for (const std::uint32_t d : in.dependencies(i)) {
        if (now[d] == k_no_op) {
          fail(ErrorKind::input, "one queue needs room for all parts: plan with a --window of as "
                                 "many parts as a lane has");
        }
        depends_on.push_back(now[d]);
      }
      const bool await = op.kind == OpKind::await;
      if (!await && !begun) {
        begun = true;
        if (done_before) {
          depends_on.push_back(*done_before);
        }
      }
      now[i] = out.append_again(in, op, depends_on);
      // The sum is there when it has come back round the ring, at its root when it is made.
      if ((await && begun) || op.kind == OpKind::reduce || op.kind == OpKind::copy) {
        done = now[i];
      }
    }
    done_before = done ? done : done_before;
  }
  return out;
}

} // namespace

Schedule with_one_queue(const Schedule& schedule, const Plan& plan) {
  Schedule out = schedule;
  change_lanes(out, [&](std::uint32_t rank, std::uint32_t lane) {
    const LaneProgram& given = schedule.ranks[rank].lanes[lane];
    const std::vector<std::uint32_t> parts =
        plan.ranks[rank].worker ? std::vector<std::uint32_t>() : arrivals(plan, rank, lane);
    return parts.empty() ? given : in_order(given, parts);
  });
  return out;
}

} // namespace reckon
