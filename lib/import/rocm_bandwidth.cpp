// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "documents/cells.hpp"
#include "import/collector.hpp"
#include "import/matrix_text.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>

namespace reckon::import_detail {
namespace {

constexpr std::string_view k_benchmark = "directional Benchmark Result";

/// "Unidirectional copy peak bandwidth GB/s"
bool is_copy_heading(std::string_view line) {
  line = trimmed(line);
  return line.ends_with("directional copy peak bandwidth GB/s") ||
         line.ends_with("directional copy average bandwidth GB/s");
}

class RocmBandwidthReader {
public:
  RocmBandwidthReader(const TextLines& lines, const ImportOptions& options)
      : m_lines(lines), m_out(lines.file(), options) {}

  Profile read(std::string_view text) {
    for (std::size_t at = 0; at < m_lines.size();) {
      at = line(at);
    }
    m_cut.ends();
    return m_out.finish("rocm_bandwidth_test" + (m_version.empty() ? "" : " " + m_version), text,
                        "copies one way, and both ways between GPUs");
  }

private:
  /// Returns the line that follows what it has read.
  std::size_t line(std::size_t at) {
    const std::string_view line = m_lines[at];
    const std::vector<std::string_view> words = words_of(line);
    if (words.size() > 2 && words[0] == "RocmBandwidthTest") {
      m_version = quoted(words[2]);
    } else if (contains(line, "Launch Command is:")) {
      m_at_once = contains(line, " -k") || contains(line, " -K");
    } else if (line.starts_with("Device: ")) {
      device(at);
    } else if (line.starts_with("Device Index:") || line.starts_with("Device Type:") ||
               line.starts_with("Device BDF:") || line.starts_with("Device  BDF:")) {
      listed_device(at, words);
    } else if (is_copy_heading(line)) {
      return matrix(at);
    } else if (contains(line, "Data Path Validation")) {
      m_out.left_out("the validation of data paths");
    } else if (contains(line, k_benchmark)) {
      m_rows = false;
      m_two_way = contains(line, "Bidirectional");
    } else if (words.size() == 10 && words[2] == "Device" && words[3] == "Id:") {
      (words[1] == "Src" ? m_from : m_to) = index_of(words[4]);
    } else if (line.starts_with("Data Size")) {
      m_rows = true;
    } else if (m_rows && words.size() > 1 && index_of(words[0])) {
      row(at, words);
    }
    return at + 1;
  }

  struct Device {
    bool gpu = false;
    std::string id;
  };

  /// Of each kind they are numbered in the order of the list.
  void add_device(std::size_t at, int index, bool gpu, std::string_view name,
                  std::string_view bus) {
    const auto number = static_cast<int>(std::ranges::count_if(
        m_devices, [&](const auto& known) { return known.second.gpu == gpu; }));
    const auto [device, added] = m_devices.try_emplace(index);
    m_said.say(m_lines, at, fmt::format("device {}", index),
               fmt::format("device {}: {} {}", index, one_line(name), one_line(bus)));
    if (!added) {
      return;
    }
    device->second = {gpu, gpu ? m_out.gpu(number) : m_out.numa_node(number)};
    if (gpu) {
      // "23:0.0": bus, device and function, in hexadecimal digits.
      const std::string_view slot = bus.substr(0, bus.find('.'));
      m_out.describe_gpu(device->second.id, name, pci_address(fmt::format("0:{}", slot)));
    }
  }

  /// Device: 1,  AMD Instinct MI100,  GPU-1,  23:0.0
  void device(std::size_t at) {
    std::vector<std::string_view> fields;
    for (std::string_view rest = m_lines[at].substr(8); !rest.empty();) {
      const std::size_t end = std::min(rest.find(",  "), rest.size());
      fields.push_back(trimmed(rest.substr(0, end)));
      rest.remove_prefix(std::min(end + 3, rest.size()));
    }
    const auto index = fields.empty() ? std::nullopt : index_of(fields[0]);
    if (!index || fields.size() < 2) {
      m_lines.fail(at, "must read \"Device: 1,  NAME,  GPU-1,  23:0.0\"; give the tool's output as "
                       "it is");
    }
    add_device(at, *index, fields.size() > 2, fields[1], fields.size() > 2 ? fields.back() : "");
  }

  /// What -e and -t print of a device, a line for each fact; of a GPU the last is its place.
  void listed_device(std::size_t at, const std::vector<std::string_view>& words) {
    if (words[1] == "Index:") {
      m_listed = index_of(words.back());
    } else if (m_listed && words.back() == "CPU") {
      add_device(at, *m_listed, false, "", "");
    } else if (m_listed && words[1] == "BDF:") {
      add_device(at, *m_listed, true, "", words.back());
    }
  }

  const Device& device_at(std::size_t at, std::optional<int> index) {
    const auto found = index ? m_devices.find(*index) : m_devices.end();
    if (found == m_devices.end()) {
      m_lines.fail(at, fmt::format("nothing above says what device {} is; put the list of devices, "
                                   "which `rocm_bandwidth_test -e` prints, before this",
                                   index ? fmt::format("{}", *index) : "?"));
    }
    return found->second;
  }

  std::size_t matrix(std::size_t at) {
    const std::string_view heading = m_lines[at];
    m_two_way = heading.starts_with("Bidirectional");
    const std::string remark =
        contains(heading, "peak") ? "of the fastest of the tool's copies" : "";
    std::size_t head = at + 1;
    while (head < m_lines.size() && m_lines[head].empty()) {
      ++head;
    }
    const MatrixText matrix = read_matrix(
        m_lines, head, fmt::format("the matrix of line {}", at + 1), RowRule::spaced, m_out);
    for (const MatrixText::Entry& entry : matrix.entries) {
      if (entry.value) {
        add(entry.line, entry.row, entry.column, 0, *entry.value * 1e9, remark);
      }
    }
    return matrix.next;
  }

  /// 64 MB          2345.678       28.610         2300.123       29.176: size, average time in us
  /// and GB/s, the same of the fastest copy
  void row(std::size_t at, const std::vector<std::string_view>& words) {
    m_cut.goes_on();
    if (words.size() != 6 || !has_decimals(words[5], 3)) {
      m_cut.found(at, fmt::format("has {} values, but the columns are a size with its unit, two "
                                  "times and two rates; was the line cut off? Give the tool's "
                                  "whole output",
                                  words.size()));
      return;
    }
    const std::uint64_t unit = words[1] == "MB" ? 1U << 20U : words[1] == "KB" ? 1U << 10U : 1U;
    const std::uint64_t bytes = m_lines.count(at, words[0], "the size") * unit;
    const double us = m_lines.positive(at, words[2], "the time");
    const double rate = m_lines.number(at, words[3], "the rate");
    const double expected =
        (m_two_way ? 2 : 1) * (m_from == m_to ? 2 : 1) * static_cast<double>(bytes) / us * 1e-3;
    if (std::abs(rate - expected) > 0.0006 + expected * 0.0006 / us) {
      m_lines.fail(at,
                   fmt::format("{} GB/s, but size / time gives {:.3f}: the tool prints sizes in "
                               "whole KB and MB; measure with sizes that are whole",
                               words[3], expected));
    }
    if (m_at_once) {
      m_out.left_out("copies of several pairs at once (-k, -K)");
      return;
    }
    add(at, m_from, m_to, bytes, rate * 1e9, "");
  }

  void add(std::size_t at, std::optional<int> source, std::optional<int> target,
           std::uint64_t bytes, double rate, std::string remark) {
    const Device& from = device_at(at, source);
    const Device& to = device_at(at, target);
    if (!from.gpu && !to.gpu) {
      m_out.left_out("copies between processors");
      return;
    }
    if (m_two_way && !(from.gpu && to.gpu)) {
      m_out.left_out("copies both ways with a processor");
      return;
    }
    CellKey key;
    key.from = from.id;
    key.to = to.id;
    key.bytes = bytes;
    key.direction = m_two_way ? k_two_way : k_one_way;
    if (from.gpu && to.gpu) { // by the source's engine
      const bool inside = from.id == to.id;
      if (inside) {
        rate /= 2;
        remark += (remark.empty() ? "" : "; ") +
                  std::string("half of what the tool prints, which counts reads and writes");
      }
      key.test = inside ? k_device_local_copy : m_two_way ? k_device_two_way_ce : k_device_write_ce;
      key.state = inside ? "" : "peer";
    } else {
      key.test = from.gpu ? k_device_to_host_ce : k_host_to_device_ce;
      key.state = "pinned";
    }
    m_out.add(key, k_rate, rate, remark);
  }

  const TextLines& m_lines;
  Collector m_out;
  CutRow m_cut{m_lines, m_out};
  Devices m_said;
  std::string m_version;
  std::map<int, Device> m_devices;
  std::optional<int> m_listed;
  bool m_two_way = false, m_at_once = false;
  bool m_rows = false; ///< whether rows of a benchmark of two devices follow
  std::optional<int> m_from, m_to;
};

} // namespace

bool is_rocm_bandwidth_mark(std::string_view line) {
  return line.starts_with("RocmBandwidthTest Version:") || is_copy_heading(line) ||
         (line.starts_with("====") && contains(line, k_benchmark));
}

Profile read_rocm_bandwidth(std::string_view text, const std::string& file,
                            const ImportOptions& options) {
  const TextLines lines(text, file);
  return RocmBandwidthReader(lines, options).read(text);
}

} // namespace reckon::import_detail
