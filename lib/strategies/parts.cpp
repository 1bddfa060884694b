// SPDX-License-Identifier: Apache-2.0
#include "strategies/parts.hpp"

#include "core/error.hpp"
#include "core/indices.hpp"
#include "equations/placement.hpp"
#include "stats/random.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <numeric>
#include <queue>
#include <string_view>
#include <tuple>
#include <utility>

namespace reckon {
namespace {

constexpr std::uint64_t k_page_bytes = 4096;

constexpr std::uint64_t round_up(std::uint64_t value, std::uint64_t step) {
  return (value + step - 1) / step * step;
}

/// [offset, offset + bytes) in pieces of `step`, the last one shorter.
void cut_range(Parts& parts, std::uint64_t offset, std::uint64_t bytes, std::uint64_t step) {
  constexpr std::uint64_t k_most_parts = 1 << 24; // some GB, and minutes
  if (bytes / step > k_most_parts || parts.bytes.size() > k_most_parts) {
    fail(ErrorKind::input, fmt::format("the gradient would have more than {} parts of {} bytes; "
                                       "give a larger --part-bytes, or a smaller workload",
                                       k_most_parts, step));
  }
  for (std::uint64_t done = 0; done < bytes; done += step) {
    parts.offset_bytes.push_back(offset + done);
    parts.bytes.push_back(std::min(step, bytes - done));
  }
}

/// Ranks by a key that grows as they get parts; the least comes first, the lower rank among equals.
using RankQueue = std::priority_queue<std::pair<double, std::size_t>,
                                      std::vector<std::pair<double, std::size_t>>, std::greater<>>;

/// Takes `items` one by one (each of bytes(item)) and gives it to the rank that would be done first
/// with it; among equals (with two workers a share costs a worker nothing) to the one furthest
/// below its share.
template <class Items, class Size>
std::vector<std::uint64_t> give_to_earliest(const Items& items, std::span<const double> shares,
                                            const RankCost& cost, const Size& bytes) {
  struct Entry {
    double cost, filled;
    std::size_t rank;
    bool operator>(const Entry& other) const {
      return std::tie(cost, filled, rank) > std::tie(other.cost, other.filled, other.rank);
    }
  };
  std::vector<double> loads(shares.size(), 0);
  std::vector<std::uint64_t> owner(items.size());
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  const auto entry = [&](std::size_t rank, double b) {
    return Entry{cost(rank, loads[rank] + b), (loads[rank] + b) / shares[rank], rank};
  };
  for (std::size_t r = 0; r < shares.size(); ++r) {
    if (shares[r] > 0) {
      queue.push(entry(r, bytes(items.front())));
    }
  }
  if (queue.empty()) {
    fail(ErrorKind::input, "no rank has a share of the sums: rates of the profile are too large or "
                           "too small");
  }
  for (const auto item : items) {
    const double b = bytes(item);
    // Keys may be from a larger item: bring the first up to date until it stays first.
    for (;;) {
      const Entry now = entry(queue.top().rank, b);
      queue.pop();
      if (!queue.empty() && now > queue.top()) {
        queue.push(now);
        continue;
      }
      loads[now.rank] += b;
      owner[item] = now.rank;
      queue.push(entry(now.rank, b));
      break;
    }
  }
  return owner;
}

/// Deals `counts[r]` turns to each rank, evenly spaced over all turns.
std::vector<std::uint64_t> interleave(const std::vector<std::uint64_t>& counts, std::size_t turns) {
  std::vector<std::uint64_t> dealt(counts.size(), 0), owner;
  RankQueue queue;
  const auto push = [&](std::size_t r) {
    if (dealt[r] < counts[r]) {
      queue.emplace(static_cast<double>(dealt[r] + 1) / static_cast<double>(counts[r]), r);
    }
  };
  for (std::size_t r = 0; r < counts.size(); ++r) {
    push(r);
  }
  while (owner.size() < turns) {
    const std::size_t r = queue.top().second;
    queue.pop();
    owner.push_back(r);
    ++dealt[r];
    push(r);
  }
  return owner;
}

/// What each tensor's layer takes of the forward and of the backward pass: seconds where the layers
/// say any, else operations. A layer's is divided evenly among its tensors; that of one without any
/// counts to the layer before it. All 0 where the layers say nothing.
struct PassWeights {
  std::vector<double> forward, backward;
};

PassWeights weights_of_tensors(const Workload& workload) {
  const std::size_t count = workload.tensors.size();
  PassWeights out{std::vector<double>(count, 0), std::vector<double>(count, 0)};
  std::map<std::string_view, std::size_t> number;
  for (std::size_t t = 0; t < count; ++t) {
    number.emplace(workload.tensors[t].name, t);
  }
  const bool seconds = std::ranges::any_of(workload.layers, [](const Layer& l) {
    return l.forward.seconds || l.input_gradient.seconds || l.weight_gradient.seconds;
  });
  const auto weight = [&](const Computation& c) {
    return seconds ? c.seconds.value_or(0) : static_cast<double>(c.flops_per_sample);
  };
  double forward = 0, backward = 0;
  const Layer* of = nullptr; // the last one with tensors
  for (auto layer = workload.layers.rbegin(); layer != workload.layers.rend(); ++layer) {
    forward += weight(layer->forward);
    backward += weight(layer->input_gradient) + weight(layer->weight_gradient);
    of = layer->tensors.empty() ? of : &*layer;
    const bool first = std::next(layer) == workload.layers.rend();
    if (of != nullptr && (of == &*layer || first)) {
      const auto tensors = static_cast<double>(of->tensors.size());
      for (const std::string& name : of->tensors) {
        out.forward[number.at(name)] += forward / tensors;
        out.backward[number.at(name)] += backward / tensors;
      }
      forward = backward = 0;
    }
  }
  return out;
}

} // namespace

void check_part_bytes(std::uint64_t part_bytes) {
  if (part_bytes < 64) {
    fail(ErrorKind::usage,
         fmt::format("--part-bytes {}: parts must have at least 64 bytes", part_bytes));
  }
}

Parts cut(const GradientLayout& layout, const Workload& workload, std::uint64_t part_bytes,
          Cutting cutting, std::uint64_t multiple_of) {
  check_part_bytes(part_bytes);
  Parts parts;
  if (cutting == Cutting::tensors) {
    for (std::size_t t = 0; t < workload.tensors.size(); ++t) {
      const std::uint64_t bytes = workload.tensors[t].bytes();
      if (bytes > 0) {
        const std::uint64_t pieces = (bytes + part_bytes - 1) / part_bytes;
        const std::uint64_t step =
            std::min(round_up((bytes + pieces - 1) / pieces, 64), part_bytes / 64 * 64);
        cut_range(parts, layout.tensor_offset_bytes[t], bytes, step);
      }
    }
    return parts;
  }
  for (const DTypeRun& run : layout.runs) {
    if (run.bytes == 0) {
      continue;
    }
    std::uint64_t pieces = (run.bytes + part_bytes - 1) / part_bytes;
    if (multiple_of > 1 && pieces >= multiple_of) {
      pieces = round_up(pieces, multiple_of);
    }
    std::uint64_t step = (run.bytes + pieces - 1) / pieces;
    const std::uint64_t paged = round_up(step, k_page_bytes);
    // Page-aligned parts (BytePS 6.2), unless rounding would exceed the size asked for or make the
    // parts unequal by more than a hundredth.
    step = paged <= part_bytes && paged - step <= step / 100
               ? paged
               : std::min(round_up(step, 64), part_bytes / 64 * 64);
    cut_range(parts, run.offset_bytes, run.bytes, step);
  }
  return parts;
}

Passes passes_of(const GradientLayout& layout, const Workload& workload, double forward_seconds,
                 double backward_seconds) {
  Passes passes;
  passes.threads = workload.threads;
  for (std::size_t t = 0; t < workload.tensors.size(); ++t) {
    passes.end_bytes.push_back(layout.tensor_offset_bytes[t] + workload.tensors[t].bytes());
  }
  auto [forward, backward] = weights_of_tensors(workload);
  const auto scaled_to = [](std::vector<double> weights, double seconds) {
    const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
    for (double& w : weights) {
      w = sum > 0 ? w * (seconds / sum) : seconds / static_cast<double>(weights.size());
    }
    return weights;
  };
  passes.forward_seconds = scaled_to(std::move(forward), forward_seconds);
  passes.backward_seconds = scaled_to(std::move(backward), backward_seconds);
  return passes;
}

std::vector<std::size_t> latest_first(std::span<const double> ready_s,
                                      std::span<const double> takes_s) {
  std::priority_queue<std::size_t> there; // the greatest index first
  std::vector<std::size_t> order;
  double now = 0;
  std::size_t next = 0;
  while (order.size() < ready_s.size()) {
    while (next < ready_s.size() && !(ready_s[next] > now)) {
      there.push(next++);
    }
    if (there.empty()) {
      now = ready_s[next];
      continue;
    }
    order.push_back(there.top());
    now += takes_s[there.top()];
    there.pop();
  }
  return order;
}

std::vector<std::size_t> priority_order(const Parts& parts, const Passes& passes,
                                        double bytes_per_s) {
  // In gradient order the next forward pass needs the last part first.
  std::vector<double> ready(passes.size());
  std::partial_sum(passes.backward_seconds.begin(), passes.backward_seconds.end(), ready.begin());
  const std::vector<std::size_t> by_offset = parts.by_offset();
  std::vector<double> ready_at, takes;
  for (const std::size_t p : by_offset) {
    const auto it = std::upper_bound(passes.end_bytes.begin(), passes.end_bytes.end(),
                                     parts.offset_bytes[p] + parts.bytes[p] - 1);
    const auto layer = static_cast<std::size_t>(it - passes.end_bytes.begin());
    ready_at.push_back(ready[std::min(layer, ready.size() - 1)]);
    takes.push_back(static_cast<double>(parts.bytes[p]) / bytes_per_s);
  }
  std::vector<std::size_t> order = latest_first(ready_at, takes);
  for (std::size_t& p : order) {
    p = by_offset[p];
  }
  return order;
}

void order_by_priority(Parts& parts, const Passes& passes, double bytes_per_s) {
  const std::vector<std::size_t> order = priority_order(parts, passes, bytes_per_s);
  const std::vector<std::uint64_t> offsets = parts.offset_bytes, bytes = parts.bytes;
  for (std::size_t i = 0; i < order.size(); ++i) {
    parts.offset_bytes[i] = offsets[order[i]];
    parts.bytes[i] = bytes[order[i]];
  }
}

std::vector<DType> part_dtypes(const Plan& plan) {
  const Parts& parts = plan.parts;
  std::vector<DType> dtypes;
  std::size_t run = 0;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    while (run + 1 < plan.runs.size() && parts.offset_bytes[p] >= plan.runs[run + 1].offset_bytes) {
      ++run;
    }
    while (run > 0 && parts.offset_bytes[p] < plan.runs[run].offset_bytes) {
      --run; // parts need not be in order of address
    }
    dtypes.push_back(plan.runs[run].dtype);
  }
  return dtypes;
}

std::vector<double> loads_of(const Parts& parts, std::size_t ranks) {
  std::vector<double> loads(ranks, 0);
  for (std::size_t p = 0; p < parts.size(); ++p) {
    loads[parts.server[p]] += static_cast<double>(parts.bytes[p]);
  }
  return loads;
}

bool in_gradient_order(const Parts& parts) {
  return std::is_sorted(parts.offset_bytes.begin(), parts.offset_bytes.end());
}

void assign_by_hash(Parts& parts, std::span<const double> shares) {
  // Slot boundaries in proportion to the shares; a part's slot is its hash, scaled to [0, total).
  std::vector<double> upper(shares.size());
  std::partial_sum(shares.begin(), shares.end(), upper.begin());
  parts.server.assign(parts.size(), 0);
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const double at = static_cast<double>(mixed(p) >> 11U) * 0x1p-53 * upper.back();
    const auto it = std::upper_bound(upper.begin(), upper.end(), at);
    parts.server[p] = static_cast<std::uint64_t>(
        std::min(it - upper.begin(), static_cast<std::ptrdiff_t>(shares.size()) - 1));
  }
}

double assign_servers(Parts& parts, std::span<const double> shares, const RankCost& cost) {
  const auto time_of = [&](const Parts& p) {
    const std::vector<double> loads = loads_of(p, shares.size());
    double latest = 0;
    for (std::size_t r = 0; r < loads.size(); ++r) {
      latest = std::max(latest, cost(r, loads[r]));
    }
    return latest;
  };
  parts.server.clear();
  if (parts.size() == 0) {
    return 0;
  }
  const auto size = [&](std::size_t p) { return static_cast<double>(parts.bytes[p]); };
  std::vector<std::size_t> order = indices(parts.size());
  const auto largest = *std::max_element(parts.bytes.begin(), parts.bytes.end());
  const double typical = static_cast<double>(largest);
  const std::vector<std::uint64_t> dealt =
      give_to_earliest(order, shares, cost, [&](std::size_t) { return typical; });
  std::vector<std::uint64_t> counts(shares.size(), 0);
  for (const std::uint64_t r : dealt) {
    ++counts[r];
  }
  parts.server = interleave(counts, parts.size());
  double best = time_of(parts);

  const auto try_instead = [&](Parts&& other) {
    const double time = time_of(other);
    if (time < best * (1 - 1e-9)) {
      best = time;
      parts.server = std::move(other.server);
    }
  };
  if (std::any_of(parts.bytes.begin(), parts.bytes.end() - 1,
                  [&](std::uint64_t b) { return b != largest; })) {
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return parts.bytes[a] > parts.bytes[b]; });
    Parts longest_first;
    longest_first.bytes = parts.bytes;
    longest_first.server = give_to_earliest(order, shares, cost, size);
    try_instead(std::move(longest_first));
  }
  Parts hashed;
  hashed.bytes = parts.bytes;
  assign_by_hash(hashed, shares);
  try_instead(std::move(hashed));
  return best;
}

void assign_lanes(Parts& parts, std::size_t servers, std::uint64_t lanes) {
  parts.lane.assign(parts.size(), 0);
  if (lanes < 2) {
    return;
  }
  std::vector<std::vector<std::size_t>> owned(servers);
  for (std::size_t p = 0; p < parts.size(); ++p) {
    owned[parts.server[p]].push_back(p);
  }
  for (std::size_t s = 0; s < servers; ++s) {
    std::vector<std::uint64_t> bytes;
    for (const std::size_t p : owned[s]) {
      bytes.push_back(parts.bytes[p]);
    }
    const Balance balance = balance_longest_first(bytes, lanes);
    for (std::size_t i = 0; i < owned[s].size(); ++i) {
      parts.lane[owned[s][i]] = balance.bin_of[i];
    }
  }
}

Plan beginning(const Plan& plan, std::size_t count) {
  Plan shorter = plan;
  for (std::vector<std::uint64_t>* const column :
       {&shorter.parts.offset_bytes, &shorter.parts.bytes, &shorter.parts.server,
        &shorter.parts.lane, &shorter.parts.tree}) {
    if (column->size() > count) { // where there is one tree parts name none
      column->resize(count);
    }
  }
  return shorter;
}

} // namespace reckon
