// SPDX-License-Identifier: Apache-2.0
#include "core/csv.hpp"
#include "core/error.hpp"
#include "core/json.hpp"
#include "core/units.hpp"
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

constexpr std::array<std::string_view, 15> k_columns{
    "size",   "count", "type",  "redop", "root",  "time",  "algbw",    "busbw",
    "#wrong", "error", "i_min", "i_max", "i_p99", "i_cv%", "timestamp"};

class NcclTestsReader {
public:
  NcclTestsReader(const TextLines& lines, const ImportOptions& options)
      : m_lines(lines), m_out(lines.file(), options), m_asked(asked_collective(options)),
        m_asked_ranks(options.ranks) {}

  Profile read(std::string_view text) {
    for (std::size_t at = 0; at < m_lines.size(); ++at) {
      line(at);
    }
    if (!m_head) {
      m_lines.fail(m_lines.size(), "there is no table (size, count, type, time, algbw, busbw); was "
                                   "the file cut off? Give the tool's whole output");
    }
    close_table(m_lines.size());
    return m_out.finish(m_version.empty() ? "nccl-tests" : "nccl-tests " + m_version, text);
  }

private:
  void line(std::size_t at) {
    const std::string_view line = m_lines[at];
    const std::vector<std::string_view> words = words_of(line);
    find_collective(at, words);
    if (words.empty()) {
      return;
    }
    if (line.front() == '#') {
      comment(at, words);
    } else if (m_head && !m_ended && is_count(words.front())) {
      row(at, words);
    }
  }

  static bool is_count(std::string_view word) {
    return word.find_first_not_of("0123456789") == word.npos;
  }

  /// "./build/all_reduce_perf -b 8", "# Collective test starting: all_reduce_perf_mpi"
  void find_collective(std::size_t at, const std::vector<std::string_view>& words) {
    for (std::string_view word : words) {
      word = word.substr(word.find_last_of('/') + 1);
      const std::size_t end = word.find("_perf");
      if (end == word.npos) {
        continue;
      }
      const Collective* found = collective_named(word.substr(0, end));
      if (found == nullptr) {
        continue;
      }
      if (m_collective != nullptr && m_collective != found) {
        close_table(at);
      }
      m_collective = found;
      m_known = true;
    }
  }

  void comment(std::size_t at, const std::vector<std::string_view>& words) {
    const auto has = [&](std::string_view word) {
      return std::find(words.begin(), words.end(), word) != words.end();
    };
    if (words.size() > 3 && words[1] == "nccl-tests" && words[2] == "version") {
      m_version = one_line(words[3]);
    } else if (contains(m_lines[at], "Blocking Enabled")) {
      m_remark = one_line(m_lines[at].substr(2));
    } else if (has("minBytes") && has("maxBytes") && has("step:")) {
      sizes(at, words);
      runs(at, words);
    } else if (words.size() > 4 && words[1] == "Reducing" && words[2] == "maxBytes" && m_sizes) {
      m_sizes->max = m_lines.count(at, words[4], "maxBytes");
    } else if (words.size() > 3 && words[1] == "Rank" && has("device")) {
      rank(at, words);
    } else if (has("algbw") && has("busbw")) {
      begin_table(at, words);
    } else if (has("(us)") || has("(ms)")) {
      if (!has("(us)") || !has("(GB/s)")) {
        m_lines.fail(at, "times must be in us and rates in GB/s; this version of the tool is not "
                         "known here");
      }
    } else if (contains(m_lines[at], "Out of bounds values") ||
               contains(m_lines[at], "Avg bus bandwidth")) {
      if (m_head && !m_ended) {
        end_table(at, has("FAILED"));
      }
    }
  }

  /// "# nThread 1 nGpus 1 minBytes 4 maxBytes 33554432 step: 2(factor) warmup iters: 5"
  void sizes(std::size_t at, const std::vector<std::string_view>& words) {
    close_table(at);
    const auto after = [&](std::string_view word) {
      const auto found = std::find(words.begin(), words.end(), word);
      return words.end() - found < 2 ? std::string_view() : *(found + 1);
    };
    const std::string_view step = after("step:");
    const std::size_t unit = std::min(step.find('('), step.size());
    m_sizes = Sizes{.min = m_lines.count(at, after("minBytes"), "minBytes"),
                    .max = m_lines.count(at, after("maxBytes"), "maxBytes"),
                    .step = m_lines.count(at, step.substr(0, unit), "the step"),
                    .is_factor = step.substr(unit) == "(factor)"};
  }

  /// "warmup iters: 5 iters: 20": how often each row's operation was made.
  void runs(std::size_t at, const std::vector<std::string_view>& words) {
    std::uint64_t runs = 0;
    for (std::size_t i = 1; i + 1 < words.size(); ++i) {
      const bool counts = words[i] == "iters:" && words[i - 1] != "agg";
      runs += counts ? m_lines.count(at, words[i + 1], "iters") : 0;
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
    if (m_rows > from) {
      say_missing(at, from);
    }
    ++m_rows;
  }

  void say_missing(std::size_t at, std::size_t from) {
    if (std::exchange(m_lacks_rows, true)) {
      return;
    }
    m_out.cut_off(m_lines, at,
                  fmt::format("the row of {} B is missing before this: the lines above promise {}",
                              m_expected[from % m_expected.size()],
                              counted(m_expected.size(), "size")));
  }

  /// The run of a table that has begun ended before line `at` without the tool's last lines.
  void close_table(std::size_t at) {
    if (!m_head || m_ended) {
      return;
    }
    if (!m_cut.ends()) {
      m_out.cut_off(m_lines, at, "the run ended before this, without \"# Out of bounds values\"");
    }
    m_ended = true;
    m_sizes.reset();
    m_cells.end_table();
  }

  void end_table(std::size_t at, bool failed) {
    m_cut.goes_on();
    if (failed && !m_marked) {
      m_lines.fail(at, "the tool found wrong values and does not say in which rows; mend what made "
                       "them and measure again");
    }
    if (!m_expected.empty() && (m_rows == 0 || m_rows % m_expected.size() != 0)) {
      say_missing(at, m_rows);
    }
    m_ended = true;
    m_sizes.reset();
    m_cells.end_table();
  }

  /// #  Rank  0 Group  0 Pid 6899 on host device  0 [0000:04:00] NVIDIA H100 80GB HBM3
  void rank(std::size_t at, const std::vector<std::string_view>& words) {
    const auto after = [&](std::string_view word) -> std::size_t {
      const auto found = std::find(words.begin(), words.end(), word);
      return static_cast<std::size_t>(found - words.begin()) + 1;
    };
    const std::size_t host = after("on");
    const std::size_t device = after("device");
    const auto number = index_of(words[2]);
    const auto index = device < words.size() ? index_of(words[device]) : std::nullopt;
    if (!number || !index || host + 1 >= device) {
      m_lines.fail(at, "must read \"#  Rank  0 Group  0 Pid 1 on HOST device  0 [0000:04:00] "
                       "NAME\"; give the tool's output as it is");
    }
    if (m_ended && *number == 0) { // of the next test
      m_ranks.clear();
    }
    if (*number != static_cast<int>(m_ranks.size())) {
      m_lines.fail(at,
                   fmt::format("is rank {}, but rank {} is to follow; {}", *number, m_ranks.size(),
                               static_cast<std::size_t>(*number) < m_ranks.size()
                                   ? "are these runs that do not know of each other (a build "
                                     "without MPI)? Give one a file"
                                   : "give the list of all ranks"));
    }
    const std::size_t group = after("Group");
    const auto color = group < words.size() ? index_of(words[group]) : std::nullopt;
    NcclRank rank{.number = *number,
                  .group = color.value_or(0),
                  .host = std::string(words[host]),
                  .device = *index,
                  .address = "",
                  .name = ""};
    std::size_t next = device + 1;
    if (next < words.size() && words[next].front() == '[') {
      // What older versions print, "[0x04]", is not all of an address.
      rank.address = pci_address(words[next++].substr(1));
    }
    for (; next < words.size(); ++next) {
      rank.name += (rank.name.empty() ? "" : " ") + std::string(words[next]);
    }
    // Ranks that see one GPU each all call it device 0: only the address tells them apart.
    const std::string which =
        fmt::format("device {} {} of {}", rank.device, rank.address, rank.host);
    m_devices.say(
        m_lines, at, which,
        fmt::format("device {} of {}: {}", rank.device, one_line(rank.host), one_line(rank.name)));
    m_ranks.push_back(std::move(rank));
  }

  /// #  size  count  type  redop  root  time  algbw  busbw  #wrong  time  algbw  busbw  #wrong
  void begin_table(std::size_t at, std::vector<std::string_view> words) {
    close_table(at);
    m_ended = false;
    words.erase(words.begin()); // the #
    Head head;
    bool per_iteration = false;
    head.columns = words.size();
    for (std::size_t i = 0; i < words.size(); ++i) {
      const std::string_view word = words[i];
      if (std::find(k_columns.begin(), k_columns.end(), word) == k_columns.end()) {
        m_lines.fail(at, fmt::format("the column {} is not known here; measure without the option "
                                     "of the tool that adds it{}",
                                     quoted(word),
                                     word == "cputime" ? " (-C), which prints how long processors "
                                                         "took to start the operations"
                                                       : ""));
      }
      head.columns += word == "timestamp" ? 1U : 0U; // a day and a time
      per_iteration = per_iteration || word == "i_min";
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
      } else if (word == "#wrong" && !head.halves.empty()) {
        // Until 2022 there was "error" instead, the largest one, which rounding alone makes.
        head.halves.back().wrong = i;
      }
    }
    const bool complete = words.size() > 4 && words[0] == "size" && words[1] == "count" &&
                          head.type && !head.halves.empty() && head.halves.size() <= 2 &&
                          std::all_of(head.halves.begin(), head.halves.end(),
                                      [](const Half& h) { return h.algbw > 0 && h.busbw > 0; });
    if (!complete) {
      m_lines.fail(at, "the table's columns must be size, count, type, time, algbw, busbw and what "
                       "goes with them; was the line cut off? Give the tool's whole output");
    }
    if (per_iteration) {
      m_out.left_out("statistics of iterations (-J FILE writes the iterations themselves)");
    }
    choose_collective(at, head);
    list_ranks(at, head);
    m_cells.place({m_lines, at}, m_ranks);
    m_cells.set_collective(*m_collective, m_known);
    m_cells.set_remark(std::exchange(m_remark, ""));
    m_head = head;
    m_expected = m_sizes ? m_sizes->list(m_lines.size()) : std::vector<std::uint64_t>();
    m_rows = 0;
    m_lacks_rows = false;
    m_marked = false;
  }

  /// The values of a row in the columns of its table.
  static std::vector<std::string_view> in_columns(std::vector<std::string_view> words,
                                                  const Head& head) {
    // Until 2.13 what sums nothing had an empty redop.
    if (head.redop && words.size() + 1 == head.columns && finite_number(words[*head.redop])) {
      words.insert(words.begin() + static_cast<std::ptrdiff_t>(*head.redop), "none");
    }
    return words;
  }

  /// What the rows of a table say of the collective.
  struct Hints {
    bool sums = false, has_root = false;
    std::vector<std::pair<double, double>> rates; ///< algbw, busbw
    /// Whether bus bandwidths are those of so many ranks.
    [[nodiscard]] bool fit(const Collective& collective, std::size_t ranks) const {
      const double factor = collective.bus_factor(static_cast<double>(ranks));
      return std::all_of(rates.begin(), rates.end(), [&](const auto& rate) {
        const auto& [algbw, busbw] = rate;
        return std::abs(busbw - factor * algbw) <= 1.02 * k_rate_step * (1 + factor);
      });
    }
    /// The least and the most ranks of which they are; the first is the larger where there are
    /// none.
    [[nodiscard]] std::pair<std::size_t, std::size_t> ranks(const Collective& collective) const {
      std::size_t least = 2, most = 1U << 16U;
      while (least <= most && !fit(collective, least)) {
        ++least;
      }
      while (most > least && !fit(collective, most)) {
        --most;
      }
      return {least, most};
    }
  };

  /// Of the table whose heading is line `at`.
  [[nodiscard]] Hints hints(std::size_t at, const Head& head) const {
    Hints hints;
    for (++at; at < m_lines.size() && !contains(m_lines[at], "Out of bounds values"); ++at) {
      const std::vector<std::string_view> words = in_columns(words_of(m_lines[at]), head);
      if (words.size() != head.columns || !is_count(words.front())) {
        continue;
      }
      const std::string_view redop = head.redop ? words[*head.redop] : "none";
      hints.sums = hints.sums || redop != "none";
      hints.has_root = hints.has_root || (head.root && words[*head.root] != "-1");
      for (const Half& half : head.halves) {
        const auto algbw = finite_number(words[half.algbw]);
        const auto busbw = finite_number(words[half.busbw]);
        if (algbw && busbw) {
          hints.rates.emplace_back(*algbw, *busbw);
        }
      }
    }
    return hints;
  }

  /// Those of the file, else as many as were asked for.
  void list_ranks(std::size_t at, const Head& head) {
    if (m_ranks.empty() && !m_asked_ranks) {
      m_lines.fail(
          at, fmt::format("there is no list of ranks before the table (\"#  Rank  0 ...\"){}; give "
                          "the tool's whole output, or, where all ranks were on one machine, their "
                          "number with --ranks",
                          ranks_by_rates(hints(at, head))));
    }
    if (!m_ranks.empty() && m_asked_ranks && *m_asked_ranks != m_ranks.size()) {
      m_lines.fail(at, fmt::format("--ranks {}: the list before the table has {}; leave it out",
                                   *m_asked_ranks, m_ranks.size()));
    }
    for (std::size_t i = m_ranks.size(); i < m_asked_ranks.value_or(0); ++i) {
      const int number = static_cast<int>(i);
      m_ranks.push_back(
          {.number = number, .host = "", .device = number, .address = "", .name = ""});
    }
  }

  /// How many ranks have the bus bandwidths of the table, for a message; empty where several
  /// numbers have.
  [[nodiscard]] std::string ranks_by_rates(const Hints& hints) const {
    const auto [least, most] = hints.ranks(*m_collective);
    return least == most ? fmt::format(", and busbw / algbw is that of {} of {} ranks",
                                       m_collective->name, least)
                         : "";
  }

  void choose_collective(std::size_t at, const Head& head) {
    if (m_asked != nullptr) {
      if (m_collective != nullptr && m_collective != m_asked) {
        m_lines.fail(at, fmt::format("the file is of {0}_perf, but --collective says {1}; leave "
                                     "--collective out",
                                     m_collective->name, m_asked->name));
      }
      m_collective = m_asked;
      m_known = true;
    }
    // "# Collective test concluded: all_reduce_perf" stands below the table.
    for (std::size_t later = at; m_collective == nullptr && later < m_lines.size(); ++later) {
      if (m_lines[later].find(" concluded: ") != std::string_view::npos) {
        find_collective(later, words_of(m_lines[later]));
      }
    }
    if (m_collective == nullptr) {
      const Hints known = hints(at, head);
      std::vector<std::string_view> names;
      std::set<double> factors;
      for (const Collective& c : collectives()) {
        const auto [least, most] = known.ranks(c);
        const bool fits = m_ranks.empty() ? least <= most : known.fit(c, ranks_of_group(m_ranks));
        // sendrecv prints sum in some versions.
        if (fits && c.has_root == known.has_root &&
            (c.sums == known.sums || c.name == "sendrecv")) {
          names.push_back(c.name);
          factors.insert(c.bus_factor(2));
          m_collective = &c;
        }
      }
      m_known = false;
      if (factors.size() == 1 && is_pair() && !known.has_root) {
        return;
      }
      m_lines.fail(at, fmt::format("nothing says which collective this is; add --collective {}",
                                   names.empty() ? "NAME, one of " + collective_names()
                                                 : fmt::format("{}", fmt::join(names, " or "))));
    }
  }

  /// One rank on each of two machines: what they send each other has one bus bandwidth, whichever
  /// collective it is.
  [[nodiscard]] bool is_pair() const {
    return m_ranks.size() == 2 && m_ranks[0].host != m_ranks[1].host;
  }

  void row(std::size_t at, const std::vector<std::string_view>& printed) {
    const Head& head = *m_head;
    const std::vector<std::string_view> words = in_columns(printed, head);
    m_cut.goes_on();
    if (words.size() != head.columns) {
      m_cut.found(at, fmt::format("has {} values, but the table has {} columns; was the line cut "
                                  "off, or did something else write into it? Give the tool's "
                                  "whole output",
                                  words.size(), head.columns));
      return;
    }
    const NcclRow row{.bytes = m_lines.count(at, words[0], "size"),
                      .count = m_lines.count(at, words[1], "count"),
                      .type = words[*head.type],
                      .redop = head.redop ? words[*head.redop] : "none",
                      .root = head.root ? words[*head.root] : "-1"};
    next_size(at, row.bytes);
    m_cells.check_count({m_lines, at}, row);
    for (std::size_t i = 0; i < head.halves.size(); ++i) {
      half(at, words, head.halves[i], row, i > 0);
    }
  }

  void half(std::size_t at, const std::vector<std::string_view>& words, const Half& half,
            const NcclRow& row, bool in_place) {
    double time_us = m_lines.number(at, words[half.time], "time");
    const double algbw = m_lines.number(at, words[half.algbw], "algbw");
    const double busbw = m_lines.number(at, words[half.busbw], "busbw");
    if (row.bytes == 0) {
      return; // sizes below one element a rank move nothing
    }
    if (time_us > 0) {
      const double step_us = time_step(words[half.time], time_us);
      const auto bytes = static_cast<double>(row.bytes);
      m_cells.check_rates({m_lines, at}, bytes / time_us * 1e-3, step_us / time_us, algbw, busbw);
      const bool rate_is_finer = algbw * step_us > k_rate_step * time_us;
      if (has_two_digits(words[half.time]) && rate_is_finer) {
        time_us = std::clamp(bytes / algbw * 1e-3, time_us - step_us, time_us + step_us);
      }
    }
    const bool looked = half.wrong && words[*half.wrong] != "N/A";
    const double wrong = looked ? m_lines.number(at, words[*half.wrong], "#wrong") : 0;
    m_marked = !m_cells.add({m_lines, at}, row,
                            {.in_place = in_place, .time_us = time_us, .wrong = wrong}) ||
               m_marked;
  }

  static constexpr double k_rate_step = 0.005; ///< rates have two digits behind the point

  /// Times from 10 s on are printed so: "1.0e+07".
  static bool has_two_digits(std::string_view printed) { return printed.find('e') != printed.npos; }

  /// How far a time may be from what is printed.
  static double time_step(std::string_view printed, double time_us) {
    if (has_two_digits(printed)) {
      return 0.051 * std::pow(10, std::floor(std::log10(time_us)));
    }
    return time_us < 10 ? 0.05 : 0.006 * time_us;
  }

  const TextLines& m_lines;
  Collector m_out;
  CutRow m_cut{m_lines, m_out};
  NcclCells m_cells{m_out};
  Devices m_devices;
  const Collective* m_asked;
  std::optional<std::uint64_t> m_asked_ranks;
  const Collective* m_collective = nullptr;
  bool m_known = true; ///< whether it is this one, and not another of the same bus bandwidth
  std::string m_version;
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

Profile read_nccl_tests(std::string_view text, const std::string& file,
                        const ImportOptions& options) {
  const TextLines lines(text, file);
  if (is_nccl_json(text)) {
    return read_nccl_json(lines, text, options);
  }
  return NcclTestsReader(lines, options).read(text);
}

} // namespace reckon::import_detail
