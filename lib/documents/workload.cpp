// SPDX-License-Identifier: Apache-2.0
#include "documents/workload.hpp"

#include "core/csv.hpp"
#include "core/error.hpp"
#include "core/json.hpp"
#include "core/whole_number.hpp"
#include "documents/fields.hpp"
#include "documents/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <unordered_map>

namespace reckon {
namespace documents {
namespace {

void check(const Computation& c, const JsonView& view) {
  check_range(c.seconds.value_or(0), Range::time, view);
  if (c.seconds) {
    for (const char* key : {"flops_per_sample", "elements_per_sample", "elements"}) {
      if (const auto count = view.find(key)) {
        count->fail("stands beside seconds, which were measured; remove one of the two");
      }
    }
  }
  if (c.nothing()) {
    view.fail("says nothing; give seconds or some of flops_per_sample, elements_per_sample and "
              "elements, or remove this key");
  }
}

/// Gives tensors that name no type the common one.
void check_tensors(std::vector<Tensor>& tensors, const JsonView& view, const char* key,
                   DType common) {
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (!view.raw()[key][i].contains("dtype")) {
      tensors[i].dtype = common;
    }
    total += tensors[i].bytes();
    if (total > k_max_count) {
      fail_below(view, fmt::format("{}/{}/elements", key, i),
                 "brings the workload above 2^53 bytes");
    }
  }
}

void check_owners(const Workload& workload, const JsonView& view) {
  std::map<std::string, bool> owned;
  for (const Tensor& tensor : workload.tensors) {
    owned[tensor.name] = false;
  }
  Unique names(view, "tensor name");
  for (std::size_t i = 0; i < workload.layers.size(); ++i) {
    for (std::size_t j = 0; j < workload.layers[i].tensors.size(); ++j) {
      const std::string& name = workload.layers[i].tensors[j];
      const std::string path = fmt::format("layers/{}/tensors/{}", i, j);
      names.add(name, path);
      const auto it = owned.find(name);
      if (it == owned.end()) {
        fail_below(view, path,
                   fmt::format("no entry of /tensors has the name \"{}\"; add one, or name one "
                               "that is there",
                               name));
      }
      it->second = true;
    }
  }
  const auto missing =
      std::find_if(owned.begin(), owned.end(), [](const auto& tensor) { return !tensor.second; });
  if (missing != owned.end()) {
    view.at("layers").fail(
        fmt::format("no layer has the tensor \"{}\"; add it to the one that computes its "
                    "gradient",
                    missing->first));
  }
}

void check(const Workload& workload, const JsonView& view) {
  for (const auto& seconds : {workload.forward_seconds, workload.backward_seconds}) {
    check_range(seconds.value_or(0), Range::time, view);
  }
  Unique names(view, "tensor name");
  for (std::size_t i = 0; i < workload.tensors.size(); ++i) {
    names.add(workload.tensors[i].name, fmt::format("tensors/{}/name", i));
  }
  for (std::size_t i = 0; i < workload.all_to_all.size(); ++i) {
    names.add(workload.all_to_all[i].name, fmt::format("all_to_all/{}/name", i));
  }
  if (workload.layers.empty()) {
    return;
  }
  Unique layers(view, "layer name");
  for (std::size_t i = 0; i < workload.layers.size(); ++i) {
    layers.add(workload.layers[i].name, fmt::format("layers/{}/name", i));
  }
  check_owners(workload, view);
  for (std::size_t i = 0; i < workload.layers.size(); ++i) {
    const auto& exchange = workload.layers[i].exchange;
    const auto later = workload.layers.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    if (exchange && std::none_of(later, workload.layers.end(), [&](const Layer& layer) {
          return layer.name == exchange->before;
        })) {
      fail_below(view, fmt::format("layers/{}/exchange/before", i),
                 fmt::format("no layer after this one has the name \"{}\"", exchange->before));
    }
  }
}

} // namespace

static void describe(Visitor& v, Tensor& t) {
  v.about("tensor", "One tensor's gradient.");
  v("name", t.name, k_name, "Unique in the document, all_to_all included.");
  v("elements", t.elements, k_positive_count, "Number of elements.");
  v("dtype", t.dtype, one_of(k_dtypes).when(true),
    "Element type; the document's dtype when absent.");
}

static void describe(Visitor& v, Computation& c) {
  v.about(
      "computation",
      "Either the seconds that it was measured to take with the workload's batch, or what it asks "
      "of an endpoint.",
      R"({"minProperties": 1, "not": {"anyOf": [{"required": ["seconds", "flops_per_sample"]},
          {"required": ["seconds", "elements_per_sample"]}, {"required": ["seconds",
          "elements"]}]}})");
  v("seconds", c.seconds, k_positive, "Measured time, seconds; excludes the other keys.");
  v("flops_per_sample", c.flops_per_sample, k_positive_count.maybe(),
    "Additions and multiplications for each sample.");
  v("elements_per_sample", c.elements_per_sample, k_positive_count.maybe(),
    "Elements read from or written to memory for each sample.");
  v("elements", c.elements, k_positive_count.maybe(),
    "Elements read from or written to memory in each batch of any size.");
  v.check([&](const JsonView& view) { check(c, view); });
}

static void describe(Visitor& v, Exchange& e) {
  v.about(
      "exchange",
      "The all-to-all that sends the layer's output to other workers and returns its gradient.");
  v("elements_per_sample", e.elements_per_sample, k_positive_count,
    "Elements that a worker sends or keeps for each sample of its batch.");
  v("before", e.before, k_name, "The later layer that needs the output.");
}

static void describe(Visitor& v, Layer& l) {
  v.about("layer", "One layer.");
  v("name", l.name, k_name, "Unique among the layers.");
  v("tensors", l.tensors, k_name.some("tensor").maybe(),
    "Names of the tensors whose gradients the layer computes.");
  v("forward", l.forward, k_any.when(!l.forward.nothing()), "Forward pass; absent: takes no time.");
  v("input_gradient", l.input_gradient, k_any.when(!l.input_gradient.nothing()),
    "Gradient of the layer's input; absent: takes no time.");
  v("weight_gradient", l.weight_gradient, k_any.when(!l.weight_gradient.nothing()),
    "Gradient of the layer's tensors; absent: takes no time.");
  v("exchange", l.exchange, k_any,
    "The all-to-all that sends the layer's output to other workers and returns its gradient.");
}

void describe(Visitor& v, Workload& w) {
  v.about("workload", "A model's gradients, in the order in which the backward pass produces them. "
                      "All tensors together have at most 2^53 bytes.");
  v("name", w.name, k_name, "Name of the model.");
  v("description", w.description, k_any.maybe(), "What the model is.");
  v("provenance", w.provenance, k_any.maybe(), "Origin of the list.");
  // The first tensor's type is said once, so that the usual list of one type stays short.
  DType common = w.tensors.empty() ? DType::fp32 : w.tensors.front().dtype;
  v("dtype", common, one_of(k_dtypes).defaulted(),
    "Element type of tensors without a dtype. reckon writes the first tensor's.");
  v("tensors", w.tensors, k_any.some("tensor"),
    "Tensors whose gradients all workers sum, in gradient order.");
  v("all_to_all", w.all_to_all, k_any.maybe(),
    "Model-parallel embeddings, which are exchanged and not summed.");
  v("forward_seconds", w.forward_seconds, k_positive,
    "Time of one forward pass, seconds; absent: unknown.");
  v("backward_seconds", w.backward_seconds, k_positive,
    "Time of one backward pass, seconds; absent: unknown.");
  v("batch", w.batch, k_positive_count, "Samples of one worker in an iteration; absent: unknown.");
  v("threads", w.threads, k_positive_count,
    "Processors that one worker's passes keep busy; absent: unknown, or the passes run on a GPU.");
  v("layers", w.layers, k_any.some("layer").maybe(),
    "The layers in forward order. Each entry of tensors belongs to one layer. Absent: unknown.");
  if (const JsonView* const view = v.read()) {
    check_tensors(w.tensors, *view, "tensors", common);
    check_tensors(w.all_to_all, *view, "all_to_all", common);
    check(w, *view);
  }
}

} // namespace documents

namespace {

/// Of a CSV file, by number.
struct CsvColumns {
  std::size_t name = 0, elements = 0;
  std::optional<std::size_t> dtype;
};

/// Nothing when the file is empty.
std::optional<CsvColumns> csv_header(CsvReader& reader) {
  const std::vector<std::string_view> names{"name", "elements", "dtype"};
  const auto found = reader.columns(names, "the columns name, elements and, if wanted, dtype");
  if (!found) {
    return std::nullopt;
  }
  for (const std::size_t needed : {0U, 1U}) {
    if (!(*found)[needed]) {
      reader.fail(fmt::format("the header line has no column \"{}\"; add it", names[needed]));
    }
  }
  return CsvColumns{*(*found)[0], *(*found)[1], (*found)[2]};
}

Tensor csv_tensor(const std::vector<std::string>& fields, const CsvColumns& columns,
                  const CsvReader& line) {
  Tensor tensor;
  tensor.name = fields[columns.name];
  if (!is_name(tensor.name)) {
    line.fail("the name must have 1 to 256 characters, no control characters");
  }
  try {
    static_cast<void>(Json(tensor.name).dump()); // throws on what no JSON file can hold
  } catch (const Json::exception&) {
    line.fail("the name is not UTF-8; save the file as UTF-8");
  }
  const std::string& elements = fields[columns.elements];
  tensor.elements = whole_number<std::uint64_t>(elements).value_or(0);
  if (tensor.elements == 0 || tensor.elements > k_max_count) {
    line.fail(fmt::format("elements is \"{}\"; must be a whole number from 1 to 2^53, digits only",
                          elements));
  }
  if (columns.dtype) {
    const auto dtype = dtype_named(fields[*columns.dtype]);
    if (!dtype) {
      line.fail(
          fmt::format("dtype is \"{}\"; must be one of fp32, fp16, bf16", fields[*columns.dtype]));
    }
    tensor.dtype = *dtype;
  }
  return tensor;
}

} // namespace

std::uint64_t Workload::bytes() const {
  std::uint64_t total = 0;
  for (const Tensor& tensor : tensors) {
    total += tensor.bytes();
  }
  return total;
}

Workload workload_from_json(const Json& json, const std::string& file) {
  return documents::read_as<Workload>("workload", json, file);
}

Json to_json(const Workload& workload) {
  Json json = documents::written(workload, "workload");
  for (const char* const list : {"tensors", "all_to_all"}) {
    if (json.contains(list)) {
      for (Json& tensor : json[list]) {
        if (tensor["dtype"] == json["dtype"]) {
          tensor.erase("dtype");
        }
      }
    }
  }
  return json;
}

Workload workload_from_csv(std::string_view text, const std::string& file) {
  Workload workload;
  const std::filesystem::path path(file);
  workload.name = file == "-" ? "standard input" : one_line(path.stem().string());
  workload.provenance = "imported from " + (file == "-" ? workload.name : path.filename().string());
  std::unordered_map<std::string, std::size_t> seen; // name -> line
  std::uint64_t total = 0;
  CsvReader line(text, file == "-" ? workload.name : file);
  const auto columns = csv_header(line);
  while (const auto fields = line.next()) {
    Tensor tensor = csv_tensor(*fields, *columns, line);
    if (const auto [first, added] = seen.try_emplace(tensor.name, line.line()); !added) {
      line.fail(
          fmt::format("the tensor name \"{}\" occurs twice, first on line {}; rename or remove one",
                      tensor.name, first->second));
    }
    total += tensor.bytes();
    if (total > k_max_count) {
      line.fail("brings the workload above 2^53 bytes");
    }
    workload.tensors.push_back(std::move(tensor));
  }
  if (workload.tensors.empty()) {
    fail(ErrorKind::input,
         fmt::format("{}: has no tensors; write a header line \"name,elements,dtype\" and one "
                     "line a tensor, in gradient order",
                     file));
  }
  return workload;
}

bool is_workload_table(std::string_view text) {
  try {
    CsvReader line(text.substr(0, text.find('\n')), "");
    return csv_header(line).has_value();
  } catch (const Error&) { // other titles, or none
    return false;
  }
}

Workload as_sent(Workload workload, DType wire) {
  for (Tensor& tensor : workload.tensors) {
    if (tensor.dtype != DType::fp32) {
      fail(ErrorKind::input,
           fmt::format(
               "--wire {}: is for gradients of fp32, and tensor '{}' of workload '{}' is {}; "
               "leave --wire out",
               name_of(wire), tensor.name, workload.name, name_of(tensor.dtype)));
    }
    tensor.dtype = wire;
  }
  return workload;
}

GradientLayout layout_of(const Workload& workload) {
  constexpr std::uint64_t k_boundary = 64; // a cache line, and the widest SIMD vector
  GradientLayout layout;
  layout.tensor_offset_bytes.reserve(workload.tensors.size());
  for (const Tensor& tensor : workload.tensors) {
    if (layout.runs.empty() || layout.runs.back().dtype != tensor.dtype) {
      layout.total_bytes = (layout.total_bytes + k_boundary - 1) / k_boundary * k_boundary;
      layout.runs.push_back(
          {.offset_bytes = layout.total_bytes, .bytes = 0, .dtype = tensor.dtype});
    }
    layout.tensor_offset_bytes.push_back(layout.total_bytes);
    layout.runs.back().bytes += tensor.bytes();
    layout.total_bytes += tensor.bytes();
  }
  return layout;
}

} // namespace reckon
