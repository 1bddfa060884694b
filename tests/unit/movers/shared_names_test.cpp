// SPDX-License-Identifier: Apache-2.0
#include "movers/shared_names.hpp"

#include "core/file.hpp"
#include "movers/mover.hpp"
#include "support/transports.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <regex>
#include <string>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>

namespace reckon {
namespace {

/// "reckon-NAMESPACE-PID-..."
bool is_name_of(pid_t pid, const std::string& name) {
  return std::regex_match(name, std::regex(fmt::format("reckon-[0-9]+-{}-.*", pid)));
}

std::size_t names_of(pid_t pid) {
  const std::filesystem::directory_iterator folder("/dev/shm");
  return static_cast<std::size_t>(std::count_if(begin(folder), end(folder), [&](const auto& entry) {
    return is_name_of(pid, entry.path().filename().string());
  }));
}

/// A process that has opened shared memory and waits for its peers for ever.
class Opened {
public:
  Opened() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::pipe(ends.data()), 0);
    m_pid = ::fork();
    if (m_pid == 0) {
      const auto mover = make_mover("shm");
      mover->open(2);
      EXPECT_EQ(::write(ends[1], "o", 1), 1);
      for (;;) {
        ::pause();
      }
    }
    ::close(ends[1]);
    char told = 0;
    EXPECT_EQ(::read(ends[0], &told, 1), 1);
    ::close(ends[0]);
  }
  Opened(const Opened&) = delete;
  Opened& operator=(const Opened&) = delete;
  ~Opened() { kill(); }
  void kill() {
    ::kill(m_pid, SIGKILL);
    ::waitpid(m_pid, nullptr, 0);
  }
  [[nodiscard]] std::size_t names() const { return names_of(m_pid); }

private:
  pid_t m_pid = -1;
};

TEST(SharedName, TakesWhatBeginsWithItAlong) {
  const auto make = [](const std::string& name) {
    const Fd memory(::shm_open(("/" + name).c_str(), O_RDWR | O_CREAT | O_EXCL, 0600));
    EXPECT_TRUE(memory);
  };
  const std::size_t before = names_of(::getpid());
  const SharedName kept;
  make(kept.text());
  {
    const SharedName name; // of a lane that failed when it was half open
    EXPECT_NE(name.text(), kept.text());
    make(name.text() + ":0:0");
    EXPECT_EQ(names_of(::getpid()), before + 2);
  }
  EXPECT_EQ(names_of(::getpid()), before + 1);
  kept.forget();
  EXPECT_EQ(names_of(::getpid()), before);
}

TEST(SharedNames, OfTheKilledGoWithTheNextJobAndNoOthers) {
  const std::vector<std::string> here = support::transports_here();
  if (std::find(here.begin(), here.end(), "shm") == here.end()) {
    GTEST_SKIP() << "libfabric's shm is not available";
  }
  const auto named = [](const std::string& name) {
    EXPECT_GE(Fd(::shm_open(name.c_str(), O_CREAT | O_RDWR, 0600)).get(), 0);
    return std::filesystem::path("/dev/shm") / name;
  };
  const std::string own = SharedName().text();
  // Of a process that has our number now, which began at another time.
  const std::regex parts("(reckon-[0-9]+)-([0-9]+)-[0-9]+-(.*)");
  const auto before = named(std::regex_replace(own, parts, "$1-$2-1-$3"));
  const auto elsewhere = named(std::regex_replace(own, parts, "reckon-1-$2-1-$3"));
  const auto foreign = named("reckon-and-others");
  Opened killed;
  const Opened alive;
  ASSERT_EQ(killed.names(), 2U); // one a lane
  killed.kill();
  EXPECT_EQ(killed.names(), 2U);
  const Opened next;
  EXPECT_EQ(killed.names(), 0U);
  EXPECT_EQ(alive.names(), 2U);
  EXPECT_FALSE(exists(before));
  for (const auto& path : {elsewhere, foreign}) {
    EXPECT_TRUE(std::filesystem::remove(path)) << path;
  }
}

TEST(SharedNames, CannotBeGuessed) {
  EXPECT_NE(SharedName().text(), SharedName().text());
}

} // namespace
} // namespace reckon
