// SPDX-License-Identifier: Apache-2.0
#include "strategies/checkpoint_cost.hpp"

#include "schedule/snapshot.hpp"
#include "strategies/lower.hpp"

#include <algorithm>
#include <numeric>

namespace reckon {
namespace {

constexpr const char* k_name = "checkpoint_seconds";

std::vector<double> saved_of(const Schedule& saving) {
  std::vector<double> saved;
  for (const RankProgram& rank : saving.ranks) {
    saved.push_back(std::accumulate(
        rank.saved.begin(), rank.saved.end(), 0.0,
        [](double sum, const SavedRun& run) { return sum + static_cast<double>(run.kept.bytes); }));
  }
  return saved;
}

/// The iteration played with its copies, less the one without: what the copies keep lanes from that
/// would not have waited for links anyway. `usual` makes optimizer steps; `cost` is of its ops.
std::optional<Quantity> played_checkpoint_cost(const CostModel& model, const Schedule& usual,
                                               const PlayNetwork& network, const OpCost& cost,
                                               double part_bytes) {
  std::vector<double> lane_rate; // by rank
  for (const RankProgram& rank : usual.ranks) {
    const auto lanes = static_cast<int>(rank.lanes.size());
    const auto rate = model.copy_rate(part_bytes, lanes);
    if (!rate) {
      return std::nullopt;
    }
    lane_rate.push_back(*rate / lanes);
  }
  const Schedule saving = with_snapshot(usual);
  const OpCost with_copies = [&](std::size_t rank, const Op& op) {
    const bool saves = op.kind == OpKind::copy && op.destination.buffer + std::size_t{1} ==
                                                      saving.ranks[rank].buffer_bytes.size();
    return saves ? static_cast<double>(op.bytes) / lane_rate[rank] : cost(rank, op);
  };
  const std::vector<double> saved = saved_of(saving);
  const double more =
      play(saving, network, with_copies).total_seconds - play(usual, network, cost).total_seconds;
  return Quantity{k_name,
                  std::max(0.0, more), // another order of equal ops may be a little better
                  "equation 20b: the iteration played with the copies, less the one without",
                  {{"saved_bytes", std::accumulate(saved.begin(), saved.end(), 0.0)},
                   {"copy_bytes_per_second",
                    lane_rate.front() * static_cast<double>(usual.ranks.front().lanes.size())}}};
}

} // namespace

std::optional<Quantity> shared_checkpoint_cost(const CostModel& model,
                                               std::span<const double> saved, double part_bytes) {
  const auto busy = std::count_if(saved.begin(), saved.end(), [](double b) { return b > 0; });
  const auto threads = std::min<std::uint64_t>(
      static_cast<std::uint64_t>(busy * model.ranks().front().lanes), model.cores());
  const auto rate = model.copy_rate(part_bytes, std::max(1, static_cast<int>(threads)));
  if (!rate) {
    return std::nullopt;
  }
  const double all = std::accumulate(saved.begin(), saved.end(), 0.0);
  return Quantity{k_name,
                  all / *rate,
                  "equation 20b: the copies of all ranks, which share the processors",
                  {{"saved_bytes", all}, {"copy_bytes_per_second", *rate}}};
}

std::optional<Quantity> checkpoint_cost(const Plan& plan, const Job& job, const Ways& ways) {
  const Schedule schedule = lower(plan);
  const auto part_bytes = static_cast<double>(plan.part_bytes);
  const std::vector<double> saved = saved_of(with_snapshot(schedule));
  for (std::size_t r = 0; r < saved.size(); ++r) {
    if (saved[r] > 0 && plan.ranks[r].endpoint_kind == "gpu") {
      return std::nullopt; // how fast GPUs copy is in no profile
    }
  }
  if (ways.one_machine()) {
    return shared_checkpoint_cost(ways.model(), saved, part_bytes);
  }
  if (!ways.has_model() ||
      static_cast<double>(plan.parts.size()) * job.writes_per_part() > k_thorough.most_writes) {
    return std::nullopt;
  }
  return played_checkpoint_cost(ways.model(), schedule, ways.between(part_bytes).network,
                                ways.op_cost(part_bytes), part_bytes);
}

} // namespace reckon
