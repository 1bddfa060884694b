// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/units.hpp"
#include "import/log_reader.hpp"
#include "import/message_cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

namespace reckon::import_detail {
namespace {

/// What the tool calls MB is 2^20 bytes.
constexpr double k_ucx_mb = 1048576;

enum class UcxMeasures { time, rate, get_time, get_rate, other };

/// A test, by -t and by how the tool describes it (in older versions after "UCP ").
struct UcxTest {
  std::string_view option, description, transport;
  UcxMeasures measures;
};

constexpr std::array<UcxTest, 16> k_ucx_tests{{
    {"am_lat", "active message latency", "uct am", UcxMeasures::time},
    {"am_bw", "active message bandwidth / message rate", "uct am", UcxMeasures::rate},
    {"put_lat", "put latency", "put", UcxMeasures::time},
    {"put_bw", "put bandwidth / message rate", "uct put", UcxMeasures::rate},
    {"get_bw", "get bandwidth / message rate", "uct get", UcxMeasures::get_rate},
    {"get", "get latency / bandwidth / message rate", "get", UcxMeasures::get_time},
    {"tag_lat", "tag match latency", "tag", UcxMeasures::time},
    {"tag_bw", "tag match bandwidth", "tag", UcxMeasures::rate},
    {"tag_sync_lat", "tag sync match latency", "tag sync", UcxMeasures::time},
    {"tag_sync_bw", "tag sync match bandwidth", "tag sync", UcxMeasures::rate},
    {"ucp_put_lat", "put latency", "put", UcxMeasures::time},
    {"ucp_put_bw", "put bandwidth", "put", UcxMeasures::rate},
    {"stream_lat", "stream latency", "stream", UcxMeasures::time},
    {"stream_bw", "stream bandwidth", "stream", UcxMeasures::rate},
    {"ucp_am_lat", "am latency", "am", UcxMeasures::time},
    {"ucp_am_bw", "am bandwidth / message rate", "am", UcxMeasures::rate},
}};

/// What the server's table or the command says of a run; absent and 0: not said.
struct UcxFacts {
  std::string title{}; ///< for people
  std::optional<UcxTest> test{};
  std::uint64_t bytes = 0, window = 0;
  std::array<std::string, 2> memory{}, device{}; ///< of the sender and the receiver
};

/// A test of -t, or of a description.
void name_test(UcxFacts& facts, std::string_view name, std::string_view UcxTest::*by) {
  facts.title = one_line(name);
  name.remove_prefix(name.starts_with("UCP ") ? 4 : 0);
  const auto* const found = std::ranges::find(k_ucx_tests, name, by);
  facts.test = found != k_ucx_tests.end() ? *found
               : name == "ucp_get"        ? UcxTest{"", "", "get", UcxMeasures::get_time}
                                          : UcxTest{"", "", "", UcxMeasures::other};
}

class UcxReader : public LogReader {
public:
  UcxReader(const TextLines& lines, const ImportOptions& options)
      : LogReader(lines, options, "ucx_perftest",
                  "tests of latencies and bandwidths, -t ..._lat, ..._bw and get"),
        m_cells(lines, options, m_out) {}

private:
  struct Run {
    std::size_t line = 0;
    bool latency = false; ///< whether the heading says so
    bool staged = false;  ///< whether the table has a column Stage or Test, which older ones lack
    bool one_row = false; ///< -f
    bool median = false;  ///< whether the percentile is the median
    bool is_final = false;
    double middle_us = 0;         ///< the percentile
    double time_us = 0, rate = 0; ///< overall; bytes per second
  };

  void line(const Line& line) override {
    if (!line.program("ucx_perftest").empty()) {
      command(line);
    } else if (contains(line.text, ",overall_lat,avg_bw,")) {
      line.fail("CSV of -v says neither the test nor its size; measure without -v");
    } else if (const std::string_view test = fact(line, "Test: "); !test.empty()) {
      name_test(m_tables.emplace_back(), test, &UcxTest::description);
    } else if (contains(line.text, "bandwidth (MB/s)")) {
      m_heading = contains(line.text, "latency (usec)");
    } else if (line.text.starts_with('|') && contains(line.text, "# iterations")) {
      goes_on();
      m_runs.push_back(
          {.line = line.at,
           .latency = m_heading,
           .staged = contains(line.text, "%ile"),
           .one_row = contains(line.text, " Test "),
           .median = contains(line.text, " 50.0%ile") || contains(line.text, "typical")});
    } else if (!m_runs.empty() && !line.text.starts_with('|') && !line.text.starts_with('+')) {
      row(line);
    } else if (!m_tables.empty()) {
      facts(line, m_tables.back());
    }
  }

  void end() override {
    if (ends_in_row() || (!m_runs.empty() && m_runs.back().staged && !m_runs.back().is_final)) {
      cut_off(m_lines.size(), "the run ended before its row \"Final:\"");
    }
    // The server prints what the test is, the client what it gave.
    const std::vector<UcxFacts>& facts = m_tables.empty() ? m_commands : m_tables;
    if (!facts.empty() && facts.size() != m_runs.size()) {
      m_lines.fail(m_runs.empty() ? 0 : m_runs.front().line,
                   fmt::format("{} of results and {} that say of which test; give each run a file "
                               "with the output of its server and its client",
                               counted(m_runs.size(), "table"), counted(facts.size(), "table")));
    }
    for (std::size_t i = 0; i < m_runs.size(); ++i) {
      add(m_runs[i], facts.empty() ? UcxFacts() : facts[i]);
    }
  }

  /// "| Message size: 8     |"; empty for another line.
  static std::string_view fact(const Line& line, std::string_view name) {
    const std::size_t begin = line.text.find(name), value = begin + name.size();
    return line.text.starts_with('|') && begin != line.text.npos
               ? trimmed(line.text.substr(value, line.text.rfind('|') - value))
               : std::string_view();
  }

  static void facts(const Line& line, UcxFacts& facts) {
    for (const auto& [name, value] :
         {std::pair("Message size: ", &facts.bytes), std::pair("Window size: ", &facts.window)}) {
      const std::string_view said = fact(line, name);
      *value = said.empty() ? *value : line.count(said, name);
    }
    for (const auto& [name, value] : {std::pair("Send memory: ", &facts.memory[0]),
                                      std::pair("Recv memory: ", &facts.memory[1]),
                                      std::pair("Send device: ", &facts.device[0]),
                                      std::pair("Recv device: ", &facts.device[1])}) {
      const std::string_view said = fact(line, name);
      *value = said.empty() ? *value : said;
    }
  }

  /// ucx_perftest node-b -t tag_bw -s 8388608 -m cuda,host
  void command(const Line& line) {
    const std::string_view test = line.after("-t"), size = line.after("-s"),
                           window = line.after("-O"), memory = line.after("-m");
    if (test.empty()) { // the server's
      return;
    }
    UcxFacts& facts = m_commands.emplace_back();
    name_test(facts, test, &UcxTest::option);
    facts.bytes = size.empty() || contains(size, ",") ? 0 : line.count(size, "-s");
    facts.window = window.empty() ? 0 : line.count(window, "-O");
    const std::size_t comma = std::min(memory.find(','), memory.size());
    facts.memory = {std::string(memory.substr(0, comma)),
                    std::string(memory.substr(comma == memory.size() ? 0 : comma + 1))};
  }

  /// "Final:  1000  0.240 1675.942 1671.351  46615.58  46743.62  597  598": iterations, a
  /// percentile, and of times in us, MB/s and messages a second what came since the last row and
  /// overall.
  void row(const Line& line) {
    Run& run = m_runs.back();
    if (line[0] == "[thread" && line.words.size() > 1 && line[1] != "0]") {
      line.fail("the test had several threads (-T), whose rows are of each; measure with one "
                "thread");
    }
    std::size_t first = line[0] == "[thread" ? 2 : 0;
    while (first < line.words.size() &&
           line[first].find_first_not_of("0123456789.,") != std::string_view::npos) {
      ++first; // the name of a test
    }
    constexpr std::size_t k_values = 8;
    if (first >= line.words.size() || contains(line[first], ".") ||
        !is_whole(line, std::max(line.words.size(), first + k_values), true)) {
      return;
    }
    if (run.is_final) {
      line.fail("a second result follows under one heading (-b), and which test each is of is not "
                "said; run the tests one by one");
    }
    run.is_final = line[0] == "Final:" || run.one_row;
    run.middle_us = line.number(line[first + 1], "the percentile");
    run.time_us = line.positive(line[first + 3], "the overall time");
    run.rate = line.number(line[first + 5], "the overall bandwidth") * k_ucx_mb;
  }

  /// Bytes of a message, which the time of one and the rate give, but for their rounding: the
  /// roundest number that both allow.
  static std::uint64_t size_of(const Run& run) {
    const double bytes = run.rate * run.time_us * 1e-6;
    const double rounding = bytes * (0.00051 / run.time_us + 0.0051 * k_ucx_mb / run.rate);
    for (double step = 0x1p40; step > 1; step /= 2) {
      const double nearest = std::round(bytes / step) * step;
      if (nearest > 0 && std::abs(nearest - bytes) <= rounding) {
        return static_cast<std::uint64_t>(nearest);
      }
    }
    return static_cast<std::uint64_t>(std::llround(bytes));
  }

  void add(const Run& run, const UcxFacts& facts) {
    if (run.time_us <= 0) {
      cut_off(run.line, "no results are below this");
      return;
    }
    if (facts.test && facts.test->measures == UcxMeasures::other) {
      m_out.left_out(facts.title);
      return;
    }
    if (!facts.test && !run.staged) {
      m_lines.fail(run.line, "nothing says which test this is; put the server's output, or the "
                             "command with -t, into the file");
    }
    MessageTable table{.line = run.line, .what = "ucx_perftest", .transport = "ucx"};
    UcxMeasures measures = run.latency ? UcxMeasures::time : UcxMeasures::rate;
    if (facts.test) {
      table.what += fmt::format(" ({})", facts.title);
      table.transport += fmt::format(" {}", facts.test->transport);
      measures = facts.test->measures;
    } else {
      table.remark = fmt::format("which test and whose memory is not said: taken as {}",
                                 run.latency ? "half of a round trip" : "a stream one way");
      table.memory_known = false;
      log(LogLevel::warn,
          "{}{}; the server's output, or the command, in the same file would say it",
          m_lines.place(run.line), table.remark);
    }
    const bool time = measures == UcxMeasures::time || measures == UcxMeasures::get_time;
    table.backwards = measures == UcxMeasures::get_time || measures == UcxMeasures::get_rate;
    table.in_flight = static_cast<int>(std::min<std::uint64_t>(facts.window, 1U << 30U));
    memory(table, facts);
    table.rows.push_back({facts.bytes > 0 ? facts.bytes : size_of(run),
                          time ? (run.median ? run.middle_us : run.time_us) * 1e-6 : run.rate});
    if (time) {
      table.both = measures == UcxMeasures::time;
      if (facts.test) {
        append(table.remark, table.both ? "half of a round trip" : "from the request on");
      }
      m_cells.times(table);
    } else {
      m_cells.rates(table, false);
    }
  }

  /// The tool takes the GPU of the process's number, 0 for the server and 1 for the client, unless
  /// it is told another ("cuda:3").
  static void memory(MessageTable& table, const UcxFacts& facts) {
    for (std::size_t end = 0; end < 2; ++end) {
      const std::string& memory = facts.memory[end];
      if (memory.empty() || memory == "host") {
        continue;
      }
      const std::string_view device = facts.device[end];
      const std::size_t colon = device.find(':');
      const auto said = colon == device.npos ? std::nullopt : index_of(device.substr(colon + 1));
      table.gpus[end] = GpuEnd{.number = said.value_or(end == 0 ? 1 : 0)};
      append(table.remark,
             memory + " memory" + (said ? "" : ", by default of the GPU of the process's number"));
    }
  }

  MessageCells m_cells;
  bool m_heading = false; ///< whether the last one was of latencies
  std::vector<UcxFacts> m_tables, m_commands;
  std::vector<Run> m_runs;
};

} // namespace

Profile read_ucx(const TextLines& lines, const ImportOptions& options) {
  return UcxReader(lines, options).read();
}

} // namespace reckon::import_detail
