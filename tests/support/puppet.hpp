// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/json.hpp"
#include "core/version.hpp"
#include "launch/rendezvous.hpp"
#include "launch/sockets.hpp"
#include "support/local_job.hpp"

#include <gtest/gtest.h>

#include <arpa/inet.h>
#include <functional>
#include <netinet/in.h>
#include <optional>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <thread>
#include <utility>

namespace reckon::support {

/// What a call throws as PeerError; empty when it does not.
template <class Call>
[[nodiscard]] std::string peer_error_of(Call call) {
  try {
    call();
    return "";
  } catch (const PeerError& e) {
    return e.what();
  }
}

/// A rank of a job whose rank 0 listens at `port`, or is this one with `listener`.
inline Rendezvous joined(int rank, int size, int port, Fd listener = Fd(),
                         Seconds peer_limit = k_default_peer_limit) {
  return {job(rank, size, port), "plan", k_limit, std::move(listener), peer_limit};
}

/// A rank, or rank 0, that says what a test wants it to.
class Puppet {
public:
  explicit Puppet(Fd socket) : m_connection(std::move(socket), "puppet") { m_connection.trust(); }
  static Fd call(int port) {
    Fd socket(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(static_cast<std::uint16_t>(port));
    static_cast<void>(
        ::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address));
    return socket;
  }
  static Puppet calling(int port) { return Puppet(call(port)); }
  static Puppet called(const Listener& listener) {
    return Puppet(Fd(::accept(listener.socket.get(), nullptr, nullptr)));
  }
  /// As a rank, to a rank 0 that has just been called.
  void introduce(const Json& hello, const std::string& token = "secret") {
    say(sealed(token, k_other_rank, hear().text, hello.dump()));
  }
  /// As rank 0, to a rank that has just called.
  void welcome(const std::string& token = "secret") {
    say("a nonce");
    const auto hello = unsealed("secret", k_other_rank, "a nonce", hear().text);
    ASSERT_TRUE(hello);
    say(sealed(token, k_rank_0, Json::parse(*hello).at("nonce").get<std::string>(),
               R"({"host": "throne"})"));
  }
  void say(const std::string& text) { m_connection.send(MessageKind::data, text); }
  void say_raw(const std::string& bytes) const {
    EXPECT_EQ(::send(m_connection.fd(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  /// Whether there still is somebody to say it to.
  [[nodiscard]] bool try_to_say(char byte) const {
    return ::send(m_connection.fd(), &byte, 1, MSG_NOSIGNAL) == 1;
  }
  /// The next message that is no sign of life; what broke the connection if none comes.
  Message hear() {
    for (;;) {
      while (std::optional<Message> message = m_connection.next()) {
        if (message->kind != MessageKind::beat && message->kind != MessageKind::waiting) {
          return *message;
        }
      }
      if (!m_connection.fault().empty()) {
        return {MessageKind::goodbye, m_connection.fault()};
      }
      pollfd fd{m_connection.fd(), POLLIN, 0};
      if (::poll(&fd, 1, 20'000) <= 0) {
        return {MessageKind::goodbye, "nothing in 20 s"};
      }
      m_connection.receive();
    }
  }

private:
  Connection m_connection;
};

inline Json hello(int rank, int size) {
  return {{"reckon", k_version}, {"rank", rank},    {"size", size},
          {"plan", "plan"},      {"host", "ghost"}, {"nonce", "mine"}};
}

/// What rank 0 of a job of `size` throws while `body(port)` plays the others.
[[nodiscard]] inline std::string error_of_root(int size, const std::function<void(int port)>& body,
                                               Seconds peer_limit = k_default_peer_limit) {
  Listener listener = listen_locally();
  const int port = listener.port;
  std::string error;
  std::jthread root([&] {
    try {
      Rendezvous r(job(0, size, port), "plan", k_limit, std::move(listener.socket), peer_limit);
      static_cast<void>(r.all_gather("", k_limit));
    } catch (const Error& e) {
      error = e.what();
      EXPECT_EQ(e.kind(), ErrorKind::operation);
    }
  });
  body(port);
  root.join();
  return error;
}

} // namespace reckon::support
