// SPDX-License-Identifier: Apache-2.0
#include "run/session.hpp"

#include "core/clock.hpp"
#include "core/error.hpp"
#include "launch/peer_fields.hpp"
#include "launch/sockets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace reckon {
namespace {

/// What a rank says of itself when it joins.
struct Introduction {
  std::string host, places; ///< RankMemory::settle()
  std::int64_t clock_uncertainty_ns = 0;
  [[nodiscard]] PeerFields fields() {
    return {{"host", &host}, {"places", &places}, {"clock_uncertainty_ns", &clock_uncertainty_ns}};
  }
};

std::uint64_t longest_write(std::span<const RankProgram* const> programs) {
  std::uint64_t longest = 0;
  for (const RankProgram* program : programs) {
    for (const LaneProgram& lane : program->lanes) {
      for (const Op& op : lane.ops()) {
        longest = std::max(longest, op.kind == OpKind::write ? op.bytes : 0);
      }
    }
  }
  return longest;
}

} // namespace

Session::Session(Rendezvous& rendezvous, std::vector<const RankProgram*> programs,
                 const RunOptions& options, std::vector<int> cpus, std::unique_ptr<Mover> mover)
    : m_rendezvous(rendezvous), m_programs(std::move(programs)), m_options(options),
      m_cpus(std::move(cpus)), m_mover(std::move(mover)) {
  const std::uint64_t longest = longest_write(m_programs);
  if (const std::uint64_t most = m_mover->capabilities().max_write_bytes; longest > most) {
    fail(ErrorKind::unavailable,
         fmt::format("transport {} writes at most {} at once, and a part of the plan has {}; "
                     "plan with a smaller --part-bytes",
                     m_mover->capabilities().name, to_text(Bytes(most)), to_text(Bytes(longest))));
  }
  if (options.checksums) {
    m_mover->add_checksums();
  }
  m_memory.emplace(*m_mover, *m_programs.back(), options.gradient);
  introduce(m_memory->settle(*m_programs.front(), m_cpus, m_options.lane_cpus));
  connect();
}

Session::~Session() {
  if (!m_left) {
    m_mover->abandon();
  }
}

void Session::introduce(const std::string& lanes) {
  for (const Introduction& rank :
       gather(m_rendezvous,
              Introduction{host_name(), lanes, m_rendezvous.clock_offset().uncertainty_ns},
              m_options.limit)) {
    if (!rank.places.empty()) {
      m_places.lanes += fmt::format("{}rank {}: {}", m_places.lanes.empty() ? "" : "; ",
                                    m_places.hosts.size(), rank.places);
    }
    m_places.hosts.push_back(rank.host);
    m_places.clock_uncertainty_ns =
        std::max(m_places.clock_uncertainty_ns, rank.clock_uncertainty_ns);
  }
  if (m_options.introduced) {
    m_options.introduced(m_places.hosts);
  }
}

void Session::connect() {
  m_mover->open(static_cast<int>(m_programs.front()->lanes.size()));
  const std::vector<std::string> addresses =
      m_rendezvous.all_gather(m_mover->address(), m_options.limit);
  m_mover->set_meanwhile([this] { m_rendezvous.watch(Seconds(0)); });
  // A peer that just ended cannot be connected to.
  m_rendezvous.or_blame_a_peer(k_news_limit,
                               [&] { m_mover->connect(m_rendezvous.rank(), addresses); });
  m_reached.assign(m_memory->buffers().begin(), m_memory->buffers().end());
  for (const PeerBuffer& peer : m_programs.back()->peer_buffers) {
    m_reached.push_back(m_mover->memory_of(peer.rank, peer.buffer));
  }
}

std::int64_t Session::root_clock_ns() const {
  return monotonic_ns() + m_rendezvous.clock_offset().offset_ns;
}

void Session::start_lanes(const MakeDelays& delays) {
  m_lanes.emplace(m_programs, *m_mover, m_reached, m_cpus, delays);
}

void Session::start(std::size_t program, std::uint64_t step) {
  m_lanes->start(program, step);
}

bool Session::over_within(std::chrono::milliseconds limit) {
  if (!m_lanes->finished_within(limit)) {
    m_rendezvous.watch(Seconds(0));
    return false;
  }
  if (const std::string error = m_lanes->error(); !error.empty()) {
    // A transport notices a dead peer at once, or, when packets vanish, after a time of its own.
    m_rendezvous.blame_a_peer(m_rendezvous.patience());
    fail(ErrorKind::operation, fmt::format("rank {} {}", m_rendezvous.rank(), error));
  }
  return true;
}

void Session::leave() {
  m_mover->disconnect([this] { static_cast<void>(m_rendezvous.all_gather("", m_options.limit)); });
  m_left = true;
}

} // namespace reckon
