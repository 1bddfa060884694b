// SPDX-License-Identifier: Apache-2.0
// Every field of every document is compared, or listed with the reason why it is not.
#include "compare/facts.hpp"

#include "core/json.hpp"
#include "documents/describe.hpp"
#include "documents/json.hpp"
#include "stats/summary.hpp"
#include "support/example_documents.hpp"

#include <fmt/format.h>
#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace reckon {
namespace {

using namespace testing;
using namespace documents;

/// Numbers the values of a document, and changes the one of a given number.
class Changer : public Visitor {
public:
  explicit Changer(std::size_t wanted) : m_wanted(wanted) {}
  std::size_t next = 0;
  std::string place; ///< of what was changed: "cells/*/p50"

protected:
  void field(const Field& field, const Ref& value) override {
    const std::string outer = m_place;
    m_place += (m_place.empty() ? "" : "/") + std::string(field.key);
    visit_one(field.rule, value);
    m_place = outer;
  }

private:
  void visit_one(const Rule& rule, const Ref& value) {
    std::visit([&](const auto& to) { visit_to(rule, to); }, value.to);
  }
  bool mine() {
    const bool is = next++ == m_wanted;
    place = is ? m_place : place;
    return is;
  }
  void visit_to(const Rule& rule, const WholeRef& to) {
    if (mine()) {
      const auto number = to.get(to.value);
      const auto names = static_cast<std::int64_t>(rule.names.size());
      to.set(to.value, names > 0 ? (number + 1) % names : to.truth ? 1 - number : number + 1);
    }
  }
  void visit_to(const Rule&, double* to) {
    if (mine()) {
      *to = *to * 1.5 + 1;
    }
  }
  void visit_to(const Rule& rule, std::string* to) {
    if (mine()) {
      // Another of the names, or a name that nothing has.
      *to = rule.names.empty() ? *to + "7" : std::string(rule.names[*to == rule.names[0] ? 1 : 0]);
    }
  }
  template <class Map>
  void visit_map(Map* to) {
    const std::string outer = m_place;
    for (auto& [key, value] : *to) {
      m_place = outer + "/" + key;
      if (mine()) {
        if constexpr (std::is_same_v<Map, Texts>) {
          value += "7";
        } else {
          value = value * 1.5 + 1;
        }
      }
    }
    m_place = outer;
  }
  void visit_to(const Rule&, Texts* to) { visit_map(to); }
  void visit_to(const Rule&, Numbers* to) { visit_map(to); }
  template <class T>
  void visit_to(const Rule& rule, std::vector<T>* to) {
    if (!to->empty() && mine()) {
      for (T& number : *to) {
        number = rule.names.empty() ? number * 2 + 1 : T(number == 0 ? 1 : 0);
      }
    }
  }
  void visit_to(const Rule& rule, const OptionalRef& to) {
    if (to.has(to.value)) {
      visit_one(rule, to.get(to.value));
    }
  }
  void visit_to(const Rule& rule, const ListRef& to) {
    const std::string outer = m_place;
    for (std::size_t i = 0; i < to.size(to.list); ++i) {
      const Ref element = to.at(to.list, i);
      if (std::holds_alternative<RecordRef>(element.to)) {
        m_place = outer + "/*";
      }
      visit_one(rule, element);
      m_place = outer;
    }
  }
  void visit_to(const Rule&, const RecordRef& to) { to.describe(*this, to.record); }

  std::size_t m_wanted;
  std::string m_place;
};

/// All that a comparison says of two documents.
std::string said(const Comparison& c) {
  std::string all;
  for (const auto& list : {c.differences, c.undecided}) {
    for (const Difference& d : list) {
      all += fmt::format("{} {}\n", d.where, d.kind);
    }
  }
  for (const Cause& cause : c.causes) {
    all += cause.what + "\n";
  }
  for (const auto& list : {c.only_before, c.only_after, c.warnings}) {
    for (const std::string& text : list) {
      all += text + "\n";
    }
  }
  return all;
}

/// Samples and what follows from them go together.
void put_right(Profile& profile, const std::string& place) {
  for (Cell& cell : profile.cells) {
    const double of_samples = median(cell.samples);
    if (place == "cells/*/samples" && !cell.samples.empty()) {
      cell.p50 = of_samples;
    } else if (place == "cells/*/p50") {
      for (double& sample : cell.samples) {
        sample *= cell.p50 / of_samples;
      }
    }
  }
}
void put_right(Report& report, const std::string& place) {
  const double of_samples = median(report.iteration_seconds);
  if (place == "iteration_seconds") {
    report.p50_seconds = of_samples;
  } else if (place == "p50_seconds") {
    for (double& seconds : report.iteration_seconds) {
      seconds *= report.p50_seconds / of_samples;
    }
  }
}
template <class T>
void put_right(T&, const std::string&) {}

template <class T>
void change_each(const T& example) {
  const std::string kind = kind_of(Document(example));
  const Json written = to_json(example);
  std::size_t compared = 0;
  for (std::size_t i = 0;; ++i) {
    T changed = example;
    Changer changer(i);
    describe(changer, changed);
    if (changer.place.empty()) {
      EXPECT_GT(compared, 5U);
      return;
    }
    put_right(changed, changer.place);
    if (to_json(changed) == written) {
      continue; // a document does not have it
    }
    SCOPED_TRACE(fmt::format("{}: {}, value {}", kind, changer.place, i));
    const FactRule* const rule = fact_rule(kind, changer.place);
    const std::string what = said(compare(example, changed));
    const bool listed = rule != nullptr && rule->use == FactRule::Use::never;
    EXPECT_TRUE(listed || !what.empty()) << "nothing is said of it";
    compared += what.empty() ? 0U : 1U;
    // What is compared as it stands is named as the document names it.
    const bool as_it_stands = rule == nullptr || rule->use == FactRule::Use::grouped;
    const std::string key = changer.place.substr(changer.place.rfind('/') + 1);
    const std::string list = changer.place.substr(0, changer.place.find('/'));
    if (as_it_stands) {
      EXPECT_THAT(what, AnyOf(HasSubstr(key), HasSubstr(list + "/"))) << "not by its name";
    }
  }
}

/// Ten samples a cell, so that the comparison can tell.
Profile profile_with_samples() {
  Profile p = test::example_profile();
  std::erase_if(p.cells, [](const Cell& cell) { return !cell.has_value(); }); // says nothing
  for (Cell& cell : p.cells) {
    if (cell.has_value() && !cell.samples.empty()) {
      const double p50 = cell.p50;
      cell.status = CellStatus::ok;
      for (std::size_t i = 0; cell.samples.size() < 10; ++i) {
        cell.samples.push_back(p50 * (1 + 0.001 * static_cast<double>(i)));
      }
      summarize_cell(cell);
      cell.spread = 0.001;
    }
  }
  return p;
}

TEST(Facts, OfAProfileAreComparedOrListed) {
  change_each(profile_with_samples());
}
TEST(Facts, OfAWorkloadAreComparedOrListed) {
  change_each(test::example_workload());
}
TEST(Facts, OfRolesAreComparedOrListed) {
  change_each(test::example_roles());
}
TEST(Facts, OfAPlanAreComparedOrListed) {
  change_each(test::example_plan());
}
TEST(Facts, OfASimulationAreComparedOrListed) {
  change_each(test::example_report());
}
TEST(Facts, OfARunAreComparedOrListed) {
  Report run = test::example_report();
  run.kind = "run";
  run.simulation.reset();
  run.iteration_seconds = {0.79, 0.792, 0.794, 0.796, 0.798, 0.802, 0.804, 0.806, 0.808, 0.81};
  run.p50_seconds = 0.8;
  run.spread = 0.005;
  change_each(run);
}

TEST(Facts, ThatAreNotComparedAreListedInTheReference) {
  const std::string table = not_compared_table();
  for (const FactRule& rule : fact_rules()) {
    if (rule.use == FactRule::Use::never) {
      const std::size_t at = table.find(fmt::format("`{}`", rule.where));
      ASSERT_NE(at, std::string::npos) << rule.where;
      EXPECT_NE(table.find(rule.text), std::string::npos) << rule.text;
    }
  }
  EXPECT_NE(table.find("| profile | `context/disturbed`, `context/drift`, "), std::string::npos);
}

} // namespace
} // namespace reckon
