// SPDX-License-Identifier: Apache-2.0
#include "solve.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/json.hpp"
#include "core/units.hpp"
#include "documents/measured_csv.hpp"
#include "equations/links.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

using namespace solve_command;

namespace {

BandwidthMatrix read_matrix(const std::string& path) {
  const std::string text = read_file(path);
  if (text.starts_with('{')) {
    fail(ErrorKind::input,
         fmt::format("{}: a JSON document, not a matrix in CSV; `reckon show --csv` writes the "
                     "rates of a profile, from which a header line from,NAME,NAME... and one line "
                     "for each name can be made",
                     path));
  }
  return matrix_from_csv(text, path);
}

std::vector<std::string> parts_of(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (std::size_t start = 0; start <= text.size();) {
    const std::size_t end = std::min(text.find(separator, start), text.size());
    parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

std::size_t index_of(const BandwidthMatrix& matrix, const std::string& name, const char* flag) {
  const auto found = std::ranges::find(matrix.names, name);
  if (found == matrix.names.end()) {
    fail(ErrorKind::usage, fmt::format("{}: the matrix has no '{}'; it has {}", flag, name,
                                       fmt::join(matrix.names, ", ")));
  }
  return static_cast<std::size_t>(found - matrix.names.begin());
}

// ---------------------------------------------------------------- locality

struct LocalityOptions {
  std::string matrix, groups, tolerance = "5%";
  bool json = false;
};

const char* name_of(Locality locality) {
  switch (locality) {
  case Locality::local:
    return "local";
  case Locality::none:
    return "none";
  case Locality::anti_local:
    return "anti-local";
  }
  return "?";
}

std::vector<std::size_t> groups_of(const BandwidthMatrix& matrix, const std::string& text) {
  constexpr std::size_t k_nowhere = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> group_of(matrix.names.size(), k_nowhere);
  const std::vector<std::string> groups = parts_of(text, '/');
  for (std::size_t group = 0; group < groups.size(); ++group) {
    for (const std::string& name : parts_of(groups[group], ',')) {
      std::size_t& of = group_of[index_of(matrix, name, "--groups")];
      if (of != k_nowhere) {
        fail(ErrorKind::usage,
             fmt::format("--groups: '{}' stands twice; it is below one switch", name));
      }
      of = group;
    }
  }
  const auto missing = std::ranges::find(group_of, k_nowhere);
  if (missing != group_of.end()) {
    fail(ErrorKind::usage,
         fmt::format("--groups: '{}' is in none; add it, alone if need be",
                     matrix.names[static_cast<std::size_t>(missing - group_of.begin())]));
  }
  return group_of;
}

int run_locality(const LocalityOptions& options) {
  const BandwidthMatrix matrix = read_matrix(options.matrix);
  const LocalityReport report =
      classify_locality(matrix.bytes_per_s, groups_of(matrix, options.groups),
                        parse_fraction(options.tolerance, "--tolerance"));
  if (options.json) {
    Json out;
    out["locality"] = name_of(report.machine);
    out["local_bytes_per_second"] = report.local_bytes_per_s;
    out["remote_bytes_per_second"] = report.remote_bytes_per_s;
    out["remote_over_local"] = report.remote_bytes_per_s / report.local_bytes_per_s;
    out["endpoints"] = Json::object();
    for (std::size_t i = 0; i < matrix.names.size(); ++i) {
      out["endpoints"][matrix.names[i]] =
          report.endpoints[i] ? Json(name_of(*report.endpoints[i])) : Json(nullptr);
    }
    print(canonical(out));
    return k_exit_ok;
  }
  std::string text = fmt::format(
      "{}: local {}, remote {} (medians), {:.4g} x (36)\n\n{:<16} {}\n", name_of(report.machine),
      rate_text(report.local_bytes_per_s), rate_text(report.remote_bytes_per_s),
      report.remote_bytes_per_s / report.local_bytes_per_s, "endpoint", "by its fastest links");
  for (std::size_t i = 0; i < matrix.names.size(); ++i) {
    text += fmt::format("{:<16} {}\n", matrix.names[i],
                        report.endpoints[i] ? name_of(*report.endpoints[i]) : "-");
  }
  print(text);
  return k_exit_ok;
}

// ---------------------------------------------------------------- ring

struct RingOptions {
  std::string matrix, order;
  bool json = false;
};

std::vector<std::string> names_of(const BandwidthMatrix& matrix, const RingUse& use) {
  std::vector<std::string> names;
  for (const std::size_t index : use.order) {
    names.push_back(matrix.names[index]);
  }
  return names;
}

Json ring_json(const BandwidthMatrix& matrix, const std::optional<RingUse>& use) {
  if (!use) {
    return nullptr;
  }
  return {{"order", names_of(matrix, *use)},
          {"bytes_per_second", use->bytes_per_s},
          {"link_utilisation", use->link_utilisation},
          {"port_utilisation", use->port_utilisation}};
}

int run_ring(const RingOptions& options) {
  const BandwidthMatrix matrix = read_matrix(options.matrix);
  std::vector<std::size_t> order;
  if (options.order.empty()) {
    order.resize(matrix.names.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
  } else {
    for (const std::string& name : parts_of(options.order, ',')) {
      order.push_back(index_of(matrix, name, "--order"));
    }
    std::vector<std::size_t> sorted = order;
    std::ranges::sort(sorted);
    if (order.size() != matrix.names.size() || std::ranges::adjacent_find(sorted) != sorted.end()) {
      fail(ErrorKind::usage, fmt::format("--order {}: must have each of {} once", options.order,
                                         fmt::join(matrix.names, ", ")));
    }
  }
  const auto given = ring_use(matrix.bytes_per_s, order);
  const bool all = matrix.names.size() <= k_most_ring_endpoints;
  const RingExtremes extremes = all ? all_rings(matrix.bytes_per_s) : RingExtremes{};
  if (options.json) {
    Json out;
    out["given"] = ring_json(matrix, given);
    out["best"] = ring_json(matrix, extremes.best);
    out["worst"] = ring_json(matrix, extremes.worst);
    out["rings"] = all ? Json(extremes.rings) : Json(nullptr);
    out["orders"] = all ? Json(extremes.orders) : Json(nullptr);
    print(canonical(out));
    return k_exit_ok;
  }
  std::string text = fmt::format("{:<8} {:>12} {:>10} {:>10}  {}\n", "ring", "slowest", "of links",
                                 "of ports", "order");
  const auto row = [&](const char* name, const std::optional<RingUse>& use) {
    if (!use) {
      text += fmt::format("{:<8} {:>12}\n", name, "none");
      return;
    }
    text += fmt::format("{:<8} {:>12} {:>8.1f} % {:>8.1f} %  {}\n", name,
                        rate_text(use->bytes_per_s), 100 * use->link_utilisation,
                        100 * use->port_utilisation, fmt::join(names_of(matrix, *use), " "));
  };
  row("given", given);
  if (all) {
    row("best", extremes.best);
    row("worst", extremes.worst);
    text += fmt::format("\n{} of {} have all their links (35)\n", counted(extremes.rings, "ring"),
                        counted(extremes.orders, "order"));
  } else {
    text += fmt::format("\n{} endpoints have too many orders to try all; at most {} (35)\n",
                        matrix.names.size(), k_most_ring_endpoints);
  }
  print(text);
  return k_exit_ok;
}

// ---------------------------------------------------------------- oversubscription

struct OversubscriptionOptions {
  std::int64_t gpus = 0, gpu_lanes = 16, processor_lanes = 0;
  bool json = false;
};

int run_oversubscription(const OversubscriptionOptions& options) {
  const std::uint64_t gpus = count_of(options.gpus, "--gpus");
  const std::uint64_t lanes = count_of(options.gpu_lanes, "--gpu-lanes");
  const std::uint64_t processor = count_of(options.processor_lanes, "--cpu-lanes");
  const double ratio = oversubscription(gpus, lanes, processor);
  if (options.json) {
    Json out;
    out["oversubscription"] = ratio;
    out["gpu_lanes"] = gpus * lanes;
    out["cpu_lanes"] = processor;
    print(canonical(out));
    return k_exit_ok;
  }
  print(fmt::format("{} lanes of {} at {} of the processors: {:.4g} x (34)\n", gpus * lanes,
                    counted(gpus, "GPU", "GPUs"), processor, ratio));
  return k_exit_ok;
}

} // namespace

Command add_solve_locality(CLI::App& solve) {
  auto options = std::make_shared<LocalityOptions>();
  CLI::App* locality = solve.add_subcommand(
      "locality", "Whether copies below one switch are faster than others, or slower (COARSE)");
  locality
      ->add_option("--matrix", options->matrix,
                   "CSV: a header line from,NAME,NAME..., one line for each name; bytes per second")
      ->required();
  locality
      ->add_option("--groups", options->groups,
                   "What is below one switch: gpu0,gpu1/gpu2,gpu3 are two switches")
      ->required();
  locality->add_option("--tolerance", options->tolerance, "What counts as no difference")
      ->capture_default_str();
  locality->add_flag("--json", options->json, "One JSON object on standard output");
  locality->footer("Equations: docs/equations.md.");
  return [options] { return run_locality(*options); };
}

Command add_solve_ring(CLI::App& solve) {
  auto options = std::make_shared<RingOptions>();
  CLI::App* ring =
      solve.add_subcommand("ring", "How much of a machine's links a ring uses, and which ring is "
                                   "the best");
  ring->add_option("--matrix", options->matrix,
                   "CSV: a header line from,NAME,NAME..., one line for each name; bytes per second")
      ->required();
  ring->add_option("--order", options->order, "Names with commas; default: as in the header line");
  ring->add_flag("--json", options->json, "One JSON object on standard output");
  ring->footer("Equations: docs/equations.md. With --json, a ring that lacks a link is null.");
  return [options] { return run_ring(*options); };
}

Command add_solve_oversubscription(CLI::App& solve) {
  auto options = std::make_shared<OversubscriptionOptions>();
  CLI::App* over = solve.add_subcommand("oversubscription",
                                        "How many lanes GPUs have for each lane of the processors");
  over->add_option("--gpus", options->gpus, "GPUs of the machine")->required();
  over->add_option("--gpu-lanes", options->gpu_lanes, "Of each")->capture_default_str();
  over->add_option("--cpu-lanes", options->processor_lanes, "Of all processors")->required();
  over->add_flag("--json", options->json, "One JSON object on standard output");
  return [options] { return run_oversubscription(*options); };
}

} // namespace reckon
