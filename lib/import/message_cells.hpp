// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "import/collector.hpp"
#include "import/text_lines.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reckon::import_detail {

/// Messages of one size between two processes.
struct MessageRow {
  std::uint64_t bytes = 0;
  /// Seconds of a message one way, or bytes per second of both ways together; 0: absent.
  double value = 0;
};

/// A GPU whose memory a process uses.
struct GpuEnd {
  int number = 0;
  std::string name{}, address{}; ///< empty: not said
};

/// The common facts of a table's rows.
struct MessageTable {
  std::size_t line = 0;   ///< of its heading
  std::string what;       ///< "osu_latency", for messages
  std::string transport;  ///< "mpi", "verbs read"
  bool backwards = false; ///< whether bytes come from the second process
  bool both = false;      ///< whether the value holds for either way
  int in_flight = 0;      ///< 0: unknown
  std::string remark;     ///< of the cells
  /// Of the first and the second process; absent: the machine's own memory, or not said.
  std::array<std::optional<GpuEnd>, 2> gpus{};
  bool memory_known = true; ///< else nothing is said of the machines' ports
  std::vector<MessageRow> rows{};
};

/// Measurements of two processes as a profile's cells: for two machines the cases of pairs, and
/// each one's latency and port for plans; for one machine the cases of its probe. With memory of a
/// GPU the cases are those of pairs, whose ends are GPUs; they say nothing of a machine's port. The
/// outputs do not name the machines: --machine FIRST,SECOND, or the command line above them does.
/// Machines that it names are of one pair of many: what they have for plans is left out.
class MessageCells {
public:
  MessageCells(const TextLines& lines, const ImportOptions& options, Collector& out);

  /// Times of single messages. The shortest, of up to 64 bytes, is the latency. Throws
  /// Error{input} when the options do not name two machines.
  void times(const MessageTable& table);
  /// Rates of streams of messages, one way, or `two_way`: the sum of both, as the tools print it.
  /// Throws as times().
  void rates(const MessageTable& table, bool two_way);
  /// The device that both processes use, "mlx5_3". Where the command line names the machines, the
  /// ends are their NICs from here on.
  void use_device(const std::string& name);

private:
  /// Whether the table has rows.
  [[nodiscard]] bool check(const MessageTable& table) const;
  /// Whether the cases are those of pairs.
  [[nodiscard]] bool of_pair(const MessageTable& table) const;
  std::string end(const MessageTable& table, std::size_t process);
  void add(const MessageTable& table, CellKey key, std::string_view unit, double value);
  /// The cells that a plan needs of any of the machines.
  void add_of_any(const MessageTable& table, CellKey key, std::string_view unit, double value);

  const TextLines& m_lines;
  Collector& m_out;
  std::vector<std::string> m_ends;
  std::vector<std::string> m_named; ///< machines that the command line names, by id
};

} // namespace reckon::import_detail
