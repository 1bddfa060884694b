// SPDX-License-Identifier: Apache-2.0
// diff(a, a) is empty and diff(b, a) is diff(a, b) read backwards, for documents that were changed
// at random.
#include "compare/comparison.hpp"
#include "support/example_documents.hpp"
#include "support/random_cases.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

namespace reckon {
namespace {

using test::example_plan;
using test::example_profile;
using test::example_report;
using test::for_cases;

constexpr int k_cases = 300;
constexpr std::uint64_t k_seed = 7001;

struct Random : test::Random {
  using test::Random::Random;
  bool chance(double p) { return unit() < p; }
  double unit() { return uniform(0, 1); }
  /// A factor that is often 1, often within the tolerances and often far from them.
  double factor() {
    const std::uint64_t kind = below(4);
    return kind == 0 ? 1 : kind == 1 ? 1 + 0.04 * (unit() - 0.5) : 0.5 + 1.5 * unit();
  }
  std::string word() { return std::string(1, static_cast<char>('a' + below(4))); }
};

/// Changes p in about one place in five.
constexpr double k_often = 0.2;

std::string effect_text(Effect e, bool swapped) {
  if (e == Effect::neutral) {
    return "neutral";
  }
  return (e == Effect::better) != swapped ? "better" : "worse";
}

std::string side_text(const Side& s) {
  return fmt::format("[{} {} {}]", s.text, s.number ? fmt::format("{}", *s.number) : "none",
                     s.unit);
}

std::string difference_text(const Difference& d, bool swapped) {
  const Side& before = swapped ? d.after : d.before;
  const Side& after = swapped ? d.before : d.after;
  std::string change = "none";
  if (before.number && after.number && *before.number != 0) {
    change = fmt::format("{:.9g}", *after.number / *before.number - 1);
  }
  if (!swapped && d.change) {
    EXPECT_EQ(change, fmt::format("{:.9g}", *d.change)) << d.where;
  }
  // Which side a moved part came from is in the sides alone.
  return fmt::format("{} {} {} {} {} change {} p {} parts {} bytes {} {} note {}", d.kind, d.group,
                     d.where, side_text(before), side_text(after), change,
                     d.p_value ? fmt::format("{}", *d.p_value) : "none", d.parts, d.bytes,
                     effect_text(d.effect, swapped), d.note) +
         fmt::format(" at {} from {}", fmt::join(d.places, " "), d.follows_from);
}

/// Everything a comparison says, in an order that does not depend on the direction.
std::vector<std::string> contents(const Comparison& c, bool swapped) {
  std::vector<std::string> out;
  for (const Difference& d : c.differences) {
    out.push_back("difference " + difference_text(d, swapped));
  }
  for (const Difference& d : c.undecided) {
    out.push_back("undecided " + difference_text(d, swapped));
  }
  for (const Cause& cause : c.causes) {
    out.push_back(fmt::format("cause {} {} {}", cause.what,
                              side_text(swapped ? cause.after : cause.before),
                              side_text(swapped ? cause.before : cause.after)));
  }
  for (const std::string& cell : swapped ? c.only_after : c.only_before) {
    out.push_back("only before " + cell);
  }
  for (const std::string& cell : swapped ? c.only_before : c.only_after) {
    out.push_back("only after " + cell);
  }
  if (c.largest_within) {
    out.push_back("within " + difference_text(*c.largest_within, swapped));
  }
  for (const std::string& w : c.warnings) {
    out.push_back("warning " + w);
  }
  out.push_back(fmt::format("compared {} same {}", c.compared, c.same()));
  std::sort(out.begin(), out.end());
  return out;
}

template <class T>
void check(const T& a, const T& b) {
  for (const T* document : {&a, &b}) {
    const Comparison itself = compare(*document, *document);
    EXPECT_TRUE(itself.same());
    EXPECT_EQ(contents(itself, false).size(), 1U); // only how much was compared
  }
  EXPECT_EQ(contents(compare(a, b), false), contents(compare(b, a), true));
}

Cell random_cell(Random& random) {
  Cell c;
  c.key.test = random.chance(0.5)   ? "case_" + random.word()
               : random.chance(0.5) ? "port_bandwidth"
                                    : "pair_bandwidth";
  c.key.from = random.chance(0.5) ? random.word() : "m" + std::to_string(random.below(2));
  c.key.to = random.chance(0.5) ? random.word() : "";
  c.key.bytes = 8U << random.below(3);
  c.key.in_flight = static_cast<int>(random.below(3));
  c.unit = random.chance(0.5) ? "seconds" : "bytes_per_second";
  c.bytes_convention = c.unit == "seconds" ? "" : "payload";
  c.status = static_cast<CellStatus>(random.below(8));
  if (c.status == CellStatus::published) {
    c.p50 = 100 * random.factor();
  } else if (c.has_value()) {
    const std::size_t n = 1 + random.below(12);
    const double centre = 100 * random.factor();
    const double width = random.chance(0.5) ? 0.01 : 0.5;
    for (std::size_t i = 0; i < n; ++i) {
      c.samples.push_back(centre * (1 + width * (random.unit() - 0.5)));
    }
    summarize_cell(c);
  } else {
    c.reason = random.word();
  }
  return c;
}

Profile random_profile(Random& random) {
  Profile p = example_profile();
  p.fingerprint = random.chance(k_often) ? random.word() : p.fingerprint;
  p.context["kernel"] = random.word();
  p.cells.clear();
  for (std::size_t i = random.below(30); i > 0; --i) {
    Cell c = random_cell(random);
    if (p.find(c.key) == nullptr) {
      p.cells.push_back(std::move(c));
    }
  }
  for (TopologyObject& o : p.topology.objects) {
    if (random.chance(k_often)) {
      o.name = random.word();
      o.link_bytes_per_second =
          random.chance(0.5) ? std::optional(1e9 * random.factor()) : std::nullopt;
      o.bytes = random.chance(0.5) ? std::optional<std::uint64_t>(random.below(3)) : std::nullopt;
    }
  }
  p.topology.objects.resize(1 + random.below(p.topology.objects.size()));
  // One group or several, of machines with names or without.
  std::vector<std::string> names{"a", "b", "c", "d"};
  names.resize(1 + random.below(4));
  const bool named = random.chance(0.7);
  p.machines.resize(1);
  p.machines[0].members.clear();
  for (const std::string& name : names) {
    if (!p.machines.back().members.empty() && random.chance(0.5)) {
      p.machines.push_back(p.machines[0]);
      p.machines.back().id = fmt::format("m{}", p.machines.size() - 1);
      p.machines.back().members.clear();
    }
    p.machines.back().members.push_back(name);
  }
  for (MachineGroup& group : p.machines) {
    group.count = group.members.size();
    if (!named) {
      group.members.clear();
    }
  }
  return p;
}

Prediction random_prediction(Random& random) {
  Prediction p;
  p.bound_seconds = random.factor();
  p.bound_by = random.word();
  p.mid_seconds = 2 * random.factor();
  p.lo_seconds = p.mid_seconds / 2;
  p.hi_seconds = p.mid_seconds * 2;
  for (std::size_t i = random.below(4); i > 0; --i) {
    p.terms.push_back({random.word(), random.chance(k_often) ? 0 : random.factor()});
  }
  return p;
}

Plan random_plan(Random& random) {
  Plan p = example_plan();
  p.profile.digest = random.word();
  p.roles = random.chance(0.5) ? p.roles : std::nullopt;
  p.options[random.word()] = random.word();
  p.strategy = random.word();
  p.transport = random.word();
  p.prediction = random_prediction(random);
  p.assignment_gap = random.chance(0.5) ? 0 : random.unit();
  p.runner_up = random.word();
  p.candidates.clear();
  for (const char* strategy : {"a", "b", "c", "d"}) {
    if (random.chance(0.3)) {
      p.candidates.push_back({strategy, std::nullopt, random.word()});
    } else if (random.chance(0.8)) {
      p.candidates.push_back({strategy, random_prediction(random), ""});
    }
  }
  p.quantities.clear();
  for (std::size_t i = random.below(5); i > 0; --i) {
    p.quantities.push_back(
        {random.word() + "_bytes",
         random.factor(),
         random.word(),
         {{random.word(), random.factor()}, {random.word() + "_bytes", random.factor()}}});
  }
  p.ranks.resize(1 + random.below(4));
  for (PlanRank& r : p.ranks) {
    r.machine = random.word();
    r.worker = random.chance(0.5);
    r.server = random.chance(0.5);
    r.lanes = static_cast<int>(1 + random.below(3));
    r.share_bytes = 1000 * random.factor();
    r.assigned_bytes = random.below(3);
    r.egress_bytes = random.below(3);
    r.ingress_bytes = random.below(3);
    r.port_bytes_per_second = random.chance(0.3) ? 0 : 1e9 * random.factor();
  }
  p.gradient_bytes = 1200 + (random.chance(k_often) ? 4 : 0);
  p.part_bytes = 100 * (1 + random.below(3));
  p.window_parts = 1 + random.below(3);
  p.parts = {};
  for (std::uint64_t offset = 0; offset < 1200;) {
    const std::uint64_t bytes = std::min<std::uint64_t>(4 * (1 + random.below(60)), 1200 - offset);
    p.parts.offset_bytes.push_back(offset);
    p.parts.bytes.push_back(bytes);
    p.parts.server.push_back(random.below(3));
    p.parts.lane.push_back(random.below(2));
    offset += bytes;
  }
  if (random.chance(0.5)) { // equally cut plans are a case of their own
    p.parts = {{0, 400, 800},
               {400, 400, 400},
               {random.below(2), random.below(2), 0},
               {0, random.below(2), 0}};
    if (random.chance(0.5)) {
      std::swap(p.parts.offset_bytes[0], p.parts.offset_bytes[random.below(3)]);
    }
  }
  return p;
}

Report random_report(Random& random) {
  Report r = example_report();
  r.plan.digest = random.word();
  r.context["host"] = random.word();
  r.strategy = random.word();
  r.prediction = random_prediction(random);
  const std::size_t n = 1 + random.below(12);
  const double centre = random.factor();
  r.iteration_seconds.clear();
  for (std::size_t i = 0; i < n; ++i) {
    r.iteration_seconds.push_back(centre * (1 + 0.01 * random.unit()));
  }
  r.p50_seconds = centre;
  r.spread = random.chance(0.5) ? 0.005 : 0.2;
  r.error = random.unit() - 0.5;
  r.within_tolerance = random.chance(0.5);
  r.cause = random.word();
  for (StageReport& s : r.stages) {
    s.predicted_seconds = random.factor();
    s.measured_seconds = random.chance(0.7) ? std::optional(random.factor()) : std::nullopt;
  }
  r.stages.resize(random.below(3));
  r.ranks.resize(random.below(3), r.ranks[0]);
  for (RankReport& rank : r.ranks) {
    rank.egress_bytes = random.below(3);
  }
  r.verification.ok = random.chance(0.8);
  r.verification.first_error = r.verification.ok ? "" : random.word();
  return r;
}

Workload random_workload(Random& random) {
  Workload w;
  for (const char* name : {"a", "b", "c", "d", "e"}) {
    if (random.chance(0.8)) {
      w.tensors.push_back(
          {name, 1 + random.below(2), random.chance(0.7) ? DType::fp32 : DType::bf16});
    }
  }
  if (w.tensors.size() > 1 && random.chance(0.5)) {
    std::swap(w.tensors[0], w.tensors[random.below(w.tensors.size())]);
  }
  w.forward_seconds = random.chance(0.5) ? std::optional(random.factor()) : std::nullopt;
  return w;
}

Roles random_roles(Random& random) {
  Roles r;
  for (std::size_t i = random.below(4); i > 0; --i) {
    r.groups.push_back(
        {random.word(), 1 + random.below(2), random.chance(0.5), random.chance(0.5), 1});
  }
  return r;
}

template <class Make>
void check_many(Make make) {
  bool any_difference = false;
  for_cases<Random>(k_seed, k_cases, [&](Random& random) {
    const auto a = make(random);
    const auto b = make(random);
    check(a, b);
    any_difference = any_difference || !compare(a, b).differences.empty();
  });
  EXPECT_TRUE(any_difference); // else nothing was tested
}

TEST(CompareProperty, DocumentsMirror) {
  check_many(random_profile);
  check_many(random_plan);
  check_many(random_report);
  check_many(random_workload);
  check_many(random_roles);
}

} // namespace
} // namespace reckon
