// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "documents/cells.hpp"
#include "import/log_reader.hpp"

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
  return line.ends_with("directional copy peak bandwidth GB/s") ||
         line.ends_with("directional copy average bandwidth GB/s");
}

class RocmBandwidthReader : public LogReader {
public:
  RocmBandwidthReader(const TextLines& lines, const ImportOptions& options)
      : LogReader(lines, options, "rocm_bandwidth_test",
                  "copies one way, and both ways between GPUs") {}

private:
  void line(const Line& line) override {
    if (line.words.size() > 2 && line[0] == "RocmBandwidthTest") {
      m_version = quoted(line[2]);
    } else if (contains(line.text, "Launch Command is:")) {
      m_at_once = contains(line.text, " -k") || contains(line.text, " -K");
    } else if (const auto device = line.behind("Device: ")) {
      const std::vector<std::string_view> fields = split(*device, ",  ");
      const auto index = index_of(fields[0]);
      if (!index || fields.size() < 2) {
        line.fail("must read \"Device: 1,  NAME,  GPU-1,  23:0.0\"; give the tool's output as it "
                  "is");
      }
      const bool gpu = fields.size() > 2;
      add_device(line, *index, gpu, fields[1], gpu ? fields.back() : "");
    } else if (line[0] == "Device" &&
               (line[1] == "Index:" || line[1] == "Type:" || line[1] == "BDF:")) {
      listed_device(line);
    } else if (is_copy_heading(line.text)) {
      matrix(line);
    } else if (contains(line.text, "Data Path Validation")) {
      m_out.left_out("the validation of data paths");
    } else if (contains(line.text, k_benchmark)) {
      m_rows = false;
      m_two_way = contains(line.text, "Bidirectional");
    } else if (line.words.size() == 10 && line[2] == "Device" && line[3] == "Id:") {
      (line[1] == "Src" ? m_from : m_to) = index_of(line[4]);
    } else if (line.text.starts_with("Data Size")) {
      m_rows = true;
    } else if (m_rows && line.words.size() > 1 && index_of(line[0])) {
      row(line);
    }
  }

  void end() override { ends_in_row(); }

  struct Device {
    bool gpu = false;
    std::string id;
  };

  /// Of each kind they are numbered in the order of the list.
  void add_device(const Line& line, int index, bool gpu, std::string_view name,
                  std::string_view bus) {
    const auto number = static_cast<int>(
        std::ranges::count_if(m_known, [&](const auto& known) { return known.second.gpu == gpu; }));
    const auto [device, added] = m_known.try_emplace(index);
    m_devices.say(line, fmt::format("device {}", index),
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

  /// What -e and -t print of a device, a line for each fact; of a GPU the last is its place.
  void listed_device(const Line& line) {
    if (line[1] == "Index:") {
      m_listed = index_of(line.words.back());
    } else if (m_listed && (line[1] == "BDF:" || line.words.back() == "CPU")) {
      const bool gpu = line[1] == "BDF:" && line.words.back() != "CPU";
      add_device(line, *m_listed, gpu, "", gpu ? line.words.back() : "");
    }
  }

  const Device& device_at(const Line& line, std::optional<int> index) {
    const auto found = m_known.find(index.value_or(-1));
    if (found == m_known.end()) {
      line.fail(fmt::format("nothing above says what device {} is; put the list of devices, which "
                            "`rocm_bandwidth_test -e` prints, before this",
                            index ? fmt::format("{}", *index) : "?"));
    }
    return found->second;
  }

  void matrix(const Line& line) {
    m_two_way = line.text.starts_with("Bidirectional");
    const char* const remark =
        contains(line.text, "peak") ? "of the fastest of the tool's copies" : "";
    while (m_next < m_lines.size() && m_lines[m_next].empty()) {
      ++m_next;
    }
    const MatrixText matrix =
        read_matrix(fmt::format("the matrix of line {}", line.at + 1), RowRule::spaced);
    for (const auto& [row, column, at, value] : matrix.entries) {
      if (value) {
        add(Line(m_lines, at), row, column, 0, *value * 1e9, remark);
      }
    }
  }

  /// 64 MB          2345.678       28.610         2300.123       29.176: size, average time in us
  /// and GB/s, the same of the fastest copy
  void row(const Line& line) {
    if (!is_whole(line, 6, has_decimals(line[5], 3))) {
      return;
    }
    const std::uint64_t unit = line[1] == "MB" ? 1U << 20U : line[1] == "KB" ? 1U << 10U : 1U;
    const std::uint64_t bytes = line.count(line[0], "the size") * unit;
    const double us = line.positive(line[2], "the time"), rate = line.number(line[3], "the rate");
    const double expected =
        (m_two_way ? 2 : 1) * (m_from == m_to ? 2 : 1) * static_cast<double>(bytes) / us * 1e-3;
    if (std::abs(rate - expected) > 0.0006 + expected * 0.0006 / us) {
      line.fail(fmt::format("{} GB/s, but size / time gives {:.3f}: the tool prints sizes in whole "
                            "KB and MB; measure with sizes that are whole",
                            line[3], expected));
    }
    if (m_at_once) {
      m_out.left_out("copies of several pairs at once (-k, -K)");
    } else {
      add(line, m_from, m_to, bytes, rate * 1e9, "");
    }
  }

  void add(const Line& line, std::optional<int> source, std::optional<int> target,
           std::uint64_t bytes, double rate, std::string remark) {
    const Device &from = device_at(line, source), &to = device_at(line, target);
    if (!from.gpu && !to.gpu) {
      m_out.left_out("copies between processors");
      return;
    }
    if (m_two_way && !(from.gpu && to.gpu)) {
      m_out.left_out("copies both ways with a processor");
      return;
    }
    CellKey key{.from = from.id,
                .to = to.id,
                .bytes = bytes,
                .direction = m_two_way ? k_two_way : k_one_way,
                .state = "pinned"};
    if (from.id == to.id) {
      rate /= 2;
      append(remark, k_half_inside);
      key.test = k_device_local_copy;
      key.state = "";
    } else if (from.gpu && to.gpu) { // by the source's engine
      key.test = m_two_way ? k_device_two_way_ce : k_device_write_ce;
      key.state = "peer";
    } else {
      key.test = from.gpu ? k_device_to_host_ce : k_host_to_device_ce;
    }
    m_out.add(key, k_rate, rate, remark);
  }

  std::map<int, Device> m_known;
  std::optional<int> m_listed;
  bool m_two_way = false, m_at_once = false;
  bool m_rows = false; ///< whether rows of a benchmark of two devices follow
  std::optional<int> m_from, m_to;
};

} // namespace

Profile read_rocm_bandwidth(const TextLines& lines, const ImportOptions& options) {
  return RocmBandwidthReader(lines, options).read();
}

} // namespace reckon::import_detail
