// SPDX-License-Identifier: Apache-2.0
#include "core/csv.hpp"
#include "core/error.hpp"
#include "core/json.hpp"
#include "core/units.hpp"
#include "documents/cells.hpp"
#include "import/collector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace reckon::import_detail {
namespace {

/// Warnings of the driver may stand before and after the document, in lines of their own. What is
/// not of it becomes blank, so that lines keep their numbers.
std::string only_json(std::string_view text) {
  std::string out(text);
  const std::size_t begin = out.starts_with('{') ? 0 : out.find("\n{");
  const std::size_t end = out.rfind("}\n");
  if (begin == out.npos || end == out.npos || end < begin) {
    return out;
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    if ((i < begin || i > end) && out[i] != '\n') {
      out[i] = ' ';
    }
  }
  return out;
}

/// What a test's numbers are between.
enum class Ends {
  host_to_gpu, ///< one row
  gpu_to_host,
  gpu_of_host, ///< a GPU reads memory of the host
  inside,      ///< of a GPU
  all_to_one,
  one_to_all,
  pairs
};

struct Test {
  Ends ends = Ends::pairs;
  bool reads = false, both_ways = false;
};

std::optional<Test> test_named(std::string_view name) {
  Test test{.ends = Ends::pairs,
            .reads = contains(name, "_read_"),
            .both_ways = contains(name, "bidirectional")};
  const auto starts = [&](std::string_view with) { return name.starts_with(with); };
  if (starts("host_to_device_") || starts("host_to_all_")) {
    test.ends = Ends::host_to_gpu;
  } else if (starts("device_to_host_") || starts("all_to_host_")) {
    test.ends = Ends::gpu_to_host;
  } else if (name == k_host_device_latency) {
    test.ends = Ends::gpu_of_host;
  } else if (starts(k_device_local_copy)) {
    test.ends = Ends::inside;
  } else if (starts("all_to_one_")) {
    test.ends = Ends::all_to_one;
  } else if (starts("one_to_all_")) {
    test.ends = Ends::one_to_all;
  } else if (!starts("device_to_device_")) {
    return std::nullopt;
  }
  return test;
}

/// How many matrices with this many columns the test prints one below the other, 0: its rows are
/// not as it prints them. Tests of both ways may have three: those of each way, then the sums.
std::size_t matrices_of(const Test& test, const std::string& description, std::size_t rows,
                        std::size_t columns) {
  const std::size_t one = test.ends == Ends::pairs ? columns : 1;
  const bool three = test.ends == Ends::pairs && test.both_ways && rows == 3 * one &&
                     contains(description, "Total");
  return three ? 3 : rows == one ? 1 : 0;
}

/// What the tool prints for people, as the document that it prints with --json. Throws Error{input}
/// where a matrix is not whole.
class PlainText {
public:
  PlainText(const TextLines& lines, Collector& out) : m_lines(lines), m_collector(out) {}

  [[nodiscard]] Json document() {
    for (std::size_t at = 0; at < m_lines.size(); ++at) {
      read_line(at);
    }
    end_test(m_lines.size());
    m_out["testcases"] = std::move(m_tests);
    return {{"nvbandwidth", std::move(m_out)}};
  }

private:
  void read_line(std::size_t at) {
    const std::string_view line = m_lines[at];
    const auto after = [&](std::string_view begin) {
      return line.starts_with(begin) ? std::optional(trimmed(line.substr(begin.size())))
                                     : std::nullopt;
    };
    const auto named = [&](std::string_view begin) { // "Running host_to_device_memcpy_ce."
      auto name = after(begin);
      const bool one = name && name->ends_with('.') && !contains(*name, " ");
      return one ? std::optional(std::string(name->substr(0, name->size() - 1))) : std::nullopt;
    };
    if (const auto version = after("nvbandwidth Version:")) {
      m_out["version"] = *version;
    } else if (const auto driver = after("Driver Version:")) {
      m_out["Driver Version"] = *driver;
    } else if (const auto runtime = after("CUDA Runtime Version:")) {
      m_out["CUDA Runtime Version"] = *runtime;
    } else if (const auto device = after("Device "); device && m_name.empty()) {
      if (const std::size_t colon = device->find(':'); colon != device->npos) {
        m_devices.say(m_lines, at, std::string(device->substr(0, colon)),
                      fmt::format("device {}", one_line(*device)));
      }
      m_out["GPU Device list"].push_back(*device);
    } else if (const auto running = named("Running ")) {
      end_test(at);
      m_name = *running;
    } else if (const auto waived = named("Waiving ")) {
      end_test(at);
      m_tests.push_back({{"name", *waived}, {"status", "Waived"}});
    } else if (!m_name.empty()) {
      read_of_test(at);
    } else if (is_nvbandwidth_heading(line)) {
      m_lines.fail(at,
                   "a matrix without the line \"Running TEST.\" above it, which names its test; "
                   "give the tool's whole output");
    }
  }

  /// A line behind "Running ...".
  void read_of_test(std::size_t at) {
    const std::string_view line = m_lines[at];
    const std::vector<std::string_view> words = words_of(line);
    if (contains(line, "(GB/s)") || contains(line, "(ns)")) {
      m_description = line;
      m_heading = at;
      m_columns = 0;
    } else if (line.starts_with("SUM ")) {
      end_test(at);
    } else if (line.starts_with("Waived") || line.starts_with("WAIVED")) {
      m_tests.push_back({{"name", std::exchange(m_name, "")}, {"status", "Waived"}});
    } else if (words.empty() || m_description.empty() || !index_of(words.front())) {
      m_columns = words.empty() ? m_columns : 0; // of other words no row follows
    } else if (m_columns == 0) {
      for (std::size_t i = 0; i < words.size(); ++i) {
        if (index_of(words[i]) != static_cast<int>(i)) {
          m_lines.fail(at, fmt::format("the columns of {} must be GPUs 0, 1 and so on; give the "
                                       "tool's output as it is",
                                       m_name));
        }
      }
      m_columns = words.size();
    } else if (words.size() < m_columns + 1 && at + 1 == m_lines.size()) {
      m_rows = Json::array(); // cut off
    } else if (words.size() != m_columns + 1) {
      m_lines.fail(at, fmt::format("a row of {} has {} values, but there are {} columns; was the "
                                   "line cut off? Give the tool's whole output",
                                   m_name, words.size() - 1, m_columns));
    } else {
      m_rows.push_back(Json::array());
      for (std::size_t i = 1; i < words.size(); ++i) {
        if (words[i] != "N/A") {
          static_cast<void>(m_lines.number(at, words[i], fmt::format("a value of {}", m_name)));
        }
        m_rows.back().push_back(words[i]);
      }
    }
  }

  /// A test that was begun has its numbers, or died.
  void end_test(std::size_t at) {
    if (m_name.empty()) {
      return;
    }
    if (at >= m_lines.size() && !is_whole()) { // the run ended in it
      m_collector.cut_off(m_lines, at,
                          fmt::format("the file ends before all numbers of {}", m_name));
      m_rows = Json::array();
    }
    Json test{{"name", m_name}, {"status", m_rows.empty() ? "Error" : "Passed"}};
    if (!m_rows.empty()) {
      check_matrix();
      test["bandwidth_description"] = m_description;
      test["bandwidth_matrix"] = std::move(m_rows);
    }
    m_tests.push_back(std::move(test));
    m_name.clear();
    m_description.clear();
    m_rows = Json::array();
    m_columns = 0;
  }

  [[nodiscard]] bool is_whole() const {
    const auto test = test_named(m_name);
    return !m_rows.empty() &&
           (!test || matrices_of(*test, m_description, m_rows.size(), m_rows.front().size()) > 0);
  }

  void check_matrix() {
    const auto test = test_named(m_name);
    const std::size_t rows = m_rows.size(), columns = m_rows.front().size();
    if (test && matrices_of(*test, m_description, rows, columns) == 0) {
      m_lines.fail(
          m_heading,
          fmt::format("{} rows of {} values are below this, which {} cannot have; give the "
                      "tool's whole output",
                      rows, columns, m_name));
    }
    if (test) {
      m_devices.say(m_lines, m_heading, "count", counted(columns, "GPU"));
    }
  }

  const TextLines& m_lines;
  Collector& m_collector;
  Devices m_devices;
  Json m_out = Json::object(), m_tests = Json::array();
  std::string m_name; ///< of the test whose numbers follow; empty: none
  std::string m_description;
  std::size_t m_heading = 0;   ///< its line
  std::size_t m_columns = 0;   ///< of the matrix in hand; 0: it has not begun
  Json m_rows = Json::array(); ///< of all matrices of the test, one below the other
};

/// A value of the matrix; absent for "N/A".
std::optional<double> value_of(const JsonView& view) {
  if (view.raw().is_number()) {
    return view.non_negative();
  }
  const std::string text = view.string();
  if (text == "N/A") {
    return std::nullopt;
  }
  const auto value = finite_number(text);
  if (!value || *value < 0) {
    view.fail(fmt::format("is \"{}\"; must be a number that is not negative, or N/A: measure again",
                          one_line(text)));
  }
  return value;
}

using Matrix = std::vector<std::vector<std::optional<double>>>;

Matrix matrix_of(const JsonView& view) {
  Matrix matrix;
  for (const JsonView& row : view.elements()) {
    auto& values = matrix.emplace_back();
    for (const JsonView& value : row.elements()) {
      values.push_back(value_of(value));
    }
    if (values.empty() || values.size() != matrix.front().size()) {
      row.fail(fmt::format("has {} values, but the first row has {}; give the tool's whole output",
                           values.size(), matrix.front().size()));
    }
  }
  if (matrix.empty()) {
    view.fail("has no rows; give the tool's whole output");
  }
  return matrix;
}

class NvbandwidthReader {
public:
  explicit NvbandwidthReader(Collector& out) : m_out(out) {}

  Profile read(std::string_view text, const Json& json, const std::string& file) {
    const JsonView root(json, file);
    const JsonView view = root.at("nvbandwidth");
    if (const auto error = view.find("error")) {
      error->fail(fmt::format("the tool says: {}; give the output of a run that worked",
                              one_line(error->raw().dump())));
    }
    devices(view);
    for (const auto& [key, name] :
         {std::pair("CUDA Runtime Version", "nvbandwidth CUDA runtime"),
          std::pair("Driver Version", "nvbandwidth driver"), std::pair("warning", "nvbandwidth")}) {
      if (const auto value = view.find(key)) {
        m_out.note(name, value->raw().is_string() ? value->string() : value->raw().dump());
      }
    }
    if (const auto host = view.find("Hostname"); host && host->raw().is_string()) {
      m_out.host_name(m_out.machine(), host->string());
    }
    for (const JsonView& testcase : view.at("testcases").elements()) {
      if (!read_test(testcase)) {
        m_out.left_out(testcase.at("name").string());
      }
    }
    const auto version = view.find("version");
    const std::string number = version && version->raw().is_string() ? version->string() : "";
    return m_out.finish(
        number.empty() ? "nvbandwidth" : fmt::format("nvbandwidth {}", one_line(number)), text,
        "copies between the host and a GPU, between GPUs and inside a GPU, and latencies");
  }

private:
  /// "0: NVIDIA H100 80GB HBM3 (00000000:07:00): (host)"
  void devices(const JsonView& view) {
    for (const char* key : {"GPU Device list", "GPU Device info"}) {
      const auto list = view.find(key);
      if (!list || !list->raw().is_array()) {
        continue;
      }
      for (const JsonView& item : list->elements()) {
        if (!item.raw().is_string()) {
          continue;
        }
        const std::string text = item.string();
        const std::size_t colon = text.find(": ");
        const std::size_t open = text.find(" (", std::min(colon, text.size()));
        const auto index = index_of(std::string_view(text).substr(0, std::min(colon, text.size())));
        if (!index || colon == text.npos) {
          continue;
        }
        const std::string name =
            text.substr(colon + 2, open == text.npos ? text.npos : open - colon - 2);
        m_out.describe_gpu(
            m_out.gpu(*index), name,
            open == text.npos ? "" : pci_address(std::string_view(text).substr(open + 2)));
      }
    }
  }

  /// False when the test is not known.
  bool read_test(const JsonView& testcase) {
    const std::string name = testcase.at("name").name();
    const std::string status = testcase.at("status").string();
    const auto test = test_named(name);
    if (!test || !is_plain_word(name)) {
      return false;
    }
    if (status != "Passed") {
      const auto error = testcase.find("error");
      CellKey key;
      key.test = name;
      key.from = m_out.machine();
      m_out.absent(key, contains(name, "latency") ? k_time : k_rate,
                   status == "Waived" ? CellStatus::unsupported : CellStatus::failed,
                   status == "Waived" ? "nvbandwidth waived it: nothing here that it could run on"
                                      : fmt::format("nvbandwidth says {}{}", one_line(status),
                                                    error && error->raw().is_string()
                                                        ? ": " + one_line(error->string())
                                                        : ""));
      return true;
    }
    const JsonView description = testcase.at("bandwidth_description");
    const std::string text = description.string();
    const bool nanoseconds = contains(text, "(ns)");
    if (!nanoseconds && !contains(text, "(GB/s)")) {
      description.fail(fmt::format("is \"{}\", without (GB/s) or (ns); reckon does not know this "
                                   "version of nvbandwidth",
                                   one_line(text)));
    }
    const JsonView view = testcase.at("bandwidth_matrix");
    const Matrix matrix = matrix_of(view);
    const std::size_t columns = matrix.front().size();
    const std::size_t matrices = matrices_of(*test, text, matrix.size(), columns);
    if (matrices == 0) {
      view.fail(fmt::format("has {} rows of {} values, which {} cannot have; give the tool's whole "
                            "output",
                            matrix.size(), columns, name));
    }
    const bool three = matrices == 3;
    const std::size_t rows = matrix.size() / matrices;
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t column = 0; column < columns; ++column) {
        const auto& value = matrix[row + (three ? 2 * rows : 0)][column];
        std::string remark;
        if (three && matrix[row][column] && matrix[row + rows][column]) {
          remark = fmt::format("{} and {} GB/s", *matrix[row][column], *matrix[row + rows][column]);
        }
        add(name, *test, three, static_cast<int>(row), static_cast<int>(column), value, nanoseconds,
            std::move(remark));
      }
    }
    return true;
  }

  void add(const std::string& name, const Test& test, bool is_sum, int row, int column,
           const std::optional<double>& value, bool nanoseconds, std::string remark) {
    CellKey key;
    key.test = name;
    const std::string gpu = m_out.gpu(column);
    switch (test.ends) {
    case Ends::host_to_gpu:
    case Ends::all_to_one:
      key.from = m_out.machine();
      key.to = gpu;
      break;
    case Ends::gpu_to_host:
    case Ends::gpu_of_host:
    case Ends::one_to_all:
      key.from = gpu;
      key.to = m_out.machine();
      break;
    case Ends::inside:
      key.from = key.to = gpu;
      break;
    case Ends::pairs:
      // The row's GPU is the one that copies, so that bytes of a read come from the column. (The
      // arrows in the descriptions of read and write point the other way.) A thread of the row's
      // GPU loads what the latency is of.
      key.from = test.reads && !test.both_ways ? gpu : m_out.gpu(row);
      key.to = test.reads && !test.both_ways ? m_out.gpu(row) : gpu;
      break;
    }
    if (!nanoseconds) {
      const bool two_gpus = test.ends == Ends::pairs || test.ends == Ends::one_to_all ||
                            test.ends == Ends::all_to_one;
      key.direction = is_sum ? "two_way" : "one_way";
      key.state = test.ends == Ends::inside ? "" : two_gpus ? "peer" : "pinned";
      if (test.both_ways && !is_sum) {
        remark = "of one way, while the other is in use too";
      }
    }
    const std::string_view unit = nanoseconds ? k_time : k_rate;
    const bool itself = test.ends == Ends::pairs && row == column;
    if (value && *value > 0) {
      m_out.add(key, unit, *value * (nanoseconds ? 1e-9 : 1e9), remark);
    } else if (!itself) {
      m_out.absent(key, unit, value ? CellStatus::failed : CellStatus::unsupported,
                   value ? "nvbandwidth prints 0" : "N/A: no peer access between the two");
    }
  }

  Collector& m_out;
};

} // namespace

/// "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)"
bool is_nvbandwidth_heading(std::string_view line) {
  return line.starts_with("mem") && contains(line, "GPU(column)") &&
         (contains(line, "(GB/s)") || contains(line, "(ns)"));
}

Profile read_nvbandwidth(std::string_view text, const std::string& file,
                         const ImportOptions& options) {
  const TextLines lines(text, file);
  Collector out(file, options);
  const Json json = contains(text, "\"nvbandwidth\"") ? parse_json(only_json(lines.text()), file)
                                                      : PlainText(lines, out).document();
  return NvbandwidthReader(out).read(text, json, file);
}

} // namespace reckon::import_detail
