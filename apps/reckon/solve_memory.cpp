// SPDX-License-Identifier: Apache-2.0
#include "solve.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "core/optimizer.hpp"
#include "core/units.hpp"
#include "documents/document.hpp"
#include "equations/memory_devices.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace reckon {

using namespace solve_command;

namespace {

// ---------------------------------------------------------------- memory

struct MemoryOptions {
  std::string gpu_memory, workload, parameters, optimizer = "adam", activations, fixed = "0",
                                                holds = "optimizer";
  bool json = false;
};

DeviceHolds holds_of(const std::string& list) {
  DeviceHolds holds;
  for (std::size_t start = 0; start <= list.size();) {
    const std::size_t comma = std::min(list.find(',', start), list.size());
    const std::string word = list.substr(start, comma - start);
    bool* const held = word == "parameters"  ? &holds.parameters
                       : word == "gradients" ? &holds.gradients
                       : word == "optimizer" ? &holds.optimizer
                                             : nullptr;
    if (held == nullptr) {
      fail(ErrorKind::usage, fmt::format("--devices-hold '{}': must be of parameters, gradients, "
                                         "optimizer, separated by commas",
                                         word));
    }
    *held = true;
    start = comma + 1;
  }
  return holds;
}

int run_memory(const MemoryOptions& options) {
  const auto optimizer = optimizer_named(options.optimizer);
  if (!optimizer) {
    fail(ErrorKind::usage, fmt::format("--optimizer '{}': must be one of sgd, momentum, rmsprop, "
                                       "adam",
                                       options.optimizer));
  }
  if (options.workload.empty() == options.parameters.empty()) {
    fail(ErrorKind::usage,
         "give the parameters' size by --workload or by --parameters, one of them");
  }
  TrainingMemory memory;
  memory.gpu_bytes = parse_bytes(options.gpu_memory, "--gpu-memory").as_double();
  double elements = 0;
  if (!options.workload.empty()) {
    for (const Tensor& tensor : read_workload(options.workload).tensors) {
      memory.parameters_bytes += static_cast<double>(tensor.bytes());
      elements += static_cast<double>(tensor.elements);
    }
  } else {
    memory.parameters_bytes = parse_bytes(options.parameters, "--parameters").as_double();
    elements = memory.parameters_bytes / 4;
  }
  memory.gradients_bytes = memory.parameters_bytes;
  memory.optimizer_bytes = 4 * elements * static_cast<double>(state_arrays(*optimizer));
  memory.fixed_bytes = parse_bytes(options.fixed, "--fixed").as_double();
  memory.sample_bytes = parse_bytes(options.activations, "--activations").as_double();
  if (memory.sample_bytes == 0) {
    fail(ErrorKind::usage, "--activations 0: must be greater than 0, else every batch fits");
  }
  const DeviceHolds holds = holds_of(options.holds);
  const double without = resident_bytes(memory);
  const double with = resident_bytes(memory, holds);
  const std::uint64_t batch = greatest_batch(memory);
  const std::uint64_t batch_with = greatest_batch(memory, holds);
  if (options.json) {
    Json out;
    out["greatest_batch"] = batch;
    out["greatest_batch_with_devices"] = batch_with;
    out["resident_bytes"] = without;
    out["resident_with_devices_bytes"] = with;
    out["device_bytes"] = without - with;
    out["parameters_bytes"] = memory.parameters_bytes;
    out["gradients_bytes"] = memory.gradients_bytes;
    out["optimizer_bytes"] = memory.optimizer_bytes;
    print(canonical(out));
    return k_exit_ok;
  }
  const std::string held = fmt::format("devices hold {}", options.holds);
  const std::size_t width = std::max<std::size_t>(34, held.size());
  std::string text = fmt::format(
      "parameters {}, gradients {}, {} state {}, fixed {}; {} a sample, of {}\n\n{:<{}} {:>12} "
      "{:>12} {:>15}\n",
      bytes_text(memory.parameters_bytes), bytes_text(memory.gradients_bytes), options.optimizer,
      bytes_text(memory.optimizer_bytes), bytes_text(memory.fixed_bytes),
      bytes_text(memory.sample_bytes), bytes_text(memory.gpu_bytes), "", width, "in the GPU",
      "in a device", "greatest batch");
  text += fmt::format("{:<{}} {:>12} {:>12} {:>15}\n", "without memory devices", width,
                      bytes_text(without), "-", batch);
  text += fmt::format("{:<{}} {:>12} {:>12} {:>15}  (37)\n", held, width, bytes_text(with),
                      bytes_text(without - with), batch_with);
  print(text);
  return k_exit_ok;
}

// ---------------------------------------------------------------- dense

struct DenseOptions {
  std::int64_t workers = 0;
  std::optional<std::int64_t> sharers;
  std::string bytes, bandwidth, efficiency, coherence, workload, curve, speedup_curve;
  bool json = false;
};

int run_dense(const DenseOptions& options) {
  const std::uint64_t workers = count_of(options.workers, "--workers");
  const double efficiency = options.efficiency.empty()
                                ? k_cci_efficiency
                                : parse_fraction(options.efficiency, "--efficiency");
  if (efficiency == 0 || efficiency > 1) {
    fail(ErrorKind::usage,
         fmt::format("--efficiency {}: must be above 0 and at most 100 %", options.efficiency));
  }
  double bus_s = 0;
  double cci_s = 0;
  std::string how;
  if (!options.curve.empty()) {
    if (options.workload.empty()) {
      fail(ErrorKind::usage, "--curve needs the sizes of the tensors; give --workload");
    }
    const Workload workload = read_workload(options.workload);
    std::vector<SizeCount> tensors;
    for (const Tensor& tensor : workload.tensors) {
      tensors.push_back({static_cast<double>(tensor.bytes()), 1});
    }
    const SizeCurve bus = read_curve(options.curve);
    bus_s = dense_s(workers, bus, tensors);
    cci_s = options.speedup_curve.empty()
                ? bus_s / efficiency
                : dense_s(workers, cci_curve(bus, read_curve(options.speedup_curve, "speedup")),
                          tensors);
    how = fmt::format("p times the times of {} of {}", counted(tensors.size(), "tensor"),
                      workload.name);
  } else {
    if (options.bytes.empty() == options.workload.empty() || options.bandwidth.empty()) {
      fail(ErrorKind::usage, "give --bytes or --workload, and --bandwidth or --curve");
    }
    const double bytes = options.bytes.empty()
                             ? static_cast<double>(read_workload(options.workload).bytes())
                             : parse_bytes(options.bytes, "--bytes").as_double();
    const double bus = parse_bandwidth(options.bandwidth, "--bandwidth").as_bytes_per_s();
    const double taken = options.coherence.empty()
                             ? 0
                             : parse_bandwidth(options.coherence, "--coherence").as_bytes_per_s();
    const std::uint64_t sharers =
        options.sharers ? count_of(*options.sharers, "--sharers") : workers;
    const double left = coherence_left_bytes_per_s(efficiency * bus, taken, sharers);
    if (left <= 0) {
      fail(ErrorKind::usage,
           fmt::format("--coherence {} for each of {} further devices leaves "
                       "nothing of {}; give less",
                       options.coherence, sharers - 1, rate_text(efficiency * bus)));
    }
    bus_s = dense_s(workers, bytes, bus);
    cci_s = dense_s(workers, bytes, left);
    how = fmt::format("p n / BW, BW {} of the bus, {} over CCI", rate_text(bus), rate_text(left));
  }
  if (options.json) {
    Json out;
    out["bus_seconds"] = bus_s;
    out["cci_seconds"] = cci_s;
    out["cci_over_bus"] = bus_s > 0 ? Json(cci_s / bus_s) : Json(nullptr);
    print(canonical(out));
    return k_exit_ok;
  }
  print(fmt::format("one device for {}: {} (38)\n\nover the bus {:>12}\nover CCI     {:>12}\n",
                    counted(workers, "worker"), how, time_text(bus_s), time_text(cci_s)));
  return k_exit_ok;
}

} // namespace

Command add_solve_memory(CLI::App& solve) {
  auto options = std::make_shared<MemoryOptions>();
  CLI::App* memory = solve.add_subcommand(
      "memory",
      "The greatest batch that fits into a GPU, with and without memory devices (COARSE)");
  memory->add_option("--gpu-memory", options->gpu_memory, "Of one GPU: 16GiB")->required();
  memory->add_option("-m,--workload", options->workload, "Whose parameters are trained");
  memory->add_option("--parameters", options->parameters, "Their size instead, in fp32: 1.34GB");
  memory->add_option("--optimizer", options->optimizer, "sgd, momentum, rmsprop or adam")
      ->capture_default_str();
  memory->add_option("--activations", options->activations, "Of one sample: 3GiB")->required();
  memory->add_option("--fixed", options->fixed, "Whatever the batch is: the framework, workspaces")
      ->capture_default_str();
  memory
      ->add_option("--devices-hold", options->holds,
                   "What memory devices hold: of parameters, gradients, optimizer, with commas")
      ->capture_default_str();
  memory->add_flag("--json", options->json, "One JSON object on standard output");
  memory->footer("Equations: docs/equations.md.");
  return [options] { return run_memory(*options); };
}

Command add_solve_dense(CLI::App& solve) {
  auto options = std::make_shared<DenseOptions>();
  CLI::App* dense = solve.add_subcommand(
      "dense", "How long one memory device takes for all workers' gradients (COARSE's DENSE)");
  dense->add_option("--workers", options->workers, "Worker GPUs, p")->required();
  auto* bytes = dense->add_option("--bytes", options->bytes, "Size of the gradient: 553MB, 512MiB");
  auto* bandwidth = dense->add_option("--bandwidth", options->bandwidth,
                                      "Of the device's port on the bus, each direction: 16GB/s");
  auto* efficiency = dense->add_option("--efficiency", options->efficiency,
                                       "Of the bus, what CCI reaches: 90% (default)");
  auto* coherence = dense->add_option(
      "--coherence", options->coherence,
      "What each further device that shares a region takes of it: 1GB/s; default: nothing");
  auto* sharers = dense->add_option("--sharers", options->sharers,
                                    "Devices that share a region; default: as many as workers");
  dense
      ->add_option("-m,--workload", options->workload,
                   "Its gradient instead; with --curve its tensors, one after another")
      ->excludes(bytes);
  auto* curve =
      dense
          ->add_option(
              "--curve", options->curve,
              "CSV with the columns bytes,seconds: times over the bus instead of one bandwidth")
          ->excludes(bytes, bandwidth, coherence, sharers);
  dense
      ->add_option("--speedup-curve", options->speedup_curve,
                   "CSV with the columns bytes,speedup: of the bus over CCI, by size")
      ->needs(curve)
      ->excludes(efficiency);
  dense->add_flag("--json", options->json, "One JSON object on standard output");
  dense->footer("Equations: docs/equations.md. Push and pull go on at once, so this is the time of "
                "either.");
  return [options] { return run_dense(*options); };
}

} // namespace reckon
