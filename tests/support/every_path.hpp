// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

namespace reckon::test {

/// What a search has seen.
struct PathsSeen {
  std::size_t states = 0;
  std::size_t ends = 0; ///< states in which all is done
  std::string fault{};  ///< with the choices that lead there
};

/// Goes through all that a world can do, depth first, each state once. A world cannot be copied: it
/// is made again, and led to where others go on. It has
///   choices()     what can happen now, with <<
///   take(choice)  does so; false: that changed nothing
///   state()       a digest, equal for worlds that go on alike
///   done()        all is done
///   fault()       what has gone wrong; empty: nothing
template <class World>
class EveryPath {
public:
  explicit EveryPath(std::function<std::unique_ptr<World>()> make) : m_make(std::move(make)) {}

  /// Until the first fault.
  PathsSeen run() {
    again();
    visit();
    m_seen.states = m_states.size();
    return m_seen;
  }

private:
  using Choice = typename decltype(std::declval<World>().choices())::value_type;

  void again() {
    m_world.reset(); // before the next: some have a place of which there is one
    m_world = m_make();
    for (const Choice& choice : m_path) {
      static_cast<void>(m_world->take(choice));
    }
  }

  /// The world is where m_path leads, and has not been there before.
  void visit() {
    bool here = true, moved = false;
    for (const Choice& choice : m_world->choices()) {
      if (!here) {
        again();
      }
      here = !m_world->take(choice);
      if (here) {
        continue;
      }
      moved = true;
      m_path.push_back(choice);
      judge(m_world->fault());
      if (m_seen.fault.empty() && m_states.insert(m_world->state()).second) {
        visit();
      }
      if (!m_seen.fault.empty()) {
        return;
      }
      m_path.pop_back();
    }
    if (!moved && m_world->done()) {
      ++m_seen.ends;
    } else if (!moved) {
      judge("nothing can go on");
    }
  }

  void judge(const std::string& fault) {
    if (!fault.empty()) {
      std::ostringstream text;
      text << fault << ", after";
      for (const Choice& choice : m_path) {
        text << ' ' << choice;
      }
      m_seen.fault = text.str();
    }
  }

  std::function<std::unique_ptr<World>()> m_make;
  std::unique_ptr<World> m_world;
  std::vector<Choice> m_path;
  std::unordered_set<std::size_t> m_states;
  PathsSeen m_seen;
};

} // namespace reckon::test
