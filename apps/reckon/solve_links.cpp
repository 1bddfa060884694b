// SPDX-License-Identifier: Apache-2.0
#include "solve.hpp"

#include "core/file.hpp"
#include "core/split.hpp"
#include "documents/measured_csv.hpp"
#include "equations/links.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

/// COARSE: what the links of one machine can carry.
namespace reckon::solve {
namespace {

constexpr std::array k_locality_names{"local", "none", "anti-local"};

BandwidthMatrix read_matrix(const Given& given) {
  const std::string& path = given.text("--matrix");
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

std::size_t index_of(const BandwidthMatrix& matrix, const std::string& name, const char* flag) {
  const auto found = std::ranges::find(matrix.names, name);
  refuse_if(found == matrix.names.end(), "{}: the matrix has no '{}'; it has {}", flag, name,
            fmt::join(matrix.names, ", "));
  return static_cast<std::size_t>(found - matrix.names.begin());
}

// ---------------------------------------------------------------- locality

std::vector<std::size_t> groups_of(const BandwidthMatrix& matrix, const std::string& text) {
  constexpr std::size_t k_nowhere = std::numeric_limits<std::size_t>::max();
  std::vector<std::size_t> group_of(matrix.names.size(), k_nowhere);
  const std::vector<std::string> groups = reckon::split(text, "/");
  for (std::size_t group = 0; group < groups.size(); ++group) {
    for (const std::string& name : reckon::split(groups[group], ",")) {
      std::size_t& of = group_of[index_of(matrix, name, "--groups")];
      refuse_if(of != k_nowhere, "--groups: '{}' stands twice; it is below one switch", name);
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

Answer answer_locality(const Given& given) {
  const BandwidthMatrix matrix = read_matrix(given);
  const double tolerance = given.number("--threshold");
  const LocalityReport report =
      classify_locality(matrix.bytes_per_s, groups_of(matrix, given.text("--groups")), tolerance);
  const double ratio = report.remote_bytes_per_s / report.local_bytes_per_s;
  Json endpoints = Json::object();
  Lines lines("{:<16} {}");
  lines.append(fmt::format("{}: local {}, remote {} (medians), {:.4g} x (36)\n\n",
                           named(k_locality_names, report.machine),
                           rate_text(report.local_bytes_per_s),
                           rate_text(report.remote_bytes_per_s), ratio));
  lines("endpoint", "by its fastest links");
  for (std::size_t i = 0; i < matrix.names.size(); ++i) {
    const auto& of = report.endpoints[i];
    endpoints[matrix.names[i]] = of ? Json(named(k_locality_names, *of)) : Json(nullptr);
    lines(matrix.names[i], of ? named(k_locality_names, *of) : "-");
  }
  return {{{"locality", named(k_locality_names, report.machine)},
           {"local_bytes_per_second", report.local_bytes_per_s},
           {"remote_bytes_per_second", report.remote_bytes_per_s},
           {"remote_over_local", ratio},
           {"endpoints", endpoints}},
          lines.text()};
}

// ---------------------------------------------------------------- ring

/// As --order has it, else as the matrix.
std::vector<std::size_t> order_of(const BandwidthMatrix& matrix, const Given& given) {
  std::vector<std::size_t> order(matrix.names.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (!given.has("--ring")) {
    return order;
  }
  const std::vector<std::size_t> all = order;
  order.clear();
  for (const std::string& name : reckon::split(given.text("--ring"), ",")) {
    order.push_back(index_of(matrix, name, "--ring"));
  }
  refuse_if(!std::ranges::is_permutation(order, all), "--ring {}: must have each of {} once",
            given.text("--ring"), fmt::join(matrix.names, ", "));
  return order;
}

Answer answer_ring(const Given& given) {
  const BandwidthMatrix matrix = read_matrix(given);
  const std::size_t endpoints = matrix.names.size();
  const std::vector<std::size_t> order = order_of(matrix, given);
  Answer answer;
  Lines lines("{:<8} {:>12} {:>10} {:>10}  {}");
  lines("ring", "slowest", "of links", "of ports", "order");
  const auto row = [&](const char* name, const std::optional<RingUse>& use) {
    answer.json[name] = nullptr;
    if (!use) {
      lines.append(fmt::format("{:<8} {:>12}\n", name, "none"));
      return;
    }
    std::vector<std::string> names;
    for (const std::size_t index : use->order) {
      names.push_back(matrix.names[index]);
    }
    answer.json[name] = {{"order", names},
                         {"bytes_per_second", use->bytes_per_s},
                         {"link_utilisation", use->link_utilisation},
                         {"port_utilisation", use->port_utilisation}};
    lines(name, rate_text(use->bytes_per_s), fmt::format("{:.1f} %", 100 * use->link_utilisation),
          fmt::format("{:.1f} %", 100 * use->port_utilisation), fmt::join(names, " "));
  };
  row("given", ring_use(matrix.bytes_per_s, order));
  if (endpoints <= k_most_ring_endpoints) {
    const RingExtremes extremes = all_rings(matrix.bytes_per_s);
    row("best", extremes.best);
    row("worst", extremes.worst);
    answer.json["rings"] = extremes.rings;
    answer.json["orders"] = extremes.orders;
    lines.append(fmt::format("\n{} of {} have all their links (35)\n",
                             counted(extremes.rings, "ring"), counted(extremes.orders, "order")));
  } else {
    for (const char* const key : {"best", "worst", "rings", "orders"}) {
      answer.json[key] = nullptr;
    }
    lines.append(fmt::format("\n{} endpoints have too many orders to try all; at most {} (35)\n",
                             endpoints, k_most_ring_endpoints));
  }
  answer.text = lines.text();
  return answer;
}

// ---------------------------------------------------------------- oversubscription

Answer answer_oversubscription(const Given& given) {
  const std::uint64_t gpus = given.count("--gpus");
  const std::uint64_t lanes = given.count("--gpu-lanes");
  const std::uint64_t processor = given.count("--cpu-lanes");
  const double ratio = reckon::oversubscription(gpus, lanes, processor);
  return {{{"oversubscription", ratio}, {"gpu_lanes", gpus * lanes}, {"cpu_lanes", processor}},
          fmt::format("{} lanes of {} at {} of the processors: {:.4g} x (34)\n", gpus * lanes,
                      counted(gpus, "GPU", "GPUs"), processor, ratio)};
}

Input matrix_input() {
  return required("--matrix", Unit::text,
                  "CSV: a header line from,NAME,NAME..., one line for each name; bytes per second");
}

} // namespace

Calculator locality() {
  return {"locality",
          "Whether copies below one switch are faster than others, or slower (COARSE)",
          "--matrix matrix.csv --groups gpu0,gpu1/gpu2,gpu3",
          {matrix_input(),
           required("--groups", Unit::text,
                    "What is below one switch: gpu0,gpu1/gpu2,gpu3 are two switches"),
           {"--threshold", Unit::fraction, "Smallest difference that counts: of bandwidths", "5%"}},
          answer_locality,
          "Equation 36 of docs/equations.md.",
          {{"--tolerance", "--threshold"}}};
}

Calculator ring() {
  return {
      "ring",
      "How much of a machine's links a ring uses, and which ring is the best",
      "--matrix matrix.csv",
      {matrix_input(),
       {"--ring", Unit::text, "Names in its order, with commas; default: as in the header line"}},
      answer_ring,
      "Equation 35 of docs/equations.md. With --json, a ring that lacks a link is null, and orders "
      "is "
      "above\nnine endpoints.",
      {{"--order", "--ring"}}};
}

Calculator oversubscription() {
  return {"oversubscription",
          "How many lanes GPUs have for each lane of the processors",
          "--gpus 8 --cpu-lanes 80",
          {required("--gpus", Unit::count, "GPUs of the machine"),
           {"--gpu-lanes", Unit::count, "Of each", "16"},
           required("--cpu-lanes", Unit::count, "Of all processors")},
          answer_oversubscription,
          "Equation 34 of docs/equations.md."};
}

} // namespace reckon::solve
