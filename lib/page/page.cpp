// SPDX-License-Identifier: Apache-2.0
#include "page/page.hpp"

#include "compare/comparison.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "core/json.hpp"
#include "core/units.hpp"
#include "documents/contention.hpp"
#include "page/figures.hpp"
#include "page/html.hpp"
#include "planning/planned_profile.hpp"
#include "present/comparison_text.hpp"
#include "present/contention_text.hpp"
#include "present/document_text.hpp"
#include "present/endpoint_text.hpp"
#include "present/numbers.hpp"
#include "present/plan_sections.hpp"
#include "present/profile_parts.hpp"
#include "present/ranges.hpp"
#include "present/report_sections.hpp"
#include "present/verdict_text.hpp"
#include "schedule/checker.hpp"
#include "strategies/between.hpp"
#include "strategies/lower.hpp"
#include "strategies/plan_network.hpp"
#include "strategies/prediction.hpp"
#include "verdict/verdict.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

namespace reckon {
namespace {

const Style k_marks{Colors::marks, 0};

std::string paragraph(const std::string& text, std::string_view look = {}) {
  return fmt::format("<p{}>{}</p>\n", look.empty() ? "" : fmt::format(" class=\"{}\"", look),
                     escaped(text));
}

std::string look_of(Tone tone) {
  return tone == Tone::good      ? "good"
         : tone == Tone::bad     ? "bad"
         : tone == Tone::warning ? "warning"
                                 : "plain";
}

std::string side_by_side(const std::string& figures) {
  return figures.empty() ? "" : "<div class=\"figures\">\n" + figures + "</div>\n";
}

// Of a profile.

/// Why a part of a ceiling can be more than 100 %, if one is.
std::string ceilings_note(const Cells& cells) {
  return std::ranges::any_of(cells, [](const Cell* cell) { return ceiling_share(*cell) > 1; })
             ? paragraph("More than 100 % is possible: a ceiling is what a description of the link "
                         "promises or what another test measured, and this test may do better.",
                         "dim")
             : "";
}

std::string heat_maps(const Profile& profile, const Verdict& verdict) {
  std::string out;
  Cells shown;
  for (const std::string& test : cases_of(profile)) {
    std::set<std::string> odd;
    for (const Finding& finding : verdict.findings) {
      if (finding.what.starts_with(test)) {
        odd.insert(finding.place);
      }
    }
    for (const Cells& matrix : groups_of(cells_of(profile, test)).matrices) {
      out += heat_map(matrix_of(matrix), odd);
      shown.insert(shown.end(), matrix.begin(), matrix.end());
    }
  }
  return side_by_side(out) + ceilings_note(shown);
}

/// Curves of each case; and all cells that are in no matrix as tables.
std::pair<std::string, std::string> curves_and_tables(const Profile& profile) {
  std::string curves, tables;
  Cells shown;
  for (const std::string& test : cases_of(profile)) {
    const Cells cells = cells_of(profile, test);
    const std::string contention =
        is_contention(cells.front()->key) ? contention_table(profile, test, k_marks) : "";
    CaseGroups groups = groups_of(cells);
    Cells rest = contention.empty() ? std::move(groups.others) : Cells{};
    if (contention.empty() && !groups.curves.empty()) {
      curves += curve_chart(profile, groups.curves);
      for (const Cells& curve : groups.curves) {
        rest.insert(rest.end(), curve.begin(), curve.end());
      }
    }
    std::ranges::sort(rest, {}, [](const Cell* cell) { return cell->key; });
    shown.insert(shown.end(), rest.begin(), rest.end());
    tables += html_of(contention + (any_value(rest) ? case_text(rest, false, k_marks) : ""));
  }
  return {side_by_side(curves), ceilings_note(shown) + tables};
}

// What a plan keeps busy.

/// A link, a port or a memory during an iteration.
struct LinkUse {
  std::string name;
  double bytes = 0, bytes_per_second = 0;
  double busy = 0;      ///< part of the predicted time
  bool busiest = false; ///< no other is busier
  std::string odd{};    ///< what the profile's verdict says of its place
};

/// A plan lowered, and played where its profile is known.
struct Played {
  Schedule schedule;
  std::optional<PlanNetwork> network;
  std::vector<NamedTimeline> timelines;
};

/// "w2" of the station "rank 2 out" and of "w2 out".
std::string machine_of(const Plan& plan, const std::string& station) {
  std::size_t rank = 0;
  return std::sscanf(station.c_str(), "rank %zu", &rank) == 1 && rank < plan.ranks.size()
             ? plan.ranks[rank].machine_name()
             : station.substr(0, station.find(' '));
}

/// The busiest first.
std::vector<LinkUse> link_uses(const Plan& plan, const std::optional<Played>& played,
                               const Verdict& verdict) {
  std::vector<LinkUse> out;
  const Prediction& p = plan.prediction;
  if (!(p.mid_seconds > 0)) {
    return out;
  }
  for (const PlanResource& r : plan.resources) {
    out.push_back(
        {r.name, r.load_bytes, r.bytes_per_second, r.busy * p.busy_seconds() / p.mid_seconds});
  }
  if (out.empty() && played && played->network) {
    const auto& [network, stations, cost] = *played->network;
    const std::vector<double> bytes = station_bytes(played->schedule, {network, stations});
    for (std::size_t s = 0; s < bytes.size(); ++s) {
      const double busy = network.busy_seconds(static_cast<std::uint32_t>(s), bytes[s],
                                               static_cast<double>(plan.part_bytes));
      out.push_back({stations[s], bytes[s], network.rate_of(s), busy / p.mid_seconds});
    }
  }
  std::erase_if(out, [](const LinkUse& use) { return !(use.bytes > 0); });
  std::ranges::stable_sort(out, std::greater{}, &LinkUse::busy);
  constexpr double k_alike = 0.999;
  for (LinkUse& use : out) {
    use.busiest = use.busy >= k_alike * out.front().busy;
    for (const Finding& f : verdict.findings) {
      if (use.odd.empty() && (use.name == f.place || machine_of(plan, use.name) == f.place)) {
        use.odd = "odd: " + finding_text(f);
      }
    }
  }
  return out;
}

/// Links that are alike are one row.
std::string links_html(const std::vector<LinkUse>& uses) {
  constexpr std::size_t k_most_rows = 40;
  using Looks = std::tuple<std::string, std::string, std::string, std::string>;
  std::map<Looks, std::size_t> alike;
  const auto looks = [](const LinkUse& use) {
    return Looks{percent_text(use.busy), bytes_text(use.bytes),
                 to_text(Bandwidth::bytes_per_s(use.bytes_per_second)), use.odd};
  };
  for (const LinkUse& use : uses) {
    ++alike[looks(use)];
  }
  std::vector<BarRow> rows;
  std::size_t more = 0;
  for (const LinkUse& use : uses) {
    const auto [busy, bytes, rate, odd] = looks(use);
    const std::size_t count = std::exchange(alike[looks(use)], 0);
    if (count == 0 || rows.size() == k_most_rows) {
      more += count;
      continue;
    }
    rows.push_back({count > 1 ? fmt::format("{}, {} such", use.name, count) : use.name,
                    use.busiest,
                    {{use.busy, use.busiest ? "full" : ""}},
                    {busy, bytes, rate},
                    (use.busiest ? "<span class=\"warning\">the busiest</span> " : "") +
                        (odd.empty() ? "" : "<span class=\"bad\">" + escaped(odd) + "</span>")});
  }
  return bar_table({"link, memory or sums", "busy", "carries", "capacity", ""}, rows) +
         (more > 0 ? paragraph(fmt::format("{} more carry less", more), "dim") : "") +
         (rows.empty() ? "" : paragraph("busy: of the predicted time", "dim"));
}

/// The tree with what the plan makes of each link, and what is odd.
std::string topology_html(const Profile& profile, const Verdict& verdict,
                          const std::vector<LinkUse>& uses) {
  const auto short_id = [](const std::string& id) { return id.substr(id.find('/') + 1); };
  const auto busy = [&](const std::string& from, const std::string& to, const char* way) {
    const auto use = std::ranges::find(uses, short_id(from) + " > " + short_id(to), &LinkUse::name);
    return use == uses.end() ? ""
                             : toned(fmt::format("  {} {} busy", way, percent_text(use->busy)),
                                     use->busiest ? Tone::warning : Tone::strong, k_marks);
  };
  return html_of(topology_text(profile, k_marks, [&](const TopologyObject& o) {
    std::string out = busy(o.id, o.parent, "up") + busy(o.parent, o.id, "down");
    for (const Finding& f : verdict.findings) {
      if (f.place == o.id || f.place == short_id(o.id)) {
        out += toned(printable("  odd: " + finding_text(f)), Tone::bad, k_marks);
      }
    }
    return out;
  }));
}

std::string candidates_html(const Plan& plan) {
  double most = 0;
  std::vector<const Candidate*> shown;
  for (const Candidate& c : plan.candidates) {
    if (c.prediction && c.prediction->mid_seconds > 0) {
      shown.push_back(&c);
      most = std::max(most, c.prediction->mid_seconds);
    }
  }
  std::vector<BarRow> rows;
  for (std::size_t i = 0; i < shown.size();) {
    const Candidate& c = *shown[i];
    const bool chosen = c.strategy == plan.strategy;
    const std::string time = time_text(c.prediction->mid_seconds);
    const std::size_t first = i++;
    while (!chosen && i < shown.size() && shown[i]->strategy != plan.strategy &&
           time_text(shown[i]->prediction->mid_seconds) == time) {
      ++i;
    }
    rows.push_back(
        {i - first > 1 ? fmt::format("{} and {} alike", c.strategy, i - first - 1) : c.strategy,
         chosen,
         {{c.prediction->mid_seconds / most, ""}},
         {time}});
  }
  return plan.candidates.empty()
             ? ""
             : bar_table({"strategy", "predicted"}, rows) + html_of(candidates_text(plan, k_marks));
}

/// Predicted beside measured, in pictures and in numbers.
std::string report_html(const Report& report) {
  constexpr double k_shortest = 1e-12;
  double most = std::max({k_shortest, report.prediction.mid_seconds, report.p50_seconds});
  for (const StageReport& s : report.stages) {
    most = std::max({most, s.predicted_seconds, s.measured_seconds.value_or(0)});
  }
  std::vector<BarRow> rows;
  const auto add = [&](const std::string& name, double predicted, std::optional<double> measured) {
    rows.push_back({name, name == "total", {{predicted / most, ""}}, {time_text(predicted)}});
    rows.back().numbers.push_back(measured ? time_text(*measured) : "-");
    if (measured) {
      rows.back().bars.emplace_back(*measured / most, "second");
    }
  };
  for (const StageReport& s : report.stages) {
    if (s.name != "total") {
      add(s.name, s.predicted_seconds, s.measured_seconds);
    }
  }
  add("total", report.prediction.mid_seconds, report.p50_seconds);
  const std::string found = report.simulation ? "simulated" : "measured";
  return side_by_side("<div>" + legend({{"ku", "predicted"}, {"k1", found}}) +
                      bar_table({"", "predicted", found}, rows) + "</div>\n" +
                      iterations_chart(report)) +
         html_of(report_table(report, k_marks));
}

// A page of documents that belong together.

template <class T>
const NamedDocument* find(const std::vector<NamedDocument>& documents) {
  const auto found = std::ranges::find_if(
      documents, [](const NamedDocument& d) { return std::holds_alternative<T>(d.document); });
  return found == documents.end() ? nullptr : &*found;
}

std::string digest_of(const NamedDocument& d) {
  return link_to(d.name, canonical_text(d.document)).digest;
}

/// At most one of each kind.
struct Loop {
  explicit Loop(const std::vector<NamedDocument>& documents);
  const Profile* profile = nullptr;
  const Plan* plan = nullptr;
  const Report* report = nullptr;
  const Workload* workload = nullptr;
  const Roles* roles = nullptr;
  /// The plan's own profile: given, shipped or beside the plan. On another it cannot be played.
  std::optional<Profile> planned;
  std::vector<std::string> strangers; ///< documents that do not belong to the others
};

Loop::Loop(const std::vector<NamedDocument>& documents) {
  const auto take = [&]<class T>(const T*& to) {
    const NamedDocument* const found = find<T>(documents);
    to = found == nullptr ? nullptr : &std::get<T>(found->document);
    return found;
  };
  const NamedDocument* const profile_file = take(profile);
  const NamedDocument* const plan_file = take(plan);
  const NamedDocument* const workload_file = take(workload);
  take(report);
  take(roles);
  const auto belongs = [&](const char* what, const DocumentLink& link, const NamedDocument* given) {
    if (given == nullptr || digest_of(*given) == link.digest) {
      return true;
    }
    strangers.push_back(fmt::format("the {} was made with another {}, {} {}, and not with {}", what,
                                    kind_of(given->document), link.name, short_digest(link.digest),
                                    given->name));
    return false;
  };
  if (report != nullptr) {
    static_cast<void>(belongs("report", report->plan, plan_file));
  }
  if (plan != nullptr) {
    static_cast<void>(belongs("plan", plan->workload, workload_file));
    if (belongs("plan", plan->profile, profile_file) && profile != nullptr) {
      planned = *profile;
    } else if (auto found = find_profile(plan->profile, plan_file->name)) {
      planned = std::move(found->profile);
    }
  } else if (report != nullptr) {
    static_cast<void>(belongs("report", report->profile, profile_file));
  }
}

/// Nothing where there is no plan with its profile, or where they do not fit, which is no reason to
/// have no page of them. `why_not`: why it is not played.
std::optional<Played> played(const Loop& loop, std::string& why_not) {
  if (loop.plan == nullptr || !loop.planned) {
    return std::nullopt;
  }
  constexpr double k_most_writes = 200'000;
  double writes = 0;
  for (const PlanRank& rank : loop.plan->ranks) {
    writes += static_cast<double>(rank.egress_bytes) / static_cast<double>(loop.plan->part_bytes);
  }
  try {
    PlanNetwork network = network_of(*loop.plan, *loop.planned);
    if (writes > k_most_writes) { // the same traffic in few parts tells what links carry
      why_not = fmt::format("it has more than {:.0f} writes", k_most_writes);
      return Played{lower(together(*loop.plan)), std::move(network), {}};
    }
    Played out{lower(*loop.plan), std::move(network), {{"predicted", {}}}};
    if (const CheckResult proof = check(out.schedule); !proof.ok()) {
      fail(ErrorKind::input, proof.faults.front());
    }
    static_cast<void>(
        play(out.schedule, out.network->network, out.network->cost, &out.timelines.front().ops));
    return out;
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::input) {
      throw;
    }
    why_not = error.what();
    return std::nullopt;
  }
}

/// Adds what was measured.
void add_trace(std::optional<Played>& played, const Loop& loop, const std::string& trace) {
  if (loop.plan == nullptr) {
    fail(ErrorKind::usage, fmt::format("--measured {}: give the plan that was run, too", trace));
  }
  if (!played || played->timelines.empty()) {
    played = Played{lower(*loop.plan), played ? std::move(played->network) : std::nullopt, {}};
  }
  played->timelines.push_back(
      read_trace(parse_json(read_file(trace), trace), trace, played->schedule, "measured"));
}

Head head_of(const Loop& loop, const Verdict& verdict) {
  if (loop.report != nullptr) {
    const Report& r = *loop.report;
    const TableCell text = verdict_of(r);
    const bool wrong = !r.simulation && !r.verification.ok;
    return {
        fmt::format("{}: {} over {}", r.kind, r.strategy, r.transport), "",
        wrong ? "bad" : look_of(text.tone),
        paragraph(text.text) +
            paragraph(fmt::format("predicted {}, {} {}{}", time_text(r.prediction.mid_seconds),
                                  r.simulation ? "simulated" : "measured", time_text(r.p50_seconds),
                                  r.other_links.empty() ? ": " + change_text(r.error) : "")) +
            (wrong ? paragraph("wrong sums: " + r.verification.first_error, "bad") : "") +
            (r.diagnosis ? paragraph(r.diagnosis->verdict, "bad") : "") + paragraph(r.cause)};
  }
  if (loop.plan != nullptr) {
    const Prediction& p = loop.plan->prediction;
    return {fmt::format("plan: {} over {}", loop.plan->strategy, loop.plan->transport), "", "plain",
            paragraph("predicted " + time_text(p.mid_seconds)) +
                paragraph(range_text(p.lo_seconds, p.hi_seconds)) +
                paragraph(fmt::format("bound {}, {}", time_text(p.bound_seconds), p.bound_by))};
  }
  if (loop.profile != nullptr) {
    std::string text = paragraph(outcome_text(verdict));
    const std::string disturbed = disturbed_text(verdict);
    text += disturbed.empty() ? "" : paragraph(disturbed, "warning");
    constexpr std::size_t k_few = 3;
    for (std::size_t i = 0; i < std::min(verdict.findings.size(), k_few); ++i) {
      const Finding& f = verdict.findings[i];
      text += paragraph(f.place + ": " + finding_text(f));
    }
    return {"profile " + loop.profile->name, "",
            !verdict.passed()   ? "bad"
            : disturbed.empty() ? "good"
                                : "warning",
            text};
  }
  if (loop.workload != nullptr) {
    return {"workload " + loop.workload->name, "", "plain",
            paragraph(counted(loop.workload->tensors.size(), "tensor"))};
  }
  return {"roles " + loop.roles->name, "", "plain",
          paragraph(counted(loop.roles->groups.size(), "group"))};
}

std::string loop_page(const std::vector<NamedDocument>& documents, const std::string& trace) {
  const Loop loop(documents);
  const auto& [profile, plan, report, workload, roles, planned, strangers] = loop;
  std::string why_not_played;
  std::optional<Played> play = played(loop, why_not_played);
  if (!trace.empty()) {
    add_trace(play, loop, trace);
  }
  const Profile* const judged = profile != nullptr ? profile : planned ? &*planned : nullptr;
  const Verdict verdict = judged != nullptr ? judge(*judged) : Verdict{};
  Head head = head_of(loop, verdict);
  for (const NamedDocument& d : documents) {
    head.subtitle +=
        fmt::format("{}{} {}", head.subtitle.empty() ? "" : ", ", kind_of(d.document), d.name);
  }
  for (const std::string& stranger : strangers) {
    head.verdict += paragraph(stranger, "warning");
  }
  std::vector<Section> sections;
  const auto add = [&](const char* title, const std::string& html) {
    sections.push_back({title, html});
  };
  std::string tables;
  if (report != nullptr) {
    add("Predicted and measured", report_html(*report));
  }
  if (profile != nullptr) {
    add("What is odd", html_of(render(verdict, k_marks)));
    add("Between places", heat_maps(*profile, verdict));
    auto [curves, others] = curves_and_tables(*profile);
    add("By size", curves);
    tables = std::move(others);
  }
  const std::vector<LinkUse> uses =
      plan != nullptr ? link_uses(*plan, play, verdict) : std::vector<LinkUse>();
  add("Links", links_html(uses));
  if (judged != nullptr) {
    add("Topology", topology_html(*judged, verdict, uses));
  }
  add("Timeline",
      (why_not_played.empty() ? ""
                              : paragraph("the plan is not played: " + why_not_played, "dim")) +
          (play ? timeline_chart(play->schedule, play->timelines) : ""));
  std::string environment;
  if (plan != nullptr) {
    add("Prediction", html_of(prediction_text(*plan, k_marks)));
    add("Candidates", candidates_html(*plan));
    add("Equations", html_of(explain(*plan, k_marks)));
    add("Who does what", html_of(ranks_text(*plan, k_marks) + lanes_text(*plan, k_marks) +
                                 trees_text(*plan, k_marks) +
                                 (plan->resources.empty() ? "" : resources_text(*plan, k_marks)) +
                                 (plan->routing.empty() ? "" : routing_text(*plan, k_marks)) +
                                 parts_text(*plan, k_marks)));
    environment += html_of(heading("plan", k_marks) + made_text(*plan, k_marks));
  }
  if (report != nullptr) {
    add("Ranks", report->ranks.empty() ? "" : html_of(ranks_text(*report, k_marks)));
    environment += html_of(heading("report", k_marks) + made_text(*report, k_marks));
  }
  if (profile != nullptr) {
    add("Machines", html_of(machines_text(*profile, k_marks) +
                            (profile->endpoint ? endpoint_text(*profile->endpoint, k_marks) : "")));
    add("Measured values", tables);
    add("Fits", html_of(fits_text(*profile, "", k_marks)));
    constexpr std::size_t k_most_reasons = 20;
    add("Doubtful or missing",
        html_of(reasons_text(cells_of(*profile, ""), k_most_reasons, true, k_marks)));
    environment += html_of(context_text(*profile, k_marks));
  }
  if (workload != nullptr) {
    add("Workload", html_of(render(*workload, k_marks)));
  }
  if (roles != nullptr) {
    add("Roles", html_of(render(*roles, k_marks)));
  }
  add("Environment", environment);
  return page_of(head, sections);
}

// Two documents of one kind.

/// What a diff shows of each of its documents.
std::string picture_of(const Document& document) {
  if (const auto* report = std::get_if<Report>(&document)) {
    return report_html(*report);
  }
  if (const auto* profile = std::get_if<Profile>(&document)) {
    const Verdict verdict = judge(*profile);
    return html_of(render(verdict, k_marks)) + heat_maps(*profile, verdict);
  }
  const auto* plan = std::get_if<Plan>(&document);
  return plan != nullptr ? html_of(prediction_text(*plan, k_marks)) + candidates_html(*plan) : "";
}

std::string diff_page(const NamedDocument& before, const NamedDocument& after) {
  const Comparison comparison = compare(before.document, after.document);
  // The verdict ends with the first empty line.
  const auto parts = [&](bool verbose) {
    std::string text = render(comparison, before.name, after.name, k_marks, verbose);
    const std::size_t end = std::min(text.find("\n\n"), text.size());
    return std::pair{html_of(text.substr(0, end)), html_of(text.substr(end))};
  };
  const auto [verdict, changes] = parts(false);
  const std::string all = parts(true).second;
  Head head{fmt::format("{}: {} and {}", comparison.kind, before.name, after.name), "",
            comparison.same() ? "good" : "bad", verdict};
  for (const std::string& warning : comparison.warnings) {
    head.verdict += paragraph(warning, "warning");
  }
  return page_of(head,
                 {{"What changed", changes},
                  {"Everything", all == changes ? ""
                                                : "<details><summary>all, as <code>reckon diff "
                                                  "-v</code> lists it</summary>\n" +
                                                      all + "</details>\n"},
                  {"Before", picture_of(before.document)},
                  {"After", picture_of(after.document)}});
}

} // namespace

std::string page_of(const std::vector<NamedDocument>& documents, const std::string& trace) {
  std::map<std::string, std::size_t> kinds;
  for (const NamedDocument& d : documents) {
    ++kinds[kind_of(d.document)];
  }
  for (const auto& [kind, count] : kinds) {
    if (count > 1 && documents.size() != 2) {
      fail(ErrorKind::usage,
           fmt::format("{} of these {} documents are of the kind {}; give one of each kind, or two "
                       "of one kind to compare",
                       count, documents.size(), kind));
    }
    if (count == 2) {
      if (!trace.empty()) {
        fail(ErrorKind::usage, "--measured is for the page of a plan, not for a comparison");
      }
      return diff_page(documents[0], documents[1]);
    }
  }
  return loop_page(documents, trace);
}

} // namespace reckon
