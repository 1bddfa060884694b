// SPDX-License-Identifier: Apache-2.0
#include "page/figures.hpp"

#include "page/axis.hpp"
#include "page/html.hpp"
#include "present/curves.hpp"
#include "present/groups.hpp"
#include "present/key_text.hpp"
#include "present/numbers.hpp"
#include "present/style.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace reckon {
namespace {

constexpr std::size_t k_looks = 7; // colours of curves in the template

std::string hex(Rgb c) {
  return fmt::format("#{:02x}{:02x}{:02x}", c.red, c.green, c.blue);
}

/// `wide`: it stands alone where others stand side by side.
std::string figure(const std::string& caption, const std::string& content, bool wide = false) {
  return fmt::format("<figure{}>\n<figcaption>{}</figcaption>\n{}</figure>\n",
                     wide ? " class=\"wide\"" : "", caption, content);
}

/// How good each value is, 0 to 1: the part of its ceiling, or of the best one.
class Goodness {
public:
  explicit Goodness(const Matrix& m) : m_higher(m.higher_is_better) {
    for (const auto& row : m.cells) {
      for (const MatrixCell& cell : row) {
        if (cell.value) {
          const bool better = m_higher ? *cell.value > m_best : *cell.value < m_best;
          m_best = m_best == 0 || better ? *cell.value : m_best;
          m_ceilings = m_ceilings && cell.ceiling_share.has_value();
          m_names.insert(cell.ceiling);
        }
      }
    }
  }
  [[nodiscard]] double of(const MatrixCell& cell) const {
    if (m_ceilings) {
      return cell.ceiling_share.value();
    }
    const double value = cell.value.value();
    return m_higher ? (m_best > 0 ? value / m_best : 0) : (value > 0 ? m_best / value : 1);
  }
  [[nodiscard]] std::string scale_text(const Matrix& m) const {
    return m_ceilings ? "of " + (m_names.size() == 1 ? *m_names.begin() : "each one's ceiling")
           : m_higher ? fmt::format("of the best, {:.{}f} {}", m_best, m.decimals, m.unit)
                      : fmt::format("as fast as the best, {:.{}f} {}", m_best, m.decimals, m.unit);
  }

private:
  bool m_higher, m_ceilings = true;
  double m_best = 0;
  std::set<std::string> m_names; ///< of the ceilings
};

std::string value_of(const Matrix& m, const MatrixCell& cell) {
  return cell.value ? fmt::format("{}{:.{}f}", cell.noisy ? "~" : "", *cell.value, m.decimals)
                    : cell.text;
}

std::string part_text(double part) {
  return fmt::format("{:.0f} %", 100 * part);
}

constexpr double k_as_good = 0.9; ///< as the best: whatever its place, such a cell is not odd

bool is_odd(const std::set<std::string>& odd, const std::string& from, const std::string& to) {
  return odd.contains(from) || odd.contains(to) || odd.contains(from + " -> " + to);
}

std::string heat_table(const Matrix& m, const Goodness& goodness, std::size_t skipped,
                       const std::set<std::string>& odd) {
  std::string out = "<div class=\"scroll\"><table class=\"heat\">\n<tr><th></th>";
  for (const std::string& to : m.columns) {
    out += fmt::format("<th>{}</th>", escaped(to.substr(skipped)));
  }
  out += "</tr>\n";
  for (std::size_t i = 0; i < m.rows.size(); ++i) {
    out += fmt::format("<tr><th>{}</th>", escaped(m.rows[i].substr(skipped)));
    for (std::size_t j = 0; j < m.columns.size(); ++j) {
      const MatrixCell& cell = m.cells[i][j];
      if (!cell.value) {
        out += fmt::format("<td class=\"dim\">{}</td>", escaped(cell.text));
        continue;
      }
      const double good = goodness.of(cell);
      const Rgb c = heat_color(good);
      const bool light = 299 * c.red + 587 * c.green + 114 * c.blue > 130000;
      out += fmt::format(
          "<td{} style=\"background:{};color:{}\" title=\"{} -&gt; {}{}\">{}<small>{}</small></td>",
          good < k_as_good && is_odd(odd, m.rows[i], m.columns[j]) ? " class=\"odd\"" : "", hex(c),
          light ? "#000" : "#fff", escaped(m.rows[i]), escaped(m.columns[j]),
          cell.ceiling.empty() ? "" : ", ceiling: " + escaped(cell.ceiling),
          escaped(value_of(m, cell)), part_text(good));
    }
    out += "</tr>\n";
  }
  return out + "</table></div>\n";
}

/// Squares of one colour that stand beside each other in a row are one.
std::string heat_squares(const Matrix& m, const Goodness& goodness, std::size_t skipped) {
  constexpr double k_side = 10;
  constexpr double k_steps = 50; // of colours
  constexpr std::size_t k_most_names = 16;
  // The names are as large on the page whatever the number of squares.
  const double font = k_side * static_cast<double>(m.columns.size()) / 42, left = 5 * font,
               top = 1.4 * font;
  std::string out =
      fmt::format("<svg viewBox=\"0 0 {:.1f} {:.1f}\" role=\"img\" style=\"--size:{:.1f}px\" "
                  "class=\"squares\">\n",
                  left + k_side * static_cast<double>(m.columns.size()),
                  top + k_side * static_cast<double>(m.rows.size()), font);
  const auto x = [&](std::size_t j) { return left + k_side * static_cast<double>(j); };
  const auto y = [&](std::size_t i) { return top + k_side * static_cast<double>(i); };
  const auto step = [](std::size_t names) { return (names + k_most_names - 1) / k_most_names; };
  for (std::size_t j = 0; j < m.columns.size(); j += step(m.columns.size())) {
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", x(j), top - font / 3,
                       escaped(m.columns[j].substr(skipped)));
  }
  for (std::size_t i = 0; i < m.rows.size(); ++i) {
    if (i % step(m.rows.size()) == 0) {
      out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" text-anchor=\"end\">{}</text>\n",
                         left - font / 3, y(i) + font, escaped(m.rows[i].substr(skipped)));
    }
    const auto color = [&](std::size_t j) {
      const MatrixCell& cell = m.cells[i][j];
      return cell.value ? hex(heat_color(std::round(goodness.of(cell) * k_steps) / k_steps)) : "";
    };
    for (std::size_t j = 0, next = 0; j < m.columns.size(); j = next) {
      const std::string fill = color(j);
      double low = std::numeric_limits<double>::infinity(), high = 0;
      for (next = j; next < m.columns.size() && color(next) == fill; ++next) {
        low = std::min(low, m.cells[i][next].value.value_or(0));
        high = std::max(high, m.cells[i][next].value.value_or(0));
      }
      if (fill.empty()) {
        continue;
      }
      const std::string& last = m.columns[next - 1];
      out += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{}\" height=\"{}\" "
                         "fill=\"{}\"><title>{} -&gt; {}{}: "
                         "{:.{}f}{} {}</title></rect>\n",
                         x(j), y(i), k_side * static_cast<double>(next - j), k_side, fill,
                         escaped(m.rows[i]), escaped(m.columns[j]),
                         next - j > 1 ? " to " + escaped(last) : "", low, m.decimals,
                         next - j > 1 ? fmt::format(" to {:.{}f}", high, m.decimals) : "", m.unit);
    }
  }
  return out + "</svg>\n";
}

/// "250 ms" of a round number of an axis that goes up to `most`.
std::string round_time(double seconds, double most) {
  constexpr std::array<std::pair<double, std::string_view>, 4> k_units{
      {{1, "s"}, {1e-3, "ms"}, {1e-6, "us"}, {1e-9, "ns"}}};
  const auto unit = std::ranges::find_if(k_units, [&](const auto& u) { return most >= u.first; });
  const auto& [scale, name] = unit == k_units.end() ? k_units.back() : *unit;
  return seconds > 0 ? fmt::format("{:.4g} {}", seconds / scale, name) : "0";
}

struct Chart {
  Axis x{}, y{};
  double width = 0, height = 0;
  std::string body{};

  void mark_x(double value, const std::string& text) {
    body += fmt::format("<path class=\"grid\" d=\"M{0:.1f} {1:.1f}V{2:.1f}\"/><text x=\"{0:.1f}\" "
                        "y=\"{3:.1f}\" text-anchor=\"middle\" class=\"dim\">{4}</text>\n",
                        x.at(value), y.end, y.begin, y.begin + 16, escaped(text));
  }
  void mark_y(double value, const std::string& text) {
    body += fmt::format("<path class=\"grid\" d=\"M{0:.1f} {1:.1f}H{2:.1f}\"/><text x=\"{3:.1f}\" "
                        "y=\"{4:.1f}\" text-anchor=\"end\" class=\"dim\">{5}</text>\n",
                        x.begin, y.at(value), x.end, x.begin - 5, y.at(value) + 4, escaped(text));
  }
  void line(const std::vector<std::pair<double, double>>& points, std::string_view look) {
    std::string path;
    for (const auto& [px, py] : points) {
      path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x.at(px), y.at(py));
    }
    body += fmt::format("<path class=\"line {}\" d=\"{}\"/>\n", look, path);
  }
  void dot(double px, double py, double radius, std::string_view look, const std::string& title) {
    body += fmt::format("<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{}\"><title>{}"
                        "</title></circle>\n",
                        look, x.at(px), y.at(py), radius, escaped(title));
  }
  [[nodiscard]] std::string svg() const {
    return fmt::format("<svg viewBox=\"0 0 {} {}\" role=\"img\">\n{}</svg>\n", width, height, body);
  }
};

Chart empty_chart() {
  Chart chart{.width = 480, .height = 300};
  chart.x.begin = 58;
  chart.x.end = 468;
  chart.y.begin = 274;
  chart.y.end = 10;
  return chart;
}

} // namespace

std::string heat_map(const Matrix& m, const std::set<std::string>& odd) {
  constexpr std::size_t k_most_columns = 24, k_side_by_side = 7;
  std::vector<std::string> ids = m.rows;
  ids.insert(ids.end(), m.columns.begin(), m.columns.end());
  const std::string beginning = common_beginning(ids);
  const Goodness goodness(m);
  const std::string caption =
      fmt::format("<b>{}</b>, {}{}{}: row to column", escaped(m.title), escaped(m.unit),
                  m.setting.empty() ? "" : ", " + escaped(m.setting),
                  beginning.empty() ? "" : fmt::format(", {}*", escaped(beginning)));
  std::string ramp;
  for (int i = 0; i <= 8; ++i) {
    ramp += fmt::format("{}{}", i == 0 ? "" : ",", hex(heat_color(i / 8.0)));
  }
  const std::string scale = fmt::format(
      "<p class=\"dim\">0 % <span class=\"ramp\" style=\"background:linear-gradient(90deg,{})\">"
      "</span> 100 % {}</p>\n",
      ramp, escaped(goodness.scale_text(m)));
  return figure(caption,
                (m.columns.size() <= k_most_columns ? heat_table(m, goodness, beginning.size(), odd)
                                                    : heat_squares(m, goodness, beginning.size())) +
                    scale,
                m.columns.size() > k_side_by_side);
}

std::string curve_chart(const Profile& profile, const std::vector<Cells>& curves) {
  Cells all;
  for (const Cells& curve : curves) {
    all.insert(all.end(), curve.begin(), curve.end());
  }
  Chart chart = empty_chart();
  double least = std::numeric_limits<double>::infinity(), most = 0, low = least, high = 0;
  std::vector<std::vector<CurveRow>> rows;
  std::size_t slowest = 0, fastest = 0; // by the value of the largest size
  for (const Cells& curve : curves) {
    const std::vector<CurveRow>& added = rows.emplace_back(curve_rows(curve));
    for (const auto& [bytes, median, slow, fast] : added) {
      least = std::min(least, bytes);
      most = std::max(most, bytes);
      low = std::min(low, median);
      high = std::max(high, median);
    }
    const auto last = [&](std::size_t i) {
      return rows[i].empty() ? 0 : std::get<1>(rows[i].back());
    };
    const std::size_t i = rows.size() - 1;
    slowest = !added.empty() && (rows[slowest].empty() || last(i) < last(slowest)) ? i : slowest;
    fastest = last(i) > last(fastest) ? i : fastest;
  }
  if (!(0 < least && least < most) || !(low > 0)) {
    return "";
  }
  const bool time = shows_time(*all.front());
  chart.x.from = least;
  chart.x.to = most;
  chart.y.from = low / 1.3;
  chart.y.to = high * 1.3;
  chart.x.logarithmic = chart.y.logarithmic = true;
  for (const double bytes : powers_of_two(chart.x, 6)) {
    chart.mark_x(bytes, bytes_text(bytes));
  }
  for (const double value : round_numbers(chart.y, 7)) {
    chart.mark_y(value, fmt::format("{:g}", value));
  }
  const KeyFields varying = without(varying_fields(all), KeyField::bytes);
  const bool many = curves.size() > k_looks;
  bool fitted = false;
  Chart named{chart.x, chart.y};
  std::vector<std::pair<std::string, std::string>> keys;
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const bool plain = many && i != slowest && i != fastest;
    const std::size_t look = many ? (i == fastest ? 0 : 1) : i;
    const CellKey& key = curves[i].front()->key;
    std::string name = label_of(key, varying);
    std::vector<std::pair<double, double>> line;
    for (const auto& [bytes, median, slow, fast] : rows[i]) {
      line.emplace_back(bytes, median);
    }
    if (plain) { // below the others
      chart.line(line, "s6 many");
      continue;
    }
    named.line(line, fmt::format("s{}", look));
    for (const auto& [bytes, median, slow, fast] : rows[i]) {
      named.dot(bytes, median, 2.5, fmt::format("f{}", look),
                fmt::format("{} {}: {} {} (slow {}, fast {})", name, bytes_text(bytes),
                            significant(median, 4), time ? "ns" : "GB/s", significant(slow, 4),
                            significant(fast, 4)));
    }
    name = name.empty() ? key.test : name;
    if (many) {
      name += i == fastest ? ": the fastest" : ": the slowest";
    }
    if (const Fit* fit = fit_for(profile, key); fit != nullptr && !time) {
      for (const FitSegment& segment : fit->segments) {
        fitted = true;
        named.line(fit_rows(segment), fmt::format("s{} fit", look));
      }
      if (fit->knee_bytes > 0) {
        const auto knee = std::ranges::find_if(
            line, [&](const auto& point) { return point.first >= fit->knee_bytes; });
        if (knee != line.end()) {
          named.dot(knee->first, knee->second, 7, fmt::format("line s{}", look),
                    "knee of " + name + ": " + bytes_text(fit->knee_bytes));
          name += ", knee " + bytes_text(fit->knee_bytes);
        }
      }
    }
    keys.emplace_back(fmt::format("k{}", look), name);
  }
  if (many) {
    keys.emplace_back("k6", fmt::format("{} others", curves.size() - keys.size()));
  }
  const std::string rest = label_of(all.front()->key, without(common_fields(all), KeyField::bytes));
  chart.body += named.body;
  return figure(fmt::format("<b>{}</b>, {} over size{}{}{}", escaped(all.front()->key.test),
                            time ? "ns" : "GB/s", rest.empty() ? "" : ": " + escaped(rest),
                            escaped(convention_text(all)), fitted ? "; dotted: the fit" : ""),
                chart.svg() + legend(keys));
}

std::string iterations_chart(const Report& report) {
  const std::vector<double>& seconds = report.iteration_seconds;
  const Prediction& p = report.prediction;
  if (seconds.size() < 2 || report.min_seconds <= 0) {
    return "";
  }
  Chart chart = empty_chart();
  const double most = std::max(std::ranges::max(seconds), p.hi_seconds);
  // Where one iteration took many times as long as the others, these would be one line at 0.
  chart.y.logarithmic = most > 4 * report.p50_seconds && p.bound_seconds > 0;
  chart.y.from = chart.y.logarithmic ? 0.8 * std::min(p.bound_seconds, report.min_seconds) : 0;
  chart.y.to = 1.08 * most;
  chart.x.from = 1;
  chart.x.to = static_cast<double>(seconds.size());
  for (const double value : round_numbers(chart.y, 6)) {
    chart.mark_y(value, round_time(value, chart.y.to));
  }
  for (const double n : round_numbers(chart.x, 6)) {
    if (n == std::floor(n)) {
      chart.mark_x(n, fmt::format("{:.0f}", n));
    }
  }
  if (report.other_links.empty()) {
    chart.body += fmt::format(
        "<rect class=\"range\" x=\"{}\" width=\"{}\" y=\"{:.1f}\" height=\"{:.1f}\"/>\n",
        chart.x.begin, chart.x.end - chart.x.begin, chart.y.at(p.hi_seconds),
        std::max(1.5, chart.y.at(p.lo_seconds) - chart.y.at(p.hi_seconds)));
    chart.line({{chart.x.from, p.bound_seconds}, {chart.x.to, p.bound_seconds}}, "s1 bound");
  }
  chart.line({{chart.x.from, report.p50_seconds}, {chart.x.to, report.p50_seconds}}, "s0");
  for (std::size_t i = 0; i < seconds.size(); ++i) {
    chart.dot(static_cast<double>(i + 1), seconds[i], 2.5, "f0",
              fmt::format("iteration {}: {}", i + 1, time_text(seconds[i])));
  }
  std::vector<std::pair<std::string, std::string>> keys{
      {"k0", "each iteration, and the median " + time_text(report.p50_seconds)}};
  if (report.other_links.empty()) {
    keys.emplace_back("ku", "predicted " + range_text(p.lo_seconds, p.hi_seconds));
    keys.emplace_back("k1", "bound " + time_text(p.bound_seconds));
  }
  return figure("<b>iterations</b>, one after another", chart.svg() + legend(keys));
}

std::string legend(const std::vector<std::pair<std::string, std::string>>& keys) {
  std::string out = "<ul class=\"legend\">\n";
  for (const auto& [look, text] : keys) {
    out += fmt::format("<li><span class=\"key {}\"></span>{}</li>\n", look, escaped(text));
  }
  return out + "</ul>\n";
}

std::string bar_table(const std::vector<std::string>& heads, const std::vector<BarRow>& rows) {
  if (rows.empty()) {
    return "";
  }
  const std::size_t numbers = rows.front().numbers.size();
  const bool remarks = heads.size() > 1 + numbers;
  std::string out = fmt::format("<tr><th>{}</th><th class=\"bars\"></th>", escaped(heads.at(0)));
  for (std::size_t i = 1; i < heads.size(); ++i) {
    out += fmt::format("<th class=\"{}\">{}</th>", i > numbers ? "sentence" : "number",
                       escaped(heads[i]));
  }
  out += "</tr>\n";
  for (const BarRow& row : rows) {
    out += fmt::format("<tr><td>{}</td><td class=\"bars\">",
                       row.strong ? "<b>" + escaped(row.name) + "</b>" : escaped(row.name));
    for (const auto& [part, look] : row.bars) {
      out += fmt::format("<span class=\"bar{}{}\" style=\"width:{:.1f}%\"></span>",
                         look.empty() ? "" : " ", look, 100 * std::clamp(part, 0.0, 1.0));
    }
    out += "</td>";
    for (const std::string& number : row.numbers) {
      out += fmt::format("<td class=\"number\">{}</td>", escaped(number));
    }
    out += (remarks ? "<td class=\"sentence\">" + row.remark + "</td>" : "") + "</tr>\n";
  }
  return fmt::format("<div class=\"scroll\"><table class=\"chart\" style=\"--columns:{}\">\n{}"
                     "</table></div>\n",
                     heads.size(), out);
}

std::string timeline_chart(const Schedule& schedule, std::span<const NamedTimeline> timelines) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 4> k_kinds{
      {{"f0", "writes on their way"},
       {"f1", "sums"},
       {"f2", "steps, copies, conversions"},
       {"f4", "the model's passes"}}};
  const auto kind_of_op = [](OpKind kind) -> std::size_t {
    return kind == OpKind::write                                    ? 0
           : kind == OpKind::reduce || kind == OpKind::sum_in_place ? 1
           : kind == OpKind::delay                                  ? 3
                                                                    : 2;
  };
  constexpr std::size_t k_most_lanes = 24;
  constexpr double k_row = 20, k_least_gap = 1.0 / 900;
  Chart chart{.width = 960, .height = 0};
  chart.x = {0, 0, 110, 950};
  std::vector<std::int64_t> starts;
  for (const NamedTimeline& timeline : timelines) {
    std::int64_t first = std::numeric_limits<std::int64_t>::max(), last = 0;
    for (const RankTimeline& rank : timeline.ops) {
      for (const std::vector<OpSpan>& lane : rank) {
        for (const OpSpan& span : lane) {
          first = std::min(first, span.begin_ns);
          last = std::max(last, span.end_ns);
        }
      }
    }
    starts.push_back(first);
    chart.x.to = std::max(chart.x.to, static_cast<double>(last - first) * 1e-9);
  }
  if (chart.x.to <= 0) {
    return "";
  }
  std::array<bool, k_kinds.size()> used{};
  std::size_t left_out = 0;
  std::string rows;
  double y = 4;
  for (std::size_t t = 0; t < timelines.size(); ++t) {
    y += 18;
    rows += fmt::format("<text x=\"0\" y=\"{}\"><tspan font-weight=\"bold\">{}</tspan></text>\n",
                        y - 4, escaped(timelines[t].name));
    std::size_t shown = 0;
    for (std::size_t r = 0; r < schedule.ranks.size(); ++r) {
      for (std::size_t l = 0; l < schedule.ranks[r].lanes.size(); ++l) {
        if (shown++ >= k_most_lanes) {
          left_out += t == 0 ? 1 : 0;
          continue;
        }
        rows += fmt::format("<text x=\"0\" y=\"{}\">rank {} lane {}</text>\n", y + 12, r, l);
        // By kind: what begins before the last one has ended for long goes on with it.
        std::array<std::vector<std::pair<double, double>>, k_kinds.size()> stretches;
        const std::span<const Op> ops = schedule.ranks[r].lanes[l].ops();
        std::vector<std::pair<OpSpan, std::size_t>> spans;
        for (std::size_t i = 0; i < ops.size(); ++i) {
          if (ops[i].kind != OpKind::await &&
              ops[i].bytes + static_cast<std::uint64_t>(ops[i].duration_ns) > 0) {
            spans.emplace_back(timelines[t].ops[r][l][i], kind_of_op(ops[i].kind));
          }
        }
        std::ranges::sort(spans, {}, [](const auto& s) { return s.first.begin_ns; });
        for (const auto& [span, kind] : spans) {
          auto& stretch = stretches[kind];
          const double begin = static_cast<double>(span.begin_ns - starts[t]) * 1e-9;
          const double end = static_cast<double>(span.end_ns - starts[t]) * 1e-9;
          if (!stretch.empty() && begin - stretch.back().second < k_least_gap * chart.x.to) {
            stretch.back().second = std::max(stretch.back().second, end);
          } else {
            stretch.emplace_back(begin, end);
          }
        }
        for (std::size_t kind = 0; kind < stretches.size(); ++kind) {
          for (const auto& [begin, end] : stretches[kind]) {
            used[kind] = true;
            const double from = chart.x.at(begin);
            rows += fmt::format("<rect class=\"{}\" x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" "
                                "height=\"{}\"/>\n",
                                k_kinds[kind].first, from, kind == 0 ? y + 11 : y + 2,
                                std::max(0.7, chart.x.at(end) - from), kind == 0 ? 5 : 8);
          }
        }
        y += k_row;
      }
    }
  }
  chart.height = y + 20;
  chart.y = {0, 1, y, 4};
  for (const double seconds : round_numbers(chart.x, 8)) {
    chart.mark_x(seconds, round_time(seconds, chart.x.to));
  }
  chart.body += rows;
  std::vector<std::pair<std::string, std::string>> keys;
  for (std::size_t kind = 0; kind < k_kinds.size(); ++kind) {
    if (used[kind]) {
      keys.emplace_back(fmt::format("k{}", k_kinds[kind].first.substr(1)),
                        std::string(k_kinds[kind].second));
    }
  }
  return figure("what each lane does, from the first operation on",
                "<div class=\"scroll lanes\">" + chart.svg() + "</div>\n" + legend(keys)) +
         (left_out > 0 ? fmt::format("<p class=\"dim\">{} more lanes are not shown; `reckon export "
                                     "--format trace` has all</p>\n",
                                     left_out)
                       : "");
}

} // namespace reckon
