// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/tested_collective.hpp"
#include "import/import.hpp"

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace reckon::import_detail {

using Collective = TestedCollective;

/// The one of --collective; null when it is not given. Throws Error{usage} for an unknown name.
[[nodiscard]] const Collective* asked_collective(const ImportOptions& options);

/// Adds an element type, as a tool names it, to a cell's key. Documents know fp32, fp16 and bf16;
/// others become part of the test's name. `place`: begins the message of the Error{input} for what
/// is no type.
void name_type(CellKey& key, std::string_view type, const std::string& place);
/// Adds a word to the test's name. Throws as name_type().
void name_word(CellKey& key, std::string_view word, const std::string& place);

/// Throws Error{input} where a rate and the bytes over the time differ by more than `rounding`, all
/// in GB/s. `what`: "algbw".
void check_rate(const std::string& place, std::string_view what, double printed, double expected,
                double rounding);
/// Throws Error{input} where the bus bandwidth is not that of so many ranks.
void check_bus_rate(const std::string& place, const Collective& collective, double ranks,
                    double algbw, double busbw);
/// The least and the most ranks that fit; the least is more where none do.
[[nodiscard]] std::pair<std::uint64_t, std::uint64_t>
ranks_that(const std::function<bool(double ranks)>& fit);

} // namespace reckon::import_detail
