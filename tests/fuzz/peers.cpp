// SPDX-License-Identifier: Apache-2.0
//
// What other processes say: launchers, ranks, and ranks of former runs.
#include "target.hpp"

#include "core/digest.hpp"
#include "core/json.hpp"
#include "core/version.hpp"
#include "launch/connection.hpp"
#include "launch/environment.hpp"
#include "launch/reception.hpp"
#include "launch/sockets.hpp"
#include "run/checkpoint_files.hpp"
#include "support/every_peer_field.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdlib>
#include <stop_token>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>
#include <utility>

namespace reckon::fuzz {
namespace {

struct SocketPair {
  Fd ours, theirs;
  SocketPair() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
      broken("no socket pair");
    }
    ours = Fd(ends[0]);
    theirs = Fd(ends[1]);
  }
};

std::string frame(char kind, const std::string& text) {
  std::string bytes(1, kind);
  for (unsigned shift = 0; shift < 32; shift += 8) {
    bytes += static_cast<char>(text.size() >> shift & 0xffU);
  }
  return bytes + text;
}

/// As many of them as a socket takes at once.
void say(const Fd& socket, std::string_view bytes) {
  static_cast<void>(::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT));
  ::shutdown(socket.get(), SHUT_WR);
}

/// Until the other side closes.
void hear_all(const Fd& socket) {
  std::array<char, 4096> heard; // NOLINT: filled by recv
  while (::recv(socket.get(), heard.data(), heard.size(), 0) > 0) {
  }
}

/// The text of the next frame; short where the other side closes first.
std::string hear_frame(const Fd& socket) {
  const auto hear = [&](std::size_t bytes) {
    std::string heard(bytes, '\0');
    const ssize_t n = ::recv(socket.get(), heard.data(), bytes, MSG_WAITALL);
    heard.resize(static_cast<std::size_t>(std::max<ssize_t>(n, 0)));
    return heard;
  };
  const std::string header = hear(5);
  return header.size() < 5 ? ""
                           : hear(static_cast<unsigned char>(header[1]) +
                                  (std::size_t{static_cast<unsigned char>(header[2])} << 8U));
}

/// `bytes`, whose first frame gets the proof that its sender knows the token.
std::string proved(std::string_view bytes, const std::string& token, std::string_view sender,
                   const std::string& nonce) {
  constexpr std::size_t k_header = 5;
  std::size_t length = 0;
  for (std::size_t i = 4; i > 0 && bytes.size() >= k_header; --i) {
    length = length << 8U | static_cast<unsigned char>(bytes[i]);
  }
  if (bytes.size() < k_header || length > bytes.size() - k_header) {
    return std::string(bytes); // no whole frame
  }
  const std::string_view rest = bytes.substr(k_header + length);
  return frame(bytes[0],
               sealed(token, sender, nonce, std::string(bytes.substr(k_header, length)))) +
         std::string(rest);
}

/// The first byte decides whether the sender is trusted.
bool read_frames(std::string_view bytes) {
  SocketPair pair;
  Connection connection(std::move(pair.ours), "peer");
  if (!bytes.empty() && bytes.front() % 2 == 0) {
    connection.trust();
  }
  bytes.remove_prefix(std::min<std::size_t>(bytes.size(), 1));
  say(pair.theirs, bytes);
  while (connection.fault().empty()) {
    connection.receive();
  }
  std::size_t at = 0;
  while (const auto message = connection.next()) {
    constexpr std::size_t k_header = 5;
    at += k_header + message->text.size();
    if (at > bytes.size() ||
        bytes.substr(at - message->text.size(), message->text.size()) != message->text) {
      broken("a message that nobody sent");
    }
  }
  return at > 0;
}

bool read_peer_message(std::string_view bytes) {
  test::EveryPeerField message;
  const auto read = [&](const std::string& text) {
    return value_or_refusal(
        [&] {
          fields_from_text(message.fields(), text, "rank 1");
          return fields_to_text(message.fields());
        },
        {ErrorKind::operation});
  };
  const auto text = read(std::string(bytes));
  if (text && read(*text) != text) {
    broken("a message changes when it is written and read");
  }
  return text.has_value();
}

constexpr const char* k_token = "secret";
constexpr Seconds k_limit{60}; ///< never waited for: the others' connections end

/// The frames of rank 1 that joins, is asked the time, and takes part in one gather.
std::string good_rank() {
  const Json hello{{"reckon", k_version}, {"rank", 1},       {"size", 2},
                   {"plan", "digest"},    {"host", "there"}, {"nonce", "mine"}};
  std::string bytes = frame('d', hello.dump());
  for (int ping = 0; ping < 8; ++ping) {
    bytes += frame('d', "t");
  }
  return bytes + frame('h', "") + frame('d', "mine");
}

struct Address {
  sockaddr_un any{};
  socklen_t length = sizeof(sa_family_t); ///< of this length it gets a free name from the kernel
  Address() { any.sun_family = AF_UNIX; }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&any); }
};

/// All that a process which knows the token sends to a rank 0 of two. The job ends when that
/// process is turned away.
bool join_rank_0(std::string_view bytes) {
  const auto make_socket = [] { return Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)); };
  Fd listener = make_socket();
  const Fd stranger = make_socket(), alarm = make_socket();
  Address address;
  if (::bind(listener.get(), address.get(), address.length) != 0 ||
      ::listen(listener.get(), 2) != 0 ||
      ::getsockname(listener.get(), address.get(), &(address.length = sizeof address.any)) != 0 ||
      ::connect(stranger.get(), address.get(), address.length) != 0) {
    broken("no socket");
  }
  std::stop_source cancel;
  const std::jthread hearing([&] {
    say(stranger, proved(bytes, k_token, k_other_rank, hear_frame(stranger)));
    hear_all(stranger);
    cancel.request_stop();
    ::connect(alarm.get(), address.get(), address.length); // rank 0 looks up
  });
  JobEnvironment job;
  job.size = 2;
  job.token = k_token;
  const auto gathered = value_or_refusal(
      [&] {
        Rendezvous rendezvous(job, "digest", k_limit, std::move(listener), k_default_peer_limit,
                              AfterNews::stay, cancel.get_token());
        return rendezvous.all_gather("ours", k_limit).size();
      },
      {ErrorKind::operation});
  return gathered == 2;
}

/// All that a rank 1 hears from the process at rank 0's address, which welcomes it first.
bool join_as_rank_1(std::string_view bytes) {
  static const Listener listener = listen_locally();
  static const std::string k_challenge = frame('d', "nonce");
  std::jthread root([&] {
    const Fd rank(::accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
    static_cast<void>(::send(rank.get(), k_challenge.data(), k_challenge.size(), MSG_NOSIGNAL));
    const std::string hello = hear_frame(rank);
    constexpr std::size_t k_proof = 64;
    const Json said = Json::parse(hello.substr(std::min(k_proof, hello.size())), nullptr, false);
    say(rank, proved(bytes, "", k_rank_0, said.is_object() ? said.value("nonce", "") : ""));
    hear_all(rank);
    const linger reset{.l_onoff = 1, .l_linger = 0}; // or thousands of ports would wait
    ::setsockopt(rank.get(), SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  });
  JobEnvironment job;
  job.rank = 1;
  job.size = 2;
  job.master_address = "127.0.0.1";
  job.master_port = listener.port;
  const auto gathered = value_or_refusal(
      [&] {
        Rendezvous rendezvous(job, "digest", k_limit, Fd(), k_default_peer_limit, AfterNews::stay);
        return rendezvous.all_gather("ours", k_limit).size();
      },
      {ErrorKind::operation});
  return gathered == 2;
}

/// The frames of a rank 0 that lets rank 1 in, tells the time and gathers.
std::string good_root() {
  std::string bytes = frame('d', R"({"host":"here"})");
  for (int ping = 0; ping < 8; ++ping) {
    bytes += frame('d', "123456789");
  }
  return bytes + frame('w', "") + frame('d', "6:theirs4:ours");
}

/// Lines of NAME=VALUE for the variables that launchers set.
bool read_environment(std::string_view text) {
  constexpr std::array<const char*, 14> k_names{"RANK",
                                                "WORLD_SIZE",
                                                "LOCAL_RANK",
                                                "LOCAL_WORLD_SIZE",
                                                "MASTER_ADDR",
                                                "MASTER_PORT",
                                                "RECKON_RANK",
                                                "RECKON_WORLD_SIZE",
                                                "RECKON_JOB_TOKEN",
                                                "TORCHELASTIC_USE_AGENT_STORE",
                                                "PMI_RANK",
                                                "PMI_SIZE",
                                                "SLURM_PROCID",
                                                "SLURM_STEP_NUM_TASKS"};
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    for (const char* name : k_names) {
      if (line.starts_with(std::string(name) + "=")) {
        ::setenv(name, line.c_str() + std::string_view(name).size() + 1, 1);
      }
    }
  }
  const auto job = value_or_refusal([] { return job_from_environment(); },
                                    {ErrorKind::usage, ErrorKind::unavailable});
  for (const char* name : k_names) {
    ::unsetenv(name);
  }
  if (job && *job) {
    const JobEnvironment& is = **job;
    if (is.rank < 0 || is.rank >= is.size || is.local_rank < 0 || is.local_rank >= is.local_size ||
        is.local_size > is.size || is.master_port < 0 || is.master_port > 65535) {
      broken("a place in a job that cannot be");
    }
  }
  return job && *job;
}

// --- checkpoints ---------------------------------------------------------------------------------

constexpr std::uint64_t k_step = 12;
const CheckpointJob k_job{.plan = "digest", .rank = 0, .ranks = 2};

RankProgram saving_program() {
  RankProgram program;
  program.saved = {{.kept = {.array = 0, .gradient_offset = 0, .bytes = 16, .at = {}}, .copy = {}},
                   {.kept = {.array = 1, .gradient_offset = 16, .bytes = 8, .at = {}}, .copy = {}}};
  return program;
}

/// The header of a file of a checkpoint: data as many as it says and a right digest follow, but for
/// an input without an end of line, which is a whole file.
bool read_checkpoint(std::string_view header) {
  const RankProgram saving = saving_program();
  std::string content(header);
  std::string digest;
  if (header.ends_with('\n')) {
    const Json json = Json::parse(header, nullptr, false);
    const bool says =
        json.is_object() && json.contains("bytes") && json["bytes"].is_number_unsigned();
    const std::uint64_t bytes = says ? json["bytes"].get<std::uint64_t>() : 0;
    content.append(std::min<std::uint64_t>(bytes, 1024), '\x2a');
    digest = digest_of(content);
    content += digest + "\n";
  }
  const std::string part = file_with("step-00000012.rank-0000.bin", content);
  static_cast<void>(file_with("step-00000012.complete", content));
  const CheckpointFolder folder(part.substr(0, part.rfind('/')));
  value_or_refusal([&] { return read_sealed(part).data.size(); });
  const auto read =
      value_or_refusal([&] { return read_part(folder, k_job, k_step, digest, saving); });
  if (read && read->data.size() != saved_bytes(saving)) {
    broken("a part of another size than its layout's");
  }
  bool foreign = false;
  const auto manifest =
      value_or_refusal([&] { return read_manifest(folder, k_job, k_step, foreign); });
  if (manifest && (foreign || manifest->step != k_step || manifest->digests.size() != 2)) {
    broken("a manifest of something else");
  }
  return read || manifest;
}

std::vector<std::string> checkpoint_headers() {
  Json part{{"schema", "reckon/checkpoint-part"},
            {"schema_version", 1},
            {"tool", k_version},
            {"plan", k_job.plan},
            {"ranks", 2},
            {"step", k_step},
            {"rank", 0},
            {"optimizer", "adam"},
            {"bytes", 24}};
  part["layout"] = {{0, 0, 16}, {1, 16, 8}};
  Json manifest = part;
  manifest["schema"] = "reckon/checkpoint";
  manifest["bytes"] = 0;
  manifest["parts"] = {digest_of("a"), digest_of("b")};
  return {part.dump() + "\n", manifest.dump() + "\n"};
}

} // namespace

std::vector<Target> peer_targets() {
  return {
      {"frames", read_frames,
       [] {
         return std::vector{"\x01" + good_rank(), "\x02" + good_rank()};
       }},
      {"peer-message", read_peer_message,
       [] { return std::vector{fields_to_text(test::EveryPeerField().fields())}; }, true},
      {"rendezvous", join_rank_0, [] { return std::vector{good_rank()}; }},
      {"rank-0", join_as_rank_1, [] { return std::vector{good_root()}; }},
      {"environment", read_environment},
      {"checkpoint", read_checkpoint, checkpoint_headers, true},
  };
}

} // namespace reckon::fuzz
