// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "movers/mover.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace reckon {

// How ranks of one machine tell each other of arrivals: rings of tags in shared memory, one for
// each (sender, lane), and words to sleep on. `System` has the type of a word that ranks share,
// the numbers of entries of a ring and of ranks, the address of a sleeper, and wakes it. Tests put
// one there that goes through every order of what ranks do.

/// Tags on their way from one lane of one rank to the same lane of another. It lies in the
/// receiver's memory.
///
/// Orders. The sender fills tags[] (and the payload), then stores `tail`; the receiver's load of
/// `tail` sees both. The receiver reads tags[], then stores `head`; the sender's load of `head`
/// makes the entry its own again. These are release/acquire pairs; the stores and the loads that
/// stand in a pair with a flag below are seq_cst too, because each of these pairs is "store mine,
/// then look at yours" on both sides:
///   arrival: sender stores tail, loads asleep           | receiver stores asleep, loads tail
///   room:    sender stores asleep, starved, loads head  | receiver stores head, loads starved
/// In the single order of seq_cst operations at least one side sees the other's store: no wake-up
/// is lost. A receiver that finds `starved` set takes it back before it looks at the sender's
/// `asleep`, and only who is about to sleep sets it: had a sender set it when it was refused, an
/// answer to its last sleep could take that back in between, and the sender would sleep unknown.
template <class System>
struct MailRing {
  static constexpr std::size_t k_line = 128; // two cache lines: the hardware prefetches pairs
  static_assert((System::k_entries & (System::k_entries - 1)) == 0,
                "positions are counted without wrapping");
  using Word = typename System::Word;
  alignas(k_line) Word tail; // sender: entries ever put
  Word starved;              // sender: 1 = sleeps, or is about to, for want of room
  alignas(k_line) Word head; // receiver: entries ever taken
  alignas(k_line) std::array<std::uint32_t, System::k_entries> tags;
};

/// How a lane's thread sleeps, or is about to.
enum Asleep : std::uint32_t { k_awake, k_on_word, k_on_bell };

/// What a lane has of others.
template <class System>
struct LaneMail {
  alignas(MailRing<System>::k_line) typename System::Word asleep; // Asleep
  typename System::Bell bell; // of one that sleeps on it; written before it first does
  std::array<MailRing<System>, System::k_ranks> from;
};

/// One lane's view: tags to and from the same lane of others. One thread.
template <class System>
class MailRings {
public:
  explicit MailRings(LaneMail<System>& own) : m_own(own) {}

  /// Mailbox::connect() of one lane.
  void connect(std::size_t self, std::vector<LaneMail<System>*> peers, std::uint32_t first) {
    m_peers = std::move(peers);
    m_put.assign(m_peers.size(), first);
    m_room_until.assign(m_peers.size(), first + System::k_entries);
    m_refused.assign(m_peers.size(), 0);
    m_taken.assign(m_peers.size(), first);
    m_reached.clear();
    for (std::size_t rank = 0; rank < m_peers.size(); ++rank) {
      if (rank == self) {
        m_own_ring = m_reached.size();
      }
      if (rank == self || m_peers[rank] != nullptr) {
        m_reached.push_back(rank);
      }
    }
    for (LaneMail<System>* const peer : m_peers) {
      if (peer != nullptr) {
        MailRing<System>& ring = peer->from[m_own_ring];
        ring.tags.fill(0); // it is ours to write: its pages come now, not in the first transfer
        if (first != 0) {
          ring.head = ring.tail = first;
        }
      }
    }
  }

  [[nodiscard]] bool has_room(std::size_t peer) noexcept {
    if (m_put[peer] != m_room_until[peer]) {
      return true;
    }
    const MailRing<System>& ring = m_peers[peer]->from[m_own_ring];
    m_room_until[peer] = ring.head.load(std::memory_order_acquire) + System::k_entries;
    m_refused[peer] = m_put[peer] == m_room_until[peer] ? 1 : 0;
    return m_refused[peer] == 0;
  }

  void put(std::size_t peer, std::uint32_t tag) noexcept {
    MailRing<System>& ring = m_peers[peer]->from[m_own_ring];
    ring.tags[m_put[peer] % System::k_entries] = tag;
    ring.tail.store(++m_put[peer], std::memory_order_seq_cst);
    ring_bell(peer);
  }

  [[nodiscard]] std::size_t take(std::span<Completion> out) noexcept {
    // Another sender goes first each time, so that a fast one cannot keep the others out of a short
    // `out`.
    const std::size_t rings = m_reached.size();
    std::size_t count = 0;
    for (std::size_t step = 0; step < rings && count < out.size(); ++step) {
      const std::size_t number = (m_turn + step) % rings, sender = m_reached[number];
      if (number == m_own_ring) {
        continue;
      }
      MailRing<System>& ring = m_own.from[number];
      std::uint32_t& taken = m_taken[sender];
      const std::uint32_t put = ring.tail.load(std::memory_order_acquire);
      if (taken == put) {
        continue;
      }
      while (taken != put && count < out.size()) {
        out[count++] = {Completion::Kind::arrived, ring.tags[taken % System::k_entries], 0};
        ++taken;
      }
      ring.head.store(taken, std::memory_order_seq_cst);
      if (ring.starved.load(std::memory_order_seq_cst) != 0) {
        ring.starved.store(0, std::memory_order_seq_cst);
        ring_bell(sender);
      }
    }
    m_turn = rings == 0 ? 0 : (m_turn + 1) % rings;
    return count;
  }

  /// Before a sleep: peers will wake us. False: take() may have something, or a refused put() may
  /// succeed; do not sleep.
  [[nodiscard]] bool fall_asleep(Asleep how) noexcept {
    m_own.asleep.store(how, std::memory_order_seq_cst);
    if (!something_to_do()) {
      return true;
    }
    wake_up();
    return false;
  }
  /// After a sleep, however it ended. A bell rung now: the caller's take() finds why.
  void wake_up() noexcept { m_own.asleep.store(k_awake, std::memory_order_relaxed); }

private:
  /// Wakes the peer's lane if it sleeps. The caller's store that it waits for came before.
  void ring_bell(std::size_t peer) noexcept {
    LaneMail<System>& lane = *m_peers[peer];
    if (lane.asleep.load(std::memory_order_seq_cst) == k_awake) {
      return;
    }
    switch (lane.asleep.exchange(k_awake, std::memory_order_seq_cst)) {
    case k_on_word:
      m_system.wake(lane.asleep);
      break;
    case k_on_bell:
      m_system.ring(lane.bell);
      break;
    default:
      break;
    }
  }

  /// The look that follows our store to `asleep` (see MailRing). Refused tags that may be put now
  /// count.
  bool something_to_do() noexcept {
    for (std::size_t number = 0; number < m_reached.size(); ++number) {
      if (number == m_own_ring) {
        continue;
      }
      const std::size_t peer = m_reached[number];
      if (m_own.from[number].tail.load(std::memory_order_seq_cst) != m_taken[peer]) {
        return true;
      }
      if (m_refused[peer] != 0) {
        MailRing<System>& to_peer = m_peers[peer]->from[m_own_ring];
        to_peer.starved.store(1, std::memory_order_seq_cst);
        if (to_peer.head.load(std::memory_order_seq_cst) + System::k_entries != m_put[peer]) {
          m_refused[peer] = 0;
          return true;
        }
      }
    }
    return false;
  }

  LaneMail<System>& m_own;
  System m_system{};
  std::vector<LaneMail<System>*> m_peers;
  std::vector<std::size_t> m_reached; ///< ranks; the k-th writes into ring k of the others
  std::size_t m_own_ring = 0;
  std::vector<std::uint32_t> m_put;        ///< per peer: tags we ever put into its ring
  std::vector<std::uint32_t> m_room_until; ///< per peer: m_put may grow up to here before `head`
                                           ///< must be read again
  std::vector<char> m_refused;             ///< per peer: the last look found its ring full
  std::vector<std::uint32_t> m_taken;      ///< per sender: tags we ever took
  std::size_t m_turn = 0;
};

} // namespace reckon
