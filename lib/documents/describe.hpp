// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/dtype.hpp"
#include "core/json_fwd.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace reckon {
struct CellKey;
struct Profile;
struct Workload;
struct Roles;
struct Plan;
struct Report;
struct DocumentLink;
struct Prediction;
struct Endpoint;
struct Requirements;
} // namespace reckon

/// Every type of a document is described once, by a function `describe` that hands each member to a
/// visitor with its key, its limits and a sentence. The reader, the writer, the JSON schema and the
/// tests' random documents are visitors; the reference of fields follows from the schema. Rules
/// about several members are checked by hand, at the end of `describe`.
namespace reckon::documents {

/// Text with a format of its own.
struct Pattern {
  const char* regex; ///< for the schema
  bool (*valid)(std::string_view text);
  const char* must; ///< the complaint about other text: "must look like 0000:17:00.0"
  const char* example;
};

/// The allowed values of a member. For a list or an optional it is the rule of the content.
struct Rule {
  enum class Text { any, some, name };
  enum class Presence {
    required,
    defaulted, ///< absent means the default, which is written
    maybe,     ///< absent means empty or 0, which is not written
    given,     ///< may be absent; written where another member requires it
  };
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool above_low = false; ///< `low` itself is not allowed
  Text text = Text::any;
  const Pattern* pattern = nullptr;
  std::span<const std::string_view> names{}; ///< for a choice: by the member's text, or its number
  const char* element = nullptr; ///< for a list that is not empty: the name of one of its elements
  Presence presence = Presence::required;
  bool written = true; ///< for Presence::given
  const char* schema =
      nullptr; ///< more of its schema: rules that are checked by hand and can be expressed
  /// For a list of whole numbers: whether elements may be repeats (documents/repeats.hpp).
  enum class Repeats {
    none,
    own,    ///< of numbers of this list
    across, ///< also of the earlier lists in the document with this rule
  };
  Repeats repeats = Repeats::none;

  [[nodiscard]] constexpr Rule defaulted() const {
    Rule rule = *this;
    rule.presence = Presence::defaulted;
    return rule;
  }
  [[nodiscard]] constexpr Rule maybe() const {
    Rule rule = *this;
    rule.presence = Presence::maybe;
    return rule;
  }
  /// May be absent; written if and only if `condition`.
  [[nodiscard]] constexpr Rule when(bool condition) const {
    Rule rule = *this;
    rule.presence = Presence::given;
    rule.written = condition;
    return rule;
  }
  [[nodiscard]] constexpr Rule repeating(Repeats of) const {
    Rule rule = *this;
    rule.repeats = of;
    return rule;
  }
  /// A list with at least one element.
  [[nodiscard]] constexpr Rule some(const char* what) const {
    Rule rule = *this;
    rule.element = what;
    return rule;
  }
  [[nodiscard]] constexpr Rule with(const char* more) const {
    Rule rule = *this;
    rule.schema = more;
    return rule;
  }
};

/// A whole number from `low` to `high`.
[[nodiscard]] constexpr Rule whole(std::int64_t low, std::int64_t high) {
  return {.low = static_cast<double>(low), .high = static_cast<double>(high)};
}
[[nodiscard]] constexpr Rule one_of(std::span<const std::string_view> names) {
  return {.names = names};
}
[[nodiscard]] constexpr Rule like(const Pattern& pattern, Rule::Text text = Rule::Text::any) {
  return {.text = text, .pattern = &pattern};
}
inline constexpr Rule k_any{};
inline constexpr Rule k_count = whole(0, k_max_count);
inline constexpr Rule k_positive_count = whole(1, k_max_count);
inline constexpr Rule k_index = whole(0, std::numeric_limits<int>::max());
inline constexpr Rule k_non_negative{.low = 0};
inline constexpr Rule k_positive{.low = 0, .above_low = true};
inline constexpr Rule k_some_text{.text = Rule::Text::some};
inline constexpr Rule k_name{.text = Rule::Text::name};

/// lower_case_with_digits: the name of a case, a strategy, a term.
[[nodiscard]] bool is_snake_name(std::string_view text);
inline constexpr Pattern k_snake_pattern{"^[a-z][a-z0-9_]*$", is_snake_name,
                                         "must be lower-case letters, digits and _, a letter first",
                                         "worker_share"};
inline constexpr Rule k_snake = like(k_snake_pattern, Rule::Text::name);
[[nodiscard]] bool is_digest(std::string_view text);
inline constexpr Pattern k_digest_pattern{
    "^sha256:[0-9a-f]{64}$", is_digest,
    "must be \"sha256:\" and 64 hexadecimal digits in lower case",
    "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"};
inline constexpr Rule k_digest = like(k_digest_pattern);

/// The names of an enumeration's first N values, which are 0, 1, 2, ...
template <class E, std::size_t N>
[[nodiscard]] constexpr std::array<std::string_view, N> names_of() {
  std::array<std::string_view, N> names{};
  for (std::size_t i = 0; i < N; ++i) {
    names[i] = name_of(static_cast<E>(i));
  }
  return names;
}
/// Element types of gradients.
inline constexpr std::array<std::string_view, 3> k_dtypes = names_of<DType, 3>();
/// The dimensions of a torus.
inline constexpr std::array<std::string_view, 3> k_dimensions{"local", "vertical", "horizontal"};

class Visitor;
struct Ref;

/// A whole number, an enumerator or a truth value; never above an int64.
struct WholeRef {
  void* value;
  std::int64_t (*get)(const void* value);
  void (*set)(void* value, std::int64_t number);
  bool truth; ///< true or false, unless the rule has names for the two
};
struct OptionalRef {
  void* value;
  bool (*has)(const void* value);
  Ref (*get)(void* value); ///< gives an empty one a value first
};
struct ListRef {
  void* list;
  std::size_t (*size)(const void* list);
  bool (*resize)(void* list, std::size_t size); ///< false: its size is fixed
  Ref (*at)(void* list, std::size_t i);
};
struct RecordRef {
  void* record;
  void (*describe)(Visitor& visitor, void* record);
};
using Texts = std::map<std::string, std::string>;
using Numbers = std::map<std::string, double>;

/// A member, its type erased.
struct Ref {
  std::variant<WholeRef, double*, std::string*, Texts*, Numbers*, std::vector<std::uint64_t>*,
               std::vector<std::int64_t>*, std::vector<double>*, OptionalRef, ListRef, RecordRef>
      to;
};

struct Field {
  const char* key;
  const Rule& rule;
  const char* sentence;
};

/// The operations on the members of a record, one after another.
class Visitor {
public:
  Visitor() = default;
  Visitor(const Visitor&) = delete;
  Visitor& operator=(const Visitor&) = delete;
  virtual ~Visitor() = default;

  /// Begins a description: the type's name and meaning. `schema`: more of its schema.
  virtual void about(const char* /*name*/, const char* /*sentence*/,
                     const char* /*schema*/ = nullptr) {}
  template <class T>
  void operator()(const char* key, T& value, const Rule& rule, const char* sentence) {
    field({key, rule, sentence}, ref(value));
  }
  /// Members that have an object of their own in the document; `members` describes them.
  template <class F>
  void group(const char* key, const Rule& rule, const char* sentence, F members) {
    field({key, rule, sentence},
          Ref{RecordRef{&members, [](Visitor& v, void* f) { (*static_cast<F*>(f))(v); }}});
  }
  /// For a reader: the object that was read; null: this visitor does not read.
  [[nodiscard]] virtual const JsonView* read() const { return nullptr; }
  /// The checks that a reader makes by hand, on the object that was read.
  template <class F>
  void check(F by_hand) const {
    if (const JsonView* const view = read()) {
      by_hand(*view);
    }
  }

  template <class T>
  [[nodiscard]] static Ref ref(T& value);

protected:
  virtual void field(const Field& field, const Ref& value) = 0;
};

template <class T>
inline constexpr bool k_is_optional = false;
template <class T>
inline constexpr bool k_is_optional<std::optional<T>> = true;
template <class T>
inline constexpr bool k_is_list = false;
template <class T>
inline constexpr bool k_is_list<std::vector<T>> = true;
template <class T, std::size_t N>
inline constexpr bool k_is_list<std::array<T, N>> = true;
template <class T>
inline constexpr bool k_is_plain =
    std::is_same_v<T, double> || std::is_same_v<T, std::string> || std::is_same_v<T, Texts> ||
    std::is_same_v<T, Numbers> || std::is_same_v<T, std::vector<std::uint64_t>> ||
    std::is_same_v<T, std::vector<std::int64_t>> || std::is_same_v<T, std::vector<double>>;

template <class T>
Ref Visitor::ref(T& value) {
  if constexpr (k_is_plain<T>) {
    return {&value};
  } else if constexpr (std::is_integral_v<T> || std::is_enum_v<T>) {
    return {WholeRef{
        &value, [](const void* v) { return static_cast<std::int64_t>(*static_cast<const T*>(v)); },
        [](void* v, std::int64_t number) { *static_cast<T*>(v) = static_cast<T>(number); },
        std::is_same_v<T, bool>}};
  } else if constexpr (k_is_optional<T>) {
    return {OptionalRef{&value, [](const void* v) { return static_cast<const T*>(v)->has_value(); },
                        [](void* v) {
                          T& optional = *static_cast<T*>(v);
                          return ref(optional ? *optional : optional.emplace());
                        }}};
  } else if constexpr (k_is_list<T>) {
    return {ListRef{&value, [](const void* v) { return static_cast<const T*>(v)->size(); },
                    [](void* v, std::size_t size) {
                      if constexpr (requires(T t) { t.resize(size); }) {
                        static_cast<T*>(v)->resize(size);
                        return true;
                      } else {
                        return static_cast<T*>(v)->size() == size;
                      }
                    },
                    [](void* v, std::size_t i) { return ref((*static_cast<T*>(v))[i]); }}};
  } else {
    return {
        RecordRef{&value, [](Visitor& v, void* record) { describe(v, *static_cast<T*>(record)); }}};
  }
}

// The documents, and the types that several of them share.
void describe(Visitor& v, Profile& profile);
void describe(Visitor& v, Workload& workload);
void describe(Visitor& v, Roles& roles);
void describe(Visitor& v, Plan& plan);
void describe(Visitor& v, Report& report);
void describe(Visitor& v, DocumentLink& link);
void describe(Visitor& v, Prediction& prediction);
void describe(Visitor& v, Endpoint& endpoint);
void describe(Visitor& v, Requirements& requirements);
/// The members of a key stand among the members of its owner.
void describe_key(Visitor& v, CellKey& key, bool with_bytes);

} // namespace reckon::documents
