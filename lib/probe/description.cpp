// SPDX-License-Identifier: Apache-2.0
#include "probe/description.hpp"

#include "core/file.hpp"
#include "core/version.hpp"
#include "discover/smi_matrix.hpp"
#include "discover/topology_file.hpp"
#include "documents/cells.hpp"
#include "kernels/optimizer.hpp"
#include "probe/curve.hpp"
#include "probe/gpu.hpp"
#include "probe/machine_campaigns.hpp"
#include "stats/fit.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

namespace reckon {
namespace {

bool is_curve(const Cell& cell) {
  return cell.has_value() && cell.key.bytes > 0 &&
         (cell.key.test == k_host_memcpy || cell.key.test == k_gpu_copy ||
          cell.key.test.starts_with("fabric_"));
}

FitPoint point_of(const Cell& cell) {
  const double bytes = static_cast<double>(cell.key.bytes);
  const double seconds = cell.unit == "seconds" ? cell.p50 : bytes / cell.p50;
  return {bytes, seconds, cell.spread * seconds};
}

/// The best of the STREAM-like cells at one place.
struct Stream {
  double bytes_per_second = 0; ///< as STREAM counts
  int threads = 0;
  std::string test;
};

Stream best_stream(const std::vector<Cell>& cells, const std::string& from, int threads) {
  Stream best;
  for (const Cell& cell : cells) {
    const bool stream = cell.key.test == k_stream_copy || cell.key.test == k_stream_add;
    if (stream && cell.has_value() && cell.key.from == from &&
        (threads == 0 || cell.key.threads == threads) && cell.p50 > best.bytes_per_second) {
      best = {cell.p50, cell.key.threads, cell.key.test};
    }
  }
  return best;
}

/// Bytes of memory traffic for each byte that the cell counts, without what hardware adds; 0: not a
/// matter of memory traffic.
double traffic_per_byte(const CellKey& key) {
  if (key.test == k_numa_copy) {
    return 2; // read and written
  }
  if (key.test == k_sum_in_place) {
    return 1;
  }
  if (key.test == k_numa_read || key.test == k_numa_write) {
    return 1;
  }
  if (key.test == k_reduce_sum && key.sources > 1) {
    return (key.sources + 1.0) / (key.sources - 1.0); // all operands read, one written
  }
  if (key.test == k_optimizer_step) {
    const auto optimizer = optimizer_named(key.operation);
    return optimizer ? static_cast<double>(bytes_moved_per_element(*optimizer)) / sizeof(float) : 0;
  }
  return 0;
}

} // namespace

MachineGroup machine_group(const Topology& topology, const std::string& id,
                           const std::string& name) {
  MachineGroup machine;
  machine.id = id;
  machine.name = name;
  machine.cores = topology.of_kind(ObjectKind::core).size();
  for (const TopologyObject* node : topology.of_kind(ObjectKind::numa_node)) {
    machine.memory_bytes += node->bytes.value_or(0);
  }
  return machine;
}

void describe_machine(Profile& profile, Topology topology, const Environment& environment) {
  const auto fact = [&](const char* name) {
    const auto found = environment.facts.find(name);
    return found == environment.facts.end() ? std::string() : found->second;
  };
  profile.context.insert(environment.facts.begin(), environment.facts.end());
  profile.machines = {machine_group(topology, "m0", fact("host"))};
  profile.fingerprint = fingerprint(topology, fact("cpu"));
  profile.topology = std::move(topology);
}

void describe_probe(ProbeResult& result, const ProbeRequest& request, Seconds budget,
                    Seconds took) {
  Profile& profile = result.profile;
  profile.source = fmt::format("measured by reckon {}", k_version);
  profile.fits = fits_of(profile.cells);
  std::sort(profile.cells.begin(), profile.cells.end(),
            [](const Cell& a, const Cell& b) { return a.key < b.key; });
  auto& context = profile.context;
  context["budget"] = budget > Seconds(0) ? to_text(budget) : "";
  context["took"] = to_text(took);
  context["seed"] = fmt::format("{}", request.seed);
  context["flags"] = request.flags;
  context["clock"] = "CLOCK_MONOTONIC_RAW";
  context["interrupted"] = result.interrupted ? "yes" : "";
  std::erase_if(context, [](const auto& entry) { return entry.second.empty(); });
  result.broken = static_cast<std::size_t>(
      std::count_if(profile.cells.begin(), profile.cells.end(), [](const Cell& cell) {
        return cell.status == CellStatus::failed || cell.status == CellStatus::timeout ||
               cell.status == CellStatus::mismatch;
      }));
}

std::vector<Fit> fits_of(const std::vector<Cell>& cells) {
  std::map<CellKey, std::map<std::uint64_t, FitPoint>> groups;
  for (const Cell& cell : cells) {
    if (is_curve(cell)) {
      CellKey key = cell.key;
      key.bytes = 0;
      groups[key][cell.key.bytes] = point_of(cell);
    }
  }
  std::vector<Fit> fits;
  for (const auto& [key, by_size] : groups) {
    std::vector<FitPoint> points;
    for (const auto& [bytes, point] : by_size) {
      points.push_back(point);
    }
    const AlphaBetaFit found = fit_alpha_beta(points);
    if (found.segments.empty()) {
      continue;
    }
    Fit fit;
    fit.key = key;
    fit.knee_bytes = knee_bytes(points).value_or(0);
    for (const Segment& s : found.segments) {
      fit.segments.push_back({s.from_bytes, s.to_bytes, s.alpha_seconds,
                              s.bandwidth_bytes_per_second, s.relative_residual});
    }
    fits.push_back(std::move(fit));
  }
  return fits;
}

void add_ceilings(std::vector<Cell>& cells) {
  for (Cell& cell : cells) {
    const double traffic = traffic_per_byte(cell.key);
    if (!cell.has_value() || cell.ceiling || traffic == 0) {
      continue;
    }
    const bool pair = cell.key.test == k_numa_copy || cell.key.test == k_numa_read ||
                      cell.key.test == k_numa_write;
    const std::string machine = cell.key.from.substr(0, cell.key.from.find('/'));
    Stream stream = best_stream(cells, cell.key.from, pair ? 0 : cell.key.threads);
    if (stream.threads == 0 && pair) { // one node: the machine's figure is the node's
      stream = best_stream(cells, machine, 0);
    }
    if (stream.threads > 0) {
      cell.ceiling = Ceiling{fmt::format("memory traffic of {}, {} thread{}", stream.test,
                                         stream.threads, stream.threads == 1 ? "" : "s"),
                             stream.bytes_per_second / traffic};
    }
  }
}

MachineErrors::MachineErrors(const Topology& topology, SystemFiles& files)
    : m_topology(topology), m_files(files) {
  files.put(k_nvml_file, ask_nvml());
  m_first = m_last = count_errors(topology, files);
}

std::string MachineErrors::since_last() {
  const ErrorCounts before = std::exchange(m_last, count_errors(m_topology, m_files));
  return added_errors(before, m_last);
}

std::vector<Setting> MachineErrors::all() const {
  m_files.put(k_nvml_file, ask_nvml());
  return errors_while_measured(m_first, count_errors(m_topology, m_files));
}

void describe_settings(Profile& profile, const Topology& topology, SystemFiles& files,
                       const MachineErrors& errors, const std::string& folder) {
  const std::vector<Setting> counted = errors.all();
  profile.settings = read_settings(topology, files);
  profile.settings.insert(profile.settings.end(), counted.begin(), counted.end());
  if (!folder.empty()) {
    files.keep(folder);
  }
}

bool is_topology_text(std::string_view text) {
  return is_smi_matrix(text);
}

Profile profile_of_topology_file(const std::string& path, const std::string& name) {
  const std::filesystem::path file(path);
  const bool folder = std::filesystem::is_directory(file);
  const SystemFiles files(path);
  RecordedTopology recorded = folder
                                  ? topology_from_text(read_file(path + k_machine_xml),
                                                       path + k_machine_xml, "m0", files.reader())
                                  : read_topology_file(path);
  Profile profile;
  profile.name = name.empty() ? file.stem().string() : name;
  profile.source = fmt::format("not measured: the tree of a machine, out of {} ({})",
                               file.filename().string(), recorded.format);
  profile.context = {{"measured", "nothing: run `reckon probe` on the machine itself"},
                     {"topology_file", file.filename().string()},
                     {"topology_format", recorded.format}};
  if (!recorded.remarks.empty()) {
    // The same file at another place gives the same profile.
    const std::string place = path + ": ";
    for (std::string& remark : recorded.remarks) {
      remark = remark.starts_with(place) ? remark.substr(place.size()) : remark;
    }
    profile.context["topology_remarks"] = fmt::format("{}", fmt::join(recorded.remarks, "; "));
  }
  const TopologyObject& machine = recorded.topology.objects.front();
  profile.machines.push_back(machine_group(recorded.topology, machine.id,
                                           machine.name.empty() ? profile.name : machine.name));
  if (profile.machines.front().cores == 0) {
    profile.context["cores"] = "not in the file";
  }
  profile.topology = std::move(recorded.topology);
  if (folder) {
    profile.settings = read_settings(profile.topology, files);
  }
  return profile;
}

} // namespace reckon
