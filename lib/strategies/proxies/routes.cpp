// SPDX-License-Identifier: Apache-2.0
#include "strategies/proxies/routes.hpp"

#include "core/error.hpp"
#include "equations/coarse.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <optional>

namespace reckon {
namespace {

constexpr double k_as_good = 0.1;
/// S' where the profile knows of no size that would be too small: COARSE's, section V-B.
constexpr double k_usual_partition_bytes = 2 << 20;

/// The best estimate of the cells of a pair: the first with a value.
const Cell* cell_of(const Profile& profile, const CostModel& model, const char* test,
                    std::size_t from, std::size_t to, const char* direction) {
  CellKey pattern;
  pattern.test = test;
  pattern.from = model.ranks()[from].machine;
  pattern.to = model.ranks()[to].machine;
  pattern.transport = model.transport();
  pattern.direction = direction;
  for (const Cell* cell : profile.select(pattern)) {
    if (cell->p50 > 0) {
      return cell;
    }
  }
  return nullptr;
}

/// Sizes from 4 KiB to 64 MiB for a curve that is a latency and a rate.
Curve straight(double latency_s, double bytes_per_s) {
  std::vector<CurvePoint> points;
  for (double bytes = 4096; bytes <= 64.0 * (1 << 20); bytes *= 2) {
    const double seconds = latency_s + bytes / bytes_per_s;
    points.push_back({bytes, seconds, seconds, seconds});
  }
  return Curve(std::move(points));
}

std::optional<Curve> measured_curve(const Profile& profile, const CostModel& model,
                                    std::size_t from, std::size_t to) {
  CellKey pattern;
  pattern.test = "pair_write";
  pattern.from = model.ranks()[from].machine;
  pattern.to = model.ranks()[to].machine;
  pattern.transport = model.transport();
  std::map<double, CurvePoint> points;
  for (const Cell* cell : profile.select(pattern)) {
    if (cell->unit == "seconds" && cell->p50 > 0) {
      const auto bytes = static_cast<double>(cell->key.bytes);
      points[bytes] = {bytes, cell->p50, cell->p50, cell->p50};
    }
  }
  if (points.size() < 2) {
    return std::nullopt;
  }
  std::vector<CurvePoint> list;
  for (const auto& [bytes, point] : points) {
    list.push_back(point);
  }
  return Curve(std::move(list), Curve::Shape::non_decreasing);
}

SizeCurve samples_of(const Curve& curve) {
  SizeCurve samples;
  for (const CurvePoint& p : curve.points()) {
    samples.push_back({p.bytes, p.seconds});
  }
  return samples;
}

} // namespace

Curve write_curve(const Profile& profile, const CostModel& model, std::size_t from,
                  std::size_t to) {
  if (auto curve = measured_curve(profile, model, from, to)) {
    return *std::move(curve);
  }
  if (model.one_machine()) {
    std::vector<CurvePoint> points;
    for (double bytes = 4096; bytes <= 64.0 * (1 << 20); bytes *= 2) {
      const double seconds =
          model.latency_s() + bytes / model.shared_rate(2, bytes, CostModel::Target::slots).mid;
      points.push_back({bytes, seconds, seconds, seconds});
    }
    return Curve(std::move(points), Curve::Shape::non_decreasing);
  }
  const Cell* const latency = cell_of(profile, model, "pair_latency", from, to, "one_way");
  const Cell* const rate = cell_of(profile, model, "pair_bandwidth", from, to, "one_way");
  const double port =
      std::min(model.ranks()[from].port_bytes_per_s, model.ranks()[to].port_bytes_per_s);
  return straight(latency != nullptr ? latency->p50 : model.latency_s(),
                  rate != nullptr ? rate->p50 : port);
}

RoutingTables solve_routing_tables(const Profile& profile, const CostModel& model,
                                   std::span<const double> tensor_bytes, double tolerance) {
  std::vector<std::size_t> clients, devices;
  for (std::size_t r = 0; r < model.ranks().size(); ++r) {
    if (model.ranks()[r].worker) {
      clients.push_back(r);
    } else if (model.ranks()[r].server) {
      devices.push_back(r);
    }
  }
  if (devices.empty()) {
    fail(ErrorKind::input, "there is no memory device, a rank that serves and has no gradient; "
                           "give --servers, or --roles with such a group");
  }
  std::vector<SizeCount> sizes;
  for (const double bytes : tensor_bytes) {
    sizes.push_back({bytes, 1});
  }
  RoutingTables out;
  std::size_t measured = 0;
  bool unknown = false;
  std::map<std::size_t, std::size_t> taken; // by device
  for (std::size_t c = 0; c < clients.size(); ++c) {
    const std::size_t paired = c * devices.size() / clients.size();
    std::vector<std::size_t> order(devices.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return std::pair(a != paired, taken[a]) < std::pair(b != paired, taken[b]);
    });
    std::vector<Curve> curves;
    std::vector<SizeCurve> samples;
    for (const std::size_t d : order) {
      measured += measured_curve(profile, model, clients[c], devices[d]) ? 1U : 0U;
      curves.push_back(write_curve(profile, model, clients[c], devices[d]));
      samples.push_back(samples_of(curves.back()));
    }
    const ProxyChoice choice = choose_proxies(samples, k_as_good);
    ProxyRoute route;
    route.client = clients[c];
    route.latency_proxy = devices[order[choice.latency]];
    route.bandwidth_proxy = devices[order[choice.bandwidth]];
    ++taken[order[choice.bandwidth]];
    if (choice.latency != choice.bandwidth) {
      const Routing solved =
          solve_routing(samples[choice.latency], samples[choice.bandwidth], sizes);
      route.threshold_bytes = solved.threshold_bytes;
      route.crossings_bytes = solved.crossings_bytes;
      if (solved.several) {
        out.ambiguous.push_back(fmt::format(
            "the curves of rank {} to ranks {} and {} cross {} times; the threshold with the least "
            "total time over the tensors was taken",
            route.client, route.latency_proxy, route.bandwidth_proxy,
            solved.crossings_bytes.size()));
      }
    }
    const SizeCurve& used = samples[choice.bandwidth];
    route.partition_bytes = partition_bytes(used, tolerance);
    if (route.partition_bytes <= used.front().bytes) {
      route.partition_bytes = std::max(k_usual_partition_bytes, used.front().bytes);
      unknown = true;
    }
    out.routes.push_back(std::move(route));
  }
  out.sources.push_back(
      measured > 0 ? fmt::format("pair_write over {}: {} of {} pairs of client and proxy",
                                 model.transport(), measured, clients.size() * devices.size())
                   : "pair_write: none, so each pair's curve is a latency and a rate");
  if (unknown) {
    out.sources.push_back("no size is too small for the full bandwidth, as far as the profile "
                          "knows: shards from 2 MiB, as COARSE V-B found them");
  }
  return out;
}

} // namespace reckon
