// SPDX-License-Identifier: Apache-2.0
#include "network/nic_rates.hpp"

#include "documents/cells.hpp"

#include <utility>

namespace reckon {

NicRates::NicRates(const CellIndex& index, std::string machine, std::string member,
                   std::string transport)
    : m_index(index), m_topology(index.profile().topology), m_machine(std::move(machine)),
      m_member(std::move(member)), m_transport(std::move(transport)) {
  const std::vector<std::string> all = m_topology.ids_in(m_machine, ObjectKind::nic);
  for (const std::string& nic : all) {
    if (const Rate rate = nic_rate(nic, all.size()); rate.mid > 0) {
      m_nics.push_back(nic);
      Rate& port = m_ports[port_of(nic)];
      port = rate.mid > port.mid ? rate : port;
      if (rate.mid != m_topology.find(nic)->link_bytes_per_second) {
        m_measured.insert(port_of(nic));
      }
    }
  }
}

std::string NicRates::port_of(const std::string& nic) const {
  const std::string& cable = m_topology.find(nic)->cable;
  return cable.empty() ? nic : m_machine + "/" + cable;
}

Rate NicRates::whole() const {
  const Rate all = measured_whole();
  return all.mid > 0 ? all : sum();
}

std::optional<Rate> NicRates::behind() const {
  const Rate all = measured_whole();
  return all.mid > 0 && bind_together(all.mid, sum().mid) ? std::optional(all) : std::nullopt;
}

/// Of each direction while both are busy, which is what cells of ports say.
Rate NicRates::cell(const std::string& of) const {
  Rate best;
  for (const Cell* const cell : m_index.select({.test = k_port_bandwidth, .from = of})) {
    if (is_over(*cell, m_transport) && cell->p50 > best.mid) {
      best = measured_rate(*cell);
    }
  }
  return best;
}

Rate NicRates::nic_rate(const std::string& nic, std::size_t nics) const {
  if (const Rate own = cell(nic); own.mid > 0) {
    return own;
  }
  const double described = m_topology.find(nic)->link_bytes_per_second.value_or(0);
  if (const Rate all = measured_whole(); all.mid > 0 && (nics == 1 || described <= 0)) {
    const auto share = static_cast<double>(nics);
    return {all.lo / share, all.mid / share, all.hi / share};
  }
  return {described, described, described};
}

/// What was measured of the machine itself, before its group's.
Rate NicRates::measured_whole() const {
  const Rate own = m_member.empty() ? Rate{} : cell(m_member);
  return own.mid > 0 ? own : cell(m_machine);
}

Rate NicRates::sum() const {
  Rate sum;
  for (const auto& [name, rate] : m_ports) {
    sum = {sum.lo + rate.lo, sum.mid + rate.mid, sum.hi + rate.hi};
  }
  return sum;
}

} // namespace reckon
