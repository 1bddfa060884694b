// SPDX-License-Identifier: Apache-2.0
#include "strategies/one_machine.hpp"

#include "core/units.hpp"
#include "stats/summary.hpp"
#include "strategies/least.hpp"
#include "strategies/processors.hpp"
#include "strategies/rate_law.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

namespace reckon {
namespace {

double total(const std::vector<double>& v) {
  return std::accumulate(v.begin(), v.end(), 0.0);
}

double& end_of(Prediction& p, Estimate e) {
  return e == Estimate::lo ? p.lo_seconds : e == Estimate::mid ? p.mid_seconds : p.hi_seconds;
}

/// What is predicted.
struct SharedExchange {
  const CostModel& model;
  const Load& load;
  const PartShape& shape;
  int lanes = 1; ///< of each rank
  [[nodiscard]] double talkers() const {
    return lanes * static_cast<double>(
                       std::ranges::count_if(load.egress_bytes, [](double b) { return b > 0; }));
  }
};

/// Lanes are dealt to the processors in turn, as a run deals them. `summed`: bytes of work for each
/// byte that is summed.
std::vector<ProcessorWork> processor_work(const SharedExchange& exchange, double moved,
                                          double summed) {
  const Load& load = exchange.load;
  const auto lanes = static_cast<std::size_t>(exchange.lanes);
  std::vector<ProcessorWork> processors(std::max<std::size_t>(1, exchange.model.cores()));
  for (std::size_t i = 0; i < load.egress_bytes.size() * lanes; ++i) {
    ProcessorWork& processor = processors[i % processors.size()];
    processor.moved_bytes += moved * load.egress_bytes[i / lanes] / exchange.lanes;
    processor.summed_bytes += summed * load.summed_bytes[i / lanes] / exchange.lanes;
  }
  return processors;
}

Prediction predict_sent(const SharedExchange& exchange) {
  const auto& [model, load, shape, lanes] = exchange;
  Prediction p;
  const double moved = total(load.egress_bytes);
  p.bound_seconds = moved / model.best_shared_rate();
  p.bound_by = fmt::format("{} between ranks at the best rate ever measured, {}",
                           to_text(Bytes(static_cast<std::uint64_t>(moved))),
                           to_text(Bandwidth::bytes_per_s(model.best_shared_rate())));
  const std::vector<ProcessorWork> processors = processor_work(exchange, 1, 1);
  const Rate together = model.shared_rate(exchange.talkers(), shape.part_bytes);
  const std::optional<Rate> alone = model.one_processor_rate(shape.part_bytes);
  for (const Estimate e : k_estimates) {
    const double shared = together.slow_to_fast(e);
    const auto rates = [&](std::size_t busy) {
      const auto at_work = static_cast<double>(busy);
      const Rate sums =
          exchange.model.reduce_rate(exchange.shape.dtype, static_cast<int>(busy),
                                     exchange.load.operands, exchange.shape.part_bytes);
      return ProcessorRates{alone ? std::min(at_work * alone->slow_to_fast(e), shared) : shared,
                            at_work * sums.slow_to_fast(e)};
    };
    const ProcessorTimes times = processor_times(processors, rates);
    // Before the first sum and after the last, one part goes through write, sum, write by itself.
    const double fill =
        shape.part_bytes * static_cast<double>(load.operands) / shared + 2 * model.latency_s();
    end_of(p, e) = times.moving_s + times.summing_s + fill;
    if (e == Estimate::mid) {
      p.terms = {{"transport", times.moving_s}, {"reduction", times.summing_s}, {"fill", fill}};
    }
  }
  p.relief =
      fmt::format("an exchange moves bytes for {} and adds them up for {}; fewer bytes "
                  "between ranks (more of them on the machine that sums) or faster memory",
                  to_text(Seconds(p.terms[0].seconds)), to_text(Seconds(p.terms[1].seconds)));
  return p;
}

/// Sums in place: what the processors read and write for the ranks whose lanes they have.
Prediction predict_in_place(const SharedExchange& exchange) {
  const CostModel& model = exchange.model;
  const auto operands = static_cast<double>(exchange.load.operands);
  const double traffic = 2 * operands / (operands - 1); // of a byte that is summed
  const std::vector<ProcessorWork> processors = processor_work(exchange, 0, traffic);
  Prediction p;
  const LeastTime least = least_through_memory(model, traffic * total(exchange.load.summed_bytes));
  p.bound_seconds = least.seconds;
  p.bound_by = least.by;
  for (const Estimate e : k_estimates) {
    const auto rates = [&](std::size_t busy) {
      const std::optional<Rate> rate =
          model.in_place_rate(exchange.shape.dtype, static_cast<int>(busy), exchange.load.operands);
      return ProcessorRates{rate->slow_to_fast(e), rate->slow_to_fast(e)};
    };
    const double reduction = processor_times(processors, rates).summing_s;
    const double fill = 2 * model.latency_s(); // the words that gradients, and sums, are there
    end_of(p, e) = reduction + fill;
    if (e == Estimate::mid) {
      p.terms = {{"transport", 0}, {"reduction", reduction}, {"fill", fill}};
    }
  }
  p.relief = "faster memory, or fewer workers that share it";
  return p;
}

Prediction from_rates(const SharedExchange& exchange) {
  return exchange.shape.in_place ? predict_in_place(exchange) : predict_sent(exchange);
}

/// What the ranks of a rehearsal send and sum, as load_of() has it for such ranks.
Load load_of(const CostModel::Rehearsed& rehearsed) {
  const auto ranks = static_cast<std::size_t>(rehearsed.ranks);
  const double gradient = rehearsed.gradient_bytes, workers = rehearsed.workers;
  const double servers = rehearsed.ranks - workers;
  Load load;
  load.operands = rehearsed.strategy == "ring" ? 2 : static_cast<std::size_t>(workers);
  for (std::size_t r = 0; r < ranks; ++r) {
    const bool worker = r < static_cast<std::size_t>(workers);
    const double summed = servers == 0 ? gradient / workers : worker ? 0 : gradient / servers;
    const double own = worker ? gradient - summed : 0;
    load.egress_bytes.push_back(own + (workers - (worker ? 1 : 0)) * summed);
    load.summed_bytes.push_back((workers - 1) * summed);
  }
  load.ingress_bytes = load.egress_bytes;
  return load;
}

/// Of an iteration.
Rate seconds_of(const CostModel::Rehearsed& rehearsed) {
  const Rate& rate = rehearsed.bytes_per_s;
  const double gradient = rehearsed.gradient_bytes;
  return {gradient / rate.hi, gradient / rate.mid, gradient / rate.lo};
}

/// What a rehearsal took, as a multiple of from_rates().
struct Seen {
  double ranks = 0, servers = 0, part_bytes = 0;
  Rate times;
};

/// The rehearsals of this strategy.
std::vector<Seen> seen(const SharedExchange& exchange, const std::string& strategy) {
  std::vector<Seen> all;
  for (const CostModel::Rehearsed& rehearsed : exchange.model.rehearsed()) {
    if (rehearsed.strategy != strategy || rehearsed.in_place != exchange.shape.in_place) {
      continue;
    }
    const Load its_load = load_of(rehearsed);
    PartShape its_shape;
    its_shape.part_bytes = rehearsed.part_bytes;
    its_shape.in_place = rehearsed.in_place;
    const double expected = from_rates({exchange.model, its_load, its_shape}).mid_seconds;
    const Rate seconds = seconds_of(rehearsed);
    all.push_back({rehearsed.ranks,
                   rehearsed.ranks - rehearsed.workers,
                   rehearsed.part_bytes,
                   {seconds.lo / expected, seconds.mid / expected, seconds.hi / expected}});
  }
  return all;
}

/// Between them. Nothing: there are none.
std::optional<Rate> between(const std::vector<Seen>& all, const Seen& place) {
  RateLaw law(RateLaw::Beyond::same);
  for (const Seen& one : all) {
    law.add(one.ranks, one.servers, one.part_bytes, one.times);
  }
  return law.empty() ? std::nullopt
                     : std::optional(law.at(place.ranks, place.servers, place.part_bytes));
}

/// How far the law is from each of them when that one was not played, as logarithms of factors:
/// from those between others, as plans are.
void add_surprises(std::vector<double>& surprises, const std::vector<Seen>& all) {
  for (std::size_t i = 0; i < all.size(); ++i) {
    std::vector<Seen> others = all;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    const auto [fewest, most] = std::ranges::minmax_element(others, {}, &Seen::ranks);
    if (!others.empty() && fewest->ranks <= all[i].ranks && all[i].ranks <= most->ranks) {
      const Rate expected = *between(others, all[i]);
      surprises.push_back(std::abs(std::log(all[i].times.mid / expected.mid)));
    }
  }
}

/// By ranks that only sum, as a part of all sums; 0 where nothing is summed.
double served_part(const SharedExchange& exchange) {
  double served = 0;
  const Load& load = exchange.load;
  for (std::size_t r = 0; r < load.summed_bytes.size(); ++r) {
    served += exchange.model.ranks()[r].worker ? 0 : load.summed_bytes[r];
  }
  const double all = total(load.summed_bytes);
  return all > 0 ? served / all : 0;
}

/// Of ten runs of a plan, eight are no farther than this from their mean, as a logarithm: two of
/// them differ by 6 % in the median (docs/equations.md), which is 1.28 / (0.674 sqrt(2)) times
/// that.
constexpr double k_from_run_to_run = 0.081;

/// Equation 15c. Of ten plans, eight are in the range: it has what rehearsals of one plan took from
/// iteration to iteration, what plans take from run to run, and how far rehearsals are from what
/// the others would say of them.
void correct(Prediction& p, const SharedExchange& exchange, bool ring) {
  const Seen place{static_cast<double>(exchange.load.egress_bytes.size()) * exchange.lanes,
                   static_cast<double>(exchange.model.servers().size()),
                   exchange.shape.part_bytes,
                   {}};
  std::vector<double> surprises;
  const auto of = [&](const char* strategy) {
    const std::vector<Seen> all = seen(exchange, strategy);
    add_surprises(surprises, all);
    return between(all, place);
  };
  const std::optional<Rate> of_ring = ring ? of("ring") : std::nullopt;
  const std::optional<Rate> usual = of_ring ? of_ring : of("ps_colocated");
  const std::optional<Rate> served = ring ? std::nullopt : of("ps_noncolocated");
  if (!usual && !served) {
    return;
  }
  const Rate own = usual.value_or(Rate{1, 1, 1}), theirs = served.value_or(own);
  const double part = served_part(exchange), mid = p.mid_seconds;
  const auto factor = [&](double Rate::*end) {
    return own.*end * std::pow(theirs.*end / own.*end, part);
  };
  const double surprise = surprises.empty() ? 0 : quantile(std::move(surprises), 0.8);
  const auto widened = [&](double Rate::*end) {
    const double usually = std::log(factor(end) / factor(&Rate::mid));
    return factor(&Rate::mid) *
           std::exp(std::copysign(std::hypot(usually, surprise, k_from_run_to_run),
                                  end == &Rate::lo ? -1 : 1));
  };
  p.lo_seconds = mid * widened(&Rate::lo);
  p.mid_seconds = mid * factor(&Rate::mid);
  p.hi_seconds = mid * widened(&Rate::hi);
  for (Term& term : p.terms) {
    term.seconds *= p.mid_seconds / mid;
  }
}

} // namespace

Prediction predict_on_machine(const CostModel& model, const Load& load, const PartShape& shape,
                              bool ring) {
  const SharedExchange exchange{model, load, shape, model.ranks().front().lanes};
  Prediction p = from_rates(exchange);
  correct(p, exchange, ring);
  return p;
}

std::optional<RehearsalPlan> rehearsal_like(const Plan& plan, const CostModel& model) {
  const auto workers = static_cast<double>(model.workers().size());
  const auto ranks = static_cast<double>(model.ranks().size()) * model.ranks().front().lanes;
  const std::string strategy = plan.strategy == "ring" ? "ring"
                               : workers < ranks       ? "ps_noncolocated"
                                                       : "ps_colocated";
  using Distance = std::array<double, 3>;
  const auto distance = [&](const CostModel::Rehearsed& r) {
    return Distance{std::abs(std::log(r.ranks / ranks)), std::abs(std::log(r.workers / workers)),
                    std::abs(std::log(r.part_bytes / static_cast<double>(plan.part_bytes)))};
  };
  const CostModel::Rehearsed* nearest = nullptr;
  for (const CostModel::Rehearsed& one : model.rehearsed()) {
    if (one.strategy == strategy && one.in_place == plan.sums_in_place &&
        (nearest == nullptr || distance(one) < distance(*nearest))) {
      nearest = &one;
    }
  }
  if (nearest == nullptr) {
    return std::nullopt;
  }
  const Rate seconds = seconds_of(*nearest);
  return RehearsalPlan{nearest->strategy,
                       nearest->in_place,
                       static_cast<int>(nearest->ranks),
                       static_cast<int>(nearest->workers),
                       static_cast<std::uint64_t>(nearest->part_bytes),
                       seconds.lo,
                       seconds.mid,
                       seconds.hi};
}

} // namespace reckon
