// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace reckon {

enum class ColorMode { automatic, always, never };

/// Whether this stream is a terminal that understands escape sequences (TERM set and not dumb) and
/// not one that an MPI launcher made for its rank.
[[nodiscard]] bool is_smart_terminal(int fd);
/// Colour on `fd`: always, never, or a smart terminal without a non-empty NO_COLOR.
[[nodiscard]] bool use_color(ColorMode mode, int fd);
/// Columns of the terminal behind `fd`; 80 when it is no terminal.
[[nodiscard]] int terminal_width(int fd);

} // namespace reckon
