// SPDX-License-Identifier: Apache-2.0
#include "documents/endpoint.hpp"

#include "documents/fields.hpp"
#include "documents/json.hpp"

#include <fmt/format.h>

namespace reckon {
namespace documents {
namespace {

constexpr std::array<std::string_view, 3> k_movers{"cores", "engine", "none"};
constexpr Rule k_efficiency{.low = 0, .high = 1, .above_low = true};

/// What a part has leaves computation something.
void check_part(const EndpointPart& part, const Endpoint& endpoint, const JsonView& view) {
  const auto below = [&](const char* key, double value, double all) {
    if (value >= all) {
      view.at(key).fail(fmt::format(
          "is {}, the endpoint has {}; must be less, so that computation has some", value, all));
    }
  };
  below("sms", part.sms, static_cast<double>(endpoint.sms));
  below("memory_bytes_per_second", part.memory_bytes_per_second, endpoint.memory_bytes_per_second);
}

void check(const Endpoint& endpoint, const JsonView& view) {
  if (endpoint.aside) {
    check_part(*endpoint.aside, endpoint, view.at("aside"));
  }
  Unique names(view, "configuration's name");
  for (std::size_t i = 0; i < endpoint.configurations.size(); ++i) {
    const EndpointConfiguration& configuration = endpoint.configurations[i];
    if (configuration.communication) {
      check_part(*configuration.communication, endpoint,
                 below(view, fmt::format("configurations/{}/communication", i)));
    }
    names.add(configuration.name, fmt::format("configurations/{}/name", i));
  }
}

} // namespace

static void describe(Visitor& v, EndpointPart& p) {
  v.about("part", "A part of the endpoint, less than all of it.");
  v("sms", p.sms, k_non_negative, "Streaming multiprocessors.");
  v("memory_bytes_per_second", p.memory_bytes_per_second, k_non_negative,
    "Memory bandwidth, bytes per second.");
}

static void describe(Visitor& v, EndpointConfiguration& c) {
  v.about("configuration", "A way to divide the endpoint.");
  v("name", c.name, k_name, "Unique in the document.");
  v("source", c.source, k_any.maybe(), "Source of the figures.");
  v("mover", c.mover, one_of(k_movers),
    "Mover of the data: cores, the SMs, through memory; engine, which loads each byte once; none, "
    "at no cost.");
  v("communication", c.communication, k_any,
    "Resources of communication; computation has the rest. Absent: each has everything while the "
    "other waits.");
}

static void describe(Visitor& v, EndpointRing& r) {
  v.about("ring", "A ring of equal links.");
  v("bytes_per_second", r.bytes_per_second, k_positive,
    "Send rate of a node over both its links, bytes per second.");
  v("latency_seconds", r.latency_seconds, k_non_negative, "Latency of one link, seconds.");
}

void describe(Visitor& v, Endpoint& e) {
  v.about("endpoint", "A machine that computes and communicates at the same time.");
  v("sms", e.sms, k_positive_count, "Streaming multiprocessors, or cores.");
  v("sm_bytes_per_second", e.sm_bytes_per_second, k_positive,
    "Read or write rate of one SM, bytes per second.");
  v("flops_per_second", e.flops_per_second, k_positive,
    "Additions and multiplications per second of all SMs.");
  v("memory_bytes_per_second", e.memory_bytes_per_second, k_positive,
    "Memory bandwidth, bytes per second.");
  v("bus_bytes_per_second", e.bus_bytes_per_second, k_positive,
    "Rate from the endpoint to the network, bytes per second.");
  v.group("torus", k_any, "The network: rings of equal links, for any shape.",
          [&](Visitor& members) {
            members.about("torus", "The rings of a torus.");
            members("local", e.rings[0], k_any, "Ring within a package.");
            members("vertical", e.rings[1], k_any, "Rings between packages.");
            members("horizontal", e.rings[2], k_any, "Rings between packages.");
            members("link_efficiency", e.link_efficiency, k_efficiency,
                    "Fraction of the links' bandwidth that carries payload.");
            members("chunk_bytes", e.chunk_bytes, k_positive_count,
                    "Piece of a collective that nothing interrupts, bytes.");
          });
  v("aside", e.aside, k_any,
    "Resources reserved for computations beside the others; absent: no resources.");
  v("configurations", e.configurations, k_any.some("configuration"),
    "Ways to divide the endpoint.");
  v("sources", e.sources, k_any.maybe(), "Source of each figure, by key.");
  v.check([&](const JsonView& view) { check(e, view); });
}

} // namespace documents

Json to_json(const Endpoint& endpoint) {
  return documents::written(endpoint);
}

std::string_view name_of(EndpointMover mover) {
  return documents::k_movers[static_cast<std::size_t>(mover)];
}

} // namespace reckon
