// SPDX-License-Identifier: Apache-2.0
#include "documents/machines.hpp"

#include "documents/cells.hpp"
#include "documents/fields.hpp"

#include <fmt/format.h>

namespace reckon::documents {

void describe(Visitor& v, MachineGroup& m) {
  v.about("machine", "Equal machines. Ranks of a plan are placed on machines.");
  v("id", m.id, k_name, "Unique in the document.");
  v("name", m.name, k_any.maybe(), "Host name or model.");
  v("count", m.count, whole(1, k_most_machines).defaulted(), "Number of machines.");
  v("cores", m.cores, whole(1, 1 << 16).maybe(),
    "Physical cores that one process may use; absent: unknown.");
  v("memory_bytes", m.memory_bytes, k_count.maybe(),
    "Memory of one machine, bytes; absent or 0: unknown.");
  v("rack", m.rack, k_name.maybe(),
    "The machines' rack. Traffic that leaves the rack shares its uplink. Cells may name it. "
    "Absent: unknown, or there is only one rack.");
  v("members", m.members, k_name.some("machine").maybe(),
    "Ids of the count single machines, unique in the document. Cells may name them. In a measured "
    "cluster machine i, counted over all groups, was rank i of the measuring job.");
  if (const JsonView* const view = v.read();
      view != nullptr && !m.members.empty() && m.members.size() != m.count) {
    view->at("members").fail(fmt::format(
        "names {} machines, but count is {}; name all of them or none", m.members.size(), m.count));
  }
}

void describe(Visitor& v, Setting& s) {
  v.about("setting", "A setting or a state of a place, as the system tells it; no two are equal.");
  v("place", s.place, k_name, "Id of a machine or an object of the topology.");
  v("machine", s.machine, k_name.maybe(),
    "The member of the place's group of which this is said; absent: of each that has no other.");
  v("name", s.name, k_snake, "What it is: max_payload_bytes, iommu, mtu, ...");
  v("value", s.value, k_some_text, "Its value, as the system or its tools write it.");
  v("file", s.file, k_some_text, "Where it was read.");
}

std::string known_part(const CellKey& key, const std::string& end) {
  return key.test == k_rail_bandwidth ? end.substr(0, end.find('/')) : end;
}

} // namespace reckon::documents
