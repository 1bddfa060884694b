// SPDX-License-Identifier: Apache-2.0
#include "import/trace_workload.hpp"

#include "core/error.hpp"
#include "core/log.hpp"
#include "import/records/job.hpp"
#include "import/records/trace.hpp"
#include "stats/summary.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

namespace reckon {

using namespace import_detail;

namespace {

constexpr std::string_view k_backward_node = "autograd::engine::evaluate_function: ";
constexpr std::string_view k_accumulate = "torch::autograd::AccumulateGrad";
constexpr std::string_view k_module = "nn.Module: ";

/// Work on the GPU by when it was launched; without any, time passes on the processor.
class WorkOfTrace {
public:
  explicit WorkOfTrace(const std::vector<TraceEvent>& events) {
    std::map<std::uint64_t, double> launched;
    for (const TraceEvent& event : events) {
      if (const auto id = event.count("correlation"); id && is_launch(event)) {
        launched[*id] = event.begin_s;
      }
    }
    for (const TraceEvent& event : events) {
      const bool on_gpu = event.category == "kernel" || event.category.starts_with("gpu_mem");
      const auto at =
          on_gpu ? launched.find(event.count("correlation").value_or(0)) : launched.end();
      if (at != launched.end() && !event.name.starts_with("nccl")) {
        m_work[at->second] += event.end_s - event.begin_s;
      }
    }
  }

  [[nodiscard]] double between(double begin_s, double end_s) const {
    if (m_work.empty()) {
      return std::max(0.0, end_s - begin_s);
    }
    double sum = 0;
    for (auto at = m_work.lower_bound(begin_s); at != m_work.end() && at->first < end_s; ++at) {
      sum += at->second;
    }
    return sum;
  }

private:
  static bool is_launch(const TraceEvent& event) {
    return event.category == "cuda_runtime" || event.category == "cuda_driver";
  }
  std::map<double, double> m_work;
};

/// One step as the trace has it.
struct TracedStep {
  struct Gradient {
    std::uint64_t elements;
    DType dtype;
    std::size_t layer = 0; ///< of `layers`
    double ready_s = 0;
  };
  struct Part {
    std::string name;
    double begin_s; ///< of its forward call
    double forward_s = 0, backward_s = 0;
  };
  std::vector<Gradient> gradients;
  std::vector<Part> layers; ///< in forward order
  double forward_begin_s = 0, backward_begin_s = 0, backward_end_s = 0;
  double forward_s = 0, backward_s = 0;
  std::size_t left_out = 0; ///< gradients

  [[nodiscard]] bool is_like(const TracedStep& other) const {
    return layers.size() == other.layers.size() &&
           std::ranges::equal(gradients, other.gradients, [](const auto& a, const auto& b) {
             return a.elements == b.elements && a.dtype == b.dtype && a.layer == b.layer;
           });
  }
};

class TraceReader {
public:
  TraceReader(std::string_view text, const std::string& file)
      : m_trace(text, file), m_file(file), m_events(m_trace.events()), m_work(m_events),
        m_parents(parents()) {
    const bool sized = std::ranges::any_of(m_events, [](const TraceEvent& event) {
      return event.name == k_accumulate && event.arg("Input Dims") != nullptr;
    });
    m_by_bucket = !sized && std::ranges::any_of(m_events, &is_bucket);
  }

  [[nodiscard]] bool by_bucket() const { return m_by_bucket; }

  [[nodiscard]] std::vector<TracedStep> steps() const {
    std::vector<TracedStep> out;
    for (const TraceEvent& event : m_events) {
      if (event.name.starts_with("ProfilerStep#") && event.category != "gpu_user_annotation") {
        if (auto step = this->step(event.begin_s, event.end_s)) {
          add_times(*step);
          out.push_back(std::move(*step));
        }
      }
    }
    if (out.empty()) {
      m_trace.view().fail("has no step with a backward pass; call profiler.step() after each "
                          "iteration and trace at least one whole");
    }
    return out;
  }

private:
  static constexpr std::size_t k_none = static_cast<std::size_t>(-1);

  /// Of each event, the one around it in its thread.
  [[nodiscard]] std::vector<std::size_t> parents() const {
    std::vector<std::size_t> out(m_events.size(), k_none);
    std::map<std::string_view, std::vector<std::size_t>> open;
    for (std::size_t i = 0; i < m_events.size(); ++i) {
      std::vector<std::size_t>& around = open[m_events[i].thread];
      while (!around.empty() && m_events[around.back()].end_s <= m_events[i].begin_s) {
        around.pop_back();
      }
      out[i] = around.empty() ? k_none : around.back();
      around.push_back(i);
    }
    return out;
  }

  static bool is_forward(const TraceEvent& event) {
    return event.category == "cpu_op" && event.count("Sequence number") &&
           event.count("Fwd thread id").value_or(1) == 0 &&
           !event.name.starts_with(k_backward_node);
  }

  static bool is_accumulation(const TraceEvent& event) {
    return event.name.starts_with(k_backward_node) &&
           event.name.substr(k_backward_node.size()) == k_accumulate;
  }

  /// The outermost call of the forward pass around one.
  [[nodiscard]] std::size_t outermost(std::size_t event) const {
    std::size_t out = event;
    for (std::size_t at = event; at != k_none; at = m_parents[at]) {
      out = is_forward(m_events[at]) ? at : out;
    }
    return out;
  }

  /// The module's name, where the trace has Python's calls (with_stack=True, with_modules=True).
  [[nodiscard]] std::string layer_name(std::size_t call) const {
    if (m_by_bucket) {
      return "bucket";
    }
    for (std::size_t at = call; at != k_none; at = m_parents[at]) {
      if (m_events[at].name.starts_with(k_module)) {
        return std::string(m_events[at].name.substr(k_module.size()));
      }
    }
    const std::string_view name = m_events[call].name;
    return std::string(name.substr(name.starts_with("aten::") ? 6 : 0));
  }

  /// Of a node that added a gradient up. Nothing for one that is sparse or was not made: the trace
  /// has no size of it.
  [[nodiscard]] std::optional<TracedStep::Gradient> gradient_of_node(std::size_t node) const {
    for (std::size_t i = node + 1;
         i < m_events.size() && m_events[i].begin_s <= m_events[node].end_s; ++i) {
      const Json* const shapes = m_events[i].arg("Input Dims");
      const Json* const types = m_events[i].arg("Input type");
      if (m_events[i].name == k_accumulate && m_events[i].thread == m_events[node].thread &&
          shapes != nullptr && types != nullptr && !shapes->empty() && !types->empty()) {
        std::uint64_t elements = 1;
        for (const std::uint64_t extent : JsonView(shapes->front(), m_file).counts()) {
          elements *= extent;
        }
        return gradient(elements, JsonView(types->front(), m_file).string());
      }
    }
    m_trace.view().fail("has gradients without sizes; trace with record_shapes=True");
  }

  [[nodiscard]] std::optional<TracedStep::Gradient> gradient(std::uint64_t elements,
                                                             const std::string& type) const {
    if (type.empty() || elements == 0) {
      return std::nullopt;
    }
    const RecordedType* const known = recorded_type(type);
    const auto dtype = known == nullptr ? std::nullopt : dtype_named(known->name);
    if (!dtype) {
      m_trace.view().fail(fmt::format("has a gradient of type {}; a workload has float, c10::Half "
                                      "and c10::BFloat16: trace a model of these",
                                      one_line(type)));
    }
    return TracedStep::Gradient{elements, *dtype};
  }

  /// A sum of gradients of several layers: what is ready in a trace without sizes of gradients.
  static bool is_bucket(const TraceEvent& event) {
    const std::string name = event.text("Collective name");
    return event.name == "record_param_comms" &&
           (name.starts_with("allreduce") || name.find("reduce_scatter") != name.npos);
  }

  [[nodiscard]] bool is_inside_node(std::size_t event) const {
    while (event != k_none && !m_events[event].name.starts_with(k_backward_node)) {
      event = m_parents[event];
    }
    return event != k_none;
  }

  /// What became ready with an event: a gradient, or where the trace has no sizes of gradients, a
  /// bucket of them, whose sum begins.
  [[nodiscard]] std::optional<TracedStep::Gradient> ready_with(std::size_t event) const {
    const TraceEvent& e = m_events[event];
    if (m_by_bucket) {
      return is_bucket(e) && is_inside_node(event)
                 ? gradient(e.count("In msg nelems").value_or(0), e.text("dtype"))
                 : std::nullopt;
    }
    return is_accumulation(e) ? gradient_of_node(event) : std::nullopt;
  }

  [[nodiscard]] std::optional<TracedStep> step(double begin_s, double end_s) const {
    TracedStep out;
    std::map<std::uint64_t, std::size_t> calls; // of the forward pass, by sequence number
    std::map<std::size_t, std::vector<std::size_t>> gradients_of; // by forward call
    std::optional<std::size_t> call;                              // whose backward pass ran last
    out.forward_begin_s = end_s;
    for (std::size_t i = 0; i < m_events.size(); ++i) {
      const TraceEvent& event = m_events[i];
      if (event.begin_s < begin_s || event.begin_s >= end_s) {
        continue;
      }
      const auto sequence = event.count("Sequence number");
      if (is_forward(event)) {
        calls.try_emplace(*sequence, outermost(i));
      } else if (event.name.starts_with(k_backward_node)) {
        out.backward_begin_s = out.backward_end_s == 0 ? event.begin_s : out.backward_begin_s;
        out.backward_end_s = std::max(out.backward_end_s, event.end_s);
        if (const auto at = calls.find(sequence.value_or(k_none)); at != calls.end()) {
          call = at->second;
          out.forward_begin_s = std::min(out.forward_begin_s, m_events[*call].begin_s);
        }
      }
      if (auto made = call ? ready_with(i) : std::nullopt) {
        made->ready_s = m_by_bucket ? event.begin_s : event.end_s;
        gradients_of[*call].push_back(out.gradients.size());
        out.gradients.push_back(*made);
      } else if (!m_by_bucket && is_accumulation(event)) {
        ++out.left_out;
      }
    }
    for (const auto& [forward, gradients] : gradients_of) { // events are in the order of time
      for (const std::size_t gradient : gradients) {
        out.gradients[gradient].layer = out.layers.size();
      }
      out.layers.push_back({layer_name(forward), m_events[forward].begin_s});
    }
    return out.gradients.empty() ? std::nullopt : std::optional(std::move(out));
  }

  /// A layer's forward pass goes from its call to the next layer's.
  void add_times(TracedStep& step) const {
    step.forward_s = m_work.between(step.forward_begin_s, step.backward_begin_s);
    step.backward_s = m_work.between(step.backward_begin_s, step.backward_end_s);
    double end_s = step.backward_begin_s;
    for (std::size_t i = step.layers.size(); i-- > 0;) {
      TracedStep::Part& layer = step.layers[i];
      const double begin_s = i == 0 ? step.forward_begin_s : layer.begin_s;
      layer.forward_s = m_work.between(begin_s, end_s);
      end_s = begin_s;
    }
    double before_s = step.backward_begin_s;
    for (TracedStep::Gradient& gradient : step.gradients) {
      const bool last = &gradient == &step.gradients.back();
      const double ready_s = last ? step.backward_end_s : gradient.ready_s;
      step.layers[gradient.layer].backward_s += m_work.between(before_s, ready_s);
      before_s = ready_s;
    }
  }

  Trace m_trace;
  std::string m_file;
  const std::vector<TraceEvent>& m_events;
  WorkOfTrace m_work;
  std::vector<std::size_t> m_parents;
  bool m_by_bucket = false;
};

/// Of the steps, those with the gradients that most of them have.
std::vector<TracedStep> most_alike(const std::vector<TracedStep>& steps) {
  std::vector<TracedStep> most;
  for (const TracedStep& one : steps) {
    std::vector<TracedStep> same;
    std::ranges::copy_if(steps, std::back_inserter(same),
                         [&](const TracedStep& other) { return other.is_like(one); });
    if (same.size() > most.size()) {
      most = std::move(same);
    }
  }
  return most;
}

template <class Value>
double median_over_steps(const std::vector<TracedStep>& steps, Value value) {
  std::vector<double> values;
  std::ranges::transform(steps, std::back_inserter(values), value);
  return median(values);
}

std::optional<double> seconds_if_any(double seconds) {
  return seconds > 0 ? std::optional(seconds) : std::nullopt;
}

} // namespace

Workload workload_from_trace(std::string_view text, const std::string& file) {
  const TraceReader reader(text, file);
  const std::vector<TracedStep> all = reader.steps();
  const std::vector<TracedStep> steps = most_alike(all);
  const TracedStep& first = steps.front();
  if (first.left_out > 0) {
    log(LogLevel::warn, "{}: {} gradients of each step are sparse or were not made; left out", file,
        first.left_out);
  }
  Workload out;
  const std::string name = std::filesystem::path(file).filename().string();
  out.name = one_line(std::filesystem::path(name).stem().string());
  out.provenance = fmt::format(
      "a trace of torch.profiler ({}): order and times of {} of {} steps{}", one_line(name),
      steps.size(), all.size(), reader.by_bucket() ? "; its tensors are buckets of gradients" : "");
  out.forward_seconds = seconds_if_any(median_over_steps(steps, &TracedStep::forward_s));
  out.backward_seconds = seconds_if_any(median_over_steps(steps, &TracedStep::backward_s));
  std::map<std::string, std::size_t> names;
  for (std::size_t i = 0; i < first.layers.size(); ++i) {
    Layer& layer = out.layers.emplace_back();
    const std::string& known = first.layers[i].name;
    layer.name = fmt::format("{}_{}", known, names[known]++);
    layer.forward.seconds = seconds_if_any(
        median_over_steps(steps, [&](const TracedStep& s) { return s.layers[i].forward_s; }));
    layer.weight_gradient.seconds = seconds_if_any(
        median_over_steps(steps, [&](const TracedStep& s) { return s.layers[i].backward_s; }));
  }
  for (const TracedStep::Gradient& gradient : first.gradients) {
    Layer& layer = out.layers[gradient.layer];
    Tensor& tensor = out.tensors.emplace_back();
    tensor.name = fmt::format("{}.{}", layer.name, layer.tensors.size());
    tensor.dtype = gradient.dtype;
    tensor.elements = gradient.elements;
    layer.tensors.push_back(tensor.name);
  }
  return out;
}

} // namespace reckon
