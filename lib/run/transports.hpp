// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/plan.hpp"
#include "movers/mover.hpp"
#include "run/job.hpp"

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace reckon {

/// By rank: the number of its machine, from 0 on, where the plan has several machines and on at
/// least one of them several ranks; else empty, and one transport moves all bytes.
[[nodiscard]] std::vector<std::size_t> machines_of_ranks(const Plan& plan);

/// Sets what moves the plan's bytes. `asked` is "", a transport for all of them, or
/// "inside=NAME,between=NAME", of which one may be missing. What is not asked for: between machines
/// the plan's transport, inside them "cuda" where the plan's ranks are GPUs and this machine has
/// that, else "host". Throws Error{usage} for text of another form, and for inside= where the
/// plan's ranks have no machine together with others.
void choose_transports(RunOptions& options, const Plan& plan, const std::string& asked);

/// The mover of rank `rank` that the options ask for. Throws Error{unavailable} as make_mover().
[[nodiscard]] std::unique_ptr<Mover> mover_for(const RunOptions& options, std::size_t rank);

} // namespace reckon
