// SPDX-License-Identifier: Apache-2.0
#include "documents/endpoint.hpp"

#include "documents/fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace reckon::documents {
namespace {

constexpr std::pair<const char*, double Endpoint::*> k_rates[] = {
    {"sm_bytes_per_second", &Endpoint::sm_bytes_per_second},
    {"flops_per_second", &Endpoint::flops_per_second},
    {"memory_bytes_per_second", &Endpoint::memory_bytes_per_second},
    {"bus_bytes_per_second", &Endpoint::bus_bytes_per_second},
};
constexpr std::array<const char*, 3> k_rings{"local", "vertical", "horizontal"};
constexpr std::array<std::string_view, 3> k_movers{"cores", "engine", "none"};

/// Leaves computation something.
EndpointPart part_from_json(const JsonView& object, const Endpoint& endpoint) {
  object.only({"sms", "memory_bytes_per_second"});
  EndpointPart part;
  part.sms = object.at("sms").non_negative();
  part.memory_bytes_per_second = object.at("memory_bytes_per_second").non_negative();
  const auto below = [&](const char* key, double value, double all) {
    if (value >= all) {
      object.at(key).fail(fmt::format(
          "is {}, the endpoint has {}; must be less, so that computation has some", value, all));
    }
  };
  below("sms", part.sms, static_cast<double>(endpoint.sms));
  below("memory_bytes_per_second", part.memory_bytes_per_second, endpoint.memory_bytes_per_second);
  return part;
}

Json json_of(const EndpointPart& part) {
  return {{"sms", part.sms}, {"memory_bytes_per_second", part.memory_bytes_per_second}};
}

EndpointConfiguration configuration_from_json(const JsonView& object, const Endpoint& endpoint) {
  object.only({"name", "source", "mover", "communication"});
  EndpointConfiguration configuration;
  configuration.name = object.at("name").name();
  configuration.source = optional_text(object, "source");
  const std::string mover = object.at("mover").one_of({"cores", "engine", "none"});
  configuration.mover = static_cast<EndpointMover>(
      std::find(k_movers.begin(), k_movers.end(), mover) - k_movers.begin());
  if (const auto part = object.find("communication")) {
    configuration.communication = part_from_json(*part, endpoint);
  }
  return configuration;
}

EndpointRing ring_from_json(const JsonView& object) {
  object.only({"bytes_per_second", "latency_seconds"});
  return {.bytes_per_second = object.at("bytes_per_second").positive(),
          .latency_seconds = object.at("latency_seconds").non_negative()};
}

void read_torus(const JsonView& object, Endpoint& endpoint) {
  object.only({"local", "vertical", "horizontal", "link_efficiency", "chunk_bytes"});
  for (std::size_t d = 0; d < k_rings.size(); ++d) {
    endpoint.rings[d] = ring_from_json(object.at(k_rings[d]));
  }
  const JsonView efficiency = object.at("link_efficiency");
  endpoint.link_efficiency = efficiency.positive();
  if (endpoint.link_efficiency > 1) {
    efficiency.fail(fmt::format("is {}; must be at most 1", endpoint.link_efficiency));
  }
  endpoint.chunk_bytes = positive_count(object.at("chunk_bytes"));
}

} // namespace

Endpoint endpoint_from_json(const JsonView& object) {
  object.only({"sms", "sm_bytes_per_second", "flops_per_second", "memory_bytes_per_second",
               "bus_bytes_per_second", "torus", "aside", "configurations", "sources"});
  Endpoint endpoint;
  endpoint.sms = positive_count(object.at("sms"));
  for (const auto& [key, member] : k_rates) {
    endpoint.*member = object.at(key).positive();
  }
  read_torus(object.at("torus"), endpoint);
  if (const auto aside = object.find("aside")) {
    endpoint.aside = part_from_json(*aside, endpoint);
  }
  Unique names("configuration's name");
  for (const JsonView& configuration :
       some_elements(object.at("configurations"), "configuration")) {
    endpoint.configurations.push_back(configuration_from_json(configuration, endpoint));
    names.add(endpoint.configurations.back().name, configuration.at("name"));
  }
  if (const auto sources = object.find("sources")) {
    endpoint.sources = texts_from_json(*sources);
  }
  return endpoint;
}

Json json_of(const Endpoint& endpoint) {
  Json json = Json::object();
  json["sms"] = endpoint.sms;
  for (const auto& [key, member] : k_rates) {
    json[key] = endpoint.*member;
  }
  Json& torus = json["torus"];
  for (std::size_t d = 0; d < k_rings.size(); ++d) {
    torus[k_rings[d]] = {{"bytes_per_second", endpoint.rings[d].bytes_per_second},
                         {"latency_seconds", endpoint.rings[d].latency_seconds}};
  }
  torus["link_efficiency"] = endpoint.link_efficiency;
  torus["chunk_bytes"] = endpoint.chunk_bytes;
  if (endpoint.aside) {
    json["aside"] = json_of(*endpoint.aside);
  }
  json["configurations"] = Json::array();
  for (const EndpointConfiguration& configuration : endpoint.configurations) {
    Json& object = json["configurations"].emplace_back(Json::object());
    object["name"] = configuration.name;
    put_text(object, "source", configuration.source);
    object["mover"] = name_of(configuration.mover);
    if (configuration.communication) {
      object["communication"] = json_of(*configuration.communication);
    }
  }
  if (!endpoint.sources.empty()) {
    json["sources"] = json_of(endpoint.sources);
  }
  return json;
}

} // namespace reckon::documents

namespace reckon {

std::string_view name_of(EndpointMover mover) {
  return documents::k_movers[static_cast<std::size_t>(mover)];
}

} // namespace reckon
