// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace reckon {

/// Move-only owner of a file descriptor. Held as a member it also closes the descriptor when the
/// owning constructor throws after acquiring it.
class Fd {
public:
  Fd() = default;
  explicit Fd(int fd) : m_fd(fd) {}
  Fd(Fd&& other) noexcept : m_fd(other.release()) {}
  Fd& operator=(Fd&& other) noexcept;
  Fd(const Fd&) = delete;
  Fd& operator=(const Fd&) = delete;
  ~Fd();
  [[nodiscard]] int get() const noexcept { return m_fd; }
  [[nodiscard]] explicit operator bool() const noexcept { return m_fd >= 0; }
  int release() noexcept {
    const int fd = m_fd;
    m_fd = -1;
    return fd;
  }

private:
  int m_fd = -1;
};

/// The whole file; "-" is standard input. Throws Error{input} naming the file, and where there is
/// none the nearest one in its folder; Error{operation} when it is not the file that is wrong.
[[nodiscard]] std::string read_file(const std::string& path);

/// The names of a folder's entries, in any order: those that can be listed, for a folder may be
/// missing, or that of another machine may go while it is read.
[[nodiscard]] std::vector<std::string> names_in(const std::string& folder);

/// The file of `path`'s folder with the same ending (.json where it has none) whose name is nearest
/// to this one's; empty: none is near.
[[nodiscard]] std::string near_file(const std::string& path);

/// The whole file; absent when it is missing or cannot be read, as the speed of a network port that
/// is down.
[[nodiscard]] std::optional<std::string> read_if_readable(const std::string& path);

/// Who may read a file that is written anew.
enum class Readers {
  all,   ///< as the umask says; an existing file keeps its mode
  owner, ///< nobody else, and a link of that name is replaced, not followed
};

/// All or nothing: readers see the old file or the whole new one, and an interrupted write leaves
/// nothing behind. "-" is standard output. Throws Error{operation} naming the file.
void write_file(const std::string& path, std::string_view content);
/// The same for content in consecutive pieces.
void write_file(const std::string& path, std::span<const std::string_view> pieces,
                Readers readers = Readers::all);

/// Throws the error of write_file() as far as it can be known before the content exists: long work
/// should not end without a place for its result. An empty path is no file.
void require_writable(const std::string& path);

/// Makes creations, renames and removals in a folder durable against a loss of power. Throws
/// Error{operation} naming the folder.
void sync_folder(const std::string& path);

} // namespace reckon
