// SPDX-License-Identifier: Apache-2.0
#include "compare/build.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace reckon {
namespace {

void compare_tensors(Builder& out, const std::string& group, const std::vector<Tensor>& before,
                     const std::vector<Tensor>& after) {
  const auto all = paired(before, after, &Tensor::name);
  for (const auto& [name, sides] : all) {
    Both<Tensor>(out, group, fmt::format("{}/{}", group, name), sides.first, sides.second)
        .text("tensor", "",
              [](const Tensor& t) { return fmt::format("{} {}", t.elements, name_of(t.dtype)); });
  }
  // The order is compared among the tensors that are in both.
  const auto common = [&](const std::vector<Tensor>& tensors) {
    std::vector<const Tensor*> kept;
    for (const Tensor& t : tensors) {
      const auto& sides = all.at(t.name);
      if (sides.first != nullptr && sides.second != nullptr) {
        kept.push_back(&t);
      }
    }
    return kept;
  };
  const auto a = common(before);
  const auto b = common(after);
  Difference d;
  for (std::size_t i = std::min(a.size(), b.size()); i-- > 0;) {
    if (a[i]->name != b[i]->name) {
      ++d.parts;
      d.before = text_side(fmt::format("{} is number {} of {}", a[i]->name, i, a.size()));
      d.after = text_side(fmt::format("{} is number {} of {}", b[i]->name, i, b.size()));
    }
  }
  if (d.parts > 0) {
    d.kind = "order";
    d.group = group;
    d.where = group;
    out.add(std::move(d));
  }
}

std::string text_of(const Computation& c) {
  if (c.seconds) {
    return fmt::format("{} s", *c.seconds);
  }
  return fmt::format("{} operations and {} elements a sample, {} elements", c.flops_per_sample,
                     c.elements_per_sample, c.elements);
}

/// Layers by name; which stands where is their order and compared like the tensors'.
void compare_layers(Builder& out, const Workload& before, const Workload& after) {
  for (const auto& [name, sides] : paired(before.layers, after.layers, &Layer::name)) {
    const Both<Layer> both(out, "layers", fmt::format("layers/{}/", name), sides.first,
                           sides.second);
    both.text("layer", "tensors",
              [](const Layer& l) { return fmt::format("{}", fmt::join(l.tensors, ", ")); });
    both.text("layer", "forward", [](const Layer& l) { return text_of(l.forward); });
    both.text("layer", "input_gradient", [](const Layer& l) { return text_of(l.input_gradient); });
    both.text("layer", "weight_gradient",
              [](const Layer& l) { return text_of(l.weight_gradient); });
    both.text("layer", "exchange", [](const Layer& l) {
      return l.exchange ? fmt::format("{} elements a sample, before {}",
                                      l.exchange->elements_per_sample, l.exchange->before)
                        : std::string();
    });
  }
  const auto order = [](const Workload& w) {
    std::vector<std::string> names;
    for (const Layer& layer : w.layers) {
      names.push_back(layer.name);
    }
    return fmt::format("{}", fmt::join(names, ", "));
  };
  out.text("order", "layers", "layers", order(before), order(after));
}

std::string text_of(const RoleGroup& g) {
  std::string role =
      g.worker && g.server ? "workers and servers" : (g.worker ? "workers" : "servers");
  if (!g.worker && !g.server) {
    role = "idle";
  }
  return fmt::format("{} {} on {}, {} lanes", g.count, role, g.machine, g.lanes);
}

} // namespace

Comparison compare(const Workload& before, const Workload& after, const CompareOptions& options) {
  Builder out("workload", options);
  compare_tensors(out, "tensors", before.tensors, after.tensors);
  compare_tensors(out, "all_to_all", before.all_to_all, after.all_to_all);
  const Both<Workload> times(out, "times", "", &before, &after);
  times.number("time", "forward_seconds", &Workload::forward_seconds, "seconds");
  times.number("time", "backward_seconds", &Workload::backward_seconds, "seconds");
  compare_layers(out, before, after);
  const auto batch = [](const Workload& w) {
    return w.batch ? fmt::format("{}", *w.batch) : std::string();
  };
  out.text("batch", "layers", "batch", batch(before), batch(after));
  out.count("bytes", "tensors", "bytes", before.bytes(), after.bytes(), "bytes");
  return std::move(out).finish();
}

Comparison compare(const Roles& before, const Roles& after, const CompareOptions& options) {
  Builder out("roles", options);
  for (std::size_t i = 0; i < std::max(before.groups.size(), after.groups.size()); ++i) {
    const auto text = [i](const Roles& roles) {
      return i < roles.groups.size() ? text_of(roles.groups[i]) : std::string();
    };
    out.text("group", "groups", fmt::format("groups/{}", i), text(before), text(after));
  }
  return std::move(out).finish();
}

} // namespace reckon
