// SPDX-License-Identifier: Apache-2.0
#include "core/system_files.hpp"

#include "core/error.hpp"
#include "core/file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

namespace reckon {

namespace fs = std::filesystem;

std::optional<std::string> SystemFiles::bytes(const std::string& path) const {
  if (const auto put = m_put.find(path); put != m_put.end()) {
    return put->second;
  }
  std::optional<std::string> content = read_if_readable(m_root + path);
  if (!content || content->empty()) {
    return std::nullopt;
  }
  m_read[path] = *content;
  return content;
}

std::optional<std::string> SystemFiles::text(const std::string& path) const {
  std::optional<std::string> text = bytes(path);
  if (text) {
    text->erase(text->find_last_not_of(" \t\n") + 1);
  }
  return text;
}

std::vector<std::string> SystemFiles::names(const std::string& folder) const {
  std::vector<std::string> names = names_in(m_root + folder);
  const std::string inside = folder + "/";
  for (auto it = m_put.lower_bound(inside); it != m_put.end() && it->first.starts_with(inside);
       ++it) {
    const std::size_t end = it->first.find('/', inside.size());
    names.push_back(it->first.substr(inside.size(), end - inside.size()));
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return m_listed[folder] = names;
}

void require_new_folder(const std::string& folder) {
  std::error_code error;
  if (fs::exists(folder, error) && !fs::is_empty(folder, error)) {
    fail(ErrorKind::usage, fmt::format("{}: is there and not empty; name a new folder", folder));
  }
}

void SystemFiles::keep(const std::string& folder) const {
  require_new_folder(folder);
  std::error_code error;
  const auto write = [&](const std::string& path, const std::string& content) {
    const fs::path file = folder + path;
    fs::create_directories(file.parent_path(), error);
    if (error) {
      fail(ErrorKind::operation,
           fmt::format("cannot make {}: {}", file.parent_path().string(), error.message()));
    }
    write_file(file.string(), content);
  };
  for (const auto* const files : {&std::as_const(m_read), &m_put}) {
    for (const auto& [path, content] : *files) {
      write(path, content);
    }
  }
  for (auto it = m_listed.rbegin(); it != m_listed.rend(); ++it) { // inner folders first
    for (const std::string& name : it->second) {
      if (const std::string entry = it->first + "/" + name; !fs::exists(folder + entry, error)) {
        write(entry, "");
      }
    }
  }
}

} // namespace reckon
