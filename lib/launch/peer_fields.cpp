// SPDX-License-Identifier: Apache-2.0
#include "launch/peer_fields.hpp"

#include "core/json.hpp"
#include "launch/peer_error.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace reckon {
namespace {

// Whether `json` is a value of the type of `to`, and then the value.
bool read(const Json& json, bool& to) {
  return json.is_boolean() && (json.get_to(to), true);
}
bool read(const Json& json, std::uint64_t& to) {
  return json.is_number_unsigned() && (json.get_to(to), true);
}
bool read(const Json& json, std::int64_t& to) {
  const bool fits = !json.is_number_unsigned() || json.get<std::uint64_t>() <= INT64_MAX;
  return json.is_number_integer() && fits && (json.get_to(to), true);
}
bool read(const Json& json, double& to) {
  return json.is_number() && (json.get_to(to), true);
}
bool read(const Json& json, std::string& to) {
  return json.is_string() && (json.get_to(to), true);
}
template <class T>
bool read(const Json& json, std::vector<T>& to) {
  to.clear();
  for (std::size_t i = 0; json.is_array() && i < json.size(); ++i) {
    if (!read(json[i], to.emplace_back())) {
      return false;
    }
  }
  return json.is_array();
}

} // namespace

std::string fields_to_text(const PeerFields& fields) {
  Json json = Json::object();
  for (const PeerField& field : fields) {
    std::visit([&](const auto* value) { json[field.name] = *value; }, field.value);
  }
  return compact(json);
}

void fields_from_text(const PeerFields& fields, const std::string& text,
                      const std::string& sender) {
  const auto refuse = [&](const std::string& why) {
    throw PeerError(
        fmt::format("{} sent a message that cannot be read: {}", sender, one_line(why)));
  };
  Json json;
  try {
    json = parse_json(text, sender); // with a limit of depth: what is refused is written below
  } catch (const Error&) {           // stays null
  }
  if (!json.is_object()) {
    refuse("it is no JSON object");
  }
  for (const PeerField& field : fields) {
    const auto it = json.find(field.name);
    if (it == json.end()) {
      refuse(fmt::format("'{}' is missing", field.name));
    }
    if (!std::visit([&](auto* value) { return read(*it, *value); }, field.value)) {
      constexpr std::size_t k_shown = 40;
      refuse(fmt::format("'{}' is {}", field.name, it->dump().substr(0, k_shown)));
    }
  }
  for (const auto& [name, value] : json.items()) {
    if (std::none_of(fields.begin(), fields.end(),
                     [&name = name](const PeerField& field) { return field.name == name; })) {
      refuse(fmt::format("'{}' is not known here", name));
    }
  }
}

} // namespace reckon
