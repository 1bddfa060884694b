// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

namespace reckon {

/// Throws Error{usage} when writing `output` would replace one of the files it is made from.
void refuse_overwriting(const std::string& output, const std::vector<std::string>& inputs,
                        const std::string& flag = "--output");

/// Writes a document's text to the file `output`, where there is one, and prints what `table`
/// gives, or with `json` the document. "-" as the file is standard output, which then gets the
/// document alone.
void hand_out(const std::string& document, const std::string& output, bool json,
              const std::function<std::string()>& table);

} // namespace reckon
