// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

namespace reckon {

// Names in /dev/shm, where anybody may make some, of memory that libfabric's shm provider shares.

/// A name that nobody can guess, and that says which process it is of. What begins with it goes
/// with it, or when it is forgotten.
class SharedName {
public:
  SharedName();
  SharedName(const SharedName&) = delete;
  SharedName& operator=(const SharedName&) = delete;
  ~SharedName() { forget(); }
  [[nodiscard]] const std::string& text() const noexcept { return m_text; }
  void forget() const noexcept;

private:
  std::string m_text;
};

/// Removes the names of this user's processes that were killed before they could: of this
/// namespace of process numbers, as the others' cannot be known to be dead.
void remove_names_of_the_dead() noexcept;

/// Why no memory can be shared by name; nothing when it can.
[[nodiscard]] std::optional<std::string> why_no_shared_memory();

} // namespace reckon
