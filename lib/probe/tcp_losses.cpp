// SPDX-License-Identifier: Apache-2.0
#include "probe/tcp_losses.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <sstream>

namespace reckon {
namespace {

constexpr double k_least_share = 0.001;
constexpr std::uint64_t k_least_segments = 1000;

/// The share that at least half of all pairs exceed or reach; 0: none is known.
double usual_share(std::vector<double> shares) {
  if (shares.empty()) {
    return 0;
  }
  const auto middle = shares.begin() + static_cast<std::ptrdiff_t>((shares.size() - 1) / 2);
  std::nth_element(shares.begin(), middle, shares.end());
  return *middle;
}

Setting setting(double share, const std::string& of) {
  return {"m0", "", std::string(k_tcp_again), fmt::format("{:.1f} % of {}", 100 * share, of),
          "/proc/net/snmp"};
}

} // namespace

TcpSegments TcpSegments::counted(const SystemFiles& files) {
  std::istringstream lines(files.text("/proc/net/snmp").value_or(""));
  std::string names;
  for (std::string line; std::getline(lines, line); names = line) {
    if (!line.starts_with("Tcp: ") || !names.starts_with("Tcp: ")) {
      continue; // the names of the counts are a line before them
    }
    TcpSegments found;
    std::istringstream name_words(names), count_words(line);
    for (std::string name, count; name_words >> name && count_words >> count;) {
      const std::uint64_t number = std::strtoull(count.c_str(), nullptr, 10);
      found.sent = name == "OutSegs" ? number : found.sent;
      found.again = name == "RetransSegs" ? number : found.again;
    }
    return found;
  }
  return {};
}

void TcpLosses::add(const FlowTask& task, const std::vector<TcpSegments>& by_machine) {
  std::map<std::size_t, std::set<std::size_t>> receivers;
  for (const Flow& flow : task.flows) {
    receivers[static_cast<std::size_t>(flow.from)].insert(static_cast<std::size_t>(flow.to));
  }
  for (const auto& [from, to] : receivers) {
    if (to.size() == 1) {
      TcpSegments& pair = m_pairs[{from, *to.begin()}];
      pair.sent += by_machine[from].sent;
      pair.again += by_machine[from].again;
    }
  }
}

std::optional<double> TcpLosses::share(std::size_t from, std::size_t to) const {
  const auto found = m_pairs.find({from, to});
  return found == m_pairs.end() || found->second.sent < k_least_segments
             ? std::nullopt
             : std::optional(static_cast<double>(found->second.again) /
                             static_cast<double>(found->second.sent));
}

std::vector<std::vector<Setting>>
TcpLosses::settings(const std::vector<std::string>& machines) const {
  std::vector<std::vector<Setting>> all(machines.size());
  std::vector<std::array<bool, 2>> told(machines.size()); // of what it sends, and is sent
  for (std::size_t m = 0; m < machines.size(); ++m) {
    std::vector<double> out, in;
    for (std::size_t peer = 0; peer < machines.size(); ++peer) {
      if (const auto there = share(m, peer)) {
        out.push_back(*there);
      }
      if (const auto back = share(peer, m)) {
        in.push_back(*back);
      }
    }
    const double sends = usual_share(out), is_sent = usual_share(in);
    told[m] = {sends >= k_least_share, is_sent >= k_least_share};
    if (told[m][0] || told[m][1]) {
      all[m].push_back(setting(std::max(sends, is_sent),
                               sends >= is_sent ? "what it sends" : "what it is sent"));
    }
  }
  for (std::size_t from = 0; from < machines.size(); ++from) {
    for (std::size_t to = 0; to < machines.size(); ++to) {
      const double lost = share(from, to).value_or(0);
      if (lost >= k_least_share && !told[from][0] && !told[to][1]) {
        all[from].push_back(setting(lost, "what it sends to " + machines[to]));
      }
    }
  }
  return all;
}

} // namespace reckon
