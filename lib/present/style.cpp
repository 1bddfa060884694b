// SPDX-License-Identifier: Apache-2.0
#include "present/style.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <utility>

namespace reckon {
namespace {

/// Bytes of the UTF-8 sequence at the front of `text` and its code point; length 0 when it is
/// broken.
std::pair<std::size_t, std::uint32_t> decode(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) {
    return {1, first};
  }
  const std::size_t length =
      first >= 0xf0 && first < 0xf5 ? 4 : (first >= 0xe0 && first < 0xf0 ? 3 : 2);
  if (first < 0xc2 || first >= 0xf5 || text.size() < length) {
    return {0, 0};
  }
  std::uint32_t point = first & (0xffU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0U) != 0x80) {
      return {0, 0};
    }
    point = (point << 6U) | (byte(i) & 0x3fU);
  }
  constexpr std::array<std::uint32_t, 5> k_least{0, 0, 0x80, 0x800, 0x10000};
  const bool surrogate = point >= 0xd800 && point < 0xe000;
  return point < k_least[length] || point > 0x10ffff || surrogate
             ? std::pair<std::size_t, std::uint32_t>{0, 0}
             : std::pair{length, point};
}

bool is_harmless(std::uint32_t point) {
  const bool control = point < 0x20 || (point >= 0x7f && point < 0xa0);
  // U+2028-2029 end lines; U+200E-200F, 202A-202E and 2066-2069 turn the direction of writing.
  const bool turns = point == 0x200e || point == 0x200f || (point >= 0x2028 && point <= 0x202e) ||
                     (point >= 0x2066 && point <= 0x2069);
  return !control && !turns;
}

/// Nearest of the 6 x 6 x 6 colours that every terminal of 256 colours has.
int cube_color(Rgb c) {
  const auto level = [](std::uint8_t v) { // levels 0, 95, 135, 175, 215, 255
    return v < 48 ? 0 : (v < 115 ? 1 : (v - 35) / 40);
  };
  return 16 + 36 * level(c.red) + 6 * level(c.green) + level(c.blue);
}

/// Where a line that is too long ends: in its second half after the last semicolon, else at the
/// last blank inside the fewest parentheses; else at any blank. `open`: parentheses before it.
std::size_t line_end(std::string_view line, int open) {
  std::size_t best = line.npos;
  std::pair<bool, int> best_rank{true, std::numeric_limits<int>::max()};
  for (std::size_t i = 0; i < line.size(); ++i) {
    open += line[i] == '(' ? 1 : line[i] == ')' ? -1 : 0;
    if (line[i] != ' ' || 2 * i < line.size()) {
      continue;
    }
    const std::pair rank{line[i - 1] != ';', open};
    if (rank <= best_rank) {
      best_rank = rank;
      best = i;
    }
  }
  best = best != line.npos ? best : line.rfind(' ');
  return best == 0 ? line.npos : best;
}

std::string with_blanks(std::string_view text) {
  std::string out(text);
  for (std::size_t i = out.find(k_no_break); i != out.npos; i = out.find(k_no_break, i)) {
    out.replace(i, k_no_break.size(), " ");
  }
  return out;
}

} // namespace

Style style_for(ColorMode mode, int fd) {
  Style style;
  if (use_color(mode, fd)) {
    const char* depth = std::getenv("COLORTERM");
    const bool full = depth != nullptr && (std::string_view(depth) == "truecolor" ||
                                           std::string_view(depth) == "24bit");
    style.colors = full ? Colors::truecolor : Colors::ansi256;
  }
  if (is_smart_terminal(fd)) {
    style.width = terminal_width(fd);
  }
  return style;
}

std::string marked(std::string_view text, char mark) {
  return mark + std::string(text) + Mark::end;
}

std::string whole_lines(std::string_view text, const Style& style) {
  return style.colors == Colors::marks ? marked(text, Mark::lines) : std::string(text);
}

std::string toned(std::string_view text, Tone tone, const Style& style) {
  if (style.colors == Colors::none || tone == Tone::plain || text.empty()) {
    return std::string(text);
  }
  if (style.colors == Colors::marks) {
    return marked(text, static_cast<char>(Mark::tone + static_cast<int>(tone)));
  }
  constexpr std::array<std::string_view, 6> k_codes{"0", "1", "2", "32", "31", "33"};
  return fmt::format("\x1b[{}m{}\x1b[0m", k_codes[static_cast<std::size_t>(tone)], text);
}

std::string on_background(std::string_view text, Rgb c, const Style& style) {
  if (style.colors == Colors::none || style.colors == Colors::marks) {
    return std::string(text);
  }
  // Rec. 601 luma, to choose the readable one of black (16) and white (231).
  const int ink = 299 * c.red + 587 * c.green + 114 * c.blue > 130000 ? 16 : 231;
  const std::string ground = style.colors == Colors::truecolor
                                 ? fmt::format("2;{};{};{}", c.red, c.green, c.blue)
                                 : fmt::format("5;{}", cube_color(c));
  return fmt::format("\x1b[38;5;{};48;{}m{}\x1b[0m", ink, ground, text);
}

Rgb heat_color(double value) {
  // Anchors of the viridis colour map of matplotlib (CC0), a quarter apart.
  constexpr std::array<std::array<double, 3>, 5> k_anchors{
      {{68, 1, 84}, {59, 82, 139}, {33, 145, 140}, {94, 201, 98}, {253, 231, 37}}};
  const double at = (std::isfinite(value) ? std::clamp(value, 0.0, 1.0) : 0.0) * 4;
  const std::size_t low = std::min<std::size_t>(static_cast<std::size_t>(at), 3);
  const double part = at - static_cast<double>(low);
  const auto mix = [&](std::size_t channel) {
    return static_cast<std::uint8_t>(
        std::lround(k_anchors[low][channel] * (1 - part) + k_anchors[low + 1][channel] * part));
  };
  return {mix(0), mix(1), mix(2)};
}

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const auto [length, point] = decode(text);
    if (length == 0) {
      out += '?';
      text.remove_prefix(1);
      continue;
    }
    if (is_harmless(point)) {
      out += text.substr(0, length);
    } else {
      out += '?';
    }
    text.remove_prefix(length);
  }
  return out;
}

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0U) != 0x80;
  }));
}

std::string_view first_columns(std::string_view text, std::size_t columns) {
  std::size_t i = 0;
  for (; i < text.size(); ++i) {
    const bool begins = (static_cast<unsigned char>(text[i]) & 0xc0U) != 0x80;
    if (begins && columns-- == 0) {
      break;
    }
  }
  return text.substr(0, i);
}

std::vector<std::string> wrapped(std::string_view text, std::size_t width) {
  std::vector<std::string> out;
  int open = 0; // parentheses before this line
  while (columns_of(text) > width) {
    std::string_view line = first_columns(text, width + 1);
    const std::size_t blank = line_end(line, open);
    line = blank != line.npos ? line.substr(0, blank) : first_columns(text, width);
    out.push_back(with_blanks(line));
    open += static_cast<int>(std::ranges::count(line, '(') - std::ranges::count(line, ')'));
    text.remove_prefix(line.size());
    text.remove_prefix(std::min(text.find_first_not_of(' '), text.size()));
  }
  out.push_back(with_blanks(text));
  return out;
}

std::string folded(std::string_view text, const Style& style) {
  return titled("", text, style);
}

std::string titled(std::string_view title, std::string_view rest, const Style& style) {
  const std::string all = std::string(title) + std::string(rest);
  if (style.colors == Colors::marks && !title.empty()) {
    return marked(std::string(title) + toned(rest, Tone::dim, style), Mark::title) + "\n";
  }
  if (style.width <= 0 || columns_of(all) <= static_cast<std::size_t>(style.width)) {
    return toned(title, Tone::strong, style) + std::string(rest) + "\n";
  }
  const std::string indent(std::min(all.find_first_not_of(' '), all.size()), ' ');
  const std::size_t columns = static_cast<std::size_t>(style.width);
  std::string out;
  for (const std::string& part : wrapped(std::string_view(all).substr(indent.size()),
                                         columns - std::min(columns - 1, indent.size()))) {
    const std::string line = indent + part;
    // The title is bold as far as it stands whole on the first line.
    const bool first = out.empty() && line.starts_with(title);
    out += (first ? toned(title, Tone::strong, style) + line.substr(title.size()) : line) + "\n";
  }
  return out;
}

std::string heading(std::string_view title, const Style& style) {
  const std::string text = printable(title);
  return "\n" + (style.colors == Colors::marks ? titled(text, "", style)
                                               : toned(text, Tone::strong, style) + "\n");
}

} // namespace reckon
