// SPDX-License-Identifier: Apache-2.0
#include "movers/levels.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "movers/mailbox.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

namespace reckon {
namespace {

class LevelsLane final : public MoverLane {
public:
  /// One of the two may be null.
  LevelsLane(MoverLane* inside, MoverLane* between, const std::vector<bool>& is_inside)
      : m_is_inside(is_inside) {
    for (MoverLane* const lane : {between, inside}) {
      if (lane != nullptr) {
        m_lanes[m_count++] = lane;
      }
    }
  }

  bool write(int peer, Slice source, Slice destination, std::uint64_t bytes, std::uint32_t tag,
             std::uint64_t id) noexcept override {
    const bool inside = peer >= 0 && static_cast<std::size_t>(peer) < m_is_inside.size() &&
                        m_is_inside[static_cast<std::size_t>(peer)];
    // A lane without the other one is told of peers that it does not know, and refuses them.
    return m_lanes[inside ? m_count - 1 : 0]->write(peer, source, destination, bytes, tag, id);
  }

  /// Each lane goes first in turn, so that a busy one cannot fill a short `out` for ever.
  std::size_t poll(std::span<Completion> out) noexcept override {
    m_first = (m_first + 1) % m_count;
    std::size_t count = 0;
    for (std::size_t step = 0; step < m_count && count < out.size(); ++step) {
      const std::size_t lane = (m_first + step) % m_count;
      const std::size_t more = m_lanes[lane]->poll(out.subspan(count));
      for (const Completion& completion : out.subspan(count, more)) {
        m_failed = completion.kind == Completion::Kind::failed ? lane : m_failed;
      }
      count += more;
    }
    return count;
  }

  void wait(std::chrono::nanoseconds limit) noexcept override {
    if (m_count == 1) {
      m_lanes[0]->wait(limit);
    } else if (before_sleeps(limit)) {
      sleep_on(m_sleeps);
      after_sleep();
    }
  }

  std::string error() const override { return m_lanes[m_failed]->error(); }
  Engine& engine() noexcept override { return m_lanes[m_count - 1]->engine(); }

private:
  /// False: one of the lanes may have something, and none is asleep.
  bool before_sleeps(std::chrono::nanoseconds limit) noexcept {
    for (std::size_t lane = 0; lane < m_count; ++lane) {
      const std::optional<LaneSleep> sleep = m_lanes[lane]->before_sleep(limit);
      if (!sleep) {
        for (std::size_t other = 0; other < lane; ++other) {
          m_lanes[other]->after_sleep();
        }
        return false;
      }
      m_sleeps[lane] = *sleep;
    }
    return true;
  }

  void after_sleep() noexcept override {
    for (std::size_t lane = 0; lane < m_count; ++lane) {
      m_lanes[lane]->after_sleep();
    }
  }

  std::array<MoverLane*, 2> m_lanes{}; ///< between machines, then inside: the last has the memory
  std::size_t m_count = 0;
  const std::vector<bool>& m_is_inside; ///< by rank
  std::array<LaneSleep, 2> m_sleeps{};
  std::size_t m_first = 0, m_failed = 0;
};

class LevelsMover final : public Mover {
public:
  LevelsMover(std::unique_ptr<Mover> inside, std::unique_ptr<Mover> between,
              std::vector<std::size_t> machines)
      : m_inside(std::move(inside)), m_between(std::move(between)), m_machines(std::move(machines)),
        m_capabilities(m_between->capabilities()) {
    if (m_inside) {
      const MoverCapabilities& own = m_inside->capabilities();
      m_capabilities.name =
          fmt::format("{} inside machines, {} between them", own.name, m_capabilities.name);
      m_capabilities.max_write_bytes =
          std::min(m_capabilities.max_write_bytes, own.max_write_bytes);
      m_capabilities.max_in_flight = std::min(m_capabilities.max_in_flight, own.max_in_flight);
    }
  }

  const MoverCapabilities& capabilities() const noexcept override { return m_capabilities; }

  std::span<std::byte> allocate(std::uint64_t bytes) override {
    const std::span<std::byte> buffer = memory().allocate(bytes);
    if (m_inside && m_inside->view(buffer).data() != buffer.data()) {
      m_between.reset(); // a GPU's memory, which no network card reads here
    }
    if (m_inside && m_between) {
      m_between->adopt(buffer);
    }
    return buffer;
  }
  void adopt(std::span<std::byte> buffer) override {
    memory().adopt(buffer);
    if (m_inside && m_between) {
      m_between->adopt(buffer);
    }
  }
  std::span<std::byte> view(std::span<std::byte> buffer) override { return memory().view(buffer); }
  void push(std::span<std::byte> buffer) override { memory().push(buffer); }
  void pull(std::span<std::byte> buffer) override { memory().pull(buffer); }

  void add_checksums() override {
    if (m_between) {
      m_between->add_checksums();
    }
  }

  void open(int lanes) override {
    for (Mover* const mover : {m_inside.get(), m_between.get()}) {
      if (mover != nullptr) {
        mover->open(lanes);
      }
    }
    m_lane_count = lanes;
  }

  std::string address() const override {
    return Json{{"mover", "levels"},
                {"network", network_id()},
                {"inside", m_inside ? m_inside->address() : ""},
                {"between", m_between ? m_between->address() : ""}}
        .dump();
  }

  void connect(int self, const std::vector<std::string>& addresses) override {
    if (addresses.size() != m_machines.size()) {
      fail(ErrorKind::internal, fmt::format("connect(levels): {} ranks, and machines of {}",
                                            addresses.size(), m_machines.size()));
    }
    const auto own = static_cast<std::size_t>(self);
    std::vector<std::string> inside(addresses.size()), between(addresses.size());
    m_is_inside.assign(addresses.size(), false);
    for (std::size_t rank = 0; rank < addresses.size(); ++rank) {
      const std::string who = fmt::format("address of rank {}", rank);
      const Json json = parse_json(addresses[rank], who);
      const JsonView view(json, who);
      require_same_mover("levels", view.at("mover").string(), rank);
      view.only({"mover", "network", "inside", "between"});
      m_is_inside[rank] = m_machines[rank] == m_machines[own];
      if (m_is_inside[rank]) {
        inside[rank] = view.at("inside").string();
      }
      if (!m_is_inside[rank] || rank == own) {
        between[rank] = view.at("between").string();
      }
      if (m_is_inside[rank] && view.at("network").string() != network_id()) {
        fail(ErrorKind::unavailable,
             fmt::format("connect: the plan has ranks {} and {} on one machine, but they run on "
                         "different ones, or in different containers; start the ranks of a machine "
                         "together",
                         self, rank));
      }
    }
    // All machines come to this at once, and the ranks of one machine need nothing of the others.
    for (const auto& [mover, reached] :
         {std::pair(m_inside.get(), &inside), std::pair(m_between.get(), &between)}) {
      if (mover != nullptr) {
        mover->set_meanwhile([this] { meanwhile(); });
        mover->connect(self, *reached);
      }
    }
    for (int lane = 0; lane < m_lane_count; ++lane) {
      m_lanes.push_back(std::make_unique<LevelsLane>(m_inside ? &m_inside->lane(lane) : nullptr,
                                                     m_between ? &m_between->lane(lane) : nullptr,
                                                     m_is_inside));
    }
  }

  MoverLane& lane(int index) override { return *m_lanes.at(static_cast<std::size_t>(index)); }

  void abandon() noexcept override {
    for (Mover* const mover : {m_between.get(), m_inside.get()}) {
      if (mover != nullptr) {
        mover->abandon();
      }
    }
  }

  void disconnect(const std::function<void()>& meet) override {
    bool met = false;
    const auto meet_once = [&] { // so that every rank meets as often, whatever it is made of
      if (!std::exchange(met, true)) {
        meet();
      }
    };
    for (Mover* const mover : {m_between.get(), m_inside.get()}) {
      if (mover != nullptr) {
        mover->disconnect(meet_once);
      }
    }
    meet_once();
  }

private:
  /// Whose the buffers are.
  [[nodiscard]] Mover& memory() const { return m_inside ? *m_inside : *m_between; }

  // The lanes of `between` use the memory of `inside`: they go first.
  std::unique_ptr<Mover> m_inside, m_between;
  std::vector<std::size_t> m_machines;
  MoverCapabilities m_capabilities;
  std::vector<bool> m_is_inside;
  int m_lane_count = 0;
  std::vector<std::unique_ptr<LevelsLane>> m_lanes;
};

} // namespace

std::unique_ptr<Mover> make_levels_mover(std::unique_ptr<Mover> inside,
                                         std::unique_ptr<Mover> between,
                                         std::vector<std::size_t> machines) {
  return std::make_unique<LevelsMover>(std::move(inside), std::move(between), std::move(machines));
}

} // namespace reckon
