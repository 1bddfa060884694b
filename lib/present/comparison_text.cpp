// SPDX-License-Identifier: Apache-2.0
#include "present/comparison_text.hpp"

#include "core/units.hpp"
#include "present/numbers.hpp"
#include "present/option_text.hpp"
#include "present/ranges.hpp"
#include "present/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <tuple>
#include <vector>

namespace reckon {
namespace {

constexpr std::size_t k_most_lines = 12;

std::string side_text(const Side& side) {
  if (side.absent()) {
    return "(none)";
  }
  return side.number ? quantity_text(*side.number, side.unit) : short_digest(side.text);
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
  constexpr std::array<std::pair<std::string_view, std::string_view>, 10> k_labels{
      {{"prediction/mid_seconds", "predicted time"},
       {"prediction/lo_seconds", "  optimistic"},
       {"prediction/hi_seconds", "  pessimistic"},
       {"prediction/bound_seconds", "bound"},
       {"prediction/bound_by", "bound by"},
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
    return d.kind == "moved" ? "summed by another rank" : "another lane of the same rank";
  }
  if (d.kind == "order") {
    return "order of sending";
  }
  std::string_view where = d.where;
  // The group stands in the heading: "case key" of cells, "group/path" of the rest.
  if (where.starts_with(d.group) && where.size() > d.group.size() + 1) {
    where.remove_prefix(d.group.size() + 1);
  }
  if (d.kind == "term") {
    return "  " + spaced(std::string(where.substr(where.find('/') + 1)));
  }
  if (d.group == "candidates" && where.find('/') != where.npos) {
    const std::size_t slash = where.find('/');
    return fmt::format("{} {}", where.substr(0, slash),
                       where.substr(slash) == "/mid_seconds" ? "predicted" : "bound");
  }
  const bool as_it_stands = d.kind == "latency" || d.kind == "bandwidth" || d.kind == "cell" ||
                            d.kind == "status" || d.kind == "meaning" || d.kind == "tensor" ||
                            d.kind == "topology" || d.kind == "value";
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
                       const Style& style) {
  const bool measured =
      std::any_of(group.begin(), group.end(), [](const Difference* d) { return d->p_value; });
  if (measured) {
    std::stable_sort(group.begin(), group.end(), [](const Difference* a, const Difference* b) {
      return size_of_change(*a) > size_of_change(*b);
    });
  }
  Difference moved_sum;
  Difference lane_sum;
  if (!mixed) {
    for (const auto& [kind, sum] :
         {std::pair<std::string_view, Difference*>{"moved", &moved_sum}, {"lane", &lane_sum}}) {
      const auto moves = largest_moves(group, kind, kind == "moved" ? 5 : 3, *sum);
      group.insert(group.end(), moves.begin(), moves.end());
    }
  }
  std::vector<Line> lines = lines_of(group, mixed);
  const std::size_t shown = lines.size() <= k_most_lines + 1 ? lines.size() : k_most_lines;
  Table table(2, "|>||>|>|~");
  for (std::size_t i = 0; i < shown; ++i) {
    const Difference& d = *lines[i].difference;
    const Tone plain = d.counts ? Tone::plain : Tone::dim;
    const bool is_sum = d.where.empty();
    table.row({{lines[i].label, plain},
               {is_sum ? "" : side_text(d.before), plain},
               {is_sum ? "" : "->", Tone::dim},
               {is_sum ? "" : side_text(d.after), plain},
               {d.change ? change_text(*d.change) : "", d.counts ? tone_of(d.effect) : Tone::dim},
               {remark_of(d), Tone::dim}});
  }
  std::string out = heading(title, style) + table.text(style);
  if (shown < lines.size()) {
    out += fmt::format("  and {} more; --json lists all\n", lines.size() - shown);
  }
  return out;
}

std::string plural(const std::string& kind) {
  return kind == "roles" ? kind : kind + "s";
}

std::string verdict_line(const Comparison& c, const std::string& before, const std::string& after,
                         const Style& style) {
  const auto count = [&](auto&& wanted) {
    return std::count_if(c.differences.begin(), c.differences.end(), wanted);
  };
  const auto worse = count([](const Difference& d) { return d.effect == Effect::worse; });
  const auto better = count([](const Difference& d) { return d.effect == Effect::better; });
  const auto counts = count([](const Difference& d) { return d.counts; });
  std::string tally = counted(static_cast<std::uint64_t>(counts), "difference");
  if (worse > 0) {
    tally += fmt::format(", {} worse", worse);
  }
  if (better > 0) {
    tally += fmt::format(", {} better", better);
  }
  const auto uncounted = static_cast<std::ptrdiff_t>(c.differences.size()) - counts;
  if (uncounted > 0) {
    tally += fmt::format(", {} not worse and not counted", uncounted);
  }
  const std::string verdict =
      c.same() ? toned("same", Tone::good, style) : toned("different", Tone::bad, style);
  std::string out =
      fmt::format("{} {} and {}: {}", plural(c.kind), printable(before), printable(after), verdict);
  out += c.differences.empty() ? fmt::format(" in {} quantities", c.compared)
                               : fmt::format(" ({})", tally);
  if (!c.undecided.empty()) {
    out += fmt::format(", {} undecided", c.undecided.size());
  }
  return out + "\n";
}

/// An option with its unit, as a plan's own listing has it.
std::string side_text_of_cause(const Cause& cause, const Side& side) {
  constexpr std::string_view k_option = "option ";
  return cause.what.starts_with(k_option) && !side.text.empty()
             ? option_text(cause.what.substr(k_option.size()), side.text)
             : side_text(side);
}

std::string causes_text(const Comparison& c, const Style& style) {
  Table table(2, "|>||~");
  const std::size_t shown = c.causes.size() <= k_most_lines + 1 ? c.causes.size() : k_most_lines;
  for (std::size_t i = 0; i < shown; ++i) {
    const Cause& cause = c.causes[i];
    table.row({cause.what,
               side_text_of_cause(cause, cause.before),
               {"->", Tone::dim},
               side_text_of_cause(cause, cause.after)});
  }
  std::string out = heading("changed inputs", style) + table.text(style);
  if (shown < c.causes.size()) {
    out += fmt::format("  and {} more; --json lists all\n", c.causes.size() - shown);
  }
  return out;
}

} // namespace

std::string render(const Comparison& comparison, const std::string& before_name,
                   const std::string& after_name, const Style& style) {
  std::string out = verdict_line(comparison, before_name, after_name, style);
  std::vector<std::string> order;
  std::map<std::string, std::vector<const Difference*>> groups;
  for (const Difference& d : comparison.differences) {
    auto& group = groups[d.group];
    if (group.empty()) {
      order.push_back(d.group);
    }
    group.push_back(&d);
  }
  for (const std::string& name : order) {
    out += group_text(name, groups[name], false, style);
  }
  if (!comparison.undecided.empty()) {
    std::vector<const Difference*> all;
    for (const Difference& d : comparison.undecided) {
      all.push_back(&d);
    }
    out += group_text("undecided: beyond the tolerance, perhaps by chance", std::move(all), true,
                      style);
  }
  if (!comparison.causes.empty()) {
    out += causes_text(comparison, style);
  }
  return out;
}

std::string difference_line(const Difference& difference) {
  return fmt::format("{}: {} -> {}", difference.where, side_text(difference.before),
                     side_text(difference.after));
}

} // namespace reckon
