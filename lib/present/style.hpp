// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/terminal.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// `marks` is for what turns text into something else than lines of a terminal: a control character
/// before and after everything that is more than text (struct Mark).
enum class Colors { none, ansi256, truecolor, marks };

/// What stands in text with Colors::marks. None of them is left in printable() text.
struct Mark {
  static constexpr char table = '\x01', row = '\x02', head = '\x03', number_head = '\x04',
                        cell = '\x05', number = '\x06', sentence = '\x07', title = '\x0e',
                        sentence_head = '\x17',
                        lines = '\x0f', ///< keep their blanks, none is broken
      end = '\x10';                     ///< of the last that began
  /// Of a tone that is not plain: this and the tone's number.
  static constexpr char tone = '\x11';
};
/// `text` between a mark and its end.
[[nodiscard]] std::string marked(std::string_view text, char mark);

/// The layout of text. The default is for a pipe or a file: no colour, lines of any length, the
/// same bytes everywhere.
struct Style {
  Colors colors = Colors::none;
  int width = 0; ///< columns to stay within if possible; 0: any
};

/// For output to `fd`: colour as use_color() says, in 24 bits when COLORTERM promises them; the
/// terminal's width.
[[nodiscard]] Style style_for(ColorMode mode, int fd);

/// Lines in which blanks have a meaning, as those of a tree.
[[nodiscard]] std::string whole_lines(std::string_view text, const Style& style);

enum class Tone { plain, strong, dim, good, bad, warning };

/// `text` in that tone; unchanged without colours.
[[nodiscard]] std::string toned(std::string_view text, Tone tone, const Style& style);

struct Rgb {
  std::uint8_t red = 0, green = 0, blue = 0;
};
/// `text` on that background, in black or white, whichever is easier to read.
[[nodiscard]] std::string on_background(std::string_view text, Rgb color, const Style& style);
/// From dark blue at 0 over green to yellow at 1: rising in lightness, so that it also reads in
/// grey and with red-green blindness. Values outside count as the nearest end.
[[nodiscard]] Rgb heat_color(double value);

/// Text from a document in a form safe for a terminal: control characters (escape sequences among
/// them), marks that turn the direction of writing, and broken UTF-8 become '?'.
[[nodiscard]] std::string printable(std::string_view text);
/// Columns of printable text: one a code point.
[[nodiscard]] std::size_t columns_of(std::string_view text);
/// The beginning of printable text that has at most that many columns.
[[nodiscard]] std::string_view first_columns(std::string_view text, std::size_t columns);
/// A blank at which wrapped() breaks no line (U+00A0); it is printed as a plain one.
inline constexpr std::string_view k_no_break = "\u00a0";
/// Lines of at most `width` columns, broken at blanks if there are any, preferably after a
/// semicolon or outside parentheses, and through words that are longer than a line.
[[nodiscard]] std::vector<std::string> wrapped(std::string_view text, std::size_t width);
/// Printable text as lines that fit a terminal, each with a line end and the first one's indent.
[[nodiscard]] std::string folded(std::string_view text, const Style& style);
/// The same, with the title in bold before the rest.
[[nodiscard]] std::string titled(std::string_view title, std::string_view rest, const Style& style);
/// A line of its own below an empty one, in bold; unprintable characters are replaced.
[[nodiscard]] std::string heading(std::string_view title, const Style& style);

} // namespace reckon
