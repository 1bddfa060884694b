// SPDX-License-Identifier: Apache-2.0
#include "launch/environment.hpp"

#include "core/error.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/secrets.hpp"
#include "core/whole_number.hpp"
#include "launch/peer_error.hpp"
#include "launch/sockets.hpp"
#ifdef RECKON_HAVE_PMIX
#include "launch/pmix.hpp"
#endif

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <vector>

namespace reckon {
namespace {

constexpr const char* k_no_token =
    "whoever has the plan may join: set RECKON_JOB_TOKEN to a secret, "
    "the same at all ranks, to keep strangers out";

/// The variable's text; nothing when it is not set or empty.
std::optional<std::string> variable(const char* name) {
  const char* const text = std::getenv(name);
  return text != nullptr && *text != '\0' ? std::optional<std::string>(text) : std::nullopt;
}

/// One of those that say who a process is in a job. With a prefix of our own they go before the
/// common ones, which a framework in the same process may have taken for its own world.
struct JobVariable {
  std::string name; ///< as it is set
  std::optional<std::string> text;
};

JobVariable job_variable(const char* name) {
  const std::string own = std::string("RECKON_") + name;
  if (std::optional<std::string> text = variable(own.c_str())) {
    return {own, std::move(text)};
  }
  return {name, variable(name)};
}

int number_in(const JobVariable& variable, int low, int high) {
  const std::optional<int> value = whole_number<int>(*variable.text);
  if (!value || *value < low || *value > high) {
    fail(ErrorKind::usage, fmt::format("{} is '{}'; it must be a whole number from {} to {}",
                                       variable.name, one_line(*variable.text), low, high));
  }
  return *value;
}

JobEnvironment job_from_variables(const JobVariable& rank, const JobVariable& size) {
  constexpr int k_most_ranks = 1 << 20;
  JobEnvironment job;
  job.size = number_in(size, 1, k_most_ranks);
  job.rank = number_in(rank, 0, job.size - 1);
  const JobVariable local_size = job_variable("LOCAL_WORLD_SIZE");
  const JobVariable local_rank = job_variable("LOCAL_RANK");
  if (local_size.text) {
    job.local_size = number_in(local_size, 1, job.size);
  }
  if (local_rank.text) { // some launchers set it without the size
    job.local_rank = number_in(local_rank, 0, (local_size.text ? job.local_size : job.size) - 1);
    job.local_size = std::max(job.local_size, job.local_rank + 1);
  }
  const JobVariable address = job_variable("MASTER_ADDR");
  const JobVariable port = job_variable("MASTER_PORT");
  if (job.size > 1 && (!address.text || !port.text)) {
    fail(ErrorKind::usage,
         "WORLD_SIZE is greater than 1: set MASTER_ADDR and MASTER_PORT to where rank 0 listens");
  }
  job.master_address = address.text.value_or("127.0.0.1");
  if (port.text) {
    constexpr int k_last_port = 65535;
    job.master_port = number_in(port, 1, k_last_port);
    // torchrun's own agent listens on that port and tells so; the next one is ours.
    if (variable("TORCHELASTIC_USE_AGENT_STORE").value_or("") == "True" &&
        port.name == "MASTER_PORT" && job.master_port < k_last_port) {
      ++job.master_port;
    }
  }
  job.token = variable(k_token_variable).value_or("");
  return job;
}

/// Launchers that would start the whole job once a process.
void refuse_other_launchers() {
  const std::string pmi_size = variable("PMI_SIZE").value_or("1");
  if (variable("PMI_RANK") && pmi_size != "1") {
    fail(ErrorKind::unavailable,
         fmt::format("a launcher that speaks PMI, not PMIx, has started {} processes; use srun "
                     "--mpi=pmix, mpirun of OpenMPI or prterun, or set RANK, WORLD_SIZE, "
                     "MASTER_ADDR and MASTER_PORT",
                     one_line(pmi_size)));
  }
  const std::string tasks = variable("SLURM_STEP_NUM_TASKS").value_or("1");
  if (variable("SLURM_PROCID") && tasks != "1") {
    fail(ErrorKind::unavailable,
         fmt::format("srun has started {} processes without PMIx; use srun --mpi=pmix, or set "
                     "RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT",
                     one_line(tasks)));
  }
}

/// A numeric address of this machine that others may reach, or nothing.
std::optional<std::string> reachable_address() {
  const std::vector<std::string> ours = addresses_of_interfaces();
  std::vector<std::string> wishes = addresses_of_name(host_name());
  if (auto route = address_of_default_route()) {
    wishes.push_back(std::move(*route));
  }
  for (const std::string& wish : wishes) { // a host name may mean 127.0.1.1, or another machine
    if (std::find(ours.begin(), ours.end(), wish) != ours.end()) {
      return wish;
    }
  }
  return ours.empty() ? std::nullopt : std::optional<std::string>(ours.front());
}

[[noreturn]] void cannot_listen(const JobEnvironment& job, int error) {
  fail_errno(fmt::format("rank 0 cannot listen on {} port {}", one_line(job.master_address),
                         job.master_port),
             error);
}

} // namespace

std::optional<JobEnvironment> job_from_environment() {
  const JobVariable rank = job_variable("RANK");
  const JobVariable size = job_variable("WORLD_SIZE");
  if (rank.text && size.text) {
    return job_from_variables(rank, size);
  }
  if (variable("PMIX_NAMESPACE") && variable("PMIX_RANK")) {
#ifdef RECKON_HAVE_PMIX
    return job_from_pmix();
#else
    fail(ErrorKind::unavailable,
         "a PMIx launcher has started this process, but this build has no PMIx; build with "
         "-DRECKON_WITH_PMIX=ON, or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT");
#endif
  }
  if (rank.text || size.text) {
    fail(ErrorKind::usage,
         fmt::format(
             "{} is set but {} is not; set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT, or none",
             rank.text ? rank.name : size.name, rank.text ? "WORLD_SIZE" : "RANK"));
  }
  refuse_other_launchers();
  return std::nullopt;
}

Fd listen_on_master_address(const JobEnvironment& job) {
  const std::vector<std::string> addresses = addresses_of_name(job.master_address);
  if (addresses.empty()) {
    fail(ErrorKind::operation,
         fmt::format("MASTER_ADDR '{}' is not known here", one_line(job.master_address)));
  }
  // "localhost" was meant so, unless the launcher has counted ranks elsewhere.
  const bool counted = job_variable("LOCAL_WORLD_SIZE").text.has_value();
  const bool means_here = job.master_address == "localhost" || is_loopback(job.master_address);
  std::string why;
  int error = 0;
  if (is_loopback(addresses.front()) && job.local_size < job.size && (counted || !means_here)) {
    why = fmt::format("is {} there, and some ranks are on other machines", addresses.front());
  } else {
    for (const std::string& address : addresses) {
      if (Listener listener = try_listen(address, job.master_port, error); listener.socket) {
        if (job.token.empty() && !is_loopback(address)) {
          log(LogLevel::warn, "rank 0 listens on {}, and {}", address, k_no_token);
        }
        return std::move(listener.socket);
      }
      if (error != EADDRNOTAVAIL) {
        cannot_listen(job, error);
      }
    }
    why = "is no address of rank 0's machine";
  }
  log(LogLevel::warn, "MASTER_ADDR {} {}: rank 0 listens on all addresses{}", job.master_address,
      why, job.token.empty() ? fmt::format(", and {}", k_no_token) : "");
  Listener listener = try_listen("", job.master_port, error);
  if (!listener.socket) {
    cannot_listen(job, error);
  }
  return std::move(listener.socket);
}

Fd meet_at_board(JobEnvironment& job, Seconds limit) {
  if (job.rank == 0) {
    job.master_address = "127.0.0.1";
    if (job.local_size < job.size) {
      const auto wanted = job_variable("MASTER_ADDR").text;
      const std::vector<std::string> known =
          wanted ? addresses_of_name(*wanted) : std::vector<std::string>{};
      const std::optional<std::string> found = known.empty() ? reachable_address() : known.front();
      if (!found) {
        fail(ErrorKind::unavailable, "rank 0's machine has no network address that others could "
                                     "reach; set MASTER_ADDR to one");
      }
      job.master_address = *found;
    }
    int error = 0;
    Listener listener = try_listen(job.master_address, 0, error);
    if (!listener.socket) {
      cannot_listen(job, error);
    }
    job.master_port = listener.port;
    job.token = secret_text();
    job.board->publish(
        Json{{"address", job.master_address}, {"port", job.master_port}, {"token", job.token}}
            .dump());
    return std::move(listener.socket);
  }
  const std::optional<std::string> text = job.board->look_up(limit);
  if (!text) {
    throw PeerError("rank 0 did not join in time: the launcher knows no address of it");
  }
  const std::string where = "rank 0's address";
  const Json json = parse_json(*text, where);
  const JsonView view(json, where);
  job.master_address = view.at("address").string();
  job.master_port = view.at("port").integer(1, 65535);
  job.token = view.at("token").string();
  return {};
}

} // namespace reckon
