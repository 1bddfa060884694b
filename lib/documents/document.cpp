// SPDX-License-Identifier: Apache-2.0
#include "documents/document.hpp"

#include "core/digest.hpp"
#include "core/error.hpp"
#include "core/file.hpp"
#include "documents/cell_doubts.hpp"
#include "documents/fields.hpp"
#include "documents/json.hpp"
#include "documents/safetensors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>
#include <set>

namespace reckon {
namespace {

namespace fs = std::filesystem;

/// Characters of a text that is no document that say what it is.
constexpr std::size_t k_shown_of_text = 40;

std::string shown_name(const std::string& path) {
  return path == "-" ? "standard input" : path;
}

WhatTextIs& other_texts() {
  static WhatTextIs what_is;
  return what_is;
}

/// The text of `path`, where a document of this kind is wanted. It is given back before the
/// document is built: a plan of 10^6 parts has 30 MB.
Json parsed(std::string text, const std::string& path, std::string_view kind) {
  const std::string shown = shown_name(path);
  if (const auto& what_is = other_texts();
      what_is && text.find("\"schema\"") == std::string::npos) {
    if (const std::string what = what_is(text, path); !what.empty()) {
      fail(ErrorKind::input, fmt::format("{}: {}", shown, what));
    }
  }
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  if (begin == std::string::npos) {
    fail(ErrorKind::input, fmt::format("{}: {} is empty", shown, path == "-" ? "it" : "the file"));
  }
  if (text[begin] != '{' && text[begin] != '[') {
    const auto line_begin = text.rfind('\n', begin) + 1; // npos + 1 is 0
    const auto line = 1 + std::count(text.begin(), text.begin() + static_cast<long>(begin), '\n');
    fail(ErrorKind::input,
         fmt::format("{} is not a {}: no JSON at line {}, column {}, but \"{}\"", shown, kind, line,
                     1 + begin - line_begin,
                     one_line(std::string_view(text).substr(
                         begin, std::min(text.find('\n', begin) - begin, k_shown_of_text)))));
  }
  return parse_json(text, shown);
}

/// Of a folder nothing, if parsed() can say what it is.
std::string text_of(const std::string& path) {
  std::error_code ignored; // reading says why
  return other_texts() && fs::is_directory(path, ignored) ? "" : read_file(path);
}

Json parse_file(const std::string& path, std::string_view kind) {
  return parsed(text_of(path), path, kind);
}

/// Folders of shipped documents, the first one that has a name wins.
std::vector<fs::path> data_folders() {
  std::vector<fs::path> folders;
  if (const char* given = std::getenv("RECKON_DATA_DIR"); given != nullptr && *given != '\0') {
    folders.emplace_back(given);
  }
  std::error_code ignored; // no /proc: this folder is then not searched
  const fs::path executable = fs::read_symlink("/proc/self/exe", ignored);
  if (!executable.empty()) {
    folders.push_back(executable.parent_path().parent_path() / "share/reckon/profiles");
  }
  // The library's: PREFIX/lib/libreckon.so, or in a folder for the kind of processor below that.
  static constexpr char k_here = 0;
  if (Dl_info object{}; ::dladdr(&k_here, &object) != 0 &&
                        fs::path(object.dli_fname).is_absolute()) { // else it is argv[0]
    const fs::path library = fs::weakly_canonical(object.dli_fname, ignored);
    for (const fs::path& prefix :
         {library.parent_path().parent_path(), library.parent_path().parent_path().parent_path()}) {
      folders.push_back(prefix / "share/reckon/profiles");
    }
  }
  folders.emplace_back(RECKON_SOURCE_DIR "/profiles");
  return folders;
}

std::vector<std::string> shipped(const fs::path& below) {
  std::set<std::string> names;
  for (const fs::path& folder : data_folders()) {
    for (const std::string& name : names_in((folder / below).string())) {
      const fs::path file(name);
      if (file.extension() == ".json") {
        names.insert(file.stem().string());
      }
    }
  }
  return {names.begin(), names.end()};
}

bool is_path(const std::string& text) {
  return text == "-" || text.find('/') != std::string::npos || text.ends_with(".json") ||
         text.ends_with(".csv") || is_safetensors(text);
}

/// The file that `path_or_name` means.
std::string locate(const std::string& path_or_name, const fs::path& below, std::string_view kind) {
  if (is_path(path_or_name)) {
    return path_or_name;
  }
  for (const fs::path& folder : data_folders()) {
    const fs::path candidate = folder / below / (path_or_name + ".json");
    std::error_code ignored;
    if (fs::is_regular_file(candidate, ignored)) {
      return candidate.string();
    }
  }
  std::error_code cannot_tell; // reading it says why
  if (fs::exists(path_or_name, cannot_tell) || cannot_tell) {
    return path_or_name;
  }
  const std::vector<std::string> names = shipped(below);
  std::string near = did_you_mean(path_or_name, names);
  near = near.empty() ? near_file(path_or_name) : near;
  fail(ErrorKind::input,
       fmt::format("no file and no shipped {} is called \"{}\"; {}shipped: {}", kind, path_or_name,
                   near.empty() ? "" : fmt::format("did you mean \"{}\"? ", near),
                   names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "))));
}

/// Its name says so, or its header line.
bool is_workload_csv(const std::string& path, std::string_view text) {
  return path.ends_with(".csv") || is_workload_table(text);
}

} // namespace

void explain_other_texts(WhatTextIs what_is) {
  other_texts() = std::move(what_is);
}

std::string kind_of(const Document& document) {
  return std::string(documents::k_kinds[document.index()]);
}

std::string document_kind(const std::string& text) {
  try {
    const Json json = parse_json(text, "");
    return documents::kind_in_header(JsonView(json, ""));
  } catch (const Error&) {
    return "";
  }
}

Document document_from_json(const Json& json, const std::string& file) {
  const std::string kind = documents::kind_in_header(JsonView(json, file));
  if (kind == documents::k_requirements) {
    JsonView(json, file)
        .at("schema")
        .fail("these are requirements, which only `reckon check --require` takes");
  }
  return kind == "profile"    ? Document(profile_from_json(json, file))
         : kind == "workload" ? workload_from_json(json, file)
         : kind == "roles"    ? roles_from_json(json, file)
         : kind == "plan"     ? plan_from_json(json, file)
                              : Document(report_from_json(json, file));
}

Json to_json(const Document& document) {
  return std::visit([](const auto& d) { return to_json(d); }, document);
}

Document read_document(const std::string& path) {
  return document_from_json(parse_file(path, "document of reckon"), shown_name(path));
}

Document read_file_or_shipped(const std::string& path_or_name) {
  const auto among = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), path_or_name) != names.end();
  };
  if (among(shipped_workloads()) || is_safetensors(path_or_name)) {
    return read_workload(path_or_name);
  }
  if (among(shipped_profiles())) {
    return read_profile(path_or_name);
  }
  std::string text = text_of(path_or_name);
  return is_workload_csv(path_or_name, text)
             ? Document(workload_from_csv(text, path_or_name))
             : document_from_json(parsed(std::move(text), path_or_name, "document of reckon"),
                                  shown_name(path_or_name));
}

Profile read_profile(const std::string& path_or_name) {
  std::vector<std::string> doubts;
  return read_profile(path_or_name, doubts);
}

Profile read_profile(const std::string& path_or_name, std::vector<std::string>& doubts) {
  const std::string path = locate(path_or_name, "", "profile");
  const Json json = parse_file(path, "profile");
  Profile profile = profile_from_json(json, shown_name(path));
  doubts = cell_doubts(profile, json, shown_name(path));
  return profile;
}

Workload read_workload(const std::string& path_or_name) {
  std::vector<std::string> doubts;
  return read_workload(path_or_name, doubts);
}

Workload read_workload(const std::string& path_or_name, std::vector<std::string>& doubts) {
  const std::string path = locate(path_or_name, "workloads", "workload");
  if (is_safetensors(path)) {
    return workload_from_safetensors(path, doubts);
  }
  std::string text = read_file(path);
  return is_workload_csv(path, text)
             ? workload_from_csv(text, path)
             : workload_from_json(parsed(std::move(text), path, "workload"), shown_name(path));
}

Roles read_roles(const std::string& path) {
  return roles_from_json(parse_file(path, "roles document"), shown_name(path));
}
Plan read_plan(const std::string& path) {
  return plan_from_json(parse_file(path, "plan"), shown_name(path));
}

std::string shipped_file(const std::string& below) {
  for (const fs::path& folder : data_folders()) {
    std::error_code ignored;
    if (fs::is_regular_file(folder / below, ignored)) {
      return (folder / below).string();
    }
  }
  fail(ErrorKind::input, fmt::format("{} is missing from what reckon ships; install it again, or "
                                     "name the folder that has it in RECKON_DATA_DIR",
                                     below));
}

std::vector<std::string> shipped_workloads() {
  return shipped("workloads");
}
std::vector<std::string> shipped_profiles() {
  return shipped("");
}

template <class T>
std::string canonical_text(const T& document) {
  return canonical(to_json(document));
}
template std::string canonical_text(const Document&);
template std::string canonical_text(const Profile&);
template std::string canonical_text(const Workload&);
template std::string canonical_text(const Roles&);
template std::string canonical_text(const Plan&);
template std::string canonical_text(const Report&);

DocumentLink link_to(const std::string& name, const std::string& canonical_text) {
  return {.name = name, .digest = digest_of(canonical_text)};
}

} // namespace reckon
