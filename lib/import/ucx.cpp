// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "core/log.hpp"
#include "core/units.hpp"
#include "import/message_cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <utility>

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

class UcxReader {
public:
  UcxReader(const TextLines& lines, const ImportOptions& options)
      : m_lines(lines), m_out(lines.file(), options), m_cells(lines, options, m_out) {}

  Profile read(std::string_view text) {
    for (std::size_t at = 0; at < m_lines.size(); ++at) {
      line(at);
    }
    if (m_cut.ends() || (!m_runs.empty() && m_runs.back().staged && !m_runs.back().is_final)) {
      m_out.cut_off(m_lines, m_lines.size(), "the run ended before its row \"Final:\"");
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
    return m_out.finish("ucx_perftest", text,
                        "tests of latencies and bandwidths, -t ..._lat, "
                        "..._bw and get");
  }

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

  void line(std::size_t at) {
    const std::string_view line = m_lines[at];
    const std::vector<std::string_view> words = words_of(line);
    const auto fact = [&](std::string_view name) { // "| Message size: 8     |"
      const std::size_t begin = line.find(name);
      return line.starts_with('|') && begin != line.npos
                 ? trimmed(line.substr(begin + name.size(), line.rfind('|') - begin - name.size()))
                 : std::string_view();
    };
    if (std::any_of(words.begin(), words.end(),
                    [](std::string_view word) { return word.ends_with("ucx_perftest"); })) {
      command(at, words);
    } else if (contains(line, ",overall_lat,avg_bw,")) {
      m_lines.fail(at, "CSV of -v says neither the test nor its size; measure without -v");
    } else if (const auto test = fact("Test: "); !test.empty()) {
      name_test(m_tables.emplace_back(), test, &UcxTest::description);
    } else if (contains(line, "bandwidth (MB/s)")) {
      m_heading = contains(line, "latency (usec)");
    } else if (line.starts_with('|') && contains(line, "# iterations")) {
      m_cut.goes_on();
      m_runs.push_back({.line = at,
                        .latency = m_heading,
                        .staged = contains(line, "%ile"),
                        .one_row = contains(line, " Test "),
                        .median = contains(line, " 50.0%ile") || contains(line, "typical")});
    } else if (!m_runs.empty() && !line.starts_with('|') && !line.starts_with('+')) {
      row(at, words);
    } else if (!m_tables.empty()) {
      UcxFacts& facts = m_tables.back();
      const auto number = [&](std::string_view name, std::uint64_t& value) {
        value = fact(name).empty() ? value : m_lines.count(at, fact(name), name);
      };
      number("Message size: ", facts.bytes);
      number("Window size: ", facts.window);
      for (const auto& [name, value] : {std::pair("Send memory: ", &facts.memory[0]),
                                        std::pair("Recv memory: ", &facts.memory[1]),
                                        std::pair("Send device: ", &facts.device[0]),
                                        std::pair("Recv device: ", &facts.device[1])}) {
        *value = fact(name).empty() ? *value : std::string(fact(name));
      }
    }
  }

  /// ucx_perftest node-b -t tag_bw -s 8388608 -m cuda,host
  void command(std::size_t at, const std::vector<std::string_view>& words) {
    UcxFacts facts;
    facts.memory = {"host", "host"};
    for (std::size_t i = 0; i + 1 < words.size(); ++i) {
      const std::string_view value = words[i + 1];
      if (words[i] == "-t") {
        name_test(facts, value, &UcxTest::option);
      } else if (words[i] == "-s" && !contains(value, ",")) {
        facts.bytes = m_lines.count(at, value, "-s");
      } else if (words[i] == "-O") {
        facts.window = m_lines.count(at, value, "-O");
      } else if (words[i] == "-m") {
        const std::size_t comma = std::min(value.find(','), value.size());
        facts.memory = {std::string(value.substr(0, comma)),
                        std::string(value.substr(comma == value.size() ? 0 : comma + 1))};
      }
    }
    if (facts.test) { // the server's has no -t
      m_commands.push_back(facts);
    }
  }

  /// "Final:  1000  0.240 1675.942 1671.351  46615.58  46743.62  597  598": iterations, a
  /// percentile, and of times in us, MB/s and messages a second what came since the last row and
  /// overall.
  void row(std::size_t at, std::vector<std::string_view> words) {
    Run& run = m_runs.back();
    const bool is_final = !words.empty() && (words[0] == "Final:" || run.one_row);
    if (words.size() > 1 && words[0] == "[thread" && words[1] != "0]") {
      m_lines.fail(at,
                   "the test had several threads (-T), whose rows are of each; measure with one "
                   "thread");
    }
    if (words.size() > 1 && words[0] == "[thread") {
      words.erase(words.begin(), words.begin() + 2);
    }
    while (!words.empty() && !is_number(words[0])) { // the name of a test
      words.erase(words.begin());
    }
    if (words.empty() || contains(words[0], ".")) {
      return;
    }
    m_cut.goes_on();
    constexpr std::size_t k_values = 8;
    if (words.size() < k_values) {
      m_cut.found(at,
                  fmt::format("has {} values, not {}; was the line cut off? Give the tool's whole "
                              "output",
                              words.size(), k_values));
      return;
    }
    if (run.is_final) {
      m_lines.fail(at, "a second result follows under one heading (-b), and which test each is of "
                       "is not said; run the tests one by one");
    }
    run.is_final = is_final;
    run.middle_us = m_lines.number(at, words[1], "the percentile");
    run.time_us = m_lines.positive(at, words[3], "the overall time");
    run.rate = m_lines.number(at, words[5], "the overall bandwidth") * k_ucx_mb;
  }

  static bool is_number(std::string_view word) {
    return word.find_first_not_of("0123456789.,") == word.npos;
  }

  /// Bytes of a message, which the time of one and the rate give, but for their rounding: the
  /// roundest number that both allow.
  static std::uint64_t size_of(const Run& run) {
    const double bytes = run.rate * run.time_us * 1e-6;
    const double rounding = bytes * (0.00051 / run.time_us + 0.0051 * k_ucx_mb / run.rate);
    for (std::uint64_t step = std::uint64_t{1} << 40U; step > 1; step /= 2) {
      const double nearest =
          std::round(bytes / static_cast<double>(step)) * static_cast<double>(step);
      if (nearest > 0 && std::abs(nearest - bytes) <= rounding) {
        return static_cast<std::uint64_t>(nearest);
      }
    }
    return static_cast<std::uint64_t>(std::llround(bytes));
  }

  void add(const Run& run, const UcxFacts& facts) {
    if (run.time_us <= 0) {
      m_out.cut_off(m_lines, run.line, "no results are below this");
      return;
    }
    if (facts.test && facts.test->measures == UcxMeasures::other) {
      m_out.left_out(facts.title);
      return;
    }
    MessageTable table{.line = run.line, .what = "ucx_perftest", .transport = "ucx"};
    if (!facts.test && !run.staged) {
      m_lines.fail(run.line, "nothing says which test this is; put the server's output, or the "
                             "command with -t, into the file");
    }
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
          "{}:{}: {}; the server's output, or the command, in the same file would say it",
          m_lines.file(), run.line + 1, table.remark);
    }
    table.backwards = measures == UcxMeasures::get_time || measures == UcxMeasures::get_rate;
    table.in_flight = static_cast<int>(std::min<std::uint64_t>(facts.window, 1U << 30U));
    memory(table, facts);
    const std::uint64_t bytes = facts.bytes > 0 ? facts.bytes : size_of(run);
    if (measures == UcxMeasures::time || measures == UcxMeasures::get_time) {
      table.both = measures == UcxMeasures::time;
      if (facts.test) {
        remark(table, table.both ? "half of a round trip" : "from the request on");
      }
      table.rows.push_back({bytes, (run.median ? run.middle_us : run.time_us) * 1e-6});
      m_cells.times(table);
    } else {
      table.rows.push_back({bytes, run.rate});
      m_cells.rates(table, false);
    }
  }

  static void remark(MessageTable& table, const std::string& text) {
    table.remark += (table.remark.empty() ? "" : "; ") + text;
  }

  /// The tool takes the GPU of the process's number, 0 for the server and 1 for the client, unless
  /// it is told another ("cuda:3").
  void memory(MessageTable& table, const UcxFacts& facts) {
    for (std::size_t end = 0; end < 2; ++end) {
      const std::string& memory = facts.memory[end];
      const std::string& device = facts.device[end];
      if (memory.empty() || memory == "host") {
        continue;
      }
      const std::size_t colon = std::min(device.find(':'), device.size());
      const auto said =
          index_of(device.empty() ? "" : device.substr(std::min(colon + 1, device.size())));
      table.gpus[end] = GpuEnd{.number = said.value_or(end == 0 ? 1 : 0)};
      remark(table,
             memory + " memory" + (said ? "" : ", by default of the GPU of the process's number"));
    }
  }

  const TextLines& m_lines;
  Collector m_out;
  MessageCells m_cells;
  CutRow m_cut{m_lines, m_out};
  bool m_heading = false; ///< whether the last one was of latencies
  std::vector<UcxFacts> m_tables, m_commands;
  std::vector<Run> m_runs;
};

} // namespace

bool is_ucx_mark(std::string_view line) {
  return (line.starts_with('|') && contains(line, "bandwidth (MB/s)") &&
          contains(line, "message rate (msg/s)")) ||
         contains(line, ",overall_lat,avg_bw,");
}

Profile read_ucx(std::string_view text, const std::string& file, const ImportOptions& options) {
  const TextLines lines(text, file);
  return UcxReader(lines, options).read(text);
}

} // namespace reckon::import_detail
