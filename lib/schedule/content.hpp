// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace reckon {

/// What a run of bytes holds the sum of, by number (a worker's gradient, say), and how often each.
/// Neighbours that are held equally often take one entry, and copies share theirs: a proof has
/// such a sum for every part at every rank.
class Content {
public:
  /// Of the numbers `first` to `last`, each `times` times.
  struct Run {
    std::uint32_t first = 0, last = 0, times = 0;
    bool operator==(const Run&) const = default;
  };

  Content() = default;
  /// Numbers with their times.
  Content(std::initializer_list<std::pair<std::uint32_t, std::uint32_t>> held);

  void add(const Content& other);
  void add(std::uint32_t what, std::uint32_t times = 1) { add(Content{{what, times}}); }
  /// False, and nothing is changed, where `other` has something more often.
  [[nodiscard]] bool subtract(const Content& other);
  /// Numbers `from` to `to` become those as far from `there`.
  [[nodiscard]] Content moved(std::uint32_t from, std::uint32_t to, std::uint32_t there) const;

  [[nodiscard]] std::uint32_t times(std::uint32_t what) const;
  [[nodiscard]] bool holds(std::uint32_t what) const { return times(what) > 0; }
  /// The number that is all it holds, once.
  [[nodiscard]] std::optional<std::uint32_t> only() const;
  /// Ascending; times are above 0.
  [[nodiscard]] std::span<const Run> runs() const {
    return m_runs ? std::span<const Run>(*m_runs) : std::span<const Run>();
  }
  bool operator==(const Content& other) const;

private:
  explicit Content(std::vector<Run> runs);
  std::shared_ptr<const std::vector<Run>> m_runs; ///< null: nothing
};

} // namespace reckon
