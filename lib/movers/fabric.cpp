// SPDX-License-Identifier: Apache-2.0
#include "movers/fabric.hpp"

#include "core/child.hpp"
#include "core/error.hpp"
#include "core/json.hpp"
#include "core/whole_number.hpp"
#include "movers/fabric_lane.hpp"
#include "movers/fabric_ports.hpp"
#include "movers/handle.hpp"
#include "movers/mailbox.hpp"
#include "movers/shared_names.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <map>
#include <optional>
#include <thread>

#include <sys/mman.h>
#include <unistd.h>

namespace reckon {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t k_api = FI_VERSION(1, 17);
constexpr auto k_connect_limit = 60s; // without any sign of life from any peer

/// Providers that can do it on paper and are left out all the same.
std::optional<std::string> left_out(const std::string& provider) {
  if (provider == "shm") {
    return why_no_shared_memory();
  }
  if (provider == "sockets") {
    return "deprecated by libfabric, and stops moving after some hundred writes with data";
  }
  if (provider.find("ofi_rxd") != std::string::npos) {
    return "reliability in software over datagrams: meant for trials";
  }
  if (provider == "net" || provider.rfind("net;", 0) == 0) {
    return "libfabric's experimental copy of tcp";
  }
  if (provider == "tcp") { // libfabric 1.18 and later have it beside tcp;ofi_rxm
    return "the same connections as tcp;ofi_rxm, whose name is kept so that profiles stay "
           "comparable";
  }
  return std::nullopt;
}

/// A device that no hardware stands behind has no `device` beside its name in sysfs.
bool has_soft_rdma_device() {
  std::error_code ignored; // without RDMA there is no such folder
  const std::filesystem::directory_iterator devices("/sys/class/infiniband", ignored), end;
  return std::any_of(devices, end, [&](const auto& entry) {
    return !std::filesystem::exists(entry.path() / "device", ignored);
  });
}

/// ofi_rxm asks verbs for completion queues of 256 entries for each of FI_UNIVERSE_SIZE peers, by
/// default 256, and Soft-RoCE has 32767 at most: fi_enable fails with 128 peers or more (libfabric
/// 1.17). libfabric reads the variable at the first fi_getinfo of the process. What the user has
/// set stays.
void suit_soft_rdma(const std::string& transport) {
  if (over_verbs(transport) && has_soft_rdma_device()) {
    ::setenv("FI_UNIVERSE_SIZE", "127", 0);
  }
}

/// All that libfabric offers with what we need and `more` capabilities; null: nothing.
FiInfo query(std::uint64_t more = 0) {
  // ofi_rxm fills 16 KiB buffers for messages at each endpoint, which takes about 0.1 s and 30 MiB
  // a lane (measured, libfabric 1.17 on tcp). Our messages are 8 bytes, one for each peer; writes
  // use none of these buffers. libfabric reads the variable at the first fi_getinfo of the process.
  // What the kernel does not take at once the tcp provider would keep in a buffer of its own and
  // call sent: a rank that is done with its work and polls no more never sends it, and its peer
  // waits for ever (seen in one of some hundred streams over netlab, libfabric 1.17). Without that
  // buffer what is sent has left. What the user has set stays.
  static const int once =
      ::setenv("FI_OFI_RXM_BUFFER_SIZE", "1024", 0) | ::setenv("FI_TCP_STAGING_SBUF_SIZE", "0", 0);
  static_cast<void>(once);
  FiInfo hints(libfabric().dupinfo(nullptr)); // an empty one
  if (!hints) {
    fail(ErrorKind::operation, "fi_dupinfo: out of memory");
  }
  hints->caps = FI_MSG | FI_RMA | more;
  hints->mode = FI_CONTEXT | FI_CONTEXT2; // slots hold a fi_context2
  hints->ep_attr->type = FI_EP_RDM;
  hints->domain_attr->mr_mode =
      FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY | FI_MR_ENDPOINT;
  hints->domain_attr->threading = FI_THREAD_DOMAIN; // a lane is used by one thread
  hints->domain_attr->resource_mgmt = FI_RM_ENABLED;
  // We poll or wait all the time a transfer runs; a progress thread of the provider would only
  // compete for the core.
  hints->domain_attr->data_progress = FI_PROGRESS_MANUAL;
  hints->domain_attr->control_progress = FI_PROGRESS_MANUAL;
  fi_info* found = nullptr;
  const int status = libfabric().getinfo(k_api, nullptr, nullptr, 0, hints.get(), &found);
  if (status == -FI_ENODATA) {
    return nullptr;
  }
  check_fi(status, "fi_getinfo");
  return FiInfo(found);
}

std::vector<const fi_info*> named(const fi_info* list, const std::string& provider) {
  std::vector<const fi_info*> found;
  for (const fi_info* info = list; info != nullptr; info = info->next) {
    if (provider_of(*info) == provider) {
      found.push_back(info);
    }
  }
  return found;
}

std::uint64_t hex_number(const JsonView& view) {
  const auto value = whole_number<std::uint64_t>(view.string(), 16);
  if (!value) {
    view.fail("not a hexadecimal number");
  }
  return *value;
}

std::vector<unsigned char> from_hex(const JsonView& view) {
  const std::string text = view.string();
  std::vector<unsigned char> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    const auto byte = whole_number<unsigned char>(std::string_view(text).substr(i, 2), 16);
    if (!byte) {
      break;
    }
    bytes.push_back(*byte);
  }
  if (bytes.empty() || 2 * bytes.size() != text.size()) {
    view.fail("not hexadecimal");
  }
  return bytes;
}

class FabricMover final : public Mover {
public:
  FabricMover(const std::string& transport, const FabricEnvironment& environment,
              const Habits& habits)
      : m_transport(transport), m_habits(habits) {
    if (const auto reason = left_out(transport)) {
      fail(ErrorKind::unavailable, fmt::format("{}: {}", transport, *reason));
    }
    suit_soft_rdma(transport);
    if (transport == "shm") {
      remove_names_of_the_dead();
    }
    m_all = query();
    m_infos = named(m_all.get(), transport);
    if (m_infos.empty()) {
      fail(ErrorKind::unavailable, fmt::format("libfabric offers no provider {} here", transport));
    }
    std::stable_partition(m_infos.begin(), m_infos.end(), [](const fi_info* info) {
      return ip_of(*info).find('.') != std::string::npos;
    });
    choose(environment.address);
    const fi_info& info = *m_choices.front().infos.front();
    m_capabilities.name = transport;
    // Providers name this capability only to those who ask for it.
    const FiInfo far = query(FI_REMOTE_COMM);
    m_capabilities.crosses_machines = !named(far.get(), transport).empty();
    m_capabilities.max_write_bytes = info.ep_attr->max_msg_size;
    m_capabilities.max_in_flight = std::min(k_max_in_flight, info.tx_attr->size);
  }

  FabricMover(const FabricMover&) = delete;
  FabricMover& operator=(const FabricMover&) = delete;

  /// After an error peers may still be writing, and ~FabricLane cannot read ahead of them; over tcp
  /// fi_close crashes as well when writes were under way and the peer is dead or cut off. What it
  /// has open is left to the end of the process and the kernel, which closes it in one go.
  /// Only shm leaves something that the kernel does not know of, a name in /dev/shm.
  ~FabricMover() override {
    if ((m_abandoned || std::uncaught_exceptions() > 0) && m_transport != "shm") {
      // Kept where they can still be reached: what is left open on purpose is no leak.
      static auto* const left_open = new std::vector<std::unique_ptr<FabricLane>>();
      for (Choice& choice : m_choices) {
        for (auto& lane : choice.lanes) {
          left_open->push_back(std::move(lane));
        }
      }
    }
  }

  const MoverCapabilities& capabilities() const noexcept override { return m_capabilities; }

  std::vector<std::string> ports_here() const override { return ports_with_carrier(m_infos); }
  void use_ports(const std::vector<std::string>& ports) override {
    choose_ports(ports, "network port");
  }

  std::span<std::byte> allocate(std::uint64_t bytes) override {
    if (!m_choices.front().lanes.empty()) {
      fail(ErrorKind::internal, fmt::format("allocate({}): after open()", m_transport));
    }
    m_own_memory.emplace_back(-1, bytes, fmt::format("{} bytes", bytes), true, skew(m_habits));
    m_buffers.push_back(m_own_memory.back().bytes());
    return m_buffers.back();
  }

  void adopt(std::span<std::byte> buffer) override { m_buffers.push_back(buffer); }
  void abandon() noexcept override { m_abandoned = true; }

  void add_checksums() override {
    const bool room = std::ranges::all_of(m_choices, [](const Choice& choice) {
      return std::ranges::all_of(choice.infos, has_room_for_stamps);
    });
    if (!room || !m_habits.lane_is_plain()) {
      Mover::add_checksums();
    }
    m_checksums = true;
  }

  void open(int lanes) override {
    if (lanes < 1) {
      fail(ErrorKind::usage, fmt::format("open({}): {} lanes", m_transport, lanes));
    }
    for (Choice& choice : m_choices) {
      for (int lane = 0; lane < lanes; ++lane) {
        const fi_info* const info =
            choice.infos[static_cast<std::size_t>(lane) % choice.infos.size()];
        choice.lanes.push_back(m_habits.lane_is_plain()
                                   ? std::make_unique<FabricLane>(*info, m_buffers)
                                   : make_naive_fabric_lane(*info, m_buffers, m_habits));
        choice.lanes.back()->set_checksums(m_checksums);
      }
    }
  }

  std::string address() const override {
    Json choices = Json::array();
    for (const Choice& choice : m_choices) {
      Json lanes = Json::array();
      for (const auto& lane : choice.lanes) {
        lanes.push_back(lane->address());
      }
      choices.push_back({{"at", choice.at}, {"lanes", lanes}});
    }
    return Json{{"mover", m_transport},
                {"without", without_text(m_habits)},
                {"checksums", m_checksums},
                {"network", network_id()},
                {"choices", choices}}
        .dump();
  }

  void connect(int self, const std::vector<std::string>& addresses) override {
    const auto own = static_cast<std::size_t>(self);
    const std::string network = network_id();
    std::vector<Json> documents;
    bool one_network = true;
    for (std::size_t rank = 0; rank < addresses.size(); ++rank) {
      if (addresses[rank].empty()) {
        documents.emplace_back();
        continue;
      }
      documents.push_back(parse_json(addresses[rank], name_of_address(rank)));
      const JsonView view(documents.back(), name_of_address(rank));
      require_same_mover(m_transport, view.at("mover").string(), rank);
      view.only({"mover", "without", "checksums", "network", "choices"});
      require_same_habits(m_habits, view.at("without").string(), rank);
      if (view.at("checksums").boolean() != m_checksums) {
        fail(ErrorKind::operation,
             fmt::format("connect({}): rank {} was started {} checksums and rank {} {}; start all "
                         "with the same options",
                         m_transport, rank, m_checksums ? "without" : "with", self,
                         m_checksums ? "with" : "without"));
      }
      one_network = one_network && view.at("network").string() == network;
    }
    // With two choices the loopback one stands first.
    Choice chosen =
        std::move(one_network || m_choices.size() == 1 ? m_choices.front() : m_choices.back());
    m_choices.clear();
    m_choices.push_back(std::move(chosen));
    Choice& choice = m_choices.front();
    if (!one_network && is_loopback_ip(choice.at)) {
      fail(ErrorKind::unavailable,
           fmt::format("connect({}): the ranks are on more than one machine or network namespace, "
                       "and this one has only "
                       "{} to offer; set RECKON_FABRIC_ADDRESS to an address or interface that the "
                       "others reach",
                       m_transport, choice.at));
    }
    std::vector<std::vector<RemoteLane>> peers(choice.lanes.size(),
                                               std::vector<RemoteLane>(addresses.size()));
    for (std::size_t rank = 0; rank < addresses.size(); ++rank) {
      if (rank != own && !addresses[rank].empty()) {
        read_address(JsonView(documents[rank], name_of_address(rank)), rank, one_network, peers);
      }
    }
    if (m_transport == "shm") {
      require_room(choice.lanes.size() * (addresses.size() - 1));
    }
    for (std::size_t lane = 0; lane < choice.lanes.size(); ++lane) {
      choice.lanes[lane]->insert(own, std::move(peers[lane]));
    }
    greet_all(choice);
    for (auto& lane : choice.lanes) {
      lane->forget_name();
    }
  }

  MoverLane& lane(int index) override {
    return *m_choices.front().lanes.at(static_cast<std::size_t>(index));
  }

private:
  /// One way to bind: endpoints are opened for each, and connect() keeps one.
  struct Choice {
    std::vector<const fi_info*> infos; ///< lane i uses the i-th, in turn
    std::string at;                    ///< IP address; else the domain's name; of all infos
    std::vector<std::unique_ptr<FabricLane>> lanes;
  };

  /// Throws Error{operation} where there is no room to map the memory of so many lanes of peers,
  /// 16 MiB each: libfabric's shm would end the process then.
  static void require_room(std::size_t lanes) {
    const std::size_t bytes = (lanes + 1) << 24U;
    void* const room =
        ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) {
      fail_errno(fmt::format("connect(shm): no room for {} of the other ranks' memory",
                             to_text(Bytes(bytes))),
                 errno);
    }
    ::munmap(room, bytes);
  }

  static std::string name_of_address(std::size_t rank) {
    return fmt::format("address of rank {}", rank);
  }

  void choose_ports(const std::vector<std::string>& ports, const std::string& asked_by) {
    Choice choice;
    for (const std::string& port : ports) {
      const fi_info* const info = info_of_port(m_infos, port);
      if (info == nullptr) {
        fail(ErrorKind::unavailable,
             fmt::format("{} {}: {} has no such address, interface or domain", asked_by, port,
                         m_transport));
      }
      choice.infos.push_back(info);
      choice.at += (choice.at.empty() ? "" : ",") + name_of(*info);
    }
    m_capabilities.ports = ports;
    m_choices.clear();
    m_choices.push_back(std::move(choice));
  }

  void choose(const std::string& wanted) {
    if (!wanted.empty() && std::any_of(m_infos.begin(), m_infos.end(),
                                       [](const fi_info* i) { return !ip_of(*i).empty(); })) {
      choose_ports(words_of(wanted), "RECKON_FABRIC_ADDRESS");
      return;
    }
    const auto take = [&](auto&& fits_choice) {
      const auto it = std::find_if(m_infos.begin(), m_infos.end(), fits_choice);
      if (it != m_infos.end()) {
        m_choices.push_back({{*it}, name_of(**it), {}});
      }
    };
    take([&](const fi_info* info) { return is_loopback_ip(ip_of(*info)); });
    const bool link_local_only =
        std::none_of(m_infos.begin(), m_infos.end(), [](const fi_info* info) {
          return !is_loopback_ip(ip_of(*info)) && !is_link_local(ip_of(*info));
        });
    take([&](const fi_info* info) {
      const std::string ip = ip_of(*info);
      return !is_loopback_ip(ip) && (link_local_only || !is_link_local(ip));
    });
  }

  void read_address(const JsonView& view, std::size_t rank, bool one_network,
                    std::vector<std::vector<RemoteLane>>& peers) const {
    const std::vector<JsonView> choices = view.at("choices").elements();
    if (choices.empty()) {
      view.fail("no endpoint");
    }
    const JsonView& choice = one_network ? choices.front() : choices.back();
    const std::vector<JsonView> lanes = choice.at("lanes").elements();
    if (lanes.size() != peers.size()) {
      fail(ErrorKind::operation, fmt::format("connect({}): rank {} has {} lanes, this rank {}",
                                             m_transport, rank, lanes.size(), peers.size()));
    }
    for (std::size_t lane = 0; lane < lanes.size(); ++lane) {
      RemoteLane& remote = peers[lane][rank];
      remote.name = from_hex(lanes[lane].at("name"));
      remote.stamp = hex_number(lanes[lane].at("stamp"));
      for (const JsonView& buffer : lanes[lane].at("buffers").elements()) {
        remote.buffers.push_back({hex_number(buffer.at("base")), hex_number(buffer.at("key")),
                                  buffer.at("bytes").count()});
      }
      if (remote.buffers.empty()) {
        view.fail("no signal page");
      }
    }
  }

  /// All lanes take turns: none may wait while a peer is busy with another lane.
  void greet_all(Choice& choice) const {
    auto last_sign = std::chrono::steady_clock::now();
    std::chrono::nanoseconds pause = 20us;
    for (;;) {
      bool moved = false, done = true;
      for (auto& lane : choice.lanes) {
        if (!lane->connected()) {
          moved = lane->greet() || moved;
          done = done && lane->connected();
        }
      }
      if (done) {
        return;
      }
      const auto now = std::chrono::steady_clock::now();
      if (moved) {
        last_sign = now;
        pause = 20us;
        continue;
      }
      if (now - last_sign > k_connect_limit) {
        for (std::size_t lane = 0; lane < choice.lanes.size(); ++lane) {
          if (!choice.lanes[lane]->connected()) {
            fail(ErrorKind::operation, fmt::format("connect({}): no answer from rank {} on lane {} "
                                                   "within {} s; from {}, is it reachable?",
                                                   m_transport, choice.lanes[lane]->missing(), lane,
                                                   k_connect_limit.count(), choice.at));
          }
        }
      }
      meanwhile();
      std::this_thread::sleep_for(pause);
      pause = std::min<std::chrono::nanoseconds>(2 * pause, 1ms);
    }
  }

  std::string m_transport;
  Habits m_habits;
  MoverCapabilities m_capabilities;
  FiInfo m_all;
  std::vector<const fi_info*> m_infos; ///< of this transport; those with IPv4 addresses first
  std::vector<Mapping> m_own_memory;
  std::vector<std::span<std::byte>> m_buffers; // before the lanes, which register them
  std::vector<Choice> m_choices;
  bool m_abandoned = false, m_checksums = false;
};

/// A line for each provider: its name, or "name: why it is left out".
std::string describe_providers() {
  std::map<std::string, std::string> found; // name -> why not; empty: take it
  const FiInfo all = query();
  for (const fi_info* info = all.get(); info != nullptr; info = info->next) {
    const std::string name = provider_of(*info);
    if (const auto reason = left_out(name)) {
      found.emplace(name, *reason);
    } else if (info->domain_attr->cq_data_size < sizeof(std::uint32_t)) {
      found.emplace(name, "carries fewer than 4 bytes of completion data");
    } else {
      found[name].clear();
    }
  }
  if (!found.contains("shm")) { // libfabric does not say why it leaves it out
    found.emplace("shm",
                  left_out("shm").value_or("libfabric does not offer it: /dev/shm may be too "
                                           "small, or FI_PROVIDER leaves it out"));
  }
  std::string text;
  for (const auto& [name, reason] : found) {
    text += name + (reason.empty() ? "" : ": " + reason) + "\n";
  }
  return text;
}

/// describe_providers() in a child process; a line "fabric: ..." when that does not work.
///
/// libfabric keeps what its providers open at the first call, and a verbs endpoint made in a forked
/// child of a process that has called it never connects (seen with libfabric 1.17 and Soft-RoCE).
/// So the process that starts ranks must not call it itself. It also stays free of the signal
/// handlers that the shm provider installs.
std::string providers_told_by_child() {
  constexpr Seconds k_limit{10}; // it takes less than one
  try {
    return answer_of_child(&describe_providers, k_limit);
  } catch (const Error& error) {
    return fmt::format("fabric: looking for providers: {}; try FI_PROVIDER=tcp,shm\n",
                       error.what());
  }
}

} // namespace

FabricEnvironment FabricEnvironment::read() {
  FabricEnvironment environment;
  if (const char* text = std::getenv("RECKON_FABRIC_ADDRESS")) {
    environment.address = text;
  }
  return environment;
}

std::vector<std::string> fabric_transports(std::vector<std::string>* why_not) {
  std::vector<std::string> names;
  std::vector<std::string> reasons;
  try {
    static_cast<void>(libfabric()); // here, and not by each of the children to come
  } catch (const Error& error) {
    if (why_not != nullptr) {
      why_not->push_back(std::string("fabric: ") + error.what());
    }
    return names;
  }
  std::string text = providers_told_by_child();
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string line = text.substr(0, end);
    text.erase(0, end == std::string::npos ? end : end + 1);
    (line.find(": ") == std::string::npos ? names : reasons).push_back(line);
  }
  if (why_not != nullptr) {
    why_not->insert(why_not->end(), reasons.begin(), reasons.end());
  }
  std::stable_partition(names.begin(), names.end(),
                        [](const std::string& name) { return name == "shm"; });
  return names;
}

std::unique_ptr<Mover> make_fabric_mover(const std::string& transport,
                                         const FabricEnvironment& environment,
                                         const Habits& habits) {
  return std::make_unique<FabricMover>(transport, environment, habits);
}

} // namespace reckon
