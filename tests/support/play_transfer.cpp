// SPDX-License-Identifier: Apache-2.0
// play_transfer PLATFORM FROM TO BYTES [FROM TO BYTES ...]: seconds that SimGrid takes on a
// platform file for these transfers, all at once; a line each.
#include <simgrid/s4u.hpp>
#include <xbt/log.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

namespace s4u = simgrid::s4u;

int main(int argc, char** argv) {
  if (argc < 5 || argc % 3 != 2) {
    std::fputs("usage: play_transfer PLATFORM FROM TO BYTES ...\n", stderr);
    return 2;
  }
  xbt_log_control_set("root.thres:error");
  std::vector<std::string> words{"play_transfer"};
  int count = 1;
  char* only[] = {words.front().data(), nullptr};
  s4u::Engine engine(&count, only);
  engine.load_platform(argv[1]);
  std::vector<s4u::CommPtr> transfers;
  std::vector<double> seconds;
  for (int i = 2; i < argc; i += 3) {
    transfers.push_back(
        s4u::Comm::sendto_init(engine.host_by_name(argv[i]), engine.host_by_name(argv[i + 1])));
    transfers.back()->set_payload_size(std::stoull(argv[i + 2]));
    transfers.back()->start();
  }
  engine.run();
  for (const s4u::CommPtr& transfer : transfers) {
    std::printf("%.12g\n", transfer->get_finish_time());
  }
  return 0;
}
