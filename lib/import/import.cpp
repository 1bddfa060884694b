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

/// Ids of `added` under which `base` knows the same things, and what `base` lacks added to it.
class MergedPlaces {
public:
  explicit MergedPlaces(Profile& base) : m_base(base) {
    for (std::size_t i = 0; i < base.topology.objects.size(); ++i) {
      m_objects[base.topology.objects[i].id] = i;
    }
  }

  void add(const Profile& added) {
    for (const MachineGroup& machine : added.machines) {
      add_machine(machine);
    }
    for (const TopologyObject& object : added.topology.objects) {
      add_object(object);
    }
  }

  /// An id that is not renamed is its own.
  [[nodiscard]] std::string id(const std::string& id) const {
    const auto at = m_renamed.find(id);
    return at == m_renamed.end() ? id : at->second;
  }

private:
  /// The group that has the id, or a machine of it; null when there is none.
  [[nodiscard]] MachineGroup* group_with(const std::string& id) const {
    const auto found = std::ranges::find_if(m_base.machines, [&](const MachineGroup& g) {
      return g.id == id || std::ranges::find(g.members, id) != g.members.end();
    });
    return found == m_base.machines.end() ? nullptr : &*found;
  }

  /// What has members are machines that --machine named, and nothing is known of them.
  void add_members(MachineGroup group) {
    if (const MachineGroup* const known = group_with(group.members.front())) {
      m_renamed[group.id] = known->id;
    }
    std::erase_if(group.members, [&](const std::string& id) { return group_with(id) != nullptr; });
    if (group.members.empty()) {
      return;
    }
    MachineGroup* known = group_with(group.id);
    if (known == nullptr) {
      known = &m_base.machines.emplace_back(MachineGroup{.id = group.id, .name = group.name});
    }
    known->members.insert(known->members.end(), group.members.begin(), group.members.end());
    known->count = known->members.size();
  }

  void add_machine(const MachineGroup& machine) {
    if (!machine.members.empty()) {
      add_members(machine);
      return;
    }
    const auto known = std::ranges::find(m_base.machines, machine.id, &MachineGroup::id);
    if (known == m_base.machines.end()) {
      m_base.machines.push_back(machine);
      return;
    }
    if (known->count != 1) {
      fail(ErrorKind::input, fmt::format("machine {} stands for {} machines in the profile to "
                                         "merge into; say with --machine which one was measured",
                                         known->id, known->count));
    }
    if (known->name.empty()) {
      known->name = machine.name;
    }
    if (!machine.name.empty() && machine.name != known->name) {
      fail(ErrorKind::input,
           fmt::format("machine {} is {} and {}; give the second another id with --machine, or, if "
                       "both are one machine, name the profile of its topology so: reckon probe "
                       "--topology FILE --name {}",
                       known->id, known->name, machine.name, machine.name));
    }
  }

  void add_object(const TopologyObject& object) {
    if (TopologyObject* const same = same_as(object)) {
      m_renamed[object.id] = same->id;
      if (same->name.empty() || is_generation(same->name)) {
        same->name = object.name;
      }
      if (same->pci_address.empty()) {
        same->pci_address = object.pci_address;
      }
      return;
    }
    TopologyObject copy = object;
    copy.parent = id(object.parent);
    // The id may be another GPU's here: CUDA and the profile count in another
    // order.
    for (int next = 0; m_objects.contains(copy.id); ++next) {
      copy.id = fmt::format("{}/gpu{}", copy.parent, next);
    }
    m_renamed[object.id] = copy.id;
    m_objects[copy.id] = m_base.topology.objects.size();
    m_base.topology.objects.push_back(std::move(copy));
  }

  /// "sm_80", as topologies of NCCL say, is no model's name.
  static bool is_generation(const std::string& name) { return name.starts_with("sm_"); }

  /// Whether `object`'s way up leads to `machine`.
  [[nodiscard]] bool is_in(const TopologyObject& object, const std::string& machine) const {
    const TopologyObject* at = &object;
    while (at != nullptr && at->id != machine) {
      at = at->parent.empty() ? nullptr : m_base.topology.find(at->parent);
    }
    return at != nullptr;
  }

  /// What the base has of the same place; null: nothing.
  [[nodiscard]] TopologyObject* same_as(const TopologyObject& object) const {
    const bool node = object.kind == ObjectKind::numa_node;
    if (node || (object.kind == ObjectKind::gpu && !object.pci_address.empty())) {
      for (TopologyObject& known : m_base.topology.objects) {
        if (known.kind == object.kind && is_in(known, object.parent) &&
            (node ? known.os_index == object.os_index : known.pci_address == object.pci_address)) {
          return &known;
        }
      }
    }
    const auto at = m_objects.find(object.id);
    if (at == m_objects.end()) {
      return nullptr;
    }
    TopologyObject& known = m_base.topology.objects[at->second];
    const auto differ = [&](std::string TopologyObject::*what) {
      return !(known.*what).empty() && !(object.*what).empty() && known.*what != object.*what;
    };
    if (known.kind == object.kind && differ(&TopologyObject::pci_address)) {
      return nullptr;
    }
    const bool named = !is_generation(known.name) && !is_generation(object.name);
    if (known.kind != object.kind || (named && differ(&TopologyObject::name))) {
      fail(ErrorKind::input,
           fmt::format("{} is {} {} and {} {}; give the second machine another id with --machine",
                       object.id, name_of(known.kind), known.name, name_of(object.kind),
                       object.name));
    }
    return &known;
  }

  Profile& m_base;
  std::map<std::string, std::size_t> m_objects;
  std::map<std::string, std::string> m_renamed;
};

constexpr std::string_view k_imported_from = "imported from ";

/// What the base was, and the files of each tool: by their number where they are several.
std::string source_of(const Profile& base) {
  std::vector<std::string> parts;
  for (std::string_view rest = base.source; !rest.empty();) {
    const std::string_view part = rest.substr(0, rest.find("; "));
    if (!part.starts_with(k_imported_from)) {
      parts.emplace_back(part);
    }
    rest.remove_prefix(std::min(part.size() + 2, rest.size()));
  }
  std::map<std::string, std::vector<std::string>> files; // by tool
  for (const auto& [name, text] : base.context) {        // "TOOL, FILE, DIGEST"
    const std::size_t first = text.find(", "), last = text.rfind(", ");
    if (name.starts_with("imported ") && first < last) {
      files[text.substr(0, first)].push_back(text.substr(first + 2, last - first - 2));
    }
  }
  for (const auto& [tool, of] : files) {
    parts.push_back(fmt::format("{}{}, {}", k_imported_from, tool,
                                of.size() == 1 ? of.front() : counted(of.size(), "file")));
  }
  return fmt::format("{}", fmt::join(parts, "; "));
}

void add_cell(Profile& base, std::map<CellKey, std::size_t>& cells, Cell cell) {
  const auto [at, added] = cells.try_emplace(cell.key, base.cells.size());
  if (added) {
    base.cells.push_back(std::move(cell));
    return;
  }
  Cell& known = base.cells[at->second];
  if (!cell.has_value()) {
    return;
  }
  if (!known.has_value()) {
    known = std::move(cell);
    return;
  }
  if (known.status != CellStatus::published || known.samples.empty() || known.unit != cell.unit) {
    fail(ErrorKind::input,
         fmt::format("\"{}\" has a value of another origin in the profile to merge into; import "
                     "into a profile of its own and compare the two with reckon diff",
                     known.key.text()));
  }
  known.samples.insert(known.samples.end(), cell.samples.begin(), cell.samples.end());
  summarize_cell(known);
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

void merge_import(Profile& base, const Profile& imported) {
  Profile added = imported;
  for (const auto& [name, text] : added.context) {
    if (name.starts_with("imported ") && base.context.contains(name)) {
      fail(ErrorKind::input, fmt::format("{}: is in the profile already; leave it out", text));
    }
  }
  if (!added.topology.objects.empty()) {
    split_group(base);
  }
  if (!base.topology.objects.empty() &&
      std::ranges::all_of(base.machines, &std::vector<std::string>::empty,
                          &MachineGroup::members)) {
    split_group(added);
  }
  const bool had_tree = base.topology.objects.size() > base.machines.size();
  const std::string topology = base.context.contains("topology") ? base.context["topology"] : "";
  MergedPlaces places(base);
  places.add(added);
  std::map<CellKey, std::size_t> cells;
  for (const Cell& cell : base.cells) {
    cells[cell.key] = cells.size();
  }
  for (Cell cell : added.cells) {
    cell.key.from = places.id(cell.key.from);
    cell.key.to = places.id(cell.key.to);
    add_cell(base, cells, std::move(cell));
  }
  std::ranges::sort(base.cells, {}, &Cell::key);
  base.context.insert(added.context.begin(), added.context.end());
  if (had_tree && topology.empty()) {
    base.context.erase("topology"); // the base's tree is what is known
  }
  if (base.source.starts_with(k_imported_from)) {
    base.name = common_name(base.name, added.name);
  }
  base.source = source_of(base);
}

Profile with_ids_by_name(Profile added, const Profile& base) {
  std::map<std::string, std::string> ids; // of `added` by what they become
  std::set<std::string> taken;
  for (const Profile* profile : {&base, static_cast<const Profile*>(&added)}) {
    for (const MachineGroup& machine : profile->machines) {
      taken.insert(machine.id);
    }
  }
  const auto in_base = [&](const MachineGroup& machine, auto MachineGroup::*what) {
    return std::ranges::find(base.machines, machine.*what, what);
  };
  for (const MachineGroup& machine : added.machines) {
    if (machine.name.empty()) {
      continue;
    }
    if (const auto same = in_base(machine, &MachineGroup::name); same != base.machines.end()) {
      ids[machine.id] = same->id;
      continue;
    }
    const auto other = in_base(machine, &MachineGroup::id);
    if (other == base.machines.end() || other->name.empty()) {
      continue;
    }
    std::string& id = ids[machine.id];
    for (std::size_t next = 0; id.empty() || taken.contains(id); ++next) {
      id = fmt::format("m{}", next);
    }
    taken.insert(id);
  }
  const auto rename = [&](std::string& id) { // also of a part of a machine
    const std::size_t end = std::min(id.find('/'), id.size());
    if (const auto at = ids.find(id.substr(0, end)); at != ids.end()) {
      id.replace(0, end, at->second);
    }
  };
  for (MachineGroup& machine : added.machines) {
    rename(machine.id);
  }
  for (TopologyObject& object : added.topology.objects) {
    rename(object.id);
    rename(object.parent);
  }
  for (PeerLink& link : added.topology.links) {
    rename(link.from);
    rename(link.to);
  }
  for (Cell& cell : added.cells) {
    rename(cell.key.from);
    rename(cell.key.to);
  }
  return added;
}

} // namespace reckon
