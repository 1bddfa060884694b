// SPDX-License-Identifier: Apache-2.0
#include "import/astra_workload.hpp"

#include "core/error.hpp"
#include "import/text_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>
#include <vector>

namespace reckon {

using namespace import_detail;

namespace {

constexpr std::array<std::string_view, 11> k_parallelisms{"DATA",
                                                          "MODEL",
                                                          "MICRO",
                                                          "HYBRID_DATA_MODEL",
                                                          "HYBRID_MODEL_DATA",
                                                          "HYBRID_DLRM",
                                                          "HYBRID_DLRM_ENHANCED",
                                                          "HYBRID_TRANSFORMER",
                                                          "HYBRID_TRANSFORMER_FWD_IN_BCKWD",
                                                          "HYBRID_CUSTOMIZED",
                                                          "DISTRIBUTED_INFERENCE"};
constexpr double k_cycles_per_s = 1e9; // ASTRA-sim's clock

bool is_parallelism(std::string_view word) {
  return std::find(k_parallelisms.begin(), k_parallelisms.end(), word) != k_parallelisms.end();
}

/// What one pass of a layer computes and sends.
struct Pass {
  std::uint64_t cycles = 0, bytes = 0;
  std::string_view collective;
};

class Reader {
public:
  explicit Reader(const TextLines& lines) : m_lines(lines) {}

  AstraWorkload read() {
    const std::size_t head = next_line(0, "the parallelism, as DATA");
    const std::vector<std::string_view> words = words_of(m_lines[head]);
    if (!is_parallelism(words.front())) {
      m_lines.fail(head, fmt::format("\"{}\" is no parallelism of ASTRA-sim 1.0 ({}); give its "
                                     "workload text",
                                     one_line(words.front().substr(0, 60)),
                                     fmt::join(k_parallelisms, ", ")));
    }
    const std::size_t count_line = next_line(head + 1, "the number of layers");
    const std::vector<std::string_view> count_words = words_of(m_lines[count_line]);
    if (count_words.size() != 1) {
      m_lines.fail(count_line, "must be the number of layers and nothing else");
    }
    const std::uint64_t count =
        m_lines.count(count_line, count_words.front(), "the number of layers");
    std::size_t at = count_line;
    for (std::uint64_t i = 0; i < count; ++i) {
      at = next_line(at + 1, fmt::format("layer {} of {}", i + 1, count).c_str());
      layer(at);
    }
    for (std::size_t rest = at + 1; rest < m_lines.size(); ++rest) {
      if (!words_of(m_lines[rest]).empty()) {
        m_lines.fail(rest,
                     fmt::format("comes after the {} layers that line {} promises; mend one of "
                                 "them",
                                 count, count_line + 1));
      }
    }
    return finish(words.front(), at);
  }

private:
  std::size_t next_line(std::size_t from, const char* what) const {
    while (from < m_lines.size() && words_of(m_lines[from]).empty()) {
      ++from;
    }
    if (from >= m_lines.size()) {
      m_lines.fail(from, fmt::format("the file ends before {}; was it cut off?", what));
    }
    return from;
  }

  void layer(std::size_t at) {
    constexpr std::size_t k_fields = 12;
    const std::vector<std::string_view> words = words_of(m_lines[at]);
    if (words.size() != k_fields) {
      m_lines.fail(at,
                   fmt::format("has {} fields; a layer has {}: name, -1, then cycles, collective "
                               "and bytes of three passes, and the update's delay",
                               words.size(), k_fields));
    }
    const std::string name = unique(words[0]);
    const Pass forward = pass(at, words, 2, "the forward pass");
    const Pass input = pass(at, words, 5, "the input gradient");
    const Pass weight = pass(at, words, 8, "the weight gradient");
    m_out.left_out.update_cycles += m_lines.count(at, words[11], "the update's delay");
    m_forward += forward.cycles;
    m_backward += input.cycles + weight.cycles;
    if (weight.collective == "ALLREDUCE") {
      m_out.workload.tensors.push_back({name, elements(at, weight), DType::fp32});
    } else if (weight.bytes > 0) {
      m_lines.fail(at, fmt::format("the weight gradient travels by {}; a workload's gradients are "
                                   "summed over all workers, which is ALLREDUCE",
                                   weight.collective));
    }
    exchange(at, name, forward, input);
  }

  /// Of activations: an all-to-all there and its gradient's back are one thing.
  void exchange(std::size_t at, const std::string& name, const Pass& forward, const Pass& input) {
    if (forward.collective == "ALLTOALL" && input.collective == "ALLTOALL" &&
        forward.bytes == input.bytes) {
      m_out.workload.all_to_all.push_back({name, elements(at, forward), DType::fp32});
    } else if (forward.bytes + input.bytes > 0) {
      ++m_out.left_out.layers;
      m_out.left_out.collective_bytes += forward.bytes + input.bytes;
    }
  }

  Pass pass(std::size_t at, const std::vector<std::string_view>& words, std::size_t first,
            const std::string& what) const {
    const Pass pass{m_lines.count(at, words[first], what + "'s cycles"),
                    m_lines.count(at, words[first + 2], what + "'s bytes"), words[first + 1]};
    constexpr std::array<std::string_view, 5> k_known{"NONE", "ALLREDUCE", "ALLTOALL", "ALLGATHER",
                                                      "REDUCESCATTER"};
    if (std::find(k_known.begin(), k_known.end(), pass.collective) == k_known.end()) {
      m_lines.fail(at,
                   fmt::format("{}'s collective is \"{}\"; must be one of {}", what,
                               one_line(pass.collective.substr(0, 60)), fmt::join(k_known, ", ")));
    }
    if ((pass.collective == "NONE") != (pass.bytes == 0)) {
      m_lines.fail(at,
                   fmt::format("{} has {} bytes and the collective {}; NONE goes with 0 bytes and "
                               "nothing else",
                               what, pass.bytes, pass.collective));
    }
    return pass;
  }

  std::uint64_t elements(std::size_t at, const Pass& pass) const {
    if (pass.bytes % size_of(DType::fp32) != 0) {
      m_lines.fail(at, fmt::format("{} bytes are no whole number of 4-byte elements", pass.bytes));
    }
    return pass.bytes / size_of(DType::fp32);
  }

  /// ASTRA-sim does not mind layers of one name, a workload does.
  std::string unique(std::string_view word) {
    std::string name(word);
    for (int i = 2; !m_names.insert(name).second; ++i) {
      name = fmt::format("{}#{}", word, i);
    }
    return name;
  }

  AstraWorkload finish(std::string_view parallelism, std::size_t last) {
    Workload& w = m_out.workload;
    if (w.tensors.empty()) {
      m_lines.fail(last, "no layer all-reduces weight gradients, so there is nothing to plan for");
    }
    std::reverse(w.tensors.begin(), w.tensors.end());
    w.name = std::filesystem::path(m_lines.file()).stem().string();
    w.description =
        fmt::format("{} layers of an ASTRA-sim workload, {}", m_names.size(), parallelism);
    w.provenance = fmt::format("imported from {}; 1 cycle is 1 ns; gradients are taken to be fp32",
                               std::filesystem::path(m_lines.file()).filename().string());
    w.forward_seconds = static_cast<double>(m_forward) / k_cycles_per_s;
    w.backward_seconds = static_cast<double>(m_backward) / k_cycles_per_s;
    return std::move(m_out);
  }

  const TextLines& m_lines;
  AstraWorkload m_out;
  std::set<std::string> m_names;
  std::uint64_t m_forward = 0, m_backward = 0; ///< cycles
};

} // namespace

bool is_astra_workload(std::string_view text) {
  const std::vector<std::string_view> words = words_of(text.substr(0, text.find('\n')));
  return !words.empty() && is_parallelism(words.front());
}

AstraWorkload read_astra_workload(std::string_view text, const std::string& file) {
  const TextLines lines(text, file);
  return Reader(lines).read();
}

} // namespace reckon
