// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "command_line.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// The command line of `reckon plan`, as given.
struct PlanArguments {
  std::string profile, workload, roles, output;
  std::string workers, servers, lanes; // as texts, so that --set and --sweep go the same way
  std::string strategy = "auto", transport, part_bytes, window, cutting = "fused";
  std::string optimizer = "none", update = "auto", async_steps = "4";
  std::string reduction = "sum", gradient_bound = "1";
  bool async = false;
  std::string port_bandwidth, server_port_bandwidth;
  std::string forward, backward, order = "auto", contention, cores = "dedicated";
  std::string shape;
  bool zero_compute = false;
  bool inside = false;
  std::string machine, network = "0", service = "0";
  bool gpu_direct = false;
  std::string proxy_bytes = "auto", tolerance = "2%", ring_directions = "auto", queues = "client",
              shards = "auto";
  std::vector<std::string> set;
  std::string sweep;
  bool json = false, explain = false, list = false;
  ColorMode color = ColorMode::automatic;
};

/// Adds the options to `command`; they write into `a`, which must live as long.
void add_plan_options(Arguments& command, PlanArguments& a);

/// Sets an option of `command` as --set and --sweep do. Throws Error{usage} where there is none.
void set_argument(Arguments& command, const std::string& name, const std::string& value);

/// Of "name=value". Throws Error{usage}.
struct Assignment {
  std::string name, value;
};
[[nodiscard]] Assignment split_assignment(const std::string& text, std::string_view flag);

/// A whole number up to a million. Throws Error{usage}, which begins with `what`.
[[nodiscard]] std::uint64_t parse_count(const std::string& text, std::string_view what);

} // namespace reckon
