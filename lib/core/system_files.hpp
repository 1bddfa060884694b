// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace reckon {

/// The content of a small file below /sys or /proc without trailing white space; nullopt when it
/// cannot be read. A function, so that a test can play any machine.
using SystemFile = std::function<std::optional<std::string>(const std::string& path)>;

/// The files below /sys and /proc of this machine, or of one whose files lie in a folder. Remembers
/// what it was asked for, so that it can be kept. Thread-compatible.
class SystemFiles {
public:
  /// `root`: the folder; empty: this machine.
  explicit SystemFiles(std::string root = "") : m_root(std::move(root)) {}

  /// A file as it is; nullopt: it is empty, missing or cannot be read.
  [[nodiscard]] std::optional<std::string> bytes(const std::string& path) const;
  /// Without trailing white space.
  [[nodiscard]] std::optional<std::string> text(const std::string& path) const;
  /// What is in a folder, sorted; empty: nothing, or there is none.
  [[nodiscard]] std::vector<std::string> names(const std::string& folder) const;
  /// text(), as long as this lives.
  [[nodiscard]] SystemFile reader() const {
    return [this](const std::string& path) { return text(path); };
  }
  /// What does not come from a file of this machine, under a path of its own: "/nvml.csv".
  void put(const std::string& path, std::string content) { m_put[path] = std::move(content); }

  /// Writes all that was asked for or put below `folder`. What was only listed becomes an empty
  /// file. Throws as require_new_folder() does, and Error{operation} naming the folder.
  void keep(const std::string& folder) const;

private:
  std::string m_root;
  std::map<std::string, std::string> m_put;
  mutable std::map<std::string, std::string> m_read;
  mutable std::map<std::string, std::vector<std::string>> m_listed;
};

/// Throws Error{usage} unless the folder is new or empty.
void require_new_folder(const std::string& folder);

} // namespace reckon
