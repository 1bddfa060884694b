// SPDX-License-Identifier: Apache-2.0
#include "import/records/job.hpp"

#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/json.hpp"
#include "core/units.hpp"
#include "documents/named_ranks.hpp"
#include "stats/summary.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <filesystem>
#include <set>
#include <tuple>

namespace reckon::import_detail {
namespace {

/// Clocks agree when the ranks' ends of a collective differ by at most this share of its time.
constexpr double k_clocks_agree = 0.1;

/// Cells keep at most this many samples, evenly spread over the job.
constexpr std::size_t k_most_samples = 5000;

/// Whether every rank waits for every other: none can end before the last has arrived.
bool all_wait(const Collective& collective) {
  return !collective.has_root;
}

const RecordedCall* first_to_end(const std::vector<const RecordedCall*>& calls) {
  return *std::ranges::min_element(calls, {}, &RecordedCall::duration_s);
}

double recorded_end_s(const RecordedCall& call) {
  return *call.start_s + call.duration_s;
}

/// At most k_most_samples of them, in their order.
std::vector<double> thinned_samples(const std::vector<double>& samples) {
  if (samples.size() <= k_most_samples) {
    return samples;
  }
  std::vector<double> kept;
  for (std::size_t i = 0; i < k_most_samples; ++i) {
    kept.push_back(samples[i * samples.size() / k_most_samples]);
  }
  return kept;
}

} // namespace

/// Of one communicator.
struct Job::Clocks {
  bool known = false; ///< whether all its calls have a start, and some can be compared
  bool agree = false;
  double differ_s = 0; ///< the largest difference of a rank's clock from the others'
};

std::size_t Job::process(JobProcess process) {
  m_processes.push_back(std::move(process));
  return m_processes.size() - 1;
}

std::size_t Job::communicator(const std::string& id, const RecordedCommunicator& made) {
  const auto [at, added] = m_communicator_ids.try_emplace(id, m_communicators.size());
  if (added) {
    m_communicators.push_back(made);
  }
  return at->second;
}

/// A process has the rank that it has in its largest communicator, if no two have the same; else a
/// number, by host and rank.
void Job::number_processes() {
  std::vector<const RecordedCall*> largest(m_processes.size());
  for (const RecordedCall& call : m_calls) {
    const RecordedCall*& known = largest[call.process];
    if (known == nullptr ||
        m_communicators[call.communicator].ranks > m_communicators[known->communicator].ranks) {
      known = &call;
    }
  }
  std::set<std::uint64_t> taken;
  bool unique = true;
  std::vector<JobProcess*> order;
  for (std::size_t i = 0; i < m_processes.size(); ++i) {
    JobProcess& process = m_processes[i];
    if (!process.rank && largest[i] != nullptr) {
      process.rank = largest[i]->rank;
    }
    unique = unique && process.rank && taken.insert(*process.rank).second;
    order.push_back(&process);
  }
  if (!unique) {
    std::ranges::stable_sort(order, {}, [](const JobProcess* p) {
      return std::tuple(p->host, p->rank.value_or(0), p->file);
    });
    for (std::size_t i = 0; i < order.size(); ++i) {
      order[i]->rank = i;
    }
    note("ranks", "numbers in the order of hosts: no communicator has all processes of the job");
  }
}

/// Members of the communicators that the record does not list.
void Job::name_members() {
  std::vector<std::set<std::uint64_t>> members(m_communicators.size());
  for (const RecordedCall& call : m_calls) {
    members[call.communicator].insert(*m_processes[call.process].rank);
  }
  for (std::size_t i = 0; i < m_communicators.size(); ++i) {
    if (m_communicators[i].members.empty()) {
      m_communicators[i].members.assign(members[i].begin(), members[i].end());
    }
  }
}

/// The calls of all ranks that belong together. A number that comes again at a rank (after a
/// restart) belongs to the others' next of that number.
std::vector<Job::Together> Job::together() {
  using Number = std::tuple<std::size_t, std::string_view, std::uint64_t>;
  std::map<std::pair<Number, std::size_t>, std::size_t> repeats; // by rank
  std::map<std::pair<Number, std::size_t>, Together> all;        // by repeat
  for (const RecordedCall& call : m_calls) {
    const Number number{call.communicator, call.collective->name, call.sequence};
    all[{number, repeats[{number, call.rank}]++}].push_back(&call);
  }
  std::vector<Together> out;
  for (auto& [number, calls] : all) {
    out.push_back(std::move(calls));
  }
  return out;
}

/// A collective in which all wait for all ends at all ranks at nearly the same time, so clocks are
/// compared by its ends. One host has one clock.
std::vector<Job::Clocks> Job::clocks_of(const std::vector<Together>& all) const {
  std::vector<Clocks> out(m_communicators.size(), {.known = true});
  std::vector<std::map<std::uint64_t, std::vector<double>>> off(m_communicators.size());
  std::vector<std::vector<double>> times(m_communicators.size());
  for (const Together& calls : all) {
    const std::size_t communicator = calls.front()->communicator;
    if (!std::ranges::all_of(calls, [](const RecordedCall* c) { return c->start_s.has_value(); })) {
      out[communicator].known = false;
      continue;
    }
    if (!all_wait(*calls.front()->collective) || calls.size() < 2) {
      continue;
    }
    std::vector<double> ends;
    std::ranges::transform(calls, std::back_inserter(ends),
                           [](const RecordedCall* c) { return recorded_end_s(*c); });
    const double middle = median(ends);
    for (const RecordedCall* call : calls) {
      off[communicator][call->rank].push_back(recorded_end_s(*call) - middle);
    }
    times[communicator].push_back(first_to_end(calls)->duration_s);
  }
  std::vector<std::set<std::string>> hosts(m_communicators.size());
  for (const RecordedCall& call : m_calls) {
    hosts[call.communicator].insert(m_processes[call.process].host);
  }
  for (std::size_t i = 0; i < out.size(); ++i) {
    const bool one_clock = hosts[i].size() == 1 && !hosts[i].begin()->empty();
    for (const auto& [rank, differences] : off[i]) {
      out[i].differ_s = std::max(out[i].differ_s, std::abs(median(differences)));
    }
    out[i].known = out[i].known && !times[i].empty();
    out[i].agree =
        out[i].known && (one_clock || out[i].differ_s <= k_clocks_agree * median(times[i]));
  }
  return out;
}

namespace {

/// The time of a collective without the wait for the last rank.
double time_without_wait(const std::vector<const RecordedCall*>& calls, bool clocks_agree) {
  if (!clocks_agree) {
    return first_to_end(calls)->duration_s;
  }
  double last = -std::numeric_limits<double>::infinity(), end = last;
  for (const RecordedCall* call : calls) {
    last = std::max(last, *call->start_s);
    end = std::max(end, recorded_end_s(*call));
  }
  return end - last;
}

/// Samples of a cell: of collectives that all ranks recorded, and of others.
struct JobSamples {
  std::vector<double> whole, partial;
  std::size_t most_ranks = 0; ///< that recorded one of the others
  bool root_need_not_wait = false;
};

/// How often a process was the last to arrive at the collectives of a communicator, and by how
/// much.
struct LateRank {
  std::size_t calls = 0, last = 0, ranks = 0;
  std::vector<double> by_s;

  [[nodiscard]] double by_chance() const { return double(calls) / double(ranks); }
  /// Logarithm of a bound on the chance to be last so often among ranks that are alike: at least k
  /// of n with p each have exp(-n D(k/n || p)) (Hoeffding, 1963).
  [[nodiscard]] double log_chance() const {
    const double n = double(calls), share = double(last) / n, p = 1 / double(ranks);
    const double rest = share < 1 ? (1 - share) * std::log((1 - share) / (1 - p)) : 0;
    return share <= p ? 0 : -n * (share * std::log(share / p) + rest);
  }
};

/// The rank that was the last to arrive, and by how much. Null where two were.
std::pair<const RecordedCall*, double> last_to_arrive(std::vector<const RecordedCall*> calls,
                                                      bool clocks_agree) {
  const auto lateness = [&](const RecordedCall* call) {
    return clocks_agree ? *call->start_s : -call->duration_s;
  };
  std::ranges::sort(calls, {}, lateness);
  const double last = lateness(calls.back());
  if (calls.size() < 2 || lateness(calls[calls.size() - 2]) >= last) {
    return {nullptr, 0};
  }
  std::vector<double> others;
  std::transform(calls.begin(), calls.end() - 1, std::back_inserter(others), lateness);
  return {calls.back(), last - median(others)};
}

} // namespace

void Job::add_cells(Collector& out, const std::vector<Together>& all,
                    const std::vector<Clocks>& clocks) const {
  std::set<std::string> hosts;
  std::ranges::transform(m_processes, std::inserter(hosts, hosts.end()), &JobProcess::host);
  const bool one_host = hosts.size() == 1 && !hosts.begin()->empty();
  std::map<CellKey, JobSamples> cells;
  for (const Together& calls : all) {
    const RecordedCall& call = *calls.front();
    const RecordedCommunicator& communicator = m_communicators[call.communicator];
    const std::size_t known = communicator.members.size();
    CellKey key{.test = fmt::format("job_{}", call.collective->name),
                .from = one_host ? out.machine() : "",
                .bytes = call.bytes,
                .sources = static_cast<int>(communicator.ranks),
                .transport = fmt::format(
                    "{} ranks {}{}", communicator.transport, rank_list(communicator.members),
                    known < communicator.ranks ? fmt::format(" of {}", communicator.ranks) : "")};
    if (const RecordedType* const type = recorded_type(call.dtype)) {
      name_type(key, type->name, "");
    }
    JobSamples& samples = cells[key];
    const bool agree = clocks[call.communicator].agree;
    const double time = time_without_wait(calls, agree);
    if (calls.size() == communicator.ranks) {
      samples.whole.push_back(time);
      samples.root_need_not_wait |= !agree && !all_wait(*call.collective);
    } else {
      samples.partial.push_back(time);
      samples.most_ranks = std::max(samples.most_ranks, calls.size());
    }
  }
  for (auto& [key, samples] : cells) {
    const bool whole = !samples.whole.empty();
    const std::vector<double>& chosen = whole ? samples.whole : samples.partial;
    const std::string doubt =
        !whole ? fmt::format("records of {} of {} ranks: contains waits for others",
                             samples.most_ranks, key.sources)
        : samples.root_need_not_wait
            ? "the least over the ranks, of which those that only send do not wait for others"
            : "";
    if (chosen.size() > k_most_samples) {
      out.note("samples", fmt::format("cells keep {} of more, evenly spread", k_most_samples));
    }
    out.measured(key, thinned_samples(chosen), doubt);
  }
}

std::string Job::how_waits_are_taken_out(const std::vector<Together>& all,
                                         const std::vector<Clocks>& clocks) const {
  std::map<std::size_t, bool> whole; // communicators with records of all ranks
  for (const Together& calls : all) {
    const std::size_t of = calls.front()->communicator;
    whole[of] = whole[of] || calls.size() == m_communicators[of].ranks;
  }
  std::size_t agree = 0, differ = 0, partial = 0;
  double most_s = 0;
  for (const auto& [communicator, is_whole] : whole) {
    const Clocks& one = clocks[communicator];
    partial += is_whole ? 0 : 1;
    agree += is_whole && one.agree ? 1 : 0;
    differ += is_whole && one.known && !one.agree ? 1 : 0;
    most_s = one.agree ? most_s : std::max(most_s, one.differ_s);
  }
  std::vector<std::string> ways;
  const auto add = [&](std::string_view how, std::size_t count, const std::string& why) {
    if (count > 0) {
      ways.push_back(
          fmt::format("{} in {} of {} communicators, {}", how, count, whole.size(), why));
    }
  };
  add("taken out by the last arrival", agree, "whose clocks agree");
  add("taken out by the minimum over ranks", differ,
      fmt::format("whose clocks differ by up to {}", to_text(Seconds(most_s))));
  add("taken out by the minimum over ranks", whole.size() - agree - differ - partial,
      "without arrivals to compare");
  add("not taken out", partial, "of which some ranks' records are not here");
  return fmt::format("{}", fmt::join(ways, "; "));
}

void Job::name_late_rank(Collector& out, const std::vector<Together>& all,
                         const std::vector<Clocks>& clocks) const {
  std::map<std::pair<std::size_t, std::size_t>, LateRank> places; // by communicator and process
  for (const Together& calls : all) {
    const RecordedCall& call = *calls.front();
    const std::size_t ranks = m_communicators[call.communicator].ranks;
    if (calls.size() < 2 || calls.size() != ranks || !all_wait(*call.collective)) {
      continue;
    }
    for (const RecordedCall* one : calls) {
      LateRank& late = places[{call.communicator, one->process}];
      late.ranks = ranks;
      ++late.calls;
    }
    const auto [last, by_s] = last_to_arrive(calls, clocks[call.communicator].agree);
    if (last != nullptr) {
      LateRank& late = places[{call.communicator, last->process}];
      ++late.last;
      late.by_s.push_back(by_s);
    }
  }
  const auto most = std::ranges::min_element(
      places, {}, [](const auto& place) { return place.second.log_chance(); });
  if (most == places.end() || most->second.last == 0) {
    return;
  }
  const auto& [place, late] = *most;
  const bool stands_out = late.log_chance() + std::log(places.size()) < std::log(0.01);
  out.note(k_late_rank,
           fmt::format("{}{}: last in {} of {} collectives of ranks {} ({:.3g} by chance), by {} "
                       "(median)",
                       stands_out ? "" : "none stands out; most often ", rank_text(place.second),
                       late.last, late.calls, rank_list(m_communicators[place.first].members),
                       late.by_chance(), to_text(Seconds(median(late.by_s)))));
}

/// Counts of calls that should be equal at all ranks of a communicator.
void Job::name_who_is_behind(Collector& out) const {
  std::map<std::pair<std::size_t, std::string>, std::vector<const RecordedProgress*>> groups;
  for (const RecordedProgress& progress : m_progress) {
    groups[{progress.communicator, progress.what}].push_back(&progress);
  }
  std::vector<std::string> behind;
  for (const auto& [group, ranks] : groups) {
    const auto [least, most] = std::ranges::minmax_element(ranks, {}, &RecordedProgress::calls);
    if ((*least)->calls == (*most)->calls) {
      continue;
    }
    std::vector<std::uint64_t> slow;
    for (const RecordedProgress* one : ranks) {
      if (one->calls == (*least)->calls) {
        slow.push_back(one->rank);
      }
    }
    behind.push_back(fmt::format("rank {}: {} {} of {}, others {}", rank_list(slow),
                                 (*least)->calls, group.second, m_communicators[group.first].name,
                                 (*most)->calls));
  }
  constexpr std::size_t k_most = 8;
  if (behind.size() > k_most) {
    behind.resize(k_most);
    behind.emplace_back("and more");
  }
  out.note(k_behind, behind.empty() ? "none" : fmt::format("{}", fmt::join(behind, "; ")));
}

std::string Job::rank_text(std::size_t process) const {
  const JobProcess& p = m_processes[process];
  return p.host.empty() ? fmt::format("rank {}", *p.rank)
                        : fmt::format("rank {} ({})", *p.rank, p.host);
}

Profile Job::profile(const std::vector<ToolOutput>& outputs, const ImportOptions& options) {
  const std::string file =
      outputs.size() == 1 ? outputs.front().file
                          : fmt::format("{} and {} more", outputs.front().file, outputs.size() - 1);
  number_processes();
  name_members();
  Collector out(file, options);
  std::map<std::uint64_t, std::string> by_rank;
  for (const JobProcess& process : m_processes) {
    by_rank[*process.rank] = process.host;
  }
  std::vector<std::string> hosts;
  for (const auto& [rank, host] : by_rank) {
    if (!host.empty() && std::ranges::count(hosts, host) == 0) {
      hosts.push_back(host);
    }
  }
  out.machines(hosts);
  const std::vector<Together> all = together();
  const std::vector<Clocks> clocks = clocks_of(all);
  add_cells(out, all, clocks);
  if (!all.empty()) {
    out.note("wait for the last rank", how_waits_are_taken_out(all, clocks));
  }
  name_late_rank(out, all, clocks);
  if (!m_progress.empty()) {
    name_who_is_behind(out);
    out.needs_no_cell();
  }
  for (const auto& [name, text] : m_notes) {
    out.note(name, text);
  }
  for (const auto& [why, count] : m_left_out) {
    out.left_out(fmt::format("{} {}", count, why));
  }
  std::set<std::string> digests; // in any order of the files
  for (const ToolOutput& output : outputs) {
    if (!digests.insert(digest_of(output.text)).second) {
      fail(ErrorKind::input,
           fmt::format(
               "{}: another of the files has the same content; give the records of each rank once",
               output.file));
    }
  }
  Profile profile = out.finish(m_title, fmt::format("{}", fmt::join(digests, "\n")), m_takes);
  for (const ToolOutput& output : outputs) {
    profile.name = common_name(profile.name, std::filesystem::path(output.file).stem().string());
  }
  return profile;
}

const Collective* recorded_collective(std::string_view name) {
  const auto letters_of = [](std::string_view text) {
    std::string letters;
    for (const char c : text) {
      if (std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '2') {
        letters += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      }
    }
    return letters;
  };
  const std::string letters = letters_of(name);
  // The first that the name has: "reduce" is a part of others.
  for (const Collective& known : tested_collectives()) {
    if (known.name != "sendrecv" && contains(letters, letters_of(known.name))) {
      return &known;
    }
  }
  return contains(letters, "all2all") ? collective_named("alltoall") : nullptr;
}

const RecordedType* recorded_type(std::string_view recorded) {
  static constexpr std::array<RecordedType, 12> k_types{{{"float|Float", "fp32", 4},
                                                         {"c10::Half|Half", "fp16", 2},
                                                         {"c10::BFloat16|BFloat16", "bf16", 2},
                                                         {"double|Double", "float64", 8},
                                                         {"long int|Long", "int64", 8},
                                                         {"int|Int", "int32", 4},
                                                         {"Short", "int16", 2},
                                                         {"signed char|Char", "int8", 1},
                                                         {"unsigned char|Byte", "uint8", 1},
                                                         {"Bool", "bool", 1},
                                                         {"Float8_e4m3fn", "fp8e4m3", 1},
                                                         {"Float8_e5m2", "fp8e5m2", 1}}};
  const auto at = std::ranges::find_if(k_types, [&](const RecordedType& type) {
    return std::ranges::count(split(type.recorded, "|"), recorded) > 0;
  });
  return at == k_types.end() ? nullptr : &*at;
}

std::string rank_list(std::vector<std::uint64_t> ranks) {
  std::sort(ranks.begin(), ranks.end());
  std::string out;
  for (std::size_t i = 0; i < ranks.size();) {
    std::size_t end = i + 1; // of a stretch of equal steps
    while (end < ranks.size() && ranks[end] - ranks[end - 1] == ranks[i + 1] - ranks[i]) {
      ++end;
    }
    const std::uint64_t step = end - i < 3 ? 1 : ranks[i + 1] - ranks[i];
    end = end - i < 3 ? i + (end - i == 2 && ranks[i + 1] == ranks[i] + 1 ? 2 : 1) : end;
    out += fmt::format("{}{}", out.empty() ? "" : ",", ranks[i]);
    out += end - i > 1 ? fmt::format("-{}", ranks[end - 1]) : "";
    out += step > 1 ? fmt::format(":{}", step) : "";
    i = end;
  }
  constexpr std::size_t k_longest = 100;
  return out.size() <= k_longest
             ? out
             : fmt::format("{}_of_{}", ranks.size(), digest_of(out).substr(7, 12));
}

std::uint64_t recorded_bytes(const JsonView& sizes, const JsonView& types) {
  const std::vector<JsonView> shapes = sizes.elements(), names = types.elements();
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < std::min(shapes.size(), names.size()); ++i) {
    const RecordedType* const type = recorded_type(names[i].string());
    std::uint64_t bytes = type == nullptr ? 0 : type->bytes;
    for (const std::uint64_t extent : shapes[i].counts()) {
      bytes *= extent;
    }
    sum += bytes;
  }
  return sum;
}

std::vector<std::uint64_t> recorded_ranks(const JsonView& text) {
  const Json list = parse_json(text.string(), fmt::format("{}: {}", text.file(), text.pointer()));
  return JsonView(list, text.file()).counts();
}

std::optional<std::uint64_t> rank_in_name(const std::string& file) {
  const std::string name = std::filesystem::path(file).stem().string();
  const std::size_t end = name.find_last_of("0123456789");
  if (end == name.npos) {
    return std::nullopt;
  }
  const std::size_t before = name.find_last_not_of("0123456789", end);
  const std::size_t begin = before == name.npos ? 0 : before + 1;
  return end - begin < 7
             ? std::optional<std::uint64_t>(std::stoull(name.substr(begin, end - begin + 1)))
             : std::nullopt;
}

} // namespace reckon::import_detail
