// SPDX-License-Identifier: Apache-2.0
#include "documents/layers.hpp"

#include "documents/fields.hpp"
#include "documents/workload.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

namespace reckon::documents {
namespace {

constexpr std::pair<const char*, std::uint64_t Computation::*> k_counts[] = {
    {"flops_per_sample", &Computation::flops_per_sample},
    {"elements_per_sample", &Computation::elements_per_sample},
    {"elements", &Computation::elements},
};
constexpr std::pair<const char*, Computation Layer::*> k_computations[] = {
    {"forward", &Layer::forward},
    {"input_gradient", &Layer::input_gradient},
    {"weight_gradient", &Layer::weight_gradient},
};

Computation computation_from_json(const JsonView& object) {
  object.only({"seconds", "flops_per_sample", "elements_per_sample", "elements"});
  Computation computation;
  const auto seconds = object.find("seconds");
  if (seconds) {
    computation.seconds = seconds->positive();
  }
  for (const auto& [key, member] : k_counts) {
    if (const auto count = object.find(key)) {
      if (seconds) {
        count->fail("stands beside seconds, which were measured; remove one of the two");
      }
      computation.*member = positive_count(*count);
    }
  }
  if (computation.nothing()) {
    object.fail("says nothing; give seconds or some of flops_per_sample, elements_per_sample and "
                "elements, or remove this key");
  }
  return computation;
}

Json json_of(const Computation& computation) {
  Json json = Json::object();
  if (computation.seconds) {
    json["seconds"] = *computation.seconds;
  }
  for (const auto& [key, member] : k_counts) {
    if (computation.*member != 0) {
      json[key] = computation.*member;
    }
  }
  return json;
}

Layer layer_from_json(const JsonView& object) {
  object.only({"name", "tensors", "forward", "input_gradient", "weight_gradient", "exchange"});
  Layer layer;
  layer.name = object.at("name").name();
  if (const auto names = object.find("tensors")) {
    for (const JsonView& name : some_elements(*names, "tensor")) {
      layer.tensors.push_back(name.name());
    }
  }
  for (const auto& [key, member] : k_computations) {
    if (const auto computation = object.find(key)) {
      layer.*member = computation_from_json(*computation);
    }
  }
  if (const auto exchange = object.find("exchange")) {
    exchange->only({"elements_per_sample", "before"});
    layer.exchange = {.elements_per_sample = positive_count(exchange->at("elements_per_sample")),
                      .before = exchange->at("before").name()};
  }
  return layer;
}

void check_owners(const JsonView& array, const std::vector<Tensor>& tensors) {
  std::map<std::string, bool> owned;
  for (const Tensor& tensor : tensors) {
    owned[tensor.name] = false;
  }
  Unique names("tensor name");
  for (const JsonView& layer : array.elements()) {
    if (const auto of_layer = layer.find("tensors")) {
      for (const JsonView& name : of_layer->elements()) {
        names.add(name.name(), name);
        const auto it = owned.find(name.name());
        if (it == owned.end()) {
          name.fail(fmt::format("no entry of /tensors has the name \"{}\"; add one, or name one "
                                "that is there",
                                name.name()));
        }
        it->second = true;
      }
    }
  }
  const auto missing =
      std::find_if(owned.begin(), owned.end(), [](const auto& tensor) { return !tensor.second; });
  if (missing != owned.end()) {
    array.fail(fmt::format("no layer has the tensor \"{}\"; add it to the one that computes its "
                           "gradient",
                           missing->first));
  }
}

void check_exchanges(const JsonView& array, const std::vector<Layer>& layers) {
  for (std::size_t i = 0; i < layers.size(); ++i) {
    if (!layers[i].exchange) {
      continue;
    }
    const auto later = layers.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    if (std::none_of(later, layers.end(), [&](const Layer& layer) {
          return layer.name == layers[i].exchange->before;
        })) {
      array.elements()[i]
          .at("exchange")
          .at("before")
          .fail(fmt::format("no layer after this one has the name \"{}\"",
                            layers[i].exchange->before));
    }
  }
}

} // namespace

std::vector<Layer> layers_from_json(const JsonView& array, const std::vector<Tensor>& tensors) {
  std::vector<Layer> layers;
  Unique names("layer name");
  for (const JsonView& object : some_elements(array, "layer")) {
    layers.push_back(layer_from_json(object));
    names.add(layers.back().name, object.at("name"));
  }
  check_owners(array, tensors);
  check_exchanges(array, layers);
  return layers;
}

Json json_of(const std::vector<Layer>& layers) {
  Json json = Json::array();
  for (const Layer& layer : layers) {
    Json& object = json.emplace_back(Json::object());
    object["name"] = layer.name;
    if (!layer.tensors.empty()) {
      object["tensors"] = layer.tensors;
    }
    for (const auto& [key, member] : k_computations) {
      if (!(layer.*member).nothing()) {
        object[key] = json_of(layer.*member);
      }
    }
    if (layer.exchange) {
      object["exchange"] = {{"elements_per_sample", layer.exchange->elements_per_sample},
                            {"before", layer.exchange->before}};
    }
  }
  return json;
}

} // namespace reckon::documents
