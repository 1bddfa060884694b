// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "core/json.hpp"
#include "import/nccl_cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

namespace reckon::import_detail {
namespace {

/// The document up to the last whole row: of a run that died the file ends anywhere.
std::optional<std::string> up_to_last_row(const std::string& text) {
  const std::size_t name = text.rfind("\"experiment_name\":");
  const std::size_t end = name == text.npos ? name : text.find('}', name);
  const std::size_t last =
      end != text.npos || name == text.npos ? end : text.rfind("\"experiment_name\":", name - 1);
  const std::size_t brace = last == text.npos ? last : text.find('}', last);
  return brace == text.npos ? std::nullopt : std::optional(text.substr(0, brace + 1) + "]}");
}

std::string place_of(const JsonView& view) {
  return fmt::format("{}: {}: ", view.file(), view.pointer());
}

/// What nccl-tests writes with -J FILE.
class NcclJsonReader {
public:
  NcclJsonReader(const TextLines& lines, const ImportOptions& options)
      : m_lines(lines), m_out(lines.file(), options), m_asked(asked_collective(options)) {}

  Profile read() {
    std::string whole = m_lines.text();
    if (!whole.ends_with("}\n") || !contains(whole, "\"end_time\"")) {
      if (auto part = up_to_last_row(whole)) {
        whole = std::move(*part);
        m_out.cut_off(m_lines.place(0) + "the run ended before it closed this document");
      }
    }
    const Json json = parse_json(whole, m_lines.file());
    const JsonView root(json, m_lines.file());
    program(root);
    const JsonView config = root.at("config");
    place(config);
    if (const auto blocks = config.find("blocking_collectives");
        blocks && blocks->string() == "true") {
      m_cells.set_remark("each operation was waited for (-m)");
    }
    for (const JsonView& result : root.at("results").elements()) {
      row(result);
    }
    if (const auto bounds = root.find("out_of_bounds");
        bounds && bounds->at("okay").string() != "true" && !m_marked) {
      bounds->fail("the tool found wrong values and does not say in which rows; mend what made "
                   "them and measure again");
    }
    m_cells.end_table();
    return m_out.finish("nccl-tests", m_lines.raw());
  }

private:
  void program(const JsonView& root) {
    std::string command;
    for (const JsonView& word : root.at("args").elements()) {
      command += (command.empty() ? "" : " ") + word.string();
    }
    const std::string path = command.substr(0, command.find(' '));
    const std::string name = path.substr(path.find_last_of('/') + 1);
    const Collective* const named = collective_named(name.substr(0, name.find("_perf")));
    if (m_asked != nullptr && named != nullptr && m_asked != named) {
      root.at("args").fail(fmt::format("say {}, but --collective says {}; leave --collective out",
                                       name, m_asked->name));
    }
    const Collective* const collective = m_asked != nullptr ? m_asked : named;
    if (collective == nullptr) {
      root.at("args").fail(fmt::format("do not begin with the name of a test that reckon knows; "
                                       "add --collective NAME, one of {}",
                                       collective_names()));
    }
    m_cells.set_collective(*collective);
    m_out.note("nccl-tests command", command);
    m_out.note("nccl-tests NCCL version", fmt::format("{}", root.at("nccl_version").count()));
    for (const JsonView& variable : root.at("env").elements()) {
      const std::string text = variable.string();
      if (text.starts_with("NCCL_")) {
        const std::size_t equals = std::min(text.find('='), text.size());
        m_out.note("nccl-tests " + one_line(text.substr(0, equals)),
                   text.substr(std::min(equals + 1, text.size())));
      }
    }
  }

  /// The file has an entry for each process, which may have several GPUs, one after another.
  void place(const JsonView& config) {
    const int each = config.at("nthreads").integer(1, 1024) * config.at("ngpus").integer(1, 1024);
    std::vector<NcclRank> ranks;
    const JsonView devices = config.at("devices");
    for (const JsonView& device : devices.elements()) {
      const int first = device.at("rank").integer(0, 1 << 24);
      if (first != static_cast<int>(ranks.size())) {
        device.at("rank").fail(fmt::format("is {}, but rank {} is to follow; give the file as the "
                                           "tool wrote it",
                                           first, ranks.size()));
      }
      for (int i = 0; i < each; ++i) {
        ranks.push_back({.number = first + i,
                         .group = device.at("group").integer(0, 1 << 24),
                         .host = device.at("hostname").name(),
                         .device = device.at("device").integer(0, 1 << 16) + i,
                         .address = i > 0 ? "" : pci_address(device.at("device_hex").string()),
                         .name = device.at("device_info").name()});
      }
    }
    if (ranks.empty()) {
      devices.fail("has no entries; give the file as the tool wrote it");
    }
    m_cells.ranks(place_of(devices), ranks);
  }

  void row(const JsonView& result) {
    const std::string type = result.at("type").name(), redop = result.at("redop").name();
    const std::string root = result.at("root").string();
    const NcclRow row{.bytes = result.at("size").count(),
                      .count = result.at("count").count(),
                      .type = type,
                      .redop = redop,
                      .root = trimmed(root)};
    m_cells.check_count(place_of(result), row);
    half(result, row, "out_of_place", false);
    half(result, row, "in_place", true);
  }

  void half(const JsonView& result, const NcclRow& row, const std::string& name, bool in_place) {
    const auto view = result.find(name);
    if (!view || row.bytes == 0) {
      return;
    }
    if (view->find("cpu_time")) {
      view->at("cpu_time")
          .fail("is how long processors took to start the operations; measure "
                "without -C");
    }
    NcclHalf half{.in_place = in_place, .time_us = view->at("time").non_negative()};
    if (half.time_us > 0) {
      constexpr double k_rounding = 1e-6; // six digits behind the point
      m_cells.check_rates(place_of(*view), static_cast<double>(row.bytes) / half.time_us * 1e-3,
                          std::min(0.5, k_rounding / half.time_us),
                          view->at("alg_bw").non_negative(), view->at("bus_bw").non_negative());
    }
    if (const auto wrong = view->find("nwrong")) {
      half.wrong = wrong->non_negative();
    }
    std::vector<double> times;
    if (const auto iterations = result.find(name + "_per_iter")) {
      times = iterations->at("times_us").numbers();
      const auto skipped =
          std::min<std::uint64_t>(iterations->at("skipped_iterations").count(), times.size());
      times.erase(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(skipped));
      if (std::ranges::any_of(times, [](double us) { return !(us > 0); })) {
        iterations->at("times_us").fail("has a time that is not above zero; measure again");
      }
      if (iterations->find("per_process_max_times_us")) {
        m_out.left_out("times of single processes");
      }
    }
    half.iterations_us = times;
    m_marked = !m_cells.add(place_of(*view), row, half) || m_marked;
  }

  const TextLines& m_lines;
  Collector m_out;
  NcclCells m_cells{m_out};
  const Collective* m_asked;
  bool m_marked = false; ///< whether a row has wrong values
};

} // namespace

Profile read_nccl_json(const TextLines& lines, const ImportOptions& options) {
  return NcclJsonReader(lines, options).read();
}

} // namespace reckon::import_detail
