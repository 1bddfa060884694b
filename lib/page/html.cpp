// SPDX-License-Identifier: Apache-2.0
#include "page/html.hpp"

#include "core/version.hpp"
#include "page/template.hpp"
#include "present/style.hpp"

#include <fmt/format.h>

#include <array>
#include <utility>

namespace reckon {
namespace {

std::string reference(char c) {
  switch (c) {
  case '&':
    return "&amp;";
  case '<':
    return "&lt;";
  case '>':
    return "&gt;";
  case '"':
    return "&quot;";
  case '\'':
    return "&#39;";
  default:
    return {c};
  }
}

/// Tag and class of what a mark begins; no tag: `c` is no such mark.
std::pair<std::string_view, std::string_view> element_of(char c) {
  switch (c) {
  case Mark::table:
    return {"table", ""};
  case Mark::row:
    return {"tr", ""};
  case Mark::head:
    return {"th", ""};
  case Mark::number_head:
    return {"th", "number"};
  case Mark::sentence_head:
    return {"th", "sentence"};
  case Mark::cell:
    return {"td", ""};
  case Mark::number:
    return {"td", "number"};
  case Mark::sentence:
    return {"td", "sentence"};
  case Mark::title:
    return {"h3", ""};
  case Mark::lines:
    return {"pre", ""};
  default: {
    constexpr std::array<std::string_view, 6> k_tones{"",     "strong", "dim",
                                                      "good", "bad",    "warning"};
    const int tone = c - Mark::tone;
    return tone > 0 && tone < 6
               ? std::pair{std::string_view("span"), k_tones[static_cast<std::size_t>(tone)]}
               : std::pair{std::string_view(), std::string_view()};
  }
  }
}

class Converter {
public:
  void put(char c) {
    const auto [tag, look] = element_of(c);
    if (!tag.empty()) {
      begin(tag, look);
    } else if (c == Mark::end) {
      if (!m_open.empty() && m_open.back() != "p") {
        end();
      }
    } else if (c == '\n' && !in("pre")) {
      end_paragraph();
    } else {
      if (m_open.empty() && c != ' ') {
        begin("p", "");
      }
      if (!m_open.empty()) {
        m_html += reference(c);
        m_html += c == '_' && in("table") ? "<wbr>" : ""; // a long name may break there
      }
    }
  }
  std::string finish() {
    while (!m_open.empty()) {
      end();
    }
    return std::move(m_html);
  }

private:
  [[nodiscard]] bool in(std::string_view tag) const {
    return !m_open.empty() && m_open.front() == tag;
  }
  void begin(std::string_view tag, std::string_view look) {
    if (tag != "span" && in("p")) {
      end_paragraph();
    } else if (tag == "span" && m_open.empty()) {
      begin("p", "");
    }
    if (tag == "table") {
      m_html += "<div class=\"scroll\">";
      m_table = m_html.size();
    } else if (tag == "tr") {
      m_cells = 0;
    } else if (tag == "th" || tag == "td") {
      ++m_cells;
    }
    m_html += look.empty() ? fmt::format("<{}>", tag) : fmt::format("<{} class=\"{}\">", tag, look);
    m_open.push_back(tag);
  }
  void end() {
    if (m_open.back() == "table") { // the template's grid needs to know
      m_html.insert(m_table + std::string_view("<table").size(),
                    fmt::format(" style=\"--columns:{}\"", m_cells));
    }
    m_html += fmt::format("</{}>", m_open.back());
    m_html += m_open.back() == "table" ? "</div>\n" : m_open.size() == 1 ? "\n" : "";
    m_open.pop_back();
  }
  void end_paragraph() {
    while (in("p")) {
      end();
    }
  }

  std::string m_html;
  std::vector<std::string_view> m_open; ///< outermost first
  std::size_t m_table = 0;              ///< where the last one begins in m_html
  std::size_t m_cells = 0;              ///< of its last row, as long as the others
};

} // namespace

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : printable(text)) {
    out += reference(c);
  }
  return out;
}

std::string html_of(std::string_view text) {
  Converter converter;
  for (const char c : text) {
    converter.put(c);
  }
  return converter.finish();
}

std::string page_of(const Head& head, const std::vector<Section>& sections) {
  std::string links, body;
  std::size_t number = 0;
  for (const Section& section : sections) {
    if (section.html.empty()) {
      continue;
    }
    const std::string title = escaped(section.title);
    ++number;
    links += fmt::format("<a href=\"#s{}\">{}</a>\n", number, title);
    body += fmt::format("<section id=\"s{}\">\n<h2>{}</h2>\n{}</section>\n", number, title,
                        section.html);
  }
  return fmt::format(k_page_template, fmt::arg("title", escaped(head.title)),
                     fmt::arg("style", k_page_style), fmt::arg("subtitle", escaped(head.subtitle)),
                     fmt::arg("tone", head.tone), fmt::arg("verdict", head.verdict),
                     fmt::arg("links", links), fmt::arg("sections", body),
                     fmt::arg("version", k_version));
}

} // namespace reckon
