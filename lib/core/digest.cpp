// SPDX-License-Identifier: Apache-2.0
#include "core/digest.hpp"

#include "core/error.hpp"

#include <openssl/evp.h>

#include <fmt/format.h>

#include <array>

namespace reckon {

std::string digest_of(std::string_view bytes) {
  Digester digester;
  digester.add(bytes);
  return digester.finish();
}

struct Digester::State {
  struct Free {
    void operator()(EVP_MD_CTX* made) const noexcept { EVP_MD_CTX_free(made); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> context{EVP_MD_CTX_new()};
};

Digester::Digester() : m_state(std::make_unique<State>()) {
  if (!m_state->context || EVP_DigestInit_ex(m_state->context.get(), EVP_sha256(), nullptr) != 1) {
    fail(ErrorKind::internal, "EVP_DigestInit_ex(sha256) failed");
  }
}
Digester::Digester(Digester&&) noexcept = default;
Digester& Digester::operator=(Digester&&) noexcept = default;
Digester::~Digester() = default;

void Digester::add(std::string_view bytes) {
  if (EVP_DigestUpdate(m_state->context.get(), bytes.data(), bytes.size()) != 1) {
    fail(ErrorKind::internal, "EVP_DigestUpdate(sha256) failed");
  }
}

std::string Digester::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  unsigned int length = 0;
  if (EVP_DigestFinal_ex(m_state->context.get(), hash.data(), &length) != 1) {
    fail(ErrorKind::internal, "EVP_DigestFinal_ex(sha256) failed");
  }
  std::string text = "sha256:";
  for (unsigned int i = 0; i < length; ++i) {
    text += fmt::format("{:02x}", hash[i]);
  }
  return text;
}

} // namespace reckon
