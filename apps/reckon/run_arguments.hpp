// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "adapt.hpp"
#include "command_line.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace reckon {

/// The command line of `reckon run`, as given.
struct RunArguments {
  std::string plan, output, transport, tolerance = "15%", budget = "10s", limit = "60s",
                                       peer_limit = "10s";
  std::optional<std::string> without, inject, compute;
  bool shared_cores = false;
  std::string checkpoint, resume, trace;
  std::optional<std::uint64_t> checkpoint_every;
  std::vector<std::string> stragglers;
  AdaptArguments adapt;
  std::optional<std::uint32_t> iterations;
  std::uint32_t warm_up = 2;
  bool json = false, list = false, check_only = false, unchecked = false;
  ColorMode color = ColorMode::automatic;
};

/// Adds the options to `command`; they write into `arguments`, which must live as long.
void add_run_options(Arguments& command, RunArguments& arguments);

} // namespace reckon
