// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "strategies/model.hpp"
#include "strategies/play.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace reckon {

/// The ports and uplinks of the model's ranks as stations of a play (strategies/play.hpp), for
/// writes of about `part_bytes`: of each rank one out and one in, then of each rack. Several ports
/// of a rank are one, of their joint rate.
[[nodiscard]] PlayNetwork port_network(const CostModel& model, double part_bytes);

/// The same with each of a rank's several ports as stations of its own (after the others;
/// port_stations()), at the rate that it has alone, of which a lane's writes pass one: lanes with
/// more than their part, as few long tensors give, then take longer. Where all ports together carry
/// less than each alone (the machine behind them is the limit), what they carry together is a
/// station of the lanes' ways as well.
[[nodiscard]] PlayNetwork single_port_network(const CostModel& model, double part_bytes);

/// What two neighbouring stations, out and in, of single_port_network() stand for.
struct PortStations {
  enum class Of : std::uint8_t { rank, rack, port } of = Of::rank;
  std::size_t rank = 0; ///< of a rank or one of its ports
  std::string name;     ///< of a rack or a port
};
/// In the order of the stations.
[[nodiscard]] std::vector<PortStations> port_stations(const CostModel& model);

} // namespace reckon
