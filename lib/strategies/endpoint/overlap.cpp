// SPDX-License-Identifier: Apache-2.0
#include "strategies/endpoint/overlap.hpp"

#include "core/error.hpp"
#include "core/units.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace reckon {
namespace {

double of(std::uint64_t value) {
  return static_cast<double>(value);
}

/// More would fill the memory with stretches of a timeline, and show nothing that fewer do not.
constexpr double k_most_chunks = 4e6;

/// The layers' times in one configuration.
class Times {
public:
  Times(const OverlapQuestion& question, const EndpointConfiguration& configuration,
        OverlapAnswer& answer)
      : m_question(question), m_endpoint(question.endpoint), m_configuration(configuration),
        m_answer(answer) {
    for (const Tensor& tensor : question.workload.tensors) {
      m_tensors[tensor.name] = &tensor;
    }
    shares();
    collectives();
  }

  void layers() {
    const std::vector<Layer>& all = m_question.workload.layers;
    std::map<std::string, std::size_t> places;
    for (std::size_t i = 0; i < all.size(); ++i) {
      places[all[i].name] = i;
    }
    for (const Layer& layer : all) {
      m_answer.layers.push_back(timed(layer, places));
    }
  }

  /// Of all layers together, at the iteration's end.
  [[nodiscard]] TimedCollective fused() const {
    double exchanged = 0;
    for (const Layer& layer : m_question.workload.layers) {
      exchanged += layer.exchange ? exchange_bytes(layer) : 0;
    }
    TimedCollective fused;
    if (m_answer.payload_bytes > 0) {
      fused = timed(m_answer.payload_bytes, m_answer.all_reduce);
    }
    if (exchanged > 0) {
      // One kernel: the second part follows the first without waiting for its own first chunk.
      const TimedCollective back = timed(exchanged, m_answer.exchange);
      const double seconds = fused.alone_s() + back.alone_s() -
                             std::min(fused.chunks > 0 ? fused.fill_s : 0, back.fill_s);
      fused.chunks += back.chunks;
      fused.fill_s = std::max(fused.fill_s, back.fill_s);
      fused.chunk_s = (seconds - fused.fill_s) / of(fused.chunks);
    }
    return fused;
  }

private:
  void shares() {
    const EndpointPart all{of(m_endpoint.sms), m_endpoint.memory_bytes_per_second};
    EndpointPart left = all;
    const auto take = [&left](const EndpointPart& part) {
      left.sms -= part.sms;
      left.memory_bytes_per_second -= part.memory_bytes_per_second;
    };
    if (m_configuration.communication && m_configuration.mover != EndpointMover::none) {
      take(*m_configuration.communication);
    }
    if (aside()) {
      take(*m_endpoint.aside);
      m_aside = share(*m_endpoint.aside);
    }
    if (!(left.sms > 0) || !(left.memory_bytes_per_second > 0)) {
      fail(ErrorKind::usage, fmt::format("configuration {}: communication and what is computed "
                                         "aside leave nothing to the layers",
                                         m_configuration.name));
    }
    m_answer.compute = share(left);
  }

  [[nodiscard]] bool aside() const {
    return m_question.exchange_aside && m_configuration.communication.has_value();
  }

  [[nodiscard]] ComputeShare share(const EndpointPart& part) const {
    const double speed = m_question.compute_speed;
    return {speed * m_endpoint.flops_per_second * part.sms / of(m_endpoint.sms),
            speed * part.memory_bytes_per_second};
  }

  void collectives() {
    const auto collective = [this](bool all_reduce) {
      return overlap_collective(m_endpoint, m_question.shape, m_configuration, all_reduce);
    };
    m_answer.all_reduce = collective(true);
    m_answer.exchange = collective(false);
  }

  [[nodiscard]] double element_bytes(DType own) const {
    return of(size_of(m_question.dtype.value_or(own)));
  }
  /// Of what layers hand to each other.
  [[nodiscard]] double activation_bytes() const {
    return element_bytes(m_question.workload.tensors.front().dtype);
  }
  [[nodiscard]] double exchange_bytes(const Layer& layer) const {
    return activation_bytes() * of(m_question.batch) * of(layer.exchange->elements_per_sample);
  }

  [[nodiscard]] double seconds(const Computation& c, const ComputeShare& share) const {
    if (c.seconds) {
      const double alone = *c.seconds / m_question.compute_speed;
      const EndpointPart all{of(m_endpoint.sms), m_endpoint.memory_bytes_per_second};
      return m_question.bound ? stretched_seconds(alone, *m_question.bound, this->share(all), share)
                              : alone;
    }
    const double batch = of(m_question.batch);
    return computation_seconds(
        batch * of(c.flops_per_sample),
        activation_bytes() * (batch * of(c.elements_per_sample) + of(c.elements)), share);
  }

  [[nodiscard]] TimedCollective timed(double payload, const OverlapCollective& collective) const {
    return timed_collective(collective, payload, m_question.chunk_bytes);
  }

  TimedLayer timed(const Layer& layer, const std::map<std::string, std::size_t>& places) {
    const ComputeShare& share = layer.exchange && aside() ? m_aside : m_answer.compute;
    TimedLayer out;
    out.forward_s = seconds(layer.forward, share);
    out.input_gradient_s = seconds(layer.input_gradient, share);
    out.weight_gradient_s = seconds(layer.weight_gradient, share);
    double payload = 0;
    for (const std::string& name : layer.tensors) {
      const Tensor& tensor = *m_tensors.at(name);
      payload += element_bytes(tensor.dtype) * of(tensor.elements);
    }
    if (payload > 0) {
      out.all_reduce = timed(payload, m_answer.all_reduce);
      m_answer.payload_bytes += payload;
      m_answer.sent_bytes += payload * m_answer.all_reduce.traffic.sent_bytes;
    }
    if (layer.exchange) {
      const TimedCollective one_way = timed(exchange_bytes(layer), m_answer.exchange);
      out.exchange = {one_way, one_way, places.at(layer.exchange->before)};
      m_answer.sent_bytes += 2 * exchange_bytes(layer) * m_answer.exchange.traffic.sent_bytes;
    }
    return out;
  }

  const OverlapQuestion& m_question;
  const Endpoint& m_endpoint;
  const EndpointConfiguration& m_configuration;
  OverlapAnswer& m_answer;
  ComputeShare m_aside;
  std::map<std::string, const Tensor*> m_tensors;
};

} // namespace

Torus torus_of(const Endpoint& endpoint,
               const std::array<std::uint64_t, k_torus_dimensions>& shape) {
  Torus torus;
  torus.nodes = shape;
  for (std::size_t d = 0; d < k_torus_dimensions; ++d) {
    torus.bytes_per_s[d] = endpoint.link_efficiency * endpoint.rings[d].bytes_per_second;
  }
  return torus;
}

CommunicationShare communication_share(const Endpoint& endpoint,
                                       const EndpointConfiguration& configuration,
                                       const TorusTraffic& traffic, bool all_reduce) {
  CommunicationShare share;
  if (configuration.mover == EndpointMover::none) {
    return share;
  }
  const EndpointPart part = configuration.communication.value_or(
      EndpointPart{of(endpoint.sms), endpoint.memory_bytes_per_second});
  share.memory_bytes_per_s = part.memory_bytes_per_second;
  share.bus_bytes_per_s = endpoint.bus_bytes_per_second;
  if (configuration.mover == EndpointMover::engine) {
    share.reads_per_byte_sent = traffic.loaded_bytes / traffic.sent_bytes;
  } else {
    share.cores_bytes_per_s = part.sms * endpoint.sm_bytes_per_second;
    share.reads_per_byte_sent =
        all_reduce ? k_reads_per_byte_sent : traffic.memory.read_bytes / traffic.sent_bytes;
  }
  return share;
}

OverlapCollective overlap_collective(const Endpoint& endpoint,
                                     const std::array<std::uint64_t, k_torus_dimensions>& shape,
                                     const EndpointConfiguration& configuration, bool all_reduce) {
  const Torus torus = torus_of(endpoint, shape);
  std::array<double, k_torus_dimensions> latency_s{};
  for (std::size_t d = 0; d < k_torus_dimensions; ++d) {
    latency_s[d] = endpoint.rings[d].latency_seconds;
  }
  OverlapCollective out;
  out.traffic = all_reduce ? torus_all_reduce(torus) : torus_all_to_all(torus);
  const CommunicationShare share =
      communication_share(endpoint, configuration, out.traffic, all_reduce);
  out.rate = collective_rate(torus_limit(torus, out.traffic).bytes_per_s, share);
  out.fill_s =
      all_reduce ? all_reduce_fill_s(torus, latency_s) : all_to_all_fill_s(torus, latency_s);
  out.first_chunk_s_per_byte = first_chunk_s(torus, out.traffic, share);
  return out;
}

TimedCollective timed_collective(const OverlapCollective& collective, double payload_bytes,
                                 std::uint64_t chunk_bytes) {
  const double chunks = std::ceil(payload_bytes / of(chunk_bytes));
  if (chunks > k_most_chunks) {
    fail(ErrorKind::usage, fmt::format("--chunk {}: {:.3g} of them; take larger chunks",
                                       to_text(Bytes(chunk_bytes)), chunks));
  }
  const double payload = payload_bytes / chunks;
  return {collective.fill_s + payload * collective.first_chunk_s_per_byte,
          payload * collective.traffic.sent_bytes / collective.rate.bytes_per_s,
          static_cast<std::uint64_t>(chunks)};
}

OverlapAnswer predict_overlap(const OverlapQuestion& question,
                              const EndpointConfiguration& configuration) {
  if (question.workload.layers.empty()) {
    fail(ErrorKind::usage,
         fmt::format("the workload {} does not say what its layers compute; add \"layers\"",
                     question.workload.name));
  }
  const std::vector<Layer>& layers = question.workload.layers;
  if (question.exchange_aside && std::none_of(layers.begin(), layers.end(), [](const Layer& l) {
        return l.exchange.has_value();
      })) {
    fail(ErrorKind::usage, fmt::format("--dlrm-overlap: {} has no layer with an exchange, and what "
                                       "is set aside would be idle; leave it out",
                                       question.workload.name));
  }
  if (question.exchange_aside && !question.endpoint.aside) {
    fail(ErrorKind::usage, "the endpoint has no part for what is computed aside; add \"aside\"");
  }
  OverlapAnswer answer;
  answer.configuration = &configuration;
  Times times(question, configuration, answer);
  times.layers();
  TimelineOptions options;
  options.policy = question.policy;
  options.contention = question.contention;
  options.pipelined = configuration.mover != EndpointMover::cores;
  if (configuration.communication) {
    options.exchange_aside = question.exchange_aside;
  } else {
    options.fused = times.fused();
  }
  answer.timeline = play_timeline(answer.layers, options);
  return answer;
}

EndpointSweep sweep_endpoint(const Endpoint& endpoint,
                             const std::array<std::uint64_t, k_torus_dimensions>& shape,
                             double payload_bytes, std::uint64_t chunk_bytes, SweptPart swept) {
  const auto reached = [&](EndpointMover mover, const EndpointPart& part) {
    EndpointConfiguration c;
    c.mover = mover;
    c.communication = part;
    const OverlapCollective collective = overlap_collective(endpoint, shape, c, true);
    return payload_bytes * collective.traffic.sent_bytes /
           timed_collective(collective, payload_bytes, chunk_bytes).alone_s();
  };
  EndpointSweep out;
  out.ideal = reached(EndpointMover::none, {});
  const double memory = endpoint.memory_bytes_per_second;
  const auto sms = static_cast<double>(endpoint.sms);
  if (swept == SweptPart::memory) {
    constexpr int k_steps = 18;
    for (int i = 1; i <= k_steps; ++i) {
      const EndpointPart part{sms, memory * i / k_steps};
      out.points.push_back({part.memory_bytes_per_second, reached(EndpointMover::cores, part),
                            reached(EndpointMover::engine, part)});
    }
  } else {
    for (int i = 1; i <= std::min(10.0, sms); ++i) {
      out.points.push_back({static_cast<double>(i),
                            reached(EndpointMover::cores, {static_cast<double>(i), memory}), 0});
    }
  }
  return out;
}

const EndpointConfiguration* configuration_named(const Endpoint& endpoint,
                                                 const std::string& name) {
  std::vector<std::string> names;
  for (const EndpointConfiguration& c : endpoint.configurations) {
    if (c.name == name) {
      return &c;
    }
    names.push_back(c.name);
  }
  if (!name.empty()) {
    fail(ErrorKind::usage,
         fmt::format("--configuration {}: must be one of {}", name, fmt::join(names, ", ")));
  }
  return nullptr;
}

ConfiguredWorkload configured(const Workload& workload, const Endpoint& endpoint,
                              const std::array<std::uint64_t, k_torus_dimensions>& shape,
                              const EndpointConfiguration& configuration) {
  ConfiguredWorkload out{workload};
  if (workload.layers.empty()) {
    return out;
  }
  const OverlapQuestion question{.workload = workload,
                                 .endpoint = endpoint,
                                 .shape = shape,
                                 .batch = workload.batch.value_or(1),
                                 .chunk_bytes = endpoint.chunk_bytes};
  const OverlapAnswer answer = predict_overlap(question, configuration);
  for (std::size_t i = 0; i < workload.layers.size(); ++i) {
    const auto takes = [](Computation& computation, double seconds) {
      computation = {};
      computation.seconds = seconds;
    };
    takes(out.workload.layers[i].forward, answer.layers[i].forward_s);
    takes(out.workload.layers[i].input_gradient, answer.layers[i].input_gradient_s);
    takes(out.workload.layers[i].weight_gradient, answer.layers[i].weight_gradient_s);
  }
  out.workload.forward_seconds.reset();
  out.workload.backward_seconds.reset();
  out.iteration_s = answer.timeline.iteration_s;
  return out;
}

} // namespace reckon
