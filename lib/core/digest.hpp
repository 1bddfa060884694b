// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace reckon {

/// "sha256:<64 hex digits>" of the bytes given. A document's digest is that of its canonical text,
/// so `sha256sum FILE` on a file that reckon wrote gives the same digits.
[[nodiscard]] std::string digest_of(std::string_view bytes);

/// The digest of bytes in several pieces: digest_of() of their concatenation.
class Digester {
public:
  Digester();
  Digester(Digester&&) noexcept;
  Digester& operator=(Digester&&) noexcept;
  Digester(const Digester&) = delete;
  Digester& operator=(const Digester&) = delete;
  ~Digester();
  void add(std::string_view bytes);
  /// The digest of all added bytes; call it once, at the end.
  [[nodiscard]] std::string finish();

private:
  struct State;
  std::unique_ptr<State> m_state;
};

} // namespace reckon
