// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/units.hpp"
#include "documents/cells.hpp"
#include "import/log_reader.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <tuple>
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

class P2pLatencyReader : public LogReader {
public:
  P2pLatencyReader(const TextLines& lines, const ImportOptions& options)
      : LogReader(lines, options, "p2pBandwidthLatencyTest") {
    // Until CUDA 9 the tool did not say who copies. There bytes went from the column to the row
    // (the row's GPU read), now they go from the row to the column unless the heading says "Reads".
    for (std::size_t i = 0; i < m_lines.size(); ++i) {
      const auto heading = heading_of(m_lines[i]);
      m_old = m_old ||
              (heading && heading->peer && !heading->both_ways && !contains(m_lines[i], "(P2P "));
    }
  }

private:
  void line(const Line& line) override {
    if (line.text.starts_with("Device: ")) {
      device(line);
    } else if (contains(line.text, "P2P Connectivity Matrix")) {
      m_connected.emplace();
      for (const auto& [row, column, at, value] : read_square(line, "the connectivity matrix")) {
        if (value.value_or(0) > 0) {
          m_connected->insert({row, column});
        }
      }
    } else if (const auto heading = heading_of(line.text)) {
      matrix(line, *heading);
      m_read.insert({heading->latency, heading->both_ways, heading->peer});
    }
  }

  /// Whole matrices can be used, but who has lost some should know.
  void end() override {
    if (m_read.empty()) {
      Line(m_lines, m_lines.size()).fail_as_cut("there is no matrix of bandwidths or latencies");
    }
    std::vector<std::string> missing;
    for (const auto& [name, latency, both_ways] :
         {std::tuple("bandwidths one way", false, false),
          std::tuple("bandwidths both ways", false, true), std::tuple("latencies", true, false)}) {
      for (const bool peer : {false, true}) {
        if (!m_read.contains({latency, both_ways, peer})) {
          missing.push_back(fmt::format("{} with P2P={}", name, peer ? "Enabled" : "Disabled"));
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

  /// Device: 0, NVIDIA A100-SXM-80GB, pciBusID: e, pciDeviceID: 0, pciDomainID:0
  void device(const Line& line) {
    const std::string_view rest = line.text.substr(8);
    const std::size_t comma = rest.find(", "), bus = rest.rfind(", pciBusID: ");
    const std::size_t number = rest.rfind(", pciDeviceID: "), domain = rest.rfind("pciDomainID:");
    const auto index = index_of(rest.substr(0, comma));
    const bool whole =
        index && domain != rest.npos && comma < bus && bus < number && number < domain;
    const std::string address =
        !whole ? ""
               : pci_address(trimmed(rest.substr(domain + 12)),
                             trimmed(rest.substr(bus + 12, number - bus - 12)),
                             trimmed(rest.substr(number + 15, domain - number - 17)));
    if (address.empty()) {
      line.fail("must read \"Device: 0, NAME, pciBusID: 1, pciDeviceID: 0, pciDomainID:0\"; give "
                "the tool's output as it is");
    }
    const std::string_view name = rest.substr(comma + 2, bus - comma - 2);
    m_devices.say(line, fmt::format("GPU {}", *index),
                  fmt::format("GPU {} is {} at {}", *index, one_line(name), address));
    m_out.describe_gpu(m_out.gpu(*index), name, address);
  }

  /// The matrix of all GPUs below a line.
  std::vector<MatrixText::Entry> read_square(const Line& line, const std::string& what) {
    MatrixText matrix = read_matrix(what, RowRule::all);
    m_devices.say(line, "count", counted(matrix.columns, "GPU"));
    return std::move(matrix.entries);
  }

  void matrix(const Line& line, const Heading& heading) {
    const std::string what = fmt::format("the matrix of line {}", line.at + 1);
    cells(read_square(line, what), heading, "latency");
    while (heading.latency && m_next < m_lines.size() && m_lines[m_next].empty()) {
      ++m_next;
    }
    // The times that the processor took to post the same copies.
    if (heading.latency && m_next < m_lines.size() && m_lines[m_next].starts_with("CPU")) {
      cells(read_matrix(what, RowRule::all).entries, heading, "post_latency");
    }
  }

  void cells(const std::vector<MatrixText::Entry>& entries, const Heading& heading,
             const std::string& what) {
    const bool read = m_old || heading.reads;
    for (const auto& [row, column, at, printed] : entries) {
      if (!printed) {
        m_lines.fail(at, fmt::format("column {} has no value; the tool prints one for each pair, "
                                     "so give its whole output",
                                     column));
      }
      const bool local = row == column;
      CellKey key{.from = m_out.gpu(row), .to = m_out.gpu(column)};
      if (read && !heading.both_ways) {
        key.from.swap(key.to);
      }
      // How a pair's copies go: directly, or by way of the host.
      const bool peer = heading.peer && (!m_connected || m_connected->contains({row, column}));
      key.state = local ? "" : peer ? "peer" : "staged";
      std::string remark = local || !peer || m_connected
                               ? ""
                               : "with peer access where the pair has it, which the file does not "
                                 "tell";
      if (heading.latency) {
        key.test = fmt::format("device_to_device_{}_{}_ce", read ? "read" : "write", what);
        key.bytes = m_old ? 1 : 16; // of the copies that are timed
        m_out.add_printed(key, k_time, *printed * 1e-6, remark);
        continue;
      }
      key.test = local               ? k_device_local_copy
                 : heading.both_ways ? k_device_two_way_ce
                 : read              ? k_device_read_ce
                                     : k_device_write_ce;
      key.direction = heading.both_ways ? k_two_way : k_one_way;
      if (local) { // inside a GPU the tool counts what is read and what is written
        remark = k_half_inside;
      }
      m_out.add_printed(key, k_rate, *printed * 1e9 / (local ? 2 : 1), remark);
    }
  }

  std::set<std::tuple<bool, bool, bool>> m_read; ///< matrices: of latencies, both ways, with peers
  bool m_old = false;
  std::optional<std::set<std::pair<int, int>>> m_connected;
};

} // namespace

Profile read_p2p_latency(const TextLines& lines, const ImportOptions& options) {
  return P2pLatencyReader(lines, options).read();
}

} // namespace reckon::import_detail
