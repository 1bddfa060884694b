// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "import/message_cells.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <utility>

namespace reckon::import_detail {
namespace {

constexpr std::string_view k_mark = "# OSU MPI";

enum class Measures { time, rate, two_way_rate, collective };

/// A benchmark by what stands between "# OSU " and " Test", in small letters and without what the
/// buffers are in.
struct Benchmark {
  std::string_view title, name;
  Measures measures;
  /// Of a collective: whether its size is each rank's part, of which the whole is as many as there
  /// are ranks; whether it sums.
  bool parts = false, sums = false;
};

constexpr std::array<Benchmark, 17> k_benchmarks{{
    {"mpi latency", "osu_latency", Measures::time},
    {"mpi bandwidth", "osu_bw", Measures::rate},
    {"mpi bi-directional bandwidth", "osu_bibw", Measures::two_way_rate},
    {"mpi_put latency", "osu_put_latency", Measures::time},
    {"mpi_put bandwidth", "osu_put_bw", Measures::rate},
    {"mpi_put bi-directional bandwidth", "osu_put_bibw", Measures::two_way_rate},
    {"mpi_get latency", "osu_get_latency", Measures::time},
    {"mpi_get bandwidth", "osu_get_bw", Measures::rate},
    {"mpi allreduce latency", "all_reduce", Measures::collective, false, true},
    {"mpi allgather latency", "all_gather", Measures::collective, true},
    {"mpi reduce_scatter latency", "reduce_scatter", Measures::collective, false, true},
    {"mpi broadcast latency", "broadcast", Measures::collective},
    {"mpi reduce latency", "reduce", Measures::collective, false, true},
    {"mpi all-to-all personalized exchange latency", "alltoall", Measures::collective, true},
    {"mpi gather latency", "gather", Measures::collective, true},
    {"mpi scatter latency", "scatter", Measures::collective, true},
    {"mpi barrier latency", "barrier", Measures::collective},
}};

/// Of the word that names a column each has one.
bool ends_column(std::string_view word) {
  return word.ends_with(')') || word == "MB/s" || word == "Messages/s" || word == "Validation" ||
         word == "Iterations";
}

std::string in_small_letters(std::string_view text) {
  std::string out(text);
  std::transform(out.begin(), out.end(), out.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return out;
}

class OsuReader {
public:
  OsuReader(const TextLines& lines, const ImportOptions& options)
      : m_lines(lines), m_machines(machine_ids(options)), m_ranks(options.ranks),
        m_out(lines.file(), options), m_cells(lines, options, m_out) {}

  Profile read(std::string_view text) {
    for (std::size_t at = 0; at < m_lines.size(); ++at) {
      line(at);
    }
    end_test();
    if (m_wide) {
      m_out.left_out("smallest and largest times, percentiles, iterations");
    }
    return m_out.finish("OSU micro-benchmarks" + (m_version.empty() ? "" : " " + m_version), text,
                        "osu_latency, osu_bw, osu_bibw, those of put and get, and collectives that "
                        "block");
  }

private:
  void line(std::size_t at) {
    const std::string_view line = trimmed(m_lines[at]);
    const std::vector<std::string_view> words = words_of(line);
    if (words.empty()) {
      return;
    }
    if (line.starts_with(k_mark)) {
      begin_test(at, line);
    } else if (line.starts_with("# Datatype: ")) {
      m_datatype = line.substr(12, line.find_last_not_of('.') - 11);
    } else if (line.starts_with("# Send Buffer on ")) {
      buffers(line);
    } else if (line.starts_with("# Synchronization: ")) {
      remark(line.substr(19));
    } else if (line.starts_with("# Size") || line.starts_with("# Avg Latency")) {
      begin_table(at, words);
    } else if (m_columns > 0 && is_row(words)) {
      row(at, words);
    }
  }

  /// # Send Buffer on DEVICE (D) and Receive Buffer on MANAGED (MH)
  void buffers(std::string_view line) {
    remark(line.substr(2));
    const std::size_t second = std::min(line.find(" and Receive Buffer"), line.size());
    const std::array<std::string_view, 2> sides{line.substr(0, second), line.substr(second)};
    for (std::size_t process = 0; process < sides.size(); ++process) {
      if (!contains(sides[process], "HOST") && !contains(sides[process], "(MH)")) {
        // Each takes the GPU of its number on its machine.
        const bool alone = m_machines.size() != 2 || m_machines[0] != m_machines[1];
        m_table.gpus[process] = GpuEnd{.number = alone ? 0 : static_cast<int>(process)};
      }
    }
    if (m_table.gpus[0] || m_table.gpus[1]) {
      remark("GPUs by the processes' numbers on their machines");
    }
  }

  void remark(std::string_view text) {
    m_table.remark += (m_table.remark.empty() ? "" : "; ") + one_line(text);
  }

  /// # OSU MPI-CUDA Bandwidth Test v7.2
  void begin_test(std::size_t at, std::string_view line) {
    end_test();
    const std::size_t end = std::min(line.find(" Test"), line.size());
    std::string title = in_small_letters(line.substr(6, end - 6));
    const std::size_t space = std::min(title.find(' '), title.size());
    const std::size_t dash = std::min(title.find('-'), space);
    const std::string buffers = title.substr(dash, space - dash);
    title.erase(dash, space - dash);
    if (const std::size_t v = line.find('v', end); v != line.npos) {
      m_version = one_line(line.substr(v, line.find(' ', v) - v));
    }
    const auto found = std::find_if(k_benchmarks.begin(), k_benchmarks.end(),
                                    [&](const Benchmark& b) { return b.title == title; });
    m_benchmark = found == k_benchmarks.end() ? nullptr : &*found;
    m_begun = true;
    m_title = std::string(line.substr(2, end - 2));
    m_table = {};
    m_table.line = at;
    if (m_benchmark != nullptr) {
      const bool put = title.starts_with("mpi_put");
      m_table.what = m_benchmark->name;
      m_table.backwards = title.starts_with("mpi_get");
      m_table.transport = "mpi" + buffers + (put ? " put" : m_table.backwards ? " get" : "");
    }
    // Before 7 there was no choice: collectives sum MPI_FLOAT.
    m_datatype = m_version < "v7" ? "MPI_FLOAT" : "";
  }

  void begin_table(std::size_t at, const std::vector<std::string_view>& words) {
    if (!m_begun) {
      m_lines.fail(at, "a table begins, but no line above says of which test (\"# OSU MPI Latency "
                       "Test v7.5\"); give the tool's whole output");
    }
    m_columns = static_cast<std::size_t>(std::count_if(words.begin(), words.end(), &ends_column));
    m_has_size = words[1] == "Size";
    m_columns += m_has_size ? 1 : 0;
    const auto first = std::find_if(words.begin() + 2, words.end(), &ends_column);
    const std::string value =
        first == words.end() ? "" : fmt::format("{}", fmt::join(words.begin() + 1, first + 1, " "));
    if (m_benchmark != nullptr && first != words.end() && !contains(value, "Latency") &&
        !contains(value, "Bandwidth")) {
      m_lines.fail(at, fmt::format("the columns {} are not known here; measure without the option "
                                   "that adds them",
                                   quoted(std::string_view(value))));
    }
    const auto validation = std::find(words.begin(), words.end(), "Validation");
    m_validated = validation != words.end();
    if (m_columns < (m_has_size ? 2U : 1U)) {
      m_lines.fail(at, "the table's columns must be the size and a time in us or a rate in MB/s; "
                       "was the line cut off? Give the tool's whole output");
    }
    m_wide = m_wide || (m_benchmark != nullptr &&
                        m_columns > (m_has_size ? 2U : 1U) + (m_validated ? 1U : 0U));
  }

  /// Other programs may write between the rows.
  [[nodiscard]] bool is_row(const std::vector<std::string_view>& words) const {
    const auto is_number = [](std::string_view word) {
      return word.find_first_not_of("0123456789.") == word.npos;
    };
    const bool size = words[0].find_first_not_of("0123456789") == words[0].npos;
    return m_has_size
               ? size && (words.size() == 1 || is_number(words[1]) || words.size() == m_columns)
               : is_number(words[0]);
  }

  void row(std::size_t at, const std::vector<std::string_view>& words) {
    const std::size_t value_at = m_has_size ? 1 : 0;
    m_cut.goes_on();
    if (words.size() != m_columns || !has_decimals(words[value_at], 2) ||
        (m_validated && words.back() != "Pass" && words.back() != "Fail")) {
      m_cut.found(at, fmt::format("must have {} values, numbers with two decimals; was the line "
                                  "cut off, or did something else write into it? Give the tool's "
                                  "whole output",
                                  m_columns));
      return;
    }
    const bool wrong = m_validated && words.back() == "Fail";
    m_rows.push_back({.line = at,
                      .bytes = m_has_size ? m_lines.count(at, words[0], "size") : 0,
                      .value = m_lines.number(at, words[value_at], "the value"),
                      .wrong = wrong,
                      .datatype = m_datatype});
  }

  void end_test() {
    m_cut.ends();
    if (std::exchange(m_begun, false)) {
      if (m_benchmark == nullptr) {
        m_out.left_out(m_title);
      } else if (m_benchmark->measures == Measures::collective) {
        collective();
      } else {
        messages();
      }
    }
    m_columns = 0;
    m_rows.clear();
  }

  void messages() {
    const bool time = m_benchmark->measures == Measures::time;
    for (const Row& row : m_rows) {
      if (row.wrong) {
        m_lines.fail(row.line, "the validation failed: the data were wrong; mend the MPI library "
                               "and measure again");
      }
      m_table.rows.push_back({row.bytes, row.value * (time ? 1e-6 : 1e6)});
    }
    if (m_benchmark->name == "osu_latency") {
      m_table.both = true;
      remark("half of a round trip");
    }
    if (m_benchmark->measures == Measures::time) {
      m_cells.times(m_table);
    } else {
      m_cells.rates(m_table, m_benchmark->measures == Measures::two_way_rate);
    }
  }

  void collective() {
    if (!m_ranks) {
      m_lines.fail(m_table.line,
                   fmt::format("{} does not say how many ranks took part; add --ranks", m_title));
    }
    if (m_rows.empty()) {
      m_out.cut_off(m_lines, m_table.line, fmt::format("{} has no rows below this", m_title));
    }
    CellKey key;
    key.sources = static_cast<int>(*m_ranks);
    key.transport = m_table.transport;
    if (m_machines.size() == 1) {
      key.from = m_machines.front();
    }
    for (const Row& row : m_rows) {
      name(key, row.datatype);
      key.bytes = row.bytes * (m_benchmark->parts ? *m_ranks : 1);
      if (row.wrong) {
        m_out.absent(key, k_time, CellStatus::mismatch, "the validation failed");
      } else if (row.value > 0) {
        m_out.add(key, k_time, row.value * 1e-6, m_table.remark);
      } else {
        m_out.absent(key, k_time, CellStatus::failed, "the tool prints 0.00");
      }
    }
  }

  /// Documents know few types; others are part of the name.
  void name(CellKey& key, const std::string& datatype) const {
    key.test = fmt::format("mpi_{}", m_benchmark->name);
    key.dtype = "";
    if (!m_benchmark->sums || !datatype.starts_with("MPI_")) {
      return;
    }
    const std::string type = in_small_letters(datatype.substr(4));
    if (type == "float") {
      key.dtype = "fp32";
    } else if (is_plain_word(type) && type.size() <= 32) {
      key.test += "_" + type;
    }
  }

  struct Row {
    std::size_t line = 0;
    std::uint64_t bytes = 0;
    double value = 0;
    bool wrong = false;
    std::string datatype; ///< "MPI_FLOAT"; empty: not said
  };

  const TextLines& m_lines;
  std::vector<std::string> m_machines;
  std::optional<std::uint64_t> m_ranks;
  Collector m_out;
  MessageCells m_cells;
  CutRow m_cut{m_lines, m_out};
  std::string m_version;
  bool m_begun = false;
  const Benchmark* m_benchmark = nullptr; ///< of the test that began last; null: not known here
  std::string m_title, m_datatype;
  std::size_t m_columns = 0; ///< 0: there is no table yet
  bool m_has_size = true, m_validated = false;
  bool m_wide = false;
  MessageTable m_table;
  std::vector<Row> m_rows;
};

} // namespace

bool is_osu_mark(std::string_view line) {
  return trimmed(line).starts_with(k_mark);
}

Profile read_osu(std::string_view text, const std::string& file, const ImportOptions& options) {
  const TextLines lines(text, file);
  return OsuReader(lines, options).read(text);
}

} // namespace reckon::import_detail
