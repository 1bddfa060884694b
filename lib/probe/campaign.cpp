// SPDX-License-Identifier: Apache-2.0
#include "probe/campaign.hpp"

#include "core/error.hpp"
#include "core/log.hpp"
#include "documents/cells.hpp"
#include "probe/sampling.hpp"
#include "stats/random.hpp"
#include "stats/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <random>
#include <utility>

namespace reckon {
namespace {

constexpr int k_most_visits = 20;
/// With less of what it takes, a visit is not worth starting.
constexpr double k_shortest_visit = 0.2;
/// A change of all cells by more is worth a warning.
constexpr double k_drift_limit = 0.10;
constexpr double k_visits_differ = 0.10;
constexpr std::size_t k_least_samples = 5;

/// What the first visits of all cells take more than the others.
Seconds first_visits(const std::vector<Campaign>& campaigns) {
  Seconds all(0);
  for (const Campaign& campaign : campaigns) {
    for (const CellPlan& plan : campaign.plans) {
      all += plan.first;
    }
  }
  return all;
}

/// Of all cells of all campaigns, in so many passes of so many visits.
Seconds all_visits(const std::vector<Campaign>& campaigns, int passes, int visits) {
  Seconds all(0);
  for (const Campaign& campaign : campaigns) {
    for (const CellPlan& plan : campaign.plans) {
      all += std::min(passes, campaign.passes) * (campaign.once ? 1 : visits) * plan.visit;
    }
  }
  return all;
}

/// How often and for how long cells are visited within a budget.
struct Course {
  int passes = k_passes, visits = k_visits; ///< visits of each pass
  [[nodiscard]] int visits_of(const Campaign& campaign) const { return campaign.once ? 1 : visits; }
  /// Whether the campaign is in pass number `pass`.
  [[nodiscard]] static bool has(const Campaign& campaign, int pass) {
    return pass < campaign.passes;
  }
};

Course course_of(const std::vector<Campaign>& campaigns, std::optional<Seconds> budget) {
  Course course;
  const Seconds once = all_visits(campaigns, 1, 1);
  if (!budget || once <= Seconds(0)) {
    return course;
  }
  const double times = k_visits_share * (*budget - first_visits(campaigns)) / once;
  course.passes = times < k_passes ? 1 : k_passes;
  course.visits = static_cast<int>(std::clamp(times / course.passes, 1.0, double{k_most_visits}));
  return course;
}

bool is_time(const Cell& cell) {
  return cell.unit == k_seconds;
}

class Runner {
public:
  Runner(const std::vector<Campaign>& campaigns, const RunnerOptions& options, const Clock& clock,
         Guard& guard)
      : m_campaigns(campaigns), m_options(options), m_clock(clock), m_guard(guard),
        m_engine(options.seed), m_course(course_of(campaigns, options.budget)),
        m_estimate(estimate(campaigns, options.budget)), m_start(clock.now()) {
    for (const Campaign& campaign : campaigns) {
      m_cells.emplace_back(campaign.plans.size());
    }
  }

  RunResult run() {
    m_guard.begin();
    static_cast<void>(new_errors());
    for (const Campaign& campaign : m_campaigns) {
      m_to_come += std::min(m_course.passes, campaign.passes) * planned(campaign);
    }
    for (int pass = 0; pass < m_course.passes; ++pass) {
      for (std::size_t c = 0; c < m_campaigns.size() && !over(); ++c) {
        if (m_course.has(m_campaigns[c], pass)) {
          run_campaign(c);
        }
      }
    }
    conclude();
    m_result.interrupted = interrupted();
    m_result.took = m_clock.now() - m_start;
    return std::move(m_result);
  }

private:
  struct Progress {
    std::vector<Cell> visits;
    std::vector<std::size_t> passes; ///< how many visits there were after each pass
    bool ended = false;              ///< it failed: another visit would, too
    std::string errors;              ///< that the system counted in its visits
  };

  /// What the visits of one pass take.
  [[nodiscard]] Seconds planned(const Campaign& campaign) const {
    Seconds all(0);
    for (const CellPlan& plan : campaign.plans) {
      all += m_course.visits_of(campaign) * plan.visit;
    }
    return all;
  }

  /// Of what is left of the budget, the part for visits that are planned to take `own`: in
  /// proportion to all that is to come. Whatever takes longer than planned is cut everywhere a
  /// little, and not what comes last wholly.
  [[nodiscard]] Seconds part_for(Seconds own) const {
    if (!m_options.budget || own <= Seconds(0)) {
      return Seconds(std::numeric_limits<double>::infinity());
    }
    return (m_start + *m_options.budget - m_clock.now()) * (own / m_to_come);
  }

  void run_campaign(std::size_t number) {
    const Campaign& campaign = m_campaigns[number];
    const Seconds own = planned(campaign), after = m_to_come - own;
    make_visits(campaign, m_cells[number], own);
    m_to_come = after;
  }

  void make_visits(const Campaign& campaign, std::vector<Progress>& cells, Seconds own) {
    if (std::all_of(cells.begin(), cells.end(), [](const Progress& p) { return p.ended; })) {
      return;
    }
    try {
      if (campaign.begin) {
        campaign.begin();
      }
    } catch (const Error& error) {
      for (std::size_t i = 0; i < cells.size(); ++i) {
        end_cell(cells[i], campaign.plans[i], status_of(error), error.what());
      }
      return;
    }
    const double scale = std::clamp(k_visits_share * (part_for(own) / own), k_shortest_visit, 1.0);
    std::optional<Seconds> end; // of its part; the first visit also prepares, and is no part of it
    std::vector<std::size_t> order(cells.size());
    for (int visit = 0; visit < m_course.visits_of(campaign); ++visit) {
      for (std::size_t i = 0; i < order.size(); ++i) {
        order[i] = i;
      }
      for (std::size_t i = order.size(); i > 1; --i) {
        std::swap(order[i - 1], order[uniform_index(m_engine, i)]);
      }
      std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return cells[a].visits.size() < cells[b].visits.size();
      });
      for (const std::size_t i : order) {
        const CellPlan& plan = campaign.plans[i];
        const Seconds left = end ? *end - m_clock.now() : part_for(own);
        if (over() || left <= Seconds(0) || cells[i].ended) {
          continue;
        }
        make_visit(cells[i], plan, std::clamp(left / own, k_shortest_visit, scale));
        own -= plan.visit;
        m_to_come -= plan.visit;
        end = end.value_or(m_clock.now() + part_for(own));
      }
    }
    for (Progress& cell : cells) {
      cell.passes.push_back(cell.visits.size());
    }
    if (campaign.end) {
      campaign.end();
    }
  }

  void make_visit(Progress& progress, const CellPlan& plan, double scale) {
    const std::string what = plan.key.text();
    if (m_options.progress) {
      const Seconds spent = m_clock.now() - m_start;
      m_options.progress(std::clamp(spent / m_estimate, 0.0, 1.0), what,
                         std::max(m_estimate - spent, Seconds(0)));
    }
    Cell visit = empty_cell(plan);
    const Seconds begin = m_clock.now();
    try {
      plan.measure(visit, scale * plan.visit);
    } catch (const Error& error) {
      discard(visit, status_of(error), error.what());
    } catch (const std::bad_alloc&) {
      discard(visit, CellStatus::failed, "out of memory");
    }
    log(LogLevel::debug, "{}: {} after {}{}", what, name_of(visit.status),
        to_text(m_clock.now() - begin), visit.reason.empty() ? "" : ", " + visit.reason);
    if (const std::string errors = new_errors(); !errors.empty()) {
      progress.errors += (progress.errors.empty() ? "" : ", ") + errors;
    }
    if (!visit.has_value()) {
      if (interrupted()) {
        return; // it was cut short
      }
      progress.ended = true;
    }
    progress.visits.push_back(std::move(visit));
  }

  void conclude() {
    std::vector<double> ratios; // last pass to first, as times
    for (std::size_t c = 0; c < m_campaigns.size(); ++c) {
      for (std::size_t i = 0; i < m_cells[c].size(); ++i) {
        Progress& progress = m_cells[c][i];
        if (progress.visits.empty()) {
          end_cell(progress, m_campaigns[c].plans[i], CellStatus::skipped,
                   interrupted() ? "interrupted"
                                 : fmt::format("no time left of {}",
                                               to_text(m_options.budget.value_or(Seconds(0)))));
        }
        m_result.cells.push_back(
            progress.ended ? progress.visits.back()
                           : merged(progress.visits, k_keep_samples, m_campaigns[c].typical));
        if (!progress.errors.empty()) {
          remark(m_result.cells.back(), "errors meanwhile: " + progress.errors);
        }
        if (const auto ratio = drift_of(progress); ratio && m_result.cells.back().has_value()) {
          ratios.push_back(*ratio);
        }
      }
    }
    if (ratios.size() >= 3) {
      m_result.drift = median(ratios) - 1;
      if (std::abs(*m_result.drift) > k_drift_limit) {
        m_result.warnings.push_back(fmt::format(
            "the machine changed while it was measured: in the end everything took {:.0f} % {}; "
            "measure again when it is quiet",
            100 * std::abs(*m_result.drift), *m_result.drift > 0 ? "longer" : "less time"));
      }
    }
    m_result.disturbance = m_guard.end();
    if (!m_result.disturbance.empty()) {
      m_result.warnings.push_back(
          fmt::format("{}; what needs all processors may be less than this machine can: measure "
                      "again when it is quiet",
                      m_result.disturbance));
    }
  }

  static std::optional<double> drift_of(const Progress& progress) {
    if (progress.ended || progress.passes.size() < 2) {
      return std::nullopt;
    }
    const std::span<const Cell> all(progress.visits);
    const std::size_t early = progress.passes.front(), late = progress.passes.end()[-2];
    if (early == 0 || late == all.size()) {
      return std::nullopt;
    }
    const Cell first = merged(all.first(early), k_keep_samples);
    const Cell last = merged(all.subspan(late), k_keep_samples);
    return is_time(first) ? last.p50 / first.p50 : first.p50 / last.p50;
  }

  static void end_cell(Progress& progress, const CellPlan& plan, CellStatus status,
                       const std::string& reason) {
    Cell none = empty_cell(plan);
    discard(none, status, reason);
    progress.visits.push_back(std::move(none));
    progress.ended = true;
  }

  [[nodiscard]] bool interrupted() const {
    return m_options.interrupted && m_options.interrupted();
  }
  [[nodiscard]] std::string new_errors() const {
    return m_options.errors ? m_options.errors() : "";
  }
  [[nodiscard]] bool over() const {
    return interrupted() || (m_options.budget && m_clock.now() - m_start >= *m_options.budget);
  }

  const std::vector<Campaign>& m_campaigns;
  const RunnerOptions& m_options;
  const Clock& m_clock;
  Guard& m_guard;
  std::mt19937_64 m_engine;
  Course m_course;
  Seconds m_estimate;
  Seconds m_start;
  Seconds m_to_come{0};                       ///< of the visits that are planned
  std::vector<std::vector<Progress>> m_cells; ///< as the campaigns' plans
  RunResult m_result;
};

} // namespace

CellStatus status_of(const Error& error) {
  return error.kind() == ErrorKind::unavailable ? CellStatus::unsupported : CellStatus::failed;
}

Cell empty_cell(const CellPlan& plan) {
  const CellCase& known = cell_case(plan.key.test);
  Cell cell;
  cell.key = plan.key;
  cell.unit = known.unit;
  cell.bytes_convention = known.bytes_convention;
  return cell;
}

Cell merged(std::span<const Cell> visits, std::size_t keep, bool typical) {
  std::vector<const Cell*> best;
  for (const Cell& visit : visits) {
    if (visit.has_value()) {
      best.push_back(&visit);
    }
  }
  if (best.empty()) {
    return visits.back();
  }
  const bool time = is_time(*best.front());
  const auto faster = [time](const Cell* a, const Cell* b) {
    return time ? a->p50 < b->p50 : a->p50 > b->p50;
  };
  std::vector<const Cell*> ranked = best;
  std::stable_sort(ranked.begin(), ranked.end(), faster);
  ranked.resize(typical ? ranked.size() : (ranked.size() + 1) / 2);
  const auto counts = [&](const Cell* cell) {
    return std::find(ranked.begin(), ranked.end(), cell) != ranked.end();
  };
  std::erase_if(best, [&](const Cell* cell) { return !counts(cell); }); // in the order made

  Cell cell = *ranked.front();
  cell.samples.clear();
  for (const Cell* one : best) {
    cell.samples.insert(cell.samples.end(), one->samples.begin(), one->samples.end());
    if (one->status == CellStatus::noisy) {
      cell.status = CellStatus::noisy;
      cell.reason = one->reason;
    }
  }
  const std::size_t taken = cell.samples.size();
  cell.samples = thinned(cell.samples, keep);
  summarize_cell(cell);
  const double differ = std::max(ranked.back()->p50, ranked.front()->p50) /
                            std::min(ranked.back()->p50, ranked.front()->p50) -
                        1;
  if (differ > k_visits_differ) {
    remark(cell, CellStatus::noisy,
           fmt::format("measured {} times, of which the best {} differ by {:.0f} %", visits.size(),
                       ranked.size(), 100 * differ));
  }
  if (!typical && taken < k_least_samples) { // those of a typical cell are long, and few
    remark(cell, CellStatus::noisy, fmt::format("only {} samples", taken));
  }
  remark_samples(cell, taken, keep, cell.spread);
  return cell;
}

std::size_t RunResult::count(CellStatus status) const {
  return static_cast<std::size_t>(
      std::count_if(cells.begin(), cells.end(), [&](const Cell& c) { return c.status == status; }));
}

Seconds estimate(const std::vector<Campaign>& campaigns, std::optional<Seconds> budget) {
  return budget.value_or(all_visits(campaigns, k_passes, k_visits) / k_visits_share +
                         first_visits(campaigns));
}

RunResult run_campaigns(const std::vector<Campaign>& campaigns, const RunnerOptions& options,
                        const Clock& clock, Guard& guard) {
  return Runner(campaigns, options, clock, guard).run();
}

} // namespace reckon
