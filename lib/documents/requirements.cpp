// SPDX-License-Identifier: Apache-2.0
#include "documents/requirements.hpp"

#include "core/file.hpp"
#include "documents/fields.hpp"

#include <fmt/format.h>

namespace reckon {
namespace documents {
namespace {

const std::array<std::string_view, 11> k_required_kinds = names_of<ObjectKind, 11>();

} // namespace

static void describe(Visitor& v, RequiredCell& c) {
  v.about("required_cell",
          "A limit for the median of every measured cell that matches. A field that is not given "
          "matches anything; from and to may end with *, which stands for any rest.",
          R"({"anyOf": [{"required": ["at_least"]}, {"required": ["at_most"]}]})");
  describe_key(v, c.key, true);
  v("at_least", c.at_least, k_positive, "The median must not be below this, in the cell's unit.");
  v("at_most", c.at_most, k_positive, "The median must not be above this, in the cell's unit.");
  v("remedy", c.remedy, k_any.maybe(), "Remedy for a cell that misses the limit.");
  if (const JsonView* const view = v.read(); view != nullptr && !c.at_least && !c.at_most) {
    view->fail("sets no limit; add \"at_least\" or \"at_most\"");
  }
}

static void describe(Visitor& v, RequiredParts& p) {
  v.about("required_parts", "How many parts of a kind the topology must have.");
  v("kind", p.kind, one_of(k_required_kinds), "Kind of the parts.");
  v("name", p.name, k_name.maybe(), "Text that the parts' names contain; absent: any name.");
  v("at_least", p.at_least, k_positive_count, "Least number over all machines.");
}

void describe(Visitor& v, Requirements& r) {
  v.about("requirements", "What a machine or a cluster must be to be accepted.");
  v("name", r.name, k_name, "Name of these requirements.");
  v("cells", r.cells, k_any.maybe(), "Limits for measured cells.");
  v("parts", r.parts, k_any.maybe(), "Required numbers of parts.");
}

} // namespace documents

Requirements requirements_from_json(const Json& json, const std::string& file) {
  return documents::read_as<Requirements>(documents::k_requirements, json, file);
}

Json to_json(const Requirements& requirements) {
  return documents::written(requirements, documents::k_requirements);
}

Requirements read_requirements(const std::string& path) {
  const std::string shown = path == "-" ? "standard input" : path;
  return requirements_from_json(parse_json(read_file(path), shown), shown);
}

} // namespace reckon
