// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// Throws Error{usage} when writing `output` would replace one of the files it is made from, or a
/// file that is no document of this kind: "plan", "report", "profile" or "workload". An empty file
/// and what is no file, as a device, may always be written; so may "-" and "", no output.
void refuse_overwriting(const std::string& output, const std::vector<std::string>& inputs,
                        std::string_view kind, std::string_view flag = "--output");

/// The same of a text for other programs: what is there must begin with the same word as `like`, a
/// text of that kind.
void refuse_overwriting_text(const std::string& output, const std::vector<std::string>& inputs,
                             std::string_view kind, std::string_view like,
                             std::string_view flag = "--output");

/// Writes a document's text to the file `output`, where there is one, and prints what `table`
/// gives, or with `json` the document. "-" as the file is standard output, which then gets the
/// document alone.
void hand_out(const std::string& document, const std::string& output, bool json,
              const std::function<std::string()>& table);

} // namespace reckon
