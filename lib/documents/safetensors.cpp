// SPDX-License-Identifier: Apache-2.0
#include "documents/safetensors.hpp"

#include "core/error.hpp"
#include "core/file.hpp"
#include "core/json.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <system_error>

namespace reckon {
namespace {

constexpr std::string_view k_file_ending = ".safetensors",
                           k_index_ending = ".safetensors.index.json";
constexpr std::uint64_t k_length_bytes = 8;
constexpr std::uint64_t k_longest_header = 100'000'000; // the format's own limit

/// An element type of the format.
struct StoredType {
  std::string_view name;
  std::uint64_t bits;
  bool whole = false; ///< numbers or truth values: no gradient
  std::optional<DType> gradient{};
};
constexpr std::array k_stored_types{StoredType{"F32", 32, false, DType::fp32},
                                    StoredType{"F16", 16, false, DType::fp16},
                                    StoredType{"BF16", 16, false, DType::bf16},
                                    StoredType{"BOOL", 8, true},
                                    StoredType{"U8", 8, true},
                                    StoredType{"I8", 8, true},
                                    StoredType{"U16", 16, true},
                                    StoredType{"I16", 16, true},
                                    StoredType{"U32", 32, true},
                                    StoredType{"I32", 32, true},
                                    StoredType{"U64", 64, true},
                                    StoredType{"I64", 64, true},
                                    StoredType{"F64", 64},
                                    StoredType{"C64", 64},
                                    StoredType{"F8_E4M3", 8},
                                    StoredType{"F8_E5M2", 8},
                                    StoredType{"F8_E8M0", 8},
                                    StoredType{"F8_E4M3FNUZ", 8},
                                    StoredType{"F8_E5M2FNUZ", 8},
                                    StoredType{"F6_E2M3", 6},
                                    StoredType{"F6_E3M2", 6},
                                    StoredType{"F4", 4}};

/// A tensor of one file.
struct Stored {
  std::string name;
  const StoredType* type = nullptr;
  std::uint64_t elements = 0, begin = 0, end = 0; ///< bytes after the header
};

const StoredType& type_of(const JsonView& tensor) {
  const JsonView dtype = tensor.at("dtype");
  const std::string name = dtype.string();
  const auto found = std::find_if(k_stored_types.begin(), k_stored_types.end(),
                                  [&](const StoredType& type) { return type.name == name; });
  if (found == k_stored_types.end()) {
    dtype.fail(fmt::format("\"{}\" is no element type of this format that is known here; write "
                           "the tensors with fp32, fp16 or bf16, or give the workload as CSV",
                           name));
  }
  return *found;
}

std::uint64_t elements_of(const JsonView& tensor) {
  const JsonView shape = tensor.at("shape");
  std::uint64_t elements = 1;
  for (const std::uint64_t length : shape.counts()) {
    if (length != 0 && elements > k_max_count / length) {
      shape.fail("has more than 2^53 elements");
    }
    elements *= length;
  }
  return elements;
}

Stored stored(const std::string& name, const JsonView& tensor) {
  if (!is_name(name)) {
    tensor.fail("its name must have 1 to 256 characters, no control characters");
  }
  tensor.only({"dtype", "shape", "data_offsets"});
  Stored out{.name = name, .type = &type_of(tensor), .elements = elements_of(tensor)};
  const JsonView offsets = tensor.at("data_offsets");
  const std::vector<std::uint64_t> ends = offsets.counts();
  if (ends.size() != 2 || ends[0] > ends[1]) {
    offsets.fail("must be two offsets in bytes, the end not before the begin");
  }
  out.begin = ends[0];
  out.end = ends[1];
  const std::uint64_t bits = out.elements * out.type->bits; // below 2^59
  if (bits != 8 * (out.end - out.begin)) {
    offsets.fail(fmt::format("hold {} bytes, but {} elements of {} have {}; the file is damaged, "
                             "load it again",
                             out.end - out.begin, out.elements, out.type->name, (bits + 7) / 8));
  }
  return out;
}

[[noreturn]] void refuse(const std::string& file, const std::string& problem) {
  fail(ErrorKind::input, one_line(file + ": " + problem));
}

/// Bytes of the header, as a file's first bytes say.
std::uint64_t header_length(std::string_view beginning, const std::string& file) {
  if (beginning.size() < k_length_bytes) {
    refuse(file,
           fmt::format("has {} bytes; a safetensors file begins with the 8 of its header's length. "
                       "Load it again",
                       beginning.size()));
  }
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < k_length_bytes; ++i) {
    length |= std::uint64_t{static_cast<unsigned char>(beginning[i])} << (8 * i);
  }
  if (length > k_longest_header) {
    refuse(
        file,
        fmt::format(
            "its first 8 bytes say that the header has {} bytes, and safetensors files "
            "have at most {}; this is another kind of file, as git-lfs leaves one in its place, or "
            "it is damaged",
            length, k_longest_header));
  }
  return length;
}

/// In the order of their data. `beginning` is a file's length and header, whatever follows.
std::vector<Stored> tensors_of(std::string_view beginning, const std::string& file) {
  const std::uint64_t length = header_length(beginning, file);
  beginning.remove_prefix(k_length_bytes);
  if (beginning.size() < length) {
    refuse(file, fmt::format("ends after {} of the {} bytes of its header; load it again",
                             beginning.size(), length));
  }
  const Json header = parse_json(beginning.substr(0, length), file);
  const JsonView view(header, file);
  std::vector<Stored> tensors;
  for (const auto& [name, tensor] : view.members()) {
    if (name != "__metadata__") {
      tensors.push_back(stored(name, tensor));
    }
  }
  // Empty tensors lie anywhere; members come in the order of their names.
  std::stable_sort(tensors.begin(), tensors.end(), [](const Stored& a, const Stored& b) {
    return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
  });
  for (std::size_t i = 1; i < tensors.size(); ++i) {
    if (tensors[i].begin < tensors[i - 1].end) {
      view.at(tensors[i].name)
          .at("data_offsets")
          .fail(fmt::format("overlap those of \"{}\"; the file is damaged, load it again",
                            tensors[i - 1].name));
    }
  }
  return tensors;
}

bool has_gradient(const Stored& tensor) {
  // Of a batch norm; some programs store the count as F32.
  static constexpr std::array<std::string_view, 3> k_statistics{"running_mean", "running_var",
                                                                "num_batches_tracked"};
  const std::string last = tensor.name.substr(tensor.name.rfind('.') + 1);
  return !tensor.type->whole && tensor.elements > 0 &&
         std::find(k_statistics.begin(), k_statistics.end(), last) == k_statistics.end();
}

/// `tensors` in the order of the model's files.
Workload workload_of(const std::vector<Stored>& tensors, const std::string& file,
                     std::vector<std::string>& doubts) {
  Workload workload;
  const std::string name = std::filesystem::path(file).filename().string();
  workload.name = one_line(name.substr(0, name.rfind(k_file_ending)));
  if (!is_name(workload.name)) {
    workload.name = "model";
  }
  std::uint64_t total = 0;
  std::size_t left_out = 0;
  for (auto tensor = tensors.rbegin(); tensor != tensors.rend(); ++tensor) {
    if (!has_gradient(*tensor)) {
      ++left_out;
      continue;
    }
    if (!tensor->type->gradient) {
      refuse(file, fmt::format("/{}/dtype: is {}, which no gradient has here; give the workload as "
                               "CSV, with the types of the gradients (fp32, fp16, bf16)",
                               tensor->name, tensor->type->name));
    }
    workload.tensors.push_back({tensor->name, tensor->elements, *tensor->type->gradient});
    total += workload.tensors.back().bytes();
    if (total > k_max_count) {
      refuse(file, fmt::format("/{}: brings the workload above 2^53 bytes", tensor->name));
    }
  }
  if (workload.tensors.empty()) {
    refuse(file, "has no tensor that can have a gradient; give the workload as CSV");
  }
  workload.provenance = one_line(fmt::format(
      "header of {}: its tensors, the last first, which is not the order of gradients", name));
  doubts.push_back(
      one_line(fmt::format("{}: tensors are in the reverse of the file's order, not in that in "
                           "which gradients are ready: totals are right, overlap is not. "
                           "python3 -m reckon.record has the order",
                           file)));
  if (left_out > 0) {
    const std::string which = fmt::format("{} tensor{} left out: whole numbers, running statistics "
                                          "or empty",
                                          left_out, left_out == 1 ? "" : "s");
    workload.provenance += "; " + which;
    doubts.push_back(one_line(fmt::format("{}: {}, which have no gradients", file, which)));
  }
  return workload;
}

/// The length and the header of a file, however much follows.
std::string beginning_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    fail(ErrorKind::input,
         fmt::format("cannot open {}: {}", path, std::generic_category().message(errno)));
  }
  std::string beginning;
  const auto read_up_to = [&](std::uint64_t bytes) {
    const std::size_t before = beginning.size();
    beginning.resize(bytes);
    file.read(beginning.data() + before, static_cast<std::streamsize>(bytes - before));
    beginning.resize(before + static_cast<std::size_t>(file.gcount()));
  };
  read_up_to(k_length_bytes);
  read_up_to(k_length_bytes + header_length(beginning, path));
  return beginning;
}

/// The files that an index names beside itself, each with the tensors that it shall have.
std::map<std::string, std::set<std::string>> shards_of(const std::string& index) {
  const Json json = parse_json(read_file(index), index);
  const JsonView map = JsonView(json, index).at("weight_map");
  std::map<std::string, std::set<std::string>> shards;
  for (const auto& [tensor, shard] : map.members()) {
    const std::string file = shard.name();
    if (file.find('/') != std::string::npos || !file.ends_with(k_file_ending)) {
      shard.fail(fmt::format("is \"{}\"; must name a .safetensors file beside the index", file));
    }
    shards[file].insert(tensor);
  }
  if (shards.empty()) {
    map.fail("names no tensor");
  }
  return shards;
}

std::vector<Stored> tensors_of_index(const std::string& index) {
  std::vector<Stored> all;
  for (auto& [shard, expected] : shards_of(index)) {
    const std::string file = (std::filesystem::path(index).parent_path() / shard).string();
    for (Stored& tensor : tensors_of(beginning_of(file), file)) {
      if (expected.erase(tensor.name) != 0) {
        all.push_back(std::move(tensor));
      }
    }
    if (!expected.empty()) {
      refuse(index, fmt::format("/weight_map/{}: {} has no such tensor; the files are not of one "
                                "model, load them again",
                                *expected.begin(), file));
    }
  }
  return all;
}

} // namespace

bool is_safetensors(std::string_view path) {
  return path.ends_with(k_file_ending) || path.ends_with(k_index_ending);
}

Workload workload_from_safetensors_header(std::string_view beginning, const std::string& file,
                                          std::vector<std::string>& doubts) {
  return workload_of(tensors_of(beginning, file), file, doubts);
}

Workload workload_from_safetensors(const std::string& path, std::vector<std::string>& doubts) {
  return path.ends_with(k_index_ending)
             ? workload_of(tensors_of_index(path), path, doubts)
             : workload_from_safetensors_header(beginning_of(path), path, doubts);
}

} // namespace reckon
