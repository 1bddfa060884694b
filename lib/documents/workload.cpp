// SPDX-License-Identifier: Apache-2.0
#include "documents/workload.hpp"

#include "core/csv.hpp"
#include "core/error.hpp"
#include "documents/fields.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <unordered_map>

namespace reckon {

using namespace documents;

namespace {

DType dtype_from_json(const JsonView& value) {
  return *dtype_named(value.one_of({"fp32", "fp16", "bf16"}));
}

std::vector<Tensor> tensors_from_json(const std::vector<JsonView>& elements, DType common,
                                      Unique& names) {
  std::vector<Tensor> tensors;
  tensors.reserve(elements.size());
  std::uint64_t total = 0;
  for (const JsonView& object : elements) {
    object.only({"name", "elements", "dtype"});
    Tensor tensor;
    tensor.name = object.at("name").name();
    names.add(tensor.name, object.at("name"));
    tensor.elements = positive_count(object.at("elements"));
    const auto dtype = object.find("dtype");
    tensor.dtype = dtype ? dtype_from_json(*dtype) : common;
    total += tensor.bytes();
    if (total > k_max_count) {
      object.at("elements").fail("brings the workload above 2^53 bytes");
    }
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Json tensors_to_json(const std::vector<Tensor>& tensors, DType common) {
  Json json = Json::array();
  for (const Tensor& t : tensors) {
    Json& object = json.emplace_back(Json::object());
    object["name"] = t.name;
    object["elements"] = t.elements;
    if (t.dtype != common) {
      object["dtype"] = name_of(t.dtype);
    }
  }
  return json;
}

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
  const bool printable = std::none_of(tensor.name.begin(), tensor.name.end(), [](char c) {
    return static_cast<unsigned char>(c) < 0x20 || c == 0x7f;
  });
  if (tensor.name.empty() || tensor.name.size() > 256 || !printable) {
    line.fail("the name must have 1 to 256 characters, no control characters");
  }
  try {
    static_cast<void>(Json(tensor.name).dump()); // throws on what no JSON file can hold
  } catch (const Json::exception&) {
    line.fail("the name is not UTF-8; save the file as UTF-8");
  }
  const std::string& elements = fields[columns.elements];
  const char* const end = elements.data() + elements.size();
  const auto [rest, error] = std::from_chars(elements.data(), end, tensor.elements);
  if (error != std::errc{} || rest != end || tensor.elements == 0 ||
      tensor.elements > k_max_count) {
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
  const JsonView view(json, file);
  check_header(view, "workload");
  view.only({"schema", "schema_version", "name", "description", "provenance", "dtype", "tensors",
             "all_to_all", "forward_seconds", "backward_seconds", "batch", "layers"});
  Workload workload;
  workload.name = view.at("name").name();
  workload.description = optional_text(view, "description");
  workload.provenance = optional_text(view, "provenance");
  const auto dtype = view.find("dtype");
  const DType common = dtype ? dtype_from_json(*dtype) : DType::fp32;
  Unique names("tensor name");
  workload.tensors = tensors_from_json(some_elements(view.at("tensors"), "tensor"), common, names);
  if (const auto exchanged = view.find("all_to_all")) {
    workload.all_to_all = tensors_from_json(exchanged->elements(), common, names);
  }
  if (const auto seconds = view.find("forward_seconds")) {
    workload.forward_seconds = seconds->positive();
  }
  if (const auto seconds = view.find("backward_seconds")) {
    workload.backward_seconds = seconds->positive();
  }
  if (const auto batch = view.find("batch")) {
    workload.batch = positive_count(*batch);
  }
  if (const auto layers = view.find("layers")) {
    workload.layers = layers_from_json(*layers, workload.tensors);
  }
  return workload;
}

Json to_json(const Workload& workload) {
  Json json = with_header("workload");
  json["name"] = workload.name;
  put_text(json, "description", workload.description);
  put_text(json, "provenance", workload.provenance);
  // The first tensor's type is said once, so that the usual list of one type stays short.
  const DType common = workload.tensors.empty() ? DType::fp32 : workload.tensors.front().dtype;
  json["dtype"] = name_of(common);
  json["tensors"] = tensors_to_json(workload.tensors, common);
  if (!workload.all_to_all.empty()) {
    json["all_to_all"] = tensors_to_json(workload.all_to_all, common);
  }
  if (workload.forward_seconds) {
    json["forward_seconds"] = *workload.forward_seconds;
  }
  if (workload.backward_seconds) {
    json["backward_seconds"] = *workload.backward_seconds;
  }
  if (workload.batch) {
    json["batch"] = *workload.batch;
  }
  if (!workload.layers.empty()) {
    json["layers"] = json_of(workload.layers);
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
  CsvReader line(text, file);
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
