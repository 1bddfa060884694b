// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "import/message_cells.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace reckon::import_detail {
namespace {

/// What the tool calls MB or MiB is 2^20 bytes in all its versions.
constexpr double k_mib = 1048576;
constexpr double k_gigabit = 125e6; ///< bytes

struct Verb {
  std::string_view title, name, command;
};
/// A title that begins with another stands before it.
constexpr std::array<Verb, 5> k_verbs{{{"RDMA Write imm", "write with immediate", ""},
                                       {"RDMA Write", "write", "ib_write"},
                                       {"RDMA Read", "read", "ib_read"},
                                       {"Send imm", "send with immediate", ""},
                                       {"Send", "send", "ib_send"}}};

struct PerftestTest {
  const Verb* verb = nullptr; ///< null: no way between two machines
  bool latency = false, two_way = false;
  std::string title; ///< for people
  std::string connection = "RC";
  std::uint64_t qps = 1, depth = 0; ///< depth 0: not said
  std::string device{};
  std::string local{}, remote{}; ///< addresses of the queue pairs
  std::optional<GpuEnd> gpu{};   ///< whose memory this process uses
  bool server = false;           ///< whether this process is the second one
};

/// "RDMA_Write Bidirectional BW Test", in JSON with _ for each blank.
std::optional<PerftestTest> test_titled(std::string_view line) {
  std::string title(trimmed(line));
  std::replace(title.begin(), title.end(), '_', ' ');
  const bool bandwidth = title.ends_with(" BW Test");
  if (!bandwidth && !title.ends_with(" Latency Test")) {
    return std::nullopt;
  }
  const auto found = std::find_if(k_verbs.begin(), k_verbs.end(),
                                  [&](const Verb& v) { return title.starts_with(v.title); });
  if (found == k_verbs.end() && !title.starts_with("Atomic")) {
    return std::nullopt; // another program's line
  }
  const bool ways =
      found != k_verbs.end() && !contains(title, "Multicast") && !contains(title, "forwarding");
  return PerftestTest{.verb = ways ? &*found : nullptr,
                      .latency = !bandwidth,
                      .two_way = contains(title, "Bidirectional"),
                      .title = one_line(title)};
}

/// "ib_write_bw -b -d mlx5_0 host"
std::optional<PerftestTest> test_called(const std::vector<std::string_view>& words) {
  for (const std::string_view word : words) {
    const std::string_view name = word.substr(word.find_last_of('/') + 1);
    const auto found = std::find_if(k_verbs.begin(), k_verbs.end(), [&](const Verb& v) {
      return !v.command.empty() && name.starts_with(v.command) &&
             (name.substr(v.command.size()) == "_bw" || name.substr(v.command.size()) == "_lat");
    });
    if (found != k_verbs.end()) {
      const auto has = [&](std::string_view flag) {
        return std::find(words.begin(), words.end(), flag) != words.end();
      };
      return PerftestTest{.verb = &*found,
                          .latency = name.ends_with("_lat"),
                          .two_way = has("-b") || has("--bidirectional"),
                          .title = one_line(name)};
    }
  }
  return std::nullopt;
}

/// Of the words that name a column one is so: "BW peak[MB/sec]", "#bytes", "tps average".
bool is_column(std::string_view word) {
  return contains(word, "[") || word.starts_with('#') || word == "iterations" || word == "tps";
}

bool is_digits(std::string_view word) {
  return word.find_first_not_of("0123456789") == word.npos;
}

/// The GPU that a process takes, by what it prints before its test.
class GpuLines {
public:
  void line(std::string_view line) {
    const std::vector<std::string_view> words = words_of(line);
    const auto after = [&](std::string_view begin) {
      const std::size_t at = line.find(begin);
      return at == line.npos ? std::string_view() : line.substr(at + begin.size());
    };
    if (line.starts_with("initializing ") && words.size() == 2) { // CUDA, MUSA, MLU
      const std::string full = std::move(m_full);
      *this = {};
      m_full = full;
    } else if (words.size() == 7 && words[1] == "device" && words[3] == "PCIe") {
      // "CUDA device 0: PCIe address is 17:00"
      m_listed.emplace_back(words[2].substr(0, words[2].size() - 1), words[6]);
    } else if (line.starts_with("Got PCIe address of: ")) {
      m_full = words.back();
    } else if (line.starts_with("Picking device No. ")) {
      take(words.back());
    } else if (m_gpu && contains(line, "device name = [")) {
      const std::string_view name = after("device name = [");
      m_gpu->name = name.substr(0, name.rfind(']'));
    } else if (line.starts_with("Using ROCm Device with ID: ")) {
      const std::string_view rest = after("ID: "), name = after("Name: "),
                             bus = after("Bus ID: 0x");
      take(rest.substr(0, rest.find(',')));
      if (m_gpu) {
        m_gpu->name = name.substr(0, name.find(", PCI Bus ID"));
        m_gpu->address = pci_address("0", bus.substr(0, bus.find(',')), "0");
      }
    } else if (contains(line, "for type CUDA_MEM_MALLOC")) { // memory of the host
      m_gpu.reset();
    }
  }

  /// Of the test that begins; what is said after it is of another one.
  [[nodiscard]] std::optional<GpuEnd> take() { return std::exchange(*this, {}).m_gpu; }

private:
  void take(std::string_view number) {
    const auto index = index_of(number);
    if (!index) {
      return;
    }
    m_gpu = GpuEnd{.number = *index};
    // The list has no domains: where they tell the GPUs apart, or another could be meant, the
    // address is not known.
    std::string_view bus;
    for (const auto& [listed, address] : m_listed) {
      bus = listed == number ? address : bus;
    }
    const bool one = std::count_if(m_listed.begin(), m_listed.end(),
                                   [&](const auto& gpu) { return gpu.second == bus; }) == 1;
    m_gpu->address = !m_full.empty() ? pci_address(m_full)
                     : one           ? pci_address(fmt::format("0:{}", bus))
                                     : "";
  }

  std::vector<std::pair<std::string, std::string>> m_listed; ///< number, bus and device
  std::string m_full;                                        ///< --use_cuda_bus_id
  std::optional<GpuEnd> m_gpu;
};

class PerftestReader {
public:
  PerftestReader(const TextLines& lines, const ImportOptions& options)
      : m_lines(lines), m_out(lines.file(), options), m_cells(lines, options, m_out) {}

  Profile read(std::string_view text) {
    for (std::size_t at = 0; at < m_lines.size(); ++at) {
      line(at);
    }
    end_table();
    if (!m_any_table) {
      m_lines.fail(m_lines.size(), "there is no table (#bytes, #iterations, ...); was the file cut "
                                   "off? Give the tool's whole output");
    }
    if (!m_any_rows && m_empty) {
      m_lines.fail(*m_empty, "there are no rows below this; was the file cut off, or is it of a "
                             "server that prints none? Give the client's whole output");
    }
    return finish(text);
  }

  /// What --out_json wrote: one row.
  Profile read_json(std::string_view text) {
    const Json json = parse_json(m_lines.text(), m_lines.file());
    const JsonView root(json, m_lines.file());
    const JsonView info = root.at("test_info");
    const JsonView results = root.at("results");
    m_test = test_titled(info.at("test").string());
    if (!m_test) {
      info.at("test").fail("must be a test of perftest, as RDMA_Write_BW_Test");
    }
    if (const auto type = info.find("Connection_type")) {
      m_test->connection = type->name();
    }
    if (const auto qps = info.find("Number_of_qps")) {
      m_test->qps = qps->count();
    }
    if (const auto depth = info.find("TX_depth")) {
      m_test->depth = depth->count();
    }
    m_table = {};
    const std::uint64_t bytes = results.at("MsgSize").count();
    if (m_test->latency) {
      const auto typical = results.find("t_typical");
      const JsonView time = typical ? *typical : results.at("t_avg");
      m_table.rows.push_back({bytes, time.non_negative() * 1e-6});
      m_others = true;
    } else {
      const JsonView rate = results.at("BW_average");
      m_table.rows.push_back({bytes, rate.non_negative() * unit_of(results, bytes)});
    }
    if (const auto rocm = info.find("Use_ROCm_memory"); rocm && rocm->string() == "ON") {
      m_test->gpu = GpuEnd{};
      m_table.remark = "which GPU is not said: the first";
    }
    for (const char* const name : {"cuda_device", "musa_device"}) {
      if (const auto gpu = info.find(name)) {
        m_test->gpu =
            GpuEnd{.number = static_cast<int>(std::min<std::uint64_t>(gpu->count(), 999))};
      }
    }
    m_columns = 1;
    end_table();
    return finish(text);
  }

private:
  void line(std::size_t at) {
    const std::vector<std::string_view> words = words_of(m_lines[at]);
    if (words.empty()) {
      return;
    }
    m_gpu.line(m_lines[at]);
    m_server = m_server || contains(m_lines[at], "Waiting for client to connect");
    std::optional<PerftestTest> test = test_titled(m_lines[at]);
    test = test ? test : test_called(words);
    if (test) {
      end_table();
      m_test = test;
    } else if (m_test && m_columns == 0) {
      setting(at);
    }
    if (words[0] == "#bytes") {
      begin_table(at, words);
    } else if (m_columns > 0 && words[0].starts_with("---")) {
      m_cut.goes_on();
      end_table();
    } else if (m_columns > 0 && is_digits(words[0])) {
      row(at, words);
    }
  }

  /// " Number of qps   : 2            Transport type : IB"
  void setting(std::size_t at) {
    const auto value = [&](std::string_view name) {
      const std::string_view line = m_lines[at];
      const std::size_t begin = line.find(name);
      const std::size_t colon = begin == line.npos ? begin : line.find(':', begin);
      const std::vector<std::string_view> words =
          colon == line.npos ? std::vector<std::string_view>() : words_of(line.substr(colon + 1));
      return words.empty() ? std::string_view() : words.front();
    };
    if (const std::string_view type = value("Connection type"); !type.empty()) {
      m_test->connection = quoted(type);
    }
    if (const std::string_view qps = value("Number of qps"); !qps.empty()) {
      m_test->qps = m_lines.count(at, qps, "Number of qps");
    }
    if (const std::string_view depth = value("TX depth"); !depth.empty()) {
      m_test->depth = m_lines.count(at, depth, "TX depth");
    }
    if (const std::string_view device = value("Device"); !device.empty()) {
      m_test->device = quoted(device);
    }
    const std::vector<std::string_view> words = words_of(m_lines[at]);
    if (words.size() > 2 && words[1] == "address:") {
      std::string& address = words[0] == "local" ? m_test->local : m_test->remote;
      address += fmt::format(" {}", fmt::join(words.begin() + 2, words.end(), " "));
    }
  }

  void begin_table(std::size_t at, const std::vector<std::string_view>& words) {
    end_table();
    if (!m_test) {
      m_lines.fail(at, "a table begins, but no line above says of which test (\"RDMA_Write BW "
                       "Test\", or the command ib_write_bw); give the tool's whole output");
    }
    m_any_table = true;
    m_test->gpu = m_gpu.take();
    m_test->server = std::exchange(m_server, false);
    if (!m_test->local.empty()) {
      m_memory[m_test->local] = m_test->gpu;
    }
    m_table = {};
    m_table.line = at;
    m_message_rate.reset();
    std::optional<std::size_t> average, typical, mean;
    for (const std::string_view word : words) {
      if (!is_column(word)) {
        continue;
      }
      if (word == "#sl" || contains(word, "Port")) {
        m_lines.fail(at, fmt::format("the column {} says that rows are of several {}; measure each "
                                     "by itself",
                                     quoted(word), word == "#sl" ? "service levels" : "ports"));
      }
      const std::size_t column = m_columns++;
      if (word.starts_with("average[")) {
        average = column;
        m_unit = word == "average[Gb/sec]"                                 ? k_gigabit
                 : word == "average[MB/sec]" || word == "average[MiB/sec]" ? k_mib
                                                                           : 0;
      } else if (word.starts_with("MsgRate[")) {
        m_message_rate = column;
      } else if (word == "t_typical[usec]") {
        typical = column;
      } else if (word == "t_avg[usec]") {
        mean = column;
      }
    }
    const auto value = !m_test->latency ? average : typical ? typical : mean;
    if (!value || (!m_test->latency && m_unit == 0)) {
      m_lines.fail(at, m_test->latency
                           ? "a table of times must have t_typical[usec] or t_avg[usec]; was the "
                             "line cut off? Give the tool's whole output"
                           : "a table of rates must have BW average[MB/sec], [MiB/sec] or "
                             "[Gb/sec]; was the line cut off? Give the tool's whole output");
    }
    m_value = *value;
    m_others = m_others || (m_test->latency && m_columns > 3);
  }

  void row(std::size_t at, const std::vector<std::string_view>& words) {
    m_cut.goes_on();
    if (words.size() != m_columns || !has_decimals(words[m_value], 2) ||
        !has_decimals(words.back(), m_message_rate == m_columns - 1 ? 6 : 2)) {
      m_cut.found(at, fmt::format("has {} values, but the table has {} columns, or the last has "
                                  "fewer digits than the tool prints; was the line cut off, or "
                                  "did something else write into it? Give the tool's whole output",
                                  words.size(), m_columns));
      return;
    }
    const std::uint64_t bytes = m_lines.count(at, words[0], "#bytes");
    const double value = m_lines.number(at, words[m_value], m_test->latency ? "the time" : "BW");
    if (m_test->latency) {
      m_table.rows.push_back({bytes, value * 1e-6});
      return;
    }
    const double rate = value * m_unit;
    const auto iterations = static_cast<double>(m_lines.count(at, words[1], "#iterations"));
    m_out.took(rate > 0 ? static_cast<double>(bytes) * iterations / rate : 0);
    if (m_message_rate) {
      const double messages = m_lines.number(at, words[*m_message_rate], "MsgRate") * 1e6;
      check_rate(at, rate, messages * static_cast<double>(bytes), static_cast<double>(bytes));
    }
    m_table.rows.push_back({bytes, rate});
  }

  /// Messages a second times their size must be the rate, or the unit is not what it seems.
  void check_rate(std::size_t at, double rate, double by_messages, double bytes) const {
    const double rounding = 0.006 * m_unit + 0.6 * bytes + 0.01 * rate;
    if (std::abs(rate - by_messages) > rounding) {
      m_lines.fail(at, fmt::format("BW average is {:.4g} GB/s, but MsgRate times #bytes gives "
                                   "{:.4g}; give the tool's output as it is",
                                   rate * 1e-9, by_messages * 1e-9));
    }
  }

  /// The JSON does not say the unit of its rates, but how many messages they were.
  [[nodiscard]] double unit_of(const JsonView& results, std::uint64_t bytes) const {
    const double rate = results.at("BW_average").positive();
    const double unit = results.at("MsgRate").positive() * 1e6 * static_cast<double>(bytes) / rate;
    for (const double known : {k_mib, k_gigabit}) { // they differ by 119
      if (unit > known / 2 && unit < known * 2) {
        return known;
      }
    }
    results.fail(fmt::format("BW_average is neither in MiB/s nor in Gb/s: MsgRate times MsgSize is "
                             "{:.4g} GB/s; give the file as the tool wrote it",
                             unit * rate * 1e-9));
  }

  void end_table() {
    if (std::exchange(m_columns, 0) == 0) {
      return;
    }
    const PerftestTest& test = *m_test;
    if (test.verb == nullptr) {
      m_out.left_out(test.title);
      return;
    }
    const bool cut = m_cut.ends();
    if (m_table.rows.empty() && !cut) { // a server that prints no results
      m_empty = m_table.line;
      return;
    }
    m_any_rows = true;
    if (!is_first_of_its_run()) {
      return;
    }
    if (!test.device.empty()) {
      m_devices.say(m_lines, m_table.line, "device", "device " + test.device);
      m_cells.use_device(test.device);
    }
    const bool read = test.verb->name == "read";
    m_table.what = test.title;
    m_table.transport = fmt::format("verbs {}", test.verb->name);
    if (test.connection != "RC") {
      m_table.transport += " " + test.connection;
    }
    m_table.backwards = read && !test.two_way;
    if (test.latency) {
      m_table.both = !read;
      m_table.remark = read ? "from the request on" : "half of a round trip";
    } else {
      m_table.in_flight =
          static_cast<int>(std::min<std::uint64_t>(test.depth * test.qps, 1U << 30U));
    }
    m_read.emplace_back(test, m_table);
  }

  /// The cells of a run, when the memory of both ends is known, or nothing says it any more.
  void add(const PerftestTest& test, MessageTable table) {
    const auto other = test.remote.empty() ? m_memory.end() : m_memory.find(test.remote);
    // Of a read, or one way of writes, only the client has results.
    const bool by_client =
        test.verb->name == "read" || (test.verb->name == "write" && !test.latency && !test.two_way);
    const std::size_t own = test.server && !by_client ? 1 : 0;
    table.gpus[own] = test.gpu;
    if (other != m_memory.end()) {
      table.gpus[1 - own] = other->second;
    } else if (test.gpu) {
      table.remark += (table.remark.empty() ? "" : "; ") +
                      std::string("which memory the other end used is not said");
    }
    if (test.latency) {
      m_cells.times(table);
    } else {
      m_cells.rates(table, test.two_way);
    }
  }

  /// Client and server print the same run, one's local address being the other's remote one.
  bool is_first_of_its_run() {
    const PerftestTest& test = *m_test;
    if (test.local.empty() || test.remote.empty()) {
      return true;
    }
    const auto [run, first] =
        m_runs.try_emplace(std::minmax(test.local, test.remote), m_table.line);
    if (!first) {
      log(LogLevel::info, "{}:{}: the other end of the run in line {}, which counts once",
          m_lines.file(), m_table.line + 1, run->second + 1);
    }
    return first;
  }

  Profile finish(std::string_view text) {
    for (const auto& [test, table] : m_read) {
      add(test, table);
    }
    if (m_others) {
      m_out.left_out("smallest and largest times, deviations, percentiles");
    }
    return m_out.finish("perftest", text, "ib_write, ib_send and ib_read, each _bw and _lat");
  }

  const TextLines& m_lines;
  Collector m_out;
  MessageCells m_cells;
  CutRow m_cut{m_lines, m_out};
  Devices m_devices;
  std::map<std::pair<std::string, std::string>, std::size_t> m_runs; ///< by addresses: first table
  std::optional<PerftestTest> m_test;                                ///< that was named last
  GpuLines m_gpu;
  bool m_server = false; ///< whether the test that begins is the server's
  std::map<std::string, std::optional<GpuEnd>> m_memory; ///< by local address
  std::vector<std::pair<PerftestTest, MessageTable>> m_read;
  bool m_any_table = false, m_any_rows = false;
  std::optional<std::size_t> m_empty; ///< a table's heading without rows
  std::size_t m_columns = 0;          ///< of the table; 0: there is none
  std::size_t m_value = 0;            ///< the column of what is taken
  std::optional<std::size_t> m_message_rate;
  double m_unit = 0; ///< bytes per second
  bool m_others = false;
  MessageTable m_table;
};

} // namespace

bool is_perftest_mark(std::string_view line) {
  line = trimmed(line);
  return (line.starts_with("#bytes") &&
          (contains(line, "BW average[") || contains(line, "t_avg[usec]") ||
           contains(line, "t_typical[usec]"))) ||
         (line.starts_with("\"test\": \"") && line.ends_with("_Test\","));
}

Profile read_perftest(std::string_view text, const std::string& file,
                      const ImportOptions& options) {
  const TextLines lines(text, file);
  PerftestReader reader(lines, options);
  return contains(text, "\"test_info\"") ? reader.read_json(text) : reader.read(text);
}

} // namespace reckon::import_detail
