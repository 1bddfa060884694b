// SPDX-License-Identifier: Apache-2.0
#include "documents/fields.hpp"

#include "core/error.hpp"
#include "documents/repeats.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

namespace reckon::documents {
namespace {

constexpr std::string_view k_prefix = "reckon/";

std::string with_article(std::string_view kind) {
  return kind == "roles"          ? "a roles document"
         : kind == k_requirements ? "a file of requirements"
                                  : fmt::format("a {}", kind);
}

/// Absent has one spelling: no key.
void refuse_nulls(const JsonView& value) {
  const Json& raw = value.raw();
  if (raw.is_null()) {
    value.fail("null is not allowed; give a value or remove the key");
  }
  if (raw.is_object()) {
    for (const auto& [key, member] : value.members()) {
      refuse_nulls(member);
    }
  } else if (raw.is_array() && std::any_of(raw.begin(), raw.end(), [](const Json& e) {
               return e.is_null() || e.is_structured();
             })) {
    for (const JsonView& element : value.elements()) {
      refuse_nulls(element);
    }
  }
}

/// The start of a message about `text`, of which it has the beginning where that is long.
std::string what_it_is(const std::string& text) {
  constexpr std::size_t k_most = 60;
  std::size_t end = std::min(text.size(), k_most);
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80) {
    --end; // in the middle of a character
  }
  return fmt::format("is \"{}{}\"; ", text.substr(0, end), end < text.size() ? "..." : "");
}

std::string_view name_at(const Rule& rule, std::size_t number) {
  if (number >= rule.names.size()) {
    fail(ErrorKind::internal, fmt::format("value {} has no name; the names are {}", number,
                                          fmt::join(rule.names, ", ")));
  }
  return rule.names[number];
}

std::int64_t choice(const JsonView& value, const Rule& rule) {
  const std::string text = value.string();
  const auto it = std::find(rule.names.begin(), rule.names.end(), text);
  if (it == rule.names.end()) {
    value.fail(fmt::format("{}must be one of {}", what_it_is(text), fmt::join(rule.names, ", ")));
  }
  return it - rule.names.begin();
}

std::int64_t whole_number(const JsonView& value, const Rule& rule) {
  if (rule.high < static_cast<double>(k_max_count)) {
    return value.integer(static_cast<int>(rule.low), static_cast<int>(rule.high));
  }
  const auto number = static_cast<std::int64_t>(value.count());
  if (static_cast<double>(number) < rule.low) {
    value.fail(fmt::format("must be at least {}, is {}", rule.low, number));
  }
  return number;
}

bool allows(const Rule& rule, double number) {
  return number <= rule.high && (rule.above_low ? number > rule.low : number >= rule.low);
}

double number(const JsonView& value, const Rule& rule) {
  const double number = value.number();
  if (rule.low == 0) {
    static_cast<void>(rule.above_low ? value.positive() : value.non_negative());
  }
  if (!allows(rule, number)) {
    const bool high = number > rule.high;
    value.fail(fmt::format("is {}; must be {} {}", number,
                           high ? "at most" : (rule.above_low ? "above" : "at least"),
                           high ? rule.high : rule.low));
  }
  return number;
}

std::string text(const JsonView& value, const Rule& rule) {
  if (!rule.names.empty()) {
    return std::string(rule.names[static_cast<std::size_t>(choice(value, rule))]);
  }
  std::string text = rule.text == Rule::Text::name ? value.name() : value.string();
  if (rule.text == Rule::Text::some && text.empty()) {
    value.fail("must not be empty");
  }
  if (rule.pattern != nullptr && !rule.pattern->valid(text)) {
    value.fail(what_it_is(text) + rule.pattern->must);
  }
  return text;
}

/// A column: read at once, and again where a number is not allowed, so that the error names it.
template <class T>
void check_column(const std::vector<T>& column, const JsonView& value, const Rule& rule) {
  for (std::size_t i = 0; i < column.size(); ++i) {
    if (!allows(rule, static_cast<double>(column[i]))) {
      const JsonView element = value.elements()[i];
      static_cast<void>(std::is_same_v<T, double>
                            ? number(element, rule)
                            : static_cast<double>(whole_number(element, rule)));
    }
  }
}

/// More numbers than any document has: a repeat is short, what it stands for need not be.
constexpr std::size_t k_most_numbers = std::size_t{1} << 24U;

/// Appends what a repeat stands for to the numbers before it.
void read_repeat(const JsonView& repeat, const Rule& rule, std::vector<std::int64_t>& numbers) {
  const std::vector<JsonView> members = repeat.elements();
  if (members.size() != 3) {
    repeat.fail(fmt::format("has {} members; a repeat is [count, back, step]: so many numbers, "
                            "each by so much more than the one so many places before it",
                            members.size()));
  }
  const auto count = static_cast<std::size_t>(whole_number(members[0], k_positive_count));
  const auto back = static_cast<std::size_t>(whole_number(members[1], k_positive_count));
  const double step = members[2].number();
  if (step != std::trunc(step) || std::abs(step) > static_cast<double>(k_max_count)) {
    members[2].fail(fmt::format("must be a whole number from -2^53 to 2^53, is {}", step));
  }
  if (back > numbers.size()) {
    members[1].fail(fmt::format("goes back {} places, but {} numbers stand before; a repeat is of "
                                "numbers before it",
                                back, numbers.size()));
  }
  if (count > k_most_numbers - std::min(numbers.size(), k_most_numbers)) {
    members[0].fail(fmt::format("is {}, which makes more than {} numbers", count, k_most_numbers));
  }
  for (std::size_t i = 0; i < count; ++i) {
    const std::int64_t number = numbers[numbers.size() - back] + static_cast<std::int64_t>(step);
    if (!allows(rule, static_cast<double>(number))) {
      members[2].fail(fmt::format("makes number {} of this repeat {}; must be at {} {}", i, number,
                                  static_cast<double>(number) < rule.low ? "least" : "most",
                                  static_cast<double>(number) < rule.low ? rule.low : rule.high));
    }
    numbers.push_back(number);
  }
}

/// Lists the keys of a record.
class Keys : public Visitor {
public:
  std::vector<std::string> keys;

protected:
  void field(const Field& field, const Ref&) override { keys.emplace_back(field.key); }
};

class Reader : public Visitor {
public:
  [[nodiscard]] const JsonView* read() const override { return m_view; }

  /// `header`: keys that are there besides the described ones.
  void record(const JsonView& view, const RecordRef& record, std::vector<std::string> header = {}) {
    check_keys(view, record, std::move(header));
    const JsonView* const outer = std::exchange(m_view, &view);
    record.describe(*this, record.record);
    m_view = outer;
  }

protected:
  void field(const Field& field, const Ref& value) override {
    const bool required = field.rule.presence == Rule::Presence::required &&
                          !std::holds_alternative<OptionalRef>(value.to);
    if (const auto view = required ? m_view->at(field.key) : m_view->find(field.key)) {
      read_value(*view, field.rule, value);
    }
  }

private:
  void check_keys(const JsonView& view, const RecordRef& record, std::vector<std::string> header) {
    auto& known = m_known[record.describe];
    if (known.empty()) {
      Keys keys;
      keys.keys = std::move(header);
      record.describe(keys, record.record);
      known = std::move(keys.keys);
    }
    static_cast<void>(view.find("")); // says so when this is no object
    for (const auto& item : view.raw().items()) {
      if (std::find(known.begin(), known.end(), item.key()) == known.end()) {
        const std::string near = did_you_mean(item.key(), known);
        view.at(item.key())
            .fail(near.empty() ? fmt::format("unknown key; known here: {}", fmt::join(known, ", "))
                               : fmt::format("unknown key; did you mean \"{}\"?", near));
      }
    }
  }

  void read_value(const JsonView& view, const Rule& rule, const Ref& value) {
    std::visit([&](const auto& to) { read_to(view, rule, to); }, value.to);
  }
  static void read_to(const JsonView& view, const Rule& rule, const WholeRef& to) {
    to.set(to.value, !rule.names.empty() ? choice(view, rule)
                     : to.truth          ? static_cast<std::int64_t>(view.boolean())
                                         : whole_number(view, rule));
  }
  static void read_to(const JsonView& view, const Rule& rule, double* to) {
    *to = number(view, rule);
  }
  static void read_to(const JsonView& view, const Rule& rule, std::string* to) {
    *to = text(view, rule);
  }
  static void read_to(const JsonView& view, const Rule& rule, Texts* to) {
    for (const auto& [key, value] : view.members()) {
      if (key.empty()) {
        value.fail("a name must not be empty; name it or remove it");
      }
      to->emplace(key, text(value, rule));
    }
  }
  static void read_to(const JsonView& view, const Rule& rule, Numbers* to) {
    for (const auto& [key, value] : view.members()) {
      to->emplace(key, number(value, rule));
    }
  }
  void read_to(const JsonView& view, const Rule& rule, std::vector<std::uint64_t>* to) {
    if (rule.repeats != Rule::Repeats::none && has_repeats(view)) {
      read_numbers(view, rule, to);
    } else if (!rule.names.empty()) {
      for (const JsonView& element : view.elements()) {
        to->push_back(static_cast<std::uint64_t>(choice(element, rule)));
      }
    } else {
      *to = view.counts();
      check_column(*to, view, rule);
    }
    refuse_empty(view, rule);
  }
  void read_to(const JsonView& view, const Rule& rule, std::vector<std::int64_t>* to) {
    read_numbers(view, rule, to);
    refuse_empty(view, rule);
  }
  static bool has_repeats(const JsonView& view) {
    return view.raw().is_array() && std::any_of(view.raw().begin(), view.raw().end(),
                                                [](const Json& e) { return e.is_array(); });
  }
  template <class T>
  void read_numbers(const JsonView& view, const Rule& rule, std::vector<T>* to) {
    std::vector<std::int64_t> own;
    std::vector<std::int64_t>& numbers = rule.repeats == Rule::Repeats::across ? m_numbers : own;
    const std::size_t first = numbers.size();
    for (const JsonView& element : view.elements()) {
      if (rule.repeats != Rule::Repeats::none && element.raw().is_array()) {
        read_repeat(element, rule, numbers);
      } else {
        numbers.push_back(whole_number(element, rule));
      }
    }
    to->assign(numbers.begin() + static_cast<std::ptrdiff_t>(first), numbers.end());
  }
  static void read_to(const JsonView& view, const Rule& rule, std::vector<double>* to) {
    *to = view.numbers();
    check_column(*to, view, rule);
    refuse_empty(view, rule);
  }
  void read_to(const JsonView& view, const Rule& rule, const OptionalRef& to) {
    read_value(view, rule, to.get(to.value));
  }
  void read_to(const JsonView& view, const Rule& rule, const ListRef& to) {
    const std::vector<JsonView> elements = view.elements();
    refuse_empty(view, rule);
    if (!to.resize(to.list, elements.size())) {
      view.fail(fmt::format("has {} entries; must have {}", elements.size(), to.size(to.list)));
    }
    for (std::size_t i = 0; i < elements.size(); ++i) {
      read_value(elements[i], rule, to.at(to.list, i));
    }
  }
  void read_to(const JsonView& view, const Rule&, const RecordRef& to) { record(view, to); }
  static void refuse_empty(const JsonView& view, const Rule& rule) {
    if (rule.element != nullptr && view.raw().empty()) {
      view.fail(fmt::format("is empty; at least one {} is needed", rule.element));
    }
  }

  const JsonView* m_view = nullptr;
  std::vector<std::int64_t> m_numbers; ///< of lists whose repeats go across
  std::map<void (*)(Visitor&, void*), std::vector<std::string>> m_known;
};

/// A text as canonical() writes it, so that what is too long then is refused before: bytes that are
/// not UTF-8 become U+FFFD, which is longer.
Json as_written(const std::string& text) {
  const bool plain = std::ranges::all_of(text, [](char c) { return (c & 0x80) == 0; });
  return plain ? Json(text) : Json::parse(compact(text));
}
Json as_written(const std::map<std::string, std::string>& texts) {
  Json json = Json::object();
  for (const auto& [name, text] : texts) {
    json[as_written(name).get<std::string>()] = as_written(text);
  }
  return json;
}
template <class T>
Json as_written(const T& value) {
  return value;
}

class Writer : public Visitor {
public:
  explicit Writer(RepeatWriter& across) : m_across(across) {}
  Json object = Json::object();

  [[nodiscard]] Json value(const Ref& value, const Rule& rule) {
    return std::visit([&](const auto& of) { return json(of, rule); }, value.to);
  }

protected:
  void field(const Field& field, const Ref& ref) override {
    const auto* const optional = std::get_if<OptionalRef>(&ref.to);
    if (optional != nullptr ? !optional->has(optional->value)
                            : field.rule.presence == Rule::Presence::given && !field.rule.written) {
      return;
    }
    Json json = value(ref, field.rule);
    if (optional == nullptr && field.rule.presence == Rule::Presence::maybe &&
        is_nothing(ref, json)) {
      return;
    }
    object[field.key] = std::move(json);
  }

private:
  static bool is_nothing(const Ref& ref, const Json& json) {
    if (const auto* const whole = std::get_if<WholeRef>(&ref.to)) {
      return whole->get(whole->value) == 0;
    }
    return json.is_number() ? json == 0 : json.empty() || json == "";
  }
  static Json json(const WholeRef& of, const Rule& rule) {
    const std::int64_t number = of.get(of.value);
    if (!rule.names.empty()) {
      return name_at(rule, static_cast<std::size_t>(number));
    }
    return of.truth ? Json(number != 0) : Json(number);
  }
  Json json(const OptionalRef& of, const Rule& rule) { return value(of.get(of.value), rule); }
  Json json(const ListRef& of, const Rule& rule) {
    Json list = Json::array();
    for (std::size_t i = 0; i < of.size(of.list); ++i) {
      list.push_back(value(of.at(of.list, i), rule));
    }
    return list;
  }
  Json json(const RecordRef& of, const Rule&) {
    Writer writer(m_across);
    of.describe(writer, of.record);
    return std::move(writer.object);
  }
  Json json(const std::vector<std::int64_t>* of, const Rule& rule) {
    return rule.repeats == Rule::Repeats::none  ? Json(*of)
           : rule.repeats == Rule::Repeats::own ? RepeatWriter().elements(*of)
                                                : m_across.elements(*of);
  }
  Json json(const std::vector<std::uint64_t>* of, const Rule& rule) {
    if (rule.repeats != Rule::Repeats::none) {
      const std::vector<std::int64_t> numbers(of->begin(), of->end());
      return json(&numbers, rule);
    }
    if (rule.names.empty()) {
      return *of;
    }
    Json names = Json::array();
    for (const std::uint64_t number : *of) {
      names.push_back(name_at(rule, number));
    }
    return names;
  }
  template <class T>
  static Json json(const T* of, const Rule&) {
    return as_written(*of);
  }

  RepeatWriter& m_across;
};

} // namespace

bool is_snake_name(std::string_view text) {
  return !text.empty() && text[0] >= 'a' && text[0] <= 'z' &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_") == text.npos;
}

bool is_digest(std::string_view text) {
  constexpr std::string_view k_algorithm = "sha256:";
  return text.size() == k_algorithm.size() + 64 && text.starts_with(k_algorithm) &&
         text.find_first_not_of("0123456789abcdef", k_algorithm.size()) == text.npos;
}

std::string kind_in_header(const JsonView& document) {
  if (!document.raw().is_object() || !document.find("schema")) {
    document.fail(
        fmt::format("this is no reckon document; the key \"schema\" must be one of {0}{1}, {0}{2}",
                    k_prefix, fmt::join(k_kinds, fmt::format(", {}", k_prefix)), k_requirements));
  }
  const JsonView schema = document.at("schema");
  const std::string text = schema.one_of({"reckon/profile", "reckon/workload", "reckon/roles",
                                          "reckon/plan", "reckon/report", "reckon/requirements"});
  const JsonView version = document.at("schema_version");
  if (const std::int64_t v = whole_number(version, k_positive_count); v > k_schema_version) {
    version.fail(fmt::format("is {}, and this reckon reads up to {}: written by a newer reckon; "
                             "update reckon, or make the file again with this one",
                             v, k_schema_version));
  }
  return text.substr(k_prefix.size());
}

void read_document_into(const JsonView& document, std::string_view kind, const Ref& record) {
  const std::string found = kind_in_header(document);
  if (found != kind) {
    document.at("schema").fail(
        fmt::format("this is {}, {} is wanted here", with_article(found), with_article(kind)));
  }
  refuse_nulls(document);
  Reader().record(document, std::get<RecordRef>(record.to), {"schema", "schema_version"});
}

Json json_of(const Ref& value, const Rule& rule) {
  RepeatWriter across;
  return Writer(across).value(value, rule);
}

JsonView below(const JsonView& view, std::string_view path) {
  const std::size_t end = std::min(path.find('/'), path.size());
  const std::string_view step = path.substr(0, end);
  std::size_t index = 0;
  std::from_chars(step.data(), step.data() + step.size(), index);
  const JsonView there = view.raw().is_array() ? view.elements().at(index) : view.at(step);
  return end == path.size() ? there : below(there, path.substr(end + 1));
}

std::vector<JsonView> elements_below(const JsonView& view, std::string_view key) {
  const auto list = view.find(key);
  return list ? list->elements() : std::vector<JsonView>();
}

void fail_below(const JsonView& view, std::string_view path, const std::string& problem) {
  below(view, path).fail(problem);
}

void check_range(double value, Range range, const JsonView& view) {
  constexpr double k_least_rate = 1e-30, k_most_rate = 1e30, k_longest_s = 1e30;
  if (range == Range::rate && !(value >= k_least_rate && value <= k_most_rate)) {
    view.fail(fmt::format("a rate of {} is impossible; must be {} to {} bytes per second", value,
                          k_least_rate, k_most_rate));
  }
  if (range == Range::time && !(value <= k_longest_s)) {
    view.fail(fmt::format("a time of {} is impossible; must be at most {} s", value, k_longest_s));
  }
}

void Unique::add(const std::string& name, const std::string& path) {
  const auto [first, added] = m_first.try_emplace(name, path);
  if (!added) {
    fail_below(m_view, path,
               fmt::format("the {} \"{}\" occurs twice, first at {}; rename or remove one", m_what,
                           name, below(m_view, first->second).pointer()));
  }
}

} // namespace reckon::documents
