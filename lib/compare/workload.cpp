// SPDX-License-Identifier: Apache-2.0
#include "compare/facts.hpp"

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
    const auto text = [](const Tensor* t) {
      return t != nullptr ? fmt::format("{} {}", t->elements, name_of(t->dtype)) : "";
    };
    out.text("tensor", group, fmt::format("{}/{}", group, name), text(sides.first),
             text(sides.second));
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

void compare_order_of_layers(Builder& out, const Workload& before, const Workload& after) {
  const auto order = [](const Workload& w) {
    std::vector<std::string> names;
    for (const Layer& layer : w.layers) {
      names.push_back(layer.name);
    }
    return fmt::format("{}", fmt::join(names, ", "));
  };
  out.text("order", "layers", "layers", order(before), order(after));
}

} // namespace

Comparison compare(const Workload& before, const Workload& after, const CompareOptions& options) {
  Builder out("workload", options);
  compare_tensors(out, "tensors", before.tensors, after.tensors);
  compare_tensors(out, "all_to_all", before.all_to_all, after.all_to_all);
  compare_all_facts(out, before, after);
  compare_order_of_layers(out, before, after);
  out.count("bytes", "tensors", "bytes", static_cast<double>(before.bytes()),
            static_cast<double>(after.bytes()), "bytes");
  return std::move(out).finish();
}

Comparison compare(const Roles& before, const Roles& after, const CompareOptions& options) {
  Builder out("roles", options);
  compare_all_facts(out, before, after);
  return std::move(out).finish();
}

} // namespace reckon
