// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compare/comparison.hpp"

#include <map>
#include <set>
#include <string>
#include <string_view>

namespace reckon {

/// |a - b| beyond `tolerance` of the smaller one. The floor swallows what remains of a difference
/// of equal terms; no time, size or rate here is as small.
[[nodiscard]] bool beyond(double a, double b, double tolerance);
/// after / before - 1.
[[nodiscard]] std::optional<double> relative_change(double before, double after);

/// Which direction of a number is the bad one.
enum class Better { neither, lower, higher };
[[nodiscard]] Effect effect_of(double before, double after, Better better);

[[nodiscard]] Side text_side(std::string text);
[[nodiscard]] Side number_side(double number, std::string_view unit);

/// What is another in every run and explains nothing.
inline const std::set<std::string> k_volatile_context{"drift", "measured_at", "measured at", "seed",
                                                      "took"};

/// Collects one comparison; every check also counts towards `compared`.
class Builder {
public:
  Builder(std::string kind, const CompareOptions& options) : m_options(options) {
    m_result.kind = std::move(kind);
  }

  void text(std::string_view kind, std::string_view group, std::string_view where,
            const std::string& before, const std::string& after);
  /// Numbers without noise.
  void number(std::string_view kind, std::string_view group, std::string_view where, double before,
              double after, std::string_view unit, Better better = Better::neither);
  void number(std::string_view kind, std::string_view group, std::string_view where,
              std::optional<double> before, std::optional<double> after, std::string_view unit,
              Better better = Better::neither);
  /// Whole numbers: any change is one.
  void count(std::string_view kind, std::string_view group, std::string_view where,
             std::uint64_t before, std::uint64_t after, std::string_view unit);
  void add(Difference difference) { m_result.differences.push_back(std::move(difference)); }
  void add_undecided(Difference difference) { m_result.undecided.push_back(std::move(difference)); }
  void cause(std::string what, Side before, Side after);
  void causes_from(std::string_view prefix, const std::map<std::string, std::string>& before,
                   const std::map<std::string, std::string>& after,
                   const std::set<std::string>& ignored = {});
  /// A cause when the digests differ or only one is there.
  void link(std::string_view what, const std::optional<DocumentLink>& before,
            const std::optional<DocumentLink>& after);
  void warn(std::string text) { m_result.warnings.push_back(std::move(text)); }
  void compared(std::uint64_t n = 1) { m_result.compared += n; }
  [[nodiscard]] Comparison& result() { return m_result; }
  [[nodiscard]] const CompareOptions& options() const { return m_options; }
  /// Settles which differences count.
  [[nodiscard]] Comparison finish() &&;

private:
  CompareOptions m_options;
  Comparison m_result;
};

} // namespace reckon
