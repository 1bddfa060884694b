// SPDX-License-Identifier: Apache-2.0
#include "import/host_names.hpp"

#include "core/error.hpp"
#include "core/log.hpp"
#include "core/name_ranges.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <filesystem>
#include <map>
#include <set>
#include <utility>

namespace reckon {
namespace import_detail {
namespace {

/// The name behind user@ of a prompt, "root@node-a:~#" or "[me@node-a work]$"; empty: none.
std::string_view host_of_prompt(std::string_view word) {
  const std::size_t at = word.find('@');
  word.remove_prefix(at == word.npos ? word.size() : at + 1);
  return word.substr(0, word.find_first_of(":]$#>"));
}

/// The pieces between commas that are not in brackets.
std::vector<std::string_view> pieces_of(std::string_view list) {
  std::vector<std::string_view> pieces;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= list.size(); ++i) {
    if (i == list.size() || (list[i] == ',' && depth == 0)) {
      pieces.push_back(list.substr(begin, i - begin));
      begin = i + 1;
    } else {
      depth += list[i] == '[' ? 1 : list[i] == ']' ? -1 : 0;
    }
  }
  return pieces;
}

/// "node-a:8,node-b:8" or "node-[01-02,07]" of a launcher, as far as the third host.
std::vector<std::string> host_list(std::string_view list) {
  std::vector<std::string> hosts;
  for (const std::string_view piece : pieces_of(list)) {
    const std::size_t open = piece.find('['), close = std::min(piece.find(']'), piece.size());
    if (open >= close) {
      hosts.emplace_back(piece.substr(0, piece.find(':')));
      continue;
    }
    for (const std::string_view range : pieces_of(piece.substr(open + 1, close - open - 1))) {
      const std::string_view first = range.substr(0, range.find('-'));
      const auto from = index_of(first);
      const auto to = index_of(range.substr(std::min(range.find('-') + 1, range.size())));
      for (int i = from.value_or(0); from && to && i <= *to && hosts.size() < 3; ++i) {
        hosts.push_back(fmt::format("{}{:0{}}{}", piece.substr(0, open), i, first.size(),
                                    piece.substr(std::min(close + 1, piece.size()))));
      }
    }
  }
  return hosts;
}

bool is_benchmark(std::string_view word) {
  word = word.substr(word.find_last_of('/') + 1);
  return word.starts_with("osu_") || ((word.starts_with("ib_") || word.starts_with("raw_eth")) &&
                                      (word.ends_with("_bw") || word.ends_with("_lat")));
}

std::vector<std::string> hosts_of_command(const TextLines& lines) {
  constexpr std::array<std::string_view, 8> k_lists{"-H",      "-host", "--host",     "-hosts",
                                                    "--hosts", "-w",    "--nodelist", "-hostlist"};
  // Of perftest's other options the next word is the server.
  constexpr std::array<std::string_view, 10> k_flags{
      "-a", "-b", "-F", "-R", "-N", "-z", "-e", "--all", "--bidirectional", "--CPU-freq"};
  for (std::size_t at = 0; at < lines.size(); ++at) {
    const std::vector<std::string_view> words = words_of(lines[at]);
    const auto called = std::ranges::find_if(words, &is_benchmark);
    if (called == words.end()) {
      continue;
    }
    std::string client;
    for (auto word = words.begin(); word != called; ++word) {
      const std::size_t equals = std::min(word->find('='), word->size());
      const bool list = std::ranges::find(k_lists, word->substr(0, equals)) != k_lists.end();
      const std::string_view value = equals < word->size() ? word->substr(equals + 1) : *(word + 1);
      if (auto hosts = host_list(list ? value : ""); hosts.size() == 2) {
        return hosts;
      }
      const std::string_view host = *word == "ssh" ? *(word + 1) : host_of_prompt(*word);
      client = host.empty() ? client : std::string(host);
    }
    const std::string_view server = words.back();
    const std::string_view before = words[words.size() - std::min<std::size_t>(2, words.size())];
    const bool value = before.starts_with('-') && !before.starts_with("--report") &&
                       std::ranges::find(k_flags, before) == k_flags.end();
    if (!client.empty() && called != words.end() - 1 && !server.starts_with('-') && !value) {
      return {client, std::string(server)};
    }
  }
  return {};
}

/// "gpu-01" and "gpu-02" of "ib-gpu-01_gpu-02.txt": the end of a file's name is two names that
/// differ in their numbers. Empty: it is not.
std::vector<std::string> hosts_of_file(const std::string& file) {
  const std::string stem = std::filesystem::path(file).stem().string();
  std::vector<std::size_t> begins{0}; // of the words between separators
  for (std::size_t i = 0; i < stem.size(); ++i) {
    if (stem[i] == '-' || stem[i] == '_') {
      begins.push_back(i + 1);
    }
  }
  const auto without_digits = [](std::string text) {
    std::erase_if(text, [](unsigned char c) { return std::isdigit(c) != 0; });
    return text;
  };
  for (std::size_t words = begins.size() / 2; words > 0; --words) {
    const std::size_t first = begins[begins.size() - 2 * words],
                      second = begins[begins.size() - words];
    const std::string a = stem.substr(first, second - 1 - first), b = stem.substr(second);
    if (a != b && std::isalpha(static_cast<unsigned char>(a[0])) != 0 &&
        without_digits(a) == without_digits(b)) {
      return {a, b};
    }
  }
  return {};
}

bool is_ip_address(std::string_view host) {
  return host.find(':') != host.npos ||
         (host.find('.') != host.npos && host.find_first_not_of("0123456789.") == host.npos);
}

/// A run of perftest between a client and a server, and the addresses of their ports.
struct PerftestRun {
  std::array<std::string, 2> hosts;
  std::array<std::set<std::string>, 2> ports;
};

/// "00:00:00:00:00:00:00:00:00:00:255:255:10:00:00:05", or so in hexadecimal digits, is a GID of
/// 10.0.0.5. Empty for another.
std::string ip_of_gid(std::string_view gid) {
  constexpr std::string_view k_zeros = "00:00:00:00:00:00:00:00:00:00:", k_mapped = "255:255:",
                             k_mapped_hexadecimal = "ff:ff:";
  gid.remove_prefix(gid.starts_with(k_zeros) ? k_zeros.size() : 0);
  const bool decimal = gid.starts_with(k_mapped);
  if (!decimal && !gid.starts_with(k_mapped_hexadecimal)) {
    return "";
  }
  gid.remove_prefix(decimal ? k_mapped.size() : k_mapped_hexadecimal.size());
  std::string ip;
  for (std::string_view rest = gid; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find(':'));
    ip += fmt::format("{}{}", ip.empty() ? "" : ".",
                      std::strtol(std::string(word).c_str(), nullptr, decimal ? 10 : 16));
    rest.remove_prefix(std::min(word.size() + 1, rest.size()));
  }
  return ip;
}

PerftestRun run_of(const ToolOutput& output, const ImportOptions& options) {
  const TextLines lines(output.text, output.file);
  PerftestRun run;
  const std::vector<std::string> hosts = hosts_of_pair(lines, options);
  if (hosts.size() == 2) {
    run.hosts = {hosts[0], hosts[1]};
  }
  std::string device;
  std::size_t end = 0; // 1: of the server
  for (std::size_t at = 0; at < lines.size(); ++at) {
    const std::vector<std::string_view> words = words_of(lines[at]);
    for (std::size_t i = 0; i + 2 < words.size(); ++i) {
      device = words[i] == "Device" ? std::string(words[i + 2]) : device;
    }
    if (words.size() > 3 && words[1] == "address:") {
      end = words[0] == "remote" ? 1 : 0;
      if (words[2] == "LID" && words[3] != "0000" && words[3] != "0x0000" && words[3] != "0x00") {
        run.ports[end].insert(fmt::format("{} LID {}", device, words[3])); // a rail may be a subnet
      }
    } else if (words.size() > 1 && words[0] == "GID:") {
      run.ports[end].emplace(words[1]);
      run.ports[end].insert(ip_of_gid(words[1]));
    }
  }
  run.ports[0].erase("");
  run.ports[1].erase("");
  return run;
}

} // namespace

std::vector<std::string> hosts_of_pair(const TextLines& lines, const ImportOptions& options) {
  std::vector<std::string> hosts = hosts_of_command(lines);
  const std::vector<std::string> of_file = hosts_of_file(lines.file());
  const bool address =
      hosts.size() == 2 && is_ip_address(hosts[1]) && of_file.size() == 2 && hosts[0] == of_file[0];
  if (hosts.empty() || address) {
    hosts = of_file;
    if (!hosts.empty()) {
      log(LogLevel::info, "{}: taken for machines {} by its name", lines.file(),
          fmt::join(hosts, " and "));
    }
  }
  for (std::string& host : hosts) {
    const auto known = options.hosts.find(host);
    host = known == options.hosts.end() ? host : known->second;
  }
  return hosts;
}

std::map<std::string, std::string> names_of_addresses(const std::vector<const ToolOutput*>& outputs,
                                                      const ImportOptions& options) {
  std::map<std::string, std::set<std::string>> ports, owners, others; // of hosts, ports, hosts
  for (const ToolOutput* const output : outputs) {
    const PerftestRun run = run_of(*output, options);
    for (const std::size_t end : {0U, 1U}) {
      const std::string& host = run.hosts[end];
      if (host.empty()) {
        continue;
      }
      ports[host].insert(run.ports[end].begin(), run.ports[end].end());
      others[host].insert(run.hosts[1 - end]);
      for (const std::string& port : run.ports[end]) {
        if (!is_ip_address(host)) {
          owners[port].insert(host);
        }
      }
    }
  }
  std::map<std::string, std::string> names;
  std::set<std::string> unknown, candidates;
  for (const auto& [address, of] : ports) {
    if (!is_ip_address(address)) {
      continue;
    }
    std::set<std::string> found = owners[address]; // of a GID that has the address
    for (const std::string& port : of) {
      found.insert(owners[port].begin(), owners[port].end());
    }
    if (found.size() == 1 && !others[address].contains(*found.begin())) {
      names[address] = *found.begin();
      continue;
    }
    for (const auto& [host, with] : others) {
      if (!is_ip_address(host) && !with.contains(address)) {
        unknown.insert(address);
        candidates.insert(host);
      }
    }
  }
  if (!unknown.empty()) {
    log(LogLevel::warn,
        "nothing says whether {} is one of {}: a machine of both would count as two; give the "
        "names of addresses with --hosts, as `getent hosts NAME ...` prints them",
        first_names({unknown.begin(), unknown.end()}),
        first_names({candidates.begin(), candidates.end()}));
  }
  return names;
}

} // namespace import_detail

std::map<std::string, std::string> read_hosts(std::string_view text, const std::string& file) {
  const import_detail::TextLines lines(text, file);
  std::map<std::string, std::string> names;
  for (std::size_t at = 0; at < lines.size(); ++at) {
    const std::string_view line = lines[at].substr(0, lines[at].find('#'));
    const std::vector<std::string_view> words = import_detail::words_of(line);
    if (words.size() == 1) {
      lines.fail(at, "must be an address and a name, as in /etc/hosts");
    }
    for (std::size_t i = 0; i < words.size(); ++i) {
      names.emplace(words[i], words[1]);
    }
  }
  return names;
}

} // namespace reckon
