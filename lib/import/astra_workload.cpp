// SPDX-License-Identifier: Apache-2.0
#include "import/astra_workload.hpp"

#include "core/error.hpp"
#include "import/text_lines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <vector>

namespace reckon {

using namespace import_detail;

namespace {

constexpr const char* k_parallelisms =
    "DATA MODEL MICRO HYBRID_DATA_MODEL HYBRID_MODEL_DATA HYBRID_DLRM HYBRID_DLRM_ENHANCED "
    "HYBRID_TRANSFORMER HYBRID_TRANSFORMER_FWD_IN_BCKWD HYBRID_CUSTOMIZED DISTRIBUTED_INFERENCE";
constexpr const char* k_astra_collectives = "NONE ALLREDUCE ALLTOALL ALLGATHER REDUCESCATTER";
constexpr double k_cycles_per_s = 1e9; // ASTRA-sim's clock

bool is_one_of(std::string_view word, const char* words) {
  return std::ranges::count(words_of(words), word) > 0;
}

/// Zero is not said.
std::optional<double> seconds_of(std::uint64_t cycles) {
  return cycles > 0 ? std::optional(static_cast<double>(cycles) / k_cycles_per_s) : std::nullopt;
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
    const Line head = next_line("the parallelism, as DATA");
    if (!is_one_of(head[0], k_parallelisms)) {
      head.fail(
          fmt::format("\"{}\" is no parallelism of ASTRA-sim 1.0 ({}); give its workload text",
                      quoted(head[0]), k_parallelisms));
    }
    m_customized = head[0] == "HYBRID_CUSTOMIZED";
    const std::uint64_t last_bottom = last_bottom_layer(head);
    const Line promise = next_line("the number of layers");
    if (promise.words.size() != 1) {
      promise.fail("must be the number of layers and nothing else");
    }
    const std::uint64_t count = promise.count(promise[0], "the number of layers");
    for (std::uint64_t i = 0; i < count; ++i) {
      layer(next_line(fmt::format("layer {} of {}", i + 1, count)));
    }
    const std::size_t last = m_next - 1;
    for (; m_next < m_lines.size(); ++m_next) {
      if (!m_lines[m_next].empty()) {
        m_lines.fail(m_next,
                     fmt::format("comes after the {} layers that line {} promises; mend one "
                                 "of them",
                                 count, promise.at + 1));
      }
    }
    connect_exchanges(last_bottom);
    return finish(head[0], last);
  }

private:
  Line next_line(const std::string& what) {
    while (m_next < m_lines.size() && m_lines[m_next].empty()) {
      ++m_next;
    }
    if (m_next >= m_lines.size()) {
      m_lines.fail(m_next, fmt::format("the file ends before {}; was it cut off?", what));
    }
    return {m_lines, m_next++};
  }

  /// Of DLRM: the layer after this one waits for the exchanges of those before. Written alone or
  /// after its name; 0 where it is not written, as ASTRA-sim has it.
  static std::uint64_t last_bottom_layer(const Line& head) {
    if (!head[0].starts_with("HYBRID_DLRM") || head.words.size() < 2) {
      return 0;
    }
    const std::string_view number = head[head[1] == "DLRM_LAST_BOTTOM_LAYER:" ? 2 : 1];
    if (number.empty()) {
      head.fail("ends before the number of the last bottom layer");
    }
    return head.count(number, "the number of the last bottom layer");
  }

  void layer(const Line& line) {
    // Where each layer has its own parallelism, that stands at the end.
    const std::size_t fields = m_customized ? 13 : 12;
    if (line.words.size() != fields) {
      line.fail(fmt::format("has {} fields; a layer has {}: name, -1, then cycles, collective and "
                            "bytes of three passes, and the update's delay{}",
                            line.words.size(), fields,
                            m_customized ? ", and its own parallelism" : ""));
    }
    if (m_customized && !is_one_of(line[12], k_parallelisms)) {
      line.fail(fmt::format("the layer's parallelism is \"{}\"; must be one of {}",
                            quoted(line[12]), k_parallelisms));
    }
    const std::string name = unique(line[0]);
    const Pass forward = pass(line, 2, "the forward pass");
    const Pass input = pass(line, 5, "the input gradient");
    const Pass weight = pass(line, 8, "the weight gradient");
    m_out.left_out.update_cycles += line.count(line[11], "the update's delay");
    m_forward += forward.cycles;
    m_backward += input.cycles + weight.cycles;
    Layer& layer = m_out.workload.layers.emplace_back();
    layer.name = name;
    layer.forward.seconds = seconds_of(forward.cycles);
    layer.input_gradient.seconds = seconds_of(input.cycles);
    layer.weight_gradient.seconds = seconds_of(weight.cycles);
    if (weight.collective == "ALLREDUCE") {
      m_out.workload.tensors.push_back({name, elements(line, weight), DType::fp32});
      layer.tensors = {name};
    } else if (weight.bytes > 0) {
      line.fail(fmt::format("the weight gradient travels by {}; a workload's gradients are summed "
                            "over all workers, which is ALLREDUCE",
                            weight.collective));
    }
    exchange(line, layer, forward, input);
  }

  /// Of activations: an all-to-all there and its gradient's back are one thing.
  void exchange(const Line& line, Layer& layer, const Pass& forward, const Pass& input) {
    if (forward.collective == "ALLTOALL" && input.collective == "ALLTOALL" &&
        forward.bytes == input.bytes) {
      const std::string name =
          layer.tensors.empty() ? layer.name : unique(layer.name + " exchange");
      m_out.workload.all_to_all.push_back({name, elements(line, forward), DType::fp32});
      // The text knows no samples: what a worker has counts as one.
      layer.exchange = Exchange{elements(line, forward), ""};
    } else if (forward.bytes + input.bytes > 0) {
      ++m_out.left_out.layers;
      m_out.left_out.collective_bytes += forward.bytes + input.bytes;
    }
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

  static Pass pass(const Line& line, std::size_t first, const std::string& what) {
    const Pass pass{line.count(line[first], what + "'s cycles"),
                    line.count(line[first + 2], what + "'s bytes"), line[first + 1]};
    if (!is_one_of(pass.collective, k_astra_collectives)) {
      line.fail(fmt::format("{}'s collective is \"{}\"; must be one of {}", what,
                            quoted(pass.collective), k_astra_collectives));
    }
    if ((pass.collective == "NONE") != (pass.bytes == 0)) {
      line.fail(fmt::format("{} has {} bytes and the collective {}; NONE goes with 0 bytes and "
                            "nothing else",
                            what, pass.bytes, pass.collective));
    }
    return pass;
  }

  static std::uint64_t elements(const Line& line, const Pass& pass) {
    if (pass.bytes % size_of(DType::fp32) != 0) {
      line.fail(fmt::format("{} bytes are no whole number of 4-byte elements", pass.bytes));
    }
    return pass.bytes / size_of(DType::fp32);
  }

  /// ASTRA-sim does not mind layers of one name, a workload does.
  std::string unique(std::string_view word) {
    std::string name(word);
    while (!m_names.insert(name).second) {
      name = fmt::format("{}#{}", word, ++m_copies.try_emplace(std::string(word), 1).first->second);
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
    w.forward_seconds = seconds_of(m_forward);
    w.backward_seconds = seconds_of(m_backward);
    return std::move(m_out);
  }

  const TextLines& m_lines;
  std::size_t m_next = 0; ///< line
  bool m_customized = false;
  AstraWorkload m_out;
  std::set<std::string> m_names;
  std::map<std::string, int> m_copies;         ///< of layers of one name
  std::uint64_t m_forward = 0, m_backward = 0; ///< cycles
};

} // namespace

bool is_astra_workload(std::string_view text) {
  const std::vector<std::string_view> words = words_of(text.substr(0, text.find('\n')));
  return !words.empty() && is_one_of(words.front(), k_parallelisms);
}

AstraWorkload read_astra_workload(std::string_view text, const std::string& file) {
  const TextLines lines(text, file);
  return Reader(lines).read();
}

} // namespace reckon
