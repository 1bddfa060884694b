// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "core/units.hpp"
#include "documents/cells.hpp"
#include "import/collectives.hpp"
#include "import/log_reader.hpp"

#include <fmt/format.h>

#include <algorithm>
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

class TransferbenchReader : public LogReader {
public:
  TransferbenchReader(const TextLines& lines, const ImportOptions& options)
      : LogReader(lines, options, "TransferBench",
                  "copies from one memory to one other by one of their ends") {}

private:
  void line(const Line& printed) override {
    const std::string text = without_borders(printed.text);
    const Line line(m_lines, printed.at, text);
    if (line[0] == "TransferBench" && line[1].starts_with('v')) {
      m_version = quoted(line[1]);
    } else if (printed.text.starts_with(k_csv_head)) {
      m_csv = true;
    } else if (line[0] == "Transfer") {
      transfer(line);
    } else if (line[0] == "Aggregate" && line[1] == "(CPU)") {
      goes_on();
      end_test();
    } else if (line[0] == "Bytes" && line.words.size() == 4 && line[2] == "Direction") {
      m_bytes = line.count(line[3], "Bytes Per Direction");
    } else if (contains(text, "directional copy peak bandwidth GB/s [")) {
      begin_matrix(line);
    } else if (m_matrix && contains(line[0], "\\")) {
      columns(line);
    } else if (m_matrix && !m_columns.empty() && line.words.size() > 2 &&
               (line[0] == "CPU" || line[0] == "GPU")) {
      matrix_row(line);
    } else if (line[0] == "Averages") {
      m_matrix.reset();
    } else if (m_csv && index_of(line[0])) {
      csv_row(line);
    }
  }

  void end() override {
    end_csv();
    if (!m_test.empty()) {
      cut_off(m_lines.size(), fmt::format("the test of line {} does not end with \"Aggregate "
                                          "(CPU)\" and is left out",
                                          m_test.front().line + 1));
    }
    ends_in_row();
  }

  /// Transfer 00 | 47.774 GB/s | 1.405 ms | 67108864 bytes | G0 -> GPU00:004 -> G1
  void transfer(const Line& line) {
    const bool form = line[3] == "GB/s" && line[5] == "ms" && line[7] == "bytes" &&
                      line[9] == "->" && line[11] == "->";
    if (is_whole(line, 13, form)) {
      m_test.push_back(transfer_of(line, {line[2], line[4], line[6], line[8], line[10], line[12]}));
    }
  }

  /// Of the words for GB/s, ms, bytes, source, executor and target.
  [[nodiscard]] static Transfer transfer_of(const Line& line,
                                            const std::array<std::string_view, 6>& words) {
    const auto& [rate, time, bytes, from, by, to] = words;
    Transfer t{.line = line.at,
               .what = one_line(fmt::format("{} -> {} -> {}", from, by, to)),
               .bytes = line.count(bytes, "the number of bytes"),
               .rate = line.number(rate, "GB/s") * 1e9,
               .from = device_of(from),
               .by = device_of(by),
               .to = device_of(to)};
    const double seconds = line.number(time, "ms") * 1e-3;
    constexpr double k_step_s = 0.6e-6; // times have three digits
    if (seconds > 4 * k_step_s) {
      const double expected = static_cast<double>(t.bytes) / seconds * 1e-9;
      check_rate(line.place(), "the rate", t.rate * 1e-9, expected,
                 0.6e-3 + expected * k_step_s / (seconds - k_step_s));
    }
    return t;
  }

  /// What ran at once.
  void end_test() {
    for (const Transfer& t : m_test) {
      auto key = t.from && t.by && t.to ? key_of(*t.from, *t.by, *t.to) : std::nullopt;
      if (!key) {
        m_out.left_out(t.what);
        continue;
      }
      key->bytes = t.bytes;
      if (m_test.size() > 1) { // not what the way does alone
        key->test += "_at_once";
        key->pairs = static_cast<int>(m_test.size());
      }
      m_out.add_printed(*key, k_rate, t.rate);
    }
    m_test.clear();
  }

  /// The case of a copy by one of its ends; nothing where another one makes it.
  std::optional<CellKey> key_of(const Device& from, const Device& by, const Device& to) {
    using Kind = Device::Kind;
    const bool gpu = by.kind != Kind::host;
    const bool by_source = by.index == from.index && gpu == (from.kind == Kind::gpu);
    const bool by_target = by.index == to.index && gpu == (to.kind == Kind::gpu);
    if (from.kind == Kind::dma || to.kind == Kind::dma || (!by_source && !by_target)) {
      return std::nullopt;
    }
    const char* const engine = by.kind == Kind::gpu ? "sm" : by.kind == Kind::dma ? "ce" : "cpu";
    CellKey key{.from = place(from),
                .to = place(to),
                .threads = by.kind == Kind::dma ? 0 : by.units,
                .direction = k_one_way};
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
  void begin_matrix(const Line& line) {
    const bool dma = contains(line.text, "GPU-Executor: DMA");
    if (!dma && !contains(line.text, "GPU-Executor: GFX")) {
      line.fail_as_cut("must end with (GPU-Executor: GFX) or (GPU-Executor: DMA)");
    }
    m_matrix = Matrix{.two_way = line[0] == "Bidirectional",
                      .by_target = contains(line.text, "[Remote read"),
                      .engine = dma ? Device::Kind::dma : Device::Kind::gpu};
    m_columns.clear();
  }

  /// SRC+EXE\DST    CPU 00    CPU 01       GPU 00
  void columns(const Line& line) {
    m_columns.clear();
    for (std::size_t i = 1; i < line.words.size(); i += 2) {
      const auto device = device_of(fmt::format("{}{}", line[i], line[i + 1]));
      if (!device) {
        line.fail_as_cut("must name the columns as \"CPU 00    GPU 00\"");
      }
      m_columns.push_back(*device);
    }
    const auto gpus =
        static_cast<std::size_t>(std::ranges::count(m_columns, Device::Kind::gpu, &Device::kind));
    m_devices.say(line, "count",
                  fmt::format("{} and {}", counted(gpus, "GPU"),
                              counted(m_columns.size() - gpus, "NUMA node")));
  }

  /// GPU 00  ->     23.83     23.40       108.95
  void matrix_row(const Line& line) {
    const bool sum = line[2] == "<->";
    if (!sum && line[2] != "->") {
      return; // the other way of the same run, or its smallest, its largest and its deviation
    }
    const auto row = device_of(fmt::format("{}{}", line[0], line[1]));
    if (!is_whole(line, m_columns.size() + 3, row.has_value()) || sum != m_matrix->two_way) {
      return; // or each way of a run of both
    }
    for (std::size_t i = 0; i < m_columns.size(); ++i) {
      const std::string_view word = line[i + 3];
      if (word == "N/A") {
        continue;
      }
      if (!has_decimals(word, 2)) {
        line.fail_as_cut(fmt::format("\"{}\" is no rate with two decimals", quoted(word)));
      }
      matrix_cell(*row, m_columns[i], line.number(word, "the rate") * 1e9);
    }
  }

  void matrix_cell(const Device& from, const Device& to, double rate) {
    Device by = m_matrix->by_target ? to : from;
    by.kind = by.kind == Device::Kind::gpu ? m_matrix->engine : by.kind;
    const std::optional<CellKey> known = key_of(from, by, to);
    if (!known) { // neither of them is `by`: an engine of the matrix's own
      m_out.left_out("copies between kinds of devices that reckon has no case for");
      return;
    }
    CellKey key = *known;
    if (m_matrix->two_way) {
      constexpr std::string_view k_between = "device_to_device_";
      if (!key.test.starts_with(k_between)) {
        m_out.left_out("copies both ways with a processor");
        return;
      }
      key.test.insert(k_between.size(), "bidirectional_");
      key.direction = k_two_way;
    }
    key.bytes = m_bytes;
    m_out.add_printed(key, k_rate, rate);
  }

  // ---- CSV of versions before 1.5x, a row for each transfer

  void csv_row(const Line& line) {
    constexpr std::size_t k_least = 10; // columns
    if (!is_whole(line, std::max(k_least, line.words.size()), has_decimals(line[8], 3))) {
      m_csv_test.clear(); // how many ran at once is not known
      m_test.clear();
      return;
    }
    if (line[0] != m_csv_test) {
      end_csv();
      m_csv_test = line[0];
    }
    Transfer& t = m_test.emplace_back(
        transfer_of(line, {line[7], line[8], line[2], line[3], line[4], line[5]}));
    if (t.by) {
      t.by->units = index_of(line[6]).value_or(0);
    }
  }

  void end_csv() {
    if (!std::exchange(m_csv_test, "").empty()) {
      end_test();
    }
  }

  std::vector<Transfer> m_test; ///< that has not ended
  bool m_csv = false;
  std::string m_csv_test;    ///< number of the one that has not ended; empty: none
  std::uint64_t m_bytes = 0; ///< of each copy of the matrices; 0: not said
  std::optional<Matrix> m_matrix;
  std::vector<Device> m_columns;
};

} // namespace

Profile read_transferbench(const TextLines& lines, const ImportOptions& options) {
  return TransferbenchReader(lines, options).read();
}

} // namespace reckon::import_detail
