// SPDX-License-Identifier: Apache-2.0
#include "import/astra_workload.hpp"

#include "core/error.hpp"
#include "import/text_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <optional>
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
                                     quoted(words.front()), fmt::join(k_parallelisms, ", ")));
    }
    m_customized = words.front() == "HYBRID_CUSTOMIZED";
    const std::uint64_t last_bottom = last_bottom_layer(head, words);
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
    connect_exchanges(last_bottom);
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

  /// Of DLRM: the layer after this one waits for the exchanges of those before. Written alone or
  /// after its name; 0 where it is not written, as ASTRA-sim has it.
  std::uint64_t last_bottom_layer(std::size_t head,
                                  const std::vector<std::string_view>& words) const {
    constexpr std::string_view k_name = "DLRM_LAST_BOTTOM_LAYER:";
    if (!words.front().starts_with("HYBRID_DLRM") || words.size() < 2) {
      return 0;
    }
    const std::size_t number = words[1] == k_name ? 2 : 1;
    if (number >= words.size()) {
      m_lines.fail(head, "ends before the number of the last bottom layer");
    }
    return m_lines.count(head, words[number], "the number of the last bottom layer");
  }

  void layer(std::size_t at) {
    // Where each layer has its own parallelism, that stands at the end.
    const std::size_t fields = m_customized ? 13 : 12;
    const std::vector<std::string_view> words = words_of(m_lines[at]);
    if (words.size() != fields) {
      m_lines.fail(
          at, fmt::format("has {} fields; a layer has {}: name, -1, then cycles, collective "
                          "and bytes of three passes, and the update's delay{}",
                          words.size(), fields, m_customized ? ", and its own parallelism" : ""));
    }
    if (m_customized && !is_parallelism(words.back())) {
      m_lines.fail(at, fmt::format("the layer's parallelism is \"{}\"; must be one of {}",
                                   quoted(words.back()), fmt::join(k_parallelisms, ", ")));
    }
    const std::string name = unique(words[0]);
    const Pass forward = pass(at, words, 2, "the forward pass");
    const Pass input = pass(at, words, 5, "the input gradient");
    const Pass weight = pass(at, words, 8, "the weight gradient");
    m_out.left_out.update_cycles += m_lines.count(at, words[11], "the update's delay");
    m_forward += forward.cycles;
    m_backward += input.cycles + weight.cycles;
    m_out.workload.layers.push_back(
        {name, {}, measured(forward), measured(input), measured(weight), {}});
    if (weight.collective == "ALLREDUCE") {
      m_out.workload.tensors.push_back({name, elements(at, weight), DType::fp32});
      m_out.workload.layers.back().tensors = {name};
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
      const bool named = m_out.workload.layers.back().tensors.empty(); // else a tensor is
      m_out.workload.all_to_all.push_back(
          {named ? name : unique(name + " exchange"), elements(at, forward), DType::fp32});
      // The text knows no samples: what a worker has counts as one.
      m_out.workload.layers.back().exchange = Exchange{elements(at, forward), ""};
    } else if (forward.bytes + input.bytes > 0) {
      ++m_out.left_out.layers;
      m_out.left_out.collective_bytes += forward.bytes + input.bytes;
    }
  }

  static Computation measured(const Pass& pass) {
    Computation computation;
    if (pass.cycles > 0) {
      computation.seconds = static_cast<double>(pass.cycles) / k_cycles_per_s;
    }
    return computation;
  }

  /// A bottom layer of DLRM exchanges while the others of them compute, any other before the next
  /// layer begins that exchanges nothing itself. What the last layer exchanges nothing here waits
  /// for.
  void connect_exchanges(std::uint64_t last_bottom) {
    std::vector<Layer>& layers = m_out.workload.layers;
    for (std::size_t i = 0; i < layers.size(); ++i) {
      if (!layers[i].exchange) {
        continue;
      }
      const std::size_t next = i <= last_bottom ? last_bottom + 1 : i + 1;
      std::size_t before = next; // what waits for an exchange has none itself
      while (before < layers.size() && layers[before].exchange) {
        ++before;
      }
      if (before > i && before < layers.size()) {
        m_out.left_out.later += before > next ? 1 : 0;
        layers[i].exchange->before = layers[before].name;
      } else {
        layers[i].exchange.reset();
        ++m_out.left_out.unawaited;
      }
    }
  }

  Pass pass(std::size_t at, const std::vector<std::string_view>& words, std::size_t first,
            const std::string& what) const {
    const Pass pass{m_lines.count(at, words[first], what + "'s cycles"),
                    m_lines.count(at, words[first + 2], what + "'s bytes"), words[first + 1]};
    constexpr std::array<std::string_view, 5> k_known{"NONE", "ALLREDUCE", "ALLTOALL", "ALLGATHER",
                                                      "REDUCESCATTER"};
    if (std::find(k_known.begin(), k_known.end(), pass.collective) == k_known.end()) {
      m_lines.fail(at, fmt::format("{}'s collective is \"{}\"; must be one of {}", what,
                                   quoted(pass.collective), fmt::join(k_known, ", ")));
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
        fmt::format("{} layers of an ASTRA-sim workload, {}", w.layers.size(), parallelism);
    w.provenance = fmt::format("imported from {}; 1 cycle is 1 ns; gradients are taken to be fp32",
                               std::filesystem::path(m_lines.file()).filename().string());
    if (m_forward + m_backward == 0) { // it does not say what is computed
      w.layers.clear();
    }
    const auto seconds = [](std::uint64_t cycles) {
      return cycles > 0 ? std::optional(static_cast<double>(cycles) / k_cycles_per_s)
                        : std::nullopt;
    };
    w.forward_seconds = seconds(m_forward);
    w.backward_seconds = seconds(m_backward);
    return std::move(m_out);
  }

  const TextLines& m_lines;
  bool m_customized = false;
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
