// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "core/units.hpp"
#include "documents/cells.hpp"
#include "import/log_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

namespace reckon::import_detail {
namespace {

constexpr double k_megabyte = 1e6; // as the tool says above its tables

/// "3:1 Reads-Writes" as the end of a case's name: "3_to_1_reads_writes".
std::string snake(std::string_view label) {
  std::string out;
  for (const char c : label) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      out += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (c == ':') {
      out += "_to_";
    } else if (!out.empty() && out.back() != '_') {
      out += '_';
    }
  }
  while (!out.empty() && out.back() == '_') {
    out.pop_back();
  }
  return out;
}

class MlcReader : public LogReader {
public:
  MlcReader(const TextLines& lines, const ImportOptions& options)
      : LogReader(lines, options, "Intel MLC") {}

private:
  void line(const Line& line) override {
    constexpr std::string_view k_version = "Memory Latency Checker - ";
    if (const std::size_t at = line.text.find(k_version); at != line.text.npos) {
      m_version = one_line(line.text.substr(at + k_version.size()));
    }
    if (contains(line.text, "Measuring idle latencies")) {
      idle_latencies(line);
    } else if (contains(line.text, "Memory Bandwidths for the system")) {
      peaks(line);
    } else if (contains(line.text, "Measuring Memory Bandwidths between nodes")) {
      between_nodes(line);
    } else if (contains(line.text, "Measuring Loaded Latencies")) {
      loaded(line);
    } else if (line.text.starts_with("Local Socket ") && !ends_in(line)) {
      local_cache(line);
    } else if (line.text.starts_with("Remote Socket ")) {
      const bool writer = contains(line.text, "homed in writer");
      // The row's node wrote the cache line.
      matrix("the latencies between caches", RowRule::all, k_time, 1e-9, "", "payload",
             {.test =
                  fmt::format("cache_to_cache_latency_homed_at_{}", writer ? "writer" : "reader")});
    }
  }

  /// Skips to the heading of the matrix after a section's first line.
  void find_matrix() {
    while (m_next < m_lines.size() && !m_lines[m_next].empty() &&
           !is_matrix_head(m_lines[m_next])) {
      ++m_next;
    }
  }

  /// The cells of the next matrix, all of one case and from the row to the column.
  void matrix(const std::string& what, RowRule rule, std::string_view unit, double factor,
              const std::string& remark, std::string_view convention, CellKey key) {
    find_matrix();
    const Line head(m_lines, m_next);
    const MatrixText matrix = read_matrix(what, rule);
    if (rule == RowRule::some) { // all NUMA nodes
      m_devices.say(head, "count", counted(matrix.columns, "NUMA node"));
    }
    for (const auto& [row, column, at, value] : matrix.entries) {
      if (value && !(*value > 0)) {
        m_lines.fail(at, fmt::format("column {} is 0; must be above zero: measure again", column));
      }
      if (value) {
        key.from = m_out.numa_node(row);
        key.to = m_out.numa_node(column);
        if (key.direction == k_one_way) { // the row's processors read what lies
                                          // on the column's node
          key.from.swap(key.to);
        }
        m_out.add(key, unit, *value * factor, remark, convention);
      }
    }
  }

  void idle_latencies(const Line& line) {
    if (!contains(line.text, "(in ns)")) {
      line.fail("must be in ns; this version of the tool is not known here");
    }
    matrix("the idle latencies", RowRule::some, k_time, 1e-9,
           contains(line.text, "random") ? "random access" : "sequential access", "payload",
           {.test = k_memory_latency, .threads = 1});
  }

  void between_nodes(const Line& line) {
    find_matrix();
    std::string traffic = "Using Read-only traffic type";
    for (std::size_t at = line.at + 1; at < std::min(m_next, m_lines.size()); ++at) {
      traffic = traffic_of(Line(m_lines, at), traffic);
    }
    const bool reads = contains(traffic, "Read-only");
    matrix("the bandwidths between nodes", RowRule::some, k_rate, k_megabyte,
           reads ? "all processors of the node" : traffic, reads ? "payload" : "stream",
           {.test = reads ? k_numa_read : k_numa_mixed, .direction = k_one_way});
  }

  /// What a line above a table says of the traffic, else what is known. A MB must be 10^6 bytes.
  static std::string traffic_of(const Line& line, const std::string& known) {
    if (contains(line.text, "Bytes/sec)") && !contains(line.text, "1,000,000 Bytes/sec")) {
      line.fail("a MB must be 1,000,000 bytes; this version of the tool is not known here");
    }
    return contains(line.text, "traffic") ? one_line(line.text) : known;
  }

  /// Lines "ALL Reads        :      93611.4" until one that has no colon.
  void peaks(const Line& heading) {
    const char* const prefix =
        contains(heading.text, "Maximum") ? "memory_maximum_" : "memory_peak_";
    bool any = false;
    for (; m_next < m_lines.size(); ++m_next) {
      const Line line(m_lines, m_next);
      const std::size_t colon = line.text.rfind(':');
      if (contains(line.text, "MB/sec")) {
        traffic_of(line, "");
      } else if (line.words.empty() && !any) {
        continue;
      } else if (ends_in(line)) {
        ++m_next;
        return;
      } else if (colon != line.text.npos) {
        const std::string label = snake(line.text.substr(0, colon));
        const auto values = words_of(line.text.substr(colon + 1));
        if (values.size() != 1 || label.empty()) {
          line.fail_as_cut("must read \"ALL Reads : 93611.4\"");
        }
        m_out.add({.test = prefix + label, .from = m_out.machine()}, k_rate,
                  line.positive(values[0], label) * k_megabyte,
                  "what is read and what is written together", "stream");
        any = true;
      } else if (any || (line[0] != "Using" && line[0] != "Will")) {
        break;
      }
    }
    if (!any) {
      none_below(heading, "bandwidths");
    }
  }

  /// Lines " 00000  642.45   198317.3": delay, latency in ns, bandwidth in MB/s.
  void loaded(const Line& heading) {
    std::string traffic;
    for (; m_next < m_lines.size(); ++m_next) {
      const Line line(m_lines, m_next);
      if (index_of(line[0]) || line[0] == "Measuring") {
        break;
      }
      traffic = traffic_of(line, traffic);
    }
    for (bool any = false; true; any = true) {
      const Line line(m_lines, m_next);
      const auto delay = index_of(line[0]);
      if (!delay && !any) {
        none_below(heading, "latencies");
      }
      if (!delay) {
        return;
      }
      ++m_next;
      if (ends_in(line)) {
        return;
      }
      if (line.words.size() != 3) {
        line.fail_as_cut(fmt::format("has {} values; must have a delay, a latency and a bandwidth",
                                     line.words.size()));
      }
      CellKey key{.test = k_loaded_latency,
                  .from = m_out.machine(),
                  .transport = fmt::format("delay {:05}", *delay)};
      m_out.add(key, k_time, line.positive(line[1], "the latency") * 1e-9, traffic);
      key.test = k_loaded_bandwidth;
      m_out.add(key, k_rate, line.positive(line[2], "the bandwidth") * k_megabyte, traffic,
                "stream");
    }
  }

  /// Whether the file ends in a row, whose last value has one digit behind its point.
  bool ends_in(const Line& line) {
    if (line.at + 1 != m_lines.size() || line.words.empty() || has_decimals(line.words.back(), 1)) {
      return false;
    }
    cut_off(line.at, "the file ends in this line, which is left out");
    return true;
  }

  void none_below(const Line& heading, const char* what) {
    const std::string problem = fmt::format("there are no {} below line {}", what, heading.at + 1);
    if (m_next < m_lines.size()) {
      Line(m_lines, m_next).fail_as_cut(problem);
    }
    cut_off(m_next, problem);
  }

  /// "Local Socket L2->L2 HIT  latency	48.8"
  void local_cache(const Line& line) {
    const std::string_view latency = line.after("latency");
    if (latency.empty()) {
      line.fail_as_cut("must end with a latency");
    }
    m_out.add({.test = fmt::format("cache_to_cache_latency_{}",
                                   contains(line.text, "HITM") ? "modified" : "clean"),
               .from = m_out.machine()},
              k_time, line.positive(latency, "the latency") * 1e-9, "within a socket");
  }
};

} // namespace

Profile read_mlc(const TextLines& lines, const ImportOptions& options) {
  return MlcReader(lines, options).read();
}

} // namespace reckon::import_detail
