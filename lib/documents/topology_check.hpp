// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/json.hpp"
#include "documents/profile.hpp"

namespace reckon::documents {

/// Whether the objects of a profile's topology make trees and its links join two of one machine.
/// Throws Error{input} that names the place in the document.
void check_topology(const Profile& profile, const JsonView& view);

} // namespace reckon::documents
