// SPDX-License-Identifier: Apache-2.0
#include "documents/plan.hpp"

#include "documents/cells.hpp"
#include "documents/fields.hpp"
#include "documents/json.hpp"
#include "documents/plan_check.hpp"
#include "documents/repeats.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace reckon {
namespace documents {
namespace {

constexpr auto k_optimizers = names_of<Optimizer, 4>();
constexpr auto k_collectives = names_of<Collective, 5>();
constexpr auto k_stores = names_of<Stores, 2>();
constexpr auto k_places = names_of<UpdatePlace, 2>();
constexpr std::array<std::string_view, 3> k_endpoint_kinds{"gpu", "numa_node", "memory_device"};
constexpr std::array<std::string_view, 2> k_sums{"sent", "in_place"};
constexpr std::array<std::string_view, 2> k_queues{"client", "fcfs"};
constexpr std::array<std::string_view, 2> k_ways_of_tensors{"proxies", "workers"};
/// Number of a rank, or -1.
constexpr Rule k_parent =
    whole(-1, std::numeric_limits<int>::max()).repeating(Rule::Repeats::across);
constexpr Rule k_column = k_count.repeating(Rule::Repeats::own);

void check(const Prediction& p, const JsonView& view) {
  if (p.lo_seconds > p.mid_seconds || p.mid_seconds > p.hi_seconds) {
    view.fail(fmt::format("lo_seconds {} <= mid_seconds {} <= hi_seconds {} must hold",
                          p.lo_seconds, p.mid_seconds, p.hi_seconds));
  }
  // Sums of doubles in another order differ in their last digits.
  constexpr double k_rounding = 1e-6;
  if (p.mid_seconds < p.bound_seconds * (1 - k_rounding)) {
    view.at("mid_seconds")
        .fail(fmt::format("is {}, below bound_seconds {}, which nothing can beat", p.mid_seconds,
                          p.bound_seconds));
  }
  Unique names(view, "term");
  double sum = 0;
  for (std::size_t i = 0; i < p.terms.size(); ++i) {
    names.add(p.terms[i].name, fmt::format("terms/{}/name", i));
    sum += p.terms[i].seconds;
  }
  if (!p.terms.empty() && std::abs(sum - p.mid_seconds) > k_rounding * p.mid_seconds) {
    view.at("terms").fail(fmt::format("sum to {}, not to mid_seconds {}", sum, p.mid_seconds));
  }
}

void check(const PlanRank& rank, const JsonView& view) {
  if (!rank.endpoint.empty()) {
    static_cast<void>(view.at("endpoint_kind")); // must be there
  }
  if (!rank.lane_places.empty() &&
      rank.lane_places.size() != static_cast<std::size_t>(rank.lanes)) {
    view.at("lane_places")
        .fail(fmt::format("has {} places for {} lanes; give one for each", rank.lane_places.size(),
                          rank.lanes));
  }
}

void check(const TorusWay& way, const JsonView& view) {
  std::set<std::size_t> all(way.scatter.begin(), way.scatter.end());
  all.insert(way.sum.begin(), way.sum.end());
  if (all.size() != k_dimensions.size() ||
      way.scatter.size() + way.sum.size() != k_dimensions.size()) {
    view.fail("must hold local, vertical and horizontal once each, in \"scatter\" or \"sum\"");
  }
}
} // namespace

void describe(Visitor& v, DocumentLink& l) {
  v.about("link", "A document that this one was made from.");
  v("name", l.name, k_name, "Name of the document.");
  v("digest", l.digest, k_digest,
    "SHA-256 of the document's canonical text: what sha256sum prints for a file that reckon "
    "wrote.");
  v("file", l.file, k_any.maybe(),
    "The file that it was read from, as the command line named it; absent for a shipped document. "
    "Commands that need the document again look there first, and take it only with this digest.");
}

static void describe(Visitor& v, Term& t) {
  v.about("term", "One addend of a predicted time.");
  v("name", t.name, k_snake, "transport, reduction, fill, synchronisation, ...");
  v("seconds", t.seconds, k_any, "Seconds; negative for work that overlaps.");
}

void describe(Visitor& v, Prediction& p) {
  v.about("prediction", "A time for one iteration, in seconds: bound_seconds <= mid_seconds and "
                        "lo_seconds <= mid_seconds <= hi_seconds.");
  v("bound_seconds", p.bound_seconds, k_non_negative, "Time that no strategy can beat, seconds.");
  v("bound_by", p.bound_by, k_any, "The binding resource, and the equation.");
  v("lo_seconds", p.lo_seconds, k_non_negative,
    "Lower end of the prediction, seconds, from the spread of the profile's samples.");
  v("mid_seconds", p.mid_seconds, k_non_negative, "The prediction, seconds.");
  v("hi_seconds", p.hi_seconds, k_non_negative, "Upper end of the prediction, seconds.");
  v("terms", p.terms, k_any, "Terms whose sum is mid_seconds; names are unique.");
  v("relief", p.relief, k_any.maybe(), "Remedy for the binding resource, with its gain.");
  v("busiest_seconds", p.busiest_seconds, k_non_negative,
    "Busy time of this strategy's busiest resource, seconds; only if more than bound_seconds.");
  v("busiest_by", p.busiest_by, k_any.maybe(), "The busiest resource.");
  v.check([&](const JsonView& view) { check(p, view); });
}

static void describe(Visitor& v, SwitchSums& s) {
  v.about("switch_sums", "What sums in switches (NVLink SHARP, NCCL's NVLS) would allow, which no "
                         "mover can make; the prediction's bound is that of sums in ranks.");
  v("bound_seconds", s.bound_seconds, k_non_negative,
    "Time that no way with such sums can beat, seconds; of the traffic alone, without passes.");
  v("by", s.by, k_any, "The switches, and the equation.");
}

static void describe(Visitor& v, Candidate& c) {
  v.about(
      "candidate",
      "A strategy that was considered: either a prediction or the reason why it does not apply.",
      R"({"oneOf": [{"required": ["prediction"]}, {"required": ["reason"]}]})");
  v("strategy", c.strategy, k_snake, "Name of the strategy; unique in the list.");
  v("prediction", c.prediction, k_any, "Its predicted time.");
  v("reason", c.reason, k_any.maybe().with(R"({"minLength": 1})"),
    "Reason why the strategy does not apply.");
  if (const JsonView* const view = v.read();
      view != nullptr && c.prediction.has_value() == !c.reason.empty()) {
    view->fail("must have either a \"prediction\" or a \"reason\" why the strategy does not apply");
  }
}

static void describe(Visitor& v, Quantity& q) {
  v.about("quantity", "A number that was solved or derived, with where it comes from.");
  v("name", q.name, k_name, "snake_case with the unit as suffix: worker_share_bytes.");
  v("value", q.value, k_any, "Value in the unit of the name's suffix.");
  v("equation", q.equation, k_any.maybe(),
    "Number of the equation as in docs/equations.md: \"BytePS eq. 1\".");
  v("inputs", q.inputs, k_any, "Inputs of the equation.");
}

static void describe(Visitor& v, LanePlace& p) {
  v.about("lane_place", "");
  v("port", p.port, k_name, "Name of the port in the operating system or from the user.");
  v("numa_node", p.numa_node, k_index,
    "NUMA node of the port, numbered by the machine; absent: unknown.");
  v("cpu", p.cpu, k_index,
    "Processor of that node that the lane's thread is bound to; absent: any.");
}

static void describe(Visitor& v, PlanRank& r) {
  v.about("rank", "One rank of the job.",
          R"({"dependentRequired": {"endpoint": ["endpoint_kind"]}})");
  v("machine", r.machine, k_name, "Id of an entry of the profile's machines.");
  v("machine_number", r.machine_number, k_count,
    "Index of the machine within its entry, from 0; only where ranks are places in several "
    "machines.");
  v("member", r.member, k_name.maybe(), "Name of the machine in the entry's members.");
  v("rack", r.rack, k_name.maybe(), "The machine's rack in the profile; absent: unknown.");
  v("worker", r.worker, k_any, "Has gradients and needs their sum.");
  v("server", r.server, k_any, "Sums parts.");
  v("lanes", r.lanes, whole(1, k_max_lanes),
    "Threads that move parts, each with its own endpoint.");
  v("share_bytes", r.share_bytes, k_non_negative,
    "Solved share of the summation, bytes of the gradient.");
  v("assigned_bytes", r.assigned_bytes, k_count, "Bytes of the parts whose server is this rank.");
  v("lane_places", r.lane_places, k_any.some("place").maybe(),
    "Port and processor of each lane, on a rank with several network ports.");
  v("port_bytes_per_second", r.port_bytes_per_second, k_non_negative,
    "Bandwidth of this rank's network ports together in the solution, one direction, bytes per "
    "second; 0: no port.");
  v("egress_bytes", r.egress_bytes, k_count,
    "Bytes that this rank sends to other ranks in one iteration.");
  v("ingress_bytes", r.ingress_bytes, k_count,
    "Bytes that this rank receives from other ranks in one iteration.");
  v("endpoint", r.endpoint, k_name.maybe(),
    "The GPU, NUMA node or memory device that is this rank; absent: the whole machine.");
  v("cpus", r.cpus, k_index.maybe(),
    "Processors next to the endpoint's memory, numbered by the machine; a run binds the rank to "
    "them.");
  v("endpoint_kind", r.endpoint_kind, one_of(k_endpoint_kinds).when(!r.endpoint.empty()),
    "Kind of the endpoint; given with endpoint.");
  v("process", r.process, k_count.maybe(),
    "Index among the ranks that share the endpoint, from 0; absent: the only rank.");
  v("pci_address", r.pci_address, k_name.maybe(), "PCI address of a GPU.");
  if (const JsonView* const view = v.read()) {
    if (r.endpoint.empty()) {
      r.endpoint_kind.clear();
    }
    check(r, *view);
  }
}

static void describe(Visitor& v, DTypeRun& r) {
  v.about("run", "Neighbouring bytes of the gradient buffer that have one element type.");
  v("offset_bytes", r.offset_bytes, k_count, "Start in the buffer, bytes.");
  v("bytes", r.bytes, k_positive_count, "Length in whole elements, bytes.");
  v("dtype", r.dtype, one_of(k_dtypes), "Element type.");
}

static void describe(Visitor& v, Parts& p) {
  v.about("parts", "The pieces of the gradient, as columns of equal length, in the order in which "
                   "they are sent. Together they cover every byte of runs exactly once.");
  v("offset_bytes", p.offset_bytes, k_column, "Start of the part in the gradient buffer.");
  v("bytes", p.bytes, k_positive_count.repeating(Rule::Repeats::own),
    "Length of the part, bytes: whole elements of one run.");
  v("server", p.server, k_column, "Rank that sums the part.");
  v("lane", p.lane, k_column, "Lane that moves the part.");
  v("tree", p.tree, k_column.maybe(),
    "Number of the part's tree, torus way or machine tree; only with one of these.");
}

static void describe(Visitor& v, SumTree& t) {
  v.about("tree", "Two trees over the ranks with one root.");
  v("scheme", t.scheme, k_name, "Name of the tree's scheme.");
  v("up", t.up, k_parent,
    "By rank: the rank that it sends its sum to; the root: itself; -1: not in the tree.");
  v("down", t.down, k_parent,
    "By rank: the rank that sends it the whole sum; the root: itself; -1: not in the tree.");
  v("share", t.share, k_non_negative, "Share of the gradient; all trees' shares add up to 1.");
  v("life_seconds", t.life_seconds, k_non_negative.maybe(),
    "Time from a part's first write to its last without other parts, seconds. A tree with a longer "
    "life has more of window_parts; if one tree's life is unknown, all share one window.");
}

static void describe(Visitor& v, TorusWay& w) {
  v.about("way", "Each dimension stands once in one of the two lists.");
  v("scatter", w.scatter, one_of(k_dimensions),
    "Dimensions in whose rings one node makes and keeps the sum, in this order. It returns the "
    "whole sum in the opposite order.");
  v("sum", w.sum, one_of(k_dimensions),
    "Dimensions after whose rings all nodes have the sum, in this order, between scatter and "
    "return.");
  v("backward", w.backward, k_any, "Direction round the rings.");
  v.check([&](const JsonView& view) { check(w, view); });
}

static void describe(Visitor& v, TorusPlan& t) {
  v.about("torus", "The torus whose nodes the ranks are: node (l, v, h) is rank l + L (v + V h). "
                   "Every part takes one of the ways round the rings (parts.tree).");
  v("shape", t.shape, k_positive_count,
    "Nodes in the local, the vertical and the horizontal dimension; their product is the number of "
    "ranks.");
  v("ways", t.ways, k_any.some("way"),
    "Ways of summing, which the parts of a server take in turn.");
}

static void describe(Visitor& v, PlanResource& r) {
  v.about("resource", "One link in one direction, one memory, or one place that sums.");
  v("name", r.name, k_name, "What it is.");
  v("source", r.source, k_name,
    "Source of the capacity: a case of the profile, or the machine's own description.");
  v("bytes_per_second", r.bytes_per_second, k_positive, "Capacity, bytes per second.");
  v("load_bytes", r.load_bytes, k_non_negative,
    "Bytes that pass in one iteration, with the background traffic.");
  v("busy", r.busy, k_non_negative, "Busy time over that of the busiest resource.");
  v("price", r.price, k_non_negative,
    "Dual value: the fraction of the least time of all trees that this resource accounts for.");
  v("gain_per_gb_s", r.gain_per_gb_s, k_non_negative,
    "Fraction of the least time that 1e9 bytes per second more would save.");
}

static void describe(Visitor& v, ProxyRoute& r) {
  v.about("route", "Where a client's tensors go, by their size.");
  v("client", r.client, k_count, "Rank of the worker.");
  v("latency_proxy", r.latency_proxy, k_count,
    "Rank of the proxy for tensors up to threshold_bytes.");
  v("bandwidth_proxy", r.bandwidth_proxy, k_count, "Rank of the proxy for longer tensors.");
  v("threshold_bytes", r.threshold_bytes, k_non_negative,
    "S. Absent: all tensors go to latency_proxy.");
  v("crossings_bytes", r.crossings_bytes, k_non_negative,
    "All sizes at which the faster proxy changes.");
  v("partition_bytes", r.partition_bytes, k_positive,
    "S': the smallest measured size with full bandwidth to bandwidth_proxy. Longer tensors are cut "
    "into equal shards of at least S'.");
}

static void describe(Visitor& v, TensorRoute& t) {
  v.about("tensor", "One tensor.");
  v("name", t.name, k_name, "Name of the tensor in the workload.");
  v("by", t.by_workers, one_of(k_ways_of_tensors),
    "Summation by the workers in a ring, or by the proxies.");
  v("first_part", t.first_part, k_count, "Number of the tensor's first part.");
  v("parts", t.parts, k_positive_count, "Number of consecutive parts.");
}

static void describe(Visitor& v, UpdatePlan& u) {
  v.about("update", "One optimizer step an iteration, with the sum of all gradients.");
  v("optimizer", u.optimizer, one_of(k_optimizers),
    "The optimizer, with the scalars of docs/equations.md.");
  v("place", u.place, one_of(k_places),
    "server: the rank that sums a part steps it and returns parameters; worker: it returns sums, "
    "and every worker steps everything.");
}

static void describe(Visitor& v, Passes& p) {
  v.about("passes", "The model's passes, as columns of equal length with one entry a layer in "
                    "gradient order; absent: only the traffic counts.");
  v("end_bytes", p.end_bytes, k_count.some("layer"),
    "End of the layer's gradient in the buffer, ascending.");
  v("backward_seconds", p.backward_seconds, k_non_negative.some("layer"),
    "Backward pass of the layer, seconds.");
  v("forward_seconds", p.forward_seconds, k_non_negative.some("layer"),
    "Forward pass of the layer, seconds.");
  v("threads", p.threads, k_positive_count,
    "Processors that a worker's passes keep busy, as the workload says; absent: unknown, or the "
    "passes run on a GPU.");
}

static void describe(Visitor& v, AsyncPlan& a) {
  v.about("asynchronous", "Training in which servers keep the latest parameters and workers send "
                          "changes or gradients whenever they have them.");
  v("steps", a.steps, whole(1, 1000), "Steps of each worker in one iteration.");
}

static void describe(Visitor& v, MeasuredMachine& m) {
  v.about("measured_on", "The machine that the profile was measured on; a run on another one has "
                         "no verdict.");
  v("host", m.host, k_any, "Host name.");
  v("cpu", m.cpu, k_any, "Model of the processors.");
  v("cores", m.cores, k_positive_count, "Physical cores that the probe could use.");
}

static void describe(Visitor& v, RehearsalPlan& r) {
  v.about("rehearsal", "The small plan of the profile that is most like this one. A run plays it "
                       "again, before and after.");
  v("strategy", r.strategy, k_snake, "Its strategy.");
  v("sums", r.in_place, one_of(k_sums), "How it makes its sums.");
  v("ranks", r.ranks, whole(2, std::numeric_limits<int>::max()), "Its ranks.");
  v("workers", r.workers, whole(2, std::numeric_limits<int>::max()), "Workers among them.");
  v("part_bytes", r.part_bytes, k_positive_count, "Length of its parts, bytes.");
  v("lo_seconds", r.lo_seconds, k_positive, "A fast iteration when it was probed, seconds.");
  v("mid_seconds", r.mid_seconds, k_positive, "A usual iteration then, seconds.");
  v("hi_seconds", r.hi_seconds, k_positive, "A slow iteration then, seconds.");
}

static void describe(Visitor& v, FixedPointPlan& f) {
  v.about("fixed_point", "A gradient g is sent as round(g 2^exponent), and int32 is added.");
  v("bits", f.bits, whole(2, 32), "Bits of a sum.");
  v("gradient_bound", f.gradient_bound, k_positive, "Magnitude that no gradient exceeds.");
  v("exponent", f.exponent, whole(-126, 126), "Largest exponent with which no sum overflows.");
}

/// The passes, and who hands what to whom.
static void describe_ways(Visitor& v, Plan& p) {
  v("passes", p.passes, k_any,
    "The model's passes, as columns of equal length with one entry a layer in gradient order; "
    "absent: only the traffic counts.");
  v("torus", p.torus, k_any,
    "The torus whose nodes the ranks are: node (l, v, h) is rank l + L (v + V h). Every part takes "
    "one of the ways round the rings (parts.tree).");
  v("collective", p.collective, one_of(k_collectives).maybe(),
    "The collective; absent: all-reduce. reduce-scatter and reduce end with sums at the roots of "
    "the trees (parts.server); all-gather and broadcast begin with the roots' data. Only "
    "all-reduce works without trees.");
  v("root", p.root, k_count.maybe(), "Root rank of a broadcast or a reduce; absent: 0.");
  v("trees", p.trees, k_any.some("tree").maybe(),
    "Trees over the ranks; every part takes one of them (parts.tree). Absent: each part's server "
    "sums the parts that all workers send.");
  v("machine_trees", p.machine_trees, k_count.maybe(),
    "Ways to sum in each machine first; every part takes one of them (parts.tree). Each entry: by "
    "worker of a machine, the worker there that it sends its sum to; the head, whose machine's sum "
    "goes on to the part's server: itself.");
  v("routing", p.routing, k_any.some("route").maybe(),
    "The routing tables of a plan over memory devices (COARSE, section III-E), one for each "
    "worker.");
  v("queues", p.one_queue, one_of(k_queues).when(!p.routing.empty()),
    "Queues of the proxies of a plan with routing: client, one for each client, all served at "
    "once; fcfs, one queue, first come, first served, to show its deadlock.");
  v("tensors", p.tensors, k_any.some("tensor").when(!p.routing.empty()),
    "Path of each tensor, in gradient order; only with routing.");
  v("resources", p.resources, k_any.maybe(),
    "Links, memories and sums inside the machine that a plan with trees uses, highest price "
    "first.");
}

void describe(Visitor& v, Plan& p) {
  v.about("plan", "How the gradients of one workload travel on one machine or cluster. It holds no "
                  "time and nothing random: the same inputs give the same bytes.");
  v("profile", p.profile, k_any, "The profile that the plan was made from.");
  v("workload", p.workload, k_any, "The workload that the plan was made from.");
  v("roles", p.roles, k_any, "The given roles; absent: derived.");
  v("options", p.options, k_any, "The user's options: strategy, workers, servers, part_bytes, ...");
  v("strategy", p.strategy, k_snake,
    "ring, ps_noncolocated, ps_colocated, byteps_split, rack_hierarchical, coarse, dense, or the "
    "name of a scheme of trees.");
  v("transport", p.transport, k_name,
    "Mover that the prediction is for: \"host\", \"tcp;ofi_rxm\", ...");
  v("ranks", p.ranks,
    k_any.some("rank").with(
        R"({"contains": {"properties": {"worker": {"const": true}}, "required": ["worker"]}})"),
    "The ranks of the job, with at least one worker.");
  v("gradient_bytes", p.gradient_bytes, k_positive_count,
    "Gradient buffer of one worker with its gaps, bytes.");
  v("runs", p.runs, k_any.some("run"),
    "Contiguous pieces of the gradient buffer, ascending, without overlap.");
  v("part_bytes", p.part_bytes, k_positive_count, "Length of a full part, bytes.");
  v("window_parts", p.window_parts, k_positive_count,
    "Credit: parts of a lane that a worker may have sent without having their sums back.");
  v("stores", p.stores, one_of(k_stores).maybe(),
    "Stores of sums on ranks without a gradient: through the caches or around them; absent: "
    "cached.");
  v("sums", p.sums_in_place, one_of(k_sums).maybe(),
    "sent: gradients are sent to the part's server; in_place: the server reads them in shared "
    "memory and writes the sum there. Absent: sent.");
  v("ring_order", p.ring_order, k_count.maybe(),
    "Order of the workers' ranks in the ring of strategy ring; absent: by number.");
  v("groups", p.groups, k_count.maybe(),
    "In this many groups of the workers, of neighbours and as equal as can be, each part is summed "
    "by one rank first, then over the groups; absent: there are none.");
  v("parts", p.parts, k_any, "The pieces of the gradient.");
  v("update", p.update, k_any, "The optimizer's step; absent: the plan has no step.");
  v("asynchronous", p.asynchronous, k_any, "Present if no worker waits for another.");
  v("fixed_point", p.fixed_point, k_any, "Present if gradients are summed as whole numbers.");
  v("wire", p.wire, one_of(k_dtypes),
    "Workers' gradients are fp32, and travel and are added as this type: all bytes of the plan "
    "count it. Absent: they travel as they are.");
  v("measured_on", p.measured_on, k_any,
    "The one machine that the profile was measured on; absent: several, or written by hand.");
  v("rehearsal", p.rehearsal, k_any, "Absent: the profile has none that is like this plan.");
  v("prediction", p.prediction, k_any, "Prediction of the chosen strategy.");
  v("switch_sums", p.switch_sums, k_any,
    "Absent: no switch of the machines is known to sum, or sums there would save nothing.");
  v("assignment_gap", p.assignment_gap, k_any,
    "Time of the assignment over time of the exact shares, minus 1.");
  v("runner_up", p.runner_up, k_any.maybe(), "The second-best strategy; absent: no other applies.");
  v("margin", p.margin, k_any, "Predicted time of the runner-up over this plan's, minus 1.");
  v("margin_text", p.margin_text, k_any.maybe(),
    "Change of the inputs at which the runner-up wins.");
  v("candidates", p.candidates, k_any, "Every strategy that was considered.");
  v("quantities", p.quantities, k_any, "The solved numbers.");
  v("assumed", p.assumed, k_some_text.maybe(),
    "Facts that the profile lacks or the plan leaves out, one sentence each. The prediction counts "
    "them as free or unlimited.");
  describe_ways(v, p);
  if (const JsonView* const view = v.read()) {
    p.one_queue = p.one_queue && !p.routing.empty();
    check(p, *view);
  }
}

} // namespace documents

std::optional<double> wire_error(const Plan& plan) {
  const auto found = std::ranges::find(plan.quantities, k_wire_error_quantity, &Quantity::name);
  return found == plan.quantities.end() ? std::nullopt : std::optional(found->value);
}

std::optional<double> seconds_of(const Prediction& prediction, std::string_view term) {
  const auto it = std::ranges::find(prediction.terms, term, &Term::name);
  return it == prediction.terms.end() ? std::nullopt : std::optional(it->seconds);
}

double contention_seconds(const Prediction& prediction) {
  return seconds_of(prediction, k_contention).value_or(0);
}

Prediction without(Prediction prediction, std::string_view term) {
  const double lost = seconds_of(prediction, term).value_or(0);
  for (double* const seconds :
       {&prediction.lo_seconds, &prediction.mid_seconds, &prediction.hi_seconds}) {
    *seconds -= lost;
  }
  std::erase_if(prediction.terms, [&](const Term& t) { return t.name == term; });
  return prediction;
}

std::vector<std::size_t> Parts::by_offset() const {
  std::vector<std::size_t> order(size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  // Most plans send the parts in the order in which they lie.
  if (!std::is_sorted(offset_bytes.begin(), offset_bytes.end())) {
    std::ranges::stable_sort(order, {}, [&](std::size_t i) { return offset_bytes[i]; });
  }
  return order;
}

std::string PlanRank::machine_name() const {
  return !member.empty()  ? member
         : machine_number ? fmt::format("{}.{}", machine, *machine_number)
                          : machine;
}

std::string PlanRank::place_name() const {
  const std::string number = process ? fmt::format(":{}", *process) : "";
  if (endpoint.starts_with(machine + "/")) {
    return machine_name() + endpoint.substr(machine.size()) + number;
  }
  return endpoint.empty() || machine_number ? machine_name() : endpoint + number;
}

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
  return documents::read_as<Plan>("plan", json, file);
}
Json to_json(const Plan& plan) {
  return documents::written(plan, "plan");
}

} // namespace reckon
