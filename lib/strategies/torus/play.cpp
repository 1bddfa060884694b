// SPDX-License-Identifier: Apache-2.0
#include "strategies/torus/play.hpp"

#include "core/interrupt.hpp"
#include "equations/torus.hpp"
#include "strategies/played_passes.hpp"
#include "strategies/torus/steps.hpp"

#include <algorithm>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <queue>
#include <tuple>
#include <utility>
#include <vector>

namespace reckon {
namespace {

constexpr std::uint32_t k_none = std::numeric_limits<std::uint32_t>::max();

// What a rank has seen of a part. The lowest bits: a write came, by dimension and round.
constexpr std::uint8_t k_gone = 1U << 6U;  ///< what it handed on has left
constexpr std::uint8_t k_begun = 1U << 7U; ///< its own gradient may go

constexpr std::uint8_t arrival(std::size_t dimension, bool of_sum) {
  return static_cast<std::uint8_t>(1U << (2 * dimension + (of_sum ? 1 : 0)));
}

/// A step as it is played: waits until `needs` were seen, then writes.
struct TorusMove {
  std::uint8_t needs = 0;
  std::uint8_t arrives_as = 0; ///< what the next node sees; 0: nothing is written
  std::uint8_t link = 0;       ///< of the rank
  bool reports = false;        ///< when it is gone, to a later move
};

/// From a rank to a neighbour.
struct TorusLink {
  std::uint32_t endpoint = k_none; ///< what the sender gives to communication
  std::uint32_t station = 0, to = 0;
  double latency_s = 0;
};

struct TorusEvent {
  double seconds = 0;
  std::uint64_t number = 0; ///< breaks ties in the order of creation
  std::uint32_t part = 0;   ///< or of the model's layer
  std::uint32_t rank = 0;   ///< k_none: the layer's backward pass is over
  std::uint8_t seen = 0;
  bool operator>(const TorusEvent& other) const {
    return std::tie(seconds, number) > std::tie(other.seconds, other.number);
  }
};

class TorusPlayer {
public:
  TorusPlayer(const Plan& plan, const PlayNetwork& links, std::size_t parts)
      : m_plan(plan), m_links(links), m_places(plan.torus->shape), m_ranks(m_places.size()),
        m_lanes(static_cast<std::size_t>(plan.ranks.front().lanes)),
        m_free(links.station_bytes_per_s.size(), 0), m_states(parts * m_ranks),
        m_next(parts, k_none) {
    add_links();
    add_moves();
    add_places_behind();
    std::vector<std::vector<std::uint32_t>> of_lane(m_lanes);
    for (std::uint32_t p = 0; p < parts; ++p) {
      std::vector<std::uint32_t>& lane = of_lane[plan.parts.lane[p]];
      if (lane.size() < plan.window_parts) {
        m_first.push_back(p);
      } else {
        m_next[lane[lane.size() - plan.window_parts]] = p;
      }
      lane.push_back(p);
    }
    if (plan.passes) {
      m_ready_s.resize(plan.passes->size());
      std::partial_sum(plan.passes->backward_seconds.begin(), plan.passes->backward_seconds.end(),
                       m_ready_s.begin());
      m_waiting.resize(m_ready_s.size());
      m_summed_s.assign(m_ranks * m_lanes * m_ready_s.size(), 0);
    }
  }

  double run() {
    for (std::uint32_t layer = 0; layer < m_ready_s.size(); ++layer) {
      push(m_ready_s[layer], layer, k_none, 0);
    }
    for (std::uint32_t rank = 0; rank < m_ranks; ++rank) {
      for (const std::uint32_t p : m_first) {
        begin(p, rank);
      }
    }
    constexpr std::uint64_t k_between_polls = 1 << 16;
    for (std::uint64_t times = 0; !m_events.empty(); ++times) {
      if (times % k_between_polls == 0) {
        stop_if_interrupted();
      }
      const TorusEvent event = m_events.top();
      m_events.pop();
      m_now = event.seconds;
      if (event.rank != k_none) {
        see(event.part, event.rank, event.seen);
        continue;
      }
      std::vector<std::pair<std::uint32_t, std::uint32_t>> begin =
          std::exchange(m_waiting[event.part], {});
      std::sort(begin.begin(), begin.end());
      for (const auto& [rank, p] : begin) {
        see(p, rank, k_begun);
      }
    }
    return m_plan.passes ? last_forward_pass() : m_now;
  }

private:
  struct State {
    std::uint8_t move = 0, seen = 0;
  };

  void add_links() {
    for (std::uint64_t r = 0; r < m_ranks; ++r) {
      for (std::size_t d = 0; d < TorusPlaces::k_dimensions; ++d) {
        for (const bool backward : {false, true}) {
          TorusLink link;
          link.to = m_places.next(r, d, backward);
          if (link.to != r) {
            const std::vector<std::uint32_t>& path = m_links.paths[r][link.to];
            link.endpoint = path.size() > 1 ? path.front() : k_none;
            link.station = path.back();
            link.latency_s = m_links.latency_of(r, link.to);
          }
          m_link.push_back(link);
        }
      }
    }
  }

  /// Of each way, and of each place that a rank can have behind a part's server.
  void add_moves() {
    for (const TorusWay& way : m_plan.torus->ways) {
      for (std::uint64_t behind = 0; behind < m_ranks; ++behind) {
        m_move_begin.push_back(static_cast<std::uint32_t>(m_moves.size()));
        std::size_t handed_on = m_moves.size();
        bool waits = false;
        for (const TorusStep& step : torus_steps(m_places, way, 0, behind)) {
          using Kind = TorusStep::Kind;
          TorusMove move;
          move.needs = m_moves.size() == m_move_begin.back() ? k_begun : 0;
          move.link = static_cast<std::uint8_t>(2 * step.dimension + (way.backward ? 1 : 0));
          const bool of_sum = step.kind == Kind::take || step.kind == Kind::hand_on;
          if (step.kind == Kind::add || step.kind == Kind::take) {
            move.needs |= arrival(step.dimension, of_sum);
          } else {
            move.arrives_as = arrival(step.dimension, of_sum);
          }
          if (step.kind == Kind::hand_on) {
            handed_on = m_moves.size();
            waits = true;
          } else if (!of_sum && std::exchange(waits, false)) {
            m_moves[handed_on].reports = true;
            move.needs |= k_gone;
          }
          m_moves.push_back(move);
        }
      }
    }
    m_move_begin.push_back(static_cast<std::uint32_t>(m_moves.size()));
  }

  void add_places_behind() {
    for (std::uint64_t server = 0; server < m_ranks; ++server) {
      for (std::uint64_t rank = 0; rank < m_ranks; ++rank) {
        std::uint64_t behind = 0, stride = 1;
        for (std::size_t d = 0; d < TorusPlaces::k_dimensions; ++d) {
          behind += stride * m_places.steps(m_places.at(server, d), m_places.at(rank, d), d, false);
          stride *= m_places.nodes(d);
        }
        m_behind.push_back(static_cast<std::uint32_t>(behind));
      }
    }
  }

  void push(double seconds, std::uint32_t part, std::uint32_t rank, std::uint8_t seen) {
    m_events.push({seconds, m_number++, part, rank, seen});
  }

  void begin(std::uint32_t p, std::uint32_t rank) {
    if (m_plan.passes && m_ready_s[last_layer(m_plan, p)] > m_now) {
      m_waiting[last_layer(m_plan, p)].emplace_back(rank, p);
    } else {
      see(p, rank, k_begun);
    }
  }

  /// Goes on with a part for as long as that needs nothing more.
  void see(std::uint32_t p, std::uint32_t rank, std::uint8_t seen) {
    State& state = m_states[p * m_ranks + rank];
    state.seen |= seen;
    const std::uint64_t moves =
        m_plan.parts.tree[p] * m_ranks + m_behind[m_plan.parts.server[p] * m_ranks + rank];
    const std::uint32_t first = m_move_begin[moves], count = m_move_begin[moves + 1] - first;
    for (; state.move < count; ++state.move) {
      const TorusMove& move = m_moves[first + state.move];
      if ((state.seen & move.needs) != move.needs) {
        return;
      }
      state.seen = static_cast<std::uint8_t>(state.seen & ~move.needs);
      if (move.arrives_as != 0) {
        write(p, rank, move);
      }
    }
    if (m_plan.passes) {
      m_summed_s[(rank * m_lanes + m_plan.parts.lane[p]) * m_ready_s.size() +
                 last_layer(m_plan, p)] = m_now;
    }
    if (m_next[p] != k_none) {
      begin(m_next[p], rank);
    }
  }

  void write(std::uint32_t p, std::uint32_t rank, const TorusMove& move) {
    const TorusLink& link = m_link[rank * 2 * TorusPlaces::k_dimensions + move.link];
    const auto bytes = static_cast<double>(m_plan.parts.bytes[p]);
    // The head of a write is on its link while its tail is still at the endpoint.
    double head = m_now, tail = m_now;
    if (link.endpoint != k_none) {
      head = std::max(m_free[link.endpoint], m_now);
      tail = head + bytes / m_links.station_bytes_per_s[link.endpoint];
      m_free[link.endpoint] = tail;
    }
    double& free = m_free[link.station];
    free = std::max(std::max(free, head) + bytes / m_links.station_bytes_per_s[link.station], tail);
    push(free + link.latency_s, p, link.to, move.arrives_as);
    if (move.reports) {
      push(free, p, rank, k_gone);
    }
  }

  /// When all sums are there and the forward passes that wait for them are over.
  [[nodiscard]] double last_forward_pass() const {
    double last = m_now;
    for (std::size_t lane = 0; lane < m_ranks * m_lanes; ++lane) {
      double done = m_ready_s.back();
      for (std::size_t layer = m_ready_s.size(); layer-- > 0;) {
        done = std::max(done, m_summed_s[lane * m_ready_s.size() + layer]) +
               m_plan.passes->forward_seconds[layer];
      }
      last = std::max(last, done);
    }
    return last;
  }

  const Plan& m_plan;
  const PlayNetwork& m_links;
  TorusPlaces m_places;
  std::size_t m_ranks, m_lanes;
  std::vector<TorusLink> m_link;           ///< [rank][dimension][backward]
  std::vector<TorusMove> m_moves;          ///< [way][place behind the server][step]
  std::vector<std::uint32_t> m_move_begin; ///< [way][place]: in m_moves, and their end
  std::vector<std::uint32_t> m_behind;     ///< [server][rank]: place
  std::vector<double> m_free;              ///< by station: when it has served all that is posted
  std::vector<State> m_states;             ///< [part][rank]
  std::vector<std::uint32_t> m_first;      ///< parts that nothing holds up but their layer
  std::vector<std::uint32_t> m_next;       ///< by part: begins when that one is summed
  std::vector<double> m_ready_s;           ///< by layer: the backward pass is over
  std::vector<std::vector<std::pair<std::uint32_t, std::uint32_t>>>
      m_waiting;                  ///< [layer]: (rank, part)
  std::vector<double> m_summed_s; ///< [rank][lane][layer]
  std::priority_queue<TorusEvent, std::vector<TorusEvent>, std::greater<>> m_events;
  std::uint64_t m_number = 0;
  double m_now = 0;
};

/// Of all nodes, by equation 42; `torus_scatter` has fewer.
double writes_of(const Plan& plan) {
  return torus_all_reduce({plan.torus->shape, {1, 1, 1}}).sent_bytes *
         static_cast<double>(plan.ranks.size()) * static_cast<double>(plan.parts.size());
}

/// Parts of two beginnings of a plan.
struct TorusBeginnings {
  std::uint64_t shorter = 0, longer = 0;
};

/// Of about two thirds and a third of the writes. They differ by whole turns of servers and ways,
/// so that every ring has its share in both, and by whole windows, for parts come in bursts of a
/// window; the shorter one has at least a window. Where that is too much, by whole turns. nullopt:
/// so many writes are no two turns.
std::optional<TorusBeginnings> beginnings(const Plan& plan, double most_writes) {
  const std::uint64_t turns = plan.ranks.size() * plan.torus->ways.size();
  const std::uint64_t window = std::max<std::uint64_t>(1, plan.window_parts);
  const auto most = static_cast<std::uint64_t>(static_cast<double>(plan.parts.size()) *
                                               most_writes / writes_of(plan));
  const std::uint64_t longer = 2 * most / 3 / turns * turns;
  for (const auto& [step, least] :
       {std::pair(std::lcm(turns, window), window), std::pair(turns, turns)}) {
    const std::uint64_t difference = std::max(longer / 2 / step * step, step);
    if (difference + least <= longer) {
      return TorusBeginnings{longer - difference, longer};
    }
  }
  return std::nullopt;
}

} // namespace

double play_torus(const Plan& plan, const PlayNetwork& links, std::size_t parts) {
  return TorusPlayer(plan, links, parts).run();
}

std::optional<double> torus_seconds(const Plan& plan, const PlayNetwork& links,
                                    double most_writes) {
  const std::size_t all = plan.parts.size();
  if (writes_of(plan) <= most_writes) {
    return play_torus(plan, links, all);
  }
  const std::optional<TorusBeginnings> begun = beginnings(plan, most_writes);
  if (plan.passes || !begun) {
    return std::nullopt;
  }
  const double longer_s = play_torus(plan, links, begun->longer);
  const double pace = (longer_s - play_torus(plan, links, begun->shorter)) /
                      static_cast<double>(begun->longer - begun->shorter);
  return longer_s + static_cast<double>(all - begun->longer) * pace;
}

bool can_play_torus(const Plan& plan, double most_writes) {
  return writes_of(plan) <= most_writes || (!plan.passes && beginnings(plan, most_writes));
}

} // namespace reckon
