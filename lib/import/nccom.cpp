// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "core/json.hpp"
#include "import/collectives.hpp"
#include "import/log_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace reckon::import_detail {
namespace {

/// What the tool calls a collective on its command line.
constexpr std::array<std::pair<std::string_view, std::string_view>, 9> k_operations{
    {{"allr", "all_reduce"},
     {"all_reduce", "all_reduce"},
     {"allg", "all_gather"},
     {"all_gather", "all_gather"},
     {"redsct", "reduce_scatter"},
     {"reduce_scatter", "reduce_scatter"},
     {"alltoall", "alltoall"},
     {"all_to_all", "alltoall"},
     {"sendrecv", "sendrecv"}}};

/// A row of the table or of the JSON.
struct Row {
  std::uint64_t bytes = 0;
  std::string type, algorithm;
  double time_us = 0, algbw = 0, busbw = 0;
};

constexpr std::string_view k_size = "size(B)"; ///< begins the table

class NccomReader : public LogReader {
public:
  NccomReader(const TextLines& lines, const ImportOptions& options)
      : LogReader(lines, options, "nccom-test"), m_collective(asked_collective(options)),
        m_ranks(options.ranks) {}

  /// What --report-to-json-file wrote.
  Profile read_json() {
    const Json json = parse_json(m_lines.text(), m_lines.file());
    for (const JsonView& view : JsonView(json, m_lines.file()).at("results").elements()) {
      const auto average = view.find("time:avg(us)");
      const auto time = average ? average : view.find("time(us)");
      if (!time) {
        view.fail("has no time:avg(us); measure with the average among the --stats");
      }
      add(Line(m_lines, 0), {.bytes = view.at("size(B)").count(),
                             .type = view.at("type").name(),
                             .algorithm = view.find("algorithm") ? view.at("algorithm").name() : "",
                             .time_us = time->positive(),
                             .algbw = view.at("algbw(GB/s)").non_negative(),
                             .busbw = view.at("busbw(GB/s)").non_negative()});
    }
    return finish();
  }

private:
  void line(const Line& line) override {
    command(line);
    if (line[0] == k_size) {
      begin_table(line);
    } else if (line[0] == "Avg") {
      goes_on();
      m_columns.clear();
    } else if (!m_columns.empty() && is_digits(line[0])) {
      row(line);
    }
  }

  void end() override {
    if (!m_columns.empty() && !ends_in_row()) {
      cut_off(m_lines.size(), "the run ended here, without \"Avg bus bandwidth\"");
    }
  }

  /// "nccom-test -r 2 allr", where the log has it.
  void command(const Line& line) {
    if (line.program("nccom-test").empty()) {
      return;
    }
    const auto value = [&](std::string_view option, std::string_view name) {
      return index_of(line.after(line.has(option) ? option : name));
    };
    const auto ranks = value("-r", "--nworkers");
    m_ranks = m_options.ranks;
    if (!m_ranks && ranks) {
      m_ranks = static_cast<std::uint64_t>(*ranks);
    }
    m_nodes = value("-N", "--nnodes").value_or(1);
    m_collective = asked_collective(m_options);
    for (const auto& [word, name] : k_operations) {
      m_collective =
          m_collective == nullptr && line.has(word) ? collective_named(name) : m_collective;
    }
  }

  [[nodiscard]] bool has(std::string_view column) const {
    return std::ranges::find(m_columns, column) != m_columns.end();
  }

  void begin_table(const Line& line) {
    m_columns.assign(line.words.begin(), line.words.end());
    if ((!has("time(us)") && !has("time:avg(us)")) || !has("type") || !has("algbw(GB/s)") ||
        !has("busbw(GB/s)")) {
      line.fail_as_cut("the table's columns must be size(B), count(elems), type, time:avg(us) or "
                       "time(us), algbw(GB/s), busbw(GB/s)");
    }
    if (contains(line.text, " time:p")) {
      m_out.left_out("percentiles");
    }
  }

  void row(const Line& line) {
    const auto word = [&](std::string_view name) {
      return line[static_cast<std::size_t>(std::ranges::find(m_columns, name) - m_columns.begin())];
    };
    if (line[1] == "Failure") {
      goes_on();
      cut_off(line.at, "the test failed here: " + quoted(line.text));
      return;
    }
    if (!is_whole(line, m_columns.size(), has_decimals(word("busbw(GB/s)"), 2))) {
      return;
    }
    add(line,
        {.bytes = line.count(line[0], "size(B)"),
         .type = std::string(word("type")),
         .algorithm = std::string(word("algorithm")),
         .time_us = line.positive(word(has("time:avg(us)") ? "time:avg(us)" : "time(us)"), "time"),
         .algbw = line.number(word("algbw(GB/s)"), "algbw(GB/s)"),
         .busbw = line.number(word("busbw(GB/s)"), "busbw(GB/s)")});
  }

  void add(const Line& line, const Row& row) {
    if (m_collective == nullptr) {
      line.fail(fmt::format("nothing says which collective this is; add --collective NAME, one of "
                            "{}",
                            collective_names()));
    }
    if (!m_ranks) {
      line.fail("nothing says how many ranks took part; add --ranks");
    }
    // Older versions print rates in GiB/s, newer ones in GB/s, and both call it GB/s; some print
    // times without decimals.
    constexpr double k_gib = 1.073741824;
    const double expected = static_cast<double>(row.bytes) / row.time_us * 1e-3;
    const double rounding = 0.006 + expected * (0.5 / std::max(1.0, row.time_us) + 0.002);
    const bool gib = std::abs(row.algbw - expected / k_gib) <= rounding;
    check_rate(line.place(), "algbw", row.algbw, gib ? row.algbw : expected, rounding);
    check_bus_rate(line.place(), *m_collective, static_cast<double>(*m_ranks), row.algbw,
                   row.busbw);
    const bool one = machine_ids(m_options).size() == 1 && m_nodes < 2;
    CellKey key{.test = fmt::format("nccom_{}", m_collective->name),
                .from = one ? m_out.machine() : "",
                .bytes = row.bytes,
                .sources = static_cast<int>(*m_ranks),
                .transport = "nccom"};
    name_type(key, row.type, line.place());
    m_out.add(key, k_time, row.time_us * 1e-6,
              row.algorithm.empty() ? "" : "algorithm " + one_line(row.algorithm));
  }

  const Collective* m_collective; ///< by --collective or the command in the log; null: not said
  std::optional<std::uint64_t> m_ranks;
  int m_nodes = 1;
  std::vector<std::string> m_columns; ///< of the table; empty: there is none
};

} // namespace

Profile read_nccom(const TextLines& lines, const ImportOptions& options) {
  NccomReader reader(lines, options);
  bool table = false; // a page with tables may show the JSON, too
  for (std::size_t at = 0; at < lines.size(); ++at) {
    table = table || lines[at].starts_with(k_size);
  }
  return !table && contains(lines.raw(), "\"busbw(GB/s)\"") ? reader.read_json() : reader.read();
}

} // namespace reckon::import_detail
