// SPDX-License-Identifier: Apache-2.0
#include "core/digest.hpp"

#include "core/error.hpp"

#include <openssl/evp.h>

#include <fmt/format.h>

#include <array>

namespace reckon {

std::string digest_of(std::string_view bytes) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> hash{};
  unsigned int length = 0;
  if (EVP_Digest(bytes.data(), bytes.size(), hash.data(), &length, EVP_sha256(), nullptr) != 1) {
    fail(ErrorKind::internal, "EVP_Digest(sha256) failed");
  }
  std::string text = "sha256:";
  for (unsigned int i = 0; i < length; ++i) {
    text += fmt::format("{:02x}", hash[i]);
  }
  return text;
}

} // namespace reckon
