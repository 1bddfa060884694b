// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "import/log_reader.hpp"
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
std::optional<PerftestTest> test_called(const Line& line) {
  for (const std::string_view word : line.words) {
    const std::string_view name = word.substr(word.find_last_of('/') + 1);
    for (const Verb& verb : k_verbs) {
      const std::string_view end = !verb.command.empty() && name.starts_with(verb.command)
                                       ? name.substr(verb.command.size())
                                       : "";
      if (end == "_bw" || end == "_lat") {
        return PerftestTest{.verb = &verb,
                            .latency = end == "_lat",
                            .two_way = line.has("-b") || line.has("--bidirectional"),
                            .title = one_line(name)};
      }
    }
  }
  return std::nullopt;
}

/// Of the words that name a column one is so: "BW peak[MB/sec]", "#bytes", "tps average".
bool is_column(std::string_view word) {
  return contains(word, "[") || word.starts_with('#') || word == "iterations" || word == "tps";
}

/// The GPU that a process takes, by what it prints before its test.
class GpuLines {
public:
  void line(const Line& line) {
    const auto between = [&](std::string_view begin, std::string_view end) {
      const std::size_t at = line.text.find(begin), from = at + begin.size();
      return at == line.text.npos ? std::string_view()
                                  : line.text.substr(from, line.text.rfind(end) - from);
    };
    if (line[0] == "initializing" && line.words.size() == 2) { // CUDA, MUSA, MLU
      m_listed.clear();
      m_gpu.reset();
    } else if (line[1] == "device" && line[3] == "PCIe" && line.words.size() == 7) {
      // "CUDA device 0: PCIe address is 17:00"
      m_listed.emplace_back(line[2].substr(0, line[2].size() - 1), line[6]);
    } else if (line.behind("Got PCIe address of: ")) {
      m_full = line.words.back();
    } else if (line.behind("Picking device No. ")) {
      take(line.words.back());
    } else if (m_gpu && contains(line.text, "device name = [")) {
      m_gpu->name = between("device name = [", "]");
    } else if (line.behind("Using ROCm Device with ID: ")) {
      take(line[5].substr(0, line[5].find(',')));
      if (m_gpu) {
        const std::string_view bus = between("Bus ID: 0x", "");
        m_gpu->name = between("Name: ", ", PCI Bus ID");
        m_gpu->address = pci_address("0", bus.substr(0, bus.find(',')), "0");
      }
    } else if (contains(line.text, "for type CUDA_MEM_MALLOC")) { // memory of the host
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
    const bool one =
        std::ranges::count(m_listed, bus, &std::pair<std::string, std::string>::second) == 1;
    m_gpu->address = !m_full.empty() ? pci_address(m_full)
                     : one           ? pci_address(fmt::format("0:{}", bus))
                                     : "";
  }

  std::vector<std::pair<std::string, std::string>> m_listed; ///< number, bus and device
  std::string m_full;                                        ///< --use_cuda_bus_id
  std::optional<GpuEnd> m_gpu;
};

class PerftestReader : public LogReader {
public:
  PerftestReader(const TextLines& lines, const ImportOptions& options)
      : LogReader(lines, options, "perftest", "ib_write, ib_send and ib_read, each _bw and _lat"),
        m_cells(lines, options, m_out) {}

  /// What --out_json wrote: one row.
  Profile read_json() {
    const Json json = parse_json(m_lines.text(), m_lines.file());
    const JsonView root(json, m_lines.file());
    const JsonView info = root.at("test_info"), results = root.at("results");
    m_test = test_titled(info.at("test").string());
    if (!m_test) {
      info.at("test").fail("must be a test of perftest, as RDMA_Write_BW_Test");
    }
    if (const auto type = info.find("Connection_type")) {
      m_test->connection = type->name();
    }
    const auto number = [&](const char* name, std::uint64_t known) {
      const auto said = info.find(name);
      return said ? said->count() : known;
    };
    m_test->qps = number("Number_of_qps", m_test->qps);
    m_test->depth = number("TX_depth", m_test->depth);
    const std::uint64_t bytes = results.at("MsgSize").count();
    const JsonView value = results.at(!m_test->latency            ? "BW_average"
                                      : results.find("t_typical") ? "t_typical"
                                                                  : "t_avg");
    const double unit = m_test->latency ? 1e-6 : unit_of(results, bytes);
    m_table.rows.push_back({bytes, value.non_negative() * unit});
    if (const auto rocm = info.find("Use_ROCm_memory"); rocm && rocm->string() == "ON") {
      m_test->gpu = GpuEnd{};
      m_table.remark = "which GPU is not said: the first";
    }
    for (const char* const name : {"cuda_device", "musa_device"}) {
      if (info.find(name)) {
        m_test->gpu =
            GpuEnd{.number = static_cast<int>(std::min<std::uint64_t>(number(name, 0), 999))};
      }
    }
    m_columns = {"MsgSize"};
    m_last_table = 0;
    m_others = m_test->latency;
    end();
    return finish();
  }

private:
  void line(const Line& line) override {
    m_gpu.line(line);
    m_server = m_server || contains(line.text, "Waiting for client to connect");
    std::optional<PerftestTest> test = test_titled(line.text);
    test = test ? test : test_called(line);
    if (test) {
      end_table();
      m_test = test;
    } else if (m_test && m_columns.empty()) {
      setting(line);
    }
    if (line[0] == "#bytes") {
      begin_table(line);
    } else if (!m_columns.empty() && line[0].starts_with("---")) {
      goes_on();
      end_table();
    } else if (!m_columns.empty() && is_digits(line[0])) {
      row(line);
    }
  }

  void end() override {
    end_table();
    if (!m_last_table) {
      Line(m_lines, m_lines.size()).fail_as_cut("there is no table (#bytes, #iterations, ...)");
    }
    if (!m_any_rows && m_empty) {
      m_lines.fail(*m_empty, "there are no rows below this; was the file cut off, or is it of a "
                             "server that prints none? Give the client's whole output");
    }
    for (const auto& [read, table] : m_read) {
      add(read, table);
    }
    if (m_others) {
      m_out.left_out("smallest and largest times, deviations, percentiles");
    }
  }

  /// " Number of qps   : 2            Transport type : IB"
  void setting(const Line& line) {
    const auto value = [&](std::string_view name) {
      const std::size_t begin = line.text.find(name);
      const std::size_t colon = begin == line.text.npos ? begin : line.text.find(':', begin);
      const auto words = words_of(colon == line.text.npos ? "" : line.text.substr(colon + 1));
      return words.empty() ? std::string_view() : words.front();
    };
    for (const auto& [name, text] : {std::pair("Connection type", &m_test->connection),
                                     std::pair("Device", &m_test->device)}) {
      *text = value(name).empty() ? *text : quoted(value(name));
    }
    for (const auto& [name, number] :
         {std::pair("Number of qps", &m_test->qps), std::pair("TX depth", &m_test->depth)}) {
      *number = value(name).empty() ? *number : line.count(value(name), name);
    }
    if (line[1] == "address:" && line.words.size() > 2) {
      std::string& address = line[0] == "local" ? m_test->local : m_test->remote;
      address += fmt::format(" {}", fmt::join(line.words.begin() + 2, line.words.end(), " "));
    }
  }

  void begin_table(const Line& line) {
    end_table();
    if (!m_test) {
      line.fail("a table begins, but no line above says of which test (\"RDMA_Write BW Test\", or "
                "the command ib_write_bw); give the tool's whole output");
    }
    m_last_table = line.at;
    m_test->gpu = m_gpu.take();
    m_test->server = std::exchange(m_server, false);
    if (!m_test->local.empty()) {
      m_memory[m_test->local] = m_test->gpu;
    }
    m_table = {};
    m_table.line = line.at;
    for (const std::string_view word : line.words) {
      if (word == "#sl" || (is_column(word) && contains(word, "Port"))) {
        line.fail(fmt::format("the column {} says that rows are of several {}; measure each by "
                              "itself",
                              quoted(word), word == "#sl" ? "service levels" : "ports"));
      }
      if (is_column(word)) {
        m_columns.emplace_back(word);
      }
    }
    const auto average = column("average["), typical = column("t_typical[usec]");
    const auto value = !m_test->latency ? average : typical ? typical : column("t_avg[usec]");
    const std::string name = average ? m_columns[*average] : "";
    m_unit = m_test->latency                                           ? 1e-6
             : name == "average[Gb/sec]"                               ? k_gigabit
             : name == "average[MB/sec]" || name == "average[MiB/sec]" ? k_mib
                                                                       : 0;
    if (!value || m_unit == 0) {
      line.fail_as_cut(m_test->latency ? "a table of times must have t_typical[usec] or t_avg[usec]"
                                       : "a table of rates must have BW average[MB/sec], [MiB/sec] "
                                         "or [Gb/sec]");
    }
    m_value = *value;
    m_others = m_others || (m_test->latency && m_columns.size() > 3);
  }

  /// The last one that begins so.
  [[nodiscard]] std::optional<std::size_t> column(std::string_view begin) const {
    std::optional<std::size_t> found;
    for (std::size_t i = 0; i < m_columns.size(); ++i) {
      found = m_columns[i].starts_with(begin) ? i : found;
    }
    return found;
  }

  void row(const Line& line) {
    const auto messages = column("MsgRate[");
    const std::size_t digits = messages == m_columns.size() - 1 ? 6 : 2;
    if (!is_whole(line, m_columns.size(),
                  has_decimals(line[m_value], 2) && has_decimals(line.words.back(), digits))) {
      return;
    }
    const MessageRow& row = m_table.rows.emplace_back(
        MessageRow{line.count(line[0], "#bytes"),
                   line.number(line[m_value], m_test->latency ? "the time" : "BW") * m_unit});
    if (m_test->latency) {
      return;
    }
    const auto bytes = static_cast<double>(row.bytes);
    const auto iterations = static_cast<double>(line.count(line[1], "#iterations"));
    m_out.took(row.value > 0 ? bytes * iterations / row.value : 0);
    if (messages) { // or the unit is not what it seems
      const double by_messages = line.number(line[*messages], "MsgRate") * 1e6 * bytes;
      if (std::abs(row.value - by_messages) > 0.006 * m_unit + 0.6 * bytes + 0.01 * row.value) {
        line.fail(fmt::format("BW average is {:.4g} GB/s, but MsgRate times #bytes gives {:.4g}; "
                              "give the tool's output as it is",
                              row.value * 1e-9, by_messages * 1e-9));
      }
    }
  }

  /// The JSON does not say the unit of its rates, but how many messages they were.
  [[nodiscard]] static double unit_of(const JsonView& results, std::uint64_t bytes) {
    const double rate = results.at("BW_average").positive();
    const double unit = results.at("MsgRate").positive() * 1e6 * static_cast<double>(bytes) / rate;
    for (const double known : {k_mib, k_gigabit}) {
      if (unit > known / 2 && unit < known * 2) {
        return known;
      }
    }
    results.fail(fmt::format("BW_average is neither in MiB/s nor in Gb/s: MsgRate times MsgSize is "
                             "{:.4g} GB/s; give the file as the tool wrote it",
                             unit * rate * 1e-9));
  }

  void end_table() {
    if (std::exchange(m_columns, {}).empty()) {
      return;
    }
    const PerftestTest& test = *m_test;
    if (test.verb == nullptr) {
      m_out.left_out(test.title);
      return;
    }
    if (!ends_in_row() && m_table.rows.empty()) { // a server that prints no results
      m_empty = m_table.line;
      return;
    }
    m_any_rows = true;
    if (!is_first_of_its_run()) {
      return;
    }
    if (!test.device.empty()) {
      m_devices.say(Line(m_lines, m_table.line), "device", "device " + test.device);
      m_cells.use_device(test.device);
    }
    const bool read = test.verb->name == "read";
    m_table.what = test.title;
    m_table.transport = fmt::format("verbs {}{}", test.verb->name,
                                    test.connection == "RC" ? "" : " " + test.connection);
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
      append(table.remark, "which memory the other end used is not said");
    }
    if (test.latency) {
      m_cells.times(table);
    } else {
      m_cells.rates(table, test.two_way);
    }
  }

  /// Client and server print the same run, one's local address being the other's remote one.
  bool is_first_of_its_run() {
    const auto& [local, remote] = std::minmax(m_test->local, m_test->remote);
    if (local.empty()) { // one is not said
      return true;
    }
    const auto [run, first] = m_runs.try_emplace({local, remote}, m_table.line);
    if (!first) {
      log(LogLevel::info, "{}the other end of the run in line {}, which counts once",
          m_lines.place(m_table.line), run->second + 1);
    }
    return first;
  }

  MessageCells m_cells;
  std::map<std::pair<std::string, std::string>, std::size_t> m_runs; ///< by addresses: first table
  std::optional<PerftestTest> m_test;                                ///< that was named last
  GpuLines m_gpu;
  bool m_server = false; ///< whether the test that begins is the server's
  std::map<std::string, std::optional<GpuEnd>> m_memory; ///< by local address
  std::vector<std::pair<PerftestTest, MessageTable>> m_read;
  bool m_any_rows = false;
  std::optional<std::size_t> m_last_table, m_empty; ///< headings; of a table without rows
  std::vector<std::string> m_columns;               ///< of the table; empty: there is none
  std::size_t m_value = 0;                          ///< the column of what is taken
  double m_unit = 0;                                ///< seconds or bytes per second
  bool m_others = false;
  MessageTable m_table;
};

} // namespace

Profile read_perftest(const TextLines& lines, const ImportOptions& options) {
  PerftestReader reader(lines, options);
  return contains(lines.raw(), "\"test_info\"") ? reader.read_json() : reader.read();
}

} // namespace reckon::import_detail
