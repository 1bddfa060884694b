// SPDX-License-Identifier: Apache-2.0
#include "run/verifier.hpp"

#include "run/fixed_values.hpp"
#include "run/latest.hpp"

#include <algorithm>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

namespace reckon {
namespace {

std::uint32_t workers_of(const Schedule& schedule) {
  return static_cast<std::uint32_t>(
      std::count(schedule.worker.begin(), schedule.worker.end(), true));
}

/// Outcome::sums with TestValues, Outcome::fixed_sums with FixedValues.
template <class Values>
class SumVerifier : public Verifier {
public:
  SumVerifier(const Schedule& schedule, std::size_t rank, Values values)
      : m_buffer(schedule.ranks[rank].gradient_buffer), m_runs(schedule.gradient_runs()),
        m_index(worker_index(schedule, rank)), m_values(std::move(values)) {}
  void fill(Views views, std::uint32_t iteration) const override {
    if (m_index) {
      m_values.fill(views[m_buffer], m_runs, *m_index, iteration);
    }
  }
  [[nodiscard]] RankVerification check(Views views, std::uint32_t iteration) override {
    return m_index ? m_values.check(views[m_buffer], m_runs, iteration) : RankVerification{};
  }
  [[nodiscard]] std::optional<double> error_bound() const override {
    if constexpr (std::is_same_v<Values, FixedValues>) {
      return m_values.error_bound();
    }
    return std::nullopt;
  }

private:
  std::uint32_t m_buffer;
  std::vector<DTypeRun> m_runs;
  std::optional<std::uint32_t> m_index;
  Values m_values;
};

/// Outcome::sums of another collective than all-reduce.
class RootsVerifier final : public Verifier {
public:
  RootsVerifier(const Schedule& schedule, std::size_t rank, const TestValues& values)
      : m_schedule(schedule), m_rank(rank), m_index(worker_index(schedule, rank)),
        m_values(values) {
    for (const OwnedRun& run : schedule.owned) {
      if (run.rank == rank) {
        m_owned.push_back(run);
      }
    }
  }
  void fill(Views views, std::uint32_t iteration) const override {
    if (m_index && sums(m_schedule.collective)) {
      m_values.fill(views[k_gradient_buffer], m_schedule.runs, *m_index, iteration);
    } else if (m_index) {
      m_values.fill_owned(views[k_gradient_buffer], m_schedule.runs, m_owned, *m_index, iteration);
    }
  }
  [[nodiscard]] RankVerification check(Views views, std::uint32_t iteration) override {
    RankVerification result;
    for (const OwnedRun& run : m_schedule.owned) {
      if (m_index && (run.rank == m_rank || !sums(m_schedule.collective))) {
        const std::optional<std::uint32_t> of =
            sums(m_schedule.collective) ? std::nullopt : worker_index(m_schedule, run.rank);
        result.add(
            m_values.check_owned(views[k_gradient_buffer], m_schedule.runs, run, of, iteration));
      }
    }
    return result;
  }

private:
  const Schedule& m_schedule;
  std::size_t m_rank;
  std::optional<std::uint32_t> m_index;
  TestValues m_values;
  std::vector<OwnedRun> m_owned; ///< by this rank
};

/// Outcome::parameters.
class ParameterVerifier final : public SumVerifier<TestValues> {
public:
  ParameterVerifier(const Schedule& schedule, std::size_t rank, const TestValues& values)
      : SumVerifier(schedule, rank, values), m_schedule(schedule), m_rank(schedule.ranks[rank]),
        m_replica(schedule, rank, values) {}
  void begin(Views views) const override { fill_parameters(m_schedule, m_rank, views); }
  [[nodiscard]] RankVerification check(Views views, std::uint32_t iteration) override {
    return m_replica.check(views, iteration);
  }
  [[nodiscard]] ParameterReplica* replica() override { return &m_replica; }

private:
  const Schedule& m_schedule;
  const RankProgram& m_rank;
  ParameterReplica m_replica;
};

/// Outcome::latest.
class LatestVerifier final : public Verifier {
public:
  LatestVerifier(const Schedule& schedule, std::size_t rank)
      : m_schedule(schedule), m_rank(schedule.ranks[rank]), m_index(worker_index(schedule, rank)),
        m_values(workers_of(schedule), schedule.steps) {}
  void fill(Views views, std::uint32_t /*iteration*/) const override {
    fill_parameters(m_schedule, m_rank, views);
    if (m_index) {
      m_values.fill(views[k_gradient_buffer], m_schedule.runs, *m_index);
    }
  }
  [[nodiscard]] RankVerification check(Views views, std::uint32_t /*iteration*/) override {
    return m_values.check(m_schedule, m_rank, views, m_index);
  }

private:
  const Schedule& m_schedule;
  const RankProgram& m_rank;
  std::optional<std::uint32_t> m_index;
  LatestValues m_values;
};

} // namespace

std::optional<std::uint32_t> worker_index(const Schedule& schedule, std::size_t rank) {
  const auto begin = schedule.worker.begin();
  return schedule.worker[rank] ? std::optional(static_cast<std::uint32_t>(std::count(
                                     begin, begin + static_cast<std::ptrdiff_t>(rank), true)))
                               : std::nullopt;
}

std::unique_ptr<Verifier> make_verifier(const Schedule& schedule, std::size_t rank) {
  const std::uint32_t workers = workers_of(schedule);
  if (schedule.collective != Collective::all_reduce) {
    return std::make_unique<RootsVerifier>(schedule, rank, TestValues(workers));
  }
  switch (schedule.outcome) {
  case Outcome::fixed_sums:
    return std::make_unique<SumVerifier<FixedValues>>(schedule, rank,
                                                      FixedValues(workers, schedule.fixed));
  case Outcome::parameters:
    return std::make_unique<ParameterVerifier>(schedule, rank, TestValues(workers));
  case Outcome::latest:
    return std::make_unique<LatestVerifier>(schedule, rank);
  case Outcome::sums:
  case Outcome::restored: // never an iteration's
    break;
  }
  return std::make_unique<SumVerifier<TestValues>>(schedule, rank,
                                                   TestValues(workers, schedule.wire));
}

} // namespace reckon
