// SPDX-License-Identifier: Apache-2.0
#include "simulate/graph.hpp"

#include "core/error.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <string>
#include <utility>

namespace reckon {
namespace {

constexpr std::string_view k_format = "reckon-sim 1";
constexpr std::string_view k_hop_end = "|"; ///< of a path
constexpr std::size_t k_piece = 1 << 16;

/// Words of lines, one after another, of a text that comes in pieces.
class Reader {
public:
  explicit Reader(const std::function<std::size_t(char*, std::size_t)>& get) : m_get(get) {}

  /// The next line without its end; false at the end of the text.
  bool next_line() {
    for (;;) {
      const std::size_t end = m_text.find('\n', m_scanned);
      if (end != std::string::npos) {
        m_line = std::string_view(m_text).substr(m_begin, end - m_begin);
        m_begin = m_scanned = end + 1;
        ++m_number;
        return true;
      }
      m_text.erase(0, m_begin);
      m_begin = 0;
      const std::size_t before = m_text.size();
      m_scanned = before;
      m_text.resize(before + k_piece);
      m_text.resize(before + m_get(m_text.data() + before, k_piece));
      if (m_text.size() == before) {
        if (before > 0) {
          ++m_number;
          fail("has no end of line: the input was cut off");
        }
        return false;
      }
    }
  }
  [[nodiscard]] std::string_view line() const { return m_line; }
  /// Empty at the end of the line.
  std::string_view word() {
    const std::size_t begin = m_line.find_first_not_of(' ');
    if (begin == std::string_view::npos) {
      m_line = {};
      return {};
    }
    const std::size_t end = std::min(m_line.find(' ', begin), m_line.size());
    const std::string_view found = m_line.substr(begin, end - begin);
    m_line.remove_prefix(end);
    return found;
  }
  [[nodiscard]] bool at_end() const { return m_line.find_first_not_of(' ') == m_line.npos; }
  /// Takes the next word when it is this one.
  bool next_is(std::string_view word_) {
    const std::string_view line = m_line;
    if (word() == word_) {
      return true;
    }
    m_line = line;
    return false;
  }
  double number(const char* what) { return parse<double>(what); }
  double non_negative(const char* what) {
    const double value = number(what);
    if (!(value >= 0) || !std::isfinite(value)) {
      fail(fmt::format("has {} {}, which is not a finite number >= 0", what, value));
    }
    return value;
  }
  /// A number below `limit`.
  std::uint32_t index(const char* what, std::size_t limit) {
    const auto value = parse<std::uint32_t>(what);
    if (value >= limit) {
      fail(fmt::format("names {} {}, but there are {}", what, value, limit));
    }
    return value;
  }
  [[noreturn]] void fail(const std::string& problem) const {
    reckon::fail(ErrorKind::input, fmt::format("simulator input, line {} {}", m_number, problem));
  }

private:
  template <class T>
  T parse(const char* what) {
    const std::string_view text = word();
    T value{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (text.empty() || error != std::errc{} || end != text.data() + text.size()) {
      fail(text.empty() ? fmt::format("has no {}", what)
                        : fmt::format("has '{}' for {}, which is no number", one_line(text), what));
    }
    return value;
  }

  const std::function<std::size_t(char*, std::size_t)>& m_get;
  std::string m_text;
  std::string_view m_line;
  std::size_t m_begin = 0, m_scanned = 0, m_number = 0;
};

class GraphReader {
public:
  explicit GraphReader(const std::function<std::size_t(char*, std::size_t)>& get) : m_in(get) {}

  SimGraph read() {
    if (!m_in.next_line() || m_in.line() != k_format) {
      m_in.fail(fmt::format("is not '{}': this is another format or version", k_format));
    }
    while (m_in.next_line()) {
      const std::string_view kind = m_in.word();
      if (kind == "end") {
        finish();
        return std::move(m_graph);
      }
      read_line(kind);
      if (!m_in.at_end()) {
        m_in.fail(fmt::format("has more than a {} line has", kind));
      }
    }
    m_in.fail("is the last, and it is not 'end': the input was cut off");
  }

private:
  void read_line(std::string_view kind) {
    if (kind == "lane") {
      if (m_in_lane) {
        m_graph.end_lane();
      }
      m_in_lane = true;
    } else if (m_in_lane) {
      read_op(kind);
    } else {
      read_network(kind);
    }
  }

  void read_network(std::string_view kind) {
    if (kind == "hosts") {
      if (m_graph.hosts > 0) { // paths may name those that there were
        m_in.fail("gives the number of hosts again");
      }
      m_graph.hosts = m_in.index("number of hosts", k_most);
    } else if (kind == "simgrid") {
      m_graph.simgrid = true;
    } else if (kind == "precision") {
      m_graph.precision_s = m_in.non_negative("precision");
      if (m_graph.precision_s <= 0) {
        m_in.fail("has a precision of nothing, with which no time passes");
      }
    } else if (kind == "station") {
      const double rate = m_in.non_negative("rate");
      if (rate <= 0) {
        m_in.fail("has a station that never carries a byte");
      }
      m_graph.station_bytes_per_s.push_back(rate);
    } else if (kind == "path") {
      read_path();
    } else if (kind == "background") {
      SimGraph::Background background;
      background.path = m_in.index("path", m_graph.paths.size());
      background.bytes_per_s = m_in.non_negative("rate");
      background.start_s = m_in.non_negative("start");
      m_graph.backgrounds.push_back(background);
    } else {
      m_in.fail(fmt::format("begins with '{}', which is nothing that comes before the first lane",
                            one_line(kind)));
    }
  }

  void read_path() {
    SimGraph::Path path;
    path.from = m_in.index("host", m_graph.hosts);
    path.to = m_in.index("host", m_graph.hosts);
    path.latency_s = m_in.non_negative("latency");
    bool ended = true;
    while (!m_in.at_end()) {
      if (m_in.next_is(k_hop_end)) {
        if (ended) {
          m_in.fail("has a hop without stations");
        }
        ended = true;
        continue;
      }
      if (std::exchange(ended, false)) {
        path.hops.emplace_back();
      }
      path.hops.back().push_back(m_in.index("station", m_graph.station_bytes_per_s.size()));
    }
    if (ended && !path.hops.empty()) {
      m_in.fail("has a hop without stations");
    }
    m_graph.paths.push_back(std::move(path));
  }

  void read_op(std::string_view kind) {
    if (m_graph.ops.size() >= k_most) {
      m_in.fail("is one op too many for 32-bit numbers; merge parts");
    }
    SimGraph::Op op;
    if (kind == "w") {
      op.kind = SimGraph::Kind::write;
      op.target = m_in.index("path", m_graph.paths.size());
      op.amount = m_in.non_negative("bytes");
      if (op.amount > k_most_bytes) {
        m_in.fail(fmt::format("has a write of {} bytes, more than {}", op.amount, k_most_bytes));
      }
      op.awaited = m_in.index("op", k_most);
    } else if (kind == "a") {
      op.kind = SimGraph::Kind::await;
    } else if (kind == "c" || kind == "d") {
      op.kind = kind == "c" ? SimGraph::Kind::compute : SimGraph::Kind::delay;
      op.amount = m_in.non_negative("seconds");
    } else {
      m_in.fail(fmt::format("begins with '{}', which is no op: w, a, c or d", one_line(kind)));
    }
    m_before.clear();
    const std::size_t earlier = m_graph.ops.size() - m_graph.lane_begin.back();
    while (!m_in.at_end()) {
      const std::uint32_t back = m_in.index("op before", earlier + 1);
      if (back == 0) {
        m_in.fail("is an op that waits for itself");
      }
      m_before.push_back(static_cast<std::uint32_t>(m_graph.ops.size()) - back);
    }
    m_graph.append(op, m_before);
  }

  void finish() {
    if (m_in_lane) {
      m_graph.end_lane();
    }
    std::vector<bool> written(m_graph.ops.size());
    for (std::size_t i = 0; i < m_graph.ops.size(); ++i) {
      const SimGraph::Op& op = m_graph.ops[i];
      if (op.kind != SimGraph::Kind::write) {
        continue;
      }
      if (op.awaited >= m_graph.ops.size() ||
          m_graph.ops[op.awaited].kind != SimGraph::Kind::await || written[op.awaited]) {
        fail(ErrorKind::input,
             fmt::format("simulator input: op {} is announced to op {}, which is no await or has "
                         "its write already",
                         i, op.awaited));
      }
      written[op.awaited] = true;
    }
  }

  static constexpr std::size_t k_most = std::numeric_limits<std::uint32_t>::max();
  static constexpr double k_most_bytes = 1e15; ///< counted exactly, also in the engine's units
  Reader m_in;
  SimGraph m_graph;
  bool m_in_lane = false;
  std::vector<std::uint32_t> m_before;
};

} // namespace

void SimGraph::append(const Op& op, std::span<const std::uint32_t> depends_on) {
  ops.push_back(op);
  dependencies.insert(dependencies.end(), depends_on.begin(), depends_on.end());
  dependency_begin.push_back(dependencies.size());
}

void write_graph(const SimGraph& graph, const std::function<void(std::string_view)>& put) {
  std::string text;
  const auto out = std::back_inserter(text);
  const auto flush = [&](std::size_t least) {
    if (text.size() >= least && !text.empty()) {
      put(text);
      text.clear();
    }
  };
  fmt::format_to(out, "{}\nhosts {}\n{}precision {}\n", k_format, graph.hosts,
                 graph.simgrid ? "simgrid\n" : "", graph.precision_s);
  for (const double rate : graph.station_bytes_per_s) {
    fmt::format_to(out, "station {}\n", rate);
  }
  for (const SimGraph::Path& path : graph.paths) {
    fmt::format_to(out, "path {} {} {}", path.from, path.to, path.latency_s);
    for (const std::vector<std::uint32_t>& hop : path.hops) {
      if (&hop != &path.hops.front()) {
        fmt::format_to(out, " {}", k_hop_end);
      }
      fmt::format_to(out, " {}", fmt::join(hop, " "));
    }
    text += '\n';
    flush(k_piece);
  }
  for (const SimGraph::Background& b : graph.backgrounds) {
    fmt::format_to(out, "background {} {} {}\n", b.path, b.bytes_per_s, b.start_s);
  }
  for (std::size_t lane = 0; lane < graph.lanes(); ++lane) {
    text += "lane\n";
    for (std::uint32_t i = graph.lane_begin[lane]; i < graph.lane_begin[lane + 1]; ++i) {
      const SimGraph::Op& op = graph.ops[i];
      switch (op.kind) {
      case SimGraph::Kind::write:
        fmt::format_to(out, "w {} {} {}", op.target, op.amount, op.awaited);
        break;
      case SimGraph::Kind::await:
        text += 'a';
        break;
      case SimGraph::Kind::compute:
      case SimGraph::Kind::delay:
        fmt::format_to(out, "{} {}", op.kind == SimGraph::Kind::compute ? 'c' : 'd', op.amount);
        break;
      }
      for (const std::uint32_t before : graph.dependencies_of(i)) {
        fmt::format_to(out, " {}", i - before);
      }
      text += '\n';
      flush(k_piece);
    }
  }
  text += "end\n";
  flush(0);
}

SimGraph read_graph(const std::function<std::size_t(char*, std::size_t)>& get) {
  return GraphReader(get).read();
}

} // namespace reckon
