// SPDX-License-Identifier: Apache-2.0
#include "present/plot.hpp"

#include "core/error.hpp"
#include "core/units.hpp"
#include "documents/contention.hpp"
#include "present/contention_text.hpp"
#include "present/curves.hpp"
#include "present/gnuplot.hpp"
#include "present/groups.hpp"
#include "present/key_text.hpp"
#include "present/numbers.hpp"
#include "present/style.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gnuplot-iostream.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>
#include <utility>
#include <vector>

namespace reckon {
namespace {

using gnuplotio::Gnuplot;

/// Okabe and Ito's colours, which eyes with any colour deficiency tell apart; the faint yellow is
/// left out.
constexpr std::array<const char*, 7> k_colors{"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                              "#e69f00", "#56b4e9", "#000000"};
constexpr std::array<int, 7> k_marks{7, 5, 9, 11, 13, 4, 6};
constexpr std::size_t k_most_curves = 12;

void set_look(Gnuplot& out) {
  out << "set border 3 lc rgb '#444444'\nset tics nomirror out scale 0.6\n"
         "set grid back lc rgb '#dddddd' lt 1 lw 0.6\n"
         "set key outside below left Left reverse samplen 2.5 spacing 1.15 width 1\n"
         "set lmargin 11\nset rmargin 4\n";
}

/// `subtitle` takes as many lines above the picture as it needs.
void set_title(Gnuplot& out, const std::string& title, const std::string& subtitle) {
  constexpr std::size_t k_line_columns = 115; // that fit over the picture
  constexpr double k_line_height = 1.1;
  const std::vector<std::string> lines =
      subtitle.empty() ? std::vector<std::string>() : wrapped(printable(subtitle), k_line_columns);
  const double height = k_line_height * static_cast<double>(lines.size());
  out << "set title " << quoted_for_gnuplot(title) << " font 'DejaVu Sans Bold,15' offset 0,"
      << 0.3 + height << "\nset tmargin " << 3.9 + height << "\n";
  for (std::size_t i = 0; i < lines.size(); ++i) {
    out << fmt::format("set label {} ", 9001 + i) << quoted_for_gnuplot(lines[i])
        << fmt::format(" at graph 0.5, graph 1 center offset 0,{} textcolor rgb '#555555'\n",
                       height - k_line_height * static_cast<double>(i));
  }
}

/// Marks of a size axis: powers of 2, or of 4, as "4 KiB".
void set_size_axis(Gnuplot& out, double least, double most) {
  const double octaves = std::log2(most / least);
  const int step = octaves > 14 ? 2 : 1;
  std::vector<std::string> marks;
  // Even powers of two: 1 KiB, 4 KiB, ... 1 MiB are among them.
  int begin = static_cast<int>(std::ceil(std::log2(least) - 1e-9));
  begin += step == 2 ? begin % 2 : 0;
  const int end = static_cast<int>(std::floor(std::log2(most) + 1e-9));
  for (int p = begin; p <= end; p += step) {
    const double bytes = std::exp2(p);
    marks.push_back(fmt::format("{} {}", tic_for_gnuplot(bytes_text(bytes)), bytes));
  }
  out << fmt::format("set logscale x 2\nset xtics ({}) rotate by -40 font ',11'\n"
                     "set xrange [{}:{}]\n",
                     fmt::join(marks, ", "), least / 1.3, most * 1.3);
}

/// The case with the most points in curves.
std::string case_with_curves(const Profile& profile) {
  std::string best;
  std::size_t most = 0;
  for (const std::string& test : cases_of(profile)) {
    std::size_t points = 0;
    for (const Cells& curve : groups_of(cells_of(profile, test)).curves) {
      points += curve.size();
    }
    if (points > most && !is_contention(cells_of(profile, test).front()->key)) {
      most = points;
      best = test;
    }
  }
  return best;
}

std::string case_with_matrix(const Profile& profile) {
  if (const std::string pairs = case_between_machines(profile); !pairs.empty()) {
    return pairs;
  }
  for (const std::string& test : cases_of(profile)) {
    if (!groups_of(cells_of(profile, test)).matrices.empty()) {
      return test;
    }
  }
  return "";
}

std::string profile_title(const Profile& profile) {
  return fmt::format("{}, {}", profile.name, profile.source);
}

void send_panel(Gnuplot& out, const Matrix& m) {
  // x, y, value; without a value nothing is drawn and the grey ground shows.
  std::vector<std::tuple<double, double, double>> dark;
  std::vector<std::tuple<double, double, double>> light;
  const ColorScale scale = color_scale_of(m);
  for (std::size_t i = 0; i < m.rows.size(); ++i) {
    for (std::size_t j = 0; j < m.columns.size(); ++j) {
      const auto& value = m.cells[i][j].value;
      if (!value) {
        continue;
      }
      const Rgb color = heat_color(scale.goodness(*value));
      const bool is_light = 299 * color.red + 587 * color.green + 114 * color.blue > 130000;
      (is_light ? light : dark)
          .emplace_back(static_cast<double>(j), static_cast<double>(i), *value);
    }
  }
  std::vector<std::tuple<double, double, double>> all = dark;
  all.insert(all.end(), light.begin(), light.end());
  std::vector<std::string> ids = m.rows;
  ids.insert(ids.end(), m.columns.begin(), m.columns.end());
  const std::string beginning = common_beginning(ids);
  const auto tics = [&](const char* axis, const std::vector<std::string>& names, bool rotates) {
    out << "set " << axis << " (";
    // More than 16 names do not fit beside each other, nor do long ones.
    const std::size_t step = (names.size() + 15) / 16;
    bool any_long = false;
    for (std::size_t i = 0; i < names.size(); i += step) {
      const std::string clean = printable(names[i].substr(beginning.size()));
      any_long = any_long || columns_of(clean) > 5;
      out << (i == 0 ? "" : ", ") << tic_for_gnuplot(first_columns(clean, 24)) << " " << i;
    }
    out << ") scale 0" << (any_long && rotates ? " rotate by -40" : "") << "\n";
  };
  tics("xtics", m.columns, true);
  tics("ytics", m.rows, false);
  out << "set xlabel "
      << quoted_for_gnuplot(beginning.empty() ? "destination" : "destination, " + beginning + "*")
      << "\nset ylabel "
      << quoted_for_gnuplot(beginning.empty() ? "source" : "source, " + beginning + "*") << "\n";
  const auto last = [](const std::vector<std::string>& names) {
    return static_cast<double>(names.size()) - 0.5;
  };
  out << fmt::format("set xrange [-0.5:{}]\nset yrange [{}:-0.5]\n", last(m.columns), last(m.rows))
      << fmt::format("set cbrange [{}:{}]\n", std::min(scale.worst, scale.best),
                     std::max(scale.worst, scale.best))
      << "set cblabel " << quoted_for_gnuplot(m.unit) << "\nset palette defined (";
  for (int i = 0; i <= 16; ++i) {
    const Rgb c = heat_color(m.higher_is_better ? i / 16.0 : 1 - i / 16.0);
    out << (i == 0 ? "" : ", ") << i
        << fmt::format(" '#{:02x}{:02x}{:02x}'", c.red, c.green, c.blue);
  }
  out << ")\n";
  const bool numbers = m.columns.size() <= 16 && m.rows.size() <= 24;
  // The squares as boxes, not as an image: cells may be missing, and a viewer must not blur them.
  // White lines between the squares, unless they would be most of the picture.
  const bool lines = m.columns.size() <= 24 && m.rows.size() <= 24;
  out << "plot '-' using 1:2:(0.5):(0.5):3 with boxxyerror fs solid 1 "
      << (lines ? "border lc rgb 'white'" : "noborder") << " lc palette notitle";
  const std::string label = fmt::format("using 1:2:(sprintf('%.{}f',$3)) with labels font ',{}'",
                                        m.decimals, m.columns.size() > 10 ? 9 : 12);
  const std::array inks{std::pair(&dark, "white"), std::pair(&light, "black")};
  for (const auto& [cells, ink] : inks) {
    if (numbers && !cells->empty()) {
      out << ", '-' " << label << " textcolor rgb '" << ink << "' notitle";
    }
  }
  out << "\n";
  out.send1d(all);
  for (const auto& [cells, ink] : inks) {
    if (numbers && !cells->empty()) {
      out.send1d(*cells);
    }
  }
}

/// A panel for each communication and number of threads, a curve of slowdown over size for each
/// computation.
void plot_contention(const Profile& profile, const std::string& test, const std::string& path) {
  using Curve = std::vector<std::pair<double, double>>;
  std::map<std::string, std::map<std::string, Curve>> panels;
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  double low = 1;
  double high = 1;
  for (const Contention& c : contention_of(profile, test)) {
    const CellKey& key = c.together->key;
    const auto bytes = static_cast<double>(key.bytes);
    panels[key.threads == 0 ? traffic_text(key)
                            : fmt::format("{}, {} thread{}", traffic_text(key), key.threads,
                                          key.threads == 1 ? "" : "s")][key.operation]
        .emplace_back(bytes, c.factor);
    least = std::min(least, bytes);
    most = std::max(most, bytes);
    low = std::min(low, c.factor);
    high = std::max(high, c.factor);
  }
  if (panels.empty()) {
    fail(ErrorKind::usage,
         fmt::format("the case '{}' has nothing that was measured together and alone", test));
  }
  constexpr std::size_t k_most_panels = 6;
  const std::size_t count = std::min(panels.size(), k_most_panels);
  const std::size_t across = count == 1 ? 1 : 2;
  const std::size_t down = (count + across - 1) / across;
  GnuplotProcess gnuplot(path, static_cast<int>(across) * 640, static_cast<int>(down) * 480);
  Gnuplot& out = gnuplot.out();
  set_look(out);
  out << "set multiplot layout " << down << "," << across << "\n";
  std::size_t shown = 0;
  for (const auto& [title, curves] : panels) {
    if (shown++ == k_most_panels) {
      break;
    }
    set_title(out, title, fmt::format("{}, {}", test, profile.name));
    set_size_axis(out, least, most);
    out << "set ylabel 'times as long as alone'\n"
        << fmt::format("set yrange [{}:{}]\nplot ", std::min(0.9, low), 1.1 * high);
    std::size_t look = 0;
    for (const auto& [operation, curve] : curves) {
      out << (look == 0 ? "" : ", ")
          << fmt::format("'-' using 1:2 with linespoints lc rgb '{}' lw 1.6 pt {} title {}",
                         k_colors[look % k_colors.size()], k_marks[look % k_marks.size()],
                         quoted_for_gnuplot(operation));
      ++look;
    }
    out << "\n";
    for (const auto& [operation, curve] : curves) {
      out.send1d(curve);
    }
  }
  out << "unset multiplot\n";
  gnuplot.finish();
}

} // namespace

void plot_curves(const Profile& profile, const std::string& test, const std::string& path) {
  const std::string name = test.empty() ? case_with_curves(profile) : test;
  if (!name.empty() && is_contention(cells_of(profile, name).front()->key)) {
    plot_contention(profile, name, path);
    return;
  }
  std::vector<Cells> curves;
  if (!name.empty()) {
    curves = groups_of(cells_of(profile, name)).curves;
  }
  if (curves.empty()) {
    fail(ErrorKind::usage,
         name.empty() ? "this profile has no case with three sizes or more, which a curve needs, "
                        "nor one between "
                        "several pairs, which a matrix needs: `--case NAME` shows one as a table"
                      : fmt::format("the case '{}' has no curve of three sizes or more", name));
  }
  Cells all;
  for (const Cells& curve : curves) {
    all.insert(all.end(), curve.begin(), curve.end());
  }
  if (curves.size() > k_most_curves) {
    fail(ErrorKind::usage, fmt::format("the case '{}' has {} curves, more than the {} that can be "
                                       "told apart in one picture; use --csv",
                                       name, curves.size(), k_most_curves));
  }
  double least = std::numeric_limits<double>::infinity();
  double most = 0;
  double slowest = std::numeric_limits<double>::infinity();
  double fastest = 0;
  for (const Cell* cell : all) {
    if (const auto value = plotted(*cell); value && cell->key.bytes > 0) {
      slowest = std::min(slowest, *value);
      fastest = std::max(fastest, *value);
      least = std::min(least, static_cast<double>(cell->key.bytes));
      most = std::max(most, static_cast<double>(cell->key.bytes));
    }
  }
  GnuplotProcess gnuplot(path, 1100, 720);
  Gnuplot& out = gnuplot.out();
  set_look(out);
  const KeyFields fixed = without(common_fields(all), KeyField::bytes);
  const std::string rest = label_of(all.front()->key, fixed);
  set_title(out, name + (rest.empty() ? "" : ": " + rest), profile_title(profile));
  set_size_axis(out, least, most);
  const std::string unit =
      shows_time(*all.front()) ? "ns" : "GB/s (10^9 bytes per second" + convention_text(all) + ")";
  out << "set logscale y 10\nset ylabel " << quoted_for_gnuplot(unit) << "\nset format y '%g'\n"
      << fmt::format("set yrange [{}:{}]\n", slowest / 1.6, fastest * 1.6);
  const KeyFields varying = without(varying_fields(all), KeyField::bytes);
  std::string command = "plot ";
  for (std::size_t i = 0; i < curves.size(); ++i) {
    const std::string label = label_of(curves[i].front()->key, varying);
    const std::size_t look = i % k_colors.size();
    command += fmt::format("{}'-' using 1:3:4 with filledcurves fc rgb '{}' fs transparent solid "
                           "0.15 noborder notitle",
                           i == 0 ? "" : ", ", k_colors[look]);
    command += fmt::format(
        ", '-' using 1:2 with linespoints lc rgb '{}' lw 1.6 pt {} ps 0.6 dt {} title {}",
        k_colors[look], k_marks[look], i < k_colors.size() ? 1 : 2,
        quoted_for_gnuplot(label.empty() ? name : label));
  }
  bool any_fit = false;
  for (const Cells& curve : curves) {
    const Fit* fit = fit_for(profile, curve.front()->key);
    for (std::size_t s = 0; fit != nullptr && s < fit->segments.size(); ++s) {
      command += fmt::format(", '-' using 1:2 with lines lc rgb '#222222' lw 0.8 dt 3 {}",
                             any_fit ? "notitle" : "title 'fit: alpha + bytes / rate'");
      any_fit = true;
    }
  }
  out << command << "\n";
  for (const Cells& curve : curves) {
    const auto rows = curve_rows(curve);
    out.send1d(rows);
    out.send1d(rows);
  }
  for (const Cells& curve : curves) {
    const Fit* fit = fit_for(profile, curve.front()->key);
    for (std::size_t s = 0; fit != nullptr && s < fit->segments.size(); ++s) {
      out.send1d(fit_rows(fit->segments[s]));
    }
  }
  gnuplot.finish();
}

void plot_matrix(const Profile& profile, const std::string& test, const std::string& path) {
  const std::string name = test.empty() ? case_with_matrix(profile) : test;
  std::vector<Cells> matrices;
  if (!name.empty()) {
    matrices = groups_of(cells_of(profile, name)).matrices;
  }
  if (matrices.empty()) {
    fail(ErrorKind::usage,
         name.empty()
             ? "this profile has no case between pairs of endpoints: there is no matrix to draw"
             : fmt::format("the case '{}' is no matrix between endpoints", name));
  }
  constexpr std::size_t k_most_panels = 6;
  if (matrices.size() > k_most_panels) {
    matrices.resize(k_most_panels);
  }
  const std::size_t across = std::min<std::size_t>(matrices.size(), matrices.size() == 4 ? 2 : 3);
  const std::size_t down = (matrices.size() + across - 1) / across;
  const int side = across == 1 ? 720 : 520;
  GnuplotProcess gnuplot(path, static_cast<int>(across) * side + 80, static_cast<int>(down) * side);
  Gnuplot& out = gnuplot.out();
  out << "set border 15 lc rgb '#444444'\nset object 1 rectangle from graph 0,0 to graph 1,1 "
         "behind fc rgb '#eeeeee' "
         "fs solid noborder\nset multiplot layout "
      << down << "," << across << "\n";
  for (const Cells& cells : matrices) {
    const Matrix m = matrix_of(cells);
    set_title(out, m.title, m.setting.empty() ? profile_title(profile) : m.setting);
    send_panel(out, m);
  }
  out << "unset multiplot\n";
  gnuplot.finish();
}

void plot_report(const Report& report, const std::string& path) {
  struct Bar {
    std::string name;
    double predicted;
    std::optional<double> measured;
  };
  std::vector<Bar> bars;
  for (const StageReport& s : report.stages) {
    if (s.name != "total") {
      bars.push_back({s.name, s.predicted_seconds, s.measured_seconds});
    }
  }
  bars.push_back({"total", report.prediction.mid_seconds, report.p50_seconds});
  GnuplotProcess gnuplot(path, 1000, 680);
  Gnuplot& out = gnuplot.out();
  set_look(out);
  set_title(out,
            fmt::format("{} over {}: {} against the prediction", report.strategy, report.transport,
                        change_text(report.error)),
            fmt::format("{}{}; bound: {}", report.diagnosis ? report.diagnosis->verdict + "; " : "",
                        report.cause, report.prediction.bound_by));
  const double most =
      std::max({report.prediction.hi_seconds, report.p99_seconds, report.p50_seconds});
  const bool ms = most < 1;
  const double scale = ms ? 1e3 : 1;
  const auto last = static_cast<double>(bars.size()) - 1;
  out << "set ylabel "
      << quoted_for_gnuplot(ms ? "time of one iteration (ms)" : "time of one iteration (s)")
      << "\nset xtics (";
  for (std::size_t i = 0; i < bars.size(); ++i) {
    out << (i == 0 ? "" : ", ") << tic_for_gnuplot(bars[i].name) << " " << i;
  }
  out << ") scale 0\nset boxwidth 0.36\nset style fill solid 0.9 noborder\nset grid noxtics\n"
      << fmt::format("set xrange [-0.6:{}]\nset yrange [0:{}]\n", last + 0.6, most * scale * 1.15);
  using Row = std::tuple<double, double>;
  std::vector<Row> predicted;
  std::vector<Row> measured;
  for (std::size_t i = 0; i < bars.size(); ++i) {
    const auto x = static_cast<double>(i);
    predicted.emplace_back(x - 0.19, bars[i].predicted * scale);
    if (!bars[i].measured) {
      continue;
    }
    measured.emplace_back(x + 0.19, *bars[i].measured * scale);
    if (bars[i].predicted > 0) {
      out << "set label "
          << quoted_for_gnuplot(change_text(*bars[i].measured / bars[i].predicted - 1))
          << fmt::format(" at {},{} center offset 0,1.4 front\n", x + 0.19,
                         *bars[i].measured * scale);
    }
  }
  const std::vector<std::tuple<double, double, double, double>> ranges{
      {last - 0.19, report.prediction.mid_seconds * scale, report.prediction.lo_seconds * scale,
       report.prediction.hi_seconds * scale},
      {last + 0.19, report.p50_seconds * scale, report.min_seconds * scale,
       report.p99_seconds * scale}};
  const std::vector<Row> bound{{last - 0.5, report.prediction.bound_seconds * scale},
                               {last + 0.5, report.prediction.bound_seconds * scale}};
  out << "plot '-' using 1:2 with boxes lc rgb '" << k_colors[5] << "' title 'predicted', "
      << "'-' using 1:2 with boxes lc rgb '" << k_colors[0] << "' title '"
      << (report.simulation ? "simulated" : "measured") << "', "
      << "'-' using 1:2:3:4 with yerrorbars lc rgb '#222222' pt 7 ps 0.3 lw 1.3 title 'low to "
         "high, "
         "fastest to p99', "
      << "'-' using 1:2 with lines lc rgb '" << k_colors[1] << "' lw 2 dt 2 title 'bound'\n";
  out.send1d(predicted);
  out.send1d(measured);
  out.send1d(ranges);
  out.send1d(bound);
  gnuplot.finish();
}

} // namespace reckon
