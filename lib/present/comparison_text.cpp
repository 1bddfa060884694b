// SPDX-License-Identifier: Apache-2.0
#include "present/comparison_text.hpp"

#include "compare/follow.hpp"
#include "core/units.hpp"
#include "documents/cells.hpp"
#include "present/numbers.hpp"
#include "present/option_text.hpp"
#include "present/ranges.hpp"
#include "present/table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <vector>

namespace reckon {
namespace {

constexpr std::size_t k_most_lines = 12;
constexpr std::size_t k_all = std::numeric_limits<std::size_t>::max();

std::string side_text(const Side& side) {
  if (side.absent()) {
    return "(none)";
  }
  return side.number ? quantity_text(*side.number, side.unit) : short_digest(side.text);
}

/// Both sides of a line. Of long texts, as sentences and lists of commands, where they begin; where
/// they begin alike, that they differ.
std::pair<std::string, std::string> beside(std::string before, std::string after) {
  constexpr std::size_t k_most = 56;
  if (std::max(before.size(), after.size()) <= k_most) {
    return {std::move(before), std::move(after)};
  }
  const auto cut = [](const std::string& text) {
    std::size_t end = text.size() > k_most ? k_most : text.size();
    while (end > 0 && end < text.size() &&
           (static_cast<unsigned char>(text[end]) & 0xC0U) == 0x80U) {
      --end; // not inside a character
    }
    return end < text.size() ? text.substr(0, end) + "..." : text;
  };
  std::string a = cut(before), b = cut(after);
  return a == b ? std::pair<std::string, std::string>("a text", "another")
                : std::pair(std::move(a), std::move(b));
}

/// "ranks/3/share_bytes" -> 3 and "share_bytes".
std::optional<std::pair<std::size_t, std::string>> as_rank(std::string_view where) {
  constexpr std::string_view k_prefix = "ranks/";
  if (!where.starts_with(k_prefix)) {
    return std::nullopt;
  }
  where.remove_prefix(k_prefix.size());
  std::size_t rank = 0;
  const auto [rest, error] = std::from_chars(where.data(), where.data() + where.size(), rank);
  if (error != std::errc{}) {
    return std::nullopt;
  }
  where.remove_prefix(static_cast<std::size_t>(rest - where.data()));
  where.remove_prefix(where.starts_with('/') ? 1 : 0);
  return std::pair{rank, std::string(where)};
}

std::string spaced(std::string text) {
  for (const std::string_view suffix : {"_bytes_per_second", "_seconds", "_bytes"}) {
    if (text.ends_with(suffix)) {
      text.erase(text.size() - suffix.size());
      break;
    }
  }
  std::replace(text.begin(), text.end(), '_', ' ');
  return text;
}

std::string label_of(const Difference& d) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 11> k_labels{
      {{"prediction/mid_seconds", "predicted time"},
       {"prediction/lo_seconds", "  optimistic"},
       {"prediction/hi_seconds", "  pessimistic"},
       {"prediction/bound_seconds", "bound"},
       {"prediction/bound_by", "bound by"},
       {"prediction/busiest_seconds", "busiest resource"},
       {"iteration_seconds", "measured time"},
       {"parts/server", "summed by"},
       {"part_bytes", "part size"},
       {"window_parts", "window"},
       {"within_tolerance", "verdict"}}};
  for (const auto& [where, label] : k_labels) {
    if (d.where == where) {
      return std::string(label);
    }
  }
  if (d.where.empty()) { // a sum of moves
    return d.kind == "moved" ? "summed by another rank"
                             : fmt::format("another {} of the same rank", d.kind);
  }
  if (d.kind == "order") {
    return "order of sending";
  }
  std::string_view where = d.where;
  // The group stands in the heading: "case key" of cells, "group/path" of the rest.
  if (where.starts_with(d.group) && where.size() > d.group.size() + 1) {
    where.remove_prefix(d.group.size() + 1);
  }
  const auto without = [&](std::string_view end) { where.remove_suffix(end.size()); };
  if (d.kind == "term") {
    where.remove_prefix(where.find('/') + 1);
    without("/seconds");
    return "  " + spaced(std::string(where));
  }
  for (const auto& [end, word] :
       {std::pair<std::string_view, const char*>{"/prediction/mid_seconds", " predicted"},
        {"/prediction/bound_seconds", " bound"}}) {
    if (where.ends_with(end)) {
      without(end);
      return std::string(where) + word;
    }
  }
  const bool as_it_stands = d.group == "topology" || d.group == "machines" || d.kind == "latency" ||
                            d.kind == "bandwidth" || d.kind == "cell" || d.kind == "status" ||
                            d.kind == "meaning" || d.kind == "tensor" || d.kind == "value";
  return as_it_stands ? std::string(where) : spaced(std::string(where));
}

struct Line {
  std::string label;
  const Difference* difference;
};

/// Equal changes of several ranks on one line, in the order of their first rank. In mixed company a
/// line says in full what it is about.
std::vector<Line> lines_of(const std::vector<const Difference*>& group, bool mixed) {
  std::vector<Line> out;
  using Key = std::tuple<std::string, std::string, std::string>;
  std::map<Key, std::pair<std::size_t, std::vector<std::size_t>>> merged; // place in `out`, ranks
  for (const Difference* d : group) {
    const auto rank = as_rank(d->where);
    if (!rank) {
      out.push_back({mixed ? d->where : label_of(*d), d});
      continue;
    }
    const Key key{rank->second, side_text(d->before), side_text(d->after)};
    const auto [it, fresh] = merged.try_emplace(key, out.size(), std::vector<std::size_t>{});
    it->second.second.push_back(rank->first);
    if (fresh) {
      out.push_back({"", d});
    }
  }
  for (const auto& [key, place] : merged) {
    const auto& numbers = place.second;
    out[place.first].label =
        fmt::format("rank{} {}{}{}", numbers.size() > 1 ? "s" : "", number_ranges(numbers),
                    std::get<0>(key).empty() ? "" : ": ", spaced(std::get<0>(key)));
  }
  return out;
}

double size_of_change(const Difference& d) {
  if (!d.change || *d.change <= -1) {
    return HUGE_VAL; // what is there no more, or only now, comes first
  }
  return std::abs(std::log1p(*d.change));
}

std::string remark_of(const Difference& d) {
  std::vector<std::string> parts;
  if (d.parts > 0) {
    // Plans that are cut differently share pieces, not parts.
    parts.push_back(counted(d.parts, d.kind == "order" ? "part" : "piece") +
                    (d.bytes > 0 ? ", " + to_text(Bytes(d.bytes)) : ""));
  }
  if (d.p_value) {
    parts.push_back(*d.p_value < 0.001 ? "p < 0.001" : fmt::format("p {:.2g}", *d.p_value));
  }
  if (!d.note.empty()) {
    parts.push_back(d.note);
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

/// "x 0.40 worse".
std::string change_and_effect(const Difference& d) {
  const std::string effect = d.effect == Effect::worse    ? "worse"
                             : d.effect == Effect::better ? "better"
                                                          : "";
  const std::string change = d.change ? change_text(*d.change) : "";
  return change + (change.empty() || effect.empty() ? "" : " ") + effect;
}

Tone tone_of(Effect effect) {
  return effect == Effect::worse ? Tone::bad
                                 : (effect == Effect::better ? Tone::good : Tone::plain);
}

/// Takes the moves of one kind out of the group: all, or their sum and the largest few.
std::vector<const Difference*> largest_moves(std::vector<const Difference*>& group,
                                             std::string_view kind, std::size_t kept,
                                             Difference& sum) {
  std::vector<const Difference*> moves;
  const auto is_other = [&](const Difference* d) { return d->kind != kind; };
  const auto first = std::stable_partition(group.begin(), group.end(), is_other);
  moves.assign(first, group.end());
  group.erase(first, group.end());
  if (moves.size() > kept + 1) {
    std::stable_sort(moves.begin(), moves.end(),
                     [](const Difference* a, const Difference* b) { return a->bytes > b->bytes; });
    for (const Difference* d : moves) {
      sum.parts += d->parts;
      sum.bytes += d->bytes;
      sum.counts = d->counts;
    }
    sum.kind = kind;
    sum.note = fmt::format("in {} directions, the largest:", moves.size());
    moves.resize(kept);
    moves.insert(moves.begin(), &sum);
  }
  return moves;
}

std::string group_text(const std::string& title, std::vector<const Difference*> group, bool mixed,
                       std::size_t most, const Style& style) {
  const bool measured =
      std::any_of(group.begin(), group.end(), [](const Difference* d) { return d->p_value; });
  if (measured) {
    std::stable_sort(group.begin(), group.end(), [](const Difference* a, const Difference* b) {
      return size_of_change(*a) > size_of_change(*b);
    });
  }
  std::array<Difference, 3> sums;
  if (!mixed && most != k_all) {
    std::size_t i = 0;
    for (const std::string_view kind : {"moved", "lane", "tree"}) {
      const auto moves = largest_moves(group, kind, kind == "moved" ? 5 : 3, sums[i++]);
      group.insert(group.end(), moves.begin(), moves.end());
    }
  }
  std::vector<Line> lines = lines_of(group, mixed);
  const std::size_t shown = lines.size() - 1 <= most ? lines.size() : most;
  Table table(2, "|>||>||~");
  for (std::size_t i = 0; i < shown; ++i) {
    const Difference& d = *lines[i].difference;
    const Tone plain = d.counts ? Tone::plain : Tone::dim;
    const Tone tone = d.counts ? tone_of(d.effect) : Tone::dim;
    const bool is_sum = d.where.empty();
    auto [before, after] = beside(side_text(d.before), side_text(d.after));
    table.row({{lines[i].label, plain},
               {is_sum ? "" : std::move(before), plain},
               {is_sum ? "" : "->", Tone::dim},
               {is_sum ? "" : std::move(after), plain},
               {change_and_effect(d), tone},
               {remark_of(d), Tone::dim}});
  }
  std::string out = heading(title, style) + table.text(style);
  if (shown < lines.size()) {
    out += fmt::format("  and {} more; -v lists all\n", lines.size() - shown);
  }
  return out;
}

std::string plural(const std::string& kind) {
  return kind == "roles" ? kind : kind + "s";
}

/// Of a profile's differences that follow from no other: by machine, what each says.
struct Clause {
  std::string machine; ///< "w2", "w0 -> w2"; empty: all
  struct Item {
    std::string what;
    std::size_t cells = 0;
    double slowest = HUGE_VAL, fastest = 0; ///< of cells: how many times as fast
    std::set<std::string> pairs{};          ///< that follow
    std::size_t others = 0;                 ///< cells that follow
  };
  std::vector<Item> items;
};

std::string machine_of(const Difference& d) {
  std::vector<std::string> machines;
  for (const std::string& place : d.places) {
    std::string machine = place.substr(0, place.find('/'));
    if (machines.empty() || machines.back() != machine) {
      machines.push_back(std::move(machine));
    }
  }
  return fmt::format("{}", fmt::join(machines, " -> "));
}

/// "port", "memory", "nic0/pcie/width 16 -> 4", "reduce_sum".
std::string cause_text(const Difference& d, const std::string& machine) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> k_words{
      {{k_port_bandwidth, "port"},
       {k_single_port, "port"},
       {k_stream_copy, "memory"},
       {k_stream_add, "memory"}}};
  for (const auto& [test, word] : k_words) {
    if (d.group == test && d.kind != "status") {
      return std::string(word);
    }
  }
  const std::string inside = fmt::format("{}/{}/", d.group, machine);
  return d.where.starts_with(inside) || d.kind == "fact"
             ? fmt::format("{} {} -> {}",
                           d.where.starts_with(inside) ? d.where.substr(inside.size()) : d.where,
                           side_text(d.before), side_text(d.after))
         : d.kind == "status" ? fmt::format("{} {}", d.group, side_text(d.after))
                              : d.group;
}

/// "port 0.40 x, 8 pairs follow from it".
std::string text_of(const Clause::Item& item) {
  std::string text = item.what;
  if (item.cells > 0) {
    const std::string slowest = significant(item.slowest, 2),
                      fastest = significant(item.fastest, 2);
    text += fmt::format(" {}{} x", slowest, slowest == fastest ? "" : " to " + fastest);
    text += item.cells > 1 ? fmt::format(" in {} cells", item.cells) : "";
  }
  std::vector<std::string> follow;
  if (!item.pairs.empty()) {
    follow.push_back(counted(item.pairs.size(), "pair"));
  }
  if (item.others > 0) {
    follow.push_back(counted(item.others, item.pairs.empty() ? "cell" : "other cell"));
  }
  if (!follow.empty()) {
    text += fmt::format(", {} follow{} from it", fmt::join(follow, " and "),
                        item.pairs.size() + item.others == 1 ? "s" : "");
  }
  return text;
}

std::string text_of(const Clause& clause) {
  constexpr std::size_t k_items = 2;
  std::vector<std::string> parts;
  for (std::size_t i = 0; i < std::min(k_items, clause.items.size()); ++i) {
    parts.push_back(text_of(clause.items[i]));
  }
  if (clause.items.size() > k_items) {
    parts.push_back(fmt::format("{} more", clause.items.size() - k_items));
  }
  return fmt::format("{}{}{}", clause.machine, clause.machine.empty() ? "" : ": ",
                     fmt::join(parts, ", "));
}

/// What a profile's differences come to, causes first: "w2: port 0.40 x, 8 pairs follow from it".
std::string profile_summary(const Comparison& c) {
  std::vector<Clause> clauses;
  std::map<std::string, std::size_t> clause_of;                       // by machine
  std::map<std::string, std::pair<std::size_t, std::size_t>> item_of; // by `where` of a cause
  const auto matters = [](const Difference& d) { return d.effect != Effect::neutral; };
  const bool any = std::any_of(c.differences.begin(), c.differences.end(), matters);
  for (const Difference& d : c.differences) {
    if (any && !matters(d)) {
      continue; // other numbers, other names
    }
    if (!d.follows_from.empty()) {
      const auto [clause, item] = item_of.at(d.follows_from);
      Clause::Item& cause = clauses[clause].items[item];
      if (d.group.starts_with("pair_")) {
        cause.pairs.insert(fmt::format("{}", fmt::join(d.places, " -> ")));
      } else {
        ++cause.others;
      }
      continue;
    }
    const std::string machine = machine_of(d);
    const auto [at, fresh] = clause_of.try_emplace(machine, clauses.size());
    if (fresh) {
      clauses.push_back({machine, {}});
    }
    auto& items = clauses[at->second].items;
    const std::string what = cause_text(d, machine);
    auto item = std::find_if(items.begin(), items.end(),
                             [&](const Clause::Item& known) { return known.what == what; });
    if (item == items.end()) {
      item = items.insert(items.end(), {what});
    }
    item_of.try_emplace(d.where, at->second, static_cast<std::size_t>(item - items.begin()));
    if (const auto speed = speed_of(d); speed && d.kind != "fact") {
      ++item->cells;
      item->slowest = std::min(item->slowest, *speed);
      item->fastest = std::max(item->fastest, *speed);
    }
  }
  constexpr std::size_t k_clauses = 3;
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min(k_clauses, clauses.size()); ++i) {
    texts.push_back(text_of(clauses[i]));
  }
  if (clauses.size() > k_clauses) {
    texts.push_back(fmt::format("{} more machines or pairs", clauses.size() - k_clauses));
  }
  return fmt::format("{}", fmt::join(texts, "; "));
}

/// What the differences come to; empty: there is no better word than the differences.
std::string summary_of(const Comparison& c) {
  if (c.kind == "profile") {
    return profile_summary(c);
  }
  const bool plan = c.kind == "plan";
  if (!plan && c.kind != "report") {
    return "";
  }
  const std::string_view where = plan ? "prediction/mid_seconds" : "iteration_seconds";
  const std::string name = plan ? "predicted time" : "measured time";
  for (const std::vector<Difference>* found : {&c.differences, &c.undecided}) {
    const auto time = std::ranges::find(*found, where, &Difference::where);
    if (time != found->end()) {
      return fmt::format("{} {} -> {}, {}{}", name, side_text(time->before), side_text(time->after),
                         change_text(time->change.value_or(0)),
                         found == &c.undecided && !c.differences.empty() ? ", undecided" : "");
    }
  }
  return name + " as before";
}

std::string tally_of(const Comparison& c) {
  const auto count = [&](Effect effect) {
    return std::count_if(c.differences.begin(), c.differences.end(),
                         [&](const Difference& d) { return d.effect == effect; });
  };
  return fmt::format("{}: {} worse, {} better, {} neither{}",
                     counted(c.differences.size(), "difference"), count(Effect::worse),
                     count(Effect::better), count(Effect::neutral),
                     c.only_worse ? "; only worse counts" : "");
}

/// The verdict with what it comes to, and how much there is of what.
std::string verdict_text(const Comparison& c, const std::string& before, const std::string& after,
                         const Style& style) {
  const bool counts = std::any_of(c.differences.begin(), c.differences.end(),
                                  [](const Difference& d) { return d.counts; });
  const std::string verdict = counts                  ? "different"
                              : !c.same()             ? "undecided"
                              : c.differences.empty() ? "same"
                                                      : "nothing worse";
  const std::string names =
      fmt::format("{} {} and {}: ", plural(c.kind), printable(before), printable(after));
  const std::string undecided =
      c.undecided.empty() ? "" : fmt::format(", {} undecided", c.undecided.size());
  const std::string summary = printable(summary_of(c));
  std::string out = folded(
      names + verdict +
          (c.differences.empty()
               ? fmt::format(" in {}{}{}", counted(c.compared, "quantity", "quantities"), undecided,
                             c.undecided.empty() || c.kind == "profile" ? "" : ": " + summary)
               : (summary.empty() ? "" : ": ") + summary),
      style);
  if (const std::size_t at = out.find(verdict, names.size() - 1); at != out.npos) {
    out.replace(at, verdict.size(), toned(verdict, c.same() ? Tone::good : Tone::bad, style));
  }
  return c.differences.empty() ? out : out + folded(tally_of(c) + undecided, style);
}

/// "23 cells were measured only before: host_memcpy 12, reduce_sum 11".
std::string coverage_text(const std::vector<std::string>& cells, const char* when, bool verbose,
                          const Style& style) {
  if (cells.empty()) {
    return "";
  }
  constexpr std::size_t k_cases = 4;
  std::map<std::string, std::size_t> by_case;
  for (const std::string& cell : cells) {
    ++by_case[cell.substr(0, cell.find(' '))];
  }
  std::vector<std::string> cases;
  for (const auto& [name, count] : by_case) {
    cases.push_back(fmt::format("{} {}", name, count));
  }
  if (cases.size() > k_cases) {
    cases.resize(k_cases);
    cases.emplace_back("...");
  }
  std::string out =
      "\n" + folded(fmt::format("{} {} measured only {}: {}", counted(cells.size(), "cell"),
                                cells.size() == 1 ? "was" : "were", when,
                                printable(fmt::format("{}", fmt::join(cases, ", ")))),
                    style);
  for (const std::string& cell : verbose ? cells : std::vector<std::string>()) {
    out += fmt::format("  {}\n", printable(cell));
  }
  return out;
}

/// What stays within the tolerance is said where it is more than a twentieth.
std::string within_text(const Comparison& c, const Style& style) {
  constexpr double k_notable = 0.05;
  if (!c.largest_within || !c.largest_within->change) {
    return "";
  }
  const Difference& d = *c.largest_within;
  return std::abs(*d.change) < k_notable
             ? ""
             : folded(
                   printable(fmt::format("largest change that counts as none: {} {} -> {}, {} ({})",
                                         d.where, side_text(d.before), side_text(d.after),
                                         change_text(*d.change), remark_of(d))),
                   style);
}

/// An option with its unit, as a plan's own listing has it.
std::string side_text_of_cause(const Cause& cause, const Side& side) {
  constexpr std::string_view k_option = "option ";
  return cause.what.starts_with(k_option) && !side.text.empty()
             ? option_text(cause.what.substr(k_option.size()), side.text)
             : side_text(side);
}

std::string causes_text(const Comparison& c, bool verbose, const Style& style) {
  Table table(2, "|>||~");
  const std::size_t shown =
      verbose || c.causes.size() <= k_most_lines + 1 ? c.causes.size() : k_most_lines;
  for (std::size_t i = 0; i < shown; ++i) {
    const Cause& cause = c.causes[i];
    auto [before, after] =
        beside(side_text_of_cause(cause, cause.before), side_text_of_cause(cause, cause.after));
    table.row({cause.what, std::move(before), {"->", Tone::dim}, std::move(after)});
  }
  std::string out = heading("changed inputs", style) + table.text(style);
  if (shown < c.causes.size()) {
    out += fmt::format("  and {} more; -v lists all\n", c.causes.size() - shown);
  }
  return out;
}

} // namespace

std::string render(const Comparison& comparison, const std::string& before_name,
                   const std::string& after_name, const Style& style, bool verbose) {
  std::string out = verdict_text(comparison, before_name, after_name, style);
  if (!comparison.causes.empty()) {
    out += causes_text(comparison, verbose, style);
  }
  struct Group {
    std::string name;
    std::vector<const Difference*> differences;
    /// Has what is worse or better and follows from nothing, or is what that may follow from.
    bool leading = false;
  };
  std::vector<Group> groups;
  std::vector<const Difference*> followers;
  for (const Difference& d : comparison.differences) {
    if (!d.follows_from.empty()) {
      followers.push_back(&d);
      continue;
    }
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const Group& known) { return known.name == d.group; });
    if (group == groups.end()) {
      group = groups.insert(groups.end(), {d.group, {}, false});
    }
    group->differences.push_back(&d);
    group->leading = group->leading || d.effect != Effect::neutral ||
                     (d.group == "resources" && d.change); // a link of another rate
  }
  std::stable_partition(groups.begin(), groups.end(),
                        [](const Group& group) { return group.leading; });
  if (!groups.empty()) {
    groups[0].leading = true; // where nothing is worse or better
  }
  const bool all = verbose || comparison.differences.size() <= k_most_lines;
  std::vector<std::string> counted_only;
  std::size_t hidden = 0;
  const std::size_t most = verbose ? k_all : k_most_lines;
  for (const Group& group : groups) {
    if (all || group.leading) {
      out += group_text(group.name, group.differences, false, most, style);
    } else {
      counted_only.push_back(fmt::format("{} {}", group.name, group.differences.size()));
      hidden += group.differences.size();
    }
  }
  if (all && !followers.empty()) {
    out += group_text("follows from these", followers, true, most, style);
  } else if (!followers.empty()) {
    counted_only.push_back(fmt::format("{} that follow from those above", followers.size()));
    hidden += followers.size();
  }
  if (hidden > 0) {
    out += "\n" + folded(fmt::format("and {} more: {}; -v lists them", hidden,
                                     fmt::join(counted_only, ", ")),
                         style);
  }
  if (!comparison.undecided.empty()) {
    constexpr std::size_t k_few = 3;
    std::vector<const Difference*> undecided;
    for (const Difference& d : comparison.undecided) {
      undecided.push_back(&d);
    }
    out += group_text("undecided: beyond the tolerance, but not proved", std::move(undecided), true,
                      verbose ? k_all : k_few, style);
  }
  out += coverage_text(comparison.only_before, "before", verbose, style);
  out += coverage_text(comparison.only_after, "after", verbose, style);
  return out + within_text(comparison, style);
}

std::string difference_line(const Difference& difference) {
  return fmt::format("{}: {} -> {}", difference.where, side_text(difference.before),
                     side_text(difference.after));
}

} // namespace reckon
