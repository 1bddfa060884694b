// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "import/collectives.hpp"
#include "import/log_reader.hpp"
#include "import/message_cells.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

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

class OsuReader : public LogReader {
public:
  OsuReader(const TextLines& lines, const ImportOptions& options)
      : LogReader(
            lines, options, "OSU micro-benchmarks",
            "osu_latency, osu_bw, osu_bibw, those of put and get, and collectives that block"),
        m_machines(machine_ids(options)), m_cells(lines, options, m_out) {}

private:
  void line(const Line& line) override {
    if (line.text.starts_with(k_mark)) {
      begin_test(line);
    } else if (const auto type = line.behind("# Datatype: ")) {
      m_datatype = type->substr(0, type->find_last_not_of('.') + 1);
    } else if (line.text.starts_with("# Send Buffer on ")) {
      buffers(line.text);
    } else if (const auto how = line.behind("# Synchronization: ")) {
      append(m_table.remark, one_line(*how));
    } else if (line.text.starts_with("# Size") || line.text.starts_with("# Avg Latency")) {
      begin_table(line);
    } else if (m_columns > 0 && is_row(line.words)) {
      row(line);
    }
  }

  void end() override { end_test(); }

  /// # Send Buffer on DEVICE (D) and Receive Buffer on MANAGED (MH)
  void buffers(std::string_view line) {
    append(m_table.remark, one_line(line.substr(2)));
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
      append(m_table.remark, "GPUs by the processes' numbers on their machines");
    }
  }

  /// # OSU MPI-CUDA Bandwidth Test v7.2
  void begin_test(const Line& line) {
    end_test();
    const std::size_t end = std::min(line.text.find(" Test"), line.text.size());
    m_title = line.text.substr(2, end - 2);
    std::string title = in_small_letters(line.text.substr(6, end - 6));
    const std::size_t space = std::min(title.find(' '), title.size());
    const std::size_t dash = std::min(title.find('-'), space);
    const std::string buffers = title.substr(dash, space - dash);
    title.erase(dash, space - dash);
    if (const std::size_t v = line.text.find('v', end); v != line.text.npos) {
      m_version = one_line(line.text.substr(v, line.text.find(' ', v) - v));
    }
    // Before 7 there was no choice: collectives sum MPI_FLOAT.
    m_datatype = m_version < "v7" ? "MPI_FLOAT" : "";
    const auto* const found = std::ranges::find(k_benchmarks, title, &Benchmark::title);
    m_benchmark = found == k_benchmarks.end() ? nullptr : found;
    m_table = {};
    m_table.line = line.at;
    if (m_benchmark != nullptr) {
      const bool put = title.starts_with("mpi_put");
      m_table.what = m_benchmark->name;
      m_table.backwards = title.starts_with("mpi_get");
      m_table.transport = "mpi" + buffers + (put ? " put" : m_table.backwards ? " get" : "");
    }
  }

  void begin_table(const Line& line) {
    if (m_title.empty()) {
      line.fail("a table begins, but no line above says of which test (\"# OSU MPI Latency Test "
                "v7.5\"); give the tool's whole output");
    }
    const auto first = std::find_if(line.words.begin() + 2, line.words.end(), &ends_column);
    m_has_size = line[1] == "Size";
    m_validated = line.has("Validation");
    const std::size_t least = m_has_size ? 2 : 1;
    m_columns =
        least - 1 + static_cast<std::size_t>(std::ranges::count_if(line.words, &ends_column));
    if (first == line.words.end() || m_columns < least) {
      line.fail_as_cut("the table's columns must be the size and a time in us or a rate in MB/s");
    }
    const std::string value = fmt::format("{}", fmt::join(line.words.begin() + 1, first + 1, " "));
    if (m_benchmark == nullptr) {
      return;
    }
    if (!contains(value, "Latency") && !contains(value, "Bandwidth")) {
      line.fail(fmt::format("the columns {} are not known here; measure without the option that "
                            "adds them",
                            quoted(std::string_view(value))));
    }
    if (m_columns > least + (m_validated ? 1 : 0)) {
      m_out.left_out("smallest and largest times, percentiles, iterations");
    }
    if (m_benchmark->measures == Measures::collective && !m_options.ranks) {
      m_lines.fail(m_table.line,
                   fmt::format("{} does not say how many ranks took part; add --ranks", m_title));
    }
  }

  /// Other programs may write between the rows.
  [[nodiscard]] bool is_row(const std::vector<std::string_view>& words) const {
    const auto is_number = [](std::string_view word) {
      return word.find_first_not_of("0123456789.") == word.npos;
    };
    return m_has_size ? is_digits(words[0]) &&
                            (words.size() == 1 || is_number(words[1]) || words.size() == m_columns)
                      : is_number(words[0]);
  }

  void row(const Line& line) {
    const std::string_view last = line.words.back(), value = line[m_has_size ? 1 : 0];
    if (!is_whole(line, m_columns,
                  has_decimals(value, 2) && (!m_validated || last == "Pass" || last == "Fail"))) {
      return;
    }
    const bool wrong = m_validated && last == "Fail";
    const MessageRow row{m_has_size ? line.count(line[0], "size") : 0,
                         line.number(value, "the value")};
    if (m_benchmark == nullptr) {
      return;
    }
    if (m_benchmark->measures == Measures::collective) {
      collective(line, row, wrong);
    } else if (wrong) {
      line.fail("the validation failed: the data were wrong; mend the MPI library and measure "
                "again");
    }
    const double unit = m_benchmark->measures == Measures::time ? 1e-6 : 1e6;
    m_table.rows.push_back({row.bytes, row.value * unit});
  }

  void end_test() {
    ends_in_row();
    m_columns = 0;
    const std::string title = std::exchange(m_title, "");
    if (title.empty()) {
      return;
    }
    if (m_benchmark == nullptr) {
      m_out.left_out(title);
      return;
    }
    switch (m_benchmark->measures) {
    case Measures::collective:
      if (m_table.rows.empty()) {
        cut_off(m_table.line, fmt::format("{} has no rows below this", title));
      }
      break;
    case Measures::time:
      if (m_benchmark->name == "osu_latency") {
        m_table.both = true;
        append(m_table.remark, "half of a round trip");
      }
      m_cells.times(m_table);
      break;
    default:
      m_cells.rates(m_table, m_benchmark->measures == Measures::two_way_rate);
    }
  }

  void collective(const Line& line, const MessageRow& row, bool wrong) {
    CellKey key{.test = fmt::format("mpi_{}", m_benchmark->name),
                .from = m_machines.size() == 1 ? m_machines.front() : "",
                .bytes = row.bytes * (m_benchmark->parts ? *m_options.ranks : 1),
                .sources = static_cast<int>(*m_options.ranks),
                .transport = m_table.transport};
    if (m_benchmark->sums && m_datatype.starts_with("MPI_")) {
      name_type(key, in_small_letters(m_datatype.substr(4)), line.place());
    }
    if (wrong) {
      m_out.absent(key, k_time, CellStatus::mismatch, "the validation failed");
    } else {
      m_out.add_printed(key, k_time, row.value * 1e-6, m_table.remark);
    }
  }

  std::vector<std::string> m_machines;
  MessageCells m_cells;
  const Benchmark* m_benchmark = nullptr; ///< of the test that began last; null: not known here
  std::string m_title;                    ///< empty: none has begun
  std::string m_datatype;                 ///< "MPI_FLOAT"; empty: not said
  std::size_t m_columns = 0;              ///< 0: there is no table yet
  bool m_has_size = true, m_validated = false;
  MessageTable m_table;
};

} // namespace

Profile read_osu(const TextLines& lines, const ImportOptions& options) {
  return OsuReader(lines, options).read();
}

} // namespace reckon::import_detail
