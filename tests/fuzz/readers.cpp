// SPDX-License-Identifier: Apache-2.0
//
// Readers of files and of words of the command line.
#include "target.hpp"

#include "compare/comparison.hpp"
#include "core/csv.hpp"
#include "core/json.hpp"
#include "core/shape.hpp"
#include "core/units.hpp"
#include "discover/smbios.hpp"
#include "discover/topology_file.hpp"
#include "documents/json.hpp"
#include "documents/measured_csv.hpp"
#include "documents/requirements.hpp"
#include "documents/safetensors.hpp"
#include "import/astra_workload.hpp"
#include "import/import.hpp"
#include "import/trace_workload.hpp"
#include "planning/prices.hpp"
#include "present/document_text.hpp"
#include "settings/settings.hpp"
#include "simulate/equal_shares.hpp"
#include "support/example_documents.hpp"
#include "unit/settings/machine.hpp"
#include "verdict/verdict.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <iterator>
#include <utility>

namespace reckon::fuzz {
namespace {

/// The name of every file. That of a rank's record ends in its number.
const std::string k_file = "rank_0";

/// As value_or_refusal(), of a reader whose messages name the file first.
template <class Read>
auto read_or_refusal(Read read) {
  return value_or_refusal(read, {ErrorKind::input}, k_file);
}

/// What was admitted once is admitted again and stays the same. One in eight, by its text, is also
/// compared with itself, shown and judged, which takes longer. (Bytes that are not UTF-8 become
/// U+FFFD when it is written.)
void check_document(const Document& document) {
  const std::string text = canonical_text(document);
  const auto again =
      read_or_refusal([&] { return document_from_json(parse_json(text, k_file), k_file); });
  if (!again || canonical_text(*again) != text) {
    broken("a document changes when it is written and read");
  }
  if (std::hash<std::string>()(text) % 8 != 0) {
    return;
  }
  if (!compare(*again, *again).same()) {
    broken("a document differs from itself");
  }
  static_cast<void>(render(document, Style{}));
  static_cast<void>(csv(document));
  if (const auto* const profile = std::get_if<Profile>(&document)) {
    static_cast<void>(judge(*profile));
  }
}

template <class Read>
bool check_document_or_refusal(Read read) {
  const auto document = read_or_refusal([&] { return Document(read()); });
  if (document) {
    check_document(*document);
  }
  return document.has_value();
}

bool read_document_text(std::string_view text) {
  return check_document_or_refusal(
      [&] { return document_from_json(parse_json(text, k_file), k_file); });
}

std::vector<std::string> example_texts() {
  return {canonical_text(test::example_profile()), canonical_text(test::example_workload()),
          canonical_text(test::example_roles()), canonical_text(test::example_plan()),
          canonical_text(test::example_report())};
}

bool read_requirements_text(std::string_view text) {
  const auto read = [](std::string_view of) {
    return read_or_refusal([&] { return requirements_from_json(parse_json(of, k_file), k_file); });
  };
  const auto requirements = read(text);
  if (requirements) {
    if (read(canonical(to_json(*requirements))) != requirements) {
      broken("requirements change when they are written and read");
    }
    VerdictOptions options;
    options.requirements = &*requirements;
    static_cast<void>(judge(test::example_profile(), options));
  }
  return requirements.has_value();
}

bool read_prices_text(std::string_view text) {
  const std::string path = file_with("prices.json", text);
  const auto prices = value_or_refusal([&] { return read_prices(path); });
  if (prices) {
    if (!(prices->worker > 0)) {
      broken("a machine that costs nothing");
    }
    value_or_refusal([&] { return price_of_step(test::example_plan(), *prices); });
  }
  return prices.has_value();
}

// --- tables --------------------------------------------------------------------------------------

int read_all_lines(std::string_view text) {
  CsvReader reader(text, k_file);
  std::size_t fields = 0, line = 0;
  while (const auto next = reader.next()) {
    if (next->empty() || (fields != 0 && next->size() != fields) || reader.line() <= line) {
      broken("a line with other fields than the header, or out of order");
    }
    fields = next->size();
    line = reader.line();
    for (const std::string& field : *next) {
      if (const auto number = finite_number(field); number && !std::isfinite(*number)) {
        broken("a number that is not finite");
      }
    }
  }
  return 0;
}

void check_points(const std::vector<CurvePoint>& points) {
  if (points.empty()) {
    broken("a curve without a point");
  }
  double last = -1;
  for (const CurvePoint& point : points) {
    if (!(point.bytes > last) || !(point.seconds > 0) || !std::isfinite(point.seconds)) {
      broken("a curve whose sizes do not ascend, or with an invalid time");
    }
    last = point.bytes;
  }
}

void check_matrix(const BandwidthMatrix& matrix) {
  if (matrix.names.size() < 2 || matrix.bytes_per_s.size() != matrix.names.size()) {
    broken("a matrix of another shape");
  }
  for (std::size_t i = 0; i < matrix.names.size(); ++i) {
    if (matrix.bytes_per_s[i].size() != matrix.names.size() || matrix.bytes_per_s[i][i]) {
      broken("a matrix that is not square, or with a diagonal");
    }
  }
}

bool read_tables(std::string_view text) {
  const auto lines = read_or_refusal([&] { return read_all_lines(text); });
  for (const char* column : {"seconds", "factor"}) {
    if (const auto points = read_or_refusal([&] { return curve_from_csv(text, k_file, column); })) {
      check_points(*points);
    }
  }
  if (const auto matrix = read_or_refusal([&] { return matrix_from_csv(text, k_file); })) {
    check_matrix(*matrix);
  }
  const bool workload = check_document_or_refusal([&] { return workload_from_csv(text, k_file); });
  return lines || workload;
}

bool read_safetensors(std::string_view bytes) {
  return check_document_or_refusal([&] {
    std::vector<std::string> doubts;
    return workload_from_safetensors_header(bytes, k_file, doubts);
  });
}

// --- other programs' files -----------------------------------------------------------------------

/// Of a program's output, as `reckon import` reads it: with these options, and with none.
Target import_target(const std::string& format, const ImportOptions& said = {}) {
  const auto run = [format, said](std::string_view text) {
    bool admitted = false;
    for (ImportOptions options : {ImportOptions{}, said}) {
      options.format = format;
      const auto profile = value_or_refusal(
          [&] { return profile_from_json(to_json(import_text(text, k_file, options)), k_file); },
          {ErrorKind::input, ErrorKind::usage});
      admitted = admitted || profile;
      if (profile) {
        warn_of_spread(*profile);
        check_document(*profile);
        value_or_refusal([&] { // the same file again is refused, or is more samples
          Profile base = *profile;
          merge_import(base, *profile);
          return 0;
        });
      }
    }
    return admitted;
  };
  const auto seeds = [format] {
    std::vector<std::string> texts = files_below("tests/golden/import");
    std::erase_if(texts, [&](const std::string& text) {
      const auto found = read_or_refusal([&] { return recognise_format(text, k_file); });
      return !(found == format || (format.empty() && found) ||
               (format == "flight-recorder" && text.starts_with('\x80')));
    });
    return texts;
  };
  return {"import" + (format.empty() ? "" : "-" + format), run, seeds};
}

std::vector<Target> import_targets() {
  std::vector<Target> targets{import_target(""),
                              import_target("nccl-tests", {.collective = "all_reduce", .ranks = 8}),
                              import_target("osu", {.ranks = 4}),
                              import_target("perftest", {.machine = "m0,m1"}),
                              import_target("nccom-test", {.collective = "all_gather", .ranks = 8}),
                              import_target("ucx_perftest", {.machine = "m0,m1"}),
                              import_target("ucc_perftest", {.ranks = 8})};
  for (const char* format : {"nvbandwidth", "p2p", "mlc", "transferbench", "rocm_bandwidth_test",
                             "inspector", "ncclras", "flight-recorder", "kineto"}) {
    targets.push_back(import_target(format));
  }
  return targets;
}

std::vector<std::string> traces() {
  std::vector<std::string> texts = files_below("tests/golden/import/records");
  std::erase_if(texts,
                [](const std::string& text) { return text.find("traceEvents") == text.npos; });
  return texts;
}

bool read_trace_workload(std::string_view text) {
  return check_document_or_refusal(
      [&] { return workload_from_json(to_json(workload_from_trace(text, k_file)), k_file); });
}

bool read_astra(std::string_view text) {
  return check_document_or_refusal([&] {
    return workload_from_json(to_json(read_astra_workload(text, k_file).workload), k_file);
  });
}

bool read_hosts_text(std::string_view text) {
  const auto hosts = read_or_refusal([&] { return read_hosts(text, k_file); });
  const auto nameless = [](const auto& host) { return host.first.empty() || host.second.empty(); };
  if (hosts && std::ranges::any_of(*hosts, nameless)) {
    broken("a machine without a name");
  }
  return hosts.has_value();
}

// --- machines ------------------------------------------------------------------------------------

Profile profile_of(Topology topology) {
  Profile profile;
  profile.name = "fuzz";
  profile.source = "made up";
  profile.machines = {{.id = "m0"}};
  profile.topology = std::move(topology);
  return profile;
}

bool read_topology(std::string_view text) {
  const auto recorded =
      read_or_refusal([&] { return topology_from_text(std::string(text), k_file); });
  return recorded && check_document_or_refusal([&] {
           return profile_from_json(to_json(profile_of(recorded->topology)), k_file);
         });
}

/// A machine's files, of which the input replaces some: byte 255, the number of the file, its
/// content.
class MachineFiles {
public:
  MachineFiles() {
    for (const auto& [path, text] : m_machine.files) {
      m_files.emplace_back(path, text);
    }
    for (const auto& [address, config] : m_machine.configs) {
      m_files.emplace_back("/sys/bus/pci/devices/" + address + "/config", config.bytes());
    }
    m_files.emplace_back("/sys/firmware/dmi/tables/DMI", "");
  }
  [[nodiscard]] SystemFiles with(std::string_view input) const {
    SystemFiles files = m_machine.in_memory();
    while (!input.empty()) {
      const std::size_t end = std::min(input.find('\xff', 1), input.size());
      const std::string_view piece = input.substr(0, end);
      input.remove_prefix(end);
      if (piece.size() > 1) {
        const auto number = static_cast<unsigned char>(piece[1]) % m_files.size();
        files.put(m_files[number].first, std::string(piece.substr(2)));
      }
    }
    return files;
  }
  [[nodiscard]] std::vector<std::string> seeds() const {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < m_files.size(); ++i) {
      texts.push_back(std::string("\xff") + static_cast<char>(i) + m_files[i].second);
    }
    return texts;
  }

private:
  test::FakeMachine m_machine;
  std::vector<std::pair<std::string, std::string>> m_files;
};

const MachineFiles& machine_files() {
  static const MachineFiles files;
  return files;
}

bool read_machine_files(std::string_view bytes) {
  static const ErrorCounts before =
      count_errors(test::FakeMachine::topology(), machine_files().with(""));
  const SystemFiles files = machine_files().with(bytes);
  Profile profile = profile_of(test::FakeMachine::topology());
  profile.settings = read_settings(profile.topology, files);
  for (Setting& setting : errors_while_measured(before, count_errors(profile.topology, files))) {
    profile.settings.push_back(std::move(setting));
  }
  // A machine cannot be told to say something else: whatever its files hold can be written. One in
  // eight is also read again, which takes longer than all the rest.
  const Document document = profile_from_json(to_json(profile), k_file);
  if (std::hash<std::string_view>()(bytes) % 8 == 0) {
    check_document(document);
  }
  return true;
}

bool read_memory_modules(std::string_view table) {
  const std::string modules = memory_modules(table);
  if (one_line(modules) != modules) {
    broken("the names of memory modules have control characters");
  }
  return !modules.empty();
}

// --- reckon-sim ----------------------------------------------------------------------------------

SimGraph graph_from(std::string_view text) {
  return read_graph([&](char* to, std::size_t most) {
    const std::size_t n = std::min(most, text.size());
    std::memcpy(to, text.data(), n);
    text.remove_prefix(n);
    return n;
  });
}

bool read_simulation(std::string_view text) {
  const auto graph = value_or_refusal([&] { return graph_from(text); });
  if (!graph) {
    return false;
  }
  const auto text_of = [](const SimGraph& of) {
    std::string written;
    write_graph(of, [&](std::string_view piece) { written += piece; });
    return written;
  };
  const std::string written = text_of(*graph);
  if (text_of(graph_from(written)) != written) {
    broken("a graph changes when it is written and read");
  }
  if (stations_are_apart(*graph)) {
    const auto engine = make_equal_shares_engine(*graph);
    const auto played =
        value_or_refusal([&] { return play_graph(*graph, *engine, [](std::uint64_t) {}); });
    if (played && !(played->seconds >= 0)) {
      broken("a play that takes less than no time");
    }
  }
  return true;
}

// --- words of the command line -------------------------------------------------------------------

bool read_words(std::string_view text) {
  bool admitted = false;
  const auto word = [&](auto read) {
    auto value = value_or_refusal(read, {ErrorKind::usage});
    admitted = admitted || value;
    return value;
  };
  if (const auto bytes = word([&] { return parse_bytes(text, "--x"); })) {
    static_cast<void>(to_text(*bytes));
  }
  if (const auto rate = word([&] { return parse_bandwidth(text, "--x"); })) {
    if (!(rate->as_bytes_per_s() > 0) || !std::isfinite(rate->as_bytes_per_s())) {
      broken("an invalid bandwidth");
    }
    static_cast<void>(to_text(*rate));
  }
  if (const auto time = word([&] { return parse_seconds(text, "--x"); })) {
    if (!(time->count() >= 0) || !std::isfinite(time->count())) {
      broken("an invalid time");
    }
    static_cast<void>(to_text(*time));
  }
  if (const auto part = word([&] { return parse_fraction(text, "--x"); })) {
    if (!(*part >= 0) || !std::isfinite(*part)) {
      broken("an invalid fraction");
    }
  }
  if (const auto factor = word([&] { return parse_factor(text, "--x", 0.01); })) {
    if (!(*factor >= 0.01 && *factor <= 1e6)) {
      broken("a factor outside its limits");
    }
  }
  if (const auto shape = word([&] { return parse_shape(std::string(text)); })) {
    const std::uint64_t nodes = (*shape)[0] * (*shape)[1] * (*shape)[2];
    if (nodes < 2 || nodes > 1'000'000) {
      broken("a torus of no size");
    }
  }
  return admitted;
}

} // namespace

std::vector<Target> reader_targets() {
  std::vector<Target> targets{
      {"documents", read_document_text, example_texts, true},
      {"requirements", read_requirements_text,
       [] { return std::vector{canonical(to_json(test::example_requirements()))}; }, true},
      {"prices", read_prices_text, {}, true},
      {"tables", read_tables},
      {"safetensors", read_safetensors},
      {"trace-workload", read_trace_workload, traces, true},
      {"astra", read_astra},
      {"hosts", read_hosts_text},
      {"topology", read_topology, [] { return files_below("tests/golden/topology/machines"); }},
      {"machine-files", read_machine_files, [] { return machine_files().seeds(); }},
      {"memory-modules", read_memory_modules},
      {"simulation", read_simulation},
      {"words", read_words},
  };
  std::ranges::move(import_targets(), std::back_inserter(targets));
  return targets;
}

} // namespace reckon::fuzz
