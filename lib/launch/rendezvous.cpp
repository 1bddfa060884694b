// SPDX-License-Identifier: Apache-2.0
#include "launch/rendezvous.hpp"

#include "core/clock.hpp"
#include "core/interrupt.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/secrets.hpp"
#include "core/threads.hpp"
#include "core/version.hpp"
#include "core/whole_number.hpp"
#include "launch/sockets.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <netdb.h>
#include <sys/socket.h>
#include <utility>

namespace reckon {
namespace {

constexpr std::int64_t k_second_ns = 1'000'000'000;
constexpr std::int64_t k_beat_ns = k_second_ns / 2;  ///< between two signs of life
constexpr std::int64_t k_grace_ns = 5 * k_second_ns; ///< from the bad news to the end, at most
constexpr std::int64_t k_farewell_ns = 2 * k_second_ns;
/// By which others let rank 0 be first to say who does not come: it knows.
constexpr std::int64_t k_deference_ns = 2 * k_second_ns;

constexpr std::size_t k_shown_bytes = 40; ///< of what a peer sent, in an error

std::string text_at(const Json& object, const char* key, const std::string& otherwise) {
  const auto it = object.find(key);
  return it != object.end() && it->is_string() ? one_line(it->get<std::string>()) : otherwise;
}

std::optional<int> number_at(const Json& object, const char* key) {
  const auto it = object.find(key);
  return it != object.end() && it->is_number() ? whole_number<int>(it->dump()) : std::nullopt;
}

/// What rank 0 packs for the others: "LENGTH:TEXT" of each rank, bytes of any kind.
std::string packed_texts(const std::vector<std::string>& texts) {
  std::string packed;
  for (const std::string& text : texts) {
    packed += fmt::format("{}:", text.size()) + text;
  }
  return packed;
}

/// Nothing when that is not what was packed of so many texts.
std::optional<std::vector<std::string>> unpacked_texts(std::string_view packed, std::size_t count) {
  std::vector<std::string> texts;
  while (!packed.empty()) {
    const std::size_t colon = std::min(packed.find(':'), packed.size());
    const auto length = whole_number<std::size_t>(packed.substr(0, colon));
    packed.remove_prefix(std::min(colon + 1, packed.size()));
    if (!length || *length > packed.size()) {
      return std::nullopt;
    }
    texts.emplace_back(packed.substr(0, *length));
    packed.remove_prefix(*length);
  }
  return texts.size() == count ? std::optional(texts) : std::nullopt;
}

} // namespace

Rendezvous::Rendezvous(JobEnvironment job, const std::string& digest, Seconds limit, Fd listener,
                       Seconds peer_limit, AfterNews after_news, std::stop_token cancel)
    : m_job(std::move(job)), m_host(one_line(host_name())), m_peer_limit_ns(to_ns(peer_limit)),
      m_after_news(after_news), m_cancel(std::move(cancel)),
      m_exceptions(std::uncaught_exceptions()) {
  if (m_job.size == 1) {
    return;
  }
  log(LogLevel::debug, "rendezvous");
  try {
    const std::int64_t deadline = deadline_after(limit);
    if (m_job.board) {
      listener = meet_at_board(m_job, limit);
    } else if (m_job.rank == 0 && !listener) {
      listener = listen_on_master_address(m_job);
    }
    if (m_job.rank == 0) {
      accept_all(std::move(listener), digest, deadline, limit);
    } else {
      connect_to_root(digest, deadline);
    }
    m_job.board.reset();
    const NoSignals quiet;
    m_watch = start_thread("the other ranks' news",
                           [this](const std::stop_token& stop) { keep_watch(stop); });
    measure_clock(limit);
  } catch (const std::exception& e) { // those who are here already learn why
    give_up(e);
    throw;
  }
}

Rendezvous::~Rendezvous() {
  m_watch.request_stop();
  if (m_watch.joinable()) {
    m_watch.join();
  }
  if (std::uncaught_exceptions() == m_exceptions && m_job.size > 1) {
    try {
      farewell();
    } catch (const std::exception& e) {
      log(LogLevel::debug, "at the end of the job: {}", e.what());
    }
  }
}

std::string Rendezvous::own_name() const {
  return fmt::format("rank {} ({})", m_job.rank, m_host);
}

std::string Rendezvous::name_of(const Peer& peer) const {
  return fmt::format("rank {} ({})", peer.rank, peer.connection.host);
}

void Rendezvous::declare(const std::string& trouble, bool tell) {
  if (m_trouble) {
    return;
  }
  m_trouble = trouble;
  m_trouble_ns = monotonic_ns();
  for (Peer& peer : m_peers) {
    if (tell && peer.connection.open()) {
      peer.connection.send(MessageKind::give_up, trouble);
    }
  }
}

void Rendezvous::raise_trouble() const {
  if (m_trouble) {
    throw PeerError(*m_trouble);
  }
  stop_if_cancelled();
}

void Rendezvous::stop_if_cancelled() const {
  if (m_cancel.stop_requested()) {
    fail(ErrorKind::operation, "cancelled");
  }
  stop_if_interrupted();
}

void Rendezvous::raise(const std::string& trouble) {
  declare(trouble);
  throw PeerError(*m_trouble);
}

// --- start ---------------------------------------------------------------------------------------

void Rendezvous::accept_all(Fd listener, const std::string& digest, std::int64_t deadline_ns,
                            Seconds limit) {
  const std::lock_guard lock(m_mutex);
  Reception reception(std::move(listener), m_job.token, static_cast<std::size_t>(m_job.size));
  m_peers.resize(static_cast<std::size_t>(m_job.size) - 1);
  for (int r = 1; r < m_job.size; ++r) {
    m_peers[static_cast<std::size_t>(r) - 1].rank = r;
  }
  for (;;) {
    raise_trouble();
    std::vector<int> absent;
    for (const Peer& p : m_peers) {
      if (!p.connection.open()) {
        absent.push_back(p.rank);
      }
    }
    if (absent.empty()) {
      return;
    }
    if (monotonic_ns() > deadline_ns) {
      raise(fmt::format("rank{} {} did not join within {}", absent.size() > 1 ? "s" : "",
                        fmt::join(absent, ", "), to_text(limit)));
    }
    std::vector<pollfd> fds;
    reception.add_to(fds);
    pump(deadline_ns, std::move(fds));
    for (Reception::Guest& guest : reception.admit()) {
      welcome(std::move(guest), digest, reception);
    }
  }
}

void Rendezvous::welcome(Reception::Guest guest, const std::string& digest, Reception& reception) {
  const Json& hello = guest.hello;
  Connection& connection = guest.connection;
  const std::string address = std::exchange(connection.host, text_at(hello, "host", "?"));
  const int rank = number_at(hello, "rank").value_or(-1);
  const int size = number_at(hello, "size").value_or(-1);
  const std::string version = text_at(hello, "reckon", "?"), plan = text_at(hello, "plan", "?");
  const std::string who = fmt::format("rank {} ({})", rank, connection.host);
  std::string problem;
  if (version != k_version) {
    problem = fmt::format("{} runs reckon {}, {} runs {}; install the same version", who, version,
                          own_name(), k_version);
  } else if (size != m_job.size) {
    problem = fmt::format("{} was started for a job of {} ranks, {} for one of {}; start all with "
                          "the same number",
                          who, size, own_name(), m_job.size);
  } else if (rank < 1 || rank >= m_job.size) {
    problem = fmt::format("{} joined, but the job has ranks 0 to {}", who, m_job.size - 1);
  } else if (plan != digest) {
    problem = fmt::format("{} was started with another plan ({}) than {} ({}); give all ranks the "
                          "same file",
                          who, plan, own_name(), digest);
  }
  Peer* const peer = problem.empty() ? &m_peers[static_cast<std::size_t>(rank) - 1] : nullptr;
  const bool taken = peer != nullptr && peer->connection.open();
  if (taken) {
    problem = fmt::format("rank {} is already here, from {}; this one from {} is refused", rank,
                          peer->connection.host, connection.host);
  }
  if (!problem.empty()) { // without a token it may be anybody, who ends no job and learns nothing
    connection.host = address;
    reception.refuse(connection, problem);
    if (!m_job.token.empty()) {
      connection.send(MessageKind::give_up, problem);
      if (!taken) {
        raise(problem);
      }
    }
    return;
  }
  peer->connection = std::move(connection);
  peer->connection.send(
      MessageKind::data,
      sealed(m_job.token, k_rank_0, text_at(hello, "nonce", ""), compact(Json{{"host", m_host}})));
  hear(*peer); // what it said in the same breath
}

void Rendezvous::connect_to_root(const std::string& digest, std::int64_t deadline_ns) {
  const std::lock_guard lock(m_mutex);
  m_peers.resize(1);
  Peer& root = m_peers.front();
  root.rank = 0;
  const auto call = [&] {
    root.connection = Connection(reach_root(deadline_ns), one_line(m_job.master_address));
    return introduce(root.connection, digest, deadline_ns);
  };
  while (!call()) {
    if (monotonic_ns() > deadline_ns) {
      raise(fmt::format("rank 0 at {} has no room for rank {}: too many others call it",
                        place_of_root(), m_job.rank));
    }
  }
  hear(root);
}

std::string Rendezvous::place_of_root() const {
  return fmt::format("{} port {}", one_line(m_job.master_address), m_job.master_port);
}

Fd Rendezvous::reach_root(std::int64_t deadline_ns) {
  for (;;) {
    stop_if_cancelled();
    int error = 0, rc = 0;
    const AddressList found = resolve(m_job.master_address, m_job.master_port, rc);
    // A machine that does not answer at one address may at the next.
    const std::int64_t next = std::min(deadline_ns, monotonic_ns() + 5 * k_second_ns);
    for (const addrinfo* a = found.get(); a != nullptr; a = a->ai_next) {
      if (Fd socket = connect_to(*a, next, error, [this] { stop_if_cancelled(); })) {
        return socket;
      }
    }
    if (monotonic_ns() > deadline_ns) {
      raise(fmt::format("{} cannot reach rank 0 at {}: {}", own_name(), place_of_root(),
                        rc != 0 ? gai_strerror(rc) : std::generic_category().message(error)));
    }
    // Rank 0 may not listen yet; on Kubernetes its name may not be known yet.
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
}

std::optional<std::string> Rendezvous::answer_of_root(Connection& root, std::int64_t deadline_ns) {
  for (;;) { // rank 0 may be busy before it lets anybody in: silence is no sign yet
    if (const std::optional<Message> message = root.next()) {
      if (message->kind == MessageKind::give_up) {
        declare(one_line(message->text), false);
        raise_trouble();
      }
      return message->kind == MessageKind::goodbye ? std::nullopt : std::optional(message->text);
    }
    if (!root.fault().empty()) {
      raise(fmt::format("rank 0 at {} let rank {} go before the job began: {}; it ended, or its "
                        "RECKON_JOB_TOKEN differs, or that is another program{}",
                        place_of_root(), m_job.rank, root.fault(),
                        m_job.token.empty() ? "; without a RECKON_JOB_TOKEN rank 0 alone says "
                                              "whether plans, versions or numbers of ranks differ"
                                            : ""));
    }
    if (monotonic_ns() > deadline_ns) {
      raise(fmt::format("rank 0 at {} does not answer rank {}", place_of_root(), m_job.rank));
    }
    pollfd polled{root.fd(), POLLIN, 0};
    ::poll(&polled, 1, poll_timeout_ms(deadline_ns));
    stop_if_cancelled();
    root.flush();
    root.receive();
  }
}

bool Rendezvous::introduce(Connection& root, const std::string& digest, std::int64_t deadline_ns) {
  const std::optional<std::string> challenge = answer_of_root(root, deadline_ns);
  if (!challenge) {
    return false;
  }
  const std::string nonce = fmt::format("{:016x}", secret_number());
  root.send(MessageKind::data, sealed(m_job.token, k_other_rank, *challenge,
                                      compact(Json{{"reckon", k_version},
                                                   {"rank", m_job.rank},
                                                   {"size", m_job.size},
                                                   {"plan", digest},
                                                   {"host", m_host},
                                                   {"nonce", nonce}})));
  const std::optional<std::string> answer = answer_of_root(root, deadline_ns);
  if (!answer) {
    return false;
  }
  const auto text = unsealed(m_job.token, k_rank_0, nonce, *answer);
  const Json welcome = text ? Json::parse(*text, nullptr, false) : Json();
  if (!welcome.is_object()) {
    raise(fmt::format("{} at {} does not know the token of rank {}: that is another program",
                      k_rank_0, place_of_root(), m_job.rank));
  }
  root.trust();
  root.host = text_at(welcome, "host", root.host);
  return true;
}

void Rendezvous::measure_clock(Seconds limit) {
  // Rank 0 answers each rank's eight pings in turn; the quickest round trip bounds the offset by
  // half its time.
  constexpr int k_pings = 8;
  const std::lock_guard lock(m_mutex);
  if (m_job.rank == 0) {
    for (Peer& peer : m_peers) {
      for (int i = 0; i < k_pings; ++i) {
        static_cast<void>(next_message(peer, limit, "the start"));
        peer.connection.send(MessageKind::data, std::to_string(monotonic_ns()));
      }
    }
    return;
  }
  std::int64_t best = INT64_MAX;
  for (int i = 0; i < k_pings; ++i) {
    const std::int64_t sent = monotonic_ns();
    m_peers.front().connection.send(MessageKind::data, "t");
    const std::string answer = next_message(m_peers.front(), limit, "the start");
    const std::int64_t back = monotonic_ns();
    const auto there = whole_number<std::int64_t>(answer);
    if (!there) {
      raise(fmt::format("{} sent '{}' instead of the time of its clock", name_of(m_peers.front()),
                        one_line(answer.substr(0, k_shown_bytes))));
    }
    if (back - sent < best) {
      best = back - sent;
      m_offset = {*there - (sent + back) / 2, (back - sent) / 2};
    }
  }
  if (std::abs(m_offset.offset_ns) <= m_offset.uncertainty_ns) {
    m_offset.offset_ns = 0; // the same machine's clock
  }
}

// --- news ----------------------------------------------------------------------------------------

void Rendezvous::pump(std::int64_t deadline_ns, std::vector<pollfd> more) {
  std::vector<pollfd>& fds = more;
  for (Peer& p : m_peers) {
    p.connection.flush();
    if (p.connection.open()) {
      const int events = POLLIN | (p.connection.sending() ? POLLOUT : 0);
      fds.push_back({p.connection.fd(), static_cast<short>(events), 0});
    }
  }
  const std::int64_t start = monotonic_ns();
  ::poll(fds.data(), fds.size(),
         poll_timeout_ms(m_next_beat_ns > 0 ? std::min(deadline_ns, m_next_beat_ns) : deadline_ns));
  const std::int64_t now = monotonic_ns();
  // If this process itself was not running (stopped, or the whole machine was), nobody can be
  // blamed for that time.
  const std::int64_t since = m_last_pump_ns == 0 ? start : m_last_pump_ns;
  constexpr std::int64_t k_longest_step_ns = 2 * k_beat_ns;
  const std::int64_t passed = std::min(now - since, k_longest_step_ns);
  m_last_pump_ns = now;
  for (Peer& peer : m_peers) {
    if (peer.connection.open()) {
      peer.connection.pass(passed);
      peer.connection.receive();
      hear(peer);
    }
  }
  if (now >= m_next_beat_ns) {
    m_next_beat_ns = now + k_beat_ns;
    for (Peer& peer : m_peers) {
      if (peer.connection.open() && !peer.left) {
        peer.connection.send(m_waiting ? MessageKind::waiting : MessageKind::beat, "");
      }
    }
  }
  // After a pause everybody has a beat's time to be heard of first, but who seldom runs has not.
  const bool paused = passed == k_longest_step_ns;
  if (!paused || m_paused) {
    check_silence();
  }
  m_paused = paused;
}

void Rendezvous::hear(Peer& peer) {
  while (std::optional<Message> message = peer.connection.next()) {
    switch (message->kind) {
    case MessageKind::data:
      peer.messages.push_back(std::move(message->text));
      break;
    case MessageKind::give_up:
      // Rank 0's word reaches everybody as it is; a rank's goes through rank 0.
      if (m_job.rank == 0) {
        declare(fmt::format("{} gave up: {}", name_of(peer), one_line(message->text)));
      } else {
        declare(one_line(message->text), false);
      }
      break;
    case MessageKind::beat:
      break;
    case MessageKind::waiting:
      peer.waited_ns = monotonic_ns();
      break;
    case MessageKind::goodbye:
      peer.left = true;
      if (m_job.rank == 0) {
        peer.connection.send(MessageKind::goodbye, "");
      }
      peer.connection.close();
      return;
    }
  }
  if (!peer.connection.fault().empty()) {
    if (!peer.left) {
      declare(fmt::format("{} died: {}", name_of(peer), peer.connection.fault()));
    }
    peer.connection.close();
  }
}

void Rendezvous::check_silence() {
  const Peer* longest = nullptr;
  std::size_t open = 0, quiet = 0;
  for (const Peer& peer : m_peers) {
    if (!peer.connection.open()) {
      continue;
    }
    ++open;
    quiet += peer.connection.silent_ns() > m_peer_limit_ns / 2 ? 1U : 0U;
    if (longest == nullptr || peer.connection.silent_ns() > longest->connection.silent_ns()) {
      longest = &peer;
    }
  }
  if (longest == nullptr || longest->connection.silent_ns() <= m_peer_limit_ns) {
    return;
  }
  const std::string limit = to_text(Seconds(static_cast<double>(m_peer_limit_ns) * 1e-9));
  if (open > 1 && quiet == open) {
    declare(fmt::format("{} has heard nothing of any other rank for {}: it is cut off", own_name(),
                        limit));
  } else {
    declare(fmt::format("{} was not heard of for {}: it was stopped, or its machine or a link "
                        "is down",
                        name_of(*longest), limit));
  }
}

void Rendezvous::keep_watch(const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock sleeping(mutex);
  while (!stop.stop_requested()) {
    never.wait_for(sleeping, stop, std::chrono::nanoseconds(k_beat_ns / 2), [] { return false; });
    const std::lock_guard lock(m_mutex); // whoever has it is at work here and needs no help
    if (stop.stop_requested()) {
      return;
    }
    const std::int64_t now = monotonic_ns();
    if (m_trouble && now - m_trouble_ns > k_grace_ns && m_after_news == AfterNews::end_process) {
      log_line(LogLevel::error, *m_trouble);
      ::_exit(k_exit_operation);
    }
    if (!m_trouble && !interrupted() && now - m_last_pump_ns > k_beat_ns / 2) {
      pump(now);
    }
  }
}

// --- steps ---------------------------------------------------------------------------------------

std::string Rendezvous::next_message(Peer& peer, Seconds limit, const std::string& doing) {
  const std::int64_t start = monotonic_ns();
  while (peer.messages.empty()) {
    raise_trouble();
    if (peer.left) {
      raise(fmt::format("{} left before the others were done ({})", name_of(peer), doing));
    }
    // While rank 0 waits itself it will say who does not come.
    const std::int64_t since =
        m_job.rank == 0 ? start : std::max(start, peer.waited_ns) + k_deference_ns;
    const std::int64_t deadline = since + to_ns(limit);
    if (monotonic_ns() > deadline) {
      raise(fmt::format("{} does not answer within {} ({})", name_of(peer), to_text(limit), doing));
    }
    pump(deadline);
  }
  std::string text = std::move(peer.messages.front());
  peer.messages.pop_front();
  return text;
}

void Rendezvous::send_out(std::int64_t deadline_ns) {
  for (Peer& peer : m_peers) {
    while (peer.connection.open() && peer.connection.sending()) {
      raise_trouble();
      if (monotonic_ns() > deadline_ns) {
        raise(fmt::format("{} does not take what it is sent", name_of(peer)));
      }
      pump(deadline_ns);
    }
  }
}

std::vector<std::string> Rendezvous::all_gather(const std::string& mine, Seconds limit) {
  if (m_job.size == 1) {
    return {mine};
  }
  const std::lock_guard lock(m_mutex);
  std::vector<std::string> all{mine};
  if (m_job.rank == 0) {
    m_waiting = true;
    for (Peer& peer : m_peers) {
      all.push_back(next_message(peer, limit, "waiting for everybody"));
    }
    m_waiting = false;
    const std::string packed = packed_texts(all);
    for (Peer& peer : m_peers) {
      peer.connection.send(MessageKind::data, packed);
    }
    send_out(deadline_after(limit)); // the last may have come just in time
    return all;
  }
  raise_trouble();
  m_peers.front().connection.send(MessageKind::data, mine);
  send_out(deadline_after(limit));
  const std::string packed = next_message(m_peers.front(), limit, "waiting for everybody");
  const auto texts = unpacked_texts(packed, static_cast<std::size_t>(m_job.size));
  if (!texts) {
    raise(fmt::format("{} sent '{}', which is not what each of {} ranks said",
                      name_of(m_peers.front()), one_line(packed.substr(0, k_shown_bytes)),
                      m_job.size));
  }
  return *texts;
}

std::string Rendezvous::broadcast(const std::string& from_root, Seconds limit) {
  const std::lock_guard lock(m_mutex);
  if (m_job.rank != 0) {
    return next_message(m_peers.front(), limit, "waiting for rank 0");
  }
  for (Peer& peer : m_peers) {
    peer.connection.send(MessageKind::data, from_root);
  }
  send_out(deadline_after(limit));
  return from_root;
}

void Rendezvous::watch(Seconds limit) {
  const std::lock_guard lock(m_mutex);
  raise_trouble();
  if (m_job.size == 1) {
    return;
  }
  pump(deadline_after(limit));
  raise_trouble();
}

void Rendezvous::blame_a_peer(Seconds patience) {
  const std::int64_t deadline = deadline_after(patience);
  while (m_job.size > 1 && monotonic_ns() < deadline) {
    watch(patience);
  }
}

// --- end -----------------------------------------------------------------------------------------

void Rendezvous::farewell() {
  const std::lock_guard lock(m_mutex);
  const std::int64_t deadline = monotonic_ns() + k_farewell_ns;
  if (m_trouble) {
    return;
  }
  if (m_job.rank != 0) {
    for (Peer& root : m_peers) {
      root.left = true;
      root.connection.send(MessageKind::goodbye, "");
    }
  }
  const auto connected = [](const Peer& p) { return p.connection.open(); };
  while (!m_trouble && monotonic_ns() < deadline &&
         std::any_of(m_peers.begin(), m_peers.end(), connected)) {
    pump(deadline);
  }
}

void Rendezvous::give_up(const std::exception& cause) noexcept {
  try {
    const std::lock_guard lock(m_mutex);
    // Rank 0 puts the names of others before what they say, and nobody puts its own.
    const bool own = m_job.rank == 0 && dynamic_cast<const PeerError*>(&cause) == nullptr;
    const Error error = as_error(cause);
    declare(own ? fmt::format("{} gave up: {}", own_name(), error.what()) : error.what());
    for (Peer& peer : m_peers) {
      peer.connection.flush();
      peer.connection.end_sending();
    }
    // Closing a socket with unread data resets it, and the reset overtakes what we just said: read
    // until the peers have closed too, but not for long, and not from one that is silent anyway.
    const std::int64_t deadline = monotonic_ns() + k_second_ns;
    while (monotonic_ns() < deadline) {
      std::vector<pollfd> fds;
      std::vector<Connection*> speaking;
      for (Peer& peer : m_peers) {
        Connection& c = peer.connection;
        if (c.open() && c.fault().empty() && c.silent_ns() <= m_peer_limit_ns / 2) {
          fds.push_back({c.fd(), POLLIN, 0});
          speaking.push_back(&c);
        }
      }
      if (fds.empty()) {
        break;
      }
      ::poll(fds.data(), fds.size(), poll_timeout_ms(deadline));
      for (Connection* const c : speaking) {
        c->receive();
        while (c->next()) {
        }
      }
    }
  } catch (const std::exception& e) {
    log(LogLevel::debug, "giving up: {}", e.what());
  }
}

} // namespace reckon
