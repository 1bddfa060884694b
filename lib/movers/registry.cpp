// SPDX-License-Identifier: Apache-2.0
#include "core/error.hpp"
#include "movers/host.hpp"
#include "movers/mover.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace reckon {

std::vector<std::string> available_transports(std::vector<std::string>* why_not) {
  std::vector<std::string> names{"host"};
  if (why_not != nullptr) {
    why_not->push_back("fabric: this build has no libfabric; build with RECKON_WITH_FABRIC=ON");
  }
  return names;
}

std::unique_ptr<Mover> make_mover(const std::string& transport) {
  if (transport == "host") {
    return make_host_mover();
  }
  fail(ErrorKind::unavailable, fmt::format("transport {} is not available here; there are: {}",
                                           transport, fmt::join(available_transports(), ", ")));
}

} // namespace reckon
