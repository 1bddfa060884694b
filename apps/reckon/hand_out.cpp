// SPDX-License-Identifier: Apache-2.0
#include "hand_out.hpp"

#include "core/file.hpp"
#include "documents/document.hpp"
#include "present/document_text.hpp"

#include <unistd.h>

namespace reckon {

void hand_out(const Report& report, const std::string& output, bool json, ColorMode color) {
  if (!output.empty()) {
    write_file(output, canonical_text(report));
  }
  if (output == "-") {
    return;
  }
  write_file("-",
             json ? canonical_text(report) : report_table(report, style_for(color, STDOUT_FILENO)));
}

} // namespace reckon
