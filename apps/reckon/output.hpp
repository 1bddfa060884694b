// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// Throws Error{usage} when writing `output` would replace one of its own inputs, or a file that is
/// no document of this kind: "plan", "report", "profile" or "workload". An empty file and a device
/// may always be written; so may "-" and "", no output.
void refuse_overwriting(const std::string& output, const std::vector<std::string>& inputs,
                        std::string_view kind, std::string_view flag = "--output");

/// The same for a text for other programs: the existing file must begin with the same word as
/// `like`, a text of that kind.
void refuse_overwriting_text(const std::string& output, const std::vector<std::string>& inputs,
                             std::string_view kind, std::string_view like,
                             std::string_view flag = "--output");

/// Writes a document's text to the file `output`, if given, and prints the result of `table`, or
/// with `json` the document. "-" as the file is standard output, which then gets the document
/// alone.
void hand_out(const std::string& document, const std::string& output, bool json,
              const std::function<std::string()>& table);

} // namespace reckon
