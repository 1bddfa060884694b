// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/json.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reckon::import_detail {

/// A complete event of a trace (phase X).
struct TraceEvent {
  std::string_view name, category;
  double begin_s = 0, end_s = 0; ///< of the trace's own time, which begins at Trace::base_s()
  std::string thread;
  const Json* args = nullptr; ///< null without any

  /// A member of args; null without it.
  [[nodiscard]] const Json* arg(std::string_view key) const;
  /// A whole number of args that is not negative.
  [[nodiscard]] std::optional<std::uint64_t> count(std::string_view key) const;
  [[nodiscard]] std::string text(std::string_view key) const;
};

/// A trace of torch.profiler, as Kineto writes it.
class Trace {
public:
  /// Throws Error{input} for what is no such trace.
  Trace(std::string_view text, const std::string& file);
  Trace(const Trace&) = delete;
  Trace& operator=(const Trace&) = delete;

  [[nodiscard]] const std::vector<TraceEvent>& events() const { return m_events; }
  /// By the clock of the process's host.
  [[nodiscard]] double base_s() const { return m_base_s; }
  [[nodiscard]] JsonView view() const { return {m_json, m_file}; }

private:
  Json m_json;
  std::string m_file;
  double m_base_s = 0;
  std::vector<TraceEvent> m_events; ///< by their begin, those around others first
};

} // namespace reckon::import_detail
