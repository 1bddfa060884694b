// SPDX-License-Identifier: Apache-2.0
#include "core/csv.hpp"

#include "core/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

namespace reckon {
namespace {

constexpr std::string_view k_blank = " \t";

std::string_view trimmed(std::string_view text) {
  const std::size_t from = text.find_first_not_of(k_blank);
  return from == text.npos ? std::string_view()
                           : text.substr(from, text.find_last_not_of(k_blank) - from + 1);
}

} // namespace

CsvReader::CsvReader(std::string_view text, std::string file)
    : m_rest(text), m_file(std::move(file)) {
  constexpr std::string_view k_byte_order_mark = "\xEF\xBB\xBF";
  if (m_rest.starts_with(k_byte_order_mark)) {
    m_rest.remove_prefix(k_byte_order_mark.size());
  }
}

void CsvReader::fail(const std::string& problem) const {
  reckon::fail(ErrorKind::input, one_line(fmt::format("{}:{}: {}", m_file, m_line, problem)));
}

std::optional<std::vector<std::string>> CsvReader::next() {
  std::string_view text;
  do {
    if (m_rest.empty()) {
      return std::nullopt;
    }
    ++m_line;
    const std::size_t end = std::min(m_rest.find('\n'), m_rest.size());
    text = m_rest.substr(0, end);
    m_rest.remove_prefix(std::min(end + 1, m_rest.size()));
    if (text.ends_with('\r')) {
      text.remove_suffix(1);
    }
  } while (trimmed(text).empty());
  std::vector<std::string> fields;
  for (;;) {
    text = text.substr(std::min(text.find_first_not_of(k_blank), text.size()));
    std::string field;
    if (text.starts_with('"')) {
      text.remove_prefix(1);
      for (;;) {
        const std::size_t quote = text.find('"');
        if (quote == text.npos) {
          fail("a quoted field has no closing quote on its line; add it");
        }
        field += text.substr(0, quote);
        text.remove_prefix(quote + 1);
        if (!text.starts_with('"')) {
          break;
        }
        field += '"';
        text.remove_prefix(1);
      }
      const std::size_t comma = std::min(text.find(','), text.size());
      if (!trimmed(text.substr(0, comma)).empty()) {
        fail("there is text after a closing quote; put the whole field in quotes");
      }
      text.remove_prefix(comma);
    } else {
      const std::size_t comma = std::min(text.find(','), text.size());
      field = trimmed(text.substr(0, comma));
      text.remove_prefix(comma);
    }
    fields.push_back(std::move(field));
    if (text.empty()) {
      break;
    }
    text.remove_prefix(1); // the comma
  }
  if (!m_fields) {
    m_fields = fields.size();
  } else if (fields.size() != *m_fields) {
    fail(fmt::format("has {} field{}, the header line names {}", fields.size(),
                     fields.size() == 1 ? "" : "s", *m_fields));
  }
  return fields;
}

std::optional<std::vector<std::optional<std::size_t>>>
CsvReader::columns(const std::vector<std::string_view>& names, std::string_view expected) {
  const auto titles = next();
  if (!titles) {
    return std::nullopt;
  }
  std::vector<std::optional<std::size_t>> columns(names.size());
  for (std::size_t i = 0; i < titles->size(); ++i) {
    const std::string& title = (*titles)[i];
    const auto name = std::ranges::find(names, title);
    if (name == names.end()) {
      fail(fmt::format("the header line names \"{}\"; the first line must name {}", title,
                       expected));
    }
    std::optional<std::size_t>& column = columns[static_cast<std::size_t>(name - names.begin())];
    if (column) {
      fail(fmt::format("the header line names \"{}\" twice; remove one column", title));
    }
    column = i;
  }
  return columns;
}

namespace {

/// With what stands behind it.
std::optional<std::pair<double, std::string_view>> number_and_rest(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc{} || !std::isfinite(value)) {
    return std::nullopt;
  }
  return std::pair(value, text.substr(static_cast<std::size_t>(rest - text.data())));
}

} // namespace

std::optional<double> finite_number(std::string_view field) {
  const auto found = number_and_rest(field);
  return found && found->second.empty() ? std::optional(found->first) : std::nullopt;
}

std::optional<double> leading_number(std::string_view text) {
  const auto found = number_and_rest(text);
  return found ? std::optional(found->first) : std::nullopt;
}

} // namespace reckon
