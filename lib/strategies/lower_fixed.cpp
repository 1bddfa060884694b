// SPDX-License-Identifier: Apache-2.0
#include "equations/fixed_point.hpp"
#include "strategies/lower_sums.hpp"
#include "strategies/lowerings.hpp"

#include <algorithm>

namespace reckon {
namespace {

class FixedPoint {
public:
  FixedPoint(const Schedule& sums, const Plan& plan)
      : m_sums(sums), m_plan(plan), m_places(sums, plan), m_result(sums) {
    const auto workers =
        static_cast<std::uint64_t>(std::count(sums.worker.begin(), sums.worker.end(), true));
    m_result.outcome = Outcome::fixed_sums;
    m_result.fixed.exponent = plan.fixed_point->exponent;
    m_result.fixed.limit = fixed_point_limit(plan.fixed_point->bits, workers);
    m_result.fixed.gradient_bound = plan.fixed_point->gradient_bound;
  }

  Schedule make() {
    change_lanes(m_result,
                 [&](std::uint32_t rank, std::uint32_t lane) { return converted(rank, lane); });
    return std::move(m_result);
  }

private:
  [[nodiscard]] bool touches_gradient(const LaneProgram& in, const Op& op) const {
    if (op.kind == OpKind::write || op.kind == OpKind::copy) {
      return op.source.buffer == k_gradient_buffer;
    }
    const auto sources = in.sources(op);
    return op.kind == OpKind::reduce &&
           std::any_of(sources.begin(), sources.end(),
                       [](const Slice& s) { return s.buffer == k_gradient_buffer; });
  }
  std::uint32_t convert(LaneProgram& out, OpKind kind, std::uint32_t part,
                        std::span<const std::uint32_t> depends_on) const {
    const Slice at = gradient_of(m_plan, part);
    return out.append({.kind = kind,
                       .exponent = static_cast<std::int16_t>(m_result.fixed.exponent),
                       .part = part,
                       .limit = m_result.fixed.limit,
                       .source = at,
                       .destination = at,
                       .bytes = m_plan.parts.bytes[part]},
                      depends_on);
  }

  [[nodiscard]] LaneProgram converted(std::uint32_t rank, std::uint32_t lane) const {
    const LaneProgram& in = m_sums.ranks[rank].lanes[lane];
    const bool worker = m_sums.worker[rank];
    LaneProgram out;
    std::vector<std::uint32_t> now(in.ops().size());
    std::vector<std::uint32_t> first(m_plan.parts.size(), k_no_op); ///< its conversion
    std::vector<std::vector<std::uint32_t>> readers(m_plan.parts.size());
    std::vector<std::uint32_t> depends_on;
    for (std::uint32_t i = 0; i < in.ops().size(); ++i) {
      Op op = in.ops()[i];
      depends_on.clear();
      for (const std::uint32_t d : in.dependencies(i)) {
        depends_on.push_back(now[d]);
      }
      const bool touches = worker && touches_gradient(in, op);
      if (touches) {
        if (first[op.part] == k_no_op) {
          std::vector<std::uint32_t> passes; // that make the gradient
          for (const std::uint32_t d : in.dependencies(i)) {
            if (in.ops()[d].kind == OpKind::delay) {
              passes.push_back(now[d]);
            }
          }
          first[op.part] = convert(out, OpKind::to_fixed, op.part, passes);
        }
        depends_on.push_back(first[op.part]);
      }
      if (op.kind == OpKind::reduce) {
        op.dtype = DType::int32;
      }
      now[i] = out.append_again(in, op, depends_on);
      if (touches) {
        readers[op.part].push_back(now[i]);
      }
    }
    if (!worker) {
      return out;
    }
    const std::vector<std::uint32_t> there = m_places.there(rank, lane);
    for (std::uint32_t p = 0; p < m_plan.parts.size(); ++p) {
      if (m_plan.parts.lane[p] != lane) {
        continue;
      }
      depends_on = readers[p];
      if (depends_on.empty()) { // the only worker
        depends_on.push_back(convert(out, OpKind::to_fixed, p, {}));
      }
      if (there[p] != k_no_op) {
        depends_on.push_back(now[there[p]]);
      }
      convert(out, OpKind::from_fixed, p, depends_on);
    }
    return out;
  }

  const Schedule& m_sums;
  const Plan& m_plan;
  LoweredSums m_places;
  Schedule m_result;
};

} // namespace

Schedule with_fixed_point(const Schedule& sums, const Plan& plan) {
  require_fp32(plan, "fixed-point reduction");
  return FixedPoint(sums, plan).make();
}

} // namespace reckon
