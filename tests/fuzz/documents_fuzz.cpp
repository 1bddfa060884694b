// SPDX-License-Identifier: Apache-2.0
//
// Any bytes, read as a document, as a CSV file and as the header of a safetensors file: an input
// error or a document, never anything else.
#include "core/error.hpp"
#include "core/json.hpp"
#include "documents/document.hpp"
#include "documents/json.hpp"
#include "documents/safetensors.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {
namespace {

[[noreturn]] void broken(const char* what) {
  std::fprintf(stderr, "broken: %s\n", what);
  std::abort();
}

template <class Read>
void expect_document_or_input_error(Read read) {
  std::string text;
  try {
    text = canonical_text(read());
  } catch (const Error& e) {
    if (e.kind() != ErrorKind::input) {
      broken(e.what());
    }
    if (std::string_view(e.what()).find_first_of("\n\x1b") != std::string_view::npos) {
      broken("a message has a control character");
    }
    return;
  }
  // What was admitted once is admitted again: an Error here ends the program.
  if (canonical_text(document_from_json(parse_json(text, "f"), "f")) != text) {
    broken("a document changes when it is written and read");
  }
}

} // namespace
} // namespace reckon

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  reckon::expect_document_or_input_error(
      [&] { return reckon::document_from_json(reckon::parse_json(text, "f"), "f"); });
  reckon::expect_document_or_input_error([&] { return reckon::workload_from_csv(text, "f.csv"); });
  reckon::expect_document_or_input_error([&] {
    std::vector<std::string> doubts;
    return reckon::workload_from_safetensors_header(text, "f.safetensors", doubts);
  });
  return 0;
}
