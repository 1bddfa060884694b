// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "import/collectives.hpp"
#include "import/log_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

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

class UccReader : public LogReader {
public:
  UccReader(const TextLines& lines, const ImportOptions& options)
      : LogReader(lines, options, "ucc_perftest",
                  "Allreduce, Allgather, Reduce_scatter, Alltoall, Bcast, Reduce, Gather, Scatter, "
                  "Barrier") {}

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

  void line(const Line& line) override {
    if (!line.program("ucc_perftest").empty()) { // says what the output itself does not
      m_mode = line.has("-p") ? " persistent" : "";
      m_mode += line.has("-T") ? " triggered" : "";
    } else if (const auto title = line.behind("Collective:")) {
      end();
      m_test = Test{.line = line.at, .title = std::string(*title)};
    } else if (!m_test) {
      return;
    } else if (const auto memory = line.behind("Memory type:")) {
      m_test->memory = *memory;
    } else if (const auto type = line.behind("Datatype:")) {
      m_test->type = *type;
    } else if (const auto operation = line.behind("Reduction:")) {
      m_test->operation = *operation;
    } else if (const auto in_place = line.behind("Inplace:")) {
      m_test->in_place = *in_place == "1";
    } else if (const auto mode = line.behind("Iteration mode:")) {
      m_test->new_sizes = true;
      m_mode += *mode == "isolated" ? "" : " " + std::string(*mode);
    } else if (line[0] == "Count" && contains(line.text, "Time, us")) {
      m_test->columns = contains(line.text, "andwidth, GB/s") ? 8 : 5;
    } else if (line.behind("Total time:")) {
      m_test->new_sizes = true;
      goes_on();
    } else if (m_test->columns > 0 && (line[0] == "N/A" || is_digits(line[0]))) {
      row(line);
    }
  }

  void end() override {
    ends_in_row();
    if (!m_test) {
      return;
    }
    const auto* const found = std::ranges::find(k_ucc_titles, m_test->title, &UccCollective::title);
    if (found == k_ucc_titles.end()) {
      m_out.left_out(m_test->title);
    } else if (m_test->rows.empty()) {
      cut_off(m_test->line, fmt::format("{} has no rows below this", found->title));
    } else {
      collective(*found);
    }
    m_test.reset();
  }

  void row(const Line& line) {
    const std::string_view last = line.words.back(), rate = line[5];
    if (is_whole(line, m_test->columns, last == "N/A" || has_decimals(last, 2))) {
      m_test->rows.push_back({.line = line.at,
                              .bytes = line[1] == "N/A" ? 0 : line.count(line[1], "Size"),
                              .time_us = line.positive(line[2], "the time"),
                              .rate = rate.empty() || rate == "N/A"
                                          ? std::nullopt
                                          : std::optional(line.number(rate, "the bandwidth"))});
    }
  }

  /// Whether the rates are those of `ranks`, of which the size is a part or not.
  [[nodiscard]] bool fit(const Collective& collective, double ranks, bool part) const {
    return std::ranges::all_of(m_test->rows, [&](const Row& row) {
      const double expected = static_cast<double>(row.bytes) * (part ? ranks : 1) / row.time_us *
                              1e-3 * collective.bus_factor(ranks);
      return std::abs(*row.rate - expected) <= 0.0051 + expected * (0.0051 / row.time_us + 1e-5);
    });
  }

  /// How many ranks there were, by --ranks or by the bandwidths (-F).
  [[nodiscard]] std::uint64_t ranks(const Collective* collective, bool part) const {
    const bool rates = collective != nullptr && std::ranges::all_of(m_test->rows, [](const Row& r) {
                         return r.rate.has_value();
                       });
    const auto asked = m_options.ranks;
    if (asked && rates && !fit(*collective, static_cast<double>(*asked), part)) {
      m_lines.fail(m_test->rows.front().line,
                   fmt::format("the bandwidths are not those of {} ranks; leave --ranks out, or "
                               "give the number that took part",
                               *asked));
    }
    const auto [least, most] =
        asked   ? std::pair(*asked, *asked)
        : rates ? ranks_that([&](double ranks) { return fit(*collective, ranks, part); })
                : std::pair<std::uint64_t, std::uint64_t>(0, 1);
    if (least != most) {
      m_lines.fail(m_test->line, "nothing says how many ranks took part; add --ranks");
    }
    return least;
  }

  void collective(const UccCollective& title) {
    const Test& test = *m_test;
    bool part =
        title.size == UccSize::part || (title.size == UccSize::part_once && !test.new_sizes);
    if (title.size == UccSize::part_once && test.rows.back().rate) {
      // The rate of the whole is less than size / time, that of a part at least as much.
      const Row& row = test.rows.back();
      part = *row.rate > static_cast<double>(row.bytes) / row.time_us * 0.99e-3;
    }
    const std::uint64_t n = ranks(title.has_rate ? collective_named(title.name) : nullptr, part);
    const bool one = machine_ids(m_options).size() == 1;
    CellKey key{.test = fmt::format("ucc_{}", title.name),
                .from = one ? m_out.machine() : "",
                .sources = static_cast<int>(n),
                .transport =
                    "ucc" + (test.memory == "host" ? "" : " " + one_line(test.memory)) + m_mode};
    const std::string place = m_lines.place(test.line);
    if (title.name != "barrier") {
      name_type(key, test.type, place);
    }
    if (test.operation != "N/A" && test.operation != "sum") {
      name_word(key, test.operation, place);
    }
    key.test += test.in_place ? "_in_place" : "";
    for (const Row& row : test.rows) {
      key.bytes = row.bytes * (part ? n : 1);
      m_out.add(key, k_time, row.time_us * 1e-6, "the mean of the ranks' times");
    }
    m_out.left_out("smallest and largest times of a rank");
  }

  std::optional<Test> m_test;
  std::string m_mode; ///< of the iterations, with a blank before each word
};

} // namespace

Profile read_ucc(const TextLines& lines, const ImportOptions& options) {
  return UccReader(lines, options).read();
}

} // namespace reckon::import_detail
