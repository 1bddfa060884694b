// SPDX-License-Identifier: Apache-2.0
#include "target.hpp"

#include "core/json.hpp"

#include <array>
#include <cstdint>
#include <utility>

namespace reckon::fuzz {
namespace {

std::size_t below(std::size_t limit, std::mt19937_64& random) {
  return static_cast<std::size_t>(random() % limit);
}

/// All values, and those that hold others.
struct Places {
  std::vector<Json*> values, lists, texts;

  explicit Places(Json& root) { collect(root); }

private:
  void collect(Json& value) {
    values.push_back(&value);
    if (value.is_string()) {
      texts.push_back(&value);
    }
    if (value.is_structured() && !value.empty()) {
      lists.push_back(&value);
      for (Json& below : value) {
        collect(below);
      }
    }
  }
};

std::string with_other_digit(std::string text, std::mt19937_64& random) {
  std::vector<std::size_t> digits;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] >= '0' && text[i] <= '9') {
      digits.push_back(i);
    }
  }
  if (!digits.empty()) {
    text[digits[below(digits.size(), random)]] = static_cast<char>('0' + below(10, random));
  }
  return text;
}

void change_number(Json& number, std::mt19937_64& random) {
  const std::array<Json, 8> far{0, 1, -1, 2, 0.5, 1e300, 1e-300, std::uint64_t{1} << 53U};
  switch (below(5, random)) {
  case 0:
    number = far[below(far.size(), random)];
    break;
  case 1:
    number = number.get<double>() * (below(2, random) == 0 ? 2 : 0.5);
    break;
  case 2:
    if (number.is_number_unsigned()) {
      number = number.get<std::uint64_t>() + (below(2, random) == 0 ? 1 : -std::uint64_t{1});
      break;
    }
    [[fallthrough]];
  default:
    if (Json other = Json::parse(with_other_digit(number.dump(), random), nullptr, false);
        other.is_number()) {
      number = std::move(other);
    }
  }
}

/// Two entries change places, or one of an array is there twice or no more.
void change_list(Json& list, std::mt19937_64& random) {
  const auto at = [&](std::size_t i) {
    return std::next(list.begin(), static_cast<std::ptrdiff_t>(i));
  };
  const auto one = at(below(list.size(), random)), other = at(below(list.size(), random));
  switch (list.is_array() ? below(4, random) : below(5, random)) {
  case 0:
    list.erase(one);
    break;
  case 1:
    if (list.is_array()) {
      const Json again = *one;
      list.insert(other, again);
      break;
    }
    [[fallthrough]];
  default:
    std::swap(*one, *other);
  }
}

void change(Json& json, std::mt19937_64& random) {
  const Places places(json);
  Json& value = *places.values[below(places.values.size(), random)];
  const std::size_t way = below(8, random);
  if (way == 0) { // what stands elsewhere
    const Json copy = *places.values[below(places.values.size(), random)];
    if (copy.is_structured() == value.is_structured()) {
      value = copy;
    }
  } else if (way < 3 && !places.lists.empty()) {
    change_list(*places.lists[below(places.lists.size(), random)], random);
  } else if (value.is_number()) {
    change_number(value, random);
  } else if (value.is_string()) {
    value = way < 6 ? *places.texts[below(places.texts.size(), random)]
                    : Json(with_other_digit(value.get<std::string>(), random));
  } else if (value.is_boolean()) {
    value = !value.get<bool>();
  }
}

} // namespace

std::string with_changes(std::string_view text, std::mt19937_64& random) {
  std::optional<Json> parsed;
  try {
    parsed = parse_json(text, "f");
  } catch (const Error&) {
    return std::string(text);
  }
  Json json = std::move(*parsed);
  for (std::size_t left = 1 + below(3, random); left > 0; --left) {
    change(json, random);
  }
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

} // namespace reckon::fuzz
