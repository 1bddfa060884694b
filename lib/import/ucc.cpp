// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
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

/// What the tool's sizes are of: everywhere the whole, a rank's part, or a part before July 2025
/// and the whole since then, when it also began to print the total time.
enum class UccSize { whole, part, part_once };

struct UccCollective {
  std::string_view title, name;
  UccSize size;
  bool has_rate; ///< whether its bandwidth is that of collective_named()
};

constexpr std::array<UccCollective, 9> k_ucc_titles{
    {{"Allreduce", "all_reduce", UccSize::whole, true},
     {"Allgather", "all_gather", UccSize::part, true},
     {"Reduce_scatter", "reduce_scatter", UccSize::part_once, true},
     {"Alltoall", "alltoall", UccSize::part_once, true},
     {"Bcast", "broadcast", UccSize::whole, true},
     {"Reduce", "reduce", UccSize::whole, true},
     {"Gather", "gather", UccSize::part, false},
     {"Scatter", "scatter", UccSize::part_once, false},
     {"Barrier", "barrier", UccSize::whole, false}}};

class UccReader {
public:
  UccReader(const TextLines& lines, const ImportOptions& options)
      : m_lines(lines), m_several(machine_ids(options).size() > 1), m_ranks(options.ranks),
        m_out(lines.file(), options) {}

  Profile read(std::string_view text) {
    for (std::size_t at = 0; at < m_lines.size(); ++at) {
      line(at);
    }
    end_test();
    return m_out.finish("ucc_perftest", text,
                        "Allreduce, Allgather, Reduce_scatter, Alltoall, Bcast, Reduce, Gather, "
                        "Scatter, Barrier");
  }

private:
  struct Row {
    std::size_t line;
    std::uint64_t bytes; ///< as printed; of a barrier 0
    double time_us;
    std::optional<double> rate; ///< GB/s
  };

  struct Test {
    std::size_t line = 0;
    std::string title{}, memory{}, type{}, operation{};
    bool in_place = false, new_sizes = false;
    std::size_t columns = 0; ///< 0: the table has not begun
    std::vector<Row> rows{};
  };

  void line(std::size_t at) {
    const std::string_view line = m_lines[at];
    const std::vector<std::string_view> words = words_of(line);
    if (words.empty()) {
      return;
    }
    const auto after = [&](std::string_view name) {
      return line.starts_with(name) ? std::optional(std::string(trimmed(line.substr(name.size()))))
                                    : std::nullopt;
    };
    if (std::any_of(words.begin(), words.end(),
                    [](std::string_view word) { return word.ends_with("ucc_perftest"); })) {
      command(words);
    } else if (const auto title = after("Collective:")) {
      end_test();
      m_test = Test{.line = at, .title = *title};
    } else if (!m_test) {
      return;
    } else if (const auto memory = after("Memory type:")) {
      m_test->memory = *memory;
    } else if (const auto type = after("Datatype:")) {
      m_test->type = *type;
    } else if (const auto operation = after("Reduction:")) {
      m_test->operation = *operation;
    } else if (const auto in_place = after("Inplace:")) {
      m_test->in_place = *in_place == "1";
    } else if (const auto mode = after("Iteration mode:")) {
      m_test->new_sizes = true;
      m_mode += *mode == "isolated" ? "" : " " + *mode;
    } else if (words[0] == "Count" && contains(line, "Time, us")) {
      m_test->columns = contains(line, "andwidth, GB/s") ? 8 : 5;
    } else if (after("Total time:")) {
      m_test->new_sizes = true;
      m_cut.goes_on();
    } else if (m_test->columns > 0 && (words[0] == "N/A" || is_count(words[0]))) {
      row(at, words);
    }
  }

  static bool is_count(std::string_view word) {
    return word.find_first_not_of("0123456789") == word.npos;
  }

  /// "ucc_perftest -c alltoall -p": what the output itself does not say.
  void command(const std::vector<std::string_view>& words) {
    const auto has = [&](std::string_view flag) {
      return std::find(words.begin(), words.end(), flag) != words.end();
    };
    m_mode = has("-p") ? " persistent" : "";
    m_mode += has("-T") ? " triggered" : "";
  }

  void row(std::size_t at, const std::vector<std::string_view>& words) {
    m_cut.goes_on();
    const bool rate_ends =
        words.size() == m_test->columns && (words.back() == "N/A" || has_decimals(words.back(), 2));
    if (!rate_ends) {
      m_cut.found(at, fmt::format("has {} values, but the table has {} columns, or a number has "
                                  "fewer than two decimals; was the line cut off? Give the tool's "
                                  "whole output",
                                  words.size(), m_test->columns));
      return;
    }
    Row row{.line = at,
            .bytes = words[1] == "N/A" ? 0 : m_lines.count(at, words[1], "Size"),
            .time_us = m_lines.positive(at, words[2], "the time"),
            .rate = std::nullopt};
    if (words.size() > 5 && words[5] != "N/A") {
      row.rate = m_lines.number(at, words[5], "the bandwidth");
    }
    m_test->rows.push_back(row);
  }

  /// Whether the rates are those of `ranks`, of which the size is a part or not.
  [[nodiscard]] bool fit(const Collective& collective, double ranks, bool part) const {
    return std::all_of(m_test->rows.begin(), m_test->rows.end(), [&](const Row& row) {
      const double expected = static_cast<double>(row.bytes) * (part ? ranks : 1) / row.time_us *
                              1e-3 * collective.bus_factor(ranks);
      return !row.rate ||
             std::abs(*row.rate - expected) <= 0.0051 + expected * (0.0051 / row.time_us + 1e-5);
    });
  }

  /// How many ranks there were, by --ranks or by the bandwidths (-F).
  [[nodiscard]] std::uint64_t ranks(const Collective* collective, bool part) const {
    const bool rates = collective != nullptr && !m_test->rows.empty() &&
                       std::all_of(m_test->rows.begin(), m_test->rows.end(),
                                   [](const Row& row) { return row.rate.has_value(); });
    if (m_ranks) {
      if (rates && !fit(*collective, static_cast<double>(*m_ranks), part)) {
        m_lines.fail(m_test->rows.front().line,
                     fmt::format("the bandwidths are not those of {} ranks; leave --ranks out, or "
                                 "give the number that took part",
                                 *m_ranks));
      }
      return *m_ranks;
    }
    constexpr std::uint64_t k_most = 1U << 16U;
    std::uint64_t least = rates ? 2 : k_most, most = k_most;
    while (least < most && !fit(*collective, static_cast<double>(least), part)) {
      ++least;
    }
    while (most > least && !fit(*collective, static_cast<double>(most), part)) {
      --most;
    }
    if (least != most || least == k_most) {
      m_lines.fail(m_test->line, "nothing says how many ranks took part; add --ranks");
    }
    return least;
  }

  void end_test() {
    m_cut.ends();
    if (!m_test) {
      return;
    }
    const auto* const found = std::ranges::find(k_ucc_titles, m_test->title, &UccCollective::title);
    if (found == k_ucc_titles.end()) {
      m_out.left_out(m_test->title);
    } else if (m_test->rows.empty()) {
      m_out.cut_off(m_lines, m_test->line, fmt::format("{} has no rows below this", found->title));
    } else {
      collective(*found);
    }
    m_test.reset();
  }

  void collective(const UccCollective& title) {
    const Collective* const known = title.has_rate ? collective_named(title.name) : nullptr;
    bool part =
        title.size != UccSize::whole && !(title.size == UccSize::part_once && m_test->new_sizes);
    if (title.size == UccSize::part_once && m_test->rows.front().rate) {
      // The rate of the whole is less than size / time, that of a part at least as much.
      const Row& row = m_test->rows.back();
      part = *row.rate > static_cast<double>(row.bytes) / row.time_us * 0.99e-3;
    }
    const std::uint64_t n = ranks(known, part);
    CellKey key;
    key.sources = static_cast<int>(n);
    key.transport =
        "ucc" + (m_test->memory == "host" ? "" : " " + one_line(m_test->memory)) + m_mode;
    key.test = "ucc_" + std::string(title.name);
    if (!m_several) {
      key.from = m_out.machine();
    }
    const std::string& type = m_test->type;
    key.dtype = type == "float32"    ? "fp32"
                : type == "float16"  ? "fp16"
                : type == "bfloat16" ? "bf16"
                                     : "";
    for (const std::string& word :
         {key.dtype.empty() && title.name != "barrier" ? type : "",
          m_test->operation == "N/A" || m_test->operation == "sum" ? "" : m_test->operation}) {
      if (!is_plain_word(word) || word.size() > 32) {
        m_lines.fail(m_test->line, fmt::format("\"{}\" is no type and no operation; give the "
                                               "tool's output as it is",
                                               one_line(word)));
      }
      key.test += word.empty() ? "" : "_" + word;
    }
    key.test += m_test->in_place ? "_in_place" : "";
    for (const Row& row : m_test->rows) {
      key.bytes = row.bytes * (part ? n : 1);
      m_out.add(key, k_time, row.time_us * 1e-6, "the mean of the ranks' times");
    }
    m_out.left_out("smallest and largest times of a rank");
  }

  const TextLines& m_lines;
  bool m_several;
  std::optional<std::uint64_t> m_ranks;
  Collector m_out;
  CutRow m_cut{m_lines, m_out};
  std::optional<Test> m_test;
  std::string m_mode; ///< of the iterations, with a blank before each word
};

} // namespace

bool is_ucc_mark(std::string_view line) {
  return line.starts_with("Count") && contains(line, "Size") && contains(line, "Time, us");
}

Profile read_ucc(std::string_view text, const std::string& file, const ImportOptions& options) {
  const TextLines lines(text, file);
  return UccReader(lines, options).read(text);
}

} // namespace reckon::import_detail
