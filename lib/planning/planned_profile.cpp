// SPDX-License-Identifier: Apache-2.0
#include "planning/planned_profile.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/log.hpp"
#include "documents/document.hpp"
#include "documents/safetensors.hpp"
#include "present/ranges.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

namespace fs = std::filesystem;

namespace reckon {
namespace {

PlannedProfile read_linked(const std::string& path_or_name) {
  PlannedProfile read{read_profile(path_or_name), {}, path_or_name};
  read.link = link_to(read.profile.name, canonical_text(read.profile));
  return read;
}

/// The file that the link names, from here or from the plan's folder, the shipped documents of that
/// name, then the files beside the plan.
std::vector<std::string> places_of(const DocumentLink& link, const std::string& plan_file) {
  std::vector<std::string> places;
  const fs::path folder = fs::path(plan_file).parent_path();
  if (!link.file.empty()) {
    places = {link.file, (folder / link.file).string()};
  }
  places.push_back(link.name);
  const auto said = static_cast<std::ptrdiff_t>(places.size());
  for (const std::string& name : names_in(folder.empty() ? "." : folder.string())) {
    const fs::path path = folder / name;
    std::error_code unknown;
    if (!fs::is_regular_file(path, unknown)) { // opening a pipe may wait for ever
      continue;
    }
    if (path.extension() == ".json" || path.extension() == ".csv" ||
        is_safetensors(path.string())) {
      places.push_back(path.string().find('/') == std::string::npos ? "./" + path.string()
                                                                    : path.string());
    }
  }
  std::sort(places.begin() + said, places.end());
  return places;
}

} // namespace

std::optional<PlannedProfile> find_profile(const DocumentLink& link, const std::string& plan_file) {
  for (const std::string& place : places_of(link, plan_file)) {
    try {
      if (PlannedProfile read = read_linked(place); read.link.digest == link.digest) {
        return read;
      }
    } catch (const Error&) { // not a profile
    }
  }
  return std::nullopt;
}

std::optional<PlannedWorkload> find_workload(const DocumentLink& link,
                                             const std::string& plan_file) {
  for (const std::string& place : places_of(link, plan_file)) {
    try {
      Workload workload = read_workload(place);
      if (link_to(workload.name, canonical_text(workload)).digest == link.digest) {
        return PlannedWorkload{std::move(workload), place};
      }
    } catch (const Error&) { // not a workload
    }
  }
  return std::nullopt;
}

PlannedProfile planned_profile(const Plan& plan, const std::string& plan_file,
                               const std::string& asked) {
  if (!asked.empty()) {
    PlannedProfile read = read_linked(asked);
    if (read.link.digest != plan.profile.digest) {
      log(LogLevel::warn, "the links are those of '{}' ({}); {} was made from '{}' ({})",
          read.link.name, short_digest(read.link.digest), plan_file, plan.profile.name,
          short_digest(plan.profile.digest));
    }
    return read;
  }
  if (std::optional<PlannedProfile> found = find_profile(plan.profile, plan_file)) {
    return *std::move(found);
  }
  fail(
      ErrorKind::usage,
      fmt::format(
          "{}neither a shipped profile nor a file beside {} is '{}' ({}), which it was made "
          "from; give the profile with --profile",
          plan.profile.file.empty() ? "" : plan.profile.file + " is not there or has changed, and ",
          plan_file, plan.profile.name, short_digest(plan.profile.digest)));
}

} // namespace reckon
