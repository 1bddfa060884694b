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
/// least one of them several ranks; otherwise empty, and one transport moves all bytes.
[[nodiscard]] std::vector<std::size_t> machines_of_ranks(const Plan& plan);

/// Sets the transports of the plan's bytes. `asked` is "", a transport for all of them, or
/// "inside=NAME,between=NAME", of which one may be missing. Defaults: between machines the plan's
/// transport, inside them "cuda" where the plan's ranks are GPUs and this machine has it, else
/// "host". Throws Error{usage} for text of another form, and for inside= where no two of the plan's
/// ranks share a machine.
void choose_transports(RunOptions& options, const Plan& plan, const std::string& asked);

/// The mover of rank `rank` for these options. Throws Error{unavailable} as make_mover().
[[nodiscard]] std::unique_ptr<Mover> mover_for(const RunOptions& options, std::size_t rank);

} // namespace reckon
