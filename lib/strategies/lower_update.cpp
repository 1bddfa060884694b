// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "strategies/lower_sums.hpp"
#include "strategies/lowerings.hpp"

#include <fmt/format.h>

namespace reckon {
namespace {

/// Where each part's parameters and states are to be found in one rank.
struct UpdatePlaces {
  std::uint32_t parameter_buffer = 0;
  std::vector<std::uint64_t> parameter_offset; ///< by part; of those that the rank holds
  std::vector<std::uint64_t> state_offset;     ///< by part; of those that it steps
  [[nodiscard]] Slice parameters(std::uint32_t part) const {
    return {parameter_buffer, parameter_offset[part]};
  }
};

class Updating {
public:
  Updating(const Schedule& sums, const Plan& plan)
      : m_sums(sums), m_plan(plan), m_where(sums, plan), m_result(sums),
        m_at_server(plan.update->place == UpdatePlace::server) {
    m_result.outcome = Outcome::parameters;
    m_result.optimizer = plan.update->optimizer;
  }

  Schedule make() {
    for (std::uint32_t r = 0; r < m_sums.ranks.size(); ++r) {
      m_places.push_back(place(r));
    }
    change_lanes(m_result, [&](std::uint32_t rank, std::uint32_t lane) {
      return m_at_server ? stepped_by_server(rank, lane) : stepped_by_worker(rank, lane);
    });
    return std::move(m_result);
  }

private:
  [[nodiscard]] bool steps(std::uint32_t rank, std::size_t part) const {
    return m_at_server ? m_plan.parts.server[part] == rank : m_plan.ranks[rank].worker;
  }

  /// Adds the buffers.
  UpdatePlaces place(std::uint32_t rank) {
    RankProgram& program = m_result.ranks[rank];
    const Parts& parts = m_plan.parts;
    const bool worker = m_plan.ranks[rank].worker;
    UpdatePlaces p;
    p.parameter_buffer = static_cast<std::uint32_t>(program.buffer_bytes.size());
    p.parameter_offset.resize(parts.size());
    p.state_offset.resize(parts.size());
    std::uint64_t stepped = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const bool mine = steps(rank, i);
      p.parameter_offset[i] = worker ? parts.offset_bytes[i] : stepped;
      p.state_offset[i] = stepped;
      if (mine && !worker) {
        program.parameters.push_back(
            {p.parameters(static_cast<std::uint32_t>(i)), parts.offset_bytes[i], parts.bytes[i]});
      }
      stepped += mine ? parts.bytes[i] : 0;
    }
    if (worker) {
      for (const DTypeRun& run : m_sums.runs) {
        program.parameters.push_back(
            {{p.parameter_buffer, run.offset_bytes}, run.offset_bytes, run.bytes});
      }
    }
    program.buffer_bytes.push_back(worker ? m_plan.gradient_bytes : stepped);
    for (std::size_t s = 0; s < state_arrays(m_result.optimizer); ++s) {
      program.state_buffers.push_back(static_cast<std::uint32_t>(program.buffer_bytes.size()));
      program.buffer_bytes.push_back(stepped);
    }
    return p;
  }

  std::uint32_t append_update(LaneProgram& out, std::uint32_t rank, std::uint32_t part, Slice sum,
                              std::span<const std::uint32_t> depends_on) const {
    const UpdatePlaces& places = m_places[rank];
    const Op op{.kind = OpKind::update,
                .optimizer = m_result.optimizer,
                .part = part,
                .destination = places.parameters(part),
                .bytes = m_plan.parts.bytes[part]};
    std::vector<Slice> sources{sum};
    for (const std::uint32_t buffer : m_result.ranks[rank].state_buffers) {
      sources.push_back({buffer, places.state_offset[part]});
    }
    return out.append_over(op, sources, depends_on);
  }
  [[nodiscard]] LaneProgram stepped_by_server(std::uint32_t rank, std::uint32_t lane) const {
    const LaneProgram& in = m_sums.ranks[rank].lanes[lane];
    const std::vector<std::uint32_t> last = m_where.made(rank, lane);
    LaneProgram out;
    std::vector<std::uint32_t> now(in.ops().size()); ///< who follows an old op waits for this one
    std::vector<std::uint32_t> depends_on;
    for (std::uint32_t p = 0; p < m_plan.parts.size(); ++p) { // one worker: its gradient is the sum
      if (m_plan.parts.lane[p] == lane && m_plan.parts.server[p] == rank && last[p] == k_no_op) {
        append_update(out, rank, p, gradient_of(m_plan, p), {});
      }
    }
    for (std::uint32_t i = 0; i < in.ops().size(); ++i) {
      Op op = in.ops()[i];
      depends_on.clear();
      bool from_sum = false;
      for (const std::uint32_t d : in.dependencies(i)) {
        depends_on.push_back(now[d]);
        from_sum = from_sum || (last[op.part] == d && op.kind == OpKind::write);
      }
      if (from_sum || (m_where.is_return(op) && op.source.buffer == k_gradient_buffer)) {
        op.source = m_places[rank].parameters(op.part);
      }
      if (m_where.is_return(op)) {
        op.destination = m_places[op.peer].parameters(op.part);
      }
      now[i] = out.append_again(in, op, depends_on);
      if (i == last[op.part]) {
        now[i] = append_update(out, rank, op.part, op.destination, std::span(&now[i], 1));
      }
    }
    return out;
  }

  [[nodiscard]] LaneProgram stepped_by_worker(std::uint32_t rank, std::uint32_t lane) const {
    LaneProgram out = m_sums.ranks[rank].lanes[lane];
    if (!m_plan.ranks[rank].worker) {
      return out;
    }
    const std::vector<std::uint32_t> ready = m_where.there(rank, lane);
    for (std::uint32_t p = 0; p < m_plan.parts.size(); ++p) {
      if (m_plan.parts.lane[p] == lane) {
        append_update(out, rank, p, gradient_of(m_plan, p),
                      ready[p] == k_no_op ? std::span<const std::uint32_t>()
                                          : std::span<const std::uint32_t>(&ready[p], 1));
      }
    }
    return out;
  }

  const Schedule& m_sums;
  const Plan& m_plan;
  LoweredSums m_where;
  Schedule m_result;
  bool m_at_server;
  std::vector<UpdatePlaces> m_places;
};

} // namespace

Schedule with_update(const Schedule& sums, const Plan& plan) {
  return Updating(sums, plan).make();
}

void require_fp32(const Plan& plan, const char* what) {
  for (const DTypeRun& run : plan.runs) {
    if (run.dtype != DType::fp32) {
      fail(ErrorKind::input, fmt::format("{} is for gradients of fp32 only, and this one has {} {}",
                                         what, run.bytes / size_of(run.dtype), name_of(run.dtype)));
    }
  }
}

} // namespace reckon
