// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/describe.hpp"
#include "documents/profile.hpp"

#include <string>

namespace reckon::documents {

/// What a profile says of its machines, but for their trees and cells.
void describe(Visitor& v, MachineGroup& m);
void describe(Visitor& v, Setting& s);

/// What has to be known of an end of a cell, `key`.from or `key`.to: of a rail its machine, because
/// the machine's tree may lack its port, else all of it.
[[nodiscard]] std::string known_part(const CellKey& key, const std::string& end);

} // namespace reckon::documents
