// SPDX-License-Identifier: Apache-2.0
#include "core/name_ranges.hpp"
#include "core/units.hpp"
#include "documents/quantity_names.hpp"
#include "present/document_text.hpp"
#include "present/numbers.hpp"
#include "present/option_text.hpp"
#include "present/plan_sections.hpp"
#include "present/ranges.hpp"
#include "present/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

namespace reckon {
namespace {

std::string link_text(const DocumentLink& link) {
  return fmt::format("{} {}", link.name, short_digest(link.digest));
}

std::string role_text(const PlanRank& rank) {
  if (rank.worker && rank.server) {
    return "worker, server";
  }
  return rank.worker ? "worker" : (rank.server ? "server" : "idle");
}

std::string slower_text(double change) {
  constexpr double k_same = 5e-5; // prints as 0.00 %
  return std::abs(change) < k_same ? "as fast"
         : change < -0.5           ? faster_text(std::max(0.0, 1 + change))
                                   : change_text(change);
}

/// "reduce_broadcast" of "reduce_broadcast_gpu2": what its roots are tried with.
std::string_view scheme_of(std::string_view strategy) {
  for (const std::string_view scheme : {"reduce_broadcast", "cpu_assisted", "brute_force"}) {
    if (strategy.starts_with(scheme)) {
      return scheme;
    }
  }
  return strategy;
}

/// Of a plan whose trees are between places in machines, over links and not over ports.
bool inside_machine(const Plan& plan) {
  return !plan.trees.empty() && plan.routing.empty() &&
         std::any_of(plan.ranks.begin(), plan.ranks.end(),
                     [](const PlanRank& r) { return !r.endpoint.empty() || r.machine_number; });
}

} // namespace

std::string candidates_text(const Plan& plan, const Style& style) {
  // Of trees that are not played there is no time but the busiest link's.
  const bool trees = inside_machine(plan);
  const bool ranged =
      std::any_of(plan.candidates.begin(), plan.candidates.end(), [](const Candidate& c) {
        return c.prediction && is_range(c.prediction->lo_seconds, c.prediction->hi_seconds);
      });
  Table table(0, trees && ranged ? "|~strategy" : "|strategy");
  if (!trees) {
    table.column("busiest", Align::right);
  }
  if (ranged) {
    table.column("low", Align::right);
  }
  table.column(trees ? "busiest link" : "predicted", Align::right);
  if (ranged) {
    table.column("high", Align::right);
  }
  table.column("to chosen", Align::right);
  if (trees) {
    table.column("which", Align::left, !ranged);
  }
  // Of trees only the chosen ones are played: like is compared with like.
  double chosen = plan.prediction.mid_seconds;
  for (const Candidate& c : plan.candidates) {
    if (trees && c.strategy == plan.strategy && c.prediction) {
      chosen = c.prediction->mid_seconds;
    }
  }
  std::string refused;
  for (std::size_t i = 0; i < plan.candidates.size(); ++i) {
    const Candidate& c = plan.candidates[i];
    const bool is_chosen = c.strategy == plan.strategy;
    const std::string mark = is_chosen ? "*" : "";
    if (!c.prediction) {
      refused += folded(
          "  " + printable(fmt::format("{} is not compared: {}", c.strategy, c.reason)), style);
      continue;
    }
    const Prediction& p = *c.prediction;
    // One scheme with one root or another often takes the same time: one row for all.
    std::size_t alike = 0;
    while (trees && !is_chosen && i + 1 < plan.candidates.size()) {
      const Candidate& next = plan.candidates[i + 1];
      if (next.strategy == plan.strategy || !next.prediction ||
          scheme_of(next.strategy) != scheme_of(c.strategy) ||
          time_text(next.prediction->lo_seconds) != time_text(p.lo_seconds) ||
          time_text(next.prediction->mid_seconds) != time_text(p.mid_seconds) ||
          time_text(next.prediction->hi_seconds) != time_text(p.hi_seconds)) {
        break;
      }
      ++alike;
      ++i;
    }
    std::vector<TableCell> row{
        {mark, Tone::good},
        {alike > 0 ? fmt::format("{} and {} alike", c.strategy, alike) : c.strategy,
         is_chosen ? Tone::strong : Tone::plain}};
    if (!trees) {
      row.emplace_back(time_text(p.busy_seconds()));
    }
    if (ranged) {
      row.emplace_back(time_text(p.lo_seconds));
    }
    row.emplace_back(time_text(p.mid_seconds), is_chosen ? Tone::strong : Tone::plain);
    if (ranged) {
      row.emplace_back(time_text(p.hi_seconds));
    }
    row.emplace_back(is_chosen || chosen <= 0 ? "" : slower_text(p.mid_seconds / chosen - 1));
    if (trees) {
      row.emplace_back(p.bound_by);
    }
    table.row(std::move(row));
  }
  std::string out =
      heading(!trees ? "candidates"
              : plan.passes
                  ? "candidates: how long their traffic alone keeps the busiest link, without the "
                    "passes and not played"
                  : "candidates: the time of the busiest link alone, not played",
              style) +
      table.text(style) + refused;
  if (!plan.runner_up.empty()) {
    // Where a slower strategy was asked for, or is slower only when played, its text says all.
    std::string text =
        fmt::format("runner-up {}, margin {}", plan.runner_up, percent_text(plan.margin));
    if (!plan.margin_text.empty()) {
      constexpr double k_none = 5e-5; // "margin 0.00 %" says nothing beside its text
      text = plan.margin < k_none ? plan.margin_text
             : trees ? fmt::format("{}; {} by the busiest link", plan.margin_text, text)
                     : fmt::format("{}: {}", text, plan.margin_text);
    } else if (trees) {
      text += " by the busiest link";
    }
    out += folded(printable("  " + text), style);
  }
  return out;
}

namespace {

/// Least and greatest of some ranks, on one line.
struct Span {
  double low = std::numeric_limits<double>::infinity();
  double high = 0;
  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  [[nodiscard]] std::string text() const {
    const std::string a = bytes_text(low);
    const std::string b = bytes_text(high);
    return a == b ? a : a + " to " + b;
  }
};

/// Ranks of several machines by their kind: "m0 gpu".
std::string cluster_place(const PlanRank& rank) {
  return rank.endpoint_kind.empty() ? rank.machine : rank.machine + " " + rank.endpoint_kind;
}

/// Of places in several machines: who works, who only sums, who does neither; else empty.
std::string machines_text(const Plan& plan) {
  std::map<std::string, bool> works;
  bool several = false;
  for (const PlanRank& rank : plan.ranks) {
    PlanRank machine = rank;
    machine.machine_number = rank.machine_number.value_or(0);
    works[machine.machine_name()] |= rank.worker;
    several = several || rank.machine_number;
  }
  std::vector<std::string> out;
  const auto add = [&](std::size_t count, std::string_view does, std::string_view do_,
                       const std::string& which) {
    if (count > 0) {
      out.push_back(fmt::format("{} {} ({})", count, count == 1 ? does : do_, which));
    }
  };
  const auto add_those = [&](bool that_work, std::string_view does, std::string_view do_) {
    std::vector<std::string> names;
    for (const auto& [name, work] : works) {
      if (work == that_work) {
        names.push_back(name);
      }
    }
    add(names.size(), does, do_, first_names(name_ranges(names), 4));
  };
  add_those(true, "works", "work");
  add_those(false, "only sums", "only sum");
  for (const Quantity& q : plan.quantities) {
    const auto number =
        static_cast<std::size_t>(std::clamp(q.value, 0.0, static_cast<double>(k_max_count)));
    if (q.name == k_unused_devices) {
      out.push_back(fmt::format("{} unused, no ranks", counted(number, "memory device")));
    } else if (q.name == k_unused_gpus) {
      out.back() += fmt::format(", {} unused", counted(number, "GPU"));
    } else if (q.name == k_unused_machines) {
      several = true;
      const std::size_t why = q.equation.find(": ");
      add(number, "is unused", "are unused",
          why == std::string::npos ? q.equation : q.equation.substr(why + 2));
    }
  }
  std::uint64_t asked = 0; // to sum; of a text that somebody may have edited
  if (const auto servers = plan.options.find("servers"); servers != plan.options.end()) {
    const std::string& text = servers->second;
    std::from_chars(text.data(), text.data() + text.size(), asked);
  }
  const auto sum = static_cast<std::uint64_t>(
      std::ranges::count_if(works, [](const auto& machine) { return !machine.second; }));
  if (asked > sum) {
    out.push_back(fmt::format("{} of {} servers {} nothing: the trees do without", asked - sum,
                              asked, asked - sum == 1 ? "sums" : "sum"));
  }
  return several && inside_machine(plan) ? fmt::format("{}", fmt::join(out, "; ")) : "";
}

} // namespace

std::string ranks_text(const Plan& plan, const Style& style) {
  struct Group {
    std::vector<std::size_t> ranks;
    Span share, assigned, sent, received;
  };
  using Key = std::tuple<std::string, std::string, int, double>;
  std::vector<Key> order;
  std::map<Key, Group> groups;
  const auto workers =
      static_cast<std::uint64_t>(std::ranges::count_if(plan.ranks, &PlanRank::worker));
  for (std::size_t i = 0; i < plan.ranks.size(); ++i) {
    const PlanRank& r = plan.ranks[i];
    const Key key{role_text(r),
                  r.machine_number      ? cluster_place(r)
                  : !r.endpoint.empty() ? r.endpoint
                  : r.rack.empty()      ? r.machine
                                        : r.machine + " in " + r.rack,
                  r.lanes, r.port_bytes_per_second};
    Group& group = groups[key];
    if (group.ranks.empty()) {
      order.push_back(key);
    }
    group.ranks.push_back(i);
    group.share.add(r.share_bytes);
    group.assigned.add(static_cast<double>(r.assigned_bytes));
    if (plan.sums_in_place) { // what it sums it reads of the other workers, and writes to them
      const auto of_others = static_cast<double>((workers - (r.worker ? 1 : 0)) * r.assigned_bytes);
      group.sent.add(of_others);
      group.received.add(of_others);
    } else {
      group.sent.add(static_cast<double>(r.egress_bytes));
      group.received.add(static_cast<double>(r.ingress_bytes));
    }
  }
  const bool trees = inside_machine(plan);
  Table table(2, trees ? "ranks|role|place" : "ranks|role|machine");
  if (!trees) {
    table.columns(">lanes|>port");
  }
  table.columns(">share\nsolved|>share\nassigned");
  table.columns(plan.sums_in_place ? ">writes\nto others|>reads\nof others" : ">sends|>receives");
  for (const Key& key : order) {
    const Group& group = groups[key];
    const auto& [role, machine, lanes, port] = key;
    std::vector<TableCell> row{number_ranges(group.ranks), role,
                               trees ? place_text(plan, group.ranks.front()) : machine};
    if (!trees) {
      row.emplace_back(fmt::format("{}", lanes));
      row.emplace_back(port > 0 ? to_text(Bandwidth::bytes_per_s(port)) : "none");
    }
    for (const Span& span : {group.share, group.assigned, group.sent, group.received}) {
      row.emplace_back(span.text());
    }
    table.row(std::move(row));
  }
  // By ports ranks are machines, whatever they have in common.
  const bool machines = !trees && plan.ranks.size() > 1 &&
                        std::all_of(plan.ranks.begin(), plan.ranks.end(),
                                    [](const PlanRank& r) { return r.port_bytes_per_second > 0; });
  std::vector<std::size_t> idle;
  for (std::size_t i = 0; i < plan.ranks.size(); ++i) {
    const PlanRank& r = plan.ranks[i];
    if (!r.worker && r.assigned_bytes == 0 && r.egress_bytes == 0 && r.ingress_bytes == 0) {
      idle.push_back(i);
    }
  }
  return heading(machines ? "ranks, each on a machine of its own" : "ranks", style) +
         table.text(style) +
         (idle.empty() ? ""
                       : fmt::format("  rank{} {} {} nothing to do: this plan is as fast without\n",
                                     idle.size() == 1 ? "" : "s", number_ranges(idle),
                                     idle.size() == 1 ? "has" : "have"));
}

/// Of ranks with several network ports: each lane's port, where its thread is, and what it carries
/// (PHub, figure 2a). Ranks that are alike in that are one row.
std::string lanes_text(const Plan& plan, const Style& style) {
  struct Carried {
    std::vector<std::size_t> ranks;
    Span parts, bytes;
  };
  using Key = std::tuple<std::size_t, std::string, std::optional<int>, std::optional<int>>;
  std::map<Key, Carried> rows;
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    const PlanRank& rank = plan.ranks[r];
    std::vector<std::pair<std::uint64_t, std::uint64_t>> of_lane(rank.lane_places.size());
    for (std::size_t p = 0; p < plan.parts.size() && !of_lane.empty(); ++p) {
      if (rank.worker || plan.parts.server[p] == r) {
        if (plan.parts.lane[p] >= of_lane.size()) {
          continue; // an edited plan, whose worker has fewer lanes
        }
        auto& [parts, bytes] = of_lane[plan.parts.lane[p]];
        parts += 1;
        bytes += plan.parts.bytes[p];
      }
    }
    for (std::size_t l = 0; l < of_lane.size(); ++l) {
      const LanePlace& place = rank.lane_places[l];
      Carried& row = rows[{l, place.port, place.numa_node, place.cpu}];
      row.ranks.push_back(r);
      row.parts.add(static_cast<double>(of_lane[l].first));
      row.bytes.add(static_cast<double>(of_lane[l].second));
    }
  }
  if (rows.empty()) {
    return "";
  }
  Table table(2, ">lane|ranks|network port|>NUMA node|>processor|>parts|>gradient");
  constexpr std::size_t k_most_rows = 40;
  std::size_t shown = 0;
  for (const auto& [key, row] : rows) {
    if (shown++ == k_most_rows) {
      break;
    }
    const auto& [lane, port, node, cpu] = key;
    table.row({std::to_string(lane), number_ranges(row.ranks), port,
               node ? std::to_string(*node) : "not known", cpu ? std::to_string(*cpu) : "any",
               row.parts.low == row.parts.high
                   ? fmt::format("{:.0f}", row.parts.low)
                   : fmt::format("{:.0f} to {:.0f}", row.parts.low, row.parts.high),
               row.bytes.text()});
  }
  return heading("lanes", style) + table.text(style) +
         (rows.size() > k_most_rows ? fmt::format("  {} more\n", rows.size() - k_most_rows) : "");
}

std::string resources_text(const Plan& plan, const Style& style) {
  constexpr std::size_t k_most_rows = 24;
  Table table(2, "link, memory or sums|>capacity|>carries|>busy|>price|>1 GB/s\nmore saves|~from");
  constexpr double k_least_gain = 5e-5; // less prints as 0.00 %
  // Links that are alike in all that is shown are one row: the first one's name, and how many.
  std::map<std::vector<std::string>, std::size_t> alike;
  const auto fields = [&](const PlanResource& r) {
    return std::vector<std::string>{
        to_text(Bandwidth::bytes_per_s(r.bytes_per_second)),
        bytes_text(r.load_bytes),
        percent_text(r.busy),
        r.price > 0 ? fmt::format("{:.3f}", r.price) : "",
        r.gain_per_gb_s >= k_least_gain ? percent_text(r.gain_per_gb_s) : "",
        r.source == "described" || r.source == "measured pair" ? r.source : "profile"};
  };
  for (const PlanResource& r : plan.resources) {
    ++alike[fields(r)];
  }
  std::size_t shown = 0, idle = 0;
  for (const PlanResource& r : plan.resources) {
    const std::vector<std::string> text = fields(r);
    const std::size_t count = std::exchange(alike[text], 0);
    if (count == 0) {
      continue; // in the row of another
    }
    if (r.load_bytes == 0 || shown == k_most_rows) {
      idle += count;
      continue;
    }
    ++shown;
    const bool binds = r.busy > 1 - 1e-6;
    table.row({{count > 1 ? fmt::format("{}, {} such", r.name, count) : r.name,
                binds ? Tone::strong : Tone::plain},
               text[0],
               text[1],
               {text[2], binds ? Tone::warning : Tone::plain},
               text[3],
               text[4],
               text[5]});
  }
  std::string out = heading("links", style) + table.text(style);
  if (idle > 0) {
    out += fmt::format("  {} more carry less\n", idle);
  }
  if (std::ranges::count(plan.quantities, k_latency_quantity, &Quantity::name) > 0) {
    out += folded(
        fmt::format("  busy: as a part of what the busiest needs, {}, which is {} of the predicted "
                    "time; most of the rest is latency",
                    time_text(plan.prediction.busy_seconds()),
                    percent_text(plan.prediction.busy_seconds() / plan.prediction.mid_seconds)),
        style);
  }
  return out + folded("  price: the part of the least time of all trees that this link decides "
                      "(dual value); all prices add up to 1",
                      style);
}

namespace {

/// What the plan would take with its sums the other way, where that is known: "; sent would take
/// 16.75 ms (x 2.3)".
std::string other_sums(const Plan& plan, std::string_view quantity, std::string_view way) {
  const auto other = std::ranges::find(plan.quantities, quantity, &Quantity::name);
  const double seconds = plan.prediction.mid_seconds;
  return other == plan.quantities.end() || seconds <= 0
             ? ""
             : fmt::format("; {} would take {} ({})", way, time_text(other->value),
                           change_text(other->value / seconds - 1));
}

} // namespace

std::string parts_text(const Plan& plan, const Style& style) {
  std::map<std::uint64_t, std::set<std::uint64_t>> lanes; // by server
  std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
  std::uint64_t most = 0;
  for (std::size_t i = 0; i < plan.parts.size(); ++i) {
    lanes[plan.parts.server[i]].insert(plan.parts.lane[i]);
    least = std::min(least, plan.parts.bytes[i]);
    most = std::max(most, plan.parts.bytes[i]);
  }
  std::map<std::string, std::uint64_t> dtypes;
  for (const DTypeRun& run : plan.runs) {
    dtypes[std::string(name_of(run.dtype))] += run.bytes;
  }
  std::vector<std::string> kinds;
  for (const auto& [name, bytes] : dtypes) {
    kinds.push_back(fmt::format("{} {}", to_text(Bytes(bytes)), name));
  }
  const std::uint64_t times = plan.wire ? size_of(DType::fp32) / size_of(*plan.wire) : 1;
  Table table(2, "|~");
  table.row({"gradient",
             fmt::format("{} a worker: {}{}", to_text(Bytes(times * plan.gradient_bytes)),
                         fmt::join(kinds, ", "), plan.wire ? " on the way, fp32 there" : "")});
  if (plan.parts.size() > 0) {
    const std::string sizes =
        least == most ? to_text(Bytes(most))
                      : fmt::format("{} to {}", to_text(Bytes(least)), to_text(Bytes(most)));
    const std::string window =
        plan.sums_in_place ? "" : fmt::format("; window {}", plan.window_parts);
    table.row({"parts", fmt::format("{} of {}, cut at {}{}", plan.parts.size(), sizes,
                                    to_text(Bytes(plan.part_bytes)), window)});
  }
  if (plan.sums_in_place) {
    table.row({"sums", "in place: the rank that sums a part reads all gradients where they lie, "
                       "and writes the sum there" +
                           other_sums(plan, k_sums_sent_seconds, "sent")});
  } else if (const std::string other = other_sums(plan, k_sums_in_place_seconds, "in place");
             !other.empty()) {
    table.row({"sums", "sent to the rank that sums, and back" + other});
  }
  Span each;
  for (const auto& [server, its] : lanes) {
    each.add(static_cast<double>(its.size()));
  }
  const std::string lanes_each = lanes.empty() ? "none"
                                 : each.low == each.high
                                     ? counted(lanes.begin()->second.size(), "lane")
                                     : fmt::format("{:.0f} to {:.0f} lanes", each.low, each.high);
  table.row({"assignment", fmt::format("owned by {}, {} each; {} slower than the solved shares",
                                       counted(lanes.size(), "rank"), lanes_each,
                                       percent_text(plan.assignment_gap))});
  if (plan.stores == Stores::streaming) {
    table.row({"stores", "sums are written around the caches, with streaming stores"});
  }
  return heading("parts", style) + table.text(style);
}

std::string made_text(const Plan& plan, const Style& style) {
  Table made(2, "|~");
  made.row({{"profile", Tone::dim}, link_text(plan.profile)});
  made.row({{"workload", Tone::dim}, link_text(plan.workload)});
  if (plan.roles) {
    made.row({{"roles", Tone::dim}, link_text(*plan.roles)});
  }
  if (plan.collective != Collective::all_reduce) {
    made.row({{"collective", Tone::dim},
              has_root(plan.collective)
                  ? fmt::format("{} {} rank {}", name_of(plan.collective),
                                sums(plan.collective) ? "to" : "from", plan.root)
                  : std::string(name_of(plan.collective))});
  }
  std::vector<std::string> options;
  for (const auto& [name, value] : plan.options) {
    options.push_back(fmt::format("{} {}", name, option_text(name, value)));
  }
  if (!options.empty()) {
    made.row({{"options", Tone::dim}, fmt::format("{}", fmt::join(options, ", "))});
  }
  if (const std::string machines = machines_text(plan); !machines.empty()) {
    made.row({{"machines", Tone::dim}, machines});
  }
  return made.text(style);
}

std::string render(const Plan& plan, const Style& style, const ShowOptions& /*options*/) {
  std::string out = toned(printable(fmt::format("plan: {} over {}", plan.strategy, plan.transport)),
                          Tone::strong, style) +
                    "\n" + made_text(plan, style) + "\n" + prediction_text(plan, style);
  if (!plan.candidates.empty()) {
    out += candidates_text(plan, style);
  }
  if (!plan.routing.empty()) {
    out += routing_text(plan, style);
  }
  out += trees_text(plan, style);
  if (!plan.resources.empty()) {
    out += resources_text(plan, style);
  }
  out += ranks_text(plan, style) + lanes_text(plan, style) + parts_text(plan, style);
  return out + solved_text(plan, style);
}

} // namespace reckon
