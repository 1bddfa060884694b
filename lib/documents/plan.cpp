// SPDX-License-Identifier: Apache-2.0
#include "documents/plan.hpp"

#include "documents/fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

namespace reckon {

using namespace documents;

namespace {

constexpr int k_most = std::numeric_limits<int>::max();

LanePlace lane_place_from_json(const JsonView& object) {
  object.only({"port", "numa_node", "cpu"});
  LanePlace place{object.at("port").name(), std::nullopt, std::nullopt};
  if (const auto node = object.find("numa_node")) {
    place.numa_node = node->integer(0, k_most);
  }
  if (const auto cpu = object.find("cpu")) {
    place.cpu = cpu->integer(0, k_most);
  }
  return place;
}

Json json_of(const LanePlace& place) {
  Json json{{"port", place.port}};
  if (place.numa_node) {
    json["numa_node"] = *place.numa_node;
  }
  if (place.cpu) {
    json["cpu"] = *place.cpu;
  }
  return json;
}

PlanRank rank_from_json(const JsonView& object) {
  object.only({"machine", "rack", "endpoint", "endpoint_kind", "pci_address", "cpus", "worker",
               "server", "lanes", "lane_places", "share_bytes", "assigned_bytes",
               "port_bytes_per_second", "egress_bytes", "ingress_bytes"});
  PlanRank rank;
  rank.machine = object.at("machine").name();
  if (const auto rack = object.find("rack")) {
    rank.rack = rack->name();
  }
  if (const auto endpoint = object.find("endpoint")) {
    rank.endpoint = endpoint->name();
    rank.endpoint_kind = object.at("endpoint_kind").one_of({"gpu", "numa_node", "memory_device"});
  }
  if (const auto address = object.find("pci_address")) {
    rank.pci_address = address->name();
  }
  if (const auto cpus = object.find("cpus")) {
    for (const JsonView& cpu : cpus->elements()) {
      rank.cpus.push_back(cpu.integer(0, k_most));
    }
  }
  rank.worker = object.at("worker").boolean();
  rank.server = object.at("server").boolean();
  rank.lanes = object.at("lanes").integer(1, k_max_lanes);
  if (const auto places = object.find("lane_places")) {
    for (const JsonView& place : places->elements()) {
      rank.lane_places.push_back(lane_place_from_json(place));
    }
    if (rank.lane_places.size() != static_cast<std::size_t>(rank.lanes)) {
      places->fail(fmt::format("has {} places for {} lanes; give one for each",
                               rank.lane_places.size(), rank.lanes));
    }
  }
  rank.share_bytes = object.at("share_bytes").non_negative();
  rank.assigned_bytes = object.at("assigned_bytes").count();
  rank.port_bytes_per_second = object.at("port_bytes_per_second").non_negative();
  rank.egress_bytes = object.at("egress_bytes").count();
  rank.ingress_bytes = object.at("ingress_bytes").count();
  return rank;
}

Json json_of(const PlanRank& r) {
  Json json{{"machine", r.machine},
            {"worker", r.worker},
            {"server", r.server},
            {"lanes", r.lanes},
            {"share_bytes", r.share_bytes},
            {"assigned_bytes", r.assigned_bytes},
            {"port_bytes_per_second", r.port_bytes_per_second},
            {"egress_bytes", r.egress_bytes},
            {"ingress_bytes", r.ingress_bytes}};
  if (!r.rack.empty()) {
    json["rack"] = r.rack;
  }
  if (!r.endpoint.empty()) {
    json["endpoint"] = r.endpoint;
    json["endpoint_kind"] = r.endpoint_kind;
  }
  put_text(json, "pci_address", r.pci_address);
  if (!r.cpus.empty()) {
    json["cpus"] = r.cpus;
  }
  for (const LanePlace& place : r.lane_places) {
    json["lane_places"].push_back(json_of(place));
  }
  return json;
}

/// Ascending, not overlapping, whole elements, inside the buffer.
std::vector<DTypeRun> runs_from_json(const JsonView& array, std::uint64_t gradient_bytes) {
  std::vector<DTypeRun> runs;
  std::uint64_t end = 0;
  for (const JsonView& object : some_elements(array, "run")) {
    object.only({"offset_bytes", "bytes", "dtype"});
    const DTypeRun run{.offset_bytes = object.at("offset_bytes").count(),
                       .bytes = positive_count(object.at("bytes")),
                       .dtype = *dtype_named(object.at("dtype").one_of({"fp32", "fp16", "bf16"}))};
    if (run.offset_bytes < end) {
      object.at("offset_bytes")
          .fail(fmt::format("is {}, but the run before ends at {}; runs ascend and do not overlap",
                            run.offset_bytes, end));
    }
    if (run.offset_bytes % size_of(run.dtype) != 0 || run.bytes % size_of(run.dtype) != 0) {
      object.fail(fmt::format("offset_bytes and bytes must be multiples of {}, the size of {}",
                              size_of(run.dtype), name_of(run.dtype)));
    }
    end = run.offset_bytes + run.bytes;
    if (end > gradient_bytes) {
      object.fail(fmt::format("ends at byte {}, beyond gradient_bytes {}", end, gradient_bytes));
    }
    runs.push_back(run);
  }
  return runs;
}

/// The parts in the order of their offsets; already sorted ones cost nothing.
std::vector<std::uint32_t> by_offset(const Parts& parts) {
  std::vector<std::uint32_t> order(parts.size());
  std::iota(order.begin(), order.end(), 0U);
  if (!std::is_sorted(parts.offset_bytes.begin(), parts.offset_bytes.end())) {
    std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
      return parts.offset_bytes[a] < parts.offset_bytes[b];
    });
  }
  return order;
}

/// Names the part at fault in one column.
[[noreturn]] void fail_part(const JsonView& parts, const char* column, std::size_t i,
                            const std::string& problem) {
  parts.at(column).elements().at(i).fail(problem);
}

/// Every byte of every run belongs to exactly one part.
void check_cover(const JsonView& view, const Parts& parts, const std::vector<DTypeRun>& runs) {
  std::size_t r = 0;
  std::uint64_t next = runs[0].offset_bytes; // first byte that no part before has
  for (const std::uint32_t i : by_offset(parts)) {
    const std::uint64_t offset = parts.offset_bytes[i];
    const std::uint64_t bytes = parts.bytes[i];
    if (offset < next) {
      fail_part(view, "offset_bytes", i,
                fmt::format("part {} begins at byte {}, but {} is the first byte that no "
                            "other part covers",
                            i, offset, next));
    }
    const std::uint64_t run_end = r < runs.size() ? runs[r].offset_bytes + runs[r].bytes : 0;
    if (offset > next || r == runs.size()) {
      if (r == runs.size()) {
        fail_part(view, "offset_bytes", i, fmt::format("part {} lies outside of /runs", i));
      }
      fail_part(view, "offset_bytes", i,
                fmt::format("no part covers the bytes from {} to {}", next, offset));
    }
    if (bytes > run_end - offset) {
      fail_part(view, "bytes", i,
                fmt::format("part {} ends at byte {}, beyond the end {} of its run", i,
                            offset + bytes, run_end));
    }
    if (bytes % size_of(runs[r].dtype) != 0) {
      fail_part(view, "bytes", i,
                fmt::format("part {} has {} bytes, no multiple of {}, the size of {}", i, bytes,
                            size_of(runs[r].dtype), name_of(runs[r].dtype)));
    }
    next = offset + bytes;
    if (next == run_end && ++r < runs.size()) {
      next = runs[r].offset_bytes;
    }
  }
  if (r < runs.size()) {
    view.fail(fmt::format("no part covers the bytes from {} to {}", next,
                          runs[r].offset_bytes + runs[r].bytes));
  }
}

Parts parts_from_json(const JsonView& view, const Plan& plan) {
  view.only({"offset_bytes", "bytes", "server", "lane", "tree"});
  Parts parts;
  parts.offset_bytes = view.at("offset_bytes").counts();
  parts.bytes = view.at("bytes").counts();
  parts.server = view.at("server").counts();
  parts.lane = view.at("lane").counts();
  const std::size_t n = parts.size();
  if (!plan.trees.empty() || plan.torus) {
    parts.tree = view.at("tree").counts();
    if (parts.tree.size() != n) {
      view.at("tree").fail(fmt::format("has {} entries, bytes has {}", parts.tree.size(), n));
    }
  } else if (view.find("tree")) {
    view.at("tree").fail("names trees, but the plan has none; remove it or add \"trees\"");
  }
  if (parts.offset_bytes.size() != n || parts.server.size() != n || parts.lane.size() != n) {
    view.fail(
        fmt::format("the columns differ in length: offset_bytes {}, bytes {}, server {}, lane {}",
                    parts.offset_bytes.size(), n, parts.server.size(), parts.lane.size()));
  }
  std::vector<std::uint64_t> assigned(plan.ranks.size(), 0);
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint64_t server = parts.server[i];
    if (parts.bytes[i] == 0) {
      fail_part(view, "bytes", i, "must be at least 1, is 0");
    }
    if (parts.bytes[i] > plan.gradient_bytes ||
        parts.offset_bytes[i] > plan.gradient_bytes - parts.bytes[i]) {
      fail_part(view, "bytes", i,
                fmt::format("part {}, {} bytes at byte {}, ends beyond gradient_bytes {}", i,
                            parts.bytes[i], parts.offset_bytes[i], plan.gradient_bytes));
    }
    if (server >= plan.ranks.size()) {
      fail_part(view, "server", i,
                fmt::format("is rank {}, but there are {} ranks", server, plan.ranks.size()));
    }
    if (parts.lane[i] >= static_cast<std::uint64_t>(plan.ranks[server].lanes)) {
      fail_part(view, "lane", i,
                fmt::format("is lane {}, but rank {} has {}", parts.lane[i], server,
                            plan.ranks[server].lanes));
    }
    if (!plan.trees.empty()) {
      if (parts.tree[i] >= plan.trees.size()) {
        fail_part(view, "tree", i,
                  fmt::format("is tree {}, but there are {}", parts.tree[i], plan.trees.size()));
      }
      if (plan.trees[parts.tree[i]].up[server] != static_cast<std::int64_t>(server)) {
        fail_part(
            view, "server", i,
            fmt::format("is rank {}, which is not the root of tree {}", server, parts.tree[i]));
      }
    }
    if (plan.torus && parts.tree[i] >= plan.torus->ways.size()) {
      fail_part(view, "tree", i,
                fmt::format("is way {}, but there are {}", parts.tree[i], plan.torus->ways.size()));
    }
    assigned[server] += parts.bytes[i];
  }
  for (std::size_t r = 0; r < assigned.size(); ++r) {
    if (assigned[r] != plan.ranks[r].assigned_bytes) {
      view.fail(fmt::format("the parts of rank {} come to {} bytes, its assigned_bytes are {}", r,
                            assigned[r], plan.ranks[r].assigned_bytes));
    }
  }
  check_cover(view, parts, plan.runs);
  return parts;
}

/// The parents of all ranks: -1, or the number of a rank.
std::vector<std::int64_t> parents_from_json(const JsonView& view, std::size_t ranks) {
  std::vector<std::int64_t> parents;
  for (const JsonView& parent : view.elements()) {
    parents.push_back(parent.integer(-1, std::numeric_limits<int>::max()));
    if (parents.back() >= static_cast<std::int64_t>(ranks)) {
      parent.fail(fmt::format("is rank {}, but there are {} ranks", parents.back(), ranks));
    }
  }
  if (parents.size() != ranks) {
    view.fail(fmt::format("has {} entries for {} ranks", parents.size(), ranks));
  }
  return parents;
}

SumTree tree_from_json(const JsonView& object, std::size_t ranks) {
  object.only({"scheme", "up", "down", "share"});
  SumTree tree;
  tree.scheme = object.at("scheme").name();
  tree.up = parents_from_json(object.at("up"), ranks);
  tree.down = parents_from_json(object.at("down"), ranks);
  tree.share = object.at("share").non_negative();
  return tree;
}

PlanResource resource_from_json(const JsonView& object) {
  object.only(
      {"name", "source", "bytes_per_second", "load_bytes", "busy", "price", "gain_per_gb_s"});
  PlanResource r;
  r.name = object.at("name").name();
  r.source = object.at("source").name();
  r.bytes_per_second = object.at("bytes_per_second").positive();
  r.load_bytes = object.at("load_bytes").non_negative();
  r.busy = object.at("busy").non_negative();
  r.price = object.at("price").non_negative();
  r.gain_per_gb_s = object.at("gain_per_gb_s").non_negative();
  return r;
}

ProxyRoute route_from_json(const JsonView& object, const Plan& plan) {
  object.only({"client", "latency_proxy", "bandwidth_proxy", "threshold_bytes", "crossings_bytes",
               "partition_bytes"});
  const auto rank = [&](const char* name, bool worker) {
    const std::uint64_t number = object.at(name).count();
    if (number >= plan.ranks.size() || plan.ranks[number].worker != worker) {
      object.at(name).fail(fmt::format("is {}, which is no rank {} a gradient", number,
                                       worker ? "with" : "without"));
    }
    return number;
  };
  ProxyRoute route;
  route.client = rank("client", true);
  route.latency_proxy = rank("latency_proxy", false);
  route.bandwidth_proxy = rank("bandwidth_proxy", false);
  if (const auto threshold = object.find("threshold_bytes")) {
    route.threshold_bytes = threshold->non_negative();
  }
  for (const JsonView& crossing : object.at("crossings_bytes").elements()) {
    route.crossings_bytes.push_back(crossing.non_negative());
  }
  route.partition_bytes = object.at("partition_bytes").positive();
  return route;
}

TensorRoute tensor_from_json(const JsonView& object, const Plan& plan) {
  object.only({"name", "by", "first_part", "parts"});
  TensorRoute tensor;
  tensor.name = object.at("name").name();
  tensor.by_workers = object.at("by").one_of({"workers", "proxies"}) == "workers";
  tensor.first_part = object.at("first_part").count();
  tensor.parts = positive_count(object.at("parts"));
  if (tensor.first_part >= plan.parts.size() ||
      tensor.parts > plan.parts.size() - tensor.first_part) {
    object.fail(fmt::format("has parts {} to {}, but there are {}", tensor.first_part,
                            tensor.first_part + tensor.parts - 1, plan.parts.size()));
  }
  return tensor;
}

UpdatePlan update_from_json(const JsonView& object) {
  object.only({"optimizer", "place"});
  UpdatePlan update;
  update.optimizer =
      *optimizer_named(object.at("optimizer").one_of({"sgd", "momentum", "rmsprop", "adam"}));
  update.place = object.at("place").one_of({"server", "worker"}) == "server" ? UpdatePlace::server
                                                                             : UpdatePlace::worker;
  return update;
}

FixedPointPlan fixed_point_from_json(const JsonView& object) {
  object.only({"bits", "gradient_bound", "exponent"});
  FixedPointPlan fixed;
  fixed.bits = object.at("bits").integer(2, 32);
  fixed.gradient_bound = object.at("gradient_bound").positive();
  fixed.exponent = object.at("exponent").integer(-126, 126);
  return fixed;
}

AsyncPlan async_from_json(const JsonView& object) {
  object.only({"steps"});
  return {static_cast<std::uint64_t>(object.at("steps").integer(1, 1000))};
}

Candidate candidate_from_json(const JsonView& object) {
  object.only({"strategy", "prediction", "reason"});
  Candidate candidate;
  candidate.strategy = snake_name(object.at("strategy"));
  candidate.reason = optional_text(object, "reason");
  if (const auto prediction = object.find("prediction")) {
    candidate.prediction = prediction_from_json(*prediction);
  }
  if (candidate.prediction.has_value() == !candidate.reason.empty()) {
    object.fail(
        "must have either a \"prediction\" or a \"reason\" why the strategy does not apply");
  }
  return candidate;
}

Json json_of(const Candidate& candidate) {
  Json json = Json::object();
  json["strategy"] = candidate.strategy;
  if (candidate.prediction) {
    json["prediction"] = documents::json_of(*candidate.prediction);
  }
  put_text(json, "reason", candidate.reason);
  return json;
}

Quantity quantity_from_json(const JsonView& object) {
  object.only({"name", "value", "equation", "inputs"});
  Quantity quantity;
  quantity.name = object.at("name").name();
  quantity.value = object.at("value").number();
  quantity.equation = optional_text(object, "equation");
  for (const auto& [name, value] : object.at("inputs").members()) {
    quantity.inputs.emplace(name, value.number());
  }
  return quantity;
}

Json json_of(const Quantity& quantity) {
  Json json = {{"name", quantity.name}, {"value", quantity.value}, {"inputs", Json::object()}};
  put_text(json, "equation", quantity.equation);
  for (const auto& [name, value] : quantity.inputs) {
    json["inputs"][name] = value;
  }
  return json;
}

Passes passes_from_json(const JsonView& view, std::uint64_t gradient_bytes) {
  view.only({"end_bytes", "backward_seconds", "forward_seconds"});
  Passes passes;
  for (const JsonView& end : some_elements(view.at("end_bytes"), "layer")) {
    const std::uint64_t before = passes.end_bytes.empty() ? 0 : passes.end_bytes.back();
    if (end.count() < before || end.count() > gradient_bytes) {
      end.fail(fmt::format("is {}; ends ascend and are at most gradient_bytes, {}", end.count(),
                           gradient_bytes));
    }
    passes.end_bytes.push_back(end.count());
  }
  const auto times = [&](const char* column) {
    std::vector<double> seconds;
    for (const JsonView& s : view.at(column).elements()) {
      seconds.push_back(s.non_negative());
    }
    if (seconds.size() != passes.size()) {
      view.at(column).fail(fmt::format("the columns differ in length: {} entries, end_bytes has {}",
                                       seconds.size(), passes.size()));
    }
    return seconds;
  };
  passes.backward_seconds = times("backward_seconds");
  passes.forward_seconds = times("forward_seconds");
  return passes;
}

} // namespace

std::size_t SumTree::root() const {
  std::size_t rank = 0;
  while (rank + 1 < up.size() && up[rank] != static_cast<std::int64_t>(rank)) {
    ++rank;
  }
  return rank;
}

double Passes::total_seconds() const {
  return std::accumulate(backward_seconds.begin(), backward_seconds.end(), 0.0) +
         std::accumulate(forward_seconds.begin(), forward_seconds.end(), 0.0);
}

Plan plan_from_json(const Json& json, const std::string& file) {
  const JsonView view(json, file);
  check_header(view, "plan");
  view.only({"schema",       "schema_version", "profile",      "workload",       "roles",
             "options",      "strategy",       "transport",    "ranks",          "gradient_bytes",
             "runs",         "part_bytes",     "window_parts", "parts",          "prediction",
             "asynchronous", "fixed_point",    "update",       "assignment_gap", "runner_up",
             "margin",       "margin_text",    "candidates",   "quantities",     "passes",
             "trees",        "resources",      "routing",      "tensors",        "queues",
             "torus",        "stores"});
  Plan plan;
  plan.profile = link_from_json(view.at("profile"));
  plan.workload = link_from_json(view.at("workload"));
  if (const auto roles = view.find("roles")) {
    plan.roles = link_from_json(*roles);
  }
  plan.options = texts_from_json(view.at("options"));
  plan.strategy = snake_name(view.at("strategy"));
  plan.transport = view.at("transport").name();
  for (const JsonView& rank : some_elements(view.at("ranks"), "rank")) {
    plan.ranks.push_back(rank_from_json(rank));
  }
  if (std::none_of(plan.ranks.begin(), plan.ranks.end(),
                   [](const PlanRank& r) { return r.worker; })) {
    view.at("ranks").fail("there is no worker; at least one rank must have \"worker\": true");
  }
  plan.gradient_bytes = positive_count(view.at("gradient_bytes"));
  plan.runs = runs_from_json(view.at("runs"), plan.gradient_bytes);
  plan.part_bytes = positive_count(view.at("part_bytes"));
  plan.window_parts = positive_count(view.at("window_parts"));
  if (const auto stores = view.find("stores")) {
    plan.stores = *stores_named(stores->one_of({"cached", "streaming"}));
  }
  if (const auto trees = view.find("trees")) {
    for (const JsonView& tree : some_elements(*trees, "tree")) {
      plan.trees.push_back(tree_from_json(tree, plan.ranks.size()));
    }
  }
  if (const auto torus = view.find("torus")) {
    plan.torus = torus_plan_from_json(*torus, plan.ranks.size());
  }
  if (const auto resources = view.find("resources")) {
    for (const JsonView& resource : resources->elements()) {
      plan.resources.push_back(resource_from_json(resource));
    }
  }
  plan.parts = parts_from_json(view.at("parts"), plan);
  if (const auto routing = view.find("routing")) {
    for (const JsonView& route : some_elements(*routing, "route")) {
      plan.routing.push_back(route_from_json(route, plan));
    }
    for (const JsonView& tensor : some_elements(view.at("tensors"), "tensor")) {
      plan.tensors.push_back(tensor_from_json(tensor, plan));
    }
    plan.one_queue = view.at("queues").one_of({"fcfs", "client"}) == "fcfs";
  } else if (view.find("tensors")) {
    view.at("tensors").fail("names tensors, but the plan has no routing tables; remove it or add "
                            "\"routing\"");
  }
  if (const auto update = view.find("update")) {
    plan.update = update_from_json(*update);
  }
  if (const auto passes = view.find("passes")) {
    plan.passes = passes_from_json(*passes, plan.gradient_bytes);
  }
  if (const auto asynchronous = view.find("asynchronous")) {
    plan.asynchronous = async_from_json(*asynchronous);
  }
  if (const auto fixed_point = view.find("fixed_point")) {
    plan.fixed_point = fixed_point_from_json(*fixed_point);
  }
  plan.prediction = prediction_from_json(view.at("prediction"));
  plan.assignment_gap = view.at("assignment_gap").number();
  plan.runner_up = optional_text(view, "runner_up");
  plan.margin = view.at("margin").number();
  plan.margin_text = optional_text(view, "margin_text");
  Unique strategies("strategy");
  for (const JsonView& candidate : view.at("candidates").elements()) {
    plan.candidates.push_back(candidate_from_json(candidate));
    strategies.add(plan.candidates.back().strategy, candidate.at("strategy"));
  }
  for (const JsonView& quantity : view.at("quantities").elements()) {
    plan.quantities.push_back(quantity_from_json(quantity));
  }
  return plan;
}

Json to_json(const Prediction& prediction) {
  return documents::json_of(prediction);
}

Json to_json(const Plan& plan) {
  Json json = with_header("plan");
  json["profile"] = documents::json_of(plan.profile);
  json["workload"] = documents::json_of(plan.workload);
  if (plan.roles) {
    json["roles"] = documents::json_of(*plan.roles);
  }
  json["options"] = documents::json_of(plan.options);
  json["strategy"] = plan.strategy;
  json["transport"] = plan.transport;
  json["ranks"] = Json::array();
  for (const PlanRank& rank : plan.ranks) {
    json["ranks"].push_back(json_of(rank));
  }
  json["gradient_bytes"] = plan.gradient_bytes;
  json["runs"] = Json::array();
  for (const DTypeRun& run : plan.runs) {
    json["runs"].push_back(
        {{"offset_bytes", run.offset_bytes}, {"bytes", run.bytes}, {"dtype", name_of(run.dtype)}});
  }
  json["part_bytes"] = plan.part_bytes;
  json["window_parts"] = plan.window_parts;
  if (plan.stores != Stores::cached) {
    json["stores"] = name_of(plan.stores);
  }
  Json& parts = json["parts"];
  parts["offset_bytes"] = plan.parts.offset_bytes;
  parts["bytes"] = plan.parts.bytes;
  parts["server"] = plan.parts.server;
  parts["lane"] = plan.parts.lane;
  if (plan.torus) {
    json["torus"] = documents::json_of(*plan.torus);
  }
  if (!plan.parts.tree.empty()) {
    parts["tree"] = plan.parts.tree;
  }
  if (!plan.trees.empty()) {
    json["trees"] = Json::array();
    for (const SumTree& tree : plan.trees) {
      json["trees"].push_back(
          {{"scheme", tree.scheme}, {"up", tree.up}, {"down", tree.down}, {"share", tree.share}});
    }
  }
  if (!plan.resources.empty()) {
    json["resources"] = Json::array();
    for (const PlanResource& r : plan.resources) {
      json["resources"].push_back({{"name", r.name},
                                   {"source", r.source},
                                   {"bytes_per_second", r.bytes_per_second},
                                   {"load_bytes", r.load_bytes},
                                   {"busy", r.busy},
                                   {"price", r.price},
                                   {"gain_per_gb_s", r.gain_per_gb_s}});
    }
  }
  if (!plan.routing.empty()) {
    json["routing"] = Json::array();
    for (const ProxyRoute& r : plan.routing) {
      Json route{{"client", r.client},
                 {"latency_proxy", r.latency_proxy},
                 {"bandwidth_proxy", r.bandwidth_proxy},
                 {"crossings_bytes", r.crossings_bytes},
                 {"partition_bytes", r.partition_bytes}};
      if (r.threshold_bytes) {
        route["threshold_bytes"] = *r.threshold_bytes;
      }
      json["routing"].push_back(std::move(route));
    }
    json["queues"] = plan.one_queue ? "fcfs" : "client";
    json["tensors"] = Json::array();
    for (const TensorRoute& t : plan.tensors) {
      json["tensors"].push_back({{"name", t.name},
                                 {"by", t.by_workers ? "workers" : "proxies"},
                                 {"first_part", t.first_part},
                                 {"parts", t.parts}});
    }
  }
  if (plan.update) {
    json["update"] = {{"optimizer", name_of(plan.update->optimizer)},
                      {"place", name_of(plan.update->place)}};
  }
  if (plan.passes) {
    json["passes"] = {{"end_bytes", plan.passes->end_bytes},
                      {"backward_seconds", plan.passes->backward_seconds},
                      {"forward_seconds", plan.passes->forward_seconds}};
  }
  if (plan.asynchronous) {
    json["asynchronous"] = {{"steps", plan.asynchronous->steps}};
  }
  if (plan.fixed_point) {
    json["fixed_point"] = {{"bits", plan.fixed_point->bits},
                           {"gradient_bound", plan.fixed_point->gradient_bound},
                           {"exponent", plan.fixed_point->exponent}};
  }
  json["prediction"] = documents::json_of(plan.prediction);
  json["assignment_gap"] = plan.assignment_gap;
  put_text(json, "runner_up", plan.runner_up);
  json["margin"] = plan.margin;
  put_text(json, "margin_text", plan.margin_text);
  json["candidates"] = Json::array();
  for (const Candidate& candidate : plan.candidates) {
    json["candidates"].push_back(json_of(candidate));
  }
  json["quantities"] = Json::array();
  for (const Quantity& quantity : plan.quantities) {
    json["quantities"].push_back(json_of(quantity));
  }
  return json;
}

} // namespace reckon
