// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "core/json.hpp"
#include "import/collective_names.hpp"
#include "import/collector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

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

class NccomReader {
public:
  NccomReader(const TextLines& lines, const ImportOptions& options)
      : m_lines(lines), m_several(machine_ids(options).size() > 1), m_out(lines.file(), options),
        m_asked(asked_collective(options)), m_asked_ranks(options.ranks) {}

  Profile read(std::string_view text) {
    for (std::size_t at = 0; at < m_lines.size(); ++at) {
      line(at);
    }
    if (!m_columns.empty() && !m_cut.ends()) {
      m_out.cut_off(m_lines, m_lines.size(), "the run ended here, without \"Avg bus bandwidth\"");
    }
    return finish(text);
  }

  /// What --report-to-json-file wrote.
  Profile read_json(std::string_view text) {
    const Json json = parse_json(m_lines.text(), m_lines.file());
    for (const JsonView& view : JsonView(json, m_lines.file()).at("results").elements()) {
      Row row{.bytes = view.at("size(B)").count(),
              .type = view.at("type").name(),
              .algorithm = view.find("algorithm") ? view.at("algorithm").name() : "",
              .time_us = 0,
              .algbw = view.at("algbw(GB/s)").non_negative(),
              .busbw = view.at("busbw(GB/s)").non_negative()};
      for (const char* const name : {"time:avg(us)", "time(us)"}) {
        if (const auto time = view.find(name)) {
          row.time_us = time->positive();
        }
      }
      if (row.time_us == 0) {
        view.fail("has no time:avg(us); measure with the average among the --stats");
      }
      add(0, row);
    }
    return finish(text);
  }

private:
  void line(std::size_t at) {
    const std::vector<std::string_view> words = words_of(m_lines[at]);
    if (words.empty()) {
      return;
    }
    command(words);
    if (words[0] == k_size) {
      begin_table(at, words);
    } else if (words[0] == "Avg") {
      m_cut.goes_on();
      m_columns.clear();
    } else if (!m_columns.empty() && words[0].find_first_not_of("0123456789") == words[0].npos) {
      row(at, words);
    }
  }

  /// "nccom-test -r 2 allr", where the log has it.
  void command(const std::vector<std::string_view>& words) {
    const auto tool = std::find_if(words.begin(), words.end(), [](std::string_view word) {
      return word.substr(word.find_last_of('/') + 1) == "nccom-test";
    });
    if (tool == words.end()) {
      return;
    }
    m_named = nullptr;
    m_ranks.reset();
    for (auto word = tool + 1; word != words.end(); ++word) {
      const bool value = word + 1 != words.end();
      if (value && (*word == "-r" || *word == "--nworkers")) {
        m_ranks = index_of(*(word + 1));
      } else if (value && (*word == "-N" || *word == "--nnodes")) {
        m_nodes = index_of(*(word + 1)).value_or(1);
      }
      const auto found = std::find_if(k_operations.begin(), k_operations.end(),
                                      [&](const auto& o) { return o.first == *word; });
      m_named = found == k_operations.end() ? m_named : collective_named(found->second);
    }
  }

  void begin_table(std::size_t at, const std::vector<std::string_view>& words) {
    m_columns.assign(words.begin(), words.end());
    const auto has = [&](std::string_view name) {
      return std::find(m_columns.begin(), m_columns.end(), name) != m_columns.end();
    };
    if ((!has("time(us)") && !has("time:avg(us)")) || !has("type") || !has("algbw(GB/s)") ||
        !has("busbw(GB/s)")) {
      m_lines.fail(at, "the table's columns must be size(B), count(elems), type, time:avg(us) or "
                       "time(us), algbw(GB/s), busbw(GB/s); was the line cut off? Give the tool's "
                       "whole output");
    }
    m_wide = m_wide || std::any_of(m_columns.begin(), m_columns.end(), [](const std::string& name) {
               return name.starts_with("time:p");
             });
  }

  void row(std::size_t at, const std::vector<std::string_view>& words) {
    const auto word = [&](std::string_view name) {
      const auto column = std::find(m_columns.begin(), m_columns.end(), name);
      return column == m_columns.end()
                 ? std::string_view()
                 : words[static_cast<std::size_t>(column - m_columns.begin())];
    };
    m_cut.goes_on();
    if (words.size() > 1 && words[1] == "Failure") {
      m_out.cut_off(m_lines, at, "the test failed here: " + quoted(trimmed(m_lines[at])));
      return;
    }
    if (words.size() != m_columns.size() || !has_decimals(word("busbw(GB/s)"), 2)) {
      m_cut.found(at, fmt::format("has {} values, but the table has {} columns, or a rate has "
                                  "fewer than two decimals; was the line cut off? Give the tool's "
                                  "whole output",
                                  words.size(), m_columns.size()));
      return;
    }
    const std::string_view time = word("time:avg(us)");
    add(at, {.bytes = m_lines.count(at, words[0], "size(B)"),
             .type = std::string(word("type")),
             .algorithm = std::string(word("algorithm")),
             .time_us = m_lines.positive(at, time.empty() ? word("time(us)") : time, "time"),
             .algbw = m_lines.number(at, word("algbw(GB/s)"), "algbw(GB/s)"),
             .busbw = m_lines.number(at, word("busbw(GB/s)"), "busbw(GB/s)")});
  }

  void add(std::size_t at, const Row& row) {
    const Collective* const collective = m_asked != nullptr ? m_asked : m_named;
    const std::optional<std::uint64_t> ranks = m_asked_ranks ? m_asked_ranks
                                               : m_ranks ? std::optional<std::uint64_t>(*m_ranks)
                                                         : std::nullopt;
    if (collective == nullptr) {
      m_lines.fail(at, fmt::format("nothing says which collective this is; add --collective "
                                   "NAME, one of {}",
                                   collective_names()));
    }
    if (!ranks) {
      m_lines.fail(at, "nothing says how many ranks took part; add --ranks");
    }
    check_rates(at, row, *collective, static_cast<double>(*ranks));
    CellKey key;
    key.test = fmt::format("nccom_{}", collective->name);
    key.bytes = row.bytes;
    key.sources = static_cast<int>(*ranks);
    key.transport = "nccom";
    if (!m_several && m_nodes < 2) {
      key.from = m_out.machine();
    }
    if (row.type == "fp32" || row.type == "fp16" || row.type == "bf16") {
      key.dtype = row.type;
    } else if (is_plain_word(row.type) && row.type.size() <= 32) {
      key.test += "_" + row.type;
    } else {
      m_lines.fail(at, fmt::format("\"{}\" is no type; give the tool's output as it is",
                                   one_line(row.type)));
    }
    m_out.add(key, k_time, row.time_us * 1e-6,
              row.algorithm.empty() ? "" : "algorithm " + one_line(row.algorithm));
  }

  /// The rates must follow from the time. Older versions print them in GiB/s, newer ones in GB/s,
  /// and both call it GB/s; some print times without decimals.
  void check_rates(std::size_t at, const Row& row, const Collective& collective,
                   double ranks) const {
    const double expected = static_cast<double>(row.bytes) / row.time_us * 1e-3;
    constexpr double k_gib = 1.073741824;
    const double rounding = 0.006 + expected * (0.5 / std::max(1.0, row.time_us) + 0.002);
    if (std::abs(row.algbw - expected) > rounding &&
        std::abs(row.algbw - expected / k_gib) > rounding) {
      m_lines.fail(at, fmt::format("algbw is {} GB/s, but size / time gives {:.2f}; give the "
                                   "tool's output as it is",
                                   row.algbw, expected));
    }
    const double bus = collective.bus_factor(ranks) * row.algbw;
    if (std::abs(row.busbw - bus) > 0.02 + 0.01 * bus) {
      m_lines.fail(at, fmt::format("busbw is {} GB/s, but {} of {} ranks has {:.2f}; is this "
                                   "another collective (--collective), or were there more ranks "
                                   "(--ranks)?",
                                   row.busbw, collective.name, ranks, bus));
    }
  }

  Profile finish(std::string_view text) {
    if (m_wide) {
      m_out.left_out("percentiles");
    }
    return m_out.finish("nccom-test", text);
  }

  const TextLines& m_lines;
  bool m_several;
  Collector m_out;
  CutRow m_cut{m_lines, m_out};
  const Collective* m_asked;
  std::optional<std::uint64_t> m_asked_ranks;
  const Collective* m_named = nullptr; ///< by the command in the log
  std::optional<int> m_ranks;
  int m_nodes = 1;
  std::vector<std::string> m_columns; ///< of the table; empty: there is none
  bool m_wide = false;
};

} // namespace

bool is_nccom_mark(std::string_view line) {
  line = trimmed(line);
  return (line.starts_with(k_size) && contains(line, "busbw(GB/s)")) ||
         line.starts_with("\"busbw(GB/s)\"");
}

Profile read_nccom(std::string_view text, const std::string& file, const ImportOptions& options) {
  const TextLines lines(text, file);
  NccomReader reader(lines, options);
  bool table = false; // a page with tables may show the JSON, too
  for (std::size_t at = 0; at < lines.size(); ++at) {
    table = table || lines[at].starts_with(k_size);
  }
  return !table && contains(text, "\"busbw(GB/s)\"") ? reader.read_json(text) : reader.read(text);
}

} // namespace reckon::import_detail
