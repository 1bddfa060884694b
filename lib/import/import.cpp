// SPDX-License-Identifier: Apache-2.0
#include "import/import.hpp"

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/units.hpp"
#include "import/collector.hpp"
#include "import/host_names.hpp"
#include "import/nccl_cells.hpp"
#include "import/records/readers.hpp"
#include "import/text_lines.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

namespace reckon {

using namespace import_detail;

namespace {

/// Parts that a line has when it is one that only this tool prints; ^ is the line's begin, $ its
/// end.
using Mark = std::array<std::string_view, 3>;

struct Known {
  std::string_view name, title;
  std::array<Mark, 5> marks; ///< any of them
  ReadText* read = nullptr;
  ReadRecords* read_job = nullptr; ///< in its place: all files of the format are records of one job
  /// Which of the options say what the output does not.
  bool collective = false, ranks = false, machines = false;
};

constexpr std::array<Known, 15> k_formats{{
    {"nvbandwidth",
     "nvbandwidth",
     {{{"\"nvbandwidth\""},
       {"^nvbandwidth Version"},
       {"^mem", "GPU(column)", "(GB/s)"},
       {"^mem", "GPU(column)", "(ns)"}}},
     &read_nvbandwidth},
    {"p2p",
     "p2pBandwidthLatencyTest",
     {{{"GPU Bandwidth Latency Test]"}, {"Matrix", "P2P=Disabled"}, {"Matrix", "P2P=Enabled"}}},
     &read_p2p_latency},
    {.name = "nccl-tests",
     .title = "nccl-tests",
     .marks = {{{"^#", "algbw", "busbw"}, {k_nccl_json}}},
     .read = &read_nccl_tests,
     .collective = true,
     .ranks = true},
    {"mlc",
     "Intel MLC",
     {{{"Memory Latency Checker - "},
       {"Measuring idle latencies"},
       {"Memory Bandwidths for the system"},
       {"Measuring Memory Bandwidths between nodes"},
       {"Measuring Loaded Latencies"}}},
     &read_mlc},
    {.name = "osu",
     .title = "OSU micro-benchmarks",
     .marks = {{{"^# OSU MPI"}}},
     .read = &read_osu,
     .ranks = true,
     .machines = true},
    {.name = "perftest",
     .title = "perftest",
     .marks = {{{"^#bytes", "BW average["},
                {"^#bytes", "t_avg[usec]"},
                {"^#bytes", "t_typical[usec]"},
                {"^\"test\": \"", "_Test\",$"}}},
     .read = &read_perftest,
     .machines = true},
    {.name = "nccom-test",
     .title = "nccom-test",
     .marks = {{{"^size(B)", "busbw(GB/s)"}, {"^\"busbw(GB/s)\""}}},
     .read = &read_nccom,
     .collective = true,
     .ranks = true,
     .machines = true},
    {"transferbench",
     "TransferBench",
     {{{"^TransferBench v"},
       {"^Test#,Transfer#,NumBytes,Src,Exe,Dst,CUs,BW(GB/s),Time(ms)"},
       {"directional copy peak bandwidth GB/s ["},
       {"^Executor:", "GB/s"}}},
     &read_transferbench},
    {"rocm_bandwidth_test",
     "rocm_bandwidth_test",
     {{{"^RocmBandwidthTest Version:"},
       {"directional copy peak bandwidth GB/s$"},
       {"directional copy average bandwidth GB/s$"},
       {"^====", "directional Benchmark Result"}}},
     &read_rocm_bandwidth},
    {.name = "ucx_perftest",
     .title = "ucx_perftest",
     .marks = {{{"^|", "bandwidth (MB/s)", "message rate (msg/s)"}, {",overall_lat,avg_bw,"}}},
     .read = &read_ucx,
     .machines = true},
    {.name = "ucc_perftest",
     .title = "ucc_perftest",
     .marks = {{{"^Count", "Size", "Time, us"}}},
     .read = &read_ucc,
     .ranks = true,
     .machines = true},
    {"inspector",
     "NCCL Inspector",
     {{{"\"inspector_output_format_version\""}}},
     nullptr,
     &read_inspector},
    {"ncclras", "ncclras", {{{"\"communicators_count\""}}}, nullptr, &read_ras},
    {"flight-recorder",
     "PyTorch's Flight Recorder",
     {{{"\"pg_status\""}}},
     nullptr,
     &read_flight_recorder},
    {"kineto",
     "torch.profiler",
     {{{"\"traceEvents\""}, {"\"pid\": \"CPU functions\""}}},
     nullptr,
     &read_kineto},
}};

bool has_mark(std::string_view line, const Known& format) {
  return std::ranges::any_of(format.marks, [&](const Mark& mark) {
    return !mark[0].empty() && std::ranges::all_of(mark, [&](std::string_view part) {
      const bool begins = part.starts_with('^'), ends = part.ends_with('$');
      part.remove_prefix(begins ? 1 : 0);
      part.remove_suffix(ends ? 1 : 0);
      return begins ? line.starts_with(part) : ends ? line.ends_with(part) : contains(line, part);
    });
  });
}

/// The titles of the formats that take an option: "A", "A, B and C".
std::string titles(bool Known::*takes) {
  std::vector<std::string_view> names;
  for (const Known& k : k_formats) {
    if (k.*takes) {
      names.push_back(k.title);
    }
  }
  const std::string_view last = names.back();
  names.pop_back();
  return fmt::format("{}{}{}", fmt::join(names, ", "), names.empty() ? "" : " and ", last);
}

/// An id stands in ids of parts (ID/gpu0) and in lists (ID,ID).
void check_machine_ids(const ImportOptions& options) {
  const bool blank =
      std::ranges::any_of(options.machine, [](char c) { return c <= ' ' || c == '\x7f'; });
  if (blank || std::ranges::any_of(machine_ids(options), [](const std::string& id) {
        return id.empty() || id.size() > 64 || contains(id, "/");
      })) {
    fail(ErrorKind::usage,
         fmt::format("--machine '{}': an id must have 1 to 64 characters, no blank and no /",
                     one_line(options.machine)));
  }
}

/// "12.35 GB/s and 7.40 GB/s", the least and the greatest.
std::string values_text(const Cell& cell) {
  const auto one = [&](double value) {
    return cell.unit == k_rate ? fmt::format("{:.4g} GB/s", value * 1e-9)
                               : fmt::format("{:.4g} us", value * 1e6);
  };
  return fmt::format("{} and {}", one(cell.min), one(cell.max));
}

/// --machine is for all files: the same test twice would be of other machines.
void refuse_repeats(const std::vector<Profile>& profiles) {
  std::map<CellKey, const Profile*> first;
  for (const Profile& profile : profiles) {
    for (const Cell& cell : profile.cells) {
      const auto [at, added] = first.try_emplace(cell.key, &profile);
      if (!added) {
        fail(ErrorKind::usage,
             fmt::format("--machine is for all files, and \"{}\" is in {} and in {}: give those of "
                         "one pair and one run by themselves, the others with --merge; or name the "
                         "files after the machines, as gpu-01_gpu-02.log, and leave --machine out",
                         cell.key.text(), at->second->name, profile.name));
      }
    }
  }
}

} // namespace

std::string recognise_format(std::string_view text, const std::string& file) {
  const TextLines lines(text, file);
  const Known* found = nullptr;
  std::size_t line_found = 0;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    for (const Known& k : k_formats) {
      if (&k == found || !has_mark(lines[i], k)) {
        continue;
      }
      if (found != nullptr) {
        lines.fail(i, fmt::format(
                          "is output of {}, but line {} is of {}; split the file, one tool in each",
                          k.title, line_found + 1, found->title));
      }
      found = &k;
      line_found = i;
    }
  }
  if (found != nullptr) {
    return std::string(found->name);
  }
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view schema = "\"schema\": \"reckon/";
    if (const std::size_t at = lines[i].find(schema); at != std::string_view::npos) {
      const std::string_view name = lines[i].substr(at + schema.size());
      lines.fail(i, fmt::format("this is a {} of reckon already, not what a tool printed: see it "
                                "with `reckon show`, or add to a profile with --merge",
                                quoted(name.substr(0, name.find('"')))));
    }
  }
  if (lines.size() == 0) {
    lines.fail(0, "the file is empty; give what the tool printed");
  }
  if (lines[0].starts_with('<')) {
    lines.fail(0, "this is XML; if it is a topology of hwloc, NCCL or RCCL, `reckon probe "
                  "--topology FILE -o profile.json` reads it");
  }
  std::string titles;
  for (const Known& k : k_formats) {
    titles += fmt::format("{}, ", k.title);
  }
  lines.fail(0, fmt::format("this is no output that reckon knows ({}workloads of ASTRA-sim); if it "
                            "is one of them, say which with --format",
                            titles));
}

std::string program_of(std::string_view text) {
  try {
    const std::string name = recognise_format(text, "");
    const auto known = std::ranges::find(k_formats, name, &Known::name);
    return known == k_formats.end() ? "" : std::string(known->title);
  } catch (const Error&) {
    return "";
  }
}

std::vector<Profile> import_texts(std::vector<ToolOutput> outputs, const ImportOptions& options) {
  check_machine_ids(options);
  std::vector<const Known*> formats;
  for (ToolOutput& output : outputs) {
    if (is_pickle(output.text)) {
      output.text = json_of_pickle(output.text, output.file);
    }
    const std::string name =
        options.format.empty() ? recognise_format(output.text, output.file) : options.format;
    formats.push_back(&*std::ranges::find(k_formats, name, &Known::name));
  }
  const auto refuse = [&](bool given, const char* option, bool Known::*takes, bool all) {
    const auto lacks = [&](const Known* format) { return !(format->*takes); };
    const auto at = std::find_if(formats.begin(), formats.end(), lacks);
    if (given && (all ? at != formats.end() : std::all_of(formats.begin(), formats.end(), lacks))) {
      fail(ErrorKind::usage,
           fmt::format("{} is for {}; {} is output of {}{}", option, titles(takes),
                       outputs[static_cast<std::size_t>(at - formats.begin())].file, (*at)->title,
                       formats.size() > 1 ? ": import it by itself, then the others with --merge"
                                          : ""));
    }
  };
  refuse(!options.collective.empty(), "--collective", &Known::collective, false);
  refuse(options.ranks.has_value(), "--ranks", &Known::ranks, false);
  refuse(contains(options.machine, ","), "--machine with several ids", &Known::machines, true);
  refuse(!options.hosts.empty(), "--hosts", &Known::machines, false);
  ImportOptions named = options;
  std::vector<const ToolOutput*> runs;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (formats[i]->read == &read_perftest && !contains(options.machine, ",")) {
      runs.push_back(&outputs[i]);
    }
  }
  named.hosts.merge(names_of_addresses(runs, options));
  std::vector<Profile> profiles;
  std::map<const Known*, std::vector<ToolOutput>> jobs;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    if (formats[i]->read_job != nullptr) {
      jobs[formats[i]].push_back(std::move(outputs[i]));
    } else {
      profiles.push_back(formats[i]->read(TextLines(outputs[i].text, outputs[i].file), named));
    }
  }
  if (contains(options.machine, ",")) {
    refuse_repeats(profiles);
  }
  for (const auto& [format, files] : jobs) {
    profiles.push_back(format->read_job(files, options));
  }
  return profiles;
}

Profile import_text(std::string_view text, const std::string& file, const ImportOptions& options) {
  return std::move(import_texts({{.file = file, .text = std::string(text)}}, options).front());
}

void warn_of_spread(const Profile& imported) {
  constexpr double k_most = 0.2;
  const Cell* worst = nullptr;
  double worst_spread = 0;
  std::size_t count = 0;
  for (const Cell& cell : imported.cells) {
    if (cell.status != CellStatus::published || cell.samples.size() < 2) {
      continue;
    }
    // Of many, as iterations of one run, only the middle half counts.
    std::vector<double> sorted = cell.samples;
    std::ranges::sort(sorted);
    const std::size_t apart = sorted.size() < 8 ? 0 : sorted.size() / 4;
    const double spread = (sorted[sorted.size() - 1 - apart] - sorted[apart]) / cell.p50;
    count += spread > k_most ? 1 : 0;
    if (spread > k_most && spread > worst_spread) {
      worst = &cell;
      worst_spread = spread;
    }
  }
  if (worst != nullptr) {
    log(LogLevel::warn,
        "{} of {} cells were measured several times with values that differ by more than {:.0f} %: "
        "\"{}\" {}; the profile has their median: were these different machines or settings? Then "
        "import each by itself",
        count, imported.cells.size(), 100 * k_most, worst->key.text(), values_text(*worst));
  }
}

} // namespace reckon
