// SPDX-License-Identifier: Apache-2.0
#include "core/csv.hpp"
#include "core/error.hpp"
#include "core/units.hpp"
#include "import/log_reader.hpp"
#include "import/nccl_cells.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>

namespace reckon::import_detail {
namespace {

/// Where the columns of a half of the table stand.
struct Half {
  std::size_t time = 0, algbw = 0, busbw = 0;
  std::optional<std::size_t> wrong; ///< how many values were wrong
  std::size_t check = 0;            ///< "#wrong" or "error": N/A where nothing was checked
};

struct Head {
  std::size_t columns = 0;
  std::optional<std::size_t> type, redop, root;
  std::vector<Half> halves; ///< out of place, then in place
};

/// The sizes of a table's rows in their order, by the tool's first line: "minBytes 4 maxBytes 64
/// step: 2(factor)". What the tool prints may be a little less, a multiple of the ranks.
struct Sizes {
  std::uint64_t min = 0, max = 0, step = 0;
  bool is_factor = false;

  /// At most `most` of them.
  [[nodiscard]] std::vector<std::uint64_t> list(std::size_t most) const {
    std::vector<std::uint64_t> sizes;
    const bool grows = is_factor ? step > 1 && min > 0 : step > 0;
    for (std::uint64_t size = min; grows && size <= max && sizes.size() < most;
         size = is_factor ? size * step : size + step) {
      sizes.push_back(size);
    }
    return sizes;
  }
};

constexpr double k_rate_step = 0.005; ///< rates have two digits behind the point

constexpr std::array<std::string_view, 15> k_columns{
    "size",   "count", "type",  "redop", "root",  "time",  "algbw",    "busbw",
    "#wrong", "error", "i_min", "i_max", "i_p99", "i_cv%", "timestamp"};

/// What the rows of a table say of the collective.
struct Hints {
  bool sums = false, has_root = false;
  std::optional<bool> in_place;                 ///< whether the tool checks results in place
  std::vector<std::pair<double, double>> rates; ///< algbw, busbw

  /// Whether the columns are those of the collective.
  [[nodiscard]] bool has_columns_of(const Collective& collective, const Head& head) const {
    // These print sum in some versions, and their results in place are never checked.
    const bool moves = collective.name == "alltoall" || collective.name == "sendrecv";
    // Until 2.13 each had its own columns, and these a redop.
    const bool redop = head.root || head.redop.has_value() == (collective.sums || moves);
    return collective.has_root == has_root && redop &&
           (has_root || in_place.value_or(!moves) != moves) &&
           (collective.sums == sums || collective.name == "sendrecv");
  }
  /// Whether bus bandwidths are those of so many ranks.
  [[nodiscard]] bool fit(const Collective& collective, double ranks) const {
    const double factor = collective.bus_factor(ranks);
    return std::ranges::all_of(rates, [&](const auto& rate) {
      return std::abs(rate.second - factor * rate.first) <= 1.02 * k_rate_step * (1 + factor);
    });
  }
  /// The least and the most ranks of which they are.
  [[nodiscard]] auto ranks(const Collective& collective) const {
    return ranks_that([&](double ranks) { return fit(collective, ranks); });
  }
};

class NcclTestsReader : public LogReader {
public:
  NcclTestsReader(const TextLines& lines, const ImportOptions& options)
      : LogReader(lines, options, "nccl-tests"), m_asked(asked_collective(options)) {}

private:
  void line(const Line& line) override {
    find_collective(line);
    if (line.text.front() == '#') {
      comment(line);
    } else if (m_head && !m_ended && is_digits(line[0])) {
      row(line);
    }
  }

  void end() override {
    if (!m_head) {
      Line(m_lines, m_lines.size())
          .fail_as_cut("there is no table (size, count, type, time, algbw, busbw)");
    }
    close_table(m_lines.size());
  }

  /// "./build/all_reduce_perf -b 8", "# Collective test starting: all_reduce_perf_mpi"
  void find_collective(const Line& line) {
    for (std::string_view word : line.words) {
      word = word.substr(word.find_last_of('/') + 1);
      const std::size_t end = word.find("_perf");
      const Collective* const found =
          end == word.npos ? nullptr : collective_named(word.substr(0, end));
      if (found == nullptr) {
        continue;
      }
      if (m_collective != nullptr && m_collective != found) {
        close_table(line.at);
      }
      m_collective = found;
      m_known = true;
    }
  }

  void comment(const Line& line) {
    if (line.words.size() > 3 && line[1] == "nccl-tests" && line[2] == "version") {
      m_version = one_line(line[3]);
    } else if (contains(line.text, "Blocking Enabled")) {
      m_remark = one_line(line.text.substr(2));
    } else if (line.has("minBytes") && line.has("maxBytes") && line.has("step:")) {
      sizes(line);
    } else if (line.words.size() > 4 && line[1] == "Reducing" && line[2] == "maxBytes" && m_sizes) {
      m_sizes->max = line.count(line[4], "maxBytes");
    } else if (line.words.size() > 3 && line[1] == "Rank" && line.has("device")) {
      rank(line);
    } else if (line.has("algbw") && line.has("busbw")) {
      begin_table(line);
    } else if (line.has("(us)") || line.has("(ms)")) {
      if (!line.has("(us)") || !line.has("(GB/s)")) {
        line.fail("times must be in us and rates in GB/s; this version of the tool is not known "
                  "here");
      }
    } else if (contains(line.text, "Out of bounds values") ||
               contains(line.text, "Avg bus bandwidth")) {
      if (m_head && !m_ended) {
        goes_on();
        end_table(line);
      }
    }
  }

  /// "# nThread 1 nGpus 1 minBytes 4 maxBytes 33554432 step: 2(factor) warmup iters: 5 iters: 20":
  /// which sizes follow, and how often each row's operation was made.
  void sizes(const Line& line) {
    close_table(line.at);
    const std::string_view step = line.after("step:");
    const std::size_t unit = std::min(step.find('('), step.size());
    m_sizes = Sizes{.min = line.count(line.after("minBytes"), "minBytes"),
                    .max = line.count(line.after("maxBytes"), "maxBytes"),
                    .step = line.count(step.substr(0, unit), "the step"),
                    .is_factor = step.substr(unit) == "(factor)"};
    std::uint64_t runs = 0;
    for (std::size_t i = 1; i + 1 < line.words.size(); ++i) {
      const bool counts = line[i] == "iters:" && line[i - 1] != "agg";
      runs += counts ? line.count(line[i + 1], "iters") : 0;
    }
    m_cells.set_runs(runs);
  }

  /// The row's size should be the next one. Sizes begin again with each type, operation and root.
  void next_size(std::size_t at, std::uint64_t bytes) {
    const std::size_t from = m_rows;
    while (!m_expected.empty() && bytes > m_expected[m_rows % m_expected.size()] &&
           (m_rows + 1) % m_expected.size() != 0) {
      ++m_rows;
    }
    if (m_rows++ > from) {
      say_missing(at, from);
    }
  }

  void say_missing(std::size_t at, std::size_t from) {
    if (!std::exchange(m_lacks_rows, true)) {
      cut_off(at, fmt::format("the row of {} B is missing before this: the lines above promise {}",
                              m_expected[from % m_expected.size()],
                              counted(m_expected.size(), "size")));
    }
  }

  /// The run of a table that has begun ended before line `at` without the tool's last lines.
  void close_table(std::size_t at) {
    if (!m_head || m_ended) {
      return;
    }
    if (!ends_in_row()) {
      cut_off(at, "the run ended before this, without \"# Out of bounds values\"");
    }
    table_is_over();
  }

  void end_table(const Line& line) {
    if (line.has("FAILED") && !m_marked) {
      line.fail("the tool found wrong values and does not say in which rows; mend what made them "
                "and measure again");
    }
    if (!m_expected.empty() && (m_rows == 0 || m_rows % m_expected.size() != 0)) {
      say_missing(line.at, m_rows);
    }
    table_is_over();
  }

  void table_is_over() {
    m_ended = true;
    m_sizes.reset();
    m_cells.end_table();
  }

  /// #  Rank  0 Group  0 Pid 6899 on host device  0 [0000:04:00] NVIDIA H100 80GB HBM3
  void rank(const Line& line) {
    const auto number = index_of(line[2]), device = index_of(line.after("device"));
    const auto on = std::ranges::find(line.words, "on");
    auto next = std::ranges::find(line.words, "device");
    if (!number || !device || next - on < 2) {
      line.fail("must read \"#  Rank  0 Group  0 Pid 1 on HOST device  0 [0000:04:00] NAME\"; give "
                "the tool's output as it is");
    }
    if (m_ended && *number == 0) { // of the next test
      m_ranks.clear();
    }
    if (*number != static_cast<int>(m_ranks.size())) {
      line.fail(fmt::format("is rank {}, but rank {} is to follow; {}", *number, m_ranks.size(),
                            *number < static_cast<int>(m_ranks.size())
                                ? "are these runs that do not know of each other (a build without "
                                  "MPI)? Give one a file"
                                : "give the list of all ranks"));
    }
    NcclRank rank{.number = *number,
                  .group = index_of(line.after("Group")).value_or(0),
                  .host = std::string(*(on + 1)),
                  .device = *device,
                  .address = "",
                  .name = ""};
    next += 2;
    if (next < line.words.end() && next->front() == '[') {
      // What older versions print, "[0x04]", is not all of an address.
      rank.address = pci_address((next++)->substr(1));
    }
    rank.name = fmt::format("{}", fmt::join(next, line.words.end(), " "));
    // Ranks that see one GPU each all call it device 0: only the address tells them apart.
    m_devices.say(
        line, fmt::format("device {} {} of {}", rank.device, rank.address, rank.host),
        fmt::format("device {} of {}: {}", rank.device, one_line(rank.host), one_line(rank.name)));
    m_ranks.push_back(std::move(rank));
  }

  /// The columns of a table: "#  size  count  type  redop  root  time  algbw  busbw  #wrong  time
  /// algbw  busbw  #wrong".
  Head head_of(const Line& line) {
    Head head{.columns = line.words.size() - 1};
    for (std::size_t i = 0; i < line.words.size() - 1; ++i) {
      const std::string_view word = line[i + 1];
      if (std::ranges::find(k_columns, word) == k_columns.end()) {
        line.fail(fmt::format("the column {} is not known here; measure without the option of the "
                              "tool that adds it{}",
                              quoted(word),
                              word == "cputime" ? " (-C), which prints how long processors took to "
                                                  "start the operations"
                                                : ""));
      }
      if (word == "i_min") {
        m_out.left_out("statistics of iterations (-J FILE writes the iterations themselves)");
      }
      head.columns += word == "timestamp" ? 1U : 0U; // a day and a time
      if (word == "type") {
        head.type = i;
      } else if (word == "redop") {
        head.redop = i;
      } else if (word == "root") {
        head.root = i;
      } else if (word == "time") {
        head.halves.emplace_back().time = i;
      } else if (word == "algbw" && !head.halves.empty()) {
        head.halves.back().algbw = i;
      } else if (word == "busbw" && !head.halves.empty()) {
        head.halves.back().busbw = i;
      } else if ((word == "#wrong" || word == "error") && !head.halves.empty()) {
        // "error", until 2022, is the largest one, which rounding alone makes.
        head.halves.back().check = i;
        head.halves.back().wrong = word == "error" ? std::nullopt : std::optional(i);
      }
    }
    if (line[1] != "size" || line[2] != "count" || !head.type || head.halves.empty() ||
        head.halves.size() > 2 || std::ranges::any_of(head.halves, [](const Half& h) {
          return h.algbw == 0 || h.busbw == 0;
        })) {
      line.fail_as_cut("the table's columns must be size, count, type, time, algbw, busbw and what "
                       "goes with them");
    }
    return head;
  }

  void begin_table(const Line& line) {
    close_table(line.at);
    m_ended = false;
    const Head head = head_of(line);
    choose_collective(line, head);
    list_ranks(line, head);
    m_cells.ranks(line.place(), m_ranks);
    m_cells.set_collective(*m_collective, m_known);
    m_cells.set_remark(std::exchange(m_remark, ""));
    m_head = head;
    m_expected = m_sizes ? m_sizes->list(m_lines.size()) : std::vector<std::uint64_t>();
    m_rows = 0;
    m_lacks_rows = m_marked = false;
  }

  /// The values of a row in the columns of its table.
  static std::vector<std::string_view> in_columns(std::vector<std::string_view> words,
                                                  const Head& head) {
    // Until 2.13 what sums nothing had an empty redop.
    if (head.redop && words.size() + 1 == head.columns && *head.redop < words.size() &&
        finite_number(words[*head.redop])) {
      words.insert(words.begin() + static_cast<std::ptrdiff_t>(*head.redop), "none");
    }
    return words;
  }

  /// Of the table whose heading is line `at`.
  [[nodiscard]] Hints hints(std::size_t at, const Head& head) const {
    Hints hints;
    for (++at; at < m_lines.size() && !contains(m_lines[at], "Out of bounds values"); ++at) {
      const std::vector<std::string_view> words = in_columns(words_of(m_lines[at]), head);
      if (words.size() != head.columns || !is_digits(words.front())) {
        continue;
      }
      hints.sums = hints.sums || (head.redop && words[*head.redop] != "none");
      hints.has_root = hints.has_root || (head.root && words[*head.root] != "-1");
      const auto checks = [&](const Half& half) {
        return half.check > 0 && words[half.check] != "N/A";
      };
      if (checks(head.halves.front()) && head.halves.size() > 1) {
        hints.in_place = checks(head.halves.back());
      }
      for (const Half& half : head.halves) {
        const auto algbw = finite_number(words[half.algbw]),
                   busbw = finite_number(words[half.busbw]);
        if (algbw && busbw) {
          hints.rates.emplace_back(*algbw, *busbw);
        }
      }
    }
    return hints;
  }

  /// Those of the file, else as many as were asked for.
  void list_ranks(const Line& line, const Head& head) {
    const auto asked = m_options.ranks;
    if (m_ranks.empty() && !asked) {
      const auto [least, most] = hints(line.at, head).ranks(*m_collective);
      line.fail(
          fmt::format("there is no list of ranks before the table (\"#  Rank  0 ...\"){}; give "
                      "the tool's whole output, or, where all ranks were on one machine, "
                      "their number with --ranks",
                      least == most ? fmt::format(", and busbw / algbw is that of {} of {} "
                                                  "ranks",
                                                  m_collective->name, least)
                                    : ""));
    }
    if (!m_ranks.empty() && asked && *asked != m_ranks.size()) {
      line.fail(fmt::format("--ranks {}: the list before the table has {}; leave it out", *asked,
                            m_ranks.size()));
    }
    for (int i = static_cast<int>(m_ranks.size()); i < static_cast<int>(asked.value_or(0)); ++i) {
      m_ranks.push_back({.number = i, .host = "", .device = i, .address = "", .name = ""});
    }
  }

  void choose_collective(const Line& line, const Head& head) {
    if (m_asked != nullptr) {
      if (m_collective != nullptr && m_collective != m_asked) {
        line.fail(fmt::format("the file is of {}_perf, but --collective says {}; leave "
                              "--collective out",
                              m_collective->name, m_asked->name));
      }
      m_collective = m_asked;
      m_known = true;
    }
    // "# Collective test concluded: all_reduce_perf" stands below the table.
    for (std::size_t at = line.at; m_collective == nullptr && at < m_lines.size(); ++at) {
      if (contains(m_lines[at], " concluded: ")) {
        find_collective(Line(m_lines, at));
      }
    }
    if (m_collective != nullptr) {
      return;
    }
    const Hints known = hints(line.at, head);
    std::vector<std::string_view> names;
    std::set<double> factors;
    for (const Collective& c : tested_collectives()) {
      const auto [least, most] = known.ranks(c);
      const bool fits = m_ranks.empty()
                            ? least <= most
                            : known.fit(c, static_cast<double>(ranks_of_group(m_ranks)));
      if (fits && known.has_columns_of(c, head)) {
        names.push_back(c.name);
        factors.insert(c.bus_factor(2));
        m_collective = &c;
      }
    }
    m_known = names.size() == 1;
    if (m_known) {
      m_out.note("collective", fmt::format("{}, the only one with such columns and such busbw / "
                                           "algbw; the file does not name it",
                                           names.front()));
      return;
    }
    // What one rank on each of two machines send each other has one bus bandwidth, whichever
    // collective it is.
    const bool pair = m_ranks.size() == 2 && m_ranks[0].host != m_ranks[1].host;
    if (factors.size() != 1 || !pair || known.has_root) {
      line.fail(fmt::format("nothing says which collective this is; add --collective {}",
                            names.empty() ? "NAME, one of " + collective_names()
                                          : fmt::format("{}", fmt::join(names, " or "))));
    }
  }

  void row(const Line& line) {
    const Head& head = *m_head;
    const std::vector<std::string_view> words = in_columns(line.words, head);
    if (!is_whole(line, words.size() == head.columns ? line.words.size() : head.columns,
                  words.size() == head.columns)) {
      return;
    }
    const NcclRow row{.bytes = line.count(words[0], "size"),
                      .count = line.count(words[1], "count"),
                      .type = words[*head.type],
                      .redop = head.redop ? words[*head.redop] : "none",
                      .root = head.root ? words[*head.root] : "-1"};
    next_size(line.at, row.bytes);
    m_cells.check_count(line.place(), row);
    for (std::size_t i = 0; i < head.halves.size(); ++i) {
      half(line, words, head.halves[i], row, i > 0);
    }
  }

  void half(const Line& line, const std::vector<std::string_view>& words, const Half& half,
            const NcclRow& row, bool in_place) {
    double time_us = line.number(words[half.time], "time");
    const double algbw = line.number(words[half.algbw], "algbw");
    const double busbw = line.number(words[half.busbw], "busbw");
    if (row.bytes == 0) {
      return; // sizes below one element a rank move nothing
    }
    if (time_us > 0) {
      // Times from 10 s on are printed so: "1.0e+07".
      const bool two_digits = contains(words[half.time], "e");
      const double step_us = two_digits     ? 0.051 * std::pow(10, std::floor(std::log10(time_us)))
                             : time_us < 10 ? 0.05
                                            : 0.006 * time_us;
      const auto bytes = static_cast<double>(row.bytes);
      m_cells.check_rates(line.place(), bytes / time_us * 1e-3, step_us / time_us, algbw, busbw);
      const bool rate_is_finer = algbw * step_us > k_rate_step * time_us;
      if (two_digits && rate_is_finer) {
        time_us = std::clamp(bytes / algbw * 1e-3, time_us - step_us, time_us + step_us);
      }
    }
    const bool looked = half.wrong && words[*half.wrong] != "N/A";
    const double wrong = looked ? line.number(words[*half.wrong], "#wrong") : 0;
    m_marked |=
        !m_cells.add(line.place(), row, {.in_place = in_place, .time_us = time_us, .wrong = wrong});
  }

  NcclCells m_cells{m_out};
  const Collective* m_asked;
  const Collective* m_collective = nullptr;
  bool m_known = true; ///< whether it is this one, and not another of the same bus bandwidth
  std::vector<NcclRank> m_ranks;
  std::optional<Head> m_head;
  std::optional<Sizes> m_sizes;          ///< of the table that follows
  std::vector<std::uint64_t> m_expected; ///< its sizes; empty: not said
  std::size_t m_rows = 0;                ///< that were read of it
  bool m_lacks_rows = false;             ///< whether that was said
  std::string m_remark;                  ///< on the cells of the table that follows
  bool m_marked = false;                 ///< whether one of them has wrong values
  bool m_ended = false;
};

} // namespace

Profile read_nccl_tests(const TextLines& lines, const ImportOptions& options) {
  return contains(lines.raw(), k_nccl_json) ? read_nccl_json(lines, options)
                                            : NcclTestsReader(lines, options).read();
}

} // namespace reckon::import_detail
