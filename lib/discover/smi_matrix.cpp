// SPDX-License-Identifier: Apache-2.0
#include "discover/smi_matrix.hpp"

#include "core/error.hpp"
#include "core/whole_number.hpp"
#include "topology/paths.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>
#include <utility>
#include <vector>

namespace reckon {
namespace {

/// No GPU has more NVLinks: P100 4, V100 6, A100 12, H100 and B200 18.
constexpr int k_most_nvlinks = 18;
/// Of a later GPU, perhaps; more is no number of links.
constexpr int k_most_between_two = 1000;

/// How far two devices are apart, by what they share.
constexpr std::array<std::string_view, 5> k_distances{"PIX", "PXB", "PHB", "NODE", "SYS"};
constexpr int k_inner_switch = 0, k_outer_switch = 1, k_host_bridge = 2, k_node = 3;

/// Without the signs of a quotation.
std::vector<std::string> words_in(const std::string& line) {
  std::istringstream in(line.substr(std::min(line.find_first_not_of("> \t"), line.size())));
  std::vector<std::string> words;
  for (std::string word; in >> word;) {
    words.push_back(std::move(word));
  }
  return words;
}

/// Without the sequences that underline the head on a terminal.
std::string plain(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = std::min(text.find('m', i), text.size());
    } else {
      out += text[i];
    }
  }
  return out;
}

std::optional<int> number_after(std::string_view word, std::string_view prefix) {
  return word.starts_with(prefix) ? whole_number<int>(word.substr(prefix.size())) : std::nullopt;
}

bool is_head(const std::vector<std::string>& words) {
  return words.size() > 1 && words[0] == "GPU0" &&
         std::ranges::find(words, "Affinity") != words.end();
}

/// Devices by number that belong together, as each says of the others.
class Sets {
public:
  explicit Sets(std::size_t devices) : m_of(devices) {
    std::iota(m_of.begin(), m_of.end(), std::size_t{0});
  }
  void join(std::size_t a, std::size_t b) {
    const std::size_t from = m_of[b], to = m_of[a];
    std::ranges::replace(m_of, from, to);
  }
  [[nodiscard]] std::size_t of(std::size_t device) const { return m_of[device]; }
  [[nodiscard]] std::size_t size(std::size_t device) const {
    return static_cast<std::size_t>(std::ranges::count(m_of, m_of[device]));
  }

private:
  std::vector<std::size_t> m_of;
};

class Matrix {
public:
  Matrix(const std::string& text, std::string file, std::string machine)
      : m_file(std::move(file)), m_machine(std::move(machine)) {
    std::istringstream lines(plain(text));
    std::size_t number = 0;
    for (std::string line; std::getline(lines, line);) {
      ++number;
      const std::vector<std::string> words = words_in(line);
      if (m_names.empty() && is_head(words)) {
        head(words);
      } else if (!m_names.empty() && m_rows.size() < m_names.size() && !words.empty()) {
        row(words, number);
        m_lines.push_back(number);
      } else if (words.size() == 2 && words[0].starts_with("NIC") && words[0].ends_with(':')) {
        m_legend[words[0].substr(0, words[0].size() - 1)] = words[1];
      }
    }
    if (m_rows.size() < m_names.size()) {
      stop(number, fmt::format("ends after {} of {} rows; give the whole output", m_rows.size(),
                               m_names.size()));
    }
    compare_directions();
  }

  [[nodiscard]] RecordedTopology recorded() {
    m_tree.objects.push_back({.id = m_machine});
    std::array<Sets, 4> sets{Sets(m_names.size()), Sets(m_names.size()), Sets(m_names.size()),
                             Sets(m_names.size())};
    for (std::size_t a = 0; a < m_names.size(); ++a) {
      for (std::size_t b = 0; b < m_names.size(); ++b) {
        for (int level = m_rows[a][b].distance; a != b && level >= 0 && level <= k_node; ++level) {
          sets.at(static_cast<std::size_t>(level)).join(a, b);
        }
        if (a != b && !m_numa[a].empty() && m_numa[a] == m_numa[b]) {
          sets[k_node].join(a, b);
        }
      }
    }
    for (std::size_t device = 0; device < m_names.size(); ++device) {
      place(device, sets);
    }
    nvlinks();
    return {std::move(m_tree), std::string(k_smi_matrix_format), std::move(m_remarks)};
  }

private:
  /// A cell: the index in k_distances, or so many NVLinks.
  struct Entry {
    int distance = -1, nvlinks = 0;
    bool operator==(const Entry&) const = default;
    [[nodiscard]] std::string text() const {
      return nvlinks > 0    ? fmt::format("NV{}", nvlinks)
             : distance < 0 ? "X"
                            : std::string(k_distances.at(static_cast<std::size_t>(distance)));
    }
    /// Fewer NVLinks, or else a longer way.
    [[nodiscard]] bool is_worse_than(const Entry& other) const {
      return (nvlinks > 0) != (other.nvlinks > 0) ? nvlinks == 0
             : nvlinks > 0                        ? nvlinks < other.nvlinks
                                                  : distance > other.distance;
    }
  };

  [[noreturn]] void stop(std::size_t line, const std::string& problem) const {
    fail(ErrorKind::input, fmt::format("{}:{}: {}", m_file, line, problem));
  }

  void head(const std::vector<std::string>& words) {
    for (const std::string& word : words) {
      if (word == "CPU" || word == "NUMA") {
        break; // "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"
      }
      m_names.push_back(word);
    }
    const auto numa = std::ranges::find(words, "NUMA");
    m_says_numa = numa != words.end() && numa + 1 != words.end() && numa[1] == "Affinity";
  }

  void row(const std::vector<std::string>& words, std::size_t number) {
    const std::string& name = m_names[m_rows.size()];
    if (words[0] != name || words.size() <= m_names.size()) {
      stop(number, fmt::format("must be the row of {} with {} values; give the output of "
                               "`nvidia-smi topo -m` as it is",
                               name, m_names.size()));
    }
    std::vector<Entry>& entries = m_rows.emplace_back();
    for (std::size_t i = 0; i < m_names.size(); ++i) {
      const std::string& word = words[i + 1];
      const auto distance = std::ranges::find(k_distances, word);
      const std::optional<int> nvlinks = number_after(word, "NV");
      if (distance != k_distances.end()) {
        entries.push_back({static_cast<int>(distance - k_distances.begin()), 0});
      } else if (nvlinks && *nvlinks > 0 && *nvlinks <= k_most_between_two) {
        entries.push_back({-1, *nvlinks});
      } else if (word == "X") {
        entries.push_back({});
      } else {
        stop(number, fmt::format("\"{}\" is no distance that nvidia-smi prints (X, NV#, PIX, PXB, "
                                 "PHB, NODE, SYS)",
                                 word));
      }
    }
    // After the devices: the processors, the NUMA node and that of a GPU's own memory.
    const std::size_t after = m_names.size() + 1;
    const bool numa = m_says_numa && words.size() > after + 1 && words[after + 1] != "N/A";
    m_numa.push_back(numa ? words[after + 1] : words.size() > after ? words[after] : "");
  }

  /// Both cells of two devices are about the same links. Where they differ, the worse one counts.
  void compare_directions() {
    std::size_t differ = 0;
    for (std::size_t a = 0; a < m_names.size(); ++a) {
      for (std::size_t b = a + 1; b < m_names.size(); ++b) {
        Entry& there = m_rows[a][b];
        Entry& back = m_rows[b][a];
        if (there == back) {
          continue;
        }
        if (differ++ == 0) {
          m_remarks.push_back(fmt::format(
              "{}: line {}: {} has {} to {}, but {} has {} to {} in line {}; the worse of the "
              "two counts: compare with `nvidia-smi nvlink --status`",
              m_file, m_lines[a], m_names[a], there.text(), m_names[b], m_names[b], back.text(),
              m_names[a], m_lines[b]));
        }
        there = back = there.is_worse_than(back) ? there : back;
      }
    }
    if (differ > 1) {
      m_remarks.back() += fmt::format("; {} more pairs differ", differ - 1);
    }
  }

  /// Puts the device below what it shares with others, the outermost first.
  void place(std::size_t device, const std::array<Sets, 4>& sets) {
    std::string parent = m_machine;
    const auto below = [&](int level, ObjectKind kind, const char* what) {
      const std::size_t set = sets.at(static_cast<std::size_t>(level)).of(device);
      const auto [at, added] = m_shared.try_emplace({level, set}, "");
      if (added) {
        at->second = add(kind, what, parent);
      }
      parent = at->second;
      return added;
    };
    // GPUs come first, and say which NUMA node they are next to; NICs do not.
    if (beside_a_gpu(device, sets[k_node]) && below(k_node, ObjectKind::numa_node, "numa")) {
      m_tree.objects.back().os_index = whole_number<int>(m_numa[device]);
    }
    below(k_host_bridge, ObjectKind::host_bridge, "hb");
    const bool nested = sets[k_outer_switch].size(device) > sets[k_inner_switch].size(device);
    if (nested) {
      below(k_outer_switch, ObjectKind::pci_bridge, "bridge");
    }
    if (nested || sets[k_inner_switch].size(device) > 1) {
      below(k_inner_switch, ObjectKind::pci_bridge, "bridge");
    }
    const bool gpu = number_after(m_names[device], "GPU").has_value();
    m_ids.push_back(add(gpu ? ObjectKind::gpu : ObjectKind::nic, gpu ? "gpu" : "nic", parent));
    if (!gpu) {
      const auto named = m_legend.find(m_names[device]);
      m_tree.objects.back().name = named != m_legend.end() ? named->second : m_names[device];
    }
  }

  [[nodiscard]] bool beside_a_gpu(std::size_t device, const Sets& nodes) const {
    for (std::size_t other = 0; other < m_names.size(); ++other) {
      if (nodes.of(other) == nodes.of(device) && m_names[other].starts_with("GPU")) {
        return true;
      }
    }
    return false;
  }

  std::string add(ObjectKind kind, const char* what, const std::string& parent) {
    TopologyObject& made = m_tree.objects.emplace_back();
    made.kind = kind;
    made.id = fmt::format("{}/{}{}", m_machine, what, m_counts[what]++);
    made.parent = parent;
    return made.id;
  }

  void nvlinks() {
    std::vector<int> most(m_names.size(), 0), sum(m_names.size(), 0);
    for (std::size_t a = 0; a < m_names.size(); ++a) {
      for (const Entry& entry : m_rows[a]) {
        most[a] = std::max(most[a], entry.nvlinks);
        sum[a] += entry.nvlinks;
      }
    }
    const bool switched = std::ranges::any_of(sum, [](int n) { return n > k_most_nvlinks; });
    const std::string hub = switched ? add(ObjectKind::link_switch, "nvswitch", m_machine) : "";
    for (std::size_t a = 0; a < m_names.size(); ++a) {
      if (switched && most[a] > 0) {
        m_tree.links.push_back({.from = m_ids[a], .to = hub, .count = most[a]});
      }
      for (std::size_t b = a + 1; !switched && b < m_names.size(); ++b) {
        if (m_rows[a][b].nvlinks > 0) {
          m_tree.links.push_back({.from = m_ids[a], .to = m_ids[b], .count = m_rows[a][b].nvlinks});
        }
      }
    }
  }

  std::string m_file, m_machine;
  std::vector<std::string> m_names, m_ids, m_numa; ///< by device
  std::vector<std::vector<Entry>> m_rows;
  std::vector<std::size_t> m_lines; ///< of the rows
  std::vector<std::string> m_remarks;
  std::map<std::string, std::string> m_legend; ///< NICs' names
  bool m_says_numa = false;
  std::map<std::pair<int, std::size_t>, std::string> m_shared; ///< by level and set
  std::map<std::string, int> m_counts;
  Topology m_tree;
};

} // namespace

bool is_smi_matrix(std::string_view text) {
  std::istringstream lines(plain(text.substr(0, 65536)));
  for (std::string line; std::getline(lines, line);) {
    if (is_head(words_in(line))) {
      return true;
    }
  }
  return false;
}

bool is_smi_peer_matrix(std::string_view text) {
  constexpr std::array<std::string_view, 6> k_states{"OK", "CNS", "GNS", "TNS", "NS", "U"};
  std::istringstream lines(plain(text.substr(0, 65536)));
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> words = words_in(line);
    if (words.size() > 2 && words[0] == "GPU0" && words[1] == "X") {
      return std::ranges::find(k_states, words[2]) != k_states.end();
    }
  }
  return false;
}

RecordedTopology topology_from_smi_matrix(const std::string& text, const std::string& file,
                                          const std::string& machine) {
  return Matrix(text, file, machine).recorded();
}

} // namespace reckon
