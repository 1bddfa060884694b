// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// Text of a document as it may stand between tags and in attributes of HTML and SVG: what is not
/// printable() is replaced, and what has a meaning there is written as a reference.
[[nodiscard]] std::string escaped(std::string_view text);

/// Text that was made with Colors::marks as HTML: tables, titles, sentences as paragraphs. Whatever
/// the text has, the tags are balanced.
[[nodiscard]] std::string html_of(std::string_view text);

/// A part of a page: what the reader may jump to.
struct Section {
  std::string title; ///< plain text
  std::string html;
};

/// What a page begins with.
struct Head {
  std::string title;    ///< plain text, of the browser's window and the page
  std::string subtitle; ///< plain text: what it was made from
  std::string tone;     ///< of the verdict: "good", "bad", "warning" or "plain"
  std::string verdict;  ///< html
};

/// The whole page: it needs no network, no other file and no script. Sections without html are left
/// out.
[[nodiscard]] std::string page_of(const Head& head, const std::vector<Section>& sections);

} // namespace reckon
