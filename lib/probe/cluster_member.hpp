// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/json_fwd.hpp"
#include "launch/rendezvous.hpp"
#include "probe/cluster.hpp"
#include "probe/flows.hpp"
#include "probe/tcp_losses.hpp"

#include <memory>
#include <string>
#include <vector>

namespace reckon {

/// Every rank's introduction before the first measurement.
struct ClusterHost {
  std::string boot;                    ///< the same for ranks on one computer
  std::string host;                    ///< its name
  std::string network;                 ///< the same for ranks that share their network interfaces
  int processors = 1;                  ///< of the computer, for all users
  std::uint64_t memory_bytes = 0;      ///< free
  std::vector<std::string> transports; ///< transports that connect machines
};

/// One rank's part in a cluster probe: it follows rank 0's instructions, which go to all ranks as
/// text; all answer to all. Of several ranks on a machine the first one measures for it, and the
/// numbers below are those of machines; where all ranks are on one machine, each counts as a
/// machine.
class ClusterMember {
public:
  ClusterMember(Rendezvous& rendezvous, const ClusterProbeOptions& options);
  ~ClusterMember();

  [[nodiscard]] const std::vector<ClusterHost>& hosts() const { return m_hosts; }
  /// Ranks of the job on each machine.
  [[nodiscard]] const std::vector<int>& ranks_on() const { return m_ranks_on; }
  /// host_of()[machine]: the first machine on the same computer.
  [[nodiscard]] const std::vector<int>& host_of() const { return m_host_of; }
  /// The network ports of each machine for the transport in use, by name; lane i uses port i, in
  /// turn. Empty for one without a choice.
  [[nodiscard]] const std::vector<std::vector<std::string>>& ports() const { return m_ports; }
  /// The memory that each machine receives into.
  [[nodiscard]] std::uint64_t memory() const { return m_memory; }

  /// The number of rails that use_transport() found; 0 before.
  [[nodiscard]] int rails() const { return m_rails; }
  /// "w2 has no d3 with a carrier".
  [[nodiscard]] const std::vector<std::string>& left_out() const { return m_left_out; }

  /// Rank 0: gives all ranks an instruction, does its own part, returns all answers. run() throws
  /// Error{operation} when data were wrong. `rails`: ports() become the common_rails().
  void use_transport(const std::string& transport, std::uint64_t seed, bool rails = false);
  [[nodiscard]] std::vector<FlowOutcome> run(const FlowTask& task);
  /// Each machine measures itself alone for about this long, those on one computer in turn; with
  /// several ranks on a machine also their copies to each other. Returns profiles of one machine,
  /// "m0".
  [[nodiscard]] std::vector<Profile> measure_machines(Seconds each);
  /// What the system says of each machine after all was measured, with the errors that it counted
  /// since measure_machines(), and what TCP sent again: of "m0", as of a machine alone. `ids`: the
  /// machines' names.
  [[nodiscard]] std::vector<std::vector<Setting>> settings(const std::vector<std::string>& ids);
  void end();

  /// The other ranks: follows rank 0's instructions until the end.
  void serve();

private:
  void choose_leaders(const std::vector<ClusterHost>& of_ranks);
  /// The answers of the measuring ranks, in the order of machines.
  [[nodiscard]] std::vector<std::string> gather(const std::string& mine, Seconds limit);
  [[nodiscard]] bool measures() const { return m_number >= 0; }
  [[nodiscard]] std::vector<std::string> tell_all(const Json& instruction);
  [[nodiscard]] std::vector<std::string> act(const Json& instruction);
  [[nodiscard]] std::vector<std::string> port_names(const Mover& mover, bool rails) const;
  void use_rails(Mover& mover);
  [[nodiscard]] std::string open_transport(const JsonView& instruction);
  [[nodiscard]] std::string move(const JsonView& instruction);
  [[nodiscard]] std::string measure_machine(const JsonView& instruction);
  [[nodiscard]] std::string describe_again() const;

  Rendezvous& m_rendezvous;
  const ClusterProbeOptions& m_options;
  std::vector<int> m_leaders;  ///< rank that measures, by machine
  std::vector<int> m_ranks_on; ///< by machine
  int m_number = -1;           ///< the machine that this rank measures for; -1: it does not
  std::vector<ClusterHost> m_hosts;
  std::vector<int> m_host_of;
  int m_turn = 0; ///< number of machines with lower numbers on this computer
  std::uint64_t m_memory = 0;
  std::vector<std::vector<std::string>> m_ports;
  int m_rails = 0;
  std::vector<std::string> m_left_out;
  std::unique_ptr<FlowRank> m_flows;
  std::string m_transport;
  /// This machine, from the beginning of its measurement on.
  struct Machine;
  std::unique_ptr<Machine> m_machine;
  TcpLosses m_losses; ///< rank 0
};

/// The transport that all machines have, InfiniBand and its like before tcp; of those `asked` for
/// the first. Throws Error{unavailable}.
[[nodiscard]] std::string common_transport(const std::vector<ClusterHost>& hosts,
                                           const std::vector<std::string>& asked);

} // namespace reckon
