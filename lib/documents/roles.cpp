// SPDX-License-Identifier: Apache-2.0
#include "documents/roles.hpp"

#include "documents/fields.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace reckon {

using namespace documents;

Roles roles_from_json(const Json& json, const std::string& file) {
  const JsonView view(json, file);
  check_header(view, "roles");
  view.only({"schema", "schema_version", "name", "groups"});
  Roles roles;
  roles.name = view.at("name").name();
  for (const JsonView& object : some_elements(view.at("groups"), "group of ranks")) {
    object.only({"machine", "count", "worker", "server", "lanes", "endpoints"});
    RoleGroup group;
    group.machine = object.at("machine").name();
    if (const auto count = object.find("count")) {
      group.count = positive_count(*count);
    }
    if (const auto endpoints = object.find("endpoints")) {
      for (const JsonView& endpoint : some_elements(*endpoints, "endpoint")) {
        group.endpoints.push_back(endpoint.name());
      }
      if (object.find("count") && group.count != group.endpoints.size()) {
        object.at("count").fail(fmt::format("is {}, but there are {} endpoints; leave it out",
                                            group.count, group.endpoints.size()));
      }
      group.count = group.endpoints.size();
    }
    if (const auto worker = object.find("worker")) {
      group.worker = worker->boolean();
    }
    if (const auto server = object.find("server")) {
      group.server = server->boolean();
    }
    if (const auto lanes = object.find("lanes")) {
      group.lanes = lanes->integer(1, k_max_lanes);
    }
    if (!group.worker && !group.server) {
      object.fail("is neither worker nor server; set \"worker\" or \"server\" to true, or remove "
                  "the group");
    }
    roles.groups.push_back(group);
  }
  if (std::none_of(roles.groups.begin(), roles.groups.end(),
                   [](const RoleGroup& g) { return g.worker; })) {
    view.at("groups").fail("there is no worker; set \"worker\" to true in at least one group");
  }
  return roles;
}

Json to_json(const Roles& roles) {
  Json groups = Json::array();
  for (const RoleGroup& g : roles.groups) {
    groups.push_back({{"machine", g.machine},
                      {"count", g.count},
                      {"worker", g.worker},
                      {"server", g.server},
                      {"lanes", g.lanes}});
    if (!g.endpoints.empty()) {
      groups.back()["endpoints"] = g.endpoints;
    }
  }
  Json json = with_header("roles");
  json["name"] = roles.name;
  json["groups"] = std::move(groups);
  return json;
}

} // namespace reckon
