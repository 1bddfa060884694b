// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "import/import.hpp"
#include "import/text_lines.hpp"

#include <string>
#include <vector>

namespace reckon::import_detail {

/// The two machines whose processes an output is of, the one that starts first: of the command line
/// above it (a launcher's list, or where perftest's client ran, by the prompt or ssh, and its last
/// argument, the server), else of the file's name, as gpu-01_gpu-02.log, also for a server that
/// is called by address. With the names that `options.hosts` has for them. Empty: not said.
[[nodiscard]] std::vector<std::string> hosts_of_pair(const TextLines& lines,
                                                     const ImportOptions& options);

/// The names of servers that outputs of perftest call by address: a machine is known by its ports'
/// addresses (LID or GID), local ones where it is the client and remote ones where it is the
/// server. Warns of addresses that could be other machines of these outputs.
[[nodiscard]] std::map<std::string, std::string>
names_of_addresses(const std::vector<const ToolOutput*>& outputs, const ImportOptions& options);

} // namespace reckon::import_detail
