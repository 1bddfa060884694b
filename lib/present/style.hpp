// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/terminal.hpp"

#include <cstdint>
#include <string>
#include <string_view>

namespace reckon {

enum class Colors { none, ansi256, truecolor };

/// How text is laid out. The default is what a pipe or a file gets: no colour, lines of any length,
/// the same bytes everywhere.
struct Style {
  Colors colors = Colors::none;
  int width = 0; ///< columns to stay within where possible; 0: any
};

/// For output to `fd`: colour as use_color() says, in 24 bits when COLORTERM promises them; the
/// terminal's width.
[[nodiscard]] Style style_for(ColorMode mode, int fd);

enum class Tone { plain, strong, dim, good, bad, warning };

/// `text` in that tone; as it is without colours.
[[nodiscard]] std::string toned(std::string_view text, Tone tone, const Style& style);

struct Rgb {
  std::uint8_t red = 0, green = 0, blue = 0;
};
/// `text` on that background, in black or white, whichever is easier to read.
[[nodiscard]] std::string on_background(std::string_view text, Rgb color, const Style& style);
/// From dark blue at 0 over green to yellow at 1: rising in lightness, so that it also reads in
/// grey and by eyes that do not tell red from green. Values outside are taken as the nearest.
[[nodiscard]] Rgb heat_color(double value);

/// Text from a document as a terminal may get it: control characters (escape sequences among them),
/// marks that turn the direction of writing, and broken UTF-8 become '?'.
[[nodiscard]] std::string printable(std::string_view text);
/// Columns of printable text: one a code point.
[[nodiscard]] std::size_t columns_of(std::string_view text);

} // namespace reckon
