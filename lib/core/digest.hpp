// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace reckon {

/// "sha256:<64 hex digits>" of the bytes given. A document's digest is that of its canonical text,
/// so `sha256sum FILE` on a file that reckon wrote gives the same digits.
[[nodiscard]] std::string digest_of(std::string_view bytes);

} // namespace reckon
