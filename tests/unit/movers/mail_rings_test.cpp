// SPDX-License-Identifier: Apache-2.0
// The mailbox's own code, with rings of one or two entries, in every order in which two or three
// lanes can read and write what they share, sleep and wake each other. A store that is not seq_cst
// may stay in a processor's buffer for any time, as on x86.
#include "movers/mail_rings.hpp"

#include "support/every_path.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <ucontext.h>
#include <vector>

#ifndef __has_feature // g++
#define __has_feature(what) 0
#endif

namespace reckon {
namespace {

class Orders;
Orders* orders = nullptr; ///< that of the search under way

/// A word whose every use is a step of the search.
class ExploredWord {
public:
  std::uint32_t load(std::memory_order order) const noexcept;
  void store(std::uint32_t value, std::memory_order order) noexcept;
  std::uint32_t exchange(std::uint32_t value, std::memory_order order) noexcept;
  ExploredWord& operator=(std::uint32_t value) {
    m_value = value;
    return *this;
  }
  operator std::uint32_t() const { return m_value; }

private:
  friend class Orders;
  std::uint32_t m_value = 0;
};

template <std::uint32_t Entries>
struct Explored {
  using Word = ExploredWord;
  using Bell = int; ///< the lane
  static constexpr std::uint32_t k_entries = Entries;
  static constexpr std::size_t k_ranks = 3;
  static void wake(const Word& word) noexcept;
  static void ring(const Bell& bell) noexcept;
};

/// Lanes as threads of our own, which stop before each use of a shared word.
class Orders {
public:
  static constexpr std::size_t k_stack = 64 * 1024;
  struct Thread {
    ucontext_t context{};
    std::vector<char> stack = std::vector<char>(k_stack);
    std::function<void()> body;
    std::deque<std::pair<ExploredWord*, std::uint32_t>> buffer{}; ///< stores that nobody sees yet
    const ExploredWord* sleeps_on = nullptr;
    bool sleeps_by_bell = false, rung = false, done = false;
    std::size_t local = 0; ///< digest of all that it has read
  };

  explicit Orders(std::vector<std::function<void()>> bodies) {
    orders = this;
    for (auto& body : bodies) {
      threads.emplace_back().body = std::move(body);
    }
    for (std::size_t t = 0; t < threads.size(); ++t) {
      Thread& thread = threads[t];
      ::getcontext(&thread.context);
      thread.context.uc_stack = {thread.stack.data(), 0, thread.stack.size()};
      thread.context.uc_link = &m_scheduler;
      ::makecontext(&thread.context, reinterpret_cast<void (*)()>(&Orders::enter), 0);
      go_on(t);
    }
  }
  Orders(const Orders&) = delete;
  Orders& operator=(const Orders&) = delete;
  ~Orders() { orders = nullptr; }

  /// Steps that are possible: thread t, and from threads.size() on the oldest store of thread t's
  /// buffer.
  [[nodiscard]] std::vector<std::size_t> choices() const {
    std::vector<std::size_t> all;
    for (std::size_t t = 0; t < threads.size(); ++t) {
      const Thread& thread = threads[t];
      if (!thread.done && thread.sleeps_on == nullptr && (!thread.sleeps_by_bell || thread.rung)) {
        all.push_back(t);
      }
      if (!thread.buffer.empty()) {
        all.push_back(threads.size() + t);
      }
    }
    return all;
  }
  void take(std::size_t choice) {
    if (choice < threads.size()) {
      go_on(choice);
    } else {
      flush_one(threads[choice - threads.size()]);
    }
  }
  [[nodiscard]] bool all_done() const { return std::ranges::all_of(threads, &Thread::done); }

  // For the threads.

  void stop() noexcept {
    if (m_current != nullptr) {
      ::swapcontext(&m_current->context, &m_scheduler);
    }
  }
  std::uint32_t load(const ExploredWord& word) noexcept {
    stop();
    std::uint32_t value = word.m_value;
    if (m_current != nullptr) {
      for (const auto& [stored, is] : m_current->buffer) { // the latest of ours
        value = stored == &word ? is : value;
      }
      m_current->local = m_current->local * 1'000'003 + value + 1;
    }
    return value;
  }
  void store(ExploredWord& word, std::uint32_t value, std::memory_order order) noexcept {
    stop();
    ++m_current->local;
    m_current->buffer.emplace_back(&word, value);
    if (order == std::memory_order_seq_cst) {
      flush(*m_current);
    }
  }
  std::uint32_t exchange(ExploredWord& word, std::uint32_t value) noexcept {
    stop();
    flush(*m_current);
    m_current->local = m_current->local * 1'000'003 + word.m_value + 7;
    return std::exchange(word.m_value, value);
  }
  void sleep_on(ExploredWord& word, std::uint32_t expected) noexcept {
    stop();
    flush(*m_current); // a call of the system
    if (word.m_value == expected) {
      m_current->sleeps_on = &word;
      stop();
    }
  }
  void sleep_by_bell() noexcept {
    m_current->sleeps_by_bell = true;
    stop();
    m_current->sleeps_by_bell = m_current->rung = false;
  }
  void wake(const ExploredWord& word) noexcept {
    for (Thread& thread : threads) {
      thread.sleeps_on = thread.sleeps_on == &word ? nullptr : thread.sleeps_on;
    }
  }
  void ring(int lane) noexcept { threads[static_cast<std::size_t>(lane)].rung = true; }

  std::deque<Thread> threads;

private:
  static void enter() {
    orders->m_current->body();
    orders->m_current->done = true;
  }
  void go_on(std::size_t t) {
    m_current = &threads[t];
    ::swapcontext(&m_scheduler, &m_current->context);
    m_current = nullptr;
  }
  static void flush_one(Thread& thread) {
    thread.buffer.front().first->m_value = thread.buffer.front().second;
    thread.buffer.pop_front();
  }
  static void flush(Thread& thread) {
    while (!thread.buffer.empty()) {
      flush_one(thread);
    }
  }

  ucontext_t m_scheduler{};
  Thread* m_current = nullptr;
};

std::uint32_t ExploredWord::load(std::memory_order /*order*/) const noexcept {
  return orders->load(*this);
}
void ExploredWord::store(std::uint32_t value, std::memory_order order) noexcept {
  orders->store(*this, value, order);
}
std::uint32_t ExploredWord::exchange(std::uint32_t value, std::memory_order /*order*/) noexcept {
  return orders->exchange(*this, value);
}
template <std::uint32_t Entries>
void Explored<Entries>::wake(const Word& word) noexcept {
  orders->wake(word);
}
template <std::uint32_t Entries>
void Explored<Entries>::ring(const Bell& bell) noexcept {
  orders->ring(bell);
}

/// How many tags each lane sends to each: by sender, then receiver.
using Sends = std::vector<std::vector<std::uint32_t>>;

/// Lanes that send and take all.
template <std::uint32_t Entries>
class Exchange {
public:
  Exchange(const Sends& sends, Asleep how)
      : m_sends(sends), m_how(how), m_mail(std::make_unique<LaneMail<System>[]>(sends.size())) {
    std::vector<std::function<void()>> bodies;
    for (std::size_t self = 0; self < m_sends.size(); ++self) {
      std::vector<LaneMail<System>*> peers;
      for (std::size_t peer = 0; peer < m_sends.size(); ++peer) {
        peers.push_back(peer == self ? nullptr : &m_mail[peer]);
      }
      m_mail[self].bell = static_cast<int>(self);
      Lane& lane = m_lanes.emplace_back();
      lane.rings.emplace(m_mail[self]);
      lane.rings->connect(self, peers, 0);
      lane.sent.assign(m_sends.size(), 0);
      lane.got.assign(m_sends.size(), 0);
      bodies.emplace_back([this, self] { work(self); });
    }
    m_orders.emplace(std::move(bodies));
  }

  [[nodiscard]] std::vector<std::size_t> choices() const { return m_orders->choices(); }
  bool take(std::size_t choice) {
    m_orders->take(choice);
    return true;
  }
  [[nodiscard]] bool done() const { return m_orders->all_done(); }
  [[nodiscard]] const std::string& fault() const { return m_fault; }
  [[nodiscard]] std::size_t state() const {
    std::string text;
    const auto number_of = [&](const ExploredWord* word) { // in the order in which they lie
      return reinterpret_cast<const char*>(word) - reinterpret_cast<const char*>(m_mail.get());
    };
    for (std::size_t t = 0; t < m_sends.size(); ++t) {
      const Orders::Thread& thread = m_orders->threads[t];
      text += fmt::format("{} {} {} {}|", thread.local, thread.sleeps_on != nullptr, thread.rung,
                          static_cast<std::uint32_t>(m_mail[t].asleep));
      for (const auto& [word, value] : thread.buffer) {
        text += fmt::format("{}={};", number_of(word), value);
      }
      for (const MailRing<System>& ring : m_mail[t].from) {
        text += fmt::format("{} {} {},", static_cast<std::uint32_t>(ring.tail),
                            static_cast<std::uint32_t>(ring.head),
                            static_cast<std::uint32_t>(ring.starved));
      }
    }
    return std::hash<std::string>()(text);
  }

private:
  using System = Explored<Entries>;
  struct Lane {
    std::optional<MailRings<System>> rings;
    std::vector<std::uint32_t> sent, got;
  };

  /// What a lane does: it sends and takes until it has all, and sleeps when it can do neither.
  void work(std::size_t self) {
    Lane& lane = m_lanes[self];
    for (;;) {
      bool all = true, moved = false;
      for (std::size_t peer = 0; peer < m_sends.size(); ++peer) {
        if (lane.sent[peer] < m_sends[self][peer] && lane.rings->has_room(peer)) {
          lane.rings->put(peer, tag_of(self, lane.sent[peer]++));
          moved = true;
        }
        all =
            all && lane.sent[peer] == m_sends[self][peer] && lane.got[peer] == m_sends[peer][self];
      }
      if (all) {
        return;
      }
      std::array<Completion, 2> taken;
      const std::size_t count = lane.rings->take(taken);
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t sender = taken[i].tag / 16;
        if (sender >= m_sends.size() || taken[i].tag != tag_of(sender, lane.got[sender]++)) {
          m_fault = fmt::format("lane {} takes tag {}", self, taken[i].tag);
        }
      }
      if (count == 0 && !moved && lane.rings->fall_asleep(m_how)) {
        if (m_how == k_on_bell) {
          orders->sleep_by_bell();
        } else {
          orders->sleep_on(m_mail[self].asleep, m_how);
        }
        lane.rings->wake_up();
      }
    }
  }
  static std::uint32_t tag_of(std::size_t sender, std::uint32_t number) {
    return static_cast<std::uint32_t>(16 * sender) + number;
  }

  const Sends& m_sends;
  Asleep m_how;
  std::unique_ptr<LaneMail<System>[]> m_mail;
  std::deque<Lane> m_lanes;
  std::optional<Orders> m_orders;
  std::string m_fault;
};

template <std::uint32_t Entries>
std::size_t states_without_fault(const Sends& sends, Asleep how) {
  std::string text;
  for (const std::vector<std::uint32_t>& of_lane : sends) {
    text += fmt::format("{}; ", fmt::join(of_lane, " "));
  }
  const test::PathsSeen seen = test::EveryPath<Exchange<Entries>>([&] {
                                 return std::make_unique<Exchange<Entries>>(sends, how);
                               }).run();
  EXPECT_EQ(seen.fault, "") << text << Entries << " entries, asleep " << how;
  EXPECT_GT(seen.ends, 0U);
  return seen.states;
}

TEST(MailRings, LoseNoTagAndNoWakeUpInAnyOrder) {
  if (__has_feature(thread_sanitizer)) {
    GTEST_SKIP()
        << "its lanes are contexts of one thread, which the thread sanitizer cannot follow";
  }
  std::size_t states = 0;
  for (const Asleep how : {k_on_word, k_on_bell}) {
    states += states_without_fault<1>({{0, 2}, {0, 0}}, how);
    states += states_without_fault<1>({{0, 2}, {1, 0}}, how);
  }
  states += states_without_fault<1>({{0, 3}, {0, 0}}, k_on_word);
  std::printf("%zu states\n", states);
}

} // namespace
} // namespace reckon
