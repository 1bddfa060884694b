// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "core/error.hpp"

#include <string>

namespace reckon {

/// A peer died, hung or broke the protocol. This error is a consequence: if another rank reports an
/// error of its own, that is the cause.
class PeerError : public Error {
public:
  explicit PeerError(const std::string& message) : Error(ErrorKind::operation, message) {}
};

} // namespace reckon
