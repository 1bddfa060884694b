// SPDX-License-Identifier: Apache-2.0
#include "rehearse/rehearsals.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "core/memory.hpp"
#include "core/processors.hpp"
#include "documents/cells.hpp"
#include "launch/local.hpp"
#include "planning/request.hpp"
#include "probe/sampling.hpp"
#include "run/job.hpp"
#include "run/placement.hpp"
#include "run/report.hpp"
#include "strategies/lower.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <set>
#include <utility>

namespace reckon {
namespace {

constexpr Seconds k_hang_limit{20};
constexpr std::uint64_t k_mib = 1 << 20;
constexpr const char* k_machine = "m0";

bool in_place(const CellKey& rehearsal) {
  return rehearsal.state == "in_place";
}

/// A profile that plans can be made from before anything is measured: that all rates are equal
/// decides nothing that a rehearsal leaves open.
Profile even_profile(std::uint64_t processors, const std::string& transport) {
  Profile profile;
  profile.name = "rehearsal";
  profile.machines = {{.id = k_machine, .count = 1, .cores = processors}};
  const auto add = [&](CellKey key) {
    key.from = k_machine;
    Cell cell = empty_cell({.key = std::move(key)});
    cell.status = CellStatus::published;
    cell.p50 = cell.min = cell.p99 = cell.max = 1e10;
    profile.cells.push_back(std::move(cell));
  };
  add({.test = k_fabric_aggregate,
       .to = k_machine,
       .bytes = k_mib,
       .pairs = 1,
       .transport = transport,
       .direction = k_two_way,
       .state = "cold"});
  add({.test = k_fabric_latency, .to = k_machine, .bytes = 8, .transport = transport});
  profile.cells.back().p50 = 2e-5;
  for (const char* const test : {k_reduce_sum, k_sum_in_place}) {
    add({.test = test, .bytes = k_mib, .threads = 1, .sources = 2, .dtype = "fp32"});
  }
  return profile;
}

Plan plan_of(std::uint64_t processors, const CellKey& rehearsal) {
  PlanDocuments documents;
  documents.profile = even_profile(processors, rehearsal.transport);
  documents.workload.name = "rehearsal";
  documents.workload.tensors = {{"gradient", rehearsed_gradient_bytes(rehearsal) / sizeof(float)}};
  PlanRequest request;
  request.options.strategy = rehearsal.operation;
  request.options.transport = rehearsal.transport;
  request.options.part_bytes = rehearsal.bytes;
  request.options.zero_compute = true;
  request.options.sums_in_place = in_place(rehearsal);
  request.workers = static_cast<std::uint64_t>(rehearsal.sources);
  request.servers = static_cast<std::uint64_t>(rehearsal.threads - rehearsal.sources);
  return plan_as_asked(documents, request);
}

/// Those that are counted: more of short ones, which differ most.
std::uint32_t iterations_of(const CellKey& rehearsal) {
  return in_place(rehearsal) ? 6 : 3;
}

/// Seconds of each counted iteration.
std::vector<double> play(const Plan& plan, std::uint32_t iterations) {
  const auto ranks = static_cast<int>(plan.ranks.size());
  const JobSchedules schedules{lower(plan), {}, {}};
  const std::string text = run_locally(
      ranks,
      [&](const JobEnvironment& mine, Fd listener,
          const std::function<void(const std::string&)>& /*tell*/) {
        RunOptions options;
        options.transport = plan.transport;
        options.warm_up = 1;
        options.iterations = iterations;
        options.limit = k_hang_limit;
        options.local_rank = mine.local_rank;
        options.local_size = ranks;
        settle(options, plan.ranks[static_cast<std::size_t>(mine.rank)]);
        Rendezvous rendezvous(mine, "rehearsal", options.limit, std::move(listener));
        const JobResult result = run_rank(rendezvous, schedules, options, [](auto, auto) {});
        if (mine.rank > 0) {
          return std::string();
        }
        for (const RankVerification& rank : result.verification) {
          if (rank.wrong_elements > 0) {
            fail(ErrorKind::operation, rank.first_error);
          }
        }
        return Json(iteration_seconds(result)).dump();
      },
      [](const std::string& /*line*/) {});
  return parse_json(text, "rehearsal").get<std::vector<double>>();
}

/// What a visit takes: to start the ranks, to fill and check their gradients, and the iterations.
Seconds seconds_of(const CellKey& rehearsal) {
  const double bytes = rehearsal.threads * static_cast<double>(rehearsed_gradient_bytes(rehearsal));
  const double of_byte = in_place(rehearsal)             ? 0.22e-9
                         : rehearsal.transport == "host" ? 0.3e-9
                                                         : 0.6e-9;
  return Seconds(0.17 + 0.045 * rehearsal.threads +
                 bytes * of_byte * (iterations_of(rehearsal) + 1));
}

std::vector<double> rehearse(std::uint64_t processors, const CellKey& rehearsal) {
  const double needed =
      3.0 * rehearsal.threads * static_cast<double>(rehearsed_gradient_bytes(rehearsal));
  if (needed > static_cast<double>(available_memory_bytes()) / 2) {
    fail(ErrorKind::unavailable,
         fmt::format("{} ranks need {:.3g} GB of memory, more than half of what is free",
                     rehearsal.threads, 1e-9 * needed));
  }
  return play(plan_of(processors, rehearsal), iterations_of(rehearsal));
}

void measure(const RehearsalStage& stage, Cell& cell) {
  Samples samples;
  try {
    samples.seconds = rehearse(stage.processors, cell.key);
  } catch (const Error&) {
    if (stage.interrupted && stage.interrupted()) {
      discard(cell, CellStatus::skipped, "interrupted");
      return;
    }
    throw;
  }
  fill_cell(cell, samples, static_cast<double>(rehearsed_gradient_bytes(cell.key)));
}

/// All that is played over a transport, by two ranks and by as many as there are processors or
/// more: in short parts and long ones, as a ring, with ranks that only sum. Where processors are
/// few, by one rank more than there are: two ranks then share one. Over the first transport, which
/// plans take of themselves, by four as well, where that many can work at once.
std::vector<CellKey> rehearsals_over(const RehearsalStage& stage, const std::string& transport) {
  std::vector<CellKey> all;
  const auto add = [&](const char* strategy, bool in_place, int workers, int servers,
                       std::uint64_t part_bytes) {
    all.push_back({.test = k_rehearsal,
                   .from = stage.machine,
                   .bytes = part_bytes,
                   .threads = workers + servers,
                   .sources = workers,
                   .dtype = "fp32",
                   .transport = transport,
                   .operation = strategy,
                   .state = in_place ? "in_place" : "sent"});
  };
  constexpr int k_few = 8; // processors
  const auto processors = static_cast<int>(stage.processors);
  const int most = std::max(k_few, static_cast<int>(std::bit_floor(stage.processors)));
  const bool every = transport == stage.transports.front() || stage.thorough;
  std::set<int> numbers{2, most};
  if (stage.thorough || (every && processors >= 4)) {
    numbers.insert(4);
  }
  if (processors < k_few) {
    numbers.insert(processors + 1);
  }
  for (const int ranks : numbers) {
    const bool end = ranks == 2 || ranks == most;
    if (every || ranks == most) {
      add("ps_colocated", false, ranks, 0, k_mib / 2);
    }
    add("ps_colocated", false, ranks, 0, 2 * k_mib);
    if (ranks != 4) {
      add("ring", false, ranks, 0, k_mib);
    }
    const int served = ranks == 2 ? 2 : ranks - 1; // workers of a server
    if (end) {
      add("ps_noncolocated", false, served, 1, k_mib);
    }
    if (ranks == most) { // one rank that sums for seven paces them all, two do not
      add("ps_noncolocated", false, ranks - ranks / 4, ranks / 4, k_mib);
    }
    if (transport == "host") {
      add("ps_colocated", true, ranks, 0, k_mib);
      if (end) {
        add("ps_noncolocated", true, served, 1, k_mib);
      }
    }
  }
  add("ps_noncolocated", false, 2, 1, 4 * k_mib);
  return all;
}

} // namespace

std::vector<Campaign> rehearsal_campaigns(const RehearsalStage& stage) {
  std::vector<Campaign> campaigns;
  for (const std::string& transport : stage.transports) {
    Campaign& campaign = campaigns.emplace_back(Campaign{
        .name = "rehearsals over " + transport, .once = true, .passes = 1, .typical = true});
    for (const CellKey& key : rehearsals_over(stage, transport)) {
      campaign.plans.push_back(
          {.key = key,
           .visit = k_visits_share * seconds_of(key), // there is nothing beside it
           .measure = [stage](Cell& cell, Seconds /*budget*/) { measure(stage, cell); }});
    }
  }
  return campaigns;
}

std::vector<double> rehearse_again(const Plan& plan) {
  const RehearsalPlan& again = *plan.rehearsal;
  return rehearse(allowed_cpus().size(), {.test = k_rehearsal,
                                          .bytes = again.part_bytes,
                                          .threads = again.ranks,
                                          .sources = again.workers,
                                          .transport = plan.transport,
                                          .operation = again.strategy,
                                          .state = again.in_place ? "in_place" : "sent"});
}

} // namespace reckon
