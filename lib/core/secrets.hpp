// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace reckon {

/// The environment variable with a job's token. Programs that this one starts do not get it.
inline constexpr const char* k_token_variable = "RECKON_JOB_TOKEN";

/// 64 bits of the system's cryptographic source, which nobody can guess. Throws Error{operation}.
[[nodiscard]] std::uint64_t secret_number();

/// 128 such bits as 32 hex digits.
[[nodiscard]] std::string secret_text();

/// That its maker knew `key`, of this text: HMAC-SHA-256 as 64 hex digits. It tells nothing about
/// the key.
[[nodiscard]] std::string proof_of(std::string_view key, std::string_view text);

/// Whether they are equal, in a time that depends on the length alone.
[[nodiscard]] bool same_secret(std::string_view a, std::string_view b) noexcept;

} // namespace reckon
