// SPDX-License-Identifier: Apache-2.0
#include "planning/planned_profile.hpp"

#include "core/error.hpp"
#include "core/log.hpp"
#include "documents/document.hpp"
#include "present/ranges.hpp"

#include <fmt/format.h>

namespace reckon {
namespace {

PlannedProfile read_linked(const std::string& path_or_name) {
  PlannedProfile read{read_profile(path_or_name), {}};
  read.link = link_to(read.profile.name, canonical_text(read.profile));
  return read;
}

} // namespace

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
  std::string why;
  try {
    PlannedProfile read = read_linked(plan.profile.name);
    if (read.link.digest == plan.profile.digest) {
      return read;
    }
    why = fmt::format("it is {}, and the plan was made from {}", read.link.digest,
                      plan.profile.digest);
  } catch (const Error& e) {
    why = e.what();
  }
  fail(ErrorKind::usage,
       fmt::format("cannot take the links from '{}', which {} names ({}); give the profile with "
                   "--profile",
                   plan.profile.name, plan_file, why));
}

} // namespace reckon
