// SPDX-License-Identifier: Apache-2.0
#include "solve.hpp"

#include "core/optimizer.hpp"
#include "core/split.hpp"

#include "equations/memory_devices.hpp"

#include <algorithm>

/// COARSE: what memory devices hold, and how long one takes for all.
namespace reckon::solve {
namespace {

// ---------------------------------------------------------------- memory

DeviceHolds holds_of(const std::string& list) {
  DeviceHolds holds;
  for (const std::string& word : reckon::split(list, ",")) {
    bool* const held = word == "parameters"  ? &holds.parameters
                       : word == "gradients" ? &holds.gradients
                       : word == "optimizer" ? &holds.optimizer
                                             : nullptr;
    refuse_if(
        held == nullptr,
        "--devices-hold '{}': must be of parameters, gradients, optimizer, separated by commas",
        word);
    *held = true;
  }
  return holds;
}

Answer answer_memory(const Given& given) {
  const std::string& optimizer_name = given.text("--optimizer");
  const auto optimizer = optimizer_named(optimizer_name);
  refuse_if(!optimizer, "--optimizer '{}': must be one of sgd, momentum, rmsprop, adam",
            optimizer_name);
  refuse_if(given.has("--workload") == given.has("--parameters"),
            "give the parameters' size by --workload or by --parameters, one of them");
  TrainingMemory memory;
  memory.gpu_bytes = given.number("--gpu-memory");
  double elements = 0;
  if (const std::optional<Workload> workload = given.workload()) {
    for (const Tensor& tensor : workload->tensors) {
      memory.parameters_bytes += static_cast<double>(tensor.bytes());
      elements += static_cast<double>(tensor.elements);
    }
  } else {
    memory.parameters_bytes = given.number("--parameters");
    elements = memory.parameters_bytes / 4;
  }
  memory.gradients_bytes = memory.parameters_bytes;
  memory.optimizer_bytes = 4 * elements * static_cast<double>(state_arrays(*optimizer));
  memory.fixed_bytes = given.number("--fixed");
  memory.sample_bytes = given.number("--activations");
  refuse_if(memory.sample_bytes == 0,
            "--activations 0: must be greater than 0, else every batch fits");
  const std::string& held = given.text("--devices-hold");
  const DeviceHolds holds = holds_of(held);
  const double without = resident_bytes(memory);
  const double with = resident_bytes(memory, holds);
  const std::uint64_t batch = greatest_batch(memory);
  const std::uint64_t batch_with = greatest_batch(memory, holds);

  const std::string held_text = "devices hold " + held;
  Lines lines(fmt::format("{{:<{}}} {{:>12}} {{:>12}} {{:>15}}{{}}",
                          std::max<std::size_t>(34, held_text.size())));
  lines.append(fmt::format(
      "parameters {}, gradients {}, {} state {}, fixed {}; {} a sample, of {}\n\n",
      bytes_text(memory.parameters_bytes), bytes_text(memory.gradients_bytes), optimizer_name,
      bytes_text(memory.optimizer_bytes), bytes_text(memory.fixed_bytes),
      bytes_text(memory.sample_bytes), bytes_text(memory.gpu_bytes)));
  lines("", "in the GPU", "in a device", "greatest batch", "");
  lines("without memory devices", bytes_text(without), "-", batch, "");
  lines(held_text, bytes_text(with), bytes_text(without - with), batch_with, "  (37)");
  return {{{"greatest_batch", batch},
           {"greatest_batch_with_devices", batch_with},
           {"resident_bytes", without},
           {"resident_with_devices_bytes", with},
           {"device_bytes", without - with},
           {"parameters_bytes", memory.parameters_bytes},
           {"gradients_bytes", memory.gradients_bytes},
           {"optimizer_bytes", memory.optimizer_bytes}},
          lines.text()};
}

// ---------------------------------------------------------------- dense

struct DenseTimes {
  double bus_s = 0, cci_s = 0;
  std::string how;
};

/// The times over CCI, by the speed-ups of --speedup-curve. CCI passes the bus: it is never faster
/// than the bus at its best.
Curve over_cci(const Given& given, const Curve& bus) {
  const Curve cci = cci_curve(bus, read_curve(given.text("--speedup-curve"), "speedup"));
  double fastest = bus.marginal_bandwidth().as_bytes_per_s();
  for (const CurvePoint& point : bus.points()) {
    fastest = std::max(fastest, point.bytes / point.seconds);
  }
  constexpr double k_rounding = 1e-9;
  for (const auto& [bytes, seconds] : cci.points()) {
    refuse_if(bytes / seconds > fastest * (1 + k_rounding),
              "--speedup-curve {}: {:.4g} at {:.0f} B makes CCI reach {}, and the bus, which it "
              "passes, reaches {} at most; give how many times as fast the bus is",
              given.text("--speedup-curve"), seconds / bus.seconds_at(bytes), bytes,
              rate_text(bytes / seconds), rate_text(fastest));
  }
  return cci;
}

DenseTimes dense_by_curve(const Given& given, std::uint64_t workers, double efficiency) {
  refuse_if(!given.has("--workload"), "--curve needs the sizes of the tensors; give --workload");
  const Workload workload = given.workload().value();
  const std::vector<SizeCount> tensors = tensor_sizes(workload);
  const Curve bus = read_curve(given.text("--curve"));
  const double bus_s = dense_s(workers, bus, tensors);
  const double cci_s = given.has("--speedup-curve")
                           ? dense_s(workers, over_cci(given, bus), tensors)
                           : bus_s / efficiency;
  return {bus_s, cci_s,
          fmt::format("p times the times of {} of {}", counted(tensors.size(), "tensor"),
                      workload.name)};
}

DenseTimes dense_by_bandwidth(const Given& given, std::uint64_t workers, double efficiency) {
  refuse_if(given.has("--bytes") == given.has("--workload") || !given.has("--bandwidth"),
            "give --bytes or --workload, and --bandwidth or --curve");
  const double bytes = given.has("--bytes") ? given.number("--bytes")
                                            : static_cast<double>(given.workload()->bytes());
  const double bus = given.number("--bandwidth");
  const double taken = given.number("--coherence", 0);
  const std::uint64_t sharers = given.count("--sharers", workers);
  const double left = coherence_left_bytes_per_s(efficiency * bus, taken, sharers);
  refuse_if(left <= 0,
            "--coherence {} for each of {} further devices leaves nothing of {}; give less",
            given.text("--coherence"), sharers - 1, rate_text(efficiency * bus));
  return {dense_s(workers, bytes, bus), dense_s(workers, bytes, left),
          fmt::format("p n / BW, BW {} of the bus, {} over CCI", rate_text(bus), rate_text(left))};
}

Answer answer_dense(const Given& given) {
  const std::uint64_t workers = given.count("--workers");
  const double efficiency = given.number("--efficiency", k_cci_efficiency);
  refuse_if(efficiency == 0 || efficiency > 1, "--efficiency {}: must be above 0 and at most 100 %",
            given.text("--efficiency"));
  const auto [bus_s, cci_s, how] = given.has("--curve")
                                       ? dense_by_curve(given, workers, efficiency)
                                       : dense_by_bandwidth(given, workers, efficiency);
  return {{{"bus_seconds", bus_s},
           {"cci_seconds", cci_s},
           {"cci_over_bus", ratio_or_null(cci_s, bus_s)}},
          fmt::format("one device for {}: {} (38)\n\nover the bus {:>12}\nover CCI     {:>12}\n",
                      counted(workers, "worker"), how, time_text(bus_s), time_text(cci_s))};
}

} // namespace

Calculator memory() {
  return {
      "memory",
      "The greatest batch that fits into a GPU, with and without memory devices (COARSE)",
      "--gpu-memory 16GiB --workload bert-large --fixed 1GiB --activations 4GiB",
      {required("--gpu-memory", Unit::bytes, "Of one GPU: 16GiB"),
       {"-m,--workload", Unit::text, "A workload: its parameters are trained"},
       {"--parameters", Unit::bytes, "Their size instead, in fp32: 1.34GB"},
       {"--optimizer", Unit::text, "Which optimizer: sgd, momentum, rmsprop or adam", "adam"},
       required("--activations", Unit::bytes, "Of one sample: 3GiB"),
       {"--fixed", Unit::bytes, "Whatever the batch is: the framework, workspaces", "0"},
       {"--devices-hold", Unit::text,
        "What memory devices hold: of parameters, gradients, optimizer, with commas", "optimizer"}},
      answer_memory,
      "Equation 37 of docs/equations.md."};
}

Calculator dense() {
  return {"dense",
          "How long one memory device takes for all workers' gradients (COARSE's DENSE)",
          "--workers 8 --bytes 1.34GB --bandwidth 16GB/s",
          {required("--workers", Unit::count, "How many work: GPUs, p"),
           {"--bytes", Unit::bytes, "Size of the gradient: 553MB, 512MiB"},
           {"--bandwidth", Unit::bandwidth,
            "Bandwidth of a port, each direction: of the device's on the bus, 16GB/s"},
           {"--efficiency", Unit::fraction, "Of the bus, what CCI reaches: 90% (default)"},
           {"--coherence", Unit::bandwidth,
            "What each further device that shares a region takes of it: 1GB/s; default: nothing"},
           {"--sharers", Unit::count, "Devices that share a region; default: as many as workers"},
           {"-m,--workload",
            Unit::text,
            "A workload: its gradient instead; with --curve its tensors, one after another",
            "",
            {"--bytes"}},
           {"--curve",
            Unit::text,
            "CSV with the columns bytes,seconds: times over the bus instead of one "
            "bandwidth",
            "",
            {"--bytes", "--bandwidth", "--coherence", "--sharers"}},
           {"--speedup-curve",
            Unit::text,
            "CSV with the columns bytes,speedup: of the bus over CCI, by size",
            "",
            {"--efficiency"},
            "--curve"}},
          answer_dense,
          "Equations 38 to 40 of docs/equations.md. Push and pull go on at once, so this is the "
          "time of "
          "either."};
}

} // namespace reckon::solve
