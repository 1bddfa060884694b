// SPDX-License-Identifier: Apache-2.0
#include "core/units.hpp"
#include "present/document_text.hpp"
#include "present/numbers.hpp"
#include "present/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <type_traits>
#include <variant>

namespace reckon {
namespace {

/// A terminal shows the beginning of a long list; a pipe gets everything.
constexpr std::size_t k_most_tensors = 40;

std::string tensors_text(const std::string& title, const std::vector<Tensor>& tensors,
                         const Style& style) {
  const bool cut = style.width > 0 && tensors.size() > k_most_tensors;
  const std::size_t shown = cut ? k_most_tensors : tensors.size();
  Table table(2, ">|~tensor|>elements|type|>bytes");
  for (std::size_t i = 0; i < shown; ++i) {
    const Tensor& t = tensors[i];
    table.row({{fmt::format("{}", i), Tone::dim},
               t.name,
               fmt::format("{}", t.elements),
               std::string(name_of(t.dtype)),
               to_text(Bytes(t.bytes()))});
  }
  std::string out = heading(title, style) + table.text(style);
  if (cut) {
    out += fmt::format("  and {} more; in a pipe or with --csv all are listed\n",
                       tensors.size() - shown);
  }
  return out;
}

std::string layers_text(const Workload& w, const Style& style) {
  const bool cut = style.width > 0 && w.layers.size() > k_most_tensors;
  const std::size_t shown = cut ? k_most_tensors : w.layers.size();
  const auto text = [](const Computation& c) {
    if (c.seconds) {
      return time_text(*c.seconds);
    }
    return c.nothing()
               ? std::string()
               : fmt::format("{:.3g} {:.3g} {:.3g}", static_cast<double>(c.flops_per_sample),
                             static_cast<double>(c.elements_per_sample),
                             static_cast<double>(c.elements));
  };
  Table table(2, "~layer|>forward|>input grad.|>weight grad.");
  for (std::size_t i = 0; i < shown; ++i) {
    const Layer& l = w.layers[i];
    table.row(
        {l.exchange ? fmt::format("{}, exchanged before {}", l.name, l.exchange->before) : l.name,
         text(l.forward), text(l.input_gradient), text(l.weight_gradient)});
  }
  std::string out =
      heading("layers: operations a sample, elements moved a sample, elements in any case", style) +
      table.text(style);
  if (cut) {
    out += fmt::format("  and {} more; in a pipe all are listed\n", w.layers.size() - shown);
  }
  return out;
}

} // namespace

std::string render(const Workload& w, const Style& style, const ShowOptions& options) {
  std::string out = toned(printable("workload " + w.name), Tone::strong, style) + "\n";
  Table facts(2, "|~");
  const auto add = [&](const char* what, const std::string& text) {
    if (!text.empty()) {
      facts.row({{what, Tone::dim}, text});
    }
  };
  std::uint64_t elements = 0;
  std::uint64_t largest = 0;
  for (const Tensor& t : w.tensors) {
    elements += t.elements;
    largest = std::max(largest, t.bytes());
  }
  add("description", w.description);
  add("provenance", w.provenance);
  add("gradient", fmt::format("{} in {}, {}; the largest has {}", to_text(Bytes(w.bytes())),
                              counted(w.tensors.size(), "tensor"), counted(elements, "element"),
                              to_text(Bytes(largest))));
  add("forward", w.forward_seconds ? time_text(*w.forward_seconds) : "");
  add("backward", w.backward_seconds ? time_text(*w.backward_seconds) : "");
  add("batch", w.batch ? fmt::format("{} samples a worker", *w.batch) : "");
  add("threads", w.threads ? fmt::format("{} a worker, while its passes run", *w.threads) : "");
  out += facts.text(style);
  if (!w.tensors.empty()) {
    out += tensors_text(
        options.stored_order
            ? "tensors, in the reverse of the file's order, which says nothing of their gradients"
            : "tensors, in the order in which their gradients are ready",
        w.tensors, style);
  }
  if (!w.all_to_all.empty()) {
    out += tensors_text("exchanged by all-to-all, not reduced: in no plan", w.all_to_all, style);
  }
  if (!w.layers.empty()) {
    out += layers_text(w, style);
  }
  return out;
}

std::string render(const Roles& roles, const Style& style, const ShowOptions& /*options*/) {
  Table table(2, "ranks|machine|worker|server|>lanes");
  std::uint64_t next = 0;
  for (const RoleGroup& g : roles.groups) {
    const std::uint64_t last = next + g.count - 1;
    table.row({g.count == 1 ? fmt::format("{}", next) : fmt::format("{}-{}", next, last), g.machine,
               g.worker ? "yes" : "no", g.server ? "yes" : "no", fmt::format("{}", g.lanes)});
    next += g.count;
  }
  return toned(printable("roles " + roles.name), Tone::strong, style) + "\n" + table.text(style);
}

std::string render(const Document& document, const Style& style, const ShowOptions& options) {
  return std::visit([&](const auto& d) { return render(d, style, options); }, document);
}

} // namespace reckon
