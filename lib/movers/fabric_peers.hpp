// SPDX-License-Identifier: Apache-2.0
#pragma once

// Internal to the fabric mover: needs libfabric's headers. What its lanes know and tell of each
// other.

#include <rdma/fabric.h>
#include <rdma/fi_domain.h>

#include <cstdint>
#include <string>
#include <vector>

namespace reckon {

inline bool over_verbs(const std::string& provider) {
  return provider.rfind("verbs", 0) == 0;
}

inline std::string provider_of(const fi_info& info) {
  return info.fabric_attr->prov_name;
}

/// Whether completion data have 64 bits.
inline bool has_room_for_stamps(const fi_info* info) noexcept {
  return info->domain_attr->cq_data_size >= sizeof(std::uint64_t);
}

/// A peer's registered memory as one of its lanes registered it.
struct RemoteBuffer {
  std::uint64_t base = 0, key = 0, bytes = 0;
};

struct RemoteLane {
  std::vector<unsigned char> name;
  std::uint64_t stamp = 0;           ///< FabricLane::m_stamp there
  std::vector<RemoteBuffer> buffers; // the last one is the signal page
};

/// Messages between lanes beside writes: a hello over each new connection, and, where addresses are
/// not exchanged once and for all (fabric_naive.cpp), a question and an answer before each write.
struct Message {
  enum class Kind : std::uint32_t { hello, ask, answer };
  std::uint64_t stamp = 0; ///< the sender's: only ranks of the job know it
  Kind kind = Kind::hello;
  std::uint32_t rank = 0; ///< the sender
  std::uint32_t tag = 0;  ///< ask: of the write to come
  std::uint64_t id = 0;   ///< ask: the asker's number of the write; answer: the same
  std::uint64_t bytes = 0;
  std::uint64_t buffer_or_key = 0;  ///< ask: the destination's buffer; answer: its key
  std::uint64_t offset_or_base = 0; ///< ask: the destination's offset; answer: its address
};

/// A posted operation. The context is first: libfabric hands its address back.
struct Slot {
  fi_context2 context{};
  std::uint64_t id = 0;
  std::uint32_t next_free = 0;
  int peer = 0; ///< of the write
};

} // namespace reckon
