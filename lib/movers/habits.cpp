// SPDX-License-Identifier: Apache-2.0
#include "movers/habits.hpp"

#include "core/error.hpp"
#include "core/split.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace reckon {
namespace {

struct Named {
  std::string_view name;
  bool Habits::*member;
};

constexpr std::array<Named, 5> k_named{{{"register-once", &Habits::register_once},
                                        {"address-once", &Habits::address_once},
                                        {"aligned", &Habits::aligned},
                                        {"one-segment", &Habits::one_segment},
                                        {"shm", &Habits::shared_memory}}};

bool is_shared_memory(const std::string& transport) {
  return transport == "host" || transport == "shm";
}

} // namespace

Habits habits_without(const std::string& names) {
  Habits habits;
  for (const std::string& name : split(names, ",")) {
    const auto* const it = std::find_if(k_named.begin(), k_named.end(),
                                        [&](const Named& named) { return named.name == name; });
    if (it == k_named.end()) {
      std::vector<std::string_view> known;
      for (const Named& named : k_named) {
        known.push_back(named.name);
      }
      fail(ErrorKind::usage,
           fmt::format("--without {}: '{}' is not one of {}", names, name, fmt::join(known, ", ")));
    }
    if (!(habits.*(it->member))) {
      fail(ErrorKind::usage, fmt::format("--without {}: {} comes twice", names, name));
    }
    habits.*(it->member) = false;
  }
  return habits;
}

std::string without_text(const Habits& habits) {
  std::string text;
  for (const Named& named : k_named) {
    if (!(habits.*(named.member))) {
      text += (text.empty() ? "" : ",") + std::string(named.name);
    }
  }
  return text;
}

std::string without_shared_memory(const std::string& transport,
                                  const std::vector<std::string>& available) {
  if (!is_shared_memory(transport)) {
    fail(ErrorKind::usage, fmt::format("--without shm: transport {} is no shared memory; there is "
                                       "nothing to switch off",
                                       transport));
  }
  const auto it = std::find_if_not(available.begin(), available.end(), is_shared_memory);
  if (it == available.end()) {
    fail(ErrorKind::unavailable,
         "--without shm: no other transport is available here; `reckon run --list` says why");
  }
  return *it;
}

void require_same_mover(std::string_view ours, std::string_view theirs, std::size_t rank) {
  if (ours != theirs) {
    fail(
        ErrorKind::operation,
        fmt::format("connect: rank {} uses {} and this one {}; start all with the same --transport",
                    rank, one_line(theirs), ours));
  }
}

void require_same_habits(const Habits& habits, const std::string& theirs, std::size_t rank) {
  const std::string ours = without_text(habits);
  if (ours != theirs) {
    const auto words = [](const std::string& text) {
      return text.empty() ? std::string("all of it") : "--without " + text;
    };
    fail(ErrorKind::operation,
         fmt::format("connect: rank {} was started with {} and this one with {}", rank,
                     words(theirs), words(ours)));
  }
}

} // namespace reckon
