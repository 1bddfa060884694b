// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "compare/build.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// The content of a document at one place, by the descriptions of its types
/// (documents/describe.hpp): a number, a text, a column of numbers, or members.
struct Fact {
  Side value;
  bool whole = false; ///< `value` is a whole number: any change counts
  /// An element of a list, or an optional record: it comes and goes as one thing.
  bool thing = false;
  bool list = false; ///< the members are elements
  std::vector<double> column;
  /// In the document's order. Elements of lists by their key: id, name, strategy, scheme or client;
  /// peer links by kind and ends; others by their number.
  struct Member;
  std::vector<Member> members;
  /// The member of that name; nullptr: the record has no member of that name.
  [[nodiscard]] const Fact* find(std::string_view name) const;
};
struct Fact::Member {
  std::string name;
  Fact fact;
};

/// The treatment of the facts at a place and below it. Facts without a rule are compared as they
/// are, in the group of the first step of their path.
struct FactRule {
  enum class Use {
    grouped, ///< compared as they are, in the group `text`
    own,     ///< compared by code of its own: by names, as bytes, with a rank test
    never,   ///< not compared; `text` says why
  };
  std::string_view kind;  ///< of document
  std::string_view where; ///< "cells/*/reason"; * is any element
  Use use;
  std::string_view text;
};

[[nodiscard]] std::span<const FactRule> fact_rules();
/// A Markdown table of the rules with Use::never.
[[nodiscard]] std::string not_compared_table();
/// The rule of a place, or of the nearest place around it; nullptr without a rule.
[[nodiscard]] const FactRule* fact_rule(std::string_view kind, std::string_view where);

/// The facts of a document that are compared as they are, or by name.
template <class T>
[[nodiscard]] Fact facts_of(const T& document);

/// Puts the differences between two facts at `path` of the document into `out`; null: absent.
/// `place`: the path as the rules have it.
void compare_facts(Builder& out, const std::string& place, const std::string& path,
                   const Fact* before, const Fact* after);

/// All facts of two documents.
template <class T>
void compare_all_facts(Builder& out, const T& before, const T& after) {
  const Fact a = facts_of(before), b = facts_of(after);
  compare_facts(out, "", "", &a, &b);
}

} // namespace reckon
