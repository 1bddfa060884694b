// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/describe.hpp"
#include "documents/profile.hpp"

namespace reckon::documents {

/// What a profile says of its machines, but for their trees and cells.
void describe(Visitor& v, MachineGroup& m);
void describe(Visitor& v, Setting& s);

} // namespace reckon::documents
