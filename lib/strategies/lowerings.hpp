// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "schedule/schedule.hpp"

namespace reckon {

// The parts of lower(): a function for each shape of sums, and one for each change of them.

/// Turns a plan whose parts go up and down trees (plan.trees) into what each rank does. A rank adds
/// what its children in the up tree sent to its own gradient, in place, and hands the sum on; a
/// rank without a gradient sums in a slot, or passes on what its only child sent. The root's sum
/// comes back the down tree. Of each lane's window_parts every tree has its own, more of them the
/// longer its parts live: a worker without children sends a tree's i-th part when the sum of the
/// part before that by the tree's window is back, and what the parts shortly before in the lane
/// waited for. As every branch of a tree ends in such a worker, a slot is free when the part that
/// used it is a window behind. Where lives are unknown all trees of a lane share one window.
///
/// Throws Error{input} when a tree does not hold every worker once, or some rank hands a sum on
/// that it cannot have.
[[nodiscard]] Schedule lower_trees(const Plan& plan);

/// Turns a plan of another collective than all-reduce into what each rank does.
///
/// Reduce-scatter, reduce: sums go up as in lower_trees(), and end at the roots. Nothing comes back
/// that could say that a slot is free, so a rank that has summed (or passed on) what a child sent
/// tells the child so, by a write of no bytes, where a later part of the child takes the same slot.
/// The child writes that part when it has heard so.
///
/// All-gather, broadcast: what a root has goes down into the gradients of all. A rank without a
/// gradient passes it on from a slot, and tells whoever writes there next. All others have a place
/// for every part; a rank sends the i-th part of a lane when its own writes of the (i -
/// window_parts)-th are over, so that a link is shared in proportion to the trees' parts.
///
/// Throws Error{input} as tree_places(), where the roots are not those of the collective (each
/// worker's n-th, or all at plan.root) and where the plan asks for more than the collective.
[[nodiscard]] Schedule lower_halves(const Plan& plan);

/// Turns a plan whose ranks share memory (plan.sums_in_place) into what each rank does: a part's
/// server reads the gradients of all workers where they lie and writes the sum there. Nothing is
/// sent but two words of no bytes for each server and lane, with passes for each part: a worker's
/// that its gradient is there, and the server's that it is the sum.
///
/// Throws Error{input} where the plan has trees, a torus, a ring, an optimizer's step, fixed-point
/// sums or another collective than all-reduce, or too many parts.
[[nodiscard]] Schedule lower_in_place(const Plan& plan);

/// Turns a plan over a torus (plan.torus) into what each rank does. In every ring that a part goes
/// through, the sum begins with the node after the one that is where the part's server is, and goes
/// round until it comes to that one; from there the sum goes round the same way to those that need
/// it. A rank sums in place, in its gradient, and what its neighbour sends lies in a slot of its
/// own for each dimension. One window for each lane: a rank begins with the i-th part of the lane
/// when the whole sum of the (i - window_parts)-th is back. Whoever writes into a slot of part i
/// has that sum back, and in it is what the slot's rank added: the slot is free.
///
/// Throws Error{input} when the plan has trees as well, a rank without a gradient, or too many
/// parts.
[[nodiscard]] Schedule lower_torus(const Plan& plan);

/// Asynchronous training over parameter servers: plan.asynchronous->steps steps of every worker,
/// none of which waits for another worker. One iteration of the executor runs these steps from the
/// first parameters on.
///
/// Updates at the workers (BytePS section 5, figure 11b): a worker steps its own parameters, sends
/// the change, and gets the latest parameters back; the server adds each change to the latest on
/// arrival. Updates at the server (Asynchronous Parallel, figure 11a): a worker sends its gradient,
/// and the server steps the latest with it.
///
/// The server's lane does one op after another, so it never sends a half-added sum: it copies the
/// latest to a place of that worker's own, and sends that. A worker begins a step when it has the
/// latest of all parts of its lane. Slots are used in order through a window, as in lower().
///
/// Throws Error{input} for a strategy without servers, for gradients other than fp32 and for an
/// optimizer with a state (docs/equations.md says why).
[[nodiscard]] Schedule lower_async(const Plan& plan);

/// Adds the optimizer's step to a schedule that sums gradients, whatever its strategy. It relies
/// only on properties of all strategies: a part's last reduction at plan.parts.server is its sum,
/// and every write into a worker's gradient is that sum on its way back.
///
/// Server: the step follows the sum, and the parameters travel back in its place. A server without
/// a gradient holds the parameters of its parts, a worker all of them. Worker: every worker makes
/// the step of every part once its sum is there. These steps come last in a lane's program: nobody
/// waits for them.
///
/// States lie part by part where the step is made, and nowhere else.
[[nodiscard]] Schedule with_update(const Schedule& sums, const Plan& plan);

/// Throws Error{input} that says that `what` needs gradients of fp32.
void require_fp32(const Plan& plan, const char* what);

/// Lets a schedule that sums fp32 gradients sum whole numbers instead, as switches can: every
/// worker turns each part of its gradient, in place, into 32-bit fixed point before its first use,
/// and turns the part's sum back once it has arrived and been passed on. In between only int32 is
/// added. Throws Error{input} for gradients other than fp32.
[[nodiscard]] Schedule with_fixed_point(const Schedule& sums, const Plan& plan);

/// Lets a schedule that sums gradients of plan.wire's type, to which the plan's bytes refer, do so
/// for gradients of fp32: a worker has them in a buffer of their own
/// (RankProgram::gradient_buffer), rounds each part before its first use, and widens the part's sum
/// once it is there.
[[nodiscard]] Schedule with_wire(const Schedule& sums, const Plan& plan);

/// The order that COARSE III-F warns of: proxies synchronize tensors first come, first served, one
/// after another, instead of all clients' queues at once. As in its figure 10 the first client is
/// ahead of the second, and so on: a proxy begins with the first client's tensors. Where two
/// clients send one tensor to different proxies that hold others of it first, the proxies wait for
/// each other for ever, which check() finds.
///
/// Throws Error{input} when a proxy's slots are used again within an iteration (a window smaller
/// than the number of parts in a lane).
[[nodiscard]] Schedule with_one_queue(const Schedule& schedule, const Plan& plan);

} // namespace reckon
