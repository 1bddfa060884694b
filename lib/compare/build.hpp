// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compare/comparison.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace reckon {

/// |a - b| beyond `tolerance` of the smaller one. The floor absorbs the rounding of a difference of
/// equal terms; no time, size or rate here is as small.
[[nodiscard]] bool beyond(double a, double b, double tolerance);
/// The bad direction of a number.
enum class Better { neither, lower, higher };

/// An empty text means absent.
[[nodiscard]] Side text_side(std::string text);
[[nodiscard]] Side number_side(double number, std::string_view unit);

/// With its change and effect where both sides are numbers.
[[nodiscard]] Difference difference(std::string_view kind, std::string_view group,
                                    std::string_view where, Side before, Side after,
                                    Better better = Better::neither);

/// Collects one comparison; every check also counts towards `compared`.
class Builder {
public:
  Builder(std::string kind, const CompareOptions& options) : m_options(options) {
    m_result.kind = std::move(kind);
  }

  void text(std::string_view kind, std::string_view group, std::string_view where,
            const std::string& before, const std::string& after);
  /// Numbers without noise; no entry where both are absent.
  void number(std::string_view kind, std::string_view group, std::string_view where,
              std::optional<double> before, std::optional<double> after, std::string_view unit,
              Better better = Better::neither);
  /// Whole numbers: any difference counts.
  void count(std::string_view kind, std::string_view group, std::string_view where, double before,
             double after, std::string_view unit, Better better = Better::neither);
  void add(Difference difference) { m_result.differences.push_back(std::move(difference)); }
  void add_undecided(Difference difference) { m_result.undecided.push_back(std::move(difference)); }
  void cause(std::string what, Side before, Side after);
  void causes_from(std::string_view prefix, const std::map<std::string, std::string>& before,
                   const std::map<std::string, std::string>& after);
  /// A cause when the digests differ or only one side has it.
  void link(std::string_view what, const std::optional<DocumentLink>& before,
            const std::optional<DocumentLink>& after);
  void warn(std::string text) { m_result.warnings.push_back(std::move(text)); }
  /// Remembers the largest change that does not count.
  void within(Difference difference);
  void compared(std::uint64_t n = 1) { m_result.compared += n; }
  [[nodiscard]] Comparison& result() { return m_result; }
  [[nodiscard]] const CompareOptions& options() const { return m_options; }
  /// Settles which differences count.
  [[nodiscard]] Comparison finish() &&;

private:
  CompareOptions m_options;
  Comparison m_result;
};

/// The elements of two lists or maps by their key, null where only the other has it.
template <class List, class Key>
[[nodiscard]] auto paired(const List& before, const List& after, Key key) {
  using T = typename List::value_type;
  std::map<std::decay_t<std::invoke_result_t<Key, const T&>>, std::pair<const T*, const T*>> all;
  for (const T& one : before) {
    all[std::invoke(key, one)].first = &one;
  }
  for (const T& one : after) {
    all[std::invoke(key, one)].second = &one;
  }
  return all;
}

} // namespace reckon
