// SPDX-License-Identifier: Apache-2.0
// Gradients that are sent as something else than what they are.
#include "core/error.hpp"
#include "equations/fixed_point.hpp"
#include "strategies/lower_sums.hpp"
#include "strategies/lowerings.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

namespace reckon {
namespace {

/// The ops that convert a part at a worker: its gradient before the part's first use, and its sum
/// once that has arrived and been passed on.
struct Conversions {
  std::function<Op(std::uint32_t rank, std::uint32_t part)> before, after;
  bool in_place = false;         ///< so that whatever reads the gradient comes before `after`
  std::optional<DType> summed{}; ///< element type of sums; absent: as they were
};

class Converted {
public:
  Converted(const Schedule& sums, const Plan& plan, Conversions conversions)
      : m_sums(sums), m_plan(plan), m_places(sums, plan), m_conversions(std::move(conversions)) {}

  [[nodiscard]] LaneProgram lane(std::uint32_t rank, std::uint32_t lane) const {
    const LaneProgram& in = m_sums.ranks[rank].lanes[lane];
    const bool worker = m_sums.worker[rank];
    const std::size_t first_late = worker ? late_passes(in, lane) : in.ops().size();
    LaneProgram out;
    std::vector<std::uint32_t> now(in.ops().size());
    std::vector<std::uint32_t> first(m_plan.parts.size(), k_no_op); ///< its conversion
    std::vector<std::vector<std::uint32_t>> readers(m_plan.parts.size());
    std::vector<std::uint32_t> depends_on;
    const auto take_over = [&](std::uint32_t i) {
      Op op = in.ops()[i];
      op.dtype = op.kind == OpKind::reduce ? m_conversions.summed.value_or(op.dtype) : op.dtype;
      now[i] = out.append_again(in, op, depends_on);
    };
    for (std::uint32_t i = 0; i < first_late; ++i) {
      const Op& op = in.ops()[i];
      const bool touches = worker && touches_gradient(in, op);
      if (touches && first[op.part] == k_no_op) {
        depends_on.clear();
        std::ranges::for_each(in.dependencies(i), [&](std::uint32_t d) {
          if (in.ops()[d].kind == OpKind::delay) { // one that makes the gradient
            depends_on.push_back(now[d]);
          }
        });
        first[op.part] = out.append(m_conversions.before(rank, op.part), depends_on);
      }
      depends_on.clear();
      for (const std::uint32_t d : in.dependencies(i)) {
        depends_on.push_back(now[d]);
      }
      depends_on.insert(depends_on.end(), touches ? 1 : 0, first[op.part]);
      take_over(i);
      if (touches) {
        readers[op.part].push_back(now[i]);
      }
    }
    if (!worker) {
      return out;
    }
    const std::vector<std::uint32_t> there = m_places.there(rank, lane);
    std::vector<std::uint32_t> back(m_plan.parts.size(), k_no_op);
    for (std::uint32_t p = 0; p < m_plan.parts.size(); ++p) {
      if (m_plan.parts.lane[p] != lane) {
        continue;
      }
      depends_on = readers[p];
      if (depends_on.empty()) { // the only worker
        depends_on.assign(
            1, out.append(m_conversions.before(rank, p), passes_before(in, p, now, first_late)));
      }
      if (there[p] != k_no_op) {
        depends_on.resize(m_conversions.in_place ? depends_on.size() : 0);
        depends_on.push_back(now[there[p]]);
      }
      back[p] = out.append(m_conversions.after(rank, p), depends_on);
    }
    for (auto i = static_cast<std::uint32_t>(first_late); i < in.ops().size(); ++i) {
      depends_on.clear();
      for (const std::uint32_t d : in.dependencies(i)) {
        const std::uint32_t p = in.ops()[d].part;
        depends_on.push_back(there[p] == d ? back[p] : now[d]);
      }
      if (m_plan.passes->of_parts) {
        depends_on.push_back(back[in.ops()[i].part]);
      }
      take_over(i);
    }
    return out;
  }

private:
  /// The first of a worker's passes that wait for sums: they come last in a lane (PlayedPasses).
  [[nodiscard]] std::size_t late_passes(const LaneProgram& in, std::uint32_t lane) const {
    std::size_t late = 0;
    if (m_plan.passes) {
      late = m_plan.passes->of_parts
                 ? static_cast<std::size_t>(std::ranges::count(m_plan.parts.lane, lane))
                 : m_plan.passes->size();
    }
    return in.ops().size() - late;
  }
  /// A part's own pass, of a plan with passes of parts.
  [[nodiscard]] std::vector<std::uint32_t> passes_before(const LaneProgram& in, std::uint32_t p,
                                                         const std::vector<std::uint32_t>& now,
                                                         std::size_t end) const {
    std::vector<std::uint32_t> passes;
    for (std::size_t i = 0; m_plan.passes && i < end; ++i) {
      if (in.ops()[i].kind == OpKind::delay &&
          (!m_plan.passes->of_parts || in.ops()[i].part == p)) {
        passes.push_back(now[i]);
      }
    }
    return passes;
  }
  [[nodiscard]] static bool touches_gradient(const LaneProgram& in, const Op& op) {
    if (op.kind == OpKind::write || op.kind == OpKind::copy) {
      return op.source.buffer == k_gradient_buffer;
    }
    const auto sources = in.sources(op);
    return op.kind == OpKind::reduce &&
           std::any_of(sources.begin(), sources.end(),
                       [](const Slice& s) { return s.buffer == k_gradient_buffer; });
  }

  const Schedule& m_sums;
  const Plan& m_plan;
  LoweredSums m_places;
  Conversions m_conversions;
};

} // namespace

Schedule with_fixed_point(const Schedule& sums, const Plan& plan) {
  require_fp32(plan, "fixed-point reduction");
  Schedule result = sums;
  const auto workers =
      static_cast<std::uint64_t>(std::count(sums.worker.begin(), sums.worker.end(), true));
  result.outcome = Outcome::fixed_sums;
  result.fixed.exponent = plan.fixed_point->exponent;
  result.fixed.limit = fixed_point_limit(plan.fixed_point->bits, workers);
  result.fixed.gradient_bound = plan.fixed_point->gradient_bound;
  const double most = static_cast<double>(workers) * result.fixed.gradient_bound;
  if (result.fixed.limit < 1 || most > static_cast<double>(std::numeric_limits<float>::max()) ||
      result.fixed.exponent >
          fixed_point_exponent(result.fixed.limit, result.fixed.gradient_bound)) {
    fail(ErrorKind::input,
         fmt::format("sums of {} gradients of up to {} overflow {} bits with /fixed_point/exponent "
                     "{}; plan again",
                     workers, result.fixed.gradient_bound, plan.fixed_point->bits,
                     result.fixed.exponent));
  }
  const auto in_place = [&](OpKind kind) {
    return [&plan, &result, kind](std::uint32_t /*rank*/, std::uint32_t p) {
      return Op{.kind = kind,
                .exponent = static_cast<std::int16_t>(result.fixed.exponent),
                .part = p,
                .limit = result.fixed.limit,
                .source = gradient_of(plan, p),
                .destination = gradient_of(plan, p),
                .bytes = plan.parts.bytes[p]};
    };
  };
  const Converted converted(
      sums, plan, {in_place(OpKind::to_fixed), in_place(OpKind::from_fixed), true, DType::int32});
  change_lanes(result, [&](auto rank, auto lane) { return converted.lane(rank, lane); });
  return result;
}

Schedule with_wire(const Schedule& sums, const Plan& plan) {
  Schedule result = sums;
  result.wire = plan.wire;
  const std::uint64_t times = size_of(DType::fp32) / size_of(*plan.wire);
  for (std::size_t r = 0; r < result.ranks.size(); ++r) {
    RankProgram& rank = result.ranks[r];
    if (result.worker[r]) {
      rank.gradient_buffer = narrow(rank.buffer_bytes.size());
      rank.buffer_bytes.push_back(times * plan.gradient_bytes);
    }
  }
  const auto wide = [&](std::uint32_t rank, std::uint32_t p) {
    return Slice{result.ranks[rank].gradient_buffer, times * plan.parts.offset_bytes[p]};
  };
  const auto op = [&plan](OpKind kind, std::uint32_t p, Slice from, Slice to) {
    return Op{.kind = kind,
              .dtype = *plan.wire,
              .part = p,
              .source = from,
              .destination = to,
              .bytes = plan.parts.bytes[p]};
  };
  const Converted converted(sums, plan,
                            {[&](std::uint32_t rank, std::uint32_t p) {
                               return op(OpKind::narrow, p, wide(rank, p), gradient_of(plan, p));
                             },
                             [&](std::uint32_t rank, std::uint32_t p) {
                               return op(OpKind::widen, p, gradient_of(plan, p), wide(rank, p));
                             }});
  change_lanes(result, [&](auto rank, auto lane) { return converted.lane(rank, lane); });
  return result;
}

} // namespace reckon
