// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "core/units.hpp"
#include "documents/cells.hpp"
#include "import/collector.hpp"
#include "import/matrix_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <optional>

namespace reckon::import_detail {
namespace {

constexpr const char* k_cut = "the file ends in this line, which is left out";
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

class MlcReader {
public:
  MlcReader(const TextLines& lines, const ImportOptions& options)
      : m_lines(lines), m_out(lines.file(), options) {}

  Profile read(std::string_view text) {
    std::string version;
    for (std::size_t at = 0; at < m_lines.size();) {
      const std::string_view line = m_lines[at];
      const std::size_t mark = line.find("Memory Latency Checker - ");
      if (mark != line.npos) {
        version = one_line(line.substr(mark + 25));
      }
      if (line.starts_with("Using buffer size of ")) {
        buffer(at++);
      } else if (contains(line, "Measuring idle latencies")) {
        at = idle_latencies(at);
      } else if (contains(line, "Memory Bandwidths for the system")) {
        at = peaks(at, contains(line, "Maximum") ? "memory_maximum_" : "memory_peak_");
      } else if (contains(line, "Measuring Memory Bandwidths between nodes")) {
        at = between_nodes(at);
      } else if (contains(line, "Measuring Loaded Latencies")) {
        at = loaded(at);
      } else if (line.starts_with("Local Socket ")) {
        is_cut(at) ? m_out.cut_off(m_lines, at, k_cut) : local_cache(at);
        ++at;
      } else if (line.starts_with("Remote Socket ")) {
        at = remote_caches(at);
      } else {
        ++at;
      }
    }
    return m_out.finish(version.empty() ? "Intel MLC" : "Intel MLC " + version, text);
  }

private:
  /// "Using buffer size of 2000.000MiB": of the latencies; "100.000MiB/thread" of bandwidths is not
  /// what they move.
  void buffer(std::size_t at) {
    const std::vector<std::string_view> words = words_of(m_lines[at]);
    m_footprint = 0;
    if (words.size() == 5 && words[4].ends_with("MiB")) {
      const double mib = m_lines.positive(at, words[4].substr(0, words[4].size() - 3), "the size");
      const double bytes = mib * 1048576;
      if (bytes >= 1 && bytes < 9e15) {
        m_footprint = static_cast<std::uint64_t>(bytes);
      }
    }
  }

  /// The heading of the matrix after a section's first line.
  [[nodiscard]] std::size_t head_after(std::size_t at) const {
    for (++at; at < m_lines.size() && !m_lines[at].empty(); ++at) {
      if (is_matrix_head(m_lines[at])) {
        return at;
      }
    }
    return at;
  }

  /// A matrix whose columns are all NUMA nodes, with the heading in line `head`.
  MatrixText read_nodes(std::size_t head, const std::string& what) {
    MatrixText matrix = read_matrix(m_lines, head, what, RowRule::some, m_out);
    m_devices.say(m_lines, head, "count", counted(matrix.columns, "NUMA node"));
    return matrix;
  }

  std::size_t idle_latencies(std::size_t at) {
    const bool random = contains(m_lines[at], "random");
    if (!contains(m_lines[at], "(in ns)")) {
      m_lines.fail(at, "must be in ns; this version of the tool is not known here");
    }
    const MatrixText matrix = read_nodes(head_after(at), "the idle latencies");
    for_each(matrix, [&](int row, int column, double ns) {
      CellKey key;
      key.test = k_memory_latency;
      key.from = m_out.numa_node(row);
      key.to = m_out.numa_node(column);
      key.threads = 1;
      key.bytes = m_footprint;
      m_out.add(key, k_time, ns * 1e-9, random ? "random access" : "sequential access");
    });
    m_footprint = 0;
    return matrix.next;
  }

  /// Lines "ALL Reads        :      93611.4" until one that has no colon.
  std::size_t peaks(std::size_t at, const std::string& prefix) {
    const std::size_t heading = at;
    bool any = false;
    for (++at; at < m_lines.size(); ++at) {
      const std::string_view line = m_lines[at];
      const std::size_t colon = line.rfind(':');
      const std::vector<std::string_view> values =
          words_of(colon == line.npos ? std::string_view() : line.substr(colon + 1));
      if (contains(line, "MB/sec")) {
        check_megabyte(at);
      } else if (line.empty() && !any) {
        continue;
      } else if (is_cut(at)) {
        m_out.cut_off(m_lines, at, k_cut);
        return at + 1;
      } else if (colon != line.npos) {
        const std::string label = snake(trimmed(line.substr(0, colon)));
        if (values.size() != 1 || label.empty()) {
          m_lines.fail(at, "must read \"ALL Reads : 93611.4\"; was the line cut off? Give the "
                           "tool's whole output");
        }
        CellKey key;
        key.test = prefix + label;
        key.from = m_out.machine();
        m_out.add(key, k_rate, m_lines.positive(at, values[0], label) * k_megabyte,
                  "what is read and what is written together", "stream");
        any = true;
      } else if (any) {
        break;
      } else if (!line.starts_with("Using ") && !line.starts_with("Will ")) {
        break;
      }
    }
    if (!any) {
      none_below(at, heading, "bandwidths");
    }
    return at;
  }

  std::size_t between_nodes(std::size_t at) {
    const std::size_t head = head_after(at);
    std::string traffic = "Using Read-only traffic type";
    for (std::size_t i = at + 1; i < std::min(head, m_lines.size()); ++i) {
      check_megabyte(i);
      if (contains(m_lines[i], "traffic")) {
        traffic = m_lines[i];
      }
    }
    const bool reads = contains(traffic, "Read-only");
    const MatrixText matrix = read_nodes(head, "the bandwidths between nodes");
    for_each(matrix, [&](int row, int column, double mb) {
      CellKey key;
      key.test = reads ? k_numa_read : k_numa_mixed;
      // The processors of the row's node read what lies on the column's.
      key.from = m_out.numa_node(column);
      key.to = m_out.numa_node(row);
      key.direction = "one_way";
      m_out.add(key, k_rate, mb * k_megabyte,
                reads ? "all processors of the node" : one_line(traffic),
                reads ? "payload" : "stream");
    });
    return matrix.next;
  }

  /// Lines " 00000  642.45   198317.3": delay, latency in ns, bandwidth in MB/s.
  std::size_t loaded(std::size_t at) {
    const std::size_t heading = at;
    std::string traffic;
    for (++at; at < m_lines.size() && (m_lines[at].empty() || !index_of(words_of(m_lines[at])[0]));
         ++at) {
      check_megabyte(at);
      if (contains(m_lines[at], "traffic")) {
        traffic = one_line(m_lines[at]);
      }
      if (m_lines[at].starts_with("Measuring ")) {
        break;
      }
    }
    std::size_t rows = 0;
    for (; at < m_lines.size(); ++at, ++rows) {
      const std::vector<std::string_view> words = words_of(m_lines[at]);
      if (words.empty() || !index_of(words[0])) {
        break;
      }
      if (is_cut(at)) {
        m_out.cut_off(m_lines, at, k_cut);
        return at + 1;
      }
      if (words.size() != 3) {
        m_lines.fail(at, fmt::format("has {} values; must have a delay, a latency and a bandwidth. "
                                     "Was the line cut off? Give the tool's whole output",
                                     words.size()));
      }
      CellKey key;
      key.from = m_out.machine();
      key.transport = fmt::format("delay {:05}", *index_of(words[0]));
      key.test = k_loaded_latency;
      m_out.add(key, k_time, m_lines.positive(at, words[1], "the latency") * 1e-9, traffic);
      key.test = k_loaded_bandwidth;
      m_out.add(key, k_rate, m_lines.positive(at, words[2], "the bandwidth") * k_megabyte, traffic,
                "stream");
    }
    if (rows == 0) {
      none_below(at, heading, "latencies");
    }
    return at;
  }

  /// Whether the file ends in a row, whose last value has one digit behind its point.
  [[nodiscard]] bool is_cut(std::size_t at) const {
    const std::vector<std::string_view> words = words_of(m_lines[at]);
    return at + 1 == m_lines.size() && !words.empty() && !has_decimals(words.back(), 1);
  }

  void none_below(std::size_t at, std::size_t heading, const char* what) {
    const std::string problem = fmt::format("there are no {} below line {}", what, heading + 1);
    if (at < m_lines.size()) {
      m_lines.fail(at, problem + "; was the file cut off? Give the tool's whole output");
    }
    m_out.cut_off(m_lines, at, problem);
  }

  /// "Local Socket L2->L2 HIT  latency	48.8"
  void local_cache(std::size_t at) {
    const std::vector<std::string_view> words = words_of(m_lines[at]);
    const auto latency = std::find(words.begin(), words.end(), "latency");
    if (words.end() - latency < 2) {
      m_lines.fail(at, "must end with a latency; was the line cut off? Give the tool's whole "
                       "output");
    }
    CellKey key;
    key.test = contains(m_lines[at], "HITM") ? "cache_to_cache_latency_modified"
                                             : "cache_to_cache_latency_clean";
    key.from = m_out.machine();
    m_out.add(key, k_time, m_lines.positive(at, latency[1], "the latency") * 1e-9,
              "within a socket");
  }

  std::size_t remote_caches(std::size_t at) {
    const std::string home = contains(m_lines[at], "homed in writer") ? "writer" : "reader";
    const MatrixText matrix =
        read_matrix(m_lines, head_after(at), "the latencies between caches", RowRule::all, m_out);
    for_each(matrix, [&](int row, int column, double ns) {
      CellKey key;
      key.test = "cache_to_cache_latency_homed_at_" + home;
      key.from = m_out.numa_node(row); // who wrote the line
      key.to = m_out.numa_node(column);
      m_out.add(key, k_time, ns * 1e-9);
    });
    return matrix.next;
  }

  void check_megabyte(std::size_t at) const {
    if (contains(m_lines[at], "Bytes/sec)") && !contains(m_lines[at], "1,000,000 Bytes/sec")) {
      m_lines.fail(at, "a MB must be 1,000,000 bytes; this version of the tool is not known here");
    }
  }

  template <class Function>
  void for_each(const MatrixText& matrix, Function function) {
    for (const auto& [row, column, line, value] : matrix.entries) {
      if (!value) {
        continue;
      }
      if (!(*value > 0)) {
        m_lines.fail(line,
                     fmt::format("column {} is 0; must be above zero: measure again", column));
      }
      function(row, column, *value);
    }
  }

  const TextLines& m_lines;
  Collector m_out;
  Devices m_devices;
  std::uint64_t m_footprint = 0;
};

} // namespace

Profile read_mlc(std::string_view text, const std::string& file, const ImportOptions& options) {
  const TextLines lines(text, file);
  return MlcReader(lines, options).read(text);
}

} // namespace reckon::import_detail
