// SPDX-License-Identifier: Apache-2.0
#include "core/csv.hpp"
#include "core/error.hpp"
#include "core/json.hpp"
#include "core/units.hpp"
#include "documents/cells.hpp"
#include "import/log_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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
  inside, ///< of a GPU
  pairs
};

constexpr std::array<std::pair<std::string_view, Ends>, 9> k_nvbandwidth_tests{
    {{"host_to_device_", Ends::host_to_gpu},
     {"host_to_all_", Ends::host_to_gpu},
     {"all_to_one_", Ends::host_to_gpu},
     {"device_to_host_", Ends::gpu_to_host},
     {"all_to_host_", Ends::gpu_to_host},
     {"one_to_all_", Ends::gpu_to_host},
     {k_host_device_latency, Ends::gpu_to_host}, // a GPU reads memory of the host
     {k_device_local_copy, Ends::inside},
     {"device_to_device_", Ends::pairs}}};

std::optional<Ends> ends_of(std::string_view name) {
  const auto* const found = std::ranges::find_if(
      k_nvbandwidth_tests, [&](const auto& test) { return name.starts_with(test.first); });
  return found == k_nvbandwidth_tests.end() ? std::nullopt : std::optional(found->second);
}

bool goes_both_ways(std::string_view name) {
  return contains(name, "bidirectional");
}

/// How many matrices with this many columns the test prints one below the other, 0: its rows are
/// not as it prints them. Tests of both ways may have three: those of each way, then the sums.
std::size_t matrices_of(const std::string& name, const std::string& description, std::size_t rows,
                        std::size_t columns) {
  const bool pairs = ends_of(name) == Ends::pairs;
  const std::size_t one = pairs ? columns : 1;
  const bool three =
      pairs && goes_both_ways(name) && rows == 3 * one && contains(description, "Total");
  return three ? 3 : rows == one ? 1 : 0;
}

/// A value of the matrix; absent for "N/A".
std::optional<double> value_of(const JsonView& view) {
  if (view.raw().is_number()) {
    return view.non_negative();
  }
  const std::string text = view.string();
  const auto value = finite_number(text);
  if (text != "N/A" && (!value || *value < 0)) {
    view.fail(fmt::format("is \"{}\"; must be a number that is not negative, or N/A: measure again",
                          text));
  }
  return value;
}

using Matrix = std::vector<std::vector<std::optional<double>>>;

Matrix matrix_of(const JsonView& view) {
  Matrix matrix;
  for (const JsonView& row : view.elements()) {
    auto& values = matrix.emplace_back();
    std::ranges::transform(row.elements(), std::back_inserter(values), value_of);
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

/// What the tool prints for people becomes the document that it prints with --json.
class NvbandwidthReader : public LogReader {
public:
  NvbandwidthReader(const TextLines& lines, const ImportOptions& options)
      : LogReader(lines, options, "nvbandwidth",
                  "copies between the host and a GPU, between GPUs and inside a GPU, and "
                  "latencies") {}

  Profile read_json() {
    document(parse_json(only_json(m_lines.text()), m_lines.file()));
    return finish();
  }

private:
  // ---- for people

  void line(const Line& line) override {
    const auto named = [&](std::string_view begin) { // "Running host_to_device_memcpy_ce."
      return line.words.size() == 2 && line[0] == begin && line[1].ends_with('.')
                 ? std::string(line[1].substr(0, line[1].size() - 1))
                 : "";
    };
    for (const char* const fact : {"version", "Driver Version", "CUDA Runtime Version"}) {
      const std::string begin = *fact == 'v' ? "nvbandwidth Version:" : fact + std::string(":");
      if (const auto value = line.behind(begin)) {
        m_document[fact] = *value;
        return;
      }
    }
    if (const auto device = line.behind("Device "); device && m_name.empty()) {
      if (const std::size_t colon = device->find(':'); colon != device->npos) {
        m_devices.say(line, std::string(device->substr(0, colon)),
                      fmt::format("device {}", one_line(*device)));
      }
      m_document["GPU Device list"].push_back(*device);
    } else if (const std::string running = named("Running"); !running.empty()) {
      end_test(line.at);
      m_name = running;
    } else if (const std::string waived = named("Waiving"); !waived.empty()) {
      end_test(line.at);
      m_tests.push_back({{"name", waived}, {"status", "Waived"}});
    } else if (!m_name.empty()) {
      line_of_test(line);
    } else if (line.text.starts_with("mem") && contains(line.text, "GPU(column)")) {
      line.fail("a matrix without the line \"Running TEST.\" above it, which names its test; give "
                "the tool's whole output");
    }
  }

  void end() override {
    end_test(m_lines.size());
    m_document["testcases"] = std::move(m_tests);
    document({{"nvbandwidth", std::move(m_document)}});
  }

  /// A line behind "Running ...".
  void line_of_test(const Line& line) {
    if (contains(line.text, "(GB/s)") || contains(line.text, "(ns)")) {
      m_description = line.text;
      m_heading = line.at;
      m_columns = 0;
    } else if (line.text.starts_with("SUM ")) {
      end_test(line.at);
    } else if (line.text.starts_with("Waived") || line.text.starts_with("WAIVED")) {
      m_tests.push_back({{"name", std::exchange(m_name, "")}, {"status", "Waived"}});
    } else if (m_description.empty() || !index_of(line[0])) {
      m_columns = 0; // of other words no row follows
    } else if (m_columns == 0) {
      m_columns = line.words.size();
      for (std::size_t i = 0; i < m_columns; ++i) {
        if (index_of(line[i]) != static_cast<int>(i)) {
          line.fail(fmt::format("the columns of {} must be GPUs 0, 1 and so on; give the tool's "
                                "output as it is",
                                m_name));
        }
      }
    } else if (line.words.size() < m_columns + 1 && line.at + 1 == m_lines.size()) {
      m_rows = Json::array(); // cut off
    } else if (line.words.size() != m_columns + 1) {
      line.fail_as_cut(fmt::format("a row of {} has {} values, but there are {} columns", m_name,
                                   line.words.size() - 1, m_columns));
    } else {
      Json& row = m_rows.emplace_back(Json::array());
      for (std::size_t i = 1; i < line.words.size(); ++i) {
        if (line[i] != "N/A") {
          static_cast<void>(line.number(line[i], fmt::format("a value of {}", m_name)));
        }
        row.push_back(line[i]);
      }
    }
  }

  /// A test that was begun has its numbers, or died.
  void end_test(std::size_t at) {
    if (m_name.empty()) {
      return;
    }
    const std::size_t rows = m_rows.size(), columns = m_rows.empty() ? 0 : m_rows[0].size();
    const bool known = ends_of(m_name).has_value();
    const bool whole =
        rows > 0 && (!known || matrices_of(m_name, m_description, rows, columns) > 0);
    if (at >= m_lines.size() && !whole) { // the run ended in it
      cut_off(at, fmt::format("the file ends before all numbers of {}", m_name));
      m_rows = Json::array();
    }
    Json test{{"name", m_name}, {"status", m_rows.empty() ? "Error" : "Passed"}};
    if (!m_rows.empty()) {
      const Line heading(m_lines, m_heading);
      if (!whole) {
        heading.fail(fmt::format("{} rows of {} values are below this, which {} cannot have; give "
                                 "the tool's whole output",
                                 rows, columns, m_name));
      }
      if (known) {
        m_devices.say(heading, "count", counted(columns, "GPU"));
      }
      test["bandwidth_description"] = std::exchange(m_description, "");
      test["bandwidth_matrix"] = std::exchange(m_rows, Json::array());
    }
    m_tests.push_back(std::move(test));
    m_name.clear();
    m_description.clear();
    m_columns = 0;
  }

  // ---- the document

  void document(const Json& json) {
    const JsonView root(json, m_lines.file());
    const JsonView view = root.at("nvbandwidth");
    const auto text = [](const JsonView& from, const char* key) {
      const auto value = from.find(key);
      return value && value->raw().is_string() ? value->string() : "";
    };
    if (const auto error = view.find("error")) {
      error->fail(fmt::format("the tool says: {}; give the output of a run that worked",
                              error->raw().dump()));
    }
    for (const char* key : {"GPU Device list", "GPU Device info"}) {
      const auto list = view.find(key);
      for (const Json& item : list && list->raw().is_array() ? list->raw() : Json::array()) {
        device(item.is_string() ? item.get<std::string>() : "");
      }
    }
    for (const auto& [key, name] :
         {std::pair("CUDA Runtime Version", "nvbandwidth CUDA runtime"),
          std::pair("Driver Version", "nvbandwidth driver"), std::pair("warning", "nvbandwidth")}) {
      if (const auto value = view.find(key)) {
        m_out.note(name, value->raw().is_string() ? value->string() : value->raw().dump());
      }
    }
    m_out.host_name(m_out.machine(), text(view, "Hostname"));
    m_version = one_line(text(view, "version"));
    for (const JsonView& testcase : view.at("testcases").elements()) {
      const std::string name = testcase.at("name").name();
      const std::string status = testcase.at("status").string();
      if (!ends_of(name) || !is_plain_word(name)) {
        m_out.left_out(name);
      } else if (status == "Passed") {
        passed(testcase, name);
      } else {
        const bool waived = status == "Waived";
        const std::string error = text(testcase, "error");
        m_out.absent({.test = name, .from = m_out.machine()},
                     contains(name, "latency") ? k_time : k_rate,
                     waived ? CellStatus::unsupported : CellStatus::failed,
                     waived ? "nvbandwidth waived it: nothing here that it could run on"
                            : one_line(fmt::format("nvbandwidth says {}{}{}", status,
                                                   error.empty() ? "" : ": ", error)));
      }
    }
  }

  /// "0: NVIDIA H100 80GB HBM3 (00000000:07:00): (host)"
  void device(std::string_view text) {
    const std::size_t colon = text.find(": "), open = text.find(" (", std::min(colon, text.size()));
    if (const auto index = index_of(text.substr(0, colon)); index && colon != text.npos) {
      m_out.describe_gpu(m_out.gpu(*index), text.substr(colon + 2, open - colon - 2),
                         open == text.npos ? "" : pci_address(text.substr(open + 2)));
    }
  }

  void passed(const JsonView& testcase, const std::string& name) {
    const JsonView description = testcase.at("bandwidth_description");
    const std::string text = description.string();
    const bool nanoseconds = contains(text, "(ns)");
    if (!nanoseconds && !contains(text, "(GB/s)")) {
      description.fail(fmt::format("is \"{}\", without (GB/s) or (ns); reckon does not know this "
                                   "version of nvbandwidth",
                                   text));
    }
    const JsonView view = testcase.at("bandwidth_matrix");
    const Matrix matrix = matrix_of(view);
    const std::size_t columns = matrix.front().size();
    const std::size_t matrices = matrices_of(name, text, matrix.size(), columns);
    if (matrices == 0) {
      view.fail(fmt::format("has {} rows of {} values, which {} cannot have; give the tool's whole "
                            "output",
                            matrix.size(), columns, name));
    }
    const bool sums = matrices == 3;
    const std::size_t rows = matrix.size() / matrices;
    for (std::size_t row = 0; row < rows; ++row) {
      for (std::size_t column = 0; column < columns; ++column) {
        std::string remark = goes_both_ways(name) && !sums && !nanoseconds
                                 ? "of one way, while the other is in use too"
                                 : "";
        if (sums && matrix[row][column] && matrix[row + rows][column]) {
          remark = fmt::format("{} and {} GB/s", *matrix[row][column], *matrix[row + rows][column]);
        }
        CellKey key = key_of(name, static_cast<int>(row), static_cast<int>(column));
        if (nanoseconds) {
          key.state.clear();
        } else {
          key.direction = sums ? k_two_way : k_one_way;
        }
        add(key, nanoseconds, matrix[row + (sums ? 2 * rows : 0)][column], remark);
      }
    }
  }

  CellKey key_of(const std::string& name, int row, int column) {
    const Ends ends = *ends_of(name);
    CellKey key{.test = name, .from = m_out.machine(), .to = m_out.gpu(column), .state = "pinned"};
    if (ends == Ends::inside) {
      key.from = key.to;
      key.state = "";
    } else if (ends == Ends::pairs) {
      key.from = m_out.gpu(row);
    }
    if (ends == Ends::pairs || name.starts_with("one_to_all_") || name.starts_with("all_to_one_")) {
      key.state = "peer";
    }
    // The row's GPU is the one that copies, so that bytes of a read come from the column. (The
    // arrows in the descriptions of read and write point the other way.) A thread of the row's
    // GPU loads what the latency is of.
    const bool read = ends == Ends::pairs && contains(name, "_read_") && !goes_both_ways(name);
    if (ends == Ends::gpu_to_host || read) {
      key.from.swap(key.to);
    }
    return key;
  }

  void add(const CellKey& key, bool nanoseconds, const std::optional<double>& value,
           const std::string& remark) {
    const std::string_view unit = nanoseconds ? k_time : k_rate;
    if (value && *value > 0) {
      m_out.add(key, unit, *value * (nanoseconds ? 1e-9 : 1e9), remark);
    } else if (ends_of(key.test) != Ends::pairs || key.from != key.to) {
      m_out.absent(key, unit, value ? CellStatus::failed : CellStatus::unsupported,
                   value ? "nvbandwidth prints 0" : "N/A: no peer access between the two");
    }
  }

  Json m_document = Json::object(), m_tests = Json::array();
  std::string m_name; ///< of the test whose numbers follow; empty: none
  std::string m_description;
  std::size_t m_heading = 0;   ///< its line
  std::size_t m_columns = 0;   ///< of the matrix in hand; 0: it has not begun
  Json m_rows = Json::array(); ///< of all matrices of the test, one below the other
};

} // namespace

Profile read_nvbandwidth(const TextLines& lines, const ImportOptions& options) {
  NvbandwidthReader reader(lines, options);
  return contains(lines.raw(), "\"nvbandwidth\"") ? reader.read_json() : reader.read();
}

} // namespace reckon::import_detail
