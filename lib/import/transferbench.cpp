// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "core/units.hpp"
#include "documents/cells.hpp"
#include "import/collector.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>

namespace reckon::import_detail {
namespace {

/// Memory or executor of a transfer: "G0", "C1", "GPU00:004", "DMA00.*:001", "GPU 03".
struct Device {
  enum class Kind { host, gpu, dma } kind = Kind::host;
  int index = 0;
  bool pageable = false;
  int units = 0; ///< processor threads or a GPU's compute units; 0: not said
};

/// One that copies from one memory to one other; nothing for any other word.
std::optional<Device> device_of(std::string_view word) {
  const std::size_t digits = std::min(word.find_first_of("0123456789"), word.size());
  const std::string_view letters = word.substr(0, digits);
  word.remove_prefix(digits);
  const std::size_t end = std::min(word.find_first_not_of("0123456789"), word.size());
  const auto index = index_of(word.substr(0, end));
  Device device;
  if (!index) {
    return std::nullopt;
  }
  device.index = *index;
  if (letters == "G" || letters == "F" || letters == "GPU") { // F is fine-grained
    device.kind = Device::Kind::gpu;
  } else if (letters == "D" || letters == "DMA") {
    device.kind = Device::Kind::dma;
  } else if (letters != "C" && letters != "B" && letters != "U" && letters != "CPU") {
    return std::nullopt;
  }
  device.pageable = letters == "U";
  std::string_view rest = word.substr(end);
  if (const std::size_t colon = rest.find(':'); colon != rest.npos) {
    device.units = index_of(rest.substr(colon + 1)).value_or(0);
    rest = rest.substr(0, colon);
  }
  const bool whole = rest.empty() || rest.front() == '.'; // not a second memory, as in G0G1
  return whole ? std::optional(device) : std::nullopt;
}

struct Transfer {
  std::size_t line = 0;
  std::string what; ///< "G0 -> G000:004 -> G1"
  std::uint64_t bytes = 0;
  double rate = 0; ///< bytes per second
  std::optional<Device> from, by, to;
};

/// The line with blanks for what separates columns: "|", the table's border or, in CSV, commas.
std::string without_borders(std::string_view line) {
  constexpr std::string_view k_border = "\xe2\x94\x82";
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line.substr(i).starts_with(k_border)) {
      out += ' ';
      i += k_border.size() - 1;
    } else {
      out += line[i] == '|' || line[i] == ',' ? ' ' : line[i];
    }
  }
  return out;
}

constexpr std::string_view k_csv_head =
    "Test#,Transfer#,NumBytes,Src,Exe,Dst,CUs,BW(GB/s),Time(ms)";

class TransferbenchReader {
public:
  TransferbenchReader(const TextLines& lines, const ImportOptions& options)
      : m_lines(lines), m_out(lines.file(), options) {}

  Profile read(std::string_view text) {
    for (std::size_t at = 0; at < m_lines.size(); ++at) {
      line(at);
    }
    end_csv();
    if (!m_test.empty()) {
      m_out.cut_off(m_lines, m_lines.size(),
                    fmt::format("the test of line {} does not end with \"Aggregate (CPU)\" and is "
                                "left out",
                                m_test.front().line + 1));
    }
    m_cut.ends();
    return m_out.finish(m_version.empty() ? "TransferBench" : "TransferBench " + m_version, text,
                        "copies from one memory to one other by one of their ends");
  }

private:
  void line(std::size_t at) {
    const std::string text = without_borders(m_lines[at]);
    const std::vector<std::string_view> words = words_of(text);
    if (words.empty()) {
      return;
    }
    if (words[0] == "TransferBench" && words.size() > 1 && words[1].starts_with('v')) {
      m_version = quoted(words[1]);
    } else if (trimmed(m_lines[at]).starts_with(k_csv_head)) {
      m_csv = true;
    } else if (words[0] == "Transfer") {
      m_cut.goes_on();
      transfer(at, words);
    } else if (words[0] == "Aggregate" && words.size() > 1 && words[1] == "(CPU)") {
      m_cut.goes_on();
      end_test();
    } else if (words[0] == "Bytes" && words.size() == 4 && words[2] == "Direction") {
      m_bytes = m_lines.count(at, words[3], "Bytes Per Direction");
    } else if (contains(text, "directional copy peak bandwidth GB/s [")) {
      begin_matrix(at, words);
    } else if (m_matrix && words[0].find('\\') != words[0].npos) {
      columns(at, words);
    } else if (m_matrix && m_columns.size() > 0 && words.size() > 2 &&
               (words[0] == "CPU" || words[0] == "GPU")) {
      matrix_row(at, words);
    } else if (words[0] == "Averages") {
      m_matrix.reset();
    } else if (m_csv && index_of(words[0])) {
      csv_row(at);
    }
  }

  /// Transfer 00 | 47.774 GB/s | 1.405 ms | 67108864 bytes | G0 -> GPU00:004 -> G1
  void transfer(std::size_t at, const std::vector<std::string_view>& words) {
    if (words.size() != 13 || words[3] != "GB/s" || words[5] != "ms" || words[7] != "bytes" ||
        words[9] != "->" || words[11] != "->") {
      m_cut.found(at, "must read \"Transfer 00 | 47.774 GB/s | 1.405 ms | 67108864 bytes | G0 -> "
                      "GPU00:004 -> G1\"; was the line cut off? Give the tool's whole output");
      return;
    }
    m_test.push_back(transfer_of(at, words[2], words[4], words[6], words[8], words[10], words[12]));
  }

  [[nodiscard]] Transfer transfer_of(std::size_t at, std::string_view rate, std::string_view time,
                                     std::string_view bytes, std::string_view from,
                                     std::string_view by, std::string_view to) const {
    Transfer t{.line = at,
               .what = one_line(fmt::format("{} -> {} -> {}", from, by, to)),
               .bytes = m_lines.count(at, bytes, "the number of bytes"),
               .rate = m_lines.number(at, rate, "GB/s") * 1e9,
               .from = device_of(from),
               .by = device_of(by),
               .to = device_of(to)};
    const double seconds = m_lines.number(at, time, "ms") * 1e-3;
    constexpr double k_step_s = 0.6e-6; // times have three digits
    if (seconds > 4 * k_step_s) {
      const double expected = static_cast<double>(t.bytes) / seconds;
      if (std::abs(t.rate - expected) > 0.6e6 + expected * k_step_s / (seconds - k_step_s)) {
        m_lines.fail(at, fmt::format("{} GB/s, but bytes / ms gives {:.3f}; give the tool's output "
                                     "as it is",
                                     rate, expected * 1e-9));
      }
    }
    return t;
  }

  /// What ran at once.
  void end_test() {
    for (const Transfer& t : m_test) {
      const auto key = t.from && t.by && t.to ? key_of(*t.from, *t.by, *t.to) : std::nullopt;
      if (!key) {
        m_out.left_out(t.what);
        continue;
      }
      CellKey own = *key;
      own.bytes = t.bytes;
      if (m_test.size() > 1) { // not what the way does alone
        own.test += "_at_once";
        own.pairs = static_cast<int>(m_test.size());
      }
      add(own, t.rate);
    }
    m_test.clear();
  }

  void add(const CellKey& key, double rate) {
    if (rate > 0) {
      m_out.add(key, k_rate, rate);
    } else {
      m_out.absent(key, k_rate, CellStatus::failed, "the tool prints 0.00");
    }
  }

  /// The case of a copy by one of its ends; nothing where another one makes it.
  std::optional<CellKey> key_of(const Device& from, const Device& by, const Device& to) {
    using Kind = Device::Kind;
    if (from.kind == Kind::dma || to.kind == Kind::dma) {
      return std::nullopt;
    }
    const bool gpu = by.kind != Kind::host;
    const bool by_source = by.index == from.index && gpu == (from.kind == Kind::gpu);
    const bool by_target = by.index == to.index && gpu == (to.kind == Kind::gpu);
    if (!by_source && !by_target) {
      return std::nullopt;
    }
    const char* const engine = by.kind == Kind::gpu ? "sm" : by.kind == Kind::dma ? "ce" : "cpu";
    CellKey key;
    key.direction = k_one_way;
    key.threads = by.kind == Kind::dma ? 0 : by.units;
    if (from.kind == Kind::host && to.kind == Kind::host) {
      key.test = k_numa_copy;
    } else if (from.kind == Kind::host || to.kind == Kind::host) {
      key.test = fmt::format("{}_memcpy_{}",
                             from.kind == Kind::host ? "host_to_device" : "device_to_host", engine);
      key.state = from.pageable || to.pageable ? "pageable" : "pinned";
    } else if (from.index == to.index) {
      key.test = by.kind == Kind::gpu ? std::string(k_device_local_copy)
                                      : fmt::format("{}_{}", k_device_local_copy, engine);
    } else {
      key.test = fmt::format("device_to_device_memcpy_{}_{}", by_source ? "write" : "read", engine);
      key.state = "peer";
    }
    key.from = place(from);
    key.to = place(to);
    return key;
  }

  std::string place(const Device& device) {
    return device.kind == Device::Kind::host ? m_out.numa_node(device.index)
                                             : m_out.gpu(device.index);
  }

  // ---- the matrices of the preset p2p

  struct Matrix {
    bool two_way = false, by_target = false;
    Device::Kind engine = Device::Kind::gpu;
  };

  /// Unidirectional copy peak bandwidth GB/s [Local read / Remote write] (GPU-Executor: GFX)
  void begin_matrix(std::size_t at, const std::vector<std::string_view>& words) {
    const std::string_view line = m_lines[at];
    const bool dma = contains(line, "GPU-Executor: DMA");
    if (!dma && !contains(line, "GPU-Executor: GFX")) {
      m_lines.fail(at, "must end with (GPU-Executor: GFX) or (GPU-Executor: DMA); was the line cut "
                       "off? Give the tool's whole output");
    }
    m_matrix = Matrix{.two_way = words[0] == "Bidirectional",
                      .by_target = contains(line, "[Remote read"),
                      .engine = dma ? Device::Kind::dma : Device::Kind::gpu};
    m_columns.clear();
  }

  /// SRC+EXE\DST    CPU 00    CPU 01       GPU 00
  void columns(std::size_t at, const std::vector<std::string_view>& words) {
    m_columns.clear();
    for (std::size_t i = 1; i < words.size(); i += 2) {
      const auto device = i + 1 < words.size()
                              ? device_of(fmt::format("{}{}", words[i], words[i + 1]))
                              : std::nullopt;
      if (!device) {
        m_lines.fail(at,
                     "must name the columns as \"CPU 00    GPU 00\"; was the line cut off? Give "
                     "the tool's whole output");
      }
      m_columns.push_back(*device);
    }
    const auto gpus = static_cast<std::size_t>(
        std::count_if(m_columns.begin(), m_columns.end(),
                      [](const Device& d) { return d.kind == Device::Kind::gpu; }));
    m_devices.say(m_lines, at, "count",
                  fmt::format("{} and {}", counted(gpus, "GPU"),
                              counted(m_columns.size() - gpus, "NUMA node")));
  }

  /// GPU 00  ->     23.83     23.40       108.95
  void matrix_row(std::size_t at, const std::vector<std::string_view>& words) {
    const bool sum = words[2] == "<->";
    if (!sum && words[2] != "->") {
      return; // the other way of the same run, or its smallest, its largest and its deviation
    }
    const auto row = device_of(fmt::format("{}{}", words[0], words[1]));
    m_cut.goes_on();
    if (!row || words.size() != m_columns.size() + 3) {
      m_cut.found(at, fmt::format("has {} values, but the matrix has {} columns; was the line cut "
                                  "off? Give the tool's whole output",
                                  words.size() - 3, m_columns.size()));
      return;
    }
    if (sum != m_matrix->two_way) {
      return; // each way of a run of both
    }
    for (std::size_t i = 0; i < m_columns.size(); ++i) {
      const std::string_view word = words[i + 3];
      if (word == "N/A") {
        continue;
      }
      if (!has_decimals(word, 2)) {
        m_lines.fail(at, fmt::format("\"{}\" is no rate with two decimals; was the line cut off? "
                                     "Give the tool's whole output",
                                     quoted(word)));
      }
      matrix_cell(*row, m_columns[i], m_lines.number(at, word, "the rate") * 1e9);
    }
  }

  void matrix_cell(const Device& from, const Device& to, double rate) {
    Device by = m_matrix->by_target ? to : from;
    if (by.kind == Device::Kind::gpu) {
      by.kind = m_matrix->engine;
    }
    auto key = key_of(from, by, to);
    if (!key) {
      return; // a processor and a GPU of one number: cannot be, for one of them is `by`
    }
    if (m_matrix->two_way) {
      constexpr std::string_view k_between = "device_to_device_";
      if (!key->test.starts_with(k_between)) {
        m_out.left_out("copies both ways with a processor");
        return;
      }
      key->test.insert(k_between.size(), "bidirectional_");
      key->direction = k_two_way;
    }
    key->bytes = m_bytes;
    add(*key, rate);
  }

  // ---- CSV of versions before 1.5x, a row for each transfer

  void csv_row(std::size_t at) {
    std::vector<std::string_view> fields;
    for (std::string_view rest = m_lines[at]; true;) {
      const std::size_t end = std::min(rest.find(','), rest.size());
      fields.push_back(trimmed(rest.substr(0, end)));
      if (end == rest.size()) {
        break;
      }
      rest.remove_prefix(end + 1);
    }
    constexpr std::size_t k_time = 8;
    m_cut.goes_on();
    if (fields.size() <= k_time + 1 || !has_decimals(fields[k_time], 3)) {
      m_cut.found(at, fmt::format("has {} fields, but the columns are {} and more; was the line "
                                  "cut off? Give the tool's whole output",
                                  fields.size(), k_csv_head));
      m_csv_test.clear(); // how many ran at once is not known
      m_test.clear();
      return;
    }
    if (fields[0] != m_csv_test) {
      end_csv();
      m_csv_test = std::string(fields[0]);
    }
    Transfer t = transfer_of(at, fields[7], fields[8], fields[2], fields[3], fields[4], fields[5]);
    if (t.by) {
      t.by->units = index_of(fields[6]).value_or(0);
    }
    m_test.push_back(std::move(t));
  }

  void end_csv() {
    if (!m_csv_test.empty()) {
      end_test();
      m_csv_test.clear();
    }
  }

  const TextLines& m_lines;
  Collector m_out;
  CutRow m_cut{m_lines, m_out};
  Devices m_devices;
  std::string m_version;
  std::vector<Transfer> m_test; ///< that has not ended
  bool m_csv = false;
  std::string m_csv_test;    ///< number of the one that has not ended; empty: none
  std::uint64_t m_bytes = 0; ///< of each copy of the matrices; 0: not said
  std::optional<Matrix> m_matrix;
  std::vector<Device> m_columns;
};

} // namespace

bool is_transferbench_mark(std::string_view line) {
  return line.starts_with("TransferBench v") || trimmed(line).starts_with(k_csv_head) ||
         contains(line, "directional copy peak bandwidth GB/s [") ||
         (trimmed(line).starts_with("Executor:") && contains(line, "GB/s"));
}

Profile read_transferbench(std::string_view text, const std::string& file,
                           const ImportOptions& options) {
  const TextLines lines(text, file);
  return TransferbenchReader(lines, options).read(text);
}

} // namespace reckon::import_detail
