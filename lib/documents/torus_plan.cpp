// SPDX-License-Identifier: Apache-2.0
#include "documents/torus_plan.hpp"

#include "documents/fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>

namespace reckon::documents {
namespace {

constexpr std::array<const char*, 3> k_dimensions{"local", "vertical", "horizontal"};

std::vector<std::size_t> dimensions_from_json(const JsonView& array) {
  std::vector<std::size_t> dimensions;
  for (const JsonView& name : array.elements()) {
    const std::string text = name.one_of({k_dimensions[0], k_dimensions[1], k_dimensions[2]});
    dimensions.push_back(static_cast<std::size_t>(
        std::find(k_dimensions.begin(), k_dimensions.end(), text) - k_dimensions.begin()));
  }
  return dimensions;
}

TorusWay way_from_json(const JsonView& object) {
  object.only({"scatter", "sum", "backward"});
  TorusWay way{dimensions_from_json(object.at("scatter")), dimensions_from_json(object.at("sum")),
               object.at("backward").boolean()};
  std::set<std::size_t> all(way.scatter.begin(), way.scatter.end());
  all.insert(way.sum.begin(), way.sum.end());
  if (all.size() != k_dimensions.size() ||
      way.scatter.size() + way.sum.size() != k_dimensions.size()) {
    object.fail("must hold local, vertical and horizontal once each, in \"scatter\" or \"sum\"");
  }
  return way;
}

Json names_of(const std::vector<std::size_t>& dimensions) {
  Json names = Json::array();
  for (const std::size_t d : dimensions) {
    names.push_back(k_dimensions[d]);
  }
  return names;
}

} // namespace

TorusPlan torus_plan_from_json(const JsonView& object, std::size_t ranks) {
  object.only({"shape", "ways"});
  TorusPlan torus;
  const std::vector<JsonView> shape = object.at("shape").elements();
  if (shape.size() != torus.shape.size()) {
    object.at("shape").fail(
        fmt::format("has {} entries; give local, vertical and horizontal", shape.size()));
  }
  std::uint64_t nodes = 1;
  for (std::size_t d = 0; d < torus.shape.size(); ++d) {
    torus.shape[d] = positive_count(shape[d]);
    nodes = torus.shape[d] > ranks ? ranks + 1 : nodes * torus.shape[d];
    nodes = std::min<std::uint64_t>(nodes, ranks + 1); // enough to know; does not overflow
  }
  if (nodes != ranks) {
    object.at("shape").fail(
        fmt::format("must hold as many nodes as the plan has ranks, which are {}", ranks));
  }
  for (const JsonView& way : some_elements(object.at("ways"), "way")) {
    torus.ways.push_back(way_from_json(way));
  }
  return torus;
}

Json json_of(const TorusPlan& torus) {
  Json json{{"shape", torus.shape}, {"ways", Json::array()}};
  for (const TorusWay& way : torus.ways) {
    json["ways"].push_back({{"scatter", names_of(way.scatter)},
                            {"sum", names_of(way.sum)},
                            {"backward", way.backward}});
  }
  return json;
}

} // namespace reckon::documents
