// SPDX-License-Identifier: Apache-2.0
#include "discover/environment.hpp"

#include "core/digest.hpp"
#include "core/processors.hpp"
#include "core/version.hpp"
#include "discover/cuda.hpp"
#include "discover/smbios.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/utsname.h>

#include <algorithm>
#include <sstream>

namespace reckon {
namespace {

/// "always [madvise] never" -> "madvise"
std::string chosen_of(const std::string& text) {
  const std::size_t open = text.find('[');
  const std::size_t close = text.find(']');
  return open == std::string::npos || close == std::string::npos
             ? text
             : text.substr(open + 1, close - open - 1);
}

/// "0-3,8"
std::string ranges_of(const std::vector<int>& cpus) {
  std::string text;
  for (std::size_t first = 0, last = 0; first < cpus.size(); first = ++last) {
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) {
      ++last;
    }
    text += fmt::format("{}{}", text.empty() ? "" : ",", cpus[first]);
    text += last > first ? fmt::format("-{}", cpus[last]) : "";
  }
  return text;
}

} // namespace

Environment describe_environment(const SystemFile& files) {
  Environment found;
  const auto put = [&](const std::string& key, const std::string& value) {
    if (!value.empty()) {
      found.facts[key] = value;
    }
  };
  const auto file = [&](const std::string& path) { return files(path).value_or(""); };

  utsname system{};
  if (uname(&system) == 0) {
    put("host", static_cast<const char*>(system.nodename));
    put("kernel", fmt::format("{} {} {}", static_cast<const char*>(system.sysname),
                              static_cast<const char*>(system.release),
                              static_cast<const char*>(system.machine)));
  }
  const std::string cpuinfo = file("/proc/cpuinfo");
  put("cpu", cpuinfo_value(cpuinfo, "model name"));
  put("microcode", cpuinfo_value(cpuinfo, "microcode"));
  const std::string flags = " " + cpuinfo_value(cpuinfo, "flags") + " ";
  put("virtual_machine", flags.find(" hypervisor ") != std::string::npos ? "yes" : "no");

  const std::string cpu = "/sys/devices/system/cpu/";
  const std::string governor = file(cpu + "cpu0/cpufreq/scaling_governor");
  put("governor", governor);
  if (governor == "powersave" || governor == "ondemand" || governor == "conservative") {
    // intel_pstate's and amd_pstate's "powersave" does follow the load; it is still slower to rise.
    found.warnings.push_back(fmt::format(
        "the frequency governor is '{}': short measurements may see low clocks; set 'performance'",
        governor));
  }
  put("max_clock_khz", file(cpu + "cpu0/cpufreq/scaling_max_freq"));
  put("turbo", file(cpu + "intel_pstate/no_turbo") == "1" ? "off" : "");
  put("boost", file(cpu + "cpufreq/boost"));
  put("smt", file(cpu + "smt/active"));
  put("isolated_cpus", file(cpu + "isolated"));
  put("allowed_cpus", ranges_of(allowed_cpus()));

  const std::string clock =
      file("/sys/devices/system/clocksource/clocksource0/current_clocksource");
  put("clock_source", clock);
  if (!clock.empty() && clock != "tsc" && clock != "kvm-clock" && clock != "arch_sys_counter") {
    found.warnings.push_back(fmt::format(
        "the clock source is '{}': reading the time is slow and coarse; boot with 'tsc' if the "
        "processor's counter is invariant",
        clock));
  }
  put("transparent_huge_pages", chosen_of(file("/sys/kernel/mm/transparent_hugepage/enabled")));
  put("huge_pages_reserved", file("/proc/sys/vm/nr_hugepages"));
  const std::string balancing = file("/proc/sys/kernel/numa_balancing");
  put("numa_balancing", balancing);
  put("memory_modules", memory_modules(file("/sys/firmware/dmi/tables/DMI")));
  put("product", file("/sys/class/dmi/id/product_name"));

  put("reckon", k_version);
  put("compiler", RECKON_COMPILER " " RECKON_BUILD_TYPE);
  put("hwloc", RECKON_HWLOC_VERSION);
  put("highway", RECKON_HIGHWAY_VERSION);
  put("libfabric", RECKON_LIBFABRIC_VERSION);
  const CudaGpus cuda = list_cuda_gpus();
  put("cuda_runtime", cuda.runtime_version);
  put("cuda_driver", cuda.driver_version);
  return found;
}

std::string fingerprint(const Topology& topology, const std::string& cpu_model) {
  std::map<std::string, int> parts;
  for (const TopologyObject& o : topology.objects) {
    std::string part(name_of(o.kind));
    if (o.kind == ObjectKind::cache) {
      part += fmt::format(" level {} of {} bytes", o.cache_level.value_or(0), o.bytes.value_or(0));
    } else if (o.kind == ObjectKind::gpu) {
      part += " " + o.name;
    } else if (o.kind == ObjectKind::nic) {
      part += fmt::format(" {} at {:.0f} bytes/s", o.name, o.link_bytes_per_second.value_or(0));
    } else if (o.kind == ObjectKind::core) {
      part += fmt::format(" of {} processors", o.cpus.size());
    } else if (o.kind == ObjectKind::pci_bridge) {
      continue; // firmware numbers and hides them differently from boot to boot
    }
    ++parts[part];
  }
  nlohmann::json text;
  text["cpu"] = cpu_model;
  text["parts"] = parts;
  return digest_of(compact(text));
}

} // namespace reckon
