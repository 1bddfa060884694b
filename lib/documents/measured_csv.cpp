// SPDX-License-Identifier: Apache-2.0
#include "documents/measured_csv.hpp"

#include "core/csv.hpp"
#include "core/error.hpp"
#include "core/json_fwd.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace reckon {

std::vector<CurvePoint> curve_from_csv(std::string_view text, const std::string& file,
                                       std::string_view column) {
  CsvReader reader(text, file);
  const std::vector<std::string_view> names{"bytes", column};
  const auto columns = reader.columns(names, fmt::format("the columns bytes and {}", column));
  std::vector<CurvePoint> points;
  if (columns) {
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (!(*columns)[i]) {
        reader.fail(fmt::format("the header line has no column \"{}\"; add it", names[i]));
      }
    }
    while (const auto fields = reader.next()) {
      const std::string& size = (*fields)[*(*columns)[0]];
      const std::string& value = (*fields)[*(*columns)[1]];
      const auto bytes = finite_number(size);
      if (!bytes || *bytes < 0 || *bytes > static_cast<double>(k_max_count) ||
          std::floor(*bytes) != *bytes) {
        reader.fail(fmt::format("bytes is \"{}\"; must be a whole number from 0 to 2^53", size));
      }
      const auto number = finite_number(value);
      if (!number || *number <= 0) {
        reader.fail(fmt::format("{} is \"{}\"; must be a number above 0", column, value));
      }
      if (!points.empty() && *bytes == points.back().bytes) {
        reader.fail(fmt::format("{} bytes occur twice; keep one line a size, as the median of its "
                                "times",
                                *bytes));
      }
      if (!points.empty() && *bytes < points.back().bytes) {
        reader.fail(fmt::format("{} bytes stand after {}; sort the lines by bytes", *bytes,
                                points.back().bytes));
      }
      points.push_back({*bytes, *number});
    }
  }
  if (points.empty()) {
    fail(ErrorKind::input,
         fmt::format("{}: has no samples; write a header line \"bytes,{}\" and one line a size",
                     file, column));
  }
  return points;
}

BandwidthMatrix matrix_from_csv(std::string_view text, const std::string& file) {
  CsvReader reader(text, file);
  const auto titles = reader.next();
  if (!titles) {
    fail(ErrorKind::input,
         fmt::format("{}: is empty; write a header line \"from,NAME,NAME...\" and "
                     "one line for each name",
                     file));
  }
  if (titles->front() != "from" || titles->size() < 3) {
    reader.fail("the header line must be \"from\" and the names of at least two endpoints");
  }
  BandwidthMatrix matrix;
  matrix.names.assign(titles->begin() + 1, titles->end());
  const std::size_t count = matrix.names.size();
  for (auto name = matrix.names.begin(); name != matrix.names.end(); ++name) {
    if (name->empty()) {
      reader.fail("an endpoint in the header line has no name; add it");
    }
    if (std::find(matrix.names.begin(), name, *name) != name) {
      reader.fail(fmt::format("the header line names \"{}\" twice; rename or remove one", *name));
    }
  }
  matrix.bytes_per_s.resize(count);
  while (const auto fields = reader.next()) {
    const auto name = std::ranges::find(matrix.names, fields->front());
    if (name == matrix.names.end()) {
      reader.fail(fmt::format("\"{}\" is not in the header line; add a column for it or remove the "
                              "line",
                              fields->front()));
    }
    const auto from = static_cast<std::size_t>(name - matrix.names.begin());
    std::vector<std::optional<double>>& row = matrix.bytes_per_s[from];
    if (!row.empty()) {
      reader.fail(fmt::format("\"{}\" has a second line; remove one", *name));
    }
    row.resize(count);
    for (std::size_t to = 0; to < count; ++to) {
      const std::string& field = (*fields)[to + 1];
      if (to == from || field.empty()) {
        continue;
      }
      row[to] = finite_number(field);
      if (!row[to] || *row[to] <= 0) {
        reader.fail(fmt::format("from {} to {} is \"{}\"; must be a number of bytes per second "
                                "above 0, or empty where there is no link",
                                *name, matrix.names[to], field));
      }
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    if (matrix.bytes_per_s[i].empty()) {
      fail(ErrorKind::input,
           one_line(fmt::format("{}: has no line for \"{}\"; add it", file, matrix.names[i])));
    }
  }
  return matrix;
}

} // namespace reckon
