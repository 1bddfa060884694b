// SPDX-License-Identifier: Apache-2.0
// For tests/vm: the class of the way between every two network ports of a profile's first machine,
// a line each, by the ports' names: "p0 p1 PIX".
#include "core/error.hpp"
#include "documents/document.hpp"
#include "topology/paths.hpp"

#include <cstdio>

int main(int argc, char** argv) {
  using namespace reckon;
  if (argc != 2) {
    std::fputs("usage: path_classes PROFILE\n", stderr);
    return 2;
  }
  try {
    const Profile profile = read_profile(argv[1]);
    const std::vector<const TopologyObject*> ports = profile.topology.of_kind(ObjectKind::nic);
    for (const TopologyObject* a : ports) {
      for (const TopologyObject* b : ports) {
        if (a->name < b->name) {
          const Path path = path_between(profile.topology, a->id, b->id);
          std::printf("%s %s %s\n", a->name.c_str(), b->name.c_str(), path.text().c_str());
        }
      }
    }
  } catch (const Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
  return k_exit_ok;
}
