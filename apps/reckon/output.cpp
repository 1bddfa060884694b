// SPDX-License-Identifier: Apache-2.0
#include "output.hpp"

#include "core/error.hpp"
#include "core/file.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <system_error>

namespace reckon {

void refuse_overwriting(const std::string& output, const std::vector<std::string>& inputs,
                        const std::string& flag) {
  for (const std::string& input : inputs) {
    std::error_code error;
    if (output != "-" && std::filesystem::equivalent(output, input, error) && !error) {
      fail(ErrorKind::usage,
           fmt::format("{} {}: is also an input; give another name", flag, output));
    }
  }
}

void hand_out(const std::string& document, const std::string& output, bool json,
              const std::function<std::string()>& table) {
  if (!output.empty()) {
    write_file(output, document);
  }
  if (output != "-") {
    write_file("-", json ? document : table());
  }
}

} // namespace reckon
