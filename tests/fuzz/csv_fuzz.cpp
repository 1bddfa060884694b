// SPDX-License-Identifier: Apache-2.0
//
// Any bytes, read as each kind of CSV file: an input error, or what the readers promise.
#include "core/csv.hpp"
#include "core/error.hpp"
#include "documents/measured_csv.hpp"

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace reckon {
namespace {

[[noreturn]] void broken(const char* what) {
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

template <class Read>
void expect_input_error_or(Read read) {
  try {
    read();
  } catch (const Error& e) {
    const std::string_view text(e.what());
    if (e.kind() != ErrorKind::input || !text.starts_with("f.csv")) {
      broken(e.what());
    }
    if (text.find_first_of("\n\x1b") != std::string_view::npos) {
      broken("a message has a control character");
    }
  }
}

void read_all_lines(std::string_view text) {
  CsvReader reader(text, "f.csv");
  std::size_t fields = 0, line = 0;
  while (const auto next = reader.next()) {
    if (next->empty() || (fields != 0 && next->size() != fields) || reader.line() <= line) {
      broken("a line with other fields than the header, or out of order");
    }
    fields = next->size();
    line = reader.line();
    for (const std::string& field : *next) {
      if (const auto number = finite_number(field); number && !std::isfinite(*number)) {
        broken("a number that is not finite");
      }
    }
  }
}

void check_points(const std::vector<CurvePoint>& points) {
  if (points.empty()) {
    broken("a curve without a point");
  }
  double last = -1;
  for (const CurvePoint& point : points) {
    if (!(point.bytes > last) || !(point.seconds > 0) || !std::isfinite(point.seconds)) {
      broken("a curve whose sizes do not ascend, or with a time that is none");
    }
    last = point.bytes;
  }
}

void check_matrix(const BandwidthMatrix& matrix) {
  if (matrix.names.size() < 2 || matrix.bytes_per_s.size() != matrix.names.size()) {
    broken("a matrix of another shape");
  }
  for (std::size_t i = 0; i < matrix.names.size(); ++i) {
    if (matrix.bytes_per_s[i].size() != matrix.names.size() || matrix.bytes_per_s[i][i]) {
      broken("a matrix that is not square, or with a diagonal");
    }
  }
}

} // namespace
} // namespace reckon

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace reckon;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  expect_input_error_or([&] { read_all_lines(text); });
  expect_input_error_or([&] { check_points(curve_from_csv(text, "f.csv")); });
  expect_input_error_or([&] { check_points(curve_from_csv(text, "f.csv", "factor")); });
  expect_input_error_or([&] { check_matrix(matrix_from_csv(text, "f.csv")); });
  return 0;
}
