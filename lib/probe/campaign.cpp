// SPDX-License-Identifier: Apache-2.0
#include "probe/campaign.hpp"

#include "core/error.hpp"
#include "core/log.hpp"
#include "documents/cells.hpp"
#include "probe/sampling.hpp"
#include "stats/random.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <utility>

namespace reckon {
namespace {

/// Of the campaign's time, what is kept for refinement where there is some.
constexpr double k_refinement_share = 0.3;
/// Of the whole time, the most that the second measurement of the reference cell may take.
constexpr double k_reference_share = 0.03;
/// A change of the reference cell by more is worth a warning.
constexpr double k_drift_limit = 0.10;

Seconds sum(const std::vector<CellPlan>& plans, Seconds CellPlan::*field) {
  return std::accumulate(plans.begin(), plans.end(), Seconds(0),
                         [field](Seconds s, const CellPlan& p) { return s + p.*field; });
}

class Runner {
public:
  Runner(const std::vector<Campaign>& campaigns, const RunnerOptions& options, const Clock& clock,
         Guard& guard)
      : m_campaigns(campaigns), m_options(options), m_clock(clock), m_guard(guard),
        m_engine(options.seed), m_start(clock.now()), m_patience(0.05 * options.budget) {}

  RunResult run() {
    double shares = 0; // of what is still to come
    std::vector<const Campaign*> campaigns;
    for (const Campaign& campaign : m_campaigns) {
      if (!campaign.plan().empty()) {
        campaigns.push_back(&campaign);
        shares += campaign.share;
      }
    }
    for (const Campaign* campaign : campaigns) {
      run_campaign(*campaign, campaign->share / shares);
      shares -= campaign->share;
    }
    measure_reference_again();
    m_result.interrupted = interrupted();
    m_result.took = m_clock.now() - m_start;
    return std::move(m_result);
  }

private:
  /// `part` of the time that is left is this campaign's.
  void run_campaign(const Campaign& campaign, double part) {
    std::vector<CellPlan> plans = campaign.plan();
    if (interrupted()) {
      leave_out(plans, CellStatus::skipped, "interrupted");
      return;
    }
    const std::size_t first = m_result.cells.size();
    try {
      if (campaign.begin) {
        campaign.begin();
      }
    } catch (const Error& error) {
      leave_out(plans, status_of(error), error.what());
      return;
    }
    wait_for_quiet(campaign.name);
    // Its preparations are at the cost of all.
    const Seconds all = m_start + (1 - k_reference_share) * m_options.budget - m_clock.now();
    const Seconds whole = std::max(part * all, Seconds(0));
    const Seconds end = m_clock.now() + whole;
    // Refinement has its part, unless the cells themselves need it.
    std::vector<CellPlan> rest =
        measure(std::move(plans), campaign.more ? end - k_refinement_share * whole : end);
    if (campaign.more) {
      rest = measure(std::move(rest), end);
    }
    leave_out(rest, CellStatus::skipped,
              interrupted()
                  ? "interrupted"
                  : fmt::format("no time left of the budget of {}", to_text(m_options.budget)));
    while (campaign.more && !interrupted() && m_clock.now() < end) {
      const std::vector<Cell> measured(m_result.cells.begin() + static_cast<std::ptrdiff_t>(first),
                                       m_result.cells.end());
      std::vector<CellPlan> more = campaign.more(measured);
      std::erase_if(more, [&](const CellPlan& plan) {
        return std::any_of(measured.begin(), measured.end(),
                           [&](const Cell& cell) { return cell.key == plan.key; });
      });
      // What refinement cannot measure in time is no hole in the matrix: it is not mentioned.
      static_cast<void>(drop_what_does_not_fit(more, end - m_clock.now()));
      if (more.empty()) {
        break;
      }
      const std::vector<CellPlan> unfinished = measure(std::move(more), end);
      if (interrupted()) {
        leave_out(unfinished, CellStatus::skipped, "interrupted");
      }
    }
    if (campaign.end) {
      campaign.end();
    }
  }

  /// All waiting together is bounded, too: on a busy machine there would be no time left to
  /// measure.
  void wait_for_quiet(const std::string& campaign) {
    const Seconds before = m_clock.now();
    const Seconds limit = std::min(m_options.wait_for_quiet, m_patience);
    if (limit > Seconds(0) && !m_guard.wait_for_quiet(limit)) {
      log(LogLevel::info, "{}: others keep using this machine's processors; measuring anyway",
          campaign);
    }
    m_patience -= m_clock.now() - before;
  }

  /// Returns those that there was no time for, or that an interrupt prevented.
  std::vector<CellPlan> measure(std::vector<CellPlan> plans, Seconds end) {
    std::vector<CellPlan> left_out = drop_what_does_not_fit(plans, end - m_clock.now());
    for (std::size_t i = plans.size(); i > 1; --i) {
      std::swap(plans[i - 1], plans[uniform_index(m_engine, i)]);
    }
    while (!plans.empty()) {
      CellPlan plan = std::move(plans.back());
      plans.pop_back();
      const Seconds left = end - m_clock.now();
      if (interrupted() || left < plan.least) {
        left_out.push_back(std::move(plan));
        continue;
      }
      // Everybody gets the least; what is left beyond that, in proportion to what each wants more.
      const Seconds least = plan.least + sum(plans, &CellPlan::least);
      const Seconds wanted = plan.wanted + sum(plans, &CellPlan::wanted);
      const double part =
          wanted > least ? std::clamp((left - least) / (wanted - least), 0.0, 1.0) : 1.0;
      measure(plan, plan.least + part * (plan.wanted - plan.least));
    }
    return left_out;
  }

  void measure(const CellPlan& plan, Seconds budget) {
    const std::string what = plan.key.text();
    if (m_options.progress) {
      const Seconds spent = m_clock.now() - m_start;
      m_options.progress(std::clamp(spent / m_options.budget, 0.0, 1.0), what,
                         std::max(m_options.budget - spent, Seconds(0)));
    }
    Cell cell = measured(plan, budget);
    log(LogLevel::debug, "{}: {} after {}{}", what, name_of(cell.status), to_text(budget),
        cell.reason.empty() ? "" : ", " + cell.reason);
    const bool fit = cell.has_value();
    if (fit && (!m_reference || (plan.reference && !m_reference->reference))) {
      m_reference = plan;
      m_first = cell;
      m_reference_budget = budget;
    }
    m_result.cells.push_back(std::move(cell));
  }

  Cell measured(const CellPlan& plan, Seconds budget) {
    Cell cell = empty_cell(plan);
    m_guard.begin();
    try {
      plan.measure(cell, budget);
    } catch (const Error& error) {
      cell = without_value(plan, status_of(error), error.what());
    } catch (const std::bad_alloc&) {
      cell = without_value(plan, CellStatus::failed, "out of memory");
    }
    if (const Disturbance d = m_guard.end();
        d.noticeable && cell.has_value() && !(plan.crowded && d.only_waited)) {
      remark(cell, CellStatus::noisy, d.text);
    }
    return cell;
  }

  void measure_reference_again() {
    if (!m_reference || interrupted()) {
      return;
    }
    const Seconds most = std::max(k_reference_share * m_options.budget, m_reference->least);
    const Cell cell = measured(*m_reference, std::min(m_reference_budget, most));
    if (!cell.has_value()) {
      return;
    }
    const Drift drift{m_reference->key, m_first.p50, cell.p50};
    m_result.drift = drift;
    // Of a measurement that was disturbed, the cell says so itself; that is no change of the
    // machine.
    const bool sure = m_first.status == CellStatus::ok && cell.status == CellStatus::ok;
    if (sure && std::abs(drift.relative()) > k_drift_limit) {
      m_result.warnings.push_back(fmt::format(
          "the machine changed while it was measured: {} gave {:+.0f} % at the end; measure again "
          "when it is quiet",
          drift.key.text(), 100 * drift.relative()));
    }
  }

  /// Keeps the plans of lowest rank whose least times fit into `time`; returns the others.
  static std::vector<CellPlan> drop_what_does_not_fit(std::vector<CellPlan>& plans, Seconds time) {
    std::stable_sort(plans.begin(), plans.end(),
                     [](const CellPlan& a, const CellPlan& b) { return a.rank < b.rank; });
    std::vector<CellPlan> kept;
    std::vector<CellPlan> dropped;
    for (CellPlan& plan : plans) {
      const bool fits = plan.least <= time;
      time -= fits ? plan.least : Seconds(0);
      (fits ? kept : dropped).push_back(std::move(plan));
    }
    plans = std::move(kept);
    return dropped;
  }

  void leave_out(const std::vector<CellPlan>& plans, CellStatus status, const std::string& reason) {
    for (const CellPlan& plan : plans) {
      m_result.cells.push_back(without_value(plan, status, reason));
    }
  }

  static Cell without_value(const CellPlan& plan, CellStatus status, const std::string& reason) {
    Cell cell = empty_cell(plan);
    discard(cell, status, reason);
    return cell;
  }

  static CellStatus status_of(const Error& error) {
    return error.kind() == ErrorKind::unavailable ? CellStatus::unsupported : CellStatus::failed;
  }

  [[nodiscard]] bool interrupted() const {
    return m_options.interrupted && m_options.interrupted();
  }

  const std::vector<Campaign>& m_campaigns;
  const RunnerOptions& m_options;
  const Clock& m_clock;
  Guard& m_guard;
  std::mt19937_64 m_engine;
  Seconds m_start;
  Seconds m_patience; ///< left for waiting until others are quiet
  RunResult m_result;
  std::optional<CellPlan> m_reference;
  Cell m_first;
  Seconds m_reference_budget{0};
};

} // namespace

Cell empty_cell(const CellPlan& plan) {
  const CellCase& known = cell_case(plan.key.test);
  Cell cell;
  cell.key = plan.key;
  cell.unit = known.unit;
  cell.bytes_convention = known.bytes_convention;
  return cell;
}

std::size_t RunResult::count(CellStatus status) const {
  return static_cast<std::size_t>(
      std::count_if(cells.begin(), cells.end(), [&](const Cell& c) { return c.status == status; }));
}

Seconds estimate(const std::vector<Campaign>& campaigns, Seconds budget) {
  Seconds wanted(0);
  for (const Campaign& campaign : campaigns) {
    wanted += sum(campaign.plan(), &CellPlan::wanted);
  }
  return std::min(wanted, budget);
}

RunResult run_campaigns(const std::vector<Campaign>& campaigns, const RunnerOptions& options,
                        const Clock& clock, Guard& guard) {
  return Runner(campaigns, options, clock, guard).run();
}

} // namespace reckon
