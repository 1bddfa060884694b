// SPDX-License-Identifier: Apache-2.0
#include "movers/shared_names.hpp"

#include "core/file.hpp"
#include "core/log.hpp"
#include "core/secrets.hpp"
#include "core/whole_number.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <csignal>
#include <exception>
#include <fcntl.h>
#include <sstream>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace reckon {
namespace {

constexpr const char* k_folder = "/dev/shm";

/// When a process began, in ticks of the system; "ended" of one that was not waited for yet; empty:
/// the system does not say.
std::string beginning_of(int pid) {
  const std::string text = read_if_readable(fmt::format("/proc/{}/stat", pid)).value_or("");
  const std::size_t name_end = text.rfind(')'); // a program may be called anything
  if (name_end == std::string::npos) {
    return "";
  }
  std::istringstream fields(text.substr(name_end + 1));
  std::string field, state;
  fields >> state;
  constexpr int k_after_state = 19; // proc(5): state is field 3, the start is field 22
  for (int i = 0; i < k_after_state; ++i) {
    fields >> field;
  }
  return state == "Z" || state == "X" ? "ended" : field;
}

/// What the names of all processes here begin with; empty: the system does not say.
std::string common_beginning() {
  struct stat state {};
  return ::stat("/proc/self/ns/pid", &state) != 0 ? "" : fmt::format("reckon-{}-", state.st_ino);
}

/// What the names of a process begin with.
std::string beginning_of_names(int pid) {
  return fmt::format("{}{}-{}-", common_beginning(), pid, beginning_of(pid));
}

bool is_of_the_dead(const std::string& name) {
  const std::string common = common_beginning();
  if (common.empty() || !name.starts_with(common)) {
    return false;
  }
  const std::size_t end = name.find('-', common.size());
  const auto pid = whole_number<int>(std::string_view(name).substr(0, end).substr(common.size()));
  if (!pid) {
    return false;
  }
  return (::kill(*pid, 0) != 0 && errno == ESRCH) ||
         (!beginning_of(*pid).empty() && !name.starts_with(beginning_of_names(*pid)));
}

/// Those of this user.
template <class Wanted>
void remove_names(const Wanted& wanted) noexcept {
  try {
    for (const std::string& name : names_in(k_folder)) {
      struct stat state {};
      if (wanted(name) && ::lstat(fmt::format("{}/{}", k_folder, name).c_str(), &state) == 0 &&
          state.st_uid == ::geteuid()) {
        ::shm_unlink(("/" + name).c_str());
      }
    }
  } catch (const std::exception& error) {
    log(LogLevel::debug, "names left in {}: {}", k_folder, error.what());
  }
}

} // namespace

SharedName::SharedName()
    : m_text(fmt::format("{}{:016x}", beginning_of_names(::getpid()), secret_number())) {}

void SharedName::forget() const noexcept {
  remove_names([this](const std::string& name) { return name.starts_with(m_text); });
}

void remove_names_of_the_dead() noexcept {
  remove_names(is_of_the_dead);
}

std::optional<std::string> why_no_shared_memory() {
  const SharedName name;
  const Fd memory(
      ::shm_open(("/" + name.text()).c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  return memory ? std::nullopt
                : std::optional(fmt::format("shm_open in {}: {}", k_folder,
                                            std::generic_category().message(errno)));
}

} // namespace reckon
