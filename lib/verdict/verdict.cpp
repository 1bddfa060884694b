// SPDX-License-Identifier: Apache-2.0
#include "verdict/verdict.hpp"

#include "core/json.hpp"
#include "core/units.hpp"
#include "documents/cells.hpp"
#include "documents/contradictions.hpp"
#include "verdict/checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <utility>

namespace reckon {

using namespace verdict_detail;

namespace verdict_detail {

Side text_side(std::string text) {
  return {.text = std::move(text), .number = std::nullopt, .unit = ""};
}

Side number_side(double number, std::string unit) {
  return {.text = "", .number = number, .unit = std::move(unit)};
}

std::string shown_place(const Profile& profile, const std::string& id) {
  const std::size_t end = std::min(id.find('/'), id.size());
  const auto group = std::ranges::find(profile.machines, id.substr(0, end), &MachineGroup::id);
  if (group == profile.machines.end() || group->count > 1) {
    return id;
  }
  if (group->members.size() == 1) {
    return end == id.size() ? group->members.front() : id;
  }
  const bool tells = profile.machines.size() > 1 && !group->name.empty() &&
                     std::ranges::count(profile.machines, group->name, &MachineGroup::name) == 1;
  return tells ? group->name + id.substr(end) : id;
}

std::string to_place(const std::string& from, const std::string& to) {
  return to.empty() ? from : from + " -> " + to;
}

std::string setting_of(CellKey key) {
  const std::uint64_t bytes = std::exchange(key.bytes, 0);
  key.from.clear();
  key.to.clear();
  key.in_flight = 0;
  return key.text() + (bytes > 0 ? " " + to_text(Bytes(bytes)) : "");
}

std::string make_of(const TopologyObject& nic) {
  std::string last = nic.name.substr(nic.name.find_last_of(' ') + 1);
  std::erase_if(last, [](char c) { return c >= '0' && c <= '9'; });
  return last;
}

std::string remedy_for(const Profile& profile, const std::string& id, const CellKey& slow) {
  const TopologyObject* const object = profile.topology.find(id);
  if (object != nullptr && object->kind == ObjectKind::gpu) {
    return "see its clocks, power and temperature (`nvidia-smi -q -d PERFORMANCE`, `rocm-smi`) and "
           "who else uses it; then its slot";
  }
  if (object != nullptr && object->kind == ObjectKind::numa_node) {
    return "see who else runs there (`numastat`, `top`); then its memory modules (`dmidecode -t "
           "memory`)";
  }
  const bool machine = std::ranges::any_of(profile.machines, [&](const MachineGroup& m) {
    return m.id == id || m.name == id || // or a port of a member
           std::ranges::find(m.members, id.substr(0, id.find('/'))) != m.members.end();
  });
  const bool inside = slow.to.empty() ? std::ranges::none_of(cell_cases(),
                                                             [&](const CellCase& c) {
                                                               return c.name == slow.test &&
                                                                      c.on == MeasuredOn::cluster;
                                                             })
                                      : slow.to == slow.from;
  if (machine && inside && slow.test.starts_with("nccl_")) {
    return "see its GPUs' clocks, power and temperature (`nvidia-smi -q -d PERFORMANCE`, "
           "`rocm-smi`), their links (`nvidia-smi nvlink -s`) and who else uses them; then which "
           "pair of them is slow (`reckon probe`, nvbandwidth)";
  }
  if (machine && inside) {
    return "see who else runs there (`top`, `numastat`), then its processors' clocks (`cpupower "
           "frequency-info`) and memory modules (`dmidecode -t memory`)";
  }
  if (machine || (object != nullptr && object->kind == ObjectKind::nic)) {
    return "see its port's speed and errors (`ethtool`, `ip -s link`, `ibstat`), its cable and the "
           "switch's port; and who else runs there";
  }
  return "measure again when nothing else runs; then check the link between them";
}

} // namespace verdict_detail

namespace {

bool is_broken(const Cell& cell) {
  return cell.status == CellStatus::failed || cell.status == CellStatus::timeout ||
         cell.status == CellStatus::mismatch;
}

void check_data(const Profile& profile, Verdict& verdict) {
  std::uint64_t skipped = 0;
  for (const Cell& cell : profile.cells) {
    skipped += cell.status == CellStatus::skipped ? 1U : 0U;
    verdict.checks[FindingKind::data] += cell.has_value() || is_broken(cell) ? 1U : 0U;
    if (is_broken(cell)) {
      verdict.findings.push_back(
          {.kind = FindingKind::data,
           .place = to_place(cell.key.from, cell.key.to),
           .what = cell.key.test,
           .value = text_side(fmt::format("{}: {}", name_of(cell.status), cell.reason)),
           .expected = {},
           .against = "",
           .remedy = cell.status == CellStatus::mismatch
                         ? "wrong data: stop using this part; measure again, then replace it"
                         : "measure again; if it persists, see the kernel's and the driver's log"});
    }
  }
  if (skipped > 0) {
    verdict.unknown.push_back(fmt::format("{} of {} had no time; give a longer --time", skipped,
                                          counted(profile.cells.size(), "cell")));
  }
}

void check_contradictions(const Profile& profile, Verdict& verdict) {
  for (const Contradiction& found : contradictions_of(profile)) {
    const Cell& cell = *found.cell;
    const std::string place = to_place(shown_place(profile, cell.key.from), cell.key.to);
    verdict.findings.push_back({.kind = FindingKind::contradiction,
                                .place = place.empty() ? profile.name : place,
                                .what = setting_of(cell.key),
                                .value = number_side(cell.p50, cell.unit),
                                .expected = number_side(found.limit, cell.unit),
                                .against = "at most " + found.limited_by,
                                .remedy = "one of the two is wrong, and so are plans made from it: "
                                          "probe again with a longer --time",
                                .share = found.limit / cell.p50});
  }
}

bool matches(const std::string& pattern, const std::string& id) {
  return pattern.ends_with('*')
             ? id.starts_with(std::string_view(pattern).substr(0, pattern.size() - 1))
             : pattern.empty() || pattern == id;
}

void check_cell(const RequiredCell& required, const Cell& cell, const std::string& against,
                Verdict& verdict) {
  ++verdict.checks[FindingKind::requirement];
  const bool low = required.at_least && cell.p50 < *required.at_least;
  if (!low && !(required.at_most && cell.p50 > *required.at_most)) {
    return;
  }
  const double limit = low ? *required.at_least : *required.at_most;
  const std::string place = to_place(cell.key.from, cell.key.to);
  verdict.findings.push_back(
      {.kind = FindingKind::requirement,
       .place = place,
       .what = setting_of(cell.key),
       .value = number_side(cell.p50, cell.unit),
       .expected = number_side(limit, cell.unit),
       .against = fmt::format("{} says: at {}", against, low ? "least" : "most"),
       .remedy = required.remedy,
       .share = low ? cell.p50 / limit : limit / cell.p50});
}

void check_requirements(const Profile& profile, const Requirements& requirements,
                        Verdict& verdict) {
  for (const RequiredCell& required : requirements.cells) {
    CellKey pattern = required.key;
    pattern.from.clear();
    pattern.to.clear();
    bool found = false;
    for (const Cell* cell : profile.select(pattern)) {
      if (matches(required.key.from, cell->key.from) && matches(required.key.to, cell->key.to)) {
        found = true;
        check_cell(required, *cell, requirements.name, verdict);
      }
    }
    if (!found) {
      ++verdict.checks[FindingKind::requirement];
      verdict.findings.push_back({.kind = FindingKind::requirement,
                                  .place = profile.name,
                                  .what = setting_of(required.key),
                                  .value = text_side("not measured"),
                                  .expected = {},
                                  .against = requirements.name + " says",
                                  .remedy = "measure it: its reason is in the profile, if it was "
                                            "tried; or correct the requirement"});
    }
  }
  for (const RequiredParts& required : requirements.parts) {
    ++verdict.checks[FindingKind::requirement];
    const auto parts = profile.topology.of_kind(required.kind);
    const auto count = std::ranges::count_if(parts, [&](const TopologyObject* part) {
      return part->name.find(required.name) != std::string::npos;
    });
    if (static_cast<std::uint64_t>(count) < required.at_least) {
      const auto at_least = static_cast<double>(required.at_least);
      verdict.findings.push_back(
          {.kind = FindingKind::requirement,
           .place = profile.name,
           .what = fmt::format("number of {}{}{}", name_of(required.kind),
                               required.name.empty() ? "" : " ", required.name),
           .value = number_side(static_cast<double>(count), ""),
           .expected = number_side(at_least, ""),
           .against = requirements.name + " says: at least",
           .remedy = "see `lspci`, the kernel's log and the driver's: a part is missing or down",
           .share = static_cast<double>(count) / at_least});
    }
  }
}

/// By test and key, as differences name cells: the cell's profile and key.
using CellsByText =
    std::map<std::pair<std::string, std::string>, std::pair<const Profile*, const CellKey*>>;

CellsByText cells_by_text(const std::vector<const Profile*>& profiles) {
  CellsByText cells;
  for (const Profile* const profile : profiles) {
    for (const Cell& cell : profile->cells) {
      cells.try_emplace({cell.key.test, cell.key.text()}, profile, &cell.key);
    }
  }
  return cells;
}

/// Where a difference is, and in what: a cell's places and setting, a part of the topology and its
/// property, else what the comparison calls it.
std::pair<std::string, std::string> place_and_what(const Difference& d, const Profile& profile,
                                                   const Profile& baseline,
                                                   const CellsByText& cells) {
  if (const auto found = cells.find({d.group, d.where}); found != cells.end()) {
    const auto& [in, key] = found->second;
    const std::string place = to_place(shown_place(*in, key->from), shown_place(*in, key->to));
    return {place.empty() ? profile.name : place, setting_of(*key)};
  }
  constexpr std::string_view k_topology = "topology/";
  if (!d.where.starts_with(k_topology)) {
    return {d.places.empty() ? profile.name
                             : to_place(d.places[0], d.places.size() > 1 ? d.places[1] : ""),
            d.where};
  }
  const std::string path = d.where.substr(k_topology.size());
  const auto is_here = [&](const TopologyObject& o) { return o.id == path; };
  if (std::ranges::any_of(baseline.topology.objects, is_here)) {
    return {path, "the part itself"};
  }
  const std::size_t slash = path.rfind('/');
  return slash == path.npos ? std::pair(profile.name, path)
                            : std::pair(path.substr(0, slash), path.substr(slash + 1));
}

void check_baseline(const Profile& profile, const VerdictOptions& options, Verdict& verdict) {
  const Profile& baseline = *options.baseline;
  const Comparison comparison = compare(baseline, profile);
  verdict.checks[FindingKind::baseline] += comparison.compared;
  const auto got_worse = [](const Difference& d) {
    const bool part_gone =
        d.group == "topology" && d.after.absent() && !d.before.absent() && !d.before.number;
    const bool fails_now = d.before.number && !d.after.number;
    return d.effect == Effect::worse || part_gone || fails_now;
  };
  std::map<std::string, std::uint64_t> follow; // by the cause, which is a finding itself
  for (const Difference& d : comparison.differences) {
    if (got_worse(d)) {
      follow.emplace(d.where, 0);
    }
  }
  const auto is_consequence = [&](const Difference& d) {
    return d.follows_from != d.where && follow.contains(d.follows_from);
  };
  for (const Difference& d : comparison.differences) {
    if (got_worse(d) && is_consequence(d)) {
      ++follow[d.follows_from];
    }
  }
  const CellsByText cells = follow.empty() ? CellsByText() : cells_by_text({&profile, &baseline});
  for (const Difference& d : comparison.differences) {
    if (got_worse(d) && !is_consequence(d)) {
      const double a = d.before.number.value_or(0);
      const double b = d.after.number.value_or(0);
      auto [place, what] = place_and_what(d, profile, baseline, cells);
      verdict.findings.push_back({.kind = FindingKind::baseline,
                                  .place = std::move(place),
                                  .what = std::move(what),
                                  .value = d.after,
                                  .expected = d.before,
                                  .against = "in " + options.baseline_name,
                                  .remedy = "`reckon diff` of the two profiles lists every change",
                                  .share = a > 0 && b > 0 ? std::min(a, b) / std::max(a, b) : 0,
                                  .others = follow[d.where]});
    }
  }
  const auto note = [&](std::uint64_t count, const char* text) {
    if (count > 0) {
      verdict.unknown.push_back(
          fmt::format(fmt::runtime(text), counted(count, "quantity", "quantities")));
    }
  };
  note(comparison.only_before.size(), "{} of the baseline, not measured now");
  note(comparison.undecided.size(),
       "cannot tell whether {} of the baseline changed: the samples are too few or too scattered");
}

/// A machine of so little memory is more likely one that shows less than it has.
void check_memory(const Profile& profile, Verdict& verdict) {
  constexpr std::uint64_t k_least_of_a_core = std::uint64_t{1} << 30U;
  for (const MachineGroup& machine : profile.machines) {
    if (machine.memory_bytes > 0 && machine.memory_bytes < k_least_of_a_core * machine.cores) {
      verdict.unknown.push_back(fmt::format(
          "whether {} has more memory than {} for {}: a virtual machine may be given more while it "
          "runs; compare `free -g`",
          shown_place(profile, machine.id), to_text(Bytes(machine.memory_bytes)),
          counted(machine.cores, "core")));
    }
  }
}

/// A place, and of a pair both ends.
std::vector<std::string> place_and_ends(const std::string& place) {
  constexpr std::string_view k_to = " -> ";
  std::vector<std::string> places{place};
  for (std::size_t at = 0; (at = place.find(k_to, at)) != place.npos; at += k_to.size()) {
    places.push_back(place.substr(0, at));
    places.push_back(place.substr(at + k_to.size()));
  }
  return places;
}

/// Whether `finding` is told of together with `known`, which is at least as serious, and of its
/// place or one of its ends: measured where a link is found wanting, or with a place that is slow;
/// or of one place and kind. Links, settings and requirements are told of one by one.
bool goes_with(const Finding& finding, const Finding& known) {
  if (finding.kind == FindingKind::link || finding.kind == FindingKind::setting ||
      finding.kind == FindingKind::requirement) {
    return false;
  }
  const bool cause = known.kind <= FindingKind::alternative && known.kind != FindingKind::data;
  if (finding.kind == FindingKind::suspect && known.kind == FindingKind::suspect) {
    return finding.place == known.place;
  }
  return cause || (known.kind == finding.kind && known.place == finding.place);
}

/// Causes before what follows from them, the worst first.
void fold(std::vector<Finding>& findings) {
  const auto rank = [](const Finding& f) {
    const bool pair = f.place.find(" -> ") != std::string::npos;
    return std::tuple(f.kind, pair, f.share);
  };
  std::stable_sort(findings.begin(), findings.end(),
                   [&](const Finding& a, const Finding& b) { return rank(a) < rank(b); });
  std::vector<Finding> kept;
  std::map<std::string, std::vector<std::size_t>> kept_of; // by place
  for (Finding& finding : findings) {
    std::optional<std::size_t> cause;
    bool twice = false;
    for (const std::string& place : place_and_ends(finding.place)) {
      for (const std::size_t i : kept_of[place]) {
        const Finding& known = kept[i];
        if (goes_with(finding, known)) {
          cause = std::min(cause.value_or(i), i);
        }
        twice |= known.kind == finding.kind && place == finding.place && known.what == finding.what;
      }
    }
    if (cause) {
      kept[*cause].others += 1 + finding.others;
    } else if (!twice) {
      kept_of[finding.place].push_back(kept.size());
      kept.push_back(std::move(finding));
    }
  }
  findings = std::move(kept);
}

Json to_json(const Side& side) {
  return side.number ? finite_or_null(*side.number) : Json(side.text);
}

} // namespace

std::string_view name_of(FindingKind kind) {
  switch (kind) {
  case FindingKind::data:
    return "data";
  case FindingKind::contradiction:
    return "contradiction";
  case FindingKind::link:
    return "link";
  case FindingKind::setting:
    return "setting";
  case FindingKind::like:
    return "like";
  case FindingKind::suspect:
    return "suspect";
  case FindingKind::alternative:
    return "alternative";
  case FindingKind::ceiling:
    return "ceiling";
  case FindingKind::requirement:
    return "requirement";
  case FindingKind::baseline:
    break;
  }
  return "baseline";
}

std::uint64_t Verdict::judged() const {
  return std::accumulate(
      checks.begin(), checks.end(), std::uint64_t{0},
      [](std::uint64_t sum, const auto& judged_of_kind) { return sum + judged_of_kind.second; });
}

Verdict judge(const Profile& profile, const VerdictOptions& options) {
  Verdict verdict;
  verdict.name = profile.name;
  check_data(profile, verdict);
  check_contradictions(profile, verdict);
  check_links(profile, verdict);
  check_settings(profile, verdict);
  check_measured(profile, verdict);
  check_ranks(profile, verdict);
  check_alternatives(profile, verdict);
  check_rails(profile, verdict);
  check_memory(profile, verdict);
  if (options.requirements != nullptr) {
    check_requirements(profile, *options.requirements, verdict);
  }
  if (options.baseline != nullptr) {
    check_baseline(profile, options, verdict);
  }
  fold(verdict.findings);
  const auto add_disturbed = [&](const Profile& of, const std::string& where) {
    if (const auto found = of.context.find("disturbed"); found != of.context.end()) {
      verdict.disturbed.push_back(found->second + where);
    }
  };
  add_disturbed(profile, "");
  if (options.baseline != nullptr) {
    add_disturbed(*options.baseline, " during " + options.baseline_name);
  }
  return verdict;
}

Json to_json(const Verdict& verdict) {
  Json findings = Json::array();
  for (const Finding& f : verdict.findings) {
    findings.push_back({{"kind", name_of(f.kind)},
                        {"place", f.place},
                        {"what", f.what},
                        {"value", to_json(f.value)},
                        {"expected", to_json(f.expected)},
                        {"unit", f.value.unit},
                        {"against", f.against},
                        {"share", f.share},
                        {"others", f.others},
                        {"remedy", f.remedy}});
  }
  Json checks = Json::object();
  for (const auto& [kind, count] : verdict.checks) {
    checks[std::string(name_of(kind))] = count;
  }
  Json rounds = Json::array();
  for (const auto& round : verdict.next.rounds) {
    Json pairs = Json::array();
    for (const auto& [from, to] : round) {
      pairs.push_back({{"from", from}, {"to", to}});
    }
    rounds.push_back(std::move(pairs));
  }
  return {{"schema", "verdict"},
          {"next",
           {{"rounds", rounds},
            {"seconds", verdict.next.seconds},
            {"seconds_known", verdict.next.seconds_known}}},
          {"profile", verdict.name},
          {"passed", verdict.passed()},
          {"disturbed", verdict.disturbed},
          {"checks", checks},
          {"findings", findings},
          {"not_known", verdict.unknown}};
}

} // namespace reckon
