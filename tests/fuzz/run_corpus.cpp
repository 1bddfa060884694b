// SPDX-License-Identifier: Apache-2.0
//
// Stands in for libFuzzer's main: runs the target once on every file given.
#include "core/file.hpp"

#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  int runs = 0;
  try {
    for (int i = 1; i < argc; ++i) {
      for (const auto& entry : std::filesystem::directory_iterator(argv[i])) {
        std::fprintf(stderr, "%s\n", entry.path().c_str()); // the last one is the one that failed
        const std::string content = reckon::read_file(entry.path().string());
        LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(content.data()),
                               content.size());
        ++runs;
      }
    }
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
  std::printf("%d inputs\n", runs);
  return runs > 0 ? 0 : 1;
}
