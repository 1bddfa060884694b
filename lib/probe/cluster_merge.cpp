// SPDX-License-Identifier: Apache-2.0
#include "probe/cluster_merge.hpp"

#include "documents/ceilings.hpp"
#include "documents/cells.hpp"
#include "probe/campaign.hpp"
#include "probe/fabric.hpp"
#include "probe/rounds.hpp"
#include "probe/sampling.hpp"
#include "settings/settings.hpp"
#include "stats/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace reckon {
namespace {

constexpr double k_equal_ports = 0.03;

/// "m0/numa1" of a machine's own profile -> "m3/numa1".
std::string moved(const std::string& id, const std::string& group) {
  const std::size_t slash = id.find('/');
  return slash == std::string::npos ? group : group + id.substr(slash);
}

void add_topology(Topology& to, const Topology& from, const std::string& group) {
  for (TopologyObject object : from.objects) {
    object.id = moved(object.id, group);
    if (!object.parent.empty()) {
      object.parent = moved(object.parent, group);
    }
    if (object.kind == ObjectKind::machine) {
      object.name.clear(); // it stands for several
    }
    to.objects.push_back(std::move(object));
  }
}

/// What the machine's own network device of that name hangs from; the machine, where none is so
/// named: an address, or a port without a device.
std::string place_of(const Topology& topology, const std::string& port, const std::string& group) {
  for (const TopologyObject& object : topology.objects) {
    if (object.kind == ObjectKind::nic && object.name == port &&
        object.id.starts_with(group + "/")) {
      return object.parent;
    }
  }
  return group;
}

/// The context of the first machine of the group for all; its settings, too, and of each other what
/// differs from them. Errors are each machine's own.
void add_what_is_said(Profile& profile, const std::vector<MemberResult>& members, std::size_t first,
                      const MachineGroup& group) {
  const Profile& model = members[first].own;
  for (const auto& [name, text] : model.context) {
    if (name != "host") { // machines differ
      profile.context.try_emplace(name, text);
    }
  }
  for (std::size_t i = 0; i < group.members.size(); ++i) {
    for (Setting setting : members[first + i].own.settings) {
      const bool own = setting.name.ends_with(k_while_measured) && group.members.size() > 1;
      if (i == 0 || own || std::ranges::find(model.settings, setting) == model.settings.end()) {
        setting.place = moved(setting.place, group.id);
        setting.machine = i > 0 || own ? group.members[i] : "";
        profile.settings.push_back(std::move(setting));
      }
    }
  }
}

MachineGroup own_group(const MemberResult& member) {
  return member.own.machines.empty() ? MachineGroup() : member.own.machines.front();
}

template <class Get>
std::vector<double> of_all(const std::vector<MemberResult>& members, std::size_t first,
                           std::size_t last, Get get) {
  std::vector<double> all;
  for (std::size_t i = first; i < last; ++i) {
    const std::vector<double> samples = get(members[i]);
    all.insert(all.end(), samples.begin(), samples.end());
  }
  return all;
}

/// Cells that each machine measured for itself: those of equal keys become one.
void add_own_cells(Profile& profile, const std::vector<MemberResult>& members, std::size_t first,
                   std::size_t last, const std::string& group) {
  std::map<CellKey, std::pair<Cell, std::vector<double>>> merged;
  for (std::size_t i = first; i < last; ++i) {
    for (const Cell& cell : members[i].own.cells) {
      auto& [kept, samples] =
          merged.try_emplace(cell.key, cell, std::vector<double>()).first->second;
      samples.insert(samples.end(), cell.samples.begin(), cell.samples.end());
      if (cell.status == CellStatus::noisy && kept.status == CellStatus::ok) {
        kept.status = cell.status;
        kept.reason = cell.reason;
      }
    }
  }
  for (auto& [key, entry] : merged) {
    Cell cell = std::move(entry.first);
    const Cell all = cell_of(key, entry.second, "not measured");
    cell.key.from = moved(key.from, group);
    cell.key.to = key.to.empty() ? "" : moved(key.to, group);
    cell.samples = all.samples;
    summarize_cell(cell);
    profile.cells.push_back(std::move(cell));
  }
}

} // namespace

Cell cell_of(const CellKey& key, const std::vector<double>& samples, const std::string& why_not) {
  Cell cell = empty_cell({.key = key});
  std::vector<double> good = samples;
  std::erase_if(good, [](double sample) { return !(sample > 0); });
  if (good.empty()) {
    discard(cell, CellStatus::skipped,
            samples.empty() ? why_not : "too little arrived to tell a rate");
    cell.bytes_convention.clear();
    return cell;
  }
  for (const double sample : thinned(good, k_keep_samples)) {
    cell.samples.push_back(six_digits(sample));
  }
  summarize_cell(cell);
  remark_samples(cell, good.size(), k_keep_samples, cell.spread);
  return cell;
}

std::vector<std::string> member_ids(const std::vector<ClusterHost>& hosts) {
  std::set<std::string> names;
  bool good = true;
  for (const ClusterHost& host : hosts) {
    // "m0" and "rack0" are names of ours.
    const bool ours = host.host.find_first_not_of("0123456789", host.host.starts_with("m") ? 1
                                                                : host.host.starts_with("rack")
                                                                    ? 4
                                                                    : 0) == std::string::npos;
    good = good && !host.host.empty() && !ours && host.host.find('/') == std::string::npos &&
           names.insert(host.host).second;
  }
  std::vector<std::string> ids;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
    ids.push_back(good ? hosts[rank].host : fmt::format("r{}", rank));
  }
  return ids;
}

void read_settings(ClusterMember& member, std::vector<MemberResult>& results) {
  std::vector<std::vector<Setting>> settings = member.settings(member_ids(member.hosts()));
  for (std::size_t rank = 0; rank < settings.size(); ++rank) {
    results[rank].own.settings = std::move(settings[rank]);
  }
}

std::vector<double> port_samples(const MemberResult& member) {
  if (member.seen_twice > 0) {
    return {member.seen_twice};
  }
  const double in = median(member.in_two_way), out = median(member.out_two_way);
  if (in == 0 || out == 0) {
    return {};
  }
  if (std::abs(in - out) <= k_equal_ports * std::max(in, out)) {
    std::vector<double> both = member.in_two_way;
    both.insert(both.end(), member.out_two_way.begin(), member.out_two_way.end());
    return both;
  }
  return in < out ? member.in_two_way : member.out_two_way;
}

std::vector<std::size_t> runs_of(const std::vector<MemberResult>& members) {
  std::vector<std::size_t> firsts;
  for (std::size_t i = 0; i < members.size(); ++i) {
    const auto equal = [&](const MemberResult& a, const MemberResult& b) {
      const MachineGroup x = own_group(a), y = own_group(b);
      const double p = median(port_samples(a)), q = median(port_samples(b));
      return a.own.fingerprint == b.own.fingerprint && x.cores == y.cores &&
             x.memory_bytes == y.memory_bytes && a.rack == b.rack &&
             a.single_ports.size() == b.single_ports.size() &&
             std::abs(p - q) <= k_equal_ports * std::max(p, q);
    };
    if (firsts.empty() || !equal(members[firsts.back()], members[i])) {
      firsts.push_back(i);
    }
  }
  return firsts;
}

void merge_machines(Profile& profile, const std::vector<MemberResult>& members,
                    const std::vector<std::string>& ids) {
  const std::vector<std::size_t> firsts = runs_of(members);
  const auto group_of = [&](std::size_t rank) {
    const auto after = std::upper_bound(firsts.begin(), firsts.end(), rank);
    return fmt::format("m{}", after - firsts.begin() - 1);
  };
  for (std::size_t g = 0; g < firsts.size(); ++g) {
    const std::size_t first = firsts[g];
    const std::size_t last = g + 1 < firsts.size() ? firsts[g + 1] : members.size();
    const MemberResult& model = members[first];
    MachineGroup group = own_group(model);
    group.id = group_of(first);
    group.name = ids[first] + (last - first > 1 ? ".." + ids[last - 1] : "");
    group.count = last - first;
    group.rack = model.rack;
    group.members.assign(ids.begin() + static_cast<std::ptrdiff_t>(first),
                         ids.begin() + static_cast<std::ptrdiff_t>(last));
    add_topology(profile.topology, model.own.topology, group.id);
    profile.fingerprint += (g > 0 ? "; " : "") +
                           (group.count > 1 ? fmt::format("{} x ", group.count) : "") +
                           model.own.fingerprint;
    add_what_is_said(profile, members, first, group);
    add_own_cells(profile, members, first, last, group.id);
    const std::string late = "not measured: the probe ended before";
    const CellKey key{.test = k_port_bandwidth,
                      .from = group.id,
                      .bytes = model.part,
                      .in_flight = model.window,
                      .transport = model.transport,
                      .direction = k_two_way};
    Cell whole = cell_of(key, of_all(members, first, last, &port_samples), late);
    if (!model.single_ports.empty() && model.peers_bytes_per_s > 0) {
      // All of its ports together may be faster than those who tried them.
      whole.ceiling = Ceiling{k_peers_ceiling, model.peers_bytes_per_s};
    }
    profile.cells.push_back(std::move(whole));
    for (std::size_t number = 0; number < model.single_ports.size(); ++number) {
      // An endpoint of its own, below the machine.
      TopologyObject port;
      port.id = fmt::format("{}/port{}", group.id, number);
      port.kind = ObjectKind::nic;
      port.name = model.single_ports[number].name;
      port.parent = place_of(profile.topology, port.name, group.id);
      CellKey single = key;
      single.test = k_single_port;
      single.from = port.id;
      profile.cells.push_back(cell_of(
          single,
          of_all(members, first, last,
                 [number](const MemberResult& m) { return m.single_ports[number].samples; }),
          late));
      profile.topology.objects.push_back(std::move(port));
    }
    profile.cells.push_back(cell_of(
        {.test = k_fabric_latency,
         .from = group.id,
         .bytes = 8,
         .in_flight = 1,
         .transport = model.transport,
         .direction = k_one_way,
         .state = "warm"},
        of_all(members, first, last, [](const MemberResult& m) { return m.latency; }), late));
    std::map<std::uint64_t, std::vector<double>> by_size;
    std::map<std::uint64_t, int> in_flight;
    int peer = -1;
    for (std::size_t i = first; i < last; ++i) {
      peer = peer < 0 ? members[i].curve.peer : peer;
      for (const auto& [bytes, seconds] : members[i].curve.seconds) {
        by_size[bytes].insert(by_size[bytes].end(), seconds.begin(), seconds.end());
        in_flight[bytes] = members[i].curve.in_flight.at(bytes);
      }
    }
    for (const auto& [bytes, seconds] : by_size) {
      CellKey write = key;
      write.test = k_fabric_write;
      write.bytes = bytes;
      write.in_flight = in_flight.at(bytes);
      write.to = group_of(at(peer));
      profile.cells.push_back(cell_of(write, seconds, late));
    }
    profile.machines.push_back(std::move(group));
  }
}

} // namespace reckon
