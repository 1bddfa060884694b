// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <csignal>
#include <cstdio>
#include <memory>
#include <string>
#include <sys/types.h>

namespace gnuplotio {
class Gnuplot;
}

namespace reckon {

/// A child that ends before it has read everything must not end us: SIGPIPE is blocked in this
/// thread, and one that has come meanwhile is removed.
class PipeSignalBlocked {
public:
  PipeSignalBlocked();
  PipeSignalBlocked(const PipeSignalBlocked&) = delete;
  PipeSignalBlocked& operator=(const PipeSignalBlocked&) = delete;
  ~PipeSignalBlocked();
  [[nodiscard]] const sigset_t& before() const { return m_before; }

private:
  sigset_t m_pipe{};
  sigset_t m_before{};
};

/// One gnuplot process that draws one picture. out() is its input; its picture goes through
/// standard output into an unnamed file, without a shell or a file name. Stays in the thread that
/// made it.
class GnuplotProcess {
public:
  /// Starts it with a terminal for `path`'s ending. Throws as plot.hpp says.
  GnuplotProcess(std::string path, int width, int height);
  GnuplotProcess(const GnuplotProcess&) = delete;
  GnuplotProcess& operator=(const GnuplotProcess&) = delete;
  ~GnuplotProcess();

  /// Commands and data. Only numbers and quoted text may be written to it.
  [[nodiscard]] gnuplotio::Gnuplot& out() { return *m_out; }
  /// Ends the input, waits, and writes the picture to the path. Throws Error{operation} with
  /// gnuplot's words.
  void finish();

private:
  struct CloseFile {
    void operator()(std::FILE* file) const noexcept { static_cast<void>(std::fclose(file)); }
  };
  using File = std::unique_ptr<std::FILE, CloseFile>;
  [[nodiscard]] int end_input_and_wait();

  PipeSignalBlocked m_blocked; // outlives all that writes
  std::string m_path;
  File m_picture, m_messages;
  pid_t m_child = -1;
  std::unique_ptr<gnuplotio::Gnuplot> m_out;
};

} // namespace reckon
