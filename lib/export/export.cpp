// SPDX-License-Identifier: Apache-2.0
#include "export/export.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace reckon {
namespace {

constexpr std::array<std::pair<ExportFormat, std::string_view>, 6> k_formats{
    {{ExportFormat::goal, "goal"},
     {ExportFormat::msccl, "msccl"},
     {ExportFormat::simgrid, "simgrid"},
     {ExportFormat::astra_network, "astra-network"},
     {ExportFormat::nccl_tuner, "nccl-tuner"},
     {ExportFormat::trace, "trace"}}};

} // namespace

std::string_view name_of(ExportFormat format) {
  return std::find_if(k_formats.begin(), k_formats.end(),
                      [&](const auto& known) { return known.first == format; })
      ->second;
}

std::optional<ExportFormat> export_format_named(std::string_view name) {
  const auto at = std::find_if(k_formats.begin(), k_formats.end(),
                               [&](const auto& known) { return known.second == name; });
  return at == k_formats.end() ? std::nullopt : std::optional(at->first);
}

const std::vector<std::string>& export_format_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const auto& [format, name] : k_formats) {
      all.emplace_back(name);
    }
    return all;
  }();
  return names;
}

bool needs_network(ExportFormat format) {
  return format == ExportFormat::simgrid || format == ExportFormat::astra_network;
}

} // namespace reckon
