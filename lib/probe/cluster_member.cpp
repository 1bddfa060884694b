// SPDX-License-Identifier: Apache-2.0
#include "probe/cluster_member.hpp"

#include "core/clock.hpp"
#include "core/error.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/memory.hpp"
#include "core/processors.hpp"
#include "discover/discover.hpp"
#include "discover/environment.hpp"
#include "documents/json.hpp"
#include "launch/sockets.hpp"
#include "movers/mailbox.hpp"
#include "probe/campaign.hpp"
#include "probe/description.hpp"
#include "probe/guard.hpp"
#include "probe/machine_campaigns.hpp"
#include "probe/pin.hpp"
#include "probe/rails.hpp"
#include "probe/sampling.hpp"
#include "probe/workbench.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <tuple>
#include <unistd.h>

namespace reckon {
namespace {

constexpr std::size_t k_machine_samples = 10; // kept of each cell: they go over the network

std::vector<std::string> crossing_transports(const ClusterProbeOptions& options) {
  std::vector<std::string> found;
  for (const std::string& name : available_transports()) {
    try {
      if (options.make(name)->capabilities().crosses_machines) {
        found.push_back(name);
      }
    } catch (const Error& error) {
      log(LogLevel::debug, "transport {}: {}", name, error.what());
    }
  }
  return found;
}

std::vector<std::string> strings(const JsonView& array) {
  std::vector<std::string> all;
  for (const JsonView& element : array.elements()) {
    all.push_back(element.string());
  }
  return all;
}

Profile profile_in(const std::string& text, int rank) {
  const std::string name = fmt::format("rank {}'s machine", rank);
  return profile_from_json(parse_json(text, name), name);
}

} // namespace

std::string common_transport(const std::vector<ClusterHost>& hosts,
                             const std::vector<std::string>& asked) {
  std::vector<std::string> all = hosts.front().transports;
  for (const ClusterHost& host : hosts) {
    std::erase_if(all, [&](const std::string& name) {
      return std::find(host.transports.begin(), host.transports.end(), name) ==
             host.transports.end();
    });
  }
  for (const std::string& wanted : asked) {
    if (std::find(all.begin(), all.end(), wanted) == all.end()) {
      fail(ErrorKind::unavailable,
           fmt::format("probe: transport '{}' does not cross machines at every rank; there are: {}",
                       wanted, fmt::join(all, ", ")));
    }
  }
  if (!asked.empty()) {
    return asked.front();
  }
  if (all.empty()) {
    const auto lacking = std::find_if(hosts.begin(), hosts.end(), [](const ClusterHost& host) {
      return host.transports.empty();
    });
    fail(ErrorKind::unavailable,
         lacking != hosts.end()
             ? fmt::format(
                   "probe: machine {} ({}) has no transport that crosses machines; `reckon run "
                   "--list` there says what is missing",
                   lacking - hosts.begin(), lacking->host)
             : "probe: the ranks have no transport in common that crosses machines; `reckon run "
               "--list` on each says what is missing");
  }
  const auto tcp = [](const std::string& name) { return name.starts_with("tcp"); };
  std::stable_partition(all.begin(), all.end(), [&](const std::string& n) { return !tcp(n); });
  return all.front();
}

struct ClusterMember::Machine {
  SystemFiles files;
  Topology topology = discover(files).topology;
  MachineErrors errors{topology, files};

  void describe(Profile& profile) {
    profile.name = "machine";
    profile.source = "measured";
    describe_settings(profile, topology, files, errors, "");
    describe_machine(profile, topology, describe_environment(SystemFiles().reader()));
  }
};

ClusterMember::~ClusterMember() = default;

ClusterMember::ClusterMember(Rendezvous& rendezvous, const ClusterProbeOptions& options)
    : m_rendezvous(rendezvous), m_options(options) {
  const Json mine{{"boot", boot_id()},
                  {"host", host_name()},
                  {"network", network_id()},
                  {"processors", ::sysconf(_SC_NPROCESSORS_ONLN)},
                  {"memory", available_memory_bytes()},
                  {"transports", crossing_transports(options)}};
  std::vector<ClusterHost> of_ranks;
  for (const std::string& text : rendezvous.all_gather(compact(mine), options.limit)) {
    const Json json = parse_json(text, "host of a rank");
    const JsonView view(json, "host of a rank");
    of_ranks.push_back({view.at("boot").string(), view.at("host").string(),
                        view.at("network").string(), view.at("processors").integer(1, 1 << 20),
                        view.at("memory").count(), strings(view.at("transports"))});
  }
  choose_leaders(of_ranks);
  std::uint64_t most = options.most_memory;
  for (std::size_t machine = 0; machine < m_hosts.size(); ++machine) {
    const auto same = [&](const ClusterHost& h) { return h.boot == m_hosts[machine].boot; };
    const auto first = std::find_if(m_hosts.begin(), m_hosts.end(), same);
    m_host_of.push_back(static_cast<int>(first - m_hosts.begin()));
    const auto here = std::count_if(m_hosts.begin(), m_hosts.end(), same);
    m_turn =
        static_cast<int>(machine) == m_number
            ? static_cast<int>(std::count(m_host_of.begin(), m_host_of.end() - 1, m_host_of.back()))
            : m_turn;
    // To send from and to receive into, and half is for others.
    most = std::min(most, m_hosts[machine].memory_bytes / 4 / static_cast<std::uint64_t>(here));
  }
  m_memory = std::max(4 * k_mib, most / k_mib * k_mib);
}

void ClusterMember::choose_leaders(const std::vector<ClusterHost>& of_ranks) {
  const auto machine_of = [](const ClusterHost& h) { return std::tie(h.host, h.network); };
  const bool one_machine =
      std::all_of(of_ranks.begin(), of_ranks.end(), [&](const ClusterHost& host) {
        return machine_of(host) == machine_of(of_ranks.front());
      });
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) {
    const auto known = std::find_if(m_hosts.begin(), m_hosts.end(), [&](const ClusterHost& host) {
      return machine_of(host) == machine_of(of_ranks[rank]);
    });
    if (known != m_hosts.end() && !one_machine) {
      ++m_ranks_on[static_cast<std::size_t>(known - m_hosts.begin())];
      continue;
    }
    if (static_cast<int>(rank) == m_rendezvous.rank()) {
      m_number = static_cast<int>(m_hosts.size());
    }
    m_leaders.push_back(static_cast<int>(rank));
    m_ranks_on.push_back(1);
    m_hosts.push_back(of_ranks[rank]);
  }
}

std::vector<std::string> ClusterMember::gather(const std::string& mine, Seconds limit) {
  const std::vector<std::string> all = m_rendezvous.all_gather(mine, limit);
  std::vector<std::string> out;
  for (const int rank : m_leaders) {
    out.push_back(all[static_cast<std::size_t>(rank)]);
  }
  return out;
}

std::vector<std::string> ClusterMember::act(const Json& instruction) {
  // Broken off in the middle, writes may be under way, and a mover that goes then has to see that
  // it goes because of an error: also where somebody catches that and goes on.
  struct Abandon {
    std::unique_ptr<FlowRank>& flows;
    ~Abandon() {
      if (std::uncaught_exceptions() > 0) {
        flows.reset();
      }
    }
  };
  const Abandon abandon{m_flows};
  const JsonView view(instruction, "instruction of rank 0");
  const std::string what = view.at("do").string();
  const Seconds longest = Seconds(view.at("seconds").non_negative()) + m_options.limit;
  std::string answer;
  if (what == "transport") {
    answer = open_transport(view);
  } else if (!measures()) {
    // Its machine's first rank does it.
  } else if (what == "move") {
    answer = move(view);
  } else if (what == "machine") {
    answer = measure_machine(view);
  } else if (what == "settings") {
    answer = describe_again();
  }
  return gather(answer, longest);
}

std::vector<std::string> ClusterMember::tell_all(const Json& instruction) {
  m_rendezvous.broadcast(instruction.dump(), m_options.limit);
  return act(instruction);
}

void ClusterMember::serve() {
  Seconds longest = m_options.limit;
  for (;;) {
    const Json instruction =
        parse_json(m_rendezvous.broadcast("", longest), "instruction of rank 0");
    if (JsonView(instruction, "instruction of rank 0").at("do").string() == "end") {
      return;
    }
    static_cast<void>(act(instruction));
  }
}

void ClusterMember::end() {
  m_rendezvous.broadcast(Json{{"do", "end"}}.dump(), m_options.limit);
}

void ClusterMember::use_transport(const std::string& transport, std::uint64_t seed, bool rails) {
  static_cast<void>(tell_all({{"do", "transport"},
                              {"seconds", 0},
                              {"transport", transport},
                              {"seed", seed},
                              {"rails", rails}}));
}

std::vector<std::string> ClusterMember::port_names(const Mover& mover, bool rails) const {
  const std::vector<std::string>& named = mover.capabilities().ports;
  return rails && named.empty() ? rails_of(discover_topology(), mover.ports_here()) : named;
}

void ClusterMember::use_rails(Mover& mover) {
  std::vector<std::string> names;
  for (const ClusterHost& host : m_hosts) {
    names.push_back(host.host);
  }
  Rails rails = common_rails(m_ports, names);
  m_ports = std::move(rails.ports);
  m_left_out = std::move(rails.left_out);
  m_rails = static_cast<int>(m_ports.front().size());
  mover.use_ports(m_ports[static_cast<std::size_t>(m_number)]);
}

std::string ClusterMember::open_transport(const JsonView& instruction) {
  m_transport = instruction.at("transport").string();
  m_flows.reset();
  if (!measures()) { // the two that follow need all ranks
    static_cast<void>(gather("", m_options.limit));
    static_cast<void>(gather("", m_options.limit));
    return "";
  }
  std::unique_ptr<Mover> mover = m_options.make(m_transport);
  const bool rails = instruction.at("rails").boolean();
  const std::vector<std::string> mine = port_names(*mover, rails);
  m_ports.clear();
  for (const std::string& text : gather(Json(mine).dump(), m_options.limit)) {
    const Json json = parse_json(text, "ports of a rank");
    m_ports.push_back(strings(JsonView(json, "ports of a rank")));
  }
  if (rails) {
    use_rails(*mover);
  }
  std::size_t most = 1;
  for (const std::vector<std::string>& ports : m_ports) {
    most = std::max(most, ports.size());
  }
  for (std::size_t rank = 0; rank < m_ports.size(); ++rank) {
    const std::size_t ports = std::max<std::size_t>(1, m_ports[rank].size());
    if (most % ports != 0) { // lanes would use some of its ports more than others
      fail(ErrorKind::usage,
           fmt::format("rank {} has {} network ports and another rank has {}; name a whole part of "
                       "that in RECKON_FABRIC_ADDRESS",
                       m_leaders[rank], ports, most));
    }
  }
  FlowRank::Options options;
  options.rank = m_number;
  options.lanes = static_cast<int>(most);
  options.seed = instruction.at("seed").count();
  options.memory = m_memory;
  const std::vector<int> cpus = allowed_cpus();
  for (int lane = 0; lane < options.lanes && !cpus.empty(); ++lane) {
    // As the executor: ranks that share a computer take its processors in turn.
    options.cpus.push_back(
        cpus[static_cast<std::size_t>(m_turn * options.lanes + lane) % cpus.size()]);
  }
  m_flows = std::make_unique<FlowRank>(std::move(mover), options);
  const std::vector<std::string> addresses = gather(m_flows->address(), m_options.limit);
  m_rendezvous.or_blame_a_peer(k_news_limit, [&] { m_flows->connect(addresses); });
  return "";
}

std::vector<FlowOutcome> ClusterMember::run(const FlowTask& task) {
  const double seconds =
      1e-9 * static_cast<double>(task.warm_up_ns + task.windows * task.window_ns);
  std::vector<FlowOutcome> outcomes;
  std::vector<TcpSegments> segments;
  for (const std::string& text :
       tell_all({{"do", "move"}, {"seconds", seconds}, {"task", encode(task)}})) {
    const Json json = parse_json(text, "what a rank moved");
    const JsonView view(json, "what a rank moved");
    segments.push_back({view.at("sent").count(), view.at("again").count()});
    outcomes.push_back(decode_flow_outcome(view.at("outcome").string()));
    if (const std::uint64_t wrong = outcomes.back().wrong_at; wrong != UINT64_MAX) {
      fail(ErrorKind::operation,
           fmt::format("rank {} received wrong data over {}, at byte {} of its buffer",
                       m_leaders[outcomes.size() - 1], m_transport, wrong));
    }
  }
  m_losses.add(task, segments);
  return outcomes;
}

std::string ClusterMember::move(const JsonView& instruction) {
  const SystemFiles files;
  const TcpSegments before = TcpSegments::counted(files);
  m_flows->prepare(decode_task(instruction.at("task").string()));
  m_flows->begin();
  const std::int64_t deadline =
      monotonic_ns() + static_cast<std::int64_t>(
                           1e9 * (instruction.at("seconds").number() + m_options.limit.count()));
  while (!m_flows->finished_within(std::chrono::milliseconds(20))) {
    m_rendezvous.watch(Seconds(0));
    if (monotonic_ns() > deadline) {
      throw PeerError(fmt::format("rank {} moved its data to no end within {} more than they "
                                  "should take: {}",
                                  m_rendezvous.rank(), to_text(m_options.limit),
                                  m_flows->stop_and_describe()));
    }
  }
  const FlowOutcome outcome =
      m_rendezvous.or_blame_a_peer(m_rendezvous.patience(), [&] { return m_flows->outcome(); });
  const TcpSegments tcp = TcpSegments::counted(files).since(before);
  return Json{{"outcome", encode(outcome)}, {"sent", tcp.sent}, {"again", tcp.again}}.dump();
}

std::vector<Profile> ClusterMember::measure_machines(Seconds each) {
  int turns = 0;
  for (const int host : m_host_of) {
    turns = std::max(turns, static_cast<int>(std::count(m_host_of.begin(), m_host_of.end(), host)));
  }
  std::vector<Profile> profiles(m_hosts.size());
  for (int turn = 0; turn < turns; ++turn) {
    const std::vector<std::string> texts =
        tell_all({{"do", "machine"}, {"seconds", each.count()}, {"turn", turn}});
    for (std::size_t rank = 0; rank < texts.size(); ++rank) {
      if (!texts[rank].empty()) {
        profiles[rank] = profile_in(texts[rank], m_leaders[rank]);
      }
    }
  }
  return profiles;
}

std::string ClusterMember::measure_machine(const JsonView& instruction) {
  if (instruction.at("turn").integer(0, 1 << 20) != m_turn) {
    return "";
  }
  Seconds budget(instruction.at("seconds").non_negative());
  const RunClock clock;
  m_machine = std::make_unique<Machine>();
  std::vector<int> cpus = allowed_cpus();
  ProcGuard guard(cpus);
  Workbench bench(m_machine->topology, "m0", clock, 1, m_options.interrupted);
  bench.limit_memory(std::uint64_t{256} << 20U); // of each of the ranks that share a computer
  std::vector<Campaign> campaigns;
  if (m_ranks_on[static_cast<std::size_t>(m_number)] > 1) { // which move bytes through its memory
    campaigns = {stream_campaign(bench), numa_bandwidth_campaign(bench)};
    budget = 3 * budget; // more than twice as much to measure
  }
  campaigns.insert(campaigns.end(),
                   {reduce_campaign(bench), stores_campaign(bench), optimizer_campaign(bench)});
  RunnerOptions running;
  running.budget = budget;
  running.interrupted = m_options.interrupted;
  running.errors = [this] { return m_machine->errors.since_last(); };
  RunResult run = run_campaigns(campaigns, running, clock, guard);
  bench.release_memory();

  Profile profile;
  m_machine->describe(profile);
  for (Cell& cell : run.cells) {
    if (cell.has_value()) {
      cell.samples = thinned(cell.samples, k_machine_samples);
      summarize_cell(cell);
      profile.cells.push_back(std::move(cell));
    }
  }
  return compact(to_json(profile));
}

std::vector<std::vector<Setting>> ClusterMember::settings(const std::vector<std::string>& ids) {
  std::vector<std::vector<Setting>> all = m_losses.settings(ids);
  const std::vector<std::string> texts = tell_all({{"do", "settings"}, {"seconds", 0}});
  for (std::size_t rank = 0; rank < texts.size(); ++rank) {
    std::ranges::copy(profile_in(texts[rank], m_leaders[rank]).settings,
                      std::back_inserter(all[rank]));
  }
  return all;
}

std::string ClusterMember::describe_again() const {
  Profile profile;
  m_machine->describe(profile);
  return compact(to_json(profile));
}

} // namespace reckon
