// SPDX-License-Identifier: Apache-2.0
#include "strategies/proxies/routes.hpp"

#include "core/error.hpp"
#include "core/indices.hpp"
#include "documents/cells.hpp"
#include "equations/coarse.hpp"
#include "network/pairs.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <tuple>

namespace reckon {
namespace {

constexpr double k_as_good = 0.1;
/// Of a client's time for all tensors, what a proxy of their own for the short ones must save.
constexpr double k_shorter = 0.01;
/// S' where the profile knows of no size that would be too small: COARSE's, section V-B.
constexpr double k_usual_partition_bytes = 2 << 20;

constexpr double k_unlimited_bytes_per_s =
    1e15;                              ///< of links in a machine of which nothing is known
constexpr double k_longest = 16 << 20; ///< of the sizes of a curve

/// A curve of the time that `seconds_of` a number of bytes gives.
template <class SecondsOf>
Curve curve_by(const SecondsOf& seconds_of) {
  std::vector<CurvePoint> points;
  for (double bytes = 4096; bytes <= k_longest; bytes *= 2) {
    points.push_back({bytes, seconds_of(bytes)});
  }
  return Curve(std::move(points), Curve::Shape::non_decreasing);
}

/// Which of a client's proxies are as good as the one with the greatest bandwidth at the longest
/// size that all were tested with.
std::vector<bool> as_fast(const std::vector<Curve>& proxies) {
  double size = k_longest;
  for (const Curve& curve : proxies) {
    size = std::min(size, curve.points().back().bytes);
  }
  std::vector<double> seconds;
  for (const Curve& curve : proxies) {
    seconds.push_back(curve.seconds_at(size));
  }
  const double least = *std::min_element(seconds.begin(), seconds.end());
  std::vector<bool> good;
  for (const double s : seconds) {
    good.push_back(s <= least / (1 - k_as_good));
  }
  return good;
}

/// The device that each client is paired with: they are dealt out in equal blocks.
std::size_t paired_with(std::size_t client, std::size_t clients, std::size_t devices) {
  return client * devices / clients;
}

/// BwProxy of each client, of `good`[client][device]: the one that it is paired with, else the one
/// that the fewest have; then clients move, the last first and those with another than their own
/// before the others, as long as that evens out how many a device has.
std::vector<std::size_t> deal_out(const std::vector<std::vector<bool>>& good) {
  const std::size_t clients = good.size(), devices = good.front().size();
  std::vector<std::size_t> taken(devices, 0), proxy;
  const auto fewest = [&](std::size_t client) {
    std::size_t best = devices;
    for (std::size_t d = 0; d < devices; ++d) {
      if (good[client][d] && (best == devices || taken[d] < taken[best])) {
        best = d;
      }
    }
    return best;
  };
  for (std::size_t c = 0; c < clients; ++c) {
    const std::size_t own = paired_with(c, clients, devices);
    proxy.push_back(good[c][own] ? own : fewest(c));
    ++taken[proxy.back()];
  }
  const auto move_one = [&] {
    for (const bool from_own : {false, true}) {
      for (std::size_t c = clients; c-- > 0;) {
        const std::size_t to = fewest(c);
        if ((proxy[c] == paired_with(c, clients, devices)) == from_own &&
            taken[proxy[c]] > taken[to] + 1) {
          --taken[proxy[c]];
          ++taken[to];
          proxy[c] = to;
          return true;
        }
      }
    }
    return false;
  };
  while (move_one()) { // ends: each move makes the sum of squares of `taken` less
  }
  return proxy;
}

/// A client's times to all devices, by device, and what decides between those.
struct ClientCurves {
  std::vector<Curve> to;
  std::size_t own = 0;  ///< the device that it is paired with
  std::size_t fast = 0; ///< BwProxy
};

/// LatProxy: of the devices that are as good the client's own, else the fast one, else the one that
/// the fewest clients have `taken`.
std::size_t nearest(const ClientCurves& client, const std::vector<std::size_t>& taken) {
  const auto rank = [&](std::size_t d) {
    return std::tuple(d != client.own, d != client.fast, taken[d]);
  };
  std::vector<std::size_t> order = indices(taken.size());
  std::ranges::stable_sort(order, {}, rank);
  std::vector<Curve> ordered;
  for (const std::size_t d : order) {
    ordered.push_back(client.to[d]);
  }
  return order[choose_proxies(ordered, k_as_good).latency];
}

/// Sends the short of these tensors to the device `near` where that saves enough. Returns whether
/// the curves cross so that no single threshold is right.
bool send_short_to(std::size_t near, const ClientCurves& client,
                   const std::vector<std::size_t>& devices, const std::vector<SizeCount>& sizes,
                   ProxyRoute& route) {
  const Routing solved = solve_routing(client.to[near], client.to[client.fast], sizes);
  double alone = 0;
  for (const SizeCount& size : sizes) {
    alone += client.to[client.fast].seconds_at(size.bytes);
  }
  if (solved.threshold_s < (1 - k_shorter) * alone) {
    route.latency_proxy = devices[near];
    route.threshold_bytes = solved.threshold_bytes;
    route.crossings_bytes = solved.crossings_bytes;
  }
  return solved.several && route.latency_proxy != route.bandwidth_proxy;
}

/// By where curves are from: how many pairs of client and proxy have theirs from there, in words.
std::vector<std::string> sources_of(const std::map<std::string, std::size_t>& pairs) {
  std::vector<std::string> out;
  for (const auto& [source, count] : pairs) {
    out.push_back(source.empty()
                      ? fmt::format("of {} pairs of client and proxy nothing is measured: their "
                                    "curves are the rates of what lies between them",
                                    count)
                      : fmt::format("{}: {} pairs of client and proxy", source, count));
  }
  return out;
}

/// Of two ranks that are places.
Curve place_curve(const CellIndex& index, const Places& places, const StationNetwork& ways,
                  std::size_t from, std::size_t to, std::string* source) {
  const Network& network = *places.network;
  const std::size_t a = places.of_rank[from], b = places.of_rank[to];
  std::map<double, CurvePoint> points;
  for (const Cell* cell : index.select(
           {.test = k_gpu_copy, .from = network.places[a].id, .to = network.places[b].id})) {
    if (network.places[a].machine == network.places[b].machine && cell->unit == "seconds" &&
        cell->p50 > 0 && cell->key.bytes > 0) {
      const auto bytes = static_cast<double>(cell->key.bytes);
      points[bytes] = {bytes, cell->p50};
    }
  }
  if (points.size() < 2) {
    for (double bytes = 4096; bytes <= k_longest; bytes *= 2) {
      double seconds = ways.write_seconds(from, to, bytes);
      if (!(seconds > 0) && network.machines.size() > 1) {
        seconds = bytes / k_unlimited_bytes_per_s; // the ways between machines are known
      }
      if (!(seconds > 0)) {
        fail(ErrorKind::input,
             fmt::format("nothing in profile '{}' says how fast {} and {} are to each other",
                         index.profile().name, network.name_of(a), network.name_of(b)));
      }
      points[bytes] = {bytes, seconds};
    }
  } else if (source != nullptr) {
    *source = k_gpu_copy;
  }
  std::vector<CurvePoint> list;
  for (const auto& [bytes, point] : points) {
    list.push_back(point);
  }
  return Curve(std::move(list), Curve::Shape::non_decreasing);
}

} // namespace

CurveOf write_curves(const Profile& profile, const CostModel& model) {
  if (model.one_machine()) {
    return [&model](std::size_t, std::size_t, std::string*) {
      return curve_by([&](double bytes) {
        return model.latency_s() + bytes / model.shared_rate(2, bytes).mid;
      });
    };
  }
  std::vector<std::string> machines;
  for (const RankModel& r : model.ranks()) {
    machines.push_back(r.machine);
  }
  return [&model, index = CellIndex(profile), names = pair_names(profile, machines)](
             std::size_t from, std::size_t to, std::string* source) {
    if (auto curve = pair_curve(index, names[from], names[to], model.transport(), source)) {
      return *std::move(curve);
    }
    const double rate =
        std::min(model.ranks()[from].port_bytes_per_s, model.ranks()[to].port_bytes_per_s);
    return curve_by([&](double bytes) { return model.latency_s() + bytes / rate; });
  };
}

CurveOf place_curves(const Profile& profile, const Places& places, StationNetwork ways) {
  return [&places, index = CellIndex(profile),
          ways = std::move(ways)](std::size_t from, std::size_t to, std::string* source) {
    return place_curve(index, places, ways, from, to, source);
  };
}

RoutingTables solve_routing_tables(const Job& job, const CurveOf& curve_of, double tolerance) {
  const std::vector<std::size_t>&clients = job.workers, &devices = job.devices;
  if (devices.empty()) {
    fail(ErrorKind::input,
         "there is no memory device, a rank that serves and has no gradient; give --servers, "
         "--devices together with --places, or --roles with such a group");
  }
  std::vector<SizeCount> sizes;
  for (const Tensor& tensor : job.workload.tensors) {
    sizes.push_back({static_cast<double>(tensor.bytes()), 1});
  }
  std::map<std::string, std::size_t> pairs; // by where their curves are from
  std::vector<ClientCurves> curves(clients.size());
  std::vector<std::vector<bool>> good;
  for (std::size_t c = 0; c < clients.size(); ++c) {
    for (const std::size_t device : devices) {
      std::string source;
      curves[c].to.push_back(curve_of(clients[c], device, &source));
      ++pairs[source.substr(0, source.find(' '))];
    }
    good.push_back(as_fast(curves[c].to));
  }
  const std::vector<std::size_t> dealt = deal_out(good);
  std::vector<std::size_t> taken(devices.size(), 0);
  for (std::size_t c = 0; c < clients.size(); ++c) {
    curves[c].own = paired_with(c, clients.size(), devices.size());
    curves[c].fast = dealt[c];
    ++taken[dealt[c]];
  }
  RoutingTables out;
  out.sources = sources_of(pairs);
  bool unknown = false;
  for (std::size_t c = 0; c < clients.size(); ++c) {
    ProxyRoute& route = out.routes.emplace_back();
    route.client = clients[c];
    route.latency_proxy = route.bandwidth_proxy = devices[dealt[c]];
    const std::size_t near = nearest(curves[c], taken);
    if (near != dealt[c] && send_short_to(near, curves[c], devices, sizes, route)) {
      out.ambiguous.push_back(fmt::format(
          "the curves of rank {} to ranks {} and {} cross {} times; the threshold with the least "
          "total time over the tensors was taken",
          route.client, route.latency_proxy, route.bandwidth_proxy, route.crossings_bytes.size()));
    }
    const Curve& used = curves[c].to[dealt[c]];
    const double shortest = used.points().front().bytes;
    route.partition_bytes = partition_bytes(used, tolerance);
    if (route.partition_bytes <= shortest) {
      route.partition_bytes = std::max(k_usual_partition_bytes, shortest);
      unknown = true;
    }
  }
  if (unknown) {
    out.sources.push_back("no size is too small for the full bandwidth, as far as the profile "
                          "knows: shards from 2 MiB, as COARSE V-B found them");
  }
  return out;
}

} // namespace reckon
