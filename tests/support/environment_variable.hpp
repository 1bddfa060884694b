// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <optional>
#include <string>

namespace reckon::test {

/// An environment variable that has another value, or none, until the end of this object.
class EnvironmentVariable {
public:
  EnvironmentVariable(const char* name, const std::optional<std::string>& value) : m_name(name) {
    if (const char* const before = std::getenv(name)) {
      m_before = before;
    }
    set(value);
  }
  EnvironmentVariable(const EnvironmentVariable&) = delete;
  EnvironmentVariable& operator=(const EnvironmentVariable&) = delete;
  ~EnvironmentVariable() { set(m_before); }
  void set(const std::optional<std::string>& value) {
    if (value) {
      ::setenv(m_name, value->c_str(), 1);
    } else {
      ::unsetenv(m_name);
    }
  }

private:
  const char* m_name;
  std::optional<std::string> m_before;
};

} // namespace reckon::test
