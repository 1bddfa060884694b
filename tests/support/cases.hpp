// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <initializer_list>
#include <vector>

namespace reckon::support {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool k_sanitized = true;
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
inline constexpr bool k_sanitized = true;
#else
inline constexpr bool k_sanitized = false;
#endif
#else
inline constexpr bool k_sanitized = false;
#endif

/// How many of `all` random cases a test tries: all, but a fifth in a sanitized build, where each
/// takes five to ten times as long. Whether the numbers are right the other build decides; what a
/// sanitizer finds is in the first cases or in none.
constexpr int cases(int all) {
  return k_sanitized ? std::max(1, all / 5) : all;
}

/// `all`, but only the first in a sanitized build.
template <class T>
std::vector<T> values(std::initializer_list<T> all) {
  return {all.begin(), k_sanitized ? all.begin() + 1 : all.end()};
}

} // namespace reckon::support
