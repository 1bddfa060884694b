// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compare/comparison.hpp"

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace reckon {

/// |a - b| beyond `tolerance` of the smaller one. The floor swallows what remains of a difference
/// of equal terms; no time, size or rate here is as small.
[[nodiscard]] bool beyond(double a, double b, double tolerance);
/// Which direction of a number is the bad one.
enum class Better { neither, lower, higher };

/// An empty text: it is not there.
[[nodiscard]] Side text_side(std::string text);
[[nodiscard]] Side number_side(double number, std::string_view unit);

/// With its change and effect where both sides are numbers.
[[nodiscard]] Difference difference(std::string_view kind, std::string_view group,
                                    std::string_view where, Side before, Side after,
                                    Better better = Better::neither);

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
  /// Numbers without noise; nothing where neither is there.
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

/// One thing of two documents, null where it is not there. What is said of its members, each a
/// member or a function of the thing, goes to the builder as of `path` and the member's name.
template <class T>
class Both {
public:
  Both(Builder& out, std::string_view group, std::string_view path, const T* before, const T* after)
      : m_out(out), m_group(group), m_path(path), m_before(before), m_after(after) {}

  /// A thing that is not there has no text.
  template <class Get>
  void text(std::string_view kind, std::string_view name, Get get) const {
    const auto of = [&](const T* thing) {
      return thing != nullptr ? std::string(std::invoke(get, *thing)) : std::string();
    };
    m_out.text(kind, m_group, m_path + std::string(name), of(m_before), of(m_after));
  }
  template <class Get>
  void number(std::string_view kind, std::string_view name, Get get, std::string_view unit,
              Better better = Better::neither) const {
    const auto of = [&](const T* thing) {
      return thing != nullptr ? as_double(std::invoke(get, *thing)) : std::nullopt;
    };
    m_out.number(kind, m_group, m_path + std::string(name), of(m_before), of(m_after), unit,
                 better);
  }
  /// Whole numbers, of a thing that is on both sides.
  template <class Get>
  void count(std::string_view kind, std::string_view name, Get get, std::string_view unit) const {
    m_out.count(kind, m_group, m_path + std::string(name), std::invoke(get, *m_before),
                std::invoke(get, *m_after), unit);
  }

private:
  template <class N>
  static std::optional<double> as_double(N number) {
    return static_cast<double>(number);
  }
  template <class N>
  static std::optional<double> as_double(const std::optional<N>& number) {
    return number ? as_double(*number) : std::nullopt;
  }
  Builder& m_out;
  std::string_view m_group;
  std::string m_path;
  const T* m_before;
  const T* m_after;
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
