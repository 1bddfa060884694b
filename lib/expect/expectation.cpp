// SPDX-License-Identifier: Apache-2.0
#include "expect/expectation.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "core/name_ranges.hpp"
#include "core/units.hpp"
#include "present/numbers.hpp"
#include "present/table.hpp"
#include "topology/paths.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace reckon {
namespace {

std::string usual_text(const WayCeiling& way) {
  if (!way.usual) {
    return "";
  }
  return fmt::format("{} to {}", significant(way.usual->low / 1e9, 3),
                     significant(way.usual->high / 1e9, 3));
}

Json way_json(const WayCeiling& way) {
  Json json = {
      {"way", way.way}, {"bus_bytes_per_second", way.bus_bytes_per_second}, {"by", way.by}};
  if (way.usual) {
    json["usual"] = {{"low_bus_bytes_per_second", way.usual->low},
                     {"high_bus_bytes_per_second", way.usual->high},
                     {"measured", way.usual->share.measured},
                     {"source", way.usual->share.source}};
  }
  return json;
}

/// What the values of a number of machines leave out.
std::string remarks(const Expected& first, const Style& style) {
  std::string out;
  if (!first.unknown.empty()) {
    out += "\n" +
           folded(printable("  unknown  " + first_names(first.unknown) + ": counted as unlimited"),
                  style);
  }
  if (first.ways.empty()) {
    out +=
        "\n" + folded("  A model's name has the rates of its links (--gpu), and so has the XML of "
                      "NCCL (NCCL_TOPO_DUMP_FILE) or of `lstopo` (--topology).",
                      style);
  } else if (first.lacks_gpu_links) {
    out += "\n" + folded("  No NVLink or xGMI is known here. If the GPUs have any, the values are "
                         "too low: give the text of `nvidia-smi topo -m` to `reckon expect "
                         "--topology`.",
                         style);
  }
  return out;
}

/// Sources of what is usual, each once, in the order of the tables.
std::string sources(const Expectation& expectation, const Style& style) {
  std::vector<std::string> said;
  std::string out;
  for (const Expected& row : expectation.rows) {
    for (const WayCeiling& way : row.ways) {
      if (!way.usual || std::ranges::find(said, way.usual->share.measured) != said.end()) {
        continue;
      }
      const UsualShare& share = way.usual->share;
      said.push_back(share.measured);
      out += folded(fmt::format("  {} by {}: {:.0f} to {:.0f} % of it is usual; {} ({})", way.way,
                                share.through == "port" ? "ports" : share.through, 100 * share.low,
                                100 * share.high, share.measured, share.source),
                    style);
    }
  }
  return out;
}

} // namespace

double Expected::most() const {
  double most = 0;
  for (const WayCeiling& way : ways) {
    most = std::max(most, way.bus_bytes_per_second);
  }
  return most;
}

double Expected::least_usual() const {
  double least = 0;
  for (const WayCeiling& way : ways) {
    if (way.usual) {
      least = std::max(least, way.usual->low);
    }
  }
  return least;
}

const WayCeiling* Expected::best() const {
  const WayCeiling* best = nullptr;
  for (const WayCeiling& way : ways) {
    if (way.usual && (best == nullptr || way.usual->high > best->usual->high)) {
      best = &way;
    }
  }
  return best;
}

std::vector<Expected> expected_of(const Profile& profile, const CollectiveJob& job,
                                  const std::vector<const TestedCollective*>& collectives) {
  std::vector<WayCeilings> ceilings = ceilings_of(profile, job, collectives);
  std::vector<Expected> all;
  for (std::size_t c = 0; c < collectives.size(); ++c) {
    Expected& out = all.emplace_back();
    out.collective = collectives[c]->name;
    out.machines = job.machines;
    out.ranks = job.ranks();
    out.bus_factor = collectives[c]->bus_factor(static_cast<double>(job.ranks()));
    out.unknown = std::move(ceilings[c].unknown);
    const auto format = profile.context.find("topology_format");
    out.lacks_gpu_links =
        job.gpus.size() > 1 &&
        (format == profile.context.end() || format->second != k_smi_matrix_format) &&
        lacks_gpu_links(profile.topology, job.machine);
    out.ways = std::move(ceilings[c].ways);
  }
  return all;
}

std::string way_text(const WayCeiling& ceiling) {
  return ceiling.way == "any" ? "upper bound" : ceiling.way;
}

Json to_json(const Expected& expected) {
  Json ways = Json::array();
  for (const WayCeiling& way : expected.ways) {
    ways.push_back(way_json(way));
  }
  return {{"collective", expected.collective},
          {"machines", expected.machines},
          {"ranks", expected.ranks},
          {"most_bus_bytes_per_second", expected.most()},
          {"usual_bus_bytes_per_second", expected.least_usual()},
          {"unknown", expected.unknown},
          {"lacks_gpu_links", expected.lacks_gpu_links},
          {"ways", ways}};
}

Json to_json(const Expectation& expectation) {
  Json rows = Json::array();
  for (const Expected& row : expectation.rows) {
    rows.push_back(to_json(row));
  }
  return {{"schema", "expectation"}, {"machine", expectation.machine}, {"rows", rows}};
}

std::string render(const Expectation& expectation, const Style& style) {
  std::string out;
  for (std::size_t i = 0; i < expectation.rows.size();) {
    const Expected& first = expectation.rows[i];
    out += fmt::format("{}{} of {}, {}: bus bandwidth, GB/s\n\n", out.empty() ? "" : "\n",
                       counted(first.machines, "machine"), printable(expectation.machine),
                       counted(first.ranks, "rank"));
    Table table(2, "collective|way|>at most|>usually|~limited by");
    for (; i < expectation.rows.size() && expectation.rows[i].machines == first.machines; ++i) {
      const Expected& row = expectation.rows[i];
      if (row.ways.empty()) {
        table.row(
            {row.collective, "", "", "", "nothing: links of unknown rate can take all of it"});
      }
      for (const WayCeiling& way : row.ways) {
        table.row({&way == &row.ways.front() ? row.collective : "",
                   {way_text(way), &way == row.best() ? Tone::strong : Tone::plain},
                   gb_per_s_text(way.bus_bytes_per_second),
                   usual_text(way),
                   {first_names(way.by), Tone::dim}});
      }
    }
    out += table.text(style);
    out += remarks(first, style);
  }
  if (const std::string said = sources(expectation, style); !said.empty()) {
    out += "\nUsual, for long messages:\n" + said;
  }
  return out;
}

Requirements requirements_of(const Expectation& expectation, std::uint64_t bytes) {
  constexpr double k_without_source = 0.5;
  constexpr std::uint64_t k_long = 128ULL << 20U;
  if (bytes < k_long) {
    fail(ErrorKind::usage,
         fmt::format("--message-bytes is {}: what is usual is known of long messages; give {} or "
                     "more",
                     to_text(Bytes(bytes)), to_text(Bytes(k_long))));
  }
  Requirements out;
  out.name = "expected of " + expectation.machine;
  for (const Expected& row : expectation.rows) {
    const double usual = row.least_usual(),
                 rate = usual > 0 ? usual : k_without_source * row.most();
    if (rate <= 0) {
      continue;
    }
    RequiredCell& cell = out.cells.emplace_back();
    cell.key.test = "nccl_" + row.collective;
    cell.key.bytes = bytes;
    cell.key.sources = static_cast<int>(row.ranks);
    cell.at_most = static_cast<double>(bytes) * row.bus_factor / rate;
    cell.remedy = fmt::format("at least {} GB/s of bus bandwidth are expected of {}; see which way "
                              "NCCL takes with NCCL_DEBUG=INFO, and `reckon check` the machine",
                              gb_per_s_text(rate), counted(row.ranks, "rank"));
  }
  return out;
}

std::string_view name_of(Judgement judgement) {
  constexpr std::array<std::string_view, 5> k_names{"unknown", "normal", "low", "description",
                                                    "wrong_values"};
  return k_names.at(static_cast<std::size_t>(judgement));
}

Judgement judged(const Expected& expected, double bus_bytes_per_second) {
  if (expected.most() <= 0) {
    return Judgement::unknown;
  }
  if (bus_bytes_per_second > expected.most() * (1 + k_rate_tolerance)) {
    return Judgement::description;
  }
  if (expected.best() == nullptr) {
    return Judgement::unknown;
  }
  const WayCeiling& best = *expected.best();
  const bool normal = std::ranges::any_of(expected.ways, [&](const WayCeiling& way) {
    // Rings run everywhere. Between machines whose switches sum they mean that these do not.
    const bool counts = way.usual && (way.way == best.way || way.way == "nvls_tree" ||
                                      (way.way == "ring" && best.way != "nvls_tree"));
    return counts && bus_bytes_per_second >= way.usual->low * (1 - k_rate_tolerance);
  });
  return normal ? Judgement::normal : Judgement::low;
}

} // namespace reckon
