// SPDX-License-Identifier: Apache-2.0
#include "documents/roles.hpp"

#include "documents/fields.hpp"
#include "documents/json.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace reckon {
namespace documents {
namespace {

void check(RoleGroup& group, const JsonView& view) {
  if (!group.endpoints.empty()) {
    if (view.find("count") && group.count != group.endpoints.size()) {
      view.at("count").fail(fmt::format("is {}, but there are {} endpoints; leave it out",
                                        group.count, group.endpoints.size()));
    }
    group.count = group.endpoints.size();
  }
  if (!group.worker && !group.server) {
    view.fail("is neither worker nor server; set \"worker\" or \"server\" to true, or remove the "
              "group");
  }
}

} // namespace

static void describe(Visitor& v, RoleGroup& g) {
  v.about("group", "Equal ranks; worker or server or both must be true.",
          R"({"anyOf": [{"properties": {"worker": {"const": true}}, "required": ["worker"]},
                        {"properties": {"server": {"const": true}}, "required": ["server"]}]})");
  v("machine", g.machine, k_name, "Id of an entry of the profile's machines.");
  v("count", g.count, whole(1, k_most_machines).defaulted(), "Number of ranks.");
  v("worker", g.worker, k_any.defaulted(), "Has gradients and needs their sum.");
  v("server", g.server, k_any.defaulted(),
    "The ranks may sum parts of other ranks' gradients (summation service).");
  v("lanes", g.lanes, whole(0, k_max_lanes).defaulted(),
    "Threads that move parts, each with its own endpoint; 0: the plan chooses. All ranks of a plan "
    "have the largest number that a group asks for.");
  v("endpoints", g.endpoints, k_name.some("endpoint").maybe(),
    "The GPUs, NUMA nodes or memory devices that are the ranks, count of them. An endpoint that an "
    "earlier group names already is that of the group's next machine.");
  v.check([&](const JsonView& view) { check(g, view); });
}

void describe(Visitor& v, Roles& roles) {
  v.about("roles", "Who does what: groups of equal ranks. Ranks are numbered in the order of the "
                   "groups. At least one group has workers.");
  v("name", roles.name, k_name, "Name of this assignment.");
  v("groups", roles.groups,
    k_any.some("group of ranks")
        .with(
            R"({"contains": {"properties": {"worker": {"const": true}}, "required": ["worker"]}})"),
    "Groups of equal ranks.");
  if (const JsonView* const view = v.read();
      view != nullptr && std::none_of(roles.groups.begin(), roles.groups.end(),
                                      [](const RoleGroup& g) { return g.worker; })) {
    view->at("groups").fail("there is no worker; set \"worker\" to true in at least one group");
  }
}

} // namespace documents

Roles roles_from_json(const Json& json, const std::string& file) {
  return documents::read_as<Roles>("roles", json, file);
}
Json to_json(const Roles& roles) {
  return documents::written(roles, "roles");
}

} // namespace reckon
