// SPDX-License-Identifier: Apache-2.0
#include "present/endpoint_text.hpp"

#include "core/units.hpp"
#include "present/numbers.hpp"
#include "present/table.hpp"

#include <fmt/format.h>

#include <array>

namespace reckon {
namespace {

std::string rate(double bytes_per_second) {
  return to_text(Bandwidth::bytes_per_s(bytes_per_second));
}

} // namespace

std::string endpoint_text(const Endpoint& e, const Style& style) {
  constexpr std::array<const char*, 3> k_rings{"local ring", "vertical ring", "horizontal ring"};
  Table facts(2, "|~");
  const auto add = [&](const char* what, const std::string& text) {
    facts.row({{what, Tone::dim}, text});
  };
  add("computes", fmt::format("{:.4g} TFLOP/s with {} SMs, memory {}", e.flops_per_second / 1e12,
                              e.sms, rate(e.memory_bytes_per_second)));
  add("communicates", fmt::format("{} an SM, {} to the network, links at {:.3g} %, chunks of {}",
                                  rate(e.sm_bytes_per_second), rate(e.bus_bytes_per_second),
                                  100 * e.link_efficiency, to_text(Bytes(e.chunk_bytes))));
  for (std::size_t d = 0; d < k_rings.size(); ++d) {
    add(k_rings[d], fmt::format("{}, {} a link", rate(e.rings[d].bytes_per_second),
                                time_text(e.rings[d].latency_seconds)));
  }
  Table table(2, "for communication|moved by|>SMs|>memory|~source");
  for (const EndpointConfiguration& c : e.configurations) {
    const auto of = [&](const auto& text) {
      return c.communication ? text(*c.communication) : std::string("all, by turns");
    };
    table.row({c.name, std::string(name_of(c.mover)),
               of([](const EndpointPart& p) { return fmt::format("{}", p.sms); }),
               of([](const EndpointPart& p) { return rate(p.memory_bytes_per_second); }),
               c.source});
  }
  if (e.aside) {
    table.row({{"aside", Tone::dim},
               "",
               fmt::format("{}", e.aside->sms),
               rate(e.aside->memory_bytes_per_second),
               ""});
  }
  return toned("endpoint", Tone::strong, style) + "\n" + facts.text(style) + table.text(style);
}

} // namespace reckon
