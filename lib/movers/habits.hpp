// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace reckon {

/// What makes one-sided writes fast (BytePS, section 6.2). A mover has all of it; each can be
/// switched off, to measure what it is worth. What a mover does without one is what a simple
/// program would do, over libfabric | on transport host:
///
/// - register_once: registers the source before each write and deregisters it after it, without
///   address_once the destination too | maps the destination before each write
/// - address_once: asks the receiver for address and key before each write | opens and maps the
///   peer's memory before each write
/// - aligned: buffers begin k_skew bytes into a page
/// - one_segment: gathers the first 64 bytes from a header elsewhere, and the rest | copies the
///   first 64 bytes by way of a header
///
/// With addresses exchanged once the destination has to stay registered: its key was given away.
/// The switches need a lane of their own, chosen when it is opened; the ordinary one knows nothing
/// of them.
struct Habits {
  bool register_once = true;
  bool address_once = true;
  bool aligned = true;
  bool one_segment = true;
  /// Ranks of one machine write into each other's memory instead of using the network. For the
  /// choice of the transport: movers do not look at it.
  bool shared_memory = true;

  bool operator==(const Habits&) const = default;
  /// Whether all habits of lanes are on.
  [[nodiscard]] bool lane_is_plain() const noexcept {
    return register_once && address_once && one_segment;
  }
};

/// "register-once,shm" -> Habits without these two. Throws Error{usage} for a name other than
/// register-once, address-once, aligned, one-segment, shm, or that comes twice.
[[nodiscard]] Habits habits_without(const std::string& names);
/// The disabled habits, in the order above, "register-once,shm"; empty: all on.
[[nodiscard]] std::string without_text(const Habits& habits);

/// Where a buffer begins in its first page without alignment: off every cache line, but right for
/// every number type.
inline constexpr std::size_t k_skew = 8;
[[nodiscard]] constexpr std::size_t skew(const Habits& habits) noexcept {
  return habits.aligned ? 0 : k_skew;
}

/// The first of `available` without shared memory. Throws Error{usage} when `transport` has no
/// shared memory either, so that there is nothing to switch off; Error{unavailable} when there is
/// no other.
[[nodiscard]] std::string without_shared_memory(const std::string& transport,
                                                const std::vector<std::string>& available);

/// For connect(): throws Error{operation} when rank `rank` uses another mover, or was started with
/// other habits.
void require_same_mover(std::string_view ours, std::string_view theirs, std::size_t rank);
void require_same_habits(const Habits& habits, const std::string& theirs, std::size_t rank);

} // namespace reckon
