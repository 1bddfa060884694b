// SPDX-License-Identifier: Apache-2.0
#include "core/secrets.hpp"

#include "core/error.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <cerrno>
#include <span>
#include <sys/random.h>

namespace reckon {

std::uint64_t secret_number() {
  std::uint64_t number = 0; // so few bytes come whole or, before the source is ready, not at all
  if (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) {
    fail_errno("getrandom", errno);
  }
  return number;
}

std::string secret_text() {
  return fmt::format("{:016x}{:016x}", secret_number(), secret_number());
}

std::string proof_of(std::string_view key, std::string_view text) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> bytes{};
  unsigned int length = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(), bytes.data(),
           &length) == nullptr) {
    fail(ErrorKind::internal, "HMAC(sha256) failed");
  }
  return fmt::format("{:02x}", fmt::join(std::span(bytes).first(length), ""));
}

bool same_secret(std::string_view a, std::string_view b) noexcept {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

} // namespace reckon
