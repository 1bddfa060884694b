// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "core/json_fwd.hpp"
#include "core/log.hpp"
#include "core/units.hpp"
#include "documents/cells.hpp"
#include "import/collector.hpp"
#include "import/matrix_text.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace reckon::import_detail {
namespace {

/// What a heading says of the matrix below it.
struct Heading {
  bool latency = false;
  bool both_ways = false;
  bool peer = false; ///< with peer access, where a pair has it
  bool reads = false;
};

std::optional<Heading> heading_of(std::string_view line) {
  const bool rate = contains(line, "Bandwidth") && contains(line, "(GB/s)");
  const bool time = contains(line, "Latency") && contains(line, "(us)");
  const bool enabled = contains(line, "P2P=Enabled");
  if (!contains(line, "Matrix") || (!rate && !time) ||
      (!enabled && !contains(line, "P2P=Disabled"))) {
    return std::nullopt;
  }
  return Heading{.latency = time,
                 .both_ways = contains(line, "Bidirectional"),
                 .peer = enabled,
                 .reads = contains(line, "(P2P Reads)")};
}

class P2pLatencyReader {
public:
  P2pLatencyReader(const TextLines& lines, const ImportOptions& options)
      : m_lines(lines), m_out(lines.file(), options) {}

  Profile read(std::string_view text) {
    find_version();
    for (std::size_t at = 0; at < m_lines.size();) {
      const std::string_view line = m_lines[at];
      if (line.starts_with("Device: ")) {
        device(at++);
      } else if (contains(line, "P2P Connectivity Matrix")) {
        at = connectivity(at);
      } else if (const auto heading = heading_of(line)) {
        at = matrix(at, *heading);
        m_read.push_back(*heading);
      } else {
        ++at;
      }
    }
    if (m_read.empty()) {
      m_lines.fail(m_lines.size(),
                   "there is no matrix of bandwidths or latencies; was the file cut off? Give the "
                   "tool's whole output");
    }
    warn_of_missing();
    return m_out.finish("p2pBandwidthLatencyTest", text);
  }

private:
  /// Whole matrices can be used, but who has lost some should know.
  void warn_of_missing() const {
    struct Kind {
      const char* name;
      bool latency, both_ways;
    };
    std::vector<std::string> missing;
    for (const Kind& kind :
         {Kind{"bandwidths one way", false, false}, Kind{"bandwidths both ways", false, true},
          Kind{"latencies", true, false}}) {
      for (const bool peer : {false, true}) {
        if (std::none_of(m_read.begin(), m_read.end(), [&](const Heading& h) {
              return h.latency == kind.latency && h.both_ways == kind.both_ways && h.peer == peer;
            })) {
          missing.push_back(
              fmt::format("{} with P2P={}", kind.name, peer ? "Enabled" : "Disabled"));
        }
      }
    }
    if (!missing.empty()) {
      log(LogLevel::warn,
          "{}: {} of the tool's 6 kinds of matrices are missing: {}; was the file cut off? Give "
          "the tool's whole output to have them",
          m_lines.file(), missing.size(), fmt::join(missing, ", "));
    }
  }

  /// Until CUDA 9 the tool did not say who copies. There bytes went from the column to the row (the
  /// row's GPU read), now they go from the row to the column unless the heading says "Reads".
  void find_version() {
    for (std::size_t i = 0; i < m_lines.size(); ++i) {
      const auto heading = heading_of(m_lines[i]);
      m_old = m_old ||
              (heading && heading->peer && !heading->both_ways && !contains(m_lines[i], "(P2P "));
    }
  }

  /// Device: 0, NVIDIA A100-SXM-80GB, pciBusID: e, pciDeviceID: 0, pciDomainID:0
  void device(std::size_t at) {
    const std::string_view rest = m_lines[at].substr(8);
    const std::size_t comma = rest.find(", ");
    const std::size_t bus = rest.rfind(", pciBusID: ");
    const std::size_t number = rest.rfind(", pciDeviceID: ");
    const std::size_t domain = rest.rfind("pciDomainID:");
    const auto index = index_of(rest.substr(0, std::min(comma, rest.size())));
    if (!index || bus == rest.npos || number == rest.npos || domain == rest.npos || comma >= bus ||
        bus >= number || number >= domain) {
      m_lines.fail(at, "must read \"Device: 0, NAME, pciBusID: 1, pciDeviceID: 0, "
                       "pciDomainID:0\"; give the tool's output as it is");
    }
    const std::string address = pci_address(
        trimmed(rest.substr(domain + 12)), trimmed(rest.substr(bus + 12, number - bus - 12)),
        trimmed(rest.substr(number + 15, domain - number - 17)));
    if (address.empty()) {
      m_lines.fail(at, "the bus, device and domain are no hexadecimal numbers; give the tool's "
                       "output as it is");
    }
    const std::string_view name = rest.substr(comma + 2, bus - comma - 2);
    m_devices.say(m_lines, at, fmt::format("GPU {}", *index),
                  fmt::format("GPU {} is {} at {}", *index, one_line(name), address));
    m_out.describe_gpu(m_out.gpu(*index), name, address);
  }

  std::size_t connectivity(std::size_t at) {
    const MatrixText matrix = read_square(at, "the connectivity matrix");
    m_connected.emplace();
    for (const MatrixText::Entry& entry : matrix.entries) {
      if (entry.value.value_or(0) > 0) {
        m_connected->insert({entry.row, entry.column});
      }
    }
    return matrix.next;
  }

  /// The matrix of all GPUs below line `at`.
  MatrixText read_square(std::size_t at, const std::string& what) {
    MatrixText matrix = read_matrix(m_lines, at + 1, what, RowRule::all, m_out);
    m_devices.say(m_lines, at, "count", counted(matrix.columns, "GPU"));
    return matrix;
  }

  std::size_t matrix(std::size_t at, const Heading& heading) {
    const std::string what = fmt::format("the matrix of line {}", at + 1);
    if (!heading.latency) {
      const MatrixText matrix = read_square(at, what);
      bandwidths(matrix, heading);
      return matrix.next;
    }
    const MatrixText gpu = read_square(at, what);
    latencies(gpu, heading, "latency");
    // The times that the processor took to post the same copies.
    std::size_t next = gpu.next;
    while (next < m_lines.size() && m_lines[next].empty()) {
      ++next;
    }
    if (next < m_lines.size() && trimmed(m_lines[next]).starts_with("CPU")) {
      const MatrixText cpu = read_matrix(m_lines, next, what, RowRule::all, m_out);
      latencies(cpu, heading, "post_latency");
      return cpu.next;
    }
    return gpu.next;
  }

  /// How a pair's copies go: directly, or by way of the host.
  struct Way {
    std::string state, remark;
  };
  [[nodiscard]] Way way_of(int row, int column, const Heading& heading) const {
    if (!heading.peer) {
      return {"staged", ""};
    }
    if (!m_connected) {
      return {"peer", "with peer access where the pair has it, which the file does not tell"};
    }
    return m_connected->contains({row, column}) ? Way{"peer", ""} : Way{"staged", ""};
  }

  [[nodiscard]] bool is_read(const Heading& heading) const { return m_old || heading.reads; }

  /// The test's name and its ends.
  CellKey key_of(int row, int column, const Heading& heading, std::string test) {
    CellKey key;
    key.test = std::move(test);
    const bool back = is_read(heading) && !heading.both_ways;
    key.from = m_out.gpu(back ? column : row);
    key.to = m_out.gpu(back ? row : column);
    return key;
  }

  void bandwidths(const MatrixText& matrix, const Heading& heading) {
    for_each(matrix, [&](int row, int column, double printed) {
      const bool local = row == column;
      CellKey key = key_of(row, column, heading,
                           local               ? k_device_local_copy
                           : heading.both_ways ? k_device_two_way_ce
                           : is_read(heading)  ? k_device_read_ce
                                               : k_device_write_ce);
      key.direction = heading.both_ways ? "two_way" : "one_way";
      const Way way = local ? Way{} : way_of(row, column, heading);
      key.state = way.state;
      // Inside a GPU the tool counts what is read and what is written.
      put(key, k_rate, printed * 1e9 / (local ? 2 : 1),
          local ? "half of what the tool prints, which counts reads and writes" : way.remark);
    });
  }

  void latencies(const MatrixText& matrix, const Heading& heading, const std::string& what) {
    for_each(matrix, [&](int row, int column, double printed) {
      CellKey key = key_of(
          row, column, heading,
          fmt::format("device_to_device_{}_{}_ce", is_read(heading) ? "read" : "write", what));
      key.bytes = m_old ? 1 : 16; // of the copies that are timed
      const Way way = row == column ? Way{} : way_of(row, column, heading);
      key.state = way.state;
      put(key, k_time, printed * 1e-6, way.remark);
    });
  }

  void put(const CellKey& key, std::string_view unit, double value, const std::string& remark) {
    if (value > 0) {
      m_out.add(key, unit, value, remark);
    } else {
      m_out.absent(key, unit, CellStatus::failed, "the tool prints 0.00");
    }
  }

  template <class Function>
  void for_each(const MatrixText& matrix, Function function) {
    for (const auto& [row, column, line, value] : matrix.entries) {
      if (!value) {
        m_lines.fail(line, fmt::format("column {} has no value; the tool prints one for each pair, "
                                       "so give its whole output",
                                       column));
      }
      function(row, column, *value);
    }
  }

  const TextLines& m_lines;
  Collector m_out;
  Devices m_devices;
  std::vector<Heading> m_read; ///< of the matrices that were read
  bool m_old = false;
  std::optional<std::set<std::pair<int, int>>> m_connected;
};

} // namespace

Profile read_p2p_latency(std::string_view text, const std::string& file,
                         const ImportOptions& options) {
  const TextLines lines(text, file);
  return P2pLatencyReader(lines, options).read(text);
}

} // namespace reckon::import_detail
