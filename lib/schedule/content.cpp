// SPDX-License-Identifier: Apache-2.0
#include "schedule/content.hpp"

#include <algorithm>
#include <iterator>

namespace reckon {
namespace {

using Run = Content::Run;

/// Puts `run` behind the others, into the last of them where it goes on.
void append(std::vector<Run>& runs, const Run& run) {
  if (run.times == 0) {
    return;
  }
  if (!runs.empty() && runs.back().times == run.times && runs.back().last + 1 == run.first) {
    runs.back().last = run.last;
  } else {
    runs.push_back(run);
  }
}

/// f(first, last, times in a, times in b) over all numbers that either has, ascending.
template <class F>
void walk(std::span<const Run> a, std::span<const Run> b, F f) {
  std::size_t i = 0, k = 0;
  std::uint64_t at = 0; // what is below has been told
  while (i < a.size() || k < b.size()) {
    const std::uint64_t of_a = i < a.size() ? std::max<std::uint64_t>(a[i].first, at) : UINT64_MAX;
    const std::uint64_t of_b = k < b.size() ? std::max<std::uint64_t>(b[k].first, at) : UINT64_MAX;
    at = std::min(of_a, of_b);
    std::uint64_t end = std::max(of_a, of_b); // up to here only one of them has something
    const bool in_a = of_a == at, in_b = of_b == at;
    end = in_a && in_b ? UINT64_MAX : end;
    end = in_a ? std::min<std::uint64_t>(end, std::uint64_t{a[i].last} + 1) : end;
    end = in_b ? std::min<std::uint64_t>(end, std::uint64_t{b[k].last} + 1) : end;
    f(static_cast<std::uint32_t>(at), static_cast<std::uint32_t>(end - 1), in_a ? a[i].times : 0,
      in_b ? b[k].times : 0);
    at = end;
    i += i < a.size() && a[i].last < at ? 1U : 0U;
    k += k < b.size() && b[k].last < at ? 1U : 0U;
  }
}

} // namespace

Content::Content(std::vector<Run> runs)
    : m_runs(runs.empty() ? nullptr : std::make_shared<const std::vector<Run>>(std::move(runs))) {}

Content::Content(std::initializer_list<std::pair<std::uint32_t, std::uint32_t>> held) {
  std::vector<Run> runs;
  for (const auto& [what, times] : held) {
    runs.push_back({what, what, times});
  }
  std::ranges::sort(runs, {}, &Run::first);
  std::vector<Run> joined;
  for (const Run& run : runs) {
    append(joined, run);
  }
  *this = Content(std::move(joined));
}

void Content::add(const Content& other) {
  if (!m_runs || !other.m_runs) {
    m_runs = m_runs ? m_runs : other.m_runs;
    return;
  }
  std::vector<Run> sum;
  walk(runs(), other.runs(),
       [&](std::uint32_t first, std::uint32_t last, std::uint32_t a, std::uint32_t b) {
         append(sum, {first, last, a + b});
       });
  *this = Content(std::move(sum));
}

bool Content::subtract(const Content& other) {
  bool there = true;
  std::vector<Run> left;
  walk(runs(), other.runs(),
       [&](std::uint32_t first, std::uint32_t last, std::uint32_t a, std::uint32_t b) {
         there = there && a >= b;
         append(left, {first, last, a - b});
       });
  if (there) {
    *this = Content(std::move(left));
  }
  return there;
}

Content Content::moved(std::uint32_t from, std::uint32_t to, std::uint32_t there) const {
  std::vector<Run> stay, move;
  const Run range{from, to, 1};
  walk(runs(), std::span(&range, 1),
       [&](std::uint32_t first, std::uint32_t last, std::uint32_t times, std::uint32_t inside) {
         const std::uint32_t by = inside > 0 ? there - from : 0;
         append(inside > 0 ? move : stay, {first + by, last + by, times});
       });
  Content out(std::move(stay));
  out.add(Content(std::move(move)));
  return out;
}

std::uint32_t Content::times(std::uint32_t what) const {
  const std::span<const Run> all = runs();
  const auto after = std::ranges::upper_bound(all, what, {}, &Run::first);
  return after != all.begin() && std::prev(after)->last >= what ? std::prev(after)->times : 0;
}

std::optional<std::uint32_t> Content::only() const {
  const std::span<const Run> all = runs();
  return all.size() == 1 && all[0].first == all[0].last && all[0].times == 1
             ? std::optional(all[0].first)
             : std::nullopt;
}

bool Content::operator==(const Content& other) const {
  return m_runs == other.m_runs || std::ranges::equal(runs(), other.runs());
}

} // namespace reckon
