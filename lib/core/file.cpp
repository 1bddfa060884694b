// SPDX-License-Identifier: Apache-2.0
#include "core/file.hpp"

#include "core/error.hpp"
#include "core/json_fwd.hpp"
#include "core/secrets.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>
#include <utility>
#include <vector>

namespace reckon {
namespace {

/// All that is left to read; absent, with errno set, when reading fails.
std::optional<std::string> read_rest(int fd) {
  std::string content;
  constexpr std::size_t k_step = 1U << 16U;
  struct stat about {};
  const bool known = ::fstat(fd, &about) == 0;
  if (known && S_ISCHR(about.st_mode) && ::isatty(fd) == 0 &&
      about.st_rdev != makedev(1, 3)) { // /dev/zero has no end; /dev/null has
    errno = ENODEV;
    return std::nullopt;
  }
  if (known && S_ISREG(about.st_mode)) { // doubling would hold a large file twice
    content.reserve(static_cast<std::size_t>(about.st_size) + k_step);
  }
  for (;;) {
    const std::size_t used = content.size();
    content.resize(used + k_step);
    const ssize_t n = ::read(fd, content.data() + used, k_step);
    if (n < 0 && errno == EINTR) {
      content.resize(used);
      continue;
    }
    if (n < 0) {
      return std::nullopt;
    }
    content.resize(used + static_cast<std::size_t>(n));
    if (n == 0) {
      return content;
    }
  }
}

/// The file is what is wrong, unless the system or the disk is.
[[noreturn]] void fail_reading(const std::string& attempt, int why,
                               const std::string& remedy = "") {
  const bool system = why == EMFILE || why == ENFILE || why == ENOMEM || why == EIO;
  fail(system ? ErrorKind::operation : ErrorKind::input,
       attempt + ": " + system_words(why) + remedy);
}

std::string read_all(int fd, const std::string& name) {
  std::optional<std::string> content = read_rest(fd);
  if (!content) {
    fail_reading("cannot read " + name, errno);
  }
  return *std::move(content);
}

void write_all(int fd, const std::string& name, std::string_view content) {
  while (!content.empty()) {
    const ssize_t n = ::write(fd, content.data(), content.size());
    if (n < 0 && errno == EINTR) {
      continue;
    }
    if (n < 0 && errno == EPIPE && fd == STDOUT_FILENO) {
      return; // `reckon show x | head`: the reader has what it wanted
    }
    if (n < 0) {
      fail_errno("cannot write " + name, errno);
    }
    content.remove_prefix(static_cast<std::size_t>(n));
  }
}

/// Where a chain of symbolic links ends, whether or not something is there: that is what is
/// replaced, not the link.
std::filesystem::path end_of_links(const std::string& path) {
  std::filesystem::path at(path);
  constexpr int k_longest_chain = 40; // the kernel's own limit
  for (int i = 0; i < k_longest_chain; ++i) {
    std::error_code error;
    const std::filesystem::path next = std::filesystem::read_symlink(at, error);
    if (error) { // not a link
      return at;
    }
    at = at.parent_path() / next; // an absolute `next` replaces all of it
  }
  fail_errno("cannot write " + path, ELOOP);
}

} // namespace

Fd& Fd::operator=(Fd&& other) noexcept {
  if (this != &other) {
    Fd old(std::exchange(m_fd, other.release()));
  }
  return *this;
}

Fd::~Fd() {
  if (m_fd >= 0) {
    ::close(m_fd);
  }
}

std::vector<std::string> names_in(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (std::filesystem::directory_iterator at(folder, error), end; !error && at != end;
       at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  return names;
}

std::string near_file(const std::string& path) {
  const std::filesystem::path wanted(path), folder = wanted.parent_path();
  const std::string ending = wanted.has_extension() ? wanted.extension().string() : ".json";
  std::vector<std::string> names; // without the ending, which would make unlike names alike
  for (const std::string& name : names_in(folder.empty() ? "." : folder.string())) {
    const std::filesystem::path file = folder / name;
    std::error_code ignored;
    if (file.extension() == ending && std::filesystem::is_regular_file(file, ignored)) {
      names.push_back(file.stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  const std::string near = did_you_mean(wanted.stem().string(), names);
  return near.empty() ? "" : (folder / (near + ending)).string();
}

std::string read_file(const std::string& path) {
  if (path == "-") {
    return read_all(STDIN_FILENO, "standard input");
  }
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd) {
    const int why = errno;
    const std::string near = why == ENOENT ? near_file(path) : "";
    fail_reading("cannot open " + path, why,
                 near.empty() ? "" : fmt::format("; did you mean {}?", near));
  }
  return read_all(fd.get(), path);
}

std::optional<std::string> read_if_readable(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return fd ? read_rest(fd.get()) : std::nullopt;
}

void write_file(const std::string& path, std::string_view content) {
  write_file(path, std::span(&content, 1));
}

void write_file(const std::string& path, std::span<const std::string_view> pieces,
                Readers readers) {
  const auto write_pieces = [&](int to, const std::string& name) {
    for (const std::string_view piece : pieces) {
      write_all(to, name, piece);
    }
  };
  if (path == "-") {
    write_pieces(STDOUT_FILENO, "standard output");
    return;
  }
  const bool is_private = readers == Readers::owner;
  struct stat existing {};
  const bool exists = !is_private && ::stat(path.c_str(), &existing) == 0;
  if (exists && !S_ISREG(existing.st_mode)) { // /dev/null, a pipe: nothing to replace
    const Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd) {
      fail_errno("cannot write " + path, errno);
    }
    write_pieces(fd.get(), path);
    return;
  }
  const std::filesystem::path target =
      is_private ? std::filesystem::path(path) : end_of_links(path);
  const std::filesystem::path folder = target.has_parent_path() ? target.parent_path() : ".";
  const mode_t mode = is_private ? 0600U : exists ? (existing.st_mode & 0777U) : 0644U;
  // A file without a name: if this process dies now, nothing is left.
  Fd fd(::open(folder.c_str(), O_TMPFILE | O_WRONLY | O_CLOEXEC, mode));
  const std::string temporary = fmt::format("{}.{:016x}.tmp", target.native(), secret_number());
  const bool nameless = static_cast<bool>(fd);
  if (!nameless) { // a file system without O_TMPFILE
    fd = Fd(::open(temporary.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, mode));
    if (!fd) {
      fail_errno("cannot write " + path, errno);
    }
  }
  try {
    write_pieces(fd.get(), path);
    if (exists && ::fchmod(fd.get(), mode) != 0) { // open() took the umask away
      fail_errno("cannot write " + path, errno);
    }
    if (::fsync(fd.get()) != 0) {
      fail_errno("cannot write " + path, errno);
    }
    if (nameless && ::linkat(AT_FDCWD, fmt::format("/proc/self/fd/{}", fd.get()).c_str(), AT_FDCWD,
                             temporary.c_str(), AT_SYMLINK_FOLLOW) != 0) {
      fail_errno("cannot write " + path, errno);
    }
    if (::rename(temporary.c_str(), target.c_str()) != 0) {
      fail_errno("cannot write " + path, errno);
    }
  } catch (...) {
    ::unlink(temporary.c_str());
    throw;
  }
}

void require_writable(const std::string& path) {
  if (path.empty() || path == "-") {
    return;
  }
  const std::filesystem::path target = end_of_links(path);
  std::error_code error;
  const auto type = std::filesystem::status(target, error).type();
  if (type == std::filesystem::file_type::directory) {
    fail_errno("cannot write " + path, EISDIR);
  }
  const bool replaced =
      type == std::filesystem::file_type::regular || type == std::filesystem::file_type::not_found;
  const std::filesystem::path folder = target.has_parent_path() ? target.parent_path() : ".";
  if (::access(replaced ? folder.c_str() : target.c_str(), W_OK) != 0) {
    fail_errno("cannot write " + path, errno);
  }
}

void sync_folder(const std::string& path) {
  const Fd fd(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd || ::fsync(fd.get()) != 0) {
    fail_errno("cannot sync " + path, errno);
  }
}

} // namespace reckon
