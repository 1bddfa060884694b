// SPDX-License-Identifier: Apache-2.0
//
// Calls of the C library in any order, in a job of one rank: each returns a status of those that it
// may, and a step that is over has the sums, which of one worker are its own gradients.
#include "target.hpp"

#include "unit/strategies/fixtures.hpp"

#include <reckon/reckon.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

namespace reckon::fuzz {
namespace {

/// Numbers out of the input; 0 behind its end.
class Choices {
public:
  explicit Choices(std::string_view bytes) : m_bytes(bytes) {}
  [[nodiscard]] bool left() const { return !m_bytes.empty(); }
  std::size_t below(std::size_t limit) {
    if (m_bytes.empty()) {
      return 0;
    }
    const auto byte = static_cast<unsigned char>(m_bytes.front());
    m_bytes.remove_prefix(1);
    return byte % limit;
  }
  template <class T, std::size_t n>
  T one_of(const std::array<T, n>& of) {
    return of[below(n)];
  }

private:
  std::string_view m_bytes;
};

constexpr double k_nan = std::numeric_limits<double>::quiet_NaN();

const std::string& plan_file() {
  static const std::string path = [] {
    PlanOptions options;
    options.strategy = "byteps_split";
    options.part_bytes = 256;
    Workload gradient =
        test::workload({{"a", 100, DType::fp32}, {"b", 65, DType::bf16}, {"c", 3, DType::fp16}});
    Plan plan = test::plan_for(test::one_machine(), gradient, 1, 0, options, 2);
    plan.workload = link_to(gradient.name, canonical_text(gradient));
    static_cast<void>(file_with(gradient.name + ".json", canonical_text(gradient)));
    return file_with("plan.json", canonical_text(plan));
  }();
  return path;
}

/// A worker, and what it knows of its step.
class Program {
public:
  explicit Program(std::string_view bytes) : m_choices(bytes) {}
  ~Program() { reckon_abandon(m_session, nullptr); }
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  /// Whether a step was made.
  bool run() {
    for (int calls = 0; m_choices.left() && calls < 64; ++calls) {
      if (m_session == nullptr) {
        join();
      } else {
        call();
      }
    }
    return m_steps > 0;
  }

private:
  /// The status, which must be one of a caller's or a transport's faults, in one line of text.
  reckon_status checked(reckon_status status) {
    if (status > RECKON_PENDING) {
      check_message(Error(ErrorKind::input, reckon_error()));
      if (status == RECKON_INTERNAL || std::strlen(reckon_error()) == 0) {
        broken(fmt::format("status {}: {}", static_cast<int>(status), reckon_error()));
      }
    }
    return status;
  }
  void expect(reckon_status status, bool ok, const char* call) {
    if ((checked(status) == RECKON_OK) != ok) {
      broken(fmt::format("{} returned {}: {}", call, static_cast<int>(status), reckon_error()));
    }
  }

  void join() {
    m_open = false;
    reckon_options options{};
    options.struct_bytes = sizeof options - (m_choices.below(16) == 15 ? 1 : 0);
    const std::array<const char*, 8> plans{plan_file().c_str(),
                                           plan_file().c_str(),
                                           plan_file().c_str(),
                                           plan_file().c_str(),
                                           plan_file().c_str(),
                                           "/no such file",
                                           "",
                                           nullptr};
    options.plan = m_choices.one_of(plans);
    options.transport =
        m_choices.one_of(std::array<const char*, 4>{nullptr, "host", "host", "pigeon\n"});
    options.average = static_cast<int>(m_choices.below(2));
    options.by_parts = static_cast<int>(m_choices.below(2));
    options.join_seconds = m_choices.one_of(std::array{0.0, 0.0, 30.0, 1e300, -1.0, k_nan});
    options.peer_seconds = m_choices.one_of(std::array{0.0, 0.0, 30.0, 1e300, 1.0, k_nan});
    if (m_choices.below(4) == 3) {
      options.gradient = m_memory.data() + m_choices.below(2);
      options.gradient_bytes =
          m_choices.one_of(std::array<std::uint64_t, 3>{m_memory.size() - 64, 64, 0});
    }
    if (checked(reckon_join(&options, &m_session)) != RECKON_OK) {
      return;
    }
    m_is.struct_bytes = sizeof m_is;
    expect(reckon_describe(m_session, &m_is), true, "reckon_describe");
    m_ready.assign(m_is.tensors, false);
    m_sums.assign(m_is.gradient_bytes, std::byte{0});
  }

  [[nodiscard]] bool all_ready() const {
    return std::ranges::all_of(m_ready, [](bool ready) { return ready; });
  }
  [[nodiscard]] reckon_tensor_place place_of(std::size_t tensor) {
    reckon_tensor_place place{};
    place.struct_bytes = sizeof place;
    expect(reckon_tensor(m_session, tensor, &place), true, "reckon_tensor");
    return place;
  }
  [[nodiscard]] std::span<std::byte> at(const reckon_tensor_place& place) const {
    const std::size_t bytes = place.elements * (place.dtype == RECKON_FP32 ? 4 : 2);
    return {static_cast<std::byte*>(m_is.gradient) + place.offset_bytes, bytes};
  }

  void ready() {
    const std::size_t first = m_choices.below(m_is.tensors + 2), count = m_choices.below(4);
    bool may = m_open && first <= m_is.tensors && count <= m_is.tensors - first;
    for (std::size_t t = first; may && t < first + count; ++t) {
      may = !m_ready[t];
    }
    for (std::size_t t = first; may && t < first + count; ++t) {
      const auto place = place_of(t);
      const std::byte value{static_cast<unsigned char>(1 + m_choices.below(60))};
      std::ranges::fill(at(place), value); // a number in every type
      std::fill_n(m_sums.begin() + static_cast<std::ptrdiff_t>(place.offset_bytes),
                  at(place).size(), value);
    }
    expect(reckon_ready(m_session, first, count), may, "reckon_ready");
    for (std::size_t t = first; may && t < first + count; ++t) {
      m_ready[t] = true;
    }
  }

  void check_sums(std::size_t first, std::size_t count) {
    for (std::size_t t = first; t < first + count; ++t) {
      const auto place = place_of(t);
      if (std::memcmp(at(place).data(), m_sums.data() + place.offset_bytes, at(place).size()) !=
          0) {
        broken(fmt::format("tensor {} has another sum", t));
      }
    }
  }

  void wait(double seconds) {
    const bool may = m_open;
    const reckon_status status = checked(reckon_wait(m_session, may && all_ready() ? -1 : seconds));
    if ((status == RECKON_OK) != (!may || all_ready())) {
      broken("a step is over that lacks gradients, or is not where none is under way");
    }
    if (may && all_ready()) {
      expect(status, true, "reckon_wait");
      m_open = false;
      ++m_steps;
      check_sums(0, m_is.tensors);
    }
  }

  void wait_for() {
    const std::size_t first = m_choices.below(m_is.tensors + 2), count = m_choices.below(4);
    const reckon_status status = checked(reckon_wait_for(m_session, first, count, 0.001));
    if (status == RECKON_OK) {
      for (std::size_t t = first; m_open && t < first + count; ++t) {
        if (!m_ready[t]) {
          broken("a sum of a gradient that nobody gave");
        }
      }
      check_sums(first, count);
    }
  }

  void leave() {
    const bool may = !m_open;
    reckon_session* const before = m_session;
    reckon_status status = checked(reckon_leave_within(&m_session, may ? -1 : 0.01));
    if ((status == RECKON_OK) != may || (m_session != nullptr && m_session != before)) {
      broken("a job was left in the middle of a step, or not at its end");
    }
  }

  void call_wrongly() {
    const char* json = nullptr;
    reckon_description description{};
    reckon_tensor_place place{};
    place.struct_bytes = sizeof place;
    expect(reckon_describe(m_session, nullptr), false, "reckon_describe(NULL)");
    expect(reckon_describe(m_session, &description), false, "reckon_describe of no size");
    expect(reckon_describe(nullptr, &m_is), false, "reckon_describe of NULL");
    expect(reckon_tensor(m_session, m_is.tensors, &place), false, "reckon_tensor behind the last");
    expect(reckon_tensor(m_session, SIZE_MAX, &place), false, "reckon_tensor behind the last");
    expect(reckon_ready(m_session, SIZE_MAX, 2), false, "reckon_ready behind the last");
    expect(reckon_ready(m_session, 1, SIZE_MAX), false, "reckon_ready of too many");
    expect(reckon_wait_for(m_session, 2, SIZE_MAX, 0), false, "reckon_wait_for of too many");
    expect(reckon_serve(m_session, 0), false, "reckon_serve at a worker");
    expect(reckon_report(m_session, nullptr), false, "reckon_report(NULL)");
    expect(reckon_report(nullptr, &json), false, "reckon_report of NULL");
    expect(reckon_use_gpu(m_session, static_cast<int>(m_choices.below(3)) - 1), false,
           "reckon_use_gpu");
    expect(reckon_ready_on_stream(m_session, 0, m_memory.data(), nullptr), false,
           "reckon_ready_on_stream");
    expect(reckon_follow_on_stream(m_session, nullptr), false, "reckon_follow_on_stream");
    expect(reckon_wait_on_stream(m_session, nullptr), false, "reckon_wait_on_stream");
  }

  void call() {
    switch (m_choices.below(10)) {
    case 0:
      expect(reckon_begin(m_session), !m_open, "reckon_begin");
      if (!m_open) {
        m_open = true;
        m_ready.assign(m_is.tensors, false);
      }
      break;
    case 1:
    case 2:
    case 3:
      ready();
      break;
    case 4:
      wait(m_choices.one_of(std::array{0.0, 0.001}));
      break;
    case 5:
      wait_for();
      break;
    case 6: {
      const char* json = nullptr;
      expect(reckon_report(m_session, &json), true, "reckon_report");
      break;
    }
    case 7:
      call_wrongly();
      break;
    case 8:
      leave();
      break;
    default:
      reckon_abandon(m_session, "enough\n");
      m_session = nullptr;
    }
  }

  Choices m_choices;
  reckon_session* m_session = nullptr;
  reckon_description m_is{};
  int m_steps = 0;           ///< that were over
  bool m_open = false;       ///< a step has begun, and reckon_wait() has not said that it is over
  std::vector<bool> m_ready; ///< by tensor, in the step
  std::vector<std::byte> m_sums; ///< as they must be
  alignas(64) std::array<std::byte, 4096> m_memory{};
};

bool call_library(std::string_view bytes) {
  return Program(bytes).run();
}

} // namespace

std::vector<Target> library_targets() {
  return {{"library", call_library, [] {
             // Joins; begins a step, gives all gradients, waits; then leaves.
             return std::vector<std::string>{std::string("\0\0\0\0\0\0\0\0", 8) +
                                                 std::string("\0\1\0\3\1\2\3\4\0\5\0\3\6\7\10", 15),
                                             std::string("\0\0\1\1\1\2\2\3\0\0", 10) +
                                                 std::string("\0\1\0\1\1\2\1\2\1\1\4\1\0", 13)};
           }}};
}

} // namespace reckon::fuzz
