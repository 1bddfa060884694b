// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "documents/workload.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// A model's parameters as their gradients, from a .safetensors file (of which only the header is
/// read) or a .safetensors.index.json, which names the files beside it that hold the model. These
/// files do not give the order in which gradients are ready: tensors stand in the reverse of the
/// file's order. Whole numbers and the running statistics of batch norms are left out, as they have
/// no gradients. Named after the file.
///
/// `doubts` gets a line for each of these facts, for people. Throws Error{input} with file and JSON
/// pointer.
[[nodiscard]] Workload workload_from_safetensors(const std::string& path,
                                                 std::vector<std::string>& doubts);

/// The same for the beginning of a .safetensors file, its length and header, whatever follows.
[[nodiscard]] Workload workload_from_safetensors_header(std::string_view beginning,
                                                        const std::string& file,
                                                        std::vector<std::string>& doubts);

/// By its name: one of the two.
[[nodiscard]] bool is_safetensors(std::string_view path);

} // namespace reckon
