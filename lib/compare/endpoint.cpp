// SPDX-License-Identifier: Apache-2.0
#include "compare/endpoint.hpp"

#include "core/json.hpp"
#include "documents/endpoint.hpp"
#include "documents/json.hpp"

#include <fmt/format.h>

#include <map>
#include <string>

namespace reckon {
namespace {

/// Every figure and every word of it, by its place in the document.
void flatten(const Json& json, const std::string& path, std::map<std::string, Json>& out) {
  if (!json.is_structured()) {
    out[path] = json;
    return;
  }
  for (const auto& [key, value] : json.items()) {
    // Configurations are known by their names, wherever they stand.
    flatten(value, path + "/" + (json.is_array() ? value.at("name").get<std::string>() : key), out);
  }
}

std::map<std::string, Json> figures_of(const std::optional<Endpoint>& endpoint) {
  std::map<std::string, Json> out;
  if (endpoint) {
    Json json = to_json(*endpoint);
    json.erase("sources");
    for (Json& configuration : json["configurations"]) {
      configuration.erase("source");
    }
    flatten(json, "endpoint", out);
  }
  return out;
}

} // namespace

void compare_endpoints(Builder& out, const std::optional<Endpoint>& before,
                       const std::optional<Endpoint>& after) {
  const std::map<std::string, Json> a = figures_of(before), b = figures_of(after);
  using Figure = std::pair<const std::string, Json>;
  for (const auto& [where, sides] : paired(a, b, &Figure::first)) {
    const auto side = [](const Figure* figure) {
      return figure != nullptr ? figure->second : Json();
    };
    const Json left = side(sides.first), right = side(sides.second);
    if (left.is_number() || right.is_number()) {
      const auto number = [](const Json& json) {
        return json.is_number() ? std::optional(json.get<double>()) : std::nullopt;
      };
      out.number("endpoint", "endpoint", where, number(left), number(right), "");
    } else {
      const auto text = [](const Json& json) {
        return json.is_string() ? json.get<std::string>() : std::string();
      };
      out.text("endpoint", "endpoint", where, text(left), text(right));
    }
  }
}

} // namespace reckon
